"""Model files: plain arrays and JSON. Nothing in them is ever executed.

    magic | version | length of the header | header (JSON) | arrays | SHA-256 of all before it

The header is a tree of values. Numbers, text, lists and the like stand for themselves, `{"$": kind, ...}` for the rest:
arrays by their place in the file, objects by the name of a class in `CLASSES` and their attributes. Reading creates an
object of that class and sets its attributes; none of its methods run.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import re
import struct
from collections.abc import Callable, Collection
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import __version__ as sklearn_version
from sklearn import compose, impute, model_selection, pipeline, preprocessing
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest

from . import auto, bases, estimators, kernels, metrics, tables
from .core import views
from .core.statistics import Statistics
from .estimators.rows.training import TrainedOn
from .problems.constrained import Preferred
from .problems.pursuit import PursuitPath
from .relations import kernel_sums
from .relations.folds import RelationKFold
from .system.files import replacing
from .system.imports import importable_name, imported
from .system.items import Items
from .system.types import Predictor
from .tables import TableEncoder, maps

MAGIC = b"rankrls model\n\0\0"
VERSION = 1
_Plain = str | int | float | None
_PREFIX = struct.Struct("<16sIQ")  # magic, version, length of the header
_DIGEST = 32
_ALIGN = 64
_KINDS = re.compile(r"[<|][biufcUS]\d{1,6}|<[mM]8\[\w{1,8}\]")  # dtypes that contain no objects
_SPARSE = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(getattr(estimators, name) for name in estimators.__all__),
        *(kernels.Linear, kernels.Gaussian, kernels.Polynomial, kernels.Laplacian, kernels.Cosine, kernels.Precomputed),
        *(kernels.Scaled, kernel_sums.Similarity, kernel_sums.WeightedSum),
        *(kernels.Spectrum, kernels.Walks, kernels.Function, Items),
        *(bases.RandomRows, bases.KMeansCentres, bases.PivotedCholesky),
        *(views.View, views.FittedView, Statistics, Preferred, PursuitPath, RelationKFold, TrainedOn),
        *(auto.AutoRanker, auto.PairScreen, *auto.STORED, tables.ColumnMaps),
        *(TableEncoder, maps.NumberMap, maps.Quantiles, maps.Standard, maps.LevelMap, maps.TargetMap, maps.RelativeMap),
        *(pipeline.Pipeline, impute.SimpleImputer, impute.MissingIndicator),
        *(preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler),
        *(preprocessing.RobustScaler, preprocessing.Normalizer),
        *(preprocessing.QuantileTransformer, preprocessing.PowerTransformer),
        *(preprocessing.OneHotEncoder, preprocessing.FunctionTransformer),
        *(compose.ColumnTransformer, compose.make_column_selector),
        *(model_selection.GroupKFold, model_selection.StratifiedGroupKFold),
        *(model_selection.LeaveOneGroupOut, model_selection.GroupShuffleSplit),
    )
}
RENAMED = {"Part": "StackPart"}  # class names in earlier versions
BEFORE: dict[tuple[str, str], Any] = {("RankRLS", "scale"): None}  # behaviour before a parameter existed
_INERT = (*CLASSES.values(), sparse.csr_array, sparse.csc_array, sparse.coo_array, np.dtype)
_UFUNCS = {name: getattr(np, name) for name in ("log1p", "expm1", "log", "exp", "sqrt", "abs", "square")}
_METRICS = {function.__name__: function for function, _ in metrics.METRICS.values()}

# types that `skops.io.load(path, trusted=SKOPS_TRUSTED_TYPES)` may create: classes of this library, those of
# scikit-learn that a model file can hold, sparse arrays and metrics; creating one runs only its own constructor
SKOPS_TRUSTED_TYPES = sorted(f"{thing.__module__}.{thing.__qualname__}" for thing in (*_INERT, *_METRICS.values()))
_ROUTING = "_metadata_request"  # the attribute in which scikit-learn stores calls of set_fit_request and the like


class ModelFileError(ValueError):
    """A file that is not a model file, or is damaged or incomplete.

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


def save(model: BaseEstimator, path: str | os.PathLike) -> None:
    """Write a fitted estimator, or a pipeline that ends in one, to a file that is safe to load.

    The file appears under its name only when it is complete.

    Parameters
    ----------
    model : estimator
        Any estimator of the library, or a scikit-learn Pipeline of scalers that ends in one.
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
        inner = next((name for name in ("best_estimator_", "ranker_") if hasattr(model, name)), None)
        hint = f": save its {inner}" if inner else ""
        raise TypeError(
            f"save takes an estimator of rankrls or a Pipeline that ends in one, got {type(model).__name__}{hint}"
        )
    writer = _Writer()
    tree = writer.value(model, type(model).__name__)
    header = {"model": tree, "arrays": writer.places(), "written_by": {"scikit-learn": sklearn_version}}
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-(len(text) + _PREFIX.size) % _ALIGN)  # arrays start at a multiple of _ALIGN
    digest = hashlib.sha256()
    with replacing(Path(path)) as file:
        for piece in (_PREFIX.pack(MAGIC, VERSION, len(text)), text, *writer.pieces()):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())


def load(path: str | os.PathLike[str], *, trusted: Collection[str] = ()) -> Predictor:
    """Read a model written by `save`. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path
        A file written by this version of the library or an earlier one.
    trusted : collection of str, default=()
        Functions, as "module.name", that may be imported if the file names them as kernels. Importing a module runs
        its code: list only what you know.

    Returns
    -------
    model : estimator

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged or incomplete, has a newer version, or holds something unknown.

    Examples
    --------
    >>> import tempfile
    >>> from rankrls import RankRLS, load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(RankRLS(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1]), f"{folder}/model.rankrls")
    ...     model = load(f"{folder}/model.rankrls")
    >>> model.coef_
    array([0.8, 0. ])
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        data = file.read(len(MAGIC))
        if data != MAGIC:  # checked before reading the rest of a file that may be huge
            raise ModelFileError(f"{name} is not a model file of rankrls (written by rankrls.save)")
        data += file.read()
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
        model = _Reader(arrays, trusted).value(header["model"])
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{name} is not a valid model file: {type(error).__name__}: {error}") from None
    if not hasattr(model, "get_params"):
        raise ModelFileError(f"{name} holds a {type(model).__name__}, not an estimator")
    return model


class _Writer:
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
        if isinstance(value, np.dtype) and _KINDS.fullmatch(value.str):
            return {"$": "dtype", "text": value.str}
        if isinstance(value, type) and issubclass(value, np.number | np.bool_):  # as a dtype
            return {"$": "dtype", "text": np.dtype(value).str}
        if isinstance(value, np.ufunc) and value in _UFUNCS.values():
            return {"$": "ufunc", "name": next(known for known, ufunc in _UFUNCS.items() if ufunc is value)}
        if inspect.isfunction(value) and _METRICS.get(value.__name__) is value:
            return {"$": "metric", "name": value.__name__}
        if inspect.isfunction(value):
            return {"$": "function", "name": importable_name(value, where)}
        if CLASSES.get(name) is type(value):
            attributes: Any = dict(value.__getstate__() or {})  # type: ignore[call-overload]  # as it would be pickled
            attributes.pop("_sklearn_version", None)
            routing = attributes.pop(_ROUTING, None)
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
            if not _KINDS.fullmatch(plain.dtype.str):
                raise TypeError(f"{where} is an array of {value.dtype}, which a model file cannot hold")
            self.place[id(value)] = len(self.arrays)
            self.arrays.append(plain)
            self.alive.append(value)
        return {"$": "array", "number": self.place[id(value)]}

    def _sparse(self, value: Any, where: str) -> Any:
        value = value if value.format in _SPARSE else value.tocsr()
        parts = [self._array(np.asarray(getattr(value, part)), where) for part in _SPARSE[value.format]]
        kind = "array" if isinstance(value, sparse.sparray) else "matrix"
        return {"$": "sparse", "format": value.format, "kind": kind, "shape": list(value.shape), "parts": parts}

    def places(self) -> list[dict[str, Any]]:
        """Where each array lies after the header; keeps column order, on which rounding may depend."""
        found: list[dict[str, Any]] = []
        offset = 0
        for array in self.arrays:
            order = {} if array.flags.c_contiguous else {"order": "F"}
            found.append({"dtype": array.dtype.str, "shape": list(array.shape), "offset": offset, **order})
            offset += array.nbytes + -array.nbytes % _ALIGN
        return found

    def pieces(self) -> Any:
        for array in self.arrays:
            yield array.reshape(-1, order="A").view(np.uint8).data if array.size else b""
            yield b"\0" * (-array.nbytes % _ALIGN)


def _arrays(data: memoryview, places: list[dict[str, Any]]) -> list[np.ndarray]:
    """The arrays of a file; they may not overlap, so together they are no larger than the file."""
    arrays, end = [], 0
    for place in places:
        dtype, shape, offset = np.dtype(_checked_dtype(place["dtype"])), place["shape"], place["offset"]
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


def _checked_dtype(text: str) -> str:
    if not _KINDS.fullmatch(text):
        raise ModelFileError(f"an array of {text!r}")
    return text


class _Reader:
    """Turns a JSON tree back into values."""

    def __init__(self, arrays: list[np.ndarray], trusted: Collection[str] = ()):
        self.arrays = arrays
        self.kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "int": lambda node: int(self._text(node)),
            "float": lambda node: float(self._text(node)),
            "date": lambda node: date.fromisoformat(self._text(node)),
            "datetime": lambda node: datetime.fromisoformat(self._text(node)),
            "tuple": lambda node: tuple(self.value(node["items"])),
            "dict": lambda node: {self._typed(_Plain, k): self.value(v) for k, v in node["items"]},
            "slice": lambda node: slice(*(self._typed(int | None, item) for item in node["items"])),
            "scalar": lambda node: self._typed(np.ndarray, node["array"])[()],
            "dtype": lambda node: np.dtype(_checked_dtype(node["text"])),
            "function": lambda node: imported(self._typed(str, node["name"]), trusted),
            "metric": lambda node: _METRICS[node["name"]],
            "ufunc": lambda node: _UFUNCS[self._typed(str, node["name"])],
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
        make = getattr(sparse, f"{node['format']}_{node['kind']}") if node["format"] in _SPARSE else None
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
            found.__dict__[_ROUTING] = _requests(self.value(node["routing"]), found)
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
    for name, default in _parameters(cls).items():
        if name not in vars(found):
            if default is inspect.Parameter.empty:
                raise ModelFileError(f"{cls.__name__} without {name}")
            found.__dict__[name] = BEFORE.get((cls.__name__, name), default)


@cache
def _parameters(cls: type) -> dict[str, Any]:
    """The parameters of a class and their defaults."""
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return {name: p.default for name, p in inspect.signature(cls).parameters.items() if p.kind not in several}
