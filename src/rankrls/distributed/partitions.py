"""Partitions of a frame on a cluster, and the tasks that workers run on them.

An engine runs a task on every partition and adds the results in a tree. Tasks have no side effects and draw random
numbers only from a seed of their own, so that a task can run again if its worker is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..bases import Draw, Sample
from ..blocks.block import Block
from ..blocks.open_tables import OpenTable
from ..blocks.sources import LabelColumns, TableSource, checked
from ..blocks.sums import TreeSum
from ..blocks.totals import QueryTotals
from ..system.parallel import one_thread_each
from ..system.types import DTypeLike
from ..tables import TableEncoder
from ..tables.learning import TableRows
from ..tables.streaming import RawTable, TrainingMaps

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class Reader:
    """Maps a partition to its block, from arrays, or from record batches if a table tells what their columns are."""

    table: TableSource | None = None
    rows: str = "labelled"  # require a label for every row; or read only "scored" or "unscored" rows, or "any"

    def __call__(self, number: int, partition: Iterable[Any]) -> Block:
        X, y, qid, weights = self._arrays(partition)
        names = None if self.table is None else self.table.names
        if self.rows != "labelled":
            missing = np.isnan(np.asarray(y, dtype=np.float64))
            keep = np.ones(len(y), dtype=bool) if self.rows == "any" else missing == (self.rows == "unscored")
            X = X.toarray() if sparse.issparse(X) else X  # views need dense rows
            X, y, qid, weights = (None if part is None else part[keep] for part in (X, y, qid, weights))
            y = y if self.rows == "scored" else np.zeros(int(keep.sum()))
        if not len(y):
            return Block(X, np.empty((0, 1)), np.empty(0, dtype=np.int64))
        return checked(X, y, qid, weights, f"partition {number}", names)

    def _arrays(self, partition: Iterable[Any]) -> Any:
        if self.table is None:
            X, *labels = partition
            if X is not None:
                X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
                X = X.astype(np.float32 if X.dtype == np.float32 else np.float64, copy=False)
            return X, *(None if values is None else np.asarray(values) for values in labels)
        found = [self.table.arrays(batch) for batch in partition]
        return tuple(
            None if parts[0] is None else parts[0] if len(parts) == 1 else np.concatenate(parts)
            for parts in zip(*found, strict=True)
        )


def columns_of(
    have: list[Any], y: object, qid: object, sample_weight: object, features: str | Sequence[str] | None
) -> tuple[LabelColumns, list[Any]]:
    """The label columns, and the feature columns: those named, or all others."""
    columns = LabelColumns(y, qid, sample_weight)
    columns.check()
    columns = columns.found_in(have, "the frame")
    if features is None:
        return columns, [name for name in have if name not in columns.labels]
    return columns, features_among(have, features)


def features_among(have: list[Any], features: str | Sequence[str]) -> list[Any]:
    """Columns by name; an error if one does not exist."""
    wanted = [features] if isinstance(features, str) else list(features)
    missing = [name for name in wanted if name not in have]
    if missing:
        names = ", ".join(map(str, have[:20])) + (" ..." if len(have) > 20 else "")
        raise ValueError(f"the frame has no column {missing[0]!r}, which features= names; it has {names}")
    return wanted


def table_of(schema: pa.Schema, columns: LabelColumns, *, encoded: bool) -> TableSource:
    """A table source that knows the columns of an Arrow schema (numbers, unless encoded) but has no rows."""
    kind = RawTable if encoded else TableSource
    return kind(OpenTable("the frame", schema, _no_batches), columns)


def is_encoded(estimator: BaseEstimator) -> bool:
    """True if a pipeline starts with a TableEncoder."""
    return isinstance(estimator, Pipeline) and isinstance(estimator.steps[0][1], TableEncoder)


def _no_batches(names: list[str]) -> Iterable[Any]:
    return ()


# ---------------------------------------------------------------- tasks


@dataclass(frozen=True)
class Task:
    """Maps a partition to the value of a function on its block; None if the block is empty."""

    read: Reader
    function: Callable[[Block], Any]

    def __call__(self, number: int, partition: Iterable[Any]) -> Any:
        with one_thread_each:
            block = self.read(number, partition)
            return self.function(block) if len(block) else None


@dataclass(frozen=True)
class TableTask:
    """Maps record batches of a partition to the value of a function on their rows; None if there are none."""

    table: RawTable
    function: Callable[[TableRows], Any]

    def __call__(self, number: int, partition: Iterable[Any]) -> Any:
        import pyarrow as pa

        batches = [batch for batch in partition if batch.num_rows]
        with one_thread_each:
            return self.function(self.table.raw(pa.Table.from_batches(batches))) if batches else None


@dataclass(frozen=True)
class Collected:
    """Rows collected from several partitions."""

    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, block: Block) -> Collected:
        return cls((block,))

    def __add__(self, other: Collected) -> Collected:
        return Collected(self.blocks + other.blocks)


def added(values: Iterable[Any]) -> Any:
    """The sum of the results of partitions; None if all were empty."""
    sums = TreeSum[Any]()
    with one_thread_each:
        for value in values:
            if value is not None:
                sums.add(value)
        return sums.total() if sums else None


# ---------------------------------------------------------------- partitions


class Partitions:
    """Rows in blocks (see `BlockedRows`) on a cluster; each engine defines how a task runs on all partitions."""

    whole, stable, once = False, True, False

    def __init__(self, reader: Reader, n_columns: int, dtype: DTypeLike, names: list[str] | None, n_targets: int):
        self.reader, self.n_columns, self.dtype = reader, n_columns, dtype
        self.names, self.n_targets = names, n_targets

    def run(self, task: Callable[[int, Any], Any], *, labels: bool = False) -> Any:
        """The sum of a task over all partitions; with `labels`, features are not read."""
        raise TypeError("abstract")

    def sum_by_query(self, function: Callable[[Block], T], totals: QueryTotals | None, label: str) -> T:
        raise TypeError("abstract")

    def like(self, reader: Reader, n_columns: int) -> Partitions:
        """The same partitions with another reader."""
        raise TypeError("abstract")

    def only(self, rows: str) -> Any:
        """The same partitions, restricted to some of their rows."""
        return self.like(replace(self.reader, rows=rows), self.n_columns)

    @property
    def fields(self) -> list[str]:
        """The feature columns before encoding."""
        if not isinstance(self.reader.table, RawTable):
            raise TypeError("TableEncoder needs a data frame with column names, got an array")
        return self.reader.table.fields

    def sum_tables(self, function: Callable[[TableRows], T]) -> T:
        """The sum of a function over the rows of all partitions, whatever their columns hold."""
        assert isinstance(self.reader.table, RawTable)
        return some_rows(self.run(TableTask(self.reader.table, function)))

    def encoded(self, made: TrainingMaps) -> Any:
        """The rows after encoding."""
        assert isinstance(self.reader.table, RawTable)
        return self.like(replace(self.reader, table=self.reader.table.encoded(made)), made.n_columns)

    def labels(self, function: Callable[[Block], T]) -> T:
        return some_rows(self.run(Task(self.reader, function), labels=True))

    def sum(self, function: Callable[[Block], T], label: str) -> T:
        return some_rows(self.run(Task(self.reader, function)))

    def n_rows(self) -> int:
        """The number of rows."""
        return self.run(Task(self.reader, len), labels=True) or 0

    def sample(self, draw: Draw) -> Sample:
        """Rows drawn by their content, or all if there are fewer; hardly more than the sample is sent."""
        some = draw.share(self.n_rows())
        found = some_rows(self.run(Task(self.reader, some)))
        return found if found.enough(some) else some_rows(self.run(Task(self.reader, draw)))

    def collect(self) -> Block | None:
        """All rows, in local memory."""
        found = self.run(Task(self.reader, Collected.of))
        return None if found is None else Block.join(found.blocks)


def some_rows(value: object) -> Any:
    if value is None:
        raise ValueError("there are no rows to learn from: every partition is empty, or all weights are zero")
    return value
