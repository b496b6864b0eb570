"""RankRLS from rows in parts: a census of the labels, the sums, and held-out scores where alpha is to be chosen.

Where the parts are (blocks of a file, partitions of a cluster) is the affair of `Parts`; this is all there is to a fit.
"""

from __future__ import annotations

import json
import operator
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from .. import checks
from ..bases import CANDIDATES, Basis
from ..blocks.checkpoint import Checkpoint
from ..blocks.reading import SourceParts
from ..blocks.scoring import Held, LeaveFoldOut, LeaveQueryOut
from ..blocks.sources import Source
from ..blocks.sums import FoldedGather, Gather, Parts
from ..blocks.totals import Counts, Loss, QueryTotals
from ..core.features import Features, Identity, Nystroem
from ..core.queries import Queries
from ..core.ridge import primal
from ..core.statistics import Statistics
from ..kernels import Kernel, Precomputed, as_kernel
from ..metrics import Metric, get_metric
from ..problems import choice
from ..problems.base import Model
from ..problems.choice import Choice, Judged, Setting
from ..problems.primal import Primal
from ..system import memory
from .training import GRAM_COLUMNS, Training


@dataclass(frozen=True)
class Rows:
    """Rows in parts, and what has been learned of their queries so far."""

    parts: Parts
    counts: dict[bool, Counts] = field(default_factory=dict)
    censuses: dict[bool, QueryTotals] = field(default_factory=dict)

    def census(self, loss: Loss) -> QueryTotals | None:
        """What parts must know of each other; None where no query is in two of them."""
        if self.parts.whole:
            return None
        tied = loss.tied
        if tied not in self.censuses:
            self.counts[tied] = self.parts.labels(partial(Counts.of, tied=tied))
            self.censuses[tied] = QueryTotals.of(self.counts[tied], loss, split=self.parts.stable)
        return self.censuses[tied]

    def moved(self, loss: Loss, sums: Statistics) -> bool:
        """Whether parts have changed since the census: a query was cut where it had been whole, and counted twice.

        If so, the census is of all queries from now on, and right for any parts.
        """
        if self.parts.whole:
            return False
        counts = self.counts[loss.tied]
        if sums.n_rows != counts.n_rows:
            raise ValueError(
                f"there were {counts.n_rows} rows in the first pass and {sums.n_rows} in the next one: the rows "
                "must be the same in every pass. Write them to files first, or keep them in memory"
            )
        moved = sums.n_queries != counts.n_queries
        if moved:
            self.censuses[loss.tied] = QueryTotals.of(counts, loss)
        return moved


@dataclass(frozen=True)
class Candidate:
    """One way to set up the problem: features and loss."""

    rows: Rows
    data: Training  # kernel and basis points; the rows are elsewhere
    features: Features
    loss: Loss
    n_folds: int | None
    given: Any = None  # alphas to choose from; None for a grid fitted to the data

    @cached_property
    def folds(self) -> list[Statistics]:
        """The sums of each fold, or of all rows."""
        found = self._folds()
        return self._folds() if self.rows.moved(self.loss, total(found)) else found

    def _folds(self) -> list[Statistics]:
        census = self.rows.census(self.loss)
        gather = Gather(self.features, census, self.loss, self.dtype)
        if self.n_folds is None:
            return [self.rows.parts.sum(gather, "sums over rows").finished(census, self.loss)]
        folded = self.rows.parts.sum(FoldedGather(gather, self.n_folds), "sums over rows")
        return [part.finished(census, self.loss) for part in folded.folds]

    @property
    def dtype(self) -> Any:
        return self.data.dtype if self.data.kernel is None else np.float64

    @cached_property
    def problem(self) -> Primal:
        """Solved from the sums; it has no rows."""
        problem = Primal(None, self.features, np.empty((0, 0)), np.empty((0, 0)), self.dtype)  # type: ignore[arg-type]
        problem.__dict__["sums"] = total(self.folds)
        return problem

    @cached_property
    def alphas(self) -> np.ndarray:
        if self.given is not None:
            return checks.check_grid("alphas", self.given)
        return choice.default_alphas(self.problem.spread)

    def judge(self, folds: Any, metric: Metric) -> Judged:
        """The mean held-out score of every alpha, and its error over queries."""
        sums, parts = self.problem.sums, self.rows.parts
        _check_sums(sums)
        if sums.n_queries < 2:
            raise ValueError(
                'what is "auto" is chosen by holding out whole queries, and there is only one: name the column of '
                "query ids by qid=, or leave nothing to choose"
            )
        settings = [Setting(alpha=float(alpha)) for alpha in self.alphas]
        if self.n_folds is not None and parts.once:
            warnings.warn(
                "the rows can be read only once: alpha is chosen by the held-out loss of the folds, not by "
                f"{metric.name}; give a function that returns a new iterator to choose by that",
                UserWarning,
                stacklevel=6,
            )
            loss = self.held_out_loss(self.alphas) / sums.n_queries
            return Judged(settings, -loss if metric.greater_is_better else loss, np.full(len(loss), np.nan))
        held = self.held_out(self.alphas, metric)
        if not held.count:
            raise ValueError(f"no query defines {metric.name}: it needs two rows of different y in a query")
        return Judged(settings, held.mean, held.error)

    def held_out(self, alphas: np.ndarray, metric: Metric) -> Held:
        """The metric of every query by models that never saw it, for each alpha."""
        problem, census = self.problem, self.rows.census(self.loss)
        if self.n_folds is None:
            problem.path  # noqa: B018  (once, for all parts)
            function: Any = LeaveQueryOut(problem, self.loss, metric, alphas)
            return self.rows.parts.sum_by_query(function, census, "held-out queries")
        function = LeaveFoldOut(problem, self._fold_models(alphas), metric)
        return self.rows.parts.sum_by_query(function, census, "held-out folds")

    def held_out_loss(self, alphas: np.ndarray) -> np.ndarray:
        """(k,) the loss of each fold under the model of all others, added up: no second look at the rows."""
        losses = np.zeros(len(alphas))
        for sums, models in zip(self.folds, self._fold_models(alphas), strict=True):
            for k, model in enumerate(models):
                w = model.coef
                loss = sums.square - np.einsum("it,it->t", w, 2 * sums.cross - sums.gram @ w)
                shift = sums.target_mean - sums.mean @ w - model.intercept
                losses[k] += np.sum(loss + sums.beta * sums.weight * shift**2)
        return losses

    def _fold_models(self, alphas: np.ndarray) -> list[list[Model]]:
        found = []
        for part in self.folds:
            sums = self.problem.sums - part
            path = primal(sums, self.features.W, self.dtype)
            coefs = [path.coef(alpha) for alpha in alphas]
            found.append([Model(coef, sums.target_mean - sums.mean @ coef) for coef in coefs])
        return found


def total(folds: Sequence[Statistics]) -> Statistics:
    """The sums of all folds."""
    return reduce(operator.add, folds)


def fit_source(model: Any, source: Source, checkpoint: Any) -> Any:
    """Fit a model to a source that is read in blocks."""
    about = {"source": source.describe(), "model": repr(model), **{k: repr(v) for k, v in model.get_params().items()}}
    state = Checkpoint(checkpoint, json.dumps(about))
    fit_parts(model, SourceParts(source, state))
    state.remove()
    return model


def fit_parts(model: Any, parts: Parts) -> Any:
    """Fit a model to rows in parts."""
    if parts.n_targets > 1 and model.tied_pairs is not True:
        checks.check_targets(np.empty((1, parts.n_targets)), tied_pairs=model.tied_pairs)
    ties = (True, False) if model.tied_pairs == "auto" else (bool(model.tied_pairs),)
    kernels = _with_kernels(model, parts)
    to_choose = model._auto or len(kernels) * len(ties) > 1
    rows, n_folds = Rows(parts), _n_folds(model.cv) if to_choose else None
    metric = get_metric(model.scoring)
    given = model.alphas if model._auto else [model.alpha]
    losses = [Loss(model.weighting, float(model.regression), tied) for tied in ties]
    candidates = (
        Candidate(rows, data, features_of(data, parts.n_columns), loss, n_folds, given)
        for data in kernels
        for loss in losses
    )
    if to_choose:
        chosen = choice.choose(candidates, n_folds, metric)
    else:
        chosen = Choice.only(next(candidates), Setting(alpha=float(model.alpha)))
    candidate = chosen.candidate
    _check_sums(candidate.problem.sums)
    _store(model, candidate, parts, chosen.setting.alpha)
    if model._auto:
        model.alphas_, model.cv_scores_, model.cv_errors_ = candidate.alphas, chosen.scores, chosen.errors
        if parts.once:
            model.cv_criterion_ = "minus the loss" if metric.greater_is_better else "loss"
    return model


def _store(model: Any, candidate: Candidate, parts: Parts, alpha: float) -> None:
    """The fitted attributes."""
    sums = candidate.problem.sums
    model.n_features_in_ = parts.n_columns
    model.__dict__.pop("feature_names_in_", None)
    if parts.names is not None:
        model.feature_names_in_ = np.array(parts.names, dtype=object)
    model._store(candidate.problem.model(alpha), candidate.data)
    model.alpha_, model.tied_pairs_, model.statistics_ = alpha, candidate.loss.tied, sums
    model.n_queries_, model.n_pairs_ = sums.n_queries, sums.n_pairs
    model._forget_selection()


def more_sums(model: Any, source: Source) -> tuple[Statistics, Training]:
    """The sums of further rows for a model that is fitted, and where its points are."""
    data = Training(np.empty((0, source.n_columns), dtype=source.dtype), *_no_rows(source.n_targets))
    if model.kernel is not None:
        data = Training(data.X, *_no_rows(source.n_targets), kernel=model.kernel_, points=model.X_fit_)
    if source.n_columns != model.n_features_in_:
        raise ValueError(f"the model has {model.n_features_in_} features, these rows have {source.n_columns}")
    loss = Loss(model.weighting, float(model.regression), model.tied_pairs_)
    rows = Rows(SourceParts(source))
    return Candidate(rows, data, features_of(data, source.n_columns), loss, None).problem.sums, data


def features_of(data: Training, n_columns: int) -> Features:
    """The columns, or the kernel to the basis points."""
    return Identity(n_columns) if data.kernel is None else Nystroem(data.kernel, data.points)


def _with_kernels(model: Any, parts: Parts) -> list[Training]:
    """The kernels to choose from with their basis points, which are drawn from a sample of the rows."""
    none = _no_rows(parts.n_targets)
    if model.kernel is None:
        if parts.n_columns > GRAM_COLUMNS:
            memory.check_memory(
                4 * 8 * parts.n_columns**2, f"a matrix of {parts.n_columns} features", "take fewer of them"
            )
        return [Training(np.empty((0, parts.n_columns), dtype=parts.dtype), *none, flat=parts.n_targets == 1)]
    kernel = as_kernel(model.kernel)
    basis = model.basis
    numbers = not isinstance(basis, Basis) and np.ndim(basis) == 1
    if basis is None or isinstance(kernel, Precomputed) or numbers:
        raise ValueError(
            "a kernel model of rows that are read in parts is expanded in a few points: pass basis= a number, an "
            f"object of rankrls.bases or the points themselves; got kernel={model.kernel!r}, basis={basis!r}"
        )
    if _needs_rows(kernel) or isinstance(basis, Basis) or np.ndim(basis) == 0:
        seed = model.random_state
        seed = seed.randint(2**31) if isinstance(seed, np.random.RandomState) else seed
        X = parts.sample(CANDIDATES, np.random.default_rng(seed))
    else:
        X = np.empty((0, parts.n_columns), dtype=parts.dtype)
    sample = Training(X, *none, flat=parts.n_targets == 1)
    return sample.with_kernels(kernel, basis, model.random_state)


def _needs_rows(kernel: Kernel) -> bool:
    return isinstance(getattr(kernel, "gamma", None), str)


def _no_rows(n_targets: int) -> tuple[np.ndarray, Queries]:
    nothing = np.empty(0, dtype=np.intp)
    return np.empty((0, n_targets)), Queries(nothing, nothing)


def _n_folds(cv: Any) -> int | None:
    """Folds of queries; None leaves out each query in turn."""
    if isinstance(cv, str):
        checks.check_choice("cv", cv, ("leave-query-out",))
        return None
    if isinstance(cv, bool) or not isinstance(cv, (int, np.integer)) or cv < 2:
        raise ValueError(f'rows read in parts are held out by cv="leave-query-out" or by a number of folds, got {cv!r}')
    return int(cv)


def _check_sums(sums: Statistics) -> None:
    if sums.beta == 0 and not np.any(sums.square > 0):
        raise ValueError(
            f"no comparable pair: none of the {sums.n_queries} queries has two rows with different y among "
            f"{sums.n_rows} samples; is qid the query id, and not a row or document id?"
        )
