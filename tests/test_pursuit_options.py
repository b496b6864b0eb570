"""RankingPursuit from explicit pairs, with three views, with weights of views, and from kernel values of a basis."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import oracles
import rankrls
from rankrls import RankingPursuit, RankRLS, View
from rankrls.kernels import Gaussian
from test_pursuit import GAMMA, RBF, laplacians, noisy, partly_scored, same_path

# ---------------------------------------------------------------- explicit pairs


def preferences(m=30, p=60, seed=0):
    rng = np.random.default_rng(seed)
    X, pairs = rng.normal(size=(m, 5)), rng.integers(0, m - 4, size=(p, 2))  # the last items are in no pair
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    f = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + np.sin(X[:, 1])
    d = f[pairs[:, 0]] - f[pairs[:, 1]]
    swap = d < 0
    pairs[swap] = pairs[swap, ::-1]
    return X, pairs, np.abs(d) + 0.1 * rng.random(len(d)), rng.random(len(d)) + 0.5


def differences(D, pairs):
    return D[pairs[:, 0]] - D[pairs[:, 1]]


@pytest.mark.parametrize("backfit", [True, False])
@pytest.mark.parametrize("kernel", [None, RBF], ids=["columns", "kernels"])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_step_is_the_best_for_the_pairs(kernel, backfit, weighted):
    X, pairs, d, w = preferences()
    w = w if weighted else None
    model = RankingPursuit(4, kernel=kernel, backfit=backfit).fit_pairs(X, pairs, d, w)
    D = X if kernel is None else oracles.gaussian(X, X, GAMMA)
    L = np.diag(np.ones(len(d)) if w is None else w)
    same_path(model, oracles.pursuit(differences(D, pairs), d, L, 4, backfit=backfit))
    assert_allclose(model.predict_path(X)[:, -1], model.predict(X))
    assert (model.n_pairs_, model.n_unscored_, model.n_queries_) == (len(d), 4, 0)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(X), model.predict(X))


def test_all_columns_are_least_squares_on_the_pairs():
    X, pairs, d, w = preferences()
    full = RankingPursuit(5, kernel=None).fit_pairs(X, pairs, d, w)
    assert_allclose(full.predict(X), RankRLS(1e-12, scale=None).fit_pairs(X, pairs, d, w).predict(X), atol=1e-6)
    scattered = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    dense = RankingPursuit(3, kernel=None).fit_pairs(scattered.toarray(), pairs, d, w)
    assert_allclose(RankingPursuit(3, kernel=None).fit_pairs(scattered, pairs, d, w).coef_, dense.coef_, atol=1e-9)
    nothing = RankingPursuit(3, kernel=None).fit_pairs(X, pairs, d, np.where(np.arange(len(d)) < 40, 1.0, 0.0))
    assert_allclose(nothing.coef_, RankingPursuit(3, kernel=None).fit_pairs(X, pairs[:40], d[:40]).coef_)


@pytest.mark.parametrize("many", [False, True], ids=["pairs", "components"])
def test_the_size_is_chosen_on_held_out_pairs(many):
    X, pairs, d, _ = preferences(m=40, p=90)
    if many:  # items in blocks of four that no pair links
        pairs = np.column_stack([np.arange(36), np.arange(36) // 4 * 4 + (np.arange(36) + 1) % 4])
        d = (X @ [1.0, -1.0, 0.5, 0.0, 0.0])[pairs] @ [1.0, -1.0]
    model = RankingPursuit(kernel=RBF, max_basis=6).fit_pairs(X, pairs, d)
    folds = np.zeros(len(d), dtype=int) + np.arange(len(d)) % 5
    if many:
        folds = pairs[:, 0] // 4 % 5
    right = np.zeros((len(d), 6))
    for f in range(5):
        out = folds == f
        part = RankingPursuit(6, kernel=RBF).fit_pairs(X, pairs[~out], d[~out])
        right[out] = np.sign(differences(part.predict_path(X), pairs[out])) == np.sign(d[out])[:, None]
    assert_allclose(model.path_.scores, right.mean(axis=0)[: len(model.path_)])
    assert model.n_basis_ == 1 + int(np.argmax(right.mean(axis=0)))
    assert not hasattr(model, "cv_predictions_")


def test_views_of_pairs_agree_on_the_items_that_no_pair_names():
    X, pairs, d, _ = preferences()
    views, idle = [View([0, 1, 2]), View([2, 3, 4])], np.arange(26, 30)
    model = RankingPursuit(2, views=views, nu=0.3).fit_pairs(X, pairs, d)
    D = [X[:, :3], X[:, 2:]]
    U = oracles.laplacian(np.zeros(4), np.zeros(4), tied=True, weighting="items")
    halves = [differences(v, pairs) for v in D], [v[idle] for v in D]
    steps = oracles.joint_pursuit(halves[0], d, np.eye(len(d)), halves[1], U, 0.3, 2)
    f = np.column_stack([v @ a for v, a in zip(D, steps[-1][1], strict=True)])
    assert_allclose(model.predict_views(X), f, atol=1e-8)
    chosen = RankingPursuit(views=views, nu="auto", max_basis=3).fit_pairs(X, pairs, d, qid=np.arange(30) % 2)
    assert chosen.nu_ >= 0 and 1 <= chosen.n_basis_ <= 3


def test_bad_pairs():
    X, pairs, d, _ = preferences()
    with pytest.raises(ValueError, match="but X has rows 0 to 29"):
        RankingPursuit(2).fit_pairs(X, pairs + 10)
    with pytest.raises(ValueError, match="margins must hold one number per pair"):
        RankingPursuit(2).fit_pairs(X, pairs, d[:3])


# ---------------------------------------------------------------- views


def three_views(X, rows):
    views = [View([0, 1], RBF, rows), View([2, 3], Gaussian(0.1), rows[:-2]), View([4, 5], RBF, rows)]
    D = [oracles.gaussian(X[:, v.columns], X[v.basis][:, v.columns], v.kernel.gamma) for v in views]
    return views, D


@pytest.mark.parametrize("backfit", [True, False])
@pytest.mark.parametrize("nu", [0.0, 0.05, 1.0])
def test_three_views_choose_by_turns(nu, backfit):
    X, y, qid = partly_scored(m=40)
    scored, L, U = laplacians(y, qid)
    views, D = three_views(X, np.arange(0, 40, 6))
    model = RankingPursuit(2, views=views, nu=nu, backfit=backfit).fit(X, y, qid=qid)
    halves = [d[scored] for d in D], [d[~scored] for d in D]
    steps = oracles.joint_pursuit(halves[0], y[scored], L, halves[1], U, nu, 2, backfit=backfit)
    assert_array_equal(model.path_.indices, [step[0] for step in steps])  # the best of all combinations, here
    f = np.column_stack([d @ a for d, a in zip(D, steps[-1][1], strict=True)])
    assert_allclose(model.predict_views(X), f, atol=1e-6)


def test_no_single_view_of_many_would_choose_otherwise():
    from rankrls.problems.joint_pursuit import ByTurns, Pairs

    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.normal(size=(30, 20))
        H, e, free = A.T @ A, rng.normal(size=20), np.ones(20, dtype=bool)
        blocks = [slice(0, 5), slice(5, 10), slice(10, 15), slice(15, 20)]
        columns, gain = ByTurns(H, blocks).best(np.diag(H).copy(), e, free)
        value = lambda c, H=H, e=e: e[c] @ np.linalg.solve(H[np.ix_(c, c)], e[c])
        assert_allclose(gain, value(columns))
        for v, block in enumerate(blocks):
            others = [[*columns[:v], j, *columns[v + 1 :]] for j in range(block.start, block.stop)]
            assert max(map(value, others)) <= gain * (1 + 1e-9)
        two = [slice(0, 10), slice(10, 20)]
        best = Pairs(H, two).best(np.diag(H).copy(), e, free)[1]
        assert ByTurns(H, two).best(np.diag(H).copy(), e, free)[1] >= 0.9 * best


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("backfit", [True, False])
def test_views_of_different_weight(backfit, shared, tmp_path):
    X, y, qid = partly_scored(m=40)
    scored, L, U = laplacians(y, qid)
    rows = np.arange(0, 40, 5)
    views = [View([0, 1, 2], RBF, rows), View([3, 4, 5], Gaussian(0.1), rows)]
    D = [oracles.gaussian(X[:, :3], X[rows, :3], GAMMA), oracles.gaussian(X[:, 3:], X[rows, 3:], 0.1)]
    params = {"nu": 0.05, "backfit": backfit, "shared_basis": shared}
    model = RankingPursuit(3, views=views, view_weights=[3, 1], **params).fit(X, y, qid=qid)
    halves = [d[scored] for d in D], [d[~scored] for d in D]
    how = {"backfit": backfit, "shared": shared, "weights": [1.5, 0.5]}
    steps = oracles.joint_pursuit(halves[0], y[scored], L, halves[1], U, 0.05, 3, **how)
    assert_array_equal(model.path_.indices, [step[0] for step in steps])
    for p, (_, coefs) in enumerate(steps):
        f = np.column_stack([d @ a for d, a in zip(D, coefs, strict=True)]) @ [0.75, 0.25]
        assert_allclose(model.predict_path(X)[:, p], f, atol=1e-6)
        r = y[scored] - f[scored]
        assert_allclose(model.path_.errors[p], r @ L @ r, rtol=1e-6)
    assert_allclose(model.predict(X), model.predict_views(X) @ [0.75, 0.25])
    assert_allclose(model.view_weights_, [0.75, 0.25])
    assert_allclose(model.explain(X[0], X[1]).sum(), model.predict(X)[0] - model.predict(X)[1], atol=1e-8)
    assert_allclose(model.resized(2).predict(X), model.predict_path(X)[:, 1])
    rankrls.save(model, tmp_path / "model.rankrls")
    assert_allclose(rankrls.load(tmp_path / "model.rankrls").predict(X), model.predict(X))
    equal = RankingPursuit(3, views=views, view_weights=[2, 2], **params).fit(X, y, qid=qid)
    plain = RankingPursuit(3, views=views, **params).fit(X, y, qid=qid)
    assert_allclose(equal.predict(X), plain.predict(X))
    by_size = RankingPursuit(views=views, view_weights=[3, 1], max_basis=3, cv=3, **params).fit(X, y, qid=qid)
    assert by_size.n_basis_ <= 3


def test_weighted_views_are_exported(tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from rankrls.export import to_onnx

    X, y, qid = partly_scored(m=40)
    views = [View([0, 1, 2], RBF, 5), View([3, 4, 5])]
    model = RankingPursuit(2, views=views, view_weights=[3, 1], regression=0.5).fit(X, y, qid=qid)
    runner = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    name = runner.get_inputs()[0].name
    (scores,) = runner.run(None, {name: X})
    assert_allclose(scores.ravel(), model.predict(X), rtol=1e-9)


# ---------------------------------------------------------------- kernel values, and reasons


def test_kernel_values_of_the_basis_alone():
    X, y, qid = noisy()
    rows = np.array([3, 11, 17, 24, 38])
    K = oracles.gaussian(X, X, GAMMA)
    for options in ({"n_basis": 3}, {"max_basis": 4, "cv": 3}):
        whole = RankingPursuit(kernel="precomputed", basis=rows, **options).fit(K, y, qid=qid)
        part = RankingPursuit(kernel="precomputed", basis=rows, **options).fit(K[:, rows], y, qid=qid)
        assert_array_equal(part.basis_indices_, whole.basis_indices_)
        assert_allclose(part.predict(K[:, rows]), whole.predict(K))
    with pytest.raises(ValueError, match="needs basis= the row number of each column"):
        RankingPursuit(3, kernel="precomputed", basis=rows[:3]).fit(K[:, rows], y, qid=qid)


@pytest.mark.parametrize("kernel", [None, RBF], ids=["columns", "kernels"])
def test_reasons_add_up(kernel):
    X, y, qid = noisy()
    model = RankingPursuit(3, kernel=kernel).fit(X, y, qid=qid)
    scores = model.predict(X)
    assert_allclose(model.explain(X[3], X[8]).sum(), scores[3] - scores[8], atol=1e-9)
    K = RankingPursuit(3, kernel="precomputed").fit(X @ X.T, y, qid=qid)
    with pytest.raises(ValueError, match="gradient of"):
        K.explain(X[0] @ X.T, X[1] @ X.T)
