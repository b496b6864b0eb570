"""Targets for a drug, drugs for a target, partners for a protein, in the four settings; printed as Markdown.

Replaces the enzymes of [Pahikkala13, Table 3], which cannot be obtained. DIR of --data DIR holds the folders
davis-drug-target, yamanishi-drug-target and yeast-protein-network; see docs/reproductions/conditional.md for results.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import machine
from benchmarks.papers.figures import mean
from rankrls import ConditionalRankRLS
from rankrls.metrics import pairwise_accuracy
from rankrls.relations.folds import Part, RelationKFold

SETTINGS = (1, 2, 3, 4)
NEIGHBOURS = 5
FOLDS = 5


@dataclass(frozen=True)
class Known:
    """A relation from drugs to targets and the similarities within each; one kind of object if `targets` is None."""

    name: str
    Y: np.ndarray
    drugs: np.ndarray
    targets: np.ndarray | None = None

    @property
    def T(self) -> Known:
        assert self.targets is not None
        return Known(self.name, self.Y.T, self.targets, self.drugs)


def similarity(S: np.ndarray) -> np.ndarray:
    """Symmetric, ones on the diagonal, then without the negative part: one kernel for training and test objects."""
    S = (S + S.T) / 2
    root = np.sqrt(np.diag(S))
    S = S / root / root[:, None]
    d, U = np.linalg.eigh(S)
    return S if d[0] > -1e-9 else (U * np.maximum(d, 0)) @ U.T


def read_davis(folder: Path) -> Known:
    """log10 of how much more strongly a drug binds than the weakest measured affinity, 10,000 nM."""
    matrix = lambda name: np.loadtxt(folder / f"{name}.txt.xz")
    kd = matrix("drug-target_interaction_affinities_Kd__Davis_et_al.2011v1")
    drugs, targets = matrix("drug-drug_similarities_2D"), matrix("target-target_similarities_WS")
    return Known("davis", 4 - np.log10(kd), similarity(drugs), similarity(targets))


def read_yamanishi(folder: Path, name: str) -> Known:
    matrix = lambda kind: pd.read_csv(folder / f"{name}_{kind}.txt.xz", sep="\t", index_col=0)
    Y, drugs, targets = matrix("admat_dgc").T, matrix("simmat_dc"), matrix("simmat_dg")
    drugs, targets = (S.loc[names, names].to_numpy() for S, names in ((drugs, Y.index), (targets, Y.columns)))
    return Known(name, Y.to_numpy(dtype=float), similarity(drugs), similarity(targets))


def read_yeast(folder: Path) -> Known:
    K = pd.read_csv(folder / "kernel.tsv.xz", sep="\t", index_col=0)
    Y = pd.read_csv(folder / "interactions.tsv.xz", sep="\t", index_col=0).loc[K.index, K.columns]
    return Known("yeast", Y.to_numpy(dtype=float), similarity(K.to_numpy()))


# ---------------------------------------------------------------- without training

Baseline = Callable[[Known, Part, Part], np.ndarray]  # scores of the test part, from the training part


def nearest(S: np.ndarray) -> np.ndarray:
    """Similarities to the few nearest objects, zero elsewhere; each row sums to one."""
    S = np.where(np.partition(S, -NEIGHBOURS, axis=1)[:, [-NEIGHBOURS]] <= S, np.maximum(S, 1e-9), 0)
    return S / S.sum(axis=1, keepdims=True)


def neighbours(known: Known, train: Part, test: Part) -> np.ndarray:
    """What the nearest known drugs do with the nearest known targets; known objects stand for themselves."""
    T = train.of(known.Y)
    if train.edges is not None:  # other drugs, where they are known
        A, filled = nearest(known.drugs - 2 * np.eye(len(T))), ~np.isnan(T)
        return (A @ np.nan_to_num(T)) / np.maximum(A @ filled, 1e-9)
    targets = known.drugs if known.targets is None else known.targets
    if len(test.rows) < len(known.Y):
        T = nearest(known.drugs[np.ix_(test.rows, train.rows)]) @ T
    if len(test.columns) < known.Y.shape[1]:
        T = T @ nearest(targets[np.ix_(test.columns, train.columns)]).T
    return T


def popularity(known: Known, train: Part, test: Part) -> np.ndarray:
    """The mean of each target over the known drugs; nothing for unknown targets."""
    mean = np.zeros(known.Y.shape[1])
    mean[train.columns] = np.nanmean(train.of(known.Y), axis=0)
    mean[np.setdiff1d(test.columns, train.columns)] = mean[train.columns].mean()
    return np.tile(mean[test.columns], (len(test.rows), 1))


def alike(known: Known, train: Part, test: Part) -> np.ndarray:
    """Equation (40): the more similar, the more strongly related."""
    return known.drugs[np.ix_(test.rows, test.columns)]


def judge(baseline: Baseline, known: Known, setting: int, seed: int) -> np.ndarray:
    """(folds,) pairwise accuracy."""
    found = []
    for train, test in RelationKFold(setting, FOLDS, same_objects=known.targets is None, random_state=seed).split(
        known.Y
    ):
        Y, scores = test.of(known.Y), baseline(known, train, test)
        rows, columns = np.nonzero(~np.isnan(Y))
        try:
            found.append(pairwise_accuracy(Y[rows, columns], scores[rows, columns], rows))
        except ValueError:  # nothing to rank
            found.append(np.nan)
    return np.array(found)


# ---------------------------------------------------------------- tables


def learned(known: Known, setting: int, seed: int, loss: str, relation: str | None) -> np.ndarray:
    """(folds,) pairwise accuracy; alpha is chosen by hold-out of what is new in the setting."""
    one = known.targets is None
    inner = "auto" if setting == 2 else RelationKFold(setting, FOLDS, same_objects=one, random_state=seed)
    model = ConditionalRankRLS(kernel="precomputed", loss=loss, relation=relation, cv=inner, max_iter=300, tol=1e-4)
    found = model.evaluate(known.drugs, known.Y, known.targets, settings=[setting], n_splits=FOLDS, random_state=seed)
    return found[setting]


def line(cells: list[str], results: list[np.ndarray | None]) -> None:
    figures = ["" if found is None else mean(found, 3) for found in results]
    print("| " + " | ".join([*cells, *figures]) + " |", flush=True)


def difference(cells: list[str], pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """The difference of two losses over the same folds."""
    figures = [mean(a - b, 3) for a, b in pairs]
    print("| " + " | ".join([*cells, *figures]) + " |", flush=True)


def drug_target(known: Known, ranked: str, seeds: range) -> None:
    """Targets ranked for each drug; `known` transposed ranks drugs."""
    models = {
        loss: [np.concatenate([learned(known, s, seed, loss, None) for seed in seeds]) for s in SETTINGS]
        for loss in ("ranking", "regression")
    }
    for name, results in models.items():
        line([known.name, ranked, name], results)
    for baseline in (neighbours, popularity):
        settings = [s if baseline is neighbours or s < 3 else None for s in SETTINGS]
        results = [s and np.concatenate([judge(baseline, known, s, seed) for seed in seeds]) for s in settings]
        line([known.name, ranked, baseline.__name__], results)
    difference([known.name, ranked, "ranking - regression"], list(zip(*models.values(), strict=True)))


def proteins(known: Known, seeds: range) -> None:
    """Interaction partners of each protein, edges or proteins held out."""
    for relation in ("symmetric", None):
        for loss in ("ranking", "regression"):
            results = [np.concatenate([learned(known, s, seed, loss, relation) for seed in seeds]) for s in (1, 4)]
            line([f"{relation or 'ordinary'} {loss}"], results)
    for baseline in (alike, neighbours, popularity):
        settings = [1, 4 if baseline is not popularity else None]
        results = [s and np.concatenate([judge(baseline, known, s, seed) for seed in seeds]) for s in settings]
        line([baseline.__name__], results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the three data sets")
    parser.add_argument("--sets", nargs="*", default=["davis", "gpcr", "ic", "nr", "yeast"])
    parser.add_argument("--repeats", type=int, default=3, help="times five folds")
    arguments = parser.parse_args()
    print(machine())
    seeds = range(arguments.repeats)
    print("\nDrugs and targets: pairwise accuracy, ± 95 % interval over folds:\n")
    print("| set | ranked | model | 1 | 2 | 3 | 4 |\n" + "|---" * 7 + "|")
    for name in arguments.sets:
        if name != "yeast":
            folder = arguments.data / ("davis-drug-target" if name == "davis" else "yamanishi-drug-target")
            known = read_davis(folder) if name == "davis" else read_yamanishi(folder, name)
            drug_target(known, "targets", seeds)
            drug_target(known.T, "drugs", seeds)
    if "yeast" in arguments.sets:
        print("\nYeast proteins: pairwise accuracy, ± 95 % interval over folds:\n\n| model | 1 | 4 |\n|---|---|---|")
        proteins(read_yeast(arguments.data / "yeast-protein-network"), range(2 * arguments.repeats))


if __name__ == "__main__":
    main()
