"""Gaussian kernels: of all rows, and on basis points."""

from __future__ import annotations

from collections.abc import Iterator

from scipy import linalg
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks.generated import search_data
from benchmarks.measure import Row, measure
from rankrls import RankRLS
from rankrls.bases import RandomRows
from rankrls.kernels import Gaussian

WIDTH = 1 / 46


def kernel(quick: bool) -> Iterator[Row]:
    """Gaussian kernel of all rows."""
    m = 1_000 if quick else 4_000
    X, y, qid = search_data(m, 46)
    gaussian = Gaussian(WIDTH)
    K = gaussian(X, X)
    krr = lambda: KernelRidge(alpha=1.0, kernel="rbf", gamma=WIDTH).fit(X, y)
    one = lambda: RankRLS(1.0, kernel=gaussian).fit(X, y, qid=qid)
    auto = lambda: RankRLS(kernel=gaussian).fit(X, y, qid=qid)
    what, beside = f"RankRLS(alpha=1, Gaussian), {m:,} rows", "sklearn KernelRidge"
    yield Row(what, measure(one, 5, krr), beside, most=1.2)
    with threadpool_limits(1, user_api="blas"):
        yield Row(f"{what}, one thread", measure(one, 3, krr), beside, most=1.2)
    what = 'RankRLS(alpha="auto", Gaussian): 15 alphas, leave-query-out'
    yield Row(what, measure(auto, 3, lambda: linalg.eigh(K)), "scipy.linalg.eigh of that size", most=2.0)


def sparse(quick: bool) -> Iterator[Row]:
    """Gaussian kernel on basis points: Sparse RankRLS."""
    m = 20_000 if quick else 100_000
    X, y, qid = search_data(m, 46)
    for r in (500, 1_000 if quick else 2_000):
        model = {"kernel": Gaussian(WIDTH), "basis": RandomRows(r), "random_state": 0}
        theirs = make_pipeline(Nystroem(gamma=WIDTH, n_components=r, random_state=0), Ridge(1.0))
        peer = lambda theirs=theirs: theirs.fit(X, y)
        one = lambda model=model: RankRLS(1.0, **model).fit(X, y, qid=qid)
        auto = lambda model=model: RankRLS(**model).fit(X, y, qid=qid)
        size, beside = f"{m:,} x 46, {r:,} points", "sklearn Nystroem + Ridge"
        yield Row(f"RankRLS(alpha=1), {size}", measure(one, 3 if r == 500 else 1, peer), beside, most=1.2)
        what = f'RankRLS(alpha="auto"), {size}, leave-query-out'
        yield Row(what, measure(auto, 3 if r == 500 else 1, peer), beside, most=3.0)
        if r == 500:
            with threadpool_limits(1, user_api="blas"):
                yield Row(f"{what}, one thread", measure(auto, 1, peer), beside, most=3.0)
        yield Row(beside, measure(peer, 1))
    m = 100_000 if quick else 1_000_000
    X, y, qid = search_data(m, 46)
    big = lambda: RankRLS(kernel=Gaussian(WIDTH), basis=RandomRows(500), random_state=0).fit(X, y, qid=qid)
    yield Row(f'RankRLS(alpha="auto"), {m:,} x 46, 500 points', measure(big, 1), target="<= 2000 MB")
