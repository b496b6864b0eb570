"""Images of the same digit: new images, digits never seen, the choice of alpha, and time; printed as Markdown.

In the place of the bacteria of [Pahikkala13, Table 2], which are not to be had, and figure 5. DIR of --data DIR holds
the folders usps and 20newsgroups; docs/reproductions/conditional.md has what followed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import machine
from benchmarks.papers import conditional_newsgroups as newsgroups
from benchmarks.papers.conditional_newsgroups import error
from rankrls import ConditionalRankRLS, RankRLS
from rankrls.core.krylov import ConvergenceWarning
from rankrls.kernels import Gaussian
from rankrls.problems.choice import default_alphas
from rankrls.relations.complete import complete_graph
from rankrls.relations.folds import RelationKFold
from rankrls.relations.relation import Domain

N_TRAIN, N_TEST = 500, 300
NEW_CLASSES = 3
MODELS = {
    "ranking": ("ranking", None),
    "regression": ("regression", None),
    "symmetric ranking": ("ranking", "symmetric"),
}
CHOICES = ("rows", "objects", "classes", "least")


@dataclass(frozen=True)
class Objects:
    """Objects of several classes: their kernel, the relation between them, and the class of each."""

    K: np.ndarray
    Y: np.ndarray
    label: np.ndarray


def read_usps(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels between -1 and 1, and digits."""
    with np.load(folder / "usps.npz") as file:
        X = np.vstack([file["X_train"], file["X_test"]]) / 1000.0 - 1
        return X, np.concatenate([file["y_train"], file["y_test"]]).astype(int)


def draw(label: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Rows for training, then new ones of the same classes, then of classes that are not among them."""
    rng = np.random.default_rng(seed)
    new = np.isin(label, rng.permutation(np.unique(label))[:NEW_CLASSES])
    known, others = rng.permutation(np.flatnonzero(~new)), rng.permutation(np.flatnonzero(new))
    yield from (known[:N_TRAIN], known[N_TRAIN : N_TRAIN + N_TEST], others[:N_TEST])


def usps(X: np.ndarray, label: np.ndarray, kernel: str, rows: np.ndarray) -> Objects:
    X, label = X[rows], label[rows]
    K = X @ X.T if kernel == "linear" else Gaussian().fitted(X)(X, X)
    return Objects(K, (label[:, None] == label).astype(float), label)


def documents(data: newsgroups.Documents, rows: np.ndarray) -> Objects:
    data = data.take(rows)
    return Objects((data.X @ data.X.T).toarray(), data.relation, data.group)


# ---------------------------------------------------------------- the choice of alpha


def errors(data: Objects, train: np.ndarray, test: np.ndarray, alphas: np.ndarray, loss: str, relation: str | None):
    """(alphas,) error on some objects of models of others."""
    K = Domain(data.K[np.ix_(train, train)])
    Y, parity = data.Y[np.ix_(train, train)], int(relation == "symmetric")
    path = complete_graph(K, K, Y, ranking=loss == "ranking", parity=parity)
    across, V = data.K[np.ix_(test, train)], data.Y[np.ix_(test, test)]
    return np.array([error(V, across @ path.coef(alpha) @ across.T) for alpha in alphas])


def by_classes(data: Objects, train: np.ndarray, alphas: np.ndarray, loss: str, relation: str | None) -> np.ndarray:
    """(alphas,) error on one half of the classes of models of the other, both ways."""
    classes = np.unique(data.label[train])
    first = np.isin(data.label[train], classes[::2])
    halves = train[first], train[~first]
    return sum(errors(data, a, b, alphas, loss, relation) for a, b in (halves, halves[::-1])) / 2


def study(data: Objects, loss: str, relation: str | None) -> dict[str, tuple[float, float]]:
    """Error on new objects and on new classes with alpha chosen in several ways; "least" has seen the answers."""
    parts = np.split(np.arange(len(data.label)), [N_TRAIN, N_TRAIN + N_TEST])
    train = parts[0]
    K, Y = data.K[np.ix_(train, train)], data.Y[np.ix_(train, train)]
    domain = Domain(K)
    path = complete_graph(domain, domain, Y, ranking=loss == "ranking", parity=int(relation == "symmetric"))
    alphas = default_alphas(path.mean_eigenvalue)
    model = ConditionalRankRLS(kernel="precomputed", loss=loss, relation=relation, alphas=alphas)
    chosen = {"objects": RelationKFold(4, same_objects=True)} | ({} if relation else {"rows": "auto"})
    at = {name: int(model.set_params(cv=cv).fit(K, Y).cv_scores_.argmax()) for name, cv in chosen.items()}
    at["classes"] = int(by_classes(data, train, alphas, loss, relation).argmin())
    found = [errors(data, train, test, alphas, loss, relation) for test in parts[1:]]
    return {name: (found[0][i], found[1][i]) for name, i in at.items()} | {"least": (found[0].min(), found[1].min())}


def table(sources: dict[str, tuple[np.ndarray, Callable[[np.ndarray], Objects]]], seeds: range) -> None:
    """Means over draws of classes and objects."""
    print(f"\n### Error on new objects and on new classes by what is held out to choose alpha, {len(seeds)} draws\n")
    heads = [f"new {kind}: {choice}" for kind in ("objects", "classes") for choice in CHOICES]
    print(f"| data | model | {' | '.join(heads)} |\n" + "|---" * (2 + len(heads)) + "|")
    for name, (label, of) in sources.items():
        draws = [of(np.concatenate(list(draw(label, seed)))) for seed in seeds]
        parts = [slice(N_TRAIN, N_TRAIN + N_TEST), slice(N_TRAIN + N_TEST, None)]
        alike = [np.mean([error(data.Y[part, part], data.K[part, part]) for data in draws]) for part in parts]
        print(f"| {name} | similarity | | | | {alike[0]:.4f} | | | | {alike[1]:.4f} |", flush=True)
        for model, (loss, relation) in MODELS.items():
            runs = [study(data, loss, relation) for data in draws]
            cells = [
                f"{np.mean([run[choice][kind] for run in runs]):.4f}" if choice in runs[0] else ""
                for kind in (0, 1)
                for choice in CHOICES
            ]
            print(f"| {name} | {model} | {' | '.join(cells)} |", flush=True)


# ---------------------------------------------------------------- time


def seconds(call: Callable[[], object] | None) -> str:
    """CPU seconds of a call; nothing if it was not tried."""
    if call is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        call()
        return f"{time.process_time() - start:.3g}"


def flattened(G: np.ndarray, rows: np.ndarray, columns: np.ndarray, y: np.ndarray) -> RankRLS:
    """RankRLS of the edges, their kernel matrix formed."""
    K = G[np.ix_(rows, rows)] * G[np.ix_(columns, columns)]
    return RankRLS(1.0, kernel="precomputed", tied_pairs=True).fit(K, y, qid=rows)


def stopped(kernel: str | None = None) -> ConditionalRankRLS:
    """Conjugate gradients with 200 iterations, whatever the residual."""
    return ConditionalRankRLS(1.0, kernel=kernel, solver="cg", max_iter=200, tol=1e-300)


def time_of_nodes(X: np.ndarray, label: np.ndarray) -> None:
    print("\n### CPU seconds by nodes, complete graph, Gaussian kernel, alpha 1\n")
    print("| nodes | edges | closed | closed, symmetric | 200 iterations | RankRLS of edges |\n" + "|---" * 6 + "|")
    for n in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
        Y, kernel = (label[:n, None] == label[:n]).astype(float), Gaussian().fitted(X[:n])
        K = kernel(X[:n], X[:n])
        rows, columns = np.indices(Y.shape).reshape(2, -1)
        calls = [
            lambda K=K, Y=Y: ConditionalRankRLS(1.0, kernel="precomputed").fit(K, Y),
            lambda K=K, Y=Y: ConditionalRankRLS(1.0, kernel="precomputed", relation="symmetric").fit(K, Y),
            (lambda K=K, Y=Y: stopped("precomputed").fit(K, Y)) if n <= 1024 else None,
            (lambda K=K, Y=Y, i=rows, j=columns: flattened(K, i, j, Y.ravel())) if n <= 64 else None,
        ]
        print(f"| {n} | {n * n:,} | " + " | ".join(map(seconds, calls)) + " |", flush=True)


def time_of_edges(X: np.ndarray, label: np.ndarray, n: int = 1000) -> None:
    print(f"\n### CPU seconds by edges among {n} nodes, Gaussian kernel, alpha 1\n")
    print("| edges | 200 iterations | RankRLS of edges |\n|---|---|---|")
    X, label = X[:n], label[:n]
    K = Gaussian().fitted(X)(X, X)
    own = np.arange(n)
    for q in (2_000, 4_000, 16_000, 64_000, 256_000, 1_000_000):
        cells = np.random.default_rng(0).permutation(n * n)[: q - n]
        rows, columns = np.append(own, cells // n), np.append((own + 1) % n, cells % n)  # each node has an edge
        edges, y = np.column_stack([rows, columns]), (label[rows] == label[columns]).astype(float)
        calls = [
            lambda e=edges, y=y: stopped("precomputed").fit_edges(K, e, y),
            (lambda i=rows, j=columns, y=y: flattened(K, i, j, y)) if q <= 4_000 else None,
        ]
        print(f"| {q:,} | " + " | ".join(map(seconds, calls)) + " |", flush=True)


def time_of_features(X: np.ndarray, label: np.ndarray, n: int = 100) -> None:
    print(f"\n### CPU seconds by features, complete graph of {n} nodes, linear, alpha 1\n")
    print("| features | closed | 200 iterations | RankRLS of product features |\n" + "|---" * 4 + "|")
    Y, order = (label[:n, None] == label[:n]).astype(float), np.random.default_rng(0).permutation(X.shape[1])
    for d in (2, 4, 8, 16, 32, 64, 128, 256):
        A = X[:n, order[:d]]
        calls = [
            lambda A=A: ConditionalRankRLS(1.0).fit(A, Y),
            lambda A=A: stopped().fit(A, Y),
            (lambda A=A: RankRLS(1.0, tied_pairs=True).fit(np.kron(A, A), Y.ravel(), qid=np.repeat(np.arange(n), n)))
            if d <= 64
            else None,
        ]
        print(f"| {d} | " + " | ".join(map(seconds, calls)) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds usps and 20newsgroups")
    parser.add_argument("--parts", nargs="*", default=["usps", "newsgroups", "nodes", "edges", "features"])
    parser.add_argument("--draws", type=int, default=5)
    arguments = parser.parse_args()
    print(machine())
    X, label = read_usps(arguments.data / "usps")
    sources = {}
    if "usps" in arguments.parts:
        for kernel in ("linear", "Gaussian"):
            sources[f"usps, {kernel}"] = label, lambda rows, kernel=kernel: usps(X, label, kernel, rows)
    if "newsgroups" in arguments.parts:
        data = newsgroups.read(arguments.data / "20newsgroups").of(sum(newsgroups.SETS.values(), ()))
        for name in ("counts", "tf-idf"):
            scaled = newsgroups.Documents(newsgroups.SCALINGS[name](data), data.group)
            sources[f"newsgroups, {name}"] = data.group, lambda rows, scaled=scaled: documents(scaled, rows)
    if sources:
        table(sources, range(arguments.draws))
    mixed = np.random.default_rng(0).permutation(len(X))
    for part, call in (("nodes", time_of_nodes), ("edges", time_of_edges), ("features", time_of_features)):
        if part in arguments.parts:
            call(X[mixed], label[mixed])


if __name__ == "__main__":
    main()
