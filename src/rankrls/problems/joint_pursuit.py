"""Pursuit of several views that agree on unscored rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core.preferences import QueryPreferences
from ..core.statistics import targets
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
)


@dataclass(frozen=True)
class Agreeing:
    """Pursuit by M views that agree on unscored rows: Z = [D_1 .. D_M] at scored rows, S = D'G'G D at the others."""

    F: QueryPreferences
    Z: np.ndarray  # (m, R)
    blocks: Sequence[slice]  # the columns of each view in Z
    y: np.ndarray  # (m, 1)
    S: np.ndarray  # (R, R)
    nu: float
    backfit: bool = True
    shared: bool = False

    @cached_property
    def _atoms(self) -> Whitened:
        return Whitened.of(self.F, Columns(self.Z).reader(slice(None)), self.Z.shape[1])

    def traces(self) -> tuple[float, float]:
        """Of the loss, and of the agreement for each unit of nu."""
        return float(self._atoms.squares.sum()), 2 * (len(self.blocks) - 1) * float(np.trace(self.S))

    def evaluated(self) -> Agreeing:
        return self

    def released(self) -> Agreeing:
        """The same without what it holds in memory."""
        return replace(self)

    def path(self, n: int) -> PursuitPath:
        """Models of sizes 1 to n, or fewer; a size counts the atoms of each view."""
        z, mean = targets(self.F, self.y)
        atoms, M = self._atoms, len(self.blocks)
        G, cross, start = atoms.A.T @ atoms.A, z[:, 0] @ atoms.A, float(z[:, 0] @ z[:, 0])
        H = -2 * self.nu * self.S
        for block in self.blocks:
            H[block, block] = G[block, block] + 2 * self.nu * (M - 1) * self.S[block, block]
        search = Shared(H, self.blocks) if self.shared or M != 2 else Pairs(H, self.blocks)
        state, chosen, stopped = _JointPursuit(H, G, cross, atoms.zero, search, n), [], ""
        for p in counted(range(n), "pursuit"):
            columns, gain = search.best(state.d, state.e, state.free)
            if gain <= NOTHING * M * start:
                stopped = NO_GAIN if all(state.free[block].any() for block in self.blocks) else EXHAUSTED
                break
            (state.fit_all if self.backfit else state.fit_last)(columns, p)
            chosen += columns
        coefs, k = state.coefs(len(chosen), self.backfit), len(chosen) // M
        a = coefs / M
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
        rest = fold.rest(len(self.y))
        path = replace(self, F=self.F.restrict(rest), Z=self.Z[rest], y=self.y[rest]).path(n)
        held = path.intercepts.sum(axis=1) + np.zeros((len(fold.rows), 1))
        for v, block in enumerate(self.blocks):
            held += self.Z[fold.rows][:, block][:, path.indices[:, v]] @ path.coefs[:, v].T
        return held / len(self.blocks)


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
        """What is spanned by a column leaves the products."""
        self.cross -= np.outer(w[self.one], w[self.two])


class Shared:
    """The same number in every view: N systems of M equations."""

    def __init__(self, H: np.ndarray, blocks: Sequence[slice]):
        columns = np.stack([np.arange(block.start, block.stop) for block in blocks], axis=1)  # (N, M)
        self.blocks = blocks
        self.columns, self.T = columns, H[columns[:, :, None], columns[:, None]]  # (N, M, M)

    def best(self, d: np.ndarray, e: np.ndarray, free: np.ndarray) -> tuple[list[int], float]:
        """The columns of the best number, and its gain."""
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
        """What is spanned by a column leaves the products."""
        self.T -= w[self.columns][:, :, None] * w[self.columns][:, None]


class _JointPursuit:
    """Gains and factor of a pursuit on H = C'C; G are the scored products of all views, cross those with z."""

    def __init__(self, H: np.ndarray, G: np.ndarray, cross: np.ndarray, zero: np.ndarray, search: Any, n_steps: int):
        self.H, self.G, self.search, self.M = H, G, search, len(search.blocks)
        self.e, self.d, self.d0 = cross.copy(), np.diag(H).copy(), np.diag(H).copy()
        self.free, self.spanned = ~zero & (self.d0 > 0), np.zeros(len(H), dtype=bool)
        n = n_steps * self.M
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
        self.e -= a @ self.G[columns] / self.M
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
