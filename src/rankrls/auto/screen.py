"""A screen for interacting pairs of columns: one matrix product tests all of them.

Let e be the residual of a model of single columns, g = L e the gradient of the loss, and Z_i (m, k) functions of column
i. The products of functions of columns i and j correlate with the residual by Z_i' diag(g) Z_j, so their energy is

    E_ij = ||Z_i' diag(g) Z_j||_F^2            and, if the signs of g were random, its mean would be
    R_ij = sum over rows of g^2 |z_i|^2 |z_j|^2.

E / R is about 1 for a pair without interaction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..system.lazy import cached_property

SCREEN_CURVES = 3
MOST_COLUMNS = 400  # most columns that are searched for pairs
VARIANT = 0.9  # keep variants of a pair with at least this share of the best lift
LEAST = 2.0


@dataclass(frozen=True)
class ScreenRows:
    """Functions of columns for a screen. Nothing here depends on labels, so splits of the rows share it."""

    curves: np.ndarray  # (m, n, k)
    deviation: np.ndarray  # (n, 3) the spread of the first functions of each column

    @cached_property
    def Z(self) -> np.ndarray:
        """(m, n, 3) the first functions with unit variance."""
        return np.divide(self.curves[:, :, :SCREEN_CURVES], self.deviation, order="C")

    @property
    def main(self) -> np.ndarray:
        """(m, 3 n) the same as a matrix."""
        return self.Z.reshape(len(self.Z), -1)

    @cached_property
    def energy(self) -> np.ndarray:
        """(m, n) |z|^2."""
        return np.einsum("mnk,mnk->mn", self.Z, self.Z)


def pair_lift(Z: np.ndarray, g: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """(n, n) E / R of all pairs of columns, for Z (m, n, k), Q (m, n) = |z|^2 and g, which is 0 for rows left out."""
    m, n, k = Z.shape
    g = (g / max(np.abs(g).max(), 1e-30)).astype(Z.dtype)
    flat = Z.reshape(m, n * k)
    M = _squares(flat, g) - _squares(flat, -g)
    energy = np.square(M, out=M).reshape(n, k, n, k).sum(axis=(1, 3))
    random = Q.T @ (g[:, None] ** 2 * Q)
    return energy / np.maximum(random, 1e-30)


def _squares(Z: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Z' diag(max(g, 0)) Z as the product of a matrix with itself, which takes half as long."""
    some = np.flatnonzero(g > 0)
    A = np.take(Z, some, axis=0)
    A *= np.sqrt(g[some])[:, None]
    return A.T @ A


def best_pairs(lift: np.ndarray, source: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(p, 2) the pairs with the largest lift for the `count` best pairs of source columns, and their lifts.

    A column appears as value and as rank in the query, so a pair of source columns has four variants. Those with nearly
    the best lift are kept, and the fit decides between them.
    """
    i, j = np.triu_indices(len(lift), 1)
    other = source[i] != source[j]
    i, j = i[other], j[other]
    value = lift[i, j]
    top = np.argsort(-value, kind="stable")[: 16 * count]
    top = top[value[top] > LEAST]
    low, high = np.minimum(source[i[top]], source[j[top]]), np.maximum(source[i[top]], source[j[top]])
    _, first, group = np.unique(low * (int(source.max(initial=0)) + 1) + high, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))  # groups in the order of their best pair
    top = top[(place[group] < count) & (value[top] >= VARIANT * value[top][first][group])]
    top = top[: 2 * count]
    return np.stack([i[top], j[top]], axis=1), value[top]
