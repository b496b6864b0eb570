"""Does unscored data help? Sparse Co-RankRLS on parse ranking after [Tsivtsivadze10], printed as Markdown.

DIR of --data DIR holds the folder parse-ranking-genia; docs/reproductions/corankrls.md has what followed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse, stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from benchmarks.measure import machine, measure
from rankrls import CoRankRLS, RankRLS, View
from rankrls.metrics import per_query

REPETITIONS = 5
N_TEST, N_TRAIN = 600, 500
COLUMNS = 200  # of each kind of features, the most frequent ones


@dataclass(frozen=True)
class Parses:
    """Candidate parses; the sentence is the query and F1 against the gold dependencies the score."""

    X: np.ndarray  # (m, 2 COLUMNS): link types, then parts of speech
    y: np.ndarray
    qid: np.ndarray

    def of(self, sentences: np.ndarray) -> Parses:
        rows = np.isin(self.qid, sentences)
        return Parses(self.X[rows], self.y[rows], self.qid[rows])

    def scored_only_in(self, sentences: np.ndarray) -> np.ndarray:
        """y, NaN in other sentences."""
        return np.where(np.isin(self.qid, sentences), self.y, np.nan)


def link_types(sentence: dict, parse: dict) -> Iterator[str]:
    """Labels of links, whole and without their subscripts, and with the distance they span."""
    for left, right, label in parse["links"]:
        kind = "".join(filter(str.isupper, label))
        yield from (f"{kind}", f"={label}", f"{kind} {min(right - left, 8)}")


def parts_of_speech(sentence: dict, parse: dict) -> Iterator[str]:
    """Parts of speech at the ends of links, alone and with the distance, and the distance."""
    for left, right, _ in parse["links"]:
        ends = f"{sentence['pos'][left]} {sentence['pos'][right]}"
        yield from (ends, f"{ends} {min(right - left, 8)}", f"{min(right - left, 15)}")


def read(folder: Path, columns: int = COLUMNS) -> Parses:
    """Counts of the most frequent features of both kinds, each scaled to norm 1; y is F1 against the gold parse."""
    sentences: list[dict] = []
    for path in sorted(folder.glob("genia-*.jsonl.xz")):
        with lzma.open(path, "rt") as lines:
            sentences += map(json.loads, lines)
    pairs = [(sentence, parse) for sentence in sentences for parse in sentence["parses"]]
    blocks = []
    for kind in (link_types, parts_of_speech):
        counts = CountVectorizer(analyzer=lambda pair, kind=kind: kind(*pair), max_features=columns)
        blocks.append(normalize(counts.fit_transform(pairs).astype(float)))
    lengths = [len(sentence["parses"]) for sentence in sentences]
    y = np.array([parse["f1"] for _, parse in pairs])
    return Parses(sparse.hstack(blocks).toarray(), y, np.repeat(np.arange(len(sentences)), lengths))


def splits(data: Parses) -> Iterator[tuple[int, np.ndarray, Parses]]:
    """(number, training sentences, test parses): the same test sentences in every repetition."""
    order = np.random.default_rng(0).permutation(int(data.qid.max()) + 1)
    test, pool = data.of(order[:N_TEST]), order[N_TEST:]
    for number in range(REPETITIONS):
        yield number, np.random.default_rng(number).permutation(pool)[:N_TRAIN], test


def errors(model: RankRLS | CoRankRLS, test: Parses) -> np.ndarray:
    """(sentences,) disagreement error of each test sentence."""
    return per_query("disagreement_error", test.y, model.predict(test.X), test.qid)


def compare(title: str, rows: dict[str, list[np.ndarray]], reference: str) -> None:
    """Mean error of each model, and the Wilcoxon test over sentences against one of them."""
    print(f"\n### {title}\n\n| model | error | sd over repetitions | p against {reference} |\n|---|---|---|---|")
    means = {name: np.mean(runs, axis=0) for name, runs in rows.items()}
    for name, runs in rows.items():
        defined = ~np.isnan(means[name])
        p = "" if name == reference else f"{stats.wilcoxon(means[name][defined], means[reference][defined]).pvalue:.2g}"
        over_runs = np.nanmean(runs, axis=1)
        print(f"| {name} | {over_runs.mean():.4f} | {over_runs.std(ddof=1):.4f} | {p} |")


def unit(model: CoRankRLS) -> str:
    """The chosen nu in the unit of the default grid, in which agreement weighs as much as the loss."""
    return f"{model.nu_ / model.nus_[1] / 1e3:.3g}" if model.nu_ else "0"


def paper_table(data: Parses, basis: int) -> None:
    """Two views of random basis parses against RankRLS; alpha and nu by leave-sentence-out over the scored half."""
    rows: dict[str, list[np.ndarray]] = {}
    chosen = []
    for number, sentences, test in splits(data):
        train, scored = data.of(sentences), data.of(sentences[: N_TRAIN // 2])
        y = train.scored_only_in(sentences[: N_TRAIN // 2])
        co = CoRankRLS(kernel="cosine", basis=basis, random_state=number).fit(train.X, y, qid=train.qid)
        alone = CoRankRLS(nu=0.0, views=[View(None, "cosine", view.points) for view in co.views_])
        alone.fit(train.X, y, qid=train.qid)
        points = [view.points for view in co.views_]
        models = {
            f"RankRLS, the {basis} of one view": RankRLS(kernel="cosine", basis=points[0]),
            f"RankRLS, the {2 * basis} of both": RankRLS(kernel="cosine", basis=np.vstack(points)),
            "RankRLS, all scored parses": RankRLS(),  # all rows have the same norm: the cosine kernel, up to a factor
        }
        for name, model in models.items():
            rows.setdefault(name, []).append(errors(model.fit(scored.X, scored.y, qid=scored.qid), test))
        rows.setdefault("mean of the views, nu = 0", []).append(errors(alone, test))
        rows.setdefault("Sparse Co-RankRLS", []).append(errors(co, test))
        chosen.append(unit(co))
    compare(
        f"Two views of {basis} random parses, {N_TRAIN // 2} scored and {N_TRAIN // 2} unscored sentences",
        rows,
        "mean of the views, nu = 0",
    )
    print(f"\nnu chosen in the {REPETITIONS} repetitions (1: agreement weighs as the loss): {', '.join(chosen)}.")


def curve(name: str, data: Parses, n_scored: int, model: Callable[[int], CoRankRLS]) -> None:
    """Error by the number of unscored parses; alpha and nu > 0 chosen once for each repetition (none: nu = 0)."""
    sizes = (0, 1000, 2000, 3000, 4000)
    table = np.empty((REPETITIONS, len(sizes)))
    for number, sentences, test in splits(data):
        train = data.of(sentences)
        y = train.scored_only_in(sentences[:n_scored])
        full = model(number).fit(train.X, y, qid=train.qid)
        best = full.cv_scores_[1:].max(axis=1).argmax() + 1
        views = [View(view.columns, view.kernel, view.points) for view in full.views_]
        unscored = np.random.default_rng(number).permutation(np.flatnonzero(np.isnan(y)))
        for column, size in enumerate(sizes):
            keep = ~np.isnan(y)
            keep[unscored[: size or None]] = True  # with nu = 0 they have no part in the model
            k = best if size else 0
            fixed = CoRankRLS(full.alphas_[full.cv_scores_[k].argmax()], full.nus_[k], views=views)
            fixed.fit(train.X[keep], y[keep], qid=train.qid[keep])
            table[number, column] = np.nanmean(errors(fixed, test))
    print(f"| {name} | " + " | ".join(f"{error:.4f}" for error in table.mean(axis=0)) + " |")


def by_columns() -> list[View]:
    return [View(slice(0, COLUMNS)), View(slice(COLUMNS, None))]


def column_views(data: Parses, n_scored: int) -> None:
    """Two descriptions of a parse, link types and parts of speech, few scored sentences."""
    rows: dict[str, list[np.ndarray]] = {}
    chosen = []
    for _, sentences, test in splits(data):
        train, scored = data.of(sentences), data.of(sentences[:n_scored])
        y = train.scored_only_in(sentences[:n_scored])
        co = CoRankRLS(views=by_columns()).fit(train.X, y, qid=train.qid)
        alone = CoRankRLS(nu=0.0, views=by_columns()).fit(train.X, y, qid=train.qid)
        both = RankRLS().fit(scored.X, scored.y, qid=scored.qid)
        for name, model in (("RankRLS, all columns", both), ("mean of the views, nu = 0", alone), ("Co-RankRLS", co)):
            rows.setdefault(name, []).append(errors(model, test))
        chosen.append(unit(co))
    compare(f"Views by columns, {n_scored} scored sentences", rows, "mean of the views, nu = 0")
    print(f"\nnu chosen: {', '.join(chosen)}.")


def scaling() -> None:
    """Time and memory of a fit by the number of unscored rows; 120 pairs of alpha and nu are judged in each."""
    head = "| unscored rows | seconds | CPU seconds | CPU seconds per 100,000 | peak MB beyond the data |"
    print(f"\n### Unscored rows\n\n{head}\n" + "|---" * 5 + "|")
    rng = np.random.default_rng(0)
    m, scored = 1_001_000, 1000
    X, qid = rng.normal(size=(m, 20)).astype(np.float32), np.arange(m) // 20
    y = np.where(np.arange(m) < scored, X[:, :3].sum(axis=1) + rng.normal(size=m), np.nan)
    for size in (100_000, 200_000, 400_000, 1_000_000):
        rows = slice(0, scored + size)
        model, start = CoRankRLS(basis=200, random_state=0), time.process_time()
        taken = measure(lambda rows=rows, model=model: model.fit(X[rows], y[rows], qid=qid[rows]), repeat=3)
        cpu = (time.process_time() - start) / 3
        figures = f"{taken.seconds:.1f} | {cpu:.1f} | {cpu / size * 100_000:.2f} | {taken.megabytes:.0f}"
        print(f"| {size:,} | {figures} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder that holds parse-ranking-genia")
    parser.add_argument("--parts", nargs="*", default=["paper", "curve", "columns", "scaling"])
    arguments = parser.parse_args()
    print(machine())
    if "scaling" in arguments.parts:
        scaling()
    if arguments.data is None:
        return
    data = read(arguments.data / "parse-ranking-genia")
    if "paper" in arguments.parts:
        for basis in (20, 100):
            paper_table(data, basis)
    if "curve" in arguments.parts:
        print(
            "\n### Error by the number of unscored parses\n\n| views | 0 | 1000 | 2000 | 3000 | 4000 |\n"
            + "|---" * 6
            + "|"
        )
        curve("20 random parses each", data, 250, lambda n: CoRankRLS(kernel="cosine", basis=20, random_state=n))
        curve("by columns, 25 scored sentences", data, 25, lambda n: CoRankRLS(views=by_columns()))
    if "columns" in arguments.parts:
        for n_scored in (10, 25, 100, 250):
            column_views(data, n_scored)


if __name__ == "__main__":
    main()
