"""Public data sets with their own division into training rows and rows of other queries.

They are in the folder RANKRLS_SHARED_DATA, or ../shared/data beside the clone, each as name/name.tar.xz.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.defaults import read_rows
from benchmarks.generated import Rows

FOLDER = Path(os.environ.get("RANKRLS_SHARED_DATA", Path(__file__).parents[2] / "shared/data"))
Fold = tuple[Rows, Rows]


def published(folds: int, wanted: Callable[[str], bool] = bool) -> Iterator[tuple[str, list[Fold] | str]]:
    """Name and folds of each data set whose name is `wanted`, or why it is missing."""
    for name, archive, read in (
        ("MQ2008", "letor4-mq2008", lambda folder: [_fold(folder / "MQ2008", k) for k in range(1, folds + 1)]),
        (
            "OHSUMED",
            "letor3-ohsumed",
            lambda folder: [_fold(folder / "OHSUMED/QueryLevelNorm", k) for k in range(1, folds + 1)],
        ),
        ("MSLR sample", "mslr-web-fold1-5k", lambda folder: [_mslr(folder)]),
        ("LightGBM example", "lightgbm-lambdarank", lambda folder: [_example(folder)]),
    ):
        if not wanted(name):
            continue
        path = FOLDER / archive / f"{archive}.tar.xz"
        if not path.exists():
            yield name, f"there is no {archive}/{archive}.tar.xz in the folder RANKRLS_SHARED_DATA or ../shared/data"
            continue
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(path) as tar:
                tar.extractall(folder, filter="data")
            found = read(Path(folder))
        rows = f"{len(found[0][0][0]):,} x {found[0][0][0].shape[1]}"
        yield f"{name}, {rows}" + (f", {len(found)} folds" if len(found) > 1 else ""), found


def _fold(folder: Path, k: int) -> Fold:
    train, test = (read_rows(folder / f"Fold{k}/{part}.txt") for part in ("train", "test"))
    return train, test


def _mslr(folder: Path) -> Fold:
    train, test = (read_rows(folder / f"msn1.fold1.{part}.5k.txt") for part in ("train", "test"))
    return _scaled(train, test)


def _example(folder: Path) -> Fold:
    parts = []
    for part in ("train", "test"):
        X, y, _ = read_rows(folder / f"rank.{part}")
        sizes = np.loadtxt(folder / f"rank.{part}.query", dtype=int)
        X = np.pad(X, ((0, 0), (0, 300 - X.shape[1])))  # the last features are not in every file
        parts.append((X, y, np.repeat(np.arange(len(sizes)), sizes)))
    return _scaled(*parts)


def _scaled(train: Rows, test: Rows) -> Fold:
    """log(1 + x) of skewed columns, then mean 0 and variance 1, by the training rows; trees do not depend on it."""
    skewed = (train[0].min(axis=0) >= 0) & ((_standard(train[0], train[0]) ** 3).mean(axis=0) > 2)
    X, new = (np.where(skewed, np.log1p(np.where(skewed, np.maximum(X, 0), 0)), X) for X in (train[0], test[0]))
    return (_standard(X, X), *train[1:]), (_standard(new, X), *test[1:])


def _standard(X: np.ndarray, by: np.ndarray) -> np.ndarray:
    scale = by.std(axis=0)
    return (X - by.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
