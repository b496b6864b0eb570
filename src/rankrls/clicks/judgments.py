"""Judgments: ratings of (query, document), in the file formats of TREC, Quepid and OpenSearch, joined to rows."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
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
    weight : ndarray of shape (n,) or None
        The weight of each, for `sample_weight` of a fit; None: equal weights. Not written to files.

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
    weight: np.ndarray | None = None

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
            `y` is NaN where a row has no judgment; the counts show what did not match.
        """
        m = len(np.asarray(qid))
        row = rows_of(self.query, self.document, qid, doc_ids, m)
        y, found = np.full(m, np.nan), row >= 0
        y[row[found]] = self.rating[found]
        weight = None
        if self.weight is not None:
            weight = np.zeros(m)
            weight[row[found]] = self.weight[found]
        return Joined(y, int((~np.isnan(y)).sum()), int(np.isnan(y).sum()), int((row < 0).sum()), weight)

    def graded(self, n_grades: int = 5) -> Judgments:
        """Ratings as whole grades from 0, by the share of smaller ratings, for tools that need whole numbers.

        Parameters
        ----------
        n_grades : int, default=5
            Grades 0 to n_grades - 1, as evenly filled as ties allow; the smallest rating is always 0.

        Returns
        -------
        judgments : Judgments

        Examples
        --------
        >>> from rankrls import clicks
        >>> clicks.read_judgments({"q": {"a": 0.0, "b": 0.0, "c": 0.7, "d": 1.9}}).graded(3).rating
        array([0., 0., 1., 2.])
        """
        checks.check_count("n_grades", n_grades, 2)
        below = np.searchsorted(np.sort(self.rating), self.rating) / len(self)
        return replace(self, rating=np.floor(n_grades * below))

    def to_qrels(self) -> str:
        """The judgments as TREC qrels, `query 0 document rating`; ratings must be whole numbers (see `graded`)."""
        return to_qrels(self.rating, self.query, self.document)

    def to_csv(self) -> str:
        """The judgments as CSV with the columns query, docid and rating, which Quepid and OpenSearch read."""
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
    """Ratings of rows of features, and how many rows and judgments did not match.

    Examples
    --------
    >>> from rankrls import clicks
    >>> clicks.read_judgments("q 0 a 1\\nq 0 b 0\\n").join(["q", "q"], ["a", "c"]).n_without_row
    1
    """

    y: np.ndarray  # (m,) NaN for rows without a judgment
    n_judged: int
    n_unjudged: int
    n_without_row: int
    weight: np.ndarray | None = None  # (m,) 0 for rows without a judgment

    def __repr__(self) -> str:
        count = lambda n, what: f"{n:,} {what}{'' if n == 1 else 's'}"
        return (
            f"Joined({count(self.n_judged, 'row')} judged, {count(self.n_unjudged, 'row')} without a judgment, "
            f"{count(self.n_without_row, 'judgment')} without a row)"
        )


def read_judgments(source: Any) -> Judgments:
    """Read judgments from a qrels or CSV file, from its text, from a data frame or a dict.

    Parameters
    ----------
    source : path, str of several lines, data frame or dict
        Qrels have the columns `query 0 document rating`, separated by blanks. CSV has a header with query, docid and
        rating (or qid, document, label), in any order, possibly with other columns. A frame has the same names. A dict
        is `{query: {document: rating}}`. Rows without a rating, which tools write for documents not yet judged, are
        ignored.

    Returns
    -------
    judgments : Judgments

    Examples
    --------
    >>> from rankrls import clicks
    >>> len(clicks.read_judgments("q1 0 d1 2\\nq1 0 d2 0\\n"))
    2
    """
    if isinstance(source, dict):
        found = [(query, document, rating) for query, judged in source.items() for document, rating in judged.items()]
        return _judgments([[row[j] for row in found] for j in range(3)], "the dict")
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        names = [str(name) for name in getattr(source, "column_names", None) or source.columns]
        places = _places(names, "the table")
        return _judgments([np.asarray(source[names[j]]).tolist() for j in places], "the table")
    plain = isinstance(source, str) and "\n" in source
    what = "the text" if plain else os.fspath(source)
    text = source if plain else Path(source).read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{what} is empty: there are no judgments")
    words = lines[0].split()
    if "," in lines[0] and not (len(words) == 4 and _is_number(words[3])):  # an id in qrels may contain a comma
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if any(cell.strip() for cell in row)]
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
    """Judgments from columns of queries, documents and ratings."""
    rows = [row for row in zip(*columns, strict=True) if not _is_nothing(row[2])]
    query, document, rating = ([row[j] for row in rows] for j in range(3))
    if not rows:
        raise ValueError(f"{what} has no row with a rating: there are no judgments")
    try:
        ratings = np.array(rating, dtype=np.float64)
    except ValueError:
        i = next(i for i, value in enumerate(rating) if not _is_number(value))
        raise ValueError(
            f"{what}: a rating is a number, got {rating[i]!r} for document {document[i]!r} of query {query[i]!r}"
        ) from None
    if np.isinf(ratings).any():
        i = int(np.argmax(np.isinf(ratings)))
        raise ValueError(f"{what}: the rating of document {document[i]!r} of query {query[i]!r} is infinite")
    made = Judgments(_texts(query), _texts(document), ratings)
    _check_unique(made.query.tolist(), made.document.tolist(), what)
    return made


def _is_nothing(rating: Any) -> bool:
    return rating is None or type(rating).__name__ == "NAType" or rating == "" or rating != rating


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def from_clicks(log: ClickLog, *, theta: np.ndarray | None = None, method: str = "expected") -> Judgments:
    """Turn clicks into judgments of documents, corrected for positions, from which any ranker can learn.

    Parameters
    ----------
    log : ClickLog, or a table that `ClickLog.of` reads
        What was shown and clicked.
    theta : array-like of shape (n_positions,), default=None
        Propensities of positions; None estimates them from documents shown at several positions.
    method : {"expected", "propensities", "naive"}, default="expected"
        "expected": clicks over expected clicks, sum of clicks / sum of impressions times theta. "propensities":
        clicks weighted inversely, sum of clicks / theta, per impression. "naive": clicks per impression, uncorrected.

    Returns
    -------
    judgments : Judgments
        Ratings relative to their mean: 1 means as many clicks as a document of average relevance would get in the same
        positions. `weight` is the number of (expected) impressions, relative to its mean.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import clicks
    >>> log = clicks.simulate([2, 0, 1], sessions=4000, noise=0.1, swaps=0.3, random_state=0)
    >>> clicks.from_clicks(log).rating.round(1)
    array([1.8, 0.2, 0.6])
    """
    log = log if isinstance(log, ClickLog) else ClickLog.of(log)
    checks.check_choice("method", method, ("expected", "propensities", "naive"))
    if method == "naive":
        theta = np.ones(int(log.position.max()))
    at = (propensities(log) if theta is None else check_propensities(theta, log))[log.position - 1]
    known = ~np.isnan(at)
    at, clicks, shown, inverse = at[known], log.clicks[known], log.impressions[known], method == "propensities"
    _, first, code = np.unique(log.pairs()[known], return_index=True, return_inverse=True)
    clicks = np.bincount(code, weights=clicks / at if inverse else clicks)
    shown = np.bincount(code, weights=shown if inverse else shown * at)
    rate = clicks.sum() / shown.sum() or 1.0
    query, document = (_texts(column[known][first]) for column in (log.query, log.document))
    return Judgments(query, document, clicks / (shown * rate), shown / shown.mean())


def rows_of(query: np.ndarray, document: np.ndarray, qid: object, doc_ids: object, m: int) -> np.ndarray:
    """(n,) the row of features of each (query, document), compared as text; -1 if there is none."""
    queries = checks.check_queries(qid, m)
    have = queries.labels[queries.codes] if qid is not None else None
    documents = np.arange(m) if doc_ids is None else np.asarray(doc_ids)
    if documents.shape != (m,):
        raise ValueError(f"doc_ids must hold one id per row of features: got shape {documents.shape} for {m} rows")
    names, groups = _listed(documents), [""] * m if have is None else _listed(have)
    place = dict(zip(zip(groups, names, strict=True), range(m), strict=True))
    if len(place) < m:
        _check_unique(groups, names, "the rows of features")
    keys = zip([""] * len(query) if have is None else _listed(query), _listed(document), strict=True)
    return np.array([place.get(key, -1) for key in keys], dtype=np.intp)


def text_of(value: Any) -> str:
    """An id as text; a whole number gives the same text however it is stored."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _listed(values: ArrayLike) -> list[str]:
    found = np.asarray(values).tolist()
    return found if set(map(type, found)) == {str} else [text_of(value) for value in found]


def _texts(values: ArrayLike) -> np.ndarray:
    return np.array(_listed(values))


def _check_unique(query: Iterable[str], document: Iterable[str], what: str) -> None:
    seen: set[tuple[str, str]] = set()
    for key in zip(query, document, strict=True):
        if key in seen:
            raise ValueError(f"{what}: document {key[1]!r} of query {key[0]!r} occurs twice")
        seen.add(key)
