"""The maps of a fitted encoder, each from the values of one column to columns of numbers.

Each is a formula of comparisons, products and sums in double precision, so that an ONNX graph of the same operations
gives the same bits. Missing numbers become 0, which is the mean of every map of numbers over the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

MISSING = "missing"  # the level of rows without a value


@dataclass(frozen=True)
class Quantiles:
    """x -> y_i + slope_i (x - knot_i) for the last knot_i <= x; constant below the first knot and above the last."""

    knots: np.ndarray  # (k,) increasing
    values: np.ndarray  # (k,)
    slopes: np.ndarray  # (k,), the last one 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        x = np.minimum(np.maximum(x, self.knots[0]), self.knots[-1])
        i = np.searchsorted(self.knots, x, side="right") - 1
        return self.values[i] + self.slopes[i] * (x - self.knots[i])


@dataclass(frozen=True)
class Standard:
    """x -> (x - mean) scale."""

    mean: float
    scale: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return (x - self.mean) * self.scale


@dataclass(frozen=True)
class NumberMap:
    """A column of numbers: its scaled values, if they vary, and a marker of missing values, if training had any."""

    name: str
    curve: Quantiles | Standard | None
    indicator: bool

    @property
    def names(self) -> list[str]:
        return [self.name] * (self.curve is not None) + [f"{self.name}={MISSING}"] * self.indicator

    def __call__(self, x: np.ndarray, fold: Any = None) -> np.ndarray:
        missing = np.isnan(x)
        columns = []
        if self.curve is not None:
            columns.append(np.where(missing, 0.0, self.curve(x)))
        if self.indicator:
            columns.append(missing.astype(np.float64))
        return np.column_stack(columns)


@dataclass(frozen=True)
class LevelMap:
    """A 0/1 column for each level; all 0 for a level that training did not have."""

    name: str
    levels: np.ndarray  # (k,) strings
    missing: bool  # whether missing values are a separate level, the last one

    @property
    def names(self) -> list[str]:
        return [f"{self.name}={level}" for level in self.levels.tolist()] + [f"{self.name}={MISSING}"] * self.missing

    def __call__(self, x: np.ndarray, fold: Any = None) -> np.ndarray:
        code = codes(x, self.levels)
        known = np.flatnonzero(code < len(self.names))
        columns = np.zeros((len(x), len(self.names)))
        columns[known, code[known]] = 1.0
        return columns


@dataclass(frozen=True)
class TargetMap:
    """The mean label of each level, relative to its query, shrunk towards 0; 0 for a level training did not have.

    `held_out[f]` holds the same means without the queries of fold f, for training rows of that fold.
    """

    name: str
    levels: np.ndarray  # (k,) strings; missing values are one more level
    values: np.ndarray  # (k + 2, t), the last row for unknown levels
    held_out: np.ndarray | None = None  # (folds, k + 2, t), kept only while fitting

    @property
    def names(self) -> list[str]:
        t = self.values.shape[1]
        return [f"{self.name} (target{'' if t == 1 else f' {j + 1}'})" for j in range(t)]

    def __call__(self, x: np.ndarray, fold: np.ndarray | None = None) -> np.ndarray:
        code = codes(x, self.levels)
        return self.values[code] if fold is None or self.held_out is None else self.held_out[fold, code]


@dataclass(frozen=True)
class RelativeMap:
    """A column of numbers relative to the query: z-score or rank; 0 where missing, or where all are equal."""

    name: str
    kind: str  # "zscore" or "rank"

    @property
    def names(self) -> list[str]:
        return [f"{self.name} (in query)"]


def encoded_names(maps: list[Any]) -> list[str]:
    """Names of the encoded columns; a number is added to names that would occur twice."""
    found: dict[str, None] = {}
    for name in (name for made in maps for name in made.names):
        number, free = 2, name
        while free in found:
            free, number = f"{name} ({number})", number + 1
        found[free] = None
    return list(found)


def codes(x: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The index of each value's level; len(levels) if it is missing, one more if it is unknown."""
    number = {level: i for i, level in enumerate(levels.tolist())}
    number[None], unknown = len(levels), len(levels) + 1
    return np.array([number.get(value, unknown) for value in x.tolist()], dtype=np.intp)
