"""The queries a model ranks worst, and why a worse document stands above a better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from .. import export
from ..auto import AutoRanker
from ..datasets import RankingData
from ..estimators.pipelines import quietly, ranker_of, scaled
from ..metrics import get_metric
from . import page
from .data import doc_ids
from .entries import Entry, JudgedEntry
from .page import Html, join, name, tag
from .text import number

TOP_REASONS = 5
OPENED = 2  # queries of each model that are shown unfolded at first


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
    note = f"{left:,} better ones are not shown." if left else "These are all queries."
    undefined = len(queries) - len(order)
    if undefined:
        note += f" {undefined:,} more have only one label, or {metric} is not defined for them."
    return join(tag("h3", name(entry.name)), *parts, tag("p", note, class_="soft"))


def _varied(judged: JudgedEntry) -> np.ndarray:
    """(q,) whether a query has different labels, so that its rows could be ranked better or worse."""
    first = np.full(len(judged.queries), np.nan)
    first[judged.queries.codes] = judged.y
    return judged.queries.sum(judged.y != first[judged.queries.codes]) > 0


def _query(entry: Entry, judged: JudgedEntry, query: int, value: str, top: int, *, opened: bool) -> Html:
    """A query with its ranking, and why a worse document is above a better one."""
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
            lines.append([place + 1, docs[i], f"{y[i]:g}", scores[i]])
    for line, score in zip(lines, page.alike([line[-1] for line in lines]), strict=True):
        line[-1] = score
    ranked = page.table(["place", "document", "label", "score"], lines, numbers=[0, 2, 3], marked=marked)
    left = len(order) - len(lines)
    more = tag("p", f"{left:,} more rows.", class_="soft")
    label = judged.queries.labels[query] if entry.data.qid is not None else "all rows"
    head = tag("summary", "query ", name(label), f", {value}, {len(rows):,} rows")
    listed = tag("div", ranked, more if left else Html(""))
    why = _why(entry, judged, rows, order, wrong, docs, briefly=not opened)
    sides = tag("div", listed, why, class_="sides")
    return Html(f"<details{' open' if opened else ''}>{head}{sides}</details>")


def wrong_pair(y: np.ndarray) -> tuple[int, int] | None:
    """The two ranks in the wrong order whose labels differ most, given the labels from the first rank to the last.

    Of several, the pair with the best upper rank, and then the last lower rank; None if the order is right.

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
    *,
    briefly: bool,
) -> Html:
    """Why, feature by feature, the wrong row is above the right one; `briefly` skips what takes seconds."""
    if wrong is None:
        return tag("p", "No row is above one with a better label.", class_="soft")
    if entry.model is None:
        return tag("p", "Scores from a file give no reasons.", class_="soft")
    if briefly and isinstance(ranker_of(entry.model), AutoRanker):
        return tag(
            "p", "Reasons are shown only for the worst queries, because they take long to compute.", class_="soft"
        )
    a, b = (int(order[place]) for place in wrong)
    found = reasons_for(entry, np.flatnonzero(judged.rows)[rows[[a, b]]])
    if found is None:
        return tag("p", "This model cannot say what a feature adds to a score.", class_="soft")
    parts, X = found.parts + 0.0, found.values  # + 0.0 turns -0 into 0
    order = np.argsort(-np.abs(parts), kind="stable")
    largest, others = order[:TOP_REASONS], order[TOP_REASONS:]
    lines = [[found.names[j], page.short(X[0, j]), page.short(X[1, j]), f"{parts[j]:+.4g}"] for j in largest]
    if len(others):
        lines.append([f"{len(others)} others", "", "", f"{parts[others].sum():+.4g}"])
    lines.append(["difference of the scores", "", "", f"{parts.sum():+.4g}"])
    labels = judged.y[rows]
    places = [f" (place {place + 1}, label {labels[i]:g})" for place, i in zip(wrong, (a, b), strict=True)]
    title = tag("p", "Why ", name(docs[a]), f"{places[0]} is above ", name(docs[b]), f"{places[1]}:")
    return tag("div", title, page.table(["feature", "above", "below", "adds"], lines, numbers=[1, 2, 3]))


@dataclass(frozen=True)
class Reasons:
    """What each feature adds to the difference of the scores of two rows."""

    names: Sequence[str]
    values: np.ndarray  # (2, n) the raw features of both rows
    parts: np.ndarray  # (n,)


def reasons_for(entry: Entry, pair: np.ndarray) -> Reasons | None:
    """Why one row is above another of its query; None if the model cannot say."""
    X, Z, place = _ranker_rows(entry.data, pair, entry.model)
    ranker, names = ranker_of(entry.model), entry.data.feature_names
    linear = linear_model(ranker, names)
    if linear is not None:
        return Reasons(linear.names, X, linear.weights * (Z[place[0]] - Z[place[1]]))
    names = names or [f"f{j + 1}" for j in range(X.shape[1])]
    above, below = Z[place[0]], Z[place[1]]
    try:
        with quietly(entry.model):
            parts = ranker.explain(above, below, Z) if isinstance(ranker, AutoRanker) else ranker.explain(above, below)
    except (AttributeError, ValueError):  # the model, or its kernel, gives no reasons
        return None
    return Reasons(names, X, np.asarray(parts, dtype=np.float64))


def _ranker_rows(
    data: RankingData, pair: np.ndarray, model: BaseEstimator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two raw rows, the rows of their query as the ranker sees them, and the positions of the two among these."""
    rows = np.arange(len(data)) if data.qid is None else np.flatnonzero(data.qid == data.qid[pair[0]])
    Z = scaled(model, data.X[rows], None if data.qid is None else data.qid[rows])
    dense = lambda V: V.toarray() if sparse.issparse(V) else np.asarray(V, dtype=np.float64)
    return dense(data.X[pair]), dense(Z), np.searchsorted(rows, pair)


def linear_model(model: BaseEstimator, names: Sequence[str] | None) -> export.LinearModel | None:
    """The weights of a model, None if it is not linear; features are named as in the data, else as in the model."""
    try:
        return export.linear(model, names)
    except ValueError:
        return None
