"""The queries a model has learned from, kept so that held-out scores can be updated when queries or pairs change.

Held-out scores need the rows, which sums do not contain, so small numbers of rows are copied. Nothing is computed until
it is needed, so that `partial_fit` is only a change of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.queries import Queries
from ...system.limits import limits
from ...system.rows import row_keys
from ..rows.training import Training


@dataclass(frozen=True)
class History:
    """Copies of the rows of all queries learned so far."""

    parts: tuple[Training, ...] = ()
    of_pairs: Any = None  # held-out scores of the explicit pairs that a fit started with

    def with_rows(self, data: Training) -> History | None:
        """With more queries; None if there are too many rows to keep."""
        if (
            not isinstance(data.X, np.ndarray)
            or data.X.nbytes + sum(part.X.nbytes for part in self.parts) > limits.kept_bytes
        ):
            return None
        own = replace(data, X=data.X.copy(), given=None, kept=None, n_given=0, kernel=None, points=None)
        return replace(self, parts=(*self.parts, own))

    def without_rows(self, data: Training) -> History | None:
        """Without these queries; None if some of them were not kept."""
        gone = _query_keys(data).tolist()
        parts = []
        for part in self.parts:
            keys, stay = _query_keys(part), np.ones(len(part.queries), dtype=bool)
            for q, key in enumerate(keys.tolist()):
                if key in gone:
                    gone.remove(key)
                    stay[q] = False
            parts.append(part if stay.all() else part.only(np.flatnonzero(stay[part.queries.codes])))
        return None if gone else replace(self, parts=tuple(part for part in parts if len(part.y)))

    @property
    def is_small(self) -> bool:
        """True if the copies are small enough to keep just for the noise, which is rarely needed if alpha is given."""
        return sum(part.X.nbytes for part in self.parts) <= limits.kept_bytes // 4

    def mixed(self, w: np.ndarray) -> History:
        """The same rows, with a weighted sum of their targets as target."""
        mix = lambda Y: (Y @ w)[:, None]
        labels = [None if part.labels is None else mix(part.labels) for part in self.parts]
        pairs = zip(self.parts, labels, strict=True)
        return History(tuple(replace(part, y=mix(part.y), labels=truth, flat=True) for part, truth in pairs))

    def joined(self) -> Training | None:
        """All rows, with queries of different parts kept apart; None if leaving out a query leaves nothing."""
        if sum(len(part.queries) for part in self.parts) < (2 if self.of_pairs is None else 1):
            return None
        codes, n = [], 0
        for part in self.parts:
            codes.append(part.queries.codes + n)
            n += len(part.queries)
        first, join = self.parts[0], lambda name: np.concatenate([getattr(part, name) for part in self.parts])
        weights = None
        if any(part.weights is not None for part in self.parts):
            parts = [np.ones(len(p.y)) if p.weights is None else p.weights for p in self.parts]
            weights = np.concatenate(parts)
        X, y = join("X"), join("y")
        labels = None if first.labels is None else join("labels")
        data = replace(first, X=X, y=y, labels=labels, weights=weights, n_given=len(y))
        return replace(data, queries=Queries.of(np.concatenate(codes)))


def _query_keys(data: Training) -> np.ndarray:
    """(q,) a key of each query, computed from its rows, labels and weights in any order."""
    weights = np.ones(len(data.y)) if data.weights is None else data.weights
    keys = row_keys(np.column_stack([data.X, data.y, weights]).astype(np.float64), seed=0)
    total = np.zeros(len(data.queries), dtype=np.uint64)
    np.add.at(total, data.queries.codes, keys)
    return total
