"""A fit on a cluster of processes equals the fit of the same rows in memory, whatever happens to its workers."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankrls.distributed
from rankrls import CoRankRLS, RankingPursuit, RankRLS, TableEncoder, TransductiveRankRLS, View
from rankrls.bases import Draw
from rankrls.blocks.block import Block
from rankrls.blocks.sums import fold_of
from rankrls.distributed.partitions import Partitions, Reader, added
from rankrls.estimators.ranking.blocks import fit_rows
from rankrls.kernels import Gaussian
from rankrls.system.parallel import n_threads, one_thread_each

N = 5
FEATURES = [f"f{i}" for i in range(N)]

# pyspark 4 warns of pandas 3, and of what it calls itself
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*inplace keyword:DeprecationWarning"),
]


def rows(m=600, n_queries=40, seed=0, scattered=True, dtype=np.float64):
    """A frame of ragged queries with text ids, some of one row, scattered or one after the other."""
    rng = np.random.default_rng(seed)
    q = rng.integers(0, n_queries, m)
    q = q if scattered else np.sort(q)
    X = rng.normal(size=(m, N)) + 5 * rng.normal(size=(n_queries, N))[q]
    y = np.clip(np.round(X @ rng.normal(size=N) + rng.normal(size=m)), -3, 3)
    frame = pd.DataFrame(X.astype(dtype), columns=FEATURES)
    return frame.assign(y=y, qid=[f"query {i}" for i in q], w=rng.integers(0, 4, m).astype(float))


def local(model, frame, weights=None):
    return model.fit(frame[FEATURES], frame["y"], qid=frame["qid"], sample_weight=weights)


def assert_same(model, expected, rtol=1e-8, atol=1e-10):
    for name in ("coef_", "dual_coef_", "alpha_", "nu_", "intercept_", "alphas_", "nus_", "cv_scores_", "X_fit_"):
        if hasattr(expected, name):
            assert_allclose(getattr(model, name), getattr(expected, name), rtol=rtol, atol=atol, err_msg=name)
    for name in ("n_queries_", "n_pairs_", "n_features_in_", "tied_pairs_"):
        assert getattr(model, name) == getattr(expected, name), name
    assert model.feature_names_in_.tolist() == expected.feature_names_in_.tolist()


LOSSES = [
    {"weighting": "pairs", "tied_pairs": True},
    {"weighting": "pairs", "tied_pairs": False, "regression": 0.3},
    {"weighting": "queries", "tied_pairs": False},
    {"weighting": "queries", "tied_pairs": True, "regression": 0.5},
    {"weighting": "items", "tied_pairs": False, "regression": 1.0},
    {"weighting": "items", "tied_pairs": "auto"},
]

# ---------------------------------------------------------------- Dask


@contextmanager
def two_workers():
    distributed = pytest.importorskip("distributed", reason="needs rankrls[dask]")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": "4GiB"}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def doomed():
    """Separate workers for a test that kills one, which may not come back."""
    with two_workers() as client:
        yield client


def dask_frame(frame, parts=5):
    dd = pytest.importorskip("dask.dataframe", reason="needs rankrls[dask]")
    return dd.from_pandas(frame, npartitions=parts, sort=False)


dask_fit = rankrls.distributed.dask.fit


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: "-".join(map(str, loss.values())))
def test_dask_every_loss(client, loss):
    frame = rows()
    model = dask_fit(RankRLS(**loss), dask_frame(frame), sample_weight="w")
    assert_same(model, local(RankRLS(**loss), frame, frame["w"]))


@pytest.mark.parametrize("scattered", [True, False])
def test_dask_single_precision_and_query_order(client, scattered):
    frame = rows(scattered=scattered, dtype=np.float32).drop(columns="w")
    given = RankRLS(alpha=1.0)
    model = dask_fit(given, dask_frame(frame))
    assert model is given and model.coef_.dtype == np.float32
    assert_same(model, local(RankRLS(alpha=1.0), frame), rtol=1e-4)
    chosen, expected = dask_fit(RankRLS(), dask_frame(frame)), local(RankRLS(), frame)
    assert chosen.alpha_ == pytest.approx(expected.alpha_, rel=1e-4)
    assert_allclose(chosen.cv_scores_, expected.cv_scores_, atol=2e-3)  # near ties in single precision


def test_dask_folds(client):
    frame = rows().drop(columns="w")
    fold = fold_of(frame["qid"].to_numpy(object), 3)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    assert_same(dask_fit(RankRLS(cv=3), dask_frame(frame)), local(RankRLS(cv=splits), frame))


def test_dask_kernel_on_points_given_or_drawn(client):
    frame = rows().drop(columns="w")
    points = frame[FEATURES].to_numpy()[:30]
    kernel = Gaussian(gamma=0.02)
    model = dask_fit(RankRLS(kernel=kernel, basis=points), dask_frame(frame))
    assert_same(model, local(RankRLS(kernel=kernel, basis=points), frame), rtol=1e-6)
    drawn = [dask_fit(RankRLS(1.0, kernel="rbf", basis=20, random_state=0), dask_frame(frame)) for _ in range(2)]
    assert drawn[0].X_fit_.shape == (20, N)
    assert_allclose(drawn[0].X_fit_, drawn[1].X_fit_)
    assert {tuple(row) for row in drawn[0].X_fit_} <= {tuple(row) for row in frame[FEATURES].to_numpy()}


def test_dask_empty_partitions_and_one_query_in_all(client):
    dd = pytest.importorskip("dask.dataframe")
    frame = rows().drop(columns="w")
    frame.loc[::3, "qid"] = "everywhere"
    pieces = [frame[:0], frame[:200], frame[200:200], frame[200:201], frame[201:], frame[:0]]
    model = dask_fit(RankRLS(), dd.concat([dask_frame(piece, 1) for piece in pieces]))
    assert_same(model, local(RankRLS(), frame))
    with pytest.raises(ValueError, match="no rows to learn from"):
        dask_fit(RankRLS(alpha=1.0), dask_frame(frame[:0], 1))


@pytest.mark.parametrize("sparse_chunks", [False, True])
def test_dask_arrays(client, sparse_chunks):
    da = pytest.importorskip("dask.array")
    frame = rows()
    X, y, w = frame[FEATURES].to_numpy(), frame["y"].to_numpy(), frame["w"].to_numpy()
    chunks = da.from_array(X, chunks=(130, 2))
    if sparse_chunks:
        chunks = chunks.rechunk({1: -1}).map_blocks(sparse.csr_matrix)
    model = dask_fit(
        RankRLS(), chunks, y=y, qid=da.from_array(frame["qid"].to_numpy(object), chunks=77), sample_weight=w
    )
    expected = RankRLS().fit(X, y, qid=frame["qid"], sample_weight=w)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    assert_allclose(model.cv_scores_, expected.cv_scores_)
    Y = np.column_stack([y, -2 * y])
    several = dask_fit(RankRLS(1.0, tied_pairs=True), chunks, y=Y, qid=frame["qid"].to_numpy(object))
    expected = RankRLS(1.0, tied_pairs=True).fit(X, Y, qid=frame["qid"])
    assert_allclose(several.coef_, expected.coef_, rtol=1e-8)
    if not sparse_chunks:
        scores = rankrls.distributed.dask.predict(several, chunks)
        assert scores.shape == Y.shape
        assert_allclose(scores.compute(), several.predict(X))
    with pytest.raises(ValueError, match="y has 3 entries for 600 rows"):
        dask_fit(RankRLS(), chunks, y=y[:3], qid=None)
    with pytest.raises(TypeError, match="y must be an array too"):
        dask_fit(RankRLS(), chunks)


def test_dask_reads_parquet_in_the_same_parts_for_labels_and_rows(client, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    frame = rows(2000, 150, scattered=False).drop(columns="w")
    frame["qid"] = frame["qid"].astype("category")
    for k in range(12):
        frame[k * 170 : (k + 1) * 170].to_parquet(tmp_path / f"{k:02}.parquet")
    assert_same(dask_fit(RankRLS(), dd.read_parquet(tmp_path)), local(RankRLS(), frame))


def unscored_rows():
    frame = rows(800, 30)
    frame["f2"] = frame["f0"] + 0.1 * frame["f2"]
    frame.loc[frame["qid"].isin([f"query {i}" for i in range(6, 30)]), "y"] = np.nan
    frame.loc[::7, "y"] = np.nan  # queries with both
    return frame


VIEWS = [View(["f0", "f1"]), View(["f2", "f3", "f4"], Gaussian(gamma=0.05), np.eye(3))]


@pytest.mark.parametrize("weighting", ["pairs", "items"])
def test_dask_unscored_rows(client, weighting):
    frame = unscored_rows()
    make = partial(CoRankRLS, views=VIEWS, weighting=weighting)
    model, expected = dask_fit(make(), dask_frame(frame), sample_weight="w"), local(make(), frame, frame["w"])
    assert_same(model, expected, rtol=1e-6)
    for a, b in zip(model.view_coefs_, expected.view_coefs_, strict=True):
        assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    assert model.disagreement_ == pytest.approx(expected.disagreement_)
    assert model.n_unscored_ == expected.n_unscored_
    assert_allclose(model.predict(frame[FEATURES]), expected.predict(frame[FEATURES]), rtol=1e-6, atol=1e-8)


def test_dask_views_that_draw_their_points(client):
    frame = unscored_rows().drop(columns="w")
    model = dask_fit(CoRankRLS(1.0, 0.1, basis=10, random_state=0), dask_frame(frame))
    assert [view.points.shape for view in model.views_] == [(10, N), (10, N)]
    with pytest.raises(ValueError, match="view 0: a kernel on rows in blocks"):
        dask_fit(CoRankRLS(views=[View(kernel="rbf")]), dask_frame(frame))
    with pytest.warns(UserWarning, match="nothing to agree on"):
        dask_fit(CoRankRLS(1.0, 0.1, views=VIEWS), dask_frame(frame[frame["y"].notna()]))
    with pytest.raises(ValueError, match="no row is scored"):
        dask_fit(CoRankRLS(1.0, 0.1, views=VIEWS), dask_frame(frame.assign(y=np.nan)))


class Deadly:
    """Kills the worker that calls it first; `marker` tells whether it has."""

    def __init__(self, marker):
        self.marker, self.driver = str(marker), os.getpid()

    def __call__(self, part):
        if os.getpid() == self.driver:
            return part
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return part
        time.sleep(0.3)  # others are under way
        os._exit(1)

    def kernel(self, X, Z):
        return self(X) @ Z.T

    def scoring(self, y, scores, qid):
        each = [-np.var((self(y) - scores)[qid == q]) for q in np.unique(qid)]
        return float(np.mean(each))


@pytest.mark.parametrize("during", ["labels", "sums", "hold-out"])
def test_dask_a_lost_worker_changes_nothing(doomed, during, tmp_path):
    frame = rows().drop(columns="w")
    deadly = Deadly(tmp_path / "died")
    given = {
        "labels": {},
        "sums": {"kernel": deadly.kernel, "basis": np.eye(N)},
        "hold-out": {"scoring": deadly.scoring},
    }
    ddf = dask_frame(frame, 6)
    ddf = ddf.map_partitions(deadly, meta=frame) if during == "labels" else ddf
    model = dask_fit(RankRLS(**given[during]), ddf)
    assert os.path.exists(deadly.marker)
    assert_same(model, local(RankRLS(**given[during]), frame))


def test_dask_workers_keep_to_one_thread(client):
    assert set(client.run(n_threads).values()) == {1}


def test_dask_scores(client):
    frame = rows()
    ddf = dask_frame(frame, 4)
    predict = rankrls.distributed.dask.predict
    pipeline = make_pipeline(StandardScaler(), Ridge()).fit(frame[FEATURES], frame["y"])
    for model in (local(RankRLS(1.0), frame), pipeline, RankRLS(1.0).fit(frame[FEATURES].to_numpy(), frame["y"])):
        features = None if hasattr(model, "feature_names_in_") else FEATURES
        scores = predict(model, ddf, features).compute()
        assert scores.name == "score"
        assert scores.index.equals(frame.index)
        X = frame[FEATURES] if features is None else frame[FEATURES].to_numpy()
        assert_allclose(scores, model.predict(X), rtol=1e-12)
    assert len(predict(pipeline, ddf[ddf.f0 > 1e9]).compute()) == 0
    with pytest.raises(ValueError, match="no column 'f9'"):
        predict(pipeline, ddf, ["f9"])
    with pytest.raises(TypeError, match="Dask data frame"):
        predict(pipeline, frame)


def test_estimators_that_cannot_be_fitted_on_a_cluster(client):
    ddf = dask_frame(rows())
    with pytest.raises(TypeError, match="RankingPursuit cannot be fitted on a cluster. RankRLS"):
        dask_fit(RankingPursuit(), ddf)
    with pytest.raises(ValueError, match="needs a basis"):
        dask_fit(RankRLS(kernel="rbf"), ddf)
    with pytest.raises(ValueError, match="no column 'grade', which y names"):
        dask_fit(RankRLS(), ddf, y="grade")
    with pytest.raises(ValueError, match="'qid' .* is not numeric"):
        dask_fit(RankRLS(), ddf, features=[*FEATURES, "qid"], qid="w")
    broken = rows().drop(columns="w")
    broken.loc[300, "f1"] = np.nan
    with pytest.raises(ValueError, match="partition 2: feature 'f1' is nan"):
        dask_fit(RankRLS(alpha=1.0), dask_frame(broken, 5))
    with pytest.raises(TypeError, match="Dask data frame or array, got DataFrame"):
        dask_fit(RankRLS(), rows())


# ---------------------------------------------------------------- Spark


@pytest.fixture(scope="module")
def session():
    pytest.importorskip("pyspark", reason="needs rankrls[spark]")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java, 17 or newer")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2,4]")  # a task may fail three times, as on a cluster
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def spark_frame(session, folder, frame, parts=3):
    """A frame read from as many files."""
    folder.mkdir(exist_ok=True)
    for k, piece in enumerate(np.array_split(np.arange(len(frame)), parts)):
        frame.iloc[piece].to_parquet(folder / f"{k}.parquet", index=False)
    return session.read.option("mergeSchema", "false").parquet(str(folder))


spark_fit = rankrls.distributed.spark.fit


@pytest.mark.parametrize("loss", [LOSSES[1], LOSSES[2]], ids=["pairs", "queries"])
def test_spark_fit(session, loss, tmp_path):
    frame = rows()
    model = spark_fit(RankRLS(**loss), spark_frame(session, tmp_path / "rows", frame), sample_weight="w")
    assert_same(model, local(RankRLS(**loss), frame, frame["w"]))


def test_spark_single_precision_folds_and_empty_partitions(session, tmp_path, limit):
    limit(collected_sums=1)  # tasks add up what partitions give
    frame = rows(dtype=np.float32).drop(columns="w")
    frame.loc[::3, "qid"] = "everywhere"
    sdf = spark_frame(session, tmp_path / "rows", frame)
    model = spark_fit(RankRLS(1.0), sdf.union(sdf.where("y > 1000")))
    assert model.coef_.dtype == np.float32
    assert_same(model, local(RankRLS(1.0), frame), rtol=1e-4)
    double = frame.astype(dict.fromkeys(FEATURES, np.float64))
    fold = fold_of(frame["qid"].to_numpy(object), 3)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    model = spark_fit(RankRLS(cv=3), sdf.selectExpr("y", "qid", *(f"cast({f} as double) {f}" for f in FEATURES)))
    assert_same(model, local(RankRLS(cv=splits), double))


def test_spark_unscored_rows_and_points(session, tmp_path):
    frame = unscored_rows()
    sdf = spark_frame(session, tmp_path / "rows", frame)
    model, expected = spark_fit(CoRankRLS(views=VIEWS), sdf.drop("w")), local(CoRankRLS(views=VIEWS), frame)
    assert_same(model, expected, rtol=1e-6)
    assert_allclose(model.predict(frame[FEATURES]), expected.predict(frame[FEATURES]), rtol=1e-6, atol=1e-8)
    drawn = spark_fit(RankRLS(1.0, kernel="rbf", basis=15, random_state=0), sdf.where("y is not null and not isnan(y)"))
    assert drawn.X_fit_.shape == (15, N + 1)


def test_spark_transduction(session, tmp_path):
    frame = unscored_rows().drop(columns="w")
    frame["y"] = frame["y"].where(frame["qid"].isin([f"query {i}" for i in range(6)]))  # whole queries
    frame = frame[frame["y"].notna() | ~frame["qid"].isin([f"query {i}" for i in range(6)])]
    model = spark_fit(TransductiveRankRLS(1.0), spark_frame(session, tmp_path / "rows", frame))
    expected = local(TransductiveRankRLS(1.0), frame)
    assert_allclose(model.ranker_.coef_, expected.ranker_.coef_, rtol=1e-6, atol=1e-8)


def test_spark_vectors_and_scores(session, tmp_path):
    from pyspark.ml.feature import VectorAssembler

    frame = rows().drop(columns="w")
    sdf = spark_frame(session, tmp_path / "rows", frame)
    predict = rankrls.distributed.spark.predict
    expected = local(RankRLS(1.0), frame)
    scored = predict(expected, sdf).toArrow().to_pandas()
    assert list(scored.columns) == [*FEATURES, "y", "qid", "score"]
    assert_allclose(scored["score"], expected.predict(scored[FEATURES]), rtol=1e-12)
    vectors = VectorAssembler(inputCols=FEATURES, outputCol="all").transform(sdf)
    model = spark_fit(RankRLS(1.0), vectors, features="all")
    assert model.feature_names_in_.tolist() == [f"all_{i}" for i in range(N)]
    assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    again = predict(model, vectors, "again", features=["all"]).select("f0", "again").toArrow().to_pandas()
    assert_allclose(again["again"].sort_values(), scored["score"].sort_values(), rtol=1e-8)
    arrays = sdf.selectExpr("y", "qid", "if(f0 > 0, array(f0, f1), array(f0)) as x")
    with pytest.raises(Exception, match="must hold . numbers in every row"):
        spark_fit(RankRLS(1.0), arrays)
    with pytest.raises(ValueError, match="already has a column 'y'"):
        predict(expected, sdf, "y")


def test_spark_a_lost_worker_changes_nothing(session, tmp_path):
    frame = rows().drop(columns="w")
    marker = tmp_path / "died"
    sdf = spark_frame(session, tmp_path / "rows", frame)
    path = str(marker)

    def once(batches):
        import os

        for batch in batches:
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
                os._exit(1)
            except FileExistsError:
                yield batch

    model = spark_fit(RankRLS(1.0), sdf.mapInArrow(once, sdf.schema))
    assert marker.exists()
    assert_same(model, local(RankRLS(1.0), frame))


def test_spark_errors_name_the_partition(session, tmp_path):
    frame = rows().drop(columns="w")
    frame.loc[0, "f1"] = np.nan
    with pytest.raises(Exception, match=r"partition \d: feature 'f1' is nan"):
        spark_fit(RankRLS(1.0), spark_frame(session, tmp_path / "rows", frame))
    with pytest.raises(TypeError, match="must be a Spark data frame"):
        spark_fit(RankRLS(1.0), frame)


# ---------------------------------------------------------------- without a cluster


class Shifting(Partitions):
    """Partitions that change from pass to pass."""

    def __init__(self, block, cuts):
        super().__init__(Reader(), block.X.shape[1], np.float64, None, 1)
        self.block, self.cuts = block, iter(cuts)

    def run(self, task, *, labels=False):
        b = self.block
        bounds = [0, *next(self.cuts), len(b)]
        parts = (b.take(np.arange(i, j)) for i, j in pairwise(bounds))
        values = [
            task(k, [None if labels else p.X, p.y[:, 0], p.qid, p.weights]) for k, p in enumerate(parts) if len(p)
        ]
        return added(values)


def test_partitions_that_change_between_passes_are_counted_again():
    frame = rows(scattered=False)
    block = Block(frame[FEATURES].to_numpy(), frame[["y"]].to_numpy(), frame["qid"].to_numpy(object))
    ends = np.flatnonzero(frame["qid"].to_numpy()[1:] != frame["qid"].to_numpy()[:-1]) + 1
    expected = RankRLS(1.0).fit(block.X, frame["y"], qid=frame["qid"])
    parts = Shifting(block, [ends[[3, 9]], [100, 333], [50, 200, 410]])
    assert_allclose(fit_rows(RankRLS(1.0), parts)[0].coef, expected.coef_, rtol=1e-10)
    lost = Shifting(block, [ends[[3, 9]]] * 2)
    lost.run = lambda task, labels=False, run=lost.run: (
        run(task, labels=labels) if labels else replace_rows(run(task, labels=labels))
    )
    with pytest.raises(ValueError, match="the rows must be the same in every pass"):
        fit_rows(RankRLS(1.0), lost)


def replace_rows(gathered):
    return replace(gathered, closed=replace(gathered.closed, n_rows=gathered.closed.n_rows - 1))


def test_the_same_rows_are_drawn_from_any_parts():
    X = np.arange(5000.0)[:, None]
    block = Block(X, np.zeros((5000, 1)), np.zeros(5000, dtype=int))
    draw = lambda seed, cuts: Shifting(block, [cuts] * 3).sample(Draw(200, seed)).rows.X.ravel()
    first = draw(0, [1000, 1000, 4000])
    assert len(np.unique(first)) == 200
    assert_allclose(first, draw(0, [10]))
    assert abs(np.mean(np.concatenate([draw(k, [10]) for k in range(30)])) - 2500) < 100
    few = Shifting(block.take(np.arange(50)), [[7]] * 3).sample(Draw(200, 0))
    assert len(few.rows) == 50 and few.moments.count == 50
    repeated = Block(np.repeat(X[:1500], 4, axis=0), np.zeros((6000, 1)), np.zeros(6000, dtype=int))
    found = Shifting(repeated, [[700, 4000]] * 3).sample(Draw(1200, 0)).rows  # too few at the first try
    assert len(found) == 1200 and np.all(found.weights == 4)


def test_partitions_may_run_side_by_side_in_threads():
    before = n_threads()
    with one_thread_each:
        with one_thread_each:
            assert n_threads() == 1
        assert n_threads() == 1
    assert n_threads() == before


def test_importing_does_not_import_the_engines():
    code = "import sys; from rankrls.distributed import dask, spark; print({'dask', 'pyspark'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize(("engine", "module"), [("dask", "dask"), ("spark", "pyspark.sql")])
def test_a_missing_engine_is_named(monkeypatch, engine, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"rankrls\[{engine}\]"):
        getattr(rankrls.distributed, engine).fit(RankRLS(), None)


def test_spark_tables(session, tmp_path):
    frame = rows(300).assign(brand=lambda f: np.where(f["f0"] > 0, "a", "b"), f1=lambda f: f["f1"].where(f["f1"] < 6))
    table = frame.drop(columns=["y", "qid", "w"])
    sdf = spark_frame(session, tmp_path / "rows", frame.drop(columns="w"))
    pipe = spark_fit(make_pipeline(TableEncoder(), RankRLS()), sdf)
    encoder = TableEncoder()
    here = RankRLS().fit(encoder.fit_transform(table, frame["y"], frame["qid"]), frame["y"], qid=frame["qid"])
    assert pipe[0].get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert_allclose(pipe[-1].coef_, here.coef_, rtol=1e-8, atol=1e-10)
    scored = rankrls.distributed.spark.predict(pipe, sdf).toArrow().to_pandas()
    assert_allclose(scored["score"], here.predict(encoder.transform(scored[table.columns])), rtol=1e-8)


@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_signs_of_weights_on_clusters(engine, request, tmp_path):
    """Exact signs and exact leave-query-out, as in memory."""
    frame = rows(300).drop(columns="w")
    positive = {FEATURES[0]: -1, FEATURES[1]: 1, FEATURES[2]: 1}
    expected = RankRLS(positive=positive).fit(frame[FEATURES], frame["y"], qid=frame["qid"])
    if engine == "dask":
        request.getfixturevalue("client")
        model = dask_fit(RankRLS(positive=positive), dask_frame(frame))
    else:
        model = spark_fit(RankRLS(positive=positive), spark_frame(request.getfixturevalue("session"), tmp_path, frame))
    assert_allclose(model.coef_, expected.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(model.cv_scores_, expected.cv_scores_, rtol=1e-9)
    assert model.coef_[0] <= 0 and model.alpha_ == pytest.approx(expected.alpha_)


def test_edges_of_a_relation_are_summed_by_spark(session, tmp_path):
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(12, 3)), rng.normal(size=(9, 2))
    edges = pd.DataFrame({"user": rng.integers(12, size=150), "item": rng.integers(9, size=150)})
    edges["stars"] = rng.normal(size=150) + users[edges["user"], 0]
    columns = {"source": "user", "target": "item"}
    frame = spark_frame(session, tmp_path / "edges", edges)
    found = rankrls.distributed.spark.fit_edges(
        rankrls.ConditionalRankRLS(0.7), users, frame, "stars", items, **columns
    )
    local = rankrls.ConditionalRankRLS(0.7).fit_edges(users, iter([edges]), "stars", items, **columns)
    assert_allclose(found.coef_, local.coef_, atol=1e-10)
    assert found.n_edges_ == 150
