"""Tables that can be read repeatedly: Parquet files, Arrow datasets, polars LazyFrames and DuckDB relations.

`TABLES` maps each kind to an `OpenTable`; the rest of the library sees record batches and plain arrays.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core import fused
from ..system.limits import limits
from ..system.parallel import Recycled
from ..system.types import DTypeLike


@dataclass(frozen=True)
class OpenTable:
    """A table that can be read repeatedly: its Arrow schema, and record batches of some of its columns."""

    what: str
    schema: Any
    read: Callable[[list[str]], Iterable[Any]]
    n_rows: int | None = None
    version: str = ""

    def only(self, names: Sequence[str]) -> OpenTable:
        """The table restricted to some of its columns."""
        import pyarrow

        return replace(self, schema=pyarrow.schema([self.schema.field(name) for name in names]))


def parquet_table(files: Sequence[Path], what: str) -> OpenTable:
    """Parquet files of one kind as a table."""
    parquet = _pyarrow(what, "parquet")
    schema, n_rows = None, 0
    for file in files:
        with _naming(file):
            other = parquet.ParquetFile(file)
            found, n_rows = other.schema_arrow, n_rows + other.metadata.num_rows
        schema = found if schema is None else _common_schema(schema, found, files[0], file)

    def read(names: list[str]) -> Iterator[Any]:
        for file in files:
            with _naming(file), parquet.ParquetFile(file, memory_map=True) as opened:
                yield from opened.iter_batches(_rows_at_once(opened.metadata), columns=names)

    return OpenTable(what, schema, read, n_rows, version(files))


def _rows_at_once(metadata: Any) -> int:
    """Rows of a batch: even parts of a row group, since a batch across two groups takes longer to read."""
    group = metadata.row_group(0).num_rows if metadata.num_row_groups else 0
    return -(-group // -(-group // limits.table_rows)) if group > limits.table_rows else limits.table_rows


def _common_schema(first: Any, other: Any, file: Path, other_file: Path) -> Any:
    """The schema shared by two files of one table; numbers get the higher precision of the two."""
    from pyarrow import types

    if other.names != first.names:
        raise ValueError(f"{other_file} has different columns from {file}: put tables of one kind into a folder")
    number = lambda kind: types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    text = lambda kind: any(is_text(kind) for is_text in (types.is_string, types.is_large_string, types.is_dictionary))
    for at, name in enumerate(first.names):
        mine, theirs = first.field(at).type, other.field(at).type
        if number(mine) != number(theirs) or text(mine) != text(theirs):
            raise ValueError(
                f"column {name!r} is {mine} in {file} and {theirs} in {other_file}: write it with one type, "
                "e.g. query ids as text in all files"
            )
        if number(mine) and not (types.is_floating(mine) and mine.bit_width == 64) and theirs != mine:
            first = first.set(at, other.field(at).with_type(theirs if types.is_float64(theirs) else _float64()))
    return first


def _float64() -> Any:
    import pyarrow

    return pyarrow.float64()


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Make errors of the reader name the file."""
    import pyarrow

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file)) from None
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise OSError(f"{file} is damaged, or not a Parquet file: {error}") from error


def version(files: Sequence[Path]) -> str:
    """The size and the latest change of the files, which tell whether they changed."""
    stats = [file.stat() for file in files]
    return f"({sum(s.st_size for s in stats)} bytes, {max(s.st_mtime_ns for s in stats)})"


def _dataset(X: Any) -> OpenTable:
    read = lambda names: X.to_batches(
        columns=names, batch_size=limits.table_rows, batch_readahead=2, fragment_readahead=1
    )
    return OpenTable("the dataset", X.schema, read)


def _lazy_frame(X: Any) -> OpenTable:
    _pyarrow("a polars LazyFrame")
    schema = X.head(0).collect().to_arrow().schema

    def read(names: list[str]) -> Iterator[Any]:
        for frame in X.select(names).collect_batches(chunk_size=limits.table_rows, maintain_order=True):
            yield from frame.to_arrow().to_batches(limits.table_rows)

    return OpenTable("the LazyFrame", schema, read)


def _relation(X: Any) -> OpenTable:
    _pyarrow("a DuckDB relation")
    quoted = lambda name: '"' + name.replace('"', '""') + '"'
    reader = lambda relation: getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch

    def read(names: list[str]) -> Iterator[Any]:
        yield from reader(X.project(", ".join(map(quoted, names))))(limits.table_rows)

    schema = reader(X.limit(0))(1)
    kind = schema.schema
    list(schema)  # a connection has one open result at a time
    return OpenTable("the relation", kind, read)


def _pyarrow(what: str, module: str = "") -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{what} is read through pyarrow: pip install 'rankrls[arrow]'") from None
    return getattr(pyarrow, module) if module else pyarrow


TABLES: dict[tuple[str, str], Callable[[Any], OpenTable]] = {
    ("polars", "LazyFrame"): _lazy_frame,
    ("duckdb", "DuckDBPyRelation"): _relation,
    ("_duckdb", "DuckDBPyRelation"): _relation,
    **{("pyarrow", name): _dataset for name in ("Dataset", "FileSystemDataset", "InMemoryDataset", "UnionDataset")},
}


def plain(column: object) -> Any:
    """A column with its values instead of a dictionary, which categories have."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def pandas_index(schema: Any) -> list[str]:
    """Columns that are the row labels of a pandas frame, not data."""
    known = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name in known or re.fullmatch(r"__index_level_\d+__", name)]


def feature_types(schema: Any, features: list[str], what: str) -> tuple[list[int], Any]:
    """How many features each column has, and the precision they are computed in."""
    from pyarrow import types

    widths, single, wrong = [], True, []
    for name in features:
        kind, width = schema.field(name).type, 1
        if types.is_fixed_size_list(kind):
            kind, width = kind.value_type, kind.list_size
        if not is_numeric(kind):
            wrong.append(f"{name!r} ({kind})")
        widths.append(width)
        single &= (types.is_floating(kind) and kind.bit_width <= 32) or types.is_boolean(kind)
    if wrong:
        raise ValueError(
            f"{what}: {', '.join(wrong[:5])} {'is' if len(wrong) == 1 else 'are'} not numeric: put "
            "rankrls.TableEncoder() before the ranker in a pipeline, or give a query without them, e.g. "
            "polars.scan_parquet(path).drop(...); y= and qid= name label and query id"
        )
    if not features:
        raise ValueError(f"{what} has no column left for features")
    return widths, np.float32 if single else np.float64


def is_numeric(kind: Any) -> bool:
    """True for Arrow types of numbers, or of vectors of numbers."""
    from pyarrow import types

    kind = kind.value_type if types.is_fixed_size_list(kind) else kind
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def row_major(batch: Any, dtype: DTypeLike, memory: Recycled) -> np.ndarray:
    """(k, n) the columns of a record batch side by side; missing values are NaN."""
    import pyarrow as pa

    plain, vectors = pa.from_numpy_dtype(dtype), False
    columns = []
    for column in batch.columns:
        vectors |= pa.types.is_fixed_size_list(column.type)
        columns.append(column if column.type == plain or vectors else column.cast(plain, safe=False))
    if not vectors:
        if fused.ready() and not any(column.null_count for column in columns):
            return _side_by_side(columns, dtype, memory)
        same = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
        return same.to_tensor(null_to_nan=True, row_major=True).to_numpy()
    parts = []
    for column in columns:
        values, width = (column.flatten(), column.type.list_size) if hasattr(column.type, "list_size") else (column, 1)
        parts.append(values.to_numpy(zero_copy_only=False).reshape(-1, width).astype(dtype, copy=False))
    return parts[0].copy() if len(parts) == 1 else np.hstack(parts)


def _side_by_side(columns: Sequence[Any], dtype: DTypeLike, memory: Recycled) -> np.ndarray:
    """Arrow columns of one type without missing values as rows, by compiled code."""
    from ..core.compiled import side_by_side

    values = [column.to_numpy() for column in columns]  # without a copy
    out = memory((len(values[0]), len(values)), dtype)
    side_by_side(np.array([v.__array_interface__["data"][0] for v in values], dtype=np.uintp), out)
    return out
