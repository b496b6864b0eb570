"""The covariance of scores, phi(x)' M^-1 phi(x') with M = gram + alpha I, for models in features or with a kernel.

For a model in features, M is a matrix. For a kernel on all rows, M has as many dimensions as the kernel; with
F K F' = U diag(d) U' and k(x) the kernel values between x and the rows,

    phi(x)' M^-1 phi(x') = (k(x, x') - k(x)' F' U diag(1 / (d + alpha)) U' F k(x')) / alpha.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...core.ridge import eigh
from ...kernels import Kernel
from ...problems.dual import Dual
from ...system.types import Matrix

BLOCK = 64  # rows whose mutual kernel values are computed at once, although only some of them are needed


class Posterior(Protocol):
    """The uncertainty of scores, in units of the noise."""

    def factor(self, X: Matrix) -> np.ndarray:
        """(m, r) B, with B B' the covariance of the scores of these rows."""

    def width(self, most: int) -> int:
        """The largest r that `most` rows can give."""

    def variance(self, X: Matrix) -> np.ndarray:
        """(m,) the variance of the score of each row."""

    def difference(self, A: Matrix, B: Matrix) -> np.ndarray:
        """(m,) the variance of the difference of two scores, row by row."""


@dataclass(frozen=True)
class FeaturePosterior:
    """A model with weights on features."""

    features: Callable[[Any], Any]  # rows -> (m, n)
    root: np.ndarray  # (n, n), M^-1 = root root'

    @classmethod
    def of(cls, features: Callable[[Any], Any], gram: np.ndarray, alpha: float) -> FeaturePosterior:
        d, V = eigh(gram)
        return cls(features, V / np.sqrt(np.maximum(d, 0) + alpha))

    def factor(self, X: Matrix) -> np.ndarray:
        return np.asarray(self.features(X) @ self.root)

    def width(self, most: int) -> int:
        return self.root.shape[1]

    def variance(self, X: Matrix) -> np.ndarray:
        return (self.factor(X) ** 2).sum(axis=1)

    def difference(self, A: Matrix, B: Matrix) -> np.ndarray:
        return ((self.factor(A) - self.factor(B)) ** 2).sum(axis=1)


@dataclass(frozen=True)
class KernelPosterior:
    """A kernel model with weights on all training rows."""

    kernel: Kernel
    points: Any
    root: np.ndarray  # (m, p) F' U diag(d + alpha)^-1/2
    alpha: float

    @classmethod
    def of(cls, kernel: Kernel, points: Matrix, problem: Dual, alpha: float, unit: float) -> KernelPosterior:
        D = problem.path.inverse(np.array([alpha / unit]))  # (p, 1), 0 for the free intercept
        return cls(kernel, points, np.asarray(problem.F.T @ (problem.path.basis * np.sqrt(D).T)), alpha)

    def factor(self, X: Matrix) -> np.ndarray:
        known = self._known(X)
        d, V = eigh((self._values(X, X) - known @ known.T) / self.alpha)
        return np.asarray(V * np.sqrt(np.maximum(d, 0)))

    def width(self, most: int) -> int:
        return most

    def variance(self, X: Matrix) -> np.ndarray:
        prior = self._row_by_row(X, X)
        return np.maximum(0.0, prior - (self._known(X) ** 2).sum(axis=1)) / self.alpha

    def difference(self, A: Matrix, B: Matrix) -> np.ndarray:
        prior = self._row_by_row(A, A) + self._row_by_row(B, B) - 2 * self._row_by_row(A, B)
        return np.maximum(0.0, prior - ((self._known(A) - self._known(B)) ** 2).sum(axis=1)) / self.alpha

    def _known(self, X: Matrix) -> np.ndarray:
        return np.asarray(self._values(X, self.points) @ self.root)

    def _values(self, A: Matrix, B: Matrix) -> np.ndarray:
        return np.asarray(self.kernel(A, B), dtype=np.float64)

    def _row_by_row(self, A: Matrix, B: Matrix) -> np.ndarray:
        """(m,) the kernel between corresponding rows."""
        parts = [slice(i, i + BLOCK) for i in range(0, A.shape[0], BLOCK)]
        return np.concatenate([np.diag(self._values(A[part], B[part])) for part in parts])
