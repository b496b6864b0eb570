"""The base of all parts of RankRLS: its parameters and fitted attributes with their types, and `predict`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...bases import BasisLike
from ...core.expansion import expansion
from ...core.statistics import Statistics
from ...core.weighting import EXPONENTIAL, LINEAR, WEIGHTINGS, Gain
from ...kernels import KernelLike, is_precomputed
from ...metrics import get_metric
from ...problems.constrained import Preferred
from ...system.types import ArrayLike, MatrixLike, Seed
from ..base import Ranker
from ..rows.training import TrainedOn
from .history import History
from .posterior import Posterior
from .serving import is_plain, plain_products


class RidgeRanker(Ranker):
    """A ranker with weights on the columns or on points of a kernel; `RankRLS` documents the names."""

    __metadata_request__predict = {"return_std": True}  # noqa: RUF012 - in pipelines, without set_predict_request

    alpha: float | str
    kernel: KernelLike | None
    basis: BasisLike | None
    weighting: str
    tied_pairs: bool | str
    regression: float
    alphas: ArrayLike | None
    scoring: str | Callable[..., float]
    cv: object
    scale: str | None
    positive: object
    gain: Gain | None
    random_state: Seed
    store_path: bool
    verbose: bool

    alpha_: float
    gain_: Gain
    coef_: np.ndarray
    dual_coef_: np.ndarray
    intercept_: Any
    X_fit_: Any
    kernel_: Any
    scale_: np.ndarray
    alphas_: np.ndarray
    cv_scores_: np.ndarray
    cv_errors_: np.ndarray
    cv_criterion_: str
    cv_predictions_: np.ndarray
    cv_predictions_path_: np.ndarray
    trained_on_: TrainedOn
    noise_: tuple[float, float]
    pairs_: Preferred
    statistics_: Statistics | None
    tied_pairs_: bool
    weighting_: str
    n_queries_: int
    n_pairs_: int
    n_features_in_: int
    _history: History
    _cached_posterior: tuple[
        Any, float, Posterior
    ]  # cached: what it was computed from, alpha, and the uncertainty of scores
    _trained_queries: tuple[np.ndarray, Any]  # their ids, and the index of the frame
    feature_names_in_: np.ndarray

    @overload
    def predict(self, X: MatrixLike) -> np.ndarray: ...

    @overload
    def predict(self, X: MatrixLike, *, return_std: bool) -> Any: ...

    def predict(self, X: MatrixLike, *, return_std: bool = False) -> Any:
        """Scores: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items; a column "qid" of a data frame is ignored. With kernel="precomputed", kernel values between the
            items and the training points.
        return_std : bool, default=False
            Also return the standard deviation of each score. It includes the uncertainty of the common level of all
            scores, which does not matter for ranking; use `probability_above` to compare two items.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of shape (n_samples,), only with return_std=True
        """
        if return_std:
            return self.predict(X), self._standard_deviation(X)
        learned = vars(self)
        named, n = "feature_names_in_" in learned, learned.get("n_features_in_", -1)
        if "coef_" in learned and not named:
            products = plain_products(X, self.coef_, n)
            if products is not None:
                return products + self.intercept_
        if named or not is_plain(X, n):
            check_is_fitted(self, "alpha_")
            X, _ = checks.split_qid_column(X, None)
            X = self._rows(X)
        if "coef_" in learned:
            return np.asarray(X @ self.coef_.T) + self.intercept_
        return expansion(self.kernel_, X, self.X_fit_, self.dual_coef_) + self.intercept_

    def _standard_deviation(self, X: MatrixLike) -> np.ndarray:
        raise NotImplementedError

    @property
    def _auto(self) -> bool:
        return isinstance(self.alpha, str)

    def _check_params(self) -> None:
        if self._auto:
            checks.check_choice("alpha", self.alpha, ("auto",))
            if self.alphas is not None:
                checks.check_grid("alphas", self.alphas, zero=True)
        else:
            checks.check_number("alpha", self.alpha, zero=True)
        checks.check_choices(self, weighting=WEIGHTINGS, tied_pairs=(True, False, "auto"), scale=("auto", None))
        checks.check_share("regression", self.regression)
        if not callable(self.gain):
            checks.check_choice("gain", self.gain, (None, LINEAR, EXPONENTIAL, "auto"))
        get_metric(self.scoring)
        if isinstance(self.cv, str):
            checks.check_choice("cv", self.cv, ("leave-query-out", "leave-pair-out"))
        if self.kernel is not None:
            checks.check_unsigned(
                self.positive, "a kernel, whose weights belong to points: fit a linear model, kernel=None"
            )
        if self.basis is not None and self.kernel is None:
            raise ValueError(
                'basis needs a kernel, e.g. RankRLS(kernel="rbf", basis=500); a linear model does not use it'
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        tags.target_tags.multi_output = self.tied_pairs is True
        return tags
