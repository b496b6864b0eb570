"""An ONNX graph, built node by node."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..system.types import ArrayLike, DTypeLike

ML = "ai.onnx.ml"  # the operators that know text
OPSET, ML_OPSET, IR_VERSION = 17, 2, 8  # read by onnxruntime from 1.12 on
LIMIT = 2**31 - 1  # bytes a protobuf message can hold


class OnnxGraph:
    """Nodes and constants, in the order they are added."""

    def __init__(self, onnx: ModuleType, dtype: str, limit: int = LIMIT):
        self.limit = limit
        self.onnx, self.dtype = onnx, np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.size = 0

    def constant(self, value: ArrayLike, dtype: DTypeLike | None = None) -> str:
        """The name of a constant, by default of the type of the graph."""
        with np.errstate(over="ignore"):  # what is too large is found below
            array = np.ascontiguousarray(value, dtype=dtype or self.dtype).reshape(np.shape(value))
        if not np.isfinite(array).all():
            raise ValueError("the model has numbers that are not finite, or not in this dtype; no graph can hold them")
        self.size += array.nbytes
        if self.size > self.limit:
            raise ValueError(
                "the model is larger than the 2 GiB of an ONNX file: fit with a basis, e.g. kernel='rbf', basis=500"
            )
        self.constants.append(self.onnx.numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def rounded(self, value: np.ndarray) -> np.ndarray:
        """The value as the graph will have it."""
        return value.astype(self.dtype).astype(np.float64)

    def axes(self, *numbers: int) -> str:
        """Numbers of dimensions, as nodes take them."""
        return self.constant(numbers, np.int64)

    def op(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """The name of the result of a node."""
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def cast(self, x: str) -> str:
        """Booleans as 0 and 1."""
        return self.op("Cast", x, to=self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype))

    def count(self, comparison: str, x: str, values: np.ndarray) -> str:
        """(N, 1) how many of the values compare so with x (N, 1)."""
        hits = self.op(comparison, x, self.constant(values[None]))
        return self.op("ReduceSum", self.op("Cast", hits, to=self.onnx.TensorProto.INT64), self.axes(1))

    def tensor(self, name: str, shape: Sequence[Any], text: bool = False) -> Any:
        """An input or output."""
        kind = self.onnx.TensorProto.STRING if text else self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype)
        return self.onnx.helper.make_tensor_value_info(name, kind, list(shape))

    def model(
        self, name: str, taken: dict[str, tuple[Sequence[Any], bool]], given: Sequence[Any], *, queries: bool = False
    ) -> Any:
        """The whole model; with `queries`, it has an input `qid`, a number for each row or one for all."""
        from rankrls import __version__

        helper = self.onnx.helper
        inputs = [self.tensor(name, shape, text) for name, (shape, text) in taken.items()]
        if queries:
            inputs.append(helper.make_tensor_value_info("qid", self.onnx.TensorProto.INT64, ["Q"]))
        ends = inputs, [self.tensor("scores", given)]
        domains = [helper.make_opsetid("", OPSET)]
        if any(node.domain == ML for node in self.nodes):
            domains.append(helper.make_opsetid(ML, ML_OPSET))
        return helper.make_model(
            helper.make_graph(self.nodes, name, *ends, initializer=self.constants),
            producer_name="rankrls",
            producer_version=__version__,
            ir_version=IR_VERSION,
            opset_imports=domains,
        )
