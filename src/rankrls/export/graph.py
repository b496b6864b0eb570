"""An ONNX graph, built node by node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..system.types import ArrayLike, DTypeLike

ML = "ai.onnx.ml"  # domain of the operators for text
OPSET, ML_OPSET, IR_VERSION = 17, 2, 8  # understood by onnxruntime from 1.12 on
LIMIT = 2**31 - 1  # largest protobuf message in bytes


class OnnxGraph:
    """Nodes and constants in the order they are added; names in `taken`, those of the inputs, are avoided."""

    def __init__(self, onnx: ModuleType, dtype: str, limit: int = LIMIT, taken: Collection[str] = ()):
        self.limit, self.taken = limit, taken
        self.onnx, self.dtype = onnx, np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.size = 0

    def constant(self, value: ArrayLike, dtype: DTypeLike | None = None) -> str:
        """Add a constant, by default of the graph's type; returns its name."""
        with np.errstate(over="ignore"):  # overflow is checked below
            array = np.ascontiguousarray(value, dtype=dtype or self.dtype).reshape(np.shape(value))
        if not np.isfinite(array).all():
            raise ValueError(
                "the model has numbers that are not finite, or too large for this dtype, and cannot be exported"
            )
        self.size += array.nbytes
        if self.size > self.limit:
            raise ValueError(
                "the model is larger than the 2 GiB of an ONNX file: fit with a basis, e.g. kernel='rbf', basis=500"
            )
        name = self.free(f"c{len(self.constants)}")
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return self.constants[-1].name

    def free(self, name: str) -> str:
        """The name itself, or a variant of it if an input already has it."""
        while name in self.taken:
            name += "_"
        return name

    def body(self, inner: Any) -> Any:
        """The graph inside a node, with names changed that inputs of the model already have."""
        tensors = [*inner.input, *inner.output, *inner.initializer]
        own = {tensor.name for tensor in tensors}.union(*(node.output for node in inner.node))
        for tensor in tensors:
            tensor.name = self.free(tensor.name)
        for node in inner.node:
            node.input[:] = [self.free(name) if name in own else name for name in node.input]
            node.output[:] = [self.free(name) for name in node.output]
        return inner

    def rounded(self, value: np.ndarray) -> np.ndarray:
        """The value in the precision of the graph."""
        return value.astype(self.dtype).astype(np.float64)

    def axes(self, *numbers: int) -> str:
        """Axis numbers, as nodes expect them."""
        return self.constant(numbers, np.int64)

    def op(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; returns the name of its result."""
        output = output or self.free(f"v{len(self.nodes)}")
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def cast(self, x: str) -> str:
        """Booleans turned into 0 and 1."""
        return self.op("Cast", x, to=self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype))

    def count(self, comparison: str, x: str, values: np.ndarray) -> str:
        """(N, 1) for how many of the values a comparison with x (N, 1) holds."""
        hits = self.op(comparison, x, self.constant(values[None]))
        return self.op("ReduceSum", self.op("Cast", hits, to=self.onnx.TensorProto.INT64), self.axes(1))

    def tensor(self, name: str, shape: Sequence[Any], text: bool = False) -> Any:
        """An input or output."""
        kind = self.onnx.TensorProto.STRING if text else self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype)
        return self.onnx.helper.make_tensor_value_info(name, kind, list(shape))

    def model(
        self, name: str, taken: dict[str, tuple[Sequence[Any], bool]], given: Sequence[Any], *, queries: bool = False
    ) -> Any:
        """The whole model; with `queries`, it has an input `qid`, one number per row or one for all rows."""
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
