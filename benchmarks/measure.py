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


@dataclass(frozen=True)
class Measured:
    """Seconds (median of the runs), peak extra resident memory in MB, and the median ratio to something else."""

    seconds: float
    megabytes: float
    ratio: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table: what was run, and the ratio to what it ran in turn with."""

    what: str
    measured: Measured
    beside: str = ""
    target: str = ""
    head: ClassVar[list[str]] = ["", "seconds", "extra MB", "beside", "target"]

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


def alone(module: str, *arguments: str, limit: float | None = None, python: str | None = None) -> dict[str, Any]:
    """What `python -m module arguments` prints as JSON on its last line: nothing but the module is in its memory."""
    command = [python or sys.executable, "-m", module, *arguments]
    patient = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}  # else a machine that others use slows trees many times over
    options: dict[str, Any] = {"cwd": Path(__file__).parents[1], "env": patient, "timeout": limit}
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except subprocess.TimeoutExpired:
        raise StoppedError(f"stopped after {limit:.0f} s") from None
    if done.returncode:
        raise StoppedError((done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def resident() -> float:
    """Resident memory of this process in MB (zero where the system does not tell)."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0


def measure(call: Callable[[], object], repeat: int = 3, beside: Callable[[], object] | None = None) -> Measured:
    """Run a call a few times, in turn with what it is compared to, so that both see the same machine."""
    before, peak, done = resident(), 0.0, threading.Event()
    running = False

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            if running:
                peak = max(peak, resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    seconds, other = [], []
    for _ in range(repeat):
        if beside is not None:
            other.append(timed(beside))
        running = True
        seconds.append(timed(call))
        running = False
    done.set()
    watcher.join()
    ratio = statistics.median(a / b for a, b in zip(seconds, other, strict=True)) if other else None
    return Measured(statistics.median(seconds), max(0.0, peak - before), ratio)


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
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    where = f"{cpu}, {os.cpu_count()} cores, {threads} threads, load {load:.1f}"
    return f"{datetime.now(UTC):%Y-%m-%d}; {where}; {', '.join([*versions, *sorted(blas)])}"
