"""Kernels between rows and some points, on weighted columns.

The sum of |a_i - b_i| over columns takes ten times as long as a matrix product. Each column is therefore cut at whole
numbers: with code_t(a) = min(max(a - t, 0), 1) for t = -3 ... 2, the squared distance of two codes is |a - b| where a
and b are whole numbers, and less than that by at most 1/4 in between. The Laplace kernel is a Gaussian kernel on codes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

JITTER = 3e-3  # added to the unit diagonal of the kernel matrix of the points
MOST_DISTANCES = 300  # points used for the median distance
CUTS = np.arange(-3, 3)  # where the unit intervals of a column begin


@dataclass(frozen=True)
class KernelMap:
    """exp(-|d|^2 / c) to some points, on weighted columns or, if `cut`, on their codes; c is a median distance."""

    cut: bool
    columns: np.ndarray  # (k,)
    weights: np.ndarray  # (k,)
    points: np.ndarray  # (r, k) or, if `cut`, (r, 6 k)
    width: float

    @classmethod
    def of(cls, N: np.ndarray, weights: np.ndarray, r: int, *, cut: bool, rng: np.random.Generator) -> KernelMap:
        """The kernel to r random rows; columns with negligible weight are left out."""
        columns = np.flatnonzero(weights > 0.02 * weights.max(initial=0))
        rows = rng.choice(len(N), min(r, len(N)), replace=False)
        plain = cls(cut, columns, weights[columns].astype(np.float32), np.empty(0), 1.0)
        points = plain.coded(N[rows])
        width = median_distance(points[:: max(1, len(points) // MOST_DISTANCES)])
        return replace(plain, points=points, width=width if cut else 2 * width)

    def first(self, r: int) -> KernelMap:
        """The kernel to the first r points."""
        return replace(self, points=self.points[:r])

    @property
    def n_columns(self) -> int:
        return len(self.points)

    @property
    def used(self) -> np.ndarray:
        return self.columns

    def penalty(self) -> np.ndarray:
        """(r, r) the upper triangular C with C'C = K, the kernel matrix of the points: |C w|^2 is the kernel's norm.

        JITTER on the diagonal of K exceeds the rounding of sums in single precision.
        """
        K = self._values(self.points).astype(np.float64)
        K[np.diag_indices_from(K)] = 1 + JITTER
        return linalg.cholesky(K, check_finite=False)

    def coded(self, N: np.ndarray) -> np.ndarray:
        """(m, k) weighted columns, or (m, 6 k) weighted codes."""
        X, weights = np.take(N, self.columns, axis=1), self.weights.astype(N.dtype)
        if not self.cut:
            return X * weights
        codes = np.clip(X[..., None] - CUTS.astype(X.dtype), 0, 1)
        codes *= np.sqrt(weights)[:, None]
        return codes.reshape(len(X), -1)

    def __call__(self, N: np.ndarray) -> np.ndarray:
        return self._values(self.coded(N))

    def _values(self, X: np.ndarray) -> np.ndarray:
        """exp(-|x - p|^2 / c), with the exponent as one product: (x, |x|^2, 1) @ (2 p, -1, -|p|^2) / c."""
        points, k = self.points, self.points.shape[1]
        right = np.empty((k + 2, len(points)))
        right[:k], right[k], right[k + 1] = 2 * points.T, -1, -np.einsum("ij,ij->i", points, points, dtype=np.float64)
        right /= self.width
        left = np.ones((len(X), k + 2), dtype=X.dtype)
        left[:, :k] = X
        np.einsum("ij,ij->i", X, X, out=left[:, k])
        D = left @ right.astype(X.dtype)
        np.minimum(D, 0, out=D)
        return np.exp(D, out=D)


def median_distance(X: np.ndarray) -> float:
    """The median squared distance between different rows; 1 if there are none."""
    X = X.astype(np.float64)
    square = np.einsum("ij,ij->i", X, X)
    i, j = np.triu_indices(len(X), 1)
    distance = (square[:, None] + square - 2 * X @ X.T)[i, j]
    distance = distance[distance > 1e-9 * square.max(initial=0)]
    return float(np.median(distance)) if len(distance) else 1.0
