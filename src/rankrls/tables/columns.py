"""Columns as normal scores: the rank of a value among all training rows, and among the rows of its query.

A value x of a column becomes norm.ppf(u), where u is the mid-rank distribution function of the training rows at x. Any
increasing transform of a column leaves its scores unchanged, heavy tails disappear, and one kernel width suits all
columns. The rank within the query, also as a normal score, adds what a score over all rows cannot show: which is best
in this query. The values themselves can be added too, standardised, for models that should be linear in them.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import checks
from ..core.queries import Queries
from ..system import frames
from ..system.types import DTypeLike

END = 3.0  # scores stay within three standard deviations
KNOTS = 2000  # values of a column whose scores are stored; scores in between are interpolated


class ColumnMaps(TransformerMixin, BaseEstimator):
    """Each column as normal scores of its distribution function and, if `relative`, of its ranks within the query.

    Constant columns are dropped. A missing value gets the score of the column's median, and each column with missing
    values gets another column that marks them. All columns have unit variance over the training rows. Labels are not
    used.

    Parameters
    ----------
    relative : bool, default=True
        Whether to add the ranks within the query. `transform` then needs whole queries.
    raw : bool, default=False
        Whether to add the values themselves, standardised; a missing value becomes 0.

    Attributes
    ----------
    values_, scores_ : list of ndarray
        Values of each kept column, ascending, and their normal scores; scores are linear in between.
    columns_ : ndarray of int
        The columns of X that vary.
    missing_ : ndarray of int
        The columns of X with missing values.
    scale_ : ndarray
        Divisors of the columns of the result.
    mean_ : ndarray
        Means that are subtracted from the kept columns, if `raw` adds them.
    source_ : ndarray of int
        The column of X that each column of the result comes from.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has names.
    n_queries_ : int
        Number of queries seen during fit.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import ColumnMaps
    >>> X, qid = np.array([[1.0], [10.0], [100.0], [1000.0]]), ["a", "a", "b", "b"]
    >>> ColumnMaps().fit(X, qid=qid).transform(X, qid=qid).round(2)
    array([[-1.36, -1.  ],
           [-0.38,  1.  ],
           [ 0.38, -1.  ],
           [ 1.36,  1.  ]])
    """

    # pipelines pass query ids on without any set_fit_request call
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__transform = {"qid": True}  # noqa: RUF012
    __metadata_request__fit_transform = {"qid": True}  # noqa: RUF012

    def __init__(self, *, relative=True, raw=False):
        self.relative = relative
        self.raw = raw

    def fit(self, X, y=None, qid=None):
        """Learn the distribution function of each column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, with NaN for missing values. A data frame may hold the query ids in a column named "qid".
        y : ignored
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None: all rows are one query.

        Returns
        -------
        self
        """
        X, qid = checks.split_qid_column(X, qid)
        X = self._checked(X, reset=True)
        return self.learn(X, checks.check_queries(qid, len(X)))

    def transform(self, X, qid=None):
        """The scores of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; with `relative`, all rows of each query.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None: all rows are one query.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_scores)
        """
        check_is_fitted(self, "scale_")
        X, qid = checks.split_qid_column(X, qid)
        X = self._checked(X, reset=False)
        return self.scores(X, checks.check_queries(qid, len(X)), X.dtype)

    def fit_transform(self, X, y=None, qid=None):
        """`fit` and `transform` in one."""
        X = frames.as_frame(X)  # before anything else, as a stream can be read only once
        return self.fit(X, y, qid).transform(X, qid)

    def get_feature_names_out(self, input_features=None):
        """Names of the scores: the column, the column "in query", the column "missing" and "raw" the column.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns; None: those seen during fit.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "scale_")
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        names, n = [str(name) for name in input_features], len(self.columns_)
        forms = ["{}"] * n + ["{} in query"] * (n * bool(self.relative)) + ["{} missing"] * len(self.missing_)
        forms += ["raw {}"] * (n * bool(self.raw))
        return np.array([form.format(names[i]) for i, form in zip(self.source_, forms, strict=True)], dtype=object)

    @property
    def n_scores_(self) -> int:
        """The number of columns of the result before the raw ones."""
        return len(self.source_) - len(self.columns_) * bool(self.raw)

    def scores(self, X: np.ndarray, queries: Queries, dtype: DTypeLike, used: np.ndarray | None = None) -> np.ndarray:
        """The scores of checked rows, in the given precision; columns of the result not in `used` are 0."""
        wanted = np.ones(len(self.source_), dtype=bool)
        if used is not None:
            wanted[:] = False
            wanted[used] = True
        N = self._scores(X, queries, dtype, wanted)
        N[:, : self.n_scores_] /= self.scale_[: self.n_scores_].astype(dtype)
        return N

    def learn(self, X: np.ndarray, queries: Queries):
        """`fit` for checked rows."""
        self.learn_scores(X, queries, np.float64)
        return self

    def learn_scores(self, X: np.ndarray, queries: Queries, dtype: DTypeLike) -> np.ndarray:
        """`fit` for checked rows, and their scores."""
        self.n_queries_, self.n_features_in_ = len(queries), X.shape[1]
        known = [column[~np.isnan(column)] for column in X.T]
        low, high = (np.array([f(c) if len(c) else 0.0 for c in known]) for f in (np.min, np.max))
        self.columns_ = np.flatnonzero(high > low)
        found = [_distribution(known[i]) for i in self.columns_]
        self.values_, self.scores_ = [values for values, _ in found], [scores for _, scores in found]
        self.missing_ = np.flatnonzero([0 < len(c) < len(X) for c in known])
        ranks, raw = ([self.columns_] if wanted else [] for wanted in (self.relative, self.raw))
        self.source_ = np.concatenate([self.columns_, *ranks, self.missing_, *raw]).astype(np.intp)
        self.mean_, deviation = _mean_and_deviation([known[i] for i in self.columns_] if self.raw else [])
        self.scale_ = np.concatenate([np.ones(self.n_scores_), deviation])
        N, n = self._scores(X, queries, np.float64, np.ones(len(self.source_), dtype=bool)), self.n_scores_
        deviation = N[:, :n].std(axis=0)
        self.scale_[:n] = np.where(deviation > 1e-3, deviation, 1.0)
        N[:, :n] /= self.scale_[:n]
        return N.astype(dtype, copy=False)

    def _scores(self, X: np.ndarray, queries: Queries, dtype: DTypeLike, wanted: np.ndarray) -> np.ndarray:
        """The wanted columns of the result, with raw ones divided by their scale."""
        n, twice, end = len(self.columns_), 1 + bool(self.relative), self.n_scores_
        N = np.zeros((len(X), len(self.source_)), dtype=dtype)
        for j in np.flatnonzero(wanted[:n]):
            scores = np.interp(X[:, self.columns_[j]], self.values_[j], self.scores_[j], left=-END, right=END)
            N[:, j] = np.nan_to_num(scores, copy=False)
        ranked = np.flatnonzero(wanted[n : twice * n])
        if len(ranked):
            filled = self._filled(X, ranked)
            ranks = np.empty(filled.shape, dtype=dtype)
            for batch in queries.batches():
                ranks[batch.rows] = _rank_scores(batch.stack(filled)).reshape(-1, len(ranked))
            N[:, n + ranked] = ranks
        if len(self.missing_):
            N[:, twice * n : end] = np.isnan(X[:, self.missing_])
        if self.raw and wanted[end:].any():
            N[:, end:] = np.nan_to_num((X[:, self.columns_] - self.mean_) / self.scale_[end:])
        return N

    def _filled(self, X: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Some of the kept columns, with missing values replaced by medians."""
        filled = X[:, self.columns_[kept]]
        gap = np.isnan(filled)
        if not gap.any():
            return filled
        middle = [np.interp(0.0, self.scores_[j], self.values_[j]) for j in kept]
        return np.where(gap, np.array(middle, dtype=filled.dtype), filled)

    def _checked(self, X, *, reset: bool) -> np.ndarray:
        checks.check_dense(X, type(self).__name__)
        dtypes = [np.float64, np.float32]
        return validate_data(self, X, dtype=dtypes, ensure_all_finite="allow-nan", reset=reset)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _mean_and_deviation(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(n,) means and (n,) deviations, computed so that squares of large values do not overflow."""
    largest = np.array([np.abs(column).max() for column in columns], dtype=np.float64)
    parts = [column / top for column, top in zip(columns, largest, strict=True)]
    mean = np.array([part.mean(dtype=np.float64) for part in parts]) * largest
    deviation = np.array([part.std(dtype=np.float64) for part in parts]) * largest
    return mean, np.where(deviation > 0, deviation, 1.0)


def _distribution(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, or some of them, and the normal scores of their mid-ranks."""
    distinct, count = np.unique(values.astype(np.float64), return_counts=True)
    level = (np.cumsum(count) - count / 2) / len(values)
    if len(distinct) > KNOTS:
        keep = np.unique(np.searchsorted(level, np.linspace(level[0], level[-1], KNOTS)).clip(0, len(level) - 1))
        distinct, level = distinct[keep], level[keep]
    return distinct, _normal(level)


def _normal(levels: np.ndarray) -> np.ndarray:
    """Normal scores of levels in [0, 1]."""
    return np.clip(ndtri(levels), -END, END)


def _rank_scores(V: np.ndarray) -> np.ndarray:
    """Normal scores of the mid-ranks along the middle axis of V (g, l, n)."""
    V = np.ascontiguousarray(V.transpose(0, 2, 1))  # (g, n, l)
    length = V.shape[-1]
    order = np.argsort(V, axis=-1)
    ordered = np.take_along_axis(V, order, axis=-1)
    place = np.arange(length)
    new = np.ones(V.shape, dtype=bool)
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=new[..., 1:])
    first = np.maximum.accumulate(np.where(new, place, 0), axis=-1)
    ends = np.ones(V.shape, dtype=bool)
    ends[..., :-1] = new[..., 1:]
    last = np.minimum.accumulate(np.where(ends, place, length)[..., ::-1], axis=-1)[..., ::-1]
    table = _normal((np.arange(2 * length - 1) / 2 + 0.5) / length)  # mid-ranks are halves of whole numbers
    score = np.empty(V.shape)
    np.put_along_axis(score, order, table[first + last], axis=-1)
    return score.transpose(0, 2, 1)
