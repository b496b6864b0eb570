"""Answers to the page's requests, which come over HTTP from a browser or as messages from a notebook."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np

from .compare import compare
from .inputs import read_judgments
from .outputs import OUTPUTS
from .session import ReadOnlyError, Session
from .state import ActionError, check_setting
from .view import PageView
from .wire import Answer, AnswerPart, as_json, bundle, cut, joined

MOST_BARS = 30  # most features listed as reasons
MOST_COMPARED = 6  # most snapshots compared

Params = Mapping[str, str]


class Api:
    """Answers about one session."""

    def __init__(self, session: Session):
        self.session = session
        self.reads: dict[str, Callable[[Params], Answer]] = {
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
        self.writes: dict[str, Callable[[Params, bytes], Answer]] = {
            "do": self.do,
            "judgments": self.judgments,
        }

    def answer(self, method: str, path: str, params: Params, body: bytes = b"") -> Answer:
        """The answer to a request; errors are answers too."""
        try:
            with self.session.answering():
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

    def state(self, params: Params) -> Answer:
        """Everything small: settings, counts, snapshots, main metrics, history."""
        return as_json(self._now(params).summary())

    def queries(self, params: Params) -> Answer:
        """Columns of the list of queries; their names only on request."""
        return bundle(self._now(params).queries(names=bool(params.get("names"))))

    def query(self, params: Params) -> Answer:
        """The ranked documents of a query."""
        return bundle(self._documents(self._now(params), params))

    def model(self, params: Params) -> Answer:
        """The weights of the features."""
        return bundle(self._now(params).weights(_alpha(params), names=True))

    def view(self, params: Params) -> Answer:
        """State, documents of a query and weights in one answer: all that a change affects at once."""
        now = self._now(params)
        weights = now.weights(_alpha(params), names=bool(params.get("names")))
        parts = {"state": AnswerPart(now.summary()), "list": self._documents(now, params), "weights": weights}
        return bundle(joined(parts))

    def curve(self, params: Params) -> Answer:
        """The held-out curve as far as it is known, and the quality at the current alpha."""
        return bundle(self._now(params).curve())

    def why(self, params: Params) -> Answer:
        """What each feature adds to the difference of two documents' scores."""
        now, models = self._now(params), self.session.models
        a, b = (_index(params, name, self.session.limits.rows) for name in ("a", "b"))
        found = models.why(now.state, a, b)
        order = np.argsort(-np.abs(found["parts"]), kind="stable")
        order = order[found["parts"][order] != 0]
        names = self.session.documents.feature_names
        bars = [
            {"feature": cut(names[j]), "adds": found["parts"][j], "a": found["a"][j], "b": found["b"][j]}
            for j in order[:MOST_BARS]
        ]
        rest = float(found["parts"][order[MOST_BARS:]].sum())
        total = {"total": found["total"], "rest": rest, "left": max(0, len(order) - MOST_BARS)}
        return as_json(
            {"bars": bars, **total, "a": now.document(a), "b": now.document(b), "exact": self.session.models.linear}
        )

    def enough(self, params: Params) -> Answer:
        """The margin and the weight that a preference needs."""
        a, b = (_index(params, name, self.session.limits.rows) for name in ("above", "below"))
        return as_json(self.session.models.enough(self.session.state, a, b))

    def compare(self, params: Params) -> Answer:
        """Snapshots side by side."""
        numbers = list(dict.fromkeys(int(part) for part in params.get("of", "").split(",") if part.strip()))
        if len(numbers) < 2:
            raise ActionError("choose at least two snapshots to compare")
        found = compare(self.session, numbers[:MOST_COMPARED])
        names = self.session.documents.query_ids
        for pair in found["pairs"]:
            for line in (*pair["gained"], *pair["lost"], *pair["movers"]):
                line["query_id"] = cut(names[line["query"]])
        return as_json(found)

    def export(self, params: Params) -> Answer:
        """A file to download."""
        what = params.get("what", "")
        if what not in OUTPUTS:
            raise ActionError(f"there is no export {what!r}; exports: {', '.join(OUTPUTS)}")
        name, kind, content = OUTPUTS[what](self.session)
        return Answer(200, kind, content, name)

    def _now(self, params: Params) -> PageView:
        return PageView.of(self.session, int(params.get("baseline", "1") or 0))

    def _documents(self, now: PageView, params: Params) -> AnswerPart:
        return now.documents(_index(params, "query", self.session.limits.queries), _alpha(params))

    # ---------------------------------------------------------------- writing

    def do(self, params: Params, body: bytes) -> Answer:
        """Perform an action; if a query is shown, answer with the new view."""
        try:
            action = json.loads(body)
        except ValueError:
            raise ActionError("an action is a JSON object") from None
        if not isinstance(action, dict):
            raise ActionError("an action is a JSON object")
        if action.get("do") == "start":
            raise ActionError("a session can start only once")
        version = self.session.do(action)
        return self.view(params) if "query" in params else as_json({"version": version})

    def judgments(self, params: Params, body: bytes) -> Answer:
        """Judgments from a file: CSV query,docid,rating (a rating may be empty), or TREC qrels."""
        rows, unknown = read_judgments(body, self.session.documents.rows_by_name)
        if not rows:
            raise ActionError("the file has no judgment of any document in this session")
        version = self.session.do({"do": "judgments", "rows": rows})
        return as_json({"version": version, "judged": len(rows), "unknown": unknown})


def _alpha(params: Params) -> float | None:
    return check_setting("alpha", float(params["alpha"])) if "alpha" in params else None


def _index(params: Params, name: str, below: int) -> int:
    try:
        value = int(params.get(name, ""))
    except ValueError:
        value = -1
    if not 0 <= value < below:
        raise ActionError(f"{name} must be a whole number from 0 to {below - 1}, got {params.get(name)!r}")
    return value
