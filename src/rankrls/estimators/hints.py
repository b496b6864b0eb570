"""Data that look as if queries were meant and not given: said in one line, since nothing else would show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..checks import is_query_name
from ..core.queries import Queries
from ..system.frames import names
from ..system.warnings import warn

ONE_QUERY = 1000  # rows with graded labels from which on a single query is probably several
GRADES = 10  # different labels of graded relevance, at most
SPLIT = 0.1  # share of the scored queries from which on it is no accident that others of their rows were trained on


def mind_columns(X: Any, qid: Any) -> None:
    """Warn if a column of a frame that probably holds query ids is used as a feature."""
    columns = [name for name in names(X) if isinstance(name, str)]
    hint = query_column(columns, lambda name: np.asarray(X[name]), given=qid is not None)
    if hint is not None:
        remedy = "drop it from X" if qid is not None else f"pass qid={hint!r}, or drop it"
        warn(f"column {hint!r} looks like query ids, but is used as a feature: {remedy}")


def mind_one_query(y: np.ndarray, qid: object) -> None:
    """Warn if no queries are given and many rows share few labels, which is hardly one ranking."""
    if qid is None and _graded(y):
        warn(
            f"no qid was given, so all {len(y):,} rows are ranked as one query: if they belong to several, pass qid "
            "(rankrls.qid_from_group makes it from sizes); pass a constant qid if one is meant"
        )


def mind_split_queries(trained: tuple[np.ndarray, Any] | None, queries: Queries, index: Any) -> None:
    """Warn if a frame holds further rows of queries that were trained on, as KFold on one frame leaves them.

    `trained` has the ids of the queries and the row labels of the frame that was trained on. Frames that share row
    labels come from different files, whose query ids may be the same by chance.
    """
    if trained is None or index is None or len(trained[0]) == 1 or index.isin(trained[1]).any():
        return
    split = len(set(trained[0].tolist()).intersection(queries.labels.tolist()))
    if split > SPLIT * len(queries):
        warn(
            f"{split} of the {len(queries)} scored queries were trained on with other rows of theirs: if KFold split "
            "them, the score is too good, and GroupKFold with groups=qid keeps queries whole"
        )


def query_column(columns: Iterable[str], values: Callable[[str], np.ndarray], *, given: bool = False) -> str | None:
    """The column that probably holds query ids: by its name, or by part of its name and runs of equal values."""
    columns = list(columns)
    named = [name for name in columns if is_query_name(name)]
    likely = [name for name in columns if not given and any(part in name.lower() for part in ("query", "session"))]
    return next(iter([*named, *(name for name in likely if _are_ids(values(name)))]), None)


def _graded(y: np.ndarray) -> bool:
    if y.ndim != 1 or len(y) < ONE_QUERY:
        return False
    labels = np.unique(y[~np.isnan(y)])
    return len(labels) <= GRADES and bool(np.all(labels == np.floor(labels)))


def _are_ids(values: np.ndarray) -> bool:
    """Whether values are whole numbers or text, of which equal ones stand together in two or more runs."""
    if values.ndim != 1 or len(values) < 4 or values.dtype.kind not in "iufUO":
        return False
    if values.dtype.kind == "f" and not np.all(values == np.floor(values)):
        return False
    runs = 1 + int(np.sum(values[1:] != values[:-1]))
    return 2 <= runs < len(values) / 1.5 and runs == len(set(values.tolist()))
