"""Exports of a session: judgments, preferences, the model in any format, a report, and a script."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .. import export, persistence
from ..datasets import to_qrels, to_trec_run
from ..estimators import RankRLS
from ..estimators.pipelines import scalers_of
from .documents import trec_word
from .script import plain, python
from .session import Session
from .state import State

Output = tuple[str, str, bytes]  # file name, media type, content


def estimator(session: Session, state: State | None = None, *, named: bool = False) -> Any:
    """The model of a state as a fitted `RankRLS`, after the encoder and scalers the session was opened with.

    It predicts the scores of the session. If the state is a plain fit (all features, no constraints), it stores the
    sums, so that `partial_fit`, `forget` and `coef_path` work. `named` gives it the names of the features, for
    files and exports.
    """
    encoder = session.documents.encoder
    model = of_encoded(session, state, named=named and encoder is None)
    if encoder is None:
        return model
    steps = model.steps if isinstance(model, Pipeline) else [("rankrls", model)]
    return Pipeline([("tableencoder", encoder), *steps])


def of_encoded(session: Session, state: State | None = None, *, named: bool = False) -> Any:
    """The same for the encoded columns that the page shows."""
    state = session.state if state is None else state
    fit, data = session.models.fit(state), session.documents
    coef = fit.coef(state.alpha)
    options: dict[str, Any] = {"scale": None} if "scale" in RankRLS().get_params() else {}
    made = RankRLS(
        state.alpha,
        weighting=state.weighting,
        tied_pairs=state.tied_pairs,
        regression=state.regression,
        scoring=state.metrics[0],
        **options,
    )
    made.alpha_, made.tied_pairs_ = state.alpha, state.tied_pairs
    made.n_queries_, made.n_pairs_ = fit.sums.n_queries, fit.sums.n_pairs
    made.n_features_in_ = data.X.shape[1]
    made.intercept_ = fit.intercept(coef)
    made.statistics_ = None
    if session.models.linear:
        made.coef_ = coef
        if not state.off and not state.signs and state.gain == "linear" and np.all(fit.scale == 1):
            made.statistics_ = fit.sums
    else:
        made.set_params(kernel=session.models.features.kernel, basis=session.models.features.points)  # type: ignore[attr-defined]
        made.kernel_, made.X_fit_ = session.models.features.kernel, session.models.features.points  # type: ignore[attr-defined]
        made.dual_coef_ = coef
    if named:
        made.feature_names_in_ = np.array(data.feature_names, dtype=object)
    if session.model is None or not scalers_of(session.model):
        return made
    return Pipeline([*session.model.steps[:-1], ("rankrls", made)])


def _judged(session: Session) -> tuple[np.ndarray, np.ndarray]:
    labels = session.models.labels(session.state)
    return np.flatnonzero(~np.isnan(labels)), labels


def qrels(session: Session) -> Output:
    """All judgments as TREC qrels."""
    rows, labels = _judged(session)
    data = session.documents
    qid = [trec_word(data.query_ids[q]) for q in data.queries.codes[rows]]
    names = [trec_word(data.doc_id(int(row))) for row in rows]
    text = to_qrels(labels[rows], np.array(qid, dtype=object), np.array(names, dtype=object)) if len(rows) else ""
    return "judgments.qrels", "text/plain", text.encode()


def judgments(session: Session) -> Output:
    """All judgments as CSV: query,docid,rating."""
    rows, labels = _judged(session)
    data = session.documents
    lines = ([data.query_ids[data.queries.codes[r]], data.doc_id(int(r)), f"{labels[r]:g}"] for r in rows)
    return "judgments.csv", "text/csv", _csv(["query", "docid", "rating"], lines)


def preferences(session: Session) -> Output:
    """All preferences as CSV."""
    data = session.documents
    lines = (
        [data.query_ids[data.queries.codes[p.above]], data.doc_id(p.above), data.doc_id(p.below), p.weight, p.margin]
        for p in session.state.preferences
    )
    return "preferences.csv", "text/csv", _csv(["query", "above", "below", "weight", "margin"], lines)


def run(session: Session) -> Output:
    """The rankings as a TREC run."""
    data, rows = session.documents, np.arange(session.limits.rows)
    qid = np.array([trec_word(data.query_ids[q]) for q in data.queries.codes], dtype=object)
    names = np.array([trec_word(data.doc_id(int(row))) for row in rows], dtype=object)
    return "ranking.run", "text/plain", to_trec_run(session.models.scores(session.state, rows), qid, names).encode()


def model_file(session: Session) -> Output:
    """The model as a file that `rankrls.load` reads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.rankrls")
        persistence.save(estimator(session, named=True), path)
        return "model.rankrls", "application/octet-stream", path.read_bytes()


def journal(session: Session) -> Output:
    """The journal of the session."""
    lines = [session.journal.header, *session.journal.actions]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return "session.workbench.jsonl", "application/x-ndjson", text.encode()


def report(session: Session) -> Output:
    """The page of `rankrls report` for the current model and the one the session was opened with."""
    rows, labels = _judged(session)
    if not len(rows):
        raise ValueError("a report needs judgments: grade some documents first")
    data = session.documents
    with tempfile.TemporaryDirectory() as folder:
        table, page, models = Path(folder, f"{plain(data.name)}.csv"), Path(folder, "report.html"), []
        lines = (
            [
                data.query_ids[data.queries.codes[r]],
                float(labels[r]),
                data.doc_id(int(r)),
                *data.X[r].tolist(),
            ]
            for r in rows
        )
        table.write_bytes(_csv(["qid", "label", "docid", *data.feature_names], lines))
        wanted = {"start": session.step.snapshot(1).state, "now": session.state}
        for name, state in wanted.items():
            models.append(str(Path(folder, f"{name}.rankrls")))
            persistence.save(of_encoded(session, state, named=True), models[-1])
        command = [sys.executable, "-m", "rankrls", "report", str(table), *models, "-o", str(page), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr.strip().removeprefix("rankrls: error: ") or "the report could not be written")
        return "report.html", "text/html", page.read_bytes()


def script(session: Session) -> Output:
    """A Python program that fits the model again from the data and the decisions."""
    return "session.py", "text/x-python", python(session).encode()


def _csv(head: list[str], lines: Any) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(lines)
    return text.getvalue().encode()


def _exported(name: str, kind: str, write: Callable[[Any], Any]) -> Callable[[Session], Output]:
    def output(session: Session) -> Output:
        content = write(estimator(session, named=True))
        return name, kind, content if isinstance(content, bytes) else content.rstrip("\n").encode() + b"\n"

    return output


OUTPUTS: dict[str, Callable[[Session], Output]] = {
    "qrels": qrels,
    "judgments": judgments,
    "preferences": preferences,
    "run": run,
    "model": model_file,
    "script": script,
    "journal": journal,
    "report": report,
    "json": _exported("model.json", "application/json", export.to_json),
    "svmrank": _exported("model.svmrank", "text/plain", export.to_svmrank),
    "opensearch": _exported("opensearch.json", "application/json", lambda m: export.to_opensearch(m, name="rankrls")),
    "elasticsearch": _exported(
        "elasticsearch.json", "application/json", lambda m: export.to_opensearch(m, name="rankrls")
    ),
    "solr": _exported("solr.json", "application/json", lambda m: export.to_solr(m, name="rankrls")),
    "vespa": _exported("rankrls.profile", "text/plain", lambda m: export.to_vespa(m, name="rankrls")),
    "onnx": _exported("model.onnx", "application/octet-stream", lambda m: export.to_onnx(m).SerializeToString()),
}
