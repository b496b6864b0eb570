"""Judgments as an immutable map from rows to grades; a changed copy shares nearly everything with the old one.

A history of ten thousand judgments is ten thousand maps. As dicts they would have fifty million entries; here a step
adds one path of a tree with 16 branches per node. A map also has a fingerprint of its content, updated with each
judgment, so that states can be compared without reading all their judgments.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

BITS = 4
ABSENT = object()
EMPTY: tuple[Any, ...] = (ABSENT,) * (1 << BITS)

Grade = float | None  # None removes a judgment


class Grades(Mapping[int, Grade]):
    """Row -> grade, in the order of the rows.

    Examples
    --------
    >>> before = Grades()
    >>> after = before.changed([(7, 3.0), (2, None)])
    >>> dict(after), dict(before)
    ({2: None, 7: 3.0}, {})
    >>> after == Grades().changed([(2, None), (7, 3.0)])
    True
    """

    __slots__ = ("_height", "_length", "_root", "mark")

    def __init__(self) -> None:
        self._root: tuple[Any, ...] = EMPTY
        self._height = 0  # of the tree: leaves hold 16 rows
        self._length = 0
        self.mark = 0  # 128-bit fingerprint of the content

    def changed(self, pairs: Iterable[tuple[int, Grade]]) -> Grades:
        """A map with these judgments added."""
        wanted = dict(pairs)
        made = Grades()
        made._root, made._height, made._length, made.mark = self._root, self._height, self._length, self.mark
        for row, grade in wanted.items():
            old = self._find(row)
            made._length += old is ABSENT
            made.mark ^= _mark(row, grade) if old is ABSENT else _mark(row, old) ^ _mark(row, grade)
        while wanted and max(wanted) >> (BITS * (made._height + 1)):
            made._root, made._height = (made._root, *EMPTY[1:]), made._height + 1
        made._root = _put(made._root, made._height, sorted(wanted.items(), key=lambda pair: pair[0]))
        return made

    def pairs(self) -> Iterator[tuple[int, Grade]]:
        """Rows and grades."""
        return _leaves(self._root, self._height, 0)

    def _find(self, row: int) -> Any:
        if not 0 <= row < 1 << (BITS * (self._height + 1)):
            return ABSENT
        node: Any = self._root
        for level in range(self._height, -1, -1):
            if node is ABSENT:
                return ABSENT
            node = node[(row >> (BITS * level)) % len(EMPTY)]
        return node

    def __getitem__(self, row: int) -> Grade:
        found = self._find(row)
        if found is ABSENT:
            raise KeyError(row)
        return found

    def __iter__(self) -> Iterator[int]:
        return (row for row, _ in self.pairs())

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Grades):
            return self.mark == other.mark and self._length == other._length
        return dict(self.pairs()) == other

    def __hash__(self) -> int:
        return hash(self.mark)

    def __repr__(self) -> str:
        return f"Grades({dict(self.pairs())})"


def _mark(row: int, grade: Grade) -> int:
    content = struct.pack("<q?d", row, grade is None, 0.0 if grade is None else grade)
    return int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "little")


def _put(node: Any, level: int, pairs: list[tuple[int, Grade]]) -> tuple[Any, ...]:
    """The node with pairs, sorted by row, added."""
    children = list(EMPTY if node is ABSENT else node)
    if level == 0:
        for row, grade in pairs:
            children[row % len(EMPTY)] = grade
        return tuple(children)
    for place, below in groupby(pairs, lambda pair: (pair[0] >> (BITS * level)) % len(EMPTY)):
        children[place] = _put(children[place], level - 1, list(below))
    return tuple(children)


def _leaves(node: tuple[Any, ...], level: int, start: int) -> Iterator[tuple[int, Grade]]:
    for place, child in enumerate(node):
        row = start + (place << (BITS * level))
        if child is ABSENT:
            continue
        if level == 0:
            yield row, child
        else:
            yield from _leaves(child, level - 1, row)
