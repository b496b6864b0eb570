"""Queries whose rows lie in several parts of the data, and what each part must know about the others.

One pass over the labels counts rows and weights (`Counts`). From these come the totals of each query and tie level
(`QueryTotals`), with which every part can be processed by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from ..core.means import grades
from ..core.preferences import QueryPreferences
from ..core.queries import DENSE, Queries
from ..core.weighting import LINEAR, Gain, Weighting, recoded
from ..system.lazy import cached_property
from .block import Block, as_labels


@dataclass(frozen=True)
class Loss:
    """The parameters of the loss."""

    weighting: str
    regression: float
    tied: bool
    gain: Gain = LINEAR

    def recoded(self, block: Block) -> Block:
        """A block with its labels replaced by their gains."""
        return block if self.gain == LINEAR else replace(block, y=recoded(block.y, self.gain))

    def preferences(self, queries: Queries, y: np.ndarray, weights: np.ndarray | None) -> QueryPreferences:
        """F among rows whose queries are complete."""
        labels = None if self.tied else y[:, 0]
        return QueryPreferences(queries, labels, weighting=self.weighting, regression=self.regression, weights=weights)

    def weights(self, query: np.ndarray, weight: np.ndarray, n_queries: int) -> Weighting:
        """The weights of queries from those of their tie levels (with ties included, one level for each query)."""
        return Weighting(self.weighting, self.regression, query, weight, n_queries, self.tied)


@dataclass(frozen=True)
class Counts:
    """Rows and weight of each query and label, sorted by both; the counts of two parts can be added."""

    label: np.ndarray  # (k,) query ids
    y: np.ndarray  # (k,) labels; zero if ties are included, as labels do not matter then
    size: np.ndarray  # (k,) rows
    weight: np.ndarray  # (k,)
    parts: np.ndarray  # (k,) number of parts that contain the query, at its first entry; zero at the others

    @classmethod
    def of(cls, block: Block, *, tied: bool) -> Counts:
        """The counts of one part."""
        queries = Queries.of(as_labels(block.qid))
        y = np.zeros(len(block)) if tied else block.y[:, 0]
        weights = np.ones(len(block)) if block.weights is None else block.weights
        grade = grades(y)
        n = int(grade.max(initial=0)) + 1
        if len(queries) * n <= 4 * len(block):  # few labels: a table of queries by labels is small
            cell, value = queries.codes * n + grade, np.empty(len(queries) * n)
            size, value[cell] = np.bincount(cell, minlength=len(value)), y
            at = np.flatnonzero(size)
            weight = np.bincount(cell, weights=weights, minlength=len(value))
            rows = cls(queries.labels[at // n], value[at], size[at], weight[at], np.zeros(len(at)))
        else:
            one = np.ones(len(block), dtype=np.int64)
            rows = cls(queries.labels[queries.codes], y, one, weights, np.zeros(len(block)))
        counts = rows._merged()
        return replace(counts, parts=counts.first.astype(float))

    def __add__(self, other: Counts) -> Counts:
        both = (np.concatenate([getattr(part, f.name) for part in (self, other)]) for f in fields(self))
        return Counts(*both)._merged()

    @property
    def growth(self) -> int:
        return len(self.label)

    @property
    def n_queries(self) -> int:
        return int(self.first.sum())

    @property
    def n_rows(self) -> int:
        return int(self.size.sum())

    @property
    def first(self) -> np.ndarray:
        """(k,) True at the first entry of each query."""
        first = np.ones(len(self.label), dtype=bool)
        first[1:] = self.label[1:] != self.label[:-1]
        return first

    def _merged(self) -> Counts:
        """One entry for each query and label, sorted by both."""
        label, code = np.unique(self.label, return_inverse=True)
        value, grade = np.unique(self.y, return_inverse=True)
        key, inverse = np.unique(code * len(value) + grade, return_inverse=True)
        query = key // len(value)
        sums = [np.bincount(inverse, weights=v, minlength=len(key)) for v in (self.size, self.weight)]
        merged = Counts(label[query], value[key % len(value)], sums[0].astype(np.int64), sums[1], np.zeros(len(key)))
        merged.parts[merged.first] = np.bincount(code, weights=self.parts, minlength=len(label))
        return merged


@dataclass(frozen=True)
class QueryTotals:
    """Rows, pairs and weights of whole queries, and of the ties in them, sorted by query id.

    A group is a set of rows with the same role in the preference graph: the ties come first, then for each query its
    rows that tie with no other.
    """

    label: np.ndarray  # (q,) query ids
    size: np.ndarray  # (q,) rows
    pairs: np.ndarray  # (q,) pairs that count
    weight: np.ndarray  # (q,) S
    between2: np.ndarray  # (q,)
    tie_grade: np.ndarray  # (ties,) query number times the number of distinct labels, plus the label's number
    grade_y: np.ndarray  # distinct labels of ties
    group_query: np.ndarray  # (ties + q,) the query of each group
    group_within2: np.ndarray  # (ties + q,) within^2 of its rows

    @classmethod
    def of(cls, counts: Counts, loss: Loss, *, split: bool = False) -> QueryTotals:
        """The totals of all queries or, with `split`, of those that lie in several parts."""
        start = np.flatnonzero(counts.first)
        if split:
            several = np.repeat(counts.parts[start] > 1, np.diff(start, append=len(counts.label)))
            counts = Counts(*(getattr(counts, f.name)[several] for f in fields(counts)))
            start = np.flatnonzero(counts.first)
        q, n = len(start), counts.size
        query = np.repeat(np.arange(q), np.diff(start, append=len(n)))
        weighting = loss.weights(query, counts.weight, q)
        size = np.bincount(query, weights=n, minlength=q).astype(np.int64)
        pairs = size * (size - 1) // 2
        tied = np.zeros(len(n), dtype=bool)
        if not loss.tied:
            tied = n > 1
            pairs = pairs - np.bincount(query, weights=n * (n - 1) / 2, minlength=q).astype(np.int64)
        grade_y, grade = np.unique(counts.y[tied], return_inverse=True)
        return cls(
            counts.label[start],
            size,
            pairs,
            weighting.S,
            weighting.between2,
            query[tied] * len(grade_y) + grade,
            grade_y,
            np.concatenate([query[tied], np.arange(q)]),
            np.concatenate([weighting.within2[tied], weighting.between2]),
        )

    def __len__(self) -> int:
        return len(self.label)

    def find(self, labels: np.ndarray) -> np.ndarray:
        """The index of each query, -1 for queries that are not listed."""
        if not len(self) or not len(labels):
            return np.full(len(labels), -1)
        place = np.minimum(np.searchsorted(self.label, labels), len(self) - 1)
        return np.where(self.label[place] == labels, place, -1)

    def complete(self, number: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """True where a block holds every row of a query; unlisted queries are always complete."""
        return (number < 0) | (self.size[number] == rows) if len(self) else np.ones(len(number), dtype=bool)

    def divide(self, block: Block) -> tuple[Block, Block | None]:
        """The complete queries of a block, and its other rows with query indices in place of ids."""
        queries = Queries.of(as_labels(block.qid))
        number = self.find(queries.labels)
        inside = self.complete(number, queries.sizes)[queries.codes]
        if inside.all():
            return block, None
        rows = np.flatnonzero(~inside)
        return block.take(np.flatnonzero(inside)), replace(block.take(rows), qid=number[queries.codes[rows]])

    def groups(self, number: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The group of each row, from the index of its query and its label."""
        alone = len(self.tie_grade) + number
        if not len(self.tie_grade):
            return alone
        grade = np.minimum(np.searchsorted(self.grade_y, y), len(self.grade_y) - 1)
        wanted = number * len(self.grade_y) + grade
        if self._tie is not None:
            place = self._tie[wanted]
            return np.where((self.grade_y[grade] == y) & (place >= 0), place, alone)
        place = np.minimum(np.searchsorted(self.tie_grade, wanted), len(self.tie_grade) - 1)
        return np.where((self.grade_y[grade] == y) & (self.tie_grade[place] == wanted), place, alone)

    @cached_property
    def _tie(self) -> np.ndarray | None:
        """(q g,) the group of each query and label, -1 where no rows tie; None where most would be."""
        cells = len(self) * len(self.grade_y)
        if cells > DENSE * len(self.tie_grade):
            return None
        tie = np.full(cells, -1)
        tie[self.tie_grade] = np.arange(len(self.tie_grade))
        return tie
