"""RankRLS: linear and kernel models, hold-out, explicit pairs, updates of sums, rows in blocks and files."""

import inspect
import pickle
import tempfile

import numpy as np
from scipy import sparse

import rankrls
from rankrls import RankRLS, bases, kernels

from . import oracles, problems
from .left_out import Spent
from .oracles import Linear, differences
from .trial import DeviationError, Refused

UNSCALED = {"scale": None} if "scale" in inspect.signature(RankRLS).parameters else {}


def loss(t, *, several=False):
    """Parameters of the loss: for the library and for the oracle."""
    weighting, tied = t.pick("pairs", "queries", "items"), several or t.chance(0.5)
    beta = t.pick(0.0, 0.0, 0.0, 0.3, 1.0, t.power(-6, -1))
    ours = {"weighting": weighting, "tied_pairs": tied, "regression": beta, **UNSCALED}
    return ours, {"weighting": weighting, "tied": tied, "beta": beta}


def typical(A):
    """The mean eigenvalue of A'A; 1 where there is none."""
    return in_range(np.sum(A * A) / max(A.shape[1], 1))


def in_range(size):
    """A double."""
    return float(min(size, oracles.LD("1e290"))) if size > oracles.LD("1e-280") else 1.0


def given(rows):
    """The rows that count: a row of weight zero is as if not given."""
    return np.arange(len(rows.y)) if rows.u is None else np.flatnonzero(rows.u > 0)


def weight_of(rows):
    """The weight of all rows."""
    return oracles.LD(len(rows.y)) if rows.u is None else np.sum(oracles.ld(rows.u))


def kernel_size(D, K):
    """The mean eigenvalue of D K D', or what rounding leaves if it is zero."""
    mean = np.sum(D * (D @ K)) / len(K)
    return in_range(max(mean, np.abs(K).max() * np.sum(D * D) * 1e-9))


def some_alpha(t, size, least=-5):
    """A regularisation from weak to strong, for a problem of some scale."""
    return float(np.clip(size * t.power(least, 3), 1e-300, 1e300))


def labels_of(y, several):
    return y if several else y.reshape(len(y))


def fitted(t, model, X, y, qid, u, kept, line):
    """Fit; an error is acceptable only if there is nothing to learn."""
    t.do(line)
    try:
        with t.may_refuse():
            model.fit(X, y, qid=qid, sample_weight=u)
    except Refused as refusal:
        labels = np.asarray(kept.y).reshape(len(kept.y), -1)
        comparable = any(len(np.unique(labels[kept.qid == q], axis=0)) > 1 for q in np.unique(kept.qid))
        if "no comparable pair" in str(refusal) and comparable:
            raise DeviationError(f"there are comparable pairs, but: {refusal}") from None
        raise
    return model


def linear(t, draw=problems.rows):
    """A linear model of rows in any format, compared with the normal equations of the differences."""
    several = t.chance(0.15)
    rows = draw(t, several=several, n=t.pick((1, 8), (1, 8), (9, 30)))
    ours, theirs = loss(t, several=several)
    kept = rows.take(given(rows))
    D = differences(kept.y if not several else kept.y[:, 0], kept.qid, u=kept.u, **theirs)
    alpha = some_alpha(t, typical(D @ oracles.ld(kept.X)))
    X = t.let(X=problems.dressed(t, rows.X, rows.dtype))
    y, qid, u = t.let(y=rows.y), t.let(qid=problems.labelled(t, rows.qid)), t.let(u=rows.u)
    line = f"model = RankRLS({alpha!r}, **{ours!r}).fit(X, y, qid, u)"
    model = fitted(t, RankRLS(alpha, **ours), X, y, qid, u, kept, line)
    truth = Linear(kept.X, kept.y, D, alpha, rows.eps, u=kept.u, intercept=theirs["beta"] > 0)
    check_scores(t, model, truth, rows, several)
    if t.chance(0.1):
        check_copies(t, model, rows)


def check_scores(t, model, truth, rows, several=False, kernel=None):
    """Scores of the training rows and of new ones; a kernel oracle gets kernel values."""
    for name, X in (("training rows", rows.X), ("new rows", rows.new)):
        found = model.predict(asked(model, X.astype(rows.dtype)))
        seen = X if kernel is None else kernel(X)
        expected, bound = truth.scores(seen), truth.bounds(seen)
        t.close(f"scores of {name}", found, labels_of(expected, several), bound if several else bound[:, 0])


def asked(model, X):
    """Rows to predict, with the names that the model knows."""
    if not hasattr(model, "feature_names_in_"):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=model.feature_names_in_)


def check_copies(t, model, rows):
    """A model that was saved, pickled or copied gives the same scores, bit by bit."""
    X = asked(model, rows.new.astype(rows.dtype))
    before = model.predict(X)
    t.same("scores of a pickled model", pickle.loads(pickle.dumps(model)).predict(X), before)
    with tempfile.TemporaryDirectory() as folder:
        rankrls.save(model, f"{folder}/model")
        t.same("scores of a saved model", rankrls.load(f"{folder}/model").predict(X), before)


# ---------------------------------------------------------------- kernels

NAMES = {"rbf": kernels.Gaussian, "laplacian": kernels.Laplacian, "poly": kernels.Polynomial}


def some_kernel(t, X):
    """A kernel of the library and the same for the oracle: name and parameters."""
    name = t.pick("rbf", "rbf", "laplacian", "poly", "linear", "cosine")
    if name in ("linear", "cosine"):
        return name, name, {}
    C = X if name == "poly" else X - X.mean(axis=0)
    size = np.abs(C).sum(axis=1) if name == "laplacian" else np.sum(C * C, axis=1)
    deviation = float(size.max() if name == "poly" else size.mean())
    options = {
        "gamma": float(t.power(-1.5, 0.7) / (deviation if deviation > 1e-20 * max(float(np.abs(X).max()), 1) else 1.0))
    }
    if name == "poly":
        options |= {"degree": t.number(1, 3), "coef0": t.pick(0.0, 1.0, 0.5)}
    return NAMES[name](**options), name, options


def kernel_model(t, draw=problems.rows):
    """A kernel model of all rows, or of a basis, given as rows, points or a number."""
    several = t.chance(0.1)
    rows = draw(t, m=(3, 16), n=(1, 4), several=several, extreme="labels")
    ours, theirs = loss(t, several=several)
    own, name, options = some_kernel(t, rows.X)
    kept = rows.take(given(rows))
    values = lambda A, B: oracles.kernel(name, A, B, **options)
    basis, points = some_basis(t, rows, kept)
    D = differences(kept.y if not several else kept.y[:, 0], kept.qid, u=kept.u, **theirs)
    K = values(kept.X, kept.X)
    alpha = some_alpha(t, kernel_size(D, K), -3)
    formats = [f for f in problems.FORMATS if name != "laplacian" or f not in ("csr", "csc", "coo")]
    X = t.let(X=problems.dressed(t, rows.X, rows.dtype, formats=formats))
    y, qid, u = t.let(y=rows.y), t.let(qid=problems.labelled(t, rows.qid)), t.let(u=rows.u)
    t.let(basis=basis)
    line = f"model = RankRLS({alpha!r}, kernel={own!r}, basis=basis, random_state=0, **{ours!r}).fit(X, y, qid, u)"
    line = line.replace("kernel=", "kernel=kernels.") if not isinstance(own, str) else line
    model = RankRLS(alpha, kernel=own, basis=basis, random_state=0, **ours)
    fitted(t, model, X, y, qid, u, kept, line)
    eps = rows.eps
    error = lambda *A: oracles.kernel_error(name, np.vstack([rows.X, rows.new, *A]), eps, **options)
    more = {"u": kept.u, "intercept": theirs["beta"] > 0}
    if basis is None:
        truth, against = oracles.Kernel(K, kept.y, D, alpha, eps, error(), **more), kept.X
    else:
        if points is None:  # drawn by the library: rows of X
            points = np.asarray(model.X_fit_.toarray() if sparse.issparse(model.X_fit_) else model.X_fit_, float)
            t.true("basis points are rows of X", all((p == rows.X).all(axis=1).any() for p in points))
        against = np.unique(points, axis=0)
        Krr = values(against, against)
        if np.linalg.cond(Krr.astype(float)) > 1e10:
            t.undecided, t.compared = 1, 1
            return
        # points may be far larger than rows: their own kernel values round as they do
        truth = oracles.Subset(values(kept.X, against), Krr, kept.y, D, alpha, eps, error(against), **more)
    check_scores(t, model, truth, rows, several, lambda A: values(A, against))
    if t.chance(0.1):
        check_copies(t, model, rows)


def some_basis(t, rows, kept):
    """`basis=` and the points it means; None if the library draws them."""
    m, kind = len(rows.y), t.pick("none", "none", "number", "random", "rows", "unsorted rows", "points")
    if kind == "none":
        return None, None
    size = t.number(1, max(1, min(len(kept.y), 6)))
    if kind == "number":
        return size, None
    if kind == "random":
        return bases.RandomRows(size), None
    if kind == "points":
        points = rows.X[t.rng.permutation(m)[:size]] + t.pick(0.0, 0.5)
        points = points.astype(rows.dtype) if rows.dtype == np.float32 else points
        return points.astype(float), points.astype(float)
    numbers = t.rng.permutation(m)[:size]
    if kind == "rows":
        numbers = np.sort(numbers)
    elif t.chance(0.3):
        numbers = numbers - m * t.rng.integers(0, 2, size)  # counted from the end
    elif t.chance(0.3):
        numbers = np.concatenate([numbers, numbers[:1]])  # twice
    return numbers, rows.X[numbers % m]  # also where a row weighs nothing: a point is a place, not an item


def precomputed(t):
    """A kernel matrix instead of rows, with or without a basis of row numbers."""
    rows = problems.rows(t, m=(3, 16), n=(1, 4), extreme=False, offsets=False)
    rows.dtype = np.float64
    ours, theirs = loss(t)
    _, name, options = some_kernel(t, rows.X)
    values = lambda A, B: oracles.kernel(name, A, B, **options).astype(float)
    K, Knew, m = values(rows.X, rows.X), values(rows.new, rows.X), len(rows.y)
    scale = t.pick(1.0, 1.0, 1.0, 1e-12, 1e12, 1e-100, 1e100)
    K, Knew = K * scale, Knew * scale
    kept, alive = rows.take(given(rows)), given(rows)
    D = differences(kept.y, kept.qid, u=kept.u, **theirs)
    inner = K[np.ix_(alive, alive)]
    alpha = some_alpha(t, kernel_size(D, oracles.ld(inner)), -3)
    basis, place = None, alive
    if t.chance(0.5):
        basis = t.rng.permutation(m)[: t.number(1, min(m, 6))]
        basis = basis - m * (t.rng.random(len(basis)) < 0.1)
        place = np.unique(basis % m)
        if np.linalg.cond(K[np.ix_(place, place)]) > 1e10:
            basis, place = None, alive
    t.let(K=K, y=rows.y, qid=rows.qid, u=rows.u, basis=basis)
    line = f"model = RankRLS({alpha!r}, kernel='precomputed', basis=basis, **{ours!r}).fit(K, y, qid, u)"
    model = RankRLS(alpha, kernel="precomputed", basis=basis, **ours)
    fitted(t, model, K, rows.y, rows.qid, rows.u, kept, line)
    error = problems.DOUBLE * np.abs(K).max()
    more = {"u": kept.u, "intercept": theirs["beta"] > 0}
    if basis is None:
        truth = oracles.Kernel(inner, kept.y, D, alpha, problems.DOUBLE, error, **more)
    else:
        outer, square = K[np.ix_(alive, place)], K[np.ix_(place, place)]
        truth = oracles.Subset(outer, square, kept.y, D, alpha, problems.DOUBLE, error, **more)
    for what, A in (("training rows", K), ("new rows", Knew)):
        t.close(f"scores of {what}", model.predict(A), truth.scores(A[:, place])[:, 0], truth.bounds(A[:, place])[:, 0])


# ---------------------------------------------------------------- hold-out


def held_out(t, draw=problems.rows):
    """cv_predictions_ and cv_scores_ at every alpha, compared with a refit for every fold."""
    rows = draw(t, m=(4, 14), n=t.pick((1, 5), (1, 5), (6, 20)), queries=5, offsets=t.chance(0.3))
    ours, theirs = loss(t)
    rows.qid = np.unique(rows.qid, return_inverse=True)[1]
    kept, alive = rows.take(given(rows)), given(rows)
    D = differences(kept.y, kept.qid, u=kept.u, **theirs)
    size = typical(D @ oracles.ld(kept.X))
    alphas = t.let(alphas=np.array(sorted({some_alpha(t, size) for _ in range(t.number(1, 3))})))
    X, y, qid, u = t.let(X=rows.X.astype(rows.dtype)), t.let(y=rows.y), t.let(qid=rows.qid), t.let(u=rows.u)
    queries = np.unique(kept.qid)
    if len(queries) < 2:
        return
    folds = [np.flatnonzero(kept.qid == q) for q in queries]
    cv = "leave-query-out"
    if t.chance(0.3) and len(queries) > 2:
        k = t.number(2, len(queries) - 1)
        cut = [queries[i::k] for i in range(k)]
        whole = np.unique(rows.qid)
        cv = [(np.flatnonzero(~np.isin(rows.qid, part)), np.flatnonzero(np.isin(rows.qid, part))) for part in cut]
        cv = [(a, b) for a, b in cv if len(whole)]
        folds = [np.flatnonzero(np.isin(kept.qid, part)) for part in cut]
    t.let(cv=cv)
    line = f"model = RankRLS(alphas=alphas, cv=cv, **{ours!r}).fit(X, y, qid, u)"
    model = fitted(t, RankRLS(alphas=alphas, cv=cv, **ours), X, y, qid, u, kept, line)
    best = int(np.argmin(np.abs(alphas - model.alpha_)))
    judged = []
    for k, alpha in enumerate(alphas):
        scores, bound, learned = refits(kept, D, folds, alpha, theirs, rows.eps)
        judged.append(oracles.pairwise_accuracy(kept.y, scores, kept.qid, bound, kept.X, learned))
        if k == best:
            full, wide = np.full(len(rows.y), np.nan, oracles.LD), np.zeros(len(rows.y), oracles.LD)
            full[alive], wide[alive] = scores, bound
            t.close("held-out scores", model.cv_predictions_, full, wide + oracles.stored(full, rows.eps))
    for k, (value, doubtful) in enumerate(judged):
        if not doubtful and np.isfinite(value):
            t.close(f"held-out accuracy of alpha {k}", model.cv_scores_[k], value, 1e-12, size=1.0)


def refits(rows, D, folds, alpha, theirs, eps):
    """Scores of each fold by a model of the other rows, their bounds, and whether that model has any weights."""
    learned = np.ones(len(rows.y), bool)
    scores, bound = np.full(len(rows.y), np.nan, oracles.LD), np.zeros(len(rows.y), oracles.LD)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(rows.y)), fold)
        part = rows.take(rest)
        d = differences(part.y, part.qid, u=part.u, **theirs)
        model = Linear(
            part.X,
            part.y,
            d,
            alpha,
            eps,
            u=part.u,
            intercept=theirs["beta"] > 0,
            spent=Spent(rows.X, rows.y, D, rows.u, theirs["beta"]).besides(fold),
        )
        scores[fold], learned[fold] = model.scores(rows.X[fold])[:, 0], model.w.any()
        bound[fold] = model.held_out_bounds(rows.X[fold], rows.y[fold], D[:, fold])
    return scores, bound, learned


# ---------------------------------------------------------------- explicit pairs


def pairs(t):
    """fit_pairs with margins and weights."""
    rows = problems.rows(t, m=(3, 14), n=t.pick((1, 6), (10, 20)), weights=False)
    m = len(rows.y)
    P = np.array([t.rng.permutation(m)[:2] for _ in range(t.number(1, 20))])
    margins = t.pick(None, t.rng.normal(size=len(P)), np.abs(t.rng.normal(size=len(P))) * t.power(-8, 8))
    weights = t.pick(None, t.rng.uniform(0.1, 3, len(P)), 10.0 ** t.rng.uniform(-6, 6, len(P)))
    D = oracles.pair_differences(P, m, weights)
    z = np.sqrt(np.ones(len(P)) if weights is None else oracles.ld(weights))
    z = z * (1 if margins is None else oracles.ld(margins))
    alpha = some_alpha(t, typical(D @ oracles.ld(rows.X)))
    X = t.let(X=problems.dressed(t, rows.X, rows.dtype))
    t.let(pairs=P, margins=margins, weights=weights)
    t.do(f"model = RankRLS({alpha!r}, **{UNSCALED}).fit_pairs(X, pairs, margins, weights)")
    with t.may_refuse():
        model = RankRLS(alpha, **UNSCALED).fit_pairs(X, P, margins, weights)
    check_scores(t, model, Linear(rows.X, None, D, alpha, rows.eps, z=z), rows)


def far_above(t, **limits):
    """Rows of which one query has labels far above those of the rest."""
    rows = problems.rows(t, **limits)
    first = rows.qid == rows.qid[0]
    size = t.pick(1e3, 1e6, 1e9, 1e12)
    rows.y = rows.y.copy()
    rows.y[first] = rows.y[first] * size if t.chance(0.5) else rows.y[first] + size
    return rows


def one_query_above(t):
    """A query whose labels are far above the rest changes no held-out score, and no other, by more than rounding."""
    from .holdout import kernels_held_out

    t.pick(linear, kernel_model, held_out, held_out, kernels_held_out)(t, draw=far_above)


# ---------------------------------------------------------------- sums


def updates(t):
    """partial_fit and forget of whole queries in any order, compared with one fit of the queries that remain."""
    rows = problems.rows(t, m=(8, 24), n=(1, 6), offsets=t.chance(0.3))
    ours, theirs = loss(t)
    every = differences(rows.y, rows.qid, u=np.ones(len(rows.y)) if rows.u is None else rows.u, **theirs)
    alpha = some_alpha(t, typical(every @ oracles.ld(rows.X)))
    X, y, u = t.let(X=rows.X.astype(rows.dtype)), t.let(y=rows.y), t.let(u=rows.u)
    qid = t.let(qid=problems.labelled(t, rows.qid, types=("int", "negative", "str", "object", "float")))
    model, inside, spent = RankRLS(alpha, **ours), [], []
    t.do(f"model = RankRLS({alpha!r}, **{ours!r})")
    todo = [np.flatnonzero(rows.qid == q) for q in t.rng.permutation(np.unique(rows.qid))]
    while todo or (inside and len(inside) > 1 and t.chance(0.4)):
        learn = not inside or (todo and t.chance(0.7))
        if learn and not todo:
            break
        part = todo.pop() if learn else inside.pop(t.number(0, len(inside) - 1))
        weights = None if u is None else u[part]
        if weights is not None and not weights.any():
            continue
        step = "partial_fit" if learn else "forget"
        t.do(f"part = {part.tolist()}; model.{step}(X[part], y[part], qid[part], u if u is None else u[part])")
        try:
            with t.may_refuse():
                getattr(model, step)(X[part], y[part], qid=qid[part], sample_weight=weights)
        except Refused as refusal:  # right only where more was forgotten than digits are there for
            if step == "forget" and not outweighed(rows, spent, [p for p in inside if p is not part], theirs, alpha):
                raise DeviationError(f"refused without need: {refusal}") from None
            raise
        if learn:
            inside.append(part)
            spent.append(part)
    if not inside:
        return
    kept, ever = np.sort(np.concatenate(inside)), np.sort(np.concatenate(spent))
    if rows.u is not None:
        kept, ever = kept[rows.u[kept] > 0], ever[rows.u[ever] > 0]
    part, whole = rows.take(kept), rows.take(ever)
    D = differences(part.y, part.qid, u=part.u, **theirs)
    if not len(D):
        return
    Dall = differences(whole.y, whole.qid, u=whole.u, **theirs)
    truth = Linear(
        part.X,
        part.y,
        D,
        alpha,
        rows.eps,
        u=part.u,
        intercept=theirs["beta"] > 0,
        spent=Spent(whole.X, whole.y, Dall, whole.u, theirs["beta"]),
    )
    check_scores(t, model, truth, rows)
    t.same("queries", model.n_queries_, len(np.unique(part.qid)))


def outweighed(rows, ever, left, theirs, alpha):
    """True if what was in the sums is 10^4 times what remains, or more, in some column, in y or in weight.

    A forgotten row is subtracted, so the rounding of the largest sums remains; the library refuses at 10^9, and in
    single precision sums have 7 digits. Sums are those of differences, and the penalty goes with what remains of a
    column.
    """

    def sizes(parts, rounding=False):
        part = rows.take(np.sort(np.concatenate(parts)) if parts else np.empty(0, int))
        part = part.take(given(part))
        if not len(part.y):
            return np.zeros(rows.X.shape[1] + 2, oracles.LD)
        D = differences(part.y, part.qid, u=part.u, **theirs)
        A, z = D @ oracles.ld(part.X), D @ oracles.ld(part.y)
        if rounding:
            A = np.abs(A) + rows.eps * np.abs(D) @ np.abs(oracles.ld(part.X))
        return np.concatenate([np.sum(A * A, axis=0), [np.sum(z * z), weight_of(part)]])

    stays = sizes(left)
    stays[:-2] += oracles.LD(alpha)
    return bool(np.any(sizes(ever, rounding=True) > 1e4 * stays))


CATEGORIES = {
    "linear models": linear,
    "kernel models": kernel_model,
    "precomputed kernels": precomputed,
    "held-out scores": held_out,
    "one query far above": one_query_above,
    "explicit pairs": pairs,
    "partial_fit and forget": updates,
}
