"""Metrics by name, metrics from the caller's functions, and the standard error of a mean over queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..core.queries import Queries
from ..system.types import ArrayLike
from . import ranks
from .functions import (
    ALIASES,
    METRICS,
    QueryIds,
    Value,
    _average,
    _kernel,
    _mean,
    _per_query,
)
from .intake import checked


@dataclass(frozen=True)
class Metric:
    """A named metric: `metric(y, scores, qid)` is its mean, `metric.per_query(y, scores, qid)` its value per query.

    `averages` is True if the former is the mean of the latter, which need not hold for a function of your own.
    Made by `get_metric`.

    Examples
    --------
    >>> get_metric("mrr")
    Metric(name='reciprocal_rank', greater_is_better=True)
    >>> get_metric("mrr")([0, 1], [2.0, 1.0])
    0.5
    """

    name: str
    greater_is_better: bool
    _mean: Callable[..., Value] = field(repr=False)
    _per_query: Callable[..., np.ndarray] = field(repr=False)
    averages: bool = field(default=True, repr=False)

    def __call__(self, y: ArrayLike, scores: ArrayLike, qid: QueryIds = None) -> Value:
        return self._mean(y, scores, qid)

    def per_query(self, y: ArrayLike, scores: ArrayLike, qid: QueryIds = None) -> np.ndarray:
        """(q,) for scores (m,), (q, c) for scores (m, c), NaN where the metric is undefined for a query."""
        return self._per_query(y, scores, qid)

    def mean(self, values: np.ndarray) -> Value:
        """The mean of values per query (q,) or (q, c); only if the metric `averages`."""
        return _average(self.name, values)

    def judge(self, y: ArrayLike, scores: ArrayLike, qid: QueryIds = None) -> tuple[Value, np.ndarray]:
        """The mean, and the values per query behind it: all NaN if it is not a mean over queries (see `averages`)."""
        if self.averages:
            values = self.per_query(y, scores, qid)
            return self.mean(values), values
        mean = self(y, scores, qid)
        n_queries = len(qid) if isinstance(qid, Queries) else len(checked(y, scores, qid)[2])
        return mean, np.full((n_queries, *np.shape(mean)), np.nan)


def get_metric(metric: str | Callable | Metric) -> Metric:
    """The metric with a name such as `"ndcg"`, `"ndcg@10"`, `"map"` or `"mrr"`, or from a function of (y, scores, qid).

    A function of your own must return one number for scores (m,), larger being better; it is called once for each
    column of scores and, for values per query, on the rows of each query.

    Examples
    --------
    >>> metric = get_metric("precision@1")
    >>> metric
    Metric(name='precision@1', greater_is_better=True)
    >>> metric([1, 0, 0, 1], [2, 1, 2, 1], qid=[0, 0, 1, 1])
    0.5
    >>> metric.per_query([1, 0, 0, 1], [2, 1, 2, 1], qid=[0, 0, 1, 1])
    array([1., 0.])
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str) or _is_ours(metric):
        return _named(metric, {})
    if not callable(metric):
        raise TypeError(f"a metric is a name or a function of (y, scores, qid), got {metric!r}")
    name = getattr(metric, "__name__", repr(metric))
    return Metric(name, True, partial(_by_column, metric), partial(_by_query, metric), averages=False)


def per_query(
    metric: str | Callable | Metric, y: ArrayLike, scores: ArrayLike, qid: QueryIds = None, **options: Any
) -> np.ndarray:
    """The metric of each query: (q,) for scores (m,), (q, c) for scores (m, c), NaN where it is undefined.

    Queries are in the order of `Queries.of(qid).labels`; `options` are those of the metric's own function.

    Examples
    --------
    >>> per_query("ndcg", [1, 0, 0, 0], [1, 2, 3, 4], qid=["a", "a", "b", "b"], k=1)
    array([ 0., nan])
    """
    if not options:
        return get_metric(metric).per_query(y, scores, qid)
    if not (isinstance(metric, str) or _is_ours(metric)):
        raise ValueError(f"the options {sorted(options)} need a metric of this library, got {metric!r}")
    return _named(metric, options).per_query(y, scores, qid)


def _named(metric: str | Callable[..., Value], options: dict[str, Any]) -> Metric:
    name = metric if isinstance(metric, str) else metric.__name__
    base, at, k = name.strip().lower().partition("@")
    base = ALIASES.get(base, base)
    if base not in METRICS:
        raise ValueError(ranks.unknown("metric", name, [*METRICS, *ALIASES, "ndcg@10"]))
    if at and not k.isdecimal():
        raise ValueError(f'the cutoff of a metric must be a whole number, as in "{base}@10", got {name!r}')
    options = {"k": int(k), **options} if at else options
    _kernel(base, options)  # report bad options now, not at the first call
    better = base != "disagreement_error"
    return Metric(base + at + k, better, partial(_mean, base, **options), partial(_per_query, base, **options))


def _is_ours(metric: object) -> bool:
    return any(metric is function for function, _ in METRICS.values())


def _by_column(function: Callable, y: ArrayLike, scores: ArrayLike, qid: QueryIds) -> Value:
    labels, S, queries = checked(y, scores, qid)
    ids = None if qid is None else queries.labels[queries.codes]
    if S.ndim == 1:
        return float(function(labels, S, ids))
    return np.array([float(function(labels, s, ids)) for s in S.T])


def _by_query(function: Callable, y: ArrayLike, scores: ArrayLike, qid: QueryIds) -> np.ndarray:
    labels, S, queries = checked(y, scores, qid)
    rows = [queries.rows(i) for i in range(len(queries))]
    return np.array([_by_column(function, labels[q], S[q], queries.labels[queries.codes[q]]) for q in rows])


def standard_error(values: object) -> Any:
    """The standard error of the mean over queries.

    Parameters
    ----------
    values : array-like of shape (n_queries,) or (n_queries, n_models)
        Values of a metric per query, as returned by `per_query`. Queries with a NaN are left out.

    Returns
    -------
    error : float or ndarray of shape (n_models,)
        NaN for fewer than two queries.

    Examples
    --------
    >>> standard_error([0.5, 0.7, float("nan"), 0.9]).round(4)
    np.float64(0.1155)
    """
    values = np.asarray(values, dtype=np.float64)
    values = values[~np.isnan(values).any(axis=tuple(range(1, values.ndim)))]
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)[()]
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))
