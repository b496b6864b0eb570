"""Linear models of a million rows compared with the bare product `X.T @ X`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from benchmarks.generated import ragged, search_data
from benchmarks.measure import Row, measure
from rankrls import RankRLS

FEATURES, FEW = 136, 10
GRAM, GRAM64 = "X.T @ X", "X.T @ X in float64"


class Fit(NamedTuple):
    """A fit, what runs in turn with it, and the largest ratio that is good enough."""

    what: str
    call: Callable[[], object]
    beside: Callable[[], object]
    name: str
    most: float | None = None
    repeat: int = 5
    target: str = ""

    def row(self, suffix: str = "") -> Row:
        measured = measure(self.call, self.repeat, self.beside)
        return Row(self.what + suffix, measured, self.name, self.target, self.most)


def linear(quick: bool) -> Iterator[Row]:
    """A million rows and one alpha, in turn with the bare product."""
    X, y, qid, gram = _data(quick)
    yield Row(f"{GRAM}, {len(X):,} x {FEATURES}", measure(gram, 5))
    ridge = lambda: Ridge(1.0, solver="cholesky").fit(X, y)
    yield Row("sklearn Ridge(cholesky)", measure(ridge, 3, gram), GRAM)
    yield from (fit.row() for fit in _one_alpha(X, y, qid, gram))


def held_out(quick: bool) -> Iterator[Row]:
    """A million rows and 150,000 exact refits, in turn with the bare product."""
    X, y, qid, gram = _data(quick)
    yield from (fit.row() for fit in _every_alpha(X, y, qid, gram))
    yield from (fit.row() for fit in _few_columns(len(X)))


def one_query(quick: bool) -> Iterator[Row]:
    """A million rows of one query: ten folds of its items."""
    X, y, _, gram = _data(quick)
    yield from (fit.row() for fit in _one_query(X, y, gram))


def one_thread(quick: bool) -> Iterator[Row]:
    """A million rows and one alpha with one thread each, which the load of other processes distorts least."""
    X, y, qid, gram = _data(quick)
    with threadpool_limits(1, user_api="blas"):
        yield Row(f"{GRAM}, {len(X):,} x {FEATURES}, one thread", measure(gram, 5))
        yield from _in_one_thread(_one_alpha(X, y, qid, gram))


def one_thread_held_out(quick: bool) -> Iterator[Row]:
    """A million rows and 150,000 exact refits with one thread each."""
    X, y, qid, gram = _data(quick)
    with threadpool_limits(1, user_api="blas"):
        yield from _in_one_thread(_every_alpha(X, y, qid, gram))
        yield from _in_one_thread(_few_columns(len(X)))


def _in_one_thread(fits: Iterator[Fit]) -> Iterator[Row]:
    for fit in fits:
        yield fit._replace(repeat=min(3, fit.repeat)).row(", one thread")


def _data(quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, Callable[[], object]]:
    X, y, qid = search_data(100_000 if quick else 1_000_000, FEATURES)
    return X, y, qid, lambda: X.T @ X


def _one_alpha(X: np.ndarray, y: np.ndarray, qid: np.ndarray, gram: Callable[[], object]) -> Iterator[Fit]:
    one = lambda data=X, queries=qid, **params: lambda: RankRLS(1.0, **params).fit(data, y, qid=queries)
    ids, X32 = ragged(len(X)), X.astype(np.float32)
    scattered = np.random.default_rng(0).permutation(qid)
    what = "RankRLS(alpha=1)"
    yield Fit(f"{what}, {qid[-1] + 1:,} queries", one(), gram, GRAM, 1.2, target="<= 300 MB")
    yield Fit(f"{what}, queries of ragged length", one(queries=ids), gram, GRAM, 1.2)
    yield Fit(f"{what}, tied pairs in", one(tied_pairs=True), gram, GRAM, 1.2)
    yield Fit(f"{what}, rows of a query scattered", one(queries=scattered), gram, GRAM)
    yield Fit(f"{what}, columns adjacent instead of rows", one(data=np.asfortranarray(X)), gram, GRAM)
    yield Fit(f"{what}, float32", one(data=X32), gram, GRAM64, 0.7)
    yield Fit(f"{what}, float32, ragged", one(data=X32, queries=ids), gram, GRAM64, 0.7)


def _every_alpha(X: np.ndarray, y: np.ndarray, qid: np.ndarray, gram: Callable[[], object]) -> Iterator[Fit]:
    auto = lambda data=X, queries=qid: lambda: RankRLS().fit(data, y, qid=queries)
    ids, X32 = ragged(len(X)), X.astype(np.float32)
    what = 'RankRLS(alpha="auto")'
    yield Fit(f"{what}: 15 alphas, {qid[-1] + 1:,} queries left out and scored", auto(), gram, GRAM, 3.5, 3)
    yield Fit(f"{what}, queries of ragged length", auto(queries=ids), gram, GRAM, 4.0, 3)
    yield Fit(f"{what}, float32", auto(data=X32), gram, GRAM64, 2.2, 3)
    yield Fit(f"{what}, float32, ragged", auto(data=X32, queries=ids), gram, GRAM64, None, 3)


def _few_columns(m: int) -> Iterator[Fit]:
    X, y, qid = search_data(m, FEW)
    gram = lambda: X.T @ X
    for what, model in (("RankRLS(alpha=1)", RankRLS(1.0)), ('RankRLS(alpha="auto")', RankRLS())):
        fit = lambda model=model: model.fit(X, y, qid=qid)
        yield Fit(f"{what}, {FEW} columns", fit, gram, f"{GRAM} of these", 5.0)


def _one_query(X: np.ndarray, y: np.ndarray, gram: Callable[[], object]) -> Iterator[Fit]:
    qid = np.zeros(len(X), dtype=int)
    one, auto = (lambda: RankRLS(1.0).fit(X, y, qid=qid)), (lambda: RankRLS().fit(X, y, qid=qid))
    yield Fit(f"RankRLS(alpha=1), one query of {len(X):,}", one, gram, GRAM, None, 3)
    yield Fit(f'RankRLS(alpha="auto"), one query of {len(X):,}', auto, one, "its fit with one alpha", 4.0, 3)
