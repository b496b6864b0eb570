"""Sparse features of objects: the kernels X X' and Z Z' instead of the features, read only at the edges.

Two objects with few features seldom share one. With sparse kernels, a product with the kernel of q edges costs one
multiplication for each edge and each object that shares a feature with one of its ends; this needs the compiled code of
the extra `fast`. Dense kernels cost q multiplications for each object, however many features objects have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..core import fused
from ..system.parallel import share
from ..system.types import Matrix

LIMIT = 60_000_000  # elements of both kernels kept in memory
GATHER = 3  # a multiplication through indices costs as much as this many with features, some columns at a time
ROWS = 2  # and one with a row of a dense kernel as much as this many
SHARED = 40  # and one of two objects' features, when a kernel is made, as much as this many
ITERATIONS = 30  # products that at least follow the first
BLOCKS = 64  # of rows, which threads share


class SparseGrams:
    """(G V K)[row, column] for sparse V, with the sparse kernels G and K of both ends."""

    def __init__(self, X: Matrix, Z: Matrix):
        self.G, self.K = _gram(X), _gram(Z)
        self._last: tuple[Any, ...] = (None, None, None)

    @classmethod
    def of(cls, X: Any, Z: Any, n_edges: int) -> SparseGrams | None:
        """None if the kernels have too many elements, another way costs less, or there is no compiled code."""
        size = [min(_shared(A), A.shape[0] ** 2) for A in (X, Z)]
        each = sum(elements / max(1, A.shape[0]) * n_edges for elements, A in zip(size, (X, Z), strict=True))
        cost = GATHER * each + SHARED / ITERATIONS * (_shared(X) + _shared(Z))
        if sum(size) > LIMIT or cost > min(by_columns(X, Z), _dense_cost(X, Z, n_edges)):
            return None
        return cls(X, Z) if fused.worth(ITERATIONS * each) else None

    def at(self, V: sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Scores of any edges."""
        from .compiled import scores_of_edges

        if self._last[0] is not rows:
            order = np.argsort(rows, kind="stable")
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.G.shape[0]))])
            self._last = rows, order, starts
        _, order, starts = self._last
        out = np.empty(len(rows))
        G, W, K = ((A.indptr, A.indices, A.data) for A in (self.G, V, self.K))

        def work(blocks: Sequence[tuple[int, int]]) -> None:
            for first, last in blocks:
                scores_of_edges(G, W, K, order, starts, columns, first, last, out)

        cuts = np.searchsorted(starts, np.linspace(0, len(rows), BLOCKS + 1)).clip(max=self.G.shape[0])
        cuts[0], cuts[-1] = 0, self.G.shape[0]
        blocks = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
        share(work, blocks, cost=float(self.G.nnz + self.K.nnz) * len(rows) / len(starts), label="scores of edges")
        return out


def by_columns(X: Any, Z: Any) -> float:
    """Multiplications of a product with features, some columns at a time."""
    return float(X.nnz + Z.nnz) * Z.shape[1]


def dense_kernels(X: Any, Z: Any, n_edges: int) -> tuple[np.ndarray, np.ndarray] | None:
    """X X' and Z Z' as dense matrices; None if they are too large or features cost less."""
    if _dense_cost(X, Z, n_edges) > by_columns(X, Z):
        return None
    return _gram(X).toarray(), _gram(Z).toarray()


def _dense_cost(X: Any, Z: Any, n_edges: int) -> float:
    p, r = X.shape[0], Z.shape[0]
    made = SHARED / ITERATIONS * (_shared(X) + _shared(Z))
    return ROWS * float(n_edges) * (p + r) + made if p**2 + r**2 <= LIMIT else np.inf


def _gram(X: Matrix) -> sparse.csr_array:
    A = sparse.csr_array(X, dtype=np.float64)
    found = sparse.csr_array(A @ A.T)
    found.sort_indices()
    return found


def _shared(X: Any) -> int:
    """Pairs of objects that share a feature, counted once for each feature."""
    return int(np.sum(np.bincount(X.indices, minlength=1).astype(np.int64) ** 2))
