"""The choice of settings by exact hold-out: alpha; nu and alpha; a number of functions; a fidelity.

A candidate is a way to set up the problem (a kernel, a basis, ties included or not) with the settings it can be solved
for after one factorisation. `choose` is the one loop over candidates, and `best` the one rule for a winner: where
several settings score the same up to rounding, the most regularised one wins, and among candidates the first.

Folds are unions of whole queries: a model never sees part of the query it is judged on. A single query (global
ranking) is cut into folds of its items instead; with tied pairs included that too is exact without refits, since
ranking m items of one query is ridge regression with a free intercept::

    c S || C (y - f) ||^2 = c S min_b || y - f - b ||^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import checks
from ..core.pairs import PairPreferences
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..metrics import Metric, standard_error
from .base import Fold
from .dual import Dual
from .iterative import Iterative
from .primal import Primal

Problem = Primal | Dual | Iterative

ALPHA_RANGE = (-5.0, 2.0)  # decades around the mean eigenvalue of the loss: docs/decisions/0001-defaults.md
N_ALPHAS = 15
ITEM_FOLDS = 10
ITERATIVE_FOLDS = 5
ROUNDING = 1e-10  # scores that differ by less than this share are equal


class Setting(NamedTuple):
    """One value of everything that is chosen by hold-out; zero where a model has no such parameter."""

    alpha: float = 0.0
    nu: float = 0.0
    fidelity: float = 0.0
    size: int = 0

    @property
    def strength(self) -> tuple[float, ...]:
        """Sorts settings by how strongly they regularise."""
        return self.alpha, self.nu, self.fidelity, -self.size


@dataclass(frozen=True)
class Judged:
    """How well each setting of a candidate ranks rows it has not seen."""

    settings: Sequence[Setting]
    scores: np.ndarray  # (k,) mean score over held-out queries
    errors: np.ndarray  # (k,) its standard error over them; NaN where the metric is not a mean over queries
    predictions: np.ndarray | None = None  # (m, k, t) held-out scores, NaN outside the folds


class Candidate(Protocol):
    """A way to set up the problem."""

    def judge(self, folds: object, metric: Metric) -> Judged:
        """What hold-out says of each setting; `folds` is what the caller asked for (`cv`)."""


@dataclass(frozen=True)
class Choice:
    """The candidate and the setting that ranked held-out rows best."""

    candidate: Any
    settings: Sequence[Setting]
    scores: np.ndarray  # (k,)
    errors: np.ndarray  # (k,)
    predictions: Any  # (m, t) held-out scores at the best setting, None if there are none
    best: int

    @classmethod
    def only(cls, candidate: object, setting: Setting) -> Choice:
        """The one there is, where there is nothing to choose."""
        return cls(candidate, [setting], np.empty(0), np.empty(0), None, 0)

    @property
    def setting(self) -> Setting:
        return self.settings[self.best]


def choose(candidates: Iterable[Any], folds: object, metric: Metric) -> Choice:
    """The best setting of the best candidate; among equals the most regularised setting of the first candidate."""
    sign = 1 if metric.greater_is_better else -1
    found: Choice | None = None
    for candidate in candidates:
        judged = candidate.judge(folds, metric)
        checks.check_held_out(judged.scores, metric.name)
        winner = best(sign * judged.scores, [setting.strength for setting in judged.settings])
        if found is None or _exceeds(sign * judged.scores[winner], sign * found.scores[found.best]):
            predictions = None if judged.predictions is None else judged.predictions[:, winner].copy()
            found = Choice(candidate, judged.settings, judged.scores, judged.errors, predictions, winner)
    assert found is not None
    return found


def best(scores: np.ndarray, strengths: Sequence[Any] | np.ndarray) -> int:
    """Where the score is largest; up to rounding, the strongest of several."""
    top = float(np.max(scores))
    ties = [k for k in range(len(scores)) if not _exceeds(top, scores[k])]
    return max(ties, key=lambda k: strengths[k])


def _exceeds(a: float, b: float) -> bool:
    """Whether a is larger than b by more than rounding."""
    return bool(a - b > ROUNDING * max(abs(a), abs(b)))


def default_alphas(mean_eigenvalue: float) -> np.ndarray:
    """A grid around the loss's mean eigenvalue, so that it does not depend on the scale of the data."""
    return (mean_eigenvalue if mean_eigenvalue > 0 else 1.0) * np.logspace(*ALPHA_RANGE, N_ALPHAS)


def judge(
    leave_out: Callable[[Sequence[Fold] | None], np.ndarray],
    settings: Sequence[Setting],
    y: np.ndarray,
    folds: Sequence[Fold] | None,
    groups: Queries,
    metric: Metric,
) -> Judged:
    """What hold-out says of settings; `leave_out(folds)` gives the (m, k, t) scores of held-out rows.

    `folds=None` leaves out each query in turn. Rows are judged within `groups`. Folds that overlap are judged one by
    one, and their scores averaged.
    """
    predictions: Any = None
    layers: list[Any] = [folds] if folds is None or _disjoint(folds) else [[fold] for fold in folds]
    scores, of_groups, undefined = [], [], None
    for layer in layers:
        held = leave_out(layer)
        rows = slice(None) if layer is None else np.sort(np.concatenate([fold.rows for fold in layer]))
        part = groups if layer is None else Queries.of(groups.codes[rows])
        if predictions is None:
            predictions = held  # NaN outside the folds
        else:
            predictions[rows] = held[rows]
        try:
            judged = [metric.judge(y[rows, t], held[rows, :, t], part) for t in range(held.shape[2])]
        except ValueError as error:  # nothing to judge in this layer; perhaps in another
            undefined = error
            continue
        scores.append(np.mean([mean for mean, _ in judged], axis=0))
        codes = np.arange(len(groups)) if layer is None else part.labels
        of_groups += [(codes, values) for _, values in judged]
    if undefined is not None and not scores:
        raise undefined
    return Judged(settings, np.mean(scores, axis=0), _errors(of_groups), predictions)


def _errors(of_groups: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """(k,) standard errors over groups from their codes (g,) and values (g, k).

    A group that occurs again, in another fold or for another target, counts once with the mean of its values.
    """
    codes, values = (np.concatenate(parts) for parts in zip(*of_groups, strict=True))
    defined = ~np.isnan(values).any(axis=1)
    seen, place, times = np.unique(codes[defined], return_inverse=True, return_counts=True)
    total = np.zeros((len(seen), values.shape[1]))
    np.add.at(total, place, values[defined])
    return standard_error(total / times[:, None])


def pair_scores(problem: Primal, alphas: np.ndarray) -> np.ndarray:
    """(k,) the share of explicit pairs in the right order by models that never saw them.

    Connected components of the preference graph are left out as queries are; where all pairs are linked, each pair.
    """
    F = problem.F
    assert isinstance(F, PairPreferences)
    components = F.components()
    if len(components) > 1:
        predicted = problem.leave_out([Fold(rows) for rows in components], alphas)[:, :, 0]
    else:
        predicted = problem.leave_pairs_out(alphas)[:, :, 0]
    right = np.sign(predicted) * np.sign(problem.y)
    return np.average((1 + right) / 2, axis=0, weights=F.w)


def query_folds(tests: Sequence[np.ndarray], queries: Queries) -> list[Fold]:
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
        folds.append(Fold(rows))
    return folds


def dealt_folds(y: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Items in the order of y dealt out like cards: every fold spans the whole range of y; no randomness."""
    order = np.argsort(y, kind="stable")
    return [np.sort(order[i::n_folds]) for i in range(n_folds)]


def fold_groups(folds: Sequence[Fold], m: int) -> Queries:
    """Items of a single query are judged within their fold: each fold has another model."""
    codes = np.zeros(m, dtype=np.intp)
    if _disjoint(folds):
        for number, fold in enumerate(folds):
            codes[fold.rows] = number
    return Queries.of(codes)


def item_factor(F: QueryPreferences, rows: np.ndarray | None = None) -> float:
    """beta + (1 - beta) c S of the one query that is left when some of its items are left out."""
    stay = np.ones(F.shape[0], dtype=bool)
    if rows is not None:
        stay[rows] = False
    return float(F.restrict(np.flatnonzero(stay)).weighting.between2[0])


def _disjoint(folds: Sequence[Fold]) -> bool:
    rows = np.concatenate([fold.rows for fold in folds])
    return len(np.unique(rows)) == len(rows)
