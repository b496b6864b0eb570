"""Clicks: logs, propensities, judgments, and rankers that correct for positions."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oracles
from rankrls import RankRLS, clicks, datasets, load, metrics, save
from shared import unpacked

data = datasets.make_search(80, random_state=0)


def log_of(**options):
    return clicks.simulate(data.y, data.qid, scores=-data.X[:, 0], random_state=0, **options)


def test_logs_of_any_library_add_up():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = {"query": ["b", "a", "a", "a"], "document": [1, 2, 2, 3], "position": [1, 1, 1, 2], "clicked": [0, 1, 0, 1]}
    counted = {"q": ["a", "a", "b"], "d": [2, 3, 1], "rank": [1, 2, 1], "c": [1, 1, 0], "n": [2, 1, 1]}
    names = {"query": "q", "document": "d", "position": "rank", "clicked": "c", "impressions": "n"}
    expected = clicks.ClickLog.of(rows)
    records = pd.DataFrame(rows).to_dict("records")
    tables = clicks.ClickLog.of(pd.DataFrame(rows)), clicks.ClickLog.of(pl.DataFrame(counted), **names)
    for log in (*tables, clicks.ClickLog.of(records)):
        for name in ("query", "document", "position", "clicks", "impressions"):
            assert_array_equal(getattr(log, name), getattr(expected, name))
    assert_array_equal(expected.impressions, [2, 1, 1])


def test_the_simulator_follows_its_models():
    y, qid = np.tile([2.0, 0.0, 1.0], 4000), np.repeat(np.arange(4000), 3)
    shown = np.tile([3.0, 2.0, 1.0], 4000)
    log = clicks.simulate(y, qid, scores=shown, sessions=1, noise=0.1, random_state=0)
    rates = [log.rate[log.position == k].mean() for k in (1, 2, 3)]
    assert_allclose(rates, [1.0, 0.1 / 2, (0.1 + 0.9 / 3) / 3], atol=0.02)
    log = clicks.simulate(y, qid, scores=-shown, sessions=1, noise=0.1, eta=0.0, model="cascade", random_state=0)
    rates = [log.rate[log.position == k].mean() for k in (1, 2, 3)]
    assert_allclose(rates, [0.4, 0.6 * 0.1, 0.6 * 0.9], atol=0.02)
    again = clicks.simulate(y, qid, scores=shown, sessions=1, noise=0.1, random_state=0)
    assert_array_equal(again.clicks, clicks.simulate(y, qid, scores=shown, sessions=1, random_state=0).clicks)


def test_propensities_from_swaps():
    log = log_of(sessions=300, swaps=0.5, eta=1.0)
    assert_allclose(clicks.propensities(log)[:6], 1 / np.arange(1, 7), atol=0.1)
    small = clicks.simulate([1, 0, 1, 0], [0, 0, 1, 1], sessions=200, swaps=0.5, noise=0.3, random_state=0)
    assert_allclose(clicks.propensities(small), oracles.poisson_propensities(small), rtol=1e-4)
    with pytest.raises(ValueError, match="no clicked document of a query was shown at two positions"):
        clicks.propensities(log_of())


def test_positions_drop_out_exactly():
    """The scores are those of the features in a fit on features and positions."""
    log = log_of()
    model = clicks.ClickRanker(RankRLS(2.0)).fit(data.X, log, qid=data.qid)
    rows = log.document.astype(int)
    P = 100.0 * (log.position[:, None] == np.arange(1, 11))
    weights = log.impressions / log.impressions.mean()
    deviation = np.where(model.ranker_.scale_ > 0, model.ranker_.scale_, np.inf)  # of columns; positions cost nothing
    both = RankRLS(2.0, tied_pairs=True, scale=None).fit(
        np.hstack([data.X[rows] / deviation, P]), log.rate, qid=log.query, sample_weight=weights
    )
    assert_allclose(model.ranker_.coef_, both.coef_[:-10] / deviation, rtol=1e-6, atol=1e-9)
    assert_allclose(model.position_effects_, 100 * (both.coef_[-10:] - both.coef_[-10]), atol=1e-9)


def test_positions_are_free_and_signs_are_those_of_features():
    """Position effects solve an unconstrained regression, even if the weights of features have signs."""
    log = log_of()
    rows, weights = log.document.astype(int), np.sqrt(log.impressions / log.impressions.mean())
    model = clicks.ClickRanker(RankRLS(1e-6)).fit(data.X, log, qid=data.qid)
    P = 1.0 * (log.position[:, None] == np.arange(1, 11))
    A = np.hstack([data.X[rows], P, log.rate[:, None]])
    for q in np.unique(log.query):
        here = log.query == q
        A[here] -= np.average(A[here], axis=0, weights=weights[here] ** 2)
    A *= weights[:, None]
    plain = np.linalg.lstsq(A[:, :-1], A[:, -1], rcond=None)[0][-10:]
    assert_allclose(model.position_effects_, plain - plain[0], atol=1e-5)
    signed = clicks.ClickRanker(RankRLS(1.0, positive=[0, 3])).fit(data.X, log, qid=data.qid)
    assert signed.ranker_.coef_[[0, 3]].min() >= 0
    assert signed.position_effects_[9] < -0.1


def test_targets_of_each_method():
    log, theta = log_of(swaps=0.3), 1 / np.arange(1.0, 11)
    for method in ("propensities", "expected", "naive"):
        model = clicks.ClickRanker(RankRLS(1.0), method=method, propensities=theta).fit(data.X, log, qid=data.qid)
        y, weight = oracles.click_targets(log, theta, method, len(data.y))
        shown = weight > 0
        weight = weight / weight[shown].mean()
        expected = RankRLS(1.0).fit(data.X[shown], y[shown], qid=data.qid[shown], sample_weight=weight[shown])
        assert_allclose(model.predict(data.X), expected.predict(data.X), rtol=1e-8)
    judgments = clicks.from_clicks(log, theta=theta)
    y, _ = oracles.click_targets(log, theta, "expected", len(data.y))
    y = y[judgments.document.astype(int)]
    assert_allclose(judgments.rating, y * (judgments.rating.max() / y.max()))


def test_the_grid_of_alphas_is_that_of_the_features():
    """Columns of positions are scaled up so that they are free; a grid fitted to them would start too high."""
    log = log_of()
    with warnings.catch_warnings(action="error"):
        model = clicks.ClickRanker().fit(data.X, log, qid=data.qid)
    wide = clicks.ClickRanker(RankRLS(alphas=model.ranker_.alpha_ * np.logspace(-4, 4, 33))).fit(
        data.X, log, qid=data.qid
    )
    assert_allclose(np.log10(wide.ranker_.alpha_), np.log10(model.ranker_.alpha_), atol=0.3)


def test_clicks_are_debiased_on_mq2008():
    """naive < propensities < positions < true labels, shown by the 46th feature reversed."""
    folder = unpacked("letor4-mq2008") / "MQ2008"
    found = {}
    for fold in (1, 3, 5):
        train, test = (datasets.load_letor(folder / f"Fold{fold}" / f"{part}.txt") for part in ("train", "test"))
        log = clicks.simulate(train.y, train.qid, scores=-train.X[:, 45], random_state=fold)
        models = {
            m: clicks.ClickRanker(method=m).fit(train.X, log, train.qid) for m in ("naive", "propensities", "positions")
        }
        models["true labels"] = RankRLS().fit(train.X, train.y, qid=train.qid)
        for name, model in models.items():
            found.setdefault(name, []).append(metrics.ndcg(test.y, model.predict(test.X), test.qid, k=10))
    naive, inverse, positions, true = (np.mean(values) for values in found.values())
    assert naive + 0.02 < inverse < positions + 0.005 < true + 0.01, found


def test_frames_ids_and_files(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data.X, columns=data.feature_names)
    names = np.array([f"doc{i}" for i in range(len(data.y))])
    log = log_of()
    named = {"query": log.query, "document": names[log.document.astype(int)], "position": log.position}
    table = pd.DataFrame({**named, "clicked": log.clicks, "impressions": log.impressions})
    table.loc[0, "document"] = "elsewhere"
    model = clicks.ClickRanker().fit(frame, table, qid=data.qid, doc_ids=names)
    assert model.n_unmatched_ == 1
    save(model.ranker_, tmp_path / "model.rankrls")
    assert_array_equal(load(tmp_path / "model.rankrls").predict(frame), model.predict(frame))
    assert_array_equal(model.rank(frame, data.qid), model.ranker_.rank(frame, data.qid))
    order = np.random.default_rng(0).permutation(len(frame))
    shuffled = clicks.ClickRanker().fit(frame.iloc[order], table, qid=data.qid[order], doc_ids=names[order])
    assert_allclose(shuffled.ranker_.coef_, model.ranker_.coef_, rtol=1e-8)


@pytest.mark.parametrize("method", ["naive", "propensities", "expected"])
def test_rankers_learn_from_judgments_made_from_clicks(method):
    """A ranker fitted to joined judgments is the one of ClickRanker: ratings are its labels over their mean."""
    log = log_of(swaps=0.5, sessions=30)
    joined = clicks.from_clicks(log, method=method).join(data.qid, np.arange(len(data.y)))
    shown = ~np.isnan(joined.y)
    assert joined.n_without_row == 0 and shown.sum() == joined.n_judged and np.all(joined.weight[~shown] == 0)
    kind = {"scale": "auto", "tied_pairs": False}
    mine = RankRLS(3.0, **kind).fit(
        data.X[shown], joined.y[shown], qid=data.qid[shown], sample_weight=joined.weight[shown]
    )
    ours = clicks.ClickRanker(RankRLS(3.0, **kind), method=method).fit(data.X, log, qid=data.qid).ranker_
    assert_allclose(mine.coef_ / np.abs(mine.coef_).max(), ours.coef_ / np.abs(ours.coef_).max(), atol=1e-8)


def test_any_ranker_learns_from_clicks():
    from rankrls import AutoRanker, save

    model = clicks.ClickRanker(RankRLS(1.0, kernel="rbf", basis=20, random_state=0), method="propensities")
    model.fit(data.X, log_of(), qid=data.qid)  # no swaps: propensities come from a linear additive model
    assert model.propensities_[0] == 1 and model.propensities_[-1] < 0.5
    auto = clicks.ClickRanker(AutoRanker(effort="fast"), method="expected").fit(data.X, log_of(), qid=data.qid)
    assert auto.predict(data.X).shape == data.y.shape
    with pytest.raises(ValueError, match="needs a linear RankRLS, got AutoRanker"):
        clicks.ClickRanker(AutoRanker()).fit(data.X, log_of(), qid=data.qid)
    with pytest.raises(TypeError, match="got ClickRanker: save its ranker_"):
        save(auto, "model.rankrls")


@pytest.mark.parametrize("suffix", [".csv", ".qrels"])
def test_judgments_in_and_out(tmp_path, suffix):
    judgments = clicks.Judgments(np.array(["shoes", "shoes", "hats"]), np.array(["a", "b", "a"]), np.array([3.0, 0, 1]))
    judgments.save(tmp_path / f"judged{suffix}")
    again = clicks.read_judgments(tmp_path / f"judged{suffix}")
    for name in ("query", "document", "rating"):
        assert_array_equal(getattr(again, name), getattr(judgments, name))
    joined = again.join(["hats", "shoes", "hats"], ["a", "b", "c"])
    assert_array_equal(joined.y, [1, 0, np.nan])
    assert (joined.n_judged, joined.n_unjudged, joined.n_without_row) == (2, 1, 1)
    blank = clicks.read_judgments("query,docid,rating\nshoes,a,\nshoes,b,2\n")  # nobody has judged a yet
    assert blank.document.tolist() == ["b"]
    assert clicks.read_judgments({"shoes": {"b": 2}}).rating.tolist() == clicks.read_judgments("shoes 0 b,c 2\n").rating
    numbers = clicks.Judgments(np.array(["7"]), np.array(["12"]), np.array([2.0])).join([7, 8], [12, 12])
    assert_array_equal(numbers.y, [2, np.nan])


def test_errors_say_what_to_do():
    rows = {"query": ["a"], "document": [1], "position": [1], "clicked": [1]}
    with pytest.raises(ValueError, match="no column 'position', so it does not say where documents were shown"):
        clicks.ClickLog.of({k: v for k, v in rows.items() if k != "position"})
    with pytest.raises(ValueError, match="no column 'clicked'"):
        clicks.ClickLog.of({k: v for k, v in rows.items() if k != "clicked"})
    with pytest.raises(ValueError, match="positions are whole numbers from 1 .* row 0 of the log has position 0"):
        clicks.ClickLog.of({**rows, "position": [0]})
    with pytest.raises(ValueError, match=r"position must be finite: log row 0 has nan \(1 such log rows\)"):
        clicks.ClickLog.of({**rows, "position": [None]})
    with pytest.raises(ValueError, match="clicks lie between 0 and the impressions"):
        clicks.ClickLog.of({**rows, "clicked": [3]})
    zero = np.append(1 / np.arange(1.0, 10), 0.0)
    with pytest.raises(ValueError, match="the propensity of position 10 is 0, but clicks are divided by it"):
        clicks.ClickRanker(method="propensities", propensities=zero).fit(data.X, log_of(), qid=data.qid)
    with pytest.raises(ValueError, match="none of the .* rows of the log has a document in X"):
        clicks.ClickRanker().fit(data.X, log_of(), qid=data.qid, doc_ids=np.arange(len(data.y)) + 10**6)
    with pytest.raises(ValueError, match="needs a linear RankRLS, got RankRLS"):
        clicks.ClickRanker(RankRLS(kernel="rbf", basis=5)).fit(data.X, log_of(), qid=data.qid)
    with pytest.raises(ValueError, match="occurs twice"):
        clicks.read_judgments("q 0 d 1\nq 0 d 2\n")
    with pytest.raises(ValueError, match="line 2: qrels have four words"):
        clicks.read_judgments("q 0 d 1\nq d 2\n")
    with pytest.raises(ValueError, match="the text has no row with a rating"):
        clicks.read_judgments("query,docid,rating\nq,d,\n")
    with pytest.raises(ValueError, match="a rating is a number, got 'good'"):
        clicks.read_judgments("query,docid,rating\nq,d,good\n")
