"""Rows that stay on disk: RankRLS on Parquet, compared with the bare read of the same files.

    python -m benchmarks.suites.outofcore {read,one,auto} PATH

runs one of them in a separate process whose anonymous memory (pages that are not of files) is watched.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.exponent import exponent
from benchmarks.measure import Measured, Row, alone, anonymous, in_turn, itself, measure, told
from rankrls import RankRLS, metrics

FEATURES, DOCUMENTS, PART = 136, 100, 1_000_000
FEW = 2  # columns of files with very many rows
FITS = {"one": "RankRLS(alpha=1).fit(folder)", "auto": 'RankRLS(alpha="auto").fit(folder)'}
TASKS: dict[str, Callable[[str], object]] = {}


def outofcore(quick: bool) -> Iterator[Row | str]:
    """Parquet files beside the bare read of them; extra MB is anonymous memory."""
    yield from _precision(100_000 if quick else 1_000_000)
    for parts in (1,) if quick else (1, 10):
        with tempfile.TemporaryDirectory() as folder:
            write_parts(Path(folder), parts)
            yield from _beside_the_read(Path(folder), parts * PART, 3)
    yield from _scattered(1 if quick else 2)
    yield from _many_rows([1, 2, 4] if quick else [12.5, 25, 50, 100])
    yield "Files had just been written, so most of what was read came from the page cache."


def _beside_the_read(folder: Path, m: int, repeat: int) -> Iterator[Row]:
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
    found = in_turn({task: lambda task=task: _measured(task, folder) for task in ("read", *FITS)}, repeat)
    yield Row(f"pyarrow iter_batches, {m:,} x {FEATURES} float32 ({size:.1f} GB)", found["read"], "itself")
    for task, most in (("one", 1.4), ("auto", 3.5)):
        yield Row(FITS[task], found[task], "the bare read", most=most)


def _scattered(parts: int) -> Iterator[Row]:
    """Files with the rows of each query one after the other, and scattered over the files."""
    with tempfile.TemporaryDirectory() as in_order, tempfile.TemporaryDirectory() as anywhere:
        write_parts(Path(in_order), parts)
        write_parts(Path(anywhere), parts, scattered=True)
        for task, what in FITS.items():
            runs = {"sorted": in_order, "scattered": anywhere}
            calls = {name: lambda folder=folder, task=task: _measured(task, folder) for name, folder in runs.items()}
            found = in_turn(calls, 2)["scattered"]
            yield Row(f"{what}, {parts * PART:,} rows, queries scattered", found, "rows sorted by query", most=2.0)


def _many_rows(millions: list[float]) -> Iterator[Row | str]:
    """Seconds per row as rows double, with so few columns that only the work on rows remains."""
    found: dict[str, dict[int, Measured]] = {task: {} for task in FITS}
    with tempfile.TemporaryDirectory() as folder:
        written = 0
        for size in millions:
            parts = round(size * 2)  # of half a million rows
            for part in range(written, parts):
                write(Path(folder) / f"part-{part:03d}.parquet", PART // 2, part, FEW)
            written = parts
            for task, what in FITS.items():
                m = parts * PART // 2
                measured = found[task][m] = _measured(task, Path(folder))
                each = [one.seconds / rows for rows, one in found[task].items()]
                text = f"{what}, {m:,} x {FEW} float32: {each[-1] * 1e9:.0f} ns a row"
                growth = replace(measured, ratio=each[-1] / each[0])
                yield Row(text, growth, "the seconds a row of the first size", most=1.1)
    for task, what in FITS.items():
        power = exponent(list(found[task]), [one.seconds for one in found[task].values()])
        yield f"{what}, {FEW} columns: seconds grow as rows to the power {power:.2f}."


def _measured(task: str, folder: Path | str) -> Measured:
    return told(alone("benchmarks.suites.outofcore", task, str(folder)))


def _precision(m: int) -> Iterator[Row]:
    """The same rows in float64 and rounded to float32, in memory: what the rounding costs and saves."""
    X, y, qid = block(m + 100_000, seed=0)
    rows = {"double": X[:m], "single": X[:m].astype(np.float32)}
    for name, params in (("RankRLS(alpha=1)", {"alpha": 1.0}), ('RankRLS(alpha="auto")', {})):
        fit = lambda which, params=params: lambda: RankRLS(**params).fit(rows[which], y[:m], qid=qid[:m])
        found = measure(fit("single"), 3, fit("double"))
        models = [fit(which)() for which in rows]
        coef, rounded = (model.coef_ for model in models)
        error = np.linalg.norm(rounded - coef) / np.linalg.norm(coef)
        scores = np.column_stack([model.predict(X[m:]) for model in models])
        exact, other = metrics.ndcg(y[m:], scores, qid[m:], k=10)
        text = f"coef_ differs by {error:.1e} of its norm, NDCG@10 by {abs(other - exact):.1e}"
        yield Row(f"{name}, {m:,} x {FEATURES} in memory, float32", found, "float64", text)


# ---------------------------------------------------------------- the files


def block(m: int, seed: int, n: int = FEATURES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with the same linear signal for every seed, in queries of 100 documents."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    signal = X @ np.random.default_rng(0).normal(size=n) / np.sqrt(n)
    y = np.clip(np.round(signal + rng.normal(size=m) + 1), 0, 4)
    return X, y, seed * (m // DOCUMENTS + 1) + np.arange(m) // DOCUMENTS


def write_parts(folder: Path, parts: int, scattered: bool = False) -> None:
    """Files of a million rows each; if scattered, each row belongs to a random query."""
    queries = parts * PART // DOCUMENTS
    for part in range(parts):
        write(folder / f"part-{part}.parquet", PART, part, queries=queries if scattered else None)


def write(path: Path, m: int, seed: int, n: int = FEATURES, queries: int | None = None) -> None:
    """A Parquet file of float32 columns, 100,000 rows at a time; `queries`: this many, scattered."""
    import pyarrow as pa
    from pyarrow import parquet

    names = ["y", "qid", *(f"f{j}" for j in range(n))]
    rows, writer = 100_000, None
    for number in range(-(-m // rows)):
        X, y, qid = block(min(rows, m - number * rows), seed * 1_000 + number, n)
        if queries is not None:
            qid = np.random.default_rng([seed, number]).integers(0, queries, len(qid))
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


def main() -> None:
    import pyarrow.dataset  # noqa: F401  what is imported does not count

    name, folder = sys.argv[1:]
    print(json.dumps(itself(lambda: TASKS[name](folder), anonymous, every=0.01)))


if __name__ == "__main__":
    main()
