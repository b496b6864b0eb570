"""Values as a tree of JSON and a list of arrays."""

from __future__ import annotations

import inspect
import math
from datetime import date, datetime
from typing import Any

import numpy as np
from scipy import sparse

from ..system.imports import importable_name
from .known import ALIGN, CLASSES, KINDS, METRICS, ROUTING, SPARSE, UFUNCS


class TreeWriter:
    """Turns values into a JSON tree and a list of arrays; an array that occurs twice is written once."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.place: dict[int, int] = {}
        self.alive: list[Any] = []  # keeps objects alive, so that no id is used twice

    def value(self, value: object, where: str) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int):
            return value if abs(value) < 2**53 else {"$": "int", "text": str(value)}
        if isinstance(value, float) and not isinstance(value, np.generic):
            return value if math.isfinite(value) else {"$": "float", "text": repr(value)}
        if isinstance(value, list):
            return [self.value(item, f"{where}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, tuple):
            return {"$": "tuple", "items": self.value(list(value), where)}
        if isinstance(value, dict):
            items = [[self.value(k, where), self.value(v, f"{where}[{k!r}]")] for k, v in value.items()]
            return {"$": "dict", "items": items}
        if isinstance(value, slice):
            return {"$": "slice", "items": [value.start, value.stop, value.step]}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, where)
        if sparse.issparse(value):
            return self._sparse(value, where)
        return self._object_value(value, where)

    def _object_value(self, value: object, where: str) -> Any:
        name = type(value).__name__
        if isinstance(value, date) and type(value) in (date, datetime):  # ids of objects may be dates
            return {"$": name, "text": value.isoformat()}
        if isinstance(value, np.dtype) and KINDS.fullmatch(value.str):
            return {"$": "dtype", "text": value.str}
        if isinstance(value, type) and issubclass(value, np.number | np.bool_):  # as a dtype
            return {"$": "dtype", "text": np.dtype(value).str}
        if isinstance(value, np.ufunc) and value in UFUNCS.values():
            return {"$": "ufunc", "name": next(known for known, ufunc in UFUNCS.items() if ufunc is value)}
        if inspect.isfunction(value) and METRICS.get(value.__name__) is value:
            return {"$": "metric", "name": value.__name__}
        if inspect.isfunction(value):
            return {"$": "function", "name": importable_name(value, where)}
        if CLASSES.get(name) is type(value):
            attributes: Any = dict(value.__getstate__() or {})  # type: ignore[call-overload]  # as it would be pickled
            attributes.pop("_sklearn_version", None)
            routing = attributes.pop(ROUTING, None)
            state = {key: self.value(item, f"{where}.{key}") for key, item in attributes.items()}
            return {"$": "object", "class": name, "state": state, **self._routing(routing, where)}
        raise TypeError(
            f"{where} is a {type(value).__module__}.{name}, which a model file cannot hold: functions and other code "
            "never go into one; use a named kernel or metric, an integer random_state, or pickle if you must"
        )

    def _routing(self, routing: object, where: str) -> dict[str, Any]:
        """Metadata requests by method, if any were made."""
        if routing is None:
            return {}
        methods = {method: getattr(one, "requests", None) for method, one in vars(routing).items()}
        return {"routing": self.value({method: found for method, found in methods.items() if found}, where)}

    def _array(self, value: Any, where: str) -> Any:
        if isinstance(value, np.generic):
            return {"$": "scalar", "array": self._array(np.asarray(value), where)}
        if value.dtype == object:
            return {"$": "objects", "shape": list(value.shape), "items": self.value(value.ravel().tolist(), where)}
        if id(value) not in self.place:
            plain = np.asarray(value, dtype=value.dtype.newbyteorder("<"))
            if not (plain.flags.c_contiguous or plain.flags.f_contiguous):
                plain = np.ascontiguousarray(plain)
            if not KINDS.fullmatch(plain.dtype.str):
                raise TypeError(f"{where} is an array of {value.dtype}, which a model file cannot hold")
            self.place[id(value)] = len(self.arrays)
            self.arrays.append(plain)
            self.alive.append(value)
        return {"$": "array", "number": self.place[id(value)]}

    def _sparse(self, value: Any, where: str) -> Any:
        value = value if value.format in SPARSE else value.tocsr()
        parts = [self._array(np.asarray(getattr(value, part)), where) for part in SPARSE[value.format]]
        kind = "array" if isinstance(value, sparse.sparray) else "matrix"
        return {"$": "sparse", "format": value.format, "kind": kind, "shape": list(value.shape), "parts": parts}

    def places(self) -> list[dict[str, Any]]:
        """Where each array lies after the header; keeps column order, on which rounding may depend."""
        found: list[dict[str, Any]] = []
        offset = 0
        for array in self.arrays:
            order = {} if array.flags.c_contiguous else {"order": "F"}
            found.append({"dtype": array.dtype.str, "shape": list(array.shape), "offset": offset, **order})
            offset += array.nbytes + -array.nbytes % ALIGN
        return found

    def pieces(self) -> Any:
        for array in self.arrays:
            yield array.reshape(-1, order="A").view(np.uint8).data if array.size else b""
            yield b"\0" * (-array.nbytes % ALIGN)
