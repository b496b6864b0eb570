"""rankrls export MODEL --to FORMAT"""

from __future__ import annotations

import sys
from argparse import Namespace

from sklearn.base import BaseEstimator

from .. import export
from . import learning
from .text import check_target, say, target

TO = {
    "opensearch": export.to_opensearch,
    "elasticsearch": export.to_opensearch,  # both plugins have the same origin and the same format
    "solr": export.to_solr,
    "vespa": export.to_vespa,
}


def run(args: Namespace) -> None:
    check_target(args.output)
    if args.dtype and args.to != "onnx":
        raise ValueError(f"--dtype needs --to onnx; {args.to} holds numbers as text")
    if args.to == "onnx" and args.output == "-" and sys.stdout.isatty():
        raise ValueError("an ONNX model is not text for a terminal: pass -o model.onnx")
    content = _content(learning.load(args.model), args)
    with target(args.output) as file:
        file.write(content)
    if args.output != "-":
        say(args, {"output": args.output, "format": args.to}, f"wrote {args.output} ({args.to})")


def _content(model: BaseEstimator, args: Namespace) -> bytes:
    """The bytes of the file."""
    if args.to == "onnx":
        dtype = args.dtype or "float64"
        return export.to_onnx(model, args.features, name=args.name, dtype=dtype).SerializeToString()
    if args.to == "svmrank":
        text = export.to_svmrank(model)
    elif args.to == "json":
        text = export.to_json(model, args.features)
    else:
        text = TO[args.to](model, args.features, name=args.name)
    return text.rstrip("\n").encode() + b"\n"
