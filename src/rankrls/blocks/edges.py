"""Edges that need not fit in memory: tables of named columns, read block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..system.frames import as_frame, names
from ..system.limits import limits
from ..system.types import ArrayLike
from .open_tables import TABLES, OpenTable, parquet_table

T = TypeVar("T")
TEXT = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def is_stream(edges: object) -> bool:
    """True if edges come from a file, a query or an iterator rather than from memory."""
    kind = type(edges).__module__.partition(".")[0], type(edges).__name__
    if isinstance(edges, str | os.PathLike) or kind in TABLES or kind == ("pyarrow", "RecordBatchReader"):
        return True
    return (
        hasattr(edges, "sum_blocks")
        or hasattr(edges, "__next__")
        or (callable(edges) and not hasattr(edges, "__array__"))
    )


def sum_blocks(edges: ArrayLike, columns: list[str], function: Callable[[dict[str, np.ndarray]], list[T]]) -> list[T]:
    """The sums of a function over all blocks of edges, computed by the cluster if they are on one."""
    if hasattr(edges, "sum_blocks"):
        return edges.sum_blocks(columns, function)
    total: list[T] | None = None
    for block in edge_blocks(edges, columns):
        found = function(block)
        total = found if total is None else added(total, found)
    if total is None:
        raise ValueError("there are no edges: the file or iterator is empty")
    return total


def added(first: list[Any], second: list[Any]) -> list[Any]:
    return [one + other for one, other in zip(first, second, strict=True)]


def edge_blocks(edges: Any, columns: list[str]) -> Iterator[dict[str, np.ndarray]]:
    """The named columns of a stream of edges, some rows at a time."""
    kind = type(edges).__module__.partition(".")[0], type(edges).__name__
    if isinstance(edges, str | os.PathLike):
        yield from _of_path(Path(edges), columns)
    elif kind in TABLES:
        yield from _of_table(TABLES[kind](edges), columns)
    else:
        for item in edges() if callable(edges) else edges:
            yield _picked(item, columns, "a block of edges")


def _of_path(path: Path, columns: list[str]) -> Iterator[dict[str, np.ndarray]]:
    """Read edges from a Parquet file or folder, or from a text file."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    if suffixes and suffixes[-1] in TEXT:
        try:
            import pandas
        except ImportError:
            raise ImportError("edges in text files are read by pandas: pip install pandas, or use Parquet") from None
        with pandas.read_csv(path, sep=TEXT[suffixes[-1]], chunksize=limits.table_rows) as blocks:
            for block in blocks:
                yield _picked(block, columns, str(path))
        return
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files or not path.exists():
        raise FileNotFoundError(f"{path}: there are no edges; a Parquet file or folder, .csv or .tsv is needed")
    yield from _of_table(parquet_table(files, str(path)), columns)


def _of_table(table: OpenTable, columns: list[str]) -> Iterator[dict[str, np.ndarray]]:
    _check(list(table.schema.names), columns, table.what)
    for batch in table.read(columns):
        yield {name: np.asarray(batch.column(name).to_numpy(zero_copy_only=False)) for name in columns}


def _picked(block: Any, columns: list[str], what: str) -> dict[str, np.ndarray]:
    frame = as_frame(block)
    _check([str(name) for name in names(frame)], columns, what)
    return {name: np.asarray(frame[name]) for name in columns}


def _check(have: list[str], columns: list[str], what: str) -> None:
    for name in columns:
        if name not in have:
            raise ValueError(f"{what} has no column {name!r}; it has {', '.join(map(str, have[:20])) or 'no names'}")
