"""TransductiveRankRLS: scores for the unscored queries at hand, and a ranker learned from all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..bases import BasisLike
from ..kernels import KernelLike, is_precomputed
from ..system.types import ArrayLike, Ids, MatrixLike, Seed
from .base import Ranker
from .intake import PartlyScored
from .rankrls import RankRLS
from .transducing import fit_transduction


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
        The paper's gamma, in units of the mean weight of a row in the loss so that it means the same under every
        weighting: how strongly scores are held to those of the inductive model; the larger, the closer. "auto"
        takes the value of `fidelities` with the best `scoring` when parts of the scored queries are treated as
        unscored, which costs `cv` more inductive fits and transductions, each of all values at once.
    kernel, basis, weighting
        As in `RankRLS`; kernel parameters and a random basis are fixed on all rows, scored or not.
    tied_pairs : bool, default=True
        Whether scored pairs with equal y ask for equal scores, as in `RankRLS`; learned scores do not tie.
    regression : float in [0, 1], default=0.0
        Share of the plain squared error in the loss, as in `RankRLS`.
    folds : array-like of shape (n_samples,), default=None
        What is held out together: the label of a fold for each row, unions of whole queries, scored or not. None holds
        out each query. With folds, weights, tied_pairs=False, regression or queries that are partly scored, the kernel
        matrix of all rows is formed.
    alphas : array-like of float, default=None
        Values for alpha="auto", as in `RankRLS`.
    fidelities : array-like of float, default=None
        Values for fidelity="auto". None takes 5 values from 0.01 to 100.
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

    transduction_: np.ndarray
    ranker_: RankRLS
    inductive_: RankRLS
    alpha_: float
    fidelity_: float
    fidelities_: np.ndarray
    cv_scores_: np.ndarray
    n_queries_: int
    n_unscored_queries_: int

    _skips_unscored = True

    def __init__(
        self,
        alpha: float | str = "auto",
        fidelity: float | str = 1.0,
        *,
        kernel: KernelLike | None = None,
        basis: BasisLike | None = None,
        weighting: str = "items",
        tied_pairs: bool = True,
        regression: float = 0.0,
        folds: ArrayLike | None = None,
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
        self.tied_pairs = tied_pairs
        self.regression = regression
        self.folds = folds
        self.alphas = alphas
        self.fidelities = fidelities
        self.scoring = scoring
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | str | None,
        qid: Ids | str = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Learn from scored and unscored queries.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items. A data frame may hold the query ids in a column named "qid". With kernel="precomputed", the
            (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,)
            Relevance, larger is better; NaN for a row without a score.
        qid : array-like of shape (n_samples,)
            Query of each row: any labels in any order.
        sample_weight : array-like of shape (n_samples,), default=None
            Copies each row counts for, in the loss and in the fidelity.

        Returns
        -------
        self
        """
        self._check_params()
        with self._attempt():
            return self._store(fit_transduction(self, PartlyScored.of(self, X, y, qid, sample_weight)))

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

    def coef_path(self, alphas: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """`RankRLS.coef_path` of `ranker_`: the completed scores stay as they are."""
        check_is_fitted(self, "ranker_")
        return self.ranker_.coef_path(alphas)

    def dual_coef_path(self, alphas: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """`RankRLS.dual_coef_path` of `ranker_`: the completed scores stay as they are."""
        check_is_fitted(self, "ranker_")
        return self.ranker_.dual_coef_path(alphas)

    def explain(self, x_a: ArrayLike, x_b: ArrayLike) -> np.ndarray:
        """`RankRLS.explain` of `ranker_`: the contribution of each feature to score(a) - score(b)."""
        check_is_fitted(self, "ranker_")
        return self.ranker_.explain(x_a, x_b)

    def predict_path(self, X: MatrixLike, alphas: ArrayLike | None = None) -> np.ndarray:
        """`RankRLS.predict_path` of `ranker_`: the completed scores stay as they are."""
        check_is_fitted(self, "ranker_")
        X, _ = checks.split_qid_column(X, None)
        return self.ranker_.predict_path(self._rows(X), alphas)

    # ---------------------------------------------------------------- inside

    def _check_params(self) -> None:
        """RankRLS checks what it shares with this class."""
        if self.kernel is None and self.basis is not None:
            raise ValueError('basis needs a kernel, e.g. kernel="rbf", basis=500; a linear model has no use for it')
        if isinstance(self.cv, bool) or not isinstance(self.cv, (int, np.integer)):
            raise ValueError(f"cv must be a number of parts of the scored queries, got {self.cv!r}")
        if not isinstance(self.alpha, str):
            checks.check_number("alpha", self.alpha)
        checks.check_choice("tied_pairs", self.tied_pairs, (True, False))
        checks.check_share("regression", self.regression)
        if isinstance(self.fidelity, str):
            checks.check_choice("fidelity", self.fidelity, ("auto",))
        else:
            checks.check_number("fidelity", self.fidelity, hint="; for the inductive scores use RankRLS")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags
