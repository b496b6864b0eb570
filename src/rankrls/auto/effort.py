"""AutoRanker's levels of effort: which candidates, and how many basis points, pairs and folds."""

from __future__ import annotations

from dataclasses import dataclass

FAST = ("linear", "scores", "additive", "adaptive", "fine")
NORMAL = (*FAST, "effects", "gauss", "laplace", "laplace learned")


@dataclass(frozen=True)
class Effort:
    """A level of effort."""

    folds: int
    cv_rows: int  # rows, in whole queries, on which everything is chosen
    cv_basis: int  # basis points of a kernel while choosing
    basis: int  # basis points in the final model
    pairs: int  # pairs of columns found in each of two rounds
    fine_pairs: int  # pairs that get ramps and steps
    candidates: tuple[str, ...]


EFFORTS = {
    "fast": Effort(3, 5_000, 300, 500, 6, 3, FAST),
    "normal": Effort(3, 15_000, 500, 1000, 8, 4, NORMAL),
    "best": Effort(5, 30_000, 1000, 2000, 12, 8, NORMAL),
}
