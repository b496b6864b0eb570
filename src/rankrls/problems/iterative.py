"""RankRLS by conjugate gradients, for sparse data with many columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..core.krylov import Solution, multishift_cg, warn_if_stopped_early
from ..core.preferences import QueryPreferences
from ..core.statistics import (
    targets,
)
from ..system.lazy import cached_property
from .base import HeldOutFold, Model


@dataclass(frozen=True)
class Iterative:
    """Conjugate gradients on v -> X'F'F X v, for many rows and many sparse columns; one Krylov space for all alphas."""

    F: QueryPreferences
    X: Any
    y: np.ndarray
    tol: float = 1e-8
    max_iter: int = 2000

    @property
    def mean_eigenvalue(self) -> float:
        u = np.ones(self.F.shape[0]) if self.F.u is None else self.F.u
        trace = (u * self.F.between[self.F.queries.codes] ** 2) @ np.asarray(
            self.X.multiply(self.X).sum(axis=1)
        ).ravel()
        return float(trace) / min(self.F.weight, self.X.shape[1])

    @cached_property
    def mean(self) -> np.ndarray:
        if self.F.beta == 0:
            return np.zeros(self.X.shape[1])
        u = np.ones(self.F.shape[0]) if self.F.u is None else self.F.u
        return (self.X.T @ u) / self.F.weight

    def solutions(self, alphas: np.ndarray) -> list[Solution]:
        """One solution for each target."""
        checks.check_penalised(float(alphas.min()))
        z, F = targets(self.F, self.y)[0], self.F

        def product(v: np.ndarray) -> np.ndarray:
            r = F.T @ (F @ (self.X @ v - self.mean @ v))
            return self.X.T @ r - self.mean * r.sum()

        found = []
        for column in (F.T @ z).T:
            rhs = self.X.T @ column - self.mean * column.sum()
            found.append(multishift_cg(product, rhs, alphas, tol=self.tol, maxiter=self.max_iter))
            warn_if_stopped_early(found[-1], "the conjugate gradient solver")
        return found

    def models(self, alphas: np.ndarray) -> list[Model]:
        coefs = np.stack([solution.value for solution in self.solutions(alphas)], axis=2)  # (n, k, t)
        target_mean = targets(self.F, self.y)[1]
        return [Model(coef, target_mean - self.mean @ coef) for coef in coefs.transpose(1, 0, 2)]

    def model(self, alpha: float) -> Model:
        return self.models(np.array([alpha]))[0]

    def leave_out(self, folds: Sequence[HeldOutFold], alphas: np.ndarray) -> np.ndarray:
        """Held-out scores, by one run of conjugate gradients per fold."""
        scores = np.full((self.F.shape[0], len(alphas), self.y.shape[1]), np.nan)
        for fold in folds:
            rest = self.restrict(fold.rest(self.F.shape[0]))
            for k, model in enumerate(rest.models(alphas * fold.factor)):
                scores[fold.rows, k] = self.X[fold.rows] @ model.coef + model.intercept
        return scores

    def restrict(self, rows: np.ndarray) -> Iterative:
        return Iterative(self.F.restrict(rows), self.X[rows], self.y[rows], self.tol, self.max_iter)
