"""Held-out scores at some alphas of a grid from those at the others.

The held-out scores of a row are an analytic function of log alpha, and on the usual grid, two alphas to a decade,
about eleven of fifteen carry them all. Which ones, and with what weights for each row, is found from a sample of the
directions that scores are sums over: the Gram matrix of a row's scores at all alphas, and its pivoted Cholesky
decomposition, taken for all rows at once. What remains of an alpha that was not chosen is its error. Rows whose scores
are tiny beside their labels, because next to nothing is explained, would hold rounding in single precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MANY = 10  # alphas from which some may follow from the others
LARGEST, ELSEWHERE = 32, 64  # directions in the sample: those of the largest eigenvalues, and others
ERROR = 4e-6  # of a row's scores, as a share of their size: pairwise accuracy then errs by less
ROUNDING = 4e-7  # of scores in single precision, as a share of the row's labels
NOISE = 3e-5  # share of rounding in the scores of a row from which they are computed in double precision


@dataclass(frozen=True)
class Between:
    """Alphas to compute, and the weights that give the others."""

    chosen: np.ndarray
    others: np.ndarray
    weights: np.ndarray  # (n, others, chosen), for each row
    precise: np.ndarray  # (n,) whether a row is to be computed in double precision

    def fill(self, scores: np.ndarray, parts: Sequence[slice]) -> None:
        """Write the scores (k, n, r) of the other alphas, for some rows at a time."""
        for rows in parts:
            known = np.ascontiguousarray(scores[self.chosen, rows].swapaxes(0, 1))
            found = np.matmul(self.weights[rows].astype(scores.dtype), known)
            for i, k in enumerate(self.others):
                scores[k, rows] = found[:, i]


def sample_of(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of directions with eigenvalues s, and how many directions each stands for."""
    order = np.argsort(-s)
    rest = order[LARGEST:]
    if len(rest) <= ELSEWHERE:
        return order, np.ones(len(order))
    step = len(rest) / ELSEWHERE
    some = rest[(np.arange(ELSEWHERE) * step + step / 2).astype(int)]
    return np.concatenate([order[:LARGEST], some]), np.concatenate([np.ones(LARGEST), np.full(ELSEWHERE, step)])


def between(held: np.ndarray, labels: np.ndarray) -> Between:
    """From held-out scores (k, n, m) of a sample of directions and the sizes (n,) of each row's labels."""
    H = held.astype(np.float64).swapaxes(0, 1)
    gram = H @ H.swapaxes(1, 2)  # (n, k, k)
    size = np.sqrt(np.einsum("hkk->hk", gram))
    noise = np.minimum(1.0, ROUNDING * labels[:, None] / np.maximum(size, 1e-300))
    precise = noise.max(axis=1, initial=0) > NOISE
    alphas, usual = np.arange(gram.shape[1]), ~precise
    if len(alphas) < MANY or not usual.any():
        return Between(alphas, alphas[:0], np.empty((len(H), 0, len(alphas))), precise)
    chosen, weights = _spanned(gram, size, labels, usual)
    return Between(chosen, np.setdiff1d(alphas, chosen), weights, precise)


def _spanned(
    gram: np.ndarray, size: np.ndarray, labels: np.ndarray, usual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The alphas chosen, and the weights (n, others, chosen), from the Gram matrices (n, k, k) of rows."""
    unit = 1 / np.maximum(ERROR * size + ROUNDING * labels[:, None], 1e-300)
    left = (gram * unit[:, :, None] * unit[:, None, :])[usual]  # in units of the error allowed
    chosen: list[int] = []
    for _ in range(gram.shape[1]):
        error = np.einsum("hkk->hk", left)
        mean = np.sqrt(np.maximum(error, 0)).mean(axis=0)
        k = int(mean.argmax())
        if mean[k] <= 1:
            break
        chosen.append(k)
        column = left[:, :, k] / np.sqrt(np.maximum(left[:, k, k], 1e-30))[:, None]
        left -= column[:, :, None] * column[:, None, :]
        left[:, k], left[:, :, k] = 0, 0
    among = np.array(sorted(chosen), dtype=np.intp)
    others = np.setdiff1d(np.arange(gram.shape[1]), among)
    inner = gram[:, among[:, None], among]
    inner[:, np.arange(len(among)), np.arange(len(among))] *= 1 + 1e-13
    inner += 1e-300 * np.eye(len(among))
    weights = np.linalg.solve(inner, gram[:, among[:, None], others]).swapaxes(1, 2)
    return among, weights
