"""What else runs on the machine, as far as the system tells."""

from __future__ import annotations

import os
import time
from pathlib import Path

LOOKS, PAUSE = 3, 0.001  # a process that is busy is seen every time; seconds between looks


def crowded() -> bool:
    """True if other processes keep half of the cores busy, or more.

    Only Linux tells, and only where all cores of the machine may be used; elsewhere nothing is known, and it is False.
    """
    cores = os.cpu_count() or 1
    try:
        if cores < 2 or len(os.sched_getaffinity(0)) < cores:
            return False
        for look in range(LOOKS):
            time.sleep(PAUSE * (look > 0))
            if 2 * _others() < cores:
                return False
    except (AttributeError, OSError, ValueError, IndexError):
        return False
    return True


def _others() -> int:
    """How many threads of other processes run or could run now."""
    running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    return running - sum(map(_runs, Path("/proc/self/task").iterdir()))


def _runs(task: Path) -> bool:
    """True if a thread of this process runs; one that has just ended does not."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except FileNotFoundError:
        return False
