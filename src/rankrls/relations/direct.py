"""Edges with few features, solved directly in the space of these features instead of iteratively.

The score of an edge is linear in phi, made of the features x and z of its ends: all products of the two and, where the
kernel of edges is a sum, x and z side by side. In symmetric and reciprocal relations these reduce to the products
x_i z_j ± x_j z_i with i <= j, and to x ± z. The kernel of the edges is M = Phi Phi', and with A = F Phi (F the square
root of the loss, z = F y)
z = F y)

    (F M F' + alpha I) c = z      has      c = (z - A w) / alpha,      (A'A + alpha I) w = A'z.

One factorisation of A'A serves every alpha. Games suit this: there are many, while players have few features, or one
each if only their names are known. Conjugate gradients would need a thousand iterations if some players hardly meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..core.symmetric import solve_path
from .loss import EdgeLoss
from .relation import Domain, EdgeSet, Pairwise, dense

MOST = 2500  # features of an edge, if they are those of its ends side by side
MULTIPLICATIONS = 4e10  # limit for A'A and its factor, if there are products
CELLS = 1 << 21  # cells of Phi at a time


@dataclass(frozen=True)
class EdgeFeatures:
    """Phi (q, D), computed a block of edges at a time."""

    left: Any  # (p, d) features of the objects at one end, dense or sparse
    right: Any
    rows: np.ndarray  # (q,)
    columns: np.ndarray
    parity: int
    pairwise: Pairwise
    cells: int = CELLS

    @classmethod
    def of(cls, G: Domain, K: Domain, edges: EdgeSet, parity: int, pairwise: Pairwise) -> EdgeFeatures | None:
        """Phi; None if it has too many columns, or if the relation needs equal effects of both ends and has others."""
        alike = pairwise.source == pairwise.target or not parity
        if not (G.factored and K.factored and alike):
            return None
        found = cls(G.array, K.array, edges.rows, edges.columns, parity, pairwise)
        q, size = len(edges.y), float(found.size)
        few = q * size**2 + 10 * size**3 <= MULTIPLICATIONS if pairwise.product else size <= MOST
        return found if few and 0 < size <= q else None

    @property
    def size(self) -> int:
        """D, the number of features."""
        d, e = self.left.shape[1], self.right.shape[1]
        products = d * e if not self.parity else d * (d + self.parity) // 2
        ends = d if self.parity else d + e
        return products * bool(self.pairwise.product) + ends * bool(self.pairwise.source or self.pairwise.target)

    def __getitem__(self, some: Any) -> Any:
        """(n, D) the features of some edges; sparse if the ends' features are and there are no products."""
        x, z, pairwise = self.left[self.rows[some]], self.right[self.columns[some]], self.pairwise
        parts = []
        if pairwise.product:
            x, z = dense(x), dense(z)
            parts.append(np.sqrt(pairwise.product) * self._products(x, z))
        if (pairwise.source or pairwise.target) and self.parity:
            parts.append(np.sqrt(pairwise.source / 2) * (x + self.parity * z))
        elif pairwise.source or pairwise.target:
            parts += [np.sqrt(pairwise.source) * x, np.sqrt(pairwise.target) * z]
        if any(map(sparse.issparse, parts)):
            return sparse.hstack(parts, format="csr")
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def _products(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        if not self.parity:
            return (x[:, :, None] * z[:, None, :]).reshape(len(x), -1)
        i, j = np.triu_indices(x.shape[1], 0 if self.parity == 1 else 1)
        both = x[:, i] * z[:, j] + self.parity * x[:, j] * z[:, i]
        return both * np.where(i == j, 0.5, np.sqrt(0.5))

    def blocks(self, codes: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """Yield edge numbers in blocks; edges with the same code stay together."""
        q, step = len(self.rows), max(1, self.cells // self.size)
        order = np.arange(q) if codes is None else np.argsort(codes, kind="stable")
        ends = np.arange(step, q, step)
        if codes is not None:
            ends = np.unique(np.searchsorted(codes[order], codes[order[ends]], side="right"))
        return (some for some in np.split(order, ends) if len(some))

    def dot(self, W: np.ndarray) -> np.ndarray:
        """Phi W."""
        out = np.empty((len(self.rows), W.shape[1]))
        for some in self.blocks():
            out[some] = self[some] @ W
        return out

    def transposed_dot(self, v: np.ndarray) -> np.ndarray:
        """Phi'v."""
        return np.sum([self[some].T @ v[some] for some in self.blocks()], axis=0)

    def gram(self, loss: EdgeLoss) -> np.ndarray:
        """A'A = Phi'F'F Phi."""
        total, free = np.zeros((self.size, self.size)), []
        for some in self.blocks(loss.queries.codes if loss.ranking else None):
            S = self[some]
            if loss.scale is not None:
                S = sparse.diags_array(loss.scale[some]) @ S if sparse.issparse(S) else S * loss.scale[some][:, None]
            for B in loss.of_rows(some):
                M = dense(B.T @ S)
                if sparse.issparse(S):
                    total -= M.T @ M
                else:
                    S = S - B @ M
            total += dense(S.T @ S)
            free.append(dense(loss.of_free(some).T @ S))
        M = np.sum(free, axis=0)
        return total - M.T @ M


def solve(phi: EdgeFeatures, loss: EdgeLoss, y: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """(q, k) the coefficients F'c of the edges for each alpha."""
    z = loss.forward(y)
    W = solve_path(phi.gram(loss), alphas, phi.transposed_dot(loss.back(z)))
    scores = phi.dot(W)
    return np.column_stack([loss.back((z - loss.forward(f)) / a) for f, a in zip(scores.T, alphas, strict=True)])
