"""rankrls fuse RUN... --qrels FILE"""

from __future__ import annotations

import argparse

from .parser import command
from .values import words


def declare(commands: argparse._SubParsersAction) -> None:
    made = command(commands, "fuse", "weights of several retrievers, from their TREC runs and judgments")
    made.add_argument("runs", nargs="+", metavar="RUN", help="TREC run files, one of each retriever")
    made.add_argument("--qrels", required=True, metavar="FILE", help="judgments: TREC qrels, or CSV query,docid,rating")
    made.add_argument("--names", type=words, metavar="NAMES", help="of the retrievers: a,b,c (default: of the files)")
    made.add_argument("--normalise", choices=("minmax", "zscore"), default="minmax", help="scores within a query")
    made.add_argument("--scoring", default="ndcg@10", metavar="METRIC", help="to choose alpha by and to show")
    made.add_argument(
        "--to",
        choices=("elasticsearch", "opensearch", "vespa", "solr"),
        help="print the weights for this engine (default: for none)",
    )
    made.add_argument("-o", "--output", metavar="RUN", help="write the fused run (default: write none)")
    made.add_argument("--tag", default="rankrls", metavar="NAME", help="name of the fused run")
