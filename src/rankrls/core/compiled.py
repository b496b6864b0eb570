"""Passes over the rows of queries, compiled by numba; `fused` calls them and says what they compute."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def loss_rows(
    X, T, order, starts, sizes, first, last, scale, u, S, noise, root, shift, level, tie_start, tie_scale,
    out, out_T, top,
):  # fmt: skip
    """Write the loss rows of queries first to last - 1 to `out` and those of targets to `out_T`; return how many."""
    n, t = X.shape[1], T.shape[1]
    mean, mean_T = np.empty(n, X.dtype), np.empty(t, X.dtype)
    r = 0
    for q in range(first, last):
        a, b = starts[q], starts[q] + sizes[q]
        mean[:] = 0
        mean_T[:] = 0
        for i in range(a, b):
            row = order[i]
            w = u[row] / S[q]
            for j in range(n):
                mean[j] += w * X[row, j]
            for j in range(t):
                mean_T[j] += w * T[row, j]
        for j in range(n):
            top[j] = max(top[j], abs(mean[j]) * noise[q])
        k0, k = tie_start[q], tie_start[q + 1] - tie_start[q]
        out[r : r + k] = 0
        out_T[r : r + k] = 0
        for i in range(a, b):
            row, o = order[i], r + k + i - a
            s = scale[row]
            for j in range(n):
                out[o, j] = s * (X[row, j] - mean[j])
            for j in range(t):
                out_T[o, j] = s * (T[row, j] - mean_T[j])
            if level[row] >= 0:
                p, f = r + level[row] - k0, u[row] * tie_scale[level[row]]
                for j in range(n):
                    out[p, j] += f * (X[row, j] - mean[j])
                for j in range(t):
                    out_T[p, j] += f * (T[row, j] - mean_T[j])
        r += k + b - a
        if root[q] > 0:
            for j in range(n):
                out[r, j] = root[q] * (mean[j] - shift[j])
            for j in range(t):
                out_T[r, j] = root[q] * mean_T[j]
            r += 1
    return r
