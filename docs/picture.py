"""Draws images/result.png, the picture of the README: python docs/picture.py"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rankrls import RankRLS, metrics
from rankrls.datasets import make_search
from rankrls.plotting import HoldOutDisplay

COLOURS = ["#eef1f5", "#c6dbef", "#6baed6", "#2171b5", "#08306b"]  # grades 0 to 4
TOP = 10


def results(axis, data, orders, shown):
    """For one query, the grades of the first results in each order."""
    for x, (title, order) in enumerate(orders.items()):
        for place, i in enumerate(order[:TOP]):
            grade = int(data.y[shown][i])
            axis.barh(place, 0.9, left=x, height=0.86, color=COLOURS[grade])
            axis.text(x + 0.45, place, str(grade), ha="center", va="center", color="w" if grade > 1 else "#333", size=9)
        axis.text(x + 0.45, -0.85, title, ha="center", size=9)
    axis.set_ylim(TOP - 0.4, -1.4)
    axis.set_yticks(range(TOP), range(1, TOP + 1))
    axis.set_xticks([])
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    axis.set_title("Grades of one query's first ten results", size=10)


def main():
    data, new = make_search(n_queries=100, random_state=0), make_search(n_queries=20, random_state=1)
    ranker = RankRLS(scoring="ndcg@10").fit(data.X, data.y, qid=data.qid)
    scores, bm25 = ranker.predict(new.X), new.X[:, new.feature_names.index("bm25_title")]
    gain = metrics.per_query("ndcg@10", new.y, scores, new.qid) - metrics.per_query("ndcg@10", new.y, bm25, new.qid)
    order = np.argsort(gain)[: np.isfinite(gain).sum()]
    middle = np.unique(new.qid)[order[len(order) // 3 : 2 * len(order) // 3]]  # typical queries, not the best ones
    query = max(middle, key=lambda label: new.y[new.qid == label].sum())
    shown = np.flatnonzero(new.qid == query)
    orders = {"by BM25 of the title": np.argsort(-bm25[shown]), "by RankRLS": np.argsort(-scores[shown])}

    figure = Figure(figsize=(9, 3.6), layout="constrained", dpi=120)
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    HoldOutDisplay.from_estimator(ranker, ax=left)
    left.set_title("Every alpha, each query held out: one factorisation", size=10)
    results(right, new, orders, shown)
    figure.savefig(Path(__file__).parent / "images" / "result.png")
    print(query, round(float(np.nanmedian(gain)), 3))


if __name__ == "__main__":
    main()
