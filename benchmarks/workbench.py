"""The workbench: opening a file, every change, the page in a browser, and many clients at once.

python -m benchmarks.run workbench              the table: 100,000 and 1,000,000 documents of 136 features
python -m benchmarks.workbench --load 600       20 clients for 600 seconds: errors, latency, memory
python -m benchmarks.workbench --page FILE      input to paint in Chromium, as JSON
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.measure import StoppedError, alone, resident
from benchmarks.suites.outofcore import write
from rankrls import RankRLS
from rankrls.app.inputs import documents_of
from rankrls.app.session import Session

BUDGETS = {100_000: 50, 1_000_000: 100}  # milliseconds of a change
ALPHA = 16  # milliseconds of a step of the slider
CHANGES = {  # what is measured, and what it is called in the table
    "alpha": "a step of the alpha slider",
    "drag": "a document dragged above another",
    "grade": "a grade typed",
    "ties": "ties switched",
    "weighting": "weighting switched",
    "gain": "gain switched",
    "regression": "share of regression moved",
    "feature": "a feature switched on or off",
    "sign": "a sign constraint",
    "un-learn": "a query un-learned",
    "hundred": "100 queries un-learned",
}


@dataclass(frozen=True)
class Latency:
    """One line of the table: milliseconds of a median user, of an unlucky one, and where the CPU time goes."""

    what: str
    wall: list[float]  # milliseconds; empty where there is no browser
    page: float | None  # CPU milliseconds of the page's thread
    session: float | None  # CPU milliseconds of the session, without HTTP
    most: float | None  # milliseconds that are good enough
    others: float
    beside: str = ""
    head: ClassVar[list[str]] = ["", "ms", "9 of 10", "CPU of the page", "CPU of the session", "target", "others"]

    def within(self, share: float) -> float | None:
        """The milliseconds that a share of the changes stays within."""
        return float(np.quantile(self.wall, share)) if self.wall else None

    @property
    def missed(self) -> str:
        """What is above the target, in a line; empty if nothing is."""
        middle = self.within(0.5)
        above = middle is not None and self.most is not None and middle > self.most
        return f"{self.what}: {middle:.0f} ms where {self.most:.0f} was aimed at" if above else ""

    def cells(self) -> list[str]:
        shown = lambda value: "" if value is None else f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"
        target = "" if self.most is None else f"<= {self.most:.0f}{self.beside}"
        numbers = (self.within(0.5), self.within(0.9), self.page, self.session)
        return [self.what, *map(shown, numbers), target, f"{self.others:.0%}"]


def workbench(quick: bool) -> Iterator[Latency | str]:
    """From the input to the painted frame, in milliseconds; opening a file compared with a fit."""
    for m in (100_000,) if quick else (100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            path, size = Path(folder, "data.parquet"), f"{m:,} x 136"
            write(path, m, 0)
            found = alone("benchmarks.workbench", "--open", str(path))
            opened, fit = ({kind: 1000 * s for kind, s in found[what].items()} for what in ("open", "fit"))
            what, beside = f"{size} Parquet opened, to the first model", f", a fit of it (CPU {fit['cpu']:.0f})"
            yield Latency(what, [opened["wall"]], None, opened["cpu"], fit["wall"], found["others"], beside)
            session = alone("benchmarks.workbench", "--changes", str(path))["changes"]
            try:
                found = alone("benchmarks.workbench", "--page", str(path), limit=900)
            except StoppedError as stopped:
                yield f"The page was not measured: {stopped}"
                found = {"page": {}, "others": 0.0}
            for name, what in {"nothing": "a key that changes nothing", **CHANGES}.items():
                one = found["page"].get(name, {"wall": [], "cpu": None})
                most = None if name == "nothing" else ALPHA if name == "alpha" else BUDGETS[m]
                yield Latency(f"{what}, {size}", one["wall"], one["cpu"], session.get(name), most, found["others"])


# ---------------------------------------------------------------- the session


def opening(path: str) -> dict[str, dict[str, float]]:
    """Seconds from a file to the first model, and of a fit of the same file: wall and CPU."""
    clock = lambda: {"wall": time.perf_counter(), "cpu": time.process_time()}
    since = lambda before: {kind: value - before[kind] for kind, value in clock().items()}
    start = clock()
    RankRLS().fit(path)
    fit, start = since(start), clock()
    session = Session(documents_of(path))
    session.models.coef(session.state)
    opened = since(start)
    session.close()
    return {"fit": fit, "open": opened}


def changes(session: Session) -> dict[str, Callable[[int], object]]:
    """What is measured: the change with a number that differs each time, and the scores of a query after it."""
    rows = session.documents.queries.rows(3)
    shown = lambda: session.models.scores(session.state, rows)

    def then(action: dict) -> None:
        session.do(action)
        shown()

    def setting(name: str, values: list) -> Callable[[int], object]:
        return lambda k: then({"do": "set", "name": name, "value": values[k % len(values)]})

    path = lambda: session.models.fit(session.state).path
    return {
        "alpha": lambda k: (path().coef(0.1 + k), shown()),
        "drag": lambda k: then({"do": "prefer", "above": int(rows[k]), "below": int(rows[50])}),
        "grade": lambda k: then({"do": "grade", "row": int(rows[k]), "grade": k % 5}),
        "ties": setting("tied_pairs", [True, False]),
        "weighting": setting("weighting", ["pairs", "queries", "items"]),
        "regression": setting("regression", [0.25, 0.5, 0.0]),
        "gain": setting("gain", ["exp2", "linear"]),
        "feature": lambda k: then({"do": "features", ("on" if k % 2 else "off"): [4]}),
        "sign": lambda k: then({"do": "sign", "feature": 7, "sign": [1, -1, 0][k % 3]}),
        "un-learn": lambda k: then({"do": "forget", "queries": [k]}),
        "hundred": lambda k: then({"do": "forget", "queries": list(range(100 * k + 100, 100 * k + 200))}),
    }


def latency(path: str, repeats: int = 7) -> dict[str, float]:
    """CPU milliseconds of each change, the median over repeats."""
    session = Session(documents_of(path))
    while not session.models.prepared:
        time.sleep(0.1)
    found, fresh = {}, itertools.count(50_000)
    for name, change in changes(session).items():
        cpu = []
        for k in range(repeats):
            session.do({"do": "grade", "row": next(fresh), "grade": 3})  # a state that was never solved
            session.models.coef(session.state)
            start = time.thread_time()
            change(k)
            cpu.append(1000 * (time.thread_time() - start))
        found[name] = statistics.median(cpu)
    session.close()
    return found


# ---------------------------------------------------------------- the page


def in_the_page(path: str) -> dict[str, dict[str, Any]]:
    """Milliseconds from the input to the frame that shows it, as the page measures them."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        raise SystemExit("no chromium and chromedriver on this machine")
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from browser import chromium  # type: ignore[import-not-found]
    from page import Page  # type: ignore[import-not-found]

    with (
        tempfile.TemporaryDirectory() as folder,
        _served(folder, path, "--journal", str(Path(folder, "journal.jsonl"))) as (address, _),
        chromium() as browser,
    ):
        while not _state(address)["prepared"]:
            time.sleep(0.3)
        return _used(Page(browser, address, 1440, ready="document.querySelector('.wb-doc')"))


@contextlib.contextmanager
def _served(folder: str, *words: str) -> Iterator[tuple[str, int]]:
    """The workbench in a separate process: its address and process id."""
    command = [sys.executable, "-m", "rankrls", "workbench", *words, "--no-browser", "--quiet", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert server.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = server.stdout.readline()
            if not line:
                raise SystemExit("the workbench did not start")
            text += line
        yield json.loads(text)["url"], server.pid
    finally:
        server.terminate()
        server.wait(60)


def _state(address: str) -> dict:
    with urllib.request.urlopen(address.replace("/?", "/api/state?"), timeout=60) as answer:
        return json.load(answer)


APP = "document.querySelector('.wb').workbench"
IDLE = (  # a key that changes a line of text: what input to paint costs with nothing to do
    f"(() => {{ const app = {APP}; app.timings.idle = []; document.addEventListener('keydown', (event) => {{"
    " if (event.key !== 'F9') return; app.live.textContent = event.timeStamp; app.time('idle', event.timeStamp);"
    " }); })()"
)


class Used:
    """The page in use: milliseconds from input to paint, and CPU milliseconds of its thread."""

    def __init__(self, page):  # type: ignore[no-untyped-def]
        self.page, self.found = page, {}
        page.browser.command("Performance.enable", timeDomain="threadTicks")
        page.ask(IDLE)

    def cpu(self) -> float:
        metrics = self.page.browser.command("Performance.getMetrics")["metrics"]
        return 1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    def note(self, name: str, kind: str, acts: list[Callable[[], object]]) -> None:
        """Do things at the pace of a quick user; record what the page measures, and its CPU time for each."""
        wall, cpu = [], []
        for act in acts:
            before, start = self.page.app(f"timings.{kind}.length"), self.cpu()
            act()
            self.page.until(f"{APP}.timings.{kind}.length >= {before + 1}")
            time.sleep(0.05)
            new = self.page.app(f"timings.{kind}.slice({before})")
            wall += new
            cpu.append((self.cpu() - start) / len(new))
            time.sleep(0.25)
        self.found[name] = {"wall": wall, "cpu": statistics.median(cpu)}


def _used(page) -> dict[str, dict[str, Any]]:  # type: ignore[no-untyped-def]
    used = Used(page)

    def slide() -> None:
        x, y = page.centre(".wb-curve .wb-slider")
        page.mouse("mousePressed", x, y, clickCount=1)
        for step, pause in enumerate(np.random.default_rng(0).uniform(0.01, 0.04, 60)):
            page.mouse("mouseMoved", x + 2 * step, y)
            time.sleep(pause)  # a hand is not in step with the screen
        page.mouse("mouseReleased", x + 118, y, clickCount=1)

    def drag(k: int) -> None:
        rows = page.rows()
        grip = lambda row: page.centre(f"[data-row='{row}'] .wb-grip")
        page.drag(grip(rows[6 + k % 3]), grip(rows[1]), steps=4)

    def pick() -> None:
        hundred = "Array.from({ length: 100 }, (_, i) => i + 1)"
        page.ask(f"void ({APP}.queryList.picked = new Set({hundred}), {APP}.queryList.drawPicked())")
        page.click(".wb-pick .wb-small")

    key = lambda name: lambda: page.press(name)
    click = lambda selector: lambda: page.click(selector)
    switch = lambda name, values: [click(f'[data-setting="{name}:{value}"]') for value in values]
    used.note("nothing", "idle", [key("F9")] * 9)
    used.note("alpha", "alpha", [slide])
    used.note("drag", "change", [lambda k=k: drag(k) for k in range(9)])
    used.note("grade", "change", [key(str(k % 5)) for k in range(9)])
    used.note("ties", "change", switch("tied_pairs", ("true", "false") * 5))
    used.note("weighting", "change", switch("weighting", ("queries", "pairs", "items") * 3))
    used.note("gain", "change", switch("gain", ("exp2", "linear") * 5))
    page.ask("document.querySelector('[data-setting=regression]').focus()")
    used.note("regression", "change", [key("ArrowRight")] * 9)
    page.ask("document.querySelector('.wb-feature-box').scrollIntoView({block: 'center'})")
    used.note("feature", "change", [click(".wb-feature .wb-switch")] * 10)
    used.note("sign", "change", [click(".wb-feature .wb-sign")] * 9)
    page.ask("document.activeElement.blur()")
    used.note("un-learn", "change", [key("x")] * 10)
    used.note("hundred", "change", [pick] + [key("u"), pick] * 2)
    return used.found


# ---------------------------------------------------------------- many clients


def load(seconds: float, clients: int = 20) -> dict[str, float]:
    """Clients that read and change one session; errors, latency, and the memory of the server along the way."""
    with tempfile.TemporaryDirectory() as folder, _served(folder, "--demo") as (address, process):
        used = Clients(address, seconds, clients)
        used.start()
        memory = []
        while not used.over:
            time.sleep(min(30, seconds / 20))
            memory.append(resident(process))
            print(f"  {used.elapsed:4.0f} s: {memory[-1]:.1f} MB, {used.count:,} requests", file=sys.stderr)
        used.join()
    early, late = memory[len(memory) // 6], memory[-1]
    middle, high = used.quantile(0.5), used.quantile(0.99)
    print(f"{clients} clients, {seconds:g} s: {used.count:,} requests, {len(used.errors)} errors {used.errors[:3]}")
    print(f"  {used.changes:,} changes; median {middle:.0f} ms, 99 % {high:.0f} ms")
    print(f"  memory of the server after a sixth {early:.1f} MB, at the end {late:.1f} MB, most {max(memory):.1f} MB")
    return {"requests": used.count, "errors": len(used.errors), "early": early, "late": late}


class Clients:
    """Threads that send requests of all kinds to one server, and now and then grade a document."""

    def __init__(self, address: str, seconds: float, count: int):
        self.root, self.token = address.split("/?token=")
        self.state = _state(address)
        self.began, self.seconds = time.monotonic(), seconds
        self.times, self.errors, self.changes, self.lock = array("d"), [], 0, threading.Lock()
        self.threads = [threading.Thread(target=self._work, args=(seed,)) for seed in range(count)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    @property
    def over(self) -> bool:
        return self.elapsed >= self.seconds

    @property
    def count(self) -> int:
        return len(self.times)

    def quantile(self, share: float) -> float:
        """Milliseconds."""
        return 1000 * float(np.quantile(np.frombuffer(self.times), share))

    def _work(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        while not self.over:
            query, row = int(rng.integers(self.state["queries"])), int(rng.integers(self.state["rows"]))
            self._ask(f"query?query={query}")
            self._ask(["state", "model", "queries", "curve"][int(rng.integers(4))])
            if rng.random() < 0.2:
                self._ask(f"do?query={query}", {"do": "grade", "row": row, "grade": int(rng.integers(5))})
                with self.lock:
                    self.changes += 1
            time.sleep(0.2 * rng.random())

    def _ask(self, path: str, body: dict | None = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        start = time.perf_counter()
        try:
            request = urllib.request.Request(f"{self.root}/api/{path}", data, {"X-Token": self.token})
            with urllib.request.urlopen(request, timeout=60) as got:
                got.read()
        except Exception as error:
            with self.lock:
                self.errors.append(f"{path}: {error}")
        with self.lock:
            self.times.append(time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", type=float, metavar="SECONDS")
    parser.add_argument("--open", metavar="FILE")
    parser.add_argument("--changes", metavar="FILE")
    parser.add_argument("--page", metavar="FILE")
    args = parser.parse_args()
    if args.load:
        load(args.load)
    elif args.open:
        print(json.dumps(opening(args.open)))
    elif args.changes:
        print(json.dumps({"changes": latency(args.changes)}))
    elif args.page:
        print(json.dumps({"page": in_the_page(args.page)}))
    else:
        parser.error("python -m benchmarks.run workbench makes the table")


if __name__ == "__main__":
    main()
