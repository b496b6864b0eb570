"""Weights and scores at every alpha against refits, for every form of a model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.model_selection import GroupKFold

import rankrls
from rankrls import RankRLS
from rankrls.kernels import Gaussian

RNG = np.random.default_rng(0)
M = 60
X = RNG.normal(size=(M, 4))
WIDE = np.hstack([X, RNG.normal(size=(M, 100))])
QID = RNG.integers(0, 12, M)
Y = np.round(X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=M))
K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
ALPHAS = [0.01, 1.0, 50.0]
FORMS = {
    "linear": (X, {}),
    "wide": (WIDE, {}),
    "wide sparse": (sparse.csr_array(WIDE), {}),
    "kernel": (X, {"kernel": Gaussian(0.3)}),
    "precomputed": (K, {"kernel": "precomputed"}),
    "basis": (X, {"kernel": Gaussian(0.3), "basis": [0, 5, 9, 20, 33]}),
    "precomputed basis": (K, {"kernel": "precomputed", "basis": [0, 5, 9, 20, 33]}),
    "positive": (X, {"positive": True}),
}
LOSSES = [{}, {"regression": 0.4}, {"tied_pairs": True, "weighting": "pairs"}]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_the_path_is_that_of_refits(form, loss):
    rows, options = FORMS[form]
    weights = np.where(np.arange(M) % 7 == 0, 0.0, 1.0 + np.arange(M) % 2)
    for fit in ({"qid": QID}, {}, {"qid": QID, "sample_weight": weights}):
        model = RankRLS(2.0, **options, **loss).fit(rows, Y, **fit)
        refits = [RankRLS(alpha, **options, **loss).fit(rows, Y, **fit) for alpha in ALPHAS]
        scores = model.predict_path(rows, ALPHAS)
        assert_allclose(scores, np.column_stack([refit.predict(rows) for refit in refits]), rtol=1e-6, atol=1e-7)
        linear = hasattr(model, "coef_")
        alphas, weights_of = model.coef_path(ALPHAS) if linear else model.dual_coef_path(ALPHAS)
        assert list(alphas) == ALPHAS
        expected = [refit.coef_ if linear else refit.dual_coef_ for refit in refits]
        if "basis" not in form:
            assert_allclose(weights_of, expected, rtol=1e-6, atol=1e-7)
        assert weights_of.shape == np.shape(expected)


@pytest.mark.parametrize("form", ["linear", "kernel", "basis", "wide"])
def test_the_path_of_several_targets(form):
    rows, options = FORMS[form]
    targets = np.column_stack([Y, -Y])
    model = RankRLS(2.0, tied_pairs=True, **options).fit(rows, targets, qid=QID)
    scores = model.predict_path(rows, ALPHAS)
    assert scores.shape == (M, 3, 2)
    assert_allclose(
        scores[:, 1], RankRLS(1.0, tied_pairs=True, **options).fit(rows, targets, qid=QID).predict(rows), atol=1e-7
    )


@pytest.mark.parametrize("form", FORMS)
def test_held_out_scores_are_kept_on_request(form):
    rows, options = FORMS[form]
    options = {**options, "store_path": True}
    model = RankRLS(alphas=ALPHAS, **options).fit(rows, Y, qid=QID)
    assert model.cv_predictions_path_.shape == (M, 3)
    assert_allclose(model.cv_predictions_path_[:, ALPHAS.index(model.alpha_)], model.cv_predictions_)
    for k, alpha in enumerate(ALPHAS):
        one = RankRLS(alpha, **options).fit(rows, Y, qid=QID)
        assert_allclose(one.cv_predictions_, model.cv_predictions_path_[:, k], atol=1e-8)
        assert_allclose(one.cv_scores_, model.cv_scores_[k])
    folds = RankRLS(1.0, cv=GroupKFold(3), **options).fit(rows, Y, qid=QID)
    assert not np.isnan(folds.cv_predictions_).any()
    assert not hasattr(
        RankRLS(alphas=ALPHAS, **{**options, "store_path": False}).fit(rows, Y, qid=QID), "cv_predictions_path_"
    )


@pytest.mark.parametrize("form", ["kernel", "basis", "wide"])
def test_saved_models_keep_their_paths(form, tmp_path):
    rows, options = FORMS[form]
    model = RankRLS(2.0, store_path=form == "wide", **options).fit(rows, Y, qid=QID)
    rankrls.save(model, tmp_path / "model.rankrls")
    assert_allclose(
        rankrls.load(tmp_path / "model.rankrls").predict_path(rows, ALPHAS), model.predict_path(rows, ALPHAS)
    )


def test_models_without_a_path_say_so(limit):
    saved = pickle.loads(pickle.dumps(RankRLS(1.0).fit(WIDE, Y, qid=QID)))
    with pytest.raises(ValueError, match="Fit it with store_path=True"):
        saved.predict_path(WIDE)
    limit(kept_bytes=WIDE.nbytes - 1)
    with pytest.raises(ValueError, match="larger than 64 MB"):
        RankRLS(1.0).fit(WIDE, Y, qid=QID).predict_path(WIDE)
    with pytest.raises(ValueError, match="use dual_coef_path"):
        RankRLS(1.0, kernel="rbf").fit(X, Y, qid=QID).coef_path()
    with pytest.raises(ValueError, match="use coef_path"):
        RankRLS(1.0).fit(X, Y, qid=QID).dual_coef_path()
    with pytest.raises(ValueError, match="read in blocks"):
        RankRLS(1.0, store_path=True).fit(iter([(X, Y, QID)]))
