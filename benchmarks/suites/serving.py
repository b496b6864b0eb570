"""Scores of one query while somebody waits, compared with NumPy and other rankers; and of a million rows at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from benchmarks.generated import search_data
from benchmarks.latency import Latency, latencies
from benchmarks.measure import Row, measure
from rankrls import RankRLS, export

FEATURES, POINTS = 136, 500
NUMPY = "NumPy, X @ w"
Score = Callable[[np.ndarray], object]


def serving(quick: bool) -> Iterator[Row | Latency | str]:
    """Latency of one query of 20, 100 and 1,000 documents, and a million rows at memory bandwidth."""
    X, y, qid = search_data(20_000, FEATURES)
    scorers = {**_ours(X, y, qid), **_others(X, y, qid)}
    for documents in (20, 100, 1000):
        rows = X[:documents].copy()
        calls = {f"{name}, {documents:,} documents": lambda f=f, rows=rows: f(rows) for name, f in scorers.items()}
        bare, ours = (f"{name}, {documents:,} documents" for name in (NUMPY, "RankRLS.predict"))
        most = {ours: 20.0} if documents == 20 else None
        yield from latencies(calls, 100 if quick else 1001, beside=bare, called="NumPy", most=most)
    yield from _many(100_000 if quick else 1_000_000)


def _ours(X: np.ndarray, y: np.ndarray, qid: np.ndarray) -> dict[str, Score]:
    linear = RankRLS(1.0).fit(X, y, qid=qid)
    kernel = RankRLS(1.0, kernel="rbf", basis=POINTS, random_state=0).fit(X, y, qid=qid)
    w = linear.coef_.copy()
    return {
        NUMPY: lambda rows: rows @ w,
        "RankRLS.scorer()": linear.scorer(),
        "RankRLS.predict": linear.predict,
        f"RankRLS.scorer(), {POINTS} points": kernel.scorer(),
        f"RankRLS.predict, {POINTS} points": kernel.predict,
        "onnxruntime on the exported RankRLS": _session(linear),
    }


def _session(model: RankRLS) -> Score:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    graph = export.to_onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda rows: session.run(None, {name: rows})


def _others(X: np.ndarray, y: np.ndarray, qid: np.ndarray) -> dict[str, Score]:
    import lightgbm
    import xgboost

    sizes = np.bincount(qid)
    trees = lightgbm.LGBMRanker(verbose=-1, n_jobs=1).fit(X, y, group=sizes)
    boosted = xgboost.XGBRanker(n_jobs=1).fit(X, y, qid=qid)

    def quietly(predict: Callable[[np.ndarray], Any]) -> Score:
        def score(rows: np.ndarray) -> object:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # LightGBM misses names that it gave to columns itself
                return predict(rows)

        return score

    return {
        "scikit-learn Ridge.predict": Ridge().fit(X, y).predict,
        "LightGBM, 100 trees": quietly(trees.booster_.predict),
        "XGBoost, 100 trees": boosted.predict,
    }


def _many(m: int) -> Iterator[Row]:
    X, y, qid = search_data(m, FEATURES)
    some = slice(0, 20_000)
    linear = RankRLS(1.0).fit(X[some], y[some], qid=qid[some])
    w, what = linear.coef_.copy(), f"predict, {m:,} x {FEATURES}"
    yield Row(what, measure(lambda: linear.predict(X), 5, lambda: X @ w), "X @ w")
    Z = np.ascontiguousarray(X[:, :46])
    kernel = RankRLS(1.0, kernel="rbf", basis=POINTS, random_state=0).fit(Z[some], y[some], qid=qid[some])
    points = kernel.X_fit_
    product = lambda: [Z[i : i + 4096] @ points.T for i in range(0, m, 4096)]
    yield Row(f"predict, {m:,} x 46, {POINTS} points", measure(lambda: kernel.predict(Z), 3, product), "the GEMM alone")
