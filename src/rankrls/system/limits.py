"""Where work is cut into pieces and when the machine is too small: numbers that results hardly depend on.

`limits` holds them for the whole process. `limited` changes some for a while, so that tests and experiments see on
small data what usually happens on large data only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields


@dataclass
class Limits:
    """Sizes and seconds; the defaults were measured on laptops and small servers."""

    free_memory: float | None = None  # bytes that may be allocated; None asks the system
    threads: int | None = None  # threads of a pass over the rows; None is as many as BLAS may use
    worth_threads: int = 1_000_000  # array elements of a pass; with fewer, threads cost more than they save
    table_rows: int = 65_536  # rows of a table read at once
    text_bytes: int = 1 << 21  # LETOR text parsed at once
    metric_cells: int = 1 << 18  # scores judged at once
    atom_bytes: int = 1 << 28  # values of basis functions computed at once if not all of them fit in memory
    waiting_bytes: int = 512 << 20  # rows that wait in memory until their queries are complete; more go to disk
    kept_bytes: int = 64 << 20  # rows that a model keeps, so that its held-out curve can follow updates
    quantile_values: int = 50_000  # values of a column kept for its quantiles where blocks are added up
    kernel_rows: int = 5000  # rows of a kernel model from which on the command line proposes a basis
    gram_columns: int = 4000  # sparse rows with more columns never get a dense Gram matrix
    collected_sums: int = 16  # sums that Spark sends to the driver as they are; more are added up by tasks before
    checkpoint_seconds: float = 15.0  # between two checkpoints
    checkpoint_pause: float = 10.0  # or this many times what the last one took
    stalled_seconds: float = 30.0  # without a byte, before a download is tried again
    silent_seconds: float = 1.0  # before progress is reported
    clock: Callable[[], float] = time.monotonic


limits = Limits()


@contextmanager
def limited(**changes: object) -> Iterator[None]:
    """Other limits for a while, in all threads.

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
