"""Parse ranking, RLS against RankRLS, after table 8 of [Pahikkala07b], printed as Markdown.

Penalties are the paper's, sums of squared weights; "defaults" is RankRLS() with another metric. DIR of --data DIR holds
the folder parse-ranking-genia and possibly parse-ranking-bioinfer-excerpt; see docs/reproductions/letor.md for results.
"""

from __future__ import annotations

import argparse
import lzma
import time
from pathlib import Path

import numpy as np
from scipy import sparse, stats

from benchmarks.measure import machine
from benchmarks.papers.figures import mean, table, wilcoxon
from benchmarks.papers.genia import Parses, read, read_walks, splits
from rankrls import RankRLS
from rankrls.bases import RandomRows
from rankrls.kernels import Gaussian, Walks
from rankrls.metrics import per_query

FOLDS = 10  # of sentences, to choose alpha and the width of a kernel
PAPER = {
    "RLS": {"regression": 1.0, "scale": None},
    "RankRLS": {"weighting": "pairs", "tied_pairs": "auto", "scale": None},
}
THEIRS = {"RLS": "0.444", "RankRLS": "0.500"}


def between(data: Parses) -> float:
    """The share of the variance of y that is between sentences, which a ranker can ignore."""
    means = np.bincount(data.qid, data.y) / np.bincount(data.qid)
    return float(means[data.qid].var() / data.y.var())


def correlations(model: RankRLS, train: Parses, test: Parses) -> np.ndarray:
    """(sentences,) tau-b of each test sentence; NaN if all its parses are equally good."""
    model.fit(train.X, train.y, qid=train.qid)
    return per_query("kendall_tau_b", test.y, model.predict(test.X), test.qid)


def compare(title: str, data: Parses, rows: dict[str, dict]) -> None:
    taus: dict[str, list[np.ndarray]] = {name: [] for name in rows}
    seconds = dict.fromkeys(rows, 0.0)
    for _, sentences, test in splits(data):
        train = data.of(sentences)
        for name, options in rows.items():
            start = time.process_time()
            model = RankRLS(**{"scoring": "kendall_tau_b", "cv": FOLDS, "random_state": 0, **options})
            taus[name].append(correlations(model, train, test))
            seconds[name] += time.process_time() - start
    means = {name: np.mean(values, axis=0) for name, values in taus.items()}
    lines = []
    for name, values in taus.items():
        gain = np.nanmean(values, axis=1) - np.nanmean(taus["RLS"], axis=1)
        texts = [
            mean(np.nanmean(values, axis=1)),
            mean(gain) if name != "RLS" else "",
            wilcoxon(means[name], means["RLS"]),
        ]
        lines.append([name, THEIRS.get(name, ""), *texts, f"{seconds[name] / len(values):.1f}"])
    head = ["model", "paper", "ours", "minus RLS", "p", "CPU seconds"]
    table(head, lines, f"{title}, Kendall's tau-b, ± 95 % interval over five draws of the training sentences:")


def bioinfer(folder: Path) -> None:
    """What remains of the paper's own data: 22 sentences to learn from, 20 to evaluate on."""

    def part(name: str) -> Parses:
        files = (folder / f"rank_{name}.{kind}.xz" for kind in ("features", "labels", "qids"))
        features, labels, qids = (lzma.decompress(path.read_bytes()).decode() for path in files)
        entries = [[pair.split(":") for pair in line.split()] for line in features.splitlines()]
        rows = np.repeat(np.arange(len(entries)), [len(line) for line in entries])
        columns, values = np.array([pair for line in entries for pair in line], dtype=float).T
        X = sparse.csr_array((values, (rows, columns.astype(int))), shape=(len(entries), 195_101))
        return Parses(X, np.array(labels.split(), float), np.array(qids.split()))

    train, test = part("train"), part("test")
    rows = []
    for name, options in {**PAPER, "RankRLS, defaults": {}}.items():
        tau = correlations(RankRLS(scoring="kendall_tau_b", **options), train, test)
        tau = tau[~np.isnan(tau)]
        rows.append(
            [name, f"{tau.mean():.3f} ± {stats.t.ppf(0.975, len(tau) - 1) * stats.sem(tau):.3f}", str(len(tau))]
        )
    title = f"BioInfer excerpt: {len(train.y)} parses to learn from, {len(test.y)} to judge:"
    table(["model", "mean tau-b, ± 95 % interval over sentences", "sentences"], rows, title)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds parse-ranking-genia")
    parser.add_argument("--parts", nargs="+", default=["linear", "wide", "gaussian", "walks", "bioinfer"])
    arguments = parser.parse_args()
    print(machine())
    genia, excerpt = (arguments.data / f"parse-ranking-{name}" for name in ("genia", "bioinfer-excerpt"))
    leave_out = {"cv": "leave-query-out"}
    rows = {**PAPER, "RankRLS, defaults": leave_out, "half RLS, half RankRLS": {"regression": 0.5, **leave_out}}
    if {"linear", "gaussian"} & set(arguments.parts):
        data = read(genia, 200)
        print(f"\n{100 * between(data):.0f} % of the variance of F1 is between sentences.")
        if "linear" in arguments.parts:
            compare(f"Linear, {data.X.shape[1]} features", data, rows)
        if "gaussian" in arguments.parts:
            kernel = {"kernel": Gaussian(gamma="auto"), "basis": RandomRows(500)}
            kernels = {name: {**options, **kernel} for name, options in PAPER.items()}
            compare("Gaussian kernel, 500 random basis parses", data, kernels)
    if "wide" in arguments.parts:
        data = read(genia, 500)
        wide = {name: {**options, **leave_out} for name, options in rows.items()}
        compare(f"Linear, {data.X.shape[1]} features, alpha by leave-query-out", data, wide)
    if "walks" in arguments.parts:
        data = read_walks(genia, Walks())
        kernel = {"kernel": "linear", "basis": RandomRows(500)}
        compare(
            "Walk kernel of parse graphs, 500 random basis parses", data, {n: {**o, **kernel} for n, o in PAPER.items()}
        )
    if "bioinfer" in arguments.parts and excerpt.is_dir():
        bioinfer(excerpt)


if __name__ == "__main__":
    main()
