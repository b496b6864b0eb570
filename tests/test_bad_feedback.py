"""Invalid logs, judgments, pairs, signs, runs and mixes: clear errors, and nothing is learned halfway."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from rankrls import RankRLS, clicks, fusion
from rankrls.datasets import make_search

DATA = make_search(30, random_state=0)
FRAME = pd.DataFrame(DATA.X, columns=DATA.feature_names)
LOG = pd.DataFrame(
    {
        "query": ["a", "a", "b", "b"] * 3,
        "document": ["x", "y", "x", "z"] * 3,
        "position": [1, 2] * 6,
        "clicked": [1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0],
    }
)
ROWS = {"X": np.arange(12.0).reshape(4, 3) ** 2, "qid": ["a", "a", "b", "b"], "doc_ids": ["x", "y", "x", "z"]}


def refused(call, message, kind=ValueError):
    with pytest.raises(kind, match=message):
        call()


LOGS = {
    "no positions": (
        LOG.drop(columns="position"),
        "no column 'position', so it does not say where documents were shown",
    ),
    "no clicks": (LOG.drop(columns="clicked"), "no column 'clicked'"),
    "no documents": (LOG.drop(columns="document"), "no column 'document'"),
    "from 0": (LOG.assign(position=LOG["position"] - 1), "whole numbers from 1 .* row 0 of the log has position 0"),
    "halves": (LOG.assign(position=1.5), "positions are whole numbers"),
    "position unknown": (LOG.assign(position=[None] + [1] * 11), "position must be finite: log row 0 has nan"),
    "position in words": (LOG.assign(position="top"), "column 'position' of the log holds numbers.* row 0 has 'top'"),
    "clicks in words": (LOG.assign(clicked="yes"), "column 'clicked' of the log holds numbers.* row 0 has 'yes'"),
    "click unknown": (
        LOG.assign(clicked=pd.array([None] + [True] * 11, "boolean")),
        "clicked must be finite: log row 0",
    ),
    "more clicks than shown": (LOG.assign(clicked=5), "clicks lie between 0 and the impressions"),
    "negative clicks": (LOG.assign(clicked=-1), "clicks lie between 0 and the impressions"),
    "never shown": (LOG.assign(impressions=0), "a row needs at least one impression"),
    "query unknown": (LOG.assign(query=[None] + ["a"] * 11), "column 'query' of the log is empty in row 0"),
    "document unknown": (LOG.assign(document=[np.nan] + ["x"] * 11), "column 'document' of the log is empty in row 0"),
    "empty": (LOG[:0], "the log has no rows"),
    "nobody clicked": (LOG.assign(clicked=0), "none of the 12 impressions of documents in X was clicked"),
    "everything clicked": (LOG.assign(clicked=1), "no comparable pair"),
    "other queries": (LOG.assign(query="elsewhere"), "none of the 3 rows of the log has a document in X"),
}


@pytest.mark.parametrize("name", LOGS)
def test_click_logs(name):
    log, message = LOGS[name]
    refused(lambda: clicks.ClickRanker().fit(log=log, **ROWS), message)


@pytest.mark.parametrize("log", [5, "log.csv", [], np.zeros((3, 4))], ids=str)
def test_tables_that_are_no_logs_are_refused(log):
    refused(lambda: clicks.ClickLog.of(log), "a log is a data frame, a dict of columns or a list of dicts", TypeError)


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ([1, 0], "the propensity of position 2 is 0, but clicks are divided by it"),
        ([1, -0.5], "the propensity of position 2 is -0.5"),
        ([1, np.nan], "the propensity of position 2 is nan"),
        ([1], "one number per position: got shape .1,., the log has 2"),
        ("high", "one number per position, got 'high'"),
    ],
)
@pytest.mark.parametrize("method", ["propensities", "expected"])
def test_propensities(theta, message, method):
    refused(lambda: clicks.ClickRanker(method=method, propensities=theta).fit(log=LOG, **ROWS), message)
    refused(lambda: clicks.from_clicks(LOG, theta=theta, method=method), message)


def test_a_log_that_cannot_separate_positions_from_relevance():
    refused(lambda: clicks.propensities(clicks.ClickLog.of(LOG)), "no clicked document of a query was shown at two pos")
    refused(lambda: clicks.from_clicks(LOG), "give propensities, use ClickRanker")


def test_names_of_columns_and_ids_in_any_form():
    """Names in capitals, ids that missing values turned into floats."""
    numbers = LOG.replace({"query": {"a": 1, "b": 2}, "document": {"x": 7, "y": 8, "z": 9}}).infer_objects()
    floats = numbers.astype({"query": float, "document": float}).rename(columns=str.capitalize)
    as_numbers = {**ROWS, "qid": [1, 1, 2, 2], "doc_ids": [7, 8, 7, 9]}
    found = [clicks.ClickRanker().fit(log=log, **as_numbers) for log in (numbers, floats)]
    assert [model.n_unmatched_ for model in found] == [0, 0]
    assert_array_equal(found[0].ranker_.coef_, found[1].ranker_.coef_)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n \n", "is empty: there are no judgments"),
        ("q 0 a\n", "line 1: qrels have four words"),
        ("q 0 a good\n", "a rating is a number, got 'good'"),
        ("q 0 a inf\n", "the rating of document 'a' of query 'q' is infinite"),
        ("q 0 a 1\nq 0 a 0\n", "document 'a' of query 'q' occurs twice"),
        ("query,docid\nq,a\n", "no column 'rating'"),
        ("query,docid,rating\nq,a,1,2\n", "line 2: 4 values under 3 names"),
        ("query,docid,rating\nq,a,\n", "no row with a rating"),
    ],
)
def test_judgments(text, message):
    refused(lambda: clicks.read_judgments(text), message)


def test_judgments_with_line_breaks_and_without_rows():
    judged = clicks.read_judgments('query,docid,rating\n"red\nshoes",a,1\n\nhats,b,0\n')
    assert judged.query.tolist() == ["red\nshoes", "hats"]
    refused(lambda: judged.join(["hats", "hats"], ["b", "b"]), "document 'b' of query 'hats' occurs twice")
    refused(lambda: judged.join(["hats", "hats"], ["b"]), "one id per row of features")


PAIRS = {
    "with itself": ([[0, 0]], {}, "but the two are equal in every feature"),
    "beyond the rows": ([[0, 10**6]], {}, "pair 0 is .0, 1000000., but X has rows 0 to"),
    "before the rows": ([[-1, 0]], {}, "pair 0 is .-1, 0."),
    "none": (np.empty((0, 2)), {}, "got shape .0, 2."),
    "names": ([["a", "b"]], {}, "row numbers .integers."),
    "halves": ([[0.5, 1]], {}, "row numbers .integers."),
    "three": ([[0, 1, 2]], {}, "got shape .1, 3."),
    "margin unknown": ([[0, 1]], {"margins": [np.nan]}, "margins must be finite: pair 0"),
    "margins too many": ([[0, 1]], {"margins": [1.0, 2.0]}, "margins must hold one number per pair"),
    "negative weight": ([[0, 1]], {"weights": [-1.0]}, "weights must not be negative"),
    "no weight": ([[0, 1]], {"weights": [0.0]}, "weights is zero for every pair"),
    "opposites": ([[0, 1], [1, 0]], {}, "pair 0 prefers row 0 to row 1, but the opposite was given as pair 1"),
    "opposite equations": ([[0, 1], [1, 0]], {"exact": True}, "the opposite was given as pair 1"),
    "a cycle of equations": (
        [[0, 1], [1, 2], [2, 0]],
        {"exact": True},
        "contradict each other .pair 2 by .* against pairs",
    ),
    "two margins": ([[0, 1], [0, 1]], {"margins": [1.0, 2.0], "exact": True}, "pair 1 by 2 against pair 0 .by 1."),
}


@pytest.mark.parametrize("name", PAIRS)
def test_invalid_pairs_are_refused(name):
    pairs, options, message = PAIRS[name]
    model = RankRLS(1.0).fit(FRAME, DATA.y, qid=DATA.qid)
    before = model.coef_.copy()
    refused(lambda: model.add_pairs(FRAME, pairs, **options), message)
    assert_array_equal(model.coef_, before)
    assert len(getattr(model, "pairs_", ())) == 0
    model.add_pairs(FRAME, [[0, 1]])  # and goes on


def test_removing_pairs_that_were_never_added_and_margins_without_pairs():
    model = RankRLS(1.0).fit(FRAME, DATA.y, qid=DATA.qid)
    refused(lambda: model.remove_pairs(FRAME, [[0, 1]]), "was never added to this model")
    model.add_pairs(FRAME, [[0, 1]])
    refused(lambda: model.add_pairs(FRAME, [[1, 0]]), "the opposite was given before: remove one of them")
    for name in ("margins", "pair_weights"):
        refused(
            lambda name=name: RankRLS().fit(FRAME, DATA.y, qid=DATA.qid, **{name: [1.0]}), "there are none: pass pairs="
        )


@pytest.mark.parametrize(
    ("positive", "message"),
    [
        ({"pagerank": 1, FRAME.columns.get_loc("pagerank"): -1}, "positive requires both signs for column"),
        ({"pagerank": 0}, "the sign of a weight is \\+1 or -1, got 0 for column 'pagerank'"),
        ({"pagerank": "+"}, "got '\\+' for column 'pagerank'"),
        (["page_rank"], "positive names column 'page_rank', which X does not have; it has bm25_title"),
        ([99], "positive names column 99, but X has columns 0 to 11"),
        (1.5, "positive must be True, columns, or a dict"),
    ],
)
def test_invalid_signs_are_refused(positive, message):
    refused(lambda: RankRLS(1.0, positive=positive).fit(FRAME, DATA.y, qid=DATA.qid), message)


def test_signs_as_a_mask():
    mask = np.array([name == "spam_score" for name in FRAME])
    by_mask, by_name = (RankRLS(1.0, positive=p).fit(FRAME, DATA.y, qid=DATA.qid) for p in (mask, ["spam_score"]))
    assert_array_equal(by_mask.coef_, by_name.coef_)


A = [("q", "a", 9.0), ("q", "b", 3.0), ("r", "c", 1.0), ("r", "a", 0.5)]
B = [("q", "b", 0.8), ("q", "c", 0.3), ("r", "c", 0.9), ("r", "d", 0.1)]
JUDGED = {"q": {"a": 1, "b": 0, "c": 0}, "r": {"c": 1, "d": 0}}
RUNS = {
    "none": ({}, JUDGED, "there are no runs"),
    "empty": ({"a": A, "b": []}, JUDGED, "run 'b' is empty"),
    "no common document": (
        {"a": A, "b": [("q", "x", 1.0)]},
        JUDGED,
        "'a' and 'b' have no document of a query in common",
    ),
    "no common query": ({"a": A, "b": [("z", "a", 1.0)]}, JUDGED, "have no document of a query in common"),
    "twice": ({"a": [*A, A[0]], "b": B}, JUDGED, "run 'a' has document 'a' of query 'q' twice"),
    "no score": ({"a": [("q", "a", np.nan)], "b": B}, JUDGED, "run 'a' has the score nan for document 'a'"),
    "words": ({"a": [("q", "a", "high")], "b": B}, JUDGED, "the score is a number; got .'q', 'a', 'high'."),
    "short rows": ({"a": [("q", "a")], "b": B}, JUDGED, "rows are .query, document, score."),
    "other columns": ({"a": pd.DataFrame(A, columns=["qid", "docno", "s"]), "b": B}, JUDGED, "has no column 'score'"),
    "other queries judged": (
        {"a": A, "b": B},
        {"z": {"a": 1}},
        "no query of the runs has a judgment: .* 'q', the .* 'z'",
    ),
    "other documents judged": ({"a": A, "b": B}, {"q": {"z": 1}}, "no document of the runs has a judgment"),
    "one rating": (
        {"a": A, "b": B},
        {"q": {"a": 1, "b": 1, "c": 1}},
        "only 0 of 1 judged queries have documents of diff",
    ),
    "one query": (
        {"a": A, "b": B},
        {"q": JUDGED["q"]},
        "only 1 of 1 judged queries has documents of different ratings",
    ),
    "upside down": ({"a": A, "b": A}, {"q": {"b": 1}, "r": {"a": 1}}, "no retriever ranks relevant documents above"),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_that_cannot_be_fused(name):
    runs, judged, message = RUNS[name]
    refused(lambda: fusion.Fusion().fit(runs, judged), message)


def test_runs_are_known_by_name_and_junk_is_irrelevant():
    model = fusion.Fusion().fit({"a": A, "b": B}, JUDGED)
    turned = fusion.Runs.of({"b": B, "a": A})
    scores = dict(zip(zip(turned.query, turned.document, strict=True), model.predict(turned), strict=True))
    straight = fusion.Runs.of({"a": A, "b": B})
    assert [scores[key] for key in zip(straight.query, straight.document, strict=True)] == model.predict(
        straight
    ).tolist()
    refused(lambda: model.predict({"a": A, "c": B}), "the weights are for a, b, but got runs of a, c")
    refused(lambda: fusion.Runs.of([A, B]), "runs need names: pass a dict .*, not a list", TypeError)
    junk = {"q": {"a": 1, "b": -2, "c": 0}, "r": {"c": 1, "d": -1}}  # as TREC marks spam
    assert_array_equal(fusion.Fusion().fit({"a": A, "b": B}, junk).weights_, model.weights_)


def test_invalid_gains_and_mixes_are_refused():
    several = RankRLS(1.0, tied_pairs=True).fit(FRAME, np.column_stack([DATA.y, DATA.X[:, 0]]), qid=DATA.qid)
    refused(lambda: several.mix([0.0, 0.0]), "every weight is zero")
    refused(lambda: several.mix([1.0]), "one number per target")
    refused(lambda: several.mix([1.0, np.nan]), "weights must be finite: target 1")
    falling = RankRLS(1.0, gain=lambda y: -y)
    refused(lambda: falling.fit(FRAME, DATA.y, qid=DATA.qid), "it must not fall as labels grow. .* negate y instead")
    refused(
        lambda: RankRLS(gain="exponential").fit(FRAME, 1000.0 * DATA.y, qid=DATA.qid), "turns the label 3000 into inf"
    )
