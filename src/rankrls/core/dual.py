"""The dual of a kernel matrix: F K F', from which kernel models are solved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, sparse

from .pairs import PairPreferences
from .preferences import QueryPreferences
from .ridge import VISIBLE, RidgePath
from .symmetric import INDEFINITE, cutoff, eigh, ill_conditioned, solve_shifted


@dataclass(frozen=True)
class DualSystem:
    """K F' (m, p) and F K F' (p, p), with F bordered by the intercept's direction v where there is one."""

    KF: np.ndarray
    FKF: np.ndarray
    z: np.ndarray  # (p, t)
    v: np.ndarray | None  # (p,) unit vector
    trace: float  # of F K F', which a factorisation overwrites
    rounding: float  # error bound of F K F'
    noise: np.ndarray  # (p,) error bounds of the columns of K F'

    @classmethod
    def of(
        cls, F: Any, k: np.ndarray, KF: np.ndarray, FKF: np.ndarray, z: np.ndarray, v: np.ndarray | None
    ) -> DualSystem:
        """The system of preferences F and a kernel matrix with the diagonal k."""
        root = F.s if isinstance(F, PairPreferences) else F.rounding.roots
        noise = len(FKF) * np.finfo(np.float64).eps * np.max(np.abs(k), initial=0.0) * root
        return cls(KF, FKF, z, v, float(np.trace(FKF)), float(np.max(noise * root, initial=0.0)), noise)

    @property
    def in_range(self) -> bool:
        """True if no product overflowed."""
        return bool(np.isfinite(self.trace) and np.isfinite(self.KF).all() and np.isfinite(self.z).all())

    def path(self) -> RidgePath:
        """F K F' = U diag(d) U'; O(m^3). Overwrites FKF."""
        M, unit = self.FKF, np.ldexp(0.5, np.frexp(self.trace)[1])  # a power of two: nothing overflows or rounds
        M /= unit
        if self.v is not None:  # move the unpenalised direction above all others, so it can be told apart
            M += 4 * np.outer(self.v, self.v)
        d, U = eigh(M, overwrite=True)
        with np.errstate(over="ignore"):
            d *= unit
        if d[0] < -1e-6 * abs(d[-1]) - 10 * self.rounding - np.finfo(np.float64).tiny:
            raise ValueError(INDEFINITE.format(d[0], d[-1]))
        penalised = d if self.v is None else d[:-1]
        most = penalised.max(initial=0)
        small = np.flatnonzero(d <= most * cutoff(len(d)))
        # a function of norm 1 may have values of sqrt(d): it is null only if its values are rounding too
        with np.errstate(over="ignore", invalid="ignore"):  # a bound that overflows tells nothing: then none is seen
            noise = self.noise @ np.abs(U[:, small])
        seen = np.abs(self.KF @ U[:, small]).max(axis=0, initial=0.0) > noise
        d[small] = np.where(seen, np.maximum(d[small], VISIBLE * most), 0.0)
        if self.v is not None:
            d[-1] = np.inf
        return RidgePath(U, d, U.T @ self.z)

    def solution(self, alpha: float) -> np.ndarray:
        """(p, t) the solution at one alpha: a Cholesky factor where it is safe, else the path. Overwrites FKF."""
        if ill_conditioned(self.FKF, alpha) or alpha < 100 * self.rounding:
            return self.path().coef(alpha)
        try:
            return solve_shifted(self.FKF, alpha, self.z, overwrite=True)
        except linalg.LinAlgError:
            raise ValueError(
                "the kernel matrix is not positive semi-definite: use a valid kernel, or add a multiple of the identity"
            ) from None


@np.errstate(over="ignore", invalid="ignore")  # callers check that the sums are finite
def dual_system(F: QueryPreferences | PairPreferences, K: np.ndarray, y: np.ndarray) -> DualSystem:
    """The dual of a kernel matrix K (m, m); y (m, t)."""
    v = _free_direction(F)
    KF = np.ascontiguousarray(_project(F @ K, v).T)
    return DualSystem.of(F, np.diag(K), KF, _project(F @ KF, v), _project(F @ y, v), v)


@np.errstate(over="ignore", invalid="ignore")
def linear_dual_system(
    F: QueryPreferences, columns: Iterable[tuple[np.ndarray, np.ndarray]], y: np.ndarray
) -> DualSystem:
    """The dual of K = X X', accumulated over columns of X so that per-query shifts of X never enter F K F'.

    `columns` gives some columns of X at a time, and F times them.
    """
    v, m = _free_direction(F), F.shape[0]
    KF, FKF, k = np.zeros((m, m)), np.zeros((m, m)), np.zeros(m)
    for part, F_part in columns:
        A = _project(F_part, v)
        KF += part @ A.T
        FKF += A @ A.T
        k += np.einsum("ij,ij->i", part, part)
    system = DualSystem.of(F, k, KF, FKF, _project(F @ y, v), v)
    return replace(system, rounding=0.0)  # products of differences, so nothing cancels


def column_blocks(X: Any) -> Iterator[np.ndarray]:
    """Some columns at a time, dense and in double precision."""
    width = max(1, min(X.shape[1], 4_000_000 // X.shape[0]))
    for j in range(0, X.shape[1], width):
        part = X[:, j : j + width]
        yield np.ascontiguousarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)


def _free_direction(F: Any) -> np.ndarray | None:
    """The unit vector along F 1, which is not penalised when there is an intercept."""
    if F.beta == 0:
        return None
    s = np.ones(F.shape[0]) if F.s is None else F.s
    return s / np.linalg.norm(s)


def _project(V: np.ndarray, v: np.ndarray | None) -> np.ndarray:
    return V if v is None else V - np.outer(v, v @ V)
