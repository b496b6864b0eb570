"""The best few of many scores, without ever holding all of them.

Scores are inner products of two arrays of rows. A block of them is made by one matrix product. The columns are cut into
sections; the largest value of each place over all sections gives a threshold that the `top` best of a row are sure to
reach, and few others do: only those are sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..system.parallel import share
from ..system.types import Matrix

CELLS = 1 << 22  # scores in memory at a time, for each thread
SECTIONS = 32


def best(
    left: np.ndarray, right: np.ndarray, top: int, excluded: Matrix | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(n, top) places and scores of the largest entries of each row of left right', best first, ties by place.

    `excluded` (n, m) is a sparse array of what must not come; a row with too few others ends in place -1, score NaN.
    """
    n, m = len(left), len(right)
    top = min(top, m)
    places, scores = np.full((n, top), -1, dtype=np.intp), np.full((n, top), np.nan, dtype=np.result_type(left, right))
    step = max(1, CELLS // max(1, m))
    right = np.ascontiguousarray(right.T)

    def work(blocks: Any) -> None:
        for block in blocks:
            S = left[block] @ right
            if excluded is not None:
                some = excluded[block].tocoo()
                S[some.coords] = -np.inf
            _best(S, top, places[block], scores[block])

    blocks = [slice(i, i + step) for i in range(0, n, step)]
    share(work, blocks, cost=n * m, label="objects ranked")
    return places, scores


def _best(S: np.ndarray, top: int, places: np.ndarray, scores: np.ndarray) -> None:
    """Fill in the places and scores of the best of each row of S."""
    n, m = S.shape
    length = m // SECTIONS
    if length <= 2 * top:
        rows, columns = np.divmod(np.arange(n * m), max(m, 1))
    else:
        maxima = S[:, : SECTIONS * length].reshape(n, SECTIONS, length).max(axis=1)
        if SECTIONS * length < m:
            maxima = np.hstack([maxima, S[:, SECTIONS * length :]])
        threshold = np.partition(maxima, maxima.shape[1] - top, axis=1)[:, -top]
        rows, columns = np.divmod(np.flatnonzero(threshold[:, None] <= S), m)
    values = S[rows, columns]
    order = np.lexsort((columns, -values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, np.arange(n))[rows]
    keep = (place < top) & (values > -np.inf)
    places[rows[keep], place[keep]] = columns[keep]
    scores[rows[keep], place[keep]] = values[keep]
