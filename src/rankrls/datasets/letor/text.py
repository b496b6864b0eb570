"""LETOR and svmlight ranking text: `label qid:Q i:v i:v ... # comment`, one row per line."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse as sparse_arrays

from ...checks import check_choice
from ...core import fused
from ...system import files
from ...system.files import Source
from ...system.limits import limits
from ...system.types import DTypeLike
from ..records import RankingData
from .lines import AFTER, LineError, ParsedRows, parse
from .matrix import Assembly

_THREADS = 2  # more would wait for the interpreter
_WRITE_ROWS = 1000
_NEWLINE = ord("\n")


def load_letor(
    path: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    sparse: bool = False,
    missing: str | float = "nan",
    absent: float = 0.0,
    dtype: DTypeLike = np.float64,
    errors: str = "raise",
) -> RankingData:
    """Read LETOR or svmlight ranking text: lines of label, `qid:Q`, features `i:v` and perhaps `# comment`.

    Parameters
    ----------
    path : str, path or binary file
        Plain text or gzip, bzip2, xz or zstandard (by content, whatever the name).
    n_features : int, default=None
        Number of columns; None: as many as the largest feature number needs.
    zero_based : bool or "auto", default="auto"
        Whether features are numbered from 0. "auto": from 0 if feature 0 occurs anywhere in the file, else from 1.
    sparse : bool, default=False
        Return X as a CSR array instead of an ndarray.
    missing : "nan", "minimum" or float, default="nan"
        The value for NULL (or nan): NaN; the smallest value of the feature in its query, or 0 if that is smaller, much
        as in the Feature-min files of LETOR (dense rows only); or a number.
    absent : float, default=0
        The value of features that a line does not mention. NaN makes them missing (dense rows only).
    dtype : dtype, default=float64
        Type of X: float64 or float32.
    errors : {"raise", "skip"}, default="raise"
        What to do with lines that cannot be read: raise an error with the file, the line and the reason, or leave them
        out and count them in `skipped`.

    Returns
    -------
    data : RankingData
        X, y, qid (text, as written; None if the lines have none), comments, doc_ids (from comments `docid = ...`),
        skipped. Lines without any feature, as Quepid exports them, are judgments: X has no columns, and doc_ids are
        the first words of the comments.

    Examples
    --------
    >>> from io import BytesIO
    >>> text = b"2 qid:a 1:0.5 2:NULL #docid = D7\\r\\n0 qid:a 1:0.25 2:3 #docid = D9\\r\\n"
    >>> data = load_letor(BytesIO(text))
    >>> data.X
    array([[0.5 ,  nan],
           [0.25, 3.  ]])
    >>> data.y.tolist(), data.qid.tolist(), data.doc_ids.tolist()
    ([2.0, 0.0], ['a', 'a'], ['D7', 'D9'])
    """
    assembly = Assembly(files.name_of(path), n_features, zero_based, sparse, missing, absent, dtype)
    _check_errors(errors)
    return assembly.stacked(_parsed(path, errors == "skip"), files.size_of(path) / limits.text_bytes)


def read_svmlight(
    path: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype: DTypeLike = np.float64,
    errors: str = "raise",
) -> RankingData:
    """Read svmlight ranking text into sparse rows: `load_letor(path, sparse=True)`.

    Examples
    --------
    >>> from io import BytesIO
    >>> read_svmlight(BytesIO(b"1 qid:7 3:0.5\\n0 qid:7 1:2 900:1\\n")).X.shape
    (2, 900)
    """
    return load_letor(path, n_features=n_features, zero_based=zero_based, sparse=True, dtype=dtype, errors=errors)


def iter_letor(
    path: Source,
    *,
    rows: int = 50_000,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    sparse: bool = False,
    missing: str | float = "nan",
    absent: float = 0.0,
    dtype: DTypeLike = np.float64,
    errors: str = "raise",
    whole_queries: bool = True,
) -> Iterator[RankingData]:
    """Read a file of any size in blocks of whole queries, e.g. for `partial_fit`, in bounded memory.

    Parameters
    ----------
    path, sparse, missing, absent, dtype, errors
        As in `load_letor`.
    rows : int, default=50_000
        A block has at most this many rows, unless a single query has more.
    n_features : int, default=None
        None: as many as the first block has; a later block with more is an error.
    zero_based : bool or "auto", default="auto"
        "auto" looks at the first block only; feature 0 in a later block is an error.
    whole_queries : bool, default=True
        False takes rows as they come: a query may be split, occur again later, or have no id. Enough if rows are
        processed one by one, as in `predict`.

    Yields
    ------
    data : RankingData
        Whole queries, whose rows must be adjacent in the file: a query that occurs again later is an error. `skipped`
        counts the lines of this block.

    Examples
    --------
    >>> from io import BytesIO
    >>> lines = b"".join(b"%d qid:%d 1:%d\\n" % (i % 2, i // 4, i) for i in range(12))
    >>> [block.qid.tolist() for block in iter_letor(BytesIO(lines), rows=9)]
    [['0', '0', '0', '0', '1', '1', '1', '1'], ['2', '2', '2', '2']]
    """
    assembly = Assembly(files.name_of(path), n_features, zero_based, sparse, missing, absent, dtype)
    _check_errors(errors)
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}")
    if not whole_queries:
        if missing == "minimum":
            raise ValueError('missing="minimum" takes the minimum of a query, so it needs whole_queries=True')
        return _cut_blocks(path, assembly, rows, errors == "skip")
    return _blocks(path, assembly, rows, errors == "skip")


def dump_letor(data: RankingData | Iterable[RankingData], path: Source, *, zero_based: bool = False) -> None:
    """Write rows as LETOR text that reads back exactly: shortest decimals, NaN as NULL, comments kept.

    Parameters
    ----------
    data : RankingData or iterable of RankingData
        Rows, or blocks of rows to write one after the other. For sparse rows, the stored values are written.
    path : str, path or binary file
        Compressed if the name ends in .gz, .bz2, .xz or .zst. The file appears, or replaces an older one, only
        when everything is written.
    zero_based : bool, default=False
        Number features from 0.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> dump_letor(RankingData(np.array([[0.5, np.nan]]), np.array([2.0]), np.array(["q1"])), file)
    >>> file.getvalue()
    b'2 qid:q1 1:0.5 2:NULL\\n'
    """
    blocks = [data] if isinstance(data, RankingData) else data
    with files.written(path) as file:
        for block in blocks:
            for start in range(0, len(block), _WRITE_ROWS):
                lines = _lines(block, slice(start, start + _WRITE_ROWS), 0 if zero_based else 1)
                file.write("".join(lines).encode("utf-8", "surrogateescape"))


# ---------------------------------------------------------------- reading


def _check_errors(errors: str) -> None:
    check_choice("errors", errors, ("raise", "skip"))


def _texts(file: BinaryIO, name: str = "the input") -> Iterator[tuple[int, bytes]]:
    """The text in blocks of whole lines with AFTER after them, each with the number of its first line."""
    rest: list[bytes] = []  # of a line that continues
    line = 1
    while text := file.read(limits.text_bytes):
        stop = text.rfind(b"\n") + 1
        if stop:
            yield line, b"".join([*rest, memoryview(text)[:stop], AFTER])
            line += int(np.count_nonzero(np.frombuffer(text, np.uint8) == _NEWLINE))  # faster than bytes.count
            rest = []
        rest.append(text[stop:])
        if sum(map(len, rest)) > files.LINE_BYTES:
            raise files.endless(name, line)
    if any(rest):
        yield line, b"".join([*rest, AFTER])


def _parsed(path: Source, skip: bool) -> Iterator[ParsedRows]:
    """The rows of a file, block by block; two threads parse ahead."""
    # glibc keeps freed memory for reuse only up to the largest array freed so far: without this allocation, every
    # array of every block would be fresh from the system, which takes as long as the parsing
    np.empty(3 << 20)
    with_qid, read, stored = None, 0, files.size_of(path)  # there is more text if it is compressed
    ahead: deque[Future[ParsedRows]] = deque()
    try:
        with files.opened(path) as file, ThreadPoolExecutor(_THREADS) as pool:
            for line, text in _texts(file, files.name_of(path)):
                read += len(text)
                compiled = fused.ready() or fused.worth(float(max(read, stored)))
                if with_qid is None:  # the first line decides
                    rows = parse(text, line, skip=skip, compiled=compiled)
                    with_qid = None if not len(rows) else rows.qid is not None
                    yield rows
                else:
                    ahead.append(pool.submit(parse, text, line, skip=skip, with_qid=with_qid, compiled=compiled))
                    if len(ahead) > _THREADS:
                        yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
    except LineError as error:
        raise ValueError(f'{files.name_of(path)}, {error} (errors="skip" leaves such lines out)') from None


def _blocks(path: Source, assembly: Assembly, limit: int, skip: bool) -> Iterator[RankingData]:
    """Blocks of whole queries with at most `limit` rows, or of a single query."""
    waiting: list[ParsedRows] = []
    whole = 0  # waiting rows before the last query, which may continue
    seen: set[str] = set()
    for rows in chain(_parsed(path, skip), [None]):
        size, given = sum(map(len, waiting)), 0
        marks = [size]  # where queries start
        if rows is not None:
            if len(rows) and rows.qid is None:
                raise ValueError(f"{assembly.name} has no query ids, so all its rows are one query: use load_letor")
            last = next((piece.qid[-1] for piece in reversed(waiting) if len(piece)), None)  # type: ignore[index]
            marks = (size + _run_starts(rows.qid, last)).tolist() if rows.qid is not None and len(rows) else []
            waiting.append(rows)
        for mark in marks:
            if mark - given > limit and whole > given:
                done, waiting = _split(waiting, whole - given)
                assembly = assembly.following(done)
                _refuse_known(done, seen, assembly.name)
                yield assembly.data(done)
                given = whole
            whole = mark
        whole -= given
    _refuse_known(waiting, seen, assembly.name)
    yield assembly.data(waiting)


def _cut_blocks(path: Source, assembly: Assembly, limit: int, skip: bool) -> Iterator[RankingData]:
    """Blocks of at most `limit` rows, regardless of where queries end."""
    waiting: list[ParsedRows] = []
    for rows in _parsed(path, skip):
        waiting.append(rows)
        while sum(map(len, waiting)) > limit:
            done, waiting = _split(waiting, limit)
            assembly = assembly.following(done)
            yield assembly.data(done)
    yield assembly.data(waiting)


def _run_starts(qid: np.ndarray, last: str | None = None) -> np.ndarray:
    """Where a new query id starts, given that the row before has the id `last`."""
    starts = np.append(0, np.flatnonzero(qid[1:] != qid[:-1]) + 1)
    return starts[1:] if last is not None and last == qid[0] else starts


def _split(pieces: list[ParsedRows], count: int) -> tuple[list[ParsedRows], list[ParsedRows]]:
    """The first `count` rows, and the others."""
    first, rest = [], []
    for rows in pieces:
        n = min(count, len(rows))
        count -= n
        if n:
            first.append(rows.part(0, n))
        if n < len(rows) or not len(rows):
            rest.append(rows.part(n, len(rows)))
    return first, rest


def _refuse_known(pieces: list[ParsedRows], seen: set[str], name: str) -> None:
    """Raise an error if a query was in an earlier block, or is scattered over this one."""
    pieces = [rows for rows in pieces if len(rows)]
    if not pieces:
        return
    lines, qid = np.concatenate([rows.lines for rows in pieces]), np.concatenate([rows.qid for rows in pieces])
    starts = _run_starts(qid)
    for query, line in zip(qid[starts].tolist(), lines[starts].tolist(), strict=True):
        if query in seen:
            raise ValueError(
                f"{name}, line {line}: query {query!r} comes again after other queries, so no block holds "
                "all of it: sort the file by query, or use load_letor"
            )
        seen.add(query)


# ---------------------------------------------------------------- writing


def _lines(data: RankingData, rows: slice, first: int) -> Iterator[str]:
    """The text of some rows; features are numbered from `first`."""
    X, y = data.X[rows], data.y[rows]
    labels = [_shortest(str(label)) for label in y.tolist()]
    queries = [""] * len(y)
    if data.qid is not None:
        queries = [f" qid:{_checked_word(query, 'query id')}" for query in data.qid[rows].tolist()]
    comments = [""] * len(y)
    if data.comments is not None:
        comments = [f" #{_checked_line(comment)}" for comment in data.comments[rows].tolist()]
    for label, query, values, comment in zip(labels, queries, _values(X, first), comments, strict=True):
        yield f"{label}{query}{values}{comment}\n"


def _values(X: Any, first: int) -> Iterator[str]:
    """` i:v i:v ...` of each row."""
    if sparse_arrays.issparse(X):
        X = X.tocsr()
        for start, stop in pairwise(X.indptr):
            given = zip((X.indices[start:stop] + first).tolist(), _numbers(X.data[start:stop]), strict=True)
            yield "".join(_shortest(f" {i}:{v}") for i, v in sorted(given))
        return
    layout = "".join(f" {i}:%s" for i in range(first, X.shape[1] + first))
    for row in X:
        yield _shortest(layout % tuple(_numbers(row)))


def _numbers(values: np.ndarray) -> list[Any]:
    """Numbers whose str() is the shortest text that reads back exactly."""
    return list(map(str, values)) if values.dtype == np.float32 else values.astype(np.float64).tolist()


def _shortest(text: str) -> str:
    """2.0 as 2, nan as NULL."""
    return f"{text} ".replace(".0 ", " ").replace("nan", "NULL")[:-1]


def _checked_word(query: object, what: str) -> str:
    text = str(query)
    if (
        not text
        or "#" in text
        or "\0" in text
        or text.encode("utf-8", "surrogateescape").split() != [text.encode("utf-8", "surrogateescape")]
    ):
        raise ValueError(f"the {what} {text!r} cannot be written: it must not be empty or contain blanks or #")
    return text


def _checked_line(comment: str) -> str:
    if "\n" in comment or comment.endswith("\r"):
        raise ValueError(f"the comment {comment!r} cannot be written: it must be one line")
    return comment
