"""How well scores rank the items of each query: the mean of a per-query number.

Every metric is a kernel on a batch of g queries of l items each: labels (g, l) and scores (g, c, l), one row of
scores per model (regularisation value), give values (g, c), NaN where a query does not define the metric. All else
is shared: `_each_query` runs a kernel over the batches, `_mean` averages over the queries that define it. Whether a
query defines a metric depends on its labels alone, so columns of scores are always averaged over the same queries.

Ties. A metric must not depend on the order of the rows, so tied scores count by default with their expected value
over random tie breaking, in closed form. Within a run of t tied items of total gain G that starts after position a,
every position has expected gain G / t: enough for metrics linear in the gains (ndcg, precision, recall). With r
relevant items in the run and R before it, position a + i holds a relevant item with probability r / t, and then
R + 1 + (i - 1) (r - 1) / (t - 1) relevant items are expected up to it (average precision); if nothing relevant
came before a + i, the item there is relevant with probability r / (t - i + 1) (reciprocal rank).
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from rankrls.queries import Batch, Queries

__all__ = [
    "Metric",
    "average_precision",
    "disagreement_error",
    "get_metric",
    "kendall_tau_b",
    "ndcg",
    "pairwise_accuracy",
    "per_query",
    "precision",
    "recall",
    "reciprocal_rank",
]

Value = Any  # a float for scores (m,), an array (c,) for scores (m, c)
Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]  # labels (g, l), scores (g, c, l) -> (g, c)

BATCH_CELLS = 1 << 18  # scores per kernel call: bounds the memory, and all but long queries come many at a time
THREADED_CELLS = 1 << 14  # with fewer scores per call threads wait for each other
THREADS = min(4, os.cpu_count() or 1)

# Conventions of ndcg: gain, discount, ties, value of a query without a relevant item.
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


# ---------------------------------------------------------------- metrics


def pairwise_accuracy(y: Any, scores: Any, qid: Any = None) -> Value:
    """#{(i, j): y_i > y_j, s_i > s_j} / #{(i, j): y_i > y_j}, tied scores counting half.

    The share of pairs of one query with different labels that the scores put in the right order; with two grades
    the area under the ROC curve. Labels may be any real numbers; only their order counts.

    Parameters
    ----------
    y : array (m,)
        Labels, greater is better.
    scores : array (m,) or (m, c)
        Predicted scores; each column is judged on its own.
    qid : array (m,) or Queries, optional
        The query of each row: ids of any sortable type, rows in any order. Without it all rows are one query.

    Returns
    -------
    float or array (c,)
        The mean over the queries that have at least two different labels.

    Examples
    --------
    >>> pairwise_accuracy([3, 2, 1], [0.9, 0.1, 0.5])  # one pair of three is swapped
    0.6666666666666666
    >>> pairwise_accuracy([1, 0, 1, 0], [0.3, 0.3, 0.2, 0.1], qid=["a", "a", "b", "b"])
    0.75
    """
    return _mean("pairwise_accuracy", y, scores, qid)


def disagreement_error(y: Any, scores: Any, qid: Any = None) -> Value:
    """1 - pairwise_accuracy: the share of pairs with different labels in the wrong order, tied scores counting half.

    The mean over i, j with y_i > y_j of (1 - sign(s_i - s_j)) / 2. Parameters as in `pairwise_accuracy`.

    Examples
    --------
    >>> disagreement_error([2, 1, 0], [0.5, 0.5, 0.1])  # one tie among three pairs
    0.16666666666666663
    """
    return _mean("disagreement_error", y, scores, qid)


def kendall_tau_b(y: Any, scores: Any, qid: Any = None) -> Value:
    """(C - D) / sqrt((n - T_y) (n - T_s)): concordant minus discordant pairs, corrected for ties.

    n is the number of pairs of a query, T_y and T_s those tied in y and in the scores. A query whose labels are
    all equal is left out; one whose scores are all equal counts 0 (where some define nothing), so that every
    model is judged on the same queries. Parameters as in `pairwise_accuracy`.

    Examples
    --------
    >>> kendall_tau_b([1.5, -2.0, 0.3, 0.2], [4, 1, 2, 3])
    0.6666666666666667
    """
    return _mean("kendall_tau_b", y, scores, qid)


def ndcg(
    y: Any,
    scores: Any,
    qid: Any = None,
    *,
    k: int | None = None,
    gain: str | Callable | None = None,
    discount: str | Callable | None = None,
    ties: str | None = None,
    empty: str | float | None = None,
    convention: str | None = None,
) -> Value:
    """DCG / ideal DCG, DCG = sum over ranks i <= k of gain(y of the item at rank i) * discount(i).

    Parameters
    ----------
    y, scores, qid
        As in `pairwise_accuracy`.
    k : int, optional
        Only the first k ranks count.
    gain : {"exp2", "linear", "positive"} or callable, optional
        2^y - 1 (default), y, max(y, 0), or a function of an array of labels. Gains must not be negative: ndcg
        has no meaning where the ideal DCG may be negative or nil with relevant items about.
    discount : {"log2", "letor"} or callable, optional
        1 / log2(i + 1) (default), 1 / log2(max(i, 2)), or a function of the array of ranks 1, 2, ...
    ties : {"average", "stable", "worst"}, optional
        Tied scores: expected value over their orders (default), in the order of the rows, or smallest gain first.
    empty : {"skip"} or float, optional
        The value of a query in which every gain is 0; by default it is left out of the mean.
    convention : {"letor", "xgboost", "lightgbm", "catboost", "sklearn", "trec"}, optional
        The four choices above as that tool makes them; those given explicitly take precedence. (trec_eval breaks
        ties by descending document id: rows in that order reproduce it.)

    Examples
    --------
    >>> y, scores = [2, 0, 1, 0], [0.4, 0.9, 0.2, 0.1]
    >>> round(ndcg(y, scores), 4), round(ndcg(y, scores, k=1), 4)
    (0.659, 0.0)
    >>> round(ndcg(y, scores, convention="letor", k=3), 4)
    0.9077
    >>> ndcg([0, 0, 1, 0], [4, 3, 2, 1], qid=[7, 7, 8, 8], convention="xgboost", empty=0)
    0.5
    """
    return _mean(
        "ndcg", y, scores, qid, k=k, gain=gain, discount=discount, ties=ties, empty=empty, convention=convention
    )


def precision(y: Any, scores: Any, qid: Any = None, *, k: int, relevant: float = 1.0, ties: str = "average") -> Value:
    """#{relevant items among the first k} / k.

    An item is relevant if y >= `relevant`. A query shorter than k counts as filled up with irrelevant items.
    Other parameters as in `ndcg`.

    Examples
    --------
    >>> precision([2, 0, 1, 0], [4, 3, 2, 1], k=2), precision([2, 0, 1, 0], [4, 3, 2, 1], k=2, relevant=0)
    (0.5, 1.0)
    """
    return _mean("precision", y, scores, qid, k=k, relevant=relevant, ties=ties)


def recall(
    y: Any,
    scores: Any,
    qid: Any = None,
    *,
    k: int,
    relevant: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
) -> Value:
    """#{relevant items among the first k} / #{relevant items}.

    An item is relevant if y >= `relevant`; a query without one counts as `empty`. Other parameters as in `ndcg`.

    Examples
    --------
    >>> recall([1, 0, 1, 0], [4, 3, 2, 2], k=3)  # the third place is shared
    0.75
    """
    return _mean("recall", y, scores, qid, k=k, relevant=relevant, ties=ties, empty=empty)


def average_precision(
    y: Any,
    scores: Any,
    qid: Any = None,
    *,
    k: int | None = None,
    relevant: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
) -> Value:
    """The sum of precision@i over the ranks i <= k of relevant items / #{relevant items}; "MAP" when averaged.

    An item is relevant if y >= `relevant`; a query without one counts as `empty` (LETOR: 0). The divisor is the
    number of all relevant items also where k is smaller. Other parameters as in `ndcg`.

    Examples
    --------
    >>> average_precision([1, 0, 1, 0], [4, 3, 2, 1])  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    return _mean("average_precision", y, scores, qid, k=k, relevant=relevant, ties=ties, empty=empty)


def reciprocal_rank(
    y: Any,
    scores: Any,
    qid: Any = None,
    *,
    k: int | None = None,
    relevant: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
) -> Value:
    """1 / (rank of the first relevant item), 0 if that is beyond k; "MRR" when averaged.

    An item is relevant if y >= `relevant`; a query without one counts as `empty`. Other parameters as in `ndcg`.

    Examples
    --------
    >>> reciprocal_rank([0, 1, 1], [3, 2, 1]), reciprocal_rank([0, 1, 1], [3, 3, 1])
    (0.5, 0.75)
    """
    return _mean("reciprocal_rank", y, scores, qid, k=k, relevant=relevant, ties=ties, empty=empty)


# ---------------------------------------------------------------- kernels of pairs


def _pairwise_accuracy(y: np.ndarray, s: np.ndarray) -> np.ndarray:
    balance, untied, _ = _pairs(y, s)
    return _ratio(untied + balance, 2 * untied, np.nan)


def _disagreement_error(y: np.ndarray, s: np.ndarray) -> np.ndarray:
    return 1 - _pairwise_accuracy(y, s)


def _kendall_tau_b(y: np.ndarray, s: np.ndarray) -> np.ndarray:
    balance, untied, untied_scores = _pairs(y, s)
    tau = _ratio(balance, np.sqrt(untied) * np.sqrt(untied_scores), 0.0)
    return np.where(untied > 0, tau, np.nan)


def _pairs(y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Concordant minus discordant pairs (g, c), pairs untied in y (g, 1) and in s (g, c). O(l log l) per query.

    With the labels in order of the scores, and in their own order where scores tie, every pair out of order is
    discordant; the others with different labels are concordant or among those `tied` by the scores only.
    """
    level, untied = _levels(y)
    tied, tied_scores = np.zeros(s.shape[:2]), np.zeros(s.shape[:2])
    ordered, rows = _in_order(level, s)
    if rows.any():
        query = np.nonzero(rows)[0]
        ordered[rows], tied[rows], tied_scores[rows] = _in_order_with_ties(level[query], s[rows])
    n = y.shape[1] * (y.shape[1] - 1) // 2
    return untied - tied - 2 * _inversions(ordered), untied, n - tied_scores


def _levels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels of each query numbered 0, 1, ... in their order (g, l), and the pairs they do not tie (g, 1)."""
    order = np.argsort(y, axis=-1)
    t = _take(y, order)
    level = np.zeros(y.shape, dtype=np.int64)
    np.put_along_axis(level, order[:, 1:], np.cumsum(t[:, 1:] != t[:, :-1], axis=-1), axis=-1)
    return level, (y.shape[1] * (y.shape[1] - 1) // 2 - _tied_pairs(t))[:, None]


def _in_order(level: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Levels (g, l) in order of the scores (g, c, l), and the rows (g, c) for which ties may make this wrong.

    Sorting numbers is thrice as fast as sorting indices, so each level travels in the last bits of its score: as
    integers, floats sort as they should once all but the sign bit of the negative ones is flipped.
    """
    bits = int(level.max()).bit_length()
    key = (s.astype(np.float64) + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0
    key ^= (key >> 63) & np.iinfo(np.int64).max
    key >>= bits
    key <<= bits
    key |= level[:, None]
    key.sort(axis=-1)
    ordered = (key & ((1 << bits) - 1)).astype(np.int8 if bits < 8 else np.int32)
    key >>= bits
    return ordered, (key[..., 1:] == key[..., :-1]).any(axis=-1)


def _in_order_with_ties(level: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels (n, l) in order of the scores (n, l), then their own; the pairs tied in the scores only, and in all."""
    l = s.shape[-1]
    order = np.argsort(s, axis=-1)
    run = _run_starts(_take(s, order))
    key = np.sort(run * l + _take(level, order), axis=-1)
    tied = _tied_pairs(run)
    return key % l, tied - _tied_pairs(key), tied


def _inversions(v: np.ndarray) -> np.ndarray:
    """#{(i, j): i < j, v_i > v_j} in each row of v (g, c, l), of integers 0, 1, ..."""
    n_levels, length = int(v.max()) + 1, v.shape[-1]
    return _inversions_by_level(v, n_levels) if n_levels <= 4 * length.bit_length() else _inversions_by_merging(v)


def _inversions_by_level(v: np.ndarray, n_levels: int) -> np.ndarray:
    """Inversions counted at their smaller end, level by level. O(l n_levels)."""
    total = np.zeros(v.shape[:-1], dtype=np.int64)
    for level in range(n_levels - 1):
        greater_before = np.cumsum(v > level, axis=-1, dtype=np.int32)
        greater_before *= v == level
        total += greater_before.sum(axis=-1, dtype=np.int64)
    return total


def _inversions_by_merging(v: np.ndarray) -> np.ndarray:
    """Inversions between the halves of ever longer sorted blocks. O(l log² l), at any number of levels.

    In a sorted block the items of the left half would hold the first places; every inversion moves one of them
    one place back. The last bit of the sort key tells the halves apart and puts the left one first among equals.
    """
    *shape, l = v.shape
    padded = 1 << (l - 1).bit_length()
    v = np.concatenate([v, np.full((*shape, padded - l), l)], axis=-1, dtype=np.int32)
    total, half = np.zeros(shape, dtype=np.int64), 1
    while half < padded:
        key = 2 * v.reshape(-1, 2 * half)
        key[:, half:] += 1
        key.sort(axis=-1)
        places = ((key & 1) ^ 1) * np.arange(2 * half, dtype=v.dtype)
        moved = places.sum(axis=-1, dtype=np.int64) - half * (half - 1) // 2
        total += moved.reshape(*shape, -1).sum(axis=-1)
        v, half = key >> 1, 2 * half
    return total


def _run_starts(t: np.ndarray) -> np.ndarray:
    """The first place of the run of equal values that each place of a sorted row belongs to."""
    starts = np.zeros(t.shape, dtype=np.intp)
    starts[..., 1:] = np.where(t[..., 1:] != t[..., :-1], np.arange(1, t.shape[-1]), 0)
    return np.maximum.accumulate(starts, axis=-1)


def _tied_pairs(t: np.ndarray) -> np.ndarray:
    """#{(i, j): i < j, t_i = t_j} in each sorted row of t."""
    return (np.arange(t.shape[-1]) - _run_starts(t)).sum(axis=-1)


# ---------------------------------------------------------------- kernels of ranks


def _ndcg(*, k: Any, gain: Any, discount: Any, ties: Any, empty: Any, convention: Any) -> Kernel:
    if convention not in CONVENTIONS:
        raise ValueError(_unknown("convention", convention, [name for name in CONVENTIONS if name]))
    given = (gain, discount, ties, empty)
    gain, discount, ties, empty = (b if a is None else a for a, b in zip(given, CONVENTIONS[convention], strict=True))
    gain, discount = _choice("gain", gain, GAINS), _choice("discount", discount, DISCOUNTS)
    cut, ties, empty = _cutoff(k), _tie_rule(ties), _empty_value(empty)

    def kernel(y: np.ndarray, s: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            gains = np.asarray(gain(y), dtype=np.float64)
        if not (gains.min() >= 0 and gains.max() < np.inf):
            label, value = next((a, b) for a, b in zip(y.flat, gains.flat, strict=True) if not 0 <= b < np.inf)
            raise ValueError(
                f"ndcg needs finite gains >= 0, but the label {label:g} has gain {value:g}: shift the labels, pass "
                'another gain ("linear", "positive" or a function), or use pairwise_accuracy, which takes any real labels'
            )
        weights = discount(np.arange(1, y.shape[-1] + 1)[:cut])
        dcg = (_expected(*_ranked(gains, s, ties))[..., :cut] * weights).sum(axis=-1)
        ideal = (np.sort(gains, axis=-1)[:, None, ::-1][..., :cut] * weights).sum(axis=-1)
        return _ratio(dcg, ideal, empty)

    return kernel


def _relevance(terms: Callable, divisor: Callable, *, k: Any, relevant: float, ties: Any, empty: Any = 0) -> Kernel:
    """The kernel (sum of the terms of the first k places) / divisor(number of relevant items, k)."""
    cut, ties, empty = _cutoff(k), _tie_rule(ties), _empty_value(empty)

    def kernel(y: np.ndarray, s: np.ndarray) -> np.ndarray:
        hits = (y >= relevant).astype(np.float64)
        found = terms(*_ranked(hits, s, ties))[..., :cut].sum(axis=-1)
        return _ratio(found, divisor(hits.sum(axis=-1)[:, None], k), empty)

    return kernel


def _precision_at_hits(ranked: np.ndarray, new: np.ndarray) -> np.ndarray:
    """At each place: the chance of a relevant item, times the precision expected if it is one."""
    start, t, r = _runs(ranked, new)
    place = np.arange(ranked.shape[-1])
    before = _take(np.cumsum(ranked, axis=-1) - ranked, start)
    so_far = before + 1 + (place - start) * (r - 1) / np.maximum(t - 1, 1)
    return r / t * so_far / (place + 1)


def _first_hit(ranked: np.ndarray, new: np.ndarray) -> np.ndarray:
    """At each place: the chance that the first relevant item is there, over the rank."""
    start, t, r = _runs(ranked, new)
    place = np.arange(ranked.shape[-1])
    hit = np.minimum(1, r / (t - (place - start)))  # after t - r misses in a run the next is surely a hit
    all_missed = np.cumprod(1 - hit, axis=-1)
    hit[..., 1:] *= all_missed[..., :-1]
    return hit / (place + 1)


def _ranked(value: np.ndarray, s: np.ndarray, ties: str) -> tuple[np.ndarray, np.ndarray]:
    """Values (g, l) from greatest to smallest score (g, c, l), and the places where a run of ties starts."""
    if ties == "worst":
        upward = np.argsort(value, axis=-1)
        value, s = _take(value, upward), _take(s, upward[:, None])
    order = np.argsort(-s, axis=-1, kind=None if ties == "average" else "stable")
    new = np.ones(s.shape, dtype=bool)
    if ties == "average":
        t = _take(s, order)
        np.not_equal(t[..., 1:], t[..., :-1], out=new[..., 1:])
    return _take(value[:, None], order), new


def _expected(ranked: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The expected value at each place, tied items in random order."""
    if new.all():
        return ranked
    _, t, total = _runs(ranked, new)
    return total / t


def _runs(ranked: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The start, length and total value of the run of ties that each place belongs to."""
    first = np.flatnonzero(new)  # every row starts a run
    length = np.diff(first, append=new.size)
    total = np.add.reduceat(ranked.ravel(), first)
    start, length, total = (np.repeat(v, length).reshape(new.shape) for v in (first, length, total))
    return start % new.shape[-1], length, total


def _take(v: np.ndarray, order: np.ndarray) -> np.ndarray:
    """v (..., l) in an order of its last axis (what np.take_along_axis does, five times as fast)."""
    row = np.arange(0, v.size, v.shape[-1]).reshape(*v.shape[:-1], 1)
    return v.ravel().take(order + row)


def _ratio(a: np.ndarray, b: np.ndarray, empty: float) -> np.ndarray:
    """a / b, and `empty` where b = 0."""
    a, b = np.broadcast_arrays(a, b)
    return np.divide(a, b, out=np.full(a.shape, float(empty)), where=b > 0)


# ---------------------------------------------------------------- evaluation


def _mean(name: str, y: Any, scores: Any, qid: Any, **options: Any) -> Value:
    """The mean of a metric over the queries that define it, for each column of scores."""
    values = _per_query(name, y, scores, qid, **options)
    defined = ~np.isnan(values.reshape(len(values), -1)).any(axis=1)
    if not defined.any():
        raise ValueError(
            f"{name} is not defined in any of the {len(values)} queries: no query has "
            + ("two different labels" if name in PAIR_METRICS else "a relevant item (see the option `empty`)")
        )
    mean = values[defined].mean(axis=0)
    return mean if mean.ndim else float(mean)


def _per_query(name: str, y: Any, scores: Any, qid: Any, **options: Any) -> np.ndarray:
    kernel = _kernel(name, options)
    y, scores, queries = _checked(y, scores, qid)
    values = _each_query(kernel, y, scores.reshape(len(y), -1), queries)
    return values[:, 0] if scores.ndim == 1 else values


def _each_query(kernel: Kernel, y: np.ndarray, S: np.ndarray, queries: Queries) -> np.ndarray:
    """The kernel of every query and column of S (m, c): (q, c)."""
    c = S.shape[1]
    values = np.empty((len(queries), c))

    def evaluate(task: tuple[Batch, slice]) -> None:
        batch, columns = task
        s = np.ascontiguousarray(batch.stack(S[:, columns]).swapaxes(1, 2))  # sort along contiguous rows
        values[batch.queries, columns] = kernel(batch.stack(y), s)

    tasks = []
    for batch in queries.batches(max(1, BATCH_CELLS // c)):
        step = max(1, BATCH_CELLS // (len(batch.queries) * batch.length))  # a long query goes column by column
        tasks += [(batch, slice(j, j + step)) for j in range(0, c, step)]
    if len(tasks) == 1 or S.size < THREADED_CELLS * len(tasks):
        for task in tasks:
            evaluate(task)
    else:
        with ThreadPoolExecutor(THREADS) as pool:  # sorts and ufuncs release the interpreter lock
            list(pool.map(evaluate, tasks))
    return values


def _kernel(name: str, options: dict[str, Any]) -> Kernel:
    """The kernel of a metric, with the defaults of its public function."""
    function, kernel = METRICS[name]
    parameters = inspect.signature(function).parameters.values()
    known = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    for option in options.keys() - known.keys():
        raise ValueError(f"{name} has no option {option!r}; its options are: {', '.join(known) or 'none'}")
    known.update(options)
    if known.get("k", 1) in (None, inspect.Parameter.empty) and name in ("precision", "recall"):
        raise ValueError(f'{name} needs a cutoff: k=10, or the name "{name}@10"')
    return kernel(**known)


# ---------------------------------------------------------------- metrics by name


@dataclass(frozen=True)
class Metric:
    """A named metric: `metric(y, scores, qid)` is its mean, `metric.per_query(y, scores, qid)` its value per query."""

    name: str
    greater_is_better: bool
    _mean: Callable[..., Value] = field(repr=False)
    _per_query: Callable[..., np.ndarray] = field(repr=False)

    def __call__(self, y: Any, scores: Any, qid: Any = None) -> Value:
        return self._mean(y, scores, qid)

    def per_query(self, y: Any, scores: Any, qid: Any = None) -> np.ndarray:
        """(q,) for scores (m,), (q, c) for scores (m, c), NaN where a query does not define the metric."""
        return self._per_query(y, scores, qid)


def get_metric(metric: str | Callable | Metric) -> Metric:
    """The metric of a name such as "ndcg", "ndcg@10", "map" or "mrr", or around a function of (y, scores, qid).

    A function of yours is taken to return one number, the greater the better, for scores (m,); it is called once
    for each column of scores, and per query on the rows of that query.

    Examples
    --------
    >>> metric = get_metric("precision@1")
    >>> metric
    Metric(name='precision@1', greater_is_better=True)
    >>> metric([1, 0, 0, 1], [2, 1, 2, 1], qid=[0, 0, 1, 1])
    0.5
    >>> metric.per_query([1, 0, 0, 1], [2, 1, 2, 1], qid=[0, 0, 1, 1])
    array([1., 0.])
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str) or _is_ours(metric):
        return _named(metric, {})
    if not callable(metric):
        raise TypeError(f"a metric is a name or a function of (y, scores, qid), got {metric!r}")
    name = getattr(metric, "__name__", repr(metric))
    return Metric(name, True, partial(_by_column, metric), partial(_by_query, metric))


def per_query(metric: str | Callable | Metric, y: Any, scores: Any, qid: Any = None, **options: Any) -> np.ndarray:
    """The metric of each query: (q,) for scores (m,), (q, c) for scores (m, c), NaN where a query does not define it.

    Queries come in the order of `Queries.of(qid).labels`; `options` are those of the metric's own function.

    Examples
    --------
    >>> per_query("ndcg", [1, 0, 0, 0], [1, 2, 3, 4], qid=["a", "a", "b", "b"], k=1)
    array([ 0., nan])
    """
    if not options:
        return get_metric(metric).per_query(y, scores, qid)
    if not (isinstance(metric, str) or _is_ours(metric)):
        raise ValueError(f"the options {sorted(options)} go with a metric of this library, got {metric!r}")
    return _named(metric, options).per_query(y, scores, qid)


def _named(metric: Any, options: dict[str, Any]) -> Metric:
    name = metric if isinstance(metric, str) else metric.__name__
    base, at, k = name.strip().lower().partition("@")
    base = ALIASES.get(base, base)
    if base not in METRICS:
        raise ValueError(_unknown("metric", name, [*METRICS, *ALIASES, "ndcg@10"]))
    if at and not k.isdecimal():
        raise ValueError(f'the cutoff of a metric is a whole number, as in "{base}@10", got {name!r}')
    options = {"k": int(k), **options} if at else options
    _kernel(base, options)  # what it finds wrong should be said now
    better = base != "disagreement_error"
    return Metric(base + at + k, better, partial(_mean, base, **options), partial(_per_query, base, **options))


def _is_ours(metric: Any) -> bool:
    return any(metric is function for function, _ in METRICS.values())


def _by_column(function: Callable, y: Any, scores: Any, qid: Any) -> Value:
    y, scores, queries = _checked(y, scores, qid)
    qid = None if qid is None else queries.labels[queries.codes]
    if scores.ndim == 1:
        return float(function(y, scores, qid))
    return np.array([float(function(y, s, qid)) for s in scores.T])


def _by_query(function: Callable, y: Any, scores: Any, qid: Any) -> np.ndarray:
    y, scores, queries = _checked(y, scores, qid)
    rows = [queries.rows(i) for i in range(len(queries))]
    return np.array([_by_column(function, y[q], scores[q], queries.labels[queries.codes[q]]) for q in rows])


# ---------------------------------------------------------------- checks


def _checked(y: Any, scores: Any, qid: Any) -> tuple[np.ndarray, np.ndarray, Queries]:
    """Labels (m,), scores (m,) or (m, c) and their grouping, or an error that says what to do."""
    y, scores = np.asarray(y, dtype=np.float64), np.asarray(scores)
    if scores.dtype not in (np.float32, np.float64):
        scores = scores.astype(np.float64)
    if y.ndim != 1 or not y.size or scores.ndim not in (1, 2) or len(scores) != len(y) or not scores.size:
        raise ValueError(f"y (m,) and scores (m,) or (m, c) are needed, m > 0; got y {y.shape}, scores {scores.shape}")
    for what, v in (("y", y), ("scores", scores)):
        if np.isnan(v.min()):
            raise ValueError(
                f"{what} has {np.isnan(v).sum()} NaN, first in row {np.argwhere(np.isnan(v))[0, 0]}: drop them"
            )
    if isinstance(qid, Queries):
        queries = qid
    elif qid is None:
        queries = Queries.single(len(y))
    else:
        qid = np.asarray(qid)
        if qid.shape != y.shape:
            raise ValueError(f"qid needs one id per row, shape {y.shape}, got {qid.shape}")
        queries = Queries.of(qid)
    if queries.n_rows != len(y):
        raise ValueError(f"qid groups {queries.n_rows} rows, but y has {len(y)}")
    return y, scores, queries


def _unknown(what: str, name: Any, valid: list[str]) -> str:
    close = difflib.get_close_matches(str(name).lower(), valid, n=1)
    return f"unknown {what} {name!r}{f'; did you mean {close[0]!r}?' if close else ''}; valid: {', '.join(valid)}"


def _choice(what: str, value: Any, table: dict[str, Callable]) -> Callable:
    if callable(value):
        return value
    if value not in table:
        raise ValueError(_unknown(what, value, [*table, "a function"]))
    return table[value]


def _tie_rule(ties: Any) -> str:
    if ties not in TIES:
        raise ValueError(_unknown("ties", ties, list(TIES)))
    return ties


def _cutoff(k: Any) -> Any:
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
        raise ValueError(f"the cutoff k is a whole number >= 1, got {k!r}")
    return k


def _empty_value(empty: Any) -> float:
    try:
        return np.nan if empty == "skip" else float(empty)
    except (TypeError, ValueError):
        message = f'empty is "skip" or the number that a query without relevant items counts, got {empty!r}'
        raise ValueError(message) from None


METRICS: dict[str, tuple[Callable[..., Value], Callable[..., Kernel]]] = {
    "pairwise_accuracy": (pairwise_accuracy, lambda: _pairwise_accuracy),
    "disagreement_error": (disagreement_error, lambda: _disagreement_error),
    "kendall_tau_b": (kendall_tau_b, lambda: _kendall_tau_b),
    "ndcg": (ndcg, _ndcg),
    "precision": (precision, partial(_relevance, _expected, lambda n, k: np.full_like(n, k))),
    "recall": (recall, partial(_relevance, _expected, lambda n, k: n)),
    "average_precision": (average_precision, partial(_relevance, _precision_at_hits, lambda n, k: n)),
    "reciprocal_rank": (reciprocal_rank, partial(_relevance, _first_hit, lambda n, k: n > 0)),
}
PAIR_METRICS = ("pairwise_accuracy", "disagreement_error", "kendall_tau_b")
ALIASES = {"map": "average_precision", "mrr": "reciprocal_rank", "kendall_tau": "kendall_tau_b"}
