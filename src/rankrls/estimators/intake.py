"""Training input, read and checked in one place: rows that all have a score, or of which some have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

from .. import checks
from ..core.queries import Queries
from ..system.frames import as_column
from ..system.types import ArrayLike, Ids, MatrixLike
from .base import as_items, sparse_formats, takes_objects
from .hints import mind_columns, mind_one_query
from .ridge_ranker import RidgeRanker
from .training import Training


def training_rows(
    model: RidgeRanker, X: MatrixLike, y: ArrayLike, qid: Ids, sample_weight: ArrayLike | None, *, fresh: bool = True
) -> Training:
    """Rows to fit to; unless `fresh`, further rows for a model that is fitted already."""
    checks.check_content(X=X, y=y, qid=qid, sample_weight=sample_weight)
    X, qid = checks.split_qid_column(X, qid)
    if takes_objects(model, X):
        rows = as_items(model, X, reset=fresh, at_least=2 if fresh else 1)
        targets = checks.check_numbers("y", y, len(rows), flat=False)
        return _training(model, rows, targets, qid, sample_weight, fresh=fresh)
    if fresh:
        mind_columns(X, qid)
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
    except ValueError as error:
        raise checks.unreadable(error, X) from None
    return _training(model, rows, targets, qid, sample_weight, fresh=fresh)


def _training(
    model: RidgeRanker, rows: Any, targets: np.ndarray, qid: Ids, sample_weight: ArrayLike | None, *, fresh: bool
) -> Training:
    if model.tied_pairs is not True and targets.ndim == 2 and targets.shape[1] == 1:
        targets = column_or_1d(targets, warn=True)
    m, n = rows.shape
    if fresh:
        mind_one_query(targets, qid)
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
        y: Any,
        qid: Any,
        sample_weight: Any = None,
        *,
        several: bool = False,
        fresh: bool = True,
    ) -> PartlyScored:
        """Rows as the caller gives them: y, qid and sample_weight may be names of columns of X.

        `several` lets y have a column for each of several targets. Unless `fresh`, these are further rows for a model
        that is fitted already, and none of them need have a score.
        """
        checks.check_in_memory(X, type(model).__name__)
        X, y, qid, sample_weight = checks.named_columns(X, y, qid, sample_weight)
        checks.check_content(y=y, qid=qid, sample_weight=sample_weight)
        X, qid = checks.split_qid_column(X, qid)
        mind_columns(X, qid)
        X = model._rows(X, reset=fresh, at_least=2 if fresh else 1)
        m = X.shape[0]
        several = several and np.ndim(y) == 2 and np.shape(y)[1] > 1
        if y is None and not fresh:
            y = np.full(m, np.nan)
        y = checks.check_scores(np.asarray(as_column(y), dtype=np.float64) if several else scores_of(y), m, some=fresh)
        mind_one_query(y, qid)
        rows = cls(X, y, checks.check_queries(qid, m), checks.check_weights(sample_weight, m))
        if fresh and not len(rows.scored):
            raise ValueError(f"none of the {m} rows is scored (y is NaN, or the weight is zero): score some")
        return rows

    @property
    def scored(self) -> np.ndarray:
        """The numbers of the rows that have a score."""
        return np.flatnonzero(self._given & ~self._missing)

    @property
    def unscored(self) -> np.ndarray:
        """The numbers of the rows that have none."""
        return np.flatnonzero(self._given & self._missing)

    @property
    def targets(self) -> np.ndarray:
        """(m, t)."""
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
    plain = isinstance(y, np.ndarray | list | tuple)  # a table may well have its one column in two dimensions
    try:
        return column_or_1d(as_column(y), dtype=np.float64, warn=plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold one number per row, NaN where unscored: {error}") from None
