"""The trade-off between two targets."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..estimators.pipelines import predicted, ranker_of
from ..metrics import get_metric
from .display import Display
from .style import COLOURS, GREY, plain, tidy


class TradeOffDisplay(Display):
    """The metric of two targets against each other, for mixes from the first alone to the second alone.

    Parameters
    ----------
    weights : ndarray of shape (n_mixes,)
        The weight of the second target; the first has one minus that.
    first, second : ndarray of shape (n_mixes,)
        The metric of each target when ranking by the mix.
    names : list of str
        The two targets.
    metric : str, default="score"
        Name of the metric.

    Attributes
    ----------
    line_, points_ : matplotlib line and collection
        The curve, and some of its mixes.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> from rankrls.datasets import make_search
    >>> from rankrls.plotting import TradeOffDisplay
    >>> data = make_search(40, random_state=0)
    >>> Y = np.column_stack([data.y, -data.X[:, data.feature_names.index("freshness_days")]])
    >>> model = RankRLS(tied_pairs=True).fit(data.X, Y / Y.std(axis=0), qid=data.qid)
    >>> display = TradeOffDisplay.from_predictions(Y, model.cv_predictions_, data.qid, names=["grade", "freshness"])
    >>> display.ax_.get_xlabel()
    'pairwise_accuracy of grade'
    """

    def __init__(self, weights, first, second, names, *, metric="score"):
        self.weights = weights
        self.first = first
        self.second = second
        self.names = names
        self.metric = metric

    @classmethod
    def from_estimator(cls, estimator, X, y, qid=None, *, names=None, scoring=None, n_mixes=41, ax=None):
        """Draw how well mixes of the two targets of a fitted model rank some rows.

        Parameters
        ----------
        estimator : RankRLS or Pipeline
            Fitted to two targets; `mix` returns the model at a point of the curve.
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples, 2)
            The targets.
        qid : array-like of shape (n_samples,), default=None
            Query of each row.
        names : list of str, default=None
        Names of the targets.
        scoring : str or callable, default=None
            The metric; None: that of the model.
        n_mixes : int, default=41
            Points of the curve.
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display : TradeOffDisplay
        """
        ranker = ranker_of(estimator)
        check_is_fitted(ranker)
        about = {
            "names": names,
            "scoring": ranker.scoring if scoring is None else scoring,
            "n_mixes": n_mixes,
            "ax": ax,
        }
        return cls.from_predictions(y, predicted(estimator, X, qid), qid, **about)

    @classmethod
    def from_predictions(cls, y, scores, qid=None, *, names=None, scoring="pairwise_accuracy", n_mixes=41, ax=None):
        """Draw how well mixes of the scores of two targets rank; use held-out scores such as `cv_predictions_`.

        Parameters
        ----------
        y, scores : array-like of shape (n_samples, 2)
            The targets, and a score for each.
        qid : array-like of shape (n_samples,), default=None
            Query of each row.
        names, scoring, n_mixes, ax
            As in `from_estimator`.

        Returns
        -------
        display : TradeOffDisplay
        """
        checks.check_count("n_mixes", n_mixes, 2)
        Y, S = np.asarray(y, dtype=float), np.asarray(scores, dtype=float)
        if Y.ndim != 2 or Y.shape[1] != 2 or S.shape != Y.shape:
            raise ValueError(
                f"a trade-off is between two targets: y and scores need two columns each, got {Y.shape} and {S.shape}"
            )
        metric, queries = get_metric(scoring), checks.check_queries(qid, len(Y))
        weights = np.linspace(0, 1, n_mixes)
        mixes = np.column_stack([S @ [1 - w, w] for w in weights])
        first, second = (metric.judge(Y[:, t], mixes, queries)[0] for t in (0, 1))
        named = ["target 1", "target 2"] if names is None else [str(name) for name in names]
        if len(named) != 2:
            raise ValueError(f"names must list two targets, got {len(named)}")
        return cls(weights, first, second, named, metric=metric.name).plot(ax=ax)

    _size = (5.2, 4.2)

    def _draw(self) -> None:
        (self.line_,) = self.ax_.plot(self.first, self.second, color=COLOURS[0])
        shown = np.unique(np.linspace(0, len(self.weights) - 1, 5).round().astype(int))
        x, y = np.asarray(self.first)[shown], np.asarray(self.second)[shown]
        self.points_ = self.ax_.scatter(x, y, color=COLOURS[0], zorder=3, s=18)
        for i, a, b in zip(shown, x, y, strict=True):
            w = self.weights[i]
            text = f"{1 - w:.2g} : {w:.2g}"
            self.ax_.annotate(text, (a, b), xytext=(5, 4), textcoords="offset points", fontsize="small", color=GREY)
        self.ax_.margins(0.14)
        first, second = (f"{self.metric} of {plain(name)}" for name in self.names)
        tidy(self.ax_, x=first, y=second)
