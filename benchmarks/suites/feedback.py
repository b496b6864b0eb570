"""What tables, clicks, pairs, signs, confidence, gains, mixes and fusion cost, beside the plain fit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

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
    yield from _shop(m, y, qid)
    for n_signed in (20, n):
        few = X[:, :n_signed]
        signed, free = (partial(RankRLS(positive=p).fit, few, y, qid=qid) for p in (True, False))
        yield Row(f"RankRLS(positive=True), {n_signed} columns", measure(signed, 1, free), beside)
    gained = lambda: RankRLS(gain="auto").fit(X, y, qid=qid)
    yield Row('RankRLS(gain="auto")', measure(gained, 1, plain), beside)
    log = clicks.simulate(y, qid, scores=-X[:, 0], sessions=3, random_state=0)
    clicked = lambda: clicks.ClickRanker().fit(X, log, qid=qid)
    yield Row("ClickRanker()", measure(clicked, 1, plain), beside)
    table = {name: getattr(log, name) for name in ("query", "document", "position", "clicks", "impressions")}
    yield Row(f"ClickLog.of, {len(log):,} rows", measure(lambda: clicks.ClickLog.of(table), 3, plain), beside)
    model, several = plain(), RankRLS(1.0, tied_pairs=True).fit(X, np.column_stack([y, X[:, 0]]), qid=qid)
    yield Row("mix of two targets", measure(lambda: several.mix([0.7, 0.3]), 51, plain), beside)
    yield Row("probability_above, 1,000 pairs", measure(lambda: model.probability_above(X[:1000], X[1000:2000]), 5))
    interval = lambda: model.rank_interval(X[qid < 20], qid[qid < 20])
    yield Row("rank_interval, 20 queries", measure(interval, 5))
    yield Row("next_pairs, 20 queries", measure(lambda: model.next_pairs(X[qid < 20], qid[qid < 20]), 5))
    for have in (0, 5000):
        pairs = np.column_stack([np.arange(2, 2 + have), np.arange(3, 3 + have)])
        told = RankRLS(1.0).fit(X, y, qid=qid, pairs=pairs if have else None)
        name = f"a pair added and taken back, 136 columns, {have:,} pairs before it"
        there_and_back = partial(_there_and_back, told, X[:2])
        yield Row(name, measure(there_and_back, 51), target="< 0.002 s, 0.001 each")
    order = np.argsort(qid, kind="stable")
    many = np.column_stack([order[:-1], order[1:]])[qid[order[:-1]] == qid[order[1:]]][:2000]
    with_pairs = lambda: RankRLS().fit(X, y, qid=qid, pairs=many)
    yield Row("RankRLS().fit(pairs=), 2,000 pairs besides the labels", measure(with_pairs, 1, plain), beside)
    told, free = (partial(RankRLS(positive=p).fit_pairs, X[:, :20], many) for p in (True, False))
    yield Row("RankRLS(positive=True).fit_pairs, 2,000 pairs, 20 columns", measure(told, 1, free), "without signs")
    sure = lambda: model.predict(X, return_std=True)
    yield Row(f"predict(return_std=True), {m:,} rows", measure(sure, 3, plain), beside)
    runs, judged = fusion.make_runs(150, random_state=0)
    yield Row("Fusion().fit, 3 runs of 150 queries", measure(lambda: fusion.Fusion().fit(runs, judged), 3))
    curved = RankRLS(1.0, kernel="rbf", basis=500, random_state=0).fit(X[:5000], y[:5000], qid=qid[:5000])
    yield Row("explain, Gaussian kernel of 500 points", measure(lambda: curved.explain(X[0], X[1]), 51))


def _shop(m: int, y: np.ndarray, qid: np.ndarray) -> Iterator[Row]:
    """A table of eight columns as it comes, compared with the fit of its encoded columns."""
    import pandas as pd

    rng = np.random.default_rng(0)
    columns = {f"number {j}": np.where(rng.random(m) < 0.1, np.nan, rng.normal(size=m)) for j in range(4)}
    columns |= {"stock": rng.random(m) < 0.5, "colour": rng.choice(["red", "green", "blue"], m)}
    columns |= {"brand": np.char.add("b", rng.integers(0, 5000, m).astype(str))}
    shop = pd.DataFrame(
        {**columns, "listed": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 400, m), "D")}
    )
    encoder = TableEncoder()
    encoded = encoder.fit_transform(shop, y, qid)
    fit = lambda: RankRLS().fit(encoded, y, qid=qid)
    beside = "RankRLS() on the encoded rows"
    encode = lambda: TableEncoder().fit_transform(shop, y, qid)
    yield Row("TableEncoder().fit_transform, text, dates and gaps", measure(encode, 1, fit), beside)
    yield Row("TableEncoder.transform, text, dates and gaps", measure(lambda: encoder.transform(shop), 3, fit), beside)


def _there_and_back(model: RankRLS, rows: np.ndarray) -> None:
    model.add_pairs(rows, [[0, 1]])
    model.remove_pairs(rows, [[0, 1]])
