"""Rankings and judgements in TREC text format, which trec_eval, ir_measures and many other tools read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..checks import check_numbers, check_queries
from ..core.queries import Queries
from ..system.types import ArrayLike


def to_trec_run(
    scores: ArrayLike, qid: np.ndarray | None = None, doc_ids: ArrayLike | None = None, *, tag: str = "rankrls"
) -> str:
    """A TREC run: lines `qid Q0 docid rank score tag`, query by query, best first.

    Parameters
    ----------
    scores : array-like of shape (m,)
        Predicted scores.
    qid : array-like of shape (m,), default=None
        Query of each row; None: one query, named 1.
    doc_ids : array-like of shape (m,), default=None
        Document of each row; None numbers the rows from 1.
    tag : str, default="rankrls"
        Name of the run.

    Returns
    -------
    text : str
        Scores are written so that they read back exactly. Programs sort by score, not by rank; trec_eval first rounds
        to single precision, and sorts documents of equal score by descending name.

    Examples
    --------
    >>> from rankrls.datasets import to_trec_run
    >>> print(to_trec_run([0.5, 2.0, 1.0], qid=["q1", "q1", "q2"], doc_ids=["a", "b", "a"]), end="")
    q1 Q0 b 1 2.0 rankrls
    q1 Q0 a 2 0.5 rankrls
    q2 Q0 a 1 1.0 rankrls
    """
    given = np.asarray(scores)
    checked = check_numbers("scores", given, len(given))
    queries, documents = _named(qid, doc_ids, len(given))
    return "".join(run_lines(given if given.dtype == np.float32 else checked, queries, documents, tag))


def to_qrels(y: np.ndarray, qid: np.ndarray | None = None, doc_ids: ArrayLike | None = None) -> str:
    """TREC judgements (qrels): lines `qid 0 docid relevance`, in the order of the rows.

    Parameters
    ----------
    y : array-like of shape (m,)
        Relevance, whole numbers; rows with NaN are not judged and are left out.
    qid, doc_ids
        As in `to_trec_run`.

    Returns
    -------
    text : str

    Examples
    --------
    >>> import ir_measures
    >>> from rankrls import metrics
    >>> from rankrls.datasets import to_qrels, to_trec_run
    >>> y, scores, qid = [2, 0, 1, 0, 1], [0.4, 0.9, 0.2, 0.7, 0.1], [7, 7, 7, 8, 8]
    >>> qrels, run = ir_measures.read_trec_qrels(to_qrels(y, qid)), ir_measures.read_trec_run(to_trec_run(scores, qid))
    >>> there = ir_measures.calc_aggregate([ir_measures.nDCG], qrels, run)[ir_measures.nDCG]
    >>> round(there, 12) == round(metrics.ndcg(y, scores, qid, convention="trec"), 12)
    True
    """
    y = np.asarray(y, dtype=np.float64)
    queries, documents = _named(qid, doc_ids, len(y))
    judged = np.flatnonzero(~np.isnan(y))
    odd = judged[np.isinf(y[judged]) | (y[judged] != np.round(y[judged]))]
    if len(odd):
        raise ValueError(
            f"judgements must be whole numbers, got y = {y[odd[0]]} at row {odd[0]}: round or grade them first"
        )
    names = queries.labels.tolist()
    lines = (f"{names[queries.codes[i]]} 0 {documents[i]} {int(y[i])}\n" for i in judged.tolist())
    return "".join(lines)


def run_lines(scores: np.ndarray, queries: Queries, documents: np.ndarray, tag: str) -> Iterator[str]:
    """The lines of a run, query by query, best first."""
    _check_word("the tag of a run", tag)
    names = [_check_word("a query id", str(label)) for label in queries.labels.tolist()]
    ranks, numbers = queries.ranks(scores), shortest(scores)
    for i in np.lexsort((ranks, queries.codes)).tolist():
        document = _check_word("a document id", str(documents[i]))
        yield f"{names[queries.codes[i]]} Q0 {document} {ranks[i]} {numbers[i]} {tag}\n"


def shortest(scores: np.ndarray) -> list[str]:
    """The shortest texts that read back as exactly these numbers."""
    return list(map(str, scores.tolist() if scores.dtype == np.float64 else scores))


def _named(qid: object, doc_ids: ArrayLike | None, m: int) -> tuple[Queries, np.ndarray]:
    """Queries and documents with distinct one-word names."""
    queries = check_queries(qid, m)
    if qid is None:
        queries = Queries(np.array(["1"]), queries.codes)
    documents = np.arange(1, m + 1) if doc_ids is None else np.asarray(doc_ids)
    if documents.shape != (m,):
        raise ValueError(f"doc_ids must hold one name per row: got shape {documents.shape} for {m} rows")
    for label in queries.labels.tolist():
        _check_word("a query id", str(label))
    seen: set[tuple[int, str]] = set()
    for code, document in zip(queries.codes.tolist(), documents.tolist(), strict=True):
        key = code, _check_word("a document id", str(document))
        if key in seen:
            raise ValueError(f"document {document!r} occurs twice in query {queries.labels.tolist()[code]!r}")
        seen.add(key)
    return queries, documents


def _check_word(what: str, text: str) -> str:
    if text.split() != [text]:
        raise ValueError(f"{what} must be one word in a TREC file, got {text!r}")
    return text
