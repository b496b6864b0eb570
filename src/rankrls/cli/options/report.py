"""rankrls report DATA MODEL... -o report.html"""

from __future__ import annotations

import argparse

from . import relations
from .feedback import judgments
from .judging import judging
from .parser import command
from .reading import reading


def declare(commands: argparse._SubParsersAction) -> None:
    text = "one HTML page that compares models on data: metrics, plots, the worst queries and why"
    made = command(commands, "report", text, "rankrls report test.csv old.rankrls new.rankrls -o report.html")
    made.add_argument("data", nargs="?", metavar="DATA", help="rows with labels, - is standard input; or edges")
    made.add_argument("models", nargs="+", metavar="MODEL", help="model files, or score files as evaluate takes them")
    made.add_argument("-o", "--output", required=True, metavar="FILE", help="the page, - is standard output")
    made.add_argument("--title", metavar="TEXT", help="title of the page (default: the name of DATA)")
    made.add_argument("--by", default="ndcg@10", metavar="METRIC", help="metric that decides which queries are worst")
    made.add_argument("--worst", type=int, default=5, metavar="N", help="worst queries to show per model")
    made.add_argument("--top", type=int, default=10, metavar="N", help="ranks to show per query")
    judging(made)
    relations.judging(made)
    relations.data(made)
    judgments(made)
    reading(made)
