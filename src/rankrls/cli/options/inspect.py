"""rankrls inspect MODEL|DATA"""

from __future__ import annotations

import argparse

from .parser import command
from .reading import reading


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(commands, "inspect", "what is in a model or data file", "rankrls inspect train.csv")
    made.add_argument("data", metavar="MODEL|DATA", help="- is data on standard input")
    made.add_argument("--top", type=int, default=10, metavar="N", help="weights to show")
    reading(made)
