"""rankrls train DATA -o MODEL"""

from __future__ import annotations

import argparse

from . import relations
from .feedback import feedback, judgments
from .learning import learning
from .parser import command
from .reading import reading

EXAMPLES = (
    "rankrls train train.csv -o model.rankrls --label grade --qid query_id --exclude url,title",
    "rankrls train rank.train --group rank.train.query -o model.rankrls --scoring ndcg@10",
    "rankrls train --edges results.csv --y 'home_score - away_score' --home 'not neutral' -o league.rankrls",
    "rankrls train --matrix affinity.txt --features drugs.txt --target-features targets.txt -o model.rankrls",
)


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(commands, "train", "learn a model from data", *EXAMPLES)
    made.add_argument(
        "data", nargs="*", metavar="DATA", help="files of one set, - is standard input; none with --edges or --matrix"
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
