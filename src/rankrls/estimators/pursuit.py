"""RankingPursuit: sparse ranking models with explicit control of their size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..bases import is_count
from ..core.preferences import QueryPreferences
from ..core.queries import BATCH_ROWS, Queries
from ..core.views import FittedView, as_views, fitted_views
from ..core.weighting import WEIGHTINGS
from ..kernels import Precomputed, is_precomputed
from ..metrics import get_metric
from ..problems import choice
from ..problems.pursuit import PursuitPath
from ..system.progress import reporting
from ..system.seeds import seed_of
from ..system.types import ArrayLike, MatrixLike, Seed
from ..system.warnings import warn
from .base import Ranker
from .candidates import Candidate, Trial, agreeing, supervised
from .intake import PartlyScored
from .training import Training, preferences_among

FOLDS = 5
VIEW_ROWS = 300  # basis=None gives each of several views that many random rows, or its share of them


class RankingPursuit(Ranker):
    """Sparse ranking models: basis functions chosen one after the other, each the one that lowers the loss most.

    Minimises the loss of `RankRLS` without a penalty; the number of basis functions is what regularises. They are
    kernels centred at training rows or at given points or, with `kernel=None`, single features (greedy feature
    selection for ranking). One run gives the models of every size (`path_`), of which the best is chosen by holding out
    whole queries unless you give a number.

    Parameters
    ----------
    n_basis : int or "auto", default="auto"
        Basis functions of the model (of each view). "auto" takes the size up to `max_basis` with the best `scoring`
        under `cv`, the smallest of several.
    kernel : None, str, kernel object or callable, default="rbf"
        As in `RankRLS`; None chooses among the columns of X. `Gaussian(gamma="auto")` chooses the width too.
    basis : None, int, object of `rankrls.bases`, array of row indices or array of points, default=None
        The points to choose from: every scored training row (None), or as in `RankRLS`. A dictionary that does not fit
        into memory is computed again in every step.
    views : int or list of View, default=1
        More than one: each step takes a function of each view, so that the views fit the scores and agree on rows where
        y is NaN, as in `CoRankRLS`. A number takes disjoint random rows as the `basis` of each view, at most 300 of
        them if that is None. The basis of a `View` is what it may choose from.
    nu : float or "auto", default=0.0
        Weight of the agreement; not used with one view.
    shared_basis : bool, default=False
        Whether all views choose the same number of their points, or columns, in a step. Two views search all pairs
        otherwise; more than two need True.
    backfit : bool, default=True
        Whether all coefficients are fitted anew in every step, and functions chosen by what this would give (orthogonal
        pursuit). False is the update of the paper, which leaves earlier coefficients as they are: a function may come
        again, and `n_basis` counts steps.
    regression : float in [0, 1], default=0.0
        Share of the plain squared error, as in `RankRLS`; 1 is kernel matching pursuit (with an intercept).
    weighting, tied_pairs : default="items", False
        As in `RankRLS`.
    max_basis : int, default=100
        The largest size that "auto" tries.
    nus : array-like of float, default=None
        Values of nu to choose from, as in `CoRankRLS`.
    scoring : str or callable, default="pairwise_accuracy"
        As in `RankRLS`: chooses what is "auto", and is what `score` returns.
    cv : None, int, "leave-query-out", scikit-learn group splitter or iterable of splits, default=None
        Held-out folds of whole queries, or of the items of a single query; None is five, or as many as there are. Every
        fold costs a path of its own; training rows in it are no basis points there.
    random_state : int, Generator or None, default=None
        Used only to draw basis points.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    path_ : PursuitPath
        Every size: `indices` in the order chosen, `coefs`, training `errors`, held-out `scores`, atoms skipped.
    n_basis_ : int
        The size used; smaller than `n_basis` if nothing was left to gain.
    basis_indices_ : ndarray of int
        The functions of the model in the order chosen: row numbers of X, columns if linear, or numbers of the points
        that `basis` gives. A list of such arrays, one for each view, with several views.
    coef_ : ndarray of shape (n_features,)
        Weights of a linear model (one view), mostly zero.
    dual_coef_, basis_ : ndarray of shape (n_basis,), (n_basis, n_features)
        Weights of a kernel model (one view) and the points they belong to; no points with a precomputed kernel.
    intercept_ : float
        Zero unless `regression` is positive.
    kernel_ : Kernel
        The kernel with its parameters fixed (one view).
    views_, view_coefs_, view_intercepts_ : list of FittedView, list of ndarray, ndarray
        Of each view its columns, kernel and points, and their weights.
    nu_ : float
        The weight of agreement used.
    cv_predictions_ : ndarray of shape (n_samples,)
        Held-out scores at `n_basis_`, NaN for rows in no fold (only if something is "auto").
    n_queries_, n_pairs_, n_unscored_ : int
        Queries with scored rows, scored pairs that counted, and rows without a score.
    n_features_in_, feature_names_in_
        As in `RankRLS`.

    References
    ----------
    Tsivtsivadze, Heskes: Semi-supervised ranking pursuit (2013).

    Examples
    --------
    >>> from rankrls import RankingPursuit
    >>> from rankrls.datasets import make_search
    >>> data = make_search(60, random_state=0)
    >>> model = RankingPursuit(kernel=None).fit(data.X, data.y, qid=data.qid)
    >>> [data.feature_names[i] for i in model.basis_indices_]
    ['bm25_body', 'click_rate', 'embedding_cosine', 'bm25_title']
    >>> small = model.resized(3)  # every smaller model is there already
    >>> small.n_basis_, model.predict_path(data.X).shape[0] == len(data.y)
    (3, True)
    """

    _learned = "n_basis_"
    _skips_unscored = True

    def __init__(
        self,
        n_basis: int | str = "auto",
        *,
        kernel: object = "rbf",
        basis: Any = None,
        views: Any = 1,
        nu: Any = 0.0,
        shared_basis: bool = False,
        backfit: bool = True,
        regression: float = 0.0,
        weighting: str = "items",
        tied_pairs: bool | str = False,
        max_basis: int = 100,
        nus: ArrayLike | None = None,
        scoring: str | Callable[..., float] = "pairwise_accuracy",
        cv: object = None,
        random_state: Seed = None,
        verbose: bool = False,
    ) -> None:
        self.n_basis = n_basis
        self.kernel = kernel
        self.basis = basis
        self.views = views
        self.nu = nu
        self.shared_basis = shared_basis
        self.backfit = backfit
        self.regression = regression
        self.weighting = weighting
        self.tied_pairs = tied_pairs
        self.max_basis = max_basis
        self.nus = nus
        self.scoring = scoring
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Self:
        """Choose functions by which the rows of each query are ranked like y.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items. A data frame may hold the query ids in a column named "qid". With kernel="precomputed", the
            (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,)
            Relevance, larger is better; NaN where a row is unscored. One view does not look at unscored rows.
        qid : array-like of shape (n_samples,), default=None
            Query of each row: any labels in any order. None is one query.
        sample_weight : array-like of shape (n_samples,), default=None
            Copies each row counts for.

        Returns
        -------
        self
        """
        self._check_params()
        with self._attempt():
            return self._fit(X, y, qid, sample_weight)

    def _fit(self, X: Any, y: Any, qid: Any, sample_weight: Any):
        rows = PartlyScored.of(self, X, y, qid, sample_weight)
        X, y, queries, u, scored, unscored = rows.X, rows.y, rows.queries, rows.weights, rows.scored, rows.unscored
        if self.__sklearn_tags__().input_tags.pairwise and not self._several:
            checks.check_kernel_matrix(X)
        labels = None if self.tied_pairs else y
        F = preferences_among(queries, u, scored, labels, weighting=self.weighting, regression=float(self.regression))
        if self.regression == 0:
            checks.check_comparable(y[scored, None], F.queries)
        kept = None if len(scored) == X.shape[0] else scored
        data = Training(X, y[scored, None], F.queries, F.u, kept=kept, n_given=X.shape[0])
        candidates = self._candidates(F, data, scored, unscored, (queries, u))
        self.n_queries_, self.n_pairs_, self.n_unscored_ = len(F.queries), F.n_pairs, len(unscored)
        return self._learn(candidates, data)

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Scores, the mean of the views: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items; a column "qid" of a data frame is left aside. With kernel="precomputed", kernel values between
            the items and all training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        scores = self.predict_views(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores.mean(axis=1)

    def predict_views(self, X: MatrixLike) -> np.ndarray:
        """Scores of each view.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        scores : ndarray of shape (n_samples, n_views)
        """
        X = self._checked(X)
        scores = np.empty((X.shape[0], len(self.views_)), dtype=X.dtype)
        for i in range(0, X.shape[0], BATCH_ROWS):
            block = X[i : i + BATCH_ROWS]
            for v, (view, coef) in enumerate(zip(self.views_, self.view_coefs_, strict=True)):
                scores[i : i + BATCH_ROWS, v] = view(block) @ coef + self.view_intercepts_[v]
        return scores

    def predict_path(self, X: MatrixLike) -> np.ndarray:
        """Scores of the models of all sizes, the mean of the views each.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        scores : ndarray of shape (n_samples, n_sizes)
            Column p holds the scores of the model of size p + 1.

        Examples
        --------
        >>> from rankrls import RankingPursuit, metrics
        >>> from rankrls.datasets import make_search
        >>> data, new = make_search(60, random_state=0), make_search(40, random_state=1)
        >>> model = RankingPursuit(4, kernel=None).fit(data.X, data.y, qid=data.qid)
        >>> metrics.pairwise_accuracy(new.y, model.predict_path(new.X), new.qid).round(2)
        array([0.76, 0.81, 0.82, 0.84])
        """
        X = self._checked(X)
        k, M = len(self.path_), len(self._steps)
        coefs, intercepts = self.path_.coefs.reshape(k, M, k), self.path_.intercepts.reshape(k, M)
        scores = np.empty((X.shape[0], k), dtype=X.dtype)
        for i in range(0, X.shape[0], BATCH_ROWS):
            block = X[i : i + BATCH_ROWS]
            total = sum(view(block) @ coefs[:, v].T for v, view in enumerate(self._steps))
            scores[i : i + BATCH_ROWS] = (total + intercepts.sum(axis=1)) / M
        return scores

    def resized(self, n_basis: Any) -> Self:
        """The model of another size on the path; nothing is fitted.

        Parameters
        ----------
        n_basis : int
            A size between 1 and `len(path_)`.

        Returns
        -------
        model : RankingPursuit
            A copy; this model stays as it is.

        Examples
        --------
        >>> from rankrls import RankingPursuit
        >>> from rankrls.datasets import make_search
        >>> data = make_search(60, random_state=0)
        >>> model = RankingPursuit(4, kernel=None).fit(data.X, data.y, qid=data.qid)
        >>> model.resized(2).basis_indices_.tolist() == model.basis_indices_[:2].tolist()
        True
        """
        check_is_fitted(self, self._learned)
        if not is_count(n_basis) or not 1 <= n_basis <= len(self.path_):
            raise ValueError(f"n_basis must be a size on the path, 1 to {len(self.path_)}, got {n_basis!r}")
        model = self._copy()
        model._settle(int(n_basis))
        return model

    def alternatives(self, k: Any = 5, *, tolerance: Any = 0.05) -> Any:
        """Other models of the same size that are nearly as good on the training rows.

        Each comes from a pursuit that is forbidden one of the functions of this model (or several, while there are not
        enough), so every alternative has another basis. For models of one view; several views are alternatives already.

        Parameters
        ----------
        k : int, default=5
            How many, at most.
        tolerance : float, default=0.05
            By what share the training loss of an alternative may exceed that of this model.

        Returns
        -------
        models : list of RankingPursuit
            The best first; fewer than k if no others are within the tolerance. `models[0].basis_indices_` tells the
            basis, `models[0].path_.errors[-1]` the loss.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankingPursuit
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 4))
        >>> X[:, 3] = X[:, 0] + 0.1 * rng.normal(size=100)  # another way to say almost the same
        >>> model = RankingPursuit(2, kernel=None).fit(X, X[:, 0] + X[:, 1] + rng.normal(size=100))
        >>> sorted(model.basis_indices_.tolist()), sorted(model.alternatives(1)[0].basis_indices_.tolist())
        ([1, 3], [0, 1])
        """
        check_is_fitted(self, self._learned)
        if self._several:
            raise ValueError("several views are several solutions already: see predict_views")
        if not hasattr(self, "_candidate"):
            raise ValueError("alternatives need the training rows, which a pickled model leaves behind: fit again")
        if not is_count(k) or k < 1:
            raise ValueError(f"k must be a positive number of models, got {k!r}")
        tolerance = checks.check_number("tolerance", tolerance, zero=True)
        if not self.n_basis_:
            return []
        own = replace(self.path_, indices=self._chosen)
        with reporting(self.verbose):
            paths = self._candidate.problem.released().alternatives(own, self.n_basis_, int(k), tolerance)
        models = []
        for path in paths:
            model = self._copy()
            model._keep(path)
            model._settle(len(path))
            models.append(model)
        return models

    # ---------------------------------------------------------------- inside

    def _copy(self) -> RankingPursuit:
        model = type(self).__new__(type(self))
        model.__dict__.update(self.__dict__)
        model.__dict__.pop("cv_predictions_", None)
        return model

    def _learn(self, candidates: list[Candidate], data: Training):
        """The best of several pursuits, its path and the size to use."""
        n = self._largest(candidates[0])
        sizes = np.arange(1, n + 1) if self._auto else np.array([n])
        best, ready, chosen = candidates[0], candidates[0].problem, None
        if self._auto or len(candidates) > 1:
            trials = (Trial(candidate, data, sizes) for candidate in candidates)
            chosen = choice.choose(trials, self._n_folds(data.queries), get_metric(self.scoring))
            best, ready = chosen.candidate.candidate, chosen.candidate.problem
        path = ready.released().path(n)
        if len(path) < n and (not self._auto or not len(path)):
            warn(
                f"stopped after {len(path)} of {n} basis functions: {path.stopped} "
                f"({path.n_skipped} atoms repeat those chosen, {path.n_zero} are constant within queries)",
            )
        self.__dict__.pop("cv_predictions_", None)
        size = len(path)
        if chosen is not None:
            size = min(chosen.setting.size, len(path))
            if self._auto:
                path = replace(path, scores=chosen.scores[: len(path)], score_errors=chosen.errors[: len(path)])
            self.cv_predictions_ = data.all_rows(chosen.predictions)[:, 0].astype(data.dtype)
        self.nu_ = getattr(best.problem, "nu", 0.0)
        self._mean = float(np.average(data.y[:, 0], weights=data.weights)) if self.regression > 0 else 0.0
        self._candidate = replace(best, problem=None if self._several else best.problem.released())
        self._keep(path)
        self._settle(size)
        return self

    def _largest(self, candidate: Candidate) -> int:
        """The longest path wanted."""
        most = candidate.n_atoms
        if self._auto:
            return min(int(self.max_basis), most)
        if int(self.n_basis) > most:
            raise ValueError(
                f"n_basis={self.n_basis} is more than the {most} functions there are to choose from"
                + (" in the smallest view" if len(candidate.views) > 1 else "")
                + f': take at most {most}, or "auto"'
            )
        return int(self.n_basis)

    def _n_folds(self, queries: Queries) -> Any:
        """What `cv` asks for, with its default in place of None."""
        single = len(queries) == 1
        if self.cv is None:
            return max(2, min(FOLDS, queries.n_rows // 2 if single else len(queries)))
        if isinstance(self.cv, str) and not single:
            checks.check_choice("cv", self.cv, ("leave-query-out",))
            return len(queries)
        return self.cv

    def _candidates(
        self, F: QueryPreferences, data: Training, scored: Any, unscored: Any, given: Any
    ) -> list[Candidate]:
        """The pursuits to choose from; `given` are the queries and weights of all rows."""
        if not self._several:
            options = {"kernel": self.kernel, "basis": self.basis, "seed": seed_of(self.random_state)}
            return supervised(F, data, scored, backfit=self.backfit, **options)
        queries, u = given
        G = preferences_among(queries, u, unscored, weighting=self.weighting)
        basis = self.basis
        if is_count(self.views) and basis is None and self.kernel is not None:
            basis = max(1, min(VIEW_ROWS, (len(scored) + len(unscored)) // self.views))
        names = getattr(self, "feature_names_in_", None)
        views = fitted_views(as_views(self.views, self.kernel, basis), data.X, names, u, seed_of(self.random_state))
        nus: Any = self.nus if isinstance(self.nu, str) else [self.nu]
        nus = None if nus is None else checks.check_grid("nus", nus, zero=True)
        options = {"views": views, "nus": nus, "backfit": self.backfit, "shared": self.shared_basis}
        return agreeing(F, G, data, scored, unscored, **options)

    def _keep(self, path: PursuitPath) -> None:
        """A path in the caller's numbers, and the functions of its steps."""
        names, views = self._candidate.numbers, self._candidate.views
        k, M = len(path), len(views)
        self._chosen = path.indices
        columns = [numbers[path.indices[:, v]] for v, numbers in enumerate(names)]
        self._steps = [_part(view, path.indices[:, v]) for v, view in enumerate(views)]
        self.path_ = replace(
            path,
            indices=columns[0] if M == 1 else np.column_stack(columns),
            coefs=path.coefs.reshape(k, k) if M == 1 else path.coefs,
            intercepts=path.intercepts[:, 0] if M == 1 else path.intercepts,
        )

    def _settle(self, n: int) -> None:
        """Be the model of n functions of each view."""
        k, M = len(self.path_), len(self._steps)
        indices, coefs = self.path_.indices.reshape(k, M), self.path_.coefs.reshape(k, M, k)
        self.n_basis_, self.views_, self.view_coefs_ = n, [], []
        self.view_intercepts_ = self.path_.intercepts.reshape(k, M)[n - 1] if n else np.full(M, self._mean)
        self.intercept_ = float(self.view_intercepts_.mean())
        self.basis_indices_: Any = []
        for name in ("coef_", "dual_coef_", "basis_", "kernel_"):
            self.__dict__.pop(name, None)
        for v, view in enumerate(self._steps):
            _, first, place = np.unique(self._chosen[:n, v], return_index=True, return_inverse=True)
            order = np.argsort(first)  # functions that came again are one, at the place of their first coming
            coef = np.bincount(place, weights=coefs[n - 1, v, :n], minlength=len(first))[order] if n else np.zeros(0)
            self.basis_indices_.append(indices[first[order], v])
            self.view_coefs_.append(coef)
            self.views_.append(_part(view, first[order]))
        if not self._several:
            self._settle_single()

    def _settle_single(self) -> None:
        """The names of a model with one view."""
        (view,), (coef,) = self.views_, self.view_coefs_
        (self.basis_indices_,) = self.basis_indices_
        if view.kernel is None:
            self.coef_ = np.zeros(self.n_features_in_)
            self.coef_[self.basis_indices_] = coef
            return
        self.kernel_, self.dual_coef_ = view.kernel, coef
        if view.points is not None:
            self.basis_ = view.points

    def _checked(self, X: MatrixLike) -> Any:
        check_is_fitted(self, self._learned)
        X, _ = checks.split_qid_column(X, None)
        return self._rows(X)

    @property
    def _auto(self) -> bool:
        return isinstance(self.n_basis, str)

    @property
    def _several(self) -> bool:
        return not (is_count(self.views) and self.views == 1)

    def _check_params(self) -> None:
        if self._auto:
            checks.check_choice("n_basis", self.n_basis, ("auto",))
        for name in ("max_basis",) if self._auto else ("n_basis", "max_basis"):
            value = getattr(self, name)
            if not is_count(value) or value < 1:
                raise ValueError(
                    f"{name} must be a positive whole number{', or auto' * (name == 'n_basis')}, got {value!r}"
                )
        if isinstance(self.nu, str):
            checks.check_choice("nu", self.nu, ("auto",))
        else:
            checks.check_number("nu", self.nu, zero=True)
        checks.check_choice("weighting", self.weighting, WEIGHTINGS)
        for name in ("tied_pairs", "backfit", "shared_basis"):
            checks.check_choice(name, getattr(self, name), (True, False))
        checks.check_share("regression", self.regression)
        get_metric(self.scoring)
        if self.kernel is None and self.basis is not None and not self._several:
            raise ValueError("basis needs a kernel; with kernel=None the functions to choose from are the columns of X")
        n_views = len(as_views(self.views, self.kernel, 1 if self.basis is None else self.basis))
        if n_views > 2 and not self.shared_basis:
            raise ValueError(
                f"{n_views} views would be searched in all combinations: set shared_basis=True, or take two views"
            )

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_candidate", None)  # the training rows; only `alternatives` asks for them
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags


def _part(view: FittedView, atoms: np.ndarray) -> FittedView:
    """The view with some of its functions only."""
    if view.kernel is None:
        columns = view.columns
        numbers = np.arange(columns.start, columns.stop) if isinstance(columns, slice) else columns
        return FittedView(numbers[atoms], None, None)
    if view.points is None:
        assert isinstance(view.kernel, Precomputed) and view.kernel.columns is not None
        return FittedView(view.columns, Precomputed(view.kernel.columns[atoms]), None)
    return replace(view, points=view.points[atoms])
