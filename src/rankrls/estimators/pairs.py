"""RankRLS from explicit preferences: pairs of rows instead of scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import checks
from ..core.pairs import PairPreferences
from ..core.penalty import per_spread
from ..metrics import Metric
from ..problems import choice
from ..problems.choice import Judged, Setting
from ..problems.primal import Primal
from ..system import memory
from .training import Training


@dataclass(frozen=True)
class PairSetup:
    """The problem of explicit pairs under one kernel."""

    data: Training
    problem: Primal
    given: Any  # alphas to choose from; None for a grid fitted to the data

    @classmethod
    def of(cls, data: Training, F: PairPreferences, margins: np.ndarray, given: object) -> PairSetup:
        if data.kernel is not None and data.points is None:  # all rows: pairs may outnumber them
            m = data.X.shape[0]
            memory.check_memory(4 * 8 * m**2, f"a model expanded in all {m} rows", "pass basis=")
            data = replace(data, points=data.X)
        return cls(data, data.primal(F, margins[:, None]), given)

    @cached_property
    def alphas(self) -> np.ndarray:
        if self.given is not None:
            return checks.check_grid("alphas", self.given)
        return choice.default_alphas(self.problem.mean_eigenvalue)

    @property
    def scale(self) -> np.ndarray | None:
        """The units in which columns are penalised; None for those they have."""
        if self.data.kernel is not None:
            return getattr(self.data.kernel, "scale", None)
        return per_spread(self.problem.W) if self.problem.W is not None else None

    @property
    def extends(self) -> bool:
        """Whether the grid of alphas is ours to extend."""
        return self.given is None

    def judge(self, folds: object, metric: Metric, alphas: np.ndarray | None = None) -> Judged:
        """The share of held-out pairs in the right order, for every alpha."""
        alphas = self.alphas if alphas is None else alphas
        settings = [Setting(alpha=float(alpha)) for alpha in alphas]
        scores = choice.pair_scores(self.problem, alphas)
        return Judged(settings, scores, np.full(len(scores), np.nan))
