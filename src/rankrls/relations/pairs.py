"""Sparse features of pairs: only the products of nonzero features of both ends.

An iteration over the edges costs one multiplication for each product of two nonzeros, however many columns there are.
A product that occurs in a single edge connects it with no other edge: it only adds to the diagonal. Most products of
rare features are like this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..system.lazy import cached_property
from ..system.types import Matrix

LIMIT = 60_000_000  # products kept in memory
BLOCK = 1 << 21  # products computed at a time
BUCKETS = 1 << 24  # size of the hash table that counts products


class PairFeatures:
    """A (q, D) with A A' the product kernel of q edges between objects with sparse features."""

    def __init__(self, X: Matrix, Z: Matrix, rows: np.ndarray, columns: np.ndarray, parity: int):
        self.X, self.Z, self.parity = sparse.csr_array(X), sparse.csr_array(Z), parity
        if parity:
            rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
        self.ends = rows, columns
        keys, values, starts = self._products(rows, columns)
        several = _several(keys)
        edge = np.repeat(np.arange(len(rows)), np.diff(starts))
        self.diagonal = np.bincount(edge[~several], values[~several] ** 2, minlength=len(rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(edge[several], minlength=len(rows)))])
        self.shared = _by_key(keys[several], values[several], starts)[1]

    @cached_property
    def _all(self) -> tuple[np.ndarray, sparse.csr_array]:
        """The keys of all products, sorted, and A."""
        return _by_key(*self._products(*self.ends))

    @staticmethod
    def count(X: Any, Z: Any, rows: np.ndarray, columns: np.ndarray) -> int:
        """The number of products."""
        return int(np.sum(np.diff(X.indptr)[rows].astype(np.int64) * np.diff(Z.indptr)[columns]))

    def _products(self, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys and values of all products, edge by edge, and where each edge starts."""
        left, right = np.diff(self.X.indptr)[rows], np.diff(self.Z.indptr)[columns]
        sizes = left.astype(np.int64) * right
        starts = np.concatenate([[0], np.cumsum(sizes)])
        edge = np.repeat(np.arange(len(rows)), sizes)
        within = np.arange(starts[-1]) - starts[edge]
        at = self.X.indptr[rows][edge] + within // np.maximum(right, 1)[edge]
        across = self.Z.indptr[columns][edge] + within % np.maximum(right, 1)[edge]
        keys = self.X.indices[at].astype(np.int64) * self.Z.shape[1] + self.Z.indices[across]
        return keys, self.X.data[at] * self.Z.data[across], starts

    def _both_ways(self, v: np.ndarray) -> np.ndarray:
        return np.concatenate([v, self.parity * v]) / 2 if self.parity else v

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Scores of the edges themselves."""
        own = self._both_ways(v)
        return (self.shared @ (self.shared.T @ own) + self.diagonal * own)[: len(v)]

    def at(self, v: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Scores of any edges."""
        known, A = self._all
        if not len(known):
            return np.zeros(len(rows))
        w, out = A.T @ self._both_ways(v), np.empty(len(rows))
        each = max(1, self.count(self.X, self.Z, rows, columns) // max(1, len(rows)))
        for i in range(0, len(rows), max(1, BLOCK // each)):
            some = slice(i, i + max(1, BLOCK // each))
            keys, values, starts = self._products(rows[some], columns[some])
            place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            edge = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
            weights = values * (known[place] == keys) * w[place]
            out[some] = np.bincount(edge, weights=weights, minlength=len(starts) - 1)
        return out


def _several(keys: np.ndarray) -> np.ndarray:
    """True if a key occurs more than once."""
    bucket = keys % BUCKETS
    several = np.bincount(bucket, minlength=1)[bucket] > 1  # with a few false positives that share a bucket
    _, which, count = np.unique(keys[several], return_inverse=True, return_counts=True)
    several[several] = count[which] > 1
    return several


def _by_key(keys: np.ndarray, values: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, sparse.csr_array]:
    """Distinct keys, sorted, and the values of each edge in their columns."""
    distinct, column = np.unique(keys, return_inverse=True)
    return distinct, sparse.csr_array((values, column, starts), shape=(len(starts) - 1, len(distinct)))
