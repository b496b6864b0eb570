"""Training time by nodes, edges and features, after figure 5 of [Pahikkala13]; printed as Markdown.

CPU seconds of one thread, alpha = 1. Nodes and edges: documents of 20 newsgroups, linear kernel of word counts;
features: 100 digits of USPS. RankSVM has a hinge loss over pairs of edges: libsvm with the kernel matrix of pairs, or
liblinear on differences of product features. An empty cell was not tried: it would take minutes, or too much memory.
DIR of --data DIR holds the folders 20newsgroups and usps.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning as NotConverged
from sklearn.svm import SVC, LinearSVC

from benchmarks.measure import machine
from benchmarks.papers import conditional_newsgroups as newsgroups
from benchmarks.papers.conditional_usps import read_usps
from benchmarks.papers.figures import finish, panels, table
from benchmarks.papers.ranksvm import preferences
from rankrls import ConditionalRankRLS, RankRLS
from rankrls.core.krylov import ConvergenceWarning

NODES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
EDGES = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 256_000, 1_000_000)
FEATURES = (2, 4, 8, 16, 32, 64, 128, 256)
ITERATED, FLAT_NODES, FLAT_EDGES, FLAT_FEATURES = 1024, 64, 4_000, 64  # the largest sizes tried
MEMORY = 2.0  # GB of a matrix of pairs

Call = Callable[[], object]
Times = dict[str, list[float]]  # by method, NaN where it was not tried


def seconds(call: Call | None) -> float:
    if call is None:
        return np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", NotConverged)
        start = time.process_time()
        call()
        return time.process_time() - start


def iterated(kernel: str | None = None) -> ConditionalRankRLS:
    """Conjugate gradients with 200 iterations, whatever the residual."""
    return ConditionalRankRLS(1.0, kernel=kernel, solver="cg", max_iter=200, tol=1e-300)


def edge_kernel(K: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return K[np.ix_(rows, rows)] * K[np.ix_(columns, columns)]


def flat(K: np.ndarray, rows: np.ndarray, columns: np.ndarray, y: np.ndarray) -> RankRLS:
    """RankRLS of the edges, their kernel matrix formed."""
    return RankRLS(1.0, kernel="precomputed", tied_pairs=True).fit(edge_kernel(K, rows, columns), y, qid=rows)


def alternating(m: int) -> np.ndarray:
    """Labels of both classes in turn, as a classifier needs both."""
    return np.where(np.arange(m) % 2, 1.0, -1.0)


def incidence(better: np.ndarray, worse: np.ndarray, m: int) -> sparse.csr_array:
    """(pairs, edges) better minus worse, or worse minus better."""
    sign, row = alternating(len(better)), np.arange(len(better))
    entries = np.concatenate([sign, -sign]), (np.concatenate([row, row]), np.concatenate([better, worse]))
    return sparse.csr_array(entries, shape=(len(better), m))


def kernel_svm(K: np.ndarray, rows: np.ndarray, columns: np.ndarray, y: np.ndarray) -> Call | None:
    """The hinge loss of pairs of edges in the product kernel, by libsvm."""
    better, worse = preferences(y, rows)
    if len(better) ** 2 * 8 > MEMORY * 1e9 or len(y) ** 2 * 8 > MEMORY * 1e9:
        return None

    def call() -> object:
        P = incidence(better, worse, len(y))
        pairs = P @ (P @ edge_kernel(K, rows, columns)).T
        return SVC(C=1.0, kernel="precomputed", cache_size=1000).fit(pairs, alternating(len(better)))

    return call


def linear_svm(A: np.ndarray, Y: np.ndarray) -> Call | None:
    """The hinge loss of pairs of edges on their product features, by liblinear."""
    rows = np.repeat(np.arange(len(A)), len(A))
    better, worse = preferences(Y.ravel(), rows)
    if len(better) * A.shape[1] ** 2 * 8 > MEMORY * 1e9:
        return None

    def call() -> object:
        D = incidence(better, worse, Y.size) @ np.kron(A, A)
        return LinearSVC(loss="hinge", C=1.0, fit_intercept=False).fit(D, alternating(len(D)))

    return call


def by_nodes(data: newsgroups.Documents, most: int) -> Times:
    found: Times = {}
    for n in (n for n in NODES if n <= most):
        some = data.take(np.arange(n))
        K, Y = (some.X @ some.X.T).toarray(), some.relation
        i, j = np.indices(Y.shape).reshape(2, -1)
        closed = lambda K=K, Y=Y, r=None: ConditionalRankRLS(1.0, kernel="precomputed", relation=r).fit(K, Y)
        calls: dict[str, Call | None] = {
            "closed form": closed,
            "closed form, symmetric": lambda closed=closed: closed(r="symmetric"),
            "200 iterations": (lambda K=K, Y=Y: iterated("precomputed").fit(K, Y)) if n <= ITERATED else None,
            "RankRLS of edges": (lambda K=K, Y=Y, i=i, j=j: flat(K, i, j, Y.ravel())) if n <= FLAT_NODES else None,
            "RankSVM of edges": kernel_svm(K, i, j, Y.ravel()) if n <= FLAT_NODES else None,
        }
        for name, call in calls.items():
            found.setdefault(name, []).append(seconds(call))
    return found


def by_edges(data: newsgroups.Documents, most: int, n: int = 1000) -> Times:
    some, found, own = data.take(np.arange(n)), {}, np.arange(n)
    K, Y = (some.X @ some.X.T).toarray(), some.relation
    for q in (q for q in EDGES if q <= most):
        cells = np.random.default_rng(0).permutation(n * n)[: q - n]
        i, j = np.append(own, cells // n), np.append((own + 1) % n, cells % n)  # each node has an edge
        edges, y = np.column_stack([i, j]), Y[i, j]
        calls: dict[str, Call | None] = {
            "200 iterations": lambda e=edges, y=y: iterated("precomputed").fit_edges(K, e, y),
            "RankRLS of edges": (lambda i=i, j=j, y=y: flat(K, i, j, y)) if q <= FLAT_EDGES else None,
            "RankSVM of edges": kernel_svm(K, i, j, y) if q <= EDGES[3] else None,
        }
        for name, call in calls.items():
            found.setdefault(name, []).append(seconds(call))
    return found


def by_features(X: np.ndarray, label: np.ndarray, n: int = 100) -> Times:
    found: Times = {}
    Y, order = (label[:n, None] == label[:n]).astype(float), np.random.default_rng(0).permutation(X.shape[1])
    qid = np.repeat(np.arange(n), n)
    for d in FEATURES:
        A = X[:n, order[:d]]
        calls: dict[str, Call | None] = {
            "closed form": lambda A=A: ConditionalRankRLS(1.0).fit(A, Y),
            "200 iterations": lambda A=A: iterated().fit(A, Y),
            "RankRLS of product features": (
                lambda A=A: RankRLS(1.0, tied_pairs=True).fit(np.kron(A, A), Y.ravel(), qid=qid)
            )
            if d <= FLAT_FEATURES
            else None,
            "RankSVM of product features": linear_svm(A, Y),
        }
        for name, call in calls.items():
            found.setdefault(name, []).append(seconds(call))
    return found


def show(title: str, what: str, sizes: tuple[int, ...], found: Times) -> None:
    rows = [
        [f"{size:,}", *("" if np.isnan(times[k]) else f"{times[k]:.3g}" for times in found.values())]
        for k, size in enumerate(sizes)
    ]
    table([what, *found], rows, title)


def draw(curves: list[tuple[str, tuple[int, ...], Times]], folder: Path) -> None:
    figure, axes = panels(1, len(curves), (4 * len(curves), 3.6))
    colours = {"closed": "tab:blue", "200": "tab:orange", "RankRLS": "tab:green", "RankSVM": "tab:red"}
    for axis, (what, sizes, found) in zip(axes[0], curves, strict=True):
        for name, times in found.items():
            style = "--" if "symmetric" in name else "-"
            axis.plot(sizes, times, style, color=colours[name.split()[0]], marker="o", markersize=3, label=name)
        axis.set(xscale="log", yscale="log", xlabel=what, ylabel="CPU seconds")
        axis.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    finish(figure, folder / "scalability.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds 20newsgroups and usps")
    parser.add_argument("--nodes", type=int, default=NODES[-1], help="no more than these")
    parser.add_argument("--edges", type=int, default=EDGES[-1], help="no more than these")
    parser.add_argument("--png", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    print(machine())
    data = newsgroups.read(arguments.data / "20newsgroups").of(sum(newsgroups.SETS.values(), ()))
    data = data.take(np.random.default_rng(0).permutation(len(data.group)))
    nodes, edges = by_nodes(data, arguments.nodes), by_edges(data, arguments.edges)
    X, label = read_usps(arguments.data / "usps")
    mixed = np.random.default_rng(0).permutation(len(X))
    features = by_features(X[mixed], label[mixed])
    curves = [
        ("nodes", NODES[: len(nodes["closed form"])], nodes),
        ("edges", EDGES[: len(edges["200 iterations"])], edges),
        ("features", FEATURES, features),
    ]
    show("CPU seconds by nodes of a complete graph, documents:", *curves[0])
    show("CPU seconds by edges among 1,000 documents:", *curves[1])
    show("CPU seconds by features, complete graph of 100 digits, linear kernel:", *curves[2])
    if arguments.png is not None:
        draw(curves, arguments.png)


if __name__ == "__main__":
    main()
