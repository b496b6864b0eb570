"""The entries of a report: models or score files, evaluated on the rows with a label."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..checks import check_queries
from ..core.queries import Queries
from ..datasets import RankingData
from ..estimators.pipelines import ranker_of, scaled
from . import learning, predict
from .data import labels, last_column, read, warn_about_width
from .memory import recalled
from .scores import labelled, read_scores


@dataclass
class Entry:
    """A model file, or a file of scores."""

    path: str
    name: str
    model: Any  # None for scores
    data: RankingData  # with the columns of the model
    scores: np.ndarray  # (m,) of the judged rows
    values: dict[str, np.ndarray] = field(default_factory=dict)  # (q,) of each metric


@dataclass(frozen=True)
class JudgedEntry:
    """The rows with a label, and what is known about them."""

    rows: np.ndarray
    y: np.ndarray
    queries: Queries


def entries_of(args: Namespace, paths: list[str], *, features: bool = True) -> tuple[list[Entry], JudgedEntry]:
    """Models and score files on the rows with a label; the data are read once for all models with the same columns.

    Labels and query ids are read as the first model remembers. Score files need no features.
    """
    _check(args, paths)
    models = {path: predict.load(path) if learning.is_model(path) else None for path in paths}
    args = recalled(args, next((model for model in models.values() if model is not None), None))
    kinds = {path: predict.features(model) for path, model in models.items() if model is not None}
    held = {path: predict.kinds_of(model) for path, model in models.items() if model is not None}
    known: dict[Any, RankingData] = {}

    def data_for(path: str | None) -> RankingData:
        names, n = kinds.get(path, (None, None)) if path else (None, None)
        key = (None if names is None else tuple(names), n, str(held.get(path) if path else None))
        if key not in known:
            if args.data == "-" and known:
                raise ValueError("the models take different columns: data on standard input can be read only once")
            known[key] = (
                read([args.data], args, names=names, n_features=n, kinds=held.get(path) if path else None)
                if kinds or features
                else labels(args.data, args)
            )
        return known[key]

    first = data_for(next(iter(kinds), None))
    rows = labelled(first, args)
    judged = JudgedEntry(
        rows, first.y[rows], check_queries(None if first.qid is None else first.qid[rows], int(rows.sum()))
    )
    entries = []
    for title, path in zip(_names(paths), paths, strict=True):
        model = models[path]
        data = first if model is None else data_for(path)
        scores = read_scores(path, data, args) if model is None else _predicted(path, model, data, args)
        entries.append(Entry(path, title, *_after_encoding(model, data), scores[rows]))
    return entries, judged


def _after_encoding(model: BaseEstimator, data: RankingData) -> tuple[Any, RankingData]:
    """The model after a table encoder, and the encoded data it sees."""
    if model is None or predict.kinds_of(model) is None:
        return model, data
    names = model[0].get_feature_names_out().tolist()
    return ranker_of(model), replace(data, X=scaled(model, data.X, data.qid), feature_names=names)


def _check(args: Namespace, paths: list[str]) -> None:
    if [args.data, *paths].count("-") > 1:
        raise ValueError("standard input (-) can be read only once")
    if args.data != "-" and learning.is_model(args.data):
        raise ValueError(f"{args.data} is a model, but the data come first: rankrls {args.command} DATA MODEL...")


def _predicted(path: str, model: BaseEstimator, data: RankingData, args: Namespace) -> np.ndarray:
    try:
        warn_about_width(args.data, args, last_column(data.X), predict.features(model)[1])
        return predict.scores_of(model, data, args.data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _names(paths: list[str]) -> list[str]:
    """The name of each file, with its folder only if names clash."""
    short = [PurePath(path).name.removesuffix(".rankrls") or path for path in paths]
    return [path if short.count(brief) > 1 else brief for path, brief in zip(paths, short, strict=True)]
