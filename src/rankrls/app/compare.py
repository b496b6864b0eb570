"""Compare snapshots: wins by query, documents that move, pairs that are reversed, and the overlap of rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.queries import Queries
from ..metrics import get_metric, randomisation_test, standard_error
from ..system.types import Matrix
from .session import Session
from .state import Snapshot

TOP = 10  # ranks compared
PERSISTENCE = 0.9  # p of the rank-biased overlap
SHOWN = 12  # queries and documents listed
FLIPS = 2000


def values_of(session: Session, kept: Snapshot, metric: str) -> np.ndarray:
    """(q,) a metric of every query, held out; for an external model, of its plain scores."""
    if kept.state is not None:
        return session.quality.point(replace(kept.state, metrics=(metric,))).values[metric][:, 0]
    return session.quality.given(session.state, metric)


def compare(session: Session, numbers: Sequence[int]) -> dict[str, Any]:
    """A comparison of two or more snapshots with the first."""
    kept = [session.snapshot(number) for number in numbers]
    metrics = session.state.metrics
    rows = np.arange(session.limits.rows)
    ranks = [session.documents.queries.ranks(session.models.scores(one, rows)) for one in kept]
    values = [{metric: values_of(session, one, metric) for metric in metrics} for one in kept]
    unjudged = np.isnan(session.models.labels(session.state))
    return {
        "metrics": list(metrics),
        "greater_is_better": {metric: get_metric(metric).greater_is_better for metric in metrics},
        "snapshots": [
            {
                "id": one.id,
                "name": one.name,
                "outside": one.state is None,
                "means": {metric: known_mean(of[metric]) for metric in metrics},
                "errors": {metric: float(standard_error(of[metric])) for metric in metrics},
                "unjudged": _unjudged(session.documents.queries, rank, unjudged),
            }
            for one, of, rank in zip(kept, values, ranks, strict=True)
        ],
        "pairs": [
            _pair(session, metrics[0], (ranks[0], rank), (values[0][metrics[0]], of[metrics[0]])) | {"id": one.id}
            for one, rank, of in zip(kept[1:], ranks[1:], values[1:], strict=True)
        ],
    }


def known_mean(values: np.ndarray) -> float | None:
    """The mean over the queries where a metric is defined; None if there are none."""
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else None


def _unjudged(queries: Queries, ranks: np.ndarray, unjudged: np.ndarray) -> float:
    """The mean number of documents without a judgment in the first ranks."""
    return float(queries.sum((ranks <= TOP) & unjudged).mean())


def _pair(session: Session, metric: str, ranks: Any, values: Matrix) -> dict[str, Any]:
    """The comparison of one snapshot with the first: wins, reversed pairs, overlap, and documents that move."""
    sign = 1 if get_metric(metric).greater_is_better else -1
    gain = sign * (values[1] - values[0])
    known = np.flatnonzero(~np.isnan(gain))
    order = known[np.argsort(-gain[known], kind="stable")]
    listed = lambda chosen: [
        {"query": int(q), "before": float(values[0][q]), "after": float(values[1][q])} for q in chosen
    ]
    alike = similarity(session.documents.queries, *ranks)
    return {
        "metric": metric,
        "wins": int((gain[known] > 1e-12).sum()),
        "losses": int((gain[known] < -1e-12).sum()),
        "same": int((np.abs(gain[known]) <= 1e-12).sum()),
        "p": randomisation_test(values[1], values[0], flips=FLIPS) if len(known) else None,
        "gained": listed([q for q in order[:SHOWN] if gain[q] > 1e-12]),
        "lost": listed([q for q in order[::-1][:SHOWN] if gain[q] < -1e-12]),
        "movers": _movers(session, *ranks),
        **{name: float(value.mean()) for name, value in alike.items()},
    }


def _movers(session: Session, before: np.ndarray, after: np.ndarray) -> list[dict[str, Any]]:
    """The documents that move most into, out of or within the first ranks."""
    moved = np.where(np.minimum(before, after) <= TOP, np.abs(before - after), 0)
    rows = np.argsort(-moved, kind="stable")[:SHOWN]
    labels, data = session.models.labels(session.state), session.documents
    return [
        {
            "row": int(row),
            "query": int(data.queries.codes[row]),
            "id": data.doc_id(int(row)),
            "title": data.title(int(row)),
            "grade": None if np.isnan(labels[row]) else float(labels[row]),
            "before": int(before[row]),
            "after": int(after[row]),
        }
        for row in rows
        if moved[row]
    ]


def similarity(queries: Queries, before: np.ndarray, after: np.ndarray, top: int = TOP) -> dict[str, np.ndarray]:
    """For each query, Jaccard and rank-biased overlap of the first ranks, and how many of their pairs are reversed.

    Examples
    --------
    >>> import numpy as np
    >>> ranks = np.array([1, 2, 3, 4])
    >>> alike = similarity(Queries.single(4), ranks, ranks[::-1], top=2)
    >>> {name: float(value[0]) for name, value in alike.items()}
    {'jaccard': 0.0, 'rbo': 0.0, 'reversals': 1.0}
    """
    found = {name: np.zeros(len(queries)) for name in ("jaccard", "rbo", "reversals")}
    for batch in queries.batches():
        a, b = batch.stack(before), batch.stack(after)
        k = min(top, batch.length)
        depth = np.arange(1, k + 1)
        both = ((a[:, :, None] <= depth) & (b[:, :, None] <= depth)).sum(axis=1)  # (g, k) overlap at each depth
        share, weight = both / depth, PERSISTENCE**depth
        found["jaccard"][batch.queries] = both[:, -1] / (2 * k - both[:, -1])
        found["rbo"][batch.queries] = share[:, -1] * PERSISTENCE**k + (1 - PERSISTENCE) / PERSISTENCE * (share @ weight)
        places = np.take_along_axis(b, np.argsort(a, axis=1)[:, :k], axis=1)  # the ranks in b of the first ranks of a
        turned = places[:, :, None] > places[:, None, :]
        found["reversals"][batch.queries] = np.triu(turned, 1).sum(axis=(1, 2))
    return found
