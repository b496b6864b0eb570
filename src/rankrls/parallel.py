"""Threads over batches.

NumPy releases the interpreter lock in everything a batch does, so Python threads with one BLAS thread each beat
one Python thread with a threaded BLAS: the centring of one batch overlaps with the matrix product of another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

WORTH_THREADS = 1_000_000  # array elements; with fewer, threads cost more than they save
_threads_in_use = threading.Lock()  # BLAS is limited for the whole process, by one caller at a time


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def n_threads() -> int:
    """As many threads as BLAS may use now; honours threadpoolctl limits and joblib's inner limits."""
    return max((library["num_threads"] for library in _blas().info()), default=1)


def share(work: Callable[[Sequence[Any]], T], items: Sequence[Any], *, cost: float) -> list[T]:
    """`work` on disjoint shares of the items, one thread each; `cost` in array elements tells if it is worth it.

    One caller at a time has threads: whoever comes while they are in use works in its own.
    """
    if cost < WORTH_THREADS or len(items) < 2 or not _threads_in_use.acquire(blocking=False):
        return [work(items)]
    try:
        n = min(n_threads(), len(items))
        if n == 1:
            return [work(items)]
        with _blas().limit(limits=1), ThreadPoolExecutor(n) as pool:
            return list(pool.map(work, [items[i::n] for i in range(n)]))
    finally:
        _threads_in_use.release()
