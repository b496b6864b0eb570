"""Sign constraints: weights compared with SciPy's solvers, and held-out scores with refits."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear

import oracles
import rankrls
from cases import problem, weights
from papers import RankRLS
from rankrls import RankingPursuit, load, save
from rankrls.core.signs import signed_solution

X, y, qid = problem(m=60)
BOTH = {0: 1, 3: -1, 5: -1}


def expected(X, y, qid, signs, alpha, u=None, **loss):
    """Bounded least squares on the square root of the dense normal equations."""
    L = oracles.laplacian(y, qid, u=u, **loss)
    M = X.T @ L @ X + alpha * np.eye(X.shape[1])
    C = np.linalg.cholesky(M)
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    return lsq_linear(C.T, np.linalg.solve(C, X.T @ L @ y), (low, high), method="bvls", tol=1e-14).x


@pytest.mark.parametrize("seed", range(30))
def test_pivoting_finds_the_minimum(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    A = rng.normal(size=(n + 2, n)) @ rng.normal(size=(n, n))
    M, c, signs = A.T @ A + 1e-3 * np.eye(n), rng.normal(size=n), rng.integers(-1, 2, n)
    v = signed_solution(M, c, signs)
    gradient = c - M @ v
    assert np.all(signs * v >= 0)
    assert_allclose(gradient[(signs == 0) | (v != 0)], 0, atol=1e-7 * np.abs(c).max())
    assert np.all((signs * gradient)[(signs != 0) & (v == 0)] <= 1e-9)
    assert_allclose(signed_solution(M, c, signs, rng.random(n) < 0.5), v, atol=1e-7)


def test_pivoting_of_an_indefinite_matrix_ends():
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        signed_solution(np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2), np.array([1, -1]))


@pytest.mark.parametrize("params", [{}, {"tied_pairs": True}, {"weighting": "pairs"}])
@pytest.mark.parametrize("positive", [True, [1, 2], BOTH], ids=str)
def test_weights_have_their_signs(params, positive):
    loss = {"tied": params.get("tied_pairs", False), "weighting": params.get("weighting", "items")}
    signs = np.ones(6) if positive is True else np.zeros(6)
    for column in positive if positive is not True else ():
        signs[column] = positive[column] if isinstance(positive, dict) else 1
    u = weights(60)
    for alpha in (1e-3, 1.0, 100.0):
        model = RankRLS(alpha, positive=positive, **params).fit(X, y, qid=qid, sample_weight=u)
        assert_allclose(model.coef_, expected(X, y, qid, signs, alpha, u, **loss), atol=1e-7)
        assert np.all(signs * model.coef_ >= 0)


@pytest.mark.parametrize("cv", ["leave-query-out", 3])
def test_held_out_scores_are_those_of_refits(cv):
    model = RankRLS(positive=BOTH, cv=cv, tied_pairs=True).fit(X, y, qid=qid)
    assert model.alphas_.shape == model.cv_scores_.shape
    if cv == "leave-query-out":
        for q in np.unique(qid):
            out = qid == q
            again = RankRLS(model.alpha_, positive=BOTH, tied_pairs=True).fit(X[~out], y[~out], qid=qid[~out])
            assert_allclose(model.cv_predictions_[out], again.predict(X[out]), atol=1e-8)


@pytest.mark.parametrize("weighting", ["items", "pairs"])
@pytest.mark.parametrize("weights", [None, "given"])
@pytest.mark.parametrize("length", [10, 40])
def test_zeros_that_change_without_a_query(weighting, weights, length):
    """Many columns without a signal: leaving a query out moves some of their weights to or from zero.

    Short queries are left out by a system of their rows, long ones by one of the columns.
    """
    rng = np.random.default_rng(0)
    n_queries = 200 // length
    Z, queries = rng.normal(size=(200, 25)), rng.permutation(np.repeat(np.arange(n_queries), length))
    labels = np.round(Z[:, 0] - Z[:, 1] + rng.normal(size=200))
    u = None if weights is None else rng.integers(1, 4, 200).astype(float)
    params = {"positive": [*range(20)], "weighting": weighting}
    model = RankRLS(alphas=[0.01, 1.0, 100.0], store_path=True, **params)
    model.fit(Z, labels, qid=queries, sample_weight=u)
    moved = 0
    for q in range(n_queries):
        out = queries == q
        for k, alpha in enumerate(model.alphas_):
            rest = RankRLS(alpha, **params).fit(
                Z[~out], labels[~out], qid=queries[~out], sample_weight=None if u is None else u[~out]
            )
            assert_allclose(model.cv_predictions_path_[out, k], rest.predict(Z[out]), rtol=1e-7, atol=1e-9)
            whole = RankRLS(alpha, **params).fit(Z, labels, qid=queries, sample_weight=u)
            moved += np.any((rest.coef_ == 0) != (whole.coef_ == 0))
    assert n_queries < moved <= 3 * n_queries


def test_constraints_that_hold_anyway_change_nothing():
    free = RankRLS(1.0).fit(X, y, qid=qid)
    signs = {j: int(np.sign(w)) for j, w in enumerate(free.coef_)}
    assert_allclose(RankRLS(1.0, positive=signs).fit(X, y, qid=qid).coef_, free.coef_, atol=1e-10)


def test_path_pairs_queries_and_files(tmp_path):
    model = RankRLS(positive=True).fit(X, y, qid=qid)
    alphas, coefs = model.coef_path()
    assert np.all(coefs >= 0)
    assert_allclose(coefs[list(alphas).index(model.alpha_)], model.coef_, atol=1e-9)
    early = qid < 4
    parts = RankRLS(1.0, positive=True).fit(X[early], y[early], qid=qid[early])
    parts.partial_fit(X[~early], y[~early], qid=qid[~early])
    assert_allclose(parts.coef_, RankRLS(1.0, positive=True).fit(X, y, qid=qid).coef_, atol=1e-9)
    assert np.all(parts.add_pairs(X, [[4, 8]]).coef_ >= 0)
    save(model, tmp_path / "model.rankrls")
    assert_allclose(load(tmp_path / "model.rankrls").coef_, model.coef_)


@pytest.mark.parametrize("params", [{}, {"scale": "auto"}], ids=str)
@pytest.mark.parametrize("linked", [True, False], ids=["linked", "components"])
def test_preferences_alone(params, linked):
    """Against bounded least squares on the differences; every pair, or component of pairs, held out by refits."""
    rng = np.random.default_rng(0)
    first = rng.permutation(60) if linked else np.arange(60)
    pairs = np.column_stack([first, np.roll(first, -1)])[:: 1 if linked else 2]
    pairs = np.where((y[pairs[:, 0]] > y[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    signs, u = np.array([1, 0, 0, -1, 0, -1]), rng.uniform(0.5, 2.0, len(pairs))
    model = rankrls.RankRLS(**{"scale": None, **params}, positive=BOTH).fit_pairs(X, pairs, weights=u)
    units = getattr(model, "scale_", None)
    units = np.ones(6) if units is None else units

    def solved(kept, alpha):
        D, z = (X[pairs[kept, 0]] - X[pairs[kept, 1]]) / units * np.sqrt(u[kept, None]), np.sqrt(u[kept])
        A, b = np.vstack([D, np.sqrt(alpha) * np.eye(6)]), np.append(z, np.zeros(6))
        low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
        return lsq_linear(A, b, (low, high), method="bvls", tol=1e-14).x / units

    assert_allclose(model.coef_, solved(np.arange(len(pairs)), model.alpha_), atol=1e-8)
    assert np.all(signs * model.coef_ >= 0)
    for alpha, score in zip(model.alphas_, model.cv_scores_, strict=True):
        held = [solved(np.flatnonzero(np.arange(len(pairs)) != p), alpha) for p in range(len(pairs))]
        margins = np.einsum("pn,pn->p", np.array(held), X[pairs[:, 0]] - X[pairs[:, 1]])
        assert_allclose(score, np.average((1 + np.sign(margins)) / 2, weights=u), atol=1e-12)
    before = model.coef_
    model.partial_fit(X, y, qid=qid)
    assert np.all(signs * model.coef_ >= 0) and np.isfinite(model.cv_scores_).all()
    assert_allclose(model.forget(X, y, qid=qid).coef_, before, atol=1e-7)


def test_columns_of_any_units():
    """Raw features reach from 1e-6 to 1e9: no warning of an ill-conditioned matrix, and the same ranking."""
    units = np.array([1e9, 1e-6, 1.0, 1e6, 1e-3, 1.0])
    signed = [rankrls.RankRLS(positive=True).fit(Z, y, qid=qid) for Z in (X, X * units)]
    assert_allclose(signed[1].coef_ * units, signed[0].coef_, rtol=1e-6, atol=1e-9)


def test_more_features_than_rows_and_one_query():
    wide = np.random.default_rng(0).normal(size=(12, 30))
    labels = np.arange(12.0)
    model = RankRLS(positive=True).fit(wide, labels)
    assert np.all(model.coef_ >= 0) and model.coef_.any()


def test_columns_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["bm25", "b", "c", "spam", "e", "f"])
    model = RankRLS(1.0, positive={"bm25": +1, "spam": -1}).fit(frame, y, qid=qid)
    assert model.coef_[0] >= 0 >= model.coef_[3]
    assert not np.signbit(model.coef_[model.coef_ == 0]).any()
    one = RankRLS(1.0, positive="spam").fit(frame, y, qid=qid)
    assert_allclose(one.coef_, RankRLS(1.0, positive=["spam"]).fit(frame, y, qid=qid).coef_)
    with pytest.raises(ValueError, match="positive names column 'bm26', which X does not have; it has bm25, b"):
        RankRLS(positive=["bm26"]).fit(frame, y, qid=qid)


@pytest.mark.parametrize(
    ("positive", "message"),
    [
        ([9], "positive names column 9, but X has columns 0 to 5"),
        ({0: 2}, r"the sign of a weight is \+1 or -1, got 2 for column 0"),
        (["a"], r"its columns have no names: give numbers, or a data frame .*set_output"),
        (1, "positive must be True, columns, or a dict"),
    ],
)
def test_errors_say_what_to_do(positive, message):
    with pytest.raises(ValueError, match=message):
        RankRLS(positive=positive).fit(X, y, qid=qid)


def test_options_that_cannot_be_combined_with_signs():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    with pytest.raises(ValueError, match="requires both signs for column"):
        RankRLS(positive={"a": 1, 0: -1}).fit(frame, y, qid=qid)
    with pytest.raises(
        ValueError, match="positive cannot be combined with a kernel, whose weights belong to points: fit a lin"
    ):
        RankRLS(kernel="rbf", positive=True).fit(X, y, qid=qid)
    with pytest.raises(
        ValueError, match=r"a kernel, whose weights belong to points: pass kernel=None \(--kernel linear"
    ):
        RankingPursuit(3, positive=True).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="exact pairs cannot be combined with positive="):
        RankRLS(1.0, positive=True).fit(X, y, qid=qid).add_pairs(X, [[4, 8]], exact=True)


@pytest.mark.parametrize(
    "params", [{}, {"cv": 3}, {"alpha": 2.0}, {"scale": "auto"}, {"weighting": "queries"}], ids=str
)
def test_rows_in_blocks(params, tmp_path):
    """The same signed model from a file as from memory, held out exactly in both."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="needs rankrls[arrow]")
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, qid=qid)
    order = np.random.default_rng(0).permutation(len(frame))
    frame.iloc[order].to_parquet(tmp_path / "rows.parquet", row_group_size=13)
    positive = {"a": 1, "c": -1, "f": 1}
    there = RankRLS(positive=positive, **params).fit(str(tmp_path / "rows.parquet"))
    here = RankRLS(positive=positive, **params).fit(frame[list("abcdef")], y, qid=qid)
    if "cv" not in params:  # folds of a file come from a hash of query ids
        assert_allclose(there.coef_, here.coef_, rtol=1e-8, atol=1e-10)
        assert_allclose(there.alpha_, here.alpha_)
    if "alpha" not in params and "cv" not in params:
        assert_allclose(there.cv_scores_, here.cv_scores_, rtol=1e-9)
    assert there.coef_[0] >= 0 >= there.coef_[2]
    first = RankRLS(2.0, positive=True).partial_fit(X[qid < 4], y[qid < 4], qid=qid[qid < 4])
    rest = frame[frame["qid"] >= 4]
    rest = rest.sort_values("qid")
    first.partial_fit(lambda: iter([(rest[list("abcdef")].to_numpy(), rest["y"], rest["qid"])]))
    assert_allclose(first.coef_, RankRLS(2.0, positive=True).fit(X, y, qid=qid).coef_, rtol=1e-8, atol=1e-10)


def greedy(X, y, qid, signs, n):
    """Columns one after the other, each that would lower the loss most if those with a weight were free to follow."""
    L = oracles.laplacian(y, qid, tied=False, weighting="items")
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    chosen, w, paths = [], np.zeros(0), []
    values, vectors = np.linalg.eigh(L)
    F = (vectors * np.sqrt(np.maximum(values, 0))).T  # F'F = L
    A, z = F @ X, F @ y
    for _ in range(n):
        residual, gains = z - A[:, chosen] @ w, np.zeros(X.shape[1])
        active = [j for j, v in zip(chosen, w, strict=True) if v != 0]
        for j in set(range(X.shape[1])) - set(chosen):
            rest = A[:, j] - A[:, active] @ np.linalg.lstsq(A[:, active], A[:, j], rcond=None)[0]
            e = A[:, j] @ residual
            gains[j] = e**2 / (rest @ rest) if signs[j] == 0 or signs[j] * e > 0 else 0.0
        if gains.max() <= 1e-12:
            break
        chosen.append(int(gains.argmax()))
        w = lsq_linear(A[:, chosen], z, (low[chosen], high[chosen]), method="bvls", tol=1e-14).x
        w[np.abs(w) < 1e-9] = 0
        paths.append(w)
    return chosen, paths


@pytest.mark.parametrize("positive", [True, BOTH, {0: -1, 1: -1}], ids=str)
def test_pursuit_with_signs(positive):
    signs = np.zeros(6)
    for j, s in (dict.fromkeys(range(6), 1) if positive is True else positive).items():
        signs[j] = s
    model = RankingPursuit(6, kernel=None, positive=positive)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may stop before six columns
        model.fit(X, y, qid=qid)
    chosen, paths = greedy(X, y, qid, signs, 6)
    assert model.path_.indices.tolist() == chosen
    for p, w in enumerate(paths):
        assert_allclose(model.path_.coefs[p, : p + 1], w, atol=1e-8)
    assert np.all(signs * model.coef_ >= 0)
    assert np.all(np.diff(model.path_.errors) <= 0)
    auto = RankingPursuit(kernel=None, positive=positive, max_basis=4, cv=3).fit(X, y, qid=qid)
    assert np.all(signs * auto.coef_ >= 0)
    assert np.isfinite(auto.cv_predictions_).all()


def test_constraints_of_a_pursuit_that_hold_anyway_change_nothing():
    plain = RankingPursuit(3, kernel=None).fit(X, y, qid=qid)
    signs = {int(j): int(np.sign(w)) for w, j in zip(plain.path_.coefs[2], plain.path_.indices, strict=True)}
    stays = all(
        (np.sign(row[: p + 1]) == np.sign(plain.path_.coefs[2][: p + 1])).all()
        for p, row in enumerate(plain.path_.coefs)
    )
    assert stays
    signed = RankingPursuit(3, kernel=None, positive=signs).fit(X, y, qid=qid)
    assert_allclose(signed.coef_, plain.coef_, atol=1e-9)
    for params in ({"kernel": "rbf"}, {"kernel": None, "backfit": False}):
        with pytest.raises(ValueError, match="positive cannot be combined with"):
            RankingPursuit(3, positive=True, **params).fit(X, y, qid=qid)
