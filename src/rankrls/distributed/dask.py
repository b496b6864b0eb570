"""Dask: data frames and arrays in any number of partitions.

Examples
--------
>>> import dask.array as da
>>> from rankrls import RankRLS
>>> from rankrls.datasets import make_search
>>> from rankrls.distributed import dask
>>> data = make_search(30, random_state=0)
>>> X = da.from_array(data.X, chunks=(100, -1))
>>> model = dask.fit(RankRLS(), X, y=data.y, qid=data.qid)
>>> dask.predict(model, X).compute().shape == data.y.shape
True
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from ..blocks.block import Block
from ..blocks.totals import QueryTotals
from ..system.types import ArrayLike, Matrix, Predictor
from .edges import DaskEdges
from .fitting import fit as fit_partitions
from .moving import CarriedTask, Carrier, DivideTask
from .partitions import Partitions, Reader, added, columns_of, is_encoded, some_rows, table_of
from .scoring import check_model, check_queries, model_features, rows_for, score_array, score_frame

__all__ = ["fit", "fit_edges", "predict"]

if TYPE_CHECKING:
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    Column: TypeAlias = str | ArrayLike | da.Array | dd.Series

T = TypeVar("T")
E = TypeVar("E", bound=BaseEstimator)
OnEach = Callable[[Callable[[int, Any], Any]], list[Any]]

FAN_IN = 8  # sums added by one task
SHUFFLED_BYTES = 128 * 2**20  # size of a partition of shuffled rows


def fit(
    estimator: E,
    frame: dd.DataFrame | da.Array,
    y: Column | None = "y",
    qid: Column | None = "qid",
    features: str | Sequence[str] | None = None,
    sample_weight: Column | None = None,
) -> E:
    """Fit an estimator to a Dask data frame or array; the result is the same as from all rows in memory.

    Parameters
    ----------
    estimator : RankRLS, AutoRanker, CoRankRLS or TransductiveRankRLS, or a pipeline of TableEncoder and one of them
        Linear, or with a kernel and a `basis`. AutoRanker learns from a sample of whole queries, and its
        final weights from all rows. For CoRankRLS and TransductiveRankRLS, the unscored rows (y is missing)
        stay on the cluster; the scored rows, usually few, are collected.
    frame : dask.dataframe.DataFrame or dask.array.Array
        Rows in any number of partitions; the rows of a query may lie anywhere. A partition must fit into the memory of
        a worker. The fit makes several passes: `persist()` data that is slow to read and fits in the cluster's memory.
    y, qid, sample_weight : str, or array if `frame` is one
        Columns of labels, query ids (None: all rows are one query) and weights. For an array: Dask or NumPy arrays with
        one entry per row.
    features : list of str, default=None
        Feature columns; None: all other columns. Numbers, or anything if a TableEncoder comes first.

    Returns
    -------
    estimator
        The given estimator, fitted. `cv_predictions_` is not kept.

    Notes
    -----
    Runs on the current `distributed.Client`, or in threads if there is none. One pass reads the labels, one adds up the
    sums, and one holds out queries if alpha is to be chosen; that one moves only rows of queries that are split between
    partitions. Basis points are drawn from a sample of 20,000 rows.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from rankrls import RankRLS
    >>> from rankrls.datasets import make_search
    >>> from rankrls.distributed import dask
    >>> data = make_search(30, random_state=0)
    >>> frame = pd.DataFrame(data.X, columns=data.feature_names).assign(y=data.y, qid=data.qid)
    >>> model = dask.fit(RankRLS(), dd.from_pandas(frame, npartitions=3))
    >>> local = RankRLS().fit(data.X, data.y, qid=data.qid)
    >>> bool(abs(model.coef_ - local.coef_).max() < 1e-10), model.alpha_ == local.alpha_
    (True, True)
    """
    return fit_partitions(estimator, _parts_of(frame, y, qid, features, sample_weight, encoded=is_encoded(estimator)))


def fit_edges(
    estimator: E, X: Matrix, edges: dd.DataFrame, y: str | None = None, Z: Matrix | None = None, *, source: str,
    target: str, sample_weight: str | None = None,
) -> E:  # fmt: skip
    """Fit a `ConditionalRankRLS` to the edges of a Dask data frame; the objects are local, the edges on the cluster.

    Parameters
    ----------
    estimator : ConditionalRankRLS
        Linear, or with a `basis`, so that the sums of partitions can be added.
    X, Z : array-like or data frame
        The objects at both ends, as in `ConditionalRankRLS.fit_edges`.
    edges : dask.dataframe.DataFrame
        One row per edge, in any partitions.
    y, source, target, sample_weight : str
        Columns of values, of the two ends and of weights.

    Returns
    -------
    estimator
        The given estimator, fitted.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rankrls import ConditionalRankRLS
    >>> from rankrls.distributed import dask
    >>> users, items = np.random.default_rng(0).normal(size=(2, 20, 3))
    >>> edges = pd.DataFrame({"user": np.arange(60) % 20, "item": np.arange(60) * 7 % 20})
    >>> edges["stars"] = np.einsum("ij,ij->i", users[edges["user"]], items[edges["item"]])
    >>> frame, columns = dd.from_pandas(edges, npartitions=2), {"source": "user", "target": "item"}
    >>> model = dask.fit_edges(ConditionalRankRLS(0.1), users, frame, "stars", items, **columns)
    >>> model.n_edges_
    60
    """
    return estimator.fit_edges(X, DaskEdges(edges), y, Z, source=source, target=target, sample_weight=sample_weight)


def predict(
    model: Predictor,
    frame: dd.DataFrame | da.Array,
    features: str | Sequence[str] | None = None,
    qid: str | None = None,
) -> Any:
    """Scores of a fitted model for the rows of a Dask data frame or array, computed on the workers.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Any model whose `predict` returns one number per row, from the row alone or, if `qid` is given, from its query.
    frame : dask.dataframe.DataFrame or dask.array.Array
        Rows.
    features : list of str, default=None
        Columns of a data frame in the order of the model's features; by default those the model knows by name, or else
        all columns except `qid`.
    qid : str, default=None
        Column of query ids, for models whose scores depend on the other rows of the query (AutoRanker): rows are
        shuffled to bring each query together.

    Returns
    -------
    scores : dask.dataframe.Series or dask.array.Array
        Lazy, with the index of the frame, and with its partitions unless rows were shuffled.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> from rankrls.distributed import dask
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, 3.0]])
    >>> model = RankRLS(alpha=0.1).fit(X, [1, 0, 2, 0], qid=["a", "a", "b", "b"])
    >>> scores = dask.predict(model, da.from_array(X, chunks=(2, 2))).compute()
    >>> bool((abs(scores - model.predict(X)) < 1e-12).all())
    True
    """
    dask = _dask()
    shipped = _shipped(model)
    if isinstance(frame, dask.array.Array):
        if check_queries(model, None if qid is None else str(qid), []) is not None:
            raise ValueError("the scores of this model depend on whole queries: give a data frame with a column qid=")
        rows: Any = frame.rechunk({1: -1})
        shape, dtype = check_model(model, np.zeros((1, rows.shape[1]), dtype=rows.dtype))
        wide = {"chunks": (rows.chunks[0], shape)} if shape else {"drop_axis": 1, "chunks": (rows.chunks[0],)}
        return rows.map_blocks(score_array, shipped, dtype=dtype, meta=np.empty((0,) * (1 + len(shape)), dtype), **wide)
    given = _as_frame(frame)
    query = check_queries(model, qid, list(given.columns))
    columns = model_features(model, [name for name in given.columns if name != query], features)
    meta = given._meta_nonempty[columns]
    shape, dtype = check_model(model, rows_for(model, meta))
    if shape:
        raise ValueError(
            f"the model returns {shape[0]} scores per row, but a column holds one: pass a Dask array instead of a frame"
        )
    rows = given[columns] if query is None else given[[*columns, query]].shuffle(query)
    return rows.map_partitions(score_frame, shipped, query, meta=meta.iloc[:0, 0].rename("score").astype(dtype))


# ---------------------------------------------------------------- partitions


class DaskRows(Partitions):
    """Dask partitions: `on_rows` and `on_labels` run a task on all columns, or only the labels, of each (delayed)."""

    def __init__(self, on_rows: OnEach, on_labels: OnEach, *about: Any):
        super().__init__(*about)
        self.on_rows, self.on_labels = on_rows, on_labels

    def like(self, reader: Reader, n_columns: int) -> DaskRows:
        about = reader, n_columns, self.dtype, self.names, self.n_targets
        return DaskRows(self.on_rows, self.on_labels, *about)

    def run(self, task: Callable[[int, Any], Any], *, labels: bool = False) -> Any:
        return _compute(self.on_labels(task) if labels else self.on_rows(task))

    def sum_by_query(self, function: Callable[[Block], T], totals: QueryTotals | None, label: str) -> T:
        """Sum whole queries where they are, and the rows of split queries after a shuffle, in one pass."""
        if totals is None or not len(totals):
            return self.sum(function, label)
        dask = _dask()
        carrier = Carrier(totals, self.n_columns, self.n_targets, np.dtype(self.dtype).name)
        pairs = self.on_rows(DivideTask(self.reader, function, carrier))
        moved = dask.dataframe.from_delayed([pair[1] for pair in pairs], meta=carrier.frame(None), verify_meta=False)
        size = int(totals.size.sum()) * (self.n_columns + 3) * np.dtype(self.dtype).itemsize
        n = min(len(pairs), 1 + size // SHUFFLED_BYTES)
        moved = moved.shuffle("code", npartitions=n)
        rest = _on_frame(moved, CarriedTask(function, carrier))
        return some_rows(_compute([pair[0] for pair in pairs] + rest))


def _dask() -> Any:
    try:
        import dask
        import dask.array
        import dask.dataframe
    except ImportError as error:
        raise ImportError(f"Dask is needed: pip install 'rankrls[dask]' ({error})") from None
    return dask


def _shipped(thing: object) -> Any:
    """An object sent once with the graph; scattered data would be lost with the worker that holds it."""
    return _dask().delayed(thing, pure=False, traverse=False)


def _on_frame(frame: dd.DataFrame, task: Callable[[int, Any], Any]) -> list[Any]:
    """The delayed results of a task on each partition; reading and task are one step, so that no rows are moved."""
    given = frame.map_partitions(_call, _shipped(task), meta=(None, object), enforce_metadata=False)
    # with fewer columns Dask might read several files as one partition, which would split queries differently
    with _dask().config.set({"optimization.tune.active": False}):
        return given.to_delayed()


def _on_arrays(partitions: Sequence[Any], task: Callable[[int, Any], Any]) -> list[Any]:
    """The delayed results of a task on each list of chunks."""
    call, shipped = _dask().delayed(_call_arrays, pure=False), _shipped(task)
    return [call(shipped, number, chunks) for number, chunks in enumerate(partitions)]


def _call(frame: pd.DataFrame, task: Callable[[int, Any], Any], partition_info: dict[str, Any] | None = None) -> Any:
    import pyarrow as pa

    number = 0 if partition_info is None else partition_info["number"]
    if isinstance(task, CarriedTask):
        return task(number, frame)
    return task(number, [pa.RecordBatch.from_pandas(frame, preserve_index=False)])


def _call_arrays(task: Callable[[int, Any], Any], number: int, chunks: Sequence[np.ndarray]) -> Any:
    return task(number, chunks)


def _compute(values: list[Any]) -> Any:
    """The sum of delayed values, added in a tree."""
    dask = _dask()
    add = dask.delayed(added, pure=False)
    while len(values) > 1:
        values = [add(values[i : i + FAN_IN]) for i in range(0, len(values), FAN_IN)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        return dask.compute(values[0])[0]


def _as_frame(frame: object) -> Any:
    if not isinstance(frame, _dask().dataframe.DataFrame):
        raise TypeError(f"frame must be a Dask data frame or array, got {type(frame).__name__}")
    return frame


def _parts_of(
    frame: dd.DataFrame | da.Array,
    y: Column | None,
    qid: Column | None,
    features: str | Sequence[str] | None,
    sample_weight: Column | None,
    *,
    encoded: bool,
) -> DaskRows:
    """The partitions of a frame or array, with its columns resolved."""
    dask = _dask()
    import pyarrow as pa  # comes with Dask's data frames

    if isinstance(frame, dask.array.Array):
        if features is not None:
            raise ValueError("features= takes column names of a data frame; for an array, pass X[:, columns]")
        return _of_arrays(frame, y, qid, sample_weight)
    given = _as_frame(frame)
    columns, names = columns_of(list(given.columns), y, qid, sample_weight, features)
    wanted = given[[*columns.labels, *names]]
    table = table_of(pa.Schema.from_pandas(wanted._meta, preserve_index=False), columns, encoded=encoded)
    on_rows, on_labels = partial(_on_frame, wanted), partial(_on_frame, given[columns.labels])
    return DaskRows(on_rows, on_labels, Reader(table), table.n_columns, table.dtype, table.names, 1)


def _of_arrays(X: da.Array, y: Column | None, qid: Column | None, sample_weight: Column | None) -> DaskRows:
    X = X.rechunk({1: -1})
    names = ("y", "qid", "sample_weight")
    labels = [_like(X, name, value) for name, value in zip(names, (y, qid, sample_weight), strict=True)]
    if labels[0] is None:
        raise ValueError("y is missing: give an array with a label for each row of X")
    n_targets = 1 if labels[0].ndim == 1 else labels[0].shape[1]
    blocks = [[None] * X.numblocks[0] if a is None else a.to_delayed().ravel().tolist() for a in (X, *labels)]
    rows = [list(part) for part in zip(*blocks, strict=True)]
    only_labels = [[None, *part[1:]] for part in rows]
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    on_rows, on_labels = partial(_on_arrays, rows), partial(_on_arrays, only_labels)
    return DaskRows(on_rows, on_labels, Reader(), X.shape[1], dtype, None, n_targets)


def _like(X: da.Array, name: str, values: Matrix) -> Any:
    """Labels in the same chunks as the rows of X."""
    if values is None:
        return None
    if isinstance(values, str):
        raise TypeError(f"X is an array without column names: {name} must be an array too, or None, got {values!r}")
    array = _dask().array
    if not isinstance(values, array.Array):
        values = array.from_array(np.asarray(values), chunks=-1)
    if np.isnan(X.shape[0]) or np.isnan(values.shape[0]):  # lengths are known only after computing
        if values.numblocks[0] != X.numblocks[0]:
            raise ValueError(f"{name} has {values.numblocks[0]} chunks of rows and X has {X.numblocks[0]}")
        return values
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"{name} has {values.shape[0]} entries for {X.shape[0]} rows of X")
    return values.rechunk({0: X.chunks[0], **({1: -1} if values.ndim > 1 else {})})
