"""The report: one page, correct figures, nothing loaded from outside, and text from the data stays text."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from browser import chromium
from rankrls import AutoRanker, RankRLS, load, metrics, save
from rankrls.cli import main, page
from rankrls.cli.entries import _names
from rankrls.cli.worst import wrong_pair
from rankrls.datasets import dump_letor, load_letor, make_search
from shared import unpacked

pytest.importorskip("matplotlib")

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>$x'

UNSCALED = {"scale": None} if "scale" in RankRLS().get_params() else {}


class Page(HTMLParser):
    """Elements and texts of a page, and whether its elements are closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data to judge by, models of several kinds, and scores."""
    folder = tmp_path_factory.mktemp("report")
    for name, queries, seed in (("train.txt", 40, 0), ("test.txt", 20, 1)):
        data = make_search(queries, mean_documents=14, random_state=seed)
        comments = np.array([f"docid = D{i}" for i in range(len(data))], dtype=object)
        dump_letor(replace(data, comments=comments), folder / name)
    train = lambda name, *words: main(["train", str(folder / "train.txt"), "-o", str(folder / name), "--quiet", *words])
    assert train("weak.rankrls", "--alpha", "1e7", "--scale", "query-minmax") == 0
    assert train("linear.rankrls", "--scale", "standard", "--scoring", "ndcg@10") == 0
    assert train("rbf.rankrls", "--method", "sparse", "--basis", "50", "--random-state", "0") == 0
    assert train("pursuit.rankrls", "--method", "pursuit", "--kernel", "linear") == 0
    words = ["predict", str(folder / "linear.rankrls"), str(folder / "test.txt"), "-o", str(folder / "linear.scores")]
    assert main([*words, "--quiet"]) == 0
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    capsys.readouterr()

    def call(*words, code=0):
        assert main(["report", *map(str, words)]) == code, capsys.readouterr().err
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return call


@pytest.fixture(scope="module")
def whole(folder):
    """A page of everything there is."""
    models = ["weak.rankrls", "linear.rankrls", "rbf.rankrls", "pursuit.rankrls", "linear.scores"]
    words = [str(folder / name) for name in ("test.txt", *models)]
    assert main(["report", *words, "-o", str(folder / "whole.html"), "--quiet"]) == 0
    return folder / "whole.html"


# ---------------------------------------------------------------- what is on it


def test_the_page_has_all_parts_and_loads_nothing(whole):
    found = Page(whole.read_text())
    for words in ("Data", "Comparison", "Pictures", "Models", "Queries ranked worst", "cannot be told apart", "Why "):
        assert words in found.text
    assert "script" not in found.tags and "link" not in found.tags and "iframe" not in found.tags
    sources = [value for _, key, value in found.attributes if key in ("src", "href", "srcset", "action")]
    assert all(value.startswith(("data:image/svg+xml;base64,", "#")) for value in sources)
    assert sum(value.startswith("data:") for value in sources) == 6 + 1 + 2 + 1 + 1  # pictures of all, then of each
    assert ("meta", "http-equiv", "Content-Security-Policy") in found.attributes
    assert not any(key.startswith("on") for _, key, _ in found.attributes)
    for value in sources:
        if value.startswith("data:"):
            picture = base64.b64decode(value.partition(",")[2]).decode()
            assert "<script" not in picture and not re.search(r'href="(?!#)', picture)


def test_the_figures_are_those_of_the_metrics(run, folder):
    record = json.loads(run("test.txt", "weak.rankrls", "linear.rankrls", "-o", "two.html", "--json", "--flips", "100"))
    data, model = load_letor("test.txt"), load("linear.rankrls")
    scores = model.predict(data.X)
    for name, entries in record["metrics"].items():
        values = metrics.per_query(name, data.y, scores, data.qid)
        assert_allclose(entries[1]["mean"][1], np.nanmean(values))
        assert_allclose(entries[1]["standard_error"][1], metrics.standard_error(values))
    found = Page(Path("two.html").read_text())
    main_metric = record["metrics"]["ndcg@10"][1]
    assert f"{main_metric['mean'][1]:.4f} ± {main_metric['standard_error'][1]:.4f}" in found.text
    assert f"{main_metric['difference']:+.4f}" in found.text
    assert record["bytes"] == len(Path("two.html").read_bytes())
    assert [model["name"] for model in record["models"]] == ["weak", "linear"]


def test_the_worst_query_its_list_and_the_reasons(run, folder):
    run("test.txt", "linear.rankrls", "-o", "one.html", "--worst", "1", "--top", "3", "--by", "pairwise_accuracy")
    data, model = load_letor("test.txt"), load("linear.rankrls")
    values = metrics.per_query("pairwise_accuracy", data.y, model.predict(data.X), data.qid)
    query = list(dict.fromkeys(data.qid))[int(np.nanargmin(values))]
    rows = np.flatnonzero(data.qid == query)
    order = rows[np.argsort(-model.predict(data.X[rows]), kind="stable")]
    above, below = (order[place] for place in wrong_pair(data.y[order]))
    found = Page(Path("one.html").read_text()).text
    assert f"query {query} , pairwise_accuracy {np.nanmin(values):.4f}, {len(rows)} rows" in found
    assert f"Why D{above} (place" in found and f"is above D{below} (place" in found
    scaled = model[0].transform(data.X[[above, below]])
    parts = model[-1].explain(scaled[0], scaled[1])
    j = int(np.argmax(np.abs(parts)))
    assert f"f{j + 1} {data.X[above, j]:.4g} {data.X[below, j]:.4g} {parts[j]:+.4g}" in found
    assert f"difference of the scores {parts.sum():+.4g}" in found
    assert f"{int((~np.isnan(values)).sum()) - 1} better ones are not shown" in found


@pytest.mark.parametrize(
    ("y", "pair"),
    [([3, 2, 1], None), ([0, 1], (0, 1)), ([1, 0, 2, 2], (1, 3)), ([0, 2, 0, 2, 1], (0, 3)), ([1, 1, 1], None)],
)
def test_the_pair_in_wrong_order_with_the_largest_gap(y, pair):
    assert wrong_pair(np.array(y, dtype=float)) == pair


def test_reasons_where_rows_are_scaled_within_whole_queries(run, folder):
    data = load_letor("test.txt")
    data.y[::5] = np.nan  # not judged, but part of their queries
    dump_letor(data, "holes.txt")
    run("holes.txt", "weak.rankrls", "-o", "holes.html", "--worst", "3")
    found = Page(Path("holes.html").read_text()).text
    scores, pairs = [], re.findall(r"Why D(\d+) .*?is above D(\d+) .*?difference of the scores ([+-]\S+)", found)
    main(["predict", "weak.rankrls", "holes.txt", "-o", "holes.scores", "--quiet"])
    scores = np.loadtxt("holes.scores")
    assert pairs and "rows without a label are not judged" in found
    for above, below, difference in pairs:
        assert_allclose(float(difference), scores[int(above)] - scores[int(below)], rtol=1e-3)


def test_score_files_and_tables_and_standard_output(folder, monkeypatch, capsysbinary):
    monkeypatch.chdir(folder)
    main(["convert", "train.txt", "train.csv", "--quiet"]), main(["convert", "test.txt", "test.csv", "--quiet"])
    main(["train", "train.csv", "-o", "few.rankrls", "--columns", "f7,f1,f3", "--quiet"])
    main(["train", "train.csv", "-o", "all.rankrls", "--quiet"])
    capsysbinary.readouterr()
    assert main(["report", "test.csv", "few.rankrls", "all.rankrls", "linear.scores", "-o", "-"]) == 0
    printed = capsysbinary.readouterr()
    assert printed.out.startswith(b"<!DOCTYPE html>") and printed.out.endswith(b"</html>\n")
    assert "scores from a file" in Page(printed.out.decode()).text


# ---------------------------------------------------------------- what must not happen


@pytest.fixture(scope="module")
def evil(folder):
    """A page of data in which every name is an attack."""
    data = make_search(12, random_state=3)
    qid = np.array([f"{q}{EVIL}" for q in data.qid], dtype=object)
    rows = ["label,qid,docid," + ",".join(f'"{j}{EVIL.replace(chr(34), chr(34) * 2)}"' for j in range(12))]
    quoted = lambda text: '"' + text.replace('"', '""') + '"'
    for i in range(len(data)):
        rows.append(",".join([f"{data.y[i]:g}", quoted(qid[i]), quoted(f"d{i}{EVIL}"), *map(repr, data.X[i].tolist())]))
    table, model = folder / "evil.csv", folder / "a<script>alert(3)<b>&'.rankrls"
    table.write_text("\n".join(rows) + "\n")
    assert main(["train", str(table), "-o", str(model), "--quiet"]) == 0
    words = [str(table), str(model), str(folder / "weak.rankrls"), "-o", str(folder / "evil.html"), "--quiet"]
    assert main(["report", *words, "--title", EVIL]) == 0
    return folder / "evil.html"


def test_text_from_the_data_stays_text(evil):
    found = Page(evil.read_text())
    assert set(found.tags) <= {
        *("html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "nav", "a", "section"),
        *("div", "table", "thead", "tbody", "tr", "th", "td", "p", "bdi", "strong", "small", "figure", "img"),
        *("figcaption", "details", "summary", "ul", "li", "meter"),
    }
    assert EVIL in found.text and re.search(r'd\d+"><script>', found.text) and "a<script>alert(3)<b>&'" in found.text
    assert not any(key.startswith("on") for _, key, _ in found.attributes)


def test_odd_characters_and_long_names():
    assert page.text("a\x00b\u202ec\n") == "a\ufffdb\ufffdc " and len(page.text("x" * 10_000)) == page.LENGTH
    assert page.page("\udc80", page.tag("p", "\udcff")).decode()  # of a file name that is no UTF-8
    assert page.tag("p", '"<', class_='"<') == '<p class="&quot;&lt;">&quot;&lt;</p>'
    assert _names(["a/m.rankrls", "b/m.rankrls", "c.scores"]) == ["a/m.rankrls", "b/m.rankrls", "c.scores"]


def test_the_page_stays_small_however_large_the_data(run, folder):
    small = make_search(30, mean_documents=10, random_state=0)
    large = make_search(3000, mean_documents=12, random_state=0)
    sizes = []
    for data in (small, large):
        dump_letor(data, "size.txt")
        np.savetxt("size.scores", data.X[:, 0])
        run("size.txt", "linear.rankrls", "size.scores", "-o", "size.html", "--flips", "100")
        sizes.append(len(Path("size.html").read_bytes()))
    assert sizes[1] < 1.5 * sizes[0] < 700_000
    assert "better ones are not shown" in Path("size.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["linear.rankrls", "test.txt"], "linear.rankrls is a model, but the data come first"),
        (["test.txt", "nowhere.rankrls"], "nowhere.rankrls: No such file"),
        (["nowhere.txt", "linear.rankrls"], "nowhere.txt: No such file"),
        (["test.txt", "linear.rankrls", "linear.rankrls"], "linear.rankrls is given twice"),
        (["test.txt", *(f"m{i}" for i in range(11))], "at most 10 models, got 11"),
        (["test.txt", "linear.rankrls", "--worst", "1000"], "--worst must be between 0 and 50"),
        (["test.txt", "linear.rankrls", "--top", "-1"], "--top must be between 0 and 100"),
        (["test.txt", "linear.rankrls", "--by", "ndgc"], "ndgc"),
        (["test.txt", "train.txt"], "train.txt, score 1: "),
        (["-", "-"], "standard input (-) can be read only once"),
        (["unlabelled.txt", "linear.rankrls"], "has a label"),
        (["tied.txt", "linear.rankrls"], "ndcg@10 is not defined for any query of tied.txt"),
        (["wide.txt", "linear.rankrls"], "wide.txt"),
        (["null.txt", "linear.rankrls"], "values of features are missing"),
        (["test.txt", "several.rankrls"], "several.rankrls: the model has 2 targets"),
        (["test.txt", "relation.rankrls"], "relation.rankrls is a model of relations"),
    ],
)
def test_errors_are_one_line_and_leave_no_page(words, message, run, folder):
    from rankrls import ConditionalRankRLS

    data = load_letor("test.txt")
    dump_letor(replace(data, y=np.full(len(data), np.nan)), "unlabelled.txt")
    dump_letor(replace(data, y=np.zeros(len(data))), "tied.txt")
    dump_letor(replace(data, X=np.hstack([data.X, data.X])), "wide.txt")
    dump_letor(replace(data, X=np.where(data.X[0, 0] == data.X, np.nan, data.X)), "null.txt")
    save(RankRLS(1.0, tied_pairs=True).fit(data.X, np.stack([data.y, data.y], axis=1), data.qid), "several.rankrls")
    save(ConditionalRankRLS(1.0).fit(data.X[:5], np.eye(5)), "relation.rankrls")
    error = run(*words, "-o", "bad.html", "--quiet", code=2)
    assert message in error and error.count("\n") == 1
    assert not Path("bad.html").exists()


def test_without_matplotlib_the_error_names_the_extra(run, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install 'rankrls[plot]'" in run("test.txt", "linear.rankrls", "-o", "x.html", code=2)


def test_the_same_input_gives_the_same_page(run, folder):
    for name in ("first.html", "second.html"):
        run("test.txt", "linear.scores", "-o", name)
    assert Path("first.html").read_bytes() == Path("second.html").read_bytes()


# ---------------------------------------------------------------- in a browser


def test_in_chromium_at_the_width_of_a_phone_and_of_a_desk(whole, evil):
    with chromium() as browser:
        for width in (375, 1280):
            address = whole.as_uri()
            browser.open(address, width)
            assert browser.ask("document.readyState") == "complete"
            browser.ask("document.querySelectorAll('details').forEach(d => { d.open = true })")
            assert browser.ask("document.documentElement.scrollWidth") <= width  # tables scroll, the page does not
            pictures = "[...document.images].every(i => i.complete && i.naturalWidth > 0)"
            assert browser.ask(pictures) and browser.ask("document.images.length") == 11
            small = "[...document.querySelectorAll('td,p')].filter(e => parseFloat(getComputedStyle(e).fontSize) < 14)"
            assert browser.ask(f"{small}.length") == 0
            assert browser.ask("document.querySelectorAll('figure img')[0].getBoundingClientRect().width") > 300
            assert [url for url in browser.requests() if not url.startswith("data:")] == [address]
            assert browser.console() == []
        browser.open(evil.as_uri(), 375)
        assert browser.ask("document.scripts.length") == 0 and browser.console() == []
        assert browser.ask("document.documentElement.scrollWidth") <= 375


def test_a_real_set(run, folder):
    data = unpacked("letor4-mq2008") / "MQ2008" / "Fold1"
    assert main(["train", str(data / "train.txt"), "-o", "mq.rankrls", "--scoring", "ndcg@10", "--quiet"]) == 0
    run(data / "test.txt", "mq.rankrls", "-o", "mq.html", "--convention", "letor", "--quiet")
    found = Page(Path("mq.html").read_text()).text
    assert "2,874" in found and "0: 2,319 · 1: 378 · 2: 177" in found and "place 1, label 0" in found


def test_the_verdict_comes_first_and_warns_of_suspicious_models(run, folder):
    data = load_letor("train.txt")
    dump_letor(replace(data, X=data.X * np.where(np.arange(data.X.shape[1]) == 0, 1e4, 1.0)), "raw.txt")
    save(RankRLS(alphas=[1e6, 1e7], **UNSCALED).fit(load_letor("raw.txt").X, data.y, data.qid), "raw.rankrls")
    run("raw.txt", "raw.rankrls", "-o", "raw.html", "--quiet")
    text = Path("raw.html").read_text()
    found = Page(text).text
    places = [text.index(f'id="{part}"') for part in ("verdict", "queries", "comparison", "features", "data")]
    assert places == sorted(places)
    assert "is the smallest of its grid" in found and "columns differ in scale" in found
    assert "nothing was learned" not in found


def test_models_that_are_not_linear_give_reasons_too(run, folder):
    """Kernel models and AutoRanker: what features add to a difference sums to it, and nobody is told to scale."""
    data = load_letor("train.txt")
    raw = data.X * 10.0 ** np.arange(data.X.shape[1])
    dump_letor(replace(data, X=raw), "units.txt")
    save(AutoRanker(effort="fast").fit(raw, data.y, data.qid), "auto.rankrls")
    save(RankRLS(1.0, kernel="rbf", basis=20, random_state=0).fit(raw, data.y, data.qid), "kernel.rankrls")
    run("units.txt", "auto.rankrls", "kernel.rankrls", "-o", "bent.html", "--worst", "3", "--quiet")
    found = Page(Path("bent.html").read_text()).text
    assert "columns differ in scale" not in found and "in a linear model" in found
    why = re.findall(r"Why D(\d+) .*?is above D(\d+) .*?difference of the scores ([+-]\S+)", found)
    assert len(why) == 2 + 3  # of AutoRanker those that are open
    scores = load("kernel.rankrls").predict(raw)
    for above, below, difference in why[2:]:
        assert_allclose(float(difference), scores[int(above)] - scores[int(below)], rtol=1e-2)
    assert re.search(r"f\d+ \d+\.\d%", found[found.index("Features that matter") :])


def test_features_are_listed_by_what_they_contribute(run, folder):
    data, model = load_letor("test.txt"), load("linear.rankrls")
    run("test.txt", "linear.rankrls", "-o", "features.html", "--quiet")
    found = Page(Path("features.html").read_text()).text
    Z = model[0].transform(data.X)
    means = {q: Z[data.qid == q].mean(axis=0) for q in np.unique(data.qid)}
    parts = model[-1].coef_ * np.sqrt(np.mean([(z - means[q]) ** 2 for z, q in zip(Z, data.qid, strict=True)], axis=0))
    shares = parts / np.abs(parts).sum()
    j = int(np.argmax(np.abs(shares)))
    listed = found[found.index("Features that matter") :]
    assert listed.index(f"f{j + 1} {shares[j]:+.1%}") < listed.index("share of all features")
