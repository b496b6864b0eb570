"""Scores of a partition by a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from ..estimators.pipelines import needs_queries, predicted
from ..system.parallel import one_thread_each
from .partitions import features_among

if TYPE_CHECKING:
    import pandas as pd


def check_model(model: BaseEstimator, row: np.ndarray) -> tuple[tuple[int, ...], np.dtype]:
    """The shape of a model's output per row, and its precision; raises errors here rather than on a worker."""
    found = np.asarray(model.predict(row))
    if found.shape[:1] != (len(row),):
        raise ValueError(
            f"{type(model).__name__} returns an array of shape {found.shape} for {len(row)} rows: on a cluster a model "
            "must score every row by itself"
        )
    return found.shape[1:], found.dtype


def model_features(model: BaseEstimator, have: list[Any], features: Sequence[str] | None) -> list[Any]:
    """The columns a model takes: those given, else those it knows by name, else all."""
    known = getattr(model, "feature_names_in_", None)
    if features is None:
        features = have if known is None else list(known)
    return features_among(have, features)


def check_queries(model: BaseEstimator, qid: str | None, have: list[Any]) -> str | None:
    """The column of query ids if the scores of a model depend on the other rows of the query, else None."""
    if not needs_queries(model):
        return None
    if qid is None:
        raise ValueError(
            "the scores of this model depend on the other rows of the query: name the column of query ids with qid=, "
            "or fit with relative=False"
        )
    if qid not in have:
        raise ValueError(f"the frame has no column {qid!r}, which qid names; it has {', '.join(map(str, have[:20]))}")
    return qid


def rows_for(model: BaseEstimator, frame: pd.DataFrame) -> Any:
    """Rows of a pandas frame as the model expects them: with column names only if it knows names."""
    return frame if hasattr(model, "feature_names_in_") else frame.to_numpy()


def score_array(X: np.ndarray, model: BaseEstimator) -> np.ndarray:
    """The scores of some rows."""
    if not len(X):
        shape, dtype = check_model(model, np.zeros((1, X.shape[1]), dtype=X.dtype))
        return np.empty((0, *shape), dtype=dtype)
    with one_thread_each:
        return np.asarray(model.predict(X))


def score_frame(frame: pd.DataFrame, model: BaseEstimator, qid: str | None = None) -> Any:
    """The scores of a pandas frame, as a column with its index; `qid` names the column of query ids, if any."""
    import pandas as pd

    scores: Any = np.empty(0)
    if len(frame):
        rows = frame if qid is None else frame.drop(columns=[qid])
        with one_thread_each:
            scores = predicted(model, rows_for(model, rows), None if qid is None else frame[qid].to_numpy())
    if scores.ndim > 1:
        raise ValueError(f"the model returns {scores.shape[1]} scores per row, but a column holds one")
    return pd.Series(scores, index=frame.index, name="score")


def side_by_side(frame: pd.DataFrame, names: list[str]) -> Any:
    """A pandas frame with the given names; each entry of an array becomes a column."""
    import pandas as pd

    parts = []
    for (_, column), name in zip(frame.items(), names, strict=True):
        if column.dtype == object and len(column) and isinstance(column.iloc[0], (np.ndarray, list)):
            values = np.stack([np.asarray(entry) for entry in column])
            parts.append(pd.DataFrame(values, index=frame.index).add_prefix(f"{name}_"))
        else:
            parts.append(column.rename(name))
    return pd.concat(parts, axis=1)
