"""Values and weights at the limits of floating point: right, or refused; each case was once silently wrong."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from attack import oracles
from attack.oracles import Kernel, Linear, differences
from cases import problem
from rankrls import ConditionalRankRLS, RankRLS, kernels
from rankrls.blocks.sums import fold_of
from rankrls.metrics import pairwise_accuracy

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
def test_held_out_scores_tie_if_nothing_remains_to_learn_from(kernel, regression):
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


def test_forgetting_everything_and_rows_that_outweigh_the_rest():
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


def refits(X, y, qid, u, alpha, **loss):
    """Held-out scores in extended precision: a fit without each query."""
    found = np.empty(len(y))
    for q in np.unique(qid):
        out, rest = qid == q, qid != q
        found[out] = expected(X[rest], y[rest], qid[rest], alpha, u=u[rest], new=X[out], **loss)
    return found


def test_held_out_scores_where_most_of_the_residual_is_of_equal_rows():
    """The first step of the solver hardly sees the direction on which the scores depend."""
    x = np.array([-1.4, 3.1, 3.1, 1.6, 5.1, 0.2, 0.4])[:, None]
    y, qid = np.array([-0.2, -0.1, 0.2, 0.1, 0.2, 0.0, 1.0]), np.array([1, 0, 0, 1, 0, 2, 2])
    u = np.array([5e11, 4.6e5, 8e3, 1.5e-9, 4.6e-3, 1.0, 1.0])
    model = RankRLS(alphas=[1.5e7], weighting="pairs", **RAW).fit(x, y, qid=qid, sample_weight=u)
    assert_allclose(model.cv_predictions_, refits(x, y, qid, u, 1.5e7, weighting="pairs"), rtol=1e-4)


@pytest.mark.parametrize("columns", [4, 18])
def test_held_out_queries_that_alone_determine_a_direction(columns):
    rng = np.random.default_rng(0)
    rows, y, qid = rng.normal(size=(11, columns)), rng.integers(0, 3, 11).astype(float), np.arange(11) % 2
    u = np.full(11, 7e150)
    alpha = 4e286  # next to nothing beside squares of 1e301
    model = RankRLS(alphas=[alpha], weighting="pairs", **RAW).fit(rows, y, qid=qid, sample_weight=u)
    assert np.isfinite(model.cv_predictions_).all()


def test_pairs_stay_when_a_query_that_outweighs_the_rest_is_held_out():
    rng = np.random.default_rng(0)
    rows, y, qid = rng.normal(size=(12, 3)), rng.normal(size=12), np.repeat([0, 1, 2], 4)
    u = np.where(qid == 0, 50.0, 1.0)
    pairs, margins = [[0, 5], [4, 9], [8, 2]], [1.0, 1.0, 1.0]
    model = RankRLS(alphas=[1.0], **RAW).fit(rows, y, qid=qid, sample_weight=u).add_pairs(rows, pairs, margins)
    model.partial_fit(rows[:4] + 1, y[:4], qid=qid[:4] + 9).forget(rows[:4] + 1, y[:4], qid=qid[:4] + 9)
    for q in range(3):
        rest = qid != q
        without = RankRLS(1.0, **RAW).fit(rows[rest], y[rest], qid=qid[rest], sample_weight=u[rest])
        scores = without.add_pairs(rows, pairs, margins).predict(rows[~rest])
        assert_allclose(np.diff(model.cv_predictions_[~rest]), np.diff(scores), rtol=1e-9)


def test_a_column_that_varies_in_a_row_of_little_weight_counts():
    rows = np.array([[1e6, 1e6], [1e6, 1e6 + 0.5], [1e6 - 2.5, 1e6], [1e6, 1e6], [1e6, 1e6], [1e6, 1e6], [1e6, 1e6]])
    y, qid = np.array([-1.3, -0.5, -0.8, 0.1, 0.0, 0.3, 0.2]), np.array([0, 0, 0, 1, 2, 3, 4])
    u = np.array([6.7e-5, 3.6e8, 1.3e-8, 1.5e9, 0.02, 0.03, 2e-11])
    model = RankRLS(1e12, tied_pairs=True).fit(rows, y, qid=qid, sample_weight=u)
    deviation = np.sqrt(np.sum((differences(y, qid, u=u, tied=True, weighting="items") @ rows) ** 2, axis=0) / u.sum())
    assert_allclose(model.scale_, deviation.astype(float), rtol=1e-9)


def test_columns_whose_squares_underflow_have_no_usable_spread():
    u = np.full(len(Y), 1e-164)
    with pytest.raises(ValueError, match=r"squares of feature 0 underflow .* Multiply"):
        RankRLS(1e-160, weighting="pairs").fit(X, Y, qid=QID, sample_weight=u)
    with pytest.raises(ValueError, match="squares of feature 1 underflow"):
        RankRLS(1.0).fit(iter([(X[:8] * [1, 1e-170, 1, 1, 1, 1], Y[:8], np.zeros(8))]))
    RankRLS(1.0).fit(X * [1, 0, 1, 1, 1, 1], Y, qid=QID)  # a column of zeros is just left out


@pytest.mark.parametrize("seed", range(5))
def test_rows_in_no_pair_can_be_forgotten_when_all_else_is_gone(seed):
    rng = np.random.default_rng(seed)
    parts = [(rng.normal(size=(k, 2)), rng.normal(size=k), np.full(k, i)) for i, k in enumerate((1, 3, 1, 2))]
    model = RankRLS(1.0, **RAW)
    for rows, y, qid in parts:
        model.partial_fit(rows, y, qid=qid)
    for i in (3, 1, 0):
        rows, y, qid = parts[i]
        model.forget(rows, y, qid=qid)
    assert_allclose(model.coef_, 0, atol=1e-12)


def test_edges_that_come_several_times_in_a_nearly_complete_relation():
    rng = np.random.default_rng(0)
    objects, others = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    edges = np.array([(i, j) for i in range(5) for j in range(4)] + 5 * [(1, 1)] + [(2, 3)])
    y = rng.normal(size=len(edges))
    params = {"alpha": 1e-3, "kernel": "rbf", "loss": "regression", "tol": 1e-12, "max_iter": 5000}
    plain = ConditionalRankRLS(**params, solver="cg").fit_edges(objects, edges, y, others).predict(objects, others)
    for solver in ("auto", "pcg"):
        found = ConditionalRankRLS(**params, solver=solver).fit_edges(objects, edges, y, others)
        assert_allclose(found.predict(objects, others), plain, rtol=1e-6, atol=1e-6)


def test_a_relation_under_a_nearly_constant_kernel():
    rng = np.random.default_rng(1)
    objects, others, R = rng.normal(size=(4, 3)), 1e-3 * rng.normal(size=(6, 3)), 1e6 * rng.normal(size=(4, 6))
    kernel, alpha = kernels.Gaussian(0.05), 5e-6
    model = ConditionalRankRLS(alpha, kernel=kernel).fit(objects, R, others)
    G, K = (oracles.kernel("rbf", A, A, gamma=0.05) for A in (objects, others))
    h, i = (grid.ravel() for grid in np.indices(R.shape))
    M = G[np.ix_(h, h)] * K[np.ix_(i, i)]
    truth = Kernel(M, R.ravel(), differences(R.ravel(), h), alpha, 1e-16, 1e-16).scores(M)[:, 0]
    assert_allclose(model.predict(objects, others).ravel(), truth.astype(float), atol=1e-7 * np.abs(truth).max())


@pytest.mark.parametrize("size", [(1e100, 1e-150), (1e150, 1e-20)])
def test_more_columns_than_rows_whose_dual_solutions_vanish(size):
    """Labels divided by alpha underflow, but times the rows they do not."""
    rng = np.random.default_rng(0)
    rows, y, qid = size[0] * rng.normal(size=(8, 30)), size[1] * rng.normal(size=8), np.arange(8) % 2
    alpha = float(np.mean(rows**2))
    truth = expected(rows, y, qid, alpha)
    model = RankRLS(alphas=[alpha], **RAW).fit(rows, y, qid=qid)
    assert_allclose(model.predict(rows), truth, rtol=1e-9)
    assert_allclose(
        model.cv_predictions_, refits(rows, y, qid, np.ones(8), alpha), rtol=1e-6, atol=1e-7 * abs(truth).max()
    )


@pytest.mark.parametrize("regression", [0.0, 1e-5, 1.0])
def test_the_spread_of_columns_where_one_row_has_nearly_all_the_weight(regression):
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(9, 3)), rng.integers(0, 3, 9).astype(float)
    u = 1e-160 * rng.uniform(1, 9, 9)
    u[3] = 1.0
    for qid in (np.zeros(9), np.arange(9) % 3):
        D = differences(y, qid, u=u, tied=True, weighting="items", beta=regression)
        deviation = np.sqrt(np.sum((D @ rows.astype(oracles.LD)) ** 2, axis=0) / u.sum()).astype(float)
        model = RankRLS(1.0, tied_pairs=True, regression=regression).fit(rows, y, qid=qid, sample_weight=u)
        assert_allclose(model.scale_, deviation, rtol=1e-9)


def test_kernel_models_where_one_tie_level_outweighs_the_other():
    rows = np.array([[-2.5, 60.0, -425.0], [-2.5, -99.5, -1018.0], [-2.5, 60.0, -425.0]])
    y, u, gamma = np.array([1.0, 1.0, 6.0]), np.array([4.6e9, 3.1e9, 1.0]), 1.2e-3
    model = RankRLS(0.075, kernel=kernels.Laplacian(gamma), weighting="queries", **RAW).fit(rows, y, sample_weight=u)
    D = differences(y, np.zeros(3), tied=False, weighting="queries", u=u)
    K = oracles.kernel("laplacian", rows, rows, gamma=gamma)
    truth = Kernel(K, y, D, 0.075, 1e-16, 1e-16).scores(K)[:, 0].astype(float)
    assert_allclose(model.predict(rows), truth, rtol=1e-13)


def test_a_kernel_of_nearly_equal_values_and_one_heavy_row():
    rng = np.random.default_rng(0)
    rows, y, qid = 1e6 + rng.normal(size=(9, 3)), 1000 + rng.normal(size=9), np.arange(9) % 3
    u = 1e-12 * rng.uniform(2, 7, 9)
    u[0] = 1.0
    parameters = {"degree": 1, "gamma": 4.8e-14, "coef0": 1.0}
    model = RankRLS(2.8e-18, kernel=kernels.Polynomial(**parameters), tied_pairs=True, **RAW)
    model.fit(rows, y, qid=qid, sample_weight=u)
    K = oracles.kernel("poly", rows, rows, **parameters)
    truth = Kernel(K, y, differences(y, qid, u=u), 2.8e-18, 1e-16, 1e-16).scores(K)[:, 0].astype(float)
    assert_allclose(model.predict(rows), truth, rtol=1e-5)


def test_sparse_rows_in_single_precision_too_small_to_square():
    rng = np.random.default_rng(0)
    rows = sparse.csr_array((1e-30 * rng.normal(size=(8, 20))).astype(np.float32))
    y, alpha = rng.normal(size=8), 1e-59
    truth = expected(rows.toarray().astype(float), y, np.zeros(8), alpha, tied=True)
    model = RankRLS(alpha, tied_pairs=True, **RAW).fit(rows, y)
    assert_allclose(model.predict(rows), truth, rtol=1e-4, atol=1e-4 * np.abs(truth).max())


def test_kernel_values_near_the_largest_and_the_smallest_number():
    rng = np.random.default_rng(0)
    rows, y, qid = rng.normal(size=(9, 24)), rng.normal(size=9), np.arange(9) % 3
    big = RankRLS(1e300, regression=1.0, **RAW).fit(1e152 * rows, y, qid=qid)
    assert_allclose(big.predict(1e152 * rows), expected(1e152 * rows, y, qid, 1e300, beta=1.0), rtol=1e-6, atol=1e-8)
    RankRLS(alphas=[1.0], weighting="pairs", **RAW).fit(rows, y, qid=qid, sample_weight=np.full(9, 5e-161))


def test_blocks_of_single_precision_with_weights_too_small_for_it(tmp_path):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    x, y, qid = rng.normal(size=16).astype(np.float32), rng.normal(size=16), np.arange(16) % 3
    u, alpha = 1e-160 * rng.uniform(1, 30, 16), 4e-157
    for part in (0, 1):
        some = np.arange(16) // 8 == part  # queries lie in both files
        frame = pl.DataFrame({"x": x[some], "y": y[some], "qid": qid[some], "w": u[some]})
        frame.write_parquet(tmp_path / f"{part}.parquet")
    params = {"weighting": "pairs", "regression": 0.3, **RAW}
    model = RankRLS(alpha, **params).fit(tmp_path, "y", "qid", "w")
    truth = expected(x[:, None].astype(float), y, qid, alpha, u=u, beta=0.3, weighting="pairs")
    assert_allclose(model.predict(pl.DataFrame({"x": x})), truth, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ratio", [1e7, 1e14, 1e18])
def test_folds_of_blocks_that_outweigh_the_rest(ratio):
    """Models of the other folds were those of all rows less the fold, and its rounding at 1e18."""
    rng = np.random.default_rng(0)
    rows, q = rng.normal(size=(300, 5)), np.repeat(np.arange(30), 10)
    labels, u = rows @ rng.normal(size=5) + rng.normal(size=300), np.where(q == 3, ratio, 1.0)
    whole = lambda: iter([(rows, labels, q, u)])
    model = RankRLS(alphas=[1.0], cv=3, **RAW).fit(whole)
    fold, accuracy = fold_of(q, 3), []
    for f in range(3):
        rest, out = fold != f, fold == f
        other = RankRLS(1.0, **RAW).fit(rows[rest], labels[rest], qid=q[rest], sample_weight=u[rest])
        accuracy += [pairwise_accuracy(labels[q == k], other.predict(rows[q == k])) for k in np.unique(q[out])]
    assert_allclose(model.cv_scores_, np.mean(accuracy), rtol=1e-12)
