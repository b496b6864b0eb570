"""The command line `rankrls`: every command is a module here with a function `run(args)`."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import TextIO

from .options import parser

INTERRUPTED, BROKEN_PIPE, ERROR = 130, 141, 2  # as shells have it

OPTIONS = {  # how messages of the library name what is an option here
    'errors="skip"': "--skip-bad-lines",
    "zero_based=True": "--zero-based",
    'missing="minimum" and absent= need sparse=False': "--missing minimum does not go with --sparse",
    "pass sparse=True, or read it by iter_letor": "pass --sparse",
    "sort the file by query, or use load_letor": "sort the file by query, or pass --rows 0",
    "use load_letor": "pass --rows 0",
}

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code.

    Examples
    --------
    >>> main(["train", "nowhere.txt", "-o", "model.rankrls"])
    2
    """
    known = parser()
    if not (sys.argv[1:] if argv is None else argv):
        known.print_help()
        return 0
    try:
        args = known.parse_args(argv)
    except SystemExit as exit:
        return int(exit.code or 0)
    try:
        return _run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has enough of it
        with contextlib.suppress(OSError, ValueError):  # what is left to be flushed at exit goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        if args.debug:
            raise
        print(f"rankrls: error: {_line(error)}", file=sys.stderr)
        return ERROR


def _run(args: Namespace) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        if not args.debug:
            warnings.filterwarnings("always", category=UserWarning)
        code = import_module(f".{args.command}", __name__).run(args)
        sys.stdout.flush()
        return int(code or 0)


def _line(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = " ".join(str(error).split()) or type(error).__name__
    for python, option in OPTIONS.items():
        text = text.replace(python, option)
    if isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
        return text
    return f"{type(error).__name__}: {text}; this should not happen, --debug shows where"


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"rankrls: warning: {' '.join(str(message).split())}", file=sys.stderr)
