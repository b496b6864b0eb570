"""How much work AutoRanker spends: which candidates, how many basis points, pairs and folds."""

from __future__ import annotations

from dataclasses import dataclass

FAST = ("linear", "additive", "adaptive", "fine")
NORMAL = (*FAST, "effects", "gauss", "laplace", "gauss learned", "laplace learned")


@dataclass(frozen=True)
class Effort:
    """How much work is spent."""

    folds: int
    cv_rows: int  # rows, of whole queries, that everything is chosen on
    cv_basis: int  # basis points of a kernel while choosing
    basis: int  # and in the final model
    pairs: int  # pairs of columns found in each of two rounds
    fine_pairs: int  # pairs that get ramps and steps
    candidates: tuple[str, ...]


EFFORTS = {
    "fast": Effort(3, 5_000, 300, 500, 6, 3, FAST),
    "normal": Effort(3, 15_000, 500, 1000, 8, 4, NORMAL),
    "best": Effort(5, 30_000, 1000, 2000, 12, 8, NORMAL),
}
