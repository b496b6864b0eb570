"""Ranking pursuit on Jester: Tables 1, 2 and 5 of [Tsivtsivadze13], printed as Markdown.

DIR of --data DIR holds the folder jester with jester-data-1 and optionally jester-data-2 and jester-data-3, as .csv,
.csv.xz or the original .xls; see docs/reproductions/pursuit.md for results.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.papers.pursuit import run

NOT_RATED = 99
PAPER = {
    "supervised": {
        "RLS": (0.425, 0.419, 0.383),
        "Matching pursuit": (0.428, 0.417, 0.381),
        "RankSVM": (0.412, 0.404, 0.372),
        "RankRLS": (0.409, 0.407, 0.374),
        "Sparse RankRLS": (0.414, 0.410, 0.380),
        "Ranking pursuit": (0.410, 0.404, 0.373),
        "CRRP, beta = 0.5": (0.413, 0.408, 0.373),
    },
    "semi": {
        "RLS": (0.449, 0.434, 0.405),
        "Matching pursuit": (0.451, 0.433, 0.404),
        "RankSVM": (0.428, 0.417, 0.391),
        "RankRLS": (0.429, 0.418, 0.393),
        "Sparse RankRLS": (0.431, 0.424, 0.397),
        "Ranking pursuit": (0.428, 0.417, 0.393),
        "SS ranking pursuit": (0.419, 0.411, 0.381),
    },
    "mse": {
        "RLS": (21.6, 19.3, 15.2),
        "Matching pursuit": (20.1, 18.7, 14.9),
        "RankSVM": (34.2, 31.6, 28.9),
        "RankRLS": (33.8, 31.3, 29.2),
        "Sparse RankRLS": (36.5, 33.8, 32.9),
        "Ranking pursuit": (34.0, 30.9, 29.1),
    },
}


def read(folder: Path) -> np.ndarray:
    """(users, jokes) ratings of every file that exists, NaN if missing."""
    paths = sorted(path for path in folder.glob("jester-data-*") if ".csv" in path.name or path.suffix == ".xls")
    if not paths:
        raise SystemExit(f"{folder} has no jester-data-1.csv, .csv.xz or .xls")
    tables = [(pd.read_excel if path.suffix == ".xls" else pd.read_csv)(path, header=None) for path in paths]
    ratings = pd.concat(tables).to_numpy(float)[:, 1:]
    return np.where(ratings == NOT_RATED, np.nan, ratings)


if __name__ == "__main__":
    run(__doc__, read, "jester", PAPER)
