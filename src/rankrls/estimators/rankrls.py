"""RankRLS: pairwise regularised least-squares ranking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self, overload

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from .. import checks
from ..blocks.sources import source_of
from ..core.expansion import expansion
from ..core.pairs import PairPreferences
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..core.statistics import Statistics
from ..core.weighting import WEIGHTINGS
from ..kernels import Precomputed, is_precomputed
from ..metrics import get_metric
from ..problems import choice
from ..problems.base import Model
from ..problems.choice import Choice, Setting
from ..system.frames import as_column, as_frame
from ..system.types import ArrayLike, FitInput, Ids, MatrixLike, Path, Seed
from .confidence import Confidence, noise_of
from .explaining import Explained
from .feedback import PairFeedback
from .from_blocks import BlockFit, check_same_loss, combined, fit_rows, fit_source, more_sums
from .pairs import PairSetup
from .serving import is_plain
from .setup import setups
from .training import GRAM_COLUMNS, Training

WIDE_COLUMNS = 500  # of explicit pairs, up to which weights are solved for as they are


def _keeps_sums(model: RankRLS) -> bool:
    """Whether queries can be added to or taken from the model."""
    if model.kernel is not None and model.basis is None:
        raise AttributeError("adding queries needs a linear model or a kernel with a fixed basis: pass basis=")
    if getattr(model, "statistics_", model) is None:
        raise AttributeError(
            "this model keeps no sums to add to or subtract from (it was fitted in dual or iterative form): start with "
            "partial_fit instead of fit"
        )
    return True


class RankRLS(PairFeedback, Confidence, Explained):
    """Learning to rank in closed form: regularised least squares over pairs of items of one query.

    Minimises, over linear or kernel functions f, ::

        sum over queries q, pairs (i, j) of q of
            c_q ((y_i - y_j) - (f(x_i) - f(x_j)))^2  +  alpha ||f||^2

    without ever forming a pair: one pass over the data, one factorisation, every alpha, and the exact
    leave-query-out score of every alpha, by which alpha is chosen unless you give one.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Regularisation. "auto" takes the value of `alphas` with the best `scoring` under `cv`.
    kernel : None, str, kernel object or callable, default=None
        None is a linear model. Names: "linear", "rbf", "poly", "laplacian", "cosine", "precomputed"; objects are in
        `rankrls.kernels`; a callable maps (X, Z) to the matrix of kernel values. `Gaussian(gamma="auto")` chooses the
        width together with alpha.
    basis : None, int, object of `rankrls.bases`, array of row indices or array of points, default=None
        None expands a kernel model in all training points. A number takes that many rows by randomly pivoted Cholesky,
        an object such as `KMeansCentres(500)` as it says (Sparse RankRLS); indices take these rows; a
        two-dimensional array holds the points themselves.
    weighting : {"pairs", "queries", "items"}, default="items"
        What counts equally: every pair (c = 1), every query (c = 1 / pairs of the query) or every item
        (c = 1 / items of the query).
    tied_pairs : bool or "auto", default=False
        Whether pairs with equal y ask for equal scores (True) or are left out (False); "auto" chooses with alpha.
        Several targets need True.
    regression : float in [0, 1], default=0.0
        Share of the plain squared error of each item in the loss; above zero there is an unpenalised intercept, and
        scores are calibrated towards y. 1 is ridge regression.
    alphas : array-like of float, default=None
        Values to choose from. None takes 15 values over seven decades around the mean eigenvalue of the loss,
        and more, with a warning, while the best one lies at an end.
    scoring : str or callable, default="pairwise_accuracy"
        A metric of `rankrls.metrics` by name, such as `"ndcg@10"`, or a callable (y, scores, qid) -> float, larger
        better. It chooses alpha and is what `score` returns.
    cv : "leave-query-out", int, scikit-learn group splitter or iterable of splits, default="leave-query-out"
        Held-out folds, unions of whole queries; all are exact and none refits. A single query is cut into folds of its
        items (10 unless `cv` is a number or gives splits). Data for which the iterative solver is used (many
        thousands of sparse features and of rows) take five folds of queries for "leave-query-out".
    scale : "auto" or None, default="auto"
        "auto" measures columns in units of their own spread, so that their scale does not matter: a linear model is
        penalised by the sum of (w_j s_j)^2, where s_j is the root mean square of column j within queries over the
        pairs that count, and the kernels of the library see every column divided by its standard deviation. `coef_`
        stays in the units of X. None is the papers' penalty, the sum of w_j^2, and the columns as they are. Functions
        of yours and precomputed kernels are never scaled.
    positive : bool, list of columns, or dict, default=False
        Signs that weights of a linear model must have: True for none below zero, columns by name or number for these
        alone, a dict such as `{"bm25": +1, "spam": -1}` for either sign. Exact, and held out exactly.
    random_state : int, Generator or None, default=None
        Used only to choose basis points.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    alpha_ : float
        The regularisation used.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Weights of a linear model.
    dual_coef_ : ndarray of shape (n_points,) or (n_points, n_targets)
        Weights of a kernel model on the points `X_fit_`.
    intercept_ : float or ndarray of shape (n_targets,)
        Zero unless `regression` is positive: ranking does not see it.
    X_fit_ : ndarray
        Points of a kernel model: the training rows or the basis.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    scale_ : ndarray of shape (n_features,)
        With scale="auto", the spread of each column; zero for a column that does not vary within queries, which a
        linear model leaves out.
    alphas_, cv_scores_ : ndarray of shape (n_alphas,)
        The grid and the mean held-out score of each value (only with alpha="auto", as the next two).
    cv_errors_ : ndarray of shape (n_alphas,)
        The standard error of each entry of `cv_scores_` over the held-out queries (over the folds of items of a single
        query). NaN where there is no telling: `scoring` is a function of yours, or the model was fitted on pairs.
    cv_criterion_ : str
        What `cv_scores_` are where they are not `scoring`: the loss, for rows that could be read only once.
    cv_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Held-out scores of the training rows at `alpha_`; NaN for rows of weight zero or in no fold.
    tied_pairs_ : bool
        Whether tied pairs were included.
    weighting_ : str
        The `weighting` that was used.
    n_queries_, n_pairs_ : int
        Queries seen, and pairs that counted.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, when X has string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, 3.0]])
    >>> y, qid = np.array([1, 0, 2, 0]), np.array(["a", "a", "b", "b"])
    >>> ranker = RankRLS(alpha=0.1).fit(X, y, qid=qid)
    >>> ranker.rank(X, qid)
    array([1, 2, 1, 2])
    """

    __metadata_request__partial_fit = {"qid": True}  # noqa: RUF012

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        kernel: object = None,
        basis: object = None,
        weighting: Any = "items",
        tied_pairs: bool | str = False,
        regression: float = 0.0,
        alphas: ArrayLike | None = None,
        scoring: str | Callable[..., float] = "pairwise_accuracy",
        cv: object = "leave-query-out",
        scale: str | None = "auto",
        positive: object = False,
        random_state: Seed = None,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.basis = basis
        self.weighting = weighting
        self.tied_pairs = tied_pairs
        self.regression = regression
        self.alphas = alphas
        self.scoring = scoring
        self.cv = cv
        self.scale = scale
        self.positive = positive
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: FitInput,
        y: ArrayLike | str | None = None,
        qid: Ids | str = None,
        sample_weight: ArrayLike | str | None = None,
        *,
        pairs: ArrayLike | None = None,
        margins: ArrayLike | None = None,
        pair_weights: object = None,
        checkpoint: Path | None = None,
    ) -> Self:
        """Learn to rank the rows of each query by y.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items. A data frame may hold the query ids in a column named "qid". With kernel="precomputed", the
            (n_samples, n_samples) kernel matrix. More rows than fit in memory: see Notes.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) with tied_pairs=True
            Relevance: any real numbers, larger is better. Of a table, the name of its column.
        qid : array-like of shape (n_samples,), default=None
            Query of each row: any labels in any order. None is one query. Of a table, the name of its column.
        sample_weight : array-like of shape (n_samples,), default=None
            Copies each row counts for. Of a table, the name of its column.
        pairs, margins, pair_weights : array-like, default=None
            Preferences to learn besides the labels, as in `add_pairs`. Alpha is chosen by the labels.
        checkpoint : path, default=None
            For rows that are not in memory: a file from which an interrupted fit goes on when it is called again with
            the same data and parameters.

        Returns
        -------
        self

        Notes
        -----
        Linear models and kernel models with a basis also learn from rows that are not in memory: a Parquet file or
        folder, a LETOR file, a polars LazyFrame, a DuckDB relation, a pyarrow Dataset or RecordBatchReader, an
        iterator over blocks `(X, y, qid)`, `(X, y, qid, weights)` or data frames, or a function that returns such an
        iterator anew each time. In tables `y` names the label ("y" by default) and `qid` the query ids ("qid"), all
        other columns are features, and rows come in any order; blocks of an iterator bring the rows of a query
        together, though a block may end within one. The sums take one pass, exact leave-query-out a second one; what
        can be read only once needs a number for alpha, or cv=5 (alpha is then chosen by the held-out loss).
        `cv_predictions_` is not kept. docs/scale.md has the limits.
        """
        self._check_params()
        with self._attempt():
            source = source_of(X, y, qid, sample_weight)
            if source is not None and pairs is not None:
                raise ValueError("pairs name rows in memory, and these are read in blocks: fit, then call add_pairs")
            self.__dict__.pop("pairs_", None)
            if source is not None or hasattr(X, "sum_by_query"):
                checks.check_unsigned(self.positive, "rows that are read in blocks")
            if source is not None:
                return self._store_blocks(fit_source(self, source, checkpoint))
            if hasattr(X, "sum_by_query"):  # rows in blocks already, on a cluster
                return self._store_blocks(fit_rows(self, X))  # type: ignore[arg-type]
            if checkpoint is not None:
                raise ValueError("checkpoint is for rows that are read in blocks; these are in memory")
            X, y, qid, sample_weight = checks.named_columns(X, y, qid, sample_weight)
            X = as_frame(X)  # a stream can be read only once
            self._fit(self._training(X, y, qid, sample_weight))
            return self if pairs is None else self.add_pairs(X, pairs, margins, pair_weights)

    def _fit(self, rows: Training):
        given = self.alphas if self._auto else [self.alpha]
        loss = {"weighting": self.weighting, "regression": float(self.regression)}
        options = rows.with_kernels(self.kernel, self.basis, self.random_state)
        candidates = setups(options, self.tied_pairs, given, **loss)
        if self._auto or self.tied_pairs == "auto" or len(options) > 1:
            chosen = choice.choose(candidates, self.cv, get_metric(self.scoring))
        else:
            chosen = Choice.only(next(candidates), Setting(alpha=float(self.alpha)))
        setup, alpha = chosen.candidate, chosen.setting.alpha
        data = setup.data
        self._store(setup.model(alpha), data)
        self.alpha_, self.tied_pairs_ = alpha, setup.tied
        self.n_queries_, self.n_pairs_, self.weighting_ = len(data.queries), setup.F.n_pairs, self.weighting
        self._forget_selection()
        if self._auto:
            self.alphas_, self.cv_scores_, self.cv_errors_ = chosen.alphas, chosen.scores, chosen.errors
            if data.flat and len(data.queries) > 1:
                self.noise_ = noise_of(data.y[:, 0], np.asarray(chosen.predictions[:, 0], dtype=float), data.queries)
            predictions = data.all_rows(chosen.predictions).astype(data.dtype, copy=False)
            self.cv_predictions_ = predictions[:, 0] if data.flat else predictions
        self.statistics_ = setup.statistics()
        self._keep_scale(setup.scale)
        return self

    def fit_pairs(
        self, X: MatrixLike, pairs: ArrayLike, margins: ArrayLike | None = None, weights: ArrayLike | None = None
    ) -> Self:
        """Learn from explicit preferences: minimise sum_p w_p (d_p - (f(x_i) - f(x_j)))^2 + alpha ||f||^2.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers (i, j): item i is preferred to item j.
        margins : array-like of shape (n_pairs,), default=None
            d, by how much; 1 if not given.
        weights : array-like of shape (n_pairs,), default=None
            w, the weight of each pair; 1 if not given.

        Returns
        -------
        self

        Notes
        -----
        alpha="auto" leaves out each pair, exactly, and counts held-out pairs in the right order. Where the preference
        graph falls into at least four components and none holds more than half of the pairs, whole components are left
        out instead: items that no chain of pairs links share nothing, as queries do. `weighting`, `tied_pairs`,
        `regression`, `scoring` and `cv` are not used.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
        >>> RankRLS(alpha=0.1).fit_pairs(X, [[2, 1], [1, 0]]).predict(X).round(2)
        array([-0.08,  0.83,  1.83])
        """
        self._check_params()
        checks.check_unsigned(self.positive, "fit_pairs")
        X = as_frame(X)
        X = validate_data(self, X, accept_sparse=self._accepts(), dtype=[np.float64, np.float32], ensure_min_samples=2)
        if self.__sklearn_tags__().input_tags.pairwise:
            checks.check_kernel_matrix(X)
        pairs = checks.check_pairs(pairs, X.shape[0])
        y = (
            np.ones(len(pairs))
            if margins is None
            else checks.check_numbers("margins", margins, len(pairs), unit="pair")
        )
        weights = checks.check_weights(weights, len(pairs), name="weights", unit="pair")
        if weights is not None:
            pairs, y, weights = (array[weights > 0] for array in (pairs, y, weights))
        F = PairPreferences(pairs, X.shape[0], weights)
        # expand weights in the rows only where these are far fewer: their kernel matrix squares what is large in them
        wide = self.kernel is None and X.shape[1] > min(max(X.shape[0], WIDE_COLUMNS), GRAM_COLUMNS)
        if wide and not sparse.issparse(X):
            X = X - X.mean(axis=0)  # pairs do not see it
        rows = Training(X, y, Queries.single(X.shape[0]), n_given=X.shape[0], scaled=self.scale is not None)
        options = rows.with_kernels("linear" if wide else self.kernel, self.basis, self.random_state)
        candidates = [PairSetup.of(data, F, y, self.alphas if self._auto else [self.alpha]) for data in options]
        if self._auto or len(options) > 1:
            chosen = choice.choose(candidates, None, get_metric("pairwise_accuracy"))
        else:
            chosen = Choice.only(candidates[0], Setting(alpha=float(self.alpha)))
        setup, alpha = chosen.candidate, chosen.setting.alpha
        model, data = setup.problem.model(alpha), setup.data
        if wide:
            coef = X.T @ model.coef
            scale = getattr(setup.data.kernel, "scale", None)
            model, data = Model(coef if scale is None else coef / scale[:, None] ** 2, model.intercept), rows
        self._store(model, data)
        self._forget_selection()
        if self._auto:
            self.alphas_, self.cv_scores_, self.cv_errors_ = chosen.alphas, chosen.scores, chosen.errors
        self.alpha_, self.tied_pairs_ = alpha, False
        self.n_queries_, self.n_pairs_ = 0, len(pairs)
        self.__dict__.pop("pairs_", None)
        sums = None if wide else setup.problem.sums
        self.statistics_ = None if sums is None else replace(sums, weight=0.0, beta=float(self.regression))
        self._keep_scale(setup.scale)
        return self

    @available_if(_keeps_sums)
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | str | None = None,
        qid: Ids | str | None = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Learn from more queries, exactly as if they had been there from the start.

        For linear models and for kernel models with a fixed basis. Every call brings whole queries: a query id that
        comes again is another query. What is "auto", and basis points, are chosen on the first call and kept.

        Parameters
        ----------
        X, y, qid, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(20, random_state=0)
        >>> early, whole = data.qid < "q0010", RankRLS(1.0).fit(data.X, data.y, qid=data.qid)
        >>> model = RankRLS(1.0)
        >>> for part in (early, ~early):
        ...     model = model.partial_fit(data.X[part], data.y[part], qid=data.qid[part])
        >>> bool(np.allclose(model.coef_, whole.coef_))
        True
        """
        return self._update(X, y, qid, sample_weight, learn=True)

    @available_if(_keeps_sums)
    def forget(
        self,
        X: MatrixLike,
        y: ArrayLike | str | None = None,
        qid: Ids | str | None = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Un-learn queries: afterwards the model equals, to rounding, one that never saw them.

        Parameters
        ----------
        X, y, qid, sample_weight
            The same rows, labels and weights the queries were learned from.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(20, random_state=0)
        >>> model, gone = RankRLS(1.0).fit(data.X, data.y, qid=data.qid), data.qid == "q0007"
        >>> model = model.forget(data.X[gone], data.y[gone], qid=data.qid[gone])
        >>> never = RankRLS(1.0).fit(data.X[~gone], data.y[~gone], qid=data.qid[~gone])
        >>> bool(np.allclose(model.coef_, never.coef_))
        True
        """
        check_is_fitted(self, "alpha_")
        return self._update(X, y, qid, sample_weight, learn=False)

    def _update(self, X: Any, y: Any, qid: Any, sample_weight: Any, *, learn: bool):
        self._check_params()
        fitted = hasattr(self, "alpha_")
        if fitted:
            check_same_loss(self)
        source = source_of(X, y, qid, sample_weight)
        if source is not None:
            if not fitted:
                return self._store_blocks(fit_source(self, source, None))
            return self._combine(*more_sums(self, source), learn=learn)
        X, y, qid, sample_weight = checks.named_columns(X, y, qid, sample_weight)
        X = as_frame(X)  # a stream can be read but once
        if fitted:
            alpha, tied = self.alpha_, self.tied_pairs_
        elif self._auto or self.tied_pairs == "auto" or self.kernel is not None:
            first = clone(self).fit(X, y, qid=qid, sample_weight=sample_weight)
            alpha, tied = first.alpha_, first.tied_pairs_
        else:
            alpha, tied = float(self.alpha), self.tied_pairs
        data = self._training(X, y, qid, sample_weight, fresh=False)
        if self.kernel is not None:
            known = self if fitted else first
            data = replace(data, kernel=known.kernel_, points=known.X_fit_)
        if data.kernel is None and data.X.shape[1] > GRAM_COLUMNS:
            raise ValueError(
                f"partial_fit keeps an n x n matrix, too large for {data.X.shape[1]} features; at most {GRAM_COLUMNS}"
            )
        loss = {"weighting": self.weighting, "regression": float(self.regression), "weights": data.weights}
        F = QueryPreferences(data.queries, None if tied else data.y[:, 0], **loss)
        sums = data.primal(F, data.y).sums
        if not fitted:
            self.alpha_, self.tied_pairs_, self.statistics_ = float(alpha), bool(tied), None
        return self._combine(sums, data, learn=learn)

    def _combine(self, sums: Statistics, data: Training, *, learn: bool):
        """The model of the sums so far and of more, or less."""
        sums = combined(self.statistics_, sums, self.alpha_, learn=learn)
        scaled = self.scale is not None and data.kernel is None
        self._keep_scale(sums.spread if scaled else getattr(data.kernel, "scale", None))
        self._store(self._solution(sums, data, getattr(self, "pairs_", None)), data)
        self.statistics_, self.n_queries_, self.n_pairs_ = sums, sums.n_queries, sums.n_pairs
        self.weighting_ = self.weighting
        self._forget_selection()
        return self

    def _store_blocks(self, found: BlockFit):
        """The fitted attributes of a fit to rows in blocks."""
        sums = found.sums
        self.n_features_in_ = found.data.X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if found.names is not None:
            self.feature_names_in_ = np.array(found.names, dtype=object)
        self._store(found.model, found.data)
        self.alpha_, self.tied_pairs_, self.statistics_ = found.alpha, found.tied, sums
        self.n_queries_, self.n_pairs_, self.weighting_ = sums.n_queries, sums.n_pairs, self.weighting
        self._forget_selection()
        self._keep_scale(found.scale)
        for name in ("alphas", "cv_scores", "cv_errors", "cv_criterion"):
            if getattr(found, name) is not None:
                setattr(self, f"{name}_", getattr(found, name))
        return self

    @overload
    def predict(self, X: MatrixLike) -> np.ndarray: ...

    @overload
    def predict(self, X: MatrixLike, *, return_std: bool) -> Any: ...

    def predict(self, X: MatrixLike, *, return_std: bool = False) -> Any:
        """Scores: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items; a column "qid" of a data frame is left aside. With kernel="precomputed", kernel values between
            the items and the training points.
        return_std : bool, default=False
            Also return how uncertain each score is, given what was learned; see `probability_above` for what it needs.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of shape (n_samples,), only with return_std=True
        """
        if return_std:
            return self.predict(X), self._standard_deviation(X)
        learned = vars(self)
        if "feature_names_in_" in learned or not is_plain(X, learned.get("n_features_in_", -1)):
            check_is_fitted(self, "alpha_")
            X, _ = checks.split_qid_column(X, None)
            X = validate_data(self, X, accept_sparse=self._accepts(), dtype=[np.float64, np.float32], reset=False)
        if "coef_" in learned:
            return np.asarray(X @ self.coef_.T) + self.intercept_
        return expansion(self.kernel_, X, self.X_fit_, self.dual_coef_) + self.intercept_

    @property
    def _auto(self) -> bool:
        return isinstance(self.alpha, str)

    def _forget_selection(self) -> None:
        for name in ("alphas_", "cv_scores_", "cv_errors_", "cv_criterion_", "cv_predictions_", "noise_"):
            self.__dict__.pop(name, None)

    def _keep_scale(self, scale: np.ndarray | None) -> None:
        self.__dict__.pop("scale_", None)
        if scale is not None:
            self.scale_ = scale

    def _check_params(self) -> None:
        if self._auto:
            checks.check_choice("alpha", self.alpha, ("auto",))
            if self.alphas is not None:
                checks.check_grid("alphas", self.alphas)
        else:
            checks.check_number("alpha", self.alpha)
        checks.check_choice("weighting", self.weighting, WEIGHTINGS)
        checks.check_choice("tied_pairs", self.tied_pairs, (True, False, "auto"))
        checks.check_share("regression", self.regression)
        checks.check_choice("scale", self.scale, ("auto", None))
        get_metric(self.scoring)
        if self.kernel is not None:
            checks.check_unsigned(self.positive, "a kernel model, which has weights of points and not of features,")
        if self.basis is not None and self.kernel is None:
            raise ValueError(
                'basis needs a kernel, e.g. RankRLS(kernel="rbf", basis=500); a linear model has no use for it'
            )

    def _training(self, X: Any, y: Any, qid: Any, sample_weight: Any, *, fresh: bool = True) -> Training:
        """Checked rows; unless `fresh`, further rows for a model that is fitted already."""
        checks.check_content(X=X, y=y, qid=qid, sample_weight=sample_weight)
        X, qid = checks.split_qid_column(X, qid)
        try:
            X, y = validate_data(
                self,
                X,
                as_column(y),
                accept_sparse=self._accepts(),
                dtype=[np.float64, np.float32],
                y_numeric=True,
                multi_output=True,
                ensure_min_samples=2 if fresh else 1,
                reset=fresh or not hasattr(self, "alpha_"),
            )
        except ValueError as error:
            raise checks.unreadable(error, X) from None
        if self.tied_pairs is not True and y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        queries = checks.check_queries(qid, X.shape[0])
        weights = checks.check_weights(sample_weight, X.shape[0])
        targets = checks.check_targets(y, tied_pairs=self.tied_pairs)
        if self.__sklearn_tags__().input_tags.pairwise and fresh:
            checks.check_kernel_matrix(X)
        signs = checks.check_signs(self.positive, X.shape[1], getattr(self, "feature_names_in_", None))
        kind = {"n_given": X.shape[0], "flat": y.ndim == 1, "signs": signs, "scaled": self.scale is not None}
        rows = Training(X, targets, queries, weights, **kind)
        data = rows.without_zero_weights()
        if self.tied_pairs is not False:
            checks.check_query_mass(data.queries, data.weights, self.weighting)
        if fresh and self.regression == 0:
            checks.check_comparable(data.y, data.queries)
        return data

    def _store(self, model: Model, data: Training) -> None:
        for name in ("coef_", "dual_coef_", "X_fit_", "kernel_"):
            self.__dict__.pop(name, None)
        coef = model.coef.astype(data.dtype)
        intercept = model.intercept.astype(data.dtype) if self.regression > 0 else np.zeros_like(model.intercept)
        self.intercept_ = float(intercept[0]) if data.flat else intercept
        if data.kernel is None:
            self.coef_ = coef[:, 0] if data.flat else coef.T
            return
        if isinstance(data.kernel, Precomputed) and data.points is None:
            coef = np.nan_to_num(data.all_rows(coef))  # a row not given has no weight
        self.kernel_ = data.kernel
        X = data.X if isinstance(data.kernel, Precomputed) else data.X.copy()  # the caller may change its rows
        self.X_fit_ = X if data.points is None else data.points
        self.dual_coef_ = coef[:, 0] if data.flat else coef

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        tags.target_tags.multi_output = self.tied_pairs is True
        return tags
