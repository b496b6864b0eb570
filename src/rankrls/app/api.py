"""What the page asks for, whatever carries it: HTTP for a browser, messages for a notebook."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..metrics import METRICS, get_metric
from .compare import compare, values_of
from .inputs import read_judgments
from .outputs import OUTPUTS
from .session import ReadOnlyError, Session, best_alpha
from .state import GAINS, SCALES, WEIGHTINGS, ActionError, Snapshot, State
from .wire import Answer, FormPart, as_json, bundle, cut

MOST_SHOWN = 400  # documents of a query that are sent
MOST_CELLS = 600_000  # numbers with which a page follows the slider by itself
RECENT = 20  # actions that are listed
CUTOFFS = {"ndcg": (1, 3, 5, 10, 20), "precision": (1, 3, 5, 10), "recall": (5, 10)}


class Api:
    """Answers about one session."""

    def __init__(self, session: Session):
        self.session = session
        self.reads: dict[str, Callable[[Mapping[str, str]], Answer]] = {
            "state": self.state,
            "queries": self.queries,
            "query": self.query,
            "model": self.model,
            "view": self.view,
            "curve": self.curve,
            "why": self.why,
            "enough": self.enough,
            "compare": self.compare,
            "export": self.export,
        }
        self.writes: dict[str, Callable[[Mapping[str, str], bytes], Answer]] = {
            "do": self.do,
            "judgments": self.judgments,
        }

    def answer(self, method: str, path: str, params: Mapping[str, str], body: bytes = b"") -> Answer:
        """The answer to a request; an error is an answer too."""
        try:
            if method == "POST" and path in self.writes:
                return self.writes[path](params, body)
            if method == "GET" and path in self.reads:
                return self.reads[path](params)
            return as_json({"error": f"there is no {method} {path}"}, 404)
        except ReadOnlyError as error:
            return as_json({"error": str(error)}, 403)
        except (ActionError, KeyError, ValueError, ImportError) as error:
            return as_json({"error": str(error) or type(error).__name__}, 400)

    # ---------------------------------------------------------------- reading

    def state(self, params: Mapping[str, str]) -> Answer:
        """All that is small: settings, counts, snapshots, headline metrics, history."""
        return as_json(self._state())

    def _state(self) -> dict[str, Any]:
        session = self.session
        with session._lock:
            step, version, history = session.step, session.version, session.history
            undo, redo, before = history.undoes, history.redoes, self._before()
            recent = history.labels[max(0, history.position - RECENT) : history.position]
        state, data = step.state, session.documents
        levels, alphas = session.levels(state), session.fit(state).alphas()
        return {
            "version": version,
            "run": session.run,
            "name": data.name,
            "read_only": session.read_only,
            "linear": session.features.W is None,
            "rows": session.limits.rows,
            "features": session.limits.features,
            "queries": session.limits.queries,
            "judged": sum(levels.values()),
            "prepared": session.prepared,
            "levels": list(levels) if len(levels) <= 20 else None,
            "grade_range": [min(levels), max(levels)] if levels else [0, 4],
            "settings": state.settings(),
            "choices": {"weighting": WEIGHTINGS, "gain": GAINS, "scale": SCALES},
            "alpha_range": [float(alphas[0]), float(alphas[-1])],
            "off": sorted(state.off),
            "signs": state.signs,
            "forgotten": sorted(state.forgotten),
            "preferences": self._preferences(state),
            "snapshots": [self._snapshot(kept, state) for kept in step.snapshots],
            "headline": self._headline(state),
            "available_metrics": _metric_names(),
            "undo": undo,
            "redo": redo,
            "history": recent,
            "before": before,
            "exports": list(OUTPUTS),
        }

    def queries(self, params: Mapping[str, str]) -> Answer:
        """Columns of the list of queries; their names only if asked for."""
        session, state = self.session, self.session.state
        data, q = session.documents, session.limits.queries
        point, _ = session.known(state)
        metric = state.metrics[0]
        score = np.full(q, np.nan) if point is None else point.values[metric][:, 0]
        sign = 1 if get_metric(metric).greater_is_better else -1
        other = self._known_values(self._baseline(params), metric)
        flags = np.zeros(q, dtype=np.uint8)
        flags[sorted(state.forgotten)] |= 1
        flags[[int(data.queries.codes[p.above]) for p in state.preferences]] |= 2
        flags[data.queries.codes[list(state.grades)]] |= 4
        judged = session.judged(state)
        header: dict[str, Any] = {"metric": metric, "version": session.version}
        if params.get("names"):
            header["ids"] = [cut(name) for name in data.query_ids]
        columns = {
            "score": score.astype(np.float32),
            "gain": (sign * (score - other)).astype(np.float32),
            "gap": (np.zeros(q) if point is None else point.gap).astype(np.float32),
            "size": data.queries.sizes.astype(np.int32),
            "judged": judged.astype(np.int32),
            "flags": flags,
        }
        return bundle(header, columns)

    def query(self, params: Mapping[str, str]) -> Answer:
        """The ranked documents of a query, with what a page needs to follow alpha by itself."""
        found = self._list(params)
        return bundle(found.header, found.arrays)

    def _list(self, params: Mapping[str, str]) -> FormPart:
        session, state = self.session, self.session.state
        query = _index(params, "query", session.limits.queries)
        alpha = float(params["alpha"]) if "alpha" in params else state.alpha
        rows = session.documents.queries.rows(query)
        fit, phi = session.fit(state), session.phi(rows)
        coef = fit.coef(alpha)
        centre = fit.sums.mean if fit.sums.beta > 0 else phi.mean(axis=0)
        phi = phi - centre
        offset = float(fit.sums.target_mean[0]) if fit.sums.beta > 0 else 0.0
        scores = phi @ coef + offset
        shown = np.argsort(-scores, kind="stable")[:MOST_SHOWN]
        arrays = {"score": scores[shown], "rank_before": self._ranks_before(params, rows)[shown].astype(np.int32)}
        header = {
            "query": query,
            "id": cut(session.documents.query_ids[query]),
            "version": session.version,
            "alpha": alpha,
            "total": len(rows),
            "offset": offset,
            "forgotten": query in state.forgotten,
            "documents": [self._document(int(row), state) for row in rows[shown]],
        }
        if fit.has_path and fit.signs is None:
            B = phi[shown] @ fit.path.basis
            arrays["spread"] = _deviation(fit, B, alpha)
            if B.size <= MOST_CELLS:
                free = fit.sums.n_rows - fit.sums.n_queries
                header["path"] = {"square": float(fit.sums.square[0]), "free": free}
                arrays |= {"B": B, "d": fit.path.d, "z": fit.path.z[:, 0]}
        return FormPart(header, arrays)

    def model(self, params: Mapping[str, str]) -> Answer:
        """The weights of the features, and their path where it is short."""
        found = self._weights({"names": "1", **params})
        return bundle(found.header, found.arrays)

    def _weights(self, params: Mapping[str, str]) -> FormPart:
        session, state = self.session, self.session.state
        fit = session.fit(state)
        header: dict[str, Any] = {"linear": session.features.W is None, "version": session.version}
        if params.get("names"):
            header["names"] = [cut(name) for name in session.documents.feature_names]
        if session.features.W is not None:
            return FormPart(header, {})
        alpha = float(params["alpha"]) if "alpha" in params else state.alpha
        coef, unit = fit.coef(alpha), np.sqrt(np.diag(fit.sums.gram).clip(min=0) / max(1, fit.sums.n_rows))
        arrays = {"coef": coef, "unit": unit}
        if fit.has_path and fit.signs is None and fit.path.basis.size <= MOST_CELLS:
            arrays |= {"basis": fit.path.basis, "d": fit.path.d, "z": fit.path.z[:, 0]}
        return FormPart(header, arrays)

    def view(self, params: Mapping[str, str]) -> Answer:
        """State, documents of a query and weights in one answer: what a change changes at once."""
        parts = {"state": FormPart(self._state(), {}), "list": self._list(params), "weights": self._weights(params)}
        arrays = {f"{key}.{name}": array for key, part in parts.items() for name, array in part.arrays.items()}
        return bundle({key: part.header for key, part in parts.items()}, arrays)

    def curve(self, params: Mapping[str, str]) -> Answer:
        """The held-out curve as far as it is known, that of the baseline, and the values at the present alpha."""
        session, state = self.session, self.session.state
        _, grid = session.known(state)
        metric = state.metrics[0]
        header = {
            "metric": metric,
            "done": 0.0 if grid is None else grid.done,
            "version": session.version,
            "run": session.run,
            "best": None if grid is None else best_alpha(grid, metric),
            "headline": self._headline(state),
            "greater_is_better": get_metric(metric).greater_is_better,
        }
        if grid is None:
            return bundle(header, {"alphas": session.fit(state).alphas()})
        return bundle(header, {"alphas": grid.alphas, "mean": grid.mean(metric), "error": grid.error(metric)})

    def why(self, params: Mapping[str, str]) -> Answer:
        """What each feature adds to the difference of two documents' scores."""
        session = self.session
        a, b = (_index(params, name, session.limits.rows) for name in ("a", "b"))
        found = session.why(a, b)
        order = np.argsort(-np.abs(found["parts"]), kind="stable")
        order = order[found["parts"][order] != 0]
        names = session.documents.feature_names
        bars = [
            {"feature": cut(names[j]), "adds": found["parts"][j], "a": found["a"][j], "b": found["b"][j]}
            for j in order[:30]
        ]
        rest = float(found["parts"][order[30:]].sum())
        documents = {k: self._document(row, session.state) for k, row in (("a", a), ("b", b))}
        total = {"total": found["total"], "rest": rest, "left": max(0, len(order) - 30)}
        return as_json({"bars": bars, **total, **documents, "exact": session.features.W is None})

    def enough(self, params: Mapping[str, str]) -> Answer:
        """The margin and the weight a preference needs."""
        a, b = (_index(params, name, self.session.limits.rows) for name in ("above", "below"))
        return as_json(self.session.enough(a, b))

    def compare(self, params: Mapping[str, str]) -> Answer:
        """Snapshots side by side."""
        numbers = [int(part) for part in params.get("of", "").split(",") if part.strip()]
        if len(dict.fromkeys(numbers)) < 2:
            raise ActionError("choose at least two snapshots to compare")
        found = compare(self.session, list(dict.fromkeys(numbers))[:6])
        names = self.session.documents.query_ids
        for pair in found["pairs"]:
            for line in (*pair["gained"], *pair["lost"], *pair["movers"]):
                line["query_id"] = cut(names[line["query"]])
        return as_json(found)

    def export(self, params: Mapping[str, str]) -> Answer:
        """A file to take away."""
        what = params.get("what", "")
        if what not in OUTPUTS:
            raise ActionError(f"there is no export {what!r}; exports: {', '.join(OUTPUTS)}")
        name, kind, content = OUTPUTS[what](self.session)
        return Answer(200, kind, content, name)

    # ---------------------------------------------------------------- writing

    def do(self, params: Mapping[str, str], body: bytes) -> Answer:
        """Carry out an action; with a query to show, answer with the view after it."""
        try:
            action = json.loads(body)
        except ValueError:
            raise ActionError("an action is a JSON object") from None
        if not isinstance(action, dict):
            raise ActionError("an action is a JSON object")
        if action.get("do") == "start":
            raise ActionError("a session starts once")
        version = self.session.do(action)
        return self.view(params) if "query" in params else as_json({"version": version})

    def judgments(self, params: Mapping[str, str], body: bytes) -> Answer:
        """Judgments from a file: CSV query,docid,rating (a rating may be empty), or TREC qrels."""
        rows, unknown = read_judgments(body, self.session.documents.rows_by_name)
        if not rows:
            raise ActionError("the file has no judgment of a document that is here")
        version = self.session.do({"do": "judgments", "rows": rows})
        return as_json({"version": version, "judged": len(rows), "unknown": unknown})

    # ---------------------------------------------------------------- parts

    def _document(self, row: int, state: State) -> dict[str, Any]:
        data = self.session.documents
        given = float(data.y[row])
        grade = state.grades.get(row, None if math.isnan(given) else given)
        record = {"row": row, "id": cut(data.doc_id(row)), "title": cut(data.title(row)), "grade": grade}
        return record | {"changed": row in state.grades, "given": None if math.isnan(given) else given}

    def _baseline(self, params: Mapping[str, str]) -> Snapshot | None:
        number = int(params.get("baseline", "1") or 0)
        return next((kept for kept in self.session.step.snapshots if kept.id == number), None)

    def _ranks_before(self, params: Mapping[str, str], rows: np.ndarray) -> np.ndarray:
        """Places under the baseline; 0 where there is none."""
        baseline = self._baseline(params)
        if baseline is None:
            return np.zeros(len(rows))
        order = np.argsort(-self.session.scores(baseline, rows), kind="stable")
        ranks = np.empty(len(rows))
        ranks[order] = np.arange(1, len(rows) + 1)
        return ranks

    def _known_values(self, kept: Snapshot | None, metric: str) -> np.ndarray:
        missing = np.full(self.session.limits.queries, np.nan)
        if kept is None:
            return missing
        if kept.state is None:
            return values_of(self.session, kept, metric)
        point, _ = self.session.known(replace(kept.state, metrics=self.session.state.metrics))
        return missing if point is None or metric not in point.values else point.values[metric][:, 0]

    def _headline(self, state: State) -> dict[str, Any]:
        """The metrics at the alpha of a state, as far as they are known."""
        point, _ = self.session.known(state)
        shown: list[dict[str, Any]] = []
        for name in state.metrics:
            better = get_metric(name).greater_is_better
            one: dict[str, Any] = {"name": name, "greater_is_better": better, "mean": None, "error": None}
            if point is not None:
                one |= {"mean": float(point.mean(name)[0]), "error": float(point.error(name)[0])}
            shown.append(one)
        return {"metrics": shown, "done": 0.0 if point is None else point.done}

    def _before(self) -> dict[str, Any] | None:
        """The first metric before the last action, where it is known: what that action was worth."""
        session, history = self.session, self.session.history
        if not history.position:
            return None
        metric = session.state.metrics[0]
        last = history.steps[history.position - 1].state
        point, _ = session.known(replace(last, metrics=session.state.metrics))
        if point is None or point.done < 1:
            return None
        return {"action": history.undoes, "mean": float(point.mean(metric)[0])}

    def _snapshot(self, kept: Snapshot, state: State) -> dict[str, Any]:
        record: dict[str, Any] = {"id": kept.id, "name": kept.name, "outside": kept.state is None}
        values = self._known_values(kept, state.metrics[0])
        record["mean"] = float(np.nanmean(values)) if (~np.isnan(values)).any() else None
        if kept.state is not None:
            record["alpha"] = kept.state.alpha
            record["current"] = kept.state == state
        return record

    def _preferences(self, state: State) -> list[dict[str, Any]]:
        session, data = self.session, self.session.documents
        if not state.preferences:
            return []
        ends = np.array([(p.above, p.below) for p in state.preferences])
        difference = np.diff(session.scores(state, ends[:, ::-1].ravel()).reshape(-1, 2), axis=1)[:, 0]
        return [
            {
                "id": p.id,
                "above": self._document(p.above, state),
                "below": self._document(p.below, state),
                "weight": p.weight,
                "margin": p.margin,
                "query": int(data.queries.codes[p.above]),
                "difference": float(d),
            }
            for p, d in zip(state.preferences, difference, strict=True)
        ]


def _deviation(fit: Any, B: np.ndarray, alpha: float) -> np.ndarray:
    """The standard deviation of each score about the mean of its query, given the labels."""
    return fit.noise(alpha) * np.sqrt((B**2) @ (1 / (fit.path.d + alpha)))


def _index(params: Mapping[str, str], name: str, below: int) -> int:
    try:
        value = int(params.get(name, ""))
    except ValueError:
        value = -1
    if not 0 <= value < below:
        raise ActionError(f"{name} must be a whole number from 0 to {below - 1}, got {params.get(name)!r}")
    return value


def _metric_names() -> list[str]:
    names = []
    for base in METRICS:
        names.append(base)
        names += [f"{base}@{k}" for k in CUTOFFS.get(base, ())]
    return names
