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
from rankrls import RankRLS
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
    scores = page.session.models.scores(page.session.state, np.array([a, b]))
    assert adds == pytest.approx(scores[0] - scores[1])
    page.click("[title='Prefer the other way round']")
    page.until("document.querySelector('.wb').workbench.state.preferences.length === 1")
    assert page.session.state.preferences[0].above == b
    page.clean()


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


APP = "document.querySelector('.wb').workbench"
NAMES = ("wb-doc-name", "wb-doc-id")


def test_digits_that_come_faster_than_answers_grade_one_document_each(page):
    for key in "3201":
        page.press(key)
    page.until(f"{APP}.state.history.length === 4")
    assert page.app("state.history") == ["graded 3", "graded 2", "graded 0", "graded 1"]
    assert sorted(page.session.state.grades.values()) == [0, 1, 2, 3]
    page.until(f"{APP}.documents.focused === {APP}.documents.nextUnjudged(4)")  # the mark has moved on
    page.click(".wb-doc[tabindex='0'] .wb-chip")
    page.until("document.activeElement.getAttribute('aria-label') === 'Type a grade'")
    page.browser.command("Input.insertText", text="2.5")
    page.press("Enter")
    page.until(f"{APP}.state.undo === 'graded 2.5'")
    page.clean()


def test_unlearning_a_hundred_queries_shows_their_effect(page):
    page.mouse("mousePressed", *page.centre("[data-query='2']"), clickCount=1, modifiers=2)
    page.mouse("mouseReleased", *page.centre("[data-query='2']"), clickCount=1, modifiers=2)
    page.ask("document.querySelector('.wb-query-box').scrollTo(0, 54 * 97)")
    page.until("document.querySelector('[data-query=\"101\"]')")
    page.mouse("mousePressed", *page.centre("[data-query='101']"), clickCount=1, modifiers=8)
    page.mouse("mouseReleased", *page.centre("[data-query='101']"), clickCount=1, modifiers=8)
    assert page.ask("document.querySelector('.wb-pick').textContent").startswith("100 selected")
    page.ask("[...document.querySelectorAll('.wb-pick button')].find((b) => b.textContent === 'Un-learn').click()")
    page.until(f"{APP}.state.forgotten.length === 100")
    page.until("document.querySelector('.wb-last-worth').textContent.includes('→')")
    told = page.ask("document.querySelector('.wb-last').textContent")
    session, first = page.session, page.session.state.metrics[0]
    before, after = (
        float(session.quality.point(state).mean(first)[0])
        for state in (session.history.steps[-2].state, session.history.steps[-1].state)
    )
    assert told.startswith("100 queries un-learned") and f"{before:.4f} → {after:.4f}" in told
    page.clean()


def test_queries_are_selected_without_a_mouse_and_without_ctrl(page):
    page.ask("document.querySelector('.wb-query-box').focus()")
    for _ in range(3):
        page.press("ArrowDown", modifiers=8)
    page.until(f"{APP}.queryList.picked.size === 4")
    page.press(" ")
    page.until(f"{APP}.queryList.picked.size === 3 && {APP}.query === 3")
    page.ask("[...document.querySelectorAll('.wb-pick button')].find((b) => b.textContent === 'Un-learn').click()")
    page.until(f"{APP}.state.forgotten.length === 3 && !{APP}.queryList.picked.size")
    page.click(".wb-sort button")  # a click selects from now on, as on a phone
    page.click("[data-query='6']")
    page.click("[data-query='8']")
    page.until(f"{APP}.query === 3 && {APP}.queryList.picked.size === 2")
    page.click(".wb-sort button")
    page.type_into(".wb-search input", "lamp", "input")
    page.click(".wb-sort button")
    page.click(".wb-pick .wb-small")
    page.until(f"{APP}.queryList.picked.size === {APP}.queryList.shown.length && {APP}.queryList.picked.size > 3")
    page.clean()


def test_the_mark_stays_with_its_document(page):
    """Whatever happens to the list, a digit grades the document that the mark and the focus are on."""
    page.ask(f"{APP}.documents.go(3)")
    row = page.rows()[3]
    shuffle = "document.querySelector('[data-view=shuffled]').click()"
    for act in (shuffle, shuffle, f"void {APP}.follow(1e5)", *[shuffle] * 9):
        page.ask(act)
        assert page.ask("document.activeElement.dataset.row") == str(row)
        assert page.ask("document.querySelector('.wb-doc[tabindex=\"0\"]').dataset.row") == str(row)
    page.press("1")
    page.until(f"{APP}.state.undo === 'graded 1'")
    assert page.session.state.grades == {row: 1.0}


def test_metrics_are_chosen_and_all_shown(page):
    page.click(".wb-choose")
    page.until("document.querySelector('[data-metric]')")
    for name in ("disagreement_error", "err", "precision@5"):
        page.ask(f"document.querySelector('[data-metric=\"{name}\"]').click()")
    page.ask("[...document.querySelectorAll('.wb-metric-order button')].at(-1).click()")
    page.ask("document.querySelector('dialog .wb-primary').click()")
    page.until(f"{APP}.state.settings.metrics.length === 6 && !document.querySelector('dialog')")
    assert page.session.state.metrics[0] == "precision@5"
    page.until(f"{APP}.curve.metric === 'precision@5' && {APP}.curve.done === 1 && {APP}.state.headline.done === 1")
    rows = page.ask("[...document.querySelectorAll('.wb-metrics tbody tr')].map((e) => e.innerText)")
    assert len(rows) == 6 and rows[0].startswith("Precision@5") and all("±" in row for row in rows)
    page.press("c")
    page.until("document.querySelectorAll('.wb-table thead th').length === 8")
    page.clean()


def test_a_page_that_is_read_only_offers_no_change(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served(demo(), read_only=True) as server:
        page = Page(browser, server.url)
        assert page.ask("document.querySelector('.wb-title .wb-tag').checkVisibility()")
        rows = page.rows()
        page.drag(page.centre(f"[data-row='{rows[4]}'] .wb-rank"), page.centre(f"[data-row='{rows[1]}'] .wb-rank"))
        page.press("3")
        page.until("document.querySelector('.wb-toast')")
        enabled = ".wb-model :is(input, button):not(:disabled), .wb-doc-tools .wb-small:not(:disabled)"
        names = page.ask(
            f"[...document.querySelectorAll({json.dumps(enabled)})].filter((e) => e.checkVisibility())"
            ".map((e) => e.textContent || e.name || e.placeholder)"
        )
        assert {name.split("-")[-1] for name in names} == {"Choose metrics", "Compare", "baseline"}
        assert page.rows() == rows and not server.session.history.undoes
        page.clean()


def test_two_tabs_follow_each_other(page, browser):
    undo = "document.querySelector('.wb').workbench.state.undo"
    first = browser.tab()
    other = Page(browser, page.url)
    other.press("3")
    other.until(f"{undo} === 'graded 3'")
    second = browser.tab(first)
    page.until(f"{undo} === 'graded 3'")
    page.press("u")
    page.until(f"{undo} === null")
    browser.tab(second)
    other.until(f"{undo} === null")
    browser._call("/window", method="DELETE")
    browser._call("/window", {"handle": first})


def test_documents_are_called_by_title_or_id_and_notes_come_second(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    titles = ["A title = more", "inc = 1 prob = 0.5", "", "a=" * 400, "x = y"]
    data = RankingData(-np.arange(5.0)[:, None], np.arange(5.0), np.zeros(5, dtype=int))
    with served(documents(data, doc_ids=["GX1", "GX2", "3", "GX4", "GX5"], titles=titles)) as server:
        page = Page(browser, server.url)
        shown = "(name) => [...document.querySelectorAll('.wb-doc')].sort((a, b) => a.dataset.row - b.dataset.row)"
        names, notes = (page.ask(f"({shown}.map((e) => e.querySelector(name).textContent))('.{n}')") for n in NAMES)
        assert names == ["A title = more", "GX2", "Document 3", titles[3], "GX5"]
        assert notes == ["GX1", titles[1], "", "GX4", "x = y"]
        page.clean()


def test_a_page_without_its_token_says_so(page, browser):
    bare = Page(browser, page.url.split("?")[0], ready="document.querySelector('.wb-refused')")
    assert "token" in bare.ask("document.querySelector('.wb').innerText")
    browser.console()  # requests that were refused


def test_odd_names_stay_text(browser, tmp_path, monkeypatch):
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


BEYOND = """[...document.querySelectorAll(".wb-panel *, .wb-header *, dialog *")].filter((e) => {
  const box = e.getBoundingClientRect();
  const panel = e.closest(".wb-panel, .wb-header, dialog").getBoundingClientRect();
  const clipped = e.closest("svg, .wb-axis, .wb-weight, .wb-table-box, .wb-headline, .u-wrap, .wb-live");
  return e.checkVisibility() && !clipped && box.width && (box.right > panel.right + 1 || box.left < panel.left - 1);
}).map((e) => e.className + " " + e.textContent.slice(0, 30))"""


@pytest.mark.parametrize("width", [375, 768, 1024, 1280, 2560])
def test_every_width_fits(browser, tmp_path, monkeypatch, width):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served(demo()) as server:
        page = Page(browser, server.url, width)
        a, b = page.rows()[:2]
        server.session.do({"do": "prefer", "above": b, "below": a, "weight": 1234.5, "margin": 1.25})
        server.session.do({"do": "forget", "queries": [1]})
        page.until(f"{APP}.state.forgotten.length === 1")
        for tab in ("queries", "documents", "model"):
            page.ask(f"document.querySelector('.wb').workbench.showTab('{tab}')")
            page.ask("document.querySelector('.wb-model').scrollTo(0, 5000)")
            assert page.ask("document.documentElement.scrollWidth") <= width
            assert page.ask(BEYOND) == []
        page.ask("document.querySelector('.wb').workbench.showTab('documents')")
        page.click(".wb-doc .wb-chip")
        page.until("document.querySelector('.wb-grades')")
        assert page.ask(BEYOND) == []
        page.press("Escape")
        for key in "sce?":
            page.press(key)
            page.until("document.querySelector('dialog[open]')")
            assert page.ask(BEYOND) == []
            page.press("Escape")
            page.until("!document.querySelector('dialog[open]')")
        page.clean()


def random_rows(m, n, queries, labels=True):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, m).astype(float) if labels else np.full(m, np.nan)
    return documents(RankingData(rng.normal(size=(m, n)), y, np.arange(m) * queries // m))


def test_a_hundred_thousand_queries(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served(random_rows(200_000, 3, 100_000)) as server:
        page = Page(browser, server.url, ready="document.querySelector('.wb')?.workbench?.queries?.ids")
        assert page.app("queries.ids.length") == 100_000
        assert page.ask("document.querySelectorAll('.wb-query').length") < 60
        page.type_into(".wb-search input", "9999", "input")
        assert page.app("queryList.shown.length") == 19
        page.type_into(".wb-search input", "", "input")
        page.ask("document.querySelector('.wb-query-box').scrollTo(0, 3000000)")
        page.until("Number(document.querySelector('.wb-query').dataset.query) > 40000")
        page.press("j")
        page.until("document.querySelector('.wb').workbench.list.query === 1")
        page.clean()


@pytest.mark.parametrize("shape", [(60, 10, 1), (60, 5000, 6)])
def test_one_query_or_five_thousand_features(browser, tmp_path, monkeypatch, shape):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served(random_rows(*shape)) as server:
        page = Page(
            browser, server.url, ready="document.querySelector('.wb-doc') && document.querySelector('.wb-feature')"
        )
        assert page.ask("document.querySelectorAll('.wb-feature').length") < 40
        rows = page.rows()
        page.drag(page.centre(f"[data-row='{rows[4]}'] .wb-grip"), page.centre(f"[data-row='{rows[1]}'] .wb-grip"))
        page.until("document.querySelector('.wb').workbench.state.preferences.length === 1")
        now = page.rows()
        assert now.index(rows[4]) < now.index(rows[1])
        page.ask("document.querySelector('.wb-feature .wb-switch').click()")
        page.until("document.querySelector('.wb').workbench.state.off.length === 1")
        page.clean()


def test_judging_without_labels(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served(random_rows(40, 4, 4, labels=False)) as server:
        page = Page(browser, server.url)
        assert page.ask("document.querySelectorAll('.wb-grade-none').length") > 5
        for row in page.rows()[:2]:
            page.click(f"[data-row='{row}'] .wb-cell-text")
        page.until("document.querySelector('.wb-why-head')?.textContent.includes('has the same score as')")
        page.click(".wb-why [aria-label='Close']")
        for number, key in enumerate("301204"):
            page.press(key)
            page.until(f"document.querySelector('.wb').workbench.state.judged === {number + 1}")
        page.press("j")
        page.until("document.querySelector('.wb').workbench.list.query === 1")
        rows = page.rows()
        page.drag(page.centre(f"[data-row='{rows[3]}'] .wb-grip"), page.centre(f"[data-row='{rows[0]}'] .wb-grip"))
        page.until("document.querySelector('.wb').workbench.state.preferences.length === 1")
        session = server.session
        assert len(session.state.grades) == 6 and np.abs(session.models.coef(session.state)).max() > 0
        page.until("document.querySelector('.wb').workbench.state.headline.metrics[0].mean !== null")
        page.clean()


def test_a_kernel_model_is_dragged_and_explained(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    data = make_search(30, random_state=0)
    model = RankRLS(0.5, kernel="rbf", basis=20, random_state=0).fit(data.X, data.y, qid=data.qid)
    with served(documents(data), model=model) as server:
        page = Page(browser, server.url)
        rows = page.rows()
        page.drag(page.centre(f"[data-row='{rows[3]}'] .wb-grip"), page.centre(f"[data-row='{rows[1]}'] .wb-grip"))
        page.until("document.querySelector('.wb').workbench.state.preferences.length === 1")
        a, b = page.rows()[:2]
        page.click(f"[data-row='{a}'] .wb-cell-text")
        page.click(f"[data-row='{b}'] .wb-cell-text")
        page.until("document.querySelectorAll('.wb-why-bars li').length > 3")
        assert page.ask("[...document.querySelectorAll('.wb-section')].filter((e) => !e.hidden).length") == 4
        page.clean()


CONTRAST = """(() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith("color(") ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
  };
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color[3] > 0.99) return color;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  for (const e of document.querySelectorAll(".wb *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const shown = e.checkVisibility({ visibilityProperty: true });
    if (!own || !shown || e.closest(":disabled, .wb-live, canvas, option")) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(`${e.className} ${e.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
  }
  return found;
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_and_controls_have_names(page, browser, scheme):
    browser.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    a, b = page.rows()[:2]
    page.session.do({"do": "prefer", "above": b, "below": a})
    page.session.do({"do": "grade", "row": a, "grade": 1})
    page.session.do({"do": "forget", "queries": [1]})
    page.until("document.querySelector('.wb').workbench.state.forgotten.length === 1")
    page.click(f"[data-row='{a}'] .wb-cell-text")
    page.click(f"[data-row='{b}'] .wb-cell-text")
    page.until("document.querySelectorAll('.wb-why-bars li').length > 3")
    ground = page.ask("getComputedStyle(document.querySelector('.wb')).backgroundColor")
    assert (max(int(v) for v in ground[4:-1].split(",")) < 60) == (scheme == "dark")
    assert not page.ask(CONTRAST)
    page.press("c")
    page.until("document.querySelector('.wb-pair .wb-lines li')")
    assert not page.ask(CONTRAST)
    page.press("Escape")
    controls = {
        "button",
        "slider",
        "checkbox",
        "switch",
        "radio",
        "combobox",
        "searchbox",
        "spinbutton",
        "option",
    }
    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    seen = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"] and "role" in n]
    assert [role for role, name in seen if role in controls and not name.strip()] == []
    assert page.ask("[...document.querySelectorAll('[role=row]')].every((e) => e.ariaLabel)")
    assert {"main", "grid", "listbox", "radiogroup", "slider", "switch"} <= {role for role, _ in seen}
    browser.command("Emulation.setEmulatedMedia", features=[])


def test_the_keyboard_alone_is_enough(page):
    """From the list to a snapshot without a pointer; the focus is always visible."""
    page.ask("document.querySelector('.wb').workbench.documents.go(0)")
    page.press("ArrowDown")
    page.press("2")
    page.until("document.querySelector('.wb').workbench.state.undo === 'graded 2'")
    page.press("s")
    page.until("document.querySelector('dialog[open] form input')")
    page.press("Enter")
    page.until("document.querySelector('.wb').workbench.state.snapshots.length === 2")
    reached = set()
    for _ in range(60):
        page.press("Tab")
        outline = page.ask(
            "(() => { const e = document.activeElement; const s = getComputedStyle(e.closest('.wb-search') ?? e);"
            " return [e.getAttribute('aria-label') ?? e.textContent, s.outlineStyle]; })()"
        )
        reached.add(outline[0])
        assert outline[1] != "none" or page.ask("document.activeElement === document.body"), outline
    assert {"Regularisation alpha", "Share of regression", "Rename Start"} <= reached
    page.ask("document.querySelector('.wb [data-setting=\"gain:linear\"]').focus()")
    page.press("ArrowRight")
    page.until("document.querySelector('.wb').workbench.state.settings.gain === 'exp2'")
    assert page.ask("document.activeElement.dataset.setting") == "gain:exp2"
    label = "document.activeElement.getAttribute('aria-label')"
    page.ask("document.querySelector('.wb-feature .wb-switch').focus()")
    name = page.ask(label)
    page.press(" ")
    page.until("document.querySelector('.wb').workbench.state.off.length === 1")
    assert page.ask(label) == name  # the focus stays, though the feature has moved
    a, b = page.rows()[:2]
    page.session.do({"do": "prefer", "above": b, "below": a})
    page.until("document.querySelector('.wb').workbench.state.preferences.length === 1")
    page.ask("document.querySelector('.wb-preference .wb-number').select()")
    page.browser.command("Input.insertText", text="7")
    page.press("Tab")
    page.until("document.querySelector('.wb').workbench.state.preferences[0].weight === 7")
    assert page.ask(label) == "margin of the preference"
    page.ask("document.querySelector('.wb-feature .wb-switch').focus()")
    page.press("/")
    assert page.ask(label) == "Find a query"
    page.press("Tab")
    assert page.ask("document.activeElement.getAttribute('aria-label')") == "Sort queries"


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


def test_exported_files_can_be_opened_again(page, tmp_path, browser):
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
        model.predict(session.documents.X[rows]), session.models.scores(session.state, rows), rtol=1e-10
    )
    fresh = Session(demo(), model)
    from rankrls.app.api import Api

    got = json.loads(Api(fresh).answer("POST", "judgments", {}, (folder / "judgments.csv").read_bytes()).content)
    assert got["unknown"] == 0
    np.testing.assert_array_equal(fresh.models.labels(fresh.state), session.models.labels(session.state))
    fresh.close()
