"""Generators return what they promise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rankrls import RankRLS, metrics
from rankrls.datasets import make_ranking, make_relation, make_rock_paper_scissors, make_search
from rankrls.datasets.relations import ROCK_PAPER_SCISSORS


def test_search_log_has_the_traits_of_a_real_one():
    data = make_search(400, n_noise=3, random_state=0)
    assert data.X.shape == (len(data.y), 15) == (len(data.qid), len(data.feature_names))
    assert set(data.y) == {0, 1, 2, 3, 4}
    _, sizes = np.unique(data.qid, return_counts=True)
    assert sizes.min() == 1 and sizes.max() > 40
    tied = [np.ptp(data.y[data.qid == q]) == 0 for q in np.unique(data.qid) if (data.qid == q).sum() > 1]
    assert 0 < np.sum(tied) < len(tied) / 4
    assert np.isfinite(data.X).all()


def test_same_seed_same_data():
    a, b = make_search(20, random_state=3), make_search(20, random_state=3)
    assert_array_equal(a.X, b.X)
    assert not np.array_equal(a.X[:10], make_search(20, random_state=4).X[:10])


def test_ranking_beats_regression_on_the_search_log():
    data = make_search(200, random_state=0)
    scaled = (data.X - data.X.mean(0)) / data.X.std(0)
    ranking, regression = (RankRLS(regression=beta).fit(scaled, data.y, qid=data.qid) for beta in (0.0, 1.0))
    assert ranking.cv_scores_.max() > regression.cv_scores_.max() + 0.003


def test_bad_arguments():
    with pytest.raises(ValueError, match="at least 1"):
        make_search(0)


# ---------------------------------------------------------------- make_ranking


def test_make_ranking_returns_what_was_requested():
    data = make_ranking(300, mean_items=12, n_features=8, n_informative=3, n_levels=4, random_state=0)
    assert data.X.shape == (len(data.y), 8)
    _, sizes = np.unique(data.qid, return_counts=True)
    assert len(sizes) == 300 and sizes.min() >= 2 and abs(sizes.mean() - 12) < 1
    _, grades = np.unique(data.y, return_counts=True)
    assert len(grades) == 4 and grades.max() < 1.1 * grades.min()
    assert sorted(data.feature_names) == [
        "informative_0",
        "informative_1",
        "informative_2",
        *(f"noise_{i}" for i in range(5)),
    ]
    assert np.all(np.diff(data.qid) >= 0)


def test_only_informative_features_get_weight():
    data = make_ranking(300, n_features=8, n_informative=3, noise=0.0, n_levels=None, random_state=1)
    ranker = RankRLS(alpha=1e-6).fit(data.X, data.y, qid=data.qid)
    informative = np.array([name.startswith("informative") for name in data.feature_names])
    assert_allclose(ranker.coef_[~informative], 0, atol=1e-6)
    assert_allclose(np.linalg.norm(ranker.coef_), 1, rtol=1e-6)
    assert ranker.score(data.X, data.y, data.qid) == 1.0
    assert len(set(data.y)) == len(data.y)


def test_scattered_rows_are_the_same_rows():
    plain, scattered = (make_ranking(20, shuffle=shuffle, random_state=2) for shuffle in (False, True))
    assert np.any(np.diff(scattered.qid) < 0)
    rows = lambda data: sorted(map(tuple, np.column_stack([data.qid, data.y, data.X]).tolist()))
    assert rows(plain) == rows(scattered)


@pytest.mark.parametrize(
    "wrong",
    [{"n_queries": 0}, {"mean_items": 1}, {"n_informative": 11}, {"n_informative": 0}, {"n_levels": 1}, {"noise": -1}],
)
def test_wrong_arguments_of_make_ranking(wrong):
    with pytest.raises(ValueError, match="n_queries must be at least 1"):
        make_ranking(**wrong)


# ---------------------------------------------------------------- relations


def test_rock_paper_scissors_by_its_rules():
    games = make_rock_paper_scissors(100, 1000, w=10, random_state=0)
    assert games.X.shape == games.X_test.shape == (100, 3)
    assert_allclose(games.X.sum(axis=1), 1)
    assert games.edges.shape == (2000, 2) and np.all(games.edges[:, 0] != games.edges[:, 1])
    assert_array_equal(games.edges[1000:], games.edges[:1000, ::-1])  # every game both ways
    assert_array_equal(games.y[1000:], -games.y[:1000])
    assert set(games.y) == {-1, 1}
    Y = games.Y_test
    assert_allclose(Y + Y.T, 1)
    i, j = 3, 8
    by_hand = sum(
        games.X_test[i, a] * games.X_test[j, b] * (1 + ROCK_PAPER_SCISSORS[a, b]) / 2
        for a in range(3)
        for b in range(3)
    )
    assert_allclose(Y[i, j], by_hand)


def test_outcomes_of_games_follow_the_chances():
    games = make_rock_paper_scissors(3, 60_000, w=5, random_state=0)
    win = games.X @ (ROCK_PAPER_SCISSORS == 1) @ games.X.T
    for a, b in ((0, 1), (1, 2), (2, 0)):
        played = np.all(games.edges[:60_000] == [a, b], axis=1)
        won = np.mean(games.y[:60_000][played] == 1)
        assert abs(won - win[a, b] / (win[a, b] + win[b, a])) < 0.02


def test_the_relation_of_players_is_learned_better_the_stronger_their_habits():
    errors = []
    for w in (1, 10, 100):
        games = make_rock_paper_scissors(w=w, random_state=0)
        product = lambda A, B: (A[:, :, None] * B[:, None, :]).reshape(len(A), 9)
        a, b = games.edges.T
        model = RankRLS(alpha=2.0**-30, tied_pairs=True).fit(product(games.X[a], games.X[b]), games.y, qid=b)
        i, j = np.divmod(np.arange(100 * 100), 100)
        scores = model.predict(product(games.X_test[i], games.X_test[j]))
        errors.append(metrics.disagreement_error(games.Y_test[i, j], scores, j))
    assert errors[0] > errors[1] > errors[2] and errors[2] < 0.05 < 0.2 < errors[0]


@pytest.mark.parametrize("relation", [None, "symmetric", "reciprocal"])
def test_relations_have_the_kind_asked_for(relation):
    data = make_relation(40, relation=relation, missing=0.3, rank=2, random_state=0)
    assert data.X.shape == (40, 5) and data.Z is None and data.Y.shape == (40, 40)
    known = ~np.isnan(data.Y)
    assert abs(known.mean() - 0.7) < 0.07
    assert_allclose(data.truth.std(), 1)
    assert abs((data.Y - data.truth)[known].std() - 0.1) < 0.03
    sign = {None: 0, "symmetric": 1, "reciprocal": -1}[relation]
    if sign:
        assert_array_equal(known, known.T)
        assert_allclose(np.nan_to_num(data.Y), sign * np.nan_to_num(data.Y).T, atol=1e-12)
        assert np.linalg.matrix_rank(data.truth) <= 4
    else:
        assert np.linalg.matrix_rank(data.truth) == 2
        assert not np.allclose(data.truth, data.truth.T)


def test_relations_of_two_domains():
    data = make_relation(30, 20, n_features=3, noise=0.0, random_state=0)
    assert data.X.shape == (30, 3) and data.Z.shape == (20, 3) and data.Y.shape == (30, 20)
    assert_array_equal(data.Y, data.truth)
    again = make_relation(30, 20, n_features=3, noise=0.0, random_state=0)
    assert_array_equal(data.Y, again.Y)


def test_similar_objects_have_similar_relations():
    data = make_relation(300, n_features=2, noise=0.0, random_state=0)
    far = np.linalg.norm(data.X[:, None] - data.X[None], axis=2)
    near = (far < 0.1) & (far > 0)
    change = np.abs(data.truth[:, None, :] - data.truth[None, :, :]).mean(axis=2)
    assert change[near].mean() < 0.3 * change[far > 1].mean()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_rock_paper_scissors(1), "n_players must be at least 2"),
        (lambda: make_rock_paper_scissors(w=-1), "w not negative"),
        (lambda: make_relation(0), "must be at least 1"),
        (lambda: make_relation(5, 6, relation="symmetric"), "a symmetric relation needs a single domain"),
        (lambda: make_relation(relation="odd"), "relation must be one of"),
        (lambda: make_relation(missing=2), "between 0 and 1"),
    ],
)
def test_wrong_arguments_of_relations(call, message):
    with pytest.raises(ValueError, match=message):
        call()
