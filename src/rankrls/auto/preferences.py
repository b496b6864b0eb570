"""Explicit preferences: a pair of rows is a query of two documents, where the preferred one has the larger label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.pairs import PairPreferences
from ..core.queries import Queries
from ..problems.choice import LARGEST_COMPONENT
from .crossfit import FEW
from .fitting import AutoFit, FitPlan, fit_rows, learned_columns, whole_queries
from .rows import AutoRows


def fit_preferences(
    X: np.ndarray,
    queries: Queries,
    pairs: np.ndarray,
    margins: np.ndarray,
    weights: np.ndarray | None,
    names: Sequence[str],
    plan: FitPlan,
) -> AutoFit:
    """Fit to pairs (p, 2) of rows; ranks within the query refer to `queries`."""
    if len(pairs) < 2 * FEW:
        raise ValueError(
            "candidates are judged on held-out pairs, and pairs of different items are too few: pass at least "
            f"{2 * FEW} (got {len(pairs)}), or use RankRLS().fit_pairs"
        )
    columns, N = learned_columns(X, queries, plan)
    y = np.column_stack([np.maximum(margins, 0), np.maximum(-margins, 0)]).ravel()
    twice = None if weights is None else weights.repeat(2)
    rows = AutoRows(N[pairs.ravel()], y, Queries.of(np.repeat(np.arange(len(pairs)), 2)), twice)
    unit = units(queries, pairs, len(X)).repeat(2)
    some = whole_queries(rows, plan, plan.effort.sample(len(rows)))
    sample, unit = (rows, unit) if some is None else (rows.part(some), unit[some])
    plan = replace(plan, scoring="pairwise_accuracy")
    found = fit_rows(rows, sample, columns, names, plan, unit)
    return replace(found, n_queries=0, n_rows=len(X), cv_predictions=None)


def units(queries: Queries, pairs: np.ndarray, m: int) -> np.ndarray:
    """(p,) the units that folds are made of: queries, else components of the graph of pairs, else pairs."""
    of_query = queries.codes[pairs[:, 0]]
    if len(np.unique(of_query)) >= 2 * FEW:
        return of_query
    parts = PairPreferences(pairs, m).components()
    if len(parts) >= 2 * FEW and max(map(len, parts)) <= LARGEST_COMPONENT * len(pairs):
        found = np.empty(len(pairs), dtype=np.intp)
        for number, members in enumerate(parts):
            found[members] = number
        return found
    return np.arange(len(pairs))
