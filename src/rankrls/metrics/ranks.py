"""Metrics of ranks: kernels on labels (g, l) and scores (g, c, l) of g queries, c models.

A metric must not depend on the order of the rows, so by default tied scores get the expected value over random tie
breaking, in closed form. Within a run of t tied items of total gain G that starts after rank a, every rank has expected
gain G / t, which suffices for metrics linear in the gains (ndcg, precision, recall). With r relevant items in the run
and R before it, rank a + i holds a relevant item with probability r / t, and then R + 1 + (i - 1) (r - 1) / (t - 1)
relevant items are expected up to it (average precision). If nothing relevant came before a + i, the item there is
relevant with probability r / (t - i + 1) (reciprocal rank).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import counted
from .counted import Counted, Pass
from .pairs import Kernel, ratio, take

# The conventions of ndcg: gain, discount, ties, value of a query without a relevant item.
CONVENTIONS: dict[str | None, tuple[Any, Any, str, Any]] = {
    None: ("exp2", "log2", "average", "skip"),
    "letor": ("exp2", "letor", "stable", 0),
    "xgboost": ("exp2", "log2", "stable", 1),
    "lightgbm": ("exp2", "log2", "stable", 1),
    "catboost": ("linear", "log2", "worst", 1),
    "sklearn": ("linear", "log2", "average", 0),
    "trec": ("positive", "log2", "stable", 0),
}
GAINS: dict[str, Callable] = {
    "exp2": lambda y: np.exp2(y) - 1,
    "linear": lambda y: y,
    "positive": lambda y: np.maximum(y, 0),
}
DISCOUNTS: dict[str, Callable] = {
    "log2": lambda rank: 1 / np.log2(rank + 1),
    "letor": lambda rank: 1 / np.log2(np.maximum(rank, 2)),
}
TIES = ("average", "stable", "worst")


def ndcg(*, k: int | None, gain: object, discount: object, ties: object, empty: object, convention: object) -> Kernel:
    if convention not in CONVENTIONS:
        raise ValueError(unknown("convention", convention, [name for name in CONVENTIONS if name]))
    given = (gain, discount, ties, empty)
    gain, discount, ties, empty = (b if a is None else a for a, b in zip(given, CONVENTIONS[convention], strict=True))
    gain, discount = _choice("gain", gain, GAINS), _choice("discount", discount, DISCOUNTS)
    cut, ties, empty = _cutoff(k), _tie_rule(ties), _empty_value(empty)

    def gains_of(y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            gains = np.asarray(gain(y), dtype=np.float64)
        if not (gains.min() >= 0 and gains.max() < np.inf):
            label, value = next((a, b) for a, b in zip(y.flat, gains.flat, strict=True) if not 0 <= b < np.inf)
            raise ValueError(
                f"ndcg needs finite gains >= 0, but the label {label:g} has gain {value:g}: shift the labels, pass "
                'another gain ("linear", "positive", a function), or use pairwise_accuracy, which takes any labels'
            )
        return gains

    def kernel(y: np.ndarray, s: np.ndarray) -> np.ndarray:
        gains, weights = gains_of(y), discount(np.arange(1, y.shape[-1] + 1)[:cut])
        dcg = (expected(*_ranked(gains, s, ties))[..., :cut] * weights).sum(axis=-1)
        ideal = (np.sort(gains, axis=-1)[:, None, ::-1][..., :cut] * weights).sum(axis=-1)
        return ratio(dcg, ideal, empty)

    def prepare(y: np.ndarray, longest: int) -> Pass:
        return counted.discounted(gains_of(y), discount(np.arange(1, longest + 1)[:cut]), empty)

    return Counted(kernel, prepare) if ties == "average" else kernel


def relevance(
    terms: Callable, divisor: Callable, *, k: int | None, relevant: float, ties: object, empty: object = 0
) -> Kernel:
    """The kernel (sum of the terms of the first k ranks) / divisor(number of relevant items, k)."""
    cut, ties, empty = _cutoff(k), _tie_rule(ties), _empty_value(empty)

    def kernel(y: np.ndarray, s: np.ndarray) -> np.ndarray:
        hits = (y >= relevant).astype(np.float64)
        found = terms(*_ranked(hits, s, ties))[..., :cut].sum(axis=-1)
        return ratio(found, divisor(hits.sum(axis=-1)[:, None], k), empty)

    return kernel


def precision_at_hits(ranked: np.ndarray, new: np.ndarray) -> np.ndarray:
    """At each rank: the probability of a relevant item, times the expected precision if it is one."""
    start, t, r = _runs(ranked, new)
    place = np.arange(ranked.shape[-1])
    before = take(np.cumsum(ranked, axis=-1) - ranked, start)
    so_far = before + 1 + (place - start) * (r - 1) / np.maximum(t - 1, 1)
    return r / t * so_far / (place + 1)


def first_hit(ranked: np.ndarray, new: np.ndarray) -> np.ndarray:
    """At each rank: the probability that the first relevant item is there, divided by the rank."""
    start, t, r = _runs(ranked, new)
    place = np.arange(ranked.shape[-1])
    hit = np.minimum(1, r / (t - (place - start)))  # after t - r misses in a run the next item must be a hit
    all_missed = np.cumprod(1 - hit, axis=-1)
    hit[..., 1:] *= all_missed[..., :-1]
    return hit / (place + 1)


def cascade(*, k: Any, max_grade: float, ties: Any, empty: Any) -> Kernel:
    """Expected reciprocal rank: at each rank the probability to stop there, divided by the rank."""
    cut, ties, empty = _cutoff(k), _tie_rule(ties), _empty_value(empty)
    if not float(max_grade) > 0:
        raise ValueError(f"max_grade must be the highest possible label, a positive number; got {max_grade!r}")

    def kernel(y: np.ndarray, s: np.ndarray) -> np.ndarray:
        if y.min() < 0 or y.max() > max_grade:
            odd = y.min() if y.min() < 0 else y.max()
            raise ValueError(f"err needs labels from 0 to max_grade={max_grade:g}, got {odd:g}: pass max_grade=")
        stop, new = _ranked((np.exp2(y) - 1) / np.exp2(max_grade), s, ties)
        left = _left(1 - stop, new)[..., :cut]
        before = np.concatenate([np.ones_like(left[..., :1]), left[..., :-1]], axis=-1)
        found = ((before - left) / np.arange(1, left.shape[-1] + 1)).sum(axis=-1)
        return np.where(np.max(y, axis=-1, keepdims=True) > 0, found, empty)

    return kernel


def _left(go_on: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The probability of going on after each rank.

    In a run of ties, the mean over all choices of the items seen so far, item by item:
    E_k[i] = i/k g_k E_{k-1}[i-1] + (1 - i/k) E_{k-1}[i].
    """
    left = np.cumprod(go_on, axis=-1)
    for row in map(tuple, np.argwhere(~np.all(new, axis=-1))):
        starts, chance = np.flatnonzero(new[row]), 1.0
        for a, b in zip(starts, [*starts[1:], new.shape[-1]], strict=True):
            mean = np.ones(1)
            for n, g in enumerate(go_on[row][a:b], start=1):
                i = np.arange(n + 1)
                mean = i / n * g * np.append(0.0, mean) + (1 - i / n) * np.append(mean, 0.0)
            left[row][a:b] = chance * mean[1:]
            chance = left[row][b - 1]
    return left


def overlap(*, p: float) -> Kernel:
    """Rank-biased overlap of two rankings of the same items, extrapolated beyond the last item."""
    if not 0 < float(p) < 1:
        raise ValueError(f"p must be the probability of looking one rank further, between 0 and 1; got {p!r}")

    def kernel(y: np.ndarray, s: np.ndarray) -> np.ndarray:
        depth = np.arange(1, y.shape[-1] + 1)
        shared = _shared(y, s)
        return (1 - p) / p * (shared / depth * p**depth).sum(axis=-1) + p ** depth[-1]  # beyond, all items are shared

    return kernel


def jaccard(*, k: int | None) -> Kernel:
    """The number of items in the first k of both rankings, divided by that in the first k of either."""
    cut = _cutoff(k)

    def kernel(y: np.ndarray, s: np.ndarray) -> np.ndarray:
        depth = min(cut, y.shape[-1])
        shared = _shared(y, s)[..., depth - 1]
        return shared / (2 * depth - shared)

    return kernel


def _shared(y: np.ndarray, s: np.ndarray) -> np.ndarray:
    """(g, c, l) how many items are in the first 1, 2, ... of both rankings; ties are in the order of the rows."""
    place = lambda v: np.argsort(np.argsort(-v, axis=-1, kind="stable"), axis=-1, kind="stable")
    both = np.maximum(place(y)[:, None], place(s))  # the depth at which an item is in both
    cell = both + y.shape[-1] * np.arange(both.size // y.shape[-1]).reshape(*both.shape[:-1], 1)
    return np.cumsum(np.bincount(cell.ravel(), minlength=both.size).reshape(both.shape), axis=-1)


def _ranked(value: np.ndarray, s: np.ndarray, ties: str) -> tuple[np.ndarray, np.ndarray]:
    """Values (g, l) from largest to smallest score (g, c, l), and the ranks at which a run of ties starts."""
    if ties == "worst":
        upward = np.argsort(value, axis=-1)
        value, s = take(value, upward), take(s, upward[:, None])
    order = np.argsort(-s, axis=-1, kind=None if ties == "average" else "stable")
    new = np.ones(s.shape, dtype=bool)
    if ties == "average":
        t = take(s, order)
        np.not_equal(t[..., 1:], t[..., :-1], out=new[..., 1:])
    return take(value[:, None], order), new


def expected(ranked: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The expected value at each rank, with tied items in random order."""
    if new.all():
        return ranked
    _, t, total = _runs(ranked, new)
    return total / t


def _runs(ranked: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The start, length and total value of the run of ties that each rank belongs to."""
    first = np.flatnonzero(new)  # every row starts a run
    length = np.diff(first, append=new.size)
    total = np.add.reduceat(ranked.ravel(), first)
    start, length, total = (np.repeat(v, length).reshape(new.shape) for v in (first, length, total))
    return start % new.shape[-1], length, total


# ---------------------------------------------------------------- options


def unknown(what: str, name: object, valid: list[str]) -> str:
    close = difflib.get_close_matches(str(name).lower(), valid, n=1)
    return f"unknown {what} {name!r}{f'; did you mean {close[0]!r}?' if close else ''}; valid: {', '.join(valid)}"


def _choice(what: str, value: object, table: dict[str, Callable]) -> Callable:
    if callable(value):
        return value
    if value not in table:
        raise ValueError(unknown(what, value, [*table, "a function"]))
    return table[value]


def _tie_rule(ties: object) -> str:
    if ties not in TIES:
        raise ValueError(unknown("ties", ties, list(TIES)))
    return ties


def _cutoff(k: int | None) -> Any:
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
        raise ValueError(f"the cutoff k must be a whole number >= 1, got {k!r}")
    return k


def _empty_value(empty: Any) -> float:
    try:
        return np.nan if empty == "skip" else float(empty)
    except (TypeError, ValueError):
        message = f'empty must be "skip" or the value of a query without relevant items, got {empty!r}'
        raise ValueError(message) from None
