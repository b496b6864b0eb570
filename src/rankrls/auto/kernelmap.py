"""Nystroem features of kernels on weighted columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist, pdist

JITTER = 1e-5  # added to the unit diagonal of the kernel matrix of the basis points


@dataclass(frozen=True)
class KernelMap:
    """exp(-|d|_1 / c) or exp(-|d|^2 / (2 c)) to some points, whitened; c is the median distance of points."""

    l1: bool
    columns: np.ndarray  # (k,)
    weights: np.ndarray  # (k,)
    points: np.ndarray  # (r, k)
    width: float
    W: np.ndarray | None = None  # (r, r) upper triangular; None for the kernel values themselves

    @classmethod
    def of(cls, N: np.ndarray, weights: np.ndarray, r: int, *, l1: bool, rng: np.random.Generator, width: float = 1.0):
        columns = np.flatnonzero(weights > 0.02 * weights.max(initial=0))
        rows = np.sort(rng.choice(len(N), min(r, len(N)), replace=False))
        points = N[np.ix_(rows, columns)] * weights[columns].astype(np.float32)
        sample = points[:: max(1, len(points) // 600)]
        distance = pdist(sample, "cityblock" if l1 else "sqeuclidean")
        distance = distance[distance > 0]
        width = width * float(np.median(distance)) if len(distance) else 1.0
        plain = cls(l1, columns, weights[columns].astype(np.float32), points, width)
        K = plain.kernel(points).astype(np.float64)
        K[np.diag_indices_from(K)] = 1 + JITTER
        C = linalg.cholesky(K, check_finite=False)
        W = linalg.solve_triangular(C, np.eye(len(K)), check_finite=False).astype(np.float32)
        return cls(l1, plain.columns, plain.weights, points, width, W)

    @property
    def n_columns(self) -> int:
        return len(self.points)

    def kernel(self, X: np.ndarray) -> np.ndarray:
        """The kernel between weighted rows X (m, k) and the points."""
        if self.l1:
            D = cdist(X, self.points, "cityblock").astype(X.dtype)
            D *= -1 / self.width
        else:
            points = self.points.astype(X.dtype, copy=False)
            D = X @ points.T
            D *= 2
            D -= np.einsum("ij,ij->i", X, X)[:, None]
            D -= np.einsum("ij,ij->i", points, points)
            np.minimum(D, 0, out=D)
            D *= 1 / (2 * self.width)
        return np.exp(D, out=D)

    def __call__(self, N: np.ndarray) -> np.ndarray:
        K = self.kernel(N[:, self.columns] * self.weights)
        return K if self.W is None else K @ self.W

    def folded(self, coef: np.ndarray) -> tuple[KernelMap, np.ndarray]:
        """The same scores from kernel values: less work and smaller than whitened features."""
        return (self, coef) if self.W is None else (replace(self, W=None), self.W.astype(np.float64) @ coef)
