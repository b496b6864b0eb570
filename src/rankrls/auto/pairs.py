"""PairScreen: a transformer that finds interacting pairs of columns and returns features of columns and pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import checks
from ..core.queries import Queries
from ..tables.columns import ColumnMaps
from .additive import AdditiveMap
from .candidates import Common, found_pairs, scattered_rows, strongest
from .effort import EFFORTS
from .functions import Ramps
from .rows import AutoRows, in_blocks
from .screen import ScreenRows


class PairScreen(TransformerMixin, BaseEstimator):
    """Smooth functions of columns, and of pairs of columns whose products explain the residual of single columns.

    A linear ranker on these features is an additive model with interactions (a GA2M in closed form). One matrix product
    screens all pairs.

    Parameters
    ----------
    n_pairs : int, default=8
        Pairs to find in each of two rounds; the second screens the residual of the first.

    Attributes
    ----------
    pairs_ : ndarray of shape (n_found, 2)
        Columns of the pairs found, strongest first.
    strengths_ : ndarray of shape (n_found,)
        The energy of each pair in the residual of single columns, about 1 for columns that do not interact.
    columns_ : ColumnMaps
        The normal scores of the columns.
    map_ : AdditiveMap
        The features.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import PairScreen
    >>> X = np.random.default_rng(0).normal(size=(500, 5))
    >>> y = X[:, 1] * X[:, 3] + X[:, 0]
    >>> screen = PairScreen().fit(X, y, qid=np.repeat(np.arange(50), 10))
    >>> screen.pairs_[0]
    array([1, 3])
    """

    # pipelines pass query ids on without any set_fit_request call
    __metadata_request__fit = {"qid": True}  # noqa: RUF012

    def __init__(self, n_pairs=8):
        self.n_pairs = n_pairs

    def fit(self, X, y, qid=None):
        """Find pairs of columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            Relevance.
        qid : array-like of shape (n_samples,), default=None
            Query of each row; None: all rows are one query.

        Returns
        -------
        self
        """
        if not isinstance(self.n_pairs, int | np.integer) or self.n_pairs < 1:
            raise ValueError(f"n_pairs must be a whole number of at least 1, got {self.n_pairs!r}")
        X, qid = checks.split_qid_column(X, qid)
        checks.check_dense(X, "PairScreen")
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True, ensure_min_samples=2)
        y, queries = np.asarray(y, dtype=np.float64), checks.check_queries(qid, len(X))
        checks.check_comparable(y, queries)
        self.columns_ = ColumnMaps(relative=False).learn(X, queries)
        if not len(self.columns_.columns_):
            raise ValueError(f"all {X.shape[1]} columns are constant over the {len(X)} rows: there is nothing to find")
        rows = AutoRows(self.columns_.scores(X, queries, np.float32), y, queries)
        source = self.columns_.source_
        common = Common(rows, self.columns_, replace(EFFORTS["normal"], pairs=int(self.n_pairs)), 0, 0)
        chosen = strongest(rows, common.n_scores)
        screen = ScreenRows(in_blocks(lambda N: common.curves(N, chosen), rows.N), common.deviation(chosen))
        lift = found_pairs(common, rows, chosen, screen, np.arange(len(rows)), rows.sums(screen.main))
        pairs = np.array(sorted(lift), dtype=np.intp).reshape(-1, 2)
        strengths = np.array([lift[pair] for pair in sorted(lift)])
        sample = scattered_rows(rows.N)
        self.map_ = AdditiveMap.of(sample, common.curves, Ramps.of(sample, {}), chosen, pairs)
        order = np.argsort(-strengths, kind="stable")
        self.pairs_, self.strengths_ = source[pairs][order], strengths[order]
        return self

    def transform(self, X):
        """The features of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        features : ndarray of shape (n_samples, n_functions)
        """
        check_is_fitted(self, "map_")
        X, _ = checks.split_qid_column(X, None)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return in_blocks(self.map_, self.columns_.scores(X, Queries.single(len(X)), np.float64))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
