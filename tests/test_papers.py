"""The scripts that make the tables of the papers: each can be imported and has a command; what they compute by hand."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the package")
if (ROOT / "benchmarks").is_dir():
    sys.path.insert(0, str(ROOT))
    from benchmarks.papers import __main__ as papers
else:
    papers = None


@pytest.mark.parametrize("name", papers.TABLES if papers else [])
def test_every_table_has_a_script_that_can_be_imported_and_a_row_in_the_index(name):
    pytest.importorskip("pandas")
    importlib.import_module(f"benchmarks.papers.{papers.TABLES[name].module}")
    assert f"`{name}`" in (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")


RESULTS = ROOT / "docs" / "reproductions" / "results"


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.md")), ids=lambda path: path.stem)
def test_results_say_which_command_makes_them_and_the_index_links_to_them(path):
    text, index = path.read_text(encoding="utf-8"), (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
    if path.stem != "times":
        assert text.startswith(papers.heading(path.stem, quick=False))
    assert f"(reproductions/results/{path.name})" in index


def test_the_file_of_times_is_not_taken_for_a_table():
    assert "times" not in papers.TABLES


def test_tables_can_be_listed():
    command = [sys.executable, "-m", "benchmarks.papers", "--data", "nowhere", "--list"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [f"{name}: {table.what}" for name, table in papers.TABLES.items()]


def test_the_time_of_all_is_added_up(tmp_path):
    (tmp_path / "games.md").write_text("| a | b |\n\n1.5 CPU minutes.\n")
    (tmp_path / "usps.md").write_text("| a |\n\n40.5 CPU minutes.\n")
    lines = papers.times(tmp_path).splitlines()
    assert lines[4] == f"| `games` | {papers.TABLES['games'].what} | 1.5 |"
    assert len(lines) == 7 and lines[-1] == "| all | | 42 |"


def test_candidates_are_scored_by_the_words_they_link():
    candidates = importlib.import_module("benchmarks.papers.candidates")
    assert candidates.token_of_characters(["ab", "c"]) == [0, 0, -1, 1, -1]
    gold = [(1, "nsubj"), (-1, "root"), (1, "dobj"), (1, "punct")]
    assert candidates.f1([(0, 1, "S"), (1, 2, "O")], gold) == 1.0
    assert candidates.f1([(0, 1, "S"), (0, 2, "X"), (1, 3, "Xp")], gold) == 0.5  # the full stop does not count
    assert candidates.f1([], gold) == 0.0


def test_missing_data_are_left_out(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks.papers",
        "--data",
        str(tmp_path),
        "--folder",
        str(tmp_path),
        "--only",
        "usps",
    ]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "usps: left out" in said and not (tmp_path / "usps.md").exists()


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_the_hinge_loss_is_minimised(C):
    from scipy.optimize import linprog
    from sklearn.svm import LinearSVC

    ranksvm = importlib.import_module("benchmarks.papers.ranksvm")
    rng = np.random.default_rng(0)
    D = rng.normal(size=(60, 3)) + np.array([0.5, 0.0, 0.0])
    D = np.column_stack([D, D[:, 0] - D[:, 1]])  # of rank 3
    w = ranksvm.hinge(D, C)
    loss = lambda w: 0.5 * w @ w + C * np.maximum(0, 1 - D @ w).sum()
    if C > 1e3:  # next to no penalty: the least hinge loss there is, by linear programming
        A = np.hstack([-D, D, -np.eye(len(D))])
        least = linprog(np.concatenate([np.zeros(8), np.ones(len(D))]), A, -np.ones(len(D))).fun
        assert_allclose(np.maximum(0, 1 - D @ w).sum(), least, rtol=1e-4)
        return
    sign = np.where(np.arange(len(D)) % 2, 1, -1)
    svm = LinearSVC(loss="hinge", C=C, fit_intercept=False, max_iter=100_000, tol=1e-8, random_state=0)
    other = svm.fit(D * sign[:, None], sign).coef_[0]
    assert loss(w) <= loss(other) * (1 + 1e-6)
    assert_allclose(w, other, atol=1e-3)


def test_preferences_are_pairs_of_one_query():
    ranksvm = importlib.import_module("benchmarks.papers.ranksvm")
    better, worse = ranksvm.preferences(np.array([2.0, 1.0, 1.0, 5.0, 0.0]), np.array([0, 0, 0, 1, 1]))
    assert sorted(zip(better.tolist(), worse.tolist(), strict=True)) == [(0, 1), (0, 2), (3, 4)]


def test_iterations_in_eigenvectors_are_those_of_the_library():
    stopping = importlib.import_module("benchmarks.papers.conditional_stopping")
    from rankrls.relations.edges import Graph
    from rankrls.relations.relation import Domain, EdgeSet

    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 4))
    K, Y = X @ X.T + 0.1 * np.eye(15), np.round(X @ X.T)
    for relation, loss in ((None, "ranking"), (None, "regression"), ("symmetric", "ranking")):
        ends = Domain(K), Domain(K), EdgeSet(Y.shape, Y).listed()
        graph = Graph(*ends, loss == "ranking", int(relation == "symmetric"))
        problem = stopping.relation_of(K, Y, loss, relation)
        for _, (v, _), w in zip(
            range(4), graph.iterates(0.0), stopping.residuals(problem.product, problem.start()), strict=False
        ):
            A, B = graph.kernel.coef(v), problem.U @ problem.coef(w) @ problem.U.T
            assert_allclose(K @ B @ K, K @ A @ K, rtol=1e-5, atol=1e-6)
