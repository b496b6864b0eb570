"""Sums over lists of edges, added up block by block, from which a linear relation can be learned.

A model with weights w scores an edge (x, z) by w'phi(x, z), phi = (psi(x, z) ± psi(z, x)) / 2 for symmetric and
reciprocal relations and psi otherwise, where psi stacks the product x kron z and the single ends. Its loss needs

    P = sum u phi phi' - sum over rows h of S_h phi_h phi_h',      b = sum u y phi - sum over h of t_h phi_h,

with u the weights of edges, S_h and t_h the sums of u and u y over a row, and phi_h the mean of phi over it; the second
terms occur only in ranking. phi is linear in z, so phi_h is phi of x_h and the mean of z: a row needs only S_h, t_h and
the sum of u z, and everything adds up over blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .games import EdgeList
from .relation import Pairwise

CELLS = 1 << 22  # numbers of phi in memory at a time


@dataclass(frozen=True)
class PairMap:
    """phi of edges between objects with features X (p, d) and Z (r, e)."""

    X: np.ndarray
    Z: np.ndarray
    pairwise: Pairwise
    parity: int = 0

    @property
    def size(self) -> int:
        d, e = self.X.shape[1], self.Z.shape[1]
        return (d * e if self.pairwise.product else 0) + (d + e if self.pairwise.source or self.pairwise.target else 0)

    def _psi(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        parts, kernel = [], self.pairwise
        if kernel.product:
            parts.append(np.sqrt(kernel.product) * np.einsum("ij,ik->ijk", x, z).reshape(len(x), -1))
        if kernel.source or kernel.target:
            parts += [np.sqrt(kernel.source) * x, np.sqrt(kernel.target) * z]
        return np.hstack(parts)

    def __call__(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(q, D) phi of the features of both ends."""
        if not self.parity:
            return self._psi(x, z)
        return (self._psi(x, z) + self.parity * self._psi(z, x)) / 2

    def weights(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """W (d, e) of the product, and weights v and u of the single ends: scores are x'Wz + x'v + z'u."""
        d, e = self.X.shape[1], self.Z.shape[1]
        kernel, sign = self.pairwise, self.parity
        W, rest = np.zeros((d, e)), w
        if kernel.product:
            W, rest = np.sqrt(kernel.product) * w[: d * e].reshape(d, e), w[d * e :]
            W = (W + sign * W.T) / 2 if sign else W
        if not len(rest):
            return W, None, None
        v, u = np.sqrt(kernel.source) * rest[:d], np.sqrt(kernel.target) * rest[d:]
        return (W, (v + sign * u) / 2, (u + sign * v) / 2) if sign else (W, v, u)


@dataclass
class EdgeSums:
    """The sums of some edges."""

    map: PairMap
    ranking: bool
    gram: np.ndarray
    vector: np.ndarray
    yy: float
    count: int
    mass: np.ndarray  # (p,) S
    total: np.ndarray  # (p,) t
    ends: np.ndarray  # (p, e) sum of u z

    @classmethod
    def nothing(cls, map: PairMap, *, ranking: bool) -> EdgeSums:
        D, p = map.size, len(map.X) if ranking else 0
        e = map.Z.shape[1] if ranking else 0
        return cls(
            map, ranking, np.zeros((D, D)), np.zeros(D), 0.0, 0, np.zeros(p), np.zeros(p), np.zeros((p, e))
        )  # fmt: skip

    def add(self, edges: EdgeList) -> EdgeSums:
        """Add more edges in place, and return self."""
        step = max(1, CELLS // max(1, self.map.size))
        for i in range(0, len(edges), step):
            some = edges.only(slice(i, i + step))
            u = np.ones(len(some)) if some.weights is None else some.weights
            z = self.map.Z[some.columns]
            phi = self.map(self.map.X[some.rows], z)
            self.gram += (phi * u[:, None]).T @ phi
            self.vector += phi.T @ (u * some.y)
            self.yy += float(np.sum(u * some.y**2))
            if self.ranking:
                n = len(self.mass)
                self.mass += np.bincount(some.rows, weights=u, minlength=n)
                self.total += np.bincount(some.rows, weights=u * some.y, minlength=n)
                np.add.at(self.ends, some.rows, u[:, None] * z)
        self.count += len(edges)
        return self

    def __add__(self, other: EdgeSums) -> EdgeSums:
        return EdgeSums(
            self.map, self.ranking, self.gram + other.gram, self.vector + other.vector, self.yy + other.yy,
            self.count + other.count, self.mass + other.mass, self.total + other.total, self.ends + other.ends,
        )  # fmt: skip

    def quadratic(self) -> tuple[np.ndarray, np.ndarray, float]:
        """P (D, D), b (D,) and c with the loss w'Pw - 2 w'b + c."""
        P, b, c = self.gram.copy(), self.vector.copy(), self.yy
        rows = np.flatnonzero(self.mass > 0) if self.ranking else np.empty(0, dtype=np.intp)
        step = max(1, CELLS // max(1, self.map.size))
        for i in range(0, len(rows), step):
            h = rows[i : i + step]
            S, t = self.mass[h], self.total[h]
            phi = self.map(self.map.X[h], self.ends[h] / S[:, None])
            P -= (phi * S[:, None]).T @ phi
            b -= phi.T @ t
            c -= float(np.sum(t**2 / S))
        return (P + P.T) / 2, b, c


@dataclass
class ZeroSums:
    """The sums of edges when all other edges are zero: Y Z of the rows that have an edge, and the total of each row.

    A complete relation with linear features needs nothing else from Y, only products with directions of Z.
    """

    Z: np.ndarray  # (r, e)
    rows: np.ndarray  # (n,) row numbers of Y
    products: np.ndarray  # (n, e)
    totals: np.ndarray  # (n,)
    count: int

    @classmethod
    def of(cls, edges: EdgeList, Z: np.ndarray) -> ZeroSums:
        u = edges.y if edges.weights is None else edges.y * edges.weights
        rows, place = np.unique(edges.rows, return_inverse=True)
        Y = sparse.csr_array((u, (place, edges.columns)), shape=(len(rows), len(Z)))
        return cls(Z, rows, Y @ Z, np.asarray(Y.sum(axis=1)).ravel(), len(edges))

    def __add__(self, other: ZeroSums) -> ZeroSums:
        rows = np.union1d(self.rows, other.rows)
        found = ZeroSums(
            self.Z, rows, np.zeros((len(rows), self.Z.shape[1])), np.zeros(len(rows)), self.count + other.count
        )
        for part in (self, other):
            at = np.searchsorted(rows, part.rows)
            found.products[at] += part.products
            found.totals[at] += part.totals
        return found


@dataclass(frozen=True)
class SummedRelation:
    """A relation Y (p, r) known only by its sums, so that it can be multiplied only by directions of Z."""

    sums: ZeroSums
    shape: tuple[int, int]

    def __matmul__(self, U: np.ndarray) -> np.ndarray:
        """Y U for orthogonal directions U = Z M of features Z, or of Z minus its mean: M = Z'U / |Z'U|^2."""
        Z, out = self.sums.Z, np.zeros((self.shape[0], U.shape[1]))
        centred = bool(np.abs(U.sum(axis=0)).max(initial=0) < 1e-6)
        mean = Z.mean(axis=0) if centred else np.zeros(Z.shape[1])
        A = Z.T @ U - np.outer(mean, U.sum(axis=0))
        M = A / np.sum(A**2, axis=0)
        out[self.sums.rows] = (self.sums.products - np.outer(self.sums.totals, mean)) @ M
        return out


def path(P: np.ndarray, b: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """(D, k) the weights of each alpha."""
    from ..core.symmetric import eigh

    d, U = eigh(P)
    z = U.T @ b
    return np.column_stack([U @ (z / (np.maximum(d, 0) + alpha)) for alpha in alphas])


def held_out_losses(parts: list[EdgeSums], alphas: np.ndarray) -> np.ndarray:
    """(k,) the loss per edge of each fold under the model of all others, for each alpha."""
    losses = np.zeros(len(alphas))
    for k, part in enumerate(parts):
        rest = parts[:k] + parts[k + 1 :]
        P, b, _ = sum(rest[1:], rest[0]).quadratic()
        Pk, bk, ck = part.quadratic()
        W: Any = path(P, b, alphas)
        losses += np.einsum("ij,ij->j", W, Pk @ W) - 2 * bk @ W + ck
    return losses / max(1, sum(part.count for part in parts))
