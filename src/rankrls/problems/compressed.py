"""Replace many rows of few columns by few rows R and targets b with R'R = A'A and R'b = A'z.

A pursuit uses only lengths and angles of A and z, which R and b share. R and b come from sums that take one pass over
the rows. A Gram matrix loses half of the digits, so columns that are nearly dependent are not compressed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.statistics import Statistics
from ..core.symmetric import eigh
from .dictionary import Whitened

DEPENDENT = 1e-6  # do not compress if an eigenvalue of the columns' correlations is below this share of the largest
TALL = 2  # compress if there are more than this many rows per column


@dataclass(frozen=True)
class Compressed:
    """Columns and target of a least-squares problem in at most n + 1 rows."""

    atoms: Whitened
    z: np.ndarray  # (n + 1,)
    target_mean: float

    @classmethod
    def of(cls, sums: Statistics) -> Compressed | None:
        """From the sums of one target; None if they have too few digits."""
        seen = sums.deviation > 0
        length = np.sqrt(np.diag(sums.gram)[seen])
        d, V = eigh(sums.gram[np.ix_(seen, seen)] / np.outer(length, length))
        if not len(d) or not np.all(np.isfinite(d)) or d[0] < DEPENDENT * d[-1]:
            return None
        n, k, root = len(seen), len(d), np.sqrt(d)[:, None]
        A = np.zeros((k + 1, n))
        A[:k, seen] = root * V.T * length
        z = np.zeros(k + 1)
        z[:k] = (V.T @ (sums.cross[seen, 0] / length)) / root[:, 0]
        z[k] = np.sqrt(max(0.0, sums.square[0] - z[:k] @ z[:k]))  # the part that no column explains
        atoms = Whitened(A, sums.mean, np.einsum("ij,ij->j", A, A), ~seen)
        return cls(atoms, z, float(sums.target_mean[0]))
