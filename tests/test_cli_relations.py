"""Relations on the command line: raw tables with names in, names out, and the numbers are those of the library."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rankrls import ConditionalRankRLS, load
from rankrls.cli import main
from shared import folder

pd = pytest.importorskip("pandas")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command that ends with a code; what it printed, as a dict if it is JSON."""
    monkeypatch.chdir(tmp_path)

    def call(*words, code=0):
        assert main([str(word) for word in words]) == code, capsys.readouterr().err
        printed = capsys.readouterr()
        text = printed.err if code else printed.out
        return json.loads(text) if "--json" in words and not code else text

    return call


@pytest.fixture
def games(run):
    rng = np.random.default_rng(0)
    names = [f"player {i}" for i in range(20)]
    players = pd.DataFrame({"name": names, "hand": rng.choice(["left", "right"], 20), "height": rng.normal(185, 7, 20)})
    players.loc[3, "height"] = np.nan
    strength = players["height"].fillna(185).to_numpy() / 7 + 2.0 * (players["hand"] == "left")
    a = rng.integers(20, size=300)
    b = (a + rng.integers(1, 20, size=300)) % 20
    margin = (strength[a].to_numpy() - strength[b].to_numpy() + rng.normal(size=300)).round(2)
    table = pd.DataFrame(
        {
            "date": (pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(300), unit="D")).strftime("%Y-%m-%d"),
            "winner": np.where(margin > 0, np.take(names, a), np.take(names, b)),
            "loser": np.where(margin > 0, np.take(names, b), np.take(names, a)),
            "first": np.abs(margin) + 1,
            "second": 1.0,
        }
    )
    players.to_csv("players.csv", index=False)
    table.to_csv("games.csv", index=False)
    return players.set_index("name"), table


@pytest.fixture
def drugs(run):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(9, 3)), rng.normal(size=(12, 3))
    index, columns = [f"D{i}" for i in range(9)], [f"T{i}" for i in range(12)]
    Y = pd.DataFrame(X @ Z.T + 0.1 * rng.normal(size=(9, 12)), index=index, columns=columns)
    G = pd.DataFrame(X @ X.T, index=index, columns=index)
    K = pd.DataFrame(Z @ Z.T, index=columns, columns=columns)
    shuffled = lambda frame: frame.iloc[rng.permutation(len(frame)), rng.permutation(frame.shape[1])]
    for name, frame in (("Y", Y), ("G", shuffled(G)), ("K", shuffled(K))):
        frame.to_csv(f"{name}.tsv", sep="\t")
    return Y, G, K


def test_games_are_learned_from_a_table_of_names(run, games, capsys):
    players, table = games
    record = run(
        "train", "--method", "conditional", "--edges", "games.csv", "--features", "players.csv", "-o", "m",
        "--alpha", "1", "--pairwise", "sum", "--half-life", "200d", "--json", "--quiet",
    )  # fmt: skip
    assert record["edges"] == 300 and record["objects"] == 20 and record["relation"] == "reciprocal"
    expected = ConditionalRankRLS(1.0, pairwise="sum", encoder="auto").fit_edges(
        players, table, source="winner", target="loser", date="date", half_life="200d"
    )
    assert_allclose(load("m").predict(), expected.predict(), atol=1e-12)
    found = run("rank", "m", "--json")["rating"]
    assert list(found) == expected.rating().index.tolist()
    shown = run("rank", "m", "player 4", "--top", 3)
    assert shown.split()[:3] == ["id", "score", "rank"] and len(shown.splitlines()) == 4
    main(["rank", "m", "player 4"])
    assert "the score is what player 4 leads by, so whom it beats most easily comes first" in capsys.readouterr().err
    assert "did you mean 'player 1'" in run("rank", "m", "playr 1", code=2)
    table.head(4)[["winner", "loser"]].to_csv("next.csv", index=False)
    run("predict", "m", "next.csv", "-o", "scores.csv")
    scores = pd.read_csv("scores.csv")
    assert list(scores) == ["condition", "id", "score", "rank", "truth", "probability"]
    assert_allclose(
        scores["score"], expected.predict_edges(None, table.head(4), source="winner", target="loser")["score"]
    )
    assert_allclose(scores["probability"][0], expected.probability(table["winner"][0], table["loser"][0]))
    new = players.head(2).rename({"player 0": "new one", "player 1": "another"})
    new.to_csv("new.csv")
    ranked = run("rank", "m", "--features", "new.csv", "--target-features", "players.csv", "--top", "2", "--json")
    assert [row["condition"] for row in ranked["ranking"]] == ["new one"] * 2 + ["another"] * 2
    text = run("inspect", "m")
    assert "columns of edges: source = winner, target = loser" in text and "player" in text


def test_results_say_who_won(run):
    """Raw football results: an error, rather than a model in which the home team won every game."""
    rng = np.random.default_rng(3)
    strength = np.linspace(-1, 1, 8)
    a, b = np.array([rng.choice(8, size=2, replace=False) for _ in range(400)]).T
    lead = strength[a] - strength[b] + 0.2
    goals = rng.poisson(np.exp(0.3 + lead / 2)), rng.poisson(np.exp(0.3 - lead / 2))
    table = pd.DataFrame({"match_date": np.arange(20200101, 20200101 + 31).repeat(13)[:400]})
    table = table.assign(home_team=[f"T{i}" for i in a], away_team=[f"T{i}" for i in b], home_score=goals[0])
    table = table.assign(away_score=goals[1], neutral=False)
    table.to_csv("results.csv", index=False)
    table.rename(columns={"match_date": "day"}).to_csv("renamed.csv", index=False)
    told = run("train", "--edges", "results.csv", "-o", "m", code=2)
    assert "pass --y 'home_score - away_score' --home 'not neutral'" in told
    assert "did you mean home_score?" in run("train", "--edges", "results.csv", "--y", "home_scor", "-o", "m", code=2)
    words = ["--y", "home_score - away_score", "--home", "not neutral", "--half-life", "1y"]
    record = run("train", "--edges", "results.csv", *words, "--alpha", 1, "-o", "m", "--json", "--quiet")
    assert record["relation"] == "reciprocal"  # what one end wins by, the other loses by
    assert next(iter(run("rank", "m", "--json")["rating"])) in ("T7", "T6")

    # the model remembers all of it
    again = run("evaluate", "--edges", "results.csv", *words, "--alpha", 1, "--settings", "1,time", "--json")
    assert run("evaluate", "m", "--edges", "results.csv", "--settings", "1,time", "--json") == again
    assert "--home not neutral" in run("inspect", "m")
    given = run("evaluate", "m", "--edges", "results.csv", "--settings", "1", "--home", "neutral", "--json")
    assert given["settings"]["1"] != again["settings"]["1"]  # what is given counts
    assert "which column holds the dates?" in run(
        "evaluate", "m", "--edges", "renamed.csv", "--settings", "time", code=2
    )


def test_a_relation_remembers_its_tables(run, drugs):
    """Similarities, names of bare matrices, transformations and directions are remembered from training."""
    Y, _, _ = drugs
    np.savetxt("bare.txt", np.exp(-Y.to_numpy()).T)
    np.savetxt("small.txt", np.ones((11, 9)))
    Path("rows.txt").write_text("\n".join(Y.index))
    Path("columns.txt").write_text("\n".join(Y.columns))
    features = ["--features", "G.tsv", "--target-features", "K.tsv"]
    told = run("train", "--matrix", "Y.tsv", "--features", "K.tsv", "--target-features", "G.tsv", "-o", "m", code=2)
    assert "--features describes the columns of Y.tsv, not its rows: pass --transpose" in told
    words = ["--matrix", "bare.txt", "--transpose", "--values", "minus-log"]
    named = ["--row-names", "columns.txt", "--column-names", "rows.txt"]
    run("train", *words, *named, *features, "-o", "m", "--alpha", 1, "--quiet")
    expected = run("evaluate", *words, *named, *features, "--alpha", 1, "--folds", 3, "--json")
    assert run("evaluate", "m", "--matrix", "bare.txt", "--folds", 3, "--json") == expected
    assert "9 x 11 values, but the model relates 9 to 12" in run("evaluate", "m", "--matrix", "small.txt", code=2)


def test_differences_of_columns_and_home_advantage(run, games):
    _, table = games
    words = ["--edges", "games.csv", "--y", "first - second", "--relation", "reciprocal", "--loss", "regression"]
    run("train", *words, "-o", "m", "--alpha", "2", "--home", "yes", "--quiet")
    expected = ConditionalRankRLS(2.0, pairwise="sum", relation="reciprocal", loss="regression").fit_edges(
        None, table, table["first"] - table["second"], source="winner", target="loser", home=np.ones(300)
    )
    assert_allclose(load("m").rating(), expected.rating())
    assert_allclose(load("m").home_advantage_, expected.home_advantage_)
    record = run("evaluate", *words, "--alpha", "2", "--settings", "1,time", "--date", "date", "--folds", "3", "--json")
    assert set(record["settings"]) == {"1", "time"} and record["settings"]["time"]["mean"]["winner"] > 0.7


def test_a_table_of_relations_with_similarities(run, drugs):
    Y, G, K = drugs
    words = ["--matrix", "Y.tsv", "--features", "G.tsv", "--target-features", "K.tsv", "--alpha", "0.5", "--quiet"]
    run("train", "--method", "conditional", *words, "-o", "m")
    expected = ConditionalRankRLS(0.5, kernel="precomputed").fit(G, Y, K)
    by_name = pd.DataFrame(expected.predict(), Y.index, Y.columns)
    assert_allclose(load("m").predict(list(Y.index), list(Y.columns)), by_name, atol=1e-10)
    run("predict", "m", "-o", "all.csv")
    assert_allclose(pd.read_csv("all.csv", index_col="id").loc[Y.index, Y.columns], by_name, atol=1e-10)
    best = run("rank", "m", "D3", "--top", "1", "--json")["ranking"][0]
    assert best["id"] == expected.rank("D3", top=1)["id"][0]
    found = run("evaluate", *words, "--settings", "1,2,3,4", "--folds", "3", "--json")["settings"]
    again = ConditionalRankRLS(0.5, kernel="precomputed").evaluate(G, Y, K, n_splits=3)
    for setting in (1, 2, 3, 4):
        assert_allclose(found[str(setting)]["mean"]["pairwise_accuracy"], np.nanmean(again[setting]))
    turned = run("train", *words[:2], "--features", "K.tsv", "--target-features", "G.tsv", *words[6:], "-o", "t",
                 "--transpose", "--json")  # fmt: skip
    assert turned["objects"] == 12 and turned["targets"] == 9


def test_reports_of_relations_show_settings_and_names(run, games, drugs):
    pytest.importorskip("matplotlib")
    run("train", "--edges", "games.csv", "--features", "players.csv", "-o", "m", "--alpha", "1", "--quiet")
    run(
        "report",
        "games.csv",
        "m",
        "-o",
        "m.html",
        "--features",
        "players.csv",
        "--settings",
        "1",
        "--folds",
        "3",
        "--quiet",
    )
    page = Path("m.html").read_text()
    assert (
        "Best of all" in page and "player" in page and "new pairs of known objects" in page and "data:image/svg" in page
    )
    words = ["--matrix", "Y.tsv", "--features", "G.tsv", "--target-features", "K.tsv", "--quiet"]
    run("train", *words, "-o", "d")
    run("report", "d", *words, "-o", "d.html", "--folds", "3")
    page = Path("d.html").read_text()
    for text in ("D0", "T1", "both ends new", "Best for each"):
        assert text in page
    assert "wrote" in run("report", "d", "-o", "plain.html") and "Pass the data" in Path("plain.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--method", "conditional", "-o", "m"], "from --edges FILE or from --matrix FILE"),
        (["train", "--edges", "nowhere.csv", "-o", "m"], "nowhere.csv: No such file"),
        (
            ["train", "--edges", "games.csv", "--source", "white", "--target", "loser", "-o", "m"],
            "--source white: there",
        ),
        (["train", "--edges", "games.csv", "--source", "winner", "-o", "m"], "name both ends"),
        (["train", "--edges", "players.csv", "-o", "m"], "name the columns of both ends"),
        (["train", "--edges", "games.csv", "--y", "date", "-o", "m"], "column 'date' does not hold numbers"),
        (["train", "--edges", "games.csv", "--features", "games.csv", "--id", "winner", "-o", "m"], "several rows for"),
        (["train", "--matrix", "players.csv", "-o", "m"], "--matrix needs --features"),
        (["train", "games.csv", "--method", "conditional", "-o", "m"], "reads --edges or --matrix, not"),
        (["evaluate", "games.csv"], "rankrls evaluate DATA SCORES"),
    ],
)
def test_errors_name_what_is_wrong(words, message, run, games):
    assert message in run(*words, code=2)


def test_a_model_is_judged_with_the_objects_it_was_trained_with(run, games, drugs):
    pytest.importorskip("matplotlib")
    how = ["--alpha", "10", "--pairwise", "sum", "--quiet"]
    run("train", "--edges", "games.csv", "--features", "players.csv", "-o", "m", *how)
    options = ["--edges", "games.csv", "--settings", "1,2,3,4,time", "--folds", "3", "--json", "--quiet"]
    found = run("evaluate", "m", *options)["settings"]
    again = run("evaluate", *options, "--features", "players.csv", *how)["settings"]
    assert list(found) == ["1", "2", "3", "4", "time"]
    for setting, values in found.items():  # features were encoded once, or are again in each fold
        assert_allclose(values["mean"]["winner"], again[setting]["mean"]["winner"], atol=0.02)
    run("report", "games.csv", "m", "--settings", "1,2", "--folds", "3", "-o", "m.html", "--quiet")
    assert f"{found['2']['mean']['winner']:.3f} ±" in Path("m.html").read_text()
    long = drugs[0].stack().rename_axis(["drug", "target"]).rename("pKd").reset_index()
    long.sample(60, random_state=0).to_csv("aff.csv", index=False)
    sides = ["--features", "G.tsv", "--target-features", "K.tsv"]
    run("train", "--edges", "aff.csv", *sides, "-o", "d", "--alpha", "1", "--quiet")  # the only column of numbers is y
    options = ["--edges", "aff.csv", "--settings", "1,2", "--folds", "3", "--json", "--quiet"]
    assert run("evaluate", "d", *options) == run("evaluate", *sides, *options, "--alpha", "1")
    long.assign(other=1.0).to_csv("aff.csv", index=False)
    assert "--y; there are pKd, other" in run("train", "--edges", "aff.csv", *sides, "-o", "d", code=2)


def test_raw_drug_target_tables(run):
    path = folder("yamanishi-drug-target")
    words = ["--matrix", path / "nr_admat_dgc.txt.xz", "--features", path / "nr_simmat_dg.txt.xz",
             "--target-features", path / "nr_simmat_dc.txt.xz", "--indefinite", "clip", "--quiet"]  # fmt: skip
    run("train", *words, "-o", "m")
    assert "D0" in run("rank", "m", "hsa190", "--top", "2")
    path = folder("davis-drug-target")
    affinities = path / "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt.xz"
    run("train", "--matrix", affinities, "--alpha", "1", "--quiet", "-o", "d",
        "--row-names", path / "ligands_iso.txt.xz", "--column-names", path / "proteins.txt.xz", "--values", "minus-log",
        "--features", path / "drug-drug_similarities_2D.txt.xz", "--normalise",
        "--target-features", path / "target-target_similarities_WS.txt.xz")  # fmt: skip
    assert "CLK1" in run("rank", "d", "11314340", "--top", "5")


def test_ends_are_found_whatever_separates_their_words(run, games):
    table = pd.read_csv("games.csv")
    ends = {"winner": "winner.ID", "loser": "loser.ID"}
    pd.DataFrame({new: table[old] for old, new in ends.items()} | {"day": range(len(table))}).to_csv("dotted.csv")
    run("train", "--method", "conditional", "--edges", "dotted.csv", "-o", "dotted.rankrls", "--quiet")
    assert load("dotted.rankrls").edge_columns_ == {"source": "winner.ID", "target": "loser.ID"}
