"""Read and write CSV and Parquet, and find out which column is what. CSV needs only the standard library."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from scipy import sparse

from ..blocks.open_tables import is_numeric
from ..checks import is_query_name
from ..datasets import RankingData
from ..system.files import lines, name_of, opened
from ..tables import PlainTable
from .options.parser import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_ROWS = 10_000
LABELS, QIDS, DOCIDS, COMMENT = ("label", "y"), ("qid",), ("docid", "doc_id"), "comment"
ENDS = (("source", "target"), ("winner", "loser"), ("winnername", "losername"), ("winnerid", "loserid"),
        ("hometeam", "awayteam"), ("home", "away"), ("user", "item"), ("userid", "itemid"), ("drug", "target"),
        ("drugid", "targetid"), ("team1", "team2"), ("player1", "player2"))  # fmt: skip
INDEX = "__index_level_"  # start of pandas' name for an unnamed index, which holds row numbers
MISSING = {"", "null", "na", "none", "nan"}


class NotNumbersError(ValueError):
    """A feature column holds something other than numbers."""


@dataclass(frozen=True)
class TableColumns:
    """The column names that the user gives; None for the usual ones."""

    label: str | None = None
    qid: str | None = None
    docid: str | None = None
    features: list[str] | None = None
    exclude: Sequence[str] = ()
    needs_label: bool = True
    needs_queries: bool = True  # whether query or document columns that were named must exist
    anything: bool = False  # whether features may hold text, dates and missing values
    mix: dict[str, float] | None = None  # several columns of labels, with their weights
    minds_queries: bool = False  # whether an unused column of query ids is an error


def _check_idle(names: list[str], file: str) -> None:
    """Raise an error if an unused column looks like query ids."""
    idle = next((name for name in names if is_query_name(name)), None)
    if idle is not None:
        raise ValueError(
            f"column {idle!r} of {file} looks like query ids, but --columns leaves it out: pass --qid {idle}, "
            f"or --exclude {idle} if all rows are one query"
        )


@dataclass(frozen=True)
class Layout:
    """Which column of a table is what."""

    label: str | None
    qid: str | None
    docid: str | None
    comment: str | None
    features: list[str]
    anything: bool = False
    mix: dict[str, float] | None = None

    @classmethod
    def of(cls, names: list[str], columns: TableColumns, file: str) -> Layout:
        """The layout of a file's columns; an error that lists them if one is missing."""
        if len(set(names)) < len(names):
            again = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{file} has several columns named {again!r}: rename them")

        def find(given: str | None, usual: Iterable[str], needed: bool = True) -> str | None:
            if given is not None and (given in names or needed):
                return _known(given, names, file)
            return next((name for name in usual if name in names), None)

        mixed = [_known(name, names, file) for name in columns.mix or ()]
        label = mixed[0] if mixed else find(columns.label, LABELS, columns.needs_label)
        qid = find(columns.qid, QIDS, columns.needs_queries)
        docid, comment = find(columns.docid, DOCIDS, columns.needs_queries), find(None, (COMMENT,))
        if label is None and columns.needs_label:
            raise ValueError(
                f"{file} has no column 'label' or 'y': name it with --label; it has {listed(names)}"
                + (f". For games or other pairs of objects, pass --edges {file}" if usual_ends(names) else "")
            )
        features = columns.features
        if features is None:
            left = {label, *mixed, qid, docid, comment, *(_known(name, names, file) for name in columns.exclude)}
            features = [name for name in names if name not in left]
        for name in features:
            _known(name, names, file)
        if not features and columns.features is None:
            raise ValueError(f"{file} has no column of features; it has {listed(names)}")
        if columns.minds_queries and qid is None:
            used = {label, *mixed, docid, comment, *features, *columns.exclude}
            _check_idle([name for name in names if name not in used], file)
        return cls(label, qid, docid, comment, features, columns.anything, columns.mix)

    def data(
        self, column: Callable[[str], Any], floats: Callable[[str], np.ndarray], m: int, skipped: int, *, written: bool
    ) -> Any:
        """Rows from text columns and number columns; `written` if the cells come from a text file."""
        texts = lambda name: np.array([_text(value) for value in column(name)], dtype=object)
        comments = None if self.comment is None else texts(self.comment)
        documents = None if self.docid is None else texts(self.docid)
        if self.anything:
            X: Any = PlainTable.of({name: column(name) for name in self.features}, written=written)
        else:
            X = np.column_stack([floats(name) for name in self.features]) if self.features else np.empty((m, 0))
        weights = self.mix or ({} if self.label is None else {self.label: 1.0})
        y = np.full(m, np.nan) if not weights else np.zeros(m)
        for name, w in weights.items():
            y = y + w * floats(name)
        qid = None if self.qid is None else texts(self.qid)
        return RankingData(X, y, qid, list(self.features), comments, skipped, documents)


def _known(name: str, names: list[str], file: str) -> str:
    if name in names:
        return name
    raise ValueError(f"{file} has no column {name!r}{did_you_mean(name, names) or f'; it has {listed(names)}'}")


def usual_ends(names: Sequence[str]) -> tuple[str, str] | None:
    """The columns of both ends of an edge, if they have usual names.

    Examples
    --------
    >>> usual_ends(["Home Team", "Away Team", "score"])
    ('Home Team', 'Away Team')
    """
    by_name = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in names}
    found = ((by_name.get(first), by_name.get(second)) for first, second in ENDS)
    return next(((a, b) for a, b in found if a is not None and b is not None), None)


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:20]) + (f" and {len(names) - 20:,} more" if len(names) > 20 else "")


# ---------------------------------------------------------------- reading


def read_csv(file: BinaryIO, columns: TableColumns, delimiter: str = ",", skip: bool = False) -> Iterator[RankingData]:
    """Blocks of rows of a CSV file with a header."""
    name = name_of(file)
    with opened(file) as plain:
        text = io.TextIOWrapper(plain, encoding="utf-8-sig", newline="")
        reader = csv.reader(lines(text, name), delimiter=delimiter)
        names = [cell.strip() for cell in next(reader, [])]
        if not names:
            raise ValueError(f"{name} is empty: a table starts with a line of column names")
        layout = Layout.of(names, columns, name)
        block, any_rows = _Cells(name, names, layout, skip), False
        try:
            for row in reader:
                block.add(row, reader.line_num)
                if len(block.rows) == BLOCK_ROWS:
                    yield block.data()
                    block, any_rows = _Cells(name, names, layout, skip), True
        except csv.Error as error:
            raise ValueError(f"{name}, line {reader.line_num}: {error}") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} is not text in UTF-8 after line {reader.line_num}: {error}") from None
        if block.rows or not any_rows:
            yield block.data()
        text.detach()


class _Cells:
    """The cells of a block of lines."""

    def __init__(self, name: str, names: list[str], layout: Layout, skip: bool):
        self.name, self.names, self.layout, self.skip = name, names, layout, skip
        self.rows: list[list[str]] = []
        self.lines: list[int] = []
        self.skipped = 0
        labels = layout.mix or ([] if layout.label is None else [layout.label])
        numeric = [*([] if layout.anything else layout.features), *labels]
        self.wanted = [names.index(name) for name in numeric]

    def add(self, row: list[str], line: int) -> None:
        if not row:
            return
        if self.skip and (len(row) != len(self.names) or any(_float(row[j]) is None for j in self.wanted)):
            self.skipped += 1
        elif len(row) == len(self.names):
            self.rows.append(row)
            self.lines.append(line)
        else:
            raise ValueError(f"{self.name}, line {line}: {len(row)} values, but the header names {len(self.names)}")

    def data(self) -> RankingData:
        if not self.rows:
            raise ValueError(f"{self.name} has no rows that can be read")
        cells = dict(zip(self.names, zip(*self.rows, strict=True), strict=True))
        floats = lambda name: self._floats(name, cells[name])
        return self.layout.data(cells.__getitem__, floats, len(self.rows), self.skipped, written=True)

    def _floats(self, name: str, cells: tuple[str, ...]) -> np.ndarray:
        try:
            return np.array(cells, dtype=np.float64)
        except ValueError:
            values = [_float(cell) for cell in cells]
        if None in values:
            i = values.index(None)
            raise NotNumbersError(
                f"{self.name}, line {self.lines[i]}: {cells[i]!r} in column {name!r} is not a number; {_remedy(name)}"
            )
        return np.array(values, dtype=np.float64)


def read_parquet(file: BinaryIO, columns: TableColumns) -> Iterator[RankingData]:
    """Blocks of rows of a Parquet file."""
    parquet = _pyarrow(name_of(file)).parquet
    with opened(file) as plain:
        table = parquet.ParquetFile(io.BytesIO(plain.read()))
        names = [name for name in table.schema_arrow.names if not name.startswith(INDEX)]
        layout = Layout.of(names, columns, name_of(file))
        wanted = [name for name in (layout.label, layout.qid, layout.docid, layout.comment) if name is not None]
        wanted += [name for name in layout.mix or () if name not in wanted]
        for batch in table.iter_batches(batch_size=BLOCK_ROWS, columns=[*wanted, *layout.features]):
            if batch.num_rows:
                yield layout.data(*_of_batch(batch, name_of(file)), batch.num_rows, 0, written=False)


def needs_encoding(files: Sequence[Path], schema: Any, names: Sequence[str]) -> bool:
    """True if some columns of Parquet files hold something other than numbers, or are known to have missing values."""
    if not all(is_numeric(schema.field(name).type) for name in names):
        return True
    parquet = _pyarrow(str(files[0])).parquet
    for file in files:
        metadata = parquet.ParquetFile(file).metadata
        groups = [metadata.row_group(g) for g in range(metadata.num_row_groups)]
        for column in (group.column(c) for group in groups for c in range(group.num_columns)):
            if column.path_in_schema in names and column.statistics and column.statistics.null_count:
                return True
    return False


def read_columns(file: BinaryIO, delimiter: str | None) -> dict[str, list[Any]]:
    """All cells by column: as text from a CSV file, or from a Parquet file if there is no delimiter."""
    with opened(file) as plain:
        if delimiter is None:
            table = _pyarrow(name_of(file)).parquet.read_table(io.BytesIO(plain.read()))
            return {name: table.column(name).to_pylist() for name in table.column_names}
        rows = list(csv.reader(io.StringIO(plain.read().decode("utf-8-sig"), newline=""), delimiter=delimiter))
    names, cells = rows[0] if rows else [], [row for row in rows[1:] if row]
    if any(len(row) != len(names) for row in cells):
        raise ValueError(f"{name_of(file)} has lines with more or fewer values than its header")
    return {name: [row[j] for row in cells] for j, name in enumerate(names)}


def _of_batch(batch: pa.RecordBatch, file: str) -> tuple[Callable[[str], Any], Callable[[str], np.ndarray]]:
    def floats(name: str) -> np.ndarray:
        try:
            return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)
        except (TypeError, ValueError):
            raise NotNumbersError(
                f"{file}: column {name!r} holds {_words(batch.schema.field(name).type)}, not numbers; {_remedy(name)}"
            ) from None

    return lambda name: batch.column(name).to_pylist(), floats


def _remedy(name: str) -> str:
    """What to do about a column that should hold numbers but does not."""
    if is_query_name(name):
        return f"if it names the query, pass --qid {name}"
    return f"--exclude {name} leaves it out; --label, --qid, --docid and --columns say which column is what"


def _words(kind: pa.DataType) -> str:
    """An Arrow type in plain words."""
    text = str(kind)
    return (
        "text" if "string" in text else "dates" if text.startswith(("date", "timestamp")) else f"values of type {text}"
    )


def _pyarrow(file: str) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{file} is Parquet, which needs pyarrow: pip install 'rankrls[arrow]'") from None
    return pyarrow


def _float(cell: str) -> float | None:
    """The cell as a number, NaN if it is missing, None if it is neither."""
    if cell.strip().lower() in MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return None


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


# ---------------------------------------------------------------- writing


def write_csv(blocks: Iterable[dict[str, np.ndarray]], file: BinaryIO, delimiter: str = ",") -> None:
    """Blocks of columns under a line of their names; NaN as an empty cell."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        for number, columns in enumerate(blocks):
            if not number:
                writer.writerow(columns)
            writer.writerows(zip(*(map(_cell, column.tolist()) for column in columns.values()), strict=True))
    finally:
        text.detach()


def write_parquet(blocks: Iterable[dict[str, np.ndarray]], file: BinaryIO) -> None:
    """Blocks of columns as a Parquet table."""
    pyarrow, writer = _pyarrow("the output"), None
    for columns in blocks:
        arrays = {k: pyarrow.array(v.tolist() if v.dtype == object else v) for k, v in columns.items()}
        table = pyarrow.table(arrays)
        writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def columns_of(blocks: Iterable[RankingData]) -> Iterator[dict[str, np.ndarray]]:
    """Data as blocks of columns: query, label, document, comment, features."""
    for data in blocks:
        names = data.feature_names or [f"f{j}" for j in range(1, data.X.shape[1] + 1)]
        front = _leading_columns(data)
        if clash := front.keys() & set(names):
            raise ValueError(f"a feature is named {sorted(clash)[0]!r}, which is the name of another column")
        for start in range(0, len(data), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            X = data.X[rows].toarray() if sparse.issparse(data.X) else data.X[rows]
            yield {**{name: column[rows] for name, column in front.items()}, **dict(zip(names, X.T, strict=True))}


def _leading_columns(data: RankingData) -> dict[str, np.ndarray]:
    """Columns before the features: query, label, document and comment."""
    columns = {} if data.qid is None else {"qid": np.asarray(data.qid, dtype=object)}
    columns["label"] = data.y
    if data.doc_ids is not None:
        columns["docid"] = data.doc_ids
    if data.comments is not None:
        plain = [""] * len(data) if data.doc_ids is None else [f"docid = {d}" if d else "" for d in data.doc_ids]
        if any(text.strip() != p for text, p in zip(data.comments, plain, strict=True)):
            columns["comment"] = data.comments
    return columns


def _cell(value: object) -> str:
    """The shortest text that reads back as a number; nothing for NaN."""
    if not isinstance(value, float):
        return str(value)
    return "" if value != value else repr(value).removesuffix(".0")
