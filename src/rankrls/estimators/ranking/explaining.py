"""A plain scoring function of a fitted RankRLS, and explanations of its rankings."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...core.contributions import contributions, known
from ..reasons import in_order, named
from .base import RidgeRanker
from .serving import kernel_scorer, linear_scorer


class Explained(RidgeRanker):
    """A model with weights on features or on points."""

    def scorer(self):
        """A plain function of arrays that scores like `predict`, for serving loops.

        It checks nothing: rows must be an array of finite floats of shape (n_samples, n_features), with the columns in
        the order of training. Later changes of the model do not affect it.

        Returns
        -------
        scorer : callable
            `scorer(X)` equals `predict(X)`.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> X = np.array([[1.0], [2.0], [3.0]])
        >>> score = RankRLS(alpha=1e-9).fit(X, [1, 2, 3]).scorer()
        >>> score(X).round(3)
        array([1., 2., 3.])
        """
        check_is_fitted(self, "alpha_")
        if hasattr(self, "coef_"):
            return linear_scorer(self.coef_, self.intercept_)
        return kernel_scorer(self.kernel_, self.X_fit_, self.dual_coef_, self.intercept_)

    def explain(self, x_a, x_b):
        """Explain why a ranks above b: the contribution of each feature to score(a) - score(b).

        Parameters
        ----------
        x_a, x_b : array-like of shape (n_features,)
            Two items.

        Returns
        -------
        contributions : ndarray of shape (n_features,), or Series by name where x_a is a row of a pandas frame
            They sum to the difference of the scores. For a linear model, `coef_ * (x_a - x_b)`; for a kernel model, the
            integral of the gradient along the straight line from b to a, in closed form (kernels of the library).

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> X, y = np.array([[1.0, 5.0], [0.0, 4.0], [3.0, 4.0]]), [1, 0, 3]
        >>> RankRLS(alpha=1e-6).fit(X, y).explain(X[2], X[0]).round(2) + 0.0
        array([2., 0.])
        >>> model = RankRLS(alpha=0.1, kernel="rbf").fit(X, y)
        >>> shares, scores = model.explain(X[2], X[0]), model.predict(X)
        >>> bool(np.isclose(shares.sum(), scores[2] - scores[0]))
        True
        """
        check_is_fitted(self, "alpha_")
        weights = self.coef_ if hasattr(self, "coef_") else self.dual_coef_
        if weights.ndim > 1:
            n_targets = len(weights) if hasattr(self, "coef_") else weights.shape[1]
            raise ValueError(f"the model has {n_targets} targets: explain one of them, or a mix, with mix([...])")
        rows = [np.asarray(in_order(self, x), dtype=float).ravel() for x in (x_a, x_b)]
        for row in rows:
            if len(row) != self.n_features_in_:
                raise ValueError(f"an item has {self.n_features_in_} features, got {len(row)}")
        if hasattr(self, "coef_"):
            return named(self.coef_ * (rows[0] - rows[1]), x_a, getattr(self, "feature_names_in_", None))
        if not known(self.kernel_):
            raise ValueError(
                f"the gradient of {type(self.kernel_).__name__} kernels is not implemented: linear models and models "
                "with the kernels of rankrls.kernels can be explained feature by feature"
            )
        points = self.X_fit_.toarray() if hasattr(self.X_fit_, "toarray") else self.X_fit_
        points, weights = (np.asarray(values, dtype=float) for values in (points, weights))
        shares = contributions(self.kernel_, points, weights, rows[0], rows[1])
        return named(shares, x_a, getattr(self, "feature_names_in_", None))
