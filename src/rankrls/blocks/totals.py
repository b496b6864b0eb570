"""Queries whose rows lie in several parts: blocks of rows, and what one must know of the others.

A `Census` has how many rows, and of what weight, each query and each tie level has; it is made from one look at labels.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from ..core.preferences import QueryPreferences, grades, query_factor
from ..core.queries import Queries
from .block import Block, as_labels


@dataclass(frozen=True)
class Loss:
    """What the sums are of."""

    weighting: str
    regression: float
    tied: bool

    def preferences(self, queries: Queries, y: np.ndarray, weights: np.ndarray | None) -> QueryPreferences:
        """F among rows whose queries are whole."""
        labels = None if self.tied else y[:, 0]
        return QueryPreferences(queries, labels, weighting=self.weighting, regression=self.regression, weights=weights)


@dataclass(frozen=True)
class Counts:
    """Rows and weight of each query and label: what a census is made of."""

    label: np.ndarray  # (k,) query ids
    y: np.ndarray  # (k,) labels, zero where ties count as other pairs do
    size: np.ndarray  # (k,)
    weight: np.ndarray  # (k,)
    met: np.ndarray  # (k,) parts in which the query was met, at its first entry; zero at its others

    @classmethod
    def of(cls, block: Block, *, tied: bool) -> Counts:
        """The counts of one part."""
        queries = Queries.of(as_labels(block.qid))
        y = np.zeros(len(block)) if tied else block.y[:, 0]
        weights = np.ones(len(block)) if block.weights is None else block.weights
        grade = grades(y)
        n = int(grade.max(initial=0)) + 1
        if len(queries) * n <= 4 * len(block):  # few labels: a table of all queries and labels is small
            cell, value = queries.codes * n + grade, np.empty(len(queries) * n)
            size, value[cell] = np.bincount(cell, minlength=len(value)), y
            at = np.flatnonzero(size)
            weight = np.bincount(cell, weights=weights, minlength=len(value))
            rows = cls(queries.labels[at // n], value[at], size[at], weight[at], np.zeros(len(at)))
        else:
            one = np.ones(len(block), dtype=np.int64)
            rows = cls(queries.labels[queries.codes], y, one, weights, np.zeros(len(block)))
        counts = rows._merged()
        return replace(counts, met=counts._first().astype(float))

    def __add__(self, other: Counts) -> Counts:
        both = (np.concatenate([getattr(part, f.name) for part in (self, other)]) for f in fields(self))
        return Counts(*both)._merged()

    @property
    def growth(self) -> int:
        return len(self.label)

    @property
    def n_queries(self) -> int:
        return int(self._first().sum())

    def _merged(self) -> Counts:
        """One entry for each query and label, sorted by both."""
        label, code = np.unique(self.label, return_inverse=True)
        value, grade = np.unique(self.y, return_inverse=True)
        key, inverse = np.unique(code * len(value) + grade, return_inverse=True)
        query = key // len(value)
        sums = [np.bincount(inverse, weights=v, minlength=len(key)) for v in (self.size, self.weight)]
        merged = Counts(label[query], value[key % len(value)], sums[0].astype(np.int64), sums[1], np.zeros(len(key)))
        merged.met[merged._first()] = np.bincount(code, weights=self.met, minlength=len(label))
        return merged

    def _first(self) -> np.ndarray:
        """Where a query begins."""
        first = np.ones(len(self.label), dtype=bool)
        first[1:] = self.label[1:] != self.label[:-1]
        return first


@dataclass(frozen=True)
class Census:
    """Rows and weight of queries and of the levels in which two or more rows tie; both sorted."""

    label: np.ndarray  # (q,)
    size: np.ndarray  # (q,) rows
    weight: np.ndarray  # (q,) S
    mass: np.ndarray  # (q,) weight of the pairs that count
    pairs: np.ndarray  # (q,) their number
    level_query: np.ndarray  # (levels,)
    level_y: np.ndarray  # (levels,)
    level_weight: np.ndarray  # (levels,) S_j

    @classmethod
    def of(cls, counts: Counts, *, tied: bool, split: bool = False) -> Census:
        """The census of all queries; with `split`, of those met in several parts (others are whole where they are)."""
        start = np.flatnonzero(counts._first())
        if split:
            several = np.repeat(counts.met[start] > 1, np.diff(start, append=len(counts.label)))
            counts = Counts(*(getattr(counts, f.name)[several] for f in fields(counts)))
            start = np.flatnonzero(counts._first())
        n, w = counts.size, counts.weight
        query = np.repeat(np.arange(len(start)), np.diff(start, append=len(n)))
        size, weight = (np.bincount(query, weights=v, minlength=len(start)) for v in (n, w))
        pairs, mass = size * (size - 1) / 2, weight * (weight - 1) / 2
        if not tied:
            pairs = pairs - np.bincount(query, weights=n * (n - 1) / 2, minlength=len(start))
            mass = (weight**2 - np.bincount(query, weights=w**2, minlength=len(start))) / 2
        level = (n > 1) & (not tied)
        return cls(
            counts.label[start],
            size.astype(np.int64),
            weight,
            mass,
            pairs.astype(np.int64),
            query[level],
            counts.y[level],
            w[level],
        )

    def __len__(self) -> int:
        return len(self.label)

    def find(self, labels: np.ndarray) -> np.ndarray:
        """The number of each query here, -1 if it is not."""
        if not len(self) or not len(labels):
            return np.full(len(labels), -1)
        place = np.minimum(np.searchsorted(self.label, labels), len(self) - 1)
        return np.where(self.label[place] == labels, place, -1)

    def whole(self, code: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Whether so many rows of a query are all there are; so they are of queries that are not here."""
        return (code < 0) | (self.size[code] == sizes) if len(self) else np.ones(len(code), dtype=bool)

    def divide(self, block: Block) -> tuple[Block, Block | None]:
        """The queries that are whole in a block, and the rows of the others (their ids are numbers of the census)."""
        queries = Queries.of(as_labels(block.qid))
        code = self.find(queries.labels)
        inside = self.whole(code, queries.sizes)[queries.codes]
        if inside.all():
            return block, None
        rows = np.flatnonzero(~inside)
        return block.take(np.flatnonzero(inside)), replace(block.take(rows), qid=code[queries.codes[rows]])

    def factor(self, loss: Loss) -> np.ndarray:
        """(q,) c."""
        return query_factor(loss.weighting, self.weight, self.mass)

    def groups(self, code: np.ndarray, y: np.ndarray) -> np.ndarray:
        """For rows of some queries the number of their level, or the number of levels plus that of their query."""
        lone = len(self.level_query) + code
        if not len(self.level_query):
            return lone
        value = np.unique(self.level_y)
        key = self.level_query * len(value) + np.searchsorted(value, self.level_y)
        grade = np.minimum(np.searchsorted(value, y), len(value) - 1)
        wanted = code * len(value) + grade
        place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return np.where((value[grade] == y) & (key[place] == wanted), place, lone)

    def within2(self, group: np.ndarray, loss: Loss) -> np.ndarray:
        """within^2 of the rows of a group: between^2 for those that tie with none."""
        beta, c = loss.regression, self.factor(loss)
        between2 = beta + (1 - beta) * c * self.weight
        q = self.level_query
        tied = beta + (1 - beta) * c[q] * np.maximum(0, self.weight[q] - self.level_weight)
        return np.concatenate([tied, between2])[group]

    def query_of(self, group: np.ndarray) -> np.ndarray:
        """The query that a group belongs to."""
        return np.concatenate([self.level_query, np.arange(len(self))])[group]
