"""Learning from clicks and from runs of retrievers, and the uncertainty of models: public data, test queries only.

    python benchmarks/feedback.py ../shared/data [clicks] [fusion] [confidence] [questions] [constraints]

Prints the tables of docs/clicks.md, docs/fusion.md, docs/confidence.md, docs/signs.md and docs/objectives.md.
"""

import sys
import tarfile
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

from rankrls import RankRLS, clicks, datasets, fusion, metrics
from rankrls.clicks import ClickRanker, Judgments

MQ2008 = "letor4-mq2008"
METHODS = ("naive", "propensities", "expected", "positions")
RETRIEVERS = {  # columns of MQ2008, from 0
    "BM25 title": 22,
    "BM25 body": 20,
    "BM25 page": 24,
    "LM title": 32,
    "LM body": 30,
    "PageRank": 40,
    "inlinks": 41,
}
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def unpacked(archives: Path, name: str, folder: str) -> Path:
    with tarfile.open(archives / name / f"{name}.tar.xz") as tar:
        tar.extractall(Path(folder) / name, filter="data")
    return Path(folder) / name


def folds(mq2008: Path):
    for fold in range(1, 6):
        read = lambda part, fold=fold: datasets.load_letor(mq2008 / "MQ2008" / f"Fold{fold}" / f"{part}.txt")
        yield fold, read("train"), read("test")


def from_clicks(archives: Path, folder: str) -> None:
    """NDCG@10 of models that learned from simulated clicks, by what was shown and how readers read."""
    mq2008 = unpacked(archives, MQ2008, folder)
    ways = {
        "feature 46 reversed": {"column": 45},
        "feature 40 reversed": {"column": 39},
        "a random order": {},
        "a random order, cascade": {"model": "cascade"},
        "feature 46 reversed, cascade": {"column": 45, "model": "cascade"},
        "feature 46 reversed, 30 % swaps": {"column": 45, "swaps": 0.3},
    }
    print("| what was shown | " + " | ".join(METHODS) + " | true labels |\n|---|" + "---|" * 5)
    for name, given in ways.items():
        options = dict(given)
        column = options.pop("column", None)
        found: dict[str, list[float]] = {}
        for fold, train, test in folds(mq2008):
            shown = None if column is None else -train.X[:, column]
            log = clicks.simulate(train.y, train.qid, scores=shown, random_state=fold, **options)
            models = {m: ClickRanker(method=m).fit(train.X, log, train.qid) for m in METHODS}
            models["true labels"] = RankRLS().fit(train.X, train.y, qid=train.qid)
            for method, model in models.items():
                found.setdefault(method, []).append(metrics.ndcg(test.y, model.predict(test.X), test.qid, k=10))
        print(f"| {name} | " + " | ".join(f"{np.mean(v):.3f}" for v in found.values()) + " |", flush=True)


def from_runs(archives: Path, folder: str) -> None:
    """NDCG@10 on test queries of learned weights and of methods without judgments, for runs made of seven features."""
    mq2008 = unpacked(archives, MQ2008, folder)
    values: dict[str, list[np.ndarray]] = {}
    weights = []
    for _, train, test in folds(mq2008):
        runs, judged = zip(*(_runs(data) for data in (train, test)), strict=True)
        model = fusion.Fusion().fit(runs[0], judged[0])
        y = np.nan_to_num(judged[1].join(runs[1].query, runs[1].document).y)
        S = runs[1].normalised("minmax")
        scores = {"learned weights": model.predict(runs[1])}
        scores |= {"equal weights": S.mean(axis=1), "reciprocal rank fusion": runs[1].reciprocal_ranks()}
        scores |= {f"{name} alone": s for name, s in zip(runs[1].names, S.T, strict=True)}
        weights.append(model.weights_)
        for name, s in scores.items():
            values.setdefault(name, []).append(metrics.per_query("ndcg@10", y, s, runs[1].query))
    learned = np.concatenate(values["learned weights"])
    print("| | NDCG@10 | p against learned |\n|---|---|---|")
    for name, parts in sorted(values.items(), key=lambda item: -np.nanmean(np.concatenate(item[1]))):
        other = np.concatenate(parts)
        both = ~np.isnan(learned) & ~np.isnan(other)
        p = "" if name == "learned weights" else metrics.randomisation_test(learned[both], other[both], random_state=0)
        print(f"| {name} | {other[both].mean():.4f} | {p} |", flush=True)
    print(dict(zip(RETRIEVERS, np.mean(weights, axis=0).round(3).tolist(), strict=True)), model.weight_errors_.round(3))


def _runs(data: datasets.RankingData, top: int = 20) -> tuple[fusion.Runs, Judgments]:
    rows: dict[str, list[tuple[str, str, float]]] = {name: [] for name in RETRIEVERS}
    for q in np.unique(data.qid):
        here = np.flatnonzero(data.qid == q)
        for name, column in RETRIEVERS.items():
            s = data.X[here, column]
            best = here[np.argsort(-s, kind="stable")[:top]]
            rows[name] += [(str(q), str(i), float(data.X[i, column])) for i in best]
    document = np.arange(len(data.y)).astype(str)
    return fusion.Runs.of(rows), Judgments(data.qid.astype(str), document, data.y)


def sets(archives: Path, folder: str):
    """Training and test rows of four sets."""
    mq2008 = unpacked(archives, MQ2008, folder) / "MQ2008" / "Fold1"
    yield "MQ2008", *(datasets.load_letor(mq2008 / f"{part}.txt") for part in ("train", "test"))
    ohsumed = unpacked(archives, "letor2-ohsumed", folder) / "OHSUMED" / "Data" / "All" / "OHSUMED.txt"
    yield "OHSUMED 2", *_halves(datasets.load_letor(ohsumed, missing="minimum"))
    mslr = unpacked(archives, "mslr-web-fold1-5k", folder)
    yield "MSLR sample", *(datasets.load_letor(mslr / f"msn1.fold1.{part}.5k.txt") for part in ("train", "test"))
    lightgbm = unpacked(archives, "lightgbm-lambdarank", folder)
    root = next(lightgbm.rglob("rank.train")).parent
    yield "LightGBM example", *(_with_sizes(root, part) for part in ("train", "test"))


def _halves(data: datasets.RankingData) -> list[datasets.RankingData]:
    queries = np.unique(data.qid)
    first = np.isin(data.qid, queries[::2])
    return [datasets.RankingData(data.X[part], data.y[part], data.qid[part]) for part in (first, ~first)]


def _with_sizes(root: Path, part: str) -> datasets.RankingData:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(root / f"rank.{part}"), n_features=301, zero_based=True)
    sizes = np.loadtxt(root / f"rank.{part}.query", dtype=int)
    return datasets.RankingData(X.toarray(), y, np.repeat(np.arange(len(sizes)), sizes))


def confidence(archives: Path, folder: str) -> None:
    """For pairs of new queries by stated certainty, the share in the right order; every query is new once."""
    print("| data | " + " | ".join(f"{a:.0%} to {b:.0%}" for a, b in pairwise(LEVELS)) + " |")
    print("|---|" + "---|" * (len(LEVELS) - 1))
    parts = {"MQ2008, five folds": [(train, test) for _, train, test in folds(unpacked(archives, MQ2008, folder))]}
    parts |= {f"{name}, each half": [(a, b), (b, a)] for name, a, b in sets(archives, folder) if name != "MQ2008"}
    for name, splits in parts.items():
        found = [pair for train, test in splits for pair in _sure_and_right(train, test)]
        p, ok = (np.concatenate(values) for values in zip(*found, strict=True))
        cells = []
        for low, high in pairwise(LEVELS):
            there = (p >= low) & (p < high)
            cells.append(f"{ok[there].mean():.1%} of {there.sum():,} (said {p[there].mean():.1%})")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def _sure_and_right(train: datasets.RankingData, test: datasets.RankingData):
    """For each query, the stated certainty of a model about its pairs, and whether they are in the right order."""
    model = RankRLS().fit(train.X, train.y, qid=train.qid)
    for q in np.unique(test.qid):
        rows = np.flatnonzero(test.qid == q)
        i, j = (rows[k] for k in np.triu_indices(len(rows), 1))
        i, j = i[test.y[i] != test.y[j]], j[test.y[i] != test.y[j]]
        if len(i):
            p = model.probability_above(test.X[i], test.X[j])
            yield np.maximum(p, 1 - p), (p > 0.5) == (test.y[i] > test.y[j])


def constraints(archives: Path, folder: str) -> None:
    """What signs and gains cost or gain: NDCG@10 and pairwise accuracy on test queries."""
    ways = {"plain": {}, "positive": {"positive": True}, 'gain="exponential"': {"gain": "exponential"}}
    ways['gain="auto"'] = {"gain": "auto"}
    print("| data | " + " | ".join(ways) + " |\n|---|" + "---|" * len(ways))
    for name, train, test in sets(archives, folder):
        cells = []
        for params in ways.values():
            model = RankRLS(scoring="ndcg@10", **params).fit(train.X, train.y, qid=train.qid)
            scores = model.predict(test.X)
            both = metrics.ndcg(test.y, scores, test.qid, k=10), metrics.pairwise_accuracy(test.y, scores, test.qid)
            cells.append("{:.3f} / {:.3f}".format(*both) + (f" ({model.gain_})" if "gain" in params else ""))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def questions(archives: Path, folder: str) -> None:
    """Ten judged queries of MQ2008, and pairs of the others judged one by one: those of `next_pairs` or random."""
    mq2008 = unpacked(archives, MQ2008, folder)
    found: dict[str, list[list[float]]] = {"next_pairs": [], "at random": []}
    for fold, train, test in folds(mq2008):
        for start in range(3):
            judged = np.random.default_rng(start).choice(np.unique(train.qid), 10, replace=False)
            first = np.isin(train.qid, judged)
            for way, curves in found.items():
                model = RankRLS().fit(train.X[first], train.y[first], qid=train.qid[first])
                rest = datasets.RankingData(train.X[~first], train.y[~first], train.qid[~first])
                curves.append(_asked(model, rest, test, way, seed=10 * fold + start))
    print(
        "| pairs asked | " + " | ".join(str(ROUND * i) for i in range(ROUNDS + 1)) + " |\n|---|" + "---|" * (ROUNDS + 1)
    )
    for way, curves in found.items():
        print(f"| {way} | " + " | ".join(f"{value:.3f}" for value in np.mean(curves, axis=0)) + " |", flush=True)


ROUNDS, ROUND = 5, 40


def _asked(model: RankRLS, rest: datasets.RankingData, test: datasets.RankingData, way: str, seed: int) -> list[float]:
    """Pairwise accuracy on test queries after each round of questions; a pair with equal labels has no answer."""
    judge = lambda: metrics.pairwise_accuracy(test.y, model.predict(test.X), test.qid)
    rng, left, curve = np.random.default_rng(seed), np.arange(len(rest.y)), [judge()]
    for _ in range(ROUNDS):
        if way == "next_pairs":
            pairs = left[model.next_pairs(rest.X[left], rest.qid[left], ROUND)]
        else:
            first = rng.permutation(left)
            second = [rng.choice(left[rest.qid[left] == rest.qid[i]]) for i in first[: 2 * ROUND]]
            pairs = np.column_stack([first[: 2 * ROUND], second])
            pairs = pairs[pairs[:, 0] != pairs[:, 1]][:ROUND]
        left = np.setdiff1d(left, pairs)
        difference = rest.y[pairs[:, 0]] - rest.y[pairs[:, 1]]
        pairs, difference = pairs[difference != 0], difference[difference != 0]
        better = np.where((difference > 0)[:, None], pairs, pairs[:, ::-1])
        clear = ~np.all(rest.X[better[:, 0]] == rest.X[better[:, 1]], axis=1)
        model.add_pairs(rest.X, better[clear], margins=np.abs(difference[clear]))
        curve.append(judge())
    return curve


PARTS = {
    "clicks": from_clicks,
    "fusion": from_runs,
    "confidence": confidence,
    "questions": questions,
    "constraints": constraints,
}


def main(archives: str = "../shared/data", *wanted: str) -> None:
    for name in wanted or PARTS:
        print(f"\n{name}")
        with tempfile.TemporaryDirectory() as folder:
            PARTS[name](Path(archives), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
