"""Functions for a ranker or a pipeline that ends in one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..system.types import ArrayLike, Ids, MatrixLike
from .scaling import PerQueryMinMax


def ranker_of(model: BaseEstimator) -> Any:
    """The estimator at the end of a pipeline."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def scalers_of(model: BaseEstimator) -> list[Any]:
    """The steps before the ranker."""
    return [step for _, step in model.steps[:-1]] if isinstance(model, Pipeline) else []


def needs_queries(model: BaseEstimator) -> bool:
    """True if scores depend on the other rows of the query, so that whole queries and their ids are needed."""
    steps = [*scalers_of(model), ranker_of(model)]
    return any(isinstance(step, PerQueryMinMax) or getattr(step, "needs_queries", False) for step in steps)


def learned(model: BaseEstimator, X: MatrixLike, y: ArrayLike, qid: Ids = None) -> Any:
    """Fit the model; query ids go to the steps that take them."""
    with config_context(enable_metadata_routing=isinstance(model, Pipeline)):
        return model.fit(X, y, qid=qid)


def predicted(model: BaseEstimator, X: MatrixLike, qid: Ids = None) -> np.ndarray:
    """Scores of the rows of X."""
    with quietly(model):
        return np.asarray(model.predict(X, qid=qid) if needs_queries(model) else model.predict(X))


def scaled(model: BaseEstimator, X: MatrixLike, qid: Ids = None) -> Any:
    """The rows of X as the ranker at the end of a pipeline sees them."""
    if not scalers_of(model):
        return X
    with quietly(model):
        return model[:-1].transform(X, qid=qid) if needs_queries(model) else model[:-1].transform(X)


@contextmanager
def quietly(model: BaseEstimator) -> Iterator[None]:
    """Route query ids through the pipeline, and do not warn about missing column names."""
    with warnings.catch_warnings(), config_context(enable_metadata_routing=needs_queries(model)):
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
