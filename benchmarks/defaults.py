"""Which defaults of RankRLS are best? Exact leave-query-out on five public data sets, printed as Markdown.

DIR of --data DIR holds a folder with a .tar.xz per data set; conclusions are in docs/decisions/0001-defaults.md.
"""

from __future__ import annotations

import argparse
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats

from rankrls import RankRLS
from rankrls.datasets import load_letor, per_query_minmax
from rankrls.metrics import get_metric
from rankrls.problems.choice import ALPHA_RANGE

SETTINGS = list(product(("pairs", "queries", "items"), (True, False)))  # weighting, tied_pairs
METRICS = ("pairwise_accuracy", "ndcg@10", "average_precision")
DECADES = np.linspace(-9, 4, 27)  # the wide grid, in the unit of the default one; both go by half decades
RANGES = ((-6, 1), (-5, 2), (-6, 2), (-4, 3), (-3, 2))  # grids to compare, as exponents of 10


@dataclass(frozen=True)
class Result:
    best: float  # score with the best alpha of the default grid
    index: int  # of that alpha
    per_query: np.ndarray
    wide: np.ndarray  # score of each alpha of the wide grid


Results = dict[tuple[str, str], list[Result]]  # (data set, metric) -> one result per setting


def read_rows(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (m, n), y (m,), qid (m,) of a LETOR file."""
    data = load_letor(path)
    return data.X, data.y, data.qid


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and variance 1; constant ones become 0."""
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def less_skewed(X: np.ndarray) -> np.ndarray:
    """log(1 + x) of the columns that are never negative and have skewness above 2."""
    skewed = (X.min(axis=0) >= 0) & (stats.skew(standardised(X)) > 2)
    return np.where(skewed, np.log1p(np.where(skewed, X, 0.0)), X)


def data_sets(archives: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    with tempfile.TemporaryDirectory() as folder:

        def unpacked(name: str) -> Path:
            for archive in (archives / name).glob("*.tar.xz"):
                with tarfile.open(archive) as tar:
                    tar.extractall(Path(folder) / name, filter="data")
            return Path(folder) / name

        X, y, qid = read_rows(unpacked("letor2-ohsumed") / "OHSUMED/Data/All/OHSUMED.txt")
        yield "LETOR 2 OHSUMED", per_query_minmax(X, qid), y, qid
        norm = unpacked("letor3-ohsumed") / "OHSUMED/QueryLevelNorm"
        parts = [read_rows(norm / f"Fold{k}/test.txt") for k in (2, 3, 4, 5, 1)]  # the order of LETOR 2
        yield "LETOR 3 OHSUMED", *map(np.concatenate, zip(*parts, strict=True))
        yield "MQ2008", *read_rows(unpacked("letor4-mq2008") / "MQ2008/Querylevelnorm.txt")
        X, y, _ = read_rows(unpacked("lightgbm-lambdarank") / "rank.train")
        sizes = np.loadtxt(Path(folder) / "lightgbm-lambdarank/rank.train.query", dtype=int)
        yield "LightGBM example", standardised(X), y, np.repeat(np.arange(len(sizes)), sizes)
        X, y, qid = read_rows(unpacked("mslr-web-fold1-5k") / "msn1.fold1.train.5k.txt")
        yield "MSLR sample", standardised(less_skewed(X)), y, qid


def measure(X: np.ndarray, y: np.ndarray, qid: np.ndarray, metric: str, **options) -> Result:
    ranker = RankRLS(scoring=metric, **options).fit(X, y, qid=qid)
    unit = ranker.alphas_[0] / 10 ** ALPHA_RANGE[0]
    wide = RankRLS(scoring=metric, alphas=unit * 10**DECADES, **options).fit(X, y, qid=qid)
    index = np.flatnonzero(ranker.alphas_ == ranker.alpha_)[0]
    per_query = get_metric(metric).per_query(y, ranker.cv_predictions_, qid)
    return Result(ranker.cv_scores_.max(), index, per_query, wide.cv_scores_)


def measure_all(data: Path, metrics: tuple[str, ...], **model) -> Results:
    return {
        (name, metric): [measure(X, y, qid, metric, weighting=w, tied_pairs=t, **model) for w, t in SETTINGS]
        for name, X, y, qid in data_sets(data)
        for metric in metrics
    }


def table(head: list[str], rows: list[list[str]]) -> None:
    for row in [head, ["---"] * len(head), *rows]:
        print("| " + " | ".join(row) + " |")
    print()


def report(results: Results) -> None:
    names = [f"{weighting}, {'tied' if tied else 'untied'}" for weighting, tied in SETTINGS]
    print("Held-out score, and in brackets where its alpha lies on the default grid (0 is the smallest):\n")
    scores = [[*cell, *(f"{r.best:.4f} ({r.index})" for r in row)] for cell, row in results.items()]
    table(["data", "metric", *names], scores)

    best = np.array([[r.best for r in row] for row in results.values()])
    ranks = stats.rankdata(-best, axis=1).mean(axis=0)
    behind = 100 * (1 - best / best.max(axis=1, keepdims=True))
    columns = (ranks, (behind == 0).sum(axis=0), behind.mean(axis=0), behind.max(axis=0), 100 * first(results))
    head = ["setting", "mean rank", "wins", "mean % behind the best", "most % behind", "first in % of resamples"]
    table(head, [[name, *(f"{v:.3g}" for v in row)] for name, *row in zip(names, *columns, strict=True)])

    winner = int(np.argmin(ranks))
    print(f"Mean gain of `{names[winner]}` per query, in thousandths (p of Wilcoxon's signed-rank test, times 5):\n")
    others = [i for i in range(len(SETTINGS)) if i != winner]
    rows = []
    for cell, row in results.items():
        gains = np.array([row[winner].per_query - row[i].per_query for i in others])
        gains = gains[:, np.isfinite(gains[0])]
        p = np.minimum(1, len(others) * stats.wilcoxon(gains, axis=1).pvalue)
        texts = [f"{1000 * g.mean():+.1f} (p {q:.2g})" for g, q in zip(gains, p, strict=True)]
        rows.append([*cell, str(gains.shape[1]), *texts])
    table(["data", "metric", "queries", *(names[i] for i in others)], rows)

    wide = np.array([r.wide for row in results.values() for r in row])
    tops = np.unique(DECADES[np.argmax(wide, axis=1)], return_counts=True)
    print("Best exponent over 13 decades and how often:", ", ".join(f"{d:g}: {n}" for d, n in zip(*tops, strict=True)))
    rows = []
    for low, high in RANGES:
        inside = wide[:, (low <= DECADES) & (high >= DECADES)]
        lost = 100 * (1 - inside.max(axis=1) / wide.max(axis=1))
        numbers = inside.shape[1], (lost > 0).sum(), lost.mean(), lost.max()
        rows.append([f"10^{low} to 10^{high}", *(f"{v:.3g}" for v in numbers)])
    print()
    table(["grid", "values", f"best outside, of {len(wide)}", "mean % lost", "most % lost"], rows)


def first(results: Results, n_resamples: int = 1000) -> np.ndarray:
    """How often each setting has the best mean rank, if the queries of every data set are drawn again."""
    wins = np.zeros(len(SETTINGS))
    scores = [np.array([r.per_query for r in row]) for row in results.values()]
    for number in range(n_resamples):
        # seeded by the number of queries: the two OHSUMED sets have the same queries, and draw the same ones
        drawn = {n: np.random.default_rng([number, n]).integers(n, size=n) for n in {V.shape[1] for V in scores}}
        means = [np.nanmean(V[:, drawn[V.shape[1]]], axis=1) for V in scores]
        wins[np.argmin(stats.rankdata(-np.array(means), axis=1).mean(axis=0))] += 1
    return wins / n_resamples


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    folder = parser.parse_args().data
    print("## Linear\n")
    report(measure_all(folder, METRICS))
    print("## Gaussian kernel, 300 basis points\n")
    report(measure_all(folder, METRICS[:1], kernel="rbf", basis=300, random_state=0))
