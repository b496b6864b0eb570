"""Relations between objects, and complete ones in closed form.

A relation Y (p, r) has a row for each conditioning object (kernel G among them) and a column for each object to be
ranked (kernel K). The kernel of two edges is the product of the kernels of their ends, so a model is a matrix of
coefficients a with scores f = G a K, and the objective is, C centring each row where only the order within a row
counts (ranking) and C = I where values do (regression),

    ||(Y - G a K) C||^2 + alpha <a, G a K>.

With G = V diag(g) V' and C K C = U diag(s) U' every alpha is two matrix products away:

    a = V [ (V' Y C U) / (g s' + alpha) ] U'.

A symmetric or reciprocal model has a = a' or a = -a'. In regression it is the model of the symmetric or skew part of
Y. In ranking, centring rows is not the same as centring columns and the two do not commute; but K - C K C has rank
one up to a symmetrisation, so that with K = V diag(k) V' and w = V'1 / sqrt(p) the solution a = V B V' has

    B = (E + (t w' ± w t') / 2) * D,      E the symmetric (skew) part of V' Y C V,

and t, the one thing that couples the elements of B, solves a positive definite system with p unknowns:

    [ diag(1 - k * D (k w^2) / 2) ∓ (k w)(k w)' * D / 2 ] t = k * (E * D) (k w),      D = 1 / (k k' + alpha).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from ..system.parallel import n_threads, share
from .relation import Domain, part

ROWS = 2000  # left out at a time, at most
INTERPOLATED = 256  # beyond this many eigenvalues leverages are interpolated


def complete_graph(G: Domain, K: Domain, Y: np.ndarray, *, ranking: bool, parity: int = 0) -> Kronecker | Mirrored:
    """The path of solutions of a complete graph."""
    if ranking and parity:
        return Mirrored(K, Y, parity)
    return Kronecker(G, K, part(Y, parity), ranking=ranking, parity=parity)


class Kronecker:
    """Every alpha of a complete graph, and the exact hold-out of each of its rows."""

    def __init__(self, G: Domain, K: Domain, Y: np.ndarray, *, ranking: bool, parity: int = 0):
        if ranking:
            Y = Y - Y.mean(axis=1, keepdims=True)
        self.parity = parity
        self.V, self.g = G.eigen()
        self.U, self.s = (self.V, self.g) if K is G and not ranking else K.eigen(centred=ranking)
        self.YU = Y @ self.U  # (p, rank of K)
        self.E = self.V.T @ self.YU
        self.spread = float(self.g.sum() * self.s.sum()) / Y.size

    def coef(self, alpha: float) -> np.ndarray:
        """(p, r) the coefficients a at alpha."""
        a = self.V @ (self.E / (np.outer(self.g, self.s) + alpha)) @ self.U.T
        return part(a, self.parity)

    def leave_rows_out(self, alphas: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """(k, p, r) the scores of each row by the model that never saw it, up to a constant each, for each alpha.

        With H = g s' / (g s' + alpha), the residual of all rows is R U = (Y U - V E) + V ((1 - H) * E), and leaving
        out row h divides its element j by 1 - sum_i H[i, j] V[h, i]^2.
        """
        V, E, YU, U = (np.ascontiguousarray(M, dtype=dtype) for M in (self.V, self.E, self.YU, self.U))
        outside = None if self._full else (self.YU - self.V @ self.E).astype(dtype)
        scores = np.empty((len(alphas), len(V), len(U)), dtype=dtype)
        stays = list(self._one_less_leverage(alphas, dtype))

        def leave_out(blocks: Any) -> None:
            for rows in blocks:
                for number, alpha in enumerate(alphas):
                    M = np.outer(self.g.astype(dtype), (self.s / alpha).astype(dtype))
                    M += 1
                    R = V[rows] @ np.divide(E, M, out=M)
                    if outside is not None:
                        R += outside[rows]
                    R /= stays[number](rows)
                    np.subtract(YU[rows], R, out=R)
                    np.matmul(R, U.T, out=scores[number, rows])

        step = max(1, min(ROWS, -(-len(V) // n_threads())))
        blocks = [slice(i, i + step) for i in range(0, len(V), step)]
        share(leave_out, blocks, cost=scores.size, label="objects left out")
        return scores

    @property
    def _full(self) -> bool:
        """Whether G has full rank."""
        return self.V.shape[0] == self.V.shape[1]

    def _one_less_leverage(self, alphas: np.ndarray, dtype: Any) -> Iterator[Callable[[slice], np.ndarray]]:
        """For each alpha, of some rows h (p, rank of K) 1 - sum_i V[h, i]^2 g_i s_j / (g_i s_j + alpha).

        Of alpha and j this depends by x = log(s_j / alpha) alone: a smooth function of one number for each row h,
        whose logarithm is analytic in the strip |Im x| < pi. Where there are more eigenvalues than a Chebyshev
        interpolant needs nodes for twelve digits (seven in single precision), it is evaluated at the nodes.
        """
        square = self.V**2
        rest = np.zeros(len(square)) if self._full else np.maximum(0, 1 - square.sum(axis=1))
        at = lambda x, rows: square[rows] @ (1 / (1 + np.outer(self.g, np.exp(x)))) + rest[rows, None]
        flat = np.log(1e-18 / self.g.max(initial=1e-300))  # below this the leverage is zero
        log_s = np.log(self.s)
        low = max(flat, log_s.min(initial=0) - np.log(alphas.max()))
        high = log_s.max(initial=0) - np.log(alphas.min())
        digits = 13.0 if dtype == np.float64 else 8.0
        many = high > low and len(self.g) > INTERPOLATED
        nodes = Chebyshev.on(low, high, strip=np.pi, digits=digits) if many else None
        values: Any = None if nodes is None else np.log(at(nodes.x, slice(None))).astype(dtype)
        for alpha in alphas:
            x = np.maximum(log_s - np.log(alpha), flat)
            if nodes is None:
                yield lambda rows, x=x: at(x, rows).astype(dtype)  # type: ignore[misc]
            else:
                weights = nodes.matrix(np.clip(x, low, high)).astype(dtype)
                yield lambda rows, weights=weights: np.exp(values[rows] @ weights)  # type: ignore[misc]


class Mirrored:
    """Every alpha of symmetric (parity 1) or reciprocal (-1) ranking on a complete graph."""

    def __init__(self, K: Domain, Y: np.ndarray, parity: int):
        self.parity = parity
        self.V, self.k = K.eigen()
        n = len(Y)
        self.E = part(self.V.T @ (Y - Y.mean(axis=1, keepdims=True)) @ self.V, parity)
        self.w = self.V.sum(axis=0) / np.sqrt(n)
        self.spread = float(self.k.sum() * (self.k.sum() - self.k @ self.w**2)) / n**2

    def coef(self, alpha: float) -> np.ndarray:
        """(p, p) the coefficients a at alpha."""
        k, w, sign = self.k, self.w, self.parity
        kw = k * w
        D = 1 / (np.outer(k, k) + alpha)
        Q = (-sign / 2) * np.outer(kw, kw) * D
        Q[np.diag_indices_from(Q)] += 1 - k * (D @ (kw * w)) / 2
        rhs = k * ((self.E * D) @ kw)
        try:
            t = linalg.solve(Q, rhs, assume_a="pos", check_finite=False)
        except linalg.LinAlgError:  # alpha is so small that a shift of all scores, which no ranking sees, is free
            t = linalg.lstsq(Q, rhs, check_finite=False)[0]
        outer = np.outer(t, w)
        B = (self.E + (outer + sign * outer.T) / 2) * D
        return part(self.V @ B @ self.V.T, sign)


@dataclass(frozen=True)
class Chebyshev:
    """Interpolation of analytic functions between two ends."""

    low: float
    high: float
    x: np.ndarray  # (n,) nodes

    @classmethod
    def on(cls, low: float, high: float, *, strip: float, digits: float) -> Chebyshev:
        """Nodes enough for functions that are analytic up to a distance `strip` from the real axis."""
        rate = np.arcsinh(2 * strip / (high - low))  # a Chebyshev series decays like exp(-rate n)
        n = int(np.ceil(digits * np.log(10) / rate)) + 2
        t = np.cos(np.pi * (np.arange(n) + 0.5) / n)
        return cls(low, high, low + (high - low) * (t + 1) / 2)

    @cached_property
    def _of_nodes(self) -> np.ndarray:
        """(n, n) from values at the nodes to Chebyshev coefficients."""
        n = len(self.x)
        C = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(n)) / n) * (2 / n)
        C[:, 0] /= 2
        return C

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """(n, len(x)) such that values at the nodes times it are values at x."""
        t = np.arccos(np.clip(2 * (x - self.low) / (self.high - self.low) - 1, -1, 1))
        return self._of_nodes @ np.cos(np.outer(np.arange(len(self.x)), t))
