"""The parts of a relation: the kernels of its two kinds of objects, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..core.symmetric import INDEFINITE, cutoff, eigh

Eigen = tuple[np.ndarray, np.ndarray]  # orthonormal columns and positive numbers


@dataclass(frozen=True)
class Domain:
    """The kernel among n objects: the matrix itself, or if `factored` an (n, d) array A with kernel A A'."""

    array: Any  # dense; a factor may be a sparse array
    factored: bool = False

    def __len__(self) -> int:
        return int(self.array.shape[0])

    @property
    def sparse(self) -> bool:
        """Whether the factor is sparse."""
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
        """The kernel among some of the objects."""
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
        """Whether no two objects have anything in common, such as those with a sparse factor of ids."""
        if not self.sparse:
            return False
        A = sparse.csr_array(self.array)
        return A.nnz <= len(self) and max(np.diff(A.indptr).max(initial=0), np.bincount(A.indices).max(initial=0)) <= 1

    @cached_property
    def mean(self) -> np.ndarray:
        """(n,) the mean of each row."""
        return self.dot(np.full(len(self), 1 / len(self)))

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
        rounding = 0.0
        if centred:
            mean = A.mean(axis=0)
            rounding = float(np.abs(mean).max(initial=0)) * cutoff(len(A))  # what centring leaves of large entries
            A = A - mean
            A -= mean[:, None]
            A += mean.mean()
        d, U = eigh(A, overwrite=centred)
        if centred:  # where s is rounding, eigenvectors and the constant mix: coefficients have none of it
            U = U - U.mean(axis=0)
        if d[0] < -1e-6 * abs(d[-1]) - 10 * rounding:
            raise ValueError(INDEFINITE.format(d[0], d[-1]))
        keep = d > d[-1] * cutoff(len(d))
        return (U if keep.all() else U[:, keep]), d[keep]


@dataclass(frozen=True)
class EdgeSet:
    """The edges between p conditioning and r ranked objects: a matrix Y where all are known, else a list.

    A sparse Y is complete too: what it does not store is zero.
    """

    shape: tuple[int, int]
    Y: Any = None
    rows: Any = None  # (q,) of a list
    columns: Any = None
    y: Any = None
    weights: np.ndarray | None = None  # (q,) of a list, (p,) of rows of a matrix
    free: np.ndarray | None = None  # (q, k) columns with a coefficient each that is not penalised

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
        """The same edges as a list, row by row."""
        if not self.complete:
            return self
        p, r = self.shape
        weights = None if self.weights is None else np.repeat(self.weights, r)
        rows, columns = np.repeat(np.arange(p), r), np.tile(np.arange(r), p)
        return EdgeSet(self.shape, None, rows, columns, dense(self.Y).ravel(), weights)

    def only(self, edges: np.ndarray) -> EdgeSet:
        """Some edges of a list, among the same objects."""
        pick = lambda values: None if values is None else values[edges]
        return EdgeSet(
            self.shape, None, self.rows[edges], self.columns[edges], self.y[edges], pick(self.weights), pick(self.free)
        )


@dataclass(frozen=True)
class Coefficients:
    """A (p, r) matrix of coefficients as the product left core right', never multiplied out."""

    left: np.ndarray  # (p, k)
    core: np.ndarray  # (k, l)
    right: np.ndarray  # (r, l)
    parity: int = 0

    @property
    def T(self) -> Coefficients:
        return Coefficients(self.right, self.core.T, self.left, self.parity)

    def toarray(self) -> np.ndarray:
        return part(self.left @ self.core @ self.right.T, self.parity)

    def between(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """A' a B; exactly symmetric or skew where a is and A is B."""
        return part(
            np.asarray(A.T @ self.left) @ self.core @ np.asarray(B.T @ self.right).T, self.parity if A is B else 0
        )

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """a 1 and a' 1."""
        one = self.left @ (self.core @ self.right.sum(axis=0)), self.right @ (self.left.sum(axis=0) @ self.core)
        return ((one[0] + self.parity * one[1]) / 2, (one[1] + self.parity * one[0]) / 2) if self.parity else one


def part(Y: Any, parity: int) -> Any:
    """The symmetric (1) or skew (-1) part of a matrix; all of it for 0."""
    return (Y + parity * Y.T) / 2 if parity else Y


def dense(A: Any) -> np.ndarray:
    """A as an array of its own numbers; sparse ones are filled in."""
    return A.toarray() if sparse.issparse(A) else np.asarray(A)
