"""The fast parser of `lines` in one compiled pass over the characters; `lines` decides when to call it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_SPACE, _COLON, _NEWLINE, _HASH, _RETURN, _MINUS, _POINT = b" :\n#\r-."
_ZERO, _TEN = np.uint8(48), np.uint64(10)
_POWERS = 10.0 ** np.arange(20)
_EXACT = 2**53  # integers up to this are floats
_SPLIT = 2.0**27 + 1


@njit(nogil=True, cache=True)
def _quotient(mantissa, power):
    """Mantissa / power rounded once, NaN where it lies so close to the middle of two floats that it is not certain.

    The mantissa is the sum of two floats, and the remainder of the division of the first is exact [Dekker71].
    """
    high = np.float64(mantissa >> np.uint64(11)) * 2048.0
    low = np.float64(mantissa & np.uint64(2047))
    value = (high + low) / power
    a = _SPLIT * value
    a = a - (a - value)
    b = _SPLIT * power
    b = b - (b - power)
    product = value * power
    error = ((a * b - product) + a * (power - b) + (value - a) * b) + (value - a) * (power - b)
    rest = (((high - product) + low) - error) / power
    nearest = value + rest
    half = math.ldexp(1.0, math.frexp(nearest)[1] - 54)  # of the distance to the next float above, or twice that below
    share = abs(rest - (nearest - value)) / half
    return nearest if share < 0.9999 and abs(share - 0.5) > 0.0001 else np.nan


@njit(nogil=True, cache=True)
def _digits(text, i, value):
    """The value with the digits from i on appended, and where they end."""
    digit = np.uint8(text[i] - _ZERO)
    while digit < 10:
        value = value * _TEN + np.uint64(digit)
        i += 1
        digit = np.uint8(text[i] - _ZERO)
    return value, i


@njit(nogil=True, cache=True)
def _number(text, i):
    """The number from i on, and where its token ends; NaN where `float` must read it, -1 for a control character."""
    start = i
    negative = text[i] == _MINUS
    i += negative
    first = i
    mantissa, i = _digits(text, i, np.uint64(0))
    after = i + (text[i] == _POINT)  # without a point no digit follows
    mantissa, end = _digits(text, after, mantissa)
    power, digits, i = end - after, end - first - (after - i), end
    plain = 0 < digits < 20
    if text[i] != _SPACE:
        while text[i] != _SPACE and text[i] != _HASH and text[i] >= 32:
            plain = False
            i += 1
        if text[i] < 32 and not (text[i] == _NEWLINE or (text[i] == _RETURN and text[i + 1] == _NEWLINE)):
            return np.nan, -1
    if not plain or i == start:
        return np.nan, i
    value = np.float64(mantissa) / _POWERS[power] if mantissa <= _EXACT else _quotient(mantissa, _POWERS[power])
    return -value if negative else value, i


@njit(nogil=True, cache=True)
def _note(odd, n_odd, index, start, end):
    """Note a number that is left to the caller; the number of them, -1 if there is no room."""
    if n_odd == len(odd):
        return -1
    odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2] = index, start, end
    return n_odd + 1


@njit(nogil=True, cache=True)
def _given(text, i, n, features, values, odd, n_odd):
    """Write ` i:v i:v ...` from i on to `features` and `values` from n on; where that ends, -1 if it is not regular."""
    before = -1
    while text[i] == _SPACE:
        first = i + 1
        name, i = _digits(text, first, np.uint64(0))
        if i == first:
            return first - 1, n, n_odd
        feature, start = int(name), i + 1
        if text[i] != _COLON or i - first > 8 or feature <= before:
            return -1, n, n_odd
        value, i = _number(text, start)
        if value != value:
            n_odd = _note(odd, n_odd, n, start, i)
            if i <= start or n_odd < 0:
                return -1, n, n_odd
        features[n], values[n], before = feature, value, feature
        n += 1
    return i, n, n_odd


@njit(nogil=True, cache=True)
def _id(text, i, longest):
    """Where the query id of ` qid:...` from i on starts and ends: both i without one, -1 if it is not regular."""
    start = i
    for letter in b" qid:":
        if text[i] != letter:
            return start, start
        i += 1
    start = i
    while text[i] != _SPACE and text[i] != _HASH and text[i] >= 32:
        i += 1
    return start, i if 0 < i - start <= longest else -1


@njit(nogil=True, cache=True)
def _equal(text, a, b, length):
    same = True
    for i in range(length):
        same &= text[a + i] == text[b + i]
    return same


@njit(nogil=True, cache=True)
def _comment(text, i, span):
    """Write where the comment is that follows blanks from i on; the end of the line, -1 if other text follows."""
    while text[i] == _SPACE:
        i += 1
    marked = text[i] == _HASH
    span[:] = i + marked
    while text[i] != _NEWLINE:
        i += 1
    end = i - (text[i - 1] == _RETURN)
    if end > span[0]:
        span[1] = end
    return i if marked or span[1] == span[0] else -1


@njit(nogil=True, cache=True)
def regular(text, longest_id, y, qid, comment, line_of, counts, features, values, odd):
    """Parse whole lines; write labels, spans (m, 2) of query ids and comments, line numbers, and what lines hold.

    `qid` holds the start of each id and its length, which is negative where the id repeats that of the row before and
    zero without ids. `odd` gets the indices of numbers that are left to the caller, -1 - row of a label, and their
    spans. Returns the numbers of rows, values and odd numbers; -1 rows if a line is not regular.
    """
    i, line, m, n, n_odd = 0, -1, 0, 0, 0
    while i < len(text):
        line += 1
        start = i
        if text[i] != _HASH and text[i] != _NEWLINE and not (text[i] == _RETURN and text[i + 1] == _NEWLINE):
            y[m], i = _number(text, i)
            if y[m] != y[m]:
                n_odd = _note(odd, n_odd, -1 - m, start, i)
            first, i = _id(text, i, longest_id)
            length = i - first
            if i <= start or n_odd < 0 or (m > 0 and (length > 0) != (qid[0, 1] > 0)):
                return -1, n, n_odd
            same = m > 0 and abs(qid[m - 1, 1]) == length and _equal(text, first, qid[m - 1, 0], length)
            qid[m, 0], qid[m, 1] = first, -length if same else length
            i, after, n_odd = _given(text, i, n, features, values, odd, n_odd)
            i = -1 if i < 0 else _comment(text, i, comment[m])
            if i < 0:
                return -1, n, n_odd
            counts[m], line_of[m] = after - n, line
            n = after
            m += 1
        while text[i] != _NEWLINE:
            i += 1
        i += 1
    return m, n, n_odd
