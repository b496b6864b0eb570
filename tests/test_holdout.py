"""Exact hold-out: every score equals that of a model refitted without the fold."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.model_selection import GroupKFold

import oracles
from cases import problem, weights
from rankrls import RankRLS
from rankrls.kernels import Gaussian

ALPHAS = np.array([1e-3, 0.3, 40.0])
KINDS = ["linear", "wide", "sparse", "kernel", "basis"]


def kernel(X, Z):
    return oracles.gaussian(X, Z, 0.05)


def held_out(kind, X, y, qid, **params):
    """Scores for every alpha, by fits on a grid of one alpha each."""
    extra = {"kernel": Gaussian(0.05)} if kind in ("kernel", "basis") else {}
    if kind == "basis":
        extra["basis"] = X
    data = sparse.csr_array(X) if kind == "sparse" else X
    u = params.pop("sample_weight", None)
    models = [RankRLS(alphas=[a], **extra, **params).fit(data, y, qid=qid, sample_weight=u) for a in ALPHAS]
    return np.column_stack([model.cv_predictions_ for model in models])


def data(kind, **arguments):
    return problem(n=60 if kind == "wide" else 6, **arguments)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("tied", "weighting", "beta", "weighted"),
    [
        *itertools.product([True, False], ["pairs", "queries", "items"], [0.0, 0.4], [False]),
        (True, "queries", 0.0, True),
        (False, "queries", 0.0, True),
        (False, "items", 0.4, True),
        (True, "pairs", 1.0, True),
    ],
)
def test_leave_query_out_equals_refits(kind, tied, weighting, beta, weighted):
    X, y, qid = data(kind)
    u = weights(len(y)) if weighted else None
    loss = {"tied": tied, "weighting": weighting, "beta": beta, "u": u}
    got = held_out(kind, X, y, qid, tied_pairs=tied, weighting=weighting, regression=beta, sample_weight=u)
    folds = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    for k, alpha in enumerate(ALPHAS):
        expected = oracles.refit_scores(
            X, y, qid, folds, alpha, kernel=kernel if kind in ("kernel", "basis") else None, **loss
        )
        assert_allclose(got[:, k], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("tied", "beta"), [(True, 0.0), (False, 0.0), (False, 0.4)])
def test_folds_of_queries_equal_refits(kind, tied, beta):
    X, y, qid = data(kind)
    folds = [test for _, test in GroupKFold(3).split(X, groups=qid)]
    loss = {"tied": tied, "weighting": "queries", "beta": beta}
    kernel_or_none = kernel if kind in ("kernel", "basis") else None
    for cv in (GroupKFold(3), [(None, fold) for fold in folds]):
        got = held_out(kind, X, y, qid, tied_pairs=tied, regression=beta, weighting="queries", cv=cv)
        for k, alpha in enumerate(ALPHAS):
            expected = oracles.refit_scores(X, y, qid, folds, alpha, kernel=kernel_or_none, **loss)
            assert_allclose(got[:, k], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighting", ["pairs", "queries", "items"])
@pytest.mark.parametrize(
    ("tied", "beta", "weighted"), [(True, 0.0, False), (True, 0.4, True), (False, 0.0, False), (False, 0.4, True)]
)
def test_items_of_one_query_equal_refits_up_to_a_constant_per_fold(kind, weighting, tied, beta, weighted):
    X, y, _ = data(kind)
    u = weights(len(y)) if weighted else None
    folds = [np.arange(40)[i::3] for i in range(3)]
    splits = [(None, fold) for fold in folds]
    got = held_out(kind, X, y, None, tied_pairs=tied, weighting=weighting, regression=beta, cv=splits, sample_weight=u)
    loss = {"tied": tied, "weighting": weighting, "beta": beta, "u": u}
    for k, alpha in enumerate(ALPHAS):
        expected = oracles.refit_scores(
            X, y, np.zeros(40), folds, alpha, kernel=kernel if kind in ("kernel", "basis") else None, **loss
        )
        for fold in folds:
            a, b = got[fold, k], expected[fold]
            if beta == 0:  # ranking does not see the constant
                a, b = a - a.mean(), b - b.mean()
            assert_allclose(a, b, rtol=1e-6, atol=1e-6 * np.abs(b).max())


def test_high_leverage_folds_are_solved_directly():
    X, y, qid = problem(m=24, n=20, n_queries=3)
    got = held_out("linear", X, y, qid, weighting="pairs", tied_pairs=True)
    folds = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    for k, alpha in enumerate(ALPHAS):
        assert_allclose(
            got[:, k], oracles.refit_scores(X, y, qid, folds, alpha, weighting="pairs"), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize(
    ("tied", "beta", "weighted"), [(False, 0.0, False), (True, 0.0, False), (False, 0.0, True), (False, 0.4, True)]
)
def test_folds_of_small_leverage_are_exact_though_few_steps_are_taken(tied, beta, weighted):
    X, y, qid = problem(m=500, n=4, n_queries=90)
    u = weights(len(y)) if weighted else None
    got = held_out("linear", X, y, qid, tied_pairs=tied, regression=beta, sample_weight=u)
    folds = [np.flatnonzero(qid == q) for q in range(0, 90, 10)]
    rows = np.concatenate(folds)
    loss = {"tied": tied, "weighting": "items", "beta": beta, "u": u}
    for k, alpha in enumerate(ALPHAS):
        expected = oracles.refit_scores(X, y, qid, folds, alpha, **loss)[rows]
        assert_allclose(got[rows, k], expected, atol=1e-10 * np.abs(expected).max())


def test_one_query_of_high_leverage_among_many_of_small_leverage():
    X, y, qid = problem(m=300, n=5, n_queries=60)
    X[np.flatnonzero(qid == 7)[0]] *= 300
    got = held_out("linear", X, y, qid)
    folds = [np.flatnonzero(qid == q) for q in (6, 7, 8)]
    rows = np.concatenate(folds)
    for k, alpha in enumerate(ALPHAS):
        expected = oracles.refit_scores(X, y, qid, folds, alpha, tied=False, weighting="items")
        assert_allclose(got[rows, k], expected[rows], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], lambda X: X[::-1][::-1]]
)
def test_the_layout_of_the_rows_in_memory_changes_nothing(tied, shuffle, layout):
    X, y, qid = problem(m=200, n_queries=30, shuffle=shuffle)
    if not shuffle:
        qid = np.sort(qid)
    before = X.copy()
    plain, other = (RankRLS(tied_pairs=tied).fit(rows, y, qid=qid) for rows in (X, layout(X)))
    assert_allclose(other.cv_predictions_, plain.cv_predictions_, rtol=1e-9, atol=1e-12)
    assert_allclose(other.coef_, plain.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(X, before, rtol=0, atol=0)  # read, never written


def test_held_out_scores_in_single_precision():
    X, y, qid = problem(m=400, n_queries=60)
    alphas = np.array([0.3, 40.0])
    plain, single = (RankRLS(alphas=alphas).fit(X.astype(dtype), y, qid=qid) for dtype in (np.float64, np.float32))
    assert single.cv_predictions_.dtype == np.float32
    assert_allclose(single.cv_predictions_, plain.cv_predictions_, atol=1e-4 * np.abs(plain.cv_predictions_).max())


def test_long_queries_are_held_out_by_their_sums(monkeypatch):
    X, y, qid = problem(m=120, n_queries=4)
    expected = held_out("linear", X, y, qid)
    for module in ("queries", "preferences", "problems"):
        monkeypatch.setattr(f"rankrls.{module}.BATCH_ROWS", 8)
    assert_allclose(held_out("linear", X, y, qid), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_cv_scores_are_the_metric_of_the_held_out_scores(kind):
    X, y, qid = data(kind)
    extra = {"kernel": "rbf"} if kind == "kernel" else {}
    model = RankRLS(**extra).fit(X, y, qid=qid)
    assert model.alphas_.shape == model.cv_scores_.shape == (15,)
    best = np.argmax(model.cv_scores_)
    assert model.alpha_ == model.alphas_[np.flatnonzero(model.cv_scores_ == model.cv_scores_[best])].max()
    assert_allclose(model.cv_scores_.max(), oracles.pairwise_accuracy(y, model.cv_predictions_, qid))


def test_overlapping_splits_are_each_judged_on_their_own():
    X, y, qid = problem()
    splits = [(None, np.flatnonzero(np.isin(qid, q))) for q in ([0, 1, 2], [2, 3], [4, 5, 6])]
    model = RankRLS(alphas=[0.5], cv=splits).fit(X, y, qid=qid)
    scores = [RankRLS(alphas=[0.5], cv=[split]).fit(X, y, qid=qid).cv_scores_[0] for split in splits]
    assert_allclose(model.cv_scores_[0], np.mean(scores))


def test_rows_in_no_fold_have_no_held_out_score():
    X, y, qid = problem()
    fold = np.flatnonzero(qid == 2)
    model = RankRLS(alphas=[0.5], cv=[(None, fold)]).fit(X, y, qid=qid)
    assert np.isfinite(model.cv_predictions_[fold]).all()
    assert np.isnan(np.delete(model.cv_predictions_, fold)).all()
