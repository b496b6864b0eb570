"""RankRLS: pairwise regularised least-squares ranking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np

from .. import checks
from ..bases import BasisLike
from ..blocks.sources import source_of
from ..blocks.sums import BlockedRows
from ..core.weighting import Gain
from ..kernels import KernelLike
from ..system.frames import in_memory, index_of
from ..system.types import ArrayLike, FitInput, Ids, Path, Seed
from .ranking.blocks import fit_rows, fit_source, seen
from .ranking.confidence import Confidence
from .ranking.explaining import Explained
from .ranking.feedback import PairFeedback
from .ranking.learned_metric import with_learned_metric
from .ranking.mixing import Mixed
from .ranking.pairs import PairFit
from .ranking.paths import Paths
from .ranking.setup import fit_training
from .ranking.updates import PRIVATE, Updates
from .rows.intake import training_rows


class RankRLS(Updates, PairFit, PairFeedback, Mixed, Confidence, Explained, Paths):
    """Learning to rank in closed form: regularised least squares over pairs of items of one query.

    Minimises, over linear or kernel functions f, ::

        sum over queries q, pairs (i, j) of q of
            c_q ((y_i - y_j) - (f(x_i) - f(x_j)))^2  +  alpha ||f||^2

    without ever forming a pair. One pass over the data and one factorisation give the model of every alpha and its
    exact leave-query-out score, by which alpha is chosen unless you pass a number.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Regularisation. "auto" takes the value of `alphas` with the best `scoring` under `cv`. Zero (plain least squares
        over pairs) is accepted if the rows determine every weight.
    kernel : None, str, kernel object or callable, default=None
        None: a linear model. Names: "linear", "rbf", "poly", "laplacian", "cosine", "precomputed"; objects are in
        `rankrls.kernels`; a callable maps (X, Z) to the matrix of kernel values. `Gaussian(gamma="auto")` chooses the
        width together with alpha.
    basis : None, int, object of `rankrls.bases`, array of row indices or array of points, default=None
        The points in which a kernel model is expanded (Sparse RankRLS); None: all training rows. A number draws that
        many rows by randomly pivoted Cholesky; an object such as `KMeansCentres(500)` chooses points in its own way. A
        one-dimensional array contains row numbers, a two-dimensional one the points themselves. Directions of the
        points with less than 1e-13 of the largest eigenvalue are left out: they are rounding.
    weighting : {"pairs", "queries", "items"}, default="items"
        What counts equally: every pair (c = 1), every query (c = 1 / pairs of the query) or every item
        (c = 1 / items of the query).
    tied_pairs : bool or "auto", default=False
        True: pairs with equal y should get equal scores. False: they are left out. "auto" chooses together with alpha.
        Several targets need True.
    regression : float in [0, 1], default=0.0
        Share of the plain squared error of each item in the loss; above zero there is an unpenalised intercept, and
        scores are on the scale of y. 1 is ridge regression.
    alphas : array-like of float, default=None
        Values to choose from. None: 15 values over seven decades around the mean eigenvalue of the loss, extended (with
        a warning) while the best one is at an end.
    scoring : str or callable, default="pairwise_accuracy"
        A metric of `rankrls.metrics` by name, such as `"ndcg@10"`, or a callable (y, scores, qid) -> float, larger
        better. It chooses alpha, and `score` returns it.
    cv : "leave-query-out", int, scikit-learn group splitter or iterable of splits, default="leave-query-out"
        Held-out folds, which are unions of whole queries. All are exact and need no refits. A single query is cut into
        folds of its items instead (10 unless `cv` is a number or gives splits), or with cv="leave-pair-out" each pair
        of its items is ranked by the model of all others, the least biased estimate of the area under the ROC curve.
        The iterative solver (many thousands of sparse features and rows) takes "leave-query-out" to mean five folds of
        queries.
    scale : "auto" or None, default="auto"
        "auto" measures columns in units of their own spread, so that their scale does not matter: the penalty of a
        linear model is the sum of (w_j s_j)^2, where s_j^2 is the sum over the pairs that count of c_q times the
        squared difference in column j, divided by the weight of all rows; the library's kernels see every column
        divided by its standard deviation. `coef_` stays in the units of X. None uses unscaled columns and the papers'
        penalty, the sum of w_j^2. Your own kernel functions and precomputed kernels are never scaled. In a linear model
        with the default `tied_pairs` and `regression`, a common factor k of `sample_weight` acts as alpha / k, whatever
        the `weighting`; with scale=None as alpha / k under "items", alpha / k^2 under "pairs", and alpha under
        "queries".
    positive : bool, list of columns, or dict, default=False
        Signs required of the weights of a linear model: True if none may be negative, a list of columns (names or
        numbers) if only theirs may not be, or a dict such as `{"bm25": +1, "spam": -1}`. Solved and held out exactly.
    gain : None, "exponential", "auto" or function, default=None
        The targets of the loss: the labels themselves, 2^y - 1, or a function of an array of labels. "auto" chooses
        between the first two together with alpha. `scoring` always uses the given labels.
    random_state : int, Generator or None, default=None
        Used only to choose basis points.
    store_path : bool, default=False
        Keep the held-out scores of every alpha in `cv_predictions_path_`, and hold rows out even if alpha is a number.
        Also keep all rows of a linear model with more columns than rows, which `coef_path` and `predict_path` need;
        otherwise up to 64 MB of them are kept, until the model is saved.
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
        Zero unless `regression` is positive: it does not change rankings.
    X_fit_ : ndarray
        Points of a kernel model: the training rows or the basis.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    scale_ : ndarray of shape (n_features,)
        With scale="auto", the spread of each column; zero for columns that are constant within queries, which a linear
        model leaves out.
    alphas_, cv_scores_ : ndarray of shape (n_alphas,)
        The grid and the mean held-out score of each value (only with alpha="auto", like the next two attributes).
    cv_errors_ : ndarray of shape (n_alphas,)
        The standard error of each entry of `cv_scores_` over the held-out queries (for a single query, over the folds
        of its items). NaN if unknown: `scoring` is your own function, or the model was fitted to pairs.
    cv_criterion_ : str
        What `cv_scores_` are if not `scoring`: "minus the loss" or "loss", for rows that can be read only once.
    cv_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Held-out scores of the training rows at `alpha_`; NaN for rows of weight zero or in no fold.
    cv_predictions_path_ : ndarray of shape (n_samples, n_alphas) or (n_samples, n_alphas, n_targets)
        The same at every alpha (only with store_path=True).
    gain_ : str or function
        The `gain` that was used, "linear" for the labels themselves.
    tied_pairs_ : bool
        Whether tied pairs were included.
    weighting_ : str
        The `weighting` that was used.
    n_queries_, n_pairs_ : int
        Number of queries, and of pairs that counted.
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

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        kernel: KernelLike | None = None,
        basis: BasisLike | None = None,
        weighting: str = "items",
        tied_pairs: bool | str = False,
        regression: float = 0.0,
        alphas: ArrayLike | None = None,
        scoring: str | Callable[..., float] = "pairwise_accuracy",
        cv: object = "leave-query-out",
        scale: str | None = "auto",
        positive: object = False,
        gain: Gain | None = None,
        random_state: Seed = None,
        store_path: bool = False,
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
        self.gain = gain
        self.random_state = random_state
        self.store_path = store_path
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
            Relevance: any real numbers, larger is better. For a table, the name of its column.
        qid : array-like of shape (n_samples,), default=None
            Query of each row: any labels in any order. None: all rows are one query. For a table, the name of its
            column.
        sample_weight : array-like of shape (n_samples,), default=None
            The number of copies that each row counts as. For a table, the name of its column.
        pairs, margins, pair_weights : array-like, default=None
            Preferences to learn in addition to the labels, as in `add_pairs`. Alpha is chosen by the labels.
        checkpoint : path, default=None
            For rows that are not in memory: a file from which an interrupted fit resumes when it is called again with
            the same data and parameters.

        Returns
        -------
        self

        Notes
        -----
        Linear models and kernel models with a basis also learn from rows that are not in memory: a Parquet file or
        folder, a LETOR file, a polars LazyFrame, a DuckDB relation, a pyarrow Dataset or RecordBatchReader, an
        iterator over blocks `(X, y, qid)`, `(X, y, qid, weights)` or data frames, or a function that returns a
        new one each time. In tables `y` names the label ("y" by default) and `qid` the query ids ("qid"), all
        other columns are features, and rows may come in any order. In an iterator the rows of a query must be
        adjacent, though a block may end within a query. The sums take one pass, exact leave-query-out a second one.
        Data that can be read only once needs a number for alpha, or cv=5 (alpha is then chosen by the held-out loss).
        `cv_predictions_` is not kept. docs/scale.md has the limits.
        """
        self._check_params()
        if pairs is None and (margins is not None or pair_weights is not None):
            raise ValueError("margins and pair_weights belong to pairs, and there are none: pass pairs=")
        with self._attempt():
            for kept in PRIVATE:
                self.__dict__.pop(kept, None)
            source = None if in_memory(X) else source_of(X, y, qid, sample_weight)
            blocked = X if not isinstance(X, np.ndarray) and isinstance(X, BlockedRows) else None  # the first is fast
            if (source is not None or blocked is not None) and pairs is not None:
                raise ValueError(
                    "pairs refer to rows in memory, but these are read in blocks: fit, then call add_pairs"
                )
            if source is not None:
                return self._store(seen(source), *fit_source(self, source, checkpoint))
            if blocked is not None:  # rows on a cluster are already in blocks
                return self._store(seen(blocked), *fit_rows(self, blocked))
            if checkpoint is not None:
                raise ValueError(
                    "checkpoint is for rows that are read in blocks, but these are in memory: leave it out"
                )
            X, y, qid, sample_weight = checks.split_columns(X, y, qid, sample_weight)
            rows = training_rows(self, X, y, qid, sample_weight)
            learns = getattr(self.kernel, "metric", None) == "learned"
            self._store(*fit_training(with_learned_metric(self, rows) if learns else self, rows))
            if rows.kept is None and (index := index_of(X)) is not None:
                self._trained_queries = rows.queries.labels, index
            self._keep_rows(rows)
            return self if pairs is None else self.add_pairs(X, pairs, margins, pair_weights)
