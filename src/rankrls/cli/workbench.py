"""rankrls workbench DATA [MODEL]"""

from __future__ import annotations

import contextlib
import hashlib
import signal
import sys
import webbrowser
from argparse import Namespace
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from ..app.demo import demo
from ..app.documents import DocumentTable, documents
from ..app.encoding import without_encoder
from ..app.inputs import from_runs, is_run, with_qrels
from ..app.journal import fingerprint, own, state_folder
from ..app.session import Session
from ..app.tables import Chosen, from_csv, from_parquet
from ..tables import TableEncoder
from . import predict
from .data import DELIMITERS, kind, read
from .memory import recalled
from .text import as_json, remark, source

READING = (  # options that determine what the rows are
    *("input_format", "label", "qid", "docid", "columns", "exclude", "group", "feature_names", "missing"),
    *("zero_based", "sparse", "skip_bad_lines", "runs", "qrels", "n_features"),
)
SWITCH = 0.001  # seconds after which background work lets an answer go on; Python's default of 5 ms is noticeable


def run(args: Namespace) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    data, model = _opened(args)
    from ..app.server import Server

    session = Session(data, model, journal=_journal(args, data), read_only=args.read_only)
    server = Server(session, args.port)
    sys.setswitchinterval(SWITCH)
    with contextlib.suppress(KeyboardInterrupt):  # the way to end the command
        _announce(args, session, server.url)
        if not args.no_browser:
            webbrowser.open(server.url)
        server.run()


def _announce(args: Namespace, session: Session, url: str) -> None:
    data, journal = session.documents, session.journal.path and str(session.journal.path)
    if args.json:
        print(as_json({"url": url, "journal": journal, "name": data.name}), flush=True)
        return
    rows, queries, features = len(data.y), len(data.queries), data.X.shape[1]
    print(f"{data.name}: {rows:,} documents, {queries:,} queries, {features:,} features")
    if session.history.undoes:
        print(f"resumed from {journal}, {len(session.journal):,} lines")
    print(url, flush=True)
    remark(args, "press Ctrl+C to stop; every change is already in the journal")


def _opened(args: Namespace) -> tuple[DocumentTable, Any]:
    """The documents and the model, if one is given."""
    if args.demo:
        if args.data is not None:
            raise ValueError("--demo brings its own data: leave DATA out")
        return demo(), None
    if args.data is None:
        raise ValueError("which data? rankrls workbench DATA, or rankrls workbench --demo")
    model = None if args.model is None else predict.load(args.model)
    args = recalled(args, model)
    encoder, model = without_encoder(model)
    names, n_features = (None, None) if model is None else predict.features(model)
    if encoder is not None:
        names = encoder.feature_names_in_
    args.n_features = n_features if _form(args) == "letor" else None
    if names is not None and not args.columns and _form(args) in ("csv", "tsv", "parquet"):
        args.columns = [str(name) for name in names]
    return _read(args, encoder), model


def read_documents(source: str, *, encoder: TableEncoder | None = None, **options: Any) -> DocumentTable:
    """The rows of a file as `rankrls workbench` reads them; options are keywords, with _ for -.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "clicks.csv")
    ...     _ = path.write_text("session,clicked,price\\na,1,3.5\\na,0,9.5\\n")
    ...     read_documents(str(path), qid="session", label="clicked").feature_names
    ['price']
    """
    unknown = sorted(set(options) - set(READING))
    if unknown:
        raise TypeError(f"there is no option {unknown[0]!r}; options: {', '.join(READING)}")
    return _read(Namespace(**{**dict.fromkeys(READING), **options}, data=source, quiet=True), encoder)


def _read(args: Namespace, encoder: TableEncoder | None) -> DocumentTable:
    """The documents, which keep the options they were read with."""
    if _form(args) == "run":
        data = from_runs([args.data, *(args.runs or [])], args.qrels)
    elif args.runs:
        raise ValueError("--runs needs a TREC run as DATA")
    else:
        data = _documents(args, encoder)
        data = data if args.qrels is None else with_qrels(data, args.qrels)
    given = {name: getattr(args, name) for name in READING}
    return replace(data, options={name: v for name, v in given.items() if v is not None and v is not False})


def _form(args: Namespace) -> str:
    """The format of the data, or "run"."""
    if args.data != "-" and is_run(args.data):
        return "run"
    return "parquet" if args.data != "-" and Path(args.data).is_dir() else kind(args.data, args.input_format)


def _documents(args: Namespace, encoder: TableEncoder | None) -> DocumentTable:
    """The rows of a file; a table also has titles and documents."""
    name, form = "standard input" if args.data == "-" else PurePath(args.data).name, _form(args)
    if form == "letor" or (form == "parquet" and args.data == "-"):
        return documents(read([args.data], args, n_features=args.n_features, label=False), name=name)
    missing = "nan" if args.missing is None else args.missing
    chosen = Chosen(args.label, args.qid, args.columns, missing, args.docid, args.exclude or (), encoder)
    if form == "parquet":
        return from_parquet(args.data, name, chosen)
    with source(args.data, args.quiet) as file:
        return from_csv(file, name, chosen, DELIMITERS[form])


def _journal(args: Namespace, data: DocumentTable) -> Path | None:
    """Where changes are stored: the given file, or one beside the data whose name is free or which belongs to them."""
    if args.journal is not None:
        return Path(args.journal)
    names = ["demo" if args.demo else "standard-input" if args.data == "-" else PurePath(args.data).name]
    names += [] if args.model is None else [PurePath(args.model).name]
    folder = Path(".") if args.demo or args.data == "-" else Path(args.data).resolve().parent
    file, about = f"{'.'.join(names)}.workbench.jsonl", fingerprint(data.X, data.y, data.queries.codes)
    elsewhere = state_folder() / hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    for place in (folder, elsewhere):
        path = own(place / file, about)
        if args.read_only and path.exists():
            return path
        if not args.read_only and _writable(path):
            if path.parent != folder or path.name != file:
                why = f"{folder} cannot be written to" if path.parent != folder else f"{file} is of other data"
                print(f"rankrls: {why}; this journal is {path}", file=sys.stderr)
            return path
    return None


def _writable(path: Path) -> bool:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab"):
            return True
    except OSError:
        return False
