"""What commands print: tables, bars, JSON, and the progress of reading."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, BinaryIO, TextIO

import numpy as np

from ..system.files import written
from ..system.progress import Progress

SPARKS = "▁▂▃▄▅▆▇█"


def say(args: Namespace, record: dict[str, Any], text: str, *, file: TextIO | None = None) -> None:
    """Print a result: the record as JSON if that was asked for, else the text."""
    print(as_json(record) if args.json else text, file=file or sys.stdout)


def remark(args: Namespace, text: str) -> None:
    """Print a note that is not part of the result."""
    if not args.quiet:
        print(f"rankrls: {text}", file=sys.stderr)


def as_json(value: object) -> str:
    """JSON, with null for numbers that are not finite.

    Examples
    --------
    >>> print(as_json({"score": np.float64("nan"), "sizes": np.arange(3)}))
    {
      "score": null,
      "sizes": [0, 1, 2]
    }
    """
    plain = _plain(value)
    if not isinstance(plain, dict):
        return json.dumps(plain, ensure_ascii=False)
    lines = [f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in plain.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _plain(value: object) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, int | str) else str(value)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns, the first left-aligned and the others right-aligned.

    Examples
    --------
    >>> print(table(["metric", "mean"], [["map", "0.5"], ["ndcg@10", "0.75"]]))
    metric   mean
    map       0.5
    ndcg@10  0.75
    """
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    first, rest = widths[0], widths[1:]
    lines = (
        "  ".join([row[0].ljust(first), *(c.rjust(w) for c, w in zip(row[1:], rest, strict=True))]) for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def number(value: float | None, digits: int = 4) -> str:
    """A number for a table; a dash for None."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def plural(n: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> plural(1, "line"), plural(1200, "row"), plural(2, "query")
    ('1 line', '1,200 rows', '2 queries')
    """
    if n == 1:
        return f"1 {noun}"
    return f"{n:,} {noun[:-1]}ies" if noun.endswith("y") else f"{n:,} {noun}s"


def sparkline(values: Sequence[float]) -> str:
    """Values as a line of small bars.

    Examples
    --------
    >>> sparkline([1, 2, 3, 2])
    '▁▅█▅'
    """
    shares = _shares(values)
    marks = SPARKS if _writes(SPARKS) else "_.-=+*#@"
    return "".join(" " if share is None else marks[round(share * (len(marks) - 1))] for share in shares)


def bars(values: Sequence[float], width: int = 24) -> list[str]:
    """Values as bars, the smallest one short."""
    mark = "█" if _writes("█") else "#"
    return ["" if share is None else mark * (1 + round(share * (width - 1))) for share in _shares(values)]


def _shares(values: Sequence[float]) -> list[float | None]:
    finite = [v for v in values if math.isfinite(v)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    deviation = high - low if high > low else 1.0
    return [(v - low) / deviation if math.isfinite(v) else None for v in values]


def _writes(text: str) -> bool:
    """True if standard output can show the characters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


# ---------------------------------------------------------------- progress


class _Counted(io.RawIOBase):
    """Bytes of a file, counted as they are read."""

    def __init__(self, raw: Any, name: str, progress: Progress):
        self.raw, self.name, self.progress = raw, name, progress

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self.raw.fileno())

    def readinto(self, buffer: Any) -> int:
        read = getattr(self.raw, "readinto1", self.raw.readinto)
        count = read(buffer)
        if not self.progress.done:  # a pipe may take long to deliver its first bytes
            self.progress.restart()
        self.progress.add(count or 0)
        return count


@contextmanager
def source(path: str, quiet: bool = False) -> Iterator[BinaryIO]:
    """A file to read with progress; - is standard input."""
    name = "standard input" if path == "-" else path
    with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb", buffering=0) as raw:
        size = None if path == "-" else os.fstat(raw.fileno()).st_size or None
        progress = Progress(f"reading {name}", size, "bytes", quiet=quiet)
        yield io.BufferedReader(_Counted(raw, name, progress), 1 << 20)
        progress.close()


def is_stream(path: str) -> bool:
    """True if a path, such as a pipe or device, is written to directly instead of being replaced."""
    return path == "-" or (os.path.exists(path) and not os.path.isfile(path))


def check_target(path: str | None) -> None:
    """Raise an error for a path that cannot be written, before any work is done for it."""
    if path is None or (is_stream(path) and not os.path.isdir(path)):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{path}: No such file or directory, there is no folder {os.path.dirname(path)}")
    if not os.access(folder, os.W_OK) or (os.path.exists(path) and not os.access(path, os.W_OK)):
        raise PermissionError(f"{path} cannot be written: no permission")


@contextmanager
def target(path: str) -> Iterator[BinaryIO]:
    """A file to write; - is standard output. A regular file appears only when it is complete."""
    if path == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with open(path, "wb") if is_stream(path) else written(path) as file:
        yield file
