"""Spark: data frames, by `mapInArrow`.

Examples
--------
>>> from rankrls import RankRLS
>>> from rankrls.distributed import spark
>>> frame = session.read.parquet("train")  # doctest: +SKIP
>>> scored = spark.predict(spark.fit(RankRLS(), frame), frame)  # doctest: +SKIP
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.base import BaseEstimator

from ..blocks.block import Block
from ..blocks.totals import QueryTotals
from ..system.limits import limits
from ..system.types import Matrix, Predictor
from .edges import SparkEdges
from .fitting import fit as fit_partitions
from .partitions import Partitions, Reader, Task, added, columns_of, is_encoded, some_rows, table_of
from .scoring import check_queries, model_features, score_frame, side_by_side

__all__ = ["fit", "fit_edges", "predict"]

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

T = TypeVar("T")
E = TypeVar("E", bound=BaseEstimator)


def fit(
    estimator: E,
    frame: DataFrame,
    y: str = "y",
    qid: str | None = "qid",
    features: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
) -> E:
    """Fit an estimator to a Spark data frame; the result is the same as from all rows in memory.

    Parameters
    ----------
    estimator : RankRLS, AutoRanker, CoRankRLS or TransductiveRankRLS, or a pipeline of TableEncoder and one of them
        Linear, or with a kernel and a `basis`. AutoRanker learns from a sample of whole queries, and its
        final weights from all rows. For CoRankRLS and TransductiveRankRLS, the unscored rows (y is null or
        NaN) stay on the cluster; the scored rows, usually few, are collected on the driver.
    frame : pyspark.sql.DataFrame
        Rows in any number of partitions; the rows of a query may lie anywhere. A partition must fit into the memory of
        a Python worker. The fit makes several passes: `cache()` data that is slow to read.
    y, qid, sample_weight : str
        Columns of labels, query ids (None: all rows are one query) and weights.
    features : list of str, default=None
        Feature columns; None: all other columns. Numbers, arrays of one length, or vectors of Spark ML; also text,
        dates and missing values if a TableEncoder comes first.

    Returns
    -------
    estimator
        The given estimator, fitted. `cv_predictions_` is not kept.

    Notes
    -----
    One pass reads the labels, one adds up the sums, and one, after a shuffle by query, holds out queries if alpha is to
    be chosen. Basis points are drawn from a sample of 20,000 rows. rankrls must be installed where the Python workers
    run.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.distributed import spark
    >>> frame = session.read.parquet("train")  # doctest: +SKIP
    >>> model = spark.fit(RankRLS(), frame, y="grade", qid="query")  # doctest: +SKIP
    """
    return fit_partitions(estimator, _parts_of(frame, y, qid, features, sample_weight, encoded=is_encoded(estimator)))


def fit_edges(
    estimator: E, X: Matrix, edges: DataFrame, y: str | None = None, Z: Matrix | None = None, *, source: str,
    target: str, sample_weight: str | None = None,
) -> E:  # fmt: skip
    """Fit a `ConditionalRankRLS` to the edges of a Spark data frame; the objects are local, the edges on the cluster.

    Parameters
    ----------
    estimator : ConditionalRankRLS
        Linear, or with a `basis`, so that the sums of partitions can be added.
    X, Z : array-like or data frame
        The objects at both ends, as in `ConditionalRankRLS.fit_edges`.
    edges : pyspark.sql.DataFrame
        One row per edge, in any partitions.
    y, source, target, sample_weight : str
        Columns of values, of the two ends and of weights.

    Returns
    -------
    estimator
        The given estimator, fitted.

    Examples
    --------
    >>> from rankrls import ConditionalRankRLS
    >>> from rankrls.distributed import spark
    >>> model = spark.fit_edges(  # doctest: +SKIP
    ...     ConditionalRankRLS(1.0), users, frame, "stars", items, source="user", target="item"
    ... )
    """
    return estimator.fit_edges(X, SparkEdges(edges), y, Z, source=source, target=target, sample_weight=sample_weight)


def predict(
    model: Predictor,
    frame: DataFrame,
    column: str = "score",
    features: str | Sequence[str] | None = None,
    qid: str | None = None,
) -> DataFrame:
    """A Spark data frame with the scores of a fitted model, computed on the workers.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Any model whose `predict` returns one number per row, from the row alone or, if `qid` is given, from its query.
    frame : pyspark.sql.DataFrame
        Rows.
    column : str, default="score"
        The name of the new column.
    features : list of str, default=None
        Columns in the order of the model's features; by default those the model knows by name, or else all columns
        except `qid`.
    qid : str, default=None
        Column of query ids, for models whose scores depend on the other rows of the query (AutoRanker): rows are
        shuffled to bring each query together.

    Returns
    -------
    frame : pyspark.sql.DataFrame
        Lazy, with an additional column of doubles.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.distributed import spark
    >>> scored = spark.predict(model, frame)  # doctest: +SKIP
    >>> scored.orderBy("query", scored.score.desc()).show()  # doctest: +SKIP
    """
    F = _spark()
    import pandas as pd

    if column in frame.columns:
        raise ValueError(f"the frame already has a column {column!r}: choose another name with column=")
    query = check_queries(model, qid, frame.columns)
    names = model_features(model, [name for name in frame.columns if name != query], features)
    if query is not None:
        return _by_query(model, frame, column, names, query)
    vectors = [_is_vector(frame.schema[name].dataType) for name in names]

    def scores(rows):
        return score_frame(side_by_side(rows, names), model).astype(float)

    scores.__annotations__ = {"rows": pd.DataFrame, "return": pd.Series}  # tells Spark the kind of function
    columns = [
        _entries(frame, name) if vector else F.col(_quoted(name)) for name, vector in zip(names, vectors, strict=True)
    ]
    rows = F.struct(*(column.alias(str(i)) for i, column in enumerate(columns)))
    return frame.withColumn(column, F.pandas_udf(scores, "double")(rows))


def _by_query(model: Predictor, frame: DataFrame, column: str, names: Sequence[str], qid: str) -> DataFrame:
    """The frame with scores, after a shuffle that brings the rows of each query together."""
    from pyspark.sql.types import DoubleType, StructType

    def scored(batches: Iterable[Any]) -> Iterator[Any]:
        import pandas as pd

        found = [batch for batch in batches if len(batch)]
        if found:
            rows = pd.concat(found, ignore_index=True)
            known = side_by_side(rows[list(names)], list(names)).assign(**{qid: rows[qid]})
            yield rows.assign(**{column: score_frame(known, model, qid).astype(float)})

    schema = StructType([*frame.schema.fields]).add(column, DoubleType())
    return frame.repartition(_quoted(qid)).mapInPandas(scored, schema)


# ---------------------------------------------------------------- partitions


class SparkRows(Partitions):
    """Partitions of a Spark frame, which has only the columns that are needed."""

    def __init__(self, frame: DataFrame, *about: Any):
        super().__init__(*about)
        self.frame = frame
        self.n_partitions = 0  # number of partitions that are not empty; known once the labels are read

    def like(self, reader: Reader, n_columns: int) -> SparkRows:
        return SparkRows(self.frame, reader, n_columns, self.dtype, self.names, self.n_targets)

    def run(self, task: Callable[[int, Any], Any], *, labels: bool = False) -> Any:
        assert self.reader.table is not None
        columns = [_quoted(name) for name in self.reader.table.columns.labels]
        if not labels:
            return self._added(task, self.frame)
        found = self._values(task, self.frame.select(*columns)).collect()
        self.n_partitions = len(found)
        return _sum(found)

    def sum_by_query(self, function: Callable[[Block], T], totals: QueryTotals | None, label: str) -> T:
        """The sum after a shuffle by query: Spark may partition a frame differently each time it is computed."""
        assert self.reader.table is not None
        qid = self.reader.table.columns.qid
        frame = self.frame if qid is None else self.frame.repartition(_quoted(qid))
        return some_rows(self._added(Task(self.reader, function), frame))

    def _added(self, task: Callable[[int, Any], Any], frame: DataFrame) -> Any:
        """The sum of a task over all partitions, first in as many tasks as the square root of their number."""

        def add(batches: Iterable[Any]) -> Iterator[Any]:
            yield from packed(added(pickle.loads(value) for b in batches for value in b.column(0).to_pylist()))

        values = self._values(task, frame)
        if self.n_partitions > limits.collected_sums:
            values = values.repartition(math.isqrt(self.n_partitions)).mapInArrow(add, "value binary")
        return _sum(values.collect())

    def _values(self, task: Callable[[int, Any], Any], frame: DataFrame) -> Any:
        """A frame with the result of a task on each partition."""
        assert self.reader.table is not None
        schema = self.reader.table.table.schema

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            from pyspark import TaskContext

            here = TaskContext.get()
            batches = [fixed_width(batch, schema) for batch in batches if batch.num_rows]
            value = task(0 if here is None else here.partitionId(), batches) if batches else None
            yield from packed(value)

        return frame.mapInArrow(run, "value binary")


def _sum(found: list[Any]) -> Any:
    return added(pickle.loads(row.value) for row in found)


def packed(value: object) -> Iterator[Any]:
    """A record batch that holds one value; nothing for None."""
    import pyarrow as pa

    if value is not None:
        array = pa.array([pickle.dumps(value, protocol=5)], type=pa.binary())
        yield pa.RecordBatch.from_arrays([array], names=["value"])


def fixed_width(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A record batch whose arrays have the width given in the schema."""
    for i, name in enumerate(batch.schema.names):
        field = schema.field(name)
        if hasattr(field.type, "list_size"):
            column = batch.column(i)
            lengths = column.value_lengths()
            if column.null_count or not set(lengths.unique().to_pylist()) <= {field.type.list_size}:
                raise ValueError(
                    f"column {name!r} must hold {field.type.list_size} numbers in every row, as in the first one"
                )
            batch = batch.set_column(i, field, column.cast(field.type))
    return batch


# ---------------------------------------------------------------- Spark


def _spark() -> Any:
    try:
        from pyspark.sql import functions
    except ImportError as error:
        raise ImportError(f"PySpark is needed: pip install 'rankrls[spark]' ({error})") from None
    return functions


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _is_vector(kind: DataType) -> bool:
    return kind.typeName() == "array" or type(kind).__name__ == "VectorUDT"


def _entries(frame: DataFrame, name: str) -> Any:
    """A column of arrays, or of vectors as arrays."""
    column = _spark().col(_quoted(name))
    if frame.schema[name].dataType.typeName() == "array":
        return column
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(column)


def _parts_of(
    frame: DataFrame,
    y: str | None,
    qid: str | None,
    features: str | Sequence[str] | None,
    sample_weight: str | None,
    *,
    encoded: bool,
) -> SparkRows:
    """The partitions of a frame, with its columns resolved."""
    F = _spark()
    if not hasattr(frame, "mapInArrow"):
        raise TypeError(f"frame must be a Spark data frame, got {type(frame).__name__}")
    import pyarrow as pa

    columns, names = columns_of(list(frame.columns), y, qid, sample_weight, features)
    vectors = [name for name in names if _is_vector(frame.schema[name].dataType)]
    numbers = [F.col(_quoted(name)).cast("double").alias(name) for name in columns.labels if name != columns.qid]
    labels = [*numbers, *([F.col(_quoted(columns.qid))] if columns.qid is not None else [])]
    wanted = [_entries(frame, name).alias(name) if name in vectors else F.col(_quoted(name)) for name in names]
    chosen = frame.select(*labels, *wanted)
    schema = chosen.limit(0).toArrow().schema
    if vectors:
        first = chosen.select(*(F.size(_quoted(name)) for name in vectors)).first()
        for name, width in zip(vectors, some_rows(first), strict=True):
            at = schema.get_field_index(name)
            schema = schema.set(at, pa.field(name, pa.list_(schema.field(at).type.value_type, width)))
    table = table_of(schema, columns, encoded=encoded)
    return SparkRows(chosen, Reader(table), table.n_columns, table.dtype, table.names, 1)
