"""Parse lines `label qid:Q i:v i:v ... # comment`: a careful parser for any line, and a fast one for regular blocks.

The fast parser finds all separators of a block at once and reads all numbers together (see `decimals`), or is compiled
code (the extra `fast`). It gives up on anything unusual, and the careful parser then reads the block line by line; all
return the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .decimals import KEEP, PADDING, decimals, integers, padded, words_ending
from .fixed import values_at_fixed_places

TABLE = "; LETOR text looks like 2 qid:7 1:0.5 2:1.3: is this a table?"  # for lines without feature:value
NULL = b"NULL"  # how LETOR writes a missing value
AFTER = b"\n" * 8  # after a text, so that a word of eight characters may start at any of them
_SPACE, _COLON, _NEWLINE, _HASH, _RETURN = b" :\n#\r"
_QID = int.from_bytes(b" qid", "little") << 32  # the last four of eight characters
_MOST_BLANKS = 4  # blanks after the last value that the fast parser accepts
LONGEST_ID = 1000  # most characters of a query id
_ODD = 8  # compiled code leaves at most one number in eight to `float`
_WIDEST = 64  # longer query ids are stored as objects, not in a fixed-width array


@dataclass(frozen=True)
class ParsedRows:
    """Rows of a block as written: the values and their feature numbers."""

    y: np.ndarray  # (m,)
    qid: np.ndarray | None  # (m,) text
    counts: np.ndarray | None  # (m,) values of each row; None when every row has the same features
    features: np.ndarray  # (values,), or (k,) when every row has the same
    values: np.ndarray  # (values,), or (m, k)
    comments: list[str] | None
    lines: np.ndarray  # (m,) line numbers
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.y)

    def part(self, start: int, stop: int) -> ParsedRows:
        """The rows from `start` to before `stop`; lines skipped before them count with the first part."""
        rows = slice(start, stop)
        counts, features, values = self.counts, self.features, self.values
        if counts is None:
            values = values[rows]
        else:
            ends = np.concatenate([[0], np.cumsum(counts)])
            given = slice(ends[start], ends[stop])
            counts, features, values = counts[rows], features[given], values[given]
        qid = None if self.qid is None else self.qid[rows]
        comments = None if self.comments is None else self.comments[rows]
        return ParsedRows(
            self.y[rows], qid, counts, features, values, comments, self.lines[rows], 0 if start else self.skipped
        )


class LineError(ValueError):
    """A line that cannot be read."""


def parse(
    text: bytes, first_line: int, *, skip: bool = False, with_qid: bool | None = None, compiled: bool = False
) -> ParsedRows:
    """The rows of a block of whole lines; malformed lines are left out if `skip`, else raise `LineError`.

    `with_qid` tells whether lines must (True) or must not (False) have a query id; None: as the first line has.
    With `compiled`, compiled code reads regular lines.
    """
    regular = parse_compiled if compiled else parse_regular
    rows = regular(text, first_line)
    if rows is None:
        rows = regular(tidied(text), first_line)
    if rows is not None and with_qid in (None, rows.qid is not None):
        return rows
    return parse_lines(text, first_line, skip=skip, with_qid=with_qid)


def tidied(text: bytes) -> bytes:
    """The text with runs of blanks replaced by single spaces."""
    parts = (line.partition(b"#") for line in text.split(b"\n"))
    return b"\n".join(b" ".join(body.split()) + mark + comment for body, mark, comment in parts)


# ---------------------------------------------------------------- any line


def number(token: bytes) -> float:
    """A number as float() reads it, except with underscores or blanks; NaN for NULL."""
    if token == NULL:
        return np.nan
    if b"_" in token or b" " in token:
        raise ValueError("float() would take it")
    return float(token)


def parse_lines(text: bytes, first_line: int, *, skip: bool = False, with_qid: bool | None = None) -> ParsedRows:
    """The rows of a block, line by line."""
    found: list[Any] = []
    skipped = 0
    for line_number, line in enumerate(text.split(b"\n"), first_line):
        try:
            row = parse_line(line)
            if row is None:
                continue
            with_qid = row[1] is not None if with_qid is None else with_qid
            if with_qid != (row[1] is not None):
                raise LineError(
                    "no qid, unlike the lines before it" if with_qid else f"a qid, {row[1]!r}, unlike before"
                )
        except LineError as error:
            if not skip:
                raise LineError(f"line {line_number}: {error}") from None
            skipped += 1
            continue
        found.append((line_number, *row))
    lines, y, qid, features, values, comments = zip(*found, strict=True) if found else ([],) * 6
    return ParsedRows(
        np.array(y, dtype=np.float64),
        _ids(qid) if with_qid else None,
        np.array([len(row) for row in features], dtype=np.int64),
        np.array([i for row in features for i in row], dtype=np.int64),
        np.array([v for row in values for v in row], dtype=np.float64),
        [comment or "" for comment in comments] if any(comment is not None for comment in comments) else None,
        np.array(lines, dtype=np.int64),
        skipped,
    )


def parse_line(line: bytes) -> tuple[float, str | None, list[int], list[float], str | None] | None:
    """Label, query id, features, values and comment of a line; None if there is only a comment."""
    body, mark, comment = line.removesuffix(b"\r").partition(b"#")
    tokens = body.split()
    if not tokens:
        return None
    try:
        label = number(tokens[0])
    except ValueError:
        raise LineError(f"the label {_shown(tokens[0])} is not a number{'' if b':' in body else TABLE}") from None
    qid = None
    if len(tokens) > 1 and tokens[1].startswith(b"qid:"):
        token = tokens.pop(1)
        qid = decoded(token[4:])
        if not qid or "\0" in qid:
            raise LineError(f"the query id of {_shown(token)} is empty or binary")
        if len(qid) > LONGEST_ID:
            raise LineError(f"the query id {_shown(token)} has {len(qid):,} characters, more than {LONGEST_ID:,}")
    given: dict[int, float] = {}
    for token in tokens[1:]:
        index, colon, value = token.partition(b":")
        if not colon or not index.isdigit() or len(index) > 8:
            raise LineError(f"{_shown(token)} is not feature:value with a feature number below 100,000,000")
        try:
            known, given[int(index)] = int(index) in given, number(value)
        except ValueError:
            raise LineError(f"the value of {_shown(token)} is neither a number nor NULL") from None
        if known:
            raise LineError(f"feature {int(index)} is given twice, again as {_shown(token)}")
    features = sorted(given)
    return label, qid, features, [given[i] for i in features], decoded(comment) if mark else None


def _ids(texts: Sequence[str]) -> np.ndarray:
    """(m,) query ids; as objects if some are long, since a fixed-width array would make every row as long."""
    return np.array(texts, dtype=str if max(map(len, texts), default=0) <= _WIDEST else object)


def decoded(text: bytes) -> str:
    """Text as UTF-8; bytes that are not UTF-8 survive a round trip."""
    return text.decode("utf-8", "surrogateescape")


def _shown(token: bytes) -> str:
    text = token[:40].decode("utf-8", "backslashreplace")
    return repr(text if len(token) <= 40 else text + "...")


# ---------------------------------------------------------------- regular blocks


def parse_regular(text: bytes, first_line: int) -> ParsedRows | None:
    """The rows of a block with single spaces, ascending features and no malformed line; else None."""
    buffer = padded(text if text.endswith(b"\n") else text + b"\n")
    raw = buffer.tobytes()
    lines = _Lines.of(buffer)
    tokens = None if lines is None else _Tokens.alike(buffer, raw, lines) or _Tokens.of(buffer, lines)
    if lines is None or tokens is None:
        return None
    y = _numbers(buffer, raw, lines.start, tokens.label_end)
    values = _numbers(buffer, raw, tokens.start, tokens.end) if tokens.values is None else tokens.values
    if y is None or values is None:
        return None
    if tokens.counts is None:
        values = values.reshape(len(y), -1)
    qid = None if tokens.qid is None else _repeated(buffer, raw, *tokens.qid)
    if tokens.qid is not None and qid is None:
        return None
    comments = None
    if np.any(lines.comment < lines.stop):
        comments = _texts(raw, np.minimum(lines.comment + 1, lines.stop), lines.stop)
    return ParsedRows(y, qid, tokens.counts, tokens.features, values, comments, first_line + lines.number)


def _numbers(buffer: np.ndarray, raw: bytes, start: np.ndarray, end: np.ndarray) -> np.ndarray | None:
    """The numbers of a block, with unusual ones read one by one; None if one cannot be read."""
    values, odd = decimals(buffer, start, end)
    where = np.flatnonzero(odd)
    try:
        values[where] = [number(raw[a:b]) for a, b in zip(start[where].tolist(), end[where].tolist(), strict=True)]
    except ValueError:
        return None
    return values


def parse_compiled(text: bytes, first_line: int) -> ParsedRows | None:
    """The same in one compiled pass, which stops at the first line that is not regular, or if many numbers are not."""
    from . import compiled

    text = text if text.endswith(AFTER) else text + AFTER
    buffer = np.frombuffer(text, dtype=np.uint8)
    m, most = compiled.counted(buffer)
    y, counts, line_of = np.empty(m), np.empty(m, np.int64), np.empty(m, np.int64)
    qid, comment = np.empty((m, 2), np.int64), np.empty((m, 2), np.int64)
    features, values = np.empty(most, np.int64), np.empty(most)
    odd = np.empty((1 + (m + most) // _ODD, 3), np.int64)
    m, n, n_odd = compiled.regular(buffer, LONGEST_ID, y, qid, comment, line_of, counts, features, values, odd)
    if m < 1:
        return None
    try:
        for i, a, b in odd[:n_odd].tolist():
            (values if i >= 0 else y)[i if i >= 0 else -1 - i] = number(text[a:b])
    except ValueError:
        return None
    y, counts, features, values = y[:m], counts[:m], features[:n], values[:n]
    k = int(counts[0])
    alike = n == m * k > 0 and np.all(counts == k) and np.all(features.reshape(m, k) == features[:k])
    start, length = qid[:m].T
    first = np.flatnonzero(length > 0)
    ids = np.repeat(_ids(_spans(buffer, start[first], start[first] + length[first])), np.diff(first, append=m))
    marked = np.any(buffer[comment[:m, 0] - 1] == _HASH)
    return ParsedRows(
        y,
        ids if len(first) else None,
        None if alike else counts,
        features[:k].copy() if alike else features,
        values.reshape(m, k) if alike else values,
        _spans(buffer, *comment[:m].T) if marked else None,
        first_line + line_of[:m],
    )


def _texts(raw: bytes, start: np.ndarray, end: np.ndarray) -> list[str]:
    spans = zip(start.tolist(), end.tolist(), strict=True)
    if not raw.isascii():
        return [decoded(raw[a:b]) for a, b in spans]
    text = raw.decode("ascii")  # one byte is one character
    return [text[a:b] for a, b in spans]


def _spans(buffer: np.ndarray, start: np.ndarray, end: np.ndarray) -> list[str]:
    """The same by compiled code, for text without newlines."""
    from . import compiled

    out = np.empty(int((end - start).sum()) + len(start), np.uint8)
    compiled.spans_as_lines(buffer, start, end, out)
    return decoded(out.tobytes()).split("\n")[:-1]


def _repeated(buffer: np.ndarray, raw: bytes, start: np.ndarray, end: np.ndarray) -> np.ndarray | None:
    """Query ids, reading each run of equal ids once; None if one is too long or contains a space."""
    length = end - start
    if length.max(initial=0) > LONGEST_ID:
        return None
    words = words_ending(buffer, end) & KEEP[np.minimum(length, 8)]
    new = np.ones(len(start), dtype=bool)
    new[1:] = (words[1:] != words[:-1]) | (length[1:] != length[:-1]) | (length[1:] > 8)
    first = np.flatnonzero(new)
    texts = _texts(raw, start[first], end[first])
    if any(" " in text for text in texts):
        return None
    return np.repeat(_ids(texts), np.diff(first, append=len(start)))


@dataclass(frozen=True)
class _Lines:
    """Lines with more than a comment: where they start, where their values end, and where they end."""

    start: np.ndarray
    end: np.ndarray  # after the last value
    comment: np.ndarray  # the mark of the comment, or `stop`
    stop: np.ndarray  # after the comment
    number: np.ndarray  # number of lines before it

    @classmethod
    def of(cls, buffer: np.ndarray) -> _Lines | None:
        """The lines of a block; None if there are control characters, or more than a few blanks at the end."""
        inside = buffer[PADDING:-8]
        newline = np.flatnonzero(inside == _NEWLINE) + PADDING
        start = np.append(PADDING, newline[:-1] + 1)
        returned = (buffer[newline - 1] == _RETURN) & (newline > start)
        if np.count_nonzero(inside < _SPACE) != len(newline) + np.count_nonzero(returned):
            return None
        stop = newline - returned
        hashes = np.flatnonzero(inside == _HASH) + PADDING
        comment = np.minimum(np.append(hashes, len(buffer))[np.searchsorted(hashes, start)], stop)
        end = comment
        for _ in range(_MOST_BLANKS):
            end = end - ((buffer[end - 1] == _SPACE) & (end > start))
        kept = np.flatnonzero(end > start)
        if len(kept) == 0 or np.any(buffer[end[kept] - 1] == _SPACE) or np.any(buffer[start[kept]] == _SPACE):
            return None
        return cls(start[kept], end[kept], comment[kept], stop[kept], kept)


@dataclass(frozen=True)
class _Tokens:
    """Positions of the label, query id and values of all lines, and the feature of each value."""

    label_end: np.ndarray  # (m,)
    qid: tuple[np.ndarray, np.ndarray] | None  # (m,), (m,) from and to
    start: np.ndarray  # of the values, line by line; not used if they have been read
    end: np.ndarray
    counts: np.ndarray | None  # (m,) values of each line; None when all lines have the same features
    features: np.ndarray  # (values,), or those of one line when all have the same
    values: np.ndarray | None = None  # if they have been read

    @classmethod
    def alike(cls, buffer: np.ndarray, raw: bytes, lines: _Lines) -> _Tokens | None:
        """For lines that all have the features of the first: ` i` precedes each colon, so no search for spaces."""
        try:
            first = parse_line(raw[lines.start[0] : lines.end[0]])
        except LineError:
            return None
        if first is None or not first[2] or first[2][-1] >= 10**7:
            return None
        found = values_at_fixed_places(buffer, lines.start, lines.end, first[2], first[1] is not None)
        if found is not None:
            label, qid, values = found
            return cls(label, qid, label, label, None, np.array(first[2]), values)
        names = [b" qid"] * (first[1] is not None) + [b" %d" % feature for feature in first[2]]
        k = len(names)
        width = np.array([len(name) for name in names])
        expected = np.array([int.from_bytes(name.rjust(8, b"\0"), "little") for name in names], dtype=np.uint64)
        colon = np.flatnonzero(buffer == _COLON)
        before = np.searchsorted(colon, lines.start)
        if np.any(np.searchsorted(colon, lines.end) - before != k):
            return None
        colon = colon[_ranges(before, np.full(len(before), k))]
        words = words_ending(buffer, colon).reshape(-1, k)
        words &= KEEP[width]
        if np.any(words != expected):
            return None
        space = colon.reshape(-1, k) - width
        start, end = colon.reshape(-1, k) + 1, np.column_stack([space[:, 1:], lines.end])
        qid = None
        if first[1] is not None:
            qid, start, end = (start[:, 0], end[:, 0]), start[:, 1:], end[:, 1:]
            if np.any(qid[0] >= qid[1]):
                return None
        if np.any(space[:, 0] <= lines.start) or np.any(start > end):
            return None
        return cls(space[:, 0], qid, start.ravel(), end.ravel(), None, np.array(first[2]))

    @classmethod
    def of(cls, buffer: np.ndarray, lines: _Lines) -> _Tokens | None:
        """For any lines; None unless every space has one colon, features ascend, and all lines or none have an id."""
        space, colon = np.flatnonzero(buffer == _SPACE), np.flatnonzero(buffer == _COLON)
        first_space, first_colon = np.searchsorted(space, lines.start), np.searchsorted(colon, lines.start)
        counts = np.searchsorted(space, lines.end) - first_space
        if np.any(np.searchsorted(colon, lines.end) - first_colon != counts):
            return None
        space, colon = np.append(space, len(buffer) - 1), np.append(colon, len(buffer) - 1)
        after_label, named_end = space[first_space], colon[first_colon]
        named = (words_ending(buffer, named_end) & KEEP[4]) == np.uint64(_QID)
        named &= (named_end - after_label == 4) & (counts > 0)
        label_end = np.where(counts > 0, after_label, lines.end)
        qid = None
        if named.all():
            qid = named_end + 1, np.where(counts > 1, space[first_space + 1], lines.end)
            first_space, first_colon, counts = first_space + 1, first_colon + 1, counts - 1
        if named.any() and (qid is None or np.any(qid[0] >= qid[1])):
            return None
        space, colon = space[_ranges(first_space, counts)], colon[_ranges(first_colon, counts)]
        end, some = np.append(space, 0)[1:], counts > 0
        end[np.cumsum(counts)[some] - 1] = lines.end[some]
        if np.any(space >= colon) or np.any(colon >= end):
            return None
        features = _features(buffer, space, colon, counts)
        return None if features is None else cls(label_end, qid, colon + 1, end, counts, features)


def _features(buffer: np.ndarray, space: np.ndarray, colon: np.ndarray, counts: np.ndarray) -> np.ndarray | None:
    """The numbers between spaces and colons; None unless they ascend in every line."""
    length = colon - space - 1
    if np.any(length > 8) or np.any(length == 0):
        return None
    keep = KEEP[length]
    found, good = integers(words_ending(buffer, colon) & keep, keep)
    features = found.astype(np.int64)
    rises = np.append(np.diff(features) > 0, True)
    rises[np.cumsum(counts)[counts > 0] - 1] = True  # the last of a line
    return features if good.all() and rises.all() else None


def _ranges(start: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers from start[i] to start[i] + counts[i] - 1, for each i in turn."""
    if np.all(counts == counts[0]):
        return (start[:, None] + np.arange(counts[0])).ravel()
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(start - before, counts)
