"""A paired test of whether two models differ by more than chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..system.seeds import seed_of
from ..system.types import ArrayLike, Seed

_CHUNK = 1 << 22  # signs drawn at once


def randomisation_test(a: ArrayLike, b: ArrayLike, *, flips: int = 10_000, random_state: Seed = 0) -> float:
    """The p-value of a paired randomisation test of values of the same queries by two models.

    If the models were equally good, the two values of a query could be swapped. So the sign of each difference is
    flipped at random, and p is the share of flips whose mean difference is at least as far from zero as the observed
    one, which counts as one of the flips. With few queries all flips are tried, and p is exact.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        Values of a metric per query, as returned by `per_query`. Queries where either is NaN are left out.
    flips : int, default=10_000
        Number of random flips; if there are at most this many ways to flip, all are tried.
    random_state : int, Generator or None, default=0
        Seed of the flips.

    Returns
    -------
    p : float
        Between 0 and 1, two-sided.

    Examples
    --------
    >>> randomisation_test([0.9, 0.8, 0.7], [0.5, 0.6, 0.6])  # 2 of the 8 ways to flip are as far from zero
    0.25
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"one value per query and model is needed, got shapes {a.shape} and {b.shape}")
    if flips < 1:
        raise ValueError(f"flips must be at least 1, got {flips}")
    d = a - b
    d = d[~np.isnan(d)]
    if not len(d):
        raise ValueError("no query has a value for both models")
    d = d[d != 0]  # flipping zeros changes nothing
    observed = abs(d.sum()) * (1 - 1e-12)  # sums in another order may differ in the last digits
    exact = len(d) < 60 and 2 ** len(d) <= flips
    count, total = 0, 2 ** len(d) if exact else flips
    rng = np.random.default_rng(seed_of(random_state))
    step = max(1, _CHUNK // max(1, len(d)))
    for start in range(0, total, step):
        n = min(step, total - start)
        if exact:
            heads: Any = (np.arange(start, start + n)[:, None] >> np.arange(len(d))) & 1
        else:
            bits = np.frombuffer(rng.bytes(n * (len(d) + 7) // 8 + n), dtype=np.uint8)
            heads = np.unpackbits(bits)[: n * len(d)].reshape(n, len(d))
        count += int((np.abs((2.0 * heads - 1) @ d) >= observed).sum())
    return count / total if exact else (count + 1) / (total + 1)
