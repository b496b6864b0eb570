"""Conjugate gradients for problems whose matrices are never formed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


class ConvergenceWarning(UserWarning):
    """An iterative solver stopped before it reached its tolerance."""


@dataclass(frozen=True)
class Solution:
    """What an iterative solver reached."""

    value: np.ndarray  # (n, k) a column for each shift
    residual: np.ndarray  # (k,) ||b - (M + shift) x|| / ||b||
    iterations: int
    converged: bool


def multishift_cg(
    product: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    shifts: np.ndarray,
    *,
    tol: float = 1e-8,
    maxiter: int = 1000,
) -> Solution:
    """Solve (M + shift I) x = b for every positive shift from one Krylov space; M positive semi-definite.

    The residuals of all shifted systems stay parallel to that of the smallest shift, so one product with M per
    iteration serves them all [Frommer99].
    """
    k, base = len(shifts), float(np.min(shifts))
    extra = shifts - base  # the smallest shift converges last
    norm = float(np.linalg.norm(b))
    x = np.zeros((len(b), k))
    if norm == 0:
        return Solution(x, np.zeros(k), 0, True)
    p = np.repeat(b[:, None], k, axis=1)
    r, direction, rho = b.copy(), b.copy(), float(b @ b)
    zeta, zeta_old, residual = np.ones(k), np.ones(k), np.ones(k)  # residuals are zeta * r
    step_old, ratio, iteration = 1.0, 0.0, 0
    while iteration < maxiter and residual.max() > tol:
        iteration += 1
        q = product(direction) + base * direction
        step = rho / float(direction @ q)
        r -= step * q
        rho_old, rho = rho, float(r @ r)
        on = np.flatnonzero(residual > tol)  # systems that are done stay as they are
        now, before = zeta[on], zeta_old[on]
        new = now * before * step_old
        new /= step * ratio * (before - now) + before * step_old * (1 + extra[on] * step)
        x[:, on] += p[:, on] * (step * new / now)
        p[:, on] = r[:, None] * new + p[:, on] * (rho / rho_old * (new / now) ** 2)
        zeta_old[on], zeta[on] = now, new
        residual[on] = np.abs(new) * np.sqrt(rho) / norm
        ratio, step_old = rho / rho_old, step
        direction = r + ratio * direction
    return Solution(x, residual, iteration, bool(residual.max() <= tol))


def warn_if_stopped_early(solution: Solution, what: str) -> None:
    """Never silent about non-convergence."""
    if not solution.converged:
        warnings.warn(
            f"{what} stopped after {solution.iterations} iterations with relative residual "
            f"{solution.residual.max():.1e}: scale the features or use a larger alpha",
            ConvergenceWarning,
            stacklevel=3,
        )
