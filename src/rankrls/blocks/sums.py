"""Sums over rows that come in parts: blocks of a file, partitions of a cluster, in any order.

A query may lie in several parts. Rows of one that is whole in a part go straight into its `Statistics`. Of the rest,
rows with the same place in the preference graph (the level where they tie, else the query) are replaced by their mean:
with w their weight and v their mean, writing x^2 for x x',

    sum of u_i within^2 (v_i - rbar)^2  =  sum of u_i within^2 (v_i - v)^2  +  w within^2 (v - rbar)^2,

so that a part, which knows `within` from the census, has the first sum and keeps (w, v), a fragment. A fragment is a
weighted row: fragments of two parts merge by the same formula, and those of all parts are the items of an ordinary
problem. Nothing cancels, no row is moved, and a part sends n^2 numbers and n for each fragment.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from scipy import sparse

from ..checks import check_copies, check_query_mass
from ..core.features import Features
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..core.statistics import Statistics
from ..problems.primal import Primal
from .block import Block, as_labels
from .totals import Loss, QueryTotals

T = TypeVar("T")
PIECE_ROWS = 8192  # rows whose features are held at once


class Parts(Protocol):
    """Rows in parts, wherever they are. A function of a block gives something that adds."""

    n_columns: int
    names: list[str] | None
    dtype: Any
    n_targets: int
    whole: bool  # no query is in two blocks
    stable: bool  # blocks are the same in every pass
    once: bool  # there is only one pass

    def labels(self, function: Callable[[Block], T]) -> T:
        """The sum of a function over all blocks, which come without X."""

    def sum(self, function: Callable[[Block], T], label: str) -> T:
        """The sum of a function over all blocks."""

    def sum_by_query(self, function: Callable[[Block], T], census: QueryTotals | None, label: str) -> T:
        """The sum of a function over blocks of whole queries."""

    def sample(self, size: int, rng: np.random.Generator) -> Any:
        """Rows of X drawn at random, all of them if there are fewer."""


class TreeSum(Generic[T]):
    """The sum of things that may grow as they are added: like is added to like, the others at once."""

    def __init__(self) -> None:
        self._stack: list[Any] = []

    def __len__(self) -> int:
        return len(self._stack)

    def add(self, value: Any) -> None:
        while self._stack and growth(self._stack[-1]) <= growth(value):
            value = self._stack.pop() + value
        self._stack.append(value)

    def total(self) -> T:
        """The sum so far."""
        if not self._stack:
            raise ValueError("there are no rows to learn from: every part is empty")
        while len(self._stack) > 1:
            value = self._stack.pop()
            self._stack[-1] = self._stack[-1] + value
        return self._stack[0]


def growth(value: Any) -> int:
    """How much of a sum grows with the rows in it."""
    return getattr(value, "growth", 0)


@dataclass(frozen=True)
class Gathered:
    """Sums over rows, and fragments of the queries that are not whole."""

    closed: Statistics
    group: np.ndarray  # (k,) sorted
    weight: np.ndarray  # (k,)
    within2: np.ndarray  # (k,)
    mean: np.ndarray  # (k, n + t) of [Phi, y]

    def __add__(self, other: Gathered) -> Gathered:
        return _join([self, other])

    @property
    def growth(self) -> int:
        return len(self.group)

    def finished(self, census: QueryTotals | None, loss: Loss) -> Statistics:
        """The sums over all rows, once every part is in."""
        if census is None or not len(self.group):
            return self.closed
        n = self.closed.gram.shape[0]
        queries = Queries.of(census.group_query[self.group])
        between2 = census.between2[queries.labels]
        F = QueryPreferences(queries, regression=loss.regression, weights=self.weight, between2=between2)
        Phi, y = np.ascontiguousarray(self.mean[:, :n]), self.mean[:, n:]
        sums = Primal(F, _Given(n), Phi, y, np.float64).sums
        met = queries.labels
        rows, pairs = int(census.size[met].sum()), int(census.pairs[met].sum())
        return self.closed + replace(sums, n_rows=rows, n_queries=len(met), n_pairs=pairs)


@dataclass(frozen=True)
class Gather:
    """A block -> its sums and fragments, in the space of some features."""

    features: Features
    census: QueryTotals | None  # None where every query is whole in its block
    loss: Loss
    dtype: Any

    def __call__(self, block: Block) -> Gathered:
        queries = Queries.of(as_labels(block.qid))
        n, t = self.features.n_columns, block.y.shape[1]
        nothing = _fragmentless(_no_sums(n, t, self.loss.regression))
        if not len(block):
            return nothing
        if self.census is None:
            return replace(nothing, closed=self._closed(block, queries))
        code = self.census.find(queries.labels)
        inside = self.census.complete(code, queries.sizes)[queries.codes]
        found = []
        if inside.any():
            rows = np.flatnonzero(inside)
            part = block.take(rows)
            found.append(replace(nothing, closed=self._closed(part, Queries.of(queries.codes[rows]))))
        outside = np.flatnonzero(~inside)
        for i in range(0, len(outside), PIECE_ROWS):
            rows = outside[i : i + PIECE_ROWS]
            found.append(self._fragments(block.take(rows), code[queries.codes[rows]]))
        return _join(found) if found else nothing

    def _closed(self, block: Block, queries: Queries) -> Statistics:
        if self.loss.tied:
            check_query_mass(queries, block.weights, self.loss.weighting)
        F = self.loss.preferences(queries, block.y, block.weights)
        return Primal(F, self.features, block.X, block.y, self.dtype).sums

    def _fragments(self, block: Block, code: np.ndarray) -> Gathered:
        assert self.census is not None
        if self.loss.tied:
            here, of = np.unique(code), self.census
            check_copies(of.label[here], of.size[here], of.weight[here], self.loss.weighting)
        group = self.census.groups(code, np.zeros(0) if self.loss.tied else block.y[:, 0])
        Phi: Any = self.features.reader(block.X)()(slice(0, len(block)))
        V = np.hstack([Phi.toarray() if sparse.issparse(Phi) else Phi, block.y.astype(self.dtype)])
        weights = np.ones(len(block)) if block.weights is None else block.weights
        closed = _no_sums(self.features.n_columns, block.y.shape[1], self.loss.regression)
        return _collapsed(closed, group, weights, self.census.group_within2[group], V)


def _join(parts: Sequence[Gathered]) -> Gathered:
    closed = parts[0].closed
    for part in parts[1:]:
        closed = closed + part.closed
    arrays = ([getattr(part, name) for part in parts] for name in ("group", "weight", "within2", "mean"))
    return _collapsed(closed, *(np.concatenate(array) for array in arrays))


def _collapsed(
    closed: Statistics, group: np.ndarray, weight: np.ndarray, within2: np.ndarray, V: np.ndarray
) -> Gathered:
    """Rows or fragments of one group become one fragment; what they have about its mean goes into the sums."""
    label, first, place = np.unique(group, return_index=True, return_inverse=True)
    if len(label) == len(group):
        return Gathered(closed, label, weight[first], within2[first], V[first].astype(np.float64))
    k = len(group)
    sums = np.bincount(place, weights=weight)
    pick = sparse.csr_array((weight / sums[place], (place, np.arange(k))), shape=(len(label), k))
    mean = pick @ V.astype(np.float64, copy=False)
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
    return Gathered(closed + inside, label, sums, within2[first], mean)


def _fragmentless(closed: Statistics) -> Gathered:
    none = np.empty(0)
    width = closed.gram.shape[0] + closed.cross.shape[1]
    return Gathered(closed, np.empty(0, dtype=np.intp), none, none, np.empty((0, width)))


def _no_sums(n: int, t: int, beta: float) -> Statistics:
    zero, none = np.zeros((n, n)), np.zeros(n)
    return Statistics(zero, np.zeros((n, t)), np.zeros(t), none, np.zeros(t), 0.0, beta, 0, 0, 0)


@dataclass(frozen=True)
class _Given:
    """Features that are the columns given, in double precision."""

    n_columns: int
    W = None

    def reader(self, X: np.ndarray) -> Callable[[], Any]:
        return lambda: lambda rows: X[rows].copy()


@dataclass(frozen=True)
class Folded:
    """Something that adds, for each fold of queries by itself."""

    folds: tuple[Any, ...]

    def __add__(self, other: Folded) -> Folded:
        return Folded(tuple(a + b for a, b in zip(self.folds, other.folds, strict=True)))

    @property
    def growth(self) -> int:
        return sum(map(growth, self.folds))


@dataclass(frozen=True)
class FoldedGather:
    """A block -> its sums and fragments, for each fold of queries by itself."""

    gather: Gather
    n_folds: int

    def __call__(self, block: Block) -> Folded:
        fold = fold_of(block.qid, self.n_folds)
        return Folded(tuple(self.gather(block.take(np.flatnonzero(fold == f))) for f in range(self.n_folds)))


def fold_of(qid: np.ndarray, n_folds: int) -> np.ndarray:
    """(k,) the fold of each row: a hash of its query's id, the same wherever and whenever it is met."""
    queries = Queries.of(as_labels(qid))
    of_query = np.array([zlib.crc32(str(label).encode()) % n_folds for label in queries.labels.tolist()], dtype=int)
    return of_query[queries.codes]
