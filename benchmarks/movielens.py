"""MovieLens-1M, the last rating of each user held out: the ten best for each user beside implicit's ALS and popularity.

    python -m benchmarks.movielens --data DIR

DIR holds movielens-1m/ratings-no-time.dat.xz. That copy has no time stamps: "last" is the last line of a user. Settings
are chosen by the line before it; models are then fitted on all but the last, and judged once. A rating of any value
counts as seen. Figures are recall@10 (one item is held out, so it is the share of users that get it) and NDCG@10.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.linalg import svds

from benchmarks.measure import machine
from rankrls import ConditionalRankRLS

TOP = 10
Recommended = np.ndarray  # (n_users, TOP) item numbers
Fit = Callable[[sparse.csr_array], Recommended]


def read(path: Path) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """What each user saw, without its last two; these two."""
    columns = {0: "user", 2: "item"}
    table = pd.read_csv(path, sep=":", header=None, usecols=list(columns)).rename(columns=columns)
    users, items = (pd.factorize(table[name], sort=True)[0] for name in ("user", "item"))
    from_last = table.groupby("user").cumcount(ascending=False).to_numpy()
    shape = (users.max() + 1, items.max() + 1)
    rest = from_last >= 2
    seen = sparse.csr_array((np.ones(rest.sum()), (users[rest], items[rest])), shape=shape)
    order = [items[from_last == k][np.argsort(users[from_last == k])] for k in (1, 0)]
    return seen, order[0], order[1]


def with_one_more(seen: sparse.csr_array, item: np.ndarray) -> sparse.csr_array:
    more = sparse.csr_array((np.ones(len(item)), (np.arange(len(item)), item)), shape=seen.shape)
    return sparse.csr_array(seen + more)


def judged(found: Recommended, held: np.ndarray) -> tuple[float, float]:
    """recall@10 and NDCG@10."""
    rows, places = np.nonzero(found == held[:, None])
    return len(rows) / len(held), float(np.sum(1 / np.log2(places + 2)) / len(held))


def popularity(seen: sparse.csr_array) -> Recommended:
    scores = np.tile(np.asarray(seen.sum(axis=0)).ravel(), (seen.shape[0], 1))
    scores[seen.tocoo().coords] = -np.inf
    return np.argsort(-scores, axis=1, kind="stable")[:, :TOP]


def ours(d: int, alpha: float) -> Fit:
    """Implicit feedback in closed form; features of users and items are d singular vectors of what was seen."""

    def fit(seen: sparse.csr_array) -> Recommended:
        U, s, V = svds(seen, d, random_state=0)
        s = s / s.max()
        users, items = U * s, V.T * s
        unit = d * float(np.mean(users**2) * np.mean(items**2))
        model = ConditionalRankRLS(alpha * unit, loss="regression", missing="zero").fit(users, seen, items)
        return model.recommend(users, top=TOP, exclude=seen).ids

    return fit


def als(factors: int, regularization: float, weight: float) -> Fit:
    def fit(seen: sparse.csr_array) -> Recommended:
        from implicit.als import AlternatingLeastSquares

        model = AlternatingLeastSquares(
            factors=factors, regularization=regularization, alpha=weight, iterations=15, num_threads=1, random_state=0
        )
        known = sparse.csr_matrix(seen, dtype=np.float32)
        model.fit(known, show_progress=False)
        return model.recommend(np.arange(seen.shape[0]), known, N=TOP, filter_already_liked_items=True)[0]

    return fit


def contenders() -> Iterable[tuple[str, list[tuple[str, Fit]]]]:
    yield "popularity", [("", popularity)]
    grid = [(d, alpha) for d in (30, 60, 100, 150) for alpha in (1.0, 1000.0, 10_000.0)]
    yield "ConditionalRankRLS", [(f"{d} singular vectors, alpha {a:g}", ours(d, a)) for d, a in grid]
    grid_als = [(f, r, w) for f in (32, 64) for r, w in ((0.01, 1.0), (1.0, 5.0), (10.0, 10.0))]
    yield "implicit ALS", [(f"{f} factors, regularization {r:g}, alpha {w:g}", als(f, r, w)) for f, r, w in grid_als]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    seen, second, last = read(args.data / "movielens-1m" / "ratings-no-time.dat.xz")
    print(f"{machine()}\n\n| | recall@10 | NDCG@10 | CPU s | peak memory, MB | settings |\n|---|---|---|---|---|---|")
    for name, settings in contenders():
        try:
            tried: list[tuple[float, str, Any]] = [(judged(fit(seen), second)[1], what, fit) for what, fit in settings]
        except ImportError:
            print(f"| {name} | not installed | | | | |")
            continue
        _, what, fit = max(tried, key=lambda one: one[0])
        start = time.process_time()
        recall, ndcg = judged(fit(with_one_more(seen, second)), last)
        cpu, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {name} | {recall:.4f} | {ndcg:.4f} | {cpu:.1f} | {peak:.0f} | {what} |", flush=True)


if __name__ == "__main__":
    main()
