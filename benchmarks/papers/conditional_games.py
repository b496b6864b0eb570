"""Who beats whom: rock-paper-scissors after [Pahikkala13, Table 1, figure 2], tennis and football, as Markdown.

DIR of --data DIR holds the folders tennis-atp and football-international; rock-paper-scissors needs no data.
docs/reproductions/conditional.md has what followed.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.measure import machine
from rankrls import ConditionalRankRLS
from rankrls.metrics import disagreement_error, pairwise_accuracy

BEATS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])  # paper beats rock, scissors beat paper, rock beats scissors
N_PLAYERS, N_GAMES = 100, 1000
PAPER = {
    1: ("0.4875", "0.4868", "0.4876", "0.4880", "0.4987", "0.4891"),
    10: ("0.04172", "0.04145", "0.04519", "0.04291", "0.04535", "0.04116"),
    100: ("0.001380", "0.001366", "0.001424", "0.001354", "0.006997", "0.005824"),
}
LOSSES, RELATIONS = ("regression", "ranking"), (None, "reciprocal")
SVM_RUNS, SVM_C = 20, 2.0**10
POWERS = (-30, -20, -10, -5, 0, 2, 4, 6, 8, 10)
SVM_POWERS = (-20, -15, -10, -5, 0, 5, 10)

# ---------------------------------------------------------------- rock, paper, scissors


@dataclass(frozen=True)
class Games:
    """Training players and their games, each as two edges; test players with the true chances."""

    players: np.ndarray  # (players, 3) how often each plays each move
    edges: np.ndarray
    y: np.ndarray
    new: np.ndarray
    truth: np.ndarray  # of winning, less those of losing

    def error(self, W: np.ndarray) -> float:
        scores = self.new @ W @ self.new.T
        return float(disagreement_error(self.truth.ravel(), scores.ravel(), np.repeat(np.arange(N_PLAYERS), N_PLAYERS)))


def play(w: float, seed: int) -> Games:
    """Moves with probability exp(w u) / sum, u uniform; a coin decides a draw, so that chances add up to one."""
    rng = np.random.default_rng(seed)
    u = np.exp(w * rng.uniform(size=(2, N_PLAYERS, 3)))
    players, new = u / u.sum(axis=2, keepdims=True)
    first = rng.integers(N_PLAYERS, size=N_GAMES)
    second = (first + rng.integers(1, N_PLAYERS, size=N_GAMES)) % N_PLAYERS
    chance = (1 + ((players[first] @ BEATS) * players[second]).sum(axis=1)) / 2
    y = np.where(rng.uniform(size=N_GAMES) < chance, 1.0, -1.0)
    edges = np.column_stack([np.append(first, second), np.append(second, first)])
    return Games(players, edges, np.append(y, -y), new, new @ BEATS @ new.T)


def rls(games: Games, alpha: float, loss: str, relation: str | None) -> np.ndarray:
    return ConditionalRankRLS(alpha, loss=loss, relation=relation).fit_edges(games.players, games.edges, games.y).coef_


def rank_svm(games: Games, C: float, relation: str | None) -> np.ndarray:
    """Hinge loss over pairs of edges from one player, product features, no intercept."""
    X = np.einsum("ei,ej->eij", games.players[games.edges[:, 0]], games.players[games.edges[:, 1]])
    X = ((X - X.transpose(0, 2, 1)) / 2 if relation else X).reshape(-1, 9)
    better, worse = [], []
    for player in range(N_PLAYERS):
        own = games.edges[:, 0] == player
        pairs = np.array(
            list(itertools.product(np.flatnonzero(own & (games.y > 0)), np.flatnonzero(own & (games.y < 0))))
        )
        if len(pairs):
            better.append(pairs[:, 0])
            worse.append(pairs[:, 1])
    D = X[np.concatenate(better)] - X[np.concatenate(worse)]
    sign = np.where(np.arange(len(D)) % 2, 1, -1)  # a classifier wants both classes
    model = LinearSVC(loss="hinge", C=C, fit_intercept=False, max_iter=2000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(D * sign[:, None], sign).coef_.reshape(3, 3)


def table(repetitions: int) -> None:
    """Table 1: alpha 2^-30."""
    print(f"\n### Rank loss, {repetitions} repetitions, RankSVM {SVM_RUNS}\n")
    print("| data | c.reg | c.reg (r) | c.rank | c.rank (r) | RankSVM | RankSVM (r) |\n" + "|---" * 7 + "|")
    for w in (1, 10, 100):
        print(f"| w{w}, paper | " + " | ".join(PAPER[w]) + " |")
        draws = [play(w, seed) for seed in range(repetitions)]
        cells = [
            [games.error(rls(games, 2.0**-30, loss, relation)) for games in draws]
            for loss, relation in itertools.product(LOSSES, RELATIONS)
        ]
        cells += [[g.error(rank_svm(g, SVM_C, relation)) for g in draws[:SVM_RUNS]] for relation in RELATIONS]
        shown = [f"{np.mean(c):.4g} ± {np.std(c, ddof=1) / np.sqrt(len(c)):.1g}" for c in cells]
        print(f"| w{w}, here | " + " | ".join(shown) + " |", flush=True)


def by_alpha(repetitions: int) -> None:
    """Figure 2: error against regularisation."""
    print(f"\n### Rank loss by alpha, {repetitions} repetitions\n")
    runs = [(w, play(w, seed)) for w in (1, 10, 100) for seed in range(repetitions)]
    losses = [("c.reg", "regression"), ("c.rank", "ranking")]
    models = {
        f"{name}{' (r)' if relation else ''}": lambda g, p, loss=loss, relation=relation: rls(g, 2.0**p, loss, relation)
        for (name, loss), relation in itertools.product(losses, RELATIONS)
    }
    curves("alpha", POWERS, models, runs)
    machines = {
        f"RankSVM{' (r)' if relation else ''}": lambda g, p, relation=relation: rank_svm(g, 2.0**p, relation)
        for relation in RELATIONS
    }
    curves("C", SVM_POWERS, machines, runs)


def curves(what: str, powers: tuple[int, ...], models: dict[str, Callable], runs: list[tuple[int, Games]]) -> None:
    """Mean error for each power of two."""
    print(
        f"| data | model | {what} = " + " | ".join(f"2^{p}" for p in powers) + " |\n" + "|---" * (len(powers) + 2) + "|"
    )
    for w, (name, model) in itertools.product((1, 10, 100), models.items()):
        cells = [np.mean([games.error(model(games, p)) for own, games in runs if own == w]) for p in powers]
        print(f"| w{w} | {name} | " + " | ".join(f"{cell:.4g}" for cell in cells) + " |", flush=True)
    print()


# ---------------------------------------------------------------- matches

Features = Callable[[pd.DataFrame, pd.Index], pd.DataFrame]


@dataclass(frozen=True)
class Season:
    """Matches of some years between those who are known by the years before, and what these years tell of them."""

    X: pd.DataFrame
    edges: np.ndarray  # (m, 2) row numbers
    y: np.ndarray  # 1 if the first won, -1 if the second, 0 for a draw
    favourite: np.ndarray  # what those who set the odds on the day knew: > 0 if the first was ahead


def season(matches: pd.DataFrame, features: Features, start: int, history: int, years: int, least: int) -> Season:
    """`features` see matches of `history` years before `start` alone; edges are those of the `years` after."""
    before = matches[(matches.year >= start - history) & (matches.year < start)]
    after = matches[(matches.year >= start) & (matches.year < start + years)]
    played = pd.concat([before.first, before.second]).value_counts()
    names = played.index[played >= least].sort_values()
    after = after[after["first"].isin(names) & after["second"].isin(names)]
    edges = np.column_stack([names.get_indexer(after["first"]), names.get_indexer(after["second"])])
    return Season(features(before, names), edges, after.y.to_numpy(float), after.favourite.to_numpy(float))


def elo(matches: pd.DataFrame, names: pd.Index, step: float) -> np.ndarray:
    """Ratings after all matches, in units of 400 points."""
    rating = dict.fromkeys(names, 0.0)
    for first, second, y in zip(matches["first"], matches["second"], matches.y, strict=True):
        a, b = rating.get(first, 0.0), rating.get(second, 0.0)
        change = step * ((1 + y) / 2 - 1 / (1 + 10 ** (b - a)))
        rating[first], rating[second] = a + change, b - change
    return np.array([rating[name] for name in names])


def both_sides(matches: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """A row for each of the two, in order of time."""
    sides = []
    for side, sign in (("first", 1), ("second", -1)):
        told = {column: matches[f"{side}_{column}"] for column in columns}
        sides.append(pd.DataFrame({"name": matches[side], "won": (1 + sign * matches.y) / 2} | told))
    return pd.concat(sides).sort_index(kind="stable")


def share(rows: pd.DataFrame, names: pd.Index, prior: float = 5.0) -> np.ndarray:
    """Of matches won, as if there had been a few more, half of them won."""
    grouped = rows.groupby("name").won.agg(["sum", "count"]).reindex(names).fillna(0)
    return ((grouped["sum"] + prior / 2) / (grouped["count"] + prior)).to_numpy()


# ---------------------------------------------------------------- tennis


def read_tennis(folder: Path) -> pd.DataFrame:
    raw = pd.read_csv(folder / "atp-matches-2010-2019.csv.xz").sort_values(["tourney_date", "match_num"])
    raw = raw[~raw.score.fillna("").str.contains("W/O|RET|DEF", regex=True)].reset_index(drop=True)
    turned = np.random.default_rng(0).uniform(size=len(raw)) < 0.5  # so that order tells nothing
    found = pd.DataFrame({"year": raw.tourney_date // 10000, "surface": raw.surface, "y": np.where(turned, -1.0, 1.0)})
    for name in ("id", "hand", "ht", "age", "rank_points"):
        winner, loser = raw[f"winner_{name}"], raw[f"loser_{name}"]
        key = "" if name == "id" else f"_{name}"
        found[f"first{key}"], found[f"second{key}"] = loser.where(turned, winner), winner.where(turned, loser)
    found["favourite"] = found.first_rank_points.fillna(0) - found.second_rank_points.fillna(0)
    return found


def tennis_features(before: pd.DataFrame, names: pd.Index) -> pd.DataFrame:
    rows = both_sides(before.assign(first_surface=before.surface, second_surface=before.surface),
                      ("hand", "ht", "age", "rank_points", "surface"))  # fmt: skip
    last = rows.groupby("name").last().reindex(names)
    X = pd.DataFrame(index=names)
    X["elo"] = elo(before, names, step=0.08)
    X["points"] = np.log1p(last.rank_points.fillna(0))
    X["height"] = last.ht.fillna(last.ht.mean())
    X["age"] = last.age.fillna(last.age.mean())
    X["left"] = (last.hand == "L").astype(float)
    X["matches"] = np.log(rows.name.value_counts().reindex(names))
    X["won"] = share(rows, names)
    for surface in ("Hard", "Clay", "Grass"):
        X[surface] = share(rows[rows.surface == surface], names)
    return X


# ---------------------------------------------------------------- football


def read_football(folder: Path) -> pd.DataFrame:
    raw = pd.read_csv(folder / "results.csv.xz")
    raw = raw[raw.date <= "2024-12-31"].dropna(subset=["home_score", "away_score"]).reset_index(drop=True)
    turned = np.random.default_rng(0).uniform(size=len(raw)) < 0.5
    found = pd.DataFrame({"year": raw.date.str[:4].astype(int)})
    goals = raw.home_score - raw.away_score
    found["y"] = np.sign(goals.where(~turned, -goals))
    for side, home in (("first", turned), ("second", ~turned)):
        found[side] = raw.away_team.where(home, raw.home_team)
        found[f"{side}_goals"] = raw.away_score.where(home, raw.home_score)
        found[f"{side}_against"] = raw.home_score.where(home, raw.away_score)
    found["favourite"] = np.where(raw.neutral.astype(bool), 0, np.where(turned, -1, 1))  # who is at home
    return found


def football_features(before: pd.DataFrame, names: pd.Index) -> pd.DataFrame:
    rows = both_sides(before, ("goals", "against"))
    mean = rows.groupby("name")[["goals", "against"]].mean().reindex(names)
    X = pd.DataFrame(index=names)
    X["elo"] = elo(before, names, step=0.1)
    X["scored"], X["let in"] = np.sqrt(mean.goals), np.sqrt(mean.against)
    X["matches"] = np.log(rows.name.value_counts().reindex(names))
    X["won"] = share(rows, names)
    return X


# ---------------------------------------------------------------- tables of matches


def winners(test: Season, ahead: np.ndarray) -> float:
    """Share of decided matches won by the one who was ahead; ties count half."""
    decided = test.y != 0
    return float(np.mean((1 + np.sign(ahead[decided]) * test.y[decided]) / 2))


def within(test: Season, there: np.ndarray, back: np.ndarray) -> float:
    """Pairwise accuracy of the opponents of each player, beaten before not beaten, averaged over players."""
    codes = np.append(test.edges[:, 0], test.edges[:, 1])
    return float(pairwise_accuracy(np.append(test.y, -test.y), np.append(there, back), codes))


def report(name: str, train: Season, test: Season) -> None:
    """Models learned from one season, with features of the years before it, in the next, likewise."""
    mean, deviation = train.X.mean(), train.X.std()
    X, Z = ((s.X - mean) / deviation for s in (train, test))
    X, Z = (np.column_stack([A, np.ones(len(A))]) for A in (X, Z))  # the ones let each end have effects of its own
    used, edges = np.unique(train.edges, return_inverse=True)  # those who did not play teach nothing
    edges, y = edges.reshape(-1, 2), np.append(train.y, -train.y)
    edges = np.vstack([edges, edges[:, ::-1]])
    sizes = f"{len(used)} and {len(np.unique(test.edges))} objects, {len(train.y):,} and {len(test.y):,} matches"
    print(f"\n### {name}: {sizes}\n")
    print("| model | winner | within | alpha |\n|---|---|---|---|")
    for column in ("elo", "won", *(["points"] if "points" in test.X else [])):
        value = test.X[column].to_numpy()
        gap = value[test.edges[:, 0]] - value[test.edges[:, 1]]
        print(f"| baseline: {column} before | {winners(test, gap):.4f} | {within(test, gap, -gap):.4f} | |")
    print(
        f"| on the day | {winners(test, test.favourite):.4f} | {within(test, test.favourite, -test.favourite):.4f} | |"
    )
    for kernel, relation, loss in itertools.product((None, "rbf"), ("reciprocal", None), ("ranking", "regression")):
        model = ConditionalRankRLS(kernel=kernel, relation=relation, loss=loss).fit_edges(X[used], edges, y)
        there, back = model.predict_edges(Z, test.edges), model.predict_edges(Z, test.edges[:, ::-1])
        figures = f"{winners(test, there - back):.4f} | {within(test, there, back):.4f} | {model.alpha_:.2g}"
        print(f"| {kernel or 'linear'}, {relation or 'ordinary'}, {loss} | {figures} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder that holds tennis-atp and football-international")
    parser.add_argument("--parts", nargs="*", default=["table", "alpha", "tennis", "football"])
    parser.add_argument("--repetitions", type=int, default=100)
    arguments = parser.parse_args()
    print(machine())
    if "table" in arguments.parts:
        table(arguments.repetitions)
    if "alpha" in arguments.parts:
        by_alpha(max(2, arguments.repetitions // 5))
    if arguments.data is not None and "tennis" in arguments.parts:
        matches = read_tennis(arguments.data / "tennis-atp")
        report("Tennis", *(season(matches, tennis_features, start, 4, 3, 10) for start in (2014, 2017)))
    if arguments.data is not None and "football" in arguments.parts:
        matches = read_football(arguments.data / "football-international")
        report("Football", *(season(matches, football_features, start, 4, 4, 10) for start in (2017, 2021)))


if __name__ == "__main__":
    main()
