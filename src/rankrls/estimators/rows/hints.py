"""Warnings about data that look like a mistake: missing query ids, or columns of very different scales."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import sparse

from ...checks import is_query_name
from ...core.queries import Queries
from ...kernels import Moments
from ...system.frames import names
from ...system.warnings import warn

ONE_QUERY = 1000  # a single query with more graded rows than this is probably several queries
GRADES = 10  # graded relevance has at most this many different labels
UNSCALED, CELLS = 1000.0, 1_000_000  # warn above this ratio of column spreads; values used to estimate it
SPLIT = 0.1  # warn if other rows of at least this share of the scored queries were trained on


def warn_about_columns(X: Any, qid: Any) -> None:
    """Warn if a column of a frame that probably holds query ids is used as a feature."""
    columns = [name for name in names(X) if isinstance(name, str)]
    hint = query_column(columns, lambda name: np.asarray(X[name]), given=qid is not None)
    if hint is not None:
        remedy = "drop it from X" if qid is not None else f"pass qid={hint!r}, or drop it"
        warn(f"column {hint!r} looks like query ids, but is used as a feature: {remedy}")


def warn_about_one_query(y: np.ndarray, qid: object) -> None:
    """Warn if there are no query ids, but many rows with few different labels, which is hardly one ranking."""
    if qid is None and _graded(y):
        warn(
            f"no qid was given, so all {len(y):,} rows are ranked as one query: if they belong to several, pass qid "
            "(rankrls.qid_from_group makes it from sizes); pass a constant qid if one is meant"
        )


def warn_about_scales(X: Any, method: str) -> None:
    """Warn if columns differ so much in scale that only a few of them matter to a penalty or kernel."""
    rows = max(100, CELLS // X.shape[1])
    some = (X.tocsr() if sparse.issparse(X) else X)[:: max(1, X.shape[0] // rows)][:rows]
    moments = Moments.of(some)
    varying = moments.deviation[moments.square > 0]
    if len(varying) > 1 and varying.max() > UNSCALED * varying.min():
        warn(
            f"columns differ in scale by a factor of {varying.max() / varying.min():,.0f}, and {method} depends on it: "
            f"put a scaler before it, make_pipeline(StandardScaler(), {method}(...))"
        )


def warn_about_split_queries(trained: tuple[np.ndarray, Any] | None, queries: Queries, index: Any) -> None:
    """Warn if a frame holds other rows of training queries, as happens with KFold on one frame.

    `trained` has the query ids and the row labels of the training frame. Frames that share row labels come from
    different files, whose query ids may be equal by chance.
    """
    if trained is None or index is None or len(trained[0]) == 1 or index.isin(trained[1]).any():
        return
    split = len(set(trained[0].tolist()).intersection(queries.labels.tolist()))
    if split > SPLIT * len(queries):
        warn(
            f"other rows of {split} of the {len(queries)} scored queries were in the training data: if KFold split "
            "them, the score is too good; GroupKFold with groups=qid keeps queries whole"
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
    """True if values are whole numbers or text, with equal values in two or more runs."""
    if values.ndim != 1 or len(values) < 4 or values.dtype.kind not in "iufUO":
        return False
    if values.dtype.kind == "f" and not np.all(values == np.floor(values)):
        return False
    runs = 1 + int(np.sum(values[1:] != values[:-1]))
    return 2 <= runs < len(values) / 1.5 and runs == len(set(values.tolist()))
