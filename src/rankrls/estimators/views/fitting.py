"""Fit CoRankRLS: the views, what they agree on, and the alpha and nu that rank held-out queries best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator

from ... import checks
from ...core.expansion import in_precision
from ...core.statistics import Statistics
from ...core.views import FittedView, as_views, fitted_views, n_widths
from ...metrics import Metric, get_metric
from ...problems import choice
from ...problems.choice import Choice, Judged, Setting
from ...problems.coregularised import Coregularised, Joint, Stack, ViewWeights, agreement, expanded_in, widths_of
from ...system.lazy import cached_property
from ...system.limits import limits
from ...system.parallel import product_of_fit, threads_for
from ...system.seeds import seed_of
from ...system.types import ArrayLike, Seed
from ...system.warnings import warn
from ..rows.intake import PartlyScored, folds_of
from ..rows.training import Seen, Training, n_bytes, preferences_among


class JointParameters(Protocol):
    """The parameters of `CoRankRLS`."""

    alpha: float | str
    nu: float | str
    views: Any
    kernel: Any
    basis: Any
    weighting: str
    tied_pairs: bool | str
    regression: float
    agree_on: str
    alphas: ArrayLike | None
    nus: ArrayLike | None
    scoring: str | Callable[..., float]
    cv: object
    random_state: Seed
    store_path: bool


@dataclass(frozen=True)
class Unscored:
    """What views should agree on: S = Z'G'G Z, with the number of unscored rows and of pairs behind it."""

    S: np.ndarray  # (R, R)
    n_rows: int
    n_pairs: int


@dataclass(frozen=True)
class JointRows:
    """Everything a fit needs from the data."""

    rows: Training
    scored: np.ndarray  # numbers of the scored rows
    stack: Stack
    unscored: Unscored


@runtime_checkable
class JointSource(Protocol):
    """Rows in a file or on a cluster: scored rows are fetched, the others summed where they are."""

    def joint_rows(self, model: BaseEstimator) -> tuple[Seen, JointRows]: ...


@dataclass(frozen=True)
class JointFit:
    """The result of fitting CoRankRLS."""

    alpha: float
    nu: float
    views: Sequence[FittedView]
    view_coefs: Sequence[np.ndarray]
    view_intercepts: np.ndarray
    disagreement: float
    tied_pairs: bool
    weighting: str
    agree_on: str
    n_queries: int
    n_pairs: int
    n_unscored: int
    statistics: Statistics | None = None  # the sums, if the features of the views are fixed or can be kept
    agreement: np.ndarray | None = None
    expanded_in: list[Any] | None = None  # for each view the rows it is expanded in, if any view is and they are kept
    alphas: np.ndarray | None = None  # the grids, if something was chosen
    nus: np.ndarray | None = None
    cv_scores: np.ndarray | None = None  # (n_nus, n_alphas)
    cv_errors: np.ndarray | None = None
    cv_predictions: np.ndarray | None = None
    cv_predictions_path: np.ndarray | None = None  # (m, n_nus, n_alphas), on request


@dataclass(frozen=True)
class JointSetup:
    """A co-regularised problem with the values of nu and alpha to choose from."""

    problem: Coregularised
    data: Training  # the scored rows
    given: Any  # alphas; None for a grid fitted to the data
    n_unscored: int
    store_path: bool
    agree_on: str

    @property
    def can_be_solved_again(self) -> bool:
        """True if the model stores what it is solved from; rows that views are expanded in may be too large."""
        rows = [R for R in self.problem.stack.rows if R is not None]
        return self.store_path or sum(map(n_bytes, rows)) <= limits.kept_bytes

    @cached_property
    def alphas(self) -> np.ndarray:
        return choice.default_alphas(self.problem.joint.mean_eigenvalue) if self.given is None else self.given

    def judge(self, cv: object, metric: Metric) -> Judged:
        """The held-out score of every nu and alpha."""
        folds, groups = folds_of(cv, self.data)
        settings = [Setting(alpha=float(alpha), nu=float(nu)) for nu in self.problem.nus for alpha in self.alphas]
        leave_out = lambda layer: self.problem.leave_out(layer, self.alphas)
        return choice.judge(leave_out, settings, self.problem.y, folds, groups, metric)

    def result(self, setting: Setting) -> JointFit:
        """The model of one nu and alpha."""
        F, joint = self.problem.F, self.problem.joint
        found = JointFit(
            alpha=setting.alpha,
            nu=setting.nu,
            views=joint.stack.views,
            view_coefs=[],
            view_intercepts=np.empty(0),
            disagreement=np.nan,
            tied_pairs=F.y is None,
            weighting=F.weighting.kind,
            agree_on=self.agree_on,
            n_queries=len(self.data.queries),
            n_pairs=F.n_pairs,
            n_unscored=self.n_unscored,
            statistics=joint.sums if self.can_be_solved_again else None,
            agreement=joint.S if self.can_be_solved_again else None,
            expanded_in=list(joint.stack.rows) if self.can_be_solved_again and not joint.stack.fixed else None,
        )
        return solved(found, joint, flat=self.data.flat)

    def with_grid(self, found: JointFit, chosen: Choice, *, path: bool) -> JointFit:
        """Add the grids that alpha and nu were chosen from, and their scores."""
        shape = len(self.problem.nus), len(self.alphas)
        found = replace(found, alphas=self.alphas, nus=self.problem.nus)
        found = replace(found, cv_scores=chosen.scores.reshape(shape), cv_errors=chosen.errors.reshape(shape))
        own = lambda held: in_precision(self.data.all_rows(held), self.data.dtype)  # NaN for unscored rows
        best = own(chosen.predictions)  # (m, t)
        found = replace(found, cv_predictions=best[:, 0] if self.data.flat else best)
        if not path:
            return found
        held = own(chosen.held_out).reshape(len(best), *shape, -1)  # (m, nus, alphas, t)
        return replace(found, cv_predictions_path=held[..., 0] if self.data.flat else held)


def solved(found: JointFit, joint: Joint, *, flat: bool) -> JointFit:
    """Add the weights of the views at the alpha and nu of `found`."""
    weights = joint.solution(found.alpha, found.nu)
    coefs, intercepts = of_views(joint.stack, weights, flat=flat)
    return replace(found, view_coefs=coefs, view_intercepts=intercepts, disagreement=joint.disagreement(weights.a))


def of_views(stack: Stack, weights: ViewWeights, *, flat: bool) -> tuple[list[np.ndarray], np.ndarray]:
    """The weights and the intercept of each view."""
    coefs, intercepts = stack.coefs(weights.a), weights.intercepts
    return ([c[:, 0] for c in coefs], intercepts[:, 0]) if flat else (coefs, intercepts)


def joint_rows(model: JointParameters, names: Sequence[str] | None, rows: PartlyScored) -> Iterator[JointRows]:
    """Yield the views and what they should agree on, for each candidate width of kernels."""
    X, u = rows.X, rows.weights
    among = rows.unscored if model.agree_on == "unscored" else np.sort(np.concatenate([rows.scored, rows.unscored]))
    G = preferences_among(rows.queries, u, among, weighting=model.weighting)
    views = as_views(model.views, model.kernel, model.basis)
    data = Training(X, rows.targets, rows.queries, u, n_given=X.shape[0], flat=rows.y.ndim == 1)
    for width in range(n_widths(views)):
        fitted = fitted_views(views, X, names, u, seed_of(model.random_state), width)
        with threads_for(product_of_fit(X.shape, sum(widths_of(fitted, X)))):
            stack = Stack.of(fitted, X, expanded_in(fitted, X))
            S = agreement(stack, X, among, G) if G.n_pairs else np.zeros((stack.n_columns,) * 2)
        yield JointRows(data, rows.scored, stack, Unscored(S, len(rows.unscored), G.n_pairs))


def fit_joint(model: JointParameters, options: Iterator[JointRows]) -> JointFit:
    """Learn from scored rows, given the sums on which views should agree."""
    first = next(options)
    with threads_for(product_of_fit(first.rows.X.shape, first.stack.n_columns)):
        return _fit(model, first, options)


def _fit(model: JointParameters, first: JointRows, options: Iterator[JointRows]) -> JointFit:
    n_options = n_widths(as_views(model.views, model.kernel, model.basis))
    _check_rows(model, first)
    setups = (
        _setup(model, joint, tied)
        for joint in _chain(first, options)
        for tied in ((True, False) if model.tied_pairs == "auto" else (bool(model.tied_pairs),))
    )
    if n_options > 1 or model.store_path or "auto" in (model.alpha, model.nu, model.tied_pairs):
        chosen = choice.choose(setups, model.cv, get_metric(model.scoring))
    else:
        chosen = Choice.only(next(setups), Setting(alpha=float(model.alpha), nu=float(model.nu)))
    found = chosen.candidate.result(chosen.setting)
    if model.store_path or "auto" in (model.alpha, model.nu):
        return chosen.candidate.with_grid(found, chosen, path=model.store_path)
    return found


def _chain(first: JointRows, rest: Iterator[JointRows]) -> Iterator[JointRows]:
    yield first
    yield from rest


def _check_rows(model: JointParameters, joint: JointRows) -> None:
    rows, unscored = joint.rows, joint.unscored
    if model.regression == 0:
        queries = preferences_among(rows.queries, rows.weights, joint.scored, weighting=model.weighting).queries
        checks.check_comparable(rows.y[joint.scored], queries)
    checks.check_targets(rows.y, tied_pairs=model.tied_pairs)
    if not unscored.n_pairs and len(joint.stack.views) > 1:
        warn(
            f"no query has two of the {unscored.n_rows} unscored rows: the views have nothing to agree on and are "
            'learned separately; unscored rows are those with NaN in y, and agree_on="all" includes scored rows',
        )


def _setup(model: JointParameters, joint: JointRows, tied: bool) -> JointSetup:
    rows, scored = joint.rows, joint.scored
    y = None if tied else rows.y[:, 0]
    loss: dict[str, Any] = {"weighting": model.weighting, "regression": float(model.regression)}
    F = preferences_among(rows.queries, rows.weights, scored, y, **loss)
    data = Training(rows.X, rows.y[scored], F.queries, kept=scored, n_given=rows.n_given, flat=rows.flat)
    nus = values("nu", model.nu, model.nus, zero=True)
    problem = Coregularised(F, joint.stack, rows.X, scored, data.y, joint.unscored.S, nus)
    alphas = values("alpha", model.alpha, model.alphas, zero=True)
    return JointSetup(problem, data, alphas, joint.unscored.n_rows, model.store_path, model.agree_on)


def values(name: str, value: float | str, grid: ArrayLike | None, *, zero: bool = False) -> np.ndarray | None:
    """The values of a parameter to try: the one number, or the grid (None if it is fitted to the data)."""
    if isinstance(value, str):
        return None if grid is None else checks.check_grid(f"{name}s", grid, zero=zero)
    return np.array([checks.check_number(name, value, zero=zero)])
