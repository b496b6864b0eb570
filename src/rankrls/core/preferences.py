"""Who should be ranked above whom: an operator F with F'F = L, the Laplacian of the preference graph.

Every method of the library minimises ||F (y - f)||^2 + alpha ||f||^2, so F is all a solver needs to know about pairs.

In a query let items have weights u_i, S = sum of u, tie levels j (items of equal y) with S_j = sum of u over the
level, and let c be the query's factor. Pairs weigh c u_i u_j; pairs inside a level weigh nothing if ties are excluded.
With the share beta of regression (0 ranking, 1 regression), Lt = beta diag(u) + (1 - beta) L has the square root

    (F r)_i = sqrt(u_i) [ within_j  (r_i - rbar_j)          within_j^2 = beta + (1 - beta) c (S - S_j)
                        + between   (rbar_j - rbar)         between^2  = beta + (1 - beta) c S
                        + sqrt(beta) rbar ]

where rbar_j and rbar are the weighted means over the level and over the query. When ties are included, every item is
a level of its own and the first term vanishes, as it does for an item that ties with no other. F applies in O(m)
to any array of m rows; L is never formed.

A weight counts copies: an item of weight 2 is an item given twice. See `weighting` for the weights and `means` for the
means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from ..system.parallel import share
from .means import GroupMeans, Levels, Piece, Read, Rounding, Rows, Ties
from .queries import Batch, Queries
from .weighting import Weighting, others_of


class QueryPreferences(LinearOperator):
    """F of all pairs of items of one query (see the module for the formula).

    Parameters
    ----------
    queries : Queries
        The partition of the m items into queries.
    y : (m,) array, optional
        Labels; tied pairs are excluded. None includes all pairs.
    weighting : {"pairs", "queries", "items"}
        The factor c of a query: 1, 1 / weight of its pairs, or 1 / S.
    regression : float
        beta, the share of the regression loss.
    weights : (m,) array of positive numbers, optional
        u, the copies each item counts for.
    between2 : (q,) array, optional
        between^2 of each query, to pass if these items are only part of it.
    intercept : bool
        Whether a constant is unpenalised where beta > 0; if not, targets and features are not centred.
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
        intercept: bool = True,
    ):
        m, q = queries.n_rows, len(queries)
        super().__init__(dtype=np.float64, shape=(m, m))
        self.queries, self.y, self.u, self.beta = queries, y, weights, float(regression)
        self.free = self.beta > 0 and intercept
        self.s = None if weights is None else np.sqrt(weights)
        self.S = queries.sizes.astype(float) if weights is None else queries.sum(weights)  # (q,)
        self.weight = float(self.S.sum())
        self.n_pairs = int(queries.pairs().sum())  # pairs that count
        self.ties: Ties | None = None
        self.within: np.ndarray | None = None  # (m,) needed only if some items tie
        if y is None:
            self.weighting = Weighting.ties_included(weighting, self.beta, self.S, others_of(self.S, queries, weights))
        else:
            levels = Levels.of(queries, y, weights)
            self.weighting = Weighting(weighting, self.beta, levels.query, levels.weight, q)
            self.ties = Ties.of(levels, q)
        self.between = np.sqrt(self.weighting.between2 if between2 is None else between2)  # (q,)
        self.means = GroupMeans(queries, weights, self.S, self.ties)
        self.runs: dict[Any, list[Any]] = {}  # of queries of any lengths, see `ragged`
        self.rounding = Rounding(self.means, self.between, self.beta)
        if self.ties is not None:
            within = np.where(levels.size > 1, np.sqrt(self.weighting.within2), self.between[levels.query])
            self.within = within[levels.level]
            self.level_scale = self.weighting.level_scale[levels.size > 1]  # (ties,)
            self.n_pairs -= int((levels.size * (levels.size - 1) // 2).sum())

    def restrict(self, rows: np.ndarray) -> QueryPreferences:
        """The preferences within a subset of the items."""
        y, u = (None if v is None else v[rows] for v in (self.y, self.u))
        queries = Queries.of(self.queries.codes[rows], self.queries.batch_rows)
        kind, beta = self.weighting.kind, self.beta
        return QueryPreferences(queries, y, weighting=kind, regression=beta, weights=u, intercept=self.free)

    def batches(self, width: int = 512) -> list[Batch]:
        """Batches of whole queries, for rows of `width` columns."""
        return self.queries.sized_batches(width)

    def factor(self, batch: Batch, read: Read, shift: Any = 0.0, level: Any = None) -> Iterator[np.ndarray]:
        """Yield blocks of rows R whose R'R add up to (V - 1 shift')'Lt (V - 1 shift') over the queries of a batch.

        Cheaper than the rows of F: items minus their query's mean scaled by `within`, level means scaled by what
        `between` adds to that, and query means scaled by beta. `level` collects the size that rounding is relative to.
        """
        for piece in self.means.pieces(batch, read):
            if piece.last and level is not None:
                piece.raise_level(level, self.rounding.level)
            if piece.last and piece.level_mean is not None:
                ties = self.ties.of_queries(piece.batch.queries)  # type: ignore[union-attr]
                yield self.level_scale[ties, None].astype(piece.V.dtype) * piece.level_mean
            if piece.last and self.beta > 0:
                weight = np.sqrt(self.beta * self.S[piece.batch.queries])
                yield weight[:, None].astype(piece.V.dtype) * (piece.mean - shift)
            self._scale_items(piece.V, piece.batch)
            yield piece.V

    def rows_of(self, batch: Batch, read: Read) -> Iterator[tuple[Rows, np.ndarray]]:
        """Yield row numbers and rows of F V over the queries of a batch, in pieces of bounded size."""
        for piece in self.means.pieces(batch, read):
            yield piece.batch.rows, self._apply(piece)

    def scale(self, V: np.ndarray, batch: Batch, mean: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """F of rows that are centred already, in place or into `out`; `mean` (g, n) is what was subtracted."""
        return self._apply(self.means.piece(V, batch, mean), out)

    def _apply(self, piece: Piece, out: np.ndarray | None = None) -> np.ndarray:
        batch = piece.batch
        V = self._scale_items(piece.V, batch, out)
        if piece.level_mean is not None:
            excess = np.repeat(self.between[batch.queries], batch.length) - batch.take(self.within)
            excess = excess if self.s is None else excess * batch.take(self.s)
            V += piece.level_mean[piece.level] * excess[:, None].astype(V.dtype)
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

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        V = np.asarray(V)
        out = np.empty(V.shape, dtype=np.result_type(V, np.float32))

        def read(rows: Rows) -> np.ndarray:
            if not isinstance(rows, slice):
                return np.array(V[rows], dtype=out.dtype)
            out[rows] = V[rows]
            return out[rows]  # a view: adjacent rows are worked on where the result belongs

        def apply(batches: Sequence[Batch]) -> None:
            for batch in batches:
                for rows, FV in self.rows_of(batch, read):
                    if not isinstance(rows, slice):
                        out[rows] = FV

        share(apply, self.batches(V.shape[1]), cost=V.size)
        return out

    def _rmatmat(self, V: np.ndarray) -> np.ndarray:
        s = 1.0 if self.s is None else self.s[:, None]  # F = Q diag(s) with Q symmetric
        return self._matmat(V) if self.s is None else s * self._matmat(V / s)

    def _rmatvec(self, v: np.ndarray) -> np.ndarray:
        return self._rmatmat(np.reshape(v, (-1, 1)))
