"""Rows that stay on disk: RankRLS on Parquet beside the bare read of the same files.

    python -m benchmarks.outofcore {read,one,auto} PATH

runs one of them in a process of its own, whose anonymous memory (what is not a page of a file) is watched.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.measure import Measured, Row, alone, measure
from rankrls import RankRLS, metrics

FEATURES, DOCUMENTS = 136, 100
TASKS: dict[str, Callable[[str], object]] = {}


def outofcore(quick: bool) -> Iterator[Row | str]:
    """Parquet files beside the bare read of them; extra MB is anonymous memory."""
    yield from _precision(100_000 if quick else 1_000_000)
    for parts in (1,) if quick else (1, 10):
        with tempfile.TemporaryDirectory() as folder:
            for part in range(parts):
                write(Path(folder) / f"part-{part}.parquet", 1_000_000, part)
            yield from _fits(Path(folder), parts * 1_000_000)
    yield "Files had just been written, so most of what was read came from the page cache."


def _fits(folder: Path, m: int) -> Iterator[Row]:
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
    read = _measured("read", folder)
    yield Row(f"pyarrow iter_batches, {m:,} x {FEATURES} float32 ({size:.1f} GB)", read)
    for task, what, target in (
        ("one", "RankRLS(alpha=1)", "one pass"),
        ("auto", 'RankRLS(alpha="auto")', "two passes"),
    ):
        found = _measured(task, folder)
        beside = replace(found, ratio=found.seconds / read.seconds)
        yield Row(f"{what}.fit(folder)", beside, "the bare read", target)


def _measured(task: str, folder: Path) -> Measured:
    found = alone("benchmarks.outofcore", task, str(folder))
    return Measured(found["seconds"], found["megabytes"], None, found["others"])


def _precision(m: int) -> Iterator[Row]:
    """The same rows in float64 and rounded to float32, in memory: what the rounding costs and saves."""
    X, y, qid = block(m + 100_000, seed=0)
    rows = {"double": X[:m], "single": X[:m].astype(np.float32)}
    for name, params in (("RankRLS(alpha=1)", {"alpha": 1.0}), ('RankRLS(alpha="auto")', {})):
        fit = lambda which: lambda: RankRLS(**params).fit(rows[which], y[:m], qid=qid[:m])  # noqa: B023
        found = measure(fit("single"), 3, fit("double"))
        models = [fit(which)() for which in rows]
        coef, rounded = (model.coef_ for model in models)
        error = np.linalg.norm(rounded - coef) / np.linalg.norm(coef)
        scores = np.column_stack([model.predict(X[m:]) for model in models])
        exact, other = metrics.ndcg(y[m:], scores, qid[m:], k=10)
        text = f"coef_ differs by {error:.1e} of its norm, NDCG@10 by {abs(other - exact):.1e}"
        yield Row(f"{name}, {m:,} x {FEATURES} in memory, float32", found, "float64", text)


def block(m: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the same linear signal for every seed, queries of 100 documents."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, FEATURES))
    signal = X @ np.random.default_rng(0).normal(size=FEATURES) / np.sqrt(FEATURES)
    y = np.clip(np.round(signal + rng.normal(size=m) + 1), 0, 4)
    return X, y, seed * (m // DOCUMENTS + 1) + np.arange(m) // DOCUMENTS


def write(path: Path, m: int, seed: int) -> None:
    """A Parquet file of float32 columns, 100,000 rows at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    names = ["y", "qid", *(f"f{j}" for j in range(FEATURES))]
    rows, writer = 100_000, None
    for number in range(-(-m // rows)):
        X, y, qid = block(min(rows, m - number * rows), seed * 1_000 + number)
        arrays = [pa.array(column) for column in (y.astype(np.float32), qid, *X.T.astype(np.float32))]
        table = pa.table(arrays, names=names)
        writer = writer or parquet.ParquetWriter(path, table.schema, compression="none", use_dictionary=False)
        writer.write_table(table)
    if writer:
        writer.close()


# ---------------------------------------------------------------- the process


def task(call: Callable[[str], object]) -> Callable[[str], object]:
    TASKS[call.__name__] = call
    return call


@task
def read(folder: str) -> None:
    from pyarrow import parquet

    for path in sorted(Path(folder).glob("*.parquet")):
        for _ in parquet.ParquetFile(path).iter_batches():
            pass


@task
def one(folder: str) -> object:
    return RankRLS(1.0).fit(folder)


@task
def auto(folder: str) -> object:
    return RankRLS().fit(folder)


def anonymous() -> float:
    """Resident memory of this process in MB that is no page of a file (zero where the system does not tell)."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) * 1024 / 1e6
    except OSError:
        return 0.0


def main() -> None:
    import pyarrow.dataset  # noqa: F401  what is imported does not count

    name, folder = sys.argv[1:]
    before, peak, done = anonymous(), 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.01):
            peak = max(peak, anonymous())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start = time.perf_counter()
    TASKS[name](folder)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    print(json.dumps({"seconds": seconds, "megabytes": max(0.0, peak - before)}))


if __name__ == "__main__":
    main()
