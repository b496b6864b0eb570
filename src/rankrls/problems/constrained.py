"""Ridge regression from sums, with single pairs added to the loss or required exactly.

A pair (i over j by d, weight w) adds w (d - a'v)^2 to the loss, a = phi(x_i) - phi(x_j): a rank-one change of the sums.
If it must hold exactly, it is an equation A v = d. With v0 the solution without it and M = gram + alpha I,

    v = v0 + M^-1 A' (A M^-1 A')^-1 (d - A v0).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..core.statistics import Statistics
from ..system.types import DTypeLike
from .base import Model
from .solved import model_at

FEW = 8  # up to this many given pairs are compared with the stored ones directly, without keys


@dataclass(frozen=True)
class Preferred:
    """Pairs added to a model, in its feature space."""

    difference: np.ndarray  # (p, n) phi(preferred) - phi(other)
    margin: np.ndarray  # (p,)
    weight: np.ndarray  # (p,)
    exact: np.ndarray  # (p,) bool: must hold exactly, so not part of the sums

    @classmethod
    def none(cls, n: int) -> Preferred:
        return cls(np.empty((0, n)), np.empty(0), np.empty(0), np.empty(0, dtype=bool))

    def __len__(self) -> int:
        return len(self.margin)

    def __add__(self, other: Preferred) -> Preferred:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Preferred(*(np.concatenate(pair) for pair in pairs))

    def take(self, rows: np.ndarray) -> Preferred:
        return Preferred(*(value[rows] for value in vars(self).values()))

    def places(self, difference: np.ndarray) -> list[list[int]]:
        """For each given difference, the indices of the pairs that have it, in the order they were added."""
        if len(difference) <= FEW:  # faster than keys of all pairs
            return [self._equal(d) for d in difference]
        found: dict[bytes, list[int]] = {}
        for p, key in enumerate(row_bytes(self.difference)):
            found.setdefault(key, []).append(p)
        return [found.get(key, []) for key in row_bytes(difference)]

    def _equal(self, d: np.ndarray) -> list[int]:
        j = int(np.argmax(np.abs(d)))
        likely = np.flatnonzero(self.difference[:, j] == d[j])
        return likely[(self.difference[likely] == d).all(axis=1)].tolist()

    def added(self, sums: Statistics, sign: int = 1) -> Statistics:
        """The sums with these pairs added (sign 1) or removed (sign -1)."""
        soft = self.take(~self.exact)
        A, d, w = soft.difference, soft.margin, sign * soft.weight
        return replace(
            sums,
            gram=sums.gram + A.T @ (w[:, None] * A),
            cross=sums.cross + (A.T @ (w * d))[:, None],
            square=sums.square + w @ d**2,
            n_pairs=sums.n_pairs + sign * len(soft),
        )


def row_bytes(D: np.ndarray) -> list[bytes]:
    """Each row as a bytes key, with -0 equal to 0."""
    D = np.ascontiguousarray(D + 0.0)
    whole, width = D.tobytes(), D.shape[1] * D.itemsize
    return [whole[start : start + width] for start in range(0, len(whole), width)]


def contradiction(pairs: Preferred) -> tuple[int, np.ndarray] | None:
    """The first exact pair that contradicts earlier exact pairs, and the indices of those pairs; None if there is none.

    Its difference is a combination of theirs, but its margin is not the same combination of their margins.
    """
    exact = np.flatnonzero(pairs.exact)
    for k in range(1, len(exact)):
        A, a = pairs.difference[exact[:k]], pairs.difference[exact[k]]
        share = np.linalg.lstsq(A.T, a, rcond=1e-10)[0]
        if np.linalg.norm(a - share @ A) > 1e-8 * np.linalg.norm(a):
            continue
        if abs(pairs.margin[exact[k]] - share @ pairs.margin[exact[:k]]) > 1e-8 * np.abs(pairs.margin[exact]).max():
            return int(exact[k]), exact[:k][np.abs(share) > 1e-8 * np.abs(share).max(initial=0.0)]
    return None


def constrained_model(
    alpha: float, sums: Statistics, W: np.ndarray | None, dtype: DTypeLike, pairs: Preferred | None
) -> tuple[Model, float]:
    """The model of the sums in which the exact pairs hold, and the largest error that remains in them."""
    model = model_at(alpha, sums, W, dtype)
    hard = None if pairs is None else pairs.take(pairs.exact)
    if hard is None or not len(hard):
        return model, 0.0
    A, missing = hard.difference, hard.margin[:, None] - hard.difference @ model.coef
    B = model_at(alpha, replace(sums, cross=A.T, target_mean=np.zeros(len(A))), W, dtype).coef  # M^-1 A'
    coef = model.coef + B @ np.linalg.lstsq(A @ B, missing, rcond=1e-10)[0]
    failure = float(np.abs(hard.margin[:, None] - A @ coef).max() / max(1.0, np.abs(hard.margin).max()))
    return Model.of(coef, sums), failure
