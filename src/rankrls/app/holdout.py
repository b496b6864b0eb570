"""The held-out quality of a session's model: each query is judged, exactly, by the model that never saw it.

Queries are processed in batches, so a rough curve over alpha appears after the first batches and gets more precise; a
newer state of the session stops the work on an older one. Preferences of a query are held out with it. Queries that
were forgotten, or have no labels, are judged by the full model, which never saw them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg

from ..core.features import Features
from ..core.preferences import QueryPreferences
from ..core.queries import Batch, Queries
from ..core.ridge import held_out
from ..core.signs import signed_solution
from ..metrics import get_metric, standard_error
from ..problems.signed import SameZeros
from .fit import Fit
from .state import GAINS, Preference, State
from .sums import gains

MOST_ROWS = 2048  # rows of a batch
Weights = Callable[[np.ndarray, np.ndarray], np.ndarray]  # loss rows (g, l, r) and targets (g, l, 1) -> (g, r, k)


@dataclass
class Quality:
    """Values of metrics by query and alpha, as far as they are computed."""

    alphas: np.ndarray  # (k,)
    values: dict[str, np.ndarray]  # metric -> (q, k), NaN if undefined or not computed yet
    gap: np.ndarray  # (q,) the largest difference of grades of a pair in the wrong order, at the last alpha
    done: float = 0.0  # share of the queries that are done

    @property
    def nbytes(self) -> int:
        """Memory of the values."""
        return self.gap.nbytes + sum(values.nbytes for values in self.values.values())

    def mean(self, metric: str) -> np.ndarray:
        """(k,) means over the queries computed so far."""
        values = self.values[metric]
        defined = ~np.isnan(values).any(axis=1)
        return values[defined].mean(axis=0) if defined.any() else np.full(values.shape[1], np.nan)

    def error(self, metric: str) -> np.ndarray:
        """(k,) the standard errors of the means."""
        return np.atleast_1d(standard_error(self.values[metric]))


@dataclass(frozen=True)
class HoldOutJudge:
    """Everything that hold-out needs for one state; immutable."""

    X: Any
    features: Features
    queries: Queries
    fit: Fit
    state: State
    labels: np.ndarray  # (m,) grades of all queries, NaN where there is none
    y: np.ndarray  # (m,) the grades used for training
    pairs: dict[int, list[Preference]] = field(default_factory=dict)  # by query
    problems: dict[float, SameZeros] = field(default_factory=dict)  # by alpha, with sign constraints

    def quality(
        self,
        alphas: np.ndarray,
        metrics: Sequence[str],
        report: Callable[[Quality], bool] | None = None,
    ) -> Quality:
        """The quality at some alphas; `report` is called with progress and returns False to stop."""
        q = len(self.queries)
        found = Quality(alphas, {name: np.full((q, len(alphas)), np.nan) for name in metrics}, np.zeros(q))
        parts = self._parts()
        total, seen = sum(len(rows) for _, rows in parts), 0
        for learned, rows in parts:
            scores = self._held_out(rows, alphas) if learned else self._plain(rows, alphas)
            self._judge(found, rows, scores)
            seen += len(rows)
            found.done = seen / total
            if report is not None and not report(found):
                break
        if not parts:
            found.done = 1.0
        return found

    def _parts(self) -> list[tuple[bool, np.ndarray]]:
        """Batches of rows of whole queries in random order, and whether they are used for training."""
        judged = ~np.isnan(self.labels)
        learned = self.queries.sum(~np.isnan(self.y)) > 0
        some = np.flatnonzero(self.queries.sum(judged) > 0)
        parts: list[tuple[bool, np.ndarray]] = []
        rng = np.random.default_rng(0)
        for seen in (True, False):
            chosen = rng.permutation(some[learned[some] == seen])
            sizes = np.cumsum(self.queries.sizes[chosen])
            cuts = np.unique(np.searchsorted(sizes, np.arange(MOST_ROWS, sizes[-1:].sum(), MOST_ROWS), side="right"))
            for part in np.split(chosen, cuts):
                if len(part):
                    rows = np.concatenate([self.queries.rows(int(query)) for query in part])
                    parts.append((seen, rows[judged[rows]]))
        return parts

    def _judge(self, found: Quality, rows: np.ndarray, scores: np.ndarray) -> None:
        queries, labels = Queries.of(self.queries.codes[rows]), self.labels[rows]
        for name, values in found.values.items():
            try:
                values[queries.labels] = get_metric(name).per_query(labels, scores, queries)
            except ValueError:  # the metric is not defined for these labels
                continue
        found.gap[queries.labels] = worst_gaps(labels, scores[:, -1], queries)

    def _plain(self, rows: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        coefs = np.column_stack([self.fit.coef(float(alpha)) for alpha in alphas])
        return np.asarray(self.features.reader(self.X)()(rows) @ coefs)

    def _held_out(self, rows: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """(len(rows), k) scores of rows of whole queries by the models without each query."""
        fit, intercept = self.fit, self.state.regression > 0
        if fit.signs is not None:
            problems = [self._signed(float(alpha), intercept) for alpha in alphas]
            basis = fit.expanded(np.eye(len(fit.on)))
            return self._held_out_along(rows, len(alphas), basis, lambda B, goal: _signed_weights(problems, B, goal))
        path = fit.path
        D, z = path.inverse(alphas), path.z
        if intercept:  # an unpenalised direction
            D, z = np.vstack([D, np.ones_like(D[:1])]), np.vstack([z, np.zeros_like(z[:1])])

        def weights(B: np.ndarray, goal: np.ndarray) -> np.ndarray:
            """Held-out weights, zero if a query alone determines some direction."""
            return np.nan_to_num(held_out(B, goal, D, z, complete=False))

        return self._held_out_along(rows, len(alphas), path.basis, weights)

    def _signed(self, alpha: float, intercept: bool) -> SameZeros:
        """The sign-constrained problem at an alpha, set up once; an intercept is a direction of unit weight."""
        if alpha not in self.problems:
            gram, c, signs = self.fit.reduced.gram, self.fit.reduced.cross[:, 0], self.fit.signs
            assert signs is not None
            M = gram + alpha * np.eye(len(gram))
            if intercept:
                M, c, signs = linalg.block_diag(M, 1.0), np.append(c, 0.0), np.append(signs, 0)
            self.problems[alpha] = SameZeros(M, c, signed_solution(M, c, signs), signs)
        return self.problems[alpha]

    def _held_out_along(self, rows: np.ndarray, k: int, basis: np.ndarray, weights: Weights) -> np.ndarray:
        """Held-out scores of a batch of queries, given `weights` in the coordinates of a basis."""
        state, sums = self.state, self.fit.sums
        labels, queries = self.y[rows], Queries.of(self.queries.codes[rows])
        F = QueryPreferences(
            queries,
            None if state.tied_pairs else labels,
            weighting=state.weighting,
            regression=state.regression,
        )
        target = gains(labels)[:, [GAINS.index(state.gain)]] - sums.target_mean
        loss_target = F @ target
        read = self.features.reader(self.X)()
        scores = np.empty((len(rows), k))
        for batch in queries.batches(MOST_ROWS):
            for part in self._with_pairs(batch, queries):
                V = np.array(read(rows[np.arange(len(rows))[part.rows]]), dtype=np.float64)
                mean = F.means.centre(V, part)
                V, mean = V @ basis, (mean - sums.mean) @ basis
                B, goal = self._loss_rows(F, part, V, mean, loss_target, basis, float(sums.weight))
                C = weights(B, goal)
                scores[part.rows] = self._scores(F, V, mean, C, part, float(sums.weight)).reshape(-1, k)
        return scores + sums.target_mean[0] if F.beta > 0 else scores

    def _with_pairs(self, batch: Batch, queries: Queries) -> list[Batch]:
        """The batch, with queries that have preferences taken into batches of their own."""
        special = np.array([int(queries.labels[q]) in self.pairs for q in batch.queries])
        if not special.any():
            return [batch]
        groups = [batch.queries[~special], *([q] for q in batch.queries[special])]
        found = []
        for group in groups:
            if len(group):
                rows = np.concatenate([queries.rows(int(q)) for q in group])
                found.append(Batch(np.asarray(group), rows, batch.length))
        return found

    def _loss_rows(
        self,
        F: QueryPreferences,
        batch: Batch,
        V: np.ndarray,
        mean: np.ndarray,
        target: np.ndarray,
        basis: np.ndarray,
        weight: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The loss rows of a batch in the coordinates of the path, and their targets."""
        B = F.scale(V, batch, mean, out=np.empty_like(V))
        if F.beta > 0:
            B = np.column_stack([B, np.full(len(B), 1 / np.sqrt(weight))])
        B3, goal = B.reshape(len(batch.queries), batch.length, -1), batch.stack(target)
        pairs = self.pairs.get(int(F.queries.labels[batch.queries[0]]), []) if len(batch.queries) == 1 else []
        if not pairs:
            return B3, goal
        ends = self.features.reader(self.X)()(np.array([(p.above, p.below) for p in pairs]).ravel())
        ends = np.asarray(ends, dtype=np.float64)
        root = np.sqrt([p.weight for p in pairs])[:, None]
        rows = root * ((ends[::2] - ends[1::2]) @ basis)
        rows = np.pad(rows, ((0, 0), (0, B.shape[1] - rows.shape[1])))
        margins = root * np.array([[p.margin] for p in pairs])
        return np.concatenate([B3, rows[None]], axis=1), np.concatenate([goal, margins[None]], axis=1)

    @staticmethod
    def _scores(
        F: QueryPreferences, V: np.ndarray, mean: np.ndarray, C: np.ndarray, batch: Batch, weight: float
    ) -> np.ndarray:
        r = V.shape[1]
        held = V.reshape(len(batch.queries), batch.length, r) @ C[:, :r]
        held += mean[:, None] @ C[:, :r]
        if F.beta > 0:
            held += C[:, r:] / np.sqrt(F.beta * weight)
        return held


def _signed_weights(problems: Sequence[SameZeros], B: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """(g, r, k) held-out weights at every alpha."""
    return np.stack([problem.without(B, goal[:, :, 0]) for problem in problems], axis=2)


def worst_gaps(y: np.ndarray, scores: np.ndarray, queries: Queries) -> np.ndarray:
    """(q,) the largest difference of grades between two documents in the wrong order; 0 if none are."""
    gaps = np.zeros(len(queries))
    for batch in queries.batches():
        order = np.argsort(-batch.stack(scores), axis=1, kind="stable")
        ranked = np.take_along_axis(batch.stack(y), order, axis=1)
        gaps[batch.queries] = (ranked - np.minimum.accumulate(ranked, axis=1)).max(axis=1)
    return gaps
