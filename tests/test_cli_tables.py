"""CSV and Parquet files with text, dates and missing values on the command line."""

import csv
import json

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose

import rankrls
from rankrls.cli import main
from rankrls.tables import PlainTable


def run(*words):
    try:
        return main([str(word) for word in words]) or 0
    except SystemExit as end:
        return end.code or 0


@pytest.fixture
def shop(tmp_path):
    rng = np.random.default_rng(0)
    lines = [["qid", "label", "docid", "price", "brand", "code", "stock", "listed"]]
    for i in range(300):
        price, brand = round(float(rng.lognormal()), 3), f"b{rng.integers(25)}"
        label = int(np.clip(round(price + int(brand[1:]) / 10 + rng.normal()), 0, 4))
        cells = [
            "" if rng.random() < 0.1 else price,
            brand,
            rng.choice(["007", "7", ""]),
            rng.choice(["true", "False"]),
        ]
        lines.append([f"q{rng.integers(30)}", label, f"d{i}", *cells, f"2026-0{rng.integers(1, 9)}-11"])
    with open(tmp_path / "shop.csv", "w", newline="") as file:
        csv.writer(file).writerows(lines)
    return tmp_path / "shop.csv"


def test_train_predict_evaluate(shop, tmp_path, capsys):
    model, scores = tmp_path / "m.rankrls", tmp_path / "scores.txt"
    assert run("train", shop, "-o", model) == 0
    said = capsys.readouterr().out
    assert "encoded  5 columns as" in said
    assert "text brand, code" in said
    assert "boolean stock" in said
    assert "date listed" in said
    assert run("predict", model, shop, "-o", scores, "--rows", 70) == 0
    found = np.loadtxt(scores)
    pipe = rankrls.load(model)
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(shop, dtype={"code": str}, parse_dates=["listed"])
    assert_allclose(found, pipe.predict(frame[["price", "brand", "code", "stock", "listed"]]), rtol=1e-12)
    assert run("evaluate", shop, model, "--json") == 0
    assert run("report", shop, model, "-o", tmp_path / "report.html") == 0
    assert "brand (target)" in (tmp_path / "report.html").read_text()
    capsys.readouterr()
    assert run("inspect", model) == 0
    said = capsys.readouterr().out
    assert "TableEncoder" in said and "encoded column" in said and "brand (target)" in said


def test_columns_relative_to_the_query(shop, tmp_path, capsys):
    model, scores = tmp_path / "m.rankrls", tmp_path / "scores.txt"
    assert run("train", shop, "-o", model, "--relative", "rank") == 0
    assert run("predict", model, shop, "-o", scores, "--rows", 70) == 0  # queries are kept together
    pipe = rankrls.load(model)
    assert "price (in query)" in pipe[0].get_feature_names_out()
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(shop, dtype={"code": str}, parse_dates=["listed"])
    columns = ["price", "brand", "code", "stock", "listed"]
    with sklearn.config_context(enable_metadata_routing=True):
        assert_allclose(np.loadtxt(scores), pipe.predict(frame[columns], qid=frame["qid"]), rtol=1e-12)
    assert run("train", shop, "-o", model, "--columns", "price", "--missing", 0, "--encode", "no", "--relative", "rank")
    assert "--relative is for encoded tables in memory" in capsys.readouterr().err


def test_parquet_and_columns(shop, tmp_path, capsys):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="needs rankrls[arrow]")
    pd.read_csv(shop, dtype={"code": str}, parse_dates=["listed"]).to_parquet(tmp_path / "shop.parquet")
    for file in ("shop.csv", "shop.parquet"):
        assert run("train", tmp_path / file, "-o", tmp_path / f"{file}.rankrls", "--columns", "price,code,listed") == 0
    capsys.readouterr()
    first, second = (rankrls.load(tmp_path / f"shop.{kind}.rankrls") for kind in ("csv", "parquet"))
    assert first[0].kinds_ == second[0].kinds_ == {"price": "number", "code": "text", "listed": "date"}
    assert_allclose(first[-1].coef_, second[-1].coef_, rtol=1e-10)
    assert run("cv", tmp_path / "shop.csv", "--columns", "brand,price", "--json") == 0
    assert json.loads(capsys.readouterr().out)["held_out"] > 0.6


def test_parquet_in_blocks_is_encoded(shop, tmp_path, capsys):
    """--stream encodes text and dates in a pass of its own: the same model as of rows in memory."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="needs rankrls[arrow]")
    frame = pd.read_csv(shop, dtype={"code": str}, parse_dates=["listed"])
    frame[::-1].to_parquet(tmp_path / "shop.parquet")  # the numbers of rows, in another order, are kept as a column
    common = [tmp_path / "shop.parquet", "--docid", "docid", "--exclude", "stock"]
    for name, more in (("whole", []), ("blocks", ["--stream", "--label", "label", "--qid", "qid"])):
        assert run("train", *common, "-o", tmp_path / name, *more) == 0
    whole, blocks = (rankrls.load(tmp_path / name) for name in ("whole", "blocks"))
    assert blocks[0].kinds_ == whole[0].kinds_
    assert_allclose(blocks[-1].coef_, whole[-1].coef_, rtol=1e-8, atol=1e-10)
    assert "in blocks\nencoded  4 columns as" in capsys.readouterr().out
    assert run("train", *common, "--stream", "--checkpoint", tmp_path / "c", "-o", tmp_path / "m") == 2
    assert "columns that must be encoded" in capsys.readouterr().err


def test_blocks_have_the_same_columns_as_rows_in_memory(tmp_path, capsys):
    """A number that names the document is not a feature; gaps are encoded; --columns and --exclude choose."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="needs rankrls[arrow]")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"qid": np.arange(90) // 6, "label": rng.integers(0, 3, 90), "docid": np.arange(90)})
    frame = frame.assign(a=rng.normal(size=90) + frame["label"], b=rng.normal(size=90), flag=rng.random(90) < 0.5)
    frame.to_parquet(tmp_path / "plain.parquet")
    frame.assign(b=frame["b"].where(frame["b"] < 1)).to_parquet(tmp_path / "gaps.parquet")
    for file, more in (("plain", ()), ("plain", ("--exclude", "b")), ("plain", ("--columns", "b,a")), ("gaps", ())):
        found = []
        for way in ((), ("--stream",)):
            assert run("train", tmp_path / f"{file}.parquet", "-o", tmp_path / "m", *more, *way) == 0, more
            found.append(rankrls.load(tmp_path / "m"))
        whole, blocks = (model.feature_names_in_.tolist() for model in found)
        assert blocks == whole and "docid" not in whole, more
        assert type(found[0]) is type(found[1])
        coef = [model[-1].coef_ if file == "gaps" else model.coef_ for model in found]
        assert_allclose(coef[1], coef[0], rtol=1e-8, atol=1e-12)
    (tmp_path / "rows.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    assert run("train", tmp_path / "rows.txt", "-o", tmp_path / "m", "--stream", "--columns", "a") == 2
    assert "--columns cannot be combined with --stream" in capsys.readouterr().err


def test_numbers_stay_as_they_are(shop, tmp_path, capsys):
    assert run("train", shop, "-o", tmp_path / "m", "--encode", "no") != 0
    assert "'brand' is not a number" in capsys.readouterr().err
    plain = "qid,label,a,b\n1,1,2,3\n1,0,1,5\n2,0,3,3\n2,1,4,4\n"
    (tmp_path / "plain.csv").write_text(plain)
    assert run("train", tmp_path / "plain.csv", "-o", tmp_path / "m", "--alpha", 1) == 0
    assert isinstance(rankrls.load(tmp_path / "m"), rankrls.RankRLS)
    assert run("train", tmp_path / "plain.csv", "-o", tmp_path / "m", "--alpha", 1, "--encode", "yes") == 0
    assert type(rankrls.load(tmp_path / "m")[0]).__name__ == "TableEncoder"
    (tmp_path / "letor.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    assert run("train", tmp_path / "letor.txt", "-o", tmp_path / "m", "--encode", "yes") != 0
    assert "--encode yes is for tables" in capsys.readouterr().err


def test_a_column_that_changes_its_kind_when_scoring(shop, tmp_path, capsys):
    assert run("train", shop, "-o", tmp_path / "m") == 0
    text = shop.read_text().replace("2026-01-11", "yesterday")
    (tmp_path / "new.csv").write_text(text)
    assert run("predict", tmp_path / "m", tmp_path / "new.csv", "-o", tmp_path / "s") != 0
    assert "'listed' held dates in training, but 'yesterday' in row" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_cells_are_read_as_they_are_written():
    cells = {"a": ["1", " 2.5", "NA"], "b": ["True", "", "false"], "c": ["01", "2", "x"], "d": ["", "", ""]}
    table = PlainTable.of(cells, written=True).read()
    assert table["a"].tolist() == [1.0, 2.5, None]
    assert table["b"].tolist() == [True, None, False]
    assert table["c"].tolist() == ["01", "2", "x"]
    assert table["d"].tolist() == [None, None, None]
    assert table[1:].shape == (2, 4)


@pytest.mark.parametrize("stream", [False, True])
def test_unused_query_ids_are_pointed_out(stream, tmp_path, capsys):
    """Choosing columns must not turn many queries into one."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.repeat([f"q{i}" for i in range(10)], 8), "label": rng.integers(0, 3, 80)})
    path, more = tmp_path / "rows.parquet", ["--stream"] * stream
    frame.assign(a=rng.normal(size=80), shop=rng.choice(["x", "y"], 80)).to_parquet(path)
    model = ["-o", tmp_path / "m.rankrls", "--alpha", 1]
    assert run("train", path, *model, *more, "--columns", "a,shop") == 2
    assert "looks like query ids, but --columns leaves it out: pass --qid query, or --ex" in capsys.readouterr().err
    assert run("train", path, *model, *more) == 2
    assert "column 'query' looks like query ids: pass --qid query, or leave it out" in capsys.readouterr().err
    assert run("train", path, *model, *more, "--columns", "a,shop", "--exclude", "query") == 0
    assert "80 rows, 1 query, 2 features" in capsys.readouterr().out
    assert run("train", path, *model, *more, "--columns", "a,shop", "--qid", "query") == 0
    assert "80 rows, 10 queries, 2 features" in capsys.readouterr().out
    assert run("predict", tmp_path / "m.rankrls", path) == 0
