"""Checks of rows: frames in the same order, columns by name, query ids, labels, weights, pairs and scores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from ..core.queries import Queries
from ..system.frames import as_column, as_frame, dates, gaps_and_text, is_missing, names, without
from ..system.types import ArrayLike, Ids, Matrix, MatrixLike

LARGEST = 1e300  # limit of the sum of weights, which must leave room for the squares they multiply
NO_FEATURES = "Judgments without features cannot be learned from: join the features of their documents to them"
QID = "qid"  # a column of this name in a data frame holds the query ids
ENCODE = "put rankrls.TableEncoder() before the ranker in a pipeline, which turns them into numbers"
MASKED = {"y": "NaN marks a row without a score", "Y": "NaN marks an unknown edge"}  # what to pass instead of a mask
_QUERY_NAME = re.compile(  # common names of query id columns
    r"qid|query|session|topic|(.*[\W_])?(q|query|session|search|srch|request|topic|impression|group)[\W_]?"
    r"(id|no|nr|number|key|hash|uuid)"
)


def check_aligned(**values: Any) -> None:
    """Raise an error if index labels show that frames and series are not in the same order.

    Rows are matched by position. A plain range 0, 1, ... next to other labels shows nothing, but a permutation of the
    range next to the range does.
    """
    indices = [(name, value.index) for name, value in values.items() if hasattr(value, "iloc")]
    for (a, first), (b, second) in combinations(indices, 2):
        if len(first) != len(second) or first.equals(second):  # lengths are checked elsewhere
            continue
        if _is_range(first) != _is_range(second) and not (_is_permuted(first) and _is_permuted(second)):
            continue
        same = first.isin(second).all() and second.isin(first).all()
        differs = "is in a different order from" if same else "has different labels from"
        raise ValueError(
            f"the index of {b} {differs} that of {a}, so rows would be mixed up: use {b}.loc[{a}.index], or "
            f"{b}.to_numpy() if the rows of both are in the same order"
        )


def _is_range(index: object) -> bool:
    """True if the labels of an index are 0, 1, ... in order."""
    return getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1


def _is_permuted(index: Any) -> bool:
    """True if the labels of an index are 0, 1, ... in any order."""
    return _is_range(index) or bool(
        np.asarray(index).dtype.kind in "iu" and index.min() == 0 and index.max() == len(index) - 1 and index.is_unique
    )


def split_qid_column(X: MatrixLike, qid: Ids, *, needed: bool = True) -> tuple[Any, Any]:
    """X as an array or frame without its column `qid`, and the query ids from the column or the argument."""
    X = as_frame(X)
    check_aligned(X=X, qid=qid)
    if QID not in names(X):
        return X, qid
    if qid is not None and needed:
        raise ValueError("query ids were given twice: as the argument qid and as the column 'qid' of X; drop one")
    return without(X, QID), X[QID]


def is_query_name(name: object) -> bool:
    """True if a column has a name that columns of query ids usually have.

    Examples
    --------
    >>> [is_query_name(name) for name in ("query_id", "srch_id", "Session", "query_length", "price")]
    [True, True, True, False, False]
    """
    return isinstance(name, str) and _QUERY_NAME.fullmatch(name.strip().lower()) is not None


def one_column(y: Any) -> TypeError:
    """The error for several names of columns of labels."""
    return TypeError(
        f"y={list(y)!r}: y names one column; for several targets pass numbers of shape (n_samples, n_targets), with "
        "rows in memory"
    )


def named_columns(X: MatrixLike, y: object, qid: object, sample_weight: object) -> tuple[Any, Any, Any, Any]:
    """Labels, query ids and weights that are given as names of columns, and the data frame without those columns."""
    named = {
        name: value
        for name, value in (("y", y), ("qid", qid), ("sample_weight", sample_weight))
        if isinstance(value, str)
    }
    if isinstance(y, list | tuple) and len(y) > 0 and {*map(type, y)} == {str} and {*y} <= {*names(as_frame(X))}:
        raise one_column(y)
    check_aligned(X=X, y=y, qid=qid, sample_weight=sample_weight)
    if not named:
        return X, y, qid, sample_weight
    frame = as_frame(X)
    found = {"y": y, "qid": qid, "sample_weight": sample_weight}
    for argument, column in named.items():
        if column not in names(frame):
            have = ", ".join(map(str, names(frame)[:20])) or "no columns with names"
            raise ValueError(f"{argument}={column!r} is not a column of X, which has {have}")
        found[argument] = frame[column]
    for column in set(named.values()):
        frame = without(frame, column)
    return frame, found["y"], found["qid"], found["sample_weight"]


def split_columns(X: MatrixLike, y: Any, qid: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
    """Features alone, as an array or frame, and labels, query ids and weights: as given, or columns of X."""
    X, y, qid, sample_weight = named_columns(X, y, qid, sample_weight)
    check_content(y=y, qid=qid, sample_weight=sample_weight)
    X, qid = split_qid_column(X, qid)
    return X, y, qid, sample_weight


def check_in_memory(X: object, ranker: str) -> None:
    """Raise an error unless rows are in memory, rather than in a file or a stream."""
    stream = hasattr(X, "__next__") or (callable(X) and not hasattr(X, "__array__"))
    encoded = hasattr(X, "sum_tables")  # what an encoder in a pipeline makes of a file
    if encoded or isinstance(X, str | os.PathLike) or (stream and not hasattr(X, "__arrow_c_stream__")):
        what = "the encoded rows of a file or a stream" if encoded else repr(X)
        raise ValueError(
            f"{ranker} learns from rows in memory, got {what}: read them first, e.g. with polars.read_parquet or "
            "rankrls.datasets.load_letor. RankRLS, CoRankRLS and TransductiveRankRLS can learn from files and streams"
        )


def check_content(**values: Any) -> None:
    """Raise an error for values that NumPy would silently misread: masked entries and imaginary parts."""
    for name, array in values.items():
        if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
            n = int(np.ma.getmaskarray(array).sum())
            remedy = MASKED.get(name, "drop those rows, or fill them in")
            raise ValueError(f"{name} is a masked array, but its {n} masked entries would count as values: {remedy}")
        if getattr(array, "dtype", None) is not None and getattr(array.dtype, "kind", "") == "c":
            raise ValueError(f"Complex data not supported: {name} has imaginary parts; pass real numbers")


def check_dense(X: Any, transformer: str) -> None:
    """Raise an error for sparse rows, which a transformer that fills in every value cannot keep sparse."""
    if sparse.issparse(X):
        raise TypeError(
            f"{transformer} takes dense rows, got a sparse matrix: it changes zeros too, so the result would be dense. "
            "Leave this step out (the rankers learn from sparse rows as they are), or pass X.toarray() if "
            f"{X.shape[0]:,} x {X.shape[1]:,} numbers fit in memory"
        )


def check_features(X: Any) -> None:
    """The same check for features, which must not be dates either."""
    check_content(X=X)
    found = dates(X)
    if found:
        raise ValueError(_encode("Input X contains dates.", found))


def check_queries(qid: object, m: int) -> Queries:
    """Rows grouped by query id; None puts all rows in one query."""
    if qid is None:
        return Queries.single(m)
    ids = np.asarray(as_column(qid))
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1 or len(ids) != m:
        raise ValueError(
            f"qid must hold one query id per row of X: got shape {ids.shape} for {m} rows"
            + (" (group sizes? see rankrls.qid_from_group)" if ids.ndim == 1 and _sums_to(ids, m) else "")
        )
    missing = is_missing(ids)
    if missing.any():
        raise ValueError(
            f"qid has {missing.sum()} missing values, the first at row {int(np.argmax(missing))}: "
            "every row needs a query id"
        )
    try:
        return Queries.of(ids)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in ids.tolist()})
        raise TypeError(
            f"qid mixes types that cannot be compared ({', '.join(kinds)}): convert it to strings"
        ) from None


def qid_from_group(sizes: ArrayLike) -> np.ndarray:
    """One query id per row, from the sizes of consecutive queries (the `group` of LightGBM and XGBoost).

    Examples
    --------
    >>> qid_from_group([2, 3])
    array([0, 0, 1, 1, 1])
    """
    sizes = np.asarray(sizes)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or np.any(sizes < 0):
        raise ValueError("group sizes must be non-negative integers in one dimension")
    return np.repeat(np.arange(len(sizes)), sizes)


def _sums_to(ids: np.ndarray, m: int) -> bool:
    return ids.dtype.kind in "iu" and int(ids.sum()) == m


def unreadable(error: ValueError | TypeError, X: Matrix, remedy: str = ENCODE) -> ValueError | TypeError:
    """An error about missing values or text in X, extended by the columns and what to do; other errors unchanged."""
    text = str(error)
    if "0 feature(s)" in text:
        return ValueError(f"{text} {NO_FEATURES}")
    if "X contains infinity" in text:
        return ValueError(f"{text} {_infinite(X)}")
    if not any(words in text for words in ("NaN", "could not convert", "float() argument")):
        return error
    found = gaps_and_text(X)
    if not found:
        return error
    # scikit-learn asks for a TypeError if cells hold objects that no encoder knows, such as dicts
    kind = ValueError if any("(dates)" in column for column in found) else type(error)
    return kind(_encode(f"{text.splitlines()[0].rstrip('.')}.", found, remedy))


def _infinite(X: Any) -> str:
    """Where X has infinite values, and what to do."""
    if sparse.issparse(X):
        cells = X.tocoo()
        rows, columns = (place[np.isinf(cells.data)] for place in (cells.row, cells.col))
    else:
        rows, columns = np.nonzero(np.isinf(np.asarray(X, dtype=np.float64)))
    if not len(rows):  # too large for single precision
        return "Divide the column by a constant."
    column, labels = int(columns[0]), names(X)
    where = f"row {int(rows[0])} of column {labels[column] if labels else column!r}"
    return f"It is in {where} ({len(rows)} such cells): drop those rows, or put a large finite number there."


@contextmanager
def naming_columns(X: Matrix, remedy: str = ENCODE) -> Iterator[None]:
    """Read X inside: errors then name the columns and what to do, as in `unreadable`."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise unreadable(error, X, remedy) from None


def _encode(what: str, columns: list[str], remedy: str = ENCODE) -> str:
    more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
    return f"{what} Columns {', '.join(columns[:5])}{more} hold missing values, text or dates: {remedy}"


def check_targets(y: np.ndarray, *, tied_pairs: object) -> np.ndarray:
    """The targets as an (m, t) float array."""
    y = np.asarray(y, dtype=np.float64)
    if y.ndim == 1:
        y = y[:, None]
    if y.shape[1] > 1 and tied_pairs is not True:
        raise ValueError(
            f"y has {y.shape[1]} columns, which share one factorisation only when tied pairs are included: "
            "set tied_pairs=True, or fit each column separately"
        )
    return y


def check_numbers(name: str, values: ArrayLike, m: int, *, unit: str = "row", flat: bool = True) -> np.ndarray:
    """The values as one finite number per row (or, unless `flat`, several)."""
    check_content(**{name: values})
    array = np.asarray(as_column(values), dtype=np.float64)
    if array.ndim == 0 or len(array) != m or (flat and array.ndim != 1):
        raise ValueError(f"{name} must hold one number per {unit}: got shape {array.shape} for {m} {unit}s")
    bad = ~np.isfinite(array.reshape(m, -1)).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"{name} must be finite: {unit} {i} has {array[i]} ({bad.sum()} such {unit}s)")
    return array


def check_weights(
    values: ArrayLike | None, m: int, *, name: str = "sample_weight", unit: str = "row"
) -> np.ndarray | None:
    """(m,) non-negative weights; None if all are one."""
    if values is None:
        return None
    check_content(**{name: values})
    array = np.asarray(as_column(values), dtype=np.float64)
    weights = check_numbers(name, np.full(m, array) if array.ndim == 0 else array, m, unit=unit)
    if np.any(weights < 0):
        i = int(np.argmax(weights < 0))
        raise ValueError(f"{name} must not be negative: {unit} {i} has {weights[i]}")
    if not weights.any():
        raise ValueError(f"{name} is zero for every {unit}: nothing is left to learn from")
    with np.errstate(over="ignore"):
        total = np.sum(weights)
    if not total < LARGEST:
        raise ValueError(f"{name} is too large to be added up, up to {weights.max():.3g}: divide it by a constant")
    return None if np.all(weights == 1) else weights


def check_query_mass(queries: Queries, weights: np.ndarray | None, weighting: str) -> None:
    """Raise an error if some query has less than one copy to compare a row with: weights count copies."""
    if weights is not None:
        check_copies(queries.labels, queries.sizes, queries.sum(weights), weighting)


def check_copies(labels: np.ndarray, sizes: np.ndarray, copies: np.ndarray, weighting: str) -> None:
    """The same check, from the number of rows and of copies in each query."""
    thin = (sizes > 1) & (copies <= 1)
    if weighting == "queries" and thin.any():
        q = int(np.argmax(thin))
        raise ValueError(
            f"sample_weight counts copies of a row, and the rows of query {labels.tolist()[q]!r} sum to "
            f"{copies[q]:.3g}, less than one pair: multiply all weights by a constant, "
            'or use weighting="items"'
        )


def check_comparable(y: np.ndarray, queries: Queries) -> None:
    """Raise an error unless some query has two items with different labels."""
    if labels_differ(y, queries):
        return
    lone = int((queries.sizes == 1).sum())
    raise ValueError(
        f"no comparable pair: none of the {len(queries)} queries ({lone} with a single row) has two rows with "
        f"different y among {queries.n_rows} samples; is qid really the query id, not a row or document id?"
    )


def check_pairs(pairs: object, m: int) -> np.ndarray:
    """The pairs as a (p, 2) array of row numbers."""
    check_content(pairs=pairs)
    array = np.asarray(pairs)
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise ValueError(f"pairs must be a (p, 2) array of row numbers (preferred, other), got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise ValueError(f"pairs must hold row numbers (integers), got dtype {array.dtype}")
    bad = np.any((array < 0) | (array >= m), axis=1)
    if bad.any():
        p = int(np.argmax(bad))
        raise ValueError(f"pair {p} is {tuple(array[p].tolist())}, but X has rows 0 to {m - 1}")
    return array


def check_scores(y: np.ndarray, m: int, *, some: bool = True) -> np.ndarray:
    """(m,) or (m, t) finite numbers, NaN where a row is unscored."""
    if len(y) != m:
        raise ValueError(f"y must hold one number per row, NaN where unscored: got {len(y)} for {m} rows")
    missing = np.isnan(y.reshape(m, -1))
    partly = missing.any(axis=1) & ~missing.all(axis=1)
    if partly.any():
        raise ValueError(
            f"row {int(np.argmax(partly))} is scored in only some columns of y ({partly.sum()} such rows): score all "
            "or none, or fit each column separately"
        )
    infinite = np.isinf(y).reshape(m, -1).any(axis=1)
    if infinite.any():
        raise ValueError(
            f"y must not be infinite: row {int(np.argmax(infinite))} is ({infinite.sum()} such rows); "
            "mark unscored rows with NaN"
        )
    if some and np.isnan(y).all():
        raise ValueError(f"none of the {m} rows is scored, y is NaN for all: give some a score")
    return y


def check_held_out(scores: np.ndarray, scoring: str) -> None:
    """Raise an error if held-out scores are NaN, which would choose a setting at random."""
    bad = np.isnan(scores)
    if bad.any():
        raise ValueError(
            f"scoring={scoring!r} returned NaN for {int(bad.sum())} of {len(bad)} settings, so none can be chosen: "
            "return a number for every array of scores, or fix the setting (alpha=1.0)"
        )


def labels_differ(y: np.ndarray, queries: Queries) -> bool:
    """True if some query has two different labels."""
    some_row = np.empty(len(queries), dtype=np.intp)
    some_row[queries.codes] = np.arange(queries.n_rows)
    return bool(np.any(y != y[some_row[queries.codes]]))
