"""Stacking: non-negative weights for the held-out scores of several models, by pairwise ridge regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg
from scipy.optimize import nnls

from ..core.preferences import QueryPreferences

RIDGE = 0.1
LEAST = 0.1  # models with a smaller share of the weights are left out


def stack(F: QueryPreferences, H: np.ndarray, y: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
    """(k,) argmin over w >= 0 of ||F (y - H w)||^2 + ridge * mean diagonal * |w - e|^2, for H (m, k) of equal spread.

    The weights e are the best equal ones: if held-out scores cannot tell models apart, their mean is best. Models with
    a small share of the weights are left out, and the others refitted.
    """
    return stacks(F, H, y, (ridge,))[:, 0]


def stacks(F: QueryPreferences, H: np.ndarray, y: np.ndarray, ridges: Sequence[float]) -> np.ndarray:
    """(k, n_ridges) the weights for each of several ridges."""
    A, z = F @ H, F @ y
    S, c = A.T @ A, A.T @ z
    return np.stack([_weights(S, c, ridge) for ridge in ridges], axis=1)


def _weights(S: np.ndarray, c: np.ndarray, ridge: float) -> np.ndarray:
    weights = non_negative(S, c, ridge)
    kept = np.flatnonzero(weights > LEAST * weights.sum())
    if 0 < len(kept) < len(weights):
        weights = np.zeros(len(weights))
        weights[kept] = non_negative(S[np.ix_(kept, kept)], c[kept], ridge)
    return weights


def non_negative(S: np.ndarray, c: np.ndarray, ridge: float) -> np.ndarray:
    """argmin over w >= 0 of w'S w - 2 c'w + ridge * mean diagonal * |w - e|^2, with e >= 0 the best equal weights."""
    equal = max(float(c.sum()), 0.0) / max(float(S.sum()), 1e-30)
    shift = ridge * max(float(np.trace(S)) / len(S), 1e-30)
    C = linalg.cholesky(S + shift * np.eye(len(S)))
    return nnls(C, linalg.solve_triangular(C, c + shift * equal, trans="T"))[0]
