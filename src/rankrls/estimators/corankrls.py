"""CoRankRLS: co-regularised least-squares ranking from scored and unscored rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..core.queries import BATCH_ROWS
from ..core.views import FittedView, as_views, fitted_views
from ..core.weighting import WEIGHTINGS
from ..metrics import Metric, get_metric
from ..problems import choice
from ..problems.choice import Choice, Judged, Setting
from ..problems.coregularised import Coregularised, Stack, agreement
from ..system.seeds import seed_of
from ..system.types import ArrayLike, MatrixLike, Seed
from ..system.warnings import warn
from .base import Ranker
from .folds import folds_of
from .intake import PartlyScored
from .results import Seen
from .training import Training, preferences_among


@dataclass(frozen=True)
class Unscored:
    """What is asked of the unscored rows: S = Z'G'G Z, and how many rows and pairs there are."""

    S: np.ndarray  # (R, R)
    n_rows: int
    n_pairs: int


@dataclass(frozen=True)
class JointRows:
    """Everything a fit needs of the data."""

    rows: Training
    scored: np.ndarray  # numbers of the rows that have a score
    stack: Stack
    unscored: Unscored


@runtime_checkable
class JointSource(Protocol):
    """Rows that are elsewhere, on a cluster: the scored ones can be fetched, the unscored ones are added up there."""

    def joint_rows(self, model: CoRankRLS) -> tuple[Seen, JointRows]: ...


@dataclass(frozen=True)
class JointFit:
    """What a fit of CoRankRLS found."""

    alpha: float
    nu: float
    views: Sequence[FittedView]
    view_coefs: Sequence[np.ndarray]
    disagreement: float
    tied_pairs: bool
    n_queries: int
    n_pairs: int
    n_unscored: int
    alphas: np.ndarray | None = None  # the grids, where something was chosen
    nus: np.ndarray | None = None
    cv_scores: np.ndarray | None = None  # (n_nus, n_alphas)
    cv_errors: np.ndarray | None = None
    cv_predictions: np.ndarray | None = None


@dataclass(frozen=True)
class JointSetup:
    """A co-regularised problem with the values of nu and alpha to choose from."""

    problem: Coregularised
    data: Training  # the scored rows
    given: Any  # alphas; None for a grid fitted to the data

    @cached_property
    def alphas(self) -> np.ndarray:
        return choice.default_alphas(self.problem.mean_eigenvalue) if self.given is None else self.given

    def judge(self, cv: object, metric: Metric) -> Judged:
        """The held-out score of every nu and alpha."""
        folds, groups = folds_of(cv, self.data)
        settings = [Setting(alpha=float(alpha), nu=float(nu)) for nu in self.problem.nus for alpha in self.alphas]
        leave_out = lambda layer: self.problem.leave_out(layer, self.alphas)
        return choice.judge(leave_out, settings, self.problem.y, folds, groups, metric)

    def result(self, setting: Setting, n_unscored: int) -> JointFit:
        """The model of one nu and alpha."""
        problem = self.problem
        a = problem.solution(setting.alpha, setting.nu)
        return JointFit(
            alpha=setting.alpha,
            nu=setting.nu,
            views=problem.stack.views,
            view_coefs=problem.stack.coefs(a),
            disagreement=problem.disagreement(a),
            tied_pairs=problem.F.y is None,
            n_queries=len(self.data.queries),
            n_pairs=problem.F.n_pairs,
            n_unscored=n_unscored,
        )

    def with_grid(self, found: JointFit, chosen: Choice) -> JointFit:
        """The same, with the values it was chosen from."""
        scores, errors = (values.reshape(len(self.problem.nus), -1) for values in (chosen.scores, chosen.errors))
        predictions = self.data.all_rows(chosen.predictions)[:, 0].astype(self.data.dtype)
        grid = replace(found, alphas=self.alphas, nus=self.problem.nus)
        return replace(grid, cv_scores=scores, cv_errors=errors, cv_predictions=predictions)


class CoRankRLS(Ranker):
    """Learning to rank from few scored and many unscored rows: rankers of several views that agree on the unscored.

    Minimises, over functions f_1 .. f_M of M views, ::

        sum_v  loss(f_v)  +  alpha sum_v ||f_v||^2
        +  nu sum_{v,u} sum over pairs (i, j) of unscored rows of one query
               c_q ((f_v(x_i) - f_v(x_j)) - (f_u(x_i) - f_u(x_j)))^2

    with the loss of `RankRLS` on the scored rows; the prediction is the mean of the views. One pass over the
    unscored rows serves every alpha and nu, and what is "auto" is chosen by exact leave-query-out over the scored
    queries. Time is linear in the number of rows; memory is a block of rows and a matrix with one row and column
    for each basis point or linear column of all views.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Regularisation of each view.
    nu : float or "auto", default="auto"
        Weight of the agreement; 0 lets each view learn by itself.
    views : int or list of View, default=2
        That many views which differ by their basis, disjoint random rows, scored or not; or the views one by one,
        with their own columns, kernel and basis.
    kernel, basis : default="rbf", 100
        Kernel and number of basis rows of each view where `views` is a number, as in `RankRLS`; not used else.
    weighting : {"pairs", "queries", "items"}, default="items"
        What counts equally, among the scored and among the unscored, as in `RankRLS`.
    tied_pairs : bool or "auto", default=False
        Whether scored pairs with equal y ask for equal scores, as in `RankRLS`. Unscored pairs always count.
    alphas, nus : array-like of float, default=None
        Values to choose from. None takes 15 alphas over seven decades about the mean eigenvalue of the loss, and for
        nu zero and seven values over six decades about the one at which agreement weighs as much as the loss.
    scoring : str or callable, default="pairwise_accuracy"
        As in `RankRLS`: chooses alpha and nu, and is what `score` returns.
    cv : "leave-query-out", int, scikit-learn group splitter or iterable of splits, default="leave-query-out"
        Held-out folds of scored queries, as in `RankRLS`; unscored rows stay in all of them.
    random_state : int, Generator or None, default=None
        Used only to draw random bases.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    alpha_, nu_ : float
        The values used.
    views_ : list of FittedView
        Of each view the `columns` by number, the `kernel` with its parameters and the basis `points` (None if linear).
    view_coefs_ : list of ndarray
        Of each view the weights of its points or, if linear, of its columns.
    disagreement_ : float
        `sum_v ||f_v - f||^2 / sum_v ||f_v||^2` over pairs of unscored rows of one query, f the mean of the views: the
        share of their variation on which the views disagree. 0: they rank alike; 1 - 1/M: they have nothing in common.
        NaN without unscored pairs.
    alphas_, nus_ : ndarray of shape (n_alphas,), (n_nus,)
        The grids (only if alpha or nu is "auto", as the next three).
    cv_scores_ : ndarray of shape (n_nus, n_alphas)
        Mean held-out score of each pair of values.
    cv_errors_ : ndarray of shape (n_nus, n_alphas)
        Their standard errors over held-out queries, as in `RankRLS`.
    cv_predictions_ : ndarray of shape (n_samples,)
        Held-out scores of the scored rows at `alpha_` and `nu_`; NaN for other rows.
    tied_pairs_ : bool
        Whether tied pairs were included.
    n_queries_, n_pairs_ : int
        Queries with scored rows, and scored pairs that counted.
    n_unscored_ : int
        Unscored rows.
    n_features_in_, feature_names_in_
        As in `RankRLS`.

    Notes
    -----
    Without unscored pairs the views have nothing to agree on: `fit` warns and learns each view by itself. With a
    single view nu has no effect, and the model is RankRLS on the scored rows.

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
        basis: Any = 100,
        weighting: Any = "items",
        tied_pairs: Any = False,
        alphas: ArrayLike | None = None,
        nus: ArrayLike | None = None,
        scoring: str | Callable[..., float] = "pairwise_accuracy",
        cv: object = "leave-query-out",
        random_state: Seed = None,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.nu = nu
        self.views = views
        self.kernel = kernel
        self.basis = basis
        self.weighting = weighting
        self.tied_pairs = tied_pairs
        self.alphas = alphas
        self.nus = nus
        self.scoring = scoring
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Self:
        """Learn to rank the rows of each query by y where it is given, with views that agree where it is not.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items. A data frame may hold the query ids in a column named "qid".
        y : array-like of shape (n_samples,)
            Relevance, larger is better; NaN where a row is unscored.
        qid : array-like of shape (n_samples,), default=None
            Query of each row, scored or not: any labels in any order. None is one query. Scored and unscored rows
            may share a query.
        sample_weight : array-like of shape (n_samples,), default=None
            Copies each row counts for.

        Returns
        -------
        self
        """
        self._check_params()
        with self._attempt():
            if isinstance(X, JointSource):
                seen, rows = X.joint_rows(self)
                return self._store(seen, replace(fit_joint(self, rows), cv_predictions=None))  # rows are in no order
            return self._store(fit_joint(self, self._joint(PartlyScored.of(self, X, y, qid, sample_weight))))

    def _joint(self, rows: PartlyScored) -> JointRows:
        """What the views are, and what they have to agree on."""
        X, u, unscored = rows.X, rows.weights, rows.unscored
        G = preferences_among(rows.queries, u, unscored, weighting=self.weighting)
        views = as_views(self.views, self.kernel, self.basis)
        names = getattr(self, "feature_names_in_", None)
        stack = Stack.of(fitted_views(views, X, names, u, seed_of(self.random_state)), X)
        S = agreement(stack, X, unscored, G) if G.n_pairs else np.zeros((stack.n_columns,) * 2)
        data = Training(X, rows.y[:, None], rows.queries, u, n_given=X.shape[0])
        return JointRows(data, rows.scored, stack, Unscored(S, len(unscored), G.n_pairs))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Scores, the mean of the views: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items; a column "qid" of a data frame is left aside.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self.predict_views(X).mean(axis=1)

    def predict_views(self, X: MatrixLike) -> np.ndarray:
        """Scores of each view.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        scores : ndarray of shape (n_samples, n_views)
        """
        check_is_fitted(self, "alpha_")
        X, _ = checks.split_qid_column(X, None)
        X = self._rows(X)
        scores = np.empty((X.shape[0], len(self.views_)), dtype=X.dtype)
        for i in range(0, X.shape[0], BATCH_ROWS):
            block = X[i : i + BATCH_ROWS]
            for v, (view, coef) in enumerate(zip(self.views_, self.view_coefs_, strict=True)):
                scores[i : i + BATCH_ROWS, v] = view(block) @ coef
        return scores

    # ---------------------------------------------------------------- inside

    def _check_params(self) -> None:
        for name, value in (("alpha", self.alpha), ("nu", self.nu)):
            if isinstance(value, str):
                checks.check_choice(name, value, ("auto",))
        _values("alpha", self.alpha, self.alphas)
        _values("nu", self.nu, self.nus, zero=True)
        checks.check_choice("weighting", self.weighting, WEIGHTINGS)
        checks.check_choice("tied_pairs", self.tied_pairs, (True, False, "auto"))
        get_metric(self.scoring)
        as_views(self.views, self.kernel, self.basis)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def fit_joint(model: CoRankRLS, joint: JointRows) -> JointFit:
    """Learn from scored rows, given what the views have to agree on, wherever that was added up."""
    rows, scored, stack, unscored = joint.rows, joint.scored, joint.stack, joint.unscored
    among = partial(preferences_among, rows.queries, rows.weights, scored, weighting=model.weighting)
    queries, y = among().queries, rows.y[:, 0]
    checks.check_comparable(rows.y[scored], queries)
    if not unscored.n_pairs and len(stack.views) > 1:
        warn(
            f"no query has two of the {unscored.n_rows} unscored rows: the views have nothing to agree on and "
            "learn each by itself; unscored rows are those where y is NaN",
        )
    data = Training(rows.X, rows.y[scored], queries, kept=scored, n_given=rows.n_given)
    nus, alphas = _values("nu", model.nu, model.nus, zero=True), _values("alpha", model.alpha, model.alphas)
    setups = (
        JointSetup(
            Coregularised(among(None if tied else y), stack, rows.X, scored, data.y, unscored.S, nus), data, alphas
        )
        for tied in ((True, False) if model.tied_pairs == "auto" else (bool(model.tied_pairs),))
    )
    if "auto" in (model.alpha, model.nu, model.tied_pairs):
        chosen = choice.choose(setups, model.cv, get_metric(model.scoring))
    else:
        chosen = Choice.only(next(setups), Setting(alpha=float(model.alpha), nu=float(model.nu)))
    found = chosen.candidate.result(chosen.setting, unscored.n_rows)
    return chosen.candidate.with_grid(found, chosen) if "auto" in (model.alpha, model.nu) else found


def _values(name: str, value: float | str, grid: ArrayLike | None, *, zero: bool = False) -> np.ndarray | None:
    """The values of a parameter to try: its grid (None if not given) or the one number."""
    if isinstance(value, str):
        return None if grid is None else checks.check_grid(f"{name}s", grid, zero=zero)
    return np.array([checks.check_number(name, value, zero=zero)])
