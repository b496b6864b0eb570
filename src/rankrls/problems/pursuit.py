"""Ranking pursuit: choose basis functions one at a time, always the best remaining one; gives models of every size.

Everything happens in the space of F, with A = F D (columns a_g) and z = F y. Let r be the residual; for the part of
each atom that is new, let g be its square and e its product with r. The best atom has the largest gain e^2 / g; with q
its direction,
    s = q'r,   w = A'q,   r <- r - s q,   e <- e - s w       one product with A for each step

plain       q = a / ||a||, and g stays: the update of the paper; an atom may be chosen again
back-fitted q = (a - Q Q'a) / ||.||, g <- g - w^2: after the step all coefficients are those of least squares, and the
            gain is exactly what refitting all of them takes off the loss, so no candidate needs a trial fit.

With A = Q R among the chosen atoms, the coefficients of every size are cumulative sums over the columns of R^-1
diag(s); in the plain pursuit R = diag(||a||).

M views that agree on unscored rows: sum_v ||F (y - f_v)||^2 + nu sum_{v,u} ||G (f_v - f_u)||^2 has the products

    H = C'C = blockdiag(D_v'F'F D_v) + 2 nu (M blockdiag(S) - S),   S = D'G'G D      [Tsivtsivadze13]

of columns C, and everything above works on H, without rows: w = H_c - W W_c is a step of a Cholesky factorisation. A
step takes one atom of each view. With T the new part of H, its gain is e_c' T_cc^-1 e_c, for two views

    (t22 e1^2 - 2 t12 e1 e2 + t11 e2^2) / (t11 t22 - t12^2),     t12 <- t12 - w1 w2'.

In the plain pursuit T = H stays, and the views share the residual of their mean: e <- e - D'F'F D_c a / M, as in the
paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from .. import checks
from ..core.features import Identity
from ..core.pairs import PairPreferences
from ..core.queries import BATCH_ROWS
from ..core.statistics import Preferences, targets
from ..system.lazy import cached_property
from ..system.progress import counted, numbered
from .base import HeldOutFold, careful
from .dictionary import TALL, Atoms, Columns, Compressed, Dictionary, as_atoms
from .primal import Primal

DEPENDENT = 1e-10  # an atom whose new part is at most this share of its square is spanned by the chosen ones
NOTHING = 1e-20  # a gain below this share of the initial loss is rounding
EXHAUSTED = "every remaining atom is a combination of the chosen ones"
NO_GAIN = "no remaining atom would lower the loss"


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
        Zeros without a share of regression.
    errors : ndarray of shape (k,)
        The training loss at each size; with views, that of their mean.
    start : float
        The training loss of the empty model.
    scores : ndarray of shape (k,) or None
        Held-out score at each size; None if nothing was held out.
    score_errors : ndarray of shape (k,) or None
        Standard errors of the scores over held-out queries.
    n_skipped : int
        Atoms skipped because they are duplicates or linear combinations of the chosen ones.
    n_zero : int
        Atoms that are constant within every query, so that ranking cannot use them.
    stopped : str
        Why the path is shorter than requested; empty if it has the requested length.
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
    """The state of a pursuit: residual, gains and factor, in the space of F."""

    def __init__(self, atoms: Atoms, z: np.ndarray, n_steps: int, backfit: bool):
        self.atoms, self.backfit, self.start = atoms, backfit, float(z @ z)
        self.r, self.e, self.g = z.copy(), atoms.products(z), atoms.squares.copy()
        self.free, self.spanned, self.stopped = ~atoms.zero, np.zeros(len(self.g), dtype=bool), ""
        self.Q, self.s, self.inverse = np.empty((n_steps, len(z))), np.zeros(n_steps), np.zeros((n_steps, n_steps))

    def choose(self, p: int) -> int | None:
        """The atom with the largest gain; sets its direction Q[p] and its column of R^-1. None if the path ends."""
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
            self.free[best], self.spanned[best] = False, True  # dependent after all: g had too few digits to show it
        self.stopped = EXHAUSTED
        return None

    def take(self, best: int, p: int) -> None:
        """Take the step along Q[p]."""
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
    """Append the next column of R^-1; that of R is (h, norm)."""
    p = len(h)
    inverse[:p, p] = inverse[:p, :p] @ h / -norm
    inverse[p, p] = 1 / norm


def _orthogonal(a: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q a, and a minus its part in the rows of Q; done twice if little of a remains."""
    h = Q @ a
    rest = a - h @ Q
    if rest @ rest > 0.5 * (a @ a):
        return h, rest
    correction = Q @ rest
    return h + correction, rest - correction @ Q


Follow = Callable[..., PursuitPath]  # (atoms, z, n_steps, banned=) -> path


@dataclass(frozen=True)
class Supervised:
    """Pursuit with one dictionary.

    `rows` gives the training row of each atom, which is held out together with it; None if atoms are never held out.
    With explicit pairs, y holds their margins, and pairs are held out but atoms are not.
    """

    F: Preferences
    dictionary: Dictionary
    y: np.ndarray  # (m, 1)
    backfit: bool = True
    rows: np.ndarray | None = None  # (N,)
    follow: Follow | None = None  # the pursuit to use instead of `pursue`

    @cached_property
    def _columns(self) -> Primal | None:
        """A problem with sums over rows, if the atoms are the columns of X and rows far outnumber them; else None."""
        X = getattr(self.dictionary, "X", None)
        if not isinstance(self.dictionary, Columns) or self.rows is not None or not isinstance(X, np.ndarray):
            return None
        if len(self.y) < TALL * (X.shape[1] + 1) or (self.F.beta > 0 and not self.F.free):
            return None
        return Primal(self.F, Identity(X.shape[1]), X, self.y, np.dtype(np.float64))

    @cached_property
    def _problem(self) -> tuple[Atoms, np.ndarray, float]:
        """A, z and the mean subtracted from the targets."""
        if self._columns is not None:
            checks.check_no_overflow(self._columns.sums)
        few = None if self._columns is None else Compressed.of(self._columns.sums)
        if few is not None:
            return few.atoms, few.z, few.target_mean
        z, mean = targets(self.F, self.y)
        checks.check_target(z)
        return as_atoms(self.F, self.dictionary), z[:, 0], float(mean[0])

    def path(self, n: int, banned: Sequence[int] = ()) -> PursuitPath:
        """Models of sizes 1 to n, fewer if the path ends early."""
        return self._path(*self._problem, n, banned)

    def _path(self, atoms: Atoms, z: np.ndarray, mean: float, n: int, banned: Sequence[int] = ()) -> PursuitPath:
        if self.follow is not None:
            path = self.follow(atoms, z, n, banned=banned)
        else:
            path = pursue(atoms, z, n, backfit=self.backfit, banned=banned)
        return replace(path, intercepts=path.intercepts + mean)

    def alternatives(self, path: PursuitPath, n: int, k: int, tolerance: float) -> list[PursuitPath]:
        """Up to k other paths of n steps with an error of at most 1 + tolerance times that of `path`, best first.

        Each is a pursuit with one atom of the model forbidden, or more if that does not give enough paths.
        """
        limit = (1 + tolerance) * path.errors[n - 1] + NOTHING * path.start
        seen, found = {_members(path, n)}, list[PursuitPath]()
        heap: list[tuple] = []
        order = count()  # breaks ties between paths of equal error

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
        """The same problem with the values of its atoms computed, if they fit; for several paths over the same rows."""
        return replace(self, dictionary=self.dictionary.evaluated())

    def released(self) -> Supervised:
        """The same problem, with cached arrays dropped."""
        return replace(self)

    def leave_out(self, folds: Sequence[HeldOutFold], sizes: np.ndarray) -> np.ndarray:
        """(m, k, 1) scores of every row, for each size, by models that saw neither its fold nor atoms at its rows."""
        return _leave_out(self._held_out, folds, sizes, len(self.y))

    def paths_without(self, folds: Sequence[HeldOutFold], sizes: np.ndarray) -> HeldOutPaths:
        """The same for disjoint folds, without keeping the scores of all sizes."""
        n = int(np.max(sizes))
        paths = [self._path_without(fold, n) for fold in numbered(folds, "fold")]
        return HeldOutPaths(self.dictionary, folds, paths, sizes, len(self.y))

    def _held_out(self, fold: HeldOutFold, n: int) -> np.ndarray:
        """(l, k) scores of a fold, for each size, by a pursuit without its rows and their atoms."""
        if isinstance(self.F, PairPreferences):
            return self._held_out_pairs(self.F, fold, n)
        return _path_scores(self.dictionary, fold.rows, self._path_without(fold, n))

    def _path_without(self, fold: HeldOutFold, n: int) -> PursuitPath:
        """A pursuit without the rows of a fold and their atoms."""
        path = self._path_from_sums(fold, n)
        if path is not None:
            return path
        atoms, rest = np.arange(self.dictionary.n_atoms), fold.rest(len(self.y))
        if self.rows is not None:
            atoms = atoms[~np.isin(self.rows, fold.rows)]
        part = Supervised(self.F.restrict(rest), self.dictionary.restrict(rest, atoms), self.y[rest], self.backfit)
        path = replace(part, follow=self.follow).path(min(n, len(atoms)))
        return replace(path, indices=atoms[path.indices])

    def _held_out_pairs(self, F: PairPreferences, fold: HeldOutFold, n: int) -> np.ndarray:
        """Differences of the scores of the fold's pairs, by models of the other pairs."""
        rest = fold.rest(len(self.y))
        path = replace(self, F=F.restrict(rest), y=self.y[rest]).path(n)
        values = partial(self.dictionary.values, atoms=path.indices[:, 0])
        return difference(values, F.pair[fold.rows]) @ path.coefs[:, 0].T

    def _path_from_sums(self, fold: HeldOutFold, n: int) -> PursuitPath | None:
        """The path without whole queries, from the sums minus theirs; None if the sums have lost too many digits."""
        if self._columns is None or not fold.whole:
            return None
        if careful([fold], self.F, self.y) != [fold]:
            return None
        few = Compressed.of(self._columns.sums - self._columns.restrict(fold.rows).sums)
        n_atoms = self.dictionary.n_atoms
        return None if few is None else self._path(few.atoms, few.z, few.target_mean, min(n, n_atoms))


@dataclass(frozen=True)
class HeldOutPaths:
    """Held-out scores of every size, computed for one fold or for one size at a time.

    All of them together, a number for each row and size, can take more memory than the rows.
    """

    dictionary: Dictionary
    folds: Sequence[HeldOutFold]  # disjoint
    paths: Sequence[PursuitPath]  # without each fold
    sizes: np.ndarray  # (k,)
    n_rows: int

    def of_fold(self, number: int) -> np.ndarray:
        """(l, k) the scores of a fold at every size."""
        return self._scores(number, self.sizes)

    def __getitem__(self, index: tuple[slice, int]) -> np.ndarray:
        """(m, 1) the scores at one size, `[:, k]` as of an array; NaN outside the folds."""
        scores = np.full((self.n_rows, 1), np.nan)
        for number, fold in enumerate(self.folds):
            scores[fold.rows] = self._scores(number, self.sizes[index[1]][None])
        return scores

    def _scores(self, number: int, sizes: np.ndarray) -> np.ndarray:
        return _path_scores(self.dictionary, self.folds[number].rows, self.paths[number], sizes)


def _path_scores(
    dictionary: Dictionary, rows: np.ndarray, path: PursuitPath, sizes: np.ndarray | None = None
) -> np.ndarray:
    """(l, k) scores of rows by the models of these sizes, or of every size, on a path.

    A path that ends early keeps its last model, and an empty one scores all rows the same.
    """
    if sizes is not None and not len(path):
        return np.zeros((len(rows), len(sizes)))
    last = slice(None) if sizes is None else np.minimum(sizes.astype(int), len(path)) - 1
    coefs, intercepts, atoms = path.coefs[last, 0], path.intercepts[last, 0], path.indices[:, 0]
    used = slice(0, int(np.max(np.flatnonzero(np.any(coefs != 0, axis=0)), initial=-1)) + 1)
    scores = np.empty((len(rows), len(coefs)))
    for i in range(0, len(rows), BATCH_ROWS):
        part = rows[i : i + BATCH_ROWS]
        scores[i : i + BATCH_ROWS] = dictionary.values(part, atoms[used]) @ coefs[:, used].T + intercepts
    return scores


def difference(values: Callable[[np.ndarray], np.ndarray], pairs: np.ndarray) -> np.ndarray:
    """(p, k) values of the first item of each pair minus those of the second."""
    return values(pairs[:, 0]) - values(pairs[:, 1])


def _members(path: PursuitPath, n: int) -> frozenset[int]:
    return frozenset(path.indices[:n, 0].tolist())


def _leave_out(held_out: Any, folds: Sequence[HeldOutFold], sizes: np.ndarray, m: int) -> np.ndarray:
    """Scores at each size; a path that ends early keeps its last model, and an empty one scores all rows the same."""
    scores = np.full((m, len(sizes), 1), np.nan)
    for fold in numbered(folds, "fold"):
        held = held_out(fold, int(np.max(sizes)))
        if held.shape[1]:
            scores[fold.rows, :, 0] = held[:, np.minimum(sizes.astype(int), held.shape[1]) - 1]
        else:
            scores[fold.rows] = 0.0
    return scores
