"""Tables of objects as numbers: ids taken off, text and dates encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from ...relations.names import Ids
from ...system.frames import as_frame
from ...system.frames import names as frame_names
from ...system.warnings import warn
from ...tables import TableEncoder
from ...tables.learning import ManyLevelsError

MOST_LEVELS = 200  # a text column may have this many different values, each of which becomes a feature


def without_ids(objects: Any, *, table: bool = False) -> Any:
    """Rows without their ids: an array, or with `table` a frame, for an encoder."""
    if isinstance(objects, Ids):
        return sparse.eye_array(len(objects), format="csr")
    objects = as_frame(objects)
    if table and hasattr(objects, "iloc"):
        return by_row(objects)
    return objects if objects is None or sparse.issparse(objects) else np.asarray(objects)


def by_row(table: Any) -> Any:
    """A frame whose rows are identified by number: its index has a name, so that no column is taken for ids."""
    return table.reset_index(drop=True).rename_axis("row")


def encoder_of(encoder: BaseEstimator) -> Any:
    """An unfitted transformer, or None; "auto" handles tables with text and missing values."""
    if encoder is None or not isinstance(encoder, str):
        return None if encoder is None else clone(encoder)
    return TableEncoder(numbers="standard", max_categories=MOST_LEVELS)


def as_numbers(objects: Any, encoder: Any, name: str) -> Any:
    """A table as numbers; an error if there is text and no encoder."""
    if encoder is not None:
        return _encoded(objects, encoder, name)
    for column in frame_names(objects):
        values = np.asarray(objects[column]) if hasattr(objects, "iloc") else None
        if values is not None and values.dtype.kind == "O" and any(isinstance(v, str) for v in values[:100]):
            raise ValueError(
                f"column {column!r} of {name} holds text: leave it out, make it the index if it names the objects, or "
                'set encoder="auto"'
            )
    return objects


def _encoded(objects: Any, encoder: Any, name: str) -> Any:
    """A table encoded; there are no labels, so columns with too many levels are left out with a warning."""
    try:
        return encoder.fit_transform(objects)
    except ManyLevelsError as error:
        if not isinstance(encoder, TableEncoder):
            raise
        for column, n in error.levels.items():
            warn(
                f"column {column!r} of {name} has {n:,} different texts, more than {error.most}, so it is left out: "
                f"group them, or pass encoder=TableEncoder(max_categories={n})"
            )
        rest = [column for column in encoder.columns or frame_names(objects) if column not in error.levels]
        return encoder.set_params(columns=rest).fit_transform(objects)
