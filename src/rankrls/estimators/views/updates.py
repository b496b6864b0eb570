"""Add rows, scored or not, to a fitted CoRankRLS, and remove them: exact changes of the sums it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...core.statistics import Statistics, statistics
from ...problems.coregularised import Joint, Stack, agreement
from ...system.types import ArrayLike, FitInput, Ids, MatrixLike
from ..rows.intake import PartlyScored
from ..rows.training import preferences_among
from .fitting import of_views
from .paths import ViewPaths


@dataclass(frozen=True)
class JointUpdate:
    """What changes when rows are added or removed; the grid and scores of alpha and nu are then outdated."""

    view_coefs: list[np.ndarray]
    view_intercepts: np.ndarray
    disagreement: float
    n_queries: int
    n_pairs: int
    n_unscored: int
    statistics: Statistics
    agreement: np.ndarray
    alphas: np.ndarray | None = None
    nus: np.ndarray | None = None
    cv_scores: np.ndarray | None = None
    cv_errors: np.ndarray | None = None
    cv_predictions: np.ndarray | None = None
    cv_predictions_path: np.ndarray | None = None


class ViewUpdates(ViewPaths):
    """Learn from more rows, and forget some."""

    alpha_: float
    nu_: float
    tied_pairs_: bool
    n_unscored_: int
    weighting: str
    regression: float
    agree_on: str

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike | None = None, qid: Ids = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more queries, scored or not, exactly as if they had been there from the start.

        Every call brings whole queries. The first call is `fit`: values that are "auto", and the points of kernels, are
        chosen then and kept.

        Parameters
        ----------
        X, y, qid, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import CoRankRLS, View
        >>> rng = np.random.default_rng(0)
        >>> X, qid = rng.normal(size=(60, 4)), np.repeat(np.arange(12), 5)
        >>> y = np.where(qid % 2, X[:, 0] + X[:, 2], np.nan)
        >>> views, early = [View([0, 1]), View([2, 3])], qid < 6
        >>> whole = CoRankRLS(1.0, 0.1, views=views).fit(X, y, qid=qid)
        >>> model = CoRankRLS(1.0, 0.1, views=views)
        >>> for part in (early, ~early):
        ...     model = model.partial_fit(X[part], y[part], qid=qid[part])
        >>> bool(np.allclose(model.predict(X), whole.predict(X)))
        True
        """
        if not hasattr(self, "alpha_"):
            return self.fit(X, y, qid=qid, sample_weight=sample_weight)
        return self._update(X, y, qid, sample_weight, +1)

    def forget(
        self, X: MatrixLike, y: ArrayLike | None = None, qid: Ids = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Forget queries, scored or not: the model then equals, to rounding, one that never saw them.

        Parameters
        ----------
        X, y, qid, sample_weight
            The same rows, labels and weights the queries were learned from.

        Returns
        -------
        self
        """
        check_is_fitted(self, "alpha_")
        return self._update(X, y, qid, sample_weight, -1)

    def fit(
        self, X: FitInput, y: ArrayLike | None = None, qid: Ids = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        raise NotImplementedError

    def _update(self, X: object, y: ArrayLike | None, qid: Ids, sample_weight: ArrayLike | None, sign: int) -> Self:
        """Add rows (sign 1) or remove them (-1)."""
        if vars(self).get("statistics_") is None or "expanded_in_" in vars(self):
            raise ValueError(
                "this model keeps no sums to update (a linear view with more columns than rows was expanded in its "
                "rows): give that view fewer columns, or a kernel and a basis"
            )
        names = ("alpha", "nu", "tied_pairs", "weighting", "agree_on")  # the last two are missing in older files
        fitted = {name: getattr(self, f"{name}_", getattr(self, name)) for name in names}
        fitted["regression"] = self.statistics_.beta
        checks.check_unchanged(self, fitted, "set it back, or call fit with all rows")
        with self._attempt():
            rows = PartlyScored.of(self, X, y, qid, sample_weight, several=True, fresh=False)
            stack = self._stack()
            sums, S = self._sums(rows, stack)
            before = self.statistics_
            after = before if sums is None else before + sums if sign > 0 else before - sums
            checks.check_no_overflow(after)
            if sign < 0:
                checks.check_sums(after, before)
            joint = Joint(stack, after, self.agreement_ + sign * S)
            weights = joint.solution(self.alpha_, self.nu_)
            coefs, intercepts = of_views(stack, weights, flat=self.view_coefs_[0].ndim == 1)
            counts = after.n_queries, after.n_pairs, self.n_unscored_ + sign * len(rows.unscored)
            return self._store(JointUpdate(coefs, intercepts, joint.disagreement(weights.a), *counts, after, joint.S))

    def _sums(self, rows: PartlyScored, stack: Stack) -> tuple[Statistics | None, np.ndarray]:
        """The sums of the scored rows, if there are any, and S of the rows to agree on."""
        X, u, scored = rows.X, rows.weights, rows.scored
        if rows.targets.shape[1] != self.statistics_.cross.shape[1]:
            raise ValueError(
                f"the model has {self.statistics_.cross.shape[1]} targets, but these rows have {rows.targets.shape[1]}"
            )
        sums = None
        if len(scored):
            labels = None if self.tied_pairs_ else rows.targets[:, 0]
            loss: dict[str, Any] = {"weighting": self.weighting, "regression": float(self.regression)}
            F = preferences_among(rows.queries, u, scored, labels, **loss)
            sums = statistics(F, stack.reader(X, scored), rows.targets[scored], stack.n_columns, np.float64)
        among = rows.unscored if self.agree_on == "unscored" else np.sort(np.concatenate([scored, rows.unscored]))
        G = preferences_among(rows.queries, u, among, weighting=self.weighting)
        return sums, agreement(stack, X, among, G) if G.n_pairs else np.zeros((stack.n_columns,) * 2)
