"""`make bench`: times as ratios to bare BLAS, scikit-learn and other rankers on the same data in the same run.

    python -m benchmarks.run [--quick] [--patience SECONDS] [name ...]

Prints a table and writes it to benchmarks/results/. A ratio travels between machines; seconds do not.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy import linalg
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import OrthogonalMatchingPursuit, Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import benchmarks.measure
from benchmarks.feedback_speed import feedback
from benchmarks.generated import ragged, search_data
from benchmarks.measure import Measured, Row, machine, measure
from benchmarks.outofcore import outofcore
from benchmarks.peers import peers
from benchmarks.relations import relations
from benchmarks.threads import threads
from benchmarks.workbench import workbench
from rankrls import ConditionalRankRLS, RankingPursuit, RankRLS, View, metrics
from rankrls.bases import RandomRows
from rankrls.core.preferences import QueryPreferences
from rankrls.core.queries import Queries
from rankrls.datasets import RankingData, dump_letor, iter_letor, load_letor
from rankrls.kernels import Gaussian
from rankrls.problems.dictionary import Columns, KernelAtoms, Whitened
from rankrls.problems.pursuit import Supervised
from rankrls.relations.edges import EdgeKernel
from rankrls.relations.relation import Domain

RESULTS = Path(__file__).parent / "results"


def linear(quick: bool) -> Iterator[Row]:
    """Linear models of a million rows: one alpha, and 150,000 exact refits."""
    m, n = (100_000, 136) if quick else (1_000_000, 136)
    X, y, qid = search_data(m, n)
    ids, scattered, X32 = ragged(m), np.random.default_rng(0).permutation(qid), X.astype(np.float32)
    gram = lambda: X.T @ X
    ridge = lambda: Ridge(1.0, solver="cholesky").fit(X, y)
    one = lambda data=X, queries=qid, **params: lambda: RankRLS(1.0, **params).fit(data, y, qid=queries)
    auto = lambda data=X, queries=qid: lambda: RankRLS().fit(data, y, qid=queries)
    size, queries = f"{m:,} x {n}", f"{qid[-1] + 1:,} queries"
    yield Row(f"X.T @ X, {size}", measure(gram, 5))
    yield Row(f"RankRLS(alpha=1), {queries}", measure(one(), 7, gram), "X.T @ X", "<= 1.4x, <= 300 MB")
    yield Row("RankRLS(alpha=1)", measure(one(), 5, ridge), "sklearn Ridge(cholesky)", "<= 1.5x")
    yield Row("sklearn Ridge(cholesky)", measure(ridge, 5, gram), "X.T @ X")
    yield Row("RankRLS(alpha=1), tied pairs in", measure(one(tied_pairs=True), 5, gram), "X.T @ X")
    yield Row("RankRLS(alpha=1), queries of ragged length", measure(one(queries=ids), 5, gram), "X.T @ X")
    yield Row("RankRLS(alpha=1), rows of a query scattered", measure(one(queries=scattered), 5, gram), "X.T @ X")
    yield Row("RankRLS(alpha=1), float32", measure(one(data=X32), 7, gram), "X.T @ X in float64", "<= 0.8x")
    what = f'RankRLS(alpha="auto"): 15 alphas, {queries} left out and scored'
    yield Row(what, measure(auto(), 3, gram), "X.T @ X", "<= 6x")
    yield Row("the same, queries of ragged length", measure(auto(queries=ids), 3, gram), "X.T @ X", "<= 6x")
    yield Row("the same, float32", measure(auto(data=X32), 3, gram), "X.T @ X in float64")
    with threadpool_limits(1, user_api="blas"):  # what the load of other processes distorts least
        yield Row("RankRLS(alpha=1), one thread", measure(one(), 3, gram), "X.T @ X, one thread")
        yield Row("RankRLS(alpha=1), float32, one thread", measure(one(data=X32), 3, gram), "X.T @ X, one thread")
        yield Row('RankRLS(alpha="auto"), one thread', measure(auto(), 2, gram), "X.T @ X, one thread")


def small(quick: bool) -> Iterator[Row]:
    """The size of most data sets."""
    X, y, qid = search_data(20_000, 46)
    auto = lambda: RankRLS().fit(X, y, qid=qid)
    cv = lambda: RidgeCV(np.logspace(-3, 4, 15)).fit(X, y)
    what = 'RankRLS(alpha="auto"), 20,000 x 46, 200 queries'
    yield Row(what, measure(auto, 9, cv), "sklearn RidgeCV, 15 alphas, single rows left out", "well under 1 s")
    wide = np.random.default_rng(0).normal(size=(30, 300))
    for rows, queries in ((X[:300, :30].copy(), qid[:300]), (wide, np.repeat(np.arange(3), 10))):
        grades = y[: len(rows)]
        one = lambda rows=rows, grades=grades, queries=queries: RankRLS(1.0).fit(rows, grades, qid=queries)
        lapack = lambda rows=rows, grades=grades: _bare_ridge(rows, grades)
        what, beside = f"{len(rows)} x {rows.shape[1]}", "the bare product, Cholesky factor and solution"
        yield Row(f"{beside}, {what}", measure(lapack, 201))
        yield Row(f"RankRLS(alpha=1), {what}", measure(one, 201, lapack), "these", "< 0.001 s beyond them")


def _bare_ridge(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a fit asks of BLAS and LAPACK, in the smaller of the two dimensions."""
    tall = len(X) >= X.shape[1]
    G, b = (X.T @ X, X.T @ y) if tall else (X @ X.T, y)
    G[np.diag_indices_from(G)] += 1.0
    factor = linalg.lapack.dpotrf(G.T, lower=1)[0]
    w = linalg.lapack.dpotrs(factor, b, lower=1)[0]
    return w if tall else X.T @ w


def kernel(quick: bool) -> Iterator[Row]:
    """Gaussian kernel of all rows."""
    m = 1_000 if quick else 4_000
    X, y, qid = search_data(m, 46)
    kernel = Gaussian(1 / 46)
    K = kernel(X, X)
    krr = lambda: KernelRidge(alpha=1.0, kernel="rbf", gamma=1 / 46).fit(X, y)
    one = lambda: RankRLS(1.0, kernel=kernel).fit(X, y, qid=qid)
    auto = lambda: RankRLS(kernel=kernel).fit(X, y, qid=qid)
    yield Row(f"RankRLS(alpha=1, Gaussian), {m:,} rows", measure(one, 5, krr), "sklearn KernelRidge", "<= 1.5x")
    what = 'RankRLS(alpha="auto", Gaussian): 15 alphas, leave-query-out'
    yield Row(what, measure(auto, 3, lambda: linalg.eigh(K)), "scipy.linalg.eigh of that size", "<= 2x")


def sparse(quick: bool) -> Iterator[Row]:
    """Gaussian kernel on basis points: Sparse RankRLS."""
    m = 20_000 if quick else 100_000
    X, y, qid = search_data(m, 46)
    gamma = 1 / 46
    for r in (500, 1_000 if quick else 2_000):
        model = {"kernel": Gaussian(gamma), "basis": RandomRows(r), "random_state": 0}
        theirs = make_pipeline(Nystroem(gamma=gamma, n_components=r, random_state=0), Ridge(1.0))
        peer = lambda theirs=theirs: theirs.fit(X, y)
        one = lambda model=model: RankRLS(1.0, **model).fit(X, y, qid=qid)
        auto = lambda model=model: RankRLS(**model).fit(X, y, qid=qid)
        size, beside = f"{m:,} x 46, {r:,} points", "sklearn Nystroem + Ridge"
        yield Row(f"RankRLS(alpha=1), {size}", measure(one, 3, peer), beside, "<= 1.2x")
        yield Row(f'RankRLS(alpha="auto"), {size}, leave-query-out', measure(auto, 1, peer), beside, "<= 4x")
        yield Row(beside, measure(peer, 1))
    m = 100_000 if quick else 1_000_000
    X, y, qid = search_data(m, 46)
    big = lambda: RankRLS(kernel=Gaussian(gamma), basis=RandomRows(500), random_state=0).fit(X, y, qid=qid)
    yield Row(f'RankRLS(alpha="auto"), {m:,} x 46, 500 points', measure(big, 1), target="<= 2000 MB")


def pursuit(quick: bool) -> Iterator[Row]:
    """Ranking pursuit: kernel dictionaries, wide features, views that agree, and many small fits."""
    m, n, steps = (4_000, 1_000, 50) if quick else (20_000, 5_000, 200)
    X, y, qid = search_data(m, 46)
    kernel, points = Gaussian(1 / 46), X[:n]
    F = QueryPreferences(Queries.of(qid), y, weighting="items")
    A, z = Whitened.of(F, KernelAtoms(X, kernel, points).reader(slice(0, n)), n).A, F @ y

    def bare() -> None:
        D = X @ points.T
        for _ in range(steps):
            z @ D

    one = lambda **params: lambda: RankingPursuit(steps, kernel=kernel, basis=points, **params).fit(X, y, qid=qid)
    theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=steps, fit_intercept=False)
    omp = lambda: theirs.fit(A, z)
    size, beside = f"{m:,} rows, {n:,} atoms, {steps} steps", f"its GEMM and {steps} GEMVs"
    yield Row(f"X @ Z.T and {steps} products with it", measure(bare, 2))
    yield Row(f"RankingPursuit, {size}", measure(one(), 3, bare), beside, "<= 3x")
    yield Row("the same, the plain update", measure(one(backfit=False), 1, bare), beside)
    yield Row("the same", measure(one(), 1, omp), "sklearn OrthogonalMatchingPursuit, given F K")
    wide = np.random.default_rng(0).normal(size=(2_000, n))
    feature = lambda: RankingPursuit(50, kernel=None).fit(wide, y[:2_000], qid=qid[:2_000])
    yield Row(f"RankingPursuit(50, kernel=None), 2,000 x {n:,}", measure(feature, 3))
    yield from _agreeing_views(quick)
    yield from _small_pursuits()


def _agreeing_views(quick: bool) -> Iterator[Row]:
    m, n = (20_000, 200) if quick else (100_000, 1_000)
    X, y, qid = search_data(m + 1_000, 46)
    y[1_000:] = np.nan
    views = [View(None, Gaussian(1 / 46), np.arange(n)), View(None, Gaussian(1 / 92), np.arange(n, 2 * n))]
    Z = np.random.default_rng(0).normal(size=(m, 2 * n))
    one = lambda: RankingPursuit(50, views=views, nu=0.1).fit(X, y, qid=qid)
    size = f"{m:,} unscored rows, {n:,} atoms in each of 2 views, 50 steps"
    yield Row(f"RankingPursuit, {size}", measure(one, 2, lambda: Z.T @ Z), "Z.T @ Z of that size", "one GEMM")


def _small_pursuits() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 300)), rng.normal(size=30)
    K, queries = Gaussian(1 / 300)(X, X), Queries.single(30)

    def checked_before() -> None:
        F = QueryPreferences(queries, y, weighting="items")
        Supervised(F, Columns(K), y[:, None]).path(10)

    yield Row("RankingPursuit(10), 30 x 300", measure(lambda: RankingPursuit(10).fit(X, y), 101))
    yield Row('RankingPursuit("auto"), 30 x 300, 5 folds', measure(lambda: RankingPursuit().fit(X, y), 31))
    yield Row("greedy.Supervised(...).path(10), kernel given", measure(checked_before, 101))


def growth(quick: bool) -> Iterator[Row]:
    """Cost against rows."""
    sizes = [10_000, 30_000, 100_000] if quick else [10_000, 30_000, 100_000, 300_000, 1_000_000]
    for m in sizes:
        X, y, qid = search_data(m, 46)
        auto = measure(lambda X=X, y=y, qid=qid: RankRLS().fit(X, y, qid=qid), 3)
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


def conditional(quick: bool) -> Iterator[Row]:
    """Conditional ranking: complete graphs, and incomplete ones."""
    p = 500 if quick else 2_000
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(p, 30)), rng.integers(0, 20, p)
    X += rng.normal(size=(20, 30))[group]
    same = (group[:, None] == group).astype(float)
    real = X @ rng.normal(size=(30, 30)) @ X.T + 5 * rng.normal(size=(p, p))
    kernel = Gaussian(1 / 60)
    K = kernel(X, X)
    eighs = lambda: (linalg.eigh(K), linalg.eigh(K))
    fit = lambda Y, **params: lambda: ConditionalRankRLS(kernel=kernel, **params).fit(X, Y)
    beside = "two scipy.linalg.eigh of that size"
    yield Row(f"{p:,} objects, {p * p:,} edges, one alpha", measure(fit(same, alpha=1.0), 3, eighs), beside)
    what = "the same, 15 alphas, each object left out"
    yield Row(f"{what}, same group or not", measure(fit(same), 3, eighs), beside, "<= 3x")
    yield Row(f"{what}, real values", measure(fit(real), 1, eighs), beside)
    for name, Y in (("symmetric", same), ("reciprocal", real - real.T)):
        mirrored = fit(Y, alpha=1.0, relation=name)
        yield Row(f"{name} ranking, one alpha, closed form", measure(mirrored, 1, eighs), beside)
    p = 1_000 if quick else 4_500
    X, group = rng.normal(size=(p, 30)), rng.integers(0, 20, p)
    big = lambda: ConditionalRankRLS(kernel=kernel).fit(X, (group[:, None] == group).astype(float))
    yield Row(f"{p:,} objects, {p * p:,} edges, 15 alphas, each object left out", measure(big, 1))
    yield from incomplete(quick)


def incomplete(quick: bool) -> Iterator[Row]:
    """Products with the kernel of the edges of 1,000 objects, and iterations with and without preconditioner."""
    p = 300 if quick else 1_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(p, 30))
    kernel = Gaussian(1 / 60)
    K, V = kernel(X, X), rng.normal(size=(p, p))
    Y = X @ rng.normal(size=(30, 30)) @ X.T + 5 * rng.normal(size=(p, p))
    dense = lambda: K @ V @ K
    for q in (p * p // 100, p * p // 10, p * p):
        rows, columns = np.divmod(rng.choice(p * p, q, replace=False), p)
        product, v = EdgeKernel(Domain(K), Domain(K), rows, columns), rng.normal(size=q)
        yield Row(f"product of {q:,} edges of {p:,} objects", measure(lambda: product(v), 5, dense), "K V K, dense")  # noqa: B023
    for share in (0.1, 0.9, 1 - 1 / p):
        edges = rng.random((p, p)) < share if share < 0.99 else ~np.eye(p, dtype=bool)
        known, steps = np.where(edges, Y, np.nan), {}
        for solver in ("cg", "pcg"):
            model = ConditionalRankRLS(1.0, kernel=kernel, solver=solver)
            steps[solver] = (measure(lambda: model.fit(X, known), 1), model.n_iter_)  # noqa: B023
        text = f"{share:.1%} of {p * p:,} edges: {steps['cg'][1]} iterations, {steps['pcg'][1]} preconditioned"
        seconds, other = steps["pcg"][0].seconds, steps["cg"][0].seconds
        yield Row(text, Measured(seconds, steps["pcg"][0].megabytes, seconds / other), "not preconditioned")
    p, q = (10_000, 50_000) if quick else (100_000, 1_000_000)
    X = rng.normal(size=(p, 50))
    edges = rng.integers(0, p, (q, 2))
    edges[:p, 0] = np.arange(p)
    y = np.einsum("ij,ij->i", X[edges[:, 0]], X[edges[:, 1]]) + rng.normal(size=q)
    many = ConditionalRankRLS(1.0)
    run = measure(lambda: many.fit_edges(X, edges, y), 1)
    yield Row(f"{q:,} edges of {p:,} objects with 50 features, linear: {many.n_iter_} iterations", run)


def reading(quick: bool) -> Iterator[Row]:
    """LETOR text of 46 features, as MQ2008 has it: the whole file, and in blocks."""
    m = 5_000 if quick else 20_000
    rng = np.random.default_rng(0)
    X = np.round(rng.random((m, 46)) * (rng.random((m, 46)) < 0.6), 6)
    comments = np.array([f"docid = GX{i:09d} inc = 1 prob = 0.086622" for i in range(m)], dtype=object)
    with tempfile.TemporaryDirectory() as folder:
        fixed, shortest, packed = (Path(folder) / name for name in ("fixed.txt", "shortest.txt", "packed.txt.gz"))
        layout = "%d qid:%d " + " ".join(f"{i}:%.6f" for i in range(1, 47)) + " #%s\n"
        with open(fixed, "w") as file:
            file.writelines(layout % (i % 3, i // 20, *X[i], comments[i]) for i in range(m))
        data = RankingData(rng.normal(size=(m, 46)), rng.integers(0, 3, m).astype(float), np.arange(m) // 20)
        dump_letor(data, shortest)
        packed.write_bytes(gzip.compress(fixed.read_bytes(), 6))
        theirs = lambda path, qid=True: lambda: load_svmlight_file(str(path), query_id=qid)
        ours = lambda path, **options: lambda: load_letor(path, **options)
        blocks = lambda: [len(block) for block in iter_letor(fixed, rows=5_000)]
        beside, rows = "sklearn load_svmlight_file", f"{m:,} rows"
        n = 7
        yield Row(f"load_letor, {rows}, six decimals", measure(ours(fixed), n, theirs(fixed)), beside, "<= 0.2x")
        without = f"{beside} without query ids"
        yield Row("load_letor", measure(ours(fixed), n, theirs(fixed, False)), without, "<= 0.2x")
        yield Row("the same, sparse", measure(ours(fixed, sparse=True), n, theirs(fixed)), beside, "<= 0.2x")
        yield Row("iter_letor, 5,000 rows at a time", measure(blocks, n, theirs(fixed)), beside, "<= 0.2x, <= 200 MB")
        yield Row("load_letor, gzip", measure(ours(packed), 3, theirs(packed)), beside)
        yield Row("load_letor, shortest decimals (17 digits)", measure(ours(shortest), 3, theirs(shortest)), beside)
        yield Row(beside, measure(theirs(fixed), 3))
        again = Path(folder) / "again.txt"
        dump = lambda: dump_svmlight_file(data.X, data.y, str(again), query_id=data.qid, zero_based=False)
        yield Row("dump_letor", measure(lambda: dump_letor(data, again), 1, dump), "sklearn dump_svmlight_file")


SUITES: dict[str, Callable[[bool], Iterator]] = {
    "linear": linear,
    "small": small,
    "feedback": feedback,
    "kernel": kernel,
    "sparse": sparse,
    "pursuit": pursuit,
    "growth": growth,
    "scoring": scoring,
    "conditional": conditional,
    "relations": relations,
    "threads": threads,
    "reading": reading,
    "peers": peers,
    "outofcore": outofcore,
    "workbench": workbench,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"suites to run: {', '.join(SUITES)} (all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size; nothing is written")
    parser.add_argument("--patience", type=float, default=0.0, help="wait so long for a quiet machine before each run")
    arguments = parser.parse_args()
    benchmarks.measure.patience = arguments.patience
    unknown = set(arguments.names) - set(SUITES)
    if unknown:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    print(machine(), flush=True)
    for name in arguments.names or SUITES:
        lines = table(name, arguments.quick)
        if not arguments.quick:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")


def table(name: str, quick: bool) -> list[str]:
    """Lines of the table of a suite, printed as they come; what a suite has to say in words stands below it."""
    lines, notes, others = [f"## {name}: {SUITES[name].__doc__.splitlines()[0]}", "", machine(), ""], [], []
    print(f"\n{lines[0]}\n", flush=True)
    for row in SUITES[name](quick):
        if isinstance(row, str):
            notes.append(row)
            print(row, file=sys.stderr, flush=True)
            continue
        new = [row.cells()] if lines[-1] else [row.head, ["---"] * len(row.head), row.cells()]
        lines += ["| " + " | ".join(cells) + " |" for cells in new]
        others.append(row.others)
        print("\n".join(lines[-len(new) :]), f"<!-- others {row.others:.0%} -->", flush=True)
    notes.append(f"Other processes took {np.median(others):.0%} of the cores, {max(others):.0%} at most.")
    return [*lines, *(text for note in notes for text in ("", note))]


if __name__ == "__main__":
    main()
