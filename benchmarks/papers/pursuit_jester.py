"""Ranking pursuit on Jester: Tables 1, 2 and 5 of [Tsivtsivadze13], printed as Markdown.

DIR of --data DIR holds the folder jester; docs/reproductions/pursuit.md has what followed.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

from benchmarks.papers.pursuit import run

NOT_RATED = 99


def read(folder: Path) -> np.ndarray:
    """(users, jokes) ratings, NaN where there is none."""
    with lzma.open(folder / "jester-data-1.csv.xz", "rt") as lines:
        ratings = np.loadtxt(lines, delimiter=",")[:, 1:]
    return np.where(ratings == NOT_RATED, np.nan, ratings)


if __name__ == "__main__":
    run(__doc__, "jester", read, {"20-40": (20, 40), "40-60": (40, 60), "60-80": (60, 80)})
