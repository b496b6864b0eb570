"""Compiled products of matrices equal NumPy's, for every width of a vector register."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("numba")

from rankrls.core import tiles

DTYPES = [np.dtype(np.float64), np.dtype(np.float32)]


def matrix(*shape, dtype=DTYPES[0]):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def tolerance(dtype):
    return {"rtol": 1e-12, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-4}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("vectors", [1, 2, 3, 4, 9])
@pytest.mark.parametrize(("m", "depth"), [(1, 1), (3, 7), (8, 40), (21, 5), (2, 0)])
def test_products_equal_numpys(m, depth, vectors, dtype):
    n = vectors * tiles.vector_length(dtype)
    A, B = matrix(m, depth, dtype=dtype), matrix(depth, n, dtype=dtype)
    for operand in (A, np.asfortranarray(A)):
        C = np.full((m + 2, n), 7, dtype)
        tiles.product(operand, B, C[1:-1])
        assert_allclose(C[1:-1], A @ B, **tolerance(dtype))
        assert np.all(C[[0, -1]] == 7), "rows outside of the result were overwritten"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("vectors", [1, 2, 3, 7])
@pytest.mark.parametrize("m", [0, 1, 50, 600])
def test_grams_and_products_with_few_columns_equal_numpys(m, vectors, dtype):
    n = vectors * tiles.vector_length(dtype)
    A, T = matrix(m, n, dtype=dtype), matrix(m, 3, dtype=dtype)
    C, gram, few = np.empty((n, n), dtype), np.ones((n - 1, n - 1)), np.ones((3, n - 1))
    tiles.gram(A, C)
    tiles.add_gram(A, C.copy(), gram)
    tiles.add_few(T, A, few)
    assert_allclose(np.triu(C), np.triu(A.T @ A), **tolerance(dtype))
    assert_allclose(np.triu(gram), np.triu(1 + A.T @ A)[:-1, :-1], **tolerance(dtype))
    assert_allclose(few, 1 + (T.T @ A)[:, :-1], **tolerance(dtype))


def test_rows_of_other_arrays_may_lie_between():
    A, B, C = matrix(6, 3, 10), matrix(10, 16), np.zeros((6, 2, 16))
    tiles.product(A[:, 1], B, C[:, 1])
    assert_allclose(C[:, 1], A[:, 1] @ B, rtol=1e-12, atol=1e-12)
    assert np.all(C[:, 0] == 0)


def test_columns_that_are_not_adjacent_are_refused():
    A, B, C = matrix(4, 8), matrix(8, 8), np.empty((4, 8))
    for operands in ((A, B.T, C), (A, B, np.asfortranarray(C))):
        with pytest.raises(ValueError, match="must be adjacent"):
            tiles.product(*operands)


@pytest.mark.parametrize("features", ["+avx2,+fma", "+sse2"])
def test_narrow_registers_give_the_same_products(features):
    if "x86" not in os.uname().machine:
        pytest.skip("names of the features of x86 processors")
    code = """
import numpy as np
from rankrls.core import tiles
A, B = np.random.default_rng(0).standard_normal((2, 24, 24))
C, G = np.empty((24, 24)), np.empty((24, 24))
tiles.product(A, B, C), tiles.gram(A, G)
assert np.allclose(C, A @ B) and np.allclose(np.triu(G), np.triu(A.T @ A))
print(tiles.WIDTH)
"""
    settings = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env=os.environ | settings, capture_output=True, text=True, check=True)
    assert int(done.stdout) == {"+avx2,+fma": 32, "+sse2": 16}[features]
