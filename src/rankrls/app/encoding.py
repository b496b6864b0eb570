"""Tables with text, dates and missing values as numbers: by the encoder of a model, or by one of the session's own.

An encoder of the session never looks at labels, because labels change while one works. So text counts only if it has
few levels, a column for each; other text is left aside.
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
    """Whether a column that is not numbers can become some: dates, truth values, or text of few levels."""
    column = read_column(PlainTable({"": values}), 0)
    if column.kind != TEXT:
        return True
    return 2 <= len(set(column.values.tolist()) - {None}) <= MOST_LEVELS


def encoded(
    columns: Mapping[str, np.ndarray], qid: Ids, encoder: TableEncoder | None = None
) -> tuple[np.ndarray, TableEncoder]:
    """The columns as numbers, and what encodes them: the encoder given, or a new one."""
    table = PlainTable(dict(columns))
    if encoder is None:
        encoder = TableEncoder(max_categories=MOST_LEVELS)
        return np.asarray(encoder.fit_transform(table)), encoder
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # it has: those of the encoder
        return np.asarray(encoder.transform(table, qid=qid if encoder.needs_queries else None)), encoder


def without_encoder(model: BaseEstimator | None) -> tuple[TableEncoder | None, BaseEstimator | None]:
    """The encoder at the start of a pipeline, if there is one, and the model of encoded columns."""
    if getattr(ranker_of(model), "encoder_", None) is not None:
        raise ValueError(
            f"this {type(ranker_of(model)).__name__} was trained on a table with text, which only it can encode: open "
            "the data without it, or a model of `rankrls train`"
        )
    steps = scalers_of(model)
    if not steps or not isinstance(steps[0], TableEncoder):
        return None, model
    assert isinstance(model, Pipeline)
    rest = model.steps[1:]
    return steps[0], Pipeline(rest) if len(rest) > 1 else rest[0][1]
