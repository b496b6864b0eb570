"""How sure a ranking is: posterior variances against a dense inverse, and probabilities that mean what they say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import oracles
from cases import problem
from papers import RankRLS
from rankrls import datasets, load, save
from rankrls.core import noise
from rankrls.system.limits import limited

X, y, qid = problem(m=80)
MODELS = [{}, {"kernel": "rbf", "basis": [1, 5, 9, 20, 40, 50]}, {"kernel": "rbf"}, {"kernel": "poly", "alpha": 3.0}]


def covariance(model, A, B):
    """Phi(A) M^-1 Phi(B)' from the dense normal equations."""
    L = oracles.laplacian(y, qid, tied=False, weighting="items")
    if model.kernel is None:
        return A @ np.linalg.inv(X.T @ L @ X + model.alpha_ * np.eye(X.shape[1])) @ B.T
    k = lambda Z: model.kernel_(Z, model.X_fit_)
    if model.basis is None:  # a Gaussian process: what the rows do not tell keeps the variance of the prior
        known = k(A) @ np.linalg.solve(L @ k(X) + model.alpha_ * np.eye(len(X)), L @ k(B).T)
        return (model.kernel_(A, B) - known) / model.alpha_
    return k(A) @ np.linalg.inv(k(X).T @ L @ k(X) + model.alpha_ * k(model.X_fit_)) @ k(B).T


@pytest.mark.parametrize("params", MODELS, ids=["linear", "basis", "kernel", "poly"])
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
    rng = np.random.default_rng(0)
    new = rng.normal(size=(100, X.shape[1])) * X.std(axis=0)  # more rows than are compared at once
    variance = sigma**2 * np.diag(covariance(model, new, new))
    assert_allclose(model.predict(new, return_std=True)[1], np.sqrt(variance), rtol=1e-6)
    assert model.rank_interval(new, np.repeat([0, 1], 50)).shape == (100, 2)
    assert model.next_pairs(new, np.repeat([0, 1], 50), n=3).shape == (3, 2)


def test_rows_far_from_the_training_rows_keep_the_prior_variance():
    """A kernel of all rows knows nothing there, and says so."""
    model = RankRLS(kernel="rbf").fit(X, y, qid=qid)
    std = model.predict(np.vstack([X[:1], X[:1] + 1e3]), return_std=True)[1]
    assert std[1] == pytest.approx(model.noise_[0] / np.sqrt(model.alpha_)) and std[0] < std[1]


@pytest.mark.parametrize("params", [{}, *MODELS[1:3], {"positive": [0]}, {"regression": 0.3}, {"gain": np.sqrt}])
def test_a_given_alpha_has_the_same_noise(params):
    chosen = RankRLS(**params).fit(X, y, qid=qid)
    given = RankRLS(chosen.alpha_, **params).fit(X, y, qid=qid)
    assert not hasattr(given, "cv_scores_") and not hasattr(given, "alphas_")
    assert_allclose(given.noise_, chosen.noise_, rtol=1e-6)
    assert_allclose(given.probability_above(X[:9], X[9:18]), chosen.probability_above(X[:9], X[9:18]), rtol=1e-6)


@pytest.mark.parametrize("params", [{}, {"alpha": 2.0}, {"alpha": 2.0, "kernel": "rbf"}, {"tied_pairs": True}])
def test_one_query(params):
    model = RankRLS(**params).fit(X, y)
    assert 0 < model.noise_[0] < 2 * y.std() and model.noise_[1] > 0
    assert np.all(model.predict(X, return_std=True)[1] > 0)


def test_the_noise_follows_added_and_forgotten_queries():
    early = qid < 5
    model = RankRLS(2.0).fit(X, y, qid=qid)
    assert np.all(np.isfinite(model.noise_))
    model.forget(X[~early], y[~early], qid=qid[~early])
    alone = RankRLS(2.0).fit(X[early], y[early], qid=qid[early])
    assert_allclose(model.noise_, alone.noise_, rtol=1e-9)
    assert_allclose(model.predict(X, return_std=True)[1], alone.predict(X, return_std=True)[1], rtol=1e-6)


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
    given = RankRLS(1.0).fit(X, y, qid=qid)
    save(given, tmp_path / "given.rankrls")
    assert_allclose(load(tmp_path / "given.rankrls").predict(X, return_std=True), given.predict(X, return_std=True))
    with limited(kept_bytes=1000):
        large = RankRLS(1.0).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r'no held-out scores to estimate uncertainty from: .* alpha="auto" \(alphas='):
        large.predict(X, return_std=True)
    with pytest.raises(ValueError, match="keeps no sums, which uncertainty is computed from: use .* not precomputed"):
        RankRLS(kernel="precomputed").fit(X @ X.T, y, qid=qid).predict(X @ X.T, return_std=True)
    with pytest.raises(ValueError, match="fit one target"):
        RankRLS(1.0, tied_pairs=True).fit(X, np.column_stack([y, y]), qid=qid).predict(X, return_std=True)
    with pytest.raises(ValueError, match="alpha=0"):
        RankRLS(0.0).fit(X, y, qid=qid).predict(X, return_std=True)
    with pytest.raises(ValueError, match="level must be a probability"):
        model.rank_interval(X, qid, level=90)
    with pytest.raises(ValueError, match="X_a has 3 and X_b 1"):
        model.probability_above(X[:3], X[:1])


@pytest.mark.parametrize("params", [{}, {"cv": 4}, {"positive": True}, {"gain": "exponential"}], ids=str)
def test_rows_in_blocks_give_the_noise(params):
    data = datasets.make_search(40, random_state=0)
    blocks = lambda: (
        (data.X[part], data.y[part], data.qid[part]) for part in np.array_split(np.arange(len(data.y)), 5)
    )
    whole = RankRLS(**params).fit(blocks)
    sigma, tau = whole.noise_
    held_out = RankRLS(**params).fit(data.X, data.y, qid=data.qid)
    if "cv" in params:  # other folds, which may prefer another alpha
        assert 0.5 < sigma / held_out.noise_[0] < 2
        return
    assert_allclose(sigma, held_out.noise_[0], rtol=1e-9)
    assert_allclose(tau, held_out.noise_[1], rtol=0.1)  # from a sample of pairs
    p = whole.probability_above(data.X[:20], data.X[20:40])
    assert_allclose(p, held_out.probability_above(data.X[:20], data.X[20:40]), atol=0.03)


def test_pairs_alone_give_the_noise():
    """Each pair is left out by a refit; probabilities fit best at tau."""
    rng = np.random.default_rng(0)
    Z, w = rng.normal(size=(60, 4)), np.array([2.0, 1.0, 0.0, -1.0])
    pairs = np.array([(i, j) for i in range(60) for j in rng.choice(60, 3) if i != j])
    noisy = (Z[pairs[:, 0]] - Z[pairs[:, 1]]) @ w + 2 * rng.normal(size=len(pairs)) > 0
    pairs = np.where(noisy[:, None], pairs, pairs[:, ::-1])
    model = RankRLS().fit_pairs(Z, pairs)
    held = np.empty(len(pairs))
    for p, (i, j) in enumerate(pairs):
        rest = RankRLS(model.alpha_).fit_pairs(Z, np.delete(pairs, p, axis=0))
        held[p] = rest.predict(Z[[i]])[0] - rest.predict(Z[[j]])[0]
    sigma, tau = model.noise_
    assert_allclose(sigma, np.sqrt(np.mean((1 - held) ** 2)), rtol=1e-6)
    likelihood = lambda t: norm.logcdf(held / t).sum()
    assert likelihood(tau) >= max(likelihood(tau * 1.01), likelihood(tau / 1.01))
    p = model.probability_above(Z[:10], Z[10:20])
    assert np.all((p > 0) & (p < 1)) and np.all((p > 0.5) == (model.predict(Z[:10]) > model.predict(Z[10:20])))
    assert model.rank_interval(Z[:10]).shape == (10, 2)


@pytest.mark.parametrize("n", [5, 1000, 8000])
def test_the_noise_of_pairs_starts_from_few_of_them_but_counts_all(n):
    rng = np.random.default_rng(n)
    few, all_of_one_sign = rng.standard_normal(n) * 0.1 + 0.05, np.abs(rng.standard_normal(n)) * 0.1
    empty = np.where(np.arange(n) % noise.FEW == 0, 0.0, few)
    for margin in (few, empty, all_of_one_sign, -all_of_one_sign):
        margin = margin / np.abs(margin).max()
        assert_allclose(noise._steepness(margin), noise._newton(0.0, margin, 1e-6), rtol=1e-6)
