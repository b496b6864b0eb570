"""Who beats whom in tennis and football, by features of the years before; printed as Markdown.

DIR of --data DIR holds the folders tennis-atp and football-international; see docs/reproductions/conditional.md for
results.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.measure import machine
from benchmarks.papers.figures import table
from rankrls import ConditionalRankRLS
from rankrls.metrics import per_query

Features = Callable[[pd.DataFrame, pd.Index], pd.DataFrame]


@dataclass(frozen=True)
class Season:
    """Matches of some years between those known from the years before, and features from those years."""

    X: pd.DataFrame
    edges: np.ndarray  # (m, 2) row numbers
    y: np.ndarray  # 1 if the first won, -1 if the second, 0 for a draw
    favourite: np.ndarray  # what those who set the odds on the day knew: > 0 if the first was ahead


def season(matches: pd.DataFrame, features: Features, start: int, history: int, years: int, least: int) -> Season:
    """A season: `features` get only matches of the `history` years before `start`; edges are of the `years` after."""
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
    """A row for each side of a match, in order of time."""
    sides = []
    for side, sign in (("first", 1), ("second", -1)):
        told = {column: matches[f"{side}_{column}"] for column in columns}
        sides.append(pd.DataFrame({"name": matches[side], "won": (1 + sign * matches.y) / 2} | told))
    return pd.concat(sides).sort_index(kind="stable")


def share(rows: pd.DataFrame, names: pd.Index, prior: float = 5.0) -> np.ndarray:
    """The share of matches won, smoothed by a few additional matches of which half were won."""
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


# ---------------------------------------------------------------- tables


def winners(test: Season, ahead: np.ndarray) -> str:
    """The share of decided matches won by the one who was ahead, ties counting half, with its 95 % interval."""
    decided = test.y != 0
    right = (1 + np.sign(ahead[decided]) * test.y[decided]) / 2
    return f"{right.mean():.4f} ± {1.96 * stats.sem(right):.4f}"


def within(test: Season, there: np.ndarray, back: np.ndarray) -> str:
    """Pairwise accuracy of each player's opponents, beaten above not beaten, averaged over players."""
    codes = np.append(test.edges[:, 0], test.edges[:, 1])
    each = per_query("pairwise_accuracy", np.append(test.y, -test.y), np.append(there, back), codes)
    each = each[~np.isnan(each)]
    return f"{each.mean():.4f} ± {1.96 * stats.sem(each):.4f}"


def report(name: str, train: Season, test: Season) -> None:
    """Models of one season, with features of the years before, evaluated on the next season likewise."""
    average, deviation = train.X.mean(), train.X.std()
    X, Z = ((s.X - average) / deviation for s in (train, test))
    X, Z = (np.column_stack([A, np.ones(len(A))]) for A in (X, Z))  # the ones let each end have effects of its own
    used, edges = np.unique(train.edges, return_inverse=True)  # those who did not play teach nothing
    edges, y = edges.reshape(-1, 2), np.append(train.y, -train.y)
    edges = np.vstack([edges, edges[:, ::-1]])
    rows = []
    for column in ("elo", "won", *(["points"] if "points" in test.X else [])):
        value = test.X[column].to_numpy()
        gap = value[test.edges[:, 0]] - value[test.edges[:, 1]]
        rows.append([f"baseline: {column} before", winners(test, gap), within(test, gap, -gap), ""])
    known = test.favourite
    rows.append(["known on the day", winners(test, known), within(test, known, -known), ""])
    for kernel, relation, loss in itertools.product((None, "rbf"), ("reciprocal", None), ("ranking", "regression")):
        model = ConditionalRankRLS(kernel=kernel, relation=relation, loss=loss).fit_edges(X[used], edges, y)
        there, back = model.predict_edges(Z, test.edges), model.predict_edges(Z, test.edges[:, ::-1])
        model_name = f"{kernel or 'linear'}, {relation or 'ordinary'}, {loss}"
        rows.append([model_name, winners(test, there - back), within(test, there, back), f"{model.alpha_:.2g}"])
    sizes = f"{len(used)} and {len(np.unique(test.edges))} objects, {len(train.y):,} and {len(test.y):,} matches"
    table(["model", "winner", "within", "alpha"], rows, f"{name}: {sizes}, 95 % intervals over matches and players:")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds both data sets")
    parser.add_argument("--sports", nargs="*", default=["tennis", "football"])
    arguments = parser.parse_args()
    print(machine())
    if "tennis" in arguments.sports:
        matches = read_tennis(arguments.data / "tennis-atp")
        report("Tennis", *(season(matches, tennis_features, start, 4, 3, 10) for start in (2014, 2017)))
    if "football" in arguments.sports:
        matches = read_football(arguments.data / "football-international")
        report("Football", *(season(matches, football_features, start, 4, 4, 10) for start in (2017, 2021)))


if __name__ == "__main__":
    main()
