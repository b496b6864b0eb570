"""Judgments, preferences, click logs and signs on the command line: the same models as from Python."""

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankrls
from rankrls import RankRLS, clicks
from rankrls.cli import main
from rankrls.datasets import make_search

DATA = make_search(25, random_state=0)
DOCS = np.array([f"d{i}" for i in range(len(DATA.y))])
NAMES = list(DATA.feature_names)
SOURCE = np.where(DATA.X[:, 0] > 12, "web", "shop")


def write(path, head, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = [[repr(float(v)) for v in row] for row in DATA.X]
    front = list(zip(DATA.qid, DOCS, strict=True))
    write("rows.csv", ["qid", "docid", *NAMES], [[*a, *x] for a, x in zip(front, X, strict=True)])
    labelled = [[*a, y, *x] for a, y, x in zip(front, DATA.y, X, strict=True)]
    write("labelled.csv", ["qid", "docid", "label", *NAMES], labelled)
    text = [[*a, s, *x] for a, s, x in zip(front, SOURCE, X, strict=True)]
    write("text.csv", ["qid", "docid", "source", *NAMES], text)
    write("judged.csv", ["query", "docid", "rating"], [[*a, y] for a, y in zip(front, DATA.y, strict=True)][:-20])
    log = clicks.simulate(DATA.y, DATA.qid, scores=-DATA.X[:, 0], swaps=0.3, sessions=30, random_state=0)
    cells = [log.query, DOCS[log.document], log.position, log.clicks, log.impressions]
    write("clicks.csv", ["query", "document", "position", "clicked", "impressions"], zip(*cells, strict=True))
    return tmp_path


def run(*words):
    try:
        return main([str(word) for word in words]) or 0
    except SystemExit as end:
        return end.code or 0


def trained(*words):
    assert run("train", *words, "-o", "m.rankrls", "--quiet") == 0
    return rankrls.load("m.rankrls")


def pair_rows(n=12):
    """Rows (better, worse) of neighbours with different labels."""
    i = np.flatnonzero((DATA.qid[1:] == DATA.qid[:-1]) & (DATA.y[1:] != DATA.y[:-1]))[: 2 * n : 2]
    return np.where((DATA.y[i] > DATA.y[i + 1])[:, None], np.column_stack([i, i + 1]), np.column_stack([i + 1, i]))


def pair_file(pairs, **columns):
    ends = [DATA.qid[pairs[:, 0]], DOCS[pairs[:, 0]], DOCS[pairs[:, 1]], *columns.values()]
    write("pairs.csv", ["query", "better", "worse", *columns], zip(*ends, strict=True))


# ---------------------------------------------------------------- judgments


def test_labels_from_another_file(files, capsys):
    model = trained("rows.csv", "--qrels", "judged.csv")
    part = slice(None, -20)
    expected = RankRLS().fit(DATA.X[part], DATA.y[part], qid=DATA.qid[part])
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert run("train", "rows.csv", "--qrels", "judged.csv", "-o", "m2") == 0
    assert "judged, 20 not; 0 judgments without a row" in capsys.readouterr().err
    assert run("cv", "rows.csv", "--qrels", "judged.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["held_out"] == pytest.approx(expected.cv_scores_.max())
    assert run("convert", "rows.csv", "joined.csv", "--qrels", "judged.csv") == 0
    assert run("evaluate", "rows.csv", "m.rankrls", "--qrels", "judged.csv", "--metrics", "ndcg@10", "--json") == 0
    both = capsys.readouterr().out
    assert run("evaluate", "joined.csv", "m.rankrls", "--metrics", "ndcg@10", "--json") == 0
    mean = lambda text: json.loads(text[text.index("{") :])["metrics"]["ndcg@10"]["mean"]
    assert mean(both) == mean(capsys.readouterr().out)


def test_judgments_from_clicks_and_back(files, capsys):
    assert run("judgments", "clicks.csv", "-o", "found.csv") == 0
    assert "clicks, positions 1 to 10\nwrote" in capsys.readouterr().out
    log = clicks.simulate(DATA.y, DATA.qid, scores=-DATA.X[:, 0], swaps=0.3, sessions=30, random_state=0)
    assert_allclose(np.sort(clicks.read_judgments("found.csv").rating), np.sort(clicks.from_clicks(log).rating))
    assert run("judgments", "clicks.csv", "-o", "naive.csv", "--click-method", "naive") == 0
    naive = clicks.from_clicks(log, method="naive")
    assert_allclose(np.sort(clicks.read_judgments("naive.csv").rating), np.sort(naive.rating))
    assert run("judgments", "clicks.csv", "-o", "found.qrels") == 2
    assert "round or grade them first" in capsys.readouterr().err
    assert run("judgments", "clicks.csv", "-o", "found.qrels", "--grades", 4) == 0
    assert set(clicks.read_judgments("found.qrels").rating) == {0, 1, 2, 3}
    assert run("judgments", "judged.csv", "-o", "judged.qrels") == 0
    assert run("judgments", "judged.qrels", "-o", "again.csv", "--json") == 0
    first, again = (clicks.read_judgments(name) for name in ("judged.csv", "again.csv"))
    assert_array_equal(first.rating, again.rating)
    capsys.readouterr()
    assert run("judgments", "judged.csv", "--propensities", "1,0.5") == 2
    assert "has no column 'clicked'" in capsys.readouterr().err


# ---------------------------------------------------------------- preferences


def test_pairs_in_addition_to_labels(files, capsys):
    pairs = pair_rows()
    margins, weights = np.tile([2.0, 1.5], 6), np.repeat([1.0, 3.0], 6)
    pair_file(pairs, margin=margins, weight=weights)
    model = trained("labelled.csv", "--pairs", "pairs.csv")
    expected = RankRLS().fit(DATA.X, DATA.y, qid=DATA.qid, pairs=pairs, margins=margins, pair_weights=weights)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    assert run("predict", "m.rankrls", "rows.csv", "-o", "scores.txt") == 0
    assert_allclose(np.loadtxt("scores.txt"), expected.predict(DATA.X), rtol=1e-8)


def test_pairs_that_must_hold_and_pairs_alone(files, capsys):
    pairs = pair_rows()
    pair_file(pairs, margin=["0.75", *[""] * 11], exact=["true", *["false"] * 11])
    for data, more in (("labelled.csv", []), ("rows.csv", []), ("text.csv", ["--encode", "yes"])):
        model = trained(data, "--pairs", "pairs.csv", *more)
        assert run("predict", "m.rankrls", data, "-o", "scores.txt") == 0
        scores = np.loadtxt("scores.txt")
        assert scores[pairs[0, 0]] - scores[pairs[0, 1]] == pytest.approx(0.75, abs=1e-6)
        assert (scores[pairs[:, 0]] > scores[pairs[:, 1]]).mean() > 0.8
    alone = RankRLS().fit_pairs(DATA.X, pairs[1:]).add_pairs(DATA.X, pairs[:1], margins=[0.75], exact=True)
    assert_allclose(trained("rows.csv", "--pairs", "pairs.csv").coef_, alone.coef_, rtol=1e-8)
    assert model is not None


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["q0000", "d0", "nobody", ""]], "pair 1: the data have no document 'nobody' in query 'q0000'"),
        ([["q0000", "d0", "d1", "much"]], "'much' in column 'margin' is not a number"),
        (
            [["q0000", "d0", "d1", ""], ["q0000", "d1", "d0", ""]],
            "pair 2 prefers 'd1' to 'd0', but pair 1 says the opposite",
        ),
        ([], "pairs.csv has no pairs"),
    ],
)
def test_invalid_pairs_are_refused(files, capsys, rows, message):
    write("pairs.csv", ["query", "better", "worse", "margin"], rows)
    assert run("train", "labelled.csv", "--pairs", "pairs.csv", "-o", "m.rankrls") == 2
    assert message in capsys.readouterr().err
    assert not (files / "m.rankrls").exists()


def test_pairs_to_judge_next(files, capsys):
    trained("labelled.csv")
    assert run("ask", "m.rankrls", "rows.csv", "-n", 4, "-o", "pairs.csv") == 0
    found = RankRLS().fit(DATA.X, DATA.y, qid=DATA.qid).next_pairs(DATA.X, DATA.qid, n=4)
    with open("pairs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["better"], row["worse"]) for row in rows] == [tuple(DOCS[pair]) for pair in found]
    assert run("train", "labelled.csv", "--pairs", "pairs.csv", "-o", "better.rankrls") == 0
    assert "learned  4 pairs added to the labels" in capsys.readouterr().out


# ---------------------------------------------------------------- clicks


@pytest.mark.parametrize("method", ["positions", "propensities", "expected", "naive"])
def test_clicks_instead_of_labels(files, capsys, method):
    model = trained("rows.csv", "--clicks", "clicks.csv", "--click-method", method)
    log = clicks.simulate(DATA.y, DATA.qid, scores=-DATA.X[:, 0], swaps=0.3, sessions=30, random_state=0)
    expected = clicks.ClickRanker(method=method).fit(DATA.X, log, qid=DATA.qid).ranker_
    assert_allclose(model.coef_, expected.coef_, rtol=1e-7, atol=1e-9)
    assert model.feature_names_in_.tolist() == NAMES


def test_clicks_on_tables_with_text(files, capsys):
    model = trained("text.csv", "--clicks", "clicks.csv")
    pd = pytest.importorskip("pandas")
    pipe = clicks.ClickRanker(rankrls.load("m.rankrls").__class__(model.steps)).ranker
    frame, log = pd.read_csv("text.csv"), pd.read_csv("clicks.csv")
    found = clicks.ClickRanker(pipe).fit(frame[["source", *NAMES]], log, frame["qid"], frame["docid"])
    assert_allclose(found.predict(frame[["source", *NAMES]]), model.predict(frame[["source", *NAMES]]), rtol=1e-7)
    assert_array_equal(found.rank(frame[["source", *NAMES]], frame["qid"]).min(), 1)
    assert 0.5 < found.score(frame[["source", *NAMES]], DATA.y, frame["qid"]) <= 1


def test_uninformative_logs_are_refused(files, capsys):
    write("blind.csv", ["query", "document", "clicked"], [["q0000", "d0", 1]])
    assert run("train", "rows.csv", "--clicks", "blind.csv", "-o", "m") == 2
    assert "no column 'position', so it does not say where documents were shown" in capsys.readouterr().err
    assert run("train", "rows.csv", "--clicks", "clicks.csv", "--click-method", "expected", "-o", "m", "--propensities",
               ",".join(["1", "0", *["0.5"] * 8])) == 2  # fmt: skip
    assert "the propensity of position 2 is 0" in capsys.readouterr().err
    assert run("train", "rows.csv", "--clicks", "clicks.csv", "--propensities", "1,0.5", "-o", "m") == 2
    assert "--propensities needs --click-method propensities or expected" in capsys.readouterr().err
    write("others.csv", ["query", "document", "position", "clicked"], [["elsewhere", "x", 1, 1]])
    assert run("train", "rows.csv", "--clicks", "others.csv", "-o", "m") == 2
    assert "none of the 1 rows of the log has a document in X" in capsys.readouterr().err
    assert run("train", "rows.csv", "--clicks", "clicks.csv", "--qrels", "judged.csv", "-o", "m") == 2
    assert "clicks replace labels" in capsys.readouterr().err
    assert not (files / "m").exists()


# ---------------------------------------------------------------- signs, mixes, how sure


def test_signs_of_weights(files, capsys):
    model = trained("labelled.csv", "--positive", "bm25_title=-1,spam_score=+1")
    expected = RankRLS(positive={NAMES.index("bm25_title"): -1, NAMES.index("spam_score"): 1})
    assert_allclose(model.coef_, expected.fit(DATA.X, DATA.y, qid=DATA.qid).coef_, rtol=1e-8, atol=1e-12)
    assert run("convert", "labelled.csv", "letor.txt") == 0
    again = trained("letor.txt", "--positive", f"{NAMES.index('bm25_title') + 1}=-1")
    assert again.coef_[NAMES.index("bm25_title")] <= 0
    encoded = trained("text.csv", "--qrels", "judged.csv", "--positive", "bm25_title=-1,source=web=+1")
    names = encoded[0].get_feature_names_out().tolist()
    assert encoded[-1].coef_[names.index("bm25_title")] <= 0 <= encoded[-1].coef_[names.index("source=web")]
    capsys.readouterr()
    assert run("train", "labelled.csv", "--positive", "bm25_titel", "-o", "m2") == 2
    assert "'bm25_titel' is not a column; did you mean bm25_title?" in capsys.readouterr().err
    assert run("train", "text.csv", "--qrels", "judged.csv", "--positive", "source", "-o", "m2") == 2
    assert "'source' is not encoded as one column" in capsys.readouterr().err
    assert run("train", "labelled.csv", "--positive", "bm25_title=+1,bm25_title=-1", "-o", "m2") == 2
    assert "both signs" in capsys.readouterr().err


def test_several_labels_are_mixed(files, capsys):
    head = ["qid", "relevance", "margin", *NAMES]
    margin = DATA.X[:, 3] - DATA.X[:, 4]
    front = zip(DATA.qid, DATA.y, margin, DATA.X.tolist(), strict=True)
    write("two.csv", head, [[*row, *x] for *row, x in front])
    model = trained("two.csv", "--mix", "relevance=0.7,margin=0.3", "--tied-pairs", "yes", "--alpha", 1)
    Y = np.column_stack([DATA.y, margin])
    expected = RankRLS(1.0, tied_pairs=True).fit(DATA.X, Y, qid=DATA.qid).mix([0.7, 0.3])
    assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    assert run("train", "two.csv", "--mix", "relevance=0.7,profit=0.3", "-o", "m2") == 2
    assert "no column 'profit'" in capsys.readouterr().err


@pytest.mark.parametrize("data", ["labelled.csv", "text.csv"])
def test_standard_deviations_and_rank_intervals(files, capsys, data):
    model = trained(data, "--qrels", "judged.csv")
    assert run("predict", "m.rankrls", data, "--std", "--interval", 0.8, "-o", "sure.csv") == 0
    with open("sure.csv", newline="") as file:
        columns = {name: np.array(cells) for name, *cells in zip(*csv.reader(file), strict=True)}
    X = DATA.X
    if data == "text.csv":
        pd = pytest.importorskip("pandas")
        model, X = model[-1], model[:-1].transform(pd.read_csv(data)[["source", *NAMES]])
    assert_allclose(columns["std"].astype(float), model.predict(X, return_std=True)[1], rtol=1e-9)
    ranks = np.column_stack([columns["best_rank"], columns["worst_rank"]]).astype(int)
    assert_array_equal(ranks, model.rank_interval(X, DATA.qid, level=0.8))
    capsys.readouterr()
    assert run("predict", "m.rankrls", data, "--std", "--format", "trec") == 2
    assert "--std and --interval are columns of a table" in capsys.readouterr().err
    assert run("predict", "m.rankrls", data, "--std") == 0
    assert capsys.readouterr().out.startswith("qid,docid,score,std\n")
