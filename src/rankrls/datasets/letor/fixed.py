"""Values that are all written with one digit and six decimals, as in most LETOR files: they stand at fixed places.

The text of the values of a row is as long in every row, so rows are copied to a matrix and columns are read from it:
no separator has to be searched for.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from .decimals import KEEP, PADDING, combined, words_ending

SIX_DECIMALS = b"0.000000"
_ZERO, _SPACE = b"0 "
_QID = np.uint64(int.from_bytes(b" qid:", "little") << 24)  # the last five of eight characters
_LEADING = np.uint64(100 + (100000 << 32))  # weights of pairs of digits if the second character is a point


def values_at_fixed_places(
    buffer: np.ndarray, start: np.ndarray, end: np.ndarray, features: list[int], with_qid: bool
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None, np.ndarray] | None:
    """The ends of labels, where query ids start and end, and the values (m, k) of lines from `start` to `end`.

    None unless every line has these features, written that way, after a label and, `with_qid`, a query id.
    """
    names = [b" %d:" % feature for feature in features]
    pattern = np.frombuffer(b"".join(name + SIX_DECIMALS for name in names), np.uint8)
    first = end - len(pattern)
    label = _labels(buffer, start, first, with_qid)
    if label is None:
        return None
    digits = _pieces(buffer, first, len(pattern))
    digits ^= pattern
    place = np.cumsum([len(name) + len(SIX_DECIMALS) for name in names]) - len(SIX_DECIMALS)
    most = np.zeros(len(pattern), np.uint8)
    most[(place[:, None] + [0, 2, 3, 4, 5, 6, 7]).ravel()] = 9
    if not np.all(digits <= most):
        return None
    numbers = combined(_words(digits, place, names), _LEADING).view(np.int64).astype(np.float64)
    numbers /= 1e6
    return label, (label + len(b" qid:"), first) if with_qid else None, numbers


def _labels(buffer: np.ndarray, start: np.ndarray, stop: np.ndarray, with_qid: bool) -> np.ndarray | None:
    """Where labels end if a label, and perhaps a query id, is all there is from `start` to `stop`; else None."""
    length = stop - start
    longest = int(length.max())
    if length.min() <= 0 or longest > PADDING:
        return None
    before = stop - longest
    spaces = _pieces(buffer, before, longest) == _SPACE
    spaces &= np.arange(longest) >= (longest - length)[:, None]
    if np.any(np.count_nonzero(spaces, axis=1) != with_qid):
        return None
    if not with_qid:
        return stop
    label = before + np.argmax(spaces, axis=1)
    after = label + len(b" qid:")
    named = (words_ending(buffer, after) & KEEP[5]) == _QID
    return label if np.all(named & (after < stop) & (label > start)) else None


def _pieces(buffer: np.ndarray, start: np.ndarray, length: int) -> np.ndarray:
    """(m, length) copies of the characters from each position on."""
    return np.ndarray((len(buffer) - length + 1, length), np.uint8, buffer, strides=(1, 1))[start]


def _words(digits: np.ndarray, place: np.ndarray, names: list[bytes]) -> np.ndarray:
    """(m, k) the eight characters of each value; names of the same length follow each other in equal steps."""
    m, length = digits.shape
    words, j = np.empty((m, len(place)), np.uint64), 0
    for width, group in groupby(map(len, names)):
        n = len(list(group))
        step = width + len(SIX_DECIMALS)
        words[:, j : j + n] = np.ndarray((m, n), "<u8", digits, offset=place[j], strides=(length, step))
        j += n
    return words
