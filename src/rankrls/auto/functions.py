"""Functions of one column, for additive models: smooth curves, and ramps and steps at a few knots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

CENTRES = np.linspace(-2.5, 2.5, 9)
WIDTH = 1.5
SOME_COLUMNS = 256  # columns whose curves are in memory at a time
KNOTS = ndtri(np.arange(1, 8) / 8)


@dataclass(frozen=True)
class Curves:
    """Leading components of a Gaussian kernel on nine centres, centred, with unit variance per column."""

    W: np.ndarray  # (9, k)
    mean: np.ndarray  # (n, k)
    scale: np.ndarray  # (n,)

    @classmethod
    def of(cls, N: np.ndarray, k: int) -> Curves:
        K = np.exp(-((CENTRES[:, None] - CENTRES) ** 2) / (2 * WIDTH**2))
        d, V = np.linalg.eigh(K)
        W = (V / np.sqrt(d))[:, ::-1][:, :k].astype(np.float32)
        mean, deviation = np.empty((N.shape[1], k)), np.empty(N.shape[1])
        for start in range(0, N.shape[1], SOME_COLUMNS):
            some = slice(start, start + SOME_COLUMNS)
            X = N[:, some]
            A = cls(W, np.zeros((X.shape[1], k), np.float32), np.ones(X.shape[1], np.float32))(X)
            mean[some] = A.mean(axis=0, dtype=np.float64)
            deviation[some] = np.sqrt(A.var(axis=0, dtype=np.float64).sum(axis=1))
        scale = np.where(deviation > 1e-6, deviation, 1.0)
        return cls(W, mean.astype(np.float32), scale.astype(np.float32))

    @property
    def size(self) -> int:
        return self.W.shape[1]

    def __call__(self, N: np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(m, c, k) the curves of some columns."""
        E = (N if isinstance(columns, slice) else np.take(N, columns, axis=1))[..., None] - CENTRES.astype(N.dtype)
        E *= E
        E *= -1 / (2 * WIDTH**2)
        A = np.exp(E, out=E).reshape(-1, len(CENTRES)) @ self.W  # one product for all rows
        A = A.reshape(*E.shape[:2], self.size)
        A -= self.mean[columns]
        A /= self.scale[columns, None]
        return A

    def lines(self, N: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(c, k, m) the same, with each curve contiguous in memory: faster for many rows."""
        E = N.T[columns, None] - CENTRES.astype(N.dtype)[:, None]
        E *= E
        E *= -1 / (2 * WIDTH**2)
        A = self.W.T @ np.exp(E, out=E)
        A -= self.mean[columns, :, None]
        A /= self.scale[columns, None, None]
        return A


@dataclass(frozen=True)
class Ramps:
    """x, (x - t)+ and 1(x > t) for seven knots t of each column, centred, each with unit variance."""

    knots: np.ndarray  # (n, 7)
    mean: np.ndarray  # (n, 15)
    scale: np.ndarray  # (n, 15), zero if a function is constant or the column is not used

    @classmethod
    def of(cls, N: np.ndarray, knots: dict[int, np.ndarray]) -> Ramps:
        """Functions of the columns that have knots."""
        n = N.shape[1]
        made = cls(np.tile(KNOTS.astype(np.float32), (n, 1)), *(np.zeros((n, SIZE), np.float32) for _ in range(2)))
        for i, own in knots.items():
            made.knots[i] = own
            A = _ramps(N[:, i], made.knots[i])
            deviation = A.std(axis=0, dtype=np.float64)
            made.mean[i] = A.mean(axis=0, dtype=np.float64)
            made.scale[i] = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-4)
        return made

    @property
    def size(self) -> int:
        return SIZE

    def __call__(self, N: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(m, c, 15) the functions of some columns."""
        A = _ramps(np.take(N, columns, axis=1), self.knots[columns])
        A -= self.mean[columns]
        A *= self.scale[columns]
        return A

    def lines(self, N: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(c, 15, m) the same, with each function contiguous in memory."""
        x = N.T[columns, None]
        above = x - self.knots[columns, :, None].astype(N.dtype)
        A = np.concatenate([x, np.maximum(above, 0), above > 0], axis=1, dtype=N.dtype)
        A -= self.mean[columns, :, None]
        A *= self.scale[columns, :, None]
        return A


SIZE = 1 + 2 * len(KNOTS)
PAIR_RAMPS = [0, *range(len(KNOTS) + 1, SIZE)]  # functions used in a pair: x and the steps
EARLIER_PAIR_RAMPS = [0, *range(2, len(KNOTS) + 1, 2), *PAIR_RAMPS[1:]]  # and every other ramp, in older model files


def _ramps(N: np.ndarray, knots: np.ndarray) -> np.ndarray:
    above = N[..., None] - knots.astype(N.dtype)
    return np.concatenate([N[..., None], np.maximum(above, 0), above > 0], axis=-1, dtype=N.dtype)


def step(x: np.ndarray, G: np.ndarray) -> float:
    """The threshold t at which rows G (m, k) differ most between x <= t and x > t.

    With S(t) the sum of the rows with x <= t and p(t) their share, |S(t) - p(t) S|^2 / (p (1 - p)) is largest there,
    among the quantiles of x in steps of 1/64.
    """
    edges = np.unique(np.quantile(x, np.arange(3, 62) / 64, method="lower"))
    edges = edges[edges < x.max()]
    if not len(edges):
        return float(x.max())
    place = np.searchsorted(edges, x)  # edges below x
    sums = np.stack([np.bincount(place, weights=g, minlength=len(edges) + 1) for g in G.T], axis=1)
    share = np.cumsum(np.bincount(place, minlength=len(edges) + 1))[:-1] / len(x)
    below = np.cumsum(sums, axis=0)[:-1] - share[:, None] * sums.sum(axis=0)
    energy = (below**2).sum(axis=1) / np.maximum(share * (1 - share), 1e-9)
    edge = edges[np.argmax(energy)]
    return float((edge + x[x > edge].min()) / 2)  # halfway to the next value, so that no row is at the threshold


def with_steps(steps: list[float]) -> np.ndarray:
    """(7,) quantiles of a normal score, with the nearest replaced by each step; earlier steps take precedence."""
    knots, free = KNOTS.copy(), np.ones(len(KNOTS), dtype=bool)
    for t in steps:
        nearest = int(np.argmin(np.where(free, np.abs(KNOTS - t), np.inf)))
        knots[nearest], free[nearest] = t, False
        if not free.any():
            break
    return np.sort(knots)
