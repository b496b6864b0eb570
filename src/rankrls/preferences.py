"""Who should be ranked above whom: an operator F with F'F = L, the Laplacian of the preference graph.

Every method of the library minimises ||F (y - f)||^2 + alpha ||f||^2, so F is all it needs to know of pairs.

In a query let items have weights u_i, S = sum of u, tie levels j (items of equal y) with S_j = sum of u over the
level, and let c be the query's factor. Pairs weigh c u_i u_j, pairs inside a level nothing if ties are excluded.
With the share beta of regression (0 ranking, 1 regression), Lt = beta diag(u) + (1 - beta) L has the square root

    (F r)_i = sqrt(u_i) [ within_j  (r_i - rbar_j)          within_j^2 = beta + (1 - beta) c (S - S_j)
                        + between   (rbar_j - rbar)         between^2  = beta + (1 - beta) c S
                        + sqrt(beta) rbar ]

with rbar_j and rbar the weighted means over the level and over the query. When ties are included every item is
a level of its own and the first term vanishes. F applies in O(m) to any array of m rows; L is never formed.

A weight counts copies: an item of weight 2 is an item given twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator

from .queries import BATCH_ROWS, Batch, Queries

Rows = slice | np.ndarray
Read = Callable[[Rows], np.ndarray]  # rows -> a fresh (k, n) float array that may be overwritten

WEIGHTINGS = ("pairs", "queries", "items")


class QueryPreferences(LinearOperator):
    """F of all pairs of items of one query (see the module for the formula).

    Parameters
    ----------
    queries : Queries
        The partition of the m items into queries.
    y : (m,) array, optional
        Labels whose ties are to be excluded; None includes tied pairs.
    weighting : "pairs" (c = 1), "queries" (c = 1 / number of pairs) or "items" (c = 1 / number of items)
    regression : float
        beta, the share of the regression loss.
    weights : (m,) array of positive numbers, optional
        u, the copies each item counts for.
    """

    def __init__(
        self,
        queries: Queries,
        y: np.ndarray | None = None,
        *,
        weighting: str = "pairs",
        regression: float = 0.0,
        weights: np.ndarray | None = None,
    ):
        m = queries.n_rows
        super().__init__(dtype=np.float64, shape=(m, m))
        self.queries, self.y, self.weighting, self.beta = queries, y, weighting, float(regression)
        self.u = weights
        self.s = None if weights is None else np.sqrt(weights)
        S = queries.sizes.astype(float) if weights is None else queries.sum(weights)
        levels = Queries.singletons(m) if y is None else queries.refine(y)
        S_level = levels.sum(np.ones(m) if weights is None else weights)
        query_of_level = np.empty(len(levels), dtype=np.intp)
        query_of_level[levels.codes] = queries.codes
        self.pairs, mass = _pairs(queries, levels, S, S_level, query_of_level, tied=y is None)
        c = _query_factor(weighting, S, mass)
        self.S = S
        self.between = np.sqrt(self.beta + (1 - self.beta) * c * S)  # (q,)
        within = np.sqrt(
            self.beta + (1 - self.beta) * (c * S)[query_of_level] * _share_outside(S, S_level, query_of_level)
        )
        tied = levels.sizes > 1
        self.within: np.ndarray | None = None  # (m,) only if some level has several items
        if np.any(tied):
            self.within = np.where(tied, within, self.between[query_of_level])[levels.codes]
            number = np.where(tied, np.cumsum(tied) - 1, -1)
            self.level = number[levels.codes]  # (m,) the item's tie level, -1 if it is alone on it
            self.S_level = S_level[tied]

    @property
    def n_pairs(self) -> int:
        """Pairs that count in the loss."""
        return int(self.pairs.sum())

    @property
    def weight(self) -> float:
        """The total weight of all items."""
        return float(self.S.sum())

    def restrict(self, rows: np.ndarray) -> QueryPreferences:
        """The preferences among some of the items."""
        y, u = (None if v is None else v[rows] for v in (self.y, self.u))
        queries = Queries.of(self.queries.codes[rows])
        return QueryPreferences(queries, y, weighting=self.weighting, regression=self.beta, weights=u)

    def tasks(self) -> list[Batch]:
        """Independent pieces of work for `whiten`."""
        return list(self.queries.batches())

    def whiten(self, batch: Batch, read: Read, centre: np.ndarray | float = 0.0) -> Iterator[tuple[Rows, np.ndarray]]:
        """Rows of F (V - 1 centre'), in chunks of bounded size; `read` gives rows of V."""
        if batch.length <= 2 * BATCH_ROWS:
            V = read(batch.rows)
            mean = self.centre(V, batch)
            yield batch.rows, self.scale(V, batch, mean - centre)
            return
        chunks = batch.chunks()
        mean, level_mean = self._long_means(batch, chunks, read)
        for chunk in chunks:
            V = read(chunk.rows)
            V -= mean
            yield chunk.rows, self.scale(V, chunk, mean - centre, level_mean)

    def centre(self, V: np.ndarray, batch: Batch) -> np.ndarray:
        """Subtract the query means from the rows V of a batch, in place; returns the (g, n) means."""
        V3 = V.reshape(-1, batch.length, V.shape[1])
        mean = self._query_weights(batch, V.dtype) @ V3
        V3 -= mean
        return mean[:, 0]

    def scale(self, V: np.ndarray, batch: Batch, mean: np.ndarray, level_mean: np.ndarray | None = None) -> np.ndarray:
        """F of rows that `centre` has centred, in place; `mean` (g, n) is what it took off."""
        between = self.between[batch.queries].astype(V.dtype)
        V3 = V.reshape(-1, batch.length, V.shape[1])
        if self.within is None:
            if np.any(between != 1):
                V3 *= between[:, None, None]
        else:
            within = batch.take(self.within).astype(V.dtype)
            if level_mean is None:
                level, average = self._level_average(batch, V.dtype)
                level_mean = average @ V
            else:
                level = batch.take(self.level)
            V *= within[:, None]
            V += (np.repeat(between, batch.length) - within)[:, None] * level_mean[level]
        if self.beta > 0:
            V3 += np.sqrt(self.beta).astype(V.dtype) * mean[:, None]
        if self.s is not None:
            V *= batch.take(self.s).astype(V.dtype)[:, None]
        return V

    def _query_weights(self, batch: Batch, dtype: Any) -> np.ndarray:
        """(g or 1, 1, l) weights of the mean over each query."""
        if self.u is None:
            return np.full((1, 1, batch.length), 1 / batch.length, dtype=dtype)
        return (batch.stack(self.u) / self.S[batch.queries][:, None]).astype(dtype)[:, None]

    def _level_average(self, batch: Batch, dtype: Any) -> tuple[np.ndarray, sparse.csr_array]:
        """The level of each row of a batch, and the matrix that averages over levels (zero for lone items)."""
        level = batch.take(self.level)
        present, local = np.unique(level, return_inverse=True)
        u = np.ones(len(level)) if self.u is None else batch.take(self.u)
        value = np.where(level < 0, 0.0, u / self.S_level[level])
        indptr = np.concatenate([[0], np.cumsum(np.bincount(local))])
        order = np.argsort(local, kind="stable")
        shape = (len(present), len(level))
        return local, sparse.csr_array((value[order].astype(dtype), order, indptr), shape=shape)

    def _long_means(self, batch: Batch, chunks: list[Batch], read: Read) -> tuple[np.ndarray, np.ndarray | None]:
        """Mean over one query longer than a chunk, and over its levels (last row: zero, for lone items)."""
        u = np.ones(batch.length) if self.u is None else batch.take(self.u)
        weights = np.split(u / self.S[batch.queries[0]], np.cumsum([c.length for c in chunks])[:-1])
        mean = np.sum([w @ read(c.rows) for w, c in zip(weights, chunks, strict=True)], axis=0)
        if self.within is None:
            return mean[None], None
        level_mean: Any = 0.0
        for chunk in chunks:
            level = chunk.take(self.level)
            w = np.where(level < 0, 0.0, (1.0 if self.u is None else chunk.take(self.u)) / self.S_level[level])
            rows = np.where(level < 0, len(self.S_level), level)
            pick = sparse.csr_array((w, (rows, np.arange(len(level)))), shape=(len(self.S_level) + 1, len(level)))
            level_mean = level_mean + pick @ (read(chunk.rows) - mean)
        return mean[None], level_mean

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        V = np.asarray(V)
        out = np.empty(V.shape, dtype=np.result_type(V, np.float32))
        for batch in self.tasks():
            for rows, A in self.whiten(batch, lambda rows: np.array(V[rows], dtype=out.dtype)):
                out[rows] = A
        return out

    def _rmatmat(self, V: np.ndarray) -> np.ndarray:
        if self.s is None:
            return self._matmat(V)
        s = self.s[:, None]  # F = Q diag(s) with Q symmetric
        return s * self._matmat(V / s)

    _matvec = lambda self, v: self._matmat(np.reshape(v, (-1, 1)))
    _rmatvec = lambda self, v: self._rmatmat(np.reshape(v, (-1, 1)))


class PairPreferences(LinearOperator):
    """F of explicit pairs: row p is sqrt(w_p) (e_i - e_j) for pair p = (i above j) of weight w_p."""

    def __init__(self, pairs: np.ndarray, n_items: int, weights: np.ndarray | None = None):
        super().__init__(dtype=np.float64, shape=(len(pairs), n_items))
        self.pair = np.asarray(pairs)
        self.w = weights
        self.s = np.ones(len(pairs)) if weights is None else np.sqrt(weights)
        self.beta = 0.0
        self.weight = 0.0
        self.u = None

    @property
    def n_pairs(self) -> int:
        return self.shape[0]

    def restrict(self, rows: np.ndarray) -> PairPreferences:
        """Some of the pairs, among the same items."""
        return PairPreferences(self.pair[rows], self.shape[1], None if self.w is None else self.w[rows])

    def tasks(self) -> list[slice]:
        return [slice(i, i + BATCH_ROWS) for i in range(0, self.shape[0], BATCH_ROWS)]

    def whiten(self, pairs: slice, read: Read, centre: Any = 0.0) -> Iterator[tuple[Rows, np.ndarray]]:
        """Rows of F V; `centre` cancels in differences."""
        A = np.array(read(self.pair[pairs, 0]))
        A -= read(self.pair[pairs, 1])
        A *= self.s[pairs, None].astype(A.dtype)
        yield pairs, A

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
        """F as a sparse matrix, two entries a row."""
        p = np.arange(self.shape[0])
        value = np.column_stack([self.s, -self.s]).ravel()
        return sparse.csr_array((value, (np.repeat(p, 2), self.pair.ravel())), shape=self.shape)


def _pairs(
    queries: Queries, levels: Queries, S: np.ndarray, S_level: np.ndarray, query_of_level: np.ndarray, *, tied: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(q,) the pairs of each query that count, by number and by weight (copies count)."""
    number = queries.pairs()
    if tied:
        return number, S * (S - 1) / 2
    inside = np.bincount(query_of_level, weights=levels.pairs(), minlength=len(queries)).astype(number.dtype)
    outside = np.bincount(
        query_of_level, weights=S_level * _share_outside(S, S_level, query_of_level), minlength=len(queries)
    )
    return number - inside, S * outside / 2


def _share_outside(S: np.ndarray, S_level: np.ndarray, query_of_level: np.ndarray) -> np.ndarray:
    """(levels,) 1 - S_j / S: the share of its query's weight that lies outside a level."""
    return np.maximum(0.0, 1 - S_level / S[query_of_level])


def _query_factor(weighting: str, S: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """(q,) the factor c of each query."""
    if weighting == "pairs":
        return np.ones_like(S)
    if weighting == "items":
        return 1 / S
    return np.divide(1.0, mass, out=np.zeros_like(S), where=mass > 0)
