"""The quality of a semi-supervised ranker against the number of unscored rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from .. import checks
from ..core.queries import Queries
from ..estimators.pipelines import predicted, ranker_of
from ..metrics import get_metric, standard_error
from ..system.frames import as_column
from ..system.seeds import seed_of
from ..system.types import MatrixLike
from .display import Display
from .style import COLOURS, GREY, band, check_matplotlib, plain, tidy

N_SIZES = 6  # sizes in the default grid, which starts at no unscored rows


class UnscoredCurveDisplay(Display):
    """The quality on test queries of a ranker fitted with more and more unscored rows.

    Parameters
    ----------
    n_unscored : ndarray of shape (n_sizes,)
        Unscored rows in training, in increasing order.
    scores : ndarray of shape (n_sizes, n_repeats)
        The metric on the test queries, for each draw of unscored rows.
    errors : ndarray of shape (n_sizes,), default=None
        Standard error over test queries of the mean of the draws.
    metric : str, default="score"
        Name of the scores.

    Attributes
    ----------
    line_ : matplotlib line
        The mean of the draws.
    draws_ : matplotlib collection
        Each draw as a point.
    baseline_ : matplotlib line or None
        The level without unscored rows, if that was tried.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import CoRankRLS, View
    >>> from rankrls.datasets import make_search
    >>> from rankrls.plotting import UnscoredCurveDisplay
    >>> data, test = make_search(40, random_state=0), make_search(20, random_state=1)
    >>> y = np.where(np.isin(data.qid, np.unique(data.qid)[:8]), data.y, np.nan)  # eight scored queries
    >>> model = CoRankRLS(views=[View(slice(0, 6)), View(slice(6, 12))], nu=1.0)
    >>> display = UnscoredCurveDisplay.from_estimator(
    ...     model, data.X, y, data.qid, test.X, test.y, test.qid, sizes=[0, 200], n_repeats=2
    ... )
    >>> display.scores.shape
    (2, 2)
    """

    def __init__(self, n_unscored, scores, errors=None, *, metric="score"):
        self.n_unscored = n_unscored
        self.scores = scores
        self.errors = errors
        self.metric = metric

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        qid,
        X_test,
        y_test,
        qid_test=None,
        *,
        sizes=None,
        n_repeats=3,
        metric=None,
        random_state=0,
        ax=None,
    ):
        """Fit copies of a ranker with more and more of the unscored rows, and draw how well each ranks test queries.

        Parameters
        ----------
        estimator : CoRankRLS, TransductiveRankRLS or RankingPursuit
            The ranker to copy and fit; it is not changed. Views with random bases need enough rows even at small sizes.
        X, y, qid
            Training rows as in `fit`, y NaN where unscored.
        X_test, y_test, qid_test
            Test rows.
        sizes : sequence of int, default=None
            Numbers of unscored rows. Whole queries are drawn; one that would exceed the number is left out. None: zero
            and five more up to all rows, each twice the one before.
        n_repeats : int, default=3
            Number of random draws; in a draw, larger sizes include the rows of smaller ones.
        metric : str or callable, default=None
        None: the `scoring` of the estimator.
        random_state : int, default=0
            Seed of the draws.
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display : UnscoredCurveDisplay
        """
        check_matplotlib()
        if n_repeats < 1:
            raise ValueError(f"n_repeats must be at least 1, got {n_repeats}")
        X, qid = checks.split_qid_column(X, qid)
        X_test, qid_test = checks.split_qid_column(X_test, qid_test)
        y = np.asarray(as_column(y), dtype=np.float64)
        unscored = np.isnan(y)
        if not unscored.any():
            raise ValueError("every row has a score: set y to NaN where a row is unscored")
        sizes = _checked_sizes(sizes, int(unscored.sum()))
        metric = get_metric(ranker_of(estimator).scoring if metric is None else metric)
        queries = checks.check_queries(qid, len(y))
        rng = np.random.default_rng(seed_of(random_state))
        counts, found = np.zeros((len(sizes), n_repeats)), []
        for repeat in range(n_repeats):
            order = _order(queries, unscored, rng)
            for number, size in enumerate(sizes):
                rows = np.sort(np.concatenate([np.flatnonzero(~unscored), _drawn(order, queries, size)]))
                counts[number, repeat] = len(rows) - (~unscored).sum()
                model = _fitted(clone(estimator), _safe_indexing(X, rows), y[rows], queries.labels[queries.codes[rows]])
                found.append(metric.per_query(y_test, predicted(model, X_test, qid_test), qid_test))
        values = np.stack(found, axis=1).reshape(-1, n_repeats, len(sizes))  # (q, r, k)
        values = values[~np.isnan(values).any(axis=(1, 2))]
        if not len(values):
            raise ValueError(f"{metric.name} is not defined for any test query")
        errors = standard_error(values.mean(axis=1))
        return cls(counts.mean(axis=1), values.mean(axis=0).T, errors, metric=metric.name).plot(ax=ax)

    def _draw(self) -> None:
        n, scores = np.asarray(self.n_unscored), np.asarray(self.scores)
        mean = scores.mean(axis=1)
        shade = band(self.ax_, n, mean, self.errors, COLOURS[0])
        (self.line_,) = self.ax_.plot(n, mean, "o-", color=COLOURS[0], label="mean of the draws")
        if shade is not None:
            shade.set_label("± one standard error over test queries")
        deviation = np.repeat(n, scores.shape[1])
        style = {"s": 12, "color": COLOURS[0], "alpha": 0.5, "zorder": 2, "label": "each draw of unscored rows"}
        self.draws_ = self.ax_.scatter(deviation, scores.ravel(), **style)
        self.baseline_ = None
        if n[0] == 0:
            style = {"color": GREY, "linestyle": "--", "linewidth": 1, "label": "no unscored rows"}
            self.baseline_ = self.ax_.axhline(mean[0], **style)
        if len(n) > 2 and n[-1] > 8 * n[n > 0][0]:
            self.ax_.set_xscale("symlog", linthresh=n[n > 0][0])
            self.ax_.set_xlim(-0.1 * n[n > 0][0], n[-1] * 1.15)
            self.ax_.set_xticks(n, [f"{size:,.0f}" for size in n])
            self.ax_.minorticks_off()
        tidy(self.ax_, x="unscored rows in training", y=f"{plain(self.metric)} on test queries")
        self.ax_.legend(frameon=False, fontsize="small")


def _checked_sizes(sizes: Any, most: int) -> np.ndarray:
    if sizes is None:
        return np.unique([0, *(most // 2**i for i in range(N_SIZES - 1))])
    sizes = np.unique(np.asarray(list(sizes), dtype=int))
    if not len(sizes) or sizes[0] < 0 or sizes[-1] > most:
        raise ValueError(f"sizes must be between 0 and {most}, the number of unscored rows, got {sizes.tolist()}")
    return sizes


def _order(queries: Queries, unscored: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The unscored rows in random order, keeping queries together; row by row if there is only one query."""
    rows = np.flatnonzero(unscored)
    if len(np.unique(queries.codes[rows])) == 1:
        return rng.permutation(rows)
    return rows[np.argsort(rng.permutation(len(queries))[queries.codes[rows]], kind="stable")]


def _drawn(order: np.ndarray, queries: Queries, size: int) -> np.ndarray:
    """The first rows of an order, without an incomplete last query."""
    if size == len(order) or len(np.unique(queries.codes[order])) == 1:
        return order[:size]
    cut = queries.codes[order[size]]
    return order[:size][queries.codes[order[:size]] != cut]


def _fitted(model: BaseEstimator, X: MatrixLike, y: np.ndarray, qid: np.ndarray) -> Any:
    """The fitted model, without the warning about views that have nothing to agree on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no query has two of the")
        return model.fit(X, y, qid=qid)
