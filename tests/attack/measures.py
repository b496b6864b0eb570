"""Metrics, compared with scikit-learn, SciPy, trec_eval (pytrec_eval, ir_measures) and all orders of tied scores."""

import itertools
import math

import numpy as np

from rankrls import metrics

from . import problems

EXACT = 1e-12


def judged(t, *, most=8, binary=False, ties=True):
    """Labels, scores and queries of a random run."""
    q = t.number(1, 4)
    qid = np.sort(np.concatenate([np.arange(q), t.rng.integers(0, q, t.number(q, q * most) - q)]))
    m = len(qid)
    y = t.rng.integers(0, 2 if binary else 5, m).astype(float)
    if t.chance(0.1):
        y[qid == t.number(0, q - 1)] = 0.0  # nothing relevant
    scores = t.rng.integers(-3, 4, m).astype(float) if ties and t.chance(0.7) else t.rng.permutation(m).astype(float)
    scores *= t.pick(1.0, 1.0, 1e-9, 1e9, 1e-300, 1e300)
    if t.chance(0.2):
        scores = scores.astype(np.float32) if np.abs(scores).max() < 1e30 and np.abs(scores).max() > 1e-30 else scores
    order = t.rng.permutation(m) if t.chance(0.5) else np.arange(m)
    y, scores, qid = y[order], scores[order], qid[order]
    t.let(y=y, scores=scores, qid=qid)
    return y, scores, qid


def appearing(qid):
    """The queries in the order of their first rows, as `per_query` returns them."""
    return list(dict.fromkeys(qid.tolist()))


def each(y, scores, qid):
    for q in appearing(qid):
        rows = np.flatnonzero(qid == q)
        yield y[rows], scores[rows].astype(float)


def mean(values):
    values = [v for v in values if not math.isnan(v)]
    return float(np.mean(values)) if values else float("nan")


def compare(t, name, y, scores, qid, values, **options):
    """Compare one of our metrics with its values per query; NaN for queries where it is undefined."""
    values = list(values)
    ids = problems.labelled(t, np.asarray(qid), types=("int", "str", "float", "object", "list", "series"))
    t.do(f"metrics.{name}(y, scores, qid, **{options!r})  # expected {mean(values)!r}")
    if math.isnan(mean(values)):
        with t.must_refuse(f"{name} of no query that defines it"):
            getattr(metrics, name)(y, scores, ids, **options)
    with t.may_refuse():
        found = getattr(metrics, name)(y, scores, ids, **options)
        single = metrics.per_query(name, y, scores, qid, **options)
    t.close(name, found, mean(values), EXACT, size=1.0)
    t.close(f"{name} per query", single, values, EXACT, size=1.0)


def by_pairs(t):
    """Pairwise accuracy and the like: a loop over pairs, the area under the ROC curve, SciPy's Kendall tau."""
    binary = t.chance(0.4)
    y, scores, qid = judged(t, binary=binary)
    if t.chance(0.3):
        y = y * t.pick(-1.0, 0.1, 1e-200, 1e200)
    name = t.pick("pairwise_accuracy", "disagreement_error", "kendall_tau_b")
    if name == "kendall_tau_b":
        return compare(t, name, y, scores, qid, [_tau(a, s) for a, s in each(y, scores, qid)])
    values = [_accuracy(a, s) for a, s in each(y, scores, qid)]
    if binary and t.chance(0.5):
        values = [_auc(a, s) for a, s in each(y, scores, qid)]
    compare(t, name, y, scores, qid, values if name == "pairwise_accuracy" else [1 - v for v in values])
    return None


def _accuracy(y, s):
    right = [(1 + np.sign(s[i] - s[j])) / 2 for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    return float(np.mean(right)) if right else math.nan


def _auc(y, s):
    from sklearn.metrics import roc_auc_score

    ranks = np.unique(s, return_inverse=True)[1]
    return float(roc_auc_score(y > y.min(), ranks)) if len(np.unique(y)) == 2 else math.nan


def _tau(y, s):
    from scipy.stats import kendalltau

    if len(np.unique(y)) < 2:
        return math.nan
    if len(np.unique(s)) < 2:
        return 0.0
    return float(kendalltau(y, s).statistic)


def by_ranks(t):
    """ndcg, precision, recall, average precision, reciprocal rank: the mean over all orders of tied scores."""
    y, scores, qid = judged(t, most=5)
    few = np.array([np.count_nonzero(qid[:i] == q) < 6 for i, q in enumerate(qid)])  # 720 orders at most
    y, scores, qid = t.let(y=y[few]), t.let(scores=scores[few]), t.let(qid=qid[few])
    name = t.pick("ndcg", "precision", "recall", "average_precision", "reciprocal_rank")
    k = t.number(1, 6) if name in ("precision", "recall") else t.pick(None, t.number(1, 6))
    options = {"k": k}
    if name == "ndcg":
        options["gain"] = t.pick("exp2", "linear")
    else:
        options["relevant"] = t.pick(1.0, 2.0)
    values = [_averaged(name, a, s, k, options) for a, s in each(y, scores, qid)]
    compare(t, name, y, scores, qid, values, **options)


def _averaged(name, y, s, k, options):
    found = []
    for order in itertools.permutations(range(len(y))):
        if all(s[a] >= s[b] for a, b in itertools.pairwise(order)):
            found.append(_value(name, [y[i] for i in order], k, options))
    return float(np.mean(found))


def _value(name, ranked, k, options):
    """A metric of labels in the order of the ranking, from its definition."""
    if name == "ndcg":
        gain = (lambda v: 2**v - 1) if options["gain"] == "exp2" else (lambda v: v)
        dcg = lambda labels: sum(gain(v) / math.log2(i + 2) for i, v in enumerate(labels[:k]))
        ideal = dcg(sorted(ranked, reverse=True))
        return dcg(ranked) / ideal if ideal > 0 else math.nan
    hit = [v >= options["relevant"] for v in ranked]
    if name == "precision":
        return sum(hit[:k]) / k
    if not any(hit):
        return math.nan
    if name == "recall":
        return sum(hit[:k]) / sum(hit)
    if name == "reciprocal_rank":
        first = hit.index(True)
        return 1 / (first + 1) if k is None or first < k else 0.0
    return sum(sum(hit[: i + 1]) / (i + 1) for i, h in enumerate(hit[:k]) if h) / sum(hit)


def by_sklearn(t):
    """ndcg of scikit-learn: linear gains, tied scores averaged."""
    from sklearn.metrics import ndcg_score

    y, scores, qid = judged(t)
    k = t.pick(None, t.number(1, 6))
    values = []
    for a, s in each(y, scores, qid):
        ranks = np.unique(s, return_inverse=True)[1].astype(float)
        if len(a) == 1:
            values.append(float(a[0] > 0))
        else:
            values.append(float(ndcg_score([a], [ranks], k=k)))
    compare(t, "ndcg", y, scores, qid, values, k=k, convention="sklearn")


TREC = {
    "ndcg": ("ndcg_cut", {"convention": "trec", "empty": 0}),
    "precision": ("P", {}),
    "recall": ("recall", {"empty": 0}),
    "average_precision": ("map_cut", {"empty": 0}),
}


def by_trec(t):
    """trec_eval, by pytrec_eval or ir_measures: ties are broken by document id, so rows come in that order."""
    y, scores, qid = judged(t, ties=False)
    name, k = t.pick(*TREC), t.number(1, 6)
    measure, options = TREC[name]
    documents = [f"d{999 - i:03d}" for i in range(len(y))]  # descending
    qrels, run = {}, {}
    ranks = np.unique(scores, return_inverse=True)[1]
    for i, q in enumerate(qid.tolist()):
        qrels.setdefault(f"q{q}", {})[documents[i]] = int(y[i])
        run.setdefault(f"q{q}", {})[documents[i]] = float(ranks[i])
    if t.chance(0.5):
        import pytrec_eval

        found = pytrec_eval.RelevanceEvaluator(qrels, {f"{measure}.{k}"}).evaluate(run)
        values = [found[f"q{q}"][f"{measure}_{k}"] for q in appearing(qid)]
    else:
        import ir_measures

        kinds = {"ndcg": ir_measures.nDCG, "precision": ir_measures.P, "recall": ir_measures.R}
        wanted = kinds.get(name, ir_measures.AP) @ k
        found = {m.query_id: m.value for m in ir_measures.iter_calc([wanted], qrels, run)}
        values = [found[f"q{q}"] for q in appearing(qid)]
    if name in ("recall", "average_precision"):  # trec_eval says 0 where nothing is relevant, as empty=0 does
        options = dict(options)
    compare(t, name, y, scores, qid, values, k=k, ties="stable", **options) if name != "ndcg" else compare(
        t, name, y, scores, qid, values, k=k, **options
    )


CATEGORIES = {
    "metrics of pairs": by_pairs,
    "metrics of ranks": by_ranks,
    "metrics of scikit-learn": by_sklearn,
    "metrics of trec_eval": by_trec,
}
