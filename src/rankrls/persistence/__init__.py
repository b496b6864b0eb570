"""Model files: plain arrays and JSON. Nothing in them is ever executed.

    magic | version | length of the header | header (JSON) | arrays | SHA-256 of all before it

The header is a tree of values. Numbers, text, lists and the like stand for themselves, `{"$": kind, ...}` for the rest:
arrays by their place in the file, objects by the name of a class in `CLASSES` and their attributes. Reading creates an
object of that class and sets its attributes; none of its methods run.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Collection
from pathlib import Path

from sklearn import __version__ as sklearn_version
from sklearn.base import BaseEstimator

from ..system.files import replacing
from ..system.types import Predictor
from .known import ALIGN, CLASSES, SKOPS_TRUSTED_TYPES, ModelFileError
from .reading import TreeReader, arrays_of
from .writing import TreeWriter

__all__ = ["CLASSES", "SKOPS_TRUSTED_TYPES", "ModelFileError", "load", "save"]

MAGIC = b"rankrls model\n\0\0"
VERSION = 1
PREFIX = struct.Struct("<16sIQ")  # magic, version, length of the header
DIGEST = 32


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
    writer = TreeWriter()
    tree = writer.value(model, type(model).__name__)
    header = {"model": tree, "arrays": writer.places(), "written_by": {"scikit-learn": sklearn_version}}
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-(len(text) + PREFIX.size) % ALIGN)  # arrays start at a multiple of ALIGN
    digest = hashlib.sha256()
    with replacing(Path(path)) as file:
        for piece in (PREFIX.pack(MAGIC, VERSION, len(text)), text, *writer.pieces()):
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
    if len(data) < PREFIX.size + DIGEST:
        raise ModelFileError(f"{name} is incomplete: {len(data)} bytes; write the model again")
    _, version, length = PREFIX.unpack_from(data)
    if version > VERSION:
        raise ModelFileError(
            f"{name} was written by a newer version of rankrls (format {version}, this one reads up to {VERSION}): "
            "update rankrls"
        )
    if hashlib.sha256(memoryview(data)[:-DIGEST]).digest() != data[-DIGEST:]:
        raise ModelFileError(f"{name} is damaged or incomplete (its checksum differs): write the model again")
    try:
        header = json.loads(data[PREFIX.size : PREFIX.size + length])
        start = PREFIX.size + length
        arrays = arrays_of(memoryview(data)[start:-DIGEST], header["arrays"])
        model = TreeReader(arrays, trusted).value(header["model"])
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{name} is not a valid model file: {type(error).__name__}: {error}") from None
    if not hasattr(model, "get_params"):
        raise ModelFileError(f"{name} holds a {type(model).__name__}, not an estimator")
    return model
