"""The compiled pass over rows gives the sums of NumPy's path."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cases import problem, weights
from rankrls.core.features import Identity
from rankrls.core.fused import compiled_code, serves
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.core.statistics import statistics

pytest.importorskip("numba")


def sums(compiled, X, y, qid, u=None, *, tied=False, weighting="items", beta=0.0):
    targets = y.reshape(len(y), -1)
    labels = None if tied else targets[:, 0]
    F = QueryPreferences(Queries.of(qid), labels, weighting=weighting, regression=beta, weights=u)
    with compiled_code(compiled):
        assert serves(F, X) == compiled
        return statistics(F, Identity(X.shape[1]).reader(X), targets, X.shape[1], X.dtype, X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("tied", "weighting", "beta", "weighted", "shuffle"),
    [
        *itertools.product([True, False], ["pairs", "queries", "items"], [0.0, 0.4], [False], [True]),
        (False, "items", 0.4, True, True),
        (False, "queries", 0.0, True, False),
        (True, "pairs", 1.0, True, False),
    ],
)
def test_compiled_sums_equal_numpys(dtype, tied, weighting, beta, weighted, shuffle):
    X, y, qid = problem(m=300, n=5, n_queries=40, shuffle=shuffle)
    u = weights(len(y)) if weighted else None
    got, expected = (
        sums(compiled, X.astype(dtype), y, qid, u, tied=tied, weighting=weighting, beta=beta)
        for compiled in (True, False)
    )
    rtol = 1e-12 if dtype == np.float64 else 2e-5
    for name in ("gram", "cross", "square", "mean", "rounding"):
        reference = getattr(expected, name)
        assert_allclose(getattr(got, name), reference, rtol=rtol, atol=rtol * np.abs(reference).max(), err_msg=name)
    assert (got.n_pairs, got.n_queries) == (expected.n_pairs, expected.n_queries)


def test_several_targets():
    X, y, qid = problem(m=200, n=4, n_queries=30)
    y = np.column_stack([y, y**2, -y])
    got, expected = (sums(compiled, X, y, qid, tied=True, beta=0.3) for compiled in (True, False))
    assert_allclose(got.cross, expected.cross, rtol=1e-12, atol=1e-9)


def test_small_fits_and_long_queries_are_left_to_numpy():
    X, y, _ = problem(m=100)
    assert not serves(QueryPreferences(Queries.of(np.arange(100) // 10), y), X)  # too small to load compiled code for
    with compiled_code(True):
        one = QueryPreferences(Queries.single(5000), np.arange(5000.0))
        assert not serves(one, np.zeros((5000, 2)))
        assert not serves(QueryPreferences(Queries.of(np.arange(100) // 10), y), np.asfortranarray(X))
