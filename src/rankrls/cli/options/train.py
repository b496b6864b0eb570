"""rankrls train DATA -o MODEL"""

from __future__ import annotations

import argparse

from . import relations
from .feedback import feedback, judgments
from .learning import learning
from .parser import command
from .reading import reading

EXAMPLE = "rankrls train train.csv -o model.rankrls --label grade --qid query_id --exclude url,title"


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(commands, "train", "learn a model from data", EXAMPLE)
    made.add_argument(
        "data", nargs="*", metavar="DATA", help="files of one set, - is standard input; none for --method conditional"
    )
    made.add_argument("-o", "--output", required=True, metavar="MODEL", help="the model file, usually *.rankrls")
    made.add_argument("--stream", action="store_true", help="read DATA, a file or a Parquet folder, in blocks")
    made.add_argument("--checkpoint", metavar="FILE", help="with --stream: lets an interrupted run resume")
    judgments(made)
    learning(made)
    feedback(made)
    relations.learning(made)
    relations.data(made)
    reading(made)
