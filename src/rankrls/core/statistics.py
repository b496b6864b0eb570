"""The sums over queries that a linear fit needs.

With A = F Phi and z = F y, all a primal fit needs from the data is A'A, A'z and z'z: sums over queries.
They are accumulated over batches of whole queries (centre a batch, multiply it with itself, drop it), so no
copy of X is made, and they add: blocks of a file, parts of a cluster, new queries; subtracting un-learns.

With a share beta > 0 of regression there is an unpenalised intercept. It is eliminated by centring the sums on the
weighted mean of all items; `+` and `-` move two sums to a common mean at the cost of a rank-one term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..system.parallel import Scratch, share
from ..system.types import DTypeLike, Matrix
from . import fused, ragged
from .means import Read, Rows
from .pairs import PairPreferences
from .preferences import QueryPreferences
from .queries import BATCH_ROWS

Preferences = QueryPreferences | PairPreferences

DEVIATION_COLUMNS, DEVIATION_CELLS = 256, 1 << 14  # of few rows, more columns are judged at once
CANCELLED = 100.0  # terms this many times larger than their sum have ten times the rounding of differences of rows
SINGLE = (1e-12, 1e15)  # the range of values whose squares, and sums of them, fit in single precision
FAINT = 1e-9  # single precision holds rows whose weight has at least this share of the root of the largest sum
FAINTEST = 1e-305  # sums of squares below this have lost digits, or vanished
CLEAR = 32.0  # a column varies if its spread is this many times what rounding makes of a constant column


@dataclass(frozen=True)
class Statistics:
    """A'A, A'z and z'z of A = F (Phi - 1 mean') and z = F (y - 1 target_mean'), and counts."""

    gram: np.ndarray  # (n, n)
    cross: np.ndarray  # (n, t)
    square: np.ndarray  # (t,)
    mean: np.ndarray  # (n,)
    target_mean: np.ndarray  # (t,)
    weight: float
    beta: float
    n_rows: int
    n_queries: int
    n_pairs: int
    rounding: np.ndarray | None = None  # (n,) a column's spread below this is rounding; None where unknown
    explicit: int = 0  # number of explicit pairs, which have no rows of their own

    @property
    def deviation(self) -> np.ndarray:
        """(n,) the root mean square of each column of A: how much it varies within queries, zero where it does not."""
        weight = self.weight + self.explicit or max(1, self.n_pairs)
        deviation = np.sqrt(np.maximum(0.0, np.diag(self.gram)) / weight)
        return deviation if self.rounding is None else np.where(deviation > CLEAR * self.rounding, deviation, 0.0)

    @property
    def faint(self) -> np.ndarray:
        """Numbers of the columns whose squares add up to zero, or to so little that digits are lost."""
        return np.flatnonzero(np.diag(self.gram) < FAINTEST)

    def whitened(self, W: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """A'A and A'z in the coordinates v of w = W v; a vector W is a diagonal matrix, None the identity."""
        if W is None:
            return self.gram, self.cross
        if W.ndim == 1:
            return self.gram * W[:, None] * W, self.cross * W[:, None]
        return W.T @ self.gram @ W, W.T @ self.cross

    def emptied(self) -> Statistics:
        """Sums over no rows, of the same shape."""
        zeros = {
            name: np.zeros_like(getattr(self, name)) for name in ("gram", "cross", "square", "mean", "target_mean")
        }
        return replace(self, **zeros, weight=0.0, n_rows=0, n_queries=0, n_pairs=0, rounding=None, explicit=0)

    def __add__(self, other: Statistics) -> Statistics:
        return self._combine(other, +1)

    def __sub__(self, other: Statistics) -> Statistics:
        return self._combine(other, -1)

    @np.errstate(over="ignore", invalid="ignore")  # callers check that the sums are finite
    def _combine(self, other: Statistics, sign: int) -> Statistics:
        """Add (sign 1) or subtract (-1) sums, moved to a common mean."""
        weight = self.weight + sign * other.weight
        share = sign * other.weight / weight if weight > 0 else 0.0
        dx, dy = other.mean - self.mean, other.target_mean - self.target_mean
        rank1 = self.beta * self.weight * share
        gram = self.gram + sign * other.gram
        if rank1:
            gram += rank1 * np.outer(dx, dx)
        return Statistics(
            gram,
            self.cross + sign * other.cross + rank1 * np.outer(dx, dy),
            self.square + sign * other.square + rank1 * dy**2,
            self.mean + share * dx,
            self.target_mean + share * dy,
            weight,
            self.beta,
            self.n_rows + sign * other.n_rows,
            self.n_queries + sign * other.n_queries,
            self.n_pairs + sign * other.n_pairs,
            _largest(self.rounding, other.rounding),
            self.explicit + sign * other.explicit,
        )


@np.errstate(over="ignore", invalid="ignore")  # callers check that the sums are finite
def statistics(
    F: Preferences,
    reader: Callable[[], Read],
    y: np.ndarray,
    n_columns: int,
    dtype: DTypeLike,
    array: np.ndarray | None = None,
) -> Statistics:
    """The sums of [F Phi, F y] in one pass over the rows; O(m n^2) time, O(n^2) memory.

    `reader()` gives each thread its own function rows -> Phi[rows]; y is (m, t), or (p, t) margins for explicit pairs.
    `array` is Phi itself if it is an array of `dtype` in memory, so that a compiled pass can read it.
    """
    target_mean = target_mean_of(F, y)
    T = y - target_mean
    centre = np.zeros(n_columns)
    if F.beta > 0:
        T = np.column_stack([T, np.zeros(len(T))])  # carry F 1 along, as 0 centred on -1: it gives the mean of Phi
        centre = _near_mean(F, reader()).astype(dtype).astype(np.float64)
    width = n_columns + T.shape[1]
    shift = np.concatenate([centre, np.zeros(T.shape[1])]).astype(dtype)
    early = shift if F.beta > 0 and F.means.uneven else 0 * shift  # shift before taking means, which round
    late = shift - early
    late[n_columns + y.shape[1] :] = -1

    def accumulate(batches: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        read = reader() if isinstance(F, PairPreferences) else _appended(reader(), T.astype(dtype), early[:n_columns])
        total, product, level = np.zeros((width, width)), np.empty((width, width), dtype=dtype), np.zeros(width)
        with np.errstate(over="ignore", invalid="ignore"):  # callers check the sums
            for batch in batches:
                for A in factor(batch, read, late, level):
                    if isinstance(F, PairPreferences):  # margins belong to pairs, not to rows
                        A = np.hstack([A.astype(dtype, copy=False), (F.s[batch, None] * T[batch]).astype(dtype)])
                    total += np.matmul(A.T, A, out=product)
        return total, level

    batches: Sequence[Any] = F.batches(width)
    factor: Callable[..., Any] = F.factor
    even = isinstance(F, QueryPreferences) and not F.means.uneven
    if isinstance(F, QueryPreferences) and even and F.queries.are_ragged(width):
        batches, factor = ragged.runs(F, dtype), partial(ragged.factor, F)
    if even and array is not None and fused.serves(F, array):
        ones = np.ones((len(T), T.shape[1] - y.shape[1]))
        parts = fused.accumulated(F, array, np.hstack([T[:, : y.shape[1]], ones]), centre)
    else:
        parts = share(accumulate, batches, cost=float(F.shape[1]) * width, label="sums over rows")
    total = sum((part for part, _ in parts), start=np.zeros((width, width)))
    level = np.max([level[:n_columns] for _, level in parts], axis=0, initial=0.0)
    if early.any():
        level = level + np.abs(centre) * np.sqrt(np.sum(F.rounding.of_rows))
    return _of_products(F, total, y.shape[1], centre, target_mean, np.finfo(dtype).eps * level)


def _of_products(
    F: Preferences, total: np.ndarray, t: int, centre: np.ndarray, target_mean: np.ndarray, rounding: np.ndarray
) -> Statistics:
    """The sums from the products of [F (Phi - centre), F (y - target_mean), F 1]; about the mean where beta > 0."""
    n = len(centre)
    gram, cross, square = total[:n, :n], total[:n, n:], np.diag(total)[n:]
    if F.beta > 0:
        delta = cross[:, t] / (F.beta * F.weight)
        gram = gram - F.beta * F.weight * np.outer(delta, delta)
        centre = centre + delta
    gram, cross = np.ascontiguousarray(gram), cross[:, :t].copy()
    return _statistics(F, gram, cross, square[:t].copy(), centre, target_mean, rounding)


def _near_mean(F: QueryPreferences, read: Read) -> np.ndarray:
    """(n,) the mean of the heaviest rows, or the single centre row of `Rounding`: sums about it do not cancel."""
    rows: Rows = slice(0, BATCH_ROWS)
    if F.rounding.centre is not None:
        return read(np.array([F.rounding.centre]))[0].astype(np.float64)
    if F.u is None:
        return read(rows).mean(axis=0, dtype=np.float64)
    if len(F.u) > BATCH_ROWS:
        rows = np.sort(np.argpartition(-F.u, BATCH_ROWS)[:BATCH_ROWS])
    u = F.u[rows] / F.u.max()
    return u @ read(rows).astype(np.float64, copy=False) / u.sum()


def fits_single(F: Preferences, X: Matrix, y: np.ndarray, gram: np.ndarray) -> bool:
    """True if single-precision sums, such as `gram`, have neither overflowed nor underflowed.

    Only columns whose squares look suspicious are checked.
    """
    if isinstance(F, PairPreferences):
        root, least = np.max(F.s, initial=0.0), np.min(F.s, initial=np.inf)
    else:
        root = np.max(np.sqrt(F.S) * F.between)
        least = F.between.min() if F.s is None else np.min(F.s * F.between[F.queries.codes])
    if least < FAINT * root:  # rows that weigh little would vanish
        return False
    d = np.diag(gram)
    odd = np.flatnonzero(~((d > SINGLE[0] ** 2) & (d < SINGLE[1] ** 2)))
    tops = [np.abs(y).max(initial=0) * root]
    if len(odd):
        top = abs(X[:, odd]).max(axis=0)
        tops += list(np.ravel(top.toarray() if sparse.issparse(top) else top) * root)
    return all(top == 0 or SINGLE[0] < top < SINGLE[1] for top in tops)


def column_deviation(F: QueryPreferences, X: Any) -> np.ndarray:
    """(n,) the spread of each column, as in `Statistics`, a few columns at a time and without forming X'X."""
    u = np.ones(F.shape[0]) if F.u is None else F.u
    heaviest, eps, parts = np.argmax(u), np.finfo(X.dtype).eps, []
    width = max(DEVIATION_COLUMNS, DEVIATION_CELLS // max(1, X.shape[0]))
    for i in range(0, X.shape[1], width):
        V = X[:, i : i + width]
        V = np.array(V.toarray() if sparse.issparse(V) else V, dtype=np.float64)
        V /= (unit := _largest_or_one(V))  # squares of very large or very small values are no numbers
        rounding = eps * np.abs(V)
        if F.means.uneven:  # a row that outweighs all others is nearly the mean: about it nothing cancels
            V -= V[heaviest].copy()
            rounding += rounding[heaviest].copy()
        if F.beta > 0:
            V -= u / F.weight @ V
        A = F @ V
        A /= (top := _largest_or_one(A))
        deviation = np.sqrt(np.sum(A**2, axis=0) / F.weight) * top
        noise = np.sqrt(F.rounding.of_rows @ rounding**2)
        parts.append(np.where(deviation > CLEAR * noise, deviation * unit, 0.0))
    return np.concatenate(parts)


def _largest_or_one(V: np.ndarray) -> np.ndarray:
    """(n,) the largest absolute value of each column, 1 where that is zero."""
    top = np.abs(V).max(axis=0, initial=0.0)
    return np.where(top > 0, top, 1.0)


def sparse_terms(F: QueryPreferences, X: sparse.csr_array) -> list[tuple[sparse.csr_array, np.ndarray]]:
    """Sparse matrices M and weights w with X'Lt X the sum of M' diag(w) M; F X, which is dense, is not formed.

    Lt = diag(u within^2) + sum over levels of S_j (between^2 - within_j^2) mean mean'
                          + sum over queries of S (beta - between^2) mean mean'.
    """
    m, codes = F.shape[0], F.queries.codes
    u = np.ones(m) if F.u is None else F.u
    within = F.between[codes] if F.within is None else F.within
    terms = [(X, u * within**2)]
    if F.ties is not None:
        level = F.ties.level
        tied = np.flatnonzero(level >= 0)
        share = u[tied] / F.ties.weight[level[tied]]
        average = sparse.csr_array((share, (level[tied], tied)), shape=(len(F.ties.weight), m))
        terms.append((average @ X, F.level_scale**2))
    average = sparse.csr_array((u / F.S[codes], (codes, np.arange(m))), shape=(len(F.queries), m))
    terms.append((average @ X, F.S * (F.beta - F.between**2)))
    return terms


@np.errstate(over="ignore", invalid="ignore")  # callers check that the sums are finite
def sparse_sums_cancel(F: QueryPreferences, X: sparse.csr_array, *, scaled: bool = False) -> bool:
    """True if the terms of X'Lt X are so much larger than their sum that digits are lost.

    This happens for columns far from zero in every row, which are not sparse. If columns are `scaled`, each is judged
    on its own, except those that do not vary.
    """
    X = X.astype(np.float64, copy=False)
    terms = sparse_terms(F, X)
    squares = [M.multiply(M).T @ w for M, w in terms]
    if F.beta > 0:
        squares.append(-F.beta * F.weight * (F.S @ terms[-1][0] / F.weight) ** 2)
    sums, largest = np.sum(squares, axis=0), np.max(np.abs(squares), axis=0)
    if not scaled:
        return bool(np.any(largest > CANCELLED * np.max(sums, initial=0.0)))
    doubtful = np.flatnonzero(largest > CANCELLED * sums)
    return bool(len(doubtful) and np.any(column_deviation(F, X[:, doubtful]) > 0))


@np.errstate(over="ignore", invalid="ignore")
def sparse_statistics(F: QueryPreferences, X: sparse.csr_array, y: np.ndarray) -> Statistics:
    """The same sums for sparse X, without forming F X."""
    z, target_mean = targets(F, y)
    terms = sparse_terms(F, X.astype(np.float64, copy=False))
    grams = [_weighted_gram(M, w) for M, w in terms]
    rounding = np.sqrt(np.finfo(np.float64).eps * np.diag(grams[0]) / F.weight)  # of a difference, not of a square
    gram = sum(grams, start=np.zeros((X.shape[1],) * 2))
    mean = np.zeros(X.shape[1])
    if F.beta > 0:
        mean = F.S @ terms[-1][0] / F.weight
        gram -= F.beta * F.weight * np.outer(mean, mean)
    return _statistics(F, gram, X.T @ (F.T @ z), np.einsum("it,it->t", z, z), mean, target_mean, rounding)


def sparse_pair_statistics(F: PairPreferences, X: sparse.csr_array, y: np.ndarray) -> Statistics:
    """The sums of explicit pairs among sparse rows; F X is sparse too."""
    A, z = F.incidence() @ X, F.s[:, None] * y
    zeros = np.zeros(X.shape[1]), np.zeros(y.shape[1])
    return _statistics(F, (A.T @ A).toarray(), A.T @ z, np.einsum("it,it->t", z, z), *zeros)


def _appended(read: Read, T: np.ndarray, centre: np.ndarray) -> Read:
    """Rows of [V - centre, T], which the caller may overwrite."""
    scratch, shifted = Scratch(T.dtype), bool(centre.any())

    def read_both(rows: Rows) -> np.ndarray:
        V, t = read(rows), T[rows]
        both = scratch(len(V), V.shape[1] + t.shape[1])
        if shifted:
            np.subtract(V, centre, out=both[:, : V.shape[1]])
        else:
            both[:, : V.shape[1]] = V
        both[:, V.shape[1] :] = t
        return both

    return read_both


def targets(F: Preferences, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """z = F (y - mean), and the mean that was subtracted (zero without an intercept)."""
    if isinstance(F, PairPreferences):
        return F.s[:, None] * y, np.zeros(y.shape[1])
    mean = target_mean_of(F, y)
    return F @ (y - mean), mean


def target_mean_of(F: Preferences, y: np.ndarray) -> np.ndarray:
    """(t,) the mean of the targets where there is an intercept, else zero."""
    weights = None if F.u is None else F.u / F.u.max(initial=0)  # large numbers times large weights would overflow
    return np.average(y, axis=0, weights=weights) if F.free else np.zeros(y.shape[1])


def _statistics(
    F: Preferences,
    gram: np.ndarray,
    cross: np.ndarray,
    square: np.ndarray,
    mean: np.ndarray,
    target_mean: np.ndarray,
    rounding: np.ndarray | None = None,
) -> Statistics:
    n_queries = len(F.queries) if isinstance(F, QueryPreferences) else 0
    counts = F.weight, F.beta, F.shape[1], n_queries, F.n_pairs
    return Statistics(gram, cross, square, mean, target_mean, *counts, rounding)


def _largest(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    return (b if a is None else a) if a is None or b is None else np.maximum(a, b)


def _weighted_gram(X: sparse.csr_array, weights: np.ndarray) -> np.ndarray:
    """X' diag(weights) X as a dense matrix."""
    return (X.T @ (sparse.diags_array(weights) @ X)).toarray()
