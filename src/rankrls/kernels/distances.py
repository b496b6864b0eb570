"""Rows of numbers, dense or sparse: products, distances, and moments of columns that add up block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..system.types import ArrayLike

Array = Any  # ndarray, or a scipy sparse matrix of rows


def weighted(X: Array, weights: ArrayLike | None) -> Array:
    """X with its columns multiplied by the weights, if there are any."""
    if weights is None:
        return X
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (X.shape[1],) or not np.isfinite(w).all():
        raise ValueError(f"kernel weights must be one finite number per column: {X.shape[1]} columns, got {w.shape}")
    return X.multiply(w).tocsr() if sparse.issparse(X) else X * w.astype(X.dtype)


def divided(X: Array, scale: np.ndarray) -> Array:
    """The columns of X divided by positive numbers, in the precision of X."""
    if sparse.issparse(X):
        return sparse.csr_array(X @ sparse.diags_array((1 / scale).astype(X.dtype)))
    return X / scale.astype(X.dtype)


def dot(X: Array, Z: Array) -> np.ndarray:
    """(m, r) x'z, dense; infinite or NaN where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = X @ Z.T
    return K.toarray() if sparse.issparse(K) else np.asarray(K)


def square_norms(X: Array) -> np.ndarray:
    """(m,) x'x."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def square_distances(X: Array, Z: Array) -> np.ndarray:
    """(m, r) ||x - z||^2 = ||x||^2 + ||z||^2 - 2 x'z, relative to the mean of Z: far from it the squares would cancel.

    Sparse columns are not shifted, unless they are far from zero in most rows, and so not really sparse.
    """
    if not (sparse.issparse(X) or sparse.issparse(Z)):
        return DistancesTo.of(Z)(X)
    moments = Moments.of(Z)
    far = moments.mean**2 * moments.count > 10 * moments.square
    if not far.any():
        return _expanded(X, Z, square_norms(Z))
    dense = [V.toarray() if sparse.issparse(V) else V for V in (X[:, far], Z[:, far])]
    return square_distances(*dense) + _expanded(X[:, ~far], Z[:, ~far], square_norms(Z[:, ~far]))


@dataclass(frozen=True)
class DistancesTo:
    """Squared distances of rows from fixed points, whose norms about their mean are computed once."""

    middle: np.ndarray | float
    Z: np.ndarray  # (r, n) points about their mean
    norms: np.ndarray  # (r,)

    @classmethod
    def of(cls, Z: np.ndarray) -> DistancesTo:
        middle = Z.mean(axis=0) if len(Z) else 0.0
        centred = Z - middle
        return cls(middle, centred, square_norms(centred))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return _expanded(X - self.middle, self.Z, self.norms)


def _expanded(X: Array, Z: Array, norms: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        own, D = square_norms(X), dot(X, Z)
        D *= -2
        D += own[:, None]
        D += norms
    far = np.isinf(own)
    if far.any():  # further away than numbers go, from points that are not
        D[np.ix_(far, np.isfinite(norms))] = np.inf
    return np.maximum(D, 0, out=D)


@dataclass(frozen=True)
class Moments:
    """The total weight of some rows and, for each column, its mean and its sum of squares about the mean."""

    count: float
    mean: np.ndarray  # (n,)
    square: np.ndarray  # (n,)
    eps: float  # the relative precision of the entries

    @classmethod
    def of(cls, X: Array, weights: np.ndarray | None = None) -> Moments:
        n = X.shape[1]
        total = Moments(0.0, np.zeros(n), np.zeros(n), float(np.finfo(X.dtype).eps))
        for i in range(0, X.shape[0], 4096):
            total += cls._of_block(X[i : i + 4096], None if weights is None else weights[i : i + 4096])
        return total

    @classmethod
    def _of_block(cls, X: Array, weights: np.ndarray | None) -> Moments:
        u, eps = np.ones(X.shape[0]) if weights is None else weights, float(np.finfo(X.dtype).eps)
        count, X = float(u.sum()), X.astype(np.float64)
        mean = np.asarray(X.T @ u) / count if count else np.zeros(X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # `_checked` refuses what overflows
            if not sparse.issparse(X):
                return cls(count, mean, u @ (X - mean) ** 2, eps)
            stored, about = X.copy(), X.copy()
            stored.data[:] = 1.0
            about.data = (about.data - mean[about.indices]) ** 2
            return cls(count, mean, about.T @ u + (count - stored.T @ u) * mean**2, eps)

    def __add__(self, other: Moments) -> Moments:
        count = self.count + other.count
        if not count:
            return self
        apart = other.mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            square = self.square + other.square + apart**2 * (self.count * other.count / count)
        return Moments(count, self.mean + apart * (other.count / count), square, max(self.eps, other.eps))

    def _checked(self) -> np.ndarray:
        """The sums of squares, which must be numbers: those of finite columns may overflow."""
        bad = ~np.isfinite(self.square)
        if bad.any():
            raise ValueError(
                f"the squares of feature {int(np.argmax(bad))} overflow when they are added up: its values or "
                "sample_weight are very large. Look for wrong values, or divide by a constant"
            )
        return self.square

    @property
    def deviation(self) -> np.ndarray:
        """(n,) the standard deviation of each column, 1 where it does not vary."""
        deviation = np.sqrt(self._checked() / self.count) if self.count else np.zeros(len(self.mean))
        return np.where(self.varies, deviation, 1.0)

    @property
    def varies(self) -> np.ndarray:
        """(n,) True for columns whose values differ by more than rounding."""
        deviation = np.sqrt(self._checked() / self.count) if self.count else np.zeros(len(self.mean))
        return deviation > 32 * self.eps * np.abs(self.mean)

    @property
    def gamma(self) -> float:
        """1 / (n_features * variance of all entries)."""
        n = len(self.mean)
        variance = float(np.mean(self._checked())) / self.count + float(np.var(self.mean)) if self.count else 0.0
        return float(1 / (n * variance)) if variance > 0 else 1.0
