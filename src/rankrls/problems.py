"""A learning problem: preferences, features and targets, to be solved for any alpha and held out exactly.

`Primal` works from the sums of `statistics` in the feature space, `Dual` from a kernel matrix, `Iterative` from
products with a sparse matrix. Each has

    model(alpha)                coefficients and intercept
    leave_out(folds, alphas)    (m, k, t) scores of every row by the model that never saw its fold; NaN outside folds
    spread                      the mean eigenvalue of the loss: the natural unit of alpha

A fold is a union of whole queries; `folds=None` leaves out each query in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .features import Features
from .iterative import Solution, multishift_cg, warn_if_stopped_early
from .parallel import Scratch, share
from .preferences import PairPreferences, QueryPreferences, Read, Rows
from .queries import BATCH_ROWS, Batch
from .ridge import (
    DualSystem,
    RidgePath,
    dual_system,
    held_out,
    ill_conditioned,
    linear_dual_system,
    primal,
    primal_solution,
)
from .statistics import (
    Preferences,
    Statistics,
    sparse_pair_statistics,
    sparse_statistics,
    statistics,
    target_mean_of,
    targets,
)


@dataclass(frozen=True)
class Model:
    """f(x) = phi(x)' coef + intercept."""

    coef: np.ndarray  # (p, t)
    intercept: np.ndarray  # (t,)


@dataclass(frozen=True)
class Fold:
    """Rows left out together: whole queries, unless `whole` is false.

    While they are out alpha counts `factor` times (1 but for items of a single query).
    """

    rows: np.ndarray
    factor: float = 1.0
    whole: bool = True

    def rest(self, m: int) -> np.ndarray:
        """The rows that stay."""
        stay = np.ones(m, dtype=bool)
        stay[self.rows] = False
        return np.flatnonzero(stay)


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
        self.spread  # noqa: B018  (the factorisation overwrites what it is computed from)
        return self.system.path()

    @cached_property
    def spread(self) -> float:
        return float(np.trace(self.system.FKF)) / self.F.weight

    def _system(self) -> DualSystem:
        y = self.y - self.target_mean
        if not self.linear:
            return dual_system(self.F, self.K, y)
        if sparse.issparse(self.K):
            return dual_system(self.F, (self.K @ self.K.T).toarray().astype(np.float64), y)
        return linear_dual_system(self.F, self.K, y)

    @cached_property
    def target_mean(self) -> np.ndarray:
        return target_mean_of(self.F, self.y)

    def model(self, alpha: float) -> Model:
        b = self.path.coef(alpha) if "path" in self.__dict__ else self.system.solution(alpha)
        a = self.F.T @ _orthogonal(b, self.system.v)
        intercept = np.zeros(self.y.shape[1])
        if self.F.beta > 0:
            intercept = np.average(self.y - self.system.KF @ b, axis=0, weights=self.F.u)
        return Model(self.K.T @ a if self.linear else a, intercept)

    def leave_out(self, folds: Sequence[Fold] | None, alphas: np.ndarray) -> np.ndarray:
        """A dense solve per fold and alpha, of the size of the fold."""
        if folds is not None and not all(fold.whole for fold in folds):
            return self._refit(folds, alphas)
        F, path = self.F, self.path
        S = self.system.KF @ path.basis
        S[:, path.d == 0] = 0
        centred = self.y - self.target_mean
        if F.beta > 0:
            S -= np.average(S, axis=0, weights=F.u)
        scores = np.full((F.shape[0], len(alphas), self.y.shape[1]), np.nan)
        if folds is None:
            parts = [(batch, 1.0) for batch in F.tasks()]
        else:
            parts = [(Batch(np.zeros(1, dtype=np.intp), f.rows, len(f.rows)), f.factor) for f in folds]
        for batch, factor in parts:
            B, S_U, target = (batch.stack(array) for array in (path.basis, S, self.system.z))
            D = path.inverse(alphas * factor)
            held = S_U @ held_out(B, target, D, path.z, complete=True)
            held = held.reshape(*S_U.shape[:2], *scores.shape[1:])
            if F.beta > 0:  # the mean of y - f over the rows that stay; over all rows both have mean zero
                u = np.ones(B.shape[:2]) if F.u is None else batch.stack(F.u)
                left = np.einsum("gl,glkt->gkt", u, held - batch.stack(centred)[:, :, None])
                held += (left / (F.weight - u.sum(axis=1))[:, None, None])[:, None] + self.target_mean
            scores[batch.rows] = held.reshape(-1, *scores.shape[1:])
        return scores

    def _refit(self, folds: Sequence[Fold], alphas: np.ndarray) -> np.ndarray:
        """Part of a query changes the pairs of the rest: one factorisation per fold."""
        scores = np.full((self.F.shape[0], len(alphas), self.y.shape[1]), np.nan)
        for fold in folds:
            stay = fold.rest(self.F.shape[0])
            rest = self.restrict(stay)
            rest.path  # noqa: B018  (one factorisation for all alphas)
            K = self.K[fold.rows] if self.linear else self.K[np.ix_(fold.rows, stay)]
            for k, alpha in enumerate(alphas * fold.factor):
                model = rest.model(alpha)
                scores[fold.rows, k] = K @ model.coef + model.intercept
        return scores

    def restrict(self, rows: np.ndarray) -> Dual:
        K = self.K[rows] if self.linear else self.K[np.ix_(rows, rows)]
        return Dual(self.F.restrict(rows), K, self.y[rows], self.linear)


@dataclass(frozen=True)
class Iterative:
    """Many rows and many sparse columns: conjugate gradients on v -> X'F'F X v, one Krylov space for all alphas."""

    F: QueryPreferences
    X: Any
    y: np.ndarray
    tol: float = 1e-8
    max_iter: int = 2000

    @property
    def spread(self) -> float:
        u = np.ones(self.F.shape[0]) if self.F.u is None else self.F.u
        trace = (u * self.F.between[self.F.queries.codes] ** 2) @ np.asarray(
            self.X.multiply(self.X).sum(axis=1)
        ).ravel()
        return float(trace) / min(self.F.weight, self.X.shape[1])

    @cached_property
    def mean(self) -> np.ndarray:
        if self.F.beta == 0:
            return np.zeros(self.X.shape[1])
        u = np.ones(self.F.shape[0]) if self.F.u is None else self.F.u
        return (self.X.T @ u) / self.F.weight

    def solutions(self, alphas: np.ndarray) -> list[Solution]:
        """One for each target."""
        z, F = targets(self.F, self.y)[0], self.F

        def product(v: np.ndarray) -> np.ndarray:
            r = F.T @ (F @ (self.X @ v - self.mean @ v))
            return self.X.T @ r - self.mean * r.sum()

        found = []
        for column in (F.T @ z).T:
            rhs = self.X.T @ column - self.mean * column.sum()
            found.append(multishift_cg(product, rhs, alphas, tol=self.tol, maxiter=self.max_iter))
            warn_if_stopped_early(found[-1], "the conjugate gradient solver")
        return found

    def models(self, alphas: np.ndarray) -> list[Model]:
        coefs = np.stack([solution.value for solution in self.solutions(alphas)], axis=2)  # (n, k, t)
        target_mean = targets(self.F, self.y)[1]
        return [Model(coef, target_mean - self.mean @ coef) for coef in coefs.transpose(1, 0, 2)]

    def model(self, alpha: float) -> Model:
        return self.models(np.array([alpha]))[0]

    def leave_out(self, folds: Sequence[Fold], alphas: np.ndarray) -> np.ndarray:
        """One run of conjugate gradients per fold."""
        scores = np.full((self.F.shape[0], len(alphas), self.y.shape[1]), np.nan)
        for fold in folds:
            rest = self.restrict(fold.rest(self.F.shape[0]))
            for k, model in enumerate(rest.models(alphas * fold.factor)):
                scores[fold.rows, k] = self.X[fold.rows] @ model.coef + model.intercept
        return scores

    def restrict(self, rows: np.ndarray) -> Iterative:
        return Iterative(self.F.restrict(rows), self.X[rows], self.y[rows], self.tol, self.max_iter)


Problem = Primal | Dual | Iterative


def _with_intercept(coef: np.ndarray, sums: Statistics) -> Model:
    return Model(coef, sums.target_mean - sums.mean @ coef)


def _orthogonal(b: np.ndarray, v: np.ndarray | None) -> np.ndarray:
    return b if v is None else b - np.outer(v, v @ b)
