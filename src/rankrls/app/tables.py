"""Tables of documents, as frames, CSV or Parquet: which column is what, and the rows.

A table has the query of each row and optionally its label, document and title; all other columns are features. Text
with few levels, dates and missing values are encoded by `encoding`; text with many levels is ignored. Parquet files of
numbers are read block by block into the single array of a session.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..blocks.open_tables import OpenTable, parquet_table, row_major
from ..datasets import RankingData
from ..datasets.scaling import fill_with_minimum
from ..system import frames
from ..system.files import opened
from ..system.parallel import Recycled
from ..system.types import ArrayLike, Ids
from ..tables import PlainTable, TableEncoder
from .documents import DocumentTable, MissingValuesError, documents
from .encoding import encoded, is_encodable

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = {  # usual names of columns, in the order in which they are tried
    "qid": ("qid", "query_id", "query"),
    "label": ("label", "y", "grade", "rating", "relevance"),
    "docid": ("docid", "doc_id", "docno", "document", "id"),
    "title": ("title", "comment", "name", "text"),
}


@dataclass(frozen=True)
class Chosen:
    """The user's options for a table: names of columns (None: the usual ones), and the value for missing values."""

    label: str | None = None
    qid: str | None = None
    features: Sequence[str] | None = None
    missing: str | float = "nan"  # or "minimum", or a number
    docid: str | None = None
    exclude: Sequence[str] = ()  # columns that are not features
    encoder: TableEncoder | None = None  # the encoder of a model


@dataclass(frozen=True)
class DocumentLayout:
    """Which column is what."""

    qid: str | None
    label: str | None
    docid: str | None
    title: str | None
    features: list[str]

    @classmethod
    def of(cls, names: Sequence[str], usable: Iterable[str], chosen: Chosen, what: str) -> DocumentLayout:
        """The layout of a table with these columns, some usable as features; else an error that lists them."""
        known, listed = set(names), ", ".join(list(names)[:20])
        for name in (chosen.label, chosen.qid, chosen.docid, *(chosen.features or ()), *chosen.exclude):
            if name is not None and name not in known:
                raise ValueError(f"{what} has no column {name!r}; it has {listed}")
        lower = {name.lower(): name for name in reversed(names)}
        features = set(chosen.features or ())
        usual = {
            kind: next((lower[n] for n in wanted if n in lower and lower[n] not in features), None)
            for kind, wanted in COLUMNS.items()
        }
        given = {"label": chosen.label, "qid": chosen.qid, "docid": chosen.docid}
        usual |= {kind: name for kind, name in given.items() if name is not None}
        able, aside = set(usable), {*usual.values(), *chosen.exclude}
        wrong = [name for name in chosen.features or () if name not in able]
        if wrong and chosen.encoder is None:
            raise ValueError(
                f"{what}: column {wrong[0]!r} holds neither numbers nor text with few levels: leave it out of the "
                "features"
            )
        found = list(chosen.features or (name for name in names if name in able and name not in aside))
        if not found:
            raise ValueError(f"{what} has no numeric column to rank by; its columns are {listed}")
        return cls(**usual, features=found)

    @property
    def texts(self) -> list[str]:
        """The columns that are not features."""
        return [name for name in (self.qid, self.label, self.docid, self.title) if name is not None]


def from_frame(
    frame: Any, name: str, chosen: Chosen | None = None, *, y: ArrayLike | None = None, qid: Ids = None
) -> DocumentTable:
    """Documents of a data frame of any library; labels and queries may be passed separately."""
    columns = {str(column): column for column in frames.names(frame)}
    values = {text: np.asarray(frame[column]) for text, column in columns.items()}
    beside = {key: np.asarray(given) for key, given in (("label", y), ("qid", qid)) if given is not None}
    return _from_columns({**values, **beside}, name, chosen or Chosen(), "the data frame")


def from_csv(source: object, name: str, chosen: Chosen | None = None, delimiter: str = ",") -> DocumentTable:
    """Documents of a CSV file with a header, or of an open binary file; compressed or not."""
    with opened(source) as plain:
        text = io.TextIOWrapper(plain, encoding="utf-8-sig", newline="")
        reader = csv.reader(text, delimiter=delimiter)
        names = [cell.strip() for cell in next(reader, [])]
        if not names:
            raise ValueError(f"{name} is empty: a table starts with a line of column names")
        rows = []
        for row in reader:
            if row and len(row) != len(names):
                raise ValueError(
                    f"{name}, line {reader.line_num}: {len(row)} values, but the header names {len(names)}"
                )
            if row:
                rows.append(row)
        text.detach()
    if not rows:
        raise ValueError(f"{name} has no rows")
    cells = dict(zip(names, zip(*rows, strict=True), strict=True))
    chosen = chosen or Chosen()
    texts = {lower for wanted in COLUMNS.values() for lower in wanted} - set(COLUMNS["label"])
    kinds = {} if chosen.encoder is None else chosen.encoder.kinds_
    values = {}
    for column, given in cells.items():
        as_text = column.lower() in texts or column == chosen.qid
        as_text &= column not in (chosen.features or ())
        values[column] = np.array(given, dtype=object) if as_text else _parsed(column, given, kinds)
    return _from_columns(values, name, chosen, name)


def from_parquet(path: str | os.PathLike, name: str, chosen: Chosen | None = None) -> DocumentTable:
    """Documents of a Parquet file or folder; single precision is kept."""
    chosen, where = chosen or Chosen(), Path(path)
    files = sorted(where.rglob("*.parquet")) if where.is_dir() else [where]
    if not files:
        raise FileNotFoundError(f"the folder {path} has no Parquet files (*.parquet)")
    table = parquet_table(files, str(path))
    numbers = _numeric(table.schema)
    others = _columns(table, _candidates(table.schema.names, numbers, chosen))
    usable = [*numbers, *(column for column, found in others.items() if is_encodable(found))]
    layout = DocumentLayout.of(table.schema.names, usable, chosen, str(path))
    if not table.n_rows:
        raise ValueError(f"{path} has no rows")
    if chosen.encoder is not None or not set(numbers).issuperset(layout.features):
        wanted = [column for column in table.schema.names if column in {*layout.texts, *layout.features}]
        return _from_columns(_columns(table, wanted), name, chosen, str(path))
    single = all(table.schema.field(f).type == "float" for f in layout.features)
    X = np.empty((int(table.n_rows), len(layout.features)), dtype=np.float32 if single else np.float64)
    parts: dict[str, list[np.ndarray]] = {column: [] for column in layout.texts}
    start, memory = 0, Recycled()
    for batch in table.read([*layout.texts, *layout.features]):
        stop = start + batch.num_rows
        X[start:stop] = row_major(batch.select(layout.features), X.dtype, memory)
        for column, found in parts.items():
            found.append(batch.column(column).to_numpy(zero_copy_only=False))
        start = stop
    whole = lambda key: None if key is None else np.concatenate(parts[key])
    return _documents(X, layout, whole, name, chosen)


def _candidates(names: Sequence[str], numbers: Sequence[str], chosen: Chosen) -> list[str]:
    """The columns that do not hold numbers but might be features."""
    if chosen.features:
        return [column for column in chosen.features if column not in numbers and column in names]
    known = {name for wanted in COLUMNS.values() for name in wanted}
    aside = {*numbers, chosen.label, chosen.qid, chosen.docid, *chosen.exclude}
    return [column for column in names if column not in aside and column.lower() not in known]


def _columns(table: OpenTable, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Some columns of a Parquet table, read whole."""
    if not names:
        return {}
    batches = list(table.read(list(names)))
    plain = lambda name: [batch.column(name).to_numpy(zero_copy_only=False) for batch in batches]
    return {name: np.concatenate(plain(name)) for name in names} if batches else {}


def _numeric(schema: pa.Schema) -> list[str]:
    from pyarrow import types

    number = lambda kind: types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
    return [field.name for field in schema if number(field.type) and not field.name.startswith("__index_level_")]


def _from_columns(values: dict[str, np.ndarray], name: str, chosen: Chosen, what: str) -> DocumentTable:
    numeric = [column for column, found in values.items() if found.dtype.kind in "biuf"]
    others = _candidates(list(values), numeric, chosen)
    usable = [*numeric, *(column for column in others if is_encodable(values[column]))]
    layout = DocumentLayout.of(list(values), usable, chosen, what)
    column = lambda key: None if key is None else values[key]
    if chosen.encoder is not None or not set(numeric).issuperset(layout.features):
        return _encoded({key: values[key] for key in layout.features}, layout, column, name, chosen)
    kinds = {values[column].dtype for column in layout.features}
    dtype = np.float32 if kinds == {np.dtype(np.float32)} else np.float64
    X = np.empty((len(values[layout.features[0]]), len(layout.features)), dtype=dtype)
    for j, key in enumerate(layout.features):
        X[:, j] = values[key]
    return _documents(X, layout, column, name, chosen)


def _documents(X: np.ndarray, layout: DocumentLayout, column: Any, name: str, chosen: Chosen) -> DocumentTable:
    if chosen.missing == "minimum":
        X = fill_with_minimum(X, column(layout.qid))
    elif chosen.missing != "nan":
        X = np.where(np.isnan(X), X.dtype.type(chosen.missing), X)
    try:
        return _table(X, layout, column, name, list(layout.features), None)
    except MissingValuesError:
        return _encoded(dict(zip(layout.features, X.T, strict=True)), layout, column, name, chosen)


def _encoded(
    features: dict[str, np.ndarray], layout: DocumentLayout, column: Any, name: str, chosen: Chosen
) -> DocumentTable:
    """Documents with encoded columns."""
    X, encoder = encoded(features, column(layout.qid), chosen.encoder)
    return _table(X, layout, column, name, [str(made) for made in encoder.get_feature_names_out()], encoder)


def _table(
    X: np.ndarray,
    layout: DocumentLayout,
    column: Any,
    name: str,
    names: list[str],
    encoder: TableEncoder | None,
) -> DocumentTable:
    label, qid = column(layout.label), column(layout.qid)
    y = np.full(len(X), np.nan) if label is None else _numbers(label, str(layout.label))
    data = RankingData(X, y, qid, names)
    made = documents(data, doc_ids=column(layout.docid), titles=column(layout.title), name=name)
    return made if encoder is None else replace(made, encoder=encoder)


def _numbers(values: np.ndarray, name: str) -> np.ndarray:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    try:
        return np.array([np.nan if v is None or v == "" else v for v in values.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} holds labels that are not numbers") from None


def _parsed(name: str, cells: Sequence[str], kinds: Mapping[str, str]) -> np.ndarray:
    """Numbers, with NaN for empty cells; else dates, booleans or text."""
    if name in kinds:
        return PlainTable.of({name: cells}, written=True).read(dict(kinds))[name]
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        pass
    try:
        empty = ("", "na", "nan", "null", "none")
        return np.array([np.nan if cell.strip().lower() in empty else float(cell) for cell in cells])
    except ValueError:
        return PlainTable.of({name: cells}, written=True).read()[name]
