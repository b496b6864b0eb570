"""The held-out curve follows as queries and pairs are added and removed: it is that of the queries learned so far."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
import rankrls
from rankrls import RankRLS
from rankrls.datasets import make_search
from rankrls.kernels import Gaussian
from rankrls.system.limits import limited

data = make_search(24, random_state=0)
X, y, qid = data.X, data.y, data.qid
early = np.isin(qid, np.unique(qid)[:16])
late = ~early

MODELS = {
    "linear": {},
    "plain penalty": {"scale": None},
    "regression": {"regression": 0.3},
    "ties": {"tied_pairs": True, "weighting": "queries"},
    "basis": {"kernel": "rbf", "basis": X[::17].copy()},
    "signs": {"positive": [0, 1, 4]},
    "gain": {"gain": "exponential", "scoring": "ndcg@5"},
    "folds": {"cv": 4},
}


def grown(params):
    model = RankRLS(**params).fit(X[early], y[early], qid=qid[early])
    return model, model.partial_fit(X[late], y[late], qid=qid[late])


def assert_same_curve(model, other, rows=slice(None), rtol=1e-6):
    assert_allclose(model.cv_scores_, other.cv_scores_, rtol=rtol)
    assert_allclose(model.cv_errors_, other.cv_errors_, rtol=rtol)
    assert_allclose(model.cv_predictions_, other.cv_predictions_[rows], rtol=rtol, atol=1e-8)
    assert_allclose(model.noise_, other.noise_, rtol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_queries_that_are_added_and_forgotten(name):
    params = MODELS[name]
    model, _ = grown(params)
    if name != "basis":  # whose kernel has the width of the first rows
        whole = RankRLS(**{**params, "alphas": model.alphas_}).fit(X, y, qid=qid)
        order = np.concatenate([np.flatnonzero(early), np.flatnonzero(late)])
        if name == "folds":
            assert model.cv_scores_.shape == whole.cv_scores_.shape  # folds are dealt out in the order of queries
        else:
            k = np.argmin(np.abs(model.alphas_ - model.alpha_))
            assert_allclose(model.cv_scores_, whole.cv_scores_, rtol=1e-6)
            at = RankRLS(**{**params, "alphas": [model.alphas_[k]]}).fit(X, y, qid=qid)
            assert_allclose(model.cv_predictions_, at.cv_predictions_[order], rtol=1e-5, atol=1e-7)
            assert_allclose(model.noise_, at.noise_, rtol=1e-3)
    model.forget(X[late][::-1], y[late][::-1], qid=qid[late][::-1])  # whatever their order
    first = RankRLS(**params).fit(X[early], y[early], qid=qid[early])
    assert_same_curve(model, first, rtol=1e-4)
    assert_allclose(model.alphas_, first.alphas_)


def test_confidence_follows():
    model, _ = grown({})
    assert np.all((model.probability_above(X[:3], X[3:6]) > 0) & (model.probability_above(X[:3], X[3:6]) < 1))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "params", [{}, {"scale": None, "regression": 0.2}, {"kernel": Gaussian(1e-4), "basis": X[::17].copy()}]
)
def test_pairs_stay_in_while_queries_are_left_out(params, exact):
    """Every held-out score is that of a refit without the query, with labels and pairs of the others in one system."""
    params = {"alphas": [0.7], "scale": None, **params}
    model = RankRLS(**params).fit(X[early], y[early], qid=qid[early])
    pairs, margins = np.array([[0, 40], [3, 25]]), np.array([1.5, 0.5])
    model.add_pairs(X, pairs, margins, exact=exact)
    model.partial_fit(X[late], y[late], qid=qid[late])
    order = np.concatenate([np.flatnonzero(early), np.flatnonzero(late)])
    ids = np.unique(qid)
    for q in (ids[2], ids[20]):
        rest = np.flatnonzero(qid != q)
        refit = RankRLS(**{**params, "alpha": 0.7, "alphas": None}).set_params(**_same_kernel(model, params))
        refit.fit(X[rest], y[rest], qid=qid[rest]).add_pairs(X, pairs, margins, exact=exact)
        assert_allclose(
            model.cv_predictions_[qid[order] == q], refit.predict(X[order][qid[order] == q]), rtol=1e-6, atol=1e-8
        )


def _same_kernel(model, params):
    return {"kernel": model.kernel_, "basis": model.X_fit_} if "kernel" in params else {}


def test_queries_after_pairs_alone():
    pairs = [[0, 40], [3, 25], [7, 60], [9, 2]]
    model = RankRLS(alphas=[0.5, 5.0], scale=None).fit_pairs(X, pairs)
    before = model.cv_scores_.copy()
    model.partial_fit(X[early], y[early], qid=qid[early])
    assert not np.allclose(model.cv_scores_, before)  # of queries now
    q = np.unique(qid)[3]
    rest = early & (qid != q)
    refit = RankRLS(model.alpha_, scale=None).fit_pairs(X, pairs).partial_fit(X[rest], y[rest], qid=qid[rest])
    assert_allclose(model.cv_predictions_[qid[early] == q], refit.predict(X[early][qid[early] == q]), rtol=1e-6)
    expected = oracles.pairwise_accuracy(y[early], model.cv_predictions_, qid[early])
    assert_allclose(model.cv_scores_[np.argmin(np.abs(model.alphas_ - model.alpha_))], expected)
    one = RankRLS(alphas=[0.5, 5.0], scale=None).fit_pairs(X, pairs)
    first = qid == np.unique(qid)[0]
    one.partial_fit(X[first], y[first], qid=qid[first])  # one query can be left out: pairs stay to learn from
    alone = RankRLS(one.alpha_, scale=None).fit_pairs(X, pairs).predict(X[first])
    assert_allclose(one.cv_predictions_, alone, rtol=1e-6)
    tied = RankRLS(alphas=[0.5, 5.0]).fit_pairs(X, pairs)
    tied.partial_fit(X[first], np.ones(first.sum()), qid=qid[first])
    assert not hasattr(tied, "cv_scores_")  # a query whose labels are all equal judges nothing


def test_nothing_is_computed_before_it_is_asked_for_and_files_hold_no_rows(tmp_path):
    model, _ = grown({})
    assert "cv_scores_" not in vars(model)
    rankrls.save(model, tmp_path / "model")
    read = rankrls.load(tmp_path / "model")
    assert_allclose(read.cv_scores_, model.cv_scores_)
    assert (tmp_path / "model").stat().st_size < X.nbytes + 40_000
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), read):
        assert_allclose(other.cv_predictions_, model.cv_predictions_)
        other.partial_fit(X[late], y[late], qid=qid[late])
        assert not hasattr(other, "cv_scores_")  # without the rows there is no telling
        assert not hasattr(other, "alphas_")


def test_changes_that_end_a_history():
    model, _ = grown({})
    assert hasattr(model.fit(X, y, qid=qid), "cv_scores_")
    changed = X[late] + 1e-9
    model.forget(changed, y[late], qid=qid[late])  # within rounding the same sums, but not the same rows
    assert not hasattr(model, "cv_scores_")
    with limited(kept_bytes=X[early].nbytes + 100):
        model, _ = grown({})
    assert not hasattr(model, "cv_scores_")
    number = RankRLS(1.0).fit(X[early], y[early], qid=qid[early]).partial_fit(X[late], y[late], qid=qid[late])
    assert not hasattr(number, "cv_scores_")
    rows = X[early].copy()
    model = RankRLS(alphas=[1.0, 2.0]).partial_fit(rows[:40], y[early][:40], qid=qid[early][:40])
    assert "_history" in vars(model)
    rows[:] = 0  # the caller's array is the caller's
    assert np.ptp(model.cv_predictions_) > 0


def test_a_mix_has_a_curve_too():
    Y = np.column_stack([y, X[:, 0]])
    both = RankRLS(tied_pairs=True, alphas=[1.0, 10.0]).fit(X, Y, qid=qid)
    mixed = both.mix([0.5, 0.5])
    alone = RankRLS(tied_pairs=True, alphas=[1.0, 10.0]).fit(X, Y @ [0.5, 0.5], qid=qid)
    assert_allclose(mixed.cv_scores_, alone.cv_scores_)
    assert_allclose(
        mixed.noise_[0], RankRLS(tied_pairs=True, alphas=[mixed.alpha_]).fit(X, Y @ [0.5, 0.5], qid=qid).noise_[0]
    )
