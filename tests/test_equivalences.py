"""A lattice of exact equalities: each row of the table is "this model = that one".

A side of a row is a function (X, y, qid) -> scores of X, up to a constant per query where ranking does not see it.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import oracles
from cases import problem, weights
from papers import RankRLS
from rankrls import ConditionalRankRLS, RankingPursuit, View
from rankrls.core.features import Identity
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.kernels import Gaussian, Linear
from rankrls.problems.iterative import Iterative
from rankrls.problems.primal import Primal

GAMMA = 0.05
U = weights(40)


def rank_rls(alpha=0.7, *, weights=None, tied_pairs=True, **params):
    params["tied_pairs"] = tied_pairs
    return lambda X, y, qid: RankRLS(alpha, **params).fit(X, y, qid=qid, sample_weight=weights).predict(X)


def oracle(alpha=0.7, *, kernel=False, u=None, **loss):
    def scores(X, y, qid):
        Lt = oracles.laplacian(y, qid, u=u, **loss)
        if kernel:
            K = oracles.gaussian(X, X, GAMMA)
            return K @ oracles.kernel_ridge(K, y, Lt, alpha, intercept=loss.get("beta", 0) > 0)[0]
        w, b = oracles.ridge(X, y, Lt, alpha, intercept=loss.get("beta", 0) > 0)
        return X @ w + b

    return scores


def explicit_pairs(*, alpha=0.7, kernel=None, rows=np.asarray):
    def scores(X, y, qid):
        pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]]
        margins = [y[i] - y[j] for i, j in pairs]
        return RankRLS(alpha, kernel=kernel).fit_pairs(rows(X), pairs, margins=margins).predict(rows(X))

    return scores


def blocks(*, forget=False, **params):
    """Learned in three parts, and, with `forget`, one more that is taken back."""

    def scores(X, y, qid):
        model = RankRLS(0.7, **{"tied_pairs": True, **params})
        for part in (qid < 2, (qid >= 2) & (qid < 5), qid >= 5):
            model.partial_fit(X[part], y[part], qid=qid[part])
        if forget:
            other = problem(seed=9)
            model.partial_fit(other[0], other[1], qid=other[2])
            model.forget(other[0], other[1], qid=other[2])
        return model.predict(X)

    return scores


def scattered_parts(**params):
    """A table in batches of seven rows, whose queries lie in several of them."""

    def scores(X, y, qid):
        table = pa.table({**{f"f{j}": X[:, j] for j in range(X.shape[1])}, "y": y, "qid": qid})
        source = pa.dataset.dataset(pa.Table.from_batches(table.to_batches(7)))
        model = RankRLS(0.7, **{"tied_pairs": True, **params}).fit(source, y="y", qid="qid")
        return model.predict(pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]))

    return scores


def conjugate_gradients(tied, beta):
    def scores(X, y, qid):
        F = QueryPreferences(Queries.of(qid), None if tied else y, regression=beta)
        model = Iterative(F, sparse.csr_array(X), y[:, None], tol=1e-13).model(0.7)
        return (X @ model.coef + model.intercept).ravel()

    return scores


def conditional(X, y, qid):
    """Queries condition, items are ranked, and all queries have the same features: a single one."""
    model = ConditionalRankRLS(0.7, target_kernel="linear", kernel="precomputed", tol=1e-13)
    edges = np.column_stack([qid, np.arange(len(y))])
    return model.fit_edges(np.ones((7, 7)), edges, y, X).predict(np.ones((1, 7)), X).ravel()


def normal_equations(tied, beta):
    def scores(X, y, qid):
        F = QueryPreferences(Queries.of(qid), None if tied else y, regression=beta)
        model = Primal(F, Identity(X.shape[1]), X, y[:, None], np.float64).model(0.7)
        return (X @ model.coef + model.intercept).ravel()

    return scores


def sparse_input(**params):
    params = {"tied_pairs": True, **params}
    return lambda X, y, qid: RankRLS(0.7, **params).fit(sparse.csr_array(X), y, qid=qid).predict(sparse.csr_array(X))


def repeated(**params):
    def scores(X, y, qid):
        n = U.astype(int)
        return (
            RankRLS(0.7, **{"tied_pairs": True, **params})
            .fit(X.repeat(n, axis=0), y.repeat(n), qid=qid.repeat(n))
            .predict(X)
        )

    return scores


def ridge_regression(X, y, qid):
    return Ridge(alpha=0.7).fit(X, y).predict(X)


def precomputed(X, y, qid):
    K = Gaussian(GAMMA)(X, X)
    return RankRLS(0.7, kernel="precomputed", tied_pairs=True).fit(K, y, qid=qid).predict(K)


def nystroem_of_every_point(X, y, qid):
    return RankRLS(0.7, kernel=Gaussian(GAMMA), basis=X, tied_pairs=True).fit(X, y, qid=qid).predict(X)


def pursuit(n=6, *, rows=np.asarray, **params):
    """Ranking pursuit, of all columns by default: least squares, with the penalty of RankRLS next to nothing."""
    return lambda X, y, qid: RankingPursuit(n, kernel=None, **params).fit(rows(X), y, qid=qid).predict(rows(X))


def two_pursuits(**params):
    """The mean of the pursuits of two halves of the columns."""

    def scores(X, y, qid):
        halves = X[:, :3], X[:, 3:]
        return np.mean([pursuit(2, **params)(half, y, qid) for half in halves], axis=0)

    return scores


HALVES = {"views": [View([0, 1, 2]), View([3, 4, 5])]}


def wide(side):
    """The same side on data with more columns than rows."""
    return lambda X, y, qid: side(np.hstack([X, np.cos(X @ np.ones((6, 50)) * np.arange(50))]), y, qid)


CASES = {
    "primal = normal equations over pairs": (rank_rls(weighting="pairs"), oracle()),
    "primal, each query counts once": (rank_rls(weighting="queries"), oracle(weighting="queries")),
    "primal, each item counts once": (rank_rls(weighting="items"), oracle(weighting="items")),
    "tied pairs out": (rank_rls(weighting="pairs", tied_pairs=False), oracle(tied=False)),
    "tied pairs out, weighted": (
        rank_rls(weighting="queries", tied_pairs=False, weights=U),
        oracle(tied=False, weighting="queries", u=U),
    ),
    "a weight = copies of a row, pairs": (rank_rls(weighting="pairs", weights=U), repeated(weighting="pairs")),
    "a weight = copies of a row, queries": (rank_rls(weighting="queries", weights=U), repeated(weighting="queries")),
    "a weight = copies of a row, items": (rank_rls(weighting="items", weights=U), repeated(weighting="items")),
    "a weight = copies of a row, ties out": (
        rank_rls(weighting="queries", tied_pairs=False, weights=U),
        repeated(weighting="queries", tied_pairs=False),
    ),
    "regression mixed in": (rank_rls(weighting="pairs", regression=0.3), oracle(beta=0.3)),
    "regression = 1 is ridge regression": (rank_rls(regression=1.0), ridge_regression),
    "dual = primal, linear kernel": (rank_rls(kernel="linear"), rank_rls()),
    "dual = primal, linear kernel, regression mixed in": (
        rank_rls(kernel=Linear(), regression=0.4, tied_pairs=False, weights=U),
        rank_rls(regression=0.4, tied_pairs=False, weights=U),
    ),
    "more columns than rows": (wide(rank_rls(weighting="pairs")), wide(oracle())),
    "more columns than rows, sparse": (wide(sparse_input(weighting="pairs")), wide(oracle())),
    "kernel = normal equations over pairs": (rank_rls(kernel=Gaussian(GAMMA), weighting="pairs"), oracle(kernel=True)),
    "kernel, tied pairs out": (
        rank_rls(kernel=Gaussian(GAMMA), weighting="queries", tied_pairs=False),
        oracle(kernel=True, tied=False, weighting="queries"),
    ),
    "kernel, precomputed": (precomputed, rank_rls(kernel=Gaussian(GAMMA))),
    "kernel as a function": (rank_rls(kernel=lambda X, Z: Gaussian(GAMMA)(X, Z)), rank_rls(kernel=Gaussian(GAMMA))),
    "kernel, every point a basis vector": (nystroem_of_every_point, rank_rls(kernel=Gaussian(GAMMA))),
    "kernel on sparse rows": (sparse_input(kernel=Gaussian(GAMMA)), rank_rls(kernel=Gaussian(GAMMA))),
    "explicit pairs": (explicit_pairs(), rank_rls(weighting="pairs", tied_pairs=False)),
    "explicit pairs, sparse rows": (
        explicit_pairs(rows=sparse.csr_array),
        rank_rls(weighting="pairs", tied_pairs=False),
    ),
    "explicit pairs, more columns than rows": (
        wide(explicit_pairs(rows=sparse.csr_array)),
        wide(rank_rls(weighting="pairs", tied_pairs=False)),
    ),
    "explicit pairs, kernel": (
        explicit_pairs(kernel=Gaussian(GAMMA)),
        rank_rls(kernel=Gaussian(GAMMA), weighting="pairs", tied_pairs=False),
    ),
    "conjugate gradients": (conjugate_gradients(True, 0.0), normal_equations(True, 0.0)),
    "conjugate gradients, ties out, regression": (conjugate_gradients(False, 0.3), normal_equations(False, 0.3)),
    "sparse rows": (sparse_input(weighting="queries"), rank_rls(weighting="queries")),
    "sparse rows, ties out, regression": (
        sparse_input(tied_pairs=False, regression=0.2),
        rank_rls(tied_pairs=False, regression=0.2),
    ),
    "blocks summed = one fit": (blocks(), rank_rls()),
    "blocks summed, regression mixed in": (blocks(regression=0.3), rank_rls(regression=0.3)),
    "blocks summed, ties out": (blocks(tied_pairs=False), rank_rls(tied_pairs=False)),
    "conditional on queries that are all alike": (conditional, rank_rls(weighting="items")),
    "queries scattered over parts = one fit": (scattered_parts(), rank_rls()),
    "scattered over parts, regression, ties out": (
        scattered_parts(regression=0.3, tied_pairs=False, weighting="queries"),
        rank_rls(regression=0.3, tied_pairs=False, weighting="queries"),
    ),
    "forgotten = never seen": (blocks(forget=True), rank_rls()),
    "pursuit of all atoms": (pursuit(weighting="pairs"), rank_rls(1e-11, tied_pairs=False, weighting="pairs")),
    "pursuit of all atoms, regression mixed in": (
        pursuit(regression=0.3),
        rank_rls(1e-11, tied_pairs=False, regression=0.3),
    ),
    "pursuit of all atoms, sparse rows": (pursuit(rows=sparse.csr_array), pursuit()),
    "pursuit of two views that need not agree": (pursuit(2, **HALVES), two_pursuits()),
    "pursuit of two views, ties in, regression": (
        pursuit(2, tied_pairs=True, regression=0.3, **HALVES),
        two_pursuits(tied_pairs=True, regression=0.3),
    ),
    "forgotten = never seen, regression mixed in": (blocks(forget=True, regression=0.3), rank_rls(regression=0.3)),
}


def up_to_query_constants(scores, qid):
    """Scores with the mean of every query taken off."""
    means = np.bincount(qid, weights=scores) / np.bincount(qid)
    return scores - means[qid]


@pytest.mark.parametrize("case", CASES)
def test_equivalence(case):
    X, y, qid = problem()
    this, that = (side(X, y, qid) for side in CASES[case])
    if "regression" not in case:
        this, that = up_to_query_constants(this, qid), up_to_query_constants(that, qid)
    scale = np.abs(that).max()
    tolerance = 1e-6 if "basis vector" in case or "pairs, kernel" in case else 1e-9
    assert_allclose(this, that, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("weighting", ["pairs", "queries", "items"])
@pytest.mark.parametrize("one_query", [True, False])
def test_copies_of_an_item_tie_with_each_other(weighting, one_query):
    """Labels all differ, so there are no ties but those among the copies a weight stands for."""
    X, _, qid = problem()
    y, n = X[:, 0] + np.random.default_rng(0).normal(size=40), U.astype(int)
    qid = np.zeros(40, dtype=int) if one_query else qid
    params = {"weighting": weighting, "tied_pairs": False}
    weighted = RankRLS(0.7, **params).fit(X, y, qid=qid, sample_weight=U)
    copied = RankRLS(0.7, **params).fit(X.repeat(n, axis=0), y.repeat(n), qid=qid.repeat(n))
    assert_allclose(weighted.coef_, copied.coef_, atol=1e-10)


def test_one_query_is_kernel_ridge_on_centred_data():
    X, y, _ = problem()
    C = np.eye(40) - 1 / 40
    K = Gaussian(GAMMA)(X, X)
    ours = RankRLS(0.7, kernel="precomputed", weighting="items", tied_pairs=True).fit(K, y).predict(K)
    theirs = KernelRidge(alpha=0.7, kernel="precomputed").fit(C @ K @ C, C @ y).predict(C @ K @ C)
    assert_allclose(C @ ours, C @ theirs, atol=1e-9)


def test_several_targets_share_one_factorisation():
    X, y, qid = problem()
    Y = np.column_stack([y, -2 * y, X[:, 0]])
    for params in ({}, {"kernel": "rbf"}, {"regression": 0.3}, {"alpha": "auto", "alphas": [0.3]}):
        params = {"alpha": 0.7, "tied_pairs": True, **params}
        model = RankRLS(**params).fit(X, Y, qid=qid)
        assert model.predict(X).shape == (40, 3)
        for t in range(3):
            single = RankRLS(**params).fit(X, Y[:, t], qid=qid)
            assert_allclose(model.predict(X)[:, t], single.predict(X), atol=1e-9)
            if params["alpha"] == "auto":
                assert_allclose(model.cv_predictions_[:, t], single.cv_predictions_, atol=1e-9)


def test_kernel_path_and_single_alpha_agree():
    X, y, qid = problem()
    for params in ({"kernel": Gaussian(GAMMA)}, {}, {"kernel": Gaussian(GAMMA), "regression": 0.2}):
        one = RankRLS(0.05, **params).fit(X, y, qid=qid)
        path = RankRLS(alphas=[0.05], **params).fit(X, y, qid=qid)
        assert_allclose(one.predict(X), path.predict(X), atol=1e-10)


def test_components_of_explicit_pairs_are_held_out_like_queries():
    X, y, qid = problem()
    X = X + 0.01 * np.random.default_rng(3).normal(size=X.shape)  # no duplicates, hence no tied scores
    pairs = np.array([(i, j) for i in range(40) for j in range(40) if qid[i] == qid[j] and y[i] > y[j]])
    margins = y[pairs[:, 0]] - y[pairs[:, 1]]
    model = RankRLS(alphas=[0.3]).fit_pairs(X, pairs, margins=margins)
    same = RankRLS(alphas=[0.3]).fit_pairs(sparse.csr_array(X), pairs, margins=margins)
    assert_allclose(same.cv_scores_, model.cv_scores_)
    queries = RankRLS(alphas=[0.3], weighting="pairs", tied_pairs=False).fit(X, y, qid=qid)
    held = queries.cv_predictions_[pairs[:, 0]] - queries.cv_predictions_[pairs[:, 1]]
    assert_allclose(model.cv_scores_, np.mean(held > 0))


def test_linked_pairs_are_held_out_one_by_one():
    X, _, _ = problem()
    rng = np.random.default_rng(0)
    chain = np.column_stack([np.arange(39), np.arange(1, 40)])
    pairs = np.vstack([chain, rng.integers(0, 40, (30, 2))])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    w = rng.uniform(0.5, 2, len(pairs))
    model = RankRLS(alphas=[0.3]).fit_pairs(X, pairs, weights=w)
    same = RankRLS(alphas=[0.3]).fit_pairs(sparse.csr_array(X), pairs, weights=w)
    assert_allclose(same.cv_scores_, model.cv_scores_)
    right = []
    for p in range(len(pairs)):
        rest = np.delete(np.arange(len(pairs)), p)
        refit = RankRLS(0.3).fit_pairs(X, pairs[rest], weights=w[rest]).predict(X)
        right.append(refit[pairs[p, 0]] > refit[pairs[p, 1]])
    assert_allclose(model.cv_scores_, np.average(right, weights=w))
