"""rankrls predict MODEL DATA -o SCORES"""

from __future__ import annotations

import argparse

from . import relations
from .parser import command
from .reading import reading


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(
        commands, "predict", "score rows with a model", "rankrls predict model.rankrls new.csv -o scores.csv"
    )
    made.add_argument("model", metavar="MODEL", help="a file written by train or rankrls.save")
    made.add_argument(
        "data", nargs="?", metavar="DATA", help="rows with or without labels, - is standard input; for relations, edges"
    )
    made.add_argument("-o", "--output", default="-", metavar="SCORES", help="where to write, - is standard output")
    made.add_argument(
        "--format",
        choices=("scores", "trec", "csv", "tsv", "parquet"),
        help="a number per line, a TREC run, or a table of qid, docid and score (default: by the name of SCORES)",
    )
    made.add_argument("--std", action="store_true", help="add the standard deviation of each score, in a table")
    made.add_argument(
        "--interval",
        type=float,
        metavar="LEVEL",
        help="add an interval of ranks with this probability, such as 0.9, in a table (default: none)",
    )
    made.add_argument("--tag", default="rankrls", metavar="NAME", help="name of the run in a TREC file")
    made.add_argument("--rows", type=int, default=50_000, metavar="N", help="rows in memory at a time; 0: all")
    relations.data(made)
    reading(made)
