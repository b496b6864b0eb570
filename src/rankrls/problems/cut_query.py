"""The sums of one query without some of its items, for all folds in one pass.

Leaving items out changes S, the S_j and with them the weight of every remaining pair. But the sums depend on the items
only through moments of tie levels: with G_j the sum of u x x' over level j, and m_j and m weighted means,

    A'A = sum_j within_j^2 G_j + sum_j S_j (between^2 - within_j^2) m_j m_j' - S between^2 m m'

about any fixed point (with a share of regression, about the mean of the remaining items: the intercept is free).
Moments add, so those of each fold and level, computed once, give the sums without each fold by subtraction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.means import Read
from ..core.preferences import QueryPreferences
from ..core.queries import BATCH_ROWS
from ..core.statistics import Statistics
from ..core.weighting import Weighting
from ..system.parallel import share
from .base import HeldOutFold

MOST_CELLS = 1 << 25  # in the moments of all folds and levels
FEWEST_ROWS = 5000  # with fewer rows, summing the rest of the query again is as fast, and exact for any values
UNEVEN = 1e6  # the rest is also summed again if weights differ by more than this factor
CLEAR = 1e-6  # digits are lost if subtraction leaves less than this share of a sum of squares


@dataclass(frozen=True)
class CutQuery:
    """Moments of the rows [x - origin, y - origin] of each fold and tie level; the last level is of untied items."""

    F: QueryPreferences
    origin: np.ndarray  # (n + 1,)
    squares: np.ndarray  # (folds, levels + 1, n + 1, n + 1)
    totals: np.ndarray  # (folds, levels + 1, n + 1) weighted sums
    weight: np.ndarray  # (folds, levels + 1)
    size: np.ndarray  # (folds, levels + 1) items
    rounding: np.ndarray | None

    @staticmethod
    def pays(F: QueryPreferences, folds: Sequence[HeldOutFold], width: int) -> bool:
        """True if moments are faster: one query, cut into several folds, with few enough tie levels."""
        if len(F.queries) > 1 or F.ties is None or (F.beta > 0 and not F.free):
            return False
        if len(folds) < 2 or any(fold.whole for fold in folds) or F.shape[0] < FEWEST_ROWS:
            return False
        if F.u is not None and F.u.max() > UNEVEN * F.u.min():
            return False
        return (len(folds) + 1) * (len(F.ties.weight) + 1) * width**2 <= MOST_CELLS

    @classmethod
    def of(
        cls,
        F: QueryPreferences,
        reader: Callable[[], Read],
        y: np.ndarray,
        folds: Sequence[HeldOutFold],
        total: Statistics,
    ) -> CutQuery:
        """One pass over the rows of one query; y is (m, 1), and `total` are the sums of all rows."""
        assert F.ties is not None
        n, n_levels, m = len(total.mean), len(F.ties.weight) + 1, F.shape[0]
        u, number = np.ones(m) if F.u is None else F.u, np.full(m, len(folds))
        for k, fold in enumerate(folds):
            number[fold.rows] = k
        group = number * n_levels + np.where(F.ties.level < 0, n_levels - 1, F.ties.level)
        order = np.argsort(group, kind="stable")
        cuts = np.searchsorted(group[order], np.arange((len(folds) + 1) * n_levels + 1))
        some = order[:: max(1, m // BATCH_ROWS)][:BATCH_ROWS]  # any origin among the rows keeps the moments small
        origin = np.append(np.mean(reader()(np.sort(some)), axis=0, dtype=np.float64), y[some, 0].mean())
        squares, totals = np.zeros((len(cuts) - 1, n + 1, n + 1)), np.zeros((len(cuts) - 1, n + 1))

        @np.errstate(over="ignore", invalid="ignore")  # `without` checks
        def work(groups: Sequence[int]) -> None:
            read, V = reader(), np.empty((BATCH_ROWS, n + 1))
            for g in groups:
                for i in range(cuts[g], cuts[g + 1], BATCH_ROWS):
                    rows = np.sort(order[i : min(i + BATCH_ROWS, cuts[g + 1])])
                    block, w = V[: len(rows)], u[rows, None]
                    np.subtract(read(rows), origin[:n], out=block[:, :n])
                    block[:, n] = y[rows, 0] - origin[n]
                    totals[g] += w[:, 0] @ block
                    if F.u is not None:
                        block *= np.sqrt(w)
                    squares[g] += block.T @ block

        share(work, range(len(cuts) - 1), cost=float(m) * n, label="moments of folds")
        shape = (len(folds) + 1, n_levels)
        size, weight = np.diff(cuts), np.bincount(group, weights=u, minlength=len(cuts) - 1)
        parts = squares.reshape(*shape, n + 1, n + 1), totals.reshape(*shape, n + 1)
        return cls(F, origin, *parts, weight.reshape(shape), size.reshape(shape), total.rounding)

    @np.errstate(over="ignore", invalid="ignore")
    def without(self, number: int, fold: HeldOutFold) -> Statistics | None:
        """The sums without one of the folds; None if they have lost too many digits."""
        F, others = self.F, np.arange(len(self.weight)) != number
        G, total, S = (part[others].sum(axis=0) for part in (self.squares, self.totals, self.weight))
        size, n = self.size[others].sum(axis=0), G.shape[1] - 1
        single = F.ties.level < 0  # type: ignore[union-attr]
        single[fold.rows] = False
        levels = np.append(S[:-1], np.ones(np.count_nonzero(single)) if F.u is None else F.u[single])
        weighting = Weighting(F.weighting.kind, F.beta, np.zeros(len(levels), dtype=np.intp), levels, 1)
        between2, left = float(weighting.between2[0]), S[:-1] > 0
        within2 = np.append(np.where(left, weighting.within2[: len(S) - 1], 0.0), between2)
        mean = total.sum(axis=0) / S.sum()
        centred = total[:-1][left] - S[:-1][left, None] * mean  # S_j (m_j - m)
        M = np.tensordot(within2, G - self._about(total, S, mean), axes=1)
        scale = weighting.level_scale[: len(S) - 1][left] / S[:-1][left]
        M += (scale[:, None] * centred).T @ (scale[:, None] * centred)
        before = np.tensordot(within2, np.einsum("jii->ji", G), axes=1)
        seen = before > S.sum() * within2.max() * (1e-12 * self.origin) ** 2  # others are constant up to rounding
        if not np.all(np.isfinite(M)) or np.any(np.diag(M)[seen] < CLEAR * before[seen]):
            return None
        tied = int(np.sum(size[:-1] * (size[:-1] - 1) // 2))
        n_rows = int(size.sum())
        mean = (self.origin + mean) * (F.beta > 0)
        weight, n_pairs = float(S.sum()), n_rows * (n_rows - 1) // 2 - tied
        sums = M[:n, :n], M[:n, n:], M[n:, n].copy(), mean[:n], mean[n:]
        return Statistics(*sums, weight, F.beta, n_rows, 1, n_pairs, self.rounding)

    @staticmethod
    def _about(total: np.ndarray, S: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """What moving the origin to the mean subtracts from the squares of each level."""
        cross = total[:, :, None] * mean
        return cross + cross.transpose(0, 2, 1) - S[:, None, None] * np.outer(mean, mean)
