"""Learning problems as candidates for hold-out, and how their alpha relates to the caller's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ... import checks
from ...core.preferences import QueryPreferences
from ...core.queries import Queries
from ...core.statistics import Statistics, column_deviation
from ...core.symmetric import per_deviation
from ...core.weighting import gains_of
from ...metrics import Metric, get_metric
from ...problems import choice
from ...problems.base import HeldOutFold, Model, silenced
from ...problems.choice import Choice, Judged, Problem, Setting
from ...problems.iterative import Iterative
from ...problems.primal import Primal
from ...system.lazy import cached_property
from ...system.parallel import threads_for
from ..rows.intake import folds_of
from ..rows.training import Learned, RankRLSFit, Selected, TrainedOn, Training, Weights, multiplied
from .base import RidgeRanker
from .leave_pair_out import LEAVE_PAIR_OUT, leave_pair_out


@dataclass(frozen=True)
class Setup:
    """A problem of some rows; the caller's alpha is alpha / unit here.

    One query without excluded ties is ridge regression with a free intercept (see `problems.choice`): then every item
    is its own query (`items`).
    """

    data: Training
    problem: Problem
    F: QueryPreferences
    tied: bool
    unit: float = 1.0
    items: bool = False
    given: Any = None  # alphas to choose from; None for a grid fitted to the data
    W: np.ndarray | None = None  # the scale of the columns, if there are fewer rows than columns

    @classmethod
    def of(cls, data: Training, given: object, *, tied: bool, weighting: str, regression: float) -> Setup:
        """The problem of some rows, with or without tied pairs."""
        y = None if tied else data.y[:, 0]
        F = QueryPreferences(data.queries, y, weighting=weighting, regression=regression, weights=data.weights)
        rows, W = data, None
        if data.scaled and data.kernel is None and not data.by_columns:
            W = per_deviation(column_deviation(F, data.X))
            rows = replace(data, X=multiplied(data.X, W))
        if len(data.queries) > 1 or F.within is not None:
            return cls(data, rows.problem(F), F, tied, given=given, W=W)
        items, unit = Queries.singletons(F.shape[0]), choice.item_factor(F)
        ridge = QueryPreferences(items, weighting="items", regression=1.0, weights=data.weights)
        problem = rows.problem(ridge)
        if isinstance(problem, Primal) and problem.scaled:
            problem = replace(problem, scaled=unit)
        return cls(data, problem, F, tied, unit, items=True, given=given, W=W)

    @cached_property
    def alphas(self) -> np.ndarray:
        if self.given is not None:
            return checks.check_grid("alphas", self.given, zero=True)
        return choice.default_alphas(self.problem.mean_eigenvalue * self.unit)

    @property
    def extends(self) -> bool:
        """True if the grid of alphas may be extended, because the caller gave none."""
        return self.given is None

    def judge(self, cv: object, metric: Metric, alphas: np.ndarray | None = None) -> Judged:
        """The held-out score of every alpha."""
        problem = self.checked
        alphas = self.alphas if alphas is None else alphas
        if isinstance(cv, str) and cv == LEAVE_PAIR_OUT:
            return leave_pair_out(self.data, self.F, self.scale, metric, alphas)
        folds, groups = folds_of(cv, self.data, item_fold=self._item_fold, refits=isinstance(problem, Iterative))
        settings = [Setting(alpha=float(alpha)) for alpha in alphas]

        def leave_out(layer: Any) -> np.ndarray:
            held = problem.leave_out(layer, alphas / self.unit)
            if getattr(problem, "total", None) is not None:  # pairs, or rows elsewhere, always remain to learn from
                return held
            return silenced(held, self.data.X, problem.y, layer, problem.F)

        return choice.judge(leave_out, settings, self.data.truth, folds, groups, metric)

    def _item_fold(self, rows: np.ndarray) -> HeldOutFold:
        if not self.items:
            return HeldOutFold(rows, whole=False)
        left = choice.item_factor(self.F, rows)
        if left == 0:
            rest = self.F.restrict(HeldOutFold(rows).rest(self.F.shape[0]))
            checks.check_copies(rest.queries.labels, rest.queries.sizes, rest.S, "queries")
            raise ValueError("a fold leaves a single row: nothing is left to learn from")
        return HeldOutFold(rows, self.unit / left)

    @cached_property
    def checked(self) -> Problem:
        """The problem, if its sums or kernel values do not overflow and no column vanished in them."""
        if isinstance(self.problem, Primal):
            checks.check_no_overflow(self.problem.sums)
            faint = self.problem.sums.faint
            if self.problem.scaled and len(faint):
                checks.check_visible(column_deviation(self.F, self.data.X[:, faint]) > 0, faint)
        elif not (isinstance(self.problem, Iterative) or self.problem.system.in_range) or not np.isfinite(
            self.problem.mean_eigenvalue
        ):
            raise ValueError("kernel values overflow: X or sample_weight has very large values; divide by a constant")
        return self.problem

    def model(self, alpha: float) -> Model:
        model = self.checked.model(alpha / self.unit)
        return model if self.W is None else Model(self.W[:, None] * model.coef, model.intercept)

    @property
    def scale(self) -> np.ndarray | None:
        """(n,) the units in which columns are penalised, zero for constant columns; None for their own units."""
        if self.data.kernel is not None:
            return getattr(self.data.kernel, "scale", None)
        W = self.problem.W if isinstance(self.problem, Primal) and self.problem.scaled else self.W
        return None if W is None else per_deviation(W)

    def statistics(self) -> Statistics | None:
        """The sums of a primal problem, scaled to the caller's alpha."""
        if not isinstance(self.problem, Primal):
            return None
        sums = self.problem.sums
        if not self.items:
            return sums
        free = self.F.beta > 0
        with np.errstate(over="ignore"):
            squares = {name: getattr(sums, name) * self.unit for name in ("gram", "cross", "square")}
        found = replace(
            sums,
            **squares,
            rounding=None if sums.rounding is None else sums.rounding * np.sqrt(self.unit),
            mean=sums.mean * free,
            target_mean=sums.target_mean * free,
            beta=self.F.beta,
            n_queries=1,
            n_pairs=self.F.n_pairs,
        )
        checks.check_no_overflow(found)
        return found


def fit_training(model: RidgeRanker, rows: Training) -> RankRLSFit:
    """Fit to rows in memory; `model` has the parameters."""
    options = rows.with_kernels(model.kernel, model.basis, model.random_state)
    with threads_for(max(data.product for data in options)):
        return _fit(model, options)


def _fit(model: RidgeRanker, options: list[Training]) -> RankRLSFit:
    auto = isinstance(model.alpha, str)
    ties = (True, False) if model.tied_pairs == "auto" else (bool(model.tied_pairs),)
    of = partial(Setup.of, weighting=model.weighting, regression=float(model.regression))
    given = model.alphas if auto else [model.alpha]
    options = [data.recoded(gain) for gain in gains_of(model.gain) for data in options]
    candidates = (of(data, given, tied=tied) for data in options for tied in ties)
    if auto or model.store_path or len(options) * len(ties) > 1:
        chosen = choice.choose(candidates, model.cv, get_metric(model.scoring))
    else:
        chosen = Choice.only(next(candidates), Setting(alpha=float(model.alpha)))
    setup, alpha = chosen.candidate, chosen.setting.alpha
    data, weights, sums = setup.data, setup.model(alpha), setup.statistics()
    learned = Learned(
        alpha,
        setup.tied,
        n_queries=len(data.queries),
        n_pairs=setup.F.n_pairs,
        statistics=sums,
        weighting=model.weighting,
        scale=setup.scale,
        trained_on=None if sums is not None else TrainedOn.of(data, with_rows=model.store_path),
        gain=data.gain,
    )
    return (
        Weights.of(weights, data, model.regression),
        learned,
        Selected.of(chosen, data, path=model.store_path) if auto or model.store_path else Selected(),
    )


def setup_again(model: RidgeRanker, alpha: float | None = None) -> Setup | None:
    """The problem that a model was fitted to, from the rows it keeps; None if it keeps none.

    Models without sums keep a `TrainedOn`; others keep rows only if there are few.
    """
    rows, history = vars(model).get("trained_on_"), vars(model).get("_history")
    kernel = {"kernel": getattr(model, "kernel_", None)}
    if rows is not None and (rows.X is not None or kernel["kernel"] is not None):
        kind = {"kept": rows.kept, "n_given": rows.n_given, "scaled": model.scale is not None, **kernel}
        X = rows.X if kernel["kernel"] is None else model.X_fit_
        data = Training(X, rows.y, Queries.of(rows.codes), rows.weights, **kind)
    elif history is not None and len(history.parts) == 1:
        data = replace(history.parts[0], **kernel, points=getattr(model, "X_fit_", None))
    else:
        return None
    regression, given = float(model.regression), None if alpha is None else [alpha]
    return Setup.of(data, given, tied=model.tied_pairs_, weighting=model.weighting_, regression=regression)
