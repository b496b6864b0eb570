"""The command line: every command, what it prints and writes, and how it fails."""

import argparse
import csv
import doctest
import inspect
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

import rankrls
from rankrls import CoRankRLS, RankRLS, TransductiveRankRLS, estimators, metrics
from rankrls.cli import main, options
from rankrls.cli.options import relations
from rankrls.datasets import dump_letor, load_letor, make_search

ROOT = Path(__file__).parent.parent
COMMANDS = list(options.COMMANDS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with data to learn from and to judge by."""
    monkeypatch.chdir(tmp_path)
    for name, queries, seed in (("train.txt", 30, 0), ("test.txt", 12, 1)):
        data = make_search(queries, mean_documents=10, random_state=seed)
        dump_letor(replace(data, comments=np.array([f"docid = D{i}" for i in range(len(data))], dtype=object)), name)
    return tmp_path


@pytest.fixture
def run(folder, capsys):
    """Run a command that succeeds; what it printed, as a dict if it is JSON."""

    def call(*words, code=0):
        assert main([str(word) for word in words]) == code, capsys.readouterr().err
        printed = capsys.readouterr()
        text = printed.err if code else printed.out
        return json.loads(text) if "--json" in words and not code else text

    return call


def rankrls_process(*words, **options):
    environment = {**os.environ, "PYTHONPATH": str(Path(rankrls.__file__).parent.parent)}
    command = [sys.executable, "-m", "rankrls", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, timeout=120, **options)


# ---------------------------------------------------------------- starting


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
def test_help_lists_all_commands(command, capsys):
    assert main([*command, "--help"]) == 0
    assert f"usage: rankrls {' '.join(command)}".strip() in capsys.readouterr().out


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from rankrls.cli import main; main(['--help']); main(['train', '--help']); "
        "print([name for name in ('numpy', 'scipy', 'sklearn', 'pandas') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(rankrls.__file__).parent.parent)}
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
    assert time.perf_counter() - start < 5  # a tenth of a second where nothing else runs


def test_names_of_the_package_are_imported_on_first_use():
    program = (
        "import sys, rankrls; assert 'numpy' not in sys.modules; assert 'RankRLS' in dir(rankrls); "
        "from rankrls import RankRLS, kernels; assert rankrls.kernels is kernels is sys.modules['rankrls.kernels']; "
        "assert rankrls.RankRLS is RankRLS; assert all(hasattr(rankrls, name) for name in rankrls.__all__); "
        "assert not hasattr(rankrls, 'nothing')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(rankrls.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rankrls {rankrls.__version__}\n"


def test_every_parameter_of_every_estimator_is_an_option():
    known = {one.name for one in [*options.PARAMETERS, *relations.PARAMETERS]}
    by_flags = {"missing", "intercept", "encoder", "callback"}  # --implicit, --intercept; always; in Python only
    assert set(inspect.signature(rankrls.ConditionalRankRLS).parameters) <= known | by_flags | {"verbose"}
    for name in set(options.METHODS.values()) & set(estimators.__all__) - {"ConditionalRankRLS"}:
        assert set(inspect.signature(getattr(rankrls, name)).parameters) <= known | {
            "verbose",
            "scale",
            "store_path",
            "folds",
            "intercept",  # of a pursuit, as the paper prints it: in Python only
        }  # --scale has more to choose from


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train"], "required: -o/--output"),
        (["train", "train.txt"], "required: -o/--output"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["train", "train.txt", "-o", "m", "--method", "svm"], "argument --method: invalid choice"),
        (["train", "train.txt", "-o", "m", "--alpha", "x"], "argument --alpha: invalid float or auto value: 'x'"),
        (["train", "train.txt", "-o", "m", "--tied-pairs", "maybe"], "argument --tied-pairs: invalid"),
        (["train", "train.txt", "-o", "m", "--columns", "@nowhere"], "nowhere: No such file"),
        (["train", "nowhere.txt", "-o", "m"], "nowhere.txt: No such file or directory"),
        (["train", "train.txt", "-o", "nowhere/m"], "No such file or directory"),
        (
            ["train", "train.txt", "-o", "m", "--nu", "1"],
            "--nu cannot be combined with --method rankrls, which takes --alpha,",
        ),
        (["train", "train.txt", "-o", "m", "--gamma", "1"], "--gamma needs a kernel, such as --kernel rbf"),
        (["train", "train.txt", "-o", "m", "--kernel", "rbf", "--gamma", "x"], "--gamma is a number, scale or auto"),
        (["train", "train.txt", "-o", "m", "--kernel", "rbv"], "unknown kernel 'rbv'"),
        (["train", "train.txt", "-o", "m", "--scoring", "ndgc"], "ndgc"),
        (["train", "-", "-", "-o", "m"], "standard input (-) can be read only once"),
        (
            ["train", "train.txt", "-o", "m", "--sparse", "--scale", "minmax"],
            "--scale minmax would make sparse rows dense",
        ),
        (["train", "bad.txt", "-o", "m"], "bad.txt, line 2: "),
        (["train", "zero.txt", "-o", "m"], "pass --zero-based"),
        (["train", "null.txt", "-o", "m"], "2 values of features are missing (NULL or empty): --missing 0"),
        (["train", "unscored.txt", "-o", "m"], "1 of 3 rows have no label, the first is row 2"),
        (
            ["train", "t.csv", "-o", "m", "--encode", "no"],
            "t.csv, line 3: 'x' in column 'b' is not a number; --exclude b leaves it out",
        ),
        (["train", "t.csv", "-o", "m", "--label", "z"], "t.csv has no column 'z'; it has label, qid, a, b"),
        (["train", "short.csv", "-o", "m"], "short.csv, line 3: 1 values, but the header names 3"),
        (["train", "nolabel.csv", "-o", "m"], "nolabel.csv has no column 'label' or 'y': name it with --label"),
        (["train", "twice.csv", "-o", "m"], "twice.csv has several columns named 'a'"),
        (["train", "empty.csv", "-o", "m"], "empty.csv is empty"),
        (["predict", "train.txt", "train.txt"], "train.txt is not a model file"),
        (["predict", "-", "-"], "standard input (-) can be read only once"),
        (["evaluate", "train.txt", "bad.txt"], "bad.txt, score 1: 'nonsense here' is neither a single number"),
        (["evaluate", "train.txt", "one.scores"], "one.scores has 1 scores, but train.txt has"),
        (["evaluate", "train.txt", "odd.run"], "odd.run, line 1: train.txt has no document 'X' in query 'q'"),
        (["cv", "train.txt", "--alpha", "1"], "with --alpha (or --n-basis) there is no curve"),
        (["cv", "train.txt", "--plot", "curve.xyz"], "curve.xyz: the name must end in .png, .svg or .pdf"),
    ],
)
def test_errors_are_one_line(words, message, folder, capsys):
    (folder / "bad.txt").write_text(
        "nonsense here\n1 qid:1 1:1 1:x\n" if "evaluate" in words else "1 qid:1 1:1\n1 qid:1 1:x\n"
    )
    (folder / "zero.txt").write_text("1 qid:1 0:1\n0 qid:1 0:2\n")
    (folder / "null.txt").write_text("1 qid:1 1:NULL\n0 qid:1 1:2 2:NULL\n")
    (folder / "unscored.txt").write_text("1 qid:1 1:1\nnan qid:1 1:2\n0 qid:1 1:3\n")
    (folder / "t.csv").write_text("label,qid,a,b\n1,1,2,3\n0,1,3,x\n")
    (folder / "short.csv").write_text("label,qid,a\n1,1,2\n0\n")
    (folder / "nolabel.csv").write_text("qid,a\n1,2\n")
    (folder / "twice.csv").write_text("label,qid,a,a\n1,1,2,3\n")
    (folder / "empty.csv").write_text("")
    (folder / "one.scores").write_text("1\n")
    (folder / "odd.run").write_text("q Q0 X 1 0.5 tag\n")
    before = sorted(os.listdir(folder))
    assert main(words) == 2
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("rankrls: error: ") and message in lines[0], printed.err
    assert printed.out == "" and sorted(os.listdir(folder)) == before


def test_debug_shows_where_an_error_comes_from(folder):
    with pytest.raises(FileNotFoundError):
        main(["train", "nowhere.txt", "-o", "m", "--debug"])


def test_unexpected_errors_are_one_line_too(folder, monkeypatch, capsys):
    monkeypatch.setattr("rankrls.cli.learning.make", lambda *_: {}["x"])
    assert main(["train", "train.txt", "-o", "m"]) == 2
    assert "KeyError: 'x'; this should not happen, --debug shows where it did" in capsys.readouterr().err


def test_an_interrupt_is_quiet_and_leaves_no_file(folder, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RankRLS, "predict", interrupted)
    assert main(["train", "train.txt", "-o", "m.rankrls", "--alpha", "1", "--quiet"]) == 0
    capsys.readouterr()
    before = sorted(os.listdir(folder))
    assert main(["predict", "m.rankrls", "test.txt", "-o", "scores"]) == 130
    assert capsys.readouterr() == ("", "\nrankrls: interrupted; scores was not written\n")
    assert sorted(os.listdir(folder)) == before


# ---------------------------------------------------------------- train and predict


def test_train_is_the_estimator(run):
    record = run("train", "train.txt", "-o", "m.rankrls", "--tied-pairs", "auto", "--scoring", "ndcg@5", "--json")
    data, test = load_letor("train.txt"), load_letor("test.txt")
    expected = RankRLS(tied_pairs="auto", scoring="ndcg@5").fit(data.X, data.y, qid=data.qid)
    assert record["class"] == "RankRLS" and record["rows"] == len(data) and record["features"] == 12
    assert record["chosen"] == {"alpha": expected.alpha_, "tied_pairs": expected.tied_pairs_}
    assert record["held_out"] == expected.cv_scores_.max()
    assert rankrls.load("m.rankrls").get_params() == expected.get_params()
    scores = run("predict", "m.rankrls", "test.txt")
    assert_allclose(np.loadtxt(io.StringIO(scores)), expected.predict(test.X), rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "make"),
    [
        (
            ["--alpha", "2", "--weighting", "pairs", "--regression", "0.5"],
            lambda: RankRLS(2.0, weighting="pairs", regression=0.5),
        ),
        (["--alphas", "1:100:3", "--cv", "5"], lambda: RankRLS(alphas=[1.0, 10.0, 100.0], cv=5)),
        (
            ["--kernel", "rbf", "--gamma", "0.01", "--alpha", "1"],
            lambda: RankRLS(1.0, kernel=rankrls.kernels.Gaussian(0.01)),
        ),
        (
            ["--kernel", "poly", "--degree", "2", "--alpha", "1"],
            lambda: RankRLS(1.0, kernel=rankrls.kernels.Polynomial(2)),
        ),
        (["--kernel", "linear"], lambda: RankRLS()),
        (
            ["--method", "sparse", "--basis", "random:20", "--random-state", "3"],
            lambda: RankRLS(kernel="rbf", basis=rankrls.bases.RandomRows(20), random_state=3),
        ),
        (["--method", "transductive", "--alpha", "1"], lambda: TransductiveRankRLS(1.0)),
        (
            ["--method", "co", "--basis", "10", "--random-state", "0", "--nu", "0.5"],
            lambda: CoRankRLS(nu=0.5, basis=10, random_state=0),
        ),
        (
            ["--method", "co", "--kernel", "linear", "--views", "1-6;7,8,9-12", "--alpha", "1", "--nu", "1"],
            lambda: CoRankRLS(1.0, 1.0, views=[rankrls.View(list(range(6))), rankrls.View(list(range(6, 12)))]),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_are_the_parameters(words, make, run):
    data = load_letor("train.txt")
    unscored = "--method" in words and "sparse" not in words
    if unscored:
        data.y[np.isin(data.qid, np.unique(data.qid)[20:])] = np.nan
        dump_letor(data, "train.txt")
    run("train", "train.txt", "-o", "m.rankrls", *words)
    assert_allclose(rankrls.load("m.rankrls").predict(data.X), make().fit(data.X, data.y, qid=data.qid).predict(data.X))


def test_a_sparse_model_of_few_rows_takes_them_all(run):
    run("train", "train.txt", "-o", "m.rankrls", "--method", "sparse")
    assert len(rankrls.load("m.rankrls").X_fit_) <= len(load_letor("train.txt"))


@pytest.mark.parametrize("scale", ["standard", "minmax", "query-minmax"])
@pytest.mark.parametrize("rows", [0, 30])
def test_scalers_are_part_of_the_model(scale, rows, run):
    run("train", "train.txt", "-o", "m.rankrls", "--scale", scale)
    scores = np.loadtxt(io.StringIO(run("predict", "m.rankrls", "test.txt", "--rows", rows)))
    data, test = load_letor("train.txt"), load_letor("test.txt")
    if scale == "query-minmax":
        scaled = [rankrls.datasets.per_query_minmax(part.X, part.qid) for part in (data, test)]
    else:
        scaler = rankrls.persistence.CLASSES["StandardScaler" if scale == "standard" else "MinMaxScaler"]().fit(data.X)
        scaled = [scaler.transform(part.X) for part in (data, test)]
    assert_allclose(scores, RankRLS(scale=None).fit(scaled[0], data.y, qid=data.qid).predict(scaled[1]))


def test_sparse_rows(run):
    run("train", "train.txt", "-o", "dense.rankrls", "--scale", "standard")
    run("train", "train.txt", "-o", "sparse.rankrls", "--scale", "standard", "--sparse")
    dense, sparse = (
        np.loadtxt(io.StringIO(run("predict", name, "test.txt", *extra)))
        for name, extra in (("dense.rankrls", []), ("sparse.rankrls", ["--sparse"]))
    )
    assert_allclose(np.diff(sparse), np.diff(dense), atol=1e-8)


def test_several_files_are_one_set(run, capsys):
    lines = Path("train.txt").read_text().splitlines(keepends=True)
    cut = next(i for i in range(100, len(lines)) if lines[i].split()[1] != lines[i - 1].split()[1])
    Path("a.txt").write_text("".join(lines[:cut]))
    Path("b.txt").write_text("".join(lines[cut:]))
    run("train", "train.txt", "-o", "one.rankrls")
    run("train", "a.txt", "b.txt", "-o", "two.rankrls")
    assert Path("one.rankrls").read_bytes() == Path("two.rankrls").read_bytes()
    assert main(["train", "a.txt", "a.txt", "-o", "m"]) == 0
    assert "is in a.txt" not in capsys.readouterr().err  # the same file twice is what was asked for
    assert main(["train", "a.txt", "train.txt", "-o", "m"]) == 0
    assert "is in a.txt and in train.txt: both parts count as one query" in capsys.readouterr().err


def test_files_of_different_width_are_widened(run):
    Path("a.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    Path("b.txt").write_text("1 qid:2 1:1 3:5\n0 qid:2 1:2\n")
    assert run("train", "a.txt", "b.txt", "-o", "m", "--alpha", "1", "--json")["features"] == 3
    assert run("train", "a.txt", "b.txt", "-o", "m", "--alpha", "1", "--sparse", "--json")["features"] == 3


def test_missing_values(run):
    Path("null.txt").write_text("1 qid:1 1:NULL 2:1\n0 qid:1 1:2 2:NULL\n2 qid:1 1:-3 2:5\n")
    Path("null.csv").write_text("label,qid,f1,f2\n1,1,,1\n0,1,2,NA\n2,1,-3,5\n")
    for missing, X in (("0.5", [[0.5, 1], [2, 0.5], [-3, 5]]), ("minimum", [[-3, 1], [2, 0], [-3, 5]])):
        expected = RankRLS(1.0).fit(np.array(X, dtype=float), [1, 0, 2])
        for name in ("null.txt", "null.csv"):
            run("train", name, "-o", "m", "--alpha", "1", "--missing", missing)
            assert_allclose(rankrls.load("m").coef_, expected.coef_)
            scores = run("predict", "m", name, "--missing", missing)
            assert_allclose(np.loadtxt(io.StringIO(scores)), expected.predict(np.array(X, dtype=float)))
            assert run("predict", "m", name) == scores  # the model remembers
    run("train", "train.txt", "-o", "m")
    assert "--missing" in run("predict", "m", "null.txt", code=2)


def test_bad_lines_can_be_left_out(run, capsys):
    Path("bad.txt").write_text("1 qid:1 1:1\n1 qid:1 1:x\n0 qid:1 1:3\n")
    Path("bad.csv").write_text("label,qid,a\n1,1,1\n1,1,x\n1\n0,1,3\n")
    assert run("train", "bad.txt", "-o", "m", "--alpha", "1", "--skip-bad-lines", "--json")["skipped"] == 1
    assert main(["train", "bad.csv", "-o", "m", "--alpha", "1", "--skip-bad-lines"]) == 0
    assert "left out 2 unreadable lines" in capsys.readouterr().err
    assert main(["predict", "m", "bad.txt", "--skip-bad-lines"]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 2 and "left out 1 unreadable line, which got no score" in printed.err
    assert "left out 1 unreadable line" in run("convert", "bad.txt", "good.txt", "--skip-bad-lines")


def test_trec_runs_are_ordered_and_named(run):
    run("train", "train.txt", "-o", "m.rankrls")
    run("predict", "m.rankrls", "test.txt", "--format", "trec", "-o", "run", "--tag", "mine", "--rows", "20")
    test = load_letor("test.txt")
    scores = rankrls.load("m.rankrls").predict(test.X)
    lines = [line.split() for line in Path("run").read_text().splitlines()]
    assert len(lines) == len(test) and {line[5] for line in lines} == {"mine"} and {line[1] for line in lines} == {"Q0"}
    place = {(q, d): i for i, (q, d) in enumerate(zip(test.qid, test.doc_ids, strict=True))}
    ranks = rankrls.load("m.rankrls").rank(test.X, test.qid)
    for query, _, document, rank, score, _ in lines:
        i = place[query, document]
        assert ranks[i] == int(rank) and scores[i] == pytest.approx(float(score), rel=1e-12)
    assert [int(line[3]) for line in lines if line[0] == lines[0][0]] == sorted(ranks[test.qid == lines[0][0]])


def test_documents_without_a_name_are_numbered(run):
    data = load_letor("test.txt")
    dump_letor(replace(data, comments=None), "plain.txt")
    run("train", "train.txt", "-o", "m.rankrls")
    run("predict", "m.rankrls", "plain.txt", "--format", "trec", "-o", "run", "--rows", "20")
    documents = [int(line.split()[2]) for line in Path("run").read_text().splitlines()]
    assert sorted(documents) == list(range(1, len(data) + 1))
    run("predict", "m.rankrls", "plain.txt", "-o", "scores")
    one, two = (run("evaluate", "plain.txt", name, "--json")["metrics"] for name in ("scores", "run"))
    assert one == two


def test_tables_of_scores(run):
    run("train", "train.txt", "-o", "m.rankrls")
    test = load_letor("test.txt")
    expected = rankrls.load("m.rankrls").predict(test.X)
    rows = list(csv.DictReader(io.StringIO(run("predict", "m.rankrls", "test.txt", "--format", "csv"))))
    assert [row["docid"] for row in rows] == test.doc_ids.tolist() and [row["qid"] for row in rows] == test.qid.tolist()
    assert_allclose([float(row["score"]) for row in rows], expected, rtol=1e-12)
    parquet = pytest.importorskip("pyarrow.parquet")
    run("predict", "m.rankrls", "test.txt", "--format", "parquet", "-o", "scores.parquet", "--rows", "30")
    table = parquet.read_table("scores.parquet")
    assert table.column_names == ["qid", "docid", "score"]
    assert_allclose(table["score"].to_numpy(), expected, rtol=1e-12)


def test_rows_without_queries_and_scattered_ones_are_scored(run):
    test = load_letor("test.txt")
    run("train", "train.txt", "-o", "m.rankrls")
    expected = rankrls.load("m.rankrls").predict(test.X)
    dump_letor(replace(test, qid=None), "plain.txt")
    scattered = np.random.default_rng(0).permutation(len(test))
    dump_letor(replace(test, X=test.X[scattered], qid=test.qid[scattered], comments=None), "scattered.txt")
    for name, wanted in (("plain.txt", expected), ("scattered.txt", expected[scattered])):
        assert_allclose(np.loadtxt(io.StringIO(run("predict", "m.rankrls", name, "--rows", "40"))), wanted, rtol=1e-12)
    message = run("predict", "m.rankrls", "scattered.txt", "--rows", "40", "--format", "trec", code=2)
    assert "or pass --rows 0" in message
    run("predict", "m.rankrls", "scattered.txt", "--rows", "0", "--format", "trec", "-o", "run")


def test_models_of_tables_find_their_columns(run):
    data = load_letor("train.txt")
    rows = [["grade", "b", "text", "query", "a"]]
    rows += [[y, x[1], "some, words", q, x[0]] for y, x, q in zip(data.y, data.X, data.qid, strict=True)]
    with open("a.tsv", "w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(rows)
    words = ["--label", "grade", "--qid", "query"]
    run("train", "a.tsv", "-o", "m.rankrls", "--columns", "a,b", *words)
    model = rankrls.load("m.rankrls")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    expected = RankRLS().fit(data.X[:, :2], data.y, qid=data.qid)
    assert_allclose(model.coef_, expected.coef_)
    assert_allclose(np.loadtxt(io.StringIO(run("predict", "m.rankrls", "a.tsv"))), expected.predict(data.X[:, :2]))
    run("predict", "m.rankrls", "a.tsv", "-o", "scores")
    assert run("evaluate", "a.tsv", "scores", *words, "--json")["queries"] == 30


def test_a_model_on_data_with_other_columns(run):
    run("train", "train.txt", "-o", "m.rankrls")
    Path("wide.txt").write_text("0 qid:1 1:1 13:1\n")
    assert "wide.txt, line 1: feature 13" in run("predict", "m.rankrls", "wide.txt", code=2)
    Path("narrow.csv").write_text("qid,a\n1,2\n")
    assert "narrow.csv has 1 feature, but the model was trained on 12" in run(
        "predict", "m.rankrls", "narrow.csv", code=2
    )
    Path("narrow.txt").write_text("0 qid:1 1:1\n")
    assert run("predict", "m.rankrls", "narrow.txt").count("\n") == 1
    rankrls.save(rankrls.ConditionalRankRLS(1.0).fit(np.eye(4), np.arange(16.0).reshape(4, 4)), "pairs.rankrls")
    assert "model of relations" in run("predict", "pairs.rankrls", "test.txt", code=2)


# ---------------------------------------------------------------- evaluate


def test_evaluate_is_the_metrics(run):
    test = load_letor("test.txt")
    scores = np.random.default_rng(0).normal(size=len(test)) + test.y
    np.savetxt("scores", scores)
    found = run("evaluate", "test.txt", "scores", "-k", "3", "--json")["metrics"]
    assert list(found) == ["pairwise_accuracy", "kendall_tau_b", "ndcg", "ndcg@3", "map", "mrr", "precision@3"]
    for name, entry in found.items():
        values = metrics.per_query(name, test.y, scores, test.qid)
        values = values[~np.isnan(values)]
        assert_allclose(entry["mean"], [values.mean()])
        assert_allclose(entry["standard_error"], [values.std(ddof=1) / np.sqrt(len(values))])
        assert entry["queries"] == len(values)
    letor = run("evaluate", "test.txt", "scores", "--convention", "letor", "--metrics", "ndcg@5", "--json")["metrics"]
    assert_allclose(letor["ndcg@5"]["mean"], [metrics.ndcg(test.y, scores, test.qid, k=5, convention="letor")])
    strict = run("evaluate", "test.txt", "scores", "--relevant", "3", "--metrics", "map", "--json")["metrics"]["map"]
    assert_allclose(strict["mean"], [metrics.average_precision(test.y, scores, test.qid, relevant=3)])
    assert "pairwise_accuracy" in run("evaluate", "test.txt", "scores")
    run("evaluate", "test.txt", "scores", "--per-query", "values.csv", "--metrics", "ndcg")
    rows = list(csv.DictReader(Path("values.csv").read_text().splitlines()))
    assert [row["qid"] for row in rows] == list(dict.fromkeys(test.qid))


def test_two_models_are_compared(run):
    test = load_letor("test.txt")
    rng = np.random.default_rng(0)
    np.savetxt("good", test.y + 0.1 * rng.normal(size=len(test)))
    np.savetxt("bad", rng.normal(size=len(test)))
    found = run("evaluate", "test.txt", "bad", "good", "--json")["metrics"]["pairwise_accuracy"]
    assert found["difference"] == pytest.approx(found["mean"][1] - found["mean"][0]) and found["p"] < 0.01
    same = run("evaluate", "test.txt", "good", "good", "--json")["metrics"]["pairwise_accuracy"]
    assert same["p"] == 1 and same["difference"] == 0
    assert "p by a paired randomisation test" in run("evaluate", "test.txt", "bad", "good")


@pytest.mark.parametrize("n", [1, 5, 12])
def test_the_exact_test_counts_every_way_to_flip(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, n))
    signs = np.array(np.meshgrid(*[[-1, 1]] * n)).reshape(n, -1)
    expected = np.mean(np.abs(signs.T @ (a - b)) >= abs((a - b).sum()) - 1e-9)
    assert metrics.randomisation_test(a, b) == pytest.approx(expected)
    many = metrics.randomisation_test(a, b, flips=2**n - 1) if n > 1 else expected
    assert abs(many - expected) < 0.3 if n < 12 else abs(many - expected) < 0.03


def test_the_randomised_test_has_its_level():
    rng = np.random.default_rng(0)
    p = [metrics.randomisation_test(*rng.normal(size=(2, 40)), flips=500, random_state=rng) for _ in range(300)]
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09
    assert metrics.randomisation_test([0.5, np.nan], [0.5, 1.0]) == 1
    assert metrics.randomisation_test(np.ones(5000), np.zeros(5000), flips=99) == 0.01  # 2^5000 ways to flip
    for wrong in (([1.0], [1.0, 2.0]), ([np.nan], [1.0])):
        with pytest.raises(ValueError):
            metrics.randomisation_test(*wrong)


def test_runs_may_leave_documents_out(run, capsys):
    test = load_letor("test.txt")
    lines = [f"{q} Q0 {d} 1 {s} t\n" for q, d, s in zip(test.qid, test.doc_ids, test.y, strict=True)]
    kept = [line for line, y in zip(lines, test.y, strict=True) if y > 0]
    Path("run").write_text("".join(kept))
    assert main(["evaluate", "test.txt", "run", "--metrics", "pairwise_accuracy", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["metrics"]["pairwise_accuracy"]["mean"] == [1]
    assert (
        f"run has no score for {len(lines) - len(kept)} of {len(lines)} documents, which are ranked last" in printed.err
    )


def test_rows_without_label_and_negative_ones(run, capsys):
    Path("d.txt").write_text("1 qid:1 1:1\n-1 qid:1 1:2\nnan qid:1 1:3\n")
    Path("s").write_text("3\n2\n9\n")
    assert main(["evaluate", "d.txt", "s", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["metrics"]["ndcg"]["mean"] == [1]
    assert "left out 1 row without a label" in printed.err and "negative labels" in printed.err


# ---------------------------------------------------------------- cv


def test_the_curve_is_that_of_the_estimator(run):
    record = run("cv", "train.txt", "--scale", "standard", "--scoring", "ndcg@5", "--json")
    data = load_letor("train.txt")
    X = StandardScaler().fit_transform(data.X)
    model = RankRLS(scale=None, scoring="ndcg@5").fit(X, data.y, qid=data.qid)
    assert_allclose(record["curve"]["alpha"], model.alphas_)
    assert_allclose(record["curve"]["scores"], model.cv_scores_)
    assert record["curve"]["chosen"] == record["chosen"]["alpha"] == pytest.approx(model.alpha_)
    at = int(np.argmin(np.abs(model.alphas_ - model.alpha_)))
    values = metrics.per_query("ndcg@5", data.y, model.cv_predictions_, data.qid)
    values = values[~np.isnan(values)]
    assert record["curve"]["standard_errors"][at] == pytest.approx(values.std(ddof=1) / np.sqrt(len(values)))
    text = run("cv", "train.txt", "--scale", "standard")
    assert text.count("<") == 1 and "chose alpha" in text and "█" in text


@pytest.mark.parametrize(
    "words", [["--method", "co", "--basis", "10"], ["--method", "transductive"], ["--tied-pairs", "auto"]]
)
def test_every_method_has_a_curve_with_errors(words, run):
    data = load_letor("train.txt")
    if "--method" in words:
        data.y[np.isin(data.qid, np.unique(data.qid)[20:])] = np.nan
    dump_letor(data, "train.txt")
    curve = run("cv", "train.txt", *words, "--random-state", "0", "--json")["curve"]
    assert len(curve["alpha"]) == len(curve["scores"]) == len(curve["standard_errors"]) == 15
    assert curve["chosen"] in curve["alpha"]


def test_a_curve_can_be_drawn(run):
    pytest.importorskip("matplotlib")
    run("cv", "train.txt", "--plot", "curve.png", "--alphas", "1,10,100")
    assert Path("curve.png").read_bytes().startswith(b"\x89PNG")


def test_bars_without_unicode(run, monkeypatch):
    from rankrls.cli import text

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert text.sparkline([1, 2, float("nan"), 3]) == "_+ @" and set("".join(text.bars([1, 2]))) == {"#"}


# ---------------------------------------------------------------- convert, export, inspect


@pytest.mark.parametrize("path", ["csv", "tsv", "csv.gz", "csv.xz", "parquet"])
def test_tables_and_text_and_back(path, run):
    if path == "parquet":
        pytest.importorskip("pyarrow")
    data = load_letor("train.txt")
    data.X[3, 4], data.y[5] = np.nan, np.nan
    data.comments[2] = 'docid = D2 inc = 1, "quoted"'
    dump_letor(data, "train.txt")
    assert run("convert", "train.txt", f"t.{path}", "--json")["rows"] == len(data)
    run("convert", f"t.{path}", "again.txt")
    again = load_letor("again.txt")
    assert_array_equal(again.X, data.X)
    assert_array_equal(again.y, data.y)
    assert again.qid.tolist() == data.qid.tolist() and again.doc_ids.tolist() == data.doc_ids.tolist()
    assert again.comments.tolist() == data.comments.tolist()


def test_convert_through_a_pipe_and_formats_given(run):
    text = run("convert", "train.txt", "-", "--output-format", "csv")
    assert text.startswith("qid,label,docid,f1,f2,")
    Path("odd.data").write_text(text)
    run("convert", "odd.data", "again.txt", "--input-format", "csv")
    assert Path("again.txt").read_text() == Path("train.txt").read_text()


def test_zero_based_text_stays_zero_based(run):
    Path("z.txt").write_text("1 qid:1 0:1 1:2\n0 qid:1 0:3 1:4\n")
    run("convert", "z.txt", "again.txt", "--zero-based")
    assert Path("again.txt").read_text() == Path("z.txt").read_text()


def test_parquet_without_pyarrow_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "pip install 'rankrls[arrow]'" in run("convert", "train.txt", "t.parquet", code=2)
    Path("t.parquet").write_bytes(b"PAR1")
    assert "pip install 'rankrls[arrow]'" in run("train", "t.parquet", "-o", "m", code=2)


def test_plots_without_matplotlib_say_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install 'rankrls[plot]'" in run("cv", "train.txt", "--plot", "c.png", code=2)


@pytest.mark.parametrize("target", [name for name in options.TARGETS if name != "onnx"])
def test_exports(target, run):
    run("train", "train.txt", "-o", "m.rankrls", "--scale", "standard")
    text = run("export", "m.rankrls", "--to", target)
    run("export", "m.rankrls", "--to", target, "-o", "model")
    assert Path("model").read_text() == text
    names = ",".join(f"n{j}" for j in range(12))
    if target != "svmrank":
        assert "n11" in run("export", "m.rankrls", "--to", target, "--features", names)
        assert "12 features, got 1 names" in run("export", "m.rankrls", "--to", target, "--features", "a", code=2)


def test_export_to_onnx(run, monkeypatch):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    run("train", "train.txt", "-o", "m.rankrls", "--scale", "standard", "--method", "sparse", "--basis", "9")
    run("predict", "m.rankrls", "test.txt", "-o", "scores")
    data = load_letor("test.txt")
    for words, kind in ([], np.float64), (["--dtype", "float32"], np.float32):
        assert run("export", "m.rankrls", "--to", "onnx", "-o", "m.onnx", *words) == "wrote m.onnx (onnx)\n"
        (scores,) = runtime.InferenceSession("m.onnx").run(None, {"X": data.X.astype(kind)})
        np.testing.assert_allclose(scores, np.loadtxt("scores"), rtol=1e-5, atol=1e-5)
    assert "--dtype needs --to onnx" in run("export", "m.rankrls", "--to", "json", "--dtype", "float32", code=2)
    monkeypatch.setattr("rankrls.cli.export.sys.stdout.isatty", lambda: True, raising=False)
    assert "pass -o model.onnx" in run("export", "m.rankrls", "--to", "onnx", code=2)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'rankrls[onnx]'" in run("export", "m.rankrls", "--to", "onnx", "-o", "x", code=2)


def test_models_that_cannot_be_exported_are_refused(run):
    run("train", "train.txt", "-o", "m.rankrls", "--scale", "query-minmax")
    assert "scaling within queries" in run("export", "m.rankrls", "--to", "solr", code=2)
    run("train", "train.txt", "-o", "m.rankrls", "--method", "sparse", "--basis", "9")
    assert "is not linear" in run("export", "m.rankrls", "--to", "solr", code=2)


def test_inspect_a_model(run):
    run("train", "train.txt", "-o", "m.rankrls", "--scale", "standard")
    record = run("inspect", "m.rankrls", "--json")
    model = rankrls.load("m.rankrls")
    assert record["class"] == "RankRLS" and record["scalers"] == ["StandardScaler"] and record["features"] == 12
    assert record["chosen"]["alpha"] == model[-1].alpha_
    weights = model[-1].coef_ / model[0].scale_
    assert_allclose([record["weights"][f"f{j + 1}"] for j in range(12)], weights)
    text = run("inspect", "m.rankrls", "--top", "3")
    assert "... 9 more" in text and f"f{np.argmax(np.abs(weights)) + 1} " in text
    run("train", "train.txt", "-o", "k.rankrls", "--method", "sparse", "--basis", "9")
    assert "kernel model of 9 points" in run("inspect", "k.rankrls")
    rankrls.save(rankrls.ConditionalRankRLS(1.0).fit(np.eye(4), np.arange(16.0).reshape(4, 4)), "pairs.rankrls")
    assert "ConditionalRankRLS" in run("inspect", "pairs.rankrls")


@pytest.mark.parametrize("extra", [[], ["--sparse"]])
def test_inspect_data(extra, run):
    Path("d.txt").write_text(
        "1 qid:a 1:5 2:NULL 3:1\n0 qid:a 1:5 2:2 3:2\n1 qid:b 1:5 2:3 3:3\nnan qid:b 1:5 2:4 3:4\n"
    )
    record = run("inspect", "d.txt", "--json", *extra)
    assert record["rows"] == 4 and record["queries"] == 2 and record["unscored_rows"] == 1
    assert record["labels"] == {"0.0": 1, "1.0": 2} and record["queries_without_preferences"] == 1
    assert record["missing_values"] == 1 and record["features_with_missing"] == ["f2"]
    assert record["constant_features"] == ["f1"]
    assert "constant features" in run("inspect", "d.txt", *extra)


def test_demo(run, monkeypatch):
    monkeypatch.setattr("rankrls.cli.demonstration.main", lambda: print("hello") or 0)
    assert run("demo") == "hello\n"
    assert run("demo", "--json") == {"text": "hello\n"}


# ---------------------------------------------------------------- processes


def test_pipes_exit_codes_and_models_on_standard_output(folder):
    trained = rankrls_process("train", "-", "-o", "-", "--alpha", "1", input=Path("train.txt").read_bytes())
    assert trained.returncode == 0 and trained.stdout.startswith(b"rankrls model") and b"fitted" in trained.stderr
    Path("m.rankrls").write_bytes(trained.stdout)
    scored = rankrls_process("predict", "-", "test.txt", input=trained.stdout)
    test = load_letor("test.txt")
    assert_allclose(np.loadtxt(io.BytesIO(scored.stdout)), rankrls.load("m.rankrls").predict(test.X), rtol=1e-12)
    failed = rankrls_process("predict", "-", "test.txt", input=b"nonsense")
    assert failed.returncode == 2
    assert failed.stderr.decode().splitlines() == [
        "rankrls: error: standard input is not a model file of rankrls (written by rankrls.save)"
    ]


def test_a_closed_pipe_is_no_error(folder):
    rankrls.save(RankRLS(1.0).fit(np.eye(3), [0, 1, 2]), "m.rankrls")
    Path("many.txt").write_text("0 qid:1 1:1 2:2 3:3\n" * 60_000)
    words = shlex.join([sys.executable, "-m", "rankrls"])
    done = subprocess.run(
        ["bash", "-c", f"{words} predict m.rankrls many.txt --quiet | head -1; echo ${{PIPESTATUS[0]}}"],
        env={**os.environ, "PYTHONPATH": str(Path(rankrls.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == "" and len(done.stdout.splitlines()) == 2 and done.stdout.splitlines()[1] == "141"


def test_ctrl_c_leaves_no_file(folder):
    environment = {**os.environ, "PYTHONPATH": str(Path(rankrls.__file__).parent.parent)}
    rankrls.save(RankRLS(1.0).fit(np.eye(3), [0, 1, 2]), "m.rankrls")
    words = [sys.executable, "-m", "rankrls", "predict", "m.rankrls", "-", "-o", "scores", "--quiet"]
    process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"0 qid:1 1:1 2:2 3:3\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not any(name.endswith(".part") for name in os.listdir(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and errors == b"\nrankrls: interrupted; scores was not written\n"
    assert not [name for name in os.listdir(folder) if "scores" in name]


def test_progress_of_long_commands(folder, capsys, limit):
    now = iter(range(100_000))
    limit(clock=lambda: 2.0 * next(now))
    rankrls.save(RankRLS(1.0).fit(np.eye(12), np.arange(12)), "m.rankrls")
    assert main(["predict", "m.rankrls", "test.txt", "-o", "scores", "--rows", "20"]) == 0
    errors = capsys.readouterr().err
    assert "reading test.txt: 100 %" in errors
    assert main(["predict", "m.rankrls", "test.txt", "-o", "scores", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_device_is_written_and_not_replaced(folder):
    link = folder / "null"
    link.symlink_to("/dev/null")
    rankrls.save(RankRLS(1.0).fit(np.eye(12), np.arange(12)), "m.rankrls")
    assert main(["predict", "m.rankrls", "test.txt", "-o", str(link)]) == 0
    assert main(["train", "test.txt", "-o", str(link)]) == 0
    assert link.is_symlink()


# ---------------------------------------------------------------- the page


def test_the_command_line_page_shows_real_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "cli.md").read_text()
    checker, shell = doctest.OutputChecker(), shlex.join([sys.executable, "-m", "rankrls"])
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    environment = {**os.environ, "PYTHONPATH": str(Path(rankrls.__file__).parent.parent)}
    for language, block in re.findall(r"```(python|console)\n(.*?)```", page, re.DOTALL):
        if language == "python":
            exec(compile(block, "block", "exec"), {"__name__": "block"})
            continue
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, wanted = example.partition("\n")
            if "|" in command:
                script = re.sub(r"(^|\| )rankrls ", lambda match: f"{match[1]}{shell} ", command)
                done = subprocess.run(
                    ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120
                )
                got = done.stdout
            else:
                failed = main(shlex.split(command)[1:])
                printed = capsys.readouterr()
                got = printed.err if failed else printed.out
            assert checker.check_output(wanted, got, flags), f"$ {command}\n{got}"


def test_the_page_names_every_command_and_target():
    page = (ROOT / "docs" / "cli.md").read_text()
    assert all(f"rankrls {name}" in page for name in COMMANDS if name != "demo")
    assert all(f"`{target}`" in page for target in options.TARGETS)
    actions = options.parser()._subparsers._group_actions[0].choices
    assert isinstance(actions["train"], argparse.ArgumentParser) and list(actions) == COMMANDS


def test_alpha_of_svmrank_in_the_limit():
    """With labels 0 and 1 and strong regularisation, alpha = n / C has the weights C/n sum of x_i - x_j."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(40, 3)), rng.integers(0, 2, 40), np.repeat(np.arange(5), 8)
    C, n = 1e-6, 5
    total = sum(X[i] - X[j] for i in range(40) for j in range(40) if qid[i] == qid[j] and y[i] > y[j])
    model = RankRLS(n / C, scale=None, weighting="pairs").fit(X, y, qid=qid)
    assert_allclose(model.coef_, C / n * total, rtol=1e-4)


def test_deprecations_in_matplotlib_are_not_shown(folder, monkeypatch, capsys):
    class Both(UserWarning, DeprecationWarning):  # as those of pyparsing are
        pass

    def command(args):
        for kind, text, module in ((Both, "internal", "matplotlib._mathtext"), (UserWarning, "shown", "matplotlib")):
            warnings.warn_explicit(text, kind, "file.py", 1, module=module)

    monkeypatch.setattr("rankrls.cli.inspect.run", command)
    assert main(["inspect", "train.txt"]) == 0
    assert capsys.readouterr().err == "rankrls: warning: shown\n"


def test_without_a_command_help_is_printed(capsys):
    assert main([]) == 0
    assert "COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["trian", "x"], "did you mean train?"), (["train", "x", "-o", "m", "--kernle", "rbf"], "did you mean --kernel?")],
)
def test_misspelt_commands_and_options(words, meant, capsys):
    assert main(words) == 2
    assert meant in capsys.readouterr().err
