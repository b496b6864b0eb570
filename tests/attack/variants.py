"""Columns in units of their spread, sign constraints, labels with pairs, encoded tables, and ways to predict."""

import itertools

import numpy as np
from scipy import sparse

from rankrls import RankRLS, TableEncoder

from . import oracles, problems
from .left_out import Spent
from .oracles import LD, Linear, differences, ld, norm
from .rankers import asked, check_scores, fitted, given, loss, some_alpha, typical, weight_of
from .tables import columns_of_tables


def scaled(t):
    """`scale="auto"`: the penalty is on weights per spread of their column; columns that do not vary have no weight."""
    rows = problems.rows(t, n=t.pick((1, 8), (9, 30)), extreme=t.chance(0.5))
    ours, theirs = loss(t)
    kept = rows.take(given(rows))
    D = differences(kept.y, kept.qid, u=kept.u, **theirs)
    size = np.abs(ld(kept.X)).max(axis=0)
    spread = np.sqrt(np.sum((D @ ld(kept.X)) ** 2, axis=0) / weight_of(kept))
    top = np.sqrt(np.max(np.sum(D * D, axis=0), initial=0) / weight_of(kept)) * size
    if np.any((spread > 0) & (spread < 1e6 * rows.eps * top)):  # hardly told from a column that does not vary
        t.compared = t.undecided = 1
        return
    unit = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1), 0)
    alpha = some_alpha(t, typical(D @ (ld(kept.X) * unit)))
    ours = ours | {"scale": "auto"}
    X = t.let(X=problems.dressed(t, rows.X, rows.dtype))
    y, qid, u = t.let(y=rows.y), t.let(qid=problems.labelled(t, rows.qid)), t.let(u=rows.u)
    line = f"model = RankRLS({alpha!r}, **{ours!r}).fit(X, y, qid, u)"
    model = fitted(t, RankRLS(alpha, **ours), X, y, qid, u, kept, line)
    truth = Linear(ld(kept.X) * unit, kept.y, D, alpha, rows.eps, u=kept.u, intercept=theirs["beta"] > 0)
    for name, A in (("training rows", rows.X), ("new rows", rows.new)):
        found, A = model.predict(asked(model, A.astype(rows.dtype))), ld(A) * unit
        t.close(f"scores of {name}", found, truth.scores(A)[:, 0], truth.bounds(A)[:, 0])


class Signed(Linear):
    """Sign-constrained weights: the best of the least-squares solutions in which some weights are zero.

    The solution moves no more than the unconstrained one: with g the error of the gradient, ||dw|| <= ||G^-1|| g for
    any convex set of weights.
    """

    def __init__(self, X, y, D, alpha, eps, signs, *, u=None, intercept=False, spent=None):
        X, y, alpha = ld(X), ld(y).reshape(-1, 1), LD(alpha)
        super().__init__(X, y, D, alpha, eps)
        A, z, best = D @ X, D @ y, None
        for free in subsets([j for j in range(X.shape[1]) if signs[j]], X.shape[1]):
            w = np.zeros((X.shape[1], 1), LD)
            if free:
                w[free] = Linear(X[:, free], y, D, alpha, eps).w
            if np.all(signs[:, None] * w >= 0):
                value = norm(z - A @ w) ** 2 + alpha * norm(w) ** 2
                best = (value, w) if best is None or value < best[0] else best
        self.w = best[1]
        self.measure(X, y, D, A, z, alpha, u=u, intercept=intercept, spent=spent)
        self.dw += LD("1e-10") * norm(self.w)  # the solver's own tolerance
        if intercept:
            self.db += norm(self.means) * LD("1e-10") * norm(self.w)


def subsets(some, n):
    """All of range(n) without a few, or all, of `some`."""
    for k in range(len(some) + 1):
        for zero in itertools.combinations(some, k):
            yield [j for j in range(n) if j not in zero]


def signed(t):
    """`positive=`: for all columns, for some, or with a sign for each; queries are held out as by refits."""
    held = t.chance(0.5)
    rows = problems.rows(t, m=(4, 16), n=(1, 4), extreme="labels", offsets=False)
    ours, theirs = loss(t)
    kept, n = rows.take(given(rows)), rows.X.shape[1]
    D = differences(kept.y, kept.qid, u=kept.u, **theirs)
    some = sorted(t.rng.permutation(n)[: t.number(1, n)].tolist())
    positive = t.pick(True, some, {j: t.pick(1, -1) for j in some})
    signs = np.zeros(n)
    for j in range(n) if positive is True else some:
        signs[j] = positive[j] if isinstance(positive, dict) else 1
    alpha = some_alpha(t, typical(D @ ld(kept.X)), -3)
    X, y, qid, u = t.let(X=rows.X.astype(rows.dtype)), t.let(y=rows.y), t.let(qid=rows.qid), t.let(u=rows.u)
    choice = {"alphas": [alpha]} if held else {"alpha": alpha}
    line = f"model = RankRLS(**{choice!r}, positive={positive!r}, **{ours!r}).fit(X, y, qid, u)"
    if held and len(np.unique(kept.qid)) < 2:
        return
    model = fitted(t, RankRLS(**choice, positive=positive, **ours), X, y, qid, u, kept, line)
    t.true("weights have their signs", bool(np.all(signs * model.coef_ >= 0)))
    free = theirs["beta"] > 0
    truth = Signed(kept.X, kept.y, D, alpha, rows.eps, signs, u=kept.u, intercept=free)
    check_scores(t, model, truth, rows)
    if not held:
        return
    full, wide, alive = np.full(len(rows.y), np.nan, LD), np.zeros(len(rows.y), LD), given(rows)
    for q in np.unique(kept.qid):
        fold, rest = np.flatnonzero(kept.qid == q), np.flatnonzero(kept.qid != q)
        part = kept.take(rest)
        spent = Spent(kept.X, kept.y, D, kept.u, theirs["beta"]).besides(fold)
        E = differences(part.y, part.qid, u=part.u, **theirs)
        left = Signed(part.X, part.y, E, alpha, rows.eps, signs, u=part.u, intercept=free, spent=spent)
        full[alive[fold]] = left.scores(kept.X[fold])[:, 0]
        wide[alive[fold]] = left.held_out_bounds(kept.X[fold], kept.y[fold], D[:, fold])
    t.close("held-out scores", model.cv_predictions_, full, wide + oracles.stored(full, rows.eps))


def labels_and_pairs(t):
    """Preferences in addition to labels, given to `fit` or added later; and removed again."""
    rows = problems.rows(t, m=(4, 14), n=(1, 6), extreme=False, offsets=t.chance(0.2))
    ours, theirs = loss(t)
    ours["regression"] = theirs["beta"] = 0.0
    kept, m = rows.take(given(rows)), len(rows.y)
    D = differences(kept.y, kept.qid, u=kept.u, **theirs)
    P = np.array([t.rng.permutation(m)[:2] for _ in range(t.number(1, 6))])
    margins, weights = t.rng.normal(size=len(P)), t.pick(None, 10.0 ** t.rng.uniform(-3, 3, len(P)))
    E = oracles.pair_differences(P, m, weights)
    root = np.ones(len(P), LD) if weights is None else np.sqrt(ld(weights))
    A = np.vstack([D @ ld(kept.X), E @ ld(rows.X)])
    alpha = some_alpha(t, typical(A), -3)
    X, y, qid, u = t.let(X=rows.X.astype(rows.dtype)), t.let(y=rows.y), t.let(qid=rows.qid), t.let(u=rows.u)
    t.let(pairs=P, margins=margins, weights=weights)
    way = t.pick("fit", "add", "removed")
    line = f"model = RankRLS({alpha!r}, **{ours!r}).fit(X, y, qid, u)  # pairs: {way}"
    model = RankRLS(alpha, **ours)
    if way == "fit":
        t.do(line)
        with t.may_refuse():
            model.fit(X, y, qid, u, pairs=P, margins=margins, pair_weights=weights)
    else:
        fitted(t, model, X, y, qid, u, kept, line)
        with t.may_refuse():
            model.add_pairs(X, P, margins, weights)
            if way == "removed":
                model.remove_pairs(X, P)
    whole = np.zeros((len(D) + len(E), m), LD)
    whole[: len(D), given(rows)] = D
    whole[len(D) :] = E
    z = np.concatenate([D @ ld(kept.y), root * ld(margins)])
    spent = Spent(rows.X, rows.y, whole, rows.u)
    if way == "removed":
        truth = Linear(kept.X, kept.y, D, alpha, rows.eps, spent=spent)
    else:
        truth = Linear(rows.X, rows.y, whole, alpha, rows.eps, z=z)
    check_scores(t, model, truth, rows)


def encoded(t):
    """TableEncoder on numbers and categories with gaps, compared with its definition; frames of two libraries agree."""
    import pandas as pd
    import polars as pl

    m = t.number(4, 15)
    columns, kinds = {}, {}
    for j in range(t.number(1, 4)):
        kinds[f"c{j}"] = kind = t.pick("number", "text")
        if kind == "number":
            values = t.rng.normal(size=m) * t.pick(1, 1, 1e-6, 1e6) + t.pick(0, 0, 100)
            values = np.rint(values) if t.chance(0.3) else values
            columns[f"c{j}"] = np.where(t.rng.random(m) < t.pick(0, 0, 0.2), np.nan, values).tolist()
        else:
            words = t.pick(["a"], ["a", "b"], ["red", "green", "", "Rot"])
            columns[f"c{j}"] = [None if t.chance(0.1) else t.pick(*words) for _ in range(m)]
    new = {name: [values[i] for i in t.rng.integers(0, m, 5)] for name, values in columns.items()}
    for name, values in new.items():
        if kinds[name] == "text" and t.chance(0.5):
            values[0] = "never seen"
    t.let(columns=columns, new=new)
    library = t.pick("pandas", "polars")
    schema = {name: pl.Float64 if kind == "number" else pl.String for name, kind in kinds.items()}
    make = pd.DataFrame if library == "pandas" else (lambda c: pl.DataFrame(c, schema=schema))
    if library == "polars":
        for c in (columns, new):
            for name, kind in kinds.items():
                if kind == "number":
                    c[name] = [None if v != v else v for v in c[name]]
    if all(len({v for v in values if v is not None and v == v}) < 2 for values in columns.values()):
        return  # nothing varies
    t.do(f'TableEncoder(numbers="standard", columns={kinds!r}).fit_transform({library} frame)')
    with t.may_refuse():
        encoder = TableEncoder(numbers="standard", columns=kinds)
        found = encoder.fit(make(columns), np.arange(m) % 2.0).transform(make(new))
    expected, size = [], []
    for name, kind in kinds.items():
        blocks, sizes = (numbers_of if kind == "number" else levels_of)(columns[name], new[name])
        expected += blocks
        size += sizes
    expected = np.array(expected, LD).reshape(len(expected), 5).T
    found = found.toarray() if sparse.issparse(found) else np.asarray(found)
    t.close("encoded columns", found, expected, np.broadcast_to(np.array(size, LD), expected.shape), size=1.0)


def numbers_of(values, new):
    """Standardised, 0 where missing; also a column that marks missing values, if there were any."""
    x = np.array([np.nan if v is None else v for v in values], LD)
    z = np.array([np.nan if v is None else v for v in new], LD)
    there, blocks, sizes = x[~np.isnan(x)], [], []
    if len(np.unique(there)) > 1:
        mean, deviation = there.mean(), np.sqrt(np.mean((there - there.mean()) ** 2))
        blocks.append(np.where(np.isnan(z), 0, (z - mean) / deviation))
        sizes.append(
            100 * problems.DOUBLE * (1 + np.abs(there).max() / deviation) * (1 + np.abs(there).max() / deviation)
        )
    if 0 < len(there) < len(x):
        blocks.append(np.isnan(z).astype(LD))
        sizes.append(LD(0))
    return blocks, [s + LD("1e-300") for s in sizes]


def levels_of(values, new):
    """A 0/1 column for each level, in alphabetical order, missing last; none if there is only one level."""
    values, new = ([None if v == "" else v for v in column] for column in (values, new))  # no text is no value
    levels = sorted({v for v in values if v is not None})
    if any(v is None for v in values):
        levels.append(None)
    if len(levels) < 2:
        return [], []
    return [np.array([v == level if v is not None else level is None for v in new], LD) for level in levels], [
        LD("1e-300")
    ] * len(levels)


def ways_to_predict(t):
    """Rows in any form get the same scores up to rounding, one by one or together; ranks follow scores."""
    rows = problems.rows(t, m=(6, 16), n=(1, 6), extreme=False, offsets=False)
    rows.dtype = np.float64
    ours, _ = loss(t)
    kernel = t.pick(None, None, "rbf", "linear", "poly")
    X, y, qid = t.let(X=rows.X), t.let(y=rows.y), t.let(qid=rows.qid)
    t.do(f"model = RankRLS(1.0, kernel={kernel!r}, **{ours!r}).fit(X, y, qid, u)")
    names = {f"f{j}": rows.X[:, j] for j in range(rows.X.shape[1])}
    form = t.pick("list", "fortran", "csr", "coo", "pandas", "polars", "arrow", "row by row", "scorer", "float32")
    t.do(f"# the same rows as {form}")
    if form in ("pandas", "polars", "arrow"):
        X = problems.framed(t, names, form)
    with t.may_refuse():
        model = RankRLS(1.0, kernel=kernel, **ours).fit(X, y, qid, rows.u)
    plain = lambda: model.predict(asked(model, rows.X))
    scores = plain()
    if form == "row by row":
        found = np.concatenate([model.predict(row[None]) for row in rows.X])
    elif form == "scorer":
        found = model.scorer()(np.ascontiguousarray(rows.X))
    elif form == "float32":
        rows.X = rows.X.astype(np.float32).astype(float)
        scores, found = plain(), model.predict(rows.X.astype(np.float32))
    elif form in ("csr", "coo"):
        found = model.predict(getattr(sparse, f"{form}_array")(rows.X))
    elif form in ("pandas", "polars", "arrow"):
        found = model.predict(problems.framed(t, names, form))
    else:
        found = model.predict(rows.X.tolist() if form == "list" else np.asfortranarray(rows.X))
    coef = model.coef_ if kernel is None else model.dual_coef_
    values = np.abs(rows.X) if kernel is None else np.abs(model.kernel_(rows.X, rows.X))
    single = form == "float32"
    k = values if kernel is None else np.abs(model.kernel_(rows.X, model.X_fit_))
    eps = problems.SINGLE if single else problems.DOUBLE
    size = k @ np.abs(coef) + abs(model.intercept_)
    if kernel is not None:  # entries are off by their error, not by their own rounding
        size = size + np.abs(coef).sum() * float(np.max(values)) * (1 + float(np.sum(rows.X**2, axis=1).max()))
    t.close(f"scores of {form}", found, scores, (rows.X.shape[1] + len(rows.y) + 10) * eps * size, size=np.inf)
    place, scores = model.rank(asked(model, rows.X), rows.qid), plain()
    for q in np.unique(rows.qid):
        here = np.flatnonzero(rows.qid == q)
        order = sorted(here.tolist(), key=lambda i: (-scores[i], i))
        t.same("ranks", place[order], np.arange(1, len(here) + 1))


CATEGORIES = {
    "scaled columns": scaled,
    "columns of tables": columns_of_tables,
    "weights of given signs": signed,
    "labels and pairs": labels_and_pairs,
    "encoded tables": encoded,
    "ways to predict": ways_to_predict,
}
