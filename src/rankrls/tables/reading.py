"""Columns of any table as plain arrays: float64 with NaN for numbers, objects with None for text.

A column has one of four kinds. Numbers and booleans are float64; dates are days since 1970-01-01 (with the time of day
as a fraction); text is everything else, categories included, as strings. Durations and times of day are numbers of
days. A whole number becomes "3" however it is stored, so that a category is the same whether or not missing values
turned its column into floats.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system import frames

NUMBER, BOOLEAN, DATE, TEXT = "number", "boolean", "date", "text"
MICROSECONDS_PER_DAY = 86_400_000_000
LARGEST_WHOLE = 2.0**53  # whole numbers below it are exact
PLAIN = {str, type(None)}
NESTED = (list, tuple, dict, set, np.ndarray)


@dataclass(frozen=True)
class Column:
    """The values of one column."""

    kind: str
    values: np.ndarray  # (m,) float64 with NaN, or objects: str, None where missing


def names_of(table: Any) -> list[str]:
    """Names of the columns: those of a frame, or x0, x1, ... for an array."""
    found = frames.names(table)
    return [str(name) for name in found] if found else [f"x{j}" for j in range(np.shape(table)[1])]


def read_column(table: Any, j: int) -> Column:
    """The j-th column of a frame or of a two-dimensional array."""
    try:
        return _column(table, j)
    except _NestedError as error:
        raise ValueError(
            f"column {names_of(table)[j]!r} holds {error}s, such as an embedding: make each of their numbers a column, "
            "or leave this one out with columns=[...]"
        ) from None


class _NestedError(ValueError):
    """A cell holds several values; the message is the name of their type."""


def _column(table: Any, j: int) -> Column:
    if not frames.names(table):
        return _of_array(np.asarray(table)[:, j])
    name = frames.names(table)[j]
    if isinstance(table[name], np.ndarray):
        return _of_array(table[name])
    if hasattr(table, "iloc"):
        return _of_pandas(table.iloc[:, j])
    return _of_arrow(table[name]) if hasattr(table, "column_names") else _of_polars(table[name])


def _python_values(table: Any, j: int) -> list[Any]:
    """A column as Python values, with exact whole numbers of any size."""
    if not frames.names(table):
        return list(np.asarray(table)[:, j].tolist())
    column = table.iloc[:, j].astype(object) if hasattr(table, "iloc") else table[frames.names(table)[j]]
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)


class ColumnReader:
    """The columns of a table by name, each read once; `names` are the names if it is an array."""

    def __init__(self, table: Any, names: Sequence[str] | None = None):
        self.table, self.names = table, names_of(table) if frames.names(table) or names is None else list(names)
        self._place = {name: j for j, name in enumerate(self.names)}
        self._read: dict[str, Column] = {}
        self._values: dict[tuple[str, str], np.ndarray] = {}

    def values(self, name: str, kind: str) -> np.ndarray:
        """The values of a column as the kind it had in training."""
        if (name, kind) not in self._values:
            column = self[name]
            if kind == TEXT and column.kind == NUMBER and np.nanmax(np.abs(column.values), initial=0) >= LARGEST_WHOLE:
                self._values[name, kind] = _texts(_python_values(self.table, self._place[name]))
            else:
                self._values[name, kind] = as_kind(column, kind, name)
        return self._values[name, kind]

    def __getitem__(self, name: str) -> Column:
        if name not in self._read:
            self._read[name] = read_column(self.table, self._place[name])
        return self._read[name]


def as_kind(column: Column, kind: str, name: str) -> np.ndarray:
    """The values of a column as the kind it had in training."""
    if column.kind == kind:
        return column.values
    if kind == TEXT:
        return _number_texts(column.values)
    if column.kind != TEXT and DATE not in (column.kind, kind):
        return column.values
    if column.kind == TEXT and all(value is None for value in column.values.tolist()):
        return np.full(len(column.values), np.nan)
    found = next(value for value in column.values.tolist() if value is not None and value == value)
    what = {DATE: "dates", BOOLEAN: "true and false"}.get(kind, "numbers")
    raise ValueError(f"column {name!r} held {what} in training but holds {column.kind} now, e.g. {found!r}")


# ---------------------------------------------------------------- libraries


def _of_pandas(series: Any) -> Column:
    kind = series.dtype.kind
    if type(series.dtype).__name__ == "CategoricalDtype":
        return Column(TEXT, _texts(series.astype(object).tolist()))
    if kind in "biuf":
        return Column(BOOLEAN if kind == "b" else NUMBER, series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "m":
        return Column(NUMBER, _lengths(series.to_numpy()))
    if type(series.dtype).__name__ == "PeriodDtype":
        series, kind = series.dt.to_timestamp(), "M"
    if kind == "M":
        plain = series.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(series.dt, "tz", None) else series
        return Column(DATE, _days(plain.to_numpy(dtype="datetime64[us]")))
    return _of_objects(series.astype(object).tolist())


def _of_polars(series: Any) -> Column:
    dtype = series.dtype
    if dtype.is_numeric() or str(dtype) == "Boolean":
        kind = NUMBER if dtype.is_numeric() else BOOLEAN
        return Column(kind, np.array(series.cast(_polars().Float64).to_numpy(), dtype=np.float64))
    if str(dtype).startswith("Date"):
        return Column(DATE, _days(series.cast(_polars().Datetime("us")).to_numpy()))
    if str(dtype).startswith("Duration"):
        return Column(NUMBER, _lengths(series.cast(_polars().Duration("us")).to_numpy()))
    return _of_objects(series.to_list())


def _polars() -> Any:
    import polars

    return polars


def _of_arrow(column: Any) -> Column:
    """A column of an Arrow table."""
    import pyarrow

    types, kind = pyarrow.types, column.type
    if types.is_dictionary(kind):
        return Column(TEXT, _texts(column.to_pylist()))
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        plain = column.cast(pyarrow.float64(), safe=False)  # whole numbers beyond 2^53 are rounded
        values = plain.to_numpy(zero_copy_only=False) if len(column) else np.empty(0)
        return Column(BOOLEAN if types.is_boolean(kind) else NUMBER, np.array(values, dtype=np.float64))
    if types.is_date(kind) or types.is_timestamp(kind):
        plain = column.cast(pyarrow.timestamp("us"), safe=False)  # parts of microseconds are cut off
        return Column(DATE, _days(plain.to_numpy(zero_copy_only=False)))
    if types.is_duration(kind):
        return Column(NUMBER, _lengths(column.cast(pyarrow.duration("us"), safe=False).to_numpy(zero_copy_only=False)))
    return _of_objects(column.to_pylist())


def _of_array(values: np.ndarray) -> Column:
    if values.dtype.kind in "biuf":
        return Column(BOOLEAN if values.dtype.kind == "b" else NUMBER, values.astype(np.float64))
    if values.dtype.kind == "M":
        return Column(DATE, _days(values))
    if values.dtype.kind == "m":
        return Column(NUMBER, _lengths(values))
    return _of_objects(values.tolist())


def _of_objects(values: list[Any]) -> Column:
    """A column of Python values: numbers, booleans or dates if all of them are, else text."""
    found = set(map(type, values))
    if str in found and (found <= PLAIN or all(_is_missing(value) for value in values if type(value) is not str)):
        return Column(TEXT, _objects([value or None if type(value) is str else None for value in values]))
    values = [None if _is_missing(value) else value for value in values]
    kinds = {type(value) for value in values} - {type(None)}
    if nested := next((kind for kind in kinds if issubclass(kind, NESTED)), None):
        raise _NestedError("array" if issubclass(nested, np.ndarray) else nested.__name__)
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return Column(BOOLEAN, _floats(values))
    if kinds and all(issubclass(kind, numbers.Real | decimal.Decimal) for kind in kinds):
        return Column(NUMBER, _floats(values))
    if kinds and all(issubclass(kind, datetime.date | np.datetime64) for kind in kinds):
        plain = [_without_zone(value) for value in values]
        return Column(DATE, _days(np.array(plain, dtype="datetime64[us]")))
    if kinds and all(issubclass(kind, datetime.timedelta | np.timedelta64) for kind in kinds):
        return Column(NUMBER, _lengths(np.array(values, dtype="timedelta64[us]")))
    if kinds and all(issubclass(kind, datetime.time) for kind in kinds):
        return Column(NUMBER, _lengths(np.array([_since_midnight(value) for value in values], dtype="timedelta64[us]")))
    return Column(TEXT if kinds else NUMBER, _texts(values) if kinds else np.full(len(values), np.nan))


# ---------------------------------------------------------------- values


def _is_missing(value: object) -> bool:
    return (
        value is None
        or (isinstance(value, float | np.floating) and value != value)
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value))
        or (isinstance(value, str) and not value)  # as in CSV files and ONNX graphs
    )


def _without_zone(value: Any) -> Any:
    if getattr(value, "tzinfo", None) is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def _floats(values: Sequence[Any]) -> np.ndarray:
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def _days(values: np.ndarray) -> np.ndarray:
    stamps = values.astype("datetime64[us]")
    days = stamps.astype(np.int64) / MICROSECONDS_PER_DAY
    return np.where(np.isnat(stamps), np.nan, days)


def _lengths(values: np.ndarray) -> np.ndarray:
    """Durations in days."""
    spans = values.astype("timedelta64[us]")
    return np.where(np.isnat(spans), np.nan, spans.astype(np.int64) / MICROSECONDS_PER_DAY)


def _since_midnight(value: datetime.time | None) -> datetime.timedelta | None:
    if value is None:
        return None
    return datetime.timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )


def _texts(values: Sequence[Any]) -> np.ndarray:
    if set(map(type, values)) <= PLAIN:
        return _objects([value or None for value in values])
    return _objects([None if _is_missing(value) else _text(value) for value in values])


def _number_texts(x: np.ndarray) -> np.ndarray:
    """Numbers as text, whole ones without a decimal point."""
    whole = x == np.floor(x)
    if not (np.abs(x, where=whole, out=np.zeros(len(x))) < LARGEST_WHOLE).all() or np.isinf(x).any():
        return _texts(x.tolist())
    found = _objects([str(value) for value in np.where(whole, x, 0.0).astype(np.int64).tolist()])
    found[~whole] = [None if value != value else str(value) for value in x[~whole].tolist()]
    return found


def _objects(values: list[Any]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _text(value: object) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def n_rows(table: Any) -> int:
    """Rows of a frame or an array."""
    return int(table.shape[0])
