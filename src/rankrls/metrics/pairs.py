"""Metrics of pairs: kernels on labels (g, l) and scores (g, c, l) of g queries, c models.

Everything follows from sorting: with labels in the order of the scores, discordant pairs are inversions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import fused
from ..system.types import DTypeLike
from . import counted
from .counted import Counted

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]  # labels (g, l), scores (g, c, l) -> (g, c)
GRADES = 16  # integer labels with a smaller range are used as levels directly
CONVENTIONS = (None, "papers")  # conventions of the disagreement error
BLOCK = 16  # inversions among this many items are counted pair by pair


def pairwise_accuracy(y: np.ndarray, s: np.ndarray) -> np.ndarray:
    balance, untied, _, _ = _pairs(y, s)
    return ratio(untied + balance, 2 * untied, np.nan)


def accuracy() -> Kernel:
    return Counted(pairwise_accuracy, counted.accuracy)


def auc(relevant: float) -> Kernel:
    hits = lambda y: (y >= relevant).astype(np.float64)
    return Counted(lambda y, s: pairwise_accuracy(hits(y), s), lambda y, longest: counted.accuracy(hits(y), longest))


def disagreement_error(convention: str | None) -> Kernel:
    if convention not in CONVENTIONS:
        known = ", ".join(map(repr, CONVENTIONS))
        raise ValueError(f"convention of disagreement_error must be one of {known}, got {convention!r}")
    return lambda y, s: 1 - pairwise_accuracy(y, s) if convention is None else _error_of_all_pairs(y, s)


def kendall_tau_b(y: np.ndarray, s: np.ndarray) -> np.ndarray:
    balance, untied, untied_scores, _ = _pairs(y, s)
    tau = ratio(balance, np.sqrt(untied) * np.sqrt(untied_scores), 0.0)
    return np.where(untied > 0, tau, np.nan)


def _error_of_all_pairs(y: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The mean over all pairs of |sign(y_i - y_j) - sign(s_i - s_j)| / 2."""
    _, untied, untied_scores, concordant = _pairs(y, s)
    n = y.shape[1] * (y.shape[1] - 1) // 2
    return ratio((untied + untied_scores) / 2 - concordant, np.array(n), np.nan)


def _pairs(y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Concordant minus discordant pairs (g, c), pairs untied in y (g, 1) and in s (g, c), concordant pairs (g, c).

    O(l log² l).

    With the labels sorted by score, and by label where scores tie, every pair out of order is discordant; the others
    with different labels are concordant or `tied` in the scores only.
    """
    level, untied = _levels(y)
    n, (discordant, tied_scores, tied) = y.shape[1] * (y.shape[1] - 1) // 2, _out_of_order(level, s)
    concordant = untied - tied - discordant
    return concordant - discordant, untied, n - tied_scores, concordant


def _out_of_order(level: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(g, c) the numbers of discordant pairs, of pairs tied in the scores, and of those tied in the scores only."""
    if s.dtype == np.float32 and fused.ready():
        from .compiled_order import count_pairs

        found = np.empty((3, *s.shape[:2]))
        level, scores = np.ascontiguousarray(level), np.ascontiguousarray(s)
        count_pairs(level, scores.view(np.uint32), int(level.max()) + 1, *found)
        return found[0], found[1], found[2]
    tied, tied_scores = np.zeros(s.shape[:2]), np.zeros(s.shape[:2])
    key, bits = _keys(level, s)
    score = key >> bits
    rows = (score[..., 1:] == score[..., :-1]).any(axis=-1)
    ordered = (key & ((1 << bits) - 1)).astype(np.int8 if bits < 8 else np.int32)
    if rows.any() and _keeps_scores(s.dtype, bits):
        tied_scores[rows] = _tied_pairs(score[rows])
        tied[rows] = tied_scores[rows] - _tied_pairs(key[rows])
    elif rows.any():  # scores may differ in the bits that were given up for the levels
        query = np.nonzero(rows)[0]
        ordered[rows], tied[rows], tied_scores[rows] = _in_order_with_ties(level[query], s[rows])
    return _inversions(ordered), tied_scores, tied


def _levels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels of each query as integers 0 to l - 1 in the same order (g, l), and the number of untied pairs."""
    low, pairs = y.min(), y.shape[1] * (y.shape[1] - 1) // 2
    if y.max() - low < min(GRADES, y.shape[1]) and np.all(y == np.rint(y)):
        level = (y - low).astype(np.int64)
        size = np.stack([(level == grade).sum(axis=-1) for grade in range(int(level.max()) + 1)])
        return level, (pairs - (size * (size - 1) // 2).sum(axis=0))[:, None]
    order = np.argsort(y, axis=-1)
    t = take(y, order)
    level = np.zeros(y.shape, dtype=np.int64)
    np.put_along_axis(level, order[:, 1:], np.cumsum(t[:, 1:] != t[:, :-1], axis=-1), axis=-1)
    return level, (pairs - _tied_pairs(t))[:, None]


def _keys(level: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, int]:
    """Scores (g, c, l) as sorted integers whose last bits are the levels (g, l), and how many bits those are.

    Sorting numbers is three times as fast as sorting indices, so each level travels in the last bits of its score:
    floats read as integers sort correctly once all bits except the sign of negative ones are flipped.
    """
    bits = int(level.max()).bit_length()
    key = (s.astype(np.float64) + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0
    key ^= (key >> 63) & np.iinfo(np.int64).max
    key >>= bits
    key <<= bits
    key |= level[:, None]
    key.sort(axis=-1)
    return key, bits


def _keeps_scores(dtype: DTypeLike, bits: int) -> bool:
    """True if this many of the last bits of a score in double precision are unused."""
    return dtype == np.float32 and bits <= np.finfo(np.float64).nmant - np.finfo(np.float32).nmant


def _in_order_with_ties(level: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels (n, l) sorted by score (n, l), then by level; the number of pairs tied in the scores only, and in both."""
    length = s.shape[-1]
    order = np.argsort(s, axis=-1)
    run = _run_starts(take(s, order))
    key = np.sort(run * length + take(level, order), axis=-1)
    tied = _tied_pairs(run)
    return key % length, tied - _tied_pairs(key), tied


def _inversions(v: np.ndarray) -> np.ndarray:
    """#{(i, j): i < j, v_i > v_j} in each row of v (g, c, l), of integers 0, 1, ..."""
    n_levels, length = int(v.max()) + 1, v.shape[-1]
    return _inversions_by_level(v, n_levels) if n_levels <= 4 * length.bit_length() else _inversions_by_merging(v)


def _inversions_by_level(v: np.ndarray, n_levels: int) -> np.ndarray:
    """Inversions counted at their smaller item, level by level. O(l n_levels)."""
    total = np.zeros(v.shape[:-1], dtype=np.int64)
    for level in range(n_levels - 1):
        greater_before = np.cumsum(v > level, axis=-1, dtype=np.int32)
        greater_before *= v == level
        total += greater_before.sum(axis=-1, dtype=np.int64)
    return total


def _inversions_by_merging(v: np.ndarray) -> np.ndarray:
    """Inversions in blocks of few items, then between the halves of ever longer sorted blocks. O(l log² l).

    In a sorted block the items of the right half would come last; every inversion moves one of them one place forward.
    The last bit of the sort key tells the halves apart and puts the left one first among equal values.
    """
    *shape, length = v.shape
    padded = max(BLOCK, 1 << (length - 1).bit_length())
    v = np.concatenate([v, np.full((*shape, padded - length), length)], axis=-1, dtype=np.int32)
    total, half = _inversions_in_blocks(v), BLOCK
    key = v << 1
    key.reshape(-1, BLOCK).sort(axis=-1)
    while half < padded:
        key = key.reshape(-1, 2 * half)
        key &= ~1
        key[:, half:] |= 1
        key.sort(axis=-1)
        exact: Any = np.float32 if half < 2048 else np.float64  # sums of ranks, below 2^24
        places = (key & 1).astype(exact) @ np.arange(2 * half, dtype=exact)
        moved = half * (3 * half - 1) // 2 - places.astype(np.int64)
        total += moved.reshape(*shape, -1).sum(axis=-1)
        half *= 2
    return total


def _inversions_in_blocks(v: np.ndarray) -> np.ndarray:
    """Inversions within each BLOCK items of rows (..., l), by comparing all their pairs."""
    items = np.ascontiguousarray(v.reshape(-1, BLOCK).T)  # the first items of all blocks, then the second ...
    count = np.zeros(items.shape[1], dtype=np.int8)  # at most 120
    for i in range(BLOCK - 1):
        for later in items[i + 1 :]:
            count += items[i] > later
    return count.reshape(*v.shape[:-1], -1).sum(axis=-1, dtype=np.int64)


def _run_starts(t: np.ndarray) -> np.ndarray:
    """For each place of a sorted row, where its run of equal values starts."""
    starts = np.zeros(t.shape, dtype=np.intp)
    starts[..., 1:] = np.where(t[..., 1:] != t[..., :-1], np.arange(1, t.shape[-1]), 0)
    return np.maximum.accumulate(starts, axis=-1)


def _tied_pairs(t: np.ndarray) -> np.ndarray:
    """#{(i, j): i < j, t_i = t_j} in each sorted row of t."""
    same = t[..., 1:] == t[..., :-1]
    count = same.sum(axis=-1)
    longer = (same[..., 1:] & same[..., :-1]).any(axis=-1)  # rows where more than two are equal
    if longer.any():
        several = t[longer]
        count[longer] = (np.arange(t.shape[-1]) - _run_starts(several)).sum(axis=-1)
    return count


def take(v: np.ndarray, order: np.ndarray) -> np.ndarray:
    """v (..., l) in an order of its last axis: np.take_along_axis, but five times as fast."""
    row = np.arange(0, v.size, v.shape[-1]).reshape(*v.shape[:-1], 1)
    return v.ravel().take(order + row)


def ratio(a: np.ndarray, b: np.ndarray, empty: float) -> np.ndarray:
    """a / b, and `empty` where b = 0."""
    a, b = np.broadcast_arrays(a, b)
    return np.divide(a, b, out=np.full(a.shape, float(empty)), where=b > 0)
