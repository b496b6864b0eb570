"""Model files: plain arrays and JSON, which nothing in them can make execute anything.

    magic | version | length of the header | header (JSON) | arrays | SHA-256 of all before it

The header is a tree of values; numbers, text, lists and the like stand for themselves, `{"$": kind, ...}` for the rest:
arrays by their place in the file, objects by the name of a class in `CLASSES` and their attributes. Reading makes an
object of that class and sets its attributes; no method of it runs.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import __version__ as sklearn_version
from sklearn import impute, pipeline, preprocessing

from . import bases, estimators, kernels, views
from .datasets.files import replacing
from .greedy import PursuitPath
from .selection import RelationKFold
from .statistics import Statistics

MAGIC = b"rankrls model\n\0\0"
VERSION = 1
_PREFIX = struct.Struct("<16sIQ")  # magic, version, length of the header
_DIGEST = 32
_ALIGN = 64
_KINDS = re.compile(r"[<|][biufcUS]\d{1,6}|<[mM]8\[\w{1,8}\]")  # dtypes that hold no objects
_SPARSE = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(getattr(estimators, name) for name in estimators.__all__),
        *(kernels.Linear, kernels.Gaussian, kernels.Polynomial, kernels.Laplacian, kernels.Cosine, kernels.Precomputed),
        *(bases.RandomRows, bases.KMeansCentres, bases.PivotedCholesky),
        *(views.View, views.FittedView, Statistics, PursuitPath, RelationKFold),
        *(pipeline.Pipeline, impute.SimpleImputer),
        *(preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler),
        *(preprocessing.RobustScaler, preprocessing.Normalizer),
    )
}


class ModelFileError(ValueError):
    """A file that is no model, or not a whole one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rankrls import ModelFileError, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pathlib.Path(folder, "notes.txt").write_text("to do")
    ...     try:
    ...         load(f"{folder}/notes.txt")
    ...     except ModelFileError as error:
    ...         print(str(error).partition("notes.txt")[2])
    5
     is not a model file of rankrls (written by rankrls.save)
    """


def save(model: Any, path: str | os.PathLike) -> None:
    """Write a fitted estimator, or a pipeline of scalers and one, to a file that is safe to load.

    The file takes its place only when it is written in full.

    Parameters
    ----------
    model : estimator
        Any estimator of the library, or a scikit-learn Pipeline of scalers and one.
    path : str or path
        Conventionally ending in `.rankrls`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from rankrls import RankRLS, load, save
    >>> X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    >>> model = RankRLS(alpha=1.0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.rankrls")
    ...     same = load(f"{folder}/model.rankrls")
    >>> bool(np.all(same.predict(X) == model.predict(X)))
    True
    """
    if type(model).__name__ not in CLASSES or not hasattr(model, "get_params"):
        raise TypeError(f"save takes an estimator of rankrls or a Pipeline of one, got {type(model).__name__}")
    writer = _Writer()
    tree = writer.value(model, type(model).__name__)
    header = {"model": tree, "arrays": writer.places(), "written_by": {"scikit-learn": sklearn_version}}
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-(len(text) + _PREFIX.size) % _ALIGN)  # so that arrays start at a multiple of _ALIGN
    digest = hashlib.sha256()
    with replacing(Path(path)) as file:
        for piece in (_PREFIX.pack(MAGIC, VERSION, len(text)), text, *writer.pieces()):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())


def load(path: str | os.PathLike) -> Any:
    """Read a model written by `save`. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path
        A file written by this version of the library or an earlier one.

    Returns
    -------
    model : estimator

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged or incomplete, is of a newer version, or holds something unknown.

    Examples
    --------
    >>> import tempfile
    >>> from rankrls import RankRLS, load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(RankRLS(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1]), f"{folder}/model.rankrls")
    ...     model = load(f"{folder}/model.rankrls")
    >>> model.coef_
    array([0.5, 0. ])
    """
    name, data = os.fspath(path), Path(path).read_bytes()
    if not data.startswith(MAGIC):
        raise ModelFileError(f"{name} is not a model file of rankrls (written by rankrls.save)")
    if len(data) < _PREFIX.size + _DIGEST:
        raise ModelFileError(f"{name} is incomplete: {len(data)} bytes; write the model again")
    _, version, length = _PREFIX.unpack_from(data)
    if version > VERSION:
        raise ModelFileError(
            f"{name} was written by a newer version of rankrls (format {version}, this one reads up to {VERSION}): "
            "update rankrls"
        )
    if hashlib.sha256(memoryview(data)[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise ModelFileError(f"{name} is damaged or incomplete (its checksum differs): write the model again")
    try:
        header = json.loads(data[_PREFIX.size : _PREFIX.size + length])
        start = _PREFIX.size + length
        arrays = _arrays(memoryview(data)[start:-_DIGEST], header["arrays"])
        model = _Reader(arrays).value(header["model"])
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{name} is not a valid model file: {type(error).__name__}: {error}") from None
    if not hasattr(model, "get_params"):
        raise ModelFileError(f"{name} holds a {type(model).__name__}, not an estimator")
    return model


class _Writer:
    """Values to a JSON tree, arrays aside; an array that occurs twice is written once."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.place: dict[int, int] = {}
        self.kept: list[Any] = []  # so that no id is used twice

    def value(self, value: Any, where: str) -> Any:
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
        name = type(value).__name__
        if CLASSES.get(name) is type(value):
            attributes: Any = dict(value.__getstate__() or {})  # type: ignore[call-overload]  # as it would be pickled
            attributes.pop("_sklearn_version", None)
            state = {key: self.value(item, f"{where}.{key}") for key, item in attributes.items()}
            return {"$": "object", "class": name, "state": state}
        raise TypeError(
            f"{where} is a {type(value).__module__}.{name}, which a model file cannot hold: functions and other code "
            "never go into one; use a named kernel or metric, an integer random_state, or pickle if you must"
        )

    def _array(self, value: Any, where: str) -> Any:
        if isinstance(value, np.generic):
            return {"$": "scalar", "array": self._array(np.asarray(value), where)}
        if value.dtype == object:
            return {"$": "objects", "shape": list(value.shape), "items": self.value(value.ravel().tolist(), where)}
        if id(value) not in self.place:
            plain = np.asarray(value, dtype=value.dtype.newbyteorder("<"), order="C")
            if not _KINDS.fullmatch(plain.dtype.str):
                raise TypeError(f"{where} is an array of {value.dtype}, which a model file cannot hold")
            self.place[id(value)] = len(self.arrays)
            self.arrays.append(plain)
            self.kept.append(value)
        return {"$": "array", "number": self.place[id(value)]}

    def _sparse(self, value: Any, where: str) -> Any:
        value = value if value.format in _SPARSE else value.tocsr()
        parts = [self._array(np.asarray(getattr(value, part)), where) for part in _SPARSE[value.format]]
        kind = "array" if isinstance(value, sparse.sparray) else "matrix"
        return {"$": "sparse", "format": value.format, "kind": kind, "shape": list(value.shape), "parts": parts}

    def places(self) -> list[dict[str, Any]]:
        """Where each array lies after the header."""
        found, offset = [], 0
        for array in self.arrays:
            found.append({"dtype": array.dtype.str, "shape": list(array.shape), "offset": offset})
            offset += array.nbytes + -array.nbytes % _ALIGN
        return found

    def pieces(self) -> Any:
        for array in self.arrays:
            yield array.reshape(-1).view(np.uint8).data if array.size else b""
            yield b"\0" * (-array.nbytes % _ALIGN)


def _arrays(data: memoryview, places: list[dict[str, Any]]) -> list[np.ndarray]:
    """The arrays of a file, none larger than the file."""
    arrays = []
    for place in places:
        if not _KINDS.fullmatch(place["dtype"]):
            raise ModelFileError(f"an array of {place['dtype']!r}")
        dtype, shape, offset = np.dtype(place["dtype"]), place["shape"], place["offset"]
        if not all(isinstance(n, int) and n >= 0 for n in [*shape, offset]) or len(shape) > 32:
            raise ModelFileError(f"an array of shape {shape} at {offset}")
        count = math.prod(shape)
        if offset + count * dtype.itemsize > len(data):
            raise ModelFileError(f"an array of shape {shape} beyond the end of the file")
        stored = np.frombuffer(data, dtype, count, offset) if count else np.empty(0, dtype)
        arrays.append(stored.reshape(shape).copy())
    return arrays


class _Reader:
    """A JSON tree back to values."""

    def __init__(self, arrays: list[np.ndarray]):
        self.arrays = arrays
        self.kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "int": lambda node: int(self._text(node)),
            "float": lambda node: float(self._text(node)),
            "tuple": lambda node: tuple(self.value(node["items"])),
            "dict": lambda node: {self.value(k): self.value(v) for k, v in node["items"]},
            "slice": lambda node: slice(*(self.value(item) for item in node["items"])),
            "scalar": lambda node: self.value(node["array"])[()],
            "array": lambda node: self.arrays[node["number"]],
            "objects": self._objects,
            "sparse": self._sparse,
            "object": self._object,
        }

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("$") not in self.kinds:
            raise ModelFileError(f"unknown kind of value {node.get('$')!r}")
        return self.kinds[node["$"]](node)

    def _text(self, node: dict[str, Any]) -> str:
        if len(node["text"]) > 400:
            raise ModelFileError("a number of more than 400 digits")
        return node["text"]

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        items = self.value(node["items"])
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(node["shape"])

    def _sparse(self, node: dict[str, Any]) -> Any:
        first, *index = (self.value(part) for part in node["parts"])
        make = getattr(sparse, f"{node['format']}_{node['kind']}") if node["format"] in _SPARSE else None
        if make is None or node["kind"] not in ("array", "matrix"):
            raise ModelFileError(f"a sparse {node['kind']} of format {node['format']!r}")
        parts = (first, tuple(index)) if node["format"] == "coo" else (first, *index)
        found = make(parts, shape=tuple(node["shape"]))
        if hasattr(found, "check_format"):
            found.check_format(full_check=True)
        return found

    def _object(self, node: dict[str, Any]) -> Any:
        cls = CLASSES.get(node["class"])
        if cls is None:
            raise ModelFileError(f"an object of unknown class {node['class']!r}")
        found: Any = object.__new__(cls)
        for key, item in node["state"].items():
            if not key.isidentifier() or key.startswith("__"):
                raise ModelFileError(f"an attribute named {key!r}")
            found.__dict__[key] = self.value(item)
        missing = _parameters(cls) - found.__dict__.keys()
        if missing:
            raise ModelFileError(f"{node['class']} without {', '.join(sorted(missing))}")
        return found


def _parameters(cls: type) -> set[str]:
    """Attributes that an object of a class cannot be without."""
    names = getattr(cls, "_get_param_names", None)
    return set(names()) if names else set(getattr(cls, "__dataclass_fields__", ()))
