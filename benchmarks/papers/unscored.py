"""Where do rows without scores help? Few scored queries, truly different views, clusters; printed as Markdown.

Every data set gives draws of scored, unscored and new queries (or rows of one ranking) and two views of each row.
Errors refer to new queries. Co-RankRLS chooses nu by hold-out of scored queries only; "best nu" is the single value of
nu that is best on the new queries themselves, over all draws: no choice without them could do better. Transduction is
judged on the unscored queries and compared with the inductive model at the same alpha. DIR of --data DIR holds
parse-ranking-genia, letor4-mq2008, mslr-web-fold1-5k, jester, usps and 20newsgroups.
"""

from __future__ import annotations

import argparse
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.defaults import less_skewed, read_rows, standardised
from benchmarks.measure import machine
from benchmarks.papers import conditional_newsgroups as newsgroups
from benchmarks.papers import genia, pursuit_jester
from benchmarks.papers.conditional_usps import read_usps
from benchmarks.papers.figures import gain, table
from rankrls import CoRankRLS, RankRLS, TransductiveRankRLS, View
from rankrls.metrics import disagreement_error

DRAWS = 20


@dataclass(frozen=True)
class Draw:
    """Rows (y is NaN if unscored), new rows, and two views; `transductive` has the parameters of transduction."""

    X: Any
    y: np.ndarray
    qid: np.ndarray | None
    new: Any
    new_y: np.ndarray
    new_qid: np.ndarray | None
    views: list[View]
    hidden: np.ndarray  # what y is where it is NaN
    transductive: dict[str, Any] | None = None


@dataclass(frozen=True)
class Source:
    """A data set: the numbers of scored rows, and draws."""

    name: str
    sizes: tuple[int, ...]
    draw: Callable[[int, int], Draw]  # scored, seed
    unit: str = "queries"
    times: int = 1  # as many draws


def by_queries(X: Any, y: np.ndarray, qid: np.ndarray, views: list[View], unscored: int, new: int, **transductive: Any):
    """Draws of whole queries."""
    ids = np.unique(qid)

    def draw(scored: int, seed: int) -> Draw:
        order = np.random.default_rng(seed).permutation(ids)
        given = np.flatnonzero(np.isin(qid, order[: scored + unscored]))
        test = np.flatnonzero(np.isin(qid, order[-new:]))
        known = np.where(np.isin(qid[given], order[:scored]), y[given], np.nan)
        return Draw(X[given], known, qid[given], X[test], y[test], qid[test], views, y[given], transductive)

    return draw


def by_rows(X: Any, targets: Callable[[int], np.ndarray], views: Callable[[int], list[View]], unscored: int, new: int):
    """Draws of rows of one ranking, a different one for each seed; some scored rows differ in y."""

    def draw(scored: int, seed: int) -> Draw:
        y, rng = targets(seed), np.random.default_rng(seed)
        order = rng.permutation(np.flatnonzero(~np.isnan(y)))
        while np.ptp(y[order[:scored]]) == 0:
            order = rng.permutation(order)
        given, test = order[: scored + unscored], order[scored + unscored :][:new]
        known = np.where(np.arange(len(given)) < scored, y[given], np.nan)
        return Draw(X[given], known, None, X[test], y[test], None, views(seed), y[given])

    return draw


# ---------------------------------------------------------------- data


def independent_views(scored: int, seed: int) -> Draw:
    """Quality plus larger independent noise in each view: what the views agree on is the quality."""
    rng = np.random.default_rng(seed)
    n, items, width = scored + 200 + 100, 10, 20
    quality = rng.normal(size=(n * items, 1))
    mixing = rng.normal(size=(2, 1 + width, width))
    halves = [np.hstack([quality, 2 * rng.normal(size=(n * items, width))]) @ M for M in mixing]
    X, y, qid = np.hstack(halves), quality[:, 0] + 0.3 * rng.normal(size=n * items), np.repeat(np.arange(n), items)
    views = [View(slice(0, width)), View(slice(width, None))]
    return by_queries(X, y, qid, views, 200, 100)(scored, seed)


def moons(scored: int, seed: int) -> Draw:
    """Two interleaved half circles, with good items on one of them: the clusters are visible without scores."""
    rng = np.random.default_rng(seed)
    n, items = scored + 60 + 60, 10
    good = rng.uniform(size=n * items) < 0.5
    angle = np.pi * rng.uniform(size=n * items)
    X = np.where(good[:, None], np.column_stack([np.cos(angle), np.sin(angle)]),
                 np.column_stack([1 - np.cos(angle), 0.5 - np.sin(angle)]))  # fmt: skip
    X = X + 0.08 * rng.normal(size=X.shape)
    views = [View(None, "rbf", 100), View(None, "laplacian", 100)]
    draw = by_queries(X, good.astype(float), np.repeat(np.arange(n), items), views, 60, 60, kernel="rbf", basis=150)
    return draw(scored, seed)


LINKS = [*(1, 6, 11, 16, 21, 26, 31, 36), *(3, 8, 13, 18, 23, 28, 33, 38), *range(40, 46)]  # anchor, URL, links


def web(data: Path) -> Iterator[Source]:
    """Search results: the text of a page in one view, anchors, URLs, links and, in MSLR, clicks in the other."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("letor4-mq2008", "mslr-web-fold1-5k"):
            for archive in (data / name).glob("*.tar.xz"):
                with tarfile.open(archive) as tar:
                    tar.extractall(Path(folder) / name, filter="data")
        mq = read_rows(Path(folder) / "letor4-mq2008/MQ2008/Querylevelnorm.txt")
        files = sorted((Path(folder) / "mslr-web-fold1-5k").rglob("*.5k.txt"))
        parts = [read_rows(path) for path in files]
    text = np.setdiff1d(np.arange(46), LINKS).tolist()
    labels = np.unique(mq[2], return_inverse=True)[1]
    differ = np.array([np.ptp(mq[1][labels == q]) > 0 for q in range(labels.max() + 1)])[labels]
    X, y, qid = (part[differ] for part in mq)
    yield Source("MQ2008: text, links", (2, 5, 10, 30), by_queries(X, y, qid, [View(text), View(LINKS)], 300, 150))
    X, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    qid = np.concatenate([1000 * k + np.unique(part[2], return_inverse=True)[1] for k, part in enumerate(parts)])
    views = [View(slice(0, 125)), View(slice(125, 136))]
    X = standardised(less_skewed(X))
    yield Source("MSLR: text, links and clicks", (2, 5, 10, 20), by_queries(X, y, qid, views, 40, 25))


def parses(data: Path) -> Iterator[Source]:
    found = genia.read(data / "parse-ranking-genia")
    views = [View(slice(0, genia.COLUMNS)), View(slice(genia.COLUMNS, None))]
    draw = by_queries(found.X, found.y, found.qid, views, 300, 300)
    yield Source("GENIA: link types, parts of speech", (2, 5, 10, 25), draw)


def jokes(data: Path) -> Iterator[Source]:
    """The jokes of one user; the views are two groups of other users who rated every joke."""
    ratings = pursuit_jester.read(data / "jester")
    everything = np.flatnonzero(~np.isnan(ratings).any(axis=1))
    order = np.random.default_rng(0).permutation(everything)
    X, users = ratings[order[:200]].T / 10, order[200:]  # (jokes, users)
    views = lambda seed: [View(slice(0, 100)), View(slice(100, 200))]
    draw = by_rows(X, lambda seed: ratings[users[seed]], views, 50, 40)
    yield Source("Jester: two groups of users", (5, 10), draw, "jokes of a user", times=10)


def digits(data: Path) -> Iterator[Source]:
    """Images of one digit above all others; the views are the left and the right half."""
    X, label = read_usps(data / "usps")
    left = (np.arange(256) % 16) < 8
    views = lambda seed: [View(np.flatnonzero(side).tolist(), "rbf", 100) for side in (left, ~left)]
    draw = by_rows(X, lambda seed: (label == seed % 10).astype(float), views, 500, 500)
    yield Source("USPS: left and right half", (10, 20, 50), draw, "images")


def documents(data: Path) -> Iterator[Source]:
    """Documents of one newsgroup, then of its kind, then others; the views are two halves of the words."""
    found = newsgroups.read(data / "20newsgroups").of(sum(newsgroups.SETS.values(), ()))
    groups = np.unique(found.group)
    X = newsgroups.tf_idf(found)
    frequent = np.argsort(-np.asarray((X > 0).sum(axis=0)).ravel())[:4000]
    X, kinds = X[:, np.random.default_rng(0).permutation(frequent)], newsgroups.Documents(X, found.group)
    first = np.array([np.flatnonzero(found.group == g)[0] for g in groups])
    relation = lambda seed: kinds.take(np.append(first[seed % len(groups)], np.arange(len(found.group)))).relation[
        0, 1:
    ]
    views = lambda seed: [View(slice(0, 2000)), View(slice(2000, None))]
    yield Source(
        "newsgroups: two halves of the words", (10, 20, 50), by_rows(X, relation, views, 300, 500), "documents"
    )


SOURCES: dict[str, Callable[[Path], Iterator[Source]]] = {
    "independent": lambda data: iter([Source("made: independent views", (2, 5, 10, 30), independent_views)]),
    "moons": lambda data: iter([Source("made: two half circles", (1, 2, 5), moons)]),
    "parses": parses,
    "web": web,
    "jokes": jokes,
    "digits": digits,
    "documents": documents,
}

# ---------------------------------------------------------------- models


def judged(draw: Draw) -> tuple[list[float], np.ndarray, list[float]]:
    """Errors of RankRLS, of views with the chosen nu and with every nu, and of induction and transduction."""
    known = ~np.isnan(draw.y)
    part = lambda values: None if values is None else values[known]
    error = lambda scores: float(disagreement_error(draw.new_y, scores, draw.new_qid))
    alone = RankRLS(random_state=0).fit(draw.X[known], draw.y[known], qid=part(draw.qid))
    co = CoRankRLS(views=draw.views, random_state=0).fit(draw.X, draw.y, qid=draw.qid)
    path = co.predict_path(draw.new)  # (new rows, nus, alphas)
    best = co.cv_scores_.argmax(axis=1)
    nus = np.array([error(path[:, k, best[k]]) for k in range(path.shape[1])])
    if draw.transductive is None:
        return [error(alone.predict(draw.new)), error(co.predict(draw.new))], nus, [np.nan, np.nan]
    model = TransductiveRankRLS(random_state=0, **draw.transductive).fit(draw.X, draw.y, qid=draw.qid)
    rest = lambda scores: float(disagreement_error(draw.hidden[~known], scores, draw.qid[~known]))
    both = [rest(model.inductive_.predict(draw.X[~known])), rest(model.transduction_[~known])]
    return [error(alone.predict(draw.new)), error(co.predict(draw.new))], nus, both


def study(source: Source, draws: int) -> list[list[str]]:
    rows = []
    for size in source.sizes:
        runs = [judged(source.draw(size, seed)) for seed in range(draws * source.times)]
        alone, co = np.array([run[0] for run in runs]).T
        width = min(len(run[1]) for run in runs)
        nus = np.array([run[1][:width] for run in runs])  # (draws, nus)
        inductive, transductive = np.array([run[2] for run in runs]).T
        best = int(nus.mean(axis=0).argmin())
        cells = [f"{alone.mean():.4f}", f"{nus[:, 0].mean():.4f}", gain(nus[:, 0], co), gain(nus[:, 0], nus[:, best])]
        cells += ["" if np.isnan(inductive).all() else gain(inductive, transductive)]
        rows.append([source.name, f"{size} {source.unit}", *cells])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder for each data set")
    parser.add_argument("--sources", nargs="*", choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument("--draws", type=int, default=DRAWS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of few rows
    print(machine())
    sources = [source for name in arguments.sources for source in SOURCES[name](arguments.data)]
    rows = [row for source in sources for row in study(source, arguments.draws)]
    errors, gains = ["error, RankRLS", "two views, nu = 0"], ["gain by agreement", "by the best nu", "by transduction"]
    head = ["data and views", "scored", *errors, *gains]
    draws = f"{arguments.draws} draws, of Jester ten times as many"
    title = f"Gains in thousandths of the error, ± 95 % interval over {draws}; p of Wilcoxon's test:"
    table(head, rows, title)


if __name__ == "__main__":
    main()
