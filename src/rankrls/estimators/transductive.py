"""TransductiveRankRLS: scores for the unscored queries at hand, and a ranker learned from all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..bases import BasisLike
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..kernels import KernelLike, Precomputed, is_precomputed
from ..metrics import Metric, get_metric
from ..problems import choice
from ..problems.choice import Judged, Setting
from ..problems.iterative import Iterative
from ..problems.transduction import Completion, completion
from ..system.types import ArrayLike, MatrixLike, Seed
from ..system.warnings import warn
from .base import Ranker
from .intake import PartlyScored
from .rankrls import RankRLS
from .training import Training

FIDELITY_RANGE = (-2.0, 2.0)  # decades around the mean weight of a row in the loss
N_FIDELITIES = 5


@dataclass(frozen=True)
class Inductive:
    """The RankRLS of the scored queries under one kernel."""

    data: Training
    fit: Callable[[], RankRLS]

    @cached_property
    def model(self) -> RankRLS:
        return self.fit()

    def judge(self, cv: object, metric: Metric) -> Judged:
        """The held-out score of every alpha, from the model's own leave-query-out."""
        model = self.model
        return Judged([Setting(alpha=float(a)) for a in model.alphas_], model.cv_scores_, model.cv_errors_)


@dataclass(frozen=True)
class Hidden:
    """Scored queries treated as unscored, with the fidelities to choose from."""

    fidelities: np.ndarray
    held_out: Callable[[int, np.ndarray], np.ndarray]
    y: np.ndarray
    scored: np.ndarray  # (m,) bool
    queries: Queries

    def judge(self, cv: int, metric: Metric) -> Judged:
        """How well each fidelity ranks the queries that were hidden."""
        held, rows = self.held_out(cv, self.fidelities), np.flatnonzero(self.scored)
        scores = np.asarray(metric(self.y[rows], held[rows], Queries.of(self.queries.codes[rows])))
        settings = [Setting(fidelity=float(value)) for value in self.fidelities]
        return Judged(settings, scores, np.full(len(scores), np.nan))


class TransductiveRankRLS(Ranker):
    """RankRLS that also learns from queries without scores: those you want ranked now.

    The unscored queries get the scores v that minimise ::

        sum over all queries q of
            (leave-query-out error of q when all queries are scored)  +  fidelity ||v - f||^2

    with f the scores of a RankRLS of the scored queries only. That is linear least squares and solved exactly: for
    linear models and for kernels with a basis in two passes over the rows, for a kernel of all rows in O(m^3).
    A RankRLS of all queries, with their scores completed, ranks new ones.

    Do not expect it to beat RankRLS: where we compared them it did not (docs/reproductions/transductive.md).

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Regularisation. "auto" is chosen by exact leave-query-out of RankRLS on the scored queries.
    fidelity : float or "auto", default=1.0
        The paper's gamma: how strongly scores are held to those of the inductive model; the larger, the closer. "auto"
        takes the value of `fidelities` with the best `scoring` when parts of the scored queries are treated as
        unscored, which costs `cv` more inductive fits and transductions, each of all values at once.
    kernel, basis, weighting
        As in `RankRLS`; kernel parameters and a random basis are fixed on all rows, scored or not. Tied pairs are
        included, since the learned scores have none.
    alphas : array-like of float, default=None
        Values for alpha="auto", as in `RankRLS`.
    fidelities : array-like of float, default=None
        Values for fidelity="auto". None takes 5 values from 0.01 to 100 times the mean weight of a row in the loss
        (which is 1 for weighting="items").
    scoring : str or callable, default="pairwise_accuracy"
        A metric as in `RankRLS`: it chooses alpha and fidelity, and is what `score` returns.
    cv : int, default=5
        Parts of the scored queries for fidelity="auto".
    random_state : int, Generator or None, default=None
        Used only to draw a random basis.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,)
        Scores of every row given to `fit`: y where it was given, else the learned ones.
    ranker_ : RankRLS
        The model of all rows with these scores, which `predict` uses.
    inductive_ : RankRLS
        The model of the scored queries only.
    alpha_, fidelity_ : float
        The values used; `fidelity_` is NaN where "auto" found nothing to transduce.
    fidelities_, cv_scores_ : ndarray of shape (n_fidelities,)
        The grid and the held-out score of each value (only with fidelity="auto").
    n_queries_, n_unscored_queries_ : int
        Queries in all, and those without scores.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, when X has string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import TransductiveRankRLS
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, 3.0], [1.0, 1.0], [3.0, 0.0]])
    >>> y = np.array([1, 0, 2, 0, np.nan, np.nan])
    >>> qid = np.array(["a", "a", "b", "b", "c", "c"])
    >>> model = TransductiveRankRLS(alpha=0.1).fit(X, y, qid=qid)
    >>> model.transduction_.round(2)
    array([ 1.  ,  0.  ,  2.  ,  0.  , -0.01,  1.49])
    >>> model.rank(X, qid)
    array([1, 2, 1, 2, 2, 1])
    """

    _skips_unscored = True

    def __init__(
        self,
        alpha: float | str = "auto",
        fidelity: float | str = 1.0,
        *,
        kernel: KernelLike | None = None,
        basis: BasisLike | None = None,
        weighting: str = "items",
        alphas: ArrayLike | None = None,
        fidelities: ArrayLike | None = None,
        scoring: str | Callable[..., float] = "pairwise_accuracy",
        cv: object = 5,
        random_state: Seed = None,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.fidelity = fidelity
        self.kernel = kernel
        self.basis = basis
        self.weighting = weighting
        self.alphas = alphas
        self.fidelities = fidelities
        self.scoring = scoring
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, qid: Any = None) -> Self:
        """Learn from scored and unscored queries.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items. A data frame may hold the query ids in a column named "qid". With kernel="precomputed", the
            (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,)
            Relevance, larger is better; NaN for every row of a query without scores.
        qid : array-like of shape (n_samples,)
            Query of each row: any labels in any order.

        Returns
        -------
        self
        """
        with self._attempt():
            return self._complete(X, y, qid, self._check_params())

    def _complete(self, X: Any, y: Any, qid: Any, fidelity: Any):
        rows = PartlyScored.of(self, X, y, qid)
        X, y, queries = rows.X, rows.y.copy(), rows.queries
        unscored = check_whole_queries(queries, y)
        targets = np.where(unscored, 0.0, y)[:, None]
        data = self._learn_inductive(Training(X, targets, queries, n_given=X.shape[0]), y, np.flatnonzero(~unscored))
        self.alpha_, self.n_queries_ = self.inductive_.alpha_, len(queries)
        self.n_unscored_queries_ = self.n_queries_ - self.inductive_.n_queries_
        for name in ("fidelities_", "cv_scores_"):
            self.__dict__.pop(name, None)
        if unscored.any():
            self.fidelity_, self.transduction_ = self._transduce(data, y, unscored, fidelity)
            self.ranker_ = self._fit(data, np.arange(len(y)), self.transduction_)
        else:
            self.fidelity_ = np.nan if fidelity is None else fidelity
            self.transduction_, self.ranker_ = y, self.inductive_
            warn(
                "every row has a score, so there is nothing to transduce and this is RankRLS(tied_pairs=True); "
                "set y to NaN for the queries without scores",
            )
        return self

    def _learn_inductive(self, data: Training, y: np.ndarray, scored: np.ndarray) -> Training:
        """Fit `inductive_`; returns the rows under its kernel, the best where there are several to choose from."""
        if self.__sklearn_tags__().input_tags.pairwise:
            checks.check_kernel_matrix(data.X)
            if self.basis is not None:
                raise ValueError("a precomputed kernel takes no basis here: pass the points and a kernel instead")
        options = data.with_kernels(self.kernel, self.basis, self.random_state)
        chosen = {"alpha": self.alpha, "alphas": self.alphas}
        if len(options) > 1 and not isinstance(self.alpha, str):
            chosen = {"alpha": "auto", "alphas": [self.alpha]}
        candidates = [Inductive(option, partial(self._fit, option, scored, y, **chosen)) for option in options]
        best = candidates[0]
        if len(options) > 1:
            best = choice.choose(candidates, None, get_metric(self.scoring)).candidate
        self.inductive_ = best.model
        return best.data

    def _transduce(
        self, data: Training, y: np.ndarray, unscored: np.ndarray, fidelity: float | None
    ) -> tuple[float, np.ndarray]:
        """The fidelity, chosen where none is given, and the completed scores."""
        F = QueryPreferences(data.queries, weighting=self.weighting)
        problem = data.problem(F)
        if isinstance(problem, Iterative):
            raise ValueError(
                f"transduction of {data.X.shape[0]} rows with {data.X.shape[1]} sparse features has no low-rank form: "
                'use a basis, e.g. kernel="linear", basis=1000, or fewer features'
            )
        solver = completion(problem, self.alpha_)
        if fidelity is None:
            grid = self.fidelities
            if grid is None:
                grid = np.mean(F.between[data.queries.codes] ** 2) * np.logspace(*FIDELITY_RANGE, N_FIDELITIES)
            self.fidelities_ = checks.check_grid("fidelities", grid)
            trial = Hidden(
                self.fidelities_, partial(self._held_out, solver, data, y, unscored), y, ~unscored, data.queries
            )
            chosen = choice.choose([trial], self.cv, get_metric(self.scoring))
            self.cv_scores_, fidelity = chosen.scores, chosen.setting.fidelity
        prior = np.where(unscored, _predict(self.inductive_, data, np.flatnonzero(~unscored)), y)
        prior[unscored] = solver.scores(prior, unscored, np.array([fidelity]))[:, 0]
        return fidelity, prior

    def _held_out(
        self, solver: Completion, data: Training, y: np.ndarray, unscored: np.ndarray, cv: int, fidelities: np.ndarray
    ) -> np.ndarray:
        """(m, k) scores of the scored queries when they were treated as unscored, for each fidelity."""
        scored = np.flatnonzero(~unscored)
        codes = data.queries.codes[scored]
        n_scored = self.inductive_.n_queries_
        if not 2 <= cv <= n_scored:
            raise ValueError(
                f'fidelity="auto" cannot make cv={cv} parts of {n_scored} scored queries: '
                f"choose cv between 2 and {n_scored}, or pass fidelity as a number"
            )
        held = np.full((len(y), len(fidelities)), np.nan)
        for stay, out in GroupKFold(cv).split(codes, groups=codes):
            hidden = unscored.copy()
            hidden[scored[out]] = True
            try:
                model = self._fit(data, scored[stay], y)
            except ValueError as error:  # nothing to compare in the queries that stay
                raise ValueError(f'fidelity="auto" with cv={cv}: {error}; pass fidelity as a number') from None
            prior = np.where(hidden, _predict(model, data, scored[stay]), y)
            held[hidden] = solver.scores(prior, hidden, fidelities)
        return held

    # ---------------------------------------------------------------- using

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Scores by the model of all queries: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items; a column "qid" of a data frame is left aside. With kernel="precomputed", kernel values between
            the items and the training points.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "ranker_")
        X, _ = checks.split_qid_column(X, None)
        X = self._rows(X)
        return self.ranker_.predict(X)

    # ---------------------------------------------------------------- inside

    def _check_params(self) -> float | None:
        """The fidelity; None where it is to be chosen. RankRLS checks what it shares with this class."""
        if self.kernel is None and self.basis is not None:
            raise ValueError('basis needs a kernel, e.g. kernel="rbf", basis=500; a linear model has no use for it')
        if isinstance(self.cv, bool) or not isinstance(self.cv, (int, np.integer)):
            raise ValueError(f"cv must be a number of parts of the scored queries, got {self.cv!r}")
        if not isinstance(self.fidelity, str):
            return checks.check_number("fidelity", self.fidelity, hint="; for the inductive scores use RankRLS")
        checks.check_choice("fidelity", self.fidelity, ("auto",))
        return None

    def _fit(
        self, data: Training, rows: np.ndarray, y: np.ndarray, alpha: Any = None, alphas: ArrayLike | None = None
    ) -> RankRLS:
        """RankRLS of some rows, with `alpha_` if no alpha is given."""
        ranker = RankRLS(
            self.alpha_ if alpha is None else alpha,
            kernel=data.kernel,
            basis=data.points,
            weighting=self.weighting,
            tied_pairs=True,
            alphas=alphas,
            scoring=self.scoring,
            scale=None,
        )
        everything = len(rows) == data.X.shape[0]
        X = data.X if everything else data.X[rows]
        if isinstance(data.kernel, Precomputed) and not everything:
            X = X[:, rows]
        return ranker.fit(X, y[rows], qid=data.queries.codes[rows])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags


def check_whole_queries(queries: Queries, y: np.ndarray) -> np.ndarray:
    """(m,) which rows have no score: all rows of a query, or no row of it."""
    if len(queries) == 1:
        raise ValueError(
            "transduction needs qid, to tell the queries with scores from those without: all rows in one query "
            "(qid=None) cannot be both"
        )
    missing = np.isnan(y)
    n_missing = queries.sum(missing)
    cut = (n_missing > 0) & (n_missing < queries.sizes)
    if cut.any():
        q = int(np.argmax(cut))
        raise ValueError(
            f"query {queries.labels.tolist()[q]!r} is partly scored: y is NaN for {int(n_missing[q])} of its "
            f"{queries.sizes[q]} rows ({cut.sum()} such queries); score all or none of them, or drop those without"
        )
    return missing


def _predict(ranker: RankRLS, data: Training, rows: np.ndarray) -> np.ndarray:
    """Scores of all rows by a model trained on some of them."""
    return ranker.predict(data.X[:, rows] if isinstance(data.kernel, Precomputed) else data.X)
