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
    extra = shifts - base  # >= 0: the smallest shift converges last
    norm = np.linalg.norm(b)
    x, p = np.zeros((len(b), k)), np.repeat(b[:, None], k, axis=1)
    if norm == 0:
        return Solution(x, np.zeros(k), 0, True)
    r, direction = b.copy(), b.copy()
    rho = float(r @ r)
    zeta, zeta_old = np.ones(k), np.ones(k)
    step_old, ratio = 1.0, 0.0
    iteration = 0
    while iteration < maxiter and np.max(np.abs(zeta)) * np.sqrt(rho) > tol * norm:
        iteration += 1
        q = product(direction) + base * direction
        step = rho / float(direction @ q)
        with np.errstate(under="ignore"):
            new = zeta * zeta_old * step_old
            new /= step * ratio * (zeta_old - zeta) + zeta_old * step_old * (1 + extra * step)
        steps = step * new / np.where(zeta == 0, 1, zeta)
        x += p * steps
        r -= step * q
        rho_old, rho = rho, float(r @ r)
        ratio = rho / rho_old
        ratios = ratio * (new / np.where(zeta == 0, 1, zeta)) ** 2
        p = r[:, None] * new + p * ratios
        direction = r + ratio * direction
        zeta_old, zeta, step_old = zeta, new, step
    residual = np.abs(zeta) * np.sqrt(rho) / norm
    return Solution(x, residual, iteration, bool(np.max(residual) <= tol))


def warn_if_stopped_early(solution: Solution, what: str) -> None:
    """Never silent about non-convergence."""
    if not solution.converged:
        warnings.warn(
            f"{what} stopped after {solution.iterations} iterations with relative residual "
            f"{solution.residual.max():.1e}: scale the features or use a larger alpha",
            ConvergenceWarning,
            stacklevel=3,
        )
