"""Open data sets, frames, arrays, files and TREC runs for a session."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import RankingData, load_letor
from ..system import frames
from ..system.files import lines, opened
from ..system.types import Ids
from ..tables import TableEncoder
from .documents import DocumentTable, documents, trec_word
from .state import ActionError
from .tables import Chosen, from_csv, from_frame, from_parquet

RANK_CONSTANT = 60  # k in the reciprocal rank 1 / (k + rank)


def documents_of(data: object, name: str | None = None, *, encoder: TableEncoder | None = None) -> DocumentTable:
    """Documents from any supported kind of data.

    Parameters
    ----------
    data : Documents, RankingData, data frame, tuple (X, y, qid) or path
        A frame has a column of query ids ("qid" or "query") and optionally labels ("label", "y", "rating"), document
        ids ("docid") and titles ("title"); all other columns are features. Text with few levels, dates and missing
        values are encoded by a `TableEncoder`. A path is LETOR text, CSV, Parquet (a file or a folder), or a TREC run.
    name : str, default=None
        Name of the data.
    encoder : TableEncoder, default=None
        The fitted encoder of a model, for the columns of a table.
    """
    chosen = Chosen() if encoder is None else Chosen(features=_inputs(encoder), encoder=encoder)
    if isinstance(data, DocumentTable):
        return data
    if isinstance(data, RankingData):
        return documents(data, name=name or "data")
    if isinstance(data, str | os.PathLike):
        return _from_path(Path(data), name, chosen)
    if isinstance(data, tuple) and len(data) in (2, 3):
        X, y, qid = (*data, None)[:3]
        if columns := frames.names(frame := frames.as_frame(X)):
            chosen = replace(chosen, features=chosen.features or [str(column) for column in columns])
            return from_frame(frame, name or "data", chosen, y=y, qid=qid)
        return documents(RankingData(np.asarray(X), y, _ids(qid)), name=name or "data")
    frame = frames.as_frame(data)
    if frames.names(frame):
        return from_frame(frame, name or "data frame", chosen)
    raise TypeError(
        "the workbench opens a data frame, a RankingData, a tuple (X, y, qid) or the path of a file, "
        f"got {type(data).__name__}"
    )


def _ids(qid: Ids) -> Any:
    return None if qid is None else np.asarray(qid)


def _inputs(encoder: TableEncoder) -> list[str]:
    return [str(column) for column in encoder.feature_names_in_]


def _from_path(path: Path, name: str | None, chosen: Chosen) -> DocumentTable:
    name = name or path.name
    suffixes = {suffix.lower() for suffix in path.suffixes}
    if path.is_dir() or suffixes & {".parquet", ".pq"}:
        return from_parquet(path, name, chosen)
    if suffixes & {".csv", ".tsv"}:
        return from_csv(path, name, chosen, delimiter="\t" if ".tsv" in suffixes else ",")
    if is_run(path):
        return from_runs([path], name=name)
    return documents(load_letor(path), name=name)


# ---------------------------------------------------------------- TREC


def is_run(path: str | os.PathLike) -> bool:
    """True if a file is a TREC run: six words per line, the second is Q0."""
    if not Path(path).is_file():
        return False
    with opened(path) as file:
        words = file.readline(10_000).split()
    return len(words) == 6 and words[1].upper() == b"Q0"


def from_runs(runs: Sequence[str | os.PathLike], qrels: Any = None, *, name: str | None = None) -> DocumentTable:
    """Documents of TREC runs: the score and reciprocal rank of each run are features, and labels come from qrels.

    A document that a run does not list gets the query's lowest score in that run, and reciprocal rank 0.
    """
    found: dict[tuple[str, str], dict[int, tuple[float, int]]] = {}
    for number, path in enumerate(runs):
        for query, document, score, rank in _run_lines(path):
            found.setdefault((query, document), {})[number] = (score, rank)
    judged = {} if qrels is None else dict(_qrel_lines(qrels))
    place = {query: number for number, query in enumerate(dict.fromkeys(query for query, _ in found))}
    for key in judged:  # judged documents that no run found are part of the query too
        if key[0] in place:
            found.setdefault(key, {})
    keys = sorted(found, key=lambda key: place[key[0]])  # queries in the order of the runs
    X = np.zeros((len(keys), 2 * len(runs)))
    for number in range(len(runs)):
        scores = np.array([found[key].get(number, (np.nan, 0))[0] for key in keys])
        ranks = np.array([found[key].get(number, (np.nan, 0))[1] for key in keys])
        X[:, 2 * number] = _filled(scores, [key[0] for key in keys])
        X[:, 2 * number + 1] = np.where(ranks > 0, 1 / (RANK_CONSTANT + ranks), 0.0)
    stems = [Path(path).stem for path in runs]
    stems = [stem if stems.count(stem) == 1 else f"{stem} ({i + 1})" for i, stem in enumerate(stems)]
    names = [text for stem in stems for text in (f"{stem} score", f"{stem} 1/rank")]
    y = np.array([judged.get(key, np.nan) for key in keys])
    data = RankingData(X, y, np.array([key[0] for key in keys], dtype=object), names)
    return documents(data, doc_ids=[key[1] for key in keys], name=name or ", ".join(stems))


def with_qrels(data: DocumentTable, qrels: str | os.PathLike) -> DocumentTable:
    """The documents with the labels of a qrels file; unjudged documents have none."""
    judged = dict(_qrel_lines(qrels))
    names = data.query_ids
    key = lambda row, q: (trec_word(names[q]), trec_word(data.doc_id(row)))
    y = [judged.get(key(row, q), np.nan) for row, q in enumerate(data.queries.codes.tolist())]
    return replace(data, y=np.array(y))


def _filled(scores: np.ndarray, queries: list[str]) -> np.ndarray:
    least: dict[str, float] = {}
    for query, score in zip(queries, scores.tolist(), strict=True):
        if score == score:
            least[query] = min(score, least.get(query, score))
    return np.array([s if s == s else least.get(q, 0.0) for q, s in zip(queries, scores.tolist(), strict=True)])


def _run_lines(path: str | os.PathLike) -> Iterable[tuple[str, str, float, int]]:
    for number, words in _words(path, 6):
        try:
            yield words[0], words[2], float(words[4]), int(words[3])
        except ValueError:
            raise ValueError(f"{path}, line {number}: rank and score must be numbers") from None


def _qrel_lines(path: str | os.PathLike) -> Iterable[tuple[tuple[str, str], float]]:
    for number, words in _words(path, 4):
        try:
            yield (words[0], words[2]), float(words[3])
        except ValueError:
            raise ValueError(f"{path}, line {number}: the judgment {words[3]!r} is not a number") from None


def _words(path: str | os.PathLike, count: int) -> Iterable[tuple[int, list[str]]]:
    with opened(path) as file:
        for number, line in enumerate(lines(file, os.fspath(path)), start=1):
            words = line.decode("utf-8", "replace").split()
            if words and len(words) != count:
                raise ValueError(f"{path}, line {number}: {len(words)} words where {count} are expected")
            if words:
                yield number, words


def read_judgments(body: bytes, rows: Mapping[tuple[str, str], int]) -> tuple[list[list[Any]], int]:
    """[row, grade] for each judgment in a file, and the number of judgments of other documents."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ActionError("the file is not text in UTF-8") from None
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and "," in lines[0]:
        table = csv.DictReader(io.StringIO(text))
        if not {"query", "docid", "rating"} <= set(table.fieldnames or ()):
            raise ActionError("the first line of the CSV must name the columns query,docid,rating")
        found = [(r["query"] or "", r["docid"] or "", (r["rating"] or "").strip()) for r in table]
    else:
        parts = [line.split() for line in lines]
        if not all(len(part) == 4 for part in parts):
            raise ActionError("judgments are CSV (query,docid,rating) or qrels (query 0 docid rating)")
        found = [(part[0], part[2], part[3]) for part in parts]
        rows = {(trec_word(query), trec_word(document)): row for (query, document), row in rows.items()}
    judged, unknown = [], 0
    for query, document, rating in found:
        row = rows.get((query, document))
        if row is None:
            unknown += 1
            continue
        try:
            judged.append([row, float(rating) if rating else None])
        except ValueError:
            raise ActionError(f"the rating {rating!r} of document {document!r} is not a number") from None
    return judged, unknown
