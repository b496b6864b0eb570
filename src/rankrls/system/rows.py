"""Draw rows by a keyed hash of their content: the same rows wherever, in whatever order and however often they occur.

The key of a row is a hash of a seed and of the row's numbers. The rows with the k smallest keys are a random sample of
the distinct rows, and the samples of two parts merge into a sample of the whole.

Keys depend on the units of columns. To draw a few rows of a sample, take them from its shuffled order, which starts
from sorted rows: multiplying a column by a positive number, or adding one to it, does not change that order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from .types import Matrix

BLOCK_CELLS = 1 << 20
CANDIDATES = 20_000  # distinct rows to choose from; drawn at random if there are more


def row_keys(X: Matrix, seed: int) -> np.ndarray:
    """(m,) a 64-bit key of each row, dense or sparse, from a seed and the row's values as 64-bit floats.

    Each nonzero value contributes a hash of itself and its column; the sum of these is mixed once more.
    """
    seed_key = _mixed(np.array([seed % 2**64], dtype=np.uint64))
    column_keys = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64) * _STEP + seed_key)
    if sparse.issparse(X):
        return _mixed(_sparse_sums(X, column_keys) ^ seed_key)
    sums = np.empty(X.shape[0], dtype=np.uint64)
    size = max(1, BLOCK_CELLS // max(1, X.shape[1]))
    for i in range(0, X.shape[0], size):
        block = np.ascontiguousarray(X[i : i + size], dtype=np.float64) + 0.0  # -0.0 becomes 0.0
        sums[i : i + size] = _hashed(block, column_keys).sum(axis=1, dtype=np.uint64)
    return _mixed(sums ^ seed_key)


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows with the smallest keys, sorted by key; weights of equal rows are added."""

    size: int  # keep at most this many rows
    keys: np.ndarray  # (k,)
    X: Any  # (k, n)
    weights: np.ndarray  # (k,)

    @classmethod
    def of(cls, X: Any, weights: np.ndarray | None, size: int, seed: int, *, below: int = 2**64) -> DistinctRows:
        """The `size` rows with the smallest keys, among those with keys below `below`."""
        keys = row_keys(X, seed)
        weights = np.ones(X.shape[0]) if weights is None else weights
        if below < 2**64:
            rows = np.flatnonzero(keys < np.uint64(below))
            keys, X, weights = keys[rows], X[rows], weights[rows]
        return cls(size, keys, X, weights)._joined()

    def __add__(self, other: DistinctRows) -> DistinctRows:
        stack = sparse.vstack if sparse.issparse(self.X) else np.concatenate
        X: Any = stack([self.X, other.X])
        both = (np.concatenate(pair) for pair in ((self.keys, other.keys), (self.weights, other.weights)))
        keys, weights = both
        return DistinctRows(self.size, keys, X.tocsr() if sparse.issparse(X) else X, weights)._joined()

    def __len__(self) -> int:
        return len(self.keys)

    def shuffled(self, rng: np.random.Generator) -> DistinctRows:
        """The same rows in a random order, which depends neither on the units of columns nor on the order of rows."""
        order = sorted_order(self.X)[rng.permutation(len(self))]
        return replace(self, keys=self.keys[order], X=self.X[order], weights=self.weights[order])

    def _joined(self) -> DistinctRows:
        keys, first, place = np.unique(self.keys, return_index=True, return_inverse=True)
        weights = np.bincount(place, weights=self.weights, minlength=len(keys))
        rows = first[: self.size]
        return DistinctRows(self.size, keys[: self.size], self.X[rows], weights[: self.size])


def sorted_order(X: Matrix) -> np.ndarray:
    """(m,) the places of rows sorted by their first column, then by the next, and so on.

    Sparse rows are sorted by the columns of their nonzero values, then by the values.

    Examples
    --------
    >>> sorted_order(np.array([[2.0, 0.0], [1.0, 5.0], [1.0, -5.0]]))
    array([2, 1, 0])
    """
    if sparse.issparse(X):
        X = sparse.csr_array(X, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        ends = list(zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True))
        rows = [(X.indices[i:j].tolist(), X.data[i:j].tolist()) for i, j in ends]
        return np.array(sorted(range(len(rows)), key=rows.__getitem__), dtype=np.intp)
    n, k = X.shape[1], 1
    while True:  # usually a few columns tell rows apart
        order = np.lexsort(X[:, :k].T[::-1])
        first = X[order, :k]
        if k >= n or not np.any(np.all(first[1:] == first[:-1], axis=1)):
            return order
        k *= 4


_STEP = np.uint64(0x9E3779B97F4A7C15)


def _mixed(v: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every bit of the input affects every bit of the output."""
    v = (v ^ (v >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    v = (v ^ (v >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return v ^ (v >> np.uint64(31))


def _hashed(values: np.ndarray, column_keys: np.ndarray) -> np.ndarray:
    bits = values.view(np.uint64)
    return np.where(bits == 0, np.uint64(0), _mixed(bits + column_keys))


def _sparse_sums(X: Matrix, column_keys: np.ndarray) -> np.ndarray:
    X = sparse.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    hashes = _hashed(X.data.astype(np.float64) + 0.0, column_keys[X.indices])
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return total[X.indptr[1:]] - total[X.indptr[:-1]]
