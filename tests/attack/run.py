"""The list of cases, and running many of them."""

import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the oracles and mutations that other tests share

import multiprocessing
import os
import resource
import time
from collections import Counter, defaultdict
from contextlib import contextmanager, nullcontext

from rankrls.core import fused

from . import trial

MODULES = (
    "others",
    "rankers",
    "variants",
    "holdout",
    "blocks",
    "command_line",
    "semisupervised",
    "relations",
    "two_step",
    "elsewhere",
    "feedback",
    "measures",
    "files",
    "wrong_input",
)
WEIGHTS = {
    "linear models": 2,
    "kernel models": 2,
    "held-out scores": 2,
    "partial_fit and forget": 2,
}
COMPILED = "RANKRLS_ATTACK_COMPILED"  # set in the environment, which worker processes inherit
ROOM = 6 << 30  # bytes of address space that a worker may take besides what it has
CHUNK = 100


def categories():
    """The function of each category, in a fixed order."""
    found = {}
    for name in MODULES:
        found.update(importlib.import_module(f".{name}", __package__).CATEGORIES)
    return found


def category_of(case, names):
    """Categories take turns, some of them several times per round, so a case's number determines its category."""
    turns = [name for name in names for _ in range(WEIGHTS.get(name, 1))]
    return turns[case % len(turns)]


def run_case(seed, case, only=None):
    """The outcome of one case."""
    found = categories()
    name = only or category_of(case, found)
    with _compiled_everywhere() if COMPILED in os.environ else nullcontext():
        return trial.run_trial(found[name], name, case, seed)


@contextmanager
def _compiled_everywhere():
    """Use compiled code for problems of any size, and leave out queries with it however few there are."""
    fewest, fused.FEWEST_QUERIES = fused.FEWEST_QUERIES, 3
    try:
        with fused.compiled_code(True):
            yield
    finally:
        fused.FEWEST_QUERIES = fewest


def _limit():
    """Limit memory, so that a worker that asks for too much gets an error instead of stalling the machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _work(seed, only, todo, done):
    """Run chunks of cases; reports which case is next, so that a crash has a name."""
    categories()
    if sys.platform == "linux":
        _limit()
    for cases in iter(todo.get, None):
        for case in cases:
            done.put(("next", case, None))
            done.put(("end", case, run_case(seed, case, only)))
    done.put(("bye", None, None))


class Tally:
    """What was tried, by category, and what deviated."""

    def __init__(self):
        self.counts = defaultdict(Counter)
        self.refusals = defaultdict(Counter)
        self.deviations = []
        self.told = 0  # of them, those shown while others run
        self.worst = defaultdict(float)

    def add(self, outcome):
        self.counts[outcome.category][outcome.end] += 1
        if outcome.end == trial.EQUAL:
            self.worst[outcome.category] = max(self.worst[outcome.category], outcome.worst)
        if outcome.end == trial.DEVIATES:
            self.deviations.append(outcome)
        if outcome.end == trial.REFUSED:
            self.refusals[outcome.category][outcome.message[:60]] += 1

    def table(self):
        """The counts as docs/testing.md shows them."""
        ends = (trial.EQUAL, trial.REFUSED, trial.UNDECIDED, trial.DEVIATES)
        lines = ["| category | equal | refused | undecided | deviates | all |", "|---|---|---|---|---|---|"]
        total = sum(self.counts.values(), Counter())
        for name, counts in [
            *((name, self.counts[name]) for name in categories() if name in self.counts),
            ("all", total),
        ]:
            numbers = [*(counts[end] for end in ends), sum(counts.values())]
            lines.append("| " + " | ".join([name, *(f"{number:,}" for number in numbers)]) + " |")
        return "\n".join(lines)

    def save(self, path):
        """Write the counts and deviations to a file, to be added to by the next part of a run."""
        parts = {"counts": self.counts, "deviations": [vars(outcome) for outcome in self.deviations]}
        Path(path).write_text(json.dumps(parts, indent=1))

    @classmethod
    def read(cls, path):
        """The counts and deviations in a file, if it exists."""
        tally = cls()
        if Path(path).exists():
            parts = json.loads(Path(path).read_text())
            tally.counts.update((name, Counter(counts)) for name, counts in parts["counts"].items())
            tally.deviations = [trial.Outcome(**outcome) for outcome in parts["deviations"]]
        tally.told = len(tally.deviations)
        return tally


def run(cases, seed=0, jobs=2, only=None, progress=None, tally=None):
    """Run cases in separate processes; if one dies, that is a deviation of its current case."""
    tally, context = tally or Tally(), multiprocessing.get_context("spawn" if jobs > 1 else "fork")
    todo, cases, last = context.Queue(), list(cases), time.monotonic()
    for i in range(0, len(cases), CHUNK):
        todo.put(cases[i : i + CHUNK])
    workers = {}
    for _ in range(jobs):
        todo.put(None)
    for number in range(jobs):
        workers[number] = _start(context, seed, only, todo)
    while workers:
        for number, (process, done, state) in list(workers.items()):
            if not _drain(done, state, tally):
                process.join()
                del workers[number]
            elif not process.is_alive() and done.empty():
                case = state["case"]
                name = only or category_of(case, categories())
                message = f"the process died with code {process.exitcode}"
                tally.add(trial.Outcome(name, case, trial.DEVIATES, message))
                workers[number] = _start(context, seed, only, todo)
        if progress and time.monotonic() - last > 10:
            last = time.monotonic()
            progress(tally)
    return tally


def _start(context, seed, only, todo):
    done = context.SimpleQueue()
    process = context.Process(target=_work, args=(seed, only, todo, done), daemon=True)
    process.start()
    return process, done, {"case": None}


def _drain(done, state, tally):
    """Take a report of a worker; False when it has finished."""
    deadline = time.monotonic() + 0.05
    while time.monotonic() < deadline:
        if done.empty():
            time.sleep(0.005)
            continue
        kind, case, outcome = done.get()
        if kind == "bye":
            return False
        if kind == "next":
            state["case"] = case
        else:
            tally.add(outcome)
    return True
