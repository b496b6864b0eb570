"""X -> Phi: the features a model is linear in, read in blocks of rows.

`Identity` takes the columns of X as they are. `Nystroem(kernel, points)` takes the kernel to some basis points with
the penalty c' K_rr c, which is Sparse RankRLS; with every point as basis it is the full kernel method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ..kernels import Kernel
from ..system.lazy import cached_property
from ..system.parallel import Scratch
from ..system.types import Matrix
from .means import Read, Rows
from .symmetric import whitening

# Directions of the basis points below this share of the largest eigenvalue are left out. A function of norm 1 has
# values of sqrt(share) there, so scores move by at most a share of 3e-7; rounding would move them by eps / sqrt(share).
RANK_TOLERANCE = 1e-13


class Features(Protocol):
    """What a primal fit needs from its features."""

    @property
    def n_columns(self) -> int: ...

    @property
    def W(self) -> np.ndarray | None:
        """(n, r) with ||W^-1 w||^2 the penalty; None where it is ||w||^2."""

    def reader(self, X: Matrix) -> Callable[[], Read]:
        """A factory of functions rows -> Phi[rows], one per thread; read-only, valid until the next call."""


@dataclass(frozen=True)
class Identity:
    """The columns of X."""

    n_columns: int
    dense: bool = False  # rows of a sparse X are made dense as they are read
    W = None

    def reader(self, X: Matrix) -> Callable[[], Read]:
        if sparse.issparse(X) and self.dense:
            return lambda: lambda rows: X[rows].toarray()  # type: ignore[union-attr]
        if sparse.issparse(X):
            return lambda: lambda rows: X[rows]
        return partial(_dense, X)


@dataclass(frozen=True)
class Nystroem:
    """The kernel to r basis points; the penalty is the norm of the kernel's space."""

    kernel: Kernel
    points: Any  # (r, n_features)

    @property
    def n_columns(self) -> int:
        return self.points.shape[0]

    @cached_property
    def W(self) -> np.ndarray:
        points = self.points.astype(np.float64)
        K = self.kernel(points, points)
        return whitening((K + K.T) / 2, RANK_TOLERANCE)

    def reader(self, X: Matrix) -> Callable[[], Read]:
        points = self.points.astype(np.float64)
        return lambda: lambda rows: self.kernel(X[rows].astype(np.float64), points)


@dataclass(frozen=True)
class Projected:
    """Linear combinations V of the columns of some features."""

    features: Features
    V: np.ndarray  # (n, k)
    W = None

    @property
    def n_columns(self) -> int:
        return self.V.shape[1]

    def reader(self, X: Matrix) -> Callable[[], Read]:
        reader = self.features.reader(X)

        def projected() -> Read:
            read = reader()
            return lambda rows: read(rows) @ self.V

        return projected


def _dense(X: np.ndarray) -> Read:
    """Rows of a dense array: a view where rows are contiguous and adjacent, else a copy."""
    scratch, contiguous = Scratch(X.dtype), X.strides[1] == X.itemsize

    def read(rows: Rows) -> np.ndarray:
        if isinstance(rows, slice):
            block = X[rows]
            if contiguous:
                return block
            out = scratch(*block.shape)
            np.copyto(out, block)
            return out
        if not X.flags.c_contiguous:
            return X[rows]
        return np.take(X, rows, axis=0, out=scratch(len(rows), X.shape[1]), mode="clip")

    return read
