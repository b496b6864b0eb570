"""The leverage of rows, for many rows, eigenvalues and alphas at once.

Leaving out row h of a complete relation divides element j of its residual by

    1 - sum_i V[h, i]^2 g_i s_j / (g_i s_j + alpha),

which depends on j and alpha only through x = log(s_j / alpha): for each row it is a smooth function of one number,
whose logarithm is analytic in the strip |Im x| < pi. If there are more eigenvalues than nodes that a Chebyshev
interpolant needs for twelve digits (seven in single precision), it is evaluated only at the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..system.types import DTypeLike
from .smoothing import Smoother

OfRows = Callable[..., np.ndarray]
INTERPOLATE = 256  # leverages are interpolated if there are more eigenvalues than this


def over_alphas(
    functions: Sequence[Callable[[np.ndarray, Any], np.ndarray]], left: Smoother, s: np.ndarray, alphas: np.ndarray,
    dtype: DTypeLike, interpolate: int = INTERPOLATE,
) -> list[list[OfRows]]:  # fmt: skip
    """For each function of (rho, rows) and each alpha, a function of rows at rho = s / alpha, or some of its columns.

    The functions are interpolated in log(rho) if there are many eigenvalues.
    """
    flat = np.log(1e-18 / max(left.largest, 1e-300))  # below this the leverage is zero
    log_s = np.log(s)
    low = max(flat, log_s.min(initial=0) - np.log(alphas.max()))
    high = log_s.max(initial=0) - np.log(alphas.min())
    xs = [np.maximum(log_s - np.log(alpha), flat) for alpha in alphas]
    if high <= low or left.basis.shape[1] <= interpolate:
        exact = lambda at, x, rows, columns=slice(None): at(np.exp(x[columns]), rows).astype(dtype)
        return [[partial(exact, at, x) for x in xs] for at in functions]
    nodes = Chebyshev.on(low, high, strip=np.pi, digits=13.0 if dtype == np.float64 else 8.0)
    weights = [nodes.matrix(np.clip(x, low, high)).astype(dtype) for x in xs]
    rho, everybody = np.exp(nodes.x), slice(None)
    logs = [np.log(np.maximum(at(rho, everybody), 1e-300)).astype(dtype) for at in functions]
    return [[partial(_interpolated, log, W) for W in weights] for log in logs]


def _interpolated(log: np.ndarray, weights: np.ndarray, rows: Any, columns: Any = slice(None)) -> np.ndarray:
    found = log[rows] @ weights[:, columns]
    return np.exp(found, out=found)


@dataclass(frozen=True)
class Chebyshev:
    """Interpolation of analytic functions on an interval."""

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
        """(n, n) takes values at the nodes to Chebyshev coefficients."""
        n = len(self.x)
        C = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(n)) / n) * (2 / n)
        C[:, 0] /= 2
        return C

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """(n, len(x)) such that values at the nodes times it are values at x."""
        t = np.arccos(np.clip(2 * (x - self.low) / (self.high - self.low) - 1, -1, 1))
        return self._of_nodes @ np.cos(np.outer(np.arange(len(self.x)), t))
