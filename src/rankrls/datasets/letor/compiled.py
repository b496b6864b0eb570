"""The fast parser of `lines` in one compiled pass over the characters; `lines` decides when to call it.

Eight characters are one 64-bit word, as in `decimals`.
"""

from __future__ import annotations

import sys

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_SPACE, _COLON, _NEWLINE, _HASH, _RETURN, _MINUS, _POINT = b" :\n#\r-."
_ZERO, _TEN = np.uint8(48), np.uint64(10)
_POWERS = 10.0 ** np.arange(20)
_EXACT = np.uint64(2**53)  # integers up to this are floats
_SPLIT = 2.0**27 + 1
_u8 = np.uint64
_LONGEST_NAME = 8  # characters of ` i:` that are compared at once
_PLACES = 1024  # values of a row whose features are compared with those of the row before
_ZEROS, _NEWLINES = _u8(0x30 * 0x0101010101010101), _u8(0x0A * 0x0101010101010101)
_ONES, _HIGHS, _ABOVE_NINE = _u8(0x0101010101010101), _u8(0x8080808080808080), _u8(0x76 * 0x0101010101010101)
_SECOND, _TWO = _u8(0x8000), _u8(0xFFFF)  # the mark of the second character, and the first two characters
_PAIRS, _HUNDREDS, _UNITS = _u8(0x000000FF000000FF), _u8(100 + (1000000 << 32)), _u8(1 + (10000 << 32))
_TENS = _TEN ** np.arange(9, dtype=_u8)


def _load(bits, kind):
    """A function that reads the character, or the eight of them, at an offset from an address.

    An array as an argument would be counted as a reference, which takes as long as reading a number.
    """

    def load(typing, address, i):
        def build(context, builder, signature, values):
            place = builder.inttoptr(builder.add(*values), ir.IntType(bits).as_pointer())
            loaded = builder.load(place, align=1)
            return loaded if bits == 8 or sys.byteorder == "little" else builder.bswap(loaded)

        return kind(types.intp, types.intp), build

    return intrinsic(load)


_byte, _word = _load(8, types.uint8), _load(64, types.uint64)


@intrinsic
def _first(typing, marks):
    """The number of the first byte whose highest bit is set; 8 if none is."""

    def build(context, builder, signature, values):
        zeros = builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))
        return builder.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), build


@njit(nogil=True, cache=True)
def _quotient(mantissa, power):
    """Mantissa / power rounded once, NaN where it lies so close to the middle of two floats that it is not certain.

    The mantissa is the sum of two floats, and the remainder of the division of the first is exact [Dekker71].
    """
    high = np.float64(mantissa >> _u8(11)) * 2048.0
    low = np.float64(mantissa & _u8(2047))
    value = (high + low) / power
    a = _SPLIT * value
    a = a - (a - value)
    b = _SPLIT * power
    b = b - (b - power)
    product = value * power
    error = ((a * b - product) + a * (power - b) + (value - a) * b) + (value - a) * (power - b)
    rest = (((high - product) + low) - error) / power
    nearest = value + rest
    exponent = np.float64(nearest).view(np.uint64) >> _u8(52)
    half = np.uint64((exponent - _u8(53)) << _u8(52)).view(np.float64)  # of the gap above: that below may be half of it
    share = abs(rest - (nearest - value)) / half
    return nearest if share < 0.9999 and abs(share - 0.5) > 0.0001 else np.nan


@njit(nogil=True, cache=True)
def _marked(word):
    """Characters less that of zero, and marks of those that are not digits; the first mark is right."""
    word ^= _ZEROS
    return word, ((word + _ABOVE_NINE) | word) & _HIGHS


@njit(nogil=True, cache=True)
def _combined(word):
    """The number of eight digits."""
    word = word * _TEN + (word >> _u8(8))
    return ((word & _PAIRS) * _HUNDREDS + ((word >> _u8(16)) & _PAIRS) * _UNITS) >> _u8(32)


@njit(nogil=True, cache=True)
def _digits(text, i, value):
    """The value with the digits from i on appended, and where they end."""
    while True:
        word, marks = _marked(_word(text, i))
        n = int(_first(marks))  # type: ignore[call-arg]
        if n == 0:
            return value, i
        value = value * _TENS[n] + _combined(word << _u8(64 - 8 * n))
        i += n
        if n < 8:
            return value, i


@njit(nogil=True, cache=True)
def _ends(text, i):
    """True where a line ends."""
    return _byte(text, i) == _NEWLINE or (_byte(text, i) == _RETURN and _byte(text, i + 1) == _NEWLINE)


@njit(nogil=True, cache=True)
def _end(text, i):
    """The end of the line."""
    while True:
        other = _word(text, i) ^ _NEWLINES
        n = int(_first((other - _ONES) & ~other & _HIGHS))  # type: ignore[call-arg]
        i += n
        if n < 8:
            return i


@njit(nogil=True, cache=True)
def _number(text, i):
    """The number from i on, and where its token ends; NaN where `float` must read it, -1 for a control character."""
    word, marks = _marked(_word(text, i))
    if marks == _SECOND and _byte(text, i + 1) == _POINT and _byte(text, i + 8) == _SPACE:  # the most usual, 0.123456
        return np.float64(_combined((word & ~_TWO) | ((word & _u8(255)) << _u8(8)))) / 1e6, i + 8
    start = i
    negative = _byte(text, i) == _MINUS
    i += negative
    first = i
    mantissa, i = _digits(text, i, _u8(0))
    after = i + (_byte(text, i) == _POINT)  # without a point no digit follows
    mantissa, end = _digits(text, after, mantissa)
    power, digits, i = end - after, end - first - (after - i), end
    plain = 0 < digits < 20
    if _byte(text, i) != _SPACE:
        while _byte(text, i) != _SPACE and _byte(text, i) != _HASH and _byte(text, i) >= 32:
            plain = False
            i += 1
        if _byte(text, i) < 32 and not _ends(text, i):
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
def _given(text, i, n, names, features, values, odd, n_odd):
    """Write ` i:v i:v ...` from i on to `features` and `values` from n on; where that ends, -1 if it is not regular.

    `names` holds how ` i:` was written in the last row with as many values, since most rows have the same features: its
    characters, which bits of a word they are, their number, and i.
    """
    last, place = -1, -1
    while _byte(text, i) == _SPACE:
        place += 1
        known = place < len(names) and _word(text, i) & names[place, 1] == names[place, 0]
        if known:
            feature, start = int(names[place, 3]), i + int(names[place, 2])
        else:
            name, end = _digits(text, i + 1, _u8(0))
            if end == i + 1:
                return i, n, n_odd
            feature, start = int(name), end + 1
            if _byte(text, end) != _COLON or end - i > 9:
                return -1, n, n_odd
            if place < len(names):
                _remember(text, i, start - i, name, names[place])
        if feature <= last:
            return -1, n, n_odd
        value, i = _number(text, start)
        if value != value:
            n_odd = _note(odd, n_odd, n, start, i)
            if i <= start or n_odd < 0:
                return -1, n, n_odd
        features[n], values[n], last = feature, value, feature
        n += 1
    return i, n, n_odd


@njit(nogil=True, cache=True)
def _remember(text, i, length, feature, name):
    """Note how ` i:` is written; a long one is not found again."""
    short = length <= _LONGEST_NAME
    name[1] = ~_u8(0) >> _u8(64 - 8 * length) if short else _u8(0)
    name[0] = _word(text, i) & name[1] if short else _u8(1)
    name[2], name[3] = length, feature


@njit(nogil=True, cache=True)
def _id(text, i, longest):
    """Where the query id of ` qid:...` from i on starts and ends: both i without one, -1 if it is not regular."""
    start = i
    for letter in b" qid:":
        if _byte(text, i) != letter:
            return start, start
        i += 1
    start = i
    while _byte(text, i) != _SPACE and _byte(text, i) != _HASH and _byte(text, i) >= 32:
        i += 1
    return start, i if 0 < i - start <= longest else -1


@njit(nogil=True, cache=True)
def _equal(text, a, b, length):
    same = True
    for i in range(length):
        same &= _byte(text, a + i) == _byte(text, b + i)
    return same


@njit(nogil=True, cache=True)
def _comment(text, i, span):
    """Write where the comment is that follows blanks from i on; the end of the line, -1 if other text follows."""
    while _byte(text, i) == _SPACE:
        i += 1
    marked = _byte(text, i) == _HASH
    span[:] = i + marked
    i = _end(text, i)
    end = i - (_byte(text, i - 1) == _RETURN)
    if end > span[0]:
        span[1] = end
    return i if marked or span[1] == span[0] else -1


@njit(nogil=True, cache=True)
def counted(characters):
    """The numbers of newlines and colons."""
    lines = colons = 0
    for character in characters:
        lines += character == _NEWLINE
        colons += character == _COLON
    return lines, colons


@njit(nogil=True, cache=True)
def regular(characters, longest_id, y, qid, comment, line_of, counts, features, values, odd):
    """Parse whole lines and the eight newlines after them.

    Write labels, spans (m, 2) of query ids and comments, line numbers, and what lines hold. `qid` holds the start of
    each id and its length, which is negative where the id repeats that of the row before and zero without ids. `odd`
    gets the indices of numbers that are left to the caller, -1 - row of a label, and their spans. Returns the numbers
    of rows, values and odd numbers; -1 rows if a line is not regular.
    """
    text, names = np.intp(characters.ctypes.data), np.empty((_PLACES, 4), np.uint64)
    names[:, 0], names[:, 1] = 1, 0  # none is known
    i, line, m, n, n_odd = 0, -1, 0, 0, 0
    while i < len(characters) - 8:
        line += 1
        start = i
        if _byte(text, i) != _HASH and not _ends(text, i):
            y[m], i = _number(text, i)
            if y[m] != y[m]:
                n_odd = _note(odd, n_odd, -1 - m, start, i)
            first, i = _id(text, i, longest_id)
            length = i - first
            if i <= start or n_odd < 0 or (m > 0 and (length > 0) != (qid[0, 1] > 0)):
                return -1, n, n_odd
            same = m > 0 and abs(qid[m - 1, 1]) == length and _equal(text, first, qid[m - 1, 0], length)
            qid[m, 0], qid[m, 1] = first, -length if same else length
            i, after, n_odd = _given(text, i, n, names, features, values, odd, n_odd)
            i = -1 if i < 0 else _comment(text, i, comment[m])
            if i < 0:
                return -1, n, n_odd
            counts[m], line_of[m] = after - n, line
            n = after
            m += 1
        i = _end(text, i) + 1
    return m, n, n_odd


@njit(nogil=True, cache=True)
def spans_as_lines(characters, start, end, out):
    """Write some spans of the text one after the other, each with a newline after it."""
    place = 0
    for k in range(len(start)):
        for i in range(start[k], end[k]):
            out[place + i - start[k]] = characters[i]
        place += end[k] - start[k] + 1
        out[place - 1] = _NEWLINE
