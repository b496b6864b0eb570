"""Relations between objects of any kind, and between objects known by their similarity to a few."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import rankrls
from rankrls import ConditionalRankRLS, TwoStepRLS
from rankrls.kernels import Gaussian, Spectrum, Walks
from rankrls.relations.edges import EdgeKernel
from rankrls.relations.relation import Domain

RNG = np.random.default_rng(0)
DRUGS = ["".join(RNG.choice(list("abcd"), size=8)) for _ in range(18)]
TARGETS = ["".join(RNG.choice(list("xyz"), size=9)) for _ in range(12)]
NEW = ["abab", "dcba"], ["xyzxy", "zzzyx", "xxyyz"]
Y = RNG.normal(size=(18, 12))
EDGES = np.column_stack([part.ravel() for part in np.indices(Y.shape)])


def strings(alpha=1.0, **params):
    return ConditionalRankRLS(alpha, kernel=Spectrum(2), target_kernel=Spectrum(3), **params)


def similarities(drugs, targets):
    return Spectrum(2)(drugs, DRUGS), Spectrum(3)(targets, TARGETS)


@pytest.mark.parametrize("loss", ["ranking", "regression"])
def test_strings_are_their_kernel_matrices(loss, tmp_path):
    model = strings(loss=loss).fit(DRUGS, Y, TARGETS)
    K, L = similarities(DRUGS, TARGETS)
    same = ConditionalRankRLS(1.0, kernel="precomputed", loss=loss).fit(K, Y, L)
    assert_allclose(model.predict(*NEW), same.predict(*similarities(*NEW)))
    assert_allclose(model.predict(), same.predict())
    assert_allclose(strings(loss=loss).fit_edges(DRUGS, EDGES, Y.ravel(), TARGETS).predict(*NEW), model.predict(*NEW))
    rankrls.save(model, tmp_path / "model.rankrls")
    assert_allclose(rankrls.load(tmp_path / "model.rankrls").predict(*NEW), model.predict(*NEW))


def test_a_list_holds_objects_and_never_ids():
    model = strings().fit(DRUGS, Y, TARGETS)
    one, many = model.rank(NEW[0][0], NEW[1]), model.rank(NEW[0], NEW[1])
    assert_allclose(one.scores, many.scores[0])
    assert list(one.ids) == list(np.argsort(-model.predict(*NEW)[0]))
    with pytest.raises(ValueError, match="a kernel on objects needs a list of them"):
        model.predict("abab", NEW[1])


def test_a_column_names_its_objects():
    pd = pytest.importorskip("pandas")
    drugs = pd.Series(DRUGS, index=[f"d{i}" for i in range(18)])
    targets = pd.Series(TARGETS, index=[f"t{i}" for i in range(12)])
    table = pd.DataFrame(Y, index=drugs.index, columns=targets.index).iloc[::-1, ::-1]
    edges = table.stack().rename_axis(["drug", "target"]).rename("value").reset_index().sample(frac=1, random_state=0)
    expected = strings().fit(DRUGS, Y, TARGETS).predict(*NEW)
    assert_allclose(strings().fit(drugs, table, targets).predict(*NEW), expected)
    listed = strings().fit_edges(drugs, edges, "value", targets, source="drug", target="target")
    assert_allclose(listed.predict(*NEW), expected, atol=1e-6)


def test_objects_of_every_kind():
    graphs = [([["a"], [label]], [(0, 1)]) for label in "bcde"]
    assert ConditionalRankRLS(1.0, kernel=Walks()).fit(graphs, np.eye(4)).predict(graphs[:2]).shape == (2, 2)
    lengths = lambda A, B: np.array([[1.0 + (len(set(a)) == len(set(b))) for b in B] for a in A])
    mixed = ConditionalRankRLS(1.0, kernel=lengths, target_kernel="linear").fit(DRUGS, Y, RNG.normal(size=(12, 3)))
    assert mixed.predict(NEW[0], RNG.normal(size=(5, 3))).shape == (2, 5)
    assert strings(basis=6).fit(DRUGS, Y, TARGETS).predict(*NEW).shape == (2, 3)
    two = TwoStepRLS(1.0, 1.0, kernel=Spectrum(2), target_kernel=Spectrum(3)).fit(DRUGS, Y, TARGETS)
    K, L = similarities(DRUGS, TARGETS)
    same = TwoStepRLS(1.0, 1.0, kernel="precomputed").fit(K, Y, L)
    assert_allclose(two.predict(*NEW), same.predict(*similarities(*NEW)))
    found = strings("auto").fit(DRUGS, Y, TARGETS).evaluate(DRUGS, Y, TARGETS, settings=[4], n_splits=3)
    assert len(found[4]) == 3


@pytest.mark.parametrize("options", [{}, {"loss": "regression"}], ids=str)
def test_kernel_values_with_a_basis_alone(options):
    X, Z, kernel = RNG.normal(size=(18, 3)), RNG.normal(size=(12, 2)), Gaussian(0.3)
    bases = {"basis": [0, 3, 7, 12], "target_basis": [5, 1, 9]}
    points = X[bases["basis"]], Z[bases["target_basis"]]
    model = ConditionalRankRLS(1.0, kernel="precomputed", **bases, **options)
    model.fit(kernel(X, points[0]), Y, kernel(Z, points[1]))  # m x r: never the whole matrix
    same = ConditionalRankRLS(1.0, kernel=kernel, **bases, **options).fit(X, Y, Z)
    new = X[:4] + 1, Z[:3] - 1
    assert_allclose(model.predict(kernel(new[0], points[0]), kernel(new[1], points[1])), same.predict(*new), atol=1e-9)
    whole = ConditionalRankRLS(1.0, kernel="precomputed", **bases, **options).fit(kernel(X, X), Y, kernel(Z, Z))
    assert_allclose(whole.predict(kernel(new[0], X), kernel(new[1], Z)), same.predict(*new), atol=1e-9)


def test_bad_bases_of_kernel_values_say_so():
    K = Gaussian(0.3)(RNG.normal(size=(12, 2)), RNG.normal(size=(12, 2)))
    K = K @ K.T
    with pytest.raises(ValueError, match="X: a precomputed kernel has no points to choose from: pass row numbers"):
        ConditionalRankRLS(1.0, kernel="precomputed", basis=5).fit(K, Y[:12])
    with pytest.raises(ValueError, match="needs basis= the row number of each column, 4 different ones; got 2"):
        ConditionalRankRLS(1.0, kernel="precomputed", basis=[0, 1]).fit(K[:, :4], Y[:12])


@pytest.mark.parametrize("way", ["columns", "kernels"])
def test_products_of_sparse_features_that_are_too_many_to_keep(way):
    rng = np.random.default_rng(0)
    X, Z = (sparse.random_array((20, 2500), density=0.01, rng=rng, format="csr") for _ in range(2))
    rows, columns, v = rng.integers(20, size=60), rng.integers(20, size=60), rng.normal(size=60)
    kernel = EdgeKernel(Domain(X, True), Domain(Z, True), rows, columns)
    vars(kernel)["pair_features"] = None  # as if there were too many products to keep
    if way == "columns":
        vars(kernel)["kernels"] = kernel.G, kernel.K
    assert kernel.kernels[0].sparse == (way == "columns")
    K = (X @ X.T).toarray()[np.ix_(rows, rows)] * (Z @ Z.T).toarray()[np.ix_(columns, columns)]
    assert_allclose(kernel(v), K @ v, atol=1e-12)
