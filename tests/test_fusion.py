"""Hybrid search: runs side by side, weights learned from judgments, and search engines."""

import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from papers import RankRLS
from rankrls import clicks, fusion, metrics
from rankrls.cli import main
from rankrls.datasets import to_trec_run

RUNS, JUDGMENTS = fusion.make_runs(40, random_state=0)
SMALL = {
    "a": [("q", "1", 4.0), ("q", "2", 2.0), ("r", "1", 1.0)],
    "b": [("q", "2", 0.5), ("q", "3", 0.1), ("r", "1", 3.0)],
}


def test_scores_on_one_scale():
    runs = fusion.Runs.of(SMALL)
    assert runs.document.tolist() == ["1", "2", "3", "1"]
    assert_allclose(runs.normalised(), [[1, 0], [0, 1], [0, 0], [1, 1]])
    assert_allclose(runs.normalised("zscore"), [[1, -1], [-1, 1], [-1, -1], [0, 0]])
    assert_allclose(runs.reciprocal_ranks(), [1 / 61, 1 / 62 + 1 / 61, 1 / 62, 2 / 61])


def test_weights_are_those_of_a_non_negative_ranker():
    model = fusion.Fusion().fit(RUNS, JUDGMENTS)
    y = np.nan_to_num(JUDGMENTS.join(RUNS.query, RUNS.document).y)
    ranker = RankRLS(positive=True, scoring="ndcg@10").fit(RUNS.normalised(), y, qid=RUNS.query)
    assert_allclose(model.weights_, ranker.coef_ / ranker.coef_.sum())
    assert_allclose(model.predict(RUNS), RUNS.normalised() @ model.weights_)
    assert np.all(model.weights_ >= 0) and np.all(model.weight_errors_ > 0)
    found = {row.name: row.score for row in model.table_}
    held_out = metrics.ndcg(y, ranker.cv_predictions_, RUNS.query, k=10)
    assert_allclose(found["learned weights, held out"], held_out)
    assert_allclose(found["dense alone"], metrics.ndcg(y, RUNS.normalised()[:, 2], RUNS.query, k=10))
    assert {"equal weights", "reciprocal rank fusion", "title alone", "body alone"} <= set(found)
    assert found["learned weights, held out"] > found["body alone"]


def test_a_useless_retriever_gets_no_weight():
    rng = np.random.default_rng(0)
    noise = [(q, d, float(rng.normal())) for q, d in zip(RUNS.query, RUNS.document, strict=True)]
    rows = {
        name: [(q, d, v) for q, d, v in zip(RUNS.query, RUNS.document, s, strict=True) if not np.isnan(v)]
        for name, s in zip(RUNS.names, RUNS.scores.T, strict=True)
    }
    model = fusion.Fusion().fit({**rows, "noise": noise}, JUDGMENTS)
    assert model.weights_[3] < 0.1 < model.weights_[2]


def test_search_engines():
    model = fusion.Fusion().fit(RUNS, JUDGMENTS)
    linear = json.loads(fusion.export(model, "elasticsearch"))["retriever"]["linear"]
    assert_allclose([part["weight"] for part in linear["retrievers"]], model.weights_, atol=1e-6)
    assert {part["normalizer"] for part in linear["retrievers"]} == {"minmax"}
    (processor,) = json.loads(fusion.export(model, "opensearch"))["phase_results_processors"]
    inner = processor["normalization-processor"]
    assert inner["normalization"]["technique"] == "min_max"
    assert_allclose(sum(inner["combination"]["parameters"]["weights"]), 1, atol=1e-12)
    z = fusion.Fusion(normalise="zscore").fit(RUNS, JUDGMENTS)
    assert '"z_score"' in fusion.export(z, "opensearch")
    with pytest.raises(ValueError, match="vespa cannot normalise by z-scores"):
        fusion.export(z, "vespa")


ODD = {"bm25-title": 0.5, "7 words": 0.499999, "bm25 title": 0.000001}


@pytest.mark.parametrize("weights", [{"title": 1.0}, {"title": 0.25, "body": 0.75}, ODD], ids=["one", "two", "odd"])
def test_exports_follow_the_grammars_of_engines(weights):
    model = fusion.Fusion()
    model.names_, model.weights_ = list(weights), np.array(list(weights.values()))
    values = pytest.approx(model.weights_)
    request = json.loads(fusion.export(model, "solr", window=50))
    assert request["limit"] == 50
    terms = parsed_function(request["query"].removeprefix("{!func}"))
    assert [part[0] for part in terms[1]] == ["product"] * len(weights)
    assert [float(part[1][0]) for part in terms[1]] == values
    parameters = [part[1][1][1][0][1][0] for part in terms[1]]  # product(w, scale(query($name, 0), 0, 1))
    assert len(set(parameters)) == len(weights)
    for name in parameters:
        assert name[1:].isidentifier() and request["params"][name[1:]].endswith("v=$user_query}")
    profile = fusion.export(model, "vespa", window=50)
    assert profile.count("{") == profile.count("}")
    functions = re.findall(r"function (\w+)\(\) \{\s*expression: bm25\((\w+)\)\s*\}", profile)
    used = re.findall(r"([\d.]+) \* normalize_linear\((\w+)\)", profile)
    assert [name for name, _ in functions] == [name for _, name in used]  # every function is defined
    assert [float(w) for w, _ in used] == values and "rerank-count: 50" in profile
    linear = json.loads(fusion.export(model, "elasticsearch", window=50))["retriever"]["linear"]
    assert linear.keys() == {"retrievers", "rank_window_size"}
    assert all(part.keys() == {"retriever", "weight", "normalizer"} for part in linear["retrievers"])
    assert [part["weight"] for part in linear["retrievers"]] == values
    (processor,) = json.loads(fusion.export(model, "opensearch"))["phase_results_processors"]
    combination = processor["normalization-processor"]["combination"]
    assert combination["technique"] == "arithmetic_mean"
    assert sum(combination["parameters"]["weights"]) == pytest.approx(1, abs=1e-12)


def parsed_function(text):
    """name(argument, ...) as (name, arguments): Solr's grammar of functions, numbers and $parameters."""
    tokens = re.findall(r"\$?[A-Za-z_]\w*|\d+(?:\.\d+)?|[(),]", text)
    assert "".join(tokens) == text

    def expression():
        word = tokens.pop(0)
        if not tokens or tokens[0] != "(":
            return word
        tokens.pop(0)
        found = [expression()]
        while tokens[0] == ",":
            tokens.pop(0)
            found.append(expression())
        assert tokens.pop(0) == ")"
        return word, found

    found = expression()
    assert not tokens
    return found


def test_runs_and_judgments_as_frames_and_dicts():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frames, dicts, judged = {}, {}, {}
    for name, s in zip(RUNS.names, RUNS.scores.T, strict=True):
        known = ~np.isnan(s)
        columns = RUNS.query[known], RUNS.document[known], s[known]
        frames[name] = pd.DataFrame(dict(zip(("qid", "docno", "score"), columns, strict=True)))
        for q, d, score in zip(*columns, strict=True):
            dicts.setdefault(name, {}).setdefault(q, {})[d] = score
    for q, d, rating in zip(JUDGMENTS.query, JUDGMENTS.document, JUDGMENTS.rating, strict=True):
        judged.setdefault(q, {})[d] = rating
    expected = fusion.Fusion().fit(RUNS, JUDGMENTS).weights_
    for runs in (frames, {name: pl.from_pandas(frame) for name, frame in frames.items()}, dicts):
        assert_allclose(fusion.Fusion().fit(runs, judged).weights_, expected)
    with pytest.raises(ValueError, match="run 'a' has no column 'score'; it has qid, docno"):
        fusion.Runs.of({"a": frames["title"][["qid", "docno"]]})


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, s in zip(RUNS.names, RUNS.scores.T, strict=True):
        known = ~np.isnan(s)
        (tmp_path / f"{name}.run").write_text(to_trec_run(s[known], RUNS.query[known], RUNS.document[known], tag=name))
    JUDGMENTS.save(tmp_path / "judged.csv")
    JUDGMENTS.save(tmp_path / "judged.qrels")
    runs = [f"{name}.run" for name in RUNS.names]
    assert main(["fuse", *runs, "--qrels", "judged.qrels", "-o", "fused.run", "--to", "vespa"]) == 0
    printed = capsys.readouterr().out
    assert "reciprocal rank fusion" in printed and "rank-profile fusion" in printed
    fused = fusion.Runs.of({"fused": tmp_path / "fused.run"})
    model = fusion.Fusion().fit(RUNS, JUDGMENTS)
    expected = dict(zip(zip(RUNS.query, RUNS.document, strict=True), model.predict(RUNS), strict=True))
    found = zip(fused.query, fused.document, fused.scores[:, 0], strict=True)
    assert all(abs(expected[q, d] - s) < 1e-9 for q, d, s in found)
    assert main(["fuse", *runs, "--qrels", "judged.csv", "--json"]) == 0
    assert_allclose(list(json.loads(capsys.readouterr().out)["weights"].values()), model.weights_)
    assert main(["fuse", "title.run", "title.run", "--qrels", "judged.csv"]) == 2
    assert "every run needs its own name" in capsys.readouterr().err
    (tmp_path / "apart.run").write_text("elsewhere Q0 d0 1 2.5 apart\n")
    assert main(["fuse", "title.run", "apart.run", "--qrels", "judged.csv"]) == 2
    assert "'title' and 'apart' have no document of a query in common" in capsys.readouterr().err


def test_errors_say_what_to_do(tmp_path):
    apart = {"a": [("q", "1", 1.0), ("q", "2", 0.0)], "b": [("q", "x", 1.0)]}
    with pytest.raises(ValueError, match="'a' and 'b' have no document of a query in common"):
        fusion.Fusion().fit(apart, JUDGMENTS)
    with pytest.raises(ValueError, match="no query of the runs has a judgment"):
        fusion.Fusion().fit(SMALL, clicks.read_judgments("other 0 1 1\n"))
    with pytest.raises(ValueError, match="twice"):
        fusion.Runs.of({"a": [("q", "1", 1.0), ("q", "1", 2.0)]})
    with pytest.raises(ValueError, match="score nan"):
        fusion.Runs.of({"a": [("q", "1", float("nan"))]})
    with pytest.raises(ValueError, match="the weights are for title, body, dense"):
        fusion.Fusion().fit(RUNS, JUDGMENTS).predict(SMALL)
    (tmp_path / "bad.run").write_text("q Q0 d 1 x tag\n")
    with pytest.raises(ValueError, match="line 1: a run has six words"):
        fusion.read_run(tmp_path / "bad.run")
    upside_down = {"a": [(q, d, float(d)) for q in "qr" for d in "12"]}
    judged = clicks.read_judgments("q 0 1 1\nq 0 2 0\nr 0 1 1\nr 0 2 0\n")
    with pytest.raises(ValueError, match="every weight is zero"):
        fusion.Fusion().fit(upside_down, judged)


def test_order_of_rows_and_names_of_ids():
    mixed = {name: list(reversed(rows)) for name, rows in SMALL.items()}
    a, b = fusion.Runs.of(SMALL), fusion.Runs.of(mixed)
    key = lambda runs: dict(zip(zip(runs.query, runs.document, strict=True), runs.normalised().tolist(), strict=True))
    assert key(a) == key(b)
    assert_array_equal(a.names, ["a", "b"])
