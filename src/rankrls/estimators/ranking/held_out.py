"""Held-out scores of a model after queries or pairs were added or removed, from the rows and sums it keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg

from ...core.features import Projected
from ...core.noise import noise_of
from ...core.preferences import QueryPreferences
from ...core.statistics import Statistics
from ...metrics import get_metric
from ...problems import choice
from ...problems.choice import Choice, Setting
from ...problems.constrained import Preferred
from ...problems.primal import Primal
from ..rows.intake import folds_of
from ..rows.training import Selected, Training
from .base import RidgeRanker
from .setup import setup_again


def held_out_later(model: RidgeRanker) -> Selected | None:
    """The held-out scores of every alpha, from the rows a model keeps; None if there are too few."""
    history = vars(model).get("_history")
    if history is None or not history.parts:
        return None if history is None else history.of_pairs
    data = history.joined()
    try:
        return None if data is None else held_out_again(model, data)
    except ValueError:  # the metric is not defined for any query
        return None


def noise_later(model: RidgeRanker) -> Selected | None:
    """The noise of held-out scores of a model with a given alpha, from the rows it keeps; None if there are too few."""
    history = vars(model).get("_history")
    data = None if history is None else history.joined()
    setup = None if data is not None else setup_again(model, model.alpha_)
    if data is None and (setup is None or not setup.data.flat):
        return None
    try:
        if data is not None:
            return Selected(noise=held_out_again(model, data).noise)
        assert setup is not None
        predictions = setup.judge(model.cv, get_metric(model.scoring)).predictions
    except ValueError:  # too few rows for folds, or for the metric
        return None
    assert predictions is not None
    return Selected(noise=noise_of(setup.data.y[:, 0], predictions[:, 0, 0], setup.data.queries))


def held_out_again(model: RidgeRanker, data: Training) -> Selected:
    """The held-out scores of every alpha for a model whose sums include these rows: queries are left out, pairs stay.

    With V a basis of the directions that exact pairs leave free, and w0 the smallest weights that satisfy them,
    w = w0 + V v: the same problem with columns X V and targets y - X w0.
    """
    if hasattr(model, "kernel_"):
        data = replace(data, kernel=model.kernel_, points=model.X_fit_)
    y = None if model.tied_pairs_ else data.y[:, 0]
    F = QueryPreferences(
        data.queries, y, weighting=model.weighting, regression=float(model.regression), weights=data.weights
    )
    problem: Any = data.primal(F, data.y) if data.signs is None else data.problem(F)
    pairs, offset = getattr(model, "pairs_", None), np.zeros((len(data.y), 1, 1))
    sums = model.statistics_
    assert sums is not None
    extra = None if pairs is None else pairs.added(sums.emptied())
    problem = replace(problem, total=sums, extra=extra, units=getattr(model, "scale_", None))
    if pairs is not None and pairs.exact.any():
        problem, offset = _within(problem, pairs.take(pairs.exact))
    alphas, metric = vars(model).get("alphas_", np.array([model.alpha_])), get_metric(model.scoring)
    folds, groups = None, data.queries
    if isinstance(model.cv, int | np.integer) and len(data.queries) > 2:
        folds, groups = folds_of(min(model.cv, len(data.queries)), data)
    settings = [Setting(alpha=float(alpha)) for alpha in alphas]
    judged = choice.judge(
        lambda layer: problem.leave_out(layer, alphas) + offset, settings, data.truth, folds, groups, metric
    )
    best = int(np.argmin(np.abs(np.log(alphas / model.alpha_))))
    assert judged.predictions is not None
    found = Choice(None, settings, judged.scores, judged.errors, judged.predictions[:, best].copy(), best)
    return Selected.of(found, data)


def _within(problem: Primal, exact: Preferred) -> tuple[Primal, np.ndarray]:
    """The problem among weights for which exact pairs hold, and the scores (m, 1, 1) of the smallest such weights."""
    W = problem.W
    n = exact.difference.shape[1]
    W = np.eye(n) if W is None else np.diag(W) if W.ndim == 1 else W
    A = exact.difference @ W
    w0 = W @ np.linalg.lstsq(A, exact.margin, rcond=None)[0]
    V = W @ linalg.null_space(A, rcond=1e-10)
    offset = np.asarray(problem.features.reader(problem.X)()(np.arange(len(problem.y))) @ w0)
    features, y = Projected(problem.features, V), problem.y - offset[:, None]
    total, extra = (None if sums is None else _moved(sums, V, w0) for sums in (problem.sums, problem.extra))
    return Primal(problem.F, features, problem.X, y, problem.dtype, total=total, extra=extra), offset[:, None, None]


def _moved(sums: Statistics, V: np.ndarray, w0: np.ndarray) -> Statistics:
    """The sums in the coordinates v of w = w0 + V v."""
    gram, cross = replace(sums, cross=sums.cross - (sums.gram @ w0)[:, None]).whitened(V)
    means: dict[str, Any] = {"mean": sums.mean @ V, "target_mean": sums.target_mean - sums.mean @ w0}
    return replace(sums, gram=gram, cross=cross, rounding=None, **means)
