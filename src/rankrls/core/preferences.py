"""Who should be ranked above whom: an operator F with F'F = L, the Laplacian of the preference graph.

Every method of the library minimises ||F (y - f)||^2 + alpha ||f||^2, so F is all it needs to know of pairs.

In a query let items have weights u_i, S = sum of u, tie levels j (items of equal y) with S_j = sum of u over the
level, and let c be the query's factor. Pairs weigh c u_i u_j, pairs inside a level nothing if ties are excluded.
With the share beta of regression (0 ranking, 1 regression), Lt = beta diag(u) + (1 - beta) L has the square root

    (F r)_i = sqrt(u_i) [ within_j  (r_i - rbar_j)          within_j^2 = beta + (1 - beta) c (S - S_j)
                        + between   (rbar_j - rbar)         between^2  = beta + (1 - beta) c S
                        + sqrt(beta) rbar ]

with rbar_j and rbar the weighted means over the level and over the query. When ties are included every item is
a level of its own and the first term vanishes; so it does for items that are alone on their level. F applies in O(m)
to any array of m rows; L is never formed.

A weight counts copies: an item of weight 2 is an item given twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator

from ..system.parallel import share
from .levels import Levels, Ties
from .queries import BATCH_ROWS, Batch, Queries
from .weighting import Weighting

Rows = slice | np.ndarray
Read = Callable[[Rows], np.ndarray]  # rows -> a fresh (k, n) float array that may be overwritten

BATCH_CELLS = 1 << 20  # of a batch that two threads can have in the cache


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
    between2 : (q,) array, optional
        between^2 of each query, where these items are not all of it.
    """

    def __init__(
        self,
        queries: Queries,
        y: np.ndarray | None = None,
        *,
        weighting: str = "pairs",
        regression: float = 0.0,
        weights: np.ndarray | None = None,
        between2: np.ndarray | None = None,
    ):
        m, q = queries.n_rows, len(queries)
        super().__init__(dtype=np.float64, shape=(m, m))
        self.queries, self.y, self.beta = queries, y, float(regression)
        self.u = weights
        self.s = None if weights is None else np.sqrt(weights)
        self.S = queries.sizes.astype(float) if weights is None else queries.sum(weights)  # (q,)
        self.pairs = queries.pairs()  # (q,) pairs that count
        self.ties: Ties | None = None
        self.within: np.ndarray | None = None  # (m,) needed only if some items tie
        if y is None:
            self.weighting = Weighting.ties_included(weighting, self.beta, self.S)
        else:
            levels = Levels.of(queries, y, weights)
            self.weighting = Weighting(weighting, self.beta, levels.query, levels.weight, q)
            self.ties = Ties.of(levels, q)
        self.between = np.sqrt(self.weighting.between2 if between2 is None else between2)  # (q,)
        if self.ties is not None:
            within = np.where(levels.size > 1, np.sqrt(self.weighting.within2), self.between[levels.query])
            self.within = within[levels.level]
            self.level_scale = self.weighting.level_scale[levels.size > 1]  # (ties,)
            tied = np.bincount(levels.query, weights=levels.size * (levels.size - 1) / 2, minlength=q)
            self.pairs = self.pairs - tied.astype(int)

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
        return QueryPreferences(queries, y, weighting=self.weighting.kind, regression=self.beta, weights=u)

    @cached_property
    def _batches(self) -> dict[int, list[Batch]]:
        return {}

    def tasks(self, width: int = BATCH_CELLS) -> list[Batch]:
        """Independent pieces of work for `factor`, with twice as many rows where rows of so many columns are short."""
        rows = 2 * BATCH_ROWS if 2 * BATCH_ROWS * width <= BATCH_CELLS else BATCH_ROWS
        if rows not in self._batches:
            self._batches[rows] = list(self.queries.batches(rows))
        return self._batches[rows]

    def factor(self, batch: Batch, read: Read, shift: np.ndarray | float = 0.0) -> Iterator[np.ndarray]:
        """Blocks R of rows, the sum of R'R being (V - 1 shift')'Lt (V - 1 shift') over the queries of a batch.

        Not the rows of F but fewer operations: items about their query's mean by within, the means of their levels by
        what between exceeds it, and the means of queries by beta.
        """
        for piece in self._centred(batch, read):
            if piece.last and piece.level_mean is not None:
                levels = self.ties.of_queries(piece.batch.queries)  # type: ignore[union-attr]
                yield self.level_scale[levels, None].astype(piece.V.dtype) * piece.level_mean
            if piece.last and self.beta > 0:
                weight = np.sqrt(self.beta * self.S[piece.batch.queries])
                yield weight[:, None].astype(piece.V.dtype) * (piece.mean - shift)
            self._scale_items(piece.V, piece.batch)
            yield piece.V

    def centre(self, V: np.ndarray, batch: Batch, out: np.ndarray | None = None) -> np.ndarray:
        """Subtract the query means from the rows V of a batch, in place or into `out`; returns the (g, n) means."""
        V3 = V.reshape(-1, batch.length, V.shape[1])
        if self.u is None:
            weights = np.full((1, 1, batch.length), 1 / batch.length, dtype=V.dtype)
        else:
            weights = (batch.stack(self.u) / self.S[batch.queries][:, None]).astype(V.dtype)[:, None]
        mean = weights @ V3
        np.subtract(V3, mean, out=(V if out is None else out).reshape(V3.shape))
        return mean[:, 0]

    def scale(self, V: np.ndarray, batch: Batch, mean: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """F of rows that `centre` has centred, in place or into `out`; `mean` (g, n) is what it took off."""
        return self._rows_of_F(Piece(batch, V, mean, *self._level_means(V, batch)), out)

    def _rows_of_F(self, piece: Piece, out: np.ndarray | None = None) -> np.ndarray:
        batch = piece.batch
        V = self._scale_items(piece.V, batch, out)
        if piece.level_mean is not None:
            excess = np.repeat(self.between[batch.queries], batch.length) - batch.take(self.within)
            if self.s is not None:
                excess *= batch.take(self.s)
            means = piece.level_mean[piece.level]
            means *= excess[:, None].astype(V.dtype)
            V += means
        if self.beta > 0:
            root = np.sqrt(self.beta) * (np.ones(len(V)) if self.s is None else batch.take(self.s))
            V += root[:, None].astype(V.dtype) * np.repeat(piece.mean, batch.length, axis=0)
        return V

    def _scale_items(self, V: np.ndarray, batch: Batch, out: np.ndarray | None = None) -> np.ndarray:
        """sqrt(u) within (V - mean), in place or into `out`."""
        if self.within is None and self.s is None and out is None and np.all(self.between[batch.queries] == 1):
            return V
        scale = np.repeat(self.between[batch.queries], batch.length) if self.within is None else batch.take(self.within)
        if self.s is not None:
            scale = scale * batch.take(self.s)
        return np.multiply(V, scale[:, None].astype(V.dtype), out=V if out is None else out)

    def _level_means(self, V: np.ndarray, batch: Batch) -> tuple[np.ndarray | None, np.ndarray | None]:
        """For each row of a batch its place among the tie levels there, and the means over these levels."""
        if self.ties is None:
            return None, None
        level, average = self.ties.average(batch, self.u, V.dtype)
        return (level, average @ V) if average.shape[0] else (None, None)

    def _centred(self, batch: Batch, read: Read) -> Iterator[Piece]:
        """Rows of a batch about their query's mean, in pieces of bounded size."""
        if batch.length <= 2 * BATCH_ROWS:
            V = read(batch.rows)
            mean = self.centre(V, batch)
            yield Piece(batch, V, mean, *self._level_means(V, batch))
            return
        chunks = batch.chunks()  # one query longer than a piece: its means first
        u = [np.ones(c.length) if self.u is None else c.take(self.u) for c in chunks]
        total = np.sum([w @ read(c.rows) for w, c in zip(u, chunks, strict=True)], axis=0)
        mean = (total / self.S[batch.queries[0]])[None]
        averages = [(None, None) if self.ties is None else self.ties.average(c, self.u, np.float64) for c in chunks]
        level_mean: Any = None
        if averages[0][1] is not None and averages[0][1].shape[0]:
            level_mean = sum(a @ (read(c.rows) - mean) for (_, a), c in zip(averages, chunks, strict=True))
        for chunk, (level, _) in zip(chunks, averages, strict=True):
            V = read(chunk.rows)
            V -= mean
            yield Piece(chunk, V, mean, level, level_mean, last=chunk is chunks[-1])

    def rows_of(self, batch: Batch, read: Read) -> Iterator[tuple[Rows, np.ndarray]]:
        """Rows of F V over the queries of a batch, and their numbers, in pieces of bounded size."""
        for piece in self._centred(batch, read):
            yield piece.batch.rows, self._rows_of_F(piece)

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        V = np.asarray(V)
        out = np.empty(V.shape, dtype=np.result_type(V, np.float32))

        def apply(batches: Sequence[Batch]) -> None:
            for batch in batches:
                for rows, FV in self.rows_of(batch, lambda rows: np.array(V[rows], dtype=out.dtype)):
                    out[rows] = FV

        share(apply, self.tasks(), cost=V.size)
        return out

    def _rmatmat(self, V: np.ndarray) -> np.ndarray:
        if self.s is None:
            return self._matmat(V)
        s = self.s[:, None]  # F = Q diag(s) with Q symmetric
        return s * self._matmat(V / s)

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        return self._matmat(np.reshape(v, (-1, 1)))

    def _rmatvec(self, v: np.ndarray) -> np.ndarray:
        return self._rmatmat(np.reshape(v, (-1, 1)))


@dataclass(frozen=True)
class Piece:
    """Rows V of some queries about the query means, and the means taken off."""

    batch: Batch
    V: np.ndarray  # (k, n)
    mean: np.ndarray  # (g, n)
    level: np.ndarray | None  # (k,) row of level_mean that belongs to each row of V
    level_mean: np.ndarray | None  # (levels, n)
    last: bool = True  # no other piece of these queries follows


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

    def tasks(self, width: int = 0) -> list[slice]:
        return [slice(i, i + BATCH_ROWS) for i in range(0, self.shape[0], BATCH_ROWS)]

    def factor(self, pairs: slice, read: Read, shift: Any = 0.0) -> Iterator[np.ndarray]:
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
        """F as a sparse matrix, two entries a row."""
        p = np.arange(self.shape[0])
        value = np.column_stack([self.s, -self.s]).ravel()
        return sparse.csr_array((value, (np.repeat(p, 2), self.pair.ravel())), shape=self.shape)
