"""rankrls rank MODEL [ID...]"""

from __future__ import annotations

import argparse

from . import relations
from .parser import command
from .reading import reading


def declare(commands: argparse._SubParsersAction) -> None:
    text = "show the best matches for an object by a model of relations; without an object, the best overall"
    made = command(commands, "rank", text, "rankrls rank league.rankrls", "rankrls rank drugs.rankrls D00094 --top 5")
    made.add_argument("model", metavar="MODEL", help="a model of relations, from train --edges or --matrix")
    made.add_argument("ids", nargs="*", metavar="ID", help="objects to rank others for")
    made.add_argument("--top", type=int, default=10, metavar="N", help="places to show")
    made.add_argument("-o", "--output", default="-", metavar="FILE", help="where to write, - is standard output")
    made.add_argument("--format", choices=("csv", "parquet"), help="format of FILE (default csv)")
    relations.data(made)
    reading(made)
