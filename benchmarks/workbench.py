"""The workbench: time of a change, and many clients at once.

python -m benchmarks.workbench                       milliseconds of each change, 100,000 x 136
python -m benchmarks.workbench --load 600            20 clients for 600 seconds: errors, latency, memory
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable

import numpy as np

from rankrls.app.demo import demo
from rankrls.app.documents import Documents, documents
from rankrls.app.session import Session
from rankrls.app.sums import KEYS
from rankrls.datasets import RankingData

BUDGETS = {"alpha": 16.0, "change": 50.0}  # milliseconds


def generated(m: int, n: int, length: int = 100) -> Documents:
    """Random documents with grades 0 to 4."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    y = np.clip(np.round(X @ rng.normal(size=n) / n**0.5 + rng.normal(size=m)), 0, 4)
    return documents(RankingData(X, y, np.arange(m) // length))


def changes(session: Session) -> dict[str, tuple[str, Callable[[int], None]]]:
    """What is measured: its budget, and the change with a number that differs each time."""
    rows = session.documents.queries.rows(3)
    do, shown = session.do, lambda: session.scores(session.state, rows)

    def then(action: dict) -> None:
        do(action)
        shown()

    def setting(name: str, values: list) -> Callable[[int], None]:
        return lambda k: then({"do": "set", "name": name, "value": values[k % len(values)]})

    path = lambda: session.fit(session.state).path
    switch = lambda k: then({"do": "features", ("on" if k % 2 else "off"): [4]})
    return {
        "alpha, scores of a query": ("alpha", lambda k: (path().coef(0.1 + k), shown())[0]),
        "drag": ("change", lambda k: then({"do": "prefer", "above": int(rows[k]), "below": int(rows[50])})),
        "grade": ("change", lambda k: then({"do": "grade", "row": int(rows[k]), "grade": k % 5})),
        "ties": ("change", setting("tied_pairs", [True, False])),
        "weighting": ("change", setting("weighting", ["pairs", "queries", "items"])),
        "regression": ("change", setting("regression", [0.25, 0.5, 0.0])),
        "gain": ("change", setting("gain", ["exp2", "linear"])),
        "feature": ("change", switch),
        "sign": ("change", lambda k: then({"do": "sign", "feature": 7, "sign": [1, -1, 0][k % 3]})),
    }


def latency(m: int, n: int, repeats: int = 9) -> list[dict]:
    """CPU and wall milliseconds of each change, the median over repeats."""
    start = time.perf_counter()
    session = Session(generated(m, n))
    session.coef(session.state)
    opened = time.perf_counter() - start
    while not all(session.sums.known(key) for key in KEYS):
        time.sleep(0.1)
    lines, fresh = [], itertools.count(5000)
    for name, (budget, change) in changes(session).items():
        cpu, wall = [], []
        for k in range(repeats):
            session.do({"do": "grade", "row": next(fresh), "grade": 3})  # a state that was never solved
            session.coef(session.state)
            at = time.thread_time(), time.perf_counter()
            change(k)
            cpu.append(1000 * (time.thread_time() - at[0]))
            wall.append(1000 * (time.perf_counter() - at[1]))
            time.sleep(0.02)
        lines.append({"change": name, "cpu": statistics.median(cpu), "wall": statistics.median(wall), "budget": budget})
    session.close()
    print(f"{m:,} x {n}: open to the first model {opened:.2f} s")
    for line in lines:
        most = BUDGETS[line["budget"]]
        print(f"  {line['change']:<26} {line['cpu']:7.1f} ms CPU {line['wall']:8.1f} ms wall   budget {most:g}")
    return lines


def memory() -> float:
    """Megabytes of this process now."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def load(seconds: float, clients: int = 20) -> dict:
    """Clients that read and change one session; errors, latency, and memory at the beginning and at the end."""
    from rankrls.app.server import Server

    server = Server(Session(demo())).start()
    root, token = server.url.split("/?token=")
    end, times, errors, lock = time.monotonic() + seconds, [], [], threading.Lock()

    def ask(path: str, body: dict | None = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        start = time.perf_counter()
        try:
            with urllib.request.urlopen(
                urllib.request.Request(f"{root}/api/{path}", data, {"X-Token": token}), timeout=60
            ) as got:
                got.read()
        except Exception as error:
            with lock:
                errors.append(f"{path}: {error}")
        with lock:
            times.append(time.perf_counter() - start)

    def client(seed: int) -> None:
        rng = np.random.default_rng(seed)
        while time.monotonic() < end:
            query = int(rng.integers(server.session.limits.queries))
            row = int(rng.integers(server.session.limits.rows))
            ask(f"query?query={query}")
            ask(["state", "model", "queries", "curve"][int(rng.integers(4))])
            if rng.random() < 0.2:
                ask("do", {"do": "grade", "row": row, "grade": int(rng.integers(5))})
            time.sleep(0.2 * rng.random())

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(min(20, seconds / 3))
    early = memory()
    for thread in threads:
        thread.join()
    late = memory()
    server.close()
    middle, high = (1000 * float(np.quantile(times, q)) for q in (0.5, 0.99))
    print(f"{clients} clients, {seconds:g} s: {len(times):,} requests, {len(errors)} errors {errors[:3]}")
    print(f"  median {middle:.0f} ms, 99 % {high:.0f} ms; memory {early:.0f} MB, at the end {late:.0f} MB")
    return {"requests": len(times), "errors": len(errors), "early": early, "late": late}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", type=float, metavar="SECONDS")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=136)
    args = parser.parse_args()
    if args.load:
        load(args.load)
    else:
        latency(args.rows, args.features)


if __name__ == "__main__":
    main()
