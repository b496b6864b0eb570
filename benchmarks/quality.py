"""AutoRanker compared with tree ensembles, default and tuned: quality on held-out queries, and CPU seconds.

    python -m benchmarks.quality [--quick] [--sets NAME ...] [--models NAME ...] [--folds N] [--report]

A ranker is given training rows only (`judged` is the only place that fits), and whatever is chosen, in ours and in
tuned peers, is chosen by training queries. Test queries are predicted once. docs/decisions/0021-auto.md tells how the
constants of AutoRanker were settled. Paired randomisation tests compare AutoRanker with each peer query by query.
Everything runs on one thread, so seconds are CPU seconds.

Each run is a line of benchmarks/results/quality.jsonl; existing runs are not repeated. --report writes the tables to
benchmarks/results/quality.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.generated import Rows, interacting_data, search_data
from benchmarks.published import FOLDER, published
from benchmarks.rankers import OURS, RANKERS, Fit, numbered
from benchmarks.tasks import TASKS
from rankrls import metrics

Fold = tuple[Rows, Rows]
Runs = dict[tuple[str, int, str], dict[str, Any]]  # by data set, fold and ranker
RESULTS = Path(__file__).parent / "results"
QUICK = (OURS, 'AutoRanker(effort="fast")', "RankRLS()", "LightGBM", "XGBoost")
FOLDS = 5  # of public sets, seeds of generated ones
MEASURES = ("ndcg", "accuracy")
LARGE = 1_000_000  # training rows from which on there is one seed, and only peers that are asked for are tuned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", help="beginnings of names of data sets; all without")
    parser.add_argument("--models", nargs="*", choices=list(RANKERS), help="all without, but for effort='best'")
    parser.add_argument("--folds", type=int, default=FOLDS, help="folds to run")
    parser.add_argument("--first", type=int, default=0, help="the first fold")
    parser.add_argument("--quick", action="store_true", help="one fold of sets of 10,000 rows, default rankers only")
    parser.add_argument("--output", type=Path, default=RESULTS / "quality.jsonl", help="JSON lines to go on with")
    parser.add_argument("--report", action="store_true", help="write the tables of what is there, run nothing")
    args = parser.parse_args()
    if args.report:
        (RESULTS / "quality.md").write_text(report(_read(args.output)))
        return
    run(
        args.models or (QUICK if args.quick else None),
        args.sets,
        range(args.first, 1 if args.quick else args.folds),
        args.output,
        small=args.quick,
    )


def run(
    models: Iterable[str] | None, sets: list[str] | None, wanted: range, output: Path, *, small: bool = False
) -> None:
    """Every ranker on every fold, except those that are in `output`, which gets a line for each run.

    Models are all but effort="best" if none are named, and without tuned peers and CatBoost on very large sets.
    """
    done = _read(output)
    for name, folds in data_sets(sets or [""], small=small):
        if isinstance(folds, str):
            print(f"Skipped {name}: {folds}.")
            continue
        for number, fold in enumerate(islice(folds, wanted.stop)):
            slow = ("best", "tuned", "Cat") if len(fold[0][1]) >= LARGE else ("best",)
            some = models or [name for name in RANKERS if not any(word in name for word in slow)]
            for model in some if number in wanted else ():
                if (name, number, model) not in done:
                    done[name, number, model] = judged(model, *fold)
                    _write(output, name, number, model, done[name, number, model])
        print(f"\n{name}\n\n{table(name, done)}", flush=True)


def judged(model: str, train: Rows, test: Rows) -> dict[str, Any]:
    """Values of each test query and CPU seconds. The ranker sees training rows, and test rows without labels.

    LightGBM is timed right after AutoRanker: on a busy machine only seconds taken together can be compared.
    """
    (X, y, qid), (new, truth, query) = train, test
    with threadpool_limits(1):
        predict, seconds = _timed(RANKERS[model], X, y, numbered(qid))
        start = time.process_time()
        scores = predict(new, numbered(query))
        found: dict[str, Any] = {"seconds": seconds, "predict": round(time.process_time() - start, 3)}
        if model.startswith("AutoRanker"):
            found["LightGBM"] = _timed(RANKERS["LightGBM"], X, y, numbered(qid))[1]
    values = (
        metrics.per_query("ndcg", truth, scores, query, k=10),
        metrics.per_query("pairwise_accuracy", truth, scores, query),
    )
    for which, value in zip(MEASURES, values, strict=True):
        found[which] = round(float(np.nanmean(value)), 5)
        found[f"{which} of queries"] = [None if np.isnan(v) else round(1000 * v) for v in value]  # in thousandths
    return found


def _timed(fit: Fit, X: np.ndarray, y: np.ndarray, qid: np.ndarray) -> tuple[Any, float]:
    start = time.process_time()
    predict = fit(X, y, qid)
    return predict, round(time.process_time() - start, 3)


# ---------------------------------------------------------------- data


def data_sets(starts: list[str], *, small: bool = False) -> Iterator[tuple[str, Iterable[Fold] | str]]:
    """The data sets whose names start so: public ones with their own folds, generated ones with a seed each."""
    wanted = lambda name: any(name.startswith(start) for start in starts)
    begun = lambda name: any(start.startswith(name) or name.startswith(start) for start in starts)
    sets = chain(_public(begun), _tasks(begun), _made())
    for name, folds, rows in sets:
        if wanted(name) and not (small and rows > 10_000):
            yield name, folds


def _public(wanted: Callable[[str], bool]) -> Iterator[tuple[str, list[Fold] | str, int]]:
    """The public sets; those of one fold have few test queries and occur again, with all queries dealt into folds."""
    for name, found in published(FOLDS, wanted):
        yield name, found, 0
        if len(found) == 1:
            yield f"{name.split(',')[0]}, both files, {FOLDS} folds", _dealt(*found[0]), 0


def _tasks(wanted: Callable[[str], bool]) -> Iterator[tuple[str, list[Fold] | str, int]]:
    for name, make in TASKS.items():
        if wanted(name):
            try:
                folds = make(FOLDER, FOLDS)
            except FileNotFoundError as error:
                yield name, f"{error} (RANKRLS_SHARED_DATA is the folder to look in)", 0
            else:
                yield f"{name}, {folds[0][0][0].shape[0]:,} x {folds[0][0][0].shape[1]}", folds, 0


def _made() -> Iterator[tuple[str, Iterable[Fold], int]]:
    for m, n in ((10_000, 46), (10_000, 136), (100_000, 46), (1_000_000, 46)):
        yield f"interactions, {m:,} x {n}", _seeds(interacting_data, m, n), m
    for m in (10_000, 100_000, 1_000_000):
        yield f"linear signal, {m:,} x 46", _seeds(search_data, m, 46), m
    yield "small, 300 x 30", _seeds(search_data, 300, 30, documents=10), 300


def _dealt(train: Rows, test: Rows) -> list[Fold]:
    """All queries of both parts, dealt into folds."""
    X, y = (np.concatenate([a, b]) for a, b in zip(train[:2], test[:2], strict=True))
    first = numbered(train[2])
    qid = np.concatenate([first, numbered(test[2]) + first.max() + 1])
    part = np.random.default_rng(0).permutation(qid.max() + 1)[qid] % FOLDS
    rows = lambda chosen: (X[chosen], y[chosen], qid[chosen])
    return [(rows(part != fold), rows(part == fold)) for fold in range(FOLDS)]


def _seeds(make: Any, m: int, n: int, documents: int = 100) -> Iterator[Fold]:
    return map(partial(_generated, make, m, n, documents), range(FOLDS if m < LARGE else 1))


def _generated(make: Any, m: int, n: int, documents: int, seed: int) -> Fold:
    X, y, qid = make(m + min(20_000, 500 * documents), n, documents=documents, seed=seed)
    return (X[:m], y[:m], qid[:m]), (X[m:], y[m:], qid[m:])


# ---------------------------------------------------------------- results


def _read(path: Path) -> Runs:
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(record.pop("set"), record.pop("fold"), record.pop("model")): record for record in records}


def _write(path: Path, name: str, fold: int, model: str, found: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps({"set": name, "fold": fold, "model": model, **found}, separators=(",", ":")) + "\n")


def report(done: Runs) -> str:
    """All tables."""
    names = dict.fromkeys(name for name, *_ in done)
    return (
        "\n\n".join(["## quality: AutoRanker beside trees", *(f"{name}\n\n{table(name, done)}" for name in names)])
        + "\n"
    )


def table(name: str, done: Runs) -> str:
    """A line for each ranker: means over folds, CPU seconds of a fit, p-values of the difference to AutoRanker()."""
    head = ["ranker", "folds", "NDCG@10", "accuracy", "CPU s", "x LightGBM", "p (NDCG@10)", "p (accuracy)"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    runs = {model: {k[1]: found for k, found in done.items() if (k[0], k[2]) == (name, model)} for model in RANKERS}
    for model, found in runs.items():
        if found:
            value = [f"{np.mean([one[which] for one in found.values()]):.4f}" for which in MEASURES]
            seconds = float(np.mean([one["seconds"] for one in found.values()]))
            p = ["" if model == OURS else _p(runs[OURS], found, which) for which in MEASURES]
            cells = [model, str(len(found)), *value, f"{seconds:.3g}", _ratio(found, runs["LightGBM"]), *p]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _ratio(found: dict[int, Any], beside: dict[int, Any]) -> str:
    """CPU seconds relative to LightGBM on the same folds; measured in the same minutes where possible."""
    both = [fold for fold in found if "LightGBM" in found[fold] or fold in beside]
    theirs = sum(found[fold].get("LightGBM", beside.get(fold, {}).get("seconds")) for fold in both)
    return f"{sum(found[fold]['seconds'] for fold in both) / theirs:.2g}" if both else ""


def _p(ours: dict[int, Any], theirs: dict[int, Any], which: str) -> str:
    """The p-value of the difference, over the queries of the folds on which both were run."""
    both = [fold for fold in ours if fold in theirs]
    if not both:
        return ""
    a, b = (np.array([v for fold in both for v in runs[fold][f"{which} of queries"]], float) for runs in (ours, theirs))
    return f"{metrics.randomisation_test(a, b):.3f}"


if __name__ == "__main__":
    main()
