"""Incomplete relations: matrix-free conjugate gradients over the edges there are.

Edges e = (h_e, i_e), e = 1..q, some perhaps several times. With B' putting a number per edge into a (p, r) matrix, and
F centring the edges of each row (ranking) or F = I (regression), the coefficients are a = F c with

    (F B (G kron K) B' F + alpha I) c = F y,

for symmetric and reciprocal relations with the symmetric or skew part of B' in the place of B'. The system is
positive definite, and one Krylov space serves every alpha. Products with G kron K read V = B'v at the edges of
G V K: through sparse V and only at the edges while these are few, through dense matrix products when they are many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..core.krylov import Product, Solution, multishift_cg, preconditioned_cg
from ..core.queries import Queries
from ..system.parallel import share
from .relation import Domain, part

SPARSE = 8  # a multiplication through the indices of V costs as much as this many in a dense matrix product
SAMPLED = 20  # one at an edge that is read, as much as this many
CELLS = 1 << 18  # numbers gathered at a time
DENSE_ENOUGH = 0.7  # share of edges known from which on the complete graph is worth its cost as a preconditioner


class EdgeKernel:
    """v -> the model with coefficient v_e at each edge e, as (G kron K) B' v, read at any edges."""

    def __init__(self, G: Domain, K: Domain, rows: np.ndarray, columns: np.ndarray, parity: int = 0):
        self.swapped = G.factored and not K.factored  # a kernel of low rank comes last: edges are read through it
        self.G, self.K = (K, G) if self.swapped else (G, K)
        self.rows, self.columns = (columns, rows) if self.swapped else (rows, columns)
        self.shape = (len(self.G), len(self.K))
        self.parity = parity
        self.sparse = len(rows) * SPARSE < self.shape[0] * self.shape[1]
        placed, across = self.rows, self.columns
        if parity:
            placed, across = np.concatenate([placed, across]), np.concatenate([across, placed])
        self.order = np.argsort(placed, kind="stable")
        self.indices = across[self.order]
        self.start = np.concatenate([[0], np.cumsum(np.bincount(placed, minlength=self.shape[0]))])

    def matrix(self, v: np.ndarray) -> sparse.csr_array:
        """(p, r) V, numbers of repeated edges not yet added up; its symmetric or skew part if that is wanted."""
        if self.parity:
            v = np.concatenate([v, self.parity * v]) / 2
        return sparse.csr_array((v[self.order], self.indices, self.start), shape=self.shape)

    def coef(self, v: np.ndarray) -> Any:
        """(p, r) the coefficients as a matrix, sparse where few edges are known."""
        if self.sparse:
            V = self.matrix(v).copy()  # the indices are the kernel's own
            V.sum_duplicates()
        else:
            V = self.matrix(v).toarray()
        return V.T if self.swapped else V

    def half(self, v: np.ndarray) -> np.ndarray:
        """(p, rank of K or r) M such that the scores are M K.array'."""
        V = self.matrix(v)
        if self.K.factored:
            core = V @ self.K.array
            return self.G.array @ (self.G.array.T @ core if self.G.factored else core)
        if self.sparse:
            return np.ascontiguousarray((V.T @ self.G.array).T)
        return self.G.array @ V.toarray()

    def at(self, v: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Scores of any edges."""
        if self.swapped:
            rows, columns = columns, rows
        M = self.half(v)
        if len(rows) * SAMPLED < self.shape[0] * self.shape[1]:
            return sampled(M, self.K.array, rows, columns)
        return (M @ self.K.array.T)[rows, columns]

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Scores of the edges themselves."""
        return self.at(v, *((self.columns, self.rows) if self.swapped else (self.rows, self.columns)))


def sampled(A: np.ndarray, B: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(q,) elements (rows, columns) of A B', a block of edges at a time."""
    out = np.empty(len(rows))
    step = max(1, CELLS // max(1, A.shape[1]))
    blocks = [slice(i, i + step) for i in range(0, len(rows), step)]

    def work(some: Any) -> None:
        for block in some:
            left, right = A.take(rows[block], axis=0), B.take(columns[block], axis=0)
            np.einsum("ij,ij->i", left, right, out=out[block])

    share(work, blocks, cost=len(rows) * A.shape[1], label="scores of edges")
    return out


@dataclass(frozen=True)
class Graph:
    """Least squares over the edges of an incomplete relation."""

    G: Domain
    K: Domain
    rows: np.ndarray  # (q,) conditioning object of each edge
    columns: np.ndarray  # (q,) ranked object
    y: np.ndarray  # (q,)
    ranking: bool
    parity: int = 0
    tol: float = 1e-6
    max_iter: int = 1000

    @cached_property
    def kernel(self) -> EdgeKernel:
        return EdgeKernel(self.G, self.K, self.rows, self.columns, self.parity)

    @cached_property
    def queries(self) -> Queries:
        return Queries.of(self.rows)

    def centre(self, v: np.ndarray) -> np.ndarray:
        """F v."""
        if not self.ranking:
            return v
        return v - (self.queries.sum(v) / self.queries.sizes)[self.queries.codes]

    def product(self, v: np.ndarray) -> np.ndarray:
        return self.centre(self.kernel(self.centre(v)))

    @property
    def spread(self) -> float:
        """The mean eigenvalue of the loss, the kernel's parity left aside."""
        g, k = self.G.diagonal[self.rows], self.K.diagonal[self.columns]
        total = float(g @ k)
        if self.ranking:  # less the mean of each row
            codes, sizes = self.queries.codes, self.queries.sizes
            mean = sparse.csr_array((1 / sizes[codes], (codes, self.columns)), shape=(len(sizes), len(self.K)))
            M = mean @ self.K.array
            of_mean = sampled(M, self.K.array, codes, self.columns) if self.K.factored else M[codes, self.columns]
            total -= float(g @ of_mean)
        return total / len(self.y)

    def restrict(self, edges: np.ndarray) -> Graph:
        """Some of the edges among the same objects."""
        return Graph(
            self.G, self.K, self.rows[edges], self.columns[edges], self.y[edges], self.ranking, self.parity,
            self.tol, self.max_iter,
        )  # fmt: skip

    @property
    def nearly_complete(self) -> bool:
        """Whether so few edges are missing that preconditioning pays."""
        return len(self.y) > DENSE_ENOUGH * len(self.G) * len(self.K)

    def solve(self, alphas: np.ndarray, *, preconditioned: bool = False) -> Solution:
        """(q, k) the coefficients of the edges for each alpha."""
        z = self.centre(self.y)
        if not preconditioned:
            found = multishift_cg(self.product, z, alphas, tol=self.tol, maxiter=self.max_iter)
        else:
            found = self._one_by_one(z, alphas)
        if self.ranking:
            value = np.column_stack([self.centre(c) for c in found.value.T])
            found = Solution(value, found.residual, found.iterations, found.converged, found.history)
        return found

    def _one_by_one(self, z: np.ndarray, alphas: np.ndarray) -> Solution:
        """From the largest alpha down, each from where the last one ended."""
        inverse = Complete(self)
        value, residual, steps, history = np.empty((len(z), len(alphas))), np.empty(len(alphas)), 0, []
        last = None
        for j in np.argsort(-alphas):
            found = preconditioned_cg(
                self.product, z, alphas[j], inverse.at(alphas[j]), start=last, tol=self.tol, maxiter=self.max_iter
            )
            last = value[:, j] = found.value[:, 0]
            residual[j], steps = found.residual[0], steps + found.iterations
            history.append(found.history)
        return Solution(value, residual, steps, bool(residual.max() <= self.tol), np.concatenate(history))


class Complete:
    """The inverse for the complete graph, read at the edges there are, as a preconditioner.

    The exact inverse differs from it by a correction whose rank is the number of edges that are missing.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.V, self.g = graph.G.eigen()
        self.U, self.s = graph.K.eigen(centred=graph.ranking)

    def at(self, alpha: float) -> Product:
        graph, kernel = self.graph, self.graph.kernel
        shrink = np.outer(self.g, self.s)
        shrink /= shrink + alpha  # (M + alpha)^-1 = (I - M / (M + alpha)) / alpha

        def apply(v: np.ndarray) -> np.ndarray:
            M = kernel.matrix(v).toarray()
            M = M.T if kernel.swapped else M
            M = self.V @ (shrink * (self.V.T @ M @ self.U)) @ self.U.T
            return graph.centre((v - part(M, graph.parity)[graph.rows, graph.columns]) / alpha)

        return apply
