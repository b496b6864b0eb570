"""rankrls evaluate DATA SCORES..."""

from __future__ import annotations

import argparse

from . import relations
from .feedback import judgments
from .judging import judging
from .learning import learning
from .parser import command
from .reading import reading


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(
        commands,
        "evaluate",
        "judge scores or models against the labels in the data, and compare several with the first",
        "rankrls evaluate test.csv model.rankrls",
        "rankrls evaluate test.csv bm25.scores model.rankrls --metrics ndcg@10,map",
        "rankrls evaluate league.rankrls --edges results.csv --settings 1,time",
    )
    made.add_argument(
        "data", nargs="?", metavar="DATA", help="rows with labels, - is standard input; or a relation's model"
    )
    made.add_argument(
        "scores",
        nargs="*",
        metavar="SCORES",
        help="what predict writes: a number per line, a TREC run, CSV or Parquet; or a model file",
    )
    judging(made)
    made.add_argument("--per-query", metavar="FILE", help="write the values of each query as CSV")
    relations.judging(made)
    learning(made)
    relations.learning(made)
    relations.data(made)
    judgments(made)
    reading(made)
