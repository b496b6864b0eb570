"""Exact hold-out: every score equals that of a model refitted without the fold."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.model_selection import GroupKFold

import oracles
from cases import problem, weights
from papers import RankRLS
from rankrls import metrics
from rankrls.core.features import Identity
from rankrls.core.fused import compiled_code
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.datasets import dump_letor, make_search
from rankrls.kernels import Gaussian
from rankrls.problems.base import HeldOutFold
from rankrls.problems.cut_query import CutQuery
from rankrls.problems.primal import Primal

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


def test_long_queries_are_held_out_by_their_sums():
    X, y, qid = problem(m=120, n_queries=4)
    long, short = (
        Primal(QueryPreferences(Queries.of(qid, batch_rows), y), Identity(X.shape[1]), X, y[:, None], np.float64)
        for batch_rows in (8, 2048)
    )
    assert_allclose(long.leave_out(None, ALPHAS), short.leave_out(None, ALPHAS), rtol=1e-8, atol=1e-10)


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


@pytest.mark.parametrize("cv", ["leave-query-out", 3])
@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_cv_errors_are_the_standard_errors_over_held_out_queries(kind, cv):
    X, y, qid = data(kind)
    extra = {"kernel": "rbf"} if kind == "kernel" else {}
    model = RankRLS(cv=cv, alphas=[0.01, 1.0, 100.0], scoring="ndcg", **extra).fit(X, y, qid=qid)
    for alpha, score, error in zip(model.alphas_, model.cv_scores_, model.cv_errors_, strict=True):
        held = RankRLS(cv=cv, alphas=[alpha], **extra).fit(X, y, qid=qid).cv_predictions_
        values = np.array([v for v in metrics.per_query("ndcg", y, held, qid) if not np.isnan(v)])
        assert_allclose([score, error], [values.mean(), values.std(ddof=1) / np.sqrt(len(values))])


def test_a_query_held_out_twice_counts_once_in_the_standard_error():
    X, y, qid = problem()
    splits = [np.flatnonzero(np.isin(qid, q)) for q in ([1, 2], [2, 3], [4, 5])]
    model = RankRLS(alphas=[0.5], cv=[(None, s) for s in splits]).fit(X, y, qid=qid)
    values = {}
    for split in splits:
        held = RankRLS(alphas=[0.5], cv=[(None, split)]).fit(X, y, qid=qid).cv_predictions_
        for q in np.unique(qid[split]):
            rows = qid == q
            if np.ptp(y[rows]) > 0:
                values.setdefault(q, []).append(oracles.pairwise_accuracy(y[rows], held[rows], qid[rows]))
    means = np.array([np.mean(v) for v in values.values()])
    assert_allclose(model.cv_errors_, means.std(ddof=1) / np.sqrt(len(means)))


def test_standard_errors_of_several_targets_and_of_items():
    X, y, qid = problem()
    Y = np.column_stack([y, -X[:, 0], X[:, 1]])
    model = RankRLS(tied_pairs=True, alphas=[0.5]).fit(X, Y, qid=qid)
    values = np.stack(
        [metrics.per_query("pairwise_accuracy", Y[:, t], model.cv_predictions_[:, t], qid) for t in range(3)], axis=1
    )
    means = np.array([np.nanmean(v) for v in values if not np.isnan(v).all()])
    assert_allclose(model.cv_errors_, means.std(ddof=1) / np.sqrt(len(means)))
    items = RankRLS(alphas=[0.5, 1.0], cv=5).fit(X, X[:, 0] + y)  # one query: over the folds of its items
    assert items.cv_errors_.shape == (2,) and np.isfinite(items.cv_errors_).all()


def test_functions_and_pairs_have_no_standard_errors():
    X, y, qid = problem()
    own = RankRLS(scoring=lambda y, s, q: float(np.corrcoef(y, s)[0, 1])).fit(X, y, qid=qid)
    pairs = RankRLS().fit_pairs(X, [[0, 1], [2, 3], [4, 5]])
    for model in (own, pairs):
        assert model.cv_errors_.shape == model.cv_scores_.shape and np.isnan(model.cv_errors_).all()
    assert not hasattr(own.set_params(alpha=1.0).fit(X, y, qid=qid), "cv_errors_")


# ---------------------------------------------------------------- the path of coefficients


@pytest.mark.parametrize("extra", [{}, {"regression": 0.5}, {"weighting": "pairs", "tied_pairs": True}], ids=str)
def test_the_path_of_coefficients_is_that_of_refits(extra):
    X, y, qid = problem()
    model = RankRLS(**extra).fit(X, y, qid=qid)
    alphas, coefs = model.coef_path()
    assert_array_equal(alphas, model.alphas_)
    for alpha, coef in zip(alphas[::4], coefs[::4], strict=True):
        assert_allclose(coef, RankRLS(alpha, **extra).fit(X, y, qid=qid).coef_, rtol=1e-7, atol=1e-9)
    one = RankRLS(2.0, **extra).fit(X, y)  # a single query, solved in another unit
    assert_allclose(one.coef_path([2.0, 3.0])[1], [one.coef_, RankRLS(3.0, **extra).fit(X, y).coef_])
    assert len(one.coef_path()[0]) == 15


def test_the_path_of_several_targets_and_of_models_without_sums():
    X, y, qid = problem()
    model = RankRLS(1.0, tied_pairs=True).fit(X, np.column_stack([y, -y]), qid=qid)
    assert_allclose(model.coef_path([1.0])[1][0], model.coef_)
    assert_allclose(model.coef_path([1.0, 2.0])[1].shape, (2, 2, X.shape[1]))
    with pytest.raises(ValueError, match="use dual_coef_path"):
        RankRLS(1.0, kernel="rbf").fit(X, y, qid=qid).coef_path()
    wide = np.hstack([X] * 9)
    alphas, coefs = RankRLS(1.0).fit(wide, y, qid=qid).coef_path()
    assert_allclose(coefs[3], RankRLS(alphas[3]).fit(wide, y, qid=qid).coef_, atol=1e-9)


def test_rows_read_in_blocks_have_the_same_standard_errors_and_path(tmp_path):
    data = make_search(30, random_state=0)
    dump_letor(data, tmp_path / "rows.txt")
    here, there = RankRLS().fit(data.X, data.y, qid=data.qid), RankRLS().fit(tmp_path / "rows.txt")
    assert_allclose(there.cv_errors_, here.cv_errors_, rtol=1e-6)
    assert_allclose(there.coef_path()[1], here.coef_path()[1], rtol=1e-6, atol=1e-9)


def test_scores_equal_up_to_rounding_go_to_the_most_regularised_setting():
    from rankrls.metrics import get_metric
    from rankrls.problems.choice import Judged, Setting, choose

    class Given:
        def __init__(self, scores, settings):
            self.scores, self.settings = np.array(scores), settings

        def judge(self, folds, metric):
            return Judged(self.settings, self.scores, np.zeros(len(self.scores)))

    alphas = [Setting(alpha=a) for a in (0.1, 1.0, 100.0)]
    sizes = [Setting(size=n) for n in (1, 2, 3)]
    metric = get_metric("ndcg")
    assert choose([Given([0.8, 0.8 - 1e-15, 0.7], alphas)], None, metric).setting.alpha == 1.0
    assert choose([Given([0.7, 0.8, 0.8 + 1e-15], sizes)], None, metric).setting.size == 2
    first, second = Given([0.8, 0.7, 0.7], alphas), Given([0.8 + 1e-15, 0.7, 0.7], alphas)
    assert choose([first, second], None, metric).candidate is first
    assert choose([first, Given([0.9, 0.7, 0.7], alphas)], None, get_metric("disagreement_error")).best == 2
    with pytest.raises(ValueError, match="'ndcg' returned NaN for 1 of 3 settings"):
        choose([Given([0.8, np.nan, 0.7], alphas)], None, metric)


@pytest.mark.parametrize(
    ("peak", "ends"), [(1e4, (0.1, 1e5)), (1e-3, (1e-4, 100)), (1.0, (0.1, 100)), (1e9, (0.1, 1e8))]
)
def test_a_grid_whose_best_alpha_is_at_its_end_is_extended_and_says_so(peak, ends):
    from rankrls.metrics import get_metric
    from rankrls.problems.choice import Judged, Setting, choose

    class Peaked:
        extends = True

        def judge(self, folds, metric, alphas=(0.1, 1.0, 10.0, 100.0)):
            scores = np.array([0.9 - 0.01 * abs(np.log10(a / peak)) for a in alphas])
            return Judged([Setting(alpha=float(a)) for a in alphas], scores, 0.01 + 0 * scores, scores[None, :, None])

    if peak == 1.0:
        found = choose([Peaked()], None, get_metric("ndcg"))
    else:
        with pytest.warns(
            UserWarning, match=r"best alpha was at the end of the grid \(0.1 to 1e\+02\), which was extended"
        ):
            found = choose([Peaked()], None, get_metric("ndcg"))
    assert_allclose((found.alphas[0], found.alphas[-1]), ends, rtol=1e-9)
    assert_allclose(found.setting.alpha, min(peak, 1e8), rtol=1e-9)
    assert np.all(np.diff(found.alphas) > 0) and found.predictions[0, 0] == found.scores.max()


def test_the_callers_grid_is_not_extended():
    X, y, qid = problem()
    assert_allclose(RankRLS(alphas=[1.0, 10.0]).fit(X, y, qid=qid).alphas_, [1.0, 10.0])
    data = make_search(30, random_state=0)
    ends = r"best alpha was at the end of the grid \(1e\+04 to 1e\+06\): pass a wider one as alphas="
    with pytest.warns(UserWarning, match=ends):
        RankRLS(alphas=[1e4, 1e6, 1e5]).fit(data.X, data.y, qid=data.qid)


def test_held_out_scores_at_chance_level_are_reported():
    rng = np.random.default_rng(1)
    X, qid = rng.normal(size=(300, 3)), np.repeat(np.arange(30), 10)
    for scoring in ("pairwise_accuracy", "ndcg@5"):
        with pytest.warns(UserWarning, match=f"nothing was learned: on held-out queries {scoring}"):
            RankRLS(scoring=scoring, alphas=[1.0, 100.0]).fit(X, rng.integers(3, size=300), qid=qid)


def test_a_small_component_of_pairs_does_not_decide_alpha():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 5)), rng.normal(size=(3, 5))])
    i, j = rng.integers(40, size=(2, 400))
    pairs = np.column_stack([i, j])[i != j]
    f = X @ [1, 1, 0, 0, 0] + 0.3 * rng.normal(size=43)
    pairs = np.where((f[pairs[:, 0]] > f[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    model = RankRLS().fit_pairs(X, np.vstack([pairs, [[41, 40], [42, 41]]]))
    linked = RankRLS(alphas=model.alphas_).fit_pairs(X, pairs)
    assert_allclose(model.cv_scores_, linked.cv_scores_, atol=0.02)
    assert model.cv_scores_.max() > 0.8


# ---------------------------------------------------------------- hard cases


@pytest.mark.filterwarnings("ignore:nothing was learned")
@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e-8])
@pytest.mark.parametrize(("regression", "one_query"), [(0.5, False), (0.0, True)])
def test_small_features_of_dual_fits_with_an_intercept(scale, regression, one_query):
    """Scaling X by s and alpha by s^2 changes no prediction."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 30)), rng.normal(size=12)
    qid = None if one_query else np.repeat(np.arange(4), 3)
    models = [
        RankRLS(alphas=[1e-2 * s**2], regression=regression, tied_pairs=True).fit(s * X, y, qid=qid)
        for s in (1.0, scale)
    ]
    assert_allclose(models[1].predict(scale * X), models[0].predict(X), rtol=1e-8, atol=1e-10)
    assert_allclose(models[1].cv_predictions_, models[0].cv_predictions_, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore:nothing was learned")
@pytest.mark.parametrize("kind", ["linear", "kernel"])
@pytest.mark.parametrize("weight", [1e7, 1e10])
def test_a_query_that_outweighs_the_rest_is_held_out_exactly(kind, weight):
    X, y, qid = problem(m=40, n_queries=5)
    u = np.where(qid == 2, weight, 1.0)
    kernel = None if kind == "linear" else "linear"
    model = RankRLS(alphas=[0.5], kernel=kernel, regression=0.3).fit(X, y, qid=qid, sample_weight=u)
    stay = qid != 2
    rest = RankRLS(0.5, regression=0.3).fit(X[stay], y[stay], qid=qid[stay])
    assert_allclose(model.cv_predictions_[~stay], rest.predict(X[~stay]), rtol=1e-8)


@pytest.mark.filterwarnings("ignore:nothing was learned", "ignore:the best alpha")
@pytest.mark.parametrize("kind", ["linear", "kernel", "basis"])
def test_equal_rows_have_equal_held_out_scores(kind):
    rng = np.random.default_rng(3)
    distinct = rng.normal(size=(60, 7))
    X, qid = np.repeat(distinct, 3, axis=0), np.repeat(np.arange(12), 15)
    y = rng.integers(0, 3, len(X)).astype(float)
    params = {"linear": {}, "kernel": {"kernel": "rbf"}, "basis": {"kernel": "rbf", "basis": 20, "random_state": 0}}
    held = RankRLS(**params[kind]).fit(X, y, qid=qid).cv_predictions_.reshape(-1, 3)
    assert (held == held[:, :1]).all()


@pytest.mark.filterwarnings("ignore:nothing was learned", "ignore:the best alpha")
@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_a_fold_that_leaves_nothing_to_learn_from_scores_a_constant(kind):
    rng = np.random.default_rng(4)
    X, y, qid = rng.normal(size=(20, 3)), rng.normal(size=20), np.repeat([0, 1], 10)
    X[qid == 1] = 0.7  # rows without variation: the model without query 0 knows nothing
    model = RankRLS(kernel=None if kind == "linear" else "linear").fit(X, y, qid=qid)
    held = model.cv_predictions_[qid == 0]
    assert np.ptp(held) == 0


@pytest.mark.parametrize("weighting", ["pairs", "queries", "items"])
@pytest.mark.parametrize(("beta", "weighted"), [(0.0, False), (0.0, True), (0.3, False), (0.3, True)])
def test_sums_without_items_of_one_query_come_from_moments_of_levels(weighting, beta, weighted):
    m, rng = 120, np.random.default_rng(0)
    X, y = rng.normal(size=(m, 4)) + 1000, rng.integers(0, 3, m).astype(float)
    y[:9] = rng.normal(size=9)  # items without ties
    u = weights(m) if weighted else None
    F = QueryPreferences(Queries.single(m), y, weighting=weighting, regression=beta, weights=u)
    problem = Primal(F, Identity(4), X, y[:, None], np.float64)
    number = rng.integers(0, 5, m)
    folds = [HeldOutFold(np.flatnonzero(number == k), whole=False) for k in range(4)]  # some rows are in no fold
    cut = CutQuery.of(F, problem._reader, problem.y, folds, problem.sums)
    for k, fold in enumerate(folds):
        got, expected = cut.without(k, fold), problem.restrict(fold.rest(m)).sums
        for name in ("gram", "cross", "square", "mean", "target_mean", "weight", "n_rows", "n_pairs"):
            assert_allclose(getattr(got, name), getattr(expected, name), rtol=1e-10, atol=1e-9, err_msg=name)


def _nothing_in_common(ids: bool, per: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with a column each, or columns that only one query has; their labels; their queries."""
    rng, n = np.random.default_rng(0), 120
    qid = np.repeat(np.arange(n // per), per)
    X = np.eye(n) if ids else np.zeros((n, 4 * (n // per)))
    if not ids:
        X[np.arange(n)[:, None], 4 * qid[:, None] + np.arange(4)] = rng.normal(size=(n, 4))
    return X, rng.normal(size=n) + 10 * qid, qid


@pytest.mark.filterwarnings("ignore")  # nothing was learned
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("make", [np.asarray, np.float32, sparse.csr_array])
@pytest.mark.parametrize(("ids", "per"), [(True, 3), (True, 10), (False, 10)])
def test_queries_with_nothing_in_common_tie_instead_of_being_ranked_by_rounding(ids, per, make, compiled):
    X, y, qid = _nothing_in_common(ids, per)
    with compiled_code(compiled):
        assert_array_equal(RankRLS().fit(make(X), y, qid).cv_scores_, 0.5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("options", [{}, {"cv": 5}, {"regression": 0.5}, {"weighting": "pairs"}])
def test_queries_with_nothing_in_common_tie_under_kernels(options, ids):
    X, y, qid = _nothing_in_common(ids, 10)
    assert_array_equal(RankRLS(kernel="precomputed", **options).fit(X @ X.T, y, qid).cv_scores_, 0.5)


@pytest.mark.filterwarnings("ignore")
def test_nothing_in_common_ties_under_signs_and_for_pairs_of_items():
    X, y, qid = _nothing_in_common(False, 10)
    assert_array_equal(RankRLS(positive=True).fit(np.abs(X), y, qid).cv_scores_, 0.5)
    for options in ({}, {"kernel": "precomputed"}):
        assert_array_equal(RankRLS(cv="leave-pair-out", **options).fit(np.eye(60), y[:60]).cv_scores_, 0.5)


@pytest.mark.filterwarnings("ignore")
def test_queries_with_nothing_in_common_tie_out_of_core(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, qid = _nothing_in_common(True, 10)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y, qid=qid)
    table.to_parquet(tmp_path / "rows.parquet")
    assert_array_equal(RankRLS().fit(str(tmp_path / "rows.parquet"), "y", "qid").cv_scores_, 0.5)
