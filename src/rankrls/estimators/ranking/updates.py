"""Add queries to a fitted model, and remove them: exact changes of the sums it keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ... import checks
from ...blocks.sources import source_of
from ...core.preferences import QueryPreferences
from ...core.statistics import Statistics
from ...core.weighting import LINEAR, Gain
from ...system.limits import limits
from ...system.types import ArrayLike, FitInput, Ids, MatrixLike
from ..rows.intake import training_rows
from ..rows.training import Learned, RankRLSFit, Selected, Training, Weights, n_bytes
from .base import RidgeRanker
from .blocks import check_same_loss, combined, fit_source, more_sums, seen
from .feedback import solution, warn_of_dependent_points
from .held_out import held_out_later, noise_later
from .history import History

PRIVATE = ("_unpaired", "_history", "_cached_posterior", "_trained_queries")
HELD_OUT = ("cv_scores_", "cv_errors_", "cv_predictions_", "noise_")


def _keeps_sums(model: RidgeRanker) -> bool:
    """True if queries can be added to or removed from the model; otherwise raises an error that says why."""
    if model.kernel is not None and model.basis is None:
        raise AttributeError("adding queries needs a linear model or a kernel with a fixed basis: pass basis=")
    if getattr(model, "statistics_", model) is None:
        raise AttributeError(
            "this model keeps no sums to update (it was fitted in dual or iterative form): start with partial_fit "
            "instead of fit"
        )
    return True


class Updates(RidgeRanker):
    """Learn from more queries, and forget some."""

    __metadata_request__partial_fit = {"qid": True}  # noqa: RUF012

    @available_if(_keeps_sums)
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | str | None = None,
        qid: Ids | str | None = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Learn from more queries, exactly as if they had been there from the start.

        For linear models and kernel models with a fixed basis. Every call brings whole queries: a query id that occurs
        in two calls means two queries. Values that are "auto", and basis points, are chosen at the first call and kept.
        `cv_scores_` and the other held-out attributes follow the queries learned so far, at the same `alphas_`. They
        are computed on access, from copies of the rows (up to 64 MB); beyond that, or after rows from files, they are
        removed. `cv_predictions_` are in the order in which rows arrived.

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
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(20, random_state=0)
        >>> early, whole = data.qid < "q0010", RankRLS(1.0).fit(data.X, data.y, qid=data.qid)
        >>> model = RankRLS(1.0)
        >>> for part in (early, ~early):
        ...     model = model.partial_fit(data.X[part], data.y[part], qid=data.qid[part])
        >>> bool(np.allclose(model.coef_, whole.coef_))
        True
        """
        return self._update(X, y, qid, sample_weight, learn=True)

    @available_if(_keeps_sums)
    def forget(
        self,
        X: MatrixLike,
        y: ArrayLike | str | None = None,
        qid: Ids | str | None = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Forget queries: the model then equals, to rounding, one that never saw them.

        Parameters
        ----------
        X, y, qid, sample_weight
            The same rows, labels and weights that the queries were learned from.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls import RankRLS
        >>> from rankrls.datasets import make_search
        >>> data = make_search(20, random_state=0)
        >>> model, gone = RankRLS(1.0).fit(data.X, data.y, qid=data.qid), data.qid == "q0007"
        >>> model = model.forget(data.X[gone], data.y[gone], qid=data.qid[gone])
        >>> never = RankRLS(1.0).fit(data.X[~gone], data.y[~gone], qid=data.qid[~gone])
        >>> bool(np.allclose(model.coef_, never.coef_))
        True
        """
        check_is_fitted(self, "alpha_")
        return self._update(X, y, qid, sample_weight, learn=False)

    def _update(
        self, X: FitInput, y: ArrayLike | None, qid: Ids, sample_weight: ArrayLike | None, *, learn: bool
    ) -> Self:
        """Learn from more queries, or forget some."""
        self._check_params()
        fitted = hasattr(self, "alpha_")
        if fitted:
            check_same_loss(self)
        with self._attempt():
            source = source_of(X, y, qid, sample_weight)
            if source is not None and not fitted:
                return self._store(seen(source), *fit_source(self, source, None))
            if source is not None:
                self._store(*updated(self, self, *more_sums(self, source), learn=learn))
                return self._remember(None)
            X, y, qid, sample_weight = checks.split_columns(X, y, qid, sample_weight)
            known: RidgeRanker = self
            if not fitted and (self._auto or "auto" in (self.tied_pairs, self.gain) or self.kernel is not None):
                known = clone(self).fit(X, y, qid=qid, sample_weight=sample_weight)
            rows = training_rows(self, X, y, qid, sample_weight, fresh=False)
            sums, data = sums_of(self, known, rows)
            past = vars(self).get("_history") if fitted else History()
            self._store(*updated(self, known, sums, data, learn=learn))
            if past is not None:
                past = past.with_rows(data) if learn else past.without_rows(data)
            return self._remember(past)

    def _keep_rows(self, rows: Training) -> None:
        """Copy the rows of a fit, so that held-out scores can be computed on access."""
        worth = self._auto or n_bytes(rows.X) <= limits.kept_bytes // 4
        past = History().with_rows(rows.recoded(self.gain_)) if self.statistics_ is not None and worth else None
        if past is not None:
            self._history = past

    def _remember(self, history: History | None) -> Self:
        """Keep the rows that hold-out needs; without them, remove the held-out scores, which are outdated."""
        for kept in PRIVATE:
            self.__dict__.pop(kept, None)
        self.__dict__.pop("noise_", None)
        if history is not None and (hasattr(self, "alphas_") or history.is_small):
            self._history = history
        elif history is None:
            self._store(Selected())
        return self

    def __getattr__(self, name: str) -> Any:
        """Compute held-out scores on first access, after an update or if alpha was given."""
        if name in HELD_OUT and "cv_scores_" not in vars(self):
            found = held_out_later(self) if "alphas_" in vars(self) else None
            if name == "noise_" and "alpha_" in vars(self) and found is None:
                found = noise_later(self)
            if found is not None:
                self._store(found)
        return object.__getattribute__(self, name)  # or raise the usual error

    def __getstate__(self) -> dict[str, Any]:
        """The state written to a file: held-out scores instead of the rows they are computed from."""
        if "_history" in vars(self):
            getattr(self, "cv_scores_" if "alphas_" in vars(self) else "noise_", None)
        state = dict(super().__getstate__())
        if "trained_on_" in state and not self.store_path:
            state["trained_on_"] = replace(self.trained_on_, X=None)
        return {name: value for name, value in state.items() if name not in PRIVATE}


def sums_of(model: RidgeRanker, known: RidgeRanker, rows: Training) -> tuple[Statistics, Training]:
    """The sums of more rows, and these rows with the model's kernel; `known` has what is already fixed."""
    if model.kernel is not None:
        rows = replace(rows, kernel=known.kernel_, points=known.X_fit_)
    elif rows.X.shape[1] > limits.gram_columns:
        raise ValueError(
            f"partial_fit keeps an n x n matrix, which is too large for {rows.X.shape[1]} features: at most "
            f"{limits.gram_columns} are allowed"
        )
    rows = rows.recoded(gain_of(known))
    tied = getattr(known, "tied_pairs_", known.tied_pairs)
    y = None if tied else rows.y[:, 0]
    F = QueryPreferences(
        rows.queries, y, weighting=model.weighting, regression=float(model.regression), weights=rows.weights
    )
    return rows.primal(F, rows.y).sums, rows


def gain_of(known: RidgeRanker) -> Gain:
    """The gain of a fitted model, or the given gain of an unfitted one."""
    return getattr(known, "gain_", LINEAR if known.gain is None else known.gain)


def updated(model: RidgeRanker, known: RidgeRanker, sums: Statistics, data: Training, *, learn: bool) -> RankRLSFit:
    """The model after sums are added to those so far, or subtracted from them."""
    alpha = float(getattr(known, "alpha_", known.alpha) if model._auto else model.alpha)
    warn_of_dependent_points(data, "partial_fit")
    pairs = getattr(model, "pairs_", None)
    sums = combined(getattr(model, "statistics_", None), sums, alpha, learn=learn)
    labels = sums if pairs is None else pairs.added(sums, -1)
    scaled = model.scale is not None and data.kernel is None
    deviation = labels.deviation if scaled else None
    learned = Learned(
        alpha,
        bool(getattr(known, "tied_pairs_", known.tied_pairs)),
        n_queries=sums.n_queries,
        n_pairs=sums.n_pairs,
        statistics=sums,
        weighting=model.weighting,
        scale=deviation if scaled else getattr(data.kernel, "scale", None),
        pairs=pairs,
        gain=gain_of(known),
    )
    weights = Weights.of(solution(model, alpha, sums, data, pairs, deviation), data, model.regression)
    return weights, learned, Selected(getattr(known, "alphas_", None) if model._auto else None)
