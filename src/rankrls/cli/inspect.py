"""rankrls inspect MODEL|DATA"""

from __future__ import annotations

from argparse import Namespace
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .. import export
from ..checks import check_queries
from ..datasets import RankingData
from ..estimators.curve import curve_of
from ..estimators.pipelines import ranker_of, scalers_of
from ..tables import TableEncoder
from . import cv, learning, memory, relations
from .data import read
from .text import say, table

FEW = 20  # up to this many different labels are listed with their counts
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def run(args: Namespace) -> None:
    if learning.is_model(args.data):
        model = learning.load(args.data)
        record, text = (relations.inspect if relations.is_relation(model) else _model)(model, args)
    else:
        record = summarised(read([args.data], args, label=False))
        lines = summary_lines(record)
        width = max(len(name) for name, _ in lines)
        text = "\n".join(f"{name.ljust(width)}  {value}" for name, value in lines)
    say(args, {"file": args.data, **record}, text)


# ---------------------------------------------------------------- models


def described(model: BaseEstimator) -> dict[str, Any]:
    """A description of a model."""
    ranker, curve = ranker_of(model), curve_of(model)
    counts = {
        name: int(getattr(ranker, f"n_{name}_")) for name in ("queries", "pairs") if hasattr(ranker, f"n_{name}_")
    }
    return {
        "class": type(ranker).__name__,
        "scalers": [type(step).__name__ for step in scalers_of(model)],
        "reading": getattr(model, "reading_", None),
        "parameters": parameters_of(ranker),
        "chosen": learning.chosen(model),
        "features": int(ranker.n_features_in_),
        **counts,
        "points": _points(ranker),
        "curve": None if curve is None else curve.record(),
    }


def in_a_line(record: dict[str, Any]) -> str:
    """Class, scalers and training size in one line."""
    seen = "".join(f", {record[name]:,} {name} seen" for name in ("queries", "pairs") if name in record)
    return f"{' + '.join([*record['scalers'], record['class']])}, {record['features']} features{seen}"


def _model(model: BaseEstimator, args: Namespace) -> tuple[dict[str, Any], str]:
    """A record of a model, and the same as text."""
    ranker, curve, record = ranker_of(model), curve_of(model), described(model)
    lines = [
        in_a_line(record),
        f"settled on {learning.settled(record['chosen'])}",
        f"parameters {given(ranker)}",
    ]
    if read_as := memory.in_words(model):
        lines.append(f"reads data with {read_as}")
    encoder = next((step for step in scalers_of(model)[:1] if isinstance(step, TableEncoder)), None)
    try:
        raw = export.linear(model) if encoder is None else _of_encoded(model, encoder)
    except ValueError as error:
        record["weights"] = None
        points = "" if record["points"] is None else f"kernel model of {record['points']:,} points; "
        lines.append(f"{points}no feature weights: {error}")
    else:
        order = np.argsort(-np.abs(raw.weights), kind="stable")
        record["weights"] = {raw.names[j]: raw.weights[j] for j in order}
        rows = [[raw.names[j], f"{raw.weights[j]:+.6g}"] for j in order[: args.top]]
        lines += ["", table(["feature" if encoder is None else "encoded column", "weight"], rows)]
        if len(order) > args.top:
            lines.append(f"... {len(order) - args.top} more; --top shows them")
    if curve is not None:
        scoring = ranker.scoring if isinstance(ranker.scoring, str) else "score"
        lines += ["", "held out", cv.text(curve, scoring)]
    return record, "\n".join(lines)


def _of_encoded(model: Pipeline, encoder: TableEncoder) -> export.LinearModel:
    """The weights of the encoded columns."""
    return export.linear(model[1:], [str(name) for name in encoder.get_feature_names_out()])


def parameters_of(ranker: BaseEstimator) -> dict[str, Any]:
    """The parameters as a record holds them."""
    return {name: _brief(value) for name, value in ranker.get_params(deep=False).items() if name != "verbose"}


def given(ranker: BaseEstimator) -> str:
    """The parameters that are not at their defaults."""
    usual = {name: _brief(one.default) for name, one in signature(type(ranker)).parameters.items()}
    found = parameters_of(ranker)
    others = [f"{name}={value!r}" for name, value in found.items() if value != usual.get(name)]
    return f"{', '.join(others)}; the others at their defaults" if others else "all at their defaults"


def _points(ranker: BaseEstimator) -> int | None:
    points = getattr(ranker, "X_fit_", None)
    return None if points is None else int(points.shape[0])


def _brief(value: object) -> Any:
    """A parameter in a few words."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---------------------------------------------------------------- data


def summarised(data: RankingData) -> dict[str, Any]:
    """A description of data."""
    queries = check_queries(data.qid, len(data))
    sizes, scored = queries.sizes, data.y[~np.isnan(data.y)]
    values, counts = np.unique(scored, return_counts=True)
    low, high = np.full(len(queries), np.inf), np.full(len(queries), -np.inf)
    np.minimum.at(low, queries.codes, np.nan_to_num(data.y, nan=np.inf))
    np.maximum.at(high, queries.codes, np.nan_to_num(data.y, nan=-np.inf))
    return {
        "rows": len(data),
        "queries": len(queries),
        "features": int(data.X.shape[1]),
        "skipped": data.skipped,
        "query_ids": data.qid is not None,
        "unscored_rows": len(data) - len(scored),
        "labels": dict(zip(values.tolist(), counts.tolist(), strict=True)) if len(values) <= FEW else None,
        "label_quantiles": np.quantile(scored, SHARES) if len(scored) else None,
        "query_length_quantiles": np.quantile(sizes, SHARES),
        "queries_without_preferences": int((low >= high).sum()),
        "documents_named": data.doc_ids is not None,
        **_features(data),
    }


def _features(data: RankingData) -> dict[str, Any]:
    """Which features have missing values, and which are constant."""
    names = np.array(data.feature_names or [f"f{j}" for j in range(1, data.X.shape[1] + 1)], dtype=object)
    if sparse.issparse(data.X):
        X = data.X.tocsc()
        holes = np.bincount(_columns(X)[np.isnan(X.data)], minlength=len(names))
        low, high = (np.asarray(f(axis=0).toarray()).ravel() for f in (X.nanmin, X.nanmax))
        share = X.nnz / max(1, X.shape[0] * X.shape[1])
    else:
        holes = np.isnan(data.X).sum(axis=0)
        low, high = np.fmin.reduce(data.X, axis=0), np.fmax.reduce(data.X, axis=0)
        share = float(np.count_nonzero(data.X) / data.X.size)
    return {
        "nonzero_share": share,
        "missing_values": int(holes.sum()),
        "features_with_missing": names[holes > 0].tolist(),
        "constant_features": names[~(high > low)].tolist(),
    }


def _columns(X: sparse.csc_array) -> np.ndarray:
    """The column of each stored value of a CSC array."""
    return np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))


def summary_lines(record: dict[str, Any]) -> list[list[str]]:
    """Names and values to print."""
    quantiles = lambda values: "  ".join(f"{v:g}" for v in values)
    listed = lambda names: ", ".join(names[:10]) + (f" ... ({len(names)})" if len(names) > 10 else "")
    rows = [
        ["rows", f"{record['rows']:,}"],
        ["queries", f"{record['queries']:,}" + ("" if record["query_ids"] else " (the data name none)")],
        ["features", f"{record['features']:,}, {record['nonzero_share']:.1%} of the values not zero"],
        ["rows of a query", f"{quantiles(record['query_length_quantiles'])}   (min, quartiles, max)"],
    ]
    if record["labels"]:
        rows.append(["labels", "  ".join(f"{label:g}: {count:,}" for label, count in record["labels"].items())])
    elif record["label_quantiles"] is not None:
        rows.append(["labels", f"{quantiles(record['label_quantiles'])}   (min, quartiles, max)"])
    if record["unscored_rows"]:
        rows.append(["rows without a label", f"{record['unscored_rows']:,}"])
    if record["queries_without_preferences"]:
        rows.append(["queries of one label", f"{record['queries_without_preferences']:,}, nothing to learn from"])
    missing, constant = record["features_with_missing"], record["constant_features"]
    rows.append(["missing values", f"{record['missing_values']:,}" + (f" in {listed(missing)}" if missing else "")])
    rows.append(["constant features", listed(constant) or "none"])
    if record["skipped"]:
        rows.append(["lines left out", f"{record['skipped']:,}"])
    return rows
