"""TableEncoder: any table as a matrix of numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import checks
from ..system import frames
from ..system.types import ArrayLike, Matrix, MatrixLike
from ..system.warnings import warn
from . import reading
from .learning import (
    LearnedMap,
    TableParts,
    TableRows,
    encode,
    infinite,
    learn,
    warn_about_queries,
)
from .maps import RelativeMap, encoded_names
from .settings import Settings, check_settings
from .streaming import TrainingMaps, elsewhere
from .summaries import folds_of


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table with missing values, categories, text and dates into numbers that a ranker can learn from.

    - Numbers and dates become normal quantiles (or are standardised): mean 0 and variance 1. A missing value becomes
      0, and if training had missing values, a column "name=missing" marks them.
    - Booleans are standardised.
    - Categories and text with few levels become a 0/1 column per level, "name=level"; missing values are a level of
      their own. A level that training did not have is 0 in all columns.
    - Above `max_categories` levels there is one column "name (target)": the mean label of the level relative to its
      query, shrunk towards 0. Training rows get means over other queries, so that no label leaks into its own row.
    - Constant columns are dropped. So is text that differs in nearly every row (an id), with a warning.

    Parameters
    ----------
    numbers : {"quantile", "standard"}, default="quantile"
        How numbers and dates are scaled.
    max_categories : int, default=20
        Up to this many levels a column of text becomes one column per level; above it, target statistics.
    relative : bool, "zscore", "rank" or dict, default=False
        Add columns of numbers relative to the other rows of the query, "name (in query)": z-scores (also True) or
        ranks from -1 to 1. A dict maps names of columns to either. Scoring then needs `qid` and whole queries.
    columns : list of str or dict, default=None
        Columns to use; None: all. A dict also gives their kinds: "number", "boolean", "date" or "text". Rows to encode
        need only these columns, in any order.
    n_quantiles : int, default=100
        Points between which quantiles are interpolated.
    smoothing : float, default=10.0
        Number of rows with an average label that are added to each level in its target statistics.
    n_folds : int, default=5
        Folds of queries for the target statistics of training rows.

    Attributes
    ----------
    maps_ : list
        The encoding of each column.
    kinds_ : dict
        The kind of each column used.
    n_queries_ : int
        Number of queries seen during fit.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of columns, when X has string column names.

    Examples
    --------
    >>> import pandas as pd
    >>> from rankrls import TableEncoder
    >>> X = pd.DataFrame({"price": [9.5, None, 3.0, 7.0], "brand": ["a", "b", "a", None], "shop": "x"})
    >>> encoder = TableEncoder().fit(X)
    >>> encoder.get_feature_names_out().tolist()
    ['price', 'price=missing', 'brand=a', 'brand=b', 'brand=missing']
    >>> encoder.transform(pd.DataFrame({"price": [7.0], "brand": ["never seen"], "shop": ["y"]}))
    array([[0., 0., 0., 0., 0.]])
    """

    # pipelines pass query ids on without any set_fit_request call
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__transform = {"qid": True}  # noqa: RUF012
    __metadata_request__fit_transform = {"qid": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        numbers="quantile",
        max_categories=20,
        relative=False,
        columns=None,
        n_quantiles=100,
        smoothing=10.0,
        n_folds=5,
    ) -> None:
        self.numbers = numbers
        self.max_categories = max_categories
        self.relative = relative
        self.columns = columns
        self.n_quantiles = n_quantiles
        self.smoothing = smoothing
        self.n_folds = n_folds

    # ---------------------------------------------------------------- fitting

    def fit(self, X, y=None, qid=None) -> Self:
        """Learn how to encode each column.

        Parameters
        ----------
        X : data frame (pandas, polars, Arrow) or array-like of shape (n_samples, n_columns)
            Items. A data frame may hold the query ids in a column named "qid". More rows than fit in memory: a Parquet
            file or folder, a polars LazyFrame, a DuckDB relation, a pyarrow Dataset, or a function that returns an
            iterator over frames; then `y` and `qid` name columns, as in `RankRLS.fit`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Relevance; needed only for columns with more than `max_categories` levels. NaN marks a row without a label.
            For a data frame, the name of its column.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None: all rows are one query. For a data frame, the name of its column.

        Returns
        -------
        self
        """
        parts = elsewhere(X, y, qid)
        if parts is None:
            self._fit(X, y, qid)
        else:
            self._fit_parts(parts)
        return self

    def fit_transform(self, X, y=None, qid=None) -> Any:
        """Learn how to encode each column, and encode the training rows: target statistics come from other queries.

        Parameters
        ----------
        X, y, qid
            As in `fit`.

        Returns
        -------
        encoded
            As returned by `transform`. For rows that are not in memory, an object that `fit` of a ranker reads in
            blocks.

        Examples
        --------
        >>> from rankrls import TableEncoder
        >>> TableEncoder(numbers="standard").fit_transform([[1.0, "a"], [3.0, "b"]])
        array([[-1.,  1.,  0.],
               [ 1.,  0.,  1.]])
        """
        parts = elsewhere(X, y, qid)
        if parts is not None:
            return parts.encoded(self._fit_parts(parts))
        X, rows, maps = self._fit(X, y, qid)
        fold = folds_of(rows.queries, self.n_folds, single=self.n_queries_ == 1)
        return self._wrapped(X, encode(rows.columns, self.kinds_, maps, rows.queries, fold))

    def _fit(self, X: MatrixLike, y: np.ndarray, qid: np.ndarray | None) -> tuple[Any, TableRows, list[Any]]:
        """X with its query ids, its rows, and the maps for training rows."""
        check_settings(self)
        checks.check_content(X=X, y=y, qid=qid)
        X, y, qid, _ = checks.named_columns(frames.as_frame(X), y, qid, None)
        table, qid = checks.split_qid_column(X, qid)
        names = frames.names(table) and reading.names_of(table)
        if names:
            self._check_names(names)
        table = self._checked(self._chosen(table, [n for n in names if n in (self.columns or ())]), reset=True)
        if not names:
            self._check_names(reading.names_of(table))
        m = reading.n_rows(table)
        rows = TableRows(table, None if y is None else _labels(y, m), checks.check_queries(qid, m))
        learned = self._learned(rows)
        self._check_finite(rows.columns, learned.kinds, learned.maps)
        self._store(learned)
        warn_about_queries(learned, qid)
        self.qid_column_ = checks.QID in frames.names(X)
        return X, rows, learned.training

    def _fit_parts(self, parts: Any) -> TrainingMaps:
        """Learn from rows that are not in memory; returns how to encode them."""
        check_settings(self)
        if self.relative:
            raise ValueError(
                "columns relative to the query need all rows of a query at once, but these are read in parts: add such "
                'columns to the table, e.g. with polars\' over("qid"), or fit rows in memory'
            )
        names = [str(name) for name in parts.fields]
        self._check_names(names)
        learned = self._learned(parts)
        names = [name for name in names if self.columns is None or name in self.columns]
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        self._store(learned)
        self.qid_column_ = False
        return TrainingMaps(learned.kinds, learned.training, self.n_folds, learned.n_queries == 1)

    def _learned(self, parts: TableParts) -> LearnedMap:
        """Learn the maps of all columns; an error if labels are needed or nothing varies."""
        learned = learn(parts, Settings.of(self))
        for name in self.relative if isinstance(self.relative, dict) else ():
            if learned.kinds.get(name) == reading.TEXT:
                raise ValueError(
                    f"relative names {name!r}, a column of text, but only numbers have a rank or z-score within a query"
                )
        if not learned.maps:
            ids = f"; a different text in nearly every row, as {learned.ids[0]!r} has, is an id" if learned.ids else ""
            raise ValueError(
                f"none of the {len(learned.kinds)} columns varies (n_samples={learned.n_rows}): there is nothing to "
                f"learn from them{ids}"
            )
        return learned

    def _store(self, learned: LearnedMap) -> None:
        for name in learned.ids:
            warn(
                f"column {name!r} has a different text in nearly every row, so it is left out as an id: list the other "
                "columns in columns=[...] to avoid this warning"
            )
        self.kinds_, self.maps_, self.n_queries_ = learned.kinds, learned.maps, learned.n_queries

    # ---------------------------------------------------------------- encoding

    def transform(self, X, qid=None) -> Any:
        """Encode rows.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            Items, with the columns of training.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; needed, with all rows of each query, only if there are columns relative to the query.

        Returns
        -------
        encoded : ndarray of shape (n_samples, n_encoded), or a data frame if X holds the query ids in a column "qid"
        """
        check_is_fitted(self, "maps_")
        if isinstance(X, str | os.PathLike) or hasattr(X, "sum_tables"):
            raise TypeError("transform takes rows in memory: read the table in blocks, and transform each block")
        checks.check_content(X=X, qid=qid)
        X = frames.as_frame(X)
        table, ids = checks.split_qid_column(X, qid)
        table = self._checked(self._chosen(table, getattr(self, "feature_names_in_", ())), reset=False)
        queries = None
        if self.needs_queries:
            if ids is None and self.n_queries_ > 1:
                raise ValueError(
                    f"columns relative to the query need qid, but transform got none: the encoder was fitted on "
                    f"{self.n_queries_} queries. Pass qid, or, inside a pipeline, call "
                    "sklearn.set_config(enable_metadata_routing=True) or put a column 'qid' into X"
                )
            queries = checks.check_queries(ids, reading.n_rows(table))
        columns = reading.ColumnReader(table, getattr(self, "feature_names_in_", None))
        self._check_finite(columns, self.kinds_, self.maps_)
        return self._wrapped(X, encode(columns, self.kinds_, self.maps_, queries))

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Names of the encoded columns, and "qid" if X has it.

        Parameters
        ----------
        input_features : ignored
            The names come from the columns of training.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "maps_")
        return np.array(encoded_names(self.maps_) + [checks.QID] * self.qid_column_, dtype=object)

    def inverse(self, contributions=None):
        """The column of the table that each encoded column comes from, or contributions added up by those columns.

        Parameters
        ----------
        contributions : array-like of shape (n_encoded,), default=None
            One number per encoded column, such as those of `RankRLS.explain`.

        Returns
        -------
        origin : ndarray of str, shape (n_encoded,), or dict of float
            With contributions, their sums by column, the largest first.

        Examples
        --------
        >>> from rankrls import TableEncoder
        >>> encoder = TableEncoder().fit([[1.0, "a"], [3.0, "b"]])
        >>> encoder.inverse().tolist()
        ['x0', 'x1', 'x1']
        >>> encoder.inverse([0.5, 0.25, 1.0])
        {'x1': 1.25, 'x0': 0.5}
        """
        check_is_fitted(self, "maps_")
        origin = [made.name for made in self.maps_ for _ in made.names]
        if contributions is None:
            return np.array(origin, dtype=object)
        values = checks.check_numbers("contributions", contributions, len(origin), unit="encoded column")
        sums: dict[str, float] = dict.fromkeys(origin, 0.0)
        for name, value in zip(origin, values.tolist(), strict=True):
            sums[name] += value
        return dict(sorted(sums.items(), key=lambda item: -abs(item[1])))

    @property
    def needs_queries(self) -> bool:
        """True if rows can be encoded only together with the rest of their query."""
        return any(isinstance(made, RelativeMap) for made in getattr(self, "maps_", ()))

    # ---------------------------------------------------------------- helpers

    def _check_names(self, names: list[str]) -> None:
        """Raise an error if parameters name unknown columns; the columns of an array are x0, x1 and so on."""
        for argument, given in (("columns", self.columns), ("relative", self.relative)):
            unknown = [name for name in given if name not in names] if isinstance(given, list | tuple | dict) else []
            if unknown:
                raise ValueError(f"{argument} names {unknown[0]!r}, but the table has {', '.join(names[:20])}")

    def _chosen(self, table: Any, names: Sequence[str]) -> Any:
        """The columns with these names if `columns` chooses some, else the whole table."""
        if self.columns is None or not frames.names(table):
            return table
        have = dict(zip(reading.names_of(table), frames.names(table), strict=True))
        return frames.only(table, [have[name] for name in names if name in have])

    def _checked(self, table: Any, *, reset: bool) -> Any:
        """The table, checked to have rows and the columns of training."""
        checks.check_dense(table, "TableEncoder")
        if hasattr(table, "shape") and len(table.shape) == 2 and not table.shape[1]:
            shape = tuple(table.shape)
            raise ValueError(
                f"the table has no columns: 0 feature(s) (shape={shape}) while a minimum of 1 is required."
            )
        if not frames.names(table):
            table = table if hasattr(table, "__array__") else np.array(table, dtype=object)
            return validate_data(self, table, dtype=None, ensure_all_finite=False, reset=reset)
        validate_data(self, table, skip_check_array=True, reset=reset)
        if reset and not hasattr(self, "feature_names_in_"):  # a kind of table that scikit-learn does not know
            self.feature_names_in_ = np.array(frames.names(table), dtype=object)
        if not reading.n_rows(table):
            raise ValueError(f"Found array with 0 sample(s) (shape={tuple(table.shape)}): there are no rows to encode")
        return table

    def _check_finite(self, table: reading.ColumnReader, kinds: dict[str, str], maps: list[Any]) -> None:
        name = infinite(table, kinds, maps) if self.numbers == "standard" else None
        if name is not None:
            raise ValueError(
                f'column {name!r} holds infinity, which cannot be standardised: replace it, or use numbers="quantile"'
            )

    def _wrapped(self, X: Matrix, encoded: np.ndarray) -> Any:
        """The encoded rows; if X is a frame with query ids, as a frame with those."""
        if checks.QID not in frames.names(X):
            return encoded
        columns = dict(zip(encoded_names(self.maps_), encoded.T, strict=True))
        return frames.like(X, {**columns, checks.QID: X[checks.QID]})

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _labels(y: ArrayLike, m: int) -> np.ndarray:
    """(m, t) labels, NaN for rows without one."""
    array = np.asarray(frames.as_column(y), dtype=np.float64)
    if array.ndim not in (1, 2) or len(array) != m:
        raise ValueError(f"y must hold one number per row of X: got shape {array.shape} for {m} rows")
    return array.reshape(m, -1)
