"""AutoRanker as nodes of an ONNX graph: scores of columns, curves, ramps and pairs, kernels, and their weighted sum.

Ranks within a query need the other rows of the query: the mid-rank of a row is (rows below it + rows not above it) / 2,
counted among the rows with the same `qid`, column by column, in O(N^2) memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..auto import AutoRanker
from ..auto.additive import PAIR_CURVES, AdditiveMap
from ..auto.fitting import StackPart
from ..auto.functions import CENTRES, WIDTH
from ..auto.kernelmap import CUTS, KernelMap
from ..auto.link import Link
from ..auto.rows import Scores
from ..kernels import Gaussian
from ..tables import ColumnMaps
from ..tables.columns import END
from .encoders import normal_quantile
from .graph import OnnxGraph

QID = "qid"  # name of the input with query ids


def stacked(graph: OnnxGraph, x: str, ranker: AutoRanker, kernel_values: Any) -> str:
    """(N, 1) the scores of a fitted AutoRanker for rows x."""
    maps = ScoreNodes(graph, column_scores(graph, x, ranker.columns_), kernel_values)
    parts = [maps.scores(part) for part in ranker.parts_]
    return added(graph, parts) if parts else graph.op("MatMul", x, graph.constant(np.zeros((ranker.n_features_in_, 1))))


# ---------------------------------------------------------------- columns


def column_scores(graph: OnnxGraph, x: str, maps: ColumnMaps) -> str:
    """(N, n) the scores of columns, as `ColumnMaps.scores` computes them."""
    knots = zip(maps.columns_, maps.values_, maps.scores_, strict=True)
    parts = [_interpolated(graph, _column(graph, x, int(i)), values, scores) for i, values, scores in knots]
    if maps.relative:
        parts.append(_rank_scores(graph, graph.op("Gather", x, graph.constant(maps.columns_, np.int64), axis=1), maps))
    if len(maps.missing_):
        parts.append(
            graph.cast(graph.op("IsNaN", graph.op("Gather", x, graph.constant(maps.missing_, np.int64), axis=1)))
        )
    n = maps.n_scores_
    parts = [graph.op("Div", _joined(graph, parts), graph.constant(maps.scale_[None, :n]))]
    if maps.raw:
        raw = graph.op("Gather", x, graph.constant(maps.columns_, np.int64), axis=1)
        raw = graph.op(
            "Div", graph.op("Sub", raw, graph.constant(maps.mean_[None])), graph.constant(maps.scale_[None, n:])
        )
        parts.append(graph.op("Where", graph.op("IsNaN", raw), graph.constant([0.0]), raw))
    return _joined(graph, parts)


def _joined(graph: OnnxGraph, parts: list[str]) -> str:
    return graph.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _column(graph: OnnxGraph, x: str, i: int) -> str:
    return graph.op("Gather", x, graph.constant([i], np.int64), axis=1)


def _interpolated(graph: OnnxGraph, x: str, values: np.ndarray, scores: np.ndarray) -> str:
    """Linear interpolation between knots, constant beyond them, 0 where x is missing."""
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
    """A function of a column (N,) -> for each row, the rows of its query below it plus those not above it."""
    onnx, kind = graph.onnx, graph.onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)
    node = onnx.helper.make_node
    inner = onnx.helper.make_graph(
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
    return graph.body(inner)


# ---------------------------------------------------------------- candidates


@dataclass
class ScoreNodes:
    """Functions of the scores of columns, each computed once."""

    graph: OnnxGraph
    N: str  # (N, n) scores
    kernel_values: Any
    _made: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def scores(self, part: StackPart) -> str:
        """(N, 1) the weighted scores of a candidate."""
        coef = np.asarray(part.coef, dtype=np.float64)
        if part.link is None:
            return self.part(part.map, part.weight * coef)
        return self.linked(self.part(part.map, coef), part.link, part.weight)

    def linked(self, f: str, link: Link, weight: float) -> str:
        """weight * g(f), as g(t0) + slope before t0 * (f - t0) + changes of slope * (f - t)+ over the knots t."""
        if not len(link.knots):
            return self.graph.op("Mul", f, self.graph.constant(weight * link.slopes))
        above = self.graph.op("Relu", self.graph.op("Sub", f, self.graph.constant(link.knots[None])))
        bent = self.graph.op("MatMul", above, self.graph.constant(weight * np.diff(link.slopes)[:, None]))
        first = self.graph.op("Sub", f, self.graph.constant([link.knots[0]]))
        return self.graph.op("Add", bent, self.graph.op("Mul", first, self.graph.constant([weight * link.slopes[0]])))

    def part(self, features: object, coef: np.ndarray) -> str:
        """(N, 1) map(N) @ coef."""
        if isinstance(features, Scores):
            columns = self.graph.constant(np.arange(features.start, features.stop), np.int64)
            N = self.graph.op("Gather", self.N, columns, axis=1)
            return self.graph.op("MatMul", N, self.graph.constant(features.weights(coef)[:, None]))
        if isinstance(features, AdditiveMap):
            return added(self.graph, [node for node in self.blocks(features, coef) if node is not None])
        if isinstance(features, KernelMap):
            return self.kernel(self.N, features, coef)
        raise ValueError(
            f"the candidate {type(features).__name__} cannot be exported: leave it out with candidates=[...], or "
            "serve the model from its file (rankrls.load)"
        )

    def kernel(self, x: str, features: KernelMap, coef: np.ndarray) -> str:
        graph, weights = self.graph, features.weights.astype(np.float64)
        x = graph.op("Gather", x, graph.constant(features.columns, np.int64), axis=1)
        if features.cut:
            parts = [graph.op("Clip", graph.op("Sub", x, graph.constant([float(t)])), *self._unit) for t in CUTS]
            x = graph.op("Concat", *parts, axis=1)  # in the order of the points' columns
            weights = np.tile(np.sqrt(weights), len(CUTS))
        x = graph.op("Mul" if len(weights) > 1 else "MatMul", x, graph.constant(weights[None]))
        points = features.points.astype(np.float64)
        if features.cut:
            points = points.reshape(len(points), -1, len(CUTS)).transpose(0, 2, 1).reshape(len(points), -1)
        K = self.kernel_values(graph, x, points, Gaussian(1 / features.width))
        return graph.op("MatMul", K, graph.constant(coef[:, None]))

    @property
    def _unit(self) -> tuple[str, str]:
        return self.graph.constant(0.0), self.graph.constant(1.0)

    def blocks(self, features: AdditiveMap, coef: np.ndarray) -> list[str | None]:
        """(N, 1) the contribution of each block; None if its weights are zero."""
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
            if len(members) == 2 and b >= n_curves:
                A = [self.graph.op("Gather", a, self.graph.constant(features.pair_ramps, np.int64), axis=1) for a in A]
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
