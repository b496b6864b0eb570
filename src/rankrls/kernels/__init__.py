"""Kernels as objects: `kernel(X, Z)` is the (m, r) matrix of k(x, z).

A kernel is a small dataclass of its parameters. `gamma="scale"` is 1 / (n_features * variance of X), fixed by
`kernel.fitted(X)` when an estimator is fitted, or 1 / the number of columns that vary where `RankRLS(scale="auto")`
divides columns by their spread; `gamma="auto"` leaves the choice among `kernel.candidates(X)` to
hold-out; a kernel whose parameters are all numbers is ready to call.

Examples
--------
>>> import numpy as np
>>> from rankrls import RankRLS, kernels
>>> kernels.Gaussian(gamma=0.5)(np.zeros((1, 2)), np.ones((1, 2))).round(3)
array([[0.368]])
>>> model = RankRLS(1.0, kernel=kernels.Polynomial(degree=2, gamma=1.0), scale=None)
>>> model.fit([[1.0], [2.0], [3.0]], [0, 1, 0]).kernel_
Polynomial(degree=2, gamma=1.0, coef0=1.0)
"""

from .columns import (
    MEDIAN_ROWS,
    SHORTHANDS,
    WIDTHS,
    Cosine,
    Function,
    Gaussian,
    Kernel,
    KernelLike,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Scaled,
    as_kernel,
)
from .columns import for_scaled as for_scaled
from .columns import (
    is_other as is_other,
)
from .columns import (
    is_precomputed as is_precomputed,
)
from .distances import Moments as Moments
from .distances import divided as divided
from .objects import ObjectKernel, Spectrum, Walks, parse_graph
from .objects import (
    compares_objects as compares_objects,
)

__all__ = [
    "MEDIAN_ROWS",
    "SHORTHANDS",
    "WIDTHS",
    "Cosine",
    "Function",
    "Gaussian",
    "Kernel",
    "KernelLike",
    "Laplacian",
    "Linear",
    "ObjectKernel",
    "Polynomial",
    "Precomputed",
    "Scaled",
    "Spectrum",
    "Walks",
    "as_kernel",
    "parse_graph",
]
