"""A checkpoint file: the sums of a fit that was interrupted."""

from __future__ import annotations

import json
import os
import time
import zipfile
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.statistics import Statistics
from ..system.files import replacing
from ..system.limits import limits
from .block import Block
from .fragments import PartialSums
from .scoring import HeldOutNoise, HeldOutScores
from .sums import PerFold
from .totals import Counts


@dataclass
class Pass:
    """The state of one pass over the rows."""

    label: str
    done: int = 0  # number of blocks
    finished: bool = False
    value: Any = None
    waiting: Block | None = None


class Checkpoint:
    """A file with the sums of the finished passes and of the current one.

    It is always replaced as a whole. It names the data and parameters of its fit, and is removed when the fit ends.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, belongs_to: str = ""):
        self.path = None if path is None else Path(path)
        self.belongs_to = belongs_to
        self.passes: list[Pass] = []
        self._number = -1  # of the current pass
        self._last, self._pause = time.monotonic(), 0.0
        if self.path is not None and self.path.exists():
            self._read()

    def begin(self, label: str) -> Pass:
        """Start the next pass, in the state in which it was interrupted if it was."""
        self._number += 1
        if self._number >= len(self.passes):
            self.passes.append(Pass(label))
        state = self.passes[self._number]
        if state.label != label:
            raise ValueError(f"{self.path} was left by a fit with different passes: remove it to start again")
        return state

    def due(self) -> bool:
        return self.path is not None and time.monotonic() - self._last > max(limits.checkpoint_seconds, self._pause)

    def save(self, **state: Any) -> None:
        """Save the state of the current pass."""
        self.passes[self._number] = replace(self.passes[self._number], **state)
        if self.path is None:
            return
        start = time.monotonic()
        arrays: dict[str, np.ndarray] = {}
        head = {"belongs_to": self.belongs_to, "passes": _packed(tuple(self.passes), "passes", arrays)}
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        with replacing(self.path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        self._last = time.monotonic()
        self._pause = limits.checkpoint_pause * (self._last - start)

    def _read(self) -> None:
        assert self.path is not None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                arrays = dict(stored.items())
            head = json.loads(arrays["head"].tobytes())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.path} is not a complete checkpoint: remove it to start again ({error})") from None
        if head["belongs_to"] != self.belongs_to:
            raise ValueError(
                f"{self.path} belongs to another fit: it was left by\n  {head['belongs_to']}\nand this one is\n  "
                f"{self.belongs_to}\nRemove the file to start again, or name another one"
            )
        self.passes = list(_unpacked(head["passes"], "passes", arrays))

    def remove(self) -> None:
        """Delete the file once the fit has ended."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


_RECORDS = {
    cls.__name__: cls for cls in (Pass, Block, Statistics, PartialSums, PerFold, HeldOutScores, HeldOutNoise, Counts)
}


def _packed(value: object, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A record as JSON data; its arrays are put into `arrays` by name."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return "array"
    if isinstance(value, tuple):
        return [_packed(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]
    if is_dataclass(value):
        parts = {f.name: _packed(getattr(value, f.name), f"{name}.{f.name}", arrays) for f in fields(value)}
        return {"record": type(value).__name__, **parts}
    return {"value": value}


def _unpacked(form: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    if form == "array":
        return arrays[name]
    if isinstance(form, list):
        return tuple(_unpacked(item, f"{name}.{i}", arrays) for i, item in enumerate(form))
    if "record" not in form:
        return form["value"]
    parts = {key: _unpacked(item, f"{name}.{key}", arrays) for key, item in form.items() if key != "record"}
    return _RECORDS[form["record"]](**parts)
