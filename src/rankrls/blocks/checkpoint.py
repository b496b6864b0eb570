"""A checkpoint file: what an interrupted fit has summed so far."""

from __future__ import annotations

import json
import time
import zipfile
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.statistics import Statistics
from ..system.files import replacing
from .block import Block
from .scoring import HeldOutScores
from .sums import PartialSums, PerFold
from .totals import Counts

SECONDS = 15.0  # between two checkpoints
PATIENCE = 10  # or so many times as long as the last one took


@dataclass
class Pass:
    """How far one pass has come."""

    label: str
    done: int = 0  # blocks
    finished: bool = False
    value: Any = None
    kept: Block | None = None


class Checkpoint:
    """A file with the sums of the passes that are done and of the one under way.

    It is replaced as a whole, belongs to one fit (data and parameters are named in it) and is removed when that ends.
    """

    def __init__(self, path: Any = None, belongs_to: str = ""):
        self.path = None if path is None else Path(path)
        self.belongs_to = belongs_to
        self.passes: list[Pass] = []
        self._number = -1  # of the pass under way
        self._last, self._pause = time.monotonic(), 0.0
        if self.path is not None and self.path.exists():
            self._read()

    def begin(self, label: str) -> Pass:
        """The next pass, from where it was interrupted."""
        self._number += 1
        if self._number >= len(self.passes):
            self.passes.append(Pass(label))
        state = self.passes[self._number]
        if state.label != label:
            raise ValueError(f"{self.path} was left by a fit that took other passes: remove it to start anew")
        return state

    def due(self) -> bool:
        return self.path is not None and time.monotonic() - self._last > max(SECONDS, self._pause)

    def save(self, **state: Any) -> None:
        """Write down how far the pass under way has come."""
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
        self._pause = PATIENCE * (self._last - start)

    def _read(self) -> None:
        assert self.path is not None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                arrays = dict(stored.items())
            head = json.loads(arrays["head"].tobytes())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.path} is no whole checkpoint: remove it to start anew ({error})") from None
        if head["belongs_to"] != self.belongs_to:
            raise ValueError(
                f"{self.path} belongs to another fit: it was left by\n  {head['belongs_to']}\nand this one is\n  "
                f"{self.belongs_to}\nRemove the file to start anew, or name another"
            )
        self.passes = list(_unpacked(head["passes"], "passes", arrays))

    def remove(self) -> None:
        """The fit is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


_RECORDS = {cls.__name__: cls for cls in (Pass, Block, Statistics, PartialSums, PerFold, HeldOutScores, Counts)}


def _packed(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """What a record is made of, as JSON; its arrays go by name into `arrays`."""
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
