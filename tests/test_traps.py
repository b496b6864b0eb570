"""Mistakes of a first hour: each is refused, or pointed out in one line, from Python and on the command line."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankrls
from rankrls import (
    AutoRanker,
    ConditionalRankRLS,
    CoRankRLS,
    PerQueryMinMax,
    RankingPursuit,
    RankRLS,
    TransductiveRankRLS,
)
from rankrls.cli import main
from rankrls.datasets import dump_letor, load_letor, make_relation, make_search
from rankrls.estimators.rows.intake import query_column
from rankrls.system.limits import limited


@pytest.fixture(scope="module")
def data():
    return make_search(80, mean_documents=20, random_state=0)


@pytest.fixture
def frame(data):
    return pd.DataFrame(data.X, columns=data.feature_names)


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys, data):
    """Run a command in a folder with data; what it says on standard error."""
    monkeypatch.chdir(tmp_path)
    dump_letor(data, "train.txt")

    def call(*words, code=0):
        found = main(list(map(str, words)))
        printed = capsys.readouterr()
        assert found == code, printed.err
        return printed.err

    return call


# ---------------------------------------------------------------- queries that were not given


@pytest.mark.parametrize("name", ["query_id", "Query", "session", "session_id", "srch_id", "search-id", "topic_id"])
@pytest.mark.parametrize("make", [RankRLS, lambda: RankingPursuit(n_basis=2)], ids=["rankrls", "pursuit"])
def test_a_column_of_query_ids_that_became_a_feature(name, make, frame, data):
    few = slice(0, 200)
    ids = pd.factorize(data.qid)[0][few]
    with pytest.warns(UserWarning, match=f"column '{name}' looks like query ids, but is used as a feature: pass qid="):
        make().fit(frame[few].assign(**{name: ids}), data.y[few])
    with pytest.warns(UserWarning, match="drop it from X"):
        make().fit(frame[few].assign(**{name: ids}), data.y[few], qid=data.qid[few])


def test_parts_of_names_count_only_where_values_stand_together(frame, data):
    ids = np.repeat([3, 1, 2], 4)
    assert query_column(["price", "my_query_group"], lambda name: ids) == "my_query_group"
    assert query_column(["query_length"], lambda name: np.tile([1, 2], 6)) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankRLS().fit(frame, data.y, qid=data.qid)  # has a feature query_length
        RankRLS().fit(frame.assign(qid=data.qid), data.y)


def test_a_name_of_query_ids_with_fractions_is_a_feature(frame, data):
    named = frame.rename(columns={frame.columns[0]: "topic"})
    assert query_column(named.columns, lambda name: named[name].to_numpy()) is None
    RankRLS(1.0).fit(named, data.y, qid=data.qid)


def test_one_huge_query_where_groups_were_meant(data):
    with pytest.warns(UserWarning, match="no qid was given, so all .* rows are ranked as one query"):
        RankRLS(1.0).fit(data.X, data.y)
    with pytest.warns(UserWarning, match="ranked as one query"):
        cross_val_score(RankRLS(1.0), data.X, data.y, cv=GroupKFold(5), groups=data.qid)
    with pytest.warns(UserWarning, match="ranked as one query"):
        AutoRanker(effort="fast").fit(data.X, data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankRLS(1.0).fit(data.X, data.y, qid=np.zeros(len(data)))
        RankRLS(1.0).fit(data.X, data.y + 0.1 * data.X[:, 0])  # a ranking of everything by a quantity


def test_the_command_line_says_so_too(cli, data, frame):
    frame.assign(label=data.y, query_id=pd.factorize(data.qid)[0]).to_csv("t.csv", index=False)
    errors = cli("train", "t.csv", "-o", "m", "--alpha", 1)
    assert "column 'query_id' looks like query ids, but is used as a feature: pass --qid query_id" in errors
    assert "the data have no query ids, so all" in errors and "--group a file of their sizes" in errors
    assert "looks like" not in cli("train", "t.csv", "-o", "m", "--alpha", 1, "--qid", "query_id")
    assert cli("train", "t.csv", "-o", "m", "--alpha", 1, "--exclude", "query_id").count("looks like") == 0
    frame.assign(label=data.y, session_id=data.qid).to_csv("text.csv", index=False)
    assert "pass --qid session_id" in cli("train", "text.csv", "-o", "m", code=2)
    assert "if it names the query, pass --qid session_id" in cli(
        "train", "text.csv", "-o", "m", "--encode", "no", code=2
    )


def test_sizes_of_queries_in_a_file_of_lightgbm(cli, data):
    plain = rankrls.datasets.RankingData(data.X, data.y)
    dump_letor(plain, "rank.train")
    sizes = pd.Series(data.qid).groupby(data.qid, sort=False).size()
    assert list(sizes.index) == list(dict.fromkeys(data.qid))  # rows of a query stand together
    Path("rank.train.query").write_text("\n".join(map(str, sizes)))
    assert "there is a file rank.train.query: pass --group rank.train.query" in cli(
        "train", "rank.train", "-o", "m", "--alpha", 1
    )
    assert cli("train", "rank.train", "-o", "m", "--alpha", 1, "--group", "rank.train.query") == ""
    expected = RankRLS(1.0).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(rankrls.load("m").coef_, expected.coef_)
    cli("predict", "m", "rank.train", "-o", "s.csv", "--group", "rank.train.query")
    assert pd.read_csv("s.csv")["qid"].nunique() == len(sizes)
    assert cli("evaluate", "rank.train", "s.csv", "--group", "rank.train.query") == ""
    os.replace("rank.train.query", "rank.train.group")  # XGBoost's name for it
    assert "there is a file rank.train.group: pass --group" in cli("train", "rank.train", "-o", "m", "--alpha", 1)
    os.replace("rank.train.group", "rank.train.query")
    Path("short.query").write_text("3\n4\n")
    errors = cli("train", "rank.train", "-o", "m", "--group", "short.query", code=2)
    assert f"the sizes in short.query add up to 7 rows, but the data have {len(data):,}" in errors
    Path("odd.query").write_text("a b\n")
    assert "must hold the number of rows of each query" in cli(
        "train", "rank.train", "-o", "m", "--group", "odd.query", code=2
    )
    assert "already have query ids" in cli("train", "train.txt", "-o", "m", "--group", "rank.train.query", code=2)


# ---------------------------------------------------------------- pipelines


def test_a_pipeline_that_drops_query_ids_says_how_to_route_them(data):
    model = make_pipeline(StandardScaler(), RankRLS(1.0)).fit(data.X, data.y, rankrls__qid=data.qid)
    for score in (lambda: model.score(data.X, data.y, qid=data.qid), lambda: model.score(data.X, data.y)):
        with pytest.raises(ValueError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
            score()
    with sklearn.config_context(enable_metadata_routing=True):
        assert 0.5 < model.score(data.X, data.y, qid=data.qid) < 1


def test_folds_that_split_queries(frame, data):
    X = frame.assign(qid=data.qid)
    with pytest.warns(UserWarning, match=r"of the \d+ scored queries were in the training data.* GroupKFold"):
        cross_val_score(RankRLS(1.0), X, data.y, cv=KFold(3, shuffle=True, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_val_score(RankRLS(1.0), X, data.y, cv=GroupKFold(3), groups=data.qid)
        model = RankRLS(1.0).fit(X, data.y)
        model.score(X, data.y)  # of training: nothing is split
        keep = np.isin(data.qid, np.unique(data.qid)[:5])
        model.score(X[keep], data.y[keep])
        pickle.loads(pickle.dumps(model)).score(X[: len(X) // 2], data.y[: len(X) // 2])
        half = len(X) // 2 + 3  # another file, whose queries are numbered from 0 as well
        RankRLS(1.0).fit(X[:half], data.y[:half]).score(X[half:].assign(qid=0).reset_index(drop=True), data.y[half:])


def test_query_ids_that_frames_no_longer_have(frame, data):
    model = RankRLS(1.0).fit(frame.assign(qid=data.qid), data.y)
    with pytest.raises(ValueError, match="was fitted on 80 queries, but score got no qid and would pool them"):
        model.score(frame, data.y)
    with pytest.warns(UserWarning, match="no qid was given, so all .* rows are ranked as one query"):
        cross_val_score(model, frame, data.y, cv=GroupKFold(5), groups=data.qid)


def test_scaling_within_queries_without_queries(data):
    with pytest.warns(UserWarning, match="PerQueryMinMax got no qid and scales all .* rows as one query: a pipeline"):
        make_pipeline(PerQueryMinMax(), RankRLS(1.0)).fit(data.X, data.y, rankrls__qid=data.qid)
    model = PerQueryMinMax().fit(data.X, qid=data.qid)
    with pytest.raises(ValueError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
        model.transform(data.X)


# ---------------------------------------------------------------- other columns


def test_letor_text_with_fewer_or_more_features_than_the_model(cli, data):
    cli("train", "train.txt", "-o", "m", "--quiet")
    dump_letor(rankrls.datasets.RankingData(data.X[:, :9], data.y, data.qid), "narrow.txt")
    message = (
        "narrow.txt has no values for features 10 to 12, but the model was trained on 12 features: they count as 0"
    )
    assert message in cli("predict", "m", "narrow.txt", "-o", "scores")
    assert message in cli("evaluate", "narrow.txt", "m")
    wide = np.hstack([data.X, data.X[:, :1]])
    dump_letor(rankrls.datasets.RankingData(wide, data.y, data.qid), "wide.txt")
    errors = cli("predict", "m", "wide.txt", "-o", "scores", code=2)
    assert "wide.txt, line 1: feature 13, but the model was trained on 12" in errors and "n_features" not in errors
    with pytest.raises(ValueError, match="features"):
        rankrls.load("m").predict(load_letor("narrow.txt").X)


def test_tables_with_other_columns_than_the_model(cli, data, frame):
    table = frame.assign(label=data.y, qid=data.qid)
    table.to_csv("t.csv", index=False)
    cli("train", "t.csv", "-o", "m", "--quiet")
    table.rename(columns={"bm25_title": "bm25_titel"}).to_csv("other.csv", index=False)
    errors = cli("predict", "m", "other.csv", code=2)
    assert "other.csv has no column 'bm25_title'; did you mean bm25_titel?" in errors
    with pytest.raises(ValueError, match="bm25_title"):
        RankRLS(1.0).fit(frame, data.y, qid=data.qid).predict(frame.drop(columns="bm25_title"))


# ---------------------------------------------------------------- long work, and files that cannot be written


def test_a_kernel_on_many_rows_proposes_a_basis(cli):
    words = ["train", "train.txt", "-o", "m", "--kernel", "rbf", "--alpha", 1]
    with limited(kernel_rows=100):
        assert "--basis 500 uses 500 points" in cli(*words)
        assert "--basis 500" not in cli(*words, "--basis", "50")
    with limited(free_memory=1e6):
        errors = cli(*words, code=2)
    assert "pass --basis 1000, or fewer rows" in errors


@pytest.mark.parametrize("words", [["train", "train.txt"], ["convert", "train.txt"], ["cv", "train.txt"]])
def test_outputs_are_checked_before_the_work(words, cli, monkeypatch):
    monkeypatch.setattr("rankrls.cli.data._read_one", lambda *_: pytest.fail("the data were read"))
    os.mkdir("folder")
    option = {"train": ["-o"], "convert": [], "cv": ["--plot"]}[words[0]]
    assert "there is no folder nowhere" in cli(*words, *option, "nowhere/x.png", code=2)
    assert "is a folder: give the name of a file in it" in cli(*words, *option, "folder", code=2)


def test_a_full_disk_names_the_file_and_what_is_kept(cli, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    cli("train", "train.txt", "-o", "m", "--quiet")
    before = Path("m").read_bytes()
    monkeypatch.setattr("os.fsync", full)
    assert "m: No space left on device; it is unchanged" in cli("train", "train.txt", "-o", "m", code=2)
    assert "new: No space left on device; it was not written" in cli("train", "train.txt", "-o", "new", code=2)
    other = cli("evaluate", "train.txt", "m", "--per-query", "queries.csv", code=2)
    assert "error: queries.csv: No space left on device" in other
    assert Path("m").read_bytes() == before and not Path("new").exists()
    assert not [name for name in os.listdir() if name.endswith(".part")]


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 64 kB that is nearly full."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no permission to mount a small disk")
    (folder / "full").write_bytes(bytes(60_000))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("words", [["train"], ["convert"], ["cv", "--json"], ["predict", "m"], ["report"]])
def test_a_disk_that_is_really_full(words, cli, small_disk):
    cli("train", "train.txt", "-o", "m", "--quiet", "--kernel", "rbf", "--basis", "100")
    path = small_disk / {"convert": "x.csv", "report": "x.html", "cv": "x.png"}.get(words[0], "x.parquet")
    given = {
        "convert": [path],
        "train": ["-o", path, "--kernel", "rbf", "--basis", "100"],
        "cv": ["--plot", path],
        "predict": ["-o", path],
        "report": ["m", "-o", path],
    }[words[0]]
    told = cli(*words, "train.txt", *given, code=2)
    assert f"error: {path}: No space left on device; it was not written" in told or words[0] == "cv"
    assert "No space left on device" in told and os.listdir(small_disk) == ["full"]


def test_files_may_stand_between_options(cli):
    cli("train", "--scoring", "ndcg@10", "train.txt", "-o", "m", "--quiet")
    assert rankrls.load("m").n_queries_ == 80
    cli("evaluate", "train.txt", "--metrics", "ndcg@10", "m")
    cli("predict", "train.txt", "m", "-o", "scores.csv")
    assert Path("scores.csv").read_text().startswith("qid,docid,score")


def test_interrupting_keeps_the_files(cli):
    cli("train", "train.txt", "-o", "m", "--quiet")
    before = Path("m").read_bytes()
    dump_letor(make_search(250, mean_documents=20, random_state=0), "many.txt")
    words = [sys.executable, "-m", "rankrls", "train", "many.txt", "-o", "m", "--kernel", "rbf"]
    for name, kept in (("m", "is unchanged"), ("new", "was not written")):
        words[words.index("-o") + 1] = name
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr:
                if "%" in line or "fitting" in line:
                    break
            process.send_signal(signal.SIGINT)
            told = process.communicate(timeout=300)[1]
        assert process.returncode == 130 and f"rankrls: interrupted; {name} {kept}" in told
    assert Path("m").read_bytes() == before and not Path("new").exists()
    assert not [name for name in os.listdir() if name.endswith(".part")]


# ---------------------------------------------------------------- what a model file remembers


def test_a_model_remembers_how_its_data_were_read(cli, data, frame):
    holes = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.02)
    ids = {"grade": data.y, "search": data.qid, "url": [f"u {i}" for i in range(len(data))], "note": "text"}
    holes.assign(**ids).to_csv("t.csv", index=False)
    reading = ["--label", "grade", "--qid", "search", "--docid", "url", "--exclude", "note", "--missing", "0"]
    cli("train", "t.csv", "-o", "m", *reading, "--quiet")
    cli("predict", "m", "t.csv", "-o", "s.csv", "--quiet")
    scores = pd.read_csv("s.csv")
    assert list(scores.columns) == ["qid", "docid", "score"] and scores["docid"][1] == "u 1"
    assert list(scores["qid"]) == list(data.qid)
    model = rankrls.load("m")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no word about names
        np.testing.assert_allclose(scores["score"], model.predict(holes.fillna(0.0)))
    assert cli("evaluate", "t.csv", "s.csv", "m", "--quiet", *reading[:6]) == ""
    assert cli("evaluate", "t.csv", "m", "--quiet") == ""
    assert cli("report", "t.csv", "m", "-o", "r.html", "--quiet") == ""
    holes.assign(url=ids["url"]).to_parquet("new.parquet")  # neither label nor queries
    cli("predict", "m", "new.parquet", "-o", "new-scores.parquet", "--quiet")
    assert list(pd.read_parquet("new-scores.parquet")["docid"]) == ids["url"]


def test_scores_of_any_number_of_files(cli, capsys, data):
    for name, noise in (("a", 0.0), ("b", 1.0), ("c", 5.0)):
        np.savetxt(name, data.y + noise * np.random.default_rng(0).normal(size=len(data)))
    assert main(["evaluate", "train.txt", "a", "b", "c", "--metrics", "ndcg@10", "--json"]) == 0
    out = capsys.readouterr().out
    assert '"against_first"' in out
    assert main(["evaluate", "train.txt", "a", "b", "c", "--metrics", "ndcg@10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["ndcg@10,", "74"] and [line.split()[0] for line in lines[1:4]] == ["a", "b", "c"]
    assert main(["evaluate", "train.txt", "a", "b", "c"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[0].split()) == "metric A B B - A p C C - A p queries" and len(lines) == 13
    assert lines[-1].startswith("A is a, B is b, C is c; p by")


def test_names_of_letor_features(cli, data):
    Path("names.txt").write_text("\n".join(data.feature_names))
    cli("train", "train.txt", "-o", "m", "--feature-names", "@names.txt", "--quiet")
    assert list(rankrls.load("m").feature_names_in_) == data.feature_names
    cli("predict", "m", "train.txt", "-o", "scores", "--quiet")
    assert "--feature-names gives 2 names, the data have 12 features" in cli(
        "train", "train.txt", "-o", "m", "--feature-names", "a,b", code=2
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_letor_features_that_are_left_out(kernel, cli, data):
    """They count as zero, by number or by name, and the model remembers."""
    words = ("--kernel", kernel, "--alpha", "1", "--quiet")
    cli("train", "train.txt", "-o", "m", "--exclude", "2,f12", *words)
    found = rankrls.load("m")
    X = data.X.copy()
    X[:, [1, 11]] = 0
    expected = RankRLS(1.0, kernel=None if kernel == "linear" else kernel).fit(X, data.y, qid=data.qid)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-9)
    assert "missing" not in cli("predict", "m", "train.txt", "-o", "scores.csv")
    scores = np.loadtxt("scores.csv", delimiter=",", skiprows=1, usecols=2)
    np.testing.assert_allclose(scores, expected.predict(X), atol=1e-9)
    cli("train", "train.txt", "-o", "n", "--columns", ",".join(map(str, [1, *range(3, 12)])), "--sparse", *words)
    np.testing.assert_allclose(rankrls.load("n").predict(X), expected.predict(X), atol=1e-6)
    assert "--exclude f13: there is no such feature; there are 12 features" in cli(
        "train", "train.txt", "-o", "m", "--exclude", "f13", code=2
    )


# ---------------------------------------------------------------- help and completion


def test_help_gives_every_default(capsys):
    from rankrls.cli.options import COMMANDS, parser

    commands = parser()._subparsers._group_actions[0].choices
    for name in COMMANDS:
        text = " ".join(commands[name].format_help().split())
        for action in commands[name]._actions:
            if action.option_strings and action.nargs != 0:
                assert action.metavar or action.choices, f"{name} {action.option_strings}: no metavar"
            if action.default not in (None, False, "==SUPPRESS==") and action.option_strings:
                assert "(default" in text


def test_defaults_in_the_help_are_those_of_the_estimators():
    import inspect

    from rankrls.cli.options import METHODS, PARAMETERS

    shown = {one.name: one.default for one in PARAMETERS}
    for method, estimator in METHODS.items():
        if method == "sparse":
            continue
        for name, parameter in inspect.signature(getattr(rankrls, estimator)).parameters.items():
            if name not in shown or parameter.default is None:
                continue
            value = parameter.default
            value = ("yes" if value else "no") if isinstance(value, bool) else value
            text = str(value).removesuffix(".0")
            known = shown[name] if f"{method}:" not in shown[name] else shown[name].split(f"{method}:")[1]
            known = "no none" if name == "positive" else known
            assert text in known or f"{method}, " in shown[name], f"--{name} of {method}: {text}, not {shown[name]}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("evaluate", "kernel", "feature-names", "query-minmax"):
        assert word in script
    assert main(["completion", "powershell"]) == 2


def test_completion_works_in_bash(tmp_path, capsys):
    import shutil
    import subprocess

    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    ask = 'source {0}/script; COMP_WORDS=({1}); COMP_CWORD={2}; _rankrls; echo "${{COMPREPLY[@]}}"'
    for words, place, wanted in (
        ('rankrls "ev"', 1, "evaluate"),
        ('rankrls train x "--ker"', 3, "--kernel"),
        ('rankrls train --scale "min"', 3, "minmax"),
    ):
        done = subprocess.run(["bash", "-c", ask.format(tmp_path, words, place)], capture_output=True, text=True)
        assert done.stdout.split() == [wanted], done.stderr


def test_a_relation_whose_best_alpha_is_at_the_end_of_the_grid():
    data = make_relation(40, random_state=0)
    with pytest.warns(UserWarning, match=r"end of the grid \(.*\), which was extended to"):
        model = ConditionalRankRLS().fit(data.X, data.Y)
    assert len(model.alphas_) > 15 and model.alphas_[0] < model.alpha_ < model.alphas_[-1]
    assert (
        np.all(np.diff(model.alphas_) > 0) and model.cv_scores_.max() == model.cv_scores_[model.alphas_ == model.alpha_]
    )
    with pytest.warns(UserWarning, match=r"end of the grid \(1e\+05 to 1e\+06\): pass a wider one as alphas="):
        assert ConditionalRankRLS(alphas=[1e6, 1e5]).fit(data.X, data.Y).alpha_ == 1e5


def test_raw_columns_for_a_method_without_a_scale(cli, data):
    units = 10.0 ** np.arange(data.X.shape[1])
    y = np.where(data.qid == data.qid[0], np.nan, data.y)
    dump_letor(rankrls.datasets.RankingData(data.X, y, data.qid), "partly.txt")
    for model in (CoRankRLS(1.0, 1.0, agree_on="all", basis=10), TransductiveRankRLS(1.0), RankingPursuit(2)):
        name = type(model).__name__
        with pytest.warns(UserWarning, match=rf"columns differ in scale .* make_pipeline\(StandardScaler\(\), {name}"):
            model.fit(data.X * units, y if name == "TransductiveRankRLS" else data.y, qid=data.qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankingPursuit(2, kernel=None).fit(data.X * units, data.y, qid=data.qid)  # selects features in any units
        RankRLS(1.0).fit(data.X * units, data.y, qid=data.qid)
        RankingPursuit(2).fit(StandardScaler().fit_transform(data.X * units), data.y, qid=data.qid)
    words = ["train", "partly.txt", "--method", "transductive", "--alpha", 1, "-o", "m"]
    assert "and TransductiveRankRLS depends on it: pass --scale standard" in cli(*words)
    assert cli(*words, "--scale", "standard") == ""


def test_alpha_at_an_end_of_the_grid_from_the_shell(cli):
    rng = np.random.default_rng(4)  # 200 poor measurements of one quantity: their mean is best, so the largest alpha
    truth, qid = rng.normal(size=400), np.repeat(np.arange(20), 20)
    X = truth[:, None] + 3 * rng.normal(size=(400, 200))
    y = np.clip(np.round(truth + 2 * rng.normal(size=400)), -2, 2) + 2
    data = rankrls.datasets.RankingData(X, y, qid)
    dump_letor(data, "noisy.txt")
    found = r"best alpha was at the end of the grid \(.*\), which was extended to"
    with pytest.warns(UserWarning, match=found):
        model = RankRLS().fit(data.X, data.y, qid=data.qid)
    assert len(model.alphas_) > 15 and model.alphas_[0] < model.alpha_
    errors = cli("train", "noisy.txt", "-o", "m")
    assert "end of the grid" in errors and "which was extended to" in errors
    assert rankrls.load("m").alpha_ == pytest.approx(model.alpha_, rel=1e-6)
    errors = cli("train", "train.txt", "-o", "m", "--alphas", "1e5,1e7")
    assert "end of the grid (1e+05 to 1e+07): pass a wider one, or leave --alphas out" in errors


def test_a_curve_flat_at_chance_level_from_the_shell(cli):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(1000, 8)), rng.integers(3, size=1000), np.repeat(np.arange(50), 20)
    dump_letor(rankrls.datasets.RankingData(X, y, qid), "noise.txt")
    for command in (["train", "noise.txt", "-o", "m"], ["cv", "noise.txt"]):
        assert "nothing was learned: on held-out queries pairwise_accuracy is" in cli(*command)
    assert "nothing was learned" not in cli("train", "train.txt", "-o", "m")


def test_a_few_teams_apart_do_not_decide_alpha():
    """Football: three islands that play each other alone, beside a league; and groups that are comparable."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(63, 6))
    strength = X @ [2.0, 1, 1, 0, 0, 0]
    league = rng.integers(60, size=(700, 2))
    games = np.vstack([league[league[:, 0] != league[:, 1]], [[60, 61], [61, 62], [62, 60]]])
    won = strength[games[:, 0]] - strength[games[:, 1]] + rng.normal(size=len(games)) > 0
    pairs = np.where(won[:, None], games, games[:, ::-1])
    model = RankRLS().fit_pairs(X, pairs)
    alone = RankRLS(alphas=model.alphas_).fit_pairs(X, pairs[:-3])
    np.testing.assert_allclose(model.cv_scores_, alone.cv_scores_, atol=0.01)
    assert model.cv_scores_.max() > 0.8
    apart = pairs[pairs[:, 0] // 12 == pairs[:, 1] // 12]  # the islands and five groups: each is held out as a whole
    whole = RankRLS(alphas=[1.0, 2.0], scale=None).fit_pairs(X, apart)
    right = []
    for group in range(6):
        out = apart[:, 0] // 12 == group
        scores = RankRLS(1.0, scale=None).fit_pairs(X, apart[~out]).predict(X)
        right.extend(scores[apart[out, 0]] > scores[apart[out, 1]])
    np.testing.assert_allclose(whole.cv_scores_[0], np.mean(right))


def test_a_relation_of_noise():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="nothing was learned: on held-out edges pairwise_accuracy is"):
        ConditionalRankRLS(alphas=[1.0, 10.0]).fit(rng.normal(size=(60, 5)), rng.normal(size=(60, 60)))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["evalute", "x"], "evaluate"),
        (["train", "x", "--colums", "a"], "--columns"),
        (["predict", "m", "x", "--colums", "a"], "--columns"),
        (["train", "x", "-o", "m", "--scale", "minmx"], "minmax"),
    ],
)
def test_likely_intentions_are_suggested(words, meant, capsys):
    assert main(words) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


# ---------------------------------------------------------------- reasons, and names


def test_reasons_carry_the_names_of_columns(frame, data):
    ranker = RankRLS(1.0).fit(frame, data.y, qid=data.qid)
    a, b = frame.iloc[3], frame.iloc[5]
    why = ranker.explain(a, b)
    assert list(why.index) == list(frame.columns)
    scores = ranker.predict(frame)
    np.testing.assert_allclose(why.sum(), scores[3] - scores[5])
    assert isinstance(ranker.explain(a.to_numpy(), b.to_numpy()), np.ndarray)
    model = make_pipeline(StandardScaler(), RankRLS(1.0, kernel="rbf")).fit(frame[:200], data.y[:200])
    why = rankrls.explain(model, a, b)
    scores = model.predict(frame)
    assert list(why.index) == list(frame.columns)
    np.testing.assert_allclose(why.sum(), scores[3] - scores[5], rtol=1e-6)
    several = rankrls.explain(model, frame.iloc[3:5], frame.iloc[5:7])
    assert several.shape == (2, 12) and list(several.index) == [3, 4]
    np.testing.assert_allclose(several.loc[3], why)
    assert rankrls.explain(ranker, data.X[3], data.X[5]).shape == (12,)
    with pytest.raises(ValueError, match="pass as many of each"):
        rankrls.explain(model, frame.iloc[3:5], frame.iloc[5:6])


def test_models_of_the_command_line_do_not_warn_about_names(cli, data, frame):
    frame.assign(label=data.y, qid=data.qid).to_csv("t.csv", index=False)
    for extra in ([], ["--kernel", "rbf", "--basis", 20]):
        cli("train", "t.csv", "-o", "m", "--alpha", 1, "--quiet", *extra)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = rankrls.load("m")
            np.testing.assert_allclose(model.predict(data.X), model.predict(frame))


def test_a_relation_is_drawn_with_names_and_one_scale():
    pytest.importorskip("matplotlib").use("agg")
    from rankrls import ConditionalRankRLS
    from rankrls.plotting import RelationDisplay

    rng = np.random.default_rng(0)
    players = pd.DataFrame(rng.normal(size=(12, 3)), index=[f"player {i}" for i in range(12)])
    games = players.to_numpy() @ players.to_numpy().T
    model = ConditionalRankRLS(1.0).fit(players, pd.DataFrame(games, index=players.index, columns=players.index))
    display = RelationDisplay.from_estimator(model, players, games)
    assert {image.get_clim() for image in display.images_.values()}.__len__() == 1
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(players.index)
    with pytest.raises(ValueError, match="ids has 2 entries for 12 objects"):
        RelationDisplay.from_predictions(games, ids=["a", "b"])


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--label", "grad"], "no column 'grad'; did you mean grade?"),
        (["--label", "grade", "--qid", "query_di"], "no column 'query_di'; did you mean query_id?"),
        (["--label", "grade", "--qid", "query_id", "--columns", "bm25_titel"], "did you mean bm25_title?"),
        (["--label", "grade", "--qid", "query_id", "--exclude", "bm25_titel"], "did you mean bm25_title?"),
        (["--label", "grade", "--qid", "query_id", "--docid", "ulr"], "did you mean url?"),
    ],
)
def test_misspelt_columns_are_corrected(words, meant, cli, data, frame):
    few = frame.assign(grade=data.y, query_id=data.qid, url=[f"u {i}" for i in range(len(data))])[:100]
    few.to_csv("t.csv", index=False)
    assert meant in cli("train", "t.csv", "-o", "m", *words, code=2)


def test_a_misspelt_file_name_is_corrected(cli):
    assert "trian.txt: No such file or directory; did you mean train.txt?" in cli("inspect", "trian.txt", code=2)


def test_isolated_objects_are_named(cli):
    Path("games.csv").write_text("winner,loser\n" + "a,b\nb,c\nc,a\na,c\n" * 5 + "island 1,island 2\n" * 3)
    errors = cli("train", "--edges", "games.csv", "-o", "m", "--alpha", 1)
    assert "2 objects of 5 (island 1, island 2) never met the others" in errors


def test_a_flat_curve_is_not_followed():
    from rankrls.problems.choice import beyond

    alphas = np.logspace(-3, 3, 7)
    assert beyond(np.array([0.70001, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5]), alphas) is None
    assert beyond(np.array([0.71, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5]), alphas).max() < alphas[0]
