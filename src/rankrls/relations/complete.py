"""Complete relations in closed form.

A relation Y (p, r) has a row for each conditioning object (kernel G among them) and a column for each object to be
ranked (kernel K). The kernel of two edges is the product of the kernels of their ends, so a model is a matrix of
coefficients a with scores f = G a K, and the objective is

    ||(Y - G a K) C||^2 + alpha <a, G a K>,

where C centres each row if only the order within a row counts (ranking) and C = I if values do (regression). With
G = V diag(g) V' and C K C = U diag(s) U' every alpha costs two matrix products:

    a = V [ (V' Y C U) / (g s' + alpha) ] U'.

Rows of weight w_h are rows of sqrt(w_h) Y under the kernel D G D, D = diag(sqrt(w)), with the coefficients D a. Y may
be sparse: only Y U is formed.

A symmetric or reciprocal model has a = a' or a = -a'. In regression it is the model of the symmetric or skew part of
Y. In ranking, centring rows and centring columns do not commute; but K - C K C has rank one up to a symmetrisation, so
that with K = V diag(k) V' and w = V'1 / sqrt(p) the solution a = V B V' has

    B = (E + (t w' ± w t') / 2) * D,      E the symmetric (skew) part of V' Y C V,

and t, the one thing that couples the elements of B, solves a positive definite system with p unknowns:

    [ diag(1 - k * D (k w^2) / 2) ∓ (k w)(k w)' * D / 2 ] t = k * (E * D) (k w),      D = 1 / (k k' + alpha).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..system.parallel import n_threads, share
from ..system.types import DTypeLike
from .leverage import INTERPOLATE, leverages, remaining
from .relation import Coefficients, Domain, part

ROWS = 2000  # left out at a time, at most


class Kronecker:
    """Every alpha of a complete relation, and exact hold-out of each of its rows or edges.

    `weights` (p,) are those of rows; `intercept` adds a constant without penalty (regression).
    """

    def __init__(
        self,
        G: Domain,
        K: Domain,
        Y: Any,
        *,
        ranking: bool,
        parity: int = 0,
        weights: np.ndarray | None = None,
        intercept: bool = False,
    ):
        self.ranking, self.parity = ranking, parity
        self.root = None if weights is None else np.sqrt(np.maximum(weights, 1e-24 * weights.max()))
        if ranking and not sparse.issparse(Y):
            Y = Y - Y.mean(axis=1, keepdims=True)
        if self.root is not None:
            Y = sparse.csr_array(Y.multiply(self.root[:, None])) if sparse.issparse(Y) else Y * self.root[:, None]
            G = G.scaled(self.root)
        self.Y, self.K = Y, K
        self.V, self.g = G.eigen()
        shared = K is G and not ranking
        self.U, self.s = (self.V, self.g) if shared else K.eigen(centred=ranking)
        self.YU = np.asarray(Y @ self.U)  # (p, rank of K)
        self.E = self.V.T @ self.YU
        self.mean_eigenvalue = float(self.g.sum() * self.s.sum()) / (Y.shape[0] * Y.shape[1])
        self.constant = _Constant(self) if intercept and not ranking else None

    def shrink(self, alpha: float) -> np.ndarray:
        """(rank of G, rank of K) H = g s' / (g s' + alpha): the share of each coefficient of Y that is fitted."""
        d = np.outer(self.g, self.s)
        return d / (d + alpha)

    def coef(self, alpha: float) -> Coefficients:
        """(p, r) the coefficients a at alpha."""
        E = self.E if self.constant is None else self.E - self.intercept(alpha) * self.constant.E
        left = self.V if self.root is None else self.V * self.root[:, None]
        return Coefficients(left, E / (np.outer(self.g, self.s) + alpha), self.U, self.parity)

    def intercept(self, alpha: float) -> float:
        """The constant that carries no penalty."""
        return 0.0 if self.constant is None else self.constant.at(self.shrink(alpha))[0]

    def leave_rows_out(
        self,
        alphas: np.ndarray,
        dtype: DTypeLike = np.float64,
        *,
        rows: Any = slice(None),
        constants: bool = False,
        interpolate: int = INTERPOLATE,
    ) -> np.ndarray:
        """(k, n, r) the scores of some rows by the model that never saw that row, for each alpha.

        With H as in `shrink`, the residual of all rows is R U = (Y U - V E) + V ((1 - H) * E), and leaving out row h
        divides its element j by 1 - sum_i H[i, j] V[h, i]^2. A ranking leaves a constant per row open: `constants`
        adds the one that a refit would have.
        """
        if constants and self.ranking:
            return np.stack([self._rows_with_means(alpha, rows, interpolate) for alpha in alphas]).astype(
                dtype, copy=False
            )
        V, E, YU, U = (np.ascontiguousarray(M, dtype=dtype) for M in (self.V, self.E, self.YU, self.U))
        full = self.V.shape[0] == self.V.shape[1]
        outside = None if full else (self.YU - self.V @ self.E).astype(dtype)
        number = np.arange(len(V))[rows]
        scores = np.empty((len(alphas), len(number), len(U)), dtype=dtype)
        stays = list(remaining(self.V, self.g, self.s, alphas, dtype, interpolate))

        def leave_out(blocks: Any) -> None:
            for at, some in blocks:
                for k, alpha in enumerate(alphas):
                    M = np.outer(self.g.astype(dtype), (self.s / alpha).astype(dtype))
                    M += 1
                    R = V[some] @ np.divide(E, M, out=M)
                    if outside is not None:
                        R += outside[some]
                    stay = stays[k](some)
                    if self.constant is not None:
                        scores[k, at] = self.constant.held_out(R, stay, alpha, some)
                    else:
                        np.matmul(np.subtract(YU[some], R / stay), U.T, out=scores[k, at])
                    if self.root is not None:
                        scores[k, at] /= self.root[some, None]

        step = max(1, min(ROWS, -(-len(number) // n_threads())))
        blocks = [(slice(i, i + step), number[i : i + step]) for i in range(0, len(number), step)]
        share(leave_out, blocks, cost=scores.size, label="objects left out")
        return scores

    def _rows_with_means(self, alpha: float, rows: Any, interpolate: int) -> np.ndarray:
        """(n, r) held-out scores of a ranking with the constants a refit has.

        Scores are K times the held-out dual coefficients: about their mean by s, and the mean by K's own. In each
        direction j the coefficient is a difference that is divided by s. Of its two forms, with Hs = H / s and
        l = V^2 Hs, (YU - R / stay) / s loses no digits where the leverage s l is large, and (V (Hs * E) - YU l) / stay
        none where it is small.
        """
        V, YU, s = self.V[rows], self.YU[rows], self.s
        stay = next(remaining(self.V, self.g, s, np.array([alpha]), np.float64, interpolate))(rows)
        leverage = next(leverages(self.V, self.g, s, np.array([alpha]), interpolate))(rows) / alpha  # over s
        large = s * leverage > 0.5
        dual = np.empty_like(YU)
        small = ~large.all(axis=0)  # directions that need the second form for some row, and
        some = large.any(axis=0)  # those that need the first
        Hs = self.g[:, None] / (np.outer(self.g, s[small]) + alpha)
        Hs *= self.E[:, small]
        dual[:, small] = (V @ Hs - YU[:, small] * leverage[:, small]) / stay[:, small]
        R = V @ (self.E[:, some] / (1 + np.outer(self.g, s[some] / alpha)))
        if self.V.shape[0] != self.V.shape[1]:  # what V does not reach is left as it is
            R += YU[:, some] - V @ self.E[:, some]
        first = (YU[:, some] - R / stay[:, some]) / np.where(s[some] > 0, s[some], 1)
        dual[:, some] = np.where(large[:, some], first, dual[:, some])
        mean = self.K.mean  # a = dual U' less its mean: a direction of s = 0 may be the constant itself
        of_means = dual @ (self.U.T @ (mean - mean.mean()))
        scores = (dual * s) @ self.U.T + of_means[:, None]
        return scores if self.root is None else scores / self.root[rows, None]

    def leave_edges_out(self, alpha: float) -> np.ndarray:
        """(p, r) each edge by the model that never saw it.

        The fit is linear in Y, so that with f and h its value and its derivative by the edge's own label, the
        held-out value is (f - h y) / (1 - h). In ranking the row's free constant counts as part of the model: it is
        the mean residual of the other edges of the row.
        """
        H, Y = self.shrink(alpha), np.asarray(self.Y.toarray() if sparse.issparse(self.Y) else self.Y)
        h = (self.V**2) @ H @ (self.U**2).T
        F = self.V @ (H * self.E) @ self.U.T
        if self.ranking:  # Y is centred, its row means join afterwards
            h += 1 / Y.shape[1]
        elif self.constant is not None:
            mu, delta = self.constant.at(H)
            e = self.constant.one - self.V @ (H * self.constant.E) @ self.U.T
            F, h = F + mu * e, h + e**2 / delta
        held = (F - h * Y) / (1 - h)
        return held if self.root is None else held / self.root[:, None]


class _Constant:
    """An unpenalised constant in a regression: b is D 1 1', and e = b - H b what the kernel leaves of it."""

    def __init__(self, path: Kronecker):
        p, r = path.Y.shape
        self.path = path
        self.d = np.ones(p) if path.root is None else path.root
        self.of_U = path.U.sum(axis=0)
        self.E = np.outer(path.V.T @ self.d, self.of_U)
        self.square = float(self.d @ self.d) * r
        row_sums = np.asarray(path.Y.sum(axis=1)).ravel()
        self.with_Y = float(self.d @ row_sums)
        self.left = 1.0 - path.U @ self.of_U  # (r,) what no model can reach of a row of ones
        self.left_square = float(self.left @ self.left)
        self.left_Y = row_sums - path.YU @ self.of_U  # (p,) its product with each row of Y

    @property
    def one(self) -> np.ndarray:
        return np.repeat(self.d[:, None], self.path.Y.shape[1], axis=1)

    def at(self, H: np.ndarray) -> tuple[float, float]:
        """The constant, and <b, e>."""
        delta = self.square - float(np.sum(H * self.E**2))
        return (self.with_Y - float(np.sum(H * self.E * self.path.E))) / delta, delta

    def held_out(self, R: np.ndarray, stay: np.ndarray, alpha: float, rows: np.ndarray) -> np.ndarray:
        """Rows by models with a constant that never saw them, from residuals R (n, rank) without one.

        The constant adds a rank-one term to each row's block of the hat matrix: Sherman and Morrison.
        """
        path, H = self.path, self.path.shrink(alpha)
        mu, delta = self.at(H)
        d = self.d[rows]
        e = d[:, None] * self.of_U - path.V[rows] @ (H * self.E)
        r = R - mu * e
        products = np.sum(e * r / stay, axis=1) + d * self.left_Y[rows] - mu * d**2 * self.left_square
        squares = np.sum(e * e / stay, axis=1) + d**2 * self.left_square
        change = products / (delta - squares)
        held = (path.YU[rows] - (r + change[:, None] * e) / stay) @ path.U.T
        return held + np.outer((mu - change) * d, self.left)


class Mirrored:
    """Every alpha of symmetric (parity 1) or reciprocal (-1) ranking on a complete relation."""

    def __init__(self, K: Domain, Y: Any, parity: int):
        self.parity = parity
        self.V, self.k = K.eigen()
        n = Y.shape[0]
        mean = np.asarray(Y.mean(axis=1)).reshape(n, 1)
        YV = Y @ self.V - mean * self.V.sum(axis=0) if sparse.issparse(Y) else (Y - mean) @ self.V
        self.E = part(self.V.T @ YV, parity)
        self.w = self.V.sum(axis=0) / np.sqrt(n)
        self.mean_eigenvalue = float(self.k.sum() * (self.k.sum() - self.k @ self.w**2)) / n**2

    def coef(self, alpha: float) -> Coefficients:
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
        return Coefficients(self.V, B, self.V, sign)

    def intercept(self, alpha: float) -> float:
        """None is left open: a ranking does not see it."""
        return 0.0
