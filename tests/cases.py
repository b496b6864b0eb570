"""Small ranking problems with everything that goes wrong in practice."""

import numpy as np


def problem(m=40, n=6, n_queries=7, levels=3, seed=0, shuffle=True):
    """Ragged queries in scattered rows, one with a single row, one all tied, duplicate rows, query-level offsets."""
    rng = np.random.default_rng(seed)
    qid = np.concatenate([np.arange(n_queries), rng.integers(1, n_queries, m - n_queries)])
    if shuffle:
        qid = rng.permutation(qid)
    X = rng.normal(size=(m, n)) + 3 * rng.normal(size=(n_queries, n))[qid]
    y = rng.integers(0, levels, m).astype(float)
    tied = qid == n_queries - 1
    y[tied] = 1.0
    double = np.flatnonzero(qid == 1)[:2]
    X[double] = X[double[0]]
    return X, y, qid


def weights(m, seed=1):
    return np.random.default_rng(seed).integers(1, 4, m).astype(float)
