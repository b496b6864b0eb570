"""Relations of objects with names: ids are looked up, frames are put in order, mismatches are refused."""

from datetime import date, datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rankrls import ConditionalRankRLS, TwoStepRLS, load, save
from rankrls.kernels import Gaussian

pd = pytest.importorskip("pandas")
ALPHA = 0.3


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    drugs = pd.DataFrame(rng.normal(size=(7, 3)), index=[f"D{i}" for i in range(7)], columns=["a", "b", "c"])
    targets = pd.DataFrame(rng.normal(size=(9, 2)), index=[f"T{i}" for i in range(9)], columns=["u", "v"])
    Y = drugs.to_numpy() @ rng.normal(size=(3, 2)) @ targets.to_numpy().T + rng.normal(size=(7, 9))
    return drugs, targets, pd.DataFrame(Y, index=drugs.index, columns=targets.index)


def shuffled(frame, seed=1):
    rng = np.random.default_rng(seed)
    return frame.iloc[rng.permutation(len(frame))]


@pytest.mark.parametrize("ids", ["shuffled", "from one", "strings", "dates"])
def test_ids_of_any_type_are_looked_up_in_edges(ids):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    labels = {
        "shuffled": rng.permutation(12),
        "from one": np.arange(1, 13),
        "strings": np.array([f"u{i}" for i in range(12)]),
        "dates": pd.date_range("2020-01-01", periods=12),
    }[ids]
    rows, columns = rng.integers(0, 12, (2, 60))
    y = np.einsum("ij,ij->i", X[rows] @ rng.normal(size=(3, 3)), X[columns])
    frame = pd.DataFrame(X, index=labels)
    frame.columns = ["a", "b", "c"]
    games = pd.DataFrame({"from": np.asarray(labels)[rows], "to": np.asarray(labels)[columns], "value": y})
    by_number = ConditionalRankRLS(ALPHA, loss="regression").fit_edges(X, np.column_stack([rows, columns]), y)
    by_id = ConditionalRankRLS(ALPHA, loss="regression").fit_edges(frame, games, "value", source="from", target="to")
    assert_allclose(by_id.coef_, by_number.coef_)
    scores = by_id.predict_edges(frame, games, source="from", target="to")["score"]
    assert_allclose(scores, by_number.predict_edges(X, np.column_stack([rows, columns])))
    assert_allclose(by_id.predict_edges(None, games[["from", "to"]])["score"], scores)


def test_unknown_ids_are_refused():
    frame = pd.DataFrame(np.eye(3), index=[1, 2, 3])
    frame.columns = list("abc")
    with pytest.raises(ValueError, match="target of edge 1 is 0, which is not the id of any of the 3 objects"):
        ConditionalRankRLS().fit_edges(frame, [(1, 2), (3, 0)], [1.0, 2.0])
    with pytest.raises(ValueError, match="index of X must not repeat, but '1' occurs several times"):
        ConditionalRankRLS().fit_edges(frame.set_axis([1, 1, 2]), [(1, 2)], [1.0])


def test_a_frame_of_relations_is_put_in_the_order_of_the_objects(data):
    drugs, targets, Y = data
    plain = ConditionalRankRLS(ALPHA).fit(drugs.to_numpy(), Y.to_numpy(), targets.to_numpy())
    mixed = shuffled(shuffled(Y).T, 2).T
    model = ConditionalRankRLS(ALPHA).fit(drugs, mixed, targets)
    assert_allclose(model.coef_, plain.coef_)
    assert_allclose(model.score(drugs, mixed, targets), plain.score(drugs.to_numpy(), Y.to_numpy(), targets.to_numpy()))
    found, expected = (
        model.evaluate(drugs, mixed, targets, n_splits=2),
        plain.evaluate(drugs.to_numpy(), Y.to_numpy(), targets.to_numpy(), n_splits=2),
    )
    assert_array_equal(list(found.values()), list(expected.values()))
    with pytest.raises(
        ValueError, match=r"1 objects of X are not among the row labels of Y \('D0'\).*1 row labels of Y"
    ):
        ConditionalRankRLS(ALPHA).fit(drugs, Y.rename(index={"D0": "other"}), targets)
    with pytest.raises(ValueError, match="column labels of Y are not objects of Z"):
        ConditionalRankRLS(ALPHA).fit(drugs, Y.rename(columns={"T3": "other"}), targets)
    by_position = ConditionalRankRLS(ALPHA).fit(drugs, pd.DataFrame(Y.to_numpy()), targets)
    assert_allclose(by_position.coef_, plain.coef_)


def test_similarities_are_put_in_order_by_their_labels(data):
    drugs, targets, Y = data
    g, k = Gaussian(0.1), Gaussian(0.3)
    S = pd.DataFrame(g(drugs.to_numpy(), drugs.to_numpy()), index=drugs.index, columns=drugs.index)
    T = pd.DataFrame(k(targets.to_numpy(), targets.to_numpy()), index=targets.index, columns=targets.index)
    plain = ConditionalRankRLS(ALPHA, kernel="precomputed").fit(S.to_numpy(), Y.to_numpy(), T.to_numpy())
    model = ConditionalRankRLS(ALPHA, kernel="precomputed").fit(shuffled(S), Y, shuffled(T.T, 3).T)
    rows = S.loc[["D4", "D2"]]
    expected = pd.DataFrame(plain.predict(rows.to_numpy()), columns=Y.columns)
    found = pd.DataFrame(model.predict(shuffled(rows.T, 4).T), columns=model.target_ids_)
    assert_allclose(found[Y.columns], expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"no column for 1 of the training objects \('D0'\)"):
        model.predict(rows.drop(columns="D0"))


def test_features_of_the_other_end_keep_their_names(data):
    drugs, targets, Y = data
    model = ConditionalRankRLS(ALPHA).fit(drugs, Y, targets)
    with pytest.raises(ValueError, match="features of Z are in a different order"):
        model.predict(drugs, targets[["v", "u"]])
    with pytest.raises(ValueError, match="features of Z are not those seen in fit: w"):
        model.predict(drugs, targets.rename(columns={"v": "w"}))


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_rankings_by_id_are_tables(data, kernel, tmp_path):
    drugs, targets, Y = data
    model = ConditionalRankRLS(ALPHA, kernel=kernel).fit(drugs, Y, targets)
    table = model.rank("D3", top=4)
    scores = pd.Series(model.predict(drugs.loc[["D3"]])[0], index=targets.index)
    best = scores.sort_values(ascending=False)[:4]
    assert list(table.columns) == ["id", "score", "rank", "truth"]
    assert table["id"].tolist() == best.index.tolist()
    assert_allclose(table["score"], best)
    assert_allclose(table["truth"], Y.loc["D3", best.index])
    assert table["rank"].tolist() == [1, 2, 3, 4]
    several = model.rank(["D3", "D0"], top=2)
    assert several["condition"].tolist() == ["D3", "D3", "D0", "D0"]
    assert_array_equal(several["id"][:2], table["id"][:2])
    save(model, tmp_path / "drugs.rankrls")
    pd.testing.assert_frame_equal(load(tmp_path / "drugs.rankrls").rank("D3", top=4), table)
    with pytest.raises(ValueError, match="'D9' is not the id of a training object"):
        model.rank("D9")
    by_target = ConditionalRankRLS(ALPHA, kernel=kernel, condition="target").fit(drugs, Y, targets)
    assert set(by_target.rank("T1")["id"]) == set(drugs.index)
    assert_allclose(model.predict(["D1", "D2"]), model.predict(drugs.loc[["D1", "D2"]]))


def test_known_and_new_objects_of_a_shifted_kernel_are_judged_as_they_are_predicted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    K = Gaussian(0.5)(X, X) - 0.5 * np.eye(30)  # far from positive semi-definite
    Y = X @ rng.normal(size=(3, 3)) @ X.T
    model = ConditionalRankRLS(1e-3, kernel="precomputed", indefinite="shift")
    found = model.evaluate(K, Y, K, settings=[1], n_splits=3)[1]
    assert found.mean() > 0.9  # .6 when similarities of known objects lose their shift
    edges = pd.DataFrame(
        [(i, j, Y[i, j]) for i in range(30) for j in range(30) if (i + j) % 3], columns=["a", "b", "y"]
    )
    named = {"y": "y", "source": "a", "target": "b"}
    assert model.evaluate(K, edges, K, settings=[1], n_splits=3, **named)[1].mean() > 0.9  # .73 so too


def test_rows_of_a_shifted_kernel_are_recognised_as_training_objects(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    K = Gaussian(0.5)(X, X) - 0.5 * np.eye(30)
    Y = X @ rng.normal(size=(3, 3)) @ X.T
    model = ConditionalRankRLS(1e-3, kernel="precomputed", indefinite="shift").fit(K, Y)
    expected, some = model.predict(), [4, 0, 11]
    assert_array_equal(model.predict(K), expected)
    assert_array_equal(model.predict(K, K), expected)
    assert_allclose(model.predict(K[some], model.Z_fit_), expected[some], atol=1e-12)  # fewer rows round otherwise
    assert model.score(K, Y, K) == model.score(None, Y) > 0.99
    save(model, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(K, K), expected)
    new = Gaussian(0.5)(rng.normal(size=(2, 3)), X)
    assert_allclose(model.predict(new, model.Z_fit_), new @ model.dual_coef_ @ model.Z_fit_.T)
    two = TwoStepRLS(1e-3, 1e-3, kernel="precomputed", indefinite="shift").fit(K, Y)
    assert_array_equal(two.predict(K, K), two.predict())
    assert not hasattr(model.fit(Gaussian(0.5)(X, X), Y), "source_diagonal_")


def test_errors_of_folds_are_not_swallowed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))

    def scoring(y, scores, qid):
        raise ValueError("this metric fails")

    with pytest.raises(ValueError, match="this metric fails"):
        ConditionalRankRLS(1.0, scoring=scoring).evaluate(X, X @ X.T, n_splits=2)
    nothing = ConditionalRankRLS(1.0).evaluate(X, np.where(rng.random((12, 12)) < 0.1, 1.0, 0.0), n_splits=6)
    assert np.isnan(nothing[4]).any()  # folds without anything to rank


def test_a_precomputed_kernel_is_pairwise_however_it_is_named():
    from rankrls.kernels import Precomputed

    for kernel in ("precomputed", Precomputed()):
        assert ConditionalRankRLS(kernel=kernel).__sklearn_tags__().input_tags.pairwise
    assert not ConditionalRankRLS(kernel="rbf").__sklearn_tags__().input_tags.pairwise


def test_models_without_newer_attributes_still_rank():
    X = np.random.default_rng(0).normal(size=(6, 3))
    model = ConditionalRankRLS(ALPHA, kernel="rbf", relation="symmetric").fit(X, X @ X.T)
    expected, rating = model.rank(X, top=2).ids, model.rating()
    del model.intercept_, model.relation_
    assert_array_equal(model.rank(X, top=2).ids, expected)
    assert_allclose(model.rating(), rating)


@pytest.fixture
def league():
    rng = np.random.default_rng(3)
    players = pd.DataFrame(
        {"hand": rng.choice(["left", "right"], 30), "height": rng.normal(185, 7, 30), "country": ["A", "B", "C"] * 10},
        index=[f"player {i}" for i in range(30)],
    )
    players.iloc[4, 1] = np.nan
    strength = players["height"].fillna(185).to_numpy() / 7 + 2 * (players["hand"] == "left").to_numpy()
    a = rng.integers(30, size=400)
    b = (a + rng.integers(1, 30, size=400)) % 30
    won = strength[a] - strength[b] + rng.normal(size=400) > 0
    games = pd.DataFrame({"winner": players.index[np.where(won, a, b)], "loser": players.index[np.where(won, b, a)]})
    games["date"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(400), unit="D")
    return players, games


ENDS = {"source": "winner", "target": "loser"}


def test_tables_with_text_and_missing_values_are_encoded_on_request(league, tmp_path):
    players, games = league
    with pytest.raises(ValueError, match="column 'hand' of X holds text"):
        ConditionalRankRLS(1.0, pairwise="sum").fit_edges(players, games, **ENDS)
    model = ConditionalRankRLS(1.0, pairwise="sum", encoder="auto").fit_edges(players, games, **ENDS)
    by_hand = model.encoder_.transform(players)
    plain = ConditionalRankRLS(1.0, pairwise="sum").fit_edges(
        pd.DataFrame(by_hand, index=players.index).rename(columns=str), games, **ENDS
    )
    assert_allclose(model.predict(), plain.predict(), atol=1e-9)
    assert_allclose(model.predict(players.head(3)), model.predict()[:3, :3], atol=1e-12)
    assert_allclose(
        model.predict_edges(players, games, **ENDS)["score"], model.predict_edges(None, games, **ENDS)["score"]
    )
    assert model.rank("player 3", top=2)["id"].tolist() == plain.rank("player 3", top=2)["id"].tolist()
    save(model, tmp_path / "m.rankrls")
    again = load(tmp_path / "m.rankrls")
    assert_allclose(again.predict(players.head(3)), model.predict(players.head(3)))
    scores = ConditionalRankRLS(1.0, pairwise="sum", encoder="auto").evaluate(players, games, **ENDS, date="date")
    assert scores.means()["time"]["winner"] > 0.7


def test_objects_may_be_known_by_their_ids_only(league, tmp_path):
    _, games = league
    named = np.unique(games[["winner", "loser"]])
    one_hot = pd.DataFrame(np.eye(len(named)), index=named).rename(columns=str)
    expected = ConditionalRankRLS(1.0, pairwise="sum", tol=1e-10).fit_edges(one_hot, games, **ENDS)
    for ids in (None, "ids"):
        model = ConditionalRankRLS(1.0, pairwise="sum").fit_edges(ids, games, **ENDS)
        assert_allclose(model.rating().sort_index(), expected.rating().sort_index(), atol=1e-6)
        assert_allclose(
            model.rating(return_std=True)["std"].sort_index(), expected.rating(return_std=True)["std"].sort_index()
        )
    save(model, tmp_path / "m.rankrls")
    assert load(tmp_path / "m.rankrls").probability("player 1", "player 2") == model.probability("player 1", "player 2")
    model = ConditionalRankRLS(1.0, pairwise="sum", solver="cg")  # ties that rounding breaks, it breaks alike
    found, same = (model.evaluate(objects, games, **ENDS, date="date") for objects in (None, one_hot))
    assert_allclose(found["time"], same["time"])
    with pytest.raises(ValueError, match='set pairwise="sum", or pass features'):
        ConditionalRankRLS(1.0, pairwise="kronecker").fit_edges(None, games, **ENDS)
    auto = ConditionalRankRLS(1.0).fit_edges(None, games, **ENDS)
    assert auto.pairwise_ == {"kronecker": 0.0, "sum": 1.0}
    plain = ConditionalRankRLS(1.0, pairwise="sum").fit_edges(None, games, **ENDS)
    pd.testing.assert_series_equal(auto.rating(), plain.rating())
    shop = ConditionalRankRLS(1.0, pairwise="sum", loss="regression").fit_edges(
        "ids", [("u1", 7), ("u1", 9), ("u2", 9)], [1.0, 3.0, 2.0], "ids"
    )
    assert shop.predict().shape == (2, 2) and shop.rating().index.tolist() == [9, 7]


def test_scores_of_edges_come_with_their_ids_ranks_and_what_is_known(league):
    _, games = league
    model = ConditionalRankRLS(1.0, pairwise="sum").fit_edges(None, games, **ENDS)
    asked = pd.DataFrame(
        {"winner": ["player 1", "player 2", "player 1"], "loser": ["player 2", "player 1", "player 3"]}
    )
    found = model.predict_edges(None, asked, **ENDS)
    scores = model.predict_edges(None, asked.to_numpy())
    assert list(found) == ["condition", "id", "score", "rank", "truth"]
    assert_array_equal(found["score"], scores)
    assert found["condition"].tolist() == asked["winner"].tolist() and found["id"].tolist() == asked["loser"].tolist()
    assert found["rank"].tolist() == [1 + (scores[2] > scores[0]), 1, 1 + (scores[0] >= scores[2])]
    both = games[(games["winner"] == "player 1") & (games["loser"] == "player 2")]
    back = games[(games["winner"] == "player 2") & (games["loser"] == "player 1")]
    met = len(both) + len(back)
    assert_allclose(found["truth"][0], (len(both) - len(back)) / met if met else np.nan)


def test_recency_is_a_half_life_of_a_year_unless_a_column_is_called_that(league):
    _, games = league
    fit = lambda table, **options: (
        ConditionalRankRLS(1.0, pairwise="sum").fit_edges(None, table, **ENDS, **options).rating()
    )
    assert_allclose(fit(games, sample_weight="recency"), fit(games, date="date", half_life="365d"))
    column = games.assign(recency=np.linspace(0.1, 1, len(games)))
    assert_allclose(fit(column, sample_weight="recency"), fit(games, sample_weight=np.linspace(0.1, 1, len(games))))
    with pytest.raises(ValueError, match="half_life needs the date"):
        fit(games.drop(columns="date"), sample_weight="recency")


def test_a_column_of_ids_serves_where_there_is_no_index():
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(8, 3)), rng.normal(size=(6, 3))
    drugs = pd.DataFrame(u, index=[f"D{i}" for i in range(8)], columns=list("abc"))
    targets = pd.DataFrame(v, index=[f"T{i}" for i in range(6)], columns=list("def"))
    Y = pd.DataFrame(u @ v.T, index=drugs.index, columns=targets.index)
    shuffled = Y.sample(frac=1, random_state=1).sample(frac=1, axis=1, random_state=2)
    long = Y.stack().rename_axis(["drug", "target"]).rename("value").reset_index().sample(30, random_state=0)
    ends = {"y": "value", "source": "drug", "target": "target"}
    wanted = ConditionalRankRLS(1.0).fit(drugs, Y, targets)
    listed = ConditionalRankRLS(1.0).fit_edges(drugs, long, Z=targets, **ends)
    plain = lambda frame, name: frame.rename_axis(name).reset_index()
    for name in ("id", "ID", "drug"):
        for library in (lambda frame: frame, pl.from_pandas):
            x, z = library(plain(drugs, name)), library(plain(targets, name))
            model = ConditionalRankRLS(1.0).fit(x, library(plain(shuffled, name)), z)
            pd.testing.assert_frame_equal(model.rank("D1", top=3), wanted.rank("D1", top=3))
            assert_allclose(model.predict(x[2:4], z), wanted.predict(drugs[2:4], targets))
            assert list(model.rank(x[2:4], z).ids[0]) == list(wanted.rank(drugs[2:4], targets).ids[0])
            again = ConditionalRankRLS(1.0).fit_edges(x, library(long), Z=z, **ends)
            assert_allclose(again.predict(), listed.predict())
            found = again.predict_edges(None, library(long))
            assert type(found) is type(library(long)) and list(found["id"]) == long["target"].tolist()
            scores = ConditionalRankRLS(1.0).evaluate(x, library(long), z, settings=[1], **ends)
            assert_allclose(scores[1], ConditionalRankRLS(1.0).evaluate(drugs, long, targets, settings=[1], **ends)[1])
    K, L = (plain(pd.DataFrame(w @ w.T, index=f.index, columns=f.index), "id") for w, f in ((u, drugs), (v, targets)))
    similar = ConditionalRankRLS(1.0, kernel="precomputed").fit(pl.from_pandas(K), shuffled, pl.from_pandas(L))
    assert_allclose(similar.predict(), wanted.predict())


def test_text_is_a_feature_where_an_encoder_reads_it_and_numbers_called_id_are_ids():
    frame = pd.DataFrame({"hand": ["L", "R", "L", "R"], "skill": [0.1, 0.3, 0.2, 0.9], "id": [7, 3, 9, 5]})
    games = pd.DataFrame({"winner": [5, 3, 9, 5], "loser": [7, 7, 7, 9]})
    model = ConditionalRankRLS(1.0, encoder="auto", pairwise="sum")
    model.fit_edges(frame, games, source="winner", target="loser")
    assert model.rating().index[0] == 5 and model.n_features_in_ > 2
    assert model.rank(frame[:1], frame).ids.shape == (1, 4)
    with pytest.raises(ValueError, match='or call it "id"'):
        ConditionalRankRLS(1.0, encoder="auto").fit_edges(
            frame.drop(columns="id"), games.astype(str), source="winner", target="loser"
        )


def test_text_with_many_values_is_left_out_as_there_are_no_labels_to_encode_it_by():
    rng = np.random.default_rng(0)
    users = pd.DataFrame({"age": rng.normal(size=900), "zip": [f"z{i // 2}" for i in range(900)]}, index=range(900))
    seen = pd.DataFrame({"user": rng.integers(900, size=2000), "item": rng.integers(5, size=2000)}).drop_duplicates()
    items = pd.DataFrame({"price": rng.normal(size=5)}, index=range(5))
    names = {"source": "user", "target": "item"}
    model = ConditionalRankRLS(1.0, missing="zero", encoder="auto")
    with pytest.warns(UserWarning, match="column 'zip' of X has 450 different texts, more than 200, so it is left out"):
        model.fit_edges(users, seen, Z=items, **names)
    plain = ConditionalRankRLS(1.0, missing="zero", encoder="auto").fit_edges(users[["age"]], seen, Z=items, **names)
    assert_allclose(model.predict(users[:4], items), plain.predict(users[["age"]][:4], items))


def test_ids_of_several_types_are_matched_and_saved(tmp_path):
    rng = np.random.default_rng(0)
    sources = ["a", 7, date(2020, 1, 1), datetime(2020, 1, 1, 12), 2.5, ("b", 1)]
    X = pd.DataFrame(rng.normal(size=(6, 2)), index=pd.Index(sources, tupleize_cols=False))
    Z = pd.DataFrame(rng.normal(size=(4, 2)), index=[1.5, 2.5, 3.5, 4.5])
    Y = pd.DataFrame(rng.normal(size=(6, 4)), index=X.index, columns=Z.index)
    model = ConditionalRankRLS(1.0).fit(X, Y.iloc[::-1, ::-1], Z)
    arrays = ConditionalRankRLS(1.0).fit(X.to_numpy(), Y.to_numpy(), Z.to_numpy())
    assert_allclose(model.predict(X, Z), arrays.predict(X.to_numpy(), Z.to_numpy()))
    save(model, tmp_path / "m.rankrls")
    loaded = load(tmp_path / "m.rankrls")
    assert loaded.source_ids_.tolist() == sources
    for one in sources[:5]:
        assert loaded.rank(one, top=2).equals(model.rank(one, top=2))


def test_several_ranked_ends_by_id():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6, 2)), index=list("abcdef"))
    Z = pd.DataFrame(rng.normal(size=(5, 2)), index=list("vwxyz"))
    model = ConditionalRankRLS(1.0, condition="target").fit(X, X @ Z.T, Z)
    both = model.rank(["v", "w"], top=2)
    assert both["condition"].tolist() == ["v", "v", "w", "w"]
    assert both["id"].tolist()[:2] == model.rank("v", top=2)["id"].tolist()
