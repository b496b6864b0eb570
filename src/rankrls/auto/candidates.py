"""The candidates: each turns the rows of a split into features, sums and (if blocks were scaled) scales.

What a candidate learns from labels (pairs, scales, column weights) it learns from the training rows of the split.
Candidates whose features do not depend on labels share them between all splits; the sums of a split are then those of
all rows minus those of the fold that is left out, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ..core.statistics import Statistics
from ..system.lazy import cached_property
from ..system.limits import limits
from ..tables import ColumnMaps
from .additive import PAIR_CURVES, AdditiveMap, adapted, column_effects, deviations, products
from .effort import Effort
from .functions import Curves, Ramps, step, with_steps
from .kernelmap import KernelMap
from .link import Link, Linked
from .rows import BLOCK, AutoRows, Map, Scores, in_blocks, leading, solve
from .screen import MOST_COLUMNS, SCREEN_CURVES, ScreenRows, best_pairs, pair_lift

MAIN_ALPHA = 10.0  # alpha of the additive model whose residual is screened for pairs
PAIR_ALPHA = 1.0
CURVES = 600  # about as many curves in all, but at least two and at most six of each column
SAMPLE = 5_000  # rows used to estimate variances
FEW_ROWS = 256  # rows whose curves fit in a processor's cache
SCREEN_ROWS = 30_000  # rows used to look for pairs
FINE_SHARE = 0.05  # the link leaves out blocks with less than this share of the largest spread
FINE_COLUMNS = 12
FINE_LIFT = 15.0  # energy of pairs with ramps and steps; chance reaches 5 to 10 for the best of thousands of pairs


@dataclass(frozen=True)
class CandidateFeatures:
    """Features of one split for one candidate."""

    map: Any  # a Map; an AdditiveMap if blocks have a scale
    sums: Statistics
    penalty: np.ndarray | None = None  # as `Penalised` takes it
    linked: bool = False  # labels are an increasing function of the scores


@dataclass
class Common:
    """What all splits share; nothing in it depends on labels."""

    rows: AutoRows
    columns: ColumnMaps
    effort: Effort
    seed: int
    basis: int
    folds: list[np.ndarray] = field(default_factory=list)  # test rows of each fold
    final_basis: int = 0  # basis points in the final model, if these are all of its rows
    totals: dict[str, CandidateFeatures] = field(default_factory=dict)  # features without labels, sums over all rows
    _kept: dict[str, Any] = field(default_factory=dict)

    @property
    def n_scores(self) -> int:
        """The number of columns of N that additive models and kernels use: all except the raw ones."""
        return self.columns.n_scores_

    @property
    def source(self) -> np.ndarray:
        """(n,) the original column of each of them."""
        return self.columns.source_[: self.n_scores]

    @cached_property
    def curves(self) -> Curves:
        n = min(self.n_scores, MOST_COLUMNS)
        return Curves.of(self.sample[:, : self.n_scores], int(np.clip(CURVES // max(n, 1), 2, 6)))

    @cached_property
    def sample(self) -> np.ndarray:
        return scattered_rows(self.rows.N)

    @cached_property
    def table(self) -> np.ndarray | None:
        """(m, n, k) the curves of all columns of all rows, if there is room: they do not depend on labels."""
        if self.n_scores > MOST_COLUMNS or len(self.rows) * self.n_scores * self.curves.size > limits.kept_features:
            return None
        return in_blocks(lambda N: self.curves(N[:, : self.n_scores]), self.rows.N, FEW_ROWS)

    @cached_property
    def screen(self) -> ScreenRows | None:
        """What the screen for pairs needs, if all rows are used and there is room."""
        if self.table is None or len(self.rows) > SCREEN_ROWS:
            return None
        return ScreenRows(self.table, self.deviation(np.arange(self.n_scores)))

    def deviation(self, columns: np.ndarray) -> np.ndarray:
        """(c, 3) the spread of the first curves of some columns."""
        return np.maximum(self.curves(self.sample, columns)[:, :, :SCREEN_CURVES].std(axis=0), 1e-6)

    @cached_property
    def main_sums(self) -> list[Statistics]:
        """The sums of `screen.main` over all rows but those of each fold."""
        assert self.screen is not None
        main = self.screen.main
        parts = [rows.sums(main[fold]) for rows, fold in zip(self.left_out, self.folds, strict=True)]
        total = reduce(add, parts)
        return [total - part for part in parts]

    def reuse(self, other: Common) -> None:
        """Take over what was computed for the same rows in folds."""
        known = ("sample", "curves", "table", "totals")
        self.__dict__.update({name: other.__dict__[name] for name in known if name in other.__dict__})

    @cached_property
    def left_out(self) -> list[AutoRows]:
        """The rows of each fold."""
        return [self.rows.part(fold) for fold in self.folds]

    def features(self, features: Map, places: np.ndarray) -> np.ndarray:
        """Features of the rows at some places."""
        N, table = self.rows.N, self.table if isinstance(features, AdditiveMap) else None
        if not isinstance(features, AdditiveMap) or table is None:
            return in_blocks(features, N[places])
        Phi = np.empty((len(places), features.n_columns), N.dtype)
        for start in range(0, len(places), BLOCK):
            part = slice(start, start + BLOCK)
            some = part if len(places) == len(N) else places[part]
            Phi[part] = features(N[some], table[some])
        return Phi

    def kernel(self, name: str, N: np.ndarray, weights: np.ndarray, r: int, *, cut: bool) -> KernelMap:
        return KernelMap.of(N, weights, r, cut=cut, rng=self.rng(name))

    def rng(self, name: str) -> np.random.Generator:
        """A random generator for a candidate."""
        return np.random.default_rng([self.seed, *name.encode()])

    def label_free(self, name: str, make: Callable[[int], Map], split: Split) -> CandidateFeatures:
        """Features that all splits share, and the sums of this split: all rows minus the fold left out.

        `make(r)` takes the number of basis points. Points to judge are the first of those of the final model, so that
        the same pass over the rows serves both.
        """
        if name in self.totals and not self.folds:
            return self.totals[name]
        if not self.folds:
            features = make(self.basis)
            return CandidateFeatures(features, self.rows.sums(features), penalty_of(features))
        if name not in self._kept:
            features = make(max(self.basis, self.final_basis))
            judged = features.first(self.basis) if isinstance(features, KernelMap) else features
            kept, parts = [], []
            for rows in self.left_out:
                Phi = in_blocks(features, rows.N)
                parts.append(rows.sums(Phi))
                kept.append(Phi[:, : judged.n_columns].copy())
            total = reduce(add, parts)
            self.totals[name] = CandidateFeatures(features, total, penalty_of(features))
            k = judged.n_columns
            sums = [leading(total, k) - leading(part, k) for part in parts]
            self._kept = {name: (judged, kept, sums, penalty_of(judged))}
        features, kept, sums, penalty = self._kept[name]
        split.store_left_out(features, kept[split.number])
        return CandidateFeatures(features, sums[split.number], penalty)


@dataclass
class Split:
    """Training rows, and what candidates have learned from them so far."""

    common: Common
    rows: AutoRows
    number: int = 0
    made: dict[str, CandidateFeatures] = field(default_factory=dict)
    coef: dict[str, np.ndarray] = field(default_factory=dict)  # at the chosen alpha
    alpha: dict[str, float] = field(default_factory=dict)
    lifts: np.ndarray = field(default_factory=lambda: np.empty(0))
    known_effects: dict[str, np.ndarray] = field(default_factory=dict)  # by candidate
    known_pairs: dict[tuple[int, int], float] | None = None  # pairs of columns and their lifts
    _left_out: tuple[Any, np.ndarray] | None = None
    _training: tuple[Any, np.ndarray] | None = None

    def left_out(self, features: Map) -> np.ndarray:
        """Features of the rows left out, cached because candidates with the same features follow one another."""
        if self._left_out is None or self._left_out[0] is not features:
            self.store_left_out(features, self.common.features(features, self.common.folds[self.number]))
        assert self._left_out is not None
        return self._left_out[1]

    def store_left_out(self, features: Map, Phi: np.ndarray) -> None:
        self._left_out = features, Phi

    @cached_property
    def places(self) -> np.ndarray:
        """The places of the training rows among all rows."""
        folds = [fold for number, fold in enumerate(self.common.folds) if number != self.number]
        return np.sort(np.concatenate(folds)) if folds else np.arange(len(self.rows))

    def in_memory(self, features: Map) -> np.ndarray | None:
        """Features of the training rows, if there is room: those of the last map asked for are kept."""
        if not self.rows.in_memory or len(self.rows) * features.n_columns > limits.kept_features:
            return None
        if self._training is None or self._training[0] is not features:
            self._training = features, self.common.features(features, self.places)
        return self._training[1]

    def sums(self, features: Map) -> Statistics:
        """The sums of the training rows, whose features stay in memory if there is room."""
        Phi = self.in_memory(features)
        return self.rows.sums(features if Phi is None else Phi)

    def additive_map(self, ramps: Ramps, columns: Any, pairs: Any, *fine: Any) -> AdditiveMap:
        """An additive map with blocks of unit variance over the training rows."""
        table = None if self.common.table is None else self.common.table[scattered_rows(self.places)]
        fine_columns, fine_pairs = fine or ((), ())
        N, curves = scattered_rows(self.rows.N), self.common.curves
        return AdditiveMap.of(N, curves, ramps, columns, pairs, fine_columns, fine_pairs, table)

    def curves(self, rows: AutoRows, columns: np.ndarray) -> np.ndarray:
        """(m, c, k) the curves of some columns of all training rows, or of a sample of them."""
        if rows is self.rows and self.common.table is not None:
            some = np.arange(self.common.n_scores)
            table = self.common.table if np.array_equal(columns, some) else np.take(self.common.table, columns, axis=1)
            return np.take(table, self.places, axis=0)
        return in_blocks(lambda N: self.common.curves(N, columns), rows.N)

    def scores(self, features: Map, coef: np.ndarray, rows: AutoRows) -> np.ndarray:
        """Scores of all training rows, or of a sample of them, in single precision."""
        Phi, coef = self.in_memory(features) if rows is self.rows else None, coef.astype(rows.N.dtype)
        return in_blocks(lambda N: features(N) @ coef, rows.N) if Phi is None else in_blocks(lambda P: P @ coef, Phi)

    def effects(self, name: str) -> np.ndarray:
        """(n,) the spread of everything that each column contributes to."""
        if name in self.known_effects:
            return self.known_effects[name]
        made = self.made[name]
        deviation = deviations(made.map, made.sums, self.coef[name])
        return column_effects(made.map, deviation, self.common.n_scores)


def penalty_of(features: Any) -> np.ndarray | None:
    """The norm of a kernel; None if the penalty is the norm of the coefficients."""
    return features.penalty() if hasattr(features, "penalty") else None


def linear(split: Split) -> CandidateFeatures:
    """The columns themselves, and indicators of missing values."""
    first = split.common.n_scores - len(split.common.columns.missing_)
    return _columns(split, "linear", first, split.rows.N.shape[1])


def scores(split: Split) -> CandidateFeatures:
    return _columns(split, "scores", 0, split.common.n_scores)


def _columns(split: Split, name: str, start: int, stop: int) -> CandidateFeatures:
    common = split.common
    return common.label_free(name, lambda _: Scores.of(common.rows.N, start, stop, common.rng(name)), split)


def gauss(split: Split) -> CandidateFeatures:
    return _plain_kernel(split, "gauss", cut=False)


def laplace(split: Split) -> CandidateFeatures:
    return _plain_kernel(split, "laplace", cut=True)


def _plain_kernel(split: Split, name: str, *, cut: bool) -> CandidateFeatures:
    common = split.common
    make = lambda r: common.kernel(name, common.rows.N, np.ones(common.n_scores), r, cut=cut)
    return common.label_free(name, make, split)


def additive(split: Split) -> CandidateFeatures:
    """Curves of columns and of pairs."""
    columns = strongest(split.rows, split.common.n_scores)
    lift = screened(split, columns) if split.known_pairs is None else split.known_pairs
    pairs = sorted(lift)
    split.lifts = np.array([lift[pair] for pair in pairs])
    features = split.additive_map(Ramps.of(scattered_rows(split.rows.N), {}), columns, pairs)
    return CandidateFeatures(features, split.sums(features))


def screened(split: Split, columns: np.ndarray) -> dict[tuple[int, int], float]:
    """Pairs of some columns that interact, and their lifts."""
    common, rows = split.common, split.rows
    if common.screen is None:
        rows = rows.sampled(SCREEN_ROWS)
        screen, places = ScreenRows(split.curves(rows, columns), common.deviation(columns)), np.arange(len(rows))
        sums = rows.sums(screen.main)
    else:
        screen, places, sums = common.screen, split.places, common.main_sums[split.number]
    return found_pairs(common, rows, columns, screen, places, sums)


def found_pairs(
    common: Common, rows: AutoRows, columns: np.ndarray, screen: ScreenRows, places: np.ndarray, sums: Statistics
) -> dict[tuple[int, int], float]:
    """Pairs among some columns, and their lifts: the second of two rounds screens what the first left.

    `places` are those of the rows in `screen`, and `sums` the sums of its single columns over them.
    """
    left = rows.y - (screen.main @ solve(sums, MAIN_ALPHA, screen.deviation.ravel()).astype(np.float32))[places]
    lift: dict[tuple[int, int], float] = {}
    for _ in range(2):
        g = np.zeros(len(screen.curves))
        g[places] = rows.gradient(left)
        lifts = pair_lift(screen.Z, g, screen.energy)
        found, values = best_pairs(lifts, common.source[columns], min(common.effort.pairs, 1 + len(rows) // 300))
        if not len(found):
            break
        named = map(tuple, np.sort(columns[found], axis=1).tolist())
        lift = {**dict(zip(named, values.tolist(), strict=True)), **lift}
        used, place = np.unique(found, return_inverse=True)
        A = np.take(screen.curves, used, axis=1)[places, :, :PAIR_CURVES]
        Phi = products(A, place.reshape(found.shape))
        left = left - Phi @ solve(rows.sums(Phi, left), PAIR_ALPHA).astype(np.float32)
    return lift


def scattered_rows(N: np.ndarray, m: int = SAMPLE) -> np.ndarray:
    """At most m rows, evenly spaced."""
    return N[:: -(-len(N) // m)]


def strongest(rows: AutoRows, n: int) -> np.ndarray:
    """The columns of additive models: all n scores, or those most related to the labels."""
    if n <= MOST_COLUMNS:
        return np.arange(n)
    N, g = rows.N[:, :n], rows.gradient(rows.y).astype(np.float32)
    relation = np.abs(N.T @ g) + np.abs((N**2).T @ g)
    return np.sort(np.argsort(-relation, kind="stable")[:MOST_COLUMNS])


def adaptive(split: Split) -> CandidateFeatures:
    """The additive model with blocks scaled by their spread: the same features and sums."""
    made = split.made["additive"]
    scale = adapted(made.map, made.sums, split.coef["additive"], split.alpha["additive"], 2)
    return CandidateFeatures(made.map, made.sums, scale)


def link(split: Split) -> CandidateFeatures:
    """A Gauss-Newton step from the adaptive model, with a link, on finer functions of its strongest blocks."""
    features, scale = fine_map(split)
    made, coef, some = split.made["adaptive"], split.coef["adaptive"], split.rows.sampled(SCREEN_ROWS)
    known = split.scores(made.map, coef, split.rows) if split.rows.in_memory else None
    f = made.map.scores(some.N, coef) if known is None or len(known) > len(some) else known
    linked = Linked(made.map, coef, Link.between(f, some), features)
    return CandidateFeatures(features, split.rows.sums_through(linked, split.in_memory(features), known), scale, True)


def fine_map(split: Split) -> tuple[AdditiveMap, np.ndarray]:
    """The strongest blocks of the adaptive model, the very strongest as ramps and steps, and scales of their features.

    A pair gets ramps and steps only if chance cannot explain it: they are many features.
    """
    made, rows, effort = split.made["adaptive"], split.rows, split.common.effort
    deviation = deviations(made.map, made.sums, split.coef["adaptive"])
    deviation = deviation / max(deviation.max(initial=0), 1e-30)
    members, lift = made.map.members, dict(zip(map(tuple, made.map.pairs.tolist()), split.lifts, strict=True))
    strong = [members[b] for b in np.argsort(-deviation, kind="stable") if deviation[b] > FINE_SHARE]
    single, double = ([block for block in strong if len(block) == n] for n in (1, 2))
    fine_pairs = [pair for pair in double if lift[pair] > FINE_LIFT][: min(effort.fine_pairs, len(rows) // 500)]
    fine_columns = {i for pair in fine_pairs for i in pair} | {i for (i,) in single[:FINE_COLUMNS]}
    columns = [i for (i,) in single if i not in fine_columns]
    pairs = [pair for pair in double if pair not in fine_pairs]
    ramps = Ramps.of(split.common.sample, found_knots(split, fine_columns, fine_pairs))
    features = split.additive_map(ramps, columns, pairs, sorted(fine_columns), fine_pairs)
    share = dict(zip(members, deviation, strict=True))
    return features, np.array([max(share.get(block, 0.0), FINE_SHARE) for block in features.members])[features.block]


def found_knots(split: Split, columns: set[int], pairs: list[tuple[int, ...]]) -> dict[int, np.ndarray]:
    """Knots of columns where the residual of the adaptive model has a step, alone or jointly with another column."""
    made, rows = split.made["adaptive"], split.rows.sampled(SCREEN_ROWS)
    left = rows.y - split.scores(made.map, split.coef["adaptive"], rows)
    g = rows.gradient(left)
    steps: dict[int, list[float]] = {i: [] for i in columns}
    for i, j in [*pairs, *((j, i) for i, j in pairs)]:
        others = split.curves(rows, np.array([j]))[:, 0, :SCREEN_CURVES]
        steps[i].append(step(rows.N[:, i], g[:, None] * others))
    for i in columns:
        steps[i].append(step(rows.N[:, i], g[:, None]))
    return {i: with_steps(found) for i, found in steps.items()}


def _learned(name: str, *, cut: bool) -> Callable[[Split], CandidateFeatures]:
    def make(split: Split) -> CandidateFeatures:
        common = split.common
        features = common.kernel(name, split.rows.N, split.effects(METRIC[name]), common.basis, cut=cut)
        return CandidateFeatures(features, split.rows.sums(features), features.penalty())

    return make


MAKE: dict[str, Callable[[Split], CandidateFeatures]] = {
    "linear": linear,
    "scores": scores,
    "additive": additive,
    "adaptive": adaptive,
    "link": link,
    "gauss": gauss,
    "laplace": laplace,
    "gauss learned": _learned("gauss learned", cut=False),
    "laplace learned": _learned("laplace learned", cut=True),
}
METRIC = {"gauss learned": "additive", "laplace learned": "link"}  # where column weights come from
NEEDS: dict[str, tuple[str, ...]] = {  # candidates that a candidate builds on
    "adaptive": ("additive",),
    "link": ("additive", "adaptive"),
    "gauss learned": ("additive",),
    "laplace learned": ("additive", "adaptive", "link"),
}
