"""What hold-out says of a model after queries or pairs came or went: the rows it keeps, left out of the sums it has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg

from ..core.features import Projected
from ..core.penalty import whitened
from ..core.preferences import QueryPreferences
from ..core.statistics import Statistics
from ..metrics import get_metric
from ..problems import choice
from ..problems.choice import Choice, Setting
from ..problems.constrained import Preferred
from ..problems.primal import Primal
from .folds import folds_of
from .results import Selected
from .ridge_ranker import RidgeRanker
from .training import Training


def held_out_again(model: RidgeRanker, data: Training) -> Selected:
    """What hold-out says of every alpha of a model with these rows among its sums: pairs stay in, queries are left out.

    With V a basis of the directions that pairs demanded exactly leave free, and w0 the least weights that meet them,
    w = w0 + V v: the same problem in the columns X V, of y less what w0 gives.
    """
    if hasattr(model, "kernel_"):
        data = replace(data, kernel=model.kernel_, points=model.X_fit_)
    y = None if model.tied_pairs_ else data.y[:, 0]
    F = QueryPreferences(
        data.queries, y, weighting=model.weighting, regression=float(model.regression), weights=data.weights
    )
    problem: Any = data.primal(F, data.y) if data.signs is None else data.problem(F)
    problem = replace(problem, total=model.statistics_, units=getattr(model, "scale_", None))
    pairs, offset = getattr(model, "pairs_", None), np.zeros((len(data.y), 1, 1))
    if pairs is not None and pairs.exact.any():
        problem, offset = _within(problem, pairs.take(pairs.exact))
    alphas, metric = model.alphas_, get_metric(model.scoring)
    cv = model.cv if isinstance(model.cv, int | np.integer) else "leave-query-out"
    folds, groups = folds_of(cv, data)
    settings = [Setting(alpha=float(alpha)) for alpha in alphas]
    judged = choice.judge(
        lambda layer: problem.leave_out(layer, alphas) + offset, settings, data.truth, folds, groups, metric
    )
    best = int(np.argmin(np.abs(np.log(alphas / model.alpha_))))
    assert judged.predictions is not None
    found = Choice(None, settings, judged.scores, judged.errors, judged.predictions[:, best].copy(), best)
    return Selected.of(found, data)


def _within(problem: Primal, exact: Preferred) -> tuple[Primal, np.ndarray]:
    """The problem among weights for which some pairs hold exactly, and the scores (m, 1, 1) of the least of them."""
    W = problem.W
    n = exact.difference.shape[1]
    W = np.eye(n) if W is None else np.diag(W) if W.ndim == 1 else W
    A = exact.difference @ W
    w0 = W @ np.linalg.lstsq(A, exact.margin, rcond=None)[0]
    V = W @ linalg.null_space(A, rcond=1e-10)
    offset = np.asarray(problem.features.reader(problem.X)()(np.arange(len(problem.y))) @ w0)
    sums = problem.sums
    gram, cross = whitened(replace(sums, cross=sums.cross - (sums.gram @ w0)[:, None]), V)
    moved = _moved(sums, gram, cross, V, w0)
    rest = Primal(
        problem.F, Projected(problem.features, V), problem.X, problem.y - offset[:, None], problem.dtype, total=moved
    )
    return rest, offset[:, None, None]


def _moved(sums: Statistics, gram: np.ndarray, cross: np.ndarray, V: np.ndarray, w0: np.ndarray) -> Statistics:
    means: dict[str, Any] = {"mean": sums.mean @ V, "target_mean": sums.target_mean - sums.mean @ w0}
    return replace(sums, gram=gram, cross=cross, rounding=None, **means)
