"""rankrls workbench DATA [MODEL]"""

from __future__ import annotations

import argparse

from .parser import command
from .reading import reading


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(commands, "workbench", "judge, drag and refit rankings on a local page", "rankrls workbench --demo")
    made.add_argument("data", nargs="?", metavar="DATA", help="LETOR, CSV, Parquet or a TREC run, - is standard input")
    made.add_argument("model", nargs="?", metavar="MODEL", help="a model to start from and to compare with")
    made.add_argument("--demo", action="store_true", help="built-in example data")
    made.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (default: any free port)")
    made.add_argument("--no-browser", action="store_true", help="print the address, do not open a browser")
    made.add_argument("--read-only", action="store_true", help="look, but change nothing")
    made.add_argument("--journal", metavar="FILE", help="file that records all changes (default DATA.workbench.jsonl)")
    made.add_argument("--qrels", metavar="FILE", help="labels from a TREC qrels file")
    made.add_argument("--runs", nargs="+", metavar="RUN", help="more TREC runs of the same queries")
    reading(made)
