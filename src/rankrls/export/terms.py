"""What a fitted model computes: score(x) = sum_v k_v(x[columns_v], points_v) coef_v + intercept, after scalers.

Every ranker of single documents has this form: a linear model has one term without a kernel, Sparse RankRLS and
pursuits one term with few points, co-regularised models one term per view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import preprocessing
from sklearn.base import BaseEstimator

from ..auto import AutoRanker
from ..estimators import ConditionalRankRLS, PerQueryMinMax, pipelines
from ..kernels import Function, Kernel, Linear, Precomputed, Scaled
from ..tables import TableEncoder


@dataclass(frozen=True)
class Term:
    """k(x[columns], points) @ coef, or x[columns] @ coef."""

    columns: Any  # slice, or (n,) numbers
    kernel: Kernel | None
    points: Any  # (r, n), None if linear
    coef: np.ndarray  # (r,), (r, t), or with n for r if linear

    def folded(self) -> Term:
        """The same, with a linear kernel multiplied out."""
        kernel, squares = self.kernel, np.ones(1)
        if isinstance(self.kernel, Scaled):
            kernel, squares = self.kernel.kernel, self.kernel.scale**2
        if not isinstance(kernel, Linear):
            return self
        coef = np.asarray(self.points.T @ self.coef)
        return Term(self.columns, None, None, (coef.T / squares).T)


def scalers_of(model: BaseEstimator) -> list[Any]:
    """The steps of a pipeline that change the features."""
    return [step for step in pipelines.scalers_of(model) if step is not None and step != "passthrough"]


def terms_of(ranker: BaseEstimator) -> tuple[list[Term], Any]:
    """The terms of a fitted ranker in double precision, and its intercept; an error if it has no such form."""
    if isinstance(ranker, ConditionalRankRLS):
        raise ValueError("a model of pairs of objects (ConditionalRankRLS) does not score one document by itself")
    if isinstance(ranker, AutoRanker):
        ranker = _linear_part(ranker)
    ranker = getattr(ranker, "ranker_", ranker)  # the ranker inside a transductive one
    intercept: Any = getattr(ranker, "intercept_", 0.0)
    if hasattr(ranker, "views_"):
        equal = np.full(len(ranker.views_), 1 / len(ranker.views_))
        shares = getattr(ranker, "view_weights_", equal)
        found = [
            Term(view.columns, view.kernel, view.points, share * np.asarray(coef, dtype=np.float64))
            for view, coef, share in zip(ranker.views_, ranker.view_coefs_, shares, strict=True)
        ]
    elif hasattr(ranker, "coef_"):
        found = [Term(slice(None), None, None, np.asarray(ranker.coef_, dtype=np.float64).T)]
    elif hasattr(ranker, "dual_coef_"):
        coef = np.asarray(ranker.dual_coef_, dtype=np.float64)
        found = [Term(slice(None), ranker.kernel_, ranker.X_fit_.astype(np.float64), coef)]
    else:
        raise ValueError(
            f"only a fitted ranker can be exported, got {type(ranker).__name__}, which is not fitted or not a ranker"
        )
    for term in found:
        check_term(term)
    nothing = Term(slice(None), None, None, np.zeros(ranker.n_features_in_))  # for a pursuit that chose no function
    found = [term.folded() for term in found if len(term.coef)] or [nothing]
    return found, np.asarray(intercept, dtype=np.float64)


def _linear_part(ranker: AutoRanker) -> BaseEstimator:
    """The linear model inside an AutoRanker fitted to sparse rows; an error for any other AutoRanker."""
    if getattr(ranker, "columns_", ranker) is None:
        return ranker.parts_[0]
    raise ValueError(
        "this AutoRanker is a sum of functions, pairs and kernels of columns, but the format only holds weights of "
        "features: use ONNX (export.to_onnx, --to onnx), or fit RankRLS for this export"
    )


def check_term(term: Term) -> None:
    """Raise an error if no format can hold the term."""
    if isinstance(term.kernel, Precomputed):
        raise ValueError(
            "a model with a precomputed kernel is a function of kernel values, not of features, and cannot be "
            "exported: fit with the kernel itself"
        )
    if getattr(term.kernel, "weights", None) is not None:
        raise ValueError("a kernel with column weights cannot be exported: scale the columns before the model")
    if isinstance(term.kernel, Function):
        raise ValueError("a kernel that is a Python function cannot be exported: use one of rankrls.kernels")
    if not np.isfinite(term.coef).all():
        raise ValueError("the model has weights that are not finite, which no format can hold")


def affine(step: BaseEstimator) -> tuple[Any, Any]:
    """A scaler as x -> scale * x + shift, ignoring clipping."""
    if isinstance(step, preprocessing.MinMaxScaler):
        return step.scale_, step.min_
    if isinstance(step, preprocessing.StandardScaler | preprocessing.RobustScaler | preprocessing.MaxAbsScaler):
        scale = 1 / (1.0 if getattr(step, "scale_", None) is None else step.scale_)
        standard = isinstance(step, preprocessing.StandardScaler)
        centre = getattr(step, "mean_" if standard else "center_", None)
        centred = getattr(step, "with_mean" if standard else "with_centering", False)
        return scale, -centre * scale if centred and centre is not None else 0.0
    if isinstance(step, PerQueryMinMax):
        raise ValueError(
            "scaling within queries (PerQueryMinMax) needs all documents of a query, and is not a function of one "
            "document: train with StandardScaler (--scale standard), or scale before the model"
        )
    if isinstance(step, TableEncoder):
        raise ValueError(
            "TableEncoder turns text, dates and missing values into numbers, which this format cannot do: export to "
            "ONNX (export.to_onnx, --to onnx)"
        )
    raise ValueError(f"{type(step).__name__} is not a scaler that can be exported")


def feature_names(model: BaseEstimator, n: int, names: Sequence[str] | None) -> list[str]:
    """Names of n features: those given, those the model was fitted with, or f1, f2, ..."""
    first = [*pipelines.scalers_of(model), pipelines.ranker_of(model)][0]
    if names is None:
        found = getattr(first, "feature_names_in_", None)
        names = [f"f{j}" for j in range(1, n + 1)] if found is None else list(found)
    names = [str(name) for name in names]
    if len(names) != n:
        raise ValueError(f"the model has {n} features, got {len(names)} names")
    if len(set(names)) < n:
        again = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {again!r} is given to several features")
    return names


def dense(points: Any) -> np.ndarray:
    """Points as an array."""
    return points.toarray() if sparse.issparse(points) else np.asarray(points)
