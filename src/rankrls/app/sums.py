"""The sums of a session, updated so that no change needs another pass over all rows.

A model needs A'A and A'z with A = F Phi. F depends on switches, and the sums are linear in nearly all of them:

- the share beta of regression mixes two sums, Lt = beta diag(u) + (1 - beta) L;
- gains are additional targets: A'z has a column for each;
- a changed judgment, or a query left out, changes only the sums of its own query: subtract, add;
- a preference is one more row, and a feature left out removes one row and column.

So there is one sum for the regression loss and one for each weighting with or without ties. Each is computed in one
pass over the rows when first needed, and from then on only corrected query by query.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.features import Features
from ..core.pairs import PairPreferences
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..core.statistics import Statistics
from ..core.weighting import WEIGHTINGS
from ..problems.primal import Primal
from ..system.types import Matrix
from .state import GAINS, Preference, State

REGRESSION = ("regression", True)
KEYS = [(weighting, tied) for weighting in WEIGHTINGS for tied in (False, True)] + [REGRESSION]
Key = tuple[str, bool]


def gains(y: np.ndarray) -> np.ndarray:
    """(m, 2) the targets of each gain: y itself, and 2^y - 1."""
    return np.column_stack([y, np.exp2(np.minimum(y, 60)) - 1])


@dataclass
class KnownSums:
    """The sums of some labels; None if nothing is labelled."""

    y: np.ndarray
    sums: Statistics | None


class Sums:
    """Statistics of rows X in features Phi, for any labels and switches."""

    def __init__(self, X: Matrix, features: Features, queries: Queries):
        self.X, self.features, self.queries = X, features, queries
        self._kept: dict[Key, KnownSums] = {}
        self._locks = {key: threading.Lock() for key in KEYS}

    def known(self, key: Key) -> bool:
        """True if the sums have been computed before."""
        return key in self._kept

    def loss(self, key: Key, y: np.ndarray) -> Statistics | None:
        """The sums of labels y (NaN where missing) for one loss."""
        with self._locks[key]:
            kept = self._kept.get(key)
            changed = self._changed(kept, y)
            if kept is None or changed is None:
                kept = KnownSums(y, self._sum(key, y, np.flatnonzero(~np.isnan(y))))
            elif len(changed):
                rows = np.concatenate([self.queries.rows(int(q)) for q in changed])
                kept = KnownSums(y, self._corrected(key, kept, y, rows))
            self._kept[key] = kept
            return kept.sums

    def of(self, state: State, y: np.ndarray) -> tuple[Statistics, Statistics]:
        """The sums of a state with labels y, for its mix of losses and one target: without and with preferences."""
        beta = state.regression
        rank = None if beta == 1 else self.loss((state.weighting, state.tied_pairs), y)
        plain = None if beta == 0 else self.loss(REGRESSION, y)
        sums = _mixed(rank, plain, beta) if rank is not None or plain is not None else self._nothing(beta)
        target = GAINS.index(state.gain)
        sums = replace(
            sums,
            cross=sums.cross[:, [target]],
            square=sums.square[[target]],
            target_mean=sums.target_mean[[target]],
        )
        pairs = self.pairs([p for p in state.preferences if self.queries.codes[p.above] not in state.forgotten])
        return sums, sums if pairs is None else sums + replace(pairs, beta=beta)

    def rows(
        self, state: State, y: np.ndarray, mean: np.ndarray, target_mean: np.ndarray, on: np.ndarray, scale: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A and z for the columns switched on, divided by their scale; for data with fewer rows than columns."""
        labelled = np.flatnonzero(~np.isnan(y))
        parts, goals = [np.empty((0, len(on)))], [np.empty((0, 1))]
        phi = lambda rows: (np.asarray(self.X[np.ix_(rows, on)], dtype=np.float64) - mean[on]) / scale
        if len(labelled):
            labels = y[labelled]
            F = QueryPreferences(
                Queries.of(self.queries.codes[labelled]),
                None if state.tied_pairs else labels,
                weighting=state.weighting,
                regression=state.regression,
            )
            parts.append(F @ phi(labelled))
            goals.append(F @ (gains(labels)[:, [GAINS.index(state.gain)]] - target_mean))
        for p in state.preferences:
            if self.queries.codes[p.above] not in state.forgotten:
                ends = phi(np.array([p.above, p.below]))
                parts.append(np.sqrt(p.weight) * (ends[:1] - ends[1:]))
                goals.append(np.array([[np.sqrt(p.weight) * p.margin]]))
        return np.vstack(parts), np.vstack(goals)

    def pairs(self, preferences: Sequence[Preference]) -> Statistics | None:
        """The sums of explicit preferences."""
        if not preferences:
            return None
        rows, place = np.unique([(p.above, p.below) for p in preferences], return_inverse=True)
        F = PairPreferences(
            place.reshape(-1, 2), len(rows), np.array([p.weight for p in preferences], dtype=np.float64)
        )
        margins = np.array([[p.margin] for p in preferences])
        return Primal(F, self.features, np.asarray(self.X[rows], dtype=np.float64), margins, np.float64).sums

    # ---------------------------------------------------------------- helpers

    def _changed(self, kept: KnownSums | None, y: np.ndarray) -> np.ndarray | None:
        """The queries whose labels differ; None if a new sum is cheaper."""
        if kept is None:
            return None
        if kept.y is y:
            return np.empty(0, dtype=np.intp)
        different = ~((kept.y == y) | (np.isnan(kept.y) & np.isnan(y)))
        changed = np.unique(self.queries.codes[different])
        return None if 2 * self.queries.sizes[changed].sum() > len(y) else changed

    def _corrected(self, key: Key, kept: KnownSums, y: np.ndarray, rows: np.ndarray) -> Statistics | None:
        before, after = (self._sum(key, labels, rows[~np.isnan(labels[rows])]) for labels in (kept.y, y))
        total = kept.sums
        if before is not None and total is not None:
            total = total - before
            total = total if total.n_rows else None
        if after is not None:
            total = after if total is None else total + after
        return total

    def _sum(self, key: Key, y: np.ndarray, rows: np.ndarray) -> Statistics | None:
        """The sums of labelled rows for one loss; None if there are no rows."""
        if not len(rows):
            return None
        weighting, tied = key
        whole = len(rows) == len(y)
        labels = y if whole else y[rows]
        queries = self.queries if whole else Queries.of(self.queries.codes[rows])
        F = QueryPreferences(
            queries,
            None if tied else labels,
            weighting="items" if key == REGRESSION else weighting,
            regression=float(key == REGRESSION),
        )
        X = self.X if whole else self.X[rows]
        return Primal(F, self.features, X, gains(labels), np.float64).sums

    def _nothing(self, beta: float) -> Statistics:
        n, t = self.features.n_columns, len(GAINS)
        zeros = np.zeros((n, n)), np.zeros((n, t)), np.zeros(t), np.zeros(n), np.zeros(t)
        return Statistics(*zeros, 0.0, beta, 0, 0, 0)


def _mixed(rank: Statistics | None, plain: Statistics | None, beta: float) -> Statistics:
    """beta of the regression loss plus 1 - beta of the ranking loss, about one mean, on which L does not depend."""
    if plain is None or rank is None:
        found = rank if plain is None else plain
        assert found is not None
        return found
    mix = lambda a, b: beta * a + (1 - beta) * b
    return replace(
        plain,
        gram=mix(plain.gram, rank.gram),
        cross=mix(plain.cross, rank.cross),
        square=mix(plain.square, rank.square),
        beta=beta,
        n_pairs=rank.n_pairs,
    )
