"""Where rows that do not fit in memory come from: Parquet, Arrow, polars, DuckDB, text, or an iterator of blocks.

A source knows what its columns mean and returns its rows in batches, repeatedly if it can; a batch becomes a `Block` of
plain arrays in the thread that works on it. `source_of` decides whether something is a source at all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..checks import QID, check_numbers, check_weights, one_column, split_qid_column
from ..datasets import RankingData, iter_letor
from ..system.frames import as_frame, names, without
from ..system.limits import limits
from ..system.parallel import Recycled
from ..system.types import Matrix
from .block import Block, as_labels
from .open_tables import TABLES, OpenTable, feature_types, pandas_index, parquet_table, plain, row_major, version


def source_of(X: Matrix, y: object, qid: object, sample_weight: object, kinds: Kinds | None = None) -> Any:
    """The source for X, or None if X is rows in memory.

    Paths and iterators are always sources; tables that need not be in memory are sources if `y` names a column. `kinds`
    are the classes for tables and for iterators of blocks, if rows are not numbers.
    """
    columns, kinds = LabelColumns(y, qid, sample_weight), kinds or Kinds(TableSource, Batches)
    if isinstance(X, Source):
        return X.labelled(columns)
    if isinstance(X, (str, os.PathLike)):
        columns.check()
        return _of_path(Path(X), columns, kinds)
    kind = type(X).__module__.partition(".")[0], type(X).__name__
    if isinstance(y, str) or (y is None and kind in TABLES):
        columns.check()
        if kind in TABLES:
            return kinds.table(TABLES[kind](X), columns)
        if kind == ("pyarrow", "RecordBatchReader"):
            return kinds.batches(lambda: X, columns, once=True)
    if kind in TABLES and isinstance(y, list | tuple) and all(isinstance(name, str) for name in y):
        raise one_column(y)
    if hasattr(X, "__next__") and not (hasattr(X, "__arrow_c_stream__") and y is not None):
        columns.check()
        return kinds.batches(lambda: X, columns, once=True)
    if callable(X) and not hasattr(X, "__array__"):
        columns.check()
        return kinds.batches(X, columns, once=False)
    return None


@dataclass(frozen=True)
class Kinds:
    """The classes for tables, and for blocks one after the other."""

    table: Callable[[OpenTable, LabelColumns], Any]
    batches: Callable[..., Any]


@dataclass(frozen=True)
class LabelColumns:
    """Names of the columns that are not features."""

    y: Any = None
    qid: Any = None
    weight: Any = None

    def check(self) -> None:
        for argument, name in (("y", self.y), ("qid", self.qid), ("sample_weight", self.weight)):
            if name is not None and not isinstance(name, str):
                raise TypeError(
                    f"rows that are read in blocks bring their labels along: {argument} must name a column, or be "
                    f"left out where each block is (X, y, qid); got {type(name).__name__}"
                )

    def found_in(self, have: Sequence[str], what: str) -> LabelColumns:
        """These columns, with the usual names where none were given; an error if a given name does not exist."""
        usual = "label" if "label" in have and "y" not in have else "y"
        found = LabelColumns(self.y or usual, self.qid or (QID if QID in have else None), self.weight)
        for argument, name in (("y", found.y), ("qid", found.qid), ("sample_weight", found.weight)):
            if name is not None and name not in have:
                raise ValueError(
                    f"{what} has no column {name!r}, which {argument} names; it has {', '.join(map(str, have[:20]))}"
                )
        return found

    @property
    def labels(self) -> list[str]:
        return [name for name in (self.y, self.qid, self.weight) if name is not None]


class Source:
    """Rows in batches: the interface of all sources."""

    names: list[str] | None = None  # of the features
    n_columns: int
    dtype: Any
    n_targets: int = 1
    once: bool  # can be read only once
    whole: bool  # no query is in two batches
    n_rows: int | None = None  # if known without reading

    def labelled(self, columns: LabelColumns) -> Source:
        """This source, whose labels are in columns of these names."""
        raise TypeError("this source already knows its labels: pass the file, table or iterator it was made from")

    def batches(self, *, labels: bool = False) -> Iterator[Any]:
        """Yield what `block` takes, in the same order every time."""
        raise TypeError("abstract")

    def block(self, batch: Any) -> Block:
        """The checked arrays of a batch, without rows of weight zero."""
        raise TypeError("abstract")

    version: str = ""  # changes when the rows do; empty if unknown

    def describe(self) -> str:
        """A description that distinguishes this source from others."""
        return f"{type(self).__name__} of {self.n_columns} columns {self.version}"

    def fingerprint(self) -> str:
        """A text that identifies these rows: the version of files, else a hash of labels, sums and a sample of rows."""
        if self.version:
            return self.version
        if self.once:
            raise ValueError(
                "rows that can be read only once cannot be identified, so an interrupted fit cannot be resumed: "
                "give a file or a function that returns a new iterator, or no checkpoint"
            )
        n_rows, digest = 0, hashlib.sha256("\n".join(map(str, self.names or ())).encode())
        for number, batch in enumerate(self.batches()):
            block = self.block(batch)
            n_rows += len(block)
            X = block.X.tocsr() if sparse.issparse(block.X) else block.X
            content = [X.sum(axis=0), block.y, block.weights]
            if number & (number - 1) == 0:  # 0, 1, 2, 4, 8, ...
                content += [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
            for array in content:
                digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
            digest.update("\n".join(map(str, block.qid.tolist())).encode())
        return f"{n_rows} rows, sha256 {digest.hexdigest()}"


# ---------------------------------------------------------------- tables


class TableSource(Source):
    """Columns of a table, read by name; rows of a query may lie anywhere."""

    once, whole = False, False

    def __init__(self, table: OpenTable, columns: LabelColumns):
        self.table, self.n_rows = table, table.n_rows
        self.columns = columns.found_in(table.schema.names, table.what)
        aside = {*self.columns.labels, *pandas_index(table.schema)}
        self.fields = [name for name in table.schema.names if name not in aside]
        self.version, self._memory = table.version, Recycled()
        self._set_features()

    def _set_features(self) -> None:
        """Set what is known about the features before reading any."""
        self.names = self.fields
        self._widths, self.dtype = feature_types(self.table.schema, self.names, self.table.what)
        if any(width > 1 for width in self._widths):  # vectors: their entries are the features
            pairs = zip(self.names, self._widths, strict=True)
            self.names = [f"{name}_{i}" if width > 1 else name for name, width in pairs for i in range(width)]
        self.n_columns = len(self.names)

    def labelled(self, columns: LabelColumns) -> TableSource:
        return type(self)(self.table, columns)

    def describe(self) -> str:
        return f"{self.table.what}: {self.n_columns} columns, {self.n_rows} rows {self.version}"

    def batches(self, *, labels: bool = False) -> Iterator[Any]:
        start = 0
        for batch in self.table.read(self.columns.labels + ([] if labels else self.fields)):
            if batch.num_rows:
                yield start, batch
                start += batch.num_rows
        if not start:
            raise ValueError(f"{self.table.what} has no rows: there is nothing to learn from")

    def block(self, batch: tuple[int, Any]) -> Block:
        start, arrow = batch
        where = f"{self.table.what}, rows {start} to {start + arrow.num_rows - 1}"
        X, y, qid, weights = self.arrays(arrow)
        return checked(X, y, qid, weights, where, self.names)

    def arrays(self, arrow: Any) -> tuple[Any, ...]:
        """X, y, qid and weights of a record batch as they are; None where a column is not in it."""
        column = lambda name: None if name is None else plain(arrow.column(name)).to_numpy(zero_copy_only=False)
        have = set(arrow.schema.names)
        features = [name for name in self.fields if name in have]
        X = row_major(arrow.select(features), self.dtype, self._memory) if features else None
        return X, column(self.columns.y), column(self.columns.qid), column(self.columns.weight)


def _of_path(path: Path, columns: LabelColumns, kinds: Kinds) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    files = parquet_files(path)
    if files:
        return kinds.table(parquet_table(files, str(path)), columns)
    if columns.labels:
        raise ValueError(
            f"{path} is not a Parquet file, and LETOR text has no names for y, qid and sample_weight: read CSV with "
            "polars.scan_csv, and fit that"
        )
    source = kinds.batches(lambda: iter_letor(path, rows=limits.table_rows), columns, once=False, what=str(path))
    source.version = version([path])
    return source


def parquet_files(path: Path) -> list[Path]:
    """The Parquet files of a folder, or the file itself if it is one; else none."""
    if not path.is_dir():
        with open(path, "rb") as file:
            return [path] if file.read(4) == b"PAR1" else []
    files = sorted(f for f in path.rglob("*.parquet") if not f.name.startswith(("_", ".")))
    if not files:
        raise FileNotFoundError(f"the folder {path} has no Parquet files (*.parquet)")
    return files


# ---------------------------------------------------------------- iterators of blocks


class Batches(Source):
    """Blocks from an iterator: (X, y, qid), (X, y, qid, weights), `RankingData`, or frames with named columns.

    Rows of a query must be adjacent, though a block may end within a query.
    """

    whole = True

    def __init__(
        self, open_: Callable[[], Iterable[Any]], columns: LabelColumns, *, once: bool, what: str = "the iterator"
    ):
        self.open, self.columns, self.once, self.what = open_, columns, once, what
        self._ahead: list[Block] = []
        self._iterator: Iterator[Any] | None = None
        first = next(self._blocks(peek=True), None)
        if first is None:
            raise ValueError(f"{what} is empty: there are no rows to learn from")
        self.n_columns, self.n_targets = first.X.shape[1], first.y.shape[1]
        self.dtype = np.float32 if first.X.dtype == np.float32 else np.float64

    def batches(self, *, labels: bool = False) -> Iterator[Block]:
        """Yield blocks cut where queries end."""
        held: list[Block] = []
        seen: set[Any] = set()
        for block in self._blocks():
            change = np.flatnonzero(block.qid[1:] != block.qid[:-1]) + 1
            starts = np.concatenate([[0], change])
            first, last = block.qid[0], int(starts[-1])
            if held and held[-1].qid[-1] != first:
                yield self._whole(held, seen)
                held = []
            if last > 0:  # a query ends in this block, so all queries before the last are complete
                held.append(block.take(np.arange(last)))
                yield self._whole(held, seen)
                held = []
            held.append(block.take(np.arange(last, len(block))))
        if held:
            yield self._whole(held, seen)

    def _whole(self, held: list[Block], seen: set[Any]) -> Block:
        block = Block.join(held)
        change = np.flatnonzero(block.qid[1:] != block.qid[:-1]) + 1
        labels = block.qid[np.concatenate([[0], change])].tolist()
        again = next((label for label in labels if label in seen), None)
        if again is not None or len(set(labels)) < len(labels):
            again = again if again is not None else next(x for x in labels if labels.count(x) > 1)
            raise ValueError(
                f"the rows of query {again!r} are not adjacent in {self.what}: sort them by query, or give a "
                "Parquet file, a polars LazyFrame or a DuckDB relation, whose rows may come in any order"
            )
        seen.update(labels)
        return block

    def block(self, batch: Block) -> Block:
        return batch

    def _blocks(self, *, peek: bool = False) -> Iterator[Block]:
        """Yield checked blocks as they come, including the first one, which was read ahead."""
        iterator = iter(self.open()) if self._iterator is None else self._iterator
        if self.once:
            self._iterator = iterator
        ahead, self._ahead = (self._ahead, []) if self.once else ([], [])
        yield from ahead
        for number, item in enumerate(iterator, start=len(ahead)):
            block = self._as_block(item, f"block {number} of {self.what}")
            if len(block):
                if peek and self.once:
                    self._ahead.append(block)
                yield block

    def _as_block(self, item: object, where: str) -> Block:
        if isinstance(item, RankingData):
            item = (item.X, item.y, item.qid)
        if not isinstance(item, tuple):
            item = self._of_frame(item, where)
        if not 2 <= len(item) <= 4:
            raise ValueError(f"{where} must be (X, y, qid) or (X, y, qid, weights), got {len(item)} values")
        X, y, qid, weights = (*item, None, None)[:4]
        X, qid = split_qid_column(X, qid)
        X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
        if X.ndim != 2 or (hasattr(self, "n_columns") and X.shape[1] != self.n_columns):
            raise ValueError(f"{where} has X of shape {X.shape}: all blocks need the same columns")
        X = X.astype(np.float32 if X.dtype == np.float32 else np.float64, copy=False)
        return checked(X, y, qid, weights, where, None)

    def _of_frame(self, item: object, where: str) -> tuple[Any, ...]:
        frame = as_frame(item)
        have = names(frame)
        if not have:
            raise TypeError(f"{where} is a {type(item).__name__}: blocks are (X, y, qid), RankingData, or data frames")
        columns = self.columns.found_in(have, where)
        parts = [None if name is None else np.asarray(frame[name]) for name in (columns.y, columns.qid, columns.weight)]
        for name in columns.labels:
            frame = without(frame, name)
        if self.names is None:
            self.names = [str(name) for name in names(frame)]
        elif names(frame) != self.names:
            raise ValueError(f"{where} has different columns from the block before: {', '.join(names(frame)[:10])} ...")
        return np.asarray(frame), *parts


def checked(
    X: Matrix | None,
    y: np.ndarray,
    qid: object,
    weights: np.ndarray | None,
    where: str,
    columns: Sequence[str] | None,
) -> Block:
    """A block of finite numbers, with one label (NaN for none), query id and weight per row; drops weights of zero."""
    m = len(y) if X is None else X.shape[0]
    try:
        if y is None:
            raise ValueError("y is missing")
        y = np.asarray(y, dtype=np.float64)
        check_numbers("y", np.where(np.isnan(y), 0.0, y), m, flat=False)
        if weights is not None and np.any(np.asarray(weights)):
            weights = check_weights(weights, m)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    qid = np.zeros(m, dtype=np.int64) if qid is None else as_labels(np.asarray(qid))
    missing = (
        np.array([q is None or q != q for q in qid.tolist()]) if qid.dtype.kind in "fO" else np.zeros(m, dtype=bool)
    )
    if len(qid) != m or missing.any():
        raise ValueError(f"{where}: {len(qid) - missing.sum()} query ids for {m} rows: every row needs one")
    if X is not None:
        _check_finite(X, where, columns)
    block = Block(X, y.reshape(m, -1), qid, weights, where)
    return block if weights is None or np.all(weights) else block.take(np.flatnonzero(weights))


def _check_finite(X: Any, where: str, columns: Sequence[str] | None) -> None:
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one pass, no mask; a sum that is not finite may have overflowed
            return
    bad = ~np.isfinite(values)
    if bad.any():
        first = int(np.argmax(bad))
        i, j = (X.tocoo().row[first], X.tocoo().col[first]) if sparse.issparse(X) else divmod(first, X.shape[1])
        name = repr(columns[j]) if columns else j
        raise ValueError(
            f"{where}: feature {name} is {X[i, j]} at row {i} of these ({bad.sum()} such values): fill or drop missing "
            "values before, or put rankrls.TableEncoder() before the ranker in a pipeline (train --encode yes)"
        )
