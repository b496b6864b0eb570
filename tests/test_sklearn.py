"""The scikit-learn contract: every common check, routing, pipelines, searches, clones, pickles."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cases import problem
from papers import RankRLS
from rankrls import RankingPursuit
from rankrls.kernels import Gaussian


@parametrize_with_checks(
    [
        RankRLS(),
        RankRLS(alpha=1.0),
        RankRLS(kernel="rbf"),
        RankRLS(alpha=1.0, kernel="rbf", basis=4),
        RankRLS(alpha=1.0, kernel="precomputed"),
        RankRLS(tied_pairs="auto", weighting="pairs"),
        RankRLS(tied_pairs=False, weighting="items", regression=0.5),
        RankingPursuit(),
        RankingPursuit(1),
        RankingPursuit(1, kernel=None, regression=0.5),
        RankingPursuit(1, kernel="precomputed", backfit=False),
    ]
)
def test_common_checks(estimator, check):
    check(estimator)


def test_queries_travel_by_routing_without_any_request_call():
    X, y, qid = problem(m=120, n_queries=12)
    pipe = make_pipeline(StandardScaler(), RankRLS(alpha=1.0))
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipe, {"rankrls__alpha": [0.1, 10.0]}, cv=GroupKFold(3).set_split_request(groups="qid"))
        search.fit(X, y, qid=qid)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        scores = cross_val_score(pipe, X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid})
    for (train, test), score in zip(GroupKFold(3).split(X, groups=qid), scores, strict=True):
        model = clone(pipe).fit(X[train], y[train], rankrls__qid=qid[train])
        assert_allclose(score, model[-1].score(model[0].transform(X[test]), y[test], qid[test]))


def test_score_without_qid_is_refused_rather_than_pooled():
    X, y, qid = problem()
    model = RankRLS(alpha=1.0).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="fitted on 7 queries.*enable_metadata_routing"):
        model.score(X, y)


def test_grid_search_over_kernel_parameters():
    X, y, qid = problem()
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            RankRLS(alpha=1.0, kernel=Gaussian(0.1)),
            {"kernel__gamma": [0.01, 1.0]},
            cv=GroupKFold(2).set_split_request(groups="qid"),
        ).fit(X, y, qid=qid)
    assert search.best_estimator_.kernel_.gamma in (0.01, 1.0)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_with_a_query_column(library):
    frames = pytest.importorskip(library)
    X, y, qid = problem()
    names = [f"feature_{i}" for i in range(6)]
    frame = frames.DataFrame({"qid": [f"query {q}" for q in qid], **{n: X[:, i] for i, n in enumerate(names)}})
    model = RankRLS().fit(frame, y)
    assert_array_equal(model.feature_names_in_, names)
    assert model.n_features_in_ == 6
    reference = RankRLS().fit(X, y, qid=qid)
    assert_allclose(model.coef_, reference.coef_)
    assert_allclose(model.predict(frame), reference.predict(X))
    assert_allclose(model.score(frame, y), reference.score(X, y, qid))
    assert_array_equal(model.rank(frame), reference.rank(X, qid))
    with pytest.raises(ValueError, match="given twice"):
        model.fit(frame, y, qid=qid)


def test_clone_and_pickle_keep_everything():
    X, y, qid = problem()
    model = RankRLS(kernel=Gaussian(0.2), tied_pairs="auto").fit(X, y, qid=qid)
    copy = pickle.loads(pickle.dumps(model))
    assert_allclose(copy.predict(X), model.predict(X), rtol=1e-12)
    fresh = clone(model)
    assert fresh.kernel == model.kernel and fresh.kernel is not model.kernel
    assert not hasattr(fresh, "alpha_")


def test_html_repr_shows_the_parameters():
    assert "leave-query-out" in RankRLS()._repr_html_()


def test_a_fit_leaves_parameters_and_data_alone():
    X, y, qid = problem()
    before = X.copy(), y.copy(), qid.copy()
    for params in ({}, {"kernel": "rbf"}, {"tied_pairs": "auto"}, {"weighting": "pairs", "regression": 0.5}):
        model = RankRLS(**params)
        parameters = dict(model.get_params())
        model.fit(X, y, qid=qid)
        assert model.get_params() == parameters
        for array, copy in zip((X, y, qid), before, strict=True):
            assert_array_equal(array, copy)
