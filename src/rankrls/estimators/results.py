"""Results of fitting code. Fields are named like the fitted attributes, and only the estimator stores them.

A field that is None stands for an attribute that the model does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.gains import LINEAR, Gain
from ..core.noise import noise_of
from ..core.statistics import Statistics
from ..kernels import Kernel, Precomputed
from ..problems.base import Model
from ..problems.choice import Choice
from ..problems.constrained import Preferred
from ..system.types import DTypeLike, Matrix
from .rows.training import TrainedOn, Training


@dataclass(frozen=True)
class Seen:
    """The columns that a fit saw, if scikit-learn's own check did not store them."""

    n_features_in: int
    feature_names_in: np.ndarray | None = None

    @classmethod
    def of(cls, n_columns: int, names: Sequence[str] | None) -> Seen:
        return cls(n_columns, None if names is None else np.array(names, dtype=object))


@dataclass(frozen=True)
class Weights:
    """What `RankRLS.predict` needs: weights of the columns, or of the points of a kernel model."""

    intercept: float | np.ndarray
    coef: np.ndarray | None = None
    dual_coef: np.ndarray | None = None
    X_fit: Matrix | None = None
    kernel: Kernel | None = None

    @classmethod
    def of(cls, model: Model, data: Training, regression: float) -> Weights:
        """The solution in the precision and shape of the caller's data."""
        free = model.intercept if regression > 0 else np.zeros_like(model.intercept)
        fits = holds(data.dtype, model.coef) and holds(data.dtype, free)
        coef, free = (values.astype(data.dtype if fits else np.float64) for values in (model.coef, free))
        intercept = float(free[0]) if data.flat else free
        if data.kernel is None:
            return cls(intercept, coef=coef[:, 0] if data.flat else coef.T)
        if isinstance(data.kernel, Precomputed) and data.points is None:
            coef = np.nan_to_num(data.all_rows(coef))  # zero for rows of weight zero
        X = data.X if isinstance(data.kernel, Precomputed) else data.X.copy()  # the caller may change the rows later
        points = X if data.points is None else data.points
        return cls(intercept, dual_coef=coef[:, 0] if data.flat else coef, X_fit=points, kernel=data.kernel)


def rounded(values: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """Scores in the precision of the data, unless the largest would overflow."""
    return values.astype(dtype, copy=False) if holds(dtype, values) else values


def holds(dtype: DTypeLike, values: np.ndarray) -> bool:
    """True if the largest of the values does not overflow in this precision."""
    top = np.nanmax(np.abs(values), initial=0.0)
    return bool(np.finfo(dtype).bits == 64 or top == 0 or 1e-30 < top < 1e30)


@dataclass(frozen=True)
class Learned:
    """The attributes of a fitted RankRLS besides its weights."""

    alpha: float
    tied_pairs: bool
    n_queries: int
    n_pairs: int
    statistics: Statistics | None  # the sums, if the model stores them
    weighting: str | None = None
    scale: np.ndarray | None = None  # spread of the columns
    pairs: Preferred | None = None  # added by add_pairs
    trained_on: TrainedOn | None = None  # only for models without sums
    gain: Gain = LINEAR  # of the labels


@dataclass(frozen=True)
class Selected:
    """How alpha was chosen; empty if it was given."""

    alphas: np.ndarray | None = None
    cv_scores: np.ndarray | None = None
    cv_errors: np.ndarray | None = None
    cv_criterion: str | None = None  # what the scores are, if they are not the metric
    cv_predictions: np.ndarray | None = None
    cv_predictions_path: np.ndarray | None = None  # on request
    noise: tuple[float, float] | None = None  # of held-out scores

    @classmethod
    def of(cls, chosen: Choice, data: Training, *, path: bool = False) -> Selected:
        """The alphas that were tried, with the held-out scores of the best if there are any."""
        if chosen.predictions is None:
            return cls(chosen.alphas, chosen.scores, chosen.errors)
        noise = None
        if data.flat:
            noise = noise_of(data.y[:, 0], np.asarray(chosen.predictions[:, 0], dtype=float), data.queries)
        predictions = rounded(data.all_rows(chosen.predictions), data.dtype)
        return cls(
            chosen.alphas,
            chosen.scores,
            chosen.errors,
            cv_predictions=predictions[:, 0] if data.flat else predictions,
            cv_predictions_path=_path(chosen, data) if path else None,
            noise=noise,
        )


def _path(chosen: Choice, data: Training) -> np.ndarray:
    """(m, k) or (m, k, t) the held-out scores of all rows at every setting."""
    scores = data.all_rows(chosen.held_out).astype(data.dtype, copy=False)
    return scores[:, :, 0] if data.flat else scores


RankRLSFit = tuple[Weights, Learned, Selected]
