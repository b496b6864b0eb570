"""Explanations of why one item ranks above another, by column, for rankers and pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..core.contributions import contributions, known
from ..core.views import FittedView
from ..system.types import ArrayLike, Matrix
from .pipelines import needs_queries, ranker_of, scaled, scalers_of


def explain(model: BaseEstimator, x_a: Any, x_b: Any) -> Any:
    """Explain why a ranks above b: what each column adds to score(a) - score(b).

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted ranker, or a pipeline that ends in one. Steps before it may transform columns, but each row separately.
    x_a, x_b : array-like of shape (n_features,), rows of a data frame, or data frames of as many rows
        Two items as `model.predict` takes them, or several, row by row.

    Returns
    -------
    contributions : Series, DataFrame or ndarray
        They sum to the difference of the scores. A Series by column if the items are rows of a pandas frame, a
        DataFrame if they are frames, else an array.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankrls import RankRLS, explain
    >>> X = pd.DataFrame({"bm25": [1.0, 0.0, 3.0], "clicks": [50.0, 40.0, 40.0]})
    >>> model = make_pipeline(StandardScaler(), RankRLS(alpha=1e-6)).fit(X, [1, 0, 3])
    >>> explain(model, X.iloc[2], X.iloc[0]).round(2) + 0.0
    bm25      2.0
    clicks    0.0
    dtype: float64
    """
    check_is_fitted(model)
    if hasattr(x_a, "iloc") and getattr(x_a, "ndim", 1) == 2:
        if len(x_a) != len(x_b):
            raise ValueError(
                f"items are explained row by row, but there are {len(x_a)} and {len(x_b)} rows: pass as many of each"
            )
        rows = [explain(model, x_a.iloc[i], x_b.iloc[i]) for i in range(len(x_a))]
        return type(x_a)(rows, index=x_a.index)
    ranker, before = ranker_of(model), scalers_of(model)
    if before and needs_queries(model):
        raise ValueError(
            "a step scales within queries, so the score of an item depends on others: explain the ranker itself"
        )
    a, b = (as_rows(model, x) for x in (x_a, x_b))
    found = ranker.explain(*(_flat(scaled(model, x)) for x in (a, b))) if before else ranker.explain(x_a, x_b)
    names = _names(model, before)
    return named(np.asarray(found), x_a, names)


def named(values: np.ndarray, like: Any, names: Sequence[str] | None) -> Any:
    """The values as a Series by name if `like` is a Series, else unchanged."""
    if names is None or not hasattr(like, "reindex") or getattr(like, "ndim", 0) != 1:
        return values
    return type(like)(values, index=list(names))


def in_order(model: BaseEstimator, x: Any) -> Any:
    """A row of a data frame with its values in the order of the model's features; anything else unchanged."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not hasattr(x, "reindex") or getattr(x, "ndim", 0) != 1:
        return x
    missing = [name for name in names if name not in x.index]
    if missing:
        more = f" and {len(missing) - 1} more features" if len(missing) > 1 else ""
        raise ValueError(f"the item has no value for {missing[0]!r}{more}")
    return x.reindex(names)


def of_views(model: Any, shares: np.ndarray, x_a: ArrayLike, x_b: ArrayLike) -> Any:
    """What each feature adds to the difference of two scores, where scores are weighted sums over views."""
    a, b = (np.asarray(in_order(model, x), dtype=float).ravel() for x in (x_a, x_b))
    for row in (a, b):
        if len(row) != model.n_features_in_:
            raise ValueError(f"an item has {model.n_features_in_} features, got {len(row)}")
    total = np.zeros(model.n_features_in_)
    for view, coef, share in zip(model.views_, model.view_coefs_, shares, strict=True):
        if coef.ndim > 1:
            raise ValueError(f"the model has {coef.shape[1]} targets: fit one of them to explain it")
        total[view.columns] += share * _of_view(view, np.asarray(coef, float), a[view.columns], b[view.columns])
    return named(total, x_a, getattr(model, "feature_names_in_", None))


def _of_view(view: FittedView, coef: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if view.kernel is None:
        return coef * (a - b)
    if not known(view.kernel):
        raise ValueError(
            f"the gradient of {type(view.kernel).__name__} kernels is not implemented: linear views and views with the "
            "kernels of rankrls.kernels can be explained feature by feature"
        )
    points: Any = view.points.toarray() if hasattr(view.points, "toarray") else view.points
    return contributions(view.kernel, points, coef, a, b)


def as_rows(model: BaseEstimator, x: object) -> Any:
    """An item as a table of one row, with names if it has any."""
    if not hasattr(x, "to_frame"):
        return np.asarray(x, dtype=float).reshape(1, -1)
    row = x.to_frame().T
    names = getattr(model, "feature_names_in_", None)
    row = row if names is None else row[list(names)]
    return row.infer_objects() if hasattr(row, "infer_objects") else row


def _flat(Z: Matrix) -> np.ndarray:
    return np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=float).ravel()


def _names(model: BaseEstimator, before: list[Any]) -> Any:
    """The names of the columns that the ranker sees; None if unknown."""
    if before and hasattr(model[:-1], "get_feature_names_out"):
        try:
            return list(model[:-1].get_feature_names_out())
        except (ValueError, AttributeError):  # a step without names
            return None
    return getattr(model, "feature_names_in_", None)
