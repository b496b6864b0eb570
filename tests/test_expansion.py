"""Scores of kernel models in blocks are those of the whole kernel matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from rankrls.core.expansion import expansion
from rankrls.kernels import Cosine, Function, Gaussian, Laplacian, Linear, Polynomial, Precomputed

KERNELS = [Linear(), Gaussian(0.3), Polynomial(2, 0.5), Laplacian(0.2), Cosine(), Function(lambda X, Z: X @ Z.T)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("targets", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_in_blocks_equal_the_whole(kernel, targets, dtype):
    rng = np.random.default_rng(0)
    X, points = rng.normal(size=(203, 4)).astype(dtype), rng.normal(size=(7, 4)).astype(dtype)
    coef = rng.normal(size=(7, *targets))
    whole = kernel(X, points) @ coef
    blocks = expansion(kernel, X, points, coef, cells=7 * 20)
    assert blocks.shape == whole.shape
    assert_allclose(blocks, whole, atol=1e-12 if dtype == np.float64 else 1e-5)


def test_sparse_rows_and_precomputed_values():
    rng = np.random.default_rng(0)
    X, points, coef = sparse.random(100, 30, 0.2, "csr", rng=rng), sparse.eye_array(5, 30, format="csr"), np.ones(5)
    assert_allclose(expansion(Gaussian(0.1), X, points, coef, cells=80), Gaussian(0.1)(X, points) @ coef)
    K = rng.normal(size=(100, 5))
    assert_allclose(expansion(Precomputed(), K, np.empty((5, 0)), coef, cells=80), K @ coef)
