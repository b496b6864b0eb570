"""Fast scores for serving: `predict` on plain arrays with as little overhead as possible."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from ...core.expansion import expanded
from ...kernels import Kernel
from ...system.types import MatrixLike

Scorer = Callable[[np.ndarray], np.ndarray]


def is_plain(X: MatrixLike, n_features: int) -> bool:
    """True if X is a finite float array of the right shape, which needs no further checks."""
    return _has_shape(X, n_features) and bool(np.isfinite(np.asarray(X)).all())


def _has_shape(X: MatrixLike, n_features: int) -> bool:
    if type(X) is not np.ndarray or X.dtype.char not in "df" or X.ndim != 2 or not X.flags.c_contiguous:
        return False
    return X.shape[1] == n_features and len(X) > 0


def plain_products(X: MatrixLike, coef: np.ndarray, n_features: int) -> np.ndarray | None:
    """X coef' for a finite float array of the right shape, reading it once; None if X is anything else.

    A product with a value that is not finite is not finite either, unless the value has weight zero.
    """
    if not _has_shape(X, n_features):
        return None
    rows = np.asarray(X)
    with np.errstate(invalid="ignore", over="ignore"):
        products = rows @ coef.T
    checked = products if coef.all() else rows
    return products if np.isfinite(checked).all() else None


def linear_scorer(coef: np.ndarray, intercept: object) -> Scorer:
    """x -> coef' x + intercept, on private copies of both."""
    w, b = coef.T.copy(), copy(intercept)
    return lambda X: X @ w + b


def kernel_scorer(kernel: Kernel, points: object, coef: np.ndarray, intercept: object) -> Scorer:
    """x -> k(x, points) coef + intercept."""
    values, a, b = kernel.beside(points), coef.copy(), copy(intercept)
    return lambda X: expanded(values, X, a) + b
