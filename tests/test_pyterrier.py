"""Rankers in pipelines of PyTerrier, which needs no Java for this."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankrls
from rankrls import ConditionalRankRLS, CoRankRLS, PerQueryMinMax, RankRLS, metrics
from rankrls.datasets import make_search, to_trec_run

pd = pytest.importorskip("pandas")
pt = pytest.importorskip("pyterrier")
stages = pytest.importorskip("rankrls.pyterrier")

data = make_search(40, random_state=0)
frame = pd.DataFrame(
    {"qid": [str(q) for q in data.qid], "query": "words", "docno": [f"d{i}" for i in range(len(data))], "score": 0.0}
)
frame["features"] = list(data.X)
qrels = frame[["qid", "docno"]].assign(label=data.y.astype(int))
topics = frame[["qid", "query"]].drop_duplicates()
candidates = pt.Transformer.from_df(frame.drop(columns="features"))
features = pt.apply.doc_features(lambda row: data.X[int(row["docno"][1:])])


def by_row(results):
    """Scores in the order of the rows of the data."""
    return results.set_index("docno").loc[frame["docno"], "score"].to_numpy()


def test_a_pipeline_is_fitted_and_ranks():
    model = RankRLS(scoring="ndcg@10")
    pipeline = candidates >> features >> rankrls.pyterrier.ranker(model)
    pipeline.fit(topics, qrels)
    expected = RankRLS(scoring="ndcg@10").fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(by_row(pipeline(topics)), expected.predict(data.X), rtol=1e-12)
    assert model.n_queries_ == 40 and model.alpha_ == expected.alpha_
    found = pt.Experiment([pipeline], topics, qrels, ["ndcg", "map"], validate="ignore")
    scores = expected.predict(data.X)
    assert found["ndcg"][0] == pytest.approx(_mean("ndcg", scores, convention="trec"), abs=1e-6)
    assert found["map"][0] == pytest.approx(_mean("average_precision", scores), abs=1e-6)


def _mean(name, scores, **options):
    """The mean over all queries, where those without a relevant document count as 0, as in PyTerrier."""
    return np.nan_to_num(metrics.per_query(name, data.y, scores, data.qid, **options)).mean()


def test_results_keep_their_columns_and_get_ranks():
    stage = stages.ranker(RankRLS(1.0).fit(data.X, data.y, qid=data.qid))
    results = stage(frame)
    assert list(results.columns) == stage.transform_outputs(list(frame.columns))
    assert set(results.columns) == {*frame.columns, "rank"} and (frame["score"] == 0).all()
    assert pt.inspect.transformer_outputs(stage, ["qid", "docno", "features"])[-2:] == ["score", "rank"]
    for _, query in results.groupby("qid"):
        assert query.sort_values("rank")["score"].is_monotonic_decreasing and query["rank"].min() == 0
    empty = stage(frame[:0])
    assert len(empty) == 0 and {"score", "rank"} <= set(empty.columns)
    run = to_trec_run(results["score"], results["qid"], results["docno"])
    assert run.count("\n") == len(frame)


def test_query_ids_reach_scalers_of_queries():
    model = make_pipeline(PerQueryMinMax(), RankRLS(1.0))
    stage = stages.ranker(model).fit(frame, qrels)
    from rankrls.datasets import per_query_minmax

    scaled = per_query_minmax(data.X, data.qid)
    expected = RankRLS(1.0).fit(scaled, data.y, qid=data.qid).predict(scaled)
    np.testing.assert_allclose(by_row(stage(frame)), expected, rtol=1e-9)
    shuffled = frame.sample(frac=1, random_state=0)
    np.testing.assert_allclose(by_row(stage(shuffled)), expected, rtol=1e-9)


def test_scaled_pipelines_and_validation_sets():
    stage = stages.ranker(make_pipeline(StandardScaler(), RankRLS(1.0)))
    stage.fit(frame, qrels, frame, qrels)
    assert stage.model[-1].n_queries_ == 40
    assert "RankRLS(alpha=1.0)" in repr(stage)
    assert by_row(pickle.loads(pickle.dumps(stage))(frame)).tolist() == by_row(stage(frame)).tolist()


def test_documents_without_judgement():
    few = qrels[qrels["qid"].isin(topics["qid"][:20])]
    assert stages.ranker(RankRLS(1.0)).fit(frame, few[few["label"] > 0]).model.n_queries_ == 40
    model = CoRankRLS(1.0, 1.0, basis=10, random_state=0)
    assert stages.ranker(model, unjudged=np.nan).fit(frame, few).model.n_queries_ == 20


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: stages.ranker(ConditionalRankRLS()), TypeError, "got ConditionalRankRLS"),
        (lambda: stages.ranker("model"), TypeError, "got str"),
        (lambda: stages.ranker(RankRLS(1.0))(frame.drop(columns="features")), KeyError, "features"),
        (lambda: stages.ranker(RankRLS(1.0)).fit(frame[:0], qrels), ValueError, "no results to learn from"),
        (lambda: stages.ranker(RankRLS(1.0)).fit(frame, qrels.assign(docno="x")), ValueError, "is judged: qrels name"),
        (
            lambda: stages.ranker(RankRLS(1.0)).fit(frame.assign(features=_ragged()), qrels),
            ValueError,
            "documents have 3 to 4 features",
        ),
        (
            lambda: stages.ranker(RankRLS(1.0).fit(data.X[:, :3], data.y, qid=data.qid))(frame),
            ValueError,
            "12 features, but RankRLS is expecting 3",
        ),
    ],
)
def test_errors_of_the_stage(act, error, message):
    with pytest.raises(error, match=re.escape(message)):
        act()


def _ragged():
    return [x[: 3 + (i > 5)] for i, x in enumerate(data.X)]


def test_without_pyterrier_the_extra_is_named():
    program = (
        "import sys; sys.modules['pyterrier'] = None\nimport rankrls\n"
        "try: rankrls.pyterrier\nexcept ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'rankrls[pyterrier]'" in done.stdout
