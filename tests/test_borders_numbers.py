"""Finite numbers of any size give the right answer, or an error that names them."""

import tracemalloc
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from rankrls import (
    ConditionalRankRLS,
    CoRankRLS,
    RankingPursuit,
    RankRLS,
    TransductiveRankRLS,
    TwoStepRLS,
    kernels,
)
from rankrls.core.features import Identity
from rankrls.core.pairs import PairPreferences
from rankrls.problems.choice import pair_margins
from rankrls.problems.coregularised import Joint
from rankrls.problems.primal import Primal
from rankrls.problems.signed import SignedPrimal
from sixty import PARTLY, QID, VIEWS, X, Y

RNG = np.random.default_rng(1)
OVERFLOW = "overflow"


def one_cell(value):
    changed = X.copy()
    changed[7, 1] = value
    return changed


@pytest.mark.parametrize("value", [1e155, 1e160, 1e308])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "poly"])
@pytest.mark.parametrize(
    "model",
    [
        RankRLS(1.0),
        RankRLS(),
        RankRLS(1.0, basis=5, random_state=0),
        TransductiveRankRLS(1.0),
        CoRankRLS(1.0, 1.0, basis=5, random_state=0),
        RankingPursuit(3),
    ],
    ids=["alpha", "auto", "basis", "transductive", "views", "pursuit"],
)
def test_one_cell_too_large_to_square_is_refused_by_every_kernel(model, kernel, value):
    y = PARTLY if isinstance(model, CoRankRLS | TransductiveRankRLS) else Y
    with pytest.raises(ValueError, match=OVERFLOW):
        model.set_params(kernel=kernel).fit(one_cell(value), y, qid=QID)


@pytest.mark.parametrize("value", [1e155, 1e160, 1e308])
@pytest.mark.parametrize(
    "model", [RankRLS(1.0), RankRLS(), RankRLS(1.0, positive=True), RankingPursuit(2, kernel=None)]
)
def test_one_cell_too_large_to_square_is_refused_by_linear_models(model, value):
    with pytest.raises(ValueError, match=OVERFLOW):
        model.fit(one_cell(value), Y, qid=QID)


def test_a_refused_row_does_not_poison_the_sums():
    model = RankRLS(1.0).fit(X, Y, QID)
    with pytest.raises(ValueError, match=OVERFLOW):
        model.partial_fit(one_cell(1e160)[:10], Y[:10], QID[:10] + 100)
    more = model.partial_fit(X[:10], Y[:10], QID[:10] + 100)
    whole = RankRLS(1.0).fit(np.vstack([X, X[:10]]), np.append(Y, Y[:10]), np.append(QID, QID[:10] + 100))
    assert_allclose(more.coef_, whole.coef_, rtol=1e-10)


def test_a_row_further_away_than_numbers_go_is_near_nothing():
    model = RankRLS(1.0, kernel="rbf").fit(X, Y, QID)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(model.predict(np.full((1, 3), 1e308)), [0.0])
        assert_array_equal(model.scorer()(np.full((1, 3), 1e200)), [0.0])


@pytest.mark.parametrize("scale", [1e19, 1e30, 1e40])
@pytest.mark.parametrize("params", [{}, {"regression": 0.5}, {"kernel": "rbf"}])
def test_single_precision_with_labels_beyond_it(scale, params):
    small = RankRLS(1.0, **params).fit(X.astype(np.float32), Y, QID).predict(X.astype(np.float32))
    large = RankRLS(1.0, **params).fit(X.astype(np.float32), Y * scale, QID).predict(X.astype(np.float32))
    assert_allclose(large / scale, small, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-40, 1e30, 1e40])
@pytest.mark.parametrize(
    "model",
    [
        RankRLS(positive=True),
        CoRankRLS(views=VIEWS),
        CoRankRLS(1.0, 1.0, basis=9, random_state=0),
        RankingPursuit(2, kernel=None),
        RankingPursuit(kernel=None),
        RankingPursuit(3),
        TransductiveRankRLS(),
    ],
)
def test_every_model_of_single_precision_with_labels_beyond_it(model, scale):
    rows, y = X.astype(np.float32), PARTLY if isinstance(model, CoRankRLS | TransductiveRankRLS) else Y
    small = model.fit(rows, y, qid=QID).predict(rows)
    held = getattr(model, "cv_predictions_", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        large = model.fit(rows, y * scale, qid=QID).predict(rows)
    assert_allclose(large / scale, small, rtol=1e-4, atol=1e-4)
    if held is not None:
        assert_allclose(model.cv_predictions_ / scale, held, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-40, 1e30, 1e40])
@pytest.mark.parametrize("params", [{}, {"kernel": "rbf"}])
@pytest.mark.parametrize("model", [ConditionalRankRLS(), ConditionalRankRLS(intercept=True), TwoStepRLS()])
def test_relations_of_single_precision_with_labels_beyond_it(model, params, scale):
    first, second = X[:12].astype(np.float32), X[12:20].astype(np.float32)
    relation, model = X[:12] @ X[12:20].T, model.set_params(**params)
    small, held = model.fit(first, relation, second).predict(first, second), model.cv_predictions_
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model.fit(first, relation * scale, second)
        assert_allclose(model.predict(first, second) / scale, small, rtol=1e-4, atol=1e-4)
        assert_allclose(model.cv_predictions_ / scale, held, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("dtype", "size"), [(float, 1e-170), (float, 1e300), (np.float32, 1e-25), (np.float32, 1e25)])
def test_the_cosine_of_rows_too_large_or_too_small_to_square(make, dtype, size):
    rows, exact = X[:5] * np.array([1, size, 1, size, 0])[:, None], kernels.Cosine()(X[:5], X[:5])
    exact[4], exact[:, 4] = 0, 0
    found = kernels.Cosine()(make(rows.astype(dtype)), make(rows.astype(dtype)))
    assert_allclose(found, exact, atol=1e-6)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("params", [{}, {"kernel": "linear", "basis": 5, "random_state": 0}])
def test_pairs_of_rows_too_large_to_square_are_refused(params, exact):
    model = RankRLS(1.0, **params).fit(X, Y, QID)
    before = model.predict(X)
    with pytest.raises(ValueError, match="difference between rows 7 and 2, pair 1, overflow"):
        model.add_pairs(one_cell(1e160), [(0, 1), (7, 2)], exact=exact)
    with pytest.raises(ValueError, match=OVERFLOW):
        model.add_pairs(1e145 * X, [(0, 1)], weights=[1e20])
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("scale", ["auto", None])
@pytest.mark.parametrize("size", [1e6, 1e8, 1e12])
def test_rows_that_outweigh_the_rest_are_not_forgotten_badly(size, scale):
    large = size * X[:10]
    model = RankRLS(1.0, scale=scale)
    model.fit(np.vstack([X, large]), np.append(Y, Y[:10]), np.append(QID, QID[:10] + 100))
    before = model.predict(X)
    with pytest.raises(ValueError, match="would leave rounding errors: fit again without them"):
        model.forget(large, Y[:10], QID[:10] + 100)
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("size", [1e6, 1e8, 1e12])
def test_rows_far_from_zero_are_forgotten_exactly(size):
    far = X[:10] + size
    far = far[:, [0, 1, 2]]
    model = RankRLS(1.0).fit(np.vstack([X, far]), np.append(Y, Y[:10]), np.append(QID, QID[:10] + 100))
    model.forget(far, Y[:10], QID[:10] + 100)
    assert_allclose(model.coef_, RankRLS(1.0).fit(X, Y, QID).coef_, rtol=1e-8)


@pytest.mark.parametrize("size", [1e6, 1e12, 1e15])
@pytest.mark.parametrize(
    "params", [{}, {"tied_pairs": True}, {"regression": 0.5}, {"kernel": "rbf"}, {"kernel": "rbf", "basis": X[::6]}]
)
def test_a_query_of_huge_labels_is_held_out_exactly(size, params):
    y, out = Y.copy(), QID == 0
    y[out] *= size
    model = RankRLS(alphas=[1.0], scale=None, **params).fit(X, y, QID)
    if "kernel" in params:
        params = params | {"kernel": model.kernel_}
    refit = RankRLS(1.0, scale=None, **params).fit(X[~out], y[~out], QID[~out])
    expected = refit.predict(X[out])
    assert_allclose(model.cv_predictions_[out], expected, atol=1e-9 * np.abs(expected).max())
    half = QID % 2
    folds = [(np.flatnonzero(half != k), np.flatnonzero(half == k)) for k in range(2)]
    model = RankRLS(alphas=[1.0], scale=None, cv=folds, **params).fit(X, y, QID)
    odd = half == 1
    expected = RankRLS(1.0, scale=None, **params).fit(X[odd], y[odd], QID[odd]).predict(X[~odd])
    assert_allclose(model.cv_predictions_[~odd], expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("rows", [2, 3, 8])
@pytest.mark.parametrize("kernel", [None, kernels.Gaussian(2.0)])
@pytest.mark.parametrize("size", [-1e12, 1e6, 1e12])
def test_one_of_two_queries_far_from_zero_is_held_out_exactly(size, kernel, rows):
    A, out = X[: rows + 3], np.arange(rows + 3) < rows
    y, qid = Y[: rows + 3] + size * out, out.astype(int)
    params = {"kernel": kernel, "regression": 0.3, "scale": None}
    expected = RankRLS(0.1, **params).fit(A[~out], y[~out], qid[~out]).predict(A[out])
    found = RankRLS(alphas=[0.1], **params).fit(A, y, qid).cv_predictions_[out]
    assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_labels_of_the_rest_that_cancel_leave_no_opinion():
    # column 1 rises by .02 with the label in one query and falls by as much in the other
    rows = np.array(
        [[1.7, 0.61], [1.7, 0.59], [-2.4, -0.67], [-2.4, -0.68], [-1.4, -0.67], [0.6, -0.68], [-0.4, -0.42]]
    )
    rows = np.vstack([rows, [-0.4, -0.4]])
    y, qid = np.array([0.0, 1, 0, 0, 1, 0, 0, 1]), np.array([2, 2, 1, 1, 1, 1, 0, 0])
    model = RankRLS(alphas=[26.25], weighting="queries", tied_pairs=True, scale=None).fit(rows, y, qid)
    assert np.ptp(model.cv_predictions_[qid == 1]) == 0


def test_a_row_of_zeros_ties_at_zero_where_nothing_is_in_common():
    rows = np.array([[3.0, 0, 0], [-4, 0, 0], [0, 0, 0], [0, 1, 3], [0, -5, -4], [0, -1, 0], [1, 0, 0]])
    y, qid = np.array([0.0, 1, 0, 1, 0, 1, 1]), np.array([4, 2, 2, 3, 3, 1, 0])
    model = RankRLS(alphas=[1e-3], tied_pairs=True, scale=None).fit(rows, y, qid)
    assert_array_equal(model.cv_predictions_[qid == 2], 0)


@pytest.mark.parametrize("regression", [0.0, 0.5])
def test_transduction_over_any_folds_far_from_zero(regression):
    folds, y = QID % 3, np.where(QID % 2 == 0, Y, np.nan)
    near = TransductiveRankRLS(0.1, 1.0, folds=folds, regression=regression).fit(X, y, qid=QID)
    far = TransductiveRankRLS(0.1, 1.0, folds=folds, regression=regression).fit(X + 1e8, y, qid=QID)
    differences = lambda v: v - v.reshape(6, 10).mean(axis=1).repeat(10)  # the level of a query is not learned
    assert_allclose(differences(far.transduction_), differences(near.transduction_), atol=1e-4)


@pytest.mark.parametrize(("dtype", "offset", "bound"), [(np.float32, 300, 1e-4), (np.float64, 1e7, 1e-6)])
def test_the_gaussian_kernel_far_from_the_origin(dtype, offset, bound):
    far = (X + offset).astype(dtype)
    exact = kernels.Gaussian(0.5)
    D = far.astype(np.longdouble)[:, None] - far.astype(np.longdouble)[None]
    K = np.exp(-0.5 * np.sum(D**2, axis=2)).astype(float)
    assert_allclose(exact(far, far), K, atol=bound)


def test_relations_with_one_cell_too_large():
    A = RNG.normal(size=(8, 2))
    A[3, 1] = 1e160
    for kernel in (None, "rbf", "poly"):
        with pytest.raises(ValueError, match=OVERFLOW):
            ConditionalRankRLS(1.0, kernel=kernel).fit(A, RNG.normal(size=(8, 8)))


@pytest.mark.parametrize(("params", "qid"), [({"regression": 0.5}, np.repeat([0, 1], 6)), ({}, None)])
def test_dual_fits_with_an_intercept_of_small_features(params, qid):
    rows, y = RNG.normal(size=(12, 20)), RNG.normal(size=12)
    small = RankRLS(1e-16, scale=None, **params).fit(rows * 1e-8, y, qid).predict(rows * 1e-8)
    assert_allclose(small, RankRLS(1.0, scale=None, **params).fit(rows, y, qid).predict(rows), rtol=1e-9)


@pytest.mark.parametrize("weighting", ["items", "queries", "pairs"])
@pytest.mark.parametrize("regression", [0.0, 0.5])
def test_a_query_that_outweighs_the_rest_by_seven_orders_is_held_out_as_by_refits(weighting, regression):
    params = {"weighting": weighting, "regression": regression, "scale": None}
    u, out = np.where(QID == 0, 1e7, 1.0), QID == 0
    found = RankRLS(alphas=[0.1], **params).fit(X, Y, QID, u).cv_predictions_[out]
    expected = RankRLS(0.1, **params).fit(X[~out], Y[~out], QID[~out], u[~out]).predict(X[out])
    assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


HALVES = [(np.flatnonzero(QID > 2), np.flatnonzero(QID <= 2)), (np.flatnonzero(QID <= 2), np.flatnonzero(QID > 2))]


@pytest.mark.parametrize("ratio", [1e7, 1e14, 1e18])
@pytest.mark.parametrize("weighting", ["items", "pairs"])
@pytest.mark.parametrize("params", [{}, {"cv": HALVES}, {"regression": 0.5}], ids=["queries", "folds", "intercept"])
@pytest.mark.parametrize("positive", [False, True])
def test_a_query_that_outweighs_the_rest_without_limit_is_held_out_as_by_refits(positive, params, weighting, ratio):
    u, out = np.where(QID == 0, ratio**0.5, ratio**-0.5), QID == 0 if "cv" not in params else QID <= 2
    params = params | {"weighting": weighting, "positive": positive, "scale": None}
    alpha = 1e-3 * ratio ** (-0.5 if weighting == "items" else -1)
    found = RankRLS(alphas=[alpha], **params).fit(X, Y, QID, u).cv_predictions_[out]
    params.pop("cv", None)
    expected = RankRLS(alpha, **params).fit(X[~out], Y[~out], QID[~out], u[~out]).predict(X[out])
    assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("params", [{}, {"kernel": "linear"}, {"positive": True}])
def test_labels_that_vanish_beside_those_of_a_query_count_where_it_is_held_out(params):
    y, params = np.where(QID == 1, 1e6, 1e-200 * (1 + 1e-9 * Y)), params | {"regression": 0.3, "scale": None}
    found = RankRLS(alphas=[1.0], **params).fit(X, y, QID).cv_predictions_[QID == 1]
    assert_allclose(found, 1e-200, rtol=1e-6)


@pytest.mark.parametrize("ratio", [1e7, 1e14, 1e18])
@pytest.mark.parametrize("params", [{}, {"cv": 2}, {"regression": 0.5}], ids=["queries", "folds", "intercept"])
def test_a_query_that_outweighs_the_rest_is_held_out_of_views(params, ratio):
    u, out, alpha = np.where(QID == 0, ratio**0.5, ratio**-0.5), QID == 0, 1e-3 * ratio**-0.5
    found = CoRankRLS(alphas=[alpha], nus=[0.3], views=VIEWS, **params).fit(X, PARTLY, QID, u).cv_predictions_
    params = params.copy()
    if params.pop("cv", None):  # the rows that were held out with the heavy query are those of every other one
        out = (QID == 0) | (QID == 2)
    expected = CoRankRLS(alpha, 0.3, views=VIEWS, **params).fit(X[~out], PARTLY[~out], QID[~out], u[~out]).predict(X)
    assert_allclose(found[QID == 0], expected[QID == 0], rtol=1e-6, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("kind", [Primal, SignedPrimal])
@pytest.mark.parametrize("ratio", [1e7, 1e14, 1e18])
def test_a_pair_that_outweighs_the_rest_is_held_out_as_by_refits(ratio, kind):
    pairs, margins = np.array([RNG.permutation(60)[:2] for _ in range(40)]), RNG.normal(size=(40, 1))
    signs = {"signs": np.ones(3)} if kind is SignedPrimal else {}
    made = lambda p, w: kind(PairPreferences(pairs[p], 60, w[p]), Identity(3), X, margins[p], np.float64, **signs)
    w = np.ones(40)
    w[4] = ratio
    rest, (i, j) = np.flatnonzero(np.arange(40) != 4), pairs[4]
    found = made(np.arange(40), w).leave_pairs_out(np.array([1e-2]))[4, 0, 0]
    assert_allclose(found, ((X[i] - X[j]) @ made(rest, w).model(1e-2).coef)[0], rtol=1e-9)
    apart = np.arange(60).reshape(30, 2)  # pairs that share no item are left out as components
    own, choice = replace(made(np.arange(30), w), F=PairPreferences(apart, 60, w[:30])), np.array([1e-2])
    rest = np.delete(np.arange(30), 4)
    model = replace(own, F=PairPreferences(apart[rest], 60, w[rest]), y=own.y[rest]).model(1e-2)
    assert_allclose(pair_margins(own, choice)[4, 0], ((X[8] - X[9]) @ model.coef)[0], rtol=1e-9)


def test_signed_weights_of_columns_that_hardly_vary_are_held_out():
    rows, qid = np.full((12, 1), -2.0), np.arange(12) % 2
    model = RankRLS(alphas=[1e-42], positive=True, regression=3e-4, scale=None)
    u = 10.0 ** RNG.uniform(-2, 1.6, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model.fit(rows, RNG.integers(0, 3, 12), qid, u)
    assert np.ptp(model.cv_predictions_[qid == 0]) == 0


@pytest.mark.parametrize("factor", [1e-3, 7.0])
@pytest.mark.parametrize(("weighting", "power"), [("items", 1), ("queries", 0), ("pairs", 2)])
def test_a_common_factor_of_weights_divides_alpha(weighting, power, factor):
    u = RNG.uniform(0.5, 2.0, 60)
    for scale, exponent in (("auto", 1), (None, power)):
        model = RankRLS(30.0, weighting=weighting, scale=scale).fit(X, Y, QID, u * factor)
        same = RankRLS(30.0 / factor**exponent, weighting=weighting, scale=scale).fit(X, Y, QID, u)
        assert_allclose(model.coef_, same.coef_, rtol=1e-8)
        chosen, again = (RankRLS(weighting=weighting, scale=scale).fit(X, Y, QID, w) for w in (u, u * factor))
        assert_allclose(again.coef_, chosen.coef_, rtol=1e-8)


def test_weights_of_queries_count_relative_to_each_other():
    model = RankRLS(1.0, weighting="queries", scale=None)
    tiny = model.fit(X, Y, QID, np.full(60, 1e-160)).coef_
    assert_allclose(tiny, model.fit(X, Y, QID, np.full(60, 1e9)).coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="the rows of query 0 sum to 0.1, less than one pair"):
        model.set_params(tied_pairs=True).fit(X, Y, QID, np.full(60, 0.01))


def test_a_basis_of_all_of_many_rows_is_refused_before_it_is_allocated(limit):
    limit(free_memory=2e9)
    rows = np.linspace(0.0, 1.0, 200_000).reshape(-1, 2)
    tracemalloc.start()
    with pytest.raises(MemoryError, match="a basis of 100.?000 points needs"):
        RankRLS(1.0, kernel=kernels.Gaussian(1.0), basis=100_000).fit(rows, rows[:, 0], np.arange(100_000) // 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8


def test_scores_between_more_objects_than_memory_holds_are_refused(limit):
    objects = RNG.normal(size=(30, 3))
    model = ConditionalRankRLS(1.0).fit(objects, objects @ objects.T)
    many = np.zeros((100_000, 3))
    limit(free_memory=1e9)
    with pytest.raises(MemoryError, match="scores between 100.?000 and 100.?000 objects"):
        model.predict(many, many)
    tracemalloc.start()
    assert len(model.rank(objects[0], many, top=5).ids) == 5
    assert model.recommend(many[:1000], many, top=2) is not None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e9


@pytest.mark.parametrize("params", [{"kernel": None}, {"kernel": "rbf"}, {"kernel": None, "backfit": False}])
def test_pursuit_refuses_labels_whose_squares_overflow(params):
    """The loss was infinite, so that no column seemed to lower it, and nothing was learned."""
    X, y, qid = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) * 1e154, np.repeat([0, 1, 2], 4)
    with pytest.raises(ValueError, match="squares of y overflow"):
        RankingPursuit(2, **params).fit(X, y, qid)


def test_the_disagreement_of_views_does_not_depend_on_the_scale_of_their_weights():
    S, stack = np.array([[2.0, 1.0], [1.0, 3.0]]), SimpleNamespace(diagonal=lambda S: np.diag(np.diag(S)))
    joint, a = SimpleNamespace(S=S, stack=stack, n_views=2), np.array([[1.0], [2.0]])
    expected = 1 - (a.T @ S @ a).item() / (2 * (2 + 12))
    for unit in (1.0, 1e-170, 1e170):
        assert_allclose(Joint.disagreement(joint, a * unit), expected, rtol=1e-12)
