"""Conditional ranking problems: a relation to be solved for any alpha, and held out in any of the four settings.

`CompleteProblem` has every edge and is solved in closed form; `EdgeProblem` has some and iterates. Each has

    scores(alphas, metric, splitter)     (k,) the metric over held-out edges, averaged over folds
    held_out(alpha, splitter)            the scores of edges by models that never saw them, NaN where never held out
    spread                               the mean eigenvalue of the loss: the natural unit of alpha

`splitter=None` leaves out each conditioning object of a complete graph in turn, exactly and without refits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core.krylov import warn_if_stopped_early
from ..core.queries import Queries
from ..metrics import Metric
from ..system.progress import counted
from .complete import Kronecker, Mirrored, complete_graph
from .edges import Graph
from .folds import Part, RelationKFold
from .relation import Domain, Relation

SINGLE_PRECISION = 1_000_000  # edges from which on alphas are compared in single precision
BLOCK = 1 << 26  # held-out scores in memory at a time
FOLD_TOLERANCE = 1e-3  # of solutions that are only compared
REMEDY = "raise max_iter, tol or alpha"


@dataclass(frozen=True)
class CompleteProblem:
    """All edges of p conditioning and r ranked objects."""

    G: Domain
    K: Domain
    Y: np.ndarray
    ranking: bool
    parity: int = 0

    @cached_property
    def path(self) -> Kronecker | Mirrored:
        return complete_graph(self.G, self.K, self.Y, ranking=self.ranking, parity=self.parity)

    @property
    def spread(self) -> float:
        return self.path.spread

    def coef(self, alpha: float) -> np.ndarray:
        return self.path.coef(alpha)

    def by_edges(self, tol: float, max_iter: int) -> EdgeProblem:
        """The same as a list of edges, of which some can be left out."""
        edges = Relation(self.Y.shape, self.Y).edges()
        return EdgeProblem(Graph(self.G, self.K, *edges, self.ranking, self.parity, tol, max_iter))

    def scores(self, alphas: np.ndarray, metric: Metric, splitter: RelationKFold | None) -> np.ndarray:
        if splitter is not None:
            parts = counted(list(splitter.split(self.Y)), "folds")
            return mean_score(
                metric, ((test.of(self.Y), self._predictions(train, test, alphas)) for train, test in parts)
            )
        assert isinstance(self.path, Kronecker)
        p, r = self.Y.shape
        dtype = np.float32 if self.Y.size >= SINGLE_PRECISION else np.float64
        at_once = max(1, BLOCK // self.Y.size)
        values = []
        y, queries = np.ascontiguousarray(self.Y).ravel(), Queries(np.arange(p), np.repeat(np.arange(p), r))
        for i in counted(range(0, len(alphas), at_once), "alphas"):
            some = alphas[i : i + at_once]
            block = self.path.leave_rows_out(some, dtype)
            if at_once >= len(alphas):
                self._held.update(zip(some.tolist(), block, strict=True))
            values.append(metric(y, block.reshape(len(some), -1).T, queries))
        return np.concatenate(values)

    @cached_property
    def _held(self) -> dict[float, np.ndarray]:
        """Held-out scores by alpha, where all fit into memory at once."""
        return {}

    def held_out(self, alpha: float, splitter: RelationKFold | None) -> np.ndarray:
        if splitter is None:
            assert isinstance(self.path, Kronecker)
            if alpha in self._held:
                return self._held[alpha].astype(np.float64)
            return self.path.leave_rows_out(np.array([alpha]))[0]
        out = np.full(self.Y.shape, np.nan)
        for train, test in splitter.split(self.Y):
            out[np.ix_(test.rows, test.columns)] = next(self._predictions(train, test, np.array([alpha])))
        return out

    @cached_property
    def _paths(self) -> dict[tuple[int, ...], Kronecker | Mirrored]:
        """Of folds, by the rows and columns that stay, so that the alpha chosen needs no factorisation again."""
        return {}

    def _path_of(self, train: Part) -> Kronecker | Mirrored:
        key = (*train.rows, -1, *train.columns)
        if key not in self._paths:
            same = self.G is self.K and np.array_equal(train.rows, train.columns)
            G = self.G.restrict(train.rows)
            K = G if same else self.K.restrict(train.columns)
            self._paths[key] = complete_graph(G, K, train.of(self.Y), ranking=self.ranking, parity=self.parity)
        return self._paths[key]

    def _predictions(self, train: Part, test: Part, alphas: np.ndarray) -> Iterator[np.ndarray]:
        """For each alpha the scores of the test part by the model of the training part."""
        path = self._path_of(train)
        left, right = self.G.between(test.rows, train.rows), self.K.between(train.columns, test.columns)
        for alpha in alphas:
            yield left @ path.coef(alpha) @ right


@dataclass(frozen=True)
class EdgeProblem:
    """Some edges, perhaps several times."""

    graph: Graph

    @property
    def spread(self) -> float:
        return self.graph.spread

    def scores(self, alphas: np.ndarray, metric: Metric, splitter: RelationKFold) -> np.ndarray:
        return mean_score(
            metric,
            (
                (self.graph.y[test], self._predictions(train, test, alphas), self.graph.rows[test])
                for train, test in self._folds(splitter)
            ),
        )

    def held_out(self, alpha: float, splitter: RelationKFold) -> np.ndarray:
        out = np.full(len(self.graph.y), np.nan)
        for train, test in self._folds(splitter):
            out[test] = next(self._predictions(train, test, np.array([alpha]), warn=True))
        return out

    def _folds(self, splitter: RelationKFold) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        shape = (len(self.graph.G), len(self.graph.K))
        for train, test in counted(list(splitter.split_edges(self.graph.rows, self.graph.columns, shape)), "folds"):
            if train.any() and test.any():
                yield train, test

    def _predictions(
        self, train: np.ndarray, test: np.ndarray, alphas: np.ndarray, *, warn: bool = False
    ) -> Iterator[np.ndarray]:
        graph = replace(self.graph.restrict(train), tol=max(self.graph.tol, FOLD_TOLERANCE))
        solution = graph.solve(alphas)
        if warn:
            warn_if_stopped_early(solution, "conjugate gradients for a fold", REMEDY)
        for c in solution.value.T:
            yield graph.kernel.at(np.ascontiguousarray(c), self.graph.rows[test], self.graph.columns[test])


def mean_score(metric: Metric, folds: Iterator[Any]) -> np.ndarray:
    """(k,) the mean over folds of (true values, scores for each alpha, conditioning object if not by rows)."""
    values, error = [], None
    for y, predictions, *rows in folds:
        codes = rows[0] if rows else np.repeat(np.arange(y.shape[0]), y.shape[1])
        columns = np.column_stack([scores.ravel() for scores in predictions])
        try:
            values.append(metric(y.ravel(), columns, Queries.of(codes)))
        except ValueError as nothing_to_judge:
            error = nothing_to_judge
    if not values:
        raise ValueError(
            "alpha cannot be chosen: no fold leaves out two different edges of one conditioning object; set alpha, or "
            f"cv to a RelationKFold of another setting or with fewer folds ({error})"
        )
    return np.mean(values, axis=0)
