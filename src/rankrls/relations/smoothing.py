"""The conditioning end of a complete relation: the residual of a column under its kernel G, (I + rho G)^-1 y.

In the eigenvectors of the ranked objects a complete relation splits into one ridge regression on G for each direction,
each with its own rho. Two classes represent G by an orthonormal `basis` (p, k), in which it is A (k, k):

    shrunk(E, rho, omega)    (k, n) column j of E times (I + rho_j A)^-1
    times(T)                 (k, n) A T
    kept(rho, rows)          (m, n) the diagonal of (I + rho_j G)^-1 for some objects: one minus their leverage
    leverages(rho, rows)     (m, n) the diagonal of G (I + rho_j G)^-1, exact where it is small

`Eigenbasis` uses the eigenvectors of G. If conditioning and ranked objects are the same, `Arrowhead` saves this second
eigendecomposition: with C K C = U diag(s) U', a kernel G = c K + constant has in the basis [U, 1 / sqrt(p)] the form

    A = [ diag(a)  b ]         (I + rho A)^-1 = [ diag(n)  0 ] + omega [ -rho n b ] [ -rho n b ]'
        [ b'       c ],                         [ 0        0 ]         [  1       ] [  1       ] ,

with n = 1 / (1 + rho a) and omega = 1 / (1 + rho (c - rho b'(n * b))), a function of rho that `shrunk` is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..core.means import Rows
from ..system.types import DTypeLike
from .relation import Domain


@dataclass(frozen=True)
class Eigenbasis:
    """G = V diag(g) V'."""

    basis: np.ndarray  # (p, k) V
    g: np.ndarray  # (k,)

    @classmethod
    def of(cls, G: Domain) -> Eigenbasis:
        return cls(*G.eigen())

    @property
    def largest(self) -> float:
        return float(self.g.max(initial=0.0))

    @property
    def trace(self) -> float:
        return float(self.g.sum())

    def cast(self, dtype: DTypeLike) -> Eigenbasis:
        return Eigenbasis(self.basis.astype(dtype), self.g.astype(dtype))

    def shrunk(self, E: np.ndarray, rho: np.ndarray, omega: np.ndarray | None = None) -> np.ndarray:
        M = np.multiply.outer(self.g, rho)
        M += 1
        return np.divide(E, M, out=M)

    def times(self, T: np.ndarray) -> np.ndarray:
        return self.g[:, None] * T

    def omega(self, rho: np.ndarray, rows: Rows | int = 0) -> np.ndarray:
        return np.ones((1, len(rho)))[rows]

    def rest(self, rho: np.ndarray, rows: Rows | int) -> np.ndarray:
        kept = self._square[rows] @ (1 / (1 + np.multiply.outer(self.g, rho)))
        return kept if self._outside is None else kept + self._outside[rows, None]

    def leverages(self, rho: np.ndarray, rows: Rows | int) -> np.ndarray:
        return self._square[rows] @ (self.g[:, None] / (1 + np.multiply.outer(self.g, rho)))

    @cached_property
    def _square(self) -> np.ndarray:
        return self.basis**2

    @cached_property
    def _outside(self) -> np.ndarray | None:
        """(p,) the share of each object outside the basis, which smoothing leaves unchanged."""
        full = self.basis.shape[0] == self.basis.shape[1]
        return None if full else np.maximum(0, 1 - self._square.sum(axis=1))


@dataclass(frozen=True)
class Arrowhead:
    """G = c K + constant, by the eigenvectors of C K C."""

    basis: np.ndarray  # (p, k) eigenvectors, then the constant direction
    a: np.ndarray  # (k - 1,)
    b: np.ndarray  # (k - 1,)
    c: Any  # a number

    @classmethod
    def of(cls, K: Domain, U: np.ndarray, s: np.ndarray, scale: float = 1.0, constant: float = 0.0) -> Arrowhead:
        """scale K + constant, given the eigenvectors and eigenvalues of C K C."""
        p = len(U)
        basis = np.asfortranarray(np.column_stack([U, np.full(p, 1 / np.sqrt(p))]))
        b = scale * np.sqrt(p) * (U.T @ K.mean)
        return cls(basis, scale * s, b, scale * float(K.mean.sum()) + p * constant)

    @property
    def largest(self) -> float:
        return max(float(self.a.max(initial=0.0)), float(self.c)) + float(np.linalg.norm(self.b))

    @property
    def trace(self) -> float:
        return float(self.a.sum()) + float(self.c)

    def cast(self, dtype: DTypeLike) -> Arrowhead:
        return Arrowhead(
            self.basis.astype(dtype), self.a.astype(dtype), self.b.astype(dtype), np.dtype(dtype).type(self.c)
        )

    def shrunk(self, E: np.ndarray, rho: np.ndarray, omega: np.ndarray) -> np.ndarray:
        N = np.multiply.outer(self.a, rho)
        N += 1
        np.reciprocal(N, out=N)
        T = np.empty_like(E)
        np.multiply(N, E[:-1], out=T[:-1])
        T[-1] = omega * (E[-1] - rho * (self.b @ T[:-1]))
        N *= np.multiply.outer(self.b, rho * T[-1])
        T[:-1] -= N
        return T

    def times(self, T: np.ndarray) -> np.ndarray:
        top = self.a[:, None] * T[:-1] + np.multiply.outer(self.b, T[-1])
        return np.vstack([top, self.b @ T[:-1] + self.c * T[-1]])

    def omega(self, rho: np.ndarray, rows: Rows | int = 0) -> np.ndarray:
        N = 1 / (1 + np.multiply.outer(self.a, rho))
        return (1 / (1 + rho * self._schur(rho, N)))[None][rows]

    def rest(self, rho: np.ndarray, rows: Rows | int) -> np.ndarray:
        N, one = 1 / (1 + np.multiply.outer(self.a, rho)), 1 / np.sqrt(len(self.basis))
        square, q = self._square[rows], self.basis[rows, :-1] @ (self.b[:, None] * N)
        kept = square @ N + (one - rho * q) ** 2 / (1 + rho * self._schur(rho, N))
        if self.basis.shape[0] != self.basis.shape[1]:
            kept += np.maximum(0, 1 - one**2 - square.sum(axis=1))[:, None]
        return kept

    def leverages(self, rho: np.ndarray, rows: Rows | int) -> np.ndarray:
        N, one = 1 / (1 + np.multiply.outer(self.a, rho)), 1 / np.sqrt(len(self.basis))
        q, schur = self.basis[rows, :-1] @ (self.b[:, None] * N), self._schur(rho, N)
        small = self._square[rows] @ (self.a[:, None] * N)
        small += (schur * one**2 + q * (2 * one - rho * q)) / (1 + rho * schur)
        kept = self.rest(rho, rows)
        return np.where(kept > 0.5, small, (1 - kept) / rho)  # the first loses digits if little is kept

    def _schur(self, rho: np.ndarray, N: np.ndarray) -> np.ndarray:
        return np.maximum(self.c - rho * (self.b**2 @ N), 0)

    @cached_property
    def _square(self) -> np.ndarray:
        return self.basis[:, :-1] ** 2


Smoother = Eigenbasis | Arrowhead
