"""What the page asks for, whatever carries it: HTTP for a browser, messages for a notebook."""

from __future__ import annotations

import csv
import io
import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..metrics import METRICS, get_metric
from .compare import compare, values_of
from .outputs import OUTPUTS
from .session import ReadOnlyError, Session, best_alpha
from .state import GAINS, SCALES, WEIGHTINGS, ActionError, Snapshot, State

MOST_SHOWN = 400  # documents of a query that are sent
MOST_CELLS = 600_000  # numbers with which a page follows the slider by itself
RECENT = 20  # actions that are listed
LONGEST = 2000  # characters of an id or a title that are sent
CUTOFFS = {"ndcg": (1, 3, 5, 10, 20), "precision": (1, 3, 5, 10), "recall": (5, 10)}


@dataclass(frozen=True)
class Answer:
    """A status, a media type and the bytes."""

    status: int
    kind: str
    content: bytes
    name: str | None = None  # of a file to be stored


def as_json(value: Any, status: int = 200) -> Answer:
    """A JSON answer; what is not finite becomes null."""
    return Answer(status, "application/json", json.dumps(_plain(value), ensure_ascii=False).encode())


def bundle(header: Mapping[str, Any], **arrays: np.ndarray) -> Answer:
    """JSON and arrays in one answer: length of the header, header, then each array at a multiple of eight bytes."""
    listed, parts, offset = [], [], 0
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        listed.append({"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "offset": offset})
        content = array.tobytes()
        parts.append(content + b"\0" * (-len(content) % 8))
        offset += len(parts[-1])
    text = json.dumps({**_plain(header), "arrays": listed}, ensure_ascii=False).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return Answer(200, "application/octet-stream", struct.pack("<I", len(text)) + text + b"".join(parts))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, int | str) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


class Api:
    """Answers about one session."""

    def __init__(self, session: Session):
        self.session = session
        self.reads: dict[str, Callable[[Mapping[str, str]], Answer]] = {
            "state": self.state,
            "queries": self.queries,
            "query": self.query,
            "model": self.model,
            "curve": self.curve,
            "why": self.why,
            "enough": self.enough,
            "compare": self.compare,
            "export": self.export,
        }
        self.writes: dict[str, Callable[[bytes], Answer]] = {"do": self.do, "judgments": self.judgments}

    def answer(self, method: str, path: str, params: Mapping[str, str], body: bytes = b"") -> Answer:
        """The answer to a request; an error is an answer too."""
        try:
            if method == "POST" and path in self.writes:
                return self.writes[path](body)
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
        session = self.session
        with session._lock:
            step, version, position = session.step, session.version, session.position
            labels = list(session.labels_of)
        state, data = step.state, session.documents
        levels, alphas = session.levels(state), session.fit(state).alphas()
        return as_json(
            {
                "version": version,
                "name": data.name,
                "read_only": session.read_only,
                "linear": session.features.W is None,
                "rows": session.limits.rows,
                "features": session.limits.features,
                "queries": session.limits.queries,
                "judged": sum(levels.values()),
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
                "undo": labels[position - 1] if position else None,
                "redo": labels[position] if position < len(labels) else None,
                "history": labels[max(0, position - RECENT) : position],
                "position": position,
                "exports": list(OUTPUTS),
            }
        )

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
        flags[[int(data.queries.codes[row]) for row in state.grades]] |= 4
        judged = data.queries.sum(~np.isnan(session.labels(state)))
        header: dict[str, Any] = {"metric": metric, "version": session.version}
        if params.get("names"):
            header["ids"] = [_cut(name) for name in data.query_ids]
        return bundle(
            header,
            score=score.astype(np.float32),
            gain=(sign * (score - other)).astype(np.float32),
            gap=(np.zeros(q) if point is None else point.gap).astype(np.float32),
            size=data.queries.sizes.astype(np.int32),
            judged=judged.astype(np.int32),
            flags=flags,
        )

    def query(self, params: Mapping[str, str]) -> Answer:
        """The ranked documents of a query, with what a page needs to follow alpha by itself."""
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
            "id": _cut(session.documents.query_ids[query]),
            "version": session.version,
            "alpha": alpha,
            "total": len(rows),
            "offset": offset,
            "forgotten": query in state.forgotten,
            "documents": [self._document(int(row), state) for row in rows[shown]],
        }
        if fit.has_path and fit.signs is None:
            B = phi[shown] @ fit.path.basis
            arrays["spread"] = _spread(fit, B, alpha)
            if B.size <= MOST_CELLS:
                free = fit.sums.n_rows - fit.sums.n_queries
                header["path"] = {"square": float(fit.sums.square[0]), "free": free}
                arrays |= {"B": B, "d": fit.path.d, "z": fit.path.z[:, 0]}
        return bundle(header, **arrays)

    def model(self, params: Mapping[str, str]) -> Answer:
        """The weights of the features, and their path where it is short."""
        session, state = self.session, self.session.state
        fit = session.fit(state)
        if session.features.W is not None:
            return bundle({"names": session.documents.feature_names, "linear": False, "version": session.version})
        alpha = float(params["alpha"]) if "alpha" in params else state.alpha
        coef, unit = fit.coef(alpha), np.sqrt(np.diag(fit.sums.gram).clip(min=0) / max(1, fit.sums.n_rows))
        arrays = {"coef": coef, "unit": unit}
        if fit.has_path and fit.signs is None and fit.path.basis.size <= MOST_CELLS:
            arrays |= {"basis": fit.path.basis, "d": fit.path.d, "z": fit.path.z[:, 0]}
        names = [_cut(name) for name in session.documents.feature_names]
        return bundle({"names": names, "linear": True, "version": session.version}, **arrays)

    def curve(self, params: Mapping[str, str]) -> Answer:
        """The held-out curve as far as it is known, that of the baseline, and the values at the present alpha."""
        session, state = self.session, self.session.state
        _, grid = session.known(state)
        metric = state.metrics[0]
        header = {
            "metric": metric,
            "done": 0.0 if grid is None else grid.done,
            "version": session.version,
            "best": None if grid is None else best_alpha(grid, metric),
            "headline": self._headline(state),
            "greater_is_better": get_metric(metric).greater_is_better,
        }
        if grid is None:
            return bundle(header, alphas=session.fit(state).alphas())
        return bundle(header, alphas=grid.alphas, mean=grid.mean(metric), error=grid.error(metric))

    def why(self, params: Mapping[str, str]) -> Answer:
        """What each feature adds to the difference of two documents' scores."""
        session = self.session
        a, b = (_index(params, name, session.limits.rows) for name in ("a", "b"))
        found = session.why(a, b)
        order = np.argsort(-np.abs(found["parts"]), kind="stable")
        order = order[found["parts"][order] != 0]
        names = session.documents.feature_names
        bars = [
            {"feature": _cut(names[j]), "adds": found["parts"][j], "a": found["a"][j], "b": found["b"][j]}
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
                line["query_id"] = _cut(names[line["query"]])
        return as_json(found)

    def export(self, params: Mapping[str, str]) -> Answer:
        """A file to take away."""
        what = params.get("what", "")
        if what not in OUTPUTS:
            raise ActionError(f"there is no export {what!r}; exports: {', '.join(OUTPUTS)}")
        name, kind, content = OUTPUTS[what](self.session)
        return Answer(200, kind, content, name)

    # ---------------------------------------------------------------- writing

    def do(self, body: bytes) -> Answer:
        """Carry out an action."""
        try:
            action = json.loads(body)
        except ValueError:
            raise ActionError("an action is a JSON object") from None
        if not isinstance(action, dict):
            raise ActionError("an action is a JSON object")
        if action.get("do") == "start":
            raise ActionError("a session starts once")
        return as_json({"version": self.session.do(action)})

    def judgments(self, body: bytes) -> Answer:
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
        record = {"row": row, "id": _cut(data.doc_id(row)), "title": _cut(data.title(row)), "grade": grade}
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


def _spread(fit: Any, B: np.ndarray, alpha: float) -> np.ndarray:
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


def read_judgments(body: bytes, rows: Mapping[tuple[str, str], int]) -> tuple[list[list[Any]], int]:
    """[row, grade] of each judgment in a file, and how many are of documents that are not here."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ActionError("the file is not text in UTF-8") from None
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and "," in lines[0]:
        table = csv.DictReader(io.StringIO(text))
        if not {"query", "docid", "rating"} <= set(table.fieldnames or ()):
            raise ActionError("the first line of the CSV must name the columns query,docid,rating")
        found = [(r["query"] or "", r["docid"] or "", (r["rating"] or "").strip()) for r in table]
    else:
        parts = [line.split() for line in lines]
        if not all(len(part) == 4 for part in parts):
            raise ActionError("judgments are CSV (query,docid,rating) or qrels (query 0 docid rating)")
        found = [(part[0], part[2], part[3]) for part in parts]
    judged, unknown = [], 0
    for query, document, rating in found:
        row = rows.get((query, document))
        if row is None:
            unknown += 1
            continue
        try:
            judged.append([row, float(rating) if rating else None])
        except ValueError:
            raise ActionError(f"the rating {rating!r} of document {document!r} is not a number") from None
    return judged, unknown
