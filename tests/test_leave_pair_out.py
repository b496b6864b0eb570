"""Leave-pair-out against a refit for every pair, and alpha = 0 against least squares over pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
from rankrls import RankRLS
from rankrls.kernels import Gaussian, Precomputed
from rankrls.problems.leave_pair_out import OneQuery

RNG = np.random.default_rng(0)
M = 13
X = RNG.normal(size=(M, 3))
LABELS = {
    "two grades": (X[:, 0] + RNG.normal(size=M) > 0).astype(float),
    "one relevant": np.eye(M)[3],
    "grades": RNG.integers(0, 3, M).astype(float),
    "no ties": RNG.normal(size=M),
}
ALPHAS = np.array([1e-3, 0.7])
LOSSES = list(itertools.product(("pairs", "queries", "items"), (True, False), (0.0, 0.3)))


def slow(y, alpha, K, relevant=None, **loss):
    """The share of pairs in the right order by a refit without each of them."""
    right = []
    for i, j in itertools.permutations(range(M), 2):
        if not (y[i] > y[j] if relevant is None else y[i] >= relevant > y[j]):
            continue
        rest = [k for k in range(M) if k not in (i, j)]
        L = oracles.laplacian(y[rest], np.zeros(M - 2), **loss)
        a, _ = oracles.kernel_ridge(K[np.ix_(rest, rest)], y[rest], L, alpha, intercept=loss["beta"] > 0)
        above, below = K[np.ix_([i, j], rest)] @ a
        right.append((1 + np.sign(np.round(above - below, 12))) / 2)
    return np.mean(right)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("weighting", "tied", "beta"), LOSSES)
def test_pairs_are_ranked_as_by_refits(labels, weighting, tied, beta):
    y, K = LABELS[labels], oracles.gaussian(X, X, 0.5)
    for features, kernel in ((X, None), (None, K)):
        of_items = OneQuery(features, kernel, y, weighting, beta, tied)
        slowly = [
            slow(y, a, X @ X.T if kernel is None else K, weighting=weighting, tied=tied, beta=beta) for a in ALPHAS
        ]
        assert_allclose(of_items.accuracy(ALPHAS), slowly, atol=1e-12)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["linear", "wide", "kernel", "precomputed", "basis"])
def test_alpha_is_chosen_by_pairs(kind, tied):
    y, K = LABELS["two grades"], oracles.gaussian(X, X, 0.5)
    wide = np.hstack([X, RNG.normal(size=(M, 20))])
    rows, options, kernel = {
        "linear": (X, {}, X @ X.T),
        "wide": (wide, {}, wide @ wide.T),
        "kernel": (X, {"kernel": Gaussian(0.5)}, K),
        "precomputed": (K, {"kernel": Precomputed()}, K),
        "basis": (X, {"kernel": Gaussian(0.5), "basis": [0, 1, 2, 3]}, K[:, :4] @ np.linalg.solve(K[:4, :4], K[:4])),
    }[kind]
    model = RankRLS(cv="leave-pair-out", tied_pairs=tied, alphas=ALPHAS, scale=None, **options).fit(rows, y)
    slowly = [slow(y, a, kernel, weighting="items", tied=tied, beta=0.0) for a in ALPHAS]
    assert_allclose(model.cv_scores_, slowly, atol=1e-12)
    assert model.alpha_ == ALPHAS[1 if slowly[1] >= slowly[0] else 0]
    assert not hasattr(model, "cv_predictions_") and np.isnan(model.cv_errors_).all()


def test_scaled_columns_keep_their_units():
    y = LABELS["grades"]
    for weighting in ("items", "pairs"):
        model = RankRLS(cv="leave-pair-out", weighting=weighting, tied_pairs=True, alphas=ALPHAS).fit(
            X * [1, 10, 100], y
        )
        Z = X * [1, 10, 100] / model.scale_
        slowly = [slow(y, a, Z @ Z.T, weighting=weighting, tied=True, beta=0.0) for a in ALPHAS]
        assert_allclose(model.cv_scores_, slowly, atol=1e-12)


def test_auc_compares_relevant_items_to_others():
    y, K = LABELS["grades"], X @ X.T
    model = RankRLS(cv="leave-pair-out", scoring="auc", alphas=ALPHAS, scale=None).fit(X, y)
    slowly = [slow(y, a, K, 1.0, weighting="items", tied=False, beta=0.0) for a in ALPHAS]
    assert_allclose(model.cv_scores_, slowly, atol=1e-12)
    wrong = RankRLS(cv="leave-pair-out", scoring="disagreement_error", alphas=ALPHAS, scale=None).fit(X, y)
    slowly = [slow(y, a, K, weighting="items", tied=False, beta=0.0) for a in ALPHAS]
    assert_allclose(wrong.cv_scores_, 1 - np.array(slowly), atol=1e-12)


def test_equal_rows_are_tied():
    rows, y = np.repeat([[0.0], [1.0]], 6, axis=0), np.tile([0.0, 1.0], 6)
    model = RankRLS(cv="leave-pair-out", alphas=[1.0]).fit(rows, y)
    between = slow_equal(rows, y)
    assert_allclose(model.cv_scores_, between)


def slow_equal(rows, y):
    right = []
    for i, j in itertools.permutations(range(len(y)), 2):
        if y[i] > y[j]:
            rest = [k for k in range(len(y)) if k not in (i, j)]
            L = oracles.laplacian(y[rest], np.zeros(len(rest)), tied=False, weighting="items")
            w, _ = oracles.ridge(rows[rest], y[rest], L, 0.25)
            right.append((1 + np.sign(np.round((rows[i] - rows[j]) @ w, 12))) / 2)
    return np.mean(right)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"qid": np.arange(M) // 4}, "is for the items of one query, but there are 4"),
        ({"scoring": "ndcg"}, "scoring must be one of pairwise_accuracy, auc, disagreement_error, got 'ndcg'"),
        ({"sample_weight": np.arange(M) + 1.0}, "items of equal weight"),
        ({"positive": True}, "cannot be combined with positive="),
    ],
)
def test_what_leave_pair_out_cannot_judge_is_refused(options, message):
    fit = {name: options.pop(name) for name in ("qid", "sample_weight") if name in options}
    with pytest.raises(ValueError, match=message):
        RankRLS(cv="leave-pair-out", **options).fit(X, LABELS["two grades"], **fit)


def test_many_levels_with_ties_are_refused():
    y = np.concatenate([np.arange(20.0), np.arange(20.0)])
    with pytest.raises(ValueError, match="y has 20 different ones, some of them tied: set tied_pairs=True"):
        RankRLS(cv="leave-pair-out").fit(RNG.normal(size=(40, 2)), y)


# ---------------------------------------------------------------- alpha = 0


def test_without_a_penalty_weights_are_those_of_least_squares_over_pairs():
    qid, y = np.arange(M) % 2, LABELS["no ties"]
    pairs = [(i, j) for i, j in itertools.combinations(range(M), 2) if qid[i] == qid[j]]
    D = np.array([X[i] - X[j] for i, j in pairs])
    d = np.array([y[i] - y[j] for i, j in pairs])
    for scale in ("auto", None):
        model = RankRLS(0, weighting="pairs", scale=scale).fit(X, y, qid=qid)
        assert_allclose(model.coef_, np.linalg.lstsq(D, d, rcond=None)[0])
    path = RankRLS(alphas=[0.0, 1.0], scale=None).fit(X, y, qid=qid)
    assert path.alpha_ in (0.0, 1.0)
    assert_allclose(path.cv_scores_[0], RankRLS(alphas=[1e-12, 1.0], scale=None).fit(X, y, qid=qid).cv_scores_[0])
    blocks = RankRLS(0, scale=None).fit(iter([(X[qid == q], y[qid == q], qid[qid == q]) for q in (0, 1)]))
    assert_allclose(blocks.coef_, RankRLS(0, scale=None).fit(X, y, qid=qid).coef_)


def test_without_a_penalty_a_basis_determines_a_model():
    y = LABELS["no ties"]
    model = RankRLS(0, kernel=Gaussian(0.5), basis=[0, 1, 2]).fit(X, y)
    assert_allclose(model.predict(X), RankRLS(1e-12, kernel=Gaussian(0.5), basis=[0, 1, 2]).fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (np.hstack([X, X[:, :1]]), {}, "they determine 3 of 4"),
        (np.hstack([X, np.ones((M, 1))]), {"scale": None}, "they determine 3 of 4"),
        (X, {"kernel": "rbf"}, "kernel on every row"),
        (RNG.normal(size=(M, 30)), {}, "more columns than rows"),
    ],
)
def test_undetermined_weights_need_a_penalty(rows, options, message):
    with pytest.raises(ValueError, match=message):
        RankRLS(0, **options).fit(rows, LABELS["no ties"])


def test_queries_that_alone_determine_a_weight_cannot_be_held_out():
    rows, qid = np.zeros((8, 2)), np.repeat([0, 1, 2, 3], 2)
    rows[::2, 0], rows[0, 1] = [1.0, 2.0, 3.0, 4.0], 1.0  # the second column varies in the first query only
    y = np.tile([1.0, 0.0], 4)
    with pytest.raises(ValueError, match="without query 0 the rows do not"):
        RankRLS(alphas=[0.0, 1.0], scale=None).fit(rows, y, qid=qid)
    with pytest.raises(ValueError, match="determine 1 of 2"):
        RankRLS(alphas=[0.0, 1.0], scale=None, cv=2).fit(rows, y, qid=qid)
