"""Collaborative filtering after [Tsivtsivadze13]: a user's ratings are one ranking, other users' ratings the features.

For every group of reference users: 300 of them, drawn at random, rate the items a test user has rated (their median
where they did not); half of the test user's items train, half test. Kernel widths, regularisation, sizes and nu are
those of the best mean error over hold-out users drawn and split in the same way, one choice for all users of a group.

Every learner below is a function (K, y, K_test, parameters, rng) -> (test items, parameters) scores: thousands of small
fits, so kernels and targets go to the layer below the estimators, which checks nothing.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.measure import machine
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.core.symmetric import whitening
from rankrls.metrics import disagreement_error
from rankrls.problems.coregularised import default_nus
from rankrls.problems.dictionary import Whitened
from rankrls.problems.dual import Dual
from rankrls.problems.joint_pursuit import Agreeing
from rankrls.problems.pursuit import pursue

REFERENCES, USERS, HOLD_OUT = 300, 300, 40
RATED = (50, 300)  # items a test user has rated
WIDTHS = 2.0 ** np.arange(-15, 16)
ALPHAS = np.logspace(-9, 3, 13)
SHARES = np.arange(1, 21) / 20  # sizes as shares of the training items
COSTS = np.logspace(-2, 4, 4)
PAIRS = 500  # at most, of those a RankSVM is trained on
NUS = np.array([0, 1, 3, 5, 7])  # zero, and four of the seven values of the default grid, by number


@dataclass(frozen=True)
class Task:
    """One test user: squared distances of the items, ratings, and the rows to train, to leave unscored and to test."""

    distance: np.ndarray
    y: np.ndarray
    train: np.ndarray
    unscored: np.ndarray
    test: np.ndarray
    seed: int

    def kernel(self, width: float) -> np.ndarray:
        return np.exp(-self.distance / (2 * width**2))


def tasks(ratings: np.ndarray, group: tuple[int, int], n: int, seed: int, semi: bool) -> Iterator[Task]:
    """Test users with references of one group; `ratings` (users, items) are NaN where there is none."""
    rng = np.random.default_rng([seed, group[0]])
    counts = np.sum(~np.isnan(ratings), axis=1)
    inside = np.flatnonzero((counts >= group[0]) & (counts <= group[1]))
    references = rng.choice(inside, REFERENCES, replace=False)
    able = np.setdiff1d(np.flatnonzero((counts >= RATED[0]) & (counts <= RATED[1])), references)
    known = ratings[references]
    features = np.where(np.isnan(known), np.nanmedian(known, axis=1)[:, None], known).T  # (items, references)
    for user in rng.choice(able, n, replace=False):
        items = rng.permutation(np.flatnonzero(~np.isnan(ratings[user])))
        X, half = features[items], len(items) // 2
        norms = np.einsum("ij,ij->i", X, X)
        distance = np.maximum(0, norms[:, None] + norms - 2 * X @ X.T)
        scored = half // 2 if semi else half
        train, unscored, test = np.split(np.arange(len(items)), [scored, half])
        yield Task(distance, ratings[user, items], train, unscored, test, int(rng.integers(2**31)))


# ---------------------------------------------------------------- learners


def rls(K: Any, y: Any, K_test: Any, alphas: Any, rng: Any) -> np.ndarray:
    """Kernel ridge regression, without an intercept."""
    d, V = np.linalg.eigh(K)
    return K_test @ (V @ ((V.T @ y)[:, None] / (np.maximum(d, 0)[:, None] + alphas)))


def rank_rls(K: Any, y: Any, K_test: Any, alphas: Any, rng: Any) -> np.ndarray:
    problem = Dual(ranking(len(y)), K, y[:, None])
    problem.path  # noqa: B018  (one factorisation for all)
    return K_test @ np.hstack([problem.model(alpha).coef for alpha in alphas])


def sparse_rank_rls(share: float) -> Callable:
    """Random basis items, as many as a share of the training items."""

    def learner(K: Any, y: Any, K_test: Any, alphas: Any, rng: Any) -> np.ndarray:
        R = rng.permutation(len(y))[: size(share, len(y))]
        F, W = ranking(len(y)), whitening(K[np.ix_(R, R)], 1e-12)
        A = F @ (K[:, R] @ W)
        d, V = np.linalg.eigh(A.T @ A)
        return K_test[:, R] @ (W @ (V @ ((V.T @ (A.T @ (F @ y)))[:, None] / (np.maximum(d, 0)[:, None] + alphas))))

    return learner


def rank_svm(K: Any, y: Any, K_test: Any, costs: Any, rng: Any) -> np.ndarray:
    """A linear SVM on differences of the items' kernel features."""
    W = whitening(K, 1e-12)
    Z, Z_test = K @ W, K_test @ W
    i, j = np.nonzero(y[:, None] > y)
    pick = rng.permutation(len(i))[:PAIRS]
    sign = rng.choice([-1, 1], len(pick))
    D = sign[:, None] * (Z[i[pick]] - Z[j[pick]])
    if len(np.unique(sign)) < 2:
        return np.zeros((len(K_test), len(costs)))
    # a cost too large to converge at is not the one that is chosen
    warnings.simplefilter("ignore", ConvergenceWarning)
    svm = [LinearSVC(C=c, fit_intercept=False, dual=False, tol=1e-3).fit(D, sign) for c in costs]
    return np.column_stack([Z_test @ one.coef_[0] for one in svm])


def pursuit(beta: float | None, backfit: bool) -> Callable:
    """Ranking pursuit (beta = 0), the combination of ranking and regression, or matching pursuit (None), as printed."""

    def learner(K: Any, y: Any, K_test: Any, shares: Any, rng: Any) -> np.ndarray:
        F = None if beta is None else ranking(len(y), beta)
        A, z = (K, y) if F is None else (F @ K, F @ y)  # no intercept, unlike the estimator
        sizes = [size(share, len(y)) for share in shares]
        path = pursue(Whitened.columns(A), z, max(sizes), backfit=backfit)
        if not len(path):
            return np.zeros((len(K_test), len(shares)))
        at = np.minimum(sizes, len(path)) - 1
        return K_test[:, path.indices[:, 0]] @ path.coefs[at, 0].T

    return learner


def size(share: float, m: int) -> int:
    return max(1, int(np.ceil(share * m - 1e-9)))


def ranking(m: int, beta: float = 0.0) -> QueryPreferences:
    """All pairs of one query, each counting the same."""
    weighting = "pairs" if beta else "items"
    return QueryPreferences(Queries.single(m), weighting=weighting, regression=beta)


def agreeing(task: Task, K: np.ndarray, nus: Any, shares: Any, backfit: bool) -> np.ndarray:
    """(test items, nus x shares) two views, each with half of the scored and half of the unscored items as atoms."""
    rng = np.random.default_rng(task.seed)
    halves = [np.array_split(rng.permutation(rows), 2) for rows in (task.train, task.unscored)]
    atoms = [np.concatenate(parts) for parts in zip(*halves, strict=True)]
    stack, n = np.concatenate(atoms), len(atoms[0])
    blocks = [slice(0, n), slice(n, len(stack))]
    B = ranking(len(task.unscored)) @ K[np.ix_(task.unscored, stack)]
    y = task.y[task.train][:, None]
    problem = Agreeing(ranking(len(y)), K[np.ix_(task.train, stack)], blocks, y, B.T @ B, 0.0, backfit)
    values = default_nus(*problem.traces())
    K_test, sizes, columns = K[np.ix_(task.test, stack)], [size(share, len(y)) for share in shares], []
    for nu in nus:
        path = replace(problem, nu=float(values[min(nu, len(values) - 1)])).path(max(sizes))
        at = np.minimum(sizes, len(path)) - 1
        scores = np.zeros((len(K_test), len(shares)))
        for v, block in enumerate(blocks if len(path) else []):
            scores += K_test[:, block][:, path.indices[:, v]] @ path.coefs[at, v].T / 2
        columns.append(scores)
    return np.hstack(columns)


LEARNERS: dict[str, tuple[Callable, np.ndarray]] = {
    "RLS": (rls, ALPHAS),
    "Matching pursuit": (pursuit(None, False), SHARES),
    "RankSVM": (rank_svm, COSTS),
    "RankRLS": (rank_rls, ALPHAS),
    "Ranking pursuit": (pursuit(0.0, False), SHARES),
    "Ranking pursuit, back-fitted": (pursuit(0.0, True), SHARES),
}
COMBINED = {"CRRP, beta = 0.5": (pursuit(0.5, False), SHARES)}
REGRESSION = ("RLS", "Matching pursuit", *COMBINED)
SEMI = {
    "Two views, nu = 0": (False, NUS[:1]),
    "SS ranking pursuit": (False, NUS),
    "SS ranking pursuit, back-fitted": (True, NUS),
}

# ---------------------------------------------------------------- protocol


def scores_of(name: str, learner: Any, task: Task, K: np.ndarray, parameters: Any) -> np.ndarray:
    if name in SEMI:
        nus = SEMI[name][1] if parameters is None else [parameters[0]]
        return agreeing(task, K, nus, SHARES if parameters is None else [parameters[1]], SEMI[name][0])
    rng = np.random.default_rng(task.seed)
    train = K[np.ix_(task.train, task.train)], task.y[task.train], K[np.ix_(task.test, task.train)]
    return learner(*train, parameters, rng)


def measures(task: Task, scores: np.ndarray) -> np.ndarray:
    """(2, parameters) disagreement error and mean squared error."""
    y = task.y[task.test]
    error = disagreement_error(y, scores) if np.ptp(y) else np.full(scores.shape[1], np.nan)
    return np.stack([error, np.mean((scores - y[:, None]) ** 2, axis=0)])


def choose(name: str, learner: Any, grid: Any, held: list[Task]) -> list[tuple[float, Any]]:
    """(width, parameter) of the best mean error, and of the best mean squared error, over the hold-out users."""
    if name in SEMI:
        grid = [(nu, share) for nu in SEMI[name][1] for share in SHARES]
    few = held[::2] if name in SEMI or name == "RankSVM" else held  # the slow ones
    table = np.full((len(WIDTHS), 2, len(grid)), np.nan)
    for i, width in enumerate(WIDTHS):
        if np.median([task.distance[task.distance > 0].min() / (2 * width**2) for task in few]) > 30:
            continue  # no item is like any other: nothing to learn from
        found = [measures(t, scores_of(name, learner, t, t.kernel(width), None if name in SEMI else grid)) for t in few]
        table[i] = np.nanmean(found, axis=0)
    best = [np.unravel_index(np.nanargmin(table[:, k]), table[:, k].shape) for k in range(2)]
    return [(WIDTHS[i], grid[j]) for i, j in best]


@dataclass(frozen=True)
class Outcome:
    """Errors (2, users of all repetitions) and the choices of every learner in one group."""

    errors: dict[str, np.ndarray]
    chosen: dict[str, list]
    seconds: float


def experiment(ratings: np.ndarray, group: tuple[int, int], semi: bool, sizes: tuple[int, int, int]) -> Outcome:
    start, (repetitions, users, hold_out) = time.perf_counter(), sizes
    held = list(tasks(ratings, group, hold_out, 1_000_000, semi))
    learners = dict(LEARNERS) | (dict.fromkeys(SEMI, (None, None)) if semi else COMBINED)
    chosen = {name: choose(name, *what, held) for name, what in learners.items()}
    sparse = sparse_rank_rls(chosen["Ranking pursuit"][0][1])
    learners["Sparse RankRLS"] = sparse, ALPHAS
    chosen["Sparse RankRLS"] = choose("Sparse RankRLS", sparse, ALPHAS, held)
    errors: dict[str, list] = {name: [] for name in learners}
    for repetition in range(repetitions):
        for task in tasks(ratings, group, users, repetition, semi):
            for name, (learner, _) in learners.items():
                errors[name].append(judged(name, learner, task, chosen[name], semi))
    return Outcome({n: np.array(e).T for n, e in errors.items()}, chosen, time.perf_counter() - start)


def judged(name: str, learner: Any, task: Task, chosen: list[tuple[float, Any]], semi: bool) -> list[float]:
    """Disagreement error and mean squared error; what knows of regression has parameters chosen for each."""
    row = []
    for width, parameter in chosen if name in REGRESSION and not semi else chosen[:1]:
        given = parameter if name in SEMI else np.array([parameter])
        row.append(measures(task, scores_of(name, learner, task, task.kernel(width), given))[:, 0])
    return [row[0][0], row[-1][1]]


# ---------------------------------------------------------------- tables

ORDER = [
    *("RLS", "Matching pursuit", "RankSVM", "RankRLS", "Sparse RankRLS", "Ranking pursuit"),
    *("Ranking pursuit, back-fitted", *COMBINED, *SEMI),
]


def table(title: str, outcomes: dict[str, Outcome], measure: int, reference: str) -> None:
    groups = list(outcomes)
    print(
        f"\n### {title}\n\n| | {' | '.join(groups)} | p against {reference}, by group |\n"
        + "|---" * (len(groups) + 2)
        + "|"
    )
    for name in ORDER:
        if name not in outcomes[groups[0]].errors:
            continue
        cells, p = [], []
        for outcome in outcomes.values():
            e, r = outcome.errors[name][measure], outcome.errors[reference][measure]
            cells.append(f"{np.nanmean(e):.3f}" if measure == 0 else f"{np.nanmean(e):.1f}")
            both = ~np.isnan(e) & ~np.isnan(r)
            same = np.array_equal(e[both], r[both])
            p.append(
                ("" if name == reference else "same") if same else f"{stats.wilcoxon(e[both], r[both]).pvalue:.1g}"
            )
        print(f"| {name} | {' | '.join(cells)} | {', '.join(p)} |")


def choices(outcomes: dict[str, Outcome]) -> None:
    print("\nchosen on hold-out users for ranking, (width, alpha | C | share of the training items | (nu, share)):\n")
    for group, outcome in outcomes.items():
        said = [f"{n} {c[0][0]:g}, {_short(c[0][1])}" for n, c in outcome.chosen.items()]
        print(f"* {group} ({outcome.seconds:.0f} s): {'; '.join(said)}")


def _short(parameter: Any) -> str:
    return f"(nu {parameter[0]}, {parameter[1]:.2f})" if isinstance(parameter, tuple) else f"{parameter:.3g}"


def run(description: str, folder: str, read: Callable[[Path], np.ndarray], groups: dict[str, tuple[int, int]]) -> None:
    """Both experiments on one data set."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help=f"folder that holds {folder}")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--hold-out", type=int, default=HOLD_OUT, help="users the parameters are chosen on")
    parser.add_argument("--parts", nargs="*", default=["supervised", "semi"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    print(machine())
    ratings = read(arguments.data / folder)
    for part in arguments.parts:
        semi, sizes = part == "semi", (arguments.repetitions, arguments.users, arguments.hold_out)
        with ProcessPoolExecutor(arguments.jobs) as pool:
            found = [pool.submit(experiment, ratings, group, semi, sizes) for group in groups.values()]
            outcomes = {name: future.result() for name, future in zip(groups, found, strict=True)}
        reference = "SS ranking pursuit" if semi else "Ranking pursuit"
        scored = "half of the training items scored" if semi else "all training items scored"
        table(f"Disagreement error, {scored}", outcomes, 0, reference)
        if not semi:
            table("Mean squared error", outcomes, 1, next(iter(COMBINED)))
        choices(outcomes)
        print(flush=True)
