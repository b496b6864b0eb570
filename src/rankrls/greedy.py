"""Ranking pursuit: basis functions chosen one after the other, each the best there is, and the whole path of sizes.

Supervised, in the space of F with A = F D (columns a_g) and z = F y. Let r be the residual, and g and e the squares
a_g'a_g and products a_g'r of what is new in each atom. The best one has the largest gain e^2 / g; with q its direction,

    s = q'r,   w = A'q,   r <- r - s q,   e <- e - s w       one product with A for each step

plain       q = a / ||a||, and g stays: the update of the paper; an atom may come again
back-fitted q = (a - Q Q'a) / ||.||, g <- g - w^2: after the step all coefficients are those of least squares, and
            the gain is what the loss falls by when all of them are fitted anew: no candidate has to be tried.

With A = Q R among those chosen, coefficients of every size are cumulative sums over the columns of R^-1 diag(s); plain,
R = diag(||a||).

M views that agree on unscored rows: sum_v ||F (y - f_v)||^2 + nu sum_{v,u} ||G (f_v - f_u)||^2 has the products

    H = C'C = blockdiag(D_v'F'F D_v) + 2 nu (M blockdiag(S) - S),   S = D'G'G D      [Tsivtsivadze13]

of columns C, and all that stands above is done on H, without rows: w = H_c - W W_c is a step of a Cholesky factor. A
step takes one atom of each view; with T what is new in H its gain is e_c' T_cc^-1 e_c, for two views in closed form:

    (t22 e1^2 - 2 t12 e1 e2 + t11 e2^2) / (t11 t22 - t12^2),     t12 <- t12 - w1 w2'.

Plain, T = H stays, and the views share the residual of their mean: e <- e - D'F'F D_c a / M, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from .atoms import Atoms, Columns, Dictionary, Whitened, as_atoms
from .parallel import counted
from .preferences import QueryPreferences
from .problems import Fold
from .statistics import targets

DEPENDENT = 1e-10  # an atom of which no more than this share (of its square) is new is spanned by those chosen
NOTHING = 1e-20  # a gain below this share of the loss at the start is rounding

EXHAUSTED = "no atom is left that those chosen do not span"
NO_GAIN = "no atom is left that would make the loss smaller"


@dataclass(frozen=True)
class PursuitPath:
    """The models of every size up to k.

    Attributes
    ----------
    indices : ndarray of shape (k,), or (k, n_views)
        The atom chosen at each step: the number of the row or point a kernel is centred at, or of the column.
    coefs : ndarray of shape (k, k), or (k, n_views, k)
        `coefs[p]` are the coefficients of the model of size p + 1 on the first p + 1 atoms, zeros after them.
    intercepts : ndarray of shape (k,), or (k, n_views)
        Zeros where the loss has no share of regression.
    errors : ndarray of shape (k,)
        The training loss of each size, of the mean of the views.
    start : float
        The training loss of no function at all.
    scores : ndarray of shape (k,) or None
        Held-out score of each size; None if nothing was held out.
    score_errors : ndarray of shape (k,) or None
        Standard errors of the scores over held-out queries.
    n_skipped : int
        Atoms left aside as duplicates, or linear combinations, of those chosen.
    n_zero : int
        Atoms that are constant within every query, which ranking cannot see.
    stopped : str
        Why the path is shorter than was asked; empty if it is not.
    """

    indices: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    errors: np.ndarray
    start: float
    scores: np.ndarray | None = None
    score_errors: np.ndarray | None = None
    n_skipped: int = 0
    n_zero: int = 0
    stopped: str = ""

    def __len__(self) -> int:
        return len(self.errors)


# ---------------------------------------------------------------- one view


def pursue(
    atoms: Atoms, z: np.ndarray, n_steps: int, *, backfit: bool = True, banned: Sequence[int] = ()
) -> PursuitPath:
    """The path of ||z - A c||^2 by at most `n_steps` steps: one product with A for each."""
    state = _Pursuit(atoms, z, n_steps, backfit)
    state.free[list(banned)] = False
    chosen: list[int] = []
    errors = []
    for p in counted(range(n_steps), "pursuit"):
        best = state.choose(p)
        if best is None:
            break
        state.take(best, p)
        chosen.append(best)
        errors.append(float(state.r @ state.r))
    coefs = state.coefs(len(chosen))
    return PursuitPath(
        np.array(chosen, dtype=np.intp)[:, None],
        coefs[:, None],
        -(coefs @ atoms.means[chosen])[:, None],
        np.array(errors),
        state.start,
        n_skipped=int(state.spanned.sum()),
        n_zero=int(atoms.zero.sum()),
        stopped=state.stopped,
    )


class _Pursuit:
    """Residual, gains and factor of a pursuit in the rows."""

    def __init__(self, atoms: Atoms, z: np.ndarray, n_steps: int, backfit: bool):
        self.atoms, self.backfit, self.start = atoms, backfit, float(z @ z)
        self.r, self.e, self.g = z.copy(), atoms.products(z), atoms.squares.copy()
        self.free, self.spanned, self.stopped = ~atoms.zero, np.zeros(len(self.g), dtype=bool), ""
        self.Q, self.s, self.inverse = np.empty((n_steps, len(z))), np.zeros(n_steps), np.zeros((n_steps, n_steps))

    def choose(self, p: int) -> int | None:
        """The atom of the largest gain, its direction in Q[p] and its column of R^-1; None at the end."""
        while self.free.any():
            gain = np.divide(self.e**2, self.g, out=np.zeros_like(self.g), where=self.free)
            best = int(np.argmax(gain))
            if gain[best] <= NOTHING * self.start:
                self.stopped = NO_GAIN
                return None
            h, a = np.zeros(p), self.atoms.column(best)
            if self.backfit:
                h, a = _orthogonal(a, self.Q[:p])
            norm = np.sqrt(a @ a)
            if norm**2 > DEPENDENT * self.atoms.squares[best]:
                self.Q[p] = a / norm
                _extend_inverse(self.inverse, h, norm)
                return best
            self.free[best], self.spanned[best] = False, True  # g had too few digits left to tell
        self.stopped = EXHAUSTED
        return None

    def take(self, best: int, p: int) -> None:
        """The step along Q[p]."""
        q, squares = self.Q[p], self.atoms.squares
        s = self.s[p] = q @ self.r
        w = self.atoms.products(q)
        self.r -= s * q
        self.e -= s * w
        new = self.g - w**2
        if self.backfit:
            self.g = new
        spanned = self.free & (new <= DEPENDENT * squares)
        spanned[best] = False
        self.spanned |= spanned
        self.free &= ~spanned
        self.free[best] = not self.backfit

    def coefs(self, k: int) -> np.ndarray:
        """(k, k) row p holds the coefficients of size p + 1."""
        return np.cumsum(self.inverse[:k, :k] * self.s[:k], axis=1).T


def _extend_inverse(inverse: np.ndarray, h: np.ndarray, norm: float) -> None:
    """The next column of R^-1, that of R being (h, norm)."""
    p = len(h)
    inverse[:p, p] = inverse[:p, :p] @ h / -norm
    inverse[p, p] = 1 / norm


def _orthogonal(a: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q a, and a less its part in the rows of Q; once more if little of it is left, and twice is enough."""
    h = Q @ a
    rest = a - h @ Q
    if rest @ rest > 0.5 * (a @ a):
        return h, rest
    correction = Q @ rest
    return h + correction, rest - correction @ Q


@dataclass(frozen=True)
class Supervised:
    """Pursuit of y by one dictionary; `rows` are the training rows atoms are held out with, None if they stay."""

    F: QueryPreferences
    dictionary: Dictionary
    y: np.ndarray  # (m, 1)
    backfit: bool = True
    rows: np.ndarray | None = None  # (N,)

    @cached_property
    def _atoms(self) -> Atoms:
        return as_atoms(self.F, self.dictionary)

    def path(self, n: int, banned: Sequence[int] = ()) -> PursuitPath:
        """Models of sizes 1 to n, or fewer."""
        z, mean = targets(self.F, self.y)
        path = pursue(self._atoms, z[:, 0], n, backfit=self.backfit, banned=banned)
        return replace(path, intercepts=path.intercepts + mean)

    def alternatives(self, path: PursuitPath, n: int, k: int, tolerance: float) -> list[PursuitPath]:
        """At most k other paths of n steps to an error of at most 1 + tolerance times that of this one, the best first.

        Each is the pursuit with an atom of the model forbidden; with further atoms if these are not enough.
        """
        limit = (1 + tolerance) * path.errors[n - 1] + NOTHING * path.start
        seen, found = {_members(path, n)}, list[PursuitPath]()
        heap: list[tuple] = []
        order = count()  # tells apart paths of equal error

        def expand(one: PursuitPath, banned: frozenset[int]) -> None:
            for atom in dict.fromkeys(one.indices[:n, 0].tolist()):
                without = banned | {atom}
                other = self.path(n, sorted(without))
                if len(other) == n and other.errors[-1] <= limit and _members(other, n) not in seen:
                    seen.add(_members(other, n))
                    heappush(heap, (other.errors[-1], next(order), other, without))

        expand(path, frozenset())
        while heap and len(found) < k:
            _, _, other, banned = heappop(heap)
            found.append(other)
            if len(found) + len(heap) < k:
                expand(other, banned)
        return found

    def evaluated(self) -> Supervised:
        """The same with the values of its atoms at hand, where they fit; for several paths over the same rows."""
        return replace(self, dictionary=self.dictionary.evaluated())

    def released(self) -> Supervised:
        """The same without what it holds in memory."""
        return replace(self)

    def leave_out(self, folds: Sequence[Fold], sizes: np.ndarray) -> np.ndarray:
        """(m, k, 1) scores of every row by models of some sizes that never saw its fold, nor atoms at its rows."""
        return _leave_out(self._held_out, folds, sizes, len(self.y))

    def _held_out(self, fold: Fold, n: int) -> np.ndarray:
        rest = fold.rest(len(self.y))
        atoms = np.arange(self.dictionary.n_atoms)
        if self.rows is not None:
            atoms = atoms[~np.isin(self.rows, fold.rows)]
        part = Supervised(self.F.restrict(rest), self.dictionary.restrict(rest, atoms), self.y[rest], self.backfit)
        path = part.path(min(n, len(atoms)))
        D = self.dictionary.values(fold.rows, atoms[path.indices[:, 0]])
        return D @ path.coefs[:, 0].T + path.intercepts[:, 0]


def _members(path: PursuitPath, n: int) -> frozenset[int]:
    return frozenset(path.indices[:n, 0].tolist())


def _leave_out(held_out: Any, folds: Sequence[Fold], sizes: np.ndarray, m: int) -> np.ndarray:
    """Scores by size; a path that ends early keeps its last model, and one without any step scores all alike."""
    scores = np.full((m, len(sizes), 1), np.nan)
    for fold in counted(folds, "folds"):
        held = held_out(fold, int(np.max(sizes)))
        if held.shape[1]:
            scores[fold.rows, :, 0] = held[:, np.minimum(sizes.astype(int), held.shape[1]) - 1]
        else:
            scores[fold.rows] = 0.0
    return scores


# ---------------------------------------------------------------- several views


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

    def leave_out(self, folds: Sequence[Fold], sizes: np.ndarray) -> np.ndarray:
        """(m, k, 1) scores of every scored row by models of some sizes that never saw its fold."""
        return _leave_out(self._held_out, folds, sizes, len(self.y))

    def _held_out(self, fold: Fold, n: int) -> np.ndarray:
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
