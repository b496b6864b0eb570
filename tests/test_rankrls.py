"""RankRLS as its users meet it: what it returns, what it counts, and its error messages."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold

from cases import problem
from papers import RankRLS
from rankrls import qid_from_group
from rankrls.datasets import make_search
from rankrls.kernels import Gaussian, Kernel, Laplacian, Polynomial

X, Y, QID = problem()


# ---------------------------------------------------------------- use


def test_defaults_choose_alpha_by_leave_query_out():
    data = make_search(60, random_state=0)
    model = RankRLS().fit(data.X, data.y, qid=data.qid)
    assert model.alpha_ in model.alphas_
    assert model.cv_predictions_.shape == data.y.shape
    assert model.n_queries_ == 60
    assert model.score(data.X, data.y, data.qid) > 0.75


def test_rank_is_one_based_within_each_query_in_the_callers_order():
    model = RankRLS(1.0).fit(X, Y, qid=QID)
    scores, ranks = model.predict(X), model.rank(X, QID)
    for q in np.unique(QID):
        rows = np.flatnonzero(q == QID)
        assert sorted(ranks[rows]) == list(range(1, len(rows) + 1))
        distinct = rows[[np.sum(scores[rows] == s) == 1 for s in scores[rows]]]
        assert_array_equal(ranks[distinct], [1 + np.sum(scores[rows] > s) for s in scores[distinct]])


def test_explain_sums_to_the_difference_of_scores():
    model = RankRLS(1.0).fit(X, Y, qid=QID)
    a, b = model.predict(X[:2])
    assert_allclose(model.explain(X[0], X[1]).sum(), a - b)


def test_tied_pairs_auto_takes_the_better_of_both():
    models = [RankRLS(tied_pairs=tied).fit(X, Y, qid=QID) for tied in (True, False)]
    auto = RankRLS(tied_pairs="auto").fit(X, Y, qid=QID)
    best = max(models, key=lambda m: m.cv_scores_.max())
    assert auto.tied_pairs_ == best.tied_pairs_
    assert_allclose(auto.coef_, best.coef_)
    assert RankRLS(1.0, tied_pairs="auto").fit(X, Y, qid=QID).alpha_ == 1.0


@pytest.mark.parametrize("scoring", ["ndcg@10", "average_precision", "kendall_tau_b", "disagreement_error"])
def test_scoring_by_name(scoring):
    model = RankRLS(scoring=scoring).fit(X, Y, qid=QID)
    best = np.argmin(model.cv_scores_) if scoring == "disagreement_error" else np.argmax(model.cv_scores_)
    assert model.cv_scores_[best] == model.cv_scores_[model.alphas_ == model.alpha_][0]


def test_scoring_by_a_function():
    calls = []

    def first_is_relevant(y, scores, qid):
        calls.append(len(y))
        return float(np.mean([y[qid == q][np.argmax(scores[qid == q])] > 0 for q in np.unique(qid)]))

    model = RankRLS(scoring=first_is_relevant).fit(X, Y, qid=QID)
    assert calls == [40] * 15
    assert 0 <= model.score(X, Y, QID) <= 1


def test_one_query_chooses_by_folds_of_its_items():
    model = RankRLS().fit(X, Y)
    assert model.n_queries_ == 1
    assert np.isfinite(model.cv_scores_).all() and np.isfinite(model.cv_predictions_).all()
    assert 0 <= model.score(X, Y) <= 1
    for cv in (3, KFold(4)):
        assert np.isfinite(RankRLS(cv=cv, kernel="rbf").fit(X, Y).cv_scores_).all()


def test_counts_of_queries_and_pairs():
    y, qid = np.array([0.0, 0, 1, 5, 5, 7]), list("aaabbc")
    features = np.arange(6.0)[:, None] ** 2
    assert RankRLS(1.0, tied_pairs=True).fit(features, y, qid=qid).n_pairs_ == 4
    model = RankRLS(1.0, tied_pairs=False).fit(features, y, qid=qid)
    assert (model.n_pairs_, model.n_queries_) == (2, 3)


def test_real_and_negative_labels():
    y = np.random.default_rng(0).normal(size=40)
    assert np.isfinite(RankRLS().fit(X, y, qid=QID).coef_).all()


def test_group_sizes_become_query_ids():
    assert_array_equal(qid_from_group([2, 0, 1]), [0, 0, 2])
    with pytest.raises(ValueError, match="qid_from_group"):
        RankRLS().fit(X, Y, qid=[10, 30])


def test_rows_of_weight_zero_are_as_if_not_given():
    u = np.ones(40)
    u[::5] = 0
    keep = u > 0
    for params in ({}, {"kernel": Gaussian(0.1)}, {"cv": 3}, {"regression": 0.5}):
        weighted = RankRLS(**params).fit(X, Y, qid=QID, sample_weight=u)
        removed = RankRLS(**params).fit(X[keep], Y[keep], qid=QID[keep])
        assert_allclose(weighted.predict(X), removed.predict(X), atol=1e-9)
        assert_allclose(weighted.cv_predictions_[keep], removed.cv_predictions_, atol=1e-9)
        assert np.isnan(weighted.cv_predictions_[~keep]).all()
    K = Gaussian(0.1)(X, X)
    dropped = RankRLS(1.0, kernel="precomputed").fit(K, Y, qid=QID, sample_weight=u)
    assert_allclose(
        dropped.predict(K), RankRLS(1.0, kernel=Gaussian(0.1)).fit(X[keep], Y[keep], qid=QID[keep]).predict(X)
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "cosine", Polynomial(2, 0.5), Laplacian(0.1)])
def test_kernels(kernel):
    model = RankRLS(kernel=kernel).fit(X, Y, qid=QID)
    assert isinstance(model.kernel_, Kernel)
    assert model.dual_coef_.shape == (40,)
    assert np.isfinite(model.predict(X)).all()
    sparse_model = RankRLS(1.0, kernel="rbf", basis=10, random_state=0).fit(X, Y, qid=QID)
    assert sparse_model.dual_coef_.shape == (10,)


def test_basis_by_number_rows_or_points():
    by_rows = RankRLS(1.0, kernel=Gaussian(0.1), basis=[3, 5, 7]).fit(X, Y, qid=QID)
    by_points = RankRLS(1.0, kernel=Gaussian(0.1), basis=X[[3, 5, 7]]).fit(X, Y, qid=QID)
    assert_allclose(by_rows.predict(X), by_points.predict(X))
    drawn = [RankRLS(1.0, kernel="rbf", basis=9, random_state=1).fit(X, Y, qid=QID).predict(X) for _ in range(2)]
    assert_array_equal(*drawn)


def test_partial_fit_chooses_on_the_first_call_and_keeps_it():
    first, second = QID < 4, QID >= 4
    model = RankRLS(tied_pairs="auto").partial_fit(X[first], Y[first], qid=QID[first])
    alpha = model.alpha_
    model.partial_fit(X[second], Y[second], qid=QID[second])
    assert model.alpha_ == alpha
    expected = RankRLS(alpha, tied_pairs=model.tied_pairs_).fit(X, Y, qid=QID)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    assert (model.n_queries_, model.n_pairs_) == (expected.n_queries_, expected.n_pairs_)


def test_partial_fit_goes_on_from_fit():
    first, second = QID < 4, QID >= 4
    for params in ({}, {"kernel": Gaussian(0.1), "basis": X[:8]}, {"regression": 0.3}):
        model = RankRLS(0.5, **params).fit(X[first], Y[first], qid=QID[first])
        model.partial_fit(X[second], Y[second], qid=QID[second])
        assert_allclose(model.predict(X), RankRLS(0.5, **params).fit(X, Y, qid=QID).predict(X), atol=1e-9)


def test_one_query_at_a_time():
    for beta in (0.0, 0.4):
        model = RankRLS(0.5, regression=beta).fit(X[QID == 2], Y[QID == 2])
        for q in (0, 1, 3, 4, 5, 6):
            model.partial_fit(X[q == QID], Y[q == QID])
        whole = RankRLS(0.5, regression=beta).fit(X, Y, qid=QID)
        assert_allclose(model.predict(X), whole.predict(X), atol=1e-9)


def test_forgetting_unknown_queries_is_refused():
    model = RankRLS(0.5).fit(X[:20], Y[:20], qid=QID[:20])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="never learned.*unchanged"):
        model.forget(100 * X[20:], Y[20:], qid=QID[20:])
    assert_array_equal(model.coef_, before)


# ---------------------------------------------------------------- what is refused, and how

BAD = {
    "NaN in X": (lambda: RankRLS().fit(np.where(X > 1, np.nan, X), Y, qid=QID), "contains NaN"),
    "infinity in X": (lambda: RankRLS().fit(np.where(X > 1, np.inf, X), Y, qid=QID), "infinity"),
    "NaN in y": (lambda: RankRLS().fit(X, np.where(Y > 1, np.nan, Y), qid=QID), "y contains NaN"),
    "y too short": (lambda: RankRLS().fit(X, Y[:-1], qid=QID), "inconsistent numbers of samples"),
    "qid too short": (lambda: RankRLS().fit(X, Y, qid=QID[:-1]), r"one query id per row.*\(39,\) for 40 rows"),
    "empty": (lambda: RankRLS().fit(np.empty((0, 3)), np.empty(0)), "0 sample"),
    "qid missing": (lambda: RankRLS().fit(X, Y, qid=[None, *QID[1:]]), "1 missing values, the first at row 0"),
    "qid NaN": (lambda: RankRLS().fit(X, Y, qid=np.where(QID == 2, np.nan, QID)), "missing values"),
    "no pair": (lambda: RankRLS().fit(X, Y, qid=np.arange(40)), "no comparable pair: none of the 40 queries"),
    "all tied": (lambda: RankRLS().fit(X, np.ones(40), qid=QID), "no comparable pair"),
    "alpha zero": (lambda: RankRLS(0, kernel="rbf").fit(X, Y, qid=QID), "use an alpha above zero, or a basis"),
    "alpha negative": (lambda: RankRLS(-1.0).fit(X, Y, qid=QID), "got -1.0"),
    "alpha name": (lambda: RankRLS("outo").fit(X, Y, qid=QID), "did you mean 'auto'"),
    "alphas negative": (
        lambda: RankRLS(alphas=[1, -1]).fit(X, Y, qid=QID),
        "each of alphas must be a finite number, zero or positive.*got -1",
    ),
    "alphas empty": (lambda: RankRLS(alphas=[]).fit(X, Y, qid=QID), "alphas is empty"),
    "scoring": (lambda: RankRLS(scoring="ndgc@10").fit(X, Y, qid=QID), "ndcg"),
    "kernel": (lambda: RankRLS(kernel="rfb").fit(X, Y, qid=QID), "did you mean 'rbf'.*linear, rbf"),
    "weighting": (lambda: RankRLS(weighting="query").fit(X, Y, qid=QID), "'pairs', 'queries', 'items'.*did you mean"),
    "tied_pairs": (
        lambda: RankRLS(tied_pairs="no").fit(X, Y, qid=QID),
        "tied_pairs must be one of True, False, 'auto'",
    ),
    "regression": (lambda: RankRLS(regression=1.5).fit(X, Y, qid=QID), "between 0 and 1, got 1.5"),
    "cv name": (lambda: RankRLS(cv="loo").fit(X, Y, qid=QID), "leave-query-out"),
    "cv number": (lambda: RankRLS(cv=99).fit(X, Y, qid=QID), "cv=99 folds cannot be made from 7 queries"),
    "cv cuts": (
        lambda: RankRLS(cv=list(KFold(3).split(X))).fit(X, Y, qid=QID),
        "cuts query.*whole queries.*GroupKFold",
    ),
    "weights": (lambda: RankRLS().fit(X, Y, qid=QID, sample_weight=-np.ones(40)), "not be negative: row 0"),
    "weights zero": (lambda: RankRLS().fit(X, Y, qid=QID, sample_weight=np.zeros(40)), "zero for every row"),
    "thin weights": (
        lambda: RankRLS(weighting="queries", tied_pairs=True).fit(X, Y, qid=QID, sample_weight=np.full(40, 1e-3)),
        'counts copies.*weighting="items"',
    ),
    "targets": (
        lambda: RankRLS(tied_pairs=False).fit(X, np.column_stack([Y, Y]), qid=QID),
        "2 columns.*tied_pairs=True",
    ),
    "basis alone": (lambda: RankRLS(basis=3).fit(X, Y, qid=QID), "basis needs a kernel"),
    "no basis": (lambda: RankRLS(kernel="rbf", basis=0).fit(X, Y, qid=QID), "at least one point"),
    "basis shape": (lambda: RankRLS(kernel="rbf", basis=np.ones((3, 2))).fit(X, Y, qid=QID), "points with 6 features"),
    "kernel not square": (lambda: RankRLS(kernel="precomputed").fit(X, Y, qid=QID), "must be square"),
    "kernel not symmetric": (
        lambda: RankRLS(kernel="precomputed").fit(np.triu(np.ones((40, 40))), Y, qid=QID),
        r"not symmetric: K\[\d+, \d+\]",
    ),
    "kernel indefinite": (
        lambda: RankRLS(kernel="precomputed").fit(-np.eye(40), Y, qid=QID),
        "not positive semi-definite",
    ),
    "kernel indefinite, one alpha": (
        lambda: RankRLS(0.1, kernel="precomputed").fit(-np.eye(40), Y, qid=QID),
        "not positive semi-definite",
    ),
    "kernel function": (lambda: RankRLS(kernel=lambda A, B: A).fit(X, Y, qid=QID), "must return the"),
    "pairs shape": (lambda: RankRLS(1.0).fit_pairs(X, [1, 2, 3]), r"\(p, 2\) array"),
    "pairs range": (lambda: RankRLS(1.0).fit_pairs(X, [[0, 40]]), "pair 0 is .0, 40., but X has rows 0 to 39"),
    "pairs type": (lambda: RankRLS(1.0).fit_pairs(X, [[0.5, 1.0]]), "row numbers"),
    "margins": (
        lambda: RankRLS(1.0).fit_pairs(X, [[0, 1]], margins=[1.0, 2.0]),
        "margins must hold one number per pair",
    ),
    "features": (lambda: RankRLS(1.0).fit(X, Y, qid=QID).predict(X[:, :3]), "expecting 6 features"),
    "explain shape": (lambda: RankRLS(1.0).fit(X, Y, qid=QID).explain(X[0], X[1, :2]), "6 features, got 2"),
    "score y": (lambda: RankRLS(1.0).fit(X, Y, qid=QID).score(X, Y[:-1], QID), "y must hold one number per row"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_with_a_remedy(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("value", "words"), [(np.nan, "contains NaN"), (-np.inf, "infinity")])
@pytest.mark.parametrize("cell", [(0, 0), (524, 1500), (-1, -1)])
def test_one_bad_cell_of_a_million_is_found(order, value, words, cell):
    many = np.zeros((525, 2001), order=order)
    many[cell] = value
    with pytest.raises(ValueError, match=words):
        RankRLS(1.0).fit(many, np.arange(525), qid=np.arange(525) // 25)


def test_misspelt_parameters_are_refused():
    with pytest.raises(TypeError, match="aplha"):
        RankRLS(aplha=1.0)


def test_mixed_query_labels():
    with pytest.raises(TypeError, match="convert it to strings"):
        RankRLS().fit(X, Y, qid=np.array([1, "a"] * 20, dtype=object))


def test_too_large_a_kernel_is_refused_before_it_is_allocated(limit):
    limit(free_memory=1000.0)
    with pytest.raises(MemoryError, match="40 training rows needs about .* GiB.*basis="):
        RankRLS(kernel="rbf").fit(X, Y, qid=QID)


def test_laplacian_of_sparse_rows_is_refused():
    with pytest.raises(TypeError, match="needs dense rows"):
        RankRLS(kernel="laplacian").fit(sparse.csr_array(X), Y, qid=QID)


def test_a_failed_fit_leaves_the_old_model_usable():
    model = RankRLS(1.0).fit(X, Y, qid=QID)
    before = model.predict(X)
    with pytest.raises(ValueError, match="no comparable pair"):
        model.fit(X, Y, qid=np.arange(40))
    assert_array_equal(model.predict(X), before)


def test_use_before_fit():
    for call in (lambda m: m.predict(X), lambda m: m.score(X, Y), lambda m: m.explain(X[0], X[1])):
        with pytest.raises(NotFittedError):
            call(RankRLS())


def test_dual_models_cannot_be_added_to():
    with pytest.raises(AttributeError) as error:
        _ = RankRLS(kernel="rbf").fit(X, Y, qid=QID).partial_fit
    assert "basis=" in str(error.value.__cause__)
    assert not hasattr(RankRLS(1.0).fit(X[:4], Y[:4], qid=[0, 0, 1, 1]), "forget")


def test_group_splitter_with_string_queries():
    names = np.array([f"query {q}" for q in QID])
    assert np.isfinite(RankRLS(cv=GroupKFold(3)).fit(X, Y, qid=names).cv_scores_).all()
