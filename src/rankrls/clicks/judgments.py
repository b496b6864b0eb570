"""Judgments: ratings of (query, document), in the files of TREC, Quepid and OpenSearch, joined to rows of features."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..datasets import to_qrels
from ..system.files import replacing
from ..system.types import ArrayLike, Ids
from .log import ClickLog
from .propensities import check_propensities, propensities

QUERY, DOCUMENT, RATING = (
    ("query", "qid", "query_id", "keywords"),
    ("docid", "doc_id", "document"),
    ("rating", "label", "y"),
)


@dataclass(frozen=True)
class Judgments:
    """Ratings of documents for queries.

    Attributes
    ----------
    query, document : ndarray of shape (n,)
        Ids, as text.
    rating : ndarray of shape (n,)
        Larger is better.

    Examples
    --------
    >>> from rankrls import clicks
    >>> judgments = clicks.read_judgments("query,docid,rating\\nshoes,a,3\\nshoes,b,0\\n")
    >>> print(judgments.to_qrels(), end="")
    shoes 0 a 3
    shoes 0 b 0
    >>> joined = judgments.join(["shoes", "shoes", "hats"], ["a", "c", "a"])
    >>> joined
    Joined(1 row judged, 2 rows without a judgment, 1 judgment without a row)
    >>> joined.y
    array([ 3., nan, nan])
    """

    query: np.ndarray
    document: np.ndarray
    rating: np.ndarray

    def __len__(self) -> int:
        return len(self.query)

    def join(self, qid: Ids, doc_ids: ArrayLike) -> Joined:
        """The rating of each row of features.

        Parameters
        ----------
        qid, doc_ids : array-like of shape (m,)
            Query and document of each row; compared as text.

        Returns
        -------
        joined : Joined
            `y` is NaN where a row has no judgment; the counts say what did not match.
        """
        m = len(np.asarray(qid))
        row = rows_of(self.query, self.document, qid, doc_ids, m)
        y = np.full(m, np.nan)
        y[row[row >= 0]] = self.rating[row >= 0]
        return Joined(y, int((~np.isnan(y)).sum()), int(np.isnan(y).sum()), int((row < 0).sum()))

    def to_qrels(self) -> str:
        """As TREC qrels: `query 0 document rating`, ratings whole numbers."""
        return to_qrels(self.rating, self.query, self.document)

    def to_csv(self) -> str:
        """As CSV with the columns query, docid and rating, which Quepid and OpenSearch read."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["query", "docid", "rating"])
        for query, document, rating in zip(self.query, self.document, self.rating.tolist(), strict=True):
            writer.writerow([query, document, repr(rating).removesuffix(".0")])
        return text.getvalue()

    def save(self, path: str | os.PathLike) -> None:
        """Write a file: CSV if its name ends in .csv, else qrels."""
        text = self.to_csv() if Path(path).suffix.lower() == ".csv" else self.to_qrels()
        with replacing(Path(path)) as file:
            file.write(text.encode())


@dataclass(frozen=True)
class Joined:
    """Ratings of rows of features, and how many rows and judgments found no partner.

    Examples
    --------
    >>> from rankrls import clicks
    >>> clicks.read_judgments("q 0 a 1\\nq 0 b 0\\n").join(["q", "q"], ["a", "c"]).n_without_row
    1
    """

    y: np.ndarray  # (m,) NaN where there is none
    n_judged: int
    n_unjudged: int
    n_without_row: int

    def __repr__(self) -> str:
        count = lambda n, what: f"{n:,} {what}{'' if n == 1 else 's'}"
        return (
            f"Joined({count(self.n_judged, 'row')} judged, {count(self.n_unjudged, 'row')} without a judgment, "
            f"{count(self.n_without_row, 'judgment')} without a row)"
        )


def read_judgments(source: Any) -> Judgments:
    """Read judgments from a qrels or CSV file, from its text, or from a data frame.

    Parameters
    ----------
    source : path, str of several lines, or data frame
        Qrels have the columns `query 0 document rating`, separated by blanks. CSV has a header with query, docid and
        rating (or qid, document, label), in any order, among other columns. A frame has the same names.

    Returns
    -------
    judgments : Judgments

    Examples
    --------
    >>> from rankrls import clicks
    >>> len(clicks.read_judgments("q1 0 d1 2\\nq1 0 d2 0\\n"))
    2
    """
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        names = [str(name) for name in getattr(source, "column_names", None) or source.columns]
        places = _places(names, "the table")
        return _judgments([np.asarray(source[names[j]]).tolist() for j in places], "the table")
    plain = isinstance(source, str) and "\n" in source
    what = "the text" if plain else os.fspath(source)
    lines = (source if plain else Path(source).read_text(encoding="utf-8-sig")).splitlines()
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise ValueError(f"{what} is empty: there are no judgments")
    if "," in lines[0]:
        rows = list(csv.reader(lines))
        places = _places([cell.strip() for cell in rows[0]], what)
        wide = [i for i, row in enumerate(rows) if len(row) != len(rows[0])]
        if wide:
            raise ValueError(f"{what}, line {wide[0] + 1}: {len(rows[wide[0]])} values under {len(rows[0])} names")
        return _judgments([[row[j].strip() for row in rows[1:]] for j in places], what)
    parts = [line.split() for line in lines]
    for i, part in enumerate(parts):
        if len(part) != 4:
            raise ValueError(
                f"{what}, line {i + 1}: qrels have four words, `query 0 document rating`; got {lines[i]!r}"
            )
    return _judgments([[part[j] for part in parts] for j in (0, 2, 3)], what)


def _places(names: list[str], what: str) -> list[int]:
    lower, places = [name.lower() for name in names], []
    for usual in (QUERY, DOCUMENT, RATING):
        found = next((lower.index(name) for name in usual if name in lower), None)
        if found is None:
            raise ValueError(
                f"{what} has no column {usual[0]!r} (or {', '.join(usual[1:])}); it has {', '.join(names)}"
            )
        places.append(found)
    return places


def _judgments(columns: Iterable[list[Any]], what: str) -> Judgments:
    query, document, rating = columns
    try:
        ratings = np.array(rating, dtype=np.float64)
    except ValueError:
        wrong = next(value for value in rating if not _is_number(value))
        raise ValueError(f"{what}: a rating is a number, got {wrong!r}") from None
    made = Judgments(_texts(query), _texts(document), ratings)
    _check_unique(made.query, made.document, what)
    return made


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def from_clicks(log: ClickLog, *, theta: np.ndarray | None = None) -> Judgments:
    """Clicks over expected clicks as judgments: sum of clicks / sum of impressions times propensity, for each document.

    Parameters
    ----------
    log : ClickLog
        What was shown and clicked.
    theta : array-like of shape (n_positions,), default=None
        Propensities of positions; None estimates them from documents shown at several positions.

    Returns
    -------
    judgments : Judgments
        1 is as many clicks as a document of average relevance would have got where it was shown.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import clicks
    >>> log = clicks.simulate([2, 0, 1], sessions=4000, noise=0.1, swaps=0.3, random_state=0)
    >>> clicks.from_clicks(log).rating.round(1)
    array([1.8, 0.2, 0.6])
    """
    at = (propensities(log) if theta is None else check_propensities(theta, log))[log.position - 1]
    known = ~np.isnan(at)
    pair = log.pairs()[known]
    keep, code = np.unique(pair, return_inverse=True)
    first = np.unique(code, return_index=True)[1]
    rate = log.clicks.sum() / (log.impressions[known] * at[known]).sum()
    expected = np.bincount(code, weights=(log.impressions * at)[known]) * rate
    rating = np.bincount(code, weights=log.clicks[known], minlength=len(keep)) / expected
    return Judgments(_texts(log.query[known][first]), _texts(log.document[known][first]), rating)


def rows_of(query: np.ndarray, document: np.ndarray, qid: object, doc_ids: object, m: int) -> np.ndarray:
    """(n,) the row of features of each (query, document), compared as text; -1 where there is none."""
    queries = checks.check_queries(qid, m)
    have = queries.labels[queries.codes] if qid is not None else None
    documents = np.arange(m) if doc_ids is None else np.asarray(doc_ids)
    if documents.shape != (m,):
        raise ValueError(f"doc_ids must hold one id per row of features: got shape {documents.shape} for {m} rows")
    names = _texts(documents)
    groups = np.full(m, "") if have is None else _texts(have)
    _check_unique(groups, names, "the rows of features")
    place = {key: i for i, key in enumerate(zip(groups.tolist(), names.tolist(), strict=True))}
    wanted = np.full(len(query), "") if have is None else _texts(query)
    keys = zip(wanted.tolist(), _texts(document).tolist(), strict=True)
    return np.array([place.get(key, -1) for key in keys], dtype=np.intp)


def _texts(values: ArrayLike) -> np.ndarray:
    return np.array([str(value) for value in np.asarray(values).tolist()])


def _check_unique(query: np.ndarray, document: np.ndarray, what: str) -> None:
    seen: set[tuple[str, str]] = set()
    for key in zip(query.tolist(), document.tolist(), strict=True):
        if key in seen:
            raise ValueError(f"{what}: document {key[1]!r} of query {key[0]!r} is there twice")
        seen.add(key)
