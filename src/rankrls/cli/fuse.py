"""rankrls fuse RUN... --qrels FILE"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from ..datasets import to_trec_run
from ..fusion import Fusion, Runs, export
from .text import check_target, number, say, table, target


def run(args: Namespace) -> None:
    check_target(args.output)
    names = args.names or [Path(path).name.split(".")[0] for path in args.runs]
    if len(set(names)) < len(names) or len(names) != len(args.runs):
        raise ValueError(f"every run needs its own name, got {', '.join(names)}: pass --names a,b,c")
    runs = Runs.of(dict(zip(names, args.runs, strict=True)))
    model = Fusion(normalise=args.normalise, scoring=args.scoring).fit(runs, Path(args.qrels))
    if args.output is not None:
        text = to_trec_run(model.predict(runs), runs.query, runs.document, tag=args.tag)
        with target(args.output) as file:
            file.write(text.encode())
    engine = export(model, args.to) if args.to else None
    record = {
        "weights": dict(zip(model.names_, model.weights_.tolist(), strict=True)),
        "errors": dict(zip(model.names_, model.weight_errors_.tolist(), strict=True)),
        "scoring": args.scoring,
        "table": [{"name": row.name, "score": row.score, "error": row.error} for row in model.table_],
        "judged": model.n_judged_,
        "unjudged": model.n_unjudged_,
        "export": engine,
    }
    parts = zip(model.names_, model.weights_, model.weight_errors_, strict=True)
    weights = table(["retriever", "weight", "±"], [[n, number(w, 3), number(e, 3)] for n, w, e in parts])
    ways = table(["ranking", args.scoring, "±"], [[r.name, number(r.score), number(r.error)] for r in model.table_])
    counts = f"{model.n_judged_:,} documents judged, {model.n_unjudged_:,} not (counted as irrelevant)"
    lines = [weights, ways, counts, *([engine] if engine else [])]
    say(args, record, "\n\n".join(lines), file=sys.stderr if args.output == "-" else sys.stdout)
