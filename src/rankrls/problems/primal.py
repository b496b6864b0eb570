"""RankRLS through its normal equations, from sums over the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..core.features import Features
from ..core.preferences import PairPreferences, QueryPreferences, Read, Rows
from ..core.queries import BATCH_ROWS, Batch
from ..core.ridge import (
    RidgePath,
    held_out,
    ill_conditioned,
    primal,
    primal_solution,
)
from ..core.statistics import (
    Preferences,
    Statistics,
    sparse_pair_statistics,
    sparse_statistics,
    statistics,
    targets,
)
from ..system.parallel import Scratch, share
from .base import Fold, Model


@dataclass(frozen=True)
class Primal:
    """Ridge regression on (F Phi, F y) through its normal equations."""

    F: Preferences
    features: Features
    X: Any
    y: np.ndarray  # (m, t); margins (p, t) with PairPreferences
    dtype: Any

    @cached_property
    def sums(self) -> Statistics:
        if sparse.issparse(self.X) and self.features.W is None:
            if isinstance(self.F, PairPreferences):
                return sparse_pair_statistics(self.F, self.X, self.y)
            return sparse_statistics(self.F, self.X, self.y)
        return statistics(self.F, self.features.reader(self.X), self.y, self.features.n_columns, self.dtype)

    @cached_property
    def path(self) -> RidgePath:
        return primal(self.sums, self.features.W, self.dtype)

    def among(self, F: Preferences, X: Any, y: np.ndarray) -> Primal:
        """The problem of some rows only, to be held out of the solution of all: path and sums stay what they are."""
        part = Primal(F, self.features, X, y, self.dtype)
        part.__dict__.update({name: self.__dict__[name] for name in ("sums", "path") if name in self.__dict__})
        return part

    @property
    def spread(self) -> float:
        W, gram = self.features.W, self.sums.gram
        trace = np.trace(gram) if W is None else np.einsum("ij,ij->", W, gram @ W)
        return float(trace) / (gram.shape[0] if W is None else W.shape[1])

    def model(self, alpha: float) -> Model:
        plain = self.features.W is None and isinstance(self.F, QueryPreferences)
        if "path" not in self.__dict__ and not ill_conditioned(self.sums.gram, alpha):
            coef = primal_solution(self.sums, alpha, self.features.W, self.dtype)
        elif plain and self.path.condition(alpha) > 1e8:
            coef = self._refined(alpha)
        else:
            coef = self.path.coef(alpha)
        return _with_intercept(coef, self.sums)

    def _refined(self, alpha: float) -> np.ndarray:
        """The solution with its gradient taken from the rows, which restores the digits that A'A has lost."""
        F, X, path, sums = self.F, self.X, self.path, self.sums
        D = path.inverse(np.array([alpha]))
        c = D * path.z
        for _ in range(3):
            w = path.basis @ c
            residual = self.y - sums.target_mean - (X @ w - sums.mean @ w)
            g = F.T @ (F @ residual)
            gradient = X.T @ g - np.outer(sums.mean, g.sum(axis=0))
            c += D * (path.basis.T @ gradient - alpha * c)
        return path.basis @ c

    def leave_out(self, folds: Sequence[Fold] | None, alphas: np.ndarray) -> np.ndarray:
        if folds is not None:
            return self._leave_folds_out(folds, alphas)
        assert isinstance(self.F, QueryPreferences)
        batches = self.F.tasks(self.features.n_columns)
        scores = self._leave_queries_out([b for b in batches if b.length <= 2 * BATCH_ROWS], alphas)
        long = [Fold(np.arange(self.F.shape[0])[b.rows]) for b in batches if b.length > 2 * BATCH_ROWS]
        if long:
            held = self._leave_folds_out(long, alphas)
            for fold in long:
                scores[fold.rows] = held[fold.rows]
        return scores

    def _leave_queries_out(self, batches: Sequence[Batch], alphas: np.ndarray) -> np.ndarray:
        """Query by query in the coordinates of the path: O(m n^2), then O(m n k) for each step of the solver."""
        F, path, sums = self.F, self.path, self.sums
        assert isinstance(F, QueryPreferences)
        target_mean = sums.target_mean
        target = F @ (self.y - target_mean)
        basis, D, z = (array.astype(self.dtype) for array in (path.basis, path.inverse(alphas), path.z))
        if F.beta > 0:  # the intercept, a direction without penalty
            D, z = np.vstack([D, np.ones_like(D[:1])]), np.vstack([z, np.zeros_like(z[:1])])
        scores = np.empty((F.shape[0], len(alphas), self.y.shape[1]), dtype=self.dtype)
        rotate = self.rotation(basis, sums.mean.astype(self.dtype))

        def work(share_of_batches: Sequence[Batch]) -> None:
            read, scratch, r = rotate(), Scratch(self.dtype), basis.shape[1]
            for batch in share_of_batches:
                V, mean = read(batch)
                B, shape = scratch(len(V), len(D)), (len(batch.queries), batch.length, -1)
                F.scale(V, batch, mean, out=B[:, :r])
                if F.beta > 0:
                    B[:, r] = (1.0 if F.s is None else batch.take(F.s)) / np.sqrt(sums.weight)
                target_rows = batch.stack(target).astype(self.dtype)
                C = held_out(B.reshape(shape), target_rows, D, z, complete=False)
                held = V.reshape(shape) @ C[:, :r]
                held += mean[:, None] @ C[:, :r]
                if F.beta > 0:
                    held += C[:, r:] / np.sqrt(F.beta * sums.weight)
                scores[batch.rows] = held.reshape(-1, *scores.shape[1:])

        share(work, batches, cost=float(F.shape[0]) * basis.size, label="held-out queries")
        return scores + target_mean.astype(self.dtype) if F.beta > 0 else scores

    def rotation(self, basis: np.ndarray, mean: np.ndarray) -> Callable[[], Callable[[Batch], tuple]]:
        """Readers of (Phi - query mean) basis and (query mean - mean) basis. Dense rows are centred first, so that
        large query-level offsets cancel before they mix with other columns."""
        F, X = self.F, self.X
        assert isinstance(F, QueryPreferences)

        def sparse_rotation(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
            V = X[batch.rows] @ basis
            return V, F.centre(V, batch) - mean @ basis

        if sparse.issparse(X) and self.features.W is None:
            return lambda: sparse_rotation
        reader = self.features.reader(X)

        def dense() -> Callable[[Batch], tuple[np.ndarray, np.ndarray]]:
            read, centred, rotated = reader(), Scratch(basis.dtype), Scratch(basis.dtype)

            def rotation(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
                Phi = read(batch.rows)
                V = centred(*Phi.shape)
                query_mean = F.centre(Phi, batch, out=V)
                return np.matmul(V, basis, out=rotated(len(V), basis.shape[1])), (query_mean - mean) @ basis

            return rotation

        return dense

    def _leave_folds_out(self, folds: Sequence[Fold], alphas: np.ndarray) -> np.ndarray:
        """Fold by fold from the sums of all rows less those of the fold; part of a query changes the pairs of the
        rest, whose sums are then taken anew."""
        scores = np.full((self.F.shape[0], len(alphas), self.y.shape[1]), np.nan, dtype=self.dtype)
        for fold in folds:
            if fold.whole:
                sums = self.sums - self.restrict(fold.rows).sums
            else:
                sums = self.restrict(fold.rest(self.F.shape[0])).sums
            path = primal(sums, self.features.W, self.dtype)
            models = [_with_intercept(path.coef(alpha * fold.factor), sums) for alpha in alphas]
            scores[fold.rows] = self.scores(fold.rows, models)
        return scores

    def leave_pairs_out(self, alphas: np.ndarray) -> np.ndarray:
        """(p, k, t) the margin of each explicit pair under the model that never saw the pair: one division each."""
        F, path = self.F, self.path
        assert isinstance(F, PairPreferences)
        D, target = path.inverse(alphas), targets(F, self.y)[0]
        c = D[:, :, None] * path.z[:, None]
        margins = np.empty((F.shape[0], len(alphas), self.y.shape[1]))
        read = self.features.reader(self.X)()
        for rows in F.tasks():
            (A,) = F.factor(rows, read)
            B = A @ path.basis
            residual = target[rows][:, None] - np.einsum("pr,rkt->pkt", B, c)
            residual /= (1 - B**2 @ D)[:, :, None]
            margins[rows] = (target[rows][:, None] - residual) / F.s[rows][:, None, None]
        return margins

    def scores(self, rows: np.ndarray, models: Sequence[Model]) -> np.ndarray:
        """(len(rows), k, t); differences of scores for explicit pairs."""
        coef = np.concatenate([model.coef for model in models], axis=1).astype(self.dtype)
        intercept = np.concatenate([model.intercept for model in models]).astype(self.dtype)
        if isinstance(self.F, PairPreferences):
            unit = PairPreferences(self.F.pair[rows], self.F.shape[1])
            read = self.features.reader(self.X)()
            blocks = [A @ coef for rows in unit.tasks() for A in unit.factor(rows, read)]
        else:
            blocks = [Phi @ coef + intercept for Phi in self._blocks(rows)]
        return np.concatenate(blocks).reshape(len(rows), len(models), -1)

    def _blocks(self, rows: np.ndarray) -> Iterator[Any]:
        plain = sparse.issparse(self.X) and self.features.W is None
        read = (lambda r: self.X[r]) if plain else self.features.reader(self.X)()
        for i in range(0, len(rows), BATCH_ROWS):
            yield read(rows[i : i + BATCH_ROWS])

    def restrict(self, rows: np.ndarray) -> Primal:
        """The problem of some rows (of some pairs, for explicit pairs); X is not copied."""
        F = self.F.restrict(rows)
        if isinstance(F, PairPreferences):
            return Primal(F, self.features, self.X, self.y[rows], self.dtype)
        if sparse.issparse(self.X):
            return Primal(F, self.features, self.X[rows], self.y[rows], self.dtype)
        return Primal(F, _Selected(self.features, rows), self.X, self.y[rows], self.dtype)


@dataclass(frozen=True)
class _Selected:
    """Features of some rows only, without copying X."""

    features: Features
    rows: np.ndarray

    @property
    def n_columns(self) -> int:
        return self.features.n_columns

    @property
    def W(self) -> np.ndarray | None:
        return self.features.W

    def reader(self, X: Any) -> Callable[[], Read]:
        reader = self.features.reader(X)

        def selected() -> Read:
            read = reader()

            def read_rows(rows: Rows) -> np.ndarray:
                return read(self.rows[rows])

            return read_rows

        return selected


def _with_intercept(coef: np.ndarray, sums: Statistics) -> Model:
    return Model(coef, sums.target_mean - sums.mean @ coef)
