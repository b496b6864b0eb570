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

Leaving out row h of a complete relation divides element j of its residual by

    1 - sum_i V[h, i]^2 g_i s_j / (g_i s_j + alpha),

which depends on j and alpha only through x = log(s_j / alpha): for each row it is a smooth function of one number,
whose logarithm is analytic in the strip |Im x| < pi. If there are more eigenvalues than nodes that a Chebyshev
interpolant needs for twelve digits (seven in single precision), it is evaluated only at the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..core.means import Rows
from ..system.lazy import cached_property
from ..system.types import DTypeLike
from .relation import Domain

OfRows = Callable[..., np.ndarray]
INTERPOLATE = 256  # leverages are interpolated if there are more eigenvalues than this


@dataclass(frozen=True)
class Eigenbasis:
    """G = V diag(g) V'."""

    basis: np.ndarray  # (p, k) V
    g: np.ndarray  # (k,)

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


def over_alphas(
    functions: Sequence[Callable[[np.ndarray, Any], np.ndarray]], left: Smoother, s: np.ndarray, alphas: np.ndarray,
    dtype: DTypeLike, interpolate: int = INTERPOLATE,
) -> list[list[OfRows]]:  # fmt: skip
    """For each function of (rho, rows) and each alpha, a function of rows at rho = s / alpha, or some of its columns.

    The functions are interpolated in log(rho) if there are many eigenvalues.
    """
    flat = np.log(1e-18 / max(left.largest, 1e-300))  # below this the leverage is zero
    log_s = np.log(s)
    low = max(flat, log_s.min(initial=0) - np.log(alphas.max()))
    high = log_s.max(initial=0) - np.log(alphas.min())
    xs = [np.maximum(log_s - np.log(alpha), flat) for alpha in alphas]
    if high <= low or left.basis.shape[1] <= interpolate:
        exact = lambda at, x, rows, columns=slice(None): at(np.exp(x[columns]), rows).astype(dtype)
        return [[partial(exact, at, x) for x in xs] for at in functions]
    nodes = Chebyshev.on(low, high, strip=np.pi, digits=13.0 if dtype == np.float64 else 8.0)
    weights = [nodes.matrix(np.clip(x, low, high)).astype(dtype) for x in xs]
    rho, everybody = np.exp(nodes.x), slice(None)
    logs = [np.log(np.maximum(at(rho, everybody), 1e-300)).astype(dtype) for at in functions]
    return [[partial(_interpolated, log, W) for W in weights] for log in logs]


def _interpolated(log: np.ndarray, weights: np.ndarray, rows: Any, columns: Any = slice(None)) -> np.ndarray:
    found = log[rows] @ weights[:, columns]
    return np.exp(found, out=found)


@dataclass(frozen=True)
class Chebyshev:
    """Interpolation of analytic functions on an interval."""

    low: float
    high: float
    x: np.ndarray  # (n,) nodes

    @classmethod
    def on(cls, low: float, high: float, *, strip: float, digits: float) -> Chebyshev:
        """Enough nodes for functions that are analytic up to a distance `strip` from the real axis."""
        rate = np.arcsinh(2 * strip / (high - low))  # a Chebyshev series decays like exp(-rate n)
        n = int(np.ceil(digits * np.log(10) / rate)) + 2
        t = np.cos(np.pi * (np.arange(n) + 0.5) / n)
        return cls(low, high, low + (high - low) * (t + 1) / 2)

    @cached_property
    def _of_nodes(self) -> np.ndarray:
        """(n, n) takes values at the nodes to Chebyshev coefficients."""
        n = len(self.x)
        C = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(n)) / n) * (2 / n)
        C[:, 0] /= 2
        return C

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """(n, len(x)) such that values at the nodes times it are values at x."""
        t = np.arccos(np.clip(2 * (x - self.low) / (self.high - self.low) - 1, -1, 1))
        return self._of_nodes @ np.cos(np.outer(np.arange(len(self.x)), t))
