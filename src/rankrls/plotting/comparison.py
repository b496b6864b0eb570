"""Comparisons of several models on the same queries."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .. import checks
from ..estimators.pipelines import predicted, ranker_of
from ..metrics import get_metric, per_query, randomisation_test, standard_error
from .display import Display
from .style import COLOURS, GREY, band, check_matplotlib, look, plain, tidy

MOST_POINTS = 400  # most points of a curve over queries


class MetricAtKDisplay(Display):
    """A metric at cutoff k against k, for one or several models, with standard errors over queries.

    Parameters
    ----------
    ks : ndarray of shape (n_ks,)
        Cutoffs.
    means : dict of str to ndarray of shape (n_ks,)
        The mean over queries, by model.
    errors : dict of str to ndarray of shape (n_ks,), default=None
        Their standard errors over queries.
    metric : str, default="ndcg"
        Name of the metric.

    Attributes
    ----------
    lines_ : dict of str to matplotlib line
        The line of each model.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.datasets import make_search
    >>> from rankrls.plotting import MetricAtKDisplay
    >>> data, new = make_search(30, random_state=0), make_search(30, random_state=1)
    >>> models = {"all": RankRLS().fit(data.X, data.y, qid=data.qid), "alpha=1e6": RankRLS(1e6).fit(data.X, data.y)}
    >>> display = MetricAtKDisplay.from_estimator(models, new.X, new.y, new.qid, ks=[1, 3, 5, 10])
    >>> list(display.lines_)
    ['all', 'alpha=1e6']
    """

    def __init__(self, ks, means, errors=None, *, metric="ndcg"):
        self.ks = ks
        self.means = means
        self.errors = errors
        self.metric = metric

    @classmethod
    def from_estimator(cls, estimator, X, y, qid=None, *, metric="ndcg", ks=range(1, 11), ax=None):
        """Draw the curves of fitted rankers on labelled rows.

        Parameters
        ----------
        estimator : estimator, or dict of them by name
            Fitted rankers, or pipelines that end in one.
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            True relevance.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None: all rows are one query.
        metric, ks, ax
            As in `from_predictions`.

        Returns
        -------
        display : MetricAtKDisplay
        """
        models = estimator if isinstance(estimator, Mapping) else {type(ranker_of(estimator)).__name__: estimator}
        X, qid = checks.split_qid_column(X, qid)
        scores = {name: predicted(model, X, qid) for name, model in models.items()}
        return cls.from_predictions(y, scores, qid, metric=metric, ks=ks, ax=ax)

    @classmethod
    def from_predictions(cls, y, scores, qid=None, *, metric="ndcg", ks=range(1, 11), ax=None):
        """Draw the curves of predicted scores.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True relevance.
        scores : array-like of shape (n_samples,), or dict of them by name
            Predicted scores.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None: all rows are one query.
        metric : str, default="ndcg"
            A metric that takes a cutoff: "ndcg", "precision", "recall", "map" or "mrr".
        ks : sequence of int, default=1 to 10
            Cutoffs.
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display : MetricAtKDisplay
        """
        check_matplotlib()
        scores = scores if isinstance(scores, Mapping) else {"scores": scores}
        if not scores:
            raise ValueError("there is nothing to draw: pass at least one model")
        ks = np.asarray(list(ks))
        if not len(ks):
            raise ValueError("ks is empty: pass the cutoffs to draw")
        means, errors = {}, {}
        for name, column in scores.items():
            values = np.stack([per_query(f"{metric}@{k}", y, column, qid) for k in ks], axis=1)
            defined = ~np.isnan(values).any(axis=1)
            if not defined.any():
                raise ValueError(f"{metric} is not defined for any query: none has a relevant item")
            means[str(name)], errors[str(name)] = values[defined].mean(axis=0), standard_error(values)
        return cls(ks, means, errors, metric=metric).plot(ax=ax)

    def _draw(self) -> None:
        self.lines_ = {}
        for number, (name, mean) in enumerate(self.means.items()):
            style = look(number)
            band(self.ax_, self.ks, mean, None if self.errors is None else self.errors[name], style["color"])
            (line,) = self.ax_.plot(self.ks, mean, markersize=5, label=plain(name), **style)
            self.lines_[name] = line
        if len(self.ks) <= 20:
            self.ax_.set_xticks(self.ks)
        tidy(self.ax_, x="k", y=f"{plain(self.metric)}@k, mean over queries")
        self.ax_.legend(frameon=False)
        if self.errors is not None:
            self.ax_.set_title(
                "bands: ± one standard error over queries", fontsize="small", color="#555555", loc="left"
            )


class WinsLossesDisplay(Display):
    """How much better or worse one model is than another on each query, with the queries sorted by the difference.

    Parameters
    ----------
    differences : ndarray of shape (n_queries,)
        The metric of the second model minus that of the first, per query; NaN where it is not defined.
    names : pair of str, default=("A", "B")
        The first model and the second.
    metric : str, default="metric"
        Name of the metric.
    p : float, default=None
        p-value of the mean difference, shown in the title.

    Attributes
    ----------
    n_wins_, n_losses_, n_ties_ : int
        Queries on which the second model is better, worse and equally good.
    sorted_ : ndarray
        The differences drawn, largest first (400 of them, evenly spaced, if there are more queries).
    wins_, losses_ : matplotlib patches
        The areas.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.datasets import make_search
    >>> from rankrls.plotting import WinsLossesDisplay
    >>> data, new = make_search(60, random_state=0), make_search(30, random_state=1)
    >>> few, all_of_them = RankRLS().fit(data.X[:, :3], data.y, data.qid), RankRLS().fit(data.X, data.y, data.qid)
    >>> scores = few.predict(new.X[:, :3]), all_of_them.predict(new.X)
    >>> display = WinsLossesDisplay.from_predictions(new.y, *scores, new.qid, names=("3 features", "all"))
    >>> display.n_wins_ > display.n_losses_
    True
    """

    def __init__(self, differences, *, names=("A", "B"), metric="metric", p=None):
        self.differences = differences
        self.names = names
        self.metric = metric
        self.p = p

    @classmethod
    def from_estimator(cls, first, second, X, y, qid=None, *, metric="ndcg@10", names=None, ax=None):
        """Compare two fitted rankers on labelled rows.

        Parameters
        ----------
        first, second : estimator or Pipeline
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            True relevance.
        qid : array-like of shape (n_samples,), default=None
            Query of each row.
        metric, names, ax
            As in `from_predictions`; default names are those of the classes if they differ, else A and B.

        Returns
        -------
        display : WinsLossesDisplay
        """
        if names is None:
            classes = tuple(type(ranker_of(model)).__name__ for model in (first, second))
            names = classes if len(set(classes)) == 2 else ("A", "B")
        X, qid = checks.split_qid_column(X, qid)
        scores = [predicted(model, X, qid) for model in (first, second)]
        return cls.from_predictions(y, scores[0], scores[1], qid, metric=metric, names=names, ax=ax)

    @classmethod
    def from_predictions(cls, y, first, second, qid=None, *, metric="ndcg@10", names=("A", "B"), ax=None):
        """Compare two sets of predicted scores.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True relevance.
        first, second : array-like of shape (n_samples,)
            Predicted scores.
        qid : array-like of shape (n_samples,), default=None
            Query of each row.
        metric : str or callable, default="ndcg@10"
            A metric of `rankrls.metrics`; the sign of the difference is flipped if less is better.
        names : pair of str, default=("A", "B")
            The first model and the second.
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display : WinsLossesDisplay
        """
        check_matplotlib()
        metric = get_metric(metric)
        values = [metric.per_query(y, scores, qid) for scores in (first, second)]
        d = (values[1] - values[0]) * (1 if metric.greater_is_better else -1)
        if np.isnan(d).all():
            raise ValueError(f"{metric.name} is not defined for any query, so there is nothing to compare")
        return cls(d, names=tuple(names), metric=metric.name, p=randomisation_test(*values)).plot(ax=ax)

    def _draw(self) -> None:
        d = np.asarray(self.differences, dtype=np.float64)
        d = -np.sort(-d[~np.isnan(d)])
        self.n_wins_, self.n_losses_, self.n_ties_ = (int(n.sum()) for n in (d > 0, d < 0, d == 0))
        x = np.arange(len(d))
        if len(d) > MOST_POINTS:
            x = np.round(np.linspace(0, len(d) - 1, MOST_POINTS)).astype(int)
        self.sorted_ = d[x]
        edges = np.append(x, len(d))
        first, second = (plain(name) for name in self.names)
        areas = (
            (self.sorted_ > 0, COLOURS[0], f"{second} better: {self._queries(self.n_wins_)}"),
            (self.sorted_ < 0, COLOURS[1], f"{first} better: {self._queries(self.n_losses_)}"),
        )
        self.wins_, self.losses_ = (
            self.ax_.stairs(np.where(where, self.sorted_, np.nan), edges, fill=True, color=color, label=label)
            for where, color, label in areas
        )
        self.ax_.plot([], [], color=GREY, label=f"equally good: {self._queries(self.n_ties_)}")
        self.ax_.axhline(0, color="black", linewidth=0.6)
        self.ax_.set_xlim(0, max(1, len(d)))
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        tidy(self.ax_, x="queries, by difference", y=f"{plain(self.metric)}: {second} minus {first}", grid="y")
        self.ax_.legend(frameon=False)
        mean = f"mean difference {d.mean():+.4f}" + ("" if self.p is None else f", p = {self.p:.4f}")
        self.ax_.set_title(mean, fontsize="small", color="#555555", loc="left")

    @staticmethod
    def _queries(n: int) -> str:
        return f"{n:,} {'query' if n == 1 else 'queries'}"
