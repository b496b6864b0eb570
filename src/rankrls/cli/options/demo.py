"""rankrls demo"""

from __future__ import annotations

import argparse

from .parser import command


def declare(commands: argparse._SubParsersAction) -> None:
    command(commands, "demo", "the library's main job on embedded data; writes demo-digits.png here")
