"""`make demo`: the library's main job on built-in data, from start to finish."""

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
from ..metrics import get_metric, per_query
from ..metrics.functions import ndcg

PICTURE = "demo-digits.png"
METRICS = ["pairwise_accuracy", "ndcg@10", "average_precision", "reciprocal_rank"]
TODAY = "bm25_title"  # the feature by which a simple search ranks
WORDS = {  # feature names in plain words
    "bm25_title": "query words in the title",
    "bm25_body": "query words in the text",
    "title_overlap": "share of the query in the title",
    "embedding_cosine": "similar meaning",
    "click_rate": "clicked more often",
    "pagerank": "linked by others",
    "freshness_days": "age",
    "spam_score": "spam",
    "doc_length": "length",
}


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print what happens inside the block, and how long it took."""
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


# ---------------------------------------------------------------- documents of queries


def search() -> None:
    """Rank the documents of queries."""
    print("1. Documents of a query, by RankRLS\n")
    with step("generating a search log"):
        data = make_search(600, mean_documents=25, random_state=0)
        train, test = split(data)
    X, y, qid = data.X, data.y, data.qid
    print(f"    {len(y)} documents, {len(set(qid))} queries, {len(data.feature_names)} features, grades 0 to 4\n")

    model = RankRLS(tied_pairs="auto")
    with step("RankRLS: 15 alphas, tied pairs in or out, exact leave-query-out"):
        model.fit(X[train], y[train], qid=qid[train])
    print(
        f"    {2 * len(model.alphas_) * model.n_queries_:,} refits in closed form; {model.n_pairs_:,} pairs, none built"
    )
    print(f"    chose alpha = {model.alpha_:.3g}, tied pairs {'in' if model.tied_pairs_ else 'out'}\n")
    show_curve(model)

    baseline = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 15)))
    with step("baseline: ridge regression on the grades, query ignored"):
        baseline.fit(X[train], y[train])
    today = X[:, data.feature_names.index(TODAY)]

    print(f"\n  {'on held-out queries':<22}{'RankRLS':>12}{'regression':>12}{'BM25 alone':>12}")
    for name in METRICS:
        metric = get_metric(name)
        scores = (model.predict(X[test]), baseline.predict(X[test]), today[test])
        print(f"  {name:<22}" + "".join(f"{metric(y[test], s, qid[test]):>12.4f}" for s in scores))
    show_query(model, data, test, today)


def show_curve(model: RankRLS) -> None:
    """Held-out pairwise accuracy over alpha, as bars."""
    low, high = model.cv_scores_.min(), model.cv_scores_.max()
    print("    alpha      held-out pairwise accuracy")
    for alpha, score in zip(model.alphas_[::2], model.cv_scores_[::2], strict=True):
        bar = "#" * int(1 + 29 * (score - low) / max(high - low, 1e-12))
        print(f"    {alpha:<10.3g} {score:.4f} {bar}")
    print()


def show_query(model: RankRLS, data: RankingData, test: np.ndarray, today: np.ndarray) -> None:
    """One query that no model has seen, before and after, and why a document went up."""
    scores, y, qid = model.predict(data.X[test]), data.y[test], data.qid[test]
    queries = np.unique(qid)
    gains = per_query("ndcg@10", y, scores, qid) - per_query("ndcg@10", y, today[test], qid)
    better, worse = int((gains > 0).sum()), int((gains < 0).sum())
    print(
        f"\n  Of {len(queries)} new queries, {better} are ranked better than by BM25 and {worse} worse. "
        "The short one that gains most:\n"
    )
    sizes = {q: int((qid == q).sum()) for q in queries}
    usable = [i for i, q in enumerate(queries) if 8 <= sizes[q] <= 12 and np.isfinite(gains[i])]
    query = queries[max(usable, key=lambda i: gains[i])]
    rows = np.flatnonzero(data.qid == query)
    new, old = model.predict(data.X[rows]), today[rows]
    before, after = np.argsort(-old), np.argsort(-new)
    print(f"  the ranking of query {query}\n    {'place':<11}{'by BM25 of the title':<26}learned")
    for place, (b, a) in enumerate(zip(before, after, strict=True), start=1):
        print(f"    {place:<11}{_document(data, rows, b):<26}{_document(data, rows, a)}".rstrip())
    quality = [ndcg(data.y[rows], order, k=10) for order in (old, new)]
    print(f"    {'NDCG@10':<11}{quality[0]:<26.2f}{quality[1]:.2f}")
    show_reasons(model, data, rows, int(after[0]), int(before[0] if before[0] != after[0] else before[1]))


def _document(data: RankingData, rows: np.ndarray, i: int) -> str:
    grade = int(data.y[rows[i]])
    return f"{chr(65 + i)}  grade {grade} {'*' * grade}"


def show_reasons(model: RankRLS, data: RankingData, rows: np.ndarray, a: int, b: int) -> None:
    """Print which features speak for a document and which against it."""
    why = model.explain(data.X[rows[a]], data.X[rows[b]])
    print(f"\n  why the first is above {chr(65 + b)}, which BM25 prefers")
    for j in np.argsort(-np.abs(why))[:4]:
        name = data.feature_names[j]
        values = f"{data.X[rows[a], j]:.3g} against {data.X[rows[b], j]:.3g}"
        word = "for it    " if why[j] > 0 else "against it"
        print(f"    {why[j]:+.2f}  {word}  {WORDS.get(name, name.replace('_', ' '))} ({name}: {values})")


# ---------------------------------------------------------------- images for an image


def digits() -> None:
    """Find images that show the same digit as a given image."""
    print("\n2. Images for an image, by ConditionalRankRLS\n")
    images, digit = load_digits(return_X_y=True)
    X, same = images / 16, lambda rows: (digit[rows][:, None] == digit[rows]).astype(float)
    order = np.random.default_rng(0).permutation(len(X))
    train, new = order[:600], order[600:900]
    model = ConditionalRankRLS(relation="symmetric")
    with step(f"{len(train)} images, which of them show the same digit: 15 alphas, 5 folds of images"):
        model.fit(X[train], same(train))
    print(f"    {model.n_edges_:,} pairs; chose alpha = {model.alpha_:.3g}\n")
    truth = same(new)
    np.fill_diagonal(truth, np.nan)  # an image is not ranked for itself
    asked = ~np.isnan(truth)
    learned, plain = model.predict(X[new]), Gaussian(0.05)(X[new], X[new])
    print(f"  {'300 images that no model has seen':<36}{'learned':>10}{'similarity':>13}")
    accuracy = lambda scores: get_metric("pairwise_accuracy")(truth[asked], scores[asked], np.nonzero(asked)[0])
    print(f"  {'pairs in the right order':<36}{accuracy(learned):>10.1%}{accuracy(plain):>13.1%}")
    top = {name: _first(scores, 10) for name, scores in (("learned", learned), ("similarity", plain))}
    right = {name: float(np.mean(digit[new][rows] == digit[new][:, None])) for name, rows in top.items()}
    print(f"  {'right among the first ten':<36}{right['learned']:>10.1%}{right['similarity']:>13.1%}")
    draw(X[new], digit[new], {"similarity": _first(plain, 12), "learned": _first(learned, 12)})
    wrong = {name: round(10 * (1 - share), 1) for name, share in right.items()}
    print(
        f"\n  Of ten images found, {wrong['similarity']} are wrong by plain similarity and {wrong['learned']} after "
        "learning what makes two images the same digit."
    )


def _first(scores: np.ndarray, top: int) -> np.ndarray:
    """(n, top) for each image the others ranked first."""
    scores = scores.copy()
    np.fill_diagonal(scores, -np.inf)
    return np.argsort(-scores, axis=1)[:, :top]


def draw(X: np.ndarray, digit: np.ndarray, found: dict[str, np.ndarray]) -> None:
    """Draw some images with those ranked first by similarity and by the model."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\n  no picture: install matplotlib (pip install 'rankrls[plot]')")
        return
    right = {name: (digit[rows] == digit[:, None]).sum(axis=1) for name, rows in found.items()}
    gain = right["learned"] - right["similarity"]
    typical = np.argsort(-gain, kind="stable")[len(gain) // 10 :]  # leaves out the very best
    queries = [int(next(i for i in typical if digit[i] == d)) for d in (8, 1, 9, 3)]
    lines = [(q, name) for q in queries for name in found]
    top = next(iter(found.values())).shape[1]
    figure = Figure(figsize=(0.62 * (top + 3), 0.68 * len(lines) + 0.5), layout="constrained")
    axes = figure.subplots(len(lines), top + 2)
    for line, (query, name) in zip(axes, lines, strict=True):
        for axis, i in zip(line, [query, None, *found[name][query]], strict=True):
            axis.set_axis_off()
            if i is not None:
                axis.imshow(X[i].reshape(8, 8), cmap="gray_r" if digit[i] == digit[query] else "Reds")
        line[1].text(0.5, 0.5, name, ha="center", va="center", fontsize=8)
    figure.suptitle("An image, and those found for it by similarity and by the model; wrong ones in red", fontsize=9)
    figure.savefig(PICTURE, dpi=110)
    print(f"\n  {PICTURE}: what similarity and the model find for four images")


if __name__ == "__main__":
    sys.exit(main())
