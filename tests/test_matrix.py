"""What every ranker can do: each cell works, or raises the error that the documentation names.

`python tests/test_matrix.py` writes the table into docs/capabilities.md.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold

import rankrls
from rankrls import (
    AutoRanker,
    ConditionalRankRLS,
    CoRankRLS,
    RankingPursuit,
    RankRLS,
    TransductiveRankRLS,
    TwoStepRLS,
    View,
)
from rankrls.kernels import Gaussian, Spectrum

RNG = np.random.default_rng(0)
M = 48
X = RNG.normal(size=(M, 4))
QID = np.repeat(np.arange(8), 6)
FULL = np.round(X @ [1.0, -1.0, 0.5, 0.2] + 0.3 * RNG.normal(size=M), 1)
PARTLY = np.where(QID < 6, FULL, np.nan)
K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
ROWS = [0, 7, 13, 20, 31]
WORDS = ["".join(RNG.choice(list("abc"), size=6)) for _ in range(M)]
NAMES = ["a", "b", "c", "d"]
PAGE = Path(__file__).parents[1] / "docs" / "capabilities.md"


def products(A, B):
    return np.asarray(A, dtype=float) @ np.asarray(B, dtype=float).T


def views(kernel=None, basis=None):
    return {"views": [View([0, 1], kernel, basis), View([2, 3], kernel, basis)]}


class Case:
    """A ranker with numbers for everything that could be chosen, and how its parameters are spelt."""

    def __init__(self, cls, *numbers, y, **fixed):
        self.cls, self.numbers, self.y, self.fixed = cls, numbers, y, fixed

    def __call__(self, **params):
        return self.cls(*self.numbers, **{**self.fixed, **params})

    def with_kernel(self, kernel, basis=None):
        if self.cls is CoRankRLS:
            return self(**views(kernel, basis))
        return self(kernel=kernel, **({} if basis is None else {"basis": basis}))

    def fitted(self, rows=X, y=None, *, model=None, **fit):
        model = self() if model is None else model
        model.fit(rows, self.y if y is None else y, **{"qid": QID, **fit})
        assert np.isfinite(model.predict(rows)).all()
        return model


RANKERS = {
    "RankRLS": Case(RankRLS, 1.0, y=FULL),
    "CoRankRLS": Case(CoRankRLS, 1.0, 0.1, y=PARTLY, **views()),
    "TransductiveRankRLS": Case(TransductiveRankRLS, 1.0, y=PARTLY),
    "RankingPursuit": Case(RankingPursuit, 2, y=PARTLY, kernel=None),
    "AutoRanker": Case(AutoRanker, y=FULL, effort="fast", relative=False),
}


def kernels(case, path):
    case.fitted(model=case.with_kernel("rbf", 5))


def precomputed(case, path):
    if case.cls is CoRankRLS:
        halves = [View(slice(0, M), "precomputed"), View(slice(M, 2 * M), "precomputed")]
        return case.fitted(np.hstack([K, X @ X.T]), model=case(views=halves))
    return case.fitted(K, model=case.with_kernel("precomputed"))


def columns_of_the_basis(case, path):
    if case.cls is CoRankRLS:
        halves = [View(slice(0, 5), "precomputed", ROWS), View(slice(5, 9))]
        return case.fitted(np.hstack([K[:, ROWS], X]), model=case(views=halves))
    return case.fitted(K[:, ROWS], model=case(kernel="precomputed", basis=ROWS))


def objects(case, path):
    options = {"views": [View(None, Spectrum(2), 8), View(None, Spectrum(1), 3)]} if case.cls is CoRankRLS else {}
    case.fitted(WORDS, model=case(**options) if options else case(kernel=Spectrum(2)))


def sparse_rows(case, path):
    case.fitted(sparse.csr_array(X))


def weights(case, path):
    case.fitted(sample_weight=1.0 + np.arange(M) % 3)


def regression(case, path):
    case.fitted(model=case(regression=0.3))


def ties(case, path):
    for tied in (True, False):
        case.fitted(model=case(tied_pairs=tied))


def weightings(case, path):
    for weighting in ("pairs", "queries", "items"):
        case.fitted(model=case(weighting=weighting))


def widths(case, path):
    case.fitted(model=case.with_kernel(Gaussian("auto"), 5))


def several_targets(case, path):
    targets = np.column_stack([case.y, -case.y])
    model = case() if case.cls is AutoRanker else case(tied_pairs=True)
    assert case.fitted(y=targets, model=model).predict(X).shape == (M, 2)


def frames(case, path):
    pd = pytest.importorskip("pandas")
    model = case.fitted(pd.DataFrame(X, columns=NAMES))
    assert list(model.feature_names_in_) == NAMES


def columns_by_name(case, path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=NAMES).assign(label=case.y, query=QID)
    case().fit(table, "label", "query")


def out_of_core(case, path):
    pd = pytest.importorskip("pandas")
    pd.DataFrame(X, columns=NAMES).assign(y=case.y, qid=QID).to_parquet(path / "rows.parquet")
    case().fit(path / "rows.parquet", "y", "qid")


def dask(case, path):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    import dask as engine

    from rankrls.distributed import dask as on_dask

    table = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=case.y, qid=QID), npartitions=2)
    with engine.config.set(scheduler="synchronous"):
        on_dask.fit(case(), table, y="y", qid="qid")


def partial_fit(case, path):
    model, whole = case(), case.fitted()
    for part in (QID < 4, QID >= 4):
        model.partial_fit(X[part], case.y[part], qid=QID[part])
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-8)


def forget(case, path):
    model, gone = case.fitted(), QID >= 4
    model.forget(X[gone], case.y[gone], qid=QID[gone])
    early = case().fit(X[~gone], case.y[~gone], qid=QID[~gone])
    np.testing.assert_allclose(model.predict(X), early.predict(X), atol=1e-7)


def paths(case, path):
    assert case.fitted().predict_path(X).shape[0] == M


def save(case, path):
    model = case.fitted()
    rankrls.save(model, path / "model.rankrls")
    np.testing.assert_allclose(rankrls.load(path / "model.rankrls").predict(X), model.predict(X))


def function_kernel(case, path):
    model = case.fitted(model=case.with_kernel(products, ROWS))
    rankrls.save(model, path / "model.rankrls")
    loaded = rankrls.load(path / "model.rankrls", trusted=[f"{products.__module__}.products"])
    np.testing.assert_allclose(loaded.predict(X), model.predict(X))


def onnx(case, path):
    pytest.importorskip("onnx")
    from rankrls.export import to_onnx

    to_onnx(case.fitted())


def explain(case, path):
    model = case.fitted()
    scores = model.predict(X)
    np.testing.assert_allclose(model.explain(X[0], X[1]).sum(), scores[0] - scores[1], atol=1e-8)


def splitters(case, path):
    chosen = {RankRLS: {"alpha": "auto"}, CoRankRLS: {"alpha": "auto"}, TransductiveRankRLS: {"fidelity": "auto"}}
    params = chosen.get(case.cls, {"n_basis": "auto", "max_basis": 3})
    case.fitted(model=case().set_params(cv=GroupKFold(3), **params))


def no_qid(case, path):
    y = np.where(np.arange(M) < 30, FULL, np.nan) if np.isnan(case.y).any() else FULL
    case().fit(X, y)


# ---------------------------------------------------------------- relations: objects at both ends in place of rows

ENDS = X[:14, :3], X[14:26, :3]
RELATION = ENDS[0] @ RNG.normal(size=(3, 3)) @ ENDS[1].T
EDGES = {"source": "user", "target": "item"}


class Ends:
    """A model of relations with a number for alpha; its cells have objects at both ends, or a list of edges."""

    def __init__(self, cls, *numbers, regression):
        self.cls, self.numbers, self.regression = cls, numbers, regression

    def __call__(self, **params):
        return self.cls(*self.numbers, **params)

    def fitted(self, rows=ENDS, Y=RELATION, *, model=None, **fit):
        model = (self() if model is None else model).fit(rows[0], Y, rows[1], **fit)
        assert np.isfinite(model.predict(*rows)).all()
        return model


def edge_list():
    pd = pytest.importorskip("pandas")
    i, j = np.indices(RELATION.shape)
    return pd.DataFrame({"user": i.ravel(), "item": j.ravel(), "stars": RELATION.ravel()})


def on_file(path):
    edge_list().to_parquet(path / "edges.parquet")
    return path / "edges.parquet"


def edges_on_dask(case, path):
    dd, engine = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask")
    from rankrls.distributed import dask as on_dask

    with engine.config.set(scheduler="synchronous"):
        frame = dd.from_pandas(edge_list(), npartitions=2)
        on_dask.fit_edges(case(), ENDS[0], frame, "stars", ENDS[1], **EDGES)


def named_objects(case, path):
    pd = pytest.importorskip("pandas")
    case.fitted([pd.DataFrame(rows, columns=NAMES[:3]) for rows in ENDS])


def saved(model, path, **how):
    rankrls.save(model, path / "model.rankrls")
    loaded = rankrls.load(path / "model.rankrls", **how)
    np.testing.assert_allclose(loaded.predict(*ENDS), model.predict(*ENDS))


def relation_graph(case, path):
    pytest.importorskip("onnx")
    from rankrls.export import to_onnx

    to_onnx(case.fitted())


RELATIONS = {
    "kernels": lambda case, path: case.fitted(model=case(kernel="rbf")),
    "precomputed kernels": lambda case, path: case.fitted(
        (K[:14, :14], K[14:26, 14:26]), model=case(kernel="precomputed")
    ),
    "kernel values with a basis alone (m x r)": lambda case, path: case.fitted(
        (K[:14, :3], K[14:26, 14:17]), model=case(kernel="precomputed", basis=[0, 1, 2])
    ),
    "strings, graphs, any objects": lambda case, path: case.fitted(
        (WORDS[:14], WORDS[14:26]), model=case(kernel=Spectrum(2))
    ),
    "sparse rows (CSR)": lambda case, path: case.fitted([sparse.csr_array(rows) for rows in ENDS]),
    "`sample_weight`": lambda case, path: case.fitted(sample_weight=1 + RELATION**2),
    "`regression`": lambda case, path: case.fitted(model=case(**case.regression)),
    "tied pairs in or out": lambda case, path: case.fitted(model=case(tied_pairs=False)),
    "three weightings": lambda case, path: [
        case.fitted(model=case(weighting=weighting)) for weighting in ("items", "pairs", "queries")
    ],
    '`gamma="auto"`': lambda case, path: case.fitted(model=case(kernel=Gaussian("auto"))),
    "several targets": lambda case, path: case.fitted(Y=np.stack([RELATION, RELATION])),
    "data frames": named_objects,
    "`y` and `qid` by name": lambda case, path: case().fit_edges(ENDS[0], edge_list(), "stars", ENDS[1], **EDGES),
    "files larger than memory": lambda case, path: case().fit_edges(ENDS[0], on_file(path), "stars", ENDS[1], **EDGES),
    "Dask": edges_on_dask,
    "`partial_fit`": lambda case, path: case.fitted().partial_fit(ENDS[0], RELATION, ENDS[1]),
    "`forget`": lambda case, path: case.fitted().forget(ENDS[0], RELATION, ENDS[1]),
    "paths": lambda case, path: case.fitted().predict_path(*ENDS),
    "`save` and `load`": lambda case, path: saved(case.fitted(), path),
    "kernels that are functions, saved": lambda case, path: saved(
        case.fitted(model=case(kernel=products)), path, trusted=[f"{products.__module__}.products"]
    ),
    "ONNX": relation_graph,
    "`explain`": lambda case, path: case.fitted().explain(ENDS[0][0], ENDS[1][0]),
    "scikit-learn's splitters": lambda case, path: case.fitted(model=case().set_params(alpha="auto", cv=GroupKFold(3))),
    "without `qid`": lambda case, path: case.fitted(),
}
RANKERS["ConditionalRankRLS"] = Ends(ConditionalRankRLS, 1.0, regression={"loss": "regression"})
RANKERS["TwoStepRLS"] = Ends(TwoStepRLS, 1.0, 1.0, regression={})  # the only loss it has

CAPABILITIES = {
    "kernels": kernels,
    "precomputed kernels": precomputed,
    "kernel values with a basis alone (m x r)": columns_of_the_basis,
    "strings, graphs, any objects": objects,
    "sparse rows (CSR)": sparse_rows,
    "`sample_weight`": weights,
    "`regression`": regression,
    "tied pairs in or out": ties,
    "three weightings": weightings,
    '`gamma="auto"`': widths,
    "several targets": several_targets,
    "data frames": frames,
    "`y` and `qid` by name": columns_by_name,
    "files larger than memory": out_of_core,
    "Dask": dask,
    "`partial_fit`": partial_fit,
    "`forget`": forget,
    "paths": paths,
    "`save` and `load`": save,
    "kernels that are functions, saved": function_kernel,
    "ONNX": onnx,
    "`explain`": explain,
    "scikit-learn's splitters": splitters,
    "without `qid`": no_qid,
}
Refusal = tuple[type[Exception], str, str]  # the error, what it says, and why


def unknown(parameter: str, why: str) -> Refusal:
    return TypeError, f"unexpected keyword argument '{parameter}'", why


def without(method: str, why: str) -> Refusal:
    return AttributeError, f"no attribute '{method}'", why


ONE_TARGET = "one column of scores is learned at a time"
IN_MEMORY = "each step of a pursuit looks at all rows: they have to be in memory"
OWN_KERNELS = "it chooses its kernels itself, on rows of numbers; text in frames is encoded"
OWN_LOSS = "it chooses its loss and its folds itself"
MATRIX = "it needs the complete matrix of a relation; `ConditionalRankRLS` takes lists of edges"
WHOLE = "the closed form is of a whole relation, not of sums that grow: fit it again"
REFUSED: dict[tuple[str, str], Refusal] = {
    ("several targets", "TransductiveRankRLS"): (ValueError, "y must hold one number per row", ONE_TARGET),
    ("without `qid`", "TransductiveRankRLS"): (ValueError, "transduction needs qid", "it holds out whole queries"),
    ("several targets", "RankingPursuit"): (ValueError, "y must hold one number per row", ONE_TARGET),
    ("files larger than memory", "RankingPursuit"): (ValueError, "learns from rows in memory", IN_MEMORY),
    ("Dask", "RankingPursuit"): (TypeError, "cannot be fitted on a cluster", IN_MEMORY),
    ("`partial_fit`", "RankingPursuit"): without("partial_fit", "which functions are chosen depends on all rows"),
    ("`forget`", "RankingPursuit"): without("forget", "which functions are chosen depends on all rows"),
    ("several targets", "AutoRanker"): (ValueError, "y should be a 1d array", ONE_TARGET),
    ("`partial_fit`", "AutoRanker"): without("partial_fit", "columns and candidates are judged on all rows"),
    ("`forget`", "AutoRanker"): without("forget", "columns and candidates are judged on all rows"),
    ("paths", "AutoRanker"): without("predict_path", "a stack of models has no single alpha"),
    ("scikit-learn's splitters", "AutoRanker"): (ValueError, "Invalid parameter 'cv'", OWN_LOSS),
    ("tied pairs in or out", "ConditionalRankRLS"): unknown("tied_pairs", "pairs of equal values count"),
    ("several targets", "ConditionalRankRLS"): (ValueError, "Y must be a matrix", "one relation is learned at a time"),
    ("`partial_fit`", "ConditionalRankRLS"): without("partial_fit", WHOLE),
    ("`forget`", "ConditionalRankRLS"): without("forget", WHOLE),
    ("paths", "ConditionalRankRLS"): without("predict_path", "the held-out curve `cv_scores_` is all it keeps"),
    ("`explain`", "ConditionalRankRLS"): without("explain", "a score belongs to two objects, not to a row"),
    ("scikit-learn's splitters", "ConditionalRankRLS"): (
        ValueError,
        "a number of folds or a RelationKFold",
        "rows and edges are held out in four settings, which `RelationKFold` knows",
    ),
    ("`sample_weight`", "TwoStepRLS"): unknown("sample_weight", "both steps are plain ridge regressions"),
    ("tied pairs in or out", "TwoStepRLS"): unknown("tied_pairs", "it has no ranking loss"),
    ("three weightings", "TwoStepRLS"): unknown("weighting", "it has no ranking loss"),
    ("several targets", "TwoStepRLS"): (ValueError, "Y must be a matrix", "one relation is learned at a time"),
    ("`y` and `qid` by name", "TwoStepRLS"): without("fit_edges", MATRIX),
    ("files larger than memory", "TwoStepRLS"): without("fit_edges", MATRIX),
    ("Dask", "TwoStepRLS"): without("fit_edges", MATRIX),
    ("`partial_fit`", "TwoStepRLS"): without("partial_fit", WHOLE),
    ("`forget`", "TwoStepRLS"): without("forget", WHOLE),
    ("paths", "TwoStepRLS"): without("predict_path", "the held-out curve `cv_scores_` is all it keeps"),
    ("`explain`", "TwoStepRLS"): without("explain", "a score belongs to two objects, not to a row"),
    ("scikit-learn's splitters", "TwoStepRLS"): (
        ValueError,
        "cv must be one of",
        "objects and edges are left out exactly, without folds",
    ),
}
REFUSED |= {(capability, "AutoRanker"): unknown(parameter, why) for capability, parameter, why in (
    ("kernels", "kernel", OWN_KERNELS),
    ("precomputed kernels", "kernel", OWN_KERNELS),
    ("kernel values with a basis alone (m x r)", "kernel", OWN_KERNELS),
    ("strings, graphs, any objects", "kernel", OWN_KERNELS),
    ('`gamma="auto"`', "kernel", OWN_KERNELS),
    ("kernels that are functions, saved", "kernel", OWN_KERNELS),
    ("`regression`", "regression", OWN_LOSS),
    ("tied pairs in or out", "tied_pairs", OWN_LOSS),
    ("three weightings", "weighting", OWN_LOSS),
)}  # fmt: skip


def try_cell(capability, ranker, path):
    case = RANKERS[ranker]
    return (RELATIONS if isinstance(case, Ends) else CAPABILITIES)[capability](case, path)


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_cell_works_or_raises_the_documented_error(capability, ranker, tmp_path):
    refused = REFUSED.get((capability, ranker))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few queries have much to warn about
        if refused is None:
            try_cell(capability, ranker, tmp_path)
            return
        with pytest.raises(refused[0], match=refused[1]):
            try_cell(capability, ranker, tmp_path)


def table() -> str:
    """The matrix in Markdown, with the errors below it."""
    numbers, notes = {}, []
    lines = ["| | " + " | ".join(f"`{name}`" for name in RANKERS) + " |", "|---|" + "---|" * len(RANKERS)]
    for capability in CAPABILITIES:
        cells = []
        for ranker in RANKERS:
            refused = REFUSED.get((capability, ranker))
            if refused is not None and refused not in numbers:
                numbers[refused] = len(numbers) + 1
                error, says, why = refused
                notes.append(f'{numbers[refused]}. `{error.__name__}`, "{says}": {why}.')
            cells.append("yes" if refused is None else f"no ({numbers[refused]})")
        lines.append(f"| {capability} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "The refusals:", "", *notes])


def test_the_documentation_shows_this_table():
    assert table() in PAGE.read_text(encoding="utf-8"), "run python tests/test_matrix.py"


if __name__ == "__main__":
    head = PAGE.read_text(encoding="utf-8").partition("| | ")[0] if PAGE.exists() else "# What every ranker can do\n\n"
    PAGE.write_text(head + table() + "\n", encoding="utf-8")
