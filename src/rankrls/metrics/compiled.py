"""Metrics of single queries by comparing all of their items, compiled by numba; `counted` calls them."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _by_label(y, rows, order, lower):
    """Write some rows in ascending order of y to `order`, and for each place how many have a smaller y to `lower`."""
    n = len(rows)
    lowest, largest, whole = y[rows[0]], y[rows[0]], True
    for row in rows:
        lowest, largest = min(lowest, y[row]), max(largest, y[row])
        whole &= y[row] == np.rint(y[row])
    if whole and largest - lowest < 64:
        before = np.zeros(66, np.intp)
        for row in rows:
            before[int(y[row] - lowest) + 1] += 1
        for grade in range(1, 65):
            before[grade] += before[grade - 1]
        place = before.copy()
        for row in rows:
            grade = int(y[row] - lowest)
            order[place[grade]] = row
            lower[place[grade]] = before[grade]
            place[grade] += 1
        return
    labels = np.empty(n)
    for i in range(n):
        labels[i] = y[rows[i]]
    sorting = np.argsort(labels)
    for i in range(n):
        order[i] = rows[sorting[i]]
        lower[i] = lower[i - 1] if i > 0 and labels[sorting[i]] == labels[sorting[i - 1]] else i


@njit(nogil=True, cache=True)
def _add_won(s, lower, count):
    """Add to `count` of each item, in the order of labels, twice how often one of a larger label scores higher.

    Ties count half. Four items of the same label are compared at once, since loops over few items take long to start.
    """
    i = 0
    while i < len(s):
        below = lower[i]
        if i + 3 < len(s) and lower[i + 3] == below:
            a, b, c, d = s[i], s[i + 1], s[i + 2], s[i + 3]
            for j in range(below):
                t = s[j]
                count[j] += np.int32(a > t) + np.int32(a >= t) + np.int32(b > t) + np.int32(b >= t)
                count[j] += np.int32(c > t) + np.int32(c >= t) + np.int32(d > t) + np.int32(d >= t)
            i += 4
        else:
            a = s[i]
            for j in range(below):
                count[j] += np.int32(a > s[j]) + np.int32(a >= s[j])
            i += 1


@njit(nogil=True, cache=True)
def accuracy(y, S, order, starts, sizes, first, last, values):
    """Write the pairwise accuracy of queries first to last - 1 and of each column of S to `values`."""
    longest, k = sizes[first:last].max(), S.shape[1]
    by_label, lower = np.empty(longest, np.intp), np.empty(longest, np.intp)
    s, count = np.empty((k, longest), S.dtype), np.empty(longest, np.int32)
    for q in range(first, last):
        n, rows = sizes[q], order[starts[q] : starts[q] + sizes[q]]
        _by_label(y, rows, by_label, lower)
        untied = lower[:n].sum()
        if untied == 0:
            values[q] = np.nan
            continue
        for i in range(n):
            row = S[by_label[i]]
            for c in range(k):
                s[c, i] = row[c]
        for c in range(k):
            count[:n] = 0
            _add_won(s[c, :n], lower[:n], count)
            values[q, c] = count[:n].sum() / (2 * untied)


@njit(nogil=True, cache=True)
def discounted(gain, until, empty, S, order, starts, sizes, first, last, values):
    """Write the ndcg of queries first to last - 1 and of each column of S to `values`; ties are averaged.

    `until` holds the sums of the discounts of the first 0, 1, ... ranks that count.
    """
    longest, cut = sizes[first:last].max(), len(until) - 1
    by_gain, lower, s = np.empty(longest, np.intp), np.empty(longest, np.intp), np.empty(longest, S.dtype)
    for q in range(first, last):
        n, rows, ideal = sizes[q], order[starts[q] : starts[q] + sizes[q]], 0.0
        _by_label(gain, rows, by_gain, lower)
        for i in range(n):
            ideal += gain[by_gain[n - 1 - i]] * (until[min(i + 1, cut)] - until[min(i, cut)])
        for c in range(S.shape[1]):
            if ideal == 0:
                values[q, c] = empty
                continue
            for i in range(n):
                s[i] = S[by_gain[i], c]
            found = 0.0
            for i in range(n - 1, -1, -1):
                g, own, greater, equal = gain[by_gain[i]], s[i], 0, 0
                if g == 0:
                    break
                for j in range(n):
                    greater += s[j] > own
                    equal += s[j] == own
                found += g * (until[min(greater + equal, cut)] - until[min(greater, cut)]) / equal
            values[q, c] = found / ideal
