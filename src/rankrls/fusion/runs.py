"""Rankings of several retrievers side by side: a score for each document that a retriever returned."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..clicks.judgments import DOCUMENT, QUERY, text_of
from ..core.queries import Queries
from ..system import frames

NORMALISATIONS = ("minmax", "zscore")


@dataclass(frozen=True)
class Runs:
    """Scores of documents by several retrievers, NaN where one did not return the document.

    Attributes
    ----------
    names : list of str
        The retrievers.
    query, document : ndarray of shape (m,)
        Every document that some retriever returned for a query.
    scores : ndarray of shape (m, n_retrievers)

    Examples
    --------
    >>> from rankrls import fusion
    >>> runs = fusion.Runs.of({"bm25": [("q", "a", 9.0), ("q", "b", 3.0)], "dense": [("q", "b", 0.8)]})
    >>> runs
    Runs of 2 retrievers (bm25, dense): 1 query, 2 documents, 1 returned by all
    >>> runs.scores
    array([[9. ,  nan],
           [3. , 0.8]])
    """

    names: list[str]
    query: np.ndarray
    document: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, runs: dict[str, Any]) -> Runs:
        """Combine runs into one table.

        Parameters
        ----------
        runs : dict of name to a run
            A run is the path of a TREC run file (`query Q0 document rank score tag`), rows (query, document, score), a
            data frame with columns of these names (or qid, docid, docno), or a dict `{query: {document: score}}`.

        Returns
        -------
        runs : Runs
        """
        if not isinstance(runs, dict):
            raise TypeError(
                f'runs need names: pass a dict such as {{"bm25": run, "dense": run}}, not a {type(runs).__name__}'
            )
        if not runs:
            raise ValueError("there are no runs: pass at least one")
        place: dict[tuple[str, str], int] = {}
        found: list[list[tuple[int, float]]] = []
        for name, rows in runs.items():
            seen: set[int] = set()
            found.append([])
            for row in _rows(rows, name):
                query, document, score = _checked(row, name)
                i = place.setdefault((query, document), len(place))
                if i in seen:
                    raise ValueError(f"run {name!r} has document {document!r} of query {query!r} twice")
                seen.add(i)
                found[-1].append((i, score))
            if not seen:
                raise ValueError(f"run {name!r} is empty")
        scores = np.full((len(place), len(runs)), np.nan)
        for j, rows in enumerate(found):
            for i, score in rows:
                scores[i, j] = score
        keys = list(place)
        made = cls(list(runs), np.array([q for q, _ in keys]), np.array([d for _, d in keys]), scores)
        return made._sorted()

    def _sorted(self) -> Runs:
        order = np.argsort(Queries.of(self.query).codes, kind="stable")
        return Runs(self.names, self.query[order], self.document[order], self.scores[order])

    def check_overlap(self) -> None:
        """Raise an error if two retrievers have no document in common, which means that they use different ids."""
        have = ~np.isnan(self.scores)
        for i, j in combinations(range(len(self.names)), 2):
            if not (have[:, i] & have[:, j]).any():
                raise ValueError(
                    f"the runs {self.names[i]!r} and {self.names[j]!r} have no document of a query in common, so they "
                    "cannot be compared: do both use the same ids of queries and documents?"
                )

    @property
    def queries(self) -> Queries:
        return Queries.of(self.query)

    @property
    def depth(self) -> int:
        """The largest number of documents that a retriever returned for a query."""
        counts = [self.queries.sum(~np.isnan(s)) for s in self.scores.T]
        return int(np.max(counts))

    def only(self, names: Sequence[str]) -> Runs:
        """The retrievers with these names, in this order; documents that none of them returned are dropped."""
        S = self.scores[:, [self.names.index(name) for name in names]]
        keep = ~np.isnan(S).all(axis=1)
        return Runs(list(names), self.query[keep], self.document[keep], S[keep])

    def normalised(self, how: str = "minmax") -> np.ndarray:
        """(m, n_retrievers) scores, normalised within each query.

        "minmax" is (s - min) / (max - min), 1 if all are equal and 0 for documents not returned; "zscore" is
        (s - mean) / standard deviation, and the smallest value of the query for documents not returned.
        """
        queries, out = self.queries, np.zeros_like(self.scores)
        for q in range(len(queries)):
            rows = queries.rows(q)
            S = self.scores[rows]
            for j, s in enumerate(S.T):
                known = ~np.isnan(s)
                if known.any():
                    out[rows, j] = _minmax(s, known) if how == "minmax" else _zscore(s, known)
        return out

    def reciprocal_ranks(self, k: float = 60.0) -> np.ndarray:
        """(m,) reciprocal rank fusion: the sum of 1 / (k + rank) over the retrievers that returned the document."""
        queries, total = self.queries, np.zeros(len(self.query))
        for s in self.scores.T:
            known = ~np.isnan(s)
            ranks = queries.ranks(np.where(known, s, -np.inf))
            total += np.where(known, 1 / (k + ranks), 0.0)
        return total

    def __repr__(self) -> str:
        q, m = len(np.unique(self.query)), len(self.query)
        everywhere = int((~np.isnan(self.scores)).all(axis=1).sum())
        return (
            f"Runs of {len(self.names)} retriever{'s' * (len(self.names) != 1)} ({', '.join(self.names)}): "
            f"{q:,} {'query' if q == 1 else 'queries'}, {m:,} document{'s' * (m != 1)}, {everywhere:,} returned by all"
        )


def _rows(run: Any, name: str) -> Iterable[tuple[Any, Any, float]]:
    """(query, document, score) of a run in any of its forms."""
    if isinstance(run, str | os.PathLike):
        return read_run(run)
    if isinstance(run, dict):
        return [(query, document, score) for query, found in run.items() for document, score in found.items()]
    run = frames.as_frame(run)
    have = {str(column).lower(): column for column in frames.names(run)}
    if not have:
        return run
    columns = []
    for usual in (QUERY, (*DOCUMENT, "docno"), ("score",)):
        found = next((have[word] for word in usual if word in have), None)
        if found is None:
            raise ValueError(f"run {name!r} has no column {usual[0]!r}; it has {', '.join(have)}")
        columns.append(np.asarray(run[found]).tolist())
    return list(zip(*columns, strict=True))


def _checked(row: Any, name: str) -> tuple[str, str, float]:
    """Query, document and finite score of a row of a run."""
    try:
        query, document, score = row
        value = float(score)
    except (TypeError, ValueError):
        raise ValueError(
            f"run {name!r}: rows are (query, document, score), and the score is a number; got {row!r}"
        ) from None
    if not np.isfinite(value):
        raise ValueError(f"run {name!r} has the score {score} for document {document!r} of query {query!r}")
    return text_of(query), text_of(document), value


def _minmax(s: np.ndarray, known: np.ndarray) -> np.ndarray:
    low, high = s[known].min(), s[known].max()
    return np.where(known, (s - low) / (high - low) if high > low else 1.0, 0.0)


def _zscore(s: np.ndarray, known: np.ndarray) -> np.ndarray:
    deviation = s[known].std()
    z = (s - s[known].mean()) / (deviation if deviation > 0 else 1.0)
    return np.where(known, z, z[known].min())


def read_run(path: str | os.PathLike) -> Sequence[tuple[str, str, float]]:
    """Rows (query, document, score) of a TREC run file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rankrls import fusion
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "bm25.run").write_text("q1 Q0 d7 1 12.5 bm25\\n")
    ...     fusion.read_run(f"{folder}/bm25.run")
    [('q1', 'd7', 12.5)]
    """
    rows = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        try:
            query, _, document, _, score, _ = words
            rows.append((query, document, float(score)))
        except ValueError:
            raise ValueError(
                f"{os.fspath(path)}, line {number}: a run has six words, `query Q0 document rank score tag`; got "
                f"{line!r}"
            ) from None
    return rows
