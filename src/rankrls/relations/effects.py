"""Edges that are scored by their two ends apart, f(x, z) = g(x) + h(z): solved directly in the space of features.

The score of an edge is linear in phi, the features of its ends side by side, (x ± z) of a symmetric or reciprocal
relation. The kernel of the edges is M = Phi Phi', and with A = F Phi (F the square root of the loss, z = F y)

    (F M F' + alpha I) c = z      has      c = (z - A w) / alpha,      (A'A + alpha I) w = A'z.

One eigendecomposition of A'A serves every alpha. Teams in a league have few features, one each, and many games; some of
them hardly play the others, which takes conjugate gradients a thousand iterations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..core.symmetric import eigh
from .loss import EdgeLoss
from .relation import Domain, EdgeSet, dense

MOST = 2500  # features


def features(
    G: Domain, K: Domain, edges: EdgeSet, parity: int, source: float, target: float
) -> np.ndarray | sparse.csr_array | None:
    """Phi (q, D) where there are few enough features and effects of both ends are alike if the relation asks for it."""
    size = G.array.shape[1] + (0 if parity else K.array.shape[1])
    if not (G.factored and K.factored) or not 0 < size <= min(MOST, len(edges.y)) or (parity and source != target):
        return None
    if parity:
        return np.sqrt(source / 2) * (G.array[edges.rows] + parity * G.array[edges.columns])
    ends = np.sqrt(source) * G.array[edges.rows], np.sqrt(target) * K.array[edges.columns]
    return sparse.hstack(ends, format="csr") if any(map(sparse.issparse, ends)) else np.hstack(ends)


def solve(phi: Any, loss: EdgeLoss, y: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """(q, k) the coefficients F'c of the edges for each alpha."""
    z = loss.forward(y)
    d, U = eigh(_gram(phi, loss))
    b = U.T @ (phi.T @ loss.back(z))
    out = np.empty((len(y), len(alphas)))
    for k, alpha in enumerate(alphas):
        w = U @ (b / (np.maximum(d, 0) + alpha))
        out[:, k] = loss.back((z - loss.forward(phi @ w)) / alpha)
    return out


def _gram(phi: Any, loss: EdgeLoss) -> np.ndarray:
    """A'A = Phi'F'F Phi."""
    S = phi if loss.scale is None else sparse.diags_array(loss.scale) @ phi
    gram = dense(S.T @ S)
    for B in loss.projected_out():
        M = dense(B.T @ S)
        gram = gram - M.T @ M
    return gram
