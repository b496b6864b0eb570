"""Column weights of a kernel, learned from labels by repeatedly taking the gradient of a model.

A model f = sum_i c_i k(., p_i) changes most along the columns that matter. Weighting column j by the root mean square
of df / dx_j and fitting again sharpens that (the diagonal of the average outer product of gradients).
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ...core.queries import Queries
from ...kernels import Gaussian, Laplacian
from ...system.seeds import seed_of
from ..rows.training import Training
from .base import RidgeRanker

ROUNDS = 3
POINTS = 300  # basis points of the models whose gradients are taken
ROWS = 5_000  # rows of whole queries that they are fitted to


def with_learned_metric(model: RidgeRanker, rows: Training) -> Any:
    """The model with learned column weights in its kernel if it asks for them; else unchanged."""
    kernel: Any = model.kernel
    if not isinstance(kernel, Gaussian | Laplacian) or kernel.metric != "learned":
        return model
    if sparse.issparse(rows.X) or rows.y.shape[1] > 1:
        raise ValueError('metric="learned" needs dense rows with one target: call X.toarray(), or pass weights=')
    X, y, queries = np.asarray(rows.X, dtype=np.float64), rows.y[:, 0], rows.queries
    deviation = X.std(axis=0) if model.scale is not None else np.ones(X.shape[1])
    X = X / np.where(deviation > 0, deviation, 1.0)
    rng = np.random.default_rng(seed_of(model.random_state) if model.random_state is not None else 0)
    order = rng.permutation(len(queries))
    used = order[: max(2, int((np.cumsum(queries.sizes[order]) <= ROWS).sum()))]
    some = np.flatnonzero(np.isin(queries.codes, used))
    found = copy.copy(model)
    plain = replace(kernel, metric=None, gamma="scale" if isinstance(kernel.gamma, str) else kernel.gamma)
    about = {"weighting": model.weighting, "tied_pairs": False, "scoring": model.scoring, "scale": None}
    ranker = type(model)(**about)
    weights = learned_weights(ranker, plain, X[some], y[some], queries.codes[some], rng)
    found.kernel = replace(kernel, weights=weights, metric=None)
    return found


def learned_weights(
    ranker: RidgeRanker, kernel: Gaussian | Laplacian, X: np.ndarray, y: np.ndarray, qid: np.ndarray, rng: Any
) -> np.ndarray:
    """(n,) column weights; the largest is 1."""
    ranker.basis = X[np.sort(rng.choice(len(X), min(POINTS, len(X)), replace=False))]
    at = X[np.sort(rng.choice(len(X), min(2 * POINTS, len(X)), replace=False))]
    weights = np.ones(X.shape[1])
    for _ in range(ROUNDS):
        ranker.kernel = replace(kernel, weights=weights)
        fitted: Any = ranker.fit(X, y, qid=Queries.of(qid).codes)
        size = np.sqrt(np.mean(gradients(fitted.kernel_, fitted.X_fit_, fitted.dual_coef_, at) ** 2, axis=0))
        if not size.max() > 0:  # nothing was learned
            break
        weights = size / size.max()
    return weights


def gradients(kernel: Gaussian | Laplacian, points: np.ndarray, coef: np.ndarray, X: np.ndarray) -> np.ndarray:
    """(m, n) the gradient of sum_i coef_i k(x, p_i) at each row."""
    K = kernel(X, points) * coef  # (m, r)
    w, gamma = np.asarray(kernel.weights), float(kernel.gamma)
    if isinstance(kernel, Gaussian):
        return -2 * gamma * w**2 * (X * K.sum(axis=1, keepdims=True) - K @ points)
    columns = zip(X.T, points.T, strict=True)
    return -gamma * w * np.stack([(K * np.sign(x[:, None] - p)).sum(axis=1) for x, p in columns], axis=1)
