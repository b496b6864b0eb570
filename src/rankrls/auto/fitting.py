"""From rows to a model: judge candidates on a sample of whole queries, and fit the chosen ones to all rows."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import checks
from ..core.queries import Queries
from ..estimators import RankRLS
from ..metrics import Metric, get_metric
from ..system.limits import limits
from ..system.parallel import threads_for
from ..system.progress import counted
from ..system.types import Matrix
from ..system.warnings import warn
from ..tables import ColumnMaps
from . import glassbox
from .candidates import MAKE, METRIC, NEEDS, Common, Split
from .crossfit import Blend, CrossFit, CrossFitJudge, CrossFitted, Folds, fit_on_all, scores_of
from .effort import EFFORTS, Effort
from .link import Link
from .rows import AutoRows, Map

TINY = 1e-15
WORK = 1e4  # multiplications that a row counts as for `threads_for`: one thread is as fast up to 25,000 rows
SPENT = 0.5  # no further candidate is tried once this share of the given seconds has passed


@dataclass(frozen=True)
class StackPart:
    """A candidate in the final model: weight * map(N) @ coef, or weight * link(map(N) @ coef)."""

    name: str
    map: Map
    coef: np.ndarray
    weight: float
    link: Link | None = None

    def __call__(self, N: np.ndarray) -> np.ndarray:
        if self.link is not None:
            return self.weight * self.link(scores_of(self.map, self.coef, N))
        return scores_of(self.map, self.weight * self.coef, N)


@dataclass(frozen=True)
class FitPlan:
    """How to fit a model."""

    effort: Effort
    scoring: Any  # the requested metric
    seed: int
    relative: bool
    seconds: float | None = None  # None for no limit

    @classmethod
    def of(cls, effort: object, candidates: object, scoring: object, seed: int, relative: bool) -> FitPlan:
        """The plan for the given parameters; an error if they are invalid."""
        seconds = None
        if isinstance(effort, int | float | np.number) and not isinstance(effort, bool):
            if not 0 < float(effort) < np.inf:
                raise ValueError(f"effort as a number is the seconds to spend and must be positive: got {effort!r}")
            seconds, effort = float(effort), "normal"
        checks.check_choice("effort", effort, tuple(EFFORTS))
        plan = cls(EFFORTS[str(effort)], scoring, seed, bool(relative), seconds)
        if candidates is None:
            return plan
        names = [candidates] if isinstance(candidates, str) else list(candidates)  # type: ignore[call-overload]
        if not names:
            raise ValueError("candidates is empty: name at least one, or None for those of the effort")
        for name in names:
            checks.check_choice("each of candidates", name, tuple(MAKE))
        return replace(plan, effort=replace(plan.effort, candidates=tuple(name for name in MAKE if name in names)))

    @property
    def order(self) -> list[str]:
        """The candidates and what they build on, in the order in which they are tried."""
        names = self.effort.candidates
        needed = set(names).union(*(NEEDS.get(name, ()) for name in names))
        return [name for name in MAKE if name in needed]

    def usable(self, y: np.ndarray) -> Any:
        """The metric, or pairwise accuracy if the metric is not defined for the labels."""
        if not get_metric(self.scoring).name.startswith("ndcg"):
            return self.scoring
        return self.scoring if y.min() >= 0 and y.max() < 50 and (y > 0).any() else "pairwise_accuracy"

    def in_time(self, start: float) -> Iterator[str]:
        """Yield candidates until time runs out; always at least the first."""
        for number, name in enumerate(self.order):
            if number and self.seconds is not None and limits.clock() - start > SPENT * self.seconds:
                left = ", ".join(self.order[number:])
                warn(f"effort={self.seconds:g} seconds were not enough to try {left}: allow more, or leave them out")
                return
            yield name


@dataclass(frozen=True)
class AutoFit:
    """The result of a fit: attributes of the model."""

    parts: list[Any]
    columns: ColumnMaps | None
    leaderboard: list[dict[str, Any]]
    scoring: Any
    cv_score: float
    cv_error: float
    cv_scores: np.ndarray
    interactions: list[dict[str, Any]]
    feature_effects: list[dict[str, Any]]
    n_queries: int
    n_rows: int
    cv_predictions: np.ndarray | None = None
    additive: StackPart | None = None  # the model behind effects and interactions


def check_size(y: np.ndarray) -> None:
    """Sums are in single precision, which holds squares of labels neither huge nor tiny."""
    largest = float(np.abs(y).max())
    if not TINY < largest < 1 / TINY:
        raise ValueError(
            f"the largest label is {largest:.3g}, beyond single precision: divide labels by a constant so that it is "
            f"between {TINY:g} and {1 / TINY:g}; rankings do not change"
        )


# ---------------------------------------------------------------- rows in memory


def fit_dense(
    X: np.ndarray, y: np.ndarray, queries: Queries, weights: np.ndarray | None, names: Sequence[str], plan: FitPlan
) -> AutoFit:
    """Fit to rows in memory."""
    check_size(y)
    (columns, N), n_queries = learned_columns(X, queries, plan), len(queries)
    kept = np.arange(len(X)) if weights is None else np.flatnonzero(weights > 0)
    if len(kept) < len(X):
        assert weights is not None
        N, y, queries, weights = N[kept], y[kept], Queries.of(queries.codes[kept]), weights[kept]
    rows = AutoRows(N, y, queries, weights)
    sample = whole_queries(rows, plan, plan.effort.sample(len(rows)))
    found = fit_rows(rows, rows if sample is None else rows.part(sample), columns, names, plan)
    held = np.full(len(X), np.nan)
    held[kept if sample is None else kept[sample]] = found.cv_predictions
    return replace(found, cv_predictions=held, n_queries=n_queries, n_rows=len(X))


def learned_columns(X: np.ndarray, queries: Queries, plan: FitPlan) -> tuple[ColumnMaps, np.ndarray]:
    """The maps of columns, and the scores of the rows; an error if all columns are constant."""
    columns = ColumnMaps(relative=plan.relative, raw=True)
    N = columns.learn_scores(X, queries, np.float32)
    if not len(columns.columns_):
        raise ValueError(f"all {X.shape[1]} columns are constant over the {len(X)} rows: there is nothing to learn")
    return columns, N


def whole_queries(rows: AutoRows, plan: FitPlan, m: int) -> np.ndarray | None:
    """About m rows of randomly drawn whole queries on which everything is chosen; None for all rows."""
    if len(rows) <= m:
        return None
    order = np.random.default_rng(plan.seed).permutation(len(rows.queries))
    used = order[: max(2 * plan.effort.folds, int((np.cumsum(rows.queries.sizes[order]) <= m).sum()))]
    chosen = np.zeros(len(rows.queries), dtype=bool)
    chosen[used] = True
    found = np.flatnonzero(chosen[rows.queries.codes])
    if len(found) <= 2 * m:
        return found
    return np.sort(np.random.default_rng(plan.seed).choice(found, m, replace=False))


def fit_sparse(X: Matrix, y: np.ndarray, queries: Queries, weights: np.ndarray | None, plan: FitPlan) -> AutoFit:
    """A linear model for sparse rows."""
    start, scoring = time.perf_counter(), plan.usable(y)
    ids = queries.labels[queries.codes]
    model = RankRLS(weighting="items", tied_pairs=False, scoring=scoring).fit(X, y, ids, weights)
    best = int(np.argmin(np.abs(model.alphas_ - model.alpha_)))
    score, error = float(model.cv_scores_[best]), float(model.cv_errors_[best])
    entry = {"candidate": "linear", "score": score, "error": error, "weight": 1.0}
    board = [{**entry, "size": X.shape[1], "seconds": round(time.perf_counter() - start, 3)}]
    found = AutoFit([model], None, board, scoring, score, error, np.array([score]), [], [], len(queries), len(y))
    return replace(found, cv_predictions=model.cv_predictions_)


# ---------------------------------------------------------------- judging and fitting


def fit_rows(
    rows: AutoRows,
    sample: AutoRows,
    columns: ColumnMaps,
    names: Sequence[str],
    plan: FitPlan,
    units: np.ndarray | None = None,
) -> AutoFit:
    """Judge the candidates on a sample, and fit those that are used to all rows.

    `units` (m,) are dealt into folds instead of the sample's queries, if given.
    """
    scoring = plan.usable(sample.y)
    folds = dealt(sample, plan, units)
    final_basis = plan.effort.basis
    with threads_for(WORK * len(sample)):
        study = judged(sample, folds, columns, get_metric(scoring), plan, final_basis if rows is sample else 0)
        blend = Blend.of(stacked(study, plan), sample, study.judge).towards(sample, study.judge)
        board = leaderboard(study, blend)
        score, error = study.judge.score(blend.held)
        values = study.judge.metric.per_query(study.judge.y, blend.held, folds.groups)
    common = Common(rows, columns, plan.effort, plan.seed, final_basis)
    if rows is sample:
        common.reuse(study.common)
    final = Split(common, rows, known_effects=mean_effects(study), known_pairs=stable_pairs(study))
    with threads_for(WORK * len(rows) if rows.in_memory else np.inf):
        parts = fitted_parts(final, study, blend)
    by_fold = np.array([_mean(values[folds.of_group == fold]) for fold in range(len(folds))])
    learned = not final.coef.keys().isdisjoint(METRIC) and "additive" not in final.coef
    additive, interactions, effects = shown(study.splits[0] if learned else final, columns, names)
    sums = [made.sums for made in final.made.values()]  # all over the same rows; empty if nothing beats ties
    size = (sums[0].n_queries, sums[0].n_rows) if sums else (len(sample.queries), len(sample))
    about = board, scoring, score, error, by_fold, interactions, effects
    return AutoFit(parts, columns, *about, *size, cv_predictions=blend.held, additive=additive)


def dealt(sample: AutoRows, plan: FitPlan, units: np.ndarray | None) -> Folds:
    """The folds of a sample."""
    rng = np.random.default_rng(plan.seed)
    if units is None:
        return Folds.deal(sample.queries, plan.effort.folds, rng)
    of_row = Folds.deal(Queries.of(units), plan.effort.folds, rng).of_row
    of_query = np.empty(len(sample.queries), dtype=np.intp)
    of_query[sample.queries.codes] = of_row
    return Folds(of_query[sample.queries.codes], sample.queries, of_query)


def judged(
    rows: AutoRows, folds: Folds, columns: ColumnMaps, metric: Metric, plan: FitPlan, final_basis: int
) -> CrossFit:
    """The candidates judged by cross-fitting on some rows; fewer if interrupted."""
    parts = [folds.rows(fold) for fold in range(len(folds))]
    common = Common(rows, columns, plan.effort, plan.seed, plan.effort.cv_basis, parts, final_basis)
    study = CrossFit(common, folds, CrossFitJudge(metric, rows.y, folds))
    try:
        study.run(counted(plan.in_time(limits.clock()), "candidates", len(plan.order)))
    except KeyboardInterrupt:
        if not study.judged:
            raise
        tried = ", ".join(one.name for one in study.judged)
        warn(f"interrupted: the model uses the candidates tried so far ({tried})")
    return study


def stacked(study: CrossFit, plan: FitPlan) -> list[CrossFitted]:
    """The candidates that may enter the stack: all but steps towards another candidate that was reached."""
    reached = {need for one in study.judged for need in NEEDS.get(one.name, ())}
    return [one for one in study.judged if one.name in plan.effort.candidates or one.name not in reached]


def fitted_parts(final: Split, study: CrossFit, blend: Blend) -> list[Any]:
    """The candidates with a weight in the stack, and those they build on, fitted to all rows."""
    weight = {one.name: w / d for one, w, d in zip(blend.judged, blend.weights, blend.deviation, strict=True) if w > 0}
    alpha, link = ({one.name: getattr(one, which) for one in study.judged} for which in ("alpha", "link"))
    needed = set(weight).union(*(NEEDS.get(name, ()) for name in weight if name not in METRIC))
    order = [one.name for one in study.judged if one.name in needed]
    try:
        for name in counted(order, "final model"):
            fit_on_all(final, name, alpha[name])
    except KeyboardInterrupt:
        left = [name for name in order if name not in final.coef]
        weight = weights_of_fitted(weight, final.coef)
        if not weight:
            raise
        warn(f"interrupted: the final model leaves out {', '.join(left)}")
    return [
        StackPart(name, final.made[name].map, final.coef[name], float(weight[name]), link[name])
        for name in order
        if name in weight
    ]


def mean_effects(study: CrossFit) -> dict[str, np.ndarray]:
    """The effects of columns in each candidate that gives a metric its weights, averaged over the splits."""
    reached = {by for name, by in METRIC.items() if name in study.splits[0].made}
    return {by: np.mean([split.effects(by) for split in study.splits], axis=0) for by in reached}


def stable_pairs(study: CrossFit) -> dict[tuple[int, int], float]:
    """The pairs of columns that at least half of the splits have found, and the means of their lifts."""
    lifts: dict[tuple[int, int], list[float]] = {}
    for split in study.splits:
        if "additive" in split.made:
            for (i, j), lift in zip(split.made["additive"].map.pairs.tolist(), split.lifts, strict=True):
                lifts.setdefault((i, j), []).append(float(lift))
    return {pair: float(np.mean(found)) for pair, found in lifts.items() if 2 * len(found) >= len(study.splits)}


def weights_of_fitted(weight: dict[str, float], fitted: Container[str]) -> dict[str, float]:
    """The weights of fitted candidates; one that was not fitted gives its weight to the last fitted step towards it."""
    found: dict[str, float] = {}
    for name, value in weight.items():
        there = next((n for n in (name, *reversed(NEEDS.get(name, ()))) if n in fitted), None)
        if there is not None:
            found[there] = found.get(there, 0.0) + value
    return found


# ---------------------------------------------------------------- inspection


def leaderboard(study: CrossFit, blend: Blend) -> list[dict[str, Any]]:
    """The candidates, best first."""
    shares = blend.shares
    board: list[dict[str, Any]] = []
    for one in study.judged:
        score, error = study.judge.score(one.honest)
        entry = {"candidate": one.name, "score": score, "error": error, "weight": shares.get(one.name, 0.0)}
        board.append({**entry, "size": one.size, "seconds": round(one.seconds, 3)})
    sign = 1 if study.judge.metric.greater_is_better else -1
    return sorted(board, key=lambda entry: -sign * entry["score"])


def shown(
    final: Split, columns: ColumnMaps, names: Sequence[str]
) -> tuple[StackPart | None, list[dict[str, Any]], list[dict[str, Any]]]:
    """The additive model with its pairs and curves, or the slopes of the linear model if there is no additive one."""
    named = columns.get_feature_names_out(names)
    name = next((name for name in ("adaptive", "additive", "scores", "linear") if name in final.coef), None)
    if name is None:
        return None, [], []
    if name in ("scores", "linear"):
        return None, [], glassbox.linear_effects(final.made[name].map, final.coef[name], columns, named)
    made, coef, lifts = final.made[name], final.coef[name], {}
    if "additive" in final.made:
        lifts = dict(zip(map(tuple, final.made["additive"].map.pairs.tolist()), final.lifts.tolist(), strict=True))
    effects = glassbox.feature_effects(made, coef, columns, named)
    return StackPart(name, made.map, coef, 1.0), glassbox.interactions(made, coef, lifts, named), effects


def _mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
