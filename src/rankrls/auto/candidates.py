"""The candidates: each turns the rows of a split into features, sums and (where blocks were scaled) a scale.

What a candidate learns from labels (pairs, scales, column weights) it learns from the training rows of the split. The
candidates that learn nothing from labels share their features among all splits; the sums of a split are then the sums
of all rows less those of the fold that is left out, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from ..core.statistics import Statistics
from .additive import PAIR_CURVES, AdditiveMap, adapted, column_effects, deviations, products
from .effort import Effort
from .functions import Curves, Ramps, step, with_steps
from .kernelmap import KernelMap
from .rows import AutoRows, Map, Scores, in_blocks, solve
from .screen import MOST_COLUMNS, best_pairs, pair_lift

MAIN_ALPHA = 10.0  # of the additive model whose residual is screened for pairs
PAIR_ALPHA = 1.0
SCREEN_CURVES = 3
SAMPLE = 5_000  # rows that variances are taken over
SCREEN_ROWS = 30_000  # rows that pairs are looked for in
FINE_SHARE = 0.05  # blocks with a smaller share of the largest spread are left out of the fine model
FINE_COLUMNS = 12


@dataclass(frozen=True)
class CandidateFeatures:
    """Features of one split for one candidate."""

    map: Any  # a Map; an AdditiveMap where blocks have a scale
    sums: Statistics
    scale: np.ndarray | None = None  # of each feature, zero if it is dropped


@dataclass
class Common:
    """What all splits share: nothing here has seen a label."""

    rows: AutoRows
    source: np.ndarray  # (n,) the original column of each column of scores
    effort: Effort
    seed: int
    basis: int
    folds: list[np.ndarray] = field(default_factory=list)  # test rows of each fold
    _kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def curves(self) -> Curves:
        n = min(self.rows.N.shape[1], MOST_COLUMNS)
        return Curves.of(self.sample, int(np.clip(800 // max(n, 1), 2, 6)))

    @cached_property
    def sample(self) -> np.ndarray:
        return scattered_rows(self.rows.N, 4 * SAMPLE)

    def kernel(self, name: str, N: np.ndarray, weights: np.ndarray, *, l1: bool) -> KernelMap:
        return KernelMap.of(N, weights, self.basis, l1=l1, rng=self.rng(name))

    def rng(self, name: str) -> np.random.Generator:
        """Random numbers of a candidate's own."""
        return np.random.default_rng([self.seed, *name.encode()])

    def label_free(self, name: str, make: Callable[[], Map], split: Split) -> CandidateFeatures:
        """Features that all splits share, and the sums of this split: all rows less the fold left out."""
        if not self.folds:
            features = make()
            return CandidateFeatures(features, self.rows.sums(features))
        if name not in self._kept:
            features = make()
            Phi = in_blocks(features, self.rows.N)
            parts = [self.rows.part(fold).sums(Phi[fold]) for fold in self.folds]
            self._kept[name] = features, parts, reduce(add, parts)
        features, parts, total = self._kept[name]
        return CandidateFeatures(features, total - parts[split.number])


@dataclass
class Split:
    """Training rows, and what candidates have learned from them so far."""

    common: Common
    rows: AutoRows
    number: int = 0
    made: dict[str, CandidateFeatures] = field(default_factory=dict)
    coef: dict[str, np.ndarray] = field(default_factory=dict)  # at the alpha chosen
    alpha: dict[str, float] = field(default_factory=dict)
    lifts: np.ndarray = field(default_factory=lambda: np.empty(0))

    def effects(self, name: str) -> np.ndarray:
        """(n,) the spread of all that a column has part in."""
        made = self.made[name]
        deviation = deviations(made.map, made.sums, self.coef[name])
        return column_effects(made.map, deviation, self.rows.N.shape[1])


def linear(split: Split) -> CandidateFeatures:
    return split.common.label_free("linear", lambda: Scores.of(split.common.rows.N, split.common.rng("linear")), split)


def gauss(split: Split) -> CandidateFeatures:
    return _plain_kernel(split, "gauss", l1=False)


def laplace(split: Split) -> CandidateFeatures:
    return _plain_kernel(split, "laplace", l1=True)


def _plain_kernel(split: Split, name: str, *, l1: bool) -> CandidateFeatures:
    N = split.common.rows.N
    return split.common.label_free(name, lambda: split.common.kernel(name, N, np.ones(N.shape[1]), l1=l1), split)


def additive(split: Split) -> CandidateFeatures:
    """Curves of columns, and the pairs that a screen of what they leave finds in two rounds."""
    common, rows = split.common, split.rows
    columns = strongest(rows)
    pairs, split.lifts = found_pairs(common, rows.sampled(SCREEN_ROWS), columns)
    sample = scattered_rows(rows.N)
    features = AdditiveMap.of(sample, common.curves, Ramps.of(sample, {}), columns, pairs)
    return CandidateFeatures(features, rows.sums(features))


def found_pairs(common: Common, rows: AutoRows, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs among some columns: two rounds of screening what is left by single columns, then by the first pairs."""
    A = in_blocks(lambda N: common.curves(N, columns), rows.N)
    main = A.reshape(len(rows), -1)
    left = rows.y - main @ solve(rows.sums(main), MAIN_ALPHA).astype(np.float32)
    Z = A[:, :, :SCREEN_CURVES]
    Z = Z / np.maximum(Z.std(axis=0), 1e-6)
    lift: dict[tuple[int, int], float] = {}
    for _ in range(2):
        lifts = pair_lift(Z, rows.gradient(left))
        places, values = best_pairs(lifts, common.source[columns], min(common.effort.pairs, 1 + len(rows) // 300))
        if not len(places):
            break
        found = np.sort(columns[places], axis=1)
        lift = {**dict(zip(map(tuple, found.tolist()), values.tolist(), strict=True)), **lift}
        Phi = products(A[:, :, :PAIR_CURVES], places)
        left = left - Phi @ solve(rows.sums(Phi, left), PAIR_ALPHA).astype(np.float32)
    pairs = sorted(lift)
    return np.array(pairs, dtype=np.intp).reshape(-1, 2), np.array([lift[pair] for pair in pairs])


def scattered_rows(N: np.ndarray, m: int = SAMPLE) -> np.ndarray:
    """At most m rows, evenly spaced."""
    return N[:: -(-len(N) // m)]


def strongest(rows: AutoRows) -> np.ndarray:
    """The columns of additive models: all, or those most related to the labels."""
    n = rows.N.shape[1]
    if n <= MOST_COLUMNS:
        return np.arange(n)
    g = rows.gradient(rows.y).astype(np.float32)
    relation = np.abs(rows.N.T @ g) + np.abs((rows.N**2).T @ g)
    return np.sort(np.argsort(-relation, kind="stable")[:MOST_COLUMNS])


def adaptive(split: Split) -> CandidateFeatures:
    """The additive model with blocks scaled by their spread: the same features and sums."""
    made = split.made["additive"]
    scale = adapted(made.map, made.sums, split.coef["additive"], split.alpha["additive"], 2)
    return CandidateFeatures(made.map, made.sums, scale)


def fine(split: Split) -> CandidateFeatures:
    """The strongest blocks only, with ramps and steps in place of curves for the strongest of them."""
    made, rows, common = split.made["adaptive"], split.rows, split.common
    deviation = deviations(made.map, made.sums, split.coef["adaptive"])
    deviation = deviation / max(deviation.max(initial=0), 1e-30)
    members = made.map.members
    strong = [b for b in np.argsort(-deviation, kind="stable") if deviation[b] > FINE_SHARE]
    fine_pairs = [members[b] for b in strong if len(members[b]) == 2][: min(common.effort.fine_pairs, len(rows) // 500)]
    fine_columns = {i for pair in fine_pairs for i in pair}
    fine_columns |= {members[b][0] for b in [b for b in strong if len(members[b]) == 1][:FINE_COLUMNS]}
    columns = [members[b][0] for b in strong if len(members[b]) == 1 and members[b][0] not in fine_columns]
    pairs = [members[b] for b in strong if len(members[b]) == 2 and members[b] not in fine_pairs]
    ramps = Ramps.of(common.sample, found_knots(split, fine_columns, fine_pairs))
    sample = scattered_rows(rows.N)
    features = AdditiveMap.of(sample, common.curves, ramps, columns, pairs, sorted(fine_columns), fine_pairs)
    share = dict(zip(members, deviation, strict=True))
    scale = np.array([max(share.get(block, 0.0), FINE_SHARE) for block in features.members])[features.block]
    return CandidateFeatures(features, rows.sums(features), scale)


def found_knots(split: Split, columns: set[int], pairs: list[tuple[int, ...]]) -> dict[int, np.ndarray]:
    """Knots of columns: where what the adaptive model leaves has a step, alone or together with the other column."""
    made, rows = split.made["adaptive"], split.rows.sampled(SCREEN_ROWS)
    left = rows.y - in_blocks(lambda N: made.map(N) @ split.coef["adaptive"].astype(N.dtype), rows.N)
    g = rows.gradient(left)
    steps: dict[int, list[float]] = {i: [] for i in columns}
    for i, j in [*pairs, *((j, i) for i, j in pairs)]:
        others = split.common.curves(rows.N, np.array([j]))[:, 0, :SCREEN_CURVES]
        steps[i].append(step(rows.N[:, i], g[:, None] * others))
    for i in columns:
        steps[i].append(step(rows.N[:, i], g[:, None]))
    return {i: with_steps(found) for i, found in steps.items()}


@dataclass(frozen=True)
class Contributions:
    """What the blocks of an additive model contribute: the largest, and the sum of all others."""

    additive: AdditiveMap
    coef: np.ndarray
    blocks: np.ndarray

    def __call__(self, N: np.ndarray) -> np.ndarray:
        V = self.additive.outputs(N, self.coef)
        rest = np.delete(V, self.blocks, axis=1).sum(axis=1, keepdims=True)
        return np.concatenate([V[:, self.blocks], rest], axis=1)


@dataclass(frozen=True)
class EffectKernel:
    """A kernel on the contributions of blocks: how effects combine."""

    effects: Contributions
    kernel: KernelMap

    @property
    def n_columns(self) -> int:
        return self.kernel.n_columns

    def __call__(self, N: np.ndarray) -> np.ndarray:
        return self.kernel(self.effects(N))

    def folded(self, coef: np.ndarray) -> tuple[EffectKernel, np.ndarray]:
        """The same scores from kernel values."""
        kernel, coef = self.kernel.folded(coef)
        return EffectKernel(self.effects, kernel), coef


def effects(split: Split) -> CandidateFeatures:
    made, common, coef = split.made["fine"], split.common, split.coef["fine"]
    deviation = deviations(made.map, made.sums, coef)
    blocks = np.argsort(-deviation, kind="stable")[:12]
    contributions = Contributions(made.map, coef, blocks)
    rows = split.rows
    V = in_blocks(contributions, scattered_rows(rows.N, 4 * SAMPLE))
    kernel = common.kernel("effects", V, np.ones(V.shape[1]) / max(V.std(), 1e-30), l1=False)
    features = EffectKernel(contributions, kernel)
    return CandidateFeatures(features, rows.sums(features))


def _learned(name: str, by: str, *, l1: bool) -> Callable[[Split], CandidateFeatures]:
    def make(split: Split) -> CandidateFeatures:
        features = split.common.kernel(name, split.rows.N, split.effects(by), l1=l1)
        return CandidateFeatures(features, split.rows.sums(features))

    return make


MAKE: dict[str, Callable[[Split], CandidateFeatures]] = {
    "linear": linear,
    "additive": additive,
    "adaptive": adaptive,
    "fine": fine,
    "effects": effects,
    "gauss": gauss,
    "laplace": laplace,
    "gauss learned": _learned("gauss learned", "additive", l1=False),
    "laplace learned": _learned("laplace learned", "fine", l1=True),
}
NEEDS = {  # what a candidate builds on
    "adaptive": ("additive",),
    "fine": ("additive", "adaptive"),
    "effects": ("additive", "adaptive", "fine"),
    "gauss learned": ("additive",),
    "laplace learned": ("additive", "adaptive", "fine"),
}
