"""Sums over rows that arrive in blocks: parts of a file, partitions of a cluster, in any order.

The rows of a query may lie in several blocks. Rows of queries that are complete in a block go straight into its
`Statistics`. Of the others, rows with the same place in the preference graph (a group: the level on which they tie,
else the query) are replaced by their mean. With w the weight of a group in a block, v its mean, and x^2 for x x',

    sum of u_i within^2 (v_i - rbar)^2  =  sum of u_i within^2 (v_i - v)^2  +  w within^2 (v - rbar)^2.

A block knows `within` from the `QueryTotals`, so it can add up the first sum, and keeps (w, v) as a fragment. A
fragment is a weighted row: fragments of two blocks merge by the same formula, and those of all blocks are the items
of an ordinary problem. Nothing cancels, no row is moved, and a block returns n^2 numbers and n for each fragment.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from scipy import sparse

from ..bases import Draw, Sample
from ..checks import check_copies, check_query_mass
from ..core.features import Features, Identity
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..core.statistics import SINGLE, Statistics
from ..problems.base import Model
from ..problems.primal import Primal, scores_of
from .block import Block, as_labels
from .totals import Loss, QueryTotals

T = TypeVar("T")
FRAGMENT_ROWS = 8192  # rows whose features are held at once


@runtime_checkable
class BlockedRows(Protocol):
    """Rows in blocks, wherever they are stored; functions of a block return something that can be added."""

    n_columns: int
    names: list[str] | None
    dtype: Any
    n_targets: int
    whole: bool  # no query lies in two blocks
    stable: bool  # blocks are the same in every pass
    once: bool  # there is only one pass

    def labels(self, function: Callable[[Block], T]) -> T:
        """The sum of a function over all blocks, which come without X."""

    def sum(self, function: Callable[[Block], T], label: str) -> T:
        """The sum of a function over all blocks."""

    def sum_by_query(self, function: Callable[[Block], T], totals: QueryTotals | None, label: str) -> T:
        """The sum of a function over blocks of complete queries."""

    def sample(self, draw: Draw) -> Sample:
        """Rows of X drawn by their content, all of them if there are fewer."""


class TreeSum(Generic[T]):
    """A sum of terms that grow as they are added: large terms are only added to large ones."""

    def __init__(self) -> None:
        self._stack: list[Any] = []

    def __len__(self) -> int:
        return len(self._stack)

    def add(self, value: object) -> None:
        while self._stack and growth(self._stack[-1]) <= growth(value):
            value = self._stack.pop() + value
        self._stack.append(value)

    def total(self) -> T:
        """The sum so far."""
        if not self._stack:
            raise ValueError("there are no rows to learn from: every block is empty")
        while len(self._stack) > 1:
            value = self._stack.pop()
            self._stack[-1] = self._stack[-1] + value
        return self._stack[0]


def growth(value: object) -> int:
    """The part of a term's size that grows with its rows."""
    return getattr(value, "growth", 0)


@dataclass(frozen=True)
class PartialSums:
    """Sums over the rows of some blocks, and fragments of the queries that continue in others."""

    closed: Statistics
    group: np.ndarray  # (k,) ascending
    weight: np.ndarray  # (k,)
    within2: np.ndarray  # (k,)
    mean: np.ndarray  # (k, n + t) of [Phi, y]

    def __add__(self, other: PartialSums) -> PartialSums:
        return _join([self, other])

    @property
    def growth(self) -> int:
        return len(self.group)

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


@dataclass(frozen=True)
class SumRows:
    """A block -> its partial sums, in the space of some features."""

    features: Features
    totals: QueryTotals | None  # None where every query is complete in its block
    loss: Loss
    dtype: Any
    model: Model | None = None  # if given, its residuals replace y

    def __call__(self, block: Block) -> PartialSums:
        block = self.loss.recoded(block)
        queries = Queries.of(as_labels(block.qid))
        nothing = _no_fragments(_no_sums(self.features.n_columns, block.y.shape[1], self.loss.regression))
        if not len(block):
            return nothing
        if self.totals is None:
            return replace(nothing, closed=self._closed(block, queries))
        number = self.totals.find(queries.labels)
        inside = self.totals.complete(number, queries.sizes)[queries.codes]
        found = []
        if inside.any():
            rows = np.flatnonzero(inside)
            found.append(replace(nothing, closed=self._closed(block.take(rows), Queries.of(queries.codes[rows]))))
        outside = np.flatnonzero(~inside)
        for i in range(0, len(outside), FRAGMENT_ROWS):
            rows = outside[i : i + FRAGMENT_ROWS]
            found.append(self._fragments(block.take(rows), number[queries.codes[rows]]))
        return _join(found) if found else nothing

    def _closed(self, block: Block, queries: Queries) -> Statistics:
        if self.loss.tied:
            check_query_mass(queries, block.weights, self.loss.weighting)
        F = self.loss.preferences(queries, block.y, block.weights)
        return Primal(F, self.features, block.X, self._targets(block), self.dtype).sums

    def _fragments(self, block: Block, number: np.ndarray) -> PartialSums:
        totals = self.totals
        assert totals is not None
        if self.loss.tied:
            here = np.unique(number)
            check_copies(totals.label[here], totals.size[here], totals.weight[here], self.loss.weighting)
        group = totals.groups(number, np.zeros(0) if self.loss.tied else block.y[:, 0])
        Phi: Any = self.features.reader(block.X)()(slice(0, len(block)))
        V = np.hstack([Phi.toarray() if sparse.issparse(Phi) else Phi, self._targets(block)])
        tops = np.abs(V).max(axis=0, initial=0.0)
        if np.all((tops == 0) | ((tops > SINGLE[0]) & (tops < SINGLE[1]))):
            V = V.astype(self.dtype, copy=False)
        weights = np.ones(len(block)) if block.weights is None else block.weights
        closed = _no_sums(self.features.n_columns, block.y.shape[1], self.loss.regression)
        return _merged(closed, group, weights, totals.group_within2[group], V)

    def _targets(self, block: Block) -> np.ndarray:
        if self.model is None:
            return block.y
        scores = scores_of([self.model], self.features, block.X, np.arange(len(block)), np.float64)
        return block.y - scores[:, 0]


def _join(parts: Sequence[PartialSums]) -> PartialSums:
    closed = parts[0].closed
    for part in parts[1:]:
        closed = closed + part.closed
    arrays = ([getattr(part, name) for part in parts] for name in ("group", "weight", "within2", "mean"))
    return _merged(closed, *(np.concatenate(array) for array in arrays))


def _merged(
    closed: Statistics, group: np.ndarray, weight: np.ndarray, within2: np.ndarray, V: np.ndarray
) -> PartialSums:
    """One fragment for each group of rows or fragments; deviations from its mean go into the sums."""
    label, first, place = np.unique(group, return_index=True, return_inverse=True)
    if len(label) == len(group):
        return PartialSums(closed, label, weight[first], within2[first], V[first].astype(np.float64))
    k = len(group)
    sums = np.bincount(place, weights=weight)
    average = sparse.csr_array((weight / sums[place], (place, np.arange(k))), shape=(len(label), k))
    mean = average @ V.astype(np.float64, copy=False)
    R = V - mean[place].astype(V.dtype)
    R *= np.sqrt(weight * within2)[:, None].astype(V.dtype)
    product = (R.T @ R).astype(np.float64)
    n = closed.gram.shape[0]
    inside = replace(
        _no_sums(n, V.shape[1] - n, closed.beta),
        gram=product[:n, :n],
        cross=product[:n, n:],
        square=np.diag(product)[n:],
    )
    return PartialSums(closed + inside, label, sums, within2[first], mean)


def _no_fragments(closed: Statistics) -> PartialSums:
    none = np.empty(0)
    width = closed.gram.shape[0] + closed.cross.shape[1]
    return PartialSums(closed, np.empty(0, dtype=np.intp), none, none, np.empty((0, width)))


def _no_sums(n: int, t: int, beta: float) -> Statistics:
    return Statistics(np.zeros((n, n)), np.zeros((n, t)), np.zeros(t), np.zeros(n), np.zeros(t), 0.0, beta, 0, 0, 0)


@dataclass(frozen=True)
class PerFold:
    """Something that adds, for each fold of queries separately."""

    folds: tuple[Any, ...]

    def __add__(self, other: PerFold) -> PerFold:
        return PerFold(tuple(a + b for a, b in zip(self.folds, other.folds, strict=True)))

    @property
    def growth(self) -> int:
        return sum(map(growth, self.folds))


@dataclass(frozen=True)
class SumRowsPerFold:
    """A block -> its partial sums for each fold of queries separately."""

    sum_rows: SumRows
    n_folds: int

    def __call__(self, block: Block) -> PerFold:
        fold = fold_of(block.qid, self.n_folds)
        return PerFold(tuple(self.sum_rows(block.take(np.flatnonzero(fold == f))) for f in range(self.n_folds)))


def fold_of(qid: np.ndarray, n_folds: int) -> np.ndarray:
    """(k,) the fold of each row: a hash of its query id, the same in every block and every pass."""
    queries = Queries.of(as_labels(qid))
    of_query = np.array([zlib.crc32(str(label).encode()) % n_folds for label in queries.labels.tolist()], dtype=int)
    return of_query[queries.codes]
