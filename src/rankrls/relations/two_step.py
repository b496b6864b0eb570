"""Two-step kernel ridge regression on complete relations, with hold-out of all kinds without refits.

The first step is a ridge regression over the rows of Y (p, r) with alpha, the second one over the columns of the
result, with an alpha of its own. Each step is a linear smoother, H = K (K + alpha I)^-1 or, with a free constant, the
limit of this for K + c 1 1' as c grows; D = I - H. So f = H1 Y H2, and with D_SS the block of D of some objects S,

    leaving S out of a ridge regression leaves     y_S - f_S = D_SS^-1 (D y)_S,      D without S = D - D_:S D_SS^-1 D_S:

(everywhere else), from which all shortcuts below follow by elementwise operations on a few matrix products:

    edge     f is linear in Y; with h the derivative of an edge's score by its own label, (f - h y) / (1 - h). This is
             the model whose missing label is its own prediction, and also the refit of the one-step model of the same
             smoother, the kernel with eigenvalues g s / (alpha s + beta g + alpha beta).
    row      the first step without the row, the second unchanged;     column: the other way round
    both     both steps without it. If rows and columns are the same objects, both objects are left out of both ends:
             S = {i, j}, f = (D1_SS^-1 Q D2_SS^-1 - P D2_SS^-1 - D1_SS^-1 R + Y_SS)_ij, Q = D1 Y D2, P = Y D2, R = D1 Y
    object   of one domain: out of both ends, and its row is predicted

In a symmetric or reciprocal relation an edge is left out with its mirror image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product

import numpy as np

from ..core.queries import Queries
from ..metrics import Metric
from ..problems import choice
from ..problems.base import tied_where_equal
from ..system.lazy import cached_property
from ..system.progress import counted
from .complete import without_rounding
from .relation import Domain, part

AT_ONCE = 1 << 24  # held-out scores judged together

EDGE, ROW, COLUMN = "leave-edge-out", "leave-row-out", "leave-column-out"
BOTH, OBJECT = "leave-both-out", "leave-object-out"


@dataclass(frozen=True)
class Smoother:
    """Ridge regression over n objects, for every alpha; `intercept` adds an unpenalised constant."""

    K: Domain
    intercept: bool = False

    @cached_property
    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        return self.K.eigen(centred=self.intercept)

    @property
    def mean_eigenvalue(self) -> float:
        """The mean eigenvalue: the natural unit of alpha."""
        return float(self.eigen[1].sum()) / len(self.K)

    def rest(self, alpha: float, Y: np.ndarray) -> np.ndarray:
        """(n, m) D Y, the residual."""
        V, d = self.eigen
        VY = V.T @ Y
        out = V @ ((alpha / (d + alpha))[:, None] * VY)
        if V.shape[1] + self.intercept < len(V):
            out += (Y - Y.mean(axis=0) if self.intercept else Y) - V @ VY
        return out

    def diagonal(self, alpha: float) -> np.ndarray:
        """(n,) the diagonal of D."""
        V, d = self.eigen
        out = V**2 @ (alpha / (d + alpha))
        if V.shape[1] + self.intercept < len(V):
            out += np.maximum(0, 1 - np.sum(V**2, axis=1) - self.intercept / len(V))
        return out

    def matrix(self, alpha: float) -> np.ndarray:
        """(n, n) D."""
        V, d = self.eigen
        if V.shape[1] + self.intercept == len(V):
            return (V * (alpha / (d + alpha))) @ V.T
        D = (V * (-d / (d + alpha))) @ V.T
        D[np.diag_indices_from(D)] += 1
        return D - 1 / len(V) if self.intercept else D

    def fitted(self, alpha: float, Y: np.ndarray) -> np.ndarray:
        """(n, m) H Y."""
        return Y - self.rest(alpha, Y)

    def left_out(self, alpha: float, Y: np.ndarray) -> np.ndarray:
        """(n, m) each row of Y under the regression that never saw it."""
        return Y - self.rest(alpha, Y) / self.diagonal(alpha)[:, None]

    def coef(self, alpha: float, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, m) coefficients a and (m,) constants b: f = k(x)' a + b."""
        V, d = self.eigen
        VY = V.T @ Y
        a = V @ (VY / (d + alpha)[:, None])
        if V.shape[1] + self.intercept < len(V):  # rounding loses the other directions here, but new objects see them
            a += ((Y - Y.mean(axis=0) if self.intercept else Y) - V @ VY) / alpha
        return a, (Y.mean(axis=0) - self.K.mean @ a if self.intercept else np.zeros(Y.shape[1]))


@dataclass(frozen=True)
class TwoStepModel:
    """f(x, z) = k(x)' a k(z) + k(x)' source + target' k(z) + constant."""

    a: np.ndarray  # (p, r)
    source: np.ndarray  # (p,)
    target: np.ndarray  # (r,)
    constant: float


@dataclass(frozen=True)
class TwoStep:
    """Both steps over a complete relation; `parity` 1 is symmetric, -1 reciprocal, and needs one domain."""

    rows: Smoother
    columns: Smoother
    Y: np.ndarray
    parity: int = 0

    @classmethod
    def of(cls, G: Domain, K: Domain, Y: np.ndarray, parity: int = 0, *, intercept: bool = False) -> TwoStep:
        rows = Smoother(G, intercept)
        return cls(rows, rows if K is G else Smoother(K, intercept), part(Y, parity), parity)

    @property
    def one_domain(self) -> bool:
        return self.rows is self.columns

    def model(self, alpha: float, beta: float) -> TwoStepModel:
        a, b = self.rows.coef(alpha, self.Y)
        both, constants = self.columns.coef(beta, np.vstack([a, b]).T)
        a, target, source = part(both[:, :-1].T, self.parity), both[:, -1], constants[:-1]
        if self.parity:
            source = (source + self.parity * target) / 2
            target = self.parity * source
        return TwoStepModel(a, source, target, 0.0 if self.parity == -1 else float(constants[-1]))

    def held_out(self, what: str, alphas: np.ndarray, betas: np.ndarray) -> Iterator[np.ndarray]:
        """(p, r) scores by models that never saw `what`, for each alpha of the rows and each beta of the columns."""
        repeats = self.rows.K.repeats or self.columns.K.repeats
        leave = {EDGE: self._edges, ROW: self._rows, COLUMN: self._columns, BOTH: self._both, OBJECT: self._objects}
        for alpha in alphas:
            for held in leave[what](float(alpha), betas):
                held = without_rounding(held, self.Y)
                yield tied_where_equal(held[:, :, None])[:, :, 0] if repeats else held

    def _rows(self, alpha: float, betas: np.ndarray) -> Iterator[np.ndarray]:
        first = self.rows.left_out(alpha, self.Y).T
        for beta in betas:
            yield self.columns.fitted(beta, first).T

    def _columns(self, alpha: float, betas: np.ndarray) -> Iterator[np.ndarray]:
        first = self.rows.fitted(alpha, self.Y).T
        for beta in betas:
            yield self.columns.left_out(beta, first).T

    def _edges(self, alpha: float, betas: np.ndarray) -> Iterator[np.ndarray]:
        """1 - h = 1 - (1 - e1) (1 - e2), e the diagonals of D; mirrored edges have a further term D_ij^2."""
        rest, e = self.rows.rest(alpha, self.Y), self.rows.diagonal(alpha)[:, None]
        fitted, mirrored = (self.Y - rest).T, np.zeros((1, 1))
        if self.parity:
            mirrored = self.parity * self.rows.matrix(alpha) ** 2
            np.fill_diagonal(mirrored, 0)
        for beta in betas:
            stay = e + (1 - e) * self.columns.diagonal(beta) - mirrored
            yield self.Y - (rest + self.columns.rest(beta, fitted).T) / stay

    def _both(self, alpha: float, betas: np.ndarray) -> Iterator[np.ndarray]:
        if self.one_domain:
            yield from self._pairs(alpha, betas)
            return
        first = self.rows.left_out(alpha, self.Y).T
        for beta in betas:
            yield self.columns.left_out(beta, first).T

    def _pairs(self, alpha: float, betas: np.ndarray) -> Iterator[np.ndarray]:
        """Both objects of each edge left out of both ends."""
        Y, D1 = self.Y, self.rows.matrix(alpha)
        R = D1 @ Y
        left = _Inverses(D1)
        for beta in betas:
            D2 = D1 if beta == alpha else self.columns.matrix(beta)
            right = left if D2 is D1 else _Inverses(D2)
            Q, P = R @ D2, Y @ D2
            yield left.times(Q, right) - right.after(P) - left.before(R) + Y

    def _objects(self, alpha: float, betas: np.ndarray) -> Iterator[np.ndarray]:
        """Each row under the model that saw the object at neither end."""
        D1 = self.rows.matrix(alpha)
        V = self.Y - (D1 @ self.Y) / np.diagonal(D1)[:, None]
        np.fill_diagonal(V, 0)
        for beta in betas:
            D2 = D1 if beta == alpha else self.columns.matrix(beta)
            VD, d = V @ D2, np.diagonal(D2)
            own = np.diagonal(VD) / d
            out = V - VD + own[:, None] * D2
            np.fill_diagonal(out, -own)
            yield out


@dataclass(frozen=True)
class JudgedAlphas:
    """Pairs of alphas of the rows and betas of the columns, their held-out scores, and the best one."""

    alphas: np.ndarray
    betas: np.ndarray
    best: tuple[int, int] = (0, 0)
    scores: np.ndarray | None = None  # (k, l), or (k,) if both ends have the same alpha
    value: float = 0.0  # score of the best pair, negated if smaller is better

    @property
    def alpha(self) -> float:
        return float(self.alphas[self.best[0]])

    @property
    def beta(self) -> float:
        return float(self.betas[self.best[1]])

    @classmethod
    def of(
        cls, steps: TwoStep, what: str, alphas: np.ndarray, betas: np.ndarray, metric: Metric | None
    ) -> JudgedAlphas:
        """Judge all pairs by a metric; without one there is nothing to choose, and the first of each is taken."""
        if metric is None:
            return cls(alphas, betas)
        Y, tied = steps.Y, steps.parity != 0
        if tied:
            pairs = [(alpha, alpha) for alpha in alphas]
            held = chain.from_iterable(steps.held_out(what, one, one) for one in alphas[:, None])
        else:
            pairs, held = list(product(alphas, betas)), chain(steps.held_out(what, alphas, betas))
        queries = Queries(np.arange(len(Y)), np.repeat(np.arange(len(Y)), Y.shape[1]))
        scores, block = [], []
        for k, one in enumerate(counted(held, "alphas", len(pairs)), start=1):
            block.append(one.ravel())
            if len(block) * Y.size >= AT_ONCE or k == len(pairs):
                scores.append(metric(Y.ravel(), np.column_stack(block), queries))
                block = []
        found = np.concatenate(scores)
        sign = 1 if metric.greater_is_better else -1
        best = choice.best(sign * found, pairs)
        value = float(sign * found[best])
        if tied:
            return cls(alphas, betas, (best, best), found, value)
        return cls(alphas, betas, divmod(best, len(betas)), found.reshape(len(alphas), len(betas)), value)


class _Inverses:
    """(D_SS)^-1 for each pair S = {i, j}, as its elements; for i = j, 1 / D_ii.

    inv(D_SS) = [[D_jj, -D_ij], [-D_ij, D_ii]] / (D_ii D_jj - D_ij^2)
    """

    def __init__(self, D: np.ndarray):
        d = np.diagonal(D)
        det = np.outer(d, d) - D**2
        np.fill_diagonal(det, 1.0)
        self.ii = d[None] / det  # element (i, i) of the inverse for the pair (i, j)
        self.jj = d[:, None] / det
        self.ij = -D / det
        self.one = 1 / d
        for M, value in ((self.ii, self.one), (self.jj, self.one), (self.ij, 0.0)):
            np.fill_diagonal(M, value)

    def times(self, Q: np.ndarray, right: _Inverses) -> np.ndarray:
        """Element (i, j) of inv Q_SS inv."""
        q = np.diagonal(Q)
        out = self.ii * (q[:, None] * right.ij + Q * right.jj) + self.ij * (Q.T * right.ij + q[None] * right.jj)
        np.fill_diagonal(out, self.one * q * right.one)
        return out

    def after(self, P: np.ndarray) -> np.ndarray:
        """Element (i, j) of P_SS inv."""
        out = np.diagonal(P)[:, None] * self.ij + P * self.jj
        np.fill_diagonal(out, np.diagonal(P) * self.one)
        return out

    def before(self, R: np.ndarray) -> np.ndarray:
        """Element (i, j) of inv R_SS."""
        out = self.ii * R + self.ij * np.diagonal(R)[None]
        np.fill_diagonal(out, np.diagonal(R) * self.one)
        return out
