"""Documents that resemble a document: Table 2 and figure 3 of [Pahikkala13] on 20 newsgroups, printed as Markdown.

The relation is symmetric, so that symmetric regression is ordinary regression; it is left out. DIR of --data DIR holds
the folder 20newsgroups; docs/reproductions/conditional.md has what followed.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from benchmarks.measure import machine, measure
from rankrls import ConditionalRankRLS
from rankrls.metrics import disagreement_error
from rankrls.relations.complete import Kronecker, Mirrored
from rankrls.relations.edges import Graph
from rankrls.relations.relation import Domain, EdgeSet
from rankrls.selection import RelationKFold

NAMES = [
    "alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware",
    "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey",
    "sci.crypt", "sci.electronics", "sci.med", "sci.space", "soc.religion.christian", "talk.politics.guns",
    "talk.politics.mideast", "talk.politics.misc", "talk.religion.misc",
]  # fmt: skip
SETS = {
    1: ("rec.autos", "rec.sport.baseball", "comp.sys.ibm.pc.hardware", "comp.windows.x"),
    2: (
        "rec.motorcycles", "rec.sport.hockey", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.mac.hardware",
    ),
}  # fmt: skip
PAPER = {(1, "ranking"): 0.2562, (2, "ranking"): 0.2895, (1, "regression"): 0.3685, (2, "regression"): 0.3967}
MODELS = [(None, "ranking"), (None, "regression"), ("symmetric", "ranking")]
UNITS = np.logspace(-3, 4, 15)  # alpha in units of the mean eigenvalue of the loss
ITERATIONS = (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200)
SHOWN = (5, 10, 20, 50, 100, 200)
COLOURS = {"ranking": "tab:blue", "regression": "tab:orange"}


@dataclass(frozen=True)
class Documents:
    """Word counts and the newsgroup of each document."""

    X: sparse.csr_array
    group: np.ndarray

    def of(self, names: tuple[str, ...]) -> Documents:
        return self.take(np.flatnonzero(np.isin(self.group, [NAMES.index(name) for name in names])))

    def take(self, rows: np.ndarray) -> Documents:
        return Documents(self.X[rows], self.group[rows])

    @property
    def relation(self) -> np.ndarray:
        """2 within a newsgroup, 1 within a kind (comp, rec), else 0."""
        kind = np.array([name.split(".")[0] for name in NAMES])[self.group]
        return (self.group[:, None] == self.group) + (kind[:, None] == kind).astype(float)


def read(folder: Path) -> Documents:
    parts, groups = [], []
    with np.load(folder / "word-counts.npz") as file:
        for s in ("train", "test"):
            counted = (file[f"{s}_counts"], file[f"{s}_indices"], file[f"{s}_indptr"])
            groups.append(file[f"{s}_group"].astype(int) - 1)
            parts.append(sparse.csr_array(counted, shape=(len(groups[-1]), 61188)))
    return Documents(sparse.csr_array(sparse.vstack(parts)).astype(np.float64), np.concatenate(groups))


def counts(data: Documents) -> sparse.csr_array:
    return data.X


def shares(data: Documents) -> sparse.csr_array:
    return normalize(data.X, "l1")


def unit_length(data: Documents) -> sparse.csr_array:
    return normalize(data.X)


def tf_idf(data: Documents) -> sparse.csr_array:
    """Document frequencies over all 20 newsgroups, no labels."""
    return sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(data.X))


SCALINGS: dict[str, Callable[[Documents], sparse.csr_array]] = {
    "counts": counts, "shares": shares, "unit": unit_length, "tf-idf": tf_idf,
}  # fmt: skip


def error(Y: np.ndarray, scores: np.ndarray) -> float:
    """Share of wrongly ordered pairs, averaged over conditioning documents."""
    return float(disagreement_error(Y.ravel(), scores.ravel(), np.repeat(np.arange(len(Y)), Y.shape[1])))


def chosen_alpha(train: Documents, held: Documents, loss: str, relation: str | None) -> tuple[float, float]:
    """Alpha, and what it is in mean eigenvalues, by the error on other newsgroups of a model of half of them.

    Every third of the held-out documents is a conditioning one.
    """
    K = Domain((train.X @ train.X.T).toarray())
    ranking, parity = loss == "ranking", int(relation == "symmetric")
    both = ranking and parity
    path = Mirrored(K, train.relation, 1) if both else Kronecker(K, K, train.relation, ranking=ranking, parity=parity)
    across, Y = (held.X @ train.X.T).toarray(), held.relation[::3]
    errors = [error(Y, path.coef(unit * path.mean_eigenvalue).between(across[::3].T, across.T)) for unit in UNITS]
    best = int(np.argmin(errors))
    return UNITS[best] * path.mean_eigenvalue, UNITS[best]


def cost(call: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds and peak MB of a call."""
    start = time.process_time()
    taken = measure(call, repeat=1)
    return time.process_time() - start, taken.megabytes


def table(data: Documents, name: str, number: int) -> None:
    """A line for each model, alpha by hold-out of every other training newsgroup."""
    groups, other = SETS[number], SETS[3 - number]
    train, test = data.of(groups), data.of(other)
    X, Y, Z, V = train.X, train.relation, test.X, test.relation
    print(f"| {name} | {number} | similarity | | {error(V, (Z @ Z.T).toarray()):.4f} | | | |", flush=True)
    for relation, loss in MODELS:
        alpha, unit = chosen_alpha(data.of(groups[::2]), data.of(groups[1::2]), loss, relation)
        model = ConditionalRankRLS(alpha, loss=loss, relation=relation)
        cpu, megabytes = cost(lambda model=model: model.fit(X, Y))
        paper = "" if relation else f"{PAPER[number, loss]:.4f}"
        figures = f"{1 - model.score(Z, V):.4f} | {unit:.1e} | {cpu:.0f} | {megabytes:.0f}"
        print(f"| {name} | {number} | {relation or 'ordinary'} {loss} | {paper} | {figures} |", flush=True)


def automatic(data: Documents, name: str, number: int) -> None:
    """The same with alpha="auto"."""
    train, test = data.of(SETS[number]), data.of(SETS[3 - number])
    Y = train.relation
    for relation, loss in MODELS:
        model = ConditionalRankRLS(loss=loss, relation=relation)
        cpu, megabytes = cost(lambda model=model: model.fit(train.X, Y))
        unit = model.alpha_ / model.alphas_[10]  # the eleventh of the default grid is the mean eigenvalue
        found = f"{1 - model.score(test.X, test.relation):.4f} | {unit:.1e} | {1 - model.cv_scores_.max():.4f}"
        figures = f"{found} | {cpu:.0f} | {megabytes:.0f}"
        print(f"| {name} | {number} | {relation or 'ordinary'} {loss} | {figures} |", flush=True)


def gradients(graph: Graph) -> Iterator[np.ndarray]:
    """Conjugate gradients without regularisation, as `Graph.solve` has them: least error in the norm of the kernel."""
    r = graph.loss.forward(graph.edges.y).copy()
    c, direction, rho = np.zeros(len(r)), r.copy(), r @ r
    while True:
        q = graph.product(direction)
        size = rho / (direction @ q)
        c += size * direction
        r -= size * q
        rho, before = r @ r, rho
        direction = r + rho / before * direction
        yield graph.loss.back(c)


def residuals(graph: Graph) -> Iterator[np.ndarray]:
    """Conjugate residuals: the same Krylov spaces, but the least squared error on the training edges in each."""
    return (v for v, _ in graph.iterates(0.0))


def curves(data: Documents, draw: int) -> dict[tuple[str, str, str], list[float]]:
    """Test error after some iterations without regularisation, and that of the closed form, for each model."""
    order = np.random.default_rng(draw).permutation(len(data.group))
    train, test = data.take(np.sort(order[:1000])), data.take(np.sort(order[1000:1500]))
    across, Y, V = (test.X @ train.X.T).toarray(), train.relation, test.relation
    K = Domain((train.X @ train.X.T).toarray())
    found = {("similarity", "alone", ""): [error(V, (test.X @ test.X.T).toarray())]}
    for relation, loss in MODELS:
        model = ConditionalRankRLS(kernel="precomputed", loss=loss, relation=relation).fit(K.array, Y)
        closed = error(V, model.predict(across, across))
        graph = Graph(K, K, EdgeSet(Y.shape, Y).listed(), loss == "ranking", int(relation == "symmetric"))
        for method in (gradients, residuals):
            steps = enumerate(itertools.islice(method(graph), max(ITERATIONS)), start=1)
            models = (graph.kernel.coef(v) for step, v in steps if step in ITERATIONS)
            errors = [error(V, across @ a @ across.T) for a in models]
            found[relation or "ordinary", loss, method.__name__] = [*errors, closed]
    return found


def stopped(data: Documents, draw: int) -> None:
    """The number of iterations by hold-out: one line for each model."""
    order = np.random.default_rng(draw).permutation(len(data.group))
    train, test = data.take(np.sort(order[:1000])), data.take(np.sort(order[1000:1500]))
    across, K = (test.X @ train.X.T).toarray(), (train.X @ train.X.T).toarray()
    for relation, loss in MODELS:
        folds = RelationKFold(4, 3, same_objects=True)
        model = ConditionalRankRLS(kernel="precomputed", loss=loss, relation=relation, max_iter="auto", cv=folds)
        start = time.process_time()
        model.fit(K, train.relation)
        cpu = time.process_time() - start
        found = (
            f"{error(test.relation, model.predict(across, across)):.4f} | {model.n_iter_} | {len(model.iterations_)}"
        )
        print(f"| {relation or 'ordinary'} {loss} | {found} | {cpu:.0f} |", flush=True)


def figure(data: Documents, name: str, draws: int, folder: Path | None) -> None:
    """The curves of figure 3, means over draws of the documents."""
    runs = [curves(data.of(SETS[1]), draw) for draw in range(draws)]
    print(f"\n### 1000 training and 500 test documents of set 1, {name}, {draws} draws\n")
    head = " | ".join(map(str, SHOWN))
    print(f"| model | {head} | least | closed form, alpha auto |\n" + "|---" * (len(SHOWN) + 3) + "|")
    for key in runs[0]:
        mean = np.mean([run[key] for run in runs], axis=0)
        places = [*(ITERATIONS.index(k) for k in SHOWN), int(mean[:-1].argmin()), -1] if len(mean) > 1 else [-1]
        cells = [""] * (len(SHOWN) + 2 - len(places)) + [f"{mean[place]:.4f}" for place in places]
        print(f"| {' '.join(key)} | {' | '.join(cells)} |", flush=True)
    if folder is not None:
        draw_curves({key: np.mean([run[key] for run in runs], axis=0) for key in runs[0]}, folder)


def draw_curves(means: dict[tuple[str, str, str], np.ndarray], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(5, 3.2), dpi=100)
    for (relation, loss, method), mean in means.items():
        if method:
            style = "--" if relation == "symmetric" else "-"
            width = 0.8 if method == "gradients" else 1.8
            label = f"{relation} {loss}, {method}"
            axes.plot(ITERATIONS, mean[:-1], style, color=COLOURS[loss], linewidth=width, label=label)
    axes.set(xscale="log", xlabel="iterations", ylabel="share of pairs in the wrong order")
    axes.legend(frameon=False, fontsize=7)
    pyplot.tight_layout()
    pyplot.savefig(folder / "conditional_newsgroups.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds 20newsgroups")
    parser.add_argument("--parts", nargs="*", default=["table", "auto", "figure"])
    parser.add_argument("--scalings", nargs="*", default=list(SCALINGS), help="of the word counts")
    parser.add_argument("--sets", nargs="*", type=int, default=[1, 2], help="newsgroups to train on")
    parser.add_argument("--every", type=int, default=1, help="2: only every second document")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--png", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    print(machine())
    data = read(arguments.data / "20newsgroups")
    scaled = {name: Documents(SCALINGS[name](data), data.group) for name in arguments.scalings}
    scaled = {name: found.take(np.arange(0, len(found.group), arguments.every)) for name, found in scaled.items()}
    runs = list(itertools.product(arguments.scalings, arguments.sets))
    if "table" in arguments.parts:
        print("\n### Newsgroups never seen, alpha by hold-out of half of the newsgroups\n")
        print("| words | trained on | model | paper | error | alpha | CPU seconds | MB |\n" + "|---" * 8 + "|")
        for name, number in runs:
            table(scaled[name], name, number)
    if "auto" in arguments.parts:
        print('\n### Newsgroups never seen, alpha="auto"\n')
        print("| words | trained on | model | error | alpha | error within | CPU seconds | MB |\n" + "|---" * 8 + "|")
        for name, number in runs:
            automatic(scaled[name], name, number)
    if "stopped" in arguments.parts:
        print('\n### 1000 training and 500 test documents of set 1, max_iter="auto"\n')
        print("| model | error | iterations | tried | CPU seconds |\n" + "|---" * 5 + "|")
        for name in arguments.scalings:
            stopped(scaled[name].of(SETS[1]), 0)
    if "figure" in arguments.parts:
        for name in arguments.scalings:
            figure(scaled[name], name, arguments.draws, arguments.png)


if __name__ == "__main__":
    main()
