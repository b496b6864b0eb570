"""Ranking pursuit: columns of a million rows, kernel dictionaries, wide features, views that agree, small fits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import OrthogonalMatchingPursuit
from threadpoolctl import threadpool_limits

from benchmarks.generated import search_data
from benchmarks.measure import Row, measure
from rankrls import RankingPursuit, View
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.kernels import Gaussian
from rankrls.problems.dictionary import Columns, KernelAtoms, Whitened
from rankrls.problems.pursuit import Supervised


def pursuit(quick: bool) -> Iterator[Row]:
    """Ranking pursuit: columns of a million rows, kernel dictionaries, wide features, views that agree, small fits."""
    yield from _columns(quick)
    yield from _kernel_dictionary(quick)
    yield from _agreeing_views(quick)
    yield from _small_pursuits()


def _columns(quick: bool) -> Iterator[Row]:
    m, n, steps = (100_000 if quick else 1_000_000), 136, 50
    X, y, qid = search_data(m, n)
    gram = lambda: X.T @ X
    one = lambda: RankingPursuit(steps, kernel=None).fit(X, y, qid=qid)
    what, beside, target = f"RankingPursuit({steps}, kernel=None), {m:,} x {n}", "X.T @ X", "<= 300 MB"
    yield Row(what, measure(one, 3, gram), beside, target, 4.0)
    with threadpool_limits(1, user_api="blas"):
        yield Row(f"{what}, one thread", measure(one, 3, gram), beside, target, 4.0)
    auto = lambda: RankingPursuit(kernel=None, max_basis=steps).fit(X, y, qid=qid)
    yield Row(f"the same, up to {steps} columns by hold-out", measure(auto, 1, gram), beside)


def _kernel_dictionary(quick: bool) -> Iterator[Row]:
    m, n, steps = (4_000, 1_000, 50) if quick else (20_000, 5_000, 200)
    X, y, qid = search_data(m, 46)
    kernel, points = Gaussian(1 / 46), X[:n]
    F = QueryPreferences(Queries.of(qid), y, weighting="items")
    A, z = Whitened.of(F, KernelAtoms(X, kernel, points).reader(slice(0, n)), n).A, F @ y

    def bare() -> None:
        D = X @ points.T
        for _ in range(steps):
            z @ D

    one = lambda **params: lambda: RankingPursuit(steps, kernel=kernel, basis=points, **params).fit(X, y, qid=qid)
    theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=steps, fit_intercept=False)
    omp = lambda: theirs.fit(A, z)
    size, beside = f"{m:,} rows, {n:,} atoms, {steps} steps", f"its GEMM and {steps} GEMVs"
    yield Row(f"X @ Z.T and {steps} products with it", measure(bare, 2))
    yield Row(f"RankingPursuit, {size}", measure(one(), 3, bare), beside, most=3.0)
    yield Row("the same, the plain update", measure(one(backfit=False), 1, bare), beside)
    yield Row("the same", measure(one(), 1, omp), "sklearn OrthogonalMatchingPursuit, given F K")
    wide = np.random.default_rng(0).normal(size=(2_000, n))
    feature = lambda: RankingPursuit(50, kernel=None).fit(wide, y[:2_000], qid=qid[:2_000])
    yield Row(f"RankingPursuit(50, kernel=None), 2,000 x {n:,}", measure(feature, 3))


def _agreeing_views(quick: bool) -> Iterator[Row]:
    m, n = (20_000, 200) if quick else (100_000, 1_000)
    X, y, qid = search_data(m + 1_000, 46)
    y[1_000:] = np.nan
    views = [View(None, Gaussian(1 / 46), np.arange(n)), View(None, Gaussian(1 / 92), np.arange(n, 2 * n))]
    Z = np.random.default_rng(0).normal(size=(m, 2 * n))
    one = lambda: RankingPursuit(50, views=views, nu=0.1).fit(X, y, qid=qid)
    size = f"{m:,} unscored rows, {n:,} atoms in each of 2 views, 50 steps"
    yield Row(f"RankingPursuit, {size}", measure(one, 2, lambda: Z.T @ Z), "Z.T @ Z of that size", "one GEMM")


def _small_pursuits() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 300)), rng.normal(size=30)
    K, queries = Gaussian(1 / 300)(X, X), Queries.single(30)

    def checked_before() -> None:
        F = QueryPreferences(queries, y, weighting="items")
        Supervised(F, Columns(K), y[:, None]).path(10)

    yield Row("RankingPursuit(10), 30 x 300", measure(lambda: RankingPursuit(10).fit(X, y), 101))
    yield Row('RankingPursuit("auto"), 30 x 300, 5 folds', measure(lambda: RankingPursuit().fit(X, y), 31))
    yield Row("problems.pursuit.Supervised(...).path(10), kernel given", measure(checked_before, 101))
