"""Scores of edges from sparse kernels of both ends, compiled by numba (the extra `fast`); `grams` calls it."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def scores_of_edges(G, V, K, order, starts, columns, first, last, out):
    """Write (G V K)[row, column] of the edges of rows first to last - 1, which `order` lists row by row.

    G, V and K are (starts, indices, values) of compressed rows.
    """
    g_start, g_index, g_value = G
    v_start, v_index, v_value = V
    k_start, k_index, k_value = K
    row = np.zeros(len(k_start) - 1)
    for h in range(first, last):
        if starts[h] == starts[h + 1]:
            continue
        touched = 0
        for a in range(g_start[h], g_start[h + 1]):
            other, weight = g_index[a], g_value[a]
            touched += v_start[other + 1] - v_start[other]
            for t in range(v_start[other], v_start[other + 1]):
                row[v_index[t]] += weight * v_value[t]
        for at in range(starts[h], starts[h + 1]):
            i, total = columns[order[at]], 0.0
            for b in range(k_start[i], k_start[i + 1]):
                total += row[k_index[b]] * k_value[b]
            out[order[at]] = total
        if touched > len(row):
            row[:] = 0
        else:
            for a in range(g_start[h], g_start[h + 1]):
                for t in range(v_start[g_index[a]], v_start[g_index[a] + 1]):
                    row[v_index[t]] = 0
