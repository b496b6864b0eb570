"""Work on batches in threads, with memory that each thread reuses, and with progress reports.

NumPy releases the interpreter lock for all the work on a batch, so Python threads with one BLAS thread each beat
one Python thread with a threaded BLAS: the centring of one batch overlaps with the matrix product of another.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .crowd import crowded
from .limits import limits
from .progress import counter, reported
from .types import DTypeLike

T = TypeVar("T")
_threads_in_use = threading.Lock()  # BLAS is limited for the whole process, by one caller at a time


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def n_threads() -> int:
    """The number of threads BLAS may use now; obeys threadpoolctl limits and joblib's inner limits."""
    if limits.threads is not None:
        return limits.threads
    return max((library["num_threads"] for library in _blas().info()), default=1)


class Scratch:
    """Memory that every iteration of a loop reuses: touching fresh memory costs more than most sums."""

    def __init__(self, dtype: DTypeLike):
        self._flat = np.empty(0, dtype=dtype)

    def __call__(self, *shape: int) -> np.ndarray:
        """An uninitialised array in the same memory as the previous one."""
        size = math.prod(shape)
        if size > len(self._flat):
            self._flat = np.empty(size, dtype=self._flat.dtype)
        return self._flat[:size].reshape(shape)


class Memory:
    """Arrays by name, each in memory that is reused: `memory.A(m, n)`."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._dtype = dtype

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        scratch: Scratch | None = None

        def array(rows: int, columns: int, dtype: DTypeLike | None = None) -> np.ndarray:
            nonlocal scratch
            scratch = scratch or Scratch(dtype or self._dtype)
            return scratch(rows, columns)

        self.__dict__[name] = array  # next time it is found without this method
        return array


class Recycled:
    """Arrays whose memory is reused once they and all views of them are gone, in whichever thread that happens."""

    def __init__(self) -> None:
        self._free: list[np.ndarray] = []

    def __call__(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """An uninitialised array."""
        cells, dtype = max(1, math.prod(shape)), np.dtype(dtype)
        try:
            memory = self._free.pop()
        except IndexError:
            memory = np.empty(0, np.uint8)
        if memory.nbytes < cells * dtype.itemsize:
            memory = np.empty(cells * dtype.itemsize, np.uint8)
        # views of a view of `memory` itself would have `memory` as their base
        root = np.frombuffer(memoryview(memory), dtype, cells)  # type: ignore[arg-type]
        weakref.finalize(root, self._free.append, memory).atexit = False
        return root[: math.prod(shape)].reshape(shape)

    def __reduce__(self) -> tuple[type[Recycled], tuple[()]]:
        return Recycled, ()


class _OneThread:
    """BLAS uses one thread from when the first caller enters until the last one leaves.

    Callers may run in any thread, but threadpoolctl requires that the thread that set a limit also lifts it. A thread
    of its own, the keeper, does both.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._over = threading.Event()
        self._keeper: threading.Thread | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._keep()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._release_limit()

    @contextmanager
    def briefly(self) -> Iterator[None]:
        """The same for a call in one thread: it sets and lifts the limit itself, in a tenth of the time."""
        with self._lock:
            self._inside += 1
            limit = _blas().limit(limits=1).__enter__() if self._inside == 1 else None
        try:
            yield
        finally:
            with self._lock:
                if limit is not None:
                    limit.__exit__(None, None, None)
                    if self._inside > 1:
                        self._keep()  # for callers that entered meanwhile; the limit is lifted for an instant
                self._release_limit()

    def _keep(self) -> None:
        limited, over = threading.Event(), threading.Event()

        def work() -> None:
            with _blas().limit(limits=1):
                limited.set()
                over.wait()

        self._over, self._keeper = over, threading.Thread(target=work, daemon=True)
        self._keeper.start()
        limited.wait()

    def _release_limit(self) -> None:
        self._inside -= 1
        if not self._inside and self._keeper is not None:
            self._over.set()
            self._keeper.join()
            self._keeper = None


one_thread_each = _OneThread()  # around work that runs in parallel threads or tasks

SMALL_PRODUCT = 2.5e8  # multiplications; below this a second thread gains little, and costs much when cores are busy
LONG_FACTOR = 2e9  # multiplications; a factor that takes this many is worth a look at what else runs


def threads_for(product: float) -> AbstractContextManager[None]:
    """Limit BLAS to the number of threads worth using in a loop over products of this many multiplications each.

    OpenBLAS threads spin while they wait for one another: on a busy machine, a loop over small products takes many
    times as long with two threads as with one.
    """
    return one_thread_each.briefly() if product < SMALL_PRODUCT else nullcontext()


def threads_for_factor(multiplications: float) -> AbstractContextManager[None]:
    """The same for a factorisation of a matrix, in which threads wait for one another thousands of times.

    Beside processes that use half of the cores, it takes several times as long with all threads as with one.
    """
    few = multiplications < SMALL_PRODUCT or (multiplications > LONG_FACTOR and crowded())
    return one_thread_each.briefly() if few else nullcontext()


def product_of_fit(shape: tuple[int, int], weights: int) -> float:
    """Multiplications in the largest product of a fit, for `threads_for`; infinite if threads share its passes."""
    rows, features = shape
    if rows * max(features, weights) >= limits.worth_threads:
        return math.inf
    return float(rows) * weights * min(rows, weights)


def in_order(work: Callable[[Any], T], items: Iterable[Any]) -> Iterator[T]:
    """Run `work` on each item in threads, and yield the results in the order of the items; few are held at a time."""
    if not _threads_in_use.acquire(blocking=False):
        yield from map(work, items)
        return
    try:
        n = n_threads()
        if n == 1:
            yield from map(work, items)
            return
        with one_thread_each, ThreadPoolExecutor(n) as pool:
            waiting: deque[Any] = deque()
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > n:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        _threads_in_use.release()


def share(work: Callable[[Any], T], items: Sequence[Any], *, cost: float, label: str = "pass over the rows") -> list[T]:
    """Run `work` on disjoint shares of the items, one thread each, if the `cost` (array elements) makes it worthwhile.

    Only one caller at a time gets threads; while they are in use, others work in their own thread.
    """
    if reported():
        progress, plain = counter(label, len(items)), work
        work = lambda part: plain(progress.over(part))
    if cost < limits.worth_threads or len(items) < 2 or not _threads_in_use.acquire(blocking=False):
        return [work(items)]
    try:
        n = min(n_threads(), len(items))
        if n == 1:
            return [work(items)]
        with one_thread_each, ThreadPoolExecutor(n) as pool:
            return list(pool.map(work, [items[i::n] for i in range(n)]))
    finally:
        _threads_in_use.release()
