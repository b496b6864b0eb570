"""Documents ranked by how much of their newsgroup's name agrees, after Table 3 and figure 4 of [Pahikkala13].

Replaces the enzymes, which are ranked by how many digits of their EC numbers agree from the left. Here it is the parts
of a name: comp.sys.ibm.pc.hardware and comp.sys.mac.hardware share two, comp.graphics shares one with either, and 3 is
the same newsgroup. By the paper's protocol: 1,730 objects in four outer folds, ten inner ones, alpha from 10^-4 to
10^5, the median of the best over inner folds; test objects are ranked for each other. Five kernels, as in the paper.
DIR of --data DIR holds the folder 20newsgroups.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold

from benchmarks.measure import machine
from benchmarks.papers.conditional_newsgroups import (
    NAMES,
    Documents,
    complete,
    errors,
    read,
    shares,
    tf_idf,
    unit_length,
)
from benchmarks.papers.figures import finish, mean, panels, table, wilcoxon

OBJECTS, OUTER, INNER = 1730, 4, 10
ALPHAS = 10.0 ** np.arange(-4, 6)
LOSSES = ("regression", "ranking")
PAPER = {
    "unsupervised": "0.0938, 0.1185, 0.1533, 0.1077, 0.1123",
    "regression": "0.0052, 0.0050, 0.0019, 0.0054, 0.0073",
    "ranking": "0.0049, 0.0050, 0.0019, 0.0056, 0.0048",
}


def similarity(group: np.ndarray) -> np.ndarray:
    """3 within a newsgroup, else the number of parts of the names that agree from the left."""
    names = [NAMES[g].split(".") for g in range(len(NAMES))]
    shared = lambda a, b: next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 2)
    levels = np.array([[3 if a == b else min(2, shared(a, b)) for b in names] for a in names], dtype=float)
    return levels[np.ix_(group, group)]


def linear(words: Callable[[Documents], object]) -> Callable[[Documents], np.ndarray]:
    return lambda data: (words(data) @ words(data).T).toarray()


def gaussian(data: Documents) -> np.ndarray:
    """Of tf-idf documents of unit length: squared distances are 2 - 2 x'z."""
    distance = 2 - 2 * linear(tf_idf)(data)
    return np.exp(-np.maximum(0, distance) / np.median(distance))


KERNELS: dict[str, Callable[[Documents], np.ndarray]] = {
    "counts": linear(lambda data: data.X),
    "shares": linear(shares),
    "unit length": linear(unit_length),
    "tf-idf": linear(tf_idf),
    "Gaussian": gaussian,
}


def path(
    K: np.ndarray, Y: np.ndarray, train: np.ndarray, test: np.ndarray, alphas: np.ndarray, loss: str
) -> np.ndarray:
    """(alphas, test, test) scores among test objects by models of the training objects."""
    across, fitted = K[np.ix_(train, test)], complete(K[np.ix_(train, train)], Y[np.ix_(train, train)], loss, None)
    return np.stack([fitted.coef(alpha).between(across, across) for alpha in alphas])


def chosen(K: np.ndarray, Y: np.ndarray, train: np.ndarray, loss: str, inner: int) -> float:
    """The median over inner folds of the best alpha of each."""
    best = []
    for keep, leave in KFold(inner, shuffle=True, random_state=0).split(train):
        scores = path(K, Y, train[keep], train[leave], ALPHAS, loss)
        V = Y[np.ix_(train[leave], train[leave])]
        best.append(ALPHAS[int(np.argmin([np.nanmean(errors(V, s)) for s in scores]))])
    return float(np.median(best))


def judged(K: np.ndarray, Y: np.ndarray, inner: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
    """The error of each object as a query, the scores of the last outer fold, and that fold."""
    found = {name: np.full(len(Y), np.nan) for name in ("unsupervised", *LOSSES)}
    for train, test in KFold(OUTER, shuffle=True, random_state=0).split(Y):
        scores = {"unsupervised": K[np.ix_(test, test)]}
        for loss in LOSSES:
            alpha = chosen(K, Y, train, loss, inner)
            scores[loss] = path(K, Y, train, test, np.array([alpha]), loss)[0]
        for name, values in scores.items():
            found[name][test] = errors(Y[np.ix_(test, test)], values)
    return found, scores, test


def heat_maps(drawn: dict[str, np.ndarray], folder: Path) -> None:
    """Figure 4: values used to rank one fold, a row for each query; the truth is last."""
    figure, axes = panels(1, len(drawn), (2.9 * len(drawn), 3.2))
    for panel, (name, values) in zip(axes[0], drawn.items(), strict=True):
        low, high = np.percentile(values, [2, 98])
        panel.imshow(values, vmin=low, vmax=high, cmap="viridis", interpolation="nearest", aspect="equal")
        panel.set_title(name, fontsize=9)
        panel.set(xticks=[], yticks=[])
    finish(figure, folder / "newsgroups-hierarchy.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds 20newsgroups")
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--inner", type=int, default=INNER, help="inner folds")
    parser.add_argument("--png", type=Path, help="folder for the heat maps")
    arguments = parser.parse_args()
    print(machine())
    everything = read(arguments.data / "20newsgroups")
    rows = np.random.default_rng(0).permutation(len(everything.group))[: arguments.objects]
    data = everything.take(rows[np.argsort(everything.group[rows], kind="stable")])  # by newsgroup, for the pictures
    Y, kernels = similarity(data.group), {}
    for name, kernel in KERNELS.items():
        found, scores, test = judged(kernel(data), Y, arguments.inner)
        kernels[name] = found
        if name == "tf-idf" and arguments.png is not None:
            heat_maps({**scores, "truth": Y[np.ix_(test, test)]}, arguments.png)
    table(
        ["", "paper: cb, fp, wfp, mcs, lpcs", *KERNELS],
        [[n, PAPER[n], *(mean(found[n]) for found in kernels.values())] for n in PAPER]
        + [["p, ranking against regression", "", *(wilcoxon(f["ranking"], f["regression"]) for f in kernels.values())]],
        f"Error over {arguments.objects:,} documents as queries, ± 95 % interval:",
    )


if __name__ == "__main__":
    main()
