"""Kernel values with a few points only, m x r: as good as the whole matrix, everywhere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rankrls import RankRLS, TransductiveRankRLS
from rankrls.kernels import Gaussian, Polynomial

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.round(X @ [1.0, -1.0, 0.5] + 0.5 * RNG.normal(size=40))
QID = np.arange(40) % 8
K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
ROWS = [3, 0, 20, 35]


@pytest.mark.parametrize("loss", [{}, {"regression": 0.3}, {"tied_pairs": True, "weighting": "pairs"}], ids=str)
def test_columns_of_the_basis_are_enough(loss):
    u = np.where(np.arange(40) % 9 == 1, 0.0, 1.0)
    for fit in ({}, {"sample_weight": u}):
        few = RankRLS(kernel="precomputed", basis=ROWS, **loss).fit(K[:, ROWS], Y, qid=QID, **fit)
        whole = RankRLS(kernel="precomputed", basis=ROWS, **loss).fit(K, Y, qid=QID, **fit)
        plain = RankRLS(kernel=Gaussian(0.5), basis=ROWS, scale=None, **loss).fit(X, Y, qid=QID, **fit)
        assert_allclose(few.predict(K[:, ROWS]), whole.predict(K), atol=1e-8)
        assert_allclose(few.predict(K[:, ROWS]), plain.predict(X), atol=1e-8)
        assert_allclose(few.cv_scores_, plain.cv_scores_)
        assert_allclose(few.predict_path(K[:, ROWS]), plain.predict_path(X), atol=1e-7)


def test_learning_and_forgetting_from_columns():
    whole = RankRLS(1.0, kernel="precomputed", basis=K[np.ix_(ROWS, ROWS)]).fit(K[:, ROWS], Y, qid=QID)
    assert_allclose(
        whole.predict(K[:, ROWS]), RankRLS(1.0, kernel="precomputed", basis=ROWS).fit(K, Y, qid=QID).predict(K)
    )
    model = RankRLS(1.0, kernel="precomputed", basis=K[np.ix_(ROWS, ROWS)])
    for part in (QID < 4, QID >= 4):
        model.partial_fit(K[np.ix_(part, ROWS)], Y[part], qid=QID[part])
    assert_allclose(model.predict(K[:, ROWS]), whole.predict(K[:, ROWS]), atol=1e-9)
    pairs = [[i, j] for i in range(9) for j in range(9) if Y[i] > Y[j]]
    ours = RankRLS(1.0, kernel="precomputed", basis=ROWS).fit_pairs(K[:, ROWS], pairs)
    assert_allclose(
        ours.predict(K[:, ROWS]), RankRLS(1.0, kernel="precomputed", basis=ROWS).fit_pairs(K, pairs).predict(K)
    )


def test_sparse_transduction_from_kernel_values():
    y = np.where(QID < 5, Y, np.nan)
    plain = TransductiveRankRLS(1.0, kernel=Gaussian(0.5), basis=ROWS).fit(X, y, qid=QID)
    for values in (K, K[:, ROWS]):
        model = TransductiveRankRLS(1.0, kernel="precomputed", basis=ROWS).fit(values, y, qid=QID)
        assert_allclose(model.transduction_, plain.transduction_, atol=1e-7)
        assert_allclose(model.predict(values), plain.predict(X), atol=1e-7)


def test_columns_that_do_not_fit_the_basis_are_refused():
    with pytest.raises(ValueError, match="40 rows and 4 columns needs basis="):
        RankRLS(1.0, kernel="precomputed", basis=[0, 1]).fit(K[:, ROWS], Y, qid=QID)
    with pytest.raises(ValueError, match="must be square at fit"):
        RankRLS(1.0, kernel="precomputed").fit(K[:, ROWS], Y, qid=QID)
    with pytest.raises(ValueError, match="not symmetric"):
        RankRLS(1.0, kernel="precomputed", basis=[0, 1, 2, 3]).fit(K[:, ROWS], Y, qid=QID)


@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.5), Gaussian(gamma=0.5, weights=[1.0, 0.0, 2.0]), Polynomial(gamma=1.0)]
)
def test_the_diagonal_is_that_of_the_matrix(kernel):
    X = np.random.default_rng(0).standard_normal((150, 3))
    assert_allclose(kernel.diagonal(X), np.diag(kernel(X, X)), rtol=1e-12)
    assert not np.isfinite(kernel.diagonal(1e200 * X)).any()
