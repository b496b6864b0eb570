"""Tables that are not in memory: one pass for statistics of columns, and the next encodes rows block by block.

The encoding of a row does not depend on its block: maps are learned from all rows, and the fold of a row, which keeps
its own label out, depends on its query only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..blocks.block import as_labels
from ..blocks.open_tables import OpenTable
from ..blocks.sources import Kinds, LabelColumns, Source, TableSource, source_of
from ..core.queries import Queries
from ..datasets import RankingData
from ..system import frames
from ..system.types import Matrix
from . import reading
from .learning import TableRows, encode
from .summaries import folds_of

T = TypeVar("T")


@dataclass(frozen=True)
class TrainingMaps:
    """The maps for training rows."""

    kinds: dict[str, str]
    maps: list[Any]
    n_folds: int
    single: bool  # whether there is only one query

    def __call__(self, rows: TableRows) -> np.ndarray:
        fold = folds_of(rows.queries, self.n_folds, single=self.single)
        return encode(rows.columns, self.kinds, self.maps, None, fold)

    @property
    def n_columns(self) -> int:
        return sum(len(made.names) for made in self.maps)


def table_parts(X: Matrix, y: object, qid: object) -> Any:
    """Rows that are not in memory, as a table with columns of any kind; None if X is in memory."""
    return source_of(X, y, qid, None, Kinds(RawTable, FrameBlocks))


def elsewhere(X: Matrix, y: object, qid: object) -> Any:
    """Rows that are not in memory: on a cluster, in a file, or in blocks one after the other; None if they are."""
    if hasattr(X, "sum_tables"):
        return X
    named = isinstance(y, str) or isinstance(X, str | os.PathLike) or callable(X) or hasattr(X, "__next__")
    return table_parts(X, y, qid) if named else None


class RawTable(TableSource):
    """A table with columns of any kind."""

    def _set_features(self) -> None:
        self.n_columns, self.dtype = len(self.fields), np.float64

    def raw(self, arrow: Any) -> TableRows:
        """The rows of a record batch."""
        import pyarrow as pa

        table = pa.Table.from_batches([arrow]) if isinstance(arrow, pa.RecordBatch) else arrow
        column = lambda name: table[name].to_numpy(zero_copy_only=False)
        y = np.asarray(column(self.columns.y), dtype=np.float64).reshape(-1, 1)
        m = len(y)
        qid = np.zeros(m, dtype=np.int64) if self.columns.qid is None else np.asarray(column(self.columns.qid))
        return TableRows(table.select(self.fields), y, Queries.of(as_labels(qid)))

    def sum_tables(self, function: Callable[[TableRows], T]) -> T:
        return _sum(function(self.raw(batch)) for _, batch in self.batches())

    def encoded(self, made: TrainingMaps) -> EncodedTable:
        """The encoded rows, for a ranker."""
        return EncodedTable(self.table, self.columns, made)


class EncodedTable(RawTable):
    """The encoded rows of a table."""

    def __init__(self, table: OpenTable, columns: LabelColumns, made: TrainingMaps):
        self.made = made
        super().__init__(table, columns)

    def _set_features(self) -> None:
        self.n_columns, self.dtype = self.made.n_columns, np.float64

    def labelled(self, columns: LabelColumns) -> EncodedTable:
        taken = {made.name for made in self.made.maps}.intersection(columns.labels)
        if taken:
            raise ValueError(
                f"column {min(taken)!r} holds labels or weights, but the encoder took it for a feature: list the "
                "feature columns in TableEncoder(columns=[...])"
            )
        given = LabelColumns(columns.y or self.columns.y, columns.qid or self.columns.qid, columns.weight)
        return EncodedTable(self.table, given, self.made)

    def arrays(self, arrow: Any) -> tuple[Any, ...]:
        _, y, qid, weights = super().arrays(arrow.select([n for n in self.columns.labels if n in arrow.schema.names]))
        has_features = set(self.fields) <= set(arrow.schema.names)
        return self.made(self.raw(arrow)) if has_features else None, y, qid, weights


class FrameBlocks(Source):
    """Blocks one after the other: frames with columns of labels, or (X, y, qid) with X a frame or an array."""

    def __init__(
        self, open_: Callable[[], Iterable[Any]], columns: LabelColumns, *, once: bool, what: str = "the iterator"
    ):
        if once:
            raise ValueError(
                f"{what} can be read only once, but an encoder needs its own pass: pass a function that returns a "
                "new iterator each time, a file, a polars LazyFrame or a DuckDB relation"
            )
        self.open, self.columns, self.what = open_, columns, what

    def _parts(self) -> Iterator[tuple[TableRows, Any, Any, Any]]:
        """Rows with their raw labels."""
        for item in self.open():
            X, y, qid, weights = self._opened(item)
            m = reading.n_rows(X)
            labels = None if y is None else np.asarray(y, dtype=np.float64).reshape(m, -1)
            ids = np.zeros(m, dtype=np.int64) if qid is None else np.asarray(qid)
            yield TableRows(X, labels, Queries.of(as_labels(ids))), y, qid, weights

    def _opened(self, item: object) -> tuple[Any, ...]:
        if isinstance(item, RankingData):
            item = (item.X, item.y, item.qid)
        if isinstance(item, tuple):
            X, y, qid, weights = (*item, None, None, None)[:4]
            return frames.as_frame(X), y, qid, weights
        frame = frames.as_frame(item)
        columns = self.columns.found_in(frames.names(frame), f"a block of {self.what}")
        parts = [None if name is None else np.asarray(frame[name]) for name in (columns.y, columns.qid, columns.weight)]
        for name in columns.labels:
            frame = frames.without(frame, name)
        return frame, *parts

    @property
    def fields(self) -> list[str]:
        first = next(self._parts(), None)
        if first is None:
            raise ValueError(f"{self.what} is empty: there are no rows to learn from")
        return reading.names_of(first[0].table)

    def sum_tables(self, function: Callable[[TableRows], T]) -> T:
        return _sum(function(rows) for rows, *_ in self._parts())

    def encoded(self, made: TrainingMaps) -> Callable[[], Iterator[Any]]:
        """A function that returns a new iterator over the encoded blocks each time."""
        return lambda: ((made(rows), y, qid, weights) for rows, y, qid, weights in self._parts())


def _sum(values: Iterable[T]) -> T:
    total: Any = None
    for value in values:
        total = value if total is None else total + value
    if total is None:
        raise ValueError("there are no rows to learn from: every block is empty")
    return total
