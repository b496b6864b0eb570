"""Transductive RankRLS: every form minimises the paper's objective, and nothing else changes the answer."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone

import oracles
from cases import problem
from papers import RankRLS
from rankrls import TransductiveRankRLS
from rankrls.core.features import Identity
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.kernels import Gaussian
from rankrls.problems.primal import Primal
from rankrls.problems.transduction import completion

GAMMA, ALPHA, FIDELITY = 0.05, 0.7, 0.4
WEIGHTINGS = ("items", "queries", "pairs")


def partly_scored(hidden=(0, 2, 5), **options):
    """A case with some queries unscored, one of them of a single row."""
    X, y, qid = problem(**options)
    V = np.isin(qid, hidden)
    return X, np.where(V, np.nan, y), qid, V


# ---------------------------------------------------------------- oracles, dense and slow


def inductive(K, y, qid, V, alpha, weighting):
    """f_S(X_V)."""
    S = ~V
    L = oracles.laplacian(y[S], qid[S], weighting=weighting)
    return K[np.ix_(V, S)] @ oracles.kernel_ridge(K[np.ix_(S, S)], y[S], L, alpha)[0]


def objective(K, y, qid, V, alpha, gamma, weighting):
    """(11) of the paper: refit without each query in turn."""
    f = inductive(K, y, qid, V, alpha, weighting)

    def J(v):
        full, total = y.copy(), gamma * np.sum((v - f) ** 2)
        full[V] = v
        for query in np.unique(qid):
            U, rest = qid == query, qid != query
            L = oracles.laplacian(full[rest], qid[rest], weighting=weighting)
            a = oracles.kernel_ridge(K[np.ix_(rest, rest)], full[rest], L, alpha)[0]
            residual = full[U] - K[np.ix_(U, rest)] @ a
            total += residual @ oracles.laplacian(full[U], qid[U], weighting=weighting) @ residual
        return total

    return J, f


def unit(qid, weighting):
    """The mean weight of a row in the loss, in which fidelity is measured."""
    size = np.array([np.sum(qid == q) for q in qid], dtype=float)
    return {"items": 1.0, "pairs": size.mean(), "queries": np.mean(np.where(size > 1, 2 / np.maximum(size - 1, 1), 0))}[
        weighting
    ]


def theorem_2(K, y, qid, V, alpha, gamma, weighting):
    """The theorem letter by letter, with R = LK + lambda I and the second factor of G being P_{Ubar,U}."""
    m, ix = len(y), np.ix_
    L = oracles.laplacian(np.nan_to_num(y), qid, weighting=weighting)
    P = np.linalg.inv(L @ K + alpha * np.eye(m))
    E, R = np.zeros((m, m)), np.zeros(m)
    for query in np.unique(qid):
        U, Ubar = qid == query, qid != query
        S, H, Z, B = V & U, V & Ubar, ~V & U, ~V & Ubar
        Q = P[ix(Ubar, Ubar)] - P[ix(Ubar, U)] @ np.linalg.solve(P[ix(U, U)], P[ix(U, Ubar)])
        G = np.zeros((m, m))
        G[ix(U, Ubar)] = K[ix(U, Ubar)] @ Q @ L[ix(Ubar, Ubar)]
        E[ix(S, S)] += L[ix(S, S)]
        E[ix(S, H)] -= L[ix(S, S)] @ G[ix(S, H)]
        E[ix(H, S)] -= G[ix(S, H)].T @ L[ix(S, S)]
        E[ix(H, H)] += G[ix(U, H)].T @ L[ix(U, U)] @ G[ix(U, H)]
        R[S] += L[ix(S, S)] @ G[ix(S, B)] @ y[B]
        R[H] += G[ix(Z, H)].T @ L[ix(Z, Z)] @ y[Z] - G[ix(U, H)].T @ L[ix(U, U)] @ G[ix(U, B)] @ y[B]
    f = inductive(K, y, qid, V, alpha, weighting)
    return np.linalg.solve(E[ix(V, V)] + gamma * np.eye(V.sum()), R[V] + gamma * f)


def high_precision(X, p, qid, V, alpha, gamma, digits=60):
    """v_V from p in multi-precision arithmetic, each item counting once."""
    import mpmath

    with mpmath.workdps(digits):
        m, eye = len(p), mpmath.eye
        F = mpmath.matrix(m, m)
        queries = [np.flatnonzero(qid == query).tolist() for query in np.unique(qid)]
        for i, j in ((i, j) for rows in queries for i in rows for j in rows):
            F[i, j] = (i == j) - mpmath.mpf(1) / int(np.sum(qid == qid[i]))
        A = F * mpmath.matrix(X.tolist())
        N = (A * A.T + mpmath.mpf(alpha) * eye(m)) ** -1
        inverse = mpmath.matrix(m, m)  # of the blocks of N
        for rows in queries:
            block = mpmath.matrix([[N[i, j] for j in rows] for i in rows]) ** -1
            for a, i in enumerate(rows):
                for b, j in enumerate(rows):
                    inverse[i, j] = block[a, b]
        MF = inverse * N * F
        J = mpmath.matrix([[MF[i, j] for j in np.flatnonzero(V).tolist()] for i in range(m)])
        gram = J.T * J + mpmath.mpf(gamma) * eye(J.cols)
        step = mpmath.lu_solve(gram, J.T * (MF * mpmath.matrix(p.tolist())))
        return p[V] - np.array([float(value) for value in step])


# ---------------------------------------------------------------- the learned scores


@pytest.mark.parametrize("kernel", [Gaussian(GAMMA), None])
def test_minimises_the_objective_of_the_paper(kernel):
    X, y, qid, V = partly_scored(m=24, n=3, n_queries=5, hidden=(0, 3))
    K = X @ X.T if kernel is None else oracles.gaussian(X, X, GAMMA)
    J, f = objective(K, y, qid, V, ALPHA, FIDELITY, "items")
    found = minimize(J, f, method="BFGS", options={"gtol": 1e-8})
    model = TransductiveRankRLS(ALPHA, FIDELITY, kernel=kernel).fit(X, y, qid=qid)
    assert_allclose(model.transduction_[V], found.x, atol=1e-5)
    assert J(model.transduction_[V]) <= found.fun * (1 + 1e-12)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("form", ["dual", "precomputed", "every row a basis point", "primal"])
def test_equals_theorem_2(form, weighting):
    X, y, qid, V = partly_scored()
    K = X @ X.T if form == "primal" else oracles.gaussian(X, X, GAMMA)
    params = {
        "dual": {"kernel": Gaussian(GAMMA)},
        "precomputed": {"kernel": "precomputed"},
        "every row a basis point": {"kernel": Gaussian(GAMMA), "basis": np.unique(X, axis=0)},
        "primal": {},
    }[form]
    model = TransductiveRankRLS(ALPHA, FIDELITY, weighting=weighting, **params)
    model.fit(K if form == "precomputed" else X, y, qid=qid)
    expected = theorem_2(K, y, qid, V, ALPHA, FIDELITY * unit(qid, weighting), weighting)
    tolerance = 1e-6 if form.startswith("every") else 1e-9
    assert_allclose(model.transduction_[V], expected, atol=tolerance * np.abs(expected).max())
    assert_array_equal(model.transduction_[~V], y[~V])


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("fidelity", [1e-3, 1.0, 1e6])
def test_primal_is_dual_with_the_linear_kernel(fidelity, weighting):
    X, y, qid, _ = partly_scored(m=200, n=5, n_queries=30, hidden=range(10, 25))
    X = X[:, [0, 1, 2, 3, 4, 4]]  # a column twice: the loss has no full rank
    primal = TransductiveRankRLS(ALPHA, fidelity, weighting=weighting).fit(X, y, qid=qid)
    dual = TransductiveRankRLS(ALPHA, fidelity, weighting=weighting, kernel="linear").fit(X, y, qid=qid)
    assert_allclose(primal.transduction_, dual.transduction_, atol=1e-8)
    assert_allclose(primal.predict(X), dual.predict(X), atol=1e-8)


@pytest.mark.parametrize("alpha", [1e-10, 1e-3, 1e3])
@pytest.mark.parametrize("gamma", [1e-6, 1.0, 1e6])
def test_low_rank_form_loses_no_digits(alpha, gamma):
    X, y, qid, V = partly_scored(m=16, n=3, n_queries=4, hidden=(0, 2))
    p = np.where(V, X[:, 0], y)
    F = QueryPreferences(Queries.of(qid), weighting="items")
    solver = completion(Primal(F, Identity(3), X, np.zeros((16, 1)), np.float64), alpha)
    v = solver.scores(p, V, np.array([gamma]))[:, 0]
    assert_allclose(v, high_precision(X, p, qid, V, alpha, gamma), rtol=1e-11)


def test_more_columns_than_rows():
    X, y, qid, V = partly_scored()
    X = np.hstack([X, np.cos(X @ np.ones((6, 50)) * np.arange(50))])
    expected = theorem_2(X @ X.T, y, qid, V, ALPHA, FIDELITY, "items")
    for rows in (X, sparse.csr_array(X)):
        model = TransductiveRankRLS(ALPHA, FIDELITY).fit(rows, y, qid=qid)
        assert_allclose(model.transduction_[V], expected, atol=1e-9)


def test_sparse_rows():
    X, y, qid, _ = partly_scored()
    dense = TransductiveRankRLS(ALPHA, FIDELITY).fit(X, y, qid=qid)
    model = TransductiveRankRLS(ALPHA, FIDELITY).fit(sparse.csr_array(X), y, qid=qid)
    assert_allclose(model.transduction_, dense.transduction_, atol=1e-10)
    assert_allclose(model.predict(sparse.csr_array(X)), dense.predict(X), atol=1e-10)


@pytest.mark.parametrize("params", [{}, {"kernel": Gaussian(GAMMA)}, {"kernel": Gaussian(GAMMA), "basis": 15}])
def test_high_fidelity_is_induction(params):
    X, y, qid, V = partly_scored()
    model = TransductiveRankRLS(ALPHA, 1e12, random_state=0, **params).fit(X, y, qid=qid)
    assert_allclose(model.transduction_[V], model.inductive_.predict(X[V]), atol=1e-9)
    alone = RankRLS(ALPHA, kernel=params.get("kernel"), basis=model.inductive_.basis, tied_pairs=True)
    alone.fit(X[~V], y[~V], qid=qid[~V])
    assert_allclose(model.inductive_.predict(X), alone.predict(X), atol=1e-9)


@pytest.mark.parametrize("params", [{}, {"kernel": Gaussian(GAMMA)}])
def test_order_of_rows_and_names_of_queries_do_not_matter(params):
    X, y, qid, _ = partly_scored()
    model = TransductiveRankRLS(ALPHA, FIDELITY, **params).fit(X, y, qid=qid)
    order = np.random.default_rng(3).permutation(len(y))
    names = np.array([f"query {9 - q}" for q in qid])
    other = TransductiveRankRLS(ALPHA, FIDELITY, **params).fit(X[order], y[order], qid=names[order])
    assert_allclose(other.transduction_, model.transduction_[order], atol=1e-10)
    assert_allclose(other.predict(X), model.predict(X), atol=1e-10)


@pytest.mark.parametrize("params", [{}, {"kernel": Gaussian(GAMMA)}, {"kernel": Gaussian(GAMMA), "basis": range(12)}])
def test_single_precision(params):
    X, y, qid, _ = partly_scored()
    if "basis" in params:
        params = {**params, "basis": np.array(params["basis"])}
    single = TransductiveRankRLS(ALPHA, FIDELITY, **params).fit(X.astype(np.float32), y, qid=qid)
    double = TransductiveRankRLS(ALPHA, FIDELITY, **params).fit(X, y, qid=qid)
    assert_allclose(single.transduction_, double.transduction_, atol=1e-4)
    assert single.predict(X.astype(np.float32)).dtype == np.float32


def test_one_row_alone_keeps_its_inductive_score():
    X, y, qid, _ = partly_scored()
    alone = qid == 0
    assert alone.sum() == 1
    for kernel in (None, Gaussian(GAMMA)):
        model = TransductiveRankRLS(ALPHA, FIDELITY, kernel=kernel).fit(X, y, qid=qid)
        assert_allclose(model.transduction_[alone], model.inductive_.predict(X[alone]), atol=1e-10)


def test_threads_and_large_batches_agree_with_the_dense_form():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), rng.integers(2, 60, 40))
    X = rng.normal(size=(len(qid), 40))
    y = np.where(qid % 3 == 0, np.nan, X[:, 0] + rng.normal(size=len(qid)))
    primal = TransductiveRankRLS(5.0).fit(X, y, qid=qid)
    dual = TransductiveRankRLS(5.0, kernel="linear").fit(X, y, qid=qid)
    assert_allclose(primal.transduction_, dual.transduction_, atol=1e-9)


# ---------------------------------------------------------------- the estimator


def test_new_queries_are_ranked_by_a_model_of_all_completed_queries():
    X, y, qid, V = partly_scored()
    new, _, ids = problem(seed=8)
    model = TransductiveRankRLS(ALPHA, FIDELITY).fit(X, y, qid=qid)
    full = RankRLS(ALPHA, tied_pairs=True).fit(X, model.transduction_, qid=qid)
    assert_allclose(model.predict(new), full.predict(new))
    assert_array_equal(model.rank(new, ids), full.rank(new, ids))
    assert model.score(X[~V], y[~V], qid=qid[~V]) == full.score(X[~V], y[~V], qid=qid[~V])
    assert (model.n_queries_, model.n_unscored_queries_, model.n_features_in_) == (7, 3, 6)


def test_alpha_is_chosen_on_the_scored_queries():
    X, y, qid, V = partly_scored()
    model = TransductiveRankRLS().fit(X, y, qid=qid)
    alone = RankRLS(tied_pairs=True).fit(X[~V], y[~V], qid=qid[~V])
    assert model.alpha_ == alone.alpha_ == model.ranker_.alpha_


def test_fidelity_is_chosen_by_hiding_scored_queries():
    X, y, qid, V = partly_scored(m=60, n_queries=10)
    grid = [0.1, 1.0, 100.0]
    model = TransductiveRankRLS(ALPHA, "auto", fidelities=grid, cv=7).fit(X, y, qid=qid)
    held = np.full((60, 3), np.nan)
    for query in np.unique(qid[~V]):  # as many parts as scored queries: each is hidden in turn
        hidden = np.where(qid == query, np.nan, y)
        for j, fidelity in enumerate(grid):
            part = TransductiveRankRLS(ALPHA, fidelity).fit(X, hidden, qid=qid)
            held[qid == query, j] = part.transduction_[qid == query]
    expected = [oracles.pairwise_accuracy(y[~V], column, qid[~V]) for column in held[~V].T]
    assert_allclose(model.cv_scores_, expected)
    assert model.fidelity_ in grid and max(expected) == expected[grid.index(model.fidelity_)]
    fixed = TransductiveRankRLS(ALPHA, model.fidelity_).fit(X, y, qid=qid)
    assert_allclose(model.transduction_, fixed.transduction_)
    assert not hasattr(model.set_params(fidelity=1.0).fit(X, y, qid=qid), "cv_scores_")


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_default_grid_of_fidelities_goes_with_the_loss(weighting):
    X, y, qid, _ = partly_scored()
    model = TransductiveRankRLS(ALPHA, "auto", weighting=weighting, cv=2, scoring="disagreement_error")
    model.fit(X, y, qid=qid)
    trace = np.trace(oracles.laplacian(np.zeros(40), qid, weighting=weighting))
    assert 0.3 < model.fidelities_[2] * unit(qid, weighting) / (trace / 40) < 3
    assert model.cv_scores_[model.fidelities_ == model.fidelity_] == model.cv_scores_.min()


def test_kernel_width_is_chosen_with_alpha():
    X, y, qid, V = partly_scored()
    for alpha in (ALPHA, "auto"):
        model = TransductiveRankRLS(alpha, kernel=Gaussian("auto")).fit(X, y, qid=qid)
        assert model.inductive_.kernel_ == model.ranker_.kernel_
        errors = TransductiveRankRLS(alpha, kernel=Gaussian("auto"), scoring="disagreement_error").fit(X, y, qid=qid)
        assert errors.ranker_.kernel_ == model.ranker_.kernel_
        fixed = TransductiveRankRLS(model.alpha_, kernel=model.ranker_.kernel_).fit(X, y, qid=qid)
        assert_allclose(fixed.transduction_[V], model.transduction_[V], atol=1e-10)


def test_data_frame_with_a_query_column():
    pandas = pytest.importorskip("pandas")
    X, y, qid, _ = partly_scored()
    frame = pandas.DataFrame(X, columns=[f"feature {j}" for j in range(6)]).assign(qid=qid)
    model = TransductiveRankRLS(ALPHA).fit(frame, pandas.Series(y))
    reference = TransductiveRankRLS(ALPHA).fit(X, y, qid=qid)
    assert_allclose(model.transduction_, reference.transduction_)
    assert_allclose(model.predict(frame), reference.predict(X))
    assert_array_equal(model.rank(frame), reference.rank(X, qid))


def test_clone_pickle_and_refit_leave_parameters_and_data_alone():
    X, y, qid, _ = partly_scored()
    before = X.copy(), y.copy()
    model = TransductiveRankRLS(kernel="rbf", basis=10, random_state=0)
    params = model.get_params()
    scores = model.fit(X, y, qid=qid).transduction_
    assert model.get_params() == params == clone(model).get_params()
    assert_array_equal(X, before[0])
    assert_array_equal(y, before[1])
    assert_array_equal(clone(model).fit(X, y, qid=qid).transduction_, scores)
    assert_allclose(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


# ---------------------------------------------------------------- bad input


def test_nothing_to_transduce_gives_a_warning():
    X, y, qid = problem()
    for fidelity in (1.0, "auto"):
        with pytest.warns(UserWarning, match="nothing to transduce"):
            model = TransductiveRankRLS(ALPHA, fidelity).fit(X, y, qid=qid)
        assert_array_equal(model.transduction_, y)
        assert_allclose(model.predict(X), RankRLS(ALPHA, tied_pairs=True).fit(X, y, qid=qid).predict(X))


def errors():
    X, y, qid, _ = partly_scored()
    ties = np.where(np.isin(qid, (5, 6)), problem()[1], np.nan)  # all labels of query 6 are equal
    wide = sparse.random_array((5000, 4001), density=1e-4, rng=0, format="csr")
    many = np.arange(5000) // 10
    half = np.where(many % 2, np.arange(5000.0), np.nan)
    return {
        "none scored": ({}, X, np.full(40, np.nan), qid, "none of the 40 rows is scored"),
        "no queries": ({}, X, y, None, "needs qid"),
        "infinite": (
            {},
            X,
            np.where(np.arange(40) == np.argmin(np.isnan(y)), np.inf, y),
            qid,
            "y must not be infinite",
        ),
        "too short": ({}, X, y[:-1], qid, "y must hold one number per row"),
        "negative": ({"fidelity": -1.0}, X, y, qid, "fidelity must be a positive number.*got -1.0"),
        "nil": ({"fidelity": 0}, X, y, qid, "fidelity must be a positive number"),
        "infinity": ({"fidelity": np.inf}, X, y, qid, "for the inductive scores use RankRLS"),
        "misspelt": ({"fidelity": "atuo"}, X, y, qid, "did you mean 'auto'"),
        "grid": ({"fidelity": "auto", "fidelities": [1, -2], "cv": 2}, X, y, qid, "got -2"),
        "empty grid": ({"fidelity": "auto", "fidelities": [], "cv": 2}, X, y, qid, "fidelities is empty"),
        "folds": ({"fidelity": "auto", "cv": 9}, X, y, qid, "cv=9 parts of 4 scored queries"),
        "folds of ties": (
            {"alpha": 1.0, "fidelity": "auto", "cv": 2},
            X,
            ties,
            qid,
            "cv=2: no comparable.*as a number",
        ),
        "no number of folds": ({"fidelity": "auto", "cv": "leave"}, X, y, qid, "cv must be a number"),
        "alpha": ({"alpha": -1.0}, X, y, qid, "alpha must be a finite number, zero or positive"),
        "weighting": ({"weighting": "item"}, X, y, qid, "did you mean 'items'"),
        "basis": ({"basis": 5}, X, y, qid, "basis needs a kernel"),
        "not square": ({"kernel": "precomputed"}, X, y, qid, "must be square"),
        "too wide": ({"alpha": 1.0}, wide, half, many, "use a basis"),
    }


@pytest.mark.parametrize("case", errors())
def test_errors_say_what_was_found(case):
    params, X, y, qid, message = errors()[case]
    with pytest.raises(ValueError, match=message):
        TransductiveRankRLS(**params).fit(X, y, qid=qid)


# ---------------------------------------------------------------- any folds, weights, ties and regression


def held_out_costs(K, v, levels, qid, folds, alpha, u, **loss):
    """The sum over folds of the loss of v there under the model of all other rows, scored v."""
    total = 0.0
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(v)), fold)
        L = oracles.laplacian(levels[rest], qid[rest], u=u[rest], **loss)
        a, _ = oracles.kernel_ridge(K[np.ix_(rest, rest)], v[rest], L, alpha, intercept=loss["beta"] > 0)
        f, one = K[np.ix_(fold, rest)] @ a, np.ones(len(rest))
        if loss["beta"] > 0:
            f = f + one @ L @ (v[rest] - K[np.ix_(rest, rest)] @ a) / (one @ L @ one)
        r = v[fold] - f
        total += r @ oracles.laplacian(levels[fold], qid[fold], u=u[fold], **loss) @ r
    return total


CASES = {
    "folds": {"folds": True},
    "weights": {"weights": True},
    "ties": {"tied_pairs": False},
    "regression": {"regression": 0.4},
    "partly scored": {"cut": True},
    "everything": {"folds": True, "weights": True, "tied_pairs": False, "regression": 0.4, "cut": True},
}


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("case", CASES)
def test_any_folds_minimise_the_held_out_cost(case, weighting):
    options = dict(CASES[case])
    X, y, qid, _ = partly_scored()
    y = y.copy()
    if options.pop("cut", False):
        y[np.flatnonzero(qid == qid[~np.isnan(y)][0])[:2]] = np.nan
    u = 1.0 + np.arange(40) % 3 if options.pop("weights", False) else np.ones(40)
    labels = np.unique(qid, return_inverse=True)[1]
    groups = labels // 2 if options.pop("folds", False) else labels
    folds = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    V, K = np.isnan(y), X @ X.T
    tied, beta = options.get("tied_pairs", True), options.get("regression", 0.0)
    levels = np.where(V, 1000.0 + np.arange(40), y)
    loss = {"tied": tied, "weighting": weighting, "beta": beta}
    model = TransductiveRankRLS(
        ALPHA, FIDELITY, weighting=weighting, folds=groups if "folds" in CASES[case] else None, **options
    )
    model.fit(X, y, qid=qid, sample_weight=None if np.all(u == 1) else u)
    p = np.where(V, model.inductive_.predict(X), y)
    S = np.array([u[qid == q].sum() for q in qid])
    mass = np.array([_mass(levels[qid == q], u[qid == q], tied) for q in qid])
    cS = {"items": np.ones(40), "pairs": S, "queries": S / np.where(mass > 0, mass, 1)}[weighting]
    if not tied or weighting == "queries":  # rows of a query without a pair have no weight in the loss
        cS = np.where(mass > 0, cS, 0)
    scale = np.average(beta + (1 - beta) * cS, weights=u)

    def J(x):
        v = y.copy()
        v[V] = x
        own = scale * FIDELITY * np.sum(u[V] * (x - p[V]) ** 2)
        return held_out_costs(K, v, levels, qid, folds, ALPHA, u, **loss) + own

    n, E = int(V.sum()), np.eye(int(V.sum()))
    x, found = model.transduction_[V], J(model.transduction_[V])
    gradient = np.array([(J(x + e) - J(x - e)) / 2 for e in E])
    curvature = np.array([J(x + e) + J(x - e) - 2 * found for e in E])
    assert n and np.all(np.abs(gradient) <= 1e-6 * np.maximum(1, np.abs(curvature)))


def _mass(levels, u, tied):
    if tied:
        return u.sum() * (u.sum() - 1) / 2
    return sum(u[i] * u[j] for i in range(len(u)) for j in range(i) if levels[i] != levels[j])


def test_folds_are_unions_of_queries():
    X, y, qid, _ = partly_scored()
    with pytest.raises(ValueError, match="folds cut query"):
        TransductiveRankRLS(1.0, folds=np.arange(40) % 2).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="at least two folds"):
        TransductiveRankRLS(1.0, folds=np.zeros(40)).fit(X, y, qid=qid)
    same = TransductiveRankRLS(1.0, folds=qid).fit(X, y, qid=qid)
    assert_allclose(same.transduction_, TransductiveRankRLS(1.0).fit(X, y, qid=qid).transduction_, atol=1e-8)
    auto = TransductiveRankRLS(1.0, "auto", folds=qid, cv=3).fit(X, y, qid=qid)
    assert auto.fidelity_ in auto.fidelities_
    assert auto.predict_path(X, [1.0, 2.0]).shape == (40, 2)


@pytest.mark.parametrize("store_path", [False, True])
def test_paths_are_over_the_alphas_that_were_tried(store_path):
    X, y, qid, _ = partly_scored()
    model = TransductiveRankRLS(alphas=[0.1, 1.0, 10.0], store_path=store_path).fit(X, y, qid=qid)
    alphas, coefs = model.coef_path()
    assert alphas.tolist() == [0.1, 1.0, 10.0] and coefs.shape == (3, X.shape[1])
    assert_allclose(model.predict_path(X), X @ coefs.T, atol=1e-12)
    kernel = TransductiveRankRLS(alphas=[0.1, 1.0], kernel="rbf", store_path=store_path).fit(X, y, qid=qid)
    assert kernel.dual_coef_path()[1].shape == (2, len(X)) and kernel.predict_path(X).shape == (len(X), 2)
