"""Relations of shop size: recommendations compared with the bare product, sparse features, implicit feedback."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from benchmarks.measure import Row, measure
from rankrls import ConditionalRankRLS
from rankrls.relations.edges import EdgeKernel
from rankrls.relations.relation import Domain


def relations(quick: bool) -> Iterator[Row]:
    """Users and items: train on implicit feedback, recommend, and iterate over sparse features."""
    rng = np.random.default_rng(0)
    n, m, d = (20_000, 5_000, 64) if quick else (200_000, 50_000, 64)
    users, items = (rng.normal(size=(size, d)).astype(np.float32) for size in (n, m))
    q = 25 * n
    ones = (np.ones(q, dtype=np.float32), (rng.integers(n, size=q), rng.integers(m, size=q)))
    bought = sparse.csr_array(ones, shape=(n, m))
    fit = lambda: ConditionalRankRLS(1.0, missing="zero").fit(users, bought, items)
    yield Row(f"implicit feedback, {n:,} x {m:,} x {d}, {q:,} ones, one alpha", measure(fit, 1), target="<= 2 GB")
    model = fit()
    some = users[:2_000]
    product = lambda: [some[i : i + 80] @ model.coef_ @ items.T for i in range(0, len(some), 80)]
    what = f"the best ten of {m:,} items for {len(some):,} users"
    yield Row(what, measure(lambda: model.recommend(some, items, top=10), 3, product), "the GEMM alone", "<= 2x")
    yield from sparse_features(quick)


def sparse_features(quick: bool) -> Iterator[Row]:
    """A product with the kernel of edges between objects that have 5, 10, 20 or 40 of 8,000 features."""
    rng = np.random.default_rng(0)
    p, q = (1_000, 20_000) if quick else (5_000, 200_000)
    rows, columns, v = rng.integers(p, size=q), rng.integers(p, size=q), rng.normal(size=q)
    first = None
    for k in (5, 10, 20, 40, 80):
        made = [
            sparse.csr_array(
                (rng.normal(size=p * k), (np.repeat(np.arange(p), k), rng.integers(8_000, size=p * k))),
                shape=(p, 8_000),
            )
            for _ in range(2)
        ]
        kernel = EdgeKernel(Domain(made[0], True), Domain(made[1], True), rows, columns)
        kernel(v)  # what is made once
        product = lambda kernel=kernel: kernel(v)
        first = first or product
        beside = "5 nonzeros" if k > 5 else ""
        what = f"one iteration, {q:,} edges, {k} of 8,000 features at both ends"
        yield Row(what, measure(product, 3, first if k > 5 else None), beside)
