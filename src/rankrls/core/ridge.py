"""One factorisation, every alpha, exact hold-out.

With A = F Phi and z = F y the objective is ||A w - z||^2 + alpha ||w||^2. A `RidgePath` holds coordinates in which
the loss is diagonal, so the solution is `basis @ (z / (d + alpha))` for every alpha:

- primal: A'A = V diag(d) V', basis V, z = V'A'z. The loss rows are B = A V.
- dual:   F K F' = U diag(d) U', basis U, z = U'z. The loss rows are B = U, and f = K F' U (z / (d + alpha)).

Hold-out of the loss rows of a fold U (a query, or a union of queries), with D = 1 / (d + alpha), c = D z:

    primal   t = (I - B_U D B_U')^-1 (z_U - B_U c)      the held-out residual F_U (y_U - f_{-U})
    dual     t = (B_U D B_U')^-1 B_U c                  (both sides divided by alpha: I - H = alpha U D U')
    both     c_{-U} = c - D B_U' t                      the held-out solution, exactly

An unpenalised direction (an intercept) has D independent of alpha: 1 / d in the primal, 0 in the dual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..system.types import DTypeLike
from .statistics import Statistics
from .symmetric import UNCLEAR, above_rounding, cutoff, eigh, fold_residuals, products, solve_each, unwhitened

Look = Callable[[np.ndarray], Statistics]  # V (n, k) -> the sums of A V and z, from the rows
VISIBLE = 1e-20  # a direction below this share of the largest eigenvalue is rounding even in the rows themselves


@dataclass(frozen=True)
class RidgePath:
    """`basis @ (z / (d + alpha))` for every alpha."""

    basis: np.ndarray  # (p, r)
    d: np.ndarray  # (r,)
    z: np.ndarray  # (r, t)

    def coef(self, alpha: float) -> np.ndarray:
        """(p, t) the solution at alpha; directions in which the features vanish (d = 0) are left out."""
        return self.basis @ (np.where(self.d > 0, 1 / (self.d + alpha), 0.0)[:, None] * self.z)

    def condition(self, alpha: float) -> float:
        """The condition number of the system solved at alpha."""
        return float((self.d.max() + alpha) / (self.d.min() + alpha)) if len(self.d) else 1.0

    def inverse(self, alphas: np.ndarray) -> np.ndarray:
        """(r, k) D = 1 / (d + alpha) for each alpha."""
        return 1 / (self.d[:, None] + alphas)


def primal(
    sums: Statistics, W: np.ndarray | None = None, dtype: DTypeLike = np.float64, look: Look | None = None
) -> RidgePath:
    """The path of ||A w - z||^2 + alpha ||w||^2 in w = W v (W whitens a penalty other than ||w||^2).

    Rounding of A'A hides directions with d below eps times the largest. `look(V)`, the sums of the rows projected
    on some directions, reveals them: there ||A v||^2 is accurate to eps^2.
    """
    gram, cross = sums.whitened(W)
    d, V = eigh(gram)
    top = max(d[-1], 0) if len(d) else 0.0
    z, share = V.T @ cross, cutoff(len(d), dtype)
    small = d <= UNCLEAR * top
    if look is not None and small.any() and top > 0:
        part = look(unwhitened(W, V[:, small]))
        e, U = eigh(part.gram)
        d, V = np.concatenate([e, d[~small]]), np.hstack([V[:, small] @ U, V[:, ~small]])
        z, share = np.concatenate([U.T @ part.cross, z[~small]]), VISIBLE
    keep = d > top * share
    if share != VISIBLE:
        d, keep = np.maximum(d, top * share), keep | above_rounding(z, top, sums.square, dtype)
    if len(d) and not keep.any():  # the rows do not vary: keep one direction, in which nothing is learned
        keep[-1], d, z = True, np.zeros_like(d), np.zeros_like(z)
    return RidgePath(unwhitened(W, V[:, keep]), d[keep], z[keep])


def held_out(B: np.ndarray, target: np.ndarray, D: np.ndarray, z: np.ndarray, *, complete: bool) -> np.ndarray:
    """(g, r, k t) the solutions without each of g folds, for k alphas; columns run over alphas, then targets.

    In the path's coordinates, B (g, b, r) are the loss rows of the folds and target (g, b, t) their targets; D (r, k),
    z (r, t). `complete` means that the loss rows are the basis itself (dual). A fold is NaN if its equations are
    singular to rounding: refit without it.
    """
    k, t = D.shape[1], z.shape[1]
    Dz = np.repeat(D, t, axis=1)  # (r, k t)
    c = Dz * np.tile(z, k)
    if complete:
        return _direct(B, target, D, z, complete=True)
    R = np.tile(target, k)
    R -= B @ c
    C, done = fold_residuals(B, R, Dz)
    np.subtract(c, C, out=C)
    if not np.all(done):
        C[~done] = _direct(B[~done], target[~done], D, z, complete=False)
    return C


def _direct(B: np.ndarray, target: np.ndarray, D: np.ndarray, z: np.ndarray, *, complete: bool) -> np.ndarray:
    """(g, r, k t) held-out solutions by one dense solve of size min(l, r) per fold and alpha."""
    _, length, r = B.shape
    Bt = B.transpose(0, 2, 1)
    solutions = []
    for Dj in D.T[:, :, None]:  # (r, 1)
        c = Dj * z
        if length > r and not complete:  # downdate: (1/D - B'B) c_{-U} = z - B' target
            solutions.append(solve_each(np.diag(1 / Dj[:, 0]) - Bt @ B, z - Bt @ target))
            continue
        M, rhs = products(B, Dj[:, 0]), B @ c
        if not complete:
            M, rhs = np.eye(length, dtype=B.dtype) - M, target - rhs
        solutions.append(c - Dj * (Bt @ solve_each(M, rhs)))
    return np.concatenate(solutions, axis=2)
