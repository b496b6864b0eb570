"""Metrics of a million rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.generated import ragged
from benchmarks.measure import Row, measure
from rankrls import metrics


def scoring(quick: bool) -> Iterator[Row]:
    """Metrics on flat arrays."""
    m = 100_000 if quick else 1_000_000
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 5, m).astype(float), ragged(m)
    y = y[: len(qid)]
    s = rng.normal(size=(len(y), 15))
    one = np.ascontiguousarray(s[:, 0])
    yield Row(f"ndcg@10, {len(y):,} rows", measure(lambda: metrics.ndcg(y, one, qid, k=10), 5), target="about 0.1 s")
    yield Row("average precision", measure(lambda: metrics.average_precision(y, one, qid), 5))
    yield Row("pairwise accuracy", measure(lambda: metrics.pairwise_accuracy(y, one, qid), 5))
    yield Row("pairwise accuracy, 15 models at once", measure(lambda: metrics.pairwise_accuracy(y, s, qid), 3))
