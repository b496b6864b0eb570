"""The weights of queries and tie levels against 60-digit arithmetic."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from papers import RankRLS
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.core.weighting import WEIGHTINGS, Weighting
from rankrls.problems.choice import item_factor

WEIGHTS = {
    "even": np.ones(6),
    "one heavy item": np.array([1e9, 1e-9, 1e-9, 1e-9, 2e-9, 3e-9]),
    "one heavy level": np.array([1e9, 1e-9, 1e9, 1e-9, 2e-9, 3e-9]),
    "light": np.full(6, 1e-160),
    "heavy": np.array([1e150, 1e150, 1e150, 1e130, 1e150, 1e-150]),
}
Y = np.array([0, 1, 0, 1, 2, 3])


def exact(u, y, kind, beta):
    """between^2 and within_j^2 of one query, and its mass, ties excluded."""
    with mpmath.workdps(400):
        u, beta = [mpmath.mpf(float(v)) for v in u], mpmath.mpf(beta)
        S = mpmath.fsum(u)
        level = {label: mpmath.fsum(v for v, at in zip(u, y, strict=True) if at == label) for label in np.unique(y)}
        mass = (S**2 - mpmath.fsum(s**2 for s in level.values())) / 2
        c = {"pairs": mpmath.mpf(1), "items": 1 / S, "queries": 1 / mass if mass > 0 else mpmath.mpf(0)}[kind]
        within2 = [beta + (1 - beta) * c * (S - s) for s in level.values()]
        return beta + (1 - beta) * c * S, within2, mass


def relative(found, expected):
    return max(float(abs(mpmath.mpf(float(f)) / e - 1)) for f, e in zip(np.ravel(found), expected, strict=True))


@pytest.mark.parametrize("kind", WEIGHTINGS)
@pytest.mark.parametrize("beta", [0.0, 0.3])
@pytest.mark.parametrize("name", WEIGHTS)
def test_uneven_weights_lose_no_digits(kind, beta, name):
    u = WEIGHTS[name]
    levels = np.bincount(Y, weights=u)
    before = np.array([1e30])  # another query with other weights changes nothing
    w = Weighting(kind, beta, np.array([0, 1, 1, 1, 1]), np.concatenate([before, levels]), 2)
    between2, within2, mass = exact(u, Y, kind, beta)
    assert relative(w.between2[1], [between2]) < 1e-14
    assert relative(w.within2[1:], within2) < 1e-14
    if 1e-290 < mass < 1e290:
        assert relative(w.mass[1], [mass]) < 1e-14


@pytest.mark.parametrize("kind", WEIGHTINGS)
@pytest.mark.parametrize("name", ["one heavy item", "one heavy level", "light"])
def test_preferences_of_uneven_weights(kind, name):
    u = WEIGHTS[name]
    F = QueryPreferences(Queries.single(6), Y.astype(float), weighting=kind, weights=u)
    _, within2, _ = exact(u, Y, kind, 0.0)
    tied = np.isin(Y, [0, 1])
    assert relative(F.within[tied] ** 2, [within2[label] for label in Y[tied]]) < 1e-14


@pytest.mark.parametrize("kind", WEIGHTINGS)
def test_factor_of_the_remaining_items(kind):
    u, y = np.array([1e9, 1e-9, 1e-9, 1.0]), np.arange(4.0)
    F = QueryPreferences(Queries.single(4), y, weighting=kind, weights=u)
    between2, _, _ = exact(u[:3], y[:3], kind, 0.0)
    assert relative(item_factor(F, np.array([3])), [between2]) < 1e-14


def test_tiny_equal_weights_equal_weights_of_one():
    """With every query counting once, a common factor of all weights changes nothing."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), np.repeat(np.arange(8), 5)
    even = RankRLS(1.0, weighting="queries").fit(X, y, qid=qid).coef_
    for factor in (1e-160, 1e-60, 1e60):
        scaled = RankRLS(1.0, weighting="queries").fit(X, y, qid=qid, sample_weight=np.full(40, factor))
        assert_allclose(scaled.coef_, even, rtol=1e-12)


def test_a_query_of_very_uneven_weights_still_counts_once():
    X, y, qid = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 1, 0, 1]), [0, 0, 1, 1]
    u = np.array([1e9, 1e-9, 1.0, 1.0])
    found = RankRLS(1.0, weighting="queries").fit(X, y, qid=qid, sample_weight=u).coef_
    assert_allclose(found, RankRLS(1.0, weighting="queries").fit(X, y, qid=qid).coef_, rtol=1e-12)


def test_one_query_of_small_weights_chooses_an_alpha():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), rng.permutation(30).astype(float)
    even = RankRLS(weighting="queries").fit(X, y)
    small = RankRLS(weighting="queries").fit(X, y, sample_weight=np.full(30, 1e-170))
    assert_allclose(small.coef_, even.coef_, rtol=1e-9)
