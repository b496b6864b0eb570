"""Passes over the rows of queries, compiled by numba; `fused` and `fused_folds` call them."""

from __future__ import annotations

import math

import numpy as np
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

TILE = 1024  # rows written at a time


@intrinsic
def _pointer(typing, address):
    """An address as a pointer."""

    def build(context, builder, signature, values):
        return builder.inttoptr(values[0], cgutils.voidptr_t)

    return types.voidptr(types.uintp), build


@njit(nogil=True, cache=True)
def side_by_side(addresses, out):
    """Write columns, given by the addresses of their first values, as rows (m, n) of the type of `out`.

    Eight columns at a time fill a whole cache line, or half of one.
    """
    m, n = out.shape
    for a in range(0, m, TILE):
        b, j = min(a + TILE, m), 0
        while j + 8 <= n:
            c0 = carray(_pointer(addresses[j]), (m,), out.dtype)  # type: ignore[call-arg]
            c1 = carray(_pointer(addresses[j + 1]), (m,), out.dtype)
            c2 = carray(_pointer(addresses[j + 2]), (m,), out.dtype)
            c3 = carray(_pointer(addresses[j + 3]), (m,), out.dtype)
            c4 = carray(_pointer(addresses[j + 4]), (m,), out.dtype)
            c5 = carray(_pointer(addresses[j + 5]), (m,), out.dtype)
            c6 = carray(_pointer(addresses[j + 6]), (m,), out.dtype)
            c7 = carray(_pointer(addresses[j + 7]), (m,), out.dtype)
            for i in range(a, b):
                row = out[i]
                row[j], row[j + 1], row[j + 2], row[j + 3] = c0[i], c1[i], c2[i], c3[i]
                row[j + 4], row[j + 5], row[j + 6], row[j + 7] = c4[i], c5[i], c6[i], c7[i]
            j += 8
        for k in range(j, n):
            column = carray(_pointer(addresses[k]), (m,), out.dtype)  # type: ignore[call-arg]
            for i in range(a, b):
                out[i, k] = column[i]


@njit(nogil=True, cache=True)
def _means(X, T, copied, rows, q, base, means, means_T):
    """Write the means of a query to the first row of `means` and `means_T`, and those of its tie levels to the next.

    The means of levels are relative to that of the query, as rounded: rows far from zero keep their differences, since
    all are summed about the first. Rows of X are found as in `loss_rows`.
    """
    order, u, level, tie_weight = rows.order, rows.u, rows.level, rows.tie_weight
    a, k, first, S = rows.starts[q], rows.n_ties[q], rows.first_tie[q], rows.S[q]
    n, t, number, origin = X.shape[1], T.shape[1], X.dtype.type, X[a - base if copied else order[a]]
    means[: k + 1] = 0
    means_T[: k + 1] = 0
    for i in range(a, a + rows.sizes[q]):
        row = order[i]
        p, w = 0, u[row] if len(u) else 1.0
        if k and level[row] >= 0:
            p, w = level[row] - first + 1, w / tie_weight[level[row]]
        else:
            w /= S
        x, mean, share = X[i - base if copied else row], means[p], number(w)
        for j in range(n):
            mean[j] += share * (x[j] - origin[j])
        for j in range(t):
            means_T[p, j] += share * T[row, j]
    for p in range(1, k + 1):
        share = number(tie_weight[first + p - 1] / S)
        for j in range(n):
            means[0, j] += share * means[p, j]
        for j in range(t):
            means_T[0, j] += share * means_T[p, j]
    for j in range(n):
        means[0, j] += origin[j]
    for p in range(1, k + 1):
        for j in range(n):
            means[p, j] -= means[0, j] - origin[j]
        for j in range(t):
            means_T[p, j] -= means_T[0, j]


@njit(nogil=True, cache=True)
def loss_rows(X, copied, T, rows, noise, root, shift, first, last, out, out_T, top):
    """Write F of the rows of queries first to last - 1 to `out` and of their targets to `out_T`; return how many.

    With regression a row for the mean of each query follows. X holds all rows or, if `copied`, only those of these
    queries, in their order. `top` (n,) is raised to the largest of the query means times `noise` (q,).
    """
    order, u, level, within = rows.order, rows.u, rows.level, rows.within  # not in the loop: it counts references
    n, t, number = X.shape[1], T.shape[1], X.dtype.type
    most = rows.n_ties[first:last].max() + 1
    means, means_T = np.empty((most, n), X.dtype), np.empty((most, t), X.dtype)
    mean, mean_T = means[0], means_T[0]
    r, base = 0, rows.starts[first]
    for q in range(first, last):
        _means(X, T, copied, rows, q, base, means, means_T)
        ties, first_tie, between = rows.n_ties[q], rows.first_tie[q], rows.between[q]
        for j in range(n):
            top[j] = max(top[j], abs(mean[j]) * noise[q])
        for i in range(rows.starts[q], rows.starts[q] + rows.sizes[q]):
            row = order[i]
            root_u, x, loss = math.sqrt(u[row]) if len(u) else 1.0, X[i - base if copied else row], out[r]
            if ties and level[row] >= 0:
                p, scale = level[row] - first_tie + 1, number(root_u * within[row])
                tie, excess = means[p], number(root_u * (between - within[row]))
                for j in range(n):
                    loss[j] = scale * (x[j] - mean[j]) + excess * tie[j]
                for j in range(t):
                    out_T[r, j] = scale * (T[row, j] - mean_T[j]) + excess * means_T[p, j]
            else:
                scale = number(root_u * between)
                for j in range(n):
                    loss[j] = scale * (x[j] - mean[j])
                for j in range(t):
                    out_T[r, j] = scale * (T[row, j] - mean_T[j])
            r += 1
        if root[q] > 0:
            for j in range(n):
                out[r, j] = root[q] * (mean[j] - shift[j])
            for j in range(t):
                out_T[r, j] = root[q] * mean_T[j]
            r += 1
    return r


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
    """U = P'A of each query, k rows each."""
    k, r = P.shape[1], 0
    for g in range(len(sizes)):
        np.dot(P[r : r + sizes[g]].T, A[r : r + sizes[g]], U[g * k : (g + 1) * k])
        r += sizes[g]


@njit(nogil=True, cache=True)
def advance(A, U, P, R, Q, sizes, rho, square, leverage, bound, total, left):
    """One step of conjugate gradients on (I - A M A') T = R, given U = M A'P; `total` gathers M A'T.

    The scores change by the residual times the leverage, which is estimated as ten times the largest ||A U|| / ||P||
    seen so far, or more if the caller gives more; `leverage` (g, k) holds squares. `left` counts the columns of each
    query whose residual still changes scores by more than sqrt(bound).
    """
    k, r = P.shape[1], 0
    step, ratio = np.empty(k, A.dtype), np.empty(k, A.dtype)
    curved, moved = np.empty(k), np.empty(k)
    for g in range(len(sizes)):
        end = r + sizes[g]
        left[g] = 0
        curved[:] = 0
        moved[:] = 0
        np.dot(A[r:end], U[g * k : (g + 1) * k].T, Q[r:end])
        for i in range(r, end):
            for c in range(k):
                curved[c] += P[i, c] * (P[i, c] - Q[i, c])
                moved[c] += Q[i, c] * Q[i, c]
        for c in range(k):
            leverage[g, c] = max(leverage[g, c], 100 * moved[c] / max(square[g, c], 1e-300))
            step[c] = rho[g, c] / max(curved[c], 1e-300)
            moved[c] = 0
            for j in range(A.shape[1]):
                total[g * k + c, j] += step[c] * U[g * k + c, j]
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
def corrected(S, level, V, total, rows, first, last, bits, largest, norm, Q, scores, good):
    """Write the scores S of centred rows less V @ total', plus the level (g, k) of their query, times `norm`.

    S is rounded to `bits` of the largest of its query, so that equal rows tie: adding a number whose last digit is that
    bit, and subtracting it, is faster than dividing. `good` is True for the queries in which
    no correction exceeds `largest` times the scores it corrects.
    """
    k, width, r, order = scores.shape[1], S.shape[1], 0, rows.order
    top, correction, unit = np.empty(width, S.dtype), np.empty(width, Q.dtype), np.empty(width, S.dtype)
    digits, least = (52, -1074) if S.itemsize == 8 else (23, -149)
    for q in range(first, last):
        g, end, a = q - first, r + rows.sizes[q], rows.starts[q]
        np.dot(V[r:end], total[g * width : (g + 1) * width].T, Q[r:end])
        top[:] = 0
        correction[:] = 0
        for i in range(r, end):
            for c in range(width):
                size, change = abs(S[i, c]), abs(Q[i, c])
                top[c] = size if size > top[c] else top[c]
                correction[c] = correction[c] if change <= correction[c] else change  # NaN stays
        good[q] = True
        for c in range(k):
            if not correction[c] <= largest * top[c]:
                good[q] = False
        for c in range(width):
            unit[c] = math.ldexp(1.5, max(math.frexp(top[c])[1] - bits, least) + digits)
        for i in range(r, end):
            for c in range(width):
                S[i, c] = (S[i, c] + unit[c]) - unit[c]
        _same_for_equal_rows(S[r:end], V[r:end], Q[r:end])
        for i in range(r, end):
            row = order[a + i - r]
            for c in range(k):
                scores[row, c] = norm * (S[i, c] - Q[i, c] + level[g, c])
        r = end


@njit(nogil=True, cache=True)
def _same_for_equal_rows(S, V, Q):
    """Make rows of Q equal where those of V are: the matrix product may have rounded them differently.

    Equal rows of V are found by their equal scores S.
    """
    n = len(S)
    if n > 500:  # comparing all rows takes longer than sorting them
        order = np.argsort(S[:, 0])
        for i in range(1, n):
            before, row = order[i - 1], order[i]
            if S[before, 0] == S[row, 0] and np.array_equal(V[before], V[row]):
                Q[row] = Q[before]
        return
    score = S[:, 0].copy()
    for row in range(1, n):
        same, own = 0, score[row]
        for i in range(row):
            same += score[i] == own
        for before in range(row if same else 0):
            if score[before] == own and np.array_equal(V[before], V[row]):
                Q[row] = Q[before]
                break


@njit(nogil=True, cache=True)
def merged_rows(V, slot, weight, root, mean, total, out):
    """Merge rows into the means of their slots, one after the other; write what that adds to the sums to `out`.

    A row v of weight w that joins a mean m of weight W adds w W / (w + W) root^2 (v - m)^2. Returns how many rows were
    written: the first row of a slot adds nothing.
    """
    n, r = V.shape[1], 0
    for i in range(len(slot)):
        s, w, W = slot[i], weight[i], total[slot[i]]
        share = w / (w + W)
        factor = root[i] * math.sqrt(share * W)
        for j in range(n):
            change = V[i, j] - mean[s, j]
            out[r, j] = factor * change
            mean[s, j] += share * change
        total[s] = w + W
        r += W > 0
    return r


@njit(nogil=True, cache=True)
def squared_residuals(y, scores, order, starts, sizes, total):
    """Add the squares of y - scores (m, k), less their mean in the query, to `total` (k,)."""
    k = scores.shape[1]
    mean = np.empty(k)
    for q in range(len(sizes)):
        a, b = starts[q], starts[q] + sizes[q]
        mean[:] = 0
        for i in range(a, b):
            row = order[i]
            for c in range(k):
                mean[c] += (y[row] - scores[row, c]) / sizes[q]
        for i in range(a, b):
            row = order[i]
            for c in range(k):
                residual = y[row] - scores[row, c] - mean[c]
                total[c] += residual * residual
