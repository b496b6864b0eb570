"""Explain why one document is above another: what each feature adds to the difference of their scores.

Exact for a linear model: weight times difference. For a kernel model the contribution of feature j is a_j - b_j times
the integral of the partial derivative along the straight line from b to a; contributions add up to the difference.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NODES = 24  # Gauss-Legendre nodes along the line
STEP = 1e-5  # step of central differences, in units of the distance


def line_integral(score: Callable[[np.ndarray], np.ndarray], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) contributions of the features to score(a) - score(b); `score` maps rows to numbers.

    Examples
    --------
    >>> import numpy as np
    >>> parts = line_integral(lambda X: X[:, 0] ** 2 + 3 * X[:, 1], np.array([2.0, 1.0]), np.array([0.0, 0.0]))
    >>> parts.round(6)
    array([4., 3.])
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    points = b + (nodes[:, None] + 1) / 2 * (a - b)
    parts = np.zeros(len(a))
    for j in np.flatnonzero(a != b):
        h = STEP * max(1.0, abs(a[j] - b[j]))
        moved = np.concatenate([points, points])
        moved[:NODES, j] += h
        moved[NODES:, j] -= h
        values = score(moved)
        parts[j] = (a[j] - b[j]) * float(weights @ (values[:NODES] - values[NODES:])) / (4 * h)
    return parts
