"""The loss over a list of edges: F with ||F (y - f)||^2 the loss.

An edge e of row h has the weight u_e, and S_h is their sum over the row. Ranking uses differences within a row,

    rho_h / S_h  *  sum over pairs e, e' of row h of  u_e u_e' ((y_e - y_e') - (f_e - f_e'))^2  =  ||Q D (y - f)||^2,

with D = diag(sqrt(rho_h u_e)) and Q the projection that removes the mean of each row: Q v = v - q (q'v) for each row,
q_e = sqrt(u_e / S_h). Regression has Q = I and rho = 1. Columns H with unpenalised coefficients are projected out
next: P = I - B B' with B an orthonormal basis of Q D H. So F = P Q D, where P Q is a projection.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from ..core.queries import Queries
from ..system.lazy import cached_property


@dataclass(frozen=True)
class EdgeLoss:
    """F of q edges; see the module for the formula."""

    rows: np.ndarray  # (q,) conditioning object of each edge
    ranking: bool
    weights: np.ndarray | None = None  # (q,) u
    weighting: str = "items"
    free: np.ndarray | None = None  # (q, k) H

    @cached_property
    def queries(self) -> Queries:
        return Queries.of(self.rows)

    @cached_property
    def mass(self) -> np.ndarray:
        """(n_rows,) S of each conditioning object that has an edge."""
        return self.queries.sizes.astype(float) if self.weights is None else self.queries.sum(self.weights)

    @cached_property
    def scale(self) -> np.ndarray | None:
        """(q,) D; None where it is 1."""
        factor = row_factor(self.weighting, self.mass)[self.queries.codes] if self.ranking else None
        if self.weighting == "items" or factor is None:
            return None if self.weights is None else np.sqrt(self.weights)
        return np.sqrt(factor if self.weights is None else factor * self.weights)

    @cached_property
    def share(self) -> np.ndarray:
        """(q,) u_e / S_h."""
        mass = np.where(self.mass > 0, self.mass, 1)[self.queries.codes]
        return (1.0 if self.weights is None else self.weights) / mass

    @cached_property
    def _direction(self) -> np.ndarray:
        return np.sqrt(self.share)

    @cached_property
    def _free(self) -> tuple[np.ndarray, np.ndarray] | None:
        """B (q, k) and the triangle (k, k) with B triangle = Q D H."""
        if self.free is None:
            return None
        H = np.column_stack([self._centre(self._scaled(h)) for h in self.free.T])
        return linalg.qr(H, mode="economic", check_finite=False)

    def _scaled(self, v: np.ndarray) -> np.ndarray:
        return v if self.scale is None else self.scale * v

    def _centre(self, v: np.ndarray) -> np.ndarray:
        if not self.ranking:
            return v
        if self.weights is None:
            return v - (self.queries.sum(v) / self.queries.sizes)[self.queries.codes]
        return v - self._direction * self.queries.sum(self._direction * v)[self.queries.codes]

    def of_rows(self, some: np.ndarray) -> list[sparse.csr_array]:
        """For each of k rows, orthonormal columns that Q projects out of the edges `some`; none in regression."""
        if not self.ranking:
            return []
        _, codes = np.unique(self.queries.codes[some], return_inverse=True)
        return [sparse.csr_array((self._direction[some], (np.arange(len(some)), codes)))]

    def of_free(self, some: np.ndarray) -> np.ndarray:
        """(n, k) the rows `some` of B."""
        return np.empty((len(some), 0)) if self._free is None else self._free[0][some]

    def project(self, v: np.ndarray) -> np.ndarray:
        """P Q v."""
        v = self._centre(v)
        return v if self._free is None else v - self._free[0] @ (self._free[0].T @ v)

    def forward(self, r: np.ndarray) -> np.ndarray:
        """F r."""
        return self.project(self._scaled(r))

    def back(self, c: np.ndarray) -> np.ndarray:
        """F' c."""
        return self._scaled(self.project(c))

    def free_coef(self, residual: np.ndarray) -> np.ndarray:
        """(k,) the coefficients of H, given y - f."""
        if self._free is None:
            return np.empty(0)
        B, triangle = self._free
        return linalg.lstsq(triangle, B.T @ self._centre(self._scaled(residual)))[0]


def row_factor(weighting: str, mass: np.ndarray) -> np.ndarray:
    """(n,) rho: "items" weighs a row by its edges, "pairs" by its pairs, "queries" equally."""
    if weighting == "items":
        return np.ones(len(mass))
    if weighting == "pairs":
        return mass
    return np.divide(2.0, mass - 1, out=np.zeros(len(mass)), where=mass > 1)
