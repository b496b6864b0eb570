"""From checked training input to a learning problem: the one place where primal, dual or iterative is chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .. import checks
from ..bases import DEFAULT, Basis, RandomRows
from ..core.features import Identity, Nystroem
from ..core.preferences import QueryPreferences
from ..core.queries import Queries
from ..core.statistics import Preferences
from ..kernels import Function, Kernel, Precomputed, as_kernel
from ..problems.choice import Problem
from ..problems.dual import Dual
from ..problems.iterative import Iterative
from ..problems.primal import Primal
from ..system import memory

GRAM_COLUMNS = 4000  # sparse data with more columns than this never get a dense Gram matrix


@dataclass(frozen=True)
class Training:
    """Checked rows to learn from."""

    X: Any
    y: np.ndarray  # (m, t)
    queries: Queries
    weights: np.ndarray | None = None
    kernel: Kernel | None = None
    points: Any = None  # basis points, None for all rows
    kept: np.ndarray | None = None  # numbers of the rows in the caller's data, None for all
    n_given: int = 0  # rows the caller gave
    flat: bool = True  # the caller's y has one dimension

    def without_zero_weights(self) -> Training:
        """A row of weight zero is a row not given."""
        if self.weights is None or np.all(self.weights > 0):
            return self
        kept = np.flatnonzero(self.weights > 0)
        queries = Queries.of(self.queries.labels[self.queries.codes[kept]])
        return replace(self, X=self.X[kept], y=self.y[kept], queries=queries, weights=self.weights[kept], kept=kept)

    def with_kernels(self, kernel: Any, basis: Any, random_state: Any) -> list[Training]:
        """The rows under each kernel there is to choose from, with the basis points if there are any."""
        if kernel is None:
            return [self]
        kernel = as_kernel(kernel)
        if isinstance(kernel, Precomputed):
            return [self._precomputed(basis, random_state)]
        if self.kept is not None and isinstance(basis, (list, np.ndarray)) and np.ndim(basis) == 1:
            basis = np.flatnonzero(np.isin(self.kept, basis))  # row numbers are the caller's
        return [
            replace(self, kernel=k, points=basis_points(basis, self.X, k, random_state))
            for k in kernel.candidates(self.X, self.weights)
        ]

    def _precomputed(self, basis: Any, random_state: Any) -> Training:
        if basis is None:
            X = self.X if self.kept is None else np.ascontiguousarray(self.X[:, self.kept])
            return replace(self, X=X, kernel=Precomputed())
        rows = np.arange(self.n_given)[:, None] if self.kept is None else self.kept[:, None]
        if isinstance(basis, (int, np.integer)):
            basis = RandomRows(int(basis))
        if not isinstance(basis, RandomRows) and np.ndim(basis) != 1:
            raise ValueError("the basis of a precomputed kernel is a number of random rows or row numbers")
        columns = basis_points(basis, rows, Precomputed(), random_state)[:, 0]
        place = np.flatnonzero(np.isin(rows[:, 0], columns))
        return replace(self, kernel=Precomputed(columns), points=self.X[place])

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @cached_property
    def K(self) -> np.ndarray:
        """The kernel matrix of all rows, symmetric in double precision."""
        assert self.kernel is not None
        m = self.X.shape[0]
        memory.check_memory(
            6 * 8 * m**2,
            f"a kernel model of all {m} training rows",
            "use a sparse one, e.g. RankRLS(kernel=..., basis=1000), or fewer rows",
        )
        K = np.asarray(self.kernel(self.X, self.X), dtype=np.float64)
        if isinstance(self.kernel, Function):
            checks.check_kernel_matrix(K)
        return K

    def problem(self, F: QueryPreferences) -> Problem:
        """Primal where features are few, dual where items are fewer, iterative where both are many and sparse."""
        m, n = self.X.shape
        if self.points is not None:
            return self.primal(F, self.y)
        if self.kernel is not None:
            return Dual(F, self.K, self.y)
        if n <= m and not (sparse.issparse(self.X) and n > GRAM_COLUMNS):
            return self.primal(F, self.y)
        if not sparse.issparse(self.X) or m <= GRAM_COLUMNS:
            memory.check_memory(6 * 8 * m**2, f"a linear model of {m} rows and {n} features", "use fewer rows")
            return Dual(F, self.X, self.y, linear=True)
        return Iterative(F, self.X, self.y)

    def primal(self, F: Preferences, y: np.ndarray) -> Primal:
        """The problem in the space of the features: columns, or kernels to the basis points."""
        if self.kernel is None:
            return Primal(F, Identity(self.X.shape[1]), self.X, y, self.dtype)
        return Primal(F, Nystroem(self.kernel, self.points), self.X, y, np.float64)

    def all_rows(self, V: np.ndarray) -> np.ndarray:
        """V at the rows kept, NaN elsewhere."""
        if self.kept is None:
            return V
        full = np.full((self.n_given, *V.shape[1:]), np.nan, dtype=V.dtype)
        full[self.kept] = V
        return full


def preferences_among(
    queries: Queries, u: Any, rows: np.ndarray, y: Any = None, *, weighting: str, regression: float = 0.0
) -> QueryPreferences:
    """All pairs among some rows of one query; given y, without those that tie."""
    part = Queries.of(queries.labels[queries.codes[rows]]) if len(rows) else Queries(rows, rows)  # or none at all
    weights = None if u is None else u[rows]
    if y is None:
        checks.check_query_mass(part, weights, weighting)
    labels = None if y is None else y[rows]
    return QueryPreferences(part, labels, weighting=weighting, regression=regression, weights=weights)


def basis_points(basis: Any, X: Any, kernel: Kernel, random_state: Any) -> Any:
    """The points a kernel model is expanded in: None for all rows, chosen points, rows by number, or the points."""
    if basis is None:
        return None
    if isinstance(basis, (int, np.integer)) and not isinstance(basis, bool):
        basis = DEFAULT(int(basis))
    if isinstance(basis, Basis):
        if not 1 <= basis.size <= X.shape[0]:
            raise ValueError(f"basis={basis.size} points cannot be drawn from {X.shape[0]} rows")
        seed = random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state
        return basis.choose(X, kernel, np.random.default_rng(seed))
    array = basis if sparse.issparse(basis) else np.asarray(basis)
    if array.ndim == 1 and array.dtype.kind in "iu":
        if len(array) == 0 or array.min() < -X.shape[0] or array.max() >= X.shape[0]:
            raise ValueError(f"basis names rows outside 0 to {X.shape[0] - 1}, or none")
        return X[array]
    if array.ndim == 2 and array.shape[1] == X.shape[1]:
        return array.astype(X.dtype)
    raise ValueError(
        f"basis must be None, a number, row numbers, or points with {X.shape[1]} features; got shape {array.shape}"
    )
