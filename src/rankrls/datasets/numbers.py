"""Decimal numbers read from bytes, many at a time, each exactly the float that Python's float() gives.

Eight characters are one 64-bit word. A number is read from its end, a word at a time: the decimal point is taken out,
the digits are checked and combined by three multiplications, for all numbers of a block at once. A mantissa below
2^53 and a power of ten up to 10^22 are exact floats, so that their quotient is the correctly rounded one [Clinger90].
Numbers with up to 19 digits take the same way in 64-bit extended precision, where the machine has it, unless that
lands just between two floats. Whatever is left (exponents, words, more digits) is told to the caller.
"""

from __future__ import annotations

import numpy as np

PADDING = 32  # bytes before the text, so that a word may end at any character of it

_u8 = np.uint64
_ONES, _HIGHS = _u8(0x0101010101010101), _u8(0x8080808080808080)
_ZEROS, _DOTS = _u8(0x30 * 0x0101010101010101), _u8(0x2E * 0x0101010101010101)
_ABOVE_NINE = _u8(0x76 * 0x0101010101010101)
_PAIRS = _u8(0x000000FF000000FF)
_HUNDREDS, _UNITS = _u8(100 + (1000000 << 32)), _u8(1 + (10000 << 32))
KEEP = np.array([(2**64 - 1) ^ (2 ** (8 * (8 - n)) - 1) for n in range(9)], dtype=_u8)  # the last n of 8 characters
_POWERS = 10 ** np.arange(20, dtype=_u8)
_FLOAT_POWERS = 10.0 ** np.arange(32)  # exact up to 10^22; larger ones belong to numbers of too many digits
_EXTENDED = np.finfo(np.longdouble).nmant == 63
_MOST_DIGITS = 19  # that a 64-bit integer holds


def padded(text: bytes) -> np.ndarray:
    """The bytes of a text with room before and after it; character i is at PADDING + i."""
    return np.frombuffer(b"".join((b"\n" * PADDING, text, b"\n" * 8)), dtype=np.uint8)


def words_ending(buffer: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The eight characters before each position, as little-endian words."""
    return np.ndarray(len(buffer) - 7, dtype="<u8", buffer=buffer, strides=(1,))[end - 8].astype(_u8, copy=False)


def integers(words: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers written by the last `length` characters of each word, and which of them are digits throughout."""
    digits = words ^ (_ZEROS & KEEP[length])
    good = (((digits + _ABOVE_NINE) | digits) & _HIGHS) == 0
    digits = digits * _u8(10) + (digits >> _u8(8))
    digits = ((digits & _PAIRS) * _HUNDREDS + ((digits >> _u8(16)) & _PAIRS) * _UNITS) >> _u8(32)
    return digits, good


def decimals(buffer: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers between the positions `start` and `end`, and which of them could not be read this way."""
    negative = buffer[start] == ord("-")
    if negative.any():
        start = start + negative
    length = end - start
    mantissa, n_digits, n_fraction, good = _word(buffer, end, np.minimum(length, 8))
    longest = int(length.max(initial=0))
    for done in range(8, min(longest, 24), 8):
        rest = np.flatnonzero(length > done)
        part, more, fraction, fine = _word(buffer, end[rest] - done, np.minimum(length[rest] - done, 8))
        before = n_digits[rest]
        # digits so far come after the point when it is in this word
        n_fraction[rest] = np.where(fraction >= 0, fraction + before, n_fraction[rest])
        good[rest] &= fine & ((fraction < 0) | (n_digits[rest] == done))
        mantissa[rest] += part * _POWERS[np.minimum(before, 19)]
        n_digits[rest] = before + more
    good &= (n_digits > 0) & (n_digits <= _MOST_DIGITS)
    n_fraction = np.maximum(n_fraction, 0)
    values = mantissa.astype(np.float64) / _FLOAT_POWERS[n_fraction]
    if longest > 16:
        good &= _extend(values, mantissa, n_fraction, good)
    if negative.any():
        np.negative(values, out=values, where=negative)
    return values, ~good


def _word(buffer: np.ndarray, end: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, ...]:
    """Value, number of digits, digits after the point (-1 without one) and validity of up to 8 characters."""
    words = words_ending(buffer, end) & KEEP[length]
    different = words ^ _DOTS
    point = (different - _ONES) & ~different & _HIGHS
    point &= ~point + _u8(1)  # the lowest mark: the first point, exactly
    dotted = point != 0
    after = words & ~((point << _u8(1)) - _u8(1))
    before = words & ((point >> _u8(7)) - _u8(1))
    n_digits = length - dotted
    value, good = integers(after | (before << (dotted * _u8(8))), n_digits)
    n_fraction = np.where(dotted, 7 - (np.bitwise_count(point - _u8(1)).astype(np.int64) >> 3), -1)
    return value, n_digits, n_fraction, good


def _extend(values: np.ndarray, mantissa: np.ndarray, n_fraction: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Correct the values of mantissas that a float does not hold; which values are right in the end."""
    large = np.flatnonzero((mantissa > _u8(2**53)) & good)
    right = np.ones(len(values), dtype=bool)
    if not len(large):
        return right
    if not _EXTENDED:
        right[large] = False
        return right
    exact = mantissa[large].astype(np.longdouble) / _FLOAT_POWERS[n_fraction[large]].astype(np.longdouble)
    values[large] = exact.astype(np.float64)
    # rounding twice errs only from a number that the first rounding put right between two floats
    gap = np.abs(exact - values[large].astype(np.longdouble))
    right[large] = gap != np.spacing(values[large]).astype(np.longdouble) / 2
    return right
