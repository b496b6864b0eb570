"""Counts of pairs, compiled by numba (the extra `fast`): scores in single precision are sorted by their digits.

`pairs._pairs` computes the same numbers in NumPy, and is the oracle in tests.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FEW = 32  # levels up to which the items of higher levels are counted level by level


@njit(nogil=True, cache=True)
def _sort_by_score(bits, level, key, place, other_key, other_place, counts):
    """Sort the levels of a query by score: by the first 22 bits in two passes, then by what little that leaves."""
    n, digit = len(bits), np.uint32(2047)
    counts[:] = 0
    for i in range(n):
        u = bits[i]
        if u == np.uint32(0x80000000):
            u = np.uint32(0)  # -0.0
        u ^= np.uint32(0xFFFFFFFF) if u >> np.uint32(31) else np.uint32(0x80000000)
        key[i], place[i] = u, level[i]
        counts[0, (u >> np.uint32(10)) & digit] += 1
        counts[1, u >> np.uint32(21)] += 1
    for half in range(2):
        total, shift = 0, np.uint32(10 + 11 * half)
        for value in range(2048):
            here = counts[half, value]
            counts[half, value] = total
            total += here
        for i in range(n):
            value = (key[i] >> shift) & digit
            at = counts[half, value]
            counts[half, value] = at + 1
            other_key[at], other_place[at] = key[i], place[i]
        key, other_key, place, other_place = other_key, key, other_place, place
    for i in range(1, n):
        u, v, at = key[i], place[i], i
        while at > 0 and key[at - 1] > u:
            key[at], place[at] = key[at - 1], place[at - 1]
            at -= 1
        key[at], place[at] = u, v


@njit(nogil=True, cache=True)
def _add(seen, level):
    """Count an item: seen[m] is how many have a level above m if levels are few, else a tree of partial sums."""
    if len(seen) <= FEW:
        for m in range(level):
            seen[m] += 1
    else:
        at = len(seen) - level
        while at <= len(seen):
            seen[at - 1] += 1
            at += at & -at


@njit(nogil=True, cache=True)
def _above(seen, level):
    """How many items counted so far have a greater level."""
    if len(seen) <= FEW:
        return seen[level]
    total, at = 0, len(seen) - level - 1
    while at > 0:
        total += seen[at - 1]
        at -= at & -at
    return total


@njit(nogil=True, cache=True)
def count_pairs(level, bits, n_levels, discordant, tied_scores, tied):
    """Fill in, for levels (g, l) and scores (g, c, l), the numbers (g, c) of discordant pairs and of tied ones.

    `tied` are those tied in the scores only.
    """
    n = level.shape[1]
    key, other_key = np.empty(n, np.uint32), np.empty(n, np.uint32)
    place, other_place = np.empty(n, np.int32), np.empty(n, np.int32)
    counts, seen = np.empty((2, 2048), np.int32), np.empty(n_levels, np.int64)
    same = np.zeros(n_levels, np.int64)
    for q in range(level.shape[0]):
        for model in range(bits.shape[1]):
            _sort_by_score(bits[q, model], level[q], key, place, other_key, other_place, counts)
            wrong, equal, both, i = 0, 0, 0, 0
            seen[:] = 0
            while i < n:
                end = i + 1
                while end < n and key[end] == key[i]:
                    end += 1
                for k in range(i, end):
                    wrong += _above(seen, place[k])
                    both += same[place[k]]
                    same[place[k]] += 1
                for k in range(i, end):
                    same[place[k]] = 0
                    _add(seen, place[k])
                equal += (end - i) * (end - i - 1) // 2
                i = end
            discordant[q, model], tied_scores[q, model], tied[q, model] = wrong, equal, equal - both
