"""Relations of objects with names: ids are looked up, frames are put in order, mismatches are refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rankrls import ConditionalRankRLS, load, save
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
    scores = by_id.predict_edges(frame, games, source="from", target="to")
    assert_allclose(scores, by_number.predict_edges(X, np.column_stack([rows, columns])))
    assert_allclose(by_id.predict_edges(None, games[["from", "to"]]), scores)


def test_ids_that_are_not_there_are_refused():
    frame = pd.DataFrame(np.eye(3), index=[1, 2, 3])
    frame.columns = list("abc")
    with pytest.raises(ValueError, match="target of edge 1 is 0, which is not the id of any of the 3 objects"):
        ConditionalRankRLS().fit_edges(frame, [(1, 2), (3, 0)], [1.0, 2.0])
    with pytest.raises(ValueError, match="index of X must not repeat: '1' occurs several times"):
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
    with pytest.raises(ValueError, match="features of Z are in another order"):
        model.predict(drugs, targets[["v", "u"]])
    with pytest.raises(ValueError, match="features of Z are not those of fit: w"):
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
