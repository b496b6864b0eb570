"""Settings chosen by exact hold-out: alpha; nu and alpha; a number of functions; a fidelity.

A candidate is a way to set up the problem (a kernel, a basis, ties included or not) together with the settings that one
factorisation solves it for. `choose` is the only loop over candidates, and `best` the only rule for a winner: among
settings that score the same up to rounding the most regularised one wins, and among candidates the first.

Folds are unions of whole queries: a model never sees part of the query it is judged on. A single query (global
ranking) is cut into folds of its items instead; with tied pairs included that too is exact without refits, since
ranking m items of one query is ridge regression with a free intercept::

    c S || C (y - f) ||^2 = c S min_b || y - f - b ||^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import checks
from ..core.pairs import PairPreferences
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..metrics import Metric, standard_error
from ..system.progress import numbered
from ..system.warnings import warn
from .base import HeldOutFold
from .dual import Dual
from .iterative import Iterative
from .primal import Primal

Problem = Primal | Dual | Iterative

ALPHA_RANGE = (-5.0, 2.0)  # decades around the mean eigenvalue of the loss: docs/decisions/0001-defaults.md
N_ALPHAS = 15
ITEM_FOLDS = 10
ITERATIVE_FOLDS = 5
EXTENSIONS, DECADES = 2, 3  # a grid grows at most twice, by three decades, while its best alpha is at its end
ENOUGH_GROUPS = 20  # held-out queries needed to tell a score from chance
MANY_COMPONENTS, LARGEST_COMPONENT = 4, 0.5  # conditions for leaving out components of explicit pairs as a whole
TIES_COUNT_HALF = ("pairwise_accuracy", "auc")  # metrics that are 0.5 where all rows tie
ROUNDING = 1e-10  # scores whose relative difference is smaller are equal
FLAT = 1e-4  # the grid is not extended if its last half decade of alpha gained less than this share


class Setting(NamedTuple):
    """One value for everything that is chosen by hold-out; zero for parameters that a model does not have."""

    alpha: float = 0.0
    nu: float = 0.0
    fidelity: float = 0.0
    size: int = 0

    @property
    def strength(self) -> tuple[float, ...]:
        """Sort key: how strongly a setting regularises."""
        return self.alpha, self.nu, self.fidelity, -self.size


@dataclass(frozen=True)
class Judged:
    """How well each setting of a candidate ranks held-out rows."""

    settings: Sequence[Setting]
    scores: np.ndarray  # (k,) mean score over held-out queries
    errors: np.ndarray  # (k,) standard error over those queries; NaN if the metric is not a mean over queries
    predictions: Any = None  # (m, k, t) held-out scores, NaN outside the folds, or what computes them for [:, k]
    chance: float = np.nan  # the score of a model that ties everything
    n_groups: int = 0  # held-out queries behind the scores

    def joined(self, other: Judged) -> Judged:
        """The settings of both, sorted by how strongly they regularise."""
        settings = [*self.settings, *other.settings]
        order = sorted(range(len(settings)), key=lambda k: settings[k].strength)
        scores = np.concatenate([self.scores, other.scores])[order]
        errors = np.concatenate([self.errors, other.errors])[order]
        predictions = None
        if self.predictions is not None and other.predictions is not None:
            predictions = np.concatenate([self.predictions, other.predictions], axis=1)[:, order]
        return Judged([settings[k] for k in order], scores, errors, predictions, self.chance, self.n_groups)

    def first(self, n: int) -> Judged:
        """The first n settings."""
        predictions = None if self.predictions is None else self.predictions[:, :n]
        return replace(
            self, settings=self.settings[:n], scores=self.scores[:n], errors=self.errors[:n], predictions=predictions
        )

    @property
    def learned_nothing(self) -> bool:
        """True if no setting differs from chance by two standard errors, over enough queries to tell."""
        far = np.abs(self.scores - self.chance) > 2 * self.errors
        return self.n_groups >= ENOUGH_GROUPS and bool(np.all(np.isfinite(self.errors))) and not far.any()


class Candidate(Protocol):
    """A way to set up the problem, with the settings it can be solved for."""

    def judge(self, folds: object, metric: Metric) -> Judged:
        """Judge each setting on held-out rows; `folds` is what the caller asked for (`cv`).

        If the candidate fitted its grid of alphas to the data (`extends`), it also accepts `alphas` to judge instead.
        """


@dataclass(frozen=True)
class Choice:
    """The candidate and the setting that ranked held-out rows best."""

    candidate: Any
    settings: Sequence[Setting]
    scores: np.ndarray  # (k,)
    errors: np.ndarray  # (k,)
    predictions: Any  # (m, t) held-out scores at the best setting, None if there are none
    best: int
    held_out: Any = None  # (m, k, t) held-out scores at every setting

    @classmethod
    def only(cls, candidate: object, setting: Setting) -> Choice:
        """The choice where there is one candidate with one setting."""
        return cls(candidate, [setting], np.empty(0), np.empty(0), None, 0)

    @property
    def setting(self) -> Setting:
        return self.settings[self.best]

    @property
    def alphas(self) -> np.ndarray:
        """(k,) the alphas that were tried."""
        return np.array([setting.alpha for setting in self.settings])


def choose(candidates: Iterable[Candidate], folds: object, metric: Metric) -> Choice:
    """The best setting of the best candidate; among equals the most regularised setting of the first candidate."""
    sign = 1 if metric.greater_is_better else -1
    found: Choice | None = None
    hopeless = False
    for candidate in numbered(candidates, "setting"):
        judged = _judged_beyond(candidate, candidate.judge(folds, metric), folds, metric, sign)
        winner = best(sign * judged.scores, [setting.strength for setting in judged.settings])
        if found is None or exceeds(sign * judged.scores[winner], sign * found.scores[found.best]):
            predictions = None if judged.predictions is None else judged.predictions[:, winner].copy()
            found = Choice(
                candidate, judged.settings, judged.scores, judged.errors, predictions, winner, judged.predictions
            )
            hopeless = judged.learned_nothing
    assert found is not None
    if hopeless:
        warn(
            f"nothing was learned: on held-out queries {metric.name} is {found.scores[found.best]:.3f} at best, no "
            "better than chance; check that the rows of X, y and qid are in the same order"
        )
    return found


def _judged_beyond(candidate: Any, judged: Judged, folds: object, metric: Metric, sign: int) -> Judged:
    """Judge more alphas while `beyond` proposes some and the grid was fitted to the data."""
    checks.check_held_out(judged.scores, metric.name)
    given, extends = [setting.alpha for setting in judged.settings], getattr(candidate, "extends", None)
    for _ in range(EXTENSIONS if extends else 0):
        k, more = len(judged.scores), beyond(sign * judged.scores, np.array([one.alpha for one in judged.settings]))
        if more is None:
            break
        judged = judged.joined(candidate.judge(folds, metric, more))
        checks.check_held_out(judged.scores, metric.name)
        scores, n = sign * judged.scores, len(judged.scores)
        while more[0] > given[0] and n > k and not exceeds(np.max(scores), np.min(scores[n - 2 : n])):
            n -= 1  # the curve is flat here: larger alphas cannot win
        judged = judged.first(n)
    if extends is False and len(given) > 1 and beyond(sign * judged.scores, np.array(given)) is not None:
        warn_of_end(given)
    if extends:
        warn_of_end(given, [setting.alpha for setting in judged.settings])
    return judged


def beyond(scores: np.ndarray, alphas: np.ndarray) -> np.ndarray | None:
    """More alphas, ascending, if the best of a grid is at its end and the curve still rises there; else None."""
    order = np.argsort(alphas)
    scores, alphas, k = scores[order], alphas[order], len(alphas)
    winner = best(scores, alphas)
    beside = {0: 1, k - 1: k - 2}.get(winner)
    if k < 2 or beside is None or alphas[winner] == 0:
        return None
    if scores[winner] - scores[beside] <= FLAT * abs(scores[winner]):
        return None
    return np.sort(alphas[winner] * 10.0 ** ((winner - beside) * np.arange(1, 2 * DECADES + 1) / 2))


def warn_of_end(given: Sequence[float] | np.ndarray, now: Sequence[float] | np.ndarray | None = None) -> None:
    """Warn that the best alpha was at the end of the caller's grid, or of the default grid, which was extended."""
    ends = f"the best alpha was at the end of the grid ({min(given):.2g} to {max(given):.2g})"
    if now is None:
        warn(f"{ends}: pass a wider one as alphas=, or leave alphas out to let the data choose")
    elif len(now) != len(given):
        warn(f"{ends}, which was extended to {min(now):.2g} to {max(now):.2g}; pass alphas= to set your own grid")


def best(scores: np.ndarray, strengths: Sequence[Any] | np.ndarray) -> int:
    """The index of the largest score; among scores equal up to rounding, that of the most regularised setting."""
    top = float(np.max(scores))
    ties = [k for k in range(len(scores)) if not exceeds(top, scores[k])]
    return max(ties, key=lambda k: strengths[k])


def exceeds(a: float, b: float) -> bool:
    """True if a is larger than b by more than rounding."""
    return bool(a - b > ROUNDING * max(abs(a), abs(b)))


def default_alphas(mean_eigenvalue: float) -> np.ndarray:
    """A grid around the loss's mean eigenvalue, so that it does not depend on the scale of the data."""
    return (mean_eigenvalue if mean_eigenvalue > 0 else 1.0) * np.logspace(*ALPHA_RANGE, N_ALPHAS)


def judge(
    leave_out: Callable[[Sequence[HeldOutFold] | None], np.ndarray],
    settings: Sequence[Setting],
    y: np.ndarray,
    folds: Sequence[HeldOutFold] | None,
    groups: Queries,
    metric: Metric,
) -> Judged:
    """Judge settings on held-out rows; `leave_out(folds)` gives their (m, k, t) scores.

    `folds=None` leaves out each query in turn. Rows are judged within `groups`. Folds that overlap are judged one by
    one, and their scores averaged.
    """
    predictions: Any = None
    layers: list[Any] = [folds] if folds is None or _disjoint(folds) else [[fold] for fold in folds]
    scores, of_groups, undefined = [], [], None
    for layer in layers:
        held = leave_out(layer)
        rows = _rows_of(layer, len(y))
        part = groups if layer is None else Queries.of(groups.codes[rows])
        if predictions is None:
            predictions = held  # NaN outside the folds
        else:
            predictions[rows] = held[rows]
        try:
            judged = [metric.judge(y[rows, t], held[rows, :, t], part) for t in range(held.shape[2])]
        except ValueError as error:  # this layer has nothing to judge; another may
            undefined = error
            continue
        scores.append(np.mean([mean for mean, _ in judged], axis=0))
        codes = np.arange(len(groups)) if layer is None else part.labels
        of_groups += [(codes, values) for _, values in judged]
    if undefined is not None and not scores:
        raise undefined
    n_groups = len({code for codes, _ in of_groups for code in codes.tolist()})
    chance = _chance(metric, y, groups)
    return Judged(settings, np.mean(scores, axis=0), _errors(of_groups), predictions, chance, n_groups)


def _rows_of(folds: Sequence[HeldOutFold] | None, m: int) -> slice | np.ndarray:
    """The rows of folds in ascending order; a slice if these are all rows, so that none are copied."""
    rows = None if folds is None else np.sort(np.concatenate([fold.rows for fold in folds]))
    return slice(None) if rows is None or len(rows) == m else rows


def judge_in_turn(
    held_out: Callable[[int], np.ndarray],
    settings: Sequence[Setting],
    y: np.ndarray,
    folds: Sequence[HeldOutFold],
    groups: Queries,
    metric: Metric,
) -> Judged:
    """The same for disjoint folds, one target and a mean over groups, without keeping scores.

    `held_out(number)` gives the (l, k) scores of a fold, which are judged before the next fold's are computed.
    """
    values = np.full((len(groups), len(settings)), np.nan)
    for number, fold in enumerate(folds):
        part = Queries.of(groups.codes[fold.rows])
        values[part.labels] = metric.per_query(y[fold.rows, 0], held_out(number), part)
    codes = np.unique(groups.codes[_rows_of(folds, len(y))])
    errors = _errors([(codes, values[codes])])
    return Judged(settings, metric.mean(values[codes]), errors, None, _chance(metric, y, groups), len(codes))


def in_turn(folds: Sequence[HeldOutFold] | None, metric: Metric) -> bool:
    """True if scores can be judged fold by fold: folds are disjoint, and the metric is a mean over queries."""
    return folds is not None and metric.averages and _disjoint(folds)


def _chance(metric: Metric, y: np.ndarray, groups: Queries) -> float:
    """The score of a model that ties all rows of a query; NaN for a function of the caller's."""
    if not metric.averages or metric.name in TIES_COUNT_HALF:
        return 0.5 if metric.averages else np.nan
    ties = np.zeros(len(y))
    return float(np.mean([metric.judge(y[:, t], ties, groups)[0] for t in range(y.shape[1])]))


def _errors(of_groups: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """(k,) standard errors over groups from their codes (g,) and values (g, k).

    A group that occurs several times, in other folds or for other targets, counts once, with the mean of its values.
    """
    codes, values = (np.concatenate(parts) for parts in zip(*of_groups, strict=True))
    defined = ~np.isnan(values).any(axis=1)
    seen, place, times = np.unique(codes[defined], return_inverse=True, return_counts=True)
    total = np.zeros((len(seen), values.shape[1]))
    np.add.at(total, place, values[defined])
    return standard_error(total / times[:, None])


def pair_scores(problem: Primal, alphas: np.ndarray) -> np.ndarray:
    """(k,) the share of explicit pairs that models which never saw them put in the right order."""
    F = problem.F
    assert isinstance(F, PairPreferences)
    return in_order(pair_margins(problem, alphas), problem.y, F)


def pair_margins(problem: Primal, alphas: np.ndarray) -> np.ndarray:
    """(p, k) the margin of each explicit pair under models that never saw it.

    Each pair is left out by itself. If the preference graph falls into many components of comparable size, these are
    left out as a whole, like queries; with a few small ones that would measure nothing about the rest.
    """
    F = problem.F
    assert isinstance(F, PairPreferences)
    components = separate(F)
    if components is not None:
        return problem.leave_out([HeldOutFold(rows) for rows in components], alphas)[:, :, 0]
    return problem.leave_pairs_out(alphas)[:, :, 0]


def separate(F: PairPreferences) -> list[np.ndarray] | None:
    """The pairs of each component of the preference graph, if there are many of comparable size; else None."""
    components = F.components()
    largest = max(len(rows) for rows in components)
    many = len(components) >= MANY_COMPONENTS and largest <= LARGEST_COMPONENT * F.shape[0]
    return components if many else None


def in_order(predicted: np.ndarray, margins: np.ndarray, F: PairPreferences) -> np.ndarray:
    """(k,) the share of explicit pairs in the right order, from their predicted margins (p, k) and the given (p, 1)."""
    right = np.sign(predicted) * np.sign(margins)
    return np.average((1 + right) / 2, axis=0, weights=F.w)


def query_folds(tests: Sequence[np.ndarray], queries: Queries) -> list[HeldOutFold]:
    """Folds from test sets of rows, each a union of whole queries."""
    folds = []
    for number, test in enumerate(tests):
        rows = np.unique(test)
        inside = np.bincount(queries.codes[rows], minlength=len(queries))
        cut = (inside > 0) & (inside < queries.sizes)
        if cut.any():
            q = int(np.argmax(cut))
            raise ValueError(
                f"cv fold {number} cuts query {queries.labels[q]!r} ({inside[q]} of its {queries.sizes[q]} rows): "
                "held-out folds must be unions of whole queries; use GroupKFold or another group splitter"
            )
        if len(rows) == queries.n_rows:
            raise ValueError(f"cv fold {number} holds out every row: nothing is left to train on")
        folds.append(HeldOutFold(rows))
    return folds


def dealt_folds(y: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Folds of items, dealt out like cards in the order of y: every fold spans the range of y; nothing is random."""
    order = np.argsort(y, kind="stable")
    return [np.sort(order[i::n_folds]) for i in range(n_folds)]


def fold_groups(folds: Sequence[HeldOutFold], m: int) -> Queries:
    """The groups that rows are judged in: the folds, as each has its own model; one group if folds overlap."""
    codes = np.zeros(m, dtype=np.intp)
    if _disjoint(folds):
        for number, fold in enumerate(folds):
            codes[fold.rows] = number
    return Queries.of(codes)


def item_factor(F: QueryPreferences, rows: np.ndarray | None = None) -> float:
    """beta + (1 - beta) c S of a single query after some of its items are left out."""
    stay = np.ones(F.shape[0], dtype=bool)
    if rows is not None:
        stay[rows] = False
    return float(F.restrict(np.flatnonzero(stay)).weighting.between2[0])


def _disjoint(folds: Sequence[HeldOutFold]) -> bool:
    return int(np.bincount(np.concatenate([fold.rows for fold in folds])).max(initial=0)) <= 1
