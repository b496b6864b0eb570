"""Clicks, fused runs, gains of labels, and the automatic ranker."""

import pickle
import tempfile

import numpy as np

import rankrls
from rankrls import AutoRanker, RankRLS, clicks, fusion

from . import problems
from .oracles import LD, Linear, differences, ld
from .rankers import check_scores, fitted, given, loss, some_alpha, typical
from .variants import Signed


def gains(t):
    """`gain=`: the loss learns what a label is worth; ties and order are those of the labels."""
    rows = problems.rows(t, m=(4, 16), n=(1, 6), extreme=False, offsets=t.chance(0.3))
    rows.y = t.rng.integers(0, 5, len(rows.y)).astype(float)
    ours, theirs = loss(t)
    gain, worth = t.pick(
        ("linear", lambda y: y),
        ("exponential", lambda y: LD(2) ** y - 1),
        (np.sqrt, np.sqrt),
        (_cut, lambda y: np.minimum(y, 2)),
    )
    kept = rows.take(given(rows))
    labels = worth(ld(kept.y))
    D = differences(labels.astype(float), kept.qid, u=kept.u, **theirs)
    alpha = some_alpha(t, typical(D @ ld(kept.X)))
    X, y, qid, u = t.let(X=rows.X.astype(rows.dtype)), t.let(y=rows.y), t.let(qid=rows.qid), t.let(u=rows.u)
    line = f"model = RankRLS({alpha!r}, gain={getattr(gain, '__name__', gain)!r}, **{ours!r}).fit(X, y, qid, u)"
    worths = problems.Rows(kept.X, labels.astype(float), kept.qid, kept.u, kept.dtype)
    model = fitted(t, RankRLS(alpha, gain=gain, **ours), X, y, qid, u, worths, line)
    truth = Linear(kept.X, labels, D, alpha, rows.eps, u=kept.u, intercept=theirs["beta"] > 0)
    check_scores(t, model, truth, rows)


def _cut(y):
    return np.minimum(y, 2.0)


def click_log(t):
    """Clicks corrected for positions, compared with sums over the log by (query, document)."""
    n, top = t.number(1, 40), t.number(1, 6)
    table = {
        "query": [f"q{i}" for i in t.rng.integers(0, 3, n)],
        "document": [f"d{i}" for i in t.rng.integers(0, 5, n)],
        "position": (t.rng.integers(0, top, n) + 1).tolist(),
    }
    impressions = t.rng.integers(1, 20, n) * t.pick(1, 1, 10**6)
    table["impressions"] = impressions.tolist()
    table["clicked"] = np.minimum(impressions, t.rng.integers(0, 20, n)).tolist()
    theta, method = 1 / np.arange(1, top + 1) ** t.power(-1, 0.5), t.pick("expected", "propensities", "naive")
    t.let(table=table, theta=theta)
    t.do(f"clicks.from_clicks(pandas.DataFrame(table), theta=theta, method={method!r})")
    with t.may_refuse():
        import pandas as pd

        found = clicks.from_clicks(pd.DataFrame(table), theta=theta, method=method)
    got, shown = {}, {}
    names = ("query", "document", "position", "clicked", "impressions")
    for q, d, k, c, s in zip(*(table[name] for name in names), strict=True):
        at = LD(1) if method == "naive" else LD(theta[k - 1])
        inverse = method == "propensities"
        got[q, d] = got.get((q, d), LD(0)) + (c / at if inverse else LD(c))
        shown[q, d] = shown.get((q, d), LD(0)) + (LD(s) if inverse else s * at)
    rate = sum(got.values()) / sum(shown.values()) or LD(1)
    keys = list(zip(found.query.tolist(), found.document.tolist(), strict=True))
    t.same("judged documents", sorted(keys), sorted(got))
    rounding = 4 * (n + 10) * problems.DOUBLE
    rating = np.array([got[key] / (shown[key] * rate) for key in keys], LD)
    t.close("ratings", found.rating, rating, rounding * rating, size=1.0)
    weight = np.array([shown[key] for key in keys], LD)
    weight = weight / weight.mean()
    t.close("weights", found.weight, weight, rounding * weight)


def fused(t):
    """Weights of retrievers, compared with non-negative least squares on their normalised scores."""
    names = ["bm25", "dense", "title"][: t.number(1, 3)]
    queries, documents = t.number(2, 5), t.number(3, 6)
    runs, scores = {name: [] for name in names}, {}
    for name in names:
        size, level = t.pick(1.0, 1e-3, 1e6), t.pick(0.0, 10.0)
        for q in range(queries):
            for d in range(documents):
                if name == names[0] or t.chance(0.8):
                    scores[q, d, name] = float(np.round(t.rng.normal(), t.pick(1, 3)) * size + level * size)
                    runs[name].append((f"q{q}", f"d{d}", scores[q, d, name]))
    grades = t.rng.integers(0, 3, (queries, documents))
    how, alpha = t.pick("minmax", "minmax", "zscore"), t.power(-3, 2)
    judged = clicks.Judgments(
        np.repeat([f"q{q}" for q in range(queries)], documents),
        np.tile([f"d{d}" for d in range(documents)], queries),
        grades.ravel().astype(float),
    )
    t.let(runs=runs, grades=grades)
    t.do(f"fusion.Fusion(normalise={how!r}, alpha={alpha!r}).fit(runs, judgments)")
    with t.may_refuse():
        model = fusion.Fusion(normalise=how, alpha=alpha, scoring="pairwise_accuracy").fit(runs, judged)
    S = np.array([[normal(scores, q, d, name, documents, how) for name in names]
                  for q in range(queries) for d in range(documents)], LD)  # fmt: skip
    qid = np.repeat(np.arange(queries), documents)
    D = differences(grades.ravel(), qid, tied=False)
    truth = Signed(S, grades.ravel().astype(float), D, alpha, 1e3 * problems.DOUBLE, np.ones(len(names)))
    w = truth.w[:, 0]
    t.close("weights of retrievers", model.ranker_.coef_, w, truth.dw, size=float(np.abs(w).max()))
    t.close("shares", model.weights_, w / w.sum(), 4 * truth.dw / w.sum(), size=1.0)


def normal(scores, q, d, name, documents, how):
    """The normalised score of a document; see `Runs.normalised`."""
    known = [LD(scores[q, e, name]) for e in range(documents) if (q, e, name) in scores]
    if not known:
        return LD(0)
    low, high = min(known), max(known)
    here = (q, d, name) in scores
    if how == "minmax":
        return LD(0) if not here else LD(1) if high == low else (LD(scores[q, d, name]) - low) / (high - low)
    mean = sum(known) / len(known)
    deviation = np.sqrt(sum((v - mean) ** 2 for v in known) / len(known)) if high > low else LD(1)
    return ((LD(scores[q, d, name]) if here else low) - mean) / deviation


def automatic(t):
    """AutoRanker: the same problem stated differently gives the same scores, bit by bit."""
    rows = problems.rows(t, m=(16, 30), n=(1, 4), extreme=False, offsets=False, weights=False)
    rows.qid, rows.dtype = np.arange(len(rows.y)) // 4, np.float64
    rows.y = t.rng.integers(0, 3, len(rows.y)).astype(float)
    if t.chance(0.3):
        rows.X[t.rng.random(rows.X.shape) < 0.1] = np.nan
    form = t.pick("pandas", "polars", "list", "fortran", "query ids", "weights", "copies", "untouched")
    X, y, qid = t.let(X=rows.X), t.let(y=rows.y), t.let(qid=rows.qid)
    t.do(f'AutoRanker(effort="fast").fit(X, y, qid), and the same as {form}')
    with t.may_refuse():
        model = AutoRanker(effort="fast").fit(X, y, qid)
    before = model.predict(X, qid)
    t.true("scores are numbers", bool(np.isfinite(before).all()))
    if form == "copies":
        t.same("scores of a pickled model", pickle.loads(pickle.dumps(model)).predict(X, qid), before)
        with tempfile.TemporaryDirectory() as folder:
            rankrls.save(model, f"{folder}/model")
            t.same("scores of a saved model", rankrls.load(f"{folder}/model").predict(X, qid), before)
        return
    columns, same, u, again = {f"f{j}": X[:, j] for j in range(X.shape[1])}, X, None, qid
    if form in ("pandas", "polars"):
        same = problems.framed(t, columns, form)
    elif form == "query ids":
        again = np.array([f"q{chr(97 + i)}" for i in range(100)])[qid]  # in the same order
    elif form == "weights":
        u = np.ones(len(y))
    else:
        same = {"list": X.tolist(), "fortran": np.asfortranarray(X), "untouched": X.copy()}[form]
    other = AutoRanker(effort="fast").fit(same, y, again, u)
    if form == "untouched":
        same[:] = 7.0
        same = X
    t.same(f"scores of {form}", other.predict(same, again), before)


CATEGORIES = {
    "gains of labels": gains,
    "judgments from clicks": click_log,
    "fused runs": fused,
    "automatic rankers": automatic,
}
