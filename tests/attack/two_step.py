"""TwoStepRLS, recommendations, and relations whose kernel of pairs is a sum."""

import numpy as np
from scipy import sparse

from rankrls import ConditionalRankRLS, TwoStepRLS

from . import oracles, problems
from .oracles import LD, ld, norm, roundings, solve, spectral
from .rankers import in_range, some_alpha, some_kernel
from .relations import objects, unscaled


def two_step(t):
    """f = K_x (K_x + a I)^-1 Y (K_z + b I)^-1 K_z, for training objects and new ones.

    A smoother H = K (K + a I)^-1 has norm 1; an error e of K changes it by e / a, and rounding by the condition number
    (||K|| + a) / a. A score k' (K + a I)^-1 y changes by ||k|| / a times that relative error, and by e ||y|| / a.
    """
    p, r = t.number(2, 7), t.number(2, 7)
    X, Z = objects(t, p + 2), objects(t, r + 2)
    own, name, options = some_kernel(t, X)
    k = lambda A, B: oracles.kernel(name, A, B, **options)
    Y = t.rng.normal(size=(p, r)) * t.pick(1.0, 1e-6, 1e6)
    G, K = k(X, X), k(Z, Z)
    a, b = (some_alpha(t, in_range(np.trace(M[:n, :n]) / n), -2) for M, n in ((G, p), (K, r)))
    t.let(X=X, Y=Y, Z=Z)
    t.do(f"model = TwoStepRLS({a!r}, {b!r}, kernel={own!r}).fit(X[:{p}], Y, Z[:{r}])")
    with t.may_refuse():
        model = TwoStepRLS(a, b, kernel=own).fit(X[:p], Y, Z[:r])
    found = model.predict(X, Z)
    error = [oracles.kernel_error(name, A, problems.DOUBLE, **options) for A in (X, Z)]
    left, e_left = smoothed(G, p, a, error[0])
    right, e_right = smoothed(K, r, b, error[1])
    expected = left @ ld(Y) @ right.T
    length = lambda V: np.sqrt(np.sum(V * V, axis=1))
    bound = np.outer(e_left, length(right) + e_right) + np.outer(length(left), e_right)
    t.close("scores", found, expected, bound * norm(Y))


def smoothed(K, n, alpha, error):
    """Rows of K (K_n + alpha I)^-1, and a bound of their error."""
    inner = K[:n, :n]
    rows = solve(inner + LD(alpha) * np.eye(n, dtype=LD), K[:, :n].T).T
    many, condition = roundings(n, n), (spectral(inner) + LD(alpha)) / LD(alpha)
    relative = many * (problems.DOUBLE * condition + error * n / LD(alpha))
    size = np.sqrt(np.sum(K[:, :n] ** 2, axis=1)) / LD(alpha)
    return rows, relative * size + many * error * np.sqrt(LD(n)) / LD(alpha)


def recommended(t):
    """The best few of all scores, in order, without those excluded."""
    p, r = t.number(2, 8), t.number(2, 9)
    X, Z = objects(t, p), objects(t, r)
    Y = t.rng.normal(size=(p, r))
    own, _, _ = some_kernel(t, X)
    condition, top = t.pick("source", "target"), t.number(1, r + 2)
    t.let(X=X, Y=Y, Z=Z)
    t.do(f"ConditionalRankRLS(1.0, kernel={own!r}, condition={condition!r}).fit(X, Y, Z).recommend(X, Z, top={top})")
    with t.may_refuse():
        model = ConditionalRankRLS(1.0, kernel=own, condition=condition, **unscaled()).fit(X, Y, Z)
    scores = model.predict(X, Z) if condition == "source" else model.predict(X, Z).T
    out = t.rng.random(scores.shape) < t.pick(0.0, 0.3)
    mine, other = (X, Z) if condition == "source" else (Z, X)
    exclude = t.pick(None, out, sparse.csr_array(out.astype(float)))
    ranking = model.recommend(mine, other, top=top, exclude=exclude)
    # the same inner products, added up in another order: eps times the sum of their absolute terms
    linear = hasattr(model, "coef_")
    left, right = (X, Z) if linear else (model.kernel_(X, model.X_fit_), model.target_kernel_(Z, model.Z_fit_))
    weights = np.abs(model.coef_ if linear else model.dual_coef_)
    terms = np.abs(left) @ weights @ np.abs(right).T
    rounding = float(roundings(p + r, 10)) * problems.DOUBLE * float(terms.max()) + 1e-300
    for i, row in enumerate(scores):
        left = [j for j in range(len(row)) if exclude is None or not out[i, j]]
        best = sorted((row[j] for j in left), reverse=True)[:top]
        got = [(int(j), s) for j, s in zip(ranking.ids[i], ranking.scores[i], strict=True) if j >= 0]
        t.same("number of recommendations", len(got), len(best))
        t.true("recommendations are among those left, once each", len({j for j, _ in got} & set(left)) == len(got))
        for (j, s), value in zip(got, best, strict=True):
            t.true(f"score {s} of {j}, expected {value}", abs(s - value) <= rounding and abs(row[j] - s) <= rounding)


def additive(t):
    """`pairwise="sum"`: the kernel of two edges is that of their sources plus that of their targets, each in units of
    the mean of the other."""
    p, r = t.number(2, 6), t.number(2, 6)
    X, Z = objects(t, p + 2), objects(t, r + 2)
    own, name, options = some_kernel(t, X)
    k = lambda A, B: oracles.kernel(name, A, B, **options)
    Y, G, K = t.rng.normal(size=(p, r)), k(X, X), k(Z, Z)
    g, s = (np.mean(np.diag(M)[:n]) or LD(1) for M, n in ((G, p), (K, r)))
    h, i = (grid.ravel() for grid in np.indices((p, r)))
    known = np.ones(p * r, bool) if t.chance(0.5) else t.rng.random(p * r) < 0.7
    known[:2] = True
    h, i, y = h[known], i[known], Y.ravel()[known]
    kernel = lambda a, b, c, d: s * G[np.ix_(a, c)] + g * K[np.ix_(b, d)]
    M = kernel(h, i, h, i)
    alpha = some_alpha(t, in_range(np.trace(M) / len(y)), -2)
    t.let(X=X, Y=np.where(known.reshape(p, r), Y, np.nan), Z=Z)
    t.do(f'ConditionalRankRLS({alpha!r}, kernel={own!r}, pairwise="sum", loss="regression", tol=1e-11).fit(X, Y, Z)')
    with t.may_refuse():
        model = ConditionalRankRLS(
            alpha, kernel=own, pairwise="sum", loss="regression", tol=1e-11, max_iter=20000, **unscaled()
        ).fit(X[:p], np.where(known.reshape(p, r), Y, np.nan), Z[:r])
    error = [oracles.kernel_error(name, A, problems.DOUBLE, **options) for A in (X, Z)]
    wrong = s * error[0] + g * error[1] + problems.DOUBLE * np.abs(M).max()
    D = np.eye(len(y), dtype=LD)
    truth = oracles.Kernel(M, y, D, alpha, problems.DOUBLE, wrong, residual=1e-10, steps=model.n_iter_ or 0)
    a, b = (grid.ravel() for grid in np.indices((len(X), len(Z))))
    to = kernel(a, b, h, i)
    t.close("scores", model.predict(X, Z).ravel(), truth.scores(to)[:, 0], truth.bounds(to)[:, 0])


CATEGORIES = {
    "two-step relations": two_step,
    "recommendations": recommended,
    "relations of sums": additive,
}
