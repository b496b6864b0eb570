"""A relation of 68 x 442 objects with the threads that are chosen and with one, on a quiet machine and on a busy one.

python -m benchmarks.run threads          the table
python -m benchmarks.threads --fit        one fit in this process, as JSON

BLAS threads spin while they wait for one another, so on a busy machine many small products can take far longer with
several threads than with one. The library should choose one thread for these by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Measured, Row, alone
from rankrls import ConditionalRankRLS

SHAPE = (68, 442)  # drugs and targets of Davis et al.
SHARE = 0.8  # of the relation that is known
LOAD = 2  # busy processes for each core


def threads(quick: bool) -> Iterator[Row | str]:
    """A relation of 68 x 442 objects, four fifths known: threads as chosen beside one thread."""
    for busy in (0, LOAD * (os.cpu_count() or 1)):
        with _busy(busy):
            one = alone("benchmarks.threads", "--fit", environment={"OMP_NUM_THREADS": "1"})
            chosen = alone("benchmarks.threads", "--fit")
        where = f"beside {busy} busy processes" if busy else "quiet"
        cpu = chosen["cpu"]
        measured = Measured(chosen["wall"], chosen["megabytes"], chosen["wall"] / one["wall"], chosen["others"])
        yield Row(f"alpha of 68 x 442, {where} ({cpu:.1f} s CPU)", measured, "one thread", "<= 1.5x")


def fit() -> dict[str, float]:
    """Seconds of one fit with alpha chosen by hold-out."""
    from benchmarks.measure import resident

    rng = np.random.default_rng(0)
    U, V = (rng.normal(size=(size, 20)) for size in SHAPE)
    Y = U @ rng.normal(size=(20, 20)) @ V.T + rng.normal(size=SHAPE)
    Y[rng.random(SHAPE) > SHARE] = np.nan
    before, wall, cpu = resident(), time.perf_counter(), time.process_time()
    ConditionalRankRLS(kernel="rbf", target_kernel="rbf").fit(U, Y, V)
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return {**seconds, "megabytes": resident() - before}


@contextlib.contextmanager
def _busy(count: int) -> Iterator[None]:
    """Other processes that want the cores."""
    processes = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _spin() -> None:
    while True:
        sum(range(100_000))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fit", action="store_true", required=True)
    parser.parse_args()
    print(json.dumps(fit()))


if __name__ == "__main__":
    main()
