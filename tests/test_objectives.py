"""Several targets mixed without a refit, and gains of labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rankrls
from rankrls import RankRLS, metrics
from rankrls.datasets import make_search

data = make_search(40, random_state=0)
X, y, qid = data.X, data.y, data.qid
Y = np.column_stack([y, -X[:, 0], X[:, 3]])
W = np.array([0.7, 0.3, -0.1])

MODELS = {
    "linear": {},
    "plain penalty": {"scale": None},
    "regression": {"regression": 0.4},
    "kernel": {"kernel": "rbf"},
    "basis": {"kernel": "rbf", "basis": np.arange(0, 300, 10)},
    "signs": {"positive": True},
}


@pytest.mark.parametrize("name", MODELS)
def test_a_mix_is_the_fit_to_mixed_targets(name):
    params = {"tied_pairs": True, "alphas": [3.0], **MODELS[name]}
    both = RankRLS(**params).fit(X, Y, qid=qid)
    alone = RankRLS(**params).fit(X, Y @ W, qid=qid)
    mixed = both.mix(W)
    assert_allclose(mixed.predict(X), alone.predict(X), rtol=1e-7, atol=1e-9)
    assert mixed.predict(X).ndim == 1
    assert type(mixed.intercept_) is float
    if name != "signs":  # held-out solutions with signs are not linear in the labels
        assert_allclose(mixed.cv_predictions_, alone.cv_predictions_, rtol=1e-7, atol=1e-9)
    assert both.predict(X).shape == Y.shape  # the model itself is as it was


def test_a_mix_can_be_saved_and_updated(tmp_path):
    first = np.isin(qid, np.unique(qid)[:30])
    both = RankRLS(2.0, tied_pairs=True).fit(X[first], Y[first], qid=qid[first])
    mixed = both.mix(W).partial_fit(X[~first], Y[~first] @ W, qid=qid[~first])
    whole = RankRLS(2.0, tied_pairs=True).fit(X, Y @ W, qid=qid)
    assert_allclose(mixed.coef_, whole.coef_, rtol=1e-8)
    mixed.forget(X[~first], Y[~first] @ W, qid=qid[~first])
    assert_allclose(mixed.coef_, both.mix(W).coef_, rtol=1e-6, atol=1e-9)
    rankrls.save(mixed, tmp_path / "model")
    assert_allclose(rankrls.load(tmp_path / "model").predict(X), mixed.predict(X))
    assert_allclose(both.mix([0, 1, 0]).coef_, both.coef_[1])
    assert_allclose(both.mix(W).explain(X[0], X[1]).sum(), np.diff(both.mix(W).predict(X[1::-1]))[0])


def test_errors_of_mixes():
    both = RankRLS(1.0, tied_pairs=True).fit(X, Y, qid=qid)
    with pytest.raises(ValueError, match="one target"):
        RankRLS(1.0).fit(X, y, qid=qid).mix([1.0])
    with pytest.raises(ValueError, match="weights"):
        both.mix([0.5, 0.5])
    with pytest.raises(ValueError, match="every weight is zero"):
        both.mix([0, 0, 0])
    with pytest.raises(ValueError, match="weights"):
        both.mix([np.nan, 1, 0])


# ---------------------------------------------------------------- gains


@pytest.mark.parametrize("params", [{}, {"tied_pairs": True}, {"kernel": "rbf", "basis": [1, 50, 99, 120]}])
def test_a_gain_recodes_labels_for_the_loss_but_not_for_the_metric(params):
    gained = RankRLS(gain="exponential", scoring="ndcg@10", **params).fit(X, y, qid=qid)
    by_hand = RankRLS(alphas=gained.alphas_, scoring="ndcg@10", **params).fit(X, np.exp2(y) - 1, qid=qid)
    at = RankRLS(gained.alpha_, **params).fit(X, np.exp2(y) - 1, qid=qid)
    assert_allclose(gained.predict(X), at.predict(X), rtol=1e-8, atol=1e-10)
    held_out = RankRLS(alphas=[gained.alpha_], **params).fit(X, np.exp2(y) - 1, qid=qid).cv_predictions_
    assert_allclose(gained.cv_predictions_, held_out, rtol=1e-7, atol=1e-9)
    k = gained.alphas_.tolist().index(gained.alpha_)
    assert_allclose(gained.cv_scores_[k], metrics.ndcg(y, held_out, qid, k=10))
    assert not np.allclose(gained.cv_scores_, by_hand.cv_scores_)  # NDCG of other labels is another number


def test_auto_takes_the_gain_that_ranks_better():
    found = {g: RankRLS(gain=g, scoring="ndcg@5").fit(X, y, qid=qid) for g in (None, "exponential", "auto")}
    best = max((None, "exponential"), key=lambda g: found[g].cv_scores_.max())
    assert found["auto"].gain_ == (best or "linear")
    assert_allclose(found["auto"].coef_, found[best].coef_)
    skewed = np.log2(1 + np.maximum(X[:, 0] - X[:, 0].min(), 0) ** 2)  # whose gain is a square, and nearly linear
    chosen = RankRLS(gain="auto").fit(X, skewed, qid=qid)
    assert chosen.gain_ in ("linear", "exponential")


def test_functions_updates_and_files(tmp_path):
    square = RankRLS(2.0, gain=np.square).fit(X, y, qid=qid)
    assert_allclose(square.coef_, RankRLS(2.0).fit(X, y**2.0, qid=qid).coef_)
    half = np.isin(qid, np.unique(qid)[::2])
    model = RankRLS(2.0, gain="exponential").fit(X[half], y[half], qid=qid[half])
    model.partial_fit(X[~half], y[~half], qid=qid[~half])
    whole = RankRLS(2.0, gain="exponential").fit(X, y, qid=qid)
    assert_allclose(model.coef_, whole.coef_, rtol=1e-8)
    model.forget(X[~half], y[~half], qid=qid[~half])
    assert_allclose(model.coef_, RankRLS(2.0).fit(X[half], np.exp2(y[half]) - 1, qid=qid[half]).coef_, rtol=1e-6)
    with pytest.raises(ValueError, match="fitted with gain='exponential'"):
        model.set_params(gain=None).partial_fit(X[~half], y[~half], qid=qid[~half])
    rankrls.save(whole, tmp_path / "model")
    assert rankrls.load(tmp_path / "model").gain_ == "exponential"
    first = RankRLS(gain="auto").partial_fit(X[half], y[half], qid=qid[half])
    assert first.gain_ == RankRLS(gain="auto").fit(X[half], y[half], qid=qid[half]).gain_


@pytest.mark.parametrize("gain", ["exponential", "auto", np.square])
def test_out_of_core(gain, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="needs rankrls[arrow]")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    frame = pd.DataFrame(X, columns=data.feature_names).assign(y=y, qid=qid).iloc[order]
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=60)
    for params in ({}, {"cv": 3}, {"alpha": 1.0, "tied_pairs": True}):
        if gain == "auto" and "alpha" in params:
            continue
        params = {"gain": gain, "scoring": "ndcg@5", **params}
        there = RankRLS(**params).fit(str(tmp_path / "rows.parquet"))
        here = RankRLS(**params).fit(X, y, qid=qid)
        assert there.gain_ == here.gain_ or params.get("cv")
        if not params.get("cv"):
            assert_allclose(there.coef_, here.coef_, rtol=1e-7)
            if "alpha" not in params:
                assert_allclose(there.cv_scores_, here.cv_scores_, rtol=1e-9)


def test_labels_without_a_valid_gain_are_refused():
    with pytest.raises(ValueError, match=r"turns the label 5000 into inf"):
        RankRLS(1.0, gain="exponential").fit(X, np.where(y > 1, 5000.0, y), qid=qid)
    with pytest.raises(ValueError, match="gain returned shape"):
        RankRLS(1.0, gain=lambda y: y.sum()).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="gain"):
        RankRLS(1.0, gain="log").fit(X, y, qid=qid)
