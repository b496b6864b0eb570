"""From checked rows to a path: candidate pursuits (one per kernel or value of nu), and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ... import bases, checks
from ...core.expansion import in_precision
from ...core.pairs import PairPreferences
from ...core.preferences import QueryPreferences
from ...core.queries import BATCH_ROWS, Queries
from ...core.statistics import Preferences
from ...core.views import FittedView
from ...kernels import Precomputed, as_kernel
from ...metrics import Metric, get_metric
from ...problems import choice
from ...problems.base import HeldOutFold
from ...problems.choice import Judged, Setting
from ...problems.coregularised import Stack, agreement, default_nus
from ...problems.dictionary import Columns, KernelAtoms
from ...problems.joint_pursuit import Agreeing
from ...problems.pursuit import PursuitPath, Supervised
from ...problems.signed_pursuit import pursue_signed
from ...system import memory
from ...system.items import Items
from ...system.lazy import cached_property
from ...system.types import ArrayLike
from ...system.warnings import warn
from ..rows.intake import folds_of
from ..rows.training import Training

FOLDS = 5


@dataclass(frozen=True)
class PursuitSetup:
    """A pursuit, and its functions in the caller's numbers."""

    problem: Any  # Supervised or Agreeing
    numbers: Sequence[np.ndarray]  # for each view, the number of each atom: of a row, a point or a column
    views: Sequence[FittedView]

    @property
    def n_atoms(self) -> int:
        """The number of atoms in the smallest view."""
        return min(len(numbers) for numbers in self.numbers)

    @property
    def shares(self) -> np.ndarray:
        """(M,) the shares of the views in the prediction; their sum is 1."""
        weights = getattr(self.problem, "weights", None)
        return (np.ones(len(self.views)) if weights is None else weights) / len(self.views)


@dataclass(frozen=True)
class SizeTrial:
    """A pursuit, and the sizes to choose from."""

    setup: PursuitSetup
    data: Training
    sizes: np.ndarray

    @cached_property
    def problem(self) -> Any:
        """The pursuit with the values of its functions computed once, for several paths over the same rows."""
        return self.setup.problem.evaluated()

    def judge(self, cv: object, metric: Metric) -> Judged:
        """The held-out score of every size."""
        folds, groups = folds_of(cv, self.data)
        settings = [Setting(size=int(size)) for size in self.sizes]
        if folds is not None and isinstance(self.problem, Supervised) and choice.in_turn(folds, metric):
            held = self.problem.paths_without(folds, self.sizes)
            judged = choice.judge_in_turn(held.of_fold, settings, self.problem.y, folds, groups, metric)
            return replace(judged, predictions=held)
        leave_out = lambda layer: self.problem.leave_out(layer, self.sizes)
        return choice.judge(leave_out, settings, self.problem.y, folds, groups, metric)


class PairTrial(SizeTrial):
    """The same for explicit pairs; components of the preference graph are held out as a whole if there are many."""

    def judge(self, cv: object, metric: Metric) -> Judged:
        """The share of held-out pairs in the right order, for every size."""
        F = self.problem.F
        n_folds = int(cv) if isinstance(cv, (int, np.integer)) else FOLDS
        parts = choice.separate(F) or list(np.arange(F.shape[0])[:, None])
        n_folds = max(2, min(n_folds, len(parts)))
        folds = [HeldOutFold(np.sort(np.concatenate(parts[i::n_folds]))) for i in range(n_folds)]
        held = self.problem.leave_out(folds, self.sizes)[:, :, 0]
        scores = choice.in_order(held, self.problem.y, F)
        return Judged([Setting(size=int(size)) for size in self.sizes], scores, np.full(len(scores), np.nan))


def supervised(
    F: Preferences,
    data: Training,
    scored: np.ndarray,
    *,
    kernel: Any,
    basis: Any,
    backfit: bool,
    seed: int,
    signs: np.ndarray | None = None,
) -> list[PursuitSetup]:
    """A pursuit with one view for each candidate kernel; all row numbers are the caller's."""
    X = data.X
    rows = X if data.kept is None else X[scored]
    count = float(rows.shape[0] if data.weights is None else max(1.0, np.sum(data.weights)) ** 2)
    if kernel is None:
        checks.check_squares(_largest(rows), count)
        columns = np.arange(X.shape[1])
        follow = None if signs is None else partial(pursue_signed, signs=signs)
        problem = Supervised(F, Columns(rows), data.y, backfit, follow=follow)
        return [PursuitSetup(problem, [columns], [FittedView(columns, None, None)])]
    kernel = as_kernel(kernel)
    named = basis is None or (np.ndim(basis) == 1 and np.asarray(basis).dtype.kind in "iu")
    numbers, place = np.zeros(0, dtype=np.intp), None
    if named:
        numbers = scored if basis is None else bases.row_numbers(basis, X.shape[0])
        position = np.full(X.shape[0], -1)
        position[scored] = np.arange(len(scored))
        place = position[numbers]
    if isinstance(kernel, Precomputed):
        if not named:
            raise ValueError("the basis of a precomputed kernel is None or row numbers")
        checks.check_squares(_largest(rows), count)
        columns = numbers if X.shape[1] == X.shape[0] else np.arange(X.shape[1])  # of all rows, or of the basis only
        view = FittedView(slice(None), Precomputed(columns), None)
        return [PursuitSetup(Supervised(F, Columns(rows[:, columns]), data.y, backfit, place), [numbers], [view])]
    found = []
    for one in kernel.candidates(rows, data.weights):
        if not isinstance(rows, Items):
            checks.check_squares(float(np.max(one.diagonal(rows), initial=0.0)), count)
        points = X[numbers] if named else bases.points(basis, rows, one, seed, data.weights)
        problem = Supervised(F, KernelAtoms(rows, one, points), data.y, backfit, place)
        view = FittedView(slice(0, X.shape[1]), one, points.astype(np.float64))
        found.append(PursuitSetup(problem, [numbers if named else np.arange(points.shape[0])], [view]))
    return found


def _largest(X: Any) -> float:
    """The largest absolute value of dense or sparse rows."""
    values = X.data if sparse.issparse(X) else X
    return max(-float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0)))  # no copy, as abs would make


def view_weights(weights: ArrayLike | None, n_views: int) -> np.ndarray | None:
    """The weights of views with mean 1; None if all are equal."""
    found = checks.check_weights(weights, n_views, name="view_weights", unit="view")
    if found is None:
        return None
    if not np.all(found > 0):
        raise ValueError(
            f"view {int(np.argmin(found))} has weight {found.min():g}: leave it out, or give it a positive weight"
        )
    return found * (n_views / found.sum())


def agreeing(
    F: Preferences,
    G: QueryPreferences,
    data: Training,
    scored: np.ndarray,
    unscored: np.ndarray,
    *,
    views: Sequence[FittedView],
    nus: np.ndarray | None,
    backfit: bool,
    shared: bool,
    weights: np.ndarray | None = None,
) -> list[PursuitSetup]:
    """A pursuit with several views for each nu (None: a grid fitted to the data), from one pass over the rows."""
    X = data.X
    stack = Stack.unweighted(views, X)
    numbers = [np.arange(block.stop - block.start) for block in stack.blocks]
    if shared and len({len(n) for n in numbers}) > 1:
        raise ValueError(
            f"shared_basis=True needs the same number of functions in each view, but the views have "
            f"{', '.join(str(len(n)) for n in numbers)}: give all of them the same rows"
        )
    memory.check_memory(
        6 * 8 * stack.n_columns**2 + 16 * len(scored) * stack.n_columns,
        f"{len(views)} views with {stack.n_columns} functions to choose from together",
        "take fewer, e.g. basis=500",
    )
    if not G.n_pairs and len(views) > 1 and (nus is None or np.any(nus)):
        warn(
            f"no query has two of the {len(unscored)} unscored rows: the views have nothing to agree on; unscored "
            "rows are those with NaN in y",
        )
    S = agreement(stack, X, unscored, G) if G.n_pairs else np.zeros((stack.n_columns,) * 2)
    Z = np.vstack([stack(X[scored[i : i + BATCH_ROWS]]) for i in range(0, len(scored), BATCH_ROWS)])
    problem = Agreeing(F, Z, stack.blocks, data.y, S, 0.0, backfit, shared, weights)
    values = default_nus(*problem.traces()) if nus is None else nus
    return [PursuitSetup(replace(problem, nu=float(nu)), numbers, views) for nu in values]


@dataclass(frozen=True)
class Pursued:
    """The path of the best pursuit, and the size to use."""

    setup: PursuitSetup
    path: PursuitPath
    size: int
    cv_predictions: np.ndarray | None = None


def pursue(
    setups: list[PursuitSetup], data: Training, n: int, *, auto: bool, cv: object, scoring: str | Callable[..., float]
) -> Pursued:
    """Follow the best of several pursuits for n steps; `auto` chooses the size as well."""
    best, ready, chosen = setups[0], setups[0].problem, None
    if auto or len(setups) > 1:
        sizes = np.arange(1, n + 1) if auto else np.array([n])
        trial = PairTrial if isinstance(ready.F, PairPreferences) else SizeTrial
        trials = (trial(setup, data, sizes) for setup in setups)
        chosen = choice.choose(trials, folds_wanted(cv, data.queries), get_metric(scoring))
        best, ready = chosen.candidate.setup, chosen.candidate.problem
    path = ready.released().path(n)
    if len(path) < n and (not auto or not len(path)):
        warn(
            f"stopped after {len(path)} of {n} basis functions: {path.stopped} "
            f"({path.n_skipped} atoms repeat chosen ones, {path.n_zero} are constant within queries)",
        )
    best = replace(best, problem=best.problem.released())
    if chosen is None:
        return Pursued(best, path, len(path))
    if auto:
        path = replace(path, scores=chosen.scores[: len(path)], score_errors=chosen.errors[: len(path)])
    predictions = None
    if chosen.predictions is not None:
        predictions = in_precision(data.all_rows(chosen.predictions)[:, 0], data.dtype)
    return Pursued(best, path, min(chosen.setting.size, len(path)), predictions)


def folds_wanted(cv: object, queries: Queries) -> object:
    """`cv`, with None replaced by its default."""
    single = len(queries) == 1
    if cv is None:
        return max(2, min(FOLDS, queries.n_rows // 2 if single else len(queries)))
    if isinstance(cv, str) and not single:
        checks.check_choice("cv", cv, ("leave-query-out",))
        return len(queries)
    return cv
