"""CoRankRLS beyond the paper: regression, several targets, widths, precomputed views, wide views, paths."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import oracles
import rankrls
from rankrls import CoRankRLS, View
from rankrls.kernels import Gaussian, Linear
from test_corankrls import partly_scored

LINEAR = [View([0, 1, 2]), View([3, 4, 5])]
SPARSE = [View([0, 1, 2], Gaussian(0.1), [0, 7, 30]), View([3, 4, 5])]


def solved(Phi, y, qid, alpha, nu, *, beta=0.0, among=None):
    """Weights and intercepts of linear views, from the normal equations of the printed objective."""
    scored = ~np.isnan(y).reshape(len(y), -1).any(axis=1)
    among = ~scored if among is None else among
    Lt = oracles.laplacian(y[scored], qid[scored], tied=True, weighting="items", beta=beta)
    U = oracles.laplacian(np.zeros(among.sum()), qid[among], tied=True, weighting="items")
    one = np.ones((len(y), 1))
    A = [np.hstack([P, one]) for P in Phi]
    M, n = len(A), [P.shape[1] for P in A]
    H, g = np.zeros((sum(n), sum(n))), np.zeros(sum(n))
    cuts = np.cumsum([0, *n])
    for v in range(M):
        s = slice(cuts[v], cuts[v + 1])
        penalty = alpha * np.eye(n[v])
        penalty[-1, -1] = 0 if beta else 1.0  # no intercept without regression
        H[s, s] += A[v][scored].T @ Lt @ A[v][scored] + penalty
        g[s] += A[v][scored].T @ Lt @ y[scored]
        for w in range(M):
            t = slice(cuts[w], cuts[w + 1])
            H[s, s] += 2 * nu * A[v][among].T @ U @ A[v][among]
            H[s, t] -= 2 * nu * A[v][among].T @ U @ A[w][among]
    a = np.linalg.solve(H, g)
    return np.mean([P @ a[cuts[v] : cuts[v + 1]] for v, P in enumerate(A)], axis=0)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_regression_gives_every_view_an_intercept(beta):
    X, y, qid = partly_scored()
    y = y + 10
    model = CoRankRLS(0.7, 0.3, views=LINEAR, tied_pairs=True, regression=beta).fit(X, y, qid=qid)
    assert_allclose(model.predict(X), solved([X[:, :3], X[:, 3:]], y, qid, 0.7, 0.3, beta=beta), atol=1e-8)


@pytest.mark.parametrize("views", [LINEAR, SPARSE], ids=["linear", "sparse"])
@pytest.mark.parametrize("weight", [False, True])
def test_regression_is_held_out_exactly(views, weight):
    X, y, qid = partly_scored()
    params = {"views": views, "regression": 0.4}
    u = 1.0 + np.arange(60) % 3 if weight else None
    model = CoRankRLS(alphas=[0.2], nus=[0.4], **params).fit(X, y, qid=qid, sample_weight=u)
    scored = np.flatnonzero(~np.isnan(y))
    for q in np.unique(qid[scored]) if views is LINEAR else ():  # basis points of others are rows
        rows = scored[qid[scored] == q]
        rest = np.setdiff1d(np.arange(60), rows)
        copies = None if u is None else u[rest]
        refit = CoRankRLS(0.2, 0.4, **params).fit(X[rest], y[rest], qid=qid[rest], sample_weight=copies)
        assert_allclose(model.cv_predictions_[rows], refit.predict(X[rows]), atol=1e-8)
    whole = CoRankRLS(0.2, 0.4, cv=[(None, scored[qid[scored] == q]) for q in np.unique(qid[scored])], store_path=True)
    folds = whole.set_params(**params).fit(X, y, qid=qid, sample_weight=u)
    assert_allclose(folds.cv_predictions_, model.cv_predictions_, atol=1e-8)
    one = CoRankRLS(0.2, 0.4, cv=3, store_path=True, **params).fit(X, y, qid=qid, sample_weight=u)
    assert one.cv_predictions_path_.shape == (60, 1, 1)


def test_views_may_agree_on_scored_rows_too():
    X, y, qid = partly_scored()
    for target in (y, np.nan_to_num(y, nan=1.0)):
        model = CoRankRLS(0.7, 0.3, views=LINEAR, tied_pairs=True, agree_on="all").fit(X, target, qid=qid)
        everything = np.ones(60, dtype=bool)
        assert_allclose(
            model.predict(X), solved([X[:, :3], X[:, 3:]], target, qid, 0.7, 0.3, among=everything), atol=1e-8
        )
    chosen = CoRankRLS(views=LINEAR, agree_on="all").fit(X, np.nan_to_num(y, nan=1.0), qid=qid)
    assert chosen.nu_ in chosen.nus_ and len(chosen.nus_) > 1


def test_several_targets_are_several_models():
    X, y, qid = partly_scored()
    targets = np.column_stack([y, -2 * y])
    model = CoRankRLS(0.7, 0.3, views=SPARSE, tied_pairs=True).fit(X, targets, qid=qid)
    alone = CoRankRLS(0.7, 0.3, views=SPARSE, tied_pairs=True).fit(X, y, qid=qid)
    assert_allclose(model.predict(X), np.outer(alone.predict(X), [1, -2]), atol=1e-9)
    assert model.predict_views(X).shape == (60, 2, 2)
    auto = CoRankRLS(views=SPARSE, tied_pairs=True, alphas=[0.1, 1.0], nus=[0.0, 0.1]).fit(X, targets, qid=qid)
    assert auto.cv_predictions_.shape == (60, 2) and auto.predict_path(X).shape == (60, 2, 2, 2)
    assert auto.score(X, targets, qid) == auto.score(X, y[:, None] * [1, -2], qid)
    with pytest.raises(ValueError, match="set tied_pairs=True"):
        CoRankRLS(0.7, 0.3, views=SPARSE).fit(X, targets, qid=qid)
    targets[np.flatnonzero(~np.isnan(y))[0], 0] = np.nan
    with pytest.raises(ValueError, match="scored in only some columns of y"):
        CoRankRLS(0.7, 0.3, views=SPARSE, tied_pairs=True).fit(X, targets, qid=qid)


def test_widths_of_kernels_are_chosen_with_alpha_and_nu():
    X, y, qid = partly_scored()
    views = [View([0, 1, 2], Gaussian("auto"), [0, 7, 30]), View([3, 4, 5], Gaussian("auto"), [1, 8])]
    model = CoRankRLS(views=views, alphas=[0.1, 1.0], nus=[0.0, 0.1]).fit(X, y, qid=qid)
    fixed = [View([0, 1, 2], model.views_[0].kernel, [0, 7, 30]), View([3, 4, 5], model.views_[1].kernel, [1, 8])]
    same = CoRankRLS(views=fixed, alphas=[0.1, 1.0], nus=[0.0, 0.1]).fit(X, y, qid=qid)
    assert_allclose(model.predict(X), same.predict(X))
    assert_allclose(model.cv_scores_, same.cv_scores_)
    given = CoRankRLS(0.1, 0.1, views=views).fit(X, y, qid=qid)
    assert given.alpha_ == 0.1 and isinstance(given.views_[0].kernel.gamma, float)


def test_views_of_precomputed_kernels():
    X, y, qid = partly_scored()
    K = [oracles.gaussian(X[:, c], X[:, c], 0.1) for c in (slice(0, 3), slice(3, 6))]
    plain = [View([0, 1, 2], Gaussian(0.1)), View([3, 4, 5], Gaussian(0.1))]
    views = [View(slice(0, 60), "precomputed"), View(slice(60, 120), "precomputed")]
    model = CoRankRLS(0.7, 0.3, views=views).fit(np.hstack(K), y, qid=qid)
    assert_allclose(
        model.predict(np.hstack(K)), CoRankRLS(0.7, 0.3, views=plain).fit(X, y, qid=qid).predict(X), atol=1e-7
    )
    rows = [0, 7, 30]
    few = [View([0, 1, 2], "precomputed", rows), View([3, 4, 5])]
    table = np.hstack([K[0][:, rows], X[:, 3:]])  # m x r: never the whole matrix
    model = CoRankRLS(0.7, 0.3, views=few).fit(table, y, qid=qid)
    assert_allclose(model.predict(table), CoRankRLS(0.7, 0.3, views=SPARSE).fit(X, y, qid=qid).predict(X), atol=1e-8)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_wide_linear_views_are_expanded_in_their_rows(as_rows):
    X, y, qid = partly_scored()
    wide = sparse.random_array((60, 3000), density=0.01, random_state=np.random.default_rng(0)).toarray()
    wide[:, :6] = X
    views = [View(slice(0, 2000)), View(slice(2000, 3000))]
    kernels = [View(slice(0, 2000), Linear()), View(slice(2000, 3000), Linear())]
    model = CoRankRLS(0.7, 0.3, views=views, store_path=True).fit(as_rows(wide), y, qid=qid)
    same = CoRankRLS(0.7, 0.3, views=kernels, store_path=True).fit(wide, y, qid=qid)
    assert [len(c) for c in model.view_coefs_] == [2000, 1000]
    assert_allclose(model.predict(as_rows(wide)), same.predict(wide), atol=1e-8)
    assert_allclose(model.cv_predictions_, same.cv_predictions_, atol=1e-8)
    _, _, coefs = model.coef_path([0.7, 5.0], [0.3, 0.0])
    other = CoRankRLS(5.0, 0.3, views=views).fit(as_rows(wide), y, qid=qid)
    assert_allclose(coefs[0][0, 1], other.view_coefs_[0], atol=1e-8)
    assert_allclose(model.predict_path(wide, [0.7], [0.3])[:, 0, 0], model.predict(wide), atol=1e-8)
    with pytest.raises(ValueError, match="keeps no sums to update"):
        model.partial_fit(wide, y, qid=qid)


def test_rows_that_views_are_expanded_in_are_kept_on_request(tmp_path, limit):
    X, y, qid = partly_scored()
    wide = np.hstack([X, np.random.default_rng(0).normal(size=(60, 600))])
    views = [View(slice(0, 3)), View(slice(3, 606))]
    for stored in (False, True):
        model = CoRankRLS(0.7, 0.3, views=views, store_path=stored).fit(wide, y, qid=qid)
        expected = model.predict_path(wide, [1.0], [0.1])
        rankrls.save(model, tmp_path / "model.rankrls")
        for again in (rankrls.load(tmp_path / "model.rankrls"), pickle.loads(pickle.dumps(model))):
            assert_allclose(again.predict(wide), model.predict(wide))
            if stored:
                assert_allclose(again.predict_path(wide, [1.0], [0.1]), expected)
            else:
                with pytest.raises(ValueError, match="were not saved with it"):
                    again.predict_path(wide)
    limit(kept_bytes=1000)
    with pytest.raises(ValueError, match="Fit it with store_path=True"):
        CoRankRLS(0.7, 0.3, views=views).fit(wide, y, qid=qid).coef_path()


def test_the_path_of_alpha_and_nu():
    X, y, qid = partly_scored()
    for params in ({}, {"regression": 0.4}):
        model = CoRankRLS(alphas=[0.1, 1.0, 10.0], nus=[0.0, 0.5], views=SPARSE, store_path=True, **params).fit(
            X, y, qid=qid
        )
        alphas, nus, coefs = model.coef_path()
        scores = model.predict_path(X)
        for j, nu in enumerate(nus):
            for k, alpha in enumerate(alphas):
                refit = CoRankRLS(alpha, nu, views=SPARSE, store_path=True, **params).fit(X, y, qid=qid)
                assert_allclose(scores[:, j, k], refit.predict(X), atol=1e-8)
                assert_allclose(coefs[1][j, k], refit.view_coefs_[1], atol=1e-8)
                assert_allclose(model.cv_predictions_path_[:, j, k], refit.cv_predictions_, atol=1e-8)


def test_reasons_of_views_add_up():
    X, y, qid = partly_scored()
    for views in (LINEAR, SPARSE):
        model = CoRankRLS(0.7, 0.3, views=views).fit(X, y, qid=qid)
        shares, scores = model.explain(X[3], X[9]), model.predict(X)
        assert_allclose(shares.sum(), scores[3] - scores[9], atol=1e-10)
    assert_allclose(CoRankRLS(0.7, 0.3, views=LINEAR).fit(X, y, qid=qid).explain(X[3], X[3]), 0)


def test_saved_models_keep_everything(tmp_path):
    X, y, qid = partly_scored()
    model = CoRankRLS(0.7, 0.3, views=SPARSE, regression=0.4).fit(X, y, qid=qid)
    rankrls.save(model, tmp_path / "model.rankrls")
    loaded = rankrls.load(tmp_path / "model.rankrls")
    assert_allclose(loaded.predict(X), model.predict(X))
    assert_allclose(loaded.predict_path(X), model.predict_path(X))


def test_defaults_work_for_twenty_rows():
    X, y, qid = partly_scored(m=20)
    qid = np.repeat(np.arange(5), 4)
    y = np.where(qid < 3, np.arange(20) % 3, np.nan)
    model = CoRankRLS(random_state=0).fit(X, y, qid=qid)
    assert np.isfinite(model.predict(X)).all() and model.alpha_ > 0


# ---------------------------------------------------------------- rows that come and go, and rows in blocks


@pytest.mark.parametrize("params", [{}, {"regression": 0.3}, {"agree_on": "all"}, {"tied_pairs": True}], ids=str)
def test_rows_that_come_later_and_go_again_are_as_if_always_there(params):
    X, y, qid = partly_scored()
    points = [View([0, 1, 2], Gaussian(0.1), X[[0, 7, 30], :3]), View([3, 4, 5])]
    whole = CoRankRLS(0.7, 0.3, views=points, **params).fit(X, y, qid=qid)
    model = CoRankRLS(0.7, 0.3, views=points, **params)
    for part in (qid < 5, qid >= 5):
        model.partial_fit(X[part], y[part], qid=qid[part])
    assert_allclose(model.predict(X), whole.predict(X), atol=1e-8)
    assert_allclose(model.disagreement_, whole.disagreement_)
    assert (model.n_queries_, model.n_pairs_, model.n_unscored_) == (
        whole.n_queries_,
        whole.n_pairs_,
        whole.n_unscored_,
    )
    extra = np.vstack([X[:4] + 1, X[:3] - 1])
    model.partial_fit(extra, None, qid=[0] * 4 + [1] * 3)  # unscored
    model.forget(extra, None, qid=[0] * 4 + [1] * 3)
    model.forget(X[qid >= 5], y[qid >= 5], qid=qid[qid >= 5])
    early = CoRankRLS(0.7, 0.3, views=points, **params).fit(X[qid < 5], y[qid < 5], qid=qid[qid < 5])
    assert_allclose(model.predict(X), early.predict(X), atol=1e-7)


def test_rows_in_files_and_blocks_are_rows_in_memory(tmp_path):
    pd, pl, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    X, y, qid = partly_scored()
    table = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, qid=qid)
    table.to_parquet(tmp_path / "rows.parquet")
    ordered = table.sort_values("qid")
    views = [View(list("abc")), View(list("def"), Gaussian(0.1), 5)]
    expected = CoRankRLS(views=views, alphas=[0.1, 1.0], nus=[0.0, 0.1], random_state=0).fit(
        table[list("abcdef")], y, qid=qid
    )
    for source in (
        tmp_path / "rows.parquet",
        pl.scan_parquet(tmp_path / "rows.parquet"),
        duckdb.sql(f"select * from '{tmp_path / 'rows.parquet'}'"),
        lambda: iter([ordered[:25], ordered[25:]]),
    ):
        model = CoRankRLS(views=views, alphas=[0.1, 1.0], nus=[0.0, 0.1], random_state=0).fit(source, "y", "qid")
        assert_allclose(model.predict(table[list("abcdef")]), expected.predict(table[list("abcdef")]), atol=1e-6)
        assert_allclose(model.cv_scores_, expected.cv_scores_, atol=1e-9)
        assert model.n_unscored_ == expected.n_unscored_
    with pytest.raises(ValueError, match="store_path needs rows in memory"):
        CoRankRLS(views=views, store_path=True).fit(tmp_path / "rows.parquet", "y", "qid")
