"""Cross-fitting and stacking for any rankers, as AutoRanker uses them for its candidates."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from .. import checks
from ..core.preferences import QueryPreferences
from ..estimators.pipelines import learned, predicted
from ..system.seeds import seed_of
from ..system.types import ArrayLike, Ids, MatrixLike
from .crossfit import Folds
from .stack import RIDGE, stack


def cross_fit(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike, qid: Ids, *, n_folds: int = 3, random_state: int = 0
) -> np.ndarray:
    """Scores of every row by a model that never saw its query, from one fit per fold of queries.

    Parameters
    ----------
    model : ranker or Pipeline
        Cloned, and fitted to the other folds, from which it learns everything.
    X, y, qid : array-like
        Items, relevance and query of each row.
    n_folds : int, default=3
        Number of folds of queries. With fewer than six queries, folds are made of rows instead.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    scores : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from rankrls import RankRLS, cross_fit, metrics
    >>> from rankrls.datasets import make_search
    >>> data = make_search(30, random_state=0)
    >>> held_out = cross_fit(RankRLS(), data.X, data.y, data.qid)
    >>> metrics.ndcg(data.y, held_out, data.qid, k=10) > 0.6
    True
    """
    checks.check_count("n_folds", n_folds, 2)
    y = checks.check_numbers("y", y, len(np.asarray(y)))
    queries = checks.check_queries(qid, len(y))
    folds = Folds.deal(queries, n_folds, np.random.default_rng(seed_of(random_state)))
    ids, scores = queries.labels[queries.codes], np.empty(len(y))
    for fold in range(len(folds)):
        rest, held = folds.others(fold), folds.rows(fold)
        fitted = learned(clone(model), _safe_indexing(X, rest), y[rest], ids[rest])
        scores[held] = predicted(fitted, _safe_indexing(X, held), ids[held])
    return scores


def stack_weights(scores: ArrayLike, y: ArrayLike, qid: Ids, *, ridge: float = RIDGE) -> np.ndarray:
    """Non-negative weights of several rankers, by pairwise ridge regression on their held-out scores.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_rankers)
        Held-out scores, such as those of `cross_fit`.
    y, qid : array-like of shape (n_samples,)
        Relevance and query of each row.
    ridge : float, default=0.1
        Regularisation towards equal weights, in units of the mean energy of the scores.

    Returns
    -------
    weights : ndarray of shape (n_rankers,)
        `scores @ weights` is the stack. Rankers with less than a tenth of all weight are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import stack_weights
    >>> y, qid = np.array([2.0, 1, 0, 1, 0, 2]), [1, 1, 1, 2, 2, 2]
    >>> stack_weights(np.column_stack([y, -y]), y, qid).round(2)
    array([1., 0.])
    """
    H = np.asarray(scores, dtype=np.float64)
    if H.ndim != 2 or not np.isfinite(H).all():
        raise ValueError(
            f"scores must be finite numbers with a column for each ranker: got an array of shape {H.shape}"
        )
    y = checks.check_numbers("y", y, len(H))
    queries = checks.check_queries(qid, len(H))
    checks.check_comparable(y, queries)
    F = QueryPreferences(queries, y, weighting="items")
    deviation = np.sqrt(((F @ H) ** 2).mean(axis=0))
    deviation = np.where(deviation > 0, deviation, 1.0)
    return stack(F, H / deviation, y, checks.check_number("ridge", ridge, auto=False)) / deviation
