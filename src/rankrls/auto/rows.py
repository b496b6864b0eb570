"""Training rows as the candidates see them, and ridge regression on their features at every alpha.

The loss covers all pairs of a query with different labels, weighted 1 / items of the query (no tied pairs,
`weighting="items"`). Alphas are in units of the mean energy of a row, trace(A'A) / m, so that one grid suits all
features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from ..core.means import Levels
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..core.statistics import Statistics, statistics
from ..core.symmetric import solve_path, solve_shifted
from ..system.lazy import cached_property
from ..system.progress import silent
from .link import Linked

ALPHAS = 10.0 ** np.arange(-3, 2.6, 0.5)
MOST_SCORES = 1000  # features of the linear candidate
BLOCK = 2048  # rows whose features are in memory at a time, except in cross-validation


class Map(Protocol):
    """Scores of columns (m, n) -> features (m, n_columns), in float32."""

    @property
    def n_columns(self) -> int: ...

    @property
    def used(self) -> np.ndarray: ...  # the columns of N that features depend on

    def __call__(self, N: np.ndarray, /) -> np.ndarray: ...


@dataclass(frozen=True)
class Scores:
    """Adjacent columns or, if there are many, their coordinates in the span of some rows."""

    start: int
    stop: int
    directions: np.ndarray | None = None  # (stop - start, n_columns)

    @classmethod
    def of(cls, N: np.ndarray, start: int, stop: int, rng: np.random.Generator) -> Scores:
        if stop - start <= MOST_SCORES:
            return cls(start, stop)
        rows = np.sort(rng.choice(len(N), min(len(N), MOST_SCORES), replace=False))
        directions = np.linalg.qr(N[rows, start:stop].T.astype(np.float64))[0].astype(np.float32)
        return cls(start, stop, directions)

    @property
    def n_columns(self) -> int:
        return self.stop - self.start if self.directions is None else self.directions.shape[1]

    @property
    def used(self) -> np.ndarray:
        return np.arange(self.start, self.stop)

    def weights(self, coef: np.ndarray) -> np.ndarray:
        """(stop - start,) the weights of the columns, for coefficients of the features."""
        return coef if self.directions is None else self.directions.astype(np.float64) @ coef

    def __call__(self, N: np.ndarray) -> np.ndarray:
        N = N[:, self.start : self.stop]
        return N if self.directions is None else N @ self.directions


@dataclass(frozen=True)
class AutoRows:
    """Rows to learn from: normal scores of their columns, labels, queries, weights."""

    in_memory: ClassVar[bool] = True  # False if sums are over more rows than these

    N: np.ndarray  # (m, n) float32, as ColumnMaps gives them
    y: np.ndarray  # (m,)
    queries: Queries
    weights: np.ndarray | None = None

    def part(self, rows: np.ndarray) -> AutoRows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return AutoRows(self.N[rows], self.y[rows], Queries.of(self.queries.codes[rows]), weights)

    def sampled(self, m: int) -> AutoRows:
        """About m rows of evenly spaced queries, or all rows if there are no more."""
        if len(self) <= m:
            return self
        step = -(-len(self) // m)
        whole = len(self.queries) >= 4 * step
        part = self.part(np.flatnonzero((self.queries.codes if whole else np.arange(len(self))) % step == 0))
        return SampledRows(part.N, part.y, part.queries, part.weights)

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def F(self) -> QueryPreferences:
        return QueryPreferences(self.queries, self.y, weighting="items", weights=self.weights)

    @cached_property
    def _levels(self) -> Levels:
        return Levels.of(self.queries, self.y, self.weights)

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """L e: row i gets the sum over the rows j of its query with other labels of u_i u_j (e_i - e_j) / S."""
        levels, codes, S = self._levels, self.queries.codes, self.F.S
        u = np.ones(len(self)) if self.weights is None else self.weights
        weighted = u * residual
        others = self.queries.sum(weighted)[codes] - np.bincount(levels.level, weights=weighted)[levels.level]
        return u / S[codes] * ((S[codes] - levels.weight[levels.level]) * residual - others)

    def sums(self, features: Map | np.ndarray, target: np.ndarray | None = None) -> Statistics:
        """The sums of features and labels (or another target); applies a map to one batch of rows at a time."""
        if isinstance(features, np.ndarray):
            Phi = features
            read, n = (lambda rows: Phi[rows]), Phi.shape[1]
        else:
            map_ = features
            read, n = (lambda rows: map_(self.N[rows])), map_.n_columns
        y = self.y if target is None else target
        return statistics(self.F, lambda: read, y[:, None], n, np.float32)

    def sums_through(self, linked: Linked, Phi: np.ndarray | None = None, f: np.ndarray | None = None) -> Statistics:
        """The sums of the next Gauss-Newton step: of features g'(f) Phi and labels y - g(f) + g'(f) f.

        `Phi` are the features of these rows, and f their scores, if they are known.
        """
        f = linked.scores(self.N) if f is None else f
        slope = linked.link.slope(f)
        y, slope = self.y - linked.link(f) + slope * f, slope.astype(np.float32)[:, None]
        read = lambda rows: slope[rows] * (linked.features(self.N[rows]) if Phi is None else Phi[rows])
        return statistics(self.F, lambda: read, y[:, None], linked.features.n_columns, np.float32)


@dataclass(frozen=True)
class SampledRows(AutoRows):
    """Rows that stand for many others: their sums are a small part of the work, and report no progress."""

    def sums(self, features: Map | np.ndarray, target: np.ndarray | None = None) -> Statistics:
        sums = super().sums
        return silent(lambda features: sums(features, target))(features)


@dataclass(frozen=True)
class Penalised:
    """A'A and A'z in coordinates v whose penalty is |v|^2, and the map back to coefficients of features."""

    gram: np.ndarray  # (k, k)
    cross: np.ndarray  # (k,)
    unit: float  # the mean energy of a row, the unit of alphas
    penalty: np.ndarray | None

    @classmethod
    def of(cls, sums: Statistics, penalty: np.ndarray | None = None) -> Penalised:
        """`penalty` is None for |w|^2, a scale (r,) for |w / scale|^2, zero where a feature is left out, or a
        triangular C (r, r) for |C w|^2."""
        gram, cross = sums.gram, sums.cross[:, 0]
        if penalty is not None and penalty.ndim == 1:
            used = np.flatnonzero(penalty)
            scale = penalty[used]
            gram = scale[:, None] * (gram if len(used) == len(penalty) else gram[used][:, used])
            gram *= scale
            cross = scale * cross[used]
        elif penalty is not None:
            lower, _ = lapack.dsygst(gram.T, penalty.T, lower=1)
            gram = np.tril(lower) + np.tril(lower, -1).T
            cross = linalg.solve_triangular(penalty, cross, trans="T", check_finite=False)
        unit = max(float(np.trace(gram)) / max(sums.n_rows, 1), 1e-30)
        return cls(gram, cross, unit, penalty)

    def coef(self, V: np.ndarray) -> np.ndarray:
        """(r, a) the coefficients of the features, for V (k, a)."""
        if self.penalty is None:
            return V
        if self.penalty.ndim == 2:
            return linalg.solve_triangular(self.penalty, V, check_finite=False)
        found = np.zeros((len(self.penalty), V.shape[1]))
        used = np.flatnonzero(self.penalty)
        found[used] = self.penalty[used, None] * V
        return found


def solve(sums: Statistics, alphas: float | np.ndarray, penalty: np.ndarray | None = None) -> np.ndarray:
    """Coefficients at one alpha (r,), or at each of several (r, n_alphas)."""
    white = Penalised.of(sums, penalty)
    if np.ndim(alphas):
        return white.coef(solve_path(white.gram, np.asarray(alphas) * white.unit, white.cross))
    alpha = float(alphas) * white.unit
    try:
        found = solve_shifted(white.gram, alpha, white.cross)[:, None]
    except np.linalg.LinAlgError:  # rounding of the sums is larger than alpha
        found = solve_path(white.gram, np.array([alpha]), white.cross)
    return white.coef(found)[:, 0]


def leading(sums: Statistics, k: int) -> Statistics:
    """The sums of the first k features."""
    rounding = None if sums.rounding is None else sums.rounding[:k]
    gram = sums.gram[:k, :k].copy()
    return replace(sums, gram=gram, cross=sums.cross[:k], mean=sums.mean[:k], rounding=rounding)


def in_blocks(work: Callable[[np.ndarray], np.ndarray], N: np.ndarray, rows: int = BLOCK) -> np.ndarray:
    """`work` on blocks of rows, with concatenated results."""
    if len(N) <= rows:
        return work(N)
    return np.concatenate([work(N[i : i + rows]) for i in range(0, len(N), rows)])
