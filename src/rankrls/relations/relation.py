"""What a relation consists of: the kernels of its two kinds of objects, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..core.symmetric import INDEFINITE, cutoff, eigh
from ..system.lazy import cached_property

FADED = 0.1  # edges below this share of the mean weight, which together have at most half of it, do not judge models
FLAT = 1e-10  # a kernel is nearly constant if rounding exceeds this share of the largest eigenvalue of C K C
Eigen = tuple[np.ndarray, np.ndarray]  # orthonormal columns and positive numbers


@dataclass(frozen=True)
class Pairwise:
    """The kernel of two edges: product G kron K + source G kron 1 + target 1 kron K."""

    product: float = 1.0
    source: float = 0.0
    target: float = 0.0

    @property
    def T(self) -> Pairwise:
        return Pairwise(self.product, self.target, self.source)


PRODUCT = Pairwise()


@dataclass(frozen=True)
class Domain:
    """The kernel among n objects: the matrix itself or, if `factored`, an (n, d) array A with kernel A A'."""

    array: Any  # dense; a factor may be a sparse array
    factored: bool = False

    def __len__(self) -> int:
        return int(self.array.shape[0])

    @property
    def sparse(self) -> bool:
        """True if the factor is sparse."""
        return sparse.issparse(self.array)

    @property
    def rank(self) -> int:
        """An upper bound of the rank."""
        return int(min(self.array.shape))

    def between(self, rows: Any, columns: Any) -> np.ndarray:
        """The kernel between some objects and others."""
        if not self.factored:
            return self.array[np.ix_(rows, columns)]
        return dense(self.array[rows] @ self.array[columns].T)

    def restrict(self, rows: np.ndarray) -> Domain:
        """The kernel among a subset of the objects."""
        return Domain(self.array[rows], True) if self.factored else Domain(self.array[np.ix_(rows, rows)])

    def plus(self, constant: float) -> Domain:
        """The kernel plus a constant: an effect that all objects share."""
        if constant == 0:
            return self
        if not self.factored:
            return Domain(self.array + constant)
        ones = np.full((len(self), 1), np.sqrt(constant))
        return Domain(
            sparse.hstack([self.array, ones], format="csr") if self.sparse else np.hstack([self.array, ones]), True
        )

    def scaled(self, weights: np.ndarray) -> Domain:
        """diag(weights) kernel diag(weights)."""
        if self.factored:
            return Domain(
                sparse.csr_array(self.array.multiply(weights[:, None]))
                if self.sparse
                else self.array * weights[:, None],
                True,
            )
        return Domain(self.array * weights * weights[:, None])

    def scaled_eigen(self, weights: np.ndarray, *, graded: bool) -> Eigen:
        """`eigen` of diag(weights) kernel diag(weights); if weights differ by orders of magnitude (graded), by Jacobi.

        Rounding is then relative to each row, not to the heaviest one.
        """
        if not graded or self.diagonal_only:
            return self.scaled(weights).eigen()
        V, d = self.eigen()
        B = np.asfortranarray(V * np.sqrt(d) * weights[:, None])
        sizes, U, _, (top, bottom, *_), _, failed = linalg.lapack.dgejsv(B, joba=2, jobu=0, jobv=3)
        if failed:
            raise linalg.LinAlgError("the kernel of weighted objects has no singular values to full precision")
        root = sizes * (top / bottom)
        keep = root > 0
        return U[:, : len(d)][:, keep], root[keep] ** 2

    def dot(self, v: np.ndarray) -> np.ndarray:
        """The kernel times a vector or matrix."""
        return self.array @ (self.array.T @ v) if self.factored else self.array @ v

    @cached_property
    def diagonal(self) -> np.ndarray:
        if not self.factored:
            return np.diagonal(self.array)
        return (
            np.asarray(self.array.multiply(self.array).sum(axis=1)).ravel()
            if self.sparse
            else np.einsum("ij,ij->i", self.array, self.array)
        )

    @property
    def diagonal_only(self) -> bool:
        """True if the kernel is diagonal: no two objects have a feature in common, as with a sparse factor of ids."""
        if not self.sparse:
            return False
        A = sparse.csr_array(self.array)
        return A.nnz <= len(self) and max(np.diff(A.indptr).max(initial=0), np.bincount(A.indices).max(initial=0)) <= 1

    @cached_property
    def mean(self) -> np.ndarray:
        """(n,) the mean of each row."""
        return self.dot(np.full(len(self), 1 / len(self)))

    @cached_property
    def repeats(self) -> bool:
        """True if some objects may be the same to the kernel: their rows have the same sum."""
        sums = np.sort(np.asarray(self.array.sum(axis=1)).ravel())
        return bool(np.any(np.diff(sums) <= 1e-13 * np.abs(sums).max(initial=0)))

    def eigen(self, *, centred: bool = False) -> Eigen:
        """Eigenvectors (n, rank) and positive eigenvalues, of the kernel or of C kernel C; always dense."""
        if self.diagonal_only and not centred:
            own = np.flatnonzero(self.diagonal > 0)
            V = np.zeros((len(self), len(own)))
            V[own, np.arange(len(own))] = 1
            return V, self.diagonal[own]
        A = dense(self.array)
        if self.factored:
            R, triangle = linalg.qr(A - A.mean(axis=0) if centred else A, mode="economic", check_finite=False)
            U, root, _ = linalg.svd(triangle, check_finite=False)
            keep = root**2 > (root[0] ** 2 if len(root) else 0) * cutoff(len(A))
            U = U[:, : len(root)]
            return R @ U[:, keep], root[keep] ** 2
        d, U = _centred_eigh(A) if centred else eigh(A)
        # the rounding that centring leaves of large entries
        rounding = float(np.abs(A.mean(axis=0)).max(initial=0)) * cutoff(len(A)) if centred else 0.0
        largest = float(d.max(initial=0.0))
        before = max(largest, len(A) * float(A.mean())) if centred else largest  # centring leaves rounding as it was
        if d.min(initial=0.0) < -1e-6 * before - 10 * rounding:
            raise ValueError(INDEFINITE.format(d[0], d[-1]))
        keep = d > largest * cutoff(len(d))
        if rounding > FLAT * largest:  # in a nearly constant kernel, keep directions whose eigenvalue rounding hides
            keep |= np.abs(d) < rounding
        return (U if keep.all() else U[:, keep]), np.maximum(d[keep], 1e-20 * rounding)


@dataclass(frozen=True)
class EdgeSet:
    """The edges between p conditioning and r ranked objects: a matrix Y if all are known, else a list.

    A sparse Y is complete too: entries that are not stored are zero.
    """

    shape: tuple[int, int]
    Y: Any = None
    rows: Any = None  # (q,) for a list
    columns: Any = None
    y: Any = None
    weights: np.ndarray | None = None  # (q,) for a list, (p,) for the rows of a matrix
    free: np.ndarray | None = None  # (q, k) columns with unpenalised coefficients

    @property
    def complete(self) -> bool:
        return self.Y is not None

    @property
    def T(self) -> EdgeSet:
        """The relation seen from the other end."""
        flipped = None if self.Y is None else self.Y.T
        return replace(self, shape=self.shape[::-1], Y=flipped, rows=self.columns, columns=self.rows)

    @property
    def n_edges(self) -> int:
        return self.shape[0] * self.shape[1] if self.complete else len(self.y)

    def listed(self) -> EdgeSet:
        """The same edges as a list, in the order of rows."""
        if not self.complete:
            return self
        p, r = self.shape
        weights = None if self.weights is None else np.repeat(self.weights, r)
        rows, columns = np.repeat(np.arange(p), r), np.tile(np.arange(r), p)
        return EdgeSet(self.shape, None, rows, columns, dense(self.Y).ravel(), weights)

    def copies(self, parity: int = 0) -> np.ndarray:
        """(q,) how often each edge of a list occurs; with parity an edge and its reverse count half each."""
        rows, columns = (self.rows, self.columns)
        if parity:
            rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
        _, place, counts = np.unique(rows * max(self.shape) + columns, return_inverse=True, return_counts=True)
        return np.where(rows == columns, counts[place], np.maximum(1.0, counts[place] / 2)) if parity else counts[place]

    @property
    def judge(self) -> np.ndarray:
        """(q,) which edges of a list are used to judge models: all but those with hardly any weight.

        Left out are the lightest edges: below a tenth of the mean weight (each edge counted by its weight), and with at
        most a twentieth of all weight together. A game that hardly weighs in training should not judge a model either.
        """
        if self.weights is None:
            return np.ones(len(self.y), dtype=bool)
        levels, place = np.unique(self.weights, return_inverse=True)
        held = np.bincount(place, self.weights)
        small = levels < FADED * np.sum(levels * held) / np.sum(held)
        return ~(small & (np.cumsum(held) <= FADED / 2 * np.sum(held)))[place]

    def only(self, edges: np.ndarray) -> EdgeSet:
        """A subset of the edges of a list, among the same objects."""
        pick = lambda values: None if values is None else values[edges]
        return EdgeSet(
            self.shape, None, self.rows[edges], self.columns[edges], self.y[edges], pick(self.weights), pick(self.free)
        )


@dataclass(frozen=True)
class Coefficients:
    """A (p, r) matrix of coefficients as the product left core right', not multiplied out; core None is I."""

    left: np.ndarray  # (p, k)
    core: np.ndarray | None  # (k, l)
    right: np.ndarray  # (r, l)
    parity: int = 0

    @property
    def T(self) -> Coefficients:
        return Coefficients(self.right, None if self.core is None else self.core.T, self.left, self.parity)

    def toarray(self) -> np.ndarray:
        return part(self._times_core(self.left) @ self.right.T, self.parity)

    def between(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """A' a B; exactly symmetric or skew if a is and A is B."""
        left, right = np.asarray(A.T @ self.left), np.asarray(B.T @ self.right)
        return part(self._times_core(left) @ right.T, self.parity if A is B else 0)

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """a 1 and a' 1."""
        columns = self.right.sum(axis=0) if self.core is None else self.core @ self.right.sum(axis=0)
        one = self.left @ columns, self.right @ self._times_core(self.left.sum(axis=0))
        return ((one[0] + self.parity * one[1]) / 2, (one[1] + self.parity * one[0]) / 2) if self.parity else one

    def _times_core(self, left: np.ndarray) -> np.ndarray:
        return left if self.core is None else left @ self.core


def part(Y: Any, parity: int) -> Any:
    """The symmetric (1) or skew (-1) part of a matrix; all of it for 0."""
    return (Y + parity * Y.T) / 2 if parity else Y


def one_way(rows: np.ndarray, columns: np.ndarray, parity: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """The edges of a symmetric or skew relation from the smaller number to the larger, and the sign of each.

    Scores of two edges between the same objects then tie exactly.
    """
    if not parity:
        return rows, columns, 1.0
    sign = np.where(rows > columns, float(parity), 1.0)
    return np.minimum(rows, columns), np.maximum(rows, columns), sign


def _centred_eigh(A: np.ndarray) -> Eigen:
    """Eigenvectors and eigenvalues of C A C, without the constant direction."""
    mean = A.mean(axis=0)
    A = A - mean
    A -= mean[:, None]
    A += mean.mean()
    A += 1.1 * float(np.linalg.norm(A)) / len(A)  # the constant becomes the largest direction and mixes with no other
    d, U = eigh(A, overwrite=True)
    d, U = d[:-1], U[:, :-1]
    U -= U.mean(axis=0)
    return d, U


def dense(A: Any) -> np.ndarray:
    """A as a dense array."""
    return A.toarray() if sparse.issparse(A) else np.asarray(A)


def known_values(edges: EdgeSet) -> Any:
    """The known relation as a matrix, sparse if it was given so; repeated edges are averaged."""
    if edges.complete:
        return edges.Y
    count = sparse.csr_array((np.ones(len(edges.y)), (edges.rows, edges.columns)), shape=edges.shape)
    total = sparse.csr_array((edges.y, (edges.rows, edges.columns)), shape=edges.shape)
    total.sum_duplicates()
    count.sum_duplicates()
    total.data /= count.data
    return total
