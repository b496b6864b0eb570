"""rankrls judgments FILE -o OUT"""

from __future__ import annotations

import argparse

from .parser import command
from .values import numbers


def declare(commands: argparse._SubParsersAction) -> None:
    text = "make judgments from a click log, or convert them between formats"
    made = command(commands, "judgments", text, "rankrls judgments clicks.csv -o judged.csv")
    made.add_argument("data", metavar="FILE", help="a click log, TREC qrels, or CSV query,docid,rating")
    made.add_argument("-o", "--output", default="-", metavar="OUT", help="CSV if it ends in .csv, else qrels; - is CSV")
    made.add_argument(
        "--click-method",
        choices=("expected", "propensities", "naive"),
        default="expected",
        help="of a click log: clicks over expected clicks, clicks weighted inversely, or the rate of clicks",
    )
    made.add_argument(
        "--propensities",
        type=numbers,
        metavar="P,...",
        help="for a click log: the chance that each position is looked at (default: estimated)",
    )
    made.add_argument(
        "--grades",
        type=int,
        metavar="N",
        help="turn ratings into grades 0 to N - 1 of about equal frequency, as qrels need (default: keep ratings)",
    )
