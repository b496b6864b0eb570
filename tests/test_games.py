"""Games: winners and losers by name, dates, home advantage, ratings and probabilities, against explicit kernels."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import oracles
from rankrls import ConditionalRankRLS, load, metrics, save
from rankrls.kernels import Gaussian
from rankrls.relations.direct import EdgeFeatures
from rankrls.relations.edges import EdgeKernel
from rankrls.relations.folds import PastFirst
from rankrls.relations.games import as_duration, as_time
from rankrls.relations.loss import EdgeLoss
from rankrls.relations.relation import Domain, EdgeSet, Pairwise
from rankrls.selection import RelationKFold
from shared import folder

pd = pytest.importorskip("pandas")
ALPHA = 0.4


def league(n=8, q=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    strength = X @ [1.0, 0.5, 0.0]
    a = rng.integers(n, size=q)
    b = (a + rng.integers(1, n, size=q)) % n
    home = rng.integers(-1, 2, size=q)
    margin = strength[a] - strength[b] + 0.7 * home + 0.5 * rng.normal(size=q)
    won = margin > 0
    teams = pd.DataFrame(X, index=[f"team {i}" for i in range(n)], columns=list("abc"))
    names = np.array(teams.index)
    games = pd.DataFrame(
        {
            "winner": names[np.where(won, a, b)],
            "loser": names[np.where(won, b, a)],
            "margin": np.abs(margin),
            "at_home": np.where(won, home, -home),
            "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(q) * 10, unit="D"),
            "recency": rng.random(q) + 0.1,
        }
    )
    return teams, games


def expected(teams, games, y, *, weights=None, home=None, loss="ranking", pairwise=None):
    """Scores between all teams, and the home advantage, from games seen from both ends at half their weight."""
    number = {name: i for i, name in enumerate(teams.index)}
    ends = [(number[w], number[b]) for w, b in zip(games["winner"], games["loser"], strict=True)]
    edges = ends + [e[::-1] for e in ends]
    u = np.tile(np.ones(len(ends)) if weights is None else weights, 2) / 2
    y = np.concatenate([y, -y])
    free = None if home is None else np.concatenate([home, -home])[:, None]
    K = Gaussian(0.3)(teams.to_numpy(), teams.to_numpy())
    kernel = lambda e, o: oracles.pair_kernel(K, K, e, o, -1, **(pairwise or {}))
    a, b = oracles.relation_model(
        kernel(edges, edges), y, [e[0] for e in edges], ALPHA, ranking=loss == "ranking", weights=u, free=free
    )
    n = len(teams)
    every = [(i, j) for i in range(n) for j in range(n)]
    return (kernel(every, edges) @ a).reshape(n, n), b


def model(**params):
    return ConditionalRankRLS(ALPHA, kernel=Gaussian(0.3), relation="reciprocal", tol=1e-12, **params)


@pytest.mark.parametrize("loss", ["ranking", "regression"])
@pytest.mark.parametrize("y", [None, "margin"])
def test_winners_and_losers_equal_the_explicit_kernel_of_games(loss, y):
    teams, games = league()
    found = model(loss=loss).fit_edges(teams, games, y, source="winner", target="loser")
    scores, _ = expected(teams, games, np.ones(40) if y is None else games["margin"].to_numpy(), loss=loss)
    assert_allclose(found.predict(teams), scores, atol=1e-8)
    if y is None:
        guessed = ConditionalRankRLS(ALPHA, kernel=Gaussian(0.3), loss=loss, tol=1e-12)
        guessed.fit_edges(teams, games, source="winner", target="loser")
        assert guessed.relation_ == "reciprocal"
        assert_allclose(guessed.predict(teams), scores, atol=1e-8)


@pytest.mark.parametrize("loss", ["ranking", "regression"])
def test_weights_half_life_and_home_advantage(loss):
    teams, games = league()
    age = (games["date"].max() - games["date"]).dt.days.to_numpy()
    weights = games["recency"].to_numpy() * 0.5 ** (age / 100)
    found = model(loss=loss).fit_edges(
        teams, games, "margin", source="winner", target="loser", sample_weight="recency", date="date",
        half_life="100d", home="at_home",
    )  # fmt: skip
    scores, home = expected(
        teams, games, games["margin"].to_numpy(), weights=weights, home=games["at_home"].to_numpy(), loss=loss
    )
    assert_allclose(found.predict(teams), scores, atol=1e-8)
    assert_allclose(found.home_advantage_, home[0], atol=1e-8)
    assert found.home_advantage_ > 0.2
    at_home, away = (found.probability("team 0", "team 1", home=h) for h in (1, -1))
    assert away < found.probability("team 0", "team 1") < at_home


@pytest.mark.parametrize("weighting", ["queries", "pairs"])
def test_weightings_of_lists(weighting):
    teams = league()[0]
    K = Gaussian(0.3)(teams.to_numpy(), teams.to_numpy())
    edges = [(int(a), int(b)) for a, b in np.random.default_rng(1).integers(0, 8, (50, 2))]
    rng = np.random.default_rng(2)
    y, u = rng.normal(size=50), 1 + rng.random(50)
    found = ConditionalRankRLS(ALPHA, kernel=Gaussian(0.3), weighting=weighting, tol=1e-12)
    found.fit_edges(teams.to_numpy(), edges, y, sample_weight=u)
    M = oracles.pair_kernel(K, K, edges, edges)
    a, _ = oracles.relation_model(M, y, [e[0] for e in edges], ALPHA, ranking=True, weights=u, weighting=weighting)
    assert_allclose(found.predict_edges(teams.to_numpy(), edges), M @ a, atol=1e-7)


@pytest.mark.parametrize("pairwise", ["sum", ["kronecker", "sum"]])
def test_sums_of_pairwise_kernels(pairwise):
    teams, games = league()
    found = model(pairwise=pairwise).fit_edges(teams, games, "margin", source="winner", target="loser")
    scores = found.predict(teams)
    weights = {"product": 0.0, "source": 1.0, "target": 1.0}
    if pairwise == "sum":
        exact, _ = expected(teams, games, games["margin"].to_numpy(), pairwise=weights)
        assert_allclose(scores, exact, atol=1e-8)
        rating = found.rating()[teams.index].to_numpy()
        assert_allclose(scores, rating[:, None] - rating, atol=1e-8)  # additive and nothing else
    assert_allclose(scores, -scores.T, atol=1e-10)


@pytest.mark.parametrize("relation", [None, "symmetric", "reciprocal"])
@pytest.mark.parametrize("objects", ["ids", "features", "products", "both", "sparse products"])
def test_few_features_are_solved_for_directly(relation, objects):
    pairwise = {"products": "kronecker", "sparse products": "kronecker", "both": ["kronecker", "sum"]}.get(
        objects, "sum"
    )
    rng = np.random.default_rng(0)
    first = rng.integers(9, size=80)
    games = np.column_stack([first, (first + rng.integers(1, 9, size=80)) % 9])
    X, y, home = None if objects == "ids" else rng.normal(size=(9, 3)), rng.normal(size=80), rng.integers(-1, 2, 80)
    X = sparse.csr_array(X) if objects == "sparse products" else X
    for params, given in (
        ({"loss": "ranking", "weighting": "queries"}, {"home": home}),
        ({"loss": "ranking"}, {"sample_weight": rng.random(80) + 0.1}),
        ({"loss": "regression", "intercept": True}, {"home": home, "sample_weight": rng.random(80) + 0.1}),
    ):
        both = [
            ConditionalRankRLS(
                relation=relation, pairwise=pairwise, alphas=[0.01, 1.0], solver=solver, tol=1e-13, **params
            ).fit_edges(X, games, y, **given)
            for solver in ("auto", "cg")
        ]
        assert [one.solver_ for one in both] == ["direct", "cg"]
        for name in ("cv_scores_", "cv_predictions_", "alpha_", "intercept_"):
            assert_allclose(*(getattr(one, name) for one in both), atol=1e-7, err_msg=name)
        assert_allclose(*(one.predict() for one in both), atol=1e-7)
        if "home" in given:
            assert_allclose(both[0].home_advantage_, both[1].home_advantage_, atol=1e-7)


@pytest.mark.parametrize("parity", [0, 1, -1])
@pytest.mark.parametrize("ranking", [True, False])
def test_features_of_edges_give_the_kernel_of_edges_block_by_block(parity, ranking):
    rng = np.random.default_rng(0)
    X, pairwise, y = rng.normal(size=(9, 3)), Pairwise(0.7, 0.3, 0.3), rng.normal(size=60)
    rows, columns = rng.integers(9, size=(2, 60))
    free, weights = rng.normal(size=(60, 2)), rng.random(60) + 0.1
    domain, edges = Domain(X, True), EdgeSet((9, 9), None, rows, columns, y, weights, free)
    phi = EdgeFeatures.of(domain, domain, edges, parity, pairwise)
    assert phi.size == {0: 15, 1: 9, -1: 6}[parity]
    Phi, kernel = phi[np.arange(60)], EdgeKernel(domain, domain, rows, columns, parity, pairwise)
    assert_allclose(Phi @ Phi.T @ y, kernel(y), atol=1e-12)
    loss, few = EdgeLoss(rows, ranking, weights, "items", free), replace(phi, cells=4 * phi.size)
    assert len(list(few.blocks())) > 5
    A = np.column_stack([loss.forward(column) for column in Phi.T])
    assert_allclose(few.gram(loss), A.T @ A, atol=1e-12)
    assert_allclose(few.dot(np.eye(phi.size)), Phi, atol=1e-12)
    assert_allclose(few.transposed_dot(y), Phi.T @ y, atol=1e-12)


def test_ratings_have_error_bars_that_shrink_with_games(tmp_path):
    teams, games = league(q=60)
    games = games[(games[["winner", "loser"]] != "team 7").all(axis=1)]
    one_hot = pd.DataFrame(np.eye(8), index=teams.index)
    one_hot.columns = list("abcdefgh")
    plain = ConditionalRankRLS(ALPHA, relation="reciprocal", pairwise="sum", loss="regression", tol=1e-12)
    with pytest.warns(UserWarning, match="1 of 8 objects of X have no edge"):
        plain.fit_edges(one_hot, games, "margin", source="winner", target="loser")
    table = plain.rating(return_std=True)
    assert table["std"].idxmax() == "team 7" and list(table.columns) == ["rating", "std"]
    assert table["rating"].is_monotonic_decreasing
    # the posterior of Bayesian linear regression on differences of one-hot rows, prior variance s^2 / (2 alpha)
    number = {name: i for i, name in enumerate(teams.index)}
    A = np.zeros((len(games), 8))
    A[np.arange(len(games)), games["winner"].map(number)] = 1
    A[np.arange(len(games)), games["loser"].map(number)] = -1
    C = np.eye(8) - 1 / 8
    r = plain.rating()[teams.index].to_numpy()
    noise = np.mean((games["margin"].to_numpy() - A @ r) ** 2)
    P = C / 2
    cov = noise * P @ np.linalg.inv(ALPHA * np.eye(8) + A.T @ A @ P)
    played = np.abs(A).sum(axis=0)
    C = np.eye(8) - played / played.sum()  # differences from the mean, each team counting by its games
    cov = C @ cov @ C.T
    assert_allclose(table["std"][teams.index], np.sqrt(np.diag(cov)), rtol=1e-8)
    save(plain, tmp_path / "games.rankrls")
    pd.testing.assert_frame_equal(load(tmp_path / "games.rankrls").rating(return_std=True), table)


def faded_league(seed=0):
    """Teams of today, teams of a century ago, and one old game that links them; dates as years."""
    rng = np.random.default_rng(seed)
    frames = []
    for era, start, q in (("new", 2016, 400), ("old", 1910, 1200)):
        strength = rng.normal(size=15)
        a = rng.integers(15, size=q)
        b = (a + rng.integers(1, 15, size=q)) % 15
        frame = pd.DataFrame({"a": [f"{era} {i}" for i in a], "b": [f"{era} {i}" for i in b]})
        frame["margin"] = strength[a] - strength[b] + (2 if era == "new" else 0.3) * rng.normal(size=q)
        frames.append(frame.assign(date=start + 4 * rng.uniform(size=q)))
    link = pd.DataFrame({"a": ["old 0"], "b": ["new 0"], "margin": [9.0], "date": [1915.0]})
    return frames[0], pd.concat([*frames, link], ignore_index=True)


def fit_faded(edges, alpha="auto", **options):
    model = ConditionalRankRLS(alpha, relation="reciprocal", **options)
    return model.fit_edges(None, edges, "margin", source="a", target="b", date="date", half_life=2.0)


def test_results_with_hardly_any_weight_do_not_choose_alpha():
    recent, games = faded_league()
    other = games.assign(margin=np.where(games["date"] < 2000, -(games["margin"] ** 3), games["margin"]))
    found, expected = fit_faded(games), fit_faded(other)
    assert found.alpha_ == expected.alpha_
    assert_allclose(found.cv_scores_, expected.cv_scores_, atol=1e-12)
    teams = pd.unique(recent[["a", "b"]].to_numpy().ravel())
    assert found.rating().index[0] in teams
    stops = [fit_faded(edges, max_iter="auto") for edges in (games, other)]
    assert stops[0].n_iter_ == stops[1].n_iter_


def test_objects_with_old_games_do_not_make_the_others_uncertain():
    recent, games = faded_league()
    alone, found = (fit_faded(edges, 1e-3).rating(return_std=True)["std"] for edges in (recent, games))
    assert_allclose(found[alone.index], alone, rtol=1e-2)
    assert found.drop(alone.index).min() > 10 * alone.max()


def test_edges_with_hardly_any_weight_do_not_judge():
    def judge(weights):
        n = len(weights)
        return EdgeSet((n, n), None, np.arange(n), np.arange(n), np.ones(n), np.array(weights)).judge.tolist()

    assert judge([1.0, 1.0, 0.0]) == [True, True, False]
    assert all(judge([1000.0] + [1.0] * 1000))  # light, but together they hold half of the weight
    assert all(judge(np.linspace(0.5, 1.5, 100)))  # none is light
    assert judge(0.5 ** np.arange(10.0)) == [True] * 5 + [False] * 5
    assert judge(1e-9 * 0.5 ** np.arange(10.0)) == [True] * 5 + [False] * 5


def test_probabilities_are_calibrated_and_complementary():
    rng = np.random.default_rng(0)
    n, q = 30, 4000
    strength = rng.normal(size=n)
    a = rng.integers(n, size=q)
    b = (a + rng.integers(1, n, size=q)) % n
    chance = 1 / (1 + np.exp(strength[b] - strength[a]))
    win = rng.random(q) < chance
    edges = np.where(win[:, None], np.column_stack([a, b]), np.column_stack([b, a]))
    found = ConditionalRankRLS(1.0, relation="reciprocal", pairwise="sum").fit_edges(np.eye(n), edges)
    p = found.probability(np.eye(n)[a], np.eye(n)[b])
    assert_allclose(p + found.probability(np.eye(n)[b], np.eye(n)[a]), 1)
    assert np.abs(p - chance).mean() < 0.04
    assert isinstance(found.probability(0, 1), float)
    assert_allclose(found.probability(0, 1), found.probability(np.eye(n)[0], np.eye(n)[1]))


def test_evaluate_learns_from_the_past():
    teams, games = league(n=12, q=300)
    found = ConditionalRankRLS(relation="reciprocal", pairwise="sum").evaluate(
        teams, games, source="winner", target="loser", date="date", n_splits=3
    )
    assert list(found) == ["time"] and found["time"].shape == (3,)
    assert found.means()["time"]["winner"] > 0.7
    assert found.errors()["time"]["winner"] > 0
    assert "winner" in str(found)
    by_hand = games.sort_values("date", kind="stable")
    cuts = np.array_split(np.arange(300), 4)
    fitted = ConditionalRankRLS(1.0, relation="reciprocal").fit_edges(
        teams, by_hand.iloc[: cuts[1][0]], source="winner", target="loser"
    )
    held = by_hand.iloc[cuts[1]]
    scores = fitted.predict_edges(teams, held, source="winner", target="loser")["score"]
    fixed = ConditionalRankRLS(1.0, relation="reciprocal").evaluate(
        teams, games, source="winner", target="loser", date="date", n_splits=3
    )
    assert_allclose(fixed.metrics["time"]["winner"][0], np.mean((1 + np.sign(scores)) / 2))
    settings = ConditionalRankRLS(relation="reciprocal").evaluate(
        teams, games, y="margin", source="winner", target="loser"
    )
    assert list(settings) == [1, 4]
    with pytest.raises(ValueError, match="pass date="):
        ConditionalRankRLS(1.0).evaluate(
            teams, games.drop(columns="date"), source="winner", target="loser", settings=["time"]
        )
    named = {"source": "winner", "target": "loser", "n_splits": 3}
    for renamed in (games, games.rename(columns={"date": "played"})):  # the only column of dates
        again = ConditionalRankRLS(1.0, relation="reciprocal").evaluate(teams, renamed, settings=["time"], **named)
        assert_allclose(again["time"], fixed["time"])


def test_dates_and_durations_in_many_forms():
    seconds = as_time(np.array(["2020-01-01", "2020-01-02"]), 2)
    assert seconds[1] - seconds[0] == 86400
    for same in (np.array([20200101, 20200102]), pd.to_datetime(["2020-01-01", "2020-01-02"]).to_numpy()):
        assert_allclose(as_time(same, 2), seconds)
    assert as_duration("365d") == 365 * 86400 and as_duration("2 weeks") == 2 * as_duration("1w")
    assert as_duration(pd.Timedelta("1D")) == 86400
    for words, call in {
        'such as "365d"': lambda: as_duration("soon"),
        "dates cannot be read": lambda: as_time(np.array(["yesterday"]), 1),
        "half_life needs the date": lambda: ConditionalRankRLS().fit_edges(np.eye(3), [(0, 1)], half_life="1d"),
        "is not a column of the edges": lambda: ConditionalRankRLS().fit_edges(
            np.eye(3), pd.DataFrame({"a": [0], "b": [1]}), source="a", target="c"
        ),
        "so there is nothing to learn": lambda: ConditionalRankRLS().fit_edges(np.eye(3), [(0, 1)], Z=np.eye(3)),
        "probabilities need a reciprocal relation": lambda: (
            ConditionalRankRLS(1.0).fit_edges(np.eye(3), [(0, 1), (0, 2)], [1.0, 2.0]).probability(0, 1)
        ),
    }.items():
        with pytest.raises(ValueError, match=words):
            call()


def test_international_football_is_predicted_better_than_by_home_advantage_alone():
    path = folder("football-international") / "results.csv.xz"
    games = pd.read_csv(path, parse_dates=["date"]).query("'2015-01-01' <= date < '2019-01-01'")
    games = games.assign(margin=(games["home_score"] - games["away_score"]).clip(-3, 3), home=1.0 - games["neutral"])
    teams = np.union1d(games["home_team"], games["away_team"])
    X = pd.DataFrame(np.eye(len(teams)), index=teams)
    X.columns = [str(i) for i in range(len(teams))]
    past, next_year = games[games["date"] < "2018-01-01"], games[games["date"] >= "2018-01-01"]
    fit = ConditionalRankRLS(3.0, relation="reciprocal", pairwise="sum", loss="regression")
    with pytest.warns(UserWarning, match="have no edge"):
        fit.fit_edges(
            X, past, "margin", source="home_team", target="away_team", date="date", half_life="730d", home="home"
        )
    assert 0.3 < fit.home_advantage_ < 1.0
    scores = fit.predict_edges(X, next_year, source="home_team", target="away_team", home="home")["score"].to_numpy()
    decided = (next_year["margin"] != 0).to_numpy()
    right = np.sign(scores[decided]) == np.sign(next_year["margin"].to_numpy()[decided])
    at_home = next_year["margin"].to_numpy()[decided] > 0
    assert right.mean() > 0.7 > at_home.mean()
    assert {"Germany", "Brazil", "Spain", "Argentina", "France"} & set(fit.rating().index[:10])


def test_games_choose_between_products_and_sums_where_alpha_is_chosen():
    rng = np.random.default_rng(0)
    skill = rng.normal(size=20)
    players = pd.DataFrame(
        {"skill": skill + 0.1 * rng.normal(size=20), "age": rng.normal(size=20)}, index=list("abcdefghijklmnopqrst")
    )
    a, b = np.array([rng.choice(20, 2, replace=False) for _ in range(300)]).T
    won = skill[a] - skill[b] + 0.3 * rng.normal(size=300) > 0
    games = pd.DataFrame({"winner": players.index[np.where(won, a, b)], "loser": players.index[np.where(won, b, a)]})
    ends = {"source": "winner", "target": "loser"}
    auto = ConditionalRankRLS().fit_edges(players, games, **ends)
    both = ConditionalRankRLS(pairwise=["kronecker", "sum"]).fit_edges(players, games, **ends)
    assert auto.pairwise_ == both.pairwise_ and auto.pairwise_["sum"] > 0
    assert_allclose(auto.predict(), both.predict())
    product = ConditionalRankRLS(pairwise="kronecker").fit_edges(players, games, **ends)
    assert auto.cv_scores_.max() > product.cv_scores_.max() + 0.1
    fixed = ConditionalRankRLS(1.0).fit_edges(players, games, **ends)  # nothing is held out, nothing is chosen
    assert fixed.pairwise_ == {"kronecker": 1.0, "sum": 0.0}
    assert ConditionalRankRLS().fit(players, rng.normal(size=(20, 20))).pairwise_ == {"kronecker": 1.0, "sum": 0.0}


@pytest.mark.filterwarnings("ignore:.*have no edge")
@pytest.mark.parametrize("condition", ["source", "target"])
@pytest.mark.parametrize("relation", ["symmetric", "reciprocal"])
@pytest.mark.parametrize("listed", [True, False])
def test_new_objects_beside_known_ones_of_a_mirrored_relation(relation, condition, listed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    Y = X @ rng.normal(size=(3, 3)) @ X.T
    Y = Y + Y.T if relation == "symmetric" else Y - Y.T
    model = ConditionalRankRLS(0.5, relation=relation, condition=condition, tol=1e-12, loss="regression")
    rows, columns = np.triu_indices(12, 1)
    edges, y = np.column_stack([rows, columns]), Y[rows, columns]
    options = {"settings": [2, 3], "n_splits": 3}
    found = model.evaluate(X, edges, y=y, **options) if listed else model.evaluate(X, Y, **options)
    turned = condition == "target"
    for setting in (2, 3):
        folds = RelationKFold(3 if (setting == 2) == turned else 2, 3, mirrored=True)
        for score, (train, test) in zip(found[setting], folds.split(Y), strict=True):
            assert_array_equal(train.rows, train.columns)
            assert not {*train.rows} & {*(test.rows if folds.setting == 2 else test.columns)}
            inside = np.isin(rows, train.rows) & np.isin(columns, train.rows)
            again = model.fit_edges(X, edges[inside], y[inside]) if listed else model.fit(X[train.rows], train.of(Y))
            scores = again.predict(X[test.rows], X[test.columns])
            truth, scores = (test.of(Y).T, scores.T) if turned else (test.of(Y), scores)
            qid = np.repeat(np.arange(len(truth)), truth.shape[1])
            assert_allclose(score, oracles.pairwise_accuracy(truth.ravel(), scores.ravel(), qid), atol=1e-9)
    auto = ConditionalRankRLS(relation=relation, condition=condition, alphas=[0.1, 1.0], loss="regression")
    assert auto.evaluate(X, Y, settings=[2], n_splits=3)[2].shape == (3,)


def test_alpha_is_chosen_by_what_came_next():
    teams, games = league(n=12, q=300)
    games = games.sample(frac=1, random_state=0)
    ends = {"source": "winner", "target": "loser"}
    model = ConditionalRankRLS(relation="reciprocal", pairwise="sum", cv="time", alphas=[0.1, 1.0, 10.0])
    model.fit_edges(teams, games, **ends, date="date")
    folds = list(PastFirst(games["date"].astype("int64"), 5).split_edges(None, None, None))
    scores = []
    for alpha in model.alphas_:
        of_folds = []
        for train, test in folds:
            seen, later = games[train], games[test]
            assert seen["date"].max() < later["date"].min()
            one = ConditionalRankRLS(alpha, relation="reciprocal", pairwise="sum").fit_edges(teams, seen, **ends)
            first, second = np.sort(later[["winner", "loser"]].to_numpy(), axis=1).T
            one_way = pd.DataFrame({"winner": first, "loser": second})  # so that games of the same teams tie exactly
            score = one.predict_edges(teams, one_way, **ends)["score"].to_numpy()
            score = np.where(later["winner"] == first, score, -score)
            qid = np.concatenate([later["winner"], later["loser"]])
            y = np.repeat([1.0, -1.0], len(later))
            of_folds.append(oracles.pairwise_accuracy(y, np.concatenate([score, -score]), qid))
        scores.append(np.mean(of_folds))
    assert_allclose(model.cv_scores_, scores, atol=1e-6)
    first = folds[0][0]
    assert np.isnan(model.cv_predictions_[first]).all() and np.isfinite(model.cv_predictions_[~first]).all()
    with pytest.raises(ValueError, match="with the date of each edge"):
        model.fit_edges(teams, games.drop(columns="date"), **ends)


def test_margins_of_winners_over_losers_count_as_games():
    teams, games = league(q=60)
    games["margin"] = games["margin"].abs()
    ends = {"source": "winner", "target": "loser"}
    told = ConditionalRankRLS(ALPHA, relation="reciprocal").fit_edges(teams, games, "margin", **ends)
    found = ConditionalRankRLS(ALPHA).fit_edges(teams, games, "margin", **ends)
    assert found.relation_ == "reciprocal"
    assert_allclose(found.predict(), told.predict())
    assert ConditionalRankRLS(ALPHA, relation="arbitrary").fit_edges(teams, games, "margin", **ends).relation_ is None


def test_directed_edges_between_objects_known_by_id_choose_alpha_by_edges_left_out():
    rng = np.random.default_rng(0)
    guests = rng.normal(size=30)  # how easily each lets others score
    a = rng.integers(30, size=900)
    b = (a + rng.integers(1, 30, size=900)) % 30
    games = pd.DataFrame({"home": a + 100, "away": b + 100, "goals": guests[b] + 0.3 * rng.normal(size=900)})
    model = ConditionalRankRLS().fit_edges(None, games, "goals", source="home", target="away")
    assert model.relation_ is None
    assert model.cv_scores_.max() > 0.8  # new objects, of which nothing is known, would leave it at one half


def test_evaluate_of_players_who_hardly_meet_with_a_column_of_names_and_one_of_numbers():
    rng = np.random.default_rng(0)
    names, size = np.array([f"lizard{i:03d}" for i in range(60)]), rng.normal(size=60)
    players = pd.DataFrame({"name": names, "id": np.arange(60) * 3 + 2, "size": size, "tactic": ["a", "b", "c"] * 20})
    a = rng.integers(60, size=50)
    b = (a + rng.integers(1, 60, size=50)) % 60
    won = size[a] > size[b]
    games = pd.DataFrame({"winner": names[np.where(won, a, b)], "loser": names[np.where(won, b, a)]})
    found = ConditionalRankRLS(encoder="auto", pairwise="sum").evaluate(
        players, games, source="winner", target="loser", settings=[1, 4], n_splits=3
    )
    winner = [found.means()[setting]["winner"] for setting in (1, 4)]
    assert min(winner) > 0.55, winner


@pytest.mark.filterwarnings("ignore:.*have no edge")
def test_games_of_players_who_hardly_meet_are_compared_with_one_another():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    a = rng.integers(60, size=70)
    b = (a + rng.integers(1, 60, size=70)) % 60
    games = np.where((X[a, 0] > X[b, 0])[:, None], np.column_stack([a, b]), np.column_stack([b, a]))
    make = lambda **options: ConditionalRankRLS(relation="reciprocal", pairwise="sum", loss="regression", **options)
    expected = []
    for train, test in RelationKFold(1, 5, same_objects=True).split(games, np.ones(70)):
        scores = make(alpha=1.0, tol=1e-12).fit_edges(X, games[train]).predict_edges(X, games[test])
        expected.append(metrics.pairwise_accuracy(np.repeat([1, -1], len(test)), np.concatenate([scores, -scores])))
    model = make(alphas=[1.0], tol=1e-12).fit_edges(X, games)
    assert_allclose(model.cv_scores_, np.mean(expected), atol=1e-9)


def test_candidates_that_were_not_chosen_are_not_warned_of():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X -= X.mean(axis=0)  # a product of centred features explains little
    a, b = rng.integers(60, size=(2, 800))
    wins = rng.random(800) < 1 / (1 + np.exp(-2 * (X[a, 0] - X[b, 0])))
    games = np.where(wins[:, None], np.column_stack([a, b]), np.column_stack([b, a]))[a != b]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ConditionalRankRLS().fit_edges(X, games)
    assert model.pairwise_["sum"] > 0 and model.cv_scores_.max() > 0.7
