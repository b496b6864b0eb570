"""Collaborative filtering after [Tsivtsivadze13]: a user's ratings are one ranking, other users' ratings the features.

For every group of reference users: 300 of them, drawn at random, rate the items that a test user has rated (their
median for items they did not rate); half of the test user's items are for training, half for testing. Kernel widths,
regularisation, sizes and nu are those of the best mean error over hold-out users drawn and split in the same way, one
choice for all users of a group. Errors are equation 1 of the paper, which counts pairs of equal ratings as half an
error.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine
from benchmarks.papers.figures import mean, table, wilcoxon
from benchmarks.papers.pursuit_learners import Models, agreeing, pursuit, rank_rls, rank_svm, rls, sparse_rank_rls
from rankrls.metrics import disagreement_error

REFERENCES, USERS, HOLD_OUT = 300, 300, 40
RATED = (50, 300)  # items a test user has rated
WIDTHS = 2.0 ** np.arange(-15, 16)
ALPHAS = np.logspace(-9, 3, 13)
SHARES = np.arange(1, 21) / 20  # sizes as shares of the training items
COSTS = np.logspace(-2, 4, 4)
NUS = np.array([0, 1, 3, 5, 7])  # zero, and four of the seven values of the default grid, by number
GROUPS = {"20-40": (20, 40), "40-60": (40, 60), "60-80": (60, 80)}
Published = dict[str, tuple[float, float, float]]  # the paper's number of each method, by group


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
    """Test users with references of one group; `ratings` (users, items) are NaN if missing."""
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


LEARNERS: dict[str, tuple[Any, Any]] = {
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
ORDER = [
    *("RLS", "Matching pursuit", "RankSVM", "RankRLS", "Sparse RankRLS", "Ranking pursuit"),
    *("Ranking pursuit, back-fitted", *COMBINED, *SEMI),
]


# ---------------------------------------------------------------- protocol


def models_of(name: str, learner: Any, task: Task, K: np.ndarray, parameters: Any) -> Models:
    """Models of one user; if `parameters` is None, every nu and size of two views is tried."""
    y = task.y[task.train]
    if name in SEMI:
        backfit, nus = SEMI[name]
        nus, shares = (nus, SHARES) if parameters is None else ([parameters[0]], [parameters[1]])
        both = np.concatenate([task.train, task.unscored])
        kernels = K[np.ix_(both, both)], y, K[np.ix_(task.test, both)]
        return agreeing(*kernels, len(y), nus, shares, backfit, task.seed)
    kernels = K[np.ix_(task.train, task.train)], y, K[np.ix_(task.test, task.train)]
    return learner(*kernels, parameters, np.random.default_rng(task.seed))


def measures(task: Task, models: Models) -> np.ndarray:
    """(3, parameters) disagreement error, mean squared error, and size as a share of the scored training items."""
    y, scores = task.y[task.test], models.scores
    error = disagreement_error(y, scores, convention="papers") if np.ptp(y) else np.full(scores.shape[1], np.nan)
    return np.stack([error, np.mean((scores - y[:, None]) ** 2, axis=0), models.sizes / len(task.train)])


def choose(name: str, learner: Any, grid: Any, held: list[Task]) -> list[tuple[float, Any]]:
    """(width, parameter) of the best mean error, and of the best mean squared error, over the hold-out users."""
    if name in SEMI:
        grid = [(nu, share) for nu in SEMI[name][1] for share in SHARES]
    few = held[::2] if name in SEMI or name == "RankSVM" else held  # the slow ones
    found = np.full((len(WIDTHS), 2, len(grid)), np.nan)
    for i, width in enumerate(WIDTHS):
        if np.median([task.distance[task.distance > 0].min() / (2 * width**2) for task in few]) > 30:
            continue  # no item is like any other: nothing to learn from
        each = [models_of(name, learner, t, t.kernel(width), None if name in SEMI else grid) for t in few]
        found[i] = np.nanmean([measures(t, one)[:2] for t, one in zip(few, each, strict=True)], axis=0)
    best = [np.unravel_index(np.nanargmin(found[:, k]), found[:, k].shape) for k in range(2)]
    return [(WIDTHS[i], grid[j]) for i, j in best]


@dataclass(frozen=True)
class Outcome:
    """(3, repetitions, users) measures and the choices of every learner in one group."""

    found: dict[str, np.ndarray]
    chosen: dict[str, list]
    seconds: float


def experiment(ratings: np.ndarray, group: tuple[int, int], semi: bool, sizes: tuple[int, int, int]) -> Outcome:
    start, (repetitions, users, hold_out) = time.process_time(), sizes
    held = list(tasks(ratings, group, hold_out, 1_000_000, semi))
    learners = dict(LEARNERS) | (dict.fromkeys(SEMI, (None, None)) if semi else COMBINED)
    chosen = {name: choose(name, *what, held) for name, what in learners.items()}
    sparse = sparse_rank_rls(chosen["Ranking pursuit"][0][1])
    learners["Sparse RankRLS"] = sparse, ALPHAS
    chosen["Sparse RankRLS"] = choose("Sparse RankRLS", sparse, ALPHAS, held)
    found: dict[str, list] = {name: [] for name in learners}
    for repetition in range(repetitions):
        for task in tasks(ratings, group, users, repetition, semi):
            for name, (learner, _) in learners.items():
                found[name].append(judged(name, learner, task, chosen[name], semi))
    shape = (repetitions, users, 3)
    return Outcome(
        {name: np.moveaxis(np.reshape(rows, shape), 2, 0) for name, rows in found.items()},
        chosen,
        time.process_time() - start,
    )


def judged(name: str, learner: Any, task: Task, chosen: list[tuple[float, Any]], semi: bool) -> list[float]:
    """The three measures; for learners that involve regression, parameters are chosen for mean squared error too."""
    rows = []
    for width, parameter in chosen if name in REGRESSION and not semi else chosen[:1]:
        given = parameter if name in SEMI else np.array([parameter])
        rows.append(measures(task, models_of(name, learner, task, task.kernel(width), given))[:, 0])
    return [rows[0][0], rows[-1][1], rows[0][2]]


# ---------------------------------------------------------------- tables


def beside_paper(title: str, outcomes: dict[str, Outcome], measure: int, reference: str, paper: Published) -> None:
    """Paper / ours ± 95 % interval over repetitions, and p over all users against one method."""
    digits, rows = (3, []) if measure == 0 else (1, [])
    for name in ORDER:
        if name not in next(iter(outcomes.values())).found:
            continue
        cells, p = [], []
        for k, outcome in enumerate(outcomes.values()):
            own, other = outcome.found[name][measure], outcome.found[reference][measure]
            theirs = f"{paper[name][k]:.{digits}f}" if name in paper else ""
            cells.append(f"{theirs} / {mean(np.nanmean(own, axis=1), digits)}")
            p.append("" if name == reference else wilcoxon(own.ravel(), other.ravel()) or "same")
        rows.append([name, *cells, ", ".join(p).strip(", ")])
    table(["", *outcomes, f"p against {reference}, by group"], rows, title)


def model_sizes(outcomes: dict[str, Outcome]) -> None:
    names = [name for name in ORDER if name in next(iter(outcomes.values())).found]
    rows = [[name, *(mean(np.mean(o.found[name][2], axis=1), 2) for o in outcomes.values())] for name in names]
    table(["", *outcomes], rows, "Items with a function in the model, as a share of the scored training items:")


def choices(outcomes: dict[str, Outcome]) -> None:
    print("Chosen on hold-out users for ranking: width; alpha, C, steps as a share of the items, or (nu, steps):\n")
    for group, outcome in outcomes.items():
        said = [f"{n} {c[0][0]:g}, {_short(c[0][1])}" for n, c in outcome.chosen.items()]
        print(f"* {group} ({outcome.seconds:.0f} CPU seconds): {'; '.join(said)}")
    print()


def _short(parameter: Any) -> str:
    return f"(nu {parameter[0]}, {parameter[1]:.2f})" if isinstance(parameter, tuple) else f"{parameter:.3g}"


def run(description: str, read: Callable[[Path], np.ndarray], folder: str, papers: dict[str, Published]) -> None:
    """The experiments on one data set; `papers` has the paper's numbers for supervised, semi and mse."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help=f"folder that holds {folder}")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--hold-out", type=int, default=HOLD_OUT, help="users the parameters are chosen on")
    parser.add_argument("--parts", nargs="*", default=["supervised", "semi"])
    arguments = parser.parse_args()
    print(machine())
    ratings = read(arguments.data / folder)
    sizes = (arguments.repetitions, arguments.users, arguments.hold_out)
    print(
        f"\n{len(ratings):,} users, {arguments.repetitions} repetitions of {arguments.users} test users; paper / ours."
    )
    for part in arguments.parts:
        semi = part == "semi"
        outcomes = {name: experiment(ratings, group, semi, sizes) for name, group in GROUPS.items()}
        reference = "SS ranking pursuit" if semi else "Ranking pursuit"
        scored = "half of the training items scored" if semi else "all training items scored"
        beside_paper(f"Disagreement error, {scored}:", outcomes, 0, reference, papers[part])
        if not semi and "mse" in papers:
            beside_paper("Mean squared error:", outcomes, 1, next(iter(COMBINED)), papers["mse"])
        model_sizes(outcomes)
        choices(outcomes)
