"""rankrls cv DATA"""

from __future__ import annotations

import argparse

from .feedback import judgments
from .learning import learning
from .parser import command
from .reading import reading


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(
        commands, "cv", "the held-out score along the path of alpha", "rankrls cv train.csv --scoring ndcg@10"
    )
    made.add_argument("data", nargs="+", metavar="DATA", help="files of one set, - is standard input")
    made.add_argument("--plot", metavar="FILE", help="draw the curve: .png, .svg or .pdf (needs matplotlib)")
    learning(made)
    judgments(made)
    reading(made)
