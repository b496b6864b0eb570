"""Scores for serving: `predict` on plain arrays with as little overhead as possible."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from ...core.expansion import expansion
from ...kernels import Kernel
from ...system.types import MatrixLike

Scorer = Callable[[np.ndarray], np.ndarray]


def is_plain(X: MatrixLike, n_features: int) -> bool:
    """True if X is a finite float array of the right shape, which needs no further checks."""
    if type(X) is not np.ndarray or X.dtype.char not in "df" or X.ndim != 2 or not X.flags.c_contiguous:
        return False
    if X.shape[1] != n_features or not len(X):
        return False
    return bool(np.isfinite(X).all())


def linear_scorer(coef: np.ndarray, intercept: object) -> Scorer:
    """x -> coef' x + intercept, with private copies of both."""
    w, b = coef.T.copy(), copy(intercept)
    return lambda X: X @ w + b


def kernel_scorer(kernel: Kernel, points: object, coef: np.ndarray, intercept: object) -> Scorer:
    """x -> k(x, points) coef + intercept."""
    a, b = coef.copy(), copy(intercept)
    return lambda X: expansion(kernel, X, points, a) + b
