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
from pathlib import Path

import numpy as np

from benchmarks.measure import Measured, Row, StoppedError, alone, resident
from benchmarks.outofcore import write
from rankrls import RankRLS
from rankrls.app.inputs import documents_of
from rankrls.app.session import Session

BUDGETS = {100_000: 50, 1_000_000: 100}  # milliseconds of a change
ALPHA = 16  # milliseconds of a step of the slider


def workbench(quick: bool) -> Iterator[Row | str]:
    """Opening beside a fit, changes in CPU seconds of the session, and input to paint in the page."""
    for m in (100_000,) if quick else (100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            path, size = Path(folder, "data.parquet"), f"{m:,} x 136"
            write(path, m, 0)
            found = alone("benchmarks.workbench", "--open", str(path))
            opened = Measured(found["open"], found["megabytes"], found["open"] / found["fit"], found["others"])
            yield Row(f"open {size} Parquet, to the first model (CPU)", opened, "RankRLS().fit(file)", "<= 1x")
            found = alone("benchmarks.workbench", "--changes", str(path))
            for name, cpu in found["changes"].items():
                most = ALPHA if name == "alpha" else BUDGETS[m]
                measured = Measured(cpu / 1000, 0, None, found["others"])
                yield Row(f"{name}, {size} (CPU of the session)", measured, "", f"<= {most} ms")
            try:
                found = alone("benchmarks.workbench", "--page", str(path), limit=600)
            except StoppedError as stopped:
                yield f"The page was not measured: {stopped}"
                continue
            idle = found["page"].pop("nothing")
            for name, one in found["page"].items():
                most = ALPHA if name == "alpha" else BUDGETS[m]
                measured = Measured(one["wall"] / 1000, 0, one["wall"] / idle["wall"], found["others"])
                what = f"{name}, {size} (input to paint; {one['cpu']:.0f} ms CPU in the page)"
                yield Row(what, measured, "a frame with nothing to do", f"<= {most} ms")


# ---------------------------------------------------------------- the session


def opening(path: str) -> dict[str, float]:
    """CPU seconds from a file to the first model, and of a fit of the same file."""
    start, before = time.process_time(), resident()
    RankRLS().fit(path)
    fitted = time.process_time()
    session = Session(documents_of(path))
    session.coef(session.state)
    opened = time.process_time()
    session.close()
    return {"fit": fitted - start, "open": opened - fitted, "megabytes": resident() - before}


def changes(session: Session) -> dict[str, Callable[[int], object]]:
    """What is measured: the change with a number that differs each time, and the scores of a query after it."""
    rows = session.documents.queries.rows(3)
    shown = lambda: session.scores(session.state, rows)

    def then(action: dict) -> None:
        session.do(action)
        shown()

    def setting(name: str, values: list) -> Callable[[int], object]:
        return lambda k: then({"do": "set", "name": name, "value": values[k % len(values)]})

    path = lambda: session.fit(session.state).path
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
        "100 queries un-learned": lambda k: then(
            {"do": "forget", "queries": list(range(100 * k + 100, 100 * k + 200))}
        ),
    }


def latency(path: str, repeats: int = 7) -> dict[str, float]:
    """CPU milliseconds of each change, the median over repeats."""
    session = Session(documents_of(path))
    while not session.prepared:
        time.sleep(0.1)
    found, fresh = {}, itertools.count(50_000)
    for name, change in changes(session).items():
        cpu = []
        for k in range(repeats):
            session.do({"do": "grade", "row": next(fresh), "grade": 3})  # a state that was never solved
            session.coef(session.state)
            start = time.thread_time()
            change(k)
            cpu.append(1000 * (time.thread_time() - start))
        found[name] = statistics.median(cpu)
    session.close()
    return found


# ---------------------------------------------------------------- the page


def in_the_page(path: str) -> dict[str, dict[str, float]]:
    """Milliseconds from the input to the frame that shows it, as the page measures them: medians."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        raise SystemExit("no chromium and chromedriver on this machine")
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from browser import chromium  # type: ignore[import-not-found]
    from page import Page  # type: ignore[import-not-found]

    with _served(str(Path(path).parent), path) as (address, _), chromium() as browser:
        while not _state(address)["prepared"]:
            time.sleep(0.3)
        return _used(Page(browser, address, 1440, ready="document.querySelector('.wb-doc')"))


@contextlib.contextmanager
def _served(folder: str, *words: str) -> Iterator[tuple[str, int]]:
    """The workbench in a process of its own: its address and the number of the process."""
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

    def note(self, name: str, kind: str, acts: list[Callable[[], object]], steps: int = 1) -> None:
        """Do things, each of which draws a number of frames; keep the medians."""
        wall, cpu = [], []
        for act in acts:
            before, start = self.page.app(f"timings.{kind}.length"), self.cpu()
            act()
            self.page.until(f"{APP}.timings.{kind}.length >= {before + 1}")
            time.sleep(0.05)
            new = self.page.app(f"timings.{kind}.slice({before})")
            wall += new
            cpu.append((self.cpu() - start) / (len(new) if steps > 1 else 1))
        self.found[name] = {"wall": statistics.median(wall), "cpu": statistics.median(cpu)}


def _used(page) -> dict[str, dict[str, float]]:  # type: ignore[no-untyped-def]
    used = Used(page)

    def slide() -> None:
        x, y = page.centre(".wb-curve .wb-slider")
        page.mouse("mousePressed", x, y, clickCount=1)
        for step in range(40):
            page.mouse("mouseMoved", x + 3 * step, y)
            time.sleep(0.01)
        page.mouse("mouseReleased", x + 117, y, clickCount=1)

    def drag(k: int) -> None:
        rows = page.rows()
        grip = lambda row: page.centre(f"[data-row='{row}'] .wb-grip")
        page.drag(grip(rows[6 + k % 3]), grip(rows[1]), steps=4)

    click = lambda selector: lambda: page.click(selector)
    used.note("nothing", "idle", [lambda: page.press("F9")] * 9)
    used.note("alpha", "alpha", [slide], steps=40)
    used.note("drag", "change", [lambda k=k: drag(k) for k in range(5)])
    for name, values in (
        ("tied_pairs", ("true", "false")),
        ("weighting", ("queries", "pairs", "items")),
        ("gain", ("exp2", "linear")),
    ):
        used.note(name, "change", [click(f'[data-setting="{name}:{value}"]') for value in values])
    page.ask("document.querySelector('.wb-feature-box').scrollIntoView({block: 'center'})")
    used.note("feature", "change", [click(".wb-feature .wb-switch")] * 4)
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
    """Threads that ask one server for this and that, and now and then grade a document."""

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
