"""Held-out scores of whole queries in compiled passes, with single precision where that is enough.

Without query U the solution is w - M A_U'T with M = (G + alpha)^-1 and (I - A_U M A_U') T = r_U (see `ridge`). The
first term, the scores of the full model, is computed in the precision of the rows. The second is a correction of the
order of the query's leverage, one in thousands where there are many queries. Single precision leaves it a relative
error of at most 1e-6, which is 1e-9 of the scores where the correction is a thousandth of them. Queries with a larger
correction are computed in double precision, or left to `ridge.held_out`.

M = V D V' is diagonal if rows are rotated by V, which pays for short queries. Otherwise M is formed for each alpha, and
multiplied by the columns A_U'T of many queries at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..system.parallel import Memory, share
from ..system.types import DTypeLike
from . import fused
from .preferences import QueryPreferences
from .ridge import RidgePath

BLOCK_ROWS = 2048
ERROR, ROUNDING = 1e-9, 1e-6  # relative errors: of scores, and of a correction in single precision
STEPS = 20
FEW = 0.1  # another pass, or another precision, is not worth it for less than this share of the queries
SHORT = 3  # rows are rotated where queries have fewer than this many rows for each column of W
CELLS = 1 << 25  # or where M for all alphas would have more numbers


def leave_queries_out(
    F: QueryPreferences, X: np.ndarray, target: np.ndarray, path: RidgePath, deviation: np.ndarray, alphas: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(m, k t) scores of each row by models that never saw its query, and (q,) which queries' scores are exact.

    `target` (m, t) is F y. Rows are written in units of `deviation` (n,), the spread of each column. The columns of the
    scores run over alphas, then targets.
    """
    scores = np.empty((X.shape[0], len(alphas) * target.shape[1]), X.dtype)
    good = np.zeros(len(F.queries), dtype=bool)
    for dtype in (np.float32, np.float64)[: 1 if X.dtype == np.float32 else 2]:
        rest = np.flatnonzero(~good)
        if len(rest) <= FEW * len(good):
            break
        folds = _Folds.of(F, X, target, path, deviation, alphas, np.dtype(dtype))
        good[rest] = folds.leave_out(folds.rows.of_queries(rest), scores)
    return scores, good


@dataclass(frozen=True)
class _Folds:
    """The rows, left out query by query, and the path in units that fit in single precision.

    Columns of rows are in units of their deviation and targets in units of the largest; A and M are divided such that
    A M A' = (A / root) (root^2 M) (A / root)'. There is a column of W, and a row of D, for each alpha and target.
    W, the basis, D and M are padded with zeros such that their rows are whole vectors (see `tiles`).
    """

    X: np.ndarray  # (m, n)
    rows: fused.QueryRows
    target: np.ndarray  # (m, t)
    norm: float  # the unit of targets
    unit: np.ndarray  # (n,) 1 / deviation
    W: np.ndarray  # (n, k) solutions of all rows
    W_units: np.ndarray  # (n, k) the same, of columns in units of their deviation
    basis: np.ndarray  # (n, r)
    D: np.ndarray  # (k, r)
    M: np.ndarray | None  # (k, n, n), without the padding of k
    root: float

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # what overflows in single precision is corrected in double
    def of(
        cls,
        F: QueryPreferences,
        X: np.ndarray,
        target: np.ndarray,
        path: RidgePath,
        deviation: np.ndarray,
        alphas: np.ndarray,
        dtype: np.dtype,
    ) -> _Folds:
        """`dtype` is the precision of corrections."""
        norm = float(np.abs(target).max(initial=0.0)) or 1.0
        D = np.repeat(path.inverse(alphas), target.shape[1], axis=1)
        root = 1 / np.sqrt(D.min())
        W = whole_vectors(path.basis @ (D * np.tile(path.z / norm, len(alphas))), np.float32)
        unit = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        B, D = deviation[:, None] * path.basis, root**2 * D.T
        dense = D.shape[0] * len(B) < min(len(X), CELLS / max(1, len(B)))
        M = [whole_vectors((B * d) @ B.T, dtype).astype(dtype) for d in D] if dense else None
        return cls(
            fused.frozen(X),
            fused.QueryRows.of(F),
            target / norm,
            norm,
            unit.astype(X.dtype),
            W,
            (deviation[:, None] * W).astype(X.dtype),
            whole_vectors(B, dtype).astype(dtype),
            whole_vectors(np.pad(D, ((0, W.shape[1] - len(D)), (0, 0))), dtype).astype(dtype),
            M if M is None else np.stack(M),
            float(root),
        )

    def leave_out(self, rows: fused.QueryRows, scores: np.ndarray) -> np.ndarray:
        """Write the scores (m, k) of the rows of some queries; returns (q,) which queries have a small correction.

        Stops after the first hundredth of the queries if few of them do.
        """
        blocks, good = fused.blocks_of(rows.sizes, BLOCK_ROWS), np.zeros(len(rows.sizes), dtype=bool)
        trial = len(blocks) // 100 + 1

        def work(part: Sequence[tuple[int, int]]) -> None:
            memory = Memory(self.D.dtype)
            for first, last in part:
                self._leave_block_out(rows, first, last, scores, good, memory)

        work(blocks[:trial])
        if np.mean(good[: blocks[trial - 1][1]]) > FEW:
            share(work, blocks[trial:], cost=float(scores.size) * self.X.shape[1], label="held-out queries")
        return good

    @np.errstate(over="ignore", invalid="ignore")  # as above
    def _leave_block_out(
        self, rows: fused.QueryRows, a: int, b: int, scores: np.ndarray, good: np.ndarray, memory: Memory
    ) -> None:
        """Leave out queries a to b - 1."""
        from .compiled_folds import centred, corrected, residuals, weighted
        from .tiles import padded, product

        dtype, (n, k) = self.X.dtype, self.W.shape
        m, g = int(rows.sizes[a:b].sum()), b - a
        V, mean = memory.V(m, n, dtype), memory.mean(g, n, dtype)
        low = V if dtype == self.D.dtype else memory.low(m, n)
        X, copied = fused.rows_of(self.X, rows.order, rows.starts[a:b], rows.sizes[a:b], memory.X)
        centred(X, copied, rows, a, b, self.unit, V, low, mean)
        S, FS = memory.S(m, k, dtype), memory.FS(m, k, dtype)
        product(V, self.W_units, S)
        weighted(S, rows, 1.0, a, b, FS)
        R, P, square = memory.R(m, k), memory.P(m, k), np.empty((g, k))
        residuals(FS, self.target, rows, a, b, R, P, square)

        means = (mean * self.unit).astype(low.dtype)
        rotated = self.M is None or m < SHORT * k * g
        if rotated:
            rows_in_basis, means = memory.rotated(m, self.basis.shape[1]), means @ self.basis
            product(low, self.basis, rows_in_basis)
            low = rows_in_basis
        A = memory.A(m, padded(low.shape[1], low.dtype))
        weighted(low, rows, 1 / self.root, a, b, A)
        total, converged = self._solved(rows.sizes[a:b], A, R, P, square, low.shape[1], rotated, memory)
        total /= self.root
        level, Q = mean @ self.W, memory.Q(m, k)
        corrected(S, level, low, means, total, rows, a, b, self._largest_correction, self.norm, Q, scores, good)
        good[a:b] &= converged

    @property
    def _largest_correction(self) -> float:
        """The limit relative to the scores; a correction beyond half of them may leave little but rounding."""
        mixed = self.X.dtype == np.float64 and self.D.dtype == np.float32
        return ERROR / ROUNDING if mixed else 0.5

    def _solved(
        self,
        sizes: np.ndarray,
        A: np.ndarray,
        R: np.ndarray,
        P: np.ndarray,
        square: np.ndarray,
        n: int,
        rotated: bool,
        memory: Memory,
    ) -> tuple[np.ndarray, np.ndarray]:
        """(g, n, k) M A'T with (I - A M A') T = R for g queries and k columns, and (g,) whether T has converged.

        `square` (g, k) is ||R||^2. The leverage is what steps after the first have seen of it (see `krylov`).
        """
        from .compiled_folds import advance, each_times, pulled_back

        (g, k), width = square.shape, A.shape[1]
        U, Q, total = memory.U(g * k, width).reshape(g, k, width), memory.Q(*R.shape), memory.total(g * n, k)
        MU = U if rotated else memory.MU(g * k, width).reshape(g, k, width)
        total = total.reshape(g, n, k)
        total[:] = 0
        tol = 1e-5 if self.X.dtype == np.float32 else ERROR if self.D.dtype == np.float32 else 1e-10
        rho, leverage, left = square.copy(), np.ones_like(square), np.zeros(g, dtype=np.intp)
        bound = tol**2 * square
        for _ in range(STEPS):
            pulled_back(A, P, sizes, U)
            if rotated:
                U *= self.D
            else:
                each_times(U, self.M, MU)
            advance(A, MU, P, R, Q, sizes, rho, square, leverage, bound, total, left)
            if not left.any():
                break
            leverage[leverage == 1] = 0  # nothing is known of it until the second step
        return total, left == 0


def whole_vectors(A: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """The matrix with zeros beside it, such that its rows are whole vectors once they are numbers of this type."""
    from .tiles import padded

    return np.pad(np.ascontiguousarray(A), ((0, 0), (0, padded(A.shape[1], np.dtype(dtype)) - A.shape[1])))
