"""Transduction: scores for unscored queries, from a RankRLS of the scored ones and the fidelity to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn.model_selection import GroupKFold

from ... import checks
from ...bases import BasisLike
from ...core.preferences import QueryPreferences
from ...core.queries import Queries
from ...kernels import KernelLike, Precomputed, is_precomputed
from ...metrics import Metric, get_metric
from ...problems import choice
from ...problems.choice import Judged, Setting
from ...problems.iterative import Iterative
from ...problems.transduction import AnyFolds, Completion, completion
from ...system.lazy import cached_property
from ...system.progress import numbered
from ...system.types import ArrayLike, Seed
from ...system.warnings import warn
from ..ranking.leave_pair_out import items_of
from ..rankrls import RankRLS
from ..rows.intake import PartlyScored
from ..rows.training import Training

FIDELITY_RANGE = (-2.0, 2.0)  # decades around the mean weight of a row in the loss
N_FIDELITIES = 5


@dataclass(frozen=True)
class Inductive:
    """The RankRLS of the scored queries with one kernel."""

    data: Training
    fit: Callable[[], RankRLS]

    @cached_property
    def model(self) -> RankRLS:
        return self.fit()

    def judge(self, cv: object, metric: Metric) -> Judged:
        """The held-out score of every alpha, from the model's own leave-query-out."""
        model = self.model
        return Judged([Setting(alpha=float(a)) for a in model.alphas_], model.cv_scores_, model.cv_errors_)


@dataclass(frozen=True)
class Hidden:
    """The fidelities to choose from, judged on scored queries that are treated as unscored."""

    fidelities: np.ndarray
    held_out: Callable[[Any, np.ndarray], np.ndarray]
    y: np.ndarray
    scored: np.ndarray  # (m,) bool
    queries: Queries

    def judge(self, cv: object, metric: Metric) -> Judged:
        """The score of each fidelity on the hidden queries."""
        held, rows = self.held_out(cv, self.fidelities), np.flatnonzero(self.scored)
        scores = np.asarray(metric(self.y[rows], held[rows], Queries.of(self.queries.codes[rows])))
        settings = [Setting(fidelity=float(value)) for value in self.fidelities]
        return Judged(settings, scores, np.full(len(scores), np.nan), held[:, :, None])


class TransductiveParameters(Protocol):
    """The parameters of `TransductiveRankRLS`."""

    alpha: float | str
    fidelity: float | str
    kernel: KernelLike | None
    basis: BasisLike | None
    weighting: str
    tied_pairs: bool
    regression: float
    folds: ArrayLike | None
    alphas: ArrayLike | None
    fidelities: ArrayLike | None
    scoring: str | Callable[..., float]
    cv: Any
    random_state: Seed
    store_path: bool


@dataclass(frozen=True)
class TransductiveFit:
    """The result of fitting TransductiveRankRLS."""

    ranker: RankRLS
    inductive: RankRLS
    alpha: float
    fidelity: float
    n_queries: int
    n_unscored_queries: int
    transduction: np.ndarray | None = None  # (m,) scores of all rows, if they are in memory
    multipliers: np.ndarray | None = None  # (2, r) c and mu, for scores of rows that are not in memory
    directions: np.ndarray | None = None  # (n, r) and the unit of fidelity, which belong to them
    fidelity_unit: float | None = None
    fidelities: np.ndarray | None = None
    cv_scores: np.ndarray | None = None
    alphas: np.ndarray | None = None  # this and the rest on request, for the scored rows
    cv_predictions: np.ndarray | None = None  # (m,)
    cv_predictions_path: np.ndarray | None = None  # (m, n_alphas)
    fidelity_predictions_path: np.ndarray | None = None  # (m, n_fidelities)


def fit_transduction(
    model: TransductiveParameters, rows: PartlyScored, *, more_to_come: bool = False
) -> TransductiveFit:
    """Complete the scores and fit a ranker to all of them; `model` has the parameters.

    `more_to_come` means that unscored rows may follow later.
    """
    y, queries = rows.y.copy(), rows.queries
    check_several_queries(queries, model.folds)
    unscored = np.isnan(y)
    if rows.weights is not None and not np.all(rows.weights):
        raise ValueError(f"sample_weight is zero for {int(np.sum(rows.weights == 0))} rows: drop these rows")
    targets = np.where(unscored, 0.0, y)[:, None]
    data = Training(rows.X, targets, queries, rows.weights, n_given=rows.X.shape[0])
    best = inductive(model, data, y, np.flatnonzero(~unscored))
    found = TransductiveFit(
        transduction=y,
        ranker=best.model,
        inductive=best.model,
        alpha=best.model.alpha_,
        fidelity=np.nan if isinstance(model.fidelity, str) else float(model.fidelity),
        n_queries=len(queries),
        n_unscored_queries=int(np.sum(queries.sum(unscored) == queries.sizes)),
    )
    if model.store_path:
        found = _with_path(found, best.data, ~unscored)
    if not unscored.any():
        if not more_to_come:
            _warn_that_all_are_scored(model.tied_pairs)
        return found
    found = transduced(model, found, best.data, y, unscored)
    assert found.transduction is not None
    every, scores = np.arange(len(y)), found.transduction
    ranker = ranker_of_rows(model, best.data, every, scores, found.alpha, store_path=model.store_path)
    return replace(found, ranker=ranker)


def _warn_that_all_are_scored(tied_pairs: bool) -> None:
    warn(
        "every row has a score, so there is nothing to transduce and this is "
        f"RankRLS(tied_pairs={tied_pairs}); set y to NaN for the queries without scores",
    )


def _with_path(found: TransductiveFit, data: Training, scored: np.ndarray) -> TransductiveFit:
    """Add the held-out scores of the inductive model at every alpha, NaN where a row has no score."""
    placed = replace(data, kept=np.flatnonzero(scored))
    model = found.inductive
    held = {name: placed.all_rows(getattr(model, f"{name}_")) for name in ("cv_predictions", "cv_predictions_path")}
    return replace(found, alphas=model.alphas_, **held)  # type: ignore[arg-type]


def inductive(model: TransductiveParameters, data: Training, y: np.ndarray, scored: np.ndarray) -> Inductive:
    """RankRLS of the scored rows with the best of the candidate kernels."""
    if is_precomputed(model.kernel):
        checks.check_kernel_values(data.X, model.basis)
    options = data.with_kernels(model.kernel, model.basis, model.random_state)
    alpha, alphas = model.alpha, model.alphas
    if len(options) > 1 and not isinstance(alpha, str):
        alpha, alphas = "auto", [alpha]
    fit = partial(ranker_of_rows, rows=scored, y=y, alpha=alpha, alphas=alphas, store_path=model.store_path)
    candidates = [Inductive(option, partial(fit, model, option)) for option in options]
    if len(options) == 1:
        return candidates[0]
    return choice.choose(candidates, None, get_metric(model.scoring)).candidate


def transduced(
    model: TransductiveParameters, found: TransductiveFit, data: Training, y: np.ndarray, unscored: np.ndarray
) -> TransductiveFit:
    """Add completed scores, and the chosen fidelity if none is given."""
    solver, unit = _solver(model, data, y, found.alpha)
    if isinstance(model.fidelity, str):
        grid = fidelity_grid(model)
        held = partial(held_out, model, found, solver, unit, data, y, unscored)
        trial = Hidden(grid, held, y, ~unscored, data.queries)
        chosen = choice.choose([trial], model.cv, get_metric(model.scoring))
        found = replace(found, fidelity=chosen.setting.fidelity, fidelities=grid, cv_scores=chosen.scores)
        if model.store_path:
            found = replace(found, fidelity_predictions_path=chosen.held_out[:, :, 0])
    prior = np.where(unscored, _predict(found.inductive, data, np.flatnonzero(~unscored)), y)
    prior[unscored] = solver.scores(prior, unscored, np.array([unit * found.fidelity]))[:, 0]
    return replace(found, transduction=prior)


def fidelity_grid(model: TransductiveParameters) -> np.ndarray:
    """The values of fidelity to choose from."""
    grid = model.fidelities
    return checks.check_grid("fidelities", np.logspace(*FIDELITY_RANGE, N_FIDELITIES) if grid is None else grid)


def _solver(model: TransductiveParameters, data: Training, y: np.ndarray, alpha: float) -> tuple[Completion, float]:
    """The solver that completes scores, and the unit of fidelity: the mean weight of a row (1 for items)."""
    levels = None
    if not model.tied_pairs:  # rows without a score tie with none
        known = ~np.isnan(y)
        levels = np.where(known, np.unique(np.nan_to_num(y), return_inverse=True)[1], -1 - np.arange(len(y)))
    loss: dict[str, Any] = {"weighting": model.weighting, "regression": float(model.regression)}
    F = QueryPreferences(data.queries, levels, weights=data.weights, **loss)
    unit = float(np.average(F.between[data.queries.codes] ** 2, weights=data.weights))
    n_missing = data.queries.sum(np.isnan(y))
    cut = np.any((n_missing > 0) & (n_missing < data.queries.sizes))
    if model.folds is None and model.tied_pairs and not (model.regression or cut) and data.weights is None:
        problem = data.problem(F)
        if isinstance(problem, Iterative):
            raise ValueError(
                f"transduction of {data.X.shape[0]} rows with {data.X.shape[1]} sparse features has no low-rank form: "
                'use a basis, e.g. kernel="linear", basis=1000, or fewer features'
            )
        return completion(problem, alpha), unit
    features, K = items_of(data, None)
    if features is not None:  # differences of rows first: products of rows far from zero would lose them
        A = F @ (features - np.average(features, axis=0, weights=F.u) if F.beta > 0 else features)
        FKF = A @ A.T
    else:
        assert K is not None
        FKF = F @ (F @ K).T
    return AnyFolds(F, FKF, _folds(model.folds, data.queries), alpha), unit


def _folds(folds: ArrayLike | None, queries: Queries) -> list[np.ndarray]:
    """The rows that are held out together: each query, or the unions of queries given by `folds`."""
    if folds is None:
        return [queries.rows(q) for q in range(len(queries))]
    parts = checks.check_queries(folds, queries.n_rows)
    for q in range(len(queries)):
        labels = np.unique(parts.codes[queries.rows(q)])
        if len(labels) > 1:
            raise ValueError(
                f"folds cut query {queries.labels.tolist()[q]!r}: it has rows in {len(labels)} folds, but a fold must "
                "be a union of whole queries"
            )
    if len(parts) < 2:
        raise ValueError("folds holds out every row at once: pass at least two folds")
    return [parts.rows(q) for q in range(len(parts))]


def held_out(
    model: TransductiveParameters,
    found: TransductiveFit,
    solver: Completion,
    unit: float,
    data: Training,
    y: np.ndarray,
    unscored: np.ndarray,
    cv: Any,
    fidelities: np.ndarray,
) -> np.ndarray:
    """(m, k) scores of the scored queries when treated as unscored, for each fidelity."""
    scored = np.flatnonzero(~unscored)
    codes = data.queries.codes[scored]
    held = np.full((len(y), len(fidelities)), np.nan)
    for stay, out in numbered(list(hiding(cv, codes, found.inductive.n_queries_)), "fold"):
        hidden = unscored.copy()
        hidden[scored[out]] = True
        try:
            ranker = ranker_of_rows(model, data, scored[stay], y, found.alpha)
        except ValueError as error:  # nothing to compare in the remaining queries
            raise ValueError(f'fidelity="auto" with cv={cv}: {error}; pass fidelity as a number') from None
        prior = np.where(hidden, _predict(ranker, data, scored[stay]), y)
        held[hidden] = solver.scores(prior, hidden, unit * fidelities)
    return held


def hiding(cv: Any, codes: np.ndarray, n_queries: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (remaining rows, rows treated as unscored) among scored rows, in parts of whole queries."""
    if not isinstance(cv, (int, np.integer)):
        for stay, out in cv.split(codes, groups=codes) if hasattr(cv, "split") else cv:
            if len(np.intersect1d(codes[stay], codes[out])):
                raise ValueError("cv cuts a query: the hidden parts must be whole queries")
            yield stay, out
        return
    if not 2 <= cv <= n_queries:
        raise ValueError(
            f'fidelity="auto" cannot make cv={cv} parts of {n_queries} scored queries: '
            f"choose cv between 2 and {n_queries}, or pass fidelity as a number"
        )
    yield from GroupKFold(int(cv)).split(codes, groups=codes)


def ranker_of_rows(
    model: TransductiveParameters,
    data: Training,
    rows: np.ndarray,
    y: np.ndarray,
    alpha: float | str,
    alphas: ArrayLike | None = None,
    *,
    store_path: bool = False,
) -> RankRLS:
    """RankRLS of some rows."""
    ranker = RankRLS(
        alpha,
        kernel=data.kernel,
        basis=data.points,
        weighting=model.weighting,
        tied_pairs=model.tied_pairs,
        regression=model.regression,
        alphas=alphas,
        scoring=model.scoring,
        scale=None,
        store_path=store_path,
    )
    everything = len(rows) == data.X.shape[0]
    X = data.X if everything else data.X[rows]
    if isinstance(data.kernel, Precomputed) and data.points is None and not everything:
        X = X[:, rows]
    weights = None if data.weights is None else data.weights[rows]
    return ranker.fit(X, y[rows], qid=data.queries.codes[rows], sample_weight=weights)


def check_several_queries(queries: Queries, folds: ArrayLike | None) -> None:
    """Raise an error if holding out a query would leave nothing to learn from."""
    if len(queries) == 1 and folds is None:
        raise ValueError(
            "transduction needs qid, to tell queries with scores from those without: qid=None puts all rows into one "
            "query"
        )


def _predict(ranker: RankRLS, data: Training, rows: np.ndarray) -> np.ndarray:
    """Scores of all rows by a model trained on some of them."""
    full = isinstance(data.kernel, Precomputed) and data.points is None
    return ranker.predict(data.X[:, rows] if full else data.X)
