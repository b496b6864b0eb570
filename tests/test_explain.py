"""Explanations: shares of features in the difference of two scores, also for kernel models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
from rankrls import RankRLS
from rankrls.kernels import Gaussian, Laplacian

rng = np.random.default_rng(0)
X, y, qid = rng.normal(size=(40, 4)) + 2, rng.integers(0, 3, 40), np.repeat(np.arange(8), 5)
KERNELS = ["linear", "rbf", "laplacian", "poly", "cosine", Gaussian(0.7, weights=[1.0, 0.0, 2.0, 0.3])]


@pytest.mark.parametrize("scale", ["auto", None])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_shares_are_the_integral_of_the_gradient(kernel, scale):
    model = RankRLS(0.1, kernel=kernel, scale=scale, basis=[0, 3, 9, 20, 31]).fit(X, y, qid=qid)
    shares, scores = model.explain(X[0], X[17]), model.predict(X)
    assert_allclose(shares, oracles.path_shares(model.predict, X[0], X[17]), rtol=2e-3, atol=2e-4)
    assert_allclose(shares.sum(), scores[0] - scores[17], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(1e-4), Gaussian(30.0), Laplacian(20.0), "poly"], ids=str)
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e3])
def test_shares_add_up_for_near_and_far_items(kernel, size):
    model = RankRLS(0.1, kernel=kernel, scale=None).fit(X, y, qid=qid)
    a, b = X[0], X[0] + size * (X[17] - X[0])
    f_a, f_b = model.predict(np.array([a, b]))
    deviation = np.abs(model.kernel_(np.array([a, b]), model.X_fit_) * model.dual_coef_).sum()
    assert_allclose(model.explain(a, b).sum(), f_a - f_b, rtol=1e-9, atol=1e-12 * deviation)


def test_all_rows_as_points_and_equal_items():
    model = RankRLS(kernel="rbf").fit(np.vstack([X] * 10), np.tile(y, 10), qid=np.tile(qid, 10))  # points in two parts
    scores = model.predict(X)
    assert_allclose(model.explain(X[3], X[4]).sum(), scores[3] - scores[4], rtol=1e-10)
    assert_allclose(model.explain(X[3], X[4]), -model.explain(X[4], X[3]), rtol=1e-9, atol=1e-12)
    assert not model.explain(X[3], X[3]).any()


def test_a_feature_that_is_equal_has_no_share():
    model = RankRLS(0.1, kernel="laplacian").fit(X, y, qid=qid)
    other = X[1].copy()
    other[2] = X[0, 2]
    assert model.explain(X[0], other)[2] == 0


def test_kernels_without_a_gradient_are_named():
    own = RankRLS(1.0, kernel=lambda A, B: A @ B.T).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="gradient of Function kernels is not implemented"):
        own.explain(X[0], X[1])
    several = RankRLS(1.0, kernel="rbf", tied_pairs=True).fit(X, np.column_stack([y, -y]), qid=qid)
    with pytest.raises(ValueError, match="2 targets"):
        several.explain(X[0], X[1])
    opposite = RankRLS(1.0, kernel="cosine", scale=None).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="passes through zero"):
        opposite.explain(X[0], -X[0])
