"""How far should a pursuit go, and with back-fitting or without? Five folds of queries on public data, as Markdown.

DIR of --data DIR is as for benchmarks.defaults; conclusions are in docs/decisions/0005-pursuit.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.defaults import data_sets, table
from rankrls import RankingPursuit, RankRLS

MOST, POINTS = 200, 500
CAPS = (10, 25, 50, 100, 200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    rows = []
    for name, X, y, qid in data_sets(parser.parse_args().data):
        print(f"{name} ...", file=sys.stderr, flush=True)
        for kernel in (None, "rbf"):
            basis = None if kernel is None else POINTS
            ridge = RankRLS(kernel=kernel, basis=basis, cv=5, random_state=0).fit(X, y, qid=qid)
            for backfit in (True, False):
                start = time.perf_counter()
                params = {"kernel": kernel, "basis": basis, "backfit": backfit, "random_state": 0}
                model = RankingPursuit(max_basis=MOST, **params).fit(X, y, qid=qid)
                seconds, scores = time.perf_counter() - start, model.path_.scores
                best = [f"{scores[:cap].max():.4f} ({1 + np.argmax(scores[:cap])})" for cap in CAPS]
                what = [name, "columns" if kernel is None else f"{POINTS} points", "yes" if backfit else "no"]
                rows.append([*what, *best, f"{ridge.cv_scores_.max():.4f}", f"{seconds:.1f}"])
    caps = [f"best of {cap} (size)" for cap in CAPS]
    table(["data", "functions", "back-fitted", *caps, "RankRLS, best alpha", "seconds"], rows)


if __name__ == "__main__":
    main()
