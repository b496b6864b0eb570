"""Passes over the rows of queries, compiled by numba; `fused` and the readers of files call them."""

from __future__ import annotations

import math

import numpy as np
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from .tiles import add_few, add_gram

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
def add_sums(X, copied, T, rows, noise, root, shift, blocks, A, Z, top, product, gram, cross, square):
    """Add R'R, Z'R and Z'Z of the loss rows R of X and Z of T to `gram`, `cross` and `square`, for blocks of queries.

    All in one call, since every call waits for its turn with the interpreter. R and Z of a block are written to A and
    Z, and its products to `product`; the rest is as in `loss_rows`.
    """
    for k in range(len(blocks)):
        r = loss_rows(X, copied, T, rows, noise, root, shift, blocks[k, 0], blocks[k, 1], A, Z, top)
        add_gram(A[:r], product, gram)
        add_few(Z[:r], A[:r], cross)
        add_few(Z[:r], Z[:r], square)


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
