"""Medians of wall and CPU seconds, and the memory that a call adds."""

from __future__ import annotations

import io
import json
import os
import platform
import statistics
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy
import sklearn
import threadpoolctl

ROOT = Path(__file__).parents[1]
QUIET = 0.05  # share of the cores
patience = 0.0  # seconds to wait for a quiet machine
again = 3  # times as many runs as asked for at most, where others took part of the cores


@dataclass(frozen=True)
class Measured:
    """Medians of runs: wall seconds, peak extra resident memory in MB, seconds summed over cores.

    The ratios are to something that ran in turn with it; `others` is the share of the cores that other processes took.
    """

    seconds: float
    megabytes: float
    ratio: float | None = None
    others: float = 0.0
    cpu: float | None = None
    cpu_ratio: float | None = None

    def over(self, other: Measured) -> Measured:
        """The same, with ratios to something that was measured separately."""
        cpu = self.cpu / other.cpu if self.cpu and other.cpu else None
        return Measured(self.seconds, self.megabytes, self.seconds / other.seconds, self.others, self.cpu, cpu)


@dataclass(frozen=True)
class Row:
    """One line of the table: what was run, its ratio to what ran in turn with it, and the target for that ratio."""

    what: str
    measured: Measured
    beside: str = ""
    target: str = ""
    most: float | None = None  # the largest ratio that is good enough
    head: ClassVar[list[str]] = ["", "seconds", "CPU s", "extra MB", "beside", "in CPU s", "target", "others"]

    @property
    def others(self) -> float:
        return self.measured.others

    @property
    def missed(self) -> str:
        """What is above the target, in a line; empty if nothing is."""
        ratios = {"": self.measured.ratio, " in CPU seconds": self.measured.cpu_ratio}
        above = [f"{value:.2f}x{unit}" for unit, value in ratios.items() if self.most and value and value > self.most]
        return f"{self.what}: {', '.join(above)} where {self.most:g}x was aimed at" if above else ""

    def cells(self) -> list[str]:
        found = self.measured
        aims = [f"<= {self.most:g}x" if self.most else "", self.target]
        return [
            self.what,
            _seconds(found.seconds),
            "" if found.cpu is None else _seconds(found.cpu),
            f"{found.megabytes:.0f}",
            "" if found.ratio is None else f"{found.ratio:.2f}x {self.beside}",
            "" if found.cpu_ratio is None else f"{found.cpu_ratio:.2f}x",
            ", ".join(filter(None, aims)),
            f"{found.others:.0%}",
        ]


def _seconds(value: float) -> str:
    return f"{value:.{3 if value > 0.05 else 5}f}"


# ---------------------------------------------------------------- in this process


class Times(NamedTuple):
    """Seconds of one call."""

    wall: float
    cpu: float


class _Run(NamedTuple):
    others: float
    call: Times
    beside: Times


def measure(call: Callable[[], object], repeat: int = 3, beside: Callable[[], object] | None = None) -> Measured:
    """Run a call a few times, in turn with what it is compared with, so that both see the same machine.

    If other processes took part of the cores, there are more runs, up to `again` times as many; the quietest count.
    """
    runs: list[_Run] = []
    whole = Others()
    with Peak(resident) as peak:
        while len(runs) < repeat or (len(runs) < again * repeat and sum(run.others < QUIET for run in runs) < repeat):
            if not runs or runs[-1].others >= QUIET:
                wait_for_quiet()
            others = Others()
            other = timed(beside) if beside is not None else Times(0.0, 0.0)
            with peak.watched():
                times = timed(call)
            runs.append(_Run(others.share(), times, other))
    runs = sorted(runs)[:repeat]
    median = lambda values: statistics.median(list(values))
    ratio = cpu_ratio = None
    if beside is not None:
        ratio = median(run.call.wall / run.beside.wall for run in runs)
        if all(run.beside.cpu > 0 for run in runs):
            cpu_ratio = median(run.call.cpu / run.beside.cpu for run in runs)
    seconds, cpu = median(run.call.wall for run in runs), median(run.call.cpu for run in runs)
    load = median(run.others for run in runs) or whole.share()  # a short run cannot tell
    return Measured(seconds, peak.megabytes, ratio, load, cpu, cpu_ratio)


def timed(call: Callable[[], object]) -> Times:
    """Wall seconds of one call, and seconds summed over cores."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return Times(time.perf_counter() - wall, time.process_time() - cpu)


class Peak:
    """The memory that is added while something runs, sampled repeatedly."""

    def __init__(self, memory: Callable[[], float], every: float = 0.002) -> None:
        self._memory, self._every, self._before, self._peak = memory, every, memory(), 0.0
        self._done, self._running = threading.Event(), False
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    @property
    def megabytes(self) -> float:
        return max(0.0, self._peak - self._before)

    @contextmanager
    def watched(self) -> Iterator[None]:
        self._running = True
        yield
        self._running = False

    def __enter__(self) -> Peak:
        self._watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._done.wait(self._every):
            if self._running:
                self._peak = max(self._peak, self._memory())


def resident(process: int | str = "self") -> float:
    """Resident memory of a process, by default this one, in MB (zero if the system does not say)."""
    try:
        with open(f"/proc/{process}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0


def anonymous() -> float:
    """Resident memory of this process in MB without pages of files (zero if the system does not say)."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) * 1024 / 1e6
    except OSError:
        return 0.0


# ---------------------------------------------------------------- in processes of their own


class StoppedError(Exception):
    """A separate process did not finish; the message is the reason in a line."""


def alone(
    module: str,
    *arguments: str,
    limit: float | None = None,
    python: str | None = None,
    environment: dict[str, str] | None = None,
) -> dict[str, Any]:
    """What `python -m module arguments` prints as JSON on its last line: only the module is in its memory.

    Adds "others", the share of the cores that other processes took meanwhile.
    """
    command = [python or sys.executable, "-m", module, *arguments]
    patient = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}  # else a machine that others use slows trees many times over
    patient |= environment or {}
    options: dict[str, Any] = {"cwd": ROOT, "env": patient, "timeout": limit}
    wait_for_quiet()
    others = Others()
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except subprocess.TimeoutExpired:
        raise StoppedError(f"stopped after {limit:.0f} s") from None
    if done.returncode:
        raise StoppedError((done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1])
    return {**json.loads(done.stdout.splitlines()[-1]), "others": others.share()}


def of_process(*arguments: str) -> Measured:
    """`python arguments` from start to end: wall seconds, seconds summed over cores, peak memory of the process."""
    wait_for_quiet()
    others, start = Others(), time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    _, status, used = os.wait4(process.pid, 0)
    seconds, process.returncode = time.perf_counter() - start, os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise StoppedError(f"{' '.join(arguments)} ended with {process.returncode}")
    return Measured(seconds, used.ru_maxrss * 1024 / 1e6, None, others.share(), used.ru_utime + used.ru_stime)


def source_of(commit: str, folder: Path) -> Path:
    """The sources of a commit, written to a folder: what to put first in the path of a process that runs them."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder / "src"


def told(found: dict[str, Any]) -> Measured:
    """What a separate process reported about itself."""
    return Measured(found["seconds"], found["megabytes"], None, found["others"], found["cpu"])


def itself(
    call: Callable[[], object], memory: Callable[[], float] = resident, every: float = 0.002
) -> dict[str, float]:
    """What a separate process reports about one call."""
    with Peak(memory, every) as peak, peak.watched():
        times = timed(call)
    return {"seconds": times.wall, "cpu": times.cpu, "megabytes": peak.megabytes}


def in_turn(runs: dict[str, Callable[[], Measured]], repeat: int) -> dict[str, Measured]:
    """Medians of several rounds; ratios are to the first call, round by round."""
    rounds = [{name: run() for name, run in runs.items()} for _ in range(repeat)]
    found = {}
    for name in runs:
        pairs = [one[name].over(next(iter(one.values()))) for one in rounds]
        middle = lambda field, pairs=pairs: statistics.median(getattr(one, field) or 0.0 for one in pairs)
        megabytes = max(one.megabytes for one in pairs)
        fields = ("seconds", "ratio", "others", "cpu", "cpu_ratio")
        seconds, ratio, others, cpu, cpu_ratio = (middle(field) for field in fields)
        found[name] = Measured(seconds, megabytes, ratio, others, cpu, cpu_ratio)
    return found


# ---------------------------------------------------------------- the machine


class Others:
    """The share of the cores that other processes take (zero if the system does not say)."""

    def __init__(self) -> None:
        self.wall, self.busy, self.own = time.perf_counter(), _busy(), _own()

    def share(self) -> float:
        wall = (time.perf_counter() - self.wall) * (os.cpu_count() or 1)
        return 0.0 if wall < 0.2 else max(0.0, (_busy() - self.busy - _own() + self.own) / wall)


def _busy() -> float:
    """Seconds in which cores were not idle."""
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


def machine() -> str:
    """The machine on which the figures were measured."""
    cpu = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            cpu = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    libraries = [info for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas"]
    blas = {f"{info['internal_api']} {info['version']} for {info.get('architecture')}" for info in libraries}
    threads = max((info["num_threads"] for info in libraries), default=1)
    packages = {"NumPy": np, "SciPy": scipy, "scikit-learn": sklearn}
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {package.__version__}" for name, package in packages.items()]
    where = f"{cpu}, {os.cpu_count()} cores, {threads} threads"
    return f"{datetime.now(UTC):%Y-%m-%d}; {where}; {', '.join([*versions, *sorted(blas)])}"
