"""RankingPursuit: every step against brute force, its limits, views that agree, the path, and bad input."""

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score

import oracles
from cases import problem, weights
from papers import RankRLS
from rankrls import RankingPursuit, View, metrics
from rankrls.bases import KMeansCentres
from rankrls.kernels import Gaussian

GAMMA = 0.05
RBF = Gaussian(GAMMA)


def noisy(m=40, seed=0, **params):
    """A problem without two equal rows, so that every choice has one answer."""
    X, y, qid = problem(m=m, seed=seed, **params)
    return X + 0.3 * np.random.default_rng(seed + 50).normal(size=X.shape), y, qid


def partly_scored(m=60, seed=0, share=0.5):
    X, y, qid = noisy(m=m, n_queries=9, levels=5, seed=seed)
    unscored = (np.random.default_rng(seed + 100).random(m) < share) & (qid != 1) | (qid == 2)
    return X, np.where(unscored, np.nan, y), qid


def same_path(model, steps, D=None, atol=1e-7):
    """The path of a model against that of an oracle: atoms, losses and scores of every size."""
    assert_array_equal(model.path_.indices, [step[0] for step in steps])
    assert_allclose(model.path_.errors, [step[1] for step in steps], rtol=1e-8, atol=1e-9)
    k = len(steps)
    for p, (_, _, coef, b) in enumerate(steps):
        ours = np.bincount(model.path_.indices[: p + 1], model.path_.coefs[p, : p + 1], minlength=len(coef))
        assert_allclose(ours, coef, atol=atol * max(1, np.abs(coef).max()))
        assert_allclose(model.path_.intercepts[p], b, atol=atol * max(1, np.abs(coef).max()))
        assert_array_equal(model.path_.coefs[p, p + 1 :], np.zeros(k - p - 1))


# ---------------------------------------------------------------- every step is the best one

LOSSES = [
    {},
    {"weighting": "pairs"},
    {"weighting": "queries", "tied_pairs": True},
    {"regression": 0.3},
    {"regression": 0.5, "tied_pairs": True, "weighting": "pairs"},
    {"regression": 1.0},
]


def laplacian_of(y, qid, params, u=None):
    tied, weighting = params.get("tied_pairs", False), params.get("weighting", "items")
    return oracles.laplacian(y, qid, tied=tied, weighting=weighting, beta=params.get("regression", 0.0), u=u)


@pytest.mark.parametrize("backfit", [True, False])
@pytest.mark.parametrize("params", LOSSES, ids=str)
def test_each_step_is_the_best_of_all_candidates(params, backfit):
    X, y, qid = noisy()
    Lt, intercept = laplacian_of(y, qid, params), params.get("regression", 0) > 0
    for kernel, D in ((None, X), (RBF, oracles.gaussian(X, X, GAMMA))):
        n = 5 if kernel is None else 8
        model = RankingPursuit(n, kernel=kernel, backfit=backfit, **params).fit(X, y, qid=qid)
        same_path(model, oracles.pursuit(D, y, Lt, n, backfit=backfit, intercept=intercept))


@pytest.mark.parametrize("params", [{}, {"regression": 0.4}, {"tied_pairs": True, "weighting": "pairs"}], ids=str)
def test_a_weight_is_copies_of_a_row(params):
    X, y, qid = noisy()
    u = weights(40)
    Lt = laplacian_of(y, qid, params, u)
    model = RankingPursuit(6, kernel=RBF, **params).fit(X, y, qid=qid, sample_weight=u)
    D = oracles.gaussian(X, X, GAMMA)
    same_path(model, oracles.pursuit(D, y, Lt, 6, intercept="regression" in params))
    n = u.astype(int)
    copies = RankingPursuit(6, kernel=RBF, **params).fit(X.repeat(n, axis=0), y.repeat(n), qid=qid.repeat(n))
    assert_allclose(copies.predict_path(X), model.predict_path(X), atol=1e-7)
    assert copies.path_.n_skipped >= np.sum(n[model.basis_indices_] - 1)


def test_more_atoms_than_rows_and_fewer():
    X, y, qid = noisy()
    points = np.random.default_rng(0).normal(size=(90, 6))
    model = RankingPursuit(7, kernel=RBF, basis=points).fit(X, y, qid=qid)
    Lt = laplacian_of(y, qid, {})
    same_path(model, oracles.pursuit(oracles.gaussian(X, points, GAMMA), y, Lt, 7))
    assert_allclose(model.basis_, points[model.basis_indices_])
    few = RankingPursuit(4, kernel=RBF, basis=[3, 17, -1, 8, 20]).fit(X, y, qid=qid)
    steps = oracles.pursuit(oracles.gaussian(X, X[[3, 17, 39, 8, 20]], GAMMA), y, Lt, 4)
    assert_array_equal(few.basis_indices_, np.array([3, 17, 39, 8, 20])[[step[0] for step in steps]])


def test_regression_alone_is_kernel_matching_pursuit():
    X, y, _ = noisy()
    y = y + 3 * X[:, 0]
    terms = oracles.kernel_matching_pursuit(oracles.gaussian(X, X, GAMMA), y, 12)
    model = RankingPursuit(12, kernel=RBF, regression=1.0, backfit=False).fit(X, y)
    assert_array_equal(model.path_.indices, [g for g, _, _ in terms])
    assert_allclose(np.diag(model.path_.coefs), [a for _, a, _ in terms])
    assert_allclose(model.path_.errors, [loss for _, _, loss in terms])
    K, mean = oracles.gaussian(X, X, GAMMA), y.mean()
    f = sum(a * (K[:, g] - K[:, g].mean()) for g, a, _ in terms) + mean  # calibrated: the mean of y is in it
    assert_allclose(model.predict(X), f)


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("params", [{}, {"regression": 0.3}], ids=str)
def test_all_atoms_with_back_fitting_are_least_squares(params):
    X, y, qid = noisy()
    model = RankingPursuit(6, kernel=None, **params).fit(X, y, qid=qid)
    Lt = laplacian_of(y, qid, params)
    w, b = oracles.ridge(X, y, Lt, 0.0, intercept="regression" in params)
    assert_allclose(model.coef_, w, atol=1e-9)
    assert_allclose(model.intercept_, b, atol=1e-9)
    assert_allclose(RankRLS(1e-10, **params).fit(X, y, qid=qid).coef_, model.coef_, atol=1e-7)


def test_more_columns_than_rows_leave_no_error():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(30, 2000)), np.repeat(np.arange(3), 10)
    y = rng.normal(size=30)
    with pytest.warns(UserWarning, match="stopped after 2. of 30"):
        model = RankingPursuit(30, kernel=None).fit(X, y, qid=qid)
    assert len(model.path_) <= 27  # a constant of each query is free
    assert model.path_.errors[-1] < 1e-16 * model.path_.start
    assert_allclose(np.diff(model.predict(X)[qid == 0]), np.diff(y[qid == 0]), atol=1e-7)


def test_the_path_is_nested_and_every_size_is_free():
    X, y, qid = noisy()
    big = RankingPursuit(12, kernel=RBF).fit(X, y, qid=qid)
    assert np.all(np.diff(big.path_.errors) < 0) and big.path_.errors[0] < big.path_.start
    for n in (1, 5, 12):
        small = RankingPursuit(n, kernel=RBF).fit(X, y, qid=qid)
        assert_array_equal(small.path_.indices, big.path_.indices[:n])
        assert_allclose(small.predict(X), big.predict_path(X)[:, n - 1], atol=1e-9)
        cut = big.resized(n)
        assert_allclose(cut.predict(X), small.predict(X), atol=1e-9)
        assert_allclose(cut.dual_coef_, small.dual_coef_, atol=1e-8)
        assert_allclose(cut.basis_, X[small.basis_indices_])
    assert big.n_basis_ == 12
    with pytest.raises(ValueError, match="1 to 12, got 13"):
        big.resized(13)


def test_long_queries_and_threads_change_nothing():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(6000, 300)), np.repeat([0, 1, 2], [4500, 500, 1000])
    y = X[:, :5].sum(axis=1).round() + rng.normal(size=6000).round()
    model = RankingPursuit(5, kernel=None).fit(X, y, qid=qid)
    assert sorted(model.basis_indices_.tolist()) == [0, 1, 2, 3, 4]
    small = RankRLS(1e-9).fit(X[:, :5], y, qid=qid)
    assert_allclose(model.coef_[:5], small.coef_, atol=1e-8)


def test_a_repeated_atom_is_one_point():
    X, y, qid = noisy()
    model = RankingPursuit(30, kernel=RBF, backfit=False).fit(X, y, qid=qid)
    assert len(model.path_) == 30 > len(model.basis_indices_) == len(set(model.path_.indices.tolist()))
    assert_allclose(model.predict(X), model.predict_path(X)[:, -1], atol=1e-10)
    assert_allclose(RBF(X, model.basis_) @ model.dual_coef_, model.predict(X), atol=1e-10)


# ---------------------------------------------------------------- other forms of the same dictionary


def test_a_dictionary_in_parts_is_the_same_dictionary(limit):
    X, y, qid = noisy()
    params = [{"kernel": RBF}, {"kernel": None}, {"kernel": RBF, "regression": 0.5}, {"kernel": RBF, "backfit": False}]
    whole = [RankingPursuit(5, **p).fit(X, y, qid=qid) for p in params]
    limit(atom_bytes=8 * 40 * 3)
    for free in (0, 8 * 40 * 16):  # nothing is kept; some parts are
        limit(free_memory=free)
        for one, p in zip(whole, params, strict=True):
            parts = RankingPursuit(5, **p).fit(X, y, qid=qid)
            assert_array_equal(parts.path_.indices, one.path_.indices)
            assert_allclose(parts.path_.coefs, one.path_.coefs, atol=1e-8)
            auto = RankingPursuit(max_basis=5, **p).fit(X, y, qid=qid)
            assert np.isfinite(auto.path_.scores).all()


@pytest.mark.parametrize("params", LOSSES, ids=str)
def test_sparse_columns_are_the_dense_ones(params):
    rng = np.random.default_rng(0)
    X, y, qid = noisy()
    X = np.where(rng.random((40, 30)) < 0.3, rng.normal(size=(40, 30)), 0)
    X[:, 7] = 0
    u = weights(40)
    for arguments in ({}, {"sample_weight": u}):
        dense = RankingPursuit(8, kernel=None, **params).fit(X, y, qid=qid, **arguments)
        rows = RankingPursuit(8, kernel=None, **params).fit(sparse.csr_array(X), y, qid=qid, **arguments)
        assert_array_equal(rows.path_.indices, dense.path_.indices)
        assert_allclose(rows.path_.coefs, dense.path_.coefs, atol=1e-8)
        assert_allclose(rows.predict(sparse.csr_array(X)), dense.predict(X), atol=1e-8)
        assert rows.path_.n_zero == dense.path_.n_zero == 1
    few = RankingPursuit(kernel=None, max_basis=10, **params)
    assert_allclose(clone(few).fit(sparse.csr_array(X), y, qid=qid).path_.scores, few.fit(X, y, qid=qid).path_.scores)
    kernel = RankingPursuit(5, kernel=RBF, **params).fit(sparse.csr_array(X), y, qid=qid)
    full = RankingPursuit(5, kernel=RBF, **params).fit(X, y, qid=qid)
    assert_allclose(kernel.predict(sparse.csr_array(X)), full.predict(X), atol=1e-8)


def test_precomputed_kernels():
    X, y, qid = noisy()
    K = RBF(X, X)
    ours = RankingPursuit(6, kernel="precomputed").fit(K, y, qid=qid)
    full = RankingPursuit(6, kernel=RBF).fit(X, y, qid=qid)
    assert_array_equal(ours.basis_indices_, full.basis_indices_)
    assert_allclose(ours.predict(RBF(X[:5], X)), full.predict(X[:5]), atol=1e-9)
    assert_allclose(ours.predict_path(K), full.predict_path(X), atol=1e-9)
    y[::4] = np.nan
    rows = np.arange(1, 40, 3)
    ours = RankingPursuit(kernel="precomputed", basis=rows, max_basis=6).fit(K, y, qid=qid)
    full = RankingPursuit(kernel=RBF, basis=rows, max_basis=6).fit(X, y, qid=qid)
    assert_allclose(ours.path_.scores, full.path_.scores)
    assert_allclose(ours.predict(K), full.predict(X), atol=1e-8)
    with pytest.raises(ValueError, match="None or row numbers"):
        RankingPursuit(kernel="precomputed", basis=3).fit(K, y, qid=qid)


def test_points_may_be_given_by_number_or_method():
    X, y, qid = noisy()
    drawn = RankingPursuit(5, kernel=RBF, basis=10, random_state=0).fit(X, y, qid=qid)
    assert (
        np.all(np.min(((drawn.basis_[:, None] - X) ** 2).sum(axis=2), axis=1) == 0) and drawn.basis_indices_.max() < 10
    )
    centres = RankingPursuit(3, kernel="rbf", basis=KMeansCentres(5), random_state=0).fit(X, y, qid=qid)
    assert centres.basis_.shape == (3, 6)


# ---------------------------------------------------------------- the size by hold-out


def refits(X, y, qid, folds, n, **params):
    """Scores of every size by fits that never see the fold."""
    scores = np.zeros((len(y), n))
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(y)), fold)
        model = RankingPursuit(n, **params).fit(X[rest], y[rest], qid=qid[rest])
        scores[fold] = model.predict_path(X[fold])
    return scores


@pytest.mark.parametrize(
    "params", [{"kernel": RBF}, {"kernel": None, "regression": 0.4}, {"kernel": RBF, "backfit": False}]
)
def test_sizes_are_judged_on_held_out_queries(params):
    X, y, qid = noisy(m=80)
    n = 5
    folds = [test for _, test in GroupKFold(3).split(X, groups=qid)]
    expected = refits(X, y, qid, folds, n, **params)
    for cv in (GroupKFold(3), [(None, fold) for fold in folds]):
        model = RankingPursuit(max_basis=n, cv=cv, **params).fit(X, y, qid=qid)
        scores = [oracles.pairwise_accuracy(y, s, qid) for s in expected.T]
        assert_allclose(model.path_.scores, scores)
        assert model.n_basis_ == 1 + np.argmax(scores)
        assert_allclose(model.cv_predictions_, expected[:, model.n_basis_ - 1], atol=1e-7)
        assert_allclose(
            model.predict(X), RankingPursuit(model.n_basis_, **params).fit(X, y, qid=qid).predict(X), atol=1e-8
        )
    each = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    alone = RankingPursuit(max_basis=n, cv="leave-query-out", **params).fit(X, y, qid=qid)
    assert_allclose(alone.cv_predictions_, refits(X, y, qid, each, n, **params)[:, alone.n_basis_ - 1], atol=1e-7)
    wrong = RankingPursuit(max_basis=n, cv=GroupKFold(3), scoring="disagreement_error", **params).fit(X, y, qid=qid)
    assert_allclose(wrong.path_.scores, 1 - np.array(scores))
    assert wrong.n_basis_ == model.n_basis_


def test_one_query_is_held_out_item_by_item():
    X, y, _ = noisy()
    y = y + X[:, 0]
    order = np.argsort(y, kind="stable")
    folds = [np.sort(order[i::4]) for i in range(4)]
    model = RankingPursuit(kernel=RBF, max_basis=5, cv=4).fit(X, y)
    expected = refits(X, y, np.zeros(40), folds, 5, kernel=RBF)
    groups = np.zeros(40)
    for number, fold in enumerate(folds):
        groups[fold] = number
    assert_allclose(model.path_.scores, [oracles.pairwise_accuracy(y, s, groups) for s in expected.T])
    assert len(RankingPursuit(kernel=RBF).fit(X[:5], y[:5]).path_) <= 4
    with pytest.raises(ValueError, match="cannot be made from 1 pairs"):
        RankingPursuit(kernel=RBF).fit(X[:3], y[:3])


def test_the_width_is_chosen_with_the_size():
    X, y, qid = noisy(m=80)
    auto = RankingPursuit(kernel=Gaussian("auto"), max_basis=6).fit(X, y, qid=qid)
    each = [RankingPursuit(kernel=k, max_basis=6).fit(X, y, qid=qid) for k in Gaussian("auto").candidates(X)]
    best = max(each, key=lambda model: model.path_.scores.max())
    assert auto.kernel_ == best.kernel_ and auto.n_basis_ == best.n_basis_
    fixed = RankingPursuit(4, kernel=Gaussian("auto")).fit(X, y, qid=qid)
    assert fixed.n_basis_ == 4 and fixed.path_.scores is None
    at_four = [model.path_.scores[3] for model in each]
    assert fixed.kernel_ == each[int(np.argmax(at_four))].kernel_


def test_uninformative_queries_change_nothing():
    X, y, qid = noisy()
    rng = np.random.default_rng(1)
    extra, lone, tied = rng.normal(size=(5, 6)), [90], [91] * 4
    more = np.vstack([X, extra]), np.concatenate([y, [9.0], [2.0] * 4]), np.concatenate([qid, lone, tied])
    for kernel, basis in ((None, None), (RBF, X)):
        model = RankingPursuit(5, kernel=kernel, basis=basis).fit(X, y, qid=qid)
        other = RankingPursuit(5, kernel=kernel, basis=basis).fit(more[0], more[1], qid=more[2])
        assert_allclose(other.predict(X), model.predict(X), atol=1e-9)


# ---------------------------------------------------------------- atoms that are no use


def test_duplicate_zero_and_constant_atoms_are_skipped_and_counted():
    X, y, qid = noisy()
    wide = np.column_stack([X, X[:, 0], -3 * X[:, 2] + 5, np.zeros(40), np.full(40, 7.0), qid * 1e6])
    for backfit in (True, False):
        model = RankingPursuit(5, kernel=None, backfit=backfit).fit(wide, y, qid=qid)
        plain = RankingPursuit(5, kernel=None, backfit=backfit).fit(X, y, qid=qid)
        assert_array_equal(model.path_.indices, plain.path_.indices)
        assert_allclose(model.path_.coefs, plain.path_.coefs, atol=1e-9)
        assert model.path_.n_zero == 3
        assert model.path_.n_skipped == np.isin([0, 2], model.basis_indices_).sum()
    with pytest.warns(UserWarning, match="stopped after 6 of 11 basis functions: every remaining atom is"):
        full = RankingPursuit(11, kernel=None).fit(wide, y, qid=qid)
    assert full.n_basis_ == 6 and full.path_.n_skipped == 2


def test_a_path_without_further_gain_ends_early_with_a_warning():
    X, _, qid = noisy()
    y = 2 * X[:, 1] - X[:, 4]
    with pytest.warns(UserWarning, match="stopped after . of 6 basis functions: no remaining atom would"):
        model = RankingPursuit(6, kernel=None).fit(X, y, qid=qid)
    assert 2 <= len(model.path_) < 6 and "lower the loss" in model.path_.stopped
    assert_allclose(model.coef_, [0, 2, 0, 0, -1, 0], atol=1e-9)
    assert RankingPursuit(kernel=None).fit(X, y, qid=qid).path_.stopped  # "auto" needs no warning
    with pytest.warns(UserWarning, match="stopped after 0 of 1"):
        none = RankingPursuit(kernel=None).fit(np.ones((40, 1)), y, qid=qid)
    assert none.n_basis_ == 0
    assert_array_equal(none.predict(np.ones((40, 1))), np.zeros(40))
    with pytest.warns(UserWarning, match="stopped after 0"):
        mean = RankingPursuit(2, kernel=RBF, regression=1.0).fit(X, np.full(40, 2.5))
    assert_allclose(mean.predict(X), 2.5)
    assert mean.alternatives() == []


def test_a_kernel_that_is_nearly_constant_keeps_its_digits():
    X, y, qid = noisy()
    for params in ({}, {"regression": 0.5}):
        flat = RankingPursuit(4, kernel=Gaussian(1e-9), **params).fit(X, y, qid=qid)
        assert flat.path_.n_zero == 0
        assert_allclose(flat.path_.errors[-1] < flat.path_.errors[0], True)


# ---------------------------------------------------------------- several views


def laplacians(y, qid, *, weighting="items"):
    scored = ~np.isnan(y)
    L = oracles.laplacian(y[scored], qid[scored], tied=False, weighting=weighting)
    return scored, L, oracles.laplacian(y[~scored], qid[~scored], tied=True, weighting=weighting)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("backfit", [True, False])
@pytest.mark.parametrize("nu", [0.0, 0.05, 3.0])
def test_views_take_the_best_of_all_combinations(nu, backfit, shared):
    X, y, qid = partly_scored(m=40)
    scored, L, U = laplacians(y, qid)
    rows = np.arange(0, 40, 4)
    views = [View([0, 1, 2], RBF, rows), View([3, 4, 5], Gaussian(0.1), rows)]
    D = [oracles.gaussian(X[:, :3], X[rows, :3], GAMMA), oracles.gaussian(X[:, 3:], X[rows, 3:], 0.1)]
    n = 3
    params = {"nu": nu, "backfit": backfit, "shared_basis": shared}
    model = RankingPursuit(n, views=views, **params).fit(X, y, qid=qid)
    halves = [d[scored] for d in D], [d[~scored] for d in D]
    steps = oracles.joint_pursuit(halves[0], y[scored], L, halves[1], U, nu, n, backfit=backfit, shared=shared)
    assert_array_equal(model.path_.indices, [step[0] for step in steps])
    for p, (_, coefs) in enumerate(steps):
        f = np.column_stack([d @ a for d, a in zip(D, coefs, strict=True)])
        assert_allclose(model.resized(p + 1).predict_views(X), f, atol=1e-6)
        assert_allclose(model.predict_path(X)[:, p], f.mean(axis=1), atol=1e-6)
        r = y[scored] - f.mean(axis=1)[scored]
        assert_allclose(model.path_.errors[p], r @ L @ r, rtol=1e-6)
    assert_allclose(model.predict(X), model.predict_views(X).mean(axis=1))


def test_three_views_of_one_index():
    X, y, qid = partly_scored(m=40)
    scored, L, U = laplacians(y, qid)
    D = [X[:, :2], X[:, 2:4], X[:, 4:]]
    for backfit in (True, False):
        params = {"views": [View([0, 1]), View([2, 3]), View([4, 5])], "shared_basis": True, "backfit": backfit}
        model = RankingPursuit(2, nu=0.2, **params).fit(X, y, qid=qid)
        halves = [d[scored] for d in D], [d[~scored] for d in D]
        steps = oracles.joint_pursuit(halves[0], y[scored], L, halves[1], U, 0.2, 2, backfit=backfit, shared=True)
        assert_array_equal(model.path_.indices, [step[0] for step in steps])
        f = np.column_stack([d @ a for d, a in zip(D, steps[-1][1], strict=True)])
        assert_allclose(model.predict_views(X), f, atol=1e-8)


def test_without_agreement_two_views_are_two_pursuits():
    X, y, qid = partly_scored()
    scored, rows = ~np.isnan(y), np.arange(0, 60, 3)
    views = [View([0, 1, 2], RBF, rows), View(None, Gaussian(0.1), X[5:30])]
    model = RankingPursuit(5, views=views, nu=0.0).fit(X, y, qid=qid)
    one = RankingPursuit(5, kernel=RBF, basis=X[rows][:, :3]).fit(X[scored][:, :3], y[scored], qid=qid[scored])
    two = RankingPursuit(5, kernel=Gaussian(0.1), basis=X[5:30]).fit(X[scored], y[scored], qid=qid[scored])
    assert_array_equal(model.path_.indices, np.column_stack([one.path_.indices, two.path_.indices]))
    assert_allclose(model.predict_views(X), np.column_stack([one.predict(X[:, :3]), two.predict(X)]), atol=1e-6)
    assert [len(points.points) for points in model.views_] == [5, 5]
    # the paper's update shares the residual: with the same view twice it is one pursuit
    twice = RankingPursuit(5, views=[views[1], views[1]], backfit=False).fit(X, y, qid=qid)
    plain = RankingPursuit(5, kernel=Gaussian(0.1), basis=X[5:30], backfit=False).fit(
        X[scored], y[scored], qid=qid[scored]
    )
    assert_allclose(twice.predict_path(X), plain.predict_path(X), atol=1e-8)


def test_one_view_is_the_supervised_pursuit_whatever_nu():
    X, y, qid = partly_scored()
    scored = ~np.isnan(y)
    for params in ({}, {"regression": 0.5}):
        alone = RankingPursuit(max_basis=5, kernel=RBF, basis=X, **params).fit(X[scored], y[scored], qid=qid[scored])
        listed = RankingPursuit(max_basis=5, views=[View(None, RBF, X)], nu=2.0, **params).fit(X, y, qid=qid)
        assert_array_equal(listed.path_.indices, alone.path_.indices)
        assert_allclose(listed.path_.scores, alone.path_.scores)
        assert_allclose(listed.predict(X), alone.predict(X), atol=1e-6)
        unscored_too = RankingPursuit(max_basis=5, kernel=RBF, basis=X, **params).fit(X, y, qid=qid)
        assert_allclose(unscored_too.predict(X), alone.predict(X), atol=1e-9)


def test_views_agree_the_more_the_larger_nu():
    X, y, qid = partly_scored()
    unscored = np.isnan(y)
    U = laplacians(y, qid)[2]
    apart = []
    for nu in (0.0, 0.1, 1.0, 100.0):
        model = RankingPursuit(6, views=2, basis=25, kernel=RBF, nu=nu, random_state=0).fit(X, y, qid=qid)
        f, g = model.predict_views(X[unscored]).T
        apart.append((f - g) @ U @ (f - g))
    assert apart[0] > apart[1] > apart[2] > apart[3]


def test_nu_is_chosen_with_the_size():
    X, y, qid = partly_scored(m=120)
    params = {"views": 2, "kernel": RBF, "max_basis": 4, "random_state": 0}
    auto = RankingPursuit(nu="auto", nus=[0.0, 0.3, 10.0], **params).fit(X, y, qid=qid)
    each = [RankingPursuit(nu=nu, **params).fit(X, y, qid=qid) for nu in (0.0, 0.3, 10.0)]
    best = max(each, key=lambda model: model.path_.scores.max())
    assert (auto.nu_, auto.n_basis_) == (best.nu_, best.n_basis_)
    assert_allclose(auto.predict(X), best.predict(X))
    assert RankingPursuit(nu="auto", **params).fit(X, y, qid=qid).nu_ >= 0
    assert [len(i) for i in auto.basis_indices_] == [auto.n_basis_] * 2


def test_without_unscored_pairs_there_is_a_warning():
    X, y, qid = noisy()
    with pytest.warns(UserWarning, match="nothing to agree on"):
        RankingPursuit(3, views=[View([0, 1, 2]), View([3, 4, 5])], nu=1.0).fit(X, y, qid=qid)


# ---------------------------------------------------------------- alternatives


def test_alternatives_are_as_large_nearly_as_good_and_different():
    X, y, qid = noisy()
    model = RankingPursuit(6, kernel=RBF).fit(X, y, qid=qid)
    others = model.alternatives(4, tolerance=0.2)
    assert len(others) == 4
    best, bases = model.path_.errors[-1], {frozenset(model.basis_indices_.tolist())}
    Lt = laplacian_of(y, qid, {})
    for other in others:
        bases.add(frozenset(other.basis_indices_.tolist()))
        assert other.n_basis_ == 6 and other.path_.errors[-1] <= 1.2 * best
        r = y - other.predict(X)
        assert_allclose(r @ Lt @ r, other.path_.errors[-1], rtol=1e-7)
        assert_allclose(other.basis_, X[other.basis_indices_])
    assert len(bases) == 5
    assert np.all(np.diff([other.path_.errors[-1] for other in others]) >= 0)
    assert (
        model.alternatives(3, tolerance=0.0) == [] or model.alternatives(3, tolerance=0.0)[0].path_.errors[-1] <= best
    )
    assert len(model.resized(2).alternatives(50, tolerance=10.0)) == 50
    assert model.n_basis_ == 6


def test_alternatives_need_the_rows_and_one_view():
    X, y, qid = partly_scored()
    model = RankingPursuit(3, kernel=RBF).fit(X, y, qid=qid)
    copy = pickle.loads(pickle.dumps(model))
    assert_allclose(copy.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="fit again"):
        copy.alternatives()
    with pytest.raises(ValueError, match="predict_views has"):
        RankingPursuit(2, views=2, kernel=RBF).fit(X, y, qid=qid).alternatives()
    for bad in ({"k": 0}, {"tolerance": -1}):
        with pytest.raises(ValueError, match="must be a"):
            model.alternatives(**bad)


# ---------------------------------------------------------------- input in all its forms


def test_any_labels_in_any_order():
    X, y, qid = partly_scored()
    names = np.array([f"query {q}" for q in qid])
    order = np.random.default_rng(1).permutation(60)
    for params in ({"kernel": RBF}, {"kernel": None}, {"views": [View([0, 1, 2]), View(None, RBF, X[:20])], "nu": 0.1}):
        model = RankingPursuit(max_basis=5, cv=GroupKFold(3), **params).fit(X, y, qid=qid)
        other = RankingPursuit(model.n_basis_, **params).fit(X[order], y[order], qid=names[order])
        assert_allclose(other.predict(X), model.predict(X), atol=1e-7)
        assert_array_equal(np.isnan(model.cv_predictions_), np.isnan(y))
        assert model.n_unscored_ == np.isnan(y).sum()
        assert model.n_queries_ == len(np.unique(qid[~np.isnan(y)]))
        assert_allclose(
            model.score(X, y, qid),
            metrics.pairwise_accuracy(y[~np.isnan(y)], model.predict(X)[~np.isnan(y)], qid[~np.isnan(y)]),
        )
    own = RankingPursuit(4, kernel=RBF).fit(X[order], y[order], qid=names[order])
    assert_allclose(own.basis_, X[order][own.basis_indices_])


def test_a_row_of_weight_zero_is_a_row_not_given():
    X, y, qid = noisy(m=60)
    u = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    for params in ({"kernel": "rbf"}, {"kernel": None}, {"views": [View([0, 1, 2]), View([3, 4, 5])]}):
        weighted = RankingPursuit(max_basis=4, **params).fit(X, y, qid=qid, sample_weight=u)
        without = RankingPursuit(max_basis=4, **params).fit(X[u > 0], y[u > 0], qid=qid[u > 0])
        assert_allclose(weighted.predict(X), without.predict(X), atol=1e-8)
        assert np.isnan(weighted.cv_predictions_[u == 0]).all()


def test_one_precision():
    X, y, qid = partly_scored()
    for params in ({"kernel": RBF}, {"kernel": None}, {"views": [View([0, 1, 2]), View([3, 4, 5])], "nu": 0.1}):
        model = RankingPursuit(3, **params).fit(X, y, qid=qid)
        single = RankingPursuit(3, **params).fit(X.astype(np.float32), y.astype(np.float32), qid=qid)
        assert single.predict(X.astype(np.float32)).dtype == np.float32
        assert single.predict_path(X.astype(np.float32)).dtype == np.float32
        assert_allclose(single.predict(X.astype(np.float32)), model.predict(X), atol=1e-3)


def test_data_frames_routing_and_clones():
    pandas = pytest.importorskip("pandas")
    X, y, qid = noisy(m=120, n_queries=12)
    frame = pandas.DataFrame(X, columns=list("abcdef")).assign(qid=[f"query {q}" for q in qid])
    model = RankingPursuit(kernel=None).fit(frame, y)
    reference = RankingPursuit(kernel=None).fit(X, y, qid=qid)
    assert_allclose(model.predict(frame), reference.predict(X))
    assert_allclose(model.score(frame, y), reference.score(X, y, qid))
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(RankingPursuit(3), X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid})
    assert np.isfinite(scores).all()
    again = clone(reference).fit(X, y, qid=qid)
    assert_array_equal(again.basis_indices_, reference.basis_indices_)
    refitted = reference.set_params(kernel="rbf", n_basis=2).fit(X, y, qid=qid)
    assert not hasattr(refitted, "coef_") and not hasattr(refitted, "cv_predictions_")
    other = clone(refitted).fit(X, y, qid=qid).set_params(views=[View([0, 1]), View([2, 3])]).fit(X, y, qid=qid)
    assert not hasattr(other, "dual_coef_") and len(other.basis_indices_) == 2
    with pytest.raises(ValueError, match="fitted on 12 queries"):
        refitted.score(X, y)


def test_progress_is_reported(capsys, limit):
    ticks = iter(np.arange(0, 1e6, 2.0))
    limit(clock=lambda: next(ticks))
    X, y, qid = noisy()
    RankingPursuit(3, kernel=RBF, verbose=True).fit(X, y, qid=qid)
    assert "pursuit: 100 %" in capsys.readouterr().err


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_basis": 61}, 'n_basis=61 is more than the .. functions to choose from.*: take at most .., or "auto"'),
        ({"n_basis": 7, "kernel": None}, "n_basis=7 is more than the 6 functions"),
        ({"n_basis": 9, "views": [View([0]), View(None, RBF)]}, "more than the 1 functions .* in the smallest view"),
        ({"n_basis": 0}, "n_basis must be a positive whole number, or auto, got 0"),
        ({"n_basis": 2.5}, "n_basis must be a positive whole number"),
        ({"n_basis": "all"}, "n_basis must be one of 'auto'"),
        ({"max_basis": 0}, "max_basis must be a positive whole number, got 0"),
        ({"nu": -1.0}, "nu must be a finite number"),
        ({"nu": "none"}, "nu must be one of 'auto'"),
        ({"nu": "auto", "nus": [], "views": 2}, "nus is empty"),
        ({"kernel": None, "basis": 3}, "basis needs a kernel"),
        ({"kernel": "rfb"}, "unknown kernel 'rfb'; did you mean 'rbf'"),
        ({"basis": [99]}, "rows outside 0 to 59"),
        ({"basis": np.ones((3, 2))}, "points with 6 features"),
        ({"views": 2, "view_weights": [1.0, 0.0]}, "view 1 has weight 0: leave it out"),
        ({"views": 2, "view_weights": [1.0]}, "view_weights must hold one number per view"),
        ({"views": 2, "kernel": None}, "the same view 2 times"),
        ({"views": [View(None, RBF, 9), View(None, RBF, 7)], "shared_basis": True}, "the views have 9, 7: give all"),
        ({"views": 0}, "views must be a positive number"),
        ({"backfit": None}, "backfit must be one of True, False"),
        ({"tied_pairs": "auto"}, "tied_pairs must be one of True, False"),
        ({"regression": 2}, "regression must be a number between 0 and 1"),
        ({"weighting": "none"}, "weighting must be one of"),
        ({"cv": 99}, "cv=99 folds cannot be made"),
        ({"cv": "leave"}, "cv must be one of 'leave-query-out'"),
        ({"cv": object()}, "cv must be"),
    ],
)
def test_bad_parameters(params, message):
    X, y, qid = partly_scored()
    with pytest.raises((ValueError, TypeError), match=message):
        RankingPursuit(**params).fit(X, y, qid=qid)


def test_bad_rows():
    X, y, qid = partly_scored()
    model = RankingPursuit(3)
    infinite = y.copy()
    infinite[7] = np.inf
    for bad, message in [
        (np.full(60, np.nan), "none of the 60 rows is scored"),
        (infinite, "y must not be infinite: row 7"),
        (np.where(np.isnan(y), np.nan, 1.0), "no comparable pair"),
        (y[:-1], "got 59 for 60 rows"),
        (None, "target y is None"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, bad, qid=qid)
    with pytest.raises(ValueError, match="none of the 60 rows is scored"):
        model.fit(X, y, qid=qid, sample_weight=np.isnan(y).astype(float))
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.fit(X, y, qid=qid).predict(X[:, :5])


def test_too_many_functions_of_views_are_refused_before_they_are_tried(limit):
    X, y, qid = partly_scored()
    limit(free_memory=1e4)
    with pytest.raises(MemoryError, match="view 0: a basis of 30 points"):
        RankingPursuit(3, views=2).fit(X, y, qid=qid)


# ---------------------------------------------------------------- many rows of few columns are summed, not kept


@pytest.mark.parametrize("params", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_tall_features_are_pursued_through_their_sums_as_through_their_rows(params, weighted):
    X, y, qid = noisy(m=400, n=8, n_queries=40, levels=4)
    X[:, 3], X[:, 5] = 1e6 * X[:, 3], 7.0  # other units, and a constant
    u = weights(len(y)) if weighted else None
    folds = list(GroupKFold(4).split(X, y, qid))
    fits = [  # sparse columns are never compressed
        RankingPursuit(kernel=None, max_basis=7, cv=folds, **params).fit(rows, y, qid=qid, sample_weight=u)
        for rows in (X, sparse.csr_array(X))
    ]
    got, expected = (model.path_ for model in fits)
    assert_array_equal(got.indices, expected.indices)
    assert_allclose(got.errors, expected.errors, rtol=1e-9)
    assert_allclose(got.scores, expected.scores, rtol=1e-12)
    assert_allclose(fits[0].predict(X), fits[1].predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_basis", [60, "auto"])
def test_tall_features_are_pursued_without_a_copy_of_them(n_basis):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60_000, 60)), np.arange(60_000) // 20
    y = np.round(X[:, 0] - X[:, 1] + rng.normal(size=len(X)))
    tracemalloc.start()
    RankingPursuit(n_basis, kernel=None, max_basis=60).fit(X, y, qid=qid)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.9 * X.nbytes  # a copy of X, or held-out scores of all 60 sizes, would take more


def test_nearly_equal_columns_are_pursued_in_the_rows():
    X, y, qid = noisy(m=300, n=4, n_queries=30, levels=4)
    twin = np.column_stack([X, X[:, 0] + 1e-4 * np.random.default_rng(5).normal(size=len(X))])
    model = RankingPursuit(5, kernel=None).fit(twin, y, qid=qid)
    root = np.linalg.cholesky(laplacian_of(y, qid, {}) + 1e-12 * np.eye(len(y))).T  # L = root'root
    left = np.linalg.lstsq(root @ twin, root @ y, rcond=None)[1]
    assert_allclose(model.path_.errors[-1], left[0], rtol=1e-6)
