"""Pursuit with several views that agree on unscored rows.

A view of weight w counts w times in the loss; its share in the mean of the views is p = w / sum of w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import checks
from ..core.pairs import PairPreferences
from ..core.statistics import Preferences, targets
from ..system.lazy import cached_property
from ..system.progress import counted
from .base import HeldOutFold
from .dictionary import Columns, Whitened
from .pursuit import (
    DEPENDENT,
    EXHAUSTED,
    NO_GAIN,
    NOTHING,
    PursuitPath,
    _extend_inverse,
    _leave_out,
    difference,
)

MOST_TURNS = 20  # turns that each view takes at most in one step
SAME = 1e-12  # gains that differ by less than this share are equal


@dataclass(frozen=True)
class Agreeing:
    """Pursuit by M views that agree on unscored rows: Z = [D_1 .. D_M] at scored rows, S = D'G'G D at the others."""

    F: Preferences
    Z: np.ndarray  # (m, R)
    blocks: Sequence[slice]  # the columns of each view in Z
    y: np.ndarray  # (m, 1)
    S: np.ndarray  # (R, R)
    nu: float
    backfit: bool = True
    shared: bool = False
    weights: np.ndarray | None = None  # (M,) of the views, their mean 1; None for equal ones

    @cached_property
    def _atoms(self) -> Whitened:
        return Whitened.of(self.F, Columns(self.Z).reader(slice(None)), self.Z.shape[1])

    @property
    def _weight(self) -> np.ndarray:
        """(R,) the weight of each column's view."""
        w = np.ones(len(self.blocks)) if self.weights is None else self.weights
        return np.repeat(w, [block.stop - block.start for block in self.blocks])

    def traces(self) -> tuple[float, float]:
        """Traces of the loss, and of the agreement per unit of nu."""
        return float(self._weight @ self._atoms.squares), 2 * (len(self.blocks) - 1) * float(np.trace(self.S))

    def evaluated(self) -> Agreeing:
        return self

    def released(self) -> Agreeing:
        """The same problem, with cached arrays dropped."""
        return replace(self)

    def path(self, n: int) -> PursuitPath:
        """Models of sizes 1 to n, or fewer; a size counts the atoms of each view."""
        (z, mean), atoms, M = targets(self.F, self.y), self._atoms, len(self.blocks)
        checks.check_target(z)
        G, cross, start = atoms.A.T @ atoms.A, z[:, 0] @ atoms.A, float(z[:, 0] @ z[:, 0])
        H, w = -2 * self.nu * self.S, self._weight
        for block in self.blocks:
            loss, agreement = G[block, block], self.S[block, block]
            H[block, block] = w[block.start] * loss + 2 * self.nu * (M - 1) * agreement
        search: Any = Shared(H, self.blocks) if self.shared else _search(H, self.blocks)
        state, chosen, stopped = _JointPursuit(H, G, cross, w, atoms.zero, search, n), [], ""
        for p in counted(range(n), "pursuit"):
            columns, gain = search.best(state.d, state.e, state.free)
            if gain <= NOTHING * M * start:
                stopped = NO_GAIN if all(state.free[block].any() for block in self.blocks) else EXHAUSTED
                break
            (state.fit_all if self.backfit else state.fit_last)(columns, p)
            chosen += columns
        coefs, k = state.coefs(len(chosen), self.backfit), len(chosen) // M
        a = w[chosen, None] * coefs / M
        errors = start - 2 * cross[chosen] @ a + np.einsum("ip,ip->p", a, G[np.ix_(chosen, chosen)] @ a)
        by_view = coefs.T.reshape(k, k, M).transpose(0, 2, 1)
        indices = np.reshape(chosen, (k, M)).astype(np.intp)
        return PursuitPath(
            indices - [block.start for block in self.blocks],
            by_view,
            mean - np.einsum("pvi,iv->pv", by_view, atoms.means[indices]),
            np.maximum(0, errors),
            start,
            n_skipped=int(state.spanned.sum()),
            n_zero=int(atoms.zero.sum()),
            stopped=stopped,
        )

    def leave_out(self, folds: Sequence[HeldOutFold], sizes: np.ndarray) -> np.ndarray:
        """(m, k, 1) scores of every scored row by models of some sizes that never saw its fold."""
        return _leave_out(self._held_out, folds, sizes, len(self.y))

    def _held_out(self, fold: HeldOutFold, n: int) -> np.ndarray:
        rest, M = fold.rest(len(self.y)), len(self.blocks)
        part = replace(self, F=self.F.restrict(rest), y=self.y[rest])
        if isinstance(self.F, PairPreferences):
            path = part.path(n)
            Z = difference(self.Z.__getitem__, self.F.pair[fold.rows])
        else:
            path = replace(part, Z=self.Z[rest]).path(n)
            Z = self.Z[fold.rows]
        share = np.array([self._weight[block.start] for block in self.blocks]) / M
        held = path.intercepts @ share + np.zeros((len(fold.rows), 1))
        for v, block in enumerate(self.blocks):
            held += share[v] * (Z[:, block][:, path.indices[:, v]] @ path.coefs[:, v].T)
        return held


def _search(H: np.ndarray, blocks: Sequence[slice]) -> Any:
    """The search that a step uses: exhaustive for two views, by turns for more."""
    return Pairs(H, blocks) if len(blocks) == 2 else ByTurns(H, blocks)


class Pairs:
    """All pairs of an atom of the first and one of the second view, in closed form."""

    def __init__(self, H: np.ndarray, blocks: Sequence[slice]):
        self.blocks = blocks
        self.one, self.two = blocks
        self.cross = H[self.one, self.two].copy()  # (N1, N2)

    def best(self, d: np.ndarray, e: np.ndarray, free: np.ndarray) -> tuple[list[int], float]:
        """The columns of the best pair, and its gain."""
        d1, d2, e1, e2, t12 = d[self.one, None], d[self.two], e[self.one, None], e[self.two], self.cross
        det = d1 * d2 - t12**2
        gain = (-2 * e1 * e2) * t12
        gain += d2 * e1**2
        gain += d1 * e2**2
        allowed = (free[self.one, None] & free[self.two]) & (det > DEPENDENT * d1 * d2)
        gain = np.divide(gain, det, out=np.zeros_like(gain), where=allowed)
        i, j = np.unravel_index(int(np.argmax(gain)), gain.shape)
        return [self.one.start + int(i), self.two.start + int(j)], float(gain[i, j])

    def update(self, w: np.ndarray) -> None:
        """Remove what column w spans from the products."""
        self.cross -= np.outer(w[self.one], w[self.two])


class Shared:
    """The same atom number in every view: solves N systems of M equations."""

    def __init__(self, H: np.ndarray, blocks: Sequence[slice]):
        columns = np.stack([np.arange(block.start, block.stop) for block in blocks], axis=1)  # (N, M)
        self.blocks = blocks
        self.columns, self.T = columns, H[columns[:, :, None], columns[:, None]]  # (N, M, M)

    def best(self, d: np.ndarray, e: np.ndarray, free: np.ndarray) -> tuple[list[int], float]:
        """The columns of the best atom number, and its gain."""
        M = self.columns.shape[1]
        scale = np.sqrt(np.where(free, d, 1))[self.columns]
        T = self.T / (scale[:, :, None] * scale[:, None])
        allowed = free[self.columns].all(axis=1)
        allowed &= np.linalg.det(np.where(allowed[:, None, None], T, np.eye(M))) > DEPENDENT
        rhs = e[self.columns] / scale
        x = np.linalg.solve(np.where(allowed[:, None, None], T, np.eye(M)), rhs[:, :, None])[:, :, 0]
        gain = np.where(allowed, np.einsum("nv,nv->n", x, rhs), 0)
        best = int(np.argmax(gain))
        return self.columns[best].tolist(), float(gain[best])

    def update(self, w: np.ndarray) -> None:
        """Remove what column w spans from the products."""
        self.T -= w[self.columns][:, :, None] * w[self.columns][:, None]


class ByTurns:
    """More than two views take turns: each chooses its best function given the others' until no view changes.

    Trying all combinations would cost the number of atoms to the power of views. The turns start once from each view,
    and the best result wins; without coupling (nu = 0) that is the best combination. Given the columns O of the
    other views, a column j adds

        (e_j - T_jO T_OO^-1 e_O)^2 / (T_jj - T_jO T_OO^-1 T_Oj)        to the gain e_O'T_OO^-1 e_O.
    """

    def __init__(self, H: np.ndarray, blocks: Sequence[slice]):
        self.blocks, self.T = blocks, H.copy()

    def best(self, d: np.ndarray, e: np.ndarray, free: np.ndarray) -> tuple[list[int], float]:
        """The columns found, one of each view, and their gain."""
        if not all(free[block].any() for block in self.blocks):
            return [block.start for block in self.blocks], 0.0
        found = [self._by_turns(first, d, e, free) for first in range(len(self.blocks))]
        return max(found, key=lambda columns_and_gain: columns_and_gain[1])

    def _by_turns(self, first: int, d: np.ndarray, e: np.ndarray, free: np.ndarray) -> tuple[list[int], float]:
        """The columns found by turns that start with one view, and their gain."""
        M = len(self.blocks)
        chosen: dict[int, int] = {}
        gain, kept = 0.0, 0  # kept: how many views in a row kept their function
        for turn in range(MOST_TURNS * M):
            view = (first + turn) % M
            column, new = self._best_given(view, [c for v, c in chosen.items() if v != view], d, e, free)
            if column is None:
                return [block.start for block in self.blocks], 0.0
            kept = kept + 1 if view in chosen and new <= gain * (1 + SAME) else 0
            if kept == M:
                break
            if not kept:
                chosen[view], gain = column, new
        return [chosen[v] for v in range(M)], gain

    def _best_given(
        self, view: int, others: list[int], d: np.ndarray, e: np.ndarray, free: np.ndarray
    ) -> tuple[int | None, float]:
        """The best column of a view given the others' columns, and the joint gain; None if these span the view."""
        block = self.blocks[view]
        X = np.linalg.solve(self.T[np.ix_(others, others)], np.column_stack([self.T[others, block], e[others]]))
        new = d[block] - np.einsum("oj,oj->j", self.T[others, block], X[:, :-1])
        rest = e[block] - self.T[others, block].T @ X[:, -1]
        allowed = free[block] & (new > DEPENDENT * d[block])
        if not allowed.any():
            return None, 0.0
        gain = np.divide(rest**2, new, out=np.full_like(new, -1.0), where=allowed)
        j = int(np.argmax(gain))
        return block.start + j, float(gain[j] + e[others] @ X[:, -1])

    def update(self, w: np.ndarray) -> None:
        """Remove what column w spans from the products."""
        self.T -= np.outer(w, w)


class _JointPursuit:
    """Gains and factor of a pursuit on H = C'C; G are the scored products of all views, `cross` those with z."""

    def __init__(
        self, H: np.ndarray, G: np.ndarray, cross: np.ndarray, weight: np.ndarray, zero: np.ndarray, search: Any, n: int
    ):
        self.H, self.G, self.search, self.M = H, G, search, len(search.blocks)
        self.weight = weight  # (R,) of each column's view
        self.e, self.d, self.d0 = weight * cross, np.diag(H).copy(), np.diag(H).copy()
        self.free, self.spanned = ~zero & (self.d0 > 0), np.zeros(len(H), dtype=bool)
        n *= self.M
        self.W, self.s, self.inverse = np.empty((n, len(H))), np.zeros(n), np.zeros((n, n))

    def fit_all(self, columns: list[int], p: int) -> None:
        """Add columns to the factor: w = H_c - W W_c."""
        H, W, s = self.H, self.W, self.s
        for k, c in enumerate(columns, p * self.M):
            w = H[c] - W[:k, c] @ W[:k]
            _extend_inverse(self.inverse, W[:k, c], np.sqrt(w[c]))
            s[k] = self.e[c] / np.sqrt(w[c])
            W[k] = w / np.sqrt(w[c])
            self.e -= s[k] * W[k]
            self.d -= W[k] ** 2
            self.search.update(W[k])
        self._leave(columns, self.d <= DEPENDENT * self.d0, again=False)

    def fit_last(self, columns: list[int], p: int) -> None:
        """The coefficients of the new columns only; the residual is that of the mean of the views."""
        H, d = self.H, self.d0
        a = np.linalg.solve(H[np.ix_(columns, columns)], self.e[columns])
        self.s[p * self.M : (p + 1) * self.M] = a
        self.e -= self.weight * ((self.weight[columns] * a) @ self.G[columns]) / self.M
        same = np.zeros(len(H), dtype=bool)
        for block, c in zip(self.search.blocks, columns, strict=True):
            same[block] = (d * d[c] - H[c] ** 2 <= DEPENDENT * d * d[c])[block]
        self._leave(columns, same, again=True)

    def _leave(self, columns: list[int], spanned: np.ndarray, *, again: bool) -> None:
        spanned = spanned & self.free
        spanned[columns] = False
        self.spanned |= spanned
        self.free &= ~spanned
        self.free[columns] = again

    def coefs(self, n: int, backfit: bool) -> np.ndarray:
        """(k M, k) column p holds the coefficients of size p + 1; n = k M."""
        s = self.s[:n]
        if not backfit:
            return np.triu(np.ones((n // self.M,) * 2)).repeat(self.M, axis=0) * s[:, None]
        return np.cumsum(self.inverse[:n, :n] * s, axis=1)[:, self.M - 1 :: self.M]
