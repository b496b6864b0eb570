"""Exact shortcuts for complete relations: intercepts, edges, rows and columns left out, sums of kernels, widths."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import oracles
from rankrls import ConditionalRankRLS, TwoStepRLS
from rankrls.kernels import Gaussian
from rankrls.metrics import pairwise_accuracy
from rankrls.relations.problems import heavy_rows
from rankrls.selection import RelationKFold
from shared import folder

ALPHA = 0.5


def small(seed=0, p=6, r=5):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(p, 3)), rng.normal(size=(r, 2))
    return X, X @ rng.normal(size=(3, 2)) @ Z.T + rng.normal(size=(p, r)), Z


def refit(X, Y, Z, keep, at, *, ranking, kernel=None, free=False, pairwise=None):
    """The score of edge `at` by the explicit model of the edges in `keep`, and the free constant."""
    G, K = (X @ X.T, Z @ Z.T) if kernel is None else (kernel(X, X), kernel(Z, Z))
    y = np.array([Y[e] for e in keep])
    M = oracles.pair_kernel(G, K, keep, keep, **(pairwise or {}))
    ones = np.ones((len(keep), 1)) if free else None
    a, b = oracles.relation_model(M, y, [e[0] for e in keep], ALPHA, ranking=ranking, free=ones)
    score = (oracles.pair_kernel(G, K, [at], keep, **(pairwise or {})) @ a)[0]
    if ranking:  # the row's constant: the mean residual of its other edges
        mine = [i for i, e in enumerate(keep) if e[0] == at[0]]
        rest = np.mean(y[mine] - (M @ a)[mine]) if mine else 0.0
        return score, rest
    return score, b[0] if free else 0.0


@pytest.mark.parametrize("loss", ["ranking", "regression", "intercept"])
@pytest.mark.parametrize("kernel", [None, Gaussian(0.3)])
def test_each_edge_left_out_equals_refits(loss, kernel):
    X, Y, Z = small()
    free = loss == "intercept"
    Y = Y + 100 * free
    params = {"loss": "ranking" if loss == "ranking" else "regression", "intercept": free, "kernel": kernel}
    model = ConditionalRankRLS(alphas=[ALPHA], cv="leave-edge-out", **params).fit(X, Y, Z)
    every = [(i, j) for i in range(6) for j in range(5)]
    for e in every:
        keep = [other for other in every if other != e]
        score, constant = refit(X, Y, Z, keep, e, ranking=loss == "ranking", kernel=kernel, free=free)
        assert_allclose(model.cv_predictions_[e], score + constant, atol=1e-7)


@pytest.mark.parametrize("end", ["row", "column"])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("kernel", [None, Gaussian(0.3)])
def test_each_object_left_out_of_a_regression_equals_refits(end, free, kernel):
    X, Y, Z = small()
    Y = Y + 100 * free
    model = ConditionalRankRLS(alphas=[ALPHA], loss="regression", intercept=free, cv=f"leave-{end}-out", kernel=kernel)
    model.fit(X, Y, Z)
    every = [(i, j) for i in range(6) for j in range(5)]
    side = 0 if end == "row" else 1
    for e in every:
        keep = [other for other in every if other[side] != e[side]]
        score, constant = refit(X, Y, Z, keep, e, ranking=False, kernel=kernel, free=free)
        assert_allclose(model.cv_predictions_[e], score + constant, atol=1e-7)
    plain, _ = refit(X, Y, Z, every, (2, 3), ranking=False, kernel=kernel, free=free), None
    assert_allclose(model.predict(X)[2, 3], sum(plain), atol=1e-7)
    assert bool(model.intercept_) == free


def test_regression_far_from_zero_needs_its_intercept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = X @ rng.normal(size=(3, 3)) @ X.T + 0.1 * rng.normal(size=(40, 40))
    near = ConditionalRankRLS(1.0, loss="regression", intercept=True).fit(X, Y)
    far = ConditionalRankRLS(1.0, loss="regression", intercept=True).fit(X, Y + 100)
    assert_allclose(far.predict(X), near.predict(X) + 100, atol=1e-8)
    thin = np.where(rng.random(Y.shape) < 0.5, Y + 100, np.nan)
    some = ConditionalRankRLS(1.0, loss="regression", intercept=True).fit(X, thin)
    assert np.sqrt(np.mean((some.predict(X) - Y - 100) ** 2)) < 0.2


@pytest.mark.parametrize("loss", ["ranking", "regression", "intercept"])
@pytest.mark.parametrize("pairwise", ["sum", "both"])
@pytest.mark.parametrize("complete", [True, False])
def test_sums_of_pairwise_kernels_equal_explicit_ones(loss, pairwise, complete):
    X, Y, Z = small()
    kernel = Gaussian(0.3)  # ones on the diagonal, so that weights are as they stand
    free, ranking = loss == "intercept", loss == "ranking"
    given = Y if complete else np.where(np.random.default_rng(2).random(Y.shape) < 0.8, Y, np.nan)
    model = ConditionalRankRLS(
        ALPHA, loss="ranking" if ranking else "regression", intercept=free, kernel=kernel, tol=1e-12,
        pairwise="sum" if pairwise == "sum" else ["kronecker", "sum"], cv=2,
    ).fit(X, given, Z)  # fmt: skip
    weights = {"product": 0.0, "source": 1.0, "target": 1.0}
    keep = [(i, j) for i in range(6) for j in range(5) if not np.isnan(given[i, j])]
    found, shares = model.predict(X, Z), [None] if pairwise == "sum" else [0.0, 0.01, 0.1, 1.0, 10.0, None]
    gaps = []
    for share in shares:
        terms = weights if share is None else {"product": 1.0, "source": share, "target": share}
        exact = [refit(X, Y, Z, keep, e, ranking=ranking, kernel=kernel, free=free, pairwise=terms) for e in keep]
        exact = np.array([score + (0.0 if ranking else constant) for score, constant in exact])
        gaps.append(np.abs(found[tuple(np.transpose(keep))] - exact).max())
    assert min(gaps) < 1e-7


def test_the_width_of_a_kernel_is_chosen_with_alpha():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    Y = np.sin(3 * X[:, :1]) * np.cos(3 * X[:, 1]) + 0.1 * rng.normal(size=(40, 40))
    model = ConditionalRankRLS(kernel=Gaussian("auto")).fit(X, Y)
    from rankrls.kernels import as_kernel

    tried = [ConditionalRankRLS(kernel=k).fit(X, Y).cv_scores_.max() for k in as_kernel(Gaussian("auto")).candidates(X)]
    assert_allclose(model.cv_scores_.max(), max(tried))
    assert isinstance(model.kernel_.gamma, float)


def test_on_the_yeast_network_the_sum_ties_counting_partners():
    pd = pytest.importorskip("pandas")
    path = folder("yeast-protein-network")
    K = pd.read_csv(path / "kernel.tsv.xz", sep="\t", index_col=0)
    Y = pd.read_csv(path / "interactions.tsv.xz", sep="\t", index_col=0).loc[K.index, K.columns].to_numpy(dtype=float)
    S = K.to_numpy() / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    terms = {"pairwise": ["kronecker", "sum"], "alphas": np.logspace(-2, 1, 4), "tol": 1e-3}
    model = ConditionalRankRLS(kernel="precomputed", relation="symmetric", loss="regression", **terms)
    found = model.evaluate(S, Y, settings=[1], n_splits=5)[1].mean()  # weights and alpha by hold-out
    from rankrls.metrics import pairwise_accuracy
    from rankrls.selection import RelationKFold

    counted = []
    for train, test in RelationKFold(1, 5, same_objects=True).split(Y):
        mean = np.nanmean(train.of(Y), axis=0)
        held = test.of(Y)
        rows, columns = np.nonzero(~np.isnan(held))
        counted.append(pairwise_accuracy(held[rows, columns], mean[columns], rows))
    assert found > np.mean(counted)


@pytest.mark.parametrize("kernel", [None, Gaussian(0.3)], ids=["linear", "gaussian"])
@pytest.mark.parametrize("known", ["all", "some", "games"])
def test_objects_that_are_the_same_tie_in_held_out_scores(kernel, known):
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(7, 4))
    Z = kinds[rng.integers(7, size=60)]  # many objects, seven kinds
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, 60))
    if known == "games":
        i, j = rng.integers(60, size=(2, 400))
        model = ConditionalRankRLS(relation="reciprocal", kernel=kernel).fit_edges(
            Z, np.column_stack([i, j]), rng.normal(size=400)
        )
        which = np.unique(Z, axis=0, return_inverse=True)[1].ravel()  # a column in NumPy 2.0.0
        same = which[i] == which[j]
        assert same.any() and not model.cv_predictions_[same].any()  # equal players: nobody is ahead
        return
    if known == "some":
        Y[rng.random(Y.shape) < 0.3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is to be learned here
        model = ConditionalRankRLS(kernel=kernel, cv="auto" if known == "all" else RelationKFold(2, 3)).fit(X, Y, Z)
    for row in model.cv_predictions_:
        assert len(np.unique(row[np.isfinite(row)])) <= 7


@pytest.mark.parametrize("cv", ["leave-edge-out", "leave-row-out", "leave-column-out", "leave-both-out"])
def test_objects_with_nothing_in_common_are_tied_not_ranked_by_rounding(cv):
    Y = np.random.default_rng(0).normal(size=(60, 50))
    model = TwoStepRLS(kernel="precomputed", cv=cv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing was learned
        assert_array_equal(model.fit(np.eye(60), Y, np.eye(50)).cv_scores_, 0.5)


@pytest.mark.parametrize(("p", "r"), [(60, 50), (400, 30), (1100, 1000)])  # exact, interpolated, single precision
def test_rows_left_out_with_nothing_in_common_are_tied_not_ranked_by_rounding(p, r):
    Y = np.random.default_rng(0).normal(size=(p, r))
    model = ConditionalRankRLS(kernel="precomputed")
    with pytest.warns(UserWarning, match="nothing was learned"):
        assert_array_equal(model.fit(np.eye(p), Y, np.eye(r)).cv_scores_, 0.5)


@pytest.mark.parametrize(("p", "r"), [(60, 50), (400, 30)])
def test_rows_left_out_with_nothing_in_common_are_tied_beside_a_constant(p, r):
    Y = np.random.default_rng(0).normal(size=(p, r)) + 3
    model = ConditionalRankRLS(kernel="precomputed", loss="regression", intercept=True, cv="leave-row-out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing was learned
        assert_array_equal(model.fit(np.eye(p), Y, np.eye(r)).cv_scores_, 0.5)


def test_a_wide_kernel_of_features_in_single_precision_is_not_called_indefinite():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(50, 4)).astype(np.float32), rng.normal(size=(40, 3)).astype(np.float32)
    Y = X[:, :3] @ Z.T
    make = lambda: ConditionalRankRLS(ALPHA, kernel=Gaussian(0.001))  # nearly constant, so little is left by centring
    exact = make().fit(X.astype(float), Y, Z.astype(float)).predict(X.astype(float), Z.astype(float))
    assert_allclose(make().fit(X, Y, Z).predict(X, Z), exact, atol=1e-3 * np.abs(exact).max())


@pytest.mark.parametrize("ratio", [1e7, 1e14, 1e18])
@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)])
@pytest.mark.parametrize(
    "params",
    [{}, {"weighting": "pairs"}, {"loss": "regression"}, {"loss": "regression", "intercept": True}],
    ids=["items", "pairs", "values", "constant"],
)
def test_objects_that_outweigh_the_rest_are_held_out_as_by_refits(params, kernel, ratio):
    rng = np.random.default_rng(0)
    X, Z, Y = rng.normal(size=(12, 3)), rng.normal(size=(9, 4)), rng.normal(size=(12, 9))
    for heavy in ([4], [4, 7]):
        w = np.ones(12)
        w[heavy] = ratio, *[1e3] * (len(heavy) - 1)
        params = {"kernel": kernel, "target_kernel": kernel, **params}
        model = ConditionalRankRLS(alphas=[0.1], cv="leave-row-out", **params).fit(X, Y, Z, sample_weight=w)
        out = np.arange(12) != 4
        refit = ConditionalRankRLS(0.1, **params).fit(X[out], Y[out], Z, sample_weight=w[out])
        assert_allclose(model.cv_predictions_[4], refit.predict(X[[4]], Z)[0], rtol=1e-9, atol=1e-9)
        rows = np.repeat(np.arange(12), 9)
        score = pairwise_accuracy(Y.ravel(), model.cv_predictions_.ravel(), rows)
        assert_allclose(model.cv_scores_, [score], rtol=1e-12)


def test_few_objects_that_outweigh_the_rest_together_are_refitted():
    assert heavy_rows(None).size == 0
    assert heavy_rows(np.ones(5)).size == 0
    assert list(heavy_rows(np.array([1, 3, 1.0]))) == [1]
    assert list(heavy_rows(np.array([1, 1e7, 1, 1e7, 2]))) == [1, 3]
    assert list(heavy_rows(np.array([0, 2.0, 0]))) == [1]
    assert heavy_rows(np.append(np.ones(5), np.zeros(3))).size == 0
    assert heavy_rows(np.repeat([1.0, 1e-9], 1000)).size == 0


@pytest.mark.parametrize("params", [{}, {"loss": "regression", "intercept": True}])
def test_the_only_object_with_a_weight_is_scored_zero_without_it(params):
    X, Y, Z = small()
    model = ConditionalRankRLS(alphas=[ALPHA], cv="leave-row-out", **params)
    assert_array_equal(model.fit(X, Y, Z, sample_weight=np.eye(6)[2]).cv_predictions_[2], 0)


@pytest.mark.parametrize(
    ("weighting", "ratio"), [("items", 1e3), ("items", 1e7), ("items", 1e14), ("items", 1e18), ("pairs", 1e7)]
)
@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)], ids=["linear", "gaussian"])
def test_objects_beside_one_that_outweighs_them_are_learned_and_held_out_to_full_precision(kernel, ratio, weighting):
    rng = np.random.default_rng(0)
    X, Z, Y, new = (rng.normal(size=size) for size in ((12, 3), (9, 4), (12, 9), (5, 3)))
    w = np.where(np.arange(12) == 4, ratio, 1.0)
    gram = (lambda A, B: A @ B.T) if kernel is None else kernel
    K, factor = gram(Z, Z), w if weighting == "items" else 9 * w**2
    s, U = np.linalg.eigh(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean())
    s, U = s[s > 1e-9], U[:, s > 1e-9]

    def scores(rows, at):  # one ridge regression for each direction of the ranked objects, without roots of weights
        G, penalty = gram(X[rows], X[rows]), np.diag(0.1 / factor[rows])
        a = np.column_stack([np.linalg.solve(d * G + penalty, Y[rows] @ u) for d, u in zip(s, U.T, strict=True)])
        return gram(at, X[rows]) @ a @ U.T @ K

    params = {"kernel": kernel, "target_kernel": kernel, "weighting": weighting}
    model = ConditionalRankRLS(alphas=[0.1], cv="leave-row-out", **params).fit(X, Y, Z, sample_weight=w)
    assert_allclose(model.predict(new, Z), scores(np.arange(12), new), rtol=1e-8, atol=1e-8)
    expected = np.vstack([scores(np.delete(np.arange(12), i), X[[i]]) for i in range(12)])
    assert_allclose(model.cv_predictions_, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("params", [{}, {"loss": "regression"}, {"loss": "regression", "intercept": True}])
@pytest.mark.parametrize("kernel", [None, Gaussian(0.5)], ids=["linear", "gaussian"])
def test_edges_of_sparse_relations_are_left_out_as_of_dense_ones(kernel, params):
    X, Y, Z = small()
    Y[Y < 0] = 0
    make = lambda: ConditionalRankRLS(
        alphas=[ALPHA, 2 * ALPHA], missing="zero", cv="leave-edge-out", kernel=kernel, target_kernel=kernel, **params
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the best alpha is at an end
        assert_array_equal(make().fit(X, sparse.csr_array(Y), Z).cv_scores_, make().fit(X, Y, Z).cv_scores_)


@pytest.mark.parametrize("ratio", [1, 1e7, 1e14, 1e18])
def test_edges_of_an_object_that_outweighs_the_rest_are_left_out_as_by_refits(ratio):
    X, Y, Z = small()
    kernel, w = Gaussian(0.5), np.where(np.arange(6) == 2, ratio, 1.0)
    held = ConditionalRankRLS(
        alphas=[0.1], kernel=kernel, target_kernel=kernel, loss="regression", cv="leave-edge-out"
    ).fit(X, Y, Z, sample_weight=w)
    M, penalty, expected = np.kron(kernel(X, X), kernel(Z, Z)), np.repeat(0.1 / w, 5), np.empty(30)
    for e in range(30):
        o = np.delete(np.arange(30), e)
        expected[e] = M[e, o] @ np.linalg.solve(M[np.ix_(o, o)] + np.diag(penalty[o]), Y.ravel()[o])
    assert_allclose(held.cv_predictions_.ravel(), expected, rtol=1e-8, atol=1e-8)
