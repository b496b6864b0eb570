"""Scores of a relation as a heat map: each row is a conditioning object and its ranking of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse, stats
from sklearn.utils.validation import check_is_fitted

from .. import checks
from .display import Display
from .style import check_matplotlib, panels, plain

if TYPE_CHECKING:
    from matplotlib.axis import Axis

BY = {"score": "score", "rank": "share of the row ranked lower"}
MOST_GROUPS, MOST_IDS = 25, 40  # most names that fit along an axis


class RelationDisplay(Display):
    """Scores of all pairs of objects as a heat map, next to the truth or other models.

    Each row is a conditioning object, each column a ranked object. Groups put objects that belong together side by
    side, so that blocks become visible.

    Parameters
    ----------
    panels : dict of str to ndarray of shape (n_rows, n_columns)
        Matrices of one shape, NaN where unknown.
    groups, column_groups : array-like of shape (n_rows,), (n_columns,), default=None
        The group of each row and column, which are sorted by group with lines between the groups.
    by : {"score", "rank"}, default="score"
        The values themselves, or the rank of each value in its row. All panels share one colour scale.
    ids, column_ids : array-like of shape (n_rows,), (n_columns,), default=None
        The name of each object, shown if there are at most 40 and no groups.

    Attributes
    ----------
    images_ : dict of str to matplotlib image
        The image of each panel; its data are the values in the order drawn.
    axes_ : ndarray of matplotlib axes
        One per panel.
    ax_, figure_ : matplotlib axes and figure
        The first panel, and all of them.

    References
    ----------
    Pahikkala, Airola, Stock, De Baets, Waegeman (2013), figure 4.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import ConditionalRankRLS
    >>> from rankrls.plotting import RelationDisplay
    >>> moves = np.random.default_rng(0).dirichlet([0.3] * 3, size=40)  # how often each player plays each move
    >>> beats = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    >>> games = moves @ beats @ moves.T
    >>> model = ConditionalRankRLS(relation="reciprocal").fit(moves[:30], games[:30, :30])
    >>> display = RelationDisplay.from_estimator(model, moves[30:], games[30:, 30:], groups=moves[30:].argmax(axis=1))
    >>> list(display.images_)
    ['ConditionalRankRLS', 'truth']
    """

    def __init__(self, panels, *, groups=None, column_groups=None, by="score", ids=None, column_ids=None):
        self.panels = panels
        self.groups = groups
        self.column_groups = column_groups
        self.by = by
        self.ids = ids
        self.column_ids = column_ids

    @classmethod
    def from_estimator(cls, estimator, X, Y=None, Z=None, *, groups=None, column_groups=None, by="score", ax=None):
        """Draw the predictions of a fitted ConditionalRankRLS, next to the truth if it is given.

        Parameters
        ----------
        estimator : ConditionalRankRLS
            Fitted. With condition="target" the matrix is transposed, so that each row is one ranking.
        X : array-like of shape (n_sources, n_features)
            Objects, as in `ConditionalRankRLS.predict`.
        Y : array-like or sparse matrix of shape (n_sources, n_targets), default=None
            The true relation, NaN (or not stored) where unknown.
        Z : as X, default=None
            The objects at the other end.
        groups, column_groups, by, ax
            As in `from_predictions`. Without Z, `column_groups` defaults to `groups`.

        Returns
        -------
        display : RelationDisplay
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "condition"):
            raise ValueError(f"{type(estimator).__name__} has no relation to draw: pass a ConditionalRankRLS")
        scores = estimator.predict(X, Z)
        ids, column_ids = (list(of.index) if hasattr(of, "iloc") else None for of in (X, X if Z is None else Z))
        if estimator.condition == "target":
            scores, Y = scores.T, None if Y is None else Y.T
            ids, column_ids = column_ids, ids
        if column_groups is None and Z is None:
            column_groups = groups
        scores = {type(estimator).__name__: scores}
        kind = {"groups": groups, "column_groups": column_groups, "by": by, "ids": ids, "column_ids": column_ids}
        return cls.from_predictions(scores, Y, **kind, ax=ax)

    @classmethod
    def from_predictions(
        cls, scores, Y=None, *, groups=None, column_groups=None, by="score", ids=None, column_ids=None, ax=None
    ):
        """Draw matrices of scores, next to the truth if it is given.

        Parameters
        ----------
        scores : array-like of shape (n_rows, n_columns), or dict of them by name
            Predicted values; each row is ranked.
        Y : array-like or sparse matrix of shape (n_rows, n_columns), default=None
            The true relation.
        groups, column_groups : array-like, default=None
            The group of each row and of each column.
        by : {"score", "rank"}, default="score"
            Draw values, or ranks within each row.
        ids, column_ids : array-like, default=None
            The name of each row and of each column; None: those of a data frame among scores and Y.
        ax : matplotlib axes or array of them, default=None
            Where to draw; None: a new figure. Several panels share the space of one axes, or take an array of axes.

        Returns
        -------
        display : RelationDisplay
        """
        check_matplotlib()
        checks.check_choice("by", by, tuple(BY))
        panels = dict(scores) if isinstance(scores, Mapping) else {"scores": scores}
        known = _ids(*panels.values(), Y)
        ids, column_ids = known[0] if ids is None else ids, known[1] if column_ids is None else column_ids
        panels = {str(name): _dense(values) for name, values in panels.items()}
        if Y is not None:
            panels["truth"] = _dense(Y)
        shapes = {values.shape for values in panels.values()}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            found = ", ".join(f"{name} {values.shape}" for name, values in panels.items())
            raise ValueError(f"all matrices must have one shape, got {found}")
        n, n_columns = next(iter(shapes))
        sizes = {"groups": (groups, n), "column_groups": (column_groups, n_columns)}
        for name, (of, size) in (sizes | {"ids": (ids, n), "column_ids": (column_ids, n_columns)}).items():
            if of is not None and len(of) != size:
                raise ValueError(f"{name} has {len(of)} entries for {size} objects")
        kind = {"groups": groups, "column_groups": column_groups, "by": by, "ids": ids, "column_ids": column_ids}
        return cls(panels, **kind).plot(ax=ax)

    def _place(self, ax: Any) -> None:
        self.figure_, self.axes_ = panels(ax, len(self.panels))
        self.ax_ = self.axes_[0]

    def _draw(self) -> None:
        self.images_ = {}
        rows, columns = (
            np.argsort(np.asarray(of), kind="stable") if of is not None else slice(None)
            for of in (self.groups, self.column_groups)
        )
        drawn = {n: _places_in_rows(v) if self.by == "rank" else v for n, v in self.panels.items()}
        known = [values[np.isfinite(values)] for values in drawn.values()]
        low, high = (0.0, 1.0) if self.by == "rank" else _range(np.concatenate(known))
        for axis, (name, values) in zip(self.axes_, drawn.items(), strict=True):
            image = axis.imshow(values[rows][:, columns], aspect="auto", interpolation="nearest", vmin=low, vmax=high)
            axis.set_facecolor("#D0D0D0")  # unknown values
            axis.set_title(plain(name), fontsize="medium")
            axis.set_xlabel("ranked objects")
            _mark(axis.xaxis, axis.axvline, self.column_groups, self.column_ids, rotation=90)
            _mark(axis.yaxis, axis.axhline, self.groups, self.ids if axis is self.ax_ else None)
            self.images_[name] = image
        self.figure_.colorbar(image, ax=list(self.axes_), label=BY[self.by], shrink=0.85)
        self.ax_.set_ylabel("conditioning objects")


def _dense(values: Any) -> np.ndarray:
    """Values as an array of numbers, NaN where a sparse matrix stores none."""
    if not sparse.issparse(values):
        return np.asarray(values, dtype=np.float64)
    values = sparse.coo_array(values)
    full = np.full(values.shape, np.nan)
    full[values.coords] = values.data
    return full


def _ids(*tables: Any) -> tuple[Any, Any]:
    """The names of rows and columns, from the first data frame; None if there is none."""
    frame = next((table for table in tables if hasattr(table, "iloc")), None)
    return (None, None) if frame is None else (list(frame.index), list(frame.columns))


def _range(values: np.ndarray) -> tuple[float, float]:
    """The smallest and the largest value; 0 and 1 if there are none."""
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)


def _places_in_rows(values: np.ndarray) -> np.ndarray:
    """For each value, the share of the other values in its row that are below it, ties counting half; 1 is the top."""
    known = ~np.isnan(values)
    ranks = stats.rankdata(values, axis=1, nan_policy="omit")
    return np.where(known, (ranks - 1) / np.maximum(1, known.sum(axis=1, keepdims=True) - 1), np.nan)


def _mark(
    axis: Axis,
    line: Callable[..., object],
    groups: Sequence[object] | None,
    ids: Sequence[object] | None,
    rotation: float = 0,
) -> None:
    """Lines between groups, each named at its middle; without groups, the names of up to 40 objects."""
    if groups is None:
        named = ids is not None and len(ids) <= MOST_IDS
        labels = [plain(str(name)) for name in ids] if named and ids is not None else []
        fontsize = "medium" if len(labels) <= MOST_IDS // 3 else "x-small"
        axis.set_ticks(range(len(labels)), labels, rotation=rotation, fontsize=fontsize)
        return
    names, sizes = np.unique(np.asarray(groups), return_counts=True)
    ends = np.cumsum(sizes)
    for end in ends[:-1]:
        line(end - 0.5, color="white", linewidth=0.7)
    if len(names) <= MOST_GROUPS:
        axis.set_ticks(ends - sizes / 2 - 0.5, [plain(name) for name in names], rotation=rotation, fontsize="small")
    else:
        axis.set_ticks([])
