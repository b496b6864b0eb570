"""Edges of a relation on a cluster: each partition returns its sums, which are then added."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from ..blocks.edges import added

Sums = Callable[[dict[str, np.ndarray]], list[Any]]


@dataclass(frozen=True)
class DaskEdges:
    """A Dask data frame of edges."""

    frame: Any

    def sum_blocks(self, columns: list[str], function: Sums) -> list[Any]:
        import dask

        _check(list(self.frame.columns), columns)
        one = dask.delayed(function)
        of_part = dask.delayed(lambda part: {name: part[name].to_numpy() for name in columns})
        level = [one(of_part(part)) for part in self.frame[columns].to_delayed()]
        while len(level) > 1:
            level = [dask.delayed(_added)(level[i : i + 8]) for i in range(0, len(level), 8)]
        return list(level[0].compute())


@dataclass(frozen=True)
class SparkEdges:
    """A Spark data frame of edges."""

    frame: Any

    def sum_blocks(self, columns: list[str], function: Sums) -> list[Any]:
        _check(list(self.frame.columns), columns)

        def part(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow

            total = None
            for batch in batches:
                block = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in columns}
                found = function(block)
                total = found if total is None else added(total, found)
            if total is not None:
                yield pyarrow.RecordBatch.from_arrays([pyarrow.array([pickle.dumps(total)])], ["sums"])

        rows = self.frame.select(*columns).mapInArrow(part, "sums binary").collect()
        if not rows:
            raise ValueError("there are no edges: the data frame is empty")
        return _added([pickle.loads(bytes(row["sums"])) for row in rows])


def _added(parts: list[list[Any]]) -> list[Any]:
    return reduce(added, parts)


def _check(have: list[Any], columns: list[str]) -> None:
    for name in columns:
        if name not in have:
            raise ValueError(f"the edges have no column {name!r}; they have {', '.join(map(str, have[:20]))}")
