"""Rows of queries that lie in several blocks, as fragments that add up to the sums of the whole queries.

Rows with the same role in the preference graph (a group: rows that tie, or else all rows of a query) are replaced by
their mean. With w the weight of a group in a block, v its mean, and x^2 for x x',

    sum of u_i within^2 (v_i - rbar)^2  =  sum of u_i within^2 (v_i - v)^2  +  w within^2 (v - rbar)^2.

A block knows `within` from the `QueryTotals`, so it can add up the first sum, and keeps (w, v) as a fragment. A
fragment is a weighted row: fragments of two blocks merge by the same formula, and those of all blocks are the items
of an ordinary problem. Nothing cancels, no row is moved, and a block returns n^2 numbers and n for each fragment.

Adding in pairs would copy the fragments of all groups again and again. If blocks come one after the other,
`RunningSums` stores the mean of each group so far; a fragment (w, v) that joins a mean m of weight W adds

    w W / (w + W) within^2 (v - m)^2        and moves m by w / (w + W) (v - m).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ..core import fused
from ..core.features import Identity
from ..core.means import UNEVEN
from ..core.preferences import QueryPreferences
from ..core.queries import BATCH_ROWS, Queries
from ..core.statistics import Statistics
from ..problems.primal import Primal
from .totals import Loss, QueryTotals


@dataclass(frozen=True)
class PartialSums:
    """Sums over the rows of some blocks, and fragments of the queries that continue in others."""

    closed: Statistics
    group: np.ndarray  # (k,) ascending once rows are merged
    weight: np.ndarray  # (k,)
    within2: np.ndarray  # (k,)
    mean: np.ndarray  # (k, n + t) of [Phi, y]

    def __add__(self, other: PartialSums) -> PartialSums:
        return joined([self, other]).merged()

    @property
    def growth(self) -> int:
        return len(self.group)

    @np.errstate(over="ignore", invalid="ignore")  # callers check that the sums are finite
    def merged(self) -> PartialSums:
        """One fragment for each group; deviations from its mean go into the sums."""
        group, weight, V = self.group, self.weight, self.mean
        label, first, place = np.unique(group, return_index=True, return_inverse=True)
        if len(label) == len(group):
            return PartialSums(self.closed, label, weight[first], self.within2[first], V[first].astype(np.float64))
        k = len(group)
        sums = np.bincount(place, weights=weight)
        average = sparse.csr_array((weight / sums[place], (place, np.arange(k))), shape=(len(label), k))
        mean = average @ V.astype(np.float64, copy=False)
        R = V - mean[place].astype(V.dtype)
        if weight.max() > UNEVEN * weight.min():  # a row that outweighs the rest is nearly the mean
            rest = average @ R
            R -= rest[place].astype(V.dtype)
            mean += rest
        R *= np.sqrt(weight * self.within2)[:, None].astype(V.dtype)
        closed = self.closed + _of_product(self.closed, _products(R))
        return PartialSums(closed, label, sums, self.within2[first], mean)

    def finished(self, totals: QueryTotals | None, loss: Loss) -> Statistics:
        """The sums over all rows, once every block is in."""
        if totals is None or not len(self.group):
            return self.closed
        n = self.closed.gram.shape[0]
        queries = Queries.of(totals.group_query[self.group])
        numbers = queries.labels
        F = QueryPreferences(
            queries, regression=loss.regression, weights=self.weight, between2=totals.between2[numbers]
        )
        Phi, y = np.ascontiguousarray(self.mean[:, :n]), self.mean[:, n:]
        sums = Primal(F, Identity(n), Phi, y, np.float64).sums
        rows, pairs = int(totals.size[numbers].sum()), int(totals.pairs[numbers].sum())
        return self.closed + replace(sums, n_rows=rows, n_queries=len(numbers), n_pairs=pairs)


class RunningSums:
    """A sum of `PartialSums` that is updated in place."""

    def __init__(self, n_groups: int):
        self._slot = np.full(n_groups, -1)  # (groups,) the row of each group in the table, -1 if it has none
        self._group = np.empty(0, dtype=np.intp)  # (k,) the group of each row of the table
        self._weight, self._within2, self._mean = np.empty(0), np.empty(0), np.empty((0, 0))
        self._closed: Statistics | None = None

    def __len__(self) -> int:
        return 0 if self._closed is None else 1

    @np.errstate(over="ignore", invalid="ignore")
    def add(self, part: PartialSums) -> None:
        """Add the sums of a block. A group may have several fragments if compiled code is available."""
        if self._closed is not None:
            part = replace(part, closed=self._closed + part.closed)
        self._closed = part.closed
        if not len(part.group):
            return
        slot, V = self._slots(part), part.mean
        root = np.sqrt(part.within2)
        if fused.ready():
            product = self._merge(V, slot, part.weight, root)
        else:
            w, W = part.weight, self._weight[slot]
            share = w / (w + W)
            change = V - self._mean[slot]
            product = _products(((root * np.sqrt(share * W))[:, None] * change).astype(V.dtype, copy=False))
            self._mean[slot] += share[:, None] * change
            self._weight[slot] = w + W
        self._closed += _of_product(self._closed, product)

    def _merge(self, V: np.ndarray, slot: np.ndarray, weight: np.ndarray, root: np.ndarray) -> np.ndarray:
        """Merge rows into the means of their slots in compiled code; returns the products that this adds."""
        from ..core.compiled import merged_rows

        products = fused.Products(V.shape[1], V.dtype)
        rows = products.room(fused.BLOCK_ROWS)
        for i in range(0, len(V), fused.BLOCK_ROWS):  # which stay in the cache
            some = slice(i, i + fused.BLOCK_ROWS)
            n = merged_rows(V[some], slot[some], weight[some], root[some], self._mean, self._weight, rows)
            products.add(rows[:n])
        return products.total()

    def _slots(self, part: PartialSums) -> np.ndarray:
        """(k,) the table row of each fragment; new groups get one."""
        new = np.unique(part.group[self._slot[part.group] < 0])
        used, more = len(self._group), len(new)
        if more:
            self._slot[new] = np.arange(used, used + more)
            self._group = np.concatenate([self._group, new])
            if used + more > len(self._mean):
                size = max(used + more, 2 * len(self._mean))
                grown = np.zeros((size, part.mean.shape[1]))
                if used:
                    grown[:used] = self._mean[:used]
                self._mean, self._weight = grown, np.concatenate([self._weight[:used], np.zeros(size - used)])
                self._within2 = np.concatenate([self._within2[:used], np.zeros(size - used)])
        slot = self._slot[part.group]
        self._within2[slot] = part.within2
        return slot

    def total(self) -> PartialSums:
        """The sum so far."""
        if self._closed is None:
            raise ValueError("there are no rows to learn from: every block is empty, or its weights are zero")
        order = np.argsort(self._group)
        table = (array[order] for array in (self._group, self._weight, self._within2, self._mean))
        return PartialSums(self._closed, *table)


def joined(parts: Sequence[PartialSums]) -> PartialSums:
    """The parts as one: sums added, fragments side by side."""
    closed = parts[0].closed
    for part in parts[1:]:
        closed = closed + part.closed
    arrays = ([getattr(part, name) for part in parts] for name in ("group", "weight", "within2", "mean"))
    return PartialSums(closed, *(np.concatenate(array) for array in arrays))


def _products(rows: np.ndarray) -> np.ndarray:
    """R'R in double precision for blocks that may be in single precision."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for i in range(0, len(rows), BATCH_ROWS):
        block = rows[i : i + BATCH_ROWS]
        total += block.T @ block
    return total


def _of_product(like: Statistics, product: np.ndarray) -> Statistics:
    """The sums with these products of the columns [Phi, y]."""
    n = like.gram.shape[0]
    sums = no_sums(n, len(product) - n, like.beta)
    return replace(sums, gram=product[:n, :n], cross=product[:n, n:], square=np.diag(product)[n:])


def no_fragments(closed: Statistics) -> PartialSums:
    none = np.empty(0)
    width = closed.gram.shape[0] + closed.cross.shape[1]
    return PartialSums(closed, np.empty(0, dtype=np.intp), none, none, np.empty((0, width)))


def no_sums(n: int, t: int, beta: float) -> Statistics:
    return Statistics(np.zeros((n, n)), np.zeros((n, t)), np.zeros(t), np.zeros(n), np.zeros(t), 0.0, beta, 0, 0, 0)
