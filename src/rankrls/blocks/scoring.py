"""Held-out scores of rows that arrive in blocks, summed over queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.queries import Queries
from ..metrics import Metric
from ..problems.base import Model
from ..problems.primal import Primal
from .block import Block, as_labels
from .sums import (
    fold_of,
)
from .totals import Loss


@dataclass(frozen=True)
class Held:
    """What hold-out says of each alpha: sums over the queries that define a metric."""

    total: np.ndarray  # (k,)
    square: np.ndarray  # (k,)
    count: int

    def __add__(self, other: Held) -> Held:
        return Held(self.total + other.total, self.square + other.square, self.count + other.count)

    @classmethod
    def of(cls, values: np.ndarray) -> Held:
        """Values (q, k) of each query, NaN where it defines none."""
        known = values[~np.isnan(values[:, 0])]
        return cls(known.sum(axis=0), (known**2).sum(axis=0), len(known))

    @property
    def mean(self) -> np.ndarray:
        return self.total / self.count

    @property
    def error(self) -> np.ndarray:
        """(k,) the standard error of the mean; NaN of a single query."""
        n = self.count
        variance = (
            np.maximum(0, self.square - self.total**2 / n) / (n - 1) if n > 1 else np.full(len(self.total), np.nan)
        )
        return np.sqrt(variance / n)


@dataclass(frozen=True)
class LeaveQueryOut:
    """A block of whole queries -> the metric of each by the models that never saw it."""

    problem: Primal  # its path and sums are of all rows; it has none itself
    loss: Loss
    metric: Metric
    alphas: np.ndarray

    def __call__(self, block: Block) -> Held:
        queries = Queries.of(as_labels(block.qid))
        F = self.loss.preferences(queries, block.y, block.weights)
        scores = self.problem.among(F, block.X, block.y).leave_out(None, self.alphas)
        return judged(self.metric, block.y, scores, queries)


@dataclass(frozen=True)
class LeaveFoldOut:
    """A block of whole queries -> the metric of each by the models of all other folds."""

    problem: Primal
    models: Sequence[Sequence[Model]]  # of each fold those that never saw it, one for each alpha
    metric: Metric

    def __call__(self, block: Block) -> Held:
        queries = Queries.of(as_labels(block.qid))
        fold = fold_of(block.qid, len(self.models))
        scores = np.empty((len(block), len(self.models[0]), block.y.shape[1]))
        part = self.problem.among(self.problem.F, block.X, block.y)
        for f in np.unique(fold):
            rows = np.flatnonzero(fold == f)
            scores[rows] = part.scores(rows, self.models[f])
        return judged(self.metric, block.y, scores, queries)


def judged(metric: Metric, y: np.ndarray, scores: np.ndarray, queries: Queries) -> Held:
    """A metric of held-out scores (m, k, t), averaged over targets."""
    columns = [metric.per_query(y[:, t], scores[:, :, t], queries) for t in range(y.shape[1])]
    return Held.of(np.mean(columns, axis=0))
