"""The held-out quality of the models of a session, as far as it is computed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np

from ..core.queries import Queries
from ..metrics import get_metric
from .holdout import HoldOutJudge, Quality
from .models import Models
from .recent import KEPT_BYTES, Recent
from .state import State

Report = Callable[[Quality], bool]  # called with progress; returns False to stop


class KnownQuality:
    """Held-out quality of states: at their own alpha by all metrics shown, and along alpha by the first metric."""

    def __init__(self, models: Models):
        self.models = models
        self._points: Recent[Quality] = Recent(lambda found: found.nbytes, KEPT_BYTES)
        self._grids: Recent[Quality] = Recent(lambda found: found.nbytes, KEPT_BYTES)
        self._given: Recent[np.ndarray] = Recent(lambda values: values.nbytes, KEPT_BYTES)

    def judge(self, state: State) -> HoldOutJudge:
        """The `HoldOutJudge` that holds out the queries of a state."""
        models = self.models
        labels, learned, pairs = models.labels(state), models.learned_labels(state), models.learned_pairs(state)
        queries = models.documents.queries
        return HoldOutJudge(models.X, models.features, queries, models.fit(state), state, labels, learned, pairs)

    def point(self, state: State, report: Report | None = None) -> Quality:
        """Held-out quality at the alpha of a state, by all metrics shown."""
        key = (state.structure(), state.alpha, state.metrics)
        return self._found(self._points, key, state, np.array([state.alpha]), state.metrics, report)

    def grid(self, state: State, report: Report | None = None) -> Quality:
        """The held-out curve of a state over alpha, by the first metric."""
        key = (state.structure(), state.metrics[0])
        return self._found(self._grids, key, state, self.models.fit(state).alphas(), state.metrics[:1], report)

    def known(self, state: State) -> tuple[Quality | None, Quality | None]:
        """What is known about the quality of a state: at its alpha, and along the curve."""
        key = state.structure()
        return self._points.get((key, state.alpha, state.metrics)), self._grids.get((key, state.metrics[0]))

    def given(self, state: State, metric: str) -> np.ndarray:
        """(q,) a metric of the scores of the model the session was opened with, for the labels of a state."""
        return self._given.made((state.grades, metric), lambda: self._values_given(state, metric))

    def _values_given(self, state: State, metric: str) -> np.ndarray:
        models, labels = self.models, self.models.labels(state)
        rows, values = np.flatnonzero(~np.isnan(labels)), np.full(len(models.documents.queries), np.nan)
        if len(rows) and models.given is not None:
            queries = Queries.of(models.documents.queries.codes[rows])
            values[queries.labels] = get_metric(metric).per_query(labels[rows], models.given[rows], queries)
        return values

    def _found(
        self,
        kept: Recent[Quality],
        key: Hashable,
        state: State,
        alphas: np.ndarray,
        metrics: Sequence[str],
        report: Report | None,
    ) -> Quality:
        """Cached values of metrics at some alphas, computed if they are missing or incomplete."""
        found = kept.get(key)
        if found is not None and found.done >= 1:
            return found

        def progress(partial: Quality) -> bool:
            kept.put(key, replace(partial, values={k: v.copy() for k, v in partial.values.items()}))
            return report is None or report(partial)

        found = self.judge(state).quality(alphas, metrics, progress)
        kept.put(key, found)
        return found


def best_alpha(grid: Quality, metric: str) -> float | None:
    """The alpha with the best mean; None if the metric is not defined for any query."""
    mean = grid.mean(metric)
    if np.isnan(mean).all():
        return None
    sign = 1 if get_metric(metric).greater_is_better else -1
    ties = np.flatnonzero(sign * mean >= np.nanmax(sign * mean))
    return float(grid.alphas[ties].max())
