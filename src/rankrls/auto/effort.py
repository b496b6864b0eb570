"""AutoRanker's levels of effort: which candidates, and how many basis points, pairs and folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FAST = ("linear", "scores", "link")
NORMAL = (*FAST, "gauss", "laplace", "laplace learned")


@dataclass(frozen=True)
class Effort:
    """A level of effort."""

    folds: int
    cv_rows: int  # everything is chosen on whole queries with at least this many rows, or a tenth of all, up to
    most_cv_rows: int  # this many
    cv_basis: int  # basis points of a kernel while choosing
    basis: int  # basis points in the final model
    pairs: int  # pairs of columns found in each of two rounds
    fine_pairs: int  # pairs that get ramps and steps
    candidates: tuple[str, ...]

    def sample(self, m: int) -> int:
        """The number of rows, out of m, on which everything is chosen."""
        return int(np.clip(m // 10, self.cv_rows, self.most_cv_rows))


EFFORTS = {
    "fast": Effort(3, 5_000, 30_000, 300, 500, 6, 3, FAST),
    "normal": Effort(3, 15_000, 100_000, 500, 1000, 8, 4, NORMAL),
    "best": Effort(5, 30_000, 200_000, 1000, 2000, 12, 8, NORMAL),
}
