"""Several kernels for one kind of objects: weights, matrices by id, and grids of parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import rankrls
from rankrls import ConditionalRankRLS, RankRLS, TwoStepRLS
from rankrls.kernels import Gaussian, Laplacian, Polynomial
from rankrls.relations.kernel_sums import WeightedSum, aligned
from rankrls.selection import RelationKFold

N = 24


@pytest.fixture(scope="module")
def views():
    """Three descriptions of the same objects, of which the relation follows the first and, a little, the second."""
    rng = np.random.default_rng(0)
    A, B, C = rng.normal(size=(N, 3)), rng.normal(size=(N, 3)), rng.normal(size=(N, 5))
    Y = A @ rng.normal(size=(3, 3)) @ A.T + 0.5 * B @ B.T
    return [Gaussian(0.3)(M, M) for M in (A, B, C)], Y


def test_alignment_equals_a_general_minimiser():
    rng = np.random.default_rng(1)
    K = [M @ M.T for M in rng.normal(size=(4, 10, 3))]
    R = rng.normal(size=(10, 6)) + K[0][:, :6]
    C = np.eye(10) - 0.1
    T = C @ R @ R.T @ C
    objective = lambda w: np.sum((sum(a * C @ k @ C for a, k in zip(w, K, strict=True)) - T) ** 2)
    found = minimize(objective, np.ones(4), bounds=[(0, None)] * 4, options={"ftol": 1e-15, "gtol": 1e-10}).x
    assert_allclose(aligned(K, R), found / found.sum(), atol=1e-4)
    assert not aligned([np.ones((5, 5))], np.ones((5, 2))).any()


def test_the_weighted_sum_is_the_precomputed_sum_and_the_best_of_those_tried(views):
    K, Y = views
    model = ConditionalRankRLS(kernel=K).fit(np.arange(N), Y)
    w = model.kernel_.weights
    total = sum(a * k for a, k in zip(w, K, strict=True))
    same = ConditionalRankRLS(model.alpha_, kernel="precomputed").fit(total, Y)
    assert_allclose(model.predict(np.arange(N)), same.predict(total), atol=1e-8)
    assert w.argmax() == 0
    alone = [ConditionalRankRLS(kernel="precomputed").fit(k, Y).cv_scores_.max() for k in K]
    assert model.cv_scores_.max() >= max(alone)


def test_matrices_are_matched_by_id_and_know_objects_to_come(views, tmp_path):
    pd = pytest.importorskip("pandas")
    K, Y = views
    ids = [f"p{i}" for i in range(N)]
    frames = [pd.DataFrame(k, index=ids, columns=ids) for k in K]
    frames[1] = frames[1].sample(frac=1, random_state=1).iloc[:, ::-1]
    known = pd.DataFrame({"nothing": 0.0}, index=ids[:18]).sample(frac=1, random_state=2)
    y = pd.DataFrame(Y, index=ids, columns=ids).iloc[:18, :18]
    model = ConditionalRankRLS(kernel=frames).fit(known, y)
    plain = ConditionalRankRLS(kernel=K).fit(np.arange(18), Y[:18, :18])
    expected = plain.predict(np.arange(18, N))
    assert_allclose(model.predict(ids[18:]), expected, atol=1e-9)
    assert_allclose(model.predict(pd.DataFrame({"nothing": 0.0}, index=ids[18:])), expected, atol=1e-9)
    table = model.rank("p20", top=3)
    assert table["truth"].isna().all() and set(table["id"]) < set(ids)
    assert model.rank("p3", top=2)["truth"].notna().all()
    rankrls.save(model, tmp_path / "model.rankrls")
    assert_allclose(rankrls.load(tmp_path / "model.rankrls").predict(ids[18:]), expected, atol=1e-9)
    with pytest.raises(ValueError, match="'p99' of X is not a row of the kernel matrices"):
        model.predict(["p99"])


def test_two_kinds_of_objects_have_lists_of_their_own(views):
    K, _ = views
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(10, 2))
    Y = K[0][:, :2] @ Z.T + 0.1 * rng.normal(size=(N, 10))
    lists = {"kernel": K[:2], "target_kernel": [Gaussian(0.5), "linear"]}
    for model in (ConditionalRankRLS(**lists), TwoStepRLS(**lists)):
        model.fit(np.arange(N), Y, Z)
        assert len(model.kernel_.weights) == len(model.target_kernel_.weights) == 2
        assert model.predict([0, 1], Z[:3]).shape == (2, 3)
    holes = np.where(rng.random(Y.shape) < 0.8, Y, np.nan)
    some = ConditionalRankRLS(1.0, **lists, tol=1e-4).fit(np.arange(N), holes, Z)
    assert np.isfinite(some.predict(np.arange(N), Z)).all()


@pytest.mark.parametrize("setting", [1, 2, 3, 4])
def test_lists_are_judged_in_every_setting(views, setting):
    K, Y = views
    model = ConditionalRankRLS(kernel=K[:2], alphas=[0.1, 1.0], tol=1e-3)
    for X in (np.arange(N), np.zeros((N, 3))):  # row numbers, or one object for each row
        assert np.isfinite(model.evaluate(X, Y, settings=[setting], n_splits=2)[setting]).all()


def test_parameters_of_kernels_are_chosen_from_lists(views):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    Y = np.sin(2 * X[:, :1]) * np.cos(2 * X[:, 1]) + 0.1 * rng.normal(size=(30, 30))
    widths = [0.001, 0.3, 100.0]
    for cv in ("auto", RelationKFold(4, 3, same_objects=True)):
        model = ConditionalRankRLS(kernel=Gaussian(widths), cv=cv).fit(X, Y)
        tried = [ConditionalRankRLS(kernel=Gaussian(g), cv=cv).fit(X, Y).cv_scores_.max() for g in widths]
        assert model.kernel_.gamma == widths[int(np.argmax(tried))]
        assert_allclose(model.cv_scores_.max(), max(tried))
    cubic = ConditionalRankRLS(kernel=Polynomial([1, 3], gamma=[0.1, 1.0])).fit(X, (X @ X.T) ** 3)
    assert cubic.kernel_.degree == 3
    ranker = RankRLS(kernel=Gaussian([0.001, 0.5])).fit(X, np.sin(3 * X[:, 0]), qid=np.repeat(np.arange(6), 5))
    assert ranker.cv_scores_.max() > 0.5
    names = ConditionalRankRLS(1.0, kernel=[Gaussian("auto"), "linear", Laplacian()]).fit(X, Y)
    assert len(names.kernel_.kernels) == 8


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ([], "is empty"),
        (["linear", "precomputed"], "as matrices: kernel"),
        ([np.eye(4), "linear"], "mixes matrices with kernels"),
        ([np.eye(4), np.eye(5)], "of one size"),
        ([np.ones((4, 5))], "square"),
        ([-np.eye(N)], "not positive semi-definite"),
        ([np.eye(7)], "which rows of the kernel matrices"),
    ],
)
def test_refused(kernel, message, views):
    with pytest.raises(ValueError, match=message):
        ConditionalRankRLS(kernel=kernel).fit(np.random.default_rng(0).normal(size=(N, 2)), views[1])


def test_equal_weights_where_none_are_given():
    X = np.arange(6.0).reshape(3, 2)
    total = WeightedSum.of([Gaussian(0.1), "linear"])
    assert_allclose(total(X, X), Gaussian(0.1)(X, X) + X @ X.T)
