"""Rankers of strings, sequences and graphs: against the same kernel matrix given, and against plain counting."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rankrls
from rankrls import CoRankRLS, RankRLS, TransductiveRankRLS, View
from rankrls.bases import KMeansCentres, PivotedCholesky, RandomRows
from rankrls.kernels import Function, Spectrum, Walks, parse_graph
from shared import folder as data_folder

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("abc"), size=RNG.integers(3, 9))) for _ in range(40)]
Y = np.array([word.count("ab") - word.count("cc") for word in WORDS], dtype=float)
QID = np.arange(40) % 8
NEW = ["abab", "cccc", "abcabc"]


def common_letters(X, Z):
    return np.array([[sum(x.count(c) * z.count(c) for c in "abc") for z in Z] for x in X], dtype=float)


# ---------------------------------------------------------------- the kernels


def test_the_spectrum_kernel_counts_common_substrings():
    for n in (1, 2, 3):
        plain = np.array(
            [
                [
                    sum(x[i : i + n] == z[j : j + n] for i in range(len(x) - n + 1) for j in range(len(z) - n + 1))
                    for z in NEW
                ]
                for x in WORDS
            ]
        )
        K = Spectrum(n, normalise=False)
        assert_allclose(K(WORDS, NEW), plain)
        assert_allclose(K([list(word) for word in WORDS], [tuple(word) for word in NEW]), plain)
    own = np.sqrt(np.diag(K(WORDS, WORDS)))
    assert_allclose(Spectrum(3)(WORDS, WORDS), K(WORDS, WORDS) / np.outer(own, own))
    assert_allclose(Spectrum(5)(["abc"], ["abcde", "abc"]), 0)


def plain_walks(G, H, length, decay):
    """Walks of both graphs with equal labels at their ends, counted one by one."""

    def walks(graph, n):
        labels, edges = graph
        steps = {v: [b for a, b in [*edges, *((j, i) for i, j in edges)] if a == v] for v in range(len(labels))}
        found = [[v] for v in range(len(labels))]
        for _ in range(n):
            found = [[*walk, after] for walk in found for after in steps[walk[-1]]]
        return [(a, b) for walk in found for a in labels[walk[0]] for b in labels[walk[-1]]]

    total = 0.0
    for n in range(length + 1):
        total += decay**n * sum(a == b for a, b in itertools.product(walks(G, n), walks(H, n)))
    return total


def test_the_walk_kernel_counts_walks_one_by_one():
    G = parse_graph(["p53", "binds", "DNA"], ["NN", "VBZ", "NN"], [(0, 1, "Ss"), (1, 2, "Os")])
    H = parse_graph(["DNA", "binds"], ["NN", "VBZ"], [(0, 1, "Ss")])
    lone = ([["t:NN"]], [])
    for length, decay in ((0, 1.0), (1, 0.5), (3, 0.7)):
        K = Walks(length, decay, normalise=False)([G, H, lone], [G, H, lone])
        plain = [[plain_walks(a, b, length, decay) for b in (G, H, lone)] for a in (G, H, lone)]
        assert_allclose(K, plain)


# ---------------------------------------------------------------- rankers of objects

KERNELS = {"spectrum": Spectrum(2), "function": common_letters, "object": Function(common_letters)}
BASES = [None, 6, RandomRows(6), PivotedCholesky(6), [0, 3, 9, 20], ["ab", "bc", "ca", "cc"]]


def matrix(kernel, X, Z):
    return kernel(X, Z)


@pytest.mark.parametrize("loss", [{}, {"regression": 0.3}, {"tied_pairs": True}], ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_objects_are_ranked_as_by_their_kernel_matrix(kernel, loss):
    k = Spectrum(2) if kernel == "spectrum" else common_letters
    K = k(WORDS, WORDS)
    ours = RankRLS(kernel=KERNELS[kernel], **loss).fit(WORDS, Y, qid=QID)
    theirs = RankRLS(kernel="precomputed", **loss).fit(K, Y, qid=QID)
    assert_allclose(ours.predict(NEW), theirs.predict(k(NEW, WORDS)), atol=1e-8)
    assert_allclose(ours.cv_scores_, theirs.cv_scores_)
    assert_allclose(ours.predict_path(NEW), theirs.predict_path(k(NEW, WORDS)), atol=1e-8)
    assert ours.score(WORDS, Y, QID) == theirs.score(K, Y, QID)


@pytest.mark.parametrize("basis", BASES, ids=str)
def test_objects_with_a_basis(basis):
    model = RankRLS(0.1, kernel=Spectrum(2), basis=basis, random_state=0).fit(WORDS, Y, qid=QID)
    points = model.X_fit_.tolist()
    k = Spectrum(2)
    Phi, R = k(WORDS, points), k(points, points)
    import oracles

    L = oracles.laplacian(Y, QID, tied=False, weighting="items")
    a = np.linalg.lstsq(Phi.T @ L @ Phi + 0.1 * R, Phi.T @ L @ Y, rcond=1e-12)[0]
    expected, scores = Phi @ a, model.predict(WORDS)
    means = lambda v: np.array([v[q == QID].mean() for q in QID])
    assert_allclose(scores - means(scores), expected - means(expected), atol=1e-6)
    if basis is not None:
        more = RankRLS(0.1, kernel=Spectrum(2), basis=points)
        for part in (QID < 4, QID >= 4):
            rows = np.flatnonzero(part)
            more.partial_fit([WORDS[i] for i in rows], Y[rows], qid=QID[rows])
        assert_allclose(more.predict(NEW), model.predict(NEW), atol=1e-8)


def test_pairs_of_objects_weights_and_several_targets():
    pairs = [[i, j] for i, j in itertools.combinations(range(12), 2) if Y[i] > Y[j]]
    K = common_letters(WORDS, WORDS)
    ours = RankRLS(1.0, kernel=common_letters).fit_pairs(WORDS, pairs)
    assert_allclose(ours.predict(WORDS), RankRLS(1.0, kernel="precomputed").fit_pairs(K, pairs).predict(K), atol=1e-8)
    u = np.arange(40) % 3
    two = np.column_stack([Y, -Y])
    for options, y in (({}, Y), ({"tied_pairs": True}, two)):
        ours = RankRLS(1.0, kernel=common_letters, **options).fit(WORDS, y, qid=QID, sample_weight=u)
        theirs = RankRLS(1.0, kernel="precomputed", **options).fit(K, y, qid=QID, sample_weight=u)
        assert_allclose(ours.predict(WORDS), theirs.predict(K), atol=1e-8)


def test_transduction_and_views_of_objects():
    y = np.where(QID < 5, Y, np.nan)
    K = common_letters(WORDS, WORDS)
    ours = TransductiveRankRLS(1.0, kernel=common_letters).fit(WORDS, y, qid=QID)
    theirs = TransductiveRankRLS(1.0, kernel="precomputed").fit(K, y, qid=QID)
    assert_allclose(ours.transduction_, theirs.transduction_, atol=1e-7)
    assert_allclose(ours.predict(NEW), theirs.predict(common_letters(NEW, WORDS)), atol=1e-7)
    views = [View(None, Spectrum(2), 8), View(None, common_letters, [0, 1, 2])]
    model = CoRankRLS(1.0, 0.1, views=views).fit(WORDS, y, qid=QID)
    assert [len(view.points) for view in model.views_] == [8, 3]
    assert model.predict(NEW).shape == (3,)
    Phi = np.hstack([Spectrum(2)(WORDS, model.views_[0].points), K[:, :3]])
    table = np.hstack([Spectrum(2)(model.views_[0].points, model.views_[0].points)])
    assert table.shape == (8, 8) and Phi.shape == (40, 11)


# ---------------------------------------------------------------- files


def test_models_of_objects_are_saved(tmp_path):
    for kernel in (Spectrum(2), Walks(1)):
        items = WORDS if isinstance(kernel, Spectrum) else [([list(word)], []) for word in WORDS]
        model = RankRLS(1.0, kernel=kernel, basis=5).fit(items, Y, qid=QID)
        rankrls.save(model, tmp_path / "model.rankrls")
        assert_allclose(rankrls.load(tmp_path / "model.rankrls").predict(items), model.predict(items))


def test_functions_are_saved_by_name_and_loaded_on_trust(tmp_path):
    model = RankRLS(1.0, kernel=common_letters).fit(WORDS, Y, qid=QID)
    rankrls.save(model, tmp_path / "model.rankrls")
    name = f"{common_letters.__module__}.common_letters"
    with pytest.raises(rankrls.ModelFileError, match=f"names the function {name}.*trusted="):
        rankrls.load(tmp_path / "model.rankrls")
    assert_allclose(rankrls.load(tmp_path / "model.rankrls", trusted=[name]).predict(NEW), model.predict(NEW))
    with pytest.raises(TypeError, match="which a model file cannot hold"):
        rankrls.save(RankRLS(1.0, kernel=lambda X, Z: X @ Z.T).fit(np.eye(3), [0, 1, 2]), tmp_path / "no.rankrls")


# ---------------------------------------------------------------- refusals


def test_objects_that_cannot_be_used_are_refused():
    with pytest.raises(TypeError, match="k-means needs rows of numbers"):
        RankRLS(1.0, kernel=Spectrum(2), basis=KMeansCentres(3)).fit(WORDS, Y, qid=QID)
    with pytest.raises(ValueError, match="needs a list of them"):
        RankRLS(1.0, kernel=Spectrum(2)).fit(np.eye(40), Y, qid=QID)
    with pytest.raises(ValueError, match="y must hold one number per row"):
        RankRLS(1.0, kernel=Spectrum(2)).fit(WORDS, Y[:-1])


def test_parses_are_ranked_by_their_walks():
    lzma = pytest.importorskip("lzma")
    import json

    folder = data_folder("parse-ranking-genia")
    with lzma.open(folder / "genia-dev.jsonl.xz", "rt") as file:
        sentences = [json.loads(line) for line, _ in zip(file, range(30), strict=False)]
    graphs, y, qid = [], [], []
    for s in sentences:
        for parse in s["parses"]:
            graphs.append(parse_graph(s["tokens"], s["pos"], parse["links"]))
            y.append(parse["f1"])
            qid.append(s["sid"])
    y, qid = np.array(y), np.array(qid)
    train = np.isin(qid, [s["sid"] for s in sentences[:20]])
    pick = lambda mask: [graphs[i] for i in np.flatnonzero(mask)]
    model = RankRLS(kernel=Walks(1, 0.5), basis=60, random_state=0).fit(pick(train), y[train], qid=qid[train])
    assert model.score(pick(~train), y[~train], qid[~train]) > 0.5
