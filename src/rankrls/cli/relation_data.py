"""Read relations from ordinary tables: names in the first column and the header, games in rows, bare matrices."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..kernels import is_precomputed
from ..system.files import opened
from .data import kind
from .options.parser import did_you_mean
from .tables import usual_ends
from .text import remark, source

if TYPE_CHECKING:
    from pandas import DataFrame

SCORES = ("score", "goals", "points", "pts", "runs")


@dataclass
class RelationFiles:
    """A relation from files: a matrix Y, or a table of edges and its columns."""

    X: Any = None  # None if objects are known by id only
    Z: Any = None
    Y: Any = None
    edges: Any = None
    columns: dict[str, Any] = field(default_factory=dict)

    @property
    def listed(self) -> bool:
        return self.edges is not None


def relation(args: Namespace, model: Any = None) -> RelationFiles:
    """The edges and objects that the options name; by default the objects that a model was trained on."""
    if (args.edges is None) == (args.matrix is None):
        raise ValueError("a relation is learned from --edges FILE or from --matrix FILE: pass one of them")
    X, Z = (objects(path, args) for path in (args.features, args.target_features))
    if model is not None and X is None and Z is None:
        X, Z = _trained_with(model)
    if args.matrix is not None:
        if X is None:
            raise ValueError("--matrix needs --features: features or similarities of the objects in its rows")
        Y = matrix(args, model)
        _check_direction(X, Y, args)
        X, rows = _in_order(X, Y.index)
        Z, columns = (None, _called(Y.columns, X.index)) if Z is None else _in_order(Z, Y.columns)
        return RelationFiles(X, Z, Y.set_axis(rows, axis=0).set_axis(columns, axis=1))
    table = read_table(args.edges, args)
    columns = edge_columns(table, args)
    implicit = args.implicit if model is None else model.missing == "zero"
    if columns["y"] is None and Z is not None and not implicit:
        args.y = _only_value(table, columns)
        remark(args, f"{args.edges}: the value of an edge is {args.y} (--y)")
        columns = edge_columns(table, args)
    return RelationFiles(X, Z, None, table, columns)


def _only_value(table: DataFrame, columns: dict[str, Any]) -> str:
    """The only column of numbers that has no other meaning, for edges between two kinds of objects."""
    others = [str(name) for name in table.columns if name not in columns.values()]
    numbers = [name for name in others if table[name].dtype.kind in "iuf"]
    if len(numbers) != 1:
        raise ValueError(
            f"edges need a value: name its column with --y; there are {_listed(others) or 'only the two ends'}. If "
            "edges that are not listed count as 0, pass --implicit"
        )
    return numbers[0]


def _trained_with(model: Any) -> tuple[Any, Any]:
    """The objects that a model was trained on, by id; None if they are only names."""
    sides = [(model.X_fit_, model.source_ids_), (model.Z_fit_, model.target_ids_)]
    if any(A.shape[0] != len(ids) for A, ids in sides):
        raise ValueError("the model does not keep the features of all objects: pass --features FILE, as in training")
    (X, Z) = (_frame(A, ids, is_precomputed(model.kernel_)) for A, ids in sides)
    return X, None if model._one_domain else Z


def _frame(A: Any, ids: np.ndarray, precomputed: bool) -> Any:
    if sparse.issparse(A) and A.shape == (A.nnz, A.nnz):  # the identity: objects are known by id only
        return None
    A = A.toarray() if sparse.issparse(A) else A
    return pandas().DataFrame(A, index=ids, columns=ids if precomputed else None)


def _check_direction(X: Any, Y: Any, args: Namespace) -> None:
    """Raise an error if the objects in --features are the columns of a matrix, not its rows."""
    own, rows, columns = (set(map(str, labels)) for labels in (X.index, Y.index, Y.columns))
    if len(own & columns) > len(own & rows):
        remedy = "leave --transpose out" if args.transpose else "pass --transpose"
        raise ValueError(f"--features describes the columns of {args.matrix}, not its rows: {remedy}")


def _in_order(objects: Any, labels: Any) -> tuple[Any, Any]:
    """Objects in the order of one side of a matrix, with its names if they have none; also that side's labels."""
    n, own = len(objects), objects.index
    if len(labels) == n and np.array_equal(np.asarray(own), np.arange(n)):
        columns = labels if is_similarity(objects) else [f"f{j + 1}" for j in range(objects.shape[1])]
        return objects.set_axis(labels, axis=0).set_axis(columns, axis=1), labels
    labels = _called(labels, own)
    if len(labels) != n or set(labels) != set(own):
        return objects, labels  # the estimator raises the error that explains this
    objects = objects.loc[list(labels)]
    return (objects[list(labels)] if set(objects.columns) == set(own) else objects), labels


def _called(labels: Any, own: Any) -> Any:
    """Labels with the types of ids: in a header even numbers are text."""
    same = {str(label): label for label in own}
    return [same.get(str(label), label) for label in labels]


# ---------------------------------------------------------------- edges


def edge_columns(table: DataFrame, args: Namespace) -> dict[str, Any]:
    """The arguments of fit_edges that come from columns of a table."""
    have = [str(name) for name in table.columns]
    found: dict[str, Any] = dict(zip(("source", "target"), _ends(have, args, {}), strict=True))
    if args.y is None:
        _check_results(have, found["source"], found["target"])
    found["y"] = None if args.y is None else _transformed(_value(table, args.y, "--y"), args.values)
    if args.date is not None:
        found["date"] = _column(have, args.date, "--date")
    elif args.half_life is not None or "time" in (getattr(args, "settings", None) or ()):
        found["date"] = _date(have)
    if args.weight is not None:
        found["sample_weight"] = _column(have, args.weight, "--weight")
    if args.home is not None:
        found["home"] = home(table, args.home)
    if args.half_life is not None:
        found["half_life"] = args.half_life
    return found


def columns_to_score(table: DataFrame, args: Namespace, known: dict[str, Any]) -> dict[str, Any]:
    """The arguments of predict_edges: both ends, and who plays at home if the table has it."""
    have = [str(name) for name in table.columns]
    found: dict[str, Any] = dict(zip(("source", "target"), _ends(have, args, known), strict=True))
    unknown = args.home not in (None, "yes") and args.home.removeprefix("not ").strip() not in have
    if unknown and "home" in getattr(args, "remembered", ()):
        remark(
            args,
            f"there is no column {args.home.removeprefix('not ')!r}: every game counts as played on neutral ground",
        )
    elif args.home is not None:
        found["home"] = home(table, args.home)
    return found


def _ends(have: list[str], args: Namespace, known: dict[str, Any]) -> tuple[str, str]:
    if args.source is not None and args.target is not None:
        return _column(have, args.source, "--source"), _column(have, args.target, "--target")
    if args.source is not None or args.target is not None:
        raise ValueError("name both ends of an edge with --source and --target")
    if known.get("source") in have and known.get("target") in have:
        return known["source"], known["target"]
    if ends := usual_ends(have):
        return ends
    if len(have) == 2:
        return have[0], have[1]
    raise ValueError(f"name the columns of both ends of an edge with --source and --target; there are {_listed(have)}")


def _check_results(have: list[str], *ends: str) -> None:
    """Raise an error for results with the scores of both ends if no option says that they decide who won."""
    stems = [re.sub(r"[._ ]?(team|player|name|id)$", "", end.lower()) for end in ends]
    if stems[0] in ("winner", "w"):
        return
    by_name = {re.sub(r"[_ ]", "", name.lower()): name for name in have}
    for word in SCORES:
        for form in ("{0}{1}", "{1}{0}"):
            a, b = (by_name.get(form.format(stem, word)) for stem in stems)
            if a and b:
                home = " --home 'not neutral'" if "neutral" in have else " --home yes" if stems[0] == "home" else ""
                raise ValueError(
                    f"pass --y '{a} - {b}'{home}: without --y, every row counts as a game won by {ends[0]!r}"
                )


def is_difference(name: str | None) -> bool:
    """True if the value of an edge is the difference between its source and its target, as in games."""
    return name is not None and " - " in name


def _date(have: list[str]) -> str:
    """The column of dates, found by its name."""
    named = [name for name in have if name.lower() == "date"] or [name for name in have if "date" in name.lower()]
    if len(named) != 1:
        what = f"several might, {_listed(named)}" if named else f"there are {_listed(have)}"
        raise ValueError(f"which column holds the dates? Pass --date COLUMN: {what}")
    return named[0]


def _column(have: list[str], name: str, option: str) -> str:
    if name not in have:
        there = f"there are {_listed(have)}"
        raise ValueError(f"{option} {name}: there is no such column{did_you_mean(name, have) or f'; {there}'}")
    return name


def _listed(have: list[str]) -> str:
    return ", ".join(have[:20]) + (", ..." if len(have) > 20 else "")


def _value(table: DataFrame, name: str, option: str) -> np.ndarray:
    """A column, or the difference of two."""
    have = [str(column) for column in table.columns]
    if name in have:
        return _numbers(table[name], name)
    first, minus, second = name.partition("-")
    if minus and first.strip() in have and second.strip() in have:
        return _numbers(table[first.strip()], first.strip()) - _numbers(table[second.strip()], second.strip())
    _column(have, name, option)
    raise AssertionError


def home(table: DataFrame, name: str) -> np.ndarray:
    """1 where the source is at home."""
    if name == "yes":
        return np.ones(len(table))
    negated, column = name.startswith("not "), name.removeprefix("not ").strip()
    _column([str(c) for c in table.columns], column, "--home")
    values = table[column]
    if values.dtype.kind == "O":  # words for true and false, as some programs write them
        values = values.astype(str).str.lower().isin(["true", "1", "yes", "t", "y"])
    numbers = _numbers(values, column)
    return 1 - numbers if negated else numbers


def _numbers(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        shown = ", ".join(map(str, list(values)[:3]))
        raise ValueError(f"column {name!r} does not hold numbers: {shown}, ...") from None


def _transformed(values: Any, how: str | None) -> Any:
    if how in ("log", "minus-log"):
        if np.nanmin(np.asarray(values)) <= 0:
            raise ValueError(
                f"--values {how} needs positive values, but the smallest is {np.nanmin(np.asarray(values)):g}"
            )
        values = np.log10(values)
    return -values if how in ("minus", "minus-log") else values


# ---------------------------------------------------------------- tables


def pandas() -> Any:
    try:
        import pandas as found
    except ImportError:
        raise ImportError("the command line reads relations with pandas: pip install pandas") from None
    return found


def read_table(path: str, args: Namespace, *, index: object = None, header: bool = True) -> Any:
    """A table of any format; the delimiter (comma, tab, semicolon or blanks) is found from the first line."""
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
    """True if a table has no names: its first line consists of numbers."""
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
    """Raise an error if a file holds rows of queries, which other models score, rather than edges."""
    if path == "-":
        return
    with source(path, quiet=True) as file, opened(file) as plain:
        line = plain.readline(10_000).decode("utf-8", "replace")
    if " qid:" in line:
        raise ValueError(f"{model} is a model of relations, but {path} has rows of queries: pass a table of edges")


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
            raise ValueError(
                f"{path} has several rows for {again!r}, but each object needs one row (--id names the column of ids)"
            )
        if args.columns is not None:
            frame = frame[[_column([str(c) for c in frame.columns], name, "--columns") for name in args.columns]]
    return _similarities(frame, path, args) if is_similarity(frame) else frame


def is_similarity(frame: DataFrame) -> bool:
    """True if a table holds similarities of objects."""
    n, m = frame.shape
    return n == m and (_is_range(frame) or set(map(str, frame.columns)) == set(map(str, frame.index)))


def _is_range(frame: DataFrame) -> bool:
    return bool(np.array_equal(np.asarray(frame.columns), np.arange(frame.shape[1])))


def _similarities(frame: DataFrame, path: str, args: Namespace) -> Any:
    """Similarities with rows and columns in the same order, made symmetric."""
    if not _is_range(frame):
        frame = frame.set_axis(frame.columns.map(str), axis=1)
        frame = frame[[str(label) for label in frame.index]].set_axis(list(frame.index), axis=1)
    values = frame.to_numpy(dtype=np.float64)
    gap = float(np.abs(values - values.T).max())
    if gap > 1e-8 * float(np.abs(values).max()):
        remark(args, f"{path}: the two similarities of a pair differ by up to {gap:.3g}; their mean is used")
        values = (values + values.T) / 2
    if args.normalise:
        root = np.sqrt(np.diagonal(values))
        values = values / root / root[:, None]
    return pandas().DataFrame(values, index=frame.index, columns=frame.columns)


def matrix(args: Namespace, model: Any = None) -> Any:
    """A matrix with the names of its rows and columns; bare numbers get the names of the model."""
    path = args.matrix
    named = not _plain_numbers(path, args)
    frame = read_table(path, args, index=0 if named else None, header=named)
    for option, axis in ((args.row_names, 0), (args.column_names, 1)):
        if option is not None:
            frame = frame.set_axis(name_list(option, frame.shape[axis], args), axis=axis)
    frame = frame.T if args.transpose else frame
    if model is not None and not (named or args.row_names or args.column_names):
        if frame.shape != (len(model.source_ids_), len(model.target_ids_)):
            n, m = len(model.source_ids_), len(model.target_ids_)
            raise ValueError(
                f"{path} has {frame.shape[0]} x {frame.shape[1]} values, but the model relates {n} to {m} objects"
            )
        frame = frame.set_axis(model.source_ids_, axis=0).set_axis(model.target_ids_, axis=1)
    for column in frame.columns:
        _numbers(frame[column], str(column))
    return _transformed(frame.astype(float), args.values)


def name_list(path: str, n: int, args: Namespace) -> list[str]:
    """Names from a JSON list or object, or one per line."""
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
