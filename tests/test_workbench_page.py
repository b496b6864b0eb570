"""The page of the workbench in a real browser: dragging, keys, the slider, snapshots, a killed server, files."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from browser import chromium
from page import Page
from rankrls.app.demo import demo
from rankrls.app.documents import documents
from rankrls.app.session import Session
from rankrls.datasets import RankingData, dump_letor, make_search

pytest.importorskip("uvicorn")

from rankrls.app.server import Server

ODD = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "שאילתה בעברית",
    "x" * 600,
    "a\tb\u202ec",
]


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@contextlib.contextmanager
def served(data, **options):
    server = Server(Session(data, **options)).start()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def page(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served(demo(), journal=tmp_path / "journal.jsonl") as server:
        made = Page(browser, server.url)
        made.session = server.session
        yield made
        made.clean()


def test_a_document_dragged_up_is_above(page):
    rows = page.rows()
    source = page.centre(f"[data-row='{rows[5]}'] .wb-grip")
    target = page.centre(f"[data-row='{rows[1]}'] .wb-grip")
    page.drag(source, target)
    page.until("document.querySelector('.wb').workbench.state.preferences.length === 1")
    made = page.session.state.preferences[0]
    assert (made.above, made.below) == (rows[5], rows[1])
    now = page.rows()
    assert now.index(rows[5]) < now.index(rows[1])
    page.press("u")
    page.until("document.querySelector('.wb').workbench.state.preferences.length === 0")
    assert page.rows() == rows
    page.drag(page.centre(f"[data-row='{rows[0]}'] .wb-grip"), page.centre(f"[data-row='{rows[2]}'] .wb-grip"))
    page.until("document.querySelector('.wb').workbench.state.preferences.length === 1")
    assert (page.session.state.preferences[0].above, page.session.state.preferences[0].below) == (rows[2], rows[0])


def test_keys_walk_rate_and_undo(page):
    page.press("j")
    page.until("document.querySelector('.wb').workbench.list.query === 1")
    page.press("k")
    page.until("document.querySelector('.wb').workbench.list.query === 0")
    row = page.rows()[0]
    page.press("3")
    page.until("document.querySelector('.wb').workbench.state.undo === 'graded 3'")
    assert page.session.state.grades == {row: 3.0}
    page.press("u")
    page.until("document.querySelector('.wb').workbench.state.undo === null")
    assert page.session.state.grades == {}
    page.ask("document.querySelector('.wb').workbench.documents.go(1)")
    row, first = page.rows()[1], page.rows()[0]
    page.press("ArrowUp", modifiers=1)
    page.until("document.querySelector('.wb').workbench.state.preferences.length === 1")
    made = page.session.state.preferences[0]
    assert (made.above, made.below) == (row, first)
    page.press("?")
    page.until("document.querySelector('dialog[open] .wb-keys')")


def test_the_slider_moves_the_ranking_before_it_is_let_go(page):
    before = page.app("list.score[0]")
    x, y = page.centre(".wb-curve .wb-slider")
    page.mouse("mousePressed", x, y, clickCount=1)
    page.mouse("mouseMoved", x + 110, y)
    page.until("document.querySelector('.wb').workbench.alpha !== null")
    alpha, score = page.app("alpha"), page.app("list.score[0]")
    assert score != before and page.session.state.alpha != alpha
    page.mouse("mouseReleased", x + 110, y, clickCount=1)
    page.until("document.querySelector('.wb').workbench.alpha === null")
    assert page.session.state.alpha == pytest.approx(page.app("state.settings.alpha"))
    page.until("document.querySelector('.wb').workbench.timings.alpha.length > 0")


def test_two_documents_explain_each_other(page):
    a, b = page.rows()[:2]
    page.click(f"[data-row='{a}'] .wb-cell-text")
    page.click(f"[data-row='{b}'] .wb-cell-text")
    page.until("document.querySelectorAll('.wb-why-bars li').length > 3")
    adds = page.app("why.found.bars.reduce((sum, bar) => sum + bar.adds, 0)") + page.app("why.found.rest")
    scores = page.session.scores(page.session.state, np.array([a, b]))
    assert adds == pytest.approx(scores[0] - scores[1])


def test_switches_features_and_snapshots(page):
    page.press("s")
    page.until("document.querySelector('dialog[open] form')")
    page.ask("document.querySelector('dialog[open] form').requestSubmit()")
    page.until("document.querySelector('.wb').workbench.state.snapshots.length === 2")
    page.ask("document.querySelector('[data-setting=\"tied_pairs:true\"]').click()")
    page.until("document.querySelector('.wb').workbench.state.settings.tied_pairs === true")
    page.ask("document.querySelector('.wb-feature .wb-switch').click()")
    page.until("document.querySelector('.wb').workbench.state.off.length === 1")
    page.ask("document.querySelector('.wb-feature .wb-sign:not(:disabled)').click()")
    page.until("Object.keys(document.querySelector('.wb').workbench.state.signs).length === 1")
    page.press("c")
    page.until("document.querySelector('.wb-pair .wb-wins')")
    text = page.ask("document.querySelector('.wb-pair').innerText")
    assert "Jaccard" in text and "RBO" in text and "Biggest movers" in text
    page.ask("document.querySelector('dialog[open] .wb-ghost').click()")
    page.ask("[...document.querySelectorAll('.wb-snapshot .wb-small')].find((b) => !b.disabled).click()")
    page.until("document.querySelector('.wb').workbench.state.off.length === 0")
    assert page.session.state.tied_pairs is False


def test_queries_are_found_sorted_and_unlearned(page):
    page.type_into(".wb-search input", "lamp", "input")
    names = page.ask("[...document.querySelectorAll('.wb-query-name')].map((e) => e.textContent)")
    assert names and all("lamp" in name for name in names)
    page.type_into(".wb-sort select", "score", "change")
    order = page.app("queryList.shown.map((i) => document.querySelector('.wb').workbench.queries.score[i])")
    values = [value for value in order if value is not None]
    assert values == sorted(values)
    query = page.app("query")
    page.press("x")
    page.until("document.querySelector('.wb').workbench.list.forgotten")
    assert page.session.state.forgotten == {query}


def test_a_second_tab_follows(page, browser):
    page.session.do({"do": "grade", "row": page.rows()[0], "grade": 1})
    page.until("document.querySelector('.wb').workbench.state.undo === 'graded 1'")


def test_odd_names_are_text(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    rng = np.random.default_rng(0)
    qid = np.repeat(np.array(ODD, dtype=object), 6)
    data = RankingData(rng.normal(size=(30, 3)), rng.integers(0, 3, 30).astype(float), qid, [ODD[0], ODD[1], ODD[2]])
    named = documents(
        data, doc_ids=[ODD[i % 5] for i in range(30)], titles=[ODD[(i + 1) % 5] for i in range(30)], name=ODD[0]
    )
    with served(named) as server:
        page = Page(browser, server.url)
        for query in range(5):
            page.ask(f"document.querySelector('.wb').workbench.show({query})")
            page.until(f"document.querySelector('.wb').workbench.list.query === {query}")
        a, b = page.rows()[:2]
        page.click(f"[data-row='{a}'] .wb-cell-text")
        page.click(f"[data-row='{b}'] .wb-cell-text")
        page.until("document.querySelectorAll('.wb-why-bars li').length > 1")
        page.press("c")
        page.until("document.querySelector('.wb-pair')")
        assert page.ask("window.hacked === undefined && document.querySelectorAll('.wb script, .wb img').length === 0")
        assert page.ask("document.documentElement.scrollWidth <= innerWidth")
        page.clean()


@pytest.mark.parametrize("width", [375, 768, 1280, 2560])
def test_every_width_fits(browser, tmp_path, monkeypatch, width):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served(demo()) as server:
        page = Page(browser, server.url, width)
        for tab in ("queries", "documents", "model"):
            page.ask(f"document.querySelector('.wb').workbench.showTab('{tab}')")
            assert page.ask("document.documentElement.scrollWidth") <= width
        page.clean()


def test_many_queries_draw_few_rows(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    rng = np.random.default_rng(0)
    m = 20_000
    data = RankingData(rng.normal(size=(m, 3)), rng.integers(0, 3, m).astype(float), np.repeat(np.arange(m // 2), 2))
    with served(documents(data)) as server:
        page = Page(browser, server.url)
        assert page.ask("document.querySelectorAll('.wb-query').length") < 60
        assert page.app("queries.ids.length") == m // 2
        page.clean()


def start(folder, *words):
    command = [sys.executable, "-m", "rankrls", "workbench", *words, "--no-browser", "--quiet", "--json"]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    text = ""
    while not text.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, "the command ended"
        text += line
    return process, json.loads(text)["url"]


def test_the_page_finds_its_server_again_after_a_kill(browser, tmp_path):
    dump_letor(make_search(12, random_state=0), tmp_path / "data.txt")
    process, url = start(tmp_path, "data.txt")
    try:
        page = Page(browser, url)
        row = page.rows()[0]
        page.press("4")
        page.until("document.querySelector('.wb').workbench.state.undo === 'graded 4'")
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        page.until("document.querySelector('.wb.wb-lost')")
        process.stdout.close()
        process, again = start(tmp_path, "data.txt")
        assert again == url
        page.until("!document.querySelector('.wb.wb-lost')")
        page.until("document.querySelector('.wb').workbench.state.undo === 'graded 4'")
        assert row in page.rows()
        page.press("u")
        page.until("document.querySelector('.wb').workbench.state.undo === null")
        browser.console(), browser.requests()  # failed requests while the server was away
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def test_what_is_exported_opens_again(page, tmp_path, browser):
    page.press("4")
    page.until("document.querySelector('.wb').workbench.state.undo === 'graded 4'")
    page.press("e")
    page.until("document.querySelector('[data-export=model]')")
    folder = tmp_path / "downloads"
    folder.mkdir()
    browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    for what, name in (("model", "model.rankrls"), ("judgments", "judgments.csv"), ("script", "session.py")):
        page.ask(f"document.querySelector('[data-export={what}]').click()")
        end = time.monotonic() + 20
        while not (folder / name).exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert (folder / name).stat().st_size > 0
    from rankrls import load

    model, session = load(folder / "model.rankrls"), page.session
    rows = np.arange(50)
    model.__dict__.pop("feature_names_in_", None)
    np.testing.assert_allclose(
        model.predict(session.documents.X[rows]), session.scores(session.state, rows), rtol=1e-10
    )
    fresh = Session(demo(), model)
    from rankrls.app.api import Api

    got = json.loads(Api(fresh).answer("POST", "judgments", {}, (folder / "judgments.csv").read_bytes()).content)
    assert got["unknown"] == 0
    np.testing.assert_array_equal(fresh.labels(fresh.state), session.labels(session.state))
    fresh.close()
