"""rankrls ask MODEL DATA"""

from __future__ import annotations

import argparse

from .parser import command
from .reading import reading


def declare(commands: argparse._SubParsersAction) -> None:
    text = "which pairs of documents to judge next, for train --pairs"
    made = command(commands, "ask", text, "rankrls ask model.rankrls rows.csv -n 20 -o pairs.csv")
    made.add_argument("model", metavar="MODEL", help="a file written by train or rankrls.save")
    made.add_argument("data", metavar="DATA", help="rows with or without labels, - is standard input")
    made.add_argument("-n", type=int, default=10, metavar="N", help="how many pairs")
    made.add_argument("-o", "--output", default="-", metavar="PAIRS", help="a CSV file, - is standard output")
    reading(made)
