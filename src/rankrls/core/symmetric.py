"""Symmetric positive semi-definite matrices: factorisations, and what counts as rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

UNCLEAR = 1e-8  # below this share of the largest eigenvalue of A'A, an eigenvalue has lost half of its digits
INDEFINITE = (
    "the kernel matrix is not positive semi-definite (smallest eigenvalue {:.3g}, largest {:.3g}): "
    "use a valid kernel, or add a multiple of the identity"
)


def eigh(M: np.ndarray, *, overwrite: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix by divide and conquer."""
    return linalg.eigh(M.T, driver="evd", overwrite_a=overwrite, check_finite=False)


def solve_shifted(M: np.ndarray, alpha: float, rhs: np.ndarray, *, overwrite: bool = False) -> np.ndarray:
    """(M + alpha I)^-1 rhs."""
    M = M if overwrite else M.copy()  # M.T is M in LAPACK's memory order
    M[np.diag_indices_from(M)] += alpha
    factor = linalg.cho_factor(M.T, lower=True, overwrite_a=True, check_finite=False)
    return linalg.cho_solve(factor, rhs, check_finite=False)


def cutoff(n: int, dtype: Any = np.float64) -> float:
    """Eigenvalues below this share of the largest are rounding, not data."""
    return max(n, 10) * np.finfo(np.float64).eps if dtype == np.float64 else 10 * float(np.finfo(dtype).eps)


def heard(z: np.ndarray, top: float, square: np.ndarray, dtype: Any) -> np.ndarray:
    """(r,) True where A'z has more than rounding in a direction: it then counts even if its eigenvalue is small."""
    eps = float(np.finfo(np.dtype(dtype)).eps)
    return np.any(np.abs(z) > 10 * len(z) * eps * np.sqrt(top) * np.sqrt(np.maximum(square, 0)), axis=1)


def ill_conditioned(M: np.ndarray, alpha: float) -> bool:
    """True if a Cholesky factor of M + alpha I may lose half of the digits or more."""
    return alpha < float(np.sum(UNCLEAR * np.diag(M)))


def whitening(K: np.ndarray, tolerance: float) -> np.ndarray:
    """(n, r) W with W'K W = I on the range of a positive semi-definite K: eigenvalues above a share of the largest."""
    d, V = eigh(K)
    if d[0] < -1e-6 * abs(d[-1]):
        raise ValueError(INDEFINITE.format(d[0], d[-1]))
    keep = d > max(d[-1], 0) * tolerance
    if not keep.any():  # all kernel values are zero: keep one direction, in which nothing is learned
        return 0 * V[:, -1:]
    return V[:, keep] / np.sqrt(d[keep])
