"""AutoRanker beside tree ensembles, default and tuned: ranking quality on queries nobody learned from, and CPU seconds.

    python -m benchmarks.quality [--sets NAME ...] [--models NAME ...] [--folds N] [--output FILE]

No peeking: `fit` of every model gets training rows only. Tuned trees choose from a small grid by early stopping on a
fifth of the training queries, then learn from all training queries; AutoRanker chooses by its own cross-fitting. Test
queries are predicted once. Paired randomisation tests compare AutoRanker with each tree query by query. Everything runs
on one thread, so that seconds are CPU seconds. FILE keeps each run: what is in it is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.generated import Rows, interacting_data, search_data
from benchmarks.published import published
from rankrls import AutoRanker, RankRLS, metrics

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], Predict]
Fold = tuple[Rows, Rows]
GRID = [(leaves, rate) for leaves in (7, 31) for rate in (0.03, 0.1)]
ROUNDS, PATIENCE = 1000, 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", help="beginnings of names of data sets; all without")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--folds", type=int, default=5, help="folds of the public sets, seeds of the generated ones")
    parser.add_argument("--output", type=Path, help="a file of JSON lines to append to")
    args = parser.parse_args()
    done = _read(args.output)
    for name, folds in data_sets(args.folds):
        if args.sets and not any(name.startswith(start) for start in args.sets):
            continue
        if isinstance(folds, str):
            print(f"Skipped {name}: {folds}.")
            continue
        for number, fold in enumerate(folds):
            for model in args.models:
                if (name, number, model) not in done:
                    done[name, number, model] = judged(MODELS[model](), *fold)
                    _write(args.output, name, number, model, done[name, number, model])
        print(f"\n{name}\n\n{table(name, done)}", flush=True)


def _read(path: Path | None) -> dict[tuple[str, int, str], dict[str, Any]]:
    """The runs of a file by data set, fold and model."""
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    records = map(json.loads, lines)
    return {(record["set"], record["fold"], record["model"]): record for record in records}


def _write(path: Path | None, name: str, fold: int, model: str, found: dict[str, Any]) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps({"set": name, "fold": fold, "model": model, **found}) + "\n")


def table(name: str, done: dict[tuple[str, int, str], dict[str, Any]]) -> str:
    """A line for each model: means over folds, CPU seconds of a fit, p-values of the difference to AutoRanker()."""
    head = ["model", "folds", "NDCG@10", "accuracy", "CPU s", "x LightGBM", "p (NDCG)", "p (accuracy)"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    runs = {model: {k[1]: run for k, run in done.items() if (k[0], k[2]) == (name, model)} for model in MODELS}
    for model, found in runs.items():
        if not found:
            continue
        value = {which: np.mean([np.nanmean(run[which]) for run in found.values()]) for which in ("ndcg", "accuracy")}
        seconds = float(np.mean([run["seconds"] for run in found.values()]))
        beside = [runs["LightGBM"][fold]["seconds"] for fold in found if fold in runs["LightGBM"]]
        ratio = f"{seconds / np.mean(beside):.1f}" if beside else ""
        p = ["" if model == OURS else _p(runs[OURS], found, which) for which in ("ndcg", "accuracy")]
        cells = [
            model,
            str(len(found)),
            f"{value['ndcg']:.4f}",
            f"{value['accuracy']:.4f}",
            f"{seconds:.1f}",
            ratio,
            *p,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def judged(fit: Fit, train: Rows, test: Rows) -> dict[str, Any]:
    """Values of each test query, and the CPU seconds of the fit. The model sees labels of training rows only."""
    (X, y, qid), (new, truth, query) = train, test
    with threadpool_limits(1):
        start = time.process_time()
        predict = fit(X, y, _numbered(qid))
        seconds = time.process_time() - start
        scores = predict(new, _numbered(query))
    return {
        "seconds": seconds,
        "ndcg": metrics.per_query("ndcg", truth, scores, query, k=10).tolist(),
        "accuracy": metrics.per_query("pairwise_accuracy", truth, scores, query).tolist(),
    }


def _p(ours: dict[int, Any], theirs: dict[int, Any], which: str) -> str:
    """The p-value of the difference, over the queries of the folds that both were run on."""
    both = [fold for fold in ours if fold in theirs]
    if not both:
        return ""
    a, b = (np.concatenate([runs[fold][which] for fold in both]) for runs in (ours, theirs))
    return f"{metrics.randomisation_test(a, b):.3f}"


def _numbered(qid: np.ndarray) -> np.ndarray:
    """Queries numbered as they come: their rows lie together in all these sets."""
    first, inverse = np.unique(qid, return_index=True, return_inverse=True)[1:]
    return np.argsort(np.argsort(first))[inverse]


# ---------------------------------------------------------------- data


def data_sets(folds: int) -> Iterator[tuple[str, Iterable[Fold] | str]]:
    """Public sets with their own test queries; generated ones with fresh ones, a seed for each fold."""
    yield from published(folds)
    for m, n in ((10_000, 46), (10_000, 136), (100_000, 46), (1_000_000, 46)):
        seeds = range(min(folds, max(1, 100_000 // m)))
        yield f"interactions, {m:,} x {n}", map(partial(_generated, interacting_data, m, n), seeds)
    yield "linear signal, 10,000 x 46", (_generated(search_data, 10_000, 46, seed) for seed in range(folds))
    yield "small, 300 x 30", (_generated(search_data, 300, 30, seed, documents=10) for seed in range(folds))


def _generated(make: Any, m: int, n: int, seed: int, documents: int = 100) -> Fold:
    X, y, qid = make(m + 20_000, n, documents=documents, seed=seed)
    return (X[:m], y[:m], qid[:m]), (X[m:], y[m:], qid[m:])


# ---------------------------------------------------------------- models

OURS = "AutoRanker()"


def _auto(effort: str) -> Callable[[], Fit]:
    def fit(X, y, qid):
        model = AutoRanker(effort=effort).fit(X, y, qid=qid)
        return model.predict

    return lambda: fit


def _linear() -> Fit:
    def fit(X, y, qid):
        model = RankRLS().fit(X, y, qid=qid)
        return lambda X, qid: model.predict(X)

    return fit


def _lightgbm() -> Fit:
    from lightgbm import LGBMRanker

    def fit(X, y, qid):
        model = LGBMRanker(verbose=-1, n_jobs=1).fit(X, y, group=np.bincount(qid))
        return lambda X, qid: model.predict(X)

    return fit


def _lightgbm_tuned() -> Fit:
    from lightgbm import LGBMRanker, early_stopping

    def make(leaves, rate, rounds):
        return LGBMRanker(num_leaves=leaves, learning_rate=rate, n_estimators=rounds, verbose=-1, n_jobs=1)

    def fit(X, y, qid):
        a, b = _held_out_fifth(qid)
        best = []
        for leaves, rate in GRID:
            stop = early_stopping(PATIENCE, verbose=False)
            shown = {"eval_set": [(X[b], y[b])], "eval_group": [np.bincount(_numbered(qid[b]))], "eval_at": [10]}
            model = make(leaves, rate, ROUNDS)
            model.fit(X[a], y[a], group=np.bincount(_numbered(qid[a])), callbacks=[stop], **shown)
            best.append((model.best_score_["valid_0"]["ndcg@10"], leaves, rate, model.best_iteration_))
        model = make(*max(best)[1:]).fit(X, y, group=np.bincount(qid))
        return lambda X, qid: model.predict(X)

    return fit


def _xgboost() -> Fit:
    from xgboost import XGBRanker

    def fit(X, y, qid):
        model = XGBRanker(n_jobs=1).fit(X, y, qid=qid)
        return lambda X, qid: model.predict(X)

    return fit


def _xgboost_tuned() -> Fit:
    from xgboost import XGBRanker

    def fit(X, y, qid):
        a, b = _held_out_fifth(qid)
        best = []
        for depth, rate in ((3, 0.03), (3, 0.1), (6, 0.03), (6, 0.1)):
            known = {"max_depth": depth, "learning_rate": rate, "n_jobs": 1}
            model = XGBRanker(**known, n_estimators=ROUNDS, early_stopping_rounds=PATIENCE, eval_metric="ndcg@10")
            model.fit(X[a], y[a], qid=qid[a], eval_set=[(X[b], y[b])], eval_qid=[qid[b]], verbose=False)
            best.append((model.best_score, model.best_iteration + 1, depth, rate))
        _, rounds, depth, rate = max(best)
        model = XGBRanker(max_depth=depth, learning_rate=rate, n_estimators=rounds, n_jobs=1).fit(X, y, qid=qid)
        return lambda X, qid: model.predict(X)

    return fit


CATBOOST = {"loss_function": "YetiRank", "verbose": False, "allow_writing_files": False, "thread_count": 1}


def _catboost() -> Fit:
    from catboost import CatBoostRanker

    def fit(X, y, qid):
        model = CatBoostRanker(iterations=100, **CATBOOST).fit(X, y, group_id=qid)
        return lambda X, qid: model.predict(X)

    return fit


def _catboost_tuned() -> Fit:
    from catboost import CatBoostRanker, Pool

    def fit(X, y, qid):
        a, b = _held_out_fifth(qid)
        best = []
        for depth, rate in ((4, 0.1), (6, 0.1)):
            settings = {"depth": depth, "learning_rate": rate, **CATBOOST}
            model = CatBoostRanker(iterations=400, eval_metric="NDCG:top=10", **settings)
            shown = Pool(X[b], y[b], group_id=qid[b])
            model.fit(X[a], y[a], group_id=qid[a], eval_set=shown, early_stopping_rounds=PATIENCE)
            score = metrics.ndcg(y[b], model.predict(X[b]), qid[b], k=10)
            best.append((score, depth, rate, model.tree_count_))
        _, depth, rate, rounds = max(best)
        model = CatBoostRanker(iterations=rounds, depth=depth, learning_rate=rate, **CATBOOST).fit(X, y, group_id=qid)
        return lambda X, qid: model.predict(X)

    return fit


def _held_out_fifth(qid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, and those of a fifth of the training queries to stop early by."""
    queries = np.random.default_rng(0).permutation(int(qid.max()) + 1)
    held = np.isin(qid, queries[: max(1, len(queries) // 5)])
    return np.flatnonzero(~held), np.flatnonzero(held)


MODELS: dict[str, Callable[[], Fit]] = {
    OURS: _auto("normal"),
    'AutoRanker(effort="fast")': _auto("fast"),
    "RankRLS()": _linear,
    "LightGBM": _lightgbm,
    "LightGBM, tuned": _lightgbm_tuned,
    "XGBoost": _xgboost,
    "XGBoost, tuned": _xgboost_tuned,
    "CatBoost": _catboost,
    "CatBoost, tuned": _catboost_tuned,
}


if __name__ == "__main__":
    main()
