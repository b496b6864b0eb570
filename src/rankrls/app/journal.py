"""The journal of a session: one JSON object per line, on disk before an action is answered.

The first line identifies the data; each further line is an action. A line cut short by a crash is dropped when the
journal is opened again, as its action was never confirmed. Disks take time to confirm that they have stored a line, so
a thread asks them while the answer is made, and `settle` waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
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
    """A file of actions; without a `path` they are in memory only."""

    def __init__(self, path: str | os.PathLike | None, header: Mapping[str, Any], *, read_only: bool = False):
        self.path = None if path is None else Path(path)
        self._lines: list[bytes] = []  # actions, if there is no file
        self._count = 0
        self.header: dict[str, Any] = {"rankrls_workbench": VERSION, **header}
        self._file: BinaryIO | None = None
        self._size = 0  # bytes of whole lines in the file
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="workbench journal")
        self._stored: Future[None] | None = None  # what was written last
        self._lock = threading.Lock()
        if self.path is None:
            return
        if read_only:
            if self.path.exists():
                self._read(self.path)
            return
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115
        try:
            _lock(self._file, self.path)
            self._size = self._read(self.path)
            self._file.truncate(self._size)
            if not self._size:
                self._write(_line(self.header))
                self.settle()
                sync_folder(self.path.resolve().parent)
        except BaseException:
            self.close()
            raise

    def append(self, action: Mapping[str, Any]) -> None:
        """Write an action. It then survives the end of the process and, after `settle`, a loss of power."""
        line = _line({**action, "time": round(time.time(), 3)})
        with self._lock:
            if self._file is not None:
                self._write(line)
            elif self.path is None:
                self._lines.append(line)
            self._count += 1

    def settle(self) -> None:
        """Wait until everything written is on disk."""
        try:
            if self._stored is not None:
                self._stored.result()
        except OSError as error:
            raise JournalError(
                f"the journal {self.path} was written but is not safely on disk: {error.strerror}"
            ) from error

    def __len__(self) -> int:
        return self._count

    @property
    def actions(self) -> Iterator[dict[str, Any]]:
        """Yield all actions, read from where they are stored."""
        if self._lines or self.path is None or not self.path.exists():
            yield from map(json.loads, list(self._lines))
            return
        with open(self.path, "rb") as file:
            next(file, None)
            yield from map(json.loads, itertools.islice(file, self._count))

    def close(self) -> None:
        """Close the file; actions can no longer be stored."""
        with self._lock:
            self._disk.shutdown()
            if self._file is not None:
                self._file.close()
                self._file = None

    def _write(self, line: bytes) -> None:
        assert self._file is not None
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)  # half a line would spoil the next one
            raise JournalError(f"nothing was changed: {self.path} cannot be written, {error.strerror}") from error
        self._size += len(line)
        self._stored = self._disk.submit(os.fsync, self._file.fileno())

    def _read(self, path: Path) -> int:
        """Count the actions of a file; returns the number of bytes in complete lines."""
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
            raise JournalError(f"{path} is not a journal of the workbench: choose another --journal") from None
        if not known:
            raise JournalError(f"{path} was written by another version of the workbench: choose another --journal")
        if records[0].get("data") != self.header.get("data"):
            raise JournalError(
                f"{path} is the journal of other data (or the data have changed): move it away, or choose another "
                "--journal"
            )
        self.header, self._count = records[0], len(records) - 1
        return len(whole)


def state_folder() -> Path:
    """The folder for what does not belong beside the data."""
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(root) / "rankrls" / "workbench"


def own(path: Path, data: str) -> Path:
    """The first of NAME.workbench.jsonl, NAME.workbench-2.jsonl, ... that is free or is the journal of this data."""
    for number in itertools.count(2):
        if not path.exists() or _about(path) in (None, data):
            return path
        path = path.with_name(f"{path.name.rpartition('.workbench')[0]}.workbench-{number}.jsonl")
    raise AssertionError


def _about(path: Path) -> object:
    """The data that a journal is about; None if it is empty."""
    try:
        with open(path, "rb") as file:
            line = file.readline()
        return json.loads(line).get("data", "") if line else None
    except (OSError, ValueError, AttributeError):
        return ""


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _lock(file: BinaryIO, path: Path) -> None:
    """Lock the journal, so that two processes cannot write it; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # this system has no such locks
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise JournalError(
            f"{path} is open in another workbench: close that one, choose another --journal, or pass --read-only"
        ) from None
