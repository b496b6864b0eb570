"""The benchmarks: tables, ratios, shares of the cores and exponents are right."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
measure = pytest.importorskip("benchmarks.measure")

from benchmarks import latency, run  # noqa: E402
from benchmarks.exponent import exponent  # noqa: E402
from benchmarks.measure import Measured, Row  # noqa: E402
from benchmarks.suites import load  # noqa: E402


def test_a_row_shows_wall_and_cpu_time_beside_its_target():
    row = Row("fit", Measured(1.0, 12.3, 1.31, 0.02, 1.9, 1.1), "X.T @ X", "<= 300 MB", 1.2)
    assert len(row.cells()) == len(Row.head)
    assert row.cells() == ["fit", "1.000", "1.900", "12", "1.31x X.T @ X", "1.10x", "<= 1.2x, <= 300 MB", "2%"]
    assert row.missed == "fit: 1.31x where 1.2x was aimed at"
    assert Row("fit", Measured(1.0, 0.0, 1.1, 0.0, 1.9, 1.3), most=1.2).missed.startswith("fit: 1.30x in CPU seconds")
    assert Row("fit", Measured(1.0, 0.0, 1.2, 0.0, 1.0, 1.2), most=1.2).missed == ""
    assert Row("fit", Measured(1.0, 0.0)).missed == ""


def test_a_new_table_begins_where_the_head_changes(capsys):
    one = Row("one", Measured(1.0, 0.0, 2.0, 0.25), "two", most=1.0)
    other = latency.Latency("call", np.array([1.0, 2.0, 300.0]), 0.5)
    lines = run.table([one, "A remark.", one, other])
    assert [line.startswith("|") for line in lines[:8]] == [True, True, True, True, False, True, True, True]
    assert lines[-5] == "A remark." and lines[-3].startswith("Above the targets: one: 2.00x where 1x was aimed at; one")
    assert lines[-1] == "Other processes took 25% of the cores, 50% at most."
    printed = capsys.readouterr().out
    assert printed.count("| one |") == 2 and "Above the targets" in printed


def test_every_suite_documents_what_it_measures():
    for name, suite in run.SUITES.items():
        assert suite.__doc__.splitlines()[0], name


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_exponents_are_those_of_the_larger_sizes(power):
    sizes = np.array([1e6, 1e4, 1e5, 3e5, 1e3, 3e6])  # in any order
    costs = 2.0 * sizes**power + (sizes < 1e5) * 1e9  # what starting costs
    assert exponent(sizes, costs) == pytest.approx(power, abs=1e-9)
    assert exponent([1.0, 10.0], [1.0, 10.0**power]) == pytest.approx(power)
    assert np.isnan(exponent([1.0], [1.0]))


def test_measured_calls_report_seconds_memory_and_ratios():
    call = lambda: np.ones(4_000_000).sum()
    found = measure.measure(call, 3, lambda: [call(), call()])
    assert found.seconds > 0 and found.cpu > 0 and 0 < found.ratio < 5 and 0 <= found.others <= 1
    assert {*measure.itself(call)} == {"seconds", "cpu", "megabytes"}


def test_rounds_are_compared_with_the_first_of_the_same_round():
    times = {"read": iter([1.0, 4.0, 2.0]), "fit": iter([2.0, 12.0, 4.0])}
    call = lambda name: lambda: Measured(next(times[name]), 5.0, None, 0.1, 1.0)
    found = measure.in_turn({name: call(name) for name in times}, 3)
    assert found["fit"].seconds == 4.0 and found["fit"].ratio == 2.0 and found["read"].ratio == 1.0
    assert found["fit"].cpu_ratio == 1.0 and found["fit"].megabytes == 5.0


def test_whole_processes_are_measured():
    found = measure.of_process("-c", "sum(range(10**6))")
    assert found.seconds > 0 and found.cpu > 0 and found.megabytes > 1
    with pytest.raises(measure.StoppedError, match="ended with 3"):
        measure.of_process("-c", "raise SystemExit(3)")


def test_latencies_are_compared_at_the_median():
    found = latency.latencies(
        {"a": lambda: None, "b": lambda: sum(range(2000))}, 30, beside="a", called="A", most={"b": 0}
    )
    assert [one.what for one in found] == ["a", "b"] and found[0].beyond is None and found[1].beyond > 0
    assert len(found[1].cells()) == len(found[1].head) and "us more than A" in found[1].cells()[5]
    assert found[1].missed.endswith("where 0 were aimed at") and not found[0].missed


@pytest.mark.parametrize(
    ("cpu", "busy", "fair"),
    [(2.0, 1, 2.0), (2.0, 2, 3.0), (1.0, 1, 1.0), (1.0, 2, 1.5), (1.5, 1, 1.5), (0.5, 2, 1.5)],
)
def test_the_share_of_a_process_beside_others(cpu, busy, fair):
    """Two cores: each busy process wants one; a process that wants less leaves the rest to the others."""
    line = load.Loaded("path", 1.0, cpu, 0.0, (1.0, 1.0), 0.0, cores=2)
    assert line.fair(busy) == pytest.approx(fair)


def test_paths_above_their_share_are_named():
    line = load.Loaded("path", 1.0, 2.0, 0.0, (2.9, None), 0.0, cores=2)
    assert line.missed == "path: 2.90x beside 1 busy where 2.00x is its share, stopped beside 2 busy"
    assert len(line.cells()) == len(line.head)


@pytest.mark.parametrize(
    "name", ["RankRLS(), 20,000 x 46", "predict, 500 points, 1,000 queries of 20 x 46, one by one"]
)
def test_a_path_under_load_runs(name):
    load.PATHS[name](True)()
