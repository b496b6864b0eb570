"""Hold-out of kernel models and of single queries, and that fits leave their input alone."""

import numpy as np

from rankrls import RankRLS

from . import oracles, problems
from .left_out import Spent, Whole
from .oracles import LD, differences
from .rankers import UNSCALED, fitted, given, kernel_size, loss, some_alpha, some_kernel, typical


def kernels_held_out(t, draw=problems.rows):
    """cv_predictions_ of a kernel model without each query, compared with refits."""
    rows = draw(t, m=(4, 12), n=(1, 3), queries=4, extreme="labels", offsets=t.chance(0.2))
    ours, theirs = loss(t)
    own, name, options = some_kernel(t, rows.X)
    kept, alive = rows.take(given(rows)), given(rows)
    if len(np.unique(kept.qid)) < 2:
        return
    K = oracles.kernel(name, kept.X, kept.X, **options)
    D = differences(kept.y, kept.qid, u=kept.u, **theirs)
    alpha = some_alpha(t, kernel_size(D, K), -2)
    X, y, qid, u = t.let(X=rows.X.astype(rows.dtype)), t.let(y=rows.y), t.let(qid=rows.qid), t.let(u=rows.u)
    line = f"model = RankRLS(alphas=[{alpha!r}], kernel={own!r}, **{ours!r}).fit(X, y, qid, u)"
    model = fitted(t, RankRLS(alphas=[alpha], kernel=own, **ours), X, y, qid, u, kept, line)
    error = oracles.kernel_error(name, rows.X, rows.eps, **options)
    full, wide = np.full(len(rows.y), np.nan, LD), np.zeros(len(rows.y), LD)
    for q in np.unique(kept.qid):
        fold, rest = np.flatnonzero(kept.qid == q), np.flatnonzero(kept.qid != q)
        part = kept.take(rest)
        d = differences(part.y, part.qid, u=part.u, **theirs)
        whole = Whole(K, kept.y, D, rest, kept.u, theirs["beta"])
        more = {"u": part.u, "intercept": theirs["beta"] > 0, "whole": whole}
        truth = oracles.Kernel(K[np.ix_(rest, rest)], part.y, d, alpha, rows.eps, error, **more)
        to = K[np.ix_(fold, rest)]
        level = oracles.item_means(K[:, rest] @ truth.a, kept.u)[0] if theirs["beta"] > 0 else 0
        full[alive[fold]], wide[alive[fold]] = truth.scores(to)[:, 0], truth.held_out_bounds(to, level)
    t.close("held-out scores", model.cv_predictions_, full, wide + oracles.stored(full, rows.eps))


def one_query(t):
    """A single query cut into folds of its items, given as splits: each is scored by the model of the others."""
    rows = problems.rows(t, m=(5, 14), n=t.pick((1, 4), (6, 16)), queries=1, offsets=t.chance(0.3))
    ours, theirs = loss(t)
    kept, alive = rows.take(given(rows)), given(rows)
    m = len(kept.y)
    if m < 4:
        return
    D = differences(kept.y, kept.qid, u=kept.u, **theirs)
    alpha = some_alpha(t, typical(D @ oracles.ld(kept.X)), -4)
    parts = [p for p in np.array_split(t.rng.permutation(m), t.number(2, max(2, m // 2))) if len(p)]
    cv = [(np.setdiff1d(np.arange(len(rows.y)), alive[p]), alive[p]) for p in parts]
    X, y, u = t.let(X=rows.X.astype(rows.dtype)), t.let(y=rows.y), t.let(u=rows.u)
    t.let(cv=cv)
    line = f"model = RankRLS(alphas=[{alpha!r}], cv=cv, **{ours!r}).fit(X, y, None, u)"
    model = fitted(t, RankRLS(alphas=[alpha], cv=cv, **ours), X, y, None, u, kept, line)
    full, wide = np.full(len(rows.y), np.nan, LD), np.zeros(len(rows.y), LD)
    for fold in parts:
        part = kept.take(np.setdiff1d(np.arange(m), fold))
        d = differences(part.y, part.qid, u=part.u, **theirs)
        truth = oracles.Linear(
            part.X,
            part.y,
            d,
            alpha,
            rows.eps,
            u=part.u,
            intercept=theirs["beta"] > 0,
            spent=Spent(kept.X, kept.y, D, kept.u, theirs["beta"]),
        )
        full[alive[fold]] = truth.scores(kept.X[fold])[:, 0]
        wide[alive[fold]] = truth.held_out_bounds(kept.X[fold], kept.y[fold], D[:, fold])
    if theirs["beta"] > 0:
        t.close("held-out scores", model.cv_predictions_, full, wide)
        return
    for fold in parts:  # ranking does not see a constant: differences within a fold, rounded at the level they are at
        there = alive[fold]
        level = rows.eps * np.abs(model.cv_predictions_[there]).max()
        found = model.cv_predictions_[there] - model.cv_predictions_[there[0]]
        t.close("held-out differences", found, full[there] - full[there[0]], wide[there] + wide[there[0]] + level)


def untouched(t):
    """A fit does not change its input, and later changes of the input do not change the model."""
    rows = problems.rows(t, m=(6, 14), n=(1, 4), extreme=False, offsets=False)
    ours, _ = loss(t)
    kernel = t.pick(None, "rbf", "linear")
    basis = None if kernel is None else t.pick(None, 2)
    X, y, qid = rows.X.astype(rows.dtype), rows.y.copy(), rows.qid.copy()
    u = None if rows.u is None else rows.u.copy()
    before = [None if a is None else a.copy() for a in (X, y, qid, u)]
    t.do(f"model = RankRLS(1.0, kernel={kernel!r}, basis={basis!r}, **{ours!r}).fit(X, y, qid, u)  # then X[:] = 0")
    with t.may_refuse():
        model = RankRLS(1.0, kernel=kernel, basis=basis, random_state=0, **ours).fit(X, y, qid, u)
    for name, now, then in zip(["X", "y", "qid", "u"], (X, y, qid, u), before, strict=True):
        t.same(f"{name} after fit", now, then)
    scores = model.predict(before[0])
    X[:] = 7
    y[:] = 7
    if u is not None:
        u[:] = 7
    t.same("scores after the training rows were changed", model.predict(before[0]), scores)


def mixed_losses(t):
    """Sums of different losses are not added."""
    rows = problems.rows(t, m=(8, 14), n=(1, 4), extreme=False, offsets=False, weights=False)
    rows.qid = np.arange(len(rows.y)) % 2
    rows.y = t.rng.normal(size=len(rows.y))
    X = rows.X.astype(rows.dtype)
    first = {"weighting": "items", "tied_pairs": False, "regression": 0.0}
    name, value = t.pick(("weighting", "pairs"), ("tied_pairs", True), ("regression", 0.5))
    half = rows.qid == 0
    model = RankRLS(1.0, **first, **UNSCALED).partial_fit(X[half], rows.y[half], qid=rows.qid[half])
    before = model.predict(X)
    step = t.pick("partial_fit", "forget")
    t.let(X=X, y=rows.y, qid=rows.qid)
    t.do(f"partial_fit of half, set_params({name}={value!r}), {step}")
    model.set_params(**{name: value})
    part = half if step == "forget" else ~half
    try:
        with t.must_refuse(f"{step} after {name} was changed to {value!r}"):
            getattr(model, step)(X[part], rows.y[part], qid=rows.qid[part])
    finally:
        if hasattr(model, "coef_"):
            t.same("scores after a refusal", model.predict(X), before)


CATEGORIES = {
    "held-out scores of kernels": kernels_held_out,
    "held-out items of one query": one_query,
    "what a fit leaves alone": untouched,
    "changed parameters": mixed_losses,
}
