"""rankrls workbench DATA [MODEL]"""

from __future__ import annotations

import signal
import sys
import tempfile
import webbrowser
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from threadpoolctl import threadpool_limits

from ..app.demo import demo
from ..app.documents import DocumentTable, documents
from ..app.encoding import without_encoder
from ..app.inputs import from_runs, is_run, with_qrels
from ..app.session import Session
from ..app.tables import Chosen, from_csv, from_parquet
from ..tables import TableEncoder
from . import predict
from .data import DELIMITERS, kind, read
from .memory import recalled
from .text import as_json, remark, source


def run(args: Namespace) -> None:
    data, model = _opened(args)
    from ..app.server import Server

    threadpool_limits(limits=1, user_api="blas")  # answers are short: waking further threads costs more than it saves
    session = Session(data, model, journal=_journal(args), read_only=args.read_only)
    server = Server(session, args.port)
    record = {"url": server.url, "journal": session.journal.path and str(session.journal.path), "name": data.name}
    if args.json:
        print(as_json(record), flush=True)
    else:
        rows, queries, features = len(data.y), len(data.queries), data.X.shape[1]
        print(f"{data.name}: {rows:,} documents, {queries:,} queries, {features:,} features")
        if session.history.undoes:
            print(f"went on from {record['journal']}, {len(session.journal):,} lines")
        print(server.url, flush=True)
        remark(args, "Ctrl+C ends it; every change is in the journal already")
    if not args.no_browser:
        webbrowser.open(server.url)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server.run()


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
    if args.data != "-" and is_run(args.data):
        return from_runs([args.data, *(args.runs or [])], args.qrels), model
    if args.runs:
        raise ValueError("--runs goes with a TREC run as DATA")
    names, n_features = (None, None) if model is None else predict.features(model)
    if encoder is not None:
        names = encoder.feature_names_in_.tolist()
    data = _documents(args, names, n_features, encoder)
    return (data if args.qrels is None else with_qrels(data, args.qrels)), model


def _documents(
    args: Namespace, names: Sequence[str] | None, n_features: int | None, encoder: TableEncoder | None
) -> DocumentTable:
    """The rows of a file; a table brings titles and documents with it."""
    name = "standard input" if args.data == "-" else PurePath(args.data).name
    form = "parquet" if args.data != "-" and Path(args.data).is_dir() else kind(args.data, args.input_format)
    if form == "letor" or (form == "parquet" and args.data == "-"):
        return documents(read([args.data], args, names=names, n_features=n_features, label=False), name=name)
    missing = "nan" if args.missing is None else args.missing
    features = args.columns if args.columns or names is None else [str(name) for name in names]
    chosen = Chosen(args.label, args.qid, features, missing, args.docid, args.exclude or (), encoder)
    if form == "parquet":
        return from_parquet(args.data, name, chosen)
    with source(args.data, args.quiet) as file:
        return from_csv(file, name, chosen, DELIMITERS[form])


def _journal(args: Namespace) -> Path | None:
    """Where the changes are stored: as given, beside the data, or else in a temporary folder."""
    if args.journal is not None:
        return Path(args.journal)
    name = "demo" if args.demo else "standard-input" if args.data == "-" else PurePath(args.data).name
    folder = Path(".") if args.demo or args.data == "-" else Path(args.data).resolve().parent
    path = folder / f"{name}.workbench.jsonl"
    if args.read_only:
        return path if path.exists() else None
    try:
        with open(path, "ab"):
            return path
    except OSError:
        fallback = Path(tempfile.mkdtemp(prefix="rankrls-workbench-")) / path.name
        print(f"rankrls: {folder} cannot be written to; the journal is {fallback}", file=sys.stderr)
        return fallback
