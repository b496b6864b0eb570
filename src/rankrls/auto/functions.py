"""Functions of one column, the material of additive models: smooth curves, and ramps and steps at a few knots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

CENTRES = np.linspace(-2.5, 2.5, 9)
WIDTH = 1.5
KNOTS = ndtri(np.arange(1, 8) / 8)


@dataclass(frozen=True)
class Curves:
    """Leading components of a Gaussian kernel on nine centres, centred, each column's of unit variance together."""

    W: np.ndarray  # (9, k)
    mean: np.ndarray  # (n, k)
    scale: np.ndarray  # (n,)

    @classmethod
    def of(cls, N: np.ndarray, k: int) -> Curves:
        K = np.exp(-((CENTRES[:, None] - CENTRES) ** 2) / (2 * WIDTH**2))
        d, V = np.linalg.eigh(K)
        W = (V / np.sqrt(d))[:, ::-1][:, :k].astype(np.float32)
        A = cls(W, np.zeros((N.shape[1], k), np.float32), np.ones(N.shape[1], np.float32))(N)
        deviation = np.sqrt(A.var(axis=0, dtype=np.float64).sum(axis=1))
        scale = np.where(deviation > 1e-6, deviation, 1.0)
        return cls(W, A.mean(axis=0, dtype=np.float64).astype(np.float32), scale.astype(np.float32))

    @property
    def size(self) -> int:
        return self.W.shape[1]

    def __call__(self, N: np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(m, c, k) the curves of some columns."""
        E = N[:, columns, None] - CENTRES.astype(N.dtype)
        E *= E
        E *= -1 / (2 * WIDTH**2)
        A = np.exp(E, out=E) @ self.W
        A -= self.mean[columns]
        A /= self.scale[columns, None]
        return A


@dataclass(frozen=True)
class Ramps:
    """x, (x - t)+ and 1(x > t) for seven knots t, centred, of unit variance each."""

    mean: np.ndarray  # (n, 15)
    scale: np.ndarray  # (n, 15), zero where a function is constant

    @classmethod
    def of(cls, N: np.ndarray) -> Ramps:
        mean, scale = [], []
        for column in N.T:
            A = _ramps(column[:, None])[:, 0]
            deviation = A.std(axis=0, dtype=np.float64)
            mean.append(A.mean(axis=0, dtype=np.float64))
            scale.append(np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-4))
        return cls(np.array(mean, np.float32).reshape(-1, SIZE), np.array(scale, np.float32).reshape(-1, SIZE))

    @property
    def size(self) -> int:
        return SIZE

    def __call__(self, N: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(m, c, 15) the functions of some columns."""
        A = _ramps(N[:, columns])
        A -= self.mean[columns]
        A *= self.scale[columns]
        return A


SIZE = 1 + 2 * len(KNOTS)


def _ramps(N: np.ndarray) -> np.ndarray:
    above = N[..., None] - KNOTS.astype(N.dtype)
    return np.concatenate([N[..., None], np.maximum(above, 0), above > 0], axis=-1, dtype=N.dtype)
