"""The learners of benchmarks.papers.pursuit: functions (K, y, K_test, parameters, rng) -> Models.

There are thousands of small fits, so kernels and targets go to the layer below the estimators, which checks nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.core.symmetric import whitening
from rankrls.problems.coregularised import default_nus
from rankrls.problems.dictionary import Whitened
from rankrls.problems.dual import Dual
from rankrls.problems.joint_pursuit import Agreeing
from rankrls.problems.pursuit import pursue

PAIRS = 500  # at most, of those a RankSVM is trained on


@dataclass(frozen=True)
class Models:
    """Scores (test items, parameters), and the number of items on which each model has functions (parameters,)."""

    scores: np.ndarray
    sizes: np.ndarray

    @classmethod
    def none(cls, items: int, parameters: int) -> Models:
        return cls(np.zeros((items, parameters)), np.zeros(parameters))


Learner = Callable[[np.ndarray, np.ndarray, np.ndarray, Any, np.random.Generator], Models]


def dense(K_test: np.ndarray, coef: np.ndarray) -> Models:
    """Models with a function of every training item."""
    return Models(K_test @ coef, np.full(coef.shape[1], float(len(coef))))


def ranking(m: int, beta: float = 0.0) -> QueryPreferences:
    """All pairs of one query, with equal weights."""
    weighting = "pairs" if beta else "items"
    return QueryPreferences(Queries.single(m), weighting=weighting, regression=beta)


def size(share: float, m: int) -> int:
    return max(1, int(np.ceil(share * m - 1e-9)))


def rls(K: Any, y: Any, K_test: Any, alphas: Any, rng: Any) -> Models:
    """Kernel ridge regression, without an intercept."""
    d, V = np.linalg.eigh(K)
    return dense(K_test, V @ ((V.T @ y)[:, None] / (np.maximum(d, 0)[:, None] + alphas)))


def rank_rls(K: Any, y: Any, K_test: Any, alphas: Any, rng: Any) -> Models:
    problem = Dual(ranking(len(y)), K, y[:, None])
    problem.path  # noqa: B018  (one factorisation for all)
    return dense(K_test, np.hstack([problem.model(alpha).coef for alpha in alphas]))


def sparse_rank_rls(share: float) -> Learner:
    """Random basis items, their number a share of the training items."""

    def learner(K: Any, y: Any, K_test: Any, alphas: Any, rng: Any) -> Models:
        R = rng.permutation(len(y))[: size(share, len(y))]
        F, W = ranking(len(y)), whitening(K[np.ix_(R, R)], 1e-12)
        A = F @ (K[:, R] @ W)
        d, V = np.linalg.eigh(A.T @ A)
        coef = W @ (V @ ((V.T @ (A.T @ (F @ y)))[:, None] / (np.maximum(d, 0)[:, None] + alphas)))
        return dense(K_test[:, R], coef)

    return learner


def rank_svm(K: Any, y: Any, K_test: Any, costs: Any, rng: Any) -> Models:
    """A linear SVM (squared hinge) on differences of the items' kernel features."""
    W = whitening(K, 1e-12)
    Z = K @ W
    i, j = np.nonzero(y[:, None] > y)
    pick = rng.permutation(len(i))[:PAIRS]
    i, j = i[pick], j[pick]
    sign = rng.choice([-1, 1], len(pick))  # a classifier wants both classes
    D = sign[:, None] * (Z[i] - Z[j])
    if len(np.unique(sign)) < 2:
        return Models.none(len(K_test), len(costs))
    warnings.simplefilter("ignore", ConvergenceWarning)  # a cost too large to converge at is not the one chosen
    w = np.column_stack(
        [LinearSVC(C=c, fit_intercept=False, dual=False, tol=1e-3).fit(D, sign).coef_[0] for c in costs]
    )
    short = np.maximum(0, 1 - sign[:, None] * (D @ w))  # the coefficient of a pair, up to 2 C
    of_items = np.zeros((len(y), len(costs)))
    np.add.at(of_items, i, short)
    np.subtract.at(of_items, j, short)
    return Models(K_test @ (W @ w), np.sum(np.abs(of_items) > 1e-9, axis=0).astype(float))


def pursuit(beta: float | None, backfit: bool) -> Learner:
    """Ranking pursuit (beta = 0), the combination of ranking and regression, or matching pursuit (None), as printed."""

    def learner(K: Any, y: Any, K_test: Any, shares: Any, rng: Any) -> Models:
        F = None if beta is None else ranking(len(y), beta)
        A, z = (K, y) if F is None else (F @ K, F @ y)  # no intercept, unlike the estimator
        steps = [size(share, len(y)) for share in shares]
        path = pursue(Whitened.columns(A), z, max(steps), backfit=backfit)
        if not len(path):
            return Models.none(len(K_test), len(shares))
        at, chosen = np.minimum(steps, len(path)) - 1, path.indices[:, 0]
        return Models(K_test[:, chosen] @ path.coefs[at, 0].T, distinct(path.indices, at))

    return learner


def distinct(indices: np.ndarray, at: np.ndarray) -> np.ndarray:
    """How many different functions were chosen in the steps up to each of `at`, over all views."""
    return sum(np.array([len(np.unique(one[: k + 1])) for k in at], dtype=float) for one in indices.T)


def agreeing(K: Any, y: Any, K_test: Any, scored: Any, nus: Any, shares: Any, backfit: bool, seed: int) -> Models:
    """Two views, each with half of the scored and half of the unscored items as its functions; nu by share models.

    K is that of scored and unscored items, of which the first `scored` are scored; nus are numbers of the default grid
    of this problem.
    """
    rng = np.random.default_rng(seed)
    rows = np.arange(scored), np.arange(scored, len(K))
    halves = [np.array_split(rng.permutation(part), 2) for part in rows]
    atoms = [np.concatenate(parts) for parts in zip(*halves, strict=True)]
    stack, n = np.concatenate(atoms), len(atoms[0])
    blocks = [slice(0, n), slice(n, len(stack))]
    B = ranking(len(rows[1])) @ K[np.ix_(rows[1], stack)]
    problem = Agreeing(ranking(scored), K[np.ix_(rows[0], stack)], blocks, y[:, None], B.T @ B, 0.0, backfit)
    values = default_nus(*problem.traces())
    steps, found = [size(share, scored) for share in shares], []
    for nu in nus:
        path = replace(problem, nu=float(values[min(nu, len(values) - 1)])).path(max(steps))
        at = np.minimum(steps, len(path)) - 1
        if not len(path):
            found.append(Models.none(len(K_test), len(shares)))
            continue
        own = [K_test[:, stack[block]][:, path.indices[:, v]] @ path.coefs[at, v].T for v, block in enumerate(blocks)]
        found.append(Models(sum(own) / 2, distinct(path.indices, at)))
    return Models(np.hstack([one.scores for one in found]), np.concatenate([one.sizes for one in found]))
