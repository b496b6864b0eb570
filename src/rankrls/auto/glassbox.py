"""Explanations of an AutoRanker: effects of columns and pairs, and contributions to the difference of two items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from ..tables.columns import ColumnMaps
from .additive import deviations
from .candidates import CandidateFeatures
from .rows import Scores

GRID = np.linspace(-2.5, 2.5, 41)
PAIR_POINTS = 20  # grid points for each column of a pair
STEPS = 32  # points on the line between two items


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


def feature_effects(made: CandidateFeatures, coef: np.ndarray, maps: ColumnMaps, names: Sequence[str]) -> list[dict]:
    """The curve of every column of scores in an additive model, largest spread first."""
    deviation: dict[int, float] = {}
    for columns, value in zip(made.map.members, deviations(made.map, made.sums, coef), strict=True):
        if len(columns) == 1:
            deviation[columns[0]] = float(np.hypot(deviation.get(columns[0], 0.0), value))
    N = np.repeat(GRID.astype(np.float32)[:, None], len(maps.source_), axis=1)
    curves: dict[int, np.ndarray] = {}
    for columns, curve in zip(made.map.members, made.map.outputs(N, coef).T.astype(float), strict=True):
        if len(columns) == 1:
            curves[columns[0]] = curves.get(columns[0], 0.0) + curve
    strongest = sorted(deviation.items(), key=lambda item: -item[1])
    return [_effect(maps, names, i, value, curves[i]) for i, value in strongest if value > 0]


def linear_effects(features: Scores, coef: np.ndarray, maps: ColumnMaps, names: Sequence[str]) -> list[dict]:
    """The same for a linear model."""
    weights = features.weights(coef)
    order = np.argsort(-np.abs(weights), kind="stable")
    return [_effect(maps, names, features.start + int(i), float(abs(weights[i])), weights[i] * GRID) for i in order]


def _effect(maps: ColumnMaps, names: Sequence[str], i: int, deviation: float, effect: np.ndarray) -> dict:
    n = len(maps.columns_)
    return {
        "column": str(names[i]),
        "source": int(maps.source_[i]),
        "relative": bool(n <= i < 2 * n and maps.relative),
        "spread": deviation,
        "values": _values(maps, i),
        "effect": effect - effect.mean(),
    }


def _values(maps: ColumnMaps, i: int) -> np.ndarray:
    """The values of a column on the grid of scores: values of X, ranks within the query (0 to 1), or scores."""
    n, scale = len(maps.columns_), maps.scale_[i]
    if i < n:
        return np.interp(GRID * scale, maps.scores_[i], maps.values_[i])
    if i >= maps.n_scores_:
        return maps.mean_[i - maps.n_scores_] + GRID * scale
    return ndtr(GRID * scale) if maps.relative and i < 2 * n else GRID.copy()


def pair_effect(part: Any, pair: tuple[int, int], maps: ColumnMaps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of the first column (g,), of the second (g,), and the effect of the pair at each (g, g)."""
    i, j = pair
    grid = GRID[:: len(GRID) // PAIR_POINTS]
    N = np.zeros((len(grid) ** 2, len(maps.source_)), np.float32)
    N[:, i], N[:, j] = np.repeat(grid, len(grid)), np.tile(grid, len(grid))
    own = np.array([set(columns) == {i, j} and len(columns) == 2 for columns in part.map.members])
    effect = part.map.outputs(N, part.coef)[:, own].sum(axis=1).astype(float)
    step = slice(None, None, len(GRID) // PAIR_POINTS)
    return _values(maps, i)[step], _values(maps, j)[step], effect.reshape(len(grid), len(grid))


def contributions(predict: Callable, N: np.ndarray, source: np.ndarray, n: int) -> np.ndarray:
    """(n,) what each source column adds to the difference of the scores of two rows N (2, k).

    The second row moves to the first along a straight line of scores, and the change of the score in each step is
    shared among the columns.
    """
    a, b = N[0].astype(np.float64), N[1].astype(np.float64)
    middle = b + ((np.arange(STEPS) + 0.5) / STEPS)[:, None] * (a - b)
    part = np.zeros(n)
    for column in np.unique(source[a != b]):
        half = np.where(source == column, (a - b) / (2 * STEPS), 0.0)
        both = predict(np.concatenate([middle + half, middle - half]))
        part[column] = (both[:STEPS] - both[STEPS:]).sum()
    high, low = predict(N.astype(np.float64))
    rest = float(high - low) - part.sum()  # shared in proportion to the parts
    return part + rest * np.abs(part) / max(np.abs(part).sum(), 1e-30)
