"""The sums of a fit with centring, tie levels and scaling fused into one compiled pass over rows in the cache.

It needs numba (the extra `fast`) and pays off for large arrays only. The NumPy path in `statistics` computes the same
numbers to rounding but reads each batch of rows several times; it is the oracle in tests.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from ..system.limits import limits
from ..system.parallel import Memory, share
from .preferences import QueryPreferences
from .queries import Queries

BLOCK_ROWS, BLOCK_CELLS = 1024, 1 << 17  # rows of a block; blocks of short rows grow up to this many cells
AT_ONCE, UNINTERRUPTED = 64, 1e10  # blocks, and multiplications, in one call of compiled code
LONGEST = 4096  # longest query whose rows are still in the cache when they are read again
NARROW = 4  # columns that are multiplied by F in one pass
WORTH = 1e8  # number of cells above which loading the compiled code pays off
LOADED = 5e6  # the same once the code is loaded
FEWEST_QUERIES = 100  # compiled hold-out needs at least this many; with fewer, the leverage of each is too large

A = TypeVar("A")
B = TypeVar("B")
Wanted = bool | Callable[[], bool] | None  # a function is called once an answer is needed
_wanted: ContextVar[Wanted] = ContextVar("compiled_code", default=None)


class QueryRows(NamedTuple):
    """Where the rows of some queries are, and what F needs to know about each row, tie level and query."""

    order: np.ndarray  # (m,) all rows sorted by query
    u: np.ndarray  # (m,) weights; empty if all are one
    level: np.ndarray  # (m,) the tie level of each row, -1 without; empty if no rows tie
    within: np.ndarray  # (m,) used for tied rows only; empty if there are none
    tie_weight: np.ndarray  # (ties,)
    starts: np.ndarray  # (q,)
    sizes: np.ndarray  # (q,)
    first_tie: np.ndarray  # (q,)
    n_ties: np.ndarray  # (q,)
    S: np.ndarray  # (q,)
    between: np.ndarray  # (q,)

    @classmethod
    def of(cls, F: QueryPreferences) -> QueryRows:
        """All rows of F."""
        queries, ties, none = F.queries, F.ties, np.empty(0)
        level, tie_weight, start = np.empty(0, np.intp), none, np.zeros(len(queries) + 1, np.intp)
        if ties is not None:
            level, tie_weight, start = ties.level, ties.weight, ties.start
        u, within = (none if array is None else array for array in (F.u, F.within))
        per_query = queries.starts, queries.sizes, start[:-1].copy(), np.diff(start), F.S, F.between
        return cls(row_order(queries), u, level, within, tie_weight, *per_query)

    def of_queries(self, queries: np.ndarray) -> QueryRows:
        """The rows of some of the queries."""
        names = "starts", "sizes", "first_tie", "n_ties", "S", "between"
        return self._replace(**{name: getattr(self, name)[queries] for name in names})


@contextmanager
def compiled_code(wanted: Wanted) -> Iterator[None]:
    """Use compiled code always (True), never (False) or where it pays off (None)."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def serves(F: QueryPreferences, X: np.ndarray) -> bool:
    """True if `accumulated` should compute the sums of these rows."""
    if not (X.flags.c_contiguous or X.flags.f_contiguous) or int(F.queries.sizes.max(initial=0)) > LONGEST:
        return False
    return worth(X.size)


def serves_folds(F: QueryPreferences, X: np.ndarray) -> bool:
    """True if `fused_folds.leave_queries_out` should be tried on these rows."""
    return len(F.queries) >= FEWEST_QUERIES and F.beta == 0 and not F.means.uneven and serves(F, X)


def _is_wanted() -> bool | None:
    wanted = _wanted.get()
    return wanted() if callable(wanted) else wanted


def ready() -> bool:
    """True if the compiled code is loaded and may be used."""
    wanted = _is_wanted()
    return wanted is not False and (f"{__package__}.compiled" in sys.modules or (bool(wanted) and _installed()))


def demanded() -> bool:
    """True if compiled code is requested for any size."""
    return bool(_is_wanted())


def worth(cells: float) -> bool:
    """True if compiled code for work of this size is there, and loading it pays off if it is not loaded yet."""
    wanted = _is_wanted()
    return (cells >= (LOADED if ready() else WORTH) if wanted is None else wanted) and _installed()


def as_here(work: Callable[[A], B]) -> Callable[[A], B]:
    """A function that uses compiled code where this thread does, in whatever thread it runs."""
    wanted = _wanted.get()

    def call(argument: A) -> B:
        with compiled_code(wanted):
            return work(argument)

    return call


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view, so that code is not compiled both for writable and for read-only arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


def prepare(cells: float) -> None:
    """Load the compiled code if it pays off for data of this size."""
    if _wanted.get() is None and cells >= WORTH:
        _installed()


@contextmanager
def for_size(cells: float) -> Iterator[None]:
    """Use compiled code for every block of data of this size if it pays off for the whole.

    It is loaded by another thread, while the first pass reads labels.
    """
    wanted = _wanted.get()
    if wanted is None and cells >= WORTH:
        wanted = _installed
        threading.Thread(target=_installed, daemon=True).start()
    with compiled_code(wanted):
        yield


@cache
def _installed() -> bool:
    """True if numba is installed, works with this NumPy, and finds a folder where it can keep what it compiles.

    It looks beside the module and in the user's cache, or in NUMBA_CACHE_DIR. Without one, every process would spend
    seconds on compiling.
    """
    try:
        from . import compiled  # noqa: F401
    except (ImportError, RuntimeError):
        return False
    return True


class Products:
    """The sum of R'R over blocks of rows R, in double precision."""

    def __init__(self, n: int, dtype: np.dtype) -> None:
        from .tiles import padded

        self.n, self._width, self._dtype = n, padded(n, dtype), dtype
        self.product = np.empty((self._width, self._width), dtype)  # of one block
        self.upper = np.zeros((n, n))  # the sum on and above the diagonal

    def room(self, rows: int) -> np.ndarray:
        """Memory for the rows of a block, padded with zeros to whole vectors."""
        return np.zeros((rows, self._width), self._dtype)

    def add(self, R: np.ndarray) -> None:
        """Add the products of some rows of such memory."""
        from .tiles import add_gram

        add_gram(R, self.product, self.upper)

    def total(self) -> np.ndarray:
        """(n, n) the sum so far."""
        return np.triu(self.upper) + np.triu(self.upper, 1).T


def accumulated(
    F: QueryPreferences, X: np.ndarray, T: np.ndarray, shift: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """R'R of the loss rows R of [X, T], which are F [X, T], and their level, from each thread."""
    from .compiled import add_sums

    dtype, n, t = X.dtype, X.shape[1], T.shape[1]
    cast = lambda array: np.ascontiguousarray(array, dtype=dtype)
    rows, root = QueryRows.of(F), np.sqrt(F.beta * F.S)
    arrays = [cast(a) for a in (F.rounding.level, root, shift)]
    length = rows.sizes + (F.beta > 0)
    T, X = cast(T), frozen(X)
    blocks = blocks_of(length, most := max(BLOCK_ROWS, BLOCK_CELLS // n))
    longest = max(int(length[a:b].sum()) for a, b in blocks)
    many = min(AT_ONCE, 1 + int(UNINTERRUPTED / (most * n**2))) if X.flags.c_contiguous else 1

    def accumulate(mine: Iterable[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        products, Z, top, memory = Products(n, dtype), np.empty((longest, t), dtype), np.zeros(n, dtype), Memory(dtype)
        A, cross, square = products.room(longest), np.zeros((t, n)), np.zeros((t, t))
        for some in in_turn(mine, many):
            queries = slice(some[0, 0], some[-1, 1])
            part, copied = rows_of(X, rows.order, rows.starts[queries], rows.sizes[queries], memory.X)
            sums = A, Z, top, products.product, products.upper, cross, square
            add_sums(part, copied, T, rows, *arrays, some, *sums)  # type: ignore[call-arg]
        return np.block([[products.total(), cross.T], [cross, square]]), top

    return share(accumulate, blocks, cost=float(X.size), label="sums over rows")


def in_turn(blocks: Iterable[tuple[int, int]], many: int) -> Iterator[np.ndarray]:
    """The blocks, some at a time: (k, 2) first query and the one after the last."""
    rest = iter(blocks)
    while some := list(islice(rest, many)):
        yield np.array(some, dtype=np.intp)


def times(F: QueryPreferences, V: np.ndarray) -> np.ndarray:
    """F V. For few columns of many rows, putting batches together takes longer than one compiled pass."""
    narrow = V.shape[1] <= NARROW and V.size >= limits.worth_threads
    if not (narrow and F.beta == 0 and not F.means.uneven and ready()):
        return F @ V
    from .compiled import loss_rows

    rows, (m, k), none = QueryRows.of(F), V.shape, np.zeros(len(F.S))
    V, out, longest = frozen(np.ascontiguousarray(V)), np.empty_like(V), int(rows.sizes.max(initial=0))
    block, no_T, top = np.empty((BLOCK_CELLS + longest, k), V.dtype), np.empty((m, 0), V.dtype), np.zeros(k, V.dtype)
    for a, b in blocks_of(rows.sizes, BLOCK_CELLS):
        r = loss_rows(V, False, no_T, rows, none, none, top, a, b, block, no_T, top)
        out[rows.order[rows.starts[a] : rows.starts[a] + r]] = block[:r]
    return out


def rows_of(
    X: np.ndarray, order: np.ndarray, starts: np.ndarray, sizes: np.ndarray, memory: Callable[..., np.ndarray]
) -> tuple[np.ndarray, bool]:
    """X, or a copy of the rows of some queries if rows of X are not adjacent in memory; and whether it is a copy."""
    if X.flags.c_contiguous:
        return X, False
    rows = np.concatenate([order[a : a + length] for a, length in zip(starts, sizes, strict=True)])
    copy, adjacent = memory(len(rows), X.shape[1], X.dtype), bool(np.all(np.diff(rows) == 1))
    copy[:] = X[rows[0] : rows[-1] + 1] if adjacent else X[rows]
    return frozen(copy), True


def row_order(queries: Queries) -> np.ndarray:
    """(m,) the rows sorted by query."""
    return np.arange(queries.n_rows) if queries.order is None else queries.order


def blocks_of(rows: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Runs of consecutive queries with at most `most` rows in total (or a single query)."""
    block = (np.cumsum(rows) - rows) // most
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True))
