"""What single columns and pairs of columns add to the score of an AutoRanker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..auto import AutoRanker, glassbox
from ..estimators.pipelines import ranker_of
from .display import Display
from .style import COLOURS, GREY, panels, plain, tidy

if TYPE_CHECKING:
    pass

ACROSS = 3  # panels in a row
WIDE = 20  # a positive column gets a logarithmic axis if its range is more than this many medians


class EffectsDisplay(Display):
    """What each column adds to the score, as a curve per column, largest effect first.

    Parameters
    ----------
    effects : list of dict
        Entries of `AutoRanker.feature_effects_`: "column", "values" and "effect".

    Attributes
    ----------
    lines_ : list of matplotlib lines
        The curves.
    axes_ : ndarray of matplotlib axes
        The panels, which share their vertical axis.
    ax_, figure_ : matplotlib axes and figure
        The first panel, and all of them.

    Examples
    --------
    >>> from rankrls import AutoRanker
    >>> from rankrls.datasets import make_search
    >>> from rankrls.plotting import EffectsDisplay
    >>> data = make_search(60, random_state=0)
    >>> model = AutoRanker(effort="fast").fit(data.X, data.y, qid=data.qid)
    >>> display = EffectsDisplay.from_estimator(model, top=3)
    >>> len(display.lines_)
    3
    """

    def __init__(self, effects):
        self.effects = effects

    @classmethod
    def from_estimator(cls, estimator, columns=None, *, top=6, ax=None):
        """Draw the curves of a fitted AutoRanker.

        Parameters
        ----------
        estimator : AutoRanker or Pipeline
            Fitted to dense rows.
        columns : list of str, default=None
            Columns to show, by their names in `feature_effects_`; None: those with the largest effects.
        top : int, default=6
        How many columns to show if `columns` is None.
        ax : matplotlib axes, default=None
            Where to draw, one axes or one per column; None: a new figure.

        Returns
        -------
        display : EffectsDisplay
        """
        checks.check_count("top", top, 1)
        found = _fitted(estimator).feature_effects_
        if not found:
            raise ValueError(
                "this model has no effects of single columns: it was fitted to sparse rows, or consists of kernels"
            )
        if columns is None:
            return cls(found[:top]).plot(ax=ax)
        return cls(_chosen(found, "column", [columns] if isinstance(columns, str) else list(columns))).plot(ax=ax)

    def _place(self, ax: Any) -> None:
        self.figure_, self.axes_ = panels(ax, len(self.effects), (3.2, 2.6), ACROSS)
        self.ax_ = self.axes_[0]

    def _draw(self) -> None:
        self.lines_ = []
        bounds = [bound for entry in self.effects for bound in (np.min(entry["effect"]), np.max(entry["effect"]))]
        room = 0.08 * max(max(bounds) - min(bounds), 1e-30)
        for number, (ax, entry) in enumerate(zip(self.axes_, self.effects, strict=True)):
            values, effect = np.asarray(entry["values"]), np.asarray(entry["effect"])
            ax.axhline(0, color=GREY, linewidth=0.8)
            (line,) = ax.plot(values, effect, color=COLOURS[0])
            ax.plot(values[::4], np.full(len(values[::4]), min(bounds) - 0.7 * room), "|", color=GREY, markersize=6)
            if values.min() > 0 and values.max() > WIDE * np.median(values):
                ax.set_xscale("log")
            ax.set_ylim(min(bounds) - room, max(bounds) + room)
            tidy(ax, x=plain(entry["column"]), y="adds to the score" if number % ACROSS == 0 else "")
            self.lines_.append(line)


class PairEffectsDisplay(Display):
    """What each pair of columns adds to the score beyond their single effects: heat maps, largest effect first.

    The axes are spaced by rank, not by value: the middle of an axis is the middle of the data.

    Parameters
    ----------
    pairs : list of dict
        For each pair: "columns", two names; "values", an array for each of them; "effect", an array of shape (values of
        the first, values of the second); and "strength", relative to chance.

    Attributes
    ----------
    images_ : list of matplotlib images
        The heat maps, all on the same colour scale.
    axes_ : ndarray of matplotlib axes
        The panels.
    ax_, figure_ : matplotlib axes and figure
        The first panel, and all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import AutoRanker
    >>> from rankrls.plotting import PairEffectsDisplay
    >>> X = np.random.default_rng(0).normal(size=(600, 4))
    >>> y = np.clip(np.round(X[:, 0] * X[:, 1] + 1), 0, 3)
    >>> model = AutoRanker(effort="fast", relative=False).fit(X, y, qid=np.repeat(np.arange(30), 20))
    >>> display = PairEffectsDisplay.from_estimator(model, top=1)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('x1', 'x0')
    """

    def __init__(self, pairs):
        self.pairs = pairs

    @classmethod
    def from_estimator(cls, estimator, pairs=None, *, top=3, ax=None):
        """Draw the pairs that a fitted AutoRanker found.

        Parameters
        ----------
        estimator : AutoRanker or Pipeline
            Fitted to dense rows.
        pairs : list of (str, str), default=None
            Pairs to show, by their "columns" in `interactions_`; None: those with the largest effects.
        top : int, default=3
        How many pairs to show if `pairs` is None.
        ax : matplotlib axes, default=None
            Where to draw, one axes or one per pair; None: a new figure.

        Returns
        -------
        display : PairEffectsDisplay
        """
        checks.check_count("top", top, 1)
        model = _fitted(estimator)
        if not model.interactions_:
            raise ValueError("this model has no effects of pairs of columns: none was found, or none helped")
        found = model.interactions_[:top] if pairs is None else _chosen(model.interactions_, "columns", list(pairs))
        names = [str(name) for name in model.columns_.get_feature_names_out(model.column_names())]
        shown = []
        for entry in found:
            i, j = (names.index(name) for name in entry["columns"])
            first, second, effect = glassbox.pair_effect(model.additive_, (i, j), model.columns_)
            shown.append({**entry, "values": (first, second), "effect": effect})
        return cls(shown).plot(ax=ax)

    def _place(self, ax: Any) -> None:
        self.figure_, self.axes_ = panels(ax, len(self.pairs), (3.6, 3.2), ACROSS)
        self.ax_ = self.axes_[0]

    def _draw(self) -> None:
        most = max(max(float(np.abs(entry["effect"]).max()) for entry in self.pairs), 1e-30)
        self.images_ = []
        for ax, entry in zip(self.axes_, self.pairs, strict=True):
            effect = np.asarray(entry["effect"])
            image = ax.imshow(effect, cmap="RdBu_r", vmin=-most, vmax=most, origin="lower", aspect="auto")
            for axis, values in zip((ax.yaxis, ax.xaxis), entry["values"], strict=True):
                places = np.linspace(0, len(values) - 1, 5).round().astype(int)
                axis.set_ticks(places, [f"{values[place]:.3g}" for place in places], fontsize="small")
            ax.set_ylabel(plain(entry["columns"][0]))
            ax.set_xlabel(plain(entry["columns"][1]))
            if np.isfinite(entry.get("strength", np.nan)):
                ax.set_title(f"strength {entry['strength']:.0f} (chance: 1)", fontsize="medium")
            self.images_.append(image)
        self.figure_.colorbar(self.images_[0], ax=list(self.axes_), label="adds to the score", shrink=0.85)


def _fitted(estimator: BaseEstimator) -> Any:
    """The AutoRanker in a model or pipeline."""
    ranker = ranker_of(estimator)
    if not isinstance(ranker, AutoRanker):
        raise TypeError(f"only an AutoRanker has effects to draw, got {type(ranker).__name__}")
    check_is_fitted(ranker)
    return ranker


def _chosen(entries: Sequence[dict[str, Any]], key: str, wanted: Sequence[Any]) -> list[dict[str, Any]]:
    """Entries by name; an error if one does not exist."""
    known = {entry[key]: entry for entry in entries}
    wanted = [tuple(one) if key == "columns" else one for one in wanted]
    missing = [one for one in wanted if one not in known]
    if missing:
        raise ValueError(f"the model has no effect of {missing[0]!r}; it has {', '.join(map(str, list(known)[:10]))}")
    return [known[one] for one in wanted]
