"""RankRLS with sign constraints on the weights, from the same sums, with exact hold-out.

Leaving out a query usually leaves the same weights at zero. Then, with B and z its rows of (F X, F y), P the columns
with nonzero weights and M = A'A + alpha I,

    v_P = w_P - M_PP^-1 B_P' (I - B_P M_PP^-1 B_P')^-1 (z - B_P w_P),

for many queries at once; or, where columns are fewer than the rows of a query, v_P = (M - B'B)_PP^-1 (c - B'z)_P. This
is the solution if the nonzero weights have the right signs and the gradients of the zero weights do too. Otherwise
weights are exchanged, starting from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..core.pairs import PairPreferences
from ..core.preferences import QueryPreferences
from ..core.queries import Batch
from ..core.signs import signed_solution
from ..core.statistics import Statistics, targets
from ..core.symmetric import per_deviation
from ..system.parallel import share, threads_for
from .base import HeldOutFold, Model, careful, heavy_queries, held_out_scores
from .primal import Primal

LONG = 512  # longer queries are left out one by one: by then a system of columns is smaller than one of rows
LEFT = 1e-10  # a column of which less is left without a fold would be rounding
CLOSE = 1e-11  # gradients below this share of the largest label gradient count as zero


@dataclass(frozen=True)
class SignedPrimal(Primal):
    """Ridge regression on (F X, F y) with s_j w_j >= 0."""

    signs: np.ndarray = field(default_factory=lambda: np.empty(0))  # (n,) 1, -1, or 0 for any sign

    def model(self, alpha: float) -> Model:
        return signed_models(self.sums, np.array([alpha]), self.signs, W=self.W)[0]

    def leave_out(self, folds: Sequence[HeldOutFold] | None, alphas: np.ndarray) -> np.ndarray:
        """(m, k, t) scores of every row by models that never saw its fold, each started at the full solution."""
        with threads_for(float(len(self.signs)) ** 3):
            near = signed_models(self.sums, alphas, self.signs, W=self.W)
            scores = np.full((self.F.shape[0], len(alphas), self.y.shape[1]), np.nan, dtype=self.dtype)
            if folds is None:
                assert isinstance(self.F, QueryPreferences)
                heavy = heavy_queries(self.F, self.y)
                done = self._leave_queries_out(near, alphas, scores)
                done[[self.F.queries.codes[fold.rows[0]] for fold in heavy]] = True
                folds = heavy + [HeldOutFold(self.F.queries.rows(int(q))) for q in np.flatnonzero(~done)]
            else:
                folds = careful(folds, self.F, self.y)
            for fold in folds:
                scores[fold.rows] = self._without(fold, alphas, near)
        return scores

    def _without(self, fold: HeldOutFold, alphas: np.ndarray, near: Sequence[Model]) -> np.ndarray:
        """(l, k, t) scores of a fold by the models of the sums without it."""
        sums = self.sums - self.restrict(fold.rows).sums if fold.whole else None
        if sums is None or np.any(np.diag(sums.gram) < LEFT * np.diag(self.sums.gram)):
            sums = self.restrict(fold.rest(self.F.shape[0])).sums
            sums = sums if self.extra is None else sums + self.extra
        return self.scores(fold.rows, signed_models(sums, alphas * fold.factor, self.signs, near, W=self.W))

    def _leave_queries_out(self, near: Sequence[Model], alphas: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """(q,) which queries were left out here, many at a time; fills in their scores."""
        F, reader = self.F, self._reader()
        read = lambda rows: np.array(reader(rows), dtype=np.float64)  # F works in place
        assert isinstance(F, QueryPreferences)
        done = np.zeros(len(F.queries), dtype=bool)
        if F.beta > 0 or self.y.shape[1] > 1 or self.dtype != np.float64:
            return done
        z, n = np.asarray(F @ self.y[:, 0]), len(self.signs)
        systems, c = self._systems(near, alphas), np.hstack([model.coef for model in near])
        d = np.sum(np.diag(self.sums.gram) / _penalty(n, self.W), keepdims=True)  # an upper bound of the eigenvalues

        def work(batches: Sequence[Batch]) -> None:
            for batch in batches:
                shape = len(batch.queries), batch.length, n
                B = np.concatenate([FX for _, FX in F.rows_of(batch, read)]).reshape(shape)
                V = np.stack([system.without(B, batch.stack(z)) for system in systems], axis=-1)  # (g, n, k)
                done[batch.queries] = ~np.isnan(V).any(axis=(1, 2))
                X = read(batch.rows).reshape(shape)
                origin = X[:, :1].copy()  # so that scores far from zero keep their differences
                held = held_out_scores(X - origin, V, c, d, alphas)
                held += np.matmul(origin, V)
                scores[batch.rows, :, 0] = held.reshape(-1, len(near))

        short = [batch for batch in F.batches(n) if batch.length <= LONG]
        share(work, short, cost=float(F.shape[0]) * n * len(alphas), label="held-out queries")
        return done

    def _models(self, sums: Statistics, alphas: np.ndarray) -> list[Model]:
        return signed_models(sums, alphas, self.signs, W=self.W)

    def _pairs_left_out(self, alphas: np.ndarray) -> np.ndarray:
        F = self.F
        assert isinstance(F, PairPreferences)
        margins = np.empty((F.shape[0], len(alphas), 1))
        with threads_for(float(len(self.signs)) ** 3):
            systems = self._systems(signed_models(self.sums, alphas, self.signs, W=self.W), alphas)
            z, read = targets(F, self.y)[0][:, 0], self.features.reader(self.X)()
            for rows in F.batches():
                A: Any = next(F.factor(rows, read))
                A = np.asarray(A.toarray() if sparse.issparse(A) else A, dtype=np.float64)
                V = np.stack([system.without(A[:, None], z[rows, None]) for system in systems], axis=1)  # (g, k, n)
                margins[rows, :, 0] = np.einsum("gkn,gn->gk", V, A) / F.s[rows, None]
        return margins

    def _systems(self, near: Sequence[Model], alphas: np.ndarray) -> list[SameZeros]:
        """The problem of all rows, one at each alpha."""
        gram, cross, penalty = self.sums.gram, self.sums.cross[:, 0], np.diag(_penalty(len(self.signs), self.W))
        return [
            SameZeros(gram + alpha * penalty, cross, model.coef[:, 0], self.signs)
            for alpha, model in zip(alphas, near, strict=True)
        ]


@dataclass(frozen=True)
class SameZeros:
    """The sign-constrained solution of M w = c without one query at a time."""

    M: np.ndarray  # (n, n)
    c: np.ndarray  # (n,)
    w: np.ndarray  # (n,) the solution of all rows
    signs: np.ndarray  # (n,)

    def without(self, B: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(g, n) solutions without each of g queries with rows B (g, l, n) and z (g, l); NaN where there is none."""
        P = (self.w != 0) | (self.signs == 0)
        V, all_rows = self._with_same_zeros(B, z, P), np.diag(self.M)
        V[(all_rows - np.sum(B**2, axis=1) < LEFT * all_rows).any(axis=1)] = np.nan
        wrong, flat = self._violations(V, P, B, z)
        for g in np.flatnonzero((wrong.any(axis=1) | ~flat) & ~np.isnan(V).all(axis=1)):
            M, c = self.M - B[g].T @ B[g], self.c - B[g].T @ z[g]
            V[g] = signed_solution(M, c, self.signs, P ^ wrong[g])
        return V

    def _with_same_zeros(self, B: np.ndarray, z: np.ndarray, P: np.ndarray) -> np.ndarray:
        """(g, n) solutions with the zeros of the full solution; NaN where a query alone determines a weight."""
        V, n = np.zeros((len(B), len(P))), int(P.sum())
        if n:
            solve = self._by_columns if n < B.shape[1] else self._by_rows
            try:
                V[:, P] = solve(self.M[np.ix_(P, P)], B[:, :, P], z, P)
            except linalg.LinAlgError:
                V[:] = np.nan
        return V

    def _by_columns(self, M: np.ndarray, B: np.ndarray, z: np.ndarray, P: np.ndarray) -> np.ndarray:
        """(g, p) from a system of the p columns for each query."""
        T = B.transpose(0, 2, 1)
        return np.linalg.solve(M - T @ B, self.c[P][:, None] - T @ z[..., None])[..., 0]

    def _by_rows(self, M: np.ndarray, B: np.ndarray, z: np.ndarray, P: np.ndarray) -> np.ndarray:
        """(g, p) from a system of the rows of each query."""
        factor, w = linalg.cho_factor(M, check_finite=False), self.w[P]
        solved = linalg.cho_solve(factor, B.reshape(-1, len(w)).T, check_finite=False).T.reshape(B.shape)
        t = np.linalg.solve(np.eye(B.shape[1]) - solved @ B.transpose(0, 2, 1), (z - B @ w)[..., None])
        return w - np.matmul(t.transpose(0, 2, 1), solved)[:, 0]

    def _violations(self, V: np.ndarray, P: np.ndarray, B: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(g, n) weights that have the wrong sign or should not be zero; (g,) whether the other gradients vanish."""
        size = np.sqrt(np.diag(self.M))
        size = np.where(size > 0, size, 1.0)  # makes gradients comparable between columns of different units
        residual = z - (B @ V[..., None])[..., 0]
        gradient = (self.c - V @ self.M - (residual[:, None] @ B)[:, 0]) / size
        tolerance = CLOSE * (np.abs(self.c / size).max(initial=0) or 1.0)
        flat = np.all(np.abs(gradient[:, P]) <= tolerance, axis=1)
        return (self.signs * V < 0) | (~P & (self.signs * gradient > tolerance)), flat


def _penalty(n: int, W: np.ndarray | None) -> np.ndarray:
    """(n,) the factor of alpha for each column."""
    return np.ones(n) if W is None else np.where(W > 0, per_deviation(W) ** 2, 1.0)


def signed_models(
    sums: Statistics,
    alphas: np.ndarray,
    signs: np.ndarray,
    near: Sequence[Model] | None = None,
    *,
    W: np.ndarray | None = None,
) -> list[Model]:
    """The model at each alpha, started from `near` or from the next larger alpha; W is a diagonal penalty."""
    models: list[Model | None] = [None] * len(alphas)
    penalty = np.diag(_penalty(len(sums.gram), W))
    before: Model | None = None
    for k in np.argsort(-alphas):
        start = before if near is None else near[k]
        M = sums.gram + alphas[k] * penalty
        columns = [
            signed_solution(M, c, signs, None if start is None else start.coef[:, t] != 0)
            for t, c in enumerate(sums.cross.T)
        ]
        models[k] = before = Model.of(np.column_stack(columns), sums)
    return [model for model in models if model is not None]
