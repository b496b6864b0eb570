"""Ranking pursuit on MovieLens: Tables 3 and 4 of [Tsivtsivadze13], printed as Markdown.

DIR of --data DIR holds the folder movielens-1m; docs/reproductions/pursuit.md has what followed.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

from benchmarks.papers.pursuit import run


def read(folder: Path) -> np.ndarray:
    """(users, movies) ratings, NaN where there is none."""
    with lzma.open(folder / "ratings-no-time.dat.xz", "rt") as lines:
        user, movie, rating = np.array([line.split("::") for line in lines], dtype=int).T
    ratings = np.full((user.max(), movie.max()), np.nan)
    ratings[user - 1, movie - 1] = rating
    return ratings[:, ~np.isnan(ratings).all(axis=0)]


if __name__ == "__main__":
    run(__doc__, "movielens-1m", read, {"20-40": (20, 40), "40-60": (40, 60), "60-80": (60, 80)})
