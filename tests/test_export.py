"""Exported models, read back by a reader written here from the format's documentation, rank as the model does."""

import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler

from cases import problem
from rankrls import (
    ConditionalRankRLS,
    CoRankRLS,
    PerQueryMinMax,
    RankingPursuit,
    RankRLS,
    TransductiveRankRLS,
    View,
    export,
)

X, y, qid = problem()
names = [f"feature{j}" for j in range(X.shape[1])]
unscored = np.where(qid > 4, np.nan, y)


def scaled(*scalers, **params):
    return make_pipeline(*scalers, RankRLS(**params)).fit(X, y, rankrls__qid=qid)


MODELS = {
    "linear": lambda: RankRLS().fit(X, y, qid=qid),
    "intercept": lambda: RankRLS(regression=0.5).fit(X, y, qid=qid),
    "float32": lambda: RankRLS(1.0).fit(X.astype(np.float32), y, qid=qid),
    "linear kernel": lambda: RankRLS(1.0, kernel="linear").fit(X, y, qid=qid),
    "sparse rows": lambda: RankRLS(1.0, kernel="linear").fit(sparse.csr_array(X), y, qid=qid),
    "standard": lambda: scaled(StandardScaler()),
    "standard, not centred": lambda: scaled(StandardScaler(with_mean=False)),
    "standard, not scaled": lambda: scaled(StandardScaler(with_std=False)),
    "minmax": lambda: scaled(MinMaxScaler((-1, 3))),
    "maxabs": lambda: scaled(MaxAbsScaler()),
    "robust": lambda: scaled(RobustScaler(), regression=0.5),
    "robust, not centred": lambda: scaled(RobustScaler(with_centering=False)),
    "several": lambda: scaled(StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler()),
    "transductive": lambda: TransductiveRankRLS(1.0).fit(X, unscored, qid=qid),
    "pursuit": lambda: RankingPursuit(3, kernel=None, regression=0.5).fit(X, y, qid=qid),
    "column twice": lambda: CoRankRLS(1.0, 1.0, views=[View([0, 1, 0]), View([2])]).fit(X, unscored, qid=qid),
    "views": lambda: CoRankRLS(1.0, 1.0, views=[View([0, 1]), View([1, 2, 5])]).fit(X, unscored, qid=qid),
}


def read_json(text):
    model = json.loads(text)
    assert list(model["weights"]) == names
    return X @ np.array(list(model["weights"].values())) + model["intercept"]


def read_svmrank(text):
    lines = text.splitlines()
    assert lines[0] == "SVM-light Version V6.20" and lines[1].startswith("0 #") and len(lines) == 12
    assert int(lines[7].split()[0]) == X.shape[1] and int(lines[9].split()[0]) == len(lines) - 10
    b, (factor, *values, end) = float(lines[10].split()[0]), lines[11].split()
    assert end == "#"
    scores = np.zeros(len(X))
    for value in values:
        j, weight = value.split(":")
        scores += float(factor) * float(weight) * X[:, int(j) - 1]
    return scores - b


def read_opensearch(text):
    """As the plugin's parser does: an object of numbers, by names of the feature set, in single precision."""
    body = json.loads(text)
    assert body.keys() == {"model"} and body["model"].keys() == {"name", "model"}
    model = body["model"]["model"]
    assert body["model"]["name"] == "mine" and model.keys() == {"type", "definition"}
    assert model["type"] == "model/linear" and isinstance(model["definition"], str)
    weights = json.loads(model["definition"])
    assert all(isinstance(w, float) for w in weights.values()) and weights.keys() <= set(names)
    return sum(np.float32(w) * X[:, names.index(name)] for name, w in weights.items())


def read_solr(text):
    """A model of Solr's LTR module: every feature that is named has a weight, and none else."""
    model = json.loads(text)
    assert model.keys() == {"class", "name", "features", "params"} and model["params"].keys() == {"weights"}
    assert model["class"] == "org.apache.solr.ltr.model.LinearModel" and model["name"] == "mine"
    weights = model["params"]["weights"]
    assert [feature["name"] for feature in model["features"]] == list(weights)
    assert all(feature.keys() == {"name"} for feature in model["features"])
    return sum(w * X[:, names.index(name)] for name, w in weights.items())


def read_vespa(text, values=None):
    """A rank profile whose expression is `number * feature + ... + number`, in the tokens of ranking expressions."""
    expression = re.fullmatch(
        r"rank-profile mine \{\s+first-phase \{\s+expression \{(.*?)\}\s+\}\s+\}", text, re.DOTALL
    )[1]
    number, feature = r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?", r"[A-Za-z_]\w*(?:\([\w,]*\))?(?:\.\w+)*"
    values, scores = values or {name: X[:, j] for j, name in enumerate(names)}, 0.0
    for term in " ".join(expression.split()).split(" + "):
        weight, name = re.fullmatch(rf"({number})(?: \* ({feature}))?", term).groups()
        scores = scores + float(weight) * (1.0 if name is None else values[name])
    return scores


@pytest.mark.parametrize("name", MODELS)
def test_exported_models_score_alike_but_for_a_constant(name):
    model = MODELS[name]()
    expected = model.predict(X.astype(np.float32) if name == "float32" else X)
    rtol = 1e-5 if name == "float32" else 1e-9
    for scores in (
        read_json(export.to_json(model, names)),
        read_svmrank(export.to_svmrank(model)),
        read_vespa(export.to_vespa(model, names, name="mine")),
    ):
        assert_allclose(scores, expected, rtol=rtol, atol=rtol)
    for scores, tolerance in (
        (read_solr(export.to_solr(model, names, name="mine")), rtol),
        (read_opensearch(export.to_opensearch(model, names, name="mine")), 1e-5),
    ):
        assert_allclose(scores - scores[0], expected - expected[0], rtol=tolerance, atol=tolerance)


def test_weights_of_any_size_are_numbers_of_vespa():
    model = RankRLS(1.0).fit(X, y, qid=qid)
    model.coef_[:] = [1e-5, -2e22, 1e-300, 3.0, -0.25, 0.0]
    known = [
        "bm25(title)",
        "fieldMatch(body).proximity",
        "attribute(clicks)",
        "nativeRank(a,b)",
        "freshness(t).logscale",
    ]
    text = export.to_vespa(model, [*known, "unused"], name="mine")
    values = dict(zip(known, [1.0, 1e-22, 1e300, 1.0, 4.0], strict=True))
    assert read_vespa(text, values) == pytest.approx(1e-5 - 2 + 1 + 3 - 1)


def test_names_are_those_of_the_frame():
    pandas = pytest.importorskip("pandas")
    model = make_pipeline(StandardScaler(), RankRLS(1.0)).fit(pandas.DataFrame(X, columns=names), y, rankrls__qid=qid)
    assert export.linear(model).names == names
    assert export.linear(RankRLS(1.0).fit(X, y, qid=qid)).names[:2] == ["f1", "f2"]


def test_features_without_weight_are_left_out():
    Z = X.copy()
    Z[:, 2] = 1.0
    model = RankRLS(1.0).fit(Z, y, qid=qid)
    model.coef_[2] = 0.0
    assert "feature2" not in export.to_solr(model, names) and "feature2" in export.to_json(model, names)
    assert " 3:" not in export.to_svmrank(model)
    model.coef_[:] = 0.0
    assert "0.0" in export.to_vespa(model, names) and export.to_svmrank(model).endswith("\n1 #\n")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RankRLS(1.0, kernel="rbf").fit(X, y, qid=qid), "a kernel model"),
        (lambda: CoRankRLS(1.0, 1.0, basis=5).fit(X, unscored, qid=qid), "a kernel model"),
        (lambda: RankRLS(1.0, tied_pairs=True).fit(X, np.column_stack([y, -y]), qid=qid), "2 targets"),
        (lambda: ConditionalRankRLS(1.0).fit(X[:5], np.arange(25.0).reshape(5, 5)), "pairs of objects"),
        (lambda: scaled(MinMaxScaler(clip=True)), "clip=True"),
        (lambda: scaled(MaxAbsScaler(clip=True)), "MaxAbsScaler(clip=True) is not linear"),
        (lambda: RankRLS(1.0, kernel="precomputed").fit(X @ X.T, y, qid=qid), "a precomputed kernel"),
        (lambda: RankRLS(1.0, kernel=lambda A, B: A @ B.T).fit(X, y, qid=qid), "a Python function"),
        (lambda: scaled(Normalizer()), "Normalizer is not a scaler"),
        (lambda: make_pipeline(PerQueryMinMax(), RankRLS(1.0)).fit(X, y), "within queries"),
        (lambda: RankRLS(1.0), "not fitted"),
    ],
)
def test_models_without_weights_are_refused(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        export.to_json(make())


def test_names_are_checked():
    model = RankRLS(1.0).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="6 features, got 1 names"):
        export.to_json(model, ["a"])
    with pytest.raises(ValueError, match="'a' is given to several"):
        export.to_json(model, ["a"] * 6)
    with pytest.raises(ValueError, match="not a rank feature of Vespa"):
        export.to_vespa(model, ["two words", *names[1:]])
    with pytest.raises(ValueError, match="name of a rank profile"):
        export.to_vespa(model, names, name="} evil {")
    model.coef_[0] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        export.to_json(model)
