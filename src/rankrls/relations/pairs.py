"""Sparse features of pairs: the products of the nonzero features of both ends, and nothing else.

An iteration over the edges costs one multiplication for each product of two nonzeros, however many columns there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..system.types import Matrix

LIMIT = 60_000_000  # products that are kept in memory
BLOCK = 1 << 21  # products made at a time


class PairFeatures:
    """A (q, D) with A A' the product kernel of q edges between objects with sparse features."""

    def __init__(self, X: Matrix, Z: Matrix, rows: np.ndarray, columns: np.ndarray, parity: int):
        self.X, self.Z, self.parity = sparse.csr_array(X), sparse.csr_array(Z), parity
        if parity:
            rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
        keys, values, starts = self._products(rows, columns)
        self.keys, indices = np.unique(keys, return_inverse=True)
        self.A = sparse.csr_array((values, indices, starts), shape=(len(rows), len(self.keys)))

    @staticmethod
    def count(X: Any, Z: Any, rows: np.ndarray, columns: np.ndarray) -> int:
        """How many products there are."""
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

    def weights(self, v: np.ndarray) -> np.ndarray:
        """(D,) the weights of pairs of features, from coefficients of the edges."""
        return self.A.T @ (np.concatenate([v, self.parity * v]) / 2 if self.parity else v)

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Scores of the edges themselves."""
        return (self.A @ self.weights(v))[: len(v)]

    def at(self, v: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Scores of any edges."""
        w, out = self.weights(v), np.empty(len(rows))
        each = max(1, self.count(self.X, self.Z, rows, columns) // max(1, len(rows)))
        for i in range(0, len(rows), max(1, BLOCK // each)):
            some = slice(i, i + max(1, BLOCK // each))
            keys, values, starts = self._products(rows[some], columns[some])
            place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            known = self.keys[place] == keys
            edge = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
            out[some] = np.bincount(edge, weights=values * known * w[place], minlength=len(starts) - 1)
        return out
