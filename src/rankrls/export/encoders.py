"""Encoders of tables as nodes of an ONNX graph: comparisons, look-ups, products and sums, as Python does them.

Each column of a table is an input of the same name and shape (N, 1): strings for columns of text, numbers for all
others. A missing number is NaN, a missing text is empty; a date is the number of days since 1970-01-01.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn import preprocessing
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from ..tables import TableEncoder
from ..tables.maps import LevelMap, NumberMap, Quantiles, RelativeMap, Standard, TargetMap
from ..tables.reading import TEXT
from .graph import ML, OnnxGraph

TINY = 1e-7  # scikit-learn's QuantileTransformer treats values closer than this to an end as the end


@dataclass(frozen=True)
class LookupTable:
    """The columns of a table that are inputs of a graph."""

    names: list[str]  # in the order of the first step
    text: set[str]
    used: list[str]  # those on which the scores depend


def table_of(step: BaseEstimator) -> LookupTable | None:
    """The columns that the first step takes one by one; None if it takes a matrix of numbers."""
    if isinstance(step, TableEncoder):
        names = getattr(step, "feature_names_in_", [f"x{j}" for j in range(step.n_features_in_)])
        maps = {made.name for made in step.maps_}
        used = [str(name) for name in names if name in maps]
        return LookupTable(used, {n for n, k in step.kinds_.items() if k == TEXT}, used)
    if not isinstance(step, ColumnTransformer):
        return None
    names = [str(name) for name in getattr(step, "feature_names_in_", range(step.n_features_in_))]
    text = set()
    for label, transformer, _ in step.transformers_:
        first = transformer.steps[0][1] if isinstance(transformer, Pipeline) else transformer
        if isinstance(first, preprocessing.OneHotEncoder):
            places = step._transformer_to_input_indices[label]
            pairs = zip(places, first.categories_, strict=True)
            text |= {names[j] for j, levels in pairs if levels.dtype.kind in "OUS" and isinstance(levels[0], str)}
    wanted = {
        j for label, t, _ in step.transformers_ if not _is_dropped(t) for j in step._transformer_to_input_indices[label]
    }
    return LookupTable(names, text, [name for j, name in enumerate(names) if j in wanted]) if text else None


def _is_dropped(transformer: Any) -> bool:
    return isinstance(transformer, str) and transformer == "drop"


# ---------------------------------------------------------------- our encoder


def encoded(graph: OnnxGraph, step: TableEncoder, columns: dict[str, str]) -> str:
    """The encoded columns side by side."""
    parts = []
    for made in step.maps_:
        x = columns[made.name]
        if isinstance(made, RelativeMap):
            raise ValueError(
                f"column {made.name!r} is encoded relative to the query, which needs all documents of the query at "
                "once: train with TableEncoder(relative=False)"
            )
        if isinstance(made, NumberMap):
            parts += _numbers(graph, x, made)
        elif isinstance(made, LevelMap):
            width = len(made.names)
            parts.append(_looked_up(graph, x, made.levels, np.eye(len(made.levels) + 2)[:, :width]))
        elif isinstance(made, TargetMap):
            parts.append(_looked_up(graph, x, made.levels, made.values))
    return graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _numbers(graph: OnnxGraph, x: str, made: NumberMap) -> list[str]:
    missing = graph.op("IsNaN", x)
    parts = []
    if isinstance(made.curve, Standard):
        y = graph.op("Sub", x, graph.constant([made.curve.mean]))
        y = graph.op("Mul", y, graph.constant([made.curve.scale]))
        parts.append(graph.op("Where", missing, graph.constant([0.0]), y))
    elif isinstance(made.curve, Quantiles):
        known = graph.op("Where", missing, graph.constant(made.curve.knots[:1]), x)
        parts.append(graph.op("Where", missing, graph.constant([0.0]), _interpolated(graph, known, made.curve)))
    if made.indicator:
        parts.append(graph.cast(missing))
    return parts


def _interpolated(graph: OnnxGraph, x: str, curve: Quantiles) -> str:
    """y_i + slope_i (x - knot_i), i the number of knots up to x."""
    ends = graph.constant(curve.knots[:1]), graph.constant(curve.knots[-1:])
    x = graph.op("Min", graph.op("Max", x, ends[0]), ends[1])
    i = graph.op("Sub", graph.count("GreaterOrEqual", x, curve.knots), graph.axes(1))
    at = [graph.op("Gather", graph.constant(v), i, axis=0) for v in (curve.values, curve.slopes, curve.knots)]
    return graph.op("Add", at[0], graph.op("Mul", at[1], graph.op("Sub", x, at[2])))


def _looked_up(graph: OnnxGraph, x: str, levels: np.ndarray, table: np.ndarray) -> str:
    """The row of a table for each level; the last but one for missing values, the last for unknown levels."""
    k = len(levels)
    keys = [*levels.tolist(), ""]
    code = graph.op(
        "LabelEncoder", x, domain=ML, keys_strings=keys, values_int64s=list(range(k + 1)), default_int64=k + 1
    )
    return graph.op("Gather", graph.constant(table), graph.op("Squeeze", code, graph.axes(1)), axis=0)


# ---------------------------------------------------------------- encoders of scikit-learn


def column_transformed(
    graph: OnnxGraph, x: str, step: ColumnTransformer, scaled: Callable[[Any, Any, Any], str]
) -> str:
    """Each transformer applied to its columns, side by side; x is a matrix, or a list of columns."""
    places = step._transformer_to_input_indices
    parts = []
    for label, transformer, _ in step.transformers_:
        if _is_dropped(transformer) or not len(places[label]):
            continue
        part: Any = picked(graph, x, list(places[label]))
        steps = [one for _, one in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
        for one in steps:
            if not (one is None or (isinstance(one, str) and one == "passthrough")):
                part = scaled(graph, part, one)
        parts.append(joined(graph, part))
    return graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def picked(graph: OnnxGraph, x: str, places: list[int]) -> Any:
    """Some columns of a matrix or of a list of columns."""
    if isinstance(x, list):
        return [x[j] for j in places]
    return graph.op("Gather", x, graph.constant(places, np.int64), axis=1)


def joined(graph: OnnxGraph, x: str) -> str:
    """Columns as a matrix."""
    if not isinstance(x, list):
        return x
    return graph.op("Concat", *x, axis=1) if len(x) > 1 else x[0]


def one_hot(graph: OnnxGraph, x: str, step: preprocessing.OneHotEncoder) -> str:
    """A 0/1 column for each level, in the encoder's order; unknown levels are 0 everywhere."""
    if step.handle_unknown == "infrequent_if_exist":
        raise ValueError('OneHotEncoder(handle_unknown="infrequent_if_exist") cannot be exported: use "ignore"')
    parts = []
    for j, (levels, table) in enumerate(zip(step.categories_, _layout(step), strict=True)):
        column = x[j] if isinstance(x, list) else graph.op("Gather", x, graph.constant([j], np.int64), axis=1)
        if isinstance(levels[0], str):
            padded = np.vstack([table, np.zeros((2, table.shape[1]))])
            parts.append(_looked_up(graph, column, levels, padded))
            continue
        numbers = np.asarray(levels, dtype=np.float64)
        if np.isnan(numbers).any():
            raise ValueError("OneHotEncoder with NaN among its levels cannot be exported: impute before it")
        hit = graph.cast(graph.op("Equal", column, graph.constant(numbers[None])))
        parts.append(graph.op("MatMul", hit, graph.constant(table)))
    return graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _layout(step: preprocessing.OneHotEncoder) -> list[np.ndarray]:
    """For each feature, (levels, columns): which columns each level sets."""
    first = np.array([levels[0] for levels in step.categories_], dtype=object)
    ends = np.cumsum([0, *step._n_features_outs])
    tables = []
    for j, levels in enumerate(step.categories_):
        rows = np.repeat(first[None], len(levels), axis=0)
        rows[:, j] = levels
        plain = rows if any(isinstance(value, str) for value in first) else rows.astype(np.float64)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            made = step.transform(plain)
        dense = made.toarray() if hasattr(made, "toarray") else np.asarray(made)
        tables.append(dense[:, ends[j] : ends[j + 1]].astype(np.float64))
    return tables


def quantile_transformed(graph: OnnxGraph, x: str, step: preprocessing.QuantileTransformer) -> str:
    """scikit-learn's mean of the interpolations from below and from above, column by column."""
    parts = []
    for j, knots in enumerate(step.quantiles_.T):
        column = graph.op("Gather", x, graph.constant([j], np.int64), axis=1)
        parts.append(_quantile(graph, column, knots, step.references_, step.output_distribution == "normal"))
    p = graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    return normal_quantile(graph, p) if step.output_distribution == "normal" else p


def _quantile(graph: OnnxGraph, x: str, quantiles: np.ndarray, references: np.ndarray, normal: bool) -> str:
    """Linear between knots; at a repeated knot, the middle of the jump. Takes 2 k + 1 pieces."""
    knots, first = np.unique(quantiles, return_index=True)
    last = np.append(first[1:], len(quantiles)) - 1
    low, high = references[first], references[last]
    slope = (low[1:] - high[:-1]) / np.diff(knots)
    x0, y0, rate = (np.zeros(2 * len(knots) + 1) for _ in range(3))
    x0[0], y0[0], x0[-1], y0[-1] = knots[0], 0.0, knots[-1], 1.0
    x0[1::2], y0[1::2] = knots, (low + high) / 2
    x0[2:-1:2], y0[2:-1:2], rate[2:-1:2] = knots[:-1], high[:-1], slope
    i = graph.op("Add", graph.count("GreaterOrEqual", x, knots), graph.count("Greater", x, knots))
    at = [graph.op("Gather", graph.constant(v), i, axis=0) for v in (y0, rate, x0)]
    p = graph.op("Add", at[0], graph.op("Mul", at[1], graph.op("Sub", x, at[2])))
    near = TINY if normal else 0.0
    upper, lower = (graph.constant(v) for v in (quantiles[-1:] - near, quantiles[:1] + near))
    p = graph.op("Where", graph.op("Greater" if normal else "GreaterOrEqual", x, upper), graph.constant([1.0]), p)
    return graph.op("Where", graph.op("Less" if normal else "LessOrEqual", x, lower), graph.constant([0.0]), p)


# Wichura's algorithm AS 241: the normal quantile to 16 digits as quotients of polynomials, here for the middle
# (|p - 1/2| <= 0.425) and for the tails that scikit-learn does not clip.
_MIDDLE = (
    [3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3],
    [1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
     3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3],
)  # fmt: skip
_TAIL = (
    [1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4],
    [1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
     1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9],
)  # fmt: skip


def normal_quantile(graph: OnnxGraph, p: str) -> str:
    """ndtri(p), p clipped as scikit-learn clips it."""
    least = TINY - np.spacing(1)
    assert abs(ndtri(least)) < 5.2  # the range in which the two quotients suffice
    ends = graph.constant([least]), graph.constant([1 - least])
    p = graph.op("Min", graph.op("Max", p, ends[0]), ends[1])
    q = graph.op("Sub", p, graph.constant([0.5]))
    middle = graph.op("Sub", graph.constant([0.425**2]), graph.op("Mul", q, q))
    middle_z = graph.op("Mul", q, _quotient(graph, graph.op("Max", middle, graph.constant([0.0])), _MIDDLE))
    tail = graph.op("Min", p, graph.op("Sub", graph.constant([1.0]), p))
    r = graph.op("Sqrt", graph.op("Neg", graph.op("Log", tail)))
    tail_z = graph.op("Mul", graph.op("Sign", q), _quotient(graph, graph.op("Sub", r, graph.constant([1.6])), _TAIL))
    near = graph.op("LessOrEqual", graph.op("Abs", q), graph.constant([0.425]))
    return graph.op("Where", near, middle_z, tail_z)


def _quotient(graph: OnnxGraph, x: str, polynomials: Sequence[Sequence[float]]) -> str:
    def value(coefficients: Sequence[float]) -> str:
        y = graph.constant(coefficients[-1:])
        for c in reversed(coefficients[:-1]):
            y = graph.op("Add", graph.op("Mul", y, x), graph.constant([c]))
        return y

    return graph.op("Div", value(polynomials[0]), value(polynomials[1]))


def function(graph: OnnxGraph, x: str, step: preprocessing.FunctionTransformer) -> str:
    """The ONNX form of a NumPy function."""
    func = step.func
    if func is None:
        return x
    if func is np.log1p:  # log(u) x / (u - 1) with u = 1 + x, which restores the digits that a small x loses in u
        u = graph.op("Add", x, graph.constant([1.0]))
        rest = graph.op("Sub", u, graph.constant([1.0]))
        zero = graph.op("Equal", rest, graph.constant([0.0]))
        safe = graph.op("Where", zero, graph.constant([1.0]), rest)
        return graph.op("Where", zero, x, graph.op("Div", graph.op("Mul", graph.op("Log", u), x), safe))
    plain = {np.log: "Log", np.exp: "Exp", np.sqrt: "Sqrt", np.abs: "Abs"}
    if func not in plain:
        raise ValueError(
            f"FunctionTransformer({getattr(func, '__name__', func)}) cannot be exported: use numpy's log1p, log, "
            "exp, sqrt or abs"
        )
    return graph.op(plain[func], x)
