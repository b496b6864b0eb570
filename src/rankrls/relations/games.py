"""Lists of edges as they are found in practice: columns of a table, dates, games seen from both ends."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..checks import check_numbers, check_weights
from ..system.frames import as_frame
from ..system.types import ArrayLike
from . import names
from .names import Ids
from .relation import EdgeSet

RECENCY, HALF_LIFE = "recency", "365d"
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31557600.0}


@dataclass(frozen=True)
class EdgeList:
    """Edges as row numbers of their two ends, in the order given."""

    rows: np.ndarray
    columns: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    home: np.ndarray | None = None
    time: np.ndarray | None = None  # in seconds, or in the unit of the dates

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def of(
        cls, edges: Any, y: ArrayLike | None, ids: tuple[Ids, Ids], *, source: object = None, target: object = None,
        sample_weight: object = None, date: object = None, half_life: object = None, home: object = None,
    ) -> EdgeList:  # fmt: skip
        """Edges from an array of pairs, or from the columns of a table; without y every edge is 1."""
        frame = as_frame(edges)
        first, second = names.ends(edges, source, target)
        rows, columns = ids[0].rows(first, "source"), ids[1].rows(second, "target")
        q = len(rows)
        pick = lambda value, argument: names.column(frame, value, argument) if isinstance(value, str) else value
        values = np.ones(q) if y is None else check_numbers("y", pick(y, "y"), q, unit="edge")
        given = {"sample_weight": sample_weight, "date": date}
        half_life = recency(frame, given, half_life)
        sample_weight, date = given["sample_weight"], given["date"]
        weights = check_weights(pick(sample_weight, "sample_weight"), q, unit="edge")
        at_home = None if home is None else check_numbers("home", pick(home, "home"), q, unit="edge")
        time = None
        if date is not None:
            time = as_time(pick(date, "date"), q)
        if half_life is not None:
            if time is None:
                raise ValueError("half_life needs the date of each edge: pass date=, a column of the edges or an array")
            age = time.max() - time
            aged = 0.5 ** (age / as_duration(half_life))
            weights = aged if weights is None else weights * aged
        return cls(rows, columns, values, weights, at_home, time)

    def only(self, some: Any) -> EdgeList:
        """Some of the edges."""
        pick = lambda values: None if values is None else values[some]
        return EdgeList(
            self.rows[some], self.columns[some], self.y[some], pick(self.weights), pick(self.home), pick(self.time)
        )

    def both_ways(self, parity: int) -> EdgeList:
        """Each edge seen from both of its ends, with half the weight each."""
        if not parity:
            return self
        weights = np.full(len(self), 0.5) if self.weights is None else self.weights / 2
        return replace(
            self,
            rows=np.concatenate([self.rows, self.columns]),
            columns=np.concatenate([self.columns, self.rows]),
            y=np.concatenate([self.y, parity * self.y]),
            weights=np.tile(weights, 2),
            home=None if self.home is None else np.concatenate([self.home, parity * self.home]),
            time=None if self.time is None else np.tile(self.time, 2),
        )

    def edge_set(self, shape: tuple[int, int]) -> EdgeSet:
        free = None if self.home is None else self.home[:, None]
        return EdgeSet(shape, None, self.rows, self.columns, self.y, self.weights, free)


def recency(edges: Any, columns: dict[str, Any], half_life: object) -> Any:
    """The half-life, which may be given as sample_weight="recency"; `columns` then gets the dates instead."""
    weight = columns["sample_weight"]
    if isinstance(weight, str) and weight == RECENCY and RECENCY not in map(str, names.names(as_frame(edges))):
        columns["sample_weight"] = None
        half_life = HALF_LIFE if half_life is None else half_life
    if half_life is not None:
        columns["date"] = names.date_column(edges, columns["date"])
    return half_life


def as_time(dates: object, q: int) -> np.ndarray:
    """Dates as numbers: plain numbers unchanged, dates in seconds; 20191231 is a day."""
    values = np.asarray(dates)
    if values.shape != (q,):
        raise ValueError(f"date must hold one date per edge: got shape {values.shape} for {q} edges")
    if values.dtype.kind in "iu" and values.min() >= 17000101 and values.max() <= 29991231:
        values = np.array([f"{d // 10000:04d}-{d // 100 % 100:02d}-{d % 100:02d}" for d in values.tolist()])
    if values.dtype.kind in "OUS" or values.dtype.kind == "M":
        try:
            values = values.astype("datetime64[s]")
        except (ValueError, TypeError) as error:
            raise ValueError(f"dates cannot be read: {error}; use ISO dates (2019-12-31) or datetimes") from None
        missing = np.isnat(values)
        if missing.any():
            raise ValueError(
                f"date is missing for {int(missing.sum())} edges, the first is edge {int(np.argmax(missing))}"
            )
        return values.astype(np.int64).astype(np.float64)
    return check_numbers("date", values, q, unit="edge")


def as_duration(half_life: Any) -> float:
    """Seconds from "365d", "52w", "2y", "12h" or a timedelta; a plain number is in the unit of the dates."""
    if isinstance(half_life, str):
        match = re.fullmatch(r"\s*([\d.]+)\s*([a-z]+)\s*", half_life.lower())
        unit = match and match[2] if match and match[2] in _UNITS else match and match[2].rstrip("s")[:1]
        if not match or unit not in _UNITS or float(match[1]) <= 0:
            raise ValueError(f'half_life must be a duration such as "365d", "52w" or "2y", got {half_life!r}')
        return float(match[1]) * _UNITS[str(unit)]
    if hasattr(half_life, "total_seconds"):
        return float(half_life.total_seconds())
    if isinstance(half_life, np.timedelta64):
        return float(half_life / np.timedelta64(1, "s"))
    value = float(half_life)
    if not value > 0:
        raise ValueError(f"half_life must be positive, got {half_life!r}")
    return value
