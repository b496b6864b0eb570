"""The walk of a call: the files of the library whose code runs in a second, identical call, and the changes of file.

Calls upwards go to a file that imports the caller's.

Usage: python -m benchmarks.walks [--files]
"""

import argparse
import ast
import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import rankrls

SOURCE = str(Path(rankrls.__file__).parent) + os.sep


def walk(call):
    """Trace `call` the second time it runs: files, each with the functions entered, and the changes between files.

    BLAS gets one thread, so that all work is done in the thread that is traced. Execution passes from one file to
    another when a function is called, and again when it returns; code of other libraries in between does not count.
    """
    visited, changes, here = {}, [], [None]

    def step(frame, event, _):
        code = (frame.f_code if event == "call" else frame.f_back and frame.f_back.f_code) or None
        if event not in ("call", "return") or code is None or not code.co_filename.startswith(SOURCE):
            return
        name = code.co_filename[len(SOURCE) :]
        if event == "call":
            functions = visited.setdefault(name, {})
            functions[code.co_qualname] = functions.get(code.co_qualname, 0) + 1
        if here[0] is not None and name != here[0]:
            changes.append((here[0], name, code.co_qualname, event))
        here[0] = name

    with threadpool_limits(1):
        call()
        sys.setprofile(step)
        try:
            call()
        finally:
            sys.setprofile(None)
    return visited, changes


def imports():
    """The files of the library that each of its files imports."""
    root = Path(SOURCE)
    found = {}
    for path in root.rglob("*.py"):
        mine = found[str(path.relative_to(root))] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                for target in (base, *(base / alias.name for alias in node.names)):
                    file = target.with_suffix(".py") if target.with_suffix(".py").exists() else target / "__init__.py"
                    if file.exists():
                        mine.add(str(file.relative_to(root)))
    return found


def calls(folder):
    """The calls of the decision note, by name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rankrls.cli import main

    rng = np.random.default_rng(0)
    X, qid = rng.standard_normal((200, 5)), np.repeat(np.arange(20), 10)
    y = X @ rng.standard_normal(5) + 0.1 * rng.standard_normal(200)
    Y = rng.standard_normal((30, 30))
    table = folder / "table"
    table.mkdir()
    columns = {"qid": qid, "label": y} | {f"f{i}": X[:, i] for i in range(5)}
    for part in (0, 1):
        rows = slice(100 * part, 100 * part + 100)
        pq.write_table(pa.table({name: values[rows] for name, values in columns.items()}), table / f"{part}.parquet")
    text = folder / "train.txt"
    grades = np.clip(np.round(y + 2), 0, 4).astype(int)
    rows = zip(grades, qid, X, strict=True)
    features = lambda x: " ".join(f"{j}:{value:.6f}" for j, value in enumerate(x, 1))
    text.write_text("".join(f"{grade} qid:{q} {features(x)}\n" for grade, q, x in rows))

    def train():
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert not main(["train", str(text), "-o", str(folder / "model.rankrls")])

    return {
        "RankRLS().fit(X, y, qid)": lambda: rankrls.RankRLS().fit(X, y, qid),
        "a Parquet folder": lambda: rankrls.RankRLS().fit(table),
        "ConditionalRankRLS().fit(X, Y)": lambda: rankrls.ConditionalRankRLS().fit(X[:30], Y),
        "RankingPursuit(kernel=None).fit": lambda: rankrls.RankingPursuit(kernel=None).fit(X, y, qid),
        "rankrls train": train,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="list the functions entered in each file")
    options = parser.parse_args()
    used = imports()
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            visited, changes = walk(call)
            up = sum(event == "call" and before in used.get(now, ()) for before, now, _, event in changes)
            print(f"{name:36s} {len(visited):4d} files {len(changes):6d} changes {up:4d} upwards")
            if options.files:
                for file in sorted(visited):
                    print(f"    {file}: " + ", ".join(f"{f} x{n}" for f, n in visited[file].items()))


if __name__ == "__main__":
    main()
