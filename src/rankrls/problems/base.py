"""A learning problem: preferences, features and targets, to be solved for any alpha and held out exactly.

`Primal` works from the sums of `statistics` in the feature space, `Dual` from a kernel matrix, `Iterative` from
products with a sparse matrix. Each has

    model(alpha)                coefficients and intercept
    leave_out(folds, alphas)    (m, k, t) scores of every row by the model that never saw its fold; NaN outside folds
    mean_eigenvalue             of the loss, the natural unit of alpha

A fold is a union of whole queries; `folds=None` leaves out each query in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.statistics import Statistics


@dataclass(frozen=True)
class Model:
    """f(x) = phi(x)' coef + intercept."""

    coef: np.ndarray  # (p, t)
    intercept: np.ndarray  # (t,)

    @classmethod
    def of(cls, coef: np.ndarray, sums: Statistics) -> Model:
        """The model with the intercept that the means of the data give."""
        return cls(coef, sums.target_mean - sums.mean @ coef)


@dataclass(frozen=True)
class Fold:
    """Rows left out together: whole queries, unless `whole` is false.

    While they are out alpha counts `factor` times (1 but for items of a single query).
    """

    rows: np.ndarray
    factor: float = 1.0
    whole: bool = True

    def rest(self, m: int) -> np.ndarray:
        """The rows that stay."""
        stay = np.ones(m, dtype=bool)
        stay[self.rows] = False
        return np.flatnonzero(stay)
