"""rankrls compared with bare BLAS, scikit-learn, LightGBM, XGBoost, CatBoost and RLScore: time, memory and quality.

Every contender runs in a separate process, so that its peak memory is its own, with default parameters (100 trees).
Quality is measured on held-out queries. RLScore is looked for in the interpreter that RLSCORE_PYTHON names.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmarks.contenders import PACKAGES
from benchmarks.generated import Rows, interacting_data, search_data
from benchmarks.measure import StoppedError, alone
from benchmarks.published import published
from rankrls import metrics

LIMIT = 240.0  # seconds for a contender, its imports and predictions included
SLOW = {  # what is not tried with a million rows, and why
    "CatBoost": "it was stopped after 240 s with 1,000,000 x 136 (others used the machine)",
    "RLScore QueryRankRLS, 500 points": "it needs 22 kB a row",
}
OURS = "RankRLS()"
TREES = ["LightGBM", "XGBoost", "CatBoost"]
LINEAR = ["X.T @ X", "RankRLS(alpha=1)", OURS, *TREES, "sklearn Ridge", "RLScore QueryRankRLS"]
POINTS = ["RankRLS(alpha=1), 500 points", "RankRLS(), 500 points", "sklearn Nystroem + Ridge"]
CURVED = [OURS, *POINTS, *TREES, "RLScore QueryRankRLS, 500 points"]
KERNEL = ["RankRLS(alpha=1), Gaussian", "RankRLS(), Gaussian", "sklearn KernelRidge", "RLScore QueryRankRLS, Gaussian"]
CONDITIONAL = ["NumPy, two eigh", "ConditionalRankRLS(alpha=1)", "ConditionalRankRLS()", "RLScore KronRLS (regression)"]
REAL = [OURS, "RankRLS(), 500 points", "sklearn Ridge", *TREES, "RLScore QueryRankRLS"]

Fold = tuple[Rows, Rows]  # rows to learn from, rows of other queries


@dataclass(frozen=True)
class Peer:
    """One line of the table."""

    data: str
    model: str
    seconds: float
    cores: float  # seconds of all cores together: what others run meanwhile counts less
    megabytes: float
    others: float  # share of the cores that other processes took
    ratio: float | None  # of seconds to those of ours that chooses alpha
    quality: tuple[float, float] | None
    head: ClassVar[list[str]] = [
        "data",
        "model",
        "seconds",
        "of all cores",
        "x ours, alpha chosen",
        "peak MB",
        "NDCG@10",
        "pairwise accuracy",
    ]

    def cells(self) -> list[str]:
        ratio = "" if self.ratio is None else f"{self.ratio:.{2 if self.ratio < 9.95 else 0}f}x"
        quality = ["", ""] if self.quality is None else [f"{value:.4f}" for value in self.quality]
        times = [f"{seconds:.{3 if seconds > 0.05 else 5}f}" for seconds in (self.seconds, self.cores)]
        return [self.data, self.model, *times, ratio, f"{self.megabytes:.0f}", *quality]


def peers(quick: bool) -> Iterator[Peer | str]:
    """Other rankers on the same rows: seconds, peak memory of the process, quality on held-out queries."""
    rows: list[Peer] = []
    missing: dict[str, str] = {}
    versions: dict[str, str] = {}
    for name, folds, models, unit in _comparisons(quick):
        if isinstance(folds, str):
            yield f"Skipped {name}: {folds}."
            continue
        for row in _compared(name, folds, models, unit, missing, versions):
            yield row
            rows += [row] if isinstance(row, Peer) else []
    yield from (f"Skipped {package}: {reason}." for package, reason in missing.items())
    if not quick:
        yield from (f"{model} is not tried with 1,000,000 rows: {reason}." for model, reason in SLOW.items())
    yield "Versions: " + ", ".join(f"{package} {version}".strip() for package, version in versions.items()) + "."
    yield from _targets(rows)


def _comparisons(quick: bool) -> Iterator[tuple[str, list[Fold] | str, list[str], str]]:
    """Data set, its folds (or why there are none), the learners, and the one whose time is 1."""
    yield "300 x 30", [_split(search_data(1_300, 30, documents=10), 300)], LINEAR, OURS
    for m, n in [(10_000, 46)] if quick else [(100_000, 46), (10_000, 136), (100_000, 136), (1_000_000, 136)]:
        folds = [_split(search_data(m + 20_000, n), m)]
        yield f"linear signal, {m:,} x {n}", folds, _quick_enough(LINEAR, m), OURS
    for name, found in islice(published(1 if quick else 5), 1 if quick else None):
        yield name, found, REAL, OURS
    for m in [10_000] if quick else [10_000, 100_000, 1_000_000]:
        folds = [_split(interacting_data(m + 20_000, 46), m)]
        yield f"interactions, {m:,} x 46", folds, _quick_enough(CURVED, m), OURS
    m, p = (1_000, 300) if quick else (4_000, 2_000)
    yield f"interactions, {m:,} x 46", [_split(interacting_data(m + 20_000, 46), m)], KERNEL, KERNEL[1]
    yield f"{p:,} objects, {p * p:,} edges", [_relation(p)], CONDITIONAL, CONDITIONAL[2]


def _quick_enough(models: list[str], m: int) -> list[str]:
    return [model for model in models if m <= 100_000 or model not in SLOW]


def _targets(rows: list[Peer]) -> Iterator[str]:
    """The target: LightGBM takes ten times as long as the whole choice of alpha."""
    for data in dict.fromkeys(row.data for row in rows if row.data.startswith("linear")):
        ours, theirs = ([row for row in rows if (row.data, row.model) == (data, model)] for model in (OURS, "LightGBM"))
        if ours and theirs:
            ratio, cores = theirs[0].seconds / ours[0].seconds, theirs[0].cores / ours[0].cores
            yield f"LightGBM takes {ratio:.1f}x the time of {OURS}, {cores:.1f}x of all cores: {data} (target >= 10x)."


def _compared(
    name: str, folds: list[Fold], models: list[str], unit: str, missing: dict[str, str], versions: dict[str, str]
) -> Iterator[Peer | str]:
    """A line for each model; `missing` records what cannot be imported, which is not tried again."""
    unit_seconds = None
    with tempfile.TemporaryDirectory() as folder:
        folders = [_written(Path(folder) / str(k), *fold) for k, fold in enumerate(folds)]
        answers = [(new[1], new[2]) for _, new in folds]
        folds.clear()  # a million rows need not be in memory twice
        for model in sorted(models, key=lambda model: model != unit):
            package = PACKAGES[model]
            if package in missing:
                continue
            python = os.environ.get("RLSCORE_PYTHON") if package == "rlscore" else None
            try:
                found = alone("benchmarks.contenders", model, *map(str, folders), limit=LIMIT, python=python)
            except StoppedError as failure:
                if "ModuleNotFoundError" in str(failure) or "ImportError" in str(failure):
                    missing[package] = str(failure)
                else:
                    yield f"{name}: {model}: {failure}."
                continue
            if model == unit:
                unit_seconds = found["seconds"]
            quality = None if model == "X.T @ X" else _quality(folders, answers)
            ratio = found["seconds"] / unit_seconds if unit_seconds else None
            measured = (found[key] for key in ("seconds", "cores", "megabytes", "others"))
            yield Peer(name, model, *measured, ratio, quality)
            versions[package] = found["version"]


def _quality(folders: list[Path], answers: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    """NDCG@10 and pairwise accuracy, means over queries, then over folds."""
    values = []
    for folder, (y, qid) in zip(folders, answers, strict=True):
        scores = np.load(folder / "scores.npy").ravel()
        values.append((metrics.ndcg(y, scores, qid, k=10), metrics.pairwise_accuracy(y, scores, qid)))
    ndcg, accuracy = np.mean(values, axis=0)
    return float(ndcg), float(accuracy)


def _split(rows: Rows, m: int) -> Fold:
    """The first m rows, and the rest."""
    X, y, qid = rows
    return (X[:m], y[:m], qid[:m]), (X[m:], y[m:], qid[m:])


def _relation(p: int) -> Fold:
    """Objects of 20 groups; the relation of two objects is a bilinear form plus noise, in five grades."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(p + 500, 30))
    X += rng.normal(size=(20, 30))[rng.integers(0, 20, p + 500)]
    Y = np.clip(np.round(X @ rng.normal(size=(30, 30)) @ X.T / 30 + rng.normal(size=(p + 500, p + 500)) + 1), 0, 4)
    new = np.repeat(np.arange(500), 500)
    return (X[:p], Y[:p, :p], np.zeros(0)), (X[p:], Y[p:, p:].ravel(), new)


def _written(folder: Path, rows: Rows, new: Rows) -> Path:
    """A folder in the form a contender reads, with queries numbered in their order."""
    folder.mkdir()
    X, y, qid = rows
    first, inverse = np.unique(qid, return_index=True, return_inverse=True)[1:]
    arrays = {"X": X, "y": y, "qid": np.argsort(np.argsort(first))[inverse], "new": new[0]}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder
