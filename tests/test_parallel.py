"""Threads change nothing but the time."""

import io
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from numpy.testing import assert_allclose
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from cases import problem
from rankrls import AutoRanker, CoRankRLS, RankingPursuit, RankRLS, TransductiveRankRLS
from rankrls.system import parallel, progress


@pytest.mark.parametrize(
    "params", [{}, {"regression": 0.3, "tied_pairs": False}, {"kernel": "rbf", "basis": 20, "random_state": 0}]
)
def test_threaded_fits_equal_single_ones(params, limit):
    X, y, qid = problem(m=300, n_queries=40)
    alone = RankRLS(**params).fit(X, y, qid=qid)
    limit(worth_threads=0, threads=3)
    threaded = RankRLS(**params).fit(X, y, qid=qid)
    assert_allclose(threaded.predict(X), alone.predict(X), atol=1e-9)
    assert_allclose(threaded.cv_scores_, alone.cv_scores_, atol=1e-9)


def test_limits_are_honoured():
    with threadpool_limits(1, user_api="blas"):
        assert parallel.n_threads() == 1


def test_workers_of_joblib_that_share_the_cores_have_one_thread_each():
    @contextmanager
    def without_pools():
        from unittest import mock

        from rankrls.system.limits import limited

        with limited(worth_threads=0), mock.patch("rankrls.system.parallel.ThreadPoolExecutor", None):
            yield

    def fit(seed):
        rng = np.random.default_rng(seed)
        RankRLS().fit(rng.normal(size=(300, 5)), rng.normal(size=300), qid=np.repeat(np.arange(30), 10))
        return parallel.n_threads()

    def fit_in_a_process(seed):
        with without_pools():
            return fit(seed)

    with parallel_config(backend="loky", inner_max_num_threads=1):
        assert Parallel(n_jobs=2)(delayed(fit_in_a_process)(seed) for seed in range(4)) == [1] * 4
    with threadpool_limits(1, user_api="blas"), without_pools():
        assert Parallel(n_jobs=2, backend="threading")(delayed(fit)(seed) for seed in range(4)) == [1] * 4


def test_fits_that_overlap_in_time_leave_the_limits_as_they_were(limit):
    X, y, qid = problem(m=300, n_queries=40)
    before = parallel.n_threads()
    limit(worth_threads=0)
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: RankRLS().fit(X, y, qid=qid), range(12)))
    assert parallel.n_threads() == before
    for model in models[1:]:
        assert_allclose(model.coef_, models[0].coef_)


def test_errors_in_threads_reach_the_caller(limit):
    limit(worth_threads=0)
    before = parallel.n_threads()
    with pytest.raises(ZeroDivisionError):
        parallel.share(lambda items: 1 / 0, np.arange(4), cost=1)
    assert parallel.n_threads() == before


def test_long_passes_report_their_progress(limit, capsys):
    X, y, qid = problem(m=300, n_queries=40)
    RankRLS(verbose=True).fit(X, y, qid=qid)
    assert capsys.readouterr().err == ""  # nothing takes a second
    limit(clock=iter(range(10**6)).__next__)
    RankRLS(verbose=True).fit(X, y, qid=qid)
    printed = capsys.readouterr().err
    assert "sums over rows: 100 %" in printed and "held-out queries: 100 %" in printed
    RankRLS().fit(X, y, qid=qid)
    assert capsys.readouterr().err == ""


def test_tasks_that_others_run_side_by_side_leave_the_limits_as_they_were():
    before = parallel.n_threads()

    def task(_):
        with parallel.one_thread_each:
            assert parallel.n_threads() == 1

    for _ in range(20):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(task, range(12)))
        assert parallel.n_threads() == before
    with threadpool_limits(1, user_api="blas"):
        assert parallel.n_threads() == 1


def test_brief_limits_leave_the_limits_as_they_were():
    """Whoever comes first, and whoever leaves first."""
    before, one = parallel.n_threads(), parallel.one_thread_each

    def task(i):
        with one.briefly() if i % 2 else one:
            time.sleep(1e-4 * (i % 3))  # the limit may pass from one thread to another meanwhile

    for _ in range(20):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(task, range(12)))
        assert parallel.n_threads() == before and one._keeper is None
    with one.briefly(), one, one.briefly():
        assert parallel.n_threads() == 1
    assert parallel.n_threads() == before


# ---------------------------------------------------------------- progress


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def _told(monkeypatch, limit, stream, n=40, done=None):
    monkeypatch.setattr("sys.stderr", stream)
    limit(clock=iter(range(10**6)).__next__)
    with progress.reporting(True), progress.phase("tied pairs out"), progress.phase("fold 2 of 5"):
        for i in progress.counted(range(n), "sums over rows"):
            if i == done:
                break
    return stream.getvalue()


def test_a_log_gets_whole_lines_at_growing_intervals(monkeypatch, limit):
    printed = _told(monkeypatch, limit, io.StringIO())
    assert "\r" not in printed and "\x1b" not in printed
    assert 3 <= len(printed.splitlines()) <= 6
    assert printed.splitlines()[0].startswith("tied pairs out, fold 2 of 5, sums over rows: ")
    assert printed.splitlines()[0].endswith(" s left") and printed.splitlines()[-1].endswith("100 % in 40 s")


def test_a_terminal_shows_one_line_that_ends_as_it_should(monkeypatch, limit):
    printed = _told(monkeypatch, limit, _Terminal())
    assert printed.count("\n") == 1 and printed.endswith("\n") and printed.count("\r") > 20
    assert _told(monkeypatch, limit, _Terminal(), done=9).rstrip().endswith("done in 10 s\x1b[K")


def test_uncountable_work_reports_the_elapsed_time(monkeypatch, limit):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    limit(silent_seconds=0.01)
    with progress.working("fitting"):
        time.sleep(0.1)
    assert stream.getvalue().startswith("fitting: 0 s")


def test_loops_over_small_products_use_one_thread():
    before = parallel.n_threads()
    with parallel.threads_for(1e6):
        assert parallel.n_threads() == 1
        with parallel.threads_for(1e12):
            assert parallel.n_threads() == 1
    with parallel.threads_for(1e12):
        assert parallel.n_threads() == before
    assert parallel.n_threads() == before


def test_limits_of_overlapping_callers_end_with_the_last_one():
    before, entered, leave = parallel.n_threads(), threading.Event(), threading.Event()

    def first():
        with parallel.threads_for(1):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    with parallel.threads_for(1):
        leave.set()
        thread.join()
        assert parallel.n_threads() == 1
    assert parallel.n_threads() == before


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(),
        CoRankRLS(views=2),
        RankingPursuit("auto", kernel=None),
        RankingPursuit("auto", kernel="rbf", basis=10),
        TransductiveRankRLS(fidelity="auto"),
        AutoRanker(effort="fast"),
    ],
    ids=repr,
)
def test_small_fits_of_every_model_judge_candidates_with_one_thread(model):
    """With a metric of the caller's that looks at the number of threads."""
    seen = []

    def spy(*values):
        seen.append(parallel.n_threads())
        return 0.0

    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 4)), rng.normal(size=60), np.repeat(np.arange(12), 5)
    y[30:45] = 0.0 if isinstance(model, RankRLS | AutoRanker) else np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).set_params(scoring=spy).fit(X, y, qid)
    assert set(seen) == {1}
