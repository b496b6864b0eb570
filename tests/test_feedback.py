"""Labels and preferences together: pairs are added to fitted models and removed from them, exactly."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import oracles
from cases import problem
from papers import RankRLS
from rankrls import load, save

X, y, qid = problem(m=60)
PAIRS, MARGINS, WEIGHTS = np.array([[4, 8], [10, 2], [30, 31]]), np.array([1.0, 0.5, 2.0]), np.array([1.0, 3.0, 0.5])
MODELS = {
    "linear": {},
    "intercept": {"regression": 0.3},
    "ties": {"tied_pairs": True, "weighting": "queries"},
    "kernel": {"kernel": "rbf", "basis": [1, 5, 9, 20, 40, 41, 50]},
}


def expected(params, pairs, margins, weights, exact=()):
    """From one dense system: labels, weighted pairs and equations."""
    return oracles.labels_and_pairs(X, y, qid, pairs, margins, weights, exact, alpha=0.7, **params)


@pytest.mark.parametrize("name", MODELS)
def test_pairs_are_terms_of_the_loss(name):
    params = MODELS[name]
    model = RankRLS(0.7, **params).fit(X, y, qid=qid)
    before = model.predict(X)
    model.add_pairs(X, PAIRS, MARGINS, WEIGHTS)
    assert_allclose(model.predict(X), expected(params, PAIRS, MARGINS, WEIGHTS), rtol=1e-7, atol=1e-8)
    together = RankRLS(0.7, **params).fit(X, y, qid=qid, pairs=PAIRS, margins=MARGINS, pair_weights=WEIGHTS)
    assert_allclose(together.predict(X), model.predict(X), atol=1e-9)
    model.remove_pairs(X, PAIRS[1:2]).remove_pairs(X, PAIRS[[2, 0]])
    assert_allclose(model.predict(X), before, atol=1e-8)
    assert len(model.pairs_) == 0


@pytest.mark.parametrize("name", MODELS)
def test_pairs_demanded_exactly(name):
    params = MODELS[name]
    model = RankRLS(0.7, **params).fit(X, y, qid=qid).add_pairs(X, PAIRS[:2], MARGINS[:2], exact=True)
    scores = model.predict(X)
    assert_allclose(scores[[4, 10]] - scores[[8, 2]], MARGINS[:2], atol=1e-7)
    assert_allclose(scores, expected(params, PAIRS[:2], MARGINS[:2], None, exact=(0, 1)), rtol=1e-6, atol=1e-7)
    model.add_pairs(X, PAIRS[2:], MARGINS[2:])  # they hold whatever comes after
    scores = model.predict(X)
    assert_allclose(scores[[4, 10]] - scores[[8, 2]], MARGINS[:2], atol=1e-7)


def test_a_pair_that_is_right_is_not_pulled_back():
    model = RankRLS(1e-3).fit(X, 10 * y, qid=qid)
    scores = model.predict(X)
    high, low = np.argmax(scores), np.argmin(scores)
    assert scores[high] - scores[low] > 1
    assert_allclose(model.add_pairs(X, [[high, low]]).predict(X), scores, atol=1e-8)
    model.add_pairs(X, [[low, np.argsort(scores)[20]]])
    assert model.pairs_.margin[1] == 1


def test_queries_are_added_and_forgotten_after_pairs():
    early = qid < 4
    model = RankRLS(0.7).fit(X[early], y[early], qid=qid[early]).add_pairs(X, PAIRS, MARGINS, WEIGHTS)
    model.partial_fit(X[~early], y[~early], qid=qid[~early])
    assert_allclose(model.predict(X), expected({}, PAIRS, MARGINS, WEIGHTS), atol=1e-8)
    model.forget(X[~early], y[~early], qid=qid[~early])
    again = RankRLS(0.7).fit(X[early], y[early], qid=qid[early]).add_pairs(X, PAIRS, MARGINS, WEIGHTS)
    assert_allclose(model.predict(X), again.predict(X), atol=1e-8)
    hard = RankRLS(0.7).fit(X[early], y[early], qid=qid[early]).add_pairs(X, PAIRS, MARGINS, exact=True)
    hard.partial_fit(X[~early], y[~early], qid=qid[~early])
    assert_allclose(hard.predict(X), expected({}, PAIRS, MARGINS, None, exact=(0, 1, 2)), atol=1e-7)


@pytest.mark.parametrize("params", [{}, {"regression": 0.3}, {"kernel": "rbf", "basis": [1, 5, 9, 20, 40]}])
def test_queries_after_fit_pairs(params):
    model = RankRLS(0.7, **params).fit_pairs(X, PAIRS, MARGINS, WEIGHTS).partial_fit(X, y, qid=qid)
    assert_allclose(model.predict(X), expected(params, PAIRS, MARGINS, WEIGHTS), rtol=1e-7, atol=1e-8)
    model.forget(X, y, qid=qid)
    alone = RankRLS(0.7, **params).fit_pairs(X, PAIRS, MARGINS, WEIGHTS)
    differences = lambda m: m.predict(X)[PAIRS[:, 0]] - m.predict(X)[PAIRS[:, 1]]
    assert_allclose(differences(model), differences(alone), atol=1e-7)


def test_held_out_scores_of_pairs_come_back(tmp_path):
    """The curve of fit_pairs, that of the queries learned since, and that of the pairs again."""
    early = qid < 4
    pairs = [(i, j) for i in np.flatnonzero(early) for j in np.flatnonzero(early) if qid[i] == qid[j] and y[i] > y[j]]
    model = RankRLS().fit_pairs(X, pairs)
    alone = model.cv_scores_
    late, last = ~early, qid == 5
    model.partial_fit(X[last], y[last], qid=qid[last])  # a single query is held out too: pairs are left to learn from
    held = model.cv_predictions_ - model.cv_predictions_.mean()
    scores = RankRLS(model.alpha_).fit_pairs(X, pairs).predict(X[last])
    assert_allclose(held, scores - scores.mean(), atol=1e-8)
    rest = late & ~last
    model.partial_fit(X[rest], y[rest], qid=qid[rest])
    assert model.cv_scores_.shape == alone.shape and len(model.cv_predictions_) == late.sum()
    model.forget(X[late], y[late], qid=qid[late])
    assert_allclose(model.cv_scores_, alone)


def test_units_of_columns_hardly_change_when_few_rows_follow_many_pairs():
    import rankrls

    pairs = [(i, j) for i in range(40) for j in range(40) if y[i] > y[j]]
    model = rankrls.RankRLS(1.0).fit_pairs(X, pairs)
    before, few = model.scale_, qid == qid.max()
    model.partial_fit(X[few], y[few], qid=qid[few])
    assert_allclose(model.scale_, before, rtol=0.1)
    assert_allclose(model.forget(X[few], y[few], qid=qid[few]).scale_, before)


def test_model_files_keep_pairs(tmp_path):
    model = RankRLS(0.7).fit(X, y, qid=qid, pairs=PAIRS)
    save(model, tmp_path / "model.rankrls")
    again = load(tmp_path / "model.rankrls").remove_pairs(X, PAIRS)
    assert_allclose(again.coef_, RankRLS(0.7).fit(X, y, qid=qid).coef_, atol=1e-9)


def test_frames_are_known_by_their_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(qid=qid)
    model = RankRLS(0.7).fit(frame, y, pairs=PAIRS, margins=MARGINS, pair_weights=WEIGHTS)
    assert_allclose(model.predict(frame), expected({}, PAIRS, MARGINS, WEIGHTS), atol=1e-8)
    with pytest.raises(ValueError, match="feature names"):
        model.add_pairs(frame[list("fedcba")], PAIRS)


@pytest.mark.parametrize("library", ["numpy", "list", "sparse", "pandas", "polars", "pyarrow"])
def test_only_the_rows_of_pairs_are_read(library):
    """A pair costs the same however many rows there are, whatever holds them."""
    expected = RankRLS(0.7).fit(X, y, qid=qid).add_pairs(X, PAIRS).predict(X)
    names = [f"f{j}" for j in range(X.shape[1])]
    made = {
        "numpy": lambda Z: Z,
        "list": lambda Z: Z.tolist(),
        "sparse": sparse.coo_array,
        "pandas": lambda Z: pytest.importorskip("pandas").DataFrame(Z, columns=names),
        "polars": lambda Z: pytest.importorskip("polars").DataFrame(Z, schema=names),
        "pyarrow": lambda Z: pytest.importorskip("pyarrow").table(dict(zip(names, Z.T, strict=True))),
    }[library]
    gaps = X.copy()
    gaps[np.setdiff1d(np.arange(60), PAIRS.ravel())] = np.nan
    model = RankRLS(0.7).fit(made(X), y, qid=qid).add_pairs(made(gaps), PAIRS)
    assert_allclose(model.predict(made(X)), expected, atol=1e-9)
    assert len(model.remove_pairs(made(gaps), PAIRS).pairs_) == 0
    with pytest.raises(ValueError, match="NaN"):
        model.add_pairs(made(gaps), [[0, 4]])


@pytest.mark.parametrize("n_pairs", [3, 40])
def test_equal_pairs_are_removed_last_first(n_pairs):
    """Few pairs are compared with all others, many by keys: both find the same."""
    model = RankRLS(0.7).fit(X, y, qid=qid)
    many = np.column_stack([np.arange(n_pairs), np.arange(n_pairs) + 10])
    model.add_pairs(X, many, np.full(n_pairs, 1.0)).add_pairs(X, many, np.full(n_pairs, 2.0))
    model.remove_pairs(X, many)
    assert_allclose(model.pairs_.margin, 1.0)
    assert_allclose(model.coef_, RankRLS(0.7).fit(X, y, qid=qid, pairs=many, margins=np.ones(n_pairs)).coef_, atol=1e-9)
    with pytest.raises(ValueError, match=r"was never added.*it has \d+ added pairs"):
        model.remove_pairs(X, np.vstack([many, many[:1]]))
    assert len(model.pairs_) == n_pairs
    with pytest.raises(ValueError, match="the opposite was given before"):
        model.add_pairs(X, many[:, ::-1])


def test_errors_leave_the_model_as_it_was():
    model = RankRLS(0.7).fit(X, y, qid=qid).add_pairs(X, PAIRS)
    before = model.predict(X)
    for call, message in (
        (lambda: model.add_pairs(X, [[8, 4]]), "pair 0 prefers row 8 to row 4, but the opposite was given before"),
        (lambda: model.add_pairs(X, [[1, 2], [2, 1]]), "pair 0 .* the opposite was given as pair 1"),
        (lambda: model.add_pairs(X, [[4, 4]]), "equal in every feature"),
        (lambda: model.add_pairs(X, [[0, 99]]), "pair 0 is"),
        (lambda: model.add_pairs(X, PAIRS, margins=[1.0]), "margins must hold one number per pair"),
        (lambda: model.remove_pairs(X, [[0, 1]]), r"pair \(0, 1\) was never added"),
        (
            lambda: model.remove_pairs(X, PAIRS[:1], margins=[7.0]),
            "margins differ from those the pairs were added with",
        ),
        (
            lambda: model.add_pairs(X, [[4, 9], [9, 10], [4, 10]], [1, 1, 5], exact=True),
            r"contradict each other \(pair \d by 5 against pairs \d \(by 1\), \d \(by 1\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
        assert_allclose(model.predict(X), before, rtol=0, atol=0)
    with pytest.raises(ValueError, match="keeps no sums to add pairs to"):
        RankRLS(1.0, kernel="rbf").fit(X, y, qid=qid).add_pairs(X, PAIRS)
    with pytest.raises(ValueError, match="this model has 2 targets"):
        RankRLS(1.0, tied_pairs=True).fit(X, np.column_stack([y, -y]), qid=qid).add_pairs(X, PAIRS)


def test_columns_of_other_units_make_no_difference():
    import rankrls

    units = np.array([1.0, 1e3, 1e-3, 1.0, 10.0, 7.0])
    models = [rankrls.RankRLS(1.0).fit(Z, y, qid=qid) for Z in (X, X * units)]
    before = models[0].predict(X)
    scores = [model.add_pairs(Z, PAIRS, MARGINS).predict(Z) for model, Z in zip(models, (X, X * units), strict=True)]
    assert_allclose(*scores, atol=1e-8)
    assert_allclose(models[0].remove_pairs(X, PAIRS).predict(X), before, atol=1e-9)
