"""The rows of a session: documents of queries, with names to show."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from ..checks import check_queries
from ..core.queries import Queries
from ..datasets import RankingData
from ..system import memory
from ..system.lazy import cached_property
from ..tables import TableEncoder

_ID = re.compile(r"^\s*docid\s*=\s*\S+\s*")  # the start of a LETOR comment, which is not part of a title


class MissingValuesError(ValueError):
    """Some features have missing or infinite values."""


@dataclass(frozen=True)
class DocumentTable:
    """Features, labels (NaN where not judged), queries, and their names."""

    X: np.ndarray  # (m, n)
    y: np.ndarray  # (m,)
    queries: Queries
    doc_ids: np.ndarray | None  # (m,) of str; None numbers the rows from 1
    titles: np.ndarray | None  # (m,) of str
    feature_names: list[str]
    name: str = "data"
    encoder: TableEncoder | None = None  # the encoder of a table whose columns are not all numbers
    options: Mapping[str, Any] = field(default_factory=dict)  # command line options with which they were read

    def doc_id(self, row: int) -> str:
        """The document of a row."""
        found = "" if self.doc_ids is None else str(self.doc_ids[row])
        return found or str(row + 1)

    def title(self, row: int) -> str:
        """The title of a row, or an empty string."""
        return "" if self.titles is None else str(self.titles[row])

    @property
    def qid(self) -> np.ndarray:
        """The query of each row."""
        return self.queries.labels[self.queries.codes]

    @cached_property
    def query_ids(self) -> list[str]:
        """The query ids as text."""
        return [str(label) for label in self.queries.labels.tolist()]

    @cached_property
    def outline(self) -> str:
        """A hash of the number of features, the labels and the queries, which other data are unlikely to share."""
        digest = hashlib.sha256(repr(self.X.shape).encode())
        for part in (self.y, self.queries.codes):
            digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def levels(self) -> dict[float, int]:
        """How many documents have each label."""
        values, counts = np.unique(self.y[~np.isnan(self.y)], return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    @cached_property
    def rows_by_name(self) -> dict[tuple[str, str], int]:
        """The row of each (query, document)."""
        names = self.query_ids
        return {(names[q], self.doc_id(row)): row for row, q in enumerate(self.queries.codes.tolist())}


def documents(data: RankingData, *, doc_ids: Any = None, titles: Any = None, name: str = "data") -> DocumentTable:
    """Rows of a data set, checked and ready for a session."""
    X = data.X
    if sparse.issparse(X):
        memory.check_memory(8 * X.shape[0] * X.shape[1], "the rows of the workbench", "choose columns before")
        X = X.toarray()
    X = np.asarray(X)
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if X.ndim != 2 or not X.shape[0] or not X.shape[1]:
        raise ValueError(f"the workbench needs rows with at least one feature, got an array of shape {X.shape}")
    bad = ~np.isfinite(X.sum(axis=0, dtype=np.float64))
    if bad.any():
        bad = ~np.isfinite(X).all(axis=0)
    names = [str(name) for name in data.feature_names or [f"f{j}" for j in range(1, X.shape[1] + 1)]]
    if bad.any():
        j = int(np.argmax(bad))
        raise MissingValuesError(
            f"{int(bad.sum())} features have values that are missing or not finite, the first is {names[j]!r}: "
            "fill them in first (on the command line: --missing 0, another number, or minimum)"
        )
    y = np.full(len(X), np.nan) if data.y is None else np.asarray(data.y, dtype=np.float64)
    if np.isinf(y).any():
        raise ValueError(f"the label of row {int(np.argmax(np.isinf(y)))} is not finite")
    queries = check_queries(data.qid, len(X))
    if data.qid is None:
        queries = Queries(np.array(["all documents"], dtype=object), queries.codes)
    if doc_ids is None:
        doc_ids = data.doc_ids
    if titles is None and data.comments is not None:
        titles = [_ID.sub("", comment or "").strip() for comment in data.comments]
    return DocumentTable(X, y, queries, _texts(doc_ids), _texts(titles), names, name)


def trec_word(text: str) -> str:
    """A name for TREC files, without spaces."""
    return "_".join(text.split()) or "_"


def _texts(values: Sequence[Any] | None) -> np.ndarray | None:
    return None if values is None else np.array(["" if v is None else str(v) for v in values], dtype=object)
