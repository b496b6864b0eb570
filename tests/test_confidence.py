"""How sure a ranking is: posterior variances against a dense inverse, and probabilities that mean what they say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import oracles
from cases import problem
from papers import RankRLS
from rankrls import datasets, load, save

X, y, qid = problem(m=80)
MODELS = [{}, {"kernel": "rbf", "basis": [1, 5, 9, 20, 40, 50]}]


def covariance(model, A, B):
    """Phi(A) M^-1 Phi(B)' from the dense normal equations."""
    L = oracles.laplacian(y, qid, tied=False, weighting="items")
    if model.kernel is None:
        return A @ np.linalg.inv(X.T @ L @ X + model.alpha_ * np.eye(X.shape[1])) @ B.T
    k = lambda Z: model.kernel_(Z, model.X_fit_)
    return k(A) @ np.linalg.inv(k(X).T @ L @ k(X) + model.alpha_ * k(model.X_fit_)) @ k(B).T


@pytest.mark.parametrize("params", MODELS, ids=["linear", "kernel"])
def test_variances_are_those_of_the_posterior(params):
    model = RankRLS(**params).fit(X, y, qid=qid)
    scores, std = model.predict(X, return_std=True)
    sigma, tau = model.noise_
    C = covariance(model, X, X)
    assert_allclose(std, sigma * np.sqrt(np.diag(C)), rtol=1e-6)
    a, b = np.arange(0, 40), np.arange(40, 80)
    v = sigma**2 * (C[a, a] + C[b, b] - 2 * C[a, b])
    expected = norm.cdf((scores[a] - scores[b]) / np.sqrt(tau**2 + v))
    assert_allclose(model.probability_above(X[a], X[b]), expected, rtol=1e-6)
    assert_allclose(model.probability_above(X[b], X[a]), 1 - expected, atol=1e-12)


def test_probabilities_are_calibrated():
    data, new = datasets.make_search(150, random_state=0), datasets.make_search(150, random_state=1)
    model = RankRLS().fit(data.X, data.y, qid=data.qid)
    sure, right = [], []
    for q in np.unique(new.qid):
        rows = np.flatnonzero(new.qid == q)
        i, j = (rows[k] for k in np.triu_indices(len(rows), 1))
        i, j = i[new.y[i] != new.y[j]], j[new.y[i] != new.y[j]]
        p = model.probability_above(new.X[i], new.X[j]) if len(i) else np.empty(0)
        sure.append(np.maximum(p, 1 - p))
        right.append((p > 0.5) == (new.y[i] > new.y[j]))
    sure, right = np.concatenate(sure), np.concatenate(right)
    for low in (0.5, 0.6, 0.7, 0.8):
        there = (sure >= low) & (sure < low + 0.1)
        assert abs(right[there].mean() - sure[there].mean()) < 0.08


def test_intervals_of_ranks():
    model = RankRLS().fit(X, y, qid=qid)
    wide, narrow = model.rank_interval(X, qid, level=0.95), model.rank_interval(X, qid, level=0.2)
    ranks, sizes = model.rank(X, qid), np.bincount(qid)[qid]
    for intervals in (wide, narrow):
        assert np.all((intervals[:, 0] >= 1) & (intervals[:, 0] <= ranks))
        assert np.all((ranks <= intervals[:, 1]) & (intervals[:, 1] <= sizes))
    assert np.all(wide[:, 0] <= narrow[:, 0]) and np.all(wide[:, 1] >= narrow[:, 1])
    assert_allclose(model.rank_interval(X, qid), model.rank_interval(X, qid))


def test_pairs_to_judge_next():
    model = RankRLS().fit(X, y, qid=qid)
    pairs = model.next_pairs(X, qid, n=5)
    assert pairs.shape == (5, 2) and len(np.unique(pairs)) == 10
    assert np.all(qid[pairs[:, 0]] == qid[pairs[:, 1]])
    p = model.probability_above(X[pairs[:, 0]], X[pairs[:, 1]])
    assert np.all(p >= 0.5) and p[0] < 0.95


def test_files_and_errors(tmp_path):
    model = RankRLS().fit(X, y, qid=qid)
    save(model, tmp_path / "model.rankrls")
    assert_allclose(
        load(tmp_path / "model.rankrls").probability_above(X[:3], X[3:6]), model.probability_above(X[:3], X[3:6])
    )
    with pytest.raises(ValueError, match="keeps no held-out scores to tell how sure it is"):
        RankRLS(1.0).fit(X, y, qid=qid).probability_above(X[:1], X[1:2])
    with pytest.raises(ValueError, match="keeps no sums to tell how sure it is"):
        RankRLS(kernel="rbf").fit(X, y, qid=qid).predict(X, return_std=True)
    with pytest.raises(ValueError, match="level is a probability"):
        model.rank_interval(X, qid, level=90)
