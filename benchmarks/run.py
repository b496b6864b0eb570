"""`make bench`: times as ratios to bare BLAS and to scikit-learn on the same data in the same run.

    python -m benchmarks.run [--quick] [name ...]

Prints a table and writes it to benchmarks/results/. A ratio travels between machines; seconds do not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import linalg
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV

from benchmarks.measure import Measured, machine, measure
from rankrls import RankRLS, metrics
from rankrls.kernels import Gaussian

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    """One line of the table: what was run, beside what it is set."""

    what: str
    measured: Measured
    beside: str = ""
    reference: Measured | None = None
    target: str = ""

    def cells(self) -> list[str]:
        ratio = "" if self.reference is None else f"{self.measured.seconds / self.reference.seconds:.2f}x"
        return [
            self.what,
            f"{self.measured.seconds:.3f}",
            f"{self.measured.megabytes:.0f}",
            f"{ratio} {self.beside}".strip(),
            self.target,
        ]


def search_data(m: int, n: int, documents: int = 100, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian features, five grades, queries of equal length."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    y = np.clip(np.round(X @ rng.normal(size=n) / np.sqrt(n) + rng.normal(size=m) + 1), 0, 4)
    return X, y, np.repeat(np.arange(-(-m // documents)), documents)[:m]


def ragged(m: int, seed: int = 1) -> np.ndarray:
    """Query ids with log-normal query lengths, 100 on average."""
    sizes = np.maximum(1, np.random.default_rng(seed).lognormal(np.log(84), 0.6, m // 50).astype(int))
    return np.repeat(np.arange(len(sizes)), sizes)[:m]


def linear(quick: bool) -> Iterator[Row]:
    """Linear models of a million rows: one alpha, and 150,000 exact refits."""
    m, n = (100_000, 136) if quick else (1_000_000, 136)
    X, y, qid = search_data(m, n)
    size = f"{m:,} x {n}"
    gram = measure(lambda: X.T @ X, 5)
    yield Row(f"X.T @ X, {size}", gram)
    fit = measure(lambda: RankRLS(1.0).fit(X, y, qid=qid), 5)
    yield Row(f"RankRLS(alpha=1), {size}, {qid[-1] + 1:,} queries", fit, "X.T @ X", gram, "<= 2.5x, <= 300 MB")
    ridge = measure(lambda: Ridge(1.0, solver="cholesky").fit(X, y), 3)
    yield Row("sklearn Ridge(cholesky)", ridge, "X.T @ X", gram)
    yield Row("RankRLS(alpha=1) again", fit, "sklearn Ridge(cholesky)", ridge, "<= 1.5x")
    yield Row("tied pairs in", measure(lambda: RankRLS(1.0, tied_pairs=True).fit(X, y, qid=qid)), "X.T @ X", gram)
    ids = ragged(m)
    yield Row("queries of ragged length", measure(lambda: RankRLS(1.0).fit(X, y, qid=ids)), "X.T @ X", gram)
    scattered = np.random.default_rng(0).permutation(qid)
    yield Row("rows of a query scattered", measure(lambda: RankRLS(1.0).fit(X, y, qid=scattered)), "X.T @ X", gram)
    auto = measure(lambda: RankRLS().fit(X, y, qid=qid), 3)
    what = f'RankRLS(alpha="auto"): 15 alphas x {qid[-1] + 1:,} queries left out, scored'
    yield Row(what, auto, "X.T @ X", gram, "<= 20x")
    yield Row("... ragged", measure(lambda: RankRLS().fit(X, y, qid=ids), 1), "X.T @ X", gram, "<= 20x")
    X32 = X.astype(np.float32)
    yield Row("float32, one alpha", measure(lambda: RankRLS(1.0).fit(X32, y, qid=qid)), "X.T @ X in float64", gram)
    yield Row("float32, auto", measure(lambda: RankRLS().fit(X32, y, qid=qid), 1), "X.T @ X in float64", gram)


def small(quick: bool) -> Iterator[Row]:
    """The size of most data sets."""
    X, y, qid = search_data(20_000, 46)
    auto = measure(lambda: RankRLS().fit(X, y, qid=qid), 7)
    yield Row('RankRLS(alpha="auto"), 20,000 x 46, 200 queries', auto, target="well under 1 s")
    alphas = np.logspace(-3, 4, 15)
    cv = measure(lambda: RidgeCV(alphas).fit(X, y), 3)
    yield Row("sklearn RidgeCV (15 alphas, leaves out single rows)", cv)
    yield Row("RankRLS auto again", auto, "sklearn RidgeCV", cv)
    tiny = X[:300, :30]
    yield Row("RankRLS(alpha=1), 300 x 30", measure(lambda: RankRLS(1.0).fit(tiny, y[:300], qid=qid[:300]), 51))


def kernel(quick: bool) -> Iterator[Row]:
    """Gaussian kernel of all rows."""
    m = 1_000 if quick else 4_000
    X, y, qid = search_data(m, 46)
    gamma = 1 / 46
    krr = measure(lambda: KernelRidge(alpha=1.0, kernel="rbf", gamma=gamma).fit(X, y), 3)
    yield Row(f"sklearn KernelRidge(rbf), {m:,} rows", krr)
    one = measure(lambda: RankRLS(1.0, kernel=Gaussian(gamma)).fit(X, y, qid=qid), 3)
    yield Row("RankRLS(alpha=1, Gaussian)", one, "KernelRidge", krr, "<= 1.5x")
    K = Gaussian(gamma)(X, X)
    eigh = measure(lambda: linalg.eigh(K), 1 if not quick else 3)
    yield Row(f"scipy.linalg.eigh, {m:,}", eigh)
    auto = measure(lambda: RankRLS(kernel=Gaussian(gamma)).fit(X, y, qid=qid), 1 if not quick else 3)
    yield Row('RankRLS(alpha="auto", Gaussian): 15 alphas, leave-query-out', auto, "scipy.linalg.eigh", eigh, "<= 2x")


def growth(quick: bool) -> Iterator[Row]:
    """Cost against rows."""
    sizes = [10_000, 30_000, 100_000] if quick else [10_000, 30_000, 100_000, 300_000, 1_000_000]
    first = None
    for m in sizes:
        X, y, qid = search_data(m, 46)
        auto = measure(lambda X=X, y=y, qid=qid: RankRLS().fit(X, y, qid=qid), 3)
        first = first or (m, auto)
        per_row = f"{auto.seconds / m * 1e6:.2f} microseconds a row"
        yield Row(f'RankRLS(alpha="auto"), {m:,} x 46', auto, target=per_row)


def scoring(quick: bool) -> Iterator[Row]:
    """Metrics on flat arrays."""
    m = 100_000 if quick else 1_000_000
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 5, m).astype(float), ragged(m)
    y = y[: len(qid)]
    s = rng.normal(size=(len(y), 15))
    one = np.ascontiguousarray(s[:, 0])
    yield Row(f"ndcg@10, {len(y):,} rows", measure(lambda: metrics.ndcg(y, one, qid, k=10), 5), target="about 0.1 s")
    yield Row("average precision", measure(lambda: metrics.average_precision(y, one, qid), 5))
    yield Row("pairwise accuracy", measure(lambda: metrics.pairwise_accuracy(y, one, qid), 5))
    yield Row("pairwise accuracy, 15 models at once", measure(lambda: metrics.pairwise_accuracy(y, s, qid), 3))


SUITES: dict[str, Callable[[bool], Iterator[Row]]] = {
    "linear": linear,
    "small": small,
    "kernel": kernel,
    "growth": growth,
    "scoring": scoring,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"suites to run: {', '.join(SUITES)} (all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size; nothing is written")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(SUITES)
    if unknown:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    print(machine(), flush=True)
    for name in arguments.names or SUITES:
        lines = [f"## {name}: {SUITES[name].__doc__}", "", machine(), ""]
        lines += ["| | seconds | extra MB | beside | target |", "|---|---|---|---|---|"]
        print(f"\n{lines[0]}\n\n{lines[-2]}\n{lines[-1]}", flush=True)
        for row in SUITES[name](arguments.quick):
            lines.append("| " + " | ".join(row.cells()) + " |")
            print(lines[-1], flush=True)
        if not arguments.quick:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
