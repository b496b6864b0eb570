"""Conditional ranking problems: a relation that can be solved for any alpha and held out in any of the four settings.

`CompleteProblem` has every edge and is solved in closed form; `EdgeProblem` has some edges and iterates. Each has

    scores(alphas, metric, held)     (k,) the metric over held-out edges, averaged over folds
    held_out(alpha, held)            scores of edges by models that never saw them, NaN for edges never held out
    mean_eigenvalue                  of the loss, the natural unit of alpha

`held` is a `RelationKFold`, or the name of an exact hold-out without refits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..core.fused import prepare
from ..core.krylov import Solution, warn_if_stopped_early
from ..core.queries import Queries
from ..metrics import Metric
from ..problems.base import HEAVY, in_steps, tied_where_equal
from ..system.lazy import cached_property
from ..system.progress import counted, numbered
from .complete import Kronecker, Mirrored
from .edges import Graph
from .folds import Part, RelationKFold
from .loss import row_factor
from .relation import Domain, EdgeSet, Pairwise, dense, one_way, part

SINGLE_PRECISION = 1_000_000  # with more edges, alphas are compared in single precision
COUNTS_TIES = ("kendall_tau_b",)  # whose value changes where scores of equal labels tie
BLOCK = 1 << 26  # held-out scores in memory at a time
WORTH_SORTING = 3.0  # compiled code saves as much per score as per so many cells of a sum over rows
JUDGED = 5_000_000  # most edges of a sparse relation used to judge an alpha
FEW = 8  # most conditioning objects refitted as they outweigh the rest together
APART = 0.999  # the share of the weight, of their own and all smaller ones, that each of several must have
REMEDY = "raise max_iter, tol or alpha"

ROWS, EDGES, COLUMNS = "leave-row-out", "leave-edge-out", "leave-column-out"
HoldOut = RelationKFold | str
NOTHING_HELD_OUT = (
    "{} cannot be chosen, because no fold holds out two different edges of one conditioning object: set {}, or set "
    "cv to a RelationKFold of another setting or with fewer folds"
)


@dataclass(frozen=True)
class RelationLoss:
    """The objective: the loss, the symmetry of the model, and the kernel of pairs."""

    ranking: bool = True
    parity: int = 0
    pairwise: Pairwise = field(default_factory=Pairwise)
    weighting: str = "items"
    intercept: bool = False


@dataclass(frozen=True)
class CompleteProblem:
    """All edges of p conditioning and r ranked objects."""

    G: Domain
    K: Domain
    edges: EdgeSet
    loss: RelationLoss
    single_precision: int = SINGLE_PRECISION

    @staticmethod
    def solves(edges: EdgeSet, loss: RelationLoss) -> bool:
        """True if there is a closed form."""
        pairwise = loss.pairwise
        if not edges.complete or (loss.parity and edges.weights is not None):
            return False
        if pairwise.source == pairwise.target == 0:
            return True
        if loss.ranking and not loss.parity:
            return True
        return pairwise.product == 1 and (loss.ranking or loss.intercept or loss.parity == -1)

    @cached_property
    def path(self) -> _Path:
        return _Path.of(self.G, self.K, self.edges.Y, self.edges.weights, self.loss)

    @property
    def mean_eigenvalue(self) -> float:
        return self.path.mean_eigenvalue

    def by_edges(self, tol: float, max_iter: int) -> EdgeProblem:
        """The same problem as a list of edges, so that any of them can be left out."""
        return EdgeProblem.of(self.G, self.K, self.edges, self.loss, tol, max_iter)

    def scores(self, alphas: np.ndarray, metric: Metric, held: HoldOut) -> np.ndarray:
        if held == ROWS:
            return self._scores_of_rows(alphas, metric)
        Y = dense(self.edges.Y) if isinstance(held, str) else self.edges.Y
        if held == EDGES:
            path = self.path.closed
            folds: Iterator[Any] = iter([(Y, (path.leave_edges_out(alpha / self.path.unit) for alpha in alphas))])
        elif held == COLUMNS:
            folds = iter([(Y, (self._columns_out(alpha) for alpha in alphas))])
        else:
            parts = counted(list(_folds(held).split(Y)), "folds")
            folds = ((dense(test.of(Y)), self._predictions(train, test, alphas)) for train, test in parts)
        return mean_score(metric, folds)

    def _scores_of_rows(self, alphas: np.ndarray, metric: Metric) -> np.ndarray:
        """(k,) the metric of conditioning objects left out one by one, for each alpha."""
        p, r = self.edges.shape
        rows = np.arange(0, p, max(1, -(-p * r // JUDGED)) if sparse.issparse(self.edges.Y) else 1)
        single = len(rows) * r >= self.single_precision and metric.name not in COUNTS_TIES
        dtype = np.float32 if single else np.float64

        y = np.ascontiguousarray(dense(self.edges.Y[rows])).ravel()
        queries = Queries(np.arange(len(rows)), np.repeat(np.arange(len(rows)), r))
        prepare(WORTH_SORTING * len(alphas) * len(y))
        at_once, values = max(1, BLOCK // len(y)), []
        for i in counted(range(0, len(alphas), at_once), "alphas"):
            inside = alphas[i : i + at_once] / self.path.unit
            block = self.path.closed.leave_rows_out(inside, dtype, rows=rows)
            for heavy in np.intersect1d(rows, self.path.heavy):
                block[:, rows == heavy] = np.stack(list(self._without(int(heavy), alphas[i : i + at_once])))
            block = self._tied(block)
            values.append(metric(y, block.reshape(len(inside), -1).T, queries))
        return np.concatenate(values)

    def _tied(self, scores: np.ndarray) -> np.ndarray:
        """Scores (p, r), or (k, p, r) for several alphas, made equal where objects are the same."""
        if not (self.K.repeats or self.G.repeats):
            return scores
        return np.stack([tied(one) for one in scores]) if scores.ndim == 3 else tied(scores)

    def held_out(self, alpha: float, held: HoldOut) -> np.ndarray:
        return self._tied(self._held_out(alpha, held))

    def _held_out(self, alpha: float, held: HoldOut) -> np.ndarray:
        inside = alpha / self.path.unit
        if held == ROWS:
            scores = self.path.closed.leave_rows_out(np.array([inside]), constants=True)[0]
            for heavy in self.path.heavy:
                scores[heavy] = next(self._without(int(heavy), np.array([alpha])))
            return scores
        if held == EDGES:
            mean = dense(self.edges.Y).mean(axis=1, keepdims=True) if self.loss.ranking else 0.0
            return self.path.closed.leave_edges_out(inside) + mean
        if held == COLUMNS:
            return self._columns_out(alpha)
        out = np.full(self.edges.shape, np.nan)
        for train, test in _folds(held).split(self.edges.Y):
            out[np.ix_(test.rows, test.columns)] = next(self._predictions(train, test, np.array([alpha])))
        return out

    def _without(self, row: int, alphas: np.ndarray) -> Iterator[np.ndarray]:
        """(1, r) the scores of a row by the model of the others at each alpha; zero if these have no weight."""
        rows, columns = (np.arange(n) for n in self.edges.shape)
        rest, weights = np.delete(rows, row), self.edges.weights
        if weights is not None and not weights[rest].any():
            return iter(np.zeros((len(alphas), 1, len(columns))))
        return self._predictions(Part(rest, columns), Part(rows[row : row + 1], columns), alphas)

    def _columns_out(self, alpha: float) -> np.ndarray:
        """Each ranked object under the model that never saw it: a row of the transposed relation (regression only)."""
        turned = _Path.of(self.K, self.G, self.edges.Y.T, None, self.loss)
        return turned.closed.leave_rows_out(np.array([alpha]))[0].T

    @cached_property
    def _paths(self) -> dict[tuple[int, ...], _Path]:
        """The paths of folds, by their training rows and columns, so that each is factorised once."""
        return {}

    def _path_of(self, train: Part) -> _Path:
        key = (*train.rows, -1, *train.columns)
        if key not in self._paths:
            same = self.G is self.K and np.array_equal(train.rows, train.columns)
            G = self.G.restrict(train.rows)
            K = G if same else self.K.restrict(train.columns)
            weights = None if self.edges.weights is None else self.edges.weights[train.rows]
            self._paths[key] = _Path.of(G, K, train.of(self.edges.Y), weights, self.loss)
        return self._paths[key]

    def _predictions(self, train: Part, test: Part, alphas: np.ndarray) -> Iterator[np.ndarray]:
        """For each alpha the scores of the test part by the model of the training part."""
        path = self._path_of(train)
        left, right = self.G.between(test.rows, train.rows), self.K.between(test.columns, train.columns)
        for alpha in alphas:
            a, intercept = path.coef(alpha)
            yield scores_of(left, a, right, self.loss.pairwise, intercept)


@dataclass(frozen=True)
class _Path:
    """A closed form, and its unit of alpha."""

    closed: Any  # Kronecker or Mirrored
    unit: float
    heavy: np.ndarray  # rows that outweigh the rest

    @classmethod
    def of(cls, G: Domain, K: Domain, Y: Any, weights: np.ndarray | None, loss: RelationLoss) -> _Path:
        pairwise, r = loss.pairwise, Y.shape[1]
        one = G is K
        if pairwise.source or pairwise.target:
            if pairwise.product == 0:
                G = Domain(np.full((len(G), 1), np.sqrt(pairwise.target)), True)
            else:
                G = (
                    Domain(G.array * np.sqrt(pairwise.product), True)
                    if G.factored
                    else Domain(G.array * pairwise.product)
                )
                G = G.plus(pairwise.target)
                K = K if loss.ranking and not loss.parity else (G if one else K.plus(pairwise.source))
        mass = np.array([float(r)]) if weights is None else weights * r
        factor = row_factor(loss.weighting, mass) if loss.ranking else np.ones(len(mass))
        if weights is None:
            unit, of_rows = float(factor[0]), None
        else:
            unit, of_rows = 1.0, weights * factor
        if loss.ranking and loss.parity:
            return cls(Mirrored(K, Y, loss.parity), unit, heavy_rows(None))
        Y = part(Y, loss.parity)
        of_K = (pairwise.product, pairwise.target) if one and pairwise.product else None
        closed = Kronecker(
            G, K, Y, ranking=loss.ranking, parity=loss.parity, weights=of_rows, intercept=loss.intercept, of_K=of_K
        )
        return cls(closed, unit, heavy_rows(of_rows))

    @property
    def mean_eigenvalue(self) -> float:
        return self.closed.mean_eigenvalue * self.unit

    @property
    def ranks(self) -> tuple[int, int]:
        """The ranks of the two kernels, that of ranked objects as the loss sees it."""
        return self.closed.ranks

    def coef(self, alpha: float) -> tuple[Any, float]:
        """Coefficients and intercept."""
        return self.closed.coef(alpha / self.unit), self.closed.intercept(alpha / self.unit)


@dataclass(frozen=True)
class EdgeProblem:
    """A list of some of the edges, which may repeat."""

    graph: Graph

    @classmethod
    def of(
        cls, G: Domain, K: Domain, edges: EdgeSet, loss: RelationLoss, tol: float, max_iter: int, *,
        direct: bool = False,
    ) -> EdgeProblem:  # fmt: skip
        edges = edges.listed()
        if loss.intercept and not loss.ranking:
            ones = np.ones((len(edges.y), 1))
            edges = replace(edges, free=ones if edges.free is None else np.hstack([edges.free, ones]))
        return cls(Graph(G, K, edges, loss.ranking, loss.parity, loss.pairwise, loss.weighting, tol, max_iter, direct))

    @property
    def mean_eigenvalue(self) -> float:
        return self.graph.mean_eigenvalue

    def scores(self, alphas: np.ndarray, metric: Metric, held: RelationKFold) -> np.ndarray:
        edges = self.graph.edges
        folds = [(train, test & edges.judge) for train, test in self._split(held)]
        predicted = (
            (edges.y[test], self._predictions(train, test, alphas), edges.rows[test])
            for train, test in numbered(folds, "fold")
            if test.any()
        )
        few = self.graph.parity != 0 and self._hardly_compared([test for _, test in folds])
        return mean_score(metric, predicted, pooled=few)

    def _hardly_compared(self, tests: list[np.ndarray]) -> bool:
        """True if fewer pairs of held-out edges share an object and differ in value than there are held-out edges."""
        y, rows, pairs = self.graph.edges.y, self.graph.edges.rows, 0
        for test in tests:
            same = np.unique(np.column_stack([rows[test], y[test]]), axis=0, return_inverse=True)[1].ravel()
            pairs += int(Queries.of(rows[test]).pairs().sum() - Queries.of(same).pairs().sum())
        return pairs < sum(int(test.sum()) for test in tests)

    def held_out(self, alpha: float, held: RelationKFold) -> np.ndarray:
        out = np.full(len(self.graph.edges.y), np.nan)
        for train, test in numbered(self._split(held), "fold"):
            out[test] = next(self._predictions(train, test, np.array([alpha]), warn=True))
        return tied(out, self.graph.edges.rows)

    def free_coef(self, v: np.ndarray) -> np.ndarray:
        """(k,) the coefficients of the unpenalised columns, given those of the edges."""
        return self.graph.loss.free_coef(self.graph.edges.y - self.graph.kernel(v))

    def _split(self, held: RelationKFold) -> list[tuple[np.ndarray, np.ndarray]]:
        edges = self.graph.edges
        folds = held.split_edges(edges.rows, edges.columns, edges.shape)
        return [(train, test) for train, test in folds if train.any() and test.any()]

    def _predictions(
        self, train: np.ndarray, test: np.ndarray, alphas: np.ndarray, *, warn: bool = False
    ) -> Iterator[np.ndarray]:
        graph, edges = self.graph.restrict(train), self.graph.edges
        solution: Solution = graph.solve(alphas)
        if warn:
            warn_if_stopped_early(solution, "conjugate gradients for a fold", REMEDY)
        inner = EdgeProblem(graph)
        for c in solution.value.T:
            yield inner.scores_of(np.ascontiguousarray(c), edges, test)

    def scores_of(self, v: np.ndarray, edges: EdgeSet, some: np.ndarray) -> np.ndarray:
        """Scores of some edges among the same objects, given the coefficients of the training edges."""
        rows, columns, sign = one_way(edges.rows[some], edges.columns[some], self.graph.parity)
        scores = sign * self.graph.kernel.at(v, rows, columns)
        return scores if edges.free is None else scores + edges.free[some] @ self.free_coef(v)


def _folds(held: HoldOut) -> RelationKFold:
    assert isinstance(held, RelationKFold)
    return held


def heavy_rows(weights: np.ndarray | None) -> np.ndarray:
    """The row, or the few rows, that outweigh all lighter ones: taking them out of a solution leaves rounding."""
    if weights is None:
        return np.empty(0, dtype=np.intp)
    order = np.argsort(-weights, kind="stable")
    w = weights[order]
    tail = np.append(np.cumsum(w[::-1])[::-1], 0.0)  # of each row and the lighter ones
    first = np.arange(len(w)) == 0
    apart = np.flatnonzero((w > np.where(first, HEAVY, APART) * tail[:-1]) & (first | (tail[1:] > 0)))
    apart = apart[apart < FEW]
    return order[: apart[-1] + 1] if len(apart) else order[:0]


def scores_of(left: np.ndarray, a: Any, right: np.ndarray, pairwise: Pairwise, intercept: float) -> np.ndarray:
    """(n, m) scores from the kernels (n, p) and (m, r) of both ends to the training objects."""
    out = pairwise.product * a.between(left.T, right.T) + intercept
    if pairwise.source or pairwise.target:
        of_rows, of_columns = a.sums()
        out = out + pairwise.source * (left @ of_rows)[:, None] + pairwise.target * (right @ of_columns)
    return out


def tied(scores: np.ndarray, codes: np.ndarray | None = None) -> np.ndarray:
    """Scores rounded to drop their last bits, in which those of equal objects may differ; NaN stays.

    The last bits are relative to the largest score of a conditioning object: a row of the matrix, or the edges with the
    same code.
    """
    known = np.nan_to_num(scores)
    if codes is None:
        return tied_where_equal(known[:, :, None])[:, :, 0] + 0 * scores
    top = np.zeros(int(codes.max(initial=-1)) + 1)
    np.maximum.at(top, codes, np.abs(known))
    return in_steps(known, top[codes]) + 0 * scores


def mean_score(metric: Metric, folds: Iterator[Any], *, pooled: bool = False) -> np.ndarray:
    """(k,) the mean metric over folds of (true values, scores for each alpha, conditioning object or None for rows).

    If `pooled`, edges are compared with one another whichever objects they belong to: players who meet once or twice
    have too few edges of their own in a fold.
    """
    values, error = [], None
    for y, predictions, *rows in folds:
        codes = rows[0] if rows else np.repeat(np.arange(y.shape[0]), y.shape[1])
        columns = np.column_stack([tied(scores.ravel(), codes) for scores in predictions])
        try:
            values.append(metric(y.ravel(), columns, None if pooled else Queries.of(codes)))
        except ValueError as nothing_to_judge:
            error = nothing_to_judge
    if not values:
        raise ValueError(f"{NOTHING_HELD_OUT.format('alpha', 'alpha')} ({error})")
    return np.mean(values, axis=0)
