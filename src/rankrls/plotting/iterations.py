"""The iterations of a solver: training residuals and held-out scores."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.curve import scoring_name
from ..estimators.pipelines import ranker_of
from .display import Display
from .style import COLOURS, GREY, held_out_axis, tidy


class IterationsDisplay(Display):
    """The training residual after each iteration, and the held-out scores if they chose the number of iterations.

    Parameters
    ----------
    residuals : ndarray of shape (n_iter + 1,)
        Relative residuals before the first iteration and after each.
    scores : ndarray of shape (n_tried,), default=None
        Held-out scores after 1, 2, ... iterations, drawn on a separate axis on the right.
    chosen : int, default=None
        The number of iterations chosen.
    metric : str, default="score"
        Name of the scores.

    Attributes
    ----------
    line_ : matplotlib line
        Residuals.
    score_line_, score_ax_ : matplotlib line and axes, or None
        Held-out scores.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from rankrls import ConditionalRankRLS
    >>> from rankrls.datasets import make_relation
    >>> from rankrls.plotting import IterationsDisplay
    >>> data = make_relation(20, missing=0.5, random_state=0)
    >>> model = ConditionalRankRLS(kernel="rbf", max_iter="auto").fit(data.X, data.Y)
    >>> display = IterationsDisplay.from_estimator(model)
    >>> len(display.line_.get_xdata()) == model.n_iter_ + 1
    True
    """

    def __init__(self, residuals, scores=None, chosen=None, *, metric="score"):
        self.residuals = residuals
        self.scores = scores
        self.chosen = chosen
        self.metric = metric

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the iterations of a fitted ConditionalRankRLS.

        Parameters
        ----------
        estimator : ConditionalRankRLS
            Fitted by an iterative solver; with max_iter="auto" there are held-out scores too.
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display : IterationsDisplay
        """
        ranker = ranker_of(estimator)
        check_is_fitted(ranker)
        residuals = getattr(ranker, "residuals_", np.empty(0))
        if not len(residuals):
            raise ValueError(
                'this model was not fitted by iterations: use a ConditionalRankRLS with solver="cr" or max_iter="auto"'
            )
        found = (ranker.cv_scores_, ranker.n_iter_) if hasattr(ranker, "iterations_") else (None, None)
        return cls(residuals, *found, metric=scoring_name(ranker)).plot(ax=ax)

    def _draw(self) -> None:
        residuals = np.asarray(self.residuals)
        (self.line_,) = self.ax_.plot(np.arange(len(residuals)), residuals, color=COLOURS[0])
        self.line_.set_label("training residual (left)")
        self.ax_.set_yscale("log")
        tidy(self.ax_, x="iterations", y="relative residual", grid="y")
        self.ax_.yaxis.label.set_color(COLOURS[0])
        handles = [self.line_]
        self.score_line_, self.score_ax_ = None, None
        if self.scores is not None:
            self.score_ax_, self.score_line_ = held_out_axis(self.ax_, self.scores, None, self.metric)
            handles.append(self.score_line_)
        if self.chosen is not None:
            handles.append(self.ax_.axvline(self.chosen, color=GREY, linestyle="--", linewidth=1, zorder=0))
            handles[-1].set_label(f"chosen: {self.chosen}")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 3}
        self.ax_.legend(handles=handles, frameon=False, fontsize="small", **place)
