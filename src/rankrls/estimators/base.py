"""The base class of all rankers: what they do with the scores they predict."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import checks
from ..core.queries import Queries
from ..kernels import compares_objects
from ..metrics import get_metric
from ..system.frames import as_column, index_of
from ..system.items import Items
from ..system.progress import reporting
from ..system.types import ArrayLike, Ids, Matrix, MatrixLike
from ..system.warnings import warn

SPLIT = 0.1  # warn if other rows of at least this share of the scored queries were trained on


class Ranker(BaseEstimator):
    """An estimator whose `predict` gives scores: within a query, larger is ranked higher.

    A subclass has the parameter `scoring`, sets `n_queries_` and the attribute that `_learned` names, and implements
    `predict`.
    """

    # pipelines pass query ids on without any set_fit_request call
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True}  # noqa: RUF012

    _learned = "alpha_"  # an attribute that only a fitted ranker has
    _skips_unscored = False  # whether `score` skips rows with NaN in y

    def rank(self, X: MatrixLike, qid: Ids | str | None = None) -> np.ndarray:
        """Position of each row in the ranking of its query, 1 for the best; equal scores keep their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        qid : array-like of shape (n_samples,), or the name of a column of X, default=None
            Query of each row; None: all rows are one query.

        Returns
        -------
        ranks : ndarray of int, shape (n_samples,)

        Examples
        --------
        >>> from rankrls import RankRLS
        >>> X, y, qid = [[3.0], [1.0], [2.0], [5.0], [4.0]], [3, 1, 2, 5, 4], ["a", "a", "a", "b", "b"]
        >>> RankRLS(alpha=1.0).fit(X, y, qid=qid).rank(X, qid)
        array([1, 3, 2, 1, 2])
        """
        X, _, qid, _ = checks.split_columns(X, None, qid, None)
        scores = self._scores_of(X, qid)
        if scores.ndim > 1:
            raise ValueError(
                f"rank needs one score per row, but this model has {scores.shape[1]} targets: rank a column of predict"
            )
        return checks.check_queries(qid, len(scores)).ranks(scores)

    def score(
        self, X: MatrixLike, y: ArrayLike | str, qid: Ids | str = None, sample_weight: ArrayLike | str | None = None
    ) -> float:
        """The `scoring` metric of the rankings, averaged over queries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or the name of a column of X
            True relevance. Semi-supervised rankers skip rows where it is NaN.
        qid : array-like of shape (n_samples,), or the name of a column of X, default=None
            Query of each row. Required when the model was fitted on several queries.
        sample_weight : array-like of shape (n_samples,), or the name of a column of X, default=None
            The weight of a query is the mean weight of its rows.

        Returns
        -------
        score : float

        Examples
        --------
        >>> from rankrls import RankRLS
        >>> X, y, qid = [[3.0], [1.0], [2.0], [5.0], [4.0]], [3, 1, 2, 5, 4], ["a", "a", "a", "b", "b"]
        >>> RankRLS(alpha=1.0, scoring="ndcg@1").fit(X, y, qid=qid).score(X, y, qid=qid)
        1.0
        """
        check_is_fitted(self, self._learned)
        X, y, qid, sample_weight = checks.split_columns(X, y, qid, sample_weight)
        index = index_of(X)
        if qid is None and self.n_queries_ > 1:
            raise ValueError(
                f"the model was fitted on {self.n_queries_} queries, but score got no qid and would pool them into "
                "one: pass qid. Pipelines and cross-validation pass it on only after "
                "sklearn.set_config(enable_metadata_routing=True); a column 'qid' in a data frame needs no routing"
            )
        scores = self._scores_of(X, qid)
        weights = checks.check_weights(sample_weight, len(scores))
        if self._skips_unscored:
            y, scores, qid, weights = _scored(y, scores, qid, weights)
        truth = checks.check_numbers("y", y, len(scores), flat=False)
        if truth.size != scores.size:
            raise ValueError(f"y has shape {truth.shape}, predictions have {scores.shape}")
        queries = checks.check_queries(qid, len(scores))
        warn_about_split_queries(vars(self).get("_trained_queries"), queries, index)
        metric = get_metric(vars(self).get("scoring_", self.scoring))
        m = len(truth)
        columns = list(zip(truth.reshape(m, -1).T, scores.reshape(m, -1).T, strict=True))
        if weights is None:
            return float(np.mean([metric(*column, queries) for column in columns]))
        of_query = queries.sum(weights) / queries.sizes
        return float(np.mean([_weighted(metric.per_query(*column, queries), of_query) for column in columns]))

    def _scores_of(self, X: MatrixLike, qid: Ids) -> np.ndarray:
        """The scores of rows; only some rankers need their query ids."""
        return self.predict(X)

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        """Run a fit: report its progress if `verbose`, and leave the model unchanged if it raises an error."""
        before = dict(vars(self))
        try:
            with reporting(self.verbose):
                yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _store(self, *results: Any) -> Self:
        """Store the results of a fit as attributes of this model.

        The field `alpha` of a result becomes `alpha_`. A field left at its default None is not stored, and the
        attribute of an earlier fit is removed.
        """
        for result in results:
            for field in fields(result):
                value = getattr(result, field.name)
                if value is None and field.default is None:
                    self.__dict__.pop(f"{field.name}_", None)
                else:
                    setattr(self, f"{field.name}_", value)
        return self

    def _rows(self, X: Matrix, *, reset: bool = False, at_least: int = 1) -> Any:
        """Checked rows of numbers; with `reset`, stores the number and names of their columns on the model."""
        checks.check_features(X)
        if takes_objects(self, X):
            return items_of(self, X, reset=reset, at_least=at_least)
        types: dict[str, Any] = {"accept_sparse": sparse_formats(self), "dtype": [np.float64, np.float32]}
        try:
            with _without_name_warning(self, reset):
                return validate_data(self, X, **types, ensure_min_samples=at_least, reset=reset)
        except (ValueError, TypeError) as error:
            raise checks.unreadable(error, X) from None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags


@contextmanager
def _without_name_warning(model: BaseEstimator, reset: bool) -> Iterator[None]:
    """Suppress the warning about missing column names for models of the command line, whose names come from a file."""
    with warnings.catch_warnings() if not reset and hasattr(model, "reading_") else nullcontext():
        if not reset and hasattr(model, "reading_"):
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def sparse_formats(model: BaseEstimator) -> str | bool:
    """The sparse formats that a ranker accepts, or False: none if X is a kernel matrix."""
    return False if model.__sklearn_tags__().input_tags.pairwise else "csr"


def takes_objects(model: BaseEstimator, X: Matrix) -> bool:
    """True if X holds objects instead of rows of numbers, and the kernels of the model compare objects."""
    kernels = [view.kernel for view in model.views] if isinstance(vars(model).get("views"), list) else []
    kernels = kernels or [getattr(model, "kernel", None)]
    return any(compares_objects(kernel, X) for kernel in kernels if kernel is not None)


def as_items(X: Any) -> Items:
    """A list, array or column of objects, which can be indexed like rows."""
    if isinstance(X, Items):
        return X
    if getattr(X, "ndim", 1) != 1 or isinstance(X, str) or not hasattr(X, "__len__"):
        raise ValueError(f"a kernel on objects needs a list of them, got {type(X).__name__}")
    return Items(X)


def items_of(model: BaseEstimator, X: Matrix, *, reset: bool, at_least: int = 1) -> Items:
    """Objects that can be indexed like rows; `reset` is True when fitting."""
    items = as_items(X)
    if len(items) < at_least:
        raise ValueError(f"found {len(items)} objects, but at least {at_least} are needed")
    if reset:
        model.n_features_in_ = 1
        vars(model).pop("feature_names_in_", None)
    return items


def _scored(y: ArrayLike, *rest: Any) -> list[Any]:
    """y and other arrays by row (or None), restricted to rows where y is not NaN."""
    y = np.asarray(as_column(y), dtype=np.float64)
    keep = ~np.isnan(y.reshape(len(y), -1)).any(axis=1)
    if keep.all() or not keep.any():
        return [y, *rest]
    return [y[keep], *(None if values is None else np.asarray(values)[keep] for values in rest)]


def _weighted(values: np.ndarray, weights: np.ndarray) -> float:
    """The weighted mean over the queries where a metric is defined."""
    defined = ~np.isnan(values)
    if not weights[defined].any():
        raise ValueError(
            f"the metric is not defined for any of the {int((weights > 0).sum())} queries with weight (one row, or "
            "all y equal): give other queries some weight"
        )
    return float(np.average(values[defined], weights=weights[defined]))


def warn_about_split_queries(trained: tuple[np.ndarray, Any] | None, queries: Queries, index: Any) -> None:
    """Warn if a frame holds other rows of training queries, as happens with KFold on one frame.

    `trained` has the query ids and the row labels of the training frame. Frames that share row labels come from
    different files, whose query ids may be equal by chance.
    """
    if trained is None or index is None or len(trained[0]) == 1 or index.isin(trained[1]).any():
        return
    split = len(set(trained[0].tolist()).intersection(queries.labels.tolist()))
    if split > SPLIT * len(queries):
        warn(
            f"other rows of {split} of the {len(queries)} scored queries were in the training data: if KFold split "
            "them, the score is too good; GroupKFold with groups=qid keeps queries whole"
        )
