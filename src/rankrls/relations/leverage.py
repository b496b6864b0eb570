"""How much of itself a row explains, for many rows, eigenvalues and alphas at once.

Leaving out row h of a complete relation divides element j of its residual by

    1 - sum_i V[h, i]^2 g_i s_j / (g_i s_j + alpha),

which depends on j and alpha through x = log(s_j / alpha) alone: for each row a smooth function of one number, whose
logarithm is analytic in the strip |Im x| < pi. With more eigenvalues than a Chebyshev interpolant needs nodes for
twelve digits (seven in single precision), it is evaluated at the nodes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..system.types import DTypeLike

OfRows = Callable[[Any], np.ndarray]
INTERPOLATE = 256  # eigenvalues beyond which leverages are interpolated


def remaining(
    V: np.ndarray, g: np.ndarray, s: np.ndarray, alphas: np.ndarray, dtype: DTypeLike, interpolate: int = INTERPOLATE
) -> Iterator[OfRows]:
    """For each alpha a function rows -> (n, len(s)) of one less the leverage."""
    square = V**2
    full = V.shape[0] == V.shape[1]
    rest = np.zeros(len(square)) if full else np.maximum(0, 1 - square.sum(axis=1))
    at = lambda x, rows: square[rows] @ (1 / (1 + np.outer(g, np.exp(x)))) + rest[rows, None]
    return _over(at, g, s, alphas, dtype, interpolate)


def leverages(
    V: np.ndarray, g: np.ndarray, s: np.ndarray, alphas: np.ndarray, interpolate: int = INTERPOLATE
) -> Iterator[OfRows]:
    """For each alpha a function rows -> (n, len(s)) of alpha / s times the leverage, to full relative precision.

    sum_i V[h, i]^2 g_i / (g_i s_j / alpha + 1) is a function of x = log(s_j / alpha) of the same kind.
    """
    square = V**2
    at = lambda x, rows: square[rows] @ (g[:, None] / (1 + np.outer(g, np.exp(x))))
    return _over(at, g, s, alphas, np.float64, interpolate)


def _over(
    at: Callable[[np.ndarray, Any], np.ndarray], g: np.ndarray, s: np.ndarray, alphas: np.ndarray, dtype: DTypeLike,
    interpolate: int,
) -> Iterator[OfRows]:  # fmt: skip
    """at(x, rows) for x = log(s / alpha), interpolated where there are many eigenvalues."""
    flat = np.log(1e-18 / g.max(initial=1e-300))  # below this the leverage is zero
    log_s = np.log(s)
    low = max(flat, log_s.min(initial=0) - np.log(alphas.max()))
    high = log_s.max(initial=0) - np.log(alphas.min())
    digits = 13.0 if dtype == np.float64 else 8.0
    many = high > low and len(g) > interpolate
    nodes = Chebyshev.on(low, high, strip=np.pi, digits=digits) if many else None
    values: Any = None if nodes is None else np.log(np.maximum(at(nodes.x, slice(None)), 1e-300)).astype(dtype)
    for alpha in alphas:
        x = np.maximum(log_s - np.log(alpha), flat)
        if nodes is None:
            yield lambda rows, x=x: at(x, rows).astype(dtype)  # type: ignore[misc]
        else:
            weights = nodes.matrix(np.clip(x, low, high)).astype(dtype)
            yield lambda rows, weights=weights: np.exp(values[rows] @ weights)  # type: ignore[misc]


@dataclass(frozen=True)
class Chebyshev:
    """Interpolation of analytic functions between two ends."""

    low: float
    high: float
    x: np.ndarray  # (n,) nodes

    @classmethod
    def on(cls, low: float, high: float, *, strip: float, digits: float) -> Chebyshev:
        """Enough nodes for functions that are analytic up to a distance `strip` from the real axis."""
        rate = np.arcsinh(2 * strip / (high - low))  # a Chebyshev series decays like exp(-rate n)
        n = int(np.ceil(digits * np.log(10) / rate)) + 2
        t = np.cos(np.pi * (np.arange(n) + 0.5) / n)
        return cls(low, high, low + (high - low) * (t + 1) / 2)

    @cached_property
    def _of_nodes(self) -> np.ndarray:
        """(n, n) from values at the nodes to Chebyshev coefficients."""
        n = len(self.x)
        C = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(n)) / n) * (2 / n)
        C[:, 0] /= 2
        return C

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """(n, len(x)) such that values at the nodes times it are values at x."""
        t = np.arccos(np.clip(2 * (x - self.low) / (self.high - self.low) - 1, -1, 1))
        return self._of_nodes @ np.cos(np.outer(np.arange(len(self.x)), t))
