"""A relation between objects as an ONNX graph: features of both ends go in, a matrix of scores comes out.

    X (N, n) -> kernel to its points (N, p)
    Z (M, m) -> kernel to its points (M, r)      scores (N, M) = (N, p) @ coef (p, r) @ (M, r)'

Effects of single ends and the intercept are added. In a linear model the features take the place of kernel values.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ..estimators import ConditionalRankRLS
from ..kernels import Linear
from .graph import OnnxGraph
from .terms import Term, check_term, dense

Values = Callable[[OnnxGraph, str, Term], str]  # kernel values of an input, (N, points)


def relation_model(graph: OnnxGraph, model: ConditionalRankRLS, name: str, values: Values) -> Any:
    """The whole graph; inputs X and Z, output scores."""
    if hasattr(model, "encoder_") or hasattr(model, "target_encoder_"):
        raise ValueError(
            "this relation encodes tables (encoder=), which cannot be exported: fit it to numbers, such as those of "
            "model.encoder_.transform(X)"
        )
    linear = hasattr(model, "coef_")
    coef = np.asarray(dense(model.coef_ if linear else model.dual_coef_), dtype=np.float64)
    sizes = {"X": int(model.n_features_in_), "Z": _columns(model)}
    ends = (("X", model.kernel_, model.X_fit_), ("Z", model.target_kernel_, model.Z_fit_))
    left, right = (
        side if linear else _values(graph, side, kernel, points, coef, values) for side, kernel, points in ends
    )
    # Gemm, because ONNX Runtime 1.19 fuses Transpose and MatMul into an operator that has no double precision
    scores = graph.op("Gemm", graph.op("MatMul", left, graph.constant(coef)), right, transB=1)
    if hasattr(model, "source_effects_"):
        of_left = graph.op("MatMul", left, graph.constant(np.asarray(model.source_effects_)[:, None]))
        of_right = graph.op("MatMul", right, graph.constant(np.asarray(model.target_effects_)[:, None]))
        scores = graph.op("Add", scores, of_left)
        scores = graph.op("Add", scores, graph.op("Transpose", of_right))
    graph.op("Add", scores, graph.constant(float(getattr(model, "intercept_", 0.0))), output="scores")
    taken: Any = {side: ([rows, sizes[side]], False) for side, rows in (("X", "N"), ("Z", "M"))}
    made = graph.model(name, taken, ["N", "M"])
    named = {"features": _names(model, "feature_names_in_", sizes["X"])}
    own = "feature_names_in_" if model._one_domain else "target_feature_names_in_"
    named["target_features"] = _names(model, own, sizes["Z"])
    graph.onnx.helper.set_model_props(
        made, {key: json.dumps(found, ensure_ascii=False) for key, found in named.items()}
    )
    graph.onnx.checker.check_model(made, full_check=True)
    return made


def _values(graph: OnnxGraph, side: str, kernel: Any, points: object, coef: np.ndarray, values: Values) -> str:
    points = np.asarray(dense(points), dtype=np.float64)
    check_term(Term(slice(None), kernel, points, coef))
    if isinstance(kernel, Linear):
        return graph.op("MatMul", side, graph.constant(points.T))
    return values(graph, side, Term(slice(None), kernel, points, coef))


def _columns(model: ConditionalRankRLS) -> int:
    objects: Any = getattr(model, "target_objects_", model.Z_fit_)
    return int(objects.shape[1])


def _names(model: ConditionalRankRLS, attribute: str, n: int) -> list[str]:
    found = getattr(model, attribute, None)
    return [f"f{j}" for j in range(1, n + 1)] if found is None else [str(name) for name in found]
