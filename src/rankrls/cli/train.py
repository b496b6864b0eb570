"""rankrls train DATA -o MODEL"""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from ..blocks.open_tables import pandas_index, parquet_table
from ..blocks.sources import LabelColumns, TableSource, parquet_files
from ..checks import is_query_name
from ..estimators.curve import Curve, curve_of
from ..estimators.pipelines import learned, ranker_of, scalers_of
from ..tables import TableEncoder
from . import feedback, learning, relations
from .data import kind, read_to_learn
from .memory import remember
from .tables import Layout, TableColumns, needs_encoding
from .text import check_target, plural, say

NOT_STREAMED = ("group", "feature_names", "sparse", "skip_bad_lines", "judgments", "pairs", "clicks", "mix")
STREAMED_METHODS = ("rankrls", "sparse", "auto")
OF_TABLES = ("columns", "exclude", "docid")
SIZES = {"rows": "row", "queries": "query", "features": "feature"}
CLICKED = "held out nothing: clicks say what was clicked, not what should be; rankrls evaluate judges by labels"


def run(args: Namespace) -> None:
    check_target(args.output)
    if args.method == "conditional" or args.edges or args.matrix:
        relations.train(args)
        return
    model, size, seconds, lines_of, told = _learned(args)
    remember(model, args)
    learning.save(model, args.output)
    ranker, curve = ranker_of(model), curve_of(model)
    record = {
        "model": args.output,
        "class": type(ranker).__name__,
        "scale": args.scale,
        **size,
        "chosen": learning.chosen(model),
        "scoring": ranker.scoring,
        "held_out": getattr(ranker, "cv_score_", None) if curve is None else curve.score,
        **({"feedback": told} if told else {}),
        "seconds": {what: round(taken, 3) for what, taken in seconds.items()},
    }
    read = ", ".join(plural(size[one], name) for one, name in SIZES.items())
    read += f" in {seconds['reading']:.2f} s" if "reading" in seconds else " in blocks"
    lines = [
        f"read     {read}",
        *_encoded(model),
        f"fitted   {type(ranker).__name__} in {seconds['fitting']:.2f} s: {learning.settled(record['chosen'])}",
        *lines_of,
        CLICKED if args.clicks else _held_out(ranker, curve),
        f"wrote    {args.output}",
    ]
    say(args, record, "\n".join(lines), file=learning.out(args.output))


def _encoded(model: BaseEstimator) -> list[str]:
    """How the columns of a table were encoded, in one line."""
    first = scalers_of(model)[0] if scalers_of(model) else None
    if not isinstance(first, TableEncoder):
        return []
    by_kind: dict[str, list[str]] = {}
    for name, held in first.kinds_.items():
        by_kind.setdefault(held, []).append(name)
    words = [f"{held} {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}" for held, names in by_kind.items()]
    return [f"encoded  {len(first.kinds_)} columns as {len(first.get_feature_names_out())}: {'; '.join(words)}"]


def _held_out(ranker: BaseEstimator, curve: Curve | None) -> str:
    """The held-out score in one line."""
    if hasattr(ranker, "leaderboard_"):
        n = len(ranker.leaderboard_)
        return f"held out {ranker.scoring_} {ranker.cv_score_:.4f} ± {ranker.cv_error_:.4f}, {n} candidates tried"
    if curve is not None:
        return f"held out {ranker.scoring} {curve.score:.4f}, best of {len(curve.values)} values of {curve.over}"
    hint = "; pass --alphas with one value to see how good it is" if hasattr(ranker, "alphas") else ""
    return f"held out nothing: there was nothing to choose{hint}"


def _learned(args: Namespace) -> tuple[Any, dict[str, Any], dict[str, float], list[str], dict[str, Any]]:
    """The model, the size of the data, the time taken, and lines and records about preferences and clicks."""
    if not args.data:
        raise ValueError("which data? rankrls train DATA -o MODEL, or --method conditional with --edges or --matrix")
    if args.checkpoint and not args.stream:
        raise ValueError("--checkpoint needs --stream: rows in memory are quick to read again")
    return _streamed(args) if args.stream else _in_memory(args)


def _in_memory(args: Namespace) -> tuple[Any, dict[str, Any], dict[str, float], list[str], dict[str, Any]]:
    """The same for rows in memory."""
    with learning.stopwatch() as reading:
        data = read_to_learn(args)
    with learning.stopwatch() as fitting:
        model, lines, told = feedback.fit(learning.make(args, data), data, args)
    queries = int(ranker_of(model).n_queries_) or (
        1 if data.qid is None else len(np.unique(data.qid))
    )  # a fit to pairs has none
    size = {"rows": len(data), "queries": queries, "features": int(data.X.shape[1]), "skipped": data.skipped}
    return model, size, {"reading": reading[0], "fitting": fitting[0]}, lines, told


def _streamed(args: Namespace) -> tuple[Any, dict[str, Any], dict[str, float], list[str], dict[str, Any]]:
    """The same for rows that are read in blocks and need not fit in memory; without preferences."""
    if len(args.data) > 1 or args.data[0] == "-":
        raise ValueError("--stream reads one file or folder, several times: put several files into a folder")
    if args.method not in STREAMED_METHODS or args.scale not in ("auto", "none"):
        raise ValueError(
            "--stream is for --method rankrls, sparse or auto with --scale auto or none: others need all rows"
        )
    if args.method == "auto" and args.checkpoint:
        raise ValueError("--checkpoint cannot be combined with --method auto: candidates are judged on rows in memory")
    is_table = os.path.isdir(args.data[0]) or kind(args.data[0], args.input_format) == "parquet"
    for name in (*NOT_STREAMED, *(() if is_table else OF_TABLES)):
        if getattr(args, name):
            name = {"judgments": "qrels"}.get(name, name)
            raise ValueError(f"--{name.replace('_', '-')} cannot be combined with --stream: convert the file first")
    if args.encode == "yes" and not is_table:
        raise ValueError("--encode yes with --stream is for Parquet files and folders")
    model = ranker = learning.make(args, learning.STREAMED)
    with learning.stopwatch() as fitting:
        rows, labels, encoder = _parquet(args) if is_table else (args.data[0], (args.label, args.qid), None)
        if encoder is None:
            model.fit(rows, *labels, **({"checkpoint": args.checkpoint} if args.checkpoint else {}))
        else:
            model = learned(make_pipeline(encoder, ranker), rows, *labels)
    ranker.verbose = False
    features = ranker.n_features_in_ if encoder is None else len(encoder.kinds_)
    rows_read = ranker.n_rows_ if args.method == "auto" else ranker.statistics_.n_rows
    size = {"rows": rows_read, "queries": ranker.n_queries_, "features": features}
    return model, size, {"fitting": fitting[0]}, [], {}


def _parquet(args: Namespace) -> tuple[Any, tuple[str | None, str | None], TableEncoder | None]:
    """Rows of a Parquet file or folder, the columns of labels and queries, and an encoder if features need one."""
    path = Path(args.data[0])
    files = parquet_files(path)
    if not files:
        raise ValueError(f"{path} is not a Parquet file")
    table = parquet_table(files, str(path))
    names = [name for name in table.schema.names if name not in pandas_index(table.schema)]
    columns = TableColumns(args.label, args.qid, args.docid, args.columns, args.exclude or (), minds_queries=True)
    layout = Layout.of(names, columns, str(path))
    labels = layout.label, layout.qid
    ids = next((name for name in layout.features if is_query_name(name)), None)
    if ids is not None and layout.qid is None:
        raise ValueError(f"column {ids!r} looks like query ids: pass --qid {ids}, or leave it out with --exclude")
    if args.encode == "no" or (args.encode == "auto" and not needs_encoding(files, table.schema, layout.features)):
        wanted = [*layout.features, *(name for name in labels if name is not None)]
        return TableSource(table.only(wanted), LabelColumns(*labels)), labels, None
    if args.checkpoint:
        raise ValueError("--checkpoint cannot be combined with columns that must be encoded: convert the file first")
    return path, labels, TableEncoder(columns=layout.features)
