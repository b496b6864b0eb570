"""MovieLens, the last rating of each user held out: the top ten for each user, compared with ALS and popularity.

    python -m benchmarks.movielens --data DIR

DIR holds movielens-1m and movielens-100k. The copy of the former has no time stamps, so "last" is a user's last line;
in the latter it is the latest rating. Settings are chosen by the rating before the last; models are then fitted to all
but the last and judged once, each in a separate process. A rating of any value counts as seen. Figures are recall@10
(one item is held out, so it is the share of users who get it) and NDCG@10.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.linalg import svds

from benchmarks.measure import StoppedError, alone, machine
from rankrls import ConditionalRankRLS

TOP = 10
SETS = {"1m": "movielens-1m, last lines", "100k": "movielens-100k, latest ratings"}


@dataclass(frozen=True)
class Shop:
    """What each user has seen, and what is known about users and items."""

    seen: sparse.csr_array  # (n_users, n_items) ones
    users: np.ndarray  # (n_users, d) gender, age, occupation
    items: np.ndarray  # (n_items, e) genres, decade


Fit = Callable[[Shop], np.ndarray]  # (n_users, TOP) item numbers


def read(folder: Path, name: str) -> tuple[Shop, np.ndarray, np.ndarray]:
    """The ratings without the last two of each user; and these two."""
    table, users, items = (_read_1m if name == "1m" else _read_100k)(folder / f"movielens-{name}")
    rows, columns = (pd.factorize(table[name], sort=True) for name in ("user", "item"))
    from_last = table.groupby("user").cumcount(ascending=False).to_numpy()
    rest = from_last >= 2
    shape = (len(rows[1]), len(columns[1]))
    seen = sparse.csr_array((np.ones(rest.sum()), (rows[0][rest], columns[0][rest])), shape=shape)
    held = [columns[0][from_last == k][np.argsort(rows[0][from_last == k])] for k in (1, 0)]
    told = [frame.loc[labels].to_numpy(dtype=float) for frame, labels in ((users, rows[1]), (items, columns[1]))]
    return Shop(seen, told[0], told[1]), held[0], held[1]


def _read_1m(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    part = lambda name, columns: pd.read_csv(
        folder / name, sep="::", header=None, engine="python", encoding="latin-1", names=columns
    )
    table = pd.read_csv(folder / "ratings-no-time.dat.xz", sep=":", header=None, usecols=[0, 2])
    users = part("users.dat.xz", ["user", "gender", "age", "work", "zip"]).set_index("user")
    movies = part("movies.dat.xz", ["item", "title", "genres"]).set_index("item")
    year = movies["title"].str.extract(r"\((\d{4})\)\s*$")[0].astype(float)
    return table.set_axis(["user", "item"], axis=1), _people(users), _films(movies["genres"].str.get_dummies(), year)


def _read_100k(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    table = pd.read_csv(folder / "u.data.xz", sep="\t", header=None, names=["user", "item", "rating", "time"])
    part = lambda name: pd.read_csv(folder / name, sep="|", header=None, encoding="latin-1", index_col=0)
    users = part("u.user.xz").set_axis(["age", "gender", "work", "zip"], axis=1)
    users["age"] = pd.cut(users["age"], [0, 17, 24, 34, 44, 49, 55, 200], labels=False)
    movies = part("u.item.xz")
    year = movies[2].str.extract(r"(\d{4})$")[0].astype(float)
    return table.sort_values("time", kind="stable"), _people(users), _films(movies.iloc[:, 4:], year)


def _people(users: pd.DataFrame) -> pd.DataFrame:
    return pd.get_dummies(users[["gender", "age", "work"]].astype(str))


def _films(genres: pd.DataFrame, year: pd.Series) -> pd.DataFrame:
    decade = pd.get_dummies((year // 10).fillna(0).astype(int).clip(lower=193).astype(str))
    return pd.concat([genres, decade.set_index(genres.index)], axis=1)


def with_one_more(shop: Shop, item: np.ndarray) -> Shop:
    more = sparse.csr_array((np.ones(len(item)), (np.arange(len(item)), item)), shape=shop.seen.shape)
    return Shop(sparse.csr_array(shop.seen + more), shop.users, shop.items)


def judged(found: np.ndarray, held: np.ndarray) -> tuple[float, float]:
    """recall@10 and NDCG@10."""
    rows, places = np.nonzero(found == held[:, None])
    return len(rows) / len(held), float(np.sum(1 / np.log2(places + 2)) / len(held))


def popularity(shop: Shop) -> np.ndarray:
    order = np.argsort(-np.asarray(shop.seen.sum(axis=0)).ravel(), kind="stable")
    return np.array(
        [order[~np.isin(order, items)][:TOP] for items in np.split(shop.seen.indices, shop.seen.indptr[1:-1])]
    )


def vectors(seen: sparse.csr_array, d: int) -> tuple[np.ndarray, np.ndarray]:
    """d singular vectors of what has been seen: for users times the singular values, for items as they are."""
    U, s, V = svds(seen, d, random_state=0)
    return U * s, V.T


def told(table: np.ndarray, norm: float) -> np.ndarray:
    """A table about users or items, with rows of mean length `norm`."""
    return table * (norm / np.sqrt(np.mean(np.sum(table**2, axis=1))))


def ours(d: int, alpha: float, share: float = 0.0) -> Fit:
    """Implicit feedback in closed form, on d singular vectors and on what is known about users and items."""

    def fit(shop: Shop) -> np.ndarray:
        ends = list(vectors(shop.seen, d))
        if share:
            for k, table in enumerate((shop.users, shop.items)):
                norm = float(np.sqrt(np.mean(np.sum(ends[k] ** 2, axis=1))))
                ends[k] = np.hstack([ends[k], told(table, share * norm)])
        return _recommended(shop, ends[0], ends[1], alpha)

    return fit


def only_told(alpha: float) -> Fit:
    """Users by gender, age and occupation, items by genres, decade and popularity: no user has a history."""

    def fit(shop: Shop) -> np.ndarray:
        seen_by = np.log1p(np.asarray(shop.seen.sum(axis=0)).ravel())
        popular = np.vstack([np.ones(len(seen_by)), seen_by, seen_by**2]).T
        people = np.hstack([np.ones((len(shop.users), 1)), shop.users])
        films = np.hstack([popular / popular.max(axis=0), shop.items])
        square = lambda A: float(np.sum(A**2)) / len(A)
        unit = square(people) * square(films) / min(people.shape[1], films.shape[1])
        return _recommended(shop, people, films, alpha * unit)

    return fit


def history(alpha: float) -> Fit:
    """Users by the items they have seen, items by their ids: a ridge regression of each item on all others."""
    return lambda shop: _recommended(shop, shop.seen, sparse.eye_array(shop.seen.shape[1], format="csr"), alpha)


def _recommended(shop: Shop, users: Any, items: Any, alpha: float) -> np.ndarray:
    model = ConditionalRankRLS(alpha, loss="regression", missing="zero").fit(users, shop.seen, items)
    return model.recommend(users, top=TOP, exclude=shop.seen).ids


def als(factors: int, regularization: float, weight: float) -> Fit:
    def fit(shop: Shop) -> np.ndarray:
        from implicit.als import AlternatingLeastSquares

        model = AlternatingLeastSquares(
            factors=factors, regularization=regularization, alpha=weight, iterations=15, num_threads=1, random_state=0
        )
        known = sparse.csr_matrix(shop.seen, dtype=np.float32)
        model.fit(known, show_progress=False)
        return model.recommend(np.arange(known.shape[0]), known, N=TOP, filter_already_liked_items=True)[0]

    return fit


def contenders() -> dict[str, list[tuple[str, Fit]]]:
    """All contenders, with the settings that are tried."""
    of_vectors = [(d, alpha) for d in (20, 60, 150, 400) for alpha in (100.0, 300.0, 1000.0, 4000.0)]
    mixed = [(150, alpha, share) for alpha in (300.0, 1000.0, 4000.0) for share in (0.1, 0.3)]
    of_als = [
        (f, r, w) for f in (32, 64, 128) for r, w in ((0.01, 1.0), (10.0, 1.0), (100.0, 1.0), (1.0, 5.0), (10.0, 10.0))
    ]
    return {
        "popularity": [("", popularity)],
        "ConditionalRankRLS, tables": [(f"alpha {a:g}", only_told(a)) for a in (1e-2, 1.0, 1e2, 1e4)],
        "ConditionalRankRLS, vectors": [(f"{d} vectors, alpha {a:g}", ours(d, a)) for d, a in of_vectors],
        "ConditionalRankRLS, both": [(f"{d} vectors, alpha {a:g}, share {s:g}", ours(d, a, s)) for d, a, s in mixed],
        "ConditionalRankRLS, history": [(f"alpha {a:g}", history(a)) for a in (100.0, 300.0, 1000.0, 3000.0)],
        "implicit ALS": [(f"{f} factors, regularization {r:g}, alpha {w:g}", als(f, r, w)) for f, r, w in of_als],
    }


def run(data: Path, name: str, who: str) -> dict[str, Any]:
    """One contender: settings chosen by the rating before the last, figures from the last."""
    shop, second, last = read(data, name)
    settings = contenders()[who]
    what, fit = max(settings, key=lambda one: judged(one[1](shop), second)[1]) if len(settings) > 1 else settings[0]
    all_but_last = with_one_more(shop, second)
    start = time.process_time()
    recall, ndcg = judged(fit(all_but_last), last)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"recall": recall, "ndcg": ndcg, "cpu": time.process_time() - start, "peak": peak, "settings": what}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--who", nargs="+", default=list(contenders()), choices=list(contenders()))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # in a process of its own
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run(args.data, args.sets[0], args.who[0])))
        return
    head = "| | recall@10 | NDCG@10 | CPU s | peak memory, MB | settings |\n|---|---|---|---|---|---|"
    print(machine())
    for name in args.sets:
        print(f"\n{SETS[name]}\n\n{head}")
        for who in args.who:
            given = ["--data", str(args.data.resolve()), "--sets", name, "--who", who, "--one"]
            try:
                one = alone("benchmarks.movielens", *given, limit=1200)
            except StoppedError as error:
                print(f"| {who} | {error} | | | | |", flush=True)
                continue
            figures = f"{one['recall']:.4f} | {one['ndcg']:.4f} | {one['cpu']:.1f} | {one['peak']:.0f}"
            print(f"| {who} | {figures} | {one['settings']} |", flush=True)


if __name__ == "__main__":
    main()
