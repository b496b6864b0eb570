"""Metamorphic properties, on random problems with ties, duplicates and lone items."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from papers import RankRLS
from rankrls.kernels import Gaussian

LOSSES = st.fixed_dictionaries(
    {
        "weighting": st.sampled_from(["pairs", "queries", "items"]),
        "tied_pairs": st.booleans(),
        "kernel": st.sampled_from([None, "rbf"]),
    }
)
relaxed = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def problems(draw):
    """X, y, qid with at least one comparable pair."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    m, n, q = draw(st.integers(4, 30)), draw(st.integers(1, 8)), draw(st.integers(1, 6))
    qid = rng.integers(0, q, m)
    X = rng.normal(size=(m, n)).round(draw(st.integers(0, 3)))  # rounding makes duplicates
    y = rng.integers(0, draw(st.integers(2, 5)), m).astype(float)
    qid[:2], y[:2] = 0, [0, 1]
    return X, y, qid


def fit(params, X, y, qid, alpha=0.5):
    params = dict(params)
    if params["kernel"] is not None:
        params["kernel"] = Gaussian(0.3)
    return RankRLS(alpha, **params).fit(X, y, qid=qid)


def assert_same(a, b, tol=1e-8):
    assert_allclose(a, b, rtol=0, atol=tol * max(1.0, np.abs(b).max()))


@relaxed
@given(problems(), LOSSES)
def test_permuting_rows_permutes_scores(data, loss):
    X, y, qid = data
    order = np.random.default_rng(0).permutation(len(y))
    assert_same(fit(loss, X[order], y[order], qid[order]).predict(X), fit(loss, X, y, qid).predict(X))


@relaxed
@given(problems(), LOSSES)
def test_names_of_queries_do_not_matter(data, loss):
    X, y, qid = data
    names = np.array(["ü", "b", "", "zz", "a b", "0"])[qid]
    assert_same(fit(loss, X, y, names).predict(X), fit(loss, X, y, qid).predict(X))


@relaxed
@given(problems(), LOSSES)
def test_a_constant_per_query_added_to_y_changes_nothing(data, loss):
    X, y, qid = data
    assert_same(fit(loss, X, y + 4.0 * qid, qid).predict(X), fit(loss, X, y, qid).predict(X))


@relaxed
@given(problems(), LOSSES)
def test_a_constant_per_query_added_to_X_changes_no_linear_model(data, loss):
    X, y, qid = data
    loss = {**loss, "kernel": None}
    offsets = 1000.0 * np.random.default_rng(1).normal(size=(7, X.shape[1]))
    assert_same(fit(loss, X + offsets[qid], y, qid).coef_, fit(loss, X, y, qid).coef_)


@relaxed
@given(problems(), LOSSES)
def test_negated_labels_negate_scores(data, loss):
    X, y, qid = data
    assert_same(fit(loss, X, -y, qid).predict(X), -fit(loss, X, y, qid).predict(X))


@relaxed
@given(problems(), LOSSES)
def test_every_query_twice_is_half_the_alpha(data, loss):
    X, y, qid = data
    twice = fit(loss, np.vstack([X, X]), np.tile(y, 2), np.concatenate([qid, qid + 100]), alpha=1.0)
    assert_same(twice.predict(X), fit(loss, X, y, qid, alpha=0.5).predict(X))


@relaxed
@given(problems(), LOSSES)
def test_scaling_X_by_c_and_alpha_by_c_squared_divides_coef_by_c(data, loss):
    X, y, qid = data
    loss = {**loss, "kernel": None}
    assert_same(7 * fit(loss, 7 * X, y, qid, alpha=49 * 0.5).coef_, fit(loss, X, y, qid).coef_)


@relaxed
@given(problems(), LOSSES)
def test_lone_items_change_nothing(data, loss):
    X, y, qid = data
    lone = np.random.default_rng(2).normal(size=(3, X.shape[1]))
    more = fit(loss, np.vstack([X, lone]), np.append(y, [1, 2, 3]), np.append(qid, [50, 51, 52]))
    assert_same(more.predict(X), fit(loss, X, y, qid).predict(X))


@relaxed
@given(problems(), st.sampled_from(["pairs", "queries", "items"]), st.sampled_from([None, "rbf"]))
def test_an_all_tied_query_changes_nothing_when_ties_are_out(data, weighting, kernel):
    X, y, qid = data
    loss = {"weighting": weighting, "kernel": kernel, "tied_pairs": False}
    tied = np.random.default_rng(2).normal(size=(3, X.shape[1]))
    more = fit(loss, np.vstack([X, tied]), np.append(y, [2, 2, 2]), np.append(qid, [50, 50, 50]))
    assert_same(more.predict(X), fit(loss, X, y, qid).predict(X))


@relaxed
@given(problems(), LOSSES, st.floats(-30, 30))
def test_scores_are_finite_and_the_model_shrinks_as_alpha_grows(data, loss, exponent):
    X, y, qid = data
    small, large = (fit(loss, X, y, qid, alpha=2.0**e) for e in (exponent, exponent + 4))
    assert np.isfinite(small.predict(X)).all()
    if loss["kernel"] is None:
        assert np.linalg.norm(large.coef_) <= np.linalg.norm(small.coef_) * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_selection_does_not_depend_on_row_order(seed):
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(60, 4)), rng.integers(0, 8, 60)
    y = (X[:, 0] + rng.normal(size=60)).round()
    order = rng.permutation(60)
    a, b = RankRLS().fit(X, y, qid=qid), RankRLS().fit(X[order], y[order], qid=qid[order])
    assert_allclose(a.alpha_, b.alpha_)
    assert_allclose(a.cv_predictions_[order], b.cv_predictions_, atol=1e-8)
