"""Folds, measures, published baselines and the tables of [Pahikkala07b] for benchmarks.papers.letor."""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from rankrls.datasets import RankingData, load_letor, per_query_minmax
from rankrls.metrics import per_query

LEVELS = range(1, 11)
MEASURES = ["MAP", *(f"NDCG@{k}" for k in LEVELS), *(f"P@{k}" for k in LEVELS)]
OFFICIAL = "querylevelnorm"  # the version of LETOR 3.0 that the published baselines use


@dataclass(frozen=True)
class Fold:
    """Rows scaled to [0, 1] within queries; the three parts share no query ids, which are numbers."""

    train: RankingData
    validation: RankingData
    test: RankingData

    @cached_property
    def both(self) -> RankingData:
        """Training rows, then validation rows."""
        parts = (self.train, self.validation)
        return RankingData(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("X", "y", "qid")))


# ---------------------------------------------------------------- files


def find(name: str, data: Path | None, temporary: Path) -> Path:
    """The folder with Fold1 ... Fold5 of a set: a folder of that name, here or below DIR, or an archive in it."""
    place = Path(name) if data is None or Path(name).is_dir() else data / name
    found = _fold_folders(place)
    if not found:
        for archive in sorted(place.glob("*.tar.xz")):
            with tarfile.open(archive) as tar:
                tar.extractall(temporary / place.name, filter="data")
        found = _fold_folders(temporary / place.name)
    official = [path for path in found if OFFICIAL in path.as_posix().lower()]
    if len(official or found) != 1:
        raise SystemExit(f"{place} has {len(found)} folders with Fold1, one is needed: {', '.join(map(str, found))}")
    return (official or found)[0]


def _fold_folders(place: Path) -> list[Path]:
    return sorted({path.parent for path in place.rglob("*") if path.is_dir() and path.name.lower() == "fold1"})


def read_folds(place: Path) -> Iterator[Fold]:
    for number in range(1, 6):
        files = sorted((place / f"Fold{number}").iterdir())
        parts = []
        for start in ("train", "vali", "test"):
            path = next(path for path in files if path.name.lower().startswith(start))
            part = load_letor(path, missing="minimum")
            parts.append(replace(part, X=per_query_minmax(part.X, part.qid)))
        _, codes = np.unique(np.concatenate([part.qid for part in parts]), return_inverse=True)
        ids = np.split(codes, np.cumsum([len(part) for part in parts])[:-1])
        yield Fold(*(replace(part, qid=qid) for part, qid in zip(parts, ids, strict=True)))


# ---------------------------------------------------------------- measures


def average_precision(part: RankingData, scores: np.ndarray) -> np.ndarray:
    """(q,) as LETOR's tools count: labels >= 1 are relevant, ties are in the order of the file, 0 without any."""
    return per_query("map", part.y, scores, part.qid, ties="stable", empty=0.0)


def evaluate(part: RankingData, scores: np.ndarray, *, letor4: bool) -> dict[str, np.ndarray]:
    """(q,) of each measure, by LETOR's conventions; in 4.0, NDCG@k is 0 for queries of fewer than k rows."""
    values = {"MAP": average_precision(part, scores)}
    _, sizes = np.unique(part.qid, return_counts=True)
    for k in LEVELS:
        ndcg = per_query("ndcg", part.y, scores, part.qid, k=k, convention="letor")
        values[f"NDCG@{k}"] = np.where(letor4 & (sizes < k), 0.0, ndcg)
        values[f"P@{k}"] = per_query("precision", part.y, scores, part.qid, k=k, ties="stable")
    return values


def check_measures(place: Path) -> str:
    """Recompute the official results of each single feature as score (LETOR 2.0 OHSUMED) from the rows."""
    workbook = next(place.parent.rglob("SingleFeatures_OHSUMED.xls"), None)
    try:
        import xlrd
    except ImportError:
        return "The check against SingleFeatures_OHSUMED.xls needs xlrd (`pip install xlrd`): left out."
    if workbook is None:
        return "No workbook SingleFeatures_OHSUMED.xls: the measures were not checked."
    rows = load_letor(next(place.rglob("OHSUMED.txt")))
    worst, count = 0.0, 0
    for sheet in xlrd.open_workbook(workbook).sheets():
        names = sheet.row_values(1)[1:]
        for line in range(2, sheet.nrows):
            number, *official = sheet.row_values(line)
            ours = evaluate(rows, rows.X[:, int(number) - 1], letor4=False)
            worst = max(worst, *(abs(ours[name].mean() - v) for name, v in zip(names, official, strict=True)))
            count += len(names)
    return f"Measures: {count} official values of single features recomputed, largest difference {worst:.1g}."


# ---------------------------------------------------------------- published results

Results = dict[str, dict[str, list[float]]]  # algorithm -> measure -> value of each of five folds


def baselines(data: Path | None, name: str) -> Results:
    """Test results by fold from letor-baselines, if it has any for this set."""
    results: Results = {}
    folder = None if data is None else data / "letor-baselines"
    if folder is None or not folder.is_dir():
        return results
    release, dataset = _published(name)
    with open(folder / "letor12_reference_algorithms.csv") as file:
        for row in csv.DictReader(file):
            wanted = (row["release"], row["dataset"], row["split"]) == (release, dataset, "test")
            if wanted and row["sheet"] != "Average" and row["fold"] != "average":
                _add(results, row["algorithm"], row)
    with open(folder / "letor34_reruns.csv") as file:
        for row in csv.DictReader(file):
            wanted = (row["dataset"], row["split"]) == (dataset, "test") and release == "reruns"
            if wanted and row["metric"] in MEASURES and row["selection_measure"] == "MAP":
                _add(results, f"{row['algorithm']} (rerun)", row)
    if dataset == "MQ2008":
        results["ListNet (official)"] = _listnet(folder)
    return results


def _published(name: str) -> tuple[str, str]:
    name = name.lower()
    if "mq2008" in name:
        return "reruns", "MQ2008"
    for year in ("2003", "2004"):
        if year in name:
            return "LETOR1.0", f"TD{year}"
    return ("reruns" if "letor3" in name else "LETOR2.0"), ("OHSUMED" if "ohsumed" in name else "")


def _add(results: Results, algorithm: str, row: dict[str, str]) -> None:
    values = results.setdefault(algorithm, {}).setdefault(row["metric"], [np.nan] * 5)
    if np.isnan(values[int(row["fold"]) - 1]):
        values[int(row["fold"]) - 1] = float(row["value"])


def _listnet(folder: Path) -> dict[str, list[float]]:
    with tarfile.open(folder / "letor-baselines.tar.xz") as tar:
        member = next(m for m in tar.getmembers() if m.name.endswith("Results_baseline_MQ2008_test.csv"))
        text = io.TextIOWrapper(tar.extractfile(member))  # type: ignore[arg-type]
        rows = [row for row in csv.DictReader(text) if row["Folds"].startswith("Fold")]
    return {name: [float(row[name]) for row in rows] for name in MEASURES if name in rows[0]}


# Tables 1-7 of [Pahikkala07b]: MAP, then levels 1 to 10
_PAPER = """
OHSUMED RankRLS MAP .447
OHSUMED RLS MAP .450
OHSUMED RankSVM MAP .447
OHSUMED RankBoost MAP .440
TREC2003 RankRLS MAP .257
TREC2003 RLS MAP .212
TREC2003 RankSVM MAP .256
TREC2003 RankBoost MAP .212
TREC2004 RankRLS MAP .359
TREC2004 RLS MAP .304
TREC2004 RankSVM MAP .350
TREC2004 RankBoost MAP .384
OHSUMED RankRLS NDCG .549 .492 .477 .465 .453 .450 .451 .447 .447 .443
OHSUMED RLS NDCG .527 .499 .491 .474 .461 .454 .459 .460 .458 .452
OHSUMED RankSVM NDCG .495 .476 .465 .459 .458 .455 .447 .445 .443 .441
OHSUMED RankBoost NDCG .498 .483 .473 .461 .450 .442 .439 .436 .433 .436
OHSUMED RankRLS P .644 .614 .586 .570 .557 .546 .534 .524 .516 .505
OHSUMED RLS P .635 .615 .602 .580 .560 .541 .545 .539 .525 .510
OHSUMED RankSVM P .634 .619 .592 .579 .577 .558 .536 .525 .517 .507
OHSUMED RankBoost P .605 .595 .586 .562 .545 .525 .516 .505 .494 .495
TREC2003 RankRLS NDCG .400 .370 .355 .351 .350 .341 .344 .342 .344 .346
TREC2003 RLS NDCG .320 .350 .315 .310 .302 .301 .298 .296 .301 .303
TREC2003 RankSVM NDCG .420 .370 .379 .363 .347 .341 .340 .345 .342 .341
TREC2003 RankBoost NDCG .260 .280 .270 .272 .279 .280 .287 .282 .282 .285
TREC2003 RankRLS P .400 .350 .307 .285 .272 .247 .243 .230 .222 .214
TREC2003 RLS P .320 .340 .273 .245 .220 .207 .194 .182 .182 .176
TREC2003 RankSVM P .420 .350 .340 .300 .264 .243 .234 .233 .218 .206
TREC2003 RankBoost P .260 .270 .240 .230 .220 .210 .211 .193 .182 .178
TREC2004 RankRLS NDCG .480 .427 .421 .419 .407 .408 .410 .416 .418 .433
TREC2004 RLS NDCG .400 .373 .360 .364 .354 .351 .355 .356 .359 .370
TREC2004 RankSVM NDCG .440 .433 .409 .406 .393 .397 .406 .410 .414 .42
TREC2004 RankBoost NDCG .480 .473 .464 .439 .437 .448 .457 .461 .464 .472
TREC2004 RankRLS P .480 .400 .369 .347 .309 .291 .270 .253 .240 .235
TREC2004 RLS P .400 .347 .316 .293 .261 .238 .225 .210 .197 .197
TREC2004 RankSVM P .440 .407 .351 .327 .291 .273 .261 .247 .236 .225
TREC2004 RankBoost P .480 .447 .404 .347 .323 .304 .293 .277 .262 .253
"""


def paper(name: str) -> dict[str, dict[str, float]]:
    """Algorithm -> measure -> mean over folds, for the sets of the paper (LETOR 1.0 and 2.0)."""
    name = name.lower()
    wanted = next((f"TREC{year}" for year in ("2003", "2004") if year in name), "OHSUMED" if "ohsumed" in name else "")
    results: dict[str, dict[str, float]] = {}
    if "letor3" in name or "letor4" in name:
        return results
    for line in _PAPER.split("\n"):
        if line.startswith(f"{wanted} ") and wanted:
            _, algorithm, measure, *values = line.split()
            names = ["MAP"] if measure == "MAP" else [f"{measure}@{k}" for k in LEVELS]
            results.setdefault(algorithm, {}).update(zip(names, map(float, values), strict=True))
    return results
