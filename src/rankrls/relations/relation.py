"""The parts of a relation: its two domains of objects and its edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from ..core.ridge import INDEFINITE, cutoff, eigh

Eigen = tuple[np.ndarray, np.ndarray]  # orthonormal columns and positive numbers


@dataclass(frozen=True)
class Domain:
    """The kernel among n objects: the matrix itself, or `factored` an (n, d) array whose outer product it is."""

    array: np.ndarray
    factored: bool = False

    def __len__(self) -> int:
        return len(self.array)

    def between(self, rows: Any, columns: Any) -> np.ndarray:
        """The kernel between some objects and others."""
        return self.array[rows] @ self.array[columns].T if self.factored else self.array[np.ix_(rows, columns)]

    def restrict(self, rows: np.ndarray) -> Domain:
        """The kernel among some of the objects."""
        return Domain(self.array[rows], True) if self.factored else Domain(self.array[np.ix_(rows, rows)])

    @property
    def diagonal(self) -> np.ndarray:
        return np.einsum("ij,ij->i", self.array, self.array) if self.factored else np.diagonal(self.array)

    def eigen(self, *, centred: bool = False) -> Eigen:
        """Eigenvectors (n, rank) and positive eigenvalues, of the kernel or of C kernel C."""
        A = self.array
        if self.factored:
            R, triangle = linalg.qr(A - A.mean(axis=0) if centred else A, mode="economic", check_finite=False)
            U, root, _ = linalg.svd(triangle, check_finite=False)
            keep = root**2 > (root[0] ** 2 if len(root) else 0) * cutoff(len(A))
            return R @ U[:, keep], root[keep] ** 2
        if centred:
            mean = A.mean(axis=0)
            A = A - mean
            A -= mean[:, None]
            A += mean.mean()
        d, U = eigh(A, overwrite=centred)
        if d[0] < -1e-6 * abs(d[-1]):
            raise ValueError(INDEFINITE.format(d[0], d[-1]))
        keep = d > d[-1] * cutoff(len(d))
        return (U if keep.all() else U[:, keep]), d[keep]


@dataclass(frozen=True)
class Relation:
    """Edges between p conditioning and r ranked objects: a dense matrix Y where all are known, else a list."""

    shape: tuple[int, int]
    Y: np.ndarray | None
    rows: np.ndarray | None = None  # (q,) of an incomplete graph
    columns: np.ndarray | None = None
    y: np.ndarray | None = None

    @property
    def T(self) -> Relation:
        """The relation seen from the other end."""
        return Relation(self.shape[::-1], None if self.Y is None else self.Y.T, self.columns, self.rows, self.y)

    @property
    def n_edges(self) -> int:
        return self.shape[0] * self.shape[1] if self.y is None else len(self.y)

    def edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and values, of a complete graph too."""
        if self.Y is None:
            return self.rows, self.columns, self.y  # type: ignore[return-value]
        p, r = self.shape
        return np.repeat(np.arange(p), r), np.tile(np.arange(r), p), self.Y.ravel()


def part(Y: np.ndarray, parity: int) -> np.ndarray:
    """The symmetric (1) or skew (-1) part of a matrix; all of it for 0."""
    return (Y + parity * Y.T) / 2 if parity else Y
