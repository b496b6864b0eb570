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

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..system.parallel import Memory, share
from ..system.types import DTypeLike
from . import fused
from .preferences import QueryPreferences
from .ridge import RidgePath

BLOCK_ROWS = 2048
ERROR, ROUNDING = 1e-9, 1e-6  # relative errors: of scores, and of a correction in single precision
FEW = 0.1  # another pass, or another precision, is not worth it for less than this share of the queries
CELLS = 1 << 25  # rows are rotated where M for all alphas would have more numbers
AT_ONCE = 8  # blocks in one call of compiled code, which nothing can interrupt


def leave_queries_out(
    F: QueryPreferences, X: np.ndarray, target: np.ndarray, path: RidgePath, deviation: np.ndarray, alphas: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(m, k t) scores of each row by models that never saw its query, and (q,) which queries' scores are exact.

    `target` (m, t) is F y. Rows are written in units of `deviation` (n,), the spread of each column. The columns of the
    scores run over alphas, then targets.
    """
    scores = np.empty((X.shape[0], len(alphas) * target.shape[1]), X.dtype)
    good, rows, X = np.zeros(len(F.queries), dtype=bool), fused.QueryRows.of(F), fused.frozen(X)
    for dtype in (np.float32, np.float64)[: 1 if X.dtype == np.float32 else 2]:
        rest = np.flatnonzero(~good)
        if len(rest) <= FEW * len(good):
            break
        folds = QueryFolds.of(X, target, path, deviation, alphas, np.dtype(dtype))
        good[rest] = _left_out(X, rows.of_queries(rest), folds, scores)
    return scores, good


def _left_out(X: np.ndarray, rows: fused.QueryRows, folds: QueryFolds, scores: np.ndarray) -> np.ndarray:
    """Write the scores (m, k) of the rows of some queries; returns (q,) which queries have a small correction.

    Stops after the first hundredth of the queries if few of them do.
    """
    from .compiled_folds import leave_out

    blocks, good = fused.blocks_of(rows.sizes, BLOCK_ROWS), np.zeros(len(rows.sizes), dtype=bool)
    trial, adjacent = len(blocks) // 100 + 1, X.flags.c_contiguous

    def work(part: Iterable[tuple[int, int]]) -> None:
        memory, copies = Buffers.of(rows, blocks, folds, X.dtype), Memory(X.dtype)
        for some in fused.in_turn(part, AT_ONCE if adjacent else 1):
            queries = slice(some[0, 0], some[-1, 1])
            rows_of_X, copied = fused.rows_of(X, rows.order, rows.starts[queries], rows.sizes[queries], copies.X)
            leave_out(rows_of_X, copied, rows, some, folds, memory, scores, good)

    work(blocks[:trial])
    if np.mean(good[: blocks[trial - 1][1]]) > FEW:
        share(work, blocks[trial:], cost=float(scores.size) * X.shape[1], label="held-out queries")
    return good


class QueryFolds(NamedTuple):
    """What leaving out any query needs, in units that fit in single precision.

    Columns of rows are in units of their deviation and targets in units of the largest; A and M are divided such that
    A M A' = (A / root) (root^2 M) (A / root)'. There is a column of W, and a row of D, for each alpha and target.
    W, the basis, D and M are padded with zeros such that their rows are whole vectors (see `tiles`).
    """

    target: np.ndarray  # (m, t)
    norm: float  # the unit of targets
    unit: np.ndarray  # (n,) 1 / deviation
    W: np.ndarray  # (n, k) solutions of all rows
    W_units: np.ndarray  # (n, k) the same, of columns in units of their deviation
    basis: np.ndarray  # (n, r)
    D: np.ndarray  # (k, r)
    M: np.ndarray  # (k, n, n), without the padding of k; or empty, so that rows are rotated
    root: float
    tol: float  # for residuals, relative
    largest: float  # correction, relative to the scores

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # what overflows in single precision is corrected in double
    def of(
        cls,
        X: np.ndarray,
        target: np.ndarray,
        path: RidgePath,
        deviation: np.ndarray,
        alphas: np.ndarray,
        dtype: np.dtype,
    ) -> QueryFolds:
        """`dtype` is the precision of corrections."""
        norm = float(np.abs(target).max(initial=0.0)) or 1.0
        D = np.repeat(path.inverse(alphas), target.shape[1], axis=1)
        root = 1 / np.sqrt(D.min())
        W = whole_vectors(path.basis @ (D * np.tile(path.z / norm, len(alphas))), np.float32)
        unit = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        B, D = deviation[:, None] * path.basis, root**2 * D.T
        dense = W.shape[1] * len(B) < min(len(X), CELLS / max(1, len(B)))
        M = [whole_vectors((B * d) @ B.T, dtype).astype(dtype) for d in D] if dense else [np.empty((0, 0), dtype)]
        mixed = X.dtype == np.float64 and dtype == np.float32
        return cls(
            target / norm,
            norm,
            unit.astype(X.dtype),
            W,
            (deviation[:, None] * W).astype(X.dtype),
            whole_vectors(B, dtype).astype(dtype),
            whole_vectors(np.pad(D, ((0, W.shape[1] - len(D)), (0, 0))), dtype).astype(dtype),
            np.stack(M)[: len(D) if dense else 0],
            float(root),
            1e-5 if X.dtype == np.float32 else ERROR if mixed else 1e-10,
            ERROR / ROUNDING if mixed else 0.5,  # a correction beyond half of the scores may leave little but rounding
        )


class Buffers(NamedTuple):
    """Memory for one block of queries: matrices with a row for each item or query, and what gets its shape later."""

    V: np.ndarray  # (m, n) centred rows in the precision of X
    low: np.ndarray  # (m, n) the same in that of the corrections; V itself if they are equal
    mean: np.ndarray  # (g, n)
    means: np.ndarray  # g n numbers
    S: np.ndarray  # (m, k) scores
    FS: np.ndarray  # (m, k)
    R: np.ndarray  # (m, k)
    P: np.ndarray  # (m, k)
    Q: np.ndarray  # (m, k)
    rotated: np.ndarray
    means_rotated: np.ndarray
    A: np.ndarray
    U: np.ndarray
    MU: np.ndarray
    total: np.ndarray

    @classmethod
    def of(cls, rows: fused.QueryRows, blocks: list[tuple[int, int]], folds: QueryFolds, dtype: np.dtype) -> Buffers:
        """Memory for the largest block; `dtype` is the precision of the rows."""
        m, g = max(int(rows.sizes[a:b].sum()) for a, b in blocks), max(b - a for a, b in blocks)
        (n, k), low = folds.W.shape, folds.D.dtype
        width = max(folds.basis.shape[1], folds.M.shape[2])
        V = np.zeros((m, n), dtype)
        of_rows = lambda kind: np.zeros((m, k), kind)
        flat = lambda *shape: np.zeros(math.prod(shape), low)
        return cls(
            V=V,
            low=V if low == dtype else np.zeros((m, n), low),
            mean=np.zeros((g, n), dtype),
            means=flat(g, n),
            S=of_rows(dtype),
            FS=of_rows(dtype),
            R=of_rows(low),
            P=of_rows(low),
            Q=of_rows(low),
            rotated=flat(m, width),
            means_rotated=flat(g, width),
            A=flat(m, width),
            U=flat(g, k, width),
            MU=flat(g, k, width),
            total=flat(g, k, width),
        )


def whole_vectors(A: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """The matrix with zeros beside it, such that its rows are whole vectors once they are numbers of this type."""
    from .tiles import padded

    return np.pad(np.ascontiguousarray(A), ((0, 0), (0, padded(A.shape[1], np.dtype(dtype)) - A.shape[1])))
