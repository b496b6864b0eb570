"""Work after a change, in a low-priority thread that lets answers go first and reports its progress."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

PAUSE = 0.15  # seconds without a change before the work begins
GIVEN_WAY = 0.1  # seconds it waits for answers at most
LAST_WORK = 3.0  # seconds that closing waits for the work; the thread does not keep the process alive
Event = dict[str, Any]


class Listeners:
    """Subscribers to changes and progress."""

    def __init__(self) -> None:
        self._heard: list[Callable[[Event], None]] = []
        self._lock = threading.Lock()

    def add(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Subscribe a function to events; returns a function that unsubscribes it."""
        with self._lock:
            self._heard.append(listener)

        def stop() -> None:
            with self._lock, contextlib.suppress(ValueError):
                self._heard.remove(listener)

        return stop

    def tell(self, event: Event) -> None:
        """Send an event to all subscribers."""
        with self._lock:
            listeners = list(self._heard)
        for listener in listeners:
            listener(event)


class Background:
    """A thread that calls `work()` after each change; errors go to `problem` and do not stop it."""

    def __init__(self, work: Callable[[], None], problem: Callable[[Exception], None]):
        self._work, self._problem = work, problem
        self._wake, self._free, self.closed = threading.Event(), threading.Event(), False
        self._lock, self._answers, self._mine = threading.Lock(), 0, threading.local()
        self._free.set()
        self._wake.set()
        self._thread = threading.Thread(target=self._run, name="workbench hold-out", daemon=True)

    def start(self) -> None:
        """Start the thread, with work to do."""
        self._thread.start()

    def wake(self) -> None:
        """Start the work again after a change."""
        self._wake.set()

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Within the block, where an answer is made, the work pauses and `afterwards` actions wait."""
        with self._lock:
            self._answers += 1
            self._free.clear()
        later: list[Callable[[], None]] = []
        self._mine.later = later
        try:
            yield
        finally:
            self._mine.later = None
            with self._lock:
                self._answers -= 1
                if not self._answers:
                    self._free.set()
            for act in later:
                act()

    def afterwards(self, act: Callable[[], None]) -> None:
        """Call a function after the answer that this thread is making, or at once if it is making none."""
        later = getattr(self._mine, "later", None)
        if later is None:
            act()
        else:
            later.append(act)

    def give_way(self) -> None:
        """Wait for answers being made, but not for ever: more may follow."""
        self._free.wait(GIVEN_WAY)

    def close(self) -> None:
        """Stop the thread as soon as its work permits."""
        self.closed = True
        self._wake.set()
        self._thread.join(timeout=LAST_WORK)

    def _run(self) -> None:
        if hasattr(os, "setpriority"):  # threads that answer go first
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 3)
        while not self.closed:
            self._wake.wait()
            while not self.closed and self._wake.is_set():  # wait while changes come in quick succession
                self._wake.clear()
                self._wake.wait(PAUSE)
            try:
                if not self.closed:
                    self._work()
            except Exception as error:  # shown on the page; the session goes on
                self._problem(error)
