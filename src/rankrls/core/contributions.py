"""What each feature contributes to the difference of two scores of a kernel model.

With f(x) = sum_i c_i k(x, p_i), the gradient along the straight line x(t) = b + t d, d = a - b, gives

    f(a) - f(b) = sum_j d_j g_j,    g_j = integral over t from 0 to 1 of df/dx_j at x(t),

so d_j g_j is the share of feature j. For a linear model g is its weights, as it should be. Kernels differ only in g:

- Gaussian:   dk/dx_j = -2 gamma (u_j + t d_j) k with u = b - p. With I0 and I1 the integrals of k and t k, both from
              the error function, g_j = -2 gamma (u_j I0 + d_j I1).
- Laplacian:  dk/dx_j = -gamma sign(u_j + t d_j) k. Between the points where some u_j + t d_j changes sign, log k
              is linear in t.
- Polynomial: a polynomial in t of degree - 1, for which Gauss-Legendre nodes are exact.
- Cosine:     smooth except at the origin: Gauss-Legendre nodes, more of them until the shares add up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import erf, erfc

from ..kernels import Cosine, Gaussian, Kernel, Laplacian, Linear, Polynomial, Scaled

POINTS = 256  # points processed at once
NODES = (16, 64, 256, 1024, 4096)
AGREE = 1e-11  # relative to the terms that are added up


def known(kernel: Kernel) -> bool:
    """True if the gradient of the kernel is implemented here."""
    return type(kernel.kernel if isinstance(kernel, Scaled) else kernel) in _GRADIENTS


def contributions(kernel: Kernel, points: np.ndarray, coef: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) the share of each feature in f(a) - f(b), for points (r, n) and their weights (r,)."""
    if isinstance(kernel, Scaled):
        s = kernel.scale
        return contributions(kernel.kernel, points / s, coef, a / s, b / s)
    weights = getattr(kernel, "weights", None)
    if weights is not None:
        points, a, b = points * weights, a * weights, b * weights
    d = a - b
    if not d.any():
        return np.zeros(len(d))
    mean_gradient = _GRADIENTS[type(kernel)]
    parts = [slice(i, i + POINTS) for i in range(0, len(points), POINTS)]
    return d * sum(mean_gradient(kernel, points[part], coef[part], b, d) for part in parts)


def _linear(kernel: Linear, P: np.ndarray, c: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    return c @ P


def _gaussian(kernel: Gaussian, P: np.ndarray, c: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    gamma, U = float(kernel.gamma), b - P  # (r, n)
    size, along = float(d @ d), U @ d
    nearest = np.maximum(np.einsum("ij,ij->i", U, U) - along**2 / size, 0.0)  # squared distance of p from the line
    length = np.sqrt(gamma * size)
    s0 = np.sqrt(gamma / size) * along  # where the line starts, in kernel units from its point nearest to p
    I0 = np.exp(-gamma * nearest) * np.sqrt(np.pi) / (2 * length) * _erf_difference(s0, s0 + length)
    k0, k1 = np.exp(-gamma * nearest - s0**2), np.exp(-gamma * nearest - (s0 + length) ** 2)
    I1 = ((k0 - k1) / (2 * gamma) - along * I0) / size  # so that the shares add up
    return -2 * gamma * ((c * I0) @ U + (c @ I1) * d)


def _erf_difference(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """erf(high) - erf(low), also where both are nearly 1 or -1."""
    tail = np.where(low > 0, erfc(low) - erfc(high), erfc(-high) - erfc(-low))
    return np.where(low * high > 0, tail, erf(high) - erf(low))


def _laplacian(kernel: Laplacian, P: np.ndarray, c: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    gamma, found = float(kernel.gamma), np.zeros(len(d))
    for u, weight in zip(b - P, c, strict=True):
        turn = np.divide(-u, d, out=np.full(len(d), 2.0), where=d != 0)
        t = np.unique(np.concatenate([[0.0, 1.0], turn[(turn > 0) & (turn < 1)]]))  # (s + 1,)
        sign = np.sign(u + ((t[1:] + t[:-1]) / 2)[:, None] * d)  # (s, n)
        k = np.exp(-gamma * np.abs(u + t[:, None] * d).sum(axis=1))
        rate = -gamma * (sign @ d)  # of log k in a segment
        flat = np.abs(rate) * np.diff(t) < 1e-8
        mean = (k[1:] + k[:-1]) / 2
        area = np.where(flat, mean * np.diff(t), np.diff(k) / np.where(flat, 1.0, rate))
        found += weight * -gamma * (area @ sign)
    return found


def _polynomial(kernel: Polynomial, P: np.ndarray, c: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    gamma, degree = float(kernel.gamma), kernel.degree
    t, w = _nodes(max(1, (int(degree) + 1) // 2))
    base = (gamma * P @ b + kernel.coef0)[:, None] + (gamma * P @ d)[:, None] * t  # (r, nodes)
    return gamma * ((c * degree * (base ** (degree - 1) @ w)) @ P)


def _cosine(kernel: Cosine, P: np.ndarray, c: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(P, axis=1)
    P = P / np.where(norms > 0, norms, 1)[:, None]
    g = c @ P  # f(x) = g'x / |x|
    value = lambda x: float(g @ x) / (np.linalg.norm(x) or 1.0)
    difference, size = value(b + d) - value(b), np.linalg.norm(g)
    for n in NODES:
        t, w = _nodes(n)
        line = b + t[:, None] * d  # (nodes, n)
        length = np.linalg.norm(line, axis=1)
        mean = (w / length).sum() * g - (w * (line @ g) / length**3) @ line
        if abs(mean @ d - difference) <= AGREE * size:
            return mean
    raise ValueError(
        "the line between the two items passes through zero, or close to it, where the cosine jumps: the shares of "
        "the features are undefined there"
    )


def _nodes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    t, w = np.polynomial.legendre.leggauss(n)
    return (t + 1) / 2, w / 2


_GRADIENTS: dict[type[Kernel], Callable[..., np.ndarray]] = {
    Linear: _linear,
    Gaussian: _gaussian,
    Laplacian: _laplacian,
    Polynomial: _polynomial,
    Cosine: _cosine,
}
