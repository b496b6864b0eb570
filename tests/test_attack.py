"""What the attack has found in files and degenerate rows, one case each; the attack itself is in tests/attack."""

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest

import rankrls
from attack import run
from rankrls import RankRLS, TransductiveRankRLS
from rankrls.datasets import load_letor

CLEAN = (
    "metrics of pairs",
    "metrics of ranks",
    "metrics of scikit-learn",
    "metrics of trec_eval",
    "damaged model files",
    "damaged text files",
    "damaged Parquet files",
    "relations",
    "changed parameters",
    "what a fit leaves alone",
    "columns of tables",
    "rows without an answer",
)


@pytest.mark.parametrize("category", CLEAN)
def test_no_case_deviates(category):
    outcomes = [run.run_case(1, case, category) for case in range(200)]
    assert [f"{o.case}: {o.message}" for o in outcomes if o.end == "DEVIATES"] == []


@pytest.mark.parametrize("case", [43080, 43178])
def test_a_held_out_query_rounds_by_the_size_of_its_own_labels(case):
    outcome = run.run_case(2026, case, "one query far above")
    assert outcome.end == "equal", outcome.message


def test_every_public_estimator_is_attacked():
    drawn = "".join(path.read_text() for path in Path(__file__).with_name("attack").glob("*.py"))
    estimators = [rankrls.clicks.ClickRanker, rankrls.fusion.Fusion]
    estimators += [
        v for v in (getattr(rankrls, name) for name in rankrls.__all__) if isinstance(v, type) and hasattr(v, "fit")
    ]
    assert len(estimators) > 10
    assert [e.__name__ for e in estimators if e.__name__ not in drawn] == []


TEXT = b"".join(b"%d qid:%d 1:%d 2:%d\n" % (i % 3, i // 4, i, i * i % 7) for i in range(200))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
def test_damaged_archives_are_named(tmp_path, pack):
    data = bytearray(pack(TEXT))
    data[40:60] = bytes(20)
    path = tmp_path / "rows-of-a-file"
    path.write_bytes(data)
    with pytest.raises(OSError, match="rows-of-a-file is damaged"):
        load_letor(path)


@pytest.mark.parametrize("place", [4, -8])
def test_damaged_parquet_files_are_named(tmp_path, place):
    pl = pytest.importorskip("polars")
    path = tmp_path / "rows-of-a-file.parquet"
    pl.DataFrame({"f": np.arange(20.0), "y": np.arange(20.0) % 3, "qid": np.arange(20) // 5}).write_parquet(path)
    data = bytearray(path.read_bytes())
    data[place : place + 8 if place > 0 else None] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(OSError, match="rows-of-a-file.parquet is damaged"):
        RankRLS(1.0).fit(path, "y", "qid")


def test_rows_that_do_not_vary_within_queries():
    qid = np.repeat(np.arange(4), 3)
    X, y = qid[:, None] * np.ones((1, 2)), np.tile([0.0, 1.0, 2.0], 4)
    model = RankRLS(alphas=[0.1, 1.0]).fit(X, y, qid=qid)
    assert np.all(model.coef_ == 0)
    np.testing.assert_array_equal(model.cv_predictions_, 0)
    np.testing.assert_array_equal(model.cv_scores_, 0.5)
    y[qid == 3] = np.nan
    completed = TransductiveRankRLS(0.1).fit(X, y, qid=qid).transduction_
    np.testing.assert_allclose(completed[qid == 3], 0, atol=1e-12)
