"""rankrls evaluate DATA SCORES..."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from ..core.queries import Queries
from ..metrics import per_query, randomisation_test, standard_error
from ..system.progress import working
from . import relations
from .entries import entries_of
from .tables import write_csv
from .text import check_target, number, plural, say, table, target

PLAIN = ("pairwise_accuracy", "kendall_tau_b", "ndcg")
SIDE_BY_SIDE = 4  # files that fit beside each other, where there are more metrics than that
WITH_RELEVANT = ("map", "mrr", "average_precision", "reciprocal_rank", "precision", "recall")


def run(args: Namespace) -> None:
    args = relations.named(args)
    if args.edges or args.matrix or args.settings:
        relations.evaluate(args)
        return
    if args.data is None or not args.scores:
        raise ValueError(
            "what should be judged? rankrls evaluate DATA SCORES; for relations, --edges or --matrix, and --settings "
            "1,2,3,4"
        )
    check_target(args.per_query)
    entries, judged = entries_of(args, args.scores, features=False)
    files = args.scores
    values = {
        name: [values_of(name, judged.y, entry.scores, judged.queries, args) for entry in entries]
        for name in args.metrics or all_metrics(args.k)
    }
    with working("testing", args.quiet):
        found = {name: summary(both, args.flips) for name, both in values.items()}
    if args.per_query:
        _write_values(args.per_query, values, judged.queries, files)
    record = {
        "data": args.data,
        "scores": files,
        "rows": len(judged.y),
        "queries": len(judged.queries),
        "metrics": found,
    }
    say(args, record, _text(found, files))


def all_metrics(cutoffs: list[int]) -> list[str]:
    return [*PLAIN, *(f"ndcg@{k}" for k in cutoffs), "map", "mrr", *(f"precision@{k}" for k in cutoffs)]


def values_of(name: str, y: np.ndarray, scores: np.ndarray, queries: Queries, args: Namespace) -> np.ndarray:
    """(q,) a metric of each query, with the options of the command line."""
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
    """Mean and standard error of each model, and the differences of the others from the first."""
    defined = ~np.isnan(values).any(axis=0)
    n, kept = int(defined.sum()), [v[defined] for v in values]
    found: dict[str, Any] = {
        "queries": n,
        "mean": [float(v.mean()) if n else None for v in kept],
        "standard_error": [float(standard_error(v)) if n else None for v in kept],
    }
    against = [_difference(kept[0], other, flips) for other in kept[1:]] if n else []
    if len(values) == 2 and n:
        return found | against[0]
    return found | {"against_first": against} if len(values) > 2 else found


def _difference(first: np.ndarray, other: np.ndarray, flips: int) -> dict[str, Any]:
    d = other - first
    p = randomisation_test(other, first, flips=flips)
    wins = {"better": int((d > 0).sum()), "worse": int((d < 0).sum())}
    return {"difference": float(d.mean()), "difference_error": float(standard_error(d)), "p": p, **wins}


def _text(found: dict[str, Any], files: list[str]) -> str:
    if len(files) == 1:
        rows = [
            [name, number(f["mean"][0]), number(f["standard_error"][0]), str(f["queries"])] for name, f in found.items()
        ]
        return table(["metric", "mean", "s.e.", "queries"], rows)
    if len(files) > 2:
        return _side_by_side(found, files) if len(files) <= SIDE_BY_SIDE < len(found) else _of_many(found, files)
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


def _side_by_side(found: dict[str, Any], files: list[str]) -> str:
    """A row for each metric; the mean of the first file, and of each other its mean, its lead over the first and p."""
    letters = [_letter(i) for i in range(len(files))]
    head = ["metric", letters[0], *(text for one in letters[1:] for text in (one, f"{one} - {letters[0]}", "p"))]
    rows = []
    for name, f in found.items():
        against = f["against_first"] or [None] * (len(files) - 1)
        cells = [name, number(f["mean"][0])]
        for mean, d in zip(f["mean"][1:], against, strict=True):
            cells += [number(mean), *(["-"] * 2 if d is None else [f"{d['difference']:+.4f}", p_value(d["p"])])]
        rows.append([*cells, f["queries"]])
    legend = ", ".join(f"{letter} is {path}" for letter, path in zip(letters, files, strict=True))
    return f"{table([*head, 'queries'], rows)}\n{legend}; p by a paired randomisation test over queries"


def _letter(i: int) -> str:
    """A, B, ..., Z, A1, B1, ..."""
    return f"{chr(ord('A') + i % 26)}{i // 26 or ''}"


def _of_many(found: dict[str, Any], files: list[str]) -> str:
    """A table for each metric, a row for each file."""
    tables = []
    for name, f in found.items():
        rows = [[files[0], number(f["mean"][0]), number(f["standard_error"][0]), "", "", ""]]
        against = f["against_first"] or [None] * (len(files) - 1)
        for path, mean, error, d in zip(files[1:], f["mean"][1:], f["standard_error"][1:], against, strict=True):
            told = (
                ["-"] * 3 if d is None else [f"{d['difference']:+.4f}", number(d["difference_error"]), p_value(d["p"])]
            )
            rows.append([path, number(mean), number(error), *told])
        head = [f"{name}, {plural(f['queries'], 'query')}", "mean", "s.e.", "- first", "s.e.", "p"]
        tables.append(table(head, rows))
    return "\n\n".join([*tables, f"differences from {files[0]}; p by a paired randomisation test over queries"])


def p_value(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "<0.0001"


def _write_values(path: str, values: dict[str, Any], queries: Queries, files: list[str]) -> None:
    """Write a line per query, with a column per metric and score file."""
    columns = {"qid": np.asarray(queries.labels, dtype=object)}
    for name, both in values.items():
        for path_of, column in zip(files, both, strict=True):
            columns[name if len(files) == 1 else f"{name} {path_of}"] = column
    with target(path) as file:
        write_csv([columns], file)
