"""Rows on their way to the worker that gets the whole of their query: blocks become data frames and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..blocks.block import Block
from ..blocks.totals import QueryTotals
from ..system.parallel import one_thread_each
from .partitions import Reader, Task

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Carrier:
    """Rows of split queries as a data frame that Dask can shuffle: X, y, weight and query number."""

    totals: QueryTotals
    n_columns: int
    n_targets: int
    dtype: str

    def frame(self, block: Block | None) -> Any:
        """The data frame of a block whose query ids are indices into `totals`; an empty frame for None."""
        import pandas as pd

        if block is None:
            none = np.empty((0, self.n_columns), dtype=self.dtype)
            block = Block(none, np.empty((0, self.n_targets)), np.empty(0, dtype=np.int64), np.empty(0))
        X = block.X.toarray() if sparse.issparse(block.X) else block.X
        weight = np.ones(len(block)) if block.weights is None else block.weights
        other = pd.DataFrame(np.column_stack([block.y, weight])).add_prefix("y")
        return pd.concat([pd.DataFrame(X).add_prefix("x"), other], axis=1).assign(code=block.qid.astype(np.int64))

    def block(self, frame: pd.DataFrame) -> Block:
        values = frame.iloc[:, self.n_columns : -1].to_numpy(np.float64)
        X = np.ascontiguousarray(frame.iloc[:, : self.n_columns].to_numpy(self.dtype))
        return Block(X, values[:, :-1], self.totals.label[frame["code"].to_numpy()], values[:, -1])


@dataclass(frozen=True)
class DivideTask:
    """Maps a partition to the value of a function on its whole queries, and a data frame of its other rows."""

    read: Reader
    function: Callable[[Block], Any]
    carrier: Carrier

    def __call__(self, number: int, partition: Iterable[Any]) -> tuple[Any, Any]:
        found: list[Block | None] = [None]

        def whole(block: Block) -> Any:
            inside, found[0] = self.carrier.totals.divide(block)
            return self.function(inside) if len(inside) else None

        value = Task(self.read, whole)(number, partition)
        return value, self.carrier.frame(found[0])


@dataclass(frozen=True)
class CarriedTask:
    """Maps a data frame of shuffled rows to the value of a function on them."""

    function: Callable[[Block], Any]
    carrier: Carrier

    def __call__(self, number: int, frame: pd.DataFrame) -> Any:
        with one_thread_each:
            return self.function(self.carrier.block(frame)) if len(frame) else None


# ---------------------------------------------------------------- Dask
