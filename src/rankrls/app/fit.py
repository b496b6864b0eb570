"""The model of a session at every alpha, computed from its sums.

With columns S switched on and scales s, the model solves min ||A w - z||^2 + alpha ||s w||^2 over w_S. In the
coordinates of `path` the score of a document is phi' basis (z / (d + alpha)) for every alpha, so a page that has
phi' basis of its documents can follow the alpha slider without the server. Sign-constrained weights come from the same
sums, by pivoting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import linalg

from ..core.ridge import RidgePath, primal
from ..core.signs import signed_solution
from ..core.statistics import Statistics
from ..core.symmetric import cutoff, eigh
from ..problems.choice import default_alphas
from ..system.lazy import cached_property
from .state import State

MOST_KNOWN = 200  # solutions that are kept
DIRECT = 1200  # up to this many columns the path is computed at once; with more, single alphas are solved until then


@dataclass(frozen=True)
class Fit:
    """Sums over all columns, the columns switched on, their scales, and sign constraints."""

    sums: Statistics
    on: np.ndarray  # (k,) columns
    scale: np.ndarray  # (k,)
    unit: np.ndarray  # (n,) how much each column varies within queries
    W: np.ndarray | None  # whitening of a kernel's penalty
    signs: np.ndarray | None  # (k,) -1, 0, 1, or None if all are free
    rows: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = (
        None  # reads A and z, if rows are few
    )
    known: dict[float, np.ndarray] = field(default_factory=dict)  # solutions found so far

    @cached_property
    def reduced(self) -> Statistics:
        """The sums in coordinates with the penalty ||v||^2."""
        gram, cross = self.sums.gram, self.sums.cross
        if self.W is not None:
            return replace(self.sums, gram=self.W.T @ gram @ self.W, cross=self.W.T @ cross)
        if len(self.on) < len(gram):
            gram, cross = gram[np.ix_(self.on, self.on)], cross[self.on]
        return replace(self.sums, gram=gram / np.outer(self.scale, self.scale), cross=cross / self.scale[:, None])

    @cached_property
    def path(self) -> RidgePath:
        """One factorisation for every alpha; its basis has a row for each column of Phi."""
        path = primal(self.reduced) if self.rows is None else from_rows(*self.rows(self.on, self.scale))
        return RidgePath(self.expanded(path.basis), path.d, path.z)

    def expanded(self, v: np.ndarray) -> np.ndarray:
        """Weights of columns from reduced coordinates."""
        if self.W is not None:
            return self.W @ v
        full = np.zeros((len(self.sums.gram), v.shape[1]))
        full[self.on] = v / self.scale[:, None]
        return full

    @property
    def has_path(self) -> bool:
        """True if every alpha is solved at next to no cost."""
        return "path" in self.__dict__ or self.rows is not None or len(self.on) <= DIRECT

    def coef(self, alpha: float) -> np.ndarray:
        """(n,) the weights of the columns of Phi."""
        if alpha not in self.known:
            if len(self.known) > MOST_KNOWN:
                self.known.clear()
            self.known[alpha] = self._solution(alpha)
        return self.known[alpha]

    def _solution(self, alpha: float) -> np.ndarray:
        if self.signs is not None:
            H = self.reduced.gram + alpha * np.eye(len(self.on))
            return self.expanded(signed_solution(H, self.reduced.cross[:, 0], self.signs)[:, None])[:, 0]
        if self.has_path:
            return self.path.coef(alpha)[:, 0]
        return self.expanded(self.solve(alpha, self.reduced.cross))[:, 0]

    def solve(self, alpha: float, rhs: np.ndarray) -> np.ndarray:
        """(A'A + alpha I)^-1 rhs in reduced coordinates."""
        M = self.reduced.gram.copy()
        M[np.diag_indices_from(M)] += alpha
        return linalg.cho_solve(linalg.cho_factor(M, overwrite_a=True, check_finite=False), rhs, check_finite=False)

    @property
    def nbytes(self) -> int:
        """Approximate memory: the sums, the reduced sums, and the path."""
        return 4 * self.sums.gram.nbytes

    def intercept(self, coef: np.ndarray) -> float:
        """The unpenalised intercept; zero for a pure ranking loss."""
        return float(self.sums.target_mean[0] - self.sums.mean @ coef) if self.sums.beta > 0 else 0.0

    def alphas(self) -> np.ndarray:
        """The grid of the curve."""
        if self.W is not None:
            return default_alphas(float(np.trace(self.reduced.gram)) / max(1, self.W.shape[1]))
        return default_alphas(float(np.mean(np.diag(self.sums.gram)[self.on] / self.scale**2)))

    def leverage(self, alpha: float, direction: np.ndarray) -> float:
        """d'(A'A + alpha)^-1 d of a difference of two documents: how far a preference of small weight moves them."""
        if self.has_path:
            b = direction @ self.path.basis
            return float(np.sum(b**2 / (self.path.d + alpha)))
        v = self.W.T @ direction if self.W is not None else direction[self.on] / self.scale
        return float(v @ self.solve(alpha, v[:, None])[:, 0])

    def noise(self, alpha: float) -> float:
        """The standard deviation of labels from scores: residual sum of squares over degrees of freedom."""
        if not self.has_path or not self.sums.n_rows:
            return 0.0
        d, z = self.path.d, self.path.z[:, 0]
        shrunk = 1 / (d + alpha)
        rss = max(0.0, float(self.sums.square[0] - np.sum(z**2 * shrunk * (2 - d * shrunk))))
        free = self.sums.n_rows - self.sums.n_queries - float(np.sum(d * shrunk))
        return float(np.sqrt(rss / free)) if free > 0 else 0.0

    def deviation(self, B: np.ndarray, alpha: float) -> np.ndarray:
        """Standard deviations of scores from the mean of their query; B (m, r) are their coordinates in the path."""
        return self.noise(alpha) * np.sqrt(B**2 @ (1 / (self.path.d + alpha)))


def from_rows(A: np.ndarray, z: np.ndarray) -> RidgePath:
    """The path of ||A w - z||^2 + alpha ||w||^2 for few rows: A A' = U diag(d) U', V = A'U / sqrt(d)."""
    d, U = eigh(A @ A.T)
    keep = d > max(d[-1], 0) * cutoff(len(d))
    root, U = np.sqrt(d[keep]), U[:, keep]
    return RidgePath((A.T @ U) / root, d[keep], root[:, None] * (U.T @ z))


def fitted(sums: Statistics, W: np.ndarray | None, state: State, unit: np.ndarray, rows: Any = None) -> Fit:
    """The fit of sums under the settings of a state; `unit` is how much each column varies within queries.

    The unit of a column is its spread, as in `RankRLS(scale="auto")`, or one. A column that does not vary gets an
    infinite unit, which keeps its weight at zero.
    """
    n = len(sums.gram)
    on = np.setdiff1d(np.arange(n), sorted(state.off)) if state.off and W is None else np.arange(n)
    signs = np.zeros(n, dtype=int)
    if W is None:
        signs[list(state.signs)] = list(state.signs.values())
    plain = state.scale == "none" or not sums.n_rows
    units = np.ones(n) if plain else np.where(unit > 0, unit, np.inf)
    wide = len(on) > DIRECT and W is None
    return Fit(sums, on, units[on], unit, W, signs[on] if signs[on].any() else None, rows if wide else None)
