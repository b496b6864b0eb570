"""Images of the same digit: new images, unseen digits, and what to hold out to choose alpha; printed as Markdown.

Replaces the bacteria of [Pahikkala13, Table 2], which cannot be obtained. DIR of --data DIR holds the folders usps and
20newsgroups; see docs/reproductions/conditional.md for results.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import machine
from benchmarks.papers import conditional_newsgroups as newsgroups
from benchmarks.papers.conditional_newsgroups import complete, error
from benchmarks.papers.figures import mean, table
from rankrls import ConditionalRankRLS
from rankrls.kernels import Gaussian
from rankrls.problems.choice import default_alphas
from rankrls.relations.folds import RelationKFold

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
    """Rows for training, then new ones of the same classes, then rows of other classes."""
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
    path = complete(data.K[np.ix_(train, train)], data.Y[np.ix_(train, train)], loss, relation)
    across, V = data.K[np.ix_(train, test)], data.Y[np.ix_(test, test)]
    return np.array([error(V, path.coef(alpha).between(across, across)) for alpha in alphas])


def by_classes(data: Objects, train: np.ndarray, alphas: np.ndarray, loss: str, relation: str | None) -> np.ndarray:
    """(alphas,) error on one half of the classes of models of the other half, both ways."""
    classes = np.unique(data.label[train])
    first = np.isin(data.label[train], classes[::2])
    halves = train[first], train[~first]
    return sum(errors(data, a, b, alphas, loss, relation) for a, b in (halves, halves[::-1])) / 2


def study(data: Objects, loss: str, relation: str | None) -> dict[str, tuple[float, float]]:
    """Error on new objects and on new classes, alpha chosen in several ways; "least" has seen the answers."""
    parts = np.split(np.arange(len(data.label)), [N_TRAIN, N_TRAIN + N_TEST])
    train = parts[0]
    K, Y = data.K[np.ix_(train, train)], data.Y[np.ix_(train, train)]
    alphas = default_alphas(complete(K, Y, loss, relation).mean_eigenvalue)
    model = ConditionalRankRLS(kernel="precomputed", loss=loss, relation=relation, alphas=alphas)
    chosen = {"objects": RelationKFold(4, same_objects=True)} | ({} if relation else {"rows": "auto"})
    at = {name: int(model.set_params(cv=cv).fit(K, Y).cv_scores_.argmax()) for name, cv in chosen.items()}
    at["classes"] = int(by_classes(data, train, alphas, loss, relation).argmin())
    found = [errors(data, train, test, alphas, loss, relation) for test in parts[1:]]
    return {name: (found[0][i], found[1][i]) for name, i in at.items()} | {"least": (found[0].min(), found[1].min())}


def tabulate(sources: dict[str, tuple[np.ndarray, Callable[[np.ndarray], Objects]]], seeds: range) -> None:
    """Means over draws of classes and objects, a table for each kind of what is new."""
    rows: tuple[list, list] = ([], [])
    for name, (label, of) in sources.items():
        draws = [of(np.concatenate(list(draw(label, seed)))) for seed in seeds]
        parts = [slice(N_TRAIN, N_TRAIN + N_TEST), slice(N_TRAIN + N_TEST, None)]
        for kind, part in enumerate(parts):
            alike = [error(data.Y[part, part], data.K[part, part]) for data in draws]
            rows[kind].append([name, "similarity", "", "", "", mean(alike)])
        for model, (loss, relation) in MODELS.items():
            runs = [study(data, loss, relation) for data in draws]
            for kind in (0, 1):
                cells = [mean([run[c][kind] for run in runs]) if c in runs[0] else "" for c in CHOICES]
                rows[kind].append([name, model, *cells])
    for kind, what in enumerate(("objects", "classes")):
        title = f"Error on new {what} by what is held out to choose alpha, {len(seeds)} draws, ± 95 % interval:"
        table(["data", "model", *CHOICES], rows[kind], title)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds usps and 20newsgroups")
    parser.add_argument("--parts", nargs="*", default=["usps", "newsgroups"])
    parser.add_argument("--draws", type=int, default=10)
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
        tabulate(sources, range(arguments.draws))


if __name__ == "__main__":
    main()
