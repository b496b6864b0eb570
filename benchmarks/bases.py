"""Which basis points and which kernel width? Exact leave-query-out on five public data sets, printed as Markdown.

DIR of --data DIR is as for benchmarks.defaults; conclusions are in docs/decisions/0003-basis.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.defaults import data_sets, table
from rankrls import RankRLS
from rankrls.bases import Basis, KMeansCentres, PivotedCholesky, RandomRows
from rankrls.kernels import Gaussian

METHODS: list[type[Basis]] = [RandomRows, KMeansCentres, PivotedCholesky]
SIZES = (50, 200)


def held_out(X: np.ndarray, y: np.ndarray, qid: np.ndarray, seeds: int, **model: object) -> tuple[float, float, float]:
    """Mean and standard deviation over seeds of the best held-out score, and seconds per fit."""
    scores, start = [], time.perf_counter()
    for seed in range(seeds):
        scores.append(RankRLS(random_state=seed, **model).fit(X, y, qid=qid).cv_scores_.max())
    return float(np.mean(scores)), float(np.std(scores)), (time.perf_counter() - start) / seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    rows, widths = [], []
    for name, X, y, qid in data_sets(arguments.data):
        print(f"{name} ...", file=sys.stderr, flush=True)
        for size in SIZES:
            cells = [held_out(X, y, qid, arguments.seeds, kernel="rbf", basis=method(size)) for method in METHODS]
            rows.append([name, str(size), *(f"{mean:.4f} ± {sd:.4f} ({s:.2f} s)" for mean, sd, s in cells)])
        fixed = held_out(X, y, qid, arguments.seeds, kernel=Gaussian("scale"), basis=200)
        auto = held_out(X, y, qid, arguments.seeds, kernel=Gaussian("auto"), basis=200)
        linear = held_out(X, y, qid, 1)
        widths.append(
            [name, f"{linear[0]:.4f}", *(f"{mean:.4f} ± {sd:.4f} ({s:.2f} s)" for mean, sd, s in (fixed, auto))]
        )
    table(["data", "points", *(method.__name__ for method in METHODS)], rows)
    table(["data", "linear", 'gamma="scale"', 'gamma="auto"'], widths)


if __name__ == "__main__":
    main()
