"""AutoRanker as nodes of an ONNX graph: scores of columns, curves, ramps and pairs, kernels, and their weighted sum.

Ranks within the query need the other rows of it: a row's mid-rank is (rows below it + rows not above it) / 2, counted
among the rows of the same `qid`, column by column, in memory of (N, N).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..auto import AutoRanker
from ..auto.additive import PAIR_CURVES, AdditiveMap
from ..auto.candidates import EffectKernel
from ..auto.functions import CENTRES, WIDTH
from ..auto.kernelmap import KernelMap
from ..auto.rows import Scores
from ..kernels import Gaussian, Laplacian
from ..tables import ColumnMaps
from ..tables.columns import END
from .encoders import normal_quantile
from .graph import OnnxGraph

QID = "qid"  # the input of query ids


def stacked(graph: OnnxGraph, x: str, ranker: AutoRanker, kernel_values: Any) -> str:
    """(N, 1) the scores of a fitted AutoRanker for rows x."""
    maps = ScoreNodes(graph, column_scores(graph, x, ranker.columns_), kernel_values)
    parts = [maps.part(part.map, part.weight * np.asarray(part.coef, dtype=np.float64)) for part in ranker.parts_]
    return added(graph, parts) if parts else graph.op("MatMul", x, graph.constant(np.zeros((ranker.n_features_in_, 1))))


# ---------------------------------------------------------------- columns


def column_scores(graph: OnnxGraph, x: str, maps: ColumnMaps) -> str:
    """(N, n) the scores of columns, as `ColumnMaps.scores` gives them."""
    knots = zip(maps.columns_, maps.values_, maps.scores_, strict=True)
    parts = [_interpolated(graph, _column(graph, x, int(i)), values, scores) for i, values, scores in knots]
    if maps.relative:
        parts.append(_rank_scores(graph, graph.op("Gather", x, graph.constant(maps.columns_, np.int64), axis=1), maps))
    if len(maps.missing_):
        parts.append(
            graph.cast(graph.op("IsNaN", graph.op("Gather", x, graph.constant(maps.missing_, np.int64), axis=1)))
        )
    joined = graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    return graph.op("Div", joined, graph.constant(maps.scale_[None]))


def _column(graph: OnnxGraph, x: str, i: int) -> str:
    return graph.op("Gather", x, graph.constant([i], np.int64), axis=1)


def _interpolated(graph: OnnxGraph, x: str, values: np.ndarray, scores: np.ndarray) -> str:
    """The score of the last knot up to x and what comes on top of it; the ends beyond the knots, 0 where missing."""
    slope = np.diff(scores) / np.diff(values)
    start = np.concatenate([values[:1], values, values[-1:]])
    base, rate = np.concatenate([[-END], scores, [END]]), np.concatenate([[0.0], slope, [0.0, 0.0]])
    i = graph.op("Add", graph.count("GreaterOrEqual", x, values), graph.count("Greater", x, values[-1:]))
    at = [graph.op("Gather", graph.constant(v), i, axis=0) for v in (base, rate, start)]
    y = graph.op("Add", at[0], graph.op("Mul", at[1], graph.op("Sub", x, at[2])))
    return graph.op("Where", graph.op("IsNaN", x), graph.constant([0.0]), y)


def _rank_scores(graph: OnnxGraph, x: str, maps: ColumnMaps) -> str:
    """(N, n) normal scores of the mid-ranks within the query."""
    known = zip(maps.values_, maps.scores_, strict=True)
    middle = np.array([np.interp(0.0, scores, values) for values, scores in known])
    x = graph.op("Where", graph.op("IsNaN", x), graph.constant(middle[None]), x)
    rows = graph.op("Shape", x, end=1)
    same = graph.op("Equal", graph.op("Unsqueeze", QID, graph.axes(1)), graph.op("Unsqueeze", QID, graph.axes(0)))
    same = graph.op("Expand", graph.cast(same), graph.op("Concat", rows, rows, axis=0))  # (N, N)
    below = graph.op(
        "Scan", x, body=_rows_below(graph, same), num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1]
    )
    size = graph.op("ReduceSum", same, graph.axes(1))
    level = graph.op("Div", below, graph.op("MatMul", size, graph.constant([[2.0]])))
    return graph.op("Clip", normal_quantile(graph, level), graph.constant(-END), graph.constant(END))


def _rows_below(graph: OnnxGraph, same: str) -> Any:
    """A column (N,) -> of each row, how many of its query are below it, plus how many are not above it."""
    onnx, kind = graph.onnx, graph.onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)
    node = onnx.helper.make_node
    return onnx.helper.make_graph(
        [
            node("Unsqueeze", ["x", "last"], ["down"]),
            node("Unsqueeze", ["x", "first"], ["across"]),
            node("Less", ["across", "down"], ["less"]),
            node("LessOrEqual", ["across", "down"], ["most"]),
            node("Cast", ["less"], ["a"], to=kind),
            node("Cast", ["most"], ["b"], to=kind),
            node("Add", ["a", "b"], ["both"]),
            node("Mul", ["both", same], ["here"]),
            node("ReduceSum", ["here", "last"], ["count"], keepdims=0),
        ],
        "column",
        [graph.tensor("x", ["N"])],
        [graph.tensor("count", ["N"])],
        initializer=[onnx.numpy_helper.from_array(np.array([i]), name) for i, name in ((0, "first"), (1, "last"))],
    )


# ---------------------------------------------------------------- candidates


@dataclass
class ScoreNodes:
    """Functions of the scores of columns, each computed once."""

    graph: OnnxGraph
    N: str  # (N, n) scores
    kernel_values: Any
    _made: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def part(self, features: object, coef: np.ndarray) -> str:
        """(N, 1) map(N) @ coef."""
        if isinstance(features, Scores):
            weights = coef if features.directions is None else features.directions.astype(np.float64) @ coef
            return self.graph.op("MatMul", self.N, self.graph.constant(weights[:, None]))
        if isinstance(features, AdditiveMap):
            return added(self.graph, [node for node in self.blocks(features, coef) if node is not None])
        if isinstance(features, KernelMap):
            return self.kernel(self.N, features, coef)
        if isinstance(features, EffectKernel):
            return self.kernel(self.contributions(features), features.kernel, coef)
        raise ValueError(
            f"the candidate {type(features).__name__} cannot be written down: leave it out by candidates=[...], or "
            "serve the model from its file (rankrls.load)"
        )

    def kernel(self, x: str, features: KernelMap, coef: np.ndarray) -> str:
        if features.W is not None:
            coef = features.W.astype(np.float64) @ coef
        x = self.graph.op("Gather", x, self.graph.constant(features.columns, np.int64), axis=1)
        several = len(features.weights) > 1
        weights = self.graph.constant(features.weights[None].astype(np.float64))
        x = self.graph.op("Mul" if several else "MatMul", x, weights)
        kernel = Laplacian(1 / features.width) if features.l1 else Gaussian(1 / (2 * features.width))
        K = self.kernel_values(self.graph, x, features.points.astype(np.float64), kernel)
        return self.graph.op("MatMul", K, self.graph.constant(coef[:, None]))

    def contributions(self, features: EffectKernel) -> str:
        """(N, blocks + 1) what the largest blocks contribute, and all others together."""
        effects = features.effects
        nodes = self.blocks(effects.additive, np.asarray(effects.coef, dtype=np.float64))
        none = np.zeros((len(effects.additive.curves.scale), 1))
        zero = lambda: self.graph.op("MatMul", self.N, self.graph.constant(none))
        rest = [node for b, node in enumerate(nodes) if node is not None and b not in set(effects.blocks.tolist())]
        largest = [nodes[b] or zero() for b in effects.blocks.tolist()]
        return self.graph.op("Concat", *largest, added(self.graph, rest) if rest else zero(), axis=1)

    def blocks(self, features: AdditiveMap, coef: np.ndarray) -> list[str | None]:
        """(N, 1) for each block what it contributes; None for those whose weights are zero."""
        weights = coef * features.scale
        k = min(features.curves.size, PAIR_CURVES)
        n_curves = len(features.columns) + len(features.pairs)
        found: list[str | None] = []
        for b, (members, start, size) in enumerate(zip(features.members, features.starts, features.sizes, strict=True)):
            w = weights[start : start + size]
            if not w.any():
                found.append(None)
                continue
            basis = self._curves if b < n_curves else self._ramps
            A = [basis(features, column) for column in members]
            if len(members) == 1:
                found.append(self.graph.op("MatMul", A[0], self.graph.constant(w[:, None])))
                continue
            B = w.reshape(int(np.sqrt(size)), -1)
            if b < n_curves and k < features.curves.size:
                B = np.pad(B, (0, features.curves.size - k))
            product = self.graph.op("Mul", self.graph.op("MatMul", A[0], self.graph.constant(B)), A[1])
            found.append(self.graph.op("ReduceSum", product, self.graph.axes(1)))
        return found

    def _curves(self, features: AdditiveMap, column: int) -> str:
        """(N, k) the curves of a column."""
        curves, key = features.curves, ("curves", id(features.curves), column)
        if key not in self._made:
            E = self.graph.op("Sub", _column(self.graph, self.N, column), self.graph.constant(CENTRES[None]))
            E = self.graph.op(
                "Div", self.graph.op("Mul", E, E), self.graph.constant(np.full((1, len(CENTRES)), -2 * WIDTH**2))
            )
            W = curves.W.astype(np.float64) / curves.scale[column]
            shift = curves.mean[column].astype(np.float64) / curves.scale[column]
            A = self.graph.op("MatMul", self.graph.op("Exp", E), self.graph.constant(W))
            self._made[key] = self.graph.op("Sub", A, self.graph.constant(shift[None]))
        return self._made[key]

    def _ramps(self, features: AdditiveMap, column: int) -> str:
        """(N, 15) ramps and steps of a column."""
        ramps, key = features.ramps, ("ramps", id(features.ramps), column)
        if key not in self._made:
            x = _column(self.graph, self.N, column)
            above = self.graph.op("Sub", x, self.graph.constant(ramps.knots[column][None].astype(np.float64)))
            step = self.graph.cast(self.graph.op("Greater", above, self.graph.constant([0.0])))
            A = self.graph.op("Concat", x, self.graph.op("Relu", above), step, axis=1)
            A = self.graph.op("Sub", A, self.graph.constant(ramps.mean[column][None]))
            self._made[key] = self.graph.op("Mul", A, self.graph.constant(ramps.scale[column][None]))
        return self._made[key]


def added(graph: OnnxGraph, nodes: list[str]) -> str:
    """The sum of some nodes."""
    return graph.op("Sum", *nodes) if len(nodes) > 1 else nodes[0]
