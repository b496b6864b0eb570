"""Generated data sets."""

from __future__ import annotations

import numpy as np

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # X (m, n), y (m,), qid (m,)


def search_data(m: int, n: int, documents: int = 100, seed: int = 0) -> Rows:
    """Gaussian features, five grades, queries of equal length."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    y = np.clip(np.round(X @ rng.normal(size=n) / np.sqrt(n) + rng.normal(size=m) + 1), 0, 4)
    return X, y, equal_queries(m, documents)


def interacting_data(m: int, n: int, documents: int = 100, seed: int = 0) -> Rows:
    """The same, but products, thresholds and distances of six features matter: what trees are made for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    a, b, c, d, e, f = X.T[:6]
    signal = a * b + 2.0 * ((c > 0.5) & (d > 0)) + np.abs(e) + 0.5 * f
    y = np.clip(np.round(signal + 0.7 * rng.normal(size=m)), 0, 4)
    return X, y, equal_queries(m, documents)


def equal_queries(m: int, documents: int) -> np.ndarray:
    """Query ids of m rows."""
    return np.repeat(np.arange(-(-m // documents)), documents)[:m]


def ragged(m: int, seed: int = 1) -> np.ndarray:
    """Query ids with log-normal query lengths, 100 on average."""
    sizes = np.maximum(1, np.random.default_rng(seed).lognormal(np.log(84), 0.6, m // 50).astype(int))
    return np.repeat(np.arange(len(sizes)), sizes)[:m]
