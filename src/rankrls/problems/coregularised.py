"""Views that fit the scored pairs and agree on the unscored ones: the sums, the path over alpha and exact hold-out.

View v has features Z_v = Phi_v W_v in which its penalty is ||a_v||^2. With F and G the preferences among scored and
among unscored rows (F'F, G'G their Laplacians), Z = [Z_1 .. Z_M] and a = (a_1; ..; a_M), co-regularisation is

    min_a  sum_v ||F (y - Z_v a_v)||^2 + alpha ||a||^2 + nu sum_{v,u} ||G (Z_v a_v - Z_u a_u)||^2,

that is (B + C + alpha I) a = e with

    B = blockdiag(Z_v'F'F Z_v),   e = (Z_v'F'F y)_v           sums over the scored rows
    S = Z'G'G Z,   C = 2 nu (M blockdiag(S) - S)              one sum over the unscored rows, for every nu and alpha.

To the solver it is ridge regression: B + C is the quadratic and e the cross term of a RidgePath. A scored query left
out takes away its loss rows, F_U Z_v of each view in that view's block, and C stays, so hold-out is exact as it is in
RankRLS: `ridge.held_out` with M rows of loss, and one row to score (the mean of the views), for each item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core.means import Read, Rows
from ..core.preferences import QueryPreferences
from ..core.queries import BATCH_ROWS, Batch
from ..core.ridge import held_out, primal
from ..core.statistics import Statistics, statistics, targets
from ..core.symmetric import cutoff, whitening
from ..core.views import FittedView
from ..system import memory
from ..system.parallel import share
from ..system.types import Matrix, MatrixLike
from .base import Fold
from .solved import model_at

NU_RANGE = (-3.0, 3.0)  # decades about the nu at which agreement weighs as much as the loss
N_NUS = 7


@dataclass(frozen=True)
class Stack:
    """Z = [Z_1 .. Z_M], Z_v = Phi_v W_v, read in blocks of rows and in double precision.

    Blocks are whitened as they are read: sums of Phi would square the digits that W costs.
    """

    views: Sequence[FittedView]
    W: Sequence[np.ndarray | None]  # None where the penalty is ||w||^2
    blocks: Sequence[slice]  # the columns of each view in Z

    @classmethod
    def of(cls, views: Sequence[FittedView], X: MatrixLike) -> Stack:
        width = sum(_widths(views, X))
        memory.check_memory(
            6 * 8 * width**2,
            f"{len(views)} views with {width} basis points and linear columns together",
            "take a smaller basis or fewer columns",
        )
        W = [None if view.kernel is None else _whitening(view) for view in views]
        widths = [n if w is None else w.shape[1] for n, w in zip(_widths(views, X), W, strict=True)]
        return cls(views, W, _blocks(widths))

    @classmethod
    def unweighted(cls, views: Sequence[FittedView], X: MatrixLike) -> Stack:
        """Z_v = Phi_v, for what penalises nothing."""
        return cls(views, [None] * len(views), _blocks(_widths(views, X)))

    @property
    def n_columns(self) -> int:
        return self.blocks[-1].stop

    def __call__(self, X: Any) -> np.ndarray:
        """(k, n_columns) Z of k rows."""
        Phi = [view(X) for view in self.views]
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
        """For each view W_v a_v, the weights of its columns or points."""
        return [a[block] if W is None else W @ a[block] for block, W in zip(self.blocks, self.W, strict=True)]


def agreement(stack: Stack, X: MatrixLike, rows: np.ndarray, G: QueryPreferences) -> np.ndarray:
    """S = Z'G'G Z over the unscored rows in one pass; O(l R^2) time, O(R^2) memory and a block of rows."""
    return statistics(G, stack.reader(X, rows), np.empty((len(rows), 0)), stack.n_columns, np.float64).gram


@dataclass(frozen=True)
class Coregularised:
    """The co-regularised problem; `given_nus` are the values of nu to choose from, None for a grid fitted to S."""

    F: QueryPreferences
    stack: Stack
    X: Any
    rows: np.ndarray  # (m,) the scored rows of X
    y: np.ndarray  # (m, 1)
    S: np.ndarray  # (R, R)
    given_nus: np.ndarray | None = None

    @cached_property
    def sums(self) -> Statistics:
        """B and e of the scored rows."""
        return self._sums(self.F, np.arange(len(self.rows)))

    def _sums(self, F: QueryPreferences, rows: np.ndarray) -> Statistics:
        reader = self.stack.reader(self.X, self.rows[rows])
        sums = statistics(F, reader, self.y[rows], self.stack.n_columns, np.float64)
        return replace(sums, gram=self.stack.diagonal(sums.gram))

    def _with_agreement(self, sums: Statistics, nu: float) -> Statistics:
        """B + C and e."""
        M, S = len(self.stack.blocks), self.S
        return replace(sums, gram=sums.gram + 2 * nu * (M * self.stack.diagonal(S) - S))

    @property
    def mean_eigenvalue(self) -> float:
        """The mean eigenvalue of B."""
        return float(np.trace(self.sums.gram)) / self.stack.n_columns

    @property
    def nus(self) -> np.ndarray:
        """Zero, and values about the one at which C weighs as much as B; zero alone if nu does not matter."""
        if self.given_nus is not None:
            return self.given_nus
        per_nu = 2 * (len(self.stack.blocks) - 1) * float(np.trace(self.S))
        return default_nus(float(np.trace(self.sums.gram)), per_nu)

    def solution(self, alpha: float, nu: float) -> np.ndarray:
        """(R,) a."""
        return model_at(alpha, self._with_agreement(self.sums, nu), None, np.float64).coef[:, 0]

    def disagreement(self, a: np.ndarray) -> float:
        """sum_v ||G (f_v - f)||^2 / sum_v ||G f_v||^2, f the mean of the views; NaN where all are constant."""
        total = a @ self.stack.diagonal(self.S) @ a
        return float(1 - a @ self.S @ a / (len(self.stack.blocks) * total)) if total > 0 else float("nan")

    def leave_out(self, folds: Sequence[Fold] | None, alphas: np.ndarray) -> np.ndarray:
        """(m, k, 1) scores of every scored row by the model that never saw its fold, its query for None.

        k counts all pairs of a nu and an alpha: the alphas at the first of `nus`, at the second and so on.
        """
        nus = self.nus
        by_nu = np.full((len(self.rows), len(nus), len(alphas)), np.nan)
        if folds is None:
            batches = self.F.batches()
            folds = [Fold(np.arange(len(self.rows))[b.rows]) for b in batches if b.length > 2 * BATCH_ROWS]
            short = [b for b in batches if b.length <= 2 * BATCH_ROWS]
            self.sums  # noqa: B018  (taken once, before the threads)

            def work(numbers: Sequence[int]) -> None:
                for k in numbers:
                    self._leave_queries_out(short, nus[k], alphas, by_nu[:, k])

            # factorisations side by side
            share(work, range(len(nus)), cost=float(self.stack.n_columns) ** 3, label="factorisations")
        for fold in folds:
            self._leave_fold_out(fold, alphas, by_nu)
        return by_nu.reshape(len(self.rows), -1, 1)

    def _leave_queries_out(self, batches: Sequence[Batch], nu: float, alphas: np.ndarray, scores: np.ndarray) -> None:
        """Query by query in the coordinates of the path: one factorisation, and no other for any query or alpha."""
        F, blocks = self.F, self.stack.blocks
        path, target = primal(self._with_agreement(self.sums, nu)), targets(self.F, self.y)[0]
        V, D = path.basis, path.inverse(alphas)

        def work(share_of_batches: Sequence[Batch]) -> None:
            read = self.stack.reader(self.X, self.rows)()
            for batch in share_of_batches:
                Z = read(batch.rows)
                mean = F.means.centre(Z, batch)
                shape = len(batch.queries), batch.length, -1
                S = (Z @ V).reshape(shape) + (mean @ V)[:, None]
                A = F.scale(Z, batch, mean)
                B = np.concatenate([(A[:, block] @ V[block]).reshape(shape) for block in blocks], axis=1)
                target_rows = np.tile(batch.stack(target), (1, len(blocks), 1))
                held = S @ held_out(B, target_rows, D, path.z, complete=False) / len(blocks)
                scores[batch.rows] = held.reshape(-1, len(alphas))

        share(work, batches, cost=float(F.shape[0]) * V.size, label="held-out queries")

    def _leave_fold_out(self, fold: Fold, alphas: np.ndarray, scores: np.ndarray) -> None:
        """The sums less those of the fold, one factorisation for each nu.

        Part of a query changes the pairs of the rest, whose sums are then taken anew.
        """
        if fold.whole:
            sums = self.sums - self._sums(self.F.restrict(fold.rows), fold.rows)
        else:
            rest = fold.rest(len(self.rows))
            sums = self._sums(self.F.restrict(rest), rest)
        paths = [primal(self._with_agreement(sums, nu)) for nu in self.nus]
        a = np.hstack([path.coef(alpha) for path in paths for alpha in alphas])
        for part in _parts(fold.rows):
            held = self.stack(self.X[self.rows[part]]) @ a / len(self.stack.blocks)
            scores[part] = held.reshape(len(part), len(paths), -1)


def default_nus(loss: float, agreement: float) -> np.ndarray:
    """Zero, and values about the one at which agreement (per nu) weighs as much as the loss; zero alone without any."""
    if agreement <= 0:
        return np.zeros(1)
    return np.concatenate([[0.0], loss / agreement * np.logspace(*NU_RANGE, N_NUS)])


def _widths(views: Sequence[FittedView], X: Matrix) -> list[int]:
    return [X[:1, v.columns].shape[1] if v.points is None else v.points.shape[0] for v in views]


def _blocks(widths: Sequence[int]) -> list[slice]:
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]


def _parts(rows: np.ndarray) -> Iterator[np.ndarray]:
    for i in range(0, len(rows), BATCH_ROWS):
        yield rows[i : i + BATCH_ROWS]


def _whitening(view: FittedView) -> np.ndarray:
    assert view.kernel is not None
    K = view.kernel(view.points, view.points)
    return whitening((K + K.T) / 2, cutoff(len(K)))
