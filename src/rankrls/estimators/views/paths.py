"""Weights and scores of a fitted CoRankRLS at every alpha and nu, and explanations of its rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...core.expansion import in_precision
from ...core.queries import BATCH_ROWS
from ...core.statistics import Statistics
from ...core.views import FittedView
from ...problems import choice
from ...problems.coregularised import Joint, Stack, ViewWeights
from ...system.types import ArrayLike, MatrixLike
from ..base import Ranker
from ..reasons import of_views as of_model
from .fitting import of_views

Grid = tuple[np.ndarray, np.ndarray]


class ViewPaths(Ranker):
    """A model with views that can be solved for other values of alpha and nu."""

    views_: Sequence[FittedView]
    view_coefs_: Sequence[np.ndarray]
    view_intercepts_: np.ndarray
    statistics_: Statistics
    agreement_: np.ndarray
    n_features_in_: int
    store_path: bool

    def coef_path(
        self, alphas: ArrayLike | None = None, nus: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """The weights of each view at every alpha and nu, from the sums that the model stores, without the data.

        Parameters
        ----------
        alphas, nus : array-like, default=None
            Values; None: `alphas_` and `nus_` or, without these, the grids that "auto" would try.

        Returns
        -------
        alphas : ndarray of shape (n_alphas,)
        nus : ndarray of shape (n_nus,)
        coefs : list of ndarray of shape (n_nus, n_alphas, n_points or n_columns)
            For each view, the values that `view_coefs_` would have.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import CoRankRLS, View
        >>> rng = np.random.default_rng(0)
        >>> X, qid = rng.normal(size=(60, 4)), np.repeat(np.arange(12), 5)
        >>> y = np.where(qid < 6, X[:, 0] + X[:, 2], np.nan)
        >>> model = CoRankRLS(1.0, 0.1, views=[View([0, 1]), View([2, 3])]).fit(X, y, qid=qid)
        >>> alphas, nus, coefs = model.coef_path([1.0, 10.0], [0.1])
        >>> bool(np.allclose(coefs[0][0, 0], model.view_coefs_[0]))
        True
        """
        (alphas, nus), found = self._solutions(alphas, nus)
        stack, flat = self._stack(), self.view_coefs_[0].ndim == 1
        views = zip(*(of_views(stack, weights, flat=flat)[0] for weights in found), strict=True)
        return alphas, nus, [np.reshape(v, (len(nus), len(alphas), *np.shape(v[0]))) for v in map(list, views)]

    dual_coef_path = coef_path  # the name in RankRLS for weights of points

    def predict_path(self, X: MatrixLike, alphas: ArrayLike | None = None, nus: ArrayLike | None = None) -> np.ndarray:
        """Scores of the models of every alpha and nu, each the mean of the views.

        Parameters
        ----------
        X : as in `predict`
        alphas, nus : array-like, default=None
            As in `coef_path`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_nus, n_alphas), or (..., n_targets) for several targets
        """
        (alphas, nus), found = self._solutions(alphas, nus)
        X, _ = checks.split_qid_column(X, None)
        X = self._rows(X)
        stack, M = self._stack(), len(self.views_)
        a = np.hstack([weights.a for weights in found])
        intercept = np.concatenate([weights.intercepts.sum(axis=0) for weights in found])
        scores = np.empty((X.shape[0], a.shape[1]))
        for i in range(0, X.shape[0], BATCH_ROWS):
            scores[i : i + BATCH_ROWS] = (stack(X[i : i + BATCH_ROWS]) @ a + intercept) / M
        targets = self.view_coefs_[0].shape[1:]
        return in_precision(scores, X.dtype).reshape(len(scores), len(nus), len(alphas), *targets)

    def explain(self, x_a: ArrayLike, x_b: ArrayLike) -> np.ndarray:
        """Explain why a ranks above b: the contribution of each feature to score(a) - score(b), the mean over views.

        Parameters
        ----------
        x_a, x_b : array-like of shape (n_features,)
            Two items.

        Returns
        -------
        contributions : ndarray of shape (n_features,), or Series by name where x_a is a row of a pandas frame
            They sum to the difference of the scores; for a linear view `coef * (x_a - x_b)`, for a kernel of the
            library the integral of the gradient from b to a, as in `RankRLS.explain`.
        """
        check_is_fitted(self, "alpha_")
        M = len(self.views_)
        return of_model(self, np.full(M, 1 / M), x_a, x_b)

    def __getstate__(self) -> dict[str, Any]:
        """The state written to a file; rows that views are expanded in only with store_path=True."""
        state = dict(super().__getstate__())
        rows = () if self.store_path or "expanded_in_" not in state else ("expanded_in_", "statistics_", "agreement_")
        return {name: value for name, value in state.items() if name not in rows}

    def _stack(self) -> Stack:
        return Stack.of(self.views_, np.empty((1, self.n_features_in_)), vars(self).get("expanded_in_", ()))

    def _solutions(self, alphas: ArrayLike | None, nus: ArrayLike | None) -> tuple[Grid, list[ViewWeights]]:
        """The solutions at every nu and alpha: all alphas at the first nu, then at the second, and so on."""
        check_is_fitted(self, "alpha_")
        if vars(self).get("statistics_") is None:
            raise ValueError(
                "this model cannot be solved for other values: a linear view with more columns than rows was expanded "
                "in its rows, which are larger than 64 MB or were not saved with it. Fit it with store_path=True, or "
                "give that view fewer columns, or a kernel and a basis"
            )
        joint = Joint(self._stack(), self.statistics_, self.agreement_)
        tried: ArrayLike = getattr(self, "alphas_", choice.default_alphas(joint.mean_eigenvalue))
        tried_nus: ArrayLike = getattr(self, "nus_", joint.nus)
        grid = (
            checks.check_grid("alphas", tried if alphas is None else alphas, zero=True),
            checks.check_grid("nus", tried_nus if nus is None else nus, zero=True),
        )
        return grid, [weights for nu in grid[1] for weights in joint.path(grid[0], nu)]
