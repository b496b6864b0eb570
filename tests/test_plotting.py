"""Displays draw what the estimators say."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import (
    AutoRanker,
    ConditionalRankRLS,
    CoRankRLS,
    RankingPursuit,
    RankRLS,
    TransductiveRankRLS,
    View,
    metrics,
    plotting,
)
from rankrls.datasets import make_search
from rankrls.plotting.display import Display

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402


@pytest.fixture(autouse=True)
def none_open():
    pyplot.close("all")  # what examples in docstrings left


@pytest.fixture(scope="module")
def train():
    return make_search(40, random_state=0)


@pytest.fixture(scope="module")
def test():
    return make_search(25, random_state=1)


@pytest.fixture(scope="module")
def ranker(train):
    return RankRLS(scoring="ndcg@10").fit(train.X, train.y, qid=train.qid)


def pursuit(data):
    return RankingPursuit(2, kernel=None).fit(data.X, data.y, qid=data.qid)


def axes():
    return Figure(layout="constrained").subplots()


def drawn(display):
    """Everything is laid out and painted without a warning."""
    display.figure_.canvas.draw()
    return display


# ---------------------------------------------------------------- paths


def test_trade_off_of_two_targets(test):
    Y = np.column_stack([test.y, -test.X[:, 0]])
    model = RankRLS(tied_pairs=True, alphas=[1.0]).fit(test.X, Y, qid=test.qid)
    display = plotting.TradeOffDisplay.from_estimator(
        model, test.X, Y, test.qid, names=["a", "b"], n_mixes=5, ax=axes()
    )
    scores = model.mix([0.75, 0.25]).predict(test.X)
    assert display.first[1] == pytest.approx(metrics.pairwise_accuracy(Y[:, 0], scores, test.qid))
    assert display.second[1] == pytest.approx(metrics.pairwise_accuracy(Y[:, 1], scores, test.qid))
    assert display.ax_.get_ylabel() == "pairwise_accuracy of b"
    with pytest.raises(ValueError, match="two targets"):
        plotting.TradeOffDisplay.from_predictions(test.y, scores, test.qid)
    with pytest.raises(ValueError, match="names must list two"):
        plotting.TradeOffDisplay.from_predictions(Y, Y, test.qid, names=["one"])


def test_the_curve_is_the_estimators_and_the_chosen_point_is_on_it(ranker):
    display = drawn(plotting.HoldOutDisplay.from_estimator(ranker, ax=axes()))
    assert_array_equal(display.line_.get_xdata(), ranker.alphas_)
    assert_array_equal(display.line_.get_ydata(), ranker.cv_scores_)
    assert display.chosen_.get_xdata() == [ranker.alpha_] and display.chosen_.get_ydata() == [ranker.cv_scores_.max()]
    corners = display.band_.get_paths()[0].vertices[:, 1]
    for edge in (ranker.cv_scores_ - ranker.cv_errors_, ranker.cv_scores_ + ranker.cv_errors_):
        assert np.isin(edge, corners).all()
    assert display.ax_.get_xscale() == "log" and display.ax_.get_ylabel() == "held-out ndcg@10"
    assert pyplot.get_fignums() == []


def test_curves_of_other_estimators(train):
    y = np.where(np.isin(train.qid, np.unique(train.qid)[:15]), train.y, np.nan)
    co = CoRankRLS(views=[View(slice(0, 6)), View(slice(6, 12))]).fit(train.X, y, qid=train.qid)
    display = drawn(plotting.HoldOutDisplay.from_estimator(co, ax=axes()))
    row = np.flatnonzero(co.nus_ == co.nu_)[0]
    assert_array_equal(display.line_.get_ydata(), co.cv_scores_[row])
    assert_array_equal(display.errors, co.cv_errors_[row])
    across = TransductiveRankRLS().fit(train.X, y, qid=train.qid)
    display = drawn(plotting.HoldOutDisplay.from_estimator(across, ax=axes()))
    assert_array_equal(display.line_.get_ydata(), across.inductive_.cv_scores_)
    relation = ConditionalRankRLS().fit(train.X[:20], train.X[:20] @ train.X[:20].T)
    display = drawn(plotting.HoldOutDisplay.from_estimator(relation, ax=axes()))
    assert_array_equal(display.line_.get_ydata(), relation.cv_scores_)
    assert display.band_ is None  # no standard errors: nothing is made up
    pipeline = make_pipeline(StandardScaler(), RankRLS())
    pipeline.fit(train.X, train.y, rankrls__qid=train.qid)
    display = drawn(plotting.HoldOutDisplay.from_estimator(pipeline, ax=axes()))
    assert_array_equal(display.line_.get_ydata(), pipeline[-1].cv_scores_)


def test_weights_over_alpha(ranker, train):
    names = list(train.feature_names)
    display = drawn(plotting.CoefficientPathDisplay.from_estimator(ranker, names=names, top=3, ax=axes()))
    alphas, coefs = ranker.coef_path()
    for line, coef in zip(display.lines_, coefs.T, strict=True):
        assert_array_equal(line.get_xdata(), alphas)
        assert_array_equal(line.get_ydata(), coef)
    assert set(display.features_) == set(np.argsort(-np.abs(ranker.coef_))[:3])
    assert coefs[0, display.features_].tolist() == sorted(coefs[0, display.features_], reverse=True)
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == [*(names[j] for j in display.features_), "9 others", f"alpha = {ranker.alpha_:.3g}"]
    fixed = RankRLS(alpha=1e12).fit(train.X, train.y, qid=train.qid)  # far outside any default grid
    far = plotting.CoefficientPathDisplay.from_estimator(fixed, ax=axes())
    assert far.alphas[-1] == 1e12 and far.names[0] == "f1"
    few = plotting.CoefficientPathDisplay.from_estimator(ranker, alphas=[1.0, 10.0], top=99, ax=axes())
    assert len(few.features_) == 12 and len(few.lines_[0].get_xdata()) == 2


def test_path_of_a_pursuit(train):
    model = RankingPursuit(kernel=None).fit(train.X, train.y, qid=train.qid)
    display = drawn(plotting.PursuitPathDisplay.from_estimator(model, names=train.feature_names, ax=axes()))
    assert_allclose(display.line_.get_ydata(), [1.0, *(model.path_.errors / model.path_.start)])
    assert_array_equal(display.line_.get_xdata(), np.arange(len(model.path_) + 1))
    assert_array_equal(display.score_line_.get_xdata(), np.arange(1, len(model.path_) + 1))
    assert_array_equal(display.score_line_.get_ydata(), model.path_.scores)
    assert np.isfinite(model.path_.score_errors).all()
    ticks = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert ticks[1] == f"1 {train.feature_names[model.path_.indices[0]]}"
    fixed = RankingPursuit(5, kernel="rbf").fit(train.X, train.y, qid=train.qid)
    display = drawn(plotting.PursuitPathDisplay.from_estimator(fixed, ax=axes()))
    assert display.score_line_ is None and len(display.line_.get_xdata()) == 6


# ---------------------------------------------------------------- comparisons


def test_metric_at_k_of_models_and_of_scores(ranker, train, test):
    models = {"all $": ranker, "_plain": RankRLS(1e9).fit(train.X, train.y, qid=train.qid)}
    display = drawn(plotting.MetricAtKDisplay.from_estimator(models, test.X, test.y, test.qid, ks=[1, 5], ax=axes()))
    for name, model in models.items():
        scores = model.predict(test.X)
        expected = [metrics.ndcg(test.y, scores, test.qid, k=k) for k in (1, 5)]
        assert_allclose(display.lines_[name].get_ydata(), expected)
        values = metrics.per_query("ndcg@5", test.y, scores, test.qid)
        assert_allclose(display.errors[name][1], metrics.standard_error(values))
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert len(legend) == 2 and legend[1].endswith("_plain")  # neither a formula nor hidden
    same = plotting.MetricAtKDisplay.from_predictions(
        test.y, ranker.predict(test.X), test.qid, metric="precision", ks=[3], ax=axes()
    )
    expected = metrics.precision(test.y, ranker.predict(test.X), test.qid, k=3)
    assert_allclose(same.lines_["scores"].get_ydata(), [expected])


@pytest.mark.parametrize("metric", ["ndcg@5", "disagreement_error"])
def test_wins_and_losses(metric, ranker, train, test):
    weak = RankRLS(1e9).fit(train.X[:, :2], train.y, qid=train.qid)
    a, b = weak.predict(test.X[:, :2]), ranker.predict(test.X)
    display = plotting.WinsLossesDisplay.from_predictions(
        test.y, a, b, test.qid, metric=metric, names=("weak", "strong"), ax=axes()
    )
    d = metrics.per_query(metric, test.y, b, test.qid) - metrics.per_query(metric, test.y, a, test.qid)
    d = d[~np.isnan(d)] * (-1 if metric == "disagreement_error" else 1)
    assert (display.n_wins_, display.n_losses_, display.n_ties_) == ((d > 0).sum(), (d < 0).sum(), (d == 0).sum())
    assert_allclose(drawn(display).sorted_, np.sort(d)[::-1])
    assert display.n_wins_ > display.n_losses_
    twins = plotting.WinsLossesDisplay.from_estimator(ranker, ranker, test.X, test.y, test.qid, ax=axes())
    assert twins.n_wins_ == twins.n_losses_ == 0 and twins.p == 1.0


def test_many_queries_are_few_points():
    display = plotting.WinsLossesDisplay(np.random.default_rng(0).normal(size=100_000)).plot(ax=axes())
    assert display.n_wins_ + display.n_losses_ == 100_000
    assert len(display.sorted_) == 400 and len(drawn(display).wins_.get_path().vertices) < 2000


# ---------------------------------------------------------------- relations, unscored rows


def test_heat_map_of_a_relation():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(12, 3)), np.array(list("bacbacbacbac"))
    Y = X @ X.T
    model = ConditionalRankRLS(1.0).fit(X, Y)
    Y[0, 3] = np.nan
    display = drawn(plotting.RelationDisplay.from_estimator(model, X, Y, groups=groups, ax=axes()))
    order = np.argsort(groups, kind="stable")
    assert_allclose(display.images_["ConditionalRankRLS"].get_array(), model.predict(X)[np.ix_(order, order)])
    assert_allclose(np.ma.filled(display.images_["truth"].get_array(), np.nan), Y[np.ix_(order, order)])
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["a", "b", "c"]
    ranks = drawn(plotting.RelationDisplay.from_predictions(Y, by="rank", ax=axes()))
    row = np.ma.filled(ranks.images_["scores"].get_array(), np.nan)[1]
    assert_allclose(row, np.argsort(np.argsort(Y[1])) / 11)
    known = sparse.coo_array(([1.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
    stored = plotting.RelationDisplay.from_predictions(known, ax=axes()).images_["scores"].get_array()
    assert_array_equal(np.ma.filled(stored, np.nan), [[np.nan, 1.0], [2.0, np.nan]])
    panels = Figure().subplots(1, 2)
    assert plotting.RelationDisplay.from_predictions({"a": Y, "b": Y}, ax=panels).axes_[1] is panels[1]
    turned = ConditionalRankRLS(1.0, condition="target").fit(X, np.nan_to_num(Y))
    by_target = plotting.RelationDisplay.from_estimator(turned, X, ax=axes())
    assert_allclose(by_target.images_["ConditionalRankRLS"].get_array(), turned.predict(X).T)


def test_quality_over_unscored_rows(train, test):
    y = np.where(np.isin(train.qid, np.unique(train.qid)[:10]), train.y, np.nan)
    model = CoRankRLS(1.0, 1.0, views=[View(slice(0, 6)), View(slice(6, 12))])
    n = int(np.isnan(y).sum())
    arguments = (train.X, y, train.qid, test.X, test.y, test.qid)
    display = plotting.UnscoredCurveDisplay.from_estimator(model, *arguments, sizes=[0, n // 2, n], ax=axes())
    assert not hasattr(model, "alpha_") and display.scores.shape == (3, 3)
    everything = CoRankRLS(1.0, 1.0, views=model.views).fit(train.X, y, qid=train.qid)
    expected = metrics.pairwise_accuracy(test.y, everything.predict(test.X), test.qid)
    assert_allclose(display.scores[-1], expected)
    scored = ~np.isnan(y)
    with pytest.warns(UserWarning, match="nothing to agree on"):
        alone = CoRankRLS(1.0, 1.0, views=model.views).fit(train.X[scored], y[scored], qid=train.qid[scored])
    assert_allclose(display.scores[0], metrics.pairwise_accuracy(test.y, alone.predict(test.X), test.qid))
    assert display.n_unscored[0] == 0 and 0.3 * n < display.n_unscored[1] <= n // 2 and display.n_unscored[2] == n
    values = metrics.per_query("pairwise_accuracy", test.y, everything.predict(test.X), test.qid)
    assert_allclose(display.errors[-1], metrics.standard_error(values))
    assert_allclose(drawn(display).line_.get_ydata(), display.scores.mean(axis=1))
    defaults = plotting.UnscoredCurveDisplay.from_estimator(model, *arguments, n_repeats=1, ax=axes())
    assert len(defaults.n_unscored) == 6
    drawn(defaults)


# ---------------------------------------------------------------- figures, errors


def test_effects_of_columns_and_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = np.clip(np.round(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 1), 0, 3)
    X[:, 2] = np.exp(3 * X[:, 2])
    model = AutoRanker(effort="fast", relative=False).fit(X, y, qid=np.repeat(np.arange(30), 20))
    display = drawn(plotting.EffectsDisplay.from_estimator(model, ["x2"], ax=axes()))
    effect = next(entry for entry in model.feature_effects_ if entry["column"] == "x2")
    assert_array_equal(display.lines_[0].get_ydata(), effect["effect"])
    assert display.ax_.get_xscale() == "log" and effect["effect"][-5] > effect["effect"][5]

    display = drawn(plotting.PairEffectsDisplay.from_estimator(model, [("x0", "x1")], ax=axes()))
    surface = display.images_[0].get_array()
    assert surface[-2, -2] > 0 and surface[1, 1] > 0 and surface[-2, 1] < 0 and surface[1, -2] < 0
    # the pair is what is left of the additive model when its single effects are taken off
    i, j = (values[[3, -4]] for values in display.pairs[0]["values"])
    corners = np.zeros((4, 4))
    corners[:, 0], corners[:, 1] = i[[0, 0, 1, 1]], j[[0, 1, 0, 1]]
    scores = model.additive_(model.columns_.transform(corners))
    square = np.asarray(display.pairs[0]["effect"])[np.ix_([3, -4], [3, -4])].ravel()
    assert_allclose(scores @ [1, -1, -1, 1], square @ [1, -1, -1, 1], rtol=1e-4)
    assert len(drawn(plotting.EffectsDisplay.from_estimator(model)).axes_) <= 6
    with pytest.raises(ValueError, match="no effect of 'price'"):
        plotting.EffectsDisplay.from_estimator(model, ["price"], ax=axes())
    with pytest.raises(TypeError, match="AutoRanker"):
        plotting.PairEffectsDisplay.from_estimator(RankRLS(1.0).fit(X, y), ax=axes())


def test_a_new_figure_is_made_only_if_none_is_given(ranker):
    display = plotting.HoldOutDisplay.from_estimator(ranker)
    assert pyplot.get_fignums() == [display.figure_.number]
    again = display.plot(ax=axes())
    assert again is display and len(pyplot.get_fignums()) == 1


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda r, t: plotting.HoldOutDisplay.from_estimator(RankRLS(1.0).fit(t.X, t.y)), "has no held-out scores"),
        (lambda r, t: plotting.CoefficientPathDisplay.from_estimator(r, names=["a"]), "12 features, got 1 names"),
        (lambda r, t: plotting.CoefficientPathDisplay.from_estimator(pursuit(t)), "no path of weights"),
        (lambda r, t: plotting.PursuitPathDisplay.from_estimator(r), "RankRLS has no path of sizes"),
        (lambda r, t: plotting.MetricAtKDisplay.from_predictions(t.y, {}), "at least one model"),
        (lambda r, t: plotting.MetricAtKDisplay.from_predictions(t.y, t.y, ks=[]), "ks is empty"),
        (lambda r, t: plotting.MetricAtKDisplay.from_predictions(0 * t.y, t.y), "ndcg is not defined"),
        (lambda r, t: plotting.WinsLossesDisplay.from_predictions(0 * t.y, t.y, t.y), "ndcg@10 is not defined"),
        (lambda r, t: plotting.RelationDisplay.from_estimator(r, t.X), "RankRLS has no relation to draw"),
        (lambda r, t: plotting.RelationDisplay.from_predictions(t.X, t.X.T), "must have one shape"),
        (lambda r, t: plotting.RelationDisplay.from_predictions(t.X, groups=[1]), "groups has 1 entries"),
        (lambda r, t: plotting.RelationDisplay.from_predictions(t.X, by="place"), "by must be"),
        (
            lambda r, t: plotting.UnscoredCurveDisplay.from_estimator(r, t.X, t.y, t.qid, t.X, t.y),
            "every row has a score",
        ),
    ],
)
def test_errors_say_what_is_wrong_and_leave_no_figure(draw, message, ranker, train):
    with pytest.raises(ValueError, match=message):
        draw(ranker, train)
    assert pyplot.get_fignums() == []


def test_without_matplotlib_the_error_names_the_extra(ranker, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'rankrls\[plot\]'"):
        plotting.HoldOutDisplay.from_estimator(ranker)


@pytest.mark.parametrize("name", plotting.__all__)
def test_every_display_draws_through_the_one_base(name):
    assert getattr(plotting, name).plot is Display.plot
