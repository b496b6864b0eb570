"""rankrls evaluate DATA SCORES [SCORES2]"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from ..checks import check_queries
from ..core.queries import Queries
from ..datasets import RankingData
from ..metrics import per_query, randomisation_test, standard_error
from ..system.files import all_bytes, opened
from ..system.progress import working
from .data import doc_ids, labels
from .tables import write_csv
from .text import number, remark, say, source, table, target

PLAIN = ("pairwise_accuracy", "kendall_tau_b", "ndcg")
WITH_RELEVANT = ("map", "mrr", "average_precision", "reciprocal_rank", "precision", "recall")


def run(args: Namespace) -> None:
    files = [args.scores] + ([] if args.other is None else [args.other])
    if [args.data, *files].count("-") > 1:
        raise ValueError("standard input (-) can be read only once")
    data = labels(args.data, args)
    models = [read_scores(path, data, args) for path in files]
    judged = labelled(data, args)
    queries = check_queries(None if data.qid is None else data.qid[judged], int(judged.sum()))
    values = {
        name: [values_of(name, data.y[judged], scores[judged], queries, args) for scores in models]
        for name in args.metrics or all_metrics(args.k)
    }
    with working("testing", args.quiet):
        found = {name: summary(both, args.flips) for name, both in values.items()}
    if args.per_query:
        _write_values(args.per_query, values, queries, files)
    record = {"data": args.data, "scores": files, "rows": int(judged.sum()), "queries": len(queries), "metrics": found}
    say(args, record, _text(found, files))


def labelled(data: RankingData, args: Namespace) -> np.ndarray:
    """(m,) whether a row has a label to judge by."""
    judged = ~np.isnan(data.y)
    if not judged.any():
        raise ValueError(f"none of the {len(data)} rows of {args.data} has a label")
    if not judged.all():
        remark(args, f"{int((~judged).sum())} rows without a label are left out")
    if data.y[judged].min() < 0 and not args.convention:
        remark(args, "there are negative labels: the gain of NDCG is the label, or 0 if it is negative")
    return judged


def all_metrics(cutoffs: list[int]) -> list[str]:
    return [*PLAIN, *(f"ndcg@{k}" for k in cutoffs), "map", "mrr", *(f"precision@{k}" for k in cutoffs)]


def values_of(name: str, y: np.ndarray, scores: np.ndarray, queries: Queries, args: Namespace) -> np.ndarray:
    """(q,) a metric of each query as the options have it."""
    base = name.lower().partition("@")[0]
    options: dict[str, Any] = {}
    if base == "ndcg" and args.convention:
        options["convention"] = args.convention
    elif base == "ndcg" and y.min() < 0:
        options["gain"] = "positive"
    elif base in WITH_RELEVANT:
        options["relevant"] = args.relevant
    return per_query(name, y, scores, queries, **options)


def summary(values: list[np.ndarray], flips: int) -> dict[str, Any]:
    """Mean and standard error of each model, and what is to be said of their difference."""
    defined = ~np.isnan(values).any(axis=0)
    n, kept = int(defined.sum()), [v[defined] for v in values]
    found: dict[str, Any] = {
        "queries": n,
        "mean": [float(v.mean()) if n else None for v in kept],
        "standard_error": [float(standard_error(v)) if n else None for v in kept],
    }
    if len(values) == 2 and n:
        d = kept[1] - kept[0]
        p = randomisation_test(kept[1], kept[0], flips=flips)
        wins = {"better": int((d > 0).sum()), "worse": int((d < 0).sum())}
        found |= {"difference": float(d.mean()), "difference_error": float(standard_error(d)), "p": p, **wins}
    return found


def _text(found: dict[str, Any], files: list[str]) -> str:
    if len(files) == 1:
        rows = [
            [name, number(f["mean"][0]), number(f["standard_error"][0]), str(f["queries"])] for name, f in found.items()
        ]
        return table(["metric", "mean", "s.e.", "queries"], rows)
    rows = []
    for name, f in found.items():
        if not f["queries"]:
            rows.append([name, *"-------", "0"])
            continue
        means = [number(v) for pair in zip(f["mean"], f["standard_error"], strict=True) for v in pair]
        rows.append(
            [name, *means, f"{f['difference']:+.4f}", number(f["difference_error"]), p_value(f["p"]), f["queries"]]
        )
    head = ["metric", "A", "s.e.", "B", "s.e.", "B - A", "s.e.", "p", "queries"]
    legend = f"A is {files[0]}, B is {files[1]}; p by a paired randomisation test over queries"
    return f"{table(head, rows)}\n{legend}"


def p_value(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "<0.0001"


def _write_values(path: str, values: dict[str, Any], queries: Queries, files: list[str]) -> None:
    """A line per query, a column per metric and score file."""
    columns = {"qid": np.asarray(queries.labels, dtype=object)}
    for name, both in values.items():
        for path_of, column in zip(files, both, strict=True):
            columns[name if len(files) == 1 else f"{name} {path_of}"] = column
    with target(path) as file:
        write_csv([columns], file)


# ---------------------------------------------------------------- score files


def read_scores(path: str, data: RankingData, args: Namespace) -> np.ndarray:
    """(m,) the score of each row, from a file of numbers or a TREC run."""
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
            f"{path}, score {i + 1}: {' '.join(lines[i])[:60]!r} is not one number per line, nor a TREC run of lines "
            "'qid Q0 docid rank score tag'"
        ) from None
    if len(scores) != len(data):
        raise ValueError(f"{path} has {len(scores)} scores, {args.data} has {len(data)} rows")
    if np.isnan(scores).any():
        raise ValueError(f"{path}, score {int(np.argmax(np.isnan(scores))) + 1} is nan")
    return scores


def _of_run(path: str, lines: list[list[str]], data: RankingData, args: Namespace) -> np.ndarray:
    """Scores by query and document; documents that a run leaves out come last."""
    queries = ["1"] * len(data) if data.qid is None else [str(query) for query in data.qid]
    place = {key: i for i, key in enumerate(zip(queries, doc_ids(data).tolist(), strict=True))}
    if len(place) < len(data):
        raise ValueError(f"{args.data} has documents twice in a query, so that a TREC run does not tell their scores")
    scores = np.full(len(data), np.nan)
    for line, words in enumerate(lines, start=1):
        if len(words) != 6 or not _is_number(words[4]):
            raise ValueError(f"{path}, line {line}: {' '.join(words)[:60]!r} is not 'qid Q0 docid rank score tag'")
        if (words[0], words[2]) not in place:
            raise ValueError(f"{path}, line {line}: {args.data} has no document {words[2]!r} in query {words[0]!r}")
        scores[place[words[0], words[2]]] = float(words[4])
    absent = np.isnan(scores)
    if absent.any():
        remark(args, f"{path} leaves out {int(absent.sum())} of {len(data)} documents, which count as last")
        scores[absent] = np.nanmin(scores) - 1
    return scores


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
