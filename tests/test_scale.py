"""scale="auto": columns in units of their own spread, wherever the rows are, without a copy of them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import RankRLS, bases, load, save
from rankrls.datasets import make_search
from rankrls.kernels import Gaussian

UNITS = 10.0 ** np.arange(-6, 6)


def deviation(X, y, qid, weighting, tied):
    """The root mean square of each column over the pairs that count, pair by pair."""
    total = np.zeros(X.shape[1])
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        pairs = [(i, j) for i in rows for j in rows if i < j and (tied or y[i] != y[j])]
        c = {"pairs": 1.0, "items": 1 / len(rows), "queries": 1 / max(1, len(pairs))}[weighting]
        total += c * sum(((X[i] - X[j]) ** 2 for i, j in pairs), start=np.zeros(X.shape[1]))
    return np.sqrt(total / len(X))


def rows(n_queries=12, **params):
    data = make_search(n_queries, mean_documents=8, random_state=0, **params)
    return data.X, data.y, data.qid


@pytest.mark.parametrize("weighting", ["pairs", "queries", "items"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_it_is_the_plain_penalty_of_scaled_columns(weighting, tied, form):
    X, y, qid = rows()
    params = {"weighting": weighting, "tied_pairs": tied}
    model = RankRLS(2.0, scale="auto", **params).fit(form(X), y, qid=qid)
    s = deviation(X, y, qid, weighting, tied)
    constant = s < 1e-9 * np.abs(X).max(axis=0)  # query_length and query_popularity
    assert constant.sum() == 2 and np.all(model.scale_[constant] == 0) and np.all(model.coef_[constant] == 0)
    assert_allclose(model.scale_[~constant], s[~constant], rtol=1e-6)
    plain = RankRLS(2.0, scale=None, **params).fit(X[:, ~constant] / s[~constant], y, qid=qid)
    assert_allclose(model.coef_[~constant] * s[~constant], plain.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"cv": 4},
        {"regression": 0.5},
        {"kernel": "rbf"},
        {"kernel": "poly"},
        {"kernel": "laplacian", "basis": list(range(20))},
        {"kernel": "rbf", "basis": 15, "random_state": 0},
        {"kernel": Gaussian("auto"), "basis": bases.RandomRows(15), "random_state": 1},
        {"kernel": "rbf", "basis": bases.KMeansCentres(15), "random_state": 0},
        {"tied_pairs": "auto"},
    ],
    ids=str,
)
def test_units_change_nothing(params):
    X, y, qid = rows()
    one, other = (RankRLS(scale="auto", **params).fit(V, y, qid=qid) for V in (X, X * UNITS))
    assert_allclose(one.alpha_, other.alpha_, rtol=1e-6)
    assert_allclose(one.cv_scores_, other.cv_scores_, atol=1e-9)
    a, b = one.predict(X), other.predict(X * UNITS)
    assert_allclose(a - a.mean(), b - b.mean(), rtol=1e-5, atol=1e-6 * np.ptp(a))


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("basis", [None, 12])
def test_widths_do_not_depend_on_where_columns_stand(name, basis):
    """As for a table that is standardised first: a column of years or dates does not make the kernel wide."""
    X, y, qid = rows()
    X = np.column_stack([X, np.full(len(X), 7.0)])  # constant: it has no unit
    params = {"kernel": name, "basis": basis, "random_state": 0}
    one, other = (RankRLS(**params).fit(V, y, qid=qid) for V in (X, X + 1000 * np.arange(X.shape[1]) * X.std(axis=0)))
    whole = make_pipeline(StandardScaler(), RankRLS(scale=None, **params)).fit(X, y, rankrls__qid=qid)
    same = [other, whole[-1]]
    if name == "rbf" and basis is None:
        same.append(RankRLS(**params).fit(sparse.csr_array(X), y, qid=qid))
    for model in same:
        assert_allclose(model.alpha_, one.alpha_, rtol=1e-6)
        assert_allclose(model.cv_scores_, one.cv_scores_, atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_units_and_offsets_do_not_change_which_points_are_drawn(form):
    """The points of a basis are the same rows after columns are multiplied, or standardised by a pipeline."""
    X, y, qid = rows()
    X[:, 3] = np.where(np.arange(len(X)) % 3, X[:, 3], 0.0)
    X[5] = X[9]  # twice the weight
    params = {"kernel": Gaussian(0.1), "basis": 12, "random_state": 0}
    one, other = (RankRLS(1.0, **params).fit(form(V), y, qid=qid) for V in (X, X * UNITS))
    dense = lambda V: V.toarray() if sparse.issparse(V) else V
    assert_allclose(dense(one.X_fit_) * UNITS, dense(other.X_fit_))
    if form is np.asarray:
        s = RankRLS(1.0, **params).fit(X, y, qid=qid).scale_
        pipeline = make_pipeline(StandardScaler(), RankRLS(1.0, scale=None, **params))
        constant = X.std(axis=0) == 0
        assert_allclose(pipeline.fit(X, y, rankrls__qid=qid)[0].scale_[~constant], s[~constant])
        a, b = one.predict(X), pipeline.predict(X)
        assert_allclose(a - a.mean(), b - b.mean(), atol=1e-6 * np.ptp(a))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("qid", [True, False])
def test_more_columns_than_rows(form, qid):
    X, y, q = rows(4)
    rng = np.random.default_rng(0)
    X = np.hstack([X, rng.normal(size=(len(X), 200)) * 10.0 ** rng.integers(-5, 5, 200)])
    q = q if qid else np.zeros(len(X))
    model = RankRLS(1.0, scale="auto").fit(form(X), y, qid=q)
    s = deviation(X, y, q, "items", False)
    keep = model.scale_ > 0
    assert_allclose(model.scale_[keep], s[keep], rtol=1e-6)
    plain = RankRLS(1.0, scale=None).fit(X[:, keep] / s[keep], y, qid=q)
    assert_allclose(model.coef_[keep] * s[keep], plain.coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("weighting", ["pairs", "queries", "items"])
def test_one_query_and_its_sums(weighting):
    X, y, _ = rows(4)
    y = y + np.random.default_rng(0).random(len(y))  # no ties: the short way through ridge regression
    model = RankRLS(1.0, scale="auto", weighting=weighting, tied_pairs=True).fit(X, y)
    s = deviation(X, y, np.zeros(len(y)), weighting, True)
    assert_allclose(model.scale_, s, rtol=1e-8)
    added = RankRLS(1.0, scale="auto", weighting=weighting, tied_pairs=True).partial_fit(X, y)
    assert_allclose(added.coef_, model.coef_, rtol=1e-6)
    assert_allclose(model.coef_path([1.0])[1][0], model.coef_, rtol=1e-6)


def test_updated_sums_have_the_scale_of_the_remaining_rows():
    X, y, qid = rows()
    late = qid > "q0007"
    whole, early = (
        RankRLS(1.0, scale="auto").fit(X, y, qid=qid),
        RankRLS(1.0, scale="auto").fit(X[~late], y[~late], qid=qid[~late]),
    )
    model = RankRLS(1.0, scale="auto").partial_fit(X[~late], y[~late], qid=qid[~late])
    assert_allclose(model.coef_, early.coef_, rtol=1e-8)
    model.partial_fit(X[late], y[late], qid=qid[late])
    assert_allclose(model.coef_, whole.coef_, rtol=1e-8)
    assert_allclose(model.scale_, whole.scale_, rtol=1e-8)
    model.forget(X[late], y[late], qid=qid[late])
    assert_allclose(model.coef_, early.coef_, rtol=1e-6)


@pytest.mark.parametrize("params", [{}, {"kernel": "rbf", "basis": 15, "random_state": 0}], ids=["linear", "kernel"])
def test_files_are_scaled_like_memory(params, tmp_path):
    X, y, qid = rows(40)
    frame = pd.DataFrame(X * UNITS, columns=[f"f{j}" for j in range(X.shape[1])]).assign(y=y, qid=qid)
    frame.sample(frac=1, random_state=0).to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    memory = RankRLS(scale="auto", **params).fit(X * UNITS, y, qid=qid)
    file = RankRLS(scale="auto", **params).fit(tmp_path / "rows.parquet")
    assert_allclose(file.scale_, memory.scale_, rtol=1e-8)
    assert_allclose(file.alpha_, memory.alpha_, rtol=1e-6)
    a, b = memory.predict(X * UNITS), file.predict(frame.drop(columns=["y", "qid"]))
    assert_allclose(a - a.mean(), b - b.mean(), rtol=1e-5, atol=1e-6 * np.ptp(a))


def test_held_out_scores_are_those_of_refits_at_this_scale():
    X, y, qid = rows()
    model = RankRLS(scale="auto", alphas=[0.5, 3.0]).fit(X, y, qid=qid)
    keep = model.scale_ > 0
    Z = X[:, keep] / model.scale_[keep]
    for q in np.unique(qid):
        rest = qid != q
        if len(set(y[~rest])) > 1:
            refit = RankRLS(model.alpha_, scale=None).fit(Z[rest], y[rest], qid=qid[rest])
            a, b = model.cv_predictions_[~rest], refit.predict(Z[~rest])
            assert_allclose(a - a.mean(), b - b.mean(), atol=1e-6)


def test_pairs_and_model_files(tmp_path):
    X, y, qid = rows()
    pairs = np.array([(i, i + 1) for i in range(0, 40, 2)])
    one, other = (RankRLS(0.1, scale="auto").fit_pairs(V, pairs) for V in (X, X * UNITS))
    a, b = one.predict(X), other.predict(X * UNITS)
    assert_allclose(a - a.mean(), b - b.mean(), atol=1e-6 * np.ptp(a))
    for params in ({}, {"kernel": "rbf"}):
        model = RankRLS(1.0, scale="auto", **params).fit(X, y, qid=qid)
        save(model, tmp_path / "m.rankrls")
        assert_allclose(load(tmp_path / "m.rankrls").predict(X), model.predict(X))


def test_float32_and_a_column_that_is_constant_within_queries_far_from_zero():
    X, y, qid = rows()
    level = {q: 1e6 * (1 + i) / 3 for i, q in enumerate(np.unique(qid))}
    X = np.column_stack([X, [level[q] for q in qid]])
    for dtype in (np.float64, np.float32):
        model = RankRLS(1.0, scale="auto").fit(X.astype(dtype), y, qid=qid)
        assert model.scale_[-1] == 0 and model.coef_[-1] == 0
        assert np.abs(model.predict(X.astype(dtype))).max() < 1e3


def test_other_values_of_scale_are_refused():
    with pytest.raises(ValueError, match="scale must be one of 'auto', None"):
        RankRLS(scale="standard").fit([[1.0], [2.0]], [0, 1])
