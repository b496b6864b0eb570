"""The steps of a session. Only recent ones are in memory, but undo goes back as far as the journal.

A window of steps around the current one is in memory. If undo or redo leaves it, the journal is replayed, which is
cheap because no model is fitted on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .state import Action, ActionError, SessionLimits, Step, change, describe

MOST_STEPS = 300  # steps in memory before and after the current one


class EditHistory:
    """Steps that can be undone and redone."""

    def __init__(self, first: Step, limits: SessionLimits, start: Callable[[Action], Step]):
        self.limits, self._start, self.reach = limits, start, MOST_STEPS
        self.steps = [first]
        self.labels: list[str] = []  # labels[i] led from steps[i] to steps[i + 1]
        self.position, self.below, self.above = 0, 0, 0  # index in the window; steps before and after it

    @property
    def step(self) -> Step:
        """The current step."""
        return self.steps[self.position]

    @property
    def undoes(self) -> str | None:
        """The label of the action that undo would revert."""
        return self.labels[self.position - 1] if self.position else "an earlier action" if self.below else None

    @property
    def redoes(self) -> str | None:
        """The label of the action that redo would repeat."""
        if self.position < len(self.labels):
            return self.labels[self.position]
        return "a later action" if self.above else None

    def beyond(self, action: Action) -> bool:
        """True if an action leaves the window in memory and so needs `recover` first."""
        kind = action.get("do")
        at_end = self.position + 1 == len(self.steps)
        return (kind == "undo" and not self.position and self.below > 0) or (
            kind == "redo" and at_end and self.above > 0
        )

    def following(self, action: Action) -> Step:
        """The step after an action; nothing changes yet."""
        kind = action.get("do")
        if kind == "undo":
            if not self.position:
                raise ActionError("there is nothing to undo")
            return self.steps[self.position - 1]
        if kind == "redo":
            if self.position + 1 == len(self.steps):
                raise ActionError("there is nothing to redo")
            return self.steps[self.position + 1]
        if kind == "start":  # the action that sets the first alpha
            return self._start(action)
        return change(self.step, action, self.limits)

    def go(self, action: Action, following: Step) -> None:
        """Take the step."""
        self._take(action, following)
        self._trim(2 * self.reach)

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
        """Replay all steps from the first one and the journal; the window moves to the current step."""
        whole = EditHistory(first, self.limits, self._start)
        for action in actions:
            whole._take(action, whole.following(action))
        self.steps, self.labels, self.position = whole.steps, whole.labels, whole.position
        self.below = self.above = 0
        self._trim(self.reach)

    def _trim(self, slack: int) -> None:
        if self.position > slack:
            gone = self.position - self.reach
            del self.steps[:gone], self.labels[:gone]
            self.position, self.below = self.reach, self.below + gone
        if len(self.steps) - self.position > slack + 1:
            last = self.position + self.reach + 1
            self.above += len(self.steps) - last
            del self.steps[last:], self.labels[last - 1 :]
