"""Sparse RankRLS: basis points by any method, kernel widths by hold-out, a stream instead of a matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import oracles
from cases import problem
from papers import RankRLS
from rankrls.bases import KMeansCentres, PivotedCholesky, RandomRows
from rankrls.core.features import Nystroem
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.kernels import Gaussian, Linear, Polynomial
from rankrls.problems.primal import Primal

X, Y, QID = problem(m=80, n_queries=10)
METHODS = [RandomRows, KMeansCentres, PivotedCholesky]


@pytest.mark.parametrize("method", METHODS)
def test_a_basis_has_the_size_asked_for_and_is_drawn_by_seed(method):
    rng = lambda: np.random.default_rng(0)
    points = method(12).choose(X, Gaussian(0.1), rng())
    assert points.shape == (12, 6)
    assert_array_equal(points, method(12).choose(X, Gaussian(0.1), rng()))
    models = [RankRLS(kernel=Gaussian(0.1), basis=method(12), random_state=s).fit(X, Y, qid=QID) for s in (0, 0, 1)]
    assert_allclose(models[0].predict(X), models[1].predict(X))
    assert not np.allclose(models[0].predict(X), models[2].predict(X))


@pytest.mark.parametrize("method", [RandomRows, PivotedCholesky])
def test_rows_of_sparse_data_can_be_a_basis(method):
    rows = sparse.csr_array(X)
    model = RankRLS(kernel=Gaussian(0.1), basis=method(12), random_state=0).fit(rows, Y, qid=QID)
    dense = RankRLS(kernel=Gaussian(0.1), basis=method(12), random_state=0).fit(X, Y, qid=QID)
    assert_allclose(model.predict(rows), dense.predict(X), atol=1e-8)
    with pytest.raises(TypeError, match="dense rows"):
        RankRLS(kernel="rbf", basis=KMeansCentres(5)).fit(rows, Y, qid=QID)


def test_pivoted_cholesky_stops_when_the_rows_drawn_span_all_others():
    low = X[:, :2] @ np.ones((2, 6))
    points = PivotedCholesky(30).choose(low, Linear(), np.random.default_rng(0))
    assert len(points) == 1
    assert len(PivotedCholesky(10).choose(np.repeat(X[:3], 20, axis=0), Gaussian(1.0), np.random.default_rng(0))) == 3


def test_duplicate_and_collinear_basis_points_are_cut_off():
    basis = np.vstack([X[:10], X[:10], X[:1] + 1e-12])
    model = RankRLS(0.5, kernel=Gaussian(0.1), basis=basis).fit(X, Y, qid=QID)
    plain = RankRLS(0.5, kernel=Gaussian(0.1), basis=X[:10]).fit(X, Y, qid=QID)
    assert_allclose(model.predict(X), plain.predict(X), atol=1e-6 * np.abs(plain.predict(X)).max())
    poly = RankRLS(0.5, kernel=Polynomial(2, 0.1), basis=X).fit(X, Y, qid=QID)
    full = RankRLS(0.5, kernel=Polynomial(2, 0.1)).fit(X, Y, qid=QID)
    assert_allclose(poly.predict(X), full.predict(X), atol=1e-5 * np.abs(full.predict(X)).max())


def test_subset_of_regressors_is_a_full_model_with_a_modified_kernel():
    """Paper 002, section 3.4: the kernel k(x, R) K_RR^-1 k(R, z)."""
    R = X[::7]
    K_mr, K_rr = Gaussian(0.1)(X, R), Gaussian(0.1)(R, R)
    modified = K_mr @ np.linalg.solve(K_rr, K_mr.T)
    sparse_model = RankRLS(0.3, kernel=Gaussian(0.1), basis=R).fit(X, Y, qid=QID)
    full = RankRLS(0.3, kernel="precomputed").fit((modified + modified.T) / 2, Y, qid=QID)
    assert_allclose(sparse_model.predict(X), full.predict(modified), atol=1e-7 * np.abs(full.predict(modified)).max())


def test_held_out_scores_of_a_sparse_model_equal_refits():
    R = X[::7]
    model = RankRLS(alphas=[0.3], kernel=Gaussian(0.1), basis=R).fit(X, Y, qid=QID)
    K_mr, K_rr = Gaussian(0.1)(X, R), Gaussian(0.1)(R, R)
    for q in (1, 2, 5):
        rest, fold = np.flatnonzero(q != QID), np.flatnonzero(q == QID)
        Lt = oracles.laplacian(Y[rest], QID[rest], tied=False, weighting="items")
        w, _ = oracles.ridge(K_mr[rest], Y[rest], Lt, 0.3, penalty=K_rr)
        assert_allclose(model.cv_predictions_[fold], K_mr[fold] @ w, atol=1e-7)


def test_gamma_auto_takes_the_width_of_the_best_held_out_score():
    candidates = Gaussian("auto").candidates(X)
    assert len({kernel.gamma for kernel in candidates}) == 6
    for extra in ({}, {"basis": 20, "random_state": 0}):
        auto = RankRLS(kernel=Gaussian("auto"), **extra).fit(X, Y, qid=QID)
        models = [RankRLS(kernel=kernel, **extra).fit(X, Y, qid=QID) for kernel in candidates]
        best = max(models, key=lambda model: model.cv_scores_.max())
        assert auto.kernel_ == best.kernel_
        assert_allclose(auto.predict(X), best.predict(X))
    assert RankRLS(1.0, kernel=Gaussian("auto")).fit(X, Y, qid=QID).kernel_ in candidates
    with pytest.raises(ValueError, match='"scale", "auto" or a list'):
        RankRLS(kernel=Gaussian("medium")).fit(X, Y, qid=QID)


def test_precomputed_kernels_with_a_basis():
    K = Gaussian(0.1)(X, X)
    chosen = np.array([3, 8, 20, 41])
    precomputed = RankRLS(0.5, kernel="precomputed", basis=chosen).fit(K, Y, qid=QID)
    direct = RankRLS(0.5, kernel=Gaussian(0.1), basis=chosen).fit(X, Y, qid=QID)
    assert_allclose(precomputed.predict(K), direct.predict(X), atol=1e-9)
    drawn = RankRLS(0.5, kernel="precomputed", basis=9, random_state=0).fit(K, Y, qid=QID)
    assert drawn.predict(K).shape == (80,)
    u = np.ones(80)
    u[50:] = 0
    weighted = RankRLS(0.5, kernel="precomputed", basis=chosen).fit(K, Y, qid=QID, sample_weight=u)
    kept = RankRLS(0.5, kernel=Gaussian(0.1), basis=X[chosen]).fit(X[:50], Y[:50], qid=QID[:50])
    assert_allclose(weighted.predict(K), kept.predict(X), atol=1e-9)
    with pytest.raises(ValueError, match=r"basis of a precomputed kernel .* got \(80, 6\)"):
        RankRLS(0.5, kernel="precomputed", basis=X).fit(K, Y, qid=QID)


@pytest.mark.parametrize("numbers", [[41, 3, 20, 8], [-39, 3, 20, 8], [3, 3, 8, 20, 41, 8]])
def test_row_numbers_in_any_order_negative_or_repeated_name_the_same_points(numbers):
    K, u = Gaussian(0.1)(X, X), np.ones(80)
    u[[8, 60, 70]] = 0  # a basis point that weighs nothing is a point still
    for weights in (None, u):
        given = X[[41, 3, 20, 8]]
        expected = RankRLS(0.5, kernel=Gaussian(0.1), basis=given).fit(X, Y, qid=QID, sample_weight=weights)
        for kernel, rows in (("precomputed", K), (Gaussian(0.1), X)):
            model = RankRLS(0.5, kernel=kernel, basis=numbers).fit(rows, Y, qid=QID, sample_weight=weights)
            assert_allclose(model.predict(rows), expected.predict(X), atol=1e-8)
            assert len(model.dual_coef_) == 4


@pytest.mark.parametrize("method", [*METHODS, int])
def test_points_do_not_depend_on_the_order_or_the_repetition_of_rows(method):
    rng = np.random.default_rng(0)
    n = rng.integers(0, 4, size=80).astype(float)
    weighted = RankRLS(0.5, kernel="rbf", basis=method(12), random_state=3).fit(X, Y, qid=QID, sample_weight=n)
    rows = rng.permutation(np.repeat(np.arange(80), n.astype(int)))
    repeated = RankRLS(0.5, kernel="rbf", basis=method(12), random_state=3).fit(X[rows], Y[rows], qid=QID[rows])
    assert_allclose(weighted.X_fit_, repeated.X_fit_, atol=1e-12)
    assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9)
    other = RankRLS(0.5, kernel="rbf", basis=method(12), random_state=4).fit(X, Y, qid=QID, sample_weight=n)
    assert not np.allclose(np.sort(other.X_fit_, axis=0), np.sort(weighted.X_fit_, axis=0))


def test_keys_of_rows_are_of_their_values():
    from rankrls.system.rows import DistinctRows, row_keys

    A = np.where(np.abs(X) < 0.5, 0.0, X)
    keys = row_keys(A, 7)
    assert len(np.unique(keys)) == len(np.unique(A, axis=0))
    assert_array_equal(row_keys(sparse.csr_array(A), 7), keys)
    assert_array_equal(row_keys(np.asfortranarray(np.where(A == 0, -0.0, A)), 7), keys)
    assert not np.any(row_keys(A, 8) == keys) and not np.any(row_keys(A[:, ::-1], 7) == keys)
    whole = DistinctRows.of(A, None, 30, 7)
    parts = DistinctRows.of(A[50:], None, 30, 7) + DistinctRows.of(A[:50], None, 30, 7)
    assert_array_equal(whole.X, parts.X)
    assert_array_equal(whole.keys, np.unique(keys)[:30])


def test_a_basis_larger_than_the_rows_is_all_of_them_and_one_beyond_memory_is_refused(limit):
    model = RankRLS(0.5, kernel="rbf", basis=RandomRows(100_000), random_state=0).fit(X, Y, qid=QID)
    assert_allclose(model.predict(X), RankRLS(0.5, kernel="rbf").fit(X, Y, qid=QID).predict(X), atol=1e-6)
    limit(free_memory=1e4)
    with pytest.raises(MemoryError, match="a basis of 80 points needs .* take a smaller one"):
        RankRLS(0.5, kernel="rbf", basis=100_000).fit(X, Y, qid=QID)


def test_bad_bases_and_widths_are_named():
    points = X[:3].copy()
    points[1, 2] = np.nan
    for basis, message in (
        (points, "must be finite: point 1 has NaN"),
        ([90], "empty or has rows outside 0 to 79; got 90"),
        ([], "basis must be|rows outside"),
        (np.ones(80, dtype=bool), "use np.flatnonzero"),
        (0, "at least one point"),
    ):
        with pytest.raises(ValueError, match=message):
            RankRLS(0.5, kernel="rbf", basis=basis).fit(X, Y, qid=QID)
    for gamma in (np.nan, -1.0, 0, np.inf):
        with pytest.raises(ValueError, match="gamma must be a positive number"):
            RankRLS(0.5, kernel=Gaussian(gamma)).fit(X, Y, qid=QID)


@pytest.mark.parametrize(("dtype", "offset", "bound"), [(np.float32, 300.0, 1e-4), (np.float64, 1e7, 1e-8)])
def test_a_gaussian_kernel_far_from_the_origin(dtype, offset, bound):
    A = X.astype(dtype) + dtype(offset)
    exact = oracles.gaussian(A.astype(np.longdouble), A.astype(np.longdouble), 0.1)
    assert np.max(np.abs(Gaussian(0.1)(A, A[:50]) - exact[:, :50])) < bound
    assert_allclose(Gaussian("scale").fitted(A).gamma, 1 / (6 * A.astype(np.longdouble).var()), rtol=1e-5)
    assert_allclose(Gaussian("auto").candidates(A)[0].gamma, Gaussian("auto").candidates(X)[0].gamma, rtol=1e-3)


def test_sums_of_nearly_dependent_points_are_not_added_up_silently():
    X_far = 1e-3 * X  # every kernel value is nearly one
    model = RankRLS(0.5, kernel=Gaussian(0.1), basis=15, scale=None, random_state=0)
    with pytest.warns(UserWarning, match="nearly dependent under this kernel: .* of 12 directions"):
        model.partial_fit(X_far, Y, qid=QID)


def test_adding_and_forgetting_with_a_fixed_basis():
    first, second = QID < 6, QID >= 6
    model = RankRLS(0.5, kernel=Gaussian([0.3, 1.0]), basis=15, random_state=0)
    model.partial_fit(X[first], Y[first], qid=QID[first])
    model.partial_fit(X[second], Y[second], qid=QID[second])
    whole = RankRLS(0.5, kernel=model.kernel_, basis=model.X_fit_).fit(X, Y, qid=QID)
    assert_allclose(model.predict(X), whole.predict(X), atol=1e-8)
    model.forget(X[second], Y[second], qid=QID[second])
    before = RankRLS(0.5, kernel=model.kernel_, basis=model.X_fit_).fit(X[first], Y[first], qid=QID[first])
    assert_allclose(model.predict(X), before.predict(X), atol=1e-7)


def test_the_matrix_of_kernel_values_is_never_whole(monkeypatch):
    """No block of kernel values is longer than a batch."""
    seen = []
    plain = Gaussian.__call__

    def watched(self, A, B):
        seen.append(A.shape[0])
        return plain(self, A, B)

    monkeypatch.setattr(Gaussian, "__call__", watched)
    F = QueryPreferences(Queries.of(np.asarray(QID), batch_rows=16), Y)
    problem = Primal(F, Nystroem(Gaussian(0.1), X[:12]), X, Y[:, None], np.float64)
    problem.model(1.0)
    problem.leave_out(None, np.array([1.0]))
    assert max(seen) <= 32


@pytest.mark.parametrize("alpha", [1.0, "auto"])
def test_sparse_rows_far_from_zero_are_summed_as_dense_ones(alpha):
    shifted = X + 1e9
    dense, found = (RankRLS(alpha).fit(data, Y, qid=QID) for data in (shifted, sparse.csr_array(shifted)))
    assert_allclose(found.coef_, dense.coef_, rtol=1e-6)
