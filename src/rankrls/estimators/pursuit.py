"""RankingPursuit: sparse ranking models with explicit control of their size."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .. import checks
from ..bases import BasisLike, is_count
from ..core.queries import Queries
from ..core.statistics import Preferences
from ..core.views import as_views, fitted_views
from ..core.weighting import WEIGHTINGS
from ..kernels import is_precomputed
from ..metrics import get_metric
from ..system.frames import as_frame
from ..system.parallel import product_of_fit, threads_for
from ..system.seeds import seed_of
from ..system.types import ArrayLike, Ids, MatrixLike, Seed
from .pursuits.course import Course, SizedRanker
from .pursuits.fitting import PursuitSetup, agreeing, pursue, supervised, view_weights
from .ranking.pairs import checked_pairs
from .rows.intake import PartlyScored
from .rows.training import Training, preferences_among

VIEW_ROWS = 300  # basis=None: each of several views gets up to this many random rows


@dataclass(frozen=True)
class PursuitFit:
    """What a fit finds, besides the path of models."""

    nu: float
    n_queries: int
    n_pairs: int
    n_unscored: int
    cv_predictions: np.ndarray | None = None


class RankingPursuit(SizedRanker):
    """Sparse ranking models: basis functions are chosen one at a time, always the one that lowers the loss most.

    Minimises the loss of `RankRLS` without a penalty; the number of basis functions regularises instead. These are
    kernels centred at training rows or given points or, with `kernel=None`, single features (greedy feature selection
    for ranking). One run gives models of every size (`path_`); the best size is chosen by holding out whole queries
    unless you pass a number.

    Parameters
    ----------
    n_basis : int or "auto", default="auto"
        Number of basis functions (of each view). "auto" takes the size up to `max_basis` with the best `scoring` under
        `cv`, the smallest if several are equal.
    kernel : None, str, kernel object or callable, default="rbf"
        As in `RankRLS`; None chooses among the columns of X. `Gaussian(gamma="auto")` also chooses the width.
    basis : None, int, object of `rankrls.bases`, array of row indices or array of points, default=None
        The points to choose from: every scored training row (None), or as in `RankRLS`. A dictionary that does not fit
        into memory is recomputed in every step.
    views : int or list of View, default=1
        With several views, each step takes one function of each view, and the views fit the scores and agree on rows
        where y is NaN, as in `CoRankRLS`. A number draws disjoint random rows as the `basis` of each view, at most 300
        if that is None. A `View` chooses among its own basis points.
    nu : float or "auto", default=0.0
        Weight of the agreement; not used with one view.
    view_weights : array-like of float, default=None
        The weight of each view, in the loss and in the prediction, which is the weighted mean; None: equal weights.
    shared_basis : bool, default=False
        Whether all views choose the point, or column, of the same number in each step. Otherwise two views search all
        pairs, and more than two take turns: each chooses the best given the others' choices, until no choice changes.
    backfit : bool, default=True
        Whether all coefficients are refitted in every step, and functions chosen for that (orthogonal pursuit).
        False is the paper's update, which does not change earlier coefficients: a function may then be chosen again,
        and `n_basis` counts steps.
    regression : float in [0, 1], default=0.0
        Share of the plain squared error, as in `RankRLS`; 1 is kernel matching pursuit (with an intercept).
    intercept : bool, default=True
        Whether there is a free constant if `regression` is positive. False with weighting="pairs" and tied_pairs=True
        is the combined objective as printed in the paper: (y - f)'(beta I + (1 - beta) L)(y - f).
    weighting, tied_pairs : default="items", False
        As in `RankRLS`.
    max_basis : int, default=100
        The largest size that "auto" tries.
    nus : array-like of float, default=None
        Values of nu to choose from, as in `CoRankRLS`.
    scoring : str or callable, default="pairwise_accuracy"
        As in `RankRLS`: it chooses values that are "auto", and `score` returns it.
    cv : None, int, "leave-query-out", scikit-learn group splitter or iterable of splits, default=None
        Held-out folds of whole queries, or of the items of a single query; None: five, or fewer if there are not
        enough. Every fold needs its own path, without basis points at the held-out rows.
    positive : bool, list of columns, or dict, default=False
        Signs required of the weights of a linear model, as in `RankRLS`; needs kernel=None, one view and backfit=True.
    random_state : int, Generator or None, default=None
        Used only to draw basis points.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    path_ : PursuitPath
        Every size: `indices` in the order chosen, `coefs`, training `errors`, held-out `scores`, atoms skipped.
    n_basis_ : int
        The size used; smaller than `n_basis` if the path ended early.
    basis_indices_ : ndarray of int
        The functions of the model in the order chosen: row numbers of X, columns if linear, or numbers of the points
        in `basis`. With several views, a list of such arrays, one per view.
    coef_ : ndarray of shape (n_features,)
        Weights of a linear model (one view), mostly zero.
    dual_coef_, basis_ : ndarray of shape (n_basis,), (n_basis, n_features)
        Weights of a kernel model (one view) and their points; there are no points for a precomputed kernel.
    intercept_ : float
        Zero unless `regression` is positive.
    kernel_ : Kernel
        The kernel with its parameters fixed (one view).
    views_, view_coefs_, view_intercepts_ : list of FittedView, list of ndarray, ndarray
        The columns, kernel and points of each view, and their weights.
    view_weights_ : ndarray of shape (n_views,)
        The shares of the views in the prediction, which sum to 1 (only with several views).
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

    def __init__(
        self,
        n_basis: int | str = "auto",
        *,
        kernel: object = "rbf",
        basis: BasisLike | None = None,
        views: Any = 1,
        nu: float | str = 0.0,
        view_weights: ArrayLike | None = None,
        shared_basis: bool = False,
        backfit: bool = True,
        regression: float = 0.0,
        intercept: bool = True,
        weighting: str = "items",
        tied_pairs: bool | str = False,
        max_basis: int = 100,
        nus: ArrayLike | None = None,
        scoring: str | Callable[..., float] = "pairwise_accuracy",
        cv: object = None,
        positive: object = False,
        random_state: Seed = None,
        verbose: bool = False,
    ) -> None:
        self.n_basis = n_basis
        self.kernel = kernel
        self.basis = basis
        self.views = views
        self.nu = nu
        self.view_weights = view_weights
        self.shared_basis = shared_basis
        self.backfit = backfit
        self.regression = regression
        self.intercept = intercept
        self.weighting = weighting
        self.tied_pairs = tied_pairs
        self.max_basis = max_basis
        self.nus = nus
        self.scoring = scoring
        self.cv = cv
        self.positive = positive
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------- fitting

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | str | None,
        qid: Ids | str = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Choose functions that rank the rows of each query like y.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items. A data frame may hold the query ids in a column named "qid". With kernel="precomputed", the
            (n_samples, n_samples) kernel matrix, or only its columns for the row numbers in `basis`.
        y : array-like of shape (n_samples,)
            Relevance, larger is better; NaN where a row is unscored. A single view ignores unscored rows.
        qid : array-like of shape (n_samples,), default=None
            Query of each row: any labels in any order. None: all rows are one query.
        sample_weight : array-like of shape (n_samples,), default=None
            The number of copies that each row counts as.

        Returns
        -------
        self
        """
        self._check_params()
        with self._attempt():
            return self._fit(PartlyScored.of(self, X, y, qid, sample_weight))

    def fit_pairs(
        self,
        X: MatrixLike,
        pairs: ArrayLike,
        margins: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        qid: Ids = None,
    ) -> Self:
        """Choose functions by explicit preferences: each step lowers sum_p w_p (d_p - (f(x_i) - f(x_j)))^2 most.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items. Those in no pair can be basis points too and, with several views, are the rows to agree on.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers (i, j): item i is preferred to item j.
        margins : array-like of shape (n_pairs,), default=None
            d, the difference of their scores; 1 if not given.
        weights : array-like of shape (n_pairs,), default=None
            w, the weight of each pair; 1 if not given.
        qid : array-like of shape (n_samples,), default=None
            Query of each row: views agree on pairs of rows of one query. None: all rows are one query.

        Returns
        -------
        self

        Notes
        -----
        Values that are "auto" are chosen by the share of held-out pairs in the right order, in `cv` folds (5 if that is
        not a number) of components of the preference graph if there are many, else of pairs. `weighting`, `tied_pairs`,
        `regression` and `scoring` are not used.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankingPursuit
        >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
        >>> RankingPursuit(1, kernel=None).fit_pairs(X, [[2, 1], [1, 0]]).predict(X)
        array([0., 1., 2.])
        """
        self._check_params()
        with self._attempt():
            X = self._rows(as_frame(X), reset=True, at_least=2)
            self._check_kernel(X)
            F, d = checked_pairs(X, pairs, margins, weights)
            m = X.shape[0]
            idle = np.setdiff1d(np.arange(m), F.pair)
            rows = PartlyScored(X, np.zeros(m), checks.check_queries(qid, m), None)
            data = Training(X, d[:, None], Queries.single(m), n_given=m)
            with self._threads(data):
                return self._pursue(self._setups(F, data, rows, idle), data, (0, F.n_pairs, len(idle)), 0.0)

    def _fit(self, rows: PartlyScored) -> Self:
        """Fit to checked rows."""
        X, scored, unscored = rows.X, rows.scored, rows.unscored
        self._check_kernel(X)
        F = preferences_among(
            rows.queries,
            rows.weights,
            scored,
            None if self.tied_pairs else rows.y,
            weighting=self.weighting,
            regression=float(self.regression),
            intercept=self.intercept,
        )
        y = rows.y[scored, None]
        if self.regression == 0:
            checks.check_comparable(y, F.queries)
        data = Training(X, y, F.queries, F.u, kept=None if len(scored) == X.shape[0] else scored, n_given=X.shape[0])
        mean = float(np.average(data.y[:, 0], weights=data.weights)) if F.free else 0.0
        counts = len(F.queries), F.n_pairs, len(unscored)
        with self._threads(data):
            return self._pursue(self._setups(F, data, rows, unscored), data, counts, mean)

    def _pursue(self, setups: list[PursuitSetup], data: Training, counts: tuple[int, int, int], mean: float) -> Self:
        """Follow the best of several pursuits; `mean` is what a model without functions predicts."""
        n = self._largest(setups[0])
        found = pursue(setups, data, n, auto=self._auto, cv=self.cv, scoring=self.scoring)
        self._candidate = None if self._several else found.setup
        self._follow(Course.of(found.path, found.setup, mean), found.size)
        return self._store(PursuitFit(getattr(found.setup.problem, "nu", 0.0), *counts, found.cv_predictions))

    def _threads(self, data: Training) -> AbstractContextManager[None]:
        """One BLAS thread for a small problem."""
        m, n = data.X.shape
        return threads_for(product_of_fit((m, n), n if self.kernel is None else m))

    def _check_kernel(self, X: Any) -> None:
        if self.__sklearn_tags__().input_tags.pairwise and not self._several:
            checks.check_kernel_values(X, self.basis)

    def _largest(self, setup: PursuitSetup) -> int:
        """The length of the longest path that is needed."""
        most = setup.n_atoms
        if self._auto:
            return min(int(self.max_basis), most)
        if int(self.n_basis) > most:
            raise ValueError(
                f"n_basis={self.n_basis} is more than the {most} functions to choose from"
                + (" in the smallest view" if len(setup.views) > 1 else "")
                + f': take at most {most}, or "auto"'
            )
        return int(self.n_basis)

    def _setups(self, F: Preferences, data: Training, rows: PartlyScored, unscored: np.ndarray) -> list[PursuitSetup]:
        """The pursuits to choose from."""
        scored, u, seed = rows.scored, rows.weights, seed_of(self.random_state)
        if not self._several:
            signs = checks.check_signs(self.positive, data.X.shape[1], getattr(self, "feature_names_in_", None))
            return supervised(
                F, data, scored, kernel=self.kernel, basis=self.basis, backfit=self.backfit, seed=seed, signs=signs
            )
        G = preferences_among(rows.queries, u, unscored, weighting=self.weighting)
        basis = self.basis
        if is_count(self.views) and basis is None and self.kernel is not None:
            basis = max(1, min(VIEW_ROWS, (len(scored) + len(unscored)) // self.views))
        names = getattr(self, "feature_names_in_", None)
        views = fitted_views(as_views(self.views, self.kernel, basis), data.X, names, u, seed)
        nus = self.nus if isinstance(self.nu, str) else [self.nu]
        grid = None if nus is None else checks.check_grid("nus", nus, zero=True)
        how: dict[str, Any] = {"backfit": self.backfit, "shared": self.shared_basis}
        weights = view_weights(self.view_weights, len(views))
        return agreeing(F, G, data, scored, unscored, views=views, nus=grid, weights=weights, **how)

    @property
    def _auto(self) -> bool:
        return isinstance(self.n_basis, str)

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
        switches = dict.fromkeys(("tied_pairs", "backfit", "shared_basis", "intercept"), (True, False))
        checks.check_choices(self, weighting=WEIGHTINGS, **switches)
        checks.check_share("regression", self.regression)
        if self.kernel is not None or self._several or not self.backfit:
            what = "several views: use one" if self._several else "backfit=False: refit all weights"
            if self.kernel is not None:
                what = "a kernel, whose weights belong to points: pass kernel=None (--kernel linear) to choose columns"
            checks.check_unsigned(self.positive, what)
        get_metric(self.scoring)
        if isinstance(self.cv, str):
            checks.check_choice("cv", self.cv, ("leave-query-out",))
        if self.kernel is None and self.basis is not None and not self._several:
            raise ValueError("basis needs a kernel; with kernel=None the functions to choose from are the columns of X")
        views = as_views(self.views, self.kernel, 1 if self.basis is None else self.basis)
        view_weights(self.view_weights, len(views))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags
