"""Conditional ranking: complete graphs in closed form, incomplete ones by conjugate gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_limits

from benchmarks.measure import Row, measure
from rankrls import ConditionalRankRLS
from rankrls.kernels import Gaussian
from rankrls.relations.edges import EdgeKernel
from rankrls.relations.relation import Domain

KERNEL = Gaussian(1 / 60)


def conditional(quick: bool) -> Iterator[Row]:
    """Conditional ranking: complete graphs, and incomplete ones."""
    yield from _complete(500 if quick else 2_000)
    p = 1_000 if quick else 4_500
    X, same = _groups(p, np.random.default_rng(1))
    big = lambda: ConditionalRankRLS(kernel=KERNEL).fit(X, same)
    yield Row(f"{p:,} objects, {p * p:,} edges, 15 alphas, each object left out", measure(big, 1))
    yield from _products(300 if quick else 1_000)
    yield from _iterations(300 if quick else 1_000)
    yield _many_edges(*(10_000, 50_000) if quick else (100_000, 1_000_000))


def _groups(p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Objects of 20 groups, and whether two belong to the same group."""
    X, group = rng.normal(size=(p, 30)), rng.integers(0, 20, p)
    X += rng.normal(size=(20, 30))[group]
    return X, (group[:, None] == group).astype(float)


def _bilinear(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X @ rng.normal(size=(30, 30)) @ X.T + 5 * rng.normal(size=(len(X), len(X)))


def _complete(p: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X, same = _groups(p, rng)
    real, K = _bilinear(X, rng), KERNEL(X, X)
    eighs = lambda: (linalg.eigh(K), linalg.eigh(K))
    fit = lambda Y, **params: lambda: ConditionalRankRLS(kernel=KERNEL, **params).fit(X, Y)
    beside = "two scipy.linalg.eigh of that size"
    yield Row(f"{p:,} objects, {p * p:,} edges, one alpha", measure(fit(same, alpha=1.0), 3, eighs), beside)
    what = "the same, 15 alphas, each object left out, same group or not"
    yield Row(what, measure(fit(same), 3, eighs), beside, most=3.3)
    with threadpool_limits(1, user_api="blas"):
        yield Row(f"{what}, one thread", measure(fit(same), 1, eighs), beside, most=3.3)
    yield Row("the same, real values", measure(fit(real), 1, eighs), beside)
    for name, Y in (("symmetric", same), ("reciprocal", real - real.T)):
        mirrored = fit(Y, alpha=1.0, relation=name)
        yield Row(f"{name} ranking, one alpha, closed form", measure(mirrored, 1, eighs), beside)


def _products(p: int) -> Iterator[Row]:
    """Products with the kernel of some of the edges."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(p, 30))
    K, V = KERNEL(X, X), rng.normal(size=(p, p))
    dense = lambda: K @ V @ K
    for q in (p * p // 100, p * p // 10, p * p):
        rows, columns = np.divmod(rng.choice(p * p, q, replace=False), p)
        product, v = EdgeKernel(Domain(K), Domain(K), rows, columns), rng.normal(size=q)
        call = lambda product=product, v=v: product(v)
        yield Row(f"product of {q:,} edges of {p:,} objects", measure(call, 5, dense), "K V K, dense")


def _iterations(p: int) -> Iterator[Row]:
    """Conjugate gradients with and without preconditioner."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(p, 30))
    Y = _bilinear(X, rng)
    for share in (0.1, 0.9, 1 - 1 / p):
        edges = rng.random((p, p)) < share if share < 0.99 else ~np.eye(p, dtype=bool)
        known, found = np.where(edges, Y, np.nan), {}
        for solver in ("cg", "pcg"):
            model = ConditionalRankRLS(1.0, kernel=KERNEL, solver=solver)
            call = lambda model=model, known=known: model.fit(X, known)
            found[solver] = measure(call, 1), model
        (plain, cg), (helped, pcg) = found["cg"], found["pcg"]
        text = f"{share:.1%} of {p * p:,} edges: {cg.n_iter_} iterations, {pcg.n_iter_} preconditioned"
        yield Row(text, replace(helped.over(plain), others=max(plain.others, helped.others)), "not preconditioned")


def _many_edges(p: int, q: int) -> Row:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(p, 50))
    edges = rng.integers(0, p, (q, 2))
    edges[:p, 0] = np.arange(p)
    y = np.einsum("ij,ij->i", X[edges[:, 0]], X[edges[:, 1]]) + rng.normal(size=q)
    many = ConditionalRankRLS(1.0)
    run = measure(lambda: many.fit_edges(X, edges, y), 1)
    return Row(f"{q:,} edges of {p:,} objects with 50 features, linear: {many.n_iter_} iterations", run)
