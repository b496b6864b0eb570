"""Relations of shop size: recommendations compared with the bare product, sparse features, implicit feedback."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from benchmarks.measure import Row, measure
from rankrls import ConditionalRankRLS
from rankrls.core.fused import compiled_code
from rankrls.relations.edges import EdgeKernel
from rankrls.relations.relation import Domain


def relations(quick: bool) -> Iterator[Row | str]:
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


def sparse_features(quick: bool) -> Iterator[Row | str]:
    """A product with the kernel of edges between objects that have 5 to 320 of 8,000 features, and how it grows."""
    rng = np.random.default_rng(0)
    p, q = (1_000, 20_000) if quick else (5_000, 200_000)
    rows, columns, v = rng.integers(p, size=q), rng.integers(p, size=q), rng.normal(size=q)
    V = sparse.csr_array((v, (rows, columns)), shape=(p, p))
    sizes, seconds = (5, 10, 20, 40, 80, 160, 320), {True: [], False: []}
    for k in sizes:
        X, Z = (_with_nonzeros(k, p, rng) for _ in range(2))
        bare = lambda X=X, Z=Z: X @ (X.T @ (V @ Z).toarray())
        for compiled, name in ((True, "compiled"), (False, "not compiled")):
            with compiled_code(compiled):
                kernel = EdgeKernel(Domain(X, True), Domain(Z, True), rows, columns)
                kernel(v)  # what is made once
                found = measure(lambda kernel=kernel: kernel(v), 3, bare if compiled and k <= 80 else None)
            seconds[compiled].append(found.cpu)
            yield Row(f"one iteration, {q:,} edges, {k} of 8,000 features, {name}", found, "X (X' (V Z)) in SciPy")
    for compiled, name in ((True, "compiled"), (False, "not compiled")):
        few, many = (np.polyfit(np.log(sizes[:n]), np.log(seconds[compiled][:n]), 1)[0] for n in (5, None))
        each = max(second / k for second, k in zip(seconds[compiled], sizes, strict=True))
        yield (
            f"CPU seconds, {name}, grow with the power {few:.2f} of 5 to 80 nonzeros and {many:.2f} of 5 to 320: "
            f"at most {each:.2g} for each."
        )


def _with_nonzeros(k: int, p: int, rng: np.random.Generator) -> sparse.csr_array:
    """(p, 8000) with k random elements in each row."""
    at = np.repeat(np.arange(p), k), rng.integers(8_000, size=p * k)
    return sparse.csr_array((rng.normal(size=p * k), at), shape=(p, 8_000))
