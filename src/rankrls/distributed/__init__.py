"""Fitting and scoring on a cluster, exactly as in memory.

    rankrls.distributed.dask.fit(estimator, frame)       a Dask data frame or array; pip install 'rankrls[dask]'
    rankrls.distributed.spark.fit(estimator, frame)      a Spark data frame; pip install 'rankrls[spark]'

A fit is a sum over rows, so a partition sends a matrix with a row and a column for each feature, wherever the rows of a
query lie; `estimators.streaming` is the fit, and here is only what says where its parts are. Dask and Spark are
imported when they are first used.
"""

from . import dask, spark

__all__ = ["dask", "spark"]
