"""The queries a model ranks worst: their lists, and why something stands above something better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from .. import export
from ..datasets import RankingData
from ..estimators.pipelines import ranker_of, scaled
from ..metrics import get_metric
from . import page
from .data import doc_ids
from .entries import Entry, JudgedEntry
from .page import Html, join, name, tag
from .text import number

TOP_REASONS = 5
OPENED = 2  # queries of each model that are shown without a click


def worst_queries(entry: Entry, judged: JudgedEntry, metric: str, *, worst: int, top: int) -> Html:
    """The `worst` queries of a model by a metric with the first `top` places of each."""
    if not worst:
        return Html("")
    values, queries = entry.values[metric], judged.queries
    order = np.argsort(values if get_metric(metric).greater_is_better else -values, kind="stable")
    order = order[~np.isnan(values[order]) & _varied(judged)[order]]
    shown = order[:worst]
    left = len(order) - len(shown)
    values_of = [f"{metric} {number(values[q])}" for q in shown]
    parts = [
        _query(entry, judged, int(q), value, top, opened=i < OPENED)
        for i, (q, value) in enumerate(zip(shown, values_of, strict=True))
    ]
    note = f"{left:,} better ones are not shown." if left else "These are all there are."
    undefined = len(queries) - len(order)
    if undefined:
        note += f" {undefined:,} more have one label only, or do not define {metric}."
    return join(tag("h3", name(entry.name)), *parts, tag("p", note, class_="soft"))


def _varied(judged: JudgedEntry) -> np.ndarray:
    """(q,) whether a query has different labels, so that its rows could be ranked better or worse."""
    first = np.full(len(judged.queries), np.nan)
    first[judged.queries.codes] = judged.y
    return judged.queries.sum(judged.y != first[judged.queries.codes]) > 0


def _query(entry: Entry, judged: JudgedEntry, query: int, value: str, top: int, *, opened: bool) -> Html:
    rows = judged.queries.rows(query)
    scores, y = entry.scores[rows], judged.y[rows]
    order = np.argsort(-scores, kind="stable")
    docs = doc_ids(entry.data)[judged.rows][rows]
    wrong = wrong_pair(y[order])
    lines: list[list[Any]] = []
    marked = []
    for place, i in enumerate(order):
        if place < top or (wrong is not None and place in wrong):
            if wrong is not None and place in wrong:
                marked.append(len(lines))
            lines.append([place + 1, docs[i], f"{y[i]:g}", f"{scores[i]:.4g}"])
    ranked = page.table(["place", "document", "label", "score"], lines, numbers=[0, 2, 3], marked=marked)
    left = len(order) - len(lines)
    more = tag("p", f"{left:,} more rows.", class_="soft")
    label = judged.queries.labels[query] if entry.data.qid is not None else "all rows"
    head = tag("summary", "query ", name(label), f", {value}, {len(rows):,} rows")
    listed = tag("div", ranked, more if left else Html(""))
    sides = tag("div", listed, _why(entry, judged, rows, order, wrong, docs), class_="sides")
    return Html(f"<details{' open' if opened else ''}>{head}{sides}</details>")


def wrong_pair(y: np.ndarray) -> tuple[int, int] | None:
    """Of labels from the first place to the last, the two places in wrong order whose labels differ most.

    Of several the one with the best place above, and then the last below; None if nothing is in wrong order.

    Examples
    --------
    >>> wrong_pair(np.array([1, 0, 2, 0, 2])), wrong_pair(np.array([2, 1, 1]))
    ((1, 4), None)
    """
    least = np.minimum.accumulate(y)
    gap = y - least
    if not len(y) or gap.max() <= 0:
        return None
    ends = np.flatnonzero(gap == gap.max())
    above = [int(np.argmax(y == least[end])) for end in ends]
    first = min(above)
    return first, int(max(end for end, start in zip(ends, above, strict=True) if start == first))


def _why(
    entry: Entry,
    judged: JudgedEntry,
    rows: np.ndarray,
    order: np.ndarray,
    wrong: tuple[int, int] | None,
    docs: np.ndarray,
) -> Html:
    """Feature by feature, why the wrong row stands above the right one."""
    if wrong is None:
        return tag("p", "No row stands above one with a better label.", class_="soft")
    if entry.model is None:
        return tag("p", "Scores from a file give no reasons.", class_="soft")
    linear = linear_model(ranker_of(entry.model), entry.data.feature_names)
    if linear is None:
        return tag("p", "This model is not linear: no feature by itself is a reason.", class_="soft")
    a, b = (int(order[place]) for place in wrong)
    pair = np.flatnonzero(judged.rows)[rows[[a, b]]]
    X, Z = _seen(entry.data, pair, entry.model)
    parts = linear.weights * (Z[0] - Z[1])
    largest = np.argsort(-np.abs(parts), kind="stable")[:TOP_REASONS]
    lines = [[linear.names[j], f"{X[0, j]:.4g}", f"{X[1, j]:.4g}", f"{parts[j]:+.4g}"] for j in largest]
    rest = parts.sum() - parts[largest].sum()
    if len(parts) > len(largest):
        lines.append([f"{len(parts) - len(largest)} others", "", "", f"{rest:+.4g}"])
    lines.append(["difference of the scores", "", "", f"{parts.sum():+.4g}"])
    labels = judged.y[rows]
    places = [f" (place {place + 1}, label {labels[i]:g})" for place, i in zip(wrong, (a, b), strict=True)]
    title = tag("p", "Why ", name(docs[a]), f"{places[0]} is above ", name(docs[b]), f"{places[1]}:")
    return tag("div", title, page.table(["feature", "above", "below", "adds"], lines, numbers=[1, 2, 3]))


def _seen(data: RankingData, pair: np.ndarray, model: BaseEstimator) -> tuple[np.ndarray, np.ndarray]:
    """Two rows of a query as they come, and as the ranker sees them, which may depend on the rest of the query."""
    rows = np.arange(len(data)) if data.qid is None else np.flatnonzero(data.qid == data.qid[pair[0]])
    Z = scaled(model, data.X[rows], None if data.qid is None else data.qid[rows])[np.searchsorted(rows, pair)]
    dense = lambda V: V.toarray() if sparse.issparse(V) else np.asarray(V, dtype=np.float64)
    return dense(data.X[pair]), dense(Z)


def linear_model(model: BaseEstimator, names: Sequence[str] | None) -> export.LinearModel | None:
    """The weights of a model, None if it is not linear; features have the names of the data, or else of the model."""
    try:
        return export.linear(model, names)
    except ValueError:
        return None
