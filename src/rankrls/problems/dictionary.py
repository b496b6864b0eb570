"""The functions ("atoms") a pursuit chooses from, as the loss sees them: columns A = F D at the training rows.

A pursuit needs four things of A, whatever its size: the squares g = diag(A'A), which atoms vanish, products A'q with
a vector, and single columns. `AtomsInMemory` holds all of A; if that does not fit, parts of it are recomputed for
every product. `SparseColumns` never forms the columns of a sparse X.
`Compressed` replaces many rows of few columns by few rows R and targets b with R'R = A'A and R'b = A'z: a pursuit uses
only lengths and angles of A and z, which R and b share. They come from sums that take one pass over the rows. A Gram
matrix loses half of the digits, so columns that are nearly dependent are not compressed.

With a share beta > 0 of regression there is an intercept: A is orthogonal to F 1, and `means` are the means subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ..core.means import Read, Rows
from ..core.pairs import PairPreferences
from ..core.preferences import QueryPreferences
from ..core.queries import BATCH_ROWS, Batch
from ..core.statistics import Preferences, Statistics, sparse_terms
from ..core.symmetric import eigh
from ..kernels import Kernel
from ..system import memory
from ..system.lazy import cached_property
from ..system.limits import limits
from ..system.parallel import share

SINGULAR = 1e-6  # do not compress if an eigenvalue of the columns' correlations is below this share of the largest
TALL = 2  # compress if there are more than this many rows per column
MEMORY_SHARE = 0.5  # of the free memory that A may take; further atoms are recomputed for every product
BLOCK_CELLS = 1 << 20  # kernel values at a time, so that they stay in the cache
ZERO = 1e-13  # an atom vanishes if F leaves less than this share of it


class Dictionary(Protocol):
    """Functions to choose from, evaluated at some rows."""

    @property
    def n_atoms(self) -> int: ...

    def reader(self, part: slice) -> Read:
        """rows -> a fresh (k, atoms) array of the values of these atoms."""

    def restrict(self, rows: np.ndarray, atoms: np.ndarray) -> Any:
        """Some of the atoms at some of the rows."""

    def values(self, rows: np.ndarray, atoms: np.ndarray) -> np.ndarray:
        """(k, len(atoms)) some atoms at some rows."""

    def evaluated(self) -> Any:
        """The same dictionary with all values computed, if they fit in memory."""


@dataclass(frozen=True)
class KernelAtoms:
    """k(x, z) for each of N points z."""

    X: Any  # (m, n)
    kernel: Kernel
    points: Any  # (N, n)

    @property
    def n_atoms(self) -> int:
        return self.points.shape[0]

    def reader(self, part: slice) -> Read:
        points = self.points[part].astype(np.float64)
        return lambda rows: np.asarray(self.kernel(self.X[rows].astype(np.float64), points), dtype=np.float64)

    def restrict(self, rows: np.ndarray, atoms: np.ndarray) -> KernelAtoms:
        return KernelAtoms(self.X[rows], self.kernel, self.points[atoms])

    def values(self, rows: np.ndarray, atoms: np.ndarray) -> np.ndarray:
        return self.restrict(rows, atoms).reader(slice(None))(slice(None))

    def evaluated(self) -> KernelAtoms | Columns:
        size = 8 * self.X.shape[0] * self.n_atoms
        return self if size > _budget() / 2 else Columns(self.reader(slice(None))(slice(None)))


@dataclass(frozen=True)
class Columns:
    """Each column of X, kernel values or features, is an atom."""

    X: Any

    @property
    def n_atoms(self) -> int:
        return self.X.shape[1]

    def reader(self, part: slice) -> Read:
        columns = self.X[:, part]
        return lambda rows: np.array(columns[rows], dtype=np.float64)

    def restrict(self, rows: np.ndarray, atoms: np.ndarray) -> Columns:
        return Columns(self.X[rows] if len(atoms) == self.n_atoms else self.X[rows][:, atoms])

    def values(self, rows: np.ndarray, atoms: np.ndarray) -> np.ndarray:
        V = self.X[rows][:, atoms].astype(np.float64)
        return V.toarray() if sparse.issparse(V) else V

    def evaluated(self) -> Columns:
        return self


class Atoms(Protocol):
    """What a pursuit needs of A = F D."""

    @property
    def squares(self) -> np.ndarray:
        """(N,) diag(A'A)."""

    @property
    def zero(self) -> np.ndarray:
        """(N,) whether an atom vanishes."""

    @property
    def means(self) -> np.ndarray:
        """(N,) the means subtracted."""

    def products(self, q: np.ndarray) -> np.ndarray:
        """(N,) A'q."""

    def column(self, atom: int) -> np.ndarray:
        """(m,) one column of A."""


def as_atoms(F: Preferences, dictionary: Any) -> Atoms:
    """The columns A of a dictionary, in the representation that suits it."""
    if isinstance(dictionary, Columns) and sparse.issparse(dictionary.X):
        if isinstance(F, PairPreferences):
            return SparseDifferences(F, dictionary.X)
        return SparseColumns(F, dictionary.X)
    return AtomsInMemory(F, dictionary)


@dataclass(frozen=True)
class Whitened:
    """All of A in memory: F D for some atoms, or given columns."""

    A: np.ndarray  # (m, N)
    means: np.ndarray  # (N,) zero where there is no intercept
    squares: np.ndarray  # (N,)
    zero: np.ndarray  # (N,)

    @classmethod
    def of(cls, F: Preferences, read: Read, n: int) -> Whitened:
        """One pass over the rows, in batches of queries; the kernel overlaps with the centring of another batch."""
        if isinstance(F, PairPreferences):
            return cls.of_pairs(F, read, n)
        A, raw = np.empty((F.shape[0], n)), np.zeros(n)

        def work(batches: Sequence[Batch]) -> np.ndarray:
            squares = np.zeros(n)

            def read_and_sum(rows: Rows) -> np.ndarray:
                V = read(rows)
                squares[:] += np.einsum("ij,ij->j", V, V)
                return V

            for batch in batches:
                for rows, FV in F.rows_of(batch, read_and_sum):
                    A[rows] = FV
            return squares

        batches = list(F.queries.batches(min(BATCH_ROWS, max(64, BLOCK_CELLS // max(n, 1)))))
        raw = np.sum(share(work, batches, cost=A.size, label="dictionary"), axis=0)
        means = _centre(A, F)
        scale = F.between.max() ** 2 * (1.0 if F.u is None else F.u.max())
        return cls.columns(A, means, scale * raw)

    @classmethod
    def of_pairs(cls, F: PairPreferences, read: Read, n: int) -> Whitened:
        """Differences between the items of each pair."""
        A, raw = np.empty((F.shape[0], n)), np.zeros(n)
        for i in range(0, F.shape[0], BATCH_ROWS):
            part = slice(i, i + BATCH_ROWS)
            V, other = read(F.pair[part, 0]), read(F.pair[part, 1])
            raw += F.s[part] ** 2 @ (V**2 + other**2)
            A[part] = F.s[part, None] * (V - other)
        return cls.columns(A, None, raw)

    @classmethod
    def columns(cls, A: np.ndarray, means: np.ndarray | None = None, raw: np.ndarray | float = 0.0) -> Whitened:
        """From given columns; `raw` are their squares before F was applied, to tell rounding from data."""
        squares = np.einsum("ij,ij->j", A, A)
        return cls(A, np.zeros(A.shape[1]) if means is None else means, squares, squares <= ZERO**2 * raw)

    def products(self, q: np.ndarray) -> np.ndarray:
        return q @ self.A

    def column(self, atom: int) -> np.ndarray:
        return self.A[:, atom].copy()


class AtomsInMemory:
    """As many atoms in memory as fit; the others are recomputed for every product."""

    def __init__(self, F: Preferences, dictionary: Dictionary):
        self.F, self.dictionary = F, dictionary
        m, n, budget = F.shape[0], dictionary.n_atoms, _budget()
        step = n if 8 * m * n <= budget else max(1, limits.atom_bytes // (8 * m))
        self.parts = [slice(i, min(i + step, n)) for i in range(0, n, step)]
        n_held = 1 if len(self.parts) == 1 else max(0, int((budget - limits.atom_bytes) // (8 * m * step)))
        self.held: list[Whitened | None] = []
        found = []
        for i, part in enumerate(self.parts):
            block = self._block(part)
            self.held.append(block if i < n_held else None)
            found.append((block.squares, block.zero, block.means))
        self.squares, self.zero, self.means = map(np.concatenate, zip(*found, strict=True))

    def _block(self, part: slice) -> Whitened:
        return Whitened.of(self.F, self.dictionary.reader(part), part.stop - part.start)

    def products(self, q: np.ndarray) -> np.ndarray:
        blocks = zip(self.parts, self.held, strict=True)
        return np.concatenate([(held or self._block(part)).products(q) for part, held in blocks])

    def column(self, atom: int) -> np.ndarray:
        for part, held in zip(self.parts, self.held, strict=True):
            if part.start <= atom < part.stop and held is not None:
                return held.column(atom - part.start)
        return self._block(slice(atom, atom + 1)).column(0)


@dataclass(frozen=True)
class SparseColumns:
    """The columns of a sparse X: A'q = X'F'q, and the squares from sums over queries and levels; X stays sparse."""

    F: QueryPreferences
    X: sparse.csr_array

    @cached_property
    def means(self) -> np.ndarray:
        return (self.X.T @ self._u) / self.F.weight if self.F.free else np.zeros(self.X.shape[1])

    @property
    def _u(self) -> np.ndarray:
        return np.ones(self.F.shape[0]) if self.F.u is None else self.F.u

    @cached_property
    def squares(self) -> np.ndarray:
        """diag(X'Lt X)."""
        F = self.F
        total = sum(M.multiply(M).T @ w for M, w in sparse_terms(F, self.X))
        return np.maximum(0, total - F.beta * F.weight * self.means**2)

    @cached_property
    def zero(self) -> np.ndarray:
        scale = self.F.between.max() ** 2 * self._u.max()
        # sums of squares have half of the digits that the differences in `Whitened` have
        return self.squares <= ZERO * scale * np.asarray(self.X.multiply(self.X).sum(axis=0)).ravel()

    def products(self, q: np.ndarray) -> np.ndarray:
        v = self.F.T @ q
        return self.X.T @ v - self.means * v.sum()

    def column(self, atom: int) -> np.ndarray:
        return self.F @ (self.X[:, [atom]].toarray().ravel().astype(np.float64) - self.means[atom])


class SparseDifferences:
    """The columns of a sparse X under explicit pairs: A = F X is as sparse as its rows are."""

    def __init__(self, F: PairPreferences, X: sparse.csr_array):
        incidence = F.incidence()
        self.A = sparse.csc_array(incidence @ X.astype(np.float64))
        self.means = np.zeros(X.shape[1])
        self.squares = np.asarray(self.A.multiply(self.A).sum(axis=0)).ravel()
        raw = np.asarray((abs(incidence) @ abs(X)).power(2).sum(axis=0)).ravel()
        self.zero = self.squares <= ZERO**2 * raw

    def products(self, q: np.ndarray) -> np.ndarray:
        return self.A.T @ q

    def column(self, atom: int) -> np.ndarray:
        return self.A[:, [atom]].toarray().ravel()


def _centre(A: np.ndarray, F: QueryPreferences) -> np.ndarray:
    """Make A orthogonal to F 1 in place if there is an intercept; returns the means of D that were subtracted."""
    if not F.free:
        return np.zeros(A.shape[1])
    v = np.full(len(A), 1 / np.sqrt(F.weight)) if F.s is None else F.s / np.sqrt(F.weight)
    c = v @ A
    for i in range(0, len(A), BATCH_ROWS):
        A[i : i + BATCH_ROWS] -= np.outer(v[i : i + BATCH_ROWS], c)
    return c / np.sqrt(F.beta * F.weight)


def _budget() -> float:
    return MEMORY_SHARE * memory.available_memory()


@dataclass(frozen=True)
class Compressed:
    """Columns and target of a least-squares problem in at most n + 1 rows."""

    atoms: Whitened
    z: np.ndarray  # (n + 1,)
    target_mean: float

    @classmethod
    def of(cls, sums: Statistics) -> Compressed | None:
        """From the sums of one target; None if they have too few digits."""
        seen = sums.deviation > 0
        length = np.sqrt(np.diag(sums.gram)[seen])
        d, V = eigh(sums.gram[np.ix_(seen, seen)] / np.outer(length, length))
        if not len(d) or not np.all(np.isfinite(d)) or d[0] < SINGULAR * d[-1]:
            return None
        n, k, root = len(seen), len(d), np.sqrt(d)[:, None]
        A = np.zeros((k + 1, n))
        A[:k, seen] = root * V.T * length
        z = np.zeros(k + 1)
        z[:k] = (V.T @ (sums.cross[seen, 0] / length)) / root[:, 0]
        z[k] = np.sqrt(max(0.0, sums.square[0] - z[:k] @ z[:k]))  # the part that no column explains
        atoms = Whitened(A, sums.mean, np.einsum("ij,ij->j", A, A), ~seen)
        return cls(atoms, z, float(sums.target_mean[0]))
