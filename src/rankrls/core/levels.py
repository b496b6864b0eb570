"""Tie levels: items of one query with equal labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..system.types import DTypeLike
from .queries import Batch, Queries

SMALL = 1 << 12  # cells


@dataclass(frozen=True)
class Levels:
    """All levels, including those of a single item; some may be empty."""

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


def grades(y: np.ndarray) -> np.ndarray:
    """Labels as numbers 0, 1, ... that are equal where the labels are."""
    low = y.min()
    if y.max() < low + 1000 and np.all(y == np.rint(y)):
        return (y - low).astype(np.intp)
    return np.unique(y, return_inverse=True)[1]
