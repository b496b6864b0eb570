"""Ranking pursuit on MovieLens: Tables 3 and 4 of [Tsivtsivadze13], printed as Markdown.

DIR of --data DIR holds the folder movielens-1m; see docs/reproductions/pursuit.md for results.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

from benchmarks.papers.pursuit import run

PAPER = {
    "supervised": {
        "RLS": (0.495, 0.494, 0.482),
        "Matching pursuit": (0.494, 0.497, 0.484),
        "RankSVM": (0.481, 0.472, 0.453),
        "RankRLS": (0.479, 0.472, 0.455),
        "Sparse RankRLS": (0.484, 0.478, 0.460),
        "Ranking pursuit": (0.480, 0.472, 0.453),
    },
    "semi": {
        "RLS": (0.497, 0.495, 0.487),
        "Matching pursuit": (0.498, 0.495, 0.485),
        "RankSVM": (0.487, 0.479, 0.464),
        "RankRLS": (0.486, 0.479, 0.463),
        "Sparse RankRLS": (0.490, 0.485, 0.470),
        "Ranking pursuit": (0.487, 0.479, 0.462),
        "SS ranking pursuit": (0.481, 0.474, 0.458),
    },
}


def read(folder: Path) -> np.ndarray:
    """(users, movies) ratings, NaN if missing."""
    with lzma.open(folder / "ratings-no-time.dat.xz", "rt") as lines:
        user, movie, rating = np.array([line.split("::") for line in lines], dtype=int).T
    ratings = np.full((user.max(), movie.max()), np.nan)
    ratings[user - 1, movie - 1] = rating
    return ratings[:, ~np.isnan(ratings).all(axis=0)]


if __name__ == "__main__":
    run(__doc__, read, "movielens-1m", PAPER)
