"""TransductiveRankRLS: scores for given unscored queries, and a ranker learned from all queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import checks
from ..bases import BasisLike
from ..blocks.block import Block
from ..blocks.reading import rows_of
from ..blocks.sources import source_of
from ..kernels import KernelLike, is_precomputed
from ..system.parallel import product_of_fit, threads_for
from ..system.types import ArrayLike, FitInput, Ids, MatrixLike, Seed
from .rankrls import RankRLS
from .rows.intake import PartlyScored
from .transduction.blocks import Completed, TransductiveBlocks
from .transduction.fitting import fit_transduction
from .transduction.updates import TransductiveUpdates


class TransductiveRankRLS(TransductiveUpdates):
    """RankRLS that also learns from queries without scores: those you want to rank now.

    The unscored queries get the scores v that minimise ::

        sum over all queries q of
            (leave-query-out error of q when all queries are scored)  +  fidelity ||v - f||^2

    with f the scores of a RankRLS fitted to the scored queries. This is linear least squares, solved exactly: in two
    passes over the rows for linear models and kernels with a basis, in O(m^3) for a kernel on all rows. New queries are
    ranked by a RankRLS fitted to all queries with the completed scores.

    Do not expect it to beat RankRLS: in our comparisons it did not (docs/reproductions/transductive.md).

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Regularisation. "auto" is chosen by exact leave-query-out of RankRLS on the scored queries. Zero is accepted
        if the scored rows determine every weight, even without any one of the queries.
    fidelity : float or "auto", default=1.0
        How strongly scores are pulled to those of the inductive model: the paper's gamma, in units of the mean weight
        of a row in the loss, so that it means the same with every weighting. "auto" takes the value of `fidelities`
        with the best `scoring` when parts of the scored queries are treated as unscored; this costs `cv` further
        inductive fits and transductions, each for all values at once.
    kernel, basis, weighting
        As in `RankRLS`; kernel parameters and a random basis are fixed on all rows, scored or not.
    tied_pairs : bool, default=True
        Whether scored pairs with equal y should get equal scores, as in `RankRLS`; learned scores do not tie.
    regression : float in [0, 1], default=0.0
        Share of the plain squared error in the loss, as in `RankRLS`.
    folds : array-like of shape (n_samples,), default=None
        The fold of each row, to be held out together: unions of whole queries, scored or not. None holds out each query
        in turn. With folds, weights, tied_pairs=False, regression or partly scored queries, the kernel matrix of all
        rows is formed.
    alphas : array-like of float, default=None
        Values for alpha="auto", as in `RankRLS`.
    fidelities : array-like of float, default=None
        Values for fidelity="auto". None: 5 values from 0.01 to 100.
    scoring : str or callable, default="pairwise_accuracy"
        A metric as in `RankRLS`: it chooses alpha and fidelity, and `score` returns it.
    cv : int, scikit-learn group splitter or iterable of splits, default=5
        Parts of the scored queries for fidelity="auto"; splits refer to the scored rows.
    random_state : int, Generator or None, default=None
        Used only to draw a random basis.
    store_path : bool, default=False
        Keep the held-out scores of the scored rows at every alpha and fidelity that was tried, and hold rows out even
        if both are numbers.
    verbose : bool, default=False
        Report the progress of passes that take longer than a second, on standard error.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,)
        Scores of every row passed to `fit`: y where given, else the learned scores. For rows read in blocks, which have
        no order, see `transduce`.
    ranker_ : RankRLS
        The model of all rows with these scores, which `predict` uses.
    inductive_ : RankRLS
        The model of the scored queries.
    alpha_, fidelity_ : float
        The values used; `fidelity_` is NaN if "auto" found nothing to transduce.
    fidelities_, cv_scores_ : ndarray of shape (n_fidelities,)
        The grid and the held-out score of each value (only with fidelity="auto").
    alphas_, cv_predictions_, cv_predictions_path_ : ndarray of shape (n_alphas,), (n_samples,), (n_samples, n_alphas)
        The alphas tried, and leave-query-out scores of the scored rows by `inductive_`, at `alpha_` and at all alphas;
        NaN for other rows (only with store_path=True).
    fidelity_predictions_path_ : ndarray of shape (n_samples, n_fidelities)
        Scores of the scored rows when treated as unscored (only with store_path=True and fidelity="auto").
    directions_, multipliers_, fidelity_unit_ : ndarray of shape (n_features, r), ndarray of shape (2, r), float
        What `transduce` computes scores from, if rows were read in blocks.
    n_queries_, n_unscored_queries_ : int
        Number of queries, and of those without scores.
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
        store_path: bool = False,
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
        self.store_path = store_path
        self.verbose = verbose

    def fit(
        self,
        X: FitInput | TransductiveBlocks,
        y: ArrayLike | str | None = None,
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
            The number of copies that each row counts as, in the loss and in the fidelity.

        Returns
        -------
        self

        Notes
        -----
        Rows that are not in memory are read in blocks, as in `RankRLS.fit`: Parquet, LETOR, a polars LazyFrame, a
        DuckDB relation, an iterator over blocks (stored on disk for further passes) or a function that returns one;
        rows with missing y are unscored. The scored rows are read into memory. The model must be linear or have a
        kernel and a `basis`, with tied pairs included, and queries must be scored completely or not at all.
        `transduce` returns the scores.
        """
        self._check_params()
        source = source_of(X, y, qid, sample_weight)
        if source is None and not isinstance(X, TransductiveBlocks):
            return self._fit_rows(X, y, qid, sample_weight)
        with self._attempt():
            blocks: Any = X if source is None else TransductiveBlocks(rows_of(source))
            self._kept = None
            return self._store(*blocks.fit(self))

    def _fit_rows(
        self, X: Any, y: ArrayLike | None, qid: Ids, sample_weight: ArrayLike | None, *, more_to_come: bool = False
    ) -> Self:
        self._check_params()
        with self._attempt():
            rows = PartlyScored.of(self, X, y, qid, sample_weight)
            with threads_for(product_of_fit(rows.X.shape, rows.X.shape[0])):
                found = fit_transduction(self, rows, more_to_come=more_to_come)
            return self._keep(found, rows)

    # ---------------------------------------------------------------- scoring

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Scores by the model of all queries: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Items; a column "qid" of a data frame is ignored. With kernel="precomputed", kernel values between the
            items and the training points.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "ranker_")
        X, _ = checks.split_qid_column(X, None)
        X = self._rows(X)
        return self.ranker_.predict(X)

    def transduce(self, X: MatrixLike, qid: Ids | str = None) -> np.ndarray:
        """The learned scores of unscored training queries, for a model fitted to rows in blocks.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            All rows of some of these queries. A data frame may hold the query ids in a column named "qid".
        qid : array-like of shape (n_samples,)
            Query of each row.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            What `transduction_` would hold if the rows had been in memory.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import TransductiveRankRLS
        >>> rng = np.random.default_rng(0)
        >>> X, qid = rng.normal(size=(40, 3)), np.repeat(np.arange(8), 5)
        >>> y = np.where(qid < 5, X[:, 0] + X[:, 2], np.nan)
        >>> blocks = [(X[i : i + 10], y[i : i + 10], qid[i : i + 10]) for i in range(0, 40, 10)]
        >>> streamed, here = TransductiveRankRLS(1.0).fit(iter(blocks)), TransductiveRankRLS(1.0).fit(X, y, qid=qid)
        >>> bool(np.allclose(streamed.transduce(X[25:], qid[25:]), here.transduction_[25:]))
        True
        """
        check_is_fitted(self, "ranker_")
        if not hasattr(self, "multipliers_"):
            raise ValueError("the model was fitted to rows in memory: their scores are transduction_, in their order")
        X, qid = checks.split_qid_column(X, qid)
        X = self._rows(X)
        queries = checks.check_queries(qid, X.shape[0])
        return Completed.of(self)(Block(X, np.zeros((X.shape[0], 1)), queries.codes))

    def coef_path(self, alphas: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """`RankRLS.coef_path` of `ranker_`, with the completed scores kept fixed; None: the alphas tried for "auto"."""
        check_is_fitted(self, "ranker_")
        return self.ranker_.coef_path(self._tried(alphas))

    def dual_coef_path(self, alphas: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """`RankRLS.dual_coef_path` of `ranker_`, with the completed scores kept fixed; alphas as in `coef_path`."""
        check_is_fitted(self, "ranker_")
        return self.ranker_.dual_coef_path(self._tried(alphas))

    def explain(self, x_a: ArrayLike, x_b: ArrayLike) -> np.ndarray:
        """`RankRLS.explain` of `ranker_`: the contribution of each feature to score(a) - score(b)."""
        check_is_fitted(self, "ranker_")
        return self.ranker_.explain(x_a, x_b)

    def predict_path(self, X: MatrixLike, alphas: ArrayLike | None = None) -> np.ndarray:
        """`RankRLS.predict_path` of `ranker_`, with the completed scores kept fixed; alphas as in `coef_path`."""
        check_is_fitted(self, "ranker_")
        X, _ = checks.split_qid_column(X, None)
        return self.ranker_.predict_path(self._rows(X), self._tried(alphas))

    # ---------------------------------------------------------------- helpers

    def _tried(self, alphas: ArrayLike | None) -> ArrayLike | None:
        return getattr(self.inductive_, "alphas_", None) if alphas is None else alphas

    def _check_params(self) -> None:
        """Check what RankRLS does not check itself."""
        if self.kernel is None and self.basis is not None:
            raise ValueError('basis needs a kernel, e.g. kernel="rbf", basis=500; a linear model does not use it')
        empty = isinstance(self.cv, list | tuple) and not self.cv
        splits = hasattr(self.cv, "split") or (hasattr(self.cv, "__iter__") and not empty)
        if isinstance(self.cv, bool | str) or not (splits or isinstance(self.cv, (int, np.integer))):
            raise ValueError(f"cv must be a number of parts of the scored queries, or a splitter, got {self.cv!r}")
        if not isinstance(self.alpha, str):
            checks.check_number("alpha", self.alpha, zero=True)
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
