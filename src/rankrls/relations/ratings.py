"""One number per object from a relation, its error bar, and probabilities from scores.

The rating of an object is the mean of its relation to all training objects. For a reciprocal relation,
f(i, j) = r_i - r_j + a part that no single number can express, and r is the best additive fit in least squares.

An error bar treats what ratings do not explain as noise of variance s^2. Under the prior that corresponds to alpha,
ratings have the covariance s^2 / alpha times the mean of the pairwise kernel over opponents, P (n, n). Given the edges,
whose weighted Laplacian is L, the covariance is

    cov(r) = s^2 (alpha P^-1 + L)^-1 = s^2 R (alpha I + R'L R)^-1 R'     with P = R R',

and that of differences from the mean is C cov(r) C' with C = I - 1 w', w the share of each object in the weight of all
edges: objects whose edges are old and weigh little do not make the others uncertain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..core.symmetric import eigh
from .relation import Domain, Pairwise


def prior(K: Domain, parity: int, pairwise: Pairwise) -> np.ndarray:
    """(n, n) P: the covariance of ratings before any edge is seen, in units of s^2 / alpha."""
    k = K.dot(np.eye(len(K))) if K.factored else K.array
    mean, total = K.mean, float(K.mean.mean())
    sign = float(parity)
    product = (k * total + sign * np.outer(mean, mean)) / (2 if parity else 1)
    effects = (k + sign * (mean[:, None] + mean) + total) / (2 if parity else 1)
    return pairwise.product * product + pairwise.source * effects


def rating_errors(
    P: np.ndarray, alpha: float, rating: np.ndarray, rows: np.ndarray, columns: np.ndarray, y: np.ndarray,
    weights: np.ndarray | None, parity: int,
) -> np.ndarray:  # fmt: skip
    """(n,) the standard error of each rating."""
    n, u = len(rating), np.ones(len(y)) if weights is None else weights
    sign = float(parity) if parity else -1.0
    ends = np.concatenate([rows, columns])
    one = np.concatenate([np.ones(len(rows)), np.full(len(columns), sign)])
    B = sparse.csr_array((one, (np.tile(np.arange(len(rows)), 2), ends)), shape=(len(rows), n))
    L = (B.T @ sparse.diags_array(u) @ B).toarray()
    residual = y - B @ rating
    noise = float(np.sum(u * residual**2) / np.sum(u))
    d, V = eigh(P)
    R = V * np.sqrt(np.maximum(d, 0.0))
    e, U = eigh(R.T @ L @ R)
    known = np.maximum(e, 0.0) + alpha
    cov = R @ (U * np.divide(1.0, known, out=np.zeros(n), where=known > 0)) @ (R @ U).T
    known_by = np.bincount(ends, np.tile(u, 2), minlength=n)
    share = known_by / np.sum(known_by)  # the uncertainty of a common shift does not count
    cov = cov - share @ cov
    cov = cov - (cov @ share)[:, None]
    return np.sqrt(noise * np.maximum(np.diagonal(cov), 0))


def probability_scale(scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The maximum likelihood steepness b of P(y > 0) = 1 / (1 + exp(-b score)); a draw is half a win."""
    u = np.ones(len(y)) if weights is None else weights
    keep = np.isfinite(scores)
    f, win, u = scores[keep], (np.sign(y[keep]) + 1) / 2, u[keep]
    size = float(np.sqrt(np.sum(u * f**2) / np.sum(u))) if len(f) else 0.0
    if size == 0:
        return 0.0
    f, b = f / size, 1.0
    ridge = 1e-6 * float(np.sum(u))  # without it, scores that never err would have infinite steepness
    for _ in range(100):
        p = logistic(b * f)
        slope = float(np.sum(u * f * (win - p))) - ridge * b
        step = slope / (float(np.sum(u * f**2 * p * (1 - p))) + ridge)
        b += float(np.clip(step, -2.0, 2.0))
        if abs(step) < 1e-10:
            break
    return max(b, 0.0) / size


def logistic(x: object) -> Any:
    return 0.5 * (1 + np.tanh(np.asarray(x) / 2))
