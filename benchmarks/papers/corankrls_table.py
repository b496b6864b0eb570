"""Table 1 of [Tsivtsivadze10] by its own measure: RankRLS and Sparse Co-RankRLS on parse ranking, as Markdown.

The error counts pairs of equal score too (equation 1), every pair weighs the same, alpha and nu are chosen by five
folds of scored sentences, and Wilcoxon's test sets Co-RankRLS beside RankRLS, not beside views without agreement. Only
sentences with at least --parses candidates count, cut to that many; GENIA has at most 20, the paper took 30.

    python -m benchmarks.papers.corankrls_table --data DIR [--quick]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.measure import machine
from benchmarks.papers.corankrls_genia import N_TRAIN, Parses, read, splits
from rankrls import CoRankRLS, RankRLS
from rankrls.metrics import per_query

BASIS = 20
PAPER = {"RankRLS": "0.348", "Sparse Co-RankRLS": "0.326"}


def cut(data: Parses, parses: int) -> Parses:
    """The first candidates of sentences that have as many, numbered anew."""
    place = np.concatenate([np.arange(n) for n in np.bincount(data.qid)])
    enough = np.bincount(data.qid)[data.qid] >= parses
    keep = enough & (place < parses)
    return Parses(data.X[keep], data.y[keep], np.unique(data.qid[keep], return_inverse=True)[1])


def errors(data: Parses, repetitions: int) -> dict[str, np.ndarray]:
    """(repetitions, sentences) errors of each model on the same test sentences."""
    found: dict[str, list[np.ndarray]] = {}
    for number, sentences, test in splits(data):
        if number >= repetitions:
            break
        half = sentences[: N_TRAIN // 2]
        train, scored = data.of(sentences), data.of(half)
        how = {"kernel": "cosine", "weighting": "pairs", "tied_pairs": True, "cv": 5}
        co = CoRankRLS(basis=BASIS, random_state=number, **how).fit(train.X, train.scored_only_in(half), qid=train.qid)
        alone = CoRankRLS(nu=0.0, basis=BASIS, random_state=number, **how)
        alone.fit(train.X, train.scored_only_in(half), qid=train.qid)
        points = [view.points for view in co.views_]
        models = {
            "RankRLS": RankRLS(basis=points[0], scale=None, **how),
            f"RankRLS, the {2 * BASIS} of both views": RankRLS(basis=np.vstack(points), scale=None, **how),
        }
        fitted = {name: model.fit(scored.X, scored.y, qid=scored.qid) for name, model in models.items()}
        for name, model in {**fitted, "two views, nu = 0": alone, "Sparse Co-RankRLS": co}.items():
            scores = model.predict(test.X)
            judged = per_query("disagreement_error", test.y, scores, test.qid, convention="papers")
            found.setdefault(name, []).append(judged)
    return {name: np.array(runs) for name, runs in found.items()}


def interval(runs: np.ndarray) -> str:
    """Mean and 95 % interval over repetitions, which are draws of sentences and of basis parses."""
    means = np.nanmean(runs, axis=1)
    if len(means) < 2:
        return f"{means.mean():.4f}"
    half = stats.t.ppf(0.975, len(means) - 1) * stats.sem(means)
    return f"{means.mean():.4f} ± {half:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that holds parse-ranking-genia")
    parser.add_argument("--parses", type=int, default=20, help="candidates of each sentence")
    parser.add_argument("--quick", action="store_true", help="two repetitions instead of five")
    arguments = parser.parse_args()
    print(machine())
    data = cut(read(arguments.data / "parse-ranking-genia"), arguments.parses)
    found = errors(data, 2 if arguments.quick else 5)
    rank = found["RankRLS"].mean(axis=0)
    print(f"\n{len(np.unique(data.qid)):,} sentences of {arguments.parses} parses.\n")
    print("| model | paper | ours, 95 % interval | p against RankRLS |\n|---|---|---|---|")
    for name, runs in found.items():
        gain = runs.mean(axis=0) - rank
        p = f"{stats.wilcoxon(gain[~np.isnan(gain)]).pvalue:.1g}" if np.nansum(np.abs(gain)) else ""
        print(f"| {name} | {PAPER.get(name, '')} | {interval(runs)} | {p} |")


if __name__ == "__main__":
    main()
