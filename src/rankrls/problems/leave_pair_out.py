"""Leave-pair-out for a single query: how often a model that never saw two items puts them in the right order.

The mean over all pairs of items with different labels is an almost unbiased estimate of the area under the ROC curve,
unlike the mean over folds of items. There are m^2 / 2 pairs, and none needs a refit. With p, n_j the weights of the
loss among the other m - 2 items (n_j = 0 where tied pairs count), r = y - f and free b, b_j, their loss is

    sum over items i of  p (r_i - b)^2 - n_j (r_i - b_j)^2,      p = between^2,  n_j = between^2 - within_j^2

at its stationary point in b and b_j (the means over the items and over each level j). The weights p and n_j depend only
on the levels of the two items left out. With these levels fixed, an item is two rows of a quadratic, x_i - b of weight
p and x_i - b_j of weight -n_j, and leaving out items i and k removes four rows from the sum over all m items. With H
the influence of these rows on each other and W their weights,

    (I - H W) e = r      e: the residuals of the four rows under the model without them.

H comes from one factorisation for each pair of levels (a single one if tied pairs count), e from elementwise
operations on matrices of pairs. F and its pseudo-inverse, with the weights p and n_j over all m items, give H: where
F X (X'F'F X + alpha I)^-1 X'F' = B diag(h) B', rows x_i - mean are T = F^+ B in coordinates of metric diag(h).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.means import grades
from ..core.symmetric import cutoff, eigh
from ..core.weighting import Weighting
from ..system.lazy import cached_property
from ..system.parallel import share

CELLS = 1 << 17  # pairs computed at once
LEVEL_PAIRS = 100  # most factorisations
SINGULAR = 1e-10

Block = tuple[np.ndarray, np.ndarray, np.ndarray]  # upper items, lower items, and a mask of the pairs to compare


@dataclass(frozen=True)
class OneQuery:
    """The items of one query, in features whose penalty is ||w||^2 (or by their kernel matrix), and the loss."""

    features: np.ndarray | None  # (m, n)
    K: np.ndarray | None  # (m, m)
    y: np.ndarray  # (m,)
    weighting: str
    regression: float
    tied: bool

    def accuracy(self, alphas: np.ndarray, relevant: float | None = None) -> np.ndarray:
        """(k,) the share of pairs with different labels in the right order by models that never saw either item.

        `relevant` compares only items with y >= relevant to others.
        """
        right, pairs = np.zeros(len(alphas)), 0
        for part in self._parts():
            blocks = list(part.blocks(relevant))
            right += part.right(blocks, alphas)
            pairs += sum(int(np.sum(compared)) for _, _, compared in blocks)
        if not pairs:
            raise ValueError(
                "no pair of items to leave out: the labels are all equal, or all on one side of `relevant`"
            )
        return right / pairs

    def _parts(self) -> Iterator[_Part]:
        """The problem for each pair of levels that loses an item; only one if tied pairs count or no items tie."""
        m, level = len(self.y), grades(self.y)
        size = np.bincount(level).astype(float)
        if self.tied or size.max() == 1:
            loss = Weighting.ties_included(self.weighting, self.regression, np.array([m - 2.0]))
            yield _Part(self, float(loss.between2[0]), np.zeros(len(size)), level, None)
            return
        present = np.flatnonzero(size)
        if len(present) * (len(present) - 1) // 2 > LEVEL_PAIRS:
            raise ValueError(
                f"leave-pair-out without tied pairs needs one factorisation for every pair of labels, but y has "
                f"{len(present)} different ones, some of them tied: set tied_pairs=True"
            )
        for a in present:
            for b in present[present < a]:
                left = size - (np.arange(len(size)) == a) - (np.arange(len(size)) == b)
                loss = Weighting(self.weighting, self.regression, np.zeros(len(size), dtype=np.intp), left, 1)
                p = float(loss.between2[0])
                yield _Part(self, p, np.maximum(p - loss.within2, 0.0), level, (int(a), int(b)))


@dataclass(frozen=True)
class _Part:
    """All items, with the weights of the loss once an item of each of two levels is left out."""

    query: OneQuery
    p: float
    n: np.ndarray  # (levels,)
    level: np.ndarray  # (m,)
    of: tuple[int, int] | None  # the two levels, None if it does not matter which

    def blocks(self, relevant: float | None) -> Iterator[Block]:
        """The pairs with different labels, a few items at a time."""
        y, order = self.query.y, np.argsort(self.query.y, kind="stable")
        upper, lower = (order, order) if self.of is None else (np.flatnonzero(self.level == j) for j in self.of)
        if relevant is not None:
            upper, lower = upper[y[upper] >= relevant], lower[y[lower] < relevant]
        step = max(1, CELLS // max(1, len(lower)))
        for i in range(0, len(upper), step):
            some = upper[i : i + step]
            below = lower[y[lower] < y[some].max()]
            if len(below):
                yield some, below, y[some][:, None] > y[below]

    def right(self, blocks: Sequence[Block], alphas: np.ndarray) -> np.ndarray:
        """(k,) how many of these pairs are in the right order; tied scores count half."""
        if self.p <= 0 or np.any(self.p - self.n[self.level] <= 0):  # nothing is left to learn from
            return np.full(len(alphas), sum(np.sum(compared) for _, _, compared in blocks) / 2)
        right = np.zeros(len(alphas))
        for k, alpha in enumerate(alphas):
            state = self._state(float(alpha))

            def work(some: Sequence[Block], state: _State = state) -> float:
                return sum(state.right(*block) for block in some)

            right[k] = sum(share(work, blocks, cost=20.0 * len(self.level) ** 2))
        return right

    @cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """T = F^+ B (m, r), the eigenvalues d (r,), B'F y (r,) and whether B has orthonormal columns (a kernel)."""
        query = self.query
        if query.features is not None:
            A = self._F(query.features)
            d, V = eigh(A.T @ A)
            keep = d > max(d[-1], 0.0) * cutoff(len(d)) if len(d) else d > 0
            B = A @ V[:, keep]
        else:
            assert query.K is not None
            FK = self._F(query.K)
            d, U = eigh(self._F(FK.T.copy()))
            keep = d > max(d[-1], 0.0) * cutoff(len(d))
            B = U[:, keep]
        return self._F(B, inverse=True), d[keep], B.T @ self._F(query.y[:, None])[:, 0], query.features is None

    def _F(self, V: np.ndarray, *, inverse: bool = False) -> np.ndarray:
        """F V, or F^+ V."""
        mean = V.mean(axis=0)
        between, within = np.sqrt(self.p), np.sqrt(self.p - self.n[self.level])[:, None]
        between, within = (1 / between, 1 / within) if inverse else (between, within)
        means = self._level_means(V)
        return within * (V - means) + between * (means - mean) if self.of is not None else between * (V - mean)

    def _level_means(self, V: np.ndarray) -> np.ndarray:
        """(m, ...) the mean of V over the level of each item."""
        total = np.zeros((len(self.n), *V.shape[1:]))
        np.add.at(total, self.level, V)
        size = np.maximum(np.bincount(self.level, minlength=len(self.n)), 1)
        return (total / size.reshape(-1, *(1,) * (V.ndim - 1)))[self.level]

    def _state(self, alpha: float) -> _State:
        T, d, c, complete = self.spectrum
        h = (d if complete else 1.0) / (d + alpha)
        y = self.query.y - self.query.y.mean()
        fitted = T @ (h * c)
        condition = 1 + d.max(initial=0) / (alpha or d.min(initial=np.inf))  # residuals of y are divided by 1 - h
        rounding = max(2.0**-38 * np.ptp(fitted), min(64 * np.finfo(float).eps * condition, 1e-7) * np.ptp(y))
        return _State(self, alpha, T * np.sqrt(h), y - fitted, float(rounding))


@dataclass(frozen=True)
class _State:
    """The model of all items at one alpha: rows T with x_i'(X'LX + alpha I)^-1 x_k = T_i'T_k, and residuals."""

    part: _Part
    alpha: float
    T: np.ndarray  # (m, r)
    r: np.ndarray  # (m,)
    rounding: float  # scores that differ by less are tied

    def right(self, upper: np.ndarray, lower: np.ndarray, compared: np.ndarray) -> float:
        """How many of the compared pairs are in the right order."""
        margin = self.margins(upper, lower)[compared]
        return float(np.sum(margin > self.rounding) + np.sum(np.abs(margin) <= self.rounding) / 2)

    def margins(self, upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """(upper, lower) how much higher each upper item scores than each lower one when neither was seen."""
        y = self.part.query.y
        apart = (
            self._residual_differences(upper, lower)
            if self.part.of is None
            else self._residual_differences_in_levels(upper, lower)
        )
        return y[upper][:, None] - y[lower] - apart

    @cached_property
    def _square(self) -> np.ndarray:
        """(m,) T_i'T_i."""
        return np.einsum("ij,ij->i", self.T, self.T)

    def _residual_differences(self, i: np.ndarray, k: np.ndarray) -> np.ndarray:
        """e_i - e_k where no level matters: one row for each item."""
        p, m = self.part.p, len(self.r)
        own = 1 - 1 / m - p * self._square
        cross = -1 / m - p * (self.T[i] @ self.T[k].T)
        ri, rk, gi, gk = self.r[i][:, None], self.r[k], own[i][:, None], own[k]
        return (ri * (gk + cross) - rk * (gi + cross)) / self._determined(gi * gk - cross**2)

    def _residual_differences_in_levels(self, i: np.ndarray, k: np.ndarray) -> np.ndarray:
        """The same with two rows for each item, by elimination of those of item i."""
        a, b = self.part.level[[i[0], k[0]]]
        Wi, Wk = (np.array([self.part.p, -self.part.n[level]]) for level in (a, b))
        P, mi, mk = self.T[i] @ self.T[k].T, self._mean(a), self._mean(b)
        down, across = (self.T[i] @ mk)[:, None], self.T[k] @ mi
        H = np.array([[P + 1 / (self.part.p * len(self.r)), P - down], [P - across, P - down - across + mi @ mk]])
        ri, rk = self._residuals(i, a)[:, :, None], self._residuals(k, b)[:, None]
        Ai, Dk = self._item_systems(i, a, Wi)[..., None], self._item_systems(k, b, Wk)[:, :, None]
        B, C = -H * Wk[None, :, None, None], -H.swapaxes(0, 1) * Wi[None, :, None, None]
        CA = _times(C, self._inverse(Ai))
        ek = _apply(self._inverse(Dk - _times(CA, B)), rk - _apply(CA, ri))
        ei = _apply(self._inverse(Ai), ri - _apply(B, ek))
        return ei[0] - ek[0]

    def _mean(self, level: int) -> np.ndarray:
        return self.T[self.part.level == level].mean(axis=0)

    def _residuals(self, items: np.ndarray, level: int) -> np.ndarray:
        """(2, items)."""
        return np.array([self.r[items], self.r[items] - self.r[self.part.level == level].mean()])

    def _item_systems(self, items: np.ndarray, level: int, W: np.ndarray) -> np.ndarray:
        """(2, 2, items) I - H W of the two rows of each item."""
        T, n = self.T[items], self.part.n[level]
        about = T - self._mean(level)
        size = np.count_nonzero(self.part.level == level)
        free = 1 / (n * size) if n > 0 else 0.0
        first, both = self._square[items] + 1 / (self.part.p * len(self.r)), np.einsum("ij,ij->i", T, about)
        H = np.array([[first, both], [both, np.einsum("ij,ij->i", about, about) - free]])
        return np.eye(2)[:, :, None] - H * W[None, :, None]

    def _inverse(self, M: np.ndarray) -> np.ndarray:
        """The inverses of matrices M (2, 2, ...)."""
        det = self._determined(M[0, 0] * M[1, 1] - M[0, 1] * M[1, 0])
        return np.array([[M[1, 1], -M[0, 1]], [-M[1, 0], M[0, 0]]]) / det

    def _determined(self, det: np.ndarray) -> np.ndarray:
        if self.alpha == 0 and np.any(np.abs(det) < SINGULAR):
            raise ValueError(
                "alpha=0 does not determine a model once a pair of items is left out: there are too few items "
                "for the features; use an alpha above zero"
            )
        return det


def _times(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B of matrices (2, 2, ...)."""
    return np.array([[A[i, 0] * B[0, k] + A[i, 1] * B[1, k] for k in range(2)] for i in range(2)])


def _apply(A: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A v of matrices (2, 2, ...) and vectors (2, ...)."""
    return np.array([A[i, 0] * v[0] + A[i, 1] * v[1] for i in range(2)])
