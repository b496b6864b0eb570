"""Conjugate gradients for problems whose matrices are never formed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..system.progress import counted
from ..system.warnings import warn

LABEL = "conjugate gradients"

Product = Callable[[np.ndarray], np.ndarray]


def _axpy(a: float, x: np.ndarray, y: np.ndarray, work: np.ndarray) -> np.ndarray:
    """y + a x in place of y. Not SciPy's daxpy: its BLAS has its own threads, which compete with NumPy's."""
    np.multiply(x, a, out=work)
    y += work
    return y


class ConvergenceWarning(UserWarning):
    """An iterative solver stopped before it reached its tolerance.

    Examples
    --------
    >>> import warnings
    >>> from rankrls import ConditionalRankRLS, ConvergenceWarning
    >>> from rankrls.datasets import make_relation
    >>> data = make_relation(20, missing=0.5, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", ConvergenceWarning)
    ...     model = ConditionalRankRLS(1e-6, kernel="rbf", max_iter=2).fit(data.X, data.Y)
    >>> caught[0].category.__name__, model.n_iter_
    ('ConvergenceWarning', 2)
    """


@dataclass(frozen=True)
class Solution:
    """What an iterative solver reached."""

    value: np.ndarray  # (n, k) a column for each shift
    residual: np.ndarray  # (k,) ||b - (M + shift) x|| / ||b||
    iterations: int
    converged: bool
    history: np.ndarray = field(default_factory=lambda: np.empty(0))  # the largest residual after each iteration


def multishift_cg(
    product: Product,
    b: np.ndarray,
    shifts: np.ndarray,
    *,
    tol: float = 1e-8,
    maxiter: int = 1000,
) -> Solution:
    """Solve (M + shift I) x = b for every shift from one Krylov space; M positive semi-definite, shifts not negative.

    The residuals of all shifted systems stay parallel to that of the smallest shift, so one product with M per
    iteration serves them all [Frommer99].
    """
    k, base = len(shifts), float(np.min(shifts))
    extra = shifts - base  # the smallest shift converges last
    norm = float(np.linalg.norm(b))
    x = np.zeros((k, len(b)))
    if norm == 0:
        return Solution(x.T, np.zeros(k), 0, True)
    p = np.repeat(b[None], k, axis=0).astype(np.float64)
    r, direction, rho = p[0].copy(), p[0].copy(), float(b @ b)
    zeta, zeta_old, residual = np.ones(k), np.ones(k), np.ones(k)  # residuals are zeta * r
    step_old, ratio, history = 1.0, 0.0, [1.0]
    work = np.empty_like(r)
    for _ in counted(range(maxiter), LABEL):
        if residual.max() <= tol:
            break
        q = _axpy(base, direction, product(direction), work)
        curvature = float(direction @ q)
        if curvature <= 0:  # what is left of b lies in the null space of M
            break
        step = rho / curvature
        _axpy(-step, q, r, work)
        rho_old, rho = rho, float(r @ r)
        on = np.flatnonzero(residual > tol)  # converged systems are left alone
        now, before = zeta[on], zeta_old[on]
        new = now * before * step_old
        new /= step * ratio * (before - now) + before * step_old * (1 + extra[on] * step)
        for j, forward, back, scale in zip(on, step * new / now, rho / rho_old * (new / now) ** 2, new, strict=True):
            _axpy(forward, p[j], x[j], work)
            p[j] *= back
            _axpy(scale, r, p[j], work)
        zeta_old[on], zeta[on] = now, new
        residual[on] = np.abs(new) * np.sqrt(rho) / norm
        ratio, step_old = rho / rho_old, step
        direction *= ratio
        direction += r
        history.append(float(residual.max()))
    return Solution(x.T, residual, len(history) - 1, bool(residual.max() <= tol), np.array(history))


def preconditioned_cg(
    product: Product,
    b: np.ndarray,
    shift: float,
    precondition: Product,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-8,
    maxiter: int = 1000,
) -> Solution:
    """Solve (M + shift I) x = b given a positive definite approximation of the inverse of M + shift I."""
    norm = float(np.linalg.norm(b))
    x = np.zeros(len(b)) if start is None else start.copy()
    if norm == 0:
        return Solution(0 * x[:, None], np.zeros(1), 0, True)
    r = b - product(x) - shift * x if start is not None else b.astype(np.float64)
    history = [float(np.linalg.norm(r)) / norm]
    z = precondition(r)
    direction, rho, work = z.copy(), float(r @ z), np.empty_like(r)
    for _ in counted(range(maxiter), LABEL):
        if history[-1] <= tol:
            break
        q = _axpy(shift, direction, product(direction), work)
        curvature = float(direction @ q)
        if curvature <= 0 or rho <= 0:  # rounding: no direction is left to improve along
            break
        step = rho / curvature
        _axpy(step, direction, x, work)
        _axpy(-step, q, r, work)
        z = precondition(r)
        rho_old, rho = rho, float(r @ z)
        direction *= rho / rho_old
        direction += z
        history.append(float(np.linalg.norm(r)) / norm)
    return Solution(x[:, None], np.array(history[-1:]), len(history) - 1, history[-1] <= tol, np.array(history))


def conjugate_residuals(product: Product, b: np.ndarray, shift: float = 0.0) -> Iterator[tuple[np.ndarray, float]]:
    """x after each iteration for (M + shift I) x = b, and ||b - (M + shift) x|| / ||b||; M positive semi-definite.

    Every x has the least residual in its Krylov space, so residuals never rise; where stopping early is the
    regulariser, conjugate gradients would fit what matters least first. Stops when no progress is possible. Every
    iteration yields the same array, updated in place.
    """
    norm = float(np.linalg.norm(b))
    if norm == 0:
        return
    times = lambda v: product(v) + shift * v if shift else product(v)
    x, r = np.zeros(len(b)), b.astype(np.float64)
    p, Mr = r.copy(), times(r)
    Mp, rho, work = Mr.copy(), float(r @ Mr), np.empty_like(r)
    small = 1e-15 * rho / norm**2  # eigenvalues that are rounding, relative to the mean one along b
    while rho > small * float(r @ r):  # part of b is still outside the null space of M
        step = rho / float(Mp @ Mp)
        _axpy(step, p, x, work)
        _axpy(-step, Mp, r, work)
        yield x, float(np.linalg.norm(r)) / norm
        Mr = times(r)
        rho, before = float(r @ Mr), rho
        for v, along in ((p, r), (Mp, Mr)):
            v *= rho / before
            v += along


def warn_if_stopped_early(
    solution: Solution, what: str, remedy: str = "scale the features or use a larger alpha"
) -> None:
    """Warn if the solver did not converge."""
    if not solution.converged:
        warn(
            f"{what} stopped after {solution.iterations} iterations with relative residual "
            f"{solution.residual.max():.1e}: {remedy}",
            ConvergenceWarning,
        )
