"""A session as a Python program: the decisions as data, and the fit that turns them into a model.

The program needs no workbench: it takes rows, adds the judgments, and fits a `RankRLS` with the same weights as the
page. Where an estimator cannot do this to the last digits (preferences with more features than documents, or a kernel
whose points are nearly dependent), the program replays the session instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..core.symmetric import steep
from ..estimators.pipelines import scalers_of
from ..system.limits import limits
from .session import Session
from .state import State

HEAD = '''"""{title}

{usage}
"""

import sys

import numpy as np
{pipeline}
import rankrls
from rankrls import RankRLS
{opening}
'''

FIT = '''

def fit(X, y, qid{start}):
    """The model of the session: rows X, labels y (NaN where there is none) and query ids, in the order of the data."""
    X, y, qid = np.array(X, dtype=float), np.array(y, dtype=float), np.asarray(qid)
    for row, grade, *_ in JUDGMENTS:
        y[row] = np.nan if grade is None else grade
{prepare}    learned = ~np.isnan(y) & ~np.isin(qid, UNLEARNED)
{fit}'''

MAIN = """

if __name__ == "__main__":
    {arguments} = sys.argv[1:]
{load}    if data.outline != OUTLINE:
        sys.exit("these are other rows than those of the session: judgments go by row number")
    model = fit({call})
    rankrls.save({model}, target)
"""


def python(session: Session) -> str:
    """The program of a session as it is."""
    state = session.state
    learned = ~np.isnan(session.models.learned_labels(state))
    pairs = [p for p in state.preferences if session.documents.queries.codes[p.above] not in state.forgotten]
    if not learned.any() and not pairs:
        raise ValueError("there is nothing to learn from yet: grade some documents, or drag one above another")
    started = _needs_start_model(session)
    wide = session.models.linear and session.limits.features > limits.gram_columns and learned.any()
    if pairs and (wide or steep(session.models.features.W)):
        return _replay(session, started)
    demo = session.documents.name == DEMO
    title = f"What was decided in a workbench session on {plain(session.documents.name)}, and the model it gives."
    made = _saved(session, started).partition("(")[0]
    pipeline = "" if made == "model" else f"from sklearn.pipeline import {made}\n"
    return (
        HEAD.format(title=title, usage=_usage(started, demo), opening=_imports(session, started), pipeline=pipeline)
        + _decisions(session, pairs)
        + FIT.format(start=", start" if started else "", prepare=_prepare(session, started), fit=_fit(session, learned))
        + _main(session, started, demo)
    )


DEMO = "Shop search (example)"


def _needs_start_model(session: Session) -> bool:
    """True if the program needs the model that the session was opened with, for its encoder, scalers or kernel."""
    parts = session.documents.encoder is not None or not session.models.linear
    return session.model is not None and (parts or bool(scalers_of(session.model)))


def _usage(started: bool, demo: bool) -> str:
    words = [] if demo else ["DATA"]
    return f"python session.py {' '.join([*words, *(['START_MODEL'] if started else []), 'model.rankrls'])}"


def _reading_call(session: Session, more: str = "") -> str:
    """The call that reads the data as the session did."""
    data = session.documents
    if data.name == DEMO:
        return "demo()"
    options = "".join(f", {name}={value!r}" for name, value in data.options.items())
    return f"{'read_documents' if options else 'documents_of'}(source{options}{more})"


def _imports(session: Session, started: bool) -> str:
    reader = _reading_call(session).partition("(")[0]
    names = [*([] if reader == "read_documents" else [reader]), *(["scaled"] if started else [])]
    lines = [f"from rankrls.app import {', '.join(names)}"] if names else []
    return "\n".join(lines + ["from rankrls.cli.workbench import read_documents"] * (reader == "read_documents"))


def _decisions(session: Session, pairs: list[Any]) -> str:
    """The judgments, preferences and settings of the session, as assignments."""
    state, data = session.state, session.documents
    name = lambda row: (data.query_ids[int(data.queries.codes[row])], data.doc_id(row))
    labels = data.queries.labels.tolist()
    judged = [(row, grade, *name(row)) for row, grade in state.grades.pairs()]
    preferred = [(p.above, p.below, p.weight, p.margin, *name(p.above), name(p.below)[1]) for p in pairs]
    return "\n".join(
        [
            "",
            _listed("JUDGMENTS", judged, "row, grade made in the session, query, document"),
            _listed("PREFERENCES", preferred, "row above, row below, weight, margin, query, documents"),
            _listed("UNLEARNED", [labels[q] for q in sorted(state.forgotten)], "queries"),
            _listed("OFF", sorted(state.off), "features left out"),
            f"OUTLINE = {data.outline!r}  # of the rows, labels and queries",
            f"SIGNS = {dict(sorted(state.signs.items()))!r}  # feature: 1 for a weight of at least 0, -1 for at most 0",
            "",
        ]
    )


def _listed(name: str, values: list[Any], comment: str) -> str:
    if not values:
        return f"{name} = []  # {comment}"
    return "\n".join([f"{name} = [  # {comment}", *(f"    {value!r}," for value in values), "]"])


def _prepare(session: Session, started: bool) -> str:
    state, lines = session.state, []
    if started and scalers_of(session.model):
        lines.append("X = np.array(scaled(start, X, qid), dtype=float)")
    if state.off:
        lines.append("X[:, OFF] = 0  # a column that does not vary has no weight")
    return "".join(f"    {line}\n" for line in lines)


def _options(state: State, kernel: bool, scale: bool) -> str:
    options = {"weighting": state.weighting, "tied_pairs": state.tied_pairs}
    words = [f"{name}={value!r}" for name, value in options.items()]
    if state.regression:
        words.append(f"regression={state.regression!r}")
    if not scale:
        words.append("scale=None")
    if kernel:
        words.append("kernel=start_ranker.kernel_, basis=start_ranker.X_fit_")
    elif state.signs:
        words.append("positive=SIGNS")
    return f"RankRLS({state.alpha!r}, {', '.join(words)})"


def _fit(session: Session, learned: np.ndarray) -> str:
    """The body of the function that fits the model."""
    state, kernel = session.state, not session.models.linear
    lines = ["start_ranker = start[-1] if hasattr(start, 'steps') else start"] if kernel else []
    target = "y[learned]" if state.gain == "linear" else "2 ** np.minimum(y[learned], 60) - 1"
    scale = state.scale == "auto" and not kernel
    lines.append(f"model = {_options(state, kernel, scale)}")
    pairs = bool(state.preferences)
    if pairs:
        lines.append("pairs, weights, margins = ([p[i] for p in PREFERENCES] for i in (slice(0, 2), 2, 3))")
    if not learned.any():
        return "".join(f"    {line}\n" for line in [*lines, "return model.fit_pairs(X, pairs, margins, weights)"])
    few = pairs and int(learned.sum()) <= session.limits.features  # fit would store no sums to add pairs to
    lines.append(f"model.{'partial_fit' if few else 'fit'}(X[learned], {target}, qid=qid[learned])")
    if pairs:
        lines.append("model.add_pairs(X, pairs, margins, weights)  # the same loss, and these besides")
    return "".join(f"    {line}\n" for line in [*lines, "return model"])


def _main(session: Session, started: bool, demo: bool) -> str:
    arguments = ", ".join([*([] if demo else ["source"]), *(["model_file"] if started else []), "target"])
    load = ["start = rankrls.load(model_file)"] if started else []
    encodes = session.documents.encoder is not None
    options = ", encoder=start[0]" if started and encodes else ""
    load.append(f"data = {_reading_call(session, options)}")
    start = "start[1:]" if encodes else "start"
    call = "data.X, data.y, data.qid" + (f", {start}" if started else "")
    arguments = f"({arguments},)" if "," not in arguments else arguments
    text = "".join(f"    {line}\n" for line in load)
    return MAIN.format(arguments=arguments, load=text, call=call, model=_saved(session, started))


def _saved(session: Session, started: bool) -> str:
    """The model with the encoder and the scalers before it."""
    if started and isinstance(session.model, Pipeline):
        return 'Pipeline([*start.steps[:-1], ("rankrls", model)])'
    return "model" if session.documents.encoder is None else "make_pipeline(data.encoder, model)"


def _replay(session: Session, started: bool) -> str:
    """A program that repeats the actions of the session, for models that an estimator cannot fit exactly."""
    actions = [{k: v for k, v in action.items() if k != "time"} for action in session.journal.actions]
    start = ", encoder=start[0]" if started and session.documents.encoder is not None else ""
    lines = [
        f'"""The session on {plain(session.documents.name)}: the same decisions on the same data, the same model.',
        "",
        _usage(started, session.documents.name == DEMO),
        '"""',
        "",
        "import sys\n",
        "import rankrls",
        "from rankrls.app import open_session",
        "from rankrls.app.outputs import estimator",
        _imports(session, False),
        "",
        "",
        "def decide(data, model=None):",
        '    """The session after all of its actions."""',
        "    session = open_session(data, model)",
        *(f"    session.do({action!r})" for action in actions if action.get("do") != "start"),
        f"    session.do({{'do': 'set', 'name': 'alpha', 'value': {session.state.alpha!r}}})",
        "    return session",
        "",
        "",
        'if __name__ == "__main__":',
        f"    source, {'model_file, ' if started else ''}target = sys.argv[1:]",
        f"    start = {'rankrls.load(model_file)' if started else None}",
        f"    rankrls.save(estimator(decide({_reading_call(session, start)}, start)), target)",
        "",
    ]
    return "\n".join(lines)


def plain(name: str) -> str:
    """A name without characters that are special in a program, a path or a terminal."""
    return "".join(c if c.isalnum() or c in "-_. " else "_" for c in Path(name).name)[:80] or "data"
