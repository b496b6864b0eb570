"""Accuracy against multi-precision arithmetic: collinear, rank-deficient and badly scaled data, extreme alphas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import oracles
from cases import problem
from papers import RankRLS
from rankrls import ConvergenceWarning
from rankrls.core.krylov import multishift_cg
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.kernels import Gaussian, Linear
from rankrls.problems.iterative import Iterative
from rankrls.system.limits import limited

pytest.importorskip("mpmath")
ALPHAS = [2.0**e for e in (-30, -15, 0, 15, 30)]


def duplicated(X):
    return np.hstack([X, X[:, :2], X @ np.ones((X.shape[1], 1))])


def nearly_collinear(X):
    return np.hstack([X, X[:, :2] + 1e-5 * np.random.default_rng(5).normal(size=(len(X), 2))])


def badly_scaled(X):
    return X * 10.0 ** np.linspace(-2, 3, X.shape[1])


def with_query_offsets(X):
    return X + 1e4 * np.round(np.random.default_rng(6).normal(size=(7, X.shape[1])))[OFFSET_QID]


def zero_column(X):
    return np.hstack([X, np.zeros((len(X), 1))])


def wide(X):
    return np.hstack([X, np.random.default_rng(7).normal(size=(len(X), 50))])


OFFSET_QID = problem()[2]
DATA = [duplicated, nearly_collinear, badly_scaled, with_query_offsets, zero_column, wide]


@pytest.mark.parametrize("transform", DATA)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("path", [False, True])
def test_linear_scores_match_high_precision(transform, alpha, path):
    X, y, qid = problem()
    X = transform(X)
    Lt = oracles.laplacian(y, qid, weighting="pairs", tied=False)
    _, exact = oracles.high_precision_ridge(X, y, Lt, alpha)
    alpha_or_grid = {"alphas": [alpha]} if path else {"alpha": alpha}
    scores = RankRLS(**alpha_or_grid, weighting="pairs", tied_pairs=False).fit(X, y, qid=qid).predict(X)
    C = np.eye(len(y)) - (qid[:, None] == qid) / np.bincount(qid)[qid]
    # what ranking sees: differences within queries, relative to their size
    tolerance = 1e-8
    assert_allclose(C @ scores, C @ exact, rtol=0, atol=tolerance * np.abs(C @ exact).max())


@pytest.mark.parametrize("alpha", ALPHAS)
def test_rank_deficient_kernels(alpha):
    """A linear kernel of few columns, and a Gaussian one with duplicate points."""
    X, y, qid = problem(n=3)
    linear = RankRLS(alpha).fit(X, y, qid=qid).predict(X)
    dual = RankRLS(alpha, kernel=Linear()).fit(X, y, qid=qid).predict(X)
    path = RankRLS(alphas=[alpha], kernel=Linear()).fit(X, y, qid=qid).predict(X)
    basis = RankRLS(alpha, kernel=Linear(), basis=X).fit(X, y, qid=qid).predict(X)
    C = np.eye(len(y)) - (qid[:, None] == qid) / np.bincount(qid)[qid]
    for scores in (dual, path, basis):
        assert_allclose(C @ scores, C @ linear, rtol=0, atol=1e-5 * np.abs(linear).max())
    doubled = np.vstack([X, X])
    K = Gaussian(0.1)
    scores = RankRLS(alpha, kernel=K).fit(doubled, np.tile(y, 2), qid=np.tile(qid, 2)).predict(X)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("alpha", [2.0**-30, 1.0, 2.0**30])
@pytest.mark.parametrize("kernel", [None, Gaussian(0.1)])
def test_leave_query_out_at_extreme_alphas(alpha, kernel):
    X, y, qid = problem()
    model = RankRLS(alphas=[alpha], weighting="queries", tied_pairs=True, kernel=kernel)
    got = model.fit(X, y, qid=qid).cv_predictions_
    for q in (1, 3):
        fold, rest = np.flatnonzero(qid == q), np.flatnonzero(qid != q)
        Lt = oracles.laplacian(y[rest], qid[rest], weighting="queries")
        if kernel is None:
            exact = X[fold] @ oracles.high_precision_ridge(X[rest], y[rest], Lt, alpha)[0]
        else:
            exact = oracles.high_precision_kernel_scores(kernel(X, X), y[rest], Lt, alpha, rest, fold)
        assert_allclose(got[fold], exact, rtol=0, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("params", [{}, {"kernel": Gaussian(0.1)}, {"kernel": Gaussian(0.1), "basis": list(range(20))}])
def test_float32_in_float32_out(params):
    X, y, qid = problem(m=200, n_queries=20)
    X32 = X.astype(np.float32)
    double, single = (RankRLS(alphas=[1.0], **params).fit(data, y, qid=qid) for data in (X, X32))
    assert single.predict(X32).dtype == single.cv_predictions_.dtype == np.float32
    assert (single.dual_coef_ if params else single.coef_).dtype == np.float32
    for a, b in ((single.predict(X32), double.predict(X)), (single.cv_predictions_, double.cv_predictions_)):
        assert_allclose(a, b, rtol=0, atol=1e-3 * np.abs(b).max())


def test_multishift_conjugate_gradients_solve_every_shift():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 30)) * np.logspace(0, -2, 30)
    b = rng.normal(size=30)
    shifts = np.array([1e-3, 0.1, 10.0, 1e4])
    found = multishift_cg(lambda v: A.T @ (A @ v), b, shifts, tol=1e-12)
    assert found.converged
    for k, shift in enumerate(shifts):
        assert_allclose(found.value[:, k], np.linalg.solve(A.T @ A + shift * np.eye(30), b), rtol=1e-6, atol=1e-9)
        residual = b - A.T @ (A @ found.value[:, k]) - shift * found.value[:, k]
        assert np.linalg.norm(residual) <= 1e-9 * np.linalg.norm(b)


def test_many_sparse_features_take_the_iterative_solver():
    X, y, qid = problem(m=60, n=12, n_queries=10)
    rows = sparse.csr_array(np.where(np.abs(X) > 1, X, 0))
    with limited(gram_columns=5):
        model = RankRLS(alphas=[0.5, 5.0]).fit(rows, y, qid=qid)
    exact = RankRLS(alphas=[0.5, 5.0], cv=5).fit(rows, y, qid=qid)
    assert_allclose(model.cv_scores_, exact.cv_scores_, atol=1e-6)
    assert_allclose(model.coef_, exact.coef_, atol=1e-6)


def test_the_iterative_solver_says_when_it_did_not_converge():
    X, y, qid = problem(m=60, n=12, n_queries=10)
    solver = Iterative(QueryPreferences(Queries.of(qid)), sparse.csr_array(X), y[:, None], max_iter=2)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations with relative residual"):
        solver.model(1e-3)
