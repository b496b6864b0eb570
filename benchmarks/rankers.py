"""The rankers of `benchmarks.quality`: AutoRanker, RankRLS and tree ensembles, default and tuned, each on one thread.

A fit gets training rows only. Tuned trees choose among a few settings and the number of trees by NDCG@10 on a fifth of
the *training* queries, then learn from all training queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from rankrls import AutoRanker, RankRLS, metrics

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]  # X, qid -> scores
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], Predict]  # X, y, qid, numbered as they come

warnings.filterwarnings("ignore", module="lightgbm")  # of parameters renamed between its versions
MOST_TREES, PATIENCE = 1000, 50
LIGHTGBM = [
    {"num_leaves": leaves, "learning_rate": rate, "min_child_samples": least}
    for leaves, rate, least in product((7, 31), (0.03, 0.1), (20, 100))
]
XGBOOST = [
    {"max_depth": depth, "learning_rate": rate, "min_child_weight": least}
    for depth, rate, least in product((3, 6), (0.03, 0.1), (1, 20))
]
CATBOOST = [{"depth": depth, "learning_rate": rate} for depth, rate in product((4, 6), (0.05, 0.1, 0.2))]
OURS = "AutoRanker()"


def auto(**settings: Any) -> Fit:
    return lambda X, y, qid: AutoRanker(**settings).fit(X, y, qid=qid).predict


def linear(X, y, qid) -> Predict:
    model = RankRLS().fit(X, y, qid=qid)
    return lambda X, qid: model.predict(X)


def lightgbm(X, y, qid, **settings: Any) -> Predict:
    from lightgbm import LGBMRanker

    model = LGBMRanker(verbose=-1, n_jobs=1, **settings).fit(X, y, group=np.bincount(qid))
    return lambda X, qid: model.predict(X, num_threads=1)


def lightgbm_tuned(X, y, qid) -> Predict:
    from lightgbm import LGBMRanker, early_stopping

    a, b = held_out_fifth(qid)
    shown = {"eval_set": [(X[b], y[b])], "eval_group": [np.bincount(numbered(qid[b]))], "eval_at": [10]}
    found = []
    for settings in LIGHTGBM:
        model = LGBMRanker(n_estimators=MOST_TREES, verbose=-1, n_jobs=1, **settings)
        stop = early_stopping(PATIENCE, verbose=False)
        model.fit(X[a], y[a], group=np.bincount(numbered(qid[a])), callbacks=[stop], **shown)
        found.append((model.best_score_["valid_0"]["ndcg@10"], {**settings, "n_estimators": model.best_iteration_}))
    return lightgbm(X, y, qid, **_best(found))


def xgboost(X, y, qid, **settings: Any) -> Predict:
    from xgboost import XGBRanker

    model = XGBRanker(n_jobs=1, **settings).fit(X, y, qid=qid)
    return lambda X, qid: model.predict(X)


def xgboost_tuned(X, y, qid) -> Predict:
    from xgboost import XGBRanker

    a, b = held_out_fifth(qid)
    shown = {"eval_set": [(X[b], y[b])], "eval_qid": [qid[b]], "verbose": False}
    found = []
    for settings in XGBOOST:
        stop = {"n_estimators": MOST_TREES, "early_stopping_rounds": PATIENCE, "eval_metric": "ndcg@10"}
        model = XGBRanker(n_jobs=1, **stop, **settings).fit(X[a], y[a], qid=qid[a], **shown)
        found.append((model.best_score, {**settings, "n_estimators": model.best_iteration + 1}))
    return xgboost(X, y, qid, **_best(found))


def catboost(X, y, qid, **settings: Any) -> Predict:
    """With 100 trees, the default of the others, unless told otherwise."""
    from catboost import CatBoostRanker

    settings = {"iterations": 100, **settings}
    model = CatBoostRanker(verbose=False, allow_writing_files=False, thread_count=1, **settings)
    model.fit(X, y, group_id=qid)
    return lambda X, qid: model.predict(X, thread_count=1)


def catboost_tuned(X, y, qid) -> Predict:
    from catboost import CatBoostRanker, Pool

    a, b = held_out_fifth(qid)
    found = []
    for settings in CATBOOST:
        model = CatBoostRanker(
            iterations=MOST_TREES // 2, eval_metric="NDCG:top=10;type=Exp", thread_count=1,
            verbose=False, allow_writing_files=False, **settings,
        )  # fmt: skip
        shown = Pool(X[b], y[b], group_id=qid[b])
        model.fit(X[a], y[a], group_id=qid[a], eval_set=shown, early_stopping_rounds=PATIENCE)
        score = metrics.ndcg(y[b], model.predict(X[b]), qid[b], k=10)
        found.append((score, {**settings, "iterations": model.tree_count_}))
    return catboost(X, y, qid, **_best(found))


def held_out_fifth(qid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from, and the rows of a fifth of the training queries to choose by."""
    queries = np.random.default_rng(0).permutation(int(qid.max()) + 1)
    held = np.isin(qid, queries[: max(1, len(queries) // 5)])
    return np.flatnonzero(~held), np.flatnonzero(held)


def numbered(qid: np.ndarray) -> np.ndarray:
    """Queries numbered in order of appearance: their rows are adjacent in all these sets."""
    first, inverse = np.unique(qid, return_index=True, return_inverse=True)[1:]
    return np.argsort(np.argsort(first))[inverse]


def _best(found: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    return max(found, key=lambda pair: pair[0])[1]


RANKERS: dict[str, Fit] = {
    OURS: auto(),
    'AutoRanker(effort="fast")': auto(effort="fast"),
    'AutoRanker(effort="best")': auto(effort="best"),
    "RankRLS()": linear,
    "LightGBM": lightgbm,
    "LightGBM, tuned": lightgbm_tuned,
    "XGBoost": xgboost,
    "XGBoost, tuned": xgboost_tuned,
    "CatBoost": catboost,
    "CatBoost, tuned": catboost_tuned,
}
TREES = tuple(name for name in RANKERS if name.startswith(("LightGBM", "XGBoost", "CatBoost")))
