"""Tie levels (items of one query with equal labels), and rows centred by query in pieces of bounded size.

`Rounding` bounds the rounding of rows in F V, which tells a column that varies from a constant one. The rounding of a
row is eps times its value times its weight sqrt(u) between. It is less for two kinds of rows where weights are uneven.
The heaviest row of a query is nearly the query's mean, so its difference from the mean is computed from the other rows;
its own rounding enters only the regression part, of weight beta. And the heaviest row overall is the centre of the sums
if it has a fair share of the weight, so its values are not rounded at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from ..system.lazy import cached_property
from ..system.types import DTypeLike
from .queries import Batch, Queries

UNEVEN = 1e4  # ratio of the largest to the smallest weight above which rows are centred twice
FAIR = 1e-3  # sums are taken about the heaviest row if it has at least this share of the weight
Rows = slice | np.ndarray
Read = Callable[[Rows], np.ndarray]  # rows -> a fresh (k, n) float array that may be overwritten
FEW = 1000  # rows
SMALL = 1 << 12  # cells of a matrix that is dense rather than sparse


@dataclass(frozen=True)
class Levels:
    """All tie levels, including those of a single item; some may be empty."""

    level: np.ndarray  # (m,) the level of each item
    query: np.ndarray  # (levels,) ascending
    size: np.ndarray  # (levels,) items
    weight: np.ndarray  # (levels,) S_j

    @classmethod
    def of(cls, queries: Queries, y: np.ndarray, u: np.ndarray | None) -> Levels:
        """The levels of labels y (m,) with item weights u."""
        grade = grades(y)
        n = int(grade.max()) + 1
        level = queries.codes * n + grade
        if len(queries) * n <= 4 * len(y):  # few grades: a table of queries by grades is small
            query = np.repeat(np.arange(len(queries)), n)
            size = np.bincount(level, minlength=len(query))
        else:
            cells, level, size = np.unique(level, return_inverse=True, return_counts=True)
            query = cells // n
        weight = size.astype(float) if u is None else np.bincount(level, weights=u, minlength=len(size))
        return cls(level, query, size, weight)


@dataclass(frozen=True)
class Ties:
    """The levels of two items or more, numbered query after query."""

    level: np.ndarray  # (m,) the tie of each item, -1 if it has none
    start: np.ndarray  # (q + 1,) ties of query i are start[i] to start[i + 1]
    weight: np.ndarray  # (ties,) S_j
    _averages: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)  # of few rows: asked for often

    @classmethod
    def of(cls, levels: Levels, n_queries: int) -> Ties | None:
        """The ties among levels; None where no items tie."""
        tied = levels.size > 1
        if not tied.any():
            return None
        level = np.where(tied, np.cumsum(tied) - 1, -1)[levels.level]
        start = np.concatenate([[0], np.cumsum(np.bincount(levels.query[tied], minlength=n_queries))])
        return cls(level, start, levels.weight[tied])

    def of_queries(self, queries: np.ndarray) -> np.ndarray:
        """The numbers of the ties of some queries."""
        n = self.start[queries + 1] - self.start[queries]
        offset = np.cumsum(n) - n
        return np.arange(n.sum()) + np.repeat(self.start[queries] - offset, n)

    def average(
        self, batch: Batch, u: np.ndarray | None, dtype: DTypeLike
    ) -> tuple[np.ndarray, sparse.csc_array | np.ndarray]:
        """For each row of a batch, the index of its tie within the batch, and the matrix that averages over ties.

        The matrix is dense where it is small: a sparse one takes longer to set up than to multiply with.
        """
        if len(self.level) > FEW:
            return self._average(batch, u, dtype)
        first = batch.rows.start if isinstance(batch.rows, slice) else batch.rows[0]
        key = batch.queries.tobytes(), int(first), batch.length, np.dtype(dtype).char, u is None
        if key not in self._averages:
            self._averages[key] = self._average(batch, u, dtype)
        return self._averages[key]

    def _average(
        self, batch: Batch, u: np.ndarray | None, dtype: DTypeLike
    ) -> tuple[np.ndarray, sparse.csc_array | np.ndarray]:
        n = self.start[batch.queries + 1] - self.start[batch.queries]
        offset = np.cumsum(n) - n - self.start[batch.queries]
        level = batch.take(self.level)
        place = np.maximum(0, level + np.repeat(offset, batch.length))
        place[level < 0] = 0  # an item without ties gets weight zero at an arbitrary index
        value = (1.0 if u is None else batch.take(u)) / self.weight[level]
        value[level < 0] = 0
        shape = (int(n.sum()), len(level))
        if 0 < shape[0] * shape[1] <= SMALL:
            dense = np.zeros(shape, dtype)
            dense[place, np.arange(len(level))] = value
            return place, dense
        return place, sparse.csc_array((value.astype(dtype), place, np.arange(len(level) + 1)), shape=shape)


@dataclass(frozen=True)
class Piece:
    """Rows V of some queries minus the query means, and the means that were subtracted."""

    batch: Batch
    V: np.ndarray  # (k, n)
    mean: np.ndarray  # (g, n)
    level: np.ndarray | None  # (k,) the row of level_mean for each row of V
    level_mean: np.ndarray | None  # (levels, n)
    last: bool = True  # no other piece of these queries follows

    def raise_level(self, level: np.ndarray, scale: np.ndarray) -> None:
        """Raise `level` (n,) to the largest of the query means times `scale` (q,)."""
        np.maximum(level, np.max(np.abs(self.mean) * scale[self.batch.queries, None], axis=0), out=level)


@dataclass(frozen=True)
class GroupMeans:
    """Weighted means over queries and over tie levels, accurate for weights of very different sizes."""

    queries: Queries
    u: np.ndarray | None  # (m,)
    S: np.ndarray  # (q,)
    ties: Ties | None

    @cached_property
    def uneven(self) -> bool:
        """True if some rows weigh far more than others.

        A row that outweighs the rest of its query is nearly the mean, and its difference from the mean gets a large
        weight, so the rounding of the mean would show. Subtracting the mean of the differences removes it.
        """
        return self.u is not None and bool(self.u.max(initial=0) > UNEVEN * self.u.min(initial=np.inf))

    @cached_property
    def heaviest(self) -> np.ndarray:
        """(q,) the heaviest row of each query where weights are uneven; empty otherwise.

        The mean of such a query is that row plus a small correction from the others, so no digits are lost.
        """
        if self.u is None or not self.uneven:
            return np.empty(0, dtype=np.intp)
        order, found = np.argsort(self.u, kind="stable"), np.zeros(len(self.S), dtype=np.intp)
        found[self.queries.codes[order]] = order
        return found

    def centre(self, V: np.ndarray, batch: Batch, out: np.ndarray | None = None) -> np.ndarray:
        """Subtract the query means from the rows V of a batch, in place or into `out`; returns the (g, n) means."""
        V3 = V.reshape(-1, batch.length, V.shape[1]) if V.size else V.reshape(len(batch.queries), batch.length, 0)
        if self.u is None:
            weights = np.full((1, 1, batch.length), 1 / batch.length, dtype=V.dtype)
        else:
            weights = (batch.stack(self.u) / self.S[batch.queries][:, None]).astype(V.dtype)[:, None]
        mean = weights @ V3
        centred = np.subtract(V3, mean, out=(V if out is None else out).reshape(V3.shape))
        if self.uneven:
            rest = weights @ centred
            centred -= rest
            mean = mean + rest
        return mean[:, 0]

    def piece(self, V: np.ndarray, batch: Batch, mean: np.ndarray) -> Piece:
        """Centred rows of a batch with the means of the levels there."""
        if self.ties is None:
            return Piece(batch, V, mean, None, None)
        level, average = self.ties.average(batch, self.u, V.dtype)
        if not average.shape[0]:
            return Piece(batch, V, mean, None, None)
        level_mean = average @ V
        if self.uneven:
            self._balance(level_mean, batch.queries, self._untied(V, batch))
        return Piece(batch, V, mean, level, level_mean)

    def _untied(self, V: np.ndarray, batch: Batch) -> np.ndarray:
        """(g, n) the weighted sums of the rows of each query that tie with no other."""
        assert self.ties is not None and self.u is not None
        weight = np.where(batch.take(self.ties.level) < 0, batch.take(self.u), 0.0)
        return (weight[:, None] * V).reshape(len(batch.queries), -1, V.shape[1]).sum(axis=1)

    def _balance(self, level_mean: np.ndarray, queries: np.ndarray, untied: np.ndarray) -> None:
        """Recompute, in place, the mean of each level that outweighs the rest of its query, from the other levels.

        That mean is nearly the query's mean, and their difference would be rounding. `level_mean` is relative to the
        query's mean, so the weighted sum of all levels is zero.
        """
        assert self.ties is not None
        ties, n = self.ties.of_queries(queries), self.ties.start[queries + 1] - self.ties.start[queries]
        query, weight = np.repeat(np.arange(len(queries)), n), self.ties.weight[ties]
        heavy = weight > self.S[queries][query] / 2
        if heavy.any():
            np.add.at(untied, query[~heavy], weight[~heavy, None] * level_mean[~heavy])
            level_mean[heavy] = -untied[query[heavy]] / weight[heavy, None]

    def pieces(self, batch: Batch, read: Read) -> Iterator[Piece]:
        """The rows of a batch minus their query's mean; a query longer than a batch comes in several pieces."""
        if batch.length <= 2 * self.queries.batch_rows:
            V = read(batch.rows)
            yield self.piece(V, batch, self.centre(V, batch))
            return
        chunks = batch.chunks(self.queries.batch_rows)
        u = [np.ones(c.length) if self.u is None else c.take(self.u) for c in chunks]
        total = np.sum([w @ read(c.rows) for w, c in zip(u, chunks, strict=True)], axis=0)
        mean = (total / self.S[batch.queries[0]])[None]
        if self.uneven:
            rest = np.sum([w @ (read(c.rows) - mean) for w, c in zip(u, chunks, strict=True)], axis=0)
            mean = mean + rest / self.S[batch.queries[0]]
        averages = [(None, None) if self.ties is None else self.ties.average(c, self.u, np.float64) for c in chunks]
        level_mean: Any = None
        if averages[0][1] is not None and averages[0][1].shape[0]:
            level_mean = sum(a @ (read(c.rows) - mean) for (_, a), c in zip(averages, chunks, strict=True))
            if self.uneven:
                untied = np.sum([self._untied(read(c.rows) - mean, c) for c in chunks], axis=0)
                self._balance(level_mean, batch.queries, untied)
        for chunk, (level, _) in zip(chunks, averages, strict=True):
            V = read(chunk.rows)
            V -= mean
            yield Piece(chunk, V, mean, level, level_mean, last=chunk is chunks[-1])


def grades(y: np.ndarray) -> np.ndarray:
    """Labels as numbers 0, 1, ... that are equal where the labels are."""
    low = y.min()
    if y.max() < low + 1000 and np.all(y == np.rint(y)):
        return (y - low).astype(np.intp)
    return np.unique(y, return_inverse=True)[1]


@dataclass(frozen=True)
class Rounding:
    """Rounding under the weights `between` (q,) of queries and the share beta of regression."""

    means: GroupMeans
    between: np.ndarray
    beta: float

    @cached_property
    def of_rows(self) -> np.ndarray:
        """(m,) the weight of a row's rounding in the mean square of F V."""
        means = self.means
        u = np.ones(means.queries.n_rows) if means.u is None else means.u
        share = u / means.S.sum()
        found = share * self.between[means.queries.codes] ** 2
        found[means.heaviest] = share[means.heaviest] * self.beta
        if self.centre is not None:
            found[self.centre] = 0.0
        return found

    @cached_property
    def centre(self) -> int | None:
        """The row that sums are centred on: the heaviest, if it has a fair share of the weight; else None."""
        u = self.means.u
        if u is None or not self.means.uneven:
            return None
        row = int(np.argmax(u))
        return row if u[row] > FAIR * self.means.S.sum() else None

    @cached_property
    def of_queries(self) -> np.ndarray:
        """(q,) the sum of `of_rows` over each query."""
        means = self.means
        if not means.uneven:
            return means.S / means.S.sum() * self.between**2
        return means.queries.sum(self.of_rows)

    @cached_property
    def level(self) -> np.ndarray:
        """(q,) the rounding if every query were like this one."""
        return np.sqrt(len(self.between) * self.of_queries)

    @cached_property
    def roots(self) -> np.ndarray:
        """(m,) the weight of a row's rounding in F V; for the heaviest row of a query, that of all its rows."""
        found = self.of_rows * self.means.S.sum()
        found[self.means.heaviest] += self.means.queries.sum(found) if len(self.means.heaviest) else 0.0
        return np.sqrt(found)
