"""Scaling within queries as a step of a pipeline."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import checks
from ..datasets.scaling import minmax_scale
from ..system import frames
from ..system.types import ArrayLike, Ids, MatrixLike
from ..system.warnings import warn

LARGE_QUERY = 200  # a single query with more rows than this is probably several queries


class PerQueryMinMax(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale every feature to [0, 1] within each query: (x - min) / (max - min), and 0 where it is constant.

    This is the scaling of the LETOR sets ("QueryLevelNorm") and of the papers. It removes differences in level and
    spread between queries, which often helps a linear ranker. What to know before using it:

    - It needs all items of a query at once, also at prediction time: scoring one document alone, or the first ten,
      gives different scores.
    - It learns nothing, so unlike a `StandardScaler` it cannot be folded into the weights of a linear model for export.
    - One outlier sets the scale of its query, and a query with one item becomes zero throughout.

    Query ids come by metadata routing (`qid`) or in a column "qid" of a data frame, which is kept for the next step.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, when X has string column names.
    n_queries_ : int
        Number of queries seen during fit.
    qid_column_ : int or None
        Position of the column "qid" in X, if there was one.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from rankrls import PerQueryMinMax, RankRLS
    >>> from rankrls.datasets import make_search
    >>> data, new = make_search(50, random_state=0), make_search(10, random_state=1)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model = make_pipeline(PerQueryMinMax(), RankRLS()).fit(data.X, data.y, qid=data.qid)
    ...     scores = model.predict(new.X, qid=new.qid)
    >>> scores.shape == new.y.shape
    True
    """

    # pipelines pass query ids on without any set_fit_request call
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__transform = {"qid": True}  # noqa: RUF012
    __metadata_request__fit_transform = {"qid": True}  # noqa: RUF012

    def fit(self, X: MatrixLike, y: ArrayLike | str | None = None, qid: Ids | str | None = None) -> Self:
        """Store the number of features and queries; nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items. A data frame may hold the query ids in a column named "qid".
        y : ignored
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None: all rows are one query.

        Returns
        -------
        self
        """
        columns = frames.names(X := frames.as_frame(X))
        self.qid_column_ = columns.index(checks.QID) if checks.QID in columns else None
        X, qid = checks.split_qid_column(X, qid)
        X = self._checked(X, reset=True)
        if qid is None and len(X) > LARGE_QUERY:
            warn(
                f"PerQueryMinMax got no qid and scales all {len(X):,} rows as one query: a pipeline passes qid on to "
                "it after sklearn.set_config(enable_metadata_routing=True) and pipeline.fit(X, y, qid=qid)"
            )
        self.n_queries_ = len(checks.check_queries(qid, len(X)))
        return self

    def transform(self, X: MatrixLike, qid: Ids | str | None = None) -> Any:
        """Scale the rows of each query.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items, all of each query; NaN stays NaN and is ignored.
        qid : array-like of shape (n_samples,), default=None
            Query of each row. Required when the transformer was fitted on several queries.

        Returns
        -------
        scaled : ndarray of shape (n_samples, n_features), or a data frame if X holds the query ids in a column "qid"

        Examples
        --------
        >>> from rankrls import PerQueryMinMax
        >>> X, qid = [[1.0], [3.0], [10.0], [20.0], [15.0]], ["a", "a", "b", "b", "b"]
        >>> PerQueryMinMax().fit(X, qid=qid).transform(X, qid=qid).ravel()
        array([0. , 1. , 0. , 1. , 0.5])
        """
        check_is_fitted(self, "n_queries_")
        frame = frames.as_frame(X)
        X, ids = checks.split_qid_column(frame, qid)
        if ids is None and self.n_queries_ > 1:
            raise ValueError(
                f"the transformer was fitted on {self.n_queries_} queries, but transform got no qid and would pool all "
                "rows into one: pass qid. A pipeline passes it on only after "
                "sklearn.set_config(enable_metadata_routing=True); a column 'qid' in a data frame needs no routing"
            )
        columns = frames.names(X)
        X = self._checked(X, reset=False)
        scaled = minmax_scale(np.array(X), checks.check_queries(ids, len(X)))
        if ids is qid:
            return scaled
        return frames.replaced(frame, dict(zip(columns, scaled.T, strict=True)))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Names of the columns of the result: the features, and "qid" if X has it.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features; None: those seen during fit.

        Returns
        -------
        names : ndarray of str
        """
        names = super().get_feature_names_out(input_features)
        return names if self.qid_column_ is None else np.insert(names, self.qid_column_, checks.QID)

    def fit_transform(self, X: MatrixLike, y: ArrayLike | str | None = None, qid: Ids | str | None = None) -> Any:
        """`fit` and `transform` in one.

        Parameters
        ----------
        X, y, qid
            As in `fit`.

        Returns
        -------
        scaled
            As returned by `transform`.
        """
        X = frames.as_frame(X)  # before anything else, as a stream can be read only once
        return self.fit(X, y, qid).transform(X, qid)

    def _checked(self, X: MatrixLike, *, reset: bool) -> np.ndarray:
        checks.check_dense(X, type(self).__name__)
        dtypes = [np.float64, np.float32]
        return validate_data(self, X, dtype=dtypes, ensure_all_finite="allow-nan", reset=reset)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
