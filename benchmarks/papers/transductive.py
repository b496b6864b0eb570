"""Does transduction help? Transductive against inductive RankRLS with few scored queries, and how the fit scales.

    python -m benchmarks.papers.transductive --data DIR

DIR holds the folders letor4-mq2008 and parse-ranking-genia. Prints Markdown; see docs/reproductions/transductive.md for
results.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.defaults import read_rows, standardised
from benchmarks.generated import search_data
from benchmarks.measure import machine, measure
from benchmarks.papers.figures import gain, mean, table
from rankrls import RankRLS, TransductiveRankRLS
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.estimators.rows.training import Training
from rankrls.metrics import get_metric
from rankrls.problems.transduction import completion

SCORED = (10, 30, 100)  # queries
UNSCORED, NEW = 300, 150
DRAWS = 12
FIDELITIES = (0.1, 1.0, 10.0)
LARGER = (0.01, 0.1, 1.0, 10.0)  # fidelities with a larger alpha
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
    same = {"kernel": auto.inductive_.kernel, "basis": auto.inductive_.basis, "scale": None}
    untied = RankRLS(**same).fit(X[S], y[S], qid=qid[S])
    results = [(model.predict(X[V]), model.predict(X[N])) for model in (auto.inductive_, untied)]
    for value in (*FIDELITIES, None):
        model = auto
        if value is not None:
            model = TransductiveRankRLS(auto.alpha_, value, random_state=seed, **data.model)
            model.fit(X[given], hidden, qid=qid[given])
        results.append((model.transduction_[V[given]], model.predict(X[N])))
    judged = [[(y[V], on_V, qid[V]), (y[N], on_N, qid[N])] for on_V, on_N in results]
    return np.array([[[get_metric(name)(*part) for name in data.metrics] for part in parts] for parts in judged])


def compare(data: Data, draws: int) -> None:
    rows = []
    for n in SCORED:
        scores = np.array([draw(data, n, seed) for seed in range(draws)])  # (draws, methods + 1, 2, metrics)
        for i, place in enumerate(("unscored", "new")):
            for j, metric in enumerate(data.metrics):
                inductive, others = scores[:, 0, i, j], scores[:, 1:, i, j].T
                cells = [gain(other, inductive) for other in others]
                rows.append([str(n), place, metric, mean(inductive), *cells])
    size = f"{len(data.y):,} rows, {len(np.unique(data.qid))} queries, {data.X.shape[1]} features"
    head = ["scored", "queries judged", "metric", "inductive", *METHODS]
    table(head, rows, f"{data.name}: {size}, {draws} draws:")


def larger_alpha(data: Data, n_scored: int, seed: int) -> np.ndarray:
    """(2 + fidelities,) pairwise accuracy on unscored queries: induction, the same with a larger alpha, transduction.

    Alpha is relative to a sum over rows: transduction has more rows, and an alpha larger in proportion. f remains the
    inductive model at the alpha that hold-out chose.
    """
    ids = np.random.default_rng(seed).permutation(np.unique(data.qid))
    S, V = np.isin(data.qid, ids[:n_scored]), np.isin(data.qid, ids[n_scored : n_scored + UNSCORED])
    X, y, qid, given = data.X, data.y, data.qid, S | V
    how = {"tied_pairs": True, "scale": None}
    inductive = RankRLS(**how).fit(X[S], y[S], qid=qid[S])
    alpha = inductive.alpha_ * given.sum() / S.sum()
    larger = RankRLS(alpha, **how).fit(X[S], y[S], qid=qid[S])
    prior = np.where(S, y, inductive.predict(X))[given]
    queries = Queries.of(qid[given])
    rows = Training(X[given], prior[:, None], queries, None, n_given=int(given.sum()))
    solver = completion(rows.problem(QueryPreferences(queries, weighting="items")), alpha)
    completed = solver.scores(prior, V[given], np.array(LARGER))  # fidelity is in units of one for "items"
    found = [inductive.predict(X[V]), larger.predict(X[V]), *completed.T]
    return np.array([get_metric("pairwise_accuracy")(y[V], scores, qid[V]) for scores in found])


def with_larger_alphas(sources: dict[str, Data], draws: int) -> None:
    rows = []
    for name, data in sources.items():
        for n in SCORED:
            scores = np.array([larger_alpha(data, n, 100 + seed) for seed in range(draws)]).T
            rows.append([name, str(n), mean(scores[0]), *(gain(other, scores[0]) for other in scores[1:])])
    head = ["data", "scored", "inductive", "inductive, larger alpha", *(f"fidelity {value:g}" for value in LARGER)]
    title = f"alpha larger by rows / scored rows: pairwise accuracy on unscored queries, {draws} draws:"
    table(head, rows, title)


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds and MB of a call."""
    start = time.process_time()
    taken = measure(call, 1)
    return time.process_time() - start, taken.megabytes


def scaling() -> None:
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
        cpu, fit = seconds(lambda p=params, X=X, y=y, q=qid: TransductiveRankRLS(**p).fit(X, y, qid=q))
        scored = ~np.isnan(y)
        plain = {name: value for name, value in params.items() if name != "fidelity"}
        Xs, ys, qs = X[scored], y[scored], qid[scored]
        beside, _ = seconds(lambda p=plain, X=Xs, y=ys, q=qs: RankRLS(tied_pairs=True, **p).fit(X, y, qid=q))
        rows.append([what, f"{m:,} x {n}", f"{cpu:.2f}", f"{fit:.0f}", f"{beside:.2f}"])
    head = ["fit", "rows x features", "CPU seconds", "MB beyond the data", "inductive RankRLS, CPU seconds"]
    table(head, rows, "20 % of the queries unscored, 100 rows each:")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--parts", nargs="*", default=["gains", "alpha", "scaling"])
    arguments = parser.parse_args()
    print(machine())
    letor, parses = mq2008(arguments.data), genia(arguments.data)
    search, sentences = ("pairwise_accuracy", "ndcg@10"), ("pairwise_accuracy", "kendall_tau_b")
    linear = Data("MQ2008, linear", *letor, search, {}), Data("GENIA parses, linear", *parses, sentences, {})
    gaussian = Data("MQ2008, Gaussian, 100 basis points", *letor, search, {"kernel": "rbf", "basis": 100})
    if "gains" in arguments.parts:
        print("\nGain over inductive RankRLS (tied pairs included, same alpha) in thousandths, ± 95 % interval, p:")
        for data in (*linear, gaussian):
            compare(data, arguments.draws)
    if "alpha" in arguments.parts:
        with_larger_alphas({"MQ2008": linear[0], "GENIA": linear[1]}, min(10, arguments.draws))
    if "scaling" in arguments.parts:
        scaling()


if __name__ == "__main__":
    main()
