"""RankRLS solved from sums over rows, for models and exact hold-out when the rows are not in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from .. import checks
from ..core.ridge import RidgePath, primal
from ..core.statistics import Statistics
from ..core.symmetric import UNCLEAR, gentle, ill_conditioned, solve_shifted, steep, unwhitened
from ..system.types import DTypeLike
from .base import Model

STEPS = 3


class ReadableRows(Protocol):
    """Rows that can be read again where their sums have lost digits."""

    def look(self, V: np.ndarray) -> Statistics:
        """The sums of the rows in the directions V (n, k)."""

    def gradient(self, model: Model) -> np.ndarray:
        """(n, t) A'(z - A w)."""


@dataclass(frozen=True)
class Solved:
    """The sums over all rows and their ridge path."""

    sums: Statistics
    path: RidgePath
    W: np.ndarray | None = None  # the penalty is ||W^-1 w||^2

    @classmethod
    def of(cls, sums: Statistics, W: np.ndarray | None, dtype: DTypeLike, rows: ReadableRows | None = None) -> Solved:
        """One factorisation; W (n, r), or a diagonal (n,), whitens the penalty.

        With `rows`, directions that rounding of the sums hides are found too.
        """
        if W is not None and steep(W):
            if rows is None:
                return cls(sums, primal(sums, gentle(W), dtype), W)
            path = primal(rows.look(W), None, dtype)
            return cls(sums, replace(path, basis=W @ path.basis), W)
        return cls(sums, primal(sums, W, dtype, None if rows is None else rows.look), W)

    def model(self, alpha: float, rows: ReadableRows | None = None) -> Model:
        """The model at alpha; with `rows`, digits that A'A has lost are recovered."""
        path, D = self.path, self.path.inverse(np.array([alpha]))
        c = D * path.z
        if rows is not None and _by_columns(self.W) and path.condition(alpha) * UNCLEAR > 1:
            for _ in range(STEPS):
                gradient = rows.gradient(Model.of(path.basis @ c, self.sums))
                step = D * (path.basis.T @ gradient - alpha * c)  # a Newton step: only its Hessian comes from the sums
                c += step
                if np.linalg.norm(step) <= 1e-10 * np.linalg.norm(c):
                    break
        return Model.of(path.basis @ c, self.sums)


def needs_rows(sums: Statistics, W: np.ndarray | None, alphas: Any) -> bool:
    """True if the smallest alpha needs digits that the sums have lost but the rows still have."""
    return steep(W) or (_by_columns(W) and ill_conditioned(sums.whitened(W)[0], float(np.min(alphas))))


def model_at(
    alpha: float, sums: Statistics, W: np.ndarray | None, dtype: DTypeLike, rows: ReadableRows | None = None
) -> Model:
    """The model at one alpha, from a Cholesky factor if that is safe, else from the path."""
    model = cholesky_model(alpha, sums, W, dtype)
    if model is not None:
        return model
    rows = rows if _by_columns(W) or steep(W) else None
    return Solved.of(sums, W, dtype, rows).model(alpha, rows)


def cholesky_model(alpha: float, sums: Statistics, W: np.ndarray | None, dtype: DTypeLike) -> Model | None:
    """The model at one alpha; None if a Cholesky factor may lose half of the digits."""
    check_determined(alpha, sums, W, dtype)
    if steep(W):
        return None
    gram, cross = sums.whitened(W)
    if ill_conditioned(gram, alpha):
        return None
    try:
        return Model.of(unwhitened(W, solve_shifted(gram, alpha, cross)), sums)
    except linalg.LinAlgError:  # rounding of the sums is larger than alpha
        return None


def check_determined(alpha: float, sums: Statistics, W: np.ndarray | None, dtype: DTypeLike) -> None:
    """Raise an error if alpha is zero and the rows do not determine every weight."""
    if alpha == 0:
        directions = len(sums.gram) if W is None else int(np.count_nonzero(W)) if W.ndim == 1 else W.shape[1]
        checks.check_determined(len(primal(sums, W, dtype).d), directions)


def without_noise(total: Statistics, sums: Statistics, dtype: DTypeLike) -> Statistics:
    """The sums of some rows, with A'z set to zero where all of it is rounding, so that nothing random is learned."""
    eps = float(np.finfo(np.dtype(dtype)).eps)
    limit = 100 * eps * _sizes(sums) + (4 * eps * _sizes(total) if total is not sums else 0.0)
    return replace(sums, cross=sums.cross * np.any(np.abs(sums.cross) > limit, axis=0))


def _sizes(sums: Statistics) -> np.ndarray:
    """(n, t) ||A|| ||z|| of each column and target, an upper bound of |A'z|."""
    return np.sqrt(np.maximum(0.0, np.diag(sums.gram)))[:, None] * np.sqrt(np.maximum(0.0, sums.square))


def mean_eigenvalue(sums: Statistics, W: np.ndarray | None) -> float:
    """The mean eigenvalue of the loss, the natural unit of alpha."""
    gram = sums.whitened(W)[0]
    rank = len(gram) if W is None or W.ndim == 2 else np.count_nonzero(W)
    return float(np.trace(gram)) / max(1, rank)


def _by_columns(W: np.ndarray | None) -> bool:
    """True if the features are columns of X, possibly scaled, rather than kernel values to basis points."""
    return W is None or W.ndim == 1
