"""The steps of a session, of which the nearest are kept: undo goes back as far as the journal does.

A window of steps around the present is in memory. Where undo or redo leaves it, the journal is replayed, which takes no
more than changing states again: no model is fitted on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .state import Action, ActionError, SessionLimits, Step, change, describe

KEPT = 300  # steps before and after the present that are in memory


class EditHistory:
    """Steps that can be undone and done again."""

    def __init__(self, first: Step, limits: SessionLimits, start: Callable[[Action], Step]):
        self.limits, self._start, self.kept = limits, start, KEPT
        self.steps = [first]
        self.labels: list[str] = []  # labels[i] led from steps[i] to steps[i + 1]
        self.position, self.below, self.above = 0, 0, 0  # in the window; steps that are not in memory

    @property
    def step(self) -> Step:
        """The present."""
        return self.steps[self.position]

    @property
    def undoes(self) -> str | None:
        """What undo would take back."""
        return self.labels[self.position - 1] if self.position else "an earlier action" if self.below else None

    @property
    def redoes(self) -> str | None:
        """What redo would do again."""
        if self.position < len(self.labels):
            return self.labels[self.position]
        return "a later action" if self.above else None

    def beyond(self, action: Action) -> bool:
        """Whether an action leaves what is in memory: `recover` first."""
        kind = action.get("do")
        at_end = self.position + 1 == len(self.steps)
        return (kind == "undo" and not self.position and self.below > 0) or (
            kind == "redo" and at_end and self.above > 0
        )

    def following(self, action: Action) -> Step:
        """The step an action leads to; nothing changes yet."""
        kind = action.get("do")
        if kind == "undo":
            if not self.position:
                raise ActionError("there is nothing to undo")
            return self.steps[self.position - 1]
        if kind == "redo":
            if self.position + 1 == len(self.steps):
                raise ActionError("there is nothing to redo")
            return self.steps[self.position + 1]
        if kind == "start":  # the first alpha, once it has been chosen
            return self._start(action)
        return change(self.step, action, self.limits)

    def go(self, action: Action, following: Step) -> None:
        """Take the step."""
        self._take(action, following)
        self._trim(2 * self.kept)

    def _take(self, action: Action, following: Step) -> None:
        kind = action.get("do")
        if kind == "undo":
            self.position -= 1
        elif kind == "redo":
            self.position += 1
        elif kind == "start":
            self.steps[0] = following
        else:
            del self.steps[self.position + 1 :], self.labels[self.position :]
            self.steps.append(following)
            self.labels.append(describe(action))
            self.position, self.above = self.position + 1, 0

    def recover(self, first: Step, actions: Iterable[Action]) -> None:
        """All steps again, from the first one and the journal; the window moves to the present."""
        whole = EditHistory(first, self.limits, self._start)
        for action in actions:
            whole._take(action, whole.following(action))
        self.steps, self.labels, self.position = whole.steps, whole.labels, whole.position
        self.below = self.above = 0
        self._trim(self.kept)

    def _trim(self, slack: int) -> None:
        if self.position > slack:
            gone = self.position - self.kept
            del self.steps[:gone], self.labels[:gone]
            self.position, self.below = self.kept, self.below + gone
        if len(self.steps) - self.position > slack + 1:
            last = self.position + self.kept + 1
            self.above += len(self.steps) - last
            del self.steps[last:], self.labels[last - 1 :]
