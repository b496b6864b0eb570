"""CoRankRLS: the printed objective, its limits, exact hold-out, one pass over the unscored, and bad input."""

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
from rankrls import CoRankRLS
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.core.views import FittedView, View
from rankrls.kernels import Gaussian
from rankrls.problems.coregularised import Stack, agreement

GAMMA = 0.05
RBF = Gaussian(GAMMA)


def partly_scored(m=60, seed=0, share=0.5):
    """Queries of which some rows are scored, some are not: mixed, wholly scored and wholly unscored ones."""
    X, y, qid = problem(m=m, n_queries=9, levels=5, seed=seed)
    rng = np.random.default_rng(seed + 100)
    unscored = (rng.random(m) < share) & (qid != 1) | (qid == 2)
    return X + 0.01 * rng.normal(size=X.shape), np.where(unscored, np.nan, y), qid


def objective(Phi, penalties, y, qid, alpha, nu, coefs, *, u=None, tied=False, weighting="items"):
    """Equation (17) of the paper, by loops over views: Phi_v for all rows, penalties Khat_v, coefs A_v."""
    scored = ~np.isnan(y)
    u = np.ones(len(y)) if u is None else u
    L = oracles.laplacian(y[scored], qid[scored], tied=tied, weighting=weighting, u=u[scored])
    U = oracles.laplacian(y[~scored], qid[~scored], tied=True, weighting=weighting, u=u[~scored])
    J = 0.0
    for P, K, a in zip(Phi, penalties, coefs, strict=True):
        r = y[scored] - P[scored] @ a
        J += r @ L @ r + alpha * a @ K @ a
        for Q, b in zip(Phi, coefs, strict=True):
            d = P[~scored] @ a - Q[~scored] @ b
            J += nu * d @ U @ d
    return J


def minimiser(Phi, penalties, y, qid, alpha, nu, **loss):
    """The minimum of that quadratic, found from its values alone: exact differences, one dense solve."""
    widths = [P.shape[1] for P in Phi]
    cuts, n = np.cumsum(widths)[:-1], sum(widths)
    J = lambda a: objective(Phi, penalties, y, qid, alpha, nu, np.split(a, cuts), **loss)
    E = np.eye(n)
    J0, J1 = J(np.zeros(n)), [J(e) for e in E]
    H = np.array([[J(e + f) - J1[i] - J1[j] + J0 for j, f in enumerate(E)] for i, e in enumerate(E)])
    g = np.array([(J(e) - J(-e)) / 2 for e in E])
    return np.split(-np.linalg.lstsq(H, g, rcond=1e-13)[0], cuts)


def centred(scores, qid):
    """Scores minus the mean of their query."""
    codes = np.unique(qid, return_inverse=True)[1]
    return scores - (np.bincount(codes, weights=scores) / np.bincount(codes))[codes]


# ---------------------------------------------------------------- the objective


@pytest.mark.parametrize("weighting", ["pairs", "queries", "items"])
@pytest.mark.parametrize("tied", [True, False])
def test_linear_views_minimise_the_printed_objective(weighting, tied):
    X, y, qid = partly_scored()
    views, loss = [[0, 1, 2], [3, 5], [4]], {"tied": tied, "weighting": weighting}
    Phi = [X[:, columns] for columns in views]
    expected = minimiser(Phi, [np.eye(P.shape[1]) for P in Phi], y, qid, 0.7, 0.3, **loss)
    model = CoRankRLS(0.7, 0.3, views=[View(c) for c in views], weighting=weighting, tied_pairs=tied)
    model.fit(X, y, qid=qid)
    for ours, theirs in zip(model.view_coefs_, expected, strict=True):
        assert_allclose(ours, theirs, atol=1e-8)
    assert_allclose(model.predict(X), np.mean([P @ a for P, a in zip(Phi, expected, strict=True)], axis=0), atol=1e-8)


def test_row_weights_enter_both_graphs():
    X, y, qid = partly_scored()
    u = weights(60)
    Phi = [X[:, :3], X[:, 3:]]
    expected = minimiser(Phi, [np.eye(3)] * 2, y, qid, 0.7, 0.3, u=u)
    model = CoRankRLS(0.7, 0.3, views=[View([0, 1, 2]), View([3, 4, 5])]).fit(X, y, qid=qid, sample_weight=u)
    assert_allclose(np.concatenate(model.view_coefs_), np.concatenate(expected), atol=1e-8)


def test_a_row_of_weight_zero_is_a_row_not_given():
    X, y, qid = partly_scored()
    u = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    for views in ([View([0, 1, 2]), View([3, 4, 5])], [View(None, RBF), View([1, 2], "rbf")]):
        weighted = CoRankRLS(views=views).fit(X, y, qid=qid, sample_weight=u)
        without = CoRankRLS(views=views).fit(X[u > 0], y[u > 0], qid=qid[u > 0])
        assert_allclose(weighted.predict(X), without.predict(X), atol=1e-7)
        assert np.isnan(weighted.cv_predictions_[u == 0]).all()


def test_full_kernels_make_the_gradient_of_the_printed_objective_vanish():
    X, y, qid = partly_scored()
    alpha, nu, scored = 0.5, 0.2, ~np.isnan(y)
    K = [oracles.gaussian(X[:, c], X[:, c], g) for c, g in ((slice(0, 3), 0.1), (slice(3, 6), 0.05))]
    views = [View([0, 1, 2], Gaussian(0.1)), View([3, 4, 5], Gaussian(0.05))]
    model = CoRankRLS(alpha, nu, views=views).fit(X, y, qid=qid)
    L = oracles.laplacian(y[scored], qid[scored], tied=False, weighting="items")
    U = oracles.laplacian(y[~scored], qid[~scored], tied=True, weighting="items")
    f = [k @ a for k, a in zip(K, model.view_coefs_, strict=True)]
    for v in range(2):
        gradient = -2 * K[v][scored].T @ L @ (y - f[v])[scored] + 2 * alpha * f[v]
        gradient += 4 * nu * K[v][~scored].T @ U @ (f[v] - f[1 - v])[~scored]
        assert_allclose(gradient, 0, atol=1e-8)
    assert_allclose(model.predict_views(X), np.column_stack(f), atol=1e-10)


def test_sparse_views_minimise_the_printed_objective():
    X, y, qid = partly_scored()
    rows = [np.arange(0, 12), np.arange(30, 40)]
    Phi = [oracles.gaussian(X, X[r], GAMMA) for r in rows]
    penalties = [oracles.gaussian(X[r], X[r], GAMMA) for r in rows]
    expected = minimiser(Phi, penalties, y, qid, 0.7, 0.3)
    model = CoRankRLS(0.7, 0.3, views=[View(None, RBF, rows[0]), View(None, RBF, X[rows[1]])]).fit(X, y, qid=qid)
    f = np.column_stack([P @ a for P, a in zip(Phi, expected, strict=True)])
    assert_allclose(model.predict_views(X), f, atol=1e-7)


# ---------------------------------------------------------------- equivalences


def test_every_row_as_basis_is_the_full_form():
    X, y, qid = partly_scored()
    full = CoRankRLS(0.5, 0.2, views=[View(None, RBF), View([0, 1], RBF)]).fit(X, y, qid=qid)
    rows = np.random.default_rng(0).permutation(60)
    basis = CoRankRLS(0.5, 0.2, views=[View(None, RBF, rows), View([0, 1], RBF, X[rows][:, [0, 1]])])
    assert_allclose(full.predict_views(X), basis.fit(X, y, qid=qid).predict_views(X), atol=1e-7)


@pytest.mark.parametrize("tied", [True, False])
def test_without_agreement_each_view_is_rankrls_on_the_scored_rows(tied):
    X, y, qid = partly_scored()
    scored, basis = ~np.isnan(y), X[::4]
    loss = {"tied_pairs": tied, "weighting": "queries"}
    views = [View([0, 2, 4]), View(None, RBF, basis), View([1, 3])]
    ours = CoRankRLS(0.3, 0.0, views=views, **loss).fit(X, y, qid=qid).predict_views(X)
    for v, (kernel, points, columns) in enumerate(
        [(None, None, [0, 2, 4]), (RBF, basis, list(range(6))), (None, None, [1, 3])]
    ):
        alone = RankRLS(0.3, kernel=kernel, basis=points, **loss)
        alone.fit(X[scored][:, columns], y[scored], qid=qid[scored])
        assert_allclose(ours[:, v], alone.predict(X[:, columns]), atol=1e-7)


@pytest.mark.parametrize("nu", [0.0, 5.0])
def test_one_view_is_rankrls_whatever_nu(nu):
    X, y, qid = partly_scored()
    scored = ~np.isnan(y)
    model = CoRankRLS(nu=nu, views=[View()]).fit(X, y, qid=qid)
    alone = RankRLS().fit(X[scored], y[scored], qid=qid[scored])
    assert_allclose(model.alphas_, alone.alphas_)
    assert_allclose(model.cv_scores_[0], alone.cv_scores_)
    assert_allclose(model.cv_predictions_[scored], alone.cv_predictions_, atol=1e-8)
    assert_allclose(model.view_coefs_[0], alone.coef_, atol=1e-8)


def test_views_by_number_are_disjoint_random_bases():
    X, y, qid = partly_scored()
    model = CoRankRLS(0.5, 0.2, views=3, basis=20, kernel=RBF, random_state=4).fit(X, y, qid=qid)
    points = np.vstack([view.points for view in model.views_])
    assert len(np.unique(points, axis=0)) == 60
    again = CoRankRLS(0.5, 0.2, views=[View(None, RBF, view.points) for view in model.views_]).fit(X, y, qid=qid)
    assert_allclose(again.predict(X), model.predict(X), atol=1e-9)


def test_agreement_grows_with_nu():
    X, y, qid = partly_scored()
    views = [View([0, 1, 2]), View([3, 4, 5])]
    share = [CoRankRLS(0.1, nu, views=views).fit(X, y, qid=qid).disagreement_ for nu in (0, 0.1, 1, 10, 1000)]
    assert np.all(np.diff(share) < 0)
    model = CoRankRLS(0.1, 0.1, views=views).fit(X, y, qid=qid)
    unscored = np.isnan(y)
    f = [centred(s, qid[unscored]) for s in model.predict_views(X[unscored]).T]
    apart = sum(np.sum((s - np.mean(f, axis=0)) ** 2) for s in f)
    assert_allclose(model.disagreement_, apart / sum(np.sum(s**2) for s in f))
    assert_allclose(share[1], model.disagreement_)


# ---------------------------------------------------------------- one pass over the unscored rows


@pytest.mark.parametrize("sizes", [[3, 1, 7, 3, 40], [5000], [4100, 2, 300, 300]])
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_the_gram_in_batches_is_the_dense_gram(sizes, sparse_rows):
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(size=(len(qid), 4))
    rows = rng.permutation(len(qid))[: len(qid) - 1]
    stack_views = [FittedView(slice(0, 2), None, None), FittedView(np.array([3, 1]), Gaussian(0.3), X[:5][:, [3, 1]])]
    stack = Stack.of(stack_views, X)
    G = QueryPreferences(Queries.of(qid[rows]), weighting="items")
    S = agreement(stack, sparse.csr_array(X) if sparse_rows else X, rows, G)
    Z = G @ np.hstack([X[:, :2], oracles.gaussian(X[:, [3, 1]], X[:5][:, [3, 1]], 0.3) @ stack.W[1]])[rows]
    assert_allclose(S, Z.T @ Z, rtol=0, atol=1e-9 * np.trace(S))


# ---------------------------------------------------------------- hold-out


def refits(X, y, qid, folds, **params):
    """Held-out scores by a fit for every fold, in which the fold's rows stay but their scores are removed."""
    scores = np.full(len(y), np.nan)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(y)), fold)
        scores[fold] = CoRankRLS(**params).fit(X[rest], y[rest], qid=qid[rest]).predict(X[fold])
    return scores


LINEAR = [View([0, 1, 2]), View([3, 4, 5])]


def mixed_views(X):
    return [View([0, 1, 2]), View([3, 4, 5], RBF, X[:9, 3:]), View(None, RBF, X[20:30])]


@pytest.mark.parametrize("loss", [{}, {"tied_pairs": True}, {"weighting": "queries"}, {"weighting": "pairs"}])
def test_leave_query_out_is_a_refit_for_every_query(loss):
    X, y, qid = partly_scored()
    scored = np.flatnonzero(~np.isnan(y))
    folds = [scored[qid[scored] == q] for q in np.unique(qid[scored])]
    for views in (LINEAR, mixed_views(X)):
        model = CoRankRLS(alphas=[0.2], nus=[0.4], views=views, **loss).fit(X, y, qid=qid)
        expected = refits(X, y, qid, folds, alpha=0.2, nu=0.4, views=views, **loss)
        assert_allclose(model.cv_predictions_, expected, atol=1e-7)
        judged = oracles.pairwise_accuracy(y[scored], expected[scored], qid[scored])
        assert_allclose(model.cv_scores_, [[judged]])


def test_every_pair_of_values_is_judged_as_if_alone():
    X, y, qid = partly_scored()
    alphas, nus = [0.01, 1.0, 30.0], [0.0, 0.5, 20.0]
    model = CoRankRLS(alphas=alphas, nus=nus, views=mixed_views(X)).fit(X, y, qid=qid)
    alone = [
        [CoRankRLS(alphas=[a], nus=[n], views=mixed_views(X)).fit(X, y, qid=qid).cv_scores_[0, 0] for a in alphas]
        for n in nus
    ]
    assert_allclose(model.cv_scores_, alone)
    assert model.cv_scores_.max() == model.cv_scores_[nus.index(model.nu_), alphas.index(model.alpha_)]
    fixed = CoRankRLS(model.alpha_, model.nu_, views=mixed_views(X)).fit(X, y, qid=qid)
    assert_allclose(model.predict(X), fixed.predict(X), atol=1e-8)
    assert not hasattr(fixed, "cv_scores_")


def test_values_of_nu_side_by_side_in_threads_change_nothing():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(400, 120)), np.repeat(np.arange(40), 10)
    y = np.where(qid < 20, X[:, 0] - X[:, 60] + rng.normal(size=400), np.nan)
    params = {"views": [View(slice(0, 60)), View(slice(60, 120))], "alphas": [1.0, 10.0]}
    together = CoRankRLS(nus=[0.0, 0.1, 1.0], **params).fit(X, y, qid=qid)
    alone = [CoRankRLS(nus=[nu], **params).fit(X, y, qid=qid).cv_scores_[0] for nu in (0.0, 0.1, 1.0)]
    assert_allclose(together.cv_scores_, alone)


def test_folds_of_queries_and_of_the_items_of_one_query_are_refits():
    X, y, qid = partly_scored()
    scored = np.flatnonzero(~np.isnan(y))
    halves = [scored[np.isin(qid[scored], part)] for part in ([0, 1, 3], [4, 5, 6, 7, 8])]
    cv = [(np.setdiff1d(np.arange(60), half), half) for half in halves]
    model = CoRankRLS(alphas=[0.2], nus=[0.4], views=LINEAR, cv=cv).fit(X, y, qid=qid)
    expected = refits(X, y, qid, halves, alpha=0.2, nu=0.4, views=LINEAR)
    assert_allclose(model.cv_predictions_, expected, atol=1e-8)

    items = CoRankRLS(alphas=[0.2], nus=[0.4], views=LINEAR, cv=[([], scored[::2]), ([], scored[1::2])]).fit(X, y)
    expected = refits(X, y, np.zeros(60), [scored[::2], scored[1::2]], alpha=0.2, nu=0.4, views=LINEAR)
    assert_allclose(items.cv_predictions_, expected, atol=1e-8)
    assert CoRankRLS(views=LINEAR).fit(X, y).cv_scores_.shape == (8, 15)
    for splitter in (2, GroupKFold(3)):
        assert np.isfinite(CoRankRLS(views=LINEAR, cv=splitter).fit(X, y, qid=qid).cv_scores_).all()


def test_a_long_query_is_held_out_from_the_sums():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(4600, 3)), np.repeat([0, 1, 2], [4200, 100, 300])
    y = np.where(qid == 2, np.nan, X @ [1.0, 2.0, 0.5] + rng.normal(size=4600))
    views = [View([0, 1]), View([1, 2])]
    model = CoRankRLS(alphas=[0.2], nus=[0.4], views=views).fit(X, y, qid=qid)
    folds = [np.flatnonzero(qid == 0), np.flatnonzero(qid == 1)]
    assert_allclose(model.cv_predictions_, refits(X, y, qid, folds, alpha=0.2, nu=0.4, views=views), atol=1e-8)


# ---------------------------------------------------------------- input in all its forms


def test_any_labels_in_any_order():
    X, y, qid = partly_scored()
    params = {"views": [View([0, 1, 2]), View(None, RBF, X[:10])]}
    model = CoRankRLS(**params).fit(X, y, qid=qid)
    names = np.array([f"query {q}" for q in qid])
    order = np.random.default_rng(1).permutation(60)
    other = CoRankRLS(**params).fit(X[order], y[order], qid=names[order])
    assert_allclose(other.predict(X), model.predict(X), atol=1e-8)
    assert_allclose(other.cv_predictions_, model.cv_predictions_[order], atol=1e-8)
    assert_array_equal(np.isnan(model.cv_predictions_), np.isnan(y))
    assert model.n_unscored_ == np.isnan(y).sum()
    assert model.n_queries_ == len(np.unique(qid[~np.isnan(y)]))
    assert_allclose(model.score(X, y, qid), model.score(X[~np.isnan(y)], y[~np.isnan(y)], qid[~np.isnan(y)]))
    assert_array_equal(model.rank(X, qid), Queries.of(qid).ranks(model.predict(X)))


def test_one_precision_and_sparse_rows():
    X, y, qid = partly_scored()
    for views in (LINEAR, [View(None, RBF, np.arange(12)), View([1, 2, 4], "rbf", np.arange(20, 32))]):
        params = {"views": views, "alphas": [0.1, 1.0], "random_state": 0}
        model = CoRankRLS(**params).fit(X, y, qid=qid)
        single = CoRankRLS(**params).fit(X.astype(np.float32), y.astype(np.float32), qid=qid)
        assert single.predict(X.astype(np.float32)).dtype == single.cv_predictions_.dtype == np.float32
        assert_allclose(single.predict(X.astype(np.float32)), model.predict(X), atol=1e-3)
        rows = CoRankRLS(**params).fit(sparse.csr_array(X), y, qid=qid)
        assert_allclose(rows.predict(sparse.csr_array(X)), model.predict(X), atol=1e-8)


def test_data_frames_and_columns_by_name():
    pandas = pytest.importorskip("pandas")
    X, y, qid = partly_scored()
    frame = pandas.DataFrame(X, columns=list("abcdef")).assign(qid=[f"query {q}" for q in qid])
    model = CoRankRLS(views=[View(["c", "a"]), View(slice(3, 6)), View("b")])
    model.fit(frame, pandas.Series(y))
    other = CoRankRLS(views=[View([2, 0]), View([3, 4, -1]), View(1)]).fit(X, y, qid=qid)
    assert_allclose(model.predict(frame), other.predict(X))
    assert_allclose(model.score(frame, y), other.score(X, y, qid))
    with pytest.raises(ValueError, match="view 1: no column 'z'; X has columns 0 to 5: a, b, c"):
        CoRankRLS(views=[View(["a"]), View(["z"])]).fit(frame, y)


def test_clone_pickle_and_fit_twice():
    X, y, qid = partly_scored()
    before = X.copy(), y.copy(), qid.copy()
    for model in (
        CoRankRLS(basis=15, random_state=3, tied_pairs="auto"),
        CoRankRLS(views=[View([0, 1]), View([2, 3], Gaussian(0.1), X[:5, 2:4])]),
    ):
        parameters = dict(model.get_params())
        first = model.fit(X, y, qid=qid).predict(X)
        assert model.get_params() == parameters
        assert_array_equal(first, model.fit(X, y, qid=qid).predict(X))
        assert_allclose(pickle.loads(pickle.dumps(model)).predict(X), first, rtol=1e-12)
        fresh = clone(model)
        assert not hasattr(fresh, "alpha_")
        assert_allclose(fresh.fit(X, y, qid=qid).predict(X), first, rtol=1e-12)
        assert_array_equal(first, model.set_params(alpha=model.alpha_, nu=model.nu_).fit(X, y, qid=qid).predict(X))
    for array, copy in zip((X, y, qid), before, strict=True):
        assert_array_equal(array, copy)


def test_queries_travel_by_routing():
    X, y, qid = partly_scored(m=200)
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            CoRankRLS(0.5, 0.1, views=LINEAR), X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid}
        )
    assert np.isfinite(scores).all()


def test_scoring_can_be_an_error():
    X, y, qid = partly_scored()
    right = CoRankRLS(views=LINEAR).fit(X, y, qid=qid)
    wrong = CoRankRLS(views=LINEAR, scoring="disagreement_error").fit(X, y, qid=qid)
    assert_allclose(wrong.cv_scores_, 1 - right.cv_scores_)
    assert (wrong.alpha_, wrong.nu_) == (right.alpha_, right.nu_)


def test_without_unscored_pairs_views_learn_separately_with_a_warning():
    X, y, qid = partly_scored()
    y = np.nan_to_num(y)
    with pytest.warns(UserWarning, match="nothing to agree on"):
        model = CoRankRLS(0.5, views=LINEAR).fit(X, y, qid=qid)
    assert_array_equal(model.nus_, [0])
    assert np.isnan(model.disagreement_)
    alone = RankRLS(0.5).fit(X[:, :3], y, qid=qid)
    assert_allclose(model.predict_views(X)[:, 0], alone.predict(X[:, :3]), atol=1e-8)


def test_agreement_recovers_what_few_scores_miss():
    """Two descriptions of one signal, each with its own nuisance columns: they can only agree on the signal."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(400), 8)
    signal, nuisance = rng.normal(size=(3200, 3)), rng.normal(size=(3200, 40))
    X = np.hstack([signal, nuisance[:, :20], signal @ rng.normal(size=(3, 3)), nuisance[:, 20:]])
    truth = signal @ [1.0, -0.7, 0.4]
    y = np.where(qid < 5, truth + rng.normal(size=3200), np.nan)
    views = [View(slice(0, 23)), View(slice(23, 46))]
    together = CoRankRLS(views=views).fit(X, y, qid=qid)
    apart = CoRankRLS(nu=0.0, views=views).fit(X, y, qid=qid)
    assert together.nu_ > 0
    assert together.score(X, truth, qid) > apart.score(X, truth, qid) + 0.03


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"nu": -1.0}, "nu must be a finite number, zero or positive.*got -1"),
        ({"nu": "none"}, "nu must be one of 'auto'"),
        ({"nus": [0, -2]}, "got .*-2"),
        ({"nus": []}, "nus is empty"),
        ({"alpha": -1.0}, "alpha must be a finite number, zero or positive"),
        ({"alpha": np.array([1.0, 2.0])}, "alpha must be a finite number, zero or positive"),
        ({"views": 0}, "views must be a positive number or a list"),
        ({"views": []}, "views is empty"),
        ({"views": ["a"]}, "entry 0 is 'a'"),
        ({"views": 2, "basis": None}, "the same view 2 times"),
        ({"views": 2, "kernel": None}, "the same view 2 times"),
        ({"views": 2, "basis": 0}, "view 0: basis=0 must be at least one point"),
        ({"views": [View([0, 6])]}, "view 0: no column 6; X has columns 0 to 5"),
        ({"views": [View(["a"])]}, "view 0: no column 'a'"),
        ({"views": [View([])]}, "view 0: columns is empty"),
        ({"views": [View([True] * 6)]}, "not a mask"),
        ({"views": [View(basis=3)]}, "view 0: basis needs a kernel"),
        ({"views": [View(kernel="precomputed")]}, "view 0: a precomputed kernel of 6 columns needs basis="),
        ({"regression": 2.0}, "regression must be a number between 0 and 1"),
        ({"agree_on": "scored"}, "agree_on must be one of 'unscored', 'all'"),
        ({"views": [View(kernel="rbf", basis=[99])]}, "rows outside 0 to 59"),
        ({"views": [View([0], "rbf", np.ones((3, 2)))]}, "view 0: basis must be .* points with 1 features"),
        ({"weighting": "none"}, "weighting must be one of"),
        ({"tied_pairs": None}, "tied_pairs must be one of"),
        ({"cv": 99}, "cv=99 folds cannot be made"),
    ],
)
def test_bad_parameters(params, message):
    X, y, qid = partly_scored()
    with pytest.raises((ValueError, TypeError), match=message):
        CoRankRLS(**{"basis": 10, **params}).fit(X, y, qid=qid)


def test_defaults_on_few_rows_share_them_between_the_views():
    X, y, qid = partly_scored()
    model = CoRankRLS(random_state=0).fit(X, y, qid=qid)
    points = [view.points for view in model.views_]
    assert [len(p) for p in points] == [30, 30]
    assert len(np.unique(np.vstack(points), axis=0)) == 60
    shares = CoRankRLS(views=[View(None, RBF, 10), View(None, RBF, 40)], random_state=0).fit(
        X[:40], y[:40], qid=qid[:40]
    )
    assert [len(view.points) for view in shares.views_] == [8, 32]
    with pytest.raises(ValueError, match="3 views cannot each draw a basis from 2 different rows"):
        CoRankRLS(views=3).fit(np.repeat(X[:2], 5, axis=0), np.arange(10.0))


def test_too_large_a_basis_is_refused_before_it_is_tried(limit):
    X, y, qid = partly_scored()
    limit(free_memory=1e4)
    with pytest.raises(MemoryError, match="view 0: a basis of 20 points needs .* take a smaller one"):
        CoRankRLS(basis=20).fit(X, y, qid=qid)


def test_memory_does_not_grow_with_the_unscored_rows():
    rng, peaks = np.random.default_rng(0), []
    for m in (5_000, 50_000):
        X, qid = rng.normal(size=(m, 4)), np.arange(m) // 10
        y = np.where(qid < 20, X[:, 0], np.nan)
        model = CoRankRLS(views=[View([0, 1]), View([2, 3])])
        tracemalloc.start()
        model.fit(X, y, qid=qid)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 45_000 * 8 * 20  # a few numbers a row; 120 pairs of alpha and nu were tried


def test_bad_rows():
    X, y, qid = partly_scored()
    model = CoRankRLS(basis=10)
    infinite = y.copy()
    infinite[7] = np.inf
    for bad, message in [
        (np.full(60, np.nan), "none of the 60 rows is scored"),
        (infinite, "y must not be infinite: row 7"),
        (np.where(np.isnan(y), np.nan, 1.0), "no comparable pair"),
        (y[:-1], "got 59 for 60 rows"),
        (np.column_stack([y, y]), "set tied_pairs=True"),
        (["a"] * 60, "one number per row"),
        (None, "target y is None"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, bad, qid=qid)
    with pytest.raises(ValueError, match="fitted on .* queries"):
        model.fit(X, y, qid=qid).score(X, y)
    with pytest.raises(ValueError, match="y must be finite"):
        model.score(X, np.full(60, np.nan), qid)


def test_a_view_may_choose_its_basis_by_a_method():
    from rankrls.bases import KMeansCentres, PivotedCholesky

    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(120, 4)), np.repeat(np.arange(12), 10)
    y = np.where(qid < 6, X[:, 0].round(), np.nan)
    views = [View([0, 1], "rbf", PivotedCholesky(8)), View([2, 3], "rbf", KMeansCentres(5))]
    model = CoRankRLS(views=views, random_state=0).fit(X, y, qid=qid)
    assert [len(view.points) for view in model.views_] == [8, 5]
    few = CoRankRLS(views=[View(None, "rbf", PivotedCholesky(999))]).fit(X, y, qid=qid)
    assert len(few.views_[0].points) == 120


def test_reasons_are_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd"))
    y, qid = rng.normal(size=40), np.arange(40) // 8
    views = [View(columns=["a", "b"], kernel=None), View(columns=["c", "d"], kernel=None)]
    model = CoRankRLS(1.0, 0.5, views=views, agree_on="all").fit(frame, y, qid=qid)
    shares = model.explain(frame.iloc[3], frame.iloc[1][["d", "b", "c", "a"]])
    assert list(shares.index) == list("abcd")
    scores = model.predict(frame)
    assert shares.sum() == pytest.approx(scores[3] - scores[1])
