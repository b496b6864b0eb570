"""A lattice of exact equalities: each row of the table is "this model = that one".

A side of a row is a function (X, y, qid) -> scores of X, up to a constant per query where ranking does not see it.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import oracles
from cases import problem, weights
from papers import RankRLS
from rankrls import ConditionalRankRLS, CoRankRLS, RankingPursuit, TransductiveRankRLS, TwoStepRLS, View
from rankrls.core.features import Identity
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.kernels import Gaussian, Linear, Spectrum
from rankrls.problems.iterative import Iterative
from rankrls.problems.primal import Primal

GAMMA = 0.05
U = weights(40)


def rank_rls(alpha=0.7, *, weights=None, tied_pairs=True, **params):
    params["tied_pairs"] = tied_pairs
    return lambda X, y, qid: RankRLS(alpha, **params).fit(X, y, qid=qid, sample_weight=weights).predict(X)


def oracle(alpha=0.7, *, kernel=False, u=None, **loss):
    def scores(X, y, qid):
        Lt = oracles.laplacian(y, qid, u=u, **loss)
        if kernel:
            K = oracles.gaussian(X, X, GAMMA)
            return K @ oracles.kernel_ridge(K, y, Lt, alpha, intercept=loss.get("beta", 0) > 0)[0]
        w, b = oracles.ridge(X, y, Lt, alpha, intercept=loss.get("beta", 0) > 0)
        return X @ w + b

    return scores


def explicit_pairs(*, alpha=0.7, kernel=None, rows=np.asarray, positive=False):
    def scores(X, y, qid):
        pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]]
        margins = [y[i] - y[j] for i, j in pairs]
        model = RankRLS(alpha, kernel=kernel, positive=positive)
        return model.fit_pairs(rows(X), pairs, margins=margins).predict(rows(X))

    return scores


def blocks(*, forget=False, **params):
    """Learned in three parts and, with `forget`, one more that is removed again."""

    def scores(X, y, qid):
        model = RankRLS(0.7, **{"tied_pairs": True, **params})
        for part in (qid < 2, (qid >= 2) & (qid < 5), qid >= 5):
            model.partial_fit(X[part], y[part], qid=qid[part])
        if forget:
            other = problem(seed=9)
            model.partial_fit(other[0], other[1], qid=other[2])
            model.forget(other[0], other[1], qid=other[2])
        return model.predict(X)

    return scores


def scattered_parts(**params):
    """A table in batches of seven rows, whose queries lie in several of them."""

    def scores(X, y, qid):
        table = pa.table({**{f"f{j}": X[:, j] for j in range(X.shape[1])}, "y": y, "qid": qid})
        source = pa.dataset.dataset(pa.Table.from_batches(table.to_batches(7)))
        model = RankRLS(0.7, **{"tied_pairs": True, **params}).fit(source, y="y", qid="qid")
        return model.predict(pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]))

    return scores


def conjugate_gradients(tied, beta):
    def scores(X, y, qid):
        F = QueryPreferences(Queries.of(qid), None if tied else y, regression=beta)
        model = Iterative(F, sparse.csr_array(X), y[:, None], tol=1e-13).model(0.7)
        return (X @ model.coef + model.intercept).ravel()

    return scores


def conditional(X, y, qid):
    """Queries condition, items are ranked, and all queries have the same features: a single one."""
    model = ConditionalRankRLS(0.7, target_kernel="linear", kernel="precomputed", tol=1e-13)
    edges = np.column_stack([qid, np.arange(len(y))])
    return model.fit_edges(np.ones((7, 7)), edges, y, X).predict(np.ones((1, 7)), X).ravel()


def normal_equations(tied, beta):
    def scores(X, y, qid):
        F = QueryPreferences(Queries.of(qid), None if tied else y, regression=beta)
        model = Primal(F, Identity(X.shape[1]), X, y[:, None], np.float64).model(0.7)
        return (X @ model.coef + model.intercept).ravel()

    return scores


def sparse_input(**params):
    params = {"tied_pairs": True, **params}
    return lambda X, y, qid: RankRLS(0.7, **params).fit(sparse.csr_array(X), y, qid=qid).predict(sparse.csr_array(X))


def repeated(**params):
    def scores(X, y, qid):
        n = U.astype(int)
        return (
            RankRLS(0.7, **{"tied_pairs": True, **params})
            .fit(X.repeat(n, axis=0), y.repeat(n), qid=qid.repeat(n))
            .predict(X)
        )

    return scores


def ridge_regression(X, y, qid):
    return Ridge(alpha=0.7).fit(X, y).predict(X)


def precomputed(X, y, qid):
    K = Gaussian(GAMMA)(X, X)
    return RankRLS(0.7, kernel="precomputed", tied_pairs=True).fit(K, y, qid=qid).predict(K)


def nystroem_of_every_point(X, y, qid):
    return RankRLS(0.7, kernel=Gaussian(GAMMA), basis=X, tied_pairs=True).fit(X, y, qid=qid).predict(X)


def pursuit(n=6, *, rows=np.asarray, **params):
    """Ranking pursuit, of all columns by default: least squares, with the penalty of RankRLS next to nothing."""
    return lambda X, y, qid: RankingPursuit(n, kernel=None, **params).fit(rows(X), y, qid=qid).predict(rows(X))


def two_pursuits(**params):
    """The mean of the pursuits of two halves of the columns."""

    def scores(X, y, qid):
        halves = X[:, :3], X[:, 3:]
        return np.mean([pursuit(2, **params)(half, y, qid) for half in halves], axis=0)

    return scores


HALVES = {"views": [View([0, 1, 2]), View([3, 4, 5])]}
FEW = [0, 5, 11, 23, 34]  # rows of a basis


def partly(y, qid):
    """Labels of the first queries alone."""
    return np.where(qid < 4, y, np.nan)


def scored_only(side):
    """A side that sees only the rows of the first queries, and scores all."""

    def scores(X, y, qid):
        keep = qid < 4
        return RankRLS(0.7, **side).fit(X[keep], y[keep], qid=qid[keep]).predict(X)

    return scores


def views(nu=0.3, *, rows=np.asarray, **params):
    params = {"tied_pairs": True, **params}
    return lambda X, y, qid: CoRankRLS(0.7, nu, **params).fit(rows(X), partly(y, qid), qid=qid).predict(rows(X))


def views_apart(**params):
    """The mean of a model of each half of the columns."""

    def scores(X, y, qid):
        return np.mean([scored_only(params)(half, y, qid) for half in (X[:, :3], X[:, 3:])], axis=0)

    return scores


def views_from_a_table(X, y, qid):
    names = [f"f{j}" for j in range(X.shape[1])]
    table = pa.table({**dict(zip(names, X.T, strict=True)), "y": partly(y, qid), "qid": qid})
    source = pa.dataset.dataset(pa.Table.from_batches(table.to_batches(7)))
    model = CoRankRLS(0.7, 0.3, tied_pairs=True, **HALVES).fit(source, y="y", qid="qid")
    return model.predict(pd.DataFrame(X, columns=names))


def kernel_columns(model, labels=lambda y, qid: y):
    """A model of kernel values with the points of a basis alone."""

    def scores(X, y, qid):
        K = Gaussian(GAMMA)(X, X[FEW])
        return model.fit(K, labels(y, qid), qid=qid).predict(K)

    return scores


def transduced(fidelity=0.5, *, of="transduction", folds=False, **params):
    def scores(X, y, qid):
        model = TransductiveRankRLS(0.7, fidelity, folds=qid if folds else None, **params)
        model.fit(X, partly(y, qid), qid=qid)
        return model.transduction_ if of == "transduction" else model.predict(X)

    return scores


def told(X, y, qid):
    """What is given of the first queries, and the inductive scores of the others."""
    return np.where(qid < 4, y, scored_only({"tied_pairs": True})(X, y, qid))


def words(X):
    return ["".join("abcd"[int(v) % 4] for v in np.abs(row) * 3) for row in X]


def on_words(X, y, qid):
    return RankRLS(0.7, kernel=Spectrum(1), tied_pairs=True).fit(words(X), y, qid=qid).predict(words(X))


def on_counts(X, y, qid):
    counts = np.array([[text.count(letter) for letter in "abcd"] for text in words(X)], dtype=float)
    unit = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    return RankRLS(0.7, tied_pairs=True).fit(unit, y, qid=qid).predict(unit)


def without_penalty(X, y, qid):
    Lt = oracles.laplacian(y, qid)
    return X @ np.linalg.lstsq(X.T @ Lt @ X, X.T @ Lt @ y, rcond=None)[0]


def wide(side):
    """The same side on data with more columns than rows."""
    return lambda X, y, qid: side(np.hstack([X, np.cos(X @ np.ones((6, 50)) * np.arange(50))]), y, qid)


CASES = {
    "primal = normal equations over pairs": (rank_rls(weighting="pairs"), oracle()),
    "primal, each query counts once": (rank_rls(weighting="queries"), oracle(weighting="queries")),
    "primal, each item counts once": (rank_rls(weighting="items"), oracle(weighting="items")),
    "tied pairs out": (rank_rls(weighting="pairs", tied_pairs=False), oracle(tied=False)),
    "tied pairs out, weighted": (
        rank_rls(weighting="queries", tied_pairs=False, weights=U),
        oracle(tied=False, weighting="queries", u=U),
    ),
    "a weight = copies of a row, pairs": (rank_rls(weighting="pairs", weights=U), repeated(weighting="pairs")),
    "a weight = copies of a row, queries": (rank_rls(weighting="queries", weights=U), repeated(weighting="queries")),
    "a weight = copies of a row, items": (rank_rls(weighting="items", weights=U), repeated(weighting="items")),
    "a weight = copies of a row, ties out": (
        rank_rls(weighting="queries", tied_pairs=False, weights=U),
        repeated(weighting="queries", tied_pairs=False),
    ),
    "regression mixed in": (rank_rls(weighting="pairs", regression=0.3), oracle(beta=0.3)),
    "regression = 1 is ridge regression": (rank_rls(regression=1.0), ridge_regression),
    "dual = primal, linear kernel": (rank_rls(kernel="linear"), rank_rls()),
    "dual = primal, linear kernel, regression mixed in": (
        rank_rls(kernel=Linear(), regression=0.4, tied_pairs=False, weights=U),
        rank_rls(regression=0.4, tied_pairs=False, weights=U),
    ),
    "more columns than rows": (wide(rank_rls(weighting="pairs")), wide(oracle())),
    "more columns than rows, sparse": (wide(sparse_input(weighting="pairs")), wide(oracle())),
    "kernel = normal equations over pairs": (rank_rls(kernel=Gaussian(GAMMA), weighting="pairs"), oracle(kernel=True)),
    "kernel, tied pairs out": (
        rank_rls(kernel=Gaussian(GAMMA), weighting="queries", tied_pairs=False),
        oracle(kernel=True, tied=False, weighting="queries"),
    ),
    "kernel, precomputed": (precomputed, rank_rls(kernel=Gaussian(GAMMA))),
    "kernel as a function": (rank_rls(kernel=lambda X, Z: Gaussian(GAMMA)(X, Z)), rank_rls(kernel=Gaussian(GAMMA))),
    "kernel, every point a basis vector": (nystroem_of_every_point, rank_rls(kernel=Gaussian(GAMMA))),
    "kernel on sparse rows": (sparse_input(kernel=Gaussian(GAMMA)), rank_rls(kernel=Gaussian(GAMMA))),
    "explicit pairs": (explicit_pairs(), rank_rls(weighting="pairs", tied_pairs=False)),
    "explicit pairs with signs": (
        explicit_pairs(positive={0: -1, 1: -1}),
        rank_rls(weighting="pairs", tied_pairs=False, positive={0: -1, 1: -1}),
    ),
    "explicit pairs, sparse rows": (
        explicit_pairs(rows=sparse.csr_array),
        rank_rls(weighting="pairs", tied_pairs=False),
    ),
    "explicit pairs, more columns than rows": (
        wide(explicit_pairs(rows=sparse.csr_array)),
        wide(rank_rls(weighting="pairs", tied_pairs=False)),
    ),
    "explicit pairs, kernel": (
        explicit_pairs(kernel=Gaussian(GAMMA)),
        rank_rls(kernel=Gaussian(GAMMA), weighting="pairs", tied_pairs=False),
    ),
    "conjugate gradients": (conjugate_gradients(True, 0.0), normal_equations(True, 0.0)),
    "conjugate gradients, ties out, regression": (conjugate_gradients(False, 0.3), normal_equations(False, 0.3)),
    "sparse rows": (sparse_input(weighting="queries"), rank_rls(weighting="queries")),
    "sparse rows, ties out, regression": (
        sparse_input(tied_pairs=False, regression=0.2),
        rank_rls(tied_pairs=False, regression=0.2),
    ),
    "blocks summed = one fit": (blocks(), rank_rls()),
    "blocks summed, regression mixed in": (blocks(regression=0.3), rank_rls(regression=0.3)),
    "blocks summed, ties out": (blocks(tied_pairs=False), rank_rls(tied_pairs=False)),
    "conditional on queries that are all alike": (conditional, rank_rls(weighting="items")),
    "queries scattered over parts = one fit": (scattered_parts(), rank_rls()),
    "scattered over parts, regression, ties out": (
        scattered_parts(regression=0.3, tied_pairs=False, weighting="queries"),
        rank_rls(regression=0.3, tied_pairs=False, weighting="queries"),
    ),
    "forgotten = never seen": (blocks(forget=True), rank_rls()),
    "pursuit of all atoms": (pursuit(weighting="pairs"), rank_rls(1e-11, tied_pairs=False, weighting="pairs")),
    "pursuit of all atoms, regression mixed in": (
        pursuit(regression=0.3),
        rank_rls(1e-11, tied_pairs=False, regression=0.3),
    ),
    "pursuit of all atoms, sparse rows": (pursuit(rows=sparse.csr_array), pursuit()),
    "pursuit of two views that need not agree": (pursuit(2, **HALVES), two_pursuits()),
    "pursuit of two views, ties in, regression": (
        pursuit(2, tied_pairs=True, regression=0.3, **HALVES),
        two_pursuits(tied_pairs=True, regression=0.3),
    ),
    "forgotten = never seen, regression mixed in": (blocks(forget=True, regression=0.3), rank_rls(regression=0.3)),
    "no penalty = least squares": (rank_rls(0.0, weighting="pairs"), without_penalty),
    "a kernel of strings = a linear model of what it counts": (on_words, on_counts),
    "kernel values with a basis alone": (
        kernel_columns(RankRLS(0.7, kernel="precomputed", basis=FEW, tied_pairs=True)),
        rank_rls(kernel=Gaussian(GAMMA), basis=FEW),
    ),
    "kernel values with a basis alone, transduction": (
        kernel_columns(TransductiveRankRLS(0.7, kernel="precomputed", basis=FEW), partly),
        transduced(1.0, of="predict", kernel=Gaussian(GAMMA), basis=FEW),
    ),
    "one view = a model of the scored rows": (views(views=[View()]), scored_only({"tied_pairs": True})),
    "one view, ties out, regression": (
        views(views=[View()], tied_pairs=False, regression=0.3),
        scored_only({"regression": 0.3}),
    ),
    "views that need not agree": (views(0.0, **HALVES), views_apart(tied_pairs=True)),
    "views of sparse rows": (views(rows=sparse.csr_array, **HALVES), views(**HALVES)),
    "views from a table in parts": (views_from_a_table, views(**HALVES)),
    "transduction held to the inductive scores": (transduced(1e12), told),
    "transduction over folds of one query each": (transduced(folds=True), transduced()),
    "transduction, a kernel of all rows = linear": (transduced(kernel="linear"), transduced()),
}


def up_to_query_constants(scores, qid):
    """Scores minus the mean of their query."""
    means = np.bincount(qid, weights=scores) / np.bincount(qid)
    return scores - means[qid]


@pytest.mark.parametrize("case", CASES)
def test_equivalence(case):
    X, y, qid = problem()
    this, that = (side(X, y, qid) for side in CASES[case])
    if "regression" not in case:
        this, that = up_to_query_constants(this, qid), up_to_query_constants(that, qid)
    scale = np.abs(that).max()
    tolerance = 1e-6 if "basis vector" in case or "pairs, kernel" in case else 1e-9
    assert_allclose(this, that, rtol=0, atol=tolerance * scale)


# Relations: a side is a function (X, Y, Z) -> scores of the objects of X with those of Z.

KNOWN = np.random.default_rng(5).random((8, 9)) < 0.7  # entries of an incomplete relation
GAUSS = Gaussian(0.3)


def objects():
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(8, 3)), rng.normal(size=(9, 2))
    return X, X @ rng.normal(size=(3, 2)) @ Z.T + rng.normal(size=(8, 9)), Z


ENDS = [float(np.mean(np.sum(A**2, axis=1))) for A in (objects()[0], objects()[2])]  # units of effects of single ends


def relation(alpha=0.7, *, some=False, **params):
    """A model of all entries of Y, or of `some`."""

    def scores(X, Y, Z):
        Y = np.where(KNOWN, Y, np.nan) if some else Y
        return ConditionalRankRLS(alpha, tol=1e-13, **params).fit(X, Y, Z).predict(X, Z)

    return scores


def explicit_edges(*, ranking=True, some=False, kernel=None, **pairwise):
    def scores(X, Y, Z):
        everything = [(i, j) for i in range(len(X)) for j in range(len(Z))]
        edges = [edge for edge in everything if KNOWN[edge] or not some]
        G, K = (X @ X.T, Z @ Z.T) if kernel is None else (kernel(X, X), kernel(Z, Z))
        M = oracles.pair_kernel(G, K, edges, edges, **pairwise)
        y, rows = np.array([Y[edge] for edge in edges]), [i for i, _ in edges]
        a, _ = oracles.relation_model(M, y, rows, 0.7, ranking=ranking)
        return (oracles.pair_kernel(G, K, everything, edges, **pairwise) @ a).reshape(Y.shape)

    return scores


def list_of_edges(*, copies=None, blocks=0, **params):
    """The known entries of Y one by one; several `copies` of each, or in blocks."""

    def scores(X, Y, Z):
        i, j = np.nonzero(KNOWN)
        model, repeat = ConditionalRankRLS(0.7, tol=1e-13, **params), np.ones(len(i), dtype=int)
        if copies == "rows":
            repeat += np.arange(len(i)) % 3
        table = pd.DataFrame({"x": i, "z": j, "y": Y[i, j], "weight": 1.0 + np.arange(len(i)) % 3})
        columns = {"source": "x", "target": "z", "sample_weight": "weight" if copies == "weights" else None}
        table = table.loc[np.repeat(table.index, repeat)]
        size = -(-len(table) // max(1, blocks))
        edges = (table.iloc[k : k + size] for k in range(0, len(table), size)) if blocks else table
        return model.fit_edges(X, edges, "y", Z, **columns).predict(X, Z)

    return scores


def shuffled_frames(X, Y, Z):
    drugs, targets = [f"D{i}" for i in range(8)], [f"T{j}" for j in range(9)]
    x, z = pd.DataFrame(X, drugs).add_prefix("x"), pd.DataFrame(Z, targets).add_prefix("z")
    Y = pd.DataFrame(Y, drugs, targets).sample(frac=1, random_state=0).sample(frac=1, axis=1, random_state=0)
    return ConditionalRankRLS(0.7).fit(x, Y, z).predict(x, z)


def turned(side):
    return lambda X, Y, Z: side(Z, Y.T, X).T


def similarities(X, Y, Z):
    G, K = GAUSS(X, X), GAUSS(Z, Z)
    return ConditionalRankRLS(0.7, kernel="precomputed").fit(G, Y, K).predict(G, K)


def list_of_one(X, Y, Z):
    G, K = GAUSS(X, X), GAUSS(Z, Z)
    rows, columns = (np.arange(len(A))[:, None] for A in (X, Z))
    return ConditionalRankRLS(0.7, kernel=[G], target_kernel=[K]).fit(rows, Y, columns).predict(rows, columns)


def sparse_ends(X, Y, Z):
    X, Z = sparse.csr_array(X), sparse.csr_array(Z)
    Y = np.where(KNOWN, Y, np.nan)
    return ConditionalRankRLS(0.7, tol=1e-13, solver="cg").fit(X, Y, Z).predict(X, Z)


def zeros(stored):
    def scores(X, Y, Z):
        Y = np.where(KNOWN, Y, 0.0)
        model = ConditionalRankRLS(0.7, missing="zero") if not stored else ConditionalRankRLS(0.7)
        return model.fit(X, Y if stored else sparse.csr_array(Y), Z).predict(X, Z)

    return scores


def labels(X, Y, Z):
    """Columns known by name only: one model per label."""
    return ConditionalRankRLS(0.7, loss="regression").fit(X, Y, np.eye(9)).predict(X, np.eye(9))


def ridge_for_each_column(X, Y, Z):
    return Ridge(alpha=0.7, fit_intercept=False).fit(X, Y).predict(X)


def two_steps(X, Y, Z):
    return TwoStepRLS(0.7, 0.3, kernel=GAUSS).fit(X, Y, Z).predict(X, Z)


def kernel_ridge_twice(X, Y, Z):
    first = KernelRidge(alpha=0.7, kernel="precomputed").fit(GAUSS(X, X), Y).predict(GAUSS(X, X))
    return KernelRidge(alpha=0.3, kernel="precomputed").fit(GAUSS(Z, Z), first.T).predict(GAUSS(Z, Z)).T


def within(kind, *, label_part=False, **params):
    """A relation among the objects of X, 8 x 8."""

    def scores(X, Y, Z):
        sign, Y = {"symmetric": 1, "reciprocal": -1}[kind], Y[:, :8]
        Y = Y + sign * 0.5 * Y.T  # mostly of the kind that the model can express
        if label_part:
            return ConditionalRankRLS(0.7, loss="regression").fit(X, (Y + sign * Y.T) / 2).predict(X)
        return ConditionalRankRLS(0.7, loss="regression", relation=kind, tol=1e-13, **params).fit(X, Y).predict(X)

    return scores


def games(way):
    """Half of the pairs as games, each told by the winner, by the loser, or by whoever comes first in the alphabet."""

    def scores(X, Y, Z):
        i, j = np.nonzero(np.triu(KNOWN[:, :8], 1))
        y = Y[i, j]
        turn = {"as they are": y > np.inf, "all the other way": y < np.inf, "by the winner": y < 0}[way]
        edges = np.where(turn[:, None], np.column_stack([j, i]), np.column_stack([i, j]))
        model = ConditionalRankRLS(0.7, relation="reciprocal", loss="regression", tol=1e-13)
        return model.fit_edges(X, edges, np.where(turn, -y, y)).predict(X)

    return scores


def ratings(X, Y, Z):
    """Players known by name: a rating each, and a game is their difference."""
    i, j = np.nonzero(np.triu(KNOWN[:, :8], 1))
    model = ConditionalRankRLS(0.7, relation="reciprocal", loss="regression", pairwise="sum")
    return model.fit_edges(np.eye(8), np.column_stack([i, j]), Y[i, j]).predict(np.eye(8))


def ridge_of_differences(X, Y, Z):
    """A score is (w_i - w_j) / sqrt(2): ratings are w / sqrt(2), and the penalty 0.7 of w is 1.4 of them."""
    i, j = np.nonzero(np.triu(KNOWN[:, :8], 1))
    rating = Ridge(alpha=1.4, fit_intercept=False).fit(np.eye(8)[i] - np.eye(8)[j], Y[i, j]).coef_
    return rating[:, None] - rating


OUT = {"row": "leave-row-out", "column": "leave-column-out", "both ends": "leave-both-out"}


def left_out(what):
    """Held-out scores of two steps."""
    options = {"alphas": [0.7], "target_alphas": [0.3], "kernel": GAUSS, "cv": OUT[what]}
    return lambda X, Y, Z: TwoStepRLS(**options).fit(X, Y, Z).cv_predictions_


def refits(what):
    """The same by two steps without the object or objects."""

    def scores(X, Y, Z):
        found, model = np.empty(Y.shape), TwoStepRLS(0.7, 0.3, kernel=GAUSS)
        for i, j in np.ndindex(Y.shape):
            rows = np.delete(np.arange(len(X)), [] if what == "column" else i)
            columns = np.delete(np.arange(len(Z)), [] if what == "row" else j)
            model.fit(X[rows], Y[np.ix_(rows, columns)], Z[columns])
            found[i, j] = model.predict(X[[i]], Z[[j]])[0, 0]
        return found

    return scores


def each_edge_left_out(X, Y, Z):
    model = ConditionalRankRLS(alphas=[0.7], cv="leave-edge-out", loss="regression", kernel=GAUSS)
    return model.fit(X, Y, Z).cv_predictions_


def refits_without_an_edge(X, Y, Z):
    found, model = np.empty(Y.shape), ConditionalRankRLS(0.7, loss="regression", kernel=GAUSS, tol=1e-13)
    for i, j in np.ndindex(Y.shape):
        part = Y.copy()
        part[i, j] = np.nan
        found[i, j] = model.fit(X, part, Z).predict(X[[i]], Z[[j]])[0, 0]
    return found


def mixed(X, Y, Z):
    """Product and sum, with weights that hold-out chose."""
    return _mixed(X, Y, Z).predict(X, Z)


def mixed_explicitly(X, Y, Z):
    share = _mixed(X, Y, Z).pairwise_
    weights = {"product": share["kronecker"], "source": share["sum"] * ENDS[1], "target": share["sum"] * ENDS[0]}
    return explicit_edges(ranking=False, some=True, **weights)(X, Y, Z)


def _mixed(X, Y, Z):
    model = ConditionalRankRLS(alphas=[0.7], pairwise=["kronecker", "sum"], loss="regression", tol=1e-13)
    return model.fit(X, np.where(KNOWN, Y, np.nan), Z)


def stopped(*, again=False):
    """As many iterations as hold-out prefers, or `again` that many."""

    def scores(X, Y, Z):
        Y = np.where(KNOWN, Y, np.nan)
        model = ConditionalRankRLS(0.0, solver="cr", max_iter="auto", kernel=GAUSS).fit(X, Y, Z)
        if again:
            model = model.set_params(max_iter=model.n_iter_).fit(X, Y, Z)
        return model.predict(X, Z)

    return scores


def dated(*, half_life=None):
    """Edges with dates and a half-life, or with weights that halve every ten days."""

    def scores(X, Y, Z):
        i, j = np.nonzero(KNOWN)
        age = np.arange(len(i)) % 30
        dates = pd.Timestamp("2024-05-01") - pd.to_timedelta(age, unit="D")
        edges = pd.DataFrame({"x": i, "z": j, "y": Y[i, j], "date": dates, "weight": 0.5 ** (age / 10)})
        how = {"date": "date", "half_life": half_life} if half_life else {"sample_weight": "weight"}
        return (
            ConditionalRankRLS(0.7, tol=1e-13).fit_edges(X, edges, "y", Z, source="x", target="z", **how).predict(X, Z)
        )

    return scores


AT_HOME = np.array([1.0, 1.0, 0.0, 1.0, -1.0])  # at home, on neutral ground, away


def at_home(X, Y, Z):
    i, j = np.nonzero(np.triu(KNOWN[:, :8], 1))
    games = pd.DataFrame({"a": i, "b": j, "y": Y[i, j], "home": np.resize(AT_HOME, len(i))})
    model = ConditionalRankRLS(0.7, relation="reciprocal", loss="regression", pairwise="sum", tol=1e-13)
    return model.fit_edges(np.eye(8), games, "y", source="a", target="b", home="home").predict(np.eye(8))


def ridge_with_a_free_column(X, Y, Z):
    i, j = np.nonzero(np.triu(KNOWN[:, :8], 1))
    D = np.column_stack([np.eye(8)[i] - np.eye(8)[j], np.resize(AT_HOME, len(i))])
    rating = np.linalg.solve(D.T @ D + 1.4 * np.diag([1.0] * 8 + [0.0]), D.T @ Y[i, j])[:8]
    return rating[:, None] - rating


def lifted(side, *, by):
    return lambda X, Y, Z: side(X, Y + by, Z) - by


SOME = {"some": True}
RELATIONS = {
    "closed form = explicit kernel of edges": (relation(kernel=GAUSS), explicit_edges(kernel=GAUSS)),
    "closed form = explicit kernel of edges, regression": (
        relation(kernel=GAUSS, loss="regression"),
        explicit_edges(kernel=GAUSS, ranking=False),
    ),
    "closed form = conjugate gradients": (relation(kernel=GAUSS), relation(kernel=GAUSS, solver="cg")),
    "closed form = conjugate residuals": (relation(), relation(solver="cr")),
    "incomplete = explicit kernel of edges": (relation(kernel=GAUSS, **SOME), explicit_edges(kernel=GAUSS, **SOME)),
    "incomplete, preconditioned": (relation(solver="pcg", kernel=GAUSS, **SOME), relation(kernel=GAUSS, **SOME)),
    "few features, directly = explicit kernel of edges": (relation(**SOME), explicit_edges(**SOME)),
    "few features, directly = conjugate gradients": (relation(**SOME), relation(solver="cg", **SOME)),
    "product and sum = explicit kernel of edges": (
        relation(pairwise="sum", loss="regression", **SOME),
        explicit_edges(ranking=False, product=0.0, source=ENDS[1], target=ENDS[0], **SOME),
    ),
    "matrix with gaps = list of edges": (relation(**SOME), list_of_edges()),
    "a weight = copies of an edge": (list_of_edges(copies="weights"), list_of_edges(copies="rows")),
    "edges in blocks = edges in memory": (list_of_edges(blocks=4), list_of_edges()),
    "frames in any order = arrays": (shuffled_frames, relation()),
    "similarities = kernel": (similarities, relation(kernel=GAUSS)),
    "list of one kernel = that kernel": (list_of_one, relation(kernel=GAUSS)),
    "every object a basis vector": (
        relation(kernel=GAUSS, basis=list(range(8)), target_basis=list(range(9))),
        relation(kernel=GAUSS),
    ),
    "sparse features": (sparse_ends, relation(solver="cg", **SOME)),
    "conditioned by targets = transposed": (relation(condition="target"), turned(relation())),
    "zeros not stored = zeros": (zeros(False), zeros(True)),
    "labels known by name = a ridge regression each": (labels, ridge_for_each_column),
    "two steps = kernel ridge regression twice": (two_steps, kernel_ridge_twice),
    **{f"two steps, each {what} left out = refits": (left_out(what), refits(what)) for what in OUT},
    "each edge left out = refits": (each_edge_left_out, refits_without_an_edge),
    "product and sum by hold-out = explicit kernel of edges, regression": (mixed, mixed_explicitly),
    "iterations by hold-out = as many iterations": (stopped(), stopped(again=True)),
    "a half-life = weights that halve": (dated(half_life="10d"), dated()),
    "home advantage = ridge regression with a free column": (at_home, ridge_with_a_free_column),
    "regression with an intercept = values far from zero": (
        relation(loss="regression", intercept=True, kernel=GAUSS),
        lifted(relation(loss="regression", intercept=True, kernel=GAUSS), by=100.0),
    ),
    "symmetric regression = symmetric part of the values": (within("symmetric"), within("symmetric", label_part=True)),
    "reciprocal regression = skew part of the values": (within("reciprocal"), within("reciprocal", label_part=True)),
    "symmetric, closed form = conjugate gradients": (within("symmetric"), within("symmetric", solver="cg")),
    "a game told by either end": (games("as they are"), games("all the other way")),
    "a game told by the winner": (games("as they are"), games("by the winner")),
    "ratings = ridge regression of differences": (ratings, ridge_of_differences),
}


@pytest.mark.parametrize("case", RELATIONS)
def test_equivalence_of_relations(case):
    this, that = (side(*objects()) for side in RELATIONS[case])
    constants = any(word in case for word in ("regression", "game", "ratings", "conditioned", "left out"))
    if not constants:  # which a ranking leaves open
        this, that = (A - A.mean(axis=1, keepdims=True) for A in (this, that))
    assert_allclose(this, that, rtol=0, atol=1e-8 * np.abs(that).max())


@pytest.mark.parametrize("weighting", ["pairs", "queries", "items"])
@pytest.mark.parametrize("one_query", [True, False])
def test_copies_of_an_item_tie_with_each_other(weighting, one_query):
    """Labels all differ, so there are no ties but those among the copies a weight stands for."""
    X, _, qid = problem()
    y, n = X[:, 0] + np.random.default_rng(0).normal(size=40), U.astype(int)
    qid = np.zeros(40, dtype=int) if one_query else qid
    params = {"weighting": weighting, "tied_pairs": False}
    weighted = RankRLS(0.7, **params).fit(X, y, qid=qid, sample_weight=U)
    copied = RankRLS(0.7, **params).fit(X.repeat(n, axis=0), y.repeat(n), qid=qid.repeat(n))
    assert_allclose(weighted.coef_, copied.coef_, atol=1e-10)


def test_one_query_is_kernel_ridge_on_centred_data():
    X, y, _ = problem()
    C = np.eye(40) - 1 / 40
    K = Gaussian(GAMMA)(X, X)
    ours = RankRLS(0.7, kernel="precomputed", weighting="items", tied_pairs=True).fit(K, y).predict(K)
    theirs = KernelRidge(alpha=0.7, kernel="precomputed").fit(C @ K @ C, C @ y).predict(C @ K @ C)
    assert_allclose(C @ ours, C @ theirs, atol=1e-9)


def test_several_targets_share_one_factorisation():
    X, y, qid = problem()
    Y = np.column_stack([y, -2 * y, X[:, 0]])
    for params in ({}, {"kernel": "rbf"}, {"regression": 0.3}, {"alpha": "auto", "alphas": [0.3]}):
        params = {"alpha": 0.7, "tied_pairs": True, **params}
        model = RankRLS(**params).fit(X, Y, qid=qid)
        assert model.predict(X).shape == (40, 3)
        for t in range(3):
            single = RankRLS(**params).fit(X, Y[:, t], qid=qid)
            assert_allclose(model.predict(X)[:, t], single.predict(X), atol=1e-9)
            if params["alpha"] == "auto":
                assert_allclose(model.cv_predictions_[:, t], single.cv_predictions_, atol=1e-9)


def test_kernel_path_and_single_alpha_agree():
    X, y, qid = problem()
    for params in ({"kernel": Gaussian(GAMMA)}, {}, {"kernel": Gaussian(GAMMA), "regression": 0.2}):
        one = RankRLS(0.05, **params).fit(X, y, qid=qid)
        path = RankRLS(alphas=[0.05], **params).fit(X, y, qid=qid)
        assert_allclose(one.predict(X), path.predict(X), atol=1e-10)


def test_components_of_explicit_pairs_are_held_out_like_queries():
    X, y, qid = problem()
    X = X + 0.01 * np.random.default_rng(3).normal(size=X.shape)  # no duplicates, hence no tied scores
    pairs = np.array([(i, j) for i in range(40) for j in range(40) if qid[i] == qid[j] and y[i] > y[j]])
    margins = y[pairs[:, 0]] - y[pairs[:, 1]]
    model = RankRLS(alphas=[0.3]).fit_pairs(X, pairs, margins=margins)
    same = RankRLS(alphas=[0.3]).fit_pairs(sparse.csr_array(X), pairs, margins=margins)
    assert_allclose(same.cv_scores_, model.cv_scores_)
    queries = RankRLS(alphas=[0.3], weighting="pairs", tied_pairs=False).fit(X, y, qid=qid)
    held = queries.cv_predictions_[pairs[:, 0]] - queries.cv_predictions_[pairs[:, 1]]
    assert_allclose(model.cv_scores_, np.mean(held > 0))


def test_linked_pairs_are_held_out_one_by_one():
    X, _, _ = problem()
    rng = np.random.default_rng(0)
    chain = np.column_stack([np.arange(39), np.arange(1, 40)])
    pairs = np.vstack([chain, rng.integers(0, 40, (30, 2))])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    w = rng.uniform(0.5, 2, len(pairs))
    model = RankRLS(alphas=[0.3]).fit_pairs(X, pairs, weights=w)
    same = RankRLS(alphas=[0.3]).fit_pairs(sparse.csr_array(X), pairs, weights=w)
    assert_allclose(same.cv_scores_, model.cv_scores_)
    right = []
    for p in range(len(pairs)):
        rest = np.delete(np.arange(len(pairs)), p)
        refit = RankRLS(0.3).fit_pairs(X, pairs[rest], weights=w[rest]).predict(X)
        right.append(refit[pairs[p, 0]] > refit[pairs[p, 1]])
    assert_allclose(model.cv_scores_, np.average(right, weights=w))
