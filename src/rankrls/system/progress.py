"""How far long work is, told on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

clock = time.monotonic


@dataclass
class Progress:
    """Tells on standard error how much of a pass is done, once it has taken a second."""

    label: str
    total: int | None  # None where nobody knows
    unit: str = ""
    done: int = 0
    start: float = field(default_factory=lambda: clock())
    last: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def over(self, items: Iterable[Any]) -> Iterator[Any]:
        """The items, counted as they are finished."""
        for item in items:
            yield item
            self.add(1)

    def add(self, n: int) -> None:
        """That many more are done."""
        with self.lock:
            self.done += n
            now = clock()
            if now - self.start > 1 and (now - self.last > 0.5 or self.done == self.total):
                self.last = now
                end = "\n" if self.done == self.total else "\r"
                far = f"{self.done:,} {self.unit}" if self.total is None else f"{100 * self.done // self.total} %"
                print(f"{self.label}: {far}", end=end, file=sys.stderr, flush=True)


_verbose: ContextVar[bool] = ContextVar("verbose", default=False)


@contextmanager
def reporting(verbose: bool) -> Iterator[None]:
    """Long passes over the rows report their progress while this lasts."""
    token = _verbose.set(bool(verbose))
    try:
        yield
    finally:
        _verbose.reset(token)


def counted(items: Sequence[Any], label: str) -> Iterator[Any]:
    """The items one after the other, with word of how far they are."""
    return Progress(label, len(items)).over(items) if _verbose.get() else iter(items)


def progress(label: str, total: int | None, unit: str) -> Callable[[int], None]:
    """A function to tell how many more are done; silent unless progress is to be reported."""
    return Progress(label, total, unit).add if _verbose.get() else lambda n: None
