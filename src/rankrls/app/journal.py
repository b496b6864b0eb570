"""The journal of a session: one JSON object a line, on disk before an action is answered.

The first line says which data the session is about; each further line is an action. A line that a crash cut short is
dropped when the journal is opened again: its action was never confirmed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..system.files import sync_folder

VERSION = 1


class JournalError(ValueError):
    """A journal that cannot be read, or that belongs to other data."""


def fingerprint(X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> str:
    """A hash of the labels, the queries and a sample of the features: enough to tell data sets apart."""
    digest = hashlib.sha256(repr(X.shape).encode())
    step = max(1, len(X) // 1000)
    for part in (y, codes, X[::step]):
        digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return digest.hexdigest()[:32]


class Journal:
    """A file of actions; `path` None keeps them in memory only."""

    def __init__(self, path: str | os.PathLike | None, header: Mapping[str, Any], *, read_only: bool = False):
        self.path = None if path is None else Path(path)
        self._lines: list[bytes] = []  # of actions that are on no disk
        self._count = 0
        self.header: dict[str, Any] = {"rankrls_workbench": VERSION, **header}
        self._file: Any = None
        self._lock = threading.Lock()
        if self.path is None:
            return
        if read_only:
            if self.path.exists():
                self._read(self.path)
            return
        self._file = open(self.path, "ab")  # noqa: SIM115
        try:
            _lock(self._file, self.path)
            whole = self._read(self.path)
            self._file.truncate(whole)
            if not whole:
                self._write(self.header)
                sync_folder(self.path.resolve().parent)
        except BaseException:
            self.close()
            raise

    def append(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Store an action; on disk when this returns."""
        stamped = {**action, "time": round(time.time(), 3)}
        with self._lock:
            if self._file is not None:
                self._write(stamped)
            elif self.path is None:
                self._lines.append(_line(stamped))
            self._count += 1
        return stamped

    def __len__(self) -> int:
        return self._count

    @property
    def actions(self) -> Iterator[dict[str, Any]]:
        """All actions, read from where they are stored."""
        if self._lines or self.path is None or not self.path.exists():
            yield from map(json.loads, list(self._lines))
            return
        with open(self.path, "rb") as file:
            next(file, None)
            yield from map(json.loads, itertools.islice(file, self._count))

    def close(self) -> None:
        """Close the file; actions can no longer be stored."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _write(self, record: Mapping[str, Any]) -> None:
        self._file.write(_line(record))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, path: Path) -> int:
        """Take over the actions of a file; returns the bytes of its whole lines."""
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if not lines:
            return 0
        try:
            records = [json.loads(line) for line in lines]
            if not all(isinstance(record, dict) for record in records):
                raise ValueError("no journal")
            known = records[0].get("rankrls_workbench") == VERSION
        except ValueError:
            raise JournalError(f"{path} is not a journal of the workbench: give another --journal") from None
        if not known:
            raise JournalError(f"{path} was written by another version of the workbench: give another --journal")
        if records[0].get("data") != self.header.get("data"):
            raise JournalError(
                f"{path} is the journal of other data (or the data have changed since): move it away, or give another "
                "--journal"
            )
        self.header, self._count = records[0], len(records) - 1
        return len(whole)


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _lock(file: BinaryIO, path: Path) -> None:
    """Two processes must not write one journal; the lock goes with the process."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise JournalError(
            f"{path} is open in another workbench: close that one, give another --journal, or look with --read-only"
        ) from None
