"""Serving: `scorer()` and the fast path of `predict` return what `predict` returns, and refuse what it refuses."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from cases import problem
from rankrls import RankRLS

X, Y, QID = problem(m=60, n_queries=6)
MODELS = {"linear": {}, "kernel": {"kernel": "rbf"}, "basis": {"kernel": "rbf", "basis": 10, "random_state": 0}}


@pytest.mark.parametrize("params", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scorer_is_predict(params, dtype):
    model = RankRLS(1.0, **params).fit(X, Y, qid=QID)
    score, rows = model.scorer(), X[:7].astype(dtype)
    assert_array_equal(score(rows), model.predict(rows))
    for long_way in (pd.DataFrame(rows), np.asfortranarray(rows)):
        assert_allclose(model.predict(rows), model.predict(long_way), rtol=1e-4 if dtype == np.float32 else 1e-12)
    model.intercept_ = model.intercept_ + 1
    assert not np.array_equal(score(rows), model.predict(rows))


def test_scorer_of_several_targets():
    model = RankRLS(1.0, tied_pairs=True).fit(X, np.column_stack([Y, -Y]), qid=QID)
    assert_array_equal(model.scorer()(X), model.predict(X))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.where(np.arange(X.size).reshape(X.shape) == 3, np.nan, X), "NaN"),
        (np.where(np.arange(X.size).reshape(X.shape) == 3, np.inf, X), "infinity"),
        (np.hstack([X, X]), "features"),
        (np.where(np.arange(X.size).reshape(X.shape) == 3, 1e200, X), None),
        (X[:0], "minimum of 1 is required"),
        (X[0], "2D"),
    ],
)
def test_checks_stay(rows, message):
    model = RankRLS(1.0).fit(X, Y, qid=QID)
    model.coef_ = model.coef_ * (np.arange(len(model.coef_)) != 3)  # the weight of the odd value is zero
    if message is None:  # huge, but finite
        assert_array_equal(model.predict(rows), model.predict(X))
        return
    with pytest.raises(ValueError, match=message):
        model.predict(rows)


def test_column_names_are_still_checked():
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    model = RankRLS(1.0).fit(frame, Y, qid=QID)
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.iloc[:, ::-1])
    assert_array_equal(RankRLS(1.0).fit(X, Y, qid=QID).predict(sparse.csr_array(X)).shape, Y.shape)
