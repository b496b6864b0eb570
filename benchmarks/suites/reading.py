"""LETOR text: the reader compared with scikit-learn's, and `rankrls train` compared with the reader."""

from __future__ import annotations

import compileall
import gzip
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import rankrls
from benchmarks.measure import Row, in_turn, measure, of_process
from rankrls.core.fused import compiled_code
from rankrls.datasets import RankingData, dump_letor, iter_letor, load_letor

SKLEARN = "sklearn load_svmlight_file"


def reading(quick: bool) -> Iterator[Row]:
    """LETOR text: the whole file, in blocks, and learned from on the command line."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _readers(Path(folder), 5_000 if quick else 20_000)
    with tempfile.TemporaryDirectory() as folder:
        yield from _training(Path(folder), 50 if quick else 500)


def _readers(folder: Path, m: int) -> Iterator[Row]:
    """46 features, as in MQ2008."""
    fixed, shortest, packed, again = (folder / name for name in ("fixed.txt", "shortest.txt", "packed.txt.gz", "again"))
    write_letor(fixed, m, 46, comments=True)
    rng = np.random.default_rng(0)
    data = RankingData(rng.normal(size=(m, 46)), rng.integers(0, 3, m).astype(float), np.arange(m) // 20)
    dump_letor(data, shortest)
    packed.write_bytes(gzip.compress(fixed.read_bytes(), 6))
    theirs = lambda path, qid=True: lambda: load_svmlight_file(str(path), query_id=qid)
    ours = lambda path, **options: lambda: load_letor(path, **options)
    blocks = lambda: [len(block) for block in iter_letor(fixed, rows=5_000)]
    what, n, most = f"load_letor, {m:,} rows, six decimals", 7, 0.125
    yield Row(what, measure(ours(fixed), n, theirs(fixed)), SKLEARN, most=most)
    without = f"{SKLEARN} without query ids"
    yield Row("load_letor", measure(ours(fixed), n, theirs(fixed, False)), without)
    yield Row("the same, sparse", measure(ours(fixed, sparse=True), n, theirs(fixed)), SKLEARN, most=most)
    yield Row("iter_letor, 5,000 rows at a time", measure(blocks, n, theirs(fixed)), SKLEARN, "<= 200 MB", most)
    with compiled_code(True):
        ours(fixed)()  # loads it
        for name, call in {what: ours(fixed), "the same, sparse": ours(fixed, sparse=True)}.items():
            yield Row(f"{name}, compiled code loaded", measure(call, n, theirs(fixed)), SKLEARN, most=most)
        name = "load_letor, shortest decimals (17 digits), compiled code loaded"
        yield Row(name, measure(ours(shortest), 3, theirs(shortest)), SKLEARN)
    yield Row("load_letor, gzip", measure(ours(packed), 3, theirs(packed)), SKLEARN)
    yield Row("load_letor, shortest decimals (17 digits)", measure(ours(shortest), 3, theirs(shortest)), SKLEARN)
    yield Row(SKLEARN, measure(theirs(fixed), 3))
    dump = lambda: dump_svmlight_file(data.X, data.y, str(again), query_id=data.qid, zero_based=False)
    yield Row("dump_letor", measure(lambda: dump_letor(data, again), 1, dump), "sklearn dump_svmlight_file")


def _training(folder: Path, megabytes: int) -> Iterator[Row]:
    """Whole processes, imports included; extra MB is their peak memory.

    Sources are compiled first, as pip does when it installs: else every process does, if it may not write beside them.
    """
    compileall.compile_dir(Path(rankrls.__file__).parent, quiet=2)
    path, model = folder / "train.txt", folder / "model.rankrls"
    m = write_letor(path, megabytes * 700, 136)
    size = path.stat().st_size / 1e6
    train = ("-m", "rankrls", "train", str(path), "-o", str(model))
    read = ("-c", f"from rankrls.datasets import load_letor; load_letor({str(path)!r})")
    runs = {
        f"load_letor in a process of its own, {size:,.0f} MB, {m:,} x 136": read,
        "rankrls train, alpha chosen": train,
        "rankrls train --alpha 1": (*train, "--alpha", "1"),
        "rankrls train --stream": (*train, "--stream"),
    }
    calls = {name: lambda arguments=arguments: of_process(*arguments) for name, arguments in runs.items()}
    for number, (name, found) in enumerate(in_turn(calls, 3).items()):
        beside, target = ("the bare reader", "at the speed of the reader") if number else ("itself", "")
        yield Row(name, found, beside, target)


def write_letor(path: Path, m: int, n: int, comments: bool = False) -> int:
    """Write m rows of n features with six decimals, some of them zero; features repeat after 5,000 rows."""
    rng = np.random.default_rng(0)
    some = min(m, 5_000)
    X = np.round(rng.random((some, n)) * (rng.random((some, n)) < 0.6), 6)
    grades = np.clip(np.round(4 * X[:, :5].mean(axis=1) + rng.normal(size=some)), 0, 4).astype(int)
    layout = " ".join(f"{j}:%.6f" for j in range(1, n + 1))
    texts = [layout % tuple(row) for row in X]
    with open(path, "w") as file:
        for i in range(m):
            note = f" #docid = GX{i:09d} inc = 1 prob = 0.086622" if comments else ""
            file.write(f"{grades[i % some]} qid:{i // 20} {texts[i % some]}{note}\n")
    return m
