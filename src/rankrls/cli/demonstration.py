"""`make demo`: the library's main job on embedded data, start to finish."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..datasets import RankingData, make_search
from ..estimators import ConditionalRankRLS, RankRLS
from ..kernels import Gaussian
from ..metrics import get_metric

PICTURE = "demo-digits.png"
UNSEEN = (3, 6, 9)  # digits of which no image is in training
METRICS = ["pairwise_accuracy", "ndcg@10", "average_precision", "reciprocal_rank"]


@contextmanager
def step(text: str) -> Iterator[None]:
    """A line that says what is going on, and how long it took."""
    print(f"  {text} ...", end=" ", flush=True)
    start = time.perf_counter()
    yield
    print(f"{time.perf_counter() - start:.2f} s", flush=True)


def split(data: RankingData, share: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    """Rows for training and for testing, whole queries each."""
    queries = np.unique(data.qid)
    train = np.isin(data.qid, queries[: int(share * len(queries))])
    return np.flatnonzero(train), np.flatnonzero(~train)


def main() -> int:
    print("rankrls: learning to rank in closed form\n")
    search()
    digits()
    return 0


def search() -> None:
    """Documents of queries."""
    print("1. Documents of a query, by RankRLS\n")
    with step("generating a search log"):
        data = make_search(600, mean_documents=25, random_state=0)
        train, test = split(data)
    X, y, qid = data.X, data.y, data.qid
    print(f"    {len(y)} documents, {len(set(qid))} queries, {len(data.feature_names)} features, grades 0 to 4\n")

    ranker = make_pipeline(StandardScaler(), RankRLS(tied_pairs="auto"))
    with step("RankRLS: 15 alphas, tied pairs in or out, exact leave-query-out"):
        ranker.fit(X[train], y[train], rankrls__qid=qid[train])
    model = ranker[-1]
    print(
        f"    {2 * len(model.alphas_) * model.n_queries_:,} refits in closed form; {model.n_pairs_:,} pairs, none built"
    )
    print(f"    chose alpha = {model.alpha_:.3g}, tied pairs {'in' if model.tied_pairs_ else 'out'}\n")
    show_curve(model)

    baseline = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 15)))
    with step("baseline: ridge regression on the grades, query ignored"):
        baseline.fit(X[train], y[train])

    print(f"\n  {'on held-out queries':<22}{'RankRLS':>10}{'regression':>13}")
    for name in METRICS:
        metric = get_metric(name)
        ours, theirs = (metric(y[test], m.predict(X[test]), qid[test]) for m in (ranker, baseline))
        print(f"  {name:<22}{ours:>10.4f}{theirs:>13.4f}")

    show_query(ranker, data, test)


def show_curve(model: RankRLS) -> None:
    """Held-out pairwise accuracy over alpha, as bars."""
    low, high = model.cv_scores_.min(), model.cv_scores_.max()
    print("    alpha      held-out pairwise accuracy")
    for alpha, score in zip(model.alphas_[::2], model.cv_scores_[::2], strict=True):
        bar = "#" * int(1 + 29 * (score - low) / max(high - low, 1e-12))
        print(f"    {alpha:<10.3g} {score:.4f} {bar}")
    print()


def show_query(ranker, data: RankingData, test: np.ndarray) -> None:
    """The ranking of one query that no model has seen, and why its first document is first."""
    sizes = {q: int((data.qid[test] == q).sum()) for q in np.unique(data.qid[test])}
    query = next(q for q, size in sizes.items() if 6 <= size <= 10 and np.ptp(data.y[data.qid == q]) > 1)
    rows = np.flatnonzero(data.qid == query)
    scores = ranker.predict(data.X[rows])
    print(f"\n  the ranking of query {query}\n    rank  score  grade  bm25_title  embedding_cosine  click_rate")
    columns = [data.feature_names.index(name) for name in ("bm25_title", "embedding_cosine", "click_rate")]
    order = np.argsort(-scores)
    for rank, i in enumerate(order, start=1):
        title, cosine, clicks = data.X[rows[i], columns]
        print(f"    {rank:>4} {scores[i]:>6.2f} {data.y[rows[i]]:>6.0f} {title:>11.1f} {cosine:>17.2f} {clicks:>11.3f}")
    scaled = ranker[0].transform(data.X[rows])
    why = ranker[-1].explain(scaled[order[0]], scaled[order[1]])
    print("\n  why the first is above the second")
    for j in np.argsort(-np.abs(why))[:4]:
        print(f"    {data.feature_names[j]:<18}{why[j]:+.3f}")


def digits() -> None:
    """Images of digits for an image: which show the same?"""
    print("\n2. Images for an image, by ConditionalRankRLS\n")
    images, digit = load_digits(return_X_y=True)
    X, same = images / 16, lambda rows: (digit[rows][:, None] == digit[rows]).astype(float)
    rng = np.random.default_rng(0)
    seen = rng.permutation(np.flatnonzero(~np.isin(digit, UNSEEN)))
    train, known, new = seen[:600], seen[600:900], rng.permutation(np.flatnonzero(np.isin(digit, UNSEEN)))[:300]
    model = ConditionalRankRLS(relation="symmetric")
    with step(f"{len(train)} images of the digits other than {UNSEEN}, a complete graph: 15 alphas, 5 folds of images"):
        model.fit(X[train], same(train))
    print(f"    {model.n_edges_:,} edges; chose alpha = {model.alpha_:.3g}\n")
    print(f"  {'pairwise accuracy on':<36}{'learned':>10}{'similarity':>13}")
    for name, rows in (("new images of the same digits", known), (f"digits never seen: {UNSEEN}", new)):
        truth = same(rows)
        np.fill_diagonal(truth, np.nan)  # an image is not asked for itself
        asked = ~np.isnan(truth)
        accuracy = lambda scores, truth=truth, asked=asked: get_metric("pairwise_accuracy")(
            truth[asked], scores[asked], np.nonzero(asked)[0]
        )
        print(
            f"  {name:<36}{accuracy(model.predict(X[rows])):>10.4f}{accuracy(Gaussian(0.05)(X[rows], X[rows])):>13.4f}"
        )
    print("  What makes two digits alike carries over to digits never seen, but seven classes teach less of it than")
    print("  pixels know: with few classes, compare with plain similarity before you believe a learned one.")
    draw(model, X, digit, new)


def draw(model: ConditionalRankRLS, X: np.ndarray, digit: np.ndarray, rows: np.ndarray, top: int = 12) -> None:
    """For some images of digits never seen, the images ranked first among the others."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\n  no picture: install matplotlib (pip install 'rankrls[plot]')")
        return
    queries = [rows[digit[rows] == d][i] for d in UNSEEN for i in (0, 1)]
    figure = Figure(figsize=(0.62 * (top + 2), 0.72 * len(queries) + 0.5), layout="constrained")
    axes = figure.subplots(len(queries), top + 2)
    for line, query in zip(axes, queries, strict=True):
        others = rows[rows != query]
        first = others[model.rank(X[query], X[others], top=top).ids]
        for axis, i in zip(line, [query, None, *first], strict=True):
            axis.set_axis_off()
            if i is not None:
                axis.imshow(X[i].reshape(8, 8), cmap="gray_r" if digit[i] == digit[query] else "Reds")
    figure.suptitle(
        "query, and the images ranked first for it; wrong ones in red. No such digit was in training.", fontsize=9
    )
    figure.savefig(PICTURE, dpi=110)
    print(f"\n  {PICTURE}: for each of {len(queries)} images of digits never seen, the {top} ranked first")


if __name__ == "__main__":
    sys.exit(main())
