"""rankrls fuse RUN... --qrels FILE"""

from __future__ import annotations

import argparse

from .parser import command
from .values import words


def declare(commands: argparse._SubParsersAction) -> None:
    text = "learn weights for several retrievers from their TREC runs and judgments"
    made = command(commands, "fuse", text, "rankrls fuse bm25.run dense.run --qrels judged.txt -o fused.run")
    made.add_argument("runs", nargs="+", metavar="RUN", help="TREC run files, one per retriever")
    made.add_argument("--qrels", required=True, metavar="FILE", help="judgments: TREC qrels, or CSV query,docid,rating")
    made.add_argument(
        "--names", type=words, metavar="NAMES", help="names of the retrievers: a,b,c (default: the file names)"
    )
    made.add_argument("--normalise", choices=("minmax", "zscore"), default="minmax", help="scores within a query")
    made.add_argument("--scoring", default="ndcg@10", metavar="METRIC", help="metric that chooses alpha and is shown")
    made.add_argument(
        "--to",
        choices=("elasticsearch", "opensearch", "vespa", "solr"),
        help="print the weights for this engine (default: no engine)",
    )
    made.add_argument("-o", "--output", metavar="RUN", help="write the fused run (default: do not write it)")
    made.add_argument("--tag", default="rankrls", metavar="NAME", help="name of the fused run")
