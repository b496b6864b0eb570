"""Factorisations use one thread beside busy processes."""

import os

import numpy as np
import pytest

from rankrls.core.symmetric import eigh
from rankrls.system import crowd, parallel


@pytest.fixture
def machine(monkeypatch):
    """Sets how many cores there are, how many may be used, and how many threads of others run at each look."""

    def make(cores, others, allowed=None):
        looks = iter(others)
        monkeypatch.setattr(os, "cpu_count", lambda: cores)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(allowed or cores), raising=False)
        monkeypatch.setattr(crowd, "_others", lambda: next(looks))

    return make


@pytest.mark.parametrize(
    ("cores", "others", "crowded"),
    [
        (2, [0], False),
        (2, [1, 1, 1], True),
        (2, [1, 1, 0], False),  # a process that ran for a moment
        (8, [3], False),
        (8, [4, 9, 4], True),
        (1, [], False),
    ],
)
def test_a_machine_is_crowded_if_others_keep_half_of_its_cores_busy(machine, cores, others, crowded):
    machine(cores, others)
    assert crowd.crowded() is crowded


def test_nothing_is_known_where_only_some_cores_may_be_used_or_the_system_does_not_tell(machine, monkeypatch):
    machine(8, [8, 8, 8], allowed=2)
    assert not crowd.crowded()
    machine(8, [8, 8, 8])
    monkeypatch.delattr(os, "sched_getaffinity")
    assert not crowd.crowded()


def test_threads_of_this_process_are_not_counted():
    if not os.path.exists("/proc/loadavg"):
        pytest.skip("only Linux tells what runs")
    assert isinstance(crowd._others(), int)


def test_large_factorisations_look_at_what_else_runs(monkeypatch):
    seen = []
    monkeypatch.setattr(parallel, "crowded", lambda: seen.append(parallel.n_threads()) or True)
    with parallel.threads_for_factor(2 * parallel.LONG_FACTOR):
        assert parallel.n_threads() == 1
    eigh(np.eye(100))
    assert len(seen) == 1
