"""Does transduction help? Transductive against inductive RankRLS with few scored queries, and how the fit scales.

    python -m benchmarks.papers.transductive --data DIR

DIR holds the folders letor4-mq2008 and parse-ranking-genia. Prints Markdown; docs/reproductions/transductive.md has
what followed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tarfile
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.defaults import read_rows, standardised, table
from benchmarks.measure import machine, measure
from benchmarks.run import search_data
from rankrls import RankRLS, TransductiveRankRLS
from rankrls.metrics import get_metric

SCORED = (10, 30, 100)  # queries
UNSCORED, NEW = 300, 150
DRAWS = 12
FIDELITIES = (0.1, 1.0, 10.0)
GRID = (0.01, 0.1, 1.0, 10.0, 100.0)  # for fidelity="auto"


@dataclass(frozen=True)
class Data:
    name: str
    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    metrics: tuple[str, ...]
    model: dict[str, Any]


def mq2008(archives: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y, qid of all 784 queries, features as published (scaled by query)."""
    member = "MQ2008/Querylevelnorm.txt"
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archives / "letor4-mq2008/letor4-mq2008.tar.xz") as tar:
            tar.extract(member, folder, filter="data")
        return read_rows(Path(folder) / member)


def genia(archives: Path, at_least: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y = F-score, qid = sentence, of the 700 development sentences; features that occur in `at_least` parses."""
    found, y, qid = [], [], []
    with lzma.open(archives / "parse-ranking-genia/genia-dev.jsonl.xz", "rt") as lines:
        for number, sentence in enumerate(map(json.loads, lines)):
            for parse in sentence["parses"]:
                found.append(parse_features(parse, sentence["pos"]))
                y.append(parse["f1"])
                qid.append(number)
    frequency = Counter(name for features in found for name in features)
    columns = {name: j for j, name in enumerate(sorted(n for n, count in frequency.items() if count >= at_least))}
    X = np.zeros((len(found), len(columns)))
    for i, features in enumerate(found):
        for name, value in features.items():
            if name in columns:
                X[i, columns[name]] = value
    return standardised(X), np.array(y), np.array(qid)


def parse_features(parse: dict, pos: list[str]) -> dict[str, float]:
    """Costs, and counts of link types, of link types by length, and of the parts of speech linked."""
    counts: Counter[str] = Counter()
    for left, right, label in parse["links"]:
        kind = "".join(letter for letter in label if letter.isupper())
        ends = [pos[i] if 0 <= i < len(pos) else "wall" for i in (left, right)]
        counts.update([f"link {kind}", f"link {kind} over {min(right - left, 6)}", f"{ends[0]} to {ends[1]}"])
    return {**counts, "disjunct cost": parse["dis"], "length cost": parse["len"]}


METHODS = ("inductive, ties out", *(f"fidelity {value:g}" for value in FIDELITIES), "fidelity auto")


def draw(data: Data, n_scored: int, seed: int) -> np.ndarray:
    """(methods + 1, 2, metrics) scores on unscored and on new queries, those of inductive RankRLS first."""
    ids = np.random.default_rng(seed).permutation(np.unique(data.qid))
    S = np.isin(data.qid, ids[:n_scored])
    V = np.isin(data.qid, ids[n_scored : n_scored + UNSCORED])
    N, given = np.isin(data.qid, ids[-NEW:]), S | V
    X, y, qid = data.X, data.y, data.qid
    hidden = np.where(S, y, np.nan)[given]

    auto = TransductiveRankRLS(fidelity="auto", fidelities=GRID, random_state=seed, **data.model)
    auto.fit(X[given], hidden, qid=qid[given])
    untied = RankRLS(kernel=auto.inductive_.kernel, basis=auto.inductive_.basis).fit(X[S], y[S], qid=qid[S])
    results = [(model.predict(X[V]), model.predict(X[N])) for model in (auto.inductive_, untied)]
    for value in (*FIDELITIES, None):
        model = auto
        if value is not None:
            model = TransductiveRankRLS(auto.alpha_, value, random_state=seed, **data.model)
            model.fit(X[given], hidden, qid=qid[given])
        results.append((model.transduction_[V[given]], model.predict(X[N])))
    judged = [[(y[V], on_V, qid[V]), (y[N], on_N, qid[N])] for on_V, on_N in results]
    return np.array([[[get_metric(name)(*part) for name in data.metrics] for part in parts] for parts in judged])


def compare(data: Data) -> None:
    queries = len(np.unique(data.qid))
    print(f"### {data.name}\n\n{len(data.y):,} rows, {queries} queries, {data.X.shape[1]} features, {DRAWS} draws.\n")
    where = ("unscored", "new")
    rows = []
    for n in SCORED:
        scores = np.array([draw(data, n, seed) for seed in range(DRAWS)])  # (draws, methods + 1, 2, metrics)
        for i, place in enumerate(where):
            for j, metric in enumerate(data.metrics):
                inductive, others = scores[:, 0, i, j], scores[:, 1:, i, j].T
                cells = [f"{1000 * np.mean(o - inductive):+.1f} ({p_value(o - inductive):.2g})" for o in others]
                rows.append([str(n), place, metric, f"{inductive.mean():.4f}", *cells])
    table(["scored", "queries judged", "metric", "inductive", *METHODS], rows)


def p_value(gains: np.ndarray) -> float:
    """Wilcoxon's signed-rank test over draws."""
    return float(stats.wilcoxon(gains).pvalue) if np.any(gains) else 1.0


def scaling() -> None:
    print(f"### Scaling\n\n20 % of the queries unscored, 100 rows each. {machine()}\n")
    rows = []
    fits: list[tuple[str, int, int, dict[str, Any]]] = [
        ("linear, alpha=1", 200_000, 46, {"alpha": 1.0}),
        ('linear, alpha="auto"', 200_000, 46, {}),
        ('linear, alpha=1, fidelity="auto"', 200_000, 46, {"alpha": 1.0, "fidelity": "auto"}),
        ("linear, alpha=1", 1_000_000, 46, {"alpha": 1.0}),
        ("Gaussian, 300 basis points, alpha=1", 200_000, 46, {"alpha": 1.0, "kernel": "rbf", "basis": 300}),
        ("Gaussian, all rows, alpha=1", 2_000, 46, {"alpha": 1.0, "kernel": "rbf"}),
    ]
    for what, m, n, params in fits:
        X, y, qid = search_data(m, n)
        y[qid % 5 == 0] = np.nan
        fit = measure(lambda p=params, X=X, y=y, q=qid: TransductiveRankRLS(**p).fit(X, y, qid=q), 1)
        scored = ~np.isnan(y)
        plain = {name: value for name, value in params.items() if name != "fidelity"}
        Xs, ys, qs = X[scored], y[scored], qid[scored]
        beside = measure(lambda p=plain, X=Xs, y=ys, q=qs: RankRLS(tied_pairs=True, **p).fit(X, y, qid=q), 1)
        rows.append([what, f"{m:,} x {n}", f"{fit.seconds:.2f}", f"{fit.megabytes:.0f}", f"{beside.seconds:.2f}"])
    table(["fit", "rows x features", "seconds", "MB beyond the data", "inductive RankRLS, seconds"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    folder = parser.parse_args().data
    letor, parses = mq2008(folder), genia(folder)
    print("Gain over inductive RankRLS (tied pairs included, same alpha) in thousandths, p of Wilcoxon's test:\n")
    compare(Data("MQ2008, linear", *letor, ("pairwise_accuracy", "ndcg@10"), {}))
    compare(Data("GENIA parses, linear", *parses, ("pairwise_accuracy", "kendall_tau_b"), {}))
    gaussian = {"kernel": "rbf", "basis": 100}
    compare(Data("MQ2008, Gaussian, 100 basis points", *letor, ("pairwise_accuracy", "ndcg@10"), gaussian))
    scaling()
