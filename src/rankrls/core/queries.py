"""Rows grouped by query, in batches of equally long queries.

Everything in the library that loops over queries loops over these batches: a batch of g queries with l rows
each is a dense (g, l, ...) array, so a group mean is a mean over an axis and a per-query product is a batched
matrix product. There are at most sqrt(2 m) distinct query lengths among m rows, so there are never many batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system.lazy import cached_property
from ..system.limits import limits
from ..system.types import Matrix

BATCH_ROWS = 2048  # large enough to hide the interpreter, small enough for the cache
FEWEST_ROWS = 64
RARE = 3  # lengths are rare if there are more than this many times as many batches as full ones would need
BATCH_CELLS = 1 << 20  # cells that fit in the cache with two threads
DENSE = 4  # integers are dense if the range of their values is at most this many times their number


@dataclass(frozen=True)
class Batch:
    """g queries of l rows each; `rows` selects their g * l rows of the data, query after query."""

    queries: np.ndarray  # (g,)
    rows: slice | np.ndarray  # (g * l,)
    length: int

    def take(self, V: Matrix) -> Any:
        """The rows of V that belong to the batch (a view where they are adjacent)."""
        return V[self.rows]

    def stack(self, V: np.ndarray) -> np.ndarray:
        """The rows of V as a (g, l, ...) array."""
        return self.take(V).reshape(len(self.queries), self.length, *V.shape[1:])

    def chunks(self, max_rows: int) -> list[Batch]:
        """One long query cut into pieces of at most `max_rows` rows."""
        cuts = [slice(i, min(i + max_rows, self.length)) for i in range(0, self.length, max_rows)]
        if isinstance(self.rows, slice):
            first = self.rows.start
            return [Batch(self.queries, slice(first + c.start, first + c.stop), c.stop - c.start) for c in cuts]
        return [Batch(self.queries, self.rows[cut], cut.stop - cut.start) for cut in cuts]


@dataclass(frozen=True)
class Queries:
    """A partition of m rows: row i belongs to query `labels[codes[i]]`."""

    labels: np.ndarray  # (q,) distinct query ids
    codes: np.ndarray  # (m,) index into labels
    batch_rows: int = BATCH_ROWS

    @classmethod
    def of(cls, qid: np.ndarray, batch_rows: int = BATCH_ROWS) -> Queries:
        """Group rows by id; ids of any sortable type, in any order."""
        if not len(qid):
            return cls(qid, np.empty(0, dtype=np.intp), batch_rows)
        change = np.flatnonzero(qid[1:] != qid[:-1]) + 1
        starts = np.concatenate([[0], change])
        labels, first, run = _distinct(qid[starts])
        if len(labels) < len(starts):  # some query is scattered over several runs
            by_appearance = np.argsort(first, kind="stable")
            rank = np.empty(len(labels), dtype=np.intp)
            rank[by_appearance] = np.arange(len(labels))
            labels, run = labels[by_appearance], rank[run]
        else:  # each run is a query: number them as they come, so the rows stay in place
            labels, run = qid[starts], np.arange(len(starts))
        return cls(labels, np.repeat(run, np.diff(starts, append=len(qid))), batch_rows)

    @classmethod
    def single(cls, m: int) -> Queries:
        """All m rows in one query."""
        return cls(np.zeros(1, dtype=np.intp), np.zeros(m, dtype=np.intp))

    @classmethod
    def singletons(cls, m: int) -> Queries:
        """Each row a query of its own."""
        return cls(np.arange(m), np.arange(m))

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def n_rows(self) -> int:
        return len(self.codes)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(q,) rows of each query."""
        return np.bincount(self.codes, minlength=len(self.labels))

    @cached_property
    def starts(self) -> np.ndarray:
        """(q,) where each query starts in `order`."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def order(self) -> np.ndarray | None:
        """(m,) the rows sorted by query; None if they already are."""
        if np.all(self.codes[1:] >= self.codes[:-1]):
            return None
        return np.argsort(self.codes, kind="stable")

    def rows(self, query: int) -> np.ndarray:
        """The rows of one query, in the order given."""
        positions = np.arange(self.starts[query], self.starts[query] + self.sizes[query])
        return positions if self.order is None else self.order[positions]

    def batches(self, max_rows: int | None = None, only: np.ndarray | None = None) -> Iterator[Batch]:
        """Batches of equally long queries: one query, or at most `max_rows` rows (`batch_rows` if not given).

        `only` (k,), in ascending order and not empty, restricts them to the queries of these numbers.
        """
        max_rows = self.batch_rows if max_rows is None else max_rows
        by_size = np.argsort(self.sizes if only is None else self.sizes[only], kind="stable")
        by_size = by_size if only is None else only[by_size]
        cuts = np.flatnonzero(np.diff(self.sizes[by_size])) + 1
        for same in np.split(by_size, cuts):
            length = int(self.sizes[same[0]])
            step = max(1, max_rows // length)
            for i in range(0, len(same), step):
                yield self._batch(same[i : i + step], length)

    def sized_batches(self, width: int) -> list[Batch]:
        """All batches for rows of `width` columns: up to twice `batch_rows` rows, fewer if the rows are long."""
        rows = 2 * self.batch_rows
        while rows > FEWEST_ROWS and rows * width > (BATCH_CELLS if rows > self.batch_rows else 4 * BATCH_CELLS):
            rows //= 2
        rows = min(rows, self.n_rows)
        if rows not in self._batches:
            self._batches[rows] = list(self.batches(rows))
        return self._batches[rows]

    def are_ragged(self, width: int) -> bool:
        """True if batches for rows of `width` columns would be small because every length is rare (see `ragged`)."""
        if self.n_rows * width < limits.worth_runs or self.sizes.max() > self.batch_rows:
            return False
        return len(self.sized_batches(width)) > RARE * (1 + self.n_rows // self.batch_rows)

    @cached_property
    def _batches(self) -> dict[int, list[Batch]]:
        return {}

    def _batch(self, queries: np.ndarray, length: int) -> Batch:
        first, last = self.starts[queries[0]], self.starts[queries[-1]] + length
        if self.order is None and last - first == len(queries) * length:
            return Batch(queries, slice(int(first), int(last)), length)
        positions = (self.starts[queries][:, None] + np.arange(length)).ravel()
        return Batch(queries, positions if self.order is None else self.order[positions], length)

    def sum(self, V: np.ndarray) -> np.ndarray:
        """(q,) the sum of a vector over each query."""
        return np.bincount(self.codes, weights=V, minlength=len(self))

    def pairs(self) -> np.ndarray:
        """(q,) the number of pairs in each query."""
        return self.sizes * (self.sizes - 1) // 2

    def ranks(self, scores: np.ndarray) -> np.ndarray:
        """(m,) position of each row in its query by descending score, 1 for the best; ties keep their order."""
        ranks = np.empty(self.n_rows, dtype=np.intp)
        for batch in self.batches():
            order = np.argsort(-batch.stack(scores), axis=1, kind="stable")
            position = np.empty_like(order)
            np.put_along_axis(position, order, np.arange(1, batch.length + 1)[None], axis=1)
            ranks[batch.rows] = position.ravel()
        return ranks


def _distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct values in ascending order, where each appears first, and which of them each value is.

    Integers that are not far apart are looked up in a table instead of being sorted.
    """
    if values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if high - low < DENSE * len(values) and high <= np.iinfo(np.intp).max:
            place = values.astype(np.intp) - low
            first = np.full(high - low + 1, -1)
            first[place[::-1]] = np.arange(len(values))[::-1]  # the last one written is the first that appears
            found = np.flatnonzero(first >= 0)
            number = np.empty(len(first), dtype=np.intp)
            number[found] = np.arange(len(found))
            return (found + low).astype(values.dtype), first[found], number[place]
    return np.unique(values, return_index=True, return_inverse=True)
