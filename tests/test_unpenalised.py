"""alpha = 0: the answer if the problem determines one, else the documented error."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rankrls import ConditionalRankRLS, CoRankRLS, RankRLS, TransductiveRankRLS, View

RNG = np.random.default_rng(0)
M = 60
QID = np.repeat(np.arange(12), 5)
X = RNG.normal(size=(M, 4))
Y = X @ [1.0, -1.0, 0.5, 0.2] + RNG.normal(size=M)
PARTLY = np.where(QID < 9, Y, np.nan)
VIEWS = [View([0, 1]), View([2, 3])]
TWICE = np.hstack([X, X[:, :1]])
SAME = [View([0, 4]), View([2, 3])]


def laplacian(rows, weight=1.0):
    """Of all pairs of a query among some rows, each row counting once in its query, as weighting="items" has it."""
    L = np.zeros((M, M))
    for q in np.unique(QID[rows]):
        own = rows[QID[rows] == q]
        L[np.ix_(own, own)] = np.eye(len(own)) - 1 / len(own)
    return weight * L


@pytest.mark.parametrize("nu", [0.0, 0.3])
def test_views_solve_the_normal_equations(nu):
    scored, unscored = np.flatnonzero(QID < 9), np.flatnonzero(QID >= 9)
    L, U = laplacian(scored), laplacian(unscored)
    Z1, Z2, y = X[:, :2], X[:, 2:], np.nan_to_num(PARTLY)
    agree = 2 * nu
    A = np.block(
        [
            [Z1.T @ (L + agree * U) @ Z1, -agree * Z1.T @ U @ Z2],
            [-agree * Z2.T @ U @ Z1, Z2.T @ (L + agree * U) @ Z2],
        ]
    )
    a = np.linalg.solve(A, np.concatenate([Z1.T @ L @ y, Z2.T @ L @ y]))
    model = CoRankRLS(0.0, nu, views=VIEWS, tied_pairs=True).fit(X, PARTLY, qid=QID)
    assert_allclose(np.concatenate(model.view_coefs_), a, rtol=1e-9)


def test_views_held_out_are_refits():
    model = CoRankRLS(0.0, 0.3, views=VIEWS, store_path=True).fit(X, PARTLY, qid=QID)
    out = QID == 4
    refit = CoRankRLS(0.0, 0.3, views=VIEWS).fit(X[~out], PARTLY[~out], qid=QID[~out])
    assert_allclose(model.cv_predictions_[out], refit.predict(X[out]), atol=1e-8)
    assert_allclose(model.predict_path(X, alphas=[0.0, 1.0])[:, 0, 0], model.predict(X), atol=1e-8)


@pytest.mark.parametrize("folds", [None, QID // 3])
def test_transduction_minimises_the_objective(folds):
    unscored = np.isnan(PARTLY)
    model = TransductiveRankRLS(0.0, 0.5, folds=folds).fit(X, PARTLY, qid=QID)
    prior = RankRLS(0.0, tied_pairs=True, scale=None).fit(X[~unscored], Y[~unscored], qid=QID[~unscored]).predict(X)
    labels, L = QID if folds is None else folds, laplacian(np.arange(M))

    def residuals(v):
        """Held-out residuals of every fold by refits, and those of fidelity."""
        found = []
        for fold in np.unique(labels):
            U, rest = np.flatnonzero(labels == fold), np.flatnonzero(labels != fold)
            w = np.linalg.solve(
                X[rest].T @ L[np.ix_(rest, rest)] @ X[rest], X[rest].T @ L[np.ix_(rest, rest)] @ v[rest]
            )
            found.append(L[np.ix_(U, U)] @ (v[U] - X[U] @ w))
        return np.concatenate([*found, np.sqrt(0.5) * (v - prior)[unscored]])

    base = np.where(unscored, 0.0, Y)
    J = np.column_stack([residuals(base + step) - residuals(base) for step in np.eye(M)[unscored]])
    best = np.linalg.lstsq(J, -residuals(base), rcond=None)[0]
    assert_allclose(model.transduction_[unscored], best, rtol=1e-7, atol=1e-8)


def test_a_complete_relation_is_projected_on_the_features():
    objects, targets, relation = X[:20], RNG.normal(size=(15, 3)), RNG.normal(size=(20, 15))
    model = ConditionalRankRLS(0.0, loss="regression").fit(objects, relation, targets)
    onto = lambda A: A @ np.linalg.pinv(A)
    assert_allclose(model.predict(objects, targets), onto(objects) @ relation @ onto(targets).T, atol=1e-10)
    for options in ({}, {"relation": "symmetric"}):
        some = relation[:15] + relation[:15].T
        small = ConditionalRankRLS(1e-9, **options).fit(objects[:15], some).predict(objects)
        assert_allclose(ConditionalRankRLS(0.0, **options).fit(objects[:15], some).predict(objects), small, atol=1e-7)


def test_undetermined_problems_are_refused():
    alone = np.column_stack([X, np.where(QID == 2, Y, 0.0)])  # a column that only query 2 has
    with pytest.raises(ValueError, match="they determine 3 of 4"):
        CoRankRLS(0.0, 0.1, views=SAME).fit(TWICE, PARTLY, qid=QID)
    with pytest.raises(ValueError, match="they determine 4 of 5"):
        TransductiveRankRLS(0.0).fit(TWICE, PARTLY, qid=QID)
    with pytest.raises(ValueError, match="without query 2 the rows do not"):
        TransductiveRankRLS(0.0).fit(alone, PARTLY, qid=QID)
    with pytest.raises(ValueError, match="without query 2 the rows do not"):
        TransductiveRankRLS(0.0, regression=0.5).fit(alone, PARTLY, qid=QID)
    with pytest.raises(ValueError, match="does not determine a model with a kernel on every row"):
        TransductiveRankRLS(0.0, kernel="rbf").fit(X, PARTLY, qid=QID)
    with pytest.raises(ValueError, match="4 of 5 columns of X are independent"):
        ConditionalRankRLS(0.0).fit(TWICE[:10], RNG.normal(size=(10, 10)))
    with pytest.raises(ValueError, match="a kernel fits any values"):
        ConditionalRankRLS(0.0, kernel="rbf").fit(X[:10], RNG.normal(size=(10, 10)))
