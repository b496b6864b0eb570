"""rankrls train DATA -o MODEL"""

from __future__ import annotations

from argparse import Namespace

from . import learning
from .data import read
from .text import say


def run(args: Namespace) -> None:
    with learning.stopwatch() as reading:
        data = read(args.data, args)
    with learning.stopwatch() as fitting:
        model = learning.fit(learning.make(args, data), data)
    learning.save(model, args.output)
    ranker, curve = learning.ranker_of(model), learning.curve(model)
    scoring = ranker.scoring
    record = {
        "model": args.output,
        "class": type(ranker).__name__,
        "scale": args.scale,
        "rows": len(data),
        "queries": int(ranker.n_queries_),
        "features": int(data.X.shape[1]),
        "skipped": data.skipped,
        "chosen": learning.chosen(model),
        "scoring": scoring,
        "held_out": None if curve is None else curve.score,
        "seconds": {"reading": round(reading[0], 3), "fitting": round(fitting[0], 3)},
    }
    lines = [
        f"read     {learning.described(data)} in {reading[0]:.2f} s",
        f"fitted   {type(ranker).__name__} in {fitting[0]:.2f} s: {learning.settled(record['chosen'])}",
        f"held out {scoring} {curve.score:.4f}, best of {len(curve.values)} values of {curve.over}"
        if curve is not None
        else "held out nothing, since nothing was to be chosen"
        + ("; --alphas with one value tells how good it is" if hasattr(ranker, "alphas") else ""),
        f"wrote    {args.output}",
    ]
    say(args, record, "\n".join(lines), file=learning.out(args.output))
