"""Explicit preferences: given pairs of items instead of all pairs of a query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator

from .means import Read
from .queries import BATCH_ROWS, Queries


class PairPreferences(LinearOperator):
    """F of explicit pairs: row p is sqrt(w_p) (e_i - e_j) for pair p = (i above j) of weight w_p."""

    def __init__(self, pairs: np.ndarray, n_items: int, weights: np.ndarray | None = None):
        super().__init__(dtype=np.float64, shape=(len(pairs), n_items))
        self.pair = np.asarray(pairs)
        self.w = weights
        self.s = np.ones(len(pairs)) if weights is None else np.sqrt(weights)
        self.beta, self.free = 0.0, False
        self.weight = 0.0
        self.u = None

    @property
    def n_pairs(self) -> int:
        return self.shape[0]

    def restrict(self, rows: np.ndarray) -> PairPreferences:
        """Some of the pairs, among the same items."""
        return PairPreferences(self.pair[rows], self.shape[1], None if self.w is None else self.w[rows])

    def batches(self, width: int = 0) -> list[slice]:
        """Slices of pairs to work on."""
        return [slice(i, i + BATCH_ROWS) for i in range(0, self.shape[0], BATCH_ROWS)]

    def factor(
        self, pairs: slice, read: Read, shift: object = 0.0, level: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """Rows of F V, sparse if those of V are; a shift cancels in differences."""
        A = read(self.pair[pairs, 0])
        if sparse.issparse(A):
            yield sparse.diags_array(self.s[pairs]) @ (A - read(self.pair[pairs, 1]))
            return
        A = np.array(A)
        A -= read(self.pair[pairs, 1])
        A *= self.s[pairs, None].astype(A.dtype)
        yield A

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        return self.s[:, None] * (V[self.pair[:, 0]] - V[self.pair[:, 1]])

    def _rmatmat(self, V: np.ndarray) -> np.ndarray:
        return self.incidence().T @ V

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        return self._matmat(np.reshape(v, (-1, 1)))

    def _rmatvec(self, v: np.ndarray) -> np.ndarray:
        return self._rmatmat(np.reshape(v, (-1, 1)))

    def components(self) -> list[np.ndarray]:
        """Pairs by connected component of the graph they span over the items."""
        ones = np.ones(self.shape[0])
        graph = sparse.csr_array((ones, (self.pair[:, 0], self.pair[:, 1])), shape=(self.shape[1], self.shape[1]))
        label = connected_components(graph, directed=False)[1][self.pair[:, 0]]
        parts = Queries.of(label)
        return [parts.rows(q) for q in range(len(parts))]

    def incidence(self) -> sparse.csr_array:
        """F as a sparse matrix with two entries per row."""
        p = np.arange(self.shape[0])
        value = np.column_stack([self.s, -self.s]).ravel()
        return sparse.csr_array((value, (np.repeat(p, 2), self.pair.ravel())), shape=self.shape)
