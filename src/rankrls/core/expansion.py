"""Scores of a kernel model, a block of rows at a time, and the precision of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels import Kernel
from ..system.parallel import one_thread_each, share
from ..system.types import Matrix

SINGLE = (1e-30, 1e30)  # the range of scores and weights that are stored in single precision
CELLS = 1 << 19  # kernel values per block, few enough to stay in the cache while they are multiplied


def expansion(kernel: Kernel, X: Matrix, points: Matrix, coef: np.ndarray, *, cells: int = CELLS) -> np.ndarray:
    """f(x) = sum_i k(x, x_i) a_i for the rows x of X; needs memory for one block of kernel values per thread."""
    return expanded(kernel.beside(points), X, coef, cells=cells)


def expanded(values: Callable[[Matrix], np.ndarray], X: Matrix, coef: np.ndarray, *, cells: int = CELLS) -> np.ndarray:
    """The same for `values`, a function of x that returns the (k(x, x_i))_i."""
    m, r = X.shape[0], coef.shape[0]
    step = max(16, cells // max(1, r))
    if m <= step:
        with one_thread_each.briefly():
            return values(X) @ coef
    scores = np.empty((m, *coef.shape[1:]), dtype=np.result_type(X.dtype, coef.dtype))

    def work(starts: Iterable[int]) -> None:
        for i in starts:
            np.matmul(values(X[i : i + step]), coef, out=scores[i : i + step])

    share(work, range(0, m, step), cost=float(m) * r, label="scores")
    return scores


def in_precision(values: Any, dtype: Any) -> Any:
    """Scores (NaN where unknown) or weights in the precision of their rows, unless that is single and too narrow."""
    if dtype != np.float32:
        return values
    known = values.data if sparse.issparse(values) else values
    top = float(np.max(np.abs(known), initial=0.0, where=~np.isnan(known)))
    return values.astype(np.float32) if top == 0 or SINGLE[0] < top < SINGLE[1] else values
