"""Tables of other libraries: anything with an Arrow stream becomes a frame that scikit-learn accepts.

pandas and polars frames and pyarrow tables pass through unchanged. Others (pyarrow record batches and readers, DuckDB
relations, anything with `__arrow_c_stream__`) become pyarrow tables, or polars frames if pyarrow is not installed,
without a copy where possible.
"""

from __future__ import annotations

import datetime
import numbers
from typing import Any

import numpy as np
from scipy import sparse

_KNOWN = {("polars", "DataFrame"), ("pyarrow", "Table")}  # besides pandas and libraries like it, which have iloc


def in_memory(X: object) -> bool:
    """True if X is an array, a sparse matrix or a pandas frame, which can be used as it is."""
    return isinstance(X, np.ndarray) or sparse.issparse(X) or hasattr(X, "iloc")


def as_frame(X: Any) -> Any:
    """X as a frame if it is a table with an Arrow stream, else X unchanged."""
    library, name = type(X).__module__.partition(".")[0], type(X).__name__
    if (library, name) == ("polars", "LazyFrame"):
        return X.collect()
    streams = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    if not streams or hasattr(X, "iloc") or (library, name) in _KNOWN:
        return X
    try:
        import pyarrow
    except ImportError:
        pass
    else:
        return pyarrow.table(X)
    try:
        import polars
    except ImportError:
        raise ImportError(
            f"a {library} {name} is read through pyarrow: pip install 'rankrls[arrow]', or give an array or a DataFrame"
        ) from None
    return polars.DataFrame(X)


def index_of(X: object) -> Any:
    """The row labels of a pandas frame, None for anything else."""
    return getattr(X, "index", None) if hasattr(X, "iloc") else None


def as_column(values: Any) -> Any:
    """The only column of a table, as an array; anything else unchanged."""
    table = values if hasattr(values, "__array__") else as_frame(values)
    if table is values:
        return values
    if table.shape[1] != 1:
        raise ValueError(f"one column is needed, got a table with {table.shape[1]}: {', '.join(names(table)[:10])}")
    return np.asarray(table)[:, 0]


def names(frame: object) -> list[Any]:
    """The names of the columns; an empty list if `frame` is not a frame."""
    if hasattr(frame, "column_names"):
        return list(frame.column_names)
    columns = getattr(frame, "columns", None)
    return [] if columns is None or not hasattr(frame, "drop") else list(columns)


def without(frame: Any, name: str) -> Any:
    """The frame without a column."""
    return frame.drop(columns=name) if hasattr(frame, "iloc") else frame.drop([name])


def only(frame: Any, columns: list[Any]) -> Any:
    """The frame with these columns alone, in this order."""
    return frame[columns] if hasattr(frame, "iloc") else frame.select(columns)


def rows(X: Any, numbers: np.ndarray) -> Any:
    """Some rows of an array or a frame, by number."""
    if hasattr(X, "iloc"):
        return X.iloc[numbers]
    return X.take(numbers) if hasattr(X, "column_names") and hasattr(X, "take") else X[numbers]


def replaced(frame: Any, columns: dict[str, np.ndarray]) -> Any:
    """The frame with some columns replaced, in the same order."""
    if hasattr(frame, "assign"):
        return frame.assign(**columns)
    values = {name: columns.get(name, frame[name]) for name in names(frame)}
    return frame.from_pydict(values) if hasattr(frame, "from_pydict") else type(frame)(values)


def like(frame: Any, columns: dict[str, Any]) -> Any:
    """A frame of the same library with these columns instead and the same row labels."""
    if hasattr(frame, "iloc"):
        return type(frame)(columns, index=frame.index)
    return frame.from_pydict(columns) if hasattr(frame, "from_pydict") else type(frame)(columns)


def is_missing(values: np.ndarray) -> np.ndarray:
    """(m,) True where a value is NaN, NaT, None or pandas' NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "O":
        return np.array([value is None or _is_na(value) or value != value for value in values.tolist()], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def _is_na(value: object) -> bool:
    return type(value).__name__ == "NAType"  # comparing pandas' NA with anything gives NA again


def dates(X: Any) -> list[str]:
    """The columns of X that hold dates or time spans, which NumPy would take for numbers of some unit."""
    labels = names(X)
    if not labels:
        return ["of X (dates)"] if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m") else []
    if hasattr(X, "column_names"):
        from pyarrow import types

        found = [types.is_temporal(kind) for kind in X.schema.types]
    else:
        found = [d.kind in "Mm" if hasattr(d, "kind") else _is_temporal(d) for d in X.dtypes]
    return [f"{label!r} (dates)" for label, is_date in zip(labels, found, strict=True) if is_date]


def _is_temporal(dtype: Any) -> bool:
    """True for polars' types of dates and times."""
    return hasattr(dtype, "is_temporal") and bool(dtype.is_temporal())


def gaps_and_text(X: Any) -> list[str]:
    """The columns of X that hold text or missing values, with the number of these."""
    if sparse.issparse(X):  # without making it dense
        X = X.tocoo()
        columns, counts = np.unique(X.col[is_missing(X.data)], return_counts=True)
        return [f"{j} ({n} missing)" for j, n in zip(columns.tolist(), counts.tolist(), strict=True)]
    labels = names(X) or list(range(np.shape(X)[1] if np.ndim(X) == 2 else 0))
    column = lambda j: X.iloc[:, j] if hasattr(X, "iloc") else X[labels[j]] if names(X) else np.asarray(X)[:, j]
    found = []
    for j, label in enumerate(labels):
        values = np.asarray(column(j))
        n = int(is_missing(values).sum())
        kinds = {type(value) for value in values.tolist()} if values.dtype.kind in "OUS" else set()
        if n or not all(issubclass(kind, numbers.Real) for kind in kinds):
            is_date = any(issubclass(kind, datetime.date | datetime.timedelta | datetime.time) for kind in kinds)
            found.append(f"{label!r} ({f'{n} missing' if n else 'dates' if is_date else 'text'})")
    return found
