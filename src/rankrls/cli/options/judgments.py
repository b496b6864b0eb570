"""rankrls judgments FILE -o OUT"""

from __future__ import annotations

import argparse

from .parser import command
from .values import numbers


def declare(commands: argparse._SubParsersAction) -> None:
    text = "judgments from a click log, or from one of their formats to another"
    made = command(commands, "judgments", text, "rankrls judgments clicks.csv -o judged.csv")
    made.add_argument("data", metavar="FILE", help="a click log, TREC qrels, or CSV query,docid,rating")
    made.add_argument("-o", "--output", default="-", metavar="OUT", help="CSV if it ends in .csv, else qrels; - is CSV")
    made.add_argument(
        "--propensities",
        type=numbers,
        metavar="P,...",
        help="of a click log: the chance that each position is looked at (default: estimated)",
    )
