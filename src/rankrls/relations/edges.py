"""Incomplete relations: conjugate gradients over the known edges, without a matrix of edges by edges.

Edges e = (h_e, i_e), e = 1..q, may repeat. B' puts a number per edge into a (p, r) matrix, and F is the square root of
the loss (see `loss`). The coefficients of the edges are F'c with

    (F M F' + alpha I) c = F y,      M = B (G kron K) B',

for symmetric and reciprocal relations with the symmetric or skew part of B' in place of B'. The system is positive
definite, and one Krylov space serves every alpha. Products with M evaluate G V K, V = B'v, at the edges: with sparse V
and only at the edges if there are few, by dense matrix products if there are many. A `Pairwise` kernel may add effects
of single ends, b G kron 1 + c 1 kron K.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..core.krylov import Product, Solution, conjugate_residuals, multishift_cg, preconditioned_cg
from ..system.lazy import cached_property
from ..system.parallel import share
from ..system.types import Matrix
from . import direct
from .direct import EdgeFeatures
from .grams import SparseGrams, by_columns, dense_kernels
from .loss import EdgeLoss
from .pairs import LIMIT, PairFeatures
from .relation import PRODUCT, Domain, EdgeSet, Pairwise, dense, one_way, part

SPARSE = 8  # one multiplication through the indices of V costs as much as this many in a dense matrix product
SAMPLED = 20  # one multiplication for a single edge costs as much as this many in a dense matrix product
COLUMNS = 128  # columns of sparse features made dense at a time
CELLS = 1 << 18  # elements gathered at a time
DENSE_ENOUGH = 0.7  # the complete graph pays off as a preconditioner if at least this share of edges is known


class EdgeKernel:
    """v -> scores of the model with coefficient v_e at each edge e: (G kron K) B'v, at any edges."""

    def __init__(
        self,
        G: Domain,
        K: Domain,
        rows: np.ndarray,
        columns: np.ndarray,
        parity: int = 0,
        pairwise: Pairwise = PRODUCT,
        *,
        sparse_cost: float = SPARSE,
        sampled_cost: float = SAMPLED,
    ):
        self.swapped = G.factored and not K.factored  # a kernel of low rank goes last: edges are evaluated through it
        self.G, self.K = (K, G) if self.swapped else (G, K)
        self.rows, self.columns = (columns, rows) if self.swapped else (rows, columns)
        self.pairwise = pairwise.T if self.swapped else pairwise
        self.shape = (len(self.G), len(self.K))
        self.parity = parity
        self._merge()
        cells = self.shape[0] * self.shape[1]
        self.sparse = len(self.rows) * sparse_cost < cells
        self.few = cells / sampled_cost  # fewer edges than this are evaluated one by one
        placed, across = self.rows, self.columns
        if parity:
            placed, across = np.concatenate([placed, across]), np.concatenate([across, placed])
        self.order = np.argsort(placed, kind="stable")
        self.indices = across[self.order]
        self.start = np.concatenate([[0], np.cumsum(np.bincount(placed, minlength=self.shape[0]))])

    def _merge(self) -> None:
        """Keep each edge once; edges seen from both ends of a symmetric or reciprocal relation are the same edge."""
        rows, columns, self.sign = one_way(self.rows, self.columns, self.parity)
        key, first, self.place = np.unique(rows * self.shape[1] + columns, return_index=True, return_inverse=True)
        self.merged = len(key) < len(rows)
        if self.merged:
            self.rows, self.columns = rows[first], columns[first]

    def _merge_coefficients(self, v: np.ndarray) -> np.ndarray:
        """The coefficients of each edge, added up."""
        return np.bincount(self.place, self.sign * v, minlength=len(self.rows)) if self.merged else v

    @cached_property
    def grams(self) -> SparseGrams | None:
        """Sparse kernels of both ends, if that is cheaper than matrix products."""
        both = self.G.sparse and self.K.sparse and self.pairwise.product
        return SparseGrams.of(self.G.array, self.K.array, len(self.indices)) if both else None

    @cached_property
    def pair_features(self) -> PairFeatures | None:
        """Products of sparse features of both ends, if that is cheaper than matrix products."""
        if not (self.G.sparse and self.K.sparse) or self.grams is not None:
            return None
        X, Z = self.G.array, self.K.array
        products = PairFeatures.count(X, Z, self.rows, self.columns) * (2 if self.parity else 1)
        if products > LIMIT or products > by_columns(X, Z):
            return None
        return PairFeatures(X, Z, self.rows, self.columns, self.parity)

    @cached_property
    def kernels(self) -> tuple[Domain, Domain]:
        """Both ends for products of matrices; sparse features become dense kernels if that is cheaper."""
        both = self.G.sparse and self.K.sparse
        found = dense_kernels(self.G.array, self.K.array, len(self.indices)) if both else None
        return (self.G, self.K) if found is None else (Domain(found[0]), Domain(found[1]))

    def matrix(self, v: np.ndarray) -> sparse.csr_array:
        """(p, r) V, or its symmetric or skew part if that is wanted."""
        v = self._merge_coefficients(v)
        if self.parity:
            v = np.concatenate([v, self.parity * v]) / 2
        return sparse.csr_array((v[self.order], self.indices, self.start), shape=self.shape)

    def coef(self, v: np.ndarray) -> Any:
        """(p, r) the coefficients as a matrix, sparse if few edges are known."""
        if self.sparse:
            V = self.matrix(v).copy()  # its indices belong to the kernel
            V.sum_duplicates()
        else:
            V = self.matrix(v).toarray()
        return V.T if self.swapped else V

    def at(self, v: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Scores of any edges."""
        if self.swapped:
            rows, columns = columns, rows
        of_pairs = self.pair_features if self.pairwise.product else None
        product = None if of_pairs is None else of_pairs.at(self._merge_coefficients(v), rows, columns)
        return self._scores(v, rows, columns, product)

    def _scores(self, v: np.ndarray, rows: np.ndarray, columns: np.ndarray, product: np.ndarray | None) -> np.ndarray:
        """Scores of any edges; the part from the product of kernels may be given."""
        V, pairwise = self.matrix(v), self.pairwise
        out = np.zeros(len(rows))
        if pairwise.product:
            out += pairwise.product * (self._product(V, rows, columns) if product is None else product)
        if pairwise.source:
            out += pairwise.source * self.G.dot(np.asarray(V.sum(axis=1)).ravel())[rows]
        if pairwise.target:
            out += pairwise.target * self.K.dot(np.asarray(V.sum(axis=0)).ravel())[columns]
        return out

    def _product(self, V: sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if self.grams is not None:
            return self.grams.at(V, rows, columns)
        G, K = self.kernels
        if G.sparse and K.sparse:
            return self._by_columns(V, rows, columns)
        M = self._half(G, V, K)
        if len(rows) < self.few or K.sparse:
            return sampled(M, K.array, rows, columns)
        return (M @ K.array.T)[rows, columns]

    def _half(self, G: Domain, V: sparse.csr_array, K: Domain) -> np.ndarray:
        """(p, rank of K or r) M such that the scores of the product kernel are M K.array'."""
        if K.factored:
            return dense(G.dot(V @ K.array))
        if self.sparse:
            return np.ascontiguousarray((V.T @ G.array).T)
        return G.array @ V.toarray()

    def _by_columns(self, V: sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The same for sparse features, some columns at a time: linear in their nonzeros, and they stay sparse."""
        Z, out = sparse.csc_array(self.K.array), np.zeros(len(rows))
        XT = sparse.csr_array(self.G.array.T)
        for j in range(0, Z.shape[1], COLUMNS):
            some = sparse.csr_array(Z[:, j : j + COLUMNS])
            M = self.G.array @ (XT @ dense(V @ some))
            size = np.diff(some.indptr)[columns]
            edge, start = np.repeat(np.arange(len(rows)), size), some.indptr[columns] - (np.cumsum(size) - size)
            at = np.arange(len(edge)) + start[edge]
            out += np.bincount(edge, some.data[at] * M[rows[edge], some.indices[at]], minlength=len(rows))
        return out

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Scores of the edges themselves."""
        of_pairs = self.pair_features if self.pairwise.product else None
        product = None if of_pairs is None else of_pairs(self._merge_coefficients(v))
        if product is not None and self.pairwise == PRODUCT:
            scores = product
        else:
            scores = self._scores(v, self.rows, self.columns, product)
        return self.sign * scores[self.place] if self.merged else scores


def sampled(A: np.ndarray, B: Matrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(q,) elements (rows, columns) of A B', a block of edges at a time; B may be sparse."""
    out = np.empty(len(rows))
    step = max(1, CELLS // max(1, A.shape[1]))
    blocks = [slice(i, i + step) for i in range(0, len(rows), step)]

    def work(some: Any) -> None:
        for block in some:
            if sparse.issparse(B):
                right = sparse.csr_array(B[columns[block]])
                edge = np.repeat(np.arange(right.shape[0]), np.diff(right.indptr))
                products = right.data * A[rows[block][edge], right.indices]
                out[block] = np.bincount(edge, weights=products, minlength=right.shape[0])
            else:
                left, right = A.take(rows[block], axis=0), B.take(columns[block], axis=0)
                np.einsum("ij,ij->i", left, right, out=out[block])

    share(work, blocks, cost=len(rows) * A.shape[1], label="scores of edges")
    return out


@dataclass(frozen=True)
class Graph:
    """Least squares over the edges of an incomplete relation."""

    G: Domain
    K: Domain
    edges: EdgeSet
    ranking: bool
    parity: int = 0
    pairwise: Pairwise = PRODUCT
    weighting: str = "items"
    tol: float = 1e-6
    max_iter: int = 1000
    direct: bool = False  # whether to solve for few features without iterations

    @cached_property
    def kernel(self) -> EdgeKernel:
        return EdgeKernel(self.G, self.K, self.edges.rows, self.edges.columns, self.parity, self.pairwise)

    @cached_property
    def loss(self) -> EdgeLoss:
        return EdgeLoss(self.edges.rows, self.ranking, self.edges.weights, self.weighting, self.edges.free)

    @cached_property
    def features(self) -> EdgeFeatures | None:
        """The features of the edges, if there are few enough to solve for directly."""
        return EdgeFeatures.of(self.G, self.K, self.edges, self.parity, self.pairwise) if self.direct else None

    def product(self, v: np.ndarray) -> np.ndarray:
        """F M F' v."""
        return self.loss.forward(self.kernel(self.loss.back(v)))

    @property
    def mean_eigenvalue(self) -> float:
        """The mean eigenvalue of the loss, ignoring parity and unpenalised columns."""
        edges, pairwise = self.edges, self.pairwise
        g, k = self.G.diagonal[edges.rows], self.K.diagonal[edges.columns]
        left = pairwise.product * g + pairwise.target
        weight = 1.0 if self.loss.scale is None else self.loss.scale**2
        if self.ranking:  # minus the mean of each row
            codes, n = self.loss.queries.codes, len(self.loss.queries)
            mean = sparse.csr_array((self.loss.share, (codes, edges.columns)), shape=(n, len(self.K)))
            M = dense(mean @ self.K.array)
            k = k - (sampled(M, self.K.array, codes, edges.columns) if self.K.factored else M[codes, edges.columns])
            return float(np.sum(weight * left * k)) / len(edges.y)
        return float(np.sum(weight * (left * k + pairwise.source * g))) / len(edges.y)

    def restrict(self, edges: np.ndarray) -> Graph:
        """The same problem on some of the edges."""
        return Graph(
            self.G, self.K, self.edges.only(edges), self.ranking, self.parity, self.pairwise, self.weighting,
            self.tol, self.max_iter, self.direct,
        )  # fmt: skip

    @property
    def nearly_complete(self) -> bool:
        """True if preconditioning pays: few edges are missing, and none is repeated."""
        plain = self.pairwise == PRODUCT and self.loss.scale is None and self.edges.free is None
        many = len(self.edges.y) > DENSE_ENOUGH * len(self.G) * len(self.K)
        return plain and many and bool(np.all(self.edges.copies(self.parity) <= 1))

    def solve(self, alphas: np.ndarray, *, preconditioned: bool = False) -> Solution:
        """(q, k) the coefficients of the edges for each alpha."""
        if self.features is not None and alphas.min() > 0:
            value = direct.solve(self.features, self.loss, self.edges.y, alphas)
            return Solution(value, np.zeros(len(alphas)), 0, True, np.empty(0))
        z = self.loss.forward(self.edges.y)
        if not preconditioned:
            found = multishift_cg(self.product, z, alphas, tol=self.tol, maxiter=self.max_iter)
        else:
            found = self._solve_one_by_one(z, alphas)
        value = np.column_stack([self.loss.back(c) for c in found.value.T])
        return Solution(value, found.residual, found.iterations, found.converged, found.history)

    def iterates(self, alpha: float) -> Iterator[tuple[np.ndarray, float]]:
        """(q,) the coefficients after each iteration of conjugate residuals, and the relative residual."""
        for c, residual in conjugate_residuals(self.product, self.loss.forward(self.edges.y), alpha):
            yield self.loss.back(c), residual

    def _solve_one_by_one(self, z: np.ndarray, alphas: np.ndarray) -> Solution:
        """From the largest alpha down, each started from the previous solution."""
        inverse = CompleteInverse(self)
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


class CompleteInverse:
    """The inverse for the complete graph, evaluated at the known edges, as a preconditioner.

    The exact inverse differs from it by a correction whose rank is the number of missing edges. Copies of an edge share
    its value, because a preconditioner must be positive definite.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.V, self.g = graph.G.eigen()
        self.U, self.s = graph.K.eigen(centred=graph.ranking)
        self.share = 1 / np.sqrt(graph.edges.copies(graph.parity))

    def at(self, alpha: float) -> Product:
        graph, kernel = self.graph, self.graph.kernel
        shrink = np.outer(self.g, self.s)
        shrink /= shrink + alpha  # (M + alpha)^-1 = (I - M / (M + alpha)) / alpha

        def apply(v: np.ndarray) -> np.ndarray:
            M = kernel.matrix(self.share * v).toarray()
            M = M.T if kernel.swapped else M
            M = self.V @ (shrink * (self.V.T @ M @ self.U)) @ self.U.T
            read = self.share * part(M, graph.parity)[graph.edges.rows, graph.edges.columns]
            return graph.loss.project((v - read) / alpha)

        return apply
