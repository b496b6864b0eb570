"""Summaries of columns for an encoder: sums over rows, which add up over parts."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..core.queries import Queries
from ..system.limits import limits
from .maps import LevelMap, NumberMap, Quantiles, Standard, TargetMap, codes
from .reading import BOOLEAN, NUMBER, TEXT

LARGEST = 1e300  # larger numbers are cut to this, so that differences stay finite


@dataclass(frozen=True)
class NumberSummary:
    """The values of a column of numbers, or a random sample of them that does not depend on the order of blocks."""

    n: int
    missing: int
    values: np.ndarray  # (k,) without NaN
    keys: np.ndarray  # (k,) random numbers; the smallest are kept

    @classmethod
    def of(cls, x: np.ndarray) -> NumberSummary:
        values = np.clip(x[~np.isnan(x)], -LARGEST, LARGEST)
        keys = np.random.default_rng(zlib.crc32(values.tobytes())).random(len(values))
        return cls(len(x), len(x) - len(values), values, keys)

    def __add__(self, other: NumberSummary) -> NumberSummary:
        values, keys = np.concatenate([self.values, other.values]), np.concatenate([self.keys, other.keys])
        if len(values) > limits.quantile_values:
            kept = np.argpartition(keys, limits.quantile_values)[: limits.quantile_values]
            values, keys = values[kept], keys[kept]
        return NumberSummary(self.n + other.n, self.missing + other.missing, values, keys)

    def map(self, name: str, how: str, n_quantiles: int) -> NumberMap:
        """The map of the column; it has no names if the column is constant."""
        indicator = 0 < self.missing < self.n
        if not len(self.values) or self.values.min() == self.values.max():
            return NumberMap(name, None, indicator)
        return NumberMap(
            name, standard(self.values) if how == "standard" else quantiles(self.values, n_quantiles), indicator
        )


def standard(values: np.ndarray) -> Standard:
    """The map to mean 0 and variance 1, bit by bit the same for any order of the values."""
    values = np.sort(values)
    size = float(np.abs(values).max())  # so that squares neither overflow nor underflow
    mean, deviation = float((values / size).mean()) * size, float((values / size).std()) * size
    return Standard(mean, 1 / max(deviation, 1 / LARGEST))


def quantiles(values: np.ndarray, n_quantiles: int) -> Quantiles:
    """The map to normal quantiles of the mid-distribution (P(V < v) + P(V <= v)) / 2, with mean 0 and variance 1."""
    knots, counts = np.unique(values, return_counts=True)
    end = np.cumsum(counts)
    share = (end - counts / 2) / end[-1]
    z = ndtri(share)
    mean = np.average(z, weights=counts)
    z = (z - mean) / np.sqrt(np.average((z - mean) ** 2, weights=counts))
    if len(knots) > n_quantiles:
        kept = np.unique(np.searchsorted(share, np.linspace(share[0], share[-1], n_quantiles)))
        knots, z = knots[kept], z[kept]
    with np.errstate(over="ignore"):
        slopes = np.append(np.diff(z) / np.diff(knots), 0.0)
    return Quantiles(knots, z, np.where(np.isfinite(slopes), slopes, 0.0))


@dataclass(frozen=True)
class TextSummary:
    """How often each level of a column occurs."""

    n: int
    counts: Counter

    @classmethod
    def of(cls, x: np.ndarray) -> TextSummary:
        return cls(len(x), Counter(x.tolist()))

    def __add__(self, other: TextSummary) -> TextSummary:
        return TextSummary(self.n + other.n, self.counts + other.counts)

    @property
    def missing(self) -> int:
        return self.counts[None]

    @property
    def levels(self) -> np.ndarray:
        found = np.empty(len(self.counts) - (None in self.counts), dtype=object)
        found[:] = sorted(level for level in self.counts if level is not None)
        return found

    @property
    def lonely(self) -> float:
        """The share of rows whose level occurs in no other row."""
        return sum(1 for level, n in self.counts.items() if n == 1 and level is not None) / max(1, self.n)

    def map(self, name: str) -> LevelMap:
        return LevelMap(name, self.levels, 0 < self.missing < self.n)


Summary = NumberSummary | TextSummary


def summary_of(x: np.ndarray, kind: str) -> Summary:
    """The summary of a column of some kind."""
    return TextSummary.of(x) if kind == TEXT else NumberSummary.of(x)


@dataclass(frozen=True)
class TableSummary:
    """The summaries of all columns, and the queries and labels of the rows."""

    kinds: dict[str, str]
    columns: dict[str, Any]
    labels: LabelTotals
    queries: frozenset[Hashable]

    def __add__(self, other: TableSummary) -> TableSummary:
        if self.kinds.keys() != other.kinds.keys():
            here, there = ", ".join(self.kinds), ", ".join(other.kinds)
            raise ValueError(f"parts of a table have different columns: {here[:200]} and {there[:200]}")
        kinds = {name: self._kind(name, other) for name in self.kinds}
        mine, theirs = (part._as(kinds) for part in (self, other))
        both = {name: mine[name] + theirs[name] for name in kinds}
        return TableSummary(kinds, both, self.labels + other.labels, self.queries | other.queries)

    def _kind(self, name: str, other: TableSummary) -> str:
        """The kind of a column in both; a part without values leaves the kind open."""
        found = {part.kinds[name] for part in (self, other) if not part._is_empty(name)}
        if len(found) < 2:
            return found.pop() if found else self.kinds[name]
        if found == {NUMBER, BOOLEAN}:
            return NUMBER
        first, second = self.kinds[name], other.kinds[name]
        raise ValueError(
            f"column {name!r} holds {first} in one part of the table and {second} in another: write it with one "
            f'type, or give its kind, as in TableEncoder(columns={{{name!r}: "text", ...}})'
        )

    def _is_empty(self, name: str) -> bool:
        return self.columns[name].missing == self.columns[name].n

    def _as(self, kinds: dict[str, str]) -> dict[str, Any]:
        """The summaries with the given kinds; only columns without values change."""
        found = dict(self.columns)
        for name, kind in kinds.items():
            if (kind == TEXT) != (self.kinds[name] == TEXT):
                n = self.columns[name].n
                found[name] = summary_of(np.full(n, None if kind == TEXT else np.nan), kind)
        return found


@dataclass(frozen=True)
class ByColumn:
    """Values by column that can be added column by column."""

    columns: dict[str, Any]

    def __add__(self, other: ByColumn) -> ByColumn:
        return ByColumn({name: part + other.columns[name] for name, part in self.columns.items()})


# ---------------------------------------------------------------- target statistics


@dataclass(frozen=True)
class LabelTotals:
    """Rows and the sum of labels of each query."""

    total: dict[Hashable, tuple[int, np.ndarray]]

    @classmethod
    def of(cls, y: np.ndarray, queries: Queries) -> LabelTotals:
        sums = np.column_stack([queries.sum(column) for column in y.T])
        return cls(dict(zip(queries.labels.tolist(), zip(queries.sizes.tolist(), sums, strict=True), strict=True)))

    def __add__(self, other: LabelTotals) -> LabelTotals:
        both = dict(self.total)
        for query, (n, total) in other.total.items():
            before = both.get(query, (0, 0.0))
            both[query] = before[0] + n, before[1] + total
        return LabelTotals(both)

    def centred(self, y: np.ndarray, queries: Queries) -> np.ndarray:
        """Labels minus the mean label of their query."""
        counted = [self.total[query] for query in queries.labels.tolist()]
        means = np.array([total / max(1, n) for n, total in counted])
        return y - means[queries.codes]


@dataclass(frozen=True)
class TargetSums:
    """For each fold of queries and each level: the number of rows, and the sum of their centred labels."""

    n: np.ndarray  # (folds, k + 2)
    total: np.ndarray  # (folds, k + 2, t)

    @classmethod
    def of(cls, x: np.ndarray, levels: np.ndarray, y: np.ndarray, fold: np.ndarray, n_folds: int) -> TargetSums:
        k = len(levels) + 2
        cell = fold * k + codes(x, levels)
        n = np.bincount(cell, minlength=n_folds * k).reshape(n_folds, k)
        sums = [np.bincount(cell, weights=column, minlength=n_folds * k) for column in y.T]
        return cls(n, np.stack(sums, axis=-1).reshape(n_folds, k, -1))

    def __add__(self, other: TargetSums) -> TargetSums:
        return TargetSums(self.n + other.n, self.total + other.total)

    def map(self, name: str, levels: np.ndarray, smoothing: float) -> TargetMap:
        """sum / (rows + smoothing), scaled to mean square 1 over the training rows."""
        n, total = self.n.sum(axis=0), self.total.sum(axis=0)
        values = _shrunk(total, n, smoothing)
        held_out = _shrunk(total - self.total, n - self.n, smoothing)
        size = np.sqrt(n @ values**2 / max(1, n.sum()))
        size = np.where(size > 0, size, 1.0)
        return TargetMap(name, levels, values / size, held_out / size)


def _shrunk(total: np.ndarray, n: np.ndarray, smoothing: float) -> np.ndarray:
    """total / (n + smoothing), 0 where there are no rows."""
    return np.where(n > 0, 1 / np.maximum(n + smoothing, 1), 0.0)[..., None] * total


def folds_of(queries: Queries, n_folds: int, *, single: bool) -> np.ndarray:
    """(m,) the fold of each row: a checksum of its query id, so that parts agree; rows of a single query are dealt."""
    if single:
        return np.arange(queries.n_rows) % n_folds
    fold = [zlib.crc32(str(label).encode()) % n_folds for label in queries.labels.tolist()]
    return np.array(fold, dtype=np.intp)[queries.codes]


def relative(x: np.ndarray, queries: Queries, kind: str) -> np.ndarray:
    """A column relative to the query: z-score, or rank from -1 to 1 with ties averaged; 0 where missing."""
    found, ok = np.zeros(len(x)), np.flatnonzero(~np.isnan(x))
    code, v = queries.codes[ok], np.clip(x[ok], -LARGEST, LARGEST)
    n = np.bincount(code, minlength=len(queries))
    found[ok] = _ranks(v, code, n) if kind == "rank" else _zscores(v, code, n)
    return found


def _zscores(v: np.ndarray, code: np.ndarray, n: np.ndarray) -> np.ndarray:
    at_least_one = np.maximum(n, 1)
    mean = np.bincount(code, weights=v, minlength=len(n)) / at_least_one
    size = np.zeros(len(n))
    np.maximum.at(size, code, np.abs(v))
    centred = (v - mean[code]) / np.where(size > 0, size, 1)[code]
    deviation = np.sqrt(np.bincount(code, weights=centred**2, minlength=len(n)) / at_least_one)
    constant = deviation <= 8 * np.finfo(float).eps
    return np.where(constant[code], 0.0, centred / np.where(constant, 1, deviation)[code])


def _ranks(v: np.ndarray, code: np.ndarray, n: np.ndarray) -> np.ndarray:
    order = np.lexsort((v, code))
    c, s = code[order], v[order]
    place = np.arange(len(v)) - (np.cumsum(n) - n)[c]
    run = np.cumsum(np.concatenate([[True], (c[1:] != c[:-1]) | (s[1:] != s[:-1])])[: len(v)]) - 1
    shared = (np.bincount(run, weights=place) / np.bincount(run))[run] if len(v) else place
    ranks = np.empty(len(v))
    ranks[order] = np.where(n[c] > 1, 2 * shared / np.maximum(n[c] - 1, 1) - 1, 0.0)
    return ranks
