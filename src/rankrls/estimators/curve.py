"""The held-out scores by which a fitted model was chosen, as one curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..metrics import get_metric
from .pipelines import ranker_of


@dataclass(frozen=True)
class Curve:
    """Held-out scores along a path."""

    over: str  # alpha, n_basis
    values: np.ndarray
    scores: np.ndarray
    chosen: int
    errors: np.ndarray | None = None

    @property
    def score(self) -> float:
        return float(self.scores[self.chosen])

    def record(self) -> dict[str, Any]:
        """For JSON."""
        found = {self.over: self.values, "scores": self.scores, "chosen": self.values[self.chosen]}
        return found if self.errors is None else {**found, "standard_errors": self.errors}


def curve_of(model: BaseEstimator) -> Curve | None:
    """The held-out score of each alpha (at the chosen nu) or of each size; None if nothing was chosen."""
    ranker = ranker_of(model)
    path = getattr(ranker, "path_", None)
    if path is not None:
        sizes = np.arange(1, 1 + (0 if path.scores is None else len(path.scores)))
        size = int(ranker.n_basis_)
        return Curve("n_basis", sizes, path.scores, size - 1, path.score_errors) if 0 < size <= len(sizes) else None
    if hasattr(ranker, "iterations_"):
        return Curve("iterations", ranker.iterations_, ranker.cv_scores_, int(ranker.n_iter_) - 1)
    ranker = getattr(ranker, "inductive_", ranker)
    if not hasattr(ranker, "cv_scores_") or not hasattr(ranker, "alphas_"):
        return None
    scores, errors = ranker.cv_scores_, getattr(ranker, "cv_errors_", None)  # missing in older model files
    if scores.ndim == 2 and hasattr(ranker, "target_alphas_"):
        scores = scores[:, int(np.argmin(np.abs(ranker.target_alphas_ - ranker.target_alpha_)))]
    elif scores.ndim == 2:
        row = int(np.argmin(np.abs(ranker.nus_ - ranker.nu_)))
        scores, errors = scores[row], None if errors is None else errors[row]
    chosen = int(np.argmin(np.abs(ranker.alphas_ - ranker.alpha_)))
    return Curve("alpha", np.asarray(ranker.alphas_), scores, chosen, errors)


def scoring_name(ranker: BaseEstimator) -> str:
    """The metric by which a ranker chose."""
    ranker = getattr(ranker, "inductive_", ranker)
    return getattr(ranker, "cv_criterion_", None) or get_metric(ranker.scoring).name
