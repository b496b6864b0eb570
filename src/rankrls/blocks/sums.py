"""Sums over rows that arrive in blocks: parts of a file, partitions of a cluster, in any order.

Rows of queries that are complete in a block go straight into its `Statistics`; the others become `fragments`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from scipy import sparse

from ..bases import Draw, Sample
from ..checks import check_copies, check_query_mass
from ..core import fused
from ..core.features import Features, Nystroem
from ..core.queries import Queries
from ..core.statistics import SINGLE, Statistics
from ..problems.base import Model
from ..problems.primal import Primal, scores_of
from ..system.parallel import Recycled
from .block import Block, as_labels
from .fragments import PartialSums, RunningSums, joined, no_fragments, no_sums
from .totals import Loss, QueryTotals

T = TypeVar("T")
FRAGMENT_ROWS = 8192  # rows whose features are held at once


@runtime_checkable
class BlockedRows(Protocol):
    """Rows in blocks, wherever they are stored; the results of functions of a block can be added."""

    n_columns: int
    names: list[str] | None
    dtype: Any
    n_targets: int
    whole: bool  # True if no query lies in two blocks
    stable: bool  # True if blocks are the same in every pass
    once: bool  # True if there is only one pass

    def labels(self, function: Callable[[Block], T]) -> T:
        """The sum of a function over all blocks, which come without X."""

    def sum(self, function: Callable[[Block], T], label: str) -> T:
        """The sum of a function over all blocks."""

    def sum_by_query(self, function: Callable[[Block], T], totals: QueryTotals | None, label: str) -> T:
        """The sum of a function over blocks of complete queries."""

    def sample(self, draw: Draw) -> Sample:
        """Rows of X drawn by their content; all of them if there are fewer."""


class TreeSum(Generic[T]):
    """A sum of terms that grow as they are added: large terms are only added to other large ones."""

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
            raise ValueError("there are no rows to learn from: every block is empty, or its weights are zero")
        while len(self._stack) > 1:
            value = self._stack.pop()
            self._stack[-1] = self._stack[-1] + value
        return self._stack[0]


def growth(value: object) -> int:
    """The part of a term's size that grows with its rows."""
    return getattr(value, "growth", 0)


@dataclass(frozen=True)
class SumRows:
    """Maps a block to its partial sums, in the space of some features."""

    features: Features
    totals: QueryTotals | None  # None where every query is complete in its block
    loss: Loss
    dtype: Any
    model: Model | None = None  # if given, its residuals replace y
    merges: bool = True  # whether the rows of a group are merged here, rather than by the sum they are added to
    careful: bool = False  # never add in place, which is faster but rounds a little more
    memory: Recycled = field(default_factory=Recycled, compare=False)  # for the rows of fragments

    def in_turn(self) -> tuple[SumRows, TreeSum[PartialSums] | RunningSums]:
        """This function and the sum to use for blocks that are added one after the other."""
        if self.careful or self.totals is None:
            return self, TreeSum[PartialSums]()
        return replace(self, merges=not fused.ready()), RunningSums(len(self.totals.group_query))

    def __call__(self, block: Block) -> PartialSums:
        block = self.loss.recoded(block)
        queries = Queries.of(as_labels(block.qid))
        nothing = no_fragments(no_sums(self.features.n_columns, block.y.shape[1], self.loss.regression))
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
        step = FRAGMENT_ROWS if isinstance(self.features, Nystroem) else max(1, len(outside))
        for i in range(0, len(outside), step):
            rows = outside[i : i + step]
            found.append(self._fragments(block.take(rows), number[queries.codes[rows]]))
        part = joined(found) if len(found) > 1 else found[0]
        return part.merged() if self.merges else part

    def _closed(self, block: Block, queries: Queries) -> Statistics:
        if self.loss.tied:
            check_query_mass(queries, block.weights, self.loss.weighting)
        F = self.loss.preferences(queries, block.y, block.weights)
        return Primal(F, self.features, block.X, self._targets(block), self.dtype).sums

    def _fragments(self, block: Block, number: np.ndarray) -> PartialSums:
        """The fragments of rows whose queries continue in other blocks."""
        totals = self.totals
        assert totals is not None
        if self.loss.tied:
            here = np.unique(number)
            check_copies(totals.label[here], totals.size[here], totals.weight[here], self.loss.weighting)
        group = totals.groups(number, np.zeros(0) if self.loss.tied else block.y[:, 0])
        Phi: Any = self.features.reader(block.X)()(slice(0, len(block)))
        Phi, targets = Phi.toarray() if sparse.issparse(Phi) else Phi, self._targets(block)
        n, weights = Phi.shape[1], np.ones(len(block)) if block.weights is None else block.weights
        within2 = totals.group_within2[group]
        single = _weighs_little(weights * within2) and _fits(Phi) and _fits(targets)
        V = self.memory((len(block), n + targets.shape[1]), self.dtype if single else np.float64)
        V[:, :n], V[:, n:] = Phi, targets
        closed = no_sums(self.features.n_columns, block.y.shape[1], self.loss.regression)
        return PartialSums(closed, group, weights, within2, V)

    def _targets(self, block: Block) -> np.ndarray:
        if self.model is None:
            return block.y
        scores = scores_of([self.model], self.features, block.X, np.arange(len(block)), np.float64)
        return block.y - scores[:, 0]


@dataclass(frozen=True)
class PerFold:
    """A list of values that add up fold by fold."""

    folds: tuple[Any, ...]

    def __add__(self, other: PerFold) -> PerFold:
        return PerFold(tuple(a + b for a, b in zip(self.folds, other.folds, strict=True)))

    @property
    def growth(self) -> int:
        return sum(map(growth, self.folds))


@dataclass(frozen=True)
class SumRowsPerFold:
    """Maps a block to its partial sums for each fold of queries."""

    sum_rows: SumRows
    n_folds: int

    def __call__(self, block: Block) -> PerFold:
        fold = fold_of(block.qid, self.n_folds)
        return PerFold(tuple(self.sum_rows(block.take(np.flatnonzero(fold == f))) for f in range(self.n_folds)))


def fold_of(qid: np.ndarray, n_folds: int) -> np.ndarray:
    """(k,) the fold of each row, a hash of its query id: the same in every block and every pass."""
    queries = Queries.of(as_labels(qid))
    of_query = np.array([zlib.crc32(str(label).encode()) % n_folds for label in queries.labels.tolist()], dtype=int)
    return of_query[queries.codes]


def _weighs_little(weights: np.ndarray) -> bool:
    """True if squares times these weights fit in single precision, and none of them vanishes."""
    return bool(np.all((weights == 0) | ((weights > 1e-12) & (weights < 1e6))))


def _fits(V: np.ndarray) -> bool:
    """True if the squares of every column fit in single precision."""
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->j", V, V)
    if np.all((squares > 1e-18) & (squares < 1e28)):  # the usual case, in one pass
        return True
    tops = np.maximum(V.max(axis=0, initial=0.0), -V.min(axis=0, initial=0.0))
    return bool(np.all((tops == 0) | ((tops > SINGLE[0]) & (tops < SINGLE[1]))))
