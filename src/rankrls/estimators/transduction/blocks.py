"""Transduction from rows in blocks: in files, in streams, on a cluster.

The scored rows are read into memory. Of the unscored queries only c and mu are needed (`problems.transduction`): one
pass adds up the products of all rows, one the system of c and mu, and one the sums of the completed rows for the final
ranker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from ...bases import Draw, Sample
from ...blocks.block import Block, as_labels
from ...blocks.totals import Counts, Loss, QueryTotals
from ...core.features import Features, Identity, Nystroem
from ...core.queries import Queries
from ...metrics import get_metric
from ...problems import choice
from ...problems.primal import Primal
from ...problems.solved import Solved, needs_rows
from ...problems.transduction import CompletionSums, QueryPart
from ...system.lazy import cached_property
from ...system.progress import numbered
from ..ranking.blocks import with_kernels
from ..rankrls import RankRLS
from ..rows.blocks import BlockSetup, CountedRows, CountLabels, features_of
from ..rows.training import Seen, Training
from .fitting import (
    Hidden,
    Inductive,
    TransductiveFit,
    TransductiveParameters,
    fidelity_grid,
    hiding,
    ranker_of_rows,
)

T = TypeVar("T")
GIVEN = np.array([np.inf])  # the fidelity of queries whose scores are given


class TransductiveFitted(Protocol):
    """The attributes of a TransductiveRankRLS fitted to rows in blocks."""

    weighting: str
    inductive_: RankRLS
    fidelity_: float
    fidelity_unit_: float
    directions_: np.ndarray
    multipliers_: np.ndarray


@dataclass(frozen=True)
class QueryBlocks:
    """Maps a block of whole queries to a part of the low-rank form."""

    features: Features
    basis: np.ndarray  # (n, r) with H = B B' of all rows, B = F Phi basis
    loss: Loss

    def __call__(self, block: Block, p: np.ndarray) -> QueryPart:
        F = self.loss.preferences(Queries.of(as_labels(block.qid)), block.y, None)
        return QueryPart(Primal(F, self.features, block.X, p[:, None], np.float64), self.basis, p)


@dataclass(frozen=True)
class SumUnscored:
    """Maps a block of whole unscored queries to its share of the system of c and mu."""

    parts: QueryBlocks
    inductive: RankRLS
    gammas: np.ndarray

    def __call__(self, block: Block) -> CompletionSums:
        return self.parts(block, self.inductive.predict(block.X)).sums(self.gammas)


@dataclass(frozen=True)
class Completed:
    """Maps a block of whole unscored queries to their scores."""

    parts: QueryBlocks
    inductive: RankRLS
    gamma: float
    solution: np.ndarray  # (2, r) c and mu

    def __call__(self, block: Block) -> np.ndarray:
        part = self.parts(block, self.inductive.predict(block.X))
        return part.scores(np.array([self.gamma]), self.solution[None])[:, 0]

    @classmethod
    def of(cls, model: TransductiveFitted) -> Completed:
        """From a fitted model."""
        inductive = model.inductive_
        linear = hasattr(inductive, "coef_")
        features: Features = Identity(len(inductive.coef_)) if linear else Nystroem(inductive.kernel_, inductive.X_fit_)
        parts = QueryBlocks(features, model.directions_, Loss(model.weighting, 0.0, True))
        return cls(parts, inductive, model.fidelity_unit_ * model.fidelity_, model.multipliers_)


@dataclass(frozen=True)
class OfCompleted:
    """Maps a block of whole unscored queries to the value of a function of them with completed scores."""

    function: Callable[[Block], Any]
    completed: Completed

    def __call__(self, block: Block) -> Any:
        return self.function(replace(block, y=self.completed(block)[:, None]))


class CompletedRows:
    """All rows with completed scores, in blocks of whole queries, for the final ranker."""

    whole, stable, once, names, n_targets = True, True, False, None, 1

    def __init__(self, scored: Block, unscored: CountedRows, loss: Loss, completed: Completed):
        self.scored, self.unscored, self.loss, self.completed = scored, unscored, loss, completed
        self.n_columns, self.dtype = unscored.blocks.n_columns, unscored.blocks.dtype

    def sum(self, function: Callable[[Block], T], label: str) -> Any:
        given: Any = function(self.scored)
        return given + self.unscored.blocks.sum_by_query(
            OfCompleted(function, self.completed), self.unscored.totals(self.loss), label
        )

    def sum_by_query(self, function: Callable[[Block], T], totals: QueryTotals | None, label: str) -> Any:
        return self.sum(function, label)

    def labels(self, function: Callable[[Block], T]) -> Any:
        return self.sum(function, "labels")

    def sample(self, draw: Draw) -> Sample:
        return self.sum(draw, "sample")


@dataclass(frozen=True)
class TransductiveBlocks:
    """Rows in blocks for TransductiveRankRLS."""

    parts: Any

    def fit(self, model: TransductiveParameters) -> tuple[Seen, TransductiveFit]:
        _check_form(model)
        scored, rest = self._scored(), self.parts.only("unscored")
        unscored = CountedRows(rest)
        queries = Queries.of(as_labels(scored.qid))
        loss = Loss(model.weighting, 0.0, True)
        best = self._inductive(model, scored, queries)
        fidelity = np.nan if isinstance(model.fidelity, str) else float(model.fidelity)
        found = TransductiveFit(best.model, best.model, best.model.alpha_, fidelity, len(queries), 0)
        seen = Seen.of(self.parts.n_columns, self.parts.names)
        if not rest.n_rows():
            raise ValueError("every row has a score, so there is nothing to transduce: use RankRLS(tied_pairs=True)")
        _check_whole(scored, rest.labels(CountLabels(loss)))
        option = replace(best.data, X=best.data.X[:0], y=best.data.y[:0], queries=Queries.of(best.data.X[:0, 0]))
        setup = BlockSetup(CountedRows(self.parts.only("any")), option, _features(best.data), loss, None)
        job = Transduction(model, best, scored.y[:, 0], unscored, setup)
        return seen, job.complete(found)

    def _scored(self) -> Block:
        scored = self.parts.only("scored").collect()
        if scored is None:
            raise ValueError("no row is scored (y is missing everywhere): give some a score")
        if scored.weights is not None:
            raise ValueError("transduction of rows in blocks counts every row once: leave sample_weight out")
        return scored

    def _inductive(self, model: TransductiveParameters, scored: Block, queries: Queries) -> Inductive:
        like = RankRLS(kernel=model.kernel, basis=model.basis, scale=None, random_state=model.random_state)
        rows, y = np.arange(len(scored)), scored.y[:, 0]
        kernels = with_kernels(like, self.parts.only("any"))
        options = [
            replace(o, X=scored.X, y=scored.y, queries=queries, n_given=len(rows), weights=None) for o in kernels
        ]
        alpha, alphas = model.alpha, model.alphas
        if len(options) > 1 and not isinstance(alpha, str):
            alpha, alphas = "auto", [alpha]
        fits = [Inductive(option, partial(ranker_of_rows, model, option, rows, y, alpha, alphas)) for option in options]
        return fits[0] if len(fits) == 1 else choice.choose(fits, None, get_metric(model.scoring)).candidate


@dataclass(frozen=True)
class Transduction:
    """Unscored queries in blocks, scored ones in memory, and the products of all rows."""

    model: TransductiveParameters
    inductive: Inductive
    y: np.ndarray  # (m,) of the scored rows
    unscored: CountedRows
    setup: BlockSetup  # of all rows

    @cached_property
    def parts(self) -> QueryBlocks:
        sums, W, alpha = self.setup.sums, self.setup.features.W, self.inductive.model.alpha_
        rows = self.setup if needs_rows(sums, W, alpha) else None
        path = Solved.of(sums, W, np.float64, rows).path
        return QueryBlocks(self.setup.features, path.basis / np.sqrt(path.d + alpha), self.setup.loss)

    @cached_property
    def unit(self) -> float:
        """The unit of fidelity: the mean weight of a row in the loss."""
        sizes = self.unscored.blocks.labels(CountLabels(self.setup.loss)) + Counts.of(self._block(), tied=True)
        weighting = self.setup.loss.weights(np.arange(len(sizes.size)), sizes.weight, len(sizes.size))
        return float(np.average(weighting.between2, weights=sizes.size))

    def complete(self, found: TransductiveFit) -> TransductiveFit:
        """Add the completed scores, as c and mu, and the ranker of all rows."""
        if isinstance(self.model.fidelity, str):
            grid = fidelity_grid(self.model)
            held = partial(self.held_out, alpha=found.alpha)
            trial = Hidden(grid, held, self.y, np.ones(len(self.y), dtype=bool), self.inductive.data.queries)
            chosen = choice.choose([trial], self.model.cv, get_metric(self.model.scoring))
            found = replace(found, fidelity=chosen.setting.fidelity, fidelities=grid, cv_scores=chosen.scores)
        gamma = self.unit * found.fidelity
        sums = self._sums(found.inductive, np.array([gamma])) + self._given(np.arange(len(self.y)))
        completed = Completed(self.parts, found.inductive, gamma, sums.solutions()[0])
        data, loss = self.inductive.data, self.setup.loss
        ranker = RankRLS(
            found.alpha,
            kernel=data.kernel,
            basis=data.points,
            weighting=self.model.weighting,
            tied_pairs=True,
            scoring=self.model.scoring,
            scale=None,
        )
        ranker.fit(CompletedRows(self._block(), self.unscored, loss, completed))
        n_unscored = ranker.n_queries_ - found.n_queries
        found = replace(found, ranker=ranker, n_queries=ranker.n_queries_, n_unscored_queries=n_unscored)
        return replace(found, multipliers=completed.solution, directions=self.parts.basis, fidelity_unit=self.unit)

    def held_out(self, cv: int, fidelities: np.ndarray, *, alpha: float) -> np.ndarray:
        """(m, k) scores of the scored queries when treated as unscored; one pass for each part of them."""
        data, gammas = self.inductive.data, self.unit * fidelities
        held = np.full((len(self.y), len(fidelities)), np.nan)
        for stay, out in numbered(list(hiding(cv, data.queries.codes, len(data.queries))), "fold"):
            ranker = ranker_of_rows(self.model, data, stay, self.y, alpha)
            hidden = self.parts(self._block(out), ranker.predict(data.X[out]))
            sums = self._sums(ranker, gammas) + hidden.sums(gammas) + self._given(stay)
            held[out] = hidden.scores(gammas, sums.solutions())
        return held

    def _sums(self, ranker: RankRLS, gammas: np.ndarray) -> CompletionSums:
        function = SumUnscored(self.parts, ranker, gammas)
        totals = self.unscored.totals(self.setup.loss)
        return self.unscored.blocks.sum_by_query(function, totals, "queries to complete")

    def _given(self, rows: np.ndarray) -> CompletionSums:
        """The share of scored queries, the same for every gamma."""
        return self.parts(self._block(rows), self.y[rows]).sums(GIVEN)

    def _block(self, rows: np.ndarray | None = None) -> Block:
        data = self.inductive.data
        rows = np.arange(len(self.y)) if rows is None else rows
        return Block(data.X[rows], self.y[rows, None], data.queries.labels[data.queries.codes[rows]])


def _features(data: Training) -> Features:
    return features_of(data, data.X.shape[1])


def _check_form(model: TransductiveParameters) -> None:
    """Raise an error if the low-rank form does not support the model's parameters."""
    other = {"folds": model.folds is not None, "tied_pairs=False": not model.tied_pairs}
    other |= {"regression": model.regression > 0, "store_path": model.store_path}
    for name, given in other.items():
        if given:
            raise ValueError(
                f"transduction of rows in blocks does not support {name}: leave it out, or read the rows into memory"
            )


def _check_whole(scored: Block, unscored: Counts) -> None:
    """Raise an error if a query is only partly scored."""
    both = np.intersect1d(np.unique(as_labels(scored.qid)), unscored.label)
    if len(both):
        raise ValueError(
            f"{len(both)} queries, such as {both.tolist()[0]!r}, have rows with and without a score: transduction of "
            "rows in blocks needs queries that are scored completely or not at all. Read the rows into memory instead"
        )
