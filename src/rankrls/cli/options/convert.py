"""rankrls convert IN OUT"""

from __future__ import annotations

import argparse

from .feedback import judgments
from .parser import command
from .reading import FORMATS, reading


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(
        commands,
        "convert",
        "between LETOR text, CSV and Parquet, by the names of the files",
        "rankrls convert train.txt train.parquet",
    )
    made.add_argument("data", metavar="IN", help="- is standard input")
    made.add_argument("output", metavar="OUT", help="- is standard output; .gz, .bz2, .xz and .zst compress")
    made.add_argument("--output-format", choices=FORMATS, help="format of OUT (default: by its name)")
    judgments(made)
    reading(made)
