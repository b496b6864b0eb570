"""What `cv` means: the rows that are held out together, and the groups in which they are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold

from ... import checks
from ...core.queries import Queries
from ...problems import choice
from ...problems.base import HeldOutFold
from .training import Training

Folds = tuple[list[HeldOutFold] | None, Queries]  # None leaves out each query in turn


def part_of_query(rows: np.ndarray) -> HeldOutFold:
    """Items held out of a single query, which changes the remaining pairs."""
    return HeldOutFold(rows, whole=False)


def folds_of(
    cv: object, data: Training, *, item_fold: Callable[[np.ndarray], HeldOutFold] = part_of_query, refits: bool = False
) -> Folds:
    """The folds of whole queries, or of the items of a single query.

    With `refits` every fold costs a fit, so leave-query-out becomes a few folds.
    """
    if len(data.queries) == 1:
        folds = [item_fold(rows) for rows in _item_rows(cv, data)]
        return folds, choice.fold_groups(folds, data.queries.n_rows)
    if isinstance(cv, str):  # leave-query-out
        if not refits:
            return None, data.queries
        cv = min(choice.ITERATIVE_FOLDS, len(data.queries))
    if isinstance(cv, (int, np.integer)):
        _check_n_folds(int(cv), len(data.queries), "queries")
        codes = data.queries.codes
        tests = [test for _, test in GroupKFold(cv).split(codes, groups=codes)]
    else:
        tests = _given(cv, data)
    return choice.query_folds(tests, data.queries), data.queries


def _item_rows(cv: object, data: Training) -> Sequence[np.ndarray]:
    m = data.queries.n_rows
    if isinstance(cv, str):
        checks.check_choice("cv", cv, ("leave-query-out",))
        cv = max(2, min(choice.ITEM_FOLDS, m // 2))
    if isinstance(cv, (int, np.integer)):
        _check_n_folds(int(cv), m // 2, "pairs of items")
        return choice.dealt_folds(data.y[:, 0], int(cv))
    return _given(cv, data)


def _given(cv: Any, data: Training) -> list[np.ndarray]:
    """The test rows of each fold from a splitter or an iterable of splits, as numbers among the kept rows."""
    if hasattr(cv, "split"):
        groups = data.queries.labels[data.queries.codes]
        if data.kept is not None:  # rows of weight zero become a group of their own
            groups = np.full(data.n_given, -1)
            groups[data.kept] = data.queries.codes
        no_rows = np.zeros((data.n_given, 1))
        cv = cv.split(no_rows, no_rows[:, 0], groups=groups if len(data.queries) > 1 else None)
    try:
        tests = [np.arange(data.n_given)[test] for _, test in cv]
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            'cv must be "leave-query-out", a number of folds, a scikit-learn group splitter or an iterable '
            f"of (train, test) row numbers: {error}"
        ) from None
    if data.kept is not None:
        position = np.full(data.n_given, -1)
        position[data.kept] = np.arange(len(data.kept))
        tests = [rows[rows >= 0] for rows in (position[test] for test in tests)]
    tests = [rows for rows in tests if len(rows)]
    if not tests:
        raise ValueError(
            "cv gives no fold with a row to hold out: pass (train, test) splits with test rows, a number of folds, or "
            '"leave-query-out"'
        )
    return tests


def _check_n_folds(cv: int, most: int, what: str) -> None:
    if not 2 <= cv <= most:
        raise ValueError(
            f'cv={cv} folds cannot be made from {most} {what}: choose between 2 and {most}, or leave nothing to "auto"'
        )
