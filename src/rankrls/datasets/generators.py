"""Synthetic ranking problems with the characteristics of real ones."""

from __future__ import annotations

import numpy as np

from ..system.seeds import seed_of
from .records import RankingData

SEARCH_FEATURES = [
    "bm25_title",
    "bm25_body",
    "title_overlap",
    "url_overlap",
    "embedding_cosine",
    "pagerank",
    "click_rate",
    "freshness_days",
    "doc_length",
    "spam_score",
    "query_length",
    "query_popularity",
]


def make_search(
    n_queries: int = 200,
    *,
    mean_documents: float = 20.0,
    n_noise: int = 0,
    noise: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> RankingData:
    """A search log: queries with different numbers of documents, named features and grades 0 to 4.

    What makes it realistic, and hard for pointwise models: the level of most features depends more on the query than on
    the document (a popular query has high scores throughout), grades are relative to the query, features have very
    different scales, and some queries have a single document or a single grade.

    Parameters
    ----------
    n_queries : int, default=200
        Number of queries.
    mean_documents : float, default=20
        Mean number of documents per query; lengths are log-normal.
    n_noise : int, default=0
        Additional features without any signal, named noise_0, noise_1, ...
    noise : float, default=1.0
        Standard deviation of the part of relevance that the features do not explain.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    data : RankingData
        X, y, qid (strings such as "q0007") and feature_names.

    Examples
    --------
    >>> data = make_search(50, random_state=0)
    >>> data.X.shape[1] == len(data.feature_names) == 12
    True
    >>> sorted(set(data.y.tolist()))
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    if n_queries < 1 or mean_documents < 1 or n_noise < 0 or noise < 0:
        raise ValueError(
            "n_queries and mean_documents must be at least 1, n_noise and noise not negative; got "
            f"{n_queries}, {mean_documents}, {n_noise}, {noise}"
        )
    rng = np.random.default_rng(seed_of(random_state))
    sizes = np.maximum(1, rng.lognormal(np.log(mean_documents) - 0.18, 0.6, n_queries).astype(int))
    sizes[rng.random(n_queries) < 0.03] = 1
    query = np.repeat(np.arange(n_queries), sizes)
    m = len(query)

    topic = rng.normal(size=(m, 4))  # text match, semantic match, authority, quality of each document
    level = rng.normal(size=(n_queries, 4))[query]  # an offset shared by the documents of a query
    found = _search_features(rng, topic + 1.5 * level)
    found += [rng.integers(1, 8, n_queries)[query], np.exp(3 + level[:, 2]), *rng.normal(size=(n_noise, m))]
    X = np.column_stack(found)
    relevance = topic @ [1.0, 0.8, 0.5, 0.6] + noise * rng.normal(size=m)
    thresholds = np.array([-0.3, 0.6, 1.6, 2.8]) + 0.8 * rng.normal(size=n_queries)[query][:, None]
    y = (relevance[:, None] > thresholds).sum(axis=1).astype(float)
    flat = rng.random(n_queries) < 0.04  # queries that were judged but had nothing relevant
    y[flat[query]] = 0.0
    qid = np.array([f"q{number:04d}" for number in range(n_queries)])[query]
    names = SEARCH_FEATURES + [f"noise_{i}" for i in range(n_noise)]
    return RankingData(X, y, qid, names)


def _search_features(rng: np.random.Generator, traits: np.ndarray) -> list[np.ndarray]:
    """Features on different scales, from the text match, semantic match, authority and quality of each document."""
    jitter = lambda scale: scale * rng.normal(size=len(traits))
    match, meaning, authority, quality = traits.T
    return [
        12 + 4 * match + jitter(1.5),
        20 + 5 * match + 3 * meaning + jitter(3.0),
        np.clip(0.4 + 0.2 * match + jitter(0.1), 0, 1),
        np.clip(0.2 + 0.1 * match + jitter(0.1), 0, 1),
        np.tanh(0.5 + 0.5 * meaning + jitter(0.2)),
        np.exp(0.8 * authority + jitter(0.3)),
        np.clip(0.1 + 0.03 * authority + 0.04 * quality + jitter(0.02), 0, 1),
        np.exp(4 - 0.5 * quality + jitter(0.8)),
        np.exp(6 + 0.3 * meaning + jitter(0.5)),
        1 / (1 + np.exp(2 + quality + jitter(0.5))),
    ]


def make_ranking(
    n_queries: int = 50,
    *,
    mean_items: float = 10.0,
    n_features: int = 10,
    n_informative: int = 5,
    noise: float = 0.5,
    n_levels: int | None = 5,
    shuffle: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> RankingData:
    """A simple ranking problem: y is a linear function of some features, plus a level per query, plus noise.

    Parameters
    ----------
    n_queries : int, default=50
        Number of queries.
    mean_items : float, default=10
        Mean number of items per query; a query has at least two.
    n_features, n_informative : int, default=10, 5
        Number of standard normal features, and number of them, chosen at random, that have a weight.
    noise : float, default=0.5
        Standard deviation of the noise; that of the linear function within a query is 1.
    n_levels : int or None, default=5
        y is cut into this many grades 0, 1, ... of about equal frequency, so items tie; None keeps real numbers.
    shuffle : bool, default=False
        Whether to scatter the rows of each query.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    data : RankingData
        X, y, qid (numbers) and feature_names: "informative_0", ... and "noise_0", ...

    Examples
    --------
    >>> data = make_ranking(20, random_state=0)
    >>> data.X.shape[1], sorted(set(data.y.tolist()))
    (10, [0.0, 1.0, 2.0, 3.0, 4.0])
    """
    if n_queries < 1 or mean_items < 2 or noise < 0 or not 1 <= n_informative <= n_features or n_levels in (0, 1):
        raise ValueError(
            "n_queries must be at least 1, mean_items at least 2, n_informative between 1 and n_features, noise not "
            "negative, n_levels at least 2 or None; got "
            f"{n_queries}, {mean_items}, {n_informative} of {n_features}, {noise}, {n_levels}"
        )
    rng = np.random.default_rng(seed_of(random_state))
    qid = np.repeat(np.arange(n_queries), 2 + rng.poisson(mean_items - 2, n_queries))
    informative = rng.permutation(n_features) < n_informative
    w = np.where(informative, rng.normal(size=n_features), 0.0)
    X = rng.normal(size=(len(qid), n_features))
    y = X @ (w / np.linalg.norm(w)) + rng.normal(size=n_queries)[qid] + noise * rng.normal(size=len(qid))
    if n_levels is not None:
        y = np.searchsorted(np.quantile(y, np.arange(1, n_levels) / n_levels), y).astype(float)
    if shuffle:
        rows = rng.permutation(len(qid))
        X, y, qid = X[rows], y[rows], qid[rows]
    count = np.where(informative, np.cumsum(informative), np.cumsum(~informative)) - 1
    names = [f"{'informative' if i else 'noise'}_{n}" for i, n in zip(informative, count.tolist(), strict=True)]
    return RankingData(X, y, qid, names)
