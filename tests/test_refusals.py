"""What a caller passes is read as intended or refused by name; an error changes nothing."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from cases import problem
from papers import RankRLS
from rankrls import CoRankRLS, RankingPursuit, TransductiveRankRLS, View, metrics

X, Y, QID = problem()
PARTLY = np.where(QID < 5, Y, np.nan)
NAMES = list("abcdef")
RANKERS = {
    "rankrls": (RankRLS(1.0), Y),
    "views": (CoRankRLS(1.0, 0.1, views=[View([0, 1]), View([2, 3])]), PARTLY),
    "transductive": (TransductiveRankRLS(1.0), PARTLY),
    "pursuit": (RankingPursuit(2, kernel=None), PARTLY),
}


@pytest.mark.parametrize("name", RANKERS)
def test_a_refused_refit_leaves_the_old_model_in_working_order(name):
    model, y = RANKERS[name]
    model.fit(X, y, qid=QID)
    before = model.predict(X)
    with pytest.raises(ValueError, match=r".+"):
        model.fit(X[:, :4], y, qid=QID[:-1])
    assert_allclose(model.predict(X), before)


@pytest.mark.parametrize("name", RANKERS)
def test_labels_and_query_ids_by_the_names_of_columns(name):
    model, y = RANKERS[name]
    frame = pd.DataFrame(X, columns=NAMES).assign(label=y, query=QID)
    named = model.fit(frame, "label", qid="query").predict(frame[NAMES])
    assert_allclose(named, model.fit(X, y, qid=QID).predict(X))
    with pytest.raises(ValueError, match="is not a column of X"):
        model.fit(frame, "labels", qid="query")


def test_several_targets_with_query_ids_by_name():
    frame = pd.DataFrame(X, columns=NAMES).assign(query=QID)
    targets = np.column_stack([Y, -Y])
    model = RankRLS(1.0, tied_pairs=True).fit(frame, targets, qid="query")
    assert_allclose(model.coef_, RankRLS(1.0, tied_pairs=True).fit(X, targets, qid=QID).coef_)


@pytest.mark.parametrize("name", RANKERS)
def test_masks_and_imaginary_parts_are_not_ignored(name):
    model, y = RANKERS[name]
    masked = lambda A: np.ma.masked_array(A, mask=np.arange(A.size).reshape(A.shape) == 3)
    for arguments, message in (
        ((masked(X), y, QID), "X is a masked array, but its 1 masked entries"),
        ((X, masked(y), QID), "y is a masked array"),
        ((X, y, masked(QID)), "qid is a masked array"),
        ((X, y + 1j, QID), "Complex data not supported: y"),
        ((X * 1j, y, QID), "Complex data not supported"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(*arguments)


@pytest.mark.parametrize("name", RANKERS)
def test_missing_values_and_words_are_named_with_a_remedy(name):
    model, y = RANKERS[name]
    frame = pd.DataFrame(X.copy(), columns=NAMES)
    frame.loc[[3, 4], "c"] = np.nan
    with pytest.raises(ValueError, match=r"(?s)c.*rankrls\.TableEncoder"):
        model.fit(frame, y, qid=QID)
    with pytest.raises(ValueError, match=r"rankrls\.TableEncoder"):
        model.fit(frame.assign(c="x"), y, qid=QID)


def test_a_missing_query_id_of_a_nullable_column():
    qid = pd.Series(QID, dtype="Int64")
    assert_allclose(RankRLS(1.0).fit(X, Y, qid=qid).coef_, RankRLS(1.0).fit(X, Y, qid=QID).coef_)
    qid[7] = pd.NA
    with pytest.raises(ValueError, match="qid has 1 missing values, the first at row 7"):
        RankRLS(1.0).fit(X, Y, qid=qid)


def test_a_kernel_model_does_not_change_with_the_callers_rows():
    rows = X.copy()
    model = RankRLS(1.0, kernel="rbf").fit(rows, Y, qid=QID)
    before = model.predict(X)
    rows[:] = 0
    assert_allclose(model.predict(X), before)


def test_a_row_of_a_frame_is_explained_by_its_names():
    frame = pd.DataFrame(X, columns=NAMES)
    model = RankRLS(1.0).fit(frame, Y, qid=QID)
    expected = np.asarray(model.explain(X[0], X[1]))
    assert_allclose(np.asarray(model.explain(frame[NAMES[::-1]].iloc[0], frame.iloc[1])), expected)
    with pytest.raises(ValueError, match="no value for 'f'"):
        model.explain(frame.iloc[0].drop("f"), frame.iloc[1])


def test_impossible_choices_are_refused():
    with pytest.raises(ValueError, match="cv must be a number of parts"):
        TransductiveRankRLS(1.0, cv="nonsense").fit(X, PARTLY, qid=QID)
    with pytest.raises(ValueError, match="cv gives no fold with a row to hold out"):
        RankRLS(cv=[]).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="returned NaN"):
        RankRLS(scoring=lambda y, s, qid: np.nan).fit(X, Y, qid=QID)
    model, tied = RankRLS(1.0).fit(X, Y, qid=QID), np.where(QID == 1, 0, Y)
    with pytest.raises(ValueError, match="not defined for any of the 1 queries with weight"):
        model.score(X, tied, QID, sample_weight=(QID == 1).astype(float))


def test_weights_without_unscored_rows():
    u = np.linspace(1, 3, len(Y))
    model = CoRankRLS(1.0, 0.1, views=[View(None)], weighting="queries").fit(X, Y, qid=QID, sample_weight=u)
    alone = RankRLS(1.0, weighting="queries").fit(X, Y, qid=QID, sample_weight=u)
    assert_allclose(model.view_coefs_[0], alone.coef_, atol=1e-9)


ALIGNED = pd.DataFrame(X, columns=NAMES, index=[f"r{i}" for i in range(len(X))])
MIXED = np.random.default_rng(0).permutation(len(X))


@pytest.mark.parametrize("argument", ["y", "qid", "sample_weight"])
@pytest.mark.parametrize("name", [name for name in RANKERS if name != "transductive"])
def test_rows_in_another_order_are_not_mixed_up(name, argument):
    model, y = RANKERS[name]
    given = {"y": y, "qid": QID, "sample_weight": np.ones(len(y))}
    labelled = {key: pd.Series(values, index=ALIGNED.index) for key, values in given.items()}
    right = model.fit(ALIGNED, **labelled).predict(ALIGNED)
    mixed = labelled | {argument: labelled[argument].iloc[MIXED]}
    with pytest.raises(
        ValueError, match=rf"the index of {argument} is in a different order .* {argument}.loc\[X.index\]"
    ):
        model.fit(ALIGNED, **mixed)
    with pytest.raises(ValueError, match="mixed up"):
        model.score(ALIGNED, **mixed)
    other = labelled | {argument: labelled[argument].rename(lambda label: label + "x")}
    with pytest.raises(ValueError, match="different labels"):
        model.fit(ALIGNED, **other)
    plain = given | {argument: pd.Series(given[argument])}  # numbered rows: by position
    assert_allclose(model.fit(ALIGNED, **plain).predict(ALIGNED), right)


def test_a_shuffled_frame_beside_the_labels_of_the_frame_it_was():
    frame = pd.DataFrame(X, columns=NAMES)
    with pytest.raises(ValueError, match=r"the index of y is in a different order .* y.loc\[X.index\]"):
        RankRLS(1.0).fit(frame.iloc[MIXED], pd.Series(Y), qid=QID[MIXED])
    with pytest.raises(ValueError, match="mixed up"):
        RankRLS(1.0).partial_fit(frame, pd.Series(Y), qid=pd.Series(QID).iloc[MIXED])
    with pytest.raises(ValueError, match="mixed up"):
        metrics.ndcg(pd.Series(Y), pd.Series(Y).iloc[MIXED], QID)
    with pytest.raises(ValueError, match="mixed up"):
        metrics.per_query("ndcg", Y, pd.Series(Y), pd.Series(QID).iloc[MIXED])
    scores = pd.Series(Y).iloc[MIXED]
    assert metrics.pairwise_accuracy(pd.Series(Y).iloc[MIXED], scores, QID[MIXED]) == 1


@pytest.mark.parametrize("call", ["fit", "predict", "rank"])
@pytest.mark.parametrize("name", RANKERS)
def test_missing_values_and_text_are_named_with_their_columns(name, call):
    model, y = RANKERS[name]
    frame = pd.DataFrame(X, columns=NAMES)
    model.fit(frame, y, qid=QID)
    arguments = {"fit": (y, QID), "predict": (), "rank": (QID,)}[call]
    gaps = frame.assign(c=np.where(np.arange(len(X)) % 10 == 0, np.nan, 1.0))
    with pytest.raises(ValueError, match=r"contains NaN\. Columns 'c' \(4 missing\) .* rankrls.TableEncoder\(\)"):
        getattr(model, call)(gaps, *arguments)
    with pytest.raises(ValueError, match=r"Columns 'b' \(text\) .* rankrls.TableEncoder\(\)"):
        getattr(model, call)(frame.assign(b="red"), *arguments)


@pytest.mark.parametrize("call", ["fit", "predict"])
@pytest.mark.parametrize("name", RANKERS)
def test_dates_are_not_taken_for_numbers(name, call):
    """NumPy would count them in nanoseconds, microseconds or days, depending on the frame's library."""
    model, y = RANKERS[name]
    frame = pd.DataFrame(X, columns=NAMES)
    model.fit(frame, y, qid=QID)
    arguments = (y, QID) if call == "fit" else ()
    pl, pa = (pytest.importorskip(library, reason="needs rankrls[arrow]") for library in ("polars", "pyarrow"))
    days = pd.date_range("2026-01-01", periods=len(X))
    for c in (days, days.tz_localize("UTC"), days - days[0], days.date):
        dated = frame.assign(c=c)
        for given in (dated, pl.from_pandas(dated), pa.Table.from_pandas(dated)):
            with pytest.raises(ValueError, match=r"Columns 'c' \(dates\) .* rankrls.TableEncoder\(\)"):
                getattr(model, call)(given, *arguments)
