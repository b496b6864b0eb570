"""rankrls ask MODEL DATA"""

from __future__ import annotations

import sys
from argparse import Namespace

import numpy as np

from ..estimators.pipelines import quietly, ranker_of, scaled
from . import predict
from .data import doc_ids, read
from .memory import recalled
from .tables import write_csv
from .text import check_target, plural, say, target


def run(args: Namespace) -> None:
    check_target(args.output)
    model = predict.load(args.model)
    args = recalled(args, model)
    ranker = ranker_of(model)
    if not hasattr(ranker, "next_pairs"):
        raise ValueError(f"a {type(ranker).__name__} has no uncertainty estimates: rankrls ask needs a RankRLS")
    names, n = predict.features(model)
    data = read([args.data], args, names=names, n_features=n, label=False, kinds=predict.kinds_of(model))
    X = scaled(model, data.X, data.qid)
    with quietly(model):
        a, b = ranker.next_pairs(X, data.qid, n=args.n).T
        probability = ranker.probability_above(X[a], X[b])
    qid = np.full(len(data), "1", dtype=object) if data.qid is None else data.qid
    documents = doc_ids(data)
    columns = {"query": qid[a], "better": documents[a], "worse": documents[b], "probability": probability.round(4)}
    with target(args.output) as file:
        write_csv([columns], file)
    text = f"wrote {plural(len(a), 'pair')} to {args.output}: swap better and worse where they are wrong, delete pairs"
    text += " that nobody can judge, and pass the rest to train --pairs"
    say(args, {"output": args.output, "pairs": len(a)}, text, file=sys.stderr if args.output == "-" else sys.stdout)
