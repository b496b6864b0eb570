"""Cross-fitting: every candidate is judged on queries it has learned nothing from.

Queries are dealt into folds. For each fold, pairs, column weights and coefficients are learned from the other folds,
and the fold is predicted at every alpha. The weights of the stack are learned from these held-out scores too; to judge
the stack itself, alphas and weights for a fold are chosen on the other folds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..metrics import Metric, get_metric, standard_error
from ..system.progress import numbered, phase
from .additive import AdditiveMap
from .candidates import MAKE, Common, Split
from .link import Link
from .rows import ALPHAS, AutoRows, Map, in_blocks, solve
from .stack import stack, stacks

RIDGES = (0.001, 0.01, 0.1, 1.0)  # regularisations of the stack to choose from
FEW = 3  # with fewer queries per fold, rows are dealt into folds instead


@dataclass(frozen=True)
class Folds:
    """Rows dealt into folds, and the groups in which held-out rows are judged (queries, or their parts in a fold)."""

    of_row: np.ndarray  # (m,)
    groups: Queries
    of_group: np.ndarray  # (g,)

    @classmethod
    def deal(cls, queries: Queries, n_folds: int, rng: np.random.Generator) -> Folds:
        q = len(queries)
        n_folds = min(n_folds, q // FEW)
        if n_folds >= 2:
            of_query = np.empty(q, dtype=np.intp)
            of_query[rng.permutation(q)] = np.arange(q) % n_folds
            return cls(of_query[queries.codes], queries, of_query)
        n_folds, of_row = 2 if queries.n_rows < 30 else 3, np.empty(queries.n_rows, dtype=np.intp)
        for i in range(q):
            rows = queries.rows(i)
            of_row[rng.permutation(rows)] = np.arange(len(rows)) % n_folds
        groups = Queries.of(queries.codes * n_folds + of_row)
        return cls(of_row, groups, groups.labels % n_folds)

    def __len__(self) -> int:
        return int(self.of_row.max()) + 1

    def rows(self, fold: int) -> np.ndarray:
        return np.flatnonzero(self.of_row == fold)

    def others(self, fold: int) -> np.ndarray:
        return np.flatnonzero(self.of_row != fold)


@dataclass(frozen=True)
class CrossFitJudge:
    """Judges alphas by the metric plus the pairwise accuracy, averaged over held-out queries."""

    metric: Metric
    y: np.ndarray
    folds: Folds

    def values(self, P: np.ndarray) -> np.ndarray:
        """(2, g, k) the metric and the accuracy of each group, for columns of scores; greater is better."""
        sign = 1 if self.metric.greater_is_better else -1
        found = self.metric.per_query(self.y, P, self.folds.groups) * sign
        if np.isnan(found).any(axis=1).all():
            raise ValueError(
                f"scoring={self.metric.name!r} is NaN for each of the {len(found)} held-out groups of rows, so nothing "
                "can be chosen by it: is it defined for these labels?"
            )
        return np.stack((found, ACCURACY.per_query(self.y, P, self.folds.groups)))

    def best(self, values: np.ndarray, without: int | None = None) -> int:
        """The best column for the groups of all folds, or of all but one."""
        if without is not None:
            values = values[:, self.folds.of_group != without]
        total = np.zeros(values.shape[2])
        for value in values:
            defined = ~np.isnan(value).any(axis=1)
            total += value[defined].mean(axis=0) if defined.any() else 0.0
        return int(np.argmax(total))

    def certainty(self, scores: np.ndarray, base: np.ndarray) -> float:
        """d^2 / (d^2 + s^2) with d > 0 the mean gain in pairwise accuracy over `base` and s its standard error."""
        accuracy = ACCURACY.per_query(self.y, np.stack([scores, base], axis=1), self.folds.groups)
        gain = accuracy[:, 0] - accuracy[:, 1]
        gain = gain[~np.isnan(gain)]
        if len(gain) < 2 or gain.mean() <= 0:
            return 0.0
        return float(1 / (1 + (standard_error(gain) / gain.mean()) ** 2))

    def score(self, scores: np.ndarray) -> tuple[float, float]:
        """The mean of the metric over held-out queries, and its standard error."""
        value = self.metric.per_query(self.y, scores, self.folds.groups)
        value = value[~np.isnan(value)]
        return (float(value.mean()), float(standard_error(value))) if len(value) else (float("nan"), float("nan"))


ACCURACY = get_metric("pairwise_accuracy")


@dataclass(frozen=True)
class CrossFitted:
    """A candidate after cross-fitting."""

    name: str
    alpha: int  # index in ALPHAS of the alpha chosen on all folds
    held: np.ndarray  # (m,) held-out scores at that alpha
    honest: np.ndarray  # (m,) held-out scores at alphas chosen without the row's fold
    size: int  # features
    seconds: float
    link: Link | None = None  # from held-out scores to labels, if the candidate is fitted through a link


@dataclass
class CrossFit:
    """Candidates on splits of the rows, one after the other."""

    common: Common
    folds: Folds
    judge: CrossFitJudge
    splits: list[Split] = field(default_factory=list)
    judged: list[CrossFitted] = field(default_factory=list)

    def __post_init__(self) -> None:
        rows = self.common.rows
        self.splits = [Split(self.common, rows.part(self.folds.others(f)), f) for f in range(len(self.folds))]

    def run(self, names: Iterable[str]) -> None:
        """Judge candidates; after an interrupt, the results so far remain."""
        for name in names:
            with phase(name):
                self.judged.append(self._judged(name))

    def _judged(self, name: str) -> CrossFitted:
        """Fit a candidate in every split, and choose its alpha by the held-out scores."""
        start = time.perf_counter()
        rows = self.common.rows
        P = np.empty((len(rows), len(ALPHAS)), dtype=np.float32)
        paths = []
        for split in numbered(self.splits, "fold"):
            made = split.made[name] = MAKE[name](split)
            paths.append(solve(made.sums, ALPHAS, made.penalty))
            fold = self.folds.rows(split.number)
            P[fold] = split.left_out(made.map) @ paths[-1].astype(np.float32)
        values = self.judge.values(P)
        best = self.judge.best(values)
        choices = [self.judge.best(values, split.number) for split in self.splits]
        honest, link = np.empty(len(rows)), None
        linked = self.splits[0].made[name].linked
        for split, path, choice in zip(self.splits, paths, choices, strict=True):
            split.coef[name], split.alpha[name] = path[:, best], float(ALPHAS[best])
            fold, rest = self.folds.rows(split.number), self.folds.others(split.number)
            honest[fold] = P[fold, choice]
            if linked:
                honest[fold] = Link.between(P[rest, choice], split.rows)(honest[fold])
        held = P[:, best].astype(float)
        if linked:
            link = Link.between(held, rows)
            held = link(held)
        size = max(split.made[name].map.n_columns for split in self.splits)
        return CrossFitted(name, best, held, honest, size, time.perf_counter() - start, link)


@dataclass(frozen=True)
class Blend:
    """Weights of candidates, for scores divided by their spread, and held-out scores of their sum."""

    judged: list[CrossFitted]
    weights: np.ndarray  # (k,)
    deviation: np.ndarray  # (k,)
    held: np.ndarray  # (m,)

    @classmethod
    def of(cls, judged: list[CrossFitted], rows: AutoRows, judge: CrossFitJudge) -> Blend:
        """The stack, with the ridge that does best on held-out folds; each fold is scored with that of the others."""
        held, honest = (np.stack([getattr(one, which) for one in judged], axis=1) for which in ("held", "honest"))
        folds = judge.folds
        F = QueryPreferences(folds.groups, rows.y, weighting="items", weights=rows.weights)
        deviation = np.sqrt(((F @ held) ** 2).mean(axis=0))
        deviation = np.where(deviation > 0, deviation, 1.0)
        H, totals = honest / deviation, np.empty((len(rows), len(RIDGES)))
        for f in range(len(folds)):
            rest, fold = folds.others(f), folds.rows(f)
            totals[fold] = H[fold] @ stacks(F.restrict(rest), H[rest], rows.y[rest], RIDGES)
        values = judge.values(totals)
        total = np.empty(len(rows))
        for f in range(len(folds)):
            total[folds.rows(f)] = totals[folds.rows(f), judge.best(values, f)]
        return cls(judged, stack(F, held / deviation, rows.y, RIDGES[judge.best(values)]), deviation, total)

    def towards(self, rows: AutoRows, judge: CrossFitJudge) -> Blend:
        """Shrink towards the linear candidate unless the stack is clearly better.

        With d the mean gain of the stack over the linear candidate on held-out queries and s its standard error, the
        stack gets the weight d^2 / (d^2 + s^2) if d > 0, and none otherwise.
        """
        place = next((i for i, one in enumerate(self.judged) if one.name == "linear"), None)
        if place is None or len(self.judged) == 1:
            return self
        linear = self.judged[place].honest
        share = judge.certainty(self.held, linear)
        if share > 0.99:
            return self
        F = QueryPreferences(judge.folds.groups, rows.y, weighting="items", weights=rows.weights)
        alone = np.zeros(len(self.judged))
        alone[place] = stack(F, self.judged[place].held[:, None] / self.deviation[place], rows.y)[0]
        if share < 0.05:
            return replace(self, weights=alone, held=linear)
        size = lambda scores: max(float(np.linalg.norm(F @ scores)), 1e-30)
        held = share * self.held / size(self.held) + (1 - share) * linear / size(linear)
        return replace(self, weights=share * self.weights + (1 - share) * alone, held=held)

    @property
    def shares(self) -> dict[str, float]:
        """The share of each candidate in the stack."""
        total = max(float(self.weights.sum()), 1e-30)
        return {one.name: float(weight) / total for one, weight in zip(self.judged, self.weights, strict=True)}


def scores_of(features: Map, coef: np.ndarray, N: np.ndarray) -> np.ndarray:
    """Scores of rows by the features of a candidate."""
    if isinstance(features, AdditiveMap):
        return features.scores(N, coef)
    coef = coef.astype(N.dtype)
    return in_blocks(lambda N: features(N) @ coef, N)


def fit_on_all(split: Split, name: str, alpha: int) -> None:
    """Fit a candidate on the rows of a split at an alpha chosen before."""
    made = split.made[name] = MAKE[name](split)
    split.alpha[name] = float(ALPHAS[alpha])
    split.coef[name] = solve(made.sums, split.alpha[name], made.penalty)
