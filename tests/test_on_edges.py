"""scikit-learn's searches over relations: rows of a matrix, or edges of any setting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from rankrls import ConditionalRankRLS, OnEdges
from rankrls.datasets import make_relation
from rankrls.kernels import Gaussian
from rankrls.selection import RelationKFold


def relation(seed=0, p=14, r=10):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(p, 3)), rng.normal(size=(r, 2))
    return X, X @ rng.normal(size=(3, 2)) @ Z.T + 0.3 * rng.normal(size=(p, r)), Z


@pytest.mark.parametrize("setting", [1, 2, 3, 4])
@pytest.mark.parametrize("one", [True, False])
def test_cross_validation_over_edges_is_evaluate(setting, one):
    X, Y, Z = relation()
    if one:
        X, Y, Z = X, Y @ Y.T, None
    model = ConditionalRankRLS(0.5, kernel=Gaussian(0.3), tol=1e-10)
    expected = model.evaluate(X, Y, Z, settings=[setting], n_splits=3)[setting]
    edges = np.argwhere(np.isfinite(Y))
    cv = RelationKFold(setting, 3, same_objects=one)
    found = cross_val_score(OnEdges(model, X, Z), edges, Y[tuple(edges.T)], cv=cv)
    assert_allclose(found, expected, atol=1e-9)


def test_a_grid_of_kernel_parameters_and_the_refit():
    data = make_relation(20, missing=0.2, random_state=0)
    edges = np.argwhere(np.isfinite(data.Y))
    ranker = OnEdges(ConditionalRankRLS(1.0, kernel=Gaussian(1.0), tol=1e-4), data.X)
    cv = RelationKFold(4, 3, same_objects=True)
    search = GridSearchCV(ranker, {"model__kernel__gamma": [0.01, 0.5]}, cv=cv).fit(edges, data.Y[tuple(edges.T)])
    gamma = search.best_params_["model__kernel__gamma"]
    again = ConditionalRankRLS(1.0, kernel=Gaussian(gamma), tol=1e-4).fit(data.X, data.Y)
    assert_allclose(search.predict(edges[:5]), again.predict_edges(data.X, edges[:5]), atol=1e-4)
    assert clone(ranker).get_params()["model__kernel__gamma"] == ranker.model.kernel.gamma


def test_rows_of_a_matrix_are_searched_as_they_are():
    X, Y, Z = relation()
    grid = {"alpha": [0.1, 10.0]}
    model = ConditionalRankRLS(kernel="rbf")
    search = GridSearchCV(model, grid, cv=RelationKFold(2, 3)).fit(X, Y, Z=Z)
    scores = [model.set_params(alpha=a).evaluate(X, Y, Z, settings=[2], n_splits=3)[2] for a in grid["alpha"]]
    assert_allclose(search.cv_results_["mean_test_score"], np.mean(scores, axis=1))
    with pytest.raises(ValueError, match="use OnEdges"):
        list(RelationKFold(4).split(X, Y))
    with pytest.raises(ValueError, match="two ends"):
        list(RelationKFold(4).split(X, Y[:, 0]))


def test_ids_and_complete_parts():
    pd = pytest.importorskip("pandas")
    X, Y, Z = relation()
    x = pd.DataFrame(X, index=[f"D{i}" for i in range(len(X))])
    z = pd.DataFrame(Z, index=[f"T{i}" for i in range(len(Z))])
    pairs = [(f"D{i}", f"T{j}") for i in range(5) for j in range(4)]
    ranker = OnEdges(ConditionalRankRLS(0.5, kernel="rbf"), x, z).fit(pairs, Y[:5, :4].ravel())
    assert ranker.model_.solver_ == "closed"
    expected = ConditionalRankRLS(0.5, kernel="rbf").fit(X[:5], Y[:5, :4], Z[:4]).predict(X[:5], Z[:4])
    assert_allclose(ranker.predict(pairs), expected.ravel(), atol=1e-10)
    mirrored = OnEdges(ConditionalRankRLS(0.5, kernel="precomputed", relation="symmetric"), X @ X.T)
    edges = [(i, j) for i in range(6) for j in range(i)]
    assert mirrored.fit(edges, [float(i + j) for i, j in edges]).model_.solver_ != "closed"
