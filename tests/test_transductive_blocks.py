"""TransductiveRankRLS from files, streams and clusters, rows that come later, and held-out scores on request."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.model_selection import GroupKFold

import rankrls
from rankrls import CoRankRLS, RankRLS, TransductiveRankRLS, View
from rankrls.datasets import RankingData, dump_letor
from rankrls.kernels import Spectrum

RNG = np.random.default_rng(0)
M = 120
X = RNG.normal(size=(M, 4))
QID = RNG.permutation(np.repeat(np.arange(20), 6))  # the rows of a query are scattered
Y = np.where(QID % 3 == 0, np.nan, np.round(X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * RNG.normal(size=M), 1))
UNSCORED = np.isnan(Y)
NAMES = list("abcd")
BASIS = {"kernel": "rbf", "basis": X[:9]}


def table():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=NAMES).assign(y=Y, qid=QID)


def assert_same(model, expected, rows=X):
    assert model.alpha_ == pytest.approx(expected.alpha_) and model.fidelity_ == expected.fidelity_
    assert (model.n_queries_, model.n_unscored_queries_) == (expected.n_queries_, expected.n_unscored_queries_)
    assert_allclose(model.predict(rows), expected.predict(X), atol=1e-9)
    assert_allclose(model.transduce(rows[UNSCORED], QID[UNSCORED]), expected.transduction_[UNSCORED], atol=1e-9)


# ---------------------------------------------------------------- files and streams


@pytest.mark.parametrize("weighting", ["items", "pairs", "queries"])
@pytest.mark.parametrize("params", [{}, BASIS, {"fidelity": "auto", "fidelities": [0.1, 1.0]}], ids=str)
def test_files_are_rows_in_memory(params, weighting, tmp_path):
    pytest.importorskip("pyarrow")
    table().to_parquet(tmp_path / "rows.parquet", row_group_size=17)
    params = {**params, "weighting": weighting}
    expected = TransductiveRankRLS(**params).fit(X, Y, qid=QID)
    model = TransductiveRankRLS(**params).fit(tmp_path / "rows.parquet", "y", "qid")
    assert_same(model, expected, table()[NAMES])
    if "fidelity" in params:
        assert_allclose(model.cv_scores_, expected.cv_scores_)
    assert not hasattr(model, "transduction_")
    again = pickle.loads(pickle.dumps(model))
    assert_same(again, expected, table()[NAMES])
    rankrls.save(model, tmp_path / "model.rankrls")
    assert_same(rankrls.load(tmp_path / "model.rankrls"), expected, table()[NAMES])


def test_every_source(tmp_path):
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    rows = table()
    rows.to_parquet(tmp_path / "rows.parquet")
    ordered = rows.sort_values("qid", kind="stable")
    expected = TransductiveRankRLS(1.0).fit(X, Y, qid=QID)
    blocks = [ordered[i : i + 25] for i in range(0, M, 25)]
    for source in (
        pl.scan_parquet(tmp_path / "rows.parquet"),
        duckdb.sql(f"select * from '{tmp_path / 'rows.parquet'}'"),
        lambda: iter(blocks),
        iter(blocks),
    ):
        assert_same(TransductiveRankRLS(1.0).fit(source, "y", "qid"), expected, rows[NAMES])


def letor(path):
    order = np.argsort(QID, kind="stable")
    dump_letor(RankingData(X[order], np.zeros(M), QID[order]), path)
    lines = path.read_text().splitlines()
    labels = ["nan" if np.isnan(y) else f"{y}" for y in Y[order]]
    path.write_text("".join(f"{label} {line.partition(' ')[2]}\n" for label, line in zip(labels, lines, strict=True)))


def test_letor_text_with_rows_that_have_no_score(tmp_path):
    letor(tmp_path / "rows.txt")
    assert_same(TransductiveRankRLS(1.0).fit(tmp_path / "rows.txt"), TransductiveRankRLS(1.0).fit(X, Y, qid=QID))
    views = [View([0, 1]), View([2, 3])]
    model, expected = (CoRankRLS(1.0, 0.1, views=views) for _ in range(2))
    model.fit(tmp_path / "rows.txt")
    expected.fit(X, Y, qid=QID)
    assert model.n_unscored_ == UNSCORED.sum()
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-9)


def test_an_iterator_of_views_is_read_once_and_kept():
    order = np.argsort(QID, kind="stable")
    blocks = [(X[r], Y[r], QID[r]) for r in np.array_split(order, 5)]
    views = [View([0, 1]), View([2, 3], "rbf", 6)]
    params = {"views": views, "nus": [0.0, 0.1], "random_state": 0}
    model = CoRankRLS(**params).fit(iter(blocks))
    assert model.n_unscored_ == UNSCORED.sum()
    assert_allclose(model.predict(X), CoRankRLS(**params).fit(lambda: iter(blocks)).predict(X))


def test_the_width_is_chosen_and_points_are_drawn_from_blocks(tmp_path):
    pytest.importorskip("pyarrow")
    table().to_parquet(tmp_path / "rows.parquet")
    kernel = rankrls.kernels.Gaussian("auto")
    params = {"kernel": kernel, "basis": 7, "random_state": 0}
    model = TransductiveRankRLS(**params).fit(tmp_path / "rows.parquet", "y", "qid")
    assert model.ranker_.X_fit_.shape == (7, 4) and model.ranker_.kernel_ == model.inductive_.kernel_


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tied_pairs": False}, "does not support tied_pairs=False"),
        ({"regression": 0.5}, "does not support regression"),
        ({"store_path": True}, "does not support store_path"),
        ({"folds": QID}, "does not support folds"),
        ({"kernel": "rbf"}, "needs a basis"),
    ],
)
def test_options_that_need_rows_in_memory_are_refused(params, message):
    order = np.argsort(QID, kind="stable")
    with pytest.raises(ValueError, match=message):
        TransductiveRankRLS(1.0, **params).fit(iter([(X[order], Y[order], QID[order])]))


def test_bad_blocks():
    order = np.argsort(QID, kind="stable")
    full = np.nan_to_num(Y[order])
    for y, message in [
        (full, "every row has a score"),
        (np.full(M, np.nan), "no row is scored"),
        (np.where(np.arange(M) % 2, full, np.nan), "have rows with and without a score"),
    ]:
        with pytest.raises(ValueError, match=message):
            TransductiveRankRLS(1.0).fit(iter([(X[order], y, QID[order])]))
    weighted = iter([(X[order], Y[order], QID[order], np.full(M, 2.0))])
    with pytest.raises(ValueError, match="counts every row once"):
        TransductiveRankRLS(1.0).fit(weighted)
    with pytest.raises(ValueError, match="fitted to rows in memory"):
        TransductiveRankRLS(1.0).fit(X, Y, qid=QID).transduce(X, QID)


def test_dask():
    dd, engine = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask")
    from rankrls.distributed import dask

    frame = dd.from_pandas(table(), npartitions=4, sort=False)
    with engine.config.set(scheduler="synchronous"):
        for params in ({}, BASIS):
            model = dask.fit(TransductiveRankRLS(**params), frame)
            assert_same(model, TransductiveRankRLS(**params).fit(X, Y, qid=QID), table()[NAMES])


# ---------------------------------------------------------------- rows that come later


@pytest.mark.parametrize(
    "params",
    [{}, {"kernel": "rbf"}, BASIS, {"tied_pairs": False, "regression": 0.3}, {"fidelity": "auto", "cv": 3}],
    ids=["linear", "kernel", "basis", "ties and regression", "auto"],
)
def test_rows_that_come_later_and_go_again(params):
    first, model = QID < 12, TransductiveRankRLS(**params)
    model.partial_fit(X[first], Y[first], qid=QID[first])
    rest = ~first & ~UNSCORED
    model.partial_fit(X[rest], Y[rest], qid=QID[rest])  # scored
    rest = ~first & UNSCORED
    model.partial_fit(X[rest], None, qid=QID[rest])  # not
    order = np.concatenate([np.flatnonzero(first), np.flatnonzero(~first & ~UNSCORED), np.flatnonzero(rest)])
    fixed = {**params, "alpha": model.alpha_, "fidelity": model.fidelity_}
    if "kernel" in params:
        fixed["kernel"] = model.inductive_.kernel_
    whole = TransductiveRankRLS(**fixed).fit(X[order], Y[order], qid=QID[order])
    assert_allclose(model.transduction_, whole.transduction_)
    assert_allclose(model.predict(X), whole.predict(X))
    model.forget(X[~first], Y[~first], qid=QID[~first])
    early = TransductiveRankRLS(**fixed).fit(X[first], Y[first], qid=QID[first])
    assert_allclose(model.transduction_, early.transduction_)
    assert_allclose(model.predict(X), early.predict(X))


def test_the_first_rows_may_all_be_scored_and_fit_may_be_the_first_call(recwarn):
    model = TransductiveRankRLS(1.0).partial_fit(X[~UNSCORED], Y[~UNSCORED], qid=QID[~UNSCORED])
    assert not [w for w in recwarn if "transduce" in str(w.message)]
    model.partial_fit(sparse.csr_array(X[UNSCORED]).toarray(), None, qid=QID[UNSCORED])
    order = np.concatenate([np.flatnonzero(~UNSCORED), np.flatnonzero(UNSCORED)])
    whole = TransductiveRankRLS(1.0).fit(X[order], Y[order], qid=QID[order])
    assert_allclose(model.transduction_, whole.transduction_)
    late = TransductiveRankRLS(1.0).fit(X[QID < 15], Y[QID < 15], qid=QID[QID < 15])
    late.partial_fit(X[QID >= 15], Y[QID >= 15], qid=QID[QID >= 15])
    assert_allclose(late.predict(X), whole.predict(X))


def test_objects_and_sparse_rows_come_later_too():
    words = ["".join(RNG.choice(list("abc"), size=6)) for _ in range(M)]
    scattered = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    for rows, params in ((words, {"kernel": Spectrum(2)}), (scattered, {})):
        pick = lambda part, rows=rows: [rows[i] for i in part] if isinstance(rows, list) else rows[part]
        one, two = np.flatnonzero(QID < 10), np.flatnonzero(QID >= 10)
        model = TransductiveRankRLS(1.0, **params)
        for part in (one, two):
            model.partial_fit(pick(part), Y[part], qid=QID[part])
        order = np.concatenate([one, two])
        whole = TransductiveRankRLS(1.0, **params).fit(pick(order), Y[order], qid=QID[order])
        assert_allclose(model.transduction_, whole.transduction_)


def test_invalid_updates_are_refused():
    def fitted(rows=X, **params):
        return TransductiveRankRLS(1.0, **params).fit(rows, Y, qid=QID)

    mine = X.copy()
    model = fitted(mine)
    mine[3] += 1
    for message, old, rows, qid in [
        ("changed in place", model, X[:6], ["new"] * 6),
        ("no longer has its training rows", pickle.loads(pickle.dumps(fitted())), X[:6], [99] * 6),
        ("folds has a label for each row", fitted(folds=QID % 4), X[:6], [99] * 6),
        ("the whole matrix", fitted(X @ X.T, kernel="precomputed"), X[:6] @ X.T, [99] * 6),
        ("query ids had the type", fitted(), X[:6], ["new"] * 6),
    ]:
        with pytest.raises(ValueError, match=message):
            old.partial_fit(rows, None, qid=qid)
    model, before = fitted(), fitted().predict(X)
    with pytest.raises(ValueError, match="query 0 was learned from 6 rows, but 2 were given to forget"):
        model.forget(X[QID == 0][:2], None, qid=[0, 0])
    with pytest.raises(ValueError, match="query 77 was learned from 0 rows"):
        model.forget(X[:2], None, qid=[77, 77])
    with pytest.raises(ValueError, match="no scored row would be left"):
        model.forget(X[~UNSCORED], Y[~UNSCORED], qid=QID[~UNSCORED])
    assert_array_equal(model.predict(X), before)


# ---------------------------------------------------------------- held-out scores on request


def test_held_out_scores_are_kept_on_request():
    model = TransductiveRankRLS(store_path=True, fidelity="auto", fidelities=[0.1, 10.0], cv=GroupKFold(3))
    model.fit(X, Y, qid=QID)
    rows = ~UNSCORED
    alone = RankRLS(tied_pairs=True, scale=None, store_path=True).fit(X[rows], Y[rows], qid=QID[rows])
    assert_allclose(model.cv_predictions_path_[rows], alone.cv_predictions_path_)
    assert_allclose(model.cv_predictions_[rows], alone.cv_predictions_)
    assert np.isnan(model.cv_predictions_path_[UNSCORED]).all()
    assert_array_equal(model.alphas_, alone.alphas_)
    held = model.fidelity_predictions_path_
    assert held.shape == (M, 2) and np.isfinite(held[rows]).all()
    _, out = next(iter(GroupKFold(3).split(QID[rows], groups=numbered(QID[rows]))))
    hidden = Y.copy()
    hidden[np.flatnonzero(rows)[out]] = np.nan
    one = TransductiveRankRLS(model.alpha_, 10.0).fit(X, hidden, qid=QID)
    assert_allclose(held[np.flatnonzero(rows)[out], 1], one.transduction_[np.flatnonzero(rows)[out]])
    one = TransductiveRankRLS(1.0, store_path=True).fit(X, Y, qid=QID)
    assert one.cv_predictions_path_.shape == (M, 1)
    assert not hasattr(TransductiveRankRLS(1.0).fit(X, Y, qid=QID), "cv_predictions_path_")


def numbered(qid):
    """Queries numbered as they come."""
    seen = list(dict.fromkeys(qid.tolist()))
    return np.array([seen.index(q) for q in qid.tolist()])


def test_a_splitter_that_cuts_queries_is_refused():
    n = int((~UNSCORED).sum())
    with pytest.raises(ValueError, match="cv cuts a query"):
        TransductiveRankRLS(1.0, fidelity="auto", cv=[(np.arange(30), np.arange(30, n))]).fit(X, Y, qid=QID)
