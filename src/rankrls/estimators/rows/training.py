"""From checked training rows to a learning problem, and from its solution to fitted attributes.

`Training.problem` is the only place that chooses primal, dual or iterative. Results are records whose fields are named
like the fitted attributes, and only the estimator stores them; a field that is None stands for an attribute that the
model does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ... import bases, checks
from ...core.features import Identity, Nystroem
from ...core.noise import noise_of
from ...core.preferences import QueryPreferences
from ...core.queries import Queries
from ...core.statistics import Preferences, Statistics
from ...core.weighting import LINEAR, Gain, recoded
from ...kernels import (
    Cosine,
    Function,
    Gaussian,
    Kernel,
    KernelLike,
    Laplacian,
    Linear,
    Moments,
    Polynomial,
    Precomputed,
    Scaled,
    as_kernel,
    divided,
    for_scaled,
)
from ...problems.base import Model
from ...problems.choice import Choice, Problem
from ...problems.constrained import Preferred
from ...problems.dual import Dual
from ...problems.iterative import Iterative
from ...problems.primal import Primal
from ...problems.signed import SignedPrimal
from ...system import memory
from ...system.items import Items
from ...system.lazy import cached_property
from ...system.limits import limits
from ...system.parallel import product_of_fit
from ...system.seeds import seed_of
from ...system.types import DTypeLike, Matrix, Seed

SCALABLE = (Linear, Gaussian, Polynomial, Laplacian, Cosine)


@dataclass(frozen=True)
class Training:
    """Checked rows to learn from."""

    X: Any
    y: np.ndarray  # (m, t)
    queries: Queries
    weights: np.ndarray | None = None
    kernel: Kernel | None = None
    points: Any = None  # basis points, None for all rows
    kept: np.ndarray | None = None  # the caller's row numbers of these rows, None if all rows are kept
    n_given: int = 0  # number of rows the caller gave
    given: Any = None  # all rows the caller gave, if some are not kept
    flat: bool = True  # whether the caller's y has one dimension
    signs: np.ndarray | None = None  # (n,) required signs of the weights
    scaled: bool = False  # whether columns are measured in units of their spread
    labels: np.ndarray | None = None  # (m, t) the labels that rankings are judged by, if y is a gain
    gain: Gain = LINEAR

    def without_zero_weights(self) -> Training:
        """The rows with nonzero weight."""
        if self.weights is None or np.all(self.weights > 0):
            return self
        kept = np.flatnonzero(self.weights > 0)
        queries = Queries.of(self.queries.labels[self.queries.codes[kept]])
        rows = {"X": self.X[kept], "y": self.y[kept], "weights": self.weights[kept]}
        return replace(self, **rows, queries=queries, kept=kept, given=self.X)

    def only(self, rows: np.ndarray) -> Training:
        """A subset of the rows, which must be whole queries."""
        pick = lambda values: None if values is None else values[rows]
        part = replace(self, X=self.X[rows], y=self.y[rows], queries=Queries.of(self.queries.codes[rows]))
        return replace(part, weights=pick(self.weights), labels=pick(self.labels))

    def recoded(self, gain: Gain) -> Training:
        """The rows with gains of their labels as targets; rankings are still judged by the labels."""
        return self if gain == LINEAR else replace(self, y=recoded(self.y, gain), labels=self.y, gain=gain)

    @property
    def truth(self) -> np.ndarray:
        """(m, t) the labels that rankings are judged by."""
        return self.y if self.labels is None else self.labels

    @property
    def product(self) -> float:
        """The multiplications in the largest product of a fit, for `threads_for`."""
        m, n = self.X.shape
        columns = n if self.kernel is None else m if self.points is None else self.points.shape[0]
        return product_of_fit((m, n), columns)

    def with_kernels(
        self, kernel: KernelLike | None, basis: bases.BasisLike | None, random_state: Seed
    ) -> list[Training]:
        """The rows with each candidate kernel, and with basis points if there are any."""
        if kernel is None:
            return [self]
        kernel, seed = as_kernel(kernel), seed_of(random_state)
        if isinstance(kernel, Precomputed):
            return [self._precomputed(kernel, basis, seed)]
        return [
            replace(self, kernel=k, points=bases.points(basis, self.X, k, seed, self.weights, numbered=self.given))
            for k in self._candidates(kernel)
        ]

    def _candidates(self, kernel: Kernel) -> list[Kernel]:
        """The candidate kernels: the library's own see scaled columns, the caller's functions do not."""
        if not (self.scaled and is_scalable(kernel)):
            return kernel.candidates(self.X, self.weights)
        moments = Moments.of(self.X, self.weights)
        kernel, scale = for_scaled(kernel, moments), moments.deviation
        return [Scaled(k, scale) for k in kernel.candidates(divided(self.X, scale), self.weights)]

    def _precomputed(self, kernel: Precomputed, basis: bases.BasisLike | None, seed: int) -> Training:
        """Training data with a precomputed kernel, whose points are given by row and column numbers.

        A matrix with fewer columns than rows has a column for each point; the kernel values among points are in their
        rows, or given as the basis.
        """
        if isinstance(basis, np.ndarray) and basis.ndim == 2:
            return replace(self, kernel=kernel, points=basis)
        kept = np.arange(self.X.shape[0]) if self.kept is None else self.kept
        if basis is None:
            X = self.X if self.kept is None else np.ascontiguousarray(self.X[:, self.kept])
            return replace(self, X=X, kernel=Precomputed())
        drawn = bases.is_count(basis) or isinstance(basis, bases.RandomRows | bases.PivotedCholesky)
        if not drawn and not bases.are_numbers(basis):
            raise ValueError("the basis of a precomputed kernel must be a number of rows to draw, or row numbers")
        K = self.X if self.given is None else self.given
        if K.shape[1] != K.shape[0]:
            return replace(self, kernel=Precomputed(), points=K[bases.row_numbers(np.asarray(basis), K.shape[0])])
        numbers, lookup = np.arange(K.shape[0])[:, None], Function(partial(_looked_up, K))
        columns = bases.points(basis, kept[:, None], lookup, seed, self.weights, numbered=numbers)[:, 0]
        return replace(self, kernel=Precomputed(columns), points=K[columns])

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
        X = self.X.astype(np.float64) if self.dtype == np.float32 else self.X  # differences of large squares cancel
        K = np.asarray(self.kernel(X, X), dtype=np.float64)
        if isinstance(self.kernel, Function):
            checks.check_kernel_matrix(K)
        return K

    def problem(self, F: QueryPreferences) -> Problem:
        """Primal if there are few features, dual if there are fewer items, iterative if both are many and sparse."""
        m, n = self.X.shape
        if self.signs is not None or self.points is not None:
            return self.primal(F, self.y)
        if self.kernel is not None:
            return Dual(F, self.K, self.y)
        if self.by_columns:
            return self.primal(F, self.y)
        if not sparse.issparse(self.X) or m <= limits.gram_columns:
            memory.check_memory(6 * 8 * m**2, f"a linear model of {m} rows and {n} features", "use fewer rows")
            return Dual(F, self.X, self.y, linear=True)
        return Iterative(F, self.X, self.y)

    @property
    def by_columns(self) -> bool:
        """True if a linear model is solved from products of its columns."""
        m, n = self.X.shape
        return self.signs is not None or (n <= m and not (sparse.issparse(self.X) and n > limits.gram_columns))

    def primal(self, F: Preferences, y: np.ndarray) -> Primal:
        """The problem in the space of the features: columns, or kernels to the basis points."""
        if self.kernel is None:
            n = self.X.shape[1]
            if n > limits.gram_columns:
                memory.check_memory(4 * 8 * n**2, f"a linear model of {n} features", "take fewer of them")
            problem = Primal(F, Identity(n), self.X, y, self.dtype, scaled=float(self.scaled))
            if self.signs is not None:
                problem = SignedPrimal(F, Identity(n), self.X, y, self.dtype, float(self.scaled), signs=self.signs)
            return problem if problem.in_range else replace(problem, dtype=np.float64)
        return Primal(F, Nystroem(self.kernel, self.points), self.X, y, np.float64)

    def all_rows(self, V: np.ndarray) -> np.ndarray:
        """V at the kept rows, NaN at the others."""
        if self.kept is None:
            return V
        full = np.full((self.n_given, *V.shape[1:]), np.nan, dtype=V.dtype)
        full[self.kept] = V
        return full


@dataclass(frozen=True)
class TrainedOn:
    """The training data of a model without sums, from which it can be solved for other alphas."""

    y: np.ndarray  # (m, t)
    codes: np.ndarray  # (m,) the query of each row
    weights: np.ndarray | None
    kept: np.ndarray | None  # the caller's row numbers of these rows
    n_given: int
    X: Any = None  # the rows of a linear model; a kernel model has them as its points

    @classmethod
    def of(cls, data: Training, *, with_rows: bool) -> TrainedOn:
        keep = data.kernel is None and (with_rows or n_bytes(data.X) <= limits.kept_bytes)
        X = data.X.copy() if keep else None  # the caller may change the rows later
        return cls(data.y.copy(), data.queries.codes, data.weights, data.kept, data.n_given, X)


def n_bytes(X: Any) -> int:
    """The memory that rows take, dense or sparse, not counting the content of objects."""
    if isinstance(X, Items):
        return 8 * len(X)
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if sparse.issparse(X) else int(X.nbytes)


def _looked_up(K: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The kernel on row numbers that looks values up in a matrix."""
    return K[np.ix_(rows[:, 0], columns[:, 0])]


def preferences_among(
    queries: Queries,
    u: Any,
    rows: np.ndarray,
    y: Any = None,
    *,
    weighting: str,
    regression: float = 0.0,
    intercept: bool = True,
) -> QueryPreferences:
    """Preferences between rows of one query among `rows`; if y is given, tied pairs are excluded."""
    part = Queries.of(queries.labels[queries.codes[rows]]) if len(rows) else Queries(rows, rows)  # or none at all
    weights = None if u is None else u[rows]
    if y is None:
        checks.check_query_mass(part, weights, weighting)
    labels = None if y is None else y[rows]
    kind: dict[str, Any] = {"weighting": weighting, "regression": regression, "intercept": intercept}
    return QueryPreferences(part, labels, weights=weights, **kind)


def is_scalable(kernel: Kernel) -> bool:
    """True if a kernel is one of the library's kernels on columns."""
    return type(kernel) in SCALABLE


def multiplied(X: Matrix, W: np.ndarray) -> Any:
    """The columns of X times W, in the precision of X unless they would overflow."""
    V = sparse.csr_array(X @ sparse.diags_array(W)) if sparse.issparse(X) else X * W
    top = float(np.abs(V.data if sparse.issparse(V) else V).max(initial=0.0))
    return V.astype(X.dtype, copy=False) if top < float(np.finfo(X.dtype).max) else V


@dataclass(frozen=True)
class Seen:
    """The columns that a fit saw, if scikit-learn's own check did not store them."""

    n_features_in: int
    feature_names_in: np.ndarray | None = None

    @classmethod
    def of(cls, n_columns: int, names: Sequence[str] | None) -> Seen:
        return cls(n_columns, None if names is None else np.array(names, dtype=object))


@dataclass(frozen=True)
class Weights:
    """What `RankRLS.predict` needs: weights of the columns, or of the points of a kernel model."""

    intercept: float | np.ndarray
    coef: np.ndarray | None = None
    dual_coef: np.ndarray | None = None
    X_fit: Matrix | None = None
    kernel: Kernel | None = None

    @classmethod
    def of(cls, model: Model, data: Training, regression: float) -> Weights:
        """The solution in the precision and shape of the caller's data."""
        free = model.intercept if regression > 0 else np.zeros_like(model.intercept)
        fits = holds(data.dtype, model.coef) and holds(data.dtype, free)
        coef, free = (values.astype(data.dtype if fits else np.float64) for values in (model.coef, free))
        intercept = float(free[0]) if data.flat else free
        if data.kernel is None:
            return cls(intercept, coef=coef[:, 0] if data.flat else coef.T)
        if isinstance(data.kernel, Precomputed) and data.points is None:
            coef = np.nan_to_num(data.all_rows(coef))  # zero for rows of weight zero
        X = data.X if isinstance(data.kernel, Precomputed) else data.X.copy()  # the caller may change the rows later
        points = X if data.points is None else data.points
        return cls(intercept, dual_coef=coef[:, 0] if data.flat else coef, X_fit=points, kernel=data.kernel)


def rounded(values: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """Scores in the precision of the data, unless the largest would overflow."""
    return values.astype(dtype, copy=False) if holds(dtype, values) else values


def holds(dtype: DTypeLike, values: np.ndarray) -> bool:
    """True if the largest of the values does not overflow in this precision."""
    if dtype == np.float64:
        return True
    top = np.nanmax(np.abs(values), initial=0.0)
    return bool(np.finfo(dtype).bits == 64 or top == 0 or 1e-30 < top < 1e30)


@dataclass(frozen=True)
class Learned:
    """The attributes of a fitted RankRLS besides its weights."""

    alpha: float
    tied_pairs: bool
    n_queries: int
    n_pairs: int
    statistics: Statistics | None  # the sums, if the model stores them
    weighting: str | None = None
    scale: np.ndarray | None = None  # spread of the columns
    pairs: Preferred | None = None  # added by add_pairs
    trained_on: TrainedOn | None = None  # only for models without sums
    gain: Gain = LINEAR  # of the labels


@dataclass(frozen=True)
class Selected:
    """How alpha was chosen; empty if it was given."""

    alphas: np.ndarray | None = None
    cv_scores: np.ndarray | None = None
    cv_errors: np.ndarray | None = None
    cv_criterion: str | None = None  # what the scores are, if they are not the metric
    cv_predictions: np.ndarray | None = None
    cv_predictions_path: np.ndarray | None = None  # on request
    noise: tuple[float, float] | None = None  # of held-out scores

    @classmethod
    def of(cls, chosen: Choice, data: Training, *, path: bool = False) -> Selected:
        """The alphas that were tried, with the held-out scores of the best if there are any."""
        if chosen.predictions is None:
            return cls(chosen.alphas, chosen.scores, chosen.errors)
        noise = None
        if data.flat:
            noise = noise_of(data.y[:, 0], np.asarray(chosen.predictions[:, 0], dtype=float), data.queries)
        predictions = rounded(data.all_rows(chosen.predictions), data.dtype)
        return cls(
            chosen.alphas,
            chosen.scores,
            chosen.errors,
            cv_predictions=predictions[:, 0] if data.flat else predictions,
            cv_predictions_path=_path(chosen, data) if path else None,
            noise=noise,
        )


def _path(chosen: Choice, data: Training) -> np.ndarray:
    """(m, k) or (m, k, t) the held-out scores of all rows at every setting."""
    scores = data.all_rows(chosen.held_out).astype(data.dtype, copy=False)
    return scores[:, :, 0] if data.flat else scores


RankRLSFit = tuple[Weights, Learned, Selected]
