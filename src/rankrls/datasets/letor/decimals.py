"""Read decimal numbers from bytes, many at a time, each as exactly the float that Python's float() returns.

Eight characters are one 64-bit word. A number is read from its end, a word at a time: the decimal point is removed, and
the digits are checked and combined by three multiplications, for all numbers of a block at once. A mantissa below 2^53
and a power of ten up to 10^22 are exact floats, so their quotient is correctly rounded [Clinger90]. Numbers of up to 19
digits are read the same way in 64-bit extended precision, if the machine has it, unless the result lies exactly between
two floats. Everything else (exponents, words, more digits) is left to the caller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

PADDING = 32  # bytes before the text, so that a word may end at any character

_u8 = np.uint64
_ONES, _HIGHS = _u8(0x0101010101010101), _u8(0x8080808080808080)
_ZEROS, _DOTS = _u8(0x30 * 0x0101010101010101), _u8(0x2E * 0x0101010101010101)
_ABOVE_NINE = _u8(0x76 * 0x0101010101010101)
_PAIRS = _u8(0x000000FF000000FF)
_HUNDREDS, _UNITS = _u8(100 + (1000000 << 32)), _u8(1 + (10000 << 32))
KEEP = np.array([(2**64 - 1) ^ (2 ** (8 * (8 - n)) - 1) for n in range(9)], dtype=_u8)  # the last n of 8 characters
_POWERS = 10 ** np.arange(20, dtype=_u8)
_FLOAT_POWERS = 10.0 ** np.arange(32)  # exact up to 10^22; larger ones only occur with too many digits
EXTENDED = np.finfo(np.longdouble).nmant == 63
_MOST_DIGITS = 19  # digits that fit in a 64-bit integer


def padded(text: bytes) -> np.ndarray:
    """The bytes of a text with room before and after; character i is at PADDING + i."""
    return np.frombuffer(b"".join((b"\n" * PADDING, text, b"\n" * 8)), dtype=np.uint8)


def words_ending(buffer: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The eight characters before each position, as little-endian words."""
    return np.ndarray(len(buffer) - 7, dtype="<u8", buffer=buffer, strides=(1,))[end - 8].astype(_u8, copy=False)


def integers(words: np.ndarray, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers in those characters of each word that `keep` selects, and which words are all digits.

    Characters that are not kept must be zero in the words, which are overwritten.
    """
    digits = words
    digits ^= keep & _ZEROS
    wrong = digits + _ABOVE_NINE
    wrong |= digits
    wrong &= _HIGHS
    return combined(digits, _HUNDREDS), wrong == 0


def combined(digits: np.ndarray, hundreds: np.uint64) -> np.ndarray:
    """The numbers that words of eight digits are; `hundreds` holds the weights of the first and third pair."""
    digits = digits * _u8(10) + (digits >> _u8(8))
    pairs = digits & _PAIRS
    pairs *= hundreds
    digits >>= _u8(16)
    digits &= _PAIRS
    digits *= _UNITS
    digits += pairs
    digits >>= _u8(32)
    return digits


def decimals(
    buffer: np.ndarray, start: np.ndarray, end: np.ndarray, *, extended: bool = EXTENDED
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers between the positions `start` and `end`, and which of them could not be read.

    With `extended` precision, numbers with more digits can be read.
    """
    negative = buffer[start] == ord("-")
    signed = negative.any()
    if signed:
        start = start + negative
    length = end - start
    longest = int(length.max(initial=0))
    mantissa, dotted, n_fraction, good = _word(buffer, end, np.minimum(length, 8) if longest > 8 else length)
    n_digits = length - dotted
    for done in range(8, min(longest, 24), 8):
        longer = length > done
        rest: Any = slice(None) if longer.all() else np.flatnonzero(longer)
        part, again, fraction, fine = _word(buffer, end[rest] - done, np.minimum(length[rest] - done, 8))
        before = done - dotted[rest]  # digits so far; they come after the point if the point is in this word
        n_fraction[rest] = np.where(again, fraction + before.astype(np.uint8), n_fraction[rest])
        good[rest] &= fine & ~(again & dotted[rest])
        mantissa[rest] += part * _POWERS[np.minimum(before, 19)]
        dotted[rest] |= again
        n_digits[rest] -= again
    good &= (n_digits > 0) & (n_digits <= _MOST_DIGITS)
    values = mantissa.view(np.int64).astype(np.float64)
    values /= _FLOAT_POWERS[n_fraction]
    if longest > 16:
        good &= _extend(values, mantissa, n_fraction, good, extended)
    if signed:
        np.negative(values, out=values, where=negative)
    return values, ~good


def _word(buffer: np.ndarray, end: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, ...]:
    """Value, presence of a point, digits after it and validity of up to 8 characters that end at `end`."""
    keep = KEEP[length]
    words = words_ending(buffer, end)
    words &= keep
    point = words ^ _DOTS
    different = ~point
    point -= _ONES
    point &= different
    point &= _HIGHS  # marks points, and perhaps characters after the first one
    np.negative(point, out=different)
    point &= different  # only the lowest mark is certain: the first point
    dotted = point != 0
    after = point + point
    after -= _u8(1)
    np.invert(after, out=after)  # the characters after the point; none without one
    n_fraction = np.bitwise_count(after) >> 3
    point >>= _u8(7)
    point -= _u8(1)
    point &= words  # the characters before the point
    shift = dotted * _u8(8)
    point <<= shift
    words &= after
    words |= point
    keep <<= shift
    value, good = integers(words, keep)
    return value, dotted, n_fraction, good


def _extend(
    values: np.ndarray, mantissa: np.ndarray, n_fraction: np.ndarray, good: np.ndarray, extended: bool
) -> np.ndarray:
    """Correct the values of mantissas too long for a float; returns which values are now right."""
    large = np.flatnonzero((mantissa > _u8(2**53)) & good)
    right = np.ones(len(values), dtype=bool)
    if not extended:
        right[large] = False
        return right
    exact = mantissa[large].astype(np.longdouble) / _FLOAT_POWERS[n_fraction[large]].astype(np.longdouble)
    values[large] = exact.astype(np.float64)
    # rounding twice is wrong only if the first rounding landed exactly between two floats
    gap = np.abs(exact - values[large].astype(np.longdouble))
    right[large] = gap != np.spacing(values[large]).astype(np.longdouble) / 2
    return right
