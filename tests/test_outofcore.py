"""Rows read in blocks give the same model as rows in memory."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

import oracles
import rankrls
from papers import RankRLS
from rankrls.blocks import reading, sources
from rankrls.blocks.block import Block
from rankrls.blocks.sums import SumRows, TreeSum, fold_of
from rankrls.blocks.totals import Counts, Loss, QueryTotals
from rankrls.core.features import Identity
from rankrls.datasets import RankingData, dump_letor, iter_letor
from rankrls.kernels import Gaussian

FEATURES = 5


def rows(m=700, n_queries=40, seed=0, scattered=True, dtype=np.float64):
    """Ragged queries, some of one row, with offsets that differ from query to query."""
    rng = np.random.default_rng(seed)
    qid = rng.integers(0, n_queries, m)
    if not scattered:
        qid = np.sort(qid)
    X = rng.normal(size=(m, FEATURES)) + 5 * rng.normal(size=(n_queries, FEATURES))[qid]
    y = np.clip(np.round(X @ rng.normal(size=FEATURES) + rng.normal(size=m)), -3, 3)
    y[rng.random(m) < 0.2] += rng.random()  # some levels that few rows share
    return X.astype(dtype), y, np.array([f"q{q}" for q in qid], dtype=object), rng.integers(0, 4, m).astype(float)


def frame(X, y, qid, weights=None):
    columns = {f"f{i}": X[:, i] for i in range(X.shape[1])} | {"y": y, "qid": qid}
    return pd.DataFrame(columns if weights is None else columns | {"w": weights})


@pytest.fixture(autouse=True)
def _small_blocks(limit):
    limit(table_rows=64)


def assert_same(model, expected, rtol=1e-9):
    for name in ("coef_", "dual_coef_", "alpha_", "intercept_", "alphas_", "cv_scores_"):
        if hasattr(expected, name):
            assert_allclose(getattr(model, name), getattr(expected, name), rtol=rtol, atol=1e-10, err_msg=name)
    for name in ("n_queries_", "n_pairs_", "n_features_in_", "tied_pairs_"):
        assert getattr(model, name) == getattr(expected, name), name


# ---------------------------------------------------------------- where rows come from


def parquet_file(folder, table):
    pq.write_table(table, folder / "rows.parquet", row_group_size=150)
    return folder / "rows.parquet"


def parquet_folder(folder, table):
    (folder / "parts").mkdir()
    for i, start in enumerate(range(0, table.num_rows, 300)):
        pq.write_table(table.slice(start, 300), folder / "parts" / f"part-{i}.parquet")
    (folder / "parts" / "_SUCCESS").touch()
    return str(folder / "parts")


def lazy_frame(folder, table):
    return pytest.importorskip("polars").scan_parquet(parquet_file(folder, table))


def relation(folder, table):
    return pytest.importorskip("duckdb").from_arrow(table)


def dataset(folder, table):
    return pa.dataset.dataset(parquet_folder(folder, table), format="parquet")


@pytest.mark.parametrize("source", [parquet_file, parquet_folder, lazy_frame, relation, dataset])
@pytest.mark.parametrize("scattered", [False, True])
def test_tables_equal_rows_in_memory(source, scattered, tmp_path):
    X, y, qid, _ = rows(scattered=scattered)
    model = RankRLS().fit(source(tmp_path, pa.Table.from_pandas(frame(X, y, qid))), y="y", qid="qid")
    assert_same(model, RankRLS().fit(X, y, qid=qid))
    assert model.feature_names_in_.tolist() == [f"f{i}" for i in range(FEATURES)]
    assert_allclose(model.predict(frame(X, y, qid).drop(columns=["y"])), RankRLS().fit(X, y, qid=qid).predict(X))


@pytest.mark.parametrize("kind", ["tuples", "data", "frames", "batches", "sparse", "reader", "text"])
def test_blocks_one_after_the_other_equal_rows_in_memory(kind, tmp_path):
    X, y, qid, _ = rows(scattered=False)
    table = frame(X, y, qid)
    cuts = [slice(i, i + 90) for i in range(0, len(y), 90)]  # within queries
    blocks = {
        "tuples": lambda: ((X[c], y[c], qid[c]) for c in cuts),
        "data": lambda: (RankingData(X[c], y[c], qid[c]) for c in cuts),
        "frames": lambda: (table.iloc[c] for c in cuts),
        "batches": lambda: iter(pa.Table.from_pandas(table, preserve_index=False).to_batches(90)),
        "sparse": lambda: ((sparse.csr_array(X[c]), y[c], qid[c]) for c in cuts),
        "reader": lambda: pa.Table.from_pandas(table, preserve_index=False).to_reader(90),
    }
    if kind == "text":
        dump_letor(RankingData(X, y, qid), tmp_path / "rows.txt")
        source = tmp_path / "rows.txt"
    else:
        source = blocks[kind]
        once = source()
        names = {"y": "y"} if kind == "reader" else {}
        assert_same(RankRLS(2.0).fit(once, **names), RankRLS(2.0).fit(X, y, qid=qid))
    assert_same(RankRLS().fit(source), RankRLS().fit(X, y, qid=qid))


@pytest.mark.parametrize("weighting", ["pairs", "queries", "items"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("regression", [0.0, 0.4, 1.0])
def test_every_loss(weighting, tied, regression, tmp_path):
    X, y, qid, weights = rows()
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid, weights)))
    model = RankRLS(weighting=weighting, tied_pairs=tied, regression=regression)
    expected = RankRLS(**model.get_params()).fit(X, y, qid=qid, sample_weight=weights)
    assert_same(model.fit(path, sample_weight="w"), expected)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_cut_into_parts_gives_the_same_sums(data):
    m = data.draw(st.integers(2, 60))
    seed = data.draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    part = rng.integers(0, data.draw(st.integers(1, 6)), m)
    qid, y = rng.integers(0, 5, m), rng.integers(0, 3, (m, 1)).astype(float)
    X, weights = rng.normal(size=(m, 3)) + 100, rng.integers(1, 4, m).astype(float)
    loss = Loss(
        data.draw(st.sampled_from(["pairs", "queries", "items"])),
        data.draw(st.sampled_from([0.0, 0.3])),
        data.draw(st.booleans()),
    )
    parts = [Block(X, y, qid, weights).take(np.flatnonzero(part == p)) for p in np.unique(part)]
    counts = TreeSum()
    for block in parts:
        counts.add(Counts.of(block, tied=loss.tied))
    for split in (False, True):
        totals, sums = QueryTotals.of(counts.total(), loss, split=split), TreeSum()
        for block in parts:
            sums.add(SumRows(Identity(3), totals, loss, np.float64)(block))
        found = sums.total().finished(totals, loss)
        options = {"tied": loss.tied, "weighting": loss.weighting, "beta": loss.regression}
        Lt = oracles.laplacian(y[:, 0], qid, u=weights, **options)
        V = np.hstack([X, y])
        if loss.regression:
            V = V - np.average(V, axis=0, weights=weights)
        expected = V.T @ Lt @ V
        assert_allclose(found.gram, expected[:3, :3], atol=1e-8)
        assert_allclose(found.cross, expected[:3, 3:], atol=1e-8)
        assert_allclose(found.square, expected[3, 3], atol=1e-8)
        assert found.n_rows == m and found.n_queries == len(np.unique(qid))


def test_one_query_spread_over_all_blocks(tmp_path):
    X, y, *_ = rows()
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid=np.zeros(len(y))).drop(columns=["qid"])))
    assert_same(RankRLS(3.0).fit(path), RankRLS(3.0).fit(X, y))
    with pytest.raises(ValueError, match="there is only one"):
        RankRLS().fit(path)


@pytest.mark.parametrize(("tied", "regression", "auto"), [(False, 0.0, False), (True, 0.3, False), (False, 0.0, True)])
def test_nearly_collinear_columns(tied, regression, auto, tmp_path):
    """A'A loses the digits that tell two columns apart; further passes over the rows restore them, as in memory."""
    X, y, qid, _ = rows()
    X[:, 4] = X[:, 0] + 1e-7 * np.random.default_rng(1).normal(size=len(X))
    params = {"alphas": [1e-12]} if auto else {"alpha": 1e-12}
    params |= {"tied_pairs": tied, "regression": regression}
    model = RankRLS(**params).fit(parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid))), y="y", qid="qid")
    in_memory = RankRLS(**params).fit(X, y, qid=qid)
    F = oracles.laplacian(y, qid, tied=tied, weighting="items", beta=regression)
    centred = X - X.mean(axis=0) if regression else X
    root = np.linalg.cholesky(F + 1e-14 * np.eye(len(F)))  # least squares on the rows, not on A'A
    A = np.vstack([root.T @ centred, 1e-6 * np.eye(FEATURES)])
    z = np.concatenate([root.T @ (y - y.mean() if regression else y), np.zeros(FEATURES)])
    w, _, _, s = np.linalg.lstsq(A, z, rcond=None)
    assert_allclose(model.coef_, w, rtol=1e-5)
    # what one rounding of every number in A moves the weights by (Wedin): no two ways to solve agree better
    bound = np.finfo(float).eps * s[0] / s[-1] * (1 + np.linalg.norm(z - A @ w) / (s[-1] * np.linalg.norm(w)))
    assert bound < 3e-6
    assert np.linalg.norm(model.coef_ - in_memory.coef_) <= bound * np.linalg.norm(w)
    assert_allclose(X @ model.coef_, X @ in_memory.coef_, atol=1e-8)


def test_single_precision(tmp_path):
    X, y, qid, _ = rows(dtype=np.float32)
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    model = RankRLS(1.0).fit(path)
    assert model.coef_.dtype == np.float32
    assert_allclose(model.coef_, RankRLS(1.0).fit(X.astype(float), y, qid=qid).coef_, rtol=1e-4, atol=1e-5)


def test_several_targets():
    X, y, qid, _ = rows(scattered=False)
    Y = np.column_stack([y, y**2])
    model = RankRLS(tied_pairs=True).fit(lambda: ((X[c], Y[c], qid[c]) for c in np.array_split(np.arange(len(y)), 9)))
    assert_same(model, RankRLS(tied_pairs=True).fit(X, Y, qid=qid))
    with pytest.raises(ValueError, match="tied_pairs=True"):
        RankRLS().fit(iter([(X, Y, qid)]))


def test_ties_are_chosen_too(tmp_path):
    X, y, qid, _ = rows()
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    assert_same(RankRLS(tied_pairs="auto").fit(path), RankRLS(tied_pairs="auto").fit(X, y, qid=qid))


def test_kernels_on_points(tmp_path):
    X, y, qid, _ = rows()
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    params = {"kernel": Gaussian(0.02), "basis": X[:30]}
    assert_same(RankRLS(**params).fit(path), RankRLS(**params).fit(X, y, qid=qid), rtol=1e-6)
    drawn = RankRLS(kernel="rbf", basis=25, random_state=0).fit(path)  # from all rows: there are few
    assert_same(drawn, RankRLS(kernel="rbf", basis=25, random_state=0).fit(X, y, qid=qid), rtol=1e-5)
    for params in ({}, {"basis": np.arange(5)}):
        with pytest.raises(ValueError, match="needs a basis: pass a number, .* as basis="):
            RankRLS(kernel="rbf", **params).fit(path)


def test_vectors_in_one_column(tmp_path):
    X, y, qid, _ = rows(dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), FEATURES)
    path = parquet_file(tmp_path, pa.table({"x": vectors, "y": y, "qid": pa.array(qid.tolist())}))
    model = RankRLS(1.0).fit(path)
    assert_allclose(model.coef_, RankRLS(1.0).fit(X, y, qid=qid).coef_, rtol=1e-4, atol=1e-5)
    assert model.feature_names_in_[0] == "x_0"


def test_row_labels_of_pandas_are_not_features(tmp_path):
    X, y, qid, _ = rows()
    for index in (np.arange(len(y))[::-1], pd.Index(np.arange(len(y)), name="document")):
        frame(X, y, qid).set_index(index).to_parquet(tmp_path / "rows.parquet")
        assert RankRLS(1.0).fit(tmp_path / "rows.parquet").n_features_in_ == FEATURES


# ---------------------------------------------------------------- folds


def test_folds_by_query_in_one_pass(tmp_path):
    X, y, qid, _ = rows()
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    fold = fold_of(qid, 4)
    assert len(np.unique(fold)) == 4
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(4)]
    assert_same(RankRLS(cv=4).fit(path), RankRLS(cv=splits).fit(X, y, qid=qid))
    assert fold_of(np.array([3, 3, 7]), 5).tolist() == fold_of(np.array([3, 3, 7], dtype=np.int32), 5).tolist()


@pytest.mark.parametrize("regression", [0.0, 0.5])
def test_streams_are_judged_by_their_held_out_loss(regression):
    X, y, qid, _ = rows(scattered=False)
    alphas = [0.1, 10.0, 1000.0]
    with pytest.warns(UserWarning, match="held-out loss"):
        model = RankRLS(cv=3, alphas=alphas, regression=regression).fit(iter([(X, y, qid)]))
    fold, losses = fold_of(qid, 3), np.zeros(3)
    for f in range(3):
        inside = fold != f
        Lt = oracles.laplacian(y[~inside], qid[~inside], weighting="items", tied=False, beta=regression)
        for k, alpha in enumerate(alphas):
            rest = RankRLS(alpha, regression=regression).fit(X[inside], y[inside], qid=qid[inside])
            r = y[~inside] - rest.predict(X[~inside])
            losses[k] += r @ Lt @ r
    assert_allclose(model.cv_scores_, -losses / len(np.unique(qid)))
    assert model.alpha_ == alphas[int(np.argmin(losses))]
    assert model.cv_criterion_ == "minus the loss"


def test_leave_query_out_needs_a_second_pass():
    X, y, qid, _ = rows(scattered=False)
    with pytest.raises(ValueError, match="read only once.*cv=5"):
        RankRLS().fit(iter([(X, y, qid)]))


def test_rows_of_split_queries_may_wait_on_disk(tmp_path, monkeypatch, limit):
    X, y, qid, weights = rows()
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid, weights)))
    limit(waiting_bytes=2000)
    spilled = []
    plain = reading.WaitingRows._spill
    monkeypatch.setattr(reading.WaitingRows, "_spill", lambda self: (spilled.append(1), plain(self)))
    expected = RankRLS(regression=0.2).fit(X, y, qid=qid, sample_weight=weights)
    assert_same(RankRLS(regression=0.2).fit(path, sample_weight="w"), expected)
    assert len(spilled) > 2


# ---------------------------------------------------------------- adding and taking away


def test_files_are_added_and_forgotten(tmp_path):
    X, y, qid, _ = rows(scattered=False)
    cut = int(np.flatnonzero(qid != qid[0])[300])
    cut = int(np.flatnonzero(qid[cut:] != qid[cut])[0]) + cut  # between two queries
    for name, part in (("a", slice(0, cut)), ("b", slice(cut, None))):
        (tmp_path / name).mkdir()
        parquet_file(tmp_path / name, pa.Table.from_pandas(frame(X[part], y[part], qid[part])))
    model = RankRLS(1.0).partial_fit(tmp_path / "a" / "rows.parquet")
    model.partial_fit(str(tmp_path / "b"))
    assert_same(model, RankRLS(1.0).fit(X, y, qid=qid))
    model.forget(tmp_path / "b")
    assert_same(model, RankRLS(1.0).fit(X[:cut], y[:cut], qid=qid[:cut]))
    model.partial_fit(frame(X, y, qid).iloc[cut:], y="y", qid="qid")
    assert_same(model, RankRLS(1.0).fit(X, y, qid=qid))


def test_rows_that_were_never_learned_cannot_be_forgotten(tmp_path):
    X, y, qid, _ = rows(scattered=False)
    model = RankRLS(1.0).fit(X[:300], y[:300], qid=qid[:300])
    before = model.coef_.copy()
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    with pytest.raises(ValueError, match="never learned"):
        model.forget(path)
    for other in (X[:300] * [1, 1, 1, 1, 3], X[:300][:, ::-1], np.roll(X[:300], 1, axis=0)):
        with pytest.raises(ValueError, match="never learned"):
            model.forget(other, y[:300], qid=qid[:300])
    assert_allclose(model.coef_, before)


# ---------------------------------------------------------------- bad input


def test_columns_by_name_in_memory():
    X, y, qid, weights = rows()
    expected = RankRLS().fit(X, y, qid=qid, sample_weight=weights)
    assert_same(RankRLS().fit(frame(X, y, qid, weights), y="y", qid="qid", sample_weight="w"), expected)
    with pytest.raises(ValueError, match="grade.*is not a column.*f0"):
        RankRLS().fit(frame(X, y, qid), y="grade")
    with pytest.raises(ValueError, match="in memory"):
        RankRLS().fit(X, y, qid=qid, checkpoint="x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(f2=t.f2.where(t.index != 100)), r"rows 100 to 149: feature 'f2' is nan at row 0"),
        (lambda t: t.assign(y=t.y.where(t.index != 100)), r"rows 100 to 149: y must be finite: row 0"),
        (lambda t: t.assign(qid=t.qid.where(t.index != 100)), "every row needs one"),
        (lambda t: t.assign(doc="a"), r"'doc' \(.*string\) is not numeric"),
        (lambda t: t.drop(columns="y"), "no column 'y'"),
        (lambda t: t[["y", "qid"]], "no column left"),
        (lambda t: t.assign(y=1.0), "no comparable pair"),
        (lambda t: t.iloc[:0], "rows.parquet has no rows"),
    ],
)
def test_tables_that_cannot_be_learned_from(change, message, tmp_path):
    X, y, qid, _ = rows()
    path = parquet_file(tmp_path, pa.Table.from_pandas(change(frame(X, y, qid)), preserve_index=False))
    with pytest.raises(ValueError, match=message):
        RankRLS(1.0).fit(path)


def test_blocks_that_cannot_be_learned_from(tmp_path):
    X, y, qid, _ = rows(scattered=False)
    half = len(y) // 2
    for blocks, message in (
        ([], "is empty"),
        ([(X, y, qid), (X[:5], y[:5], qid[:5])], "are not adjacent"),
        ([(X[:half], y[:half], qid[:half]), (X[half:, :3], y[half:], qid[half:])], "same columns"),
        ([(X, y, qid, None, None)], "5 values"),
        ([(X, y[:3], qid)], "y must hold one number per row"),
    ):
        with pytest.raises(ValueError, match=message):
            RankRLS(1.0).fit(iter(blocks))
    with pytest.raises(TypeError, match="blocks are"):
        RankRLS(1.0).fit(iter([5]))
    with pytest.raises(TypeError, match="y must name a column"):
        RankRLS(1.0).fit(tmp_path, y)
    with pytest.raises(FileNotFoundError, match="no Parquet files"):
        RankRLS(1.0).fit(tmp_path)
    with pytest.raises(FileNotFoundError, match="no file"):
        RankRLS(1.0).fit("nowhere.parquet")
    with pytest.raises(ValueError, match="number of folds"):
        RankRLS(cv=[([0], [1])]).fit(iter([(X, y, qid)]))


@pytest.mark.parametrize("scattered", [False, True])
def test_weights_that_make_no_pair(scattered, tmp_path):
    X, y, qid, _ = rows(scattered=scattered)
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid, np.full(len(y), 1e-3))))
    with pytest.raises(ValueError, match="less than one pair"):
        RankRLS(1.0, weighting="queries", tied_pairs=True).fit(path, sample_weight="w")


# ---------------------------------------------------------------- interruptions

SCRIPT = """
import os, signal, sys

from rankrls import RankRLS
from rankrls.blocks import checkpoint
from rankrls.system.limits import limits

path, state, params, fatal = sys.argv[1:]
limits.table_rows, limits.checkpoint_seconds, limits.checkpoint_pause = 64, 0, 0
plain = checkpoint.Checkpoint.save

def save(self, **news):
    plain(self, **news)
    if fatal == f"{len(self.passes)}-{news.get('done')}":
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.Checkpoint.save = save
model = RankRLS(scale=None, alphas=[0.1, 1.0, 10.0], **eval(params)).fit(path, checkpoint=state)
print([model.coef_.tolist(), model.cv_scores_.tolist()])
"""


@pytest.mark.parametrize("params", ["{}", "{'cv': 3}"])
def test_a_killed_fit_resumes(params, tmp_path):
    X, y, qid, _ = rows(scattered=False)
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    state = tmp_path / "state"
    environment = os.environ | {"PYTHONPATH": str(Path(rankrls.__file__).parent.parent)}

    def run(fatal):
        command = [sys.executable, "-c", SCRIPT, str(path), str(state), params, fatal]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    for fatal in ("2-4", "3-7"):  # pass and block after which it is killed: during the sums, then during hold-out
        assert run(fatal).returncode == -signal.SIGKILL
        assert state.exists()
    with pytest.raises(ValueError, match="belongs to another fit"):
        RankRLS(5.0).fit(path, checkpoint=state)
    resumed = run("")
    assert resumed.returncode == 0, resumed.stderr
    coef, scores = json.loads(resumed.stdout)
    straight = RankRLS(alphas=[0.1, 1.0, 10.0], **eval(params)).fit(path)
    assert_allclose(coef, straight.coef_, rtol=1e-10)
    assert_allclose(scores, straight.cv_scores_, rtol=1e-12)
    assert not state.exists()


def test_a_resumed_pass_does_not_start_again(tmp_path, monkeypatch, limit):
    X, y, qid, _ = rows(scattered=False)
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    limit(checkpoint_seconds=0, checkpoint_pause=0)
    plain, read = sources.TableSource.block, []

    def block(self, batch):
        read.append(batch[0])
        if len(read) == 12 + 6:  # 11 blocks of labels, then some of rows
            raise KeyboardInterrupt
        return plain(self, batch)

    monkeypatch.setattr(sources.TableSource, "block", block)
    with pytest.raises(KeyboardInterrupt):
        RankRLS(1.0).fit(path, checkpoint=tmp_path / "state")
    first, read[:] = len(read), []
    RankRLS(1.0).fit(path, checkpoint=tmp_path / "state")
    assert 0 < len(read) < first - 12 + 6


def test_damaged_checkpoints_are_refused(tmp_path):
    X, y, qid, _ = rows(scattered=False)
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    (tmp_path / "state").write_bytes(b"PK not really")
    with pytest.raises(ValueError, match="not a complete checkpoint"):
        RankRLS().fit(path, checkpoint=tmp_path / "state")
    assert (tmp_path / "state").exists()


def test_progress_is_reported_block_by_block(tmp_path, limit, capsys):

    X, y, qid, _ = rows(scattered=False)
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    limit(clock=iter(range(10**6)).__next__)
    RankRLS(verbose=True).fit(path)
    printed = capsys.readouterr().err
    assert "sums over rows: 100 %" in printed and "held-out queries: 100 %" in printed
    RankRLS(1.0, verbose=True).fit(iter_letor_blocks(X, y, qid))
    assert "sums over rows: 7" in capsys.readouterr().err


def iter_letor_blocks(X, y, qid):
    from io import BytesIO

    file = BytesIO()
    dump_letor(RankingData(X, y, qid), file)
    return iter_letor(BytesIO(file.getvalue()), rows=100)


def test_command_line(tmp_path, capsys):
    from rankrls import load
    from rankrls.cli import main

    X, y, qid, _ = rows()
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid).rename(columns={"y": "label"})))
    model, state = tmp_path / "model.rankrls", tmp_path / "state"
    assert main(["train", str(path), "-o", str(model), "--stream", "--checkpoint", str(state), "--quiet"]) == 0
    assert "700 rows, 40 queries, 5 features in blocks" in capsys.readouterr().out
    assert_same(load(model), RankRLS(scale="auto").fit(X, y, qid=qid))
    for words, message in (
        (["--stream", "--scale", "standard"], "--scale auto or none"),
        (["--stream", "--pairs", "p.csv"], "--pairs cannot be combined with --stream"),
        (["--checkpoint", "x"], "--checkpoint needs --stream"),
        ([str(path), "--stream"], "one file or folder"),
    ):
        assert main(["train", str(path), *words, "-o", str(model)]) != 0
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("params", [{}, {"alpha": 5.0}, {"cv": 3, "alpha": 5.0}, {"scoring": "disagreement_error"}])
@pytest.mark.parametrize("seed", range(4))
def test_blocks_choose_the_same_settings_as_memory(params, seed, tmp_path):
    X, y, qid, _ = rows(m=200, n_queries=12, seed=seed)
    path = parquet_file(tmp_path, pa.Table.from_pandas(frame(X, y, qid)))
    folds = fold_of(qid, 3)
    splits = (
        {"cv": [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(3)]} if "cv" in params else {}
    )
    for choice in ({"tied_pairs": "auto"}, {"kernel": Gaussian(gamma="auto"), "basis": X[:20]}):
        expected = RankRLS(**choice, **params | splits).fit(X, y, qid=qid)
        model = RankRLS(**choice, **params).fit(path)
        assert model.tied_pairs_ == expected.tied_pairs_ and model.alpha_ == pytest.approx(expected.alpha_)
        assert_allclose(model.predict(frame(X, y, qid).drop(columns="y")), expected.predict(X), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- nothing silently wrong


def two_files(tmp_path, **changes):
    X, y, qid, _ = rows(400)
    first, second = frame(X[:200], y[:200], qid[:200]), frame(X[200:], y[200:], qid[200:] + "x").assign(**changes)
    for name, table in (("first", first), ("second", second)):
        table.to_parquet(tmp_path / f"{name}.parquet", index=False)
    return first, second


def test_columns_of_further_files_must_have_the_same_names(tmp_path):
    _, second = two_files(tmp_path)
    second[["f1", "f0", "f2", "f3", "f4", "y", "qid"]].to_parquet(tmp_path / "second.parquet", index=False)
    model = RankRLS(1.0).partial_fit(tmp_path / "first.parquet")
    before = model.coef_.copy()
    for call in (model.partial_fit, model.forget):
        with pytest.raises(ValueError, match="feature 0 is 'f0' in the model, but 'f1' in these rows"):
            call(tmp_path / "second.parquet")
    assert_allclose(model.coef_, before, rtol=0)


def test_targets_of_further_rows_must_be_as_many():
    rng = np.random.default_rng(0)
    X, Y, qid = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), np.repeat(np.arange(8), 5)
    whole = RankRLS(1.0, tied_pairs=True).fit(X, Y, qid=qid)
    model = RankRLS(1.0, tied_pairs=True).partial_fit(iter([(X[:20], Y[:20], qid[:20])]))
    with pytest.raises(ValueError, match="the model has 2 targets, but these rows have 1"):
        model.partial_fit(iter([(X[20:], Y[20:, 0], qid[20:])]))
    with pytest.raises(ValueError, match="the model has 2 targets, but these rows have 1"):
        model.partial_fit(X[20:], Y[20:, 0], qid=qid[20:])
    model.partial_fit(iter([(X[20:], Y[20:], qid[20:])]))
    assert_allclose(model.coef_, whole.coef_, rtol=1e-10)


@pytest.mark.parametrize("change", [{"weighting": "pairs"}, {"regression": 0.5}, {"tied_pairs": True}])
def test_another_loss_between_calls_is_refused(change):
    X, y, qid, _ = rows(100)
    for model in (RankRLS(1.0).partial_fit(X, y, qid=qid), RankRLS(1.0).fit(X, y, qid=qid)):
        before = model.coef_.copy()
        model.set_params(**change)
        for call in (model.partial_fit, model.forget):
            with pytest.raises(ValueError, match=f"fitted with {next(iter(change))}="):
                call(X, y, qid=qid)
        assert_allclose(model.coef_, before, rtol=0)


def test_sums_that_overflow_are_refused_and_nothing_changes():
    X, y, qid, _ = rows(100, n_queries=5)
    model = RankRLS(1.0).partial_fit(X, y, qid=qid)
    coef, sums = model.coef_.copy(), model.statistics_
    large = X.copy()
    large[3, 2] = 1e160
    with pytest.raises(ValueError, match="feature 2 overflow"):
        model.partial_fit(large, y, qid=qid)
    assert model.statistics_ is sums and np.array_equal(model.coef_, coef)
    for fit in (RankRLS(1.0), RankRLS()):
        with pytest.raises(ValueError, match="feature 2 overflow"):
            fit.fit(large, y, qid=qid)
    with pytest.raises(ValueError, match="overflow"):
        RankRLS(1.0, weighting="pairs").fit(X, y, qid=qid, sample_weight=np.full(len(y), 1e200))


@pytest.mark.parametrize("scale", [1e8, 1e12])
def test_forgetting_rows_that_swamp_the_others_is_refused(scale):
    X, y, qid, _ = rows(200)
    gone = np.arange(200) < 100
    qid = qid + np.where(gone, "a", "b")
    large = np.where(gone[:, None], X * scale, X)
    model = RankRLS(1.0).fit(large, y, qid=qid)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="fit again without them"):
        model.forget(large[gone], y[gone], qid=qid[gone])
    assert np.array_equal(model.coef_, before)


def test_query_ids_of_two_types_are_refused(tmp_path):
    X, y, qid, _ = rows(200)
    numbers = np.array([int(q[1:]) for q in qid])
    frame(X[:100], y[:100], numbers[:100]).to_parquet(tmp_path / "a.parquet", index=False)
    frame(X[100:], y[100:], qid[100:]).to_parquet(tmp_path / "b.parquet", index=False)
    with pytest.raises(ValueError, match=r"column 'qid' is int64 in .*a\.parquet and .*string in .*b\.parquet"):
        RankRLS(1.0).fit(tmp_path)


def test_files_of_two_precisions_are_read_in_the_higher_one(tmp_path):
    X, y, qid, _ = rows(200)
    frame(X[:100].astype(np.float32), y[:100], qid[:100]).to_parquet(tmp_path / "a.parquet", index=False)
    frame(X[100:], y[100:], qid[100:]).to_parquet(tmp_path / "b.parquet", index=False)
    model = RankRLS(1.0).fit(tmp_path)
    together = np.vstack([X[:100].astype(np.float32).astype(float), X[100:]])
    assert_allclose(model.coef_, RankRLS(1.0).fit(together, y, qid=qid).coef_, rtol=1e-10)


@pytest.mark.parametrize("kind", ["function", "lazy", "dataset", "relation"])
def test_a_checkpoint_of_other_rows_is_refused(kind, tmp_path):
    X, y, qid, _ = rows(300, scattered=False)

    def source(X, name):
        table = pa.Table.from_pandas(frame(X, y, qid), preserve_index=False)
        if kind == "function":
            return lambda: iter([(X, y, qid)])
        if kind == "dataset":
            return pa.dataset.dataset(table)
        if kind == "relation":
            return pytest.importorskip("duckdb").from_arrow(table)
        return pytest.importorskip("polars").from_arrow(table).lazy()

    names = {} if kind == "function" else {"y": "y", "qid": "qid"}
    file = tmp_path / "state"
    with pytest.raises(RuntimeError, match="stop"):
        RankRLS(scoring=_stop).fit(source(X, "a"), **names, checkpoint=file)
    assert file.exists()
    with pytest.raises(ValueError, match="belongs to another fit"):
        RankRLS(scoring=_stop).fit(source(X + 1, "b"), **names, checkpoint=file)


def _stop(y, scores, qid):
    raise RuntimeError("stop")


def test_streams_cannot_be_resumed(tmp_path):
    X, y, qid, _ = rows(100, scattered=False)
    with pytest.raises(ValueError, match="can be read only once"):
        RankRLS(1.0).fit(iter([(X, y, qid)]), checkpoint=tmp_path / "state")


@pytest.mark.parametrize("change", ["features of a middle block", "weights"])
def test_a_checkpoint_of_rows_that_hardly_differ_is_refused(change, tmp_path):
    X, y, qid, _ = rows(400, scattered=False)
    u, others = np.ones(400), X.copy()
    others[130, 1] += 1e-9  # in a block that is not among the samples
    parts = [slice(i, i + 40) for i in range(0, 400, 40)]
    source = lambda X, u: lambda: iter([(X[p], y[p], qid[p], u[p]) for p in parts])
    with pytest.raises(RuntimeError, match="stop"):
        RankRLS(scoring=_stop).fit(source(X, u), checkpoint=tmp_path / "state")
    changed = source(X, 2 * u) if change == "weights" else source(others, u)
    with pytest.raises(ValueError, match="belongs to another fit"):
        RankRLS(scoring=_stop).fit(changed, checkpoint=tmp_path / "state")
