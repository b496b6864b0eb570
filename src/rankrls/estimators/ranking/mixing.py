"""Combine several targets into one without reading the rows: the solution is linear in the labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...core.statistics import Statistics
from ...core.symmetric import per_deviation
from ...problems.signed import signed_models
from ...system.types import ArrayLike
from .base import RidgeRanker

OF_TARGETS = ("coef_", "dual_coef_", "intercept_", "statistics_", "alphas_", "cv_scores_", "cv_errors_", "noise_")


class Mixed(RidgeRanker):
    """A model with several targets."""

    def mix(self, weights: ArrayLike) -> Self:
        """The model of a weighted sum of the targets, without a refit.

        Parameters
        ----------
        weights : array-like of shape (n_targets,)
            The weight of each target; a negative weight reverses it.

        Returns
        -------
        model : RankRLS
            A new model with one target: to rounding, the one fitted to `y @ weights` at the same alpha. If this model
            has held-out scores, its `cv_predictions_` are the held-out scores of the mix.

        Notes
        -----
        `y` with several columns needs `tied_pairs=True`. Weights are comparable if targets have the same scale (for
        example, each divided by its deviation). `rankrls.plotting.TradeOffDisplay` shows how well each mix ranks.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(50, random_state=0)
        >>> Y = np.column_stack([data.y, -data.X[:, 0]])
        >>> both = RankRLS(1.0, tied_pairs=True).fit(data.X, Y, qid=data.qid)
        >>> model = both.mix([0.7, 0.3])
        >>> alone = RankRLS(1.0, tied_pairs=True).fit(data.X, Y @ [0.7, 0.3], qid=data.qid)
        >>> bool(np.allclose(model.coef_, alone.coef_))
        True
        """
        check_is_fitted(self, "alpha_")
        n = self.dual_coef_.shape[1:] if hasattr(self, "dual_coef_") else self.coef_.shape[:-1]
        if not n:
            raise ValueError(
                "this model has one target, so there is nothing to mix: fit a y with several columns and "
                "tied_pairs=True"
            )
        w = checks.check_numbers("weights", weights, n[0], unit="target")
        if not w.any():
            raise ValueError("every weight is zero: give at least one target a nonzero weight")
        mixed = clone(self)
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_") and name not in OF_TARGETS:
                setattr(mixed, name, value)
        mixed.statistics_ = None if self.statistics_ is None else _mixed_sums(self.statistics_, w)
        mixed.intercept_ = float(self.intercept_ @ w)
        if hasattr(self, "dual_coef_"):
            mixed.dual_coef_ = (self.dual_coef_ @ w).astype(self.dual_coef_.dtype)
        else:
            mixed.coef_ = self._mixed_coef(w, mixed.statistics_).astype(self.coef_.dtype)
        for name in ("cv_predictions_", "cv_predictions_path_"):
            if hasattr(self, name):
                setattr(mixed, name, getattr(self, name) @ w.astype(getattr(self, name).dtype))
        if "_history" in vars(self):
            mixed._history = self._history.mixed(w)
            if hasattr(self, "alphas_"):
                mixed.alphas_ = self.alphas_
        if hasattr(self, "trained_on_"):
            mixed.trained_on_ = replace(self.trained_on_, y=(self.trained_on_.y @ w)[:, None])
        return mixed

    def _mixed_coef(self, w: np.ndarray, sums: Statistics | None) -> np.ndarray:
        """(n,) weights of the mix: the mixed weights of the targets or, with sign constraints, a new solution."""
        signs = checks.check_signs(self.positive, self.n_features_in_, getattr(self, "feature_names_in_", None))
        if signs is None or sums is None:
            return w @ self.coef_
        W = None if self.scale is None else per_deviation(sums.deviation)
        return signed_models(sums, np.array([self.alpha_]), signs, W=W)[0].coef[:, 0]


def _mixed_sums(sums: Statistics, w: np.ndarray) -> Statistics:
    """The sums of y @ w, with an upper bound of its square, by which `forget` detects rows that were never learned."""
    square = (np.abs(w) @ np.sqrt(np.maximum(sums.square, 0.0))) ** 2
    cross, mean = (sums.cross @ w)[:, None], np.array([sums.target_mean @ w])
    return replace(sums, cross=cross, square=np.array([square]), target_mean=mean)
