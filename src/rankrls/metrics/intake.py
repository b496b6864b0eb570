"""What a caller passes to a metric: labels, scores and query ids, checked."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..checks import check_aligned, check_content
from ..core.queries import Queries
from ..system.frames import as_column, is_missing
from ..system.types import ArrayLike, Ids

QueryIds: TypeAlias = Ids | Queries


def checked(y: ArrayLike, scores: ArrayLike, qid: QueryIds) -> tuple[np.ndarray, np.ndarray, Queries]:
    """Labels (m,), scores (m,) or (m, c) and their grouping, or an error that says what to do."""
    check_aligned(y=y, scores=scores, qid=qid)
    check_content(y=y, scores=scores, qid=qid)
    labels, S = np.asarray(as_column(y), dtype=np.float64), np.asarray(as_column(scores))
    if S.dtype not in (np.float32, np.float64):
        S = S.astype(np.float64)
    if labels.ndim != 1 or not labels.size or S.ndim not in (1, 2) or len(S) != len(labels) or not S.size:
        raise ValueError(
            f"metrics need y (m,) and scores (m,) or (m, c), m > 0; got y {labels.shape}, scores {S.shape}"
        )
    for what, v in (("y", labels), ("scores", S)):
        if np.isnan(v.min()):
            first = np.argwhere(np.isnan(v))[0, 0]
            raise ValueError(f"{what} has {np.isnan(v).sum()} NaN, the first in row {first}: drop those rows")
    queries = grouped(qid, labels.shape)
    if queries.n_rows != len(labels):
        raise ValueError(f"qid groups {queries.n_rows} rows, but y has {len(labels)}")
    return labels, S, queries


def grouped(qid: QueryIds, shape: tuple[int, ...]) -> Queries:
    """Rows grouped by query."""
    if isinstance(qid, Queries):
        return qid
    if qid is None:
        return Queries.single(*shape)
    ids = np.asarray(as_column(qid))
    if ids.shape != shape:
        raise ValueError(f"qid must hold one id per row, shape {shape}; got {ids.shape}")
    missing = is_missing(ids)
    if missing.any():
        raise ValueError(
            f"qid has {missing.sum()} missing values, the first in row {int(np.argmax(missing))}: "
            "every row needs a query id"
        )
    return Queries.of(ids)
