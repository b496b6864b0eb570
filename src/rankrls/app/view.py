"""What a page shows at one moment: everything in a view belongs to the same step and version of the session.

Other clients may change the session while an answer is made; a view keeps its step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..metrics import METRICS, get_metric
from .compare import known_mean
from .fit import Fit
from .outputs import OUTPUTS
from .quality import best_alpha
from .session import Session
from .state import GAINS, SCALES, WEIGHTINGS, Snapshot, State, Step
from .wire import AnswerPart, cut

MOST_SHOWN = 400  # documents of a query sent to the page
MOST_CELLS = 600_000  # numbers sent so that the page can follow the alpha slider without the server
RECENT = 20  # actions listed
CUTOFFS = {"ndcg": (1, 3, 5, 10, 20), "precision": (1, 3, 5, 10), "recall": (5, 10)}


@dataclass(frozen=True)
class PageView:
    """A session at one moment, for a page."""

    session: Session
    step: Step
    version: int
    undo: str | None
    redo: str | None
    recent: list[str]  # the latest actions in words
    last: State | None  # the state before the last action
    baseline: Snapshot | None  # the snapshot with which ranks and gains are compared

    @classmethod
    def of(cls, session: Session, baseline: int = 1) -> PageView:
        """The view of the current moment."""
        with session.lock:
            history, step = session.history, session.step
            recent = history.labels[max(0, history.position - RECENT) : history.position]
            last = history.steps[history.position - 1].state if history.position else None
            other = next((kept for kept in step.snapshots if kept.id == baseline), None)
            return cls(session, step, session.version, history.undoes, history.redoes, recent, last, other)

    @property
    def state(self) -> State:
        """The state of the model."""
        return self.step.state

    @property
    def fit(self) -> Fit:
        """The model at every alpha."""
        return self.session.models.fit(self.state)

    # ---------------------------------------------------------------- settings and quality

    def summary(self) -> dict[str, Any]:
        """Everything small: settings, counts, snapshots, main metrics, history."""
        session, state = self.session, self.state
        levels, alphas = session.models.levels(state), self.fit.alphas()
        return {
            "version": self.version,
            "run": session.run,
            "name": session.documents.name,
            "read_only": session.read_only,
            "linear": session.models.linear,
            "rows": session.limits.rows,
            "features": session.limits.features,
            "queries": session.limits.queries,
            "judged": sum(levels.values()),
            "learned": self.fit.sums.n_rows > 0,
            "prepared": session.models.prepared,
            "levels": list(levels) if len(levels) <= 20 else None,
            "grade_range": [min(levels), max(levels)] if levels else [0, 4],
            "settings": state.settings(),
            "choices": {"weighting": WEIGHTINGS, "gain": GAINS, "scale": SCALES},
            "alpha_range": [float(alphas[0]), float(alphas[-1])],
            "off": sorted(state.off),
            "signs": state.signs,
            "forgotten": sorted(state.forgotten),
            "preferences": self._preferences(),
            "available_metrics": metric_names(),
            "undo": self.undo,
            "redo": self.redo,
            "history": self.recent,
            "exports": list(OUTPUTS),
            **self.quality(),
        }

    def quality(self) -> dict[str, Any]:
        """Results of background work: the metrics now, before the last action, and of every snapshot."""
        return {
            "headline": self._headline(),
            "before": self._before(),
            "snapshots": [self._snapshot(kept) for kept in self.step.snapshots],
        }

    def curve(self) -> AnswerPart:
        """The held-out curve as far as it is known, and the quality at the current alpha."""
        session, metric = self.session, self.state.metrics[0]
        _, grid = session.quality.known(self.state)
        header = {
            "metric": metric,
            "done": 0.0 if grid is None else grid.done,
            "version": self.version,
            "run": session.run,
            "best": None if grid is None else best_alpha(grid, metric),
            "greater_is_better": get_metric(metric).greater_is_better,
            **self.quality(),
        }
        if grid is None:
            return AnswerPart(header, {"alphas": self.fit.alphas()})
        return AnswerPart(header, {"alphas": grid.alphas, "mean": grid.mean(metric), "error": grid.error(metric)})

    def _headline(self) -> dict[str, Any]:
        point, _ = self.session.quality.known(self.state)
        shown: list[dict[str, Any]] = []
        for name in self.state.metrics:
            better = get_metric(name).greater_is_better
            one: dict[str, Any] = {"name": name, "greater_is_better": better, "mean": None, "error": None}
            if point is not None:
                one |= {"mean": float(point.mean(name)[0]), "error": float(point.error(name)[0])}
            shown.append(one)
        return {"metrics": shown, "done": 0.0 if point is None else point.done}

    def _before(self) -> dict[str, Any] | None:
        """The first metric before the last action, if known, to show that action's effect."""
        if self.last is None or self.last == self.state:  # a snapshot changes nothing
            return None
        metrics = self.state.metrics
        point, _ = self.session.quality.known(replace(self.last, metrics=metrics))
        if point is None or point.done < 1:
            return None
        return {"action": self.undo, "mean": float(point.mean(metrics[0])[0])}

    def _snapshot(self, kept: Snapshot) -> dict[str, Any]:
        record: dict[str, Any] = {"id": kept.id, "name": kept.name, "outside": kept.state is None}
        record["means"] = {metric: known_mean(self._values(kept, metric)) for metric in self.state.metrics}
        if kept.state is not None:
            record["alpha"] = kept.state.alpha
            record["current"] = kept.state == self.state
        return record

    def _values(self, kept: Snapshot | None, metric: str) -> np.ndarray:
        """(q,) a metric of every query for a snapshot, as far as it is known."""
        if kept is not None and kept.state is None:
            return self.session.quality.given(self.state, metric)
        point = None
        if kept is not None and kept.state is not None:
            point, _ = self.session.quality.known(replace(kept.state, metrics=self.state.metrics))
        return np.full(self.session.limits.queries, np.nan) if point is None else point.values[metric][:, 0]

    # ---------------------------------------------------------------- lists

    def queries(self, *, names: bool = False) -> AnswerPart:
        """Columns of the list of queries; their names only on request."""
        session, state = self.session, self.state
        data, q, metric = session.documents, session.limits.queries, state.metrics[0]
        point, _ = session.quality.known(state)
        score = np.full(q, np.nan) if point is None else point.values[metric][:, 0]
        sign = 1 if get_metric(metric).greater_is_better else -1
        flags = np.zeros(q, dtype=np.uint8)
        flags[sorted(state.forgotten)] |= 1
        flags[[int(data.queries.codes[p.above]) for p in state.preferences]] |= 2
        flags[data.queries.codes[list(state.grades)]] |= 4
        header: dict[str, Any] = {"metric": metric, "version": self.version}
        if names:
            header["ids"] = [cut(name) for name in data.query_ids]
        columns = {
            "score": score.astype(np.float32),
            "gain": (sign * (score - self._values(self.baseline, metric))).astype(np.float32),
            "gap": (np.zeros(q) if point is None else point.gap).astype(np.float32),
            "size": data.queries.sizes.astype(np.int32),
            "judged": session.models.judged(state).astype(np.int32),
            "flags": flags,
        }
        return AnswerPart(header, columns)

    def documents(self, query: int, alpha: float | None = None) -> AnswerPart:
        """The ranked documents of a query, with what the page needs to follow alpha without the server."""
        session, fit = self.session, self.fit
        alpha = self.state.alpha if alpha is None else alpha
        rows = session.documents.queries.rows(query)
        phi = session.models.phi(rows)
        phi = phi - (fit.sums.mean if fit.sums.beta > 0 else phi.mean(axis=0))
        offset = float(fit.sums.target_mean[0]) if fit.sums.beta > 0 else 0.0
        scores = phi @ fit.coef(alpha) + offset
        shown = np.argsort(-scores, kind="stable")[:MOST_SHOWN]
        arrays = {"score": scores[shown], "rank_before": self._ranks_before(rows)[shown].astype(np.int32)}
        header = {
            "query": query,
            "id": cut(session.documents.query_ids[query]),
            "version": self.version,
            "alpha": alpha,
            "total": len(rows),
            "offset": offset,
            "forgotten": query in self.state.forgotten,
            "documents": [self.document(int(row)) for row in rows[shown]],
        }
        if fit.has_path and fit.signs is None:
            B = phi[shown] @ fit.path.basis
            arrays["spread"] = fit.deviation(B, alpha)
            if B.size <= MOST_CELLS:
                free = fit.sums.n_rows - fit.sums.n_queries
                header["path"] = {"square": float(fit.sums.square[0]), "free": free}
                arrays |= {"B": B, "d": fit.path.d, "z": fit.path.z[:, 0]}
        return AnswerPart(header, arrays)

    def weights(self, alpha: float | None = None, *, names: bool = False) -> AnswerPart:
        """The weights of the features, and their path if it is small."""
        session, fit = self.session, self.fit
        header: dict[str, Any] = {"linear": session.models.linear, "version": self.version}
        if names:
            header["names"] = [cut(name) for name in session.documents.feature_names]
        if not session.models.linear:
            return AnswerPart(header)
        coef = fit.coef(self.state.alpha if alpha is None else alpha)
        arrays = {"coef": coef, "unit": fit.unit}
        if fit.has_path and fit.signs is None and fit.path.basis.size <= MOST_CELLS:
            arrays |= {"basis": fit.path.basis, "d": fit.path.d, "z": fit.path.z[:, 0]}
        return AnswerPart(header, arrays)

    def document(self, row: int) -> dict[str, Any]:
        """A document with its grade."""
        data, grades = self.session.documents, self.state.grades
        given = float(data.y[row])
        grade = grades.get(row, None if math.isnan(given) else given)
        record = {"row": row, "id": cut(data.doc_id(row)), "title": cut(data.title(row)), "grade": grade}
        return record | {"changed": row in grades, "given": None if math.isnan(given) else given}

    def _ranks_before(self, rows: np.ndarray) -> np.ndarray:
        """Ranks in the baseline; 0 if there is none."""
        if self.baseline is None:
            return np.zeros(len(rows))
        order = np.argsort(-self.session.models.scores(self.baseline, rows), kind="stable")
        ranks = np.empty(len(rows))
        ranks[order] = np.arange(1, len(rows) + 1)
        return ranks

    def _preferences(self) -> list[dict[str, Any]]:
        preferences = self.state.preferences
        if not preferences:
            return []
        ends = np.array([(p.below, p.above) for p in preferences])
        difference = np.diff(self.session.models.scores(self.state, ends.ravel()).reshape(-1, 2), axis=1)[:, 0]
        return [
            {
                "id": p.id,
                "above": self.document(p.above),
                "below": self.document(p.below),
                "weight": p.weight,
                "margin": p.margin,
                "query": int(self.session.documents.queries.codes[p.above]),
                "difference": float(d),
                "learned": int(self.session.documents.queries.codes[p.above]) not in self.state.forgotten,
            }
            for p, d in zip(preferences, difference, strict=True)
        ]


def metric_names() -> list[str]:
    """All metrics of the library, with common cutoffs."""
    names = []
    for base in METRICS:
        names.append(base)
        names += [f"{base}@{k}" for k in CUTOFFS.get(base, ())]
    return names
