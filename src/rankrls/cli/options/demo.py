"""rankrls demo"""

from __future__ import annotations

import argparse

from .parser import command


def declare(commands: argparse._SubParsersAction) -> None:
    command(commands, "demo", "show the library at work on built-in data; writes demo-digits.png here", "rankrls demo")
