"""Ranking pursuit with sign constraints: choose columns one at a time and refit all weights after each.

With A = F D and z = F y as in `pursuit`, let w be the best weights of the given signs on the columns S chosen so far,
and e = A'(z - A w). Only a column j whose e_j has the sign of its weight can lower the loss. Chosen is the one that
would lower it most if the nonzero weights, P, were unconstrained:

    e_j^2 / g_j,    g = diag(A'A) - diag(A'A_P (A_P'A_P)^-1 A_P'A),

one product with A for each step. Where no sign binds, this is the back-fitted pursuit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from ..core.signs import signed_solution
from ..system.progress import counted
from .dictionary import Atoms
from .pursuit import DEPENDENT, EXHAUSTED, NO_GAIN, NOTHING, PursuitPath


def pursue_signed(
    atoms: Atoms, z: np.ndarray, n_steps: int, signs: np.ndarray, *, banned: Sequence[int] = ()
) -> PursuitPath:
    """The path of ||z - A w||^2 with s_j w_j >= 0, by at most `n_steps` steps."""
    c, squares, start = atoms.products(z), atoms.squares, float(z @ z)
    free = ~atoms.zero & ~np.isin(np.arange(len(c)), banned)
    chosen: list[int] = []
    H, w = np.empty((len(c), n_steps)), np.empty(0)  # A'A of the chosen columns, and their weights
    coefs, errors, stopped = np.zeros((n_steps, n_steps)), [], ""
    for p in counted(range(n_steps), "pursuit"):
        P = np.flatnonzero(w)  # indices of the atoms in use
        g = squares - _spanned(H[:, P], [chosen[i] for i in P])
        gain = _gains(c - H[:, :p] @ w, g, free & (g > DEPENDENT * squares), signs)
        best = int(np.argmax(gain))
        if gain[best] <= NOTHING * start:
            stopped = NO_GAIN if free.any() else EXHAUSTED
            break
        H[:, p] = atoms.products(atoms.column(best))
        chosen.append(best)
        free[best] = False
        M = H[chosen, : p + 1]
        w = signed_solution((M + M.T) / 2, c[chosen], signs[chosen], np.append(w != 0, True))
        coefs[p, : p + 1] = w
        errors.append(max(0.0, start - float(w @ (2 * c[chosen] - M @ w))))
    coefs = coefs[: len(chosen), : len(chosen)]
    return PursuitPath(
        np.array(chosen, dtype=np.intp)[:, None],
        coefs[:, None],
        -(coefs @ atoms.means[chosen])[:, None],
        np.array(errors),
        start,
        n_zero=int(atoms.zero.sum()),
        stopped=stopped,
    )


def _gains(e: np.ndarray, g: np.ndarray, free: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """(n,) how much each free atom would lower the loss: e^2 / g if its weight would have the right sign, else zero."""
    gain = np.where(free & ((signs == 0) | (signs * e > 0)), e**2, 0.0)
    return np.divide(gain, g, out=np.zeros_like(g), where=gain > 0)


def _spanned(H: np.ndarray, columns: list[int]) -> np.ndarray:
    """(n,) the square of the part of each column that the chosen columns span; H (n, p) is A'A of those."""
    if not len(columns):
        return np.zeros(len(H))
    L = linalg.cholesky(H[columns] + 1e-14 * np.diag(H[columns].diagonal()), lower=True)
    return np.sum(linalg.solve_triangular(L, H.T, lower=True) ** 2, axis=0)
