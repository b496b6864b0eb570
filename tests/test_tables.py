"""TableEncoder on tables of every library: the same results in pipelines, model files and ONNX graphs."""

import datetime
import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, QuantileTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from rankrls import (
    AutoRanker,
    ConditionalRankRLS,
    CoRankRLS,
    RankingPursuit,
    RankRLS,
    TableEncoder,
    TransductiveRankRLS,
    TwoStepRLS,
    export,
    load,
    save,
)
from rankrls.system.limits import limits
from rankrls.tables import learning
from rankrls.tables.reading import ColumnReader

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def columns(table, kinds):
    return learning.columns(ColumnReader(table), kinds)


def table(m=400, seed=0):
    """Everything a table may hold, labels and queries."""
    rng = np.random.default_rng(seed)
    qid = rng.integers(0, 40, m)
    brand, price = rng.integers(0, 30, m), np.exp(2 * rng.normal(size=m))
    y = np.round(rng.normal(size=30)[brand] - 0.5 * np.log(price) + 0.3 * rng.normal(size=m))
    frame = pd.DataFrame(
        {
            "price": np.where(rng.random(m) < 0.2, np.nan, price),
            "brand": [f"b{b}" for b in brand],
            "colour": pd.Categorical(rng.choice(["red", "green"], m)),
            "new": pd.array(rng.choice([True, False, None], m), dtype="boolean"),
            "count": pd.array(rng.choice([1, 2, 3, None], m), dtype="Int64"),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, m), unit="D"),
            "same": 1,
            "shop": pd.array(rng.choice(["u", "v", None], m), dtype="string"),
        }
    )
    return frame, y, qid


FRAME, Y, QID = table()
NAMES = (
    "price price=missing|brand (target)|colour=green colour=red|new new=missing|count count=missing|day|"
    "shop=u shop=v shop=missing"
)


@parametrize_with_checks([TableEncoder(), TableEncoder(numbers="standard")])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_names_and_their_origin():
    encoder = TableEncoder().fit(FRAME, Y, QID)
    assert "|".join(" ".join(made.names) for made in encoder.maps_) == NAMES
    assert len(encoder.get_feature_names_out()) == encoder.transform(FRAME).shape[1] == len(encoder.inverse())
    assert set(encoder.inverse()) == set(FRAME.columns) - {"same"}
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(encoder, RankRLS(1.0)).fit(FRAME, Y, qid=QID)
    A = encoder.transform(FRAME)
    why = encoder.inverse(model[-1].explain(A[0], A[1]))
    assert_allclose(sum(why.values()), np.subtract(*model.predict(FRAME[:2])))


@pytest.mark.parametrize("numbers", ["quantile", "standard"])
def test_every_library_gives_the_same_bits(numbers):
    encoder = TableEncoder(numbers=numbers)
    expected = encoder.fit_transform(FRAME, Y, QID)
    others = [pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME), FRAME.astype(object), FRAME.convert_dtypes()]
    for other in others:
        assert_array_equal(TableEncoder(numbers=numbers).fit_transform(other, Y, QID), expected)
        assert_array_equal(TableEncoder(numbers=numbers).fit(FRAME, Y, QID).transform(other), encoder.transform(FRAME))
    plain = FRAME.astype(object).to_numpy()
    assert_array_equal(TableEncoder(numbers=numbers).fit_transform(plain, Y, QID), expected)


def test_order_of_rows_does_not_matter():
    order = np.random.default_rng(0).permutation(len(Y))
    encoded = TableEncoder(relative="zscore").fit_transform(FRAME, Y, QID)
    shuffled = TableEncoder(relative="zscore").fit_transform(FRAME.iloc[order], Y[order], QID[order])
    assert_allclose(shuffled, encoded[order], atol=1e-12)


def test_numbers_are_centred_and_scaled():
    for numbers in ("quantile", "standard"):
        A = TableEncoder(numbers=numbers).fit_transform(FRAME[["price", "count", "day", "new"]])
        for j, name in ((0, "price"), (2, "count"), (4, "day"), (5, "new")):
            known = FRAME[name].notna().to_numpy()
            assert_allclose([A[known, j].mean(), A[known, j].std()], [0, 1], atol=0.05)
            assert not A[~known, j].any()


def test_quantiles_are_those_of_the_mid_distribution():
    x = np.random.default_rng(0).integers(0, 9, 300).astype(float)
    expected = norm.ppf([(np.mean(x < v) + np.mean(x <= v)) / 2 for v in x])
    expected = (expected - expected.mean()) / expected.std()
    encoder = TableEncoder().fit(x[:, None])
    assert_allclose(encoder.transform(x[:, None])[:, 0], expected)
    between = encoder.transform([[2.25], [-5.0], [-np.inf], [99.0], [np.nan]])[:, 0]
    low, high = encoder.transform([[2.0], [3.0]])[:, 0]
    ends = encoder.transform([[0.0], [8.0]])[:, 0]
    assert_allclose(between, [0.75 * low + 0.25 * high, ends[0], ends[0], ends[1], 0])


@pytest.mark.parametrize("x", [[1e-310, 2e-310, 3e-310], [-1.7e308, 0, 1.7e308], [1, 1 + 2.3e-16, 1]])
@pytest.mark.parametrize("numbers", ["quantile", "standard"])
def test_extreme_numbers(x, numbers):
    A = TableEncoder(numbers=numbers).fit_transform(np.array(x)[:, None])
    assert np.isfinite(A).all() and A[0, 0] < A[1, 0]


def test_target_statistics_come_from_other_queries():
    encoder = TableEncoder(smoothing=3.0, n_folds=4)
    held_out = encoder.fit_transform(FRAME[["brand"]], Y, QID)[:, 0]
    scale = held_out[0] / oracles.target_statistics(FRAME["brand"], Y, QID, 4, 3.0)[0][0]
    expected, at_use = oracles.target_statistics(FRAME["brand"], Y, QID, 4, 3.0)
    assert_allclose(held_out, scale * expected)
    assert_allclose(encoder.transform(FRAME[["brand"]])[:, 0], scale * at_use)
    assert_allclose(np.mean(encoder.transform(FRAME[["brand"]]) ** 2), 1)
    assert encoder.transform(pd.DataFrame({"brand": ["never seen"]}))[0, 0] == 0
    changed = Y.copy()
    changed[QID[0] == QID] = np.random.default_rng(1).normal(size=(QID[0] == QID).sum())
    again = TableEncoder(smoothing=3.0, n_folds=4).fit_transform(FRAME[["brand"]], changed, QID)[:, 0]
    ratio = (again / held_out)[(QID[0] == QID) & (held_out != 0)]
    assert_allclose(ratio, ratio[0])  # but for the scale, own labels do not enter


def test_missing_queries_are_reported_by_the_encoder():
    """Without routing, a pipeline passes qid only to its last step."""
    frame = pd.DataFrame({"brand": [f"b{i % 50}" for i in range(1200)]})
    y, qid = np.arange(1200) % 3, np.arange(1200) // 10
    model = make_pipeline(TableEncoder(), RankRLS(1.0))
    with pytest.warns(UserWarning, match="no qid reached TableEncoder, so the label means in 'brand'"):
        model.fit(frame, y, rankrls__qid=qid)
    with warnings.catch_warnings(), sklearn.config_context(enable_metadata_routing=True):
        warnings.simplefilter("error")
        model.fit(frame, y, qid=qid)


def test_noise_in_categories_does_not_look_like_a_signal():
    rng = np.random.default_rng(0)
    qid, y = np.repeat(np.arange(100), 10), rng.normal(size=1000)
    frame = pd.DataFrame({"noise": rng.integers(0, 300, 1000).astype(str)})
    held_out = TableEncoder(smoothing=0.0).fit_transform(frame, y, qid)[:, 0]
    leaking = TableEncoder(smoothing=0.0).fit(frame, y, qid).transform(frame)[:, 0]
    assert abs(np.corrcoef(held_out, y)[0, 1]) < 0.15 and np.corrcoef(leaking, y)[0, 1] > 0.4


def test_several_targets_and_unscored_rows():
    both = TableEncoder().fit(FRAME[["brand"]], np.column_stack([Y, -Y]), QID)
    assert both.get_feature_names_out().tolist() == ["brand (target 1)", "brand (target 2)"]
    partial = np.where(QID < 20, Y, np.nan)
    some = TableEncoder().fit(FRAME[["brand"]], partial, QID).transform(FRAME[["brand"]])
    scored = QID < 20
    alone = TableEncoder().fit(FRAME[scored][["brand"]], Y[scored], QID[scored])
    ratio = (some / alone.transform(FRAME[["brand"]]))[alone.transform(FRAME[["brand"]]) != 0]
    assert_allclose(ratio, ratio[0])


def test_relative_to_the_query():
    x = pd.DataFrame({"price": [1.0, 2.0, 2.0, np.nan, 5.0, 7.0], "size": [3.0, 3, 3, 3, 1, 2]})
    qid = ["a", "a", "a", "a", "b", "c"]
    ranks = TableEncoder(relative={"price": "rank"}).fit(x, qid=qid)
    assert ranks.get_feature_names_out().tolist() == ["price", "price=missing", "price (in query)", "size"]
    assert_allclose(ranks.transform(x, qid=qid)[:, 2], [-1, 0.5, 0.5, 0, 0, 0])
    z = TableEncoder(relative=True).fit_transform(x, qid=qid)
    known = np.array([1.0, 2, 2])
    assert_allclose(z[:3, 2], (known - known.mean()) / known.std())
    assert_allclose(z[:, 4], 0)
    with pytest.raises(ValueError, match="transform got none.*3 queries"):
        ranks.transform(x)


def test_a_column_of_query_ids_is_handed_on():
    for frame in (FRAME.assign(qid=QID), pl.from_pandas(FRAME.assign(qid=QID))):
        model = make_pipeline(TableEncoder(relative="rank"), RankRLS(1.0)).fit(frame, Y)
        with sklearn.config_context(enable_metadata_routing=True):
            routed = make_pipeline(TableEncoder(relative="rank"), RankRLS(1.0)).fit(FRAME, Y, qid=QID)
            assert_allclose(model.predict(frame), routed.predict(FRAME, qid=QID))
        assert model[-1].n_queries_ == 40


@pytest.mark.parametrize(
    "ranker",
    [
        RankRLS(1.0),
        RankRLS(1.0, kernel="rbf", basis=20, random_state=0),
        RankRLS(),
        RankingPursuit(3),
        CoRankRLS(1.0, 1.0, basis=10, random_state=0),
        TransductiveRankRLS(1.0),
        RankRLS(1.0, positive=[0]),
        AutoRanker(effort="fast"),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
def test_the_encoder_before_every_estimator_and_in_model_files(ranker, tmp_path):
    y = np.where(QID < 20, Y, np.nan) if isinstance(ranker, CoRankRLS | TransductiveRankRLS) else Y
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(TableEncoder(), ranker).fit(FRAME, y, qid=QID)
    new = table(seed=1)[0]
    save(model, tmp_path / "model.rankrls")
    assert_array_equal(load(tmp_path / "model.rankrls").predict(new), model.predict(new))


@pytest.mark.parametrize("model", [ConditionalRankRLS(1.0), TwoStepRLS()], ids=lambda model: type(model).__name__)
def test_the_encoder_in_models_of_relations(model, tmp_path):
    objects = FRAME[["price", "colour", "day", "shop"]][:30]
    pipe = make_pipeline(TableEncoder(), model).fit(objects, np.random.default_rng(0).normal(size=(30, 30)))
    save(pipe, tmp_path / "model.rankrls")
    assert_array_equal(load(tmp_path / "model.rankrls").predict(objects[:5]), pipe.predict(objects[:5]))


# ---------------------------------------------------------------- ONNX


def feeds(encoder, frame):
    """Columns as a graph takes them."""
    text = lambda x: np.array([value or "" for value in x], dtype=object)
    found = columns(frame, {name: kind for name, kind in encoder.kinds_.items() if name in inputs(encoder)})
    return {name: (text(x) if x.dtype == object else x)[:, None] for name, x in found.items()}


def inputs(encoder):
    return {made.name for made in encoder.maps_}


def session(graph):
    onnxruntime = pytest.importorskip("onnxruntime")
    return onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("numbers", ["quantile", "standard"])
def test_python_onnx_and_the_file_agree_bit_for_bit(numbers, tmp_path):
    onnx = pytest.importorskip("onnx")
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(TableEncoder(numbers=numbers), RankRLS(1.0)).fit(FRAME, Y, qid=QID)
    new = table(seed=1)[0]
    new.loc[0, "brand"], new.loc[1, "price"], new.loc[2, "day"] = "never seen", 1e9, pd.NaT
    graph = export.to_onnx(model)
    joined = [node for node in graph.graph.node if node.op_type == "Concat"][-1].output[0]
    graph.graph.output.append(onnx.helper.make_tensor_value_info(joined, onnx.TensorProto.DOUBLE, ["N", None]))
    scores, encoded = session(graph).run(None, feeds(model[0], new))
    save(model, tmp_path / "model.rankrls")
    stored = load(tmp_path / "model.rankrls")
    assert_array_equal(encoded, model[0].transform(new))
    assert_array_equal(stored[0].transform(new), model[0].transform(new))
    assert_array_equal(stored.predict(new), model.predict(new))
    assert_array_equal(encoded @ model[-1].coef_, model.predict(new))
    sizes = np.abs(encoded) @ np.abs(model[-1].coef_)  # onnxruntime adds up the same products in another order
    assert np.all(np.abs(scores - model.predict(new)) <= encoded.shape[1] * np.finfo(float).eps * sizes)
    assert_array_equal(scores.astype(np.float32), model.predict(new).astype(np.float32))
    assert_array_equal(np.argsort(scores, kind="stable"), np.argsort(model.predict(new), kind="stable"))
    assert {i.name for i in graph.graph.input} == inputs(model[0]) == set(FRAME.columns) - {"same"}


@pytest.mark.parametrize(
    "ranker",
    [RankRLS(1.0), RankRLS(1.0, kernel="laplacian", basis=10, random_state=0), AutoRanker(effort="fast")],
    ids=["linear", "laplacian", "auto"],
)
def test_columns_may_have_any_name_in_a_graph(ranker):
    """Nodes inside the graph have names too, such as v0, c0, x and count."""
    pytest.importorskip("onnx")
    names = ["v0", "c0", "X", "x", "z", "a", "count", "last"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 8)), columns=names).assign(
        shop=FRAME["brand"].str[:2]
    )
    model = make_pipeline(TableEncoder(), ranker).fit(frame.assign(qid=QID), Y)
    given = {name: frame[[name]].to_numpy(dtype=object if name == "shop" else float) for name in frame}
    runner = session(export.to_onnx(model))
    if "qid" in [one.name for one in runner.get_inputs()]:
        given["qid"] = QID.astype(np.int64)
    assert_allclose(runner.run(None, given)[0], model.predict(frame.assign(qid=QID)), atol=1e-11)
    taken = make_pipeline(TableEncoder(), RankRLS(1.0)).fit(frame.rename(columns={"x": "scores"}).assign(qid=QID), Y)
    with pytest.raises(ValueError, match="a column of the table is named 'scores'"):
        export.to_onnx(taken)


def test_columns_relative_to_the_query_have_no_graph():
    pytest.importorskip("onnx")
    model = make_pipeline(TableEncoder(relative=True), RankRLS(1.0)).fit(FRAME.assign(qid=QID), Y)
    with pytest.raises(ValueError, match="'price' is encoded relative to the query"):
        export.to_onnx(model)


def test_encoders_of_scikit_learn_on_text(tmp_path):
    pytest.importorskip("onnx")
    frame = FRAME.astype({"colour": object, "shop": object})[["price", "brand", "colour", "same"]]
    numbers = make_pipeline(SimpleImputer(), QuantileTransformer(n_quantiles=50, output_distribution="normal"))
    log = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["brand", "colour"]), (numbers, ["price"]), (log, ["same"])
    )
    model = make_pipeline(encoder, RankRLS(1.0)).fit(frame, Y, rankrls__qid=QID)
    new = table(seed=1)[0].astype({"colour": object})[frame.columns]
    new.loc[0, "brand"] = "never seen"
    given = {name: new[[name]].to_numpy(dtype=object if name in ("brand", "colour") else float) for name in new}
    assert_allclose(session(export.to_onnx(model)).run(None, given)[0], model.predict(new), rtol=1e-12)
    save(model, tmp_path / "model.rankrls")
    assert_array_equal(load(tmp_path / "model.rankrls").predict(new), model.predict(new))


def test_columns_that_a_transformer_drops_are_no_inputs():
    pytest.importorskip("onnx")
    frame = FRAME.astype({"colour": object, "shop": object})[["brand", "price", "colour", "same"]]
    encoder = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["same"]))
    model = make_pipeline(encoder, RankRLS(1.0)).fit(frame, Y, rankrls__qid=QID)
    graph = export.to_onnx(model)
    assert [one.name for one in graph.graph.input] == ["colour", "same"]
    given = {"colour": frame[["colour"]].to_numpy(), "same": frame[["same"]].to_numpy(dtype=float)}
    assert_allclose(session(graph).run(None, given)[0], model.predict(frame), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_encoders_of_scikit_learn_on_numbers(distribution, tmp_path):
    pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    X = np.c_[
        np.exp(rng.normal(size=400)), np.round(5 * rng.random(400)), rng.integers(0, 4, 400), 1e-9 * rng.random(400)
    ]
    encoder = make_column_transformer(
        (OneHotEncoder(drop="first"), [2]),
        (QuantileTransformer(n_quantiles=50, output_distribution=distribution), [0, 1]),
        (make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), [0, 3]),
        ("drop", [1]),
        remainder="passthrough",
    )
    model = make_pipeline(encoder, RankRLS(1.0, kernel="rbf", basis=20, random_state=0)).fit(X, Y, rankrls__qid=QID)
    new = np.r_[X, X * [3, 1, 1, 1], X * [0.1, 1, 1, 1]]
    assert_allclose(session(export.to_onnx(model)).run(None, {"X": new})[0], model.predict(new), atol=1e-12)
    save(model, tmp_path / "model.rankrls")
    assert_array_equal(load(tmp_path / "model.rankrls").predict(new), model.predict(new))


# ---------------------------------------------------------------- bad input


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="'brand' has 30 levels, more than max_categories=20: pass y"):
        TableEncoder().fit(FRAME)
    with pytest.raises(ValueError, match="none of the 1 columns varies"):
        TableEncoder().fit(FRAME[["same"]])
    encoder = TableEncoder().fit(FRAME, Y, QID)
    with pytest.raises(ValueError, match="'price' held numbers in training but holds text now, e.g. 'cheap'"):
        encoder.transform(FRAME.assign(price="cheap"))
    with pytest.raises(ValueError, match="'day' held dates in training but holds number now"):
        encoder.transform(FRAME.assign(day=3))
    with pytest.raises(ValueError, match="feature names"):
        encoder.transform(FRAME[FRAME.columns[::-1]])
    with pytest.raises(ValueError, match="columns names 'prize', but the table has price, brand"):
        TableEncoder(columns=["prize"]).fit(FRAME)
    with pytest.raises(ValueError, match="numbers must be one of 'quantile', 'standard'"):
        TableEncoder(numbers="quantiles").fit(FRAME)
    with pytest.raises(ValueError, match="max_categories must be a whole number"):
        TableEncoder(max_categories=-1).fit(FRAME)
    with pytest.raises(ValueError, match="'price' holds infinity"):
        TableEncoder(numbers="standard").fit(FRAME.assign(price=np.where(Y > 0, np.inf, Y)), Y, QID)
    with pytest.raises(ValueError, match="y must hold one number per row"):
        TableEncoder().fit(FRAME, Y[:5], QID)
    with pytest.raises(ValueError, match="the table has no columns"):
        TableEncoder().fit(FRAME[[]])
    with pytest.raises(ValueError, match="none of the 1 columns varies .*: there is nothing .* as 'id' has, is an id"):
        TableEncoder().fit(pd.DataFrame({"id": [f"d{i}" for i in range(400)]}), Y, QID)


def test_ids_are_left_out_with_a_warning():
    frame = FRAME.assign(document=[f"d{i}" for i in range(len(FRAME))])
    with pytest.warns(UserWarning, match="'document' has a different text in nearly every row"):
        encoder = TableEncoder().fit(frame, Y, QID)
    assert "document" not in encoder.inverse()
    with_text = TableEncoder(columns=["price", "brand"]).fit(frame, Y, QID)
    assert set(with_text.inverse()) == {"price", "brand"}


def test_kinds_can_be_given():
    frame = pd.DataFrame({"zip": [10115, 20095, 10115, 80331]})
    encoder = TableEncoder(columns={"zip": "text"}).fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["zip=10115", "zip=20095", "zip=80331"]
    assert_array_equal(encoder.transform(frame.astype(float)), encoder.transform(frame))


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table, lambda c: np.column_stack([c["id"]])])
def test_whole_numbers_of_any_size_are_categories(made):
    """Ids of 64 bits differ in digits that a float does not have."""
    frame = made({"id": [2**60, 2**60 + 1, 2**60, 7]})
    encoder = TableEncoder(columns={"x0" if isinstance(frame, np.ndarray) else "id": "text"}).fit(frame)
    assert [name.split("=")[1] for name in encoder.get_feature_names_out()] == [str(2**60), str(2**60 + 1), "7"]
    assert_array_equal(encoder.transform(frame), [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]])


def test_a_level_called_missing_beside_missing_values(tmp_path):
    frame = pd.DataFrame({"state": ["missing", "found", None, "missing"] * 5, "qid": np.repeat(np.arange(5), 4)})
    encoder = TableEncoder().fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["state=found", "state=missing", "state=missing (2)", "qid"]
    encoded = encoder.transform(frame)
    assert_array_equal(encoded.drop(columns="qid")[:4], [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]])
    model = make_pipeline(TableEncoder(), RankRLS(1.0)).fit(frame, np.tile([2, 0, 1, 2], 5))
    save(model, tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").predict(frame), model.predict(frame))


def test_arrays_after_frames_are_read_by_position():
    encoder = TableEncoder().fit(FRAME, Y, QID)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert_array_equal(encoder.transform(FRAME.to_numpy(dtype=object)), encoder.transform(FRAME))


def test_parts_of_microseconds_are_cut_off():
    stamps = np.array(["2026-01-01T00:00:00.000000001", "2026-01-02", "NaT"], dtype="datetime64[ns]")
    arrow = pa.table({"at": pa.array(stamps), "took": pa.array(np.array([1, 86_400 * 10**9, 5], dtype="m8[ns]"))})
    assert_array_equal(
        TableEncoder().fit_transform(arrow),
        TableEncoder().fit_transform(pd.DataFrame({"at": stamps, "took": arrow["took"].to_numpy()})),
    )


@pytest.mark.parametrize("zone", [None, datetime.UTC])
def test_dates_of_python(zone):
    days = [datetime.datetime(1970, 1, 2, 12, tzinfo=zone), None, datetime.datetime(1969, 12, 31, tzinfo=zone)]
    frame = pd.DataFrame({"day": pd.Series(days, dtype=object)})
    encoder = TableEncoder(numbers="standard").fit(frame)
    assert_allclose(columns(frame, encoder.kinds_)["day"], [1.5, np.nan, -1])
    arrow = pa.table({"day": days})
    assert_allclose(columns(arrow, encoder.kinds_)["day"], [1.5, np.nan, -1])


def test_durations_and_times_of_day_are_days():
    spans = [datetime.timedelta(hours=12), None, datetime.timedelta(days=-2)]
    clock = [datetime.time(6), None, datetime.time(18, 0)]
    frame = pd.DataFrame({"span": pd.Series(spans, dtype="timedelta64[ns]"), "clock": pd.Series(clock, dtype=object)})
    polars, arrow = pl.DataFrame({"span": spans, "clock": clock}), pa.table({"span": spans, "clock": clock})
    objects = np.array([spans, clock], dtype=object).T
    for given in (frame, frame.astype(object), polars, arrow, objects):
        encoder = TableEncoder().fit(given)
        assert set(encoder.kinds_.values()) == {"number"}
        found = list(columns(given, encoder.kinds_).values())
        assert_array_equal(found, [[0.5, np.nan, -2], [0.25, np.nan, 0.75]])
    assert_array_equal(columns(pd.DataFrame({"p": pd.period_range("1970-01", periods=2)}), {"p": "date"})["p"], [0, 1])


def test_chosen_columns_are_all_that_is_needed():
    encoder = TableEncoder(columns=["shop", "price"]).fit(FRAME, Y, QID)
    expected = TableEncoder().fit_transform(FRAME[["price", "shop"]])
    assert encoder.feature_names_in_.tolist() == ["price", "shop"]
    for given in (FRAME, FRAME[["shop", "price"]], pl.from_pandas(FRAME[["shop", "same", "price"]])):
        assert_array_equal(encoder.transform(given), expected)
    with pytest.raises(ValueError, match="now missing:\n- price"):
        encoder.transform(FRAME[["shop"]])
    with pytest.raises(ValueError, match="columns names 'x7', but the table has x0, x1"):
        TableEncoder(columns=["x7"]).fit(np.eye(2))


@pytest.mark.parametrize("cell", [[0.1, 0.2], (1, 2), np.ones(2), {"a": 1}], ids=lambda cell: type(cell).__name__)
def test_cells_of_several_values(cell):
    frame = pd.DataFrame({"price": [1.0, 2.0], "embedding": pd.Series([cell, cell], dtype=object)})
    with pytest.raises(ValueError, match="'embedding' holds (list|tuple|array|dict)s, such as an embedding: make each"):
        TableEncoder().fit(frame)
    assert TableEncoder(columns=["price"]).fit(frame).n_features_in_ == 1


def test_a_million_levels():
    """One column of numbers, not one for each; without labels an error that says how many there are."""
    m = 1_200_000
    frame = pd.DataFrame({"id": np.random.default_rng(0).permutation(m) % 1_000_000})
    encoder = TableEncoder(columns={"id": "text"})
    encoded = encoder.fit_transform(frame, np.arange(m) % 3, np.arange(m) // 10)
    assert encoded.shape == (m, 1) and np.isfinite(encoded).all()
    with pytest.raises(ValueError, match="'id' has 1,000,000 levels, more than max_categories=20: pass y"):
        encoder.fit(frame)
    with pytest.warns(UserWarning, match="'id' has a different text in nearly every row, so it is left out"):
        TableEncoder(columns={"id": "text", "x": "number"}).fit(
            frame[:1000].assign(x=np.arange(1000.0)), np.arange(1000)
        )


def test_levels_that_do_not_fit_into_memory_are_named(monkeypatch):
    monkeypatch.setattr(limits, "free_memory", 1e5)
    frame = pd.DataFrame({"price": np.arange(400.0), "shop": [f"s{i % 100}" for i in range(400)]})
    with pytest.raises(
        MemoryError, match="400 rows of 101 encoded columns, 100 of them for 'shop', needs.*lower max_cat"
    ):
        TableEncoder(max_categories=1000).fit_transform(frame, Y, QID)
    assert TableEncoder(max_categories=10).fit_transform(frame, Y, QID).shape == (400, 2)


def test_text_cannot_be_relative_to_the_query():
    with pytest.raises(ValueError, match="relative names 'brand', a column of text, but only numbers have a rank"):
        TableEncoder(relative={"price": "rank", "brand": "rank"}).fit(FRAME, Y, QID)


def test_a_pipeline_returns_standard_deviations():
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(TableEncoder(), RankRLS()).fit(FRAME, Y, qid=QID)
        scores, std = model.predict(FRAME, return_std=True)
    encoded = model[0].transform(FRAME)
    assert_array_equal(np.stack([scores, std]), np.stack(model[-1].predict(encoded, return_std=True)))


def test_rankers_name_the_columns_they_cannot_read():
    with pytest.raises(ValueError, match=r"NaN.*'price' \(\d+ missing\), 'count' \(\d+ missing\) hold.*TableEncoder"):
        RankRLS().fit(FRAME[["price", "count", "same"]].astype(float), Y, qid=QID)
    with pytest.raises(ValueError, match=r"'brand' \(text\) hold missing values, text or dates: put rankrls"):
        RankRLS().fit(FRAME[["same", "brand"]], Y, qid=QID)
    with pytest.raises(ValueError, match=r"Columns 1 \(1 missing\) hold"):
        RankRLS().fit(np.array([[1.0, np.nan], [2.0, 3.0]]), [0, 1])
