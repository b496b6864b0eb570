"""rankrls rank MODEL [ID...]"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from . import relation_data, relations
from .text import remark, say, table


def run(args: Namespace) -> None:
    model = relations.load(args.model)
    if not args.ids and args.features is None:
        head, rows = relations.lists(model, args.top)
        found = model.rating()
        record = {"rating": {str(k): float(v) for k, v in found.items()}}
        say(args, record, table(["rank", *head], [[str(i + 1), *row] for i, row in enumerate(rows)]))
        relations.remark_unsure(model, args.top, args)
        return
    frame = _ranking(model, args)
    if args.output != "-":
        relations.write(frame, args)
        return
    columns = [name for name in frame.columns if not (name == "truth" and frame[name].isna().all())]
    rows = [[_shown(row[name]) for name in columns] for _, row in frame.iterrows()]
    say(args, {"ranking": frame.astype(object).to_dict("records")}, table(columns, rows))
    if model.relation_ == "reciprocal":
        whose = args.ids[0] if len(args.ids) == 1 else "the object"
        remark(args, f"the score is what {whose} leads by, so whom it beats most easily comes first")


def _ranking(model: BaseEstimator, args: Namespace) -> Any:
    """A frame with the best matches for each requested object."""
    candidates = relation_data.objects(args.target_features, args)
    if args.features is None:
        known = model.source_ids_ if model.condition == "source" else model.target_ids_
        ids = [of_its_kind(label, known) for label in args.ids]
        frame = model.rank(ids, candidates, top=args.top)
        return frame.drop(columns="condition") if len(ids) == 1 else frame
    new = relation_data.objects(args.features, args)
    if args.ids:
        new = new.loc[[of_its_kind(label, np.asarray(new.index)) for label in args.ids]]
    found = model.rank(new, candidates, top=args.top)
    k = found.ids.shape[1]
    return relation_data.pandas().DataFrame(
        {
            "condition": np.repeat(np.asarray(new.index), k),
            "id": found.ids.ravel(),
            "score": found.scores.ravel(),
            "rank": np.tile(np.arange(1, k + 1), len(new)),
        }
    )


def of_its_kind(label: str, known: np.ndarray) -> Any:
    """An id from the command line with the type it has in the model: a number if ids are numbers."""
    for item in known.tolist():
        if str(item) == label:
            return item
    import difflib

    close = difflib.get_close_matches(label, [str(item) for item in known[:100_000].tolist()], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; ids look like {', '.join(map(str, known[:3].tolist()))}"
    raise ValueError(f"there is no object {label!r} among {len(known):,}{hint}")


def _shown(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)
