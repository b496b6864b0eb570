"""Values and weights at the edges of floating point: right, or refused; each case was once wrong without an error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from attack import oracles
from attack.oracles import Kernel, Linear, differences
from cases import problem
from rankrls import RankRLS, kernels

X, Y, QID = problem()
RAW = {"scale": None}
BIG = int(np.argmax(np.bincount(QID)))  # a query of several labels


def expected(X, y, qid, alpha, *, u=None, beta=0.0, weighting="items", tied=False, new=None):
    """Scores in extended precision, from a loop over pairs."""
    D = differences(y, qid, tied=tied, weighting=weighting, beta=beta, u=u)
    model = Linear(X, y, D, alpha, 2.0**-52, u=u, intercept=beta > 0)
    return model.scores(X if new is None else new)[:, 0].astype(float)


@pytest.mark.parametrize("regression", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("tied", [False, True])
def test_weights_that_differ_by_many_orders(regression, tied):
    u = 10.0 ** np.random.default_rng(0).uniform(-10, 10, len(Y))
    model = RankRLS(1e3, tied_pairs=tied, regression=regression, **RAW).fit(X + 50, Y, qid=QID, sample_weight=u)
    truth = expected(X + 50, Y, QID, 1e3, u=u, beta=regression, tied=tied)
    assert_allclose(model.predict(X + 50), truth, rtol=1e-9, atol=1e-9 * np.abs(truth).max())


@pytest.mark.parametrize("weighting", ["pairs", "items"])
def test_large_weights_with_an_intercept(weighting):
    u = np.random.default_rng(1).uniform(1, 9, len(Y)) * 1e100
    alpha = 1e200 if weighting == "pairs" else 1e100
    model = RankRLS(alpha, weighting=weighting, regression=0.3, **RAW).fit(X + 100, Y, qid=QID, sample_weight=u)
    truth = expected(X + 100, Y, QID, alpha, u=u, beta=0.3, weighting=weighting)
    assert_allclose(model.predict(X + 100), truth, rtol=1e-9)


@pytest.mark.parametrize("columns", [6, 60])
@pytest.mark.parametrize("size", [(1e-30, 1.0), (1.0, 1e60), (1.0, 1e-60), (1e-25, 1e-20), (1.0, 1e40)])
def test_single_precision_takes_values_whose_squares_it_cannot_hold(size, columns):
    few = np.flatnonzero(QID < 5)
    rows = np.tile(X[few], (1, columns // 6)).astype(np.float32) * np.float32(size[0])
    alpha = float(np.sum(rows.astype(float) ** 2)) / 100
    model = RankRLS(alphas=[alpha], **RAW).fit(rows, Y[few] * size[1], qid=QID[few])
    truth = expected(rows.astype(float), Y[few] * size[1], QID[few], alpha)
    assert_allclose(model.predict(rows), truth, rtol=1e-4, atol=1e-4 * np.abs(truth).max())
    assert np.abs(model.cv_predictions_).max() > 1e-3 * np.abs(truth).max()


@pytest.mark.parametrize("columns", [6, 60])
@pytest.mark.parametrize("regression", [0.0, 1.0])
def test_sparse_rows_far_from_zero(columns, regression):
    few = np.flatnonzero(QID < 5)
    dense = np.tile(X[few], (1, columns // 6)) + 1e6
    params = {"alpha": 1.0, "regression": regression, "tied_pairs": True, **RAW}
    found = RankRLS(**params).fit(sparse.csr_array(dense), Y[few], qid=QID[few]).predict(dense)
    assert_allclose(found, expected(dense, Y[few], QID[few], 1.0, beta=regression, tied=True), atol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e7])
def test_the_gaussian_kernel_of_sparse_rows_far_from_zero(offset):
    rows = np.hstack([X[:10, :1] + offset, np.where(X[:10] > 1, X[:10], 0)])
    kernel = kernels.Gaussian(0.5)
    assert_allclose(kernel(sparse.csr_array(rows), sparse.csr_array(rows[:4])), kernel(rows, rows[:4]), atol=1e-9)


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("regression", [0.0, 0.5])
def test_where_nothing_is_left_to_learn_held_out_scores_tie(kernel, regression):
    y = np.where(QID == BIG, Y, 7.0)  # all labels of other queries are equal
    model = RankRLS(alphas=[0.1, 10.0], kernel=kernel, regression=regression, **RAW).fit(X, y, qid=QID)
    assert_array_equal(model.cv_predictions_[QID == BIG], 7.0 if regression else 0.0)
    folds = [
        (np.flatnonzero(QID != BIG), np.flatnonzero(QID == BIG)),
        (np.flatnonzero(QID == BIG), np.flatnonzero(QID != BIG)),
    ]
    model.set_params(cv=folds).fit(X, y, qid=QID)
    assert_array_equal(model.cv_predictions_[QID == BIG], 7.0 if regression else 0.0)


@pytest.mark.parametrize("regression", [1e-8, 1e-5, 0.5])
def test_the_intercept_of_held_out_queries(regression):
    model = RankRLS(alphas=[10.0], regression=regression, **RAW).fit(X, Y, qid=QID)
    for q in range(3):
        rest = q != QID
        truth = expected(X[rest], Y[rest], QID[rest], 10.0, beta=regression, new=X[~rest])
        assert_allclose(model.cv_predictions_[~rest], truth, rtol=1e-7)


def test_small_directions_of_a_kernel_count_at_large_alpha():
    """Eigenvalues of 1e-16 belong to functions with values of 1e-8."""
    rows, kernel = X[:12, :1], kernels.Gaussian(0.02)
    qid = np.repeat([0, 1, 2], 4)
    model = RankRLS(alphas=[1.0], kernel=kernel, tied_pairs=True, **RAW).fit(rows, Y[:12], qid=qid)
    K = oracles.kernel("rbf", rows, rows, gamma=0.02)
    for q in range(3):
        rest, out = np.flatnonzero(qid != q), np.flatnonzero(qid == q)
        D = differences(Y[rest], qid[rest])
        truth = Kernel(K[np.ix_(rest, rest)], Y[rest], D, 1.0, 2.0**-52, 2.0**-52)
        D = truth.scores(K[np.ix_(out, rest)])[:, 0].astype(float)
        assert_allclose(model.cv_predictions_[out], D, atol=1e-11)


@pytest.mark.parametrize("alpha", [1e-6, 1e-2])
@pytest.mark.parametrize("cv", ["leave-query-out", 3])
def test_points_that_hardly_differ(alpha, cv):
    """K_rr has a condition number of 1e10: the sums of raw kernel values would not tell its directions apart."""
    rows, gamma = X[:, :2], 0.00003
    points = rows[:6]
    k = lambda A: oracles.kernel("rbf", A, points, gamma=gamma)
    assert 1e9 < np.linalg.cond(k(points).astype(float)) < 1e12
    params = {"kernel": kernels.Gaussian(gamma), "basis": points, "tied_pairs": True, **RAW}
    D = differences(Y, QID)
    truth = oracles.Subset(k(rows), k(points), Y, D, alpha, 2.0**-52, 2.0**-52)
    scores = truth.scores(k(rows))[:, 0].astype(float)
    assert_allclose(RankRLS(alpha, **params).fit(rows, Y, qid=QID).predict(rows), scores, atol=1e-6 * np.ptp(scores))
    model = RankRLS(alphas=[alpha], cv=cv, **params).fit(rows, Y, qid=QID)
    assert_allclose(model.predict(rows), scores, atol=1e-6 * np.ptp(scores))
    if cv == "leave-query-out":
        rest = QID != 0
        part = oracles.Subset(k(rows[rest]), k(points), Y[rest], differences(Y[rest], QID[rest]), alpha, 1e-16, 1e-16)
        left = part.scores(k(rows[~rest]))[:, 0].astype(float)
        assert_allclose(model.cv_predictions_[~rest], left, atol=1e-5 * np.ptp(scores))


def test_forgetting_everything_and_what_outweighs_the_rest():
    half = QID < 5
    heavy = np.where(half, 1e13, 1.0)
    model = RankRLS(1e12, regression=0.5, **RAW).partial_fit(X, Y, qid=QID, sample_weight=heavy)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="would leave rounding errors"):
        model.forget(X[half], Y[half], qid=QID[half], sample_weight=heavy[half])
    assert_array_equal(model.coef_, before)
    model = RankRLS(1.0, **RAW).partial_fit(X[half], Y[half], qid=QID[half])
    with pytest.raises(ValueError, match="never learned"):
        model.forget(X[half][::-1] * 2, Y[half], qid=QID[half])
    model.forget(X[half], Y[half], qid=QID[half])
    assert not model.statistics_.gram.any() and not model.coef_.any()
    assert_allclose(
        model.partial_fit(X[~half], Y[~half], qid=QID[~half]).coef_,
        RankRLS(1.0, **RAW).fit(X[~half], Y[~half], qid=QID[~half]).coef_,
    )


def test_a_kernel_that_is_zero_everywhere():
    model = RankRLS(1.0, kernel="linear", basis=2, random_state=0, **RAW).fit(np.zeros_like(X), Y, qid=QID)
    assert_array_equal(model.predict(X), 0)


def test_kernel_values_that_differ_by_rounding_are_not_called_indefinite():
    rows = X[:8, :2] + 1e6
    kernel = kernels.Polynomial(3, 1e-12, 0.5)
    model = RankRLS(alphas=[1e-4], kernel=kernel, **RAW).fit(rows, Y[:8], qid=QID[:8] % 3)
    assert np.isfinite(model.cv_predictions_).all()
