"""A table of named columns without pandas or the like, as the command line reads it from CSV and Parquet files.

Cells of a CSV file are text. The kind of a column is that of training, or else decided from all of it: numbers, true
and false, ISO 8601 dates, or text. An empty cell is a missing value.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .reading import BOOLEAN, DATE, NUMBER

NOTHING = {"", "null", "na", "none", "nan"}
CODE = re.compile(r"0\d")  # 007 is a code, not a number
TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class PlainTable:
    """Columns of objects by name; None is a missing value."""

    cells: dict[str, np.ndarray]
    written: bool = False  # whether cells are raw text from a file, not parsed yet

    @classmethod
    def of(cls, columns: dict[str, Sequence[Any]], *, written: bool) -> PlainTable:
        return cls({name: _objects(values) for name, values in columns.items()}, written)

    @classmethod
    def join(cls, parts: Sequence[PlainTable]) -> PlainTable:
        """The rows of several tables one after the other."""
        cells = {name: np.concatenate([part.cells[name] for part in parts]) for name in parts[0].cells}
        return cls(cells, parts[0].written)

    @property
    def column_names(self) -> list[str]:
        return list(self.cells)

    @property
    def shape(self) -> tuple[int, int]:
        return len(next(iter(self.cells.values()), ())), len(self.cells)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """A column by name, or some rows."""
        if isinstance(key, str):
            return self.cells[key]
        return PlainTable({name: values[key] for name, values in self.cells.items()}, self.written)

    def select(self, names: Sequence[str]) -> PlainTable:
        """Some of the columns."""
        return PlainTable({name: self.cells[name] for name in names}, self.written)

    def read(self, kinds: dict[str, str] | None = None) -> PlainTable:
        """The table with text parsed as the given kinds, or as the kind that fits the whole column."""
        if not self.written:
            return self
        return PlainTable({name: _read(name, v, (kinds or {}).get(name)) for name, v in self.cells.items()})


def _objects(values: Sequence[Any]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    found[:] = list(values)
    return found


def _read(name: str, cells: np.ndarray, kind: str | None) -> np.ndarray:
    texts = [cell.strip() for cell in cells.tolist()]
    for one, parse in _PARSERS.items():
        if kind in (None, one):
            values = [_parsed(text, parse) for text in texts]
            wrong = next((i for i, value in enumerate(values) if value is _UNREADABLE), None)
            if wrong is None and (kind or any(value is not None for value in values)):
                return _objects(values)
            if kind and wrong is not None:
                raise ValueError(
                    f"column {name!r} held {kind}s in training, but {texts[wrong]!r} in row {wrong + 1} is not a {kind}"
                )
    return _objects([text or None for text in texts])


def _parsed(text: str, parse: Callable[[str], Any]) -> Any:
    if text.lower() in NOTHING:
        return None
    try:
        return parse(text)
    except (ValueError, KeyError):
        return _UNREADABLE


_UNREADABLE = object()
_PARSERS: dict[str, Callable[[str], Any]] = {
    BOOLEAN: lambda text: TRUTHS[text.lower()],
    NUMBER: lambda text: float("no" if CODE.match(text) else text),
    DATE: datetime.datetime.fromisoformat,
}
