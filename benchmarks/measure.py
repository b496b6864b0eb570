"""Medians of wall time and the memory a call takes beyond what was there before it."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy
import sklearn
import threadpoolctl

QUIET = 0.05  # share of the cores
patience = 0.0  # seconds


@dataclass(frozen=True)
class Measured:
    """Seconds (median of the runs), peak extra resident memory in MB, the median ratio to something else, and the
    share of the cores that other processes took meanwhile."""

    seconds: float
    megabytes: float
    ratio: float | None = None
    others: float = 0.0


@dataclass(frozen=True)
class Row:
    """One line of the table: what was run, and the ratio to what it ran in turn with."""

    what: str
    measured: Measured
    beside: str = ""
    target: str = ""
    head: ClassVar[list[str]] = ["", "seconds", "extra MB", "beside", "target"]

    @property
    def others(self) -> float:
        return self.measured.others

    def cells(self) -> list[str]:
        ratio = "" if self.measured.ratio is None else f"{self.measured.ratio:.2f}x {self.beside}"
        digits = 3 if self.measured.seconds > 0.05 else 5
        return [
            self.what,
            f"{self.measured.seconds:.{digits}f}",
            f"{self.measured.megabytes:.0f}",
            ratio,
            self.target,
        ]


class StoppedError(Exception):
    """A process of its own that did not get to its end; the reason in a line."""


def alone(
    module: str,
    *arguments: str,
    limit: float | None = None,
    python: str | None = None,
    environment: dict[str, str] | None = None,
) -> dict[str, Any]:
    """What `python -m module arguments` prints as JSON on its last line: nothing but the module is in its memory.

    "others" is added, the share of the cores that other processes took meanwhile.
    """
    command = [python or sys.executable, "-m", module, *arguments]
    patient = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}  # else a machine that others use slows trees many times over
    patient |= environment or {}
    options: dict[str, Any] = {"cwd": Path(__file__).parents[1], "env": patient, "timeout": limit}
    wait_for_quiet()
    others = Others()
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except subprocess.TimeoutExpired:
        raise StoppedError(f"stopped after {limit:.0f} s") from None
    if done.returncode:
        raise StoppedError((done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1])
    return {**json.loads(done.stdout.splitlines()[-1]), "others": others.share()}


def resident(process: int | str = "self") -> float:
    """Resident memory of a process, by default this one, in MB (zero where the system does not tell)."""
    try:
        with open(f"/proc/{process}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0


class Others:
    """The share of the cores that other processes take (zero where the system does not tell)."""

    def __init__(self) -> None:
        self.wall, self.busy, self.own = time.perf_counter(), _busy(), _own()

    def share(self) -> float:
        wall = (time.perf_counter() - self.wall) * (os.cpu_count() or 1)
        return 0.0 if wall < 0.2 else max(0.0, (_busy() - self.busy - _own() + self.own) / wall)


def _busy() -> float:
    """Seconds that the cores have not been idle."""
    try:
        with open("/proc/stat") as file:
            ticks = [int(field) for field in file.readline().split()[1:9]]
        return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


def _own() -> float:
    return sum(os.times()[:4]) if _busy() else 0.0


def wait_for_quiet() -> None:
    """Wait, `patience` seconds at most, until other processes leave the cores alone."""
    start = time.perf_counter()
    while time.perf_counter() - start < patience:
        others = Others()
        time.sleep(0.5)
        if others.share() < QUIET:
            return


def measure(call: Callable[[], object], repeat: int = 3, beside: Callable[[], object] | None = None) -> Measured:
    """Run a call a few times, in turn with what it is compared to, so that both see the same machine.

    Where other processes took part of the cores, runs are repeated, up to three times as many; the quietest count.
    """
    before, peak, done = resident(), 0.0, threading.Event()
    running = False

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            if running:
                peak = max(peak, resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    runs: list[tuple[float, float, float]] = []  # share of others, seconds of the call, seconds beside
    while len(runs) < repeat or (len(runs) < 3 * repeat and sum(run[0] < QUIET for run in runs) < repeat):
        if not runs or runs[-1][0] >= QUIET:
            wait_for_quiet()
        others = Others()
        other = timed(beside) if beside is not None else 0.0
        running = True
        seconds = timed(call)
        running = False
        runs.append((others.share(), seconds, other))
    done.set()
    watcher.join()
    runs = sorted(runs)[:repeat]
    ratio = statistics.median(a / b for _, a, b in runs) if beside is not None else None
    median = statistics.median(seconds for _, seconds, _ in runs)
    return Measured(median, max(0.0, peak - before), ratio, statistics.median(share for share, _, _ in runs))


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def machine() -> str:
    """What the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            cpu = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    libraries = [info for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas"]
    blas = {f"{info['internal_api']} {info['version']}" for info in libraries}
    threads = max((info["num_threads"] for info in libraries), default=1)
    packages = {"NumPy": np, "SciPy": scipy, "scikit-learn": sklearn}
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {package.__version__}" for name, package in packages.items()]
    where = f"{cpu}, {os.cpu_count()} cores, {threads} threads"
    return f"{datetime.now(UTC):%Y-%m-%d}; {where}; {', '.join([*versions, *sorted(blas)])}"
