"""Tables of every library give the same model, the same scores and the same metrics as arrays."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from cases import problem
from rankrls import CoRankRLS, PerQueryMinMax, RankRLS, TransductiveRankRLS, metrics
from rankrls.system import frames

pa = pytest.importorskip("pyarrow")
NAMES = [f"feature_{i}" for i in range(6)]


class Stream:
    """A table that has nothing but an Arrow stream."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def in_chunks(columns):
    return pa.concat_tables([pa.table(columns).slice(0, 7), pa.table(columns).slice(7)])


def duckdb_relation(columns):
    return pytest.importorskip("duckdb").from_arrow(pa.table(columns))


MAKERS = {
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    "polars lazy": lambda columns: pytest.importorskip("polars").LazyFrame(columns),
    "pyarrow": pa.table,
    "pyarrow chunks": in_chunks,
    "pyarrow batch": pa.RecordBatch.from_pydict,
    "duckdb": duckdb_relation,
    "stream": lambda columns: Stream(pa.table(columns)),
}


@pytest.fixture(params=MAKERS)
def maker(request):
    return MAKERS[request.param]


def columns_of(X, **more):
    return {**{name: X[:, i] for i, name in enumerate(NAMES)}, **more}


@pytest.mark.parametrize(
    "model",
    [RankRLS(), RankRLS(alpha=1.0, kernel="rbf"), CoRankRLS(alpha=1.0, nu=0.1, basis=10, random_state=0)],
    ids=str,
)
def test_rankers_learn_from_any_table(maker, model):
    X, y, qid = problem()
    if isinstance(model, CoRankRLS):
        y[::3] = np.nan
    table = lambda: maker(columns_of(X, qid=[f"q{q}" for q in qid]))
    reference = model.fit(X, y, qid=qid)
    expected, score, ranks = reference.predict(X), reference.score(X, y, qid), reference.rank(X, qid)
    model.fit(table(), y)
    assert_array_equal(model.feature_names_in_, NAMES)
    assert_allclose(model.predict(table()), expected)
    assert_allclose(model.score(table(), y), score)
    assert_array_equal(model.rank(table()), ranks)


def test_transduction_of_any_table(maker):
    X, y, qid = problem(m=60)
    y = np.where(qid == 3, np.nan, y)
    reference = TransductiveRankRLS(alpha=1.0, fidelity=1.0).fit(X, y, qid=qid)
    model = TransductiveRankRLS(alpha=1.0, fidelity=1.0).fit(maker(columns_of(X, qid=qid)), maker({"y": y}))
    assert_allclose(model.transduction_, reference.transduction_)


def test_labels_queries_and_weights_may_be_one_column_tables(maker):
    X, y, qid = problem()
    weights = np.ones(len(y)) + (y > 0)
    reference = RankRLS(alpha=1.0).fit(X, y, qid=qid, sample_weight=weights)
    model = RankRLS(alpha=1.0).fit(maker(columns_of(X)), y, qid=maker({"q": qid}), sample_weight=weights)
    assert_allclose(model.coef_, reference.coef_)
    if not hasattr(maker({"y": y}), "__array__"):  # what is an array by itself is one of two dimensions
        model.fit(maker(columns_of(X)), maker({"y": y}), qid=maker({"q": qid}), sample_weight=maker({"w": weights}))
        assert_allclose(model.coef_, reference.coef_)


def test_metrics_take_columns_of_any_library():
    _, y, qid = problem()
    scores = np.random.default_rng(0).normal(size=len(y))
    expected = metrics.ndcg(y, scores, qid)
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for column in (pandas.Series, polars.Series, pa.array, lambda v: pa.chunked_array([v])):
        assert metrics.ndcg(column(y), column(scores), column(qid)) == expected
    one = lambda v: Stream(pa.table({"v": v}))
    assert metrics.ndcg(one(y), one(scores), one(qid)) == expected
    relation = duckdb_relation({"y": y, "scores": scores, "qid": [f"q{q}" for q in qid]})
    assert metrics.ndcg(*(relation.select(name) for name in ("y", "scores", "qid"))) == expected
    with pytest.raises(ValueError, match="one column is needed, got a table with 3: y, scores, qid"):
        metrics.ndcg(relation, scores, qid)


def test_partial_fit_and_pairs_from_tables(maker):
    X, y, qid = problem()
    reference = RankRLS().partial_fit(X, y, qid=qid)
    assert_allclose(RankRLS().partial_fit(maker(columns_of(X, qid=qid)), y).coef_, reference.coef_)
    pairs = [[0, 1], [2, 3], [4, 5]]
    reference = RankRLS(alpha=1.0).fit_pairs(X, pairs)
    assert_allclose(RankRLS(alpha=1.0).fit_pairs(maker(columns_of(X)), pairs).coef_, reference.coef_)


def test_a_reader_is_read_once():
    X, y, qid = problem()
    reader = lambda: pa.table(columns_of(X, qid=qid)).to_reader()
    assert_allclose(RankRLS().partial_fit(reader(), y).coef_, RankRLS().fit(X, y, qid=qid).coef_, rtol=1e-6)
    assert_allclose(RankRLS().fit(reader(), y).score(reader(), y), RankRLS().fit(X, y, qid=qid).score(X, y, qid))


def test_queries_given_twice_or_missing_are_refused(maker):
    X, y, qid = problem()
    with pytest.raises(ValueError, match="given twice"):
        RankRLS().fit(maker(columns_of(X, qid=qid)), y, qid=qid)


def test_columns_of_numbers_that_are_missing_are_refused_like_nan():
    X, y, qid = problem()
    table = pa.table(columns_of(X)).set_column(0, NAMES[0], pa.array([None, *X[1:, 0]], type=pa.float64()))
    with pytest.raises(ValueError, match="NaN"):
        RankRLS().fit(table, y, qid=qid)
    with pytest.raises(ValueError, match="qid has 1 missing values, the first at row 0"):
        RankRLS().fit(X, y, qid=pa.array([None, *map(str, qid[1:])]))


def test_query_ids_may_be_categories():
    X, y, qid = problem()
    ids = pa.array([f"q{q}" for q in qid]).dictionary_encode()
    assert_allclose(
        RankRLS().fit(pa.table(columns_of(X, qid=ids)), y).coef_, RankRLS().fit(X, y, qid=qid).coef_, rtol=1e-10
    )


def test_parquet_files(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y, qid = problem()
    parquet.write_table(pa.table(columns_of(X, qid=qid)), tmp_path / "rows.parquet")
    model = RankRLS().fit(parquet.read_table(tmp_path / "rows.parquet"), y)
    assert_allclose(model.coef_, RankRLS().fit(X, y, qid=qid).coef_)


def test_without_pyarrow_polars_reads_the_stream(monkeypatch):
    polars = pytest.importorskip("polars")
    X, y, qid = problem()
    stream = Stream(pa.table(columns_of(X, qid=qid)))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert isinstance(frames.as_frame(stream), polars.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"Stream is read through pyarrow: pip install 'rankrls\[arrow\]'"):
        RankRLS().fit(stream, y)


def test_scaling_keeps_the_query_column_for_the_next_step(maker):
    X, y, qid = problem()
    with config_context(enable_metadata_routing=True):
        reference = make_pipeline(PerQueryMinMax(), RankRLS()).fit(X, y, qid=qid)
        expected = reference.predict(X, qid=qid)
    table = lambda: maker(columns_of(X, qid=qid))
    model = make_pipeline(PerQueryMinMax(), RankRLS()).fit(table(), y)
    assert_allclose(model.predict(table()), expected)
    assert_allclose(model.score(table(), y), reference[-1].score(reference[0].transform(X, qid), y, qid))
    assert frames.names(model[0].transform(table())) == [*NAMES, "qid"]
