"""The combined objective of ranking and regression exactly as it is printed, without an intercept."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
from rankrls import RankingPursuit
from rankrls.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
QID = np.arange(30) % 5
Y = X @ [1.0, -1.0, 0.5, 0.0] + 3.0 + 0.1 * RNG.normal(size=30)


@pytest.mark.parametrize("backfit", [True, False])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kernel", [None, Gaussian(0.3)], ids=["columns", "kernels"])
def test_the_combined_objective_as_printed(kernel, beta, backfit):
    params = {"kernel": kernel, "regression": beta, "intercept": False, "weighting": "pairs", "tied_pairs": True}
    model = RankingPursuit(3, backfit=backfit, **params).fit(X, Y, qid=QID)
    D = X if kernel is None else oracles.gaussian(X, X, 0.3)
    Lt = oracles.laplacian(Y, QID, tied=True, weighting="pairs", beta=beta)
    steps = oracles.pursuit(D, Y, Lt, 3, backfit=backfit, intercept=False)
    ours = model.path_
    assert_allclose(ours.intercepts, 0)
    assert ours.indices.tolist() == [atom for atom, _, _, _ in steps]
    assert_allclose(ours.errors, [loss for _, loss, _, _ in steps])
    r = Y - model.predict(X)
    assert_allclose(ours.errors[-1], r @ Lt @ r)
    best = np.linalg.lstsq(_root(Lt) @ D[:, ours.indices], _root(Lt) @ Y, rcond=None)[0]
    if backfit:
        assert_allclose(ours.coefs[-1], best, atol=1e-8)


def _root(L):
    d, V = np.linalg.eigh(L)
    return (V * np.sqrt(np.maximum(d, 0))) @ V.T


def test_an_intercept_is_free_by_default():
    with_one = RankingPursuit(3, kernel=None, regression=1.0).fit(X, Y, qid=QID)
    assert abs(with_one.intercept_) > 1
    chosen = RankingPursuit(kernel=None, max_basis=3, regression=0.5, intercept=False).fit(X, Y, qid=QID)
    assert chosen.intercept_ == 0
