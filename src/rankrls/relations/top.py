"""The best few of many scores, without storing all of them.

Scores are inner products of two arrays of rows, computed in tiles that stay in the cache. The first tile is cut into
sections, whose maxima give a threshold that the `top` best of each row are sure to reach. In later tiles one comparison
finds the scores that reach the threshold, only those are kept, and the threshold rises. So few scores are ever sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..system.parallel import Scratch, share
from ..system.types import Matrix

ROWS, COLUMNS = 256, 4096  # size of a tile
SECTIONS = 32


def best(
    left: np.ndarray, right: np.ndarray, top: int, excluded: Matrix | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(n, top) columns and scores of the largest entries of each row of left right', best first, ties by column.

    `excluded` (n, m) is a sparse array of entries to skip; a row with too few others ends in column -1, score NaN.
    """
    n, m = len(left), len(right)
    top = min(top, m)
    places, scores = np.full((n, top), -1, dtype=np.intp), np.full((n, top), np.nan, dtype=np.result_type(left, right))
    right = np.ascontiguousarray(right.T)

    def work(blocks: Any) -> None:
        scratch = Scratch(scores.dtype)
        for block in blocks:
            out = None if excluded is None else excluded[block].tocsc()
            places[block], scores[block] = _best(left[block], right, top, out, scratch)

    blocks = [slice(i, i + ROWS) for i in range(0, n, ROWS)]
    share(work, blocks, cost=n * m, label="objects ranked")
    return places, scores


def _best(
    left: np.ndarray, right: np.ndarray, top: int, excluded: Any, scratch: Scratch
) -> tuple[np.ndarray, np.ndarray]:
    """Columns and scores of the best of a few rows, tile by tile."""
    n, m = len(left), right.shape[1]
    width = max(COLUMNS, 4 * top)
    found = (np.full((n, top), -1), np.full((n, top), -np.inf, dtype=np.result_type(left, right)))
    waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for start in range(0, m, width):
        tile = slice(start, min(start + width, m))
        S = np.matmul(left, right[:, tile], out=scratch(n, tile.stop - start))
        if excluded is not None:
            S[excluded[:, tile].tocoo().coords] = -np.inf
        threshold = found[1][:, -1] if start else _first_threshold(S, top)
        at = np.flatnonzero(threshold[:, None] <= S)
        rows, columns = np.divmod(at, S.shape[1])
        waiting.append((rows, columns + start, S.ravel()[at]))
        if tile.stop == m or sum(len(some) for some, _, _ in waiting) > n * top // 2:
            found, waiting = _merged(found, *map(np.concatenate, zip(*waiting, strict=True))), []
    return found[0], np.where(found[0] < 0, np.nan, found[1])


def _first_threshold(S: np.ndarray, top: int) -> np.ndarray:
    """(n,) a value that `top` scores of each row reach."""
    n, m = S.shape
    length = m // SECTIONS
    maxima = S if length <= 2 * top else S[:, : SECTIONS * length].reshape(n, SECTIONS, length).max(axis=1)
    return np.partition(maxima, maxima.shape[1] - top, axis=1)[:, -top]


def _merged(
    found: tuple[np.ndarray, np.ndarray], rows: np.ndarray, columns: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The best among those found so far and new ones."""
    n, top = found[0].shape
    rows = np.concatenate([np.repeat(np.arange(n), top), rows])
    columns, values = np.concatenate([found[0].ravel(), columns]), np.concatenate([found[1].ravel(), values])
    order = np.lexsort((columns, -values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, np.arange(n))[rows]
    keep = place < top
    columns, values = columns[keep].reshape(n, top), values[keep].reshape(n, top)
    return np.where(values > -np.inf, columns, -1), values
