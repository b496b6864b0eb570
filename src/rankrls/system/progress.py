"""Progress of long work, on standard error: what is running, how much is done, and how long the rest will take.

Nothing is printed before a second has passed. Terminals and notebooks show one line that is rewritten; a log gets
whole lines, at growing intervals. Library code calls `counted`, `counter` and `phase`, which stay silent unless the
caller is inside `reporting(True)`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from .limits import limits

T = TypeVar("T")

EVERY = 0.5  # seconds between two updates of a line
LOGGED = 5.0  # seconds between the first two lines of a log; the interval doubles from there


@dataclass
class Progress:
    """Count finished items and print `label: 40 %, 12 s left`, or `label: 1,200 rows` where the total is unknown."""

    label: str
    total: int | None = None
    unit: str = ""
    done: int = 0
    quiet: bool = False
    _start: float = field(default_factory=lambda: limits.clock())
    _last: float | None = None  # when something was last printed
    _pause: float = 0.0
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._first = self.done  # done earlier, so not part of the measured speed

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """The items, counted as they are finished."""
        for item in items:
            yield item
            self.add(1)

    def add(self, n: int) -> None:
        """Count n more as done."""
        with self._lock:
            self.done += n
            now = limits.clock()
            if self.done == self.total:
                self._close(now)
            elif self._due(now):
                self._print(now)

    def restart(self) -> None:
        """Measure time from now."""
        self._start = limits.clock()

    def close(self) -> None:
        """Finish: print the last line."""
        with self._lock:
            self._close(limits.clock())

    def _due(self, now: float) -> bool:
        if self.quiet or now - self._start <= limits.silent_seconds:
            return False
        return self._last is None or now - self._last > (EVERY if rewrites() else self._pause)

    def _print(self, now: float) -> None:
        self._last, self._pause = now, 2 * self._pause or LOGGED
        show(f"{self.label}: {self._state(now)}")

    def _close(self, now: float) -> None:
        if (
            not self._closed
            and not self.quiet
            and (self._last is not None or now - self._start > limits.silent_seconds)
        ):
            took = duration(now - self._start)
            early = self.total is not None and self.done < self.total
            show(f"{self.label}: {'done' if early else self._state(now)} in {took}", last=True)
        self._closed = True

    def _state(self, now: float) -> str:
        if self.total is None:
            return f"{self.done:,} {self.unit}".rstrip()
        share = f"{100 * self.done // max(1, self.total)} %"
        fresh = self.done - self._first
        if self.done >= self.total or fresh <= 0:
            return share
        return f"{share}, {duration((now - self._start) * (self.total - self.done) / fresh)} left"


def duration(seconds: float) -> str:
    """A time in words.

    Examples
    --------
    >>> duration(12.3), duration(150), duration(7300)
    ('12 s', '2.5 min', '2.0 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


_lines = 0  # printed so far: `working` stays silent while others print


def rewrites() -> bool:
    """True if standard error can rewrite a line: terminals and notebooks can, log files cannot."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")


def show(text: str, *, last: bool = False) -> None:
    """Print a line of progress; `last` ends the line."""
    global _lines
    _lines += 1
    if not rewrites():
        print(text, file=sys.stderr, flush=True)
        return
    clear = "\x1b[K" if sys.stderr.isatty() else "    "  # erase the rest of a longer line
    print(f"\r{text}{clear}", end="\n" if last else "", file=sys.stderr, flush=True)


_reported: ContextVar[bool] = ContextVar("reported", default=False)
_phases: ContextVar[tuple[str, ...]] = ContextVar("phases", default=())


_now: tuple[str, ...] = ()  # the phases of the work that was started last, for `working`


@contextmanager
def reporting(verbose: bool, label: str = "fitting") -> Iterator[None]:
    """Report the progress of long work inside the block if `verbose` is true; of what cannot be counted, the time."""
    if not verbose or _reported.get():
        yield
        return
    token = _reported.set(True)
    try:
        with working(label):
            yield
    finally:
        _reported.reset(token)


@contextmanager
def phase(label: str) -> Iterator[None]:
    """Name the setting or fold that the work inside belongs to; it starts every line of progress."""
    global _now
    before = _phases.get()
    token = _phases.set((*before, label))
    _now = (*before, label)
    try:
        yield
    finally:
        _phases.reset(token)
        _now = before


def numbered(items: Iterable[T], what: str) -> Iterator[T]:
    """The items, each in a phase of its own (`fold 2 of 5`), and how many are done; a single item gets none."""
    total = len(items) if isinstance(items, Sized) else None
    count = counter(f"{what}s", total) if total is not None and total > 1 else None
    for number, item in enumerate(items, start=1):
        if total == 1 or (total is None and number == 1):
            yield item
            continue
        with phase(f"{what} {number}" + ("" if total is None else f" of {total}")):
            yield item
        if count is not None:
            count.add(1)


def reported() -> bool:
    """True if progress should be reported here."""
    return _reported.get()


def counter(label: str, total: int | None = None, unit: str = "") -> Progress:
    """A progress count in the current phase; quiet unless progress is reported."""
    return Progress(", ".join((*_phases.get(), label)), total, unit, quiet=not _reported.get())


def counted(items: Sequence[T], label: str) -> Iterator[T]:
    """The items in order, with their progress."""
    count = counter(label, len(items))
    try:
        yield from count.over(items)
    finally:
        count.close()


@contextmanager
def working(label: str, quiet: bool = False) -> Iterator[None]:
    """Print the elapsed seconds of work that cannot count its progress."""
    over = threading.Event()

    def tell() -> None:
        start, pause, seen, own = limits.clock(), max(0.01, limits.silent_seconds), _lines, False
        text = lambda: f"{', '.join((label, *_now))}: {duration(limits.clock() - start)}"
        while not over.wait(pause):
            own = _lines == seen
            if own:
                show(text())
                pause = pause if rewrites() else 2 * pause
            seen = _lines
        if rewrites() and own and _lines == seen:  # ours is the line to end
            show(text(), last=True)

    thread = threading.Thread(target=tell, daemon=True)
    if not quiet:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if not quiet:
            thread.join()
