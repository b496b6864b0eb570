"""The command line `rankrls`: every command is a module here with a function `run(args)`."""

from __future__ import annotations

import contextlib
import difflib
import errno
import gc
import os
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TextIO

from .options import parser

INTERRUPTED, BROKEN_PIPE, ERROR = 130, 141, 2  # the exit codes that shells use
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors that mean there is no space left

OPTIONS = {  # messages of the library, rewritten in terms of command line options
    r'errors="skip"': "--skip-bad-lines",
    r"zero_based=True": "--zero-based",
    r": is this a table\?": "; pass --input-format csv or tsv for a table, or --matrix FILE if its first row is names",
    r'missing="minimum" and absent= need sparse=False': "--missing minimum cannot be combined with --sparse",
    r"pass sparse=True, or read it with iter_letor": "pass --sparse",
    r"sort the file by query, or use load_letor": "sort the file by query, or pass --rows 0",
    r"use load_letor": "pass --rows 0",
    r"but features were given as at most (\d+): pass a larger n_features than \d+": r"but the model was trained on \1",
    r"use a sparse one, e\.g\. RankRLS\(kernel=\.\.\., basis=1000\), or fewer rows": "pass --basis 1000, or fewer rows",
    r"pass qid \(rankrls\.qid_from_group makes it from sizes\); pass a constant qid if one is meant": (
        "--qid names the column of their ids, --group a file of their sizes"
    ),
    r"put a scaler before it, make_pipeline\(.*\)": "pass --scale standard",
    r"pass a wider one as alphas=, or leave alphas out.*": "pass a wider one, or leave --alphas out",
    r"pass alphas=": "pass --alphas",
    r"; or pass an object of rankrls\.kernels or a function k\(X, Z\)": "",
    r'set indefinite="clip" to drop its negative part, "shift" to add (\S+) to its diagonal, or pass a valid kernel': (
        r"--indefinite clip drops its negative part, --indefinite shift adds \1 to its diagonal"
    ),
    r"the kernel matrix of X\b": "the table of similarities --features",
    r"the kernel matrix of Z\b": "the table of similarities --target-features",
    r"no qid was given": "the data have no query ids",
}

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code.

    Examples
    --------
    >>> main(["train", "nowhere.txt", "-o", "model.rankrls"])
    2
    """
    alone = argv is None
    argv = sys.argv[1:] if argv is None else argv
    if not argv:
        parser().print_help()
        return 0
    try:
        args = parser(argv[0]).parse_args(argv)
    except SystemExit as exit:
        return int(exit.code or 0)
    try:
        return _run(args, alone)
    except KeyboardInterrupt:
        print(f"\nrankrls: interrupted{_unwritten(args)}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed the pipe
        with contextlib.suppress(OSError, ValueError):  # discard what would be flushed at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        if args.debug:
            raise
        kept = _unwritten(args, error.filename) if isinstance(error, OSError) and error.errno in FULL else ""
        print(f"rankrls: error: {_one_line(error)}{kept}", file=sys.stderr)
        return ERROR


def _run(args: Namespace, alone: bool) -> int:
    """Run a command, perhaps as all that this process does."""
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        if not args.debug:
            warnings.filterwarnings("always", category=UserWarning)
            # pyparsing's deprecations are UserWarnings too, and are about matplotlib's code
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="matplotlib|pyparsing")
        with _imports_stay() if alone else contextlib.nullcontext():
            command = import_module(f".{args.command}", __name__)
        code = command.run(args)
        sys.stdout.flush()
        return int(code or 0)


@contextlib.contextmanager
def _imports_stay() -> Iterator[None]:
    """Do not look for unused objects among those that imports make, then or later: that takes a third of their time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _one_line(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}{_suggestion(error)}"
    text = " ".join(str(error).split()) or type(error).__name__
    text = _in_options(text)
    if isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
        return text
    return f"{type(error).__name__}: {text}; this should not happen, --debug shows where it did"


def _suggestion(error: OSError) -> str:
    """A suggestion: the name of a file that resembles one that does not exist."""
    path = Path(os.fsdecode(error.filename)) if isinstance(error, FileNotFoundError) else Path()
    if not path.name or not path.parent.is_dir():
        return ""
    close = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1, cutoff=0.8)
    return f"; did you mean {path.parent / close[0]}?" if close else ""


def _in_options(text: str) -> str:
    """A message of the library in terms of command line options."""
    for python, option in OPTIONS.items():
        text = re.sub(python, option, text)
    return text


def _unwritten(args: Namespace, named: str | None = None) -> str:
    """What happened to the file that the command was about to write; `named` is the file named just before."""
    path = getattr(args, "output", None)
    if path in (None, "-") or (os.path.exists(path) and not os.path.isfile(path)):
        return ""
    kept = f"; {'it' if path == named else path} {'is unchanged' if os.path.exists(path) else 'was not written'}"
    if getattr(args, "checkpoint", None) and os.path.exists(args.checkpoint):
        kept += f"; {args.checkpoint} has what was done so far, and the same command resumes from it"
    return kept


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"rankrls: warning: {_in_options(' '.join(str(message).split()))}", file=sys.stderr)
