"""Do an earlier commit and this one choose the same alphas? On every data set that the benchmarks read.

    python -m benchmarks.same [--commit 4b21b34] [--data ../shared/data]

Fits every setting below with both (the earlier one from a temporary copy of the repository), and with compiled code
and without, and prints what differs: `alpha_` by more than 1e-9 of it, or `cv_scores_` by more than 1e-9.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import ROOT, source_of

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "scale=None": {"scale": None},
    "tied pairs in": {"tied_pairs": True},
    "weighting=queries": {"weighting": "queries"},
    "weighting=pairs": {"weighting": "pairs"},
    "ndcg@10": {"scoring": "ndcg@10"},
    "regression=0.3": {"regression": 0.3},
    "gain=exponential": {"gain": "exponential"},
    "five folds": {"cv": 5},
    "Gaussian, 100 points": {"kernel": "rbf", "basis": 100, "random_state": 0},
}
WITH_WEIGHTS, SINGLE = "weights 1 to 3", "float32"
TOLERANCE, SINGLE_TOLERANCE = 1e-9, 1e-5
Found = dict[str, tuple[float, list[float]]]


def fits(data: Path, compiled: bool) -> Iterator[tuple[str, Any]]:
    """Every setting on every data set: its name and the fitted model."""
    from benchmarks.defaults import data_sets
    from benchmarks.tasks import TASKS
    from rankrls import RankRLS
    from rankrls.core.fused import compiled_code

    with compiled_code(compiled):
        tasks = ((name, *make(data, 2)[0][0]) for name, make in TASKS.items())
        for name, X, y, qid in chain(data_sets(data), tasks):
            for setting, params in SETTINGS.items():
                yield f"{name}, {setting}", RankRLS(**params).fit(X, y, qid=qid)
            weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
            yield f"{name}, {WITH_WEIGHTS}", RankRLS().fit(X, y, qid=qid, sample_weight=weights)
            yield f"{name}, {SINGLE}", RankRLS().fit(X.astype(np.float32), y, qid=qid)


def found_by(source: Path, data: Path, *, compiled: bool) -> Found:
    """The alphas and held-out scores of the package in a folder, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.same", "--data", str(data), "--print", str(int(compiled))]
    environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def differences(before: Found, now: Found) -> Iterator[str]:
    """What is not the same, in a line each."""
    for name, (alpha, scores) in before.items():
        again, anew = now[name]
        tolerance = SINGLE_TOLERANCE if name.endswith(SINGLE) else TOLERANCE
        far = np.max(np.abs(np.subtract(scores, anew)), initial=0.0) if len(scores) == len(anew) else np.inf
        if abs(alpha / again - 1) > TOLERANCE or far > tolerance:
            yield f"{name}: alpha {alpha:.6g} -> {again:.6g}, scores differ by {far:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="4b21b34", help="the earlier commit")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--print", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.print is not None:
        warnings.simplefilter("ignore")
        models = fits(arguments.data, bool(arguments.print))
        print(json.dumps({name: (float(m.alpha_), np.asarray(m.cv_scores_).tolist()) for name, m in models}))
        return
    with tempfile.TemporaryDirectory() as folder:
        before = found_by(source_of(arguments.commit, Path(folder)), arguments.data, compiled=False)
    for compiled in (False, True):
        changed = list(differences(before, found_by(ROOT / "src", arguments.data, compiled=compiled)))
        how = "compiled" if compiled else "NumPy"
        print(f"{arguments.commit} and now ({how}): {len(before)} fits, {len(changed)} differ", *changed, sep="\n- ")


if __name__ == "__main__":
    main()
