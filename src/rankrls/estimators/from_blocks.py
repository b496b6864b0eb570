"""RankRLS from rows in blocks: totals of the labels, sums over the rows, and held-out scores where alpha is chosen.

`BlockedRows` knows where the blocks are (a file, a cluster). Nothing here writes to an estimator: `fit_rows` and
`more_sums` return what it stores.
"""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from .. import bases, checks
from ..blocks.block import Block
from ..blocks.checkpoint import Checkpoint
from ..blocks.reading import SourceRows
from ..blocks.scoring import HeldOutScores, LeaveFoldOut, LeaveQueryOut, LeaveQueryOutSigned
from ..blocks.sources import Source
from ..blocks.sums import BlockedRows, SumRows, SumRowsPerFold
from ..blocks.totals import Counts, Loss, QueryTotals
from ..core.features import Features, Identity, Nystroem, Projected
from ..core.gains import LINEAR, gains_of
from ..core.penalty import per_deviation
from ..core.queries import Queries
from ..core.statistics import Statistics
from ..kernels import Precomputed, as_kernel
from ..metrics import Metric, get_metric
from ..problems import choice
from ..problems.base import Model
from ..problems.choice import Choice, Judged, Setting
from ..problems.signed import signed_models
from ..problems.solved import Solved, mean_eigenvalue, model_at, needs_rows
from ..system import memory
from ..system.limits import limits
from ..system.seeds import seed_of
from ..system.types import Path
from ..system.warnings import warn
from .results import Learned, RankRLSFit, Seen, Selected, Weights
from .ridge_ranker import RidgeRanker
from .training import Training, is_scalable


@dataclass(frozen=True)
class CountedRows:
    """Rows in blocks, and the totals of their queries as far as they are known."""

    blocks: BlockedRows
    counts: dict[Loss, Counts] = field(default_factory=dict)
    known: dict[Loss, QueryTotals] = field(default_factory=dict)

    def totals(self, loss: Loss) -> QueryTotals | None:
        """What blocks must know of each other; None where no query lies in two of them."""
        if self.blocks.whole:
            return None
        if loss not in self.known:
            self.counts[loss] = self.blocks.labels(CountLabels(loss))
            self.known[loss] = QueryTotals.of(self.counts[loss], loss, split=self.blocks.stable)
        return self.known[loss]

    def moved(self, loss: Loss, sums: Statistics) -> bool:
        """Whether blocks have changed since the labels were read: then some query was cut anew, and counted twice.

        If so, the totals list all queries from now on, which is right for any blocks.
        """
        if self.blocks.whole:
            return False
        counts = self.counts[loss]
        if sums.n_rows != counts.n_rows:
            raise ValueError(
                f"there were {counts.n_rows} rows in the first pass and {sums.n_rows} in the next one: the rows "
                "must be the same in every pass. Write them to files first, or keep them in memory"
            )
        moved = sums.n_queries != counts.n_queries
        if moved:
            self.known[loss] = QueryTotals.of(counts, loss)
        return moved


@dataclass(frozen=True)
class CountLabels:
    """A block -> its counts under a loss."""

    loss: Loss

    def __call__(self, block: Block) -> Counts:
        return Counts.of(self.loss.recoded(block), tied=self.loss.tied)


@dataclass(frozen=True)
class BlockSetup:
    """One way to set up the problem: features and loss."""

    rows: CountedRows
    data: Training  # kernel and basis points; the rows are elsewhere
    features: Features
    loss: Loss
    n_folds: int | None
    given: Any = None  # alphas to choose from; None for a grid fitted to the data

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
        """The units in which columns are penalised; None for those they have."""
        if self.data.kernel is not None:
            return getattr(self.data.kernel, "scale", None)
        return per_deviation(self.W) if self.W is not None else None

    def model(self, alpha: float) -> Model:
        if self.data.signs is not None:
            return signed_models(self.sums, np.array([alpha]), self.data.signs, W=self.W)[0]
        return model_at(alpha, self.sums, self.W, self.dtype, self._readable)

    @property
    def _readable(self) -> BlockSetup | None:
        """These rows, if they can be looked at once more."""
        return None if self.rows.blocks.once else self

    def look(self, V: np.ndarray) -> Statistics:
        """The sums in some directions, for directions that rounding of all sums hides: one more pass."""
        return self._pass(SumRows(Projected(self.features, V), self.rows.totals(self.loss), self.loss, self.dtype))

    def gradient(self, model: Model) -> np.ndarray:
        """A'(z - A w), the sums of the residuals with the features: one more pass."""
        return self._pass(SumRows(self.features, self.rows.totals(self.loss), self.loss, self.dtype, model)).cross

    def _pass(self, sum_rows: SumRows) -> Statistics:
        found = self.rows.blocks.sum(sum_rows, "refinement").finished(sum_rows.totals, self.loss)
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
        """Whether the grid of alphas is ours to extend."""
        return self.given is None

    def judge(self, folds: object, metric: Metric, alphas: np.ndarray | None = None) -> Judged:
        """The mean held-out score of every alpha, and its error over queries."""
        alphas = self.alphas if alphas is None else alphas
        sums, blocks = self.sums, self.rows.blocks
        _check_sums(sums)
        if sums.n_queries < 2:
            raise ValueError(
                'what is "auto" is chosen by holding out whole queries, and there is only one: name the column of '
                "query ids by qid=, or leave nothing to choose"
            )
        settings = [Setting(alpha=float(alpha)) for alpha in alphas]
        if self.n_folds is not None and blocks.once:
            warn(
                "the rows can be read only once: alpha is chosen by the held-out loss of the folds, not by "
                f"{metric.name}; give a function that returns a new iterator to choose by that",
            )
            loss = self.held_out_loss(alphas) / sums.n_queries
            return Judged(settings, -loss if metric.greater_is_better else loss, np.full(len(loss), np.nan))
        held = self.held_out(alphas, metric)
        if not held.count:
            raise ValueError(f"no query defines {metric.name}: it needs two rows of different y in a query")
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
        by_fold = LeaveFoldOut(self._fold_models(alphas), self.features, metric, self.dtype)
        return self.rows.blocks.sum_by_query(by_fold, totals, "held-out folds")

    def held_out_loss(self, alphas: np.ndarray) -> np.ndarray:
        """(k,) the loss of each fold under the model of all others, added up: no second look at the rows."""
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
            if self.data.signs is not None:
                found.append(signed_models(self.sums - part, alphas, self.data.signs, W=self.W))
                continue
            solved = Solved.of(self.sums - part, self.W, self.dtype)
            found.append([solved.model(alpha) for alpha in alphas])
        return found


def seen(rows: Source | BlockedRows) -> Seen:
    """The columns of rows that are read in blocks."""
    return Seen.of(rows.n_columns, rows.names)


def fit_source(model: RidgeRanker, source: Source, checkpoint: Path | None) -> RankRLSFit:
    """Fit to a source that is read in blocks; an interrupted fit resumes from the file `checkpoint`."""
    about = {"source": source.describe(), "model": repr(model), **{k: repr(v) for k, v in model.get_params().items()}}
    if checkpoint is not None:
        about["rows"] = source.fingerprint()
    state = Checkpoint(checkpoint, json.dumps(about))
    found = fit_rows(model, SourceRows(source, state))
    state.remove()
    return found


def fit_rows(model: RidgeRanker, blocks: BlockedRows) -> RankRLSFit:
    """Fit to rows in blocks; `model` has the parameters."""
    if blocks.n_targets > 1 and model.tied_pairs is not True:
        checks.check_targets(np.empty((1, blocks.n_targets)), tied_pairs=model.tied_pairs)
    if model.store_path:
        raise ValueError(
            "store_path keeps held-out scores of rows in memory, and these are read in blocks: leave it out"
        )
    auto = isinstance(model.alpha, str)
    ties = (True, False) if model.tied_pairs == "auto" else (bool(model.tied_pairs),)
    kernels = _with_kernels(model, blocks)
    gains = gains_of(model.gain)
    to_choose = auto or len(kernels) * len(ties) * len(gains) > 1
    rows, n_folds = CountedRows(blocks), _n_folds(model.cv) if to_choose else None
    metric = get_metric(model.scoring)
    candidates = (
        BlockSetup(
            rows,
            data,
            features_of(data, blocks.n_columns),
            Loss(model.weighting, float(model.regression), tied, gain),
            n_folds,
            model.alphas if auto else [model.alpha],
        )
        for gain in gains
        for data in kernels
        for tied in ties
    )
    if to_choose:
        chosen = choice.choose(candidates, n_folds, metric)
    else:
        chosen = Choice.only(next(candidates), Setting(alpha=float(model.alpha)))
    setup, alpha = chosen.candidate, chosen.setting.alpha
    _check_sums(setup.sums)
    learned = Learned(
        alpha,
        setup.loss.tied,
        n_queries=setup.sums.n_queries,
        n_pairs=setup.sums.n_pairs,
        statistics=setup.sums,
        weighting=model.weighting,
        scale=setup.scale,
        gain=setup.loss.gain,
    )
    weights = Weights.of(setup.model(alpha), setup.data, model.regression)
    if not auto:
        return weights, learned, Selected()
    criterion = ("minus the loss" if metric.greater_is_better else "loss") if blocks.once else None
    return weights, learned, Selected(chosen.alphas, chosen.scores, chosen.errors, criterion)


def more_sums(model: RidgeRanker, source: Source) -> tuple[Statistics, Training]:
    """The sums of further rows for a fitted model, and its kernel and points."""
    _check_same_features(model, source)
    none = np.empty((0, source.n_columns), dtype=source.dtype)
    y, queries = _no_rows(source.n_targets)
    data = Training(none, y, queries, flat=source.n_targets == 1, scaled=model.scale is not None)
    if model.kernel is not None:
        data = replace(data, kernel=model.kernel_, points=model.X_fit_)
    loss = Loss(model.weighting, float(model.regression), model.tied_pairs_, getattr(model, "gain_", LINEAR))
    rows = CountedRows(SourceRows(source))
    return BlockSetup(rows, data, features_of(data, source.n_columns), loss, None).sums, data


def combined(before: Statistics | None, sums: Statistics, alpha: float, *, learn: bool) -> Statistics:
    """The sums so far and those of more rows, or less those of rows to forget; refused where digits would be lost."""
    checks.check_no_overflow(sums)
    if before is None:
        return sums
    if sums.cross.shape[1] != before.cross.shape[1]:
        raise ValueError(f"the model has {before.cross.shape[1]} targets, these rows have {sums.cross.shape[1]}")
    after = before + sums if learn else before - sums
    checks.check_no_overflow(after)
    if not learn:
        checks.check_sums(after, before)
        if after.n_rows == 0:
            return before.emptied()
        checks.check_forgettable(after, before, alpha)
    return after


def check_same_loss(model: RidgeRanker) -> None:
    """Sums of different losses cannot be added."""
    before = {"weighting": getattr(model, "weighting_", model.weighting), "tied_pairs": model.tied_pairs_}
    before["gain"] = getattr(model, "gain_", LINEAR)
    if model.statistics_ is not None:
        before["regression"] = model.statistics_.beta
    for name, value in before.items():
        now = getattr(model, name)
        now = LINEAR if name == "gain" and now is None else now
        if now != value and not (name in ("tied_pairs", "gain") and now == "auto"):
            raise ValueError(
                f"the model was fitted with {name}={value!r}, and now it is {now!r}: queries can be added and "
                "forgotten only under the same loss. Set it back, or call fit with all rows"
            )


def _check_same_features(model: RidgeRanker, source: Source) -> None:
    if source.n_columns != model.n_features_in_:
        raise ValueError(f"the model has {model.n_features_in_} features, these rows have {source.n_columns}")
    known = getattr(model, "feature_names_in_", None)
    if known is None or source.names is None:
        return
    for number, (mine, theirs) in enumerate(zip(known, source.names, strict=True)):
        if mine != theirs:
            raise ValueError(
                f"feature {number} of the model is {mine!r}, of these rows {theirs!r}: "
                "give the columns the model was fitted to, in the same order"
            )


def penalty(data: Training, sums: Statistics, features: Features) -> np.ndarray | None:
    """W of the penalty ||W^-1 w||^2: columns in units of their spread, or the norm of the features."""
    return per_deviation(sums.deviation) if data.scaled and data.kernel is None else features.W


def features_of(data: Training, n_columns: int) -> Features:
    """The columns, or the kernel to the basis points."""
    return Identity(n_columns) if data.kernel is None else Nystroem(data.kernel, data.points)


def _with_kernels(model: RidgeRanker, blocks: BlockedRows) -> list[Training]:
    """The kernels to choose from with their basis points, which are drawn from a sample of the rows."""
    if model.kernel is None:
        if blocks.n_columns > limits.gram_columns:
            memory.check_memory(
                4 * 8 * blocks.n_columns**2, f"a matrix of {blocks.n_columns} features", "take fewer of them"
            )
        signs = checks.check_signs(model.positive, blocks.n_columns, blocks.names)
        return [replace(_rows(blocks), scaled=model.scale is not None, signs=signs)]
    kernel = as_kernel(model.kernel)
    basis = model.basis
    if basis is None or isinstance(kernel, Precomputed) or bases.are_numbers(basis):
        raise ValueError(
            "a kernel model of rows that are read in blocks is expanded in a few points: pass basis= a number, an "
            f"object of rankrls.bases or the points themselves; got kernel={model.kernel!r}, basis={basis!r}"
        )
    seed = seed_of(model.random_state)
    drawn = isinstance(basis, bases.Basis) or bases.is_count(basis)
    scaled = model.scale is not None and is_scalable(kernel)
    if not (drawn or scaled or isinstance(getattr(kernel, "gamma", None), str)):
        return _rows(blocks).with_kernels(kernel, basis, seed)
    sample = blocks.sample(bases.Draw.of(basis, seed))
    rows = replace(_rows(blocks), X=sample.rows.X, weights=sample.rows.weights)
    return [rows.with_kernels(one, basis, seed)[0] for one in sample.kernels(kernel, scaled=scaled)]


def _rows(blocks: BlockedRows) -> Training:
    """No rows, of the kind that the blocks have."""
    none = np.empty((0, blocks.n_columns), dtype=blocks.dtype)
    return Training(none, *_no_rows(blocks.n_targets), flat=blocks.n_targets == 1)


def _no_rows(n_targets: int) -> tuple[np.ndarray, Queries]:
    nothing = np.empty(0, dtype=np.intp)
    return np.empty((0, n_targets)), Queries(nothing, nothing)


def _n_folds(cv: object) -> int | None:
    """Folds of queries; None leaves out each query in turn."""
    if isinstance(cv, str):
        checks.check_choice("cv", cv, ("leave-query-out",))
        return None
    if isinstance(cv, bool) or not isinstance(cv, (int, np.integer)) or cv < 2:
        raise ValueError(
            f'rows read in blocks are held out by cv="leave-query-out" or by a number of folds, got {cv!r}'
        )
    return int(cv)


def _check_sums(sums: Statistics) -> None:
    checks.check_no_overflow(sums)
    if sums.beta == 0 and not np.any(sums.square > 0):
        raise ValueError(
            f"no comparable pair: none of the {sums.n_queries} queries has two rows with different y among "
            f"{sums.n_rows} samples; is qid the query id, and not a row or document id?"
        )
