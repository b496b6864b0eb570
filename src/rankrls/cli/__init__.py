"""The command line `rankrls`: every command is a module here with a function `run(args)`."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from .options import parser

INTERRUPTED, BROKEN_PIPE, ERROR = 130, 141, 2  # as shells have it

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code.

    Examples
    --------
    >>> main(["train", "nowhere.txt", "-o", "model.rankrls"])
    2
    """
    try:
        args = parser().parse_args(argv)
    except SystemExit as exit:
        return int(exit.code or 0)
    try:
        return _run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has enough of it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (the interpreter flushes it at exit)
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
    if isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
        return text
    return f"{type(error).__name__}: {text}; this should not happen, --debug shows where"


def _warn(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    print(f"rankrls: warning: {' '.join(str(message).split())}", file=sys.stderr)
