"""What a model has found: effects of single columns, pairs, and the parts of a difference between two items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from ..tables.columns import ColumnMaps
from .additive import deviations
from .candidates import CandidateFeatures

GRID = np.linspace(-2.5, 2.5, 41)
STEPS = 32  # of the line between two items


def interactions(
    made: CandidateFeatures, coef: np.ndarray, lifts: dict[tuple[int, ...], float], names: Sequence[str]
) -> list[dict]:
    """The pairs of an additive model, largest spread first."""
    total: dict[tuple[int, ...], float] = {}
    for columns, deviation in zip(made.map.members, deviations(made.map, made.sums, coef), strict=True):
        if len(columns) == 2 and deviation > 0:
            total[columns] = float(np.hypot(total.get(columns, 0.0), deviation))
    found = [
        {"columns": tuple(str(names[i]) for i in pair), "strength": lifts.get(pair, float("nan")), "spread": deviation}
        for pair, deviation in total.items()
    ]
    return sorted(found, key=lambda entry: -entry["spread"])


def feature_effects(
    made: CandidateFeatures, coef: np.ndarray, maps: ColumnMaps, names: Sequence[str] | None
) -> list[dict]:
    """The curve of every column of scores in an additive model, largest spread first."""
    deviation: dict[int, float] = {}
    for columns, value in zip(made.map.members, deviations(made.map, made.sums, coef), strict=True):
        if len(columns) == 1:
            deviation[columns[0]] = float(np.hypot(deviation.get(columns[0], 0.0), value))
    found = []
    for i, value in sorted(deviation.items(), key=lambda item: -item[1]):
        if value <= 0:
            continue
        N = np.zeros((len(GRID), len(maps.source_)), np.float32)
        N[:, i] = GRID
        own = np.array([columns == (i,) for columns in made.map.members])
        effect = made.map.outputs(N, coef)[:, own].sum(axis=1).astype(float)
        found.append(_effect(maps, names, i, value, effect))
    return found


def linear_effects(coef: np.ndarray, maps: ColumnMaps, names: Sequence[str] | None) -> list[dict]:
    """The same for a linear model of the scores."""
    order = np.argsort(-np.abs(coef), kind="stable")
    return [_effect(maps, names, int(i), float(abs(coef[i])), coef[i] * GRID) for i in order]


def _effect(maps: ColumnMaps, names: Any, i: int, deviation: float, effect: np.ndarray) -> dict:
    n = len(maps.columns_)
    entry = {"column": str(names[i]), "relative": bool(n <= i < 2 * n and maps.relative), "spread": deviation}
    return {**entry, "values": _values(maps, i), "effect": effect - effect.mean()}


def _values(maps: ColumnMaps, i: int) -> np.ndarray:
    """The values of a column at the grid of scores: values of X, ranks within the query (0 to 1), or the scores."""
    n, scale = len(maps.columns_), maps.scale_[i]
    if i < n:
        return np.interp(GRID * scale, maps.scores_[i], maps.values_[i])
    return ndtr(GRID * scale) if maps.relative and i < 2 * n else GRID.copy()


def explanation(
    predict: Callable, N: np.ndarray, pair: np.ndarray, source: np.ndarray, names: Sequence[str]
) -> dict[str, Any]:
    """What each column adds to the difference of the scores of two rows N (2, n)."""
    a, b = N[0].astype(np.float64), N[1].astype(np.float64)
    columns = np.unique(source[a != b])
    t = (np.arange(STEPS) + 0.5) / STEPS
    middle = b + t[:, None] * (a - b)
    part = np.zeros(len(columns))
    for place, column in enumerate(columns):
        half = np.where(source == column, (a - b) / (2 * STEPS), 0.0)
        both = predict(np.concatenate([middle + half, middle - half]).astype(np.float32))
        part[place] = (both[:STEPS] - both[STEPS:]).sum()
    high, low = predict(N)
    difference = float(high - low)
    rest = difference - part.sum()  # what the steps miss, by the size of the parts
    part += rest * np.abs(part) / max(np.abs(part).sum(), 1e-30)
    order = np.argsort(-np.abs(part), kind="stable")
    entries = [
        {
            "column": str(names[columns[i]]),
            "a": float(pair[0, columns[i]]),
            "b": float(pair[1, columns[i]]),
            "part": float(part[i]),
        }
        for i in order
    ]
    return {"score_a": float(high), "score_b": float(low), "difference": difference, "columns": entries}
