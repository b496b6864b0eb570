"""ConditionalRankRLS: complete and incomplete relations, lists of edges, frames with labels."""

import inspect
import warnings

import numpy as np
from scipy import sparse

from rankrls import ConditionalRankRLS, OnEdges

from . import oracles, problems
from .oracles import LD, differences
from .rankers import kernel_size, some_alpha, some_kernel

PARITY = {None: 0, "symmetric": 1, "reciprocal": -1}
TOL = 1e-11


def unscaled():
    return {"scale": None} if "scale" in inspect.signature(ConditionalRankRLS).parameters else {}


def objects(t, count):
    X = t.rng.normal(size=(count, t.number(1, 4)))
    return np.rint(2 * X) if t.chance(0.2) else X * t.pick(1.0, 1.0, 1e-3, 1e3)


def relation(t):
    """Scores of all edges, in training and new, compared with the kernel model of the list of edges."""
    parity = t.pick(None, None, "symmetric", "reciprocal")
    condition = t.pick("source", "target")
    p = t.number(2, 6)
    X = objects(t, p + 2)
    one = parity is not None or t.chance(0.4)
    Z = X if one else objects(t, t.number(2, 6) + 2)
    r = p if one else len(Z) - 2
    own, name, options = some_kernel(t, X)
    k = lambda A, B: oracles.kernel(name, A, B, **options)
    Y = t.rng.normal(size=(p, r)) if t.chance(0.6) else t.rng.integers(0, 3, (p, r)).astype(float)
    Y *= t.pick(1.0, 1.0, 1e-6, 1e6)
    if parity is not None:
        Y = (Y + PARITY[parity] * Y.T) / 2
    ranking, form = t.chance(0.6), t.pick("complete", "complete", "holes", "sparse", "edges", "edges", "zero")
    known = np.ones((p, r), bool) if form == "complete" else t.rng.random((p, r)) < 0.6
    known[np.arange(p), t.rng.integers(0, r, p)] = True
    known[t.rng.integers(0, p, r), np.arange(r)] = True
    if parity is not None and form != "edges":
        known |= known.T
    if form == "zero":  # what is not stored is 0
        Y, known = np.where(known, Y, 0), np.ones((p, r), bool)
    rows, columns = np.nonzero(known)
    y = Y[rows, columns]
    if form == "edges" and t.chance(0.5):  # some edges twice, with other values
        again = t.rng.integers(0, len(rows), t.number(1, 4))
        rows, columns = np.append(rows, rows[again]), np.append(columns, columns[again])
        y = np.append(y, y[again] + t.rng.normal(size=len(again)))
    u, shown = None, (rows, columns, y)
    if form == "edges" and parity is not None:  # a game is seen from both ends, by half its weight each
        rows, columns = np.append(rows, columns), np.append(columns, rows)
        y, u = np.append(y, PARITY[parity] * y), np.full(2 * len(y), 0.5)
    q = rows if condition == "source" else columns
    K = edge_kernel(k(X, X), k(Z, Z), rows, columns, rows, columns, PARITY[parity])
    weighting = t.pick("items", "queries", "pairs") if ranking and u is None and parity is None else "items"
    D = differences(y, q, weighting=weighting, u=u) if ranking else np.eye(len(y), dtype=LD)
    if u is not None and not ranking:
        D = D * np.sqrt(LD(0.5))
    if not len(D):
        return
    alpha = some_alpha(t, kernel_size(D, K), -2)
    ours = {"loss": "ranking" if ranking else "regression", "relation": parity, "condition": condition, **unscaled()}
    ours |= {"weighting": weighting} if weighting != "items" else {}
    ours |= {"missing": "zero"} if form == "zero" else {}
    model = ConditionalRankRLS(alpha, kernel=own, tol=TOL, max_iter=20000, **ours)
    t.let(X=X, Z=None if one else Z, Y=np.where(known, Y, np.nan), rows=shown[0], columns=shown[1], y=shown[2])
    t.do(f"model = ConditionalRankRLS({alpha!r}, kernel={own!r}, tol={TOL}, max_iter=20000, **{ours!r})  # {form}")
    other = None if one else Z[:r]
    fit(t, model, form, X[:p], other, Y, known, *shown)
    error = max(oracles.kernel_error(name, A, problems.DOUBLE, **options) for A in (X, Z))
    top = max(np.abs(k(X, X)).max(), np.abs(k(Z, Z)).max())
    truth = oracles.Kernel(
        K, y, D, alpha, problems.DOUBLE, 2 * error * top, residual=TOL * 10, steps=model.n_iter_ or 0
    )
    a, b = (grid.ravel() for grid in np.indices((len(X), len(Z))))
    to = edge_kernel(k(X, X), k(Z, Z), a, b, rows, columns, PARITY[parity])
    found = model.predict(X, None if one else Z).ravel()
    t.close("scores of all edges", found, truth.scores(to)[:, 0], truth.bounds(to)[:, 0])
    some = t.rng.integers(0, len(a), 5)
    single = model.predict_edges(X, np.column_stack([a[some], b[some]]), None if one else Z)
    t.close("scores of some edges", single, truth.scores(to)[some, 0], truth.bounds(to)[some, 0])


def edge_kernel(G, K, rows, columns, others, their, parity):
    M = G[np.ix_(rows, others)] * K[np.ix_(columns, their)]
    return M if not parity else (M + parity * G[np.ix_(rows, their)] * K[np.ix_(columns, others)]) / 2


def fit(t, model, form, X, Z, Y, known, rows, columns, y):
    """The relation in one of its forms; frames bring labels in an order of their own."""
    with t.may_refuse(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*stopped after.*")
        if form == "edges":
            edges = np.column_stack([rows, columns])
            if t.chance(0.5):
                X, Z, edges = with_labels(t, X, Z, edges)
            return model.fit_edges(X, edges, y, Z)
        if form == "zero":
            return model.fit(X, sparse.csr_array(Y), Z)
        if form == "sparse":
            return model.fit(X, sparse.csr_array((Y[known], np.nonzero(known)), shape=Y.shape), Z)
        return model.fit(X, np.where(known, Y, np.nan), Z)


def with_labels(t, X, Z, edges):
    """The same edges, named by the index labels of shuffled frames."""
    import pandas as pd

    def frame(A, start):
        labels = t.pick(np.arange(start, start + len(A)), np.array([f"o{i}" for i in range(len(A))]))
        order = t.rng.permutation(len(A))
        return pd.DataFrame(A, index=labels).iloc[order], labels

    first, names = frame(X, t.pick(0, 1, 100))
    second, others = (None, names) if Z is None else frame(Z, t.pick(0, 1, 100))
    ends = [names[edges[:, 0]].tolist(), others[edges[:, 1]].tolist()]
    t.let(edges=list(zip(*ends, strict=True)))
    return first, second, list(zip(*ends, strict=True))


def settings(t):
    """Held-out scores of a complete relation without each conditioning object, compared with refits."""
    p, r = t.number(3, 6), t.number(2, 6)
    X, Z = objects(t, p), objects(t, r)
    own, name, options = some_kernel(t, X)
    k = lambda A, B: oracles.kernel(name, A, B, **options)
    Y, ranking = t.rng.normal(size=(p, r)), t.chance(0.5)
    h, i = (grid.ravel() for grid in np.indices((p, r)))
    K = edge_kernel(k(X, X), k(Z, Z), h, i, h, i, 0)
    D = differences(Y.ravel(), h, weighting="items") if ranking else np.eye(p * r, dtype=LD)
    alpha = some_alpha(t, kernel_size(D, K), -2)
    C = np.eye(r, dtype=LD) - LD(1) / r
    spectrum = np.linalg.eigvalsh((C @ k(Z, Z) @ C).astype(float))
    # directions below the rounding of kernel values, besides the constant one: what they are worth depends on a cut-off
    near = np.count_nonzero(spectrum <= 1e-13 * float(np.abs(k(Z, Z)).max())) > 1 and np.abs(k(Z, Z) @ C).max() > 1e-17
    if ranking and near:
        t.compared = t.undecided = 1
        return
    loss = "ranking" if ranking else "regression"
    t.let(X=X, Y=Y, Z=Z)
    t.do(f"model = ConditionalRankRLS(alphas=[{alpha!r}], kernel={own!r}, loss={loss!r}).fit(X, Y, Z)")
    with t.may_refuse():
        model = ConditionalRankRLS(alphas=[alpha], kernel=own, loss=loss, **unscaled()).fit(X, Y, Z)
    error = 2 * max(oracles.kernel_error(name, A, problems.DOUBLE, **options) for A in (X, Z))
    top = max(np.abs(k(X, X)).max(), np.abs(k(Z, Z)).max())
    of_labels = oracles.roundings(p * r, p + r) * problems.DOUBLE * (lift(k(Z, Z), spectrum) if ranking else 1)
    found, bound, bits = np.empty((p, r), LD), np.empty((p, r), LD), np.empty((p, 1), LD)
    for q in range(p):
        rest, out = np.flatnonzero(h != q), np.flatnonzero(h == q)
        d = differences(Y.ravel()[rest], h[rest], weighting="items") if ranking else np.eye(len(rest), dtype=LD)
        truth = oracles.Kernel(K[np.ix_(rest, rest)], Y.ravel()[rest], d, alpha, problems.DOUBLE, error * top)
        to = K[np.ix_(out, rest)]
        found[q], bound[q] = truth.scores(to)[:, 0], truth.bounds(to)[:, 0]
        bits[q] = oracles.last_bits(found[q], "double") + of_labels * oracles.norm(Y[q])
    t.close("held-out scores", model.cv_predictions_, found, bound + bits)


def lift(K, spectrum):
    """By how much the rounding of labels grows in held-out scores of a ranking.

    They are labels less held-out residuals, so that labels round, however small the scores. For the constants of rows,
    coefficients are these differences over the eigenvalues s of C K C, and count by their share u' K 1 / r in the mean
    of the kernel, which is at most (s 1' K 1)^1/2 / r. Eigenvalues below 1e-6 of the whole are never divided by.
    """
    whole = float(K.sum())
    if not whole > 0:  # the mean of the kernel is zero, and so is its share in every coefficient
        return 1.0
    clear = spectrum[spectrum >= 1e-6 * whole / len(K)]
    return 1 + float(np.sum(np.sqrt(whole / clear))) / len(K)


def edges_as_samples(t):
    """OnEdges: the kernel model of a list of edges, whatever their order and whether or not they fill a rectangle."""
    import pandas as pd

    p, r, one = t.number(3, 6), t.number(2, 5), t.chance(0.4)
    X, Z = objects(t, p), objects(t, p if one else r)
    Z, r = (X, p) if one else (Z, r)
    own, name, options = some_kernel(t, X)
    k = lambda A, B: oracles.kernel(name, A, B, **options)
    some, form = t.rng.permutation(p)[: t.number(2, p)], t.pick("rectangle", "list", "repeated")
    rows, columns = (grid.ravel() for grid in np.meshgrid(some, np.arange(r), indexing="ij"))
    order = t.rng.permutation(len(rows))
    if form != "rectangle":
        order = order[: t.number(3, max(3, len(rows) - 1))]
    if form == "repeated":
        order = np.append(order, order[:2])
    rows, columns = rows[order], columns[order]
    y = t.rng.normal(size=len(rows)) * t.pick(1.0, 1e-6, 1e6)
    condition, ranking = t.pick("source", "target"), t.chance(0.5)
    D = np.eye(len(y), dtype=LD)
    if ranking:
        D = differences(y, rows if condition == "source" else columns, weighting="items")
    if not len(D):
        return
    K = edge_kernel(k(X, X), k(Z, Z), rows, columns, rows, columns, 0)
    alpha = some_alpha(t, kernel_size(D, K), -2)
    ours = {"loss": "ranking" if ranking else "regression", "condition": condition, **unscaled()}
    model = ConditionalRankRLS(alpha, kernel=own, tol=TOL, max_iter=20000, **ours)
    edges, A, B = np.column_stack([rows, columns]), X, None if one else Z
    if t.chance(0.4):  # ids of shuffled frames
        mixed = t.rng.permutation(p)
        ids, others = np.array([f"a{i}" for i in range(p)]), np.array([f"{'a' if one else 'b'}{i}" for i in range(r)])
        A = pd.DataFrame(X, index=ids).iloc[mixed]
        B = None if one else pd.DataFrame(Z, index=others)
        edges = np.array(list(zip(ids[rows].tolist(), others[columns].tolist(), strict=True)), dtype=object)
    t.let(X=X, Z=None if one else Z, rows=rows, columns=columns, y=y)
    t.do(f"OnEdges(ConditionalRankRLS({alpha!r}, kernel={own!r}, **{ours!r}), X, Z).fit(edges, y)  # {form}")
    with t.may_refuse():
        found = OnEdges(model, A, B).fit(edges, y)
    error = max(oracles.kernel_error(name, V, problems.DOUBLE, **options) for V in (X, Z))
    high = max(np.abs(k(X, X)).max(), np.abs(k(Z, Z)).max())
    steps = found.model_.n_iter_ or 0
    truth = oracles.Kernel(K, y, D, alpha, problems.DOUBLE, 2 * error * high, residual=TOL * 10, steps=steps)
    scores, bounds = truth.scores(K)[:, 0], truth.bounds(K)[:, 0]
    t.close("scores of edges", found.predict(edges), scores, bounds)
    back = t.rng.permutation(len(y))
    t.close("scores of edges in another order", found.predict(edges[back]), scores[back], bounds[back])


CATEGORIES = {"relations": relation, "edges as samples": edges_as_samples, "relations, held out": settings}
