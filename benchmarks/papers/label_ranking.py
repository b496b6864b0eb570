"""Label ranking on the 16 sets of [Cheng09], ten-fold cross-validation, mean Kendall tau; printed as Markdown.

An object is described by features, and k labels known by name only are ranked for it: `ConditionalRankRLS` with the
identity as features of the targets. Kernel width and alpha are chosen by leaving out each training row. DIR of
--data DIR holds label-ranking/*.txt.xz; see docs/reproductions/label_ranking.md for results.

    python -m benchmarks.papers.label_ranking --data DIR
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from benchmarks.measure import machine
from benchmarks.papers.figures import mean
from rankrls import ConditionalRankRLS
from rankrls.kernels import Gaussian
from rankrls.metrics import kendall_tau_b

SETS = ("authorship", "bodyfat", "calhousing", "cpu-small", "elevators", "fried", "glass", "housing", "iris",
        "pendigits", "segment", "stock", "vehicle", "vowel", "wine", "wisconsin")  # fmt: skip
FULL = 1500  # rows up to which every one is a point of the kernel
POINTS = 500  # of larger sets
CHOOSING = 800  # rows on which the width of larger sets is chosen
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # multiples of 1 / median squared distance
NEIGHBOURS = (5, 10, 20, 40, 80)
TREES, SHARES = 100, (1 / 3, 1.0)  # of a forest, and shares of the features tried at each split
METHODS = ("gaussian", "linear", "neighbours", "forest", "pairs")


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features, and for each label the number of labels ranked below it."""
    table = pd.read_csv(path)
    orders = table.pop("ranking").str.split(">")
    labels = sorted(orders.iloc[0])
    place = np.array([[order.index(label) for label in labels] for order in orders])
    return table.to_numpy(dtype=float), len(labels) - 1.0 - place


def tau(Y: np.ndarray, scores: np.ndarray) -> float:
    return float(kendall_tau_b(Y.ravel(), scores.ravel(), np.repeat(np.arange(len(Y)), Y.shape[1])))


def linear(X: np.ndarray, Y: np.ndarray) -> ConditionalRankRLS:
    """x'W with a constant, as labels may be popular."""
    return ConditionalRankRLS(scoring="kendall_tau_b").fit(_with_one(X), Y, np.eye(Y.shape[1]))


def gaussian(X: np.ndarray, Y: np.ndarray) -> ConditionalRankRLS:
    """A Gaussian kernel, its width chosen with alpha by leaving out each row."""
    rng, labels = np.random.default_rng(0), np.eye(Y.shape[1])
    some = rng.permutation(len(X))[:CHOOSING]
    median = float(np.median(pdist(X[some][:1000], "sqeuclidean")))
    best = (-np.inf, None)
    for width in WIDTHS:
        kernel = Gaussian(width / median)
        model = ConditionalRankRLS(kernel=kernel, target_kernel="linear", scoring="kendall_tau_b")
        score = float(model.fit(X[some], Y[some], labels).cv_scores_.max())
        best = max(best, (score, kernel), key=lambda found: found[0])
    model = ConditionalRankRLS(kernel=best[1], target_kernel="linear", scoring="kendall_tau_b")
    if len(X) > FULL:
        model.set_params(basis=POINTS, target_basis=np.eye(Y.shape[1]))
    return model.fit(X, Y, labels)


def neighbours(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Mean ranks among the nearest neighbours, weighted by 1 / distance; training rows choose how many."""
    near = NearestNeighbors(n_neighbors=max(NEIGHBOURS) + 1).fit(X)
    own = [found[:, 1:] for found in near.kneighbors(X)]
    best = max(NEIGHBOURS, key=lambda k: tau(Y, _weighted(Y, *own, k)))
    return _weighted(Y, *near.kneighbors(new, best), best)


def _weighted(Y: np.ndarray, distance: np.ndarray, place: np.ndarray, k: int) -> np.ndarray:
    u = 1 / np.maximum(distance[:, :k], 1e-9)
    return np.einsum("ik,ikl->il", u, Y[place[:, :k]]) / u.sum(axis=1, keepdims=True)


def forest(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """A random forest that predicts the places of all labels at once; out-of-bag rows choose the share of features."""
    some = np.random.default_rng(0).permutation(len(X))[:FULL]
    made = lambda share, **more: RandomForestRegressor(TREES, max_features=share, random_state=0, **more)
    judged = lambda share: made(share, oob_score=True).fit(X[some], Y[some]).oob_prediction_
    best = max(SHARES, key=lambda share: tau(Y[some], judged(share)))
    return made(best).fit(X, Y).predict(new)


def pairs(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Ranking by pairwise comparison: logistic regression for each two labels, and the sum of its probabilities."""
    scores = np.zeros((len(new), Y.shape[1]))
    for i, j in combinations(range(Y.shape[1]), 2):
        wins = Y[:, i] > Y[:, j]
        if wins.all() or not wins.any():
            p = np.full(len(new), float(wins[0]))
        else:
            p = LogisticRegression(max_iter=300).fit(X, wins).predict_proba(new)[:, 1]
        scores[:, i] += p
        scores[:, j] += 1 - p
    return scores


def _with_one(X: np.ndarray) -> np.ndarray:
    return np.hstack([X, np.ones((len(X), 1))])


def judged(name: str, X: np.ndarray, Y: np.ndarray, folds: int) -> dict[str, np.ndarray]:
    """Kendall tau of each fold, and CPU seconds of the Gaussian fits."""
    found: dict[str, list[float]] = {key: [] for key in (*METHODS, "cpu")}
    for train, test in KFold(folds, shuffle=True, random_state=0).split(X):
        scaler = StandardScaler().fit(X[train])
        x, new = scaler.transform(X[train]), scaler.transform(X[test])
        start = time.process_time()
        model = gaussian(x, Y[train])
        found["cpu"].append(time.process_time() - start)
        labels = np.eye(Y.shape[1])
        found["gaussian"].append(tau(Y[test], model.predict(new, labels)))
        found["linear"].append(tau(Y[test], linear(x, Y[train]).predict(_with_one(new), labels)))
        for key, method in (("neighbours", neighbours), ("forest", forest), ("pairs", pairs)):
            found[key].append(tau(Y[test], method(x, Y[train], new)))
    return {key: np.array(values) for key, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--folds", type=int, default=10)
    args = parser.parse_args()
    print(f"{machine()}\n")
    print("| set | rows | labels | Gaussian | linear | nearest neighbours | forest | pairs | CPU s of a fit |")
    print("|---|---|---|---|---|---|---|---|---|")
    means = []
    for name in args.sets:
        X, Y = read(args.data / "label-ranking" / f"{name}.txt.xz")
        found = judged(name, X, Y, args.folds)
        cells = [mean(found[key], 3) for key in METHODS]
        means.append([found[key].mean() for key in METHODS])
        print(f"| {name} | {len(X):,} | {Y.shape[1]} | {' | '.join(cells)} | {found['cpu'].mean():.1f} |", flush=True)
    overall = [f"{value:.3f}" for value in np.mean(means, axis=0)]
    print(f"| mean | | | {' | '.join(overall)} | |")


if __name__ == "__main__":
    main()
