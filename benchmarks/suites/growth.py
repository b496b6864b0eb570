"""How cost grows with rows, features, lengths of queries, points, edges and objects, with fitted exponents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from benchmarks.exponent import exponent
from benchmarks.generated import search_data
from benchmarks.measure import Measured, measure
from rankrls import ConditionalRankRLS, RankRLS

Call = Callable[[], object]


class Study(NamedTuple):
    """One quantity that grows: its sizes, calls for each size, and the power that the algebra predicts."""

    what: str  # of which size is the number: "rows"
    fixed: str  # what stays the same
    sizes: Sequence[int]
    calls: Callable[[int], dict[str, Call]]  # by name of the fit
    expected: dict[str, float]


@dataclass(frozen=True)
class Grown:
    """One line: a fit of one size."""

    study: str
    fit: str
    size: int
    measured: Measured
    head: ClassVar[list[str]] = ["what grows", "fit", "size", "seconds", "CPU s", "CPU us each", "extra MB", "others"]

    @property
    def others(self) -> float:
        return self.measured.others

    @property
    def cpu(self) -> float:
        return self.measured.cpu or self.measured.seconds

    def cells(self) -> list[str]:
        found = self.measured
        numbers = [f"{self.size:,}", f"{found.seconds:.4f}", f"{self.cpu:.4f}", f"{1e6 * self.cpu / self.size:.2f}"]
        return [self.study, self.fit, *numbers, f"{found.megabytes:.0f}", f"{found.others:.0%}"]


def growth(quick: bool) -> Iterator[Grown | str]:
    """Seconds against rows, features, lengths of queries, edges, objects and basis points."""
    warnings.simplefilter("ignore", UserWarning)  # grids that were extended, objects without an edge
    for study in _studies(quick):
        lines = dict[str, list[Grown]]()
        for size in study.sizes:
            for fit, call in study.calls(size).items():
                call()  # loads and compiles what is needed
                line = Grown(f"{study.what} ({study.fixed})", fit, size, measure(call, 3))
                lines.setdefault(fit, []).append(line)
                yield line
        for fit, found in lines.items():
            power = exponent([line.size for line in found], [line.cpu for line in found])
            yield (
                f"{fit}, {study.fixed}: CPU seconds grow as {study.what} to the power {power:.2f}, where the algebra "
                f"says at most {study.expected[fit]:g}."
            )


def _studies(quick: bool) -> list[Study]:
    less = lambda sizes: sizes[:3] if quick else sizes
    one, auto, rbf = "RankRLS(alpha=1)", "RankRLS()", 'RankRLS(alpha=1, kernel="rbf")'
    edge, complete = "ConditionalRankRLS(alpha=1).fit_edges", "ConditionalRankRLS()"
    return [
        Study("rows", "46 features, float32", less([10**4, 10**5, 10**6, 10**7]), _rows, {one: 1, auto: 1}),
        Study("features", "20,000 rows", less([10, 50, 100, 500, 1000, 2000]), _features, {one: 3, auto: 3}),
        Study("rows of a query", "200,000 x 46", less([10, 100, 1000, 10**4, 10**5]), _lengths, {one: 0, auto: 1}),
        Study("rows with all as points", "46 features", less([500, 1000, 2000, 4000]), _kernel, {rbf: 3}),
        Study("points", "20,000 x 46", less([50, 100, 200, 500, 1000, 2000]), _points, {one: 3, auto: 3}),
        Study("edges", "10,000 objects, 50 features", less([10**4, 10**5, 10**6, 10**7]), _edges, {edge: 1}),
        Study("objects", "all edges", less([125, 250, 500, 1000, 2000]), _objects, {complete: 3}),
    ]


def _both(X: np.ndarray, y: np.ndarray, qid: np.ndarray, **params: object) -> dict[str, Call]:
    fits = {"RankRLS(alpha=1)": RankRLS(1.0, **params), "RankRLS()": RankRLS(**params)}
    return {name: lambda model=model: model.fit(X, y, qid=qid) for name, model in fits.items()}


def _rows(m: int) -> dict[str, Call]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 46), dtype=np.float32)
    y = np.clip(np.round(X[:, :8].sum(axis=1) / 3 + rng.standard_normal(m, dtype=np.float32) + 1), 0, 4)
    return _both(X, y, np.arange(m) // 100)


def _features(n: int) -> dict[str, Call]:
    return _both(*search_data(20_000, n))


def _lengths(documents: int) -> dict[str, Call]:
    return _both(*search_data(200_000, 46, documents))


def _kernel(m: int) -> dict[str, Call]:
    X, y, qid = search_data(m, 46)
    return {'RankRLS(alpha=1, kernel="rbf")': lambda: RankRLS(1.0, kernel="rbf").fit(X, y, qid=qid)}


def _points(r: int) -> dict[str, Call]:
    X, y, qid = search_data(20_000, 46)
    return _both(X, y, qid, kernel="rbf", basis=np.arange(0, 20_000, 20_000 // r)[:r])


def _edges(q: int) -> dict[str, Call]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 50))
    edges, y = rng.integers(len(X), size=(q, 2)), rng.normal(size=q)
    model = ConditionalRankRLS(1.0, loss="regression")
    return {"ConditionalRankRLS(alpha=1).fit_edges": lambda: model.fit_edges(X, edges, y)}


def _objects(p: int) -> dict[str, Call]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(p, 30))
    Y = X @ X.T + rng.normal(size=(p, p))
    return {"ConditionalRankRLS()": lambda: ConditionalRankRLS(kernel="rbf").fit(X, Y)}
