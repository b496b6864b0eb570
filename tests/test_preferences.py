"""F compared with the Laplacian that a loop over pairs gives."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
from cases import problem, weights
from rankrls.core import ragged
from rankrls.core.pairs import PairPreferences
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.core.statistics import statistics
from rankrls.core.symmetric import solve_path

LOSSES = list(itertools.product([True, False], ["pairs", "queries", "items"], [0.0, 0.3, 1.0], [False, True]))


def operator(y, qid, tied, weighting, beta, u):
    return QueryPreferences(
        Queries.of(np.asarray(qid)), None if tied else y, weighting=weighting, regression=beta, weights=u
    )


@pytest.mark.parametrize(("tied", "weighting", "beta", "weighted"), LOSSES)
def test_square_of_F_is_the_laplacian(tied, weighting, beta, weighted):
    X, y, qid = problem()
    u = weights(len(y)) if weighted else None
    F = operator(y, qid, tied, weighting, beta, u)
    dense = F @ np.eye(len(y))
    expected = oracles.laplacian(y, qid, tied=tied, weighting=weighting, beta=beta, u=u)
    assert_allclose(dense.T @ dense, expected, atol=1e-12)
    assert_allclose(F.T @ np.eye(len(y)), dense.T, atol=1e-12)
    assert_allclose(F @ y, dense @ y, atol=1e-12)
    assert_allclose(F.T @ y, dense.T @ y, atol=1e-12)
    assert_allclose(F @ X, dense @ X, atol=1e-12)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_long_queries_are_cut_into_chunks_that_change_nothing(tied, weighted, beta):
    X, y, qid = problem(m=150, n_queries=4)
    y[::7] = np.arange(len(y[::7])) / 10  # levels of one item among levels of many
    u = weights(150) if weighted else None
    whole = operator(y, qid, tied, "items", beta, u) @ X
    queries = Queries.of(np.asarray(qid), batch_rows=7)
    F = QueryPreferences(queries, None if tied else y, weighting="items", regression=beta, weights=u)
    assert_allclose(F @ X, whole, atol=1e-12)


@pytest.mark.parametrize(("tied", "weighting", "beta", "weighted"), LOSSES)
def test_runs_of_queries_of_any_lengths_give_the_sums_of_a_loop_over_pairs(tied, weighting, beta, weighted, limit):
    limit(worth_runs=0)
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(14), np.arange(1, 15)))
    X, y = rng.normal(size=(len(qid), 3)), rng.integers(0, 3, len(qid)).astype(float)
    u = weights(len(y)) if weighted else None
    F = operator(y, qid, tied, weighting, beta, u)
    object.__setattr__(F.queries, "batch_rows", 30)
    assert F.queries.are_ragged(3) and len(ragged.runs(F, np.float64)) > 2
    sums = statistics(F, lambda: lambda rows: X[rows].copy(), y[:, None], 3, np.float64)
    mean = np.average(X, axis=0, weights=u) if beta else 0.0
    A, z = X - mean, y - (np.average(y, weights=u) if beta else 0.0)
    L = oracles.laplacian(y, qid, tied=tied, weighting=weighting, beta=beta, u=u)
    assert_allclose(sums.gram, A.T @ L @ A, atol=1e-10)
    assert_allclose(sums.cross[:, 0], A.T @ L @ z, atol=1e-10)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_a_path_is_a_solution_for_each_alpha(n):
    rng = np.random.default_rng(n)
    A, z, alphas = rng.normal(size=(5, n)), rng.normal(size=n), np.array([1e-3, 1.0, 10.0])  # of rank 5
    expected = [np.linalg.solve(A.T @ A + alpha * np.eye(n), z) for alpha in alphas]
    assert_allclose(solve_path(A.T @ A, alphas, z), np.reshape(expected, (3, n)).T, rtol=1e-9)


def test_a_path_survives_eigenvalues_that_rounding_made_negative():
    M = np.diag([4.0, 1.0, -1e-6])
    found = solve_path(M, np.array([1e-9, 1.0]), np.array([4.0, 1.0, 0.0]))
    assert_allclose(found[:2], [[1, 0.8], [1, 0.5]], rtol=1e-5)


def test_pairs_that_count_are_counted():
    y, qid = np.array([0, 0, 1, 5, 5, 7]), np.array(list("aaabbc"))
    assert operator(y, qid, True, "pairs", 0, None).n_pairs == 4
    assert operator(y, qid, False, "pairs", 0, None).n_pairs == 2


def test_explicit_pairs_of_all_preferences_have_the_same_laplacian():
    _, y, qid = problem()
    pairs = [(i, j) for i in range(40) for j in range(40) if qid[i] == qid[j] and y[i] > y[j]]
    F = PairPreferences(np.array(pairs), 40)
    dense = F @ np.eye(40)
    assert_allclose(dense.T @ dense, oracles.laplacian(y, qid, tied=False), atol=1e-12)
    assert_allclose(F.incidence().toarray(), dense)
    assert_allclose(F.T @ np.eye(len(pairs)), dense.T)


def test_components_of_pairs():
    F = PairPreferences(np.array([[0, 1], [3, 4], [1, 2], [4, 5]]), 7)
    assert sorted(sorted(c.tolist()) for c in F.components()) == [[0, 2], [1, 3]]


@pytest.mark.parametrize("qid", [[3, 1, 3, 2, 1, 3], list("xyxzyx"), [2.5, -1.0, 2.5, 0.0, -1.0, 2.5]])
def test_queries_of_any_labels_in_any_order(qid):
    queries = Queries.of(np.array(qid))
    assert_allclose(sorted(queries.sizes), [1, 2, 3])
    for q, label in enumerate(queries.labels):
        assert all(qid[i] == label for i in queries.rows(q))
    seen = np.concatenate([np.arange(6)[b.rows] for b in queries.batches()])
    assert sorted(seen) == list(range(6))


def test_grouped_rows_stay_in_place():
    queries = Queries.of(np.array([5, 5, 1, 1, 3, 3]))
    (batch,) = queries.batches()
    assert batch.rows == slice(0, 6)
    assert queries.labels.tolist() == [5, 1, 3]


def test_float32_stays_float32():
    X, y, qid = problem()
    F = operator(y, qid, False, "queries", 0.3, weights(40))
    assert (F @ X.astype(np.float32)).dtype == np.float32
    assert_allclose(F @ X.astype(np.float32), F @ X, rtol=1e-4, atol=1e-5)
