"""How a model file remembers the way its data were read, so that later commands need not be told again."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from sklearn.base import BaseEstimator

from .data import kind

ROWS = ("label", "qid", "docid", "missing", "zero_based", "sparse", "feature_names")
LETOR = ("columns", "exclude")  # of tables, a model knows its columns
ENDS = ("source", "target")  # options given together or not at all
EDGES = (*ENDS, "y", "date", "home", "weight", "half_life", "values", "transpose", "normalise", "id")


def remember(model: BaseEstimator, args: Namespace) -> None:
    """Store the options for reading data in a model; its feature columns are `feature_names_in_`."""
    text = [kind(path, args.input_format) == "letor" for path in args.data]
    model.reading_ = {**_given(args, (*ROWS, *LETOR) if text and all(text) else ROWS), "scale": args.scale}


def remember_edges(model: BaseEstimator, args: Namespace) -> None:
    """The same for a model of a relation."""
    model.reading_ = _given(args, EDGES)


def _given(args: Namespace, fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(args, name) for name in fields if getattr(args, name) is not None}


def recalled(args: Namespace, model: BaseEstimator) -> Namespace:
    """The options, completed by those that a model remembers; `remembered` lists the latter."""
    kept = getattr(model, "reading_", None) or {}
    found = {name: kept[name] for name in (*ROWS, *LETOR, *EDGES) if name in kept and getattr(args, name, 0) is None}
    if any(getattr(args, name, None) is not None for name in ENDS):
        found = {name: value for name, value in found.items() if name not in ENDS}
    return Namespace(**{**vars(args), **found, "remembered": frozenset(found)})


def in_words(model: BaseEstimator) -> str:
    """How the data were read, in one line; empty if the model does not know."""
    kept = getattr(model, "reading_", None) or {}
    if "scale" not in kept:
        return ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in kept.items() if value is not True)
    words = {"label": "label", "qid": "query ids", "docid": "documents", "missing": "missing values become"}
    parts = [f"{text} {kept[name]}" for name, text in words.items() if name in kept]
    parts += [f"--{name} {','.join(kept[name])}" for name in LETOR if name in kept]
    parts += ["features numbered from 0"] if kept.get("zero_based") else []
    parts += ["sparse rows"] if kept.get("sparse") else []
    return ", ".join([*parts, f"scale {kept['scale']}"]) if kept else ""
