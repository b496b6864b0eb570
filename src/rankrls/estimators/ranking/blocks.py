"""Fit RankRLS to rows in blocks. These functions return what the estimator stores; they do not write to it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from ... import bases, checks
from ...blocks.checkpoint import Checkpoint
from ...blocks.reading import SourceRows
from ...blocks.sources import Source
from ...blocks.sums import BlockedRows
from ...blocks.totals import Loss
from ...core.fused import for_size
from ...core.queries import Queries
from ...core.statistics import Statistics
from ...core.weighting import LINEAR, gains_of
from ...kernels import Precomputed, as_kernel
from ...metrics import Metric, get_metric
from ...problems import choice
from ...problems.choice import Choice, Setting
from ...system import memory
from ...system.limits import limits
from ...system.seeds import seed_of
from ...system.types import Path
from ..rows.blocks import BlockSetup, CountedRows, check_learnable, features_of
from ..rows.training import Learned, RankRLSFit, Seen, Selected, Training, Weights, is_scalable
from .base import RidgeRanker


def seen(rows: Source | BlockedRows) -> Seen:
    """Number and names of the columns of rows in blocks."""
    return Seen.of(rows.n_columns, rows.names)


def fit_source(model: RidgeRanker, source: Source, checkpoint: Path | None) -> RankRLSFit:
    """Fit to a source that is read in blocks; an interrupted fit resumes from the file `checkpoint`."""
    about = {"source": source.describe(), "model": repr(model), **{k: repr(v) for k, v in model.get_params().items()}}
    if checkpoint is not None:
        about["rows"] = source.fingerprint()
    state = Checkpoint(checkpoint, json.dumps(about))
    with for_size(float(source.n_rows or 0) * source.n_columns):
        found = fit_rows(model, SourceRows(source, state))
    state.remove()
    return found


def fit_rows(model: RidgeRanker, blocks: BlockedRows) -> RankRLSFit:
    """Fit to rows in blocks; `model` has the parameters."""
    _check_blocked(model, blocks)
    auto = isinstance(model.alpha, str)
    rows, settings = CountedRows(blocks), _settings(model, blocks)
    to_choose = auto or len(settings) > 1
    n_folds, metric = _n_folds(model.cv) if to_choose else None, get_metric(model.scoring)
    alphas = model.alphas if auto else [model.alpha]
    candidates = (
        BlockSetup(rows, data, features_of(data, blocks.n_columns), loss, n_folds, alphas) for data, loss in settings
    )
    if to_choose:
        chosen = choice.choose(candidates, n_folds, metric)
    else:
        chosen = Choice.only(next(candidates), Setting(alpha=float(model.alpha)))
    setup, alpha = chosen.candidate, chosen.setting.alpha
    check_learnable(setup.sums)
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
    return weights, learned, _selected(chosen, metric, blocks) if auto else Selected()


def _settings(model: RidgeRanker, blocks: BlockedRows) -> list[tuple[Training, Loss]]:
    """The kernels and losses to choose from."""
    kernels = with_kernels(model, blocks)
    return [
        (data, Loss(model.weighting, float(model.regression), tied, gain))
        for gain in gains_of(model.gain)
        for data in kernels
        for tied in ((True, False) if model.tied_pairs == "auto" else (bool(model.tied_pairs),))
    ]


def _selected(chosen: Choice, metric: Metric, blocks: BlockedRows) -> Selected:
    """How alpha was chosen: by the loss if the rows can be read only once."""
    criterion = ("minus the loss" if metric.greater_is_better else "loss") if blocks.once else None
    held_out, k = chosen.candidate.noise.get(chosen.setting.alpha, (None, 0))
    noise = None if held_out is None else held_out.at(k)
    return Selected(chosen.alphas, chosen.scores, chosen.errors, criterion, noise=noise)


def _check_blocked(model: RidgeRanker, blocks: BlockedRows) -> None:
    if blocks.n_targets > 1 and model.tied_pairs is not True:
        checks.check_targets(np.empty((1, blocks.n_targets)), tied_pairs=model.tied_pairs)
    if model.store_path:
        raise ValueError("store_path needs rows in memory, and these are read in blocks: leave it out")


def more_sums(model: RidgeRanker, source: Source) -> tuple[Statistics, Training]:
    """The sums of more rows for a fitted model, and its kernel and points."""
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
    """The sums so far plus those of more rows, or minus those of rows to forget; an error if digits would be lost."""
    checks.check_no_overflow(sums)
    if before is None:
        return sums
    if sums.cross.shape[1] != before.cross.shape[1]:
        raise ValueError(f"the model has {before.cross.shape[1]} targets, but these rows have {sums.cross.shape[1]}")
    after = before + sums if learn else before - sums
    checks.check_no_overflow(after)
    if not learn:
        checks.check_sums(after, before)
        if after.n_rows == 0:
            return before.emptied()
        checks.check_forgettable(after, before, alpha)
    return after


SAME_LOSS = (
    "queries can be added and forgotten only under the same loss and kernel. Set it back, or call fit with all rows"
)


def check_same_loss(model: RidgeRanker) -> None:
    """Raise an error if the model's loss has changed: sums of different losses cannot be added."""
    before = {"weighting": getattr(model, "weighting_", model.weighting), "tied_pairs": model.tied_pairs_}
    if model.gain is not None or getattr(model, "gain_", LINEAR) != LINEAR:
        before["gain"] = getattr(model, "gain_", LINEAR)
    if model.statistics_ is not None:
        before["regression"] = model.statistics_.beta
    checks.check_unchanged(model, before, SAME_LOSS)
    checks.check_same_kernel(model.kernel, vars(model).get("kernel_"), SAME_LOSS)


def _check_same_features(model: RidgeRanker, source: Source) -> None:
    if source.n_columns != model.n_features_in_:
        raise ValueError(f"the model has {model.n_features_in_} features, but these rows have {source.n_columns}")
    known = getattr(model, "feature_names_in_", None)
    if known is None or source.names is None:
        return
    for number, (mine, theirs) in enumerate(zip(known, source.names, strict=True)):
        if mine != theirs:
            raise ValueError(
                f"feature {number} is {mine!r} in the model, but {theirs!r} in these rows: "
                "pass the columns the model was fitted to, in the same order"
            )


def with_kernels(model: RidgeRanker, blocks: BlockedRows) -> list[Training]:
    """The candidate kernels with their basis points, which are drawn from a sample of the rows."""
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
            "a kernel model of rows that are read in blocks needs a basis: pass a number, an object of rankrls.bases "
            f"or the points themselves as basis=; got kernel={model.kernel!r}, basis={basis!r}"
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
    """Training data for kernels and points, with the columns of the blocks but no rows."""
    none = np.empty((0, blocks.n_columns), dtype=blocks.dtype)
    return Training(none, *_no_rows(blocks.n_targets), flat=blocks.n_targets == 1)


def _no_rows(n_targets: int) -> tuple[np.ndarray, Queries]:
    nothing = np.empty(0, dtype=np.intp)
    return np.empty((0, n_targets)), Queries(nothing, nothing)


def _n_folds(cv: object) -> int | None:
    """The number of folds of queries; None leaves out each query in turn."""
    if isinstance(cv, str):
        checks.check_choice("cv", cv, ("leave-query-out",))
        return None
    if isinstance(cv, bool) or not isinstance(cv, (int, np.integer)) or cv < 2:
        raise ValueError(f'for rows read in blocks, cv must be "leave-query-out" or a number of folds, got {cv!r}')
    return int(cv)
