"""rankrls export MODEL --to FORMAT"""

from __future__ import annotations

import argparse

from .parser import command
from .targets import TARGETS
from .values import words


def declare(commands: argparse._SubParsersAction) -> None:
    text = "export a model to another program: weights for a search engine, or ONNX"
    made = command(commands, "export", text, "rankrls export model.rankrls --to opensearch -o weights.json")
    made.add_argument("model", metavar="MODEL", help="a file written by train or rankrls.save")
    made.add_argument("--to", choices=TARGETS, required=True, help="the format")
    made.add_argument("-o", "--output", default="-", metavar="FILE", help="where to write, - is standard output")
    made.add_argument("--name", default="rankrls", metavar="NAME", help="name of the model in the search engine")
    made.add_argument(
        "--features",
        type=words,
        metavar="NAMES",
        help="feature names to write: a,b,c, or @FILE with one per line (default: those of the model)",
    )
    made.add_argument("--dtype", choices=("float64", "float32"), help="number type of an ONNX model (default float64)")
