"""The parser of the command line: one-line errors that guess what was meant."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NoReturn

GROUPS = {  # in the order of the help text; each command is a module here with a function `declare`
    "learn and score": ("train", "predict", "rank", "fuse"),
    "judge": ("evaluate", "cv", "report", "workbench", "judgments", "ask"),
    "files": ("inspect", "convert", "export"),
    "start": ("demo", "completion"),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
EXAMPLES = (
    "rankrls train train.csv -o model.rankrls --label grade --qid query_id",
    "rankrls evaluate test.csv model.rankrls",
    "rankrls train --edges results.csv --y 'home_score - away_score' -o league.rankrls",
    "rankrls rank league.rankrls --top 10",
)
REQUIRED = "the following arguments are required"


class Help(argparse.HelpFormatter):
    """Shows every option with its default."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], groups: Any, prefix: str | None = None
    ) -> None:
        """Show only required arguments in the usage line; options are listed below it."""
        needed = [action for action in actions if not action.option_strings or action.required]
        others = argparse.Action([], "options", metavar="[OPTIONS]")
        super().add_usage(usage, [*needed, others], groups, prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Keep the lines of examples."""
        return text if text.startswith("example") else super()._fill_text(text, width, indent)

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        if action.default in (None, False, argparse.SUPPRESS) or "(default" in text or not action.option_strings:
            return text
        return f"{text} (default {_shown(action.default)})"


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


class Parser(argparse.ArgumentParser):
    """Reports errors in one line."""

    given: tuple[str, ...] = ()  # the arguments being parsed
    _mixing = False

    def error(self, message: str) -> NoReturn:
        if message.startswith(REQUIRED) and (unknown := self._unknown()):
            message = f"unrecognized arguments: {unknown}"  # argparse would report an abbreviation instead
        self.exit(2, f"rankrls: error: {self._in_words(message)} (see {self.prog} --help)\n")

    def _in_words(self, message: str) -> str:
        """A message with the command, option or value that was probably meant."""
        if found := re.search(r"unrecognized arguments: (--[\w-]+)", message):
            known = [option for option in self._option_string_actions if option.startswith("--")]
            return message + did_you_mean(found[1], known)
        if found := re.search(r"argument ([^:]*): invalid choice: '([^']*)' \(choose from (.*)\)", message):
            meant = did_you_mean(found[2], re.findall(r"[\w@.-]+", found[3]))
            return f"{message.partition(' (choose')[0]}{meant}" if meant else message
        return message

    def _unknown(self) -> str | None:
        """The first given option that is unknown."""
        names = (word.partition("=")[0] for word in self.given if word.startswith("--") and word != "--")
        return next((name for name in names if name not in self._option_string_actions), None)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Accept files before, between and after a command's options; the command itself reports unknown options."""
        if self._mixing or not self._defaults.get("command_parser"):
            return super().parse_known_args(args, namespace)
        self.given, self._mixing = tuple(args or ()), True
        try:
            found, extra = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return found, extra


class Commands(Parser):
    """The parser of all commands, whose help lists them by purpose."""

    def format_help(self) -> str:
        commands = next(action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        made = self._get_formatter()
        made.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        made.add_text(self.description)
        for title, names in GROUPS.items():
            made.start_section(title)
            made.add_arguments([one for one in commands._choices_actions if one.dest in names])
            made.end_section()
        made.start_section("options")
        made.add_arguments([action for action in self._actions if action.option_strings])
        made.end_section()
        shown = "".join(f"\n  {line}" for line in EXAMPLES)
        return f"{made.format_help()}\nexamples:{shown}\n\n{self.epilog}\n"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean train?`, or nothing if no name is similar.

    Examples
    --------
    >>> did_you_mean("trian", ["predict", "train"])
    '; did you mean train?'
    """
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), names, n=1)
    return f"; did you mean {names[close[0]]}?" if close else ""


def parser(only: str | None = None) -> Parser:
    """The parser of the whole command line, or of one command only, which takes a tenth of the time."""
    from rankrls import __version__

    main = Commands(
        prog="rankrls",
        allow_abbrev=False,
        formatter_class=Help,
        description="Learning to rank in closed form: one pass over the data gives the model, its alpha and how well "
        "it ranks queries it has not seen.",
        epilog="rankrls COMMAND --help explains the options of a command.",
    )
    main.add_argument("--version", action="version", version=f"rankrls {__version__}")
    commands = main.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog="rankrls", parser_class=Parser
    )
    for name in (only,) if only in COMMANDS else COMMANDS:
        import_module(f".{name}", __package__).declare(commands)
    return main


def command(commands: argparse._SubParsersAction, name: str, text: str, *examples: str) -> Parser:
    """A command, with the options that all commands have."""
    made = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog="\n".join(["example:" if len(examples) == 1 else "examples:", *(f"  {line}" for line in examples)]),
        allow_abbrev=False,
        formatter_class=Help,
    )
    made.set_defaults(command_parser=True)
    made.add_argument("--json", action="store_true", help="print a JSON object instead of text")
    made.add_argument("--quiet", action="store_true", help="no progress, no remarks")
    made.add_argument("--debug", action="store_true", help="show where an error comes from")
    return made
