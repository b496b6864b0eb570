"""Penalties other than ||w||^2: with w = W v they become ||v||^2, so one factorisation serves them all.

W is a matrix for kernels to basis points, and a diagonal, kept as a vector, for columns in units of their spread.
"""

from __future__ import annotations

import numpy as np

from .statistics import Statistics

RAW = 1e-6  # raw sums are accurate down to this share of the largest eigenvalue of a kernel matrix


def whitened(sums: Statistics, W: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """A'A and A'z in the coordinates v of w = W v; a vector W is a diagonal matrix, None the identity."""
    if W is None:
        return sums.gram, sums.cross
    if W.ndim == 1:
        return sums.gram * W[:, None] * W, sums.cross * W[:, None]
    return W.T @ sums.gram @ W, W.T @ sums.cross


def unwhitened(W: np.ndarray | None, V: np.ndarray) -> np.ndarray:
    """W V."""
    return V if W is None else W[:, None] * V if W.ndim == 1 else W @ V


def steep(W: np.ndarray | None) -> bool:
    """True if W is so ill-conditioned that A'A of raw kernel values, whitened afterwards, would be mostly rounding."""
    return W is not None and W.ndim == 2 and len(gentle(W).T) < W.shape[1]


def gentle(W: np.ndarray) -> np.ndarray:
    """The columns of W (n, r) that do not magnify the rounding of raw sums beyond the inverse of RAW."""
    squares = np.sum(W**2, axis=0)
    return W[:, squares * RAW <= np.min(squares, initial=np.inf)]


def per_deviation(deviation: np.ndarray) -> np.ndarray:
    """(n,) the W of a penalty on weights per spread of their column; a column that does not vary has no weight."""
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
