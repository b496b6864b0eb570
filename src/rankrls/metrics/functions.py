"""How well scores rank the items of each query: the mean of a per-query number.

Every metric is a kernel on a batch of g queries of l items each: labels (g, l) and scores (g, c, l), one row of
scores per model (regularisation value), give values (g, c), NaN where the metric is undefined for a query. The rest
is shared: `_each_query` runs a kernel over the batches, `_mean` averages over the queries where it is defined. Whether
a metric is defined depends on the labels alone, so all columns of scores are averaged over the same queries.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from ..core.queries import Batch, Queries
from ..system.limits import limits
from ..system.parallel import share
from ..system.types import ArrayLike
from . import pairs, ranks
from .counted import Counted
from .intake import QueryIds, checked
from .pairs import Kernel

Value: TypeAlias = Any  # a float for scores (m,), an array (c,) for scores (m, c)


def pairwise_accuracy(y: ArrayLike, scores: ArrayLike, qid: QueryIds = None) -> float:
    """#{(i, j): y_i > y_j, s_i > s_j} / #{(i, j): y_i > y_j}, tied scores counting half.

    The share of pairs with different labels, within a query, that the scores put in the right order; with two grades
    it is the area under the ROC curve. Labels may be any real numbers; only their order matters.

    Parameters
    ----------
    y : array (m,)
        Labels, greater is better.
    scores : array (m,) or (m, c)
        Predicted scores; each column is judged separately.
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


def auc(y: ArrayLike, scores: ArrayLike, qid: QueryIds = None, *, relevant: float = 1.0) -> Value:
    """The area under the ROC curve: the share of (relevant, irrelevant) pairs in the right order.

    An item is relevant if y >= `relevant`; tied scores count half. With two grades it is `pairwise_accuracy`. A query
    in which all or none are relevant is left out. Other parameters as in `pairwise_accuracy`.

    Examples
    --------
    >>> auc([1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1])
    0.75
    >>> auc([2, 1, 0], [0.9, 0.1, 0.5], relevant=2)
    1.0
    """
    return _mean("auc", y, scores, qid, relevant=relevant)


def disagreement_error(
    y: ArrayLike, scores: ArrayLike, qid: QueryIds = None, *, convention: str | None = None
) -> float:
    """1 - pairwise_accuracy: the share of pairs with different labels in the wrong order, tied scores counting half.

    The mean over i, j with y_i > y_j of (1 - sign(s_i - s_j)) / 2. Other parameters as in `pairwise_accuracy`.

    Parameters
    ----------
    convention : {"papers"}, optional
        "papers" averages `|sign(y_i - y_j) - sign(s_i - s_j)| / 2` over all pairs of a query, including those with
        equal labels, as equation 1 of [Pahikkala07] and [Tsivtsivadze10] does: telling apart two items with equal
        labels is half an error. Queries with a single label then count; those with a single row do not.

    Examples
    --------
    >>> disagreement_error([2, 1, 0], [0.5, 0.5, 0.1])  # one tie among three pairs
    0.16666666666666663
    >>> y, scores = [1, 1, 0], [3, 2, 1]
    >>> disagreement_error(y, scores), round(disagreement_error(y, scores, convention="papers"), 4)
    (0.0, 0.1667)
    """
    return _mean("disagreement_error", y, scores, qid, convention=convention)


def kendall_tau_b(y: ArrayLike, scores: ArrayLike, qid: QueryIds = None) -> float:
    """(C - D) / sqrt((n - T_y) (n - T_s)): concordant minus discordant pairs, corrected for ties.

    n is the number of pairs of a query, T_y and T_s those tied in y and in the scores. A query whose labels are
    all equal is left out; one whose scores are all equal counts 0 (some libraries leave it undefined), so every
    model is judged on the same queries. Parameters as in `pairwise_accuracy`.

    Examples
    --------
    >>> kendall_tau_b([1.5, -2.0, 0.3, 0.2], [4, 1, 2, 3])
    0.6666666666666667
    """
    return _mean("kendall_tau_b", y, scores, qid)


def ndcg(
    y: ArrayLike,
    scores: ArrayLike,
    qid: QueryIds = None,
    *,
    k: int | None = None,
    gain: str | Callable | None = None,
    discount: str | Callable | None = None,
    ties: str | None = None,
    empty: str | float | None = None,
    convention: str | None = None,
) -> float:
    """DCG / ideal DCG, DCG = sum over ranks i <= k of gain(y of the item at rank i) * discount(i).

    Parameters
    ----------
    y, scores, qid
        As in `pairwise_accuracy`.
    k : int, optional
        Only the first k ranks count.
    gain : {"exp2", "linear", "positive"} or callable, optional
        2^y - 1 (default), y, max(y, 0), or a function of an array of labels. Gains must not be negative: ndcg
        means nothing if the ideal DCG can be negative, or zero although there are relevant items.
    discount : {"log2", "letor"} or callable, optional
        1 / log2(i + 1) (default), 1 / log2(max(i, 2)), or a function of the array of ranks 1, 2, ...
    ties : {"average", "stable", "worst"}, optional
        Tied scores: expected value over their orders (default), in the order of the rows, or smallest gain first.
    empty : {"skip"} or float, optional
        The value of a query in which every gain is 0; by default it is left out of the mean.
    convention : {"letor", "xgboost", "lightgbm", "catboost", "sklearn", "trec"}, optional
        The four choices above as that tool makes them; explicit arguments take precedence. (trec_eval breaks
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


def precision(
    y: ArrayLike, scores: ArrayLike, qid: QueryIds = None, *, k: int, relevant: float = 1.0, ties: str = "average"
) -> float:
    """#{relevant items among the first k} / k.

    An item is relevant if y >= `relevant`. A query shorter than k is padded with irrelevant items.
    Other parameters as in `ndcg`.

    Examples
    --------
    >>> precision([2, 0, 1, 0], [4, 3, 2, 1], k=2), precision([2, 0, 1, 0], [4, 3, 2, 1], k=2, relevant=0)
    (0.5, 1.0)
    """
    return _mean("precision", y, scores, qid, k=k, relevant=relevant, ties=ties)


def recall(
    y: ArrayLike,
    scores: ArrayLike,
    qid: QueryIds = None,
    *,
    k: int,
    relevant: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
) -> float:
    """#{relevant items among the first k} / #{relevant items}.

    An item is relevant if y >= `relevant`; a query without one counts as `empty`. Other parameters as in `ndcg`.

    Examples
    --------
    >>> recall([1, 0, 1, 0], [4, 3, 2, 2], k=3)  # the third place is shared
    0.75
    """
    return _mean("recall", y, scores, qid, k=k, relevant=relevant, ties=ties, empty=empty)


def average_precision(
    y: ArrayLike,
    scores: ArrayLike,
    qid: QueryIds = None,
    *,
    k: int | None = None,
    relevant: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
) -> float:
    """The sum of the precision at i over the ranks i <= k of relevant items / #{relevant items}; "MAP" when averaged.

    An item is relevant if y >= `relevant`; a query without one counts as `empty` (LETOR: 0). The divisor is the
    number of all relevant items even if k is smaller. Other parameters as in `ndcg`.

    Examples
    --------
    >>> average_precision([1, 0, 1, 0], [4, 3, 2, 1])  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    return _mean("average_precision", y, scores, qid, k=k, relevant=relevant, ties=ties, empty=empty)


def reciprocal_rank(
    y: ArrayLike,
    scores: ArrayLike,
    qid: QueryIds = None,
    *,
    k: int | None = None,
    relevant: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
) -> float:
    """1 / (rank of the first relevant item), 0 if that is beyond k; "MRR" when averaged.

    An item is relevant if y >= `relevant`; a query without one counts as `empty`. Other parameters as in `ndcg`.

    Examples
    --------
    >>> reciprocal_rank([0, 1, 1], [3, 2, 1]), reciprocal_rank([0, 1, 1], [3, 3, 1])
    (0.5, 0.75)
    """
    return _mean("reciprocal_rank", y, scores, qid, k=k, relevant=relevant, ties=ties, empty=empty)


def err(
    y: ArrayLike,
    scores: ArrayLike,
    qid: QueryIds = None,
    *,
    k: int | None = None,
    max_grade: float = 4.0,
    ties: str = "average",
    empty: str | float = "skip",
) -> Value:
    """Expected reciprocal rank: the mean of 1 / (rank where a reader stops), stopping with probability
    (2^y - 1) / 2^max_grade at each item.

    A reader who has found the answer stops, so a second good item adds little. Labels range from 0 to `max_grade`. A
    query without a label above 0 counts as `empty`. Other parameters as in `ndcg`.

    Examples
    --------
    >>> err([3, 2, 0], [3, 2, 1])  # 7/16 + 1/2 (1 - 7/16) 3/16
    0.490234375
    """
    return _mean("err", y, scores, qid, k=k, max_grade=max_grade, ties=ties, empty=empty)


def rbo(y: ArrayLike, scores: ArrayLike, qid: QueryIds = None, *, p: float = 0.9) -> Value:
    """Rank-biased overlap of two rankings: (1 - p) sum over depths d of p^(d-1) #{in both among the first d} / d.

    y are the scores of the other ranking, such as those of the model in production. 1 where the two agree; a difference
    at the top counts most, and more so for smaller p. Beyond the last item the overlap is complete. Ties are broken by
    row order.

    Examples
    --------
    >>> rbo([3, 2, 1], [30, 20, 10]), round(rbo([3, 2, 1], [10, 20, 30]), 4)
    (1.0, 0.855)
    """
    return _mean("rbo", y, scores, qid, p=p)


def jaccard(y: ArrayLike, scores: ArrayLike, qid: QueryIds = None, *, k: int) -> Value:
    """#{first k of both rankings} / #{first k of either ranking}: how much of the top the two rankings share.

    y are the scores of the other ranking. Ties are broken by row order. A query shorter than k counts 1.

    Examples
    --------
    >>> jaccard([4, 3, 2, 1], [4, 1, 3, 2], k=2)
    0.3333333333333333
    """
    return _mean("jaccard", y, scores, qid, k=k)


def _mean(name: str, y: ArrayLike, scores: ArrayLike, qid: QueryIds, **options: Any) -> Value:
    """The mean of a metric over the queries where it is defined, for each column of scores."""
    return _average(name, _per_query(name, y, scores, qid, **options))


def _average(name: str, values: np.ndarray) -> Value:
    """The mean of values (q,) or (q, c) over the queries where they are defined."""
    defined = ~np.isnan(values.reshape(len(values), -1)).any(axis=1)
    if not defined.any():
        raise ValueError(
            f"{name} is not defined in any of the {len(values)} queries: no query has "
            + ("two different labels" if name in PAIR_METRICS else "a relevant item (see the option `empty`)")
        )
    mean = values[defined].mean(axis=0)
    return mean if mean.ndim else float(mean)


def _per_query(name: str, y: ArrayLike, scores: ArrayLike, qid: QueryIds, **options: Any) -> np.ndarray:
    kernel = _kernel(name, options)
    labels, S, queries = checked(y, scores, qid)
    values = _each_query(kernel, labels, S.reshape(len(labels), -1), queries)
    return values[:, 0] if S.ndim == 1 else values


def _each_query(kernel: Kernel, y: np.ndarray, S: np.ndarray, queries: Queries) -> np.ndarray:
    """(q, c) the kernel of every query and column of S (m, c)."""
    c = S.shape[1]
    values = np.empty((len(queries), c))
    rest = kernel.write(y, S, queries, values) if isinstance(kernel, Counted) else None
    if rest is not None and not len(rest):
        return values

    def evaluate(pieces: Sequence[tuple[Batch, slice]]) -> None:
        for batch, columns in pieces:
            s = np.ascontiguousarray(batch.stack(S[:, columns]).swapaxes(1, 2))  # sorting needs contiguous rows
            values[batch.queries, columns] = kernel(batch.stack(y), s)

    pieces = []
    for batch in queries.batches(max(1, limits.metric_cells // c), rest):
        step = max(1, limits.metric_cells // (len(batch.queries) * batch.length))  # few columns if queries are long
        pieces += [(batch, slice(j, j + step)) for j in range(0, c, step)]
    share(evaluate, pieces, cost=S.size)
    return values


def _kernel(name: str, options: dict[str, Any]) -> Kernel:
    """The kernel of a metric, with the defaults of its public function."""
    known, kernel = dict(_defaults(name)), METRICS[name][1]
    for option in options.keys() - known.keys():
        raise ValueError(f"{name} has no option {option!r}; its options are: {', '.join(known) or 'none'}")
    known.update(options)
    if known.get("k", 1) in (None, inspect.Parameter.empty) and name in ("precision", "recall", "jaccard"):
        raise ValueError(f'{name} needs a cutoff: k=10, or the name "{name}@10"')
    return kernel(**known)


@cache
def _defaults(name: str) -> dict[str, Any]:
    """The options of a metric's public function."""
    parameters = inspect.signature(METRICS[name][0]).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


METRICS: dict[str, tuple[Callable[..., Value], Callable[..., Kernel]]] = {
    "pairwise_accuracy": (pairwise_accuracy, pairs.accuracy),
    "auc": (auc, pairs.auc),
    "disagreement_error": (disagreement_error, pairs.disagreement_error),
    "kendall_tau_b": (kendall_tau_b, lambda: pairs.kendall_tau_b),
    "ndcg": (ndcg, ranks.ndcg),
    "precision": (precision, partial(ranks.relevance, ranks.expected, lambda n, k: np.full_like(n, k))),
    "recall": (recall, partial(ranks.relevance, ranks.expected, lambda n, k: n)),
    "average_precision": (average_precision, partial(ranks.relevance, ranks.precision_at_hits, lambda n, k: n)),
    "reciprocal_rank": (reciprocal_rank, partial(ranks.relevance, ranks.first_hit, lambda n, k: n > 0)),
    "err": (err, ranks.cascade),
    "rbo": (rbo, ranks.overlap),
    "jaccard": (jaccard, ranks.jaccard),
}


PAIR_METRICS = ("pairwise_accuracy", "auc", "disagreement_error", "kendall_tau_b")
ALIASES = {
    "map": "average_precision",
    "mrr": "reciprocal_rank",
    "roc_auc": "auc",
    "kendall_tau": "kendall_tau_b",
    "expected_reciprocal_rank": "err",
    "rank_biased_overlap": "rbo",
}
