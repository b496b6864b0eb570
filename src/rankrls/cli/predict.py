"""rankrls predict MODEL DATA -o SCORES"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from sklearn.base import BaseEstimator

from ..checks import check_queries
from ..datasets import RankingData, trec
from ..estimators import ConditionalRankRLS
from ..estimators.pipelines import needs_queries, predicted, quietly, ranker_of, scaled, scalers_of
from ..system.progress import Progress
from ..tables import TableEncoder
from . import learning, relations
from .data import DELIMITERS, blocks, complete, doc_ids, kind, last_column, warn_about_groups, warn_about_width
from .memory import recalled
from .tables import write_csv, write_parquet
from .text import check_target, plural, remark, say, target

KERNEL_CELLS = 20_000_000  # most kernel values in memory at a time


@dataclass(frozen=True)
class Scored:
    """Rows of a block, and their scores."""

    qid: np.ndarray  # (m,) of text
    docid: np.ndarray  # (m,)
    scores: np.ndarray  # (m,)
    uncertainty: dict[str, np.ndarray] = field(default_factory=dict)  # further columns: the uncertainty of scores


def run(args: Namespace) -> None:
    check_target(args.output)
    if args.model == args.data == "-":
        raise ValueError("standard input (-) can be read only once: the model, or the data")
    if args.data not in (None, "-") and learning.is_model(args.data) and not learning.is_model(args.model):
        args.model, args.data = args.data, args.model  # evaluate takes the data first: either order is clear here
    model = learning.load(args.model)
    if relations.is_relation(model):
        relations.predict(model, args)
        return
    if args.data is None:
        raise ValueError("which rows? rankrls predict MODEL DATA")
    args = recalled(args, model)
    usual = "csv" if args.std or args.interval is not None else "scores"
    args.format = args.format or {"csv": "csv", "tsv": "tsv", "parquet": "parquet"}.get(kind(args.output), usual)
    if usual == "csv" and args.format in ("scores", "trec"):
        raise ValueError(f"--std and --interval are columns of a table, but --format {args.format} only holds scores")
    tally = {"rows": 0, "skipped": 0}
    with learning.stopwatch() as seconds, target(args.output) as file:
        _write(_scored(model, args, tally), args, file)
    if tally["skipped"] and args.rows > 0:
        remark(args, f"left out {plural(tally['skipped'], 'unreadable line')}, which got no score")
    if args.output != "-":
        record = {"scores": args.output, "format": args.format, **tally, "seconds": round(seconds[0], 3)}
        say(args, record, f"wrote {plural(tally['rows'], 'score')} to {args.output} in {seconds[0]:.2f} s")


def _write(parts: Iterator[Scored], args: Namespace, file: BinaryIO) -> None:
    if args.format in DELIMITERS:
        write_csv(map(_columns, parts), file, DELIMITERS[args.format])
    elif args.format == "parquet":
        write_parquet(map(_columns, parts), file)
    else:
        for part in parts:
            lines = _run_lines(part, args.tag) if args.format == "trec" else _score_lines(part)
            file.write("".join(lines).encode())


def _scored(model: BaseEstimator, args: Namespace, tally: dict[str, int]) -> Iterator[Scored]:
    """Blocks of rows with their scores."""
    names, n = features(model)
    width = 0
    progress = Progress("scoring", unit="rows", quiet=args.quiet or args.data != "-")  # files report their own progress
    whole = needs_queries(model) or args.format == "trec" or args.interval is not None
    rows = min(args.rows, _rows_at_a_time(model))
    for block in blocks(args.data, args, rows, whole_queries=whole, names=names, n_features=n, kinds=kinds_of(model)):
        if not tally["rows"] and (whole or args.format != "scores"):
            warn_about_groups(block, args, [args.data])
        scores = scores_of(model, block, args.data)
        qid = np.full(len(block), "1", dtype=object) if block.qid is None else block.qid
        yield Scored(qid, doc_ids(block, tally["rows"] + 1), scores, _uncertainty(model, block, args))
        tally["rows"] += len(block)
        tally["skipped"] += block.skipped
        width = max(width, last_column(block.X))
        progress.add(len(block))
    progress.close()
    warn_about_width(args.data, args, width, n)


def _uncertainty(model: BaseEstimator, data: RankingData, args: Namespace) -> dict[str, np.ndarray]:
    """Standard deviations of scores, and intervals of ranks."""
    if not args.std and args.interval is None:
        return {}
    ranker, X = ranker_of(model), scaled(model, data.X, data.qid)
    if not hasattr(ranker, "rank_interval"):
        raise ValueError(f"a {type(ranker).__name__} has no uncertainty estimates: --std and --interval need RankRLS")
    with quietly(model):
        found = {"std": ranker.predict(X, return_std=True)[1]} if args.std else {}
        if args.interval is not None:
            ranks = ranker.rank_interval(X, data.qid, level=args.interval)
            found |= {"best_rank": ranks[:, 0], "worst_rank": ranks[:, 1]}
    return found


def load(path: str) -> Any:
    """A model that scores rows."""
    model = learning.load(path)
    if isinstance(ranker_of(model), ConditionalRankRLS):
        raise ValueError(
            f"{path} is a model of relations between objects, not of rows of queries: rankrls evaluate {path} --edges "
            "FILE judges it (or --matrix FILE), and rankrls predict scores pairs with it"
        )
    return model


def features(model: BaseEstimator) -> tuple[Any, int]:
    """Names of the features a model takes, if it knows them, and their number."""
    first = [*scalers_of(model), ranker_of(model)][0]
    return getattr(first, "feature_names_in_", None), first.n_features_in_


def kinds_of(model: BaseEstimator) -> dict[str, str] | None:
    """The kinds of the columns that a model encodes; None if it takes numbers."""
    first = [*scalers_of(model), ranker_of(model)][0]
    return first.kinds_ if isinstance(first, TableEncoder) else None


def scores_of(model: BaseEstimator, data: RankingData, path: str) -> np.ndarray:
    """(m,) the score of each row, computed with a bounded number of kernel values at a time."""
    _, n = features(model)
    if data.X.shape[1] != n:
        raise ValueError(f"{path} has {plural(data.X.shape[1], 'feature')}, but the model was trained on {n:,}")
    complete(data)
    step = len(data) if needs_queries(model) else _rows_at_a_time(model)
    qid = lambda rows: None if data.qid is None else data.qid[rows]
    parts = [slice(i, i + step) for i in range(0, max(1, len(data)), max(1, step))]
    scores = np.concatenate([predicted(model, data.X[rows], qid(rows)) for rows in parts])
    if scores.ndim > 1:
        raise ValueError(f"the model has {scores.shape[1]} targets, but these formats hold one score per row")
    return scores


def _rows_at_a_time(model: BaseEstimator) -> int:
    points = getattr(getattr(ranker_of(model), "X_fit_", None), "shape", (1,))[0]
    return max(1, KERNEL_CELLS // points)


def _score_lines(part: Scored) -> Iterator[str]:
    return (f"{score}\n" for score in trec.shortest(part.scores))


def _run_lines(part: Scored, tag: str) -> Iterator[str]:
    return trec.run_lines(part.scores, check_queries(part.qid, len(part.qid)), part.docid, tag)


def _columns(part: Scored) -> dict[str, np.ndarray]:
    return {"qid": part.qid.astype(object), "docid": part.docid, "score": part.scores, **part.uncertainty}
