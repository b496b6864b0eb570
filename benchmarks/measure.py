"""Medians of wall time and the memory a call takes beyond what was there before it."""

from __future__ import annotations

import os
import platform
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

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
    blas = {
        f"{info['internal_api']} {info['version']}"
        for info in threadpoolctl.threadpool_info()
        if info["user_api"] == "blas"
    }
    packages = {"NumPy": np, "SciPy": scipy, "scikit-learn": sklearn}
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {package.__version__}" for name, package in packages.items()]
    return f"{datetime.now(UTC):%Y-%m-%d}; {cpu}, {os.cpu_count()} cores; {', '.join([*versions, *sorted(blas)])}"
