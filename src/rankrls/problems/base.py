"""A learning problem: preferences, features and targets, to be solved for any alpha and held out exactly.

`Primal` works from the sums of `statistics` in the feature space, `Dual` from a kernel matrix, `Iterative` from
products with a sparse matrix. Each has

    model(alpha)                coefficients and intercept
    leave_out(folds, alphas)    (m, k, t) scores of every row by the model that never saw its fold; NaN outside folds
    mean_eigenvalue             of the loss, the natural unit of alpha

A fold is a union of whole queries; `folds=None` leaves out each query in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ..core import fused
from ..core.pairs import PairPreferences
from ..core.preferences import QueryPreferences
from ..core.queries import BATCH_ROWS, Queries
from ..core.statistics import Preferences, Statistics
from ..system.types import Matrix


@dataclass(frozen=True)
class Model:
    """f(x) = phi(x)' coef + intercept."""

    coef: np.ndarray  # (p, t)
    intercept: np.ndarray  # (t,)

    @classmethod
    def of(cls, coef: np.ndarray, sums: Statistics) -> Model:
        """The model with the intercept that the means of the data give."""
        return cls(coef, sums.target_mean - sums.mean @ coef)


@dataclass(frozen=True)
class HeldOutFold:
    """Rows left out together: whole queries, unless `whole` is false.

    While they are held out, alpha is multiplied by `factor` (1 except for items of a single query).
    """

    rows: np.ndarray
    factor: float = 1.0
    whole: bool = True

    def rest(self, m: int) -> np.ndarray:
        """The rows of 0..m - 1 that are not in the fold."""
        stay = np.ones(m, dtype=bool)
        stay[self.rows] = False
        return np.flatnonzero(stay)


CANCELLED = {4: 2e-5, 8: 1e-12}  # by itemsize: a sum smaller than this share of its terms is rounding
LABELS = 1e8  # a fold with this many times the squared labels of the rest leaves it 12 of 16 digits
HEAVY = 0.5  # subtracting a fold with more than this share of the loss costs the rest digits


def heavy_queries(F: QueryPreferences, y: np.ndarray) -> list[HeldOutFold]:
    """Queries that outweigh all others together, as folds to be refitted."""
    mass = (F.S / F.S.max(initial=0)) * (F.between / F.between.max(initial=0)) ** 2 if F.between.any() else F.S
    heavy = (mass > HEAVY * mass.sum()) | (HEAVY * F.weight < F.S) | _outlabels(F, y, F.queries.codes)
    return (
        [HeldOutFold(F.queries.rows(int(q)), whole=False) for q in np.flatnonzero(heavy)] if len(F.queries) > 1 else []
    )


def unsolved(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Queries with NaN among their scores (m, k, t), to be refitted: each alone determines some direction."""
    return np.unique(codes[np.isnan(scores).any(axis=(1, 2))]) if np.isnan(scores.sum()) else codes[:0]


def _outlabels(F: QueryPreferences, y: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The part, if any, whose labels vary so much more than all others that held-out scores would be its rounding.

    `codes` (m,) are the parts of the rows; those of rows in no part are negative.
    """
    n = int(codes.max(initial=-1)) + 1
    found = np.zeros(n, dtype=bool)
    for centre in _centres(y, codes) if F.free else (0.0,):
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.abs(fused.times(F, y - centre))
            z /= np.maximum(z.max(axis=0, initial=0), np.finfo(np.float64).tiny)
        for column in z.T:
            mass = np.bincount(codes[codes >= 0], weights=column[codes >= 0] ** 2, minlength=n)
            most = int(np.argmax(mass)) if n else 0
            rest = np.delete(mass, most).sum() + np.sum(column[codes < 0] ** 2) if n else 0.0
            if LABELS * rest < mass[most] and column[codes != most].any():  # whose squares may vanish
                found[most] = True
    return found


def _centres(y: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """(2, t) the two middle means of parts: at least one is not that of the part that is far from all others."""
    part, count = np.unique(codes, return_inverse=True, return_counts=True)[1:]
    means = np.sort([np.bincount(part, weights=column / count[part]) for column in y.T], axis=1)
    return means[:, [(len(count) - 1) // 2, len(count) // 2]].T


def careful(folds: Sequence[HeldOutFold], F: Preferences, y: np.ndarray) -> list[HeldOutFold]:
    """The folds, with those that outweigh the rest of the rows (or pairs) marked for refitting."""
    if isinstance(F, PairPreferences):
        return [replace(fold, whole=np.sum(F.s[fold.rows] ** 2) <= HEAVY * np.sum(F.s**2)) for fold in folds]
    codes = np.full(F.shape[0], -1)
    for number, fold in enumerate(folds):
        codes[fold.rows] = number
    labels = np.zeros(len(folds), dtype=bool)
    labels[: codes.max(initial=-1) + 1] = _outlabels(F, y, codes)
    u = np.ones(F.shape[0]) if F.u is None else F.u
    mass = u / u.max() * (F.between / (F.between.max(initial=0) or 1.0))[F.queries.codes] ** 2
    heavy = [max(mass[f.rows].sum() / mass.sum(), u[f.rows].sum() / F.weight) > HEAVY for f in folds]
    return [replace(f, whole=False) if far else f for f, far in zip(folds, labels | heavy, strict=True)]


def without_rounding(
    C: np.ndarray, c: np.ndarray, d: np.ndarray, alphas: np.ndarray, labels: np.ndarray | None = None
) -> None:
    """Set held-out solutions to zero, in place, where they are as small as the rounding of the full solution.

    C (g, r, k t) are the solutions without each of g folds, c (r, k t) that of all rows, in the coordinates of a path
    with eigenvalues d. If a fold leaves nothing to learn from, its scores should be zero, not random. `labels` are the
    targets (g, b, t) of the folds: B' labels, with B'B at most d, is subtracted and rounds too.
    """
    root = np.sqrt(np.where(np.isfinite(d), d, 0.0)).astype(C.dtype)[:, None]  # ||f|| in the loss is ||sqrt(d) c||
    unit = np.abs(c).max(axis=0, initial=0)  # the squares of tiny values would underflow
    unit = np.where(unit > 0, unit, 1)
    limit = _rounding(C.dtype, d, alphas, c.shape[1]) * np.linalg.norm(root * (c / unit), axis=0)
    if labels is not None:
        share = np.max(np.where(np.isfinite(d), d, 0.0)[:, None] / (d[:, None] + alphas), axis=0, initial=0.0)
        own = np.linalg.norm(labels, axis=1)[:, None] * (4 * np.finfo(C.dtype).eps * share)[:, None]  # (g, k, t)
        limit = np.maximum(limit, own.reshape(len(C), -1) / unit)
    largest = np.argmax(root * np.abs(c), axis=0), np.arange(c.shape[1])  # its largest entry usually settles it
    if np.all(root[largest[0], 0] * np.abs(C[:, *largest]) > limit * unit):
        return
    C *= (np.linalg.norm(root * (C / unit), axis=1) > limit)[:, None]


def _rounding(dtype: np.dtype, d: np.ndarray, alphas: np.ndarray, columns: int) -> np.ndarray:
    """(columns,) the share of a held-out solution that may be rounding, for each alpha and target."""
    smallest = np.where(alphas > 0, alphas, np.min(d, initial=np.inf))  # alpha = 0 is only used where d > 0
    largest = np.max(d, where=np.isfinite(d), initial=0.0)
    eps, most = float(np.finfo(dtype).eps), 1e-6 if dtype == np.float64 else 1e-3
    return np.minimum(100 * eps * np.repeat(1 + largest / smallest, columns // len(alphas)), most)


def held_out_scores(
    V: np.ndarray, C: np.ndarray, c: np.ndarray, d: np.ndarray, alphas: np.ndarray, mean: np.ndarray | None = None
) -> np.ndarray:
    """(g, l, k t) scores V C of g folds, with scores that are equal up to rounding made equal.

    V (g, l, r) are the rows, perhaps about a mean (g, r); C, c, d and alphas are as in `without_rounding`. A fold that
    shares no direction with the other rows is scored by sums that cancel, and rounding would rank it by its own labels:
    all its rows are tied instead, at the score of the shortest, which rounds least. In single precision small alphas
    hide this, so the largest alpha decides.
    """
    scores, limit = V @ C, 2 * _rounding(C.dtype, d, alphas, c.shape[1]) + CANCELLED[C.itemsize]
    low, top = _extreme(scores, np.minimum), _extreme(scores, np.maximum)
    width, largest = (top - low)[:, 0], np.maximum(V.max(axis=(1, 2), initial=0), -V.min(axis=(1, 2), initial=0))
    used = np.einsum("grc->gc", np.abs(C)) + np.abs(c).sum(axis=0)
    unclear = width <= 2 * limit * largest[:, None] * used
    for fold in np.flatnonzero(unclear.any(axis=1)):
        size = np.abs(V[fold] - V[fold].mean(axis=0)) @ (np.abs(C[fold]) + np.abs(c))
        tied = (width[fold] <= limit * size.max(axis=0)).reshape(len(alphas), -1)
        if C.dtype == np.float32:
            tied |= tied[np.argmax(alphas)]
        rows = V[fold] if mean is None else V[fold] + mean[fold]
        surest = np.argmin(np.abs(rows).max(axis=1, initial=0))  # rounding is proportional to the length of a row
        scores[fold] = np.where(tied.ravel(), scores[fold, surest], scores[fold])
        low[fold], top[fold] = scores[fold].min(axis=0), scores[fold].max(axis=0)
    return in_steps(scores, np.maximum(top, -low))


def silenced(
    scores: np.ndarray, X: Matrix, y: np.ndarray, folds: Sequence[HeldOutFold] | None, F: QueryPreferences
) -> np.ndarray:
    """Make held-out scores (m, k, t) constant, in place, where the remaining labels or rows are all equal.

    Nothing can be learned then, and scores would be rounding. With a free intercept they are the mean label.
    """
    queries, free, m = F.queries, F.beta > 0, len(y)
    n = len(queries)
    some_row = np.empty(n, dtype=np.intp)
    some_row[queries.codes] = np.arange(m)
    other = np.any(y != y[some_row[queries.codes]], axis=1)
    labels = np.bincount(queries.codes[other], minlength=n) > 0  # queries with two different labels
    rows = _varying(X, queries)
    if folds is None and labels.sum() > 1 and rows.sum() > 1:
        return scores
    for fold in [HeldOutFold(queries.rows(q)) for q in range(n)] if folds is None else folds:
        inside = np.zeros(n, dtype=bool)
        inside[queries.codes[fold.rows]] = True
        if not fold.whole or inside.all() or (labels[~inside].any() and rows[~inside].any()):
            continue
        rest, first = fold.rest(m), some_row[~inside]
        tied = not labels[~inside].any() and (not free or bool(np.all(y[first] == y[first[0]])))
        if free and tied:
            scores[fold.rows] = y[first[0]]
        elif free and not _differ(X, rest):
            scores[fold.rows] = np.average(y[rest], axis=0, weights=None if F.u is None else F.u[rest] / F.weight)
        elif not free:
            scores[fold.rows] = 0.0
    return scores


def _varying(X: Matrix, queries: Queries) -> np.ndarray:
    """(q,) whether the rows of a query differ; stops looking once two do, and reports True for the rest."""
    varies = np.ones(len(queries), dtype=bool)
    found = 0
    for q in range(len(varies)):
        varies[q] = _differ(X, queries.rows(q))
        found += varies[q]
        if found > 1:
            break
    return varies


def _differ(X: Matrix, rows: np.ndarray) -> bool:
    """True if some rows of X differ."""
    rows = np.arange(X.shape[0])[rows]
    for i in range(1, len(rows), 1024):
        part = X[np.append(rows[0], rows[i : i + 1024])]
        if sparse.issparse(part):  # never made dense: rows may be very wide
            part.eliminate_zeros()
            part.sort_indices()
            counts = np.diff(part.indptr)
            if np.any(counts != counts[0]):
                return True
            part = np.hstack([v.reshape(len(counts), -1) for v in (part.indices, part.data)])
        if np.any(part[1:] != part[0]):
            return True
    return False


def tied_where_equal(scores: np.ndarray) -> np.ndarray:
    """Round scores (g, l, k) of g queries to drop their last bits, in which equal rows may differ."""
    return in_steps(scores, _extreme(np.abs(scores), np.maximum))


def _extreme(scores: np.ndarray, larger: np.ufunc) -> np.ndarray:
    """(g, 1, k) the maximum or minimum of scores (g, l, k) over l; by halves, as NumPy is slow along a middle axis."""
    found = scores if scores.shape[1] > 1 else scores.copy()
    while found.shape[1] > 1:
        half, odd = found.shape[1] // 2, found[:, -1:] if found.shape[1] % 2 else found[:, :1]
        found = larger(found[:, :half], found[:, half : 2 * half])
        larger(found[:, :1], odd, out=found[:, :1])
    return found


def scores_by_query(
    read: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, codes: np.ndarray, coef: np.ndarray
) -> np.ndarray:
    """(l, k) read(rows) @ coef, rounded as in `tied_where_equal`; codes (l,) are the queries of the rows.

    Each query is read relative to one of its rows, so that scores far from zero keep their differences.
    """
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    group = np.empty(len(rows), dtype=np.intp)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
    origin = read(rows[order[starts]])
    origin = 0 * origin if sparse.issparse(origin) else np.array(origin)
    scores = np.empty((len(rows), coef.shape[1]), dtype=np.result_type(origin, coef))
    for i in range(0, len(rows), BATCH_ROWS):
        part = slice(i, i + BATCH_ROWS)
        scores[part] = (read(rows[part]) - origin[group[part]]) @ coef
    top = np.maximum.reduceat(np.abs(scores[order]), starts, axis=0)
    return in_steps(scores, top[group]) + (origin @ coef)[group]


def in_steps(scores: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Scores rounded to multiples of one of the last bits of the largest, `top`; in place.

    Adding a number whose last digit is that bit, and subtracting it, is faster than dividing.
    """
    bits, kind = 38 if scores.dtype == np.float64 else 17, np.finfo(top.dtype)
    last = np.maximum(np.frexp(top)[1] - bits, kind.minexp - kind.nmant)
    unit = np.ldexp(np.full_like(top, 1.5), np.minimum(last + kind.nmant, kind.maxexp - 1))
    scores += unit
    scores -= unit
    return scores
