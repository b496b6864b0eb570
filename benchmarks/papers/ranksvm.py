"""RankSVM: the hinge loss of pairs, by an interior-point method that is exact for any amount of regularisation.

With a row d of D for each pair, better minus worse, the primal and its dual are

    min_w  1/2 ||w||^2 + C sum_p max(0, 1 - d_p'w)      min_x  C/2 ||D'x||^2 - 1'x,   0 <= x <= 1,   w = C D'x,

and a step solves a system with as many unknowns as there are features: (C D D' + T)^-1 with T diagonal. Coordinate
descent (liblinear) needs many thousands of passes if C is large.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

STEPS, TOLERANCE = 100, 1e-7


def preferences(y: np.ndarray, qid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(better, worse) rows of every pair of a query with different labels."""
    better, worse = [], []
    for rows in np.split(np.argsort(qid, kind="stable"), np.cumsum(np.unique(qid, return_counts=True)[1])[:-1]):
        i, j = np.nonzero(y[rows][:, None] > y[rows])
        better.append(rows[i])
        worse.append(rows[j])
    return np.concatenate(better), np.concatenate(worse)


def hinge(D: np.ndarray, C: float) -> np.ndarray:
    """(features,) the minimiser, to a duality gap of 1e-7 of the loss, by Mehrotra's predictor and corrector."""
    _, sizes, V = linalg.svd(D.T @ D)
    V = V[sizes > 1e-13 * sizes[0]].T  # where nothing varies w is zero
    D = D @ V
    m, n = D.shape
    w, x, u, z, v = np.zeros(n), np.full(m, 0.5), np.full(m, 0.5), np.ones(m), np.ones(m)  # u = 1 - x; multipliers
    for _ in range(STEPS):
        margin, off = D @ w - 1, D.T @ x - w / C
        gap, wrong = x @ z + u @ v, np.abs(margin - z + v).max()
        if gap < TOLERANCE * m and wrong < TOLERANCE * (1 + np.abs(margin).max()):
            break
        T = z / x + v / u
        A = D / T[:, None]
        factor = linalg.cho_factor(D.T @ A + np.eye(n) * (1 / C + 1e-14 * np.einsum("ij,ij->", A, D)))
        down, up = np.zeros(m), np.zeros(m)  # what x z and u v are to be
        for corrected in (False, True):
            r = down / x - up / u - margin
            dw = linalg.cho_solve(factor, off + A.T @ r)
            dx = (r - D @ dw) / T
            dz, dv = (down - z * dx) / x - z, (up + v * dx) / u - v
            ends = ((dx, x), (-dx, u), (dz, z), (dv, v))
            step = 0.99 / max(0.99, *(float((-change / now).max()) for change, now in ends))
            if not corrected:
                after = (x + step * dx) @ (z + step * dz) + (u - step * dx) @ (v + step * dv)
                target = (after / gap) ** 3 * gap / (2 * m)
                down, up = target - dx * dz, target + dx * dv
        w, x, u, z, v = w + step * dw, x + step * dx, u - step * dx, z + step * dz, v + step * dv
    return V @ w
