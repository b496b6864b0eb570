"""Rows that are not in memory: everything is chosen on a sample of whole queries; only final sums use all rows."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .. import checks
from ..blocks.block import Block, as_labels
from ..blocks.sums import BlockedRows
from ..blocks.totals import Loss, QueryTotals
from ..core.queries import Queries
from ..core.statistics import Statistics
from ..estimators.ranking.blocks import CountedRows
from ..system.types import Matrix
from ..tables import ColumnMaps
from .fitting import AutoFit, FitPlan, check_size, fit_rows, learned_columns, whole_queries
from .link import Linked
from .rows import AutoRows, Map, SampledRows

LOSS = Loss("items", 0.0, tied=False)


def fit_blocks(blocks: BlockedRows, plan: FitPlan) -> AutoFit:
    """Fit to rows in blocks: one pass draws the sample, and one adds up the sums of each candidate that is used."""
    if blocks.once:
        raise ValueError(
            "an iterator can be read only once, but AutoRanker reads the rows several times: pass a function that "
            "returns a new iterator each time, a file, a polars LazyFrame or a DuckDB relation"
        )
    if blocks.n_targets > 1:
        raise ValueError(f"AutoRanker learns one target, but these rows have {blocks.n_targets}: name one with y=")
    effort = plan.effort
    wanted = effort.sample(blocks.labels(len))
    block = blocks.sum(DrawQueries(2 * wanted, 2 * effort.folds, plan.seed), "sample of queries").block
    queries = Queries.of(as_labels(block.qid))
    if len(queries) < 2:
        raise ValueError(
            "candidates are judged on whole queries, but there is only one: name the column of query ids with qid=, or "
            "fit to rows in memory"
        )
    y, X = block.y[:, 0], dense(block.X)
    checks.check_comparable(y, queries)
    check_size(y)
    columns, N = learned_columns(X, queries, plan)
    sample = AutoRows(N, y, queries, block.weights)
    totals = CountedRows(blocks).totals(LOSS)
    rows = RowsElsewhere(sample.N, y, queries, block.weights, blocks=blocks, columns=columns, totals=totals)
    some = whole_queries(sample, plan, wanted)
    names = [f"x{i}" for i in range(blocks.n_columns)] if blocks.names is None else blocks.names
    found = fit_rows(rows, sample if some is None else sample.part(some), columns, names, plan)
    return replace(found, cv_predictions=None)


@dataclass(frozen=True)
class RowsElsewhere(AutoRows):
    """A sample of rows, with sums over all of them."""

    in_memory: ClassVar[bool] = False

    blocks: BlockedRows | None = None
    columns: ColumnMaps | None = None
    totals: QueryTotals | None = None

    def sampled(self, m: int) -> AutoRows:
        return SampledRows(self.N, self.y, self.queries, self.weights).sampled(m)

    def sums(self, features: Map | np.ndarray, target: np.ndarray | None = None) -> Statistics:
        if isinstance(features, np.ndarray) or target is not None:
            return super().sums(features, target)
        assert self.blocks is not None and self.columns is not None
        return self.blocks.sum_by_query(SumScores(self.columns, features), self.totals, "sums over rows")

    def sums_through(self, linked: Linked, Phi: np.ndarray | None = None, f: np.ndarray | None = None) -> Statistics:
        assert self.blocks is not None and self.columns is not None
        return self.blocks.sum_by_query(SumScores(self.columns, linked), self.totals, "sums over rows")


@dataclass(frozen=True)
class SumScores:
    """Maps a block of complete queries to the sums of features of its scores."""

    columns: ColumnMaps
    features: Map | Linked

    def __call__(self, block: Block) -> Statistics:
        queries = Queries.of(as_labels(block.qid))
        N = self.columns.scores(dense(block.X), queries, np.float32)
        rows = AutoRows(N, block.y[:, 0], queries, block.weights)
        return rows.sums_through(self.features) if isinstance(self.features, Linked) else rows.sums(self.features)


@dataclass(frozen=True)
class QuerySample:
    """Rows of the queries with the smallest hashes; the samples of two parts merge into the sample of both."""

    block: Block
    draw: DrawQueries

    def __add__(self, other: QuerySample) -> QuerySample:
        return self.draw(Block.join([self.block, other.block]))

    @property
    def growth(self) -> int:
        return len(self.block)


@dataclass(frozen=True)
class DrawQueries:
    """Maps a block to rows of some of its queries: as many whole queries as there is room for, but at least a few.

    A query is left out only if queries with smaller hashes fill the room. They also fill it in every larger sum, so a
    query that belongs to the sample of all rows is never left out.
    """

    rows: int
    queries: int
    seed: int

    def __call__(self, block: Block) -> QuerySample:
        queries = Queries.of(as_labels(block.qid))
        key = np.array([zlib.crc32(f"{self.seed} {label}".encode()) for label in queries.labels.tolist()])
        order = np.lexsort((queries.labels, key))
        few = max(self.queries, int((np.cumsum(queries.sizes[order]) <= self.rows).sum()))
        chosen = np.zeros(len(queries), dtype=bool)
        chosen[order[:few]] = True
        rows = np.flatnonzero(chosen[queries.codes])
        if len(rows) > 2 * self.rows:  # queries are long: take some rows of each
            rows = rows[:: -(-len(rows) // self.rows)]
        return QuerySample(block if len(rows) == len(block) else block.take(rows), self)


def dense(X: Matrix) -> np.ndarray:
    """Rows of a block as an array."""
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)
