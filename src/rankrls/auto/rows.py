"""Training rows as the candidates see them, and ridge regression on features of theirs for every alpha.

The loss is that of all pairs of a query with different labels, each weighing 1 / items of the query (tied pairs out,
`weighting="items"`). Alphas are in units of the mean energy of a row, trace(A'A) / m, so one grid suits all features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..core.statistics import Statistics, statistics
from ..problems.solved import model_at

ALPHAS = 10.0 ** np.arange(-3, 2.6, 0.5)
MOST_SCORES = 1000  # features of the linear candidate
BLOCK = 4096  # rows whose features are in memory at a time, outside cross-validation


class Map(Protocol):
    """Scores of columns (m, n) -> features (m, n_columns), in float32."""

    @property
    def n_columns(self) -> int: ...

    def __call__(self, N: np.ndarray, /) -> np.ndarray: ...


@dataclass(frozen=True)
class Scores:
    """The scores themselves or, where columns are many, their coordinates in the span of some rows."""

    n_columns: int
    directions: np.ndarray | None = None  # (n, n_columns)

    @classmethod
    def of(cls, N: np.ndarray, rng: np.random.Generator) -> Scores:
        n = N.shape[1]
        if n <= MOST_SCORES:
            return cls(n)
        rows = np.sort(rng.choice(len(N), min(len(N), MOST_SCORES), replace=False))
        directions = np.linalg.qr(N[rows].T.astype(np.float64))[0].astype(np.float32)
        return cls(directions.shape[1], directions)

    @property
    def projects(self) -> bool:
        """Whether features are not the scores themselves."""
        return self.directions is not None

    def __call__(self, N: np.ndarray) -> np.ndarray:
        return N if self.directions is None else N @ self.directions


@dataclass(frozen=True)
class AutoRows:
    """Rows to learn from: normal scores of their columns, labels, queries, weights."""

    N: np.ndarray  # (m, n) float32
    y: np.ndarray  # (m,)
    queries: Queries
    weights: np.ndarray | None = None

    def part(self, rows: np.ndarray) -> AutoRows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return AutoRows(self.N[rows], self.y[rows], Queries.of(self.queries.codes[rows]), weights)

    def sampled(self, m: int) -> AutoRows:
        """The rows of evenly spaced queries, about m of them; all where there are no more."""
        if len(self) <= m:
            return self
        step = -(-len(self) // m)
        whole = len(self.queries) >= 4 * step
        return self.part(np.flatnonzero((self.queries.codes if whole else np.arange(len(self))) % step == 0))

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def F(self) -> QueryPreferences:
        return QueryPreferences(self.queries, self.y, weighting="items", weights=self.weights)

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """L e."""
        return self.F.T @ (self.F @ residual)

    def sums(self, features: Map | np.ndarray, target: np.ndarray | None = None) -> Statistics:
        """The sums of features and labels (or of another target); a map is applied to a batch of rows at a time."""
        if isinstance(features, np.ndarray):
            Phi = features
            read, n = (lambda rows: Phi[rows]), Phi.shape[1]
        else:
            map_ = features
            read, n = (lambda rows: map_(self.N[rows])), map_.n_columns
        y = self.y if target is None else target
        return statistics(self.F, lambda: read, y[:, None], n, np.float32)


def unit(sums: Statistics) -> float:
    """The mean energy of a row: what alphas are multiples of."""
    return max(float(np.trace(sums.gram)) / max(sums.n_rows, 1), 1e-30)


def solve(sums: Statistics, alpha: float, scale: np.ndarray | None = None) -> np.ndarray:
    """(r,) coefficients at one alpha; with `scale` those of features multiplied by it, for the features as they are."""
    if scale is None:
        penalty = alpha * unit(sums)
        return model_at(penalty, sums, None, np.float64).coef[:, 0]
    used = np.flatnonzero(scale)
    coef = np.zeros(len(scale))
    coef[used] = scale[used] * solve(scaled(sums, scale), alpha)
    return coef


def solve_all(sums: Statistics, scale: np.ndarray | None = None) -> np.ndarray:
    """(r, n_alphas) coefficients at every alpha: a Cholesky factor each costs less than the eigenvectors."""
    if scale is None:
        return np.stack([solve(sums, alpha) for alpha in ALPHAS], axis=1)
    used = np.flatnonzero(scale)
    coef = np.zeros((len(scale), len(ALPHAS)))
    coef[used] = scale[used, None] * solve_all(scaled(sums, scale))
    return coef


def scaled(sums: Statistics, scale: np.ndarray) -> Statistics:
    """The sums of the features whose scale is not zero, multiplied by it."""
    used = np.flatnonzero(scale)
    d = scale[used]
    values: dict[str, Any] = {**vars(sums)}
    values["gram"] = d[:, None] * sums.gram[np.ix_(used, used)] * d
    values["cross"], values["mean"] = d[:, None] * sums.cross[used], sums.mean[used]
    return Statistics(**values)


def in_blocks(work: Callable[[np.ndarray], np.ndarray], N: np.ndarray) -> np.ndarray:
    """`work` on blocks of rows, its results one after the other."""
    if len(N) <= BLOCK:
        return work(N)
    return np.concatenate([work(N[i : i + BLOCK]) for i in range(0, len(N), BLOCK)])
