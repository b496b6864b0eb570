"""Sums over the blocks of a source, in threads and in bounded memory; an interrupted sum can be resumed.

Blocks are read one after the other, processed in threads and added in order. If a function needs complete queries, the
rows of queries split between blocks wait until the end, on disk if there are many.
"""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..bases import Draw, Sample
from ..checks import NO_FEATURES
from ..core import fused
from ..system.limits import limits
from ..system.parallel import Recycled, in_order
from ..system.progress import counter, silent
from ..system.types import DTypeLike
from .block import Block
from .checkpoint import Checkpoint
from .sources import Source
from .sums import SumRows, TreeSum
from .totals import QueryTotals

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class SourceRows:
    """The rows of a source, summed block by block."""

    def __init__(self, source: Source, checkpoint: Checkpoint | None = None, rows: str = "labelled"):
        """`rows` says which rows to read: "scored", "unscored" or "any"; "labelled" requires a label for every row."""
        if source.n_columns == 0:
            raise ValueError(f"the rows that were read have 0 feature(s). {NO_FEATURES}")
        self.source, self.checkpoint, self.rows = source, checkpoint or Checkpoint(), rows
        self.n_columns, self.names, self.dtype = source.n_columns, source.names, source.dtype
        self.n_targets, self.whole, self.once = source.n_targets, source.whole, source.once
        self.stable = False
        self._read = False

    def labels(self, function: Callable[[Block], T]) -> T:
        return self._sum(function, self._batches(labels=True), "labels", waiting=None)

    def sum(self, function: Callable[[Block], T], label: str) -> T:
        return self._sum(function, self._batches(), label, waiting=None)

    def sum_by_query(self, function: Callable[[Block], T], totals: QueryTotals | None, label: str) -> T:
        if self.whole or totals is None:
            return self.sum(function, label)
        with WaitingRows(totals, self.n_columns, self.n_targets, self.dtype) as waiting:
            return self._sum(function, self._batches(), label, waiting)

    def sample(self, draw: Draw) -> Sample:
        """Rows drawn by their content in one pass, or all of them if there are fewer."""
        sums = TreeSum[Sample]()
        for batch in self._batches():
            block = self._block(batch)
            if len(block):
                sums.add(draw(block))
        return sums.total()

    def only(self, rows: str) -> SourceRows:
        """The same source, restricted to some of its rows."""
        return SourceRows(self.source, rows=rows)

    def n_rows(self) -> int:
        """The number of rows."""
        return sum(len(self._block(batch)) for batch in self._batches(labels=True))

    def collect(self) -> Block | None:
        """All rows, in memory."""
        found = [block for block in map(self._block, self._batches()) if len(block)]
        return Block.join(found) if found else None

    def _block(self, batch: pa.RecordBatch) -> Block:
        block = self.source.block(batch)
        if self.rows == "any":
            return replace(block, y=np.zeros_like(block.y))
        unscored = block.unscored
        if self.rows == "labelled":
            if unscored.any():
                i = int(np.argmax(unscored))
                raise ValueError(
                    f"{block.where}: y must be finite: row {i} has {block.y[i]} (such rows: {unscored.sum()})"
                )
            return block
        part = block.take(np.flatnonzero(unscored == (self.rows == "unscored")))
        return replace(part, y=np.zeros_like(part.y)) if self.rows == "unscored" else part

    def _batches(self, *, labels: bool = False) -> Iterator[Any]:
        if self.source.once and self._read:
            raise ValueError(
                'an iterator can be read only once: leave-query-out, tied_pairs="auto" and points drawn from the rows '
                "need more passes. Give a function that returns a new iterator each time, a file, a polars LazyFrame "
                "or a DuckDB relation; or a number for alpha, or cv=5"
            )
        self._read |= not labels
        return self.source.batches(labels=labels)

    def _sum(
        self, function: Callable[[Block], T], batches: Iterator[Any], label: str, waiting: WaitingRows | None
    ) -> T:
        """The sum of a function over batches, in threads and in order; resumes from a checkpoint if there is one."""
        count = counter(label, self.source.n_rows, "rows")
        state = self.checkpoint.begin(label)
        sums: Any
        apply, sums = function.in_turn() if isinstance(function, SumRows) else (function, TreeSum[T]())
        if state.finished:
            return state.value
        if state.value is not None:
            sums.add(state.value)
        if state.waiting is not None and waiting is not None:
            waiting.add(state.waiting, whole=True)

        work = silent(fused.as_here(partial(self._value, apply, waiting)))
        for number, (rows, value, rest) in enumerate(in_order(work, _skip(batches, state.done)), start=state.done):
            if waiting is not None and rest is not None:
                waiting.add(rest, whole=len(rest) == rows)
            if value is not None:
                sums.add(value)
            count.add(rows)
            if self.checkpoint.due() and sums and not (waiting is not None and waiting.spilled):
                self.checkpoint.save(
                    done=number + 1, value=sums.total(), waiting=None if waiting is None else waiting.joined()
                )
        if waiting is not None:
            for value in in_order(silent(fused.as_here(apply)), waiting.blocks()):
                sums.add(value)
        count.close()
        result = sums.total()
        self.checkpoint.save(finished=True, value=result, waiting=None)
        return result

    def _value(
        self, function: Callable[[Block], Any], waiting: WaitingRows | None, batch: pa.RecordBatch
    ) -> tuple[int, Any, Any]:
        """The number of rows, the value of the whole queries, and the rows of queries that are not complete yet."""
        block = self._block(batch)
        rows, rest = len(block), None
        if waiting is not None and rows:
            block, rest = waiting.totals.divide(block)
        return rows, function(block) if len(block) else None, rest


def _skip(items: Iterator[Any], n: int) -> Iterator[Any]:
    for number, item in enumerate(items):
        if number >= n:
            yield item


class Replayed:
    """A source that can be read only once, written to disk so that it can be read again."""

    once = False

    def __init__(self, source: Source):
        self._source = source
        self._file = tempfile.TemporaryFile(prefix="rankrls-")  # noqa: SIM115  (open as long as this lives)
        weakref.finalize(self, self._file.close)
        self._n = 0
        for batch in source.batches():
            pickle.dump(batch, self._file, protocol=5)
            self._n += 1

    def batches(self, *, labels: bool = False) -> Iterator[Any]:
        self._file.seek(0)
        for _ in range(self._n):
            yield pickle.load(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def rows_of(source: Any) -> SourceRows:
    """The rows of a source, for a fit that passes over them several times."""
    again: Any = Replayed(source) if source.once else source
    return SourceRows(again)


class WaitingRows:
    """Rows of queries split between blocks, collected by ranges of queries until all of them have arrived."""

    def __init__(self, totals: QueryTotals, n_columns: int, n_targets: int, dtype: DTypeLike):
        self.totals, self.dtype, self.shape = totals, np.dtype(dtype), (n_targets, n_columns)
        rows = int(totals.size.sum())
        per_range = max(limits.table_rows, limits.waiting_bytes // 8 // max(1, n_columns * self.dtype.itemsize))
        self.n_ranges = max(1, -(-rows // per_range))
        start = np.cumsum(totals.size) - totals.size
        self._range = start * self.n_ranges // max(1, rows)  # (q,) of each query
        self.rows: list[Block] = []
        self._bytes = 0
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._memory = Recycled()

    def __enter__(self) -> WaitingRows:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def add(self, rest: Block, *, whole: bool) -> None:
        """Add rows of a block, `whole` if they are all of it; otherwise they are copied, so that it can be freed."""
        self.rows.append(rest if whole else replace(rest, X=rest.X.copy()))
        self._bytes += rest.X.nbytes
        if self._bytes > limits.waiting_bytes:
            self._spill()

    @property
    def spilled(self) -> bool:
        """True if some rows are on disk."""
        return self._folder is not None

    def joined(self) -> Block | None:
        """The rows in memory as one block."""
        self.rows = [Block.join(self.rows)] if self.rows else []
        return self.rows[0] if self.rows else None

    def blocks(self) -> Iterator[Block]:
        """All waiting rows, in blocks of complete queries."""
        held = self.joined()
        for number in range(self.n_ranges):
            rows = np.empty(0, np.intp) if held is None else np.flatnonzero(self._range[held.qid] == number)
            rest = held.take(rows) if held is not None and len(rows) else None
            block = self._read(number, rest) if self.spilled else rest
            if block is not None:
                yield replace(block, qid=self.totals.label[block.qid])

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="rankrls-")))
        for block in self.rows:
            place = self._range[block.qid]
            for number in np.unique(place):
                part = block.take(np.flatnonzero(place == number))
                weights = np.ones(len(part)) if part.weights is None else part.weights
                for name, array in (("X", part.X), ("y", part.y), ("qid", part.qid), ("weights", weights)):
                    with open(self._folder / f"{number}.{name}", "ab") as file:
                        np.ascontiguousarray(array).tofile(file)
        self.rows, self._bytes = [], 0

    def _read(self, number: int, rest: Block | None) -> Block | None:
        """The rows of a range on disk, and then the rest of them; X is written to memory that is used again."""
        assert self._folder is not None
        path = self._folder / f"{number}.X"
        if not path.exists():
            return rest
        load = lambda name, dtype: np.fromfile(path.with_suffix(f".{name}"), dtype=dtype)
        y, qid, weights = load("y", np.float64), load("qid", np.int64), load("weights", np.float64)
        y = y.reshape(-1, self.shape[0])
        m, more = len(y), 0 if rest is None else len(rest)
        X = self._memory((m + more, self.shape[1]), self.dtype)
        with open(path, "rb") as file:
            file.readinto(X[:m].data)
        if rest is None:
            return Block(X, y, qid, weights)
        X[m:] = rest.X
        own = np.ones(more) if rest.weights is None else rest.weights
        y, qid, weights = (np.concatenate(part) for part in ((y, rest.y), (qid, rest.qid), (weights, own)))
        return Block(X, y, qid, weights)
