"""How much memory is free, and an error before more than that is allocated."""

from __future__ import annotations

import os

from .limits import limits

SMALL = 1 << 20


def check_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise an error if an allocation would need more memory than the machine has free."""
    if n_bytes < SMALL and limits.free_memory is None:
        return  # to ask the system takes 50 microseconds
    free = available_memory()
    if n_bytes > free:
        raise MemoryError(f"{what} needs about {n_bytes / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free: {remedy}")


def available_memory() -> float:
    """Bytes that can be allocated without swapping; infinite if the system does not say."""
    if limits.free_memory is not None:
        return limits.free_memory
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")
