"""The sums of a fit over queries of many different lengths.

A batch of `Queries` holds queries of one length, so that means are means over an axis; where every length is rare, such
batches are small and their matrix products slow. Here a run is whole queries of any lengths, and the means over queries
and tie levels are products with sparse matrices, which are made once for all features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..system.types import DTypeLike
from .means import Read, Rows
from .preferences import QueryPreferences


@dataclass(frozen=True)
class Run:
    """Some whole queries: their rows, and matrices that take means over them."""

    queries: np.ndarray  # (g,)
    rows: Rows  # (k,)
    query: np.ndarray  # (k,) index of each row's query in the run
    average: sparse.csr_array  # (g, k)
    levels: sparse.csr_array  # (ties, k) level means times their scale in the loss
    scale: np.ndarray  # (k, 1) weight of a row in the loss

    def __len__(self) -> int:
        return len(self.query)


def runs(F: QueryPreferences, dtype: DTypeLike) -> list[Run]:
    """All queries in runs of about `batch_rows` rows."""
    q, dtype = F.queries, np.dtype(dtype)
    if dtype not in F.runs:
        number = (q.starts + q.sizes - 1) // q.batch_rows  # of the run that a query ends in
        cuts = np.flatnonzero(np.diff(number)) + 1
        F.runs[dtype] = [_run(F, part, dtype) for part in np.split(np.arange(len(q)), cuts)]
    return F.runs[dtype]


def _run(F: QueryPreferences, queries: np.ndarray, dtype: np.dtype) -> Run:
    """A run of whole queries, with the matrices that take their means."""
    q = F.queries
    rows: Any = slice(int(q.starts[queries[0]]), int(q.starts[queries[-1]] + q.sizes[queries[-1]]))
    rows = rows if q.order is None else q.order[rows]
    query = np.repeat(np.arange(len(queries)), q.sizes[queries])
    u = np.ones(len(query)) if F.u is None else F.u[rows]
    average = _means(query, u / F.S[queries][query], len(queries), dtype)
    levels = sparse.csr_array((0, len(query)), dtype=dtype)
    if F.ties is not None:
        first, last = F.ties.start[queries[0]], F.ties.start[queries[-1] + 1]
        level = F.ties.level[rows]
        value = u * np.where(level >= 0, (F.level_scale / F.ties.weight)[level], 0.0)
        levels = _means(np.maximum(level - first, 0), value, int(last - first), dtype)
    scale = F.between[queries][query] if F.within is None else F.within[rows]
    return Run(queries, rows, query, average, levels, (scale * np.sqrt(u))[:, None].astype(dtype))


def _means(place: np.ndarray, value: np.ndarray, n: int, dtype: np.dtype) -> sparse.csr_array:
    """(n, k) the matrix that adds row i, times value i, to row place[i]."""
    used = np.flatnonzero(value)
    return sparse.csr_array((value[used].astype(dtype), (place[used], used)), shape=(n, len(place)))


def factor(F: QueryPreferences, run: Run, read: Read, shift: Any, level: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks R of rows with the sum of R'R that `QueryPreferences.factor` describes."""
    V = read(run.rows)
    mean = run.average @ V
    V -= mean[run.query]
    np.maximum(level, np.max(np.abs(mean) * F.rounding.level[run.queries, None], axis=0), out=level)
    if run.levels.shape[0]:
        yield run.levels @ V
    if F.beta > 0:
        yield np.sqrt(F.beta * F.S[run.queries])[:, None].astype(V.dtype) * (mean - shift)
    V *= run.scale
    yield V
