"""The path of alpha: weights and scores of a fitted RankRLS at every alpha, from one factorisation."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...core.expansion import expansion
from ...core.features import Nystroem
from ...core.symmetric import per_deviation
from ...problems import choice
from ...problems.base import Model
from ...problems.iterative import Iterative
from ...problems.signed import signed_models
from ...problems.solved import Solved, check_determined, mean_eigenvalue
from ...system.types import ArrayLike, MatrixLike
from .base import RidgeRanker
from .setup import setup_again


class Paths(RidgeRanker):
    """A model that can be solved again for other alphas."""

    def coef_path(self, alphas: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The weights of a linear model at every alpha, from one factorisation and without the data.

        A model with more columns than rows needs its rows for this: it keeps up to 64 MB of them in memory, or, with
        store_path=True, all of them, also in model files.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,), default=None
            Values of alpha; None: `alphas_` or, without these, 15 over seven decades around the mean eigenvalue of the
            loss.

        Returns
        -------
        alphas : ndarray of shape (n_alphas,)
        coefs : ndarray of shape (n_alphas, n_features) or (n_alphas, n_targets, n_features)
            `coefs[k]` is, to rounding, the `coef_` of a model fitted with `alphas[k]`.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> X, y = np.array([[1.0, 5.0], [0.0, 4.0], [3.0, 4.0]]), [1, 0, 3]
        >>> model = RankRLS(alpha=1.0).fit(X, y)
        >>> alphas, coefs = model.coef_path([1.0, 10.0])
        >>> bool(np.allclose(coefs[1], RankRLS(alpha=10.0).fit(X, y).coef_))
        True
        """
        check_is_fitted(self, "alpha_")
        if not hasattr(self, "coef_"):
            raise ValueError("a kernel model has weights on points, not on features: use dual_coef_path")
        alphas, models = self._models(alphas)
        coefs = np.reshape([model.coef.T for model in models], (len(alphas), *self.coef_.shape))
        return alphas, coefs.astype(self.coef_.dtype)

    def dual_coef_path(self, alphas: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The weights of a kernel model on its points at every alpha, from one factorisation.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,), default=None
            As in `coef_path`.

        Returns
        -------
        alphas : ndarray of shape (n_alphas,)
        dual_coefs : ndarray of shape (n_alphas, n_points) or (n_alphas, n_points, n_targets)
            `dual_coefs[k]` is, to rounding, the `dual_coef_` of a model fitted with `alphas[k]`.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> X, y = np.array([[1.0, 5.0], [0.0, 4.0], [3.0, 4.0]]), [1, 0, 3]
        >>> alphas, weights = RankRLS(alpha=1.0, kernel="rbf").fit(X, y).dual_coef_path([1.0, 10.0])
        >>> bool(np.allclose(weights[1], RankRLS(alpha=10.0, kernel="rbf").fit(X, y).dual_coef_))
        True
        """
        check_is_fitted(self, "alpha_")
        if not hasattr(self, "dual_coef_"):
            raise ValueError("a linear model has weights on features, not on points: use coef_path")
        alphas, models = self._models(alphas)
        coefs = np.reshape([model.coef for model in models], (len(alphas), *self.dual_coef_.shape))
        return alphas, coefs.astype(self.dual_coef_.dtype)

    def predict_path(self, X: MatrixLike, alphas: ArrayLike | None = None) -> np.ndarray:
        """Scores of the models of every alpha.

        Parameters
        ----------
        X : as in `predict`
        alphas : array-like of shape (n_alphas,), default=None
            As in `coef_path`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_alphas) or (n_samples, n_alphas, n_targets)
            Column k holds the scores of the model of `alphas[k]`.

        Examples
        --------
        >>> from rankrls import RankRLS, metrics
        >>> from rankrls.datasets import make_search
        >>> data, new = make_search(60, random_state=0), make_search(40, random_state=1)
        >>> model = RankRLS().fit(data.X, data.y, qid=data.qid)
        >>> metrics.pairwise_accuracy(new.y, model.predict_path(new.X), new.qid).shape == model.alphas_.shape
        True
        """
        check_is_fitted(self, "alpha_")
        X, _ = checks.split_qid_column(X, None)
        X = self._rows(X)
        alphas, models = self._models(alphas)
        linear = hasattr(self, "coef_")
        own = self.coef_ if linear else self.dual_coef_
        coef = np.hstack([model.coef for model in models]).astype(own.dtype)
        scores = np.asarray(X @ coef) if linear else expansion(self.kernel_, X, self.X_fit_, coef)
        if self.regression > 0:
            scores = scores + np.concatenate([model.intercept for model in models]).astype(own.dtype)
        return scores.reshape(len(scores), len(alphas), *([] if own.ndim == 1 else [-1]))

    def _models(self, alphas: ArrayLike | None) -> tuple[np.ndarray, list[Model]]:
        """The alphas and the solution of each, from the sums that the model keeps or from its rows."""
        if self.statistics_ is not None:
            return self._models_of_sums(alphas)
        return self._models_of_rows(alphas)

    def _models_of_sums(self, alphas: ArrayLike | None) -> tuple[np.ndarray, list[Model]]:
        sums, linear = self.statistics_, hasattr(self, "coef_")
        assert sums is not None
        W = None if self.scale is None else per_deviation(getattr(self, "scale_", sums.deviation))
        if not linear:
            W = Nystroem(self.kernel_, self.X_fit_).W
        found = self._grid(alphas, mean_eigenvalue(sums, W))
        signs = checks.check_signs(self.positive, self.n_features_in_, getattr(self, "feature_names_in_", None))
        if signs is not None:
            return found, signed_models(sums, found, signs, W=W)
        dtype = self.coef_.dtype if linear else np.float64
        check_determined(float(found.min()), sums, W, dtype)
        solved = Solved.of(sums, W, dtype)
        return found, [solved.model(alpha) for alpha in found]

    def _models_of_rows(self, alphas: ArrayLike | None) -> tuple[np.ndarray, list[Model]]:
        """The alphas and the solution of each, from the stored rows."""
        setup, rows = setup_again(self), vars(self).get("trained_on_")
        if setup is None or rows is None:
            raise ValueError(
                "this model cannot be solved for other alphas: it was fitted in dual or iterative form, so it keeps no "
                "sums, and its rows are larger than 64 MB or were not saved with it. Fit it with store_path=True"
            )
        found = self._grid(alphas, setup.problem.mean_eigenvalue * setup.unit)
        if not isinstance(setup.problem, Iterative):
            setup.problem.path  # noqa: B018  (computed here, once for all alphas)
        models = [setup.model(alpha) for alpha in found]
        if rows.kept is None or setup.data.kernel is None:
            return found, models
        width = self.dual_coef_.shape[0]  # for a precomputed kernel, that of all rows given to fit
        if width == rows.n_given:
            models = [Model(np.nan_to_num(setup.data.all_rows(model.coef)), model.intercept) for model in models]
        return found, models

    def _grid(self, alphas: ArrayLike | None, mean_eigenvalue: float) -> np.ndarray:
        tried: ArrayLike = getattr(self, "alphas_", choice.default_alphas(mean_eigenvalue))
        return checks.check_grid("alphas", tried if alphas is None else alphas, zero=True)
