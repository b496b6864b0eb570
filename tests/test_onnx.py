"""ONNX graphs: what onnxruntime makes of them is what the model predicts, on 10,000 rows."""

import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from cases import problem
from papers import RankRLS
from rankrls import (
    ConditionalRankRLS,
    CoRankRLS,
    PerQueryMinMax,
    RankingPursuit,
    TransductiveRankRLS,
    View,
    export,
    kernels,
    persistence,
)
from rankrls.export.graph import OnnxGraph
from rankrls.export.onnx import KERNELS

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

X, y, qid = problem()
unscored = np.where(qid > 4, np.nan, y)
NEW = np.vstack([X, np.zeros(6), np.random.default_rng(1).normal(size=(10_000 - len(X) - 1, 6)) * X.std(axis=0)])


def ranker(**params):
    return lambda: RankRLS(1.0, **params).fit(X, y, qid=qid)


def scaled(*steps, **params):
    return lambda: make_pipeline(*steps, RankRLS(1.0, **params)).fit(X, y, rankrls__qid=qid)


MODELS = {
    "linear": ranker(),
    "intercept": ranker(regression=0.5),
    "several targets": lambda: RankRLS(1.0, tied_pairs=True, regression=0.5).fit(
        X, np.column_stack([y, -y, y**2]), qid=qid
    ),
    "several targets, kernel": lambda: RankRLS(1.0, tied_pairs=True, kernel="rbf").fit(
        X, np.column_stack([y, -y]), qid=qid
    ),
    "linear kernel": ranker(kernel="linear"),
    "gaussian": ranker(kernel="rbf"),
    "gaussian, basis": ranker(kernel=kernels.Gaussian(0.05), basis=8, random_state=0, regression=0.3),
    "laplacian": ranker(kernel="laplacian"),
    "laplacian, basis": ranker(kernel=kernels.Laplacian(0.1), basis=[1, 5, 7]),
    "polynomial": ranker(kernel=kernels.Polynomial(2)),
    "polynomial of odd degree": ranker(kernel=kernels.Polynomial(3, 0.1, 0.5), basis=9, random_state=0),
    "cosine": ranker(kernel="cosine"),
    "float32": lambda: RankRLS(1.0, kernel="rbf").fit(X.astype(np.float32), y, qid=qid),
    "sparse rows": lambda: RankRLS(1.0, kernel="rbf").fit(sparse.csr_array(X), y, qid=qid),
    "one point": ranker(kernel="rbf", basis=[3]),
    "transductive": lambda: TransductiveRankRLS(1.0, kernel="rbf", basis=9).fit(X, unscored, qid=qid),
    "co": lambda: CoRankRLS(1.0, 1.0, basis=5, random_state=0).fit(X, unscored, qid=qid),
    "views": lambda: CoRankRLS(
        1.0, 1.0, views=[View([0, 5, 2]), View([1, 2], "laplacian", 7), View(None, "cosine", 6)], random_state=0
    ).fit(X, unscored, qid=qid),
    "pursuit": lambda: RankingPursuit(4).fit(X, y, qid=qid),
    "pursuit, linear": lambda: RankingPursuit(3, kernel=None, regression=0.5).fit(X, y, qid=qid),
    "pursuit, views": lambda: RankingPursuit(2, views=2, nu=0.1, basis=9, random_state=0, regression=0.5).fit(
        X, unscored, qid=qid
    ),
    "pursuit of nothing": lambda: RankingPursuit(3, kernel=None, regression=0.5).fit(np.ones_like(X), y, qid=qid),
    "standard": scaled(StandardScaler(), kernel="rbf"),
    "standard, not centred": scaled(StandardScaler(with_mean=False)),
    "minmax": scaled(MinMaxScaler((-1, 3)), kernel="poly", basis=9, random_state=0),
    "minmax, clipped": scaled(MinMaxScaler((-1, 3), clip=True), kernel="rbf"),
    "maxabs, clipped": scaled(MaxAbsScaler(clip=True)),
    "robust": scaled(RobustScaler(), kernel="laplacian", basis=9, random_state=0),
    "several steps": scaled(SimpleImputer(), "passthrough", StandardScaler(), MinMaxScaler(), MaxAbsScaler()),
    "l1": scaled(Normalizer("l1"), kernel="rbf"),
    "l2": scaled(Normalizer("l2"), kernel="rbf"),
    "max": scaled(Normalizer("max"), kernel="rbf"),
    "imputed": lambda: make_pipeline(SimpleImputer(), CoRankRLS(1.0, 1.0, basis=5, random_state=0)).fit(
        np.where(X > 4, np.nan, X), unscored, corankrls__qid=qid
    ),
}


def run(graph, rows):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["scores"], {"X": rows})[0]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:stopped after 0 of 3")
def test_scores_are_those_of_the_model(name):
    model = MODELS[name]()
    rows = NEW.astype(np.float32) if name == "float32" else NEW
    if name == "imputed":
        rows = np.where(rows > 4, np.nan, rows)
    expected = model.predict(rows)
    scores = run(export.to_onnx(model), rows.astype(np.float64))
    assert scores.dtype == np.float64 and scores.shape == expected.shape
    tight = 1e-5 if name == "float32" else 1e-9
    assert_allclose(scores, expected, rtol=tight, atol=tight * np.abs(expected).max())
    single = run(export.to_onnx(model, dtype="float32"), rows.astype(np.float32))
    assert single.dtype == np.float32
    assert np.abs(single - expected).max() <= 1e-5 * max(1, np.abs(expected).max())


@pytest.mark.parametrize("kernel", [None, "rbf", "poly"])
@pytest.mark.parametrize("scaler", [StandardScaler(with_mean=False), MaxAbsScaler(), MinMaxScaler((0, 0.3))], ids=str)
def test_one_feature_keeps_double_precision(kernel, scaler):
    """onnxruntime merges a number into the product after it, and keeps it in float32."""
    model = make_pipeline(scaler, RankRLS(1.0, kernel=kernel)).fit(X[:, :1], y, rankrls__qid=qid)
    expected = model.predict(NEW[:, :1])
    assert_allclose(run(export.to_onnx(model), NEW[:, :1]), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("m", [0, 1, 2])
@pytest.mark.parametrize("kernel", [None, "rbf", "laplacian", "poly", "cosine"])
def test_any_number_of_rows(m, kernel):
    model = ranker(kernel=kernel)()
    expected = model.predict(X[:m]) if m else np.empty(0)
    assert_allclose(run(export.to_onnx(model), X[:m]), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("steps", [[], [StandardScaler()], [RobustScaler()], [MinMaxScaler()]], ids=str)
def test_features_far_from_zero_keep_their_distances_in_single_precision(steps):
    """||x||^2 is 6e8 here and distances are about 1: without the centre, nothing would be left of them."""
    far = np.random.default_rng(0).normal(size=X.shape) + 1e4
    far = far.astype(np.float32).astype(np.float64)  # so that the features themselves lose nothing
    model = make_pipeline(*steps, RankRLS(1.0, kernel=kernels.Gaussian(0.2))).fit(far, y, rankrls__qid=qid)
    scores = run(export.to_onnx(model, dtype="float32"), far.astype(np.float32))
    assert np.abs(scores - model.predict(far)).max() < 1e-5


def test_files_have_metadata(tmp_path):
    graph = export.to_onnx(MODELS["standard"](), [f"feature {j}" for j in range(6)], name="mine")
    onnx.save(graph, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (taken,), (given,) = session.get_inputs(), session.get_outputs()
    assert (taken.name, taken.shape, taken.type) == ("X", ["N", 6], "tensor(double)")
    assert (given.name, given.shape) == ("scores", ["N"])
    about = session.get_modelmeta()
    assert about.graph_name == "mine" and about.producer_name == "rankrls"
    assert json.loads(about.custom_metadata_map["features"])[0] == "feature 0"
    assert graph.opset_import[0].version == 17 and len(graph.opset_import) == 1
    assert export.to_onnx(MODELS["gaussian"]()) == export.to_onnx(MODELS["gaussian"]())


class Tent(kernels.Kernel):
    def __call__(self, A, B):
        return np.maximum(0, 1 - 0.1 * kernels.Laplacian(1.0)(A, B))


def precomputed(estimator):
    return estimator.fit(X @ X.T, y, qid=qid)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: precomputed(RankRLS(1.0, kernel="precomputed")), "precomputed kernel is a function of kernel values"),
        (lambda: precomputed(RankingPursuit(2, kernel="precomputed")), "precomputed kernel"),
        (ranker(kernel=lambda A, B: A @ B.T), "Python function"),
        (ranker(kernel=Tent()), "the kernel <test_onnx.Tent"),
        (lambda: ConditionalRankRLS(1.0, kernel="precomputed").fit(np.eye(3), np.eye(3)), "precomputed kernel"),
        (lambda: ConditionalRankRLS(1.0, kernel=lambda A, B: A @ B.T).fit(X[:5], np.eye(5)), "Python function"),
        (lambda: make_pipeline(PerQueryMinMax(), RankRLS(1.0)).fit(X, y), "within queries"),
        (scaled(PowerTransformer()), "PowerTransformer is not a scaler"),
        (scaled(SimpleImputer(add_indicator=True)), "adds no indicators"),
        (lambda: make_pipeline(SimpleImputer(), RankRLS(1.0)).fit(np.c_[X, np.full(len(X), np.nan)], y), "were empty"),
        (lambda: RankRLS(1.0), "not fitted"),
        (StandardScaler, "only a fitted ranker"),
    ],
)
@pytest.mark.filterwarnings("ignore:Skipping features")
def test_models_without_an_onnx_form_are_refused(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        export.to_onnx(make())


RELATIONS = {
    "linear": lambda Y, z: ConditionalRankRLS(1.0).fit(X[:9], Y, z),
    "effects and a constant": lambda Y, z: ConditionalRankRLS(
        1.0, pairwise=["kronecker", "sum"], loss="regression", intercept=True, cv=3
    ).fit(X[:9], Y + 5, z),
    "kernels": lambda Y, z: ConditionalRankRLS(1.0, kernel="rbf", target_kernel="laplacian").fit(X[:9], Y, z),
    "a kernel at one end": lambda Y, z: ConditionalRankRLS(1.0, kernel="poly", target_kernel="linear").fit(X[:9], Y, z),
    "basis": lambda Y, z: ConditionalRankRLS(1.0, kernel="rbf", basis=4, target_basis=5).fit(X[:9], Y, z),
    "more features than objects": lambda Y, z: ConditionalRankRLS(1.0).fit(X[:4], Y[:4], z),
    "one kind": lambda Y, z: ConditionalRankRLS(1.0, relation="reciprocal").fit(X[:7], Y[:7] - Y[:7].T),
}


@pytest.mark.parametrize("name", RELATIONS)
@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-10), ("float32", 1e-3)])
def test_relations_take_both_ends(name, dtype, tol):
    rng = np.random.default_rng(0)
    Y, z = rng.normal(size=(9, 7)), rng.normal(size=(7, 3))
    model = RELATIONS[name](Y, z)
    new, new_z = rng.normal(size=(4, 6)), rng.normal(size=(5, 6 if name == "one kind" else 3))
    graph = export.to_onnx(model, dtype=dtype)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    (scores,) = session.run(None, {"X": new.astype(dtype), "Z": new_z.astype(dtype)})
    expected = model.predict(new, new_z)
    assert scores.shape == (4, 5) and scores.dtype == dtype
    assert_allclose(scores, expected, atol=tol * np.abs(expected).max())
    features = json.loads({prop.key: prop.value for prop in graph.metadata_props}["target_features"])
    assert len(features) == new_z.shape[1]


def test_arguments_are_checked(monkeypatch):
    model = ranker()()
    with pytest.raises(ValueError, match='dtype must be "float64" or "float32", got \'float16\''):
        export.to_onnx(model, dtype="float16")
    with pytest.raises(ValueError, match="6 features, got 1 names"):
        export.to_onnx(model, ["a"])
    model.intercept_ = 1e100
    export.to_onnx(model)
    with pytest.raises(ValueError, match="not finite, or too large for this dtype"):
        export.to_onnx(model, dtype="float32")
    with pytest.raises(ValueError, match="2 GiB"):
        OnnxGraph(onnx, "float64", limit=1000).constant(np.zeros(1000))


def test_every_kernel_can_be_written_and_kept():
    known = set(kernels.SHORTHANDS.values())
    assert set(KERNELS) == known - {kernels.Linear, kernels.Precomputed}
    assert known <= set(persistence.CLASSES.values())


def test_without_onnx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'rankrls[onnx]'")):
        export.to_onnx(ranker()())
