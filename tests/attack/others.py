"""Rankers of clicks, and rows without an answer."""

import numpy as np

from rankrls import AutoRanker, RankRLS, clicks

from . import oracles, problems, rankers
from .oracles import LD, Linear, differences, ld
from .rankers import UNSCALED, some_alpha, typical
from .trial import DeviationError

TIE_BITS = 40
FREE = 100.0  # scale of the columns of positions; see `_additive` in rankrls.clicks


def clicked(t):
    """ClickRanker: linear models of clicks by document, or of clicks by document and position, by their definitions."""
    rows = problems.rows(t, m=(4, 12), n=(1, 4), queries=3, extreme=False, offsets=False, weights=False)
    rows.dtype, m, top = np.float64, len(rows.y), t.number(2, 4)
    n = t.number(m, 4 * m)
    row, position = t.rng.integers(0, m, n), t.rng.integers(1, top + 1, n)
    shown = t.rng.integers(1, 30, n)
    clicks_ = np.minimum(shown, t.rng.integers(0, 30, n))
    clicks_[0] = shown[0]  # at least one
    method = t.pick("positions", "propensities", "expected", "naive")
    theta = np.ones(top) if method == "naive" else 1 / np.arange(1, top + 1) ** t.power(-1, 0.5)
    log = clicks.ClickLog(rows.qid[row], row, position, clicks_, shown)
    if method == "positions":
        X, y, qid, u = rows.X[row], ld(clicks_) / shown, rows.qid[row], shown / shown.mean()
        A = np.hstack([ld(X), FREE * (position[:, None] == np.arange(1, position.max() + 1))])
    else:
        seen = np.unique(row)
        sums = lambda v: np.array([np.sum(ld(v)[row == i]) for i in seen], LD)
        at = ld(theta)[position - 1]
        got, many = (sums(clicks_ / at), sums(shown)) if method == "propensities" else (sums(clicks_), sums(shown * at))
        X, y, qid, u = rows.X[seen], got / many, rows.qid[seen], (many / many.mean()).astype(float)
        A = ld(X)
    ours, theirs = rankers.loss(t)
    ours["regression"] = theirs["beta"] = 0.0
    if method == "positions":
        ours["tied_pairs"] = theirs["tied"] = True
    if method != "positions":  # rates that differ by less tie
        share, power = np.frexp(y)
        y = np.ldexp(np.rint(np.ldexp(share, TIE_BITS)), power - TIE_BITS)
    D = differences(y.astype(float), qid, u=u, **theirs)
    alpha = some_alpha(t, typical(D @ ld(X)), -3)
    given = None if method in ("positions", "naive") else theta
    t.let(X=rows.X, qid=rows.qid, log=[rows.qid[row], row, position, clicks_, shown], theta=given)
    t.do(f"clicks.ClickRanker(RankRLS({alpha!r}, **{ours!r}), method={method!r}, propensities=theta).fit(X, log, qid)")
    with t.may_refuse():
        model = clicks.ClickRanker(RankRLS(alpha, **ours), method=method, propensities=given)
        model.fit(rows.X, log, rows.qid)
    truth = Linear(A, y, D, alpha, 4 * rows.eps, u=u)
    asked = (
        rows.new if method != "positions" else np.hstack([rows.new, np.zeros((len(rows.new), A.shape[1] - X.shape[1]))])
    )
    last = oracles.norm(np.abs(D) @ np.abs(y)) * LD(2) ** -TIE_BITS * oracles.spectral(D @ A) * truth.inverse
    bound = truth.bounds(asked)[:, 0] + np.sqrt(np.sum(ld(asked) ** 2, axis=1)) * last
    if method == "positions":  # labels less effects are learned from again, and effects are off by their error
        effects = FREE * np.sqrt(A.shape[1]) * truth.dw
        again = Linear(X, y, D, alpha, 4 * rows.eps, u=u)
        push = oracles.norm(D) * effects * oracles.spectral(D @ ld(X)) * again.inverse
        bound = 2 * bound + np.sqrt(np.sum(ld(rows.new) ** 2, axis=1)) * push
    t.close("scores of new rows", model.predict(rows.new), truth.scores(asked)[:, 0], bound)


def no_answer(t):
    """A row that holds NaN has the score NaN in a serving loop, or is refused; its neighbours keep theirs."""
    rows = problems.rows(t, m=(8, 16), n=(1, 4), queries=3, extreme=False, offsets=False, weights=False)
    rows.y = t.rng.integers(0, 3, len(rows.y)).astype(float)
    rows.dtype, what = np.float64, t.pick("scorer", "scorer", "scorer", "automatic")
    value = t.pick(np.nan, np.nan, np.inf, -np.inf)
    kernel, basis = t.pick(None, "rbf", "laplacian", "poly", "linear", "cosine"), None
    if kernel is not None and t.chance(0.3):
        basis = 2
    spoiled, at = rows.new.copy(), t.number(0, len(rows.new) - 1)
    spoiled[at, t.number(0, spoiled.shape[1] - 1)] = value
    others = np.arange(len(spoiled)) != at
    t.let(X=rows.X, y=rows.y, qid=rows.qid, new=spoiled)
    if what == "automatic":
        t.do('AutoRanker(effort="fast").fit(X, y, qid).predict(new)')
        with t.may_refuse():
            model = AutoRanker(effort="fast").fit(rows.X, rows.y, rows.qid)
        one = np.arange(len(spoiled))
        expected = model.predict(rows.new, one)
        try:
            found = model.predict(spoiled, one)
        except ValueError as error:
            t.true(f"the refusal names infinity: {error}", not np.isnan(value) and "inf" in str(error).lower())
            return
        t.true("a missing value is scored, infinity is not", bool(np.isnan(value) and np.isfinite(found).all()))
        t.close("scores of the other rows", found[others], expected[others], 1e-9 * np.abs(expected).max(), size=np.inf)
        return
    t.do(f"RankRLS(1.0, kernel={kernel!r}, basis={basis!r}).fit(X, y, qid).scorer()(new)")
    with t.may_refuse():
        model = RankRLS(1.0, kernel=kernel, basis=basis, random_state=0, **UNSCALED).fit(rows.X, rows.y, rows.qid)
    with np.errstate(all="ignore"):
        found, expected = model.scorer()(spoiled), model.scorer()(rows.new)
    if np.isnan(value):
        t.true(f"a row with NaN scores NaN, not {found[at]}", bool(np.isnan(found[at])))
    size = np.abs(expected).max() + np.abs(getattr(model, "dual_coef_", 0)).sum()
    t.close("scores of the other rows", found[others], expected[others], 1e-9 * size, size=np.inf)
    try:
        model.predict(spoiled)
    except ValueError as error:
        t.true(f"the refusal names what was found: {error}", "NaN" in str(error) or "inf" in str(error).lower())
    else:
        raise DeviationError(f"predict of a row with {value} was accepted")


CATEGORIES = {"clicks by position": clicked, "rows without an answer": no_answer}
