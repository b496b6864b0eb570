"""Is this commit as fast as an earlier one? The same fits by both, in turn.

    python -m benchmarks.turns [--commit f5301ed] [--rounds 5] [--fits 9] [case ...]

A round starts a process for each commit. They do every fit in turn, so that both see the same machine; each case counts
with its fastest fit. Prints medians over the rounds: seconds of both, their ratio, and the same in CPU seconds. The
number of BLAS threads is taken from the environment (OPENBLAS_NUM_THREADS).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import ROOT, Others, machine, source_of, timed

ALPHAS = np.logspace(-3, 4, 15)


def cases() -> dict[str, Callable[[], object]]:
    """Fits that every commit since f5301ed can do, with the same alphas and without scaling."""
    import rankrls

    rng = np.random.default_rng(0)

    def rows(n: int, features: int, per_query: int) -> tuple[Any, Any, Any]:
        X = rng.standard_normal((n, features))
        return X, X @ rng.standard_normal(features) + rng.standard_normal(n), np.arange(n) // per_query

    def plain(name: str, *arguments: Any, **params: Any) -> Any:
        ranker = getattr(rankrls, name)(*arguments, **params)
        return ranker.set_params(scale=None) if "scale" in ranker.get_params() else ranker

    X, y, qid = rows(60_000, 60, 60)
    grades = np.digitize(y, np.quantile(y, [0.5, 0.7, 0.85, 0.95]))
    Xk, yk, qk = rows(1600, 10, 20)
    Xp, yp, qp = rows(400, 10, 20)
    Xl, yl, ql = rows(4000, 10, 20)
    large = cache(lambda: rows(300_000, 136, 100))
    objects, relation = rng.standard_normal((400, 10)), rng.standard_normal((400, 400))
    linear, kernel = plain("RankRLS", alphas=ALPHAS), plain("RankRLS", kernel="rbf", alphas=ALPHAS)
    conditional = plain("ConditionalRankRLS", alphas=ALPHAS)
    pursuit, longer = plain("RankingPursuit", 20), plain("RankingPursuit", 50)
    return {
        "linear, 60,000 x 60": lambda: linear.fit(X, y, qid),
        "linear, 300,000 x 136": lambda: linear.fit(*large()),
        "the same, grades 0 to 4": lambda: linear.fit(X, grades, qid),
        "kernel, 1,600 rows": lambda: kernel.fit(Xk, yk, qk),
        "conditional, 400 objects": lambda: conditional.fit(objects, relation),
        "pursuit, 20 of 400 points": lambda: pursuit.fit(Xp, yp, qp),
        "pursuit, 50 of 4,000 points": lambda: longer.fit(Xl, yl, ql),
    }


def serve() -> None:
    """Fit what is asked for, a case in a line, and say how long it took."""
    warnings.simplefilter("ignore")
    fits = cases()
    for line in sys.stdin:
        print(json.dumps(timed(fits[line.rstrip("\n")])), flush=True)


def one_round(sources: list[Path], names: list[str], fits: int) -> dict[str, list[list[float]]]:
    """The least wall and CPU seconds of each case, for each of the sources."""
    found: dict[str, list[list[float]]] = {}
    with ExitStack() as stack:
        processes = []
        for source in sources:
            environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
            command = [sys.executable, "-m", "benchmarks.turns", "--serve"]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            processes.append(stack.enter_context(subprocess.Popen(command, env=environment, cwd=source, **pipes)))
        for name in names:
            times = [[_ask(process, name) for process in processes] for _ in range(fits + 1)][1:]
            found[name] = [[min(t[k][unit] for t in times) for unit in (0, 1)] for k in range(len(sources))]
    return found


def _ask(process: subprocess.Popen[str], name: str) -> list[float]:
    assert process.stdin and process.stdout
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="cases that contain one of these words (all)")
    parser.add_argument("--commit", default="f5301ed", help="the earlier commit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fits", type=int, default=9, help="fits of each case in a round, after one that warms up")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    wanted = [name for name in cases() if not arguments.names or any(word in name for word in arguments.names)]
    others = Others()
    with tempfile.TemporaryDirectory() as folder:
        sources = [source_of(arguments.commit, Path(folder)), ROOT / "src"]
        rounds = [one_round(sources[:: 1 - 2 * (k % 2)], wanted, arguments.fits) for k in range(arguments.rounds)]
    print(machine())
    print(f"{'seconds':32s}{arguments.commit:>10s}{'now':>10s}{'ratio':>7s}{'CPU':>10s}{'now':>10s}{'ratio':>7s}")
    for name in wanted:
        pairs = [one[name][:: 1 - 2 * (k % 2)] for k, one in enumerate(rounds)]
        cells = f"{name:32s}"
        for unit in (0, 1):
            before, now = (statistics.median(pair[k][unit] for pair in pairs) for k in (0, 1))
            ratio = statistics.median(pair[1][unit] / pair[0][unit] for pair in pairs)
            cells += f"{before:10.5f}{now:10.5f}{ratio:7.3f}"
        print(cells)
    print(f"Other processes took {others.share():.0%} of the cores.")


if __name__ == "__main__":
    main()
