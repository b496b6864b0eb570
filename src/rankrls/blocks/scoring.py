"""Held-out scores of rows that arrive in blocks, added up over queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.features import Features
from ..core.noise import HeldOutNoise
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..core.statistics import Statistics
from ..metrics import Metric
from ..problems.base import Model
from ..problems.primal import Primal, scores_of
from ..problems.signed import SignedPrimal
from ..problems.solved import Solved
from .block import Block, as_labels
from .sums import fold_of
from .totals import Loss


@dataclass(frozen=True)
class HeldOutScores:
    """A metric of each of k models, added up over the held-out queries where it is defined."""

    total: np.ndarray  # (k,)
    square: np.ndarray  # (k,)
    count: int
    noise: HeldOutNoise | None = None  # of the labels; None for several targets

    def __add__(self, other: HeldOutScores) -> HeldOutScores:
        noise = None if self.noise is None or other.noise is None else self.noise + other.noise
        return HeldOutScores(self.total + other.total, self.square + other.square, self.count + other.count, noise)

    @classmethod
    def of(cls, values: np.ndarray, noise: HeldOutNoise | None) -> HeldOutScores:
        """From the values (q, k) of each query, NaN where the metric is undefined."""
        known = values[~np.isnan(values[:, 0])]
        return cls(known.sum(axis=0), (known**2).sum(axis=0), len(known), noise)

    @property
    def mean(self) -> np.ndarray:
        return self.total / self.count

    @property
    def error(self) -> np.ndarray:
        """(k,) the standard error of the mean; NaN for a single query."""
        n = self.count
        if n < 2:
            return np.full(len(self.total), np.nan)
        return np.sqrt(np.maximum(0, self.square - self.total**2 / n) / (n - 1) / n)


def _preferences(loss: Loss, block: Block) -> tuple[Queries, np.ndarray, QueryPreferences]:
    """The queries of a block, its recoded labels, and the loss on its rows."""
    queries, y = Queries.of(as_labels(block.qid)), loss.recoded(block).y
    return queries, y, loss.preferences(queries, y, block.weights)


@dataclass(frozen=True)
class LeaveQueryOut:
    """Maps a block of complete queries to the metric of each by models that never saw it."""

    solved: Solved  # from the sums of all rows
    features: Features
    loss: Loss
    metric: Metric
    alphas: np.ndarray
    dtype: Any

    def __call__(self, block: Block) -> HeldOutScores:
        queries, y, F = _preferences(self.loss, block)
        rows = Primal(F, self.features, block.X, y, self.dtype)
        return _judged(self.metric, block.y, y, rows.leave_queries_out(self.solved, self.alphas), queries)


@dataclass(frozen=True)
class LeaveQueryOutSigned:
    """Maps a block of complete queries to the metric of each by sign-constrained models that never saw it."""

    sums: Statistics  # of all rows
    signs: np.ndarray
    scaled: bool
    features: Features
    loss: Loss
    metric: Metric
    alphas: np.ndarray
    dtype: Any

    def __call__(self, block: Block) -> HeldOutScores:
        queries, y, F = _preferences(self.loss, block)
        rows = SignedPrimal(
            F, self.features, block.X, y, self.dtype, float(self.scaled), total=self.sums, signs=self.signs
        )
        return _judged(self.metric, block.y, y, rows.leave_out(None, self.alphas), queries)


@dataclass(frozen=True)
class LeaveFoldOut:
    """Maps a block of complete queries to the metric of each by models of the other folds."""

    models: Sequence[Sequence[Model]]  # for each fold, the models that never saw it, one for each alpha
    features: Features
    loss: Loss
    metric: Metric
    dtype: Any

    def __call__(self, block: Block) -> HeldOutScores:
        fold = fold_of(block.qid, len(self.models))
        scores = np.empty((len(block), len(self.models[0]), block.y.shape[1]))
        for f in np.unique(fold):
            rows = np.flatnonzero(fold == f)
            scores[rows] = scores_of(self.models[f], self.features, block.X, rows, self.dtype)
        return _judged(self.metric, block.y, self.loss.recoded(block).y, scores, Queries.of(as_labels(block.qid)))


def _judged(metric: Metric, truth: np.ndarray, y: np.ndarray, scores: np.ndarray, queries: Queries) -> HeldOutScores:
    """A metric of held-out scores (m, k, t), averaged over targets, and the noise of y, the labels of the loss."""
    columns = [metric.per_query(truth[:, t], scores[:, :, t], queries) for t in range(truth.shape[1])]
    noise = HeldOutNoise.of(y[:, 0], scores[:, :, 0], queries) if y.shape[1] == 1 else None
    return HeldOutScores.of(np.mean(columns, axis=0), noise)
