"""From parsed rows to a matrix: the column of each feature, and the value where a line gives none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse as sparse_arrays

from ...checks import check_choice
from ...system.memory import available_memory, check_memory
from ..records import RankingData
from ..scaling import fill_with_minimum
from .lines import ParsedRows


class ValueStack:
    """Values of rows that all have the same features, put on top of each other as they come.

    What was parsed is then still in the cache, and its memory is used again for the next block of text.
    """

    def __init__(self, dtype: Any, blocks: float) -> None:
        self._dtype, self._blocks = dtype, blocks
        self._values, self._features = np.empty((0, 0), dtype), np.empty(0, np.int64)
        self._rows, self._filled = 0, 0  # rows of all arrays, and of the present one

    def put(self, rows: ParsedRows) -> ParsedRows:
        """The same rows with their values in the stack, or as they are if they do not fit in."""
        if self._rows == 0:
            self._features = rows.features
        if rows.counts is not None or len(rows) == 0 or not np.array_equal(rows.features, self._features):
            return rows
        filled = self._filled + len(rows)
        if filled > len(self._values):
            expected = int(max(1.05 * len(rows) * self._blocks - self._rows, self._rows)) + len(rows)
            size = expected * len(self._features) * np.dtype(self._dtype).itemsize
            if expected == len(rows) or size > available_memory():
                return rows
            self._values, filled = np.empty((expected, len(self._features)), self._dtype), len(rows)
        values = self._values[filled - len(rows) : filled]
        values[:] = rows.values
        self._filled, self._rows = filled, self._rows + len(rows)
        return replace(rows, values=values)

    def whole(self, m: int, n: int) -> np.ndarray | None:
        """The values of all m rows, if they are in one array of n columns."""
        return self._values[:m] if self._filled == m and self._values.shape[1] == n else None


@dataclass(frozen=True)
class Assembly:
    """How the rows of a file become a `RankingData`; parameters as in `load_letor`."""

    name: str
    n_features: int | None
    zero_based: bool | str
    sparse: bool
    missing: str | float
    absent: float
    dtype: Any
    first_block: bool = True  # whether no earlier block of the file has been read

    def __post_init__(self) -> None:
        check_choice("zero_based", self.zero_based, (True, False, "auto"))
        if isinstance(self.missing, str):
            check_choice("missing", self.missing, ("nan", "minimum"))
        if np.dtype(self.dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32, got {self.dtype}")
        if self.first_block and self.n_features is not None and self.n_features < 1:
            raise ValueError(f"n_features must be at least 1, got {self.n_features}")
        if self.sparse and (self.missing == "minimum" or self.absent != 0):
            raise ValueError(
                'sparse rows are zero where nothing is given: missing="minimum" and absent= need sparse=False'
            )

    def stacked(self, pieces: Iterable[ParsedRows], blocks: float) -> RankingData:
        """All rows of a file that has about as many blocks of text; zero if that is not known."""
        stack = None if self.sparse else ValueStack(self.dtype, blocks)
        return self.data(list(pieces if stack is None else map(stack.put, pieces)), stack)

    def data(self, pieces: list[ParsedRows], stack: ValueStack | None = None) -> RankingData:
        """All rows together; empties `pieces` to free memory."""
        skipped = sum(rows.skipped for rows in pieces)
        pieces[:] = [rows for rows in pieces if len(rows)]
        if not pieces:
            raise ValueError(
                f"{self.name} has no rows" + (f": none of its {skipped} lines could be read" if skipped else "")
            )
        y = np.concatenate([rows.y for rows in pieces])
        qid = None if pieces[0].qid is None else np.concatenate([rows.qid for rows in pieces])
        comments = None
        if any(rows.comments is not None for rows in pieces):
            texts = [text for rows in pieces for text in rows.comments or [""] * len(rows)]
            comments = np.array(texts, dtype=object)
        offset = self._offset(pieces)
        n = self._width(pieces, offset)
        X = stack.whole(len(y), n) if stack is not None else None
        if X is None:
            X = (self._sparse if self.sparse else self._dense)(pieces, len(y), n, offset)
        return RankingData(self._without_missing(X, qid), y, qid, None, comments, skipped)

    def following(self, pieces: list[ParsedRows]) -> Assembly:
        """How to read later blocks of the file, so that they have the same columns."""
        offset = self._offset(pieces)
        return replace(self, zero_based=offset == 0, n_features=self._width(pieces, offset), first_block=False)

    def _offset(self, pieces: list[ParsedRows]) -> int:
        """The number of the first feature."""
        if self.zero_based == "auto":
            return int(all(rows.features.min(initial=1) > 0 for rows in pieces))
        offset = 0 if self.zero_based else 1
        self._refuse(pieces, lambda features: features < offset, "numbered from 1", "zero_based=True")
        return offset

    def _width(self, pieces: list[ParsedRows], offset: int) -> int:
        """The number of columns; zero if no line has a feature."""
        if self.n_features is None:
            return 1 - offset + max(int(rows.features.max(initial=offset - 1)) for rows in pieces)
        n = self.n_features
        remedy = f"a larger n_features than {n}"
        self._refuse(pieces, lambda features: features >= n + offset, f"at most {n}", remedy)
        return n

    def _refuse(
        self, pieces: list[ParsedRows], wrong: Callable[[np.ndarray], np.ndarray], what: str, remedy: str
    ) -> None:
        for rows in pieces:
            bad = wrong(rows.features)
            if bad.any():
                i = int(np.argmax(bad))
                row = 0 if rows.counts is None else int(np.searchsorted(np.cumsum(rows.counts), i, side="right"))
                assumed = "features were given as" if self.first_block else "the first block had features"
                raise ValueError(
                    f"{self.name}, line {rows.lines[row]}: feature {rows.features[i]}, but {assumed} {what}: "
                    f"pass {remedy}"
                )

    def _dense(self, pieces: list[ParsedRows], m: int, n: int, offset: int) -> np.ndarray:
        """The values as a dense array; frees each piece once it is copied."""
        size = m * n * np.dtype(self.dtype).itemsize
        check_memory(
            size, f"{self.name} as {m} dense rows of {n} features", "pass sparse=True, or read it with iter_letor"
        )
        X = np.empty((m, n), dtype=self.dtype)
        start = 0
        while pieces:  # free the memory of a piece once it is copied
            rows = pieces.pop(0)
            part = X[start : start + len(rows)]
            start += len(rows)
            columns = rows.features - offset
            if rows.counts is not None:
                part[:] = self.absent
                part[np.repeat(np.arange(len(rows)), rows.counts), columns] = rows.values
            elif len(columns) == n:
                part[:] = rows.values
            else:
                part[:] = self.absent
                part[:, columns] = rows.values
        return X

    def _sparse(self, pieces: list[ParsedRows], m: int, n: int, offset: int) -> Any:
        counts: list[Any] = []
        columns: list[Any] = []
        values: list[Any] = []
        while pieces:
            rows = pieces.pop(0)
            same = rows.counts is None
            counts.append(np.full(len(rows), len(rows.features)) if same else rows.counts)
            columns.append((np.tile(rows.features, len(rows)) if same else rows.features) - offset)
            values.append(rows.values.ravel().astype(self.dtype, copy=False))
        indptr = np.append(0, np.cumsum(np.concatenate(counts)))
        return sparse_arrays.csr_array((np.concatenate(values), np.concatenate(columns), indptr), shape=(m, n))

    def _without_missing(self, X: Any, qid: np.ndarray | None) -> Any:
        if self.missing == "minimum":
            return fill_with_minimum(X, qid)
        if self.missing != "nan":
            values = X.data if self.sparse else X
            values[np.isnan(values)] = self.missing
        return X
