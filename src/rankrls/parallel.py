"""Threads over batches.

NumPy releases the interpreter lock in everything a batch does, so Python threads with one BLAS thread each beat
one Python thread with a threaded BLAS: the centring of one batch overlaps with the matrix product of another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

WORTH_THREADS = 1_000_000  # array elements; with fewer, threads cost more than they save

_lock = threading.Lock()
_active = 0
_limiter: Any = None


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def n_threads() -> int:
    """As many threads as BLAS may use now; honours threadpoolctl limits and joblib's inner limits."""
    return max((library["num_threads"] for library in _controller().info()), default=1)


@contextmanager
def single_threaded_blas() -> Any:
    """BLAS on one thread, for the outermost of all callers that overlap in time."""
    global _active, _limiter
    with _lock:
        if _active == 0:
            _limiter = _controller().limit(limits=1)
        _active += 1
    try:
        yield
    finally:
        with _lock:
            _active -= 1
            if _active == 0:
                _limiter.restore_original_limits()


def share(work: Callable[[Sequence[Any]], T], items: Sequence[Any], *, cost: float) -> list[T]:
    """`work` on disjoint shares of the items, one thread each; `cost` in array elements decides if it is worth it."""
    n = 1 if _active else min(n_threads(), len(items))
    if n <= 1 or cost < WORTH_THREADS:
        return [work(items)]
    with single_threaded_blas(), ThreadPoolExecutor(n) as pool:
        return list(pool.map(work, [items[i::n] for i in range(n)]))
