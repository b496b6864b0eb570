"""RankRLS in the space of kernel expansions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .. import checks
from ..core.dual import DualSystem, column_blocks, dual_system, linear_dual_system
from ..core.preferences import QueryPreferences
from ..core.queries import Batch
from ..core.ridge import RidgePath, held_out
from ..core.statistics import sparse_sums_cancel, target_mean_of
from ..system.lazy import cached_property
from ..system.progress import counted, numbered
from .base import (
    HeldOutFold,
    Model,
    careful,
    heavy_queries,
    held_out_scores,
    scores_by_query,
    unsolved,
    without_rounding,
)

FEW_CELLS = 100_000  # F X is kept in memory if X has at most this many cells
CLEAR = 1e-8  # eigenvalues above this share of the largest have digits enough
FEW_QUERIES = 0.2  # queries for each row


@dataclass(frozen=True)
class Dual:
    """RankRLS in the space of kernel expansions f = K a (or of X X' when a linear model has more columns than rows)."""

    F: QueryPreferences
    K: Any  # (m, m) kernel matrix, or X with `linear`
    y: np.ndarray
    linear: bool = False

    @cached_property
    def system(self) -> DualSystem:
        return self._system()

    @cached_property
    def path(self) -> RidgePath:
        return self.system.path()

    @property
    def mean_eigenvalue(self) -> float:
        return self.system.trace / self.F.weight

    def _system(self) -> DualSystem:
        y = (self.y - self.target_mean) / self.unit
        if not self.linear:
            return dual_system(self.F, self.K, y)
        if self._stays_sparse:
            X = self.K.astype(np.float64)  # squares may underflow in single precision
            return dual_system(self.F, (X @ X.T).toarray(), y)
        return linear_dual_system(self.F, self._centred, y)

    @cached_property
    def unit(self) -> float:
        """The unit of targets while solving, so that solutions do not underflow; a power of two, so it is exact."""
        top = float(np.abs(self.y - self.target_mean).max(initial=0))
        return float(np.ldexp(0.5, np.frexp(top)[1]))

    @cached_property
    def target_mean(self) -> np.ndarray:
        return target_mean_of(self.F, self.y)

    def model(self, alpha: float) -> Model:
        checks.check_penalised(alpha)
        factorised = "path" in vars(self)
        return self._model(self.path.coef(alpha) if factorised else self.system.solution(alpha))

    def models(self, alphas: np.ndarray) -> list[Model]:
        """One model for each alpha, from one factorisation."""
        return [self._model(self.path.coef(alpha)) for alpha in alphas]

    def _model(self, b: np.ndarray) -> Model:
        unit = float(np.abs(b).max(initial=0)) or 1.0  # tiny row weights times tiny solutions may underflow
        b = _orthogonal(b / unit, self.system.v)
        coef = (self._columns(b) if self.linear else self.F.T @ b) * unit * self.unit
        intercept = np.zeros(self.y.shape[1])
        if self.F.beta > 0:
            f = self.K @ coef if self.linear else self.system.KF @ (b * unit) * self.unit
            intercept = self._mean(self.y - f)
        return Model(coef, intercept)

    def _columns(self, b: np.ndarray) -> np.ndarray:
        """(n, t) X'F'b; rows are centred first unless they are sparse and near zero."""
        if self._stays_sparse:
            return self.K.T @ (self.F.T @ b)
        return np.concatenate([A.T @ b for _, A in self._centred])

    @property
    def _centred(self) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """Yield some columns of X at a time, and F times them, which is kept if X is small."""
        if self.K.size <= FEW_CELLS:
            return self._centred_once
        return ((columns, self.F @ columns) for columns in column_blocks(self.K))

    @cached_property
    def _centred_once(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(columns, self.F @ columns) for columns in column_blocks(self.K)]

    def _mean(self, V: np.ndarray) -> np.ndarray:
        """The weighted mean over all rows; weights are normalised first, so that large values do not overflow."""
        return V.mean(axis=0) if self.F.u is None else (self.F.u / self.F.weight) @ V

    @cached_property
    def _stays_sparse(self) -> bool:
        return sparse.issparse(self.K) and not sparse_sums_cancel(self.F, self.K.astype(np.float64))

    def leave_out(self, folds: Sequence[HeldOutFold] | None, alphas: np.ndarray) -> np.ndarray:
        """Held-out scores, by one dense solve of the size of the fold for each fold and alpha."""
        checks.check_penalised(float(alphas.min()))
        to_refit = heavy_queries(self.F, self.y)
        if folds is not None:
            folds = careful(folds, self.F, self.y)
            to_refit = [fold for fold in folds if not fold.whole]
            folds = [fold for fold in folds if fold.whole]
        scores = self._leave_out(folds, alphas)
        if folds is None:
            to_refit += [HeldOutFold(self.F.queries.rows(q)) for q in unsolved(scores, self.F.queries.codes)]
        else:
            to_refit += [fold for fold in folds if np.isnan(scores[fold.rows]).any()]
        for fold in numbered(to_refit, "fold"):
            scores[fold.rows] = self._refit(fold, alphas)
        return scores

    def _leave_out(self, folds: Sequence[HeldOutFold] | None, alphas: np.ndarray) -> np.ndarray:
        """Held-out scores without refits; NaN for folds that need one."""
        F, path = self.F, self.path
        S = self._functions()
        S[:, path.d == 0] = 0
        centred = self.y - self.target_mean
        if F.beta > 0:
            S -= self._mean(S)
        scores = np.full((F.shape[0], len(alphas), self.y.shape[1]), np.nan)
        if folds is None:
            parts = [(batch, 1.0) for batch in F.batches()]
        else:
            parts = [(Batch(np.zeros(1, dtype=np.intp), f.rows, len(f.rows)), f.factor) for f in folds]
        for batch, factor in counted(parts, "queries held out" if folds is None else "folds held out"):
            B, S_U, target = (batch.stack(array) for array in (path.basis, S, self.system.z))
            D = path.inverse(alphas * factor)
            C = held_out(B, target, D, path.z, complete=True)
            c = np.repeat(D, scores.shape[2], axis=1) * np.tile(path.z, len(alphas))
            without_rounding(C, c, path.d, alphas * factor)
            held = held_out_scores(S_U, C, c, path.d, alphas * factor) * self.unit
            held = held.reshape(*S_U.shape[:2], *scores.shape[1:])
            if F.beta > 0:  # the mean of y - f over the remaining rows; over all rows both have mean zero
                u = np.full(B.shape[:2], 1 / F.weight) if F.u is None else batch.stack(F.u / F.weight)
                left = np.einsum("gl,glkt->gkt", u, held - batch.stack(centred)[:, :, None])
                rest = (1 - u.sum(axis=1))[:, None, None]  # zero, up to rounding, for a query that is refitted
                left = np.divide(left, rest, out=np.zeros_like(left), where=rest > 0)
                held += left[:, None] + self.target_mean
            scores[batch.rows] = held.reshape(-1, *scores.shape[1:])
        return scores

    def _functions(self) -> np.ndarray:
        """(m, r) the functions K F' U of the path.

        F times them is U diag(d). Undoing F leaves a constant for each query, from the means of the rows of K F'. That
        saves most of a product of the size of K. Directions that are almost null are multiplied: their d is rounding.
        """
        F, path, KF = self.F, self.path, self.system.KF
        plain = F.beta == 0 and F.u is None and len(F.queries) > 1
        clear = (path.d > CLEAR * path.d.max(initial=0)) & np.isfinite(path.d)
        if not plain or not clear.any() or len(F.queries) > FEW_QUERIES * F.shape[0]:
            return KF @ path.basis
        U, d, functions = path.basis[:, clear], path.d[clear], np.empty((len(KF), clear.sum()))
        for batch in F.batches():
            rows = batch.take(KF)
            if F.between[batch.queries].min() > 0 and (F.within is None or batch.take(F.within).min() > 0):
                V = _undone(F, batch.take(U) * d, batch).reshape(-1, batch.length, len(d))
                mean = rows.reshape(-1, batch.length, KF.shape[1]).mean(axis=1) @ U
                functions[batch.rows] = (V + (mean - V.mean(axis=1))[:, None]).reshape(-1, len(d))
            else:  # all labels of some query are equal
                functions[batch.rows] = rows @ U
        if clear.all():
            return functions
        S = np.empty(path.basis.shape)
        S[:, clear], S[:, ~clear] = functions, KF @ path.basis[:, ~clear]
        return S

    def _refit(self, fold: HeldOutFold, alphas: np.ndarray) -> np.ndarray:
        """(l, k, t) scores of a fold that cuts a query or outweighs the rest: another factorisation."""
        stay = fold.rest(self.F.shape[0])
        read = (lambda rows: self.K[rows]) if self.linear else (lambda rows: self.K[np.ix_(rows, stay)])
        models = self.restrict(stay).models(alphas * fold.factor)
        coef, codes = np.concatenate([model.coef for model in models], axis=1), self.F.queries.codes[fold.rows]
        scores = scores_by_query(read, fold.rows, codes, coef).reshape(len(codes), len(models), -1)
        return scores + np.stack([model.intercept for model in models])

    def restrict(self, rows: np.ndarray) -> Dual:
        K = self.K[rows] if self.linear else self.K[np.ix_(rows, rows)]
        return Dual(self.F.restrict(rows), K, self.y[rows], self.linear)


def _orthogonal(b: np.ndarray, v: np.ndarray | None) -> np.ndarray:
    return b if v is None else b - np.outer(v, v @ b)


def _undone(F: QueryPreferences, G: np.ndarray, batch: Batch) -> np.ndarray:
    """Rows V of a batch with F V = G, up to a constant for each query; for equal weights and beta = 0."""
    between = np.repeat(F.between[batch.queries], batch.length)[:, None]
    if F.within is None or F.ties is None:
        return G / between
    within = batch.take(F.within)[:, None]
    level, average = F.ties.average(batch, None, G.dtype)
    if not average.shape[0]:
        return G / within
    return (G - (between - within) * ((average @ G)[level] / between)) / within
