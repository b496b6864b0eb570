"""Scaling within queries."""

from __future__ import annotations

import numpy as np

from ..checks import check_queries
from ..core.queries import Queries
from ..system.types import Ids, Matrix


def per_query_minmax(X: Matrix, qid: np.ndarray | None = None) -> np.ndarray:
    """Scale every feature to [0, 1] within each query: (x - min) / (max - min), and 0 where it is constant.

    The scaling of the LETOR sets ("QueryLevelNorm") and of the papers. See `rankrls.PerQueryMinMax` for its limits.

    Parameters
    ----------
    X : array-like of shape (m, n)
        Items; NaN stays NaN and is ignored.
    qid : array-like of shape (m,), default=None
        Query of each row; None: all rows are one query.

    Returns
    -------
    scaled : ndarray of shape (m, n)

    Examples
    --------
    >>> per_query_minmax([[1.0, 5.0], [3.0, 5.0], [10.0, 0.0], [20.0, 4.0]], ["a", "a", "b", "b"])
    array([[0., 0.],
           [1., 0.],
           [0., 0.],
           [1., 1.]])
    """
    X = np.asarray(X)
    X = X.astype(np.float32 if X.dtype == np.float32 else np.float64)  # a copy
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got shape {X.shape}")
    return minmax_scale(X, check_queries(qid, len(X)))


def minmax_scale(X: np.ndarray, queries: Queries) -> np.ndarray:
    """X (m, n) with every feature scaled to [0, 1] within each query, in place."""
    for batch in queries.batches():
        V = batch.stack(X)  # (g, l, n)
        low, high = np.fmin.reduce(V, axis=1, keepdims=True), np.fmax.reduce(V, axis=1, keepdims=True)
        with np.errstate(over="ignore"):
            half = np.isinf(high - low)  # the range overflows, so halve everything
        if half.any():
            V, low, high = (np.where(half, part / 2, part) for part in (V, low, high))
        V = (V - low) / np.where(high > low, high - low, 1)
        X[batch.rows] = V.reshape(-1, X.shape[1])
    return X


def fill_with_minimum(X: np.ndarray, qid: Ids) -> np.ndarray:
    """Replace NaN, in place, by the smallest value of the feature in the query, or by 0 if that is smaller.

    This is how the Feature-min files of LETOR 3.0 are made from the Feature-null ones: a missing BM25 becomes 0, a
    missing log-likelihood that of the worst document. (243 of their 51,490 values differ: in five queries they use 0
    for the logarithm of BM25 although other documents have a negative one.)
    """
    if not np.isnan(X).any():
        return X
    for batch in check_queries(qid, len(X)).batches():
        V = batch.stack(X)
        low = np.fmin.reduce(V, axis=1, keepdims=True, initial=0)
        X[batch.rows] = np.where(np.isnan(V), low, V).reshape(-1, X.shape[1])
    return X
