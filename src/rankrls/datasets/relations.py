"""Synthetic relations between objects: games between players, and random relations of every kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import check_choice, check_share
from ..system.seeds import seed_of

ROCK_PAPER_SCISSORS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])  # result of the row's move against the column's


@dataclass(frozen=True)
class Games:
    """Games between players, and the true win probabilities of another group of players.

    Attributes
    ----------
    X : ndarray of shape (n_players, 3)
        How often each player plays rock, paper and scissors.
    edges : ndarray of int, shape (2 * n_games, 2)
        Players (a, b) of each game, each listed again as (b, a).
    y : ndarray of shape (2 * n_games,)
        1 where a won, -1 where b won.
    X_test : ndarray of shape (n_test, 3)
        Another group of players.
    Y_test : ndarray of shape (n_test, n_test)
        The probability that player i beats player j, a draw counting half: Y + Y' = 1.

    Examples
    --------
    >>> from rankrls import ConditionalRankRLS
    >>> from rankrls.datasets import make_rock_paper_scissors
    >>> games = make_rock_paper_scissors(random_state=0)
    >>> model = ConditionalRankRLS(1.0, relation="reciprocal").fit_edges(games.X, games.edges, games.y)
    >>> model.score(games.X_test, games.Y_test) > 0.95
    True
    """

    X: np.ndarray
    edges: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray


@dataclass(frozen=True)
class Relation:
    """A relation between objects.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
        Conditioning objects, one per row of Y.
    Z : ndarray of shape (n_other, n_features) or None
        Ranked objects, one per column of Y; None if they are the conditioning objects.
    Y : ndarray of shape (n, n) or (n, n_other)
        The relation with noise; NaN where unknown.
    truth : ndarray of the same shape
        The relation without noise, everywhere.

    Examples
    --------
    >>> from rankrls.datasets import make_relation
    >>> data = make_relation(10, 15, random_state=0)
    >>> data.X.shape, data.Z.shape, data.Y.shape
    ((10, 5), (15, 5), (10, 15))
    """

    X: np.ndarray
    Z: np.ndarray | None
    Y: np.ndarray
    truth: np.ndarray


def make_rock_paper_scissors(
    n_players: int = 100,
    n_games: int = 1000,
    *,
    w: float = 10.0,
    n_test: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> Games:
    """Rock-paper-scissors between players with habits: a reciprocal relation that no single ranking can represent.

    A player chooses move k with probability exp(w u_k) / sum_j exp(w u_j), u uniform on [0, 1]. A game is between two
    different players at random, who play until one wins. The paper's w1, w10 and w100 are w = 1, 10 and 100.

    Parameters
    ----------
    n_players, n_games : int, default=100, 1000
        Players and games between them.
    w : float, default=10
        How strongly the players prefer one move; 0 means not at all.
    n_test : int, default=100
        Players of the other group.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    games : Games
        X, edges, y, X_test, Y_test.

    References
    ----------
    [Pahikkala13, section 6.1]

    Examples
    --------
    >>> games = make_rock_paper_scissors(20, 50, random_state=0)
    >>> games.X.shape, games.edges.shape, sorted(set(games.y.tolist()))
    ((20, 3), (100, 2), [-1.0, 1.0])
    """
    if n_players < 2 or n_games < 1 or n_test < 1 or not 0 <= w < np.inf:
        raise ValueError(
            "n_players must be at least 2, n_games and n_test at least 1, w not negative; got "
            f"{n_players}, {n_games}, {n_test}, {w}"
        )
    rng = np.random.default_rng(seed_of(random_state))
    X, X_test = _habits(rng, n_players, w), _habits(rng, n_test, w)
    a = rng.integers(n_players, size=n_games)
    b = (a + rng.integers(1, n_players, size=n_games)) % n_players
    win, loss = (_chances(X, X, side)[a, b] for side in (1, -1))
    y = np.where(rng.random(n_games) * (win + loss) < win, 1.0, -1.0)
    edges = np.concatenate([np.column_stack([a, b]), np.column_stack([b, a])])
    win, loss = (_chances(X_test, X_test, side) for side in (1, -1))
    return Games(X, edges, np.concatenate([y, -y]), X_test, (1 + win - loss) / 2)


def _habits(rng: np.random.Generator, n: int, w: float) -> np.ndarray:
    u = w * rng.random((n, 3))
    p = np.exp(u - u.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _chances(X: np.ndarray, Z: np.ndarray, side: int) -> np.ndarray:
    """The probability that the first player wins (side 1) or loses (-1) a single round."""
    return X @ (side == ROCK_PAPER_SCISSORS) @ Z.T


def make_relation(
    n: int = 50,
    n_other: int | None = None,
    *,
    n_features: int = 5,
    rank: int = 3,
    relation: str | None = None,
    noise: float = 0.1,
    missing: float = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> Relation:
    """A random relation f(x, z) = sum_k g_k(x) h_k(z) between objects, observed with noise and possibly in part.

    g_k and h_k are random smooth functions of the features (from a Gaussian kernel), so similar objects have similar
    relations, and a kernel model can predict those of new objects.

    Parameters
    ----------
    n : int, default=50
        Conditioning objects.
    n_other : int, default=None
        Ranked objects of another domain; None: the conditioning objects themselves.
    n_features : int, default=5
        Number of standard normal features per object.
    rank : int, default=3
        Number of products g_k h_k.
    relation : {None, "symmetric", "reciprocal"}, default=None
        Whether f(x, z) = f(z, x), or f(x, z) = -f(z, x), noise included; these need a single domain.
    noise : float, default=0.1
        Standard deviation of the noise; that of the relation itself is 1.
    missing : float, default=0.0
        Share of Y that is NaN; in a symmetric or reciprocal relation, of both (i, j) and (j, i).
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    relation : Relation
        X, Z, Y, truth.

    Examples
    --------
    >>> import numpy as np
    >>> relation = make_relation(30, relation="reciprocal", missing=0.5, random_state=0)
    >>> relation.Y.shape, bool(np.allclose(relation.truth, -relation.truth.T))
    ((30, 30), True)
    """
    _check_relation(n, n_other, n_features, rank, relation, noise, missing)
    rng = np.random.default_rng(seed_of(random_state))
    X = rng.normal(size=(n, n_features))
    Z = X if n_other is None else rng.normal(size=(n_other, n_features))
    left, right = _functions(rng, n_features, rank), _functions(rng, n_features, rank)
    sign = {None: 0, "symmetric": 1, "reciprocal": -1}[relation]
    truth = left(X) @ right(Z).T
    noises = noise * rng.normal(size=truth.shape)
    hidden = rng.random(truth.shape)
    if sign:
        truth = truth + sign * truth.T
        noises = (noises + sign * noises.T) / np.sqrt(2)
        hidden = np.triu(hidden) + np.triu(hidden, 1).T
    deviation = truth.std()
    truth = truth / (deviation if deviation > 0 else 1.0)
    Y = np.where(hidden < missing, np.nan, truth + noises)
    return Relation(X, None if n_other is None else Z, Y, truth)


def _check_relation(n, n_other, n_features, rank, relation, noise, missing) -> None:
    if min(n, n if n_other is None else n_other, n_features, rank) < 1 or not 0 <= noise < np.inf:
        raise ValueError(
            "n, n_other, n_features and rank must be at least 1, noise not negative; got "
            f"{n}, {n_other}, {n_features}, {rank}, {noise}"
        )
    check_choice("relation", relation, (None, "symmetric", "reciprocal"))
    check_share("missing", missing)
    if relation is not None and n_other is not None:
        raise ValueError(f"a {relation} relation needs a single domain: leave out n_other, got {n_other}")


def _functions(rng: np.random.Generator, n_features: int, rank: int, n_waves: int = 50):
    """`rank` random functions with the covariance exp(-||x - z||^2 / (2 n_features))."""
    frequencies = rng.normal(size=(n_features, n_waves * rank)) / np.sqrt(n_features)
    phases = 2 * np.pi * rng.random(n_waves * rank)

    def values(X: np.ndarray) -> np.ndarray:
        waves = np.cos(X @ frequencies + phases).reshape(len(X), rank, n_waves)
        return np.sqrt(2 / n_waves) * waves.sum(axis=2)

    return values
