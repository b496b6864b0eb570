"""Reads and checks training rows, in one place for all rankers; y may be given for all rows or only for some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data

from ... import checks
from ...core.queries import Queries
from ...system.frames import as_column
from ...system.items import Items
from ...system.types import ArrayLike, Ids, Matrix, MatrixLike
from ..base import items_of, sparse_formats, takes_objects
from ..ranking.base import RidgeRanker
from .hints import warn_about_columns, warn_about_one_query, warn_about_scales
from .training import Training


def training_rows(
    model: RidgeRanker, X: MatrixLike, y: ArrayLike, qid: Ids, sample_weight: ArrayLike | None, *, fresh: bool = True
) -> Training:
    """The rows to fit to or, unless `fresh`, more rows for a fitted model."""
    checks.check_features(X)
    checks.check_content(y=y, qid=qid, sample_weight=sample_weight)
    X, qid = checks.split_qid_column(X, qid)
    if takes_objects(model, X):
        rows = items_of(model, X, reset=fresh, at_least=2 if fresh else 1)
        targets = checks.check_numbers("y", y, len(rows), flat=False)
        return _training(model, rows, targets, qid, sample_weight, fresh=fresh)
    if fresh:
        warn_about_columns(X, qid)
    try:
        rows, targets = validate_data(
            model,
            X,
            as_column(y),
            accept_sparse=sparse_formats(model),
            dtype=[np.float64, np.float32],
            y_numeric=True,
            multi_output=True,
            ensure_min_samples=2 if fresh else 1,
            reset=fresh or not hasattr(model, "alpha_"),
        )
    except (ValueError, TypeError) as error:
        raise checks.unreadable(error, X) from None
    return _training(model, rows, targets, qid, sample_weight, fresh=fresh)


def _training(
    model: RidgeRanker, rows: Any, targets: np.ndarray, qid: Ids, sample_weight: ArrayLike | None, *, fresh: bool
) -> Training:
    if model.tied_pairs is not True and targets.ndim == 2 and targets.shape[1] == 1:
        targets = column_or_1d(targets, warn=True)
    m, n = rows.shape
    if fresh:
        warn_about_one_query(targets, qid)
    queries, weights = checks.check_queries(qid, m), checks.check_weights(sample_weight, m)
    if model.__sklearn_tags__().input_tags.pairwise and fresh:
        checks.check_kernel_values(rows, model.basis)
    signs = checks.check_signs(model.positive, n, getattr(model, "feature_names_in_", None))
    kind = {"n_given": m, "flat": targets.ndim == 1, "signs": signs, "scaled": model.scale is not None}
    y = checks.check_targets(targets, tied_pairs=model.tied_pairs)
    data = Training(rows, y, queries, weights, **kind).without_zero_weights()
    if model.tied_pairs is not False:
        checks.check_query_mass(data.queries, data.weights, model.weighting)
    if fresh and model.regression == 0:
        checks.check_comparable(data.y, data.queries)
    return data


@dataclass(frozen=True)
class PartlyScored:
    """Checked rows; y is NaN where a row has no score. A row of weight zero is neither scored nor unscored."""

    X: Any
    y: np.ndarray  # (m,) or (m, t)
    queries: Queries
    weights: np.ndarray | None

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike | None,
        qid: Ids,
        sample_weight: ArrayLike | None = None,
        *,
        several: bool = False,
        fresh: bool = True,
    ) -> PartlyScored:
        """Rows as the caller passes them: y, qid and sample_weight may be column names of X.

        `several` allows y to have several columns. Unless `fresh`, these are more rows for a fitted model, and no row
        needs a score.
        """
        checks.check_in_memory(X, type(model).__name__)
        X, y, qid, sample_weight = checks.named_columns(X, y, qid, sample_weight)
        checks.check_content(y=y, qid=qid, sample_weight=sample_weight)
        X, qid = checks.split_qid_column(X, qid)
        warn_about_columns(X, qid)
        X = model._rows(X, reset=fresh, at_least=2 if fresh else 1)
        m = X.shape[0]
        if fresh and _sees_scales(model, X):
            warn_about_scales(X, type(model).__name__)
        several = several and np.ndim(y) == 2 and np.shape(y)[1] > 1
        if y is None and not fresh:
            y = np.full(m, np.nan)
        y = checks.check_scores(np.asarray(as_column(y), dtype=np.float64) if several else scores_of(y), m, some=fresh)
        warn_about_one_query(y, qid)
        rows = cls(X, y, checks.check_queries(qid, m), checks.check_weights(sample_weight, m))
        if fresh and not len(rows.scored):
            raise ValueError(f"none of the {m} rows is scored (y is NaN, or the weight is zero): give some a score")
        return rows

    @property
    def scored(self) -> np.ndarray:
        """Row numbers of the scored rows."""
        return np.flatnonzero(self._given & ~self._missing)

    @property
    def unscored(self) -> np.ndarray:
        """Row numbers of the unscored rows."""
        return np.flatnonzero(self._given & self._missing)

    @property
    def targets(self) -> np.ndarray:
        """(m, t) the scores, with one column if y has one dimension."""
        return self.y.reshape(len(self.y), -1)

    @property
    def _missing(self) -> np.ndarray:
        return np.isnan(self.targets).any(axis=1)

    @property
    def _given(self) -> np.ndarray:
        return np.ones(len(self.y), dtype=bool) if self.weights is None else self.weights > 0


def scores_of(y: object) -> np.ndarray:
    """y as numbers in one dimension, NaN where a row has no score."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: NaN marks unscored rows")
    plain = isinstance(y, np.ndarray | list | tuple)  # a table with one column counts as one dimension
    try:
        return column_or_1d(as_column(y), dtype=np.float64, warn=plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold one number per row, NaN where unscored: {error}") from None


def _sees_scales(model: BaseEstimator, X: Matrix) -> bool:
    """True if a method without `scale` depends on the scale of columns: all but feature selection do."""
    selects = hasattr(model, "n_basis") and model.kernel in (None, "linear")
    return not (selects or isinstance(X, Items) or model.__sklearn_tags__().input_tags.pairwise)
