"""A search engineer has a judged log as the warehouse exports it, and wants to know whether to ship learned weights.

Raw file: CSV with a byte order mark, Windows line ends, its own column names, a column of text, gaps, and columns whose
scales differ by a factor of a million. The score in production is one of its columns.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rankrls
from rankrls.cli import main
from rankrls.datasets import make_search


def export(path, queries, seed):
    """The log as it comes out of a warehouse."""
    data = make_search(queries, mean_documents=15, random_state=seed)
    frame = pd.DataFrame(data.X, columns=data.feature_names).drop(columns=["query_length", "query_popularity"])
    frame["doc_length"] *= 1000.0
    frame["freshness_days"] = frame["freshness_days"].mask(np.random.default_rng(seed).random(len(frame)) < 0.05)
    frame.insert(0, "srch_id", data.qid)
    frame.insert(1, "url", [f"https://shop.example/item {i}" for i in range(len(frame))])
    frame.insert(2, "title", "a title, with a comma")
    frame["grade"] = data.y.astype(int)
    frame.to_csv(path, index=False, encoding="utf-8-sig", lineterminator="\r\n")


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    export("train.csv", 150, 0)
    export("test.csv", 60, 1)

    def call(command, code=0):
        found = main(command.split())
        printed = capsys.readouterr()
        assert found == code, printed.err
        return printed.out, printed.err

    return call


def test_from_the_export_to_a_decision(shell):
    # the first try names nothing; each answer says what to do next
    _, errors = shell("train train.csv -o model.rankrls", code=2)
    assert "no column 'label' or 'y': name it with --label; it has srch_id, url, title" in errors
    _, errors = shell("train train.csv -o model.rankrls --label grad", code=2)
    assert "did you mean grade?" in errors
    _, errors = shell("train train.csv -o model.rankrls --label grade", code=2)
    assert "pass --qid srch_id" in errors
    numbers = "--label grade --qid srch_id --docid url --encode no"
    _, errors = shell(f"train train.csv -o model.rankrls {numbers}", code=2)
    assert "in column 'title' is not a number; --exclude title leaves it out" in errors
    _, errors = shell(f"train train.csv -o model.rankrls {numbers} --exclude title", code=2)
    assert "--missing 0 or another number fills them in" in errors
    words = "--label grade --qid srch_id --docid url --exclude title"

    out, errors = shell(f"train train.csv -o model.rankrls {words} --missing 0 --scoring ndcg@10")
    assert "150 queries, 10 features" in out and errors == ""

    # from here on nothing has to be repeated: the model remembers
    shell("predict model.rankrls test.csv -o learned.csv")
    scores = pd.read_csv("learned.csv")
    assert list(scores.columns) == ["qid", "docid", "score"] and scores["docid"][0] == "https://shop.example/item 0"
    test = pd.read_csv("test.csv")
    pd.DataFrame({"qid": test["srch_id"], "docid": test["url"], "score": test["bm25_body"]}).to_csv(
        "production.csv", index=False
    )
    out, _ = shell(f"evaluate test.csv production.csv learned.csv --metrics ndcg@10 --json {words}")
    found = json.loads(out)["metrics"]["ndcg@10"]
    assert found["difference"] > 0.05 and found["p"] < 0.01  # the decision: ship it
    direct, _ = shell("evaluate test.csv model.rankrls --metrics ndcg@10 --json")
    assert json.loads(direct)["metrics"]["ndcg@10"]["mean"][0] == pytest.approx(found["mean"][1])

    # why the first is above the second, for the meeting
    model = rankrls.load("model.rankrls")
    query = test[test["srch_id"] == test["srch_id"].mode()[0]].fillna(0)
    rows = query[list(model.feature_names_in_)]
    order = np.argsort(-model.predict(rows))
    why = rankrls.explain(model, rows.iloc[order[0]], rows.iloc[order[1]])
    assert why.idxmax() in rows.columns and why.sum() >= 0

    # and the page and the weights to deploy
    out, _ = shell("report test.csv model.rankrls production.csv -o report.html")
    assert "2 models on 60 queries" in out
    out, _ = shell("export model.rankrls --to opensearch -o weights.json --name shop")
    assert "bm25_title" in Path("weights.json").read_text()


def test_scales_of_columns_do_not_matter(shell):
    words = "--label grade --qid srch_id --docid url --exclude title --missing 0 --alpha 1"
    shell(f"train train.csv -o a.rankrls {words}")
    frame = pd.read_csv("train.csv").assign(doc_length=lambda f: f["doc_length"] / 1e6)
    frame.to_csv("rescaled.csv", index=False)
    shell(f"train rescaled.csv -o b.rankrls {words}")
    a, b = (rankrls.load(f"{name}.rankrls").coef_ for name in "ab")
    scale = np.where(rankrls.load("a.rankrls").feature_names_in_ == "doc_length", 1e6, 1.0)
    np.testing.assert_allclose(a * scale, b, rtol=1e-6)
