"""The types of what callers pass in, defined in one place.

SciPy, scikit-learn, pandas and pyarrow have no type information, so their classes count as Any for a type checker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

__all__ = [
    "ArrayLike",
    "DTypeLike",
    "FitInput",
    "Ids",
    "LazyTable",
    "Matrix",
    "MatrixLike",
    "Path",
    "Predictor",
    "Seed",
    "Table",
]


class Table(Protocol):
    """A data frame: pandas, polars, pyarrow, DuckDB, or anything else with an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class LazyTable(Protocol):
    """A query that has not run yet, such as a polars LazyFrame."""

    def collect_schema(self) -> object: ...


class Predictor(Protocol):
    """A fitted estimator of this library, or a pipeline that ends in one. `isinstance` works."""

    def predict(self, X: MatrixLike, /) -> np.ndarray: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


Path: TypeAlias = str | os.PathLike[str]
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
Matrix: TypeAlias = np.ndarray | sparse.sparray | sparse.spmatrix  # validated rows
MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix | Table  # one row per item
FitInput: TypeAlias = MatrixLike | Path | LazyTable | Iterator[Any] | Callable[[], Iterable[Any]]  # in memory or not
Ids: TypeAlias = ArrayLike | Table | None  # one label of any type per row; None: all rows form one group
