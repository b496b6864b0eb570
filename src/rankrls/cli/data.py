"""Data files of any kind as `RankingData`, whole or in blocks, and back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np
from scipy import sparse

from ..datasets import RankingData, dump_letor, iter_letor, load_letor
from ..datasets.scaling import fill_with_minimum
from .options import FORMATS
from .tables import Columns, columns_of, read_csv, read_parquet, write_csv, write_parquet
from .text import remark, source, target

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
DELIMITERS = {"csv": ",", "tsv": "\t"}
MANY_FEATURES = 100_000_000  # more than the reader of LETOR text allows


def kind(path: str, given: str | None = None) -> str:
    """The format of a file: as given, or as its name says.

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
    n_features: Any = None,
    label: bool = True,
) -> Any:
    """All rows of one or several files; `names` and `n_features` are those of a model."""
    if list(paths).count("-") > 1:
        raise ValueError("standard input (-) can be read only once")
    parts = [_read_one(path, args, names, n_features, label) for path in paths]
    data = parts[0] if len(parts) == 1 else _joined(parts, paths, args)
    if data.skipped:
        remark(args, f"left out {data.skipped} unreadable lines")
    return data


def _read_one(path: str, args: Namespace, names: Any, n_features: int | None, label: bool) -> RankingData:
    if kind(path, args.input_format) == "letor":
        with source(path, args.quiet) as file:
            return load_letor(file, n_features=n_features, **_letor_options(args))
    data = _concatenated(list(_tables(path, args, names, label)))
    return replace(data, X=_filled(data.X, data.qid, args.missing))


def blocks(
    path: str, args: Namespace, rows: int, *, whole_queries: bool, names: Sequence[str] | None = None, n_features: Any
) -> Any:
    """Rows for prediction, block after block; whole queries if they must be."""
    if rows <= 0 or (kind(path, args.input_format) != "letor" and (whole_queries or args.missing == "minimum")):
        yield read([path], args, names=names, n_features=n_features, label=False)
        return
    if kind(path, args.input_format) != "letor":
        for block in _tables(path, args, names, False):
            yield replace(block, X=_filled(block.X, None, args.missing))
        return
    whole = whole_queries or args.missing == "minimum"
    with source(path, args.quiet) as file:
        yield from iter_letor(file, rows=rows, n_features=n_features, whole_queries=whole, **_letor_options(args))


def labels(path: str, args: Namespace) -> RankingData:
    """Rows without their features."""
    without = lambda block: replace(block, X=np.empty((len(block), 0)))
    if kind(path, args.input_format) != "letor":
        return _concatenated(list(_tables(path, args, [], True)))
    options = {**_letor_options(args), "zero_based": True, "sparse": True, "missing": "nan"}
    with source(path, args.quiet) as file:
        parts = iter_letor(file, n_features=MANY_FEATURES, whole_queries=False, **options)
        return _concatenated([without(block) for block in parts])


def stored(path: str, args: Namespace) -> Iterator[RankingData]:
    """Rows to be written again, in blocks where that can be without looking at all of them first."""
    if kind(path, args.input_format) == "letor" or args.missing == "minimum":
        yield read([path], args)
        return
    for block in _tables(path, args, None, True):
        yield replace(block, X=_filled(block.X, block.qid, args.missing))


def write(parts: Iterable[RankingData], path: str, format: str | None, zero_based: bool = False) -> None:
    """Write rows in the format that a path names."""
    form = kind(path, format)
    with target(path) as file:
        if form == "letor":
            dump_letor(parts, file, zero_based=zero_based)
        elif form == "parquet":
            write_parquet(columns_of(parts), file)
        else:
            write_csv(columns_of(parts), file, DELIMITERS[form])


def complete(data: RankingData) -> RankingData:
    """The data, if no value is missing."""
    values = data.X.data if sparse.issparse(data.X) else data.X
    holes = np.isnan(values)
    if holes.any():
        raise ValueError(
            f"{int(holes.sum())} values of features are missing (NULL or empty): "
            "--missing 0 or another number fills them in, --missing minimum takes the smallest of the query"
        )
    return data


def doc_ids(data: RankingData, first: int = 1) -> np.ndarray:
    """The document of each row, or its number where the data name none."""
    numbers = np.arange(first, first + len(data)).astype(str).astype(object)
    return numbers if data.doc_ids is None else np.where(data.doc_ids == "", numbers, data.doc_ids)


# ---------------------------------------------------------------- inside


def _letor_options(args: Namespace) -> dict[str, Any]:
    errors = "skip" if args.skip_bad_lines else "raise"
    return {"zero_based": args.zero_based, "sparse": args.sparse, "missing": args.missing, "errors": errors}


def _tables(path: str, args: Namespace, names: Iterable[str] | None, label: bool) -> Iterator[RankingData]:
    form = kind(path, args.input_format)
    features = None if names is None else list(names)
    if args.columns is not None and features != []:
        features = args.columns
    columns = Columns(args.label, args.qid, features, label)
    with source(path, args.quiet) as file:
        if form == "parquet":
            yield from read_parquet(file, columns)
        else:
            yield from read_csv(file, columns, DELIMITERS[form], args.skip_bad_lines)


def _filled(X: np.ndarray, qid: np.ndarray | None, missing: str | float) -> np.ndarray:
    if missing == "minimum":
        return fill_with_minimum(X, qid)
    return X if missing == "nan" else np.where(np.isnan(X), missing, X)


def _concatenated(parts: list[RankingData]) -> RankingData:
    if not parts:
        raise ValueError("the data have no rows")
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    stack = sparse.vstack if sparse.issparse(first.X) else np.vstack
    X = stack([part.X for part in parts])
    y = np.concatenate([part.y for part in parts])
    qid = None if first.qid is None else np.concatenate([part.qid for part in parts])
    comments = None
    if any(part.comments is not None for part in parts):
        empty = lambda part: np.full(len(part), "", dtype=object)
        comments = np.concatenate([empty(part) if part.comments is None else part.comments for part in parts])
    return RankingData(X, y, qid, first.feature_names, comments, sum(part.skipped for part in parts))


def _joined(parts: list[RankingData], paths: Sequence[str], args: Namespace) -> RankingData:
    """Several files as one: the same query id is the same query, and LETOR rows get as many columns as the widest."""
    first = parts[0]
    for part, path in zip(parts, paths, strict=True):
        if part.feature_names != first.feature_names:
            raise ValueError(f"{path} has other columns of features than {paths[0]}")
        if (part.qid is None) != (first.qid is None):
            raise ValueError(f"one of {paths[0]} and {path} has query ids, the other has not")
    seen: dict[Any, str] = {}
    for part, path in zip(parts, paths, strict=True):
        for query in [] if part.qid is None else np.unique(part.qid).tolist():
            if seen.setdefault(query, path) != path:
                remark(args, f"query {query!r} is in {seen[query]} and in {path}: it is taken as one query")
                break
    width = max(part.X.shape[1] for part in parts)
    return _concatenated([replace(part, X=_widened(part.X, width)) for part in parts])


def _widened(X: Any, width: int) -> Any:
    if X.shape[1] == width:
        return X
    if sparse.issparse(X):
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    return np.pad(X, ((0, 0), (0, width - X.shape[1])))
