"""The decisions of a session, and how each action changes them.

A `Step` is immutable: settings, judgments, preferences, queries left out, and snapshots. `change(step, action)` returns
the next one. So undo steps back in a list, a snapshot is a state with a name, and a loop replays a journal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..core.weighting import WEIGHTINGS
from ..metrics import get_metric
from .grades import Grades

GAINS = ("linear", "exp2")
SCALES = ("auto", "none")
MOST_METRICS = 8


class ActionError(ValueError):
    """An action that cannot be performed; nothing has changed."""


@dataclass(frozen=True, slots=True)
class Preference:
    """Document `above` should score `margin` more than document `below` (row numbers), with a weight in the loss."""

    id: int
    above: int
    below: int
    weight: float
    margin: float


@dataclass(frozen=True, slots=True)
class State:
    """Everything that determines the model, and the metrics to show (the first one is used for the curve)."""

    alpha: float = 1.0
    tied_pairs: bool = False
    weighting: str = "items"
    regression: float = 0.0
    gain: str = "linear"
    scale: str = "auto"
    off: frozenset[int] = frozenset()  # features left out
    signs: Mapping[int, int] = field(default_factory=dict)  # feature -> +1 or -1
    grades: Grades = field(default_factory=Grades)  # row -> judgment made in the session; None removes it
    preferences: tuple[Preference, ...] = ()
    forgotten: frozenset[int] = frozenset()  # queries left out of training
    metrics: tuple[str, ...] = ("ndcg@10", "pairwise_accuracy", "average_precision")

    def settings(self) -> dict[str, Any]:
        """The settings a page shows, as plain values."""
        names = ("alpha", "tied_pairs", "weighting", "regression", "gain", "scale")
        return {name: getattr(self, name) for name in names} | {"metrics": list(self.metrics)}

    def structure(self) -> tuple[Any, ...]:
        """A key that states share if their models differ only in alpha."""
        switches = (self.tied_pairs, self.weighting, self.regression, self.gain, self.scale)
        return (*switches, self.off, tuple(sorted(self.signs.items())), *self.evidence())

    def evidence(self) -> tuple[Any, ...]:
        """A key of the training data: judgments, preferences, queries left out."""
        return self.grades, self.preferences, self.forgotten


@dataclass(frozen=True)
class Snapshot:
    """A state with a name; `state` is None for an external model."""

    id: int
    name: str
    state: State | None


@dataclass(frozen=True, slots=True)
class Step:
    """A point in the history of a session."""

    state: State
    snapshots: tuple[Snapshot, ...] = ()

    def snapshot(self, number: object) -> Snapshot:
        """The snapshot with an id."""
        found = [kept for kept in self.snapshots if kept.id == number]
        if not found:
            raise ActionError(f"there is no snapshot {number!r}")
        return found[0]


@dataclass(frozen=True)
class SessionLimits:
    """How many rows, features and queries there are, and the query of each row."""

    rows: int
    features: int
    queries: int
    codes: Any  # (rows,)


Action = Mapping[str, Any]


def change(step: Step, action: Action, limits: SessionLimits) -> Step:
    """The step after an action.

    Examples
    --------
    >>> limits = SessionLimits(rows=3, features=2, queries=1, codes=[0, 0, 0])
    >>> step = change(Step(State()), {"do": "set", "name": "alpha", "value": 0.5}, limits)
    >>> change(step, {"do": "grade", "row": 2, "grade": 3}, limits).state.grades
    Grades({2: 3.0})
    """
    kind = action.get("do")
    if kind not in _CHANGES:
        raise ActionError(f"unknown action {kind!r}; known: {', '.join(_CHANGES)}")
    return _CHANGES[kind](step, action, limits)


_SAID = {  # words for some settings
    ("tied_pairs", "True"): "ties kept together",
    ("tied_pairs", "False"): "ties ignored",
    ("weighting", "items"): "weighting by documents",
    ("weighting", "queries"): "weighting by queries",
    ("weighting", "pairs"): "weighting by pairs",
    ("gain", "linear"): "gain is the grade",
    ("gain", "exp2"): "gain is 2^grade - 1",
    ("scale", "auto"): "features scaled by spread",
    ("scale", "none"): "features as given",
}


def describe(action: Action) -> str:
    """An action in a few words, for the history."""
    kind = action.get("do", "")
    if kind == "set":
        name, value = str(action.get("name")), action.get("value")
        if name == "metrics":
            return "metrics chosen"
        return _SAID.get((name, str(value))) or f"{name.replace('_', ' ')} {_short(value)}"
    words = {
        "grade": lambda a: "judgment removed" if a.get("grade") is None else f"graded {_short(a['grade'])}",
        "judgments": lambda a: f"{len(a.get('rows', ()))} judgments imported",
        "prefer": lambda a: "preference added",
        "weigh": lambda a: "preference changed",
        "drop": lambda a: "preference removed",
        "features": lambda a: ", ".join(
            f"{_count(a[side], 'feature')} {side}" for side in ("off", "on") if a.get(side)
        ),
        "sign": lambda a: "sign constraint",
        "forget": lambda a: f"{_count(a.get('queries', ()), 'query')} un-learned",
        "recall": lambda a: f"{_count(a.get('queries', ()), 'query')} learned again",
        "snapshot": lambda a: f"snapshot “{_short(a.get('name', ''))}” taken",
        "rename": lambda a: "snapshot renamed",
        "discard": lambda a: "snapshot deleted",
        "restore": lambda a: "snapshot restored",
    }
    return words[kind](action) if kind in words else str(kind)


def _count(values: np.ndarray, noun: str) -> str:
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{len(values):,} {noun if len(values) == 1 else many}"


def _short(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


# ---------------------------------------------------------------- values


def _whole(action: Action, name: str, below: int) -> int:
    value = action.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below:
        raise ActionError(f"{name} must be a whole number from 0 to {below - 1}, got {value!r}")
    return value


def _wholes(action: Action, name: str, below: int) -> frozenset[int]:
    values = action.get(name, [])
    if not isinstance(values, list):
        raise ActionError(f"{name} must be a list, got {values!r}")
    return frozenset(_whole({name: value}, name, below) for value in values)


def _number(value: Any, name: str, low: float = -math.inf, *, strict: bool = False) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not plain or value < low or (strict and value == low):
        bound = "" if low == -math.inf else f" {'above' if strict else 'of at least'} {low:g}"
        raise ActionError(f"{name} must be a number{bound}, got {value!r}")
    return float(value)


def _choice(name: str, choices: tuple[Any, ...]) -> Callable[[Any], Any]:
    def check(value: object) -> Any:
        if value not in choices or isinstance(value, bool) != isinstance(choices[0], bool):
            raise ActionError(f"{name} must be one of {', '.join(map(str, choices))}; got {value!r}")
        return value

    return check


def _share(value: object) -> float:
    number = _number(value, "regression", 0.0)
    if number > 1:
        raise ActionError(f"regression must be between 0 and 1, got {value!r}")
    return number


def _metrics(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_METRICS:
        raise ActionError(f"metrics must be a list of 1 to {MOST_METRICS} names, got {value!r}")
    try:
        return tuple(dict.fromkeys(get_metric(str(name)).name for name in value))
    except ValueError as error:
        raise ActionError(str(error)) from None


_SETTINGS: dict[str, Callable[[Any], Any]] = {
    "alpha": lambda value: _number(value, "alpha", 0.0, strict=True),
    "tied_pairs": _choice("tied_pairs", (True, False)),
    "weighting": _choice("weighting", WEIGHTINGS),
    "regression": _share,
    "gain": _choice("gain", GAINS),
    "scale": _choice("scale", SCALES),
    "metrics": _metrics,
}


def check_setting(name: object, value: object) -> Any:
    """The value of a setting, checked."""
    if name not in _SETTINGS:
        raise ActionError(f"there is no setting {name!r}; settings: {', '.join(_SETTINGS)}")
    return _SETTINGS[name](value)


# ---------------------------------------------------------------- changes


def _set(step: Step, action: Action, limits: SessionLimits) -> Step:
    name = action.get("name")
    value = check_setting(name, action.get("value"))
    return replace(step, state=replace(step.state, **{str(name): value}))


def _graded(step: Step, pairs: list[tuple[int, float | None]]) -> Step:
    return replace(step, state=replace(step.state, grades=step.state.grades.changed(pairs)))


def _grade_of(value: object) -> float | None:
    return None if value is None else _number(value, "grade")


def _grade(step: Step, action: Action, limits: SessionLimits) -> Step:
    return _graded(step, [(_whole(action, "row", limits.rows), _grade_of(action.get("grade")))])


def _judgments(step: Step, action: Action, limits: SessionLimits) -> Step:
    rows = action.get("rows")
    if not isinstance(rows, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in rows):
        raise ActionError("rows must be a list of [row, grade]")
    return _graded(step, [(_whole({"row": r}, "row", limits.rows), _grade_of(g)) for r, g in rows])


def _prefer(step: Step, action: Action, limits: SessionLimits) -> Step:
    above, below = (_whole(action, name, limits.rows) for name in ("above", "below"))
    if above == below:
        raise ActionError("a document cannot be preferred to itself")
    if limits.codes[above] != limits.codes[below]:
        raise ActionError("both documents of a preference must belong to the same query")
    weight, margin = _number(action.get("weight"), "weight", 0.0, strict=True), _number(action.get("margin"), "margin")
    state = step.state
    number = 1 + max((kept.id for kept in state.preferences), default=0)
    kept = tuple(p for p in state.preferences if {p.above, p.below} != {above, below})  # the latest preference counts
    made = Preference(number, above, below, weight, margin)
    return replace(step, state=replace(state, preferences=(*kept, made)))


def _weigh(step: Step, action: Action, limits: SessionLimits) -> Step:
    found = _preference(step, action.get("id"))
    weight = _number(action.get("weight", found.weight), "weight", 0.0, strict=True)
    margin = _number(action.get("margin", found.margin), "margin")
    changed = replace(found, weight=weight, margin=margin)
    preferences = tuple(changed if p is found else p for p in step.state.preferences)
    return replace(step, state=replace(step.state, preferences=preferences))


def _drop(step: Step, action: Action, limits: SessionLimits) -> Step:
    found = _preference(step, action.get("id"))
    kept = tuple(p for p in step.state.preferences if p is not found)
    return replace(step, state=replace(step.state, preferences=kept))


def _preference(step: Step, number: object) -> Preference:
    found = [kept for kept in step.state.preferences if kept.id == number]
    if not found:
        raise ActionError(f"there is no preference {number!r}")
    return found[0]


def _features(step: Step, action: Action, limits: SessionLimits) -> Step:
    off, on = (_wholes(action, name, limits.features) for name in ("off", "on"))
    left = (step.state.off | off) - on
    if len(left) == limits.features:
        raise ActionError("at least one feature must stay on")
    return replace(step, state=replace(step.state, off=left))


def _sign(step: Step, action: Action, limits: SessionLimits) -> Step:
    feature, sign = _whole(action, "feature", limits.features), action.get("sign")
    if sign not in (-1, 0, 1) or isinstance(sign, bool):
        raise ActionError(f"sign must be 1 (not negative), -1 (not positive) or 0 (free), got {sign!r}")
    signs = {j: s for j, s in {**step.state.signs, feature: sign}.items() if s}
    return replace(step, state=replace(step.state, signs=signs))


def _forget(step: Step, action: Action, limits: SessionLimits) -> Step:
    forgotten = step.state.forgotten | _wholes(action, "queries", limits.queries)
    return replace(step, state=replace(step.state, forgotten=forgotten))


def _recall(step: Step, action: Action, limits: SessionLimits) -> Step:
    forgotten = step.state.forgotten - _wholes(action, "queries", limits.queries)
    return replace(step, state=replace(step.state, forgotten=forgotten))


def _name(action: Action) -> str:
    name = str(action.get("name", "")).strip()
    if not 1 <= len(name) <= 200:
        raise ActionError("a snapshot needs a name of 1 to 200 characters")
    return name


def _snapshot(step: Step, action: Action, limits: SessionLimits) -> Step:
    number = 1 + max((kept.id for kept in step.snapshots), default=0)
    return replace(step, snapshots=(*step.snapshots, Snapshot(number, _name(action), step.state)))


def _rename(step: Step, action: Action, limits: SessionLimits) -> Step:
    found, name = step.snapshot(action.get("snapshot")), _name(action)
    return replace(step, snapshots=tuple(replace(s, name=name) if s is found else s for s in step.snapshots))


def _discard(step: Step, action: Action, limits: SessionLimits) -> Step:
    found = step.snapshot(action.get("snapshot"))
    return replace(step, snapshots=tuple(s for s in step.snapshots if s is not found))


def _restore(step: Step, action: Action, limits: SessionLimits) -> Step:
    found = step.snapshot(action.get("snapshot"))
    if found.state is None:
        raise ActionError(f"{found.name!r} is an external model: it can be compared with, but not edited")
    return replace(step, state=found.state)


_CHANGES: dict[str, Callable[[Step, Action, SessionLimits], Step]] = {
    "set": _set,
    "grade": _grade,
    "judgments": _judgments,
    "prefer": _prefer,
    "weigh": _weigh,
    "drop": _drop,
    "features": _features,
    "sign": _sign,
    "forget": _forget,
    "recall": _recall,
    "snapshot": _snapshot,
    "rename": _rename,
    "discard": _discard,
    "restore": _restore,
}
