"""Features scaled to [0, 1] within queries."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from cases import problem
from rankrls import PerQueryMinMax, RankRLS
from rankrls.datasets import load_letor, per_query_minmax
from shared import unpacked

POOLED = {
    "check_methods_subset_invariance": "scaling depends on all rows of the query: that is its point",
}


@parametrize_with_checks([PerQueryMinMax()], expected_failed_checks=lambda _: POOLED)
def test_common_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(5))
def test_scaling_is_that_of_a_loop(seed):
    X, _, qid = problem(seed=seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.2] = np.nan
    X[qid == 2, 3] = np.nan  # nothing known in a whole query
    X[:, 4] = 5.0
    assert_allclose(per_query_minmax(X, qid), oracles.minmax_by_query(X, qid), rtol=1e-14, atol=1e-15)


def test_extremes_become_exactly_zero_and_one():
    X, _, qid = problem(m=200)
    scaled = per_query_minmax(X, qid)
    for q in np.unique(qid)[1:]:
        assert_array_equal(scaled[qid == q].min(axis=0), 0.0)
        assert set(scaled[qid == q].max(axis=0)) <= {0.0, 1.0}


def test_large_numbers_do_not_overflow_and_input_is_not_changed():
    X = np.array([[-1.7e308], [1.7e308], [0.0]])
    before = X.copy()
    assert per_query_minmax(X).tolist() == [[0.0], [1.0], [0.5]]
    assert_array_equal(X, before)
    tiny = np.array([[0.0], [5e-324]])
    assert per_query_minmax(tiny).tolist() == [[0.0], [1.0]]


def test_single_precision_stays_so():
    X, _, qid = problem()
    assert per_query_minmax(X.astype(np.float32), qid).dtype == np.float32
    assert PerQueryMinMax().fit(X, qid=qid).transform(X.astype(np.float32), qid).dtype == np.float32


def test_queries_travel_through_a_pipeline_by_routing():
    X, y, qid = problem(m=120, n_queries=12)
    pipe = make_pipeline(PerQueryMinMax(), RankRLS(alpha=1.0))
    with config_context(enable_metadata_routing=True):
        model = pipe.fit(X, y, qid=qid)
        expected = RankRLS(alpha=1.0).fit(per_query_minmax(X, qid), y, qid=qid)
        assert_allclose(model[-1].coef_, expected.coef_)
        assert_allclose(model.predict(X, qid=qid), expected.predict(per_query_minmax(X, qid)))
        assert_allclose(model.score(X, y, qid=qid), expected.score(per_query_minmax(X, qid), y, qid))
        folds = GroupKFold(3)
        assert np.isfinite(cross_val_score(pipe, X, y, cv=folds, params={"qid": qid, "groups": qid})).all()
        search = GridSearchCV(pipe, {"rankrls__alpha": [0.1, 1.0]}, cv=GroupKFold(3).set_split_request(groups="qid"))
        assert np.isfinite(search.fit(X, y, qid=qid).cv_results_["mean_test_score"]).all()


def test_pooling_queries_is_refused():
    X, _, qid = problem()
    scaler = PerQueryMinMax().fit(X, qid=qid)
    with pytest.raises(ValueError, match="fitted on 7 queries.*enable_metadata_routing"):
        scaler.transform(X)
    with pytest.raises(ValueError, match="one query id per row"):
        scaler.transform(X, qid[:-1])
    with pytest.raises(ValueError, match="rows and columns"):
        per_query_minmax([1.0, 2.0])


def test_names_of_features_pass():
    pandas = pytest.importorskip("pandas")
    X, _, qid = problem()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    scaler = PerQueryMinMax().fit(frame, qid=qid)
    assert scaler.get_feature_names_out().tolist() == list("abcdef")
    scaled = PerQueryMinMax().set_output(transform="pandas").fit(frame, qid=qid).transform(frame, qid)
    assert scaled.columns.tolist() == list("abcdef")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_query_column_stays_in_its_place(library):
    frame = pytest.importorskip(library).DataFrame({"a": [1.0, 3.0, 5.0], "qid": ["x", "x", "y"], "b": [1, 1, 7]})
    for scaler in (PerQueryMinMax(), PerQueryMinMax().set_output(transform=library)):
        scaled = scaler.fit_transform(frame)
        assert list(scaled.columns) == ["a", "qid", "b"] == scaler.get_feature_names_out().tolist()
        assert list(scaled["a"]) == [0, 1, 0] and list(scaled["qid"]) == ["x", "x", "y"]


def test_the_scaled_version_of_letor_3_is_ours():
    folder = unpacked("letor3-ohsumed") / "OHSUMED"
    raw = load_letor(folder / "Feature-min/Fold1/testset.txt")
    official = load_letor(folder / "QueryLevelNorm/Fold1/test.txt")
    assert_allclose(per_query_minmax(raw.X, raw.qid), official.X, atol=5.1e-7)  # six decimals are written
    assert raw.doc_ids.tolist() == official.doc_ids.tolist()
