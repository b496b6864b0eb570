"""The border: input is checked and brought into shape here, and nowhere below.

Every message says what was found, where, and what to do.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import linalg

from .core.queries import Queries
from .core.statistics import Statistics
from .system.frames import as_column, as_frame, gaps_and_text, is_missing, names, without
from .system.types import ArrayLike, Ids, Matrix, MatrixLike

NO_FEATURES = "Judgments without features cannot be learned from: join the features of their documents to them"
QID = "qid"  # a column of this name in a data frame holds the query ids
_QUERY_NAME = re.compile(  # common names of query id columns
    r"qid|query|session|topic|(.*[\W_])?(q|query|session|search|srch|request|topic|impression|group)[\W_]?"
    r"(id|no|nr|number|key|hash|uuid)"
)


def check_aligned(**values: Any) -> None:
    """Rows are matched by position: refuse frames and series whose index labels contradict that.

    A plain range 0, 1, ... next to other labels says nothing, but a permutation of the range next to the range does.
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


def named_columns(X: MatrixLike, y: object, qid: object, sample_weight: object) -> tuple[Any, Any, Any, Any]:
    """Labels, query ids and weights given as column names of a data frame, taken out of it."""
    named = {
        name: value
        for name, value in (("y", y), ("qid", qid), ("sample_weight", sample_weight))
        if isinstance(value, str)
    }
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


def check_in_memory(X: object, ranker: str) -> None:
    """Rows must be in memory, not in a file or a stream."""
    stream = hasattr(X, "__next__") or (callable(X) and not hasattr(X, "__array__"))
    if isinstance(X, str | os.PathLike) or (stream and not hasattr(X, "__arrow_c_stream__")):
        raise ValueError(
            f"{ranker} learns from rows in memory, got {X!r}: read them first, e.g. with polars.read_parquet or "
            "rankrls.datasets.load_letor. RankRLS, CoRankRLS and TransductiveRankRLS can learn from files and streams"
        )


def check_content(**values: Any) -> None:
    """Refuse what NumPy would silently misread: masked entries and imaginary parts."""
    for name, array in values.items():
        if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
            n = int(np.ma.getmaskarray(array).sum())
            remedy = "NaN marks a row without a score" if name == "y" else "drop those rows, or fill them in"
            raise ValueError(f"{name} is a masked array, but its {n} masked entries would count as values: {remedy}")
        if getattr(array, "dtype", None) is not None and getattr(array.dtype, "kind", "") == "c":
            raise ValueError(f"Complex data not supported: {name} has imaginary parts; pass real numbers")


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


def check_targets(y: np.ndarray, *, tied_pairs: object) -> np.ndarray:
    """(m, t) float targets."""
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
    """One finite number per row (or, unless `flat`, several)."""
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
    """(m,) non-negative weights; None where all are equal to one."""
    if values is None:
        return None
    array = np.asarray(as_column(values), dtype=np.float64)
    weights = check_numbers(name, np.full(m, array) if array.ndim == 0 else array, m, unit=unit)
    if np.any(weights < 0):
        i = int(np.argmax(weights < 0))
        raise ValueError(f"{name} must not be negative: {unit} {i} has {weights[i]}")
    if not weights.any():
        raise ValueError(f"{name} is zero for every {unit}: nothing is left to learn from")
    return None if np.all(weights == 1) else weights


def check_query_mass(queries: Queries, weights: np.ndarray | None, weighting: str) -> None:
    """Weights count copies, so a query needs more than one copy in total to have a pair to divide by."""
    if weights is not None:
        check_copies(queries.labels, queries.sizes, queries.sum(weights), weighting)


def check_copies(labels: np.ndarray, sizes: np.ndarray, copies: np.ndarray, weighting: str) -> None:
    """The same, given the number of rows and of copies in each query."""
    thin = (sizes > 1) & (copies <= 1)
    if weighting == "queries" and thin.any():
        q = int(np.argmax(thin))
        raise ValueError(
            f"sample_weight counts copies of a row, and the rows of query {labels[q]!r} sum to "
            f"{copies[q]:.3g}, less than one pair: multiply all weights by a constant, "
            'or use weighting="items"'
        )


def check_comparable(y: np.ndarray, queries: Queries) -> None:
    """Some query must have two items with different labels."""
    if _differ(y, queries):
        return
    lone = int((queries.sizes == 1).sum())
    raise ValueError(
        f"no comparable pair: none of the {len(queries)} queries ({lone} with a single row) has two rows with "
        f"different y among {queries.n_rows} samples; is qid really the query id, not a row or document id?"
    )


def check_pairs(pairs: object, m: int) -> np.ndarray:
    """(p, 2) row numbers."""
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


def check_number(name: str, value: object, *, zero: bool = False, hint: str = "") -> float:
    """A positive finite number, or zero where zero makes sense."""
    if isinstance(value, str | bool) or not np.isscalar(value) or not _in_range(float(value), zero):  # type: ignore[arg-type]
        kind = "a finite number, zero or positive" if zero else "a positive number"
        raise ValueError(f'{name} must be {kind}, or "auto"; got {value}{hint}')
    return float(value)  # type: ignore[arg-type]


def check_grid(name: str, values: ArrayLike, *, zero: bool = False) -> np.ndarray:
    """Numbers to choose from."""
    grid = np.array([check_number(f"each of {name}", value, zero=zero) for value in np.ravel(values)])
    if not len(grid):
        raise ValueError(f"{name} is empty: give at least one number, or None for a grid fitted to the data")
    return grid


def check_determined(rank: int, directions: int) -> None:
    """Without a penalty, the rows must determine every weight."""
    if rank < directions:
        raise ValueError(
            f"alpha=0 needs rows that determine every weight, but they determine {rank} of {directions}: some "
            "columns do not vary within queries, or follow from others; drop these, or use an alpha above zero"
        )


def check_determined_without(query: object) -> None:
    raise ValueError(
        f"alpha=0 needs rows that determine every weight, but without query {query!r} they do not: use an "
        "alpha above zero"
    )


def check_penalised(alpha: float) -> None:
    """A model with a term per row can fit any scores: only a penalty determines it."""
    if alpha == 0:
        raise ValueError(
            "alpha=0 does not determine a model with a kernel on every row, or with more columns than rows, which can "
            "fit any scores: use an alpha above zero, or a basis"
        )


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
        raise ValueError(f"none of the {m} rows is scored, y is NaN for all: score some")
    return y


def check_held_out(scores: np.ndarray, scoring: str) -> None:
    """Held-out scores must be numbers: NaN would choose a setting at random."""
    bad = np.isnan(scores)
    if bad.any():
        raise ValueError(
            f"scoring={scoring!r} returned NaN for {int(bad.sum())} of {len(bad)} settings, so none can be chosen: "
            "return a number for every array of scores, or fix the setting (alpha=1.0)"
        )


def check_choice(name: str, value: object, valid: Iterable[Any]) -> None:
    """One of a few values; the message lists them and suggests the nearest."""
    valid = tuple(valid)
    if any(value is v or (isinstance(v, str) and value == v) for v in valid):
        return
    near = difflib.get_close_matches(str(value), [str(v) for v in valid], 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, valid))}, got {value!r}{hint}")


def check_share(name: str, value: object) -> None:
    """A number between 0 and 1."""
    if isinstance(value, str) or not np.isscalar(value) or not 0 <= float(value) <= 1:  # type: ignore[arg-type]
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}")


def unreadable(error: ValueError, X: Matrix) -> ValueError:
    """An error about missing values or text in X that names the columns and what to do; any other error unchanged."""
    text = str(error)
    if "0 feature(s)" in text:
        return ValueError(f"{text} {NO_FEATURES}")
    if "NaN" not in text and "could not convert" not in text:
        return error
    found = gaps_and_text(X)
    if not found:
        return error
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return ValueError(
        f"{text.splitlines()[0].rstrip('.')}. Columns {', '.join(found[:5])}{more} hold missing values or text: put "
        "rankrls.TableEncoder() before the ranker in a pipeline, which turns them into numbers"
    )


def check_signs(positive: Any, n: int, names: Sequence[str] | None) -> np.ndarray | None:
    """(n,) the signs that weights must have, 0 where either is allowed; None if no sign is required."""
    if positive is None or positive is False:
        return None
    if positive is True:
        return np.ones(n)
    have = [] if names is None else list(names)
    signs, given = np.zeros(n), dict[int, int]()
    for column, sign in positive.items() if isinstance(positive, dict) else ((column, 1) for column in positive):
        if isinstance(column, str) and column not in have:
            known = f"it has {', '.join(map(str, have[:20]))}" if have else "the columns have no names: give numbers"
            raise ValueError(f"positive names column {column!r}, which X does not have; {known}")
        j = have.index(column) if isinstance(column, str) else column
        if isinstance(j, bool) or not isinstance(j, int | np.integer) or not 0 <= j < n:
            raise ValueError(f"positive names column {column!r}, but X has columns 0 to {n - 1}")
        if sign not in (1, -1):
            raise ValueError(f"the sign of a weight is +1 or -1, got {sign!r} for column {column!r}")
        if given.setdefault(int(j), sign) != sign:
            raise ValueError(f"positive requires both signs for column {column!r}")
        signs[j] = sign
    return signs


def check_unsigned(positive: object, what: str) -> None:
    """Refuse sign constraints where they are not supported."""
    if positive is not None and positive is not False:
        raise ValueError(f"positive does not go with {what}: fit a linear model on labels")


def check_count(name: str, value: object, least: int = 1) -> int:
    """A whole number that is at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}; got {value!r}")
    return int(value)


def check_sums(sums: Statistics, before: Statistics) -> None:
    """What is left after un-learning must be sums over rows: no negative counts, a positive semi-definite Gram."""
    size = max(float(np.diag(before.gram).max(initial=0)), float(before.square.max(initial=0)), 1e-300)
    possible = min(sums.n_rows, sums.n_queries, sums.n_pairs) >= 0
    try:
        for c, s in zip(sums.cross.T, sums.square, strict=True) if possible else ():
            M = np.block([[sums.gram, c[:, None]], [c[None], s]])
            linalg.cholesky(M + 1e-6 * size * np.eye(len(M)), overwrite_a=True, check_finite=False)
            possible &= sums.n_rows > 0 or bool(np.all(np.abs(np.diag(M)) <= 1e-6 * size))
    except linalg.LinAlgError:
        possible = False
    if not possible:
        raise ValueError(
            "these queries were never learned (not with these rows, labels and weights): forgetting them would "
            f"leave {sums.n_rows} rows in {sums.n_queries} queries; the model is unchanged"
        )


def check_no_overflow(sums: Statistics) -> None:
    """Sums of finite numbers may still be too large for floating point."""
    if all(np.isfinite(part).all() for part in (sums.gram, sums.cross, sums.square)):
        return
    column = np.flatnonzero(~np.isfinite(np.diag(sums.gram)))
    what = f"feature {column[0]}" if len(column) else "y"
    raise ValueError(
        f"the squares of {what} overflow when they are added up: its values or sample_weight are very large. "
        "Look for wrong values, divide by a constant, or use float64 instead of float32"
    )


def check_forgettable(after: Statistics, before: Statistics, alpha: float) -> None:
    """Subtraction must leave enough digits: the forgotten rows must not be vastly larger than those that stay."""
    left, gone = np.diag(after.gram), np.diag(before.gram)
    lost = 4 * np.finfo(np.float64).eps * gone > 1e-6 * (np.abs(left) + alpha)
    if after.beta > 0 and after.weight > 0 and 4 * np.finfo(np.float64).eps * before.weight > 1e-6 * after.weight:
        raise ValueError(
            f"the rows to forget weigh {before.weight - after.weight:.3g}, those that stay {after.weight:.3g}: "
            "subtracting them would leave rounding errors; fit again without them; the model is unchanged"
        )
    if lost.any():
        j = int(np.argmax(gone / (np.abs(left) + alpha)))
        raise ValueError(
            f"the rows to forget are so much larger in feature {j} than the others that subtracting them would leave "
            "rounding errors: fit again without them; the model is unchanged"
        )


def check_kernel_values(K: np.ndarray, basis: object = None) -> None:
    """Kernel values between all rows, or between all rows and the points of a basis."""
    if isinstance(basis, np.ndarray) and basis.ndim == 2:  # kernel values among the points
        if basis.shape[0] == K.shape[1]:
            check_kernel_matrix(basis, "the basis of a precomputed kernel")
        return
    m, r = K.shape
    if basis is None or np.ndim(basis) != 1 or m == r:  # type: ignore[arg-type]
        check_kernel_matrix(K)
        return
    numbers = np.asarray(basis)
    if len(np.unique(numbers)) != r:
        raise ValueError(
            f"a precomputed kernel of {m} rows and {r} columns needs basis= the row number of each column, {r} "
            f"different ones; got {len(np.unique(numbers))}"
        )
    if np.any((numbers < -m) | (numbers >= m)):
        raise ValueError(f"basis has rows outside 0 to {m - 1}")
    check_kernel_matrix(K[numbers])


def check_kernel_matrix(K: np.ndarray, name: str = "a precomputed kernel") -> None:
    """Square and symmetric to rounding."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be square at fit (training points by training points), got {K.shape}")
    skew = np.abs(K - K.T)
    worst = int(np.argmax(skew))
    if skew.flat[worst] > 1e-6 * max(K.max(initial=0), -K.min(initial=0)):
        i, j = np.unravel_index(worst, K.shape)
        raise ValueError(
            f"the kernel matrix is not symmetric: K[{i}, {j}] = {K[i, j]:.6g} but K[{j}, {i}] = {K[j, i]:.6g}; "
            "pass (K + K.T) / 2 if that is what you mean"
        )


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


def _differ(y: np.ndarray, queries: Queries) -> bool:
    """True if some query has two different labels."""
    some_row = np.empty(len(queries), dtype=np.intp)
    some_row[queries.codes] = np.arange(queries.n_rows)
    return bool(np.any(y != y[some_row[queries.codes]]))


def _sums_to(ids: np.ndarray, m: int) -> bool:
    return ids.dtype.kind in "iu" and int(ids.sum()) == m


def _in_range(value: float, zero: bool) -> bool:
    return (value >= 0 if zero else value > 0) and value < np.inf
