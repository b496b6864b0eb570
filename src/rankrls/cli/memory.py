"""What a model file remembers of how its data were read, so that no later command has to be told again."""

from __future__ import annotations

from argparse import Namespace

from sklearn.base import BaseEstimator

FIELDS = ("label", "qid", "docid", "missing", "zero_based", "sparse", "feature_names")


def remember(model: BaseEstimator, args: Namespace) -> None:
    """Keep in a model what was said about its data; columns of features are its `feature_names_in_`."""
    given = {name: getattr(args, name) for name in FIELDS if getattr(args, name) is not None}
    model.reading_ = {**given, "scale": args.scale}


def recalled(args: Namespace, model: BaseEstimator) -> Namespace:
    """The options, with what a model remembers where nothing is given; `remembered` names what comes from it."""
    kept = getattr(model, "reading_", None) or {}
    found = {name: kept[name] for name in FIELDS if name in kept and getattr(args, name) is None}
    return Namespace(**{**vars(args), **found, "remembered": frozenset(found)})


def in_words(model: BaseEstimator) -> str:
    """How the data were read, in a line; empty where the model does not know."""
    kept = getattr(model, "reading_", None) or {}
    words = {"label": "label", "qid": "query ids", "docid": "documents", "missing": "missing values become"}
    parts = [f"{text} {kept[name]}" for name, text in words.items() if name in kept]
    parts += ["features numbered from 0"] if kept.get("zero_based") else []
    parts += ["sparse rows"] if kept.get("sparse") else []
    return ", ".join([*parts, f"scale {kept['scale']}"]) if kept else ""
