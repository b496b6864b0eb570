"""Early stopping: the number of iterations that ranks held-out edges best.

Conjugate residuals fit the directions of large eigenvalues first, so fewer iterations act like a larger alpha. All
folds advance together, one iteration at a time, and held-out edges are scored after each. The search ends when it has
taken twice as many iterations as it took to reach the best score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..core.krylov import Solution
from ..core.queries import Queries
from ..metrics import Metric
from ..problems.choice import exceeds
from .folds import RelationKFold
from .problems import NOTHING_HELD_OUT, EdgeProblem
from .relation import EdgeSet

PATIENCE = 10  # go on for at least this many iterations without a better score
MOST = 1000  # most iterations to try

Watch = Callable[[int, float, np.ndarray], object]  # iteration, residual, coefficients -> whether to stop


@dataclass(frozen=True)
class Stop:
    """The held-out scores of each number of iterations."""

    scores: np.ndarray  # (k,) after 1, 2, ... iterations
    predictions: np.ndarray  # (q,) at the best number, NaN for edges never held out
    best: int  # index of the best score

    @property
    def iterations(self) -> int:
        return self.best + 1


@dataclass
class _Run:
    """The iterations of one fold."""

    problem: EdgeProblem
    test: np.ndarray
    steps: Iterator[tuple[np.ndarray, float]]
    scores: np.ndarray
    over: bool = False

    def advance(self, whole: EdgeProblem, tol: float) -> None:
        found = None if self.over else next(self.steps, None)
        if found is None:
            self.over = True
            return
        v, residual = found
        self.over = residual <= tol
        self.scores = self.problem.scores_of(v, whole.graph.edges, self.test)


def choose(problem: EdgeProblem, metric: Metric, held: RelationKFold, alpha: float) -> Stop:
    """The number of iterations with the best mean score over folds; of several, the smallest."""
    edges, sign = problem.graph.edges, 1 if metric.greater_is_better else -1
    runs, judge = [], edges.judge
    for train, test in held.split_edges(edges.rows, edges.columns, edges.shape):
        asked = test & judge
        if train.any() and asked.any() and _judges(metric, edges.y[asked], edges.rows[asked]):
            inner = EdgeProblem(problem.graph.restrict(train))
            runs.append(_Run(inner, test, inner.graph.iterates(alpha), np.zeros(int(test.sum()))))
    if not runs:
        raise ValueError(NOTHING_HELD_OUT.format("the number of iterations", "max_iter"))
    scores: list[float] = []
    best, predictions = 0, np.full(len(edges.y), np.nan)
    while len(scores) < MOST and not all(run.over for run in runs) and len(scores) - best <= max(PATIENCE, best):
        for run in runs:
            run.advance(problem, problem.graph.tol)
        folds = [_score(metric, edges, run.scores, run.test, judge) for run in runs]
        scores.append(float(np.mean(folds)))
        if len(scores) == 1 or exceeds(sign * scores[-1], sign * scores[best]):
            best = len(scores) - 1
            for run in runs:
                predictions[run.test] = run.scores
    return Stop(np.array(scores), predictions, best)


def solve(problem: EdgeProblem, alpha: float, most: int, watch: Watch | None = None) -> Solution:
    """Conjugate residuals for at most `most` iterations, or until `watch` returns True."""
    history, v, residual = [1.0], np.zeros(len(problem.graph.edges.y)), 1.0
    for v, residual in problem.graph.iterates(alpha):
        history.append(residual)
        stopped = watch is not None and watch(len(history) - 1, residual, v)
        if stopped or residual <= problem.graph.tol or len(history) > most:
            break
    value = np.array(v)[:, None]
    return Solution(value, np.array([residual]), len(history) - 1, residual <= problem.graph.tol, np.array(history))


def _score(metric: Metric, edges: EdgeSet, scores: np.ndarray, test: np.ndarray, judge: np.ndarray) -> float:
    asked = test & judge
    return float(metric(edges.y[asked], scores[judge[test]], Queries.of(edges.rows[asked])))


def _judges(metric: Metric, y: np.ndarray, rows: np.ndarray) -> bool:
    try:
        metric(y, np.zeros(len(y)), Queries.of(rows))
    except ValueError:
        return False
    return True
