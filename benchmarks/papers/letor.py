"""LETOR after [Pahikkala07b], by its official folds and measures, printed as Markdown.

    python -m benchmarks.papers.letor --data DIR [--sets letor2-ohsumed letor4-mq2008 path/to/TD2003 ...]

A set is a folder below DIR, or any folder, with Fold1 ... Fold5 somewhere in it (or a .tar.xz that has them), each with
train, vali and test files. See docs/reproductions/letor.md for results.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.measure import machine
from benchmarks.papers.figures import half_width, table
from benchmarks.papers.letor_models import ALPHAS, OURS, PAPERS, TREES, Ranker, by_validation, ridge_without_intercept
from benchmarks.papers.letor_sets import (
    MEASURES,
    Fold,
    Results,
    baselines,
    check_measures,
    evaluate,
    find,
    paper,
    read_folds,
)
from rankrls.metrics import per_query

SETS = ["letor2-ohsumed", "letor3-ohsumed", "letor4-mq2008"]
SHOWN = ["MAP", "NDCG@1", "NDCG@3", "NDCG@5", "NDCG@10", "P@1", "P@5", "P@10"]
PAIRS = [
    ("RankRLS", "RLS"),
    ("RankRLS", "LightGBM"),
    ("RankRLS", "XGBoost"),
    ("RLS", "LightGBM"),
    ("RankRLS, leave-query-out", "RankRLS, defaults"),
    ("RankRLS, Gaussian", "RankRLS, defaults"),
    ("RankRLS, Gaussian", "LightGBM"),
    ("RankRLS, Gaussian", "XGBoost"),
]
FLIPS = 20_000


@dataclass(frozen=True)
class Run:
    """The results of a ranker on a fold."""

    trained: dict[str, np.ndarray]  # measure -> value of each query
    refitted: dict[str, np.ndarray]  # with the validation set added to the training set
    choice: str
    choosing: float  # CPU seconds
    training: float


@dataclass
class Runs:
    """The results of a ranker on all folds."""

    each: list[Run] = field(default_factory=list)

    def folds(self, measure: str) -> list[float]:
        return [float(now.trained[measure].mean()) for now in self.each]

    def mean(self, measure: str) -> float:
        return float(np.mean(self.folds(measure)))

    def shown(self, measure: str, digits: int = 4) -> str:
        """The mean over folds, with the 95 % interval over all queries."""
        return f"{self.mean(measure):.{digits}f} ± {half_width(self.queries(measure)):.{digits}f}"

    def refitted(self, measure: str) -> float:
        return float(np.mean([now.refitted[measure].mean() for now in self.each]))

    def queries(self, measure: str, *, refitted: bool = False) -> np.ndarray:
        return np.concatenate([(now.refitted if refitted else now.trained)[measure] for now in self.each])


def run(place: Path, rankers: dict[str, Ranker], *, letor4: bool, keep: Path | None = None) -> dict[str, Runs]:
    """Every ranker on every fold; what `keep` already contains is not run again."""
    runs = {name: Runs() for name in rankers}
    for number, fold in enumerate(read_folds(place), start=1):
        for name, ranker in rankers.items():
            kept = None if keep is None else keep / f"{name}, fold {number}.pickle"
            if kept is None or not kept.exists():
                now = run_fold(fold, ranker, letor4=letor4)
                if kept is not None:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    kept.write_bytes(pickle.dumps(now))
            else:
                now = pickle.loads(kept.read_bytes())
            runs[name].each.append(now)
    return runs


def order_of_files(place: Path) -> str:
    """The result of a ranker that ties everything."""
    tests = [fold.test for fold in read_folds(place)]
    stable, random = (
        np.mean([per_query("map", t.y, np.zeros(len(t)), t.qid, ties=ties, empty=0.0).mean() for t in tests])
        for ties in ("stable", "average")
    )
    return (
        f"MAP of equal scores: {stable:.4f} in the order of the files, the official rule; {random:.4f} in random order."
    )


def run_fold(fold: Fold, ranker: Ranker, *, letor4: bool) -> Run:
    start = time.process_time()
    choice = ranker(fold)
    chosen = time.process_time()
    predict = choice.fit(fold.train)
    trained = time.process_time()
    values = [evaluate(fold.test, f(fold.test.X), letor4=letor4) for f in (predict, choice.fit(fold.both))]
    return Run(values[0], values[1], choice.text, chosen - start, trained - chosen)


# ---------------------------------------------------------------- tables


def numbers(values: list[float]) -> list[str]:
    return ["" if np.isnan(value) else f"{value:.4f}" for value in values]


def report(name: str, place: Path, runs: dict[str, Runs], others: Results) -> None:
    print("MAP of each test fold; last column: validation set added to the training set, same parameters.\n")
    rows = []
    for model, now in runs.items():
        rows.append([model, *numbers(now.folds("MAP")), now.shown("MAP"), *numbers([now.refitted("MAP")])])
    for model, published in others.items():
        if "MAP" in published:
            rows.append([model, *numbers([*published["MAP"], float(np.mean(published["MAP"]))]), ""])
    table(["model", *(f"fold {k}" for k in range(1, 6)), "mean", "refitted"], rows)

    print("Means over folds, ± 95 % interval over queries:\n")
    rows = [[model, *(now.shown(m) for m in SHOWN)] for model, now in runs.items()]
    for model, published in others.items():
        rows.append([model, *numbers([float(np.mean(published.get(m, np.nan))) for m in SHOWN])])
    table(["model", *SHOWN], rows)

    published = paper(name)
    if published:
        beside_the_paper(runs, published)
        grids(place)
    tests(runs)
    print("CPU seconds of all five folds, and what was chosen in each:\n")
    rows = []
    for model, now in runs.items():
        seconds = [f"{sum(getattr(one, part) for one in now.each):.2f}" for part in ("choosing", "training")]
        rows.append([model, *seconds, "; ".join(one.choice for one in now.each if one.choice)])
    table(["model", "choosing", "training", "chosen"], rows)


def beside_the_paper(runs: dict[str, Runs], published: dict[str, dict[str, float]]) -> None:
    print("The paper's tables, paper / ours, ± 95 % interval over queries:\n")
    head = ["", *(f"{a}, paper / ours" for a in PAPERS), *(f"{a}, paper" for a in published if a not in PAPERS)]
    rows = []
    for measure in MEASURES:
        both = [f"{published[a][measure]:.3f} / {runs[a].shown(measure, 3)}" for a in PAPERS]
        rows.append([measure, *both, *(f"{v[measure]:.3f}" for a, v in published.items() if a not in PAPERS)])
    table(head, rows)
    for algorithm in PAPERS:
        gaps = [runs[algorithm].mean(m) - published[algorithm][m] for m in MEASURES]
        largest = int(np.argmax(np.abs(gaps)))
        print(
            f"{algorithm}: ours minus the paper's {np.mean(gaps):+.4f} on average over {len(MEASURES)} values, "
            f"{gaps[largest]:+.3f} at most ({MEASURES[largest]})."
        )
    print()


def grids(place: Path) -> None:
    """How much depends on the grid, which the paper does not give, and on the intercept of RLS."""
    powers = {"2^k": ALPHAS, "4^k": ALPHAS[1::2], "10^k": 10.0 ** np.arange(-4, 9), "default": None}
    pairs = {"weighting": "pairs", "tied_pairs": "auto", "scale": None}
    models = {f"RankRLS, alpha {n}": {**pairs, "alphas": a} for n, a in powers.items()}
    models["RankRLS, alpha 2^k, ties always in"] = {**pairs, "tied_pairs": True, "alphas": ALPHAS}
    models["RankRLS, alpha 2^k, ties always out"] = {**pairs, "tied_pairs": False, "alphas": ALPHAS}
    models |= {f"RLS, alpha {n}": {"regression": 1.0, "alphas": a, "scale": None} for n, a in powers.items()}
    rankers = {name: by_validation(**options) for name, options in models.items()}
    rankers["RLS without intercept, alpha 2^k"] = ridge_without_intercept
    runs = run(place, rankers, letor4=False)
    print("Other grids of alpha, means over folds, ± 95 % interval over queries:\n")
    table(["", *SHOWN], [[name, *(now.shown(m) for m in SHOWN)] for name, now in runs.items()])


def tests(runs: dict[str, Runs]) -> None:
    print("Differences over all test queries (95 % interval; p by randomisation, p by Wilcoxon's signed-rank test):\n")
    rows = []
    for first, second in PAIRS:
        if first in runs and second in runs:
            cells = []
            for measure, refitted in (("MAP", False), ("NDCG@5", False), ("MAP", True)):
                one, other = (runs[name].queries(measure, refitted=refitted) for name in (first, second))
                gain = one - other
                half = 1.96 * gain.std(ddof=1) / np.sqrt(len(gain))
                p = (f"{randomisation(gain):.2g}", f"{stats.wilcoxon(gain).pvalue:.2g}" if gain.any() else "1")
                cells.append(f"{gain.mean():+.4f} ± {half:.4f} ({', '.join(p)})")
            rows.append([f"{first} minus {second}", *cells])
    table(["", "MAP", "NDCG@5", "MAP, refitted"], rows)


def randomisation(gain: np.ndarray) -> float:
    """p of the mean gain if the sign of every query's gain were random."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(FLIPS, len(gain)))
    return float((1 + np.sum(np.abs(signs @ gain) >= abs(gain.sum()) * (1 - 1e-12))) / (1 + FLIPS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with one folder per set, and letor-baselines")
    parser.add_argument("--sets", nargs="+", default=SETS, help="folders of DIR, or any with Fold1 ... Fold5")
    parser.add_argument("--models", nargs="+", choices=["papers", "ours", "trees"], default=["papers", "ours", "trees"])
    parser.add_argument(
        "--keep", type=Path, help="folder to keep the results of finished folds in, so as to go on later"
    )
    arguments = parser.parse_args()
    groups = {"papers": PAPERS, "ours": OURS, "trees": TREES}
    rankers = {name: ranker for group in arguments.models for name, ranker in groups[group].items()}
    if "papers" not in arguments.models:
        rankers = {**PAPERS, **rankers}
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.sets:
            place = find(name, arguments.data, Path(temporary))
            print(f"\n{place.name if Path(name).is_dir() else name}:\n")
            if name == "letor2-ohsumed":
                print(f"{check_measures(place)}\n")
            print(f"{order_of_files(place)}\n")
            letor4 = "letor4" in name.lower() or "mq200" in name.lower()
            keep = None if arguments.keep is None else arguments.keep / Path(name).name
            runs = run(place, rankers, letor4=letor4, keep=keep)
            report(name, place, runs, baselines(arguments.data, name))


if __name__ == "__main__":
    main()
