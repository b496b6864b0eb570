"""`cv="leave-pair-out"`: pairs of items of one query, each ranked by a model that saw neither."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ...core.features import Nystroem
from ...core.preferences import QueryPreferences
from ...core.symmetric import per_deviation
from ...metrics import Metric
from ...problems.choice import Judged, Setting
from ...problems.leave_pair_out import OneQuery
from ...system import memory
from ..rows.training import Training, multiplied

LEAVE_PAIR_OUT = "leave-pair-out"
MEASURES = ("pairwise_accuracy", "auc", "disagreement_error")


def leave_pair_out(
    data: Training, F: QueryPreferences, scale: np.ndarray | None, metric: Metric, alphas: np.ndarray
) -> Judged:
    """The share of pairs in the right order for every alpha; `scale` holds the units of the columns."""
    _check(data, metric)
    features, K = items_of(data, scale)
    tied, relevant = F.y is None, 1.0 if metric.name == "auc" else None
    right = [OneQuery(features, K, y, F.weighting.kind, F.beta, tied).accuracy(alphas, relevant) for y in data.y.T]
    scores = np.mean(right, axis=0)
    settings = [Setting(alpha=float(alpha)) for alpha in alphas]
    errors = np.full(len(alphas), np.nan)  # pairs share items, so there is no standard error
    return Judged(settings, scores if metric.greater_is_better else 1 - scores, errors)


def _check(data: Training, metric: Metric) -> None:
    """Raise an error if leave-pair-out does not apply."""
    if len(data.queries) > 1:
        raise ValueError(
            f'cv="leave-pair-out" is for the items of one query, but there are {len(data.queries)}: '
            'use "leave-query-out"'
        )
    if metric.name not in MEASURES:
        raise ValueError(
            f'cv="leave-pair-out" counts pairs in the right order: scoring must be one of {", ".join(MEASURES)}, '
            f"got {metric.name!r}"
        )
    if data.weights is not None and np.ptp(data.weights) > 0:
        raise ValueError('cv="leave-pair-out" needs items of equal weight: leave sample_weight out')
    if data.signs is not None:
        raise ValueError('cv="leave-pair-out" cannot be combined with positive=: use a number of folds')


def items_of(data: Training, scale: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Features whose penalty is ||w||^2, or the kernel matrix where there are fewer items than features."""
    m = data.X.shape[0]
    memory.check_memory(8 * 8 * m**2, f"all pairs of {m} items", "use cv=10")
    if data.kernel is not None and data.points is None:
        return None, data.K
    if data.kernel is not None:
        space = Nystroem(data.kernel, data.points)
        return np.asarray(space.reader(data.X)()(slice(None)), dtype=np.float64) @ space.W, None
    X = data.X if scale is None else multiplied(data.X, per_deviation(scale))
    X = X.astype(np.float64)
    if X.shape[1] <= m:
        return X.toarray() if sparse.issparse(X) else X, None
    K = X @ X.T
    return None, K.toarray() if sparse.issparse(K) else K
