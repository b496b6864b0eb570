"""The exact model of any state of a session: its labels, weights at every alpha, scores and reasons.

Recent results are cached, so returning to a state costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..core.features import Features, Identity, Nystroem
from ..estimators import RankRLS
from ..estimators.pipelines import predicted, ranker_of, scaled, scalers_of
from ..system.types import Matrix
from .documents import DocumentTable
from .fit import Fit, fitted
from .recent import KEPT_BYTES, Recent
from .state import Preference, Snapshot, State
from .sums import KEYS, Sums
from .why import line_integral

ENOUGH = 0.05  # a preference of just enough weight reaches this share of its margin
PREPARED = 600  # up to this many columns, the sums for all switches are computed in advance


@dataclass(frozen=True)
class Start:
    """The start of a session: rows as the ranker sees them, its features, and the first settings."""

    X: Matrix
    features: Features
    settings: dict[str, Any]
    scores: np.ndarray | None  # (m,) scores of all rows by the given model

    @classmethod
    def of(cls, documents: DocumentTable, model: BaseEstimator | None) -> Start:
        """From a fitted ranker or pipeline, or from the defaults."""
        X, queries = documents.X, documents.queries
        ranker = None if model is None else ranker_of(model)
        ours = ranker if isinstance(ranker, RankRLS) else None
        params = (RankRLS() if ours is None else ours).get_params(deep=False)
        settings = State().settings() | {"weighting": params["weighting"], "regression": float(params["regression"])}
        settings["tied_pairs"] = bool(getattr(ranker, "tied_pairs_", params["tied_pairs"] is True))
        settings["scale"] = "none" if params.get("scale", "auto") is None else "auto"
        if model is not None and scalers_of(model):
            X = np.asarray(scaled(model, X, queries.codes))
            settings["scale"] = "none"
        features: Features = Identity(X.shape[1])
        if ours is not None and hasattr(ours, "X_fit_"):
            features = Nystroem(ours.kernel_, np.asarray(ours.X_fit_))
        if ours is not None and hasattr(ours, "alpha_"):
            settings["alpha"] = float(ours.alpha_)
        given = None if model is None else np.asarray(predicted(model, documents.X, queries.codes), dtype=np.float64)
        return cls(X, features, settings, given)


class Models:
    """Models of the states of a session, all from the same sums."""

    def __init__(self, documents: DocumentTable, start: Start):
        self.documents, self.X, self.features = documents, start.X, start.features
        self.given = start.scores
        self.sums = Sums(start.X, start.features, documents.queries)
        self._fits: Recent[Fit] = Recent(lambda fit: fit.nbytes, KEPT_BYTES)
        self._judged: Recent[np.ndarray] = Recent(lambda counts: counts.nbytes, KEPT_BYTES, most=2)
        self._labels: Recent[np.ndarray] = Recent(lambda y: y.nbytes, KEPT_BYTES, most=6)

    @property
    def linear(self) -> bool:
        """True if the model has a weight for each feature."""
        return self.features.W is None

    # ---------------------------------------------------------------- labels

    def labels(self, state: State) -> np.ndarray:
        """(m,) the grades of all rows, NaN for rows without one."""
        if not state.grades:
            return self.documents.y
        return self._labels.made(state.grades, lambda: self._graded(state))

    def _graded(self, state: State) -> np.ndarray:
        y = self.documents.y.copy()
        rows, grades = zip(*state.grades.pairs(), strict=True)
        y[list(rows)] = [np.nan if grade is None else grade for grade in grades]
        return y

    def learned_labels(self, state: State) -> np.ndarray:
        """(m,) the grades that a model learns from, without queries that are left out."""
        y = self.labels(state)
        if not state.forgotten:
            return y

        def left() -> np.ndarray:
            gone = np.zeros(len(self.documents.queries), dtype=bool)
            gone[sorted(state.forgotten)] = True
            return np.where(gone[self.documents.queries.codes], np.nan, y)

        return self._labels.made((state.grades, state.forgotten), left)

    def learned_pairs(self, state: State) -> dict[int, list[Preference]]:
        """The preferences that a model learns from, by query."""
        pairs: dict[int, list[Preference]] = {}
        for preference in state.preferences:
            query = int(self.documents.queries.codes[preference.above])
            if query not in state.forgotten:
                pairs.setdefault(query, []).append(preference)
        return pairs

    def levels(self, state: State) -> dict[float, int]:
        """How many documents have each grade."""
        found = dict(self.documents.levels)
        for row, grade in state.grades.pairs():
            before = float(self.documents.y[row])
            if before == before:
                found[before] -= 1
            if grade is not None:
                found[grade] = found.get(grade, 0) + 1
        return {grade: count for grade, count in sorted(found.items()) if count}

    def judged(self, state: State) -> np.ndarray:
        """(q,) how many documents of each query have a grade."""
        count = lambda: self.documents.queries.sum(~np.isnan(self.labels(state)))
        return self._judged.made(state.grades, count)

    # ---------------------------------------------------------------- weights and scores

    def fit(self, state: State) -> Fit:
        """The model of a state at every alpha."""
        return self._fits.made(state.structure(), lambda: self._fitted(state))

    def _fitted(self, state: State) -> Fit:
        y = self.learned_labels(state)
        judged, sums = self.sums.of(state, y)
        deviation = (judged if judged.n_rows else sums).deviation
        few = judged.n_rows + len(state.preferences) < self.features.n_columns - len(state.off)
        rows = partial(self.sums.rows, state, y, sums.mean, sums.target_mean) if few else None
        return fitted(sums, self.features.W, state, deviation, rows)

    def coef(self, state: State) -> np.ndarray:
        """(columns of Phi,) the weights of a state's model."""
        return self.fit(state).coef(state.alpha)

    def phi(self, rows: np.ndarray) -> np.ndarray:
        """The features of some rows, in which the model is linear."""
        return np.asarray(self.features.reader(self.X)()(rows), dtype=np.float64)

    def scores(self, which: State | Snapshot, rows: np.ndarray) -> np.ndarray:
        """Scores of some rows by a state or a snapshot."""
        if isinstance(which, Snapshot):
            if which.state is None:
                assert self.given is not None
                return self.given[rows]
            which = which.state
        coef = self.coef(which)
        return self.phi(rows) @ coef + self.fit(which).intercept(coef)

    @property
    def prepared(self) -> bool:
        """True if every switch responds at once: its sums are computed, or too large to compute in advance."""
        return self.features.n_columns > PREPARED or all(self.sums.known(key) for key in KEYS)

    # ---------------------------------------------------------------- pairs

    def enough(self, state: State, above: int, below: int, margin: float | None = None) -> dict[str, float]:
        """The margin m and the smallest weight w with which a preference puts one document above the other.

        Adding a row d of weight w turns the difference D of two scores into (D + w h m) / (1 + w h), where
        h = d'(A'A + alpha)^-1 d; so D becomes t for w = (t - D) / (h (m - t)). t is a small share of m, just enough to
        be above. Documents that are already in this order keep at least their distance.
        """
        fit, pair = self.fit(state), self.phi(np.array([above, below]))
        direction = pair[0] - pair[1]
        now = float(direction @ fit.coef(state.alpha))
        h = fit.leverage(state.alpha, direction)
        m = float(margin) if isinstance(margin, int | float) and margin > 0 else max(1.0, now)
        if not h > 0:
            return {"margin": m, "weight": 1.0}
        t = ENOUGH * m
        return {"margin": m, "weight": max((t - now) / (h * (m - t)), 0.01 / h)}

    def why(self, state: State, a: int, b: int) -> dict[str, Any]:
        """What each feature adds to score(a) - score(b)."""
        coef, Z = self.coef(state), np.asarray(self.X[[a, b]], dtype=np.float64)
        if self.linear:
            parts = coef * (Z[0] - Z[1])
        else:
            kernel_scores = lambda rows: np.asarray(self.features.reader(rows)()(slice(0, len(rows))) @ coef)
            parts = line_integral(kernel_scores, Z[0], Z[1])
        raw = np.asarray(self.documents.X[[a, b]], dtype=np.float64)
        return {"parts": parts, "a": raw[0], "b": raw[1], "total": float(parts.sum())}
