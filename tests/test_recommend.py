"""Many objects: implicit feedback in closed form, the best few of many, sparse features, bases, weights, precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import oracles
from rankrls import ConditionalRankRLS
from rankrls.core.fused import compiled_code
from rankrls.kernels import Gaussian
from rankrls.relations import top
from rankrls.relations.edges import EdgeKernel
from rankrls.relations.relation import Domain

ALPHA = 0.7


def shop(n=14, m=11, seed=0):
    rng = np.random.default_rng(seed)
    users, items = rng.normal(size=(n, 4)), rng.normal(size=(m, 3))
    Y = sparse.csr_array((users @ rng.normal(size=(4, 3)) @ items.T + rng.normal(size=(n, m)) > 1.5).astype(float))
    return users, Y, items


@pytest.mark.parametrize("loss", ["ranking", "regression"])
@pytest.mark.parametrize("kernel", [None, Gaussian(0.2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_entries_that_are_not_stored_are_zero_without_a_dense_relation(loss, kernel, weighted):
    users, Y, items = shop()
    weights = np.random.default_rng(1).random(14) + 0.1 if weighted else None
    model = ConditionalRankRLS(ALPHA, kernel=kernel, loss=loss, missing="zero").fit(
        users, Y, items, sample_weight=weights
    )
    G, K = (users @ users.T, items @ items.T) if kernel is None else (kernel(users, users), kernel(items, items))
    edges = [(i, j) for i in range(14) for j in range(11)]
    M = oracles.pair_kernel(G, K, edges, edges)
    u = None if weights is None else np.repeat(weights, 11)
    a, _ = oracles.relation_model(
        M, Y.toarray().ravel(), [e[0] for e in edges], ALPHA, ranking=loss == "ranking", weights=u
    )
    assert_allclose(model.predict(users).ravel(), M @ a, atol=1e-8)
    assert model.solver_ == "closed"
    dense = ConditionalRankRLS(ALPHA, kernel=kernel, loss=loss).fit(users, Y.toarray(), items, sample_weight=weights)
    assert_allclose(model.predict(users), dense.predict(users), atol=1e-9)
    auto = ConditionalRankRLS(kernel=kernel, loss=loss, missing="zero").fit(users, Y, items)
    same = ConditionalRankRLS(kernel=kernel, loss=loss).fit(users, Y.toarray(), items)
    assert_allclose(auto.cv_scores_, same.cv_scores_)
    assert_allclose(auto.predict(users), same.predict(users), atol=1e-9)


@pytest.mark.parametrize("relation", ["symmetric", "reciprocal"])
@pytest.mark.parametrize("loss", ["ranking", "regression"])
def test_sparse_relations_with_symmetry(relation, loss):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 3)), sparse.csr_array(np.triu(rng.random((9, 9)) < 0.3, 1).astype(float))
    Y = Y + (1 if relation == "symmetric" else -1) * Y.T
    found = ConditionalRankRLS(ALPHA, relation=relation, loss=loss, missing="zero").fit(X, Y)
    dense = ConditionalRankRLS(ALPHA, relation=relation, loss=loss).fit(X, Y.toarray())
    assert_allclose(found.coef_, dense.coef_, atol=1e-10)


def test_lists_of_purchases():
    users, Y, items = shop()
    bought = np.column_stack(Y.tocoo().coords)
    model = ConditionalRankRLS(ALPHA, missing="zero").fit_edges(users, bought, Z=items)
    assert_allclose(model.coef_, ConditionalRankRLS(ALPHA, missing="zero").fit(users, Y, items).coef_)
    with pytest.raises(ValueError, match="does not take weights of edges"):
        ConditionalRankRLS(ALPHA, missing="zero").fit_edges(
            users, bought, Z=items, sample_weight=np.arange(len(bought)) + 1
        )


def test_entries_of_a_matrix_may_be_weighted():
    users, Y, items = shop()
    rng = np.random.default_rng(3)
    weights = rng.random(Y.shape)
    model = ConditionalRankRLS(ALPHA, tol=1e-12).fit(users, Y.toarray(), items, sample_weight=weights)
    edges = [(i, j) for i in range(14) for j in range(11)]
    M = oracles.pair_kernel(users @ users.T, items @ items.T, edges, edges)
    a, _ = oracles.relation_model(
        M, Y.toarray().ravel(), [e[0] for e in edges], ALPHA, ranking=True, weights=weights.ravel()
    )
    assert_allclose(model.predict(users).ravel(), M @ a, atol=1e-7)


@pytest.mark.parametrize("m", [7, 500, 9000])
@pytest.mark.parametrize("ties", [False, True])
def test_the_best_few_are_those_of_plain_sorting(m, ties):
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(13, 3)), rng.normal(size=(m, 3))
    if ties:
        left, right = np.sign(left), np.sign(right)
    excluded = sparse.csr_array(rng.random((13, m)) < 0.2)
    excluded = sparse.csr_array(
        excluded + sparse.csr_array(np.arange(13)[:, None] == np.full((1, m), 4))
    )  # row 4: nothing
    held = {tuple(e) for e in np.column_stack(excluded.tocoo().coords).tolist()}
    places, scores = top.best(left, right, 6, excluded)
    for row, (expected, place, score) in enumerate(
        zip(oracles.top_of(left @ right.T, 6, held), places, scores, strict=True)
    ):
        n = len(expected)
        assert place[:n].tolist() == [j for j, _ in expected], row
        assert_allclose(score[:n], [v for _, v in expected])
        assert (place[n:] == -1).all() and np.isnan(score[n:]).all()


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("condition", ["source", "target"])
def test_recommendations(kernel, condition):
    pd = pytest.importorskip("pandas")
    users, Y, items = shop()
    people = pd.DataFrame(users, index=[f"u{i}" for i in range(14)], columns=list("abcd"))
    goods = pd.DataFrame(items, index=np.arange(100, 111), columns=list("xyz"))
    model = ConditionalRankRLS(ALPHA, kernel=kernel, missing="zero", condition=condition).fit(people, Y, goods)
    scores, seen = model.predict(people), Y.toarray()
    if condition == "target":
        scores, seen = scores.T, seen.T
    whom, what = (people, goods) if condition == "source" else (goods, people)
    found = model.recommend(whom, top=3, exclude=sparse.csr_array(seen))
    expected = oracles.top_of(scores, 3, {tuple(e) for e in np.argwhere(seen).tolist()})
    labels = np.asarray(what.index)
    assert_array_equal(found.ids, [[labels[j] for j, _ in row] for row in expected])
    assert_allclose(found.scores, [[v for _, v in row] for row in expected])
    again = model.recommend(whom, top=3, exclude=sparse.csr_array(seen))  # from what was kept
    assert_array_equal(again.ids, found.ids)
    table = model.recommend(list(whom.index[:2]), top=3, exclude="known")
    assert_array_equal(table["id"], found.ids[:2].ravel())
    assert_array_equal(model.recommend(None, top=2).ids, model.rank(whom, top=2).ids)
    pairs = [(whom.index[0], labels[0])]
    assert labels[0] not in model.recommend(whom, top=len(labels) - 1, exclude=pairs).ids[0]
    with pytest.raises(ValueError, match="exclude must be of shape"):
        model.recommend(whom, exclude=sparse.csr_array((3, 3)))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("parity", [0, 1, -1])
def test_products_of_sparse_features_are_those_of_dense_ones(parity, compiled):
    if compiled:
        pytest.importorskip("numba")
    with compiled_code(compiled):
        _compare_with_dense(parity, compiled)


def _compare_with_dense(parity, compiled):
    rng = np.random.default_rng(0)
    X = sparse.random_array((30, 50), density=0.05, rng=rng, format="csr")
    Z = X if parity else sparse.random_array((20, 40), density=0.05, rng=rng, format="csr")
    rows, columns = rng.integers(0, 30, 60), rng.integers(0, Z.shape[0], 60)
    kernel = EdgeKernel(Domain(X, True), Domain(Z, True), rows, columns, parity)
    assert (kernel.grams is None, kernel.pair_features is None) == (not compiled, compiled)
    edges = list(zip(rows, columns, strict=True))
    other = list(zip(rng.integers(0, 30, 9), rng.integers(0, Z.shape[0], 9), strict=True))
    G, K = (X @ X.T).toarray(), (Z @ Z.T).toarray()
    v = rng.normal(size=60)
    assert_allclose(kernel(v), oracles.edge_kernel(G, K, edges, edges, parity) @ v, atol=1e-12)
    assert_allclose(kernel.at(v, *np.transpose(other)), oracles.edge_kernel(G, K, other, edges, parity) @ v, atol=1e-12)
    assert_allclose(kernel(2 * v), 2 * kernel(v), atol=1e-12)  # after other edges


def test_sparse_features_give_the_model_of_dense_ones():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 60), density=0.03, rng=rng, format="csr")
    edges, y = rng.integers(0, 300, (400, 2)), rng.normal(size=400)
    thin = ConditionalRankRLS(ALPHA, tol=1e-12)
    with pytest.warns(UserWarning, match="have no edge"):
        thin.fit_edges(X, edges, y)
    with pytest.warns(UserWarning, match="have no edge"):
        full = ConditionalRankRLS(ALPHA, tol=1e-12).fit_edges(X.toarray(), edges, y)
    assert_allclose(thin.predict_edges(X, edges), full.predict_edges(X.toarray(), edges), atol=1e-9)
    assert_allclose(thin.predict(X[:5], X[:7]), full.predict(X[:5].toarray(), X[:7].toarray()), atol=1e-9)
    Y = rng.normal(size=(300, 300))
    assert_allclose(
        ConditionalRankRLS(ALPHA).fit(X, Y).predict(X),
        ConditionalRankRLS(ALPHA).fit(X.toarray(), Y).predict(X),
        atol=1e-9,
    )


@pytest.mark.parametrize("missing", ["unknown", "zero"])
@pytest.mark.parametrize("sides", ["both", "one", "linear and basis"])
def test_a_basis_of_all_points_is_the_full_kernel(missing, sides):
    users, Y, items = shop()
    given = Y if missing == "zero" else np.where(np.random.default_rng(0).random(Y.shape) < 0.8, Y.toarray(), np.nan)
    kernel = {"kernel": None if sides == "linear and basis" else Gaussian(0.2), "target_kernel": Gaussian(0.3)}
    basis = {"basis": users, "target_basis": items} if sides == "both" else {"target_basis": items}
    few = ConditionalRankRLS(ALPHA, missing=missing, tol=1e-12, **kernel, **basis).fit(users, given, items)
    full = ConditionalRankRLS(ALPHA, missing=missing, tol=1e-12, **kernel).fit(users, given, items)
    new = users[:4] + 0.1
    assert_allclose(few.predict(new), full.predict(new), atol=1e-6)
    assert_allclose(few.predict(new, items[:3]), full.predict(new, items[:3]), atol=1e-6)
    small = ConditionalRankRLS(
        ALPHA, missing=missing, tol=1e-12, **kernel, basis=3 if sides == "both" else None, target_basis=5
    )
    assert small.fit(users, given, items).dual_coef_.shape == (3 if sides == "both" else 14 if sides == "one" else 4, 5)


def test_single_precision_stays_single():
    users, Y, items = shop()
    model = ConditionalRankRLS(ALPHA, missing="zero").fit(users.astype(np.float32), Y, items.astype(np.float32))
    assert model.coef_.dtype == model.predict(users.astype(np.float32)).dtype == np.float32
    double = ConditionalRankRLS(ALPHA, missing="zero").fit(users, Y, items)
    assert_allclose(model.coef_, double.coef_, rtol=1e-4, atol=1e-6)


def test_the_whole_table_of_edges_may_be_excluded():
    pd = pytest.importorskip("pandas")
    users, Y, items = shop()
    people = pd.DataFrame(users, index=[f"u{i}" for i in range(14)], columns=list("abcd"))
    goods = pd.DataFrame(items, index=[f"i{i}" for i in range(11)], columns=list("xyz"))
    rows, columns = Y.tocoo().coords
    log = pd.DataFrame({"when": 1.0, "item": goods.index[columns], "user": people.index[rows]})
    for condition in ("source", "target"):
        model = ConditionalRankRLS(ALPHA, missing="zero", condition=condition)
        model.fit_edges(people, log, Z=goods, source="user", target="item")
        some = people.index[[3, 5]] if condition == "source" else goods.index[[3, 5]]
        known = model.recommend(list(some), top=4, exclude="known")
        pd.testing.assert_frame_equal(model.recommend(list(some), top=4, exclude=log), known)
        pairs = log[["user", "item"] if condition == "source" else ["item", "user"]]
        pd.testing.assert_frame_equal(model.recommend(list(some), top=4, exclude=pairs.to_numpy().tolist()), known)
        assert known["truth"].isna().all()
        with pytest.raises(ValueError, match="which is not the id of any"):
            model.recommend(list(some), exclude=[("nobody", "nothing")])
    strangers = people.rename(index={"u3": "new"}).loc[["new", "u5"]]
    model = ConditionalRankRLS(ALPHA, missing="zero").fit_edges(people, log, Z=goods, source="user", target="item")
    found = model.recommend(strangers, top=11, exclude="known")
    assert None not in found.ids[0].tolist()  # nothing is known of a new user
    assert_array_equal(found.ids[1][:4], model.recommend(["u5"], top=4, exclude="known")["id"])


def test_the_truth_of_candidates_is_their_own():
    pd = pytest.importorskip("pandas")
    users, Y, items = shop()
    people = pd.DataFrame(users, index=[f"u{i}" for i in range(14)], columns=list("abcd"))
    goods = pd.DataFrame(items, index=[f"i{i}" for i in range(11)], columns=list("xyz"))
    model = ConditionalRankRLS(ALPHA).fit(people, Y.toarray(), goods)
    some = goods.iloc[[7, 2, 5]].rename(index={"i5": "new"})
    table = model.rank("u3", some).set_index("id")["truth"]
    assert table["i7"] == Y.toarray()[3, 7] and table["i2"] == Y.toarray()[3, 2] and np.isnan(table["new"])
    assert model.rank("u3", items[:3])["truth"].isna().all()  # rows without ids could be anybody
