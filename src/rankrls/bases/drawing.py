"""How points are drawn from rows: randomly pivoted Cholesky, and the centres that k-means starts from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..kernels import Kernel

DRAWS = 64  # rows that a pivoted Cholesky draws at a time


def pivots(
    rows: Any, kernel: Kernel, weights: np.ndarray, diagonal: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """The pivots of a Cholesky factorisation of K, drawn by weight times what earlier pivots leave of the diagonal."""
    residual, floor = diagonal.copy(), 1e-10 * diagonal
    L = np.empty((size, len(diagonal)))  # K is near L'L
    chosen = np.empty(0, dtype=np.intp)
    while (k := len(chosen)) < size:
        chances = np.cumsum(weights * residual)
        if chances[-1] == 0:  # the rows drawn span all others
            break
        draws = np.searchsorted(chances, rng.random(DRAWS) * chances[-1], side="right")
        draws = np.minimum(draws, len(diagonal) - 1)
        rest = np.asarray(kernel(rows[draws], rows[draws]), dtype=np.float64) - L[:k, draws].T @ L[:k, draws]
        pivots = draws[_accepted(rest, residual[draws], floor[draws], rng)][: size - k]
        if not len(pivots):  # what remained was rounding
            residual[draws] = 0
            continue
        new = np.asarray(kernel(rows[pivots], rows), dtype=np.float64)
        new -= L[:k, pivots].T @ L[:k]
        factor = np.linalg.cholesky((new[:, pivots] + new[:, pivots].T) / 2)
        L[k : k + len(pivots)] = solve_triangular(factor, new, lower=True, check_finite=False)
        residual -= np.einsum("ij,ij->j", L[k : k + len(pivots)], L[k : k + len(pivots)])
        residual[residual <= floor] = 0
        residual[pivots] = 0
        chosen = np.append(chosen, pivots)
    return chosen


def _accepted(rest: np.ndarray, drawn: np.ndarray, floor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Which draws to keep: `rest` is their kernel matrix minus what earlier points explain, `drawn` its diagonal when
    they were drawn, and values below `floor` are rounding. Overwrites `rest`."""
    kept = []
    for i, chance in enumerate(rng.random(len(drawn)) * drawn):
        if rest[i, i] > max(chance, floor[i]):
            kept.append(i)
            column = rest[:, i] / np.sqrt(rest[i, i])
            rest -= np.outer(column, column)
    return np.array(kept, dtype=np.intp)


def first_centres(V: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++: each centre is a row drawn by its weight times its squared distance to the nearest earlier centre."""
    distance = np.ones(len(V))
    chosen: list[int] = []
    for _ in range(min(k, len(V))):
        chances = np.cumsum(weights * distance)
        if chances[-1] <= 0:
            break
        pivot = min(int(np.searchsorted(chances, rng.random() * chances[-1], side="right")), len(V) - 1)
        square = np.einsum("ij,ij->i", V - V[pivot], V - V[pivot])
        distance = square if not chosen else np.minimum(distance, square)
        chosen.append(pivot)
    return V[chosen]


def nearest(V: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(m,) the index of the nearest centre, computed in blocks of rows."""
    norms, size = np.einsum("ij,ij->i", centres, centres), max(1, (1 << 22) // len(centres))
    blocks = [np.argmin(norms - 2 * (V[i : i + size] @ centres.T), axis=1) for i in range(0, len(V), size)]
    return np.concatenate(blocks)
