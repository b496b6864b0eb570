"""Input is either read as intended or refused by name: one test for each claim, with raw data."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from rankrls import (
    AutoRanker,
    ColumnMaps,
    ConditionalRankRLS,
    CoRankRLS,
    PairScreen,
    PerQueryMinMax,
    RankingPursuit,
    RankRLS,
    TableEncoder,
    TransductiveRankRLS,
    TwoStepRLS,
    View,
    kernels,
    metrics,
)
from sixty import PARTLY, QID, VIEWS, X, Y

RNG = np.random.default_rng(1)
A, B = RNG.normal(size=(8, 2)), RNG.normal(size=(5, 2))
T = A @ RNG.normal(size=(2, 2)) @ B.T
masked = lambda V: np.ma.masked_array(V, mask=np.arange(V.size).reshape(V.shape) == 3)


def test_integer_ids_of_a_shuffled_frame_are_looked_up_and_a_frame_of_relations_is_aligned():
    ids = np.random.default_rng(1).permutation(8)
    players, relation = pd.DataFrame(A, index=ids), pd.DataFrame(A @ A.T, index=ids, columns=ids)
    row = {label: i for i, label in enumerate(ids.tolist())}
    edges = [(a, b) for a in range(8) for b in range(8) if a != b]
    y = np.array([(A @ A.T)[row[a], row[b]] for a, b in edges])
    scores = ConditionalRankRLS(1e-3).fit_edges(players, edges, y).predict_edges(players, edges)
    assert metrics.pairwise_accuracy(y, scores, qid=[a for a, _ in edges]) == 1.0
    model = ConditionalRankRLS(1e-3).fit(players, relation.iloc[::-1, ::-1])
    assert_allclose(model.predict(players), ConditionalRankRLS(1e-3).fit(A, A @ A.T).predict(A))
    for model in RELATIONS.values():
        with pytest.raises(ValueError, match="the same objects in different orders, and X has no labels"):
            model.fit(A, relation.iloc[::-1])
        model.fit(A, relation.iloc[::-1, ::-1])  # one order, if not the one of A: arrays have no labels to tell


@pytest.mark.parametrize("weighting", ["items", "pairs", "queries"])
def test_weights_whose_sum_overflows_are_refused(weighting):
    with pytest.raises(ValueError, match="sample_weight is too large to be added up"):
        RankRLS(1.0, weighting=weighting).fit(X, Y, QID, np.full(60, 1e308) * 1.7)


@pytest.mark.parametrize("metric", [metrics.pairwise_accuracy, metrics.ndcg, metrics.kendall_tau_b])
def test_metrics_refuse_masks_and_imaginary_parts(metric):
    grades = np.digitize(Y, [-2, 2]).astype(float)
    for y, scores, message in (
        (masked(grades), Y, "y is a masked array"),
        (grades, masked(Y), "scores is a masked array"),
        (grades, Y + 1j, "scores has imaginary parts"),
    ):
        with pytest.raises(ValueError, match=message):
            metric(y, scores, qid=QID)


def test_score_refuses_masks():
    with pytest.raises(ValueError, match="y is a masked array"):
        RankRLS(1.0).fit(X, Y, QID).score(X, masked(Y), qid=QID)


@pytest.mark.parametrize("model", [AutoRanker(effort="fast"), TableEncoder()], ids=["auto", "encoder"])
def test_tables_refuse_masks_and_imaginary_parts(model):
    for features, y, message in (
        (masked(X), Y, "X is a masked array"),
        (X, masked(Y), "y is a masked array"),
        (X + 1j, Y, "X has imaginary parts"),
        (X, Y + 1j, "y has imaginary parts"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(features, y, qid=QID)


@pytest.mark.parametrize("name", ["pairs", "margins", "weights"])
def test_masked_pairs_are_refused(name):
    given = {"pairs": np.array([(0, 1), (2, 3)]), "margins": np.ones(2), "weights": np.ones(2)}
    given[name] = np.ma.masked_array(given[name], mask=np.zeros(given[name].shape))
    given[name][1] = np.ma.masked
    with pytest.raises(ValueError, match=f"{name} is a masked array"):
        RankRLS(1.0).fit_pairs(X, **given)


RELATIONS = {"one step": ConditionalRankRLS(1.0), "two steps": TwoStepRLS(1.0, 1.0)}


@pytest.mark.parametrize("name", RELATIONS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((masked(A), T, B), "X is a masked array"),
        ((A, masked(T), B), "Y is a masked array.*NaN marks an unknown edge"),
        ((A, T, B + 1j), "Z has imaginary parts"),
        ((A, T + 1j, B), "Y has imaginary parts"),
        ((np.where(np.eye(8, 2) > 0, np.nan, A), T, B), 'contains NaN. Columns 0 .*encoder="auto"'),
        ((A, T, np.where(B > 0, "red", B.astype(object))), 'Columns .*text.*encoder="auto"'),
        ((A * 1e160, T, B), "the squares of the features of X and Z overflow"),
    ],
)
def test_relations_refuse_what_they_cannot_read(name, given, message):
    model = RELATIONS[name].fit(A, T, B)
    before = model.predict(A, B)
    with pytest.raises(ValueError, match=message):
        model.fit(*given)
    assert_array_equal(model.predict(A, B), before)


def test_a_relation_without_a_known_edge():
    with pytest.warns(UserWarning, match="have no edge"), pytest.raises(ValueError, match="no edge of 8 by 5 is known"):
        ConditionalRankRLS(1.0).fit(A, np.full(T.shape, np.nan), B)


@pytest.mark.parametrize("name", RELATIONS)
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_a_relation_does_not_change_with_the_callers_rows(name, kernel):
    a, b = A.copy(), B.copy()
    model = RELATIONS[name].set_params(kernel=kernel).fit(a, T, b)
    before, own = model.predict(A, B), model.predict()
    a[:], b[:] = 0, 0
    assert_array_equal(model.predict(A, B), before)
    assert_array_equal(model.predict(), own)


@pytest.mark.parametrize(("option", "value"), [("intercept", "x"), ("encoder", 3)])
@pytest.mark.parametrize("name", RELATIONS)
def test_senseless_options_of_relations_are_refused(name, option, value):
    with pytest.raises((ValueError, TypeError), match=f"{option} must be"):
        RELATIONS[name].__class__(1.0, **{option: value}).fit(A, T, B)


def test_held_out_scores_of_a_small_row_of_a_relation_are_not_rounded_away():
    scales = np.ones(8)
    scales[0] = 1e-14
    small = A * scales[:, None]
    model = ConditionalRankRLS(1e-3).fit(A, T, B)
    assert model.score(small[:1], T[:1] * 1e-14, B) == model.score(small, T * scales[:, None], B) == 1.0


def test_two_steps_keep_directions_that_only_new_objects_have():
    a, Z = np.array([[0.0], [1e-8]]), np.array([[0.0], [1.0]])
    kernel, new = kernels.Gaussian(1.0), np.array([[1.0]])
    K = lambda U, V: np.exp(-((np.longdouble(U) - np.longdouble(V).T) ** 2))
    S = K(a, a) + 1e-3 * np.eye(2)
    inverse = np.array([[S[1, 1], -S[0, 1]], [-S[1, 0], S[0, 0]]]) / (S[0, 0] * S[1, 1] - S[0, 1] * S[1, 0])
    R = np.linalg.inv((K(Z, Z) + 0.1 * np.eye(2)).astype(float))
    relation = np.array([[1.0, 2.0], [-3.0, 0.5]])
    expected = (K(new, a) @ inverse).astype(float) @ relation @ R @ K(Z, Z).astype(float)
    assert_allclose(TwoStepRLS(1e-3, 0.1, kernel=kernel).fit(a, relation, Z).predict(new, Z), expected, rtol=1e-8)


def test_a_model_of_single_items_can_be_pickled():
    model = RankRLS(1.0, regression=1.0).fit(X, Y, np.arange(60))
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (RankRLS(1.0), Y),
        (CoRankRLS(1.0, 1.0, views=VIEWS), PARTLY),
        (TransductiveRankRLS(1.0), PARTLY),
        (RankingPursuit(2, kernel=None), Y),
    ],
    ids=["rankrls", "views", "transductive", "pursuit"],
)
def test_invalid_cv_is_refused_even_if_unused(model, y):
    with pytest.raises(ValueError, match="cv must be"):
        model.set_params(cv="nonsense").fit(X, y, qid=QID)


def test_transduction_refuses_folds_that_hold_out_everything():
    with pytest.raises(ValueError, match="cv must be"):
        TransductiveRankRLS(cv=[]).fit(X, PARTLY, qid=QID)


def test_a_metric_that_returns_nan_chooses_nothing():
    nothing = lambda y, scores, qid: np.nan
    with pytest.raises(ValueError, match="is NaN for each of the"):
        AutoRanker(effort="fast", scoring=nothing).fit(X, Y, QID)
    with pytest.raises(ValueError, match="returned NaN for"):
        ConditionalRankRLS(scoring=nothing).fit(A, T, B)


@pytest.mark.parametrize("gamma", [None, np.nan, -1.0, "wide", True])
def test_invalid_gamma_is_refused(gamma):
    with pytest.raises(ValueError, match="gamma must be"):
        RankRLS(1.0, kernel=kernels.Gaussian(gamma)).fit(X, Y, QID)


def test_recommendations_are_counted_in_whole_numbers():
    with pytest.raises(ValueError, match="top must be a whole number"):
        ConditionalRankRLS(1.0).fit(A, T, B).recommend(A, B, top=2.5)


@pytest.mark.parametrize("step", [TableEncoder(), PerQueryMinMax(), ColumnMaps(), PairScreen()])
def test_transformers_of_dense_rows_say_so(step):
    with pytest.raises(TypeError, match=f"{type(step).__name__} takes dense rows, got a sparse matrix"):
        step.fit(sparse.csr_array(X), Y, qid=QID)


@pytest.mark.parametrize("frame", ["pandas", "polars", "lazy"])
def test_y_names_one_column(frame):
    table = pd.DataFrame(X, columns=list("abc"))
    if frame != "pandas":
        table = pytest.importorskip("polars").from_pandas(table)
    with pytest.raises(TypeError, match="y names one column; for several targets pass numbers"):
        RankRLS(1.0).fit(table.lazy() if frame == "lazy" else table, ["a", "b"], QID)


def test_alpha_set_between_updates_counts():
    whole = RankRLS(5.0).fit(np.vstack([X, X]), np.append(Y, -(Y**2)), np.append(QID, QID + 10))
    model = RankRLS(1.0).partial_fit(X, Y, QID).set_params(alpha=5.0).partial_fit(X, -(Y**2), QID + 10)
    assert model.alpha_ == 5.0
    assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
    chosen = RankRLS().fit(X, Y, QID)
    alpha = chosen.alpha_
    assert chosen.partial_fit(X, Y, QID + 10).alpha_ == alpha
    assert not hasattr(chosen.set_params(alpha=5.0).partial_fit(X, Y, QID + 20), "alphas_")
    transductive = TransductiveRankRLS(1.0).partial_fit(X, PARTLY, QID).set_params(alpha=5.0)
    transductive.partial_fit(X, PARTLY, QID + 10)
    whole = TransductiveRankRLS(5.0).fit(np.vstack([X, X]), np.tile(PARTLY, 2), np.append(QID, QID + 10))
    assert_allclose(transductive.transduction_, whole.transduction_, rtol=1e-6)
    transductive.set_params(fidelity=0.1).partial_fit(X, PARTLY, QID + 20)
    whole = TransductiveRankRLS(5.0, 0.1).fit(np.vstack([X] * 3), np.tile(PARTLY, 3), np.arange(180) // 10)
    assert_allclose(transductive.transduction_, whole.transduction_, rtol=1e-6)
    views = CoRankRLS(1.0, 1.0, views=VIEWS).partial_fit(X, PARTLY, QID).set_params(nu=5.0)
    with pytest.raises(ValueError, match="was fitted with nu=1.0, but now it is 5.0"):
        views.partial_fit(X, PARTLY, QID + 10)


SPARSE = RankRLS(1.0, kernel="rbf", basis=5, random_state=0)


@pytest.mark.parametrize("step", ["partial_fit", "forget"])
@pytest.mark.parametrize(
    ("model", "changed"),
    [(CoRankRLS(1.0, 1.0, views=VIEWS), {name: value}) for name, value in
     {"weighting": "pairs", "tied_pairs": True, "regression": 0.5, "agree_on": "all"}.items()]
    + [(SPARSE, {"kernel": kernel}) for kernel in ("poly", kernels.Gaussian(7.0))]
    + [(SPARSE, {"kernel": None, "basis": None})]
    + [(RankRLS(1.0), {"kernel": "rbf", "basis": 5}), (TransductiveRankRLS(1.0), {"kernel": "rbf"})],
    ids=str,
)  # fmt: skip
def test_no_rows_are_added_under_another_loss_or_kernel(model, changed, step):
    y = PARTLY if isinstance(model, CoRankRLS | TransductiveRankRLS) else Y
    model = clone(model).partial_fit(X, y, QID)
    before, given = model.predict(X), model.get_params(deep=False)
    model.set_params(**changed)
    with pytest.raises(ValueError, match=f"was fitted with {next(iter(changed))}=.* but now it is"):
        getattr(model, step)(X[:10], y[:10], QID[:10])
    assert_array_equal(model.set_params(**{name: given[name] for name in changed}).predict(X), before)


@pytest.mark.parametrize("kernel", [None, "linear"])
@pytest.mark.parametrize("seed", range(4))
def test_views_that_share_nothing_between_queries_tie_at_one_half(kernel, seed):
    rng, qid = np.random.default_rng(seed), np.repeat(np.arange(4), 3)
    rows = np.eye(4)[qid] * rng.normal(size=(12, 1))  # each query has a column of its own
    y = np.where(qid == 3, np.nan, rng.permutation(np.tile([0.0, 1.0, 2.0], 4)))
    views = [View([0, 1, 2], kernel=kernel, basis=6 if kernel else None), View([1, 2, 3])]
    assert np.all(CoRankRLS(alphas=[0.1], nu=0.5, views=views, random_state=0).fit(rows, y, qid=qid).cv_scores_ == 0.5)


def test_removed_pairs_leave_nothing_and_dependent_points_are_warned_of():
    model = RankRLS(1e-6, kernel=kernels.Gaussian(0.5), basis=np.arange(60)).fit(X, Y, QID)
    before, gram = model.predict(X), model.statistics_.gram
    model.add_pairs(X, [[3, 5]], weights=[1e3]).add_pairs(X, [[7, 2]])
    model.remove_pairs(X, [[3, 5]]).remove_pairs(X, [[7, 2]])
    assert_array_equal(model.statistics_.gram, gram)
    assert_allclose(model.predict(X), before, atol=1e-9)
    wide = RankRLS(1e-6, kernel=kernels.Gaussian(0.01), basis=np.arange(60)).fit(X, Y, QID)
    with pytest.warns(UserWarning, match="basis points are nearly dependent .* add_pairs keeps"):
        wide.add_pairs(X, [[3, 5]])
