"""Labels, weights, pairs and scores of rows."""

from __future__ import annotations

import numpy as np

from ..core.queries import Queries
from ..system.frames import as_column
from ..system.types import ArrayLike
from .rows import check_content

LARGEST = 1e300  # of all weights together, so that there is room for the squares they multiply


def check_targets(y: np.ndarray, *, tied_pairs: object) -> np.ndarray:
    """(m, t) float targets."""
    y = np.asarray(y, dtype=np.float64)
    if y.ndim == 1:
        y = y[:, None]
    if y.shape[1] > 1 and tied_pairs is not True:
        raise ValueError(
            f"y has {y.shape[1]} columns, which share one factorisation only when tied pairs are included: "
            "set tied_pairs=True, or fit each column separately"
        )
    return y


def check_numbers(name: str, values: ArrayLike, m: int, *, unit: str = "row", flat: bool = True) -> np.ndarray:
    """One finite number per row (or, unless `flat`, several)."""
    check_content(**{name: values})
    array = np.asarray(as_column(values), dtype=np.float64)
    if array.ndim == 0 or len(array) != m or (flat and array.ndim != 1):
        raise ValueError(f"{name} must hold one number per {unit}: got shape {array.shape} for {m} {unit}s")
    bad = ~np.isfinite(array.reshape(m, -1)).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"{name} must be finite: {unit} {i} has {array[i]} ({bad.sum()} such {unit}s)")
    return array


def check_weights(
    values: ArrayLike | None, m: int, *, name: str = "sample_weight", unit: str = "row"
) -> np.ndarray | None:
    """(m,) non-negative weights; None where all are equal to one."""
    if values is None:
        return None
    check_content(**{name: values})
    array = np.asarray(as_column(values), dtype=np.float64)
    weights = check_numbers(name, np.full(m, array) if array.ndim == 0 else array, m, unit=unit)
    if np.any(weights < 0):
        i = int(np.argmax(weights < 0))
        raise ValueError(f"{name} must not be negative: {unit} {i} has {weights[i]}")
    if not weights.any():
        raise ValueError(f"{name} is zero for every {unit}: nothing is left to learn from")
    with np.errstate(over="ignore"):
        total = np.sum(weights)
    if not total < LARGEST:
        raise ValueError(f"{name} is too large to be added up, up to {weights.max():.3g}: divide it by a constant")
    return None if np.all(weights == 1) else weights


def check_query_mass(queries: Queries, weights: np.ndarray | None, weighting: str) -> None:
    """Weights count copies, so a query needs more than one copy in total to have a pair to divide by."""
    if weights is not None:
        check_copies(queries.labels, queries.sizes, queries.sum(weights), weighting)


def check_copies(labels: np.ndarray, sizes: np.ndarray, copies: np.ndarray, weighting: str) -> None:
    """The same, given the number of rows and of copies in each query."""
    thin = (sizes > 1) & (copies <= 1)
    if weighting == "queries" and thin.any():
        q = int(np.argmax(thin))
        raise ValueError(
            f"sample_weight counts copies of a row, and the rows of query {labels[q]!r} sum to "
            f"{copies[q]:.3g}, less than one pair: multiply all weights by a constant, "
            'or use weighting="items"'
        )


def check_comparable(y: np.ndarray, queries: Queries) -> None:
    """Some query must have two items with different labels."""
    if labels_differ(y, queries):
        return
    lone = int((queries.sizes == 1).sum())
    raise ValueError(
        f"no comparable pair: none of the {len(queries)} queries ({lone} with a single row) has two rows with "
        f"different y among {queries.n_rows} samples; is qid really the query id, not a row or document id?"
    )


def check_pairs(pairs: object, m: int) -> np.ndarray:
    """(p, 2) row numbers."""
    check_content(pairs=pairs)
    array = np.asarray(pairs)
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise ValueError(f"pairs must be a (p, 2) array of row numbers (preferred, other), got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise ValueError(f"pairs must hold row numbers (integers), got dtype {array.dtype}")
    bad = np.any((array < 0) | (array >= m), axis=1)
    if bad.any():
        p = int(np.argmax(bad))
        raise ValueError(f"pair {p} is {tuple(array[p].tolist())}, but X has rows 0 to {m - 1}")
    return array


def check_scores(y: np.ndarray, m: int, *, some: bool = True) -> np.ndarray:
    """(m,) or (m, t) finite numbers, NaN where a row is unscored."""
    if len(y) != m:
        raise ValueError(f"y must hold one number per row, NaN where unscored: got {len(y)} for {m} rows")
    missing = np.isnan(y.reshape(m, -1))
    partly = missing.any(axis=1) & ~missing.all(axis=1)
    if partly.any():
        raise ValueError(
            f"row {int(np.argmax(partly))} is scored in only some columns of y ({partly.sum()} such rows): score all "
            "or none, or fit each column separately"
        )
    infinite = np.isinf(y).reshape(m, -1).any(axis=1)
    if infinite.any():
        raise ValueError(
            f"y must not be infinite: row {int(np.argmax(infinite))} is ({infinite.sum()} such rows); "
            "mark unscored rows with NaN"
        )
    if some and np.isnan(y).all():
        raise ValueError(f"none of the {m} rows is scored, y is NaN for all: score some")
    return y


def check_held_out(scores: np.ndarray, scoring: str) -> None:
    """Held-out scores must be numbers: NaN would choose a setting at random."""
    bad = np.isnan(scores)
    if bad.any():
        raise ValueError(
            f"scoring={scoring!r} returned NaN for {int(bad.sum())} of {len(bad)} settings, so none can be chosen: "
            "return a number for every array of scores, or fix the setting (alpha=1.0)"
        )


def labels_differ(y: np.ndarray, queries: Queries) -> bool:
    """True if some query has two different labels."""
    some_row = np.empty(len(queries), dtype=np.intp)
    some_row[queries.codes] = np.arange(queries.n_rows)
    return bool(np.any(y != y[some_row[queries.codes]]))
