"""Views that fit the scored pairs and agree on the unscored ones: the sums, the path over alpha and exact hold-out.

View v has features Z_v = Phi_v W_v in which its penalty is ||a_v||^2. With F and G the preferences among scored and
among unscored rows (F'F, G'G their Laplacians), Z = [Z_1 .. Z_M] and a = (a_1; ..; a_M), co-regularisation is

    min_a  sum_v ||F (y - Z_v a_v)||^2 + alpha ||a||^2 + nu sum_{v,u} ||G (Z_v a_v - Z_u a_u)||^2,

that is (B + C + alpha I) a = e with

    B = blockdiag(Z_v'F'F Z_v),   e = (Z_v'F'F y)_v           sums over the scored rows
    S = Z'G'G Z,   C = 2 nu (M blockdiag(S) - S)              one sum over the unscored rows, for every nu and alpha.

To the solver it is ridge regression: B + C is the quadratic and e the cross term of a RidgePath. Leaving out a scored
query removes its loss rows, F_U Z_v of each view in that view's block, and C stays, so hold-out is as exact as in
RankRLS: `ridge.held_out` with M loss rows for each item, and one row to score (the mean of the views). With a share
of regression each view has an intercept, an unpenalised direction. A linear view with more columns than rows is
expanded in the rows: its weights are X'c, and no matrix of its width is formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from .. import checks
from ..core.means import Read, Rows
from ..core.preferences import QueryPreferences
from ..core.queries import BATCH_ROWS, Batch
from ..core.ridge import held_out, primal
from ..core.statistics import Statistics, statistics, targets
from ..core.symmetric import cutoff, whitening
from ..core.views import FittedView
from ..system import memory
from ..system.lazy import cached_property
from ..system.parallel import share
from ..system.types import Matrix, MatrixLike
from .base import HeldOutFold, careful, heavy_queries, held_out_scores, unsolved
from .primal import check_determined_without
from .solved import model_at

NU_RANGE = (-3.0, 3.0)  # decades about the nu at which agreement weighs as much as the loss
N_NUS = 7
WIDE_COLUMNS = 500  # linear views with more columns than this may be expanded in rows


@dataclass(frozen=True)
class Stack:
    """Z = [Z_1 .. Z_M], Z_v = Phi_v W_v, read in blocks of rows and in double precision.

    Blocks are whitened as they are read: whitening sums of Phi would lose twice the digits.
    """

    views: Sequence[FittedView]
    W: Sequence[np.ndarray | None]  # None where the penalty is ||w||^2
    blocks: Sequence[slice]  # the columns of each view in Z
    rows: Sequence[Any] = ()  # for each view, the rows a linear view is expanded in, else None

    @classmethod
    def of(cls, views: Sequence[FittedView], X: MatrixLike, rows: Sequence[Any] = ()) -> Stack:
        """`rows`: for each view, the rows a linear view is expanded in, else None (see `expanded_in`)."""
        rows = rows or [None] * len(views)
        widths = [n if R is None else R.shape[0] for n, R in zip(widths_of(views, X), rows, strict=True)]
        width = sum(widths)
        memory.check_memory(
            6 * 8 * width**2,
            f"{len(views)} views with {width} basis points and linear columns together",
            "take a smaller basis or fewer columns",
        )
        W = [_whitening(view, R) for view, R in zip(views, rows, strict=True)]
        widths = [n if w is None else w.shape[1] for n, w in zip(widths, W, strict=True)]
        return cls(views, W, _blocks(widths), rows)

    @classmethod
    def unweighted(cls, views: Sequence[FittedView], X: MatrixLike) -> Stack:
        """Z_v = Phi_v, for uses without a penalty."""
        return cls(views, [None] * len(views), _blocks(widths_of(views, X)))

    @property
    def n_columns(self) -> int:
        return self.blocks[-1].stop

    @property
    def fixed(self) -> bool:
        """True if the features do not depend on the rows the views were fitted to."""
        return all(R is None for R in self.rows)

    def __call__(self, X: Any) -> np.ndarray:
        """(k, n_columns) Z of k rows."""
        Phi = [
            view(X) if R is None else _products(X[:, view.columns], R)
            for view, R in zip(self.views, self.rows or [None] * len(self.views), strict=True)
        ]
        return np.hstack([V if W is None else V @ W for V, W in zip(Phi, self.W, strict=True)])

    def reader(self, X: Matrix, rows: np.ndarray) -> Callable[[], Read]:
        """Readers of Z among some rows of X."""

        def read(among: Rows) -> np.ndarray:
            return self(X[rows[among]])

        return lambda: read

    def diagonal(self, S: np.ndarray) -> np.ndarray:
        """blockdiag(S)."""
        D = np.zeros_like(S)
        for block in self.blocks:
            D[block, block] = S[block, block]
        return D

    def coefs(self, a: np.ndarray) -> list[np.ndarray]:
        """For each view W_v a_v, the weights of its columns or points; a (R, ...)."""
        found = [a[block] if W is None else W @ a[block] for block, W in zip(self.blocks, self.W, strict=True)]
        rows = self.rows or [None] * len(found)
        return [c if R is None else np.asarray(R.T @ c) for c, R in zip(found, rows, strict=True)]


def agreement(stack: Stack, X: MatrixLike, rows: np.ndarray, G: QueryPreferences) -> np.ndarray:
    """S = Z'G'G Z over the unscored rows in one pass; O(l R^2) time, O(R^2) memory and a block of rows."""
    return statistics(G, stack.reader(X, rows), np.empty((len(rows), 0)), stack.n_columns, np.float64).gram


@dataclass(frozen=True)
class Joint:
    """The co-regularised problem from its sums: B and e of the scored rows, S of the unscored rows."""

    stack: Stack
    sums: Statistics  # of [Z_1 .. Z_M]; B is the block diagonal of its gram
    S: np.ndarray  # (R, R)

    @property
    def n_views(self) -> int:
        return len(self.stack.blocks)

    @property
    def mean_eigenvalue(self) -> float:
        """The mean eigenvalue of B."""
        return float(np.trace(self.sums.gram)) / self.stack.n_columns

    @property
    def nus(self) -> np.ndarray:
        """Zero, and values around the nu at which C weighs as much as B; only zero if nu has no effect."""
        return default_nus(float(np.trace(self.sums.gram)), 2 * (self.n_views - 1) * float(np.trace(self.S)))

    def with_agreement(self, nu: float) -> Statistics:
        """B + C and e."""
        C = 2 * nu * (self.n_views * self.stack.diagonal(self.S) - self.S)
        return replace(self.sums, gram=self.stack.diagonal(self.sums.gram) + C)

    def solution(self, alpha: float, nu: float) -> ViewWeights:
        """a and the intercepts of the views."""
        return self.weights(model_at(alpha, self.with_agreement(nu), None, np.float64).coef)

    def path(self, alphas: np.ndarray, nu: float) -> list[ViewWeights]:
        """The same at every alpha, from one factorisation."""
        path = primal(self.with_agreement(nu))
        if np.any(alphas == 0):
            checks.check_determined(len(path.d), self.stack.n_columns)
        return [self.weights(path.coef(alpha)) for alpha in alphas]

    def weights(self, a: np.ndarray) -> ViewWeights:
        means = [self.sums.mean[block] @ a[block] for block in self.stack.blocks]
        return ViewWeights(a, np.array([self.sums.target_mean - mean for mean in means]))

    def disagreement(self, a: np.ndarray) -> float:
        """sum_v ||G (f_v - f)||^2 / sum_v ||G f_v||^2, f the mean of the views; NaN where all are constant."""
        a = a / (np.abs(a).max(initial=0.0) or 1.0)  # else the squares of large weights would overflow
        total = np.sum(a * (self.stack.diagonal(self.S) @ a))
        return float(1 - np.sum(a * (self.S @ a)) / (self.n_views * total)) if total > 0 else float("nan")


@dataclass(frozen=True)
class ViewWeights:
    """A solution of all views."""

    a: np.ndarray  # (R, t)
    intercepts: np.ndarray  # (M, t)


@dataclass(frozen=True)
class Coregularised:
    """The co-regularised problem; `given_nus` are the values of nu to choose from, None for a grid fitted to S."""

    F: QueryPreferences
    stack: Stack
    X: Any
    rows: np.ndarray  # (m,) the scored rows of X
    y: np.ndarray  # (m, t)
    S: np.ndarray  # (R, R)
    given_nus: np.ndarray | None = None

    @cached_property
    def joint(self) -> Joint:
        return Joint(self.stack, self._sums(self.F, np.arange(len(self.rows))), self.S)

    def _sums(self, F: QueryPreferences, rows: np.ndarray) -> Statistics:
        reader = self.stack.reader(self.X, self.rows[rows])
        return statistics(F, reader, self.y[rows], self.stack.n_columns, np.float64)

    @property
    def nus(self) -> np.ndarray:
        return self.joint.nus if self.given_nus is None else self.given_nus

    def leave_out(self, folds: Sequence[HeldOutFold] | None, alphas: np.ndarray) -> np.ndarray:
        """(m, k, t) scores of every scored row by the model that never saw its fold, or its query if folds is None.

        k runs over pairs of nu and alpha: all alphas at the first of `nus`, then at the second, and so on.
        """
        nus, t = self.nus, self.y.shape[1]
        by_nu = np.full((len(self.rows), len(nus), len(alphas), t), np.nan)
        if folds is None:
            batches = self.F.batches()
            short = [b for b in batches if b.length <= 2 * BATCH_ROWS]
            self.joint  # noqa: B018  (computed once, before the threads start)

            def work(numbers: Sequence[int]) -> None:
                for k in numbers:
                    self._leave_queries_out(short, nus[k], alphas, by_nu[:, k])

            # factorisations run side by side
            share(work, range(len(nus)), cost=float(self.stack.n_columns) ** 3, label="factorisations")
            lost = unsolved(by_nu.reshape(len(self.rows), -1, t), self.F.queries.codes)
            folds = [HeldOutFold(self.F.queries.rows(q)) for q in lost] + heavy_queries(self.F, self.y)
        else:
            folds = careful(folds, self.F, self.y)
        for fold in folds:
            self._leave_fold_out(fold, alphas, by_nu)
        return by_nu.reshape(len(self.rows), -1, t)

    def _leave_queries_out(self, batches: Sequence[Batch], nu: float, alphas: np.ndarray, scores: np.ndarray) -> None:
        """Leave out query by query in the coordinates of the path: one factorisation for all queries and alphas."""
        F, blocks, sums = self.F, self.stack.blocks, self.joint.sums
        path, target = primal(self.joint.with_agreement(nu)), targets(self.F, self.y)[0]
        V, D, z, M = path.basis, path.inverse(alphas), path.z, len(blocks)
        r, free = V.shape[1], M if F.beta > 0 else 0  # an intercept for each view
        D, z = np.vstack([D, np.ones((free, len(alphas)))]), np.vstack([z, np.zeros((free, z.shape[1]))])
        unit = np.sqrt(F.beta * sums.weight)
        c = (np.repeat(D, z.shape[1], axis=1) * np.tile(z, len(alphas)))[:r]

        def work(share_of_batches: Sequence[Batch]) -> None:
            read = self.stack.reader(self.X, self.rows)()
            for batch in share_of_batches:
                Z = read(batch.rows)
                g, mean = len(batch.queries), F.means.centre(Z, batch) - sums.mean
                S = (Z @ V).reshape(g, batch.length, -1) + (mean @ V)[:, None]
                A = F.scale(Z, batch, mean)
                B = np.zeros((g, M, batch.length, r + free))
                for v, block in enumerate(blocks):
                    B[:, v, :, :r] = (A[:, block] @ V[block]).reshape(g, batch.length, -1)
                    if free:
                        B[:, v, :, r + v] = (1.0 if F.s is None else batch.stack(F.s)) / np.sqrt(sums.weight)
                if np.any(alphas == 0):
                    check_determined_without(B.reshape(g, -1, r + free), D, F.queries.labels[batch.queries])
                target_rows = np.tile(batch.stack(target), (1, M, 1))
                C = held_out(B.reshape(g, -1, r + free), target_rows, D, z, complete=False)
                held = held_out_scores(S, C[:, :r], c, path.d, alphas)
                if free:
                    held += C[:, r:].sum(axis=1, keepdims=True) / unit
                scores[batch.rows] = (held / M).reshape(-1, *scores.shape[1:])
                if free:
                    scores[batch.rows] += sums.target_mean

        share(work, batches, cost=float(F.shape[0]) * V.size, label="held-out queries")

    def _leave_fold_out(self, fold: HeldOutFold, alphas: np.ndarray, scores: np.ndarray) -> None:
        """Leave out a fold: subtract its sums, then one factorisation for each nu.

        Sums are computed again without a fold that cuts a query, which changes the pairs among the remaining rows, or
        that outweighs them.
        """
        if fold.whole:
            sums = self.joint.sums - self._sums(self.F.restrict(fold.rows), fold.rows)
        else:
            rest = fold.rest(len(self.rows))
            sums = self._sums(self.F.restrict(rest), rest)
        joint = Joint(self.stack, sums, self.S)
        found = [weights for nu in self.nus for weights in joint.path(alphas, nu)]
        a = np.hstack([weights.a for weights in found])
        intercept = np.concatenate([weights.intercepts.sum(axis=0) for weights in found])
        for part in _parts(fold.rows):
            held = (self.stack(self.X[self.rows[part]]) @ a + intercept) / self.joint.n_views
            scores[part] = held.reshape(len(part), *scores.shape[1:])


def default_nus(loss: float, agreement: float) -> np.ndarray:
    """Zero, and values around the nu at which agreement weighs as much as the loss; only zero without agreement."""
    if agreement <= 0:
        return np.zeros(1)
    return np.concatenate([[0.0], loss / agreement * np.logspace(*NU_RANGE, N_NUS)])


def widths_of(views: Sequence[FittedView], X: Matrix) -> list[int]:
    return [X[:1, v.columns].shape[1] if v.points is None else v.points.shape[0] for v in views]


def _blocks(widths: Sequence[int]) -> list[slice]:
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]


def _parts(rows: np.ndarray) -> Iterator[np.ndarray]:
    for i in range(0, len(rows), BATCH_ROWS):
        yield rows[i : i + BATCH_ROWS]


def _whitening(view: FittedView, rows: object) -> np.ndarray | None:
    if view.kernel is None and rows is None:
        return None
    K = _products(rows, rows) if view.kernel is None else view.kernel(view.points, view.points)
    return whitening((K + K.T) / 2, cutoff(len(K)))


def expanded_in(views: Sequence[FittedView], X: Matrix) -> list[Any]:
    """For each view, the rows of X if it is expanded in them (linear, with more columns than X has rows); else None."""
    wide = [v.kernel is None and X[:1, v.columns].shape[1] > max(X.shape[0], WIDE_COLUMNS) for v in views]
    return [X[:, v.columns].astype(np.float64) if w else None for v, w in zip(views, wide, strict=True)]


def _products(X: Any, rows: Any) -> np.ndarray:
    """X rows', dense and in double precision."""
    K = X.astype(np.float64) @ rows.T
    return K.toarray() if sparse.issparse(K) else K
