"""Documents that resemble a document: Table 2 of [Pahikkala13] on 20 newsgroups, printed as Markdown.

The relation is symmetric, so symmetric regression is ordinary regression and is left out. DIR of --data DIR holds the
folder 20newsgroups; see docs/reproductions/conditional.md for results.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from benchmarks.measure import machine, measure
from benchmarks.papers.figures import mean
from rankrls import ConditionalRankRLS
from rankrls.metrics import per_query
from rankrls.relations.complete import Kronecker, Mirrored
from rankrls.relations.relation import Domain

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


def errors(Y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(conditioning documents,) the share of wrongly ordered pairs."""
    return per_query("disagreement_error", Y.ravel(), scores.ravel(), np.repeat(np.arange(len(Y)), Y.shape[1]))


def error(Y: np.ndarray, scores: np.ndarray) -> float:
    """Share of wrongly ordered pairs, averaged over conditioning documents."""
    return float(np.nanmean(errors(Y, scores)))


def complete(K: np.ndarray, Y: np.ndarray, loss: str, relation: str | None) -> Kronecker | Mirrored:
    """Every alpha of a complete relation among objects with kernel matrix K."""
    domain, parity = Domain(K), int(relation == "symmetric")
    if loss == "ranking" and parity:
        return Mirrored(domain, Y, parity)
    return Kronecker(domain, domain, Y, ranking=loss == "ranking", parity=parity)


def chosen_alpha(train: Documents, held: Documents, loss: str, relation: str | None) -> tuple[float, float]:
    """Alpha, also in mean eigenvalues, chosen by the error on other newsgroups of a model of half of them.

    Every third of the held-out documents is a conditioning document.
    """
    path = complete((train.X @ train.X.T).toarray(), train.relation, loss, relation)
    across, Y = (held.X @ train.X.T).toarray(), held.relation[::3]
    found = [error(Y, path.coef(unit * path.mean_eigenvalue).between(across[::3].T, across.T)) for unit in UNITS]
    best = int(np.argmin(found))
    return UNITS[best] * path.mean_eigenvalue, UNITS[best]


def cost(call: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds and peak MB of a call."""
    start = time.process_time()
    taken = measure(call, repeat=1)
    return time.process_time() - start, taken.megabytes


def table(data: Documents, name: str, number: int) -> None:
    """A line for each model; alpha is chosen by holding out every other training newsgroup."""
    groups, other = SETS[number], SETS[3 - number]
    train, test = data.of(groups), data.of(other)
    X, Y, Z, V = train.X, train.relation, test.X, test.relation
    print(f"| {name} | {number} | similarity | | {mean(errors(V, (Z @ Z.T).toarray()))} | | | |", flush=True)
    for relation, loss in MODELS:
        alpha, unit = chosen_alpha(data.of(groups[::2]), data.of(groups[1::2]), loss, relation)
        model = ConditionalRankRLS(alpha, loss=loss, relation=relation)
        cpu, megabytes = cost(lambda model=model: model.fit(X, Y))
        paper = "" if relation else f"{PAPER[number, loss]:.4f}"
        figures = f"{mean(errors(V, model.predict(Z, Z)))} | {unit:.1e} | {cpu:.0f} | {megabytes:.0f}"
        print(f"| {name} | {number} | {relation or 'ordinary'} {loss} | {paper} | {figures} |", flush=True)


def automatic(data: Documents, name: str, number: int) -> None:
    """The same with alpha="auto"."""
    train, test = data.of(SETS[number]), data.of(SETS[3 - number])
    Y = train.relation
    for relation, loss in MODELS:
        model = ConditionalRankRLS(loss=loss, relation=relation)
        cpu, megabytes = cost(lambda model=model: model.fit(train.X, Y))
        unit = model.alpha_ / model.alphas_[10]  # the eleventh of the default grid is the mean eigenvalue
        scores = model.predict(test.X, test.X)
        found = f"{mean(errors(test.relation, scores))} | {unit:.1e} | {1 - model.cv_scores_.max():.4f}"
        figures = f"{found} | {cpu:.0f} | {megabytes:.0f}"
        print(f"| {name} | {number} | {relation or 'ordinary'} {loss} | {figures} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds 20newsgroups")
    parser.add_argument("--parts", nargs="*", default=["table", "auto"])
    parser.add_argument("--scalings", nargs="*", default=list(SCALINGS), help="of the word counts")
    parser.add_argument("--sets", nargs="*", type=int, default=[1, 2], help="newsgroups to train on")
    parser.add_argument("--every", type=int, default=1, help="2: only every second document")
    arguments = parser.parse_args()
    print(machine())
    data = read(arguments.data / "20newsgroups")
    scaled = {name: Documents(SCALINGS[name](data), data.group) for name in arguments.scalings}
    scaled = {name: found.take(np.arange(0, len(found.group), arguments.every)) for name, found in scaled.items()}
    runs = list(itertools.product(arguments.scalings, arguments.sets))
    if "table" in arguments.parts:
        print("\nNewsgroups never seen, alpha by half of the newsgroups held out; ± 95 % interval over documents:\n")
        print("| words | trained on | model | paper | error | alpha | CPU seconds | MB |\n" + "|---" * 8 + "|")
        for name, number in runs:
            table(scaled[name], name, number)
    if "auto" in arguments.parts:
        print('\nNewsgroups never seen, alpha="auto"; ± 95 % interval over test documents:\n')
        print("| words | trained on | model | error | alpha | error within | CPU seconds | MB |\n" + "|---" * 8 + "|")
        for name, number in runs:
            automatic(scaled[name], name, number)


if __name__ == "__main__":
    main()
