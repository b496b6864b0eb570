"""Tables in files, in blocks and on clusters are encoded and learned from as in memory."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline

from rankrls import CoRankRLS, RankingPursuit, RankRLS, TableEncoder, View

pd = pytest.importorskip("pandas", reason="needs pandas")
pytest.importorskip("pyarrow", reason="needs rankrls[arrow]")


def shop(m=600, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "price": rng.lognormal(size=m),
            "brand": rng.choice([f"b{i}" for i in range(40)], m),
            "kind": rng.choice(["x", "y", None], m),
            "stock": rng.random(m) < 0.5,
            "listed": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 100, m), "D"),
            "stars": rng.integers(0, 5, m),
        }
    )
    value = frame["price"] + frame["brand"].str[1:].astype(int) / 20 + rng.normal(size=m)
    frame.loc[rng.random(m) < 0.1, "price"] = np.nan
    return frame.assign(label=value.round().clip(0, 4), query=[f"q{i}" for i in rng.integers(0, 60, m)])


FRAME = shop()
TABLE = FRAME.drop(columns=["label", "query"])


def local(encoder=None, ranker=None):
    encoder, ranker = encoder or TableEncoder(), ranker or RankRLS()
    encoded = encoder.fit_transform(TABLE, FRAME["label"], FRAME["query"])
    return encoder, ranker.fit(encoded, FRAME["label"], qid=FRAME["query"])


def fitted(source, encoder=None, **names):
    names = names or {"qid": "query"}
    with sklearn.config_context(enable_metadata_routing=True):
        return make_pipeline(encoder or TableEncoder(), RankRLS()).fit(source, "label", **names)


def assert_same(pipe, encoder, ranker):
    assert pipe[0].get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert pipe[0].kinds_ == encoder.kinds_
    assert_allclose(pipe[0].transform(TABLE[:50]), encoder.transform(TABLE[:50]), rtol=1e-14)  # sums of labels round
    assert_allclose(pipe[-1].coef_, ranker.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(pipe[-1].cv_scores_, ranker.cv_scores_, rtol=1e-10)
    assert pipe[-1].alpha_ == ranker.alpha_


@pytest.fixture
def small_batches(limit):
    limit(table_rows=130)


@pytest.mark.parametrize("numbers", ["quantile", "standard"])
def test_a_parquet_file_equals_memory(numbers, tmp_path, small_batches):
    FRAME.to_parquet(tmp_path / "t.parquet")
    pipe = fitted(str(tmp_path / "t.parquet"), TableEncoder(numbers=numbers))
    assert_same(pipe, *local(TableEncoder(numbers=numbers)))


def test_folders_lazy_frames_and_functions(tmp_path, small_batches):
    for i in range(3):
        FRAME[i::3].to_parquet(tmp_path / f"{i}.parquet")
    expected = local()
    assert_same(fitted(tmp_path), *expected)
    ordered = FRAME.sort_values("query", kind="stable")
    blocks = lambda: (ordered[i : i + 100] for i in range(0, len(ordered), 100))
    assert_same(fitted(blocks), *expected)
    tuples = lambda: ((b.drop(columns=["label", "query"]), b["label"], b["query"]) for b in blocks())
    pipe = make_pipeline(TableEncoder(), RankRLS()).fit(tuples)
    assert_allclose(pipe[-1].coef_, expected[1].coef_, rtol=1e-9, atol=1e-12)
    polars = pytest.importorskip("polars", reason="needs polars")
    assert_same(fitted(polars.scan_parquet(tmp_path / "*.parquet")), *expected)


@pytest.mark.parametrize("kind", ["relation", "dataset"])
def test_duckdb_and_datasets_of_arrow(kind, tmp_path, small_batches):
    """Statistics of columns in a first pass, target statistics in a second: the same model as in memory."""
    for i in range(3):
        FRAME[i::3].to_parquet(tmp_path / f"{i}.parquet")
    if kind == "relation":
        source = pytest.importorskip("duckdb").read_parquet(f"{tmp_path}/*.parquet")
    else:
        source = pytest.importorskip("pyarrow.dataset").dataset(tmp_path, format="parquet")
    assert_same(fitted(source), *local())


def test_a_block_without_values_leaves_the_kind_of_a_column_open(small_batches):
    frame = FRAME.sort_values("query", kind="stable")
    frame = frame.assign(kind=np.where(np.arange(len(frame)) < 250, None, frame["kind"]))
    parts = [frame[:200], frame[200:400], frame[400:]]
    pipe = fitted(lambda: iter(parts))
    whole = TableEncoder().fit(frame.drop(columns=["label", "query"]), frame["label"], frame["query"])
    assert pipe[0].kinds_ == whole.kinds_
    assert pipe[0].get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()


def test_samples_of_large_columns_give_about_the_same_quantiles(limit, tmp_path, small_batches):
    limit(quantile_values=300)
    FRAME.to_parquet(tmp_path / "t.parquet")
    found = fitted(str(tmp_path / "t.parquet"))[0].transform(TABLE)
    assert_allclose(found[:, 0], local()[0].transform(TABLE)[:, 0], atol=0.35)


def test_dask():
    dd = pytest.importorskip("dask.dataframe", reason="needs rankrls[dask]")
    from rankrls.distributed import dask

    frame = dd.from_pandas(FRAME, npartitions=4, sort=False)
    pipe = dask.fit(make_pipeline(TableEncoder(), RankRLS()), frame, y="label", qid="query")
    encoder, ranker = local()
    assert_same(pipe, encoder, ranker)
    scores = dask.predict(pipe, frame).compute().to_numpy()
    assert_allclose(scores, ranker.predict(encoder.transform(TABLE)), rtol=1e-9)
    half = FRAME.assign(label=FRAME["label"].where(FRAME["query"] < "q4"))
    views = [View([0, 2]), View([1, 3, 4])]
    co = make_pipeline(TableEncoder(), CoRankRLS(1.0, 0.1, views=views))
    found = dask.fit(co, dd.from_pandas(half, npartitions=3, sort=False), y="label", qid="query")
    encoder = TableEncoder()
    encoded = encoder.fit_transform(TABLE, half["label"], half["query"])
    here = CoRankRLS(1.0, 0.1, views=views).fit(encoded, half["label"], qid=half["query"])
    assert_allclose(found.predict(TABLE), here.predict(encoder.transform(TABLE)), rtol=1e-7)


def test_columns_that_are_not_chosen_are_not_needed(tmp_path, small_batches):
    FRAME.assign(other="x").to_parquet(tmp_path / "t.parquet")
    pipe = fitted(str(tmp_path / "t.parquet"), TableEncoder(columns=["price", "brand"]))
    encoder = TableEncoder(columns=["price", "brand"]).fit(FRAME, FRAME["label"], FRAME["query"])
    assert pipe[0].feature_names_in_.tolist() == encoder.feature_names_in_.tolist() == ["price", "brand"]
    assert_allclose(pipe[0].transform(TABLE), encoder.transform(TABLE[["brand", "price"]]), rtol=1e-14)


def test_errors_say_what_to_do(tmp_path):
    weights = 1.0 + np.arange(len(FRAME)) % 3
    FRAME.assign(w=weights).to_parquet(tmp_path / "t.parquet")
    path = str(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="relative to the query need all rows"):
        TableEncoder(relative="rank").fit(path, "label", "query")
    with pytest.raises(ValueError, match="read only once"):
        TableEncoder().fit(iter([FRAME]), "label", "query")
    with pytest.raises(ValueError, match="'w' holds labels or weights"):
        RankRLS().fit(TableEncoder().fit_transform(path, "label", "query"), "label", qid="query", sample_weight="w")
    with pytest.raises(TypeError, match="rows in memory"):
        TableEncoder().fit(path, "label", "query").transform(path)
    mixed = [FRAME[:300], FRAME[300:].assign(price="dear")]
    with pytest.raises(ValueError, match="'price' holds number in one part of the table and text in another"):
        fitted(lambda: iter(mixed))
    with pytest.raises(ValueError, match="no column 'grade'"):
        TableEncoder().fit(path, "grade")
    with pytest.raises(ValueError, match="RankingPursuit learns from rows in memory, got the encoded rows of a file"):
        make_pipeline(TableEncoder(), RankingPursuit(3)).fit(path, "label", rankingpursuit__qid="query")
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match="is not a Parquet file.*polars.scan_csv"):
        TableEncoder().fit(str(tmp_path / "t.csv"), "label", "query")
    columns = [name for name in TABLE if name != "stars"]
    rows = TableEncoder(columns=columns).fit_transform(path, "label", "query")
    model = RankRLS(1.0).fit(rows, "label", qid="query", sample_weight="w")
    encoded = TableEncoder().fit_transform(TABLE[columns], FRAME["label"], FRAME["query"])
    here = RankRLS(1.0).fit(encoded, FRAME["label"], qid=FRAME["query"], sample_weight=weights)
    assert_allclose(model.coef_, here.coef_, rtol=1e-8, atol=1e-12)
