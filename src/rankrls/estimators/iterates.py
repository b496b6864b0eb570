"""A model while it is being learned, for callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .relation_model import RelationModel


@dataclass(frozen=True)
class Iterate:
    """What a callback of `ConditionalRankRLS` is called with after each iteration.

    A callback that returns something true ends the fit there.

    Attributes
    ----------
    iteration : int
        From 1 on.
    residual : float
        The relative residual that is left.

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
        """The model as it stands: fitted, and not changed by later iterations."""
        return self._model()
