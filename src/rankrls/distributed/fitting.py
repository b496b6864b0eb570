"""Estimators that are sums over rows, fitted to the partitions of a cluster."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from ..auto import AutoRanker
from ..estimators import CoRankRLS, RankRLS
from ..estimators.joint_blocks import JointBlocks
from .partitions import Partitions, is_encoded


def fit(estimator: BaseEstimator, parts: Partitions) -> Any:
    """Fit an estimator to partitions; an encoder of tables before it learns from all of them first."""
    if is_encoded(estimator) and len(estimator.steps) == 2:
        (_, encoder), (_, ranker) = estimator.steps
        fit(ranker, encoder.fit_transform(parts))
        return estimator
    if not isinstance(estimator, (RankRLS, CoRankRLS, AutoRanker)):
        raise TypeError(
            f"{type(estimator).__name__} is not fitted on a cluster: RankRLS is, linear or with a kernel and basis=, "
            "and AutoRanker and CoRankRLS, each alone or after a TableEncoder in a pipeline. Fit others on rows in "
            "memory; predict works on a cluster for all of them"
        )
    if isinstance(estimator, (RankRLS, AutoRanker)):
        return estimator.fit(parts)
    return estimator.fit(JointBlocks(parts), None)
