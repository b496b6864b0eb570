"""The main paths on a quiet machine, and alongside one and two processes that each want a core.

    python -m benchmarks.run load                       the table
    python -m benchmarks.suites.load NAME [--quick]     one path in this process, as JSON

BLAS threads spin while they wait for one another, so that next to a busy process many products take far longer with
several threads than with one. No path should lose more than its share of the cores.

The share: a path that keeps t of c cores busy on a quiet machine (its seconds summed over cores divided by wall
seconds) and b processes that want one core each divide the cores evenly, and none gets more than it wants. So the path
gets max(c - b, c / (b + 1)) cores, or the t that it wants. With 2 cores and 2 threads it may take twice as long next to
one busy process and three times as long next to two; with 1 thread, as long as before and 1.5 times as long.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.generated import search_data
from benchmarks.measure import StoppedError, alone, resident, timed

LOADS = (1, 2)  # busy processes
SLACK = 1.2  # times the fair share; schedulers are not exact
LEAST, SECONDS = 3, 2.0  # runs of a path, and how long they go on
LIMIT = 600.0  # seconds for a path with its data
Path_ = Callable[[bool], Callable[[], object]]  # makes data, quick or not, and returns the call
PATHS: dict[str, Path_] = {}


@dataclass(frozen=True)
class Loaded:
    """One line: seconds on a quiet machine, and the factors next to busy processes."""

    what: str
    seconds: float
    cpu: float
    megabytes: float
    busy: tuple[float | None, ...]  # seconds beside each number of busy processes
    others: float
    cores: int = os.cpu_count() or 1
    judged: bool = True
    head: ClassVar[list[str]] = [
        "",
        "seconds",
        "CPU s",
        "threads",
        "extra MB",
        *(text for load in LOADS for text in (f"beside {load} busy", "share of the cores")),
        "others",
    ]

    @property
    def threads(self) -> float:
        return min(float(self.cores), max(1.0, self.cpu / self.seconds))

    def fair(self, busy: int) -> float:
        """The factor by which it may take longer."""
        share = max(self.cores - busy, self.cores / (busy + 1))
        return max(1.0, self.threads / share)

    @property
    def missed(self) -> str:
        faults = []
        for load, taken in zip(LOADS, self.busy, strict=True):
            if taken is None:
                faults.append(f"stopped beside {load} busy")
            elif taken / self.seconds > SLACK * self.fair(load):
                faults.append(
                    f"{taken / self.seconds:.2f}x beside {load} busy where {self.fair(load):.2f}x is its share"
                )
        return f"{self.what}: {', '.join(faults)}" if self.judged and faults else ""

    def cells(self) -> list[str]:
        ratios = []
        for load, taken in zip(LOADS, self.busy, strict=True):
            ratios += ["stopped" if taken is None else f"{taken / self.seconds:.2f}x", f"{self.fair(load):.2f}x"]
        numbers = [f"{self.seconds:.3f}", f"{self.cpu:.3f}", f"{self.threads:.1f}", f"{self.megabytes:.0f}"]
        return [self.what, *numbers, *ratios, f"{self.others:.0%}"]


def load(quick: bool) -> Iterator[Loaded | str]:
    """Under load: the main paths beside one and two busy processes, and their share of the cores."""
    size = ["--quick"] if quick else []
    for name in PATHS:
        try:
            quiet = alone("benchmarks.suites.load", name, *size, limit=LIMIT)
        except StoppedError as stopped:
            yield f"{name}: {stopped}."
            continue
        taken = tuple(_beside(busy, name, size) for busy in LOADS)
        found = (quiet[key] for key in ("seconds", "cpu", "megabytes"))
        yield Loaded(name, *found, taken, quiet["others"], judged=not name.startswith("X.T @ X"))
    yield (
        "Beside b busy processes a path has max(c - b, c / (b + 1)) of c cores, so that it may take "
        "threads / cores times as long as on a quiet machine. X.T @ X is bare NumPy, for comparison."
    )


def _beside(busy: int, name: str, size: list[str]) -> float | None:
    with busy_processes(busy):
        try:
            return alone("benchmarks.suites.load", name, *size, limit=LIMIT)["seconds"]
        except StoppedError:
            return None


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run other processes that each want a core."""
    command = [sys.executable, "-c", "while True: sum(range(100_000))"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        time.sleep(0.2 if count else 0.0)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


# ---------------------------------------------------------------- the paths


def path(name: str) -> Callable[[Path_], Path_]:
    def register(make: Path_) -> Path_:
        PATHS[name] = make
        return make

    return register


def _rows(quick: bool, m: int = 300_000, n: int = 136) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return search_data(m // 10 if quick else m, n)


@path("X.T @ X, 300,000 x 136")
def gram(quick: bool) -> Callable[[], object]:
    X, _, _ = _rows(quick)
    return lambda: X.T @ X


def _fits(params: dict[str, Any], m: int, n: int) -> Path_:
    def make(quick: bool) -> Callable[[], object]:
        from rankrls import RankRLS

        X, y, qid = _rows(quick, m, n)
        return lambda: RankRLS(random_state=0, **params).fit(X, y, qid=qid)

    return make


KERNEL, POINTS = {"kernel": "rbf"}, {"kernel": "rbf", "basis": 500}
PATHS |= {
    "RankRLS(alpha=1), 300,000 x 136": _fits({"alpha": 1.0}, 300_000, 136),
    "RankRLS(), 300,000 x 136": _fits({}, 300_000, 136),
    "RankRLS(), 20,000 x 46": _fits({}, 20_000, 46),
    "RankRLS(alpha=1), Gaussian, 3,000 rows": _fits({"alpha": 1.0, **KERNEL}, 3_000, 46),
    "RankRLS(), Gaussian, 2,000 rows": _fits(KERNEL, 2_000, 46),
    "RankRLS(alpha=1), 500 points, 50,000 x 46": _fits({"alpha": 1.0, **POINTS}, 50_000, 46),
    "RankRLS(), 500 points, 50,000 x 46": _fits(POINTS, 50_000, 46),
}


@path("RankingPursuit(50, kernel=None), 300,000 x 136")
def linear_pursuit(quick: bool) -> Callable[[], object]:
    from rankrls import RankingPursuit

    X, y, qid = _rows(quick)
    return lambda: RankingPursuit(50, kernel=None).fit(X, y, qid=qid)


@path("RankingPursuit(50), 10,000 x 46, 1,000 points")
def kernel_pursuit(quick: bool) -> Callable[[], object]:
    from rankrls import RankingPursuit

    X, y, qid = _rows(quick, 10_000, 46)
    return lambda: RankingPursuit(50, basis=1000 if not quick else 100, random_state=0).fit(X, y, qid=qid)


@path("CoRankRLS(alpha=1), two views of 100 points, 20,000 x 46")
def views(quick: bool) -> Callable[[], object]:
    from rankrls import CoRankRLS, View

    X, y, qid = _rows(quick, 20_000, 46)
    y[len(y) // 2 :] = np.nan
    two = [View(slice(0, 23), "rbf", 100), View(slice(23, 46), "rbf", 100)]
    return lambda: CoRankRLS(1.0, views=two, random_state=0).fit(X, y, qid=qid)


@path("TransductiveRankRLS(alpha=1), 3,000 x 46")
def transductive(quick: bool) -> Callable[[], object]:
    from rankrls import TransductiveRankRLS

    X, y, qid = _rows(quick, 3_000, 46)
    y[::2] = np.nan
    return lambda: TransductiveRankRLS(1.0).fit(X, y, qid=qid)


def _relation(shape: tuple[int, int], known: float, **params: Any) -> Path_:
    def make(quick: bool) -> Callable[[], object]:
        from rankrls import ConditionalRankRLS

        rng, (p, r) = np.random.default_rng(0), tuple(size // 4 if quick else size for size in shape)
        U, V = rng.normal(size=(p, 20)), rng.normal(size=(r, 20))
        Y = U @ rng.normal(size=(20, 20)) @ V.T + rng.normal(size=(p, r))
        Y[rng.random((p, r)) > known] = np.nan
        return lambda: ConditionalRankRLS(kernel="rbf", target_kernel="rbf", **params).fit(U, Y, V)

    return make


PATHS |= {
    "ConditionalRankRLS(), complete, 1,000 x 1,000": _relation((1000, 1000), 1.0),
    "ConditionalRankRLS(alpha=1), a tenth of 1,000 x 1,000": _relation((1000, 1000), 0.1, alpha=1.0),
    "ConditionalRankRLS(), four fifths of 68 x 442": _relation((68, 442), 0.8),
}


@path("predict, linear, 1,000,000 x 136")
def linear_predict(quick: bool) -> Callable[[], object]:
    from rankrls import RankRLS

    X, y, qid = _rows(quick, 1_000_000)
    model = RankRLS(1.0).fit(X[:10_000], y[:10_000], qid=qid[:10_000])
    return lambda: model.predict(X)


@path("predict, 500 points, 1,000,000 x 46")
def kernel_predict(quick: bool) -> Callable[[], object]:
    from rankrls import RankRLS

    X, y, qid = _rows(quick, 1_000_000, 46)
    model = RankRLS(1.0, **POINTS, random_state=0).fit(X[:10_000], y[:10_000], qid=qid[:10_000])
    return lambda: model.predict(X)


@path("predict, 500 points, 1,000 queries of 20 x 46, one by one")
def kernel_queries(quick: bool) -> Callable[[], object]:
    from rankrls import RankRLS

    X, y, qid = search_data(20_000, 46)
    model = RankRLS(1.0, **POINTS, random_state=0).fit(X, y, qid=qid)
    some = [X[i : i + 20] for i in range(0, 2_000 if quick else 20_000, 20)]
    return lambda: [model.predict(rows) for rows in some]


def _from_parquet(**params: Any) -> Path_:
    def make(quick: bool) -> Callable[[], object]:
        from benchmarks.suites.outofcore import write
        from rankrls import RankRLS

        folder = tempfile.mkdtemp()  # main removes it
        made.append(folder)
        write(Path(folder) / "rows.parquet", 100_000 if quick else 500_000, 0)
        return lambda: RankRLS(**params).fit(folder)

    return make


made: list[str] = []
PATHS |= {
    "RankRLS(alpha=1).fit(Parquet), 500,000 x 136": _from_parquet(alpha=1.0),
    "RankRLS().fit(Parquet), 500,000 x 136": _from_parquet(),
}


def main() -> None:
    import shutil

    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=PATHS)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    try:
        print(json.dumps(_timed(PATHS[arguments.name](arguments.quick))))
    finally:
        for folder in made:
            shutil.rmtree(folder)


def _timed(call: Callable[[], object]) -> dict[str, float]:
    """Medians of some runs, after one run that loads and compiles what is needed."""
    from benchmarks.measure import Peak

    call()
    runs, start = [], time.perf_counter()
    with Peak(resident) as peak, peak.watched():
        while len(runs) < LEAST or (time.perf_counter() - start < SECONDS and len(runs) < 50):
            runs.append(timed(call))
    wall, cpu = (statistics.median(times) for times in zip(*runs, strict=True))
    return {"seconds": wall, "cpu": cpu, "megabytes": peak.megabytes}


if __name__ == "__main__":
    main()
