"""Fit estimators that need only sums over rows to the partitions of a cluster."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from ..auto import AutoRanker
from ..estimators import CoRankRLS, RankRLS, TransductiveRankRLS
from ..estimators.transduction.blocks import TransductiveBlocks
from ..estimators.views.blocks import JointBlocks
from .partitions import Partitions, is_encoded


def fit(estimator: BaseEstimator, parts: Partitions) -> Any:
    """Fit an estimator to partitions; an encoder of tables before it first learns from all of them."""
    if is_encoded(estimator) and len(estimator.steps) == 2:
        (_, encoder), (_, ranker) = estimator.steps
        fit(ranker, encoder.fit_transform(parts))
        return estimator
    if isinstance(estimator, (RankRLS, AutoRanker)):
        return estimator.fit(parts)
    if isinstance(estimator, CoRankRLS):
        return estimator.fit(JointBlocks(parts))
    if isinstance(estimator, TransductiveRankRLS):
        return estimator.fit(TransductiveBlocks(parts))
    raise TypeError(
        f"{type(estimator).__name__} cannot be fitted on a cluster. RankRLS and TransductiveRankRLS can (linear, or "
        "with a kernel and basis=), AutoRanker and CoRankRLS too, alone or after a TableEncoder in a pipeline. Fit "
        "others to rows in memory; predict works on a cluster for all of them"
    )
