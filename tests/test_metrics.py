"""Ranking metrics against slow definitions, against other tools, and under transformations that must not matter."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import oracles
from rankrls import metrics
from rankrls.core.fused import compiled_code
from rankrls.core.queries import Queries
from rankrls.metrics import get_metric, ndcg, pairwise_accuracy, per_query

PAIR_METRICS = ("pairwise_accuracy", "disagreement_error", "kendall_tau_b")
RANK_METRICS = {
    "ndcg": {},
    "ndcg@2": {"k": 2},
    "precision@3": {"k": 3},
    "recall@2": {"k": 2},
    "average_precision": {},
    "average_precision@3": {"k": 3},
    "reciprocal_rank": {},
    "reciprocal_rank@2": {"k": 2},
}
ALL = [*PAIR_METRICS, *RANK_METRICS]


# ---------------------------------------------------------------- oracles: one query, plain Python


def slow_pairs(y, s):
    """Concordant, discordant, untied in y, untied in s."""
    pairs = list(itertools.combinations(range(len(y)), 2))
    signs = [np.sign(y[i] - y[j]) * np.sign(s[i] - s[j]) for i, j in pairs]
    return signs.count(1), signs.count(-1), sum(y[i] != y[j] for i, j in pairs), sum(s[i] != s[j] for i, j in pairs)


def slow_pair_metric(name, y, s):
    concordant, discordant, untied_y, untied_s = slow_pairs(list(map(float, y)), list(map(float, s)))
    if not untied_y:
        return math.nan
    accuracy = (concordant + (untied_y - concordant - discordant) / 2) / untied_y
    tau = (concordant - discordant) / math.sqrt(untied_y * untied_s) if untied_s else 0.0
    return {"pairwise_accuracy": accuracy, "disagreement_error": 1 - accuracy, "kendall_tau_b": tau}[name]


def slow_ndcg(ranked, k=None, gain=lambda y: 2**y - 1, discount=lambda i: 1 / math.log2(i + 1)):
    def dcg(labels):
        return sum(gain(label) * discount(i) for i, label in enumerate(labels[:k], start=1))

    ideal = dcg(sorted(ranked, reverse=True))
    return dcg(ranked) / ideal if ideal else math.nan


def slow_list_metric(name, ranked, k=None):
    """A metric of labels that are already in order of rank; NaN where there is nothing relevant."""
    if name == "ndcg":
        return slow_ndcg(ranked, k)
    hits = [label >= 1 for label in ranked]
    top = hits[:k]
    if name == "precision":
        return sum(top) / k
    if not any(hits):
        return math.nan
    if name == "recall":
        return sum(top) / sum(hits)
    if name == "average_precision":
        return sum(sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(top) if hit) / sum(hits)
    return 1 / (top.index(True) + 1) if any(top) else 0.0


def orders(s):
    """Every order of the items in which scores descend."""
    return [p for p in itertools.permutations(range(len(s))) if all(s[a] >= s[b] for a, b in itertools.pairwise(p))]


def slow_rank_metric(name, y, s, ties="average", k=None):
    if ties == "average":
        return np.mean([slow_list_metric(name, [y[i] for i in order], k) for order in orders(s)])
    order = sorted(range(len(y)), key=lambda i: (-s[i], y[i] if ties == "worst" else i))
    return slow_list_metric(name, [y[i] for i in order], k)


def rows_of(qid):
    return [[i for i, q in enumerate(qid) if q == label] for label in Queries.of(np.asarray(qid)).labels]


# ---------------------------------------------------------------- data


def ranking_data(seed=0, sizes=(1, 2, 3, 5, 8, 8, 21, 40), grades=4, columns=None, shuffle=True):
    """Graded labels, scores with ties and scattered string ids; the queries of size 5 have no relevant item."""
    rng = np.random.default_rng(seed)
    qid = np.repeat([f"query {i}" for i in range(len(sizes))], sizes)
    y = rng.integers(0, grades, size=len(qid)).astype(float)
    y[qid == "query 3"] = 0
    scores = rng.integers(-4, 5, size=(len(qid), columns or 1)) / 8 + y[:, None] / 8
    order = rng.permutation(len(qid)) if shuffle else slice(None)
    return y[order], (scores if columns else scores[:, 0])[order], qid[order]


labels = st.integers(0, 3).map(float)
few_scores = st.integers(-2, 2).map(lambda v: v / 4)
small_queries = st.lists(st.tuples(labels, few_scores), min_size=1, max_size=6)
tables = st.lists(st.tuples(labels, few_scores, st.integers(0, 3)), min_size=1, max_size=30)


def value(name, y, scores, qid=None):
    """The metric, or NaN if it is undefined for every query."""
    metric = get_metric(name)
    if np.isnan(metric.per_query(y, scores, qid)).all():
        with pytest.raises(ValueError, match="is not defined in any"):
            metric(y, scores, qid)
        return math.nan
    return metric(y, scores, qid)


# ---------------------------------------------------------------- against the oracles


@given(small_queries)
@pytest.mark.parametrize("name", PAIR_METRICS)
def test_pair_metrics_equal_loops_over_pairs(name, items):
    y, s = map(np.array, zip(*items, strict=True))
    np.testing.assert_allclose(value(name, y, s), slow_pair_metric(name, y, s), atol=1e-12)


@pytest.mark.parametrize("name", PAIR_METRICS)
@pytest.mark.parametrize("length", [2, 7, 33, 64, 65, 150])
@pytest.mark.parametrize("digits", [1, 15])
def test_pair_metrics_with_many_distinct_and_negative_labels(name, length, digits):
    rng = np.random.default_rng(length)
    y, s = rng.normal(size=(2, length)).round(digits)
    np.testing.assert_allclose(value(name, y, s), slow_pair_metric(name, y, s), atol=1e-12)


@pytest.mark.parametrize("n_levels", [1, 2, 3, 5, 30, 200])
def test_both_ways_of_counting_inversions_agree(n_levels):
    v = np.random.default_rng(n_levels).integers(0, n_levels, size=(2, 3, 200)).astype(np.int32)
    slow = np.triu(v[..., :, None] > v[..., None, :], 1).sum(axis=(-1, -2))
    np.testing.assert_array_equal(metrics.pairs._inversions_by_level(v, n_levels), slow)
    np.testing.assert_array_equal(metrics.pairs._inversions_by_merging(v), slow)


@pytest.mark.parametrize("n_levels", [2, 5, 300])
def test_scores_that_differ_in_the_last_bit_are_not_tied(n_levels):
    rng = np.random.default_rng(3)
    y = np.arange(300) % n_levels
    for base in (1.0, -1.0, 1e-300, -1e300):
        s = base * (1 + np.finfo(float).eps * rng.integers(0, 40, size=300))
        expected = slow_pair_metric("pairwise_accuracy", y, s)
        assert pairwise_accuracy(y, s) == pytest.approx(expected, abs=1e-12)


def test_signed_zeros_are_tied_and_infinities_ordered():
    assert pairwise_accuracy([1, 0], [0.0, -0.0]) == pairwise_accuracy([1, 0], [-0.0, 0.0]) == 0.5
    assert pairwise_accuracy([2, 1, 0], [np.inf, 0, -np.inf]) == 1
    assert ndcg([2, 1, 0], [np.inf, 0, -np.inf]) == 1


@given(small_queries)
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("ties", ["average", "stable", "worst"])
@pytest.mark.parametrize("name", RANK_METRICS)
def test_rank_metrics_equal_their_definition(name, ties, items):
    y, s = map(np.array, zip(*items, strict=True))
    options = RANK_METRICS[name]
    base = name.partition("@")[0]
    expected = slow_rank_metric(base, y, s, ties, **options)
    np.testing.assert_allclose(per_query(base, y, s, ties=ties, **options), [expected], atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_queries_are_judged_one_by_one_in_the_order_of_their_labels(name):
    y, s, qid = ranking_data()
    values = get_metric(name).per_query(y, s, qid)
    alone = [value(name, y[q], s[q]) for q in rows_of(qid)]
    np.testing.assert_allclose(values, alone, atol=1e-14)
    assert value(name, y, s, qid) == pytest.approx(np.nanmean(values), abs=1e-14)


# ---------------------------------------------------------------- what must not matter


@given(tables, st.randoms(use_true_random=False))
@pytest.mark.parametrize("name", ALL)
def test_the_order_of_the_rows_does_not_matter(name, table, random):
    shuffled = random.sample(table, len(table))
    (y, s, qid), (y2, s2, qid2) = (map(np.array, zip(*rows, strict=True)) for rows in (table, shuffled))
    np.testing.assert_allclose(value(name, y, s, qid), value(name, y2, s2, qid2), atol=1e-12)


@given(tables)
@pytest.mark.parametrize("name", ALL)
def test_neither_the_names_of_queries_nor_the_scale_of_scores_matter(name, table):
    y, s, qid = map(np.array, zip(*table, strict=True))
    expected = value(name, y, s, qid)
    names = np.array(["b", "a", "d", "c"])[qid]
    np.testing.assert_allclose(value(name, y, s, names), expected, atol=1e-12)
    np.testing.assert_allclose(value(name, y, s, Queries.of(qid)), expected, atol=1e-12)
    np.testing.assert_allclose(value(name, y, np.exp(3 * s) - 7, qid), expected, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_columns_of_scores_are_judged_one_by_one(name, dtype):
    y, S, qid = ranking_data(columns=5)
    S = (8 * S).astype(dtype)
    metric = get_metric(name)
    together = metric(y, S, qid)
    assert together.shape == (5,)
    np.testing.assert_allclose(together, [metric(y, s, qid) for s in S.T], atol=1e-14)
    np.testing.assert_array_equal(metric.per_query(y, S, qid)[:, 2], metric.per_query(y, S[:, 2], qid))
    np.testing.assert_array_equal(metric(y, np.asfortranarray(S), qid), together)


@pytest.mark.parametrize("name", PAIR_METRICS)
@pytest.mark.parametrize("grades", [[0, 1], [-3, 0, 9], [0, 20], [0.5, 0.25, 7], list(range(40))])
@pytest.mark.parametrize("length", [2, 3, 50])
def test_tied_scores_in_single_precision_and_labels_with_gaps(name, grades, length):
    rng = np.random.default_rng(length)
    y, s = rng.choice(np.array(grades, dtype=float), length), rng.integers(-4, 5, size=length) / 8
    for dtype in (np.float32, np.float64):
        np.testing.assert_allclose(value(name, y, s.astype(dtype)), slow_pair_metric(name, y, s), atol=1e-12)


@pytest.mark.parametrize("name", ["pairwise_accuracy", "kendall_tau_b", "ndcg@10", "average_precision"])
def test_threads_and_column_blocks_change_nothing(name, limit):
    y, S, qid = ranking_data(columns=7, sizes=range(1, 60))
    expected = get_metric(name).per_query(y, S, qid)
    limit(metric_cells=64)
    np.testing.assert_array_equal(get_metric(name).per_query(y, S, qid), expected)
    limit(worth_threads=0, threads=3)
    np.testing.assert_array_equal(get_metric(name).per_query(y, S, qid), expected)


@pytest.mark.parametrize("name", ALL)
def test_inputs_are_left_alone(name):
    y, S, qid = ranking_data(columns=3)
    copies = y.copy(), S.copy(), qid.copy()
    get_metric(name)(y, S, qid)
    for now, before in zip((y, S, qid), copies, strict=True):
        np.testing.assert_array_equal(now, before)


def test_negating_the_scores_turns_the_pairs_around():
    y, s, qid = ranking_data()
    assert pairwise_accuracy(y, -s, qid) == pytest.approx(1 - pairwise_accuracy(y, s, qid))
    assert metrics.kendall_tau_b(y, -s, qid) == pytest.approx(-metrics.kendall_tau_b(y, s, qid))


def test_a_long_query_needs_no_table_of_pairs():
    rng = np.random.default_rng(0)
    y = rng.normal(size=200_000)
    assert pairwise_accuracy(y, y) == 1
    assert pairwise_accuracy(y, rng.normal(size=len(y))) == pytest.approx(0.5, abs=0.01)
    assert pairwise_accuracy(y > 1, np.round(y)) > 0.9


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize("name", ALL)
def test_perfect_and_constant_scores(name):
    y, _, qid = ranking_data()
    ideal = {"disagreement_error": 0.0}.get(name, 1.0)
    if name not in ("kendall_tau_b", "precision@3", "recall@2", "average_precision@3"):
        assert get_metric(name)(y, y, qid) == pytest.approx(ideal)
    constant = {"kendall_tau_b": 0.0, "pairwise_accuracy": 0.5, "disagreement_error": 0.5}
    if name in constant:
        assert get_metric(name)(y, np.zeros(len(y)), qid) == constant[name]


@pytest.mark.parametrize("name", ALL)
def test_whether_a_query_counts_depends_on_its_labels_alone(name):
    y, S, qid = ranking_data(columns=3)
    S[:, 1] = 0.0
    missing = np.isnan(get_metric(name).per_query(y, S, qid))
    assert (missing == missing[:, :1]).all()


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("precision")])
def test_a_metric_that_no_query_defines_is_an_error(name):
    with pytest.raises(ValueError, match="not defined in any of the 2 queries"):
        get_metric(name)([0, 0, 0], [1, 2, 3], [5, 5, 6])


def test_queries_of_one_item():
    qid = [1, 2, 3]
    assert ndcg([1, 0, 2], [1, 1, 1], qid) == 1
    assert np.isnan(per_query("pairwise_accuracy", [1, 0, 2], [1, 1, 1], qid)).all()
    assert metrics.precision([1, 0, 2], [1, 1, 1], qid, k=2) == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", ["ndcg", "recall", "average_precision", "reciprocal_rank"])
def test_queries_without_relevant_items_count_as_asked(name):
    function, k = getattr(metrics, name), {"k": 2}
    y, s, qid = [1, 0, 0, 0], [2, 1, 2, 1], ["full", "full", "empty", "empty"]
    assert function(y, s, qid, **k) == 1
    assert function(y, s, qid, empty=0, **k) == 0.5
    assert function(y, s, qid, empty=1, **k) == 1
    assert function([0, 0], [1, 2], empty=0, **k) == 0
    np.testing.assert_array_equal(per_query(function, y, s, qid, **k), [1, np.nan])


def test_a_cutoff_beyond_the_query_matters_only_for_precision():
    y, s, qid = ranking_data()
    for name in ("ndcg", "average_precision", "reciprocal_rank"):
        assert get_metric(f"{name}@1000")(y, s, qid) == get_metric(name)(y, s, qid)
    assert metrics.recall(y, s, qid, k=1000) == 1
    assert metrics.precision([1, 1], [2, 1], k=4) == 0.5


def test_relevance_threshold():
    y, s = np.array([2, 1, -1, 0.5]), np.array([1, 2, 3, 4])
    assert metrics.reciprocal_rank(y, s) == 1 / 3
    assert metrics.reciprocal_rank(y, s, relevant=2) == 1 / 4
    assert metrics.reciprocal_rank(y, s, relevant=-1) == 1
    assert metrics.recall(y, s, k=3, relevant=2) == 0


def test_ndcg_takes_functions_for_gain_and_discount():
    y, s, qid = ranking_data()
    assert ndcg(y, s, qid, gain=lambda v: 2**v - 1, discount=lambda i: 1 / np.log2(i + 1)) == ndcg(y, s, qid)
    expected = [slow_rank_metric("ndcg", y[q], s[q], "stable") for q in rows_of(qid)]
    np.testing.assert_allclose(per_query("ndcg", y, s, qid, ties="stable"), expected)


def test_ndcg_of_negative_labels_needs_a_gain_that_fits():
    y, s = [1.5, -1, 0], [1, 2, 3]
    with pytest.raises(ValueError, match=r"label -1 has gain -0.5.*positive"):
        ndcg(y, s)
    with pytest.raises(ValueError, match="label 2000 has gain inf"):
        ndcg([2000, 1], [1, 2])
    assert ndcg(y, s, gain="positive") == ndcg(np.maximum(y, 0), s, gain="linear") == 0.5


def test_an_explicit_choice_takes_precedence_over_the_convention():
    y, s, qid = ranking_data()
    assert ndcg(y, s, qid, convention="sklearn", gain="exp2", empty="skip") == ndcg(y, s, qid)
    assert ndcg([0, 0, 1], [1, 2, 3], [7, 7, 8], convention="xgboost", empty=0) == 0.5


# ---------------------------------------------------------------- names


def test_names_of_metrics():
    y, s, qid = ranking_data()
    metric = get_metric("NDCG@3")
    assert (metric.name, metric.greater_is_better) == ("ndcg@3", True)
    assert metric(y, s, qid) == ndcg(y, s, qid, k=3)
    assert get_metric("map")(y, s, qid) == metrics.average_precision(y, s, qid)
    assert get_metric("mrr@2").name == "reciprocal_rank@2"
    assert not get_metric("disagreement_error").greater_is_better
    assert not get_metric(metrics.disagreement_error).greater_is_better
    assert get_metric(metric) is metric
    np.testing.assert_array_equal(per_query(metric, y, s, qid), per_query(ndcg, y, s, qid, k=3))


@pytest.mark.parametrize("name", ALL)
def test_metrics_survive_pickling(name):
    y, s, qid = ranking_data()
    assert pickle.loads(pickle.dumps(get_metric(name)))(y, s, qid) == get_metric(name)(y, s, qid)


def test_a_custom_function_is_called_for_each_column():
    def first_gap(y, scores, qid):
        assert scores.ndim == 1
        assert qid is None or len(qid) == len(y)
        return scores[0] - y[0]

    y, S = np.array([1.0, 2, 3]), np.array([[1, 5.0], [3, 4], [2, 9]])
    metric = get_metric(first_gap)
    assert (metric.name, metric.greater_is_better) == ("first_gap", True)
    assert metric(y, S[:, 1]) == 4
    np.testing.assert_array_equal(metric(y, S, ["b", "a", "b"]), [0, 4])
    np.testing.assert_array_equal(metric(y, S, Queries.of(np.array([1, 1, 2]))), [0, 4])
    np.testing.assert_array_equal(metric.per_query(y, S, ["b", "a", "b"]), [[0, 4], [1, 2]])
    np.testing.assert_array_equal(per_query(first_gap, y, S[:, 0], ["b", "a", "b"]), [0, 1])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc", "did you mean 'ndcg'.*valid: pairwise_accuracy"),
        ("accuracy", "unknown metric 'accuracy'"),
        ("ndcg@", "whole number"),
        ("ndcg@ten", "whole number"),
        ("ndcg@0", "whole number >= 1"),
        ("precision", "precision needs a cutoff"),
        ("pairwise_accuracy@5", "has no option 'k'; its options are: none"),
    ],
)
def test_wrong_names_list_the_valid_ones(name, message):
    with pytest.raises(ValueError, match=message):
        get_metric(name)
    with pytest.raises(TypeError, match="a name or a function"):
        get_metric(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "whole number >= 1, got 0"),
        ({"k": 2.5}, "got 2.5"),
        ({"gain": "exp"}, "did you mean 'exp2'"),
        ({"discount": "log"}, "unknown discount 'log'"),
        ({"ties": "averaged"}, "did you mean 'average'"),
        ({"empty": "zero"}, "empty must be"),
        ({"convention": "lightgmb"}, "did you mean 'lightgbm'"),
        ({"relevant": 2}, "ndcg has no option 'relevant'; its options are: k, gain"),
    ],
)
def test_wrong_options_list_the_valid_ones(options, message):
    with pytest.raises(ValueError, match=message):
        per_query("ndcg", [1, 0], [1, 2], **options)
    with pytest.raises(ValueError, match="need a metric of this library"):
        per_query(lambda y, scores, qid: 0.0, [1, 0], [1, 2], **options)


@pytest.mark.parametrize(
    ("y", "scores", "qid", "message"),
    [
        ([1, 0], [1, 2, 3], None, r"got y \(2,\), scores \(3,\)"),
        ([[1, 0]], [1, 2], None, r"got y \(1, 2\)"),
        ([], [], None, "m > 0"),
        ([1, 0], np.zeros((2, 0)), None, r"scores \(2, 0\)"),
        ([1, np.nan], [1, 2], None, "y has 1 NaN, the first in row 1"),
        ([1, 0], [[1, 2], [3, np.nan]], None, "scores has 1 NaN, the first in row 1"),
        ([1, 0], [1, 2], [1, 2, 3], r"one id per row, shape \(2,\); got \(3,\)"),
        ([1, 0], [1, 2], Queries.single(3), "groups 3 rows, but y has 2"),
    ],
)
@pytest.mark.parametrize("name", ["pairwise_accuracy", "ndcg"])
def test_wrong_data_say_what_to_do(name, y, scores, qid, message):
    with pytest.raises(ValueError, match=message):
        get_metric(name)(y, scores, qid)


# ---------------------------------------------------------------- against other tools


def graded(seed=1):
    """Queries in order, ids ascending integers, scores in eighths (exact in single precision), some blank queries."""
    y, s, qid = ranking_data(seed, sizes=(2, 3, 4, 5, 8, 13, 30, 30), shuffle=False)
    codes = Queries.of(qid).codes
    return y, s, codes, np.bincount(codes)


def test_letor_is_the_definition_with_its_own_discount():
    y, s, qid, _ = graded()
    values = []
    for q in rows_of(qid):
        ranked = [y[i] for i in sorted(q, key=lambda i: -s[i])]
        values.append(slow_ndcg(ranked, 5, discount=lambda i: 1 if i <= 2 else 1 / math.log2(i)))
    assert ndcg(y, s, qid, k=5, convention="letor") == pytest.approx(np.nan_to_num(values).mean())


@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_sklearn_convention(k):
    ndcg_score = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn").ndcg_score
    y, s, qid, _ = graded()
    values = [ndcg_score([y[q]], [s[q]], k=k) for q in rows_of(qid)]
    np.testing.assert_allclose(per_query("ndcg", y, s, qid, k=k, convention="sklearn"), values, atol=1e-12)


def test_kendall_tau_b_of_scipy():
    kendalltau = pytest.importorskip("scipy.stats", reason="needs scipy").kendalltau
    rng = np.random.default_rng(0)
    for y, s in [rng.normal(size=(2, 200)), rng.integers(0, 6, size=(2, 150)), rng.normal(size=(2, 40)).round(1)]:
        assert metrics.kendall_tau_b(y, s) == pytest.approx(kendalltau(y, s).statistic, abs=1e-12)


def test_pairwise_accuracy_of_two_grades_is_the_auc_of_sklearn():
    roc_auc_score = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn").roc_auc_score
    y, s, _, _ = graded()
    assert pairwise_accuracy(y > 1, s) == pytest.approx(roc_auc_score(y > 1, s))


@pytest.mark.parametrize("k", [1, 3, 10])
def test_xgboost_convention(k):
    xgboost = pytest.importorskip("xgboost", reason="needs xgboost")
    y, s, qid, _ = graded()
    data = xgboost.DMatrix(np.zeros((len(y), 1)), label=y, base_margin=s, qid=qid)
    for name, empty in ((f"ndcg@{k}", None), (f"ndcg@{k}-", 0)):
        booster = xgboost.train({"objective": "rank:ndcg", "eval_metric": name}, data, num_boost_round=0)
        theirs = float(booster.eval(data).rpartition(":")[2])
        assert ndcg(y, s, qid, k=k, convention="xgboost", empty=empty) == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_lightgbm_convention(k):
    lightgbm = pytest.importorskip("lightgbm", reason="needs lightgbm")
    y, s, qid, sizes = graded()
    data = lightgbm.Dataset(np.zeros((len(y), 1)), label=y, group=sizes, init_score=s)
    booster = lightgbm.Booster({"objective": "lambdarank", "metric": "ndcg", "eval_at": [k], "verbose": -1}, data)
    ((_, _, theirs, _),) = booster.eval_train()
    assert ndcg(y, s, qid, k=k, convention="lightgbm") == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_catboost_convention(k):
    utils = pytest.importorskip("catboost.utils", reason="needs catboost")
    y, s, qid, _ = graded()
    for kind, gain in (("Base", None), ("Exp", "exp2")):
        (theirs,) = utils.eval_metric(y, s, f"NDCG:top={k};type={kind}", group_id=qid)
        assert ndcg(y, s, qid, k=k, convention="catboost", gain=gain) == pytest.approx(theirs, abs=1e-6)


def test_trec_convention_and_binary_metrics():
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="needs pytrec_eval-terrier")
    y, s, qid, _ = graded()
    y[y == 2] = -1  # judged worse than irrelevant: counts as irrelevant
    qrel, run = {}, {}
    for q, label, score, row in zip(qid, y, s, range(len(y)), strict=True):
        document = f"d{999 - row}"  # ties go by descending document id
        qrel.setdefault(str(q), {})[document] = int(label)
        run.setdefault(str(q), {})[document] = float(score)
    theirs = pytrec_eval.RelevanceEvaluator(
        qrel, {"ndcg", "ndcg_cut.5", "map", "map_cut.5", "recip_rank", "P.5", "recall.5"}
    ).evaluate(run)
    ours = {
        "ndcg": ("ndcg", {"convention": "trec"}),
        "ndcg_cut_5": ("ndcg", {"convention": "trec", "k": 5}),
        "map": ("map", {"ties": "stable", "empty": 0}),
        "map_cut_5": ("map@5", {"ties": "stable", "empty": 0}),
        "recip_rank": ("mrr", {"ties": "stable", "empty": 0}),
        "P_5": ("precision", {"ties": "stable", "k": 5}),
        "recall_5": ("recall", {"ties": "stable", "k": 5, "empty": 0}),
    }
    for measure, (name, options) in ours.items():
        expected = [theirs[str(q)][measure] for q in range(len(theirs))]
        np.testing.assert_allclose(per_query(name, y, s, qid, **options), expected, atol=1e-6, err_msg=measure)


@pytest.mark.parametrize("k", [None, 1, 2, 4])
def test_expected_reciprocal_rank(k):
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, s = rng.integers(0, 4, 6), rng.integers(0, 3, 6)
        y[0] = 2
        assert metrics.err(y, s, k=k, max_grade=3) == pytest.approx(oracles.expected_reciprocal_rank(y, s, k, 3))
    assert metrics.get_metric("err@5")([4, 0], [1, 0]) == metrics.err([4, 0], [1, 0]) == 15 / 16
    with pytest.raises(ValueError, match="labels from 0 to max_grade=4, got 5"):
        metrics.err([5, 0], [1, 0])


def test_overlaps_of_rankings():
    rng = np.random.default_rng(0)
    a, b, qid = rng.normal(size=50), rng.normal(size=(50, 2)), np.repeat(np.arange(5), 10)
    for p in (0.5, 0.9, 0.98):
        expected = [[oracles.rank_biased_overlap(a[q], s[q], p) for s in b.T] for q in np.arange(50).reshape(5, 10)]
        assert_allclose(metrics.per_query("rbo", a, b, qid, p=p), expected)
    top = lambda s, q: set(q[np.argsort(-s[q])[:3]])
    rows = np.arange(50).reshape(5, 10)
    expected = [len(top(a, q) & top(b[:, 0], q)) / len(top(a, q) | top(b[:, 0], q)) for q in rows]
    assert_allclose(metrics.per_query("jaccard@3", a, b[:, 0], qid), expected)
    assert metrics.jaccard(a, a, qid, k=99) == 1 and metrics.rbo(a, a, qid) == pytest.approx(1)
    with pytest.raises(ValueError, match="jaccard needs a cutoff"):
        metrics.get_metric("jaccard")


# ---------------------------------------------------------------- area under the curve, and the papers' error


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=12))
def test_the_papers_error_counts_pairs_with_equal_labels(items):
    y, s = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    pairs = list(itertools.combinations(range(len(y)), 2))
    slow = [abs(np.sign(y[i] - y[j]) - np.sign(s[i] - s[j])) / 2 for i, j in pairs]
    found = per_query("disagreement_error", y, s, convention="papers")[0]
    assert_allclose(found, np.mean(slow) if slow else np.nan)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=12))
def test_auc_counts_pairs_of_a_relevant_and_another_item(items):
    y, s = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    above = [(1 + np.sign(s[i] - s[j])) / 2 for i in range(len(y)) for j in range(len(y)) if y[i] >= 2 > y[j]]
    assert_allclose(per_query("auc", y, s, relevant=2)[0], np.mean(above) if above else np.nan)


def test_auc_of_two_grades_is_pairwise_accuracy():
    y, s, qid = [1, 0, 0, 1, 1, 1], [3, 1, 4, 1, 5, 9], [0, 0, 0, 1, 1, 1]
    assert metrics.auc(y, s, qid) == metrics.pairwise_accuracy(y, s, qid) == get_metric("roc_auc")(y, s, qid)


def test_an_unknown_convention_of_the_error_is_refused():
    with pytest.raises(ValueError, match="one of None, 'papers', got 'paper'"):
        metrics.disagreement_error([1, 0], [1, 0], convention="paper")


@pytest.mark.parametrize("levels", [2, 5, 40, None])
@pytest.mark.parametrize("coarse", [False, True])
def test_compiled_counts_of_pairs_are_those_of_numpy(levels, coarse):
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    y = rng.normal(size=(7, 60)) if levels is None else rng.integers(0, levels, (7, 60)).astype(float)
    s = (rng.normal(size=(7, 3, 60)) + y[:, None] / (levels or 1)).astype(np.float32)
    s = np.round(s, 1) if coarse else s
    s[0, 0, ::2], s[0, 0, 1::2] = 0.0, -0.0  # a tie
    s[1, 0] = np.float32(1e-42) * np.arange(60)  # subnormal numbers
    s[2, 0] *= np.float32(1e30)
    with compiled_code(False):
        expected = metrics.pairs._pairs(y, s)
    with compiled_code(True):
        found = metrics.pairs._pairs(y, s)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
