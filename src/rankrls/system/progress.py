"""Progress of long work, printed to standard error: what is running, how much is done, and the time left.

Nothing is printed before a second has passed. Terminals and notebooks show one line that is rewritten; a log gets
whole lines, at growing intervals. Library code calls `counted`, `counter`, `numbered` and `step`, which stay silent
unless the caller is inside `reporting(True)`.

Counts nest: the iterations of a fold are a part of that fold. A line names the innermost work, and gives the share
done and the time left of the outermost.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from .limits import limits

T = TypeVar("T")

FIRST_GUESS = 0.01  # share done before the time left can be guessed
PATIENCE = 60.0  # seconds after which it is guessed from less
LOGGED = 5.0  # seconds between the first two lines of a log; the interval doubles from then on


@dataclass
class Progress:
    """Count finished items and print `label: 40 %, 12 s left`, or `label: 1,200 rows` where the total is unknown."""

    label: str
    total: int | None = None
    unit: str = ""
    done: int = 0
    quiet: bool = False
    parent: Progress | None = None  # the count that this is a part of
    _start: float = field(default_factory=lambda: limits.clock())
    _last: float | None = None  # when something was last printed
    _pause: float = 0.0
    _part: float = 0.0  # share of the current item that is done
    _closed: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._first = self.done  # was done before, so it does not count for the speed

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """The items, counted as they are finished."""
        for item in items:
            yield item
            self.add(1)

    def add(self, n: int) -> None:
        """Count n more as done."""
        with self._lock:
            self.done += n
            self._part = 0.0
            now = limits.clock()
            if self.done == self.total:
                self._close(now)
            else:
                self._report(self, now)

    def restart(self) -> None:
        """Measure time from now."""
        self._start = limits.clock()

    def close(self) -> None:
        """Finish: print the last line."""
        with self._lock:
            self._close(limits.clock())

    def state(self, now: float, leaf: Progress) -> str:
        """The text for this count: what `leaf` is doing, the share done and the time left."""
        label = leaf.label
        if self.total is None:
            return f"{label}: {self.done:,} {self.unit}".rstrip()
        share = self.share
        fresh = share - self._first / max(1, self.total)
        line = f"{label}: {int(100 * share + 1e-9)} %"
        if share >= 1 or fresh <= 0 or (fresh < FIRST_GUESS and now - self._start < PATIENCE):
            return line
        return f"{line}, {duration((now - self._start) * (1 - share) / fresh)} left"

    @property
    def share(self) -> float:
        """The share that is done; work without a total counts as just begun."""
        return 0.0 if self.total is None else min(1.0, (self.done + self._part) / max(1, self.total))

    @property
    def item(self) -> float:
        """The share that one item is of the outermost count."""
        return 1 / max(1, self.total or 1) * (1.0 if self.parent is None else self.parent.item)

    @property
    def root(self) -> Progress:
        """The outermost count with a total that this is a part of."""
        return self if self.parent is None else self.parent.root

    def _report(self, leaf: Progress, now: float) -> None:
        """Pass on what `leaf` has done to the outermost count, which prints."""
        global _busy
        _busy = leaf
        if self.parent is not None:
            with self.parent._lock:
                self.parent._part = max(self.parent._part, min(0.99, self.share))
                self.parent._report(leaf, now)
        elif self._due(now):
            self.printed(now)
            show(self.state(now, leaf))

    def printed(self, now: float) -> None:
        """Note that a line was printed, so that the next one waits."""
        self._last, self._pause = now, 2 * self._pause or LOGGED

    def _due(self, now: float) -> bool:
        if self.quiet or now - self._start <= limits.silent_seconds:
            return False
        return self._last is None or now - self._last > (limits.redraw_seconds if rewrites() else self._pause)

    def _close(self, now: float) -> None:
        global _busy
        told = now - self._start > limits.silent_seconds
        if not self._closed and not self.quiet and self.parent is None and told:
            early = self.total is not None and self.done < self.total
            line = f"{self.label}: done" if early else self.state(now, self)
            show(f"{line} in {duration(now - self._start)}", last=True)
        elif not self._closed and self.parent is not None:
            self._report(self, now)
        self._closed = True
        _busy = self.parent


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


_lines = 0  # lines printed so far: `working` stays silent while others print
_busy: Progress | None = None  # the innermost count that is running, for `working`


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
_inside: ContextVar[Progress | None] = ContextVar("inside", default=None)  # the enclosing count of items


_now: tuple[str, ...] = ()  # the phases of the work started last, for `working`


def reporting(verbose: bool, label: str = "fitting") -> AbstractContextManager[None]:
    """Report the progress of long work inside the block if `verbose`; of work that cannot be counted, the time."""
    return nullcontext() if not verbose or _reported.get() else _reporting(label)


@contextmanager
def _reporting(label: str) -> Iterator[None]:
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


def numbered(items: Iterable[T], what: str, names: Sequence[str] | None = None) -> Iterator[T]:
    """Yield the items, each in a phase of its own (`fold 2 of 5`), and count them; a single item gets no phase.

    `names` are the names of the phases. Counts inside an item are part of it.
    """
    total = len(items) if isinstance(items, Sized) else None
    count = counter(f"{what}s", total) if total is not None and total > 1 else None
    for number, item in enumerate(items, start=1):
        if names is None and (total == 1 or (total is None and number == 1)):
            yield item
            continue
        named = f"{what} {number}" + ("" if total is None else f" of {total}") if names is None else names[number - 1]
        if any(name.startswith(f"{what} ") for name in _phases.get()):
            named = f"inner {named}"
        token = _inside.set(count or _inside.get())
        try:
            with phase(named):
                yield item
        finally:
            _inside.reset(token)
        if count is not None:
            count.add(1)


def silent(work: Callable[[Any], T]) -> Callable[[Any], T]:
    """The function without reports of its own, for a part of counted work."""

    def call(argument: Any) -> T:
        token = _reported.set(False)
        try:
            return work(argument)
        finally:
            _reported.reset(token)

    return call


def reported() -> bool:
    """True if progress should be reported here."""
    return _reported.get()


def counter(label: str, total: int | None = None, unit: str = "") -> Progress:
    """A count in the current phase; silent unless progress is reported."""
    label = ", ".join((*_phases.get(), label))
    return Progress(label, total, unit, quiet=not _reported.get(), parent=_inside.get())


def counted(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Yield the items in order and report their progress; counts inside an item are part of it.

    `total` is the number of items, or the most there can be; it may be left out if the items have a length.
    """
    if not _reported.get():
        return iter(items)
    return _counted(items, label, len(items) if total is None and isinstance(items, Sized) else total)


def _counted(items: Iterable[T], label: str, total: int | None) -> Iterator[T]:
    count = counter(label, total)
    token = _inside.set(count)
    try:
        yield from count.over(items)
    finally:
        _inside.reset(token)
        count.close()


@contextmanager
def working(label: str, quiet: bool = False) -> Iterator[None]:
    """Print the elapsed seconds of work that cannot count its progress."""
    over = threading.Event()

    def tell() -> None:
        start, pause, seen, own = limits.clock(), max(0.01, limits.silent_seconds), _lines, False
        text = lambda: _heartbeat(", ".join((label, *_now)), limits.clock(), start)
        while not over.wait(pause):
            own = _lines == seen
            if own:
                show(text())
                pause = pause if rewrites() else 2 * pause
            seen = _lines
        if rewrites() and own and _lines == seen:  # the last line is ours, so we end it
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


def _heartbeat(label: str, now: float, start: float) -> str:
    """The text for what runs now: the share done and the time left if known, else the elapsed time."""
    if _step is not None:
        return _step.line(now)
    if _busy is not None and not _busy.quiet and _busy.root.share > 0:
        _busy.root.printed(now)
        return _busy.root.state(now, _busy)
    return f"{label}: {duration(now - start)}"


# ---------------------------------------------------------------- one long call


@dataclass(frozen=True)
class TimedCall:
    """A call that cannot report progress but whose duration is roughly known."""

    label: str
    start: float
    seconds: float  # expected duration
    inside: Progress | None = None  # the count whose item it is

    def line(self, now: float) -> str:
        share, left = min(0.99, (now - self.start) / self.seconds), self.seconds - now + self.start
        if self.inside is not None:
            root, item = self.inside.root, self.inside.item
            part, share = share * item, min(0.99, root.share + share * item)
            left = (now - root._start) * (1 - share) / share if root.share else self.seconds * (1 - part) / item
        return f"{self.label}: {int(100 * share)} %, {duration(max(1.0, left))} left"

    def announce(self) -> bool:
        """Print the line if the call takes long, and in a log of many such calls, if a line is due."""
        if self.seconds <= limits.silent_seconds:
            return False
        if self.inside is not None:
            root = self.inside.root
            if root._last is not None and not root._due(self.start):
                return True
            root.printed(self.start)
        show(self.line(self.start))
        return True


_step: TimedCall | None = None


def step(label: str, multiplications: float) -> AbstractContextManager[None]:
    """Announce a LAPACK call that will take over a second, with its duration, estimated from a small product run now.

    Some of these calls let no other thread print until they return.
    """
    silent = not _reported.get() or multiplications < limits.long_call
    return nullcontext() if silent else _announced(label, multiplications)


@contextmanager
def _announced(label: str, multiplications: float) -> Iterator[None]:
    global _step
    label = ", ".join((*_phases.get(), label))
    _step = TimedCall(label, limits.clock(), multiplications * _seconds_each(), _inside.get())
    told = _step.announce()
    try:
        yield
    finally:
        took, alone, _step = limits.clock() - _step.start, _step.inside is None, None
        if alone and (told or took > limits.silent_seconds):
            show(f"{label}: 100 % in {duration(took)}", last=True)


def _seconds_each(n: int = 400) -> float:
    """The time of one multiplication in a matrix product, on the machine as busy as it is now."""
    A = np.ones((n, n))
    A @ A  # wakes the threads
    start = time.perf_counter()
    for _ in range(3):
        A @ A
    return (time.perf_counter() - start) / (3 * n**3)
