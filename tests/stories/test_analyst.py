"""An analyst has game results, and wants ratings and the odds of the next game, better than ten lines of Elo.

Raw file: results as found on the internet (date, home team, away team, goals, neutral ground), with a few teams that
only play among themselves.
"""

import numpy as np
import pandas as pd

from rankrls import ConditionalRankRLS
from shared import folder


def results(seed=0, n=30, q=4000):
    """A league of thirty, and an island of three that nobody else plays."""
    rng = np.random.default_rng(seed)
    names = np.array([f"FC {chr(65 + i // 6)}{i % 6}" for i in range(n)] + ["Island 1", "Island 2", "Island 3"])
    strength = np.append(rng.normal(size=n), [0.5, 0.0, -0.5])
    a = rng.integers(n, size=q)
    b = (a + rng.integers(1, n, size=q)) % n
    late = rng.permutation(q)[:12]
    a[late], b[late] = n + rng.integers(3, size=12), n
    b[late] = n + (a[late] - n + 1) % 3
    neutral = rng.random(q) < 0.2
    lead = strength[a] - strength[b] + 0.4 * ~neutral
    home, away = rng.poisson(np.exp(0.2 + lead / 2)), rng.poisson(np.exp(0.2 - lead / 2))
    days = pd.Timestamp("2020-01-04") + pd.to_timedelta(np.arange(q) // 2, unit="D")
    frame = {"date": days.strftime("%Y-%m-%d"), "home_team": names[a], "away_team": names[b]}
    return pd.DataFrame({**frame, "home_score": home, "away_score": away, "neutral": neutral}), names, strength


def elo(games, k=20.0, home=60.0):
    """Ten lines of Elo, for comparison: the share of later winners it predicts."""
    rating, right = {}, []
    for i, game in enumerate(games.itertuples()):
        a, b = rating.get(game.home_team, 1500.0), rating.get(game.away_team, 1500.0)
        lead = a - b + (0.0 if game.neutral else home)
        won = np.sign(game.home_score - game.away_score)
        if won and i >= 0.8 * len(games):
            right.append(lead * won > 0)
        change = k * ((won + 1) / 2 - 1 / (1 + 10 ** (-lead / 400)))
        rating[game.home_team], rating[game.away_team] = a + change, b - change
    return float(np.mean(right))


NAMES = {"source": "home_team", "target": "away_team", "home": "at_home", "date": "date"}


def prepared(games):
    margin = np.sign(games["home_score"] - games["away_score"]) * np.log1p(
        (games["home_score"] - games["away_score"]).abs()
    )
    return games.assign(margin=margin, at_home=(~games["neutral"]).astype(float), date=pd.to_datetime(games["date"]))


def predicted(model, games):
    """The share of winners among the last fifth of the games, from a model of the others."""
    cut = int(0.8 * len(games))
    model.fit_edges(None, games[:cut], "margin", half_life="730d", **NAMES)
    known = set(games["home_team"][:cut]) | set(games["away_team"][:cut])
    later = games[cut:]
    later = later[later["home_team"].isin(known) & later["away_team"].isin(known) & (later["margin"] != 0)]
    scores = model.predict_edges(None, later, source="home_team", target="away_team", home="at_home")
    return float(np.mean((scores["score"].to_numpy() > 0) == (later["margin"].to_numpy() > 0)))


def test_from_results_to_the_next_game(tmp_path):
    games, names, strength = results()
    games.to_csv(tmp_path / "results.csv", index=False)
    games = prepared(pd.read_csv(tmp_path / "results.csv"))

    # teams are names only; alpha is chosen by games left out, although three teams form an island
    model = ConditionalRankRLS(relation="reciprocal", pairwise="sum", loss="regression")
    share = predicted(model, games)
    assert share > elo(games) - 0.02  # a standard error of the difference; on real results see below

    model.fit_edges(None, games, "margin", half_life="730d", **NAMES)
    ratings = model.rating()
    ratings = ratings["rating"] if hasattr(ratings, "columns") else ratings
    truth = pd.Series(strength, index=names)[[name for name in names if name.startswith("FC")]]
    assert ratings[truth.index].corr(truth, method="spearman") > 0.9
    assert 0.05 < model.home_advantage_ < 1

    # the decision: who is the favourite of the next game, and how sure is that?
    best, second = truth.sort_values().index[[-1, -2]]
    worst = truth.idxmin()
    assert model.probability(best, worst) > 0.85 > model.probability(best, second) > 0.4
    assert model.probability(best, second, home=1.0) > model.probability(best, second, home=-1.0)


def test_international_football(tmp_path):
    path = folder("football-international") / "results.csv.xz"
    games = pd.read_csv(path).query("'2010-01-01' <= date <= '2019-12-31'").dropna(subset=["home_score"])
    games = prepared(games.astype({"neutral": bool}).reset_index(drop=True))
    model = ConditionalRankRLS(relation="reciprocal", pairwise="sum", loss="regression")
    share = predicted(model, games)
    assert share > 0.76  # .728 when whole components were left out to choose alpha
    assert share > elo(games) + 0.01  # .777 and .756
