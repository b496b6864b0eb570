"""A session of the workbench: documents, a history of steps, and the exact model of each.

Every change goes through `do`, which first writes it to the journal. The model of a step comes from stored sums
(`models`), so it is available at once; its held-out quality (`quality`) follows in the background, which reports
progress to listeners. All methods are thread-safe.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator

from ..system.parallel import one_thread_each, threads_for
from .background import Background, Event, Listeners
from .documents import DocumentTable
from .fit import DIRECT
from .history import EditHistory
from .holdout import Quality
from .journal import Journal, fingerprint
from .models import Models, Start
from .quality import KnownQuality, Report, best_alpha
from .state import ActionError, SessionLimits, Snapshot, State, Step, check_setting
from .sums import KEYS

SMALL = 2_000_000  # the session waits for the first curve if X has at most this many values
FEW = 5000  # and there are at most this many queries
CURRENT = 0  # the current model's number among the snapshots


class ReadOnlyError(PermissionError):
    """A change was requested in a read-only session."""


class Session:
    """Documents and a model that changes as the user works.

    Parameters
    ----------
    documents : Documents
    model : a fitted ranker or pipeline, default=None
        Its parameters are the first settings, and its scores are kept for comparison.
    journal : path, default=None
        Where actions are stored; actions already in it are replayed first. None: in memory only.
    read_only : bool, default=False
        Refuse every change.
    """

    def __init__(
        self,
        documents: DocumentTable,
        model: BaseEstimator | None = None,
        *,
        journal: Any = None,
        read_only: bool = False,
    ):
        self.documents, self.model, self.read_only = documents, model, read_only
        start = Start.of(documents, model)
        self.models = Models(documents, start)
        self.quality = KnownQuality(self.models)
        rows, features = documents.X.shape
        self.limits = SessionLimits(rows, features, len(documents.queries), documents.queries.codes)
        self.listeners, self.lock = Listeners(), threading.RLock()
        self.version, self.run = 0, secrets.token_hex(8)  # number of changes in this run, and an id of the run
        self.journal = Journal(journal, self._header(start.settings), read_only=read_only)
        self.history = EditHistory(self._first(self.journal.header["start"]), self.limits, self._restart)
        self._started = model is not None  # whether alpha has been chosen
        self._replay()
        if not self._started and not self.history.undoes and not self.history.redoes:
            self._choose_alpha()
        self.models.fit(self.state)
        self.background = Background(self._follow, self._problem)
        self.background.start()

    # ---------------------------------------------------------------- history

    @property
    def step(self) -> Step:
        """The current point of the history."""
        return self.history.step

    @property
    def state(self) -> State:
        """The state of the current model."""
        return self.step.state

    def snapshot(self, number: int) -> Snapshot:
        """A snapshot by id; 0 is the current model."""
        return Snapshot(CURRENT, "Now", self.state) if number == CURRENT else self.step.snapshot(number)

    def do(self, action: Mapping[str, Any]) -> int:
        """Carry out an action, which is on disk when this returns; returns the new version."""
        with self.lock:
            if self.read_only:
                raise ReadOnlyError("this workbench was opened with --read-only: nothing can be changed")
            self._go(self._resolved(dict(action)))
            self.version += 1
            version = self.version
        self.background.afterwards(lambda: self._changed(version))
        return version

    def _changed(self, version: int) -> None:
        try:
            self.journal.settle()
        finally:
            self.background.wake()
            self.listeners.tell({"type": "changed", "version": version})

    def _go(self, action: Mapping[str, Any]) -> None:
        """Take the step of an action, after writing it to the journal."""
        if self.history.beyond(action):
            self.history.recover(self._first(self.journal.header["start"]), self.journal.actions)
        following = self.history.following(action)
        self.journal.append(action)
        self.history.go(action, following)
        self._started |= action.get("do") == "start"

    def _replay(self) -> None:
        for number, action in enumerate(self.journal.actions, start=2):
            try:
                if self.history.beyond(action):
                    before = itertools.islice(self.journal.actions, number - 2)
                    self.history.recover(self._first(self.journal.header["start"]), before)
                self.history.go(action, self.history.following(action))
            except ActionError as error:
                raise ValueError(f"{self.journal.path}, line {number}: {error}") from None
            self._started |= action.get("do") == "start"

    def _restart(self, action: Mapping[str, Any]) -> Step:
        settings = self._first(self.journal.header["start"]).state.settings()
        return self._first({**settings, "alpha": check_setting("alpha", action.get("alpha"))})

    def _resolved(self, action: dict[str, Any]) -> dict[str, Any]:
        """The action, completed with what depends on the current model."""
        if action.get("do") == "prefer":
            above, below = action.get("above"), action.get("below")
            if not all(isinstance(row, int) and 0 <= row < self.limits.rows for row in (above, below)):
                return action
            margin = action.get("margin")
            enough = self.models.enough(self.state, int(above), int(below), margin)  # type: ignore[arg-type]
            if margin is None:
                action["margin"] = enough["margin"]
            if action.get("weight") in (None, "enough"):
                action["weight"] = enough["weight"]
        return action

    def _header(self, start: dict[str, Any]) -> dict[str, Any]:
        data, X = self.documents, self.documents.X
        return {"data": fingerprint(X, data.y, data.queries.codes), "name": data.name, "start": start}

    def _first(self, settings: Mapping[str, Any]) -> Step:
        state = State(**{name: check_setting(name, value) for name, value in settings.items()})
        snapshots = [Snapshot(1, "Start", state)]
        if self.models.given is not None:
            snapshots.append(Snapshot(2, "Model given", None))
        return Step(state, tuple(snapshots))

    def _choose_alpha(self) -> None:
        """Start at the best alpha of the held-out curve: at once for small data, later for large data."""
        columns = self.models.features.n_columns
        if self.models.X.size <= SMALL and columns <= DIRECT and self.limits.queries <= FEW:
            with threads_for(columns**3):
                self._set_best_alpha(self.quality.grid(self.state))

    def _set_best_alpha(self, grid: Quality) -> None:
        best = best_alpha(grid, self.state.metrics[0])
        if best is None:
            return
        action = {"do": "start", "alpha": best}
        with self.lock:
            if self.read_only:
                self.history.go(action, self.history.following(action))
            else:
                self._go(action)
                self.version += 1

    # ---------------------------------------------------------------- answers, and background work

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Within the block an answer is made: other work pauses, and BLAS uses as many threads as pay off."""
        with self.background.answering(), threads_for(self.models.features.n_columns**3):
            yield

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Subscribe a function to changes and progress; returns a function that unsubscribes it."""
        return self.listeners.add(listener)

    def close(self) -> None:
        """Stop background work and close the journal."""
        self.background.close()
        self.journal.close()

    def _problem(self, error: Exception) -> None:
        self.listeners.tell({"type": "problem", "text": f"{type(error).__name__}: {error}"})

    def _follow(self) -> None:
        """Compute the held-out quality of the current state and of those it is compared with, and report progress."""
        version, state = self.version, self.state
        current = lambda: self.version == version and not self.background.closed

        def report(kind: str) -> Report:
            def tell(found: Quality) -> bool:
                self.listeners.tell({"type": "progress", "of": kind, "done": round(found.done, 3), "version": version})
                self.background.give_way()
                return current()

            return tell

        if not self.models.prepared:
            for key in KEYS:
                if current() and not self.models.sums.known(key):
                    self.models.sums.loss(key, self.models.learned_labels(state))
        with one_thread_each:
            if current():
                self.quality.point(state, report("point"))
            if current():
                grid = self.quality.grid(state, report("curve"))
                if current() and self._is_fresh() and grid.done >= 1:
                    self._start_at(grid)
                    return
            for other in self._compared():
                if current():
                    self.quality.point(replace(other, metrics=state.metrics), report("snapshots"))
        self.listeners.tell({"type": "quality", "version": version})

    def _compared(self) -> list[State]:
        """The states with which the current one is compared: that before the last action, and the snapshots."""
        with self.lock:
            history, kept = self.history, self.step.snapshots
            last = [history.steps[history.position - 1].state] if history.position else []
        return last + [one.state for one in kept if one.state is not None]

    def _is_fresh(self) -> bool:
        return not self._started and self.history.undoes is None and self.history.redoes is None

    def _start_at(self, grid: Quality) -> None:
        self._started = True
        self._set_best_alpha(grid)
        self.listeners.tell({"type": "changed", "version": self.version})
        self.background.wake()
