"""Rankers, and the scalers before them, as ONNX graphs built node by node.

    X (N, n) -> scalers -> for each view: columns -> kernel to the points (N, r) -> @ coef -> sum + intercept -> scores

Everything has one type. In float64 the scores agree with `predict` to rounding. In float32, for machines without
doubles, they have the rounding of the features and, in kernel models, of sum_i |coef_i|, which is large if alpha is
small. The form of the nodes keeps further losses small:

- ||x - z||^2 of the Gaussian is |u|^2 - 2 u'v + |v|^2 with u = x - c, v = z - c and c the mean of the points: a
  product of matrices, without an (N, r, n) array. Distances do not depend on c, and without it three large numbers
  would cancel if features are far from zero. Negative results of rounding are set to zero.
- scalers are (x - c) scale + rest, where the rest compensates the rounding of c.
- ||x - z||_1 of the Laplacian has no such form: a Scan adds |x_j - z_j| feature by feature, in O(N r) memory.
- points of the cosine are normalised beforehand; a row of zeros stays zero.
- no scalar multiplies an input of a matrix product: onnxruntime would merge the two and keep the scalar in float32.
  The scalar is made part of a matrix instead, or a matrix itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn import impute, preprocessing
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer

from ..auto import AutoRanker
from ..estimators import ConditionalRankRLS
from ..estimators.pipelines import needs_queries, ranker_of
from ..kernels import Cosine, Gaussian, Laplacian, Polynomial, Scaled
from ..tables import TableEncoder
from . import auto, encoders
from .graph import OnnxGraph
from .relations import relation_model
from .terms import Term, affine, dense, feature_names, scalers_of, terms_of

ROWS = "N"  # name of the dimension of any size


def to_onnx(
    model: BaseEstimator, names: Sequence[str] | None = None, *, name: str = "rankrls", dtype: str = "float64"
) -> Any:
    """An ONNX model with the input `X` (N, n_features) and the output `scores` (N,), or (N, n_targets) if several.

    A relation has the inputs `X` (N, n_features) and `Z` (M, n_target_features) and the output `scores` (N, M).

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted RankRLS, AutoRanker, CoRankRLS, TransductiveRankRLS, RankingPursuit or ConditionalRankRLS, linear or
        with kernels of `rankrls.kernels`. Steps before it may be TableEncoder, StandardScaler, MinMaxScaler,
        MaxAbsScaler, RobustScaler, Normalizer, SimpleImputer, OneHotEncoder, QuantileTransformer, ColumnTransformer of
        these, or FunctionTransformer of log1p, log, exp, sqrt or abs. If the first step takes text, the graph has one
        input per column of the table instead of `X`, of the same name and shape (N, 1): text, empty where missing, or
        numbers, NaN where missing. An AutoRanker with `relative=True` ranks rows within their query, so it needs whole
        queries, and has another input `qid` (N,) of int64, the query of each row; `qid` (1,) means that all rows are
        one query.
    names : list of str, default=None
        Features in the order of the columns, stored as metadata `features` (JSON); None: as in `linear`.
    name : str, default="rankrls"
    Name of the graph.
    dtype : {"float64", "float32"}, default="float64"
        Type of the features, the scores and everything between.

    Returns
    -------
    model : onnx.ModelProto
        Write it with `onnx.save(model, "model.onnx")`, or pass `model.SerializeToString()` to
        `onnxruntime.InferenceSession`. Kernel values of all rows are in memory at once, so score many rows in batches.

    Raises
    ------
    ValueError
        If the scores are not a function of the features of one document: scaling within queries, precomputed kernels,
        Python functions.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS, export
    >>> X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    >>> model = RankRLS(alpha=1.0, kernel="rbf").fit(X, y)
    >>> graph = export.to_onnx(model)
    >>> [node.op_type for node in graph.graph.node]
    ['Div', 'Sub', 'Mul', 'ReduceSum', 'MatMul', 'Mul', 'Sub', 'Sub', 'Min', 'Exp', 'MatMul', 'Add', 'Squeeze']
    """
    onnx = _onnx()
    if dtype not in ("float64", "float32"):
        raise ValueError(f'dtype must be "float64" or "float32", got {dtype!r}')
    scalers, ranker = scalers_of(model), ranker_of(model)
    if isinstance(ranker, ConditionalRankRLS):
        if scalers:
            raise ValueError("a relation is exported by itself, without steps before it")
        return relation_model(OnnxGraph(onnx, dtype), ranker, name, _kernel_values)
    n = getattr([*scalers, ranker][0], "n_features_in_", 0)  # 0 if it is not fitted, which is reported below
    steps = [*scalers, ranker.encoder_] if getattr(ranker, "encoder_", None) is not None else scalers
    table = encoders.table_of(steps[0]) if steps else None
    if table is not None and "scores" in table.used:
        raise ValueError("a column of the table is named 'scores', like the output of the graph: rename the column")
    graph = OnnxGraph(onnx, dtype, taken=() if table is None else table.names)
    x: Any = "X"
    if table is not None:
        x = table.names if isinstance(steps[0], ColumnTransformer) else {name: name for name in table.names}
    for step in steps:
        x = _scaled(graph, x, step)
    several = _scores(graph, x, ranker)
    taken: dict[str, tuple[Sequence[Any], bool]] = {"X": ([ROWS, n], False)}
    if table is not None:
        taken = {column: ([ROWS, 1], column in table.text) for column in table.used}
    made = graph.model(name, taken, [ROWS, *several], queries=needs_queries(ranker))
    features = feature_names(model, n, names) if table is None else table.used
    onnx.helper.set_model_props(made, {"features": json.dumps(features, ensure_ascii=False)})
    onnx.checker.check_model(made, full_check=True)
    return made


def _scores(graph: OnnxGraph, x: str, ranker: BaseEstimator) -> list[int]:
    """Add the node `scores`; returns its shape beyond the rows, [] or [n_targets]."""
    if isinstance(ranker, AutoRanker) and getattr(ranker, "columns_", None) is not None:
        kernel_values = lambda graph, x, points, kernel: KERNELS[type(kernel)](graph, x, points, kernel)
        graph.op("Squeeze", auto.stacked(graph, x, ranker, kernel_values), graph.axes(1), output="scores")
        return []
    terms, intercept = terms_of(ranker)
    parts = [_term(graph, x, term) for term in terms]
    total = graph.op("Sum", *parts) if len(parts) > 1 else parts[0]
    total = graph.op("Add", total, graph.constant(intercept))
    if terms[0].coef.ndim > 1:
        graph.op("Identity", total, output="scores")
        return [terms[0].coef.shape[1]]
    graph.op("Squeeze", total, graph.axes(1), output="scores")
    return []


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError("ONNX models are written by the package onnx: pip install 'rankrls[onnx]'") from None
    return onnx


# ---------------------------------------------------------------- scalers


def _scaled(graph: OnnxGraph, x: str, step: BaseEstimator) -> str:
    """Add the nodes of a step before the ranker; returns the name of the result."""
    if isinstance(step, TableEncoder):
        if isinstance(x, str):  # a matrix of numbers from an earlier step
            raise ValueError("TableEncoder takes the columns of a table, so it must be the first step")
        return encoders.encoded(graph, step, x)
    if isinstance(step, ColumnTransformer):
        return encoders.column_transformed(graph, x, step, _scaled)
    if isinstance(step, preprocessing.OneHotEncoder):
        return encoders.one_hot(graph, x, step)
    x = encoders.joined(graph, x)
    if isinstance(step, preprocessing.QuantileTransformer):
        return encoders.quantile_transformed(graph, x, step)
    if isinstance(step, preprocessing.FunctionTransformer):
        return encoders.function(graph, x, step)
    if isinstance(step, preprocessing.Normalizer):
        return _normalised(graph, x, step.norm)
    if isinstance(step, impute.SimpleImputer):
        return _imputed(graph, x, step)
    n = step.n_features_in_
    scale, shift = (np.broadcast_to(value, (1, n)) for value in affine(step))
    centre = graph.rounded(-shift / scale)
    if shift.any():
        x = graph.op("Sub", x, graph.constant(centre))
    x = graph.op("Mul" if n > 1 else "MatMul", x, graph.constant(scale))
    if shift.any():
        x = graph.op("Add", x, graph.constant(shift + centre * scale))
    if getattr(step, "clip", False):
        low, high = getattr(step, "feature_range", (-1, 1))
        x = graph.op("Clip", x, graph.constant(low), graph.constant(high))
    return x


def _normalised(graph: OnnxGraph, x: str, norm: str) -> str:
    """Rows divided by their norm; rows of norm 0 are unchanged."""
    if norm == "l2":
        size = graph.op("Sqrt", graph.op("ReduceSum", graph.op("Mul", x, x), graph.axes(1)))
    elif norm == "l1":
        size = graph.op("ReduceSum", graph.op("Abs", x), graph.axes(1))
    else:
        size = graph.op("ReduceMax", graph.op("Abs", x), axes=[1])
    return graph.op("Div", x, graph.op("Max", size, graph.constant(np.finfo(graph.dtype).tiny)))


def _imputed(graph: OnnxGraph, x: str, step: impute.SimpleImputer) -> str:
    missing = step.missing_values
    if not (isinstance(missing, float) and np.isnan(missing)) or step.add_indicator:
        raise ValueError("a SimpleImputer can be exported only if it imputes NaN and adds no indicators")
    fill = np.asarray(step.statistics_, dtype=np.float64)
    if np.isnan(fill).any():
        raise ValueError("SimpleImputer drops columns that were empty: set keep_empty_features=True")
    return graph.op("Where", graph.op("IsNaN", x), graph.constant(fill), x)


# ---------------------------------------------------------------- kernels


def _term(graph: OnnxGraph, x: str, term: Term) -> str:
    if not (isinstance(term.columns, slice) and term.columns == slice(None)):
        columns = term.columns
        numbers = np.arange(columns.start, columns.stop) if isinstance(columns, slice) else columns
        x = graph.op("Gather", x, graph.constant(numbers, np.int64), axis=1)
    if term.kernel is not None:
        x = _kernel_values(graph, x, term)
    return graph.op("MatMul", x, graph.constant(term.coef.reshape(len(term.coef), -1)))


def _kernel_values(graph: OnnxGraph, x: str, term: Term) -> str:
    kernel, points = term.kernel, dense(term.points)
    if isinstance(kernel, Scaled):
        x, points = graph.op("Div", x, graph.constant(kernel.scale)), points / kernel.scale
        kernel = kernel.kernel
    if type(kernel) not in KERNELS:
        raise ValueError(f"the kernel {kernel} cannot be exported: use one of rankrls.kernels")
    return KERNELS[type(kernel)](graph, x, points, kernel)


def _gaussian(graph: OnnxGraph, x: str, points: np.ndarray, kernel: Gaussian) -> str:
    """exp(min(2 gamma u'v - gamma |u|^2 - gamma |v|^2, 0)), u = x - c, v = z - c."""
    centre, gamma = graph.rounded(points.mean(axis=0)), kernel.gamma
    v = points - centre
    u = graph.op("Sub", x, graph.constant(centre))
    square = graph.op("ReduceSum", graph.op("Mul", u, u), graph.axes(1))
    K = graph.op("MatMul", u, graph.constant(2 * gamma * v.T))
    K = graph.op("Sub", K, graph.op("Mul", square, graph.constant(gamma)))
    K = graph.op("Sub", K, graph.constant(gamma * (v * v).sum(axis=1)))
    return graph.op("Exp", graph.op("Min", K, graph.constant(0.0)))


def _polynomial(graph: OnnxGraph, x: str, points: np.ndarray, kernel: Polynomial) -> str:
    K = graph.op("MatMul", x, graph.constant(kernel.gamma * points.T))
    K = graph.op("Add", K, graph.constant(kernel.coef0))
    return graph.op("Pow", K, graph.constant(kernel.degree))


def _laplacian(graph: OnnxGraph, x: str, points: np.ndarray, kernel: Any) -> str:
    """exp(-gamma sum_j |x_j - z_j|), the sum feature by feature."""
    onnx, r = graph.onnx, len(points)
    node, shape = onnx.helper.make_node, [ROWS, r]
    body = onnx.helper.make_graph(
        [
            node("Unsqueeze", ["x", "last"], ["column"]),
            node("Sub", ["column", "z"], ["difference"]),
            node("Abs", ["difference"], ["distance"]),
            node("Add", ["before", "distance"], ["after"]),
        ],
        "feature",
        [graph.tensor("before", shape), graph.tensor("x", shape[:1]), graph.tensor("z", shape[1:])],
        [graph.tensor("after", shape)],
        initializer=[onnx.numpy_helper.from_array(np.array([1]), "last")],
    )
    zero = onnx.numpy_helper.from_array(np.zeros(1, dtype=graph.dtype))
    size = graph.op("Concat", graph.op("Shape", x, end=1), graph.axes(r), axis=0)
    start = graph.op("ConstantOfShape", size, value=zero)
    inputs = start, x, graph.constant(points)
    D = graph.op("Scan", *inputs, body=graph.body(body), num_scan_inputs=2, scan_input_axes=[1, 1])
    return graph.op("Exp", graph.op("Mul", D, graph.constant(-kernel.gamma)))


def _cosine(graph: OnnxGraph, x: str, points: np.ndarray, kernel: Cosine) -> str:
    length = np.sqrt((points * points).sum(axis=1, keepdims=True))
    unit = points / np.where(length > 0, length, 1)
    return graph.op("MatMul", _normalised(graph, x, "l2"), graph.constant(unit.T))


KERNELS: dict[type, Callable[[OnnxGraph, str, np.ndarray, Any], str]] = {
    Gaussian: _gaussian,
    Polynomial: _polynomial,
    Laplacian: _laplacian,
    Cosine: _cosine,
}
