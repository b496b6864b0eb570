"""Rankings of several retrievers, side by side: a score for each document that a retriever returned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..core.queries import Queries

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
        """Put runs side by side.

        Parameters
        ----------
        runs : dict of name to rows or path
            Rows (query, document, score), or the path of a TREC run file (`query Q0 document rank score tag`).

        Returns
        -------
        runs : Runs
        """
        if not runs:
            raise ValueError("there are no runs to put together")
        place: dict[tuple[str, str], int] = {}
        found: list[list[tuple[int, float]]] = []
        for name, rows in runs.items():
            rows = read_run(rows) if isinstance(rows, str | os.PathLike) else rows
            seen: set[int] = set()
            found.append([])
            for query, document, score in rows:
                i = place.setdefault((str(query), str(document)), len(place))
                if i in seen:
                    raise ValueError(f"run {name!r} has document {document!r} of query {query!r} twice")
                if not np.isfinite(score):
                    raise ValueError(f"run {name!r} has the score {score} for document {document!r} of query {query!r}")
                seen.add(i)
                found[-1].append((i, float(score)))
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
        """Some document must have been returned by each two retrievers: else their ids differ."""
        have = ~np.isnan(self.scores)
        for i, j in combinations(range(len(self.names)), 2):
            if not (have[:, i] & have[:, j]).any():
                raise ValueError(
                    f"the runs {self.names[i]!r} and {self.names[j]!r} have no document of a query in common, so that "
                    "nothing tells how they compare: are queries and documents named alike in both?"
                )

    @property
    def queries(self) -> Queries:
        return Queries.of(self.query)

    def normalised(self, how: str = "minmax") -> np.ndarray:
        """(m, n_retrievers) scores on one scale within each query.

        "minmax" is (s - min) / (max - min), 1 where all are equal and 0 where the document was not returned; "zscore"
        is (s - mean) / standard deviation, and the smallest value of the query where it was not returned.
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
