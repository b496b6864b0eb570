"""Ridge regression with sign constraints on the weights, solved exactly by pivoting over sets of zero weights.

    min v'M v - 2 c'v   subject to   s_j v_j >= 0 where s_j is 1 or -1

At the solution the weights of a set P solve the normal equations among themselves; the others are zero because the
loss would give them the wrong sign. Block pivoting exchanges all weights that violate this at once; where that stops
helping, it exchanges one at a time, which ends after finitely many steps (Kim and Park 2011, after Murty). M is
positive definite.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

PATIENCE = 3  # block exchanges that may bring no progress before weights are exchanged one at a time
EXCHANGES = 1000  # per weight; far more than any problem has needed


def signed_solution(M: np.ndarray, c: np.ndarray, signs: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """(n,) the solution; `start` says which weights are nonzero at a nearby solution."""
    size = np.sqrt(np.diag(M))
    s = np.where(signs == 0, 1.0, signs) / np.where(size > 0, size, 1.0)  # scales every column to length 1
    M, c, free = s[:, None] * M * s, s * c, signs == 0
    P = np.ones(len(c), dtype=bool) if start is None else start | free
    best, patience = len(c) + 1, PATIENCE
    tolerance = 1e-12 * (np.abs(c).max(initial=0) or 1.0)
    for _ in range(EXCHANGES * (len(c) + 1)):
        v = np.zeros(len(c))
        if P.any():
            v[P] = _solved(M if P.all() else M[np.ix_(P, P)], c[P])
        gradient = c - M @ v
        wrong = (P & ~free & (v < 0)) | (~P & (gradient > tolerance))
        n_wrong = int(wrong.sum())
        if not n_wrong:
            return s * v + 0.0  # no weight is -0
        if n_wrong < best:
            best, patience = n_wrong, PATIENCE
        else:
            patience -= 1
        if patience < 0:  # only the largest index: no set is visited twice
            wrong = np.arange(len(c)) == np.flatnonzero(wrong)[-1]
        P = P ^ wrong
    raise linalg.LinAlgError("no weights of these signs were found: the normal equations are not positive definite")


def _solved(M: np.ndarray, c: np.ndarray) -> np.ndarray:
    """M^-1 c by Cholesky, or the shortest least-squares solution where M is singular but for rounding."""
    _, v, failed = linalg.lapack.dposv(M, c)
    return np.asarray(linalg.lstsq(M, c, check_finite=False)[0] if failed else v)
