"""A learning problem on rows in blocks: totals of the labels, sums over the rows, and held-out scores of every alpha.

`BlockedRows` is where the blocks are: in a file, or on a cluster.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from ... import checks
from ...blocks.block import Block
from ...blocks.scoring import HeldOutScores, LeaveFoldOut, LeaveQueryOut, LeaveQueryOutSigned
from ...blocks.sums import BlockedRows, SumRows, SumRowsPerFold
from ...blocks.totals import Counts, Loss, QueryTotals
from ...core.features import Features, Identity, Nystroem, Projected
from ...core.noise import HeldOutNoise
from ...core.statistics import Statistics
from ...core.symmetric import per_deviation
from ...metrics import Metric
from ...problems import choice
from ...problems.base import Model
from ...problems.choice import Judged, Setting
from ...problems.signed import signed_models
from ...problems.solved import Solved, mean_eigenvalue, model_at, needs_rows
from ...system.lazy import cached_property
from ...system.warnings import warn
from .training import Training


@dataclass(frozen=True)
class CountedRows:
    """Rows in blocks, with the totals of their queries once those are counted."""

    blocks: BlockedRows
    counts: dict[Loss, Counts] = field(default_factory=dict)
    known: dict[Loss, QueryTotals] = field(default_factory=dict)

    def totals(self, loss: Loss) -> QueryTotals | None:
        """The totals of queries that lie in several blocks; None if there are none."""
        if self.blocks.whole:
            return None
        if loss not in self.known:
            self.counts[loss] = self.blocks.labels(CountLabels(loss))
            self.known[loss] = QueryTotals.of(self.counts[loss], loss, split=self.blocks.stable)
        return self.known[loss]

    def moved(self, loss: Loss, sums: Statistics) -> bool:
        """True if blocks changed after labels were counted, so that some query was split differently and miscounted.

        If so, the totals list all queries from now on, which works for any blocks.
        """
        if self.blocks.whole:
            return False
        counts = self.counts[loss]
        if sums.n_rows != counts.n_rows:
            raise ValueError(
                f"the first pass read {counts.n_rows} rows and the next one {sums.n_rows}, but "
                "the rows must be the same in every pass. Write them to files first, or keep them in memory"
            )
        moved = sums.n_queries != counts.n_queries
        if moved:
            self.known[loss] = QueryTotals.of(counts, loss)
        return moved


@dataclass(frozen=True)
class CountLabels:
    """Maps a block to its counts for a loss."""

    loss: Loss

    def __call__(self, block: Block) -> Counts:
        return Counts.of(self.loss.recoded(block), tied=self.loss.tied)


@dataclass(frozen=True)
class BlockSetup:
    """One way to set up the problem: features and loss."""

    rows: CountedRows
    data: Training  # kernel and basis points, but no rows
    features: Features
    loss: Loss
    n_folds: int | None
    given: Any = None  # alphas to choose from; None for a grid fitted to the data
    noise: dict[float, tuple[HeldOutNoise, int]] = field(default_factory=dict)  # by alpha, filled as alphas are judged

    @cached_property
    def W(self) -> np.ndarray | None:
        """The penalty is ||W^-1 w||^2."""
        return penalty(self.data, self.sums, self.features)

    @cached_property
    def folds(self) -> list[Statistics]:
        """The sums of each fold, or of all rows."""
        found = self._folds()
        return self._folds() if self.rows.moved(self.loss, reduce(operator.add, found)) else found

    def _folds(self) -> list[Statistics]:
        totals = self.rows.totals(self.loss)
        sum_rows = SumRows(self.features, totals, self.loss, self.dtype)
        if self.n_folds is None:
            return [self.rows.blocks.sum(sum_rows, "sums over rows").finished(totals, self.loss)]
        per_fold = self.rows.blocks.sum(SumRowsPerFold(sum_rows, self.n_folds), "sums over rows")
        return [part.finished(totals, self.loss) for part in per_fold.folds]

    @property
    def dtype(self) -> Any:
        return self.data.dtype if self.data.kernel is None else np.float64

    @cached_property
    def sums(self) -> Statistics:
        return reduce(operator.add, self.folds)

    @property
    def scale(self) -> np.ndarray | None:
        """The units in which columns are penalised; None for their own units."""
        if self.data.kernel is not None:
            return getattr(self.data.kernel, "scale", None)
        return per_deviation(self.W) if self.W is not None else None

    def model(self, alpha: float) -> Model:
        if self.data.signs is not None:
            return signed_models(self.sums, np.array([alpha]), self.data.signs, W=self.W)[0]
        return model_at(alpha, self.sums, self.W, self.dtype, self._readable)

    @property
    def _readable(self) -> BlockSetup | None:
        """This problem if its rows can be read again, else None."""
        return None if self.rows.blocks.once else self

    def look(self, V: np.ndarray) -> Statistics:
        """The sums in some directions, which rounding of the full sums may hide; takes one more pass."""
        return self._pass(Projected(self.features, V))

    def gradient(self, model: Model) -> np.ndarray:
        """A'(z - A w); takes one more pass."""
        return self._pass(self.features, model).cross

    def _pass(self, features: Features, model: Model | None = None) -> Statistics:
        totals = self.rows.totals(self.loss)
        sum_rows = SumRows(features, totals, self.loss, self.dtype, model, careful=True)
        found = self.rows.blocks.sum(sum_rows, "refinement").finished(totals, self.loss)
        if not self.rows.moved(self.loss, found):
            return found
        sum_rows = replace(sum_rows, totals=self.rows.totals(self.loss))
        return self.rows.blocks.sum(sum_rows, "refinement").finished(sum_rows.totals, self.loss)

    @cached_property
    def alphas(self) -> np.ndarray:
        if self.given is not None:
            return checks.check_grid("alphas", self.given, zero=True)
        return choice.default_alphas(mean_eigenvalue(self.sums, self.W))

    @property
    def extends(self) -> bool:
        """True if the grid of alphas may be extended, because the caller gave none."""
        return self.given is None

    def judge(self, folds: object, metric: Metric, alphas: np.ndarray | None = None) -> Judged:
        """The mean held-out score of every alpha, and its error over queries."""
        alphas = self.alphas if alphas is None else alphas
        sums, blocks = self.sums, self.rows.blocks
        check_learnable(sums)
        if sums.n_queries < 2:
            raise ValueError(
                '"auto" values are chosen by holding out whole queries, but there is only one: name the column of '
                "query ids with qid=, or pass numbers"
            )
        settings = [Setting(alpha=float(alpha)) for alpha in alphas]
        if self.n_folds is not None and blocks.once:
            warn(
                "the rows can be read only once: alpha is chosen by the held-out loss of the folds, not by "
                f"{metric.name}; pass a function that returns a new iterator to choose by the metric",
            )
            loss = self.held_out_loss(alphas) / sums.n_queries
            return Judged(settings, -loss if metric.greater_is_better else loss, np.full(len(loss), np.nan))
        held = self.held_out(alphas, metric)
        if not held.count:
            raise ValueError(
                f"{metric.name} is not defined for any query: it needs two rows with different y in a query"
            )
        if held.noise is not None:
            self.noise.update((float(alpha), (held.noise, k)) for k, alpha in enumerate(alphas))
        return Judged(settings, held.mean, held.error)

    def held_out(self, alphas: np.ndarray, metric: Metric) -> HeldOutScores:
        """The metric of every query by models that never saw it, for each alpha."""
        totals = self.rows.totals(self.loss)
        if self.n_folds is None and self.data.signs is not None:
            about = self.sums, self.data.signs, self.data.scaled, self.features, self.loss
            signed = LeaveQueryOutSigned(*about, metric, alphas, self.dtype)
            return self.rows.blocks.sum_by_query(signed, totals, "held-out queries")
        if self.n_folds is None:
            rows = self._readable if needs_rows(self.sums, self.W, alphas) else None
            solved = Solved.of(self.sums, self.W, self.dtype, rows)
            by_query = LeaveQueryOut(solved, self.features, self.loss, metric, alphas, self.dtype)
            return self.rows.blocks.sum_by_query(by_query, totals, "held-out queries")
        by_fold = LeaveFoldOut(self._fold_models(alphas), self.features, self.loss, metric, self.dtype)
        return self.rows.blocks.sum_by_query(by_fold, totals, "held-out folds")

    def held_out_loss(self, alphas: np.ndarray) -> np.ndarray:
        """(k,) the summed loss of each fold under models of the others; takes no further pass."""
        losses = np.zeros(len(alphas))
        for sums, models in zip(self.folds, self._fold_models(alphas), strict=True):
            for k, model in enumerate(models):
                w = model.coef
                loss = sums.square - np.einsum("it,it->t", w, 2 * sums.cross - sums.gram @ w)
                shift = sums.target_mean - sums.mean @ w - model.intercept
                losses[k] += np.sum(loss + sums.beta * sums.weight * shift**2)
        return losses

    def _fold_models(self, alphas: np.ndarray) -> list[list[Model]]:
        found = []
        for part in self.folds:
            rest = reduce(operator.add, [fold for fold in self.folds if fold is not part])  # a fold may outweigh them
            if self.data.signs is not None:
                found.append(signed_models(rest, alphas, self.data.signs, W=self.W))
                continue
            solved = Solved.of(rest, self.W, self.dtype)
            found.append([solved.model(alpha) for alpha in alphas])
        return found


def penalty(data: Training, sums: Statistics, features: Features) -> np.ndarray | None:
    """W of the penalty ||W^-1 w||^2: columns in units of their spread, or the norm of the features."""
    if not data.scaled or data.kernel is not None:
        return features.W
    checks.check_visible(np.any(sums.cross[sums.faint] != 0, axis=1), sums.faint)
    return per_deviation(sums.deviation)


def features_of(data: Training, n_columns: int) -> Features:
    """The columns, or the kernel to the basis points."""
    return Identity(n_columns) if data.kernel is None else Nystroem(data.kernel, data.points)


def check_learnable(sums: Statistics) -> None:
    """Raise an error if sums overflowed, or if there is nothing to learn."""
    checks.check_no_overflow(sums)
    if sums.beta == 0 and not np.any(sums.square > 0):
        raise ValueError(
            f"no comparable pair: none of the {sums.n_queries} queries has two rows with different y among "
            f"{sums.n_rows} samples; is qid really the query id, not a row or document id?"
        )
