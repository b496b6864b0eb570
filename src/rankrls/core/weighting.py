"""How much each pair counts: the weights of queries and of the tie levels in them, and the gains of labels.

Item i counts as u_i copies. In a query let S be the sum of u, and S_j the sum over tie level j (items with equal y).
Pairs weigh c u_i u_j, and the factor c of a query is

    "pairs"     c = 1
    "items"     c = 1 / S
    "queries"   c = 1 / mass     mass = sum over levels j < k of S_j S_k, or S (S - 1) / 2 if ties are included

With a share beta of regression, F (see `preferences`) needs

    between^2  = beta + (1 - beta) c S          of each query
    within_j^2 = beta + (1 - beta) c (S - S_j)  of each level

The textbook forms S - S_j and (S^2 - sum of S_j^2) / 2 cancel where one level outweighs the others, and c overflows
where weights are tiny. So the weight outside a level is added up where subtracting would cancel, the mass is the sum
of S_j (S - S_j) / 2, and c S is computed, never c.

A gain is what a label is worth in the loss: the label itself, 2^y - 1, or the value of the caller's own function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..system.lazy import cached_property
from .queries import Queries

LINEAR, EXPONENTIAL = "linear", "exponential"
Gain = str | Callable[[np.ndarray], np.ndarray]
WEIGHTINGS = ("pairs", "queries", "items")
ONE_COPY = 1e-3  # S - 1 has lost digits if it is smaller than this


@dataclass(frozen=True)
class Weighting:
    """The weights of queries and tie levels under one loss."""

    kind: str  # one of WEIGHTINGS
    beta: float
    query: np.ndarray  # (k,) the query of each level; an item without ties is a level by itself
    weight: np.ndarray  # (k,) S_j
    n_queries: int
    tied: bool = False  # pairs inside a level count too, and levels do not matter
    others: np.ndarray | None = None  # (q,) S - 1, which is what each copy is compared with

    @classmethod
    def ties_included(cls, kind: str, beta: float, S: np.ndarray, others: np.ndarray | None = None) -> Weighting:
        """The weights of queries whose tied pairs count like all others; S (q,) is the weight of each query.

        `others` (q,) is S - 1, for callers that know it more accurately than by subtraction.
        """
        return cls(kind, beta, np.arange(len(S)), S, len(S), tied=True, others=others)

    @cached_property
    def S(self) -> np.ndarray:
        """(q,) the weight of each query."""
        return self.weight if self.tied else self._by_query(self.weight)

    @cached_property
    def outside(self) -> np.ndarray:
        """(k,) S - S_j."""
        S = self.S[self.query]
        heavy = self.weight > S / 2  # at most one level per query, so the others can be added up
        if not heavy.any():
            return S - self.weight
        return np.where(heavy, self._by_query(np.where(heavy, 0.0, self.weight))[self.query], S - self.weight)

    @cached_property
    def mass_share(self) -> np.ndarray:
        """(q,) mass / S^2, which cannot overflow or underflow."""
        if self.tied:
            return np.maximum(0.0, (self.S - 1 if self.others is None else self.others) / self.S) / 2
        S = self.S[self.query]
        return self._by_query((self.weight / S) * (self.outside / S)) / 2

    @property
    def mass(self) -> np.ndarray:
        """(q,) the weight of the pairs that count."""
        return self.mass_share * self.S**2

    @cached_property
    def cS(self) -> np.ndarray:
        """(q,) c S; zero for queries in which no pair counts."""
        if self.kind != "queries":
            cS = self.S if self.kind == "pairs" else np.ones(self.n_queries)
            return cS if self.tied else np.where(self.mass_share > 0, cS, 0.0)
        share = self.mass_share * self.S
        return np.divide(1.0, share, out=np.zeros(self.n_queries), where=share > 0)

    @cached_property
    def between2(self) -> np.ndarray:
        """(q,) between^2."""
        return self.beta + (1 - self.beta) * self.cS

    @cached_property
    def within2(self) -> np.ndarray:
        """(k,) within_j^2."""
        return self.beta + (1 - self.beta) * self.cS[self.query] * (self.outside / self.S[self.query])

    @cached_property
    def level_scale(self) -> np.ndarray:
        """(k,) S_j sqrt((1 - beta) c), the root of S_j (between^2 - within_j^2)."""
        return self.weight / np.sqrt(self.S[self.query]) * np.sqrt((1 - self.beta) * self.cS[self.query])

    def _by_query(self, v: np.ndarray) -> np.ndarray:
        return np.bincount(self.query, weights=v, minlength=self.n_queries)


def others_of(S: np.ndarray, queries: Queries, u: np.ndarray | None) -> np.ndarray | None:
    """(q,) S - 1 with all its digits, from the weights u of the items; None without weights."""
    if u is None:
        return None
    others = S - 1
    for q in np.flatnonzero(np.abs(others) < ONE_COPY):
        others[q] = math.fsum([-1.0, *u[queries.rows(int(q))]])
    return others


def recoded(y: np.ndarray, gain: Gain) -> np.ndarray:
    """Labels (m, t) as the loss sees them."""
    if gain == LINEAR:
        return y
    with np.errstate(over="ignore"):
        found = np.exp2(y) - 1 if gain == EXPONENTIAL else np.asarray(gain(y), dtype=np.float64)  # type: ignore[operator]
    if found.shape != y.shape:
        raise ValueError(
            f"gain returned shape {found.shape} for labels of shape {y.shape}: it must return a number each"
        )
    bad = ~np.isfinite(found) & np.isfinite(y)
    if bad.any():
        name = gain if isinstance(gain, str) else getattr(gain, "__name__", "a function")
        raise ValueError(
            f"gain={name!r} turns the label {y[bad][0]:g} into {found[bad][0]}: use labels such as 0 to 4, or no gain"
        )
    if callable(gain):
        _check_growing(y, found)
    return found


def _check_growing(y: np.ndarray, found: np.ndarray) -> None:
    """Raise an error if a larger label is worth less: the metric would judge the opposite of what is learned."""
    for label, worth in zip(y.T, found.T, strict=True):
        known = np.flatnonzero(np.isfinite(label))
        order = known[np.argsort(label[known], kind="stable")]
        falls = np.flatnonzero((np.diff(label[order]) > 0) & (np.diff(worth[order]) < 0))
        if len(falls):
            a, b = order[falls[0]], order[falls[0] + 1]
            raise ValueError(
                f"gain turns the label {label[a]:g} into {worth[a]:g} and {label[b]:g} into {worth[b]:g}, but it must "
                "not fall as labels grow. If less is better, negate y instead"
            )


def gains_of(gain: Gain | None) -> tuple[Gain, ...]:
    """The gains to choose from."""
    return (LINEAR, EXPONENTIAL) if isinstance(gain, str) and gain == "auto" else (LINEAR if gain is None else gain,)
