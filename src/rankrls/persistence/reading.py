"""The values of a tree of JSON and a list of arrays."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection
from datetime import date, datetime
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.metadata_routing import MetadataRequest

from ..system.imports import imported
from .known import BEFORE, CLASSES, KINDS, METRICS, RENAMED, ROUTING, SPARSE, UFUNCS, ModelFileError

Plain = str | int | float | None


def arrays_of(data: memoryview, places: list[dict[str, Any]]) -> list[np.ndarray]:
    """The arrays of a file; they may not overlap, so together they are no larger than the file."""
    arrays, end = [], 0
    for place in places:
        dtype, shape, offset = np.dtype(checked_dtype(place["dtype"])), place["shape"], place["offset"]
        if not all(isinstance(n, int) and n >= 0 for n in [*shape, offset]) or len(shape) > 32:
            raise ModelFileError(f"an array of shape {shape} at {offset}")
        count = math.prod(shape)
        if offset < end or offset + count * dtype.itemsize > len(data):
            raise ModelFileError(
                f"an array of shape {shape} at {offset}, inside another one or beyond the end of the file"
            )
        end = offset + count * dtype.itemsize
        stored = np.frombuffer(data, dtype, count, offset) if count else np.empty(0, dtype)
        order: Any = "F" if place.get("order") == "F" else "C"
        arrays.append(stored.reshape(shape, order=order).copy(order=order))
    return arrays


def checked_dtype(text: str) -> str:
    if not KINDS.fullmatch(text):
        raise ModelFileError(f"an array of {text!r}")
    return text


class TreeReader:
    """Turns a JSON tree back into values."""

    def __init__(self, arrays: list[np.ndarray], trusted: Collection[str] = ()):
        self.arrays = arrays
        self.kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "int": lambda node: int(self._text(node)),
            "float": lambda node: float(self._text(node)),
            "date": lambda node: date.fromisoformat(self._text(node)),
            "datetime": lambda node: datetime.fromisoformat(self._text(node)),
            "tuple": lambda node: tuple(self.value(node["items"])),
            "dict": lambda node: {self._typed(Plain, k): self.value(v) for k, v in node["items"]},
            "slice": lambda node: slice(*(self._typed(int | None, item) for item in node["items"])),
            "scalar": lambda node: self._typed(np.ndarray, node["array"])[()],
            "dtype": lambda node: np.dtype(checked_dtype(node["text"])),
            "function": lambda node: imported(self._typed(str, node["name"]), trusted),
            "metric": lambda node: METRICS[node["name"]],
            "ufunc": lambda node: UFUNCS[self._typed(str, node["name"])],
            "array": lambda node: self.arrays[node["number"]],
            "objects": self._objects,
            "sparse": self._sparse,
            "object": self._object,
        }

    def value(self, node: object) -> Any:
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("$") not in self.kinds:
            raise ModelFileError(f"unknown kind of value {node.get('$')!r}")
        return self.kinds[node["$"]](node)

    def _typed(self, kind: Any, node: object) -> Any:
        """The value, checked to be of a certain type before it is passed to other code."""
        value = self.value(node)
        if not isinstance(value, kind):
            raise ModelFileError(f"a {type(value).__name__} where another kind of value belongs")
        return value

    def _text(self, node: dict[str, Any]) -> str:
        if len(text := self._typed(str, node["text"])) > 400:
            raise ModelFileError("a number of more than 400 digits")
        return text

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        items = self._typed(list, node["items"])
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # one by one, so that lists among them stay lists
            array[i] = item
        return array.reshape([self._typed(int, n) for n in node["shape"]])

    def _sparse(self, node: dict[str, Any]) -> Any:
        first, *index = (self._typed(np.ndarray, part) for part in node["parts"])
        if first.dtype.kind not in "biufc" or any(part.dtype.kind != "i" for part in index):
            raise ModelFileError(f"a sparse array of {first.dtype}")
        if any(part.ndim != 1 for part in (first, *index)):
            raise ModelFileError("a sparse array of arrays that are not flat")
        make = getattr(sparse, f"{node['format']}_{node['kind']}") if node["format"] in SPARSE else None
        if make is None or node["kind"] not in ("array", "matrix"):
            raise ModelFileError(f"a sparse {node['kind']} of format {node['format']!r}")
        parts = (first, tuple(index)) if node["format"] == "coo" else (first, *index)
        found = make(parts, shape=tuple(self._typed(int, n) for n in node["shape"]))
        if node["format"] != "coo":
            _, pointers = index
            if (pointers[1:] < pointers[:-1]).any():  # check_format checks this too, but not if the last is negative
                raise ModelFileError("a sparse array whose rows end before they begin")
            found.check_format(full_check=True)
        return found

    def _object(self, node: dict[str, Any]) -> Any:
        cls = CLASSES.get(RENAMED.get(node["class"], node["class"]))
        if cls is None:
            raise ModelFileError(f"an object of unknown class {node['class']!r}")
        found: Any = object.__new__(cls)
        for key, item in node["state"].items():
            if not key.isidentifier() or key.startswith("__") or callable(getattr(cls, key, None)):
                raise ModelFileError(f"an attribute named {key!r}")
            found.__dict__[key] = self.value(item)
        if "routing" in node:
            found.__dict__[ROUTING] = _requests(self.value(node["routing"]), found)
        _complete(found)
        return found


def _requests(methods: dict[str, dict[str, Any]], owner: object) -> MetadataRequest:
    """The metadata requests of an object's methods."""
    made = MetadataRequest(owner=owner)
    for method, requests in methods.items():
        if method not in vars(made) or method == "owner":
            raise ModelFileError(f"a request by the method {method!r}")
        for name, alias in requests.items():
            vars(made)[method].add_request(param=name, alias=alias)
    return made


def _complete(found: object) -> None:
    """Add parameters that the class got after the file was written; an error if one has no default."""
    cls: Any = type(found)
    for name, default in parameters(cls).items():
        if name not in vars(found):
            if default is inspect.Parameter.empty:
                raise ModelFileError(f"{cls.__name__} without {name}")
            found.__dict__[name] = BEFORE.get((cls.__name__, name), default)


@cache
def parameters(cls: type) -> dict[str, Any]:
    """The parameters of a class and their defaults."""
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return {name: p.default for name, p in inspect.signature(cls).parameters.items() if p.kind not in several}
