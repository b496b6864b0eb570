"""Bounds on the rounding of rows in F V, which tell a column that varies from a constant one.

The rounding of a row is eps times its value times its weight sqrt(u) between. It is less for two kinds of rows where
weights are uneven. The heaviest row of a query is nearly the query's mean, so its difference from the mean is computed
from the other rows (see `means`); its own rounding enters only the regression part, of weight beta. And the heaviest
row overall is the centre of the sums if it has a fair share of the weight, so its values are not rounded at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .means import GroupMeans

FAIR = 1e-3  # sums are taken about the heaviest row if it has at least this share of the weight


@dataclass(frozen=True)
class Rounding:
    """Rounding under the weights `between` (q,) of queries and the share beta of regression."""

    means: GroupMeans
    between: np.ndarray
    beta: float

    @cached_property
    def of_rows(self) -> np.ndarray:
        """(m,) the weight of a row's rounding in the mean square of F V."""
        means = self.means
        u = np.ones(means.queries.n_rows) if means.u is None else means.u
        share = u / means.S.sum()
        found = share * self.between[means.queries.codes] ** 2
        found[means.heaviest] = share[means.heaviest] * self.beta
        if self.centre is not None:
            found[self.centre] = 0.0
        return found

    @cached_property
    def centre(self) -> int | None:
        """The row that sums are centred on: the heaviest, if it has a fair share of the weight; else None."""
        u = self.means.u
        if u is None or not self.means.uneven:
            return None
        row = int(np.argmax(u))
        return row if u[row] > FAIR * self.means.S.sum() else None

    @cached_property
    def of_queries(self) -> np.ndarray:
        """(q,) the sum of `of_rows` over each query."""
        means = self.means
        if not means.uneven:
            return means.S / means.S.sum() * self.between**2
        return means.queries.sum(self.of_rows)

    @cached_property
    def level(self) -> np.ndarray:
        """(q,) the rounding if every query were like this one."""
        return np.sqrt(len(self.between) * self.of_queries)

    @cached_property
    def roots(self) -> np.ndarray:
        """(m,) the weight of a row's rounding in F V; for the heaviest row of a query, that of all its rows."""
        found = self.of_rows * self.means.S.sum()
        found[self.means.heaviest] += self.means.queries.sum(found) if len(self.means.heaviest) else 0.0
        return np.sqrt(found)
