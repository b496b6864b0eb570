"""Figure 1 of [Tsivtsivadze10], error by the number of unscored parses, and how a fit scales; printed as Markdown.

All scored sentences of a repetition, alpha and nu > 0 chosen by five folds with 4,000 unscored parses, then 1,000 to
4,000 of them, each number drawn five times; 0 means nu = 0 with an alpha of its own. DIR of --data DIR holds
parse-ranking-genia, and parse-ranking-genia-30 for 30 parses per sentence (see `benchmarks.papers.candidates`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.measure import machine, measure
from benchmarks.papers import genia
from benchmarks.papers.corankrls_table import BASIS, HOW
from benchmarks.papers.figures import band, gain, mean, panels, table
from benchmarks.papers.genia import COLUMNS, Parses
from rankrls import CoRankRLS, View
from rankrls.kernels import Walks
from rankrls.metrics import per_query

SIZES, DRAWS = (0, 1000, 2000, 3000, 4000), 5
ROWS = (100_000, 200_000, 400_000, 1_000_000)


def of_basis(train: Parses, number: int) -> list[View]:
    points = train.X[np.random.default_rng(number).permutation(len(train.y))[: 2 * BASIS]]
    return [View(None, "linear", points[:BASIS]), View(None, "linear", points[BASIS:])]


def of_columns(train: Parses, number: int) -> list[View]:
    """Link types and parts of speech, linear."""
    return [View(slice(0, COLUMNS)), View(slice(COLUMNS, None))]


def curve(data: Parses, n_scored: int, views_of: Callable[[Parses, int], list[View]], repetitions: int) -> np.ndarray:
    """(repetitions, sizes) mean error over draws of the unscored parses."""
    found = np.empty((repetitions, len(SIZES)))
    for number, sentences, test in genia.splits(data, repetitions):
        scored = sentences[:n_scored]
        pool = np.setdiff1d(np.unique(data.qid), np.concatenate([scored, np.unique(test.qid)]))
        views = views_of(data.of(sentences), number)
        chosen = fitted(CoRankRLS(views=views, **HOW), drawn(data, scored, pool, SIZES[-1], 0), scored)
        best = 1 + int(chosen.cv_scores_[1:].max(axis=1).argmax())
        for column, size in enumerate(SIZES):
            k, draws = (best, DRAWS) if size else (0, 1)
            model = CoRankRLS(chosen.alphas_[chosen.cv_scores_[k].argmax()], chosen.nus_[k], views=views, **HOW)
            some = [drawn(data, scored, pool, max(size, 40), seed) for seed in range(draws)]
            found[number, column] = np.mean([judged(fitted(model, rows, scored), test) for rows in some])
    return found


def drawn(data: Parses, scored: np.ndarray, pool: np.ndarray, size: int, seed: int) -> Parses:
    """Scored sentences, and as many others as are needed for the parses."""
    n = round(size / np.mean(np.bincount(data.qid)))
    return data.of(np.concatenate([scored, np.random.default_rng(seed).permutation(pool)[:n]]))


def fitted(model: CoRankRLS, rows: Parses, scored: np.ndarray) -> CoRankRLS:
    return model.fit(rows.X, rows.scored_only_in(scored), qid=rows.qid)


def judged(model: CoRankRLS, test: Parses) -> float:
    scores = model.predict(test.X)
    return float(np.nanmean(per_query("disagreement_error", test.y, scores, test.qid, convention="papers")))


def draw(found: dict[str, np.ndarray], folder: Path) -> None:
    """Error by unscored parses, and the reduction compared with none, in the same repetitions."""
    figure, axes = panels(1, 2, (9, 3.4))
    for name, errors in found.items():
        band(axes[0, 0], SIZES, errors, marker="o", markersize=3, label=name)
        band(axes[0, 1], SIZES, 1000 * (errors[:, :1] - errors), marker="o", markersize=3)
    axes[0, 0].set(xlabel="unscored parses", ylabel="disagreement error", xticks=SIZES)
    axes[0, 1].set(xlabel="unscored parses", ylabel="gain by them, thousandths", xticks=SIZES)
    axes[0, 1].axhline(0, color="0.7", linewidth=0.8, zorder=0)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=3, frameon=False, fontsize=7)
    figure.subplots_adjust(bottom=0.26, left=0.09, right=0.98, top=0.96, wspace=0.25)
    figure.savefig(folder / "corankrls-curve.png")


def scaling() -> None:
    """Time and memory of a fit by the number of unscored rows; 120 pairs of alpha and nu are judged in each."""
    rng = np.random.default_rng(0)
    m, scored, rows = max(ROWS) + 1000, 1000, []
    X, qid = rng.normal(size=(m, 20)).astype(np.float32), np.arange(m) // 20
    y = np.where(np.arange(m) < scored, X[:, :3].sum(axis=1) + rng.normal(size=m), np.nan)
    for size in ROWS:
        some = slice(0, scored + size)
        model, start = CoRankRLS(basis=200, random_state=0), time.process_time()
        taken = measure(lambda some=some, model=model: model.fit(X[some], y[some], qid=qid[some]), repeat=1)
        cpu = time.process_time() - start
        rows.append([f"{size:,}", f"{cpu:.1f}", f"{cpu / size * 100_000:.2f}", f"{taken.megabytes:.0f}"])
    head = ["unscored rows", "CPU seconds", "CPU seconds per 100,000", "peak MB beyond the data"]
    table(head, rows, "A fit of 1,000 scored rows of 20 columns, two views of 200 basis rows, alpha and nu chosen:")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that holds parse-ranking-genia")
    parser.add_argument("--repetitions", type=int, default=genia.REPETITIONS)
    parser.add_argument("--parts", nargs="*", default=["curve", "scaling"])
    parser.add_argument("--png", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    print(machine())
    if "curve" in arguments.parts:
        (parses, folder), n = max(genia.folders(arguments.data).items()), arguments.repetitions
        counts = genia.with_parses(genia.read(folder), parses)
        walks = genia.with_parses(genia.read_walks(folder, Walks()), parses)
        found = {
            "20 + 20 parses, walk kernel, 250 scored sentences": curve(walks, 250, of_basis, n),
            "20 + 20 parses, counts, 250 scored sentences": curve(counts, 250, of_basis, n),
            "views by columns, 25 scored sentences": curve(counts, 25, of_columns, n),
        }
        head, how = ["views", *map(str, SIZES)], f"{n} repetitions, {parses} parses of a sentence, ± 95 % interval"
        rows = [[name, *(mean(column) for column in errors.T)] for name, errors in found.items()]
        table(head, rows, f"Error by unscored parses, {how}:")
        rows = [[name, *(gain(errors[:, 0], column) for column in errors.T[1:])] for name, errors in found.items()]
        table(
            [head[0], *head[2:]],
            rows,
            "How much smaller than without them, in thousandths, in the same repetitions; p:",
        )
        if arguments.png is not None:
            draw(found, arguments.png)
    if "scaling" in arguments.parts:
        scaling()


if __name__ == "__main__":
    main()
