"""A click log: how often each document of a query was shown at a position, and clicked there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..system import frames

USUAL = {  # other common names of columns, tried if the expected one is missing
    "query": ("qid", "query_id"),
    "document": ("docid", "doc_id", "document_id"),
    "position": ("rank",),
    "clicked": ("clicks", "click"),
    "impressions": ("shown", "views"),
}


@dataclass(frozen=True)
class ClickLog:
    """Impressions and clicks, one row per (query, document, position); `ClickLog.of` reads them from a table.

    Attributes
    ----------
    query, document : ndarray of shape (n,)
        Ids.
    position : ndarray of int, shape (n,)
        Where the document was shown, 1 for the top.
    clicks, impressions : ndarray of shape (n,)
        How often it was clicked and shown there.

    Examples
    --------
    >>> import pandas as pd
    >>> from rankrls.clicks import ClickLog
    >>> table = pd.DataFrame({"query": ["q", "q", "q"], "document": ["a", "b", "a"], "position": [1, 2, 1],
    ...                       "clicked": [True, False, False]})
    >>> ClickLog.of(table)
    ClickLog of 2 rows: 1 query, 2 documents, 3 impressions, 1 click, positions 1 to 2
    """

    query: np.ndarray
    document: np.ndarray
    position: np.ndarray
    clicks: np.ndarray
    impressions: np.ndarray

    @classmethod
    def of(
        cls,
        table: object,
        *,
        query: str = "query",
        document: str = "document",
        position: str = "position",
        clicked: str = "clicked",
        impressions: str = "impressions",
    ) -> ClickLog:
        """Read a log from a table of any library; rows of the same document and position are added up.

        Parameters
        ----------
        table : data frame, dict of columns or list of dicts
            One row per impression, or per document and position with counts.
        query, document, position, clicked, impressions : str
            Names of the columns; if one is missing, other common names (qid, docid, rank, clicks, views) are tried.
            `clicked` is True or False, or a count; without a column of impressions each row is one impression.

        Returns
        -------
        log : ClickLog
        """
        columns, have = _columns(table)
        query, document, position, clicked, impressions = (
            _find_column(name, have) for name in (query, document, position, clicked, impressions)
        )
        if position not in have:
            raise ValueError(
                f"the log has no column {position!r}, so it does not say where documents were shown; without positions "
                f"their effect on clicks cannot be told from relevance. It has {', '.join(map(str, have[:20]))}"
            )
        for name in (query, document, clicked):
            if name not in have:
                raise ValueError(f"the log has no column {name!r}; it has {', '.join(map(str, have[:20]))}")
        queries, documents = (_ids(name, np.asarray(columns[name])) for name in (query, document))
        m = len(queries)
        if not m:
            raise ValueError("the log has no rows")
        number = lambda name: _numbers(name, np.asarray(columns[name]), m)
        clicks, places = number(clicked), number(position)
        shown = number(impressions) if impressions in have else np.ones(m)
        _check_rows(places, clicks, shown)
        return cls(queries, documents, places.astype(np.intp), clicks, shown).added()

    def added(self) -> ClickLog:
        """The log with one row for each (query, document, position), sorted by query and position."""
        keys = [np.unique(column.astype(str), return_inverse=True)[1] for column in (self.query, self.document)]
        order = np.lexsort((keys[1], self.position, keys[0]))
        cells = np.column_stack([*keys, self.position])[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (cells[1:] != cells[:-1]).any(axis=1)
        first, start = order[new], np.flatnonzero(new)
        total = lambda v: np.add.reduceat(v[order], start) if len(start) else v
        return ClickLog(
            self.query[first], self.document[first], self.position[first], total(self.clicks), total(self.impressions)
        )

    def pairs(self) -> np.ndarray:
        """(n,) a number for each (query, document)."""
        keys = [np.unique(column.astype(str), return_inverse=True)[1] for column in (self.query, self.document)]
        return np.unique(np.column_stack(keys), axis=0, return_inverse=True)[1].ravel()

    @property
    def rate(self) -> np.ndarray:
        """(n,) clicks per impression."""
        return self.clicks / self.impressions

    def __len__(self) -> int:
        return len(self.query)

    def __repr__(self) -> str:
        def count(n: float, what: str, many: str = "") -> str:
            return f"{n:,.0f} {what if n == 1 else many or what + 's'}"

        queries, documents = (len(np.unique(column.astype(str))) for column in (self.query, self.document))
        return (
            f"ClickLog of {count(len(self), 'row')}: {count(queries, 'query', 'queries')}, "
            f"{count(documents, 'document')}, {count(self.impressions.sum(), 'impression')}, "
            f"{count(self.clicks.sum(), 'click')}, positions {self.position.min()} to {self.position.max()}"
        )


def _columns(table: Any) -> tuple[Any, list[str]]:
    """A table whose columns can be read by name, and those names."""
    if isinstance(table, list) and table and all(isinstance(row, dict) for row in table):
        table = {name: [row.get(name) for row in table] for name in table[0]}
    table = table if isinstance(table, dict) else frames.as_frame(table)
    have = list(table) if isinstance(table, dict) else frames.names(table)
    if not have:
        raise TypeError(
            f"a log is a data frame, a dict of columns or a list of dicts, got {type(table).__name__}: read files with "
            "pandas, polars or pyarrow, or give them to rankrls train --clicks"
        )
    return table, have


def _find_column(name: str, have: list[str]) -> str:
    """The name of a column or, if it is missing, the usual name that is there, in capitals or not."""
    lower = {str(other).lower(): other for other in reversed(have)}
    return name if name in have else next((lower[o] for o in (name, *USUAL.get(name, ())) if o in lower), name)


def _ids(name: str, values: np.ndarray) -> np.ndarray:
    missing = frames.is_missing(values)
    if missing.any():
        raise ValueError(
            f"column {name!r} of the log is empty in row {int(np.argmax(missing))} (such rows: {missing.sum()}): leave "
            "these rows out"
        )
    return values


def _numbers(name: str, values: np.ndarray, m: int) -> np.ndarray:
    """(m,) a column of the log as finite numbers."""
    if values.dtype.kind in "OUS":
        values = np.array([_number(name, i, value) for i, value in enumerate(values.tolist())])
    return checks.check_numbers(name, values, m, unit="log row")


def _number(name: str, i: int, value: Any) -> float:
    try:
        return np.nan if value is None or type(value).__name__ == "NAType" else float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"column {name!r} of the log holds numbers, or true and false: row {i} has {value!r}"
        ) from None


def _check_rows(position: np.ndarray, clicks: np.ndarray, shown: np.ndarray) -> None:
    for bad, what in (
        ((position < 1) | (position != np.round(position)), "positions are whole numbers from 1 for the top"),
        (shown <= 0, "a row needs at least one impression"),
        ((clicks < 0) | (clicks > shown), "clicks lie between 0 and the impressions"),
    ):
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(
                f"{what}: row {i} of the log has position {position[i]:g}, {clicks[i]:g} clicks and {shown[i]:g} "
                f"impressions (such rows: {bad.sum()})"
            )
