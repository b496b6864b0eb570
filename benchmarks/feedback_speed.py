"""What tables, clicks, pairs, signs, confidence, gains, mixes and fusion cost, beside the plain fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.generated import search_data
from benchmarks.measure import Row, measure
from rankrls import RankRLS, TableEncoder, clicks, fusion


def feedback(quick: bool) -> Iterator[Row]:
    """Tables, clicks, pairs, signs, confidence, gains, mixes and fusion, beside the plain fit."""
    m, n = (10_000, 136) if quick else (50_000, 136)
    X, y, qid = search_data(m, n)
    plain = lambda: RankRLS().fit(X, y, qid=qid)
    beside = "RankRLS() on the same rows"
    yield Row(f"RankRLS(), {m:,} x {n}", measure(plain, 3))
    encoder = TableEncoder().fit(X)
    encode = lambda: TableEncoder().fit_transform(X, y, qid)
    yield Row("TableEncoder().fit_transform", measure(encode, 1, plain), beside)
    yield Row("TableEncoder.transform", measure(lambda: encoder.transform(X), 3, plain), beside)
    few = X[:, :20]
    signed = lambda: RankRLS(positive=True).fit(few, y, qid=qid)
    yield Row("RankRLS(positive=True), 20 columns", measure(signed, 1, lambda: RankRLS().fit(few, y, qid=qid)), beside)
    gained = lambda: RankRLS(gain="auto").fit(X, y, qid=qid)
    yield Row('RankRLS(gain="auto")', measure(gained, 1, plain), beside)
    log = clicks.simulate(y, qid, scores=-X[:, 0], sessions=3, random_state=0)
    clicked = lambda: clicks.ClickRanker().fit(X, log, qid=qid)
    yield Row("ClickRanker()", measure(clicked, 1, plain), beside)
    model, several = plain(), RankRLS(1.0, tied_pairs=True).fit(X, np.column_stack([y, X[:, 0]]), qid=qid)
    yield Row("mix of two targets", measure(lambda: several.mix([0.7, 0.3]), 51, plain), beside)
    yield Row("probability_above, 1,000 pairs", measure(lambda: model.probability_above(X[:1000], X[1000:2000]), 5))
    yield Row("next_pairs, 20 queries", measure(lambda: model.next_pairs(X[qid < 20], qid[qid < 20]), 5))
    pair = [[0, 1]]

    def there_and_back() -> None:
        model.add_pairs(X[:2], pair)
        model.remove_pairs(X[:2], pair)

    yield Row("add_pairs and remove_pairs of one pair, 136 columns", measure(there_and_back, 51), target="< 0.002 s")
    order = np.argsort(qid, kind="stable")
    many = np.column_stack([order[:-1], order[1:]])[qid[order[:-1]] == qid[order[1:]]][:2000]
    told = lambda: RankRLS().fit(X, y, qid=qid, pairs=many)
    yield Row("RankRLS().fit(pairs=), 2,000 pairs besides the labels", measure(told, 1, plain), beside)
    sure = lambda: model.predict(X, return_std=True)
    yield Row(f"predict(return_std=True), {m:,} rows", measure(sure, 3, plain), beside)
    runs, judged = fusion.make_runs(150, random_state=0)
    yield Row("Fusion().fit, 3 runs of 150 queries", measure(lambda: fusion.Fusion().fit(runs, judged), 3))
    curved = RankRLS(1.0, kernel="rbf", basis=500, random_state=0).fit(X[:5000], y[:5000], qid=qid[:5000])
    yield Row("explain, Gaussian kernel of 500 points", measure(lambda: curved.explain(X[0], X[1]), 51))
