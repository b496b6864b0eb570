"""AutoRanker: columns, candidates, cross-fitting and a stack behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from .. import checks
from ..blocks.reading import SourceRows
from ..blocks.sources import source_of
from ..blocks.sums import BlockedRows
from ..core.queries import Queries
from ..estimators.base import Ranker
from ..estimators.ranking.blocks import seen
from ..estimators.reasons import as_rows, named
from ..estimators.rows.intake import warn_about_columns, warn_about_one_query
from ..system import frames
from ..system.frames import as_frame
from ..system.memory import check_memory
from ..system.seeds import seed_of
from ..system.types import ArrayLike, FitInput, Ids, Matrix, MatrixLike, Seed
from ..tables import TableEncoder
from . import glassbox
from .elsewhere import fit_blocks
from .fitting import FitPlan, fit_dense, fit_sparse
from .preferences import fit_preferences

NO_LABELS = "no_validation"  # what scikit-learn passes as y for rows without labels
DOUBLE_ROWS = 20_000  # up to this many rows are scored in double precision


class AutoRanker(Ranker):
    """Ranking in one line: closed-form candidates, judged on held-out queries and stacked.

    Columns become normal scores of their distribution over all rows and within the query (`ColumnMaps`). The candidates
    are a linear model, additive models with screened pairs of columns, and kernels with learned column weights; each is
    a pairwise ridge regression in closed form. Cross-fitting over folds of queries chooses every alpha and the
    non-negative weights of the stack; whatever is learned from labels is judged on other queries.

    Parameters
    ----------
    scoring : str or callable, default="ndcg@10"
        The metric that judges candidates, together with pairwise accuracy. If the metric is not defined for the labels
        (ndcg needs grades of at least zero), pairwise accuracy is used; see `scoring_`.
    effort : {"fast", "normal", "best"} or float, default="normal"
        How much work to spend. "fast" tries the linear and the additive candidates, "normal" kernels of 1,000 points
        as well, "best" the same with 5 folds and 2,000 points. docs/auto.md has the costs. A number is the seconds to
        spend: the candidates of "normal" are tried in turn until half of it has passed, the linear one always.
    relative : bool, default=True
        Whether to add ranks within the query as columns. `predict` then needs whole queries, with `qid`.
    candidates : list of str, default=None
        The candidates to stack, instead of those of `effort`: "linear", "scores", "additive", "adaptive", "link",
        "gauss", "laplace", "gauss learned", "laplace learned". Those they build on are fitted as well.
    random_state : int, Generator or None, default=0
        Seed of the folds and of the basis points.
    verbose : bool, default=False
        Report progress, with the time left, on standard error.

    Attributes
    ----------
    leaderboard_ : list of dict
        For each candidate, best first: "candidate", "score" (held out), "error" (its standard error), "weight" (its
        share in the stack), "size" (features) and "seconds".
    cv_score_, cv_error_ : float
        The held-out score of the whole stack, and its standard error over queries.
    cv_scores_ : ndarray of shape (n_folds,)
        The held-out score of the whole stack in each fold.
    cv_predictions_ : ndarray of shape (n_samples,)
        Held-out scores of the whole stack; NaN for rows outside the sample that is used to choose everything. Not kept
        for rows that are not in memory or for pairs.
    interactions_ : list of dict
        The pairs of columns in the additive model: "columns", "strength" (energy in the residual of single columns, 1
        by chance) and "spread" (standard deviation of the pair's contribution within queries), largest first.
    feature_effects_ : list of dict
        For each column of scores: "column", "source" (the number of the column of X), "relative", "spread", "values"
        and "effect", the curve of its contribution.
    additive_ : StackPart
        The additive model behind both (for `plotting.EffectsDisplay` and `plotting.PairEffectsDisplay`); missing if
        only the linear model and kernels are used.
    parts_ : list
        The candidates of the final model with their weights.
    encoder_ : TableEncoder or None
        The encoder of text, categories and dates of a data frame, if there are any.
    columns_ : ColumnMaps
        The scores of columns; None for sparse rows.
    scoring_ : str or callable
        The metric used.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has names.
    n_queries_, n_rows_ : int
        Number of queries and rows seen during fit.

    Notes
    -----
    With fewer than six queries, rows are dealt into folds instead of queries. Interrupting `fit` (Ctrl-C) keeps the
    candidates judged so far. Sparse rows are ranked by a linear model. For rows that are not in memory, everything is
    chosen on a sample of whole queries, and only the weights of the final model are learned from all rows.

    Examples
    --------
    >>> from rankrls import AutoRanker
    >>> from rankrls.datasets import make_search
    >>> data, new = make_search(60, random_state=0), make_search(20, random_state=1)
    >>> model = AutoRanker(effort="fast").fit(data.X, data.y, qid=data.qid)
    >>> bool(model.score(new.X, new.y, qid=new.qid) > 0.7)
    True
    >>> sorted(model.leaderboard_[0])
    ['candidate', 'error', 'score', 'seconds', 'size', 'weight']
    """

    __metadata_request__predict = {"qid": True}  # noqa: RUF012
    _learned = "parts_"

    parts_: list[Any]
    columns_: Any
    encoder_: TableEncoder | None
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        *,
        scoring: str | Callable[..., float] = "ndcg@10",
        effort: str | float = "normal",
        relative: bool = True,
        candidates: Sequence[str] | None = None,
        random_state: Seed = 0,
        verbose: bool = False,
    ) -> None:
        self.scoring = scoring
        self.effort = effort
        self.relative = relative
        self.candidates = candidates
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: FitInput,
        y: ArrayLike | str | None = None,
        qid: Ids | str = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Learn from rows with labels, grouped into queries.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or rows elsewhere
            Items, with NaN for missing values. A data frame may hold the query ids in a column named "qid", and
            text, categories and dates, which `TableEncoder` turns into numbers. Rows that are not in memory: a Parquet
            file or folder, a LETOR file, a polars LazyFrame, a DuckDB relation, a pyarrow Dataset, or a function that
            returns an iterator over blocks `(X, y, qid)`, as `RankRLS.fit` takes them; these must be finite numbers.
        y : array-like of shape (n_samples,), or the name of a column of X
            Relevance, larger is better.
        qid : array-like of shape (n_samples,), or the name of a column of X, default=None
            Query of each row; None: all rows are one query.
        sample_weight : array-like of shape (n_samples,), or the name of a column of X, default=None
            The number of copies that each row counts as. The scores of columns do not depend on it.

        Returns
        -------
        self
        """
        plan = self._plan()
        with self._attempt():
            source = source_of(X, y, qid, sample_weight)
            if source is not None or isinstance(X, BlockedRows):
                blocks: Any = X if source is None else SourceRows(source)
                self.encoder_ = None
                return self._store(seen(blocks), fit_blocks(blocks, plan))
            X, y, qid, sample_weight = checks.split_columns(X, y, qid, sample_weight)
            warn_about_columns(X, qid)
            X, y = self._learned_rows(X, y, qid)
            y = np.asarray(column_or_1d(y), dtype=np.float64)
            warn_about_one_query(y, qid)
            queries = checks.check_queries(qid, len(y))
            weights = checks.check_weights(sample_weight, len(y))
            checks.check_comparable(y, queries)
            if sparse.issparse(X):
                return self._store(fit_sparse(X, y, queries, weights, plan))
            return self._store(fit_dense(X, y, queries, weights, self.column_names(), plan))

    def fit_pairs(
        self,
        X: MatrixLike,
        pairs: ArrayLike,
        margins: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        *,
        qid: Ids | str = None,
    ) -> Self:
        """Learn from explicit preferences between rows; candidates are judged on held-out pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items, with NaN for missing values.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers (i, j): item i is preferred to item j.
        margins : array-like of shape (n_pairs,), default=None
            The difference of their scores; 1 if not given.
        weights : array-like of shape (n_pairs,), default=None
            The weight of each pair; 1 if not given.
        qid : array-like of shape (n_samples,), or the name of a column of X, default=None
            Query of each row, for ranks within the query; None: all rows are one query. With six queries or more,
            folds are made of queries; otherwise of connected components of the graph of pairs, or of pairs.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import AutoRanker
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> better = X[:, 0] * X[:, 1]
        >>> pairs = np.arange(200).reshape(100, 2)
        >>> pairs = np.where((better[pairs[:, 0]] > better[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
        >>> model = AutoRanker(effort="fast", relative=False).fit_pairs(X, pairs)
        >>> model.interactions_[0]["columns"]
        ('x0', 'x1')
        """
        plan = self._plan()
        with self._attempt():
            X, _, qid, _ = checks.split_columns(X, None, qid, None)
            X = self._learned_rows(X, NO_LABELS, qid)
            if sparse.issparse(X):
                raise TypeError("fit_pairs takes dense rows: call X.toarray(), or use RankRLS().fit_pairs")
            found = checks.check_pairs(pairs, len(X))
            p = len(found)
            d = np.ones(p) if margins is None else checks.check_numbers("margins", margins, p, unit="pair")
            w = checks.check_weights(weights, p, name="weights", unit="pair")
            used = (d != 0) & (found[:, 0] != found[:, 1]) & (True if w is None else w > 0)
            found, d, w = found[used], d[used], None if w is None else w[used]
            queries = checks.check_queries(qid, len(X))
            return self._store(fit_preferences(X, queries, found, d, w, self.column_names(), plan))

    def _plan(self) -> FitPlan:
        return FitPlan.of(self.effort, self.candidates, self.scoring, seed_of(self.random_state), self.relative)

    def _learned_rows(self, X: Any, y: Any, qid: Ids) -> Any:
        """Checked rows, and labels if any; text, categories, dates and booleans become numbers."""
        checks.check_content(X=X, y=None if y is NO_LABELS else y, qid=qid)
        self.encoder_ = TableEncoder() if _has_text(X) else None
        if self.encoder_ is not None:
            X = self.encoder_.fit_transform(X, None if y is NO_LABELS else y, qid=qid)
            if sparse.issparse(X):
                cells = X.shape[0] * X.shape[1]
                check_memory(2 * 8 * cells, f"an encoded table of {X.shape} cells", "use RankRLS after a TableEncoder")
                X = X.toarray()
            self.__dict__.pop("feature_names_in_", None)  # left by an earlier fit
        labels = {} if y is NO_LABELS else {"y_numeric": True}
        try:
            found = validate_data(self, X, y, ensure_min_samples=2, **labels, **_INPUT)
        except (ValueError, TypeError) as error:
            raise checks.unreadable(error, X) from None
        if self.encoder_ is not None:
            self.n_features_in_, self.feature_names_in_ = self.encoder_.n_features_in_, self.encoder_.feature_names_in_
        return found

    @property
    def needs_queries(self) -> bool:
        """True if scores depend on the other rows of the query."""
        return bool(self.relative) and getattr(self, "columns_", self) is not None

    def column_names(self) -> list[str]:
        """Names of the columns that `columns_` takes: those of X, or of its encoder."""
        encoder = getattr(self, "encoder_", None)
        if encoder is not None:
            return [str(name) for name in encoder.get_feature_names_out()]
        given = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if given is None else [str(name) for name in given]

    def predict(self, X: MatrixLike, qid: Ids | str = None) -> np.ndarray:
        """Scores: within a query, larger is ranked higher.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Items; all items of each query where the model uses ranks within the query (`relative`).
        qid : array-like of shape (n_samples,), or the name of a column of X, default=None
            Query of each row; None: all rows are one query. Not used with `relative=False`.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "parts_")
        X, _, qid, _ = checks.split_columns(X, None, qid, None)
        X = self._rows_of(X, qid)
        if self.columns_ is None:
            return self.parts_[0].predict(X)
        queries = checks.check_queries(qid, X.shape[0])
        if sparse.issparse(X):
            raise TypeError("the model was fitted on dense rows: call X.toarray()")
        dtype = np.float64 if len(X) <= DOUBLE_ROWS else np.float32
        used = np.unique(np.concatenate([np.empty(0, np.intp), *(part.map.used for part in self.parts_)]))
        return self._scores(self.columns_.scores(X, queries, dtype, used))

    def _rows_of(self, X: Any, qid: Ids = None) -> Any:
        """Checked rows, as numbers."""
        checks.check_content(X=X, qid=qid)
        encoder = getattr(self, "encoder_", None)  # missing in models of the first version
        if encoder is not None:
            return check_array(encoder.transform(X, qid=qid), dtype=_INPUT["dtype"])
        return validate_data(self, X, reset=False, **_INPUT)

    def _scores(self, N: np.ndarray) -> np.ndarray:
        total = np.zeros(len(N))
        for part in self.parts_:
            total += part(N)
        return total

    def explain(self, x_a: ArrayLike, x_b: ArrayLike, X: MatrixLike | None = None) -> Any:
        """Explain why a ranks above b: the contribution of each column to score(a) - score(b).

        The scores of the columns move from b to a along a straight line, and the change of the model's score in each
        step is shared among the columns.

        Parameters
        ----------
        x_a, x_b : array-like of shape (n_features,), or rows of a data frame
            Two items.
        X : array-like of shape (n_samples, n_features), default=None
            The items of their query, on which ranks within the query depend; a and b need not be among them. None: a
            query of just the two.

        Returns
        -------
        contributions : ndarray of shape (n_features,), or Series by name where x_a is a row of a pandas frame
            They sum to the difference of the scores.

        Examples
        --------
        >>> from rankrls import AutoRanker
        >>> from rankrls.datasets import make_search
        >>> data = make_search(60, random_state=0)
        >>> model = AutoRanker(effort="fast").fit(data.X, data.y, qid=data.qid)
        >>> query = data.X[data.qid == data.qid[0]]
        >>> shares, scores = model.explain(query[0], query[1], query), model.predict(query)
        >>> bool(abs(shares.sum() - (scores[0] - scores[1])) < 1e-6)
        True
        """
        check_is_fitted(self, "parts_")
        if self.columns_ is None:
            return self.parts_[0].explain(x_a, x_b)
        x_a, x_b = _item(x_a), _item(x_b)
        a, b = (self._rows_of(as_rows(self, x)) for x in (x_a, x_b))
        rows = a[:0] if X is None else self._rows_of(checks.split_qid_column(as_frame(X), None)[0])
        rows, place_a = _with_row(rows, a)
        rows, place_b = _with_row(rows, b)
        N = self.columns_.scores(rows, Queries.single(len(rows)), np.float64)[[place_a, place_b]]
        shares = glassbox.contributions(self._scores, N, self.columns_.source_, rows.shape[1])
        encoder = getattr(self, "encoder_", None)
        if encoder is not None:
            by_name = encoder.inverse(shares)
            shares = np.array([by_name.get(str(name), 0.0) for name in self.feature_names_in_])
        return named(shares, x_a, getattr(self, "feature_names_in_", None))

    def _scores_of(self, X: MatrixLike, qid: Ids) -> np.ndarray:
        return self.predict(X, qid)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


_INPUT: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": "allow-nan",
}


def _has_text(X: Matrix) -> bool:
    """True if a frame has columns that are not numbers."""
    return any(np.asarray(X[name]).dtype.kind not in "iuf" for name in frames.names(X))


def _item(x: object) -> Any:
    """An item, taken out of a frame of one row if necessary."""
    return x.iloc[0] if hasattr(x, "iloc") and getattr(x, "ndim", 1) == 2 and len(x) == 1 else x  # type: ignore[arg-type]


def _with_row(rows: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, int]:
    """The rows with `row` (1, n) appended if it is missing, and its index."""
    found = np.flatnonzero(((rows == row) | (np.isnan(rows) & np.isnan(row))).all(axis=1))
    return (rows, int(found[0])) if len(found) else (np.concatenate([rows, row]), len(rows))
