"""Files of scores: a number per line, a TREC run, or a table with a column `score`."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from ..datasets import RankingData
from ..system.files import all_bytes, opened
from .data import DELIMITERS, doc_ids, kind
from .tables import read_columns
from .text import plural, remark, source


def labelled(data: RankingData, args: Namespace) -> np.ndarray:
    """(m,) whether a row has a label."""
    judged = ~np.isnan(data.y)
    if not judged.any():
        raise ValueError(f"none of the {len(data)} rows of {args.data} has a label")
    if not judged.all():
        remark(args, f"left out {plural(int((~judged).sum()), 'row')} without a label")
    if data.y[judged].min() < 0 and not args.convention:
        remark(args, "there are negative labels: the gain of NDCG is the label, or 0 if it is negative")
    return judged


def read_scores(path: str, data: RankingData, args: Namespace) -> np.ndarray:
    """(m,) the score of each row, from a file of numbers, a TREC run or a table."""
    if (form := kind(path)) != "letor":
        return _of_table(path, form, data, args)
    with source(path, args.quiet) as file, opened(file) as plain:
        lines = [line.split() for line in all_bytes(plain, path).decode("utf-8", "surrogateescape").splitlines()]
    lines = [words for words in lines if words]
    if not lines:
        raise ValueError(f"{path} has no scores")
    if len(lines[0]) == 6:
        return _of_run(path, lines, data, args)
    try:
        scores = np.array([float(words[0]) if len(words) == 1 else float("none") for words in lines])
    except ValueError:
        i = next(i for i, words in enumerate(lines) if len(words) != 1 or not _is_number(words[0]))
        raise ValueError(
            f"{path}, score {i + 1}: {' '.join(lines[i])[:60]!r} is neither a single number nor a line of a TREC run, "
            "'qid Q0 docid rank score tag'"
        ) from None
    if len(scores) != len(data):
        raise ValueError(f"{path} has {len(scores)} scores, but {args.data} has {len(data)} rows")
    if np.isnan(scores).any():
        raise ValueError(f"{path}, score {int(np.argmax(np.isnan(scores))) + 1} is nan")
    return scores


def _of_run(path: str, lines: list[list[str]], data: RankingData, args: Namespace) -> np.ndarray:
    """Scores of a TREC run."""
    for line, words in enumerate(lines, start=1):
        if len(words) != 6 or not _is_number(words[4]):
            raise ValueError(f"{path}, line {line}: {' '.join(words)[:60]!r} is not 'qid Q0 docid rank score tag'")
    return _by_document(path, [(words[0], words[2], float(words[4])) for words in lines], data, args)


def _of_table(path: str, form: str, data: RankingData, args: Namespace) -> np.ndarray:
    """Scores from a table such as predict writes; in the order of the rows if there is no column of documents."""
    with source(path, args.quiet) as file:
        columns = read_columns(file, DELIMITERS.get(form))
    if "score" not in columns:
        raise ValueError(f"{path} has no column 'score'; it has {', '.join(columns)}")
    try:
        scores = np.array([float(value) for value in columns["score"]])
    except (TypeError, ValueError):
        raise ValueError(f"{path}: the column 'score' must hold numbers") from None
    in_order = "docid" not in columns or columns["docid"] == doc_ids(data).tolist()
    if len(scores) == len(data) and in_order:
        return scores
    if "docid" not in columns:
        raise ValueError(f"{path} has {len(scores)} scores, but {args.data} has {len(data)} rows")
    queries = columns.get("qid", ["1"] * len(scores))
    return _by_document(path, list(zip(queries, columns["docid"], scores.tolist(), strict=True)), data, args)


def _by_document(path: str, found: list[tuple[str, str, float]], data: RankingData, args: Namespace) -> np.ndarray:
    """Scores by query and document; documents without a score come last."""
    queries = ["1"] * len(data) if data.qid is None else [str(query) for query in data.qid]
    place = {key: i for i, key in enumerate(zip(queries, doc_ids(data).tolist(), strict=True))}
    if len(place) < len(data):
        raise ValueError(
            f"some documents occur twice in a query of {args.data}, so it is not clear whose scores {path} has"
        )
    scores = np.full(len(data), np.nan)
    for line, (query, document, score) in enumerate(found, start=1):
        if (query, document) not in place:
            raise ValueError(f"{path}, line {line}: {args.data} has no document {document!r} in query {query!r}")
        scores[place[query, document]] = score
    absent = np.isnan(scores)
    if absent.any():
        remark(args, f"{path} has no score for {int(absent.sum()):,} of {len(data):,} documents, which are ranked last")
        scores[absent] = np.nanmin(scores) - 1
    return scores


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
