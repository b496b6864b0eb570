"""Conditional ranking: relations, losses, complete or not, one or two domains, against the explicit kernel of edges."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import oracles
from papers import RankRLS
from rankrls import ConditionalRankRLS, ConvergenceWarning, metrics
from rankrls.core.krylov import multishift_cg, preconditioned_cg
from rankrls.kernels import Gaussian, Linear
from rankrls.problems import choice
from rankrls.relations import edges
from rankrls.relations.complete import INTERPOLATE, Kronecker, Mirrored, _RowsOut
from rankrls.relations.folds import RelationKFold
from rankrls.relations.problems import CompleteProblem, RelationLoss
from rankrls.relations.relation import Domain, EdgeSet, part

ALPHA = 0.3
PARITY = {None: 0, "symmetric": 1, "reciprocal": -1}


def objects(n=8, d=3, seed=0, twins=True):
    """Objects, two of them alike."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    if twins:
        X[1] = X[0]
    return X


def relation(X, Z=None, seed=1, parity=0):
    """A bilinear relation with noise."""
    rng = np.random.default_rng(seed)
    other = X if Z is None else Z
    Y = X @ rng.normal(size=(X.shape[1], other.shape[1])) @ other.T + rng.normal(size=(len(X), len(other)))
    return part(Y, parity) + 0.1 * Y


def thinned(Y, share, seed=2):
    """Y with some entries unknown, but none of its rows or columns all unknown."""
    keep = np.random.default_rng(seed).random(Y.shape) < share
    keep[np.arange(len(Y)), np.arange(len(Y)) % Y.shape[1]] = True
    keep[np.arange(Y.shape[1]) % len(Y), np.arange(Y.shape[1])] = True
    return np.where(keep, Y, np.nan)


def up_to_constants(scores, axis=1):
    return scores - scores.mean(axis=axis, keepdims=True)


def oracle(X, Y, new, Z=None, new_z=None, *, kernel, ranking, parity=0, condition="source", repeat=1):
    """Scores between new objects by the explicit kernel of all observed edges."""
    n = len(X)
    G = kernel(np.vstack([X, new]), np.vstack([X, new]))
    if Z is None:
        K, shift, m = G, n, len(new)
    else:
        both = np.vstack([Z, new_z])
        K, shift, m = kernel(both, both), len(Z), len(new_z)
    known = [(i, j) for i in range(Y.shape[0]) for j in range(Y.shape[1]) if not np.isnan(Y[i, j])] * repeat
    y = np.array([Y[i, j] for i, j in known])
    test = [(n + i, shift + j) for i in range(len(new)) for j in range(m)]
    if condition == "target":
        known, test, G, K = [e[::-1] for e in known], [e[::-1] for e in test], K, G
    scores = oracles.conditional_scores(G, K, known, y, test, ALPHA, ranking=ranking, parity=parity)
    return scores.reshape(len(new), m)


KERNELS = {"linear": (None, Linear()), "wide": (None, Linear()), "gaussian": (Gaussian(0.2), Gaussian(0.2))}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("complete", [True, False], ids=["complete", "incomplete"])
@pytest.mark.parametrize("loss", ["ranking", "regression"])
@pytest.mark.parametrize("kind", [None, "symmetric", "reciprocal"])
def test_one_domain_equals_the_explicit_kernel_of_edges(kind, loss, complete, kernel):
    given, plain = KERNELS[kernel]
    X, new = objects(d=20 if kernel == "wide" else 3), np.random.default_rng(5).normal(size=(4, 20))[:, :3]
    if kernel == "wide":
        new = np.random.default_rng(5).normal(size=(4, 20))
    Y = relation(X, parity=PARITY[kind])
    Y = Y if complete else thinned(Y, 0.6)
    model = ConditionalRankRLS(ALPHA, kernel=given, loss=loss, relation=kind, tol=1e-12).fit(X, Y)
    expected = oracle(X, Y, new, kernel=plain, ranking=loss == "ranking", parity=PARITY[kind])
    assert_allclose(model.predict(new), expected, atol=1e-8)
    assert model.solver_ == ("closed" if complete else "direct" if kernel == "linear" else "cg")
    for solver in ("cg", "pcg"):
        other = ConditionalRankRLS(ALPHA, kernel=given, loss=loss, relation=kind, tol=1e-12, solver=solver).fit(X, Y)
        assert_allclose(other.predict(new), expected, atol=1e-8)


@pytest.mark.parametrize("condition", ["source", "target"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("complete", [True, False], ids=["complete", "incomplete"])
@pytest.mark.parametrize("loss", ["ranking", "regression"])
def test_two_domains_equal_the_explicit_kernel_of_edges(loss, complete, kernel, condition):
    given, plain = KERNELS[kernel]
    d = 20 if kernel == "wide" else 3
    X, Z = objects(7, d, 0), objects(9, d, 3)
    rng = np.random.default_rng(5)
    new, new_z = rng.normal(size=(4, d)), rng.normal(size=(5, d))
    Y = relation(X, Z)
    Y = Y if complete else thinned(Y, 0.6)
    model = ConditionalRankRLS(ALPHA, kernel=given, loss=loss, condition=condition, tol=1e-12).fit(X, Y, Z)
    expected = oracle(X, Y, new, Z, new_z, kernel=plain, ranking=loss == "ranking", condition=condition)
    assert_allclose(model.predict(new, new_z), expected, atol=1e-8)
    pairs = rng.integers(0, 4, (6, 2))
    assert_allclose(model.predict_edges(new, pairs, new_z), expected[pairs[:, 0], pairs[:, 1]], atol=1e-8)


@pytest.mark.parametrize("few", [0, 10**9], ids=["sparse", "dense"])
@pytest.mark.parametrize("factored", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("parity", [0, 1, -1])
def test_kernel_products_agree_in_every_order_of_multiplication(parity, factored, few):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 4))
    Z = X if parity else rng.normal(size=(7, 5))
    rows, columns, v = rng.integers(0, 9, 40), rng.integers(0, len(Z), 40), rng.normal(size=40)
    sides = [Domain(A, True) if f else Domain(A @ A.T) for A, f in zip((X, Z), factored, strict=True)]
    kernel = edges.EdgeKernel(*sides, rows, columns, parity, sparse_cost=few, sampled_cost=max(few, 1e-300))
    listed = list(zip(rows, columns, strict=True))
    M = oracles.edge_kernel(X @ X.T, Z @ Z.T, listed, listed, parity)
    assert_allclose(kernel(v), M @ v, atol=1e-10)
    a = kernel.coef(v)
    assert sparse.issparse(a) == (few == 0)
    full = X @ X.T @ (a.toarray() if few == 0 else a) @ Z @ Z.T
    assert_allclose(full[rows, columns], M @ v, atol=1e-10)
    assert_allclose(kernel(v), M @ v, atol=1e-10)  # reading the coefficients leaves the kernel as it was


def test_flattened_edges_in_rankrls_give_the_same_model():
    X = objects()
    Y = thinned(relation(X), 0.7)
    known = np.argwhere(~np.isnan(Y))
    K = Gaussian(0.2)(X, X)
    kernel = K[np.ix_(known[:, 0], known[:, 0])] * K[np.ix_(known[:, 1], known[:, 1])]
    flat = RankRLS(ALPHA, kernel="precomputed", weighting="items", tied_pairs=True)
    flat.fit(kernel, Y[tuple(known.T)], qid=known[:, 0])
    model = ConditionalRankRLS(ALPHA, kernel=Gaussian(0.2), tol=1e-12).fit(X, Y)
    assert_allclose(model.predict_edges(X, known), flat.predict(kernel), atol=1e-8)
    complete = relation(X)
    product = (X[:, None, :, None] * X[None, :, None, :]).reshape(64, -1)
    flat = RankRLS(ALPHA, weighting="items", tied_pairs=True)
    flat.fit(product, complete.ravel(), qid=np.repeat(np.arange(8), 8))
    model = ConditionalRankRLS(ALPHA).fit(X, complete)
    assert_allclose(model.coef_, flat.coef_.reshape(3, 3), atol=1e-10)


@pytest.mark.parametrize("rank", ["full", "deficient", "factored", "many"])
@pytest.mark.parametrize("loss", ["ranking", "regression"])
def test_leaving_out_each_conditioning_object_equals_refits(loss, rank):
    d = 4 if rank in ("deficient", "factored") else 30
    X, Z = objects(9, d, 0, twins=rank != "full"), objects(7, 30, 3)
    Y = relation(X, Z)
    G, K = X @ X.T, Z @ Z.T
    alphas = np.array([1e-4, 0.3, 1e5])
    digits = 1e-11 if rank == "full" else 1e-6  # a small alpha beside a missing direction costs digits
    conditioning = Domain(X, True) if rank == "factored" else Domain(G)
    path = Kronecker(conditioning, Domain(K), Y, ranking=loss == "ranking")
    held = path.leave_rows_out(alphas, constants=True, interpolate=5 if rank == "many" else 256)
    for alpha, scores in zip(alphas, held, strict=True):
        for h in range(9):
            rest = np.delete(np.arange(9), h)
            refit = Kronecker(Domain(G[np.ix_(rest, rest)]), Domain(K), Y[rest], ranking=loss == "ranking")
            expected = G[h, rest] @ refit.coef(alpha).toarray() @ K
            assert_allclose(scores[h], expected, atol=digits * np.abs(Y).max())


def test_alpha_is_chosen_by_leaving_out_conditioning_objects():
    X, Z = objects(12, 4, 0, twins=False), objects(10, 4, 3, twins=False)
    Y = (relation(X, Z) > 0).astype(float)
    alphas = np.logspace(-3, 4, 6)
    model = ConditionalRankRLS(kernel="rbf", alphas=alphas).fit(X, Y, Z)
    for alpha, score in zip(alphas, model.cv_scores_, strict=True):
        held = []
        for h in range(12):
            rest = np.delete(np.arange(12), h)
            kernel = Gaussian(model.kernel_.gamma), Gaussian(model.target_kernel_.gamma)
            one = ConditionalRankRLS(alpha, kernel=kernel[0], target_kernel=kernel[1]).fit(X[rest], Y[rest], Z)
            held.append(one.predict(X[[h]]).ravel())
        expected = oracles.pairwise_accuracy(Y.ravel(), np.ravel(held), np.repeat(np.arange(12), 10))
        assert_allclose(score, expected, atol=1e-12)
    assert model.cv_scores_.max() == model.cv_scores_[alphas == model.alpha_][0]
    assert_allclose(
        oracles.pairwise_accuracy(Y.ravel(), model.cv_predictions_.ravel(), np.repeat(np.arange(12), 10)),
        model.cv_scores_.max(),
    )


def test_single_precision_chooses_as_double_does():
    X, Z = objects(30, 5, 0), objects(40, 5, 3, twins=False)  # the order of twins is rounding in any precision
    problem = CompleteProblem(
        Domain(Gaussian(0.1)(X, X)), Domain(Gaussian(0.1)(Z, Z)), EdgeSet((30, 40), relation(X, Z)), RelationLoss()
    )
    alphas, metric = problem.mean_eigenvalue * np.logspace(-5, 2, 15), metrics.get_metric("pairwise_accuracy")
    single = replace(problem, single_precision=1)
    assert_allclose(
        single.scores(alphas, metric, "leave-row-out"), problem.scores(alphas, metric, "leave-row-out"), atol=2e-4
    )


def test_single_precision_keeps_six_digits_of_every_held_out_score():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(300, 6)), rng.integers(0, 5, 300)
    for Y in (X @ X.T + rng.normal(size=(300, 300)), (group[:, None] == group).astype(float)):
        K = Domain(Gaussian(0.1)(X, X))
        problem = CompleteProblem(K, K, EdgeSet(Y.shape, Y), RelationLoss())
        alphas, metric = choice.default_alphas(problem.mean_eigenvalue), metrics.get_metric("pairwise_accuracy")
        exact = problem.scores(alphas, metric, "leave-row-out")
        assert_allclose(replace(problem, single_precision=1).scores(alphas, metric, "leave-row-out"), exact, atol=1e-6)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("of_K", [(1.0, 0.0), (0.3, 2.0)])
@pytest.mark.parametrize("kind", ["gaussian", "deficient", "centred"])
def test_one_eigendecomposition_serves_both_ends_of_one_kind_of_objects(kind, of_K, many):
    X = objects(12, 3, 0, twins=False)
    K = (
        Gaussian(0.3)(X, X)
        if kind == "gaussian"
        else (X - X.mean(axis=0) if kind == "centred" else X + 2)
        @ (X - X.mean(axis=0) if kind == "centred" else X + 2).T
    )
    G, Y, alphas = of_K[0] * K + of_K[1], relation(X), np.array([1e-2, 0.3, 1e4])
    one = Kronecker(Domain(G), Domain(K), Y, ranking=True, of_K=of_K)
    two = Kronecker(Domain(G), Domain(K), Y, ranking=True)
    assert type(one.left) is not type(two.left)
    assert_allclose(one.mean_eigenvalue, two.mean_eigenvalue)
    how = {"interpolate": 3 if many else 256}
    for constants in (False, True):
        pairs = zip(*(path.leave_rows_out(alphas, constants=constants, **how) for path in (one, two)), strict=True)
        for ours, theirs in pairs:
            assert_allclose(ours, theirs, atol=1e-10 * np.abs(Y).max(), rtol=1e-9)
    for alpha in alphas:
        assert_allclose(G @ one.coef(alpha).toarray() @ K, G @ two.coef(alpha).toarray() @ K, atol=1e-9)
        assert_allclose(one.leave_edges_out(alpha), two.leave_edges_out(alpha), atol=1e-9)
    held = one.leave_rows_out(alphas, constants=True)
    for h in range(12):
        rest = np.delete(np.arange(12), h)
        refit = Kronecker(Domain(G[np.ix_(rest, rest)]), Domain(K), Y[rest], ranking=True)
        for alpha, scores in zip(alphas, held, strict=True):
            expected = G[h, rest] @ refit.coef(alpha).toarray() @ K
            assert_allclose(scores[h], expected, atol=1e-9 * np.abs(Y).max())


@pytest.mark.parametrize("setting", [1, 2, 3, 4])
@pytest.mark.parametrize("complete", [True, False], ids=["complete", "incomplete"])
@pytest.mark.parametrize("condition", ["source", "target"])
def test_folds_of_every_setting_equal_refits(setting, complete, condition):
    X, Z = objects(12, 4, 0), objects(12, 4, 3)
    Y = relation(X, Z)
    Y = Y if complete else thinned(Y, 0.7)
    cv = RelationKFold(setting, 3)
    model = ConditionalRankRLS(alphas=[0.1, 10.0], kernel=Gaussian(0.1), cv=cv, condition=condition)
    model.set_params(tol=1e-10).fit(X, Y, Z)
    A, first, second = (Y, X, Z) if condition == "source" else (Y.T, Z, X)
    for train, test in cv.split(A):
        one = clone(model).set_params(alpha=model.alpha_, condition="source")
        one.fit(first[train.rows], train.of(A), second[train.columns])
        truth = test.of(A)
        held = (model.cv_predictions_ if condition == "source" else model.cv_predictions_.T)[
            np.ix_(test.rows, test.columns)
        ]
        known = ~np.isnan(truth)
        expected = one.predict(first[test.rows], second[test.columns])
        assert_allclose(held[known], expected[known], atol=1e-6 * np.nanstd(Y))


@pytest.mark.parametrize("kind", ["symmetric", "reciprocal"])
@pytest.mark.parametrize("loss", ["ranking", "regression"])
@pytest.mark.parametrize("complete", [True, False], ids=["complete", "incomplete"])
def test_symmetry_and_reciprocity_hold_exactly(kind, loss, complete):
    X, new = objects(15, 4), objects(9, 4, 7)
    Y = relation(X, parity=PARITY[kind])
    model = ConditionalRankRLS(kernel="rbf", relation=kind, loss=loss).fit(X, Y if complete else thinned(Y, 0.5))
    a = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    assert_array_equal(a, PARITY[kind] * a.T)
    scores = model.predict(new)
    assert_allclose(scores, PARITY[kind] * scores.T, rtol=1e-13, atol=1e-13 * np.abs(scores).max())


def test_regression_of_a_mirrored_relation_fits_that_part_of_the_labels():
    X = objects()
    Y = relation(X, parity=1)
    mirrored = ConditionalRankRLS(ALPHA, loss="regression", relation="symmetric").fit(X, Y)
    plain = ConditionalRankRLS(ALPHA, loss="regression").fit(X, (Y + Y.T) / 2)
    assert_allclose(mirrored.coef_, plain.coef_, atol=1e-12)


def test_small_alpha_of_symmetric_ranking_stays_accurate():
    X = objects(20, 40, twins=False)
    Y = relation(X, parity=1)
    K = X @ X.T
    # as alpha goes to 0 the scores interpolate, up to a constant per row, what a symmetric model can
    path = Mirrored(Domain(K), (Y + Y.T) / 2, 1)
    fitted = K @ path.coef(1e-9).toarray() @ K
    assert_allclose(up_to_constants(fitted), up_to_constants((Y + Y.T) / 2), atol=1e-2)
    assert np.isfinite(path.coef(1e-30).toarray()).all()


def test_repeated_edges_are_separate_observations():
    X, new = objects(6, 3), objects(4, 3, 9)
    Y = thinned(relation(X), 0.8)
    known = np.argwhere(~np.isnan(Y))
    doubled = np.vstack([known, known])
    values = Y[tuple(doubled.T)]
    model = ConditionalRankRLS(ALPHA, kernel=Gaussian(0.2), tol=1e-12).fit_edges(X, doubled, values)
    expected = oracle(X, Y, new, kernel=Gaussian(0.2), ranking=True, repeat=2)
    assert_allclose(model.predict(new), expected, atol=1e-8)
    once = ConditionalRankRLS(ALPHA / 2, kernel=Gaussian(0.2), tol=1e-12).fit_edges(X, known, Y[tuple(known.T)])
    assert_allclose(model.predict(new), once.predict(new), atol=1e-8)
    assert model.n_edges_ == 2 * once.n_edges_


def test_sparse_relations_know_what_they_store_and_add_up_duplicates():
    X = objects(6, 3)
    Y = thinned(relation(X), 0.6)
    known = np.argwhere(~np.isnan(Y))
    Y[tuple(known[0])] = 0.0  # a stored zero is known
    dense = ConditionalRankRLS(ALPHA, tol=1e-12).fit(X, Y)
    values = Y[tuple(known.T)]
    twice = sparse.coo_array((np.tile(values / 2, 2), np.tile(known.T, 2)), shape=Y.shape)
    for stored in (sparse.coo_array((values, tuple(known.T)), shape=Y.shape).tocsr(), twice):
        model = ConditionalRankRLS(ALPHA, tol=1e-12).fit(X, stored)
        assert model.n_edges_ == len(known)
        assert_allclose(model.coef_, dense.coef_, atol=1e-9)
    full = relation(X)
    assert ConditionalRankRLS(ALPHA).fit(X, sparse.csr_array(full)).solver_ == "closed"


def test_similarity_matrices_of_both_ends():
    X, Z = objects(7, 5, twins=False), objects(9, 4, 3, twins=False)
    Y = relation(X, Z)
    new, new_z = objects(3, 5, 8), objects(4, 4, 9)
    g, k = Gaussian(0.1), Gaussian(0.3)
    plain = ConditionalRankRLS(ALPHA, kernel=g, target_kernel=k).fit(X, Y, Z)
    given = ConditionalRankRLS(ALPHA, kernel="precomputed").fit(g(X, X), Y, k(Z, Z))
    assert_allclose(given.predict(g(new, X), k(new_z, Z)), plain.predict(new, new_z), atol=1e-12)
    assert_allclose(given.predict(g(new, X)), plain.predict(new), atol=1e-12)
    assert_array_equal(given.rank(g(new, X)).ids, plain.rank(new).ids)
    assert_allclose(given.score(g(X, X), Y), plain.score(X, Y))
    assert_allclose(
        [s.mean() for s in given.evaluate(g(X, X), Y, k(Z, Z), n_splits=2).values()],
        [s.mean() for s in plain.evaluate(X, Y, Z, n_splits=2).values()],
    )


def test_ranked_objects_come_with_their_ids():
    pandas = pytest.importorskip("pandas")
    X = objects(8, 3)
    Y = relation(X)
    names = [f"team {i}" for i in range(8)]
    frame = pandas.DataFrame(X, index=names, columns=["a", "b", "c"])
    model = ConditionalRankRLS(ALPHA).fit(frame, Y)
    ids, scores = model.rank(frame.iloc[[2, 3]], top=4)
    assert ids.shape == scores.shape == (2, 4)
    expected = model.predict(frame)[2]
    assert_array_equal(ids[0], np.array(names)[np.argsort(-expected, kind="stable")[:4]])
    assert_allclose(scores[0], np.sort(expected)[::-1][:4])
    one = model.rank(frame.iloc[2])
    assert one.ids.shape == (8,) and one.ids[0] == ids[0, 0]
    new = pandas.DataFrame(X[:2], index=["x", "y"], columns=["a", "b", "c"])
    assert set(model.rank(frame, new).ids.ravel()) == {"x", "y"}
    named = [("team 0", "team 3"), ("team 2", "team 1"), ("team 2", "team 5"), ("team 0", "team 4")]
    numbers = [(0, 3), (2, 1), (2, 5), (0, 4)]
    used = frame.iloc[:6]
    plain = used.reset_index(drop=True)
    assert_allclose(model.predict_edges(used, named), model.predict_edges(plain, numbers))
    by_name = ConditionalRankRLS(ALPHA).fit_edges(used, named, [1.0, 2.0, 3.0, 4.0])
    by_number = ConditionalRankRLS(ALPHA).fit_edges(used.to_numpy(), numbers, [1.0, 2.0, 3.0, 4.0])
    assert_allclose(by_name.coef_, by_number.coef_)
    turned = ConditionalRankRLS(ALPHA, condition="target").fit(frame, Y)
    assert set(turned.rank(frame).ids.ravel()) == set(names)  # and no word of names that are missing
    with pytest.raises(ValueError, match="target of edge 0 is 'nobody'"):
        model.predict_edges(frame, [("team 0", "nobody")])
    assert list(model.feature_names_in_) == ["a", "b", "c"]


def test_conditioning_on_the_target_ranks_the_sources():
    X, Z = objects(6, 3, twins=False), objects(8, 3, 4)  # the order of twins is rounding
    Y = relation(X, Z)
    by_target = ConditionalRankRLS(kernel="rbf", condition="target").fit(X, Y, Z)
    turned = ConditionalRankRLS(kernel="rbf").fit(Z, Y.T, X)
    assert by_target.alpha_ == turned.alpha_
    assert_allclose(by_target.predict(X, Z), turned.predict(Z, X).T, atol=1e-10)
    assert_allclose(by_target.cv_predictions_, turned.cv_predictions_.T, atol=1e-10)
    assert_array_equal(by_target.rank(Z).ids, turned.rank(Z).ids)
    assert by_target.rank(Z).ids.shape == (8, 6)
    assert_allclose(by_target.score(X, Y, Z), turned.score(Z, Y.T, X))
    found, expected = by_target.evaluate(X, Y, Z, n_splits=3), turned.evaluate(Z, Y.T, X, n_splits=3)
    assert found.keys() == expected.keys()


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("setting", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["dense", "sparse", "edges"])
def test_settings_hold_out_what_they_promise(setting, kind):
    Y = thinned(np.arange(1.0, 71).reshape(10, 7), 0.8)
    known = np.argwhere(~np.isnan(Y))
    splitter = RelationKFold(setting, 3)
    if kind == "edges":
        parts = [(known[a], known[b]) for a, b in splitter.split_edges(*known.T, Y.shape)]
    else:
        given = Y if kind == "dense" else sparse.coo_array((Y[tuple(known.T)], tuple(known.T)), shape=Y.shape)
        parts = []
        for pair in splitter.split(given):
            found = []
            for part in pair:
                values = part.of(given)
                local = np.argwhere(~np.isnan(values)) if kind == "dense" else np.transpose(values.tocoo().coords)
                edge = np.column_stack([part.rows[local[:, 0]], part.columns[local[:, 1]]])
                taken = values[tuple(local.T)] if kind == "dense" else values.tocoo().data
                assert_array_equal(taken, Y[tuple(edge.T)])
                found.append(edge)
            parts.append(found)
    assert len(parts) == 3
    seen = []
    for train, test in parts:
        rows_shared = set(train[:, 0]) & set(test[:, 0])
        columns_shared = set(train[:, 1]) & set(test[:, 1])
        assert bool(rows_shared) == (setting in (1, 3)), "conditioning objects are new in settings 2 and 4"
        assert bool(columns_shared) == (setting in (1, 2)), "ranked objects are new in settings 3 and 4"
        assert not {tuple(e) for e in train} & {tuple(e) for e in test}
        seen += [tuple(e) for e in test]
    assert len(seen) == len(set(seen))
    if setting != 4:
        assert set(seen) == {tuple(e) for e in known}


def test_mirrored_edges_are_held_out_together():
    Y = np.zeros((8, 8))
    for train, test in RelationKFold(1, 4, same_objects=True).split(Y):
        held = test.edges.reshape(8, 8)
        assert_array_equal(held, held.T)
        assert_array_equal(train.edges, ~test.edges)
    for train, test in RelationKFold(4, 4, same_objects=True).split(Y):
        assert_array_equal(test.rows, test.columns)
        assert not set(train.rows) & set(test.rows)


def test_harder_settings_score_lower():
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(40, 2)), rng.normal(size=(50, 2))
    X, Z = (w + 0.3 * rng.normal(size=w.shape) for w in (u, v))
    found = {s: x.mean() for s, x in ConditionalRankRLS(kernel="rbf").evaluate(X, u @ v.T, Z).items()}
    assert found[1] > found[4] and found[2] > found[4]


# ---------------------------------------------------------------- solvers


def test_one_krylov_space_serves_every_shift():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 20))
    M, b, shifts = A @ A.T, rng.normal(size=30), np.array([0.1, 10.0, 1e3])
    found = multishift_cg(lambda v: M @ v, b, shifts, tol=1e-12)
    for j, shift in enumerate(shifts):
        assert_allclose(found.value[:, j], np.linalg.solve(M + shift * np.eye(30), b), rtol=1e-8)
    assert found.history[0] == 1 and found.history[-1] <= 1e-12 and len(found.history) == found.iterations + 1
    solve = lambda v: v / (np.diag(M) + 0.1)
    start = rng.normal(size=30)
    found = preconditioned_cg(lambda v: M @ v, b, 0.1, solve, start=start, tol=1e-12)
    assert_allclose(found.value[:, 0], np.linalg.solve(M + 0.1 * np.eye(30), b), rtol=1e-8)
    for nothing in (
        multishift_cg(lambda v: M @ v, 0 * b, shifts),
        preconditioned_cg(lambda v: M @ v, 0 * b, 1.0, solve),
    ):
        assert nothing.converged and not nothing.value.any()
    singular = multishift_cg(lambda v: 0 * v, b, np.zeros(1))
    assert not singular.converged and np.isfinite(singular.value).all()


def test_preconditioning_by_the_complete_graph_saves_iterations():
    X = objects(40, 6)
    Y = relation(X)
    np.fill_diagonal(Y, np.nan)  # nobody plays against himself
    models = {s: ConditionalRankRLS(0.05, kernel=Gaussian(0.1), solver=s).fit(X, Y) for s in ("cg", "pcg", "auto")}
    assert models["auto"].solver_ == "pcg"
    assert 2 * models["pcg"].n_iter_ < models["cg"].n_iter_
    assert_allclose(models["pcg"].predict(X), models["cg"].predict(X), atol=1e-3)


def test_stopping_early_gives_a_warning():
    X = objects(12, 6)
    Y = thinned(relation(X), 0.5)
    with pytest.warns(ConvergenceWarning, match="stopped after 3 iterations"):
        model = ConditionalRankRLS(1e-6, kernel="rbf", max_iter=3).fit(X, Y)
    assert model.n_iter_ == 3 and len(model.residuals_) == 4
    early = ConditionalRankRLS(0.0, kernel="rbf", max_iter=3).fit(X, Y)  # here stopping is what regularises
    assert early.n_iter_ == 3 and np.isfinite(early.predict(X)).all()
    with pytest.raises(ValueError, match="a kernel fits any values"):
        ConditionalRankRLS(0.0, kernel="rbf").fit(X, relation(X))


def test_many_objects_with_few_features_never_get_a_kernel_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))  # a kernel matrix would take 3 GB
    W = rng.normal(size=(5, 5))
    pairs = rng.integers(0, len(X), (60_000, 2))
    pairs[: len(X), 0] = np.arange(len(X))
    y = np.einsum("ij,jk,ik->i", X[pairs[:, 0]], W, X[pairs[:, 1]])
    model = ConditionalRankRLS(alpha=1e-3, loss="regression").fit_edges(X, pairs, y)
    assert_allclose(model.coef_, W, atol=1e-3)


# ---------------------------------------------------------------- bad input


def test_clear_errors_for_bad_input():
    X, Z = objects(6, 3), objects(8, 3, 4)
    Y, two = relation(X), relation(X, Z)
    fit = lambda X, Y, Z=None, **params: ConditionalRankRLS(**params).fit(X, Y, Z)
    for words, call in {
        "shape (6, 6), since X has 6 objects: got shape (6, 8); pass Z": lambda: fit(X, two),
        "since X has 6 objects, Z has 8: got shape (6, 6)": lambda: fit(X, Y, Z),
        "relates objects of one kind": lambda: fit(X, two, Z, relation="symmetric"),
        "target_kernel is the kernel of Z": lambda: fit(X, Y, target_kernel="rbf"),
        "the same, 1, for all 36 edges": lambda: fit(X, np.ones((6, 6))),
        "no conditioning object has two edges of different value": lambda: fit(X, np.arange(6.0)[:, None] * np.ones(6)),
        "2 entries are": lambda: fit(X, np.where(np.arange(36).reshape(6, 6) > 33, np.inf, Y)),
        "relation must be one of": lambda: fit(X, Y, relation="symetric"),
        "did you mean 'symmetric'": lambda: fit(X, Y, relation="symetric"),
        "cv must be": lambda: fit(X, Y, cv="leave-query-out"),
        'gamma="auto" is not available': lambda: fit(X, Y, kernel=Gaussian("auto"), basis=3),
        "needs every edge, but 35 of 36": lambda: fit(
            X, np.where(np.arange(36).reshape(6, 6) == 4, np.nan, Y), solver="closed"
        ),
        "alpha must be": lambda: fit(X, Y, alpha=-1.0),
        "edges must be a (q, 2) array": lambda: ConditionalRankRLS().fit_edges(X, [1, 2], [1, 2]),
        "source of edge 1 is 6, but there are objects 0 to 5": lambda: ConditionalRankRLS().fit_edges(
            X, [(0, 1), (6, 2)], [1, 2]
        ),
        "y must be finite": lambda: ConditionalRankRLS().fit_edges(X, [(0, 1), (1, 2)], [1, np.nan]),
        "settings must be among 1, 2, 3, 4": lambda: ConditionalRankRLS(relation="symmetric").evaluate(
            X, Y, settings=[5]
        ),
        'cv="time" holds out later edges': lambda: fit(X, Y, cv="time"),
        "setting must be": lambda: RelationKFold(5),
        "cannot hold out 9 folds of 6 objects": lambda: fit(X, Y, cv=9),
    }.items():
        with pytest.raises(ValueError) as error:
            call()
        assert words in str(error.value), f"{words!r} not in {error.value}"


def test_objects_without_edges_are_counted_in_one_warning():
    X = objects(6, 3)
    Y = relation(X)
    Y[3], Y[:, 3] = np.nan, np.nan
    with pytest.warns(UserWarning, match="1 of 6 objects of X have no edge") as caught:
        model = ConditionalRankRLS(ALPHA, tol=1e-12).fit(X, Y)
    assert len(caught) == 1
    rest = np.delete(np.arange(6), 3)
    without = ConditionalRankRLS(ALPHA, tol=1e-12).fit(X[rest], Y[np.ix_(rest, rest)])
    assert_allclose(model.predict(X), without.predict(X), atol=1e-9)
    Z = objects(6, 3, 5)
    Y = relation(X, Z)
    Y[:, 2] = np.nan
    with pytest.warns(UserWarning, match="1 of 6 objects of Z have no edge"):
        ConditionalRankRLS(ALPHA).fit(X, Y, Z)


def test_relations_that_contradict_the_data_are_refused():
    X = objects(10, 3)
    Y = np.random.default_rng(0).normal(size=(10, 10))
    skew = Y - Y.T + 5.0  # a constant is neither here nor there
    with pytest.raises(ValueError, match="100% of its variation is skew"):
        ConditionalRankRLS(relation="symmetric").fit(X, skew)
    with pytest.raises(ValueError, match='relation="reciprocal" contradicts Y'):
        ConditionalRankRLS(relation="reciprocal").fit(X, Y + Y.T)
    with pytest.raises(ValueError, match="contradicts Y"):
        ConditionalRankRLS(relation="symmetric").fit(X, thinned(skew, 0.9))
    ConditionalRankRLS(1.0, relation="reciprocal").fit(X, skew)
    ConditionalRankRLS(1.0, relation="symmetric").fit(X, Y + Y.T + 0.5 * Y)  # noise is what projection is for


def test_similarities_that_are_not_positive_semidefinite():
    rng = np.random.default_rng(0)
    X = objects(12, 4, twins=False)
    K = Gaussian(0.2)(X, X)
    Y = relation(X)
    bent = K - 0.1 * np.eye(12)
    with pytest.raises(ValueError, match='not positive semi-definite .smallest eigenvalue -0.*indefinite="clip"'):
        ConditionalRankRLS(kernel="precomputed").fit(bent, Y)
    shifted = ConditionalRankRLS(1.0, kernel="precomputed", indefinite="shift").fit(bent, Y)
    d, U = np.linalg.eigh(bent)
    plain = ConditionalRankRLS(1.0, kernel="precomputed").fit(bent - d[0] * np.eye(12), Y)
    assert_allclose(shifted.predict(shifted.X_fit_), plain.predict(plain.X_fit_), atol=1e-8)
    clipped = ConditionalRankRLS(1.0, kernel="precomputed", indefinite="clip").fit(bent, Y)
    plain = ConditionalRankRLS(1.0, kernel="precomputed").fit((U * np.maximum(d, 0)) @ U.T, Y)
    assert_allclose(clipped.predict(bent), plain.predict((U * np.maximum(d, 0)) @ U.T), atol=1e-8)
    for solver, loss in (("closed", "ranking"), ("closed", "regression"), ("cg", "ranking"), ("cg", "regression")):
        params = {"kernel": "precomputed", "solver": solver, "loss": loss, "tol": 1e-12, "max_iter": 10_000}
        plain = ConditionalRankRLS(0.01, **params).fit((U * np.maximum(d, 0)) @ U.T, Y)
        clipped = ConditionalRankRLS(0.01, indefinite="clip", **params).fit(bent, Y)
        expected = plain.predict((U * np.maximum(d, 0)) @ U.T)
        assert_allclose(up_to_constants(clipped.predict(bent)), up_to_constants(expected), atol=1e-4)
        assert_allclose(up_to_constants(clipped.predict(clipped.X_fit_)), up_to_constants(expected), atol=1e-4)
    crooked = K + 0.01 * rng.normal(size=K.shape)
    with pytest.raises(ValueError, match=r"not symmetric: K\[.*pass \(K \+ K.T\) / 2"):
        ConditionalRankRLS(kernel="precomputed").fit(crooked, Y)


def test_too_large_for_memory_is_refused_before_computing(limit):
    limit(free_memory=1e4)
    X = objects(30, 3)
    with pytest.raises(MemoryError, match="complete relation between 30 and 30 objects"):
        ConditionalRankRLS().fit(X, relation(X))
    with pytest.raises(MemoryError, match="kernel matrix of 30 objects of X"):
        ConditionalRankRLS(kernel="rbf").fit(X, relation(X))


def test_scikit_learn_conventions_of_relations():
    X = objects(10, 3)
    Y = relation(X)
    model = ConditionalRankRLS(kernel=Gaussian(0.1), relation=None)
    copy = clone(model)
    assert copy.get_params()["kernel"] == Gaussian(0.1) and not hasattr(copy, "alpha_")
    before = X.copy(), Y.copy()
    model.fit(X, Y)
    for array, kept in zip((X, Y), before, strict=True):
        assert_array_equal(array, kept)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(X), model.predict(X))
    assert "ConditionalRankRLS" in repr(model) and "pairwise" in model._repr_html_()
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="Z has 2 features"):
        model.predict(X, X[:, :2])
    wide = sparse.csr_array(objects(10, 20))
    assert_allclose(
        ConditionalRankRLS(1.0).fit(wide, Y).predict(wide), ConditionalRankRLS(1.0).fit(wide.toarray(), Y).predict(wide)
    )
    thin = sparse.csr_array(X)
    assert_allclose(ConditionalRankRLS(1.0).fit(thin, Y).coef_, ConditionalRankRLS(1.0).fit(X, Y).coef_)
    single = ConditionalRankRLS(1.0).fit(X.astype(np.float32), Y.astype(np.float32))
    assert_allclose(single.predict(X), ConditionalRankRLS(1.0).fit(X, Y).predict(X), atol=1e-4)
    integers = ConditionalRankRLS(1.0).fit(X, (Y > 0).astype(int))
    assert np.isfinite(integers.predict(X)).all()


@pytest.mark.parametrize("kind", [None, "symmetric"])
@pytest.mark.parametrize("complete", [True, False], ids=["complete", "incomplete"])
def test_objects_that_are_all_alike_are_all_ranked_alike(kind, complete):
    Y = relation(objects(8, 3), parity=1)
    for X, kernel in ((np.zeros((8, 3)), None), (np.ones((8, 3)), "rbf"), (np.zeros((8, 20)), None)):
        model = ConditionalRankRLS(kernel=kernel, relation=kind).fit(X, Y if complete else thinned(Y, 0.8))
        scores = model.predict(X)
        assert_allclose(up_to_constants(scores), 0, atol=1e-10)


def test_long_fits_report_progress(capsys, limit):

    seconds = iter(range(10**6))
    limit(clock=lambda: next(seconds))
    X = objects(12, 4)
    ConditionalRankRLS(kernel="rbf", verbose=True).fit(X, thinned(relation(X), 0.7))
    printed = capsys.readouterr().err
    assert "fold 1 of 5, conjugate gradients: " in printed and "left" in printed
    ConditionalRankRLS(kernel="rbf", relation="symmetric", verbose=True).fit(X, relation(X, parity=1))
    assert "folds: 100 %" in capsys.readouterr().err


@pytest.mark.parametrize("relation", ["symmetric", "reciprocal"])
def test_edges_in_one_direction_only_contradict_no_relation(relation):
    rng = np.random.default_rng(0)
    X, edges = rng.normal(size=(12, 3)), np.array([(i, j) for i in range(12) for j in range(i)])
    y = rng.normal(size=len(edges))
    model = ConditionalRankRLS(1.0, relation=relation).fit_edges(X, edges, y)
    sign = 1 if relation == "symmetric" else -1
    assert_allclose(model.predict(X), sign * model.predict(X).T, atol=1e-12)


def test_held_out_scores_are_computed_when_they_are_asked_for():
    X = objects(30)
    Y = relation(X)
    model = ConditionalRankRLS(kernel=Gaussian(0.3)).fit(X, Y)
    assert "cv_predictions_" not in vars(model)
    again, copied = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)  # which computes them
    assert_array_equal(again.cv_predictions_, model.cv_predictions_)
    assert_array_equal(copied.cv_predictions_, model.cv_predictions_)
    path = CompleteProblem(
        Domain(Gaussian(0.3)(X, X)), Domain(Gaussian(0.3)(X, X)), EdgeSet(Y.shape, Y), RelationLoss()
    )
    assert_allclose(model.cv_predictions_, path.held_out(model.alpha_, "leave-row-out"), atol=1e-9)
    model.fit(X, Y + 1.0)
    assert "cv_predictions_" not in vars(model)  # those of the last fit are gone
    with pytest.raises(AttributeError, match="nothing was held out"):
        getattr(ConditionalRankRLS(1.0).fit(X, Y), "cv_predictions_")  # noqa: B009


def share_of_close_pairs(scores, Y, error):
    """(k,) The share of pairs with unequal labels that errors (k, n) of scores (k, n, m) can turn, averaged over rows.

    Scores that are equal but for rounding must stay tied, however large the error.
    """
    shares = []
    for row, labels in enumerate(Y):
        i, j = np.nonzero(labels[:, None] > labels)
        apart = np.abs(scores[:, row, i] - scores[:, row, j])
        tied = apart <= 1e-12 * np.abs(labels).max()
        shares.append(np.mean((apart <= 2 * error[:, row, None]) & ~tied, axis=1))
    return np.mean(shares, axis=0)


@pytest.mark.parametrize("kernel", [Gaussian(0.02), Gaussian(0.1), Gaussian(0.5), Linear()])
@pytest.mark.parametrize("labels", ["real", "groups"])
def test_scores_that_follow_from_those_at_other_alphas_are_right(kernel, labels):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(320, 8))
    groups = rng.integers(0, 9, 320)
    X[:, :4] += rng.normal(size=(9, 4))[groups]
    X[-1] = 40.0  # has nothing in common with others
    Y = X @ rng.normal(size=(8, 8)) @ X.T + 3 * rng.normal(size=(320, 320))
    Y = (groups[:, None] == groups).astype(float) if labels == "groups" else Y
    K = Domain(kernel(X, X)) if not isinstance(kernel, Linear) else Domain(X, True)
    edges, metric = EdgeSet(Y.shape, Y), metrics.get_metric("pairwise_accuracy")
    exact, single = (CompleteProblem(K, K, edges, RelationLoss(), limit) for limit in (10**9, 0))
    alphas = choice.default_alphas(exact.mean_eigenvalue)
    held = single.path.closed.leave_rows_out(alphas / single.path.unit, np.float32)
    plan = _RowsOut.of(single.path.closed, alphas / single.path.unit, np.float32, INTERPOLATE).between(np.arange(320))
    assert len(plan.others) or isinstance(kernel, Gaussian)
    slow = exact.path.closed.leave_rows_out(alphas / single.path.unit)
    wanted, found = (one.scores(alphas, metric, "leave-row-out") for one in (exact, single))
    assert_allclose(found, wanted, atol=2e-6)  # a pair of a row is 6e-8, or 3e-7 with groups
    assert np.all(np.abs(found - wanted) <= share_of_close_pairs(slow, Y, np.abs(held - slow).max(axis=2)))
    size = lambda M: np.sqrt(np.einsum("khj,khj->kh", M, M))
    assert np.mean(size(held - slow) / (size(slow) + 1e-3 * np.linalg.norm(Y, axis=1))) < 1e-5
