"""RankRLS with signs of weights given, from the same sums; held out exactly, fold by fold from down-dated sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..core.penalty import per_deviation
from ..core.preferences import QueryPreferences
from ..core.signs import signed_solution
from ..core.statistics import Statistics
from .base import HeldOutFold, Model
from .primal import Primal


@dataclass(frozen=True)
class SignedPrimal(Primal):
    """Ridge regression on (F X, F y) with s_j w_j >= 0."""

    signs: np.ndarray = field(default_factory=lambda: np.empty(0))  # (n,) 1, -1, or 0 for any sign

    def model(self, alpha: float) -> Model:
        return signed_models(self.sums, np.array([alpha]), self.signs, W=self.W)[0]

    def leave_out(self, folds: Sequence[HeldOutFold] | None, alphas: np.ndarray) -> np.ndarray:
        """(m, k, t) scores of every row by models that never saw its fold: each starts from the weights of all rows."""
        if folds is None:
            assert isinstance(self.F, QueryPreferences)
            queries = self.F.queries
            folds = [HeldOutFold(queries.rows(q)) for q in range(len(queries))]
        scores = np.full((self.F.shape[0], len(alphas), self.y.shape[1]), np.nan, dtype=self.dtype)
        near = signed_models(self.sums, alphas, self.signs, W=self.W)
        for fold in folds:
            if fold.whole:
                sums = self.sums - self.restrict(fold.rows).sums
            else:
                sums = self.restrict(fold.rest(self.F.shape[0])).sums
            models = signed_models(sums, alphas * fold.factor, self.signs, near, W=self.W)
            scores[fold.rows] = self.scores(fold.rows, models)
        return scores


def signed_models(
    sums: Statistics,
    alphas: np.ndarray,
    signs: np.ndarray,
    near: Sequence[Model] | None = None,
    *,
    W: np.ndarray | None = None,
) -> list[Model]:
    """The models at every alpha, each started from `near`, or from the next larger alpha; W is a diagonal penalty."""
    models: list[Model | None] = [None] * len(alphas)
    penalty = np.diag(np.ones(len(sums.gram)) if W is None else np.where(W > 0, per_deviation(W) ** 2, 1.0))
    before: Model | None = None
    for k in np.argsort(-alphas):
        start = before if near is None else near[k]
        M = sums.gram + alphas[k] * penalty
        columns = [
            signed_solution(M, c, signs, None if start is None else start.coef[:, t] != 0)
            for t, c in enumerate(sums.cross.T)
        ]
        models[k] = before = Model.of(np.column_stack(columns), sums)
    return [model for model in models if model is not None]
