"""Latency of short calls in microseconds: median, 99th percentile and longest, measured in turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.measure import Others, wait_for_quiet

WARM = 20  # calls before anything is timed


@dataclass(frozen=True)
class Latency:
    """One line of a table of latencies."""

    what: str
    times: np.ndarray  # microseconds of each call
    others: float  # share of the cores that other processes took
    beyond: float | None = None  # microseconds more than what it is compared to, at the median
    beside: str = ""
    most: float | None = None  # of these microseconds that is good enough
    cpu: float = 0.0  # mean microseconds of all cores
    head: ClassVar[list[str]] = ["", "median us", "99 % us", "longest us", "CPU us", "beside", "target", "others"]

    @property
    def missed(self) -> str:
        if self.most is None or self.beyond is None or self.beyond <= self.most:
            return ""
        return f"{self.what}: {self.beyond:.0f} us more than {self.beside} where {self.most:g} were aimed at"

    def cells(self) -> list[str]:
        beyond = "" if self.beyond is None else f"{_short(self.beyond)} us more than {self.beside}"
        spread = (np.median(self.times), np.percentile(self.times, 99), self.times.max())
        aim = "" if self.most is None else f"<= {self.most:g} us"
        return [self.what, *map(_short, spread), _short(self.cpu), beyond, aim, f"{self.others:.0%}"]


def _short(microseconds: float) -> str:
    return f"{microseconds:.1f}" if abs(microseconds) < 100 else f"{microseconds:,.0f}"


def latencies(
    calls: dict[str, Callable[[], object]],
    repeat: int,
    *,
    beside: str | None = None,
    called: str = "",
    most: dict[str, float] | None = None,
) -> list[Latency]:
    """Lines for several calls, timed in turn and compared with the one named `beside` (`called` in the table)."""
    for call in calls.values():
        for _ in range(WARM):
            call()
    wait_for_quiet()
    others, times = Others(), {name: np.empty(repeat) for name in calls}
    cpu = dict.fromkeys(calls, 0)
    enabled = gc.isenabled()
    gc.disable()
    try:
        for i in range(repeat):
            for name, call in calls.items():
                used, start = time.process_time_ns(), time.perf_counter_ns()
                call()
                times[name][i] = (time.perf_counter_ns() - start) / 1000
                cpu[name] += time.process_time_ns() - used
    finally:
        if enabled:
            gc.enable()
    share = others.share()
    found = []
    for name, taken in times.items():
        compared = beside is not None and name != beside
        beyond = float(np.median(taken) - np.median(times[beside])) if compared else None  # type: ignore[index]
        limit = (most or {}).get(name)
        found.append(Latency(name, taken, share, beyond, called if compared else "", limit, cpu[name] / repeat / 1000))
    return found
