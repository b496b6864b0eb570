"""How well scores rank the items of each query: the mean of a per-query number.

Examples
--------
>>> from rankrls import metrics
>>> y, scores, qid = [2, 0, 1, 0, 1], [0.9, 0.8, 0.3, 0.1, 0.4], ["a", "a", "a", "b", "b"]
>>> round(metrics.ndcg(y, scores, qid, k=2), 3)
0.913
>>> metrics.per_query("pairwise_accuracy", y, scores, qid).round(3)
array([0.667, 1.   ])
"""

from .comparison import randomisation_test
from .functions import (
    METRICS,
    auc,
    average_precision,
    disagreement_error,
    err,
    jaccard,
    kendall_tau_b,
    ndcg,
    pairwise_accuracy,
    precision,
    rbo,
    recall,
    reciprocal_rank,
)
from .named import Metric, get_metric, per_query, standard_error

__all__ = [
    "METRICS",
    "Metric",
    "auc",
    "average_precision",
    "disagreement_error",
    "err",
    "get_metric",
    "jaccard",
    "kendall_tau_b",
    "ndcg",
    "pairwise_accuracy",
    "per_query",
    "precision",
    "randomisation_test",
    "rbo",
    "recall",
    "reciprocal_rank",
    "standard_error",
]
