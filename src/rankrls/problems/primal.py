"""RankRLS through its normal equations, from sums over the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from .. import checks
from ..core import fused, fused_folds
from ..core.features import Features, Identity, Projected
from ..core.means import Read, Rows
from ..core.pairs import PairPreferences
from ..core.preferences import QueryPreferences
from ..core.queries import BATCH_ROWS, Batch
from ..core.ridge import RidgePath, held_out
from ..core.statistics import (
    Preferences,
    Statistics,
    fits_single,
    sparse_pair_statistics,
    sparse_statistics,
    sparse_sums_cancel,
    statistics,
    targets,
)
from ..core.symmetric import per_deviation, steep
from ..system.lazy import cached_property
from ..system.parallel import Scratch, share
from ..system.progress import numbered
from ..system.types import ArrayLike, DTypeLike, MatrixLike
from .base import (
    HEAVY,
    HeldOutFold,
    Model,
    careful,
    heavy_queries,
    held_out_scores,
    scores_by_query,
    unsolved,
    without_rounding,
)
from .cut_query import CutQuery
from .solved import Solved, check_determined, cholesky_model, mean_eigenvalue, needs_rows, without_noise


@dataclass(frozen=True)
class Primal:
    """Ridge regression on (F Phi, F y) through its normal equations."""

    F: Preferences
    features: Features
    X: Any
    y: np.ndarray  # (m, t); margins (p, t) with PairPreferences
    dtype: Any
    scaled: float = 0.0  # if positive, weights are penalised per spread of their column; this is then the unit of alpha
    total: Statistics | None = None  # sums over more than these rows: rows elsewhere, or pairs
    extra: Statistics | None = None  # the part of `total` beyond these rows, needed to refit without a query
    units: np.ndarray | None = None  # (n,) the spread of columns, where it differs from that of the sums

    @cached_property
    def sums(self) -> Statistics:
        if self.total is not None:
            return self.total
        return self._sums if self.in_range else replace(self, dtype=np.float64)._sums

    @cached_property
    def _sums(self) -> Statistics:
        if self._stays_sparse:
            if isinstance(self.F, PairPreferences):
                return sparse_pair_statistics(self.F, self.X, self.y)
            return sparse_statistics(self.F, self.X, self.y)
        array = self.X if self._is_array else None
        return statistics(self.F, self._reader, self.y, self.features.n_columns, self.dtype, array)

    @property
    def _is_array(self) -> bool:
        """True if the features are an array in memory with the precision to compute in."""
        return isinstance(self.features, Identity) and isinstance(self.X, np.ndarray) and self.X.dtype == self.dtype

    @cached_property
    def in_range(self) -> bool:
        """True if squares of the rows fit in their precision."""
        single = self.dtype == np.float32 and isinstance(self.features, Identity)
        return not single or fits_single(self.F, self.X, self.y, self._sums.gram)

    @cached_property
    def _stays_sparse(self) -> bool:
        """True if the sums can be computed without making rows dense."""
        if not (sparse.issparse(self.X) and isinstance(self.features, Identity)):
            return False
        return isinstance(self.F, PairPreferences) or not sparse_sums_cancel(self.F, self.X, scaled=bool(self.scaled))

    @property
    def _reader(self) -> Callable[[], Read]:
        features = self.features
        if sparse.issparse(self.X) and isinstance(features, Identity):
            features = replace(features, dense=True)
        return features.reader(self.X)

    @cached_property
    def W(self) -> np.ndarray | None:
        """The penalty is ||W^-1 w||^2."""
        if not self.scaled:
            return self.features.W
        return per_deviation(np.sqrt(self.scaled) * (self.sums.deviation if self.units is None else self.units))

    @cached_property
    def solved(self) -> Solved:
        return Solved.of(self.sums, self.W, self.dtype)

    @property
    def path(self) -> RidgePath:
        return self.solved.path

    @property
    def mean_eigenvalue(self) -> float:
        return mean_eigenvalue(self.sums, self.W)

    def model(self, alpha: float) -> Model:
        model = cholesky_model(alpha, self.sums, self.W, self.dtype)
        return self._solved(alpha).model(alpha, self._rows) if model is None else model

    def _solved(self, alphas: ArrayLike | None) -> Solved:
        return self._sharpened if needs_rows(self.sums, self.W, alphas) else self.solved

    @cached_property
    def _sharpened(self) -> Solved:
        return Solved.of(self.sums, self.W, self.dtype, self._rows)

    @property
    def _rows(self) -> Primal | None:
        looks = self.total is None and (self.features.W is None or steep(self.W))
        return self if looks and isinstance(self.F, QueryPreferences) else None

    def look(self, V: np.ndarray) -> Statistics:
        return replace(self, features=Projected(self.features, V)).sums

    def gradient(self, model: Model) -> np.ndarray:
        residual = self.y - (self.X @ model.coef + model.intercept)
        g = self.F.T @ (self.F @ residual)
        return self.X.T @ g - np.outer(self.sums.mean, g.sum(axis=0))

    def leave_out(self, folds: Sequence[HeldOutFold] | None, alphas: np.ndarray) -> np.ndarray:
        if folds is not None:
            return self._leave_folds_out(careful(folds, self.F, self.y), self.sums, self.W, alphas)
        assert isinstance(self.F, QueryPreferences)
        scores = self.leave_queries_out(self._solved(alphas), alphas)
        for fold in heavy_queries(self.F, self.y):
            scores[fold.rows] = self._leave_folds_out([fold], self.sums, self.W, alphas)[fold.rows]
        return scores

    def leave_queries_out(self, solved: Solved, alphas: np.ndarray) -> np.ndarray:
        """(m, k, t) scores of these rows by models that never saw their query; `solved` may cover more rows."""
        assert isinstance(self.F, QueryPreferences)
        if self.dtype == np.float32 and not _fits_single(solved.path, alphas):
            return replace(self, dtype=np.float64).leave_queries_out(solved, alphas)
        if self._is_array and alphas.min() > 0 and fused.serves_folds(self.F, self.X):
            return self._leave_queries_out_compiled(solved, alphas)
        batches, long_rows = self.F.batches(self.features.n_columns), 2 * self.F.queries.batch_rows
        scores = np.full((self.F.shape[0], len(alphas), self.y.shape[1]), np.nan, dtype=self.dtype)
        self._leave_short_queries_out([b for b in batches if b.length <= long_rows], solved, alphas, scores)
        return self._with_unsolved(scores, solved, alphas)

    def _with_unsolved(self, scores: np.ndarray, solved: Solved, alphas: np.ndarray) -> np.ndarray:
        """Fill in the queries whose scores are still NaN: too long, or their equations are singular to rounding."""
        assert isinstance(self.F, QueryPreferences)
        folds = [HeldOutFold(self.F.queries.rows(q)) for q in unsolved(scores, self.F.queries.codes)]
        if folds:
            held = self._leave_folds_out(folds, solved.sums, solved.W, alphas)
            for fold in folds:
                scores[fold.rows] = held[fold.rows]
        return scores

    def _leave_queries_out_compiled(self, solved: Solved, alphas: np.ndarray) -> np.ndarray:
        """The same in compiled code; NumPy does the queries whose leverage is too large for it."""
        F = self.F
        assert isinstance(F, QueryPreferences)
        target, deviation = fused.times(F, self.y - solved.sums.target_mean), solved.sums.deviation
        scores, good = fused_folds.leave_queries_out(F, self.X, target, solved.path, deviation, alphas)
        scores = scores.reshape(len(scores), len(alphas), -1)
        if not good.all():
            rest = list(F.queries.batches(only=np.flatnonzero(~good)))
            self._leave_short_queries_out(rest, solved, alphas, scores)
        return self._with_unsolved(scores, solved, alphas)

    def _leave_short_queries_out(
        self, batches: Sequence[Batch], solved: Solved, alphas: np.ndarray, scores: np.ndarray
    ) -> None:
        """Leave out query by query in the coordinates of the path: O(m n^2), then O(m n k) per step of the solver.

        Writes to the rows of these queries in scores (m, k, t): NaN where their equations are singular to rounding.
        """
        F, path, sums = self.F, solved.path, solved.sums
        assert isinstance(F, QueryPreferences)
        target = F @ (self.y - sums.target_mean)
        basis, D, z = (array.astype(self.dtype) for array in (path.basis, path.inverse(alphas), path.z))
        if F.beta > 0:  # the intercept, an unpenalised direction
            D, z = np.vstack([D, np.ones_like(D[:1])]), np.vstack([z, np.zeros_like(z[:1])])
        rotate = self.rotation(basis, sums.mean.astype(self.dtype))
        t, r = self.y.shape[1], basis.shape[1]
        u = np.ones(F.shape[0]) if F.u is None else F.u
        ybar = np.stack([F.queries.sum(u * column) / F.S for column in (self.y - sums.target_mean).T], axis=1)
        c = (np.repeat(D, t, axis=1) * np.tile(z, len(alphas)))[:r]

        def work(share_of_batches: Sequence[Batch]) -> None:
            read, scratch = rotate(), Scratch(self.dtype)
            for batch in share_of_batches:
                V, mean = read(batch)
                B, g = scratch(len(V), len(D)), len(batch.queries)
                F.scale(V, batch, mean, out=B[:, :r])
                if F.beta > 0:
                    B[:, r] = (1.0 if F.s is None else batch.take(F.s)) / np.sqrt(sums.weight)
                if alphas.min() == 0:
                    check_determined_without(B.reshape(g, batch.length, len(D)), D, F.queries.labels[batch.queries])
                target_rows = batch.stack(target).astype(self.dtype)
                C = held_out(B.reshape(g, batch.length, len(D)), target_rows, D, z, complete=False)
                without_rounding(C[:, :r], c, path.d, alphas, target_rows)
                held = held_out_scores(V.reshape(g, batch.length, r), C[:, :r], c, path.d, alphas, mean)
                level = mean[:, None] @ C[:, :r]
                held += level
                if F.beta > 0:  # the mean of y - f over the remaining rows; over all rows both have mean zero
                    own = F.S[batch.queries][:, None, None]
                    gap = np.tile(ybar[batch.queries], len(alphas))[:, None] - level
                    rest = sums.weight - own  # zero, up to rounding, for a query that is refitted
                    held -= (np.divide(own, rest, out=np.zeros_like(own), where=rest > 0) * gap).astype(self.dtype)
                    held += np.tile(sums.target_mean.astype(self.dtype), len(alphas))
                scores[batch.rows] = held.reshape(-1, *scores.shape[1:])

        share(work, batches, cost=float(F.shape[0]) * basis.size, label="held-out queries")

    def rotation(self, basis: np.ndarray, mean: np.ndarray) -> Callable[[], Callable[[Batch], tuple]]:
        """Readers of (Phi - query mean) basis and (query mean - mean) basis.

        Dense rows are centred first, so that large query-level offsets cancel before they mix with other columns.
        """
        F, X = self.F, self.X
        assert isinstance(F, QueryPreferences)

        def sparse_rotation(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
            V = X[batch.rows] @ basis
            return V, F.means.centre(V, batch) - mean @ basis

        if self._stays_sparse:
            return lambda: sparse_rotation
        reader = self._reader

        def dense() -> Callable[[Batch], tuple[np.ndarray, np.ndarray]]:
            read, centred, rotated = reader(), Scratch(basis.dtype), Scratch(basis.dtype)

            def rotation(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
                Phi = read(batch.rows)
                V = centred(*Phi.shape)
                query_mean = F.means.centre(Phi, batch, out=V)
                return np.matmul(V, basis, out=rotated(len(V), basis.shape[1])), (query_mean - mean) @ basis

            return rotation

        return dense

    def _leave_folds_out(
        self, folds: Sequence[HeldOutFold], total: Statistics, W: np.ndarray | None, alphas: np.ndarray
    ) -> np.ndarray:
        """Leave out fold by fold, by subtracting each fold's sums from those of all rows.

        A fold that cuts a query changes the pairs among the remaining rows: their sums are assembled from moments of
        tie levels, or computed again.
        """
        if W is not None and steep(W) and self.total is None and total is self.sums:
            white = replace(self, features=Projected(self.features, W))
            return white._leave_folds_out(folds, white.sums, None, alphas)
        scores = np.full((self.F.shape[0], len(alphas), self.y.shape[1]), np.nan, dtype=self.dtype)
        cut = None
        if isinstance(self.F, QueryPreferences) and CutQuery.pays(self.F, folds, self.features.n_columns + 1):
            cut = CutQuery.of(self.F, self._reader, self.y, folds, total)
        for number, fold in enumerate(numbered(folds, "fold")):
            sums, origin = None if cut is None else cut.without(number, fold), total
            if sums is None and fold.whole:
                sums = total - self.restrict(fold.rows).sums
            elif sums is None:
                sums = self.restrict(fold.rest(self.F.shape[0])).sums
                sums = origin = sums if self.extra is None else sums + self.extra  # without the rounding of the fold
            if alphas.min() == 0:
                check_determined(0.0, sums, W, self.dtype)
            solved = Solved.of(without_noise(origin, sums, self.dtype), W, self.dtype)
            models = [solved.model(alpha * fold.factor) for alpha in alphas]
            scores[fold.rows] = self.scores(fold.rows, models)
        return scores

    def leave_pairs_out(self, alphas: np.ndarray) -> np.ndarray:
        """(p, k, t) the margin of each explicit pair under the model that never saw it."""
        assert isinstance(self.F, PairPreferences)
        margins, mass = self._pairs_left_out(alphas), self.F.s**2
        heavy = (mass > HEAVY * mass.sum()) | np.isnan(margins).any(axis=(1, 2))
        for p in np.flatnonzero(heavy):
            models = self._models(self.restrict(np.flatnonzero(np.arange(len(heavy)) != p)).sums, alphas)
            margins[p] = self.scores(np.array([p]), models)
        return margins

    def _models(self, sums: Statistics, alphas: np.ndarray) -> list[Model]:
        """The model of some sums at each alpha."""
        solved = Solved.of(sums, self.W, self.dtype)
        return [solved.model(float(alpha)) for alpha in alphas]

    def _pairs_left_out(self, alphas: np.ndarray) -> np.ndarray:
        """The margins of `leave_pairs_out`, by one division each."""
        F, path = self.F, self.path
        assert isinstance(F, PairPreferences)
        D, target = path.inverse(alphas), targets(F, self.y)[0]
        c = D[:, :, None] * path.z[:, None]
        margins = np.empty((F.shape[0], len(alphas), self.y.shape[1]))
        read = self.features.reader(self.X)()
        for rows in F.batches():
            (A,) = F.factor(rows, read)
            B = A @ path.basis
            residual = target[rows][:, None] - np.einsum("pr,rkt->pkt", B, c)
            residual /= (1 - B**2 @ D)[:, :, None]
            margins[rows] = (target[rows][:, None] - residual) / F.s[rows][:, None, None]
        return margins

    def scores(self, rows: np.ndarray, models: Sequence[Model]) -> np.ndarray:
        """(len(rows), k, t) scores of some rows; with explicit pairs, differences of scores of some pairs."""
        if isinstance(self.F, PairPreferences):
            coef = np.concatenate([model.coef for model in models], axis=1).astype(self.dtype)
            unit, read = PairPreferences(self.F.pair[rows], self.F.shape[1]), self.features.reader(self.X)()
            blocks = [A @ coef for pairs in unit.batches() for A in unit.factor(pairs, read)]
            return np.concatenate(blocks).reshape(len(rows), len(models), -1)
        coef = np.concatenate([model.coef for model in models], axis=1).astype(self.dtype)
        intercept = np.concatenate([model.intercept for model in models]).astype(self.dtype)
        scores = scores_by_query(self.features.reader(self.X)(), rows, self.F.queries.codes[rows], coef)
        return (scores + intercept).reshape(len(rows), len(models), -1)

    def restrict(self, rows: np.ndarray) -> Primal:
        """The problem restricted to some rows (to some pairs, with explicit pairs); X is not copied."""
        F = self.F.restrict(rows)
        if isinstance(F, PairPreferences):
            return Primal(F, self.features, self.X, self.y[rows], self.dtype)
        if sparse.issparse(self.X):
            return Primal(F, self.features, self.X[rows], self.y[rows], self.dtype)
        return Primal(F, _Selected(self.features, rows), self.X, self.y[rows], self.dtype)


@dataclass(frozen=True)
class _Selected:
    """The features of some rows, without copying X."""

    features: Features
    rows: np.ndarray

    @property
    def n_columns(self) -> int:
        return self.features.n_columns

    @property
    def W(self) -> np.ndarray | None:
        return self.features.W

    def reader(self, X: MatrixLike) -> Callable[[], Read]:
        reader = self.features.reader(X)

        def selected() -> Read:
            read = reader()

            def read_rows(rows: Rows) -> np.ndarray:
                return read(self.rows[rows])

            return read_rows

        return selected


def _fits_single(path: RidgePath, alphas: np.ndarray) -> bool:
    """True if the numbers that hold-out takes from a path fit in single precision."""
    values = path.basis, path.d, path.inverse(alphas[alphas + path.d.min(initial=np.inf) > 0]), path.z
    return all(np.abs(part).max(initial=0.0) < 1e30 for part in values)


def check_determined_without(B: np.ndarray, D: np.ndarray, labels: np.ndarray) -> None:
    """Raise an error if a single one of g queries determines some direction alone."""
    free = D.max(axis=1)  # 1 / d
    leverage = np.linalg.svd(B * np.sqrt(free), compute_uv=False)[:, :1] ** 2
    if np.any(leverage > 1 - 1e-9):
        checks.check_determined_without(labels.tolist()[int(np.argmax(leverage))])


def scores_of(
    models: Sequence[Model], features: Features, X: MatrixLike, rows: np.ndarray, dtype: DTypeLike
) -> np.ndarray:
    """(len(rows), k, t) scores of some rows of X by k models."""
    coef = np.concatenate([model.coef for model in models], axis=1).astype(dtype)
    intercept = np.concatenate([model.intercept for model in models]).astype(dtype)
    read = features.reader(X)()
    blocks = [read(rows[i : i + BATCH_ROWS]) @ coef + intercept for i in range(0, len(rows), BATCH_ROWS)]
    return np.concatenate(blocks).reshape(len(rows), len(models), -1)
