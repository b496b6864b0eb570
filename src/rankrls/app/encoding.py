"""Encode tables with text, dates and missing values, by the encoder of a model or by one of the session.

The encoder of a session never uses labels, because labels change during the session. So text is used only if it has few
levels, with a column for each; other text is ignored.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..estimators.pipelines import ranker_of, scalers_of
from ..system.types import Ids
from ..tables import PlainTable, TableEncoder
from ..tables.reading import TEXT, read_column

MOST_LEVELS = 20


def is_encodable(values: np.ndarray) -> bool:
    """True if a column that does not hold numbers can be encoded: dates, booleans, or text with few levels."""
    column = read_column(PlainTable({"": values}), 0)
    if column.kind != TEXT:
        return True
    return 2 <= len(set(column.values.tolist()) - {None}) <= MOST_LEVELS


def encoded(
    columns: Mapping[str, np.ndarray], qid: Ids, encoder: TableEncoder | None = None
) -> tuple[np.ndarray, TableEncoder]:
    """The columns as numbers, and their encoder: the one given, or a new one."""
    table = PlainTable(dict(columns))
    if encoder is None:
        encoder = TableEncoder(max_categories=MOST_LEVELS)
        return np.asarray(encoder.fit_transform(table)), encoder
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="X does not have valid feature names"
        )  # they are those of the encoder
        return np.asarray(encoder.transform(table, qid=qid if encoder.needs_queries else None)), encoder


def without_encoder(model: BaseEstimator | None) -> tuple[TableEncoder | None, BaseEstimator | None]:
    """The encoder at the start of a pipeline, if there is one, and the model on encoded columns."""
    if getattr(ranker_of(model), "encoder_", None) is not None:
        raise ValueError(
            f"this {type(ranker_of(model)).__name__} was trained on a table with text, which only it can encode: open "
            "the data without it, or with a model of `rankrls train`"
        )
    steps = scalers_of(model)
    if not steps or not isinstance(steps[0], TableEncoder):
        return None, model
    assert isinstance(model, Pipeline)
    rest = model.steps[1:]
    return steps[0], Pipeline(rest) if len(rest) > 1 else rest[0][1]
