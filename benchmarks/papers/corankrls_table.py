"""Table 1 of [Tsivtsivadze10]: RankRLS and Sparse Co-RankRLS on parse ranking, printed as Markdown.

As in the paper, the error also counts pairs of equal score (equation 1), every pair has the same weight, alpha and nu
are chosen by five folds of sentences, there are two views of 20 random basis parses and five repetitions, and
Wilcoxon's test over test sentences compares Co-RankRLS with RankRLS. Sentences have the paper's 30 parses if DIR of
--data DIR holds parse-ranking-genia-30 (see `benchmarks.papers.candidates`), and 20 in parse-ranking-genia; sentences
with fewer are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.measure import machine
from benchmarks.papers import genia
from benchmarks.papers.figures import mean, table, wilcoxon
from benchmarks.papers.genia import N_TRAIN, Parses
from rankrls import CoRankRLS, RankRLS, View
from rankrls.kernels import Walks
from rankrls.metrics import per_query

BASIS = 20
PAPER = {"RankRLS, 20 basis parses": "0.348", "Sparse Co-RankRLS": "0.326"}
HOW = {"weighting": "pairs", "tied_pairs": True, "cv": 5}


def errors(data: Parses, repetitions: int) -> tuple[dict[str, np.ndarray], list[str]]:
    """(repetitions, sentences) errors of each model on the same test sentences; and nu in its unit."""
    found: dict[str, list[np.ndarray]] = {}
    chosen = []
    for number, sentences, test in genia.splits(data, repetitions):
        train, scored = data.of(sentences), data.of(sentences[: N_TRAIN // 2])
        y = train.scored_only_in(sentences[: N_TRAIN // 2])
        points = train.X[np.random.default_rng(number).permutation(len(train.y))[: 2 * BASIS]]
        views = [View(None, "linear", points[:BASIS]), View(None, "linear", points[BASIS:])]
        models = {
            "RankRLS, 20 basis parses": RankRLS(kernel="linear", basis=points[:BASIS], scale=None, **HOW),
            "RankRLS, the 40 of both views": RankRLS(kernel="linear", basis=points, scale=None, **HOW),
            "two views, nu = 0": CoRankRLS(nu=0.0, views=views, **HOW),
            "Sparse Co-RankRLS": CoRankRLS(views=views, **HOW),
        }
        for name, model in models.items():
            if isinstance(model, CoRankRLS):
                model.fit(train.X, y, qid=train.qid)
            else:
                model.fit(scored.X, scored.y, qid=scored.qid)
            scores = model.predict(test.X)
            judged = per_query("disagreement_error", test.y, scores, test.qid, convention="papers")
            found.setdefault(name, []).append(judged)
        chosen.append(f"{model.nu_ / model.nus_[1] / 1e3:.3g}" if model.nu_ else "0")
    return {name: np.array(runs) for name, runs in found.items()}, chosen


def report(title: str, data: Parses, repetitions: int) -> None:
    found, chosen = errors(data, repetitions)
    rank = found["RankRLS, 20 basis parses"].mean(axis=0)
    rows = [
        [name, PAPER.get(name, ""), mean(np.nanmean(runs, axis=1)), wilcoxon(runs.mean(axis=0), rank)]
        for name, runs in found.items()
    ]
    head = ["model", "paper", "ours, ± 95 % interval over repetitions", "p against RankRLS"]
    table(head, rows, f"{title}, {len(np.unique(data.qid)):,} sentences:")
    print(f"nu chosen in each repetition, 1 where agreement weighs as the loss: {', '.join(chosen)}.\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that holds parse-ranking-genia")
    parser.add_argument("--repetitions", type=int, default=genia.REPETITIONS)
    arguments = parser.parse_args()
    print(machine())
    for parses, folder in sorted(genia.folders(arguments.data).items(), reverse=True):
        walks = genia.with_parses(genia.read_walks(folder, Walks()), parses)
        report(f"Walk kernel of parse graphs, {parses} parses each", walks, arguments.repetitions)
        counts = genia.with_parses(genia.read(folder), parses)
        report(f"Counts of link types and parts of speech, {parses} parses each", counts, arguments.repetitions)


if __name__ == "__main__":
    main()
