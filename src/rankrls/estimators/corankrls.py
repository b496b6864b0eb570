"""CoRankRLS: co-regularised least-squares ranking from scored and unscored rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..bases import BasisLike
from ..blocks.reading import rows_of
from ..blocks.sources import source_of
from ..core.expansion import in_precision
from ..core.queries import BATCH_ROWS
from ..core.views import as_views
from ..core.weighting import WEIGHTINGS
from ..metrics import get_metric
from ..system.types import ArrayLike, FitInput, Ids, MatrixLike, Seed
from .rows.intake import PartlyScored
from .views.blocks import JointBlocks
from .views.fitting import JointSource, fit_joint, joint_rows, values
from .views.updates import ViewUpdates


class CoRankRLS(ViewUpdates):
    """Learning to rank from few scored and many unscored rows: one ranker per view, which agree on the unscored rows.

    Minimises, over functions f_1 .. f_M of M views, ::

        sum_v  loss(f_v)  +  alpha sum_v ||f_v||^2
        +  nu sum_{v,u} sum over pairs (i, j) of unscored rows of one query
               c_q ((f_v(x_i) - f_v(x_j)) - (f_u(x_i) - f_u(x_j)))^2

    with the loss of `RankRLS` on the scored rows; the prediction is the mean of the views. One pass over the
    unscored rows serves every alpha and nu, and values that are "auto" are chosen by exact leave-query-out over the
    scored queries. Time is linear in the number of rows. Memory holds a block of rows, and a matrix with one row and
    column for each basis point or linear column of all views.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Regularisation of each view. Zero is accepted if the rows determine every weight.
    nu : float or "auto", default="auto"
        Weight of the agreement; 0 lets each view learn by itself.
    views : int or list of View, default=2
        A number of views that differ in their basis (disjoint random rows, scored or not), or a list of views with
        their own columns, kernel and basis.
    kernel, basis : default="rbf", 100
        Kernel and number of basis rows of each view if `views` is a number, as in `RankRLS`; otherwise not used.
    weighting : {"pairs", "queries", "items"}, default="items"
        What counts equally, among scored and among unscored rows, as in `RankRLS`.
    tied_pairs : bool or "auto", default=False
        Whether scored pairs with equal y should get equal scores, as in `RankRLS`. Unscored pairs always count. Several
        targets need True.
    regression : float in [0, 1], default=0.0
        Share of the plain squared error in the loss of each view, as in `RankRLS`; every view then has an intercept.
    agree_on : {"unscored", "all"}, default="unscored"
        The rows on which views should agree. With "all" the scored rows are included, so that views help each other
        even if every row has a score.
    alphas, nus : array-like of float, default=None
        Values to choose from. None: 15 alphas over seven decades around the mean eigenvalue of the loss, and for nu
        zero and seven values over six decades around that at which agreement weighs as much as the loss.
    scoring : str or callable, default="pairwise_accuracy"
        As in `RankRLS`: it chooses alpha and nu, and `score` returns it.
    cv : "leave-query-out", int, scikit-learn group splitter or iterable of splits, default="leave-query-out"
        Held-out folds of scored queries, as in `RankRLS`; unscored rows stay in all of them.
    random_state : int, Generator or None, default=None
        Used only to draw random bases.
    store_path : bool, default=False
        Keep the held-out scores of every nu and alpha in `cv_predictions_path_`, and hold rows out even if both are
        numbers. Also keep all rows of linear views with more columns than rows, which `coef_path` and `predict_path`
        need; otherwise up to 64 MB of them are kept, until the model is saved.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    alpha_, nu_ : float
        The values used.
    views_ : list of FittedView
        For each view the `columns` by number, the `kernel` with its parameters and the basis `points` (None if linear).
    view_coefs_ : list of ndarray
        For each view the weights of its points or, if linear, of its columns.
    view_intercepts_ : ndarray of shape (n_views,)
        The intercept of each view; zero unless `regression` is positive.
    disagreement_ : float
        `sum_v ||f_v - f||^2 / sum_v ||f_v||^2` over pairs of unscored rows of one query, with f the mean of the views:
        the share of their variation on which the views disagree. 0 means that they agree, 1 - 1/M that they have
        nothing in common. NaN without unscored pairs.
    alphas_, nus_ : ndarray of shape (n_alphas,), (n_nus,)
        The grids (only if alpha or nu is "auto", like the next three attributes).
    cv_scores_ : ndarray of shape (n_nus, n_alphas)
        Mean held-out score of each pair of values.
    cv_errors_ : ndarray of shape (n_nus, n_alphas)
        Their standard errors over held-out queries, as in `RankRLS`.
    cv_predictions_ : ndarray of shape (n_samples,)
        Held-out scores of the scored rows at `alpha_` and `nu_`; NaN for other rows.
    cv_predictions_path_ : ndarray of shape (n_samples, n_nus, n_alphas)
        The same at every nu and alpha (only with store_path=True).
    expanded_in_ : list
        For each view, the rows it is expanded in, or None (only if there is such a view).
    tied_pairs_ : bool
        Whether tied pairs were included.
    weighting_, agree_on_ : str
        The `weighting` and `agree_on` that were used.
    n_queries_, n_pairs_ : int
        Queries with scored rows, and scored pairs that counted.
    n_unscored_ : int
        Number of unscored rows.
    n_features_in_, feature_names_in_
        As in `RankRLS`.

    Notes
    -----
    Without unscored pairs the views have nothing to agree on: `fit` warns and learns each view separately. With a
    single view nu has no effect, and the model is a RankRLS on the scored rows.

    References
    ----------
    Tsivtsivadze, Pahikkala, Boberg, Salakoski, Heskes: Co-regularized least-squares for label ranking (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import CoRankRLS, View
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(400, 4)), np.repeat(np.arange(40), 10)
    >>> X[:, 2:] = X[:, :2] + 0.1 * rng.normal(size=(400, 2))  # two descriptions of the same thing
    >>> y = X[:, 0] - X[:, 1]
    >>> y[40:] = np.nan  # four scored queries, 36 unscored
    >>> model = CoRankRLS(views=[View([0, 1]), View([2, 3])]).fit(X, y, qid=qid)
    >>> model.n_queries_, model.n_unscored_, model.predict_views(X).shape
    (4, 360, (400, 2))
    >>> model.score(X, y, qid) > 0.95  # rows without y are left out
    True
    """

    _skips_unscored = True

    def __init__(
        self,
        alpha: float | str = "auto",
        nu: float | str = "auto",
        *,
        views: object = 2,
        kernel: object = "rbf",
        basis: BasisLike | None = 100,
        weighting: Any = "items",
        tied_pairs: Any = False,
        regression: float = 0.0,
        agree_on: str = "unscored",
        alphas: ArrayLike | None = None,
        nus: ArrayLike | None = None,
        scoring: str | Callable[..., float] = "pairwise_accuracy",
        cv: object = "leave-query-out",
        random_state: Seed = None,
        store_path: bool = False,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.nu = nu
        self.views = views
        self.kernel = kernel
        self.basis = basis
        self.weighting = weighting
        self.tied_pairs = tied_pairs
        self.regression = regression
        self.agree_on = agree_on
        self.alphas = alphas
        self.nus = nus
        self.scoring = scoring
        self.cv = cv
        self.random_state = random_state
        self.store_path = store_path
        self.verbose = verbose

    def fit(
        self,
        X: FitInput | JointSource,
        y: ArrayLike | str | None = None,
        qid: Ids | str = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Learn to rank the rows of each query by y where it is given, with views that agree where it is missing.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items. A data frame may hold the query ids in a column named "qid".
        y : array-like of shape (n_samples,), or (n_samples, n_targets) with tied_pairs=True
            Relevance, larger is better; NaN where a row is unscored.
        qid : array-like of shape (n_samples,), default=None
            Query of each row, scored or not: any labels in any order. None: all rows are one query. Scored and
            unscored rows may share a query.
        sample_weight : array-like of shape (n_samples,), default=None
            The number of copies that each row counts as.

        Returns
        -------
        self

        Notes
        -----
        Rows that are not in memory are read in blocks, as in `RankRLS.fit`: Parquet, LETOR, a polars LazyFrame, a
        DuckDB relation, an iterator over blocks (stored on disk for further passes) or a function that returns one;
        rows with missing y are unscored. The scored rows are read into memory, and only sums of the unscored ones are
        kept. Views must be linear, or have a number of points or given points.
        """
        self._check_params()
        with self._attempt():
            source = source_of(X, y, qid, sample_weight)
            if source is not None:
                X = JointBlocks(rows_of(source))
            if isinstance(X, JointSource):
                if self.store_path:
                    raise ValueError("store_path needs rows in memory, and these are read in blocks: leave it out")
                seen, joint = X.joint_rows(self)
                found = replace(fit_joint(self, iter([joint])), cv_predictions=None)  # rows of blocks have no order
                return self._store(seen, found)
            rows = PartlyScored.of(self, X, y, qid, sample_weight, several=True)
            names = getattr(self, "feature_names_in_", None)
            return self._store(fit_joint(self, joint_rows(self, names, rows)))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Scores, the mean of the views: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items; a column "qid" of a data frame is ignored.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self.predict_views(X).mean(axis=1)

    def predict_views(self, X: MatrixLike) -> np.ndarray:
        """Scores of each view.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        scores : ndarray of shape (n_samples, n_views) or (n_samples, n_views, n_targets)
        """
        check_is_fitted(self, "alpha_")
        X, _ = checks.split_qid_column(X, None)
        X = self._rows(X)
        scores = np.empty((X.shape[0], len(self.views_), *self.view_coefs_[0].shape[1:]))
        for i in range(0, X.shape[0], BATCH_ROWS):
            block = X[i : i + BATCH_ROWS]
            for v, (view, coef) in enumerate(zip(self.views_, self.view_coefs_, strict=True)):
                scores[i : i + BATCH_ROWS, v] = view.scores(block, coef)
        return in_precision(scores if self.regression == 0 else scores + self.view_intercepts_, X.dtype)

    # ---------------------------------------------------------------- helpers

    def _check_params(self) -> None:
        for name, value in (("alpha", self.alpha), ("nu", self.nu)):
            if isinstance(value, str):
                checks.check_choice(name, value, ("auto",))
        values("alpha", self.alpha, self.alphas, zero=True)
        values("nu", self.nu, self.nus, zero=True)
        checks.check_share("regression", self.regression)
        checks.check_choices(self, agree_on=("unscored", "all"), weighting=WEIGHTINGS, tied_pairs=(True, False, "auto"))
        get_metric(self.scoring)
        if isinstance(self.cv, str):
            checks.check_choice("cv", self.cv, ("leave-query-out",))
        as_views(self.views, self.kernel, self.basis)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self.tied_pairs is True
        return tags
