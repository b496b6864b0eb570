"""The noise of labels, estimated from held-out scores: sigma of the residuals, and tau, which calibrates an order.

tau maximises the likelihood of held-out pairs of one query under P(a above b) = Phi((f(a) - f(b)) / tau).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx

from . import fused
from .queries import Queries

SAMPLE = 8000  # held-out pairs to calibrate by
FEW = 8  # one in so many of them gives the first approximation
FLATTEST, STEEPEST = 1e-4, 1e5  # limits of b in Phi(b margin), margins up to 1: pure chance, and near certainty


@dataclass(frozen=True)
class HeldOutNoise:
    """What sigma and tau of k models are computed from; those of disjoint queries add up."""

    square: np.ndarray  # (k,) of residuals within queries
    free: int  # rows less queries
    margins: np.ndarray  # (s, k) differences of held-out scores of sampled pairs, above zero where the order is right
    keys: np.ndarray  # (s,) random numbers; the smallest are kept

    @classmethod
    def of(cls, y: np.ndarray, held_out: np.ndarray, queries: Queries) -> HeldOutNoise:
        """From labels (m,) and held-out scores (m, k), NaN for rows in no fold."""
        known = ~np.isnan(held_out[:, 0])
        if not known.all():
            y, held_out, queries = y[known], held_out[known], Queries(queries.labels, queries.codes[known])
        a, b, share = _pairs(y, queries)
        margins = (held_out[a] - held_out[b]) * np.sign(y[a] - y[b])[:, None]
        rng = np.random.default_rng(zlib.crc32(y.tobytes()))
        keys = rng.exponential(size=len(a)) / share
        return cls(_squares(y, held_out, queries), len(y) - int(np.count_nonzero(queries.sizes)), margins, keys)

    def __add__(self, other: HeldOutNoise) -> HeldOutNoise:
        margins, keys = np.concatenate([self.margins, other.margins]), np.concatenate([self.keys, other.keys])
        if len(keys) > SAMPLE:
            kept = np.argpartition(keys, SAMPLE)[:SAMPLE]
            margins, keys = margins[kept], keys[kept]
        return HeldOutNoise(self.square + other.square, self.free + other.free, margins, keys)

    def at(self, k: int) -> tuple[float, float]:
        """sigma and tau of a model."""
        sigma, margin = float(np.sqrt(self.square[k] / max(1, self.free))), self.margins[:, k]
        size = float(np.abs(margin).max(initial=0.0))
        return sigma, size / _steepness(margin / size) if size > 0 else np.inf


def noise_of(y: np.ndarray, held_out: np.ndarray, queries: Queries) -> tuple[float, float]:
    """sigma and tau from held-out scores (m,) of rows."""
    return HeldOutNoise.of(y, held_out[:, None], queries).at(0)


def noise_of_pairs(margins: np.ndarray, held_out: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    """sigma and tau from the margins of explicit pairs and their held-out predictions, (p,) each."""
    square = np.average((margins - held_out) ** 2, weights=weights)
    size, known = float(np.abs(held_out).max(initial=0.0)), margins != 0
    right = (held_out * np.sign(margins))[known]
    tau = size / _steepness(right / size) if size > 0 and known.any() else np.inf
    return float(np.sqrt(square)), tau


def _squares(y: np.ndarray, held_out: np.ndarray, queries: Queries) -> np.ndarray:
    """(k,) sums of the squares of residuals less their mean in the query."""
    if fused.ready():
        from .compiled import squared_residuals

        square, arrays = np.zeros(held_out.shape[1]), (y, held_out, fused.row_order(queries))
        squared_residuals(  # type: ignore[call-arg]
            *(fused.frozen(np.ascontiguousarray(a)) for a in arrays), queries.starts, queries.sizes, square
        )
        return square
    order = slice(None) if queries.order is None else queries.order
    residual = y[order, None] - held_out[order]
    sizes = queries.sizes[queries.sizes > 0]
    mean = np.add.reduceat(residual, np.cumsum(sizes) - sizes) / sizes[:, None] if len(sizes) else residual
    residual -= np.repeat(mean, sizes, axis=0)
    return np.einsum("ij,ij->j", residual, residual)


def _steepness(margin: np.ndarray) -> float:
    """The b that maximises the sum of log Phi(b margin), concave in b, by Newton's method; margins are at most 1."""
    few, b = margin[::FEW], 0.0
    if len(few) > SAMPLE // 2 // FEW and few.min() < 0 < few.max():  # else there may be no maximum
        b = _newton(0.0, few, 1e-3)
    return _newton(b if FLATTEST < b < STEEPEST else 0.0, margin, 1e-6)


def _newton(b: float, margin: np.ndarray, tol: float) -> float:
    for _ in range(50):
        z = b * margin
        r = np.sqrt(2 / np.pi) / erfcx(-z / np.sqrt(2))  # phi(z) / Phi(z)
        step = float(margin @ r / (margin**2 @ (r * (z + r))))
        b = float(np.clip(b + step, FLATTEST, STEEPEST))
        if abs(step) <= tol * b or (b == FLATTEST and step < 0) or (b == STEEPEST and step > 0):
            break
    return b


def _pairs(y: np.ndarray, queries: Queries) -> tuple[np.ndarray, np.ndarray, float]:
    """A uniform sample of the pairs of rows of one query with different labels, the same on every call.

    Also returns how many such pairs each pair of the sample stands for.
    """
    rng = np.random.default_rng(0)
    total = np.cumsum(queries.sizes.astype(np.float64) ** 2)
    draws = int(min(4 * SAMPLE, 4 * total[-1])) if len(y) else 0
    q = np.searchsorted(total, (total[-1] if len(y) else 0.0) * rng.random(draws), side="right")
    row = lambda: queries.starts[q] + (rng.random(len(q)) * queries.sizes[q]).astype(np.intp)
    a, b = (place if queries.order is None else queries.order[place] for place in (row(), row()))
    differ = y[a] != y[b]
    n = int(differ.sum())
    stands_for = total[-1] / draws * n / min(n, SAMPLE) if n else 1.0
    return a[differ][:SAMPLE], b[differ][:SAMPLE], float(stands_for)
