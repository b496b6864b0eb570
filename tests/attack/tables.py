"""Columns of tables, screens of pairs, cross-fitting and stacks: by their definitions, or by what must not matter."""

import numpy as np
from scipy import stats

from rankrls import ColumnMaps, PairScreen, PerQueryMinMax, RankRLS, cross_fit, qid_from_group, stack_weights

from .oracles import LD, ld
from .rankers import UNSCALED


def columns_of_tables(t):
    """Columns by their definitions: normal scores, ranks and ranges in queries; screens and stacks by invariance."""
    m, n = t.number(12, 30), t.number(1, 4)
    qid = np.sort(t.rng.integers(0, 3, m)) if t.chance(0.5) else t.rng.integers(0, 3, m)
    X = t.rng.normal(size=(m, n)) * t.pick(1.0, 1e-6, 1e6)
    X = np.rint(X) if t.chance(0.3) else X
    y = t.rng.integers(0, 3, m).astype(float)
    t.let(X=X, y=y, qid=qid)
    WAYS = {"maps": maps, "ranges": ranges, "screen": screen, "held out": fitted_across, "stack": stacked}
    WAYS[t.pick(*WAYS)](t, X, y, qid)


def maps(t, X, y, qid):
    """Normal scores of mid-ranks among all rows and among those of the query, with unit deviations."""
    relative = t.chance(0.5)
    with t.may_refuse():
        found = ColumnMaps(relative=relative).fit(X, qid=qid).transform(X, qid=qid)
    vary = [j for j in range(X.shape[1]) if np.ptp(X[:, j]) > 0]
    scores = lambda v: np.clip(stats.norm.ppf((stats.rankdata(v) - 0.5) / len(v)), -3, 3)
    expected = [scores(X[:, j]) for j in vary]
    if relative:
        for j in vary:
            within = np.empty(len(X))
            for q in np.unique(qid):
                within[qid == q] = scores(X[qid == q, j])
            expected.append(within)
    expected = np.array(expected).reshape(-1, len(X)).T
    deviation = expected.std(axis=0)
    t.close("normal scores", found, expected / np.where(deviation > 1e-3, deviation, 1), 1e-12, size=1.0)


def ranges(t, X, y, qid):
    """(x - low) / (high - low) in each query; 0 where a column does not vary."""
    with t.may_refuse():
        found = PerQueryMinMax().fit_transform(X, qid=qid)
    expected = np.zeros(X.shape, LD)
    for q in np.unique(qid):
        part = ld(X[qid == q])
        width = part.max(axis=0) - part.min(axis=0)
        expected[qid == q] = (part - part.min(axis=0)) / np.where(width > 0, width, 1)
    t.close("shares of ranges", found, expected, 1e-14 * (1 + np.abs(X).max() / np.maximum(np.ptp(X, axis=0), 1e-300)))
    groups = np.unique(qid, return_counts=True)[1]
    t.same("ids of groups", np.unique(qid_from_group(groups), return_counts=True)[1], groups)


def screen(t, X, y, qid):
    """The features of a table do not depend on the form, and rows are mapped one by one."""
    with t.may_refuse():
        found = PairScreen(2).fit(X, y, qid)
    before = found.transform(X)
    t.true("features are numbers", bool(np.isfinite(before).all()))
    t.same("features of another form", PairScreen(2).fit(np.asfortranarray(X), y, qid).transform(X), before)
    t.close("features row by row", np.vstack([found.transform(row[None]) for row in X]), before, 1e-12, size=1.0)


def fitted_across(t, X, y, qid):
    """No score of a query depends on its own labels."""
    qid = np.arange(len(y)) % 6
    X, y = (np.vstack([X, X[:1]]), np.append(y, y[:1])) if len(y) == 1 else (X, y)
    y = y + np.arange(len(y)) // 6  # something to compare in every fold
    with t.may_refuse():
        before = cross_fit(RankRLS(1.0, **UNSCALED), X, y, qid)
        own = np.where(qid == 2, -7 * y, y)
        after = cross_fit(RankRLS(1.0, **UNSCALED), X, own, qid)
    t.true("scores are numbers", bool(np.isfinite(before).all()))
    t.same("scores of a query whose labels changed", after[qid == 2], before[qid == 2])


def stacked(t, X, y, qid):
    """Weights of rankers are not negative, and in units of their scores."""
    H = np.column_stack([X, y])
    with t.may_refuse():
        w = stack_weights(H, y, qid)
    t.true("weights are not negative", bool(np.all(w >= 0)))
    scale = 2.0 ** t.rng.integers(-20, 20, H.shape[1])
    t.close("stack of scaled scores", (H * scale) @ stack_weights(H * scale, y, qid), H @ w, 1e-9 * np.abs(H @ w).max())
