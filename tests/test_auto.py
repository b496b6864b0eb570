"""AutoRanker: its parts against slow oracles, held-out judgement, and the contract of an estimator."""

import copy
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import norm, rankdata
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankrls import AutoRanker, ColumnMaps, PairScreen, RankRLS, cross_fit, export, kernels, load, save, stack_weights
from rankrls.auto.additive import AdditiveMap
from rankrls.auto.candidates import FINE_LIFT, MAKE, Common, Split, gauss, scores
from rankrls.auto.crossfit import RIDGES, Blend, CrossFit, CrossFitJudge, Folds, fit_on_all
from rankrls.auto.effort import EFFORTS
from rankrls.auto.elsewhere import DrawQueries
from rankrls.auto.fitting import FitPlan, dealt, judged, stable_pairs, stacked
from rankrls.auto.functions import EARLIER_PAIR_RAMPS, KNOTS, PAIR_RAMPS, Curves, Ramps
from rankrls.auto.kernelmap import JITTER, KernelMap
from rankrls.auto.link import Link, Linked, pieces
from rankrls.auto.rows import ALPHAS, AutoRows, Penalised, solve
from rankrls.auto.screen import best_pairs, pair_lift
from rankrls.auto.stack import stack
from rankrls.blocks.block import Block
from rankrls.cli import main
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.datasets import RankingData, dump_letor, make_search
from rankrls.estimators.ranking.learned_metric import gradients
from rankrls.metrics import get_metric
from rankrls.system.limits import limited

ORDER = "ranks within the query depend on all rows of it"
COPIES = "folds and basis points are drawn among rows, whatever they weigh"


def interactions(n_queries=60, n=8, documents=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * documents, n))
    signal = X[:, 0] * X[:, 1] + 2.0 * ((X[:, 2] > 0.5) & (X[:, 3] > 0))
    y = np.clip(np.round(signal + 0.3 * rng.normal(size=len(X))), 0, 4)
    return X, y, np.repeat(np.arange(n_queries), documents)


@pytest.fixture(scope="module")
def fitted():
    X, y, qid = interactions()
    return AutoRanker(effort="fast").fit(X, y, qid=qid), X, y, qid


# ---------------------------------------------------------------- columns


def test_column_scores_are_normal_scores_of_mid_ranks():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), rng.integers(0, 4, 40)]).astype(float)
    qid = rng.integers(0, 5, 40)
    maps = ColumnMaps().fit(X, qid=qid)
    expected = [norm.ppf((rankdata(column) - 0.5) / 40) for column in X.T]
    for column in X.T:
        score = np.empty(40)
        for q in np.unique(qid):
            score[qid == q] = norm.ppf((rankdata(column[qid == q]) - 0.5) / (qid == q).sum())
        expected.append(score)
    expected = np.stack(expected, axis=1)
    assert_allclose(maps.transform(X, qid=qid), expected / expected.std(axis=0), atol=1e-12)


def test_column_scores_do_not_depend_on_increasing_transforms():
    X, _, qid = interactions(10)
    a, b = (ColumnMaps().fit_transform(V, qid=qid) for V in (X, np.exp(X)))
    assert_allclose(a, b, atol=1e-9)


def test_missing_values_get_the_median_and_an_extra_column():
    X = np.array([[1.0, 5.0], [np.nan, 5.0], [3.0, 5.0], [2.0, 5.0]])
    maps = ColumnMaps(relative=False).fit(X)
    N = maps.transform(X)
    assert list(maps.get_feature_names_out()) == ["x0", "x0 missing"]
    assert N[1, 0] == 0 and N[1, 1] > 0 and not N[[0, 2, 3], 1].any()


def test_raw_columns_are_standardised_values_and_stay_finite():
    X = np.array([[1.0, 1e300], [np.nan, -1e300], [3.0, 0.0], [8.0, 2.0]])
    maps = ColumnMaps(relative=False, raw=True).fit(X)
    raw = maps.transform(X)[:, maps.n_scores_ :]
    assert list(maps.get_feature_names_out()[maps.n_scores_ :]) == ["raw x0", "raw x1"]
    assert raw[1, 0] == 0 and np.isfinite(raw).all()
    assert_allclose(raw[[0, 2, 3], 0], ([1, 3, 8] - np.mean([1, 3, 8])) / np.std([1, 3, 8]))
    assert_allclose(raw[:, 1], [np.sqrt(2), -np.sqrt(2), 0, 0], atol=1e-12)


# ---------------------------------------------------------------- parts against oracles


def test_distances_of_codes_equal_those_of_columns_at_whole_numbers():
    rng = np.random.default_rng(0)
    N, weights = rng.uniform(-3, 3, size=(40, 3)), np.array([1.0, 0.5, 2.0])
    near = KernelMap.of(N, weights, 10, cut=True, rng=np.random.default_rng(0))
    whole = KernelMap.of(np.round(N), weights, 10, cut=True, rng=np.random.default_rng(0))
    rows = np.random.default_rng(0).choice(40, 10, replace=False)
    exact = lambda A: np.abs(A[:, None] - A[rows]) @ weights
    assert_allclose(-whole.width * np.log(whole(np.round(N))), exact(np.round(N)), atol=1e-5)
    gap = exact(N) + near.width * np.log(near(N))
    assert gap.min() > -1e-5 and gap.max() < 2 * 0.25 * weights.sum()
    C = near.penalty()
    assert_allclose(C.T @ C - JITTER * np.eye(10), near(N[rows]), atol=1e-5)


def test_coefficients_minimise_the_penalised_loss():
    X, y, qid = interactions(12, documents=7)
    rows = AutoRows(X.astype(np.float32), y, Queries.of(qid), np.linspace(1, 2, len(y)))
    e = y - X[:, 0]
    assert_allclose(rows.gradient(e), rows.F.T @ (rows.F @ e), atol=1e-12)
    sums, C = rows.sums(rows.N), np.triu(np.random.default_rng(0).normal(size=(8, 8))) + 3 * np.eye(8)
    scale = np.array([1.0, 0.5, 0.0, 2.0, 1.0, 0.0, 1.0, 1.0])
    used = np.flatnonzero(scale)
    for penalty, kept, K in (
        (None, slice(None), np.eye(8)),
        (scale, used, np.diag(1 / scale[used] ** 2)),
        (C, slice(None), C.T @ C),
    ):
        unit = Penalised.of(sums, penalty).unit
        path = solve(sums, ALPHAS, penalty)
        for alpha, found in zip(ALPHAS, path.T, strict=True):
            gram, cross = sums.gram[kept][:, kept], sums.cross[kept, 0]
            assert_allclose(found[kept], np.linalg.solve(gram + alpha * unit * K, cross), rtol=1e-6, atol=1e-9)
            assert_allclose(solve(sums, alpha, penalty), found, rtol=1e-6, atol=1e-9)


def test_pair_lift_is_energy_over_its_mean_under_random_signs():
    rng = np.random.default_rng(0)
    Z, g = rng.normal(size=(30, 4, 2)), rng.normal(size=30)
    lift = pair_lift(Z, g, (Z**2).sum(axis=2))
    for i in range(4):
        for j in range(4):
            energy = sum((g * Z[:, i, a] * Z[:, j, b]).sum() ** 2 for a in range(2) for b in range(2))
            random = sum((g**2 * Z[:, i, a] ** 2 * Z[:, j, b] ** 2).sum() for a in range(2) for b in range(2))
            assert_allclose(lift[i, j], energy / random)


def test_best_pairs_have_different_sources():
    lift = np.array([[0, 9, 8, 3.0], [9, 0, 1, 7], [8, 1, 0, 1], [3, 7, 1, 0]])
    pairs, values = best_pairs(lift, np.array([0, 0, 1, 1]), 1)
    assert pairs.tolist() == [[0, 2]] and values.tolist() == [8.0]


def test_a_link_follows_grades_that_end_and_a_step_is_weighted_least_squares():
    rng = np.random.default_rng(0)
    qid, f = np.arange(40_000) // 20, rng.normal(size=40_000)
    rows = AutoRows(f[:, None].astype(np.float32), np.clip(3 * f + 2, 0, 4), Queries.of(qid))
    g = Link.between(f, rows)
    assert_allclose(pieces(f, g.knots).sum(axis=1), f - g.knots[0], atol=1e-12)
    assert (g.slopes > 0).all() and g.slopes[[0, -1]].max() < 0.3 and abs(g.slopes[8] - 3) < 0.2
    near = np.abs(f[:, None] - g.knots).min(axis=1) < 1e-5
    assert_allclose(((g(f + 1e-6) - g(f - 1e-6)) / 2e-6)[~near], g.slope(f)[~near], rtol=1e-6)
    for link in (g, Link(g.knots[:1], g.slopes[:2]), Link(g.knots[:0], g.slopes[:1])):
        assert_allclose(link(f), pieces(f, link.knots) @ link.slopes, atol=1e-12)

    rows = rows.part(np.arange(2000))
    features = AdditiveMap.of(rows.N, Curves.of(rows.N, 4), Ramps.of(rows.N, {}), [0], [])
    finer = AdditiveMap.of(rows.N, Curves.of(rows.N, 4), Ramps.of(rows.N, {0: KNOTS}), [], [], [0])
    coef = rng.normal(size=4)
    linked = Linked(features, coef, Link(np.array([-0.5, 0.5]), np.array([0.2, 1.0, 0.4])), finer)
    scores = features(rows.N) @ coef
    slope = linked.link.slope(scores)
    A = rows.F @ (slope[:, None] * finer(rows.N).astype(np.float64))
    z = rows.F @ (rows.y - linked.link(scores) + slope * scores)
    found = rows.sums_through(linked)
    assert_allclose(found.gram, A.T @ A, rtol=1e-4, atol=1e-3)
    assert_allclose(found.cross[:, 0], A.T @ z, rtol=1e-4, atol=1e-3)


def test_a_link_keeps_a_sum_a_sum_where_grades_end():
    X, _, qid = interactions(200)
    signal = X[:, 0] * X[:, 1] + X[:, 2]
    y = np.clip(np.round(2 * signal + 2), 0, 4)
    new = interactions(200, seed=1)[0]
    truth = new[:, 0] * new[:, 1] + new[:, 2]
    found = {}
    for name in ("adaptive", "link"):
        model = AutoRanker(candidates=[name], relative=False, effort="fast").fit(X, y, qid=qid)
        found[name] = np.corrcoef(np.argsort(np.argsort(model.predict(new))), np.argsort(np.argsort(truth)))[0, 1]
    assert found["link"] > found["adaptive"]


def test_the_ridge_of_a_stack_is_chosen_on_folds_left_out(fitted):
    model, X, y, qid = fitted
    plan = FitPlan.of("fast", None, "ndcg@10", 0, True)
    rows = AutoRows(model.columns_.scores(X, Queries.of(qid), np.float32), y, Queries.of(qid))
    folds = dealt(rows, plan, None)
    study = judged(rows, folds, model.columns_, get_metric("ndcg@10"), plan, 0)
    one = stacked(study, plan)
    blend = Blend.of(one, rows, study.judge)
    H = np.stack([c.honest for c in one], axis=1) / blend.deviation
    F = QueryPreferences(folds.groups, y, weighting="items")
    for f in range(3):
        fits = [stack(F.restrict(folds.others(f)), H[folds.others(f)], y[folds.others(f)], ridge) for ridge in RIDGES]
        choices = [H[folds.rows(f)] @ w for w in fits]
        assert any(np.allclose(blend.held[folds.rows(f)], scores) for scores in choices)


def test_the_stack_is_non_negative_ridge_regression_on_pairs():
    _, y, qid = interactions(8, documents=6)
    rng = np.random.default_rng(0)
    H = np.stack([y + rng.normal(size=len(y)), y + 1.2 * rng.normal(size=len(y)), -y], axis=1)
    queries = Queries.of(qid)
    weights = stack(QueryPreferences(queries, y, weighting="items"), H, y, ridge=0.05)
    S, c = np.zeros((3, 3)), np.zeros(3)
    for i in range(len(y)):
        for j in range(i):
            if qid[i] == qid[j] and y[i] != y[j]:
                d = H[i] - H[j]
                S, c = S + np.outer(d, d) / 6, c + d * (y[i] - y[j]) / 6
    assert weights[2] == 0 and (S @ weights - c)[2] > 0  # it would only make it worse
    kept, c = S[:2, :2], c[:2]
    shift, equal = 0.05 * np.trace(kept) / 2, c.sum() / kept.sum()
    assert_allclose(weights[:2], np.linalg.solve(kept + shift * np.eye(2), c + shift * equal))
    tied = stack(QueryPreferences(queries, y, weighting="items"), np.stack([y, y], axis=1), y)
    assert_allclose(tied, [0.5, 0.5])  # models that cannot be told apart have equal weights, and are not shrunk


def test_sums_of_a_split_are_those_of_its_training_rows():
    X, y, qid = interactions(12, documents=7)
    columns = ColumnMaps(raw=True).fit(X, qid=qid)
    rows = AutoRows(columns.transform(X, qid=qid).astype(np.float32), y, Queries.of(qid))
    folds = Folds.deal(rows.queries, 3, np.random.default_rng(0))
    common = Common(rows, columns, EFFORTS["fast"], 0, 50, [folds.rows(f) for f in range(3)])
    study = CrossFit(common, folds, CrossFitJudge(get_metric("ndcg@10"), y, folds))
    for split in study.splits:
        N = split.rows.N[:, :16]
        found, refitted = scores(split).sums, split.rows.sums(N)
        assert_allclose(found.gram, refitted.gram, rtol=1e-4, atol=1e-4 * np.abs(refitted.gram).max())
        assert found.n_pairs == refitted.n_pairs
        coef = RankRLS(ALPHAS[5] * Penalised.of(refitted).unit, weighting="items", tied_pairs=False, scale=None)
        coef = coef.fit(N.astype(float), split.rows.y, qid=split.rows.queries.codes).coef_
        assert_allclose(solve(found, ALPHAS[5]), coef, rtol=1e-3, atol=1e-4 * np.abs(coef).max())
        assert common.screen is not None
        main, refitted = common.main_sums[split.number], split.rows.sums(common.screen.main[split.places])
        assert_allclose(main.gram, refitted.gram, rtol=1e-4, atol=1e-4 * np.abs(refitted.gram).max())


def test_basis_points_to_judge_are_the_first_of_those_of_the_final_model():
    X, y, qid = interactions(30, documents=10)
    columns = ColumnMaps(raw=True).fit(X, qid=qid)
    rows = AutoRows(columns.transform(X, qid=qid).astype(np.float32), y, Queries.of(qid))
    folds = Folds.deal(rows.queries, 3, np.random.default_rng(0))
    common = Common(rows, columns, EFFORTS["normal"], 0, 20, [folds.rows(f) for f in range(3)], final_basis=50)
    for split in CrossFit(common, folds, CrossFitJudge(get_metric("ndcg@10"), y, folds)).splits:
        made, refitted = gauss(split), split.rows.sums(gauss(split).map)
        assert_allclose(made.sums.gram, refitted.gram, rtol=1e-4, atol=1e-4 * np.abs(refitted.gram).max())
        assert_allclose(split.left_out(made.map), made.map(rows.N[folds.rows(split.number)]), atol=1e-6)
    alone = Common(rows, columns, EFFORTS["normal"], 0, 50)
    again = Common(rows, columns, EFFORTS["normal"], 0, 50)
    again.reuse(common)
    direct, reused = (gauss(Split(one, rows)) for one in (alone, again))
    assert made.map.n_columns == 20 and reused is common.totals["gauss"]
    assert_array_equal(direct.map.points, reused.map.points)
    assert_array_equal(made.map.points, direct.map.points[:20])
    assert_allclose(direct.sums.gram, reused.sums.gram, rtol=1e-4, atol=1e-4 * np.abs(direct.sums.gram).max())


def test_the_final_model_takes_the_pairs_that_most_splits_found():
    X, y, qid = interactions(150)
    plan, columns = FitPlan.of("fast", None, "ndcg@10", 0, True), ColumnMaps(raw=True).fit(X, qid=qid)
    rows = AutoRows(columns.scores(X, Queries.of(qid), np.float32), y, Queries.of(qid))
    study = judged(rows, dealt(rows, plan, None), columns, get_metric("ndcg@10"), plan, 0)
    found = [set(map(tuple, split.made["additive"].map.pairs.tolist())) for split in study.splits]
    stable = stable_pairs(study)
    assert stable and stable.keys() == {pair for pair in set.union(*found) if sum(pair in some for some in found) > 1}
    for split in study.splits:  # ramps and steps only for pairs that chance cannot explain
        lift = dict(zip(map(tuple, split.made["additive"].map.pairs.tolist()), split.lifts, strict=True))
        fine = [lift[tuple(pair)] for pair in split.made["link"].map.fine_pairs.tolist()]
        assert fine and min(fine) > FINE_LIFT


def test_folds_are_made_of_queries_or_of_rows_if_queries_are_few():
    rng = np.random.default_rng(0)
    many = Folds.deal(Queries.of(np.repeat(np.arange(9), 4)), 3, rng)
    assert len(many) == 3 and all(len(np.unique(many.of_row[i : i + 4])) == 1 for i in range(0, 36, 4))
    one = Folds.deal(Queries.single(40), 3, rng)
    assert len(one) == 3 and sorted(np.bincount(one.of_row)) == [13, 13, 14] and len(one.groups) == 3


# ---------------------------------------------------------------- the estimator


def test_interactions_are_found_and_beat_a_linear_model(fitted):
    model, *_ = fitted
    X, y, qid = interactions(seed=1)
    linear = RankRLS(scoring="ndcg@10").fit(*fitted[1:3], qid=fitted[3])
    assert model.score(X, y, qid=qid) > linear.score(X, y, qid=qid) + 0.2
    assert {pair["columns"] for pair in model.interactions_[:2]} == {("x0", "x1"), ("x2", "x3")}
    assert model.interactions_[0]["strength"] > 10


def test_held_out_scores_match_scores_on_new_queries(fitted):
    model, X, y, qid = fitted
    new = interactions(200, seed=2)
    assert abs(model.cv_score_ - model.score(*new[:2], qid=new[2])) < 4 * model.cv_error_
    metric = get_metric("ndcg@10")
    assert_allclose(metric(y, model.cv_predictions_, qid), model.cv_score_)
    shuffled = np.random.default_rng(0).permutation(y)
    chance = metric(shuffled, np.random.default_rng(1).normal(size=len(y)), qid)
    noise = AutoRanker(effort="fast").fit(X, shuffled, qid=qid)
    assert noise.cv_score_ < chance + 4 * noise.cv_error_


def test_the_leaderboard_holds_every_candidate(fitted):
    board = fitted[0].leaderboard_
    assert board[0]["candidate"] in ("link", "adaptive")
    assert {entry["candidate"] for entry in board} == {"linear", "scores", "additive", "adaptive", "link"}
    assert {entry["candidate"] for entry in board if entry["weight"]} <= set(EFFORTS["fast"].candidates)
    assert_allclose(sum(entry["weight"] for entry in board), 1)
    assert all(entry["error"] > 0 and entry["size"] > 0 for entry in board)


def test_linear_signal_stays_linear():
    data, new = make_search(80, random_state=0), make_search(200, random_state=1)
    auto = AutoRanker(effort="fast").fit(data.X, data.y, qid=data.qid)
    plain = RankRLS().fit(data.X, data.y, qid=data.qid)
    quality = get_metric("ndcg@10")
    expected = quality(new.y, plain.predict(new.X), new.qid)
    assert quality(new.y, auto.predict(new.X, new.qid), new.qid) > expected - 0.02


def test_fits_are_deterministic_and_can_be_saved(fitted, tmp_path):
    model, X, y, qid = fitted
    again = clone(model).fit(X, y, qid=qid)
    assert_array_equal(again.predict(X, qid), model.predict(X, qid))
    save(model, tmp_path / "model.rankrls")
    same = load(tmp_path / "model.rankrls")
    assert_array_equal(same.predict(X, qid), model.predict(X, qid))
    assert same.leaderboard_ == model.leaderboard_
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X, qid), model.predict(X, qid))


def test_every_candidate_is_saved(tmp_path):
    X, y, qid = interactions(20, documents=10)
    model = AutoRanker().fit(X, y, qid=qid)
    save(model, tmp_path / "model.rankrls")
    assert_array_equal(load(tmp_path / "model.rankrls").predict(X, qid), model.predict(X, qid))
    assert {entry["candidate"] for entry in model.leaderboard_} >= set(EFFORTS["normal"].candidates)


def test_order_and_names_of_queries_do_not_matter(fitted):
    model, X, y, qid = fitted
    order = np.random.default_rng(0).permutation(len(y))
    names = np.array([f"q{q:03}" for q in qid])
    assert_allclose(model.predict(X[order], names[order]), model.predict(X, qid)[order], atol=1e-5)
    assert_array_equal(model.rank(X, qid)[:20].argsort()[:3], np.argsort(-model.predict(X, qid)[:20])[:3])


def test_without_ranks_in_the_query_rows_are_scored_independently():
    X, y, qid = interactions(20, documents=10)
    model = AutoRanker(effort="fast", relative=False).fit(X, y, qid=qid)
    assert_allclose(model.predict(X[:3]), model.predict(X, qid)[:3], atol=1e-5)


def test_parts_of_an_explanation_sum_to_the_difference(fitted):
    model, X, _, qid = fitted
    scores = model.predict(X[:20], qid[:20])
    for others in (X[2:20], X[:20]):  # with the two items among them or without
        shares = model.explain(X[0], X[1], others)
        assert shares.shape == (8,)
        assert_allclose(shares.sum(), scores[0] - scores[1], atol=1e-12)
    assert_allclose(model.explain(X[1], X[0], X[:20]), -shares, atol=1e-12)
    assert not model.explain(X[0], X[0], X[:20]).any()


def test_sparse_rows_get_a_linear_model():
    X, y, qid = interactions(20, documents=10)
    X[np.abs(X) < 1] = 0
    model = AutoRanker().fit(sparse.csr_array(X), y, qid=qid)
    assert [entry["candidate"] for entry in model.leaderboard_] == ["linear"]
    assert np.isfinite(model.predict(sparse.csr_array(X), qid)).all()


def test_an_interrupt_keeps_the_candidates_tried(monkeypatch):
    from rankrls.auto import candidates

    def stop(split):
        raise KeyboardInterrupt

    monkeypatch.setitem(candidates.MAKE, "scores", stop)
    X, y, qid = interactions(20, documents=10)
    with pytest.warns(UserWarning, match="interrupted.*linear"):
        model = AutoRanker(effort="fast").fit(X, y, qid=qid)
    assert [entry["candidate"] for entry in model.leaderboard_] == ["linear"]


def test_an_interrupt_of_the_final_fit_keeps_its_parts(monkeypatch):
    from rankrls.auto import fitting

    def stop(final, name, alpha):
        if name == "link":
            raise KeyboardInterrupt
        fit_on_all(final, name, alpha)

    monkeypatch.setattr(fitting, "fit_on_all", stop)
    X, y, qid = interactions(20, documents=10)
    with pytest.warns(UserWarning, match="final model leaves out link"):
        model = AutoRanker(effort="fast", candidates=["linear", "link"]).fit(X, y, qid=qid)
    names = [part.name for part in model.parts_]
    assert "adaptive" in names and "link" not in names  # the last step on the way to it stands in
    assert model.predict(X, qid).std() > 0


def test_a_step_is_in_the_stack_until_something_is_built_on_it(monkeypatch):
    from rankrls.auto import candidates

    def stop(split):
        raise KeyboardInterrupt

    X, y, qid = interactions(40, documents=10)
    whole = AutoRanker(effort="fast").fit(X, y, qid=qid)
    assert {part.name for part in whole.parts_} <= {"linear", "scores", "link"}
    monkeypatch.setitem(candidates.MAKE, "link", stop)
    with pytest.warns(UserWarning, match="interrupted"):
        model = AutoRanker(effort="fast").fit(X, y, qid=qid)
    assert "adaptive" in {part.name for part in model.parts_}
    assert "additive" not in {part.name for part in model.parts_}


def test_too_few_seconds_leave_the_linear_candidate():
    X, y, qid = interactions(20, documents=10)
    with pytest.warns(UserWarning, match="not enough to try scores"):
        model = AutoRanker(effort=1e-9).fit(X, y, qid=qid)
    assert [entry["candidate"] for entry in model.leaderboard_] == ["linear"]
    with pytest.raises(ValueError, match="seconds to spend and must be positive"):
        AutoRanker(effort=0).fit(X, y, qid=qid)


def test_rows_of_weight_zero_have_no_effect():
    X, y, qid = interactions(20, documents=10)
    weights = np.ones(len(y))
    weights[5] = 0
    model = AutoRanker(effort="fast").fit(X, y, qid=qid, sample_weight=weights)
    assert np.isnan(model.cv_predictions_[5]) and np.isfinite(np.delete(model.cv_predictions_, 5)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, qid: (X, y * 0, qid), "no comparable pair"),
        (lambda X, y, qid: (X * 0, y, qid), "all 8 columns are constant"),
        (lambda X, y, qid: (X, y * 1e100, qid), "largest label is [34]e[+]100.*divide"),
        (lambda X, y, qid: (np.where(X > 2, np.inf, X), y, qid), "infinity.*row .* of column"),
        (lambda X, y, qid: (X, y, np.arange(len(y))), "no comparable pair"),
    ],
)
def test_nothing_to_learn_from_is_an_error(change, message):
    with pytest.raises(ValueError, match=message):
        AutoRanker(effort="fast").fit(*change(*interactions(20, documents=10)))


def test_bad_parameters_are_named():
    X, y, qid = interactions(10, documents=5)
    with pytest.raises(ValueError, match="effort must be one of.*did you mean 'fast'"):
        AutoRanker(effort="fst").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="each of candidates"):
        AutoRanker(candidates=["lgbm"]).fit(X, y, qid=qid)


def test_the_number_of_columns_is_limited():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1500))
    model = AutoRanker(effort="fast").fit(X, np.clip(np.round(X[:, 0] + 1), 0, 4), qid=np.repeat(np.arange(20), 10))
    assert model.leaderboard_[0]["score"] > 0.5


def test_pairs_are_found_and_features_of_them_beat_a_linear_model():
    X, y, qid = interactions()
    new = interactions(seed=1)
    screen = PairScreen().fit(X, y, qid=qid)
    assert {tuple(pair) for pair in screen.pairs_[:2].tolist()} == {(0, 1), (2, 3)}
    assert (screen.strengths_[:2] > 10).all() and screen.strengths_[4:].max() < 10
    model = RankRLS(scoring="ndcg@10").fit(screen.transform(X), y, qid=qid)
    assert model.score(screen.transform(new[0]), new[1], qid=new[2]) > 0.7


@pytest.mark.parametrize("kernel", [kernels.Gaussian, kernels.Laplacian])
def test_weights_of_a_kernel_scale_columns(kernel):
    X, Z, w = (np.random.default_rng(i).normal(size=(5, 3)) for i in range(3))
    assert_allclose(kernel(0.3, weights=w[0])(X, Z), kernel(0.3)(X * w[0], Z * w[0]))
    with pytest.raises(ValueError, match="3 columns, got"):
        kernel(0.3, weights=[1.0])(X, Z)


@pytest.mark.parametrize("kernel", [kernels.Gaussian, kernels.Laplacian])
def test_a_learned_metric_finds_the_columns_that_matter(kernel, tmp_path):
    rng = np.random.default_rng(0)
    P, c, Z = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=(4, 3))
    k, h = kernel(0.3, weights=[1.0, 0.5, 2.0]), 1e-6
    slopes = [(k(Z + h * e, P) @ c - k(Z - h * e, P) @ c) / (2 * h) for e in np.eye(3)]
    assert_allclose(gradients(k, P, c, Z), np.stack(slopes, axis=1), atol=1e-8)
    X = rng.normal(size=(400, 6))
    y, qid = np.clip(np.round(X[:, 0] * X[:, 1] + 1), 0, 3), np.repeat(np.arange(20), 20)
    model = RankRLS(kernel=kernel(metric="learned"), basis=100, random_state=0).fit(X * [1, 9, 1, 1, 1, 1], y, qid=qid)
    weights = model.kernel_.kernel.weights
    assert weights[:2].min() > 2 * weights[2:].max() and model.kernel.metric == "learned"
    save(model, tmp_path / "model.rankrls")
    assert_array_equal(load(tmp_path / "model.rankrls").predict(X), model.predict(X))
    with pytest.raises(ValueError, match='metric must be None or "learned"'):
        RankRLS(kernel=kernel(metric="mahalanobis")).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="dense rows with one target"):
        RankRLS(kernel=kernel(metric="learned")).fit(sparse.csr_array(X), y, qid=qid)


def test_cross_fitting_equals_a_fit_for_each_fold_and_its_scores_stack():
    X, y, qid = interactions(12, documents=8)
    held = cross_fit(RankRLS(1.0), X, y, qid)
    folds = Folds.deal(Queries.of(qid), 3, np.random.default_rng(0))
    rest, fold = folds.others(1), folds.rows(1)
    assert_allclose(held[fold], RankRLS(1.0).fit(X[rest], y[rest], qid=qid[rest]).predict(X[fold]))
    weights = stack_weights(np.column_stack([held, 100 * y]), y, qid)
    assert_allclose(weights, [0, 0.01])
    with pytest.raises(ValueError, match="a column for each ranker"):
        stack_weights(held, y, qid)


def failures(estimator):
    found = {f"check_sample_weight_equivalence_on_{kind}_data": COPIES for kind in ("dense", "sparse")}
    return {**found, "check_methods_subset_invariance": ORDER} if getattr(estimator, "relative", False) else found


@parametrize_with_checks(
    [
        AutoRanker(effort="fast"),
        AutoRanker(effort="fast", relative=False),
        ColumnMaps(),
        ColumnMaps(relative=False),
        PairScreen(),
    ],
    expected_failed_checks=failures,
)
def test_common_checks(estimator, check):
    check(estimator)


def test_tables_with_text_and_missing_values(tmp_path):
    frames = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    brand, price = rng.choice(["a", "b", "c"], 400), rng.normal(size=400)
    X = frames.DataFrame(
        {"brand": brand, "price": np.where(rng.random(400) < 0.1, np.nan, price), "qid": np.arange(400) // 10}
    )
    y = (brand == "a") * 2.0 + (price > 0)
    model = AutoRanker(effort="fast").fit(X, y)
    assert model.score(X, y) > 0.9
    save(model, tmp_path / "model.rankrls")
    assert_array_equal(load(tmp_path / "model.rankrls").predict(X), model.predict(X))
    assert {effect["column"].split("=")[0].split(" in ")[0] for effect in model.feature_effects_} >= {"price", "brand"}


@pytest.mark.parametrize("relative", [True, False])
def test_onnx_scores_as_predict_does(relative):
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y, qid = interactions(20, documents=10)
    X[3, 2] = X[50:60, 4] = np.nan
    X[:, 5] = np.round(X[:, 5])  # ties
    model = AutoRanker(relative=relative, candidates=list(MAKE)).fit(X, y, qid=qid)
    new, _, query = interactions(5, documents=10, seed=1)
    new[4, 2], new[:, 5] = np.nan, np.round(new[:, 5])
    order = np.random.default_rng(0).permutation(len(new))
    feed = {"X": new[order], **({"qid": query[order]} if relative else {})}
    kinds = set()
    for part in model.parts_:
        one = copy.copy(model)
        one.parts_ = [part]
        kinds.add(type(part.map).__name__)
        session = onnxruntime.InferenceSession(export.to_onnx(one).SerializeToString())
        assert_allclose(session.run(None, feed)[0], one.predict(new, query)[order], atol=1e-10)
    assert len(kinds) > 1
    session = onnxruntime.InferenceSession(export.to_onnx(model).SerializeToString())
    if relative:  # one query
        alone = session.run(None, {"X": new[:10], "qid": np.zeros(1, dtype=np.int64)})[0]
        assert_allclose(alone, model.predict(new[:10]), atol=1e-10)


def test_onnx_graphs_hold_pairs_of_ramps():
    onnxruntime = pytest.importorskip("onnxruntime")
    X, qid = np.random.default_rng(0).normal(size=(2000, 3)), np.arange(2000) // 10
    y = ((X[:, 0] > 0.3) & (X[:, 1] > -0.2)).astype(float)
    model = AutoRanker(relative=False, candidates=["link"]).fit(X, y, qid=qid)
    assert any(len(part.map.fine_pairs) for part in model.parts_)
    session = onnxruntime.InferenceSession(export.to_onnx(model).SerializeToString())
    assert_allclose(session.run(None, {"X": X})[0], model.predict(X, qid), atol=1e-10)


def test_contributions_equal_sums_of_features_that_are_never_formed():
    N = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    ramps = Ramps.of(N, {1: KNOTS, 3: KNOTS + 0.1, 4: KNOTS})
    features = AdditiveMap.of(N, Curves.of(N, 5), ramps, [0, 2], [(0, 5), (2, 5)], [1, 3], [(3, 4)])
    coef = np.random.default_rng(1).normal(size=features.n_columns)
    N = N.astype(np.float64)
    expected = np.add.reduceat(features(N) * coef, features.starts, axis=1)
    assert_allclose(features.outputs(N, coef), expected, rtol=1e-9, atol=1e-9)
    assert_array_equal(features.used, np.arange(6))


def test_pairs_of_older_models_use_more_functions():
    N = np.random.default_rng(0).normal(size=(300, 6))
    ramps = Ramps.of(N, {3: KNOTS, 4: KNOTS})
    new = AdditiveMap.of(N, Curves.of(N, 5), ramps, [0], [], [1], [(3, 4)])
    size = len(EARLIER_PAIR_RAMPS) ** 2
    scale = np.random.default_rng(1).normal(size=new.n_columns - len(PAIR_RAMPS) ** 2 + size)
    old = replace(new, scale=scale)  # as it was saved
    A = ramps(N, np.array([3, 4]))[:, :, EARLIER_PAIR_RAMPS]
    product = np.einsum("mi,mj->mij", A[:, 0], A[:, 1]).reshape(len(N), -1)
    assert (old.sizes[-1], new.sizes[-1]) == (size, len(PAIR_RAMPS) ** 2)
    assert_allclose(old(N)[:, -size:], product * scale[-size:], rtol=1e-6, atol=1e-6)
    coef = np.random.default_rng(2).normal(size=old.n_columns)
    assert_allclose(old.scores(N, coef), old(N) @ coef, rtol=1e-6, atol=1e-6)


def test_features_kept_in_memory_change_nothing():
    X, y, qid = interactions(n_queries=40, n=5)
    fit = lambda: AutoRanker(effort="fast", candidates=["linear", "link"]).fit(X, y, qid=qid)
    kept = fit()
    with limited(kept_features=0):
        computed = fit()
    assert [i["columns"] for i in computed.interactions_] == [i["columns"] for i in kept.interactions_]
    assert_allclose(computed.predict(X, qid), kept.predict(X, qid), atol=1e-3)


def test_columns_that_no_part_uses_are_not_computed(fitted):
    model, X, _, qid = fitted
    queries = Queries.of(qid)
    whole = model.columns_.scores(X, queries, np.float64)
    assert_allclose(model.predict(X, qid), sum(part(whole) for part in model.parts_), rtol=1e-12)
    some = model.columns_.scores(X, queries, np.float64, np.array([1, 9]))
    assert_array_equal(some[:, [1, 9]], whole[:, [1, 9]])
    assert not some[:, [0, 2, 8, 10]].any()


def test_formats_of_weights_point_to_onnx(fitted):
    with pytest.raises(ValueError, match="use ONNX"):
        export.to_json(fitted[0])


# ---------------------------------------------------------------- rows elsewhere, pairs


def test_rows_elsewhere_give_the_same_model_as_rows_in_memory(fitted, tmp_path):
    pd = pytest.importorskip("pandas")
    model, X, y, qid = fitted
    dump_letor(RankingData(X, y, qid), tmp_path / "data.txt")
    with limited(table_rows=130):  # blocks end within queries
        read = AutoRanker(effort="fast").fit(tmp_path / "data.txt")
    assert_allclose(read.cv_score_, model.cv_score_)
    assert_allclose(read.predict(X, qid), model.predict(X, qid), atol=1e-4)
    assert not hasattr(read, "cv_predictions_") and read.n_queries_ == model.n_queries_

    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(y=y, qid=qid)
    mixed = frame.sample(frac=1, random_state=0)
    mixed.to_parquet(tmp_path / "data.parquet")
    with limited(table_rows=130):
        read = AutoRanker(effort="fast").fit(tmp_path / "data.parquet")
    expected = AutoRanker(effort="fast").fit(mixed, y="y", qid="qid")
    assert_allclose(read.predict(frame.drop(columns="y")), expected.predict(frame.drop(columns="y")), atol=1e-4)


def test_sums_use_all_rows_elsewhere_and_everything_else_a_sample(monkeypatch):
    X, y, qid = interactions(60, documents=10)
    small = replace(EFFORTS["fast"], cv_rows=100)
    monkeypatch.setitem(EFFORTS, "fast", small)

    def blocks():
        for i in range(0, 600, 150):
            yield X[i : i + 150], y[i : i + 150], qid[i : i + 150]

    model = AutoRanker(effort="fast", candidates=["linear"]).fit(blocks)
    assert model.n_queries_ == 60
    drawn = DrawQueries(200, 6, 0)
    sample = sum(
        (drawn(Block(*block[:1], block[1][:, None], block[2])) for block in blocks()),
        start=drawn(Block(X[:0], y[:0, None], qid[:0])),
    )
    assert len(sample.block) == 200 and (np.bincount(sample.block.qid)[np.unique(sample.block.qid)] == 10).all()
    N = model.columns_.transform(X, qid=qid).astype(np.float32)
    part, sums = model.parts_[0], AutoRows(N, y, Queries.of(qid)).sums(np.ascontiguousarray(N[:, 16:]))
    paths = np.stack([solve(sums, alpha) for alpha in ALPHAS])
    assert np.abs(paths - part.coef).max(axis=1).min() < 1e-4 * np.abs(part.coef).max()
    with pytest.raises(ValueError, match="read only once"):
        AutoRanker(effort="fast").fit(blocks())
    with pytest.raises(ValueError, match="only one"):
        AutoRanker(effort="fast").fit(lambda: iter([(X, y, np.zeros(len(y)))]))


def test_clusters_fit_and_predict_whole_queries(fitted):
    pd, dask = pytest.importorskip("pandas"), pytest.importorskip("dask")
    import dask.dataframe as dd

    from rankrls import distributed

    X, y, qid = interactions(30, documents=10)
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(y=y, qid=qid).sample(frac=1, random_state=0)
    rows = dd.from_pandas(frame, npartitions=3, sort=False)
    with dask.config.set(scheduler="synchronous"):
        model = distributed.dask.fit(AutoRanker(effort="fast"), rows)
        scores = distributed.dask.predict(model, rows, qid="qid").compute()
    expected = AutoRanker(effort="fast").fit(frame, y="y", qid="qid").predict(frame.drop(columns="y"))
    assert_allclose(scores.loc[frame.index], expected, atol=1e-4)
    with pytest.raises(ValueError, match=r"qid=, or fit with relative=False"):
        distributed.dask.predict(model, rows)


def test_a_pair_equals_a_query_of_two_rows():
    X, y, qid = interactions(30, documents=10)
    pairs = np.array([(i, j) for i in range(300) for j in range(i + 1, min(i + 4, 300)) if y[i] != y[j]])
    pairs = np.where((y[pairs[:, 0]] > y[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    margins = y[pairs[:, 0]] - y[pairs[:, 1]]
    model = AutoRanker(relative=False, candidates=["linear"])
    model.fit_pairs(X, pairs, margins, weights=np.full(len(pairs), 2.0))  # 2 / items of the query
    N = model.columns_.transform(X)[:, 8:]
    energy = ((N[pairs[:, 0]] - N[pairs[:, 1]]) ** 2).sum() / (2 * len(pairs))
    direct = [RankRLS(alpha * energy, scale=None).fit_pairs(N, pairs, margins).coef_ for alpha in ALPHAS]
    coef = model.parts_[0].coef
    assert np.abs(np.stack(direct) - coef).max(axis=1).min() < 1e-4 * np.abs(coef).max()
    found = AutoRanker(effort="fast").fit_pairs(X, pairs, qid=qid)
    assert {pair["columns"] for pair in found.interactions_[:1]} <= {("x0", "x1"), ("x2", "x3")}
    assert found.scoring_ == "pairwise_accuracy" and found.cv_score_ > 0.6
    with pytest.raises(ValueError, match="too few: pass at least 6"):
        AutoRanker().fit_pairs(X, pairs[:3])


@pytest.mark.parametrize("form", ["data.txt", "data.parquet"])
def test_command_line_learns_from_files_in_blocks(form, tmp_path, capsys):
    X, y, qid = interactions(20, documents=10)
    if form.endswith("parquet"):
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow", reason="needs rankrls[arrow]")
        pd.DataFrame(X, columns=list("abcdefgh")).assign(label=y, qid=qid).to_parquet(tmp_path / form)
    else:
        dump_letor(RankingData(X, y, qid), tmp_path / form)
    data, path = str(tmp_path / form), str(tmp_path / "model.rankrls")
    words = ["train", data, "-o", path, "--method", "auto", "--effort", "fast", "--stream", "--quiet"]
    with limited(table_rows=70):
        assert main(words) == 0
        expected = AutoRanker(effort="fast").fit(data, *(["label", "qid"] if form.endswith("parquet") else []))
    assert "read     200 rows, 20 queries, 8 features in blocks" in capsys.readouterr().out
    with warnings.catch_warnings(action="ignore"):  # X without names of columns
        assert_allclose(load(path).predict(X, qid), expected.predict(X, qid), rtol=1e-9)
    assert main([*words, "--checkpoint", str(tmp_path / "state.npz")]) == 2
    assert "--checkpoint cannot be combined with --method auto" in capsys.readouterr().err


def test_command_line(tmp_path, capsys):
    X, y, qid = interactions(20, documents=10)
    dump_letor(RankingData(X, y, qid), tmp_path / "data.txt")
    model, scores = str(tmp_path / "model.rankrls"), tmp_path / "scores.txt"
    assert (
        main(["train", str(tmp_path / "data.txt"), "-o", model, "--method", "auto", "--effort", "fast", "--quiet"]) == 0
    )
    assert "5 candidates tried" in capsys.readouterr().out
    assert main(["predict", model, str(tmp_path / "data.txt"), "-o", str(scores), "--quiet"]) == 0
    assert_allclose(np.loadtxt(scores), load(model).predict(X, qid), atol=1e-4)
    assert main(["cv", str(tmp_path / "data.txt"), "--method", "auto", "--effort", "fast", "--quiet"]) == 0
    assert "the stack" in capsys.readouterr().out
    onnx = str(tmp_path / "model.onnx")
    assert main(["export", model, "--to", "onnx", "-o", onnx]) == 0
    words = ["--method", "auto", "--effort", "1e-9", "--quiet"]
    assert main(["train", str(tmp_path / "data.txt"), "-o", model, *words]) == 0
    assert "not enough to try scores" in capsys.readouterr().err
