"""Small data: a few thousand rows with alpha chosen, and fits of a millisecond compared with what LAPACK needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import linalg
from sklearn.linear_model import RidgeCV

from benchmarks.generated import search_data
from benchmarks.latency import Latency, latencies
from benchmarks.measure import Row, measure
from rankrls import RankRLS

LAPACK = "the bare product, Cholesky factor and solution"


def small(quick: bool) -> Iterator[Row | Latency]:
    """The size of most data sets, and fits of a millisecond."""
    X, y, qid = search_data(20_000, 46)
    auto = lambda: RankRLS().fit(X, y, qid=qid)
    cv = lambda: RidgeCV(np.logspace(-3, 4, 15)).fit(X, y)
    what = 'RankRLS(alpha="auto"), 20,000 x 46, 200 queries'
    yield Row(what, measure(auto, 9, cv), "sklearn RidgeCV, 15 alphas, single rows left out", "well under 1 s")
    wide = np.random.default_rng(0).normal(size=(30, 300))
    for rows, queries in ((X[:300, :30].copy(), qid[:300]), (wide, np.repeat(np.arange(3), 10))):
        grades, size = y[: len(rows)], f"{len(rows)} x {rows.shape[1]}"
        bare, ours = f"{LAPACK}, {size}", f"RankRLS(alpha=1), {size}"
        calls = {
            bare: lambda rows=rows, grades=grades: _bare_ridge(rows, grades),
            ours: lambda rows=rows, grades=grades, queries=queries: RankRLS(1.0).fit(rows, grades, qid=queries),
        }
        yield from latencies(calls, 50 if quick else 501, beside=bare, called="LAPACK", most={ours: 1000})


def _bare_ridge(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a fit needs from BLAS and LAPACK, in the smaller of the two dimensions."""
    tall = len(X) >= X.shape[1]
    G, b = (X.T @ X, X.T @ y) if tall else (X @ X.T, y)
    G[np.diag_indices_from(G)] += 1.0
    factor = linalg.lapack.dpotrf(G.T, lower=1)[0]
    w = linalg.lapack.dpotrs(factor, b, lower=1)[0]
    return w if tall else X.T @ w
