"""Sizes at which work is split, or the machine counts as too small. Results hardly depend on these numbers.

`limits` holds them for the whole process. `limited` changes some of them temporarily, so that tests and experiments can
trigger on small data what normally happens only on large data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields


@dataclass
class Limits:
    """Sizes and seconds; the defaults were measured on laptops and small servers."""

    free_memory: float | None = None  # bytes that may be allocated; None asks the operating system
    threads: int | None = None  # threads for a pass over the rows; None: as many as BLAS may use
    worth_threads: int = 1_000_000  # array elements per pass; below this, threads cost more than they save
    worth_runs: int = 100_000  # array elements per pass; below this, queries are batched by their length
    table_rows: int = 65_536  # rows of a table read at once
    text_bytes: int = 1 << 21  # LETOR text parsed at once
    metric_cells: int = 1 << 18  # scores judged at once
    atom_bytes: int = 1 << 28  # values of basis functions computed at once if they do not all fit in memory
    waiting_bytes: int = 512 << 20  # rows held in memory until their queries are complete; the rest go to disk
    kept_features: int = 30_000_000  # features of training rows that AutoRanker keeps while it judges candidates
    kept_bytes: int = 64 << 20  # rows a model keeps to follow updates, or to be solved for other alphas
    quantile_values: int = 50_000  # values of a column kept for its quantiles when data arrives in blocks
    kernel_rows: int = 5000  # from this many rows on, the command line suggests a basis for a kernel model
    gram_columns: int = 4000  # sparse rows with more columns never get a dense Gram matrix
    collected_sums: int = 16  # partial sums that Spark sends to the driver directly; more are first added up in tasks
    checkpoint_seconds: float = 15.0  # least time between two checkpoints
    checkpoint_pause: float = 10.0  # or this many times the duration of the last one, if that is longer
    stalled_seconds: float = 30.0  # without a byte, before a download is tried again
    silent_seconds: float = 1.0  # before progress is reported
    redraw_seconds: float = 0.5  # between two updates of a line of progress
    long_call: float = 1e9  # LAPACK calls with more multiplications may take over a second and are announced
    clock: Callable[[], float] = time.monotonic


limits = Limits()


@contextmanager
def limited(**changes: object) -> Iterator[None]:
    """Change limits inside the block, for all threads.

    Examples
    --------
    >>> with limited(table_rows=64):
    ...     limits.table_rows
    64
    >>> limits.table_rows
    65536
    """
    unknown = changes.keys() - {field.name for field in fields(Limits)}
    if unknown:
        raise TypeError(f"there is no limit {sorted(unknown)[0]!r}")
    before = {name: getattr(limits, name) for name in changes}
    vars(limits).update(changes)
    try:
        yield
    finally:
        vars(limits).update(before)
