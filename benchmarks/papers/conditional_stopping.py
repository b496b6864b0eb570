"""Early stopping on 20 newsgroups, after figure 3 of [Pahikkala13], printed as Markdown.

1000 training and 500 test documents of four newsgroups, no regularisation: error by the number of iterations of
conjugate gradients and of conjugate residuals. The relation is symmetric, so every iterate of ordinary regression is
symmetric already, and symmetric regression is left out. DIR of --data DIR holds the folder 20newsgroups.

Iterations are those of `rankrls.relations.edges.Graph`, in the eigenvectors of K = U diag(s) U', where a product with
the kernel of edges is elementwise and centring C = I - 11'/n is I - u u', u = U'1 / sqrt(n). The first table shows how
close they are to those of `Graph` on a few documents.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import machine
from benchmarks.papers.conditional_newsgroups import MODELS, SETS, Documents, error, read
from benchmarks.papers.figures import band, finish, mean, panels, table
from rankrls import ConditionalRankRLS
from rankrls.core.krylov import conjugate_residuals
from rankrls.relations.edges import Graph
from rankrls.relations.relation import Domain, EdgeSet

ITERATIONS = (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200)
SHOWN = (5, 10, 20, 50, 100, 200)
COLOURS = {"ranking": "tab:blue", "regression": "tab:orange"}


def gradients(product: Callable[[np.ndarray], np.ndarray], b: np.ndarray) -> Iterator[np.ndarray]:
    """Conjugate gradients: least error in the norm of the kernel."""
    x, r = np.zeros(len(b)), b.copy()
    direction, rho = r.copy(), r @ r
    while True:
        q = product(direction)
        size = rho / (direction @ q)
        x += size * direction
        r -= size * q
        rho, before = r @ r, rho
        direction = r + rho / before * direction
        yield x


def residuals(product: Callable[[np.ndarray], np.ndarray], b: np.ndarray) -> Iterator[np.ndarray]:
    """Conjugate residuals: the same Krylov spaces, but the least squared error on the training edges in each."""
    return (x for x, _ in conjugate_residuals(product, b))


METHODS = {"gradients": gradients, "residuals": residuals}


@dataclass(frozen=True)
class Diagonal:
    """A complete relation among n objects in the eigenvectors of their kernel; rows condition, columns are ranked."""

    U: np.ndarray
    s: np.ndarray
    Y: np.ndarray
    ranking: bool
    symmetric: bool

    @property
    def _u(self) -> np.ndarray:
        return self.U.sum(axis=0) / np.sqrt(len(self.U))

    def _centred(self, V: np.ndarray) -> np.ndarray:
        return V - np.outer(V @ self._u, self._u) if self.ranking else V

    def _part(self, V: np.ndarray) -> np.ndarray:
        return (V + V.T) / 2 if self.symmetric else V

    def start(self) -> np.ndarray:
        return self._centred(self.U.T @ self.Y @ self.U).ravel()

    def product(self, v: np.ndarray) -> np.ndarray:
        V = self._part(self._centred(v.reshape(self.Y.shape)))
        return self._centred(V * self.s[:, None] * self.s).ravel()

    def coef(self, v: np.ndarray) -> np.ndarray:
        """The coefficients, still in the eigenvectors."""
        return self._part(self._centred(v.reshape(self.Y.shape)))


def relation_of(K: np.ndarray, Y: np.ndarray, loss: str, relation: str | None) -> Diagonal:
    s, U = np.linalg.eigh(K)
    return Diagonal(U, s, Y, loss == "ranking", relation == "symmetric")


def curves(data: Documents, draw: int) -> dict[tuple[str, str, str], list[float]]:
    """Test error after some iterations without regularisation, and that of the closed form, for each model."""
    order = np.random.default_rng(draw).permutation(len(data.group))
    train, test = data.take(np.sort(order[:1000])), data.take(np.sort(order[1000:1500]))
    across, Y, V = (test.X @ train.X.T).toarray(), train.relation, test.relation
    K = (train.X @ train.X.T).toarray()
    found = {("similarity", "alone", ""): [error(V, (test.X @ test.X.T).toarray())]}
    for relation, loss in MODELS:
        model = ConditionalRankRLS(kernel="precomputed", loss=loss, relation=relation).fit(K, Y)
        closed = error(V, model.predict(across, across))
        problem = relation_of(K, Y, loss, relation)
        B = across @ problem.U
        for name, method in METHODS.items():
            steps = enumerate(itertools.islice(method(problem.product, problem.start()), max(ITERATIONS)), start=1)
            models = (problem.coef(v) for step, v in steps if step in ITERATIONS)
            errors = [error(V, B @ A @ B.T) for A in models]
            found[relation or "ordinary", loss, name] = [*errors, closed]
    return found


def check(data: Documents) -> None:
    """The first iterations on a few documents, compared with those of `Graph`."""
    few = data.take(np.random.default_rng(0).permutation(len(data.group))[:80])
    K, Y, rows = (few.X @ few.X.T).toarray(), few.relation, []
    for relation, loss in MODELS:
        graph = Graph(
            Domain(K), Domain(K), EdgeSet(Y.shape, Y).listed(), loss == "ranking", int(relation == "symmetric")
        )
        problem, worst = relation_of(K, Y, loss, relation), 0.0
        theirs = (graph.kernel.coef(v) for v, _ in graph.iterates(0.0))
        for A, v in itertools.islice(zip(theirs, residuals(problem.product, problem.start()), strict=False), 5):
            ours = problem.U @ problem.coef(v) @ problem.U.T
            worst = max(worst, float(np.abs(K @ (ours - A) @ K).max() / np.abs(K @ A @ K).max()))
        rows.append([f"{relation or 'ordinary'} {loss}", f"{worst:.0e}"])
    table(["model", "largest difference of scores"], rows, "Five iterations beside those of the library, 80 documents:")


def figure(data: Documents, draws: int, folder: Path | None) -> None:
    """The curves of figure 3, means over draws of the documents."""
    runs, rows = [curves(data, draw) for draw in range(draws)], []
    for key in runs[0]:
        values = np.array([run[key] for run in runs])  # (draws, iterations and closed form)
        least = int(values[:, :-1].mean(axis=0).argmin()) if values.shape[1] > 1 else 0
        places = [*(ITERATIONS.index(k) for k in SHOWN), least, -1] if values.shape[1] > 1 else [-1]
        cells = [mean(values[:, place]) for place in places]
        rows.append([" ".join(key), *[""] * (len(SHOWN) + 2 - len(places)), *cells])
    head = ["model", *map(str, SHOWN), "least", "closed form, alpha auto"]
    table(
        head, rows, f"Error by iterations, 1000 training and 500 test documents of set 1, word counts, {draws} draws:"
    )
    if folder is not None:
        draw_curves({key: np.array([run[key] for run in runs]) for key in runs[0]}, folder)


def draw_curves(found: dict[tuple[str, str, str], np.ndarray], folder: Path) -> None:
    picture, axes = panels(1, 2, (8.5, 3.4), sharey=True)
    for (relation, loss, method), values in found.items():
        if method:
            panel, style = axes[0, int(method == "gradients")], "--" if relation == "symmetric" else "-"
            band(panel, ITERATIONS, values[:, :-1], style, color=COLOURS[loss], label=f"{relation} {loss}")
            panel.set(xscale="log", xlabel="iterations", title=f"conjugate {method}")
    axes[0, 0].set_ylabel("share of pairs in the wrong order")
    axes[0, 0].legend(frameon=False, fontsize=8)
    finish(picture, folder / "newsgroups-stopping.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds 20newsgroups")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--png", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    print(machine())
    data = read(arguments.data / "20newsgroups").of(SETS[1])
    check(data)
    figure(data, arguments.draws, arguments.png)


if __name__ == "__main__":
    main()
