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
Y. In ranking, centring rows and centring columns do not commute, but K - C K C has rank one up to symmetrisation. With
K = V diag(k) V' and w = V'1 / sqrt(p), the solution a = V B V' has

    B = (E + (t w' ± w t') / 2) * D,      E the symmetric (skew) part of V' Y C V,

and t, which alone couples the elements of B, solves a positive definite system with p unknowns:

    [ diag(1 - k * D (k w^2) / 2) ∓ (k w)(k w)' * D / 2 ] t = k * (E * D) (k w),      D = 1 / (k k' + alpha).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..core.means import Rows
from ..system.parallel import n_threads, share
from ..system.types import DTypeLike
from .between import Between, between, sample_of
from .relation import Coefficients, Domain, part
from .smoothing import INTERPOLATE, Arrowhead, Eigenbasis, Smoother, over_alphas

ROWS = 2000  # most rows left out at a time
FILLED = 64  # rows whose scores follow from those at other alphas, at a time
UNCLEAR = 1e-6  # directions with a smaller share of K lose digits in a quotient
GRADED = 1e6  # weights that differ by this factor cost the lightest rows digits in an ordinary eigendecomposition
ROUNDING = {4: 2e-5, 8: 1e-12}  # by itemsize: a row of residuals smaller than this share of its values is rounding


class Kronecker:
    """Every alpha of a complete relation, and exact hold-out of each of its rows or edges.

    `weights` (p,) are those of rows; `intercept` adds an unpenalised constant (regression).
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
        of_K: tuple[float, float] | None = None,
    ):
        self.ranking, self.parity = ranking, parity
        self.root: np.ndarray | None = None
        graded = False
        if weights is not None:
            self.root, graded = _roots(weights)
        if ranking and isinstance(Y, np.ndarray):  # a sparse Y is only multiplied by U, which is centred
            Y = Y - Y.mean(axis=1, keepdims=True)
        if self.root is not None:
            Y = sparse.csr_array(Y.multiply(self.root[:, None])) if sparse.issparse(Y) else Y * self.root[:, None]
        self.Y, self.K = Y, K
        self.left: Smoother
        if of_K is not None and ranking and self.root is None and not K.factored:
            self.U, self.s = K.eigen(centred=True)
            self.left = Arrowhead.of(K, self.U, self.s, *of_K)
        else:
            self.left = Eigenbasis(*(G.eigen() if self.root is None else G.scaled_eigen(self.root, graded=graded)))
            shared = K is G and not ranking and self.root is None
            self.U, self.s = (self.left.basis, self.left.g) if shared else K.eigen(centred=ranking)
        self.YU = np.asarray(Y @ self.U)  # (p, rank of K)
        self.E = self.left.basis.T @ self.YU
        self.mean_eigenvalue = float(self.left.trace * self.s.sum()) / (Y.shape[0] * Y.shape[1])
        self.constant = _Constant(self) if intercept and not ranking else None
        self._left_at: dict[float, tuple[np.ndarray, np.ndarray]] = {}  # T and V T of the last alpha judged

    @property
    def ranks(self) -> tuple[int, int]:
        """The ranks of G, and of K as the loss sees it."""
        return self.left.basis.shape[1], len(self.s)

    def shrunk(self, E: np.ndarray, alpha: float) -> np.ndarray:
        """(rank of G, rank of K) the residual, at alpha, of coefficients E of Y."""
        if alpha == 0:
            return np.zeros_like(E)
        rho = self.s / alpha
        return self.left.shrunk(E, rho, self.left.omega(rho))

    def coef(self, alpha: float) -> Coefficients:
        """(p, r) the coefficients a at alpha: the residual of Y, divided by alpha."""
        weighted = lambda M: M if self.root is None else M * self.root[:, None]
        if alpha in self._left_at:
            return Coefficients(weighted(self._left_at[alpha][1] / alpha), None, self.U, self.parity)
        E = self.E if self.constant is None else self.E - self.intercept(alpha) * self.constant.E
        if alpha == 0:
            assert isinstance(self.left, Eigenbasis)  # the features determine every weight
            return Coefficients(weighted(self.left.basis), E / np.outer(self.left.g, self.s), self.U, self.parity)
        return Coefficients(weighted(self.left.basis), self.shrunk(E, alpha) / alpha, self.U, self.parity)

    def intercept(self, alpha: float) -> float:
        """The unpenalised constant."""
        return 0.0 if self.constant is None else self.constant.at(alpha)[0]

    def leave_rows_out(
        self,
        alphas: np.ndarray,
        dtype: DTypeLike = np.float64,
        *,
        rows: Rows = slice(None),
        constants: bool = False,
        interpolate: int = INTERPOLATE,
    ) -> np.ndarray:
        """(k, n, r) the scores of some rows by the model that never saw that row, for each alpha.

        With T = `shrunk` of E, the residual of all rows is R U = (Y U - V E) + V T, and leaving out row h divides its
        element j by one minus the row's leverage. A ranking leaves a constant per row undetermined: `constants` adds
        the one that a refit would have.
        """
        if constants and self.ranking:
            return np.stack([self._rows_with_means(alpha, rows, interpolate) for alpha in alphas]).astype(
                dtype, copy=False
            )
        number = np.arange(len(self.YU))[rows]
        scores = np.empty((len(alphas), len(number), len(self.U)), dtype=dtype)
        out = _RowsOut.of(self, alphas, dtype, interpolate)
        found = out.between(number) if dtype == np.float32 and self.constant is None else None
        if found is not None and found.precise.mean() > 0.5:
            return self.leave_rows_out(alphas, rows=rows, interpolate=interpolate).astype(dtype)
        chosen = np.arange(len(alphas)) if found is None else found.chosen

        def leave_out(jobs: Sequence[Any]) -> None:
            for job, at in jobs:
                k = chosen[job]
                T = out.left.shrunk(out.E, (self.s / alphas[k]).astype(dtype), out.omegas[k](0))
                for i in range(at.start, at.stop, ROWS):
                    some = number[i : min(i + ROWS, at.stop)]
                    out(k, T, _as_slice(some), scores[k, i : i + len(some)])

        share(leave_out, _jobs(len(chosen), len(number)), cost=scores.size, label="objects left out")
        if found is not None and len(found.others):
            some = [slice(i, i + FILLED) for i in range(0, len(number), FILLED)]
            share(partial(found.fill, scores), some, cost=scores.size)
        if found is not None and found.precise.any():
            scores[:, found.precise] = self.leave_rows_out(alphas, rows=number[found.precise], interpolate=interpolate)
        return scores

    def row_losses(self, alphas: np.ndarray, interpolate: int = INTERPOLATE) -> np.ndarray:
        """(k,) the loss over all rows, each under the model that never saw it, up to a constant."""
        out = _RowsOut.of(self, alphas, np.float64, interpolate)
        losses = np.zeros(len(alphas))
        for k, alpha in enumerate(alphas):
            T = self.shrunk(self.E, alpha)
            for i in range(0, len(self.YU), ROWS):
                rows = slice(i, min(i + ROWS, len(self.YU)))
                losses[k] += float(np.sum((out.residuals(T, rows) / out.stays[k](rows)) ** 2))
        return losses

    def _outside(self, dtype: DTypeLike = np.float64) -> np.ndarray | None:
        """(p, rank of K) the part of Y U outside the basis of G."""
        full = self.left.basis.shape[0] == self.left.basis.shape[1]
        return None if full else (self.YU - self.left.basis @ self.E).astype(dtype)

    def _rows_with_means(self, alpha: float, rows: Rows, interpolate: int) -> np.ndarray:
        """(n, r) held-out scores of a ranking with the constants that a refit would have.

        Held-out scores are K times the held-out dual coefficients: s gives their differences from the mean, K itself
        their mean. The coefficient in direction j is a difference divided by s, (YU - R / stay) / s, which loses digits
        where s and the leverage are both small; there it is (V (A T) / alpha - YU l) / stay, l the leverage over s.
        """
        left, YU, s = self.left, self.YU[rows], self.s
        T = self.shrunk(self.E, alpha)
        VT, outside = left.basis @ T, self._outside()
        self._left_at = {alpha: (T, VT)}
        R = VT[rows] if outside is None else VT[rows] + outside[rows]
        stays, levers = over_alphas((left.rest, left.leverages), left, s, np.array([alpha]), np.float64, interpolate)
        stay = stays[0](rows)
        dual = (YU - R / stay) / np.where(s > 0, s, 1)
        tiny = s < UNCLEAR * float(self.K.mean.sum())
        if tiny.any():
            lever = levers[0](rows)[:, tiny] / alpha
            other = left.basis[rows] @ (left.times(T[:, tiny]) / alpha) - YU[:, tiny] * lever
            dual[:, tiny] = np.where(s[tiny] * lever > 0.5, dual[:, tiny], other / stay[:, tiny])
        mean = self.K.mean  # a = dual U' minus its mean: a direction with s = 0 may be the constant itself
        of_means = dual @ (self.U.T @ (mean - mean.mean()))
        scores = (dual * s) @ self.U.T + of_means[:, None]
        return scores if self.root is None else scores / self.root[rows, None]

    def leave_edges_out(self, alpha: float) -> np.ndarray:
        """(p, r) each edge under the model that never saw it.

        The fit is linear in Y, so with f and h its value and its derivative by the edge's own label, the held-out value
        is (f - h y) / (1 - h). In ranking, the row's free constant is part of the model: the mean residual of the other
        edges of the row.
        """
        Y = np.asarray(self.Y.toarray() if sparse.issparse(self.Y) else self.Y)
        Y = Y - Y.mean(axis=1, keepdims=True) if self.ranking else Y  # the caller adds the mean
        left, U, outside = self.left, self.U, self._outside()
        stay = left.rest(self.s / alpha, slice(None)) @ (U**2).T
        R = left.basis @ self.shrunk(self.E, alpha)
        R = (R if outside is None else R + outside) @ U.T
        if U.shape[1] + self.ranking < len(U):  # else these parts are rounding
            stay += 1 - np.sum(U**2, axis=1) - self.ranking / len(U)
            R += Y - self.YU @ U.T
        if self.constant is not None:
            mu, delta = self.constant.at(alpha)
            e = self.constant.rest(alpha, slice(None)) @ U.T + np.outer(self.constant.d, self.constant.left)
            R, stay = R - mu * e, stay - e**2 / delta
        held = without_rounding(Y - R / stay, Y)
        return held if self.root is None else held / self.root[:, None]


@dataclass(frozen=True)
class _RowsOut:
    """What leaving out rows needs, in the precision of the computation."""

    path: Kronecker
    alphas: np.ndarray
    left: Smoother
    E: np.ndarray
    YU: np.ndarray
    U: np.ndarray
    outside: np.ndarray | None
    stays: list[Any]  # for each alpha a function of rows
    omegas: list[Any]

    @classmethod
    def of(cls, path: Kronecker, alphas: np.ndarray, dtype: DTypeLike, interpolate: int) -> _RowsOut:
        left = path.left
        E, YU, U = (np.asarray(M, dtype=dtype) for M in (path.E, path.YU, path.U))
        stays, omegas = over_alphas((left.rest, left.omega), left, path.s, alphas, dtype, interpolate)
        return cls(path, alphas, left.cast(dtype), E, YU, U, path._outside(dtype), stays, omegas)

    def between(self, rows: np.ndarray) -> Between:
        """Which alphas give the scores of the others, found from a sample of directions."""
        of, stands_for = sample_of(self.path.s)
        at, weight = _as_slice(rows), np.sqrt(stands_for).astype(self.E.dtype)
        E, YU, basis = self.E[:, of], self.YU[at][:, of], self.left.basis[at]
        held = np.empty((len(self.alphas), *YU.shape), dtype=E.dtype)
        for k, alpha in enumerate(self.alphas):
            rho = (self.path.s[of] / alpha).astype(E.dtype)
            R = basis @ self.left.shrunk(E, rho, self.omegas[k](0, of))
            if self.outside is not None:
                R += self.outside[at][:, of]
            held[k] = (YU - R / self.stays[k](at, of)) * weight
        return between(held, np.linalg.norm(YU * weight, axis=1))

    def residuals(self, T: np.ndarray, rows: Rows) -> np.ndarray:
        """The residuals of some rows of Y U, given the residual T of E."""
        R = self.left.basis[rows] @ T
        if self.outside is not None:
            R += self.outside[rows]
        return R

    def __call__(self, k: int, T: np.ndarray, rows: Rows, scores: np.ndarray) -> None:
        """Fill in the scores of some rows at alpha k, given the residual T of E."""
        R, stay = self.residuals(T, rows), self.stays[k](rows)
        if self.path.constant is not None:
            scores[:] = self.path.constant.held_out(R, stay, self.alphas[k], rows)
        else:
            R /= stay
            YU = self.YU[rows]
            held = without_rounding(np.subtract(YU, R, out=R), YU)
            np.matmul(held, self.U.T, out=scores)
        if self.path.root is not None:
            scores /= self.path.root[rows, None]


def _roots(weights: np.ndarray) -> tuple[np.ndarray, bool]:
    """The square roots of weights, where zeros are tiny instead, and whether they differ by orders of magnitude."""
    least, most = weights[weights > 0].min(initial=np.inf), weights.max()
    graded = bool(most > GRADED * least)
    return np.sqrt(np.maximum(weights, 1e-24 * (least if graded else most))), graded


def without_rounding(left: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Set rows of residuals to zero, in place, where they are only the rounding of their row of `values`.

    Otherwise rows that have nothing in common with others, as under a kernel of ids, would be ranked by what rounding
    leaves of their own labels.
    """
    size = lambda M: np.einsum("ij,ij->i", M, M)
    left[size(left) <= ROUNDING[left.itemsize] ** 2 * size(values)] = 0
    return left


def _as_slice(rows: np.ndarray) -> Any:
    """Adjacent rows as a slice, which avoids a copy."""
    return slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] == len(rows) - 1 else rows


def _jobs(n_alphas: int, n_rows: int) -> list[tuple[int, slice]]:
    """Jobs for threads, as (index of alpha, rows): whole alphas, then parts of the last few."""
    n = n_threads()
    whole = n_alphas - n_alphas % n
    jobs = [(k, slice(0, n_rows)) for k in range(whole)]
    step = -(-n_rows // n)
    parts = [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, max(1, step))]
    return jobs + [(k, part) for k in range(whole, n_alphas) for part in parts]


class _Constant:
    """An unpenalised constant in a regression; with D the diagonal weights, b = D 1 1' and e = b - H b its residual."""

    def __init__(self, path: Kronecker):
        p, r = path.Y.shape
        self.path = path
        self.d = np.ones(p) if path.root is None else path.root
        self.of_U = path.U.sum(axis=0)
        V, U = path.left.basis, path.U
        self.E = np.outer(V.T @ self.d, self.of_U)
        # the parts of b that no model can fit: zero, not rounding, where the bases are complete
        self.outside = np.zeros(p) if V.shape[1] == p else self.d - V @ (V.T @ self.d)
        self.left = np.zeros(r) if U.shape[1] == r else 1.0 - U @ self.of_U
        self.left_square = float(self.left @ self.left)
        self.left_Y = np.asarray(path.Y @ self.left).ravel()  # (p,) its product with each row of Y

    def rest(self, alpha: float, rows: Rows) -> np.ndarray:
        """Some rows of e U."""
        return self.path.left.basis[rows] @ self.path.shrunk(self.E, alpha) + self.outside[rows, None] * self.of_U

    def at(self, alpha: float) -> tuple[float, float]:
        """The constant, and <b, e>."""
        rest = self.path.shrunk(self.E, alpha)
        delta = np.sum(rest * self.E) + (self.outside @ self.outside) * (self.of_U @ self.of_U)
        delta += (self.d @ self.d) * self.left_square
        with_Y = np.sum(rest * self.path.E) + self.outside @ (self.path.YU @ self.of_U) + self.d @ self.left_Y
        return float(with_Y / delta), float(delta)

    def held_out(self, R: np.ndarray, stay: np.ndarray, alpha: float, rows: Rows) -> np.ndarray:
        """Rows under models with a constant that never saw them, from residuals R (n, rank) without one.

        The constant adds a rank-one term to each row's block of the hat matrix; see Sherman and Morrison.
        """
        path, (mu, delta) = self.path, self.at(alpha)
        d = self.d[rows]
        e = self.rest(alpha, rows)
        r = R - mu * e
        products = np.sum(e * r / stay, axis=1) + d * self.left_Y[rows] - mu * d**2 * self.left_square
        squares = np.sum(e * e / stay, axis=1) + d**2 * self.left_square
        rest = delta - squares  # zero, up to rounding, for a row that is refitted
        change = np.divide(products, rest, out=np.zeros_like(products), where=rest != 0)
        held = (path.YU[rows] - (r + change[:, None] * e) / stay) @ path.U.T
        held += np.outer((mu - change) * d, self.left)
        mean = held.mean(axis=1, keepdims=True)
        return mean + without_rounding((held - mean).astype(R.dtype, copy=False), path.YU[rows])


class Mirrored:
    """Every alpha of symmetric (parity 1) or reciprocal (-1) ranking on a complete relation."""

    def __init__(self, K: Domain, Y: Any, parity: int):
        self.parity, self.K = parity, K
        self.V, self.k = K.eigen()
        n = Y.shape[0]
        mean = np.asarray(Y.mean(axis=1)).reshape(n, 1)
        YV = Y @ self.V - mean * self.V.sum(axis=0) if sparse.issparse(Y) else (Y - mean) @ self.V
        self.E = part(self.V.T @ YV, parity)
        self.w = self.V.sum(axis=0) / np.sqrt(n)
        self.mean_eigenvalue = float(self.k.sum() * (self.k.sum() - self.k @ self.w**2)) / n**2

    @property
    def ranks(self) -> tuple[int, int]:
        """The ranks of K and of the centred K."""
        return len(self.k), len(self.K.eigen(centred=True)[1])

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
        except linalg.LinAlgError:  # alpha is so small that a shift of all scores is free; it does not change rankings
            t = linalg.lstsq(Q, rhs, check_finite=False)[0]
        outer = np.outer(t, w)
        B = (self.E + (outer + sign * outer.T) / 2) * D
        return Coefficients(self.V, B, self.V, sign)

    def intercept(self, alpha: float) -> float:
        """Zero: a constant does not change rankings."""
        return 0.0
