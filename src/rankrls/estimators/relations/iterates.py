"""What a callback sees: the model during fitting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import RelationModel


@dataclass(frozen=True)
class Iterate:
    """The argument of a `ConditionalRankRLS` callback after each iteration.

    A callback that returns True ends the fit.

    Attributes
    ----------
    iteration : int
        Counted from 1.
    residual : float
        The current relative residual.

    Examples
    --------
    >>> from rankrls import ConditionalRankRLS
    >>> from rankrls.datasets import make_relation
    >>> data = make_relation(20, missing=0.5, random_state=0)
    >>> model = ConditionalRankRLS(0.0, kernel="rbf", callback=lambda iterate: iterate.iteration == 3)
    >>> model.fit(data.X, data.Y).n_iter_
    3
    """

    iteration: int
    residual: float
    _model: Callable[[], RelationModel] = field(repr=False)

    def model(self) -> RelationModel:
        """The current model: fitted, and independent of later iterations."""
        return self._model()
