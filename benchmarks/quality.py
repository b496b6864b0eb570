"""AutoRanker beside tree ensembles, default and tuned: ranking quality on queries nobody learned from, and CPU seconds.

    python -m benchmarks.quality [--sets NAME ...] [--models NAME ...] [--folds N] [--output FILE]

No peeking: `fit` of every model gets training rows only. Tuned trees choose from a small grid by early stopping on a
fifth of the training queries, then learn from all training queries; AutoRanker chooses by its own cross-fitting. Test
queries are predicted once. Paired randomisation tests compare AutoRanker with each tree query by query. Everything runs
on one thread, so that seconds are CPU seconds and spinning threads cost nobody anything.
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
    for name, folds in data_sets(args.folds):
        if args.sets and not any(name.startswith(start) for start in args.sets):
            continue
        if isinstance(folds, str):
            print(f"Skipped {name}: {folds}.")
            continue
        print(f"\n{name}\n{table(name, list(folds), args.models, args.output)}", flush=True)


def table(name: str, folds: list[Fold], models: list[str], output: Path | None) -> str:
    """A line for each model: means over folds, CPU seconds of a fit, p-values of the difference to AutoRanker()."""
    lines = [
        "| model | NDCG@10 | accuracy | CPU s | x LightGBM | p (NDCG) | p (accuracy) |",
        "|---|---|---|---|---|---|---|",
    ]
    results = {model: [judged(MODELS[model](), *fold) for fold in folds] for model in models}
    for model, found in results.items():
        ndcg, accuracy = ([fold[which] for fold in found] for which in ("ndcg", "accuracy"))
        seconds = float(np.mean([fold["seconds"] for fold in found]))
        beside = np.mean([fold["seconds"] for fold in results["LightGBM"]]) if "LightGBM" in results else np.nan
        p = ["", ""]
        if model != OURS and OURS in results:
            ours = [[fold[which] for fold in results[OURS]] for which in ("ndcg", "accuracy")]
            p = [f"{_p(a, b):.3f}" for a, b in zip(ours, (ndcg, accuracy), strict=True)]
        values = [float(np.mean([np.nanmean(fold) for fold in folds_])) for folds_ in (ndcg, accuracy)]
        cells = [model, *(f"{value:.4f}" for value in values), f"{seconds:.1f}", f"{seconds / beside:.1f}", *p]
        lines.append(f"| {' | '.join(cells)} |")
        if output is not None:
            record = {"set": name, "model": model, "ndcg": values[0], "accuracy": values[1], "seconds": seconds}
            with output.open("a") as file:
                file.write(json.dumps({**record, "p": p}) + "\n")
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
        "ndcg": metrics.per_query("ndcg", truth, scores, query, k=10),
        "accuracy": metrics.per_query("pairwise_accuracy", truth, scores, query),
        "seconds": seconds,
    }


def _p(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    return metrics.randomisation_test(np.concatenate(ours), np.concatenate(theirs))


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
            score = next(v for k, v in model.get_best_score()["validation"].items() if k.startswith("NDCG"))
            best.append((score, depth, rate, model.get_best_iteration() + 1))
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
