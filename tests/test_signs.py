"""Weights of given signs: against SciPy's solvers, and held out against refits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear

import oracles
from cases import problem, weights
from papers import RankRLS
from rankrls import load, save
from rankrls.core.signs import signed_solution

X, y, qid = problem(m=60)
BOTH = {0: 1, 3: -1, 5: -1}


def expected(X, y, qid, signs, alpha, u=None, **loss):
    """Bounded least squares on the square root of the dense normal equations."""
    L = oracles.laplacian(y, qid, u=u, **loss)
    M = X.T @ L @ X + alpha * np.eye(X.shape[1])
    C = np.linalg.cholesky(M)
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    return lsq_linear(C.T, np.linalg.solve(C, X.T @ L @ y), (low, high), method="bvls", tol=1e-14).x


@pytest.mark.parametrize("seed", range(30))
def test_pivoting_finds_the_least(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    A = rng.normal(size=(n + 2, n)) @ rng.normal(size=(n, n))
    M, c, signs = A.T @ A + 1e-3 * np.eye(n), rng.normal(size=n), rng.integers(-1, 2, n)
    v = signed_solution(M, c, signs)
    gradient = c - M @ v
    assert np.all(signs * v >= 0)
    assert_allclose(gradient[(signs == 0) | (v != 0)], 0, atol=1e-7 * np.abs(c).max())
    assert np.all((signs * gradient)[(signs != 0) & (v == 0)] <= 1e-9)
    assert_allclose(signed_solution(M, c, signs, rng.random(n) < 0.5), v, atol=1e-7)


@pytest.mark.parametrize("params", [{}, {"tied_pairs": True}, {"weighting": "pairs"}])
@pytest.mark.parametrize("positive", [True, [1, 2], BOTH], ids=str)
def test_weights_have_their_signs(params, positive):
    loss = {"tied": params.get("tied_pairs", False), "weighting": params.get("weighting", "items")}
    signs = np.ones(6) if positive is True else np.zeros(6)
    for column in positive if positive is not True else ():
        signs[column] = positive[column] if isinstance(positive, dict) else 1
    u = weights(60)
    for alpha in (1e-3, 1.0, 100.0):
        model = RankRLS(alpha, positive=positive, **params).fit(X, y, qid=qid, sample_weight=u)
        assert_allclose(model.coef_, expected(X, y, qid, signs, alpha, u, **loss), atol=1e-7)
        assert np.all(signs * model.coef_ >= 0)


@pytest.mark.parametrize("cv", ["leave-query-out", 3])
def test_held_out_scores_are_those_of_refits(cv):
    model = RankRLS(positive=BOTH, cv=cv, tied_pairs=True).fit(X, y, qid=qid)
    assert model.alphas_.shape == model.cv_scores_.shape
    if cv == "leave-query-out":
        for q in np.unique(qid):
            out = qid == q
            again = RankRLS(model.alpha_, positive=BOTH, tied_pairs=True).fit(X[~out], y[~out], qid=qid[~out])
            assert_allclose(model.cv_predictions_[out], again.predict(X[out]), atol=1e-8)


def test_signs_that_hold_anyway_change_nothing():
    free = RankRLS(1.0).fit(X, y, qid=qid)
    signs = {j: int(np.sign(w)) for j, w in enumerate(free.coef_)}
    assert_allclose(RankRLS(1.0, positive=signs).fit(X, y, qid=qid).coef_, free.coef_, atol=1e-10)


def test_path_pairs_queries_and_files(tmp_path):
    model = RankRLS(positive=True).fit(X, y, qid=qid)
    alphas, coefs = model.coef_path()
    assert np.all(coefs >= 0)
    assert_allclose(coefs[list(alphas).index(model.alpha_)], model.coef_, atol=1e-9)
    early = qid < 4
    parts = RankRLS(1.0, positive=True).fit(X[early], y[early], qid=qid[early])
    parts.partial_fit(X[~early], y[~early], qid=qid[~early])
    assert_allclose(parts.coef_, RankRLS(1.0, positive=True).fit(X, y, qid=qid).coef_, atol=1e-9)
    assert np.all(parts.add_pairs(X, [[4, 8]]).coef_ >= 0)
    save(model, tmp_path / "model.rankrls")
    assert_allclose(load(tmp_path / "model.rankrls").coef_, model.coef_)


def test_more_features_than_rows_and_one_query():
    wide = np.random.default_rng(0).normal(size=(12, 30))
    labels = np.arange(12.0)
    model = RankRLS(positive=True).fit(wide, labels)
    assert np.all(model.coef_ >= 0) and model.coef_.any()


def test_columns_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["bm25", "b", "c", "spam", "e", "f"])
    model = RankRLS(1.0, positive={"bm25": +1, "spam": -1}).fit(frame, y, qid=qid)
    assert model.coef_[0] >= 0 >= model.coef_[3]
    with pytest.raises(ValueError, match="positive names the column 'bm26', which X does not have; it has bm25, b"):
        RankRLS(positive=["bm26"]).fit(frame, y, qid=qid)


@pytest.mark.parametrize(
    ("positive", "message"),
    [
        ([9], "positive names column 9, but X has columns 0 to 5"),
        ({0: 2}, r"the sign of a weight is \+1 or -1, got 2 for column 0"),
        (["a"], "the columns have no names: give numbers"),
    ],
)
def test_errors_say_what_to_do(positive, message):
    with pytest.raises(ValueError, match=message):
        RankRLS(positive=positive).fit(X, y, qid=qid)


def test_what_signs_do_not_go_with():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    with pytest.raises(ValueError, match="asks for both signs of column"):
        RankRLS(positive={"a": 1, 0: -1}).fit(frame, y, qid=qid)
    with pytest.raises(ValueError, match="positive does not go with a kernel model"):
        RankRLS(kernel="rbf", positive=True).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="exactly do not go with positive"):
        RankRLS(1.0, positive=True).fit(X, y, qid=qid).add_pairs(X, [[4, 8]], exact=True)
    with pytest.raises(ValueError, match="positive does not go with fit_pairs"):
        RankRLS(1.0, positive=True).fit_pairs(X, [[4, 8]])
