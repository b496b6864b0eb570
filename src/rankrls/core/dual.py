"""The dual of a kernel matrix: F K F', from which kernel models are solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from .pairs import PairPreferences
from .preferences import QueryPreferences
from .ridge import RidgePath
from .symmetric import INDEFINITE, cutoff, eigh, ill_conditioned, solve_shifted


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
            top = 2 * self.trace if self.trace > 0 else 1.0  # in the unit of the kernel
            M += top * np.outer(self.v, self.v)
        d, U = eigh(M, overwrite=True)
        if d[0] < -1e-6 * abs(d[-1]):
            raise ValueError(INDEFINITE.format(d[0], d[-1]))
        penalised = d if self.v is None else d[:-1]
        d[d <= penalised.max(initial=0) * cutoff(len(d))] = 0
        if self.v is not None:
            d[-1] = np.inf
        return RidgePath(U, d, U.T @ self.z)

    def solution(self, alpha: float) -> np.ndarray:
        """(p, t) the solution at one alpha: a Cholesky factor where it is safe, else the path. Overwrites FKF."""
        if ill_conditioned(self.FKF, alpha):
            return self.path().coef(alpha)
        try:
            return solve_shifted(self.FKF, alpha, self.z, overwrite=True)
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


def _free_direction(F: Any) -> np.ndarray | None:
    """The unit vector along F 1, which no penalty restrains when there is an intercept."""
    if F.beta == 0:
        return None
    s = np.ones(F.shape[0]) if F.s is None else F.s
    return s / np.linalg.norm(s)


def _project(V: np.ndarray, v: np.ndarray | None) -> np.ndarray:
    return V if v is None else V - np.outer(v, v @ V)
