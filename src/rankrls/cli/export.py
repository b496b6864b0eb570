"""rankrls export MODEL --to FORMAT"""

from __future__ import annotations

from argparse import Namespace

from .. import export
from . import learning
from .text import say, target

TO = {
    "opensearch": export.to_opensearch,
    "elasticsearch": export.to_opensearch,  # both plugins have the same origin and the same format
    "solr": export.to_solr,
    "vespa": export.to_vespa,
}


def run(args: Namespace) -> None:
    model = learning.load(args.model)
    if args.to == "svmrank":
        text = export.to_svmrank(model)
    elif args.to == "json":
        text = export.to_json(model, args.features)
    else:
        text = TO[args.to](model, args.features, name=args.name)
    with target(args.output) as file:
        file.write(text.rstrip("\n").encode() + b"\n")
    if args.output != "-":
        say(args, {"output": args.output, "format": args.to}, f"wrote {args.output} ({args.to})")
