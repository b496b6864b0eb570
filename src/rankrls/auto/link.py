"""An additive model behind a link: labels are an increasing function g of the score, and g is learned.

Grades are bounded at both ends, so a sum of effects fitted to them must bend there, and products of columns would only
serve that. With y = g(f) and f = Phi w the sum can stay a sum. Around a first f, g(Phi w) = g(f) + g'(f) (Phi w - f),
so the next w is a ridge regression of y - g(f) + g'(f) f on the features g'(f) Phi: a Gauss-Newton step, which needs
only sums over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..core.statistics import Statistics
from .stack import non_negative

PIECES = 16  # linear pieces of g, with equally many rows each
PRIOR = 1000.0  # the prior of equal slopes has the weight of this many rows
LEAST = 0.1  # smallest slope, relative to the mean slope: rows near the end of the grades count little, but they count


class SumsOfRows(Protocol):
    """Rows with labels, such as `AutoRows`."""

    def sums(self, features: np.ndarray, /) -> Statistics: ...


@dataclass(frozen=True)
class Link:
    """An increasing function, linear between knots and beyond them."""

    knots: np.ndarray  # (k - 1,) ascending
    slopes: np.ndarray  # (k,) positive

    @classmethod
    def between(cls, f: np.ndarray, rows: SumsOfRows) -> Link:
        """The function of scores f that fits the labels of the same rows best, with as many rows between knots."""
        knots = np.unique(np.quantile(f, np.arange(1, PIECES) / PIECES))
        return cls.of(knots, rows.sums(pieces(f, knots).astype(np.float32)))

    @classmethod
    def of(cls, knots: np.ndarray, sums: Statistics) -> Link:
        """The function with these knots, from the sums of `pieces` and labels."""
        slopes = non_negative(sums.gram, sums.cross[:, 0], min(1.0, PRIOR / max(sums.n_rows, 1)))
        least = LEAST * float(slopes.mean())
        return cls(knots, np.maximum(slopes, least) if least > 0 else np.ones(len(slopes)))

    def __call__(self, f: np.ndarray) -> np.ndarray:
        """`pieces(f, knots) @ slopes`, without the pieces."""
        piece, start = np.searchsorted(self.knots, f), _starts(self.knots)
        value = np.concatenate([[0.0, 0.0], np.cumsum(self.slopes[1:-1] * np.diff(self.knots))])[: len(start)]
        return value[piece] + self.slopes[piece] * (f - start[piece])

    def slope(self, f: np.ndarray) -> np.ndarray:
        return self.slopes[np.searchsorted(self.knots, f)]


def pieces(f: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """(m, k) how far f reaches into each piece, from the first knot on; the pieces of a row sum to f - knots[0]."""
    ends = np.concatenate([[-np.inf], knots, [np.inf]])
    return np.clip(f[:, None], ends[:-1], ends[1:]) - _starts(knots)


def _starts(knots: np.ndarray) -> np.ndarray:
    """(k,) the knot from which f is measured in each piece."""
    return np.concatenate([knots[:1], knots]) if len(knots) else np.zeros(1)


@dataclass(frozen=True)
class Linked:
    """A fitted additive model with its link, and the features for the next step."""

    map: Any  # an AdditiveMap
    coef: np.ndarray
    link: Link
    features: Any  # an AdditiveMap

    def scores(self, N: np.ndarray) -> np.ndarray:
        """The scores f, before the link."""
        return self.map.scores(N, self.coef)
