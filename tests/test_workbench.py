"""The workbench without a browser: sessions, their exactness, the journal, the answers, and access to them."""

import json
import os
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oracles
import rankrls
from rankrls import RankRLS
from rankrls.app import open_session, workbench
from rankrls.app.background import Background
from rankrls.app.compare import compare, similarity
from rankrls.app.demo import demo
from rankrls.app.documents import documents
from rankrls.app.grades import Grades
from rankrls.app.inputs import documents_of, from_runs, is_run
from rankrls.app.journal import Journal, JournalError, own
from rankrls.app.outputs import OUTPUTS, estimator
from rankrls.app.quality import best_alpha
from rankrls.app.session import ReadOnlyError, Session
from rankrls.app.state import ActionError
from rankrls.app.tables import Chosen, from_csv
from rankrls.app.view import PageView
from rankrls.cli.workbench import read_documents
from rankrls.core.queries import Queries
from rankrls.datasets import RankingData, make_ranking, make_search
from rankrls.kernels import Gaussian

DATA = make_ranking(24, n_features=6, random_state=3)


@pytest.fixture
def session():
    made = open_session(DATA)
    yield made
    made.close()


def weights(session):
    """The weights of a session as it is."""
    return session.models.coef(session.state)


def shown(session, rows):
    """The scores of some documents."""
    return session.models.scores(session.state, rows)


def dense(session):
    """The weights of a session's state from the definition: every pair written out, one dense solve."""
    state, data = session.state, session.documents
    y = data.y.copy()
    for row, grade in state.grades.items():
        y[row] = np.nan if grade is None else grade
    y[np.isin(data.queries.codes, sorted(state.forgotten))] = np.nan
    keep = ~np.isnan(y)
    X, y, codes = data.X[keep], y[keep], data.queries.codes[keep]
    t = y if state.gain == "linear" else 2.0**y - 1
    L = np.zeros((len(y), len(y)))
    for q in np.unique(codes):
        rows = np.flatnonzero(codes == q)
        pairs = [(i, j) for i in rows for j in rows if i < j and (state.tied_pairs or y[i] != y[j])]
        c = {"pairs": 1.0, "items": 1 / len(rows), "queries": 1 / max(1, len(pairs))}[state.weighting]
        for i, j in pairs:
            d = np.zeros(len(y))
            d[i], d[j] = 1, -1
            L += c * np.outer(d, d)
    beta = state.regression
    Lt = beta * np.eye(len(y)) + (1 - beta) * L
    A = np.column_stack([X, np.ones(len(y))]) if beta else X
    G, b = A.T @ Lt @ A, A.T @ Lt @ t
    for p in state.preferences:
        if data.queries.codes[p.above] not in state.forgotten:
            d = np.zeros(A.shape[1])
            d[: X.shape[1]] = data.X[p.above] - data.X[p.below]
            G, b = G + p.weight * np.outer(d, d), b + p.weight * p.margin * d
    on = [j for j in range(A.shape[1]) if j not in state.off]
    fit = session.models.fit(state)
    penalty = np.zeros(A.shape[1])
    penalty[fit.on] = state.alpha * fit.scale**2
    w = np.zeros(A.shape[1])
    w[on] = np.linalg.solve((G + np.diag(penalty))[np.ix_(on, on)], b[on])
    return w[: X.shape[1]]


WORK = [
    {"do": "grade", "row": 3, "grade": 4},
    {"do": "prefer", "above": 7, "below": 2, "weight": 5.0, "margin": 1.5},
    {"do": "set", "name": "tied_pairs", "value": True},
    {"do": "grade", "row": 11, "grade": None},
    {"do": "forget", "queries": [1, 5]},
    {"do": "set", "name": "weighting", "value": "queries"},
    {"do": "features", "off": [2]},
    {"do": "snapshot", "name": "half way"},
    {"do": "set", "name": "regression", "value": 0.25},
    {"do": "prefer", "above": 30, "below": 31},
    {"do": "undo"},
    {"do": "redo"},
    {"do": "set", "name": "gain", "value": "exp2"},
    {"do": "set", "name": "tied_pairs", "value": False},
    {"do": "recall", "queries": [5]},
    {"do": "set", "name": "alpha", "value": 0.7},
    {"do": "weigh", "id": 1, "weight": 2.0},
]


# ---------------------------------------------------------------- exactness


def test_every_step_is_the_model_of_the_definition(session):
    for action in WORK:
        session.do(action)
        assert_allclose(weights(session), dense(session), rtol=1e-9, atol=1e-11)


def test_a_replayed_session_has_the_model_of_a_fit_from_scratch(tmp_path):
    path = tmp_path / "session.jsonl"
    first = open_session(DATA, journal=path)
    for action in WORK:
        first.do(action)
    coef, settings = weights(first), first.state.settings()
    first.close()
    again = open_session(DATA, journal=path)
    assert again.state.settings() == settings
    assert_allclose(weights(again), coef, rtol=1e-9, atol=1e-12)
    assert_allclose(weights(again), dense(again), rtol=1e-9, atol=1e-11)
    again.close()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("weighting", ["items", "queries", "pairs"])
@pytest.mark.parametrize("regression", [0.0, 0.4, 1.0])
def test_it_equals_rankrls_on_the_rows_that_are_left(session, weighting, tied, regression):
    changes = {"weighting": weighting, "tied_pairs": tied, "regression": regression, "scale": "none", "alpha": 0.3}
    for name, value in changes.items():
        session.do({"do": "set", "name": name, "value": value})
    session.do({"do": "forget", "queries": [2, 3]})
    session.do({"do": "grade", "row": 0, "grade": 2})
    y, keep = DATA.y.copy(), ~np.isin(session.documents.queries.codes, [2, 3])
    y[0] = 2
    plain = {"scale": None} if "scale" in RankRLS().get_params() else {}
    scratch = RankRLS(0.3, weighting=weighting, tied_pairs=tied, regression=regression, **plain)
    scratch.fit(DATA.X[keep], y[keep], qid=DATA.qid[keep])
    made = estimator(session)
    assert_allclose(made.coef_, scratch.coef_, rtol=1e-9, atol=1e-11)
    assert_allclose(made.predict(DATA.X), scratch.predict(DATA.X), rtol=1e-9, atol=1e-9)


def test_the_curve_is_the_exact_hold_out_of_refits(session):
    session.do({"do": "prefer", "above": 1, "below": 4, "weight": 3.0, "margin": 1.0})
    session.do({"do": "prefer", "above": 0, "below": 5, "weight": 7.0, "margin": -0.5})  # of the same query
    session.do({"do": "forget", "queries": [6]})
    state, metric = session.state, session.state.metrics[0]
    quality = session.quality.grid(state)
    queries = session.documents.queries
    k = 9
    for q in (0, 3, 6, 11):
        rest = replace(state, alpha=float(quality.alphas[k]), forgotten=state.forgotten | {q})
        fit = session.models.fit(rest)
        same = replace(fit, scale=session.models.fit(state).scale)  # the scale is one of all queries
        rows = queries.rows(q)
        scores = DATA.X[rows] @ same.coef(rest.alpha)
        value = rankrls.metrics.get_metric(metric)(DATA.y[rows], scores)
        assert_allclose(quality.values[metric][q, k], value, rtol=1e-9)


def test_more_features_than_documents_are_solved_through_the_documents():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 1300)), rng.integers(0, 3, 40).astype(float)
    session = open_session(RankingData(X, y, np.repeat(np.arange(4), 10)))
    for action in WORK[:4]:
        session.do(action)
    for beta in (0.0, 0.5):
        session.do({"do": "set", "name": "regression", "value": beta})
        assert session.models.fit(session.state).rows is not None
        assert_allclose(weights(session), dense(session), rtol=1e-8, atol=1e-11)
    session.close()


def test_sums_do_not_drift_in_a_thousand_changes(session):
    rng = np.random.default_rng(0)
    for _ in range(1000):
        row = int(rng.integers(len(DATA.y)))
        session.do({"do": "grade", "row": row, "grade": int(rng.integers(5))})
        if rng.random() < 0.1:
            weights(session)
    assert_allclose(weights(session), dense(session), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("options", [{}, {"regression": 0.4}, {"tied_pairs": True, "weighting": "pairs"}])
def test_the_curve_with_signs_is_the_exact_hold_out_of_refits(session, options):
    for name, value in options.items():
        session.do({"do": "set", "name": name, "value": value})
    session.do({"do": "prefer", "above": 1, "below": 4, "weight": 3.0, "margin": 1.0})
    session.do({"do": "prefer", "above": 0, "below": 5, "weight": 7.0, "margin": -0.5})  # of the same query
    for feature, sign in ((0, -1), (1, 1), (3, -1), (5, 1)):
        session.do({"do": "sign", "feature": feature, "sign": sign})
    state, metric = session.state, session.state.metrics[0]
    quality, queries = session.quality.grid(state), session.documents.queries
    moved = 0
    for k in (2, 7, 12):
        alpha = float(quality.alphas[k])
        whole = session.models.fit(state)
        held = session.quality.judge(state)._held_out(np.arange(len(DATA.y)), np.array([alpha]))[:, 0]
        for q in range(len(queries)):
            rest = replace(state, alpha=alpha, forgotten=state.forgotten | {q})
            coef = replace(session.models.fit(rest), scale=whole.scale, known={}).coef(alpha)
            moved += not np.array_equal(coef == 0, whole.coef(alpha) == 0)
            rows = queries.rows(q)
            scores = DATA.X[rows] @ coef
            assert_allclose(held[rows] - held[rows].mean(), scores - scores.mean(), rtol=1e-9, atol=1e-10)
            value = rankrls.metrics.get_metric(metric)(DATA.y[rows], scores)
            assert_allclose(quality.values[metric][q, k], value, rtol=1e-9)
    assert moved  # some queries change which weights are zero


def test_constraints_hold_in_a_session(session):
    free = weights(session)
    j = int(np.argmax(np.abs(free)))
    session.do({"do": "sign", "feature": j, "sign": -int(np.sign(free[j]))})
    assert weights(session)[j] == 0
    session.do({"do": "undo"})
    assert_allclose(weights(session), free)


def test_just_enough_weight_is_just_enough(session):
    rows = session.documents.queries.rows(4)
    order = rows[np.argsort(-shown(session, rows))]
    low, high = int(order[-1]), int(order[0])
    session.do({"do": "prefer", "above": low, "below": high})
    made = session.state.preferences[-1]
    a, b = shown(session, np.array([low, high]))
    if session.state.scale == "none":
        assert_allclose(a - b, 0.05 * made.margin, rtol=1e-6)
    assert a > b


def test_a_kernel_model_is_refitted_and_explained():
    model = RankRLS(0.5, kernel="rbf", basis=20, random_state=0).fit(DATA.X, DATA.y, qid=DATA.qid)
    session = open_session(DATA, model)
    rows = np.arange(len(DATA.y))
    centred = lambda s: s - np.array([s[DATA.qid == q].mean() for q in DATA.qid])
    assert_allclose(centred(shown(session, rows)), centred(model.predict(DATA.X)), atol=1e-6)
    found = session.models.why(session.state, 0, 1)
    difference = np.subtract(*shown(session, np.array([0, 1])))
    assert_allclose(found["total"], difference, rtol=1e-5, atol=1e-7)
    session.do({"do": "prefer", "above": 1, "below": 0})
    made = estimator(session)
    assert_allclose(np.diff(made.predict(DATA.X[:2])), np.diff(shown(session, np.arange(2))), atol=1e-8)
    session.close()


# ---------------------------------------------------------------- history and journal


def test_undo_and_redo_of_everything(session):
    states = [session.step]
    for action in WORK[:9]:
        session.do(action)
        states.append(session.step)
    for step in reversed(states[:-1]):
        session.do({"do": "undo"})
        assert session.step == step
    with pytest.raises(ActionError, match="nothing to undo"):
        session.do({"do": "undo"})
    for step in states[1:]:
        session.do({"do": "redo"})
        assert session.step == step


@pytest.mark.parametrize("stored", [True, False])
def test_undo_goes_back_further_than_the_steps_in_memory(tmp_path, stored):
    path = tmp_path / "long.jsonl" if stored else None
    session = open_session(DATA, journal=path)
    session.history.reach, steps = 10, [session.step]
    for row in range(75):
        session.do({"do": "grade", "row": row, "grade": row % 5})
        steps.append(session.step)
    assert len(session.history.steps) < 35
    for step in reversed(steps[:-1]):
        session.do({"do": "undo"})
        assert session.step == step
    assert session.history.undoes is None
    for step in steps[1:60]:
        session.do({"do": "redo"})
        assert session.step == step
    session.do({"do": "grade", "row": 3, "grade": 1})
    assert session.history.redoes is None
    session.do({"do": "undo"})
    assert session.step == steps[59]
    session.close()
    if stored:
        again = open_session(DATA, journal=path)
        assert again.step == steps[59]
        again.close()


def test_killing_the_process_loses_nothing(tmp_path):
    path = tmp_path / "killed.jsonl"
    program = (
        "import os, signal, sys; from rankrls.app import open_session; from rankrls.datasets import make_ranking\n"
        f"s = open_session(make_ranking(24, n_features=6, random_state=3), journal={str(path)!r})\n"
        "s.do({'do': 'grade', 'row': 5, 'grade': 4}); s.do({'do': 'snapshot', 'name': 'kept'})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=120, check=False)
    assert done.returncode < 0
    with open(path, "ab") as file:
        file.write(b'{"do":"grade","row":9')  # a line that was never finished
    again = open_session(DATA, journal=path)
    assert again.state.grades == {5: 4.0} and again.step.snapshots[-1].name == "kept"
    again.do({"do": "grade", "row": 6, "grade": 1})
    again.close()
    assert open_session(DATA, journal=path, read_only=True).state.grades == {5: 4.0, 6: 1.0}


def test_a_journal_of_other_data_is_refused(tmp_path):
    path = tmp_path / "journal.jsonl"
    open_session(DATA, journal=path).close()
    with pytest.raises(JournalError, match="other data"):
        open_session(make_ranking(24, n_features=6, random_state=4), journal=path)
    path.write_text("hello\n")
    with pytest.raises(JournalError, match="not a journal"):
        open_session(DATA, journal=path)


def test_a_full_disk_changes_nothing(tmp_path):
    path = tmp_path / "journal.jsonl"
    session = open_session(DATA, journal=path)
    session.do({"do": "grade", "row": 1, "grade": 2})
    before, file = session.step, session.journal._file

    class Full:
        def write(self, line):
            return file.write(line[:7])

        def __getattr__(self, name):
            return getattr(file, name)

    session.journal._file = Full()
    with pytest.raises(JournalError, match=r"nothing was changed: .*No space left"):
        session.do({"do": "grade", "row": 2, "grade": 3})
    assert session.step == before
    session.journal._file = file
    session.do({"do": "grade", "row": 3, "grade": 4})
    session.close()
    assert open_session(DATA, journal=path, read_only=True).state.grades == {1: 2.0, 3: 4.0}


def test_a_default_journal_of_other_data_is_left_alone(tmp_path):
    path = tmp_path / "data.txt.workbench.jsonl"
    assert own(path, "one") == path
    for about, name in (("one", path.name), ("two", "data.txt.workbench-2.jsonl")):
        Journal(own(path, about), {"data": about}).close()
        assert own(path, about) == tmp_path / name
    assert own(path, "three").name == "data.txt.workbench-3.jsonl"
    path.write_text("no journal\n")
    assert own(path, "one").name == "data.txt.workbench-3.jsonl"


def test_two_sessions_cannot_write_one_journal(tmp_path):
    path = tmp_path / "journal.jsonl"
    first = open_session(DATA, journal=path)
    with pytest.raises(JournalError, match="another workbench"):
        open_session(DATA, journal=path)
    first.close()


@pytest.mark.parametrize(
    "action",
    [
        {"do": "fly"},
        {"do": "grade", "row": -1, "grade": 1},
        {"do": "grade", "row": 10**9, "grade": 1},
        {"do": "grade", "row": 1, "grade": float("nan")},
        {"do": "grade", "row": 1, "grade": "good"},
        {"do": "prefer", "above": 1, "below": 1, "weight": 1, "margin": 1},
        {"do": "prefer", "above": 1, "below": len(DATA.y) - 1, "weight": 1, "margin": 1},
        {"do": "prefer", "above": 1, "below": 2, "weight": -1, "margin": 1},
        {"do": "set", "name": "alpha", "value": 0},
        {"do": "set", "name": "alpha", "value": True},
        {"do": "set", "name": "tied_pairs", "value": 1},
        {"do": "set", "name": "__class__", "value": 1},
        {"do": "set", "name": "metrics", "value": ["nonsense"]},
        {"do": "features", "off": list(range(6))},
        {"do": "sign", "feature": 0, "sign": 2},
        {"do": "restore", "snapshot": 99},
        {"do": "drop", "id": 7},
        {"do": "snapshot", "name": "  "},
        {"do": "redo"},
    ],
)
def test_a_bad_action_changes_nothing(session, action):
    before, count = session.step, len(session.journal)
    with pytest.raises(ActionError):
        session.do(action)
    assert session.step == before and len(session.journal) == count


def test_read_only_refuses_every_change():
    session = open_session(DATA, read_only=True)
    with pytest.raises(ReadOnlyError):
        session.do({"do": "grade", "row": 0, "grade": 1})
    session.close()


# ---------------------------------------------------------------- data


def test_a_session_without_labels_can_be_judged():
    session = open_session(replace(DATA, y=np.full(len(DATA.y), np.nan)))
    assert_array_equal(weights(session), 0)
    session.do({"do": "prefer", "above": 3, "below": 1})
    a, b = shown(session, np.array([3, 1]))
    assert a > b
    session.do({"do": "grade", "row": 3, "grade": 2})
    session.do({"do": "grade", "row": 2, "grade": 0})
    assert np.isfinite(weights(session)).all()
    assert_allclose(weights(session), dense(session), rtol=1e-9, atol=1e-11)
    session.close()


@pytest.mark.parametrize("shape", [(1, 30, 4), (2000, 2, 3), (4, 6, 300), (3, 40, 1)])
def test_shapes_of_data(shape):
    n_queries, length, n = shape
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_queries * length, n))
    y = rng.integers(0, 3, len(X)).astype(float)
    session = open_session(RankingData(X, y, np.repeat(np.arange(n_queries), length)))
    session.do({"do": "prefer", "above": 1, "below": 0})
    session.do({"do": "forget", "queries": [0]})
    assert np.isfinite(weights(session)).all()
    session.close()


def test_data_come_in_many_forms(tmp_path):
    import pandas

    frame = pandas.DataFrame(DATA.X, columns=DATA.feature_names).assign(
        qid=DATA.qid, label=DATA.y, docid=[f"d{i}" for i in range(len(DATA.y))], title="a <b>title</b>"
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    rankrls.datasets.dump_letor(DATA, tmp_path / "data.txt")
    for data in (frame, tmp_path / "data.csv", tmp_path / "data.parquet", tmp_path / "data.txt", DATA):
        found = documents_of(data)
        assert_allclose(found.X, DATA.X)
        assert_allclose(found.y, DATA.y)
        assert len(found.queries) == 24
    assert documents_of(frame).title(0) == "a <b>title</b>" and documents_of(frame).doc_id(3) == "d3"
    assert len(documents_of((DATA.X, DATA.y, DATA.qid)).queries) == 24
    with pytest.raises(TypeError, match="data frame"):
        documents_of(5)
    with pytest.raises(ValueError, match="missing or not finite"):
        documents_of((np.where(DATA.X > 2, np.nan, DATA.X), DATA.y, DATA.qid))


def test_tables_bring_titles_and_documents(tmp_path):
    lines = ["query,docid,title,bm25,clicks,label", 'blue shoe,a-1,"Shoe, blue",2.5,3,2', "blue shoe,a-2,Sock,1.5,,"]
    (tmp_path / "shop.csv").write_text("\n".join([*lines, "007,b,<b>,1,1,0", ""]))
    assert documents_of(tmp_path / "shop.csv").feature_names == ["bm25", "clicks", "clicks=missing"]
    found = from_csv(tmp_path / "shop.csv", "shop.csv", Chosen(missing=0.0))
    assert found.feature_names == ["bm25", "clicks"] and found.titles[0] == "Shoe, blue" and found.doc_id(2) == "b"
    assert sorted(found.query_ids) == ["007", "blue shoe"] and np.isnan(found.y[1])
    with pytest.raises(ValueError, match="no column 'nothing'"):
        from_csv(tmp_path / "shop.csv", "shop.csv", Chosen(label="nothing"))
    texts = from_csv(tmp_path / "shop.csv", "shop.csv", Chosen(features=["title"]))
    assert texts.feature_names == ["title=<b>", "title=Shoe, blue", "title=Sock"]
    only = from_csv(tmp_path / "shop.csv", "shop.csv", Chosen(features=["bm25"]))
    assert only.feature_names == ["bm25"]


def shop_table(rows=120):
    """A table as shops have it: text of few and of many levels, dates, truth values, holes."""
    pandas, rng = pytest.importorskip("pandas"), np.random.default_rng(0)
    columns = {
        "qid": np.repeat(np.arange(rows // 10), 10),
        "label": rng.integers(0, 4, rows),
        "docid": [f"d{i}" for i in range(rows)],
        "price": np.where(rng.random(rows) < 0.1, np.nan, rng.gamma(2, 10, rows)),
        "brand": rng.choice(np.array(["a", "b", "c", None], dtype=object), rows),
        "url": [f"somewhere/{i}" for i in range(rows)],
        "since": pandas.Timestamp("2026-01-01") + pandas.to_timedelta(rng.integers(0, 300, rows), "D"),
        "new": rng.random(rows) < 0.5,
        "bm25": rng.normal(size=rows),
    }
    return pandas.DataFrame(columns)


ENCODED = ["price", "price=missing", "brand=a", "brand=b", "brand=c", "brand=missing", "since", "new", "bm25"]


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_text_dates_and_holes_become_numbers(tmp_path, form):
    frame = shop_table()
    frame.to_csv(tmp_path / "shop.csv", index=False)
    frame.to_parquet(tmp_path / "shop.parquet")
    session = open_session(frame if form == "frame" else tmp_path / f"shop.{form}")
    assert session.documents.feature_names == ENCODED and session.documents.doc_id(3) == "d3"
    session.do({"do": "grade", "row": 3, "grade": 4})
    model = estimator(session)
    raw, scores = frame[list(model.feature_names_in_)], shown(session, np.arange(len(frame)))
    assert "url" not in raw and "brand" in raw
    assert_allclose(model.predict(raw), scores, atol=1e-10)
    (tmp_path / "model.rankrls").write_bytes(OUTPUTS["model"](session)[2])
    assert_allclose(rankrls.load(tmp_path / "model.rankrls").predict(raw), scores, atol=1e-10)
    for what in ("onnx", "report"):
        assert OUTPUTS[what](session)[2]
    with pytest.raises(ValueError, match="'url' holds neither numbers nor text with few levels"):
        documents_of((frame[["url", "bm25"]], frame["label"], frame["qid"]))
    with pytest.raises(ValueError, match="export to ONNX"):
        OUTPUTS["solr"](session)
    session.close()


def test_a_model_of_a_table_brings_its_encoder(tmp_path):
    frame, source, file = shop_table(), tmp_path / "shop.csv", tmp_path / "model.rankrls"
    frame.to_csv(source, index=False)
    train = ["train", str(source), "--exclude", "url", "-o", str(file), "--quiet"]
    assert subprocess.run([sys.executable, "-m", "rankrls", *train]).returncode == 0
    model = rankrls.load(file)
    session = open_session(source, model)
    raw = frame[list(model.feature_names_in_)]
    given = session.models.scores(session.step.snapshot(2), np.arange(len(frame)))
    assert_allclose(given, model.predict(raw), atol=1e-10)
    session.do({"do": "prefer", "above": 1, "below": 2})
    script = tmp_path / "session.py"
    script.write_bytes(OUTPUTS["script"](session)[2])
    command = [sys.executable, str(script), str(source), str(file), str(tmp_path / "again.rankrls")]
    assert subprocess.run(command).returncode == 0
    again = rankrls.load(tmp_path / "again.rankrls")
    assert_allclose(again.predict(raw), estimator(session).predict(raw), atol=1e-9)
    session.close()


def test_an_automatic_ranker_is_compared_with_or_refused():
    frame = shop_table()
    X, y, qid = frame[["bm25"]].to_numpy(), frame["label"], frame["qid"]
    model = rankrls.AutoRanker(effort="fast", candidates=["linear"]).fit(X, y, qid=qid)
    session = open_session((X, y, qid), model)
    assert_allclose(session.models.scores(session.step.snapshot(2), np.arange(9)), model.predict(X, qid)[:9])
    session.close()
    on_text = rankrls.AutoRanker(effort="fast", candidates=["linear"]).fit(frame[["bm25", "brand"]], y, qid=qid)
    with pytest.raises(ValueError, match="AutoRanker was trained on a table with text"):
        open_session(frame, on_text)


def test_parquet_keeps_single_precision_and_reads_folders(tmp_path):
    import pandas

    frame = pandas.DataFrame(DATA.X.astype(np.float32), columns=DATA.feature_names).assign(
        query=[f"query {q}" for q in DATA.qid], rating=DATA.y, title="t", note="aside"
    )
    (tmp_path / "parts").mkdir()
    frame.iloc[:50].to_parquet(tmp_path / "parts" / "0.parquet")
    frame.iloc[50:].to_parquet(tmp_path / "parts" / "1.parquet")
    found = documents_of(tmp_path / "parts")
    assert found.X.dtype == np.float32 and found.feature_names == DATA.feature_names
    assert_array_equal(found.y, DATA.y)
    session = Session(found)
    assert_allclose(weights(session), dense(session), rtol=1e-9, atol=1e-11)
    session.close()


def test_grades_keep_their_history():
    rng, made, kept = np.random.default_rng(0), Grades(), {}
    history = []
    for _ in range(300):
        pairs = [(int(rng.integers(5000)), None if rng.random() < 0.2 else float(rng.integers(5)))]
        made, kept = made.changed(pairs), {**kept, **dict(pairs)}
        history.append((made, kept))
    for past, wanted in history[::50]:
        assert dict(past) == wanted and list(past) == sorted(wanted) and len(past) == len(wanted)
        assert past == Grades().changed(wanted.items()) and past.get(5001) is None
    assert Grades().changed([(3, 0.0)]) != Grades().changed([(3, None)])


def test_letor_comments_without_the_id_are_titles(tmp_path):
    lines = ["2 qid:1 1:0.5 #docid = GX1", "0 qid:1 1:0.1 #docid = GX2 inc = 1", "1 qid:2 1:0.2 # a title"]
    (tmp_path / "data.txt").write_text("\n".join([*lines, ""]))
    data = documents_of(tmp_path / "data.txt")
    assert [data.doc_id(i) for i in range(3)] == ["GX1", "GX2", "3"]
    assert [data.title(i) for i in range(3)] == ["", "inc = 1", "a title"]


def test_trec_runs_become_features(tmp_path):
    a, b, judged = tmp_path / "a.run", tmp_path / "b.run", tmp_path / "q.qrels"
    a.write_text("q1 Q0 d1 1 9.5 a\nq1 Q0 d2 2 7.25 a\nq2 Q0 d1 1 3 a\n")
    b.write_text("q1 Q0 d2 1 0.9 b\nq2 Q0 d9 1 0.8 b\n")
    judged.write_text("q1 0 d2 2\nq1 0 d7 1\nq2 0 d1 0\nq3 0 d1 1\n")
    assert is_run(a) and not is_run(judged)
    data = from_runs([a, b], judged)
    assert data.feature_names == ["a score", "a 1/rank", "b score", "b 1/rank"]
    rows = data.rows_by_name
    assert set(rows) == {("q1", "d1"), ("q1", "d2"), ("q1", "d7"), ("q2", "d1"), ("q2", "d9")}
    assert_allclose(data.X[rows["q1", "d2"]], [7.25, 1 / 62, 0.9, 1 / 61])
    assert_allclose(data.X[rows["q1", "d7"]], [7.25, 0, 0.9, 0])
    assert data.y[rows["q1", "d2"]] == 2 and np.isnan(data.y[rows["q1", "d1"]])
    a.write_text("q9 Q0 d1 1 9.5 a\nq10 Q0 d2 1 7.25 a\nq1 Q0 d1 1 3 a\n")
    assert from_runs([a]).query_ids == ["q9", "q10", "q1"]  # as given


def test_a_model_with_scalers_is_continued():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = make_search(30, random_state=0)
    plain = {"scale": None} if "scale" in RankRLS().get_params() else {}
    model = make_pipeline(StandardScaler(), RankRLS(2.0, **plain)).fit(data.X, data.y, rankrls__qid=data.qid)
    session = open_session(data, model)
    assert_allclose(estimator(session).predict(data.X), model.predict(data.X), rtol=1e-8, atol=1e-9)
    assert [kept.name for kept in session.step.snapshots] == ["Start", "Model given"]
    session.close()


# ---------------------------------------------------------------- out


@pytest.mark.parametrize("what", sorted(set(OUTPUTS) - {"report"}))
def test_every_export_can_be_written(what):
    session = open_session(demo())
    session.do({"do": "prefer", "above": 3, "below": 1})
    name, kind, content = OUTPUTS[what](session)
    assert name and "/" in kind and content
    session.close()


def test_a_model_file_predicts_what_the_page_shows(session, tmp_path):
    session.do({"do": "prefer", "above": 3, "below": 1})
    session.do({"do": "features", "off": [1]})
    path = tmp_path / "model.rankrls"
    path.write_bytes(OUTPUTS["model"](session)[2])
    rows = np.arange(len(DATA.y))
    loaded = rankrls.load(path)
    loaded.__dict__.pop("feature_names_in_", None)
    assert_allclose(loaded.predict(DATA.X), shown(session, rows), rtol=1e-12)


def run_script(session, *extra):
    names = {"__name__": "script"}
    exec(compile(OUTPUTS["script"](session)[2].decode(), "script", "exec"), names)
    data = session.documents
    return names["fit"](data.X, data.y, data.qid, *extra)


@pytest.mark.parametrize("steps", [0, 2, 4, 7, len(WORK)])
@pytest.mark.parametrize("scale", ["auto", "none"])
def test_the_script_fits_the_same_model(session, steps, scale):
    session.do({"do": "set", "name": "scale", "value": scale})
    for action in WORK[:steps]:
        session.do(action)
    model, rows = run_script(session), np.arange(len(DATA.y))
    assert_allclose(model.coef_, weights(session), rtol=1e-9, atol=1e-12)
    assert_allclose(model.predict(DATA.X), shown(session, rows), rtol=1e-9, atol=1e-10)
    session.do({"do": "sign", "feature": 0, "sign": -1})
    session.do({"do": "sign", "feature": 3, "sign": 1})
    assert_allclose(run_script(session).coef_, weights(session), rtol=1e-9, atol=1e-12)


def test_the_script_of_a_session_without_labels(tmp_path):
    session = open_session(replace(documents(DATA), y=np.full(len(DATA.y), np.nan)))
    with pytest.raises(ValueError, match="nothing to learn"):
        OUTPUTS["script"](session)
    session.do({"do": "prefer", "above": 3, "below": 1})
    session.do({"do": "prefer", "above": 5, "below": 2})
    assert_allclose(run_script(session).coef_, weights(session), rtol=1e-9, atol=1e-12)
    session.do({"do": "grade", "row": 3, "grade": 2})
    session.do({"do": "grade", "row": 2, "grade": 0})
    assert_allclose(run_script(session).coef_, weights(session), rtol=1e-9, atol=1e-12)
    session.close()


def test_the_script_continues_from_a_model():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = make_search(30, random_state=0)
    model = make_pipeline(StandardScaler(), RankRLS(2.0)).fit(data.X, data.y, rankrls__qid=data.qid)
    session = open_session(data, model)
    session.do({"do": "grade", "row": 3, "grade": 4})
    session.do({"do": "prefer", "above": 7, "below": 2})
    assert_allclose(run_script(session, model).coef_, weights(session), rtol=1e-9, atol=1e-12)
    session.close()
    kernel = RankRLS(0.5, kernel="rbf", basis=20, random_state=0).fit(DATA.X, DATA.y, qid=DATA.qid)
    session = open_session(DATA, kernel)
    session.do({"do": "grade", "row": 3, "grade": 4})
    session.do({"do": "prefer", "above": 7, "below": 2})
    made, scores = run_script(session, kernel).predict(DATA.X), shown(session, np.arange(len(DATA.y)))
    for rows in (DATA.qid == q for q in np.unique(DATA.qid)):
        assert_allclose(made[rows] - made[rows].mean(), scores[rows] - scores[rows].mean(), atol=1e-9)
    session.close()


def test_the_script_runs_as_a_program(tmp_path):
    rng = np.random.default_rng(0)
    wide = RankingData(rng.normal(size=(40, 1300)), rng.integers(0, 3, 40).astype(float), np.repeat(np.arange(4), 10))
    odd = replace(documents(DATA), doc_ids=np.array(['"""\nimport os\n'] * len(DATA.y), dtype=object), name='"""x')
    for number, data in enumerate((wide, odd)):
        rankrls.datasets.dump_letor(DATA if number else wide, tmp_path / "data.txt")
        session = open_session(data)
        for action in WORK[:2]:
            session.do(action)
        (tmp_path / "session.py").write_bytes(OUTPUTS["script"](session)[2])
        command = [sys.executable, "session.py", "data.txt", "model.rankrls"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        loaded = rankrls.load(tmp_path / "model.rankrls")
        assert_allclose(loaded.coef_, weights(session), rtol=1e-9, atol=1e-12)
        session.close()


def run_program(folder, session, *words):
    """The model that the exported program saves."""
    (folder / "session.py").write_bytes(OUTPUTS["script"](session)[2])
    command = [sys.executable, "session.py", *words, "again.rankrls"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return rankrls.load(folder / "again.rankrls")


READINGS = {
    "shop.csv": {"qid": "words", "label": "stars", "exclude": ["stock"]},
    "one.run": {"runs": ["two.run"], "qrels": "judged.qrels"},
    "data.txt": {"feature_names": ["a", "b", "c"], "zero_based": True, "missing": 0.0},
}


@pytest.mark.parametrize("source", READINGS)
def test_the_script_reads_the_data_as_the_command_did(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [(q, d, *rng.normal(size=3), int(rng.integers(4))) for q in range(6) for d in range(8)]
    table = ["words,docid,price,clicks,stock,stars,rating"] + [
        f"w{q},d{d},{a},{b},{c},{y},1" for q, d, a, b, c, y in rows
    ]
    Path("shop.csv").write_text("\n".join(table))
    for column, name in enumerate(("one.run", "two.run"), start=2):
        Path(name).write_text("".join(f"w{row[0]} Q0 d{row[1]} {row[1] + 1} {row[column]} x\n" for row in rows))
    Path("judged.qrels").write_text("".join(f"w{row[0]} 0 d{row[1]} {row[5]}\n" for row in rows))
    Path("data.txt").write_text("".join(f"{y} qid:{q} 0:{a} 1:{b} 2:{c}\n" for q, _, a, b, c, y in rows))
    session = Session(read_documents(source, **READINGS[source]))
    for action in WORK[:2]:
        session.do(action)
    model = run_program(tmp_path, session, source)
    assert_allclose(model.coef_, weights(session), rtol=1e-9, atol=1e-12)
    text = (tmp_path / "session.py").read_text()
    (tmp_path / "session.py").write_text(text.replace(session.documents.outline, "of others"))
    command = [sys.executable, "session.py", source, "again.rankrls"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode and "other rows than those of the session" in done.stderr
    session.close()


@pytest.mark.parametrize("kind", ["scaled", "kernel"])
def test_the_program_saves_all_of_a_model(tmp_path, kind):
    """Scalers before the ranker; and a kernel with as many points as rows, whose weights an estimator cannot update."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if kind == "scaled":
        model = make_pipeline(StandardScaler(), RankRLS(2.0)).fit(DATA.X, DATA.y, rankrls__qid=DATA.qid)
    else:
        model = RankRLS(0.1, kernel=Gaussian(1e-4)).fit(DATA.X, DATA.y, qid=DATA.qid)
    rankrls.save(model, tmp_path / "start.rankrls")
    rankrls.datasets.dump_letor(DATA, tmp_path / "data.txt")
    session = open_session(DATA, model)
    for action in [*WORK[:2], {"do": "set", "name": "regression", "value": 0.3}]:
        session.do(action)
    made = run_program(tmp_path, session, "data.txt", "start.rankrls")
    assert_allclose(made.predict(DATA.X), estimator(session).predict(DATA.X), rtol=1e-9, atol=1e-9)
    session.close()


def test_the_report_is_a_page():
    pytest.importorskip("matplotlib")
    session = open_session(demo())
    name, kind, content = OUTPUTS["report"](session)
    assert (name, kind) == ("report.html", "text/html") and b"now" in content
    session.close()


def test_judgments_go_out_and_come_back():
    from rankrls.app.api import Api

    session = open_session(demo())
    session.do({"do": "grade", "row": 5, "grade": 3})
    for what in ("judgments", "qrels"):
        _, _, text = OUTPUTS[what](session)
        fresh = open_session(replace(demo(), y=np.full(len(demo().y), np.nan)))
        got = json.loads(Api(fresh).answer("POST", "judgments", {}, text).content)
        assert got["unknown"] == 0
        assert_array_equal(fresh.models.labels(fresh.state), session.models.labels(session.state))
        fresh.close()
    session.close()


def test_the_tutorial_matches_the_page():
    text = (Path(__file__).parents[1] / "docs" / "workbench-tutorial.md").read_text()
    session = open_session(demo())
    first = lambda of: (float(found[0]) for found in of)
    ndcg = lambda: "{:.4f} ± {:.3f}".format(*first((point().mean("ndcg@10"), point().error("ndcg@10"))))
    point = lambda: session.quality.point(session.state)
    assert f"NDCG@10 {ndcg()}, is held out" in text
    rows = session.documents.queries.rows(0)
    order = rows[np.argsort(-shown(session, rows))]
    assert np.isnan(session.documents.y[order[3]]) and session.documents.y[order[6]] == 4
    session.do({"do": "prefer", "above": int(order[6]), "below": int(order[3])})
    assert f"falls to {ndcg()[:6]}:" in text
    session.do({"do": "undo"})
    session.do({"do": "features", "off": [session.documents.feature_names.index("pagerank")]})
    assert f"*pagerank* off: {ndcg()[:6]}." in text
    session.do({"do": "snapshot", "name": "Without pagerank"})
    session.do({"do": "set", "name": "tied_pairs", "value": True})
    best = best_alpha(session.quality.grid(session.state), "ndcg@10")
    session.do({"do": "set", "name": "alpha", "value": best})
    assert f"alpha goes to {best:.2f} and NDCG@10 to {ndcg()[:6]}." in text
    assert f"p = {compare(session, [1, 2, 0])['pairs'][1]['p']:.3f}:" in text
    session.close()


def test_comparison_counts_what_differs(session):
    session.do({"do": "snapshot", "name": "before"})
    session.do({"do": "features", "off": [int(np.argmax(np.abs(weights(session))))]})
    found = compare(session, [3 - 1, 0])
    pair = found["pairs"][0]
    assert pair["losses"] > pair["wins"] and 0 < pair["rbo"] < 1 and pair["movers"]
    same = compare(session, [0, 0])["pairs"][0]
    assert same["jaccard"] == pytest.approx(1) and same["rbo"] == pytest.approx(1) and same["reversals"] == 0


def test_rank_biased_overlap_against_its_definition():
    rng = np.random.default_rng(0)
    a, b = rng.permutation(15) + 1, rng.permutation(15) + 1
    alike = similarity(Queries.single(15), a, b)
    A, B = np.argsort(a), np.argsort(b)
    overlap = [len(set(A[:d]) & set(B[:d])) / d for d in range(1, 11)]
    rbo = overlap[-1] * 0.9**10 + 0.1 / 0.9 * sum(0.9**d * x for d, x in enumerate(overlap, start=1))
    assert_allclose(alike["rbo"], rbo)
    assert_allclose(alike["jaccard"], len(set(A[:10]) & set(B[:10])) / len(set(A[:10]) | set(B[:10])))
    turned = sum(b[A[i]] > b[A[j]] for i in range(10) for j in range(i + 1, 10))
    assert alike["reversals"][0] == turned


# ---------------------------------------------------------------- answers


def unbundled(content):
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[4 : 4 + length])
    for entry in header["arrays"]:
        count = int(np.prod(entry["shape"]))
        header[entry["name"]] = np.frombuffer(content, entry["dtype"], count, 4 + length + entry["offset"])
    return header


@pytest.fixture
def client(session, tmp_path, monkeypatch):
    testclient = pytest.importorskip("starlette.testclient")
    from rankrls.app.server import application

    application_ = application(session, "secret-token", 8000)
    with testclient.TestClient(application_, base_url="http://127.0.0.1:8000") as made:
        yield made


TOKEN = {"X-Token": "secret-token"}


def test_only_the_token_gives_access(client):
    for path in ("state", "queries", "query?query=0", "export?what=journal", "events", "nowhere"):
        assert client.get(f"/api/{path}").status_code == 401
        assert client.get(f"/api/{path}", headers={"X-Token": "secret-tokem"}).status_code == 401
    assert client.post("/api/do", json={"do": "undo"}).status_code == 401
    assert client.get("/api/state", headers=TOKEN).status_code == 200
    assert client.get("/api/state?token=secret-token").status_code == 200


def test_other_hosts_and_pages_are_refused(client):
    for headers in (
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:9999"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert client.get("/api/state", headers={**TOKEN, **headers}).status_code == 403
        assert client.get("/", headers=headers).status_code == 403
    assert client.get("/api/state", headers={**TOKEN, "Origin": "http://localhost:8000"}).status_code == 200
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = client.options("/api/do", headers=asked)
    assert answer.status_code == 403 and not any(name.startswith("access-control") for name in answer.headers)


def test_every_answer_is_guarded(client):
    for path in ("/", "/main.js", "/nowhere", "/api/state", "/../pyproject.toml", "/%2e%2e/session.py"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
    assert client.get("/../session.py").status_code == 404
    assert client.get("/vendor/uplot.js").status_code == 200


def test_requests_are_bounded(client):
    stream = lambda size: (b"x" * (1 << 20) for _ in range(size))
    for path, most in (("do", 4), ("judgments", 32)):
        for content in (b"x" * ((most + 1) << 20), stream(most + 1)):  # with a length, and without one
            answer = client.post(f"/api/{path}", headers=TOKEN, content=content)
            assert answer.status_code == 413 and "at most" in answer.json()["error"]
    assert client.post("/api/nowhere", headers=TOKEN, content=b"x" * 70_000).status_code == 413
    assert client.post("/api/do", headers=TOKEN, content=b"[1]").status_code == 400
    assert client.post("/api/do", headers=TOKEN, content=b"{").status_code == 400
    assert client.post("/api/do", headers=TOKEN, json={"do": "start", "alpha": 1}).status_code == 400


def test_the_page_gets_what_it_draws(client, session):
    state = client.get("/api/state", headers=TOKEN).json()
    assert state["queries"] == 24 and state["features"] == 6
    before = session.quality.point(session.state)
    columns = unbundled(client.get("/api/queries?names=1", headers=TOKEN).content)
    assert len(columns["ids"]) == 24
    assert_allclose(columns["score"], before.values[session.state.metrics[0]][:, 0], rtol=1e-6)
    query = unbundled(client.get("/api/query?query=2", headers=TOKEN).content)
    rows = [doc["row"] for doc in query["documents"]]
    scores = shown(session, np.array(rows))
    assert_allclose(np.diff(query["score"]), np.diff(scores), rtol=1e-9, atol=1e-12)
    assert np.all(np.diff(query["score"]) <= 0)
    B, alpha = query["B"].reshape(len(rows), -1), 3.3
    other = session.models.scores(replace(session.state, alpha=alpha), np.array(rows))
    followed = B @ (query["z"] / (query["d"] + alpha))
    assert_allclose(followed - followed.mean(), other - other.mean(), rtol=1e-9, atol=1e-12)
    model = unbundled(client.get("/api/model", headers=TOKEN).content)
    assert_allclose(model["coef"], weights(session))
    why = client.get(f"/api/why?a={rows[0]}&b={rows[1]}", headers=TOKEN).json()
    assert sum(bar["adds"] for bar in why["bars"]) + why["rest"] == pytest.approx(why["total"])
    assert why["total"] == pytest.approx(scores[0] - scores[1])
    assert client.get("/api/query?query=99", headers=TOKEN).status_code == 400
    assert client.get("/api/compare?of=1", headers=TOKEN).status_code == 400


def test_a_view_keeps_the_step_it_was_made_of(session):
    view = PageView.of(session)
    coef, version = weights(session), view.version
    session.do({"do": "features", "off": [0]})
    assert_array_equal(view.weights().arrays["coef"], coef)
    assert view.summary()["off"] == [] and view.documents(0).header["version"] == version
    assert PageView.of(session).summary()["off"] == [0]


def test_work_in_the_background_gives_way_to_answers():
    begun, done = threading.Event(), []
    made = Background(lambda: (begun.set(), made.give_way(), done.append(time.monotonic())), done.append)
    with made.answering():
        made.start()
        assert begun.wait(20)
        start = time.monotonic()
    while not done:
        time.sleep(0.01)
    assert done[0] >= start
    made.close()


def test_read_only_over_http(tmp_path):
    testclient = pytest.importorskip("starlette.testclient")
    from rankrls.app.server import application

    session = open_session(DATA, read_only=True)
    with testclient.TestClient(application(session, "t" * 20, 80), base_url="http://127.0.0.1:80") as client:
        headers = {"X-Token": "t" * 20, "Host": "127.0.0.1:80"}
        assert client.post("/api/do", headers=headers, json={"do": "undo"}).status_code == 403
        assert client.get("/api/state", headers=headers).json()["read_only"]
    session.close()


def test_the_workbench_from_python(tmp_path, monkeypatch):
    pytest.importorskip("uvicorn")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    import urllib.request

    bench = workbench(DATA, browser=False, journal=tmp_path / "j.jsonl")
    first = bench.url
    address = first.replace("/?", "/api/state?")
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert json.load(answer)["queries"] == 24
    bench.close()
    again = workbench(DATA, browser=False, journal=tmp_path / "j.jsonl")
    assert again.url.split("token=")[1] == first.split("token=")[1]  # an open page finds its server again
    again.close()
    with pytest.raises(ValueError, match="no documents"):
        workbench(RankRLS())


def test_the_server_is_on_this_machine_only():
    pytest.importorskip("uvicorn")
    import socket

    bench = workbench(DATA, browser=False)
    server = bench.serve()
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.socket.proto == socket.IPPROTO_TCP  # what makes asyncio send small answers at once, not after 40 ms
    with pytest.raises(ValueError, match=f"port {server.port} cannot be used"):
        type(server)(bench.session, server.port)
    bench.close()


def test_the_widget_answers_messages():
    pytest.importorskip("anywidget")
    from rankrls.app.widget import widget

    session = open_session(DATA)
    made, sent = widget(session), []
    made.send = lambda content, buffers=None: sent.append((content, buffers))
    made._answer(made, {"id": 1, "method": "GET", "path": "state"}, [])
    assert sent[0][0]["status"] == 200 and json.loads(sent[0][1][0])["queries"] == 24
    made._answer(made, {"id": 2, "method": "POST", "path": "do", "body": {"do": "grade", "row": 0, "grade": 1}}, [])
    assert session.state.grades == {0: 1.0}
    assert any("event" in content for content, _ in sent)
    assert {"app.js", "vendor/uplot.js"} <= set(made.modules)
    session.close()


def test_the_command_prints_its_address(tmp_path):
    pytest.importorskip("uvicorn")
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "rankrls", "workbench", "--demo", "--no-browser", "--quiet"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = [process.stdout.readline() for _ in range(2)]
            assert lines[1].startswith("http://127.0.0.1:") and "/?token=" in lines[1]
            assert (tmp_path / "demo.workbench.jsonl").exists()
        finally:
            process.terminate()
            assert process.wait(30) == 0  # to end it is no error


def test_oracles_are_independent():
    assert "rankrls" not in vars(oracles)


def test_a_session_follows_with_its_quality():
    session = open_session(documents(DATA))
    end = time.monotonic() + 60
    while session.quality.known(session.state)[1] is None or session.quality.known(session.state)[1].done < 1:
        assert time.monotonic() < end
        time.sleep(0.02)
    heard = []
    stop = session.listen(heard.append)
    session.do({"do": "set", "name": "weighting", "value": "pairs"})
    while not any(event["type"] == "quality" for event in heard):
        assert time.monotonic() < end
        time.sleep(0.02)
    stop()
    assert isinstance(session, Session)
    session.close()


@pytest.mark.parametrize("options", [{}, {"weighting": "pairs"}, {"regression": 0.3}, {"tied_pairs": True}])
def test_the_scale_is_that_of_the_estimator(options):
    data = make_search(30, random_state=0)  # with columns that do not vary within queries
    model = RankRLS(2.0, **options).fit(data.X, data.y, qid=data.qid)
    session = open_session(data, model)
    assert_allclose(weights(session), model.coef_, rtol=1e-9, atol=1e-12)
    session.close()
