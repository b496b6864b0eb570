"""Compiled passes over rows give the same sums and held-out scores as NumPy."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cases import problem, weights
from rankrls import RankRLS
from rankrls.blocks.fragments import PartialSums, RunningSums, no_sums
from rankrls.blocks.open_tables import row_major
from rankrls.core import fused_folds
from rankrls.core.features import Identity
from rankrls.core.fused import compiled_code, serves, serves_folds, times
from rankrls.core.noise import HeldOutNoise
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.core.statistics import statistics
from rankrls.metrics import per_query
from rankrls.problems.primal import Primal
from rankrls.system.limits import limited
from rankrls.system.parallel import Recycled

pytest.importorskip("numba")


def sums(compiled, X, y, qid, u=None, *, tied=False, weighting="items", beta=0.0):
    targets = y.reshape(len(y), -1)
    labels = None if tied else targets[:, 0]
    F = QueryPreferences(Queries.of(qid), labels, weighting=weighting, regression=beta, weights=u)
    with compiled_code(compiled):
        assert serves(F, X) == compiled
        return statistics(F, Identity(X.shape[1]).reader(X), targets, X.shape[1], X.dtype, X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("tied", "weighting", "beta", "weighted", "shuffle"),
    [
        *itertools.product([True, False], ["pairs", "queries", "items"], [0.0, 0.4], [False], [True]),
        (False, "items", 0.4, True, True),
        (False, "queries", 0.0, True, False),
        (True, "pairs", 1.0, True, False),
    ],
)
def test_compiled_sums_equal_numpys(dtype, tied, weighting, beta, weighted, shuffle):
    X, y, qid = problem(m=300, n=5, n_queries=40, shuffle=shuffle)
    u = weights(len(y)) if weighted else None
    got, expected = (
        sums(compiled, X.astype(dtype), y, qid, u, tied=tied, weighting=weighting, beta=beta)
        for compiled in (True, False)
    )
    rtol = 1e-12 if dtype == np.float64 else 2e-5
    for name in ("gram", "cross", "square", "mean", "rounding"):
        reference = getattr(expected, name)
        assert_allclose(getattr(got, name), reference, rtol=rtol, atol=rtol * np.abs(reference).max(), err_msg=name)
    assert (got.n_pairs, got.n_queries) == (expected.n_pairs, expected.n_queries)


def test_rows_far_from_zero_keep_their_differences():
    X, y, qid = problem(m=300, n=5, n_queries=10)
    y, near = np.round(y), np.round(X, 3) + 0.0
    far = near + 2.0**20
    got, expected = sums(True, far, y, qid), sums(False, far - 2.0**20, y, qid)
    assert_allclose(got.gram, expected.gram, rtol=0, atol=1e-14 * np.abs(expected.gram).max())


@pytest.mark.parametrize(("tied", "weighted", "shuffle"), [*itertools.product([True, False], repeat=3)])
def test_compiled_products_of_few_columns_equal_numpys(tied, weighted, shuffle):
    X, y, qid = problem(m=300, n=2, n_queries=40, shuffle=shuffle)
    F = QueryPreferences(Queries.of(qid), None if tied else y, weights=weights(len(y)) if weighted else None)
    with limited(worth_threads=10), compiled_code(True):
        got = times(F, X)
    assert_allclose(got, F @ X, rtol=1e-12, atol=1e-13)


def test_several_targets():
    X, y, qid = problem(m=200, n=4, n_queries=30)
    y = np.column_stack([y, y**2, -y])
    got, expected = (sums(compiled, X, y, qid, tied=True, beta=0.3) for compiled in (True, False))
    assert_allclose(got.cross, expected.cross, rtol=1e-12, atol=1e-9)


def test_small_fits_and_long_queries_are_left_to_numpy():
    X, y, _ = problem(m=100)
    assert not serves(QueryPreferences(Queries.of(np.arange(100) // 10), y), X)  # too small to load compiled code for
    with compiled_code(True):
        one = QueryPreferences(Queries.single(5000), np.arange(5000.0))
        assert not serves(one, np.zeros((5000, 2)))
        assert not serves(QueryPreferences(Queries.of(np.arange(100) // 10), y), np.repeat(X, 2, axis=1)[:, ::2])


@pytest.mark.parametrize("shuffle", [True, False])
def test_columns_of_a_frame_need_not_be_adjacent(shuffle):
    X, y, qid = problem(m=2000, n=5, n_queries=130, shuffle=shuffle)
    columns = np.asfortranarray(X)
    columns.flags.writeable = False
    for work in (sums, lambda *data: held_out(*data)[0]):
        got, expected = (work(True, rows, y, qid) for rows in (columns, X))
        assert_allclose(getattr(got, "gram", got), getattr(expected, "gram", expected), rtol=1e-12)


def held_out(compiled, X, y, qid, u=None, *, tied=False, weighting="items", scaled=1.0):
    """Scores at every alpha, and the share of queries for which compiled code is exact."""
    targets = y.reshape(len(y), -1)
    F = QueryPreferences(Queries.of(qid), None if tied else targets[:, 0], weighting=weighting, weights=u)
    rows = Primal(F, Identity(X.shape[1]), X, targets, X.dtype, scaled=scaled)
    alphas = rows.mean_eigenvalue * np.array([1e-3, 0.1, 1.0, 30.0])
    with compiled_code(compiled):
        assert serves_folds(F, X) == compiled
        scores = rows.leave_out(None, alphas)
    if not compiled:
        return scores, 0.0
    solved, target = rows.solved, F @ (targets - rows.sums.target_mean)
    good = fused_folds.leave_queries_out(F, X, target, solved.path, solved.sums.deviation, alphas)[1]
    return scores, good.mean()


def assert_scores_agree(got, expected, qid, rtol):
    for q in np.unique(qid):
        rows = qid == q
        spread = np.ptp(expected[rows], axis=0).max(axis=-1)[:, None]
        assert np.all(np.abs(got[rows] - expected[rows]) <= rtol * np.maximum(spread, np.abs(expected[rows]).max()))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("tied", "weighting", "weighted", "length"),
    [
        *itertools.product([True, False], ["pairs", "queries", "items"], [False], [8]),
        (False, "items", True, 8),
        (True, "queries", True, 8),
        (False, "items", False, 60),  # long enough to do without a rotation
        (True, "pairs", True, 60),
    ],
)
def test_compiled_hold_out_equals_numpys(dtype, tied, weighting, weighted, length):
    X, y, qid = problem(m=130 * length, n=5, n_queries=130, shuffle=True)
    u = weights(len(y)) if weighted else None
    (got, good), (expected, _) = (
        held_out(compiled, X.astype(dtype), y, qid, u, tied=tied, weighting=weighting) for compiled in (True, False)
    )
    assert good > 0.9
    assert_scores_agree(got, expected, qid, 1e-9 if dtype == np.float64 else 1e-4)


def test_corrections_of_many_queries_are_single_precision():
    X, y, qid = problem(m=30_000, n=3, n_queries=6000)
    X *= [1e-9, 1.0, 1e7]
    (got, good), (expected, _) = (held_out(compiled, X, y, qid) for compiled in (True, False))
    assert good > 0.9
    assert_scores_agree(got, expected, qid, 2e-9)
    assert not np.array_equal(got, expected)


def test_corrections_do_not_vanish_beside_huge_weights():
    X, y, qid = problem(m=30_000, n=3, n_queries=6000)
    F = QueryPreferences(Queries.of(qid), y, weights=np.full(len(y), 1e100))
    rows = Primal(F, Identity(3), X, y[:, None], X.dtype)
    alphas = rows.mean_eigenvalue * np.array([1e-3, 1.0])
    scores = []
    for compiled in (True, False):
        with compiled_code(compiled):
            scores.append(rows.leave_out(None, alphas))
    full = X @ rows.model(alphas[0]).coef[:, 0]
    correction = np.abs(scores[1][:, 0, 0] - full).max()
    assert np.abs(scores[0] - scores[1]).max() < 1e-4 * correction


def test_compiled_hold_out_of_several_targets():
    X, y, qid = problem(m=1500, n=4, n_queries=150)
    y = np.column_stack([y, y**2, -y])
    (got, _), (expected, _) = (held_out(compiled, X, y, qid, tied=True) for compiled in (True, False))
    assert_scores_agree(got, expected, qid, 1e-9)


@pytest.mark.parametrize(("n_queries", "length"), [(400, 30), (6000, 7)])  # corrected in double and in single precision
def test_equal_rows_tie_in_compiled_hold_out(n_queries, length):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_queries, length, 3))
    twin = rng.integers(0, 4, size=(n_queries, length - 4))  # rows 5 to `length` are copies of the first four
    copies_of = lambda values: np.take_along_axis(values[:, :4], twin[:, :, None], axis=1)
    rows[:, 4:] = copies_of(rows)
    y, qid = rng.integers(0, 3, n_queries * length).astype(float), np.repeat(np.arange(n_queries), length)
    scores = held_out(True, rows.reshape(-1, 3), y, qid)[0].reshape(n_queries, length, -1)
    assert np.array_equal(scores[:, 4:], copies_of(scores))


def test_queries_with_nothing_to_learn_from_are_left_to_numpy():
    X, y, qid = problem(m=1000, n=4, n_queries=200)
    y = np.where(qid == qid[0], y, 1.0)  # one query has all that is to be learned
    (got, good), (expected, _) = (held_out(compiled, X, y, qid) for compiled in (True, False))
    assert good < 1
    assert_scores_agree(got, expected, qid, 1e-9)


def test_a_fit_chooses_the_same_alpha_compiled_or_not():
    X, y, qid = problem(m=4000, n=6, n_queries=500)
    rankers = []
    for compiled in (True, False):
        with compiled_code(compiled):
            rankers.append(RankRLS().fit(X, y, qid=qid))
    assert_allclose(rankers[0].alpha_, rankers[1].alpha_, rtol=1e-12)  # the grid is made of sums that round differently
    assert_allclose(rankers[0].cv_scores_, rankers[1].cv_scores_, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_running_sums_of_fragments_equal_sums_in_pairs(dtype):
    rng = np.random.default_rng(0)
    nothing = no_sums(4, 1, 0.0)
    within2 = rng.random(30)
    parts = []
    for _ in range(5):
        group = rng.integers(0, 30, 40)
        rows = (rng.normal(size=(40, 5)) + 100).astype(dtype)
        parts.append(PartialSums(nothing, group, rng.integers(1, 4, 40).astype(float), within2[group], rows))
    expected = parts[0].merged()
    for part in parts[1:]:
        expected = expected + part
    for compiled in (True, False):
        running = RunningSums(30)
        with compiled_code(compiled):
            for part in parts:
                running.add(part if compiled else part.merged())
        total = running.total()
        assert np.array_equal(total.group, expected.group)
        rtol = 1e-10 if dtype == np.float64 else 1e-4
        for name in ("weight", "within2", "mean"):
            assert_allclose(getattr(total, name), getattr(expected, name), rtol=rtol, err_msg=name)
        assert_allclose(total.closed.gram, expected.closed.gram, rtol=rtol, atol=rtol * expected.closed.gram.max())
        assert_allclose(total.closed.square, expected.closed.square, rtol=rtol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("labels", ["grades", "reals", "gaps"])
@pytest.mark.parametrize("metric", ["pairwise_accuracy", "auc", "ndcg", "ndcg@3"])
def test_compiled_metrics_equal_numpys(metric, labels, dtype):
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(60), [1, 2, 3, 1200, *rng.integers(1, 40, 56)]))
    m = len(qid)
    grades = rng.integers(0, 4, m)
    y = {"grades": grades.astype(float), "reals": rng.exponential(size=m), "gaps": grades * 40.0}[labels]
    y[qid == 7] = 0
    scores = np.column_stack([rng.normal(size=(m, 3)), rng.integers(-2, 3, m), np.zeros(m)]).astype(dtype)
    scores[:, 3] *= np.where(rng.random(m) < 0.5, 1, -1)  # zeros of both signs tie
    got, expected = [], []
    for compiled, values in ((True, got), (False, expected)):
        with compiled_code(compiled):
            values.append(per_query(metric, y, scores, qid))
            values.append(per_query(metric, y, scores[:, 0], qid))
    for one, other in zip(got, expected, strict=True):
        assert_allclose(one, other, rtol=1e-12 if metric.startswith("ndcg") else 0)


def test_compiled_ndcg_refuses_negative_gains():
    with compiled_code(True), pytest.raises(ValueError, match="the label -1 has gain"):
        per_query("ndcg", [1.0, -1.0, 0.0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("kind", ["float32", "float64", "mixed", "missing"])
def test_columns_of_a_record_batch_become_rows(kind):
    pa = pytest.importorskip("pyarrow")
    columns = np.random.default_rng(0).normal(size=(11, 40)).astype("float64" if kind == "float64" else "float32")
    arrays = [pa.array(column)[3:] for column in columns]  # a slice starts within its memory
    if kind == "mixed":
        arrays[4] = pa.array(np.arange(37))
    if kind == "missing":
        arrays[4] = pa.array([None, *range(36)], pa.float32())
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(j) for j in range(11)])
    dtype = np.float64 if kind in ("float64", "mixed") else np.float32
    for compiled in (True, False):
        with compiled_code(compiled):
            X = row_major(batch, dtype, Recycled())
        expected = np.column_stack([np.asarray(a.to_numpy(zero_copy_only=False), dtype=dtype) for a in arrays])
        assert X.dtype == dtype and X.flags.c_contiguous
        assert np.array_equal(X, expected, equal_nan=True)


def test_memory_is_used_again_only_once_all_views_are_gone():
    memory = Recycled()
    X = memory((4, 3), np.float64)
    X[:] = 1
    view = X[1:, :2].T
    del X
    other = memory((4, 3), np.float64)
    other[:] = 2
    assert np.all(view == 1)
    place = other.__array_interface__["data"][0]
    del other
    assert memory((2, 3), np.float32).__array_interface__["data"][0] == place
    assert memory((0, 3), np.float32).shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_noise_of_compiled_squares(dtype):
    _, y, qid = problem(m=300, n=5, n_queries=40, shuffle=True)
    held_out = np.random.default_rng(0).normal(size=(300, 3)).astype(dtype)
    got, expected = (_noise(compiled, y, held_out, qid) for compiled in (True, False))
    assert_allclose(got.square, expected.square, rtol=1e-12)
    assert np.array_equal(got.margins, expected.margins)


def _noise(compiled, y, held_out, qid):
    with compiled_code(compiled):
        return HeldOutNoise.of(y, held_out, Queries.of(qid))


@pytest.mark.parametrize("scattered", [False, True])
def test_files_are_learned_from_compiled_or_not(tmp_path, scattered):
    pd = pytest.importorskip("pandas")
    X, y, qid = problem(m=4000, n=6, n_queries=200, shuffle=scattered)
    y = np.rint(X @ np.arange(6) + y)
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcdef")).assign(y=y, qid=qid)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=1500)
    models = []
    for compiled in (True, False):
        with compiled_code(compiled), limited(table_rows=512, threads=3):
            models.append(RankRLS().fit(tmp_path / "rows.parquet"))
    assert_allclose(models[0].alpha_, models[1].alpha_, rtol=1e-12)  # the grid is made of sums that round differently
    assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-4)
    assert_allclose(models[0].cv_scores_, models[1].cv_scores_, rtol=1e-4)


READ_ONLY = """
import sys
from pathlib import Path
from numba.core import caching

def refuse(self):
    raise OSError("read-only file system")

in_tree = getattr(caching, "InTreeCacheLocator", None) or caching._InTreeCacheLocator  # the name in old versions
in_tree.ensure_cache_path = refuse
if sys.argv[1] == "nowhere":
    caching.CacheImpl._locator_classes = []
import numpy as np
from rankrls import RankRLS
from rankrls.core.fused import compiled_code, ready

X, y = np.random.default_rng(0).normal(size=(1200, 3)), np.arange(1200) % 5
with compiled_code(True):
    model = RankRLS(1.0).fit(X, y, qid=np.arange(1200) // 10)
    print(ready(), *model.coef_)
if ready():
    from rankrls.core.compiled import loss_rows
    print(sum(loss_rows.stats.cache_misses.values()))
"""


def test_compiled_code_is_kept_where_the_package_cannot_be_written(tmp_path):
    def run(where):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.check_output([sys.executable, "-c", READ_ONLY, where], env=environment, text=True).split()

    first, again = run("user"), run("user")
    assert (first[0], first[-1], again[-1]) == ("True", "1", "0")  # compiled once, then read
    assert list((tmp_path / "cache").rglob("*.nbc"))
    nowhere = run("nowhere")
    assert nowhere[0] == "False"
    assert_allclose(np.array(nowhere[1:], float), np.array(first[1:4], float), rtol=1e-12)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_compiled_sums_report_progress_and_stay_the_same(n_threads, capsys):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(6000, 40)), np.arange(6000) // 30
    y = np.clip(np.round(X[:, 0] + rng.normal(size=6000)), 0, 3)
    fits = []
    for compiled, verbose in ((False, False), (True, False), (True, True)):
        with compiled_code(compiled), limited(threads=n_threads, worth_threads=1, silent_seconds=0.0):
            fits.append(RankRLS(verbose=verbose).fit(X, y, qid=qid))
    for model in fits[1:]:
        assert_allclose(model.coef_, fits[0].coef_, rtol=1e-9, atol=1e-12)
        assert model.alpha_ == fits[0].alpha_
