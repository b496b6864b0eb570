"""Read data files of any kind into `RankingData`, whole or in blocks, and write them."""

from __future__ import annotations

import os
import warnings
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from scipy import sparse

from ..checks import qid_from_group
from ..clicks import read_judgments
from ..datasets import RankingData, dump_letor, iter_letor, load_letor
from ..datasets.scaling import fill_with_minimum
from ..system.warnings import warn
from ..tables import PlainTable
from .letor_features import chosen_features
from .options import FORMATS
from .tables import (
    NotNumbersError,
    TableColumns,
    columns_of,
    read_columns,
    read_csv,
    read_parquet,
    write_csv,
    write_parquet,
)
from .text import plural, remark, source, target

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
DELIMITERS = {"csv": ",", "tsv": "\t"}
MANY_FEATURES = 100_000_000  # more than the LETOR reader allows


def kind(path: str, given: str | None = None) -> str:
    """The format of a file: the given one, or that of its name.

    Examples
    --------
    >>> kind("train.txt.gz"), kind("train.csv.xz"), kind("-")
    ('letor', 'csv', 'letor')
    """
    assert given is None or given in FORMATS
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return given or SUFFIXES.get(suffixes[-1] if suffixes else "", "letor")


def read(
    paths: Sequence[str],
    args: Namespace,
    *,
    names: Sequence[str] | None = None,
    n_features: int | None = None,
    label: bool = True,
    kinds: dict[str, str] | None = None,
) -> Any:
    """All rows of one or several files; `names`, `n_features` and `kinds` come from a model."""
    if list(paths).count("-") > 1:
        raise ValueError("standard input (-) can be read only once")
    label = label and not getattr(args, "judgments", None)
    parts = [_read_one(path, args, names, n_features, label, kinds) for path in paths]
    data = parts[0] if len(parts) == 1 else _joined(parts, paths, args)
    warn_about_groups(data, args, paths)
    data = _judged(_grouped(data, args), args)
    if isinstance(data.X, PlainTable):
        data = replace(data, X=data.X.read(kinds))
    if data.skipped:
        remark(args, f"left out {plural(data.skipped, 'unreadable line')}")
    return data


def read_to_learn(args: Namespace) -> Any:
    """All rows; tables with text, dates or missing values in a form that can be encoded, unless options forbid it."""
    tables = all(kind(path, args.input_format) != "letor" for path in args.data)
    if args.encode == "yes" and not tables:
        raise ValueError("--encode yes is for tables (CSV, TSV, Parquet): LETOR text holds numbers")
    label = not any(getattr(args, name, None) for name in ("clicks", "pairs"))
    if args.encode == "yes":
        return read(args.data, args, label=label, kinds={})
    again = args.encode == "auto" and tables and args.missing is None and "-" not in args.data
    try:
        data = read(args.data, args, label=label)
        if not (again and np.isnan(data.X).any()):
            return data
    except NotNumbersError:
        if not again:
            raise
    return read(args.data, args, label=label, kinds={})


def _read_one(
    path: str,
    args: Namespace,
    names: Sequence[str] | None,
    n_features: int | None,
    label: bool,
    kinds: dict[str, str] | None,
) -> RankingData:
    """All rows of one file."""
    if kind(path, args.input_format) == "letor":
        with source(path, args.quiet) as file:
            return chosen_features(_named(load_letor(file, n_features=n_features, **_letor_options(args)), args), args)
    data = _concatenated(list(_tables(path, args, names, label, anything=kinds is not None)))
    if isinstance(data.X, PlainTable):
        return data
    return replace(data, X=_filled(data.X, data.qid, args.missing))


def blocks(
    path: str,
    args: Namespace,
    rows: int,
    *,
    whole_queries: bool,
    names: Sequence[str] | None = None,
    n_features: int | None,
    kinds: dict[str, str] | None = None,
) -> Any:
    """Rows for prediction, block by block; in whole queries if the model needs them."""
    table = kind(path, args.input_format) != "letor"
    if rows <= 0 or args.group or (table and (whole_queries or args.missing == "minimum")):
        yield read([path], args, names=names, n_features=n_features, label=False, kinds=kinds)
        return
    if table and kinds is not None:
        for block in _tables(path, args, names, False, anything=True):
            yield replace(block, X=block.X.read(kinds))
        return
    if table:
        for block in _tables(path, args, names, False):
            yield replace(block, X=_filled(block.X, None, args.missing))
        return
    whole = whole_queries or args.missing == "minimum"
    with source(path, args.quiet) as file:
        found = iter_letor(file, rows=rows, n_features=n_features, whole_queries=whole, **_letor_options(args))
        yield from (chosen_features(block, args) for block in found)


def labels(path: str, args: Namespace) -> RankingData:
    """Rows without their features."""
    without = lambda block: replace(block, X=np.empty((len(block), 0)))
    if kind(path, args.input_format) != "letor":
        rows = _concatenated(list(_tables(path, args, [], not getattr(args, "judgments", None))))
        return _judged(_grouped(rows, args), args)
    options = {**_letor_options(args), "zero_based": True, "sparse": True, "missing": "nan"}
    with source(path, args.quiet) as file:
        parts = iter_letor(file, n_features=MANY_FEATURES, whole_queries=False, **options)
        rows = _concatenated([without(block) for block in parts])
        warn_about_groups(rows, args, [path])
        return _judged(_grouped(rows, args), args)


def stored(path: str, args: Namespace) -> Iterator[RankingData]:
    """Rows to convert, in blocks if the file can be read without scanning all of it first."""
    if (
        kind(path, args.input_format) == "letor"
        or args.missing == "minimum"
        or args.group
        or getattr(args, "judgments", None)
    ):
        yield read([path], args)
        return
    for block in _tables(path, args, None, True):
        yield replace(block, X=_filled(block.X, block.qid, args.missing))


def table_cells(path: str, args: Namespace) -> dict[str, list[Any]]:
    """All cells of a CSV, TSV or Parquet file by column, as text; other file names count as CSV."""
    form = kind(path)
    with source(path, args.quiet) as file:
        return read_columns(file, DELIMITERS.get("csv" if form == "letor" else form))


def write(parts: Iterable[RankingData], path: str, format: str | None, zero_based: bool = False) -> None:
    """Write rows in the given format, or in that of the file's name."""
    form = kind(path, format)
    with target(path) as file:
        if form == "letor":
            dump_letor(map(_commented, parts), file, zero_based=zero_based)
        elif form == "parquet":
            write_parquet(columns_of(parts), file)
        else:
            write_csv(columns_of(parts), file, DELIMITERS[form])


def _commented(data: RankingData) -> RankingData:
    """The data with document ids in the comments, as in LETOR text."""
    if data.documents is None or data.comments is not None:
        return data
    return replace(data, comments=np.array([f"docid = {d}" if d else "" for d in data.documents], dtype=object))


def warn_about_groups(data: RankingData, args: Namespace, paths: Iterable[str]) -> None:
    """Warn if data without query ids has a file of query sizes next to it, as LightGBM uses them."""
    for path in paths if data.qid is None and args.group is None else ():
        for beside in (f"{path}.query", f"{path}.group"):
            if os.path.isfile(beside):
                warn(f"{path} has no query ids, but there is a file {beside}: pass --group {beside}")
                warnings.filterwarnings("ignore", message="no qid was given")  # would say the same
                return


def warn_about_width(path: str, args: Namespace, given: int, n: int) -> None:
    """Warn if LETOR text lacks the last features that a model has."""
    some = args.columns is not None or bool(args.exclude)  # the others count as 0 anyway
    if given < n and not some and kind(path, args.input_format) == "letor":
        first = given + (0 if args.zero_based else 1)
        last = n - (1 if args.zero_based else 0)
        missing = f"feature {last}" if first == last else f"features {first} to {last}"
        warn(
            f"{path} has no values for {missing}, but the model was trained on {plural(n, 'feature')}: they count as 0"
        )


def last_column(X: Any) -> int:
    """The number of columns up to the last one with a nonzero value."""
    if isinstance(X, PlainTable):
        return X.shape[1]
    if sparse.issparse(X):
        return int(X.tocsr().indices.max(initial=-1)) + 1
    j = X.shape[1]
    while j and not X[:, j - 1].any():
        j -= 1
    return j


def complete(data: RankingData) -> RankingData:
    """The data; an error if values are missing."""
    if isinstance(data.X, PlainTable):
        return data  # missing values will be encoded
    values = data.X.data if sparse.issparse(data.X) else data.X
    holes = np.isnan(values)
    if holes.any():
        raise ValueError(
            f"{int(holes.sum())} values of features are missing (NULL or empty): "
            "--missing 0 or another number fills them in, --missing minimum uses the smallest value of the query, and "
            "--encode yes encodes tables with missing values"
        )
    return data


def doc_ids(data: RankingData, first: int = 1) -> np.ndarray:
    """The document of each row, or the row number if the data have no document ids."""
    numbers = np.arange(first, first + len(data)).astype(str).astype(object)
    return numbers if data.doc_ids is None else np.where(data.doc_ids == "", numbers, data.doc_ids)


# ---------------------------------------------------------------- helpers


def _letor_options(args: Namespace) -> dict[str, Any]:
    errors = "skip" if args.skip_bad_lines else "raise"
    missing = "nan" if args.missing is None else args.missing
    return {"zero_based": bool(args.zero_based), "sparse": bool(args.sparse), "missing": missing, "errors": errors}


def _tables(
    path: str, args: Namespace, names: Iterable[str] | None, label: bool, *, anything: bool = False
) -> Iterator[RankingData]:
    """Yield blocks of a CSV, TSV or Parquet file."""
    form = kind(path, args.input_format)
    features = None if names is None else list(names)
    if args.columns is not None and features != []:
        features = args.columns
    if features and args.exclude:
        features = [name for name in features if name not in args.exclude]
    remembered: frozenset[str] = getattr(args, "remembered", frozenset())
    columns = TableColumns(
        args.label,
        args.qid,
        args.docid,
        features,
        args.exclude or (),
        needs_label=label,
        mix=getattr(args, "mix", None),
        needs_queries=not remembered & {"qid", "docid"},
        anything=anything,
        minds_queries=args.columns is not None and "columns" not in remembered and not args.group,
    )
    with source(path, args.quiet) as file:
        if form == "parquet":
            yield from read_parquet(file, columns)
        else:
            yield from read_csv(file, columns, DELIMITERS[form], args.skip_bad_lines)


def _named(data: RankingData, args: Namespace) -> RankingData:
    """The data with the names of --feature-names, if given."""
    if args.feature_names is None:
        return data
    if len(args.feature_names) != data.X.shape[1]:
        raise ValueError(
            f"--feature-names gives {len(args.feature_names)} names, the data have {data.X.shape[1]} features"
        )
    return replace(data, feature_names=list(args.feature_names))


def _judged(data: RankingData, args: Namespace) -> RankingData:
    """The data with labels from a file of judgments, NaN where it has none."""
    path = getattr(args, "judgments", None)
    if path is None:
        return data
    qid = np.full(len(data), "1", dtype=object) if data.qid is None else data.qid
    joined = read_judgments(Path(path)).join(qid, doc_ids(data))
    if not joined.n_judged:
        raise ValueError(
            f"{path} judges none of the {len(data):,} rows: the data have query {qid[0]!r} and document "
            f"{doc_ids(data)[0]!r}; --qid and --docid say which columns name them"
        )
    judgments = f"{plural(joined.n_without_row, 'judgment')} without a row"
    remark(args, f"{path}: {plural(joined.n_judged, 'row')} judged, {joined.n_unjudged:,} not; {judgments}")
    return replace(data, y=joined.y)


def _grouped(data: RankingData, args: Namespace) -> RankingData:
    """The data with query ids from a file of query sizes (LightGBM)."""
    if args.group is None:
        return data
    if data.qid is not None:
        raise ValueError("the data already have query ids: leave --group out")
    if args.missing == "minimum":
        raise ValueError("--missing minimum needs query ids in the data: it cannot be combined with --group")
    with open(args.group, encoding="utf-8") as file:
        words = file.read().split()
    try:
        qid = qid_from_group([int(word) for word in words])
    except ValueError:
        raise ValueError(f"{args.group} must hold the number of rows of each query, one per line") from None
    if len(qid) != len(data):
        raise ValueError(f"the sizes in {args.group} add up to {len(qid):,} rows, but the data have {len(data):,}")
    return replace(data, qid=(qid + 1).astype(str).astype(object))


def _filled(X: np.ndarray, qid: np.ndarray | None, missing: str | float | None) -> np.ndarray:
    if missing == "minimum":
        return fill_with_minimum(X, qid)
    return X if missing in (None, "nan") else np.where(np.isnan(X), missing, X)


def _concatenated(parts: list[RankingData]) -> RankingData:
    if not parts:
        raise ValueError("the data have no rows")
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    stack = sparse.vstack if sparse.issparse(first.X) else np.vstack
    stack = PlainTable.join if isinstance(first.X, PlainTable) else stack
    X = stack([part.X for part in parts])
    y = np.concatenate([part.y for part in parts])
    qid = None if first.qid is None else np.concatenate([part.qid for part in parts])
    comments, documents = (_texts(parts, name) for name in ("comments", "documents"))
    skipped = sum(part.skipped for part in parts)
    return RankingData(X, y, qid, first.feature_names, comments, skipped, documents)


def _texts(parts: list[RankingData], name: str) -> np.ndarray | None:
    """The comments or documents of all parts, empty where a part has none."""
    found = [getattr(part, name) for part in parts]
    if all(texts is None for texts in found):
        return None
    empty = lambda part: np.full(len(part), "", dtype=object)
    return np.concatenate([empty(part) if texts is None else texts for part, texts in zip(parts, found, strict=True)])


def _joined(parts: list[RankingData], paths: Sequence[str], args: Namespace) -> RankingData:
    """Several files as one: equal query ids mean the same query, and LETOR rows get as many columns as the widest."""
    first = parts[0]
    for part, path in zip(parts, paths, strict=True):
        if part.feature_names != first.feature_names:
            raise ValueError(f"{path} has different feature columns from {paths[0]}")
        if (part.qid is None) != (first.qid is None):
            raise ValueError(f"one of {paths[0]} and {path} has query ids, but the other does not")
    seen: dict[Any, str] = {}
    for part, path in zip(parts, paths, strict=True):
        for query in [] if part.qid is None else np.unique(part.qid).tolist():
            if seen.setdefault(query, path) != path:
                remark(args, f"query {query!r} is in {seen[query]} and in {path}: both parts count as one query")
                break
    width = max(part.X.shape[1] for part in parts)
    return _concatenated([replace(part, X=_widened(part.X, width)) for part in parts])


def _widened(X: Any, width: int) -> Any:
    if X.shape[1] == width:
        return X
    if sparse.issparse(X):
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    return np.pad(X, ((0, 0), (0, width - X.shape[1])))
