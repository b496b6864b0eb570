"""The steps of leaving out queries, compiled by numba; `fused_folds` puts them together.

Arrays with a row for each item hold the queries of a block one after the other. The columns that run over alphas and
targets, and those of matrices that are multiplied from the right, are padded to whole vectors (see `tiles`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .tiles import product

STEPS = 20
SHORT = 3  # rows are rotated where queries have fewer than this many rows for each column of W


@njit(nogil=True, cache=True)
def leave_out(X, copied, rows, blocks, folds, memory, scores, good):
    """Write the scores (m, k) of rows by models that never saw their query, for blocks of queries, to their places.

    `good` (q,) is True for the queries whose scores are exact. All in one call, since every call waits for its turn
    with the interpreter; `memory` is reused for each block (see `fused_folds`).
    """
    (n, k), g_most = folds.W.shape, len(memory.mean)
    square, level, left = np.empty((g_most, k)), np.empty((g_most, k)), np.empty(g_most, np.intp)
    for b in range(len(blocks)):
        first, last = blocks[b]
        g, m = last - first, rows.sizes[first:last].sum()
        V, low, mean, means = memory.V[:m], memory.low[:m], memory.mean[:g], memory.means[: g * n].reshape(g, n)
        centred(X, copied, rows, first, last, folds.unit, V, low, mean)
        product(mean.astype(np.float64), folds.W, level)
        means[:] = mean * folds.unit
        S, FS, R, P, Q = memory.S[:m], memory.FS[:m], memory.R[:m], memory.P[:m], memory.Q[:m]
        product(V, folds.W_units, S)
        weighted(S, rows, 1.0, first, last, FS)
        residuals(FS, folds.target, rows, first, last, R, P, square)
        rotated, width = len(folds.M) == 0 or m < SHORT * k * g, folds.M.shape[2]
        if rotated:
            width = folds.basis.shape[1]
            in_basis, means_in_basis = memory.rotated[: m * width], memory.means_rotated[: g * width]
            product(low, folds.basis, in_basis.reshape(m, width))
            product(means, folds.basis, means_in_basis.reshape(g, width))
            low, means = in_basis.reshape(m, width), means_in_basis.reshape(g, width)
        A, depth = memory.A[: m * width].reshape(m, width), low.shape[1]
        weighted(low, rows, 1 / folds.root, first, last, A)
        U, MU = memory.U[: g * k * width].reshape(g, k, width), memory.MU[: g * k * width].reshape(g, k, width)
        total = memory.total[: g * depth * k].reshape(g, depth, k)
        _solve(A, folds, rotated, U, MU, R, P, Q, rows.sizes[first:last], square[:g], total, left[:g])
        corrected(S, level, low, means, total, rows, first, last, folds, Q, scores, good)
        for i in range(g):
            good[first + i] &= left[i] == 0


@njit(nogil=True, cache=True)
def _solve(A, folds, rotated, U, MU, R, P, Q, sizes, square, total, left):
    """`total` (g, n, k) = M A'T with (I - A M A') T = R for g queries and k columns; `left` (g,) is zero where solved.

    `square` (g, k) is ||R||^2. The leverage is what steps after the first have seen of it (see `krylov`).
    """
    rho, leverage, bound = square.copy(), np.ones_like(square), folds.tol**2 * square
    total[:] = 0
    for step in range(STEPS):
        pulled_back(A, P, sizes, U)
        if rotated:
            for i in range(len(U)):
                U[i] *= folds.D
            advance(A, U, P, R, Q, sizes, rho, square, leverage, bound, total, left)
        else:
            each_times(U, folds.M, MU)
            advance(A, MU, P, R, Q, sizes, rho, square, leverage, bound, total, left)
        if not left.any():
            break
        if step == 0:  # nothing is known of the leverage until the second step
            leverage *= leverage != 1


@njit(nogil=True, cache=True)
def centred(X, copied, rows, first, last, unit, V, low, mean):
    """Write rows of queries first to last - 1, minus their query's mean and in units of columns, to V and `low`.

    The means (g, n) are in the units of X.
    X holds all rows or, if `copied`, only those of these queries, in their order.
    """
    order, u, starts, sizes, S = rows.order, rows.u, rows.starts, rows.sizes, rows.S
    n, number, end = X.shape[1], X.dtype.type, 0
    for q in range(first, last):
        a, b, centre, before = starts[q], starts[q] + sizes[q], mean[q - first], starts[q] - end
        end += sizes[q]
        centre[:] = 0
        for i in range(a, b):
            row = order[i]
            w, x = number((u[row] if len(u) else 1.0) / S[q]), X[i - before if copied else row]
            for j in range(n):
                centre[j] += w * x[j]
        for i in range(a, b):
            x, o = X[i - before if copied else order[i]], i - before
            for j in range(n):
                value = (x[j] - centre[j]) * unit[j]
                V[o, j] = value
                low[o, j] = value


@njit(nogil=True, cache=True)
def weighted(V, rows, factor, first, last, A):
    """A = factor F V of rows V that are centred by query."""
    order, u, level, within, tie_weight = rows.order, rows.u, rows.level, rows.within, rows.tie_weight
    starts, sizes, first_tie, n_ties = rows.starts, rows.sizes, rows.first_tie, rows.n_ties
    n, number, end = V.shape[1], A.dtype.type, 0
    level_mean = np.empty((max(1, n_ties[first:last].max()), n), V.dtype)
    for q in range(first, last):
        a, b, ties, before = starts[q], starts[q] + sizes[q], n_ties[q], starts[q] - end
        between, end = rows.between[q], end + sizes[q]
        level_mean[:ties] = 0
        for i in range(a, b if ties else a):
            row, o = order[i], i - before
            if level[row] >= 0:
                p = level[row] - first_tie[q]
                share = number((u[row] if len(u) else 1.0) / tie_weight[level[row]])
                for j in range(n):
                    level_mean[p, j] += share * V[o, j]
        for i in range(a, b):
            row, o = order[i], i - before
            root = factor * (math.sqrt(u[row]) if len(u) else 1.0)
            if ties and level[row] >= 0:
                p = level[row] - first_tie[q]
                scale, excess = number(root * within[row]), number(root * (between - within[row]))
                for j in range(n):
                    A[o, j] = scale * V[o, j] + excess * level_mean[p, j]
            else:
                scale = number(root * between)
                for j in range(n):
                    A[o, j] = scale * V[o, j]


@njit(nogil=True, cache=True)
def residuals(FS, target, rows, first, last, R, P, square):
    """R = P = target - F S for scores S, and the squared norms (g, k) of its columns in each query."""
    k, t, r, order = FS.shape[1], target.shape[1], 0, rows.order
    for q in range(first, last):
        a, b = rows.starts[q], rows.starts[q] + rows.sizes[q]
        square[q - first] = 0
        for i in range(a, b):
            row, o = order[i], r + i - a
            if t > 1:
                for c in range(k):
                    R[o, c] = target[row, c % t] - FS[o, c]
            else:
                for c in range(k):
                    R[o, c] = target[row, 0] - FS[o, c]
            for c in range(k):
                value = R[o, c]
                P[o, c] = value
                square[q - first, c] += value * value
        r += b - a


@njit(nogil=True, cache=True)
def pulled_back(A, P, sizes, U):
    """U = P'A (g, k, n) of each query."""
    r = 0
    for g in range(len(sizes)):
        product(P[r : r + sizes[g]].T, A[r : r + sizes[g]], U[g])
        r += sizes[g]


@njit(nogil=True, cache=True)
def each_times(U, M, MU):
    """MU = U M of each query, where every column has a matrix of its own: M (c, n, n). Further columns are zero."""
    c, n = M.shape[:2]
    for i in range(c):
        product(U[:, i, :n], M[i], MU[:, i])
    MU[:, c:] = 0


@njit(nogil=True, cache=True)
def advance(A, U, P, R, Q, sizes, rho, square, leverage, bound, total, left):
    """One step of conjugate gradients on (I - A M A') T = R, given U = P'A M; `total` (g, n, k) gathers M A'T.

    The scores change by the residual times the leverage, which is estimated as ten times the largest ||A U|| / ||P||
    seen so far, or more if the caller gives more; `leverage` (g, k) holds squares. `left` counts the columns of each
    query whose residual still changes scores by more than sqrt(bound).
    """
    (n, k), r = total.shape[1:], 0
    step, ratio, columns = np.empty(k, A.dtype), np.empty(k, A.dtype), np.empty((n, k), A.dtype)
    curved, moved = np.empty(k), np.empty(k)
    for g in range(len(sizes)):
        end, of_query, sums = r + sizes[g], U[g], total[g]
        left[g] = 0
        curved[:] = 0
        moved[:] = 0
        for j in range(n):
            for c in range(k):
                columns[j, c] = of_query[c, j]
        product(A[r:end, :n], columns, Q[r:end])
        for i in range(r, end):
            for c in range(k):
                curved[c] += P[i, c] * (P[i, c] - Q[i, c])
                moved[c] += Q[i, c] * Q[i, c]
        for c in range(k):
            leverage[g, c] = max(leverage[g, c], 100 * moved[c] / max(square[g, c], 1e-300))
            step[c] = rho[g, c] / max(curved[c], 1e-300)
            moved[c] = 0
        for j in range(n):
            for c in range(k):
                sums[j, c] += step[c] * columns[j, c]
        for i in range(r, end):
            for c in range(k):
                R[i, c] -= step[c] * (P[i, c] - Q[i, c])
                moved[c] += R[i, c] * R[i, c]
        for c in range(k):
            ratio[c] = moved[c] / max(rho[g, c], 1e-300)
            square[g, c] = moved[c] + ratio[c] * ratio[c] * square[g, c]  # R is orthogonal to P
            rho[g, c] = moved[c]
            left[g] += min(1.0, leverage[g, c]) * moved[c] > bound[g, c]
        for i in range(r, end):
            for c in range(k):
                P[i, c] = R[i, c] + ratio[c] * P[i, c]
        r = end


@njit(nogil=True, cache=True)
def corrected(S, level, V, means, total, rows, first, last, folds, Q, scores, good):
    """Write norm (S - V total / root + level - means total / root): the scores S of centred rows and the `level` (g, k)
    of their query, each less what the query has contributed to them.

    Divided by a root of 1e50, numbers in single precision would vanish, so the products are. Equal rows get equal
    scores: `product` adds up each of its numbers in the same order. `good` is True for the queries in which no
    correction of a row exceeds `largest` times the scores it corrects.
    """
    norm, unit, largest = folds.norm, 1 / folds.root, folds.largest
    k, width, n, r, order = scores.shape[1], S.shape[1], V.shape[1], 0, rows.order
    top, correction = np.empty(width, S.dtype), np.empty(width, Q.dtype)
    shift = np.empty((1, width), Q.dtype)
    for q in range(first, last):
        g, end, a = q - first, r + rows.sizes[q], rows.starts[q]
        product(V[r:end], total[g], Q[r:end])
        product(means[g : g + 1, :n], total[g], shift)
        top[:] = 0
        correction[:] = 0
        for i in range(r, end):
            row = order[a + i - r]
            for c in range(width):
                size, change = abs(S[i, c]), abs(Q[i, c])
                top[c] = size if size > top[c] else top[c]
                correction[c] = correction[c] if change <= correction[c] else change  # NaN stays
            for c in range(k):
                scores[row, c] = norm * (S[i, c] - unit * Q[i, c] + (level[g, c] - unit * shift[0, c]))
        good[q] = True
        for c in range(k):
            if not unit * correction[c] <= largest * top[c]:
                good[q] = False
        r = end
