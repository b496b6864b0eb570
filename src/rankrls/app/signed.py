"""Queries held out of a model whose weights have given signs, exactly.

Without query U the problem is min v'(H - B'B) v - 2 (c - B'z)'v under the same signs, where H = A'A + alpha I and B, z
are the rows of the loss of U. Most queries leave the zeros of the whole solution where they are. So each is first held
out among the weights P that are not zero, all queries of a batch at once:

    t = (I - B H_PP^-1 B')^-1 (z - B v)      the held-out residual
    v_-U = v - H_PP^-1 B' t                  the held-out weights

That is the solution if its signs are right and no weight outside of P asks to come in, which the gradient
c - B'z - (H - B'B) v_-U tells. For the few other queries the signs are solved for anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..core.signs import signed_solution

CLOSE = 1e-11  # a share of the largest |c| below which a gradient is rounding


@dataclass(frozen=True)
class SignedProblem:
    """min v'H v - 2 c'v with signs_j v_j >= 0 where signs_j is not zero; and its solution."""

    H: np.ndarray  # (n, n)
    c: np.ndarray  # (n,)
    signs: np.ndarray  # (n,)
    v: np.ndarray  # (n,)
    P: np.ndarray  # (p,) the columns that are not zero, or free
    inverse: np.ndarray  # (p, p) H_PP^-1

    @classmethod
    def of(cls, gram: np.ndarray, c: np.ndarray, signs: np.ndarray, alpha: float, intercept: bool) -> SignedProblem:
        """The problem at an alpha; an intercept is one more direction, of unit weight and without a sign."""
        H = gram + alpha * np.eye(len(gram))
        if intercept:
            H, c, signs = linalg.block_diag(H, 1.0), np.append(c, 0.0), np.append(signs, 0)
        v = signed_solution(H, c, signs)
        P = np.flatnonzero((v != 0) | (signs == 0))
        inverse = linalg.inv(H[np.ix_(P, P)], check_finite=False) if len(P) else np.empty((0, 0))
        return cls(H, c, signs, v, P, inverse)

    def held_out(self, B: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(g, n) the solutions without the rows B (g, l, n) and their targets z (g, l)."""
        v = np.zeros((len(B), len(self.c)))
        v[:, self.P] = self._among_nonzero(B[:, :, self.P], z)
        for q in np.flatnonzero(self._wrong(v, B, z)):
            v[q] = signed_solution(self.H - B[q].T @ B[q], self.c - B[q].T @ z[q], self.signs, self.v != 0)
        return v

    def _among_nonzero(self, B: np.ndarray, z: np.ndarray) -> np.ndarray:
        K = B @ self.inverse
        M = np.eye(B.shape[1]) - K @ B.transpose(0, 2, 1)
        t = np.linalg.solve(M, (z - B @ self.v[self.P])[:, :, None])
        return self.v[self.P] - (K.transpose(0, 2, 1) @ t)[:, :, 0]

    def _wrong(self, v: np.ndarray, B: np.ndarray, z: np.ndarray) -> np.ndarray:
        residual = z - (B @ v[:, :, None])[:, :, 0]
        gradient = self.c - v @ self.H - (B.transpose(0, 2, 1) @ residual[:, :, None])[:, :, 0]
        outside = np.ones(len(self.c), dtype=bool)
        outside[self.P] = False
        asks = outside & (self.signs * gradient > CLOSE * (np.abs(self.c).max(initial=0.0) or 1.0))
        return ((self.signs * v < 0) | asks).any(axis=1)
