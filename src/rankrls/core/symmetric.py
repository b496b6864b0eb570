"""Symmetric positive semi-definite matrices: factorisations, what counts as rounding, and penalties made of them.

A penalty ||W^-1 w||^2 becomes ||v||^2 with w = W v, so one factorisation serves every penalty. W is a matrix for
kernels to basis points, and a diagonal, kept as a vector, for columns in units of how much they vary.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from ..system.parallel import LONG_FACTOR, threads_for_factor
from ..system.progress import step
from ..system.types import DTypeLike

TINY = 30  # rows; such matrices are decomposed faster than the number of threads is changed
LARGE = 20_000  # matrices with more numbers are multiplied one after the other
UNCLEAR = 1e-8  # an eigenvalue of A'A below this share of the largest has lost half of its digits
RAW = 1e-6  # raw sums are accurate down to this share of the largest eigenvalue of a kernel matrix
INDEFINITE = (
    "the kernel matrix is not positive semi-definite (smallest eigenvalue {:.3g}, largest {:.3g}): "
    "use a valid kernel, or add a multiple of the identity"
)


def eigh(M: np.ndarray, *, overwrite: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix by divide and conquer.

    `numpy.linalg.eigh` lets other threads run meanwhile; SciPy's does not, but it can overwrite M.
    """
    cost = 4.0 * len(M) ** 3
    few = threads_for_factor(cost) if len(M) > TINY else nullcontext()
    with few, step(f"decomposition of {len(M):,} x {len(M):,} values", cost):
        if overwrite:
            return linalg.eigh(M.T, driver="evd", overwrite_a=True, check_finite=False)
        return np.linalg.eigh(M)


def solve_shifted(M: np.ndarray, alpha: float, rhs: np.ndarray, *, overwrite: bool = False) -> np.ndarray:
    """(M + alpha I)^-1 rhs."""
    M = M if overwrite else M.copy()  # M.T is M in LAPACK's memory order
    M[np.diag_indices_from(M)] += alpha
    cost = len(M) ** 3 / 3
    few = threads_for_factor(cost) if cost > LONG_FACTOR else nullcontext()
    with few, step(f"factor of {len(M):,} x {len(M):,} values", len(M) ** 3 / 4):
        factor = linalg.cho_factor(M.T, lower=True, overwrite_a=True, check_finite=False)
    return linalg.cho_solve(factor, rhs, check_finite=False)


def solve_each(M: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """(g, l, t) M^-1 rhs of g systems, NaN for those that are singular."""
    try:
        return np.linalg.solve(M, rhs)
    except np.linalg.LinAlgError:
        if len(M) == 1:
            return np.full(rhs.shape, np.nan, dtype=rhs.dtype)
        return np.concatenate([solve_each(*one) for one in zip(M[:, None], rhs[:, None], strict=True)])


def solve_path(M: np.ndarray, alphas: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """(n, k) (M + alpha I)^-1 rhs (n,) for every alpha > 0; M may have eigenvalues that rounding made negative.

    M = Q T Q' with T tridiagonal is found once, in half the time of a dozen Cholesky factors; each alpha is then a
    tridiagonal system. Below its diagonal Q is stored as the reflectors of a QR factorisation of n - 1 columns.
    """
    n = len(M)
    if n < 2:
        return rhs[:, None] / (np.maximum(np.diag(M)[:, None], 0) + alphas)
    A, d, e, tau, _ = lapack.dsytrd(M.T, lower=1, lwork=64 * n)
    turn = lambda trans, V: lapack.dormqr("L", trans, A[1:, :-1], tau, V, lwork=64 * n)[0]
    z = np.concatenate([rhs[:1], turn("T", rhs[1:, None])[:, 0]])
    X = np.empty((n, len(alphas)), order="F")
    for i, alpha in enumerate(alphas):
        *_, x, failed = lapack.dptsv(d + alpha, e, z[:, None])
        if failed:  # with the same T, twice the lowest eigenvalue is more than rounding took
            lowest = linalg.eigvalsh_tridiagonal(d, e, select="i", select_range=(0, 0))[0]
            d = d - 2 * min(lowest, 0.0)
            *_, x, _ = lapack.dptsv(d + alpha, e, z[:, None])
        X[:, i] = x[:, 0]
    X[1:] = turn("N", X[1:])
    return X


def cutoff(n: int, dtype: DTypeLike = np.float64) -> float:
    """Eigenvalues below this share of the largest are rounding, not data."""
    return max(n, 10) * np.finfo(np.float64).eps if dtype == np.float64 else 10 * float(np.finfo(dtype).eps)


def above_rounding(z: np.ndarray, top: float, square: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """(r,) True where A'z along a direction exceeds rounding: it is kept even if its eigenvalue is small."""
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


def unwhitened(W: np.ndarray | None, V: np.ndarray) -> np.ndarray:
    """W V, where W may be None (the identity) or a vector (a diagonal)."""
    return V if W is None else W[:, None] * V if W.ndim == 1 else W @ V


def steep(W: np.ndarray | None) -> bool:
    """True if W is so ill-conditioned that A'A of raw kernel values, whitened afterwards, would be mostly rounding."""
    return W is not None and W.ndim == 2 and len(gentle(W).T) < W.shape[1]


def gentle(W: np.ndarray) -> np.ndarray:
    """The columns of W (n, r) that do not magnify the rounding of raw sums beyond the inverse of RAW."""
    squares = np.sum(W**2, axis=0)
    return W[:, squares * RAW <= np.min(squares, initial=np.inf)]


def per_deviation(deviation: np.ndarray) -> np.ndarray:
    """(n,) the W of a penalty on weights per spread of their column; zero for columns that do not vary."""
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)


@np.errstate(all="ignore")  # a column that diverges is reported as not converged
def fold_residuals(B: np.ndarray, R: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """D B'T with (I - B D B') T = R, for all folds and columns at once; fast because the folds' leverage is small.

    A residual changes the scores B D B'T by itself times the leverage ||B D B'P|| / ||P||, estimated as ten times the
    largest seen since the first step. The first direction says little about it, as most of R may be orthogonal to B;
    that part is gone after one step. Also returns, for each fold, whether every column converged. Overwrites R.
    """
    Bt, dot = B.transpose(0, 2, 1), lambda V, W: np.einsum("glk,glk->gk", V, W)
    tol, tiny = 1e-10 if R.dtype == np.float64 else 1e-5, np.finfo(R.dtype).tiny
    rho, unit = dot(R, R), None
    if not np.all((rho > np.sqrt(tiny)) & (rho < 1 / np.sqrt(tiny))):  # squares of tiny residuals would vanish
        unit = np.abs(R).max(axis=1, keepdims=True, initial=0)
        unit[unit == 0] = 1
        R /= unit
        rho = dot(R, R)
    P, Q = R.copy(), np.empty_like(R)  # large arrays are made once and used again: fresh memory is slow
    total, more = (np.empty((len(B), *D.shape), dtype=R.dtype) for _ in range(2))
    leverage, bound, square, left = np.zeros_like(rho), tol**2 * rho, rho, np.ones_like(rho)  # all of them squares
    for number in range(20):
        U = np.matmul(Bt, P, out=more if number else total)
        U *= D
        np.matmul(B, U, out=Q)
        if number > 0:
            np.maximum(leverage, dot(Q, Q) / np.maximum(square, tiny), out=leverage)
            left = np.minimum(1, 100 * leverage)
        np.subtract(P, Q, out=Q)
        step = rho / np.maximum(dot(P, Q), tiny)
        U *= step[:, None]
        if number > 0:
            total += U
        Q *= step[:, None]
        R -= Q
        old, rho = rho, dot(R, R)
        if np.all(left * rho <= bound):
            break
        ratio = rho / np.maximum(old, tiny)
        square = rho + ratio**2 * square  # ||P||^2, as R is orthogonal to P
        P *= ratio[:, None]
        P += R
    if unit is not None:
        total *= unit
    return total, np.all(left * rho <= bound, axis=1)


def products(B: np.ndarray, d: np.ndarray) -> np.ndarray:
    """(g, l, l) B diag(d) B' of each fold; where d >= 0 the product of a matrix with itself takes half as long."""
    if B[0].size < LARGE or d.min() < 0:
        return (B * d) @ B.transpose(0, 2, 1)
    M, root, A = np.empty((len(B), B.shape[1], B.shape[1]), B.dtype), np.sqrt(d), np.empty_like(B[0])
    for fold, product in zip(B, M, strict=True):
        np.multiply(fold, root, out=A)
        np.matmul(A, A.T, out=product)
    return M
