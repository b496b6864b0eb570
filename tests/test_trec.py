"""TREC runs and judgements: other programs read them, and compute from them what rankrls.metrics does."""

import re

import numpy as np
import pytest

from rankrls import metrics
from rankrls.core.queries import Queries
from rankrls.datasets import make_search, to_qrels, to_trec_run

data = make_search(60, random_state=0)
scores = data.X @ np.random.default_rng(0).normal(size=data.X.shape[1])
names = np.array([f"doc{i:05d}" for i in range(len(data))], dtype=object)


@pytest.fixture(scope="module")
def ir_measures():
    return pytest.importorskip("ir_measures")


def both(ir, y=data.y, s=scores):
    return list(ir.read_trec_qrels(to_qrels(y, data.qid, names))), list(
        ir.read_trec_run(to_trec_run(s, data.qid, names))
    )


def test_text_is_read_back_as_it_was(ir_measures):
    qrels, run = both(ir_measures)
    order = {(str(q), d): i for i, (q, d) in enumerate(zip(data.qid, names, strict=True))}
    assert [order[row.query_id, row.doc_id] for row in qrels] == list(range(len(data)))
    assert [row.relevance for row in qrels] == data.y.tolist()
    assert {order[row.query_id, row.doc_id]: row.score for row in run} == dict(enumerate(scores.tolist()))


def test_measures_are_the_same(ir_measures):
    """Leaves out scores that tie in single precision, which trec_eval orders by document name."""
    ir = ir_measures
    qrels, run = both(ir)
    of = lambda name, **options: metrics.per_query(name, data.y, scores, data.qid, **options)
    wanted = {
        ir.nDCG: of("ndcg", convention="trec"),
        ir.nDCG @ 5: of("ndcg@5", convention="trec"),
        ir.AP: of("average_precision"),
        ir.AP(rel=3): of("average_precision", relevant=3),
        ir.RR(rel=2): of("reciprocal_rank", relevant=2),
        ir.P @ 5: of("precision@5"),
        ir.P(rel=2) @ 3: of("precision@3", relevant=2),
        ir.R @ 10: of("recall@10"),
    }
    labels = Queries.of(data.qid).labels.tolist()
    found = {(row.measure, row.query_id): row.value for row in ir.iter_calc(list(wanted), qrels, run)}
    for measure, values in wanted.items():
        theirs = [found[measure, str(label)] for label in labels]
        np.testing.assert_allclose(np.nan_to_num(values), theirs, atol=1e-12, err_msg=str(measure))


def test_judgements_left_out_are_not_judged(ir_measures):
    y = np.where(np.arange(len(data)) % 3, data.y, np.nan)
    qrels, _ = both(ir_measures, y)
    assert len(qrels) == np.isfinite(y).sum()


def test_single_precision_is_written_shortly():
    assert to_trec_run(np.array([0.1], dtype=np.float32)) == "1 Q0 1 1 0.1 rankrls\n"


def test_frames_are_accepted():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": ["b", "a"], "docno": ["x", "y"], "score": [1.0, 2.0], "label": [0, 1]})
    assert to_trec_run(frame.score, frame.qid, frame.docno, tag="t") == "b Q0 x 1 1.0 t\na Q0 y 1 2.0 t\n"
    assert to_qrels(frame.label, frame.qid, frame.docno) == "b 0 x 0\na 0 y 1\n"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: to_trec_run([1, 2], ["a", "a"], ["x", "x"]), "document 'x' occurs twice in query 'a'"),
        (lambda: to_trec_run([1], ["a b"]), "a query id must be one word in a TREC file, got 'a b'"),
        (lambda: to_trec_run([1], ["a"], ["x y"]), "a document id must be one word"),
        (lambda: to_trec_run([1], ["a"], [""]), "a document id must be one word"),
        (lambda: to_trec_run([1], tag="two words"), "the tag of a run must be one word"),
        (lambda: to_trec_run([1], ["a"], ["x", "y"]), "one name per row: got shape (2,) for 1 rows"),
        (lambda: to_trec_run([1, np.nan], ["a", "b"]), "scores must be finite"),
        (lambda: to_trec_run([[1, 2]], ["a"]), "scores must hold one number per row"),
        (lambda: to_trec_run([1, 2], ["a"]), "one query id per row"),
        (lambda: to_qrels([0.5], ["a"]), "whole numbers, got y = 0.5 at row 0"),
        (lambda: to_qrels([np.inf], ["a"]), "whole numbers, got y = inf"),
    ],
)
def test_text_that_trec_files_cannot_hold_is_refused(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
