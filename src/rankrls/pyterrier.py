"""Rankers as stages of PyTerrier pipelines: `pipeline = bm25 >> features >> rankrls.pyterrier.ranker(RankRLS())`.

PyTerrier's own `pt.ltr.apply_learned_model` gives a learner features and labels but no query ids, which a ranker needs;
this stage passes them on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from .estimators import ConditionalRankRLS
from .estimators.pipelines import learned, predicted, ranker_of

try:
    import pyterrier as pt
    from pyterrier.model import add_ranks
except ImportError:
    raise ImportError("rankrls.pyterrier needs PyTerrier: pip install 'rankrls[pyterrier]'") from None

__all__ = ["RankerStage", "ranker"]


if TYPE_CHECKING:
    import pandas as pd


def ranker(model: BaseEstimator, *, unjudged: float = 0.0) -> RankerStage:
    """A stage that scores documents by their features; fitting the pipeline fits the model.

    Parameters
    ----------
    model : estimator or Pipeline
        A ranker of this library, or a scikit-learn pipeline that ends in one, fitted or not. The stage's `fit` fits it.
    unjudged : float, default=0.0
        Label of documents without a judgement; 0 is usual in PyTerrier. NaN leaves them unscored, for CoRankRLS,
        TransductiveRankRLS and RankingPursuit.

    Returns
    -------
    stage : RankerStage
        A `pyterrier.Estimator`. Its input has columns qid, docno and features (an array for each document), its output
        the same with score and rank.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pyterrier as pt
    >>> import rankrls.pyterrier
    >>> from rankrls import RankRLS
    >>> results = pd.DataFrame({"qid": list("aabb"), "query": list("xxyy"), "docno": ["d1", "d2", "d1", "d3"]})
    >>> results["features"] = [np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([2.0, 1.0]), np.array([0.0, 3.0])]
    >>> qrels = pd.DataFrame({"qid": ["a", "b"], "docno": ["d1", "d1"], "label": [1, 1]})
    >>> pipeline = pt.Transformer.from_df(results) >> rankrls.pyterrier.ranker(RankRLS(alpha=0.1))
    >>> topics = results[["qid", "query"]].drop_duplicates()
    >>> pipeline.fit(topics, qrels)
    >>> pipeline(topics)[["qid", "docno", "rank"]].values.tolist()
    [['a', 'd1', 0], ['a', 'd2', 1], ['b', 'd1', 0], ['b', 'd3', 1]]
    """
    return RankerStage(model, unjudged=unjudged)


class RankerStage(pt.Estimator):
    """A ranker in a PyTerrier pipeline, made by `ranker`."""

    def __init__(self, model: BaseEstimator, *, unjudged: float = 0.0):
        super().__init__()
        if isinstance(ranker_of(model), ConditionalRankRLS) or not hasattr(model, "predict"):
            raise TypeError(
                f"the stage needs a model that ranks documents by their features, got {type(model).__name__}"
            )
        self.model, self.unjudged = model, unjudged

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> Any:
        """Learn from results and judgements.

        Parameters
        ----------
        topics_or_res_tr : DataFrame
            Results with columns qid, docno and features.
        qrels_tr : DataFrame
            Judgements with columns qid, docno and label.
        topics_or_res_va, qrels_va
            Not used: settings are chosen by exact hold-out of training queries.

        Returns
        -------
        self
        """
        results = topics_or_res_tr
        pt.validate.result_frame(results, extra_columns=["features"], context=self)
        if not len(results):
            raise ValueError("there are no results to learn from")
        labels = qrels_tr[["qid", "docno", "label"]].drop_duplicates(["qid", "docno"])
        judged = results[["qid", "docno"]].merge(labels, on=["qid", "docno"], how="left")["label"]
        if judged.isna().all():
            there, here = _first(qrels_tr), _first(results)
            raise ValueError(f"none of the {len(results)} documents is judged: qrels name {there}, results {here}")
        y = judged.to_numpy(dtype=np.float64, na_value=self.unjudged)
        learned(self.model, _features(results), y, results["qid"].to_numpy())
        return self

    def transform(self, inp: pd.DataFrame) -> Any:
        """The results with the score and rank of each document.

        Parameters
        ----------
        inp : DataFrame
            Results with columns qid, docno and features.

        Returns
        -------
        results : DataFrame
        """
        pt.validate.result_frame(inp, extra_columns=["features"], context=self)
        scores = predicted(self.model, _features(inp), inp["qid"].to_numpy()) if len(inp) else np.zeros(0)
        if scores.ndim > 1:
            raise ValueError(f"the model has {scores.shape[1]} targets, but a ranking needs one score per document")
        return add_ranks(inp.assign(score=scores.astype(np.float64)))

    def transform_outputs(self, inp_cols: list[str]) -> list[str]:
        """The columns of the result.

        Parameters
        ----------
        inp_cols : list of str
            The columns of the input.

        Returns
        -------
        columns : list of str
        """
        pt.validate.result_frame(inp_cols, extra_columns=["features"], context=self)
        scored = inp_cols if "score" in inp_cols else [*inp_cols, "score"]
        return [*(column for column in scored if column != "rank"), "rank"]

    def __repr__(self) -> str:
        return f"rankrls.pyterrier.ranker({self.model!r})"


def _features(results: pd.DataFrame) -> np.ndarray:
    """(m, n) the features of each document."""
    rows = [np.asarray(row, dtype=np.float64).ravel() for row in results["features"]]
    if len({len(row) for row in rows}) > 1:
        few, many = min(map(len, rows)), max(map(len, rows))
        raise ValueError(f"documents have {few} to {many} features: each needs the same")
    return np.stack(rows)


def _first(frame: pd.DataFrame) -> str:
    """A query and a document of a frame, as an example."""
    return "none" if not len(frame) else f"{frame['qid'].iloc[0]!r} with {frame['docno'].iloc[0]!r}"
