"""`make bench`: times as ratios to bare BLAS, scikit-learn and other rankers on the same data in the same run.

    python -m benchmarks.run [--quick] [--patience SECONDS] [name ...]

Prints a table for each suite and writes it to benchmarks/results/. Ratios carry over between machines; seconds do not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import benchmarks.measure
from benchmarks.measure import ROOT, machine
from benchmarks.peers import peers
from benchmarks.suites.conditional import conditional
from benchmarks.suites.feedback import feedback
from benchmarks.suites.growth import growth
from benchmarks.suites.kernels import kernel, sparse
from benchmarks.suites.linear import held_out, linear, one_query, one_thread, one_thread_held_out
from benchmarks.suites.load import load
from benchmarks.suites.outofcore import outofcore
from benchmarks.suites.pursuit import pursuit
from benchmarks.suites.reading import reading
from benchmarks.suites.relations import relations
from benchmarks.suites.scoring import scoring
from benchmarks.suites.serving import serving
from benchmarks.suites.small import small
from benchmarks.workbench import workbench

RESULTS = ROOT / "benchmarks" / "results"
Suite = Callable[[bool], Iterator[Any]]  # yields lines of tables (head, cells, others, missed), or sentences

SUITES: dict[str, Suite] = {
    "linear": linear,
    "held-out": held_out,
    "one-query": one_query,
    "one-thread": one_thread,
    "one-thread-held-out": one_thread_held_out,
    "small": small,
    "kernel": kernel,
    "sparse": sparse,
    "conditional": conditional,
    "relations": relations,
    "pursuit": pursuit,
    "feedback": feedback,
    "scoring": scoring,
    "serving": serving,
    "reading": reading,
    "outofcore": outofcore,
    "load": load,
    "growth": growth,
    "peers": peers,
    "workbench": workbench,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"suites to run: {', '.join(SUITES)} (all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size; nothing is written")
    parser.add_argument("--patience", type=float, default=0.0, help="wait so long for a quiet machine before each run")
    arguments = parser.parse_args()
    benchmarks.measure.patience = arguments.patience
    benchmarks.measure.again = 1 if arguments.quick else 3
    unknown = set(arguments.names) - set(SUITES)
    if unknown:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    print(machine(), flush=True)
    for name in arguments.names or SUITES:
        title = f"## {name}: {SUITES[name].__doc__.splitlines()[0]}"
        print(f"\n{title}\n", flush=True)
        lines = [title, "", machine(), "", *table(SUITES[name](arguments.quick))]
        if not arguments.quick:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")


def table(rows: Iterable[Any]) -> list[str]:
    """Markdown of the lines of a suite, printed as they come; a new table starts where the header changes.

    Sentences, missed targets and the load of the machine follow below.
    """
    lines, notes, missed, others, head = [], [], [], [], None
    for row in rows:
        if isinstance(row, str):
            notes.append(row)
            print(row, file=sys.stderr, flush=True)
            continue
        new = [row.cells()] if row.head == head else [row.head, ["---"] * len(row.head), row.cells()]
        text = ["| " + " | ".join(cells) + " |" for cells in new]
        if head is not None and row.head != head:
            text.insert(0, "")
        head = row.head
        print("\n".join(text), flush=True)
        lines += text
        others.append(row.others)
        missed += [row.missed] if getattr(row, "missed", "") else []
    if missed:
        notes.append("Above the targets: " + "; ".join(missed) + ".")
    notes.append(f"Other processes took {np.median(others):.0%} of the cores, {max(others):.0%} at most.")
    for note in notes[-1 - bool(missed) :]:
        print(f"\n{note}", flush=True)
    return [*lines, *(text for note in notes for text in ("", note))]


if __name__ == "__main__":
    main()
