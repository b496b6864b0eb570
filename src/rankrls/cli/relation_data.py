"""Tables of relations as people have them: names in the first column and in the head, games in rows, raw matrices."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from ..system.files import opened
from .data import kind
from .text import remark, source

ENDS = (("source", "target"), ("winner", "loser"), ("home_team", "away_team"), ("home", "away"), ("user", "item"),
        ("winner_name", "loser_name"), ("user_id", "item_id"), ("drug", "target"))  # fmt: skip


@dataclass
class RelationFiles:
    """What is known: a matrix Y, or edges in a table and the columns that mean something."""

    X: Any = None  # None: known by id only
    Z: Any = None
    Y: Any = None
    edges: Any = None
    columns: dict[str, Any] = field(default_factory=dict)

    @property
    def listed(self) -> bool:
        return self.edges is not None


def relation(args: Namespace) -> RelationFiles:
    """The edges and objects that the options name."""
    if (args.edges is None) == (args.matrix is None):
        raise ValueError("--method conditional learns from --edges FILE or from --matrix FILE: give one of them")
    X, Z = (objects(path, args) for path in (args.features, args.target_features))
    if args.matrix is not None:
        if X is None:
            raise ValueError("--matrix needs --features: features or similarities of the objects in its rows")
        Y = matrix(args)
        X, rows = _in_order(X, Y.index)
        Z, columns = (None, _called(Y.columns, X.index)) if Z is None else _in_order(Z, Y.columns)
        return RelationFiles(X, Z, Y.set_axis(rows, axis=0).set_axis(columns, axis=1))
    table = read_table(args.edges, args)
    return RelationFiles(X, Z, None, table, edge_columns(table, args))


def _in_order(objects: Any, labels: Any) -> tuple[Any, Any]:
    """Objects in the order of one side of a matrix, called as there if they have no names; and its labels."""
    n, own = len(objects), objects.index
    if len(labels) == n and np.array_equal(np.asarray(own), np.arange(n)):
        columns = labels if is_similarity(objects) else [f"f{j + 1}" for j in range(objects.shape[1])]
        return objects.set_axis(labels, axis=0).set_axis(columns, axis=1), labels
    labels = _called(labels, own)
    if len(labels) != n or set(labels) != set(own):
        return objects, labels  # which the estimator refuses, and says why
    objects = objects.loc[list(labels)]
    return (objects[list(labels)] if set(objects.columns) == set(own) else objects), labels


def _called(labels: Any, own: Any) -> Any:
    """Labels with the types of ids: those in the head of a table are text, even numbers."""
    same = {str(label): label for label in own}
    return [same.get(str(label), label) for label in labels]


# ---------------------------------------------------------------- edges


def edge_columns(table: Any, args: Namespace, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """The arguments of fit_edges that columns of a table give."""
    have = [str(name) for name in table.columns]
    found: dict[str, Any] = dict(zip(("source", "target"), _ends(have, args, known or {}), strict=True))
    found["y"] = None if args.y is None else _transformed(_value(table, args.y, "--y"), args.values)
    if args.date is not None:
        found["date"] = _column(have, args.date, "--date")
    if args.weight is not None:
        found["sample_weight"] = _column(have, args.weight, "--weight")
    if args.home is not None:
        found["home"] = home(table, args.home)
    if args.half_life is not None:
        found["half_life"] = args.half_life
    return found


def _ends(have: list[str], args: Namespace, known: dict[str, Any]) -> tuple[str, str]:
    if args.source is not None and args.target is not None:
        return _column(have, args.source, "--source"), _column(have, args.target, "--target")
    if args.source is not None or args.target is not None:
        raise ValueError("name both ends of an edge: --source and --target")
    for first, second in [(known.get("source"), known.get("target")), *ENDS]:
        if first in have and second in have:
            return str(first), str(second)
    if len(have) == 2:
        return have[0], have[1]
    raise ValueError(f"name the columns of both ends of an edge, --source and --target: there are {_listed(have)}")


def _column(have: list[str], name: str, option: str) -> str:
    if name not in have:
        raise ValueError(f"{option} {name}: there is no such column; there are {_listed(have)}")
    return name


def _listed(have: list[str]) -> str:
    return ", ".join(have[:20]) + (", ..." if len(have) > 20 else "")


def _value(table: Any, name: str, option: str) -> np.ndarray:
    """A column, or the difference of two."""
    have = [str(column) for column in table.columns]
    if name in have:
        return _numbers(table[name], name)
    first, minus, second = name.partition("-")
    if minus and first.strip() in have and second.strip() in have:
        return _numbers(table[first.strip()], first.strip()) - _numbers(table[second.strip()], second.strip())
    _column(have, name, option)
    raise AssertionError


def home(table: Any, name: str) -> np.ndarray:
    """1 where the source is at home."""
    if name == "yes":
        return np.ones(len(table))
    negated, column = name.startswith("not "), name.removeprefix("not ").strip()
    _column([str(c) for c in table.columns], column, "--home")
    values = table[column]
    if values.dtype.kind == "O":  # words, as some programs write them
        values = values.astype(str).str.lower().isin(["true", "1", "yes", "t", "y"])
    numbers = _numbers(values, column)
    return 1 - numbers if negated else numbers


def _numbers(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        shown = ", ".join(map(str, list(values)[:3]))
        raise ValueError(f"column {name!r} does not hold numbers: {shown}, ...") from None


def _transformed(values: Any, how: str) -> Any:
    if how in ("log", "minus-log"):
        if np.nanmin(np.asarray(values)) <= 0:
            raise ValueError(f"--values {how} needs positive values, the smallest is {np.nanmin(np.asarray(values)):g}")
        values = np.log10(values)
    return -values if how in ("minus", "minus-log") else values


# ---------------------------------------------------------------- tables


def pandas() -> Any:
    try:
        import pandas as found
    except ImportError:
        raise ImportError("relations are read by pandas on the command line: pip install pandas") from None
    return found


def read_table(path: str, args: Namespace, *, index: object = None, header: bool = True) -> Any:
    """A table of any format; the delimiter is a comma, a tab, a semicolon or blanks, whichever the first line has."""
    form = kind(path, getattr(args, "input_format", None))
    with source(path, args.quiet) as file:
        if form == "parquet":
            frame = pandas().read_parquet(file)
            return frame if index is None else frame.set_index(frame.columns[0] if index == 0 else index)
        with opened(file) as plain:
            text = plain.read()
    import io

    line = next((line for line in text.splitlines() if line.strip()), b"").decode("utf-8", "replace")
    if not line:
        raise ValueError(f"{path} is empty")
    delimiter = next((mark for mark in ("\t", ",", ";") if mark in line), r"\s+")
    top = "infer" if header else None
    frame = pandas().read_csv(io.BytesIO(text), sep=delimiter, index_col=index, header=top, keep_default_na=True)
    if not len(frame):
        raise ValueError(f"{path} has no rows")
    return frame


def _plain_numbers(path: str, args: Namespace) -> bool:
    """Whether a table has no names at all: its first line is numbers."""
    if kind(path, getattr(args, "input_format", None)) == "parquet":
        return False
    with source(path, quiet=True) as file, opened(file) as plain:
        words = plain.readline().decode("utf-8", "replace").replace(",", " ").replace(";", " ").split()
    try:
        [float(word) for word in words]
    except ValueError:
        return False
    return bool(words)


def check_edges(path: str, model: str) -> None:
    """A table, not the rows of queries that other models score."""
    if path == "-":
        return
    with source(path, quiet=True) as file, opened(file) as plain:
        line = plain.readline(10_000).decode("utf-8", "replace")
    if " qid:" in line:
        raise ValueError(f"{model} ranks objects given objects, and {path} has rows of queries: give a table of edges")


def objects(path: str | None, args: Namespace) -> Any:
    """Objects by id: features, or a square table of similarities."""
    if path is None:
        return None
    if _plain_numbers(path, args):
        frame = read_table(path, args, header=False)
    else:
        frame = read_table(path, args, index=0 if args.id is None else args.id)
        if frame.index.has_duplicates:
            again = frame.index[frame.index.duplicated()][0]
            raise ValueError(f"{path} has several rows for {again!r}: each object is one row (--id names the column)")
        if args.columns is not None:
            frame = frame[[_column([str(c) for c in frame.columns], name, "--columns") for name in args.columns]]
    return _similarities(frame, path, args) if is_similarity(frame) else frame


def is_similarity(frame: Any) -> bool:
    """Whether a table compares objects with each other."""
    n, m = frame.shape
    return n == m and (_is_range(frame) or set(map(str, frame.columns)) == set(map(str, frame.index)))


def _is_range(frame: Any) -> bool:
    return bool(np.array_equal(np.asarray(frame.columns), np.arange(frame.shape[1])))


def _similarities(frame: Any, path: str, args: Namespace) -> Any:
    """Similarities in one order of rows and columns, the same in both directions."""
    if not _is_range(frame):
        frame = frame.set_axis(frame.columns.map(str), axis=1)
        frame = frame[[str(label) for label in frame.index]].set_axis(list(frame.index), axis=1)
    values = frame.to_numpy(dtype=np.float64)
    gap = float(np.abs(values - values.T).max())
    if gap > 1e-8 * float(np.abs(values).max()):
        remark(
            args, f"{path}: similarities of a pair differ by up to {gap:.3g} in the two directions; their mean counts"
        )
        values = (values + values.T) / 2
    if args.normalise:
        root = np.sqrt(np.diagonal(values))
        values = values / root / root[:, None]
    return pandas().DataFrame(values, index=frame.index, columns=frame.columns)


def matrix(args: Namespace) -> Any:
    """A table of relations with the names of rows and columns."""
    path = args.matrix
    named = not _plain_numbers(path, args)
    frame = read_table(path, args, index=0 if named else None, header=named)
    for option, axis in ((args.row_names, 0), (args.column_names, 1)):
        if option is not None:
            frame = frame.set_axis(name_list(option, frame.shape[axis], args), axis=axis)
    frame = frame.T if args.transpose else frame
    for column in frame.columns:
        _numbers(frame[column], str(column))
    return _transformed(frame.astype(float), args.values)


def name_list(path: str, n: int, args: Namespace) -> list[str]:
    """Names from a JSON list or object, or one a line."""
    with source(path, args.quiet) as file, opened(file) as plain:
        text = plain.read().decode("utf-8")
    try:
        found = list(json.loads(text))
    except ValueError:
        found = [line.strip() for line in text.splitlines() if line.strip()]
    if len(found) != n:
        raise ValueError(f"{path} has {len(found)} names for {n} objects")
    return [str(name) for name in found]


def title_of(path: str) -> str:
    return PurePath(path).name
