"""Curves along a path: held-out scores and weights against alpha, errors against the size of a pursuit."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.curve import curve_of, scoring_name
from ..estimators.pipelines import ranker_of
from .display import Display
from .style import COLOURS, DASHES, GREY, band, held_out_axis, names_of, plain, tidy


class HoldOutDisplay(Display):
    """The held-out score of every alpha, with its standard error over queries, and the chosen alpha.

    Parameters
    ----------
    alphas, scores : ndarray of shape (n_alphas,)
        The grid, and the mean held-out score of each value.
    errors : ndarray of shape (n_alphas,), default=None
        Standard errors of the scores over held-out queries.
    chosen : int, default=None
        The index of the chosen alpha.
    metric : str, default="score"
        Name of the scores, for the axis label.
    over : str, default="alpha"
        Name of the parameter that varies, for the axis label; alpha has a logarithmic axis.

    Attributes
    ----------
    line_, chosen_ : matplotlib lines
        The curve, and the chosen point or None.
    band_ : matplotlib collection or None
        One standard error on either side.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.datasets import make_search
    >>> from rankrls.plotting import HoldOutDisplay
    >>> data = make_search(30, random_state=0)
    >>> model = RankRLS(scoring="ndcg@10").fit(data.X, data.y, qid=data.qid)
    >>> display = HoldOutDisplay.from_estimator(model)
    >>> display.ax_.get_ylabel()
    'held-out ndcg@10'
    """

    def __init__(self, alphas, scores, errors=None, chosen=None, *, metric="score", over="alpha"):
        self.alphas = alphas
        self.scores = scores
        self.errors = errors
        self.chosen = chosen
        self.metric = metric
        self.over = over

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the held-out scores by which a fitted ranker chose alpha.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted with alpha="auto": RankRLS, CoRankRLS (at the chosen nu), TransductiveRankRLS (on the scored queries)
            or ConditionalRankRLS; or RankingPursuit, whose curve runs over its size.
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display : HoldOutDisplay
        """
        ranker = ranker_of(estimator)
        check_is_fitted(ranker)
        found = curve_of(ranker)
        if found is None:
            raise ValueError(
                'this model has no held-out scores: fit it with alpha="auto" (n_basis="auto" for a pursuit)'
            )
        over = "number of basis functions" if found.over == "n_basis" else found.over
        arrays = found.values, found.scores, found.errors, found.chosen
        return cls(*arrays, metric=scoring_name(ranker), over=over).plot(ax=ax)

    def _draw(self) -> None:
        alphas, scores = np.asarray(self.alphas), np.asarray(self.scores)
        self.band_ = band(self.ax_, alphas, scores, self.errors, COLOURS[0])
        (self.line_,) = self.ax_.plot(alphas, scores, "o-", color=COLOURS[0], markersize=4, label="mean over queries")
        if self.band_ is not None:
            self.band_.set_label("± one standard error")
        self.chosen_ = None
        if self.chosen is not None:
            at = alphas[self.chosen]
            label = f"chosen: {at:.3g}"
            style = {"color": COLOURS[1], "markersize": 9, "label": label, "zorder": 3}
            (self.chosen_,) = self.ax_.plot(at, scores[self.chosen], "D", **style)
        if self.over == "alpha":
            self.ax_.set_xscale("log")
        tidy(self.ax_, x=self.over, y=f"held-out {plain(self.metric)}")
        self.ax_.legend(frameon=False)


class CoefficientPathDisplay(Display):
    """The weights of a linear model against alpha: the most important in colour, the others in grey.

    Weights are per unit of a feature, so they are comparable only if the features are scaled.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        The grid.
    coefs : ndarray of shape (n_alphas, n_features)
        The weights at each alpha.
    names : list of str
        Names of the features.
    alpha : float, default=None
        The alpha of the model, marked by a vertical line.
    top : int, default=8
        How many features get a colour and a name: those with the largest absolute weights at `alpha` (anywhere along
        the path if that is None).

    Attributes
    ----------
    features_ : ndarray of int
        The named features in the order of the legend, which is that of the lines on the left.
    lines_ : list of matplotlib lines
        All lines, feature by feature.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.datasets import make_search
    >>> from rankrls.plotting import CoefficientPathDisplay
    >>> data = make_search(30, random_state=0)
    >>> model = RankRLS().fit(data.X, data.y, qid=data.qid)
    >>> display = CoefficientPathDisplay.from_estimator(model, names=data.feature_names)
    >>> len(display.lines_) == len(data.feature_names)
    True
    """

    def __init__(self, alphas, coefs, names, alpha=None, *, top=8):
        self.alphas = alphas
        self.coefs = coefs
        self.names = names
        self.alpha = alpha
        self.top = top

    @classmethod
    def from_estimator(cls, estimator, *, alphas=None, names=None, top=8, ax=None):
        """Draw the weights of a fitted linear RankRLS at every alpha; see `RankRLS.coef_path`.

        Parameters
        ----------
        estimator : RankRLS or Pipeline
            With one target. In a pipeline, the weights are those of the scaled features.
        alphas : array-like of float, default=None
            None: the grid from which alpha was chosen, or one around the mean eigenvalue of the loss.
        names : list of str, default=None
            Names of the features; None: those seen during fit, or f1, f2, ...
        top : int, default=8
            How many features get a name.
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display : CoefficientPathDisplay
        """
        ranker = ranker_of(estimator)
        check_is_fitted(ranker)
        if not hasattr(ranker, "coef_path"):
            raise ValueError(f"{type(ranker).__name__} has no path of weights; RankRLS has one")
        given, (alphas, coefs) = alphas is not None, ranker.coef_path(alphas)
        if not given:  # then the path includes the model itself
            alphas, coefs = ranker.coef_path(np.union1d(alphas, ranker.alpha_))
        if coefs.ndim > 2:
            raise ValueError(f"the model has {coefs.shape[1]} targets: draw one of them with coef_path()[1][:, t]")
        named = names_of(estimator if hasattr(estimator, "feature_names_in_") else ranker, coefs.shape[1], names)
        return cls(alphas, coefs, named, ranker.alpha_, top=top).plot(ax=ax)

    _size = (7.2, 4.2)

    def _draw(self) -> None:
        order = np.argsort(self.alphas)
        alphas, coefs = np.asarray(self.alphas)[order], np.asarray(self.coefs)[order]
        here = np.abs(coefs).max(axis=0)
        if self.alpha is not None:
            here = np.abs(coefs[np.argmin(np.abs(np.log(alphas / self.alpha)))])
        top = np.argsort(-here, kind="stable")[: self.top]
        self.features_ = top[np.argsort(-coefs[0, top], kind="stable")]
        self.lines_ = self.ax_.plot(alphas, coefs, color="#C4C4C4", linewidth=0.8, zorder=1)
        for number, feature in enumerate(self.features_):
            n = len(COLOURS)
            style = {"color": COLOURS[number % n], "linestyle": DASHES[number // n % len(DASHES)]}
            self.lines_[feature].set(**style, linewidth=1.8, zorder=2)
        handles = [self.lines_[feature] for feature in self.features_]
        named = [plain(self.names[feature]) for feature in self.features_]
        if len(handles) < coefs.shape[1]:
            handles.append(self.lines_[np.setdiff1d(np.arange(coefs.shape[1]), self.features_)[0]])
            named.append(f"{coefs.shape[1] - len(top)} others")
        self.ax_.axhline(0, color="black", linewidth=0.6, zorder=0)
        if self.alpha is not None:
            handles.append(self.ax_.axvline(self.alpha, color=GREY, linestyle="--", linewidth=1, zorder=0))
            named.append(f"alpha = {self.alpha:.3g}")
        self.ax_.set_xscale("log")
        tidy(self.ax_, x="alpha", y="weight")
        self.ax_.legend(handles, named, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")


class PursuitPathDisplay(Display):
    """The training error of a pursuit against the number of basis functions, and the held-out score of each size.

    Parameters
    ----------
    errors : ndarray of shape (k,)
        The training loss of sizes 1, 2, ...
    start : float
        The training loss without any function; errors are drawn as shares of it.
    scores, score_errors : ndarray of shape (k,), default=None
        Held-out scores, drawn on a separate axis on the right, and their standard errors over queries.
    chosen : int, default=None
        The size of the model.
    names : list of str, default=None
        Names of the functions in the order chosen; shown along the axis if there are at most 20.
    metric : str, default="score"
        Name of the scores.

    Attributes
    ----------
    line_ : matplotlib line
        Training errors of sizes 0, 1, ...
    score_line_, score_ax_ : matplotlib line and axes, or None
        Held-out scores of sizes 1, 2, ...
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from rankrls import RankingPursuit
    >>> from rankrls.datasets import make_search
    >>> from rankrls.plotting import PursuitPathDisplay
    >>> data = make_search(60, random_state=0)
    >>> model = RankingPursuit(kernel=None).fit(data.X, data.y, qid=data.qid)
    >>> display = PursuitPathDisplay.from_estimator(model, names=data.feature_names)
    >>> [label.get_text() for label in display.ax_.get_xticklabels()[:3]]
    ['0', '1 bm25_body', '2 click_rate']
    """

    def __init__(self, errors, start, scores=None, score_errors=None, chosen=None, *, names=None, metric="score"):
        self.errors = errors
        self.start = start
        self.scores = scores
        self.score_errors = score_errors
        self.chosen = chosen
        self.names = names
        self.metric = metric

    @classmethod
    def from_estimator(cls, estimator, *, names=None, ax=None):
        """Draw the path of a fitted RankingPursuit.

        Parameters
        ----------
        estimator : RankingPursuit or Pipeline
            Fitted.
        names : list of str, default=None
            Names of the features of a linear pursuit; None: those seen during fit, or f1, f2, ...
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display : PursuitPathDisplay
        """
        ranker = ranker_of(estimator)
        check_is_fitted(ranker)
        path = getattr(ranker, "path_", None)
        if path is None:
            raise ValueError(f"{type(ranker).__name__} has no path of sizes; RankingPursuit has one")
        chosen = None
        if hasattr(ranker, "coef_"):
            of = names_of(estimator if hasattr(estimator, "feature_names_in_") else ranker, len(ranker.coef_), names)
            chosen = [of[j] for j in path.indices]
        elif names is not None:
            raise ValueError("names= is for the features of a linear pursuit (kernel=None) with one view")
        held = path.scores, path.score_errors, ranker.n_basis_
        return cls(path.errors, path.start, *held, names=chosen, metric=scoring_name(ranker)).plot(ax=ax)

    _size = (7.0, 4.2)

    def _draw(self) -> None:
        share = np.concatenate([[1.0], np.asarray(self.errors) / self.start]) if self.start > 0 else np.zeros(1)
        sizes = np.arange(len(share))
        marker = "o" if len(sizes) <= 40 else ""
        style = {"color": COLOURS[0], "marker": marker, "markersize": 4}
        (self.line_,) = self.ax_.plot(sizes, share, label="training error (left)", **style)
        self.ax_.set_ylim(bottom=0)
        tidy(self.ax_, x="number of basis functions", y="training error, relative to no function", grid="y")
        self.ax_.yaxis.label.set_color(COLOURS[0])
        handles = [self.line_]
        self.score_line_, self.score_ax_ = None, None
        if self.scores is not None:
            self.score_ax_, self.score_line_ = held_out_axis(
                self.ax_, self.scores, self.score_errors, self.metric, marker=marker and "s", markersize=4
            )
            handles.append(self.score_line_)
        if self.chosen is not None:
            line = self.ax_.axvline(self.chosen, color=GREY, linestyle="--", linewidth=1, zorder=0)
            line.set_label(f"size of the model: {self.chosen}")
            handles.append(line)
        if self.names is not None and len(sizes) <= 21:
            named = ["0", *(f"{i} {plain(name)}" for i, name in enumerate(self.names, start=1))]
            self.ax_.set_xticks(sizes, named, rotation=40, ha="right", rotation_mode="anchor", fontsize="small")
        else:
            self.ax_.xaxis.get_major_locator().set_params(integer=True)
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 2}  # above the axes, away from the lines
        self.ax_.legend(handles=handles, frameon=False, fontsize="small", **place)
