"""Edges from files, lazy tables, iterators and clusters give the same model as edges in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rankrls import ConditionalRankRLS, load, save
from rankrls.kernels import Gaussian
from rankrls.system.limits import limited

pd = pytest.importorskip("pandas")
COLUMNS = {"source": "user", "target": "item", "sample_weight": "weight"}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    users = pd.DataFrame(rng.normal(size=(30, 4)), index=[f"u{i}" for i in range(30)], columns=list("abcd"))
    items = pd.DataFrame(rng.normal(size=(40, 3)), index=np.arange(100, 140), columns=list("xyz"))
    rows, columns = rng.integers(30, size=500), rng.integers(40, size=500)
    score = np.einsum("ij,jk,ik->i", users.to_numpy()[rows], rng.normal(size=(4, 3)), items.to_numpy()[columns])
    edges = pd.DataFrame(
        {
            "user": users.index[rows],
            "item": items.index[columns],
            "value": score + rng.normal(size=500),
            "weight": rng.uniform(0.5, 2, size=500),
        }
    )
    return users, items, edges


def sources(edges, folder):
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    edges.iloc[:300].to_parquet(folder / "a.parquet")
    edges.iloc[300:].to_parquet(folder / "b.parquet")
    edges.to_csv(folder / "edges.csv", index=False)
    parts = [edges.iloc[i : i + 90] for i in range(0, 500, 90)]
    return {
        "one file": folder / "edges.csv",
        "a folder": str(folder),
        "iterator": iter(parts),
        "function": lambda: iter(parts),
        "lazy": polars.from_pandas(edges).lazy(),
        "reader": pyarrow.Table.from_pandas(edges).to_reader(70),
    }


MODELS = {
    "product": {},
    "regression": {"loss": "regression"},
    "sum": {"pairwise": "sum"},
    "turned": {"condition": "target"},
    "basis": {"kernel": Gaussian(0.3), "basis": 6, "target_basis": 5},
}


@pytest.mark.parametrize("name", MODELS)
def test_every_stream_gives_the_same_model_as_memory(name, data, tmp_path):
    users, items, edges = data
    make = lambda: ConditionalRankRLS(0.7, tol=1e-13, **MODELS[name])
    expected = make().fit_edges(users, edges, "value", items, **COLUMNS).predict()
    for kind, stream in sources(edges, tmp_path).items():
        with limited(table_rows=64):
            found = make().fit_edges(users, stream, "value", items, **COLUMNS)
        shift = (lambda S: S) if name == "regression" else _centred(found)
        assert_allclose(shift(found.predict()), shift(expected), atol=1e-7, err_msg=kind)
        assert found.n_edges_ == 500 and found.edge_columns_["y"] == "value"
    save(found, tmp_path / "m.rankrls")
    assert_allclose(load(tmp_path / "m.rankrls").predict(), found.predict())
    assert found.rank(users.index[0] if name != "turned" else 100, top=3).shape[0] == 3


def _centred(model):
    """Scores without the level of each row, which a ranking leaves open."""
    axis = 1 if model.condition == "source" else 0
    return lambda S: S - S.mean(axis=axis, keepdims=True)


@pytest.mark.parametrize("relation", ["reciprocal", "symmetric"])
@pytest.mark.parametrize("pairwise", ["kronecker", "sum"])
def test_games_in_blocks(relation, pairwise, data):
    users, _, edges = data
    games = edges.assign(item=users.index[edges["item"] % 30])
    options = {"relation": relation, "pairwise": pairwise, "loss": "regression", "tol": 1e-13}
    expected = ConditionalRankRLS(0.5, **options).fit_edges(users, games, "value", **COLUMNS)
    found = ConditionalRankRLS(0.5, **options).fit_edges(
        users, (games.iloc[i : i + 77] for i in range(0, 500, 77)), "value", **COLUMNS
    )
    assert_allclose(found.predict(), expected.predict(), atol=1e-7)
    assert_allclose(found.rating(), expected.rating(), atol=1e-7)


def test_alpha_is_chosen_by_the_held_out_loss_of_refits(data):
    users, items, edges = data
    alphas = [0.01, 1.0, 100.0]
    found = ConditionalRankRLS(alphas=alphas).fit_edges(users, iter([edges]), "value", items, **COLUMNS)
    fold = np.random.default_rng(0).permutation(30) % 5
    of_edge = fold[[int(user[1:]) for user in edges["user"]]]
    losses = np.zeros(3)
    for k in range(5):
        held = edges[of_edge == k]
        for j, alpha in enumerate(alphas):
            fit = ConditionalRankRLS(alpha, tol=1e-12)
            with pytest.warns(UserWarning, match="have no edge"):
                fit.fit_edges(users, edges[of_edge != k], "value", items, **COLUMNS)
            scores = fit.predict_edges(users, held, items, source="user", target="item")["score"].to_numpy()
            for user in held["user"].unique():
                some = (held["user"] == user).to_numpy()
                residual, u = (held["value"].to_numpy() - scores)[some], held["weight"].to_numpy()[some]
                losses[j] += np.sum(u * (residual - np.average(residual, weights=u)) ** 2)
    assert_allclose(-found.cv_scores_, losses / 500, rtol=1e-6)
    assert found.alpha_ == alphas[int(np.argmin(losses))]


@pytest.mark.parametrize("relation", ["reciprocal", "symmetric"])
def test_alpha_of_games_in_blocks_is_chosen_by_pairs_of_players_left_out(relation, data):
    users, _, edges = data
    games = edges.assign(item=users.index[edges["item"] % 30])
    games = games[games["user"] != games["item"]]
    columns = {"source": "user", "target": "item"}
    options = {"relation": relation, "loss": "regression", "tol": 1e-12}
    stream = lambda: (games.iloc[i : i + 77] for i in range(0, len(games), 77))
    found = ConditionalRankRLS(alphas=[0.1, 1.0, 10.0], **options).fit_edges(users, stream(), "value", **columns)
    a, b = (games[end].str[1:].astype(int).to_numpy() for end in ("user", "item"))
    low, high = np.minimum(a, b), np.maximum(a, b)
    fold, losses = (low * 1_000_003 + high * 8_191 + low * high) % 5, np.zeros(3)
    for k in range(5):
        for j, alpha in enumerate(found.alphas_):
            fit = ConditionalRankRLS(alpha, **options).fit_edges(users, games[fold != k], "value", **columns)
            scores = fit.predict_edges(users, games[fold == k], **columns)["score"]
            losses[j] += np.sum((games["value"].to_numpy()[fold == k] - scores) ** 2)  # half from either end
    assert_allclose(-found.cv_scores_ * 2 * len(games), losses, rtol=1e-6)
    assert found.alpha_ == found.alphas_[np.argmin(losses)]


@pytest.mark.parametrize("kind", [*MODELS])
def test_implicit_feedback_in_blocks_is_that_of_memory(kind, data, tmp_path):
    users, items, edges = data
    if kind == "sum":
        pytest.skip("sums of features are learned from memory")
    columns = {"source": "user", "target": "item"}
    make = lambda alpha: ConditionalRankRLS(alpha, missing="zero", **MODELS[kind])
    once = edges.drop_duplicates(["user", "item"])
    expected = make(0.7).fit_edges(users, once, Z=items, **columns).predict()
    for stream in sources(once, tmp_path).values():
        with limited(table_rows=64):
            found = make(0.7).fit_edges(users, stream, Z=items, **columns)
        assert_allclose(found.predict(), expected, atol=1e-10)
        assert found.n_edges_ == len(once)
    again = make(0.7).fit_edges(users, iter([once, once]), Z=items, **columns)  # what is listed twice adds up
    assert_allclose(again.predict(), 2 * expected, atol=1e-10)
    auto = make("auto").fit_edges(users, iter([once]), Z=items, **columns)
    Y = pd.DataFrame(0.0, index=users.index, columns=items.index)
    for user, item in zip(once["user"], once["item"], strict=True):
        Y.loc[user, item] = 1.0
    turned, ranking = kind == "turned", kind != "regression"
    centred = lambda A: A - A.mean(axis=1, keepdims=True) if ranking else A
    losses = []
    for alpha in auto.alphas_[[3, 11]]:
        loss = 0.0
        if kind == "basis":
            break  # whose points a refit would choose anew
        for h in range(Y.shape[1] if turned else Y.shape[0]):
            keep = np.delete(np.arange(Y.shape[1] if turned else Y.shape[0]), h)
            some = (users, Y.iloc[:, keep], items.iloc[keep]) if turned else (users.iloc[keep], Y.iloc[keep], items)
            model = ConditionalRankRLS(alpha, **MODELS[kind]).fit(*some)
            ends = (users, items.iloc[[h]]) if turned else (users.iloc[[h]], items)
            truth = Y.iloc[:, [h]].T if turned else Y.iloc[[h]]
            scores = model.predict(*ends)
            loss += np.sum(centred(truth.to_numpy() - (scores.T if turned else scores)) ** 2)
        losses.append(loss / Y.size)
    if losses:  # up to what no alpha changes
        assert_allclose(np.diff(-auto.cv_scores_[[3, 11]]), np.diff(losses), rtol=1e-6)
    assert auto.alpha_ == auto.alphas_[np.argmax(auto.cv_scores_)]


def test_options_that_need_all_edges_are_refused(data, tmp_path):
    users, items, edges = data
    fit = lambda model=None, X=users, stream=None, **options: (model or ConditionalRankRLS(1.0)).fit_edges(
        X, iter([edges]) if stream is None else stream, "value", items, **{**COLUMNS, **options}
    )
    for message, call in {
        "pass source= and target=": lambda: fit(source=None),
        "half_life= needs all edges in memory": lambda: fit(half_life="1d"),
        "need the objects": lambda: fit(X="ids"),
        "full kernel matrix": lambda: fit(ConditionalRankRLS(1.0, kernel="rbf")),
        "has no column 'when'": lambda: fit(target="when"),
        "there are no edges": lambda: fit(stream=iter([])),
        "intercept=True needs all edges": lambda: fit(ConditionalRankRLS(1.0, loss="regression", intercept=True)),
        "weights of edges as their values": lambda: fit(ConditionalRankRLS(1.0, missing="zero")),
        "not the id of any": lambda: fit(stream=iter([edges.assign(user="nobody")])),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(FileNotFoundError, match="there are no edges"):
        fit(stream=tmp_path / "nowhere")


def test_dask_partitions_are_summed(data):
    dd = pytest.importorskip("dask.dataframe")
    from rankrls.distributed import dask

    users, items, edges = data
    expected = ConditionalRankRLS(0.7).fit_edges(users, iter([edges]), "value", items, **COLUMNS)
    found = dask.fit_edges(
        ConditionalRankRLS(0.7), users, dd.from_pandas(edges, npartitions=3), "value", items, **COLUMNS
    )
    assert_allclose(found.coef_, expected.coef_, atol=1e-12)
    ends = {"source": "user", "target": "item"}
    implicit = ConditionalRankRLS(missing="zero").fit_edges(users, iter([edges]), Z=items, **ends)
    found = dask.fit_edges(
        ConditionalRankRLS(missing="zero"), users, dd.from_pandas(edges, npartitions=3), Z=items, **ends
    )
    assert_allclose(found.coef_, implicit.coef_, atol=1e-12)
