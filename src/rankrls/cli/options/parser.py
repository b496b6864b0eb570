"""The parser of the whole command line: errors in one line, with a guess at what was meant."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NoReturn

COMMANDS = (  # in the order of the help; each is a module here, with a function `declare`
    "train",
    "predict",
    "rank",
    "evaluate",
    "cv",
    "report",
    "convert",
    "export",
    "fuse",
    "judgments",
    "ask",
    "inspect",
    "workbench",
    "completion",
    "demo",
)


class Help(argparse.HelpFormatter):
    """Every option with its default."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], groups: Any, prefix: str | None = None
    ) -> None:
        """What must be given; options are listed below."""
        needed = [action for action in actions if not action.option_strings or action.required]
        others = argparse.Action([], "options", metavar="[OPTIONS]")
        super().add_usage(usage, [*needed, others], groups, prefix)

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        if action.default in (None, False, argparse.SUPPRESS) or "(default" in text or not action.option_strings:
            return text
        return f"{text} (default {_shown(action.default)})"


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


class Parser(argparse.ArgumentParser):
    """Errors on one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"rankrls: error: {message}{self._hint(message)} (see {self.prog} --help)\n")

    def _hint(self, message: str) -> str:
        """The command, option or value that was probably meant."""
        if found := re.search(r"unrecognized arguments: (--[\w-]+)", message):
            known = [option for option in self._option_string_actions if option.startswith("--")]
        elif found := re.search(r"argument [^:]*: invalid choice: '([^']*)' \(choose from (.*)\)", message):
            known = re.findall(r"[\w@.-]+", found[2])
        else:
            return ""
        return did_you_mean(found[1], known)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Options that a command does not know are its own error, so that it can say which it has."""
        found, extra = super().parse_known_args(args, namespace)
        if extra and self._defaults.get("command_parser"):
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return found, extra


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean train?`, or nothing where no name is close.

    Examples
    --------
    >>> did_you_mean("trian", ["predict", "train"])
    '; did you mean train?'
    """
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), names, n=1)
    return f"; did you mean {names[close[0]]}?" if close else ""


def parser() -> Parser:
    """The whole command line."""
    from rankrls import __version__

    main = Parser(
        prog="rankrls",
        allow_abbrev=False,
        formatter_class=Help,
        description="Learning to rank in closed form.",
        epilog="rankrls COMMAND --help explains the options of a command.",
    )
    main.add_argument("--version", action="version", version=f"rankrls {__version__}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="rankrls")
    for name in COMMANDS:
        import_module(f".{name}", __package__).declare(commands)
    return main


def command(commands: argparse._SubParsersAction, name: str, text: str, epilog: str | None = None) -> Parser:
    """A command with the options that all have."""
    made = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=Help,
    )
    made.set_defaults(command_parser=True)
    made.add_argument("--json", action="store_true", help="print a JSON object instead of text")
    made.add_argument("--quiet", action="store_true", help="no progress, no remarks")
    made.add_argument("--debug", action="store_true", help="show where an error comes from")
    return made
