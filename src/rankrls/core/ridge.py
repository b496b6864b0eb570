"""One factorisation, every alpha, exact hold-out.

With A = F Phi and z = F y the objective is ||A w - z||^2 + alpha ||w||^2. A `RidgePath` holds coordinates in which
the loss is diagonal, so that the solution is `basis @ (z / (d + alpha))` for every alpha:

- primal: A'A = V diag(d) V', basis V, z = V'A'z. The loss rows are B = A V.
- dual:   F K F' = U diag(d) U', basis U, z = U'z. The loss rows are B = U, and f = K F' U (z / (d + alpha)).

Hold-out of the loss rows of a fold U (a query, or a union of queries), with D = 1 / (d + alpha), c = D z:

    primal   t = (I - B_U D B_U')^-1 (z_U - B_U c)      the held-out residual F_U (y_U - f_{-U})
    dual     t = (B_U D B_U')^-1 B_U c                  (both sides divided by alpha: I - H = alpha U D U')
    both     c_{-U} = c - D B_U' t                      the held-out solution, exactly

A direction that carries no penalty (an intercept) has D independent of alpha: 1 / d in the primal, 0 in the dual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from .preferences import PairPreferences, QueryPreferences
from .statistics import Statistics

Look = Callable[[np.ndarray], Statistics]  # V (n, k) -> the sums of A V and z

UNCLEAR = 1e-8  # a share of the largest eigenvalue of A'A, below which an eigenvalue has lost half of its digits
VISIBLE = 1e-20  # and one below which a direction is rounding even when the rows themselves are looked at
INDEFINITE = (
    "the kernel matrix is not positive semi-definite (smallest eigenvalue {:.3g}, largest {:.3g}): "
    "use a valid kernel, or add a multiple of the identity"
)


@dataclass(frozen=True)
class RidgePath:
    """`basis @ (z / (d + alpha))` for every alpha; `complete` tells that the loss rows are the basis itself (dual)."""

    basis: np.ndarray  # (p, r)
    d: np.ndarray  # (r,)
    z: np.ndarray  # (r, t)
    complete: bool = False

    def coef(self, alpha: float) -> np.ndarray:
        """(p, t) the solution at alpha; a direction in which the features vanish (d = 0) has no part in it."""
        return self.basis @ (np.where(self.d > 0, 1 / (self.d + alpha), 0.0)[:, None] * self.z)

    def condition(self, alpha: float) -> float:
        """The condition number of the system solved at alpha."""
        return float((self.d.max() + alpha) / (self.d.min() + alpha)) if len(self.d) else 1.0

    def inverse(self, alphas: np.ndarray) -> np.ndarray:
        """(r, k) D = 1 / (d + alpha) for each alpha."""
        return 1 / (self.d[:, None] + alphas)


def cutoff(n: int, dtype: Any = np.float64) -> float:
    """Eigenvalues below this share of the largest are rounding, not data."""
    return max(n, 10) * np.finfo(np.float64).eps if dtype == np.float64 else 10 * float(np.finfo(dtype).eps)


def ill_conditioned(M: np.ndarray, alpha: float) -> bool:
    """Whether a Cholesky factor of M + alpha I may lose half of the digits or more."""
    return alpha < UNCLEAR * float(np.trace(M))


def whitening(K: np.ndarray, tolerance: float) -> np.ndarray:
    """(n, r) W with W'K W = I on the range of a positive semi-definite K: eigenvalues above a share of the largest."""
    d, V = eigh(K)
    if d[0] < -1e-6 * abs(d[-1]):
        raise ValueError(INDEFINITE.format(d[0], d[-1]))
    keep = d > max(d[-1], 0) * tolerance
    if not keep.any():  # kernel values that are all zero: one direction stays, in which nothing is learned
        return 0 * V[:, -1:]
    return V[:, keep] / np.sqrt(d[keep])


def primal(
    sums: Statistics, W: np.ndarray | None = None, dtype: Any = np.float64, look: Look | None = None
) -> RidgePath:
    """The path of ||A w - z||^2 + alpha ||w||^2 in w = W v (W whitens another penalty than ||w||^2).

    Rounding of A'A hides directions with d below eps times the largest. `look(V)`, the sums of the rows in some
    directions, shows them: there ||A v||^2 is right to eps^2.
    """
    gram = sums.gram if W is None else W.T @ sums.gram @ W
    cross = sums.cross if W is None else W.T @ sums.cross
    d, V = eigh(gram)
    top = max(d[-1], 0) if len(d) else 0.0
    z, share = V.T @ cross, cutoff(len(d), dtype)
    small = d <= UNCLEAR * top
    if look is not None and small.any() and top > 0:
        part = look(V[:, small])
        e, U = eigh(part.gram)
        d, V = np.concatenate([e, d[~small]]), np.hstack([V[:, small] @ U, V[:, ~small]])
        z, share = np.concatenate([U.T @ part.cross, z[~small]]), VISIBLE
    keep = d > top * share
    if len(d) and not keep.any():  # rows that do not vary: one direction stays, in which nothing is learned
        keep[-1], d, z = True, np.zeros_like(d), np.zeros_like(z)
    d, V = d[keep], V[:, keep]
    return RidgePath(V if W is None else W @ V, d, z[keep])


def cholesky_solution(sums: Statistics, alpha: float, W: np.ndarray | None = None) -> np.ndarray | None:
    """(n, t) the solution at one alpha; None where a Cholesky factor may lose half of the digits."""
    gram = sums.gram if W is None else W.T @ sums.gram @ W
    if ill_conditioned(gram, alpha):
        return None
    v = _solve_shifted(gram, alpha, sums.cross if W is None else W.T @ sums.cross)
    return v if W is None else W @ v


@dataclass(frozen=True)
class DualSystem:
    """K F' (m, p) and F K F' (p, p), with F bordered by the intercept's direction v where there is one."""

    KF: np.ndarray
    FKF: np.ndarray
    z: np.ndarray  # (p, t)
    v: np.ndarray | None  # (p,) unit vector
    trace: float  # of F K F', which a factorisation overwrites

    @classmethod
    def of(cls, KF: np.ndarray, FKF: np.ndarray, z: np.ndarray, v: np.ndarray | None) -> DualSystem:
        return cls(KF, FKF, z, v, float(np.trace(FKF)))

    def path(self) -> RidgePath:
        """F K F' = U diag(d) U'; O(m^3). Overwrites FKF."""
        M, top = self.FKF, 0.0
        if self.v is not None:  # put the unpenalised direction above all others, where it can be told apart
            top = 2 * float(np.trace(M)) + 1
            M += top * np.outer(self.v, self.v)
        d, U = eigh(M, overwrite=True)
        if d[0] < -1e-6 * abs(d[-1]):
            raise ValueError(INDEFINITE.format(d[0], d[-1]))
        penalised = d if self.v is None else d[:-1]
        d[d <= penalised.max(initial=0) * cutoff(len(d))] = 0
        if self.v is not None:
            d[-1] = np.inf
        return RidgePath(U, d, U.T @ self.z, complete=True)

    def solution(self, alpha: float) -> np.ndarray:
        """(p, t) the solution at one alpha: a Cholesky factor where it is safe, else the path. Overwrites FKF."""
        if ill_conditioned(self.FKF, alpha):
            return self.path().coef(alpha)
        try:
            return _solve_shifted(self.FKF, alpha, self.z, overwrite=True)
        except linalg.LinAlgError:
            raise ValueError(
                "the kernel matrix is not positive semi-definite: use a valid kernel, or add a multiple of the identity"
            ) from None


def dual_system(F: QueryPreferences | PairPreferences, K: np.ndarray, y: np.ndarray) -> DualSystem:
    """The dual of a kernel matrix K (m, m); y (m, t)."""
    v = _free_direction(F)
    KF = np.ascontiguousarray(_project(F @ K, v).T)
    return DualSystem.of(KF, _project(F @ KF, v), _project(F @ y, v), v)


def linear_dual_system(F: QueryPreferences, X: np.ndarray, y: np.ndarray) -> DualSystem:
    """The dual of K = X X', accumulated over columns of X so that shifts of X by query never enter F K F'."""
    v, m = _free_direction(F), F.shape[0]
    KF, FKF = np.zeros((m, m)), np.zeros((m, m))
    width = max(1, min(X.shape[1], 4_000_000 // m))
    for j in range(0, X.shape[1], width):
        columns = np.ascontiguousarray(X[:, j : j + width], dtype=np.float64)
        A = _project(F @ columns, v)
        KF += columns @ A.T
        FKF += A @ A.T
    return DualSystem.of(KF, FKF, _project(F @ y, v), v)


def held_out(B: np.ndarray, target: np.ndarray, D: np.ndarray, z: np.ndarray, *, complete: bool) -> np.ndarray:
    """(g, r, k t) the solutions without each of g folds, for k alphas; columns run over alphas, then targets.

    In the path's coordinates B (g, b, r) are the loss rows of the folds and target (g, b, t) what they should be;
    D (r, k), z (r, t).
    """
    k, t = D.shape[1], z.shape[1]
    Dz = np.repeat(D, t, axis=1)  # (r, k t)
    c = Dz * np.tile(z, k)
    if complete:
        return _direct(B, target, D, z, complete=True)
    R = np.tile(target, k)
    R -= B @ c
    C, done = _conjugate_gradients(B, R, Dz)
    np.subtract(c, C, out=C)
    if not np.all(done):
        C[~done] = _direct(B[~done], target[~done], D, z, complete=False)
    return C


def _conjugate_gradients(B: np.ndarray, R: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """D B'T with (I - B D B') T = R, for all folds and columns at once; fast as the folds' leverage is small.

    What a residual still changes in the scores B D B'T is smaller than itself by the leverage ||B D B'P|| / ||P||,
    for which ten times the largest seen is taken. Also tells for each fold whether every column converged.
    Overwrites R.
    """
    Bt, dot = B.transpose(0, 2, 1), lambda V, W: np.einsum("glk,glk->gk", V, W)
    tol = 1e-10 if R.dtype == np.float64 else 1e-5
    P, total = R.copy(), np.zeros((len(B), *D.shape), dtype=R.dtype)
    rho, leverage = dot(R, R), np.zeros((len(B), D.shape[1]), dtype=R.dtype)
    bound = tol**2 * rho
    tiny = np.finfo(R.dtype).tiny
    for _ in range(20):
        U = Bt @ P
        U *= D
        Q = B @ U
        np.maximum(leverage, dot(Q, Q) / np.maximum(dot(P, P), tiny), out=leverage)
        left = np.minimum(1, 100 * leverage)  # squares
        np.subtract(P, Q, out=Q)
        step = rho / np.maximum(dot(P, Q), tiny)
        U *= step[:, None]
        total += U
        Q *= step[:, None]
        R -= Q
        old, rho = rho, dot(R, R)
        if np.all(left * rho <= bound):
            break
        P *= (rho / np.maximum(old, tiny))[:, None]
        P += R
    return total, np.all(left * rho <= bound, axis=1)


def _direct(B: np.ndarray, target: np.ndarray, D: np.ndarray, z: np.ndarray, *, complete: bool) -> np.ndarray:
    """(g, r, k t) held-out solutions by one dense solve per fold and alpha, in min(l, r) dimensions."""
    _, length, r = B.shape
    Bt = B.transpose(0, 2, 1)
    solutions = []
    for Dj in D.T[:, :, None]:  # (r, 1)
        c = Dj * z
        if length > r and not complete:  # downdate: (1/D - B'B) c_{-U} = z - B' target
            solutions.append(np.linalg.solve(np.diag(1 / Dj[:, 0]) - Bt @ B, z - Bt @ target))
            continue
        M, rhs = (B * Dj[:, 0]) @ Bt, B @ c
        if not complete:
            M, rhs = np.eye(length, dtype=B.dtype) - M, target - rhs
        solutions.append(c - Dj * (Bt @ np.linalg.solve(M, rhs)))
    return np.concatenate(solutions, axis=2)


def eigh(M: np.ndarray, *, overwrite: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix by divide and conquer."""
    return linalg.eigh(M.T, driver="evd", overwrite_a=overwrite, check_finite=False)


def _solve_shifted(M: np.ndarray, alpha: float, rhs: np.ndarray, *, overwrite: bool = False) -> np.ndarray:
    """(M + alpha I)^-1 rhs."""
    M = M if overwrite else M.copy()  # M.T is M in the order LAPACK works in
    M[np.diag_indices_from(M)] += alpha
    factor = linalg.cho_factor(M.T, lower=True, overwrite_a=True, check_finite=False)
    return linalg.cho_solve(factor, rhs, check_finite=False)


def _free_direction(F: Any) -> np.ndarray | None:
    """The unit vector along F 1, which no penalty restrains when there is an intercept."""
    if F.beta == 0:
        return None
    s = np.ones(F.shape[0]) if F.s is None else F.s
    return s / np.linalg.norm(s)


def _project(V: np.ndarray, v: np.ndarray | None) -> np.ndarray:
    return V if v is None else V - np.outer(v, v @ V)
