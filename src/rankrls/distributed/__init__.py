"""Fit and score on a cluster, with the same results as in memory.

    rankrls.distributed.dask.fit(estimator, frame)       a Dask data frame or array; pip install 'rankrls[dask]'
    rankrls.distributed.spark.fit(estimator, frame)      a Spark data frame; pip install 'rankrls[spark]'

A fit is a sum over rows, so each partition sends only a square matrix of features, however the rows of a query are
spread over partitions. The fit itself is `estimators.ranking.blocks`; this package only tells it where the partitions
are. Dask and Spark are imported on first use.

Examples
--------
>>> import dask.dataframe as dd
>>> import pandas as pd
>>> from rankrls import RankRLS, distributed
>>> rows = pd.DataFrame({"x": [1.0, 0.0, 3.0, 2.0], "y": [1, 0, 1, 0], "qid": ["a", "a", "b", "b"]})
>>> model = distributed.dask.fit(RankRLS(alpha=1.0), dd.from_pandas(rows, npartitions=2))
>>> model.coef_.round(2), model.n_queries_
(array([0.8]), 2)
"""

from . import dask, spark

__all__ = ["dask", "spark"]
