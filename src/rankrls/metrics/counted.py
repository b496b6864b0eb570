"""Metrics that follow from how many items of a query score higher than each item, counted in one compiled pass.

For queries of up to a thousand items comparing all of them is faster than sorting, and needs no memory. It needs numba
(the extra `fast`) and pays off for many scores only; elsewhere the kernel computes the same and is the oracle in tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..core import fused
from ..core.queries import Queries
from ..system.parallel import share

LONGEST = 1000  # with more items in a query, sorting is faster
WORTH = 1e6  # with fewer scores, compiled code is not worth loading
BLOCK_SCORES = 1 << 16

Pass = Callable[..., None]  # (S, order, starts, sizes, first, last, values) -> None, as in `compiled`


@dataclass(frozen=True)
class Counted:
    """A kernel (see `functions`), and the same metric in compiled code.

    `prepare(y, longest)` gives its pass over queries of at most `longest` items with labels y.
    """

    kernel: Callable[[np.ndarray, np.ndarray], np.ndarray]
    prepare: Callable[[np.ndarray, int], Pass]

    def __call__(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return self.kernel(y, s)

    def write(self, y: np.ndarray, S: np.ndarray, queries: Queries, values: np.ndarray) -> np.ndarray:
        """Write values (q, c) of scores S (m, c); returns the indices of the queries left to the kernel."""
        if (S.size < WORTH and not fused.demanded()) or not fused.ready():
            return np.arange(len(queries))
        served = (queries.sizes > 0) & (queries.sizes <= LONGEST)
        starts, sizes = queries.starts[served], queries.sizes[served]
        if len(sizes):
            found = np.empty((len(sizes), S.shape[1]))
            S, order = fused.frozen(np.ascontiguousarray(S)), fused.row_order(queries)
            evaluate = self.prepare(y, int(sizes.max()))

            def work(blocks: Sequence[tuple[int, int]]) -> None:
                for first, last in blocks:
                    evaluate(S, order, starts, sizes, first, last, found)

            blocks = fused.blocks_of(sizes, max(1, BLOCK_SCORES // S.shape[1]))
            share(work, blocks, cost=float(S.size))
            values[served] = found
        return np.flatnonzero(~served)


def accuracy(y: np.ndarray, longest: int) -> Pass:
    """The compiled pass of `pairs.pairwise_accuracy`."""
    from . import compiled

    return partial(compiled.accuracy, fused.frozen(y))


def discounted(gain: np.ndarray, discount: np.ndarray, empty: float) -> Pass:
    """The compiled pass of `ranks.ndcg` with averaged ties; `discount` is that of each rank that counts."""
    from . import compiled

    until = np.concatenate([[0.0], np.cumsum(discount)])
    return partial(compiled.discounted, fused.frozen(gain), until, empty)
