"""Additive models with pairs in closed form: functions of single columns, and of pairs of columns that a screen finds.

All functions of a column, or of a pair, form a block of unit variance. After a first fit, blocks are scaled by the
spread of their contribution and fitted again, a few times: blocks that contribute little are regularised more and
eventually dropped (adaptive ridge). The spread of a block is w_b' G_bb w_b, so this needs only sums, not rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.statistics import Statistics
from ..system.lazy import cached_property
from .functions import EARLIER_PAIR_RAMPS, PAIR_RAMPS, Curves, Ramps
from .rows import BLOCK, in_blocks, solve

PAIR_CURVES = 4  # curves of each column of a pair


@dataclass(frozen=True)
class AdditiveMap:
    """Maps scores to features: curves of columns and pairs, and finer functions (ramps and steps) of some of them."""

    curves: Curves
    ramps: Ramps
    columns: np.ndarray  # (c,)
    pairs: np.ndarray  # (p, 2)
    fine_columns: np.ndarray  # (d,)
    fine_pairs: np.ndarray  # (q, 2)
    scale: np.ndarray  # (r,)

    @classmethod
    def of(cls, N, curves, ramps, columns, pairs, fine_columns=(), fine_pairs=(), table=None) -> AdditiveMap:
        """The map with blocks scaled to unit variance over rows N, whose curves may be in a table (see `__call__`)."""
        columns, fine_columns = (np.asarray(c, dtype=np.intp) for c in (columns, fine_columns))
        pairs, fine_pairs = (np.asarray(p, dtype=np.intp).reshape(-1, 2) for p in (pairs, fine_pairs))
        plain = cls(curves, ramps, columns, pairs, fine_columns, fine_pairs, np.ones(1, np.float32))
        variance = _variance(plain, N, table)
        total = np.add.reduceat(variance, plain.starts) if len(variance) else variance
        scale = 1 / np.sqrt(np.where(total > 1e-12, total, 1.0))
        return cls(curves, ramps, columns, pairs, fine_columns, fine_pairs, scale[plain.block].astype(np.float32))

    @cached_property
    def sizes(self) -> np.ndarray:
        """(blocks,) features of each block."""
        fine = np.full(len(self.fine_pairs), len(self.pair_ramps) ** 2)
        return np.concatenate([self._sizes_before, fine])

    @cached_property
    def pair_ramps(self) -> list[int]:
        """The finer functions used in a pair; the number of features tells which they were when a model was saved."""
        fine = len(self.scale) - self._sizes_before.sum()
        return EARLIER_PAIR_RAMPS if fine == len(self.fine_pairs) * len(EARLIER_PAIR_RAMPS) ** 2 else PAIR_RAMPS

    @cached_property
    def _sizes_before(self) -> np.ndarray:
        """Features of each block but those of fine pairs, which come last."""
        k, f = self.curves.size, self.ramps.size
        kinds = (self.columns, k), (self.pairs, min(k, PAIR_CURVES) ** 2), (self.fine_columns, f)
        return np.concatenate([np.full(len(blocks), size) for blocks, size in kinds])

    @cached_property
    def starts(self) -> np.ndarray:
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def block(self) -> np.ndarray:
        """(r,) the block of each feature."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def n_columns(self) -> int:
        return int(self.sizes.sum())

    @cached_property
    def used(self) -> np.ndarray:
        return np.unique(np.concatenate([self.columns, self.fine_columns, *self.pairs, *self.fine_pairs]))

    @cached_property
    def members(self) -> list[tuple[int, ...]]:
        """The column, or the two, of each block."""
        singles = [[(int(i),) for i in columns] for columns in (self.columns, self.fine_columns)]
        doubles = [[(int(i), int(j)) for i, j in pairs] for pairs in (self.pairs, self.fine_pairs)]
        return [*singles[0], *doubles[0], *singles[1], *doubles[1]]

    def __call__(self, N: np.ndarray, table: np.ndarray | None = None) -> np.ndarray:
        """`table` (m, n, k) are the curves of all columns of these rows, if they are known."""
        k = min(self.curves.size, PAIR_CURVES)
        curves = (lambda c: self.curves(N, c)) if table is None else (lambda c: np.take(table, c, axis=1))
        parts = [curves(self.columns).reshape(len(N), -1)]
        parts.append(_products(lambda columns: curves(columns)[:, :, :k], self.pairs, N))
        parts.append(self.ramps(N, self.fine_columns).reshape(len(N), -1))
        parts.append(_products(lambda columns: self.ramps(N, columns)[:, :, self.pair_ramps], self.fine_pairs, N))
        Phi = np.concatenate([part for part in parts if part.shape[1]] or parts[:1], axis=1)
        Phi *= self.scale
        return Phi

    def outputs(self, N: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """(m, blocks) the contribution of each block, w'f(x) or f(x)'W f(z), computed without forming products."""
        weights = np.split((self.scale * coef).astype(N.dtype), self.starts[1:])
        V = np.empty((len(self.sizes), len(N)), dtype=N.dtype)
        k, b = min(self.curves.size, PAIR_CURVES), 0
        kinds = (
            (self.curves, self.columns, self.pairs, np.arange(k)),
            (self.ramps, self.fine_columns, self.fine_pairs, np.array(self.pair_ramps)),
        )
        for functions, columns, pairs, of_pair in kinds:
            every = np.unique(np.concatenate([columns, *pairs]))
            A = dict(zip(every.tolist(), functions.lines(N, every), strict=True))
            for i in columns.tolist():
                V[b] = weights[b] @ A[i]
                b += 1
            for i, j in pairs.tolist():
                W = weights[b].reshape(len(of_pair), -1)
                V[b] = np.einsum("km,km->m", W.T @ A[i][of_pair], A[j][of_pair])
                b += 1
        return V.T

    def scores(self, N: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """map(N) @ coef."""
        return in_blocks(lambda N: self.outputs(N, coef).sum(axis=1), N)


def _products(functions, pairs: np.ndarray, N: np.ndarray) -> np.ndarray:
    """(m, p k^2) products of the functions of the two columns of each pair."""
    if not len(pairs):
        return np.empty((len(N), 0), N.dtype)
    columns, place = np.unique(pairs, return_inverse=True)
    return products(functions(columns), place.reshape(pairs.shape))


def products(A: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(m, p k^2) products of the functions A (m, n, k) of the two columns of each pair."""
    i, j = pairs.T
    return (np.take(A, i, axis=1)[..., None] * np.take(A, j, axis=1)[:, :, None]).reshape(len(A), -1)


def _variance(features: AdditiveMap, N: np.ndarray, table: np.ndarray | None) -> np.ndarray:
    """(r,) the variance of each feature, in double precision, without all features of all rows in memory."""
    total, square = np.zeros(features.n_columns), np.zeros(features.n_columns)
    for start in range(0, len(N), BLOCK):
        rows = slice(start, start + BLOCK)
        Phi = features(N[rows], None if table is None else table[rows]).astype(np.float64)
        total += Phi.sum(axis=0)
        square += np.einsum("ij,ij->j", Phi, Phi)
    return np.maximum(square / len(N) - (total / len(N)) ** 2, 0)


def deviations(features: AdditiveMap, sums: Statistics, coef: np.ndarray) -> np.ndarray:
    """(blocks,) sqrt(w_b' G_bb w_b / m), the spread of each block within queries."""
    energy = np.empty(len(features.sizes))
    for b, (start, size) in enumerate(zip(features.starts, features.sizes, strict=True)):
        part = slice(start, start + size)
        energy[b] = coef[part] @ sums.gram[part, part] @ coef[part]
    return np.sqrt(np.maximum(energy, 0) / max(sums.n_rows, 1))


def adapted(features: AdditiveMap, sums: Statistics, coef: np.ndarray, alpha: float, rounds: int) -> np.ndarray:
    """(r,) scales of the features after some rounds of fitting and scaling blocks by their spread; zero if dropped."""
    for round_ in range(rounds):
        deviation = deviations(features, sums, coef)
        share = deviation / max(deviation.max(initial=0), 1e-30)
        scale = np.where(share > 0.01, share, 0.0)[features.block]
        if round_ + 1 < rounds:
            coef = solve(sums, alpha, scale)
    return scale


def column_effects(features: AdditiveMap, deviation: np.ndarray, n: int) -> np.ndarray:
    """(n,) the spread of all blocks that include a column, scaled so that the largest is 1."""
    effect = np.zeros(n)
    for columns, value in zip(features.members, deviation, strict=True):
        effect[list(columns)] += value**2
    return np.sqrt(effect / max(effect.max(), 1e-30))
