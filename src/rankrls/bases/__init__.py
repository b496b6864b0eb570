"""The points in which a sparse kernel model is expanded::

    RandomRows(r)         rows drawn at random, as in the paper on Sparse RankRLS
    KMeansCentres(r)      centres of k-means clusters, not rows of the data
    PivotedCholesky(r)    rows drawn in proportion to what earlier rows do not explain [Chen23]

`basis=` of every estimator and of `View` takes one of these, a number (`PivotedCholesky` of that size), row numbers, or
the points themselves. The same seed gives the same points in memory, out of core and on a cluster, in any row order
and, up to 20,000 distinct rows, in any units of the columns. A row that occurs twice counts as one row of twice the
weight, and there are never more points than distinct rows.

Examples
--------
>>> from rankrls import RankRLS, bases
>>> from rankrls.datasets import make_search
>>> data = make_search(20, random_state=0)
>>> model = RankRLS(kernel="rbf", basis=bases.KMeansCentres(10), random_state=0).fit(data.X, data.y, qid=data.qid)
>>> model.dual_coef_.shape
(10,)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from scipy import sparse

from ..kernels import Function, Kernel, Moments, ObjectKernel, Scaled, divided, for_scaled
from ..system import memory
from ..system.items import Items
from ..system.parallel import threads_for
from ..system.rows import CANDIDATES, DistinctRows
from ..system.types import ArrayLike, DTypeLike, Matrix

__all__ = ["Basis", "KMeansCentres", "PivotedCholesky", "RandomRows"]

from .drawing import DRAWS, first_centres, nearest, pivots

OVERFLOW = "kernel values overflow: X or sample_weight has very large values; divide by a constant"


class Basis:
    """Interface: a way to choose basis points.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> class FirstRows(Basis):
    ...     size = 2
    ...     def choose(self, X, kernel, rng):
    ...         return X[: self.size]
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> RankRLS(1.0, kernel="rbf", basis=FirstRows()).fit(X, [0, 1, 2, 3]).X_fit_
    array([[0., 1.],
           [2., 3.]])
    """

    size: int
    _weighted = False  # whether `choose` takes weights

    def choose(self, X: Matrix, kernel: Kernel, rng: np.random.Generator) -> Any:
        """(r, n_features) points for rows X under a kernel, at most `size` of them."""
        raise TypeError(f"{type(self).__name__} is abstract: define choose")


@dataclass(frozen=True)
class RandomRows(Basis):
    """Rows drawn at random, each at most once.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.datasets import make_search
    >>> data = make_search(20, random_state=0)
    >>> model = RankRLS(kernel="rbf", basis=RandomRows(15), random_state=0).fit(data.X, data.y, qid=data.qid)
    >>> model.X_fit_.shape
    (15, 12)
    """

    size: int
    _weighted = True

    def choose(self, X: Matrix, kernel: Kernel, rng: np.random.Generator, weights: np.ndarray | None = None) -> Any:
        return _candidates(X, weights, self.size, rng).X[: self.size]


@dataclass(frozen=True)
class KMeansCentres(Basis):
    """Centres of k-means clusters of (at most 20,000) distinct rows, weighted; for dense rows only.

    Columns are taken in the units in which the kernel sees them.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2]])
    >>> from rankrls.kernels import Gaussian
    >>> np.sort(KMeansCentres(2).choose(X, Gaussian(1.0), np.random.default_rng(0)), axis=0)
    array([[0.1],
           [5.1]])
    """

    size: int
    iterations: int = 10
    _weighted = True

    def choose(
        self, X: Matrix, kernel: Kernel, rng: np.random.Generator, weights: np.ndarray | None = None
    ) -> np.ndarray:
        if sparse.issparse(X):
            raise TypeError("k-means centres need dense rows: use PivotedCholesky or RandomRows for sparse rows")
        rows = _candidates(X, weights, self.size, rng)
        scale = kernel.scale if isinstance(kernel, Scaled) else np.ones(X.shape[1])
        middle = np.average(rows.X, axis=0, weights=rows.weights)
        V = (rows.X.astype(np.float64) - middle) / scale  # squared distances cancel far from the origin
        centres = first_centres(V, rows.weights, self.size, rng)
        for _ in range(self.iterations):
            label = nearest(V, centres)
            used, label = np.unique(label, return_inverse=True)  # clusters may have become empty
            total = np.bincount(label, weights=rows.weights)
            pick = sparse.csr_array(
                (rows.weights / total[label], (label, np.arange(len(V)))), shape=(len(used), len(V))
            )
            centres = pick @ V
        return (centres * scale + middle).astype(X.dtype)


@dataclass(frozen=True)
class PivotedCholesky(Basis):
    """Randomly pivoted Cholesky: O(c r) kernel values and O(c r^2) time for c (at most 20,000) distinct rows.

    The next row is drawn in proportion to its weight times its squared distance, in the kernel's space, to the span of
    the rows drawn so far. Many rows are drawn at a time; each is then kept with probability (distance now) / (distance
    when drawn), which leaves the distribution unchanged [Epperly24].

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.kernels import Linear
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    >>> PivotedCholesky(2).choose(X, Linear(), np.random.default_rng(0)).shape
    (2, 2)
    """

    size: int
    _weighted = True

    def choose(self, X: Matrix, kernel: Kernel, rng: np.random.Generator, weights: np.ndarray | None = None) -> Any:
        candidates = _candidates(X, weights, self.size, rng)
        rows, u, c = candidates.X, candidates.weights / candidates.weights.max(), len(candidates)
        rows = rows.astype(np.float64) if rows.dtype == np.float32 else rows  # kernel values in full precision
        size = min(self.size, c)
        memory.check_memory(8.0 * size * c, f"pivoted Cholesky of {size} of {c} rows", "take a smaller basis")
        diagonal = kernel.diagonal(rows)
        if not np.isfinite(diagonal).all():
            raise ValueError(OVERFLOW)
        with threads_for(float(size) * DRAWS * c):
            chosen = pivots(rows, kernel, u, diagonal, size, rng)
        found = np.sort(chosen) if len(chosen) else np.arange(1)  # one point, if the kernel is zero everywhere
        return candidates.X[found]


DEFAULT = PivotedCholesky  # docs/decisions/0003-basis.md


BasisLike: TypeAlias = Basis | ArrayLike  # what `basis=` takes besides None


def points(
    basis: BasisLike | None,
    X: Any,
    kernel: Kernel,
    seed: int,
    weights: np.ndarray | None = None,
    *,
    numbered: Any = None,
    where: str = "",
) -> Any:
    """Resolve `basis=` to the (r, n_features) points a kernel model is expanded in; None for all rows.

    Parameters
    ----------
    basis : None, int, Basis, array of row numbers or array of points
        None gives None. A number means `DEFAULT` of that size.
    X, weights
        The rows to draw from, and how many copies each counts as.
    numbered
        The rows that row numbers refer to, if not X: negative numbers count from the end, repeated ones count once.
        A row of weight zero can be a point.
    where : str
        Start of error messages ("view 0: ").
    """
    if basis is None or isinstance(basis, Items):
        return basis
    if isinstance(X, Items):
        return _items_by_number(basis, X, kernel, seed, weights, numbered, where)
    if is_count(basis):
        basis = DEFAULT(int(basis))
    if isinstance(basis, Basis):
        if basis.size < 1:
            raise ValueError(f"{where}basis={basis.size} must be at least one point")
        _check_room(min(basis.size, X.shape[0]), where)
        arguments = [weights] if basis._weighted else []
        return basis.choose(X, kernel, np.random.default_rng(seed), *arguments)
    array: Any = basis if sparse.issparse(basis) else np.asarray(basis)
    if array.ndim == 1 and array.dtype.kind in "iu":
        rows = X if numbered is None else numbered
        numbers = row_numbers(array, rows.shape[0], where)
        _check_room(len(numbers), where)
        return rows[numbers]
    if array.ndim == 2 and array.shape[0] and array.shape[1] == X.shape[1]:
        _check_room(array.shape[0], where)
        return _given(array, X.dtype, where)
    raise ValueError(
        f"{where}basis must be None, a number, row numbers, or points with {X.shape[1]} features; "
        f"got shape {array.shape}" + (" of True and False: use np.flatnonzero" if array.dtype == bool else "")
    )


def _check_room(r: int, where: str) -> None:
    """Raise an error unless the kernel matrix of the points, and what is computed from it, fits in memory."""
    memory.check_memory(4 * 8.0 * r**2, f"{where}a basis of {r} points", "take a smaller one, e.g. basis=1000")


def _items_by_number(
    basis: Any, X: Items, kernel: Kernel, seed: int, weights: np.ndarray | None, numbered: Items | None, where: str
) -> Items:
    """Objects, drawn or given by number."""
    if isinstance(basis, KMeansCentres):
        raise TypeError(f"{where}k-means needs rows of numbers, got objects: use PivotedCholesky or RandomRows")
    if not (
        isinstance(basis, Basis) or is_count(basis) or (np.ndim(basis) == 1 and np.asarray(basis).dtype.kind in "iu")
    ):
        return Items(basis)  # the objects themselves
    named = not (isinstance(basis, Basis) or is_count(basis))
    rows = numbered if named and numbered is not None else X

    A = kernel.features(rows) if isinstance(kernel, ObjectKernel) else None  # count each object only once

    def of_numbers(i: Any, j: Any) -> np.ndarray:
        i, j = i[:, 0].astype(np.intp), j[:, 0].astype(np.intp)
        return kernel(rows[i], rows[j]) if A is None else (A[i] @ A[j].T).toarray()

    numbers = np.arange(len(rows), dtype=np.float64)[:, None]
    found = points(basis, numbers, Function(of_numbers), seed, None if named else weights, where=where)
    return rows[found[:, 0].astype(np.intp)]


def are_numbers(basis: BasisLike | None) -> bool:
    """True if a basis has one dimension, so that it holds row numbers."""
    return not isinstance(basis, Basis | None) and np.ndim(basis) == 1


def row_numbers(basis: ArrayLike, m: int, where: str = "") -> np.ndarray:
    """Row numbers from 0: negative ones count from the end, repeated ones count once."""
    array = np.asarray(basis)
    outside = (array < -m) | (array >= m)
    if not len(array) or outside.any():
        found = f"; got {array[outside][0]}" if len(array) else ""
        raise ValueError(f"{where}basis is empty or has rows outside 0 to {m - 1}{found}")
    return np.array(list(dict.fromkeys((array % m).tolist())), dtype=np.intp)


def _given(array: Any, dtype: DTypeLike, where: str) -> Any:
    """Points given by the caller, checked."""
    values = array.data if sparse.issparse(array) else array
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{where}basis points must be numbers, got dtype {values.dtype}") from None
    if not np.isfinite(values).all():
        which = "" if sparse.issparse(array) else f"point {int(np.argmax(~np.isfinite(values).all(axis=1)))} has "
        raise ValueError(f"{where}basis points must be finite: {which}NaN or infinite values")
    return sparse.csr_array(array).astype(dtype) if sparse.issparse(array) else array.astype(dtype)


def deal(rows: DistinctRows, sizes: Sequence[int]) -> list[np.ndarray]:
    """Disjoint shares of distinct rows, in proportion to sizes: dealt like cards, in their order."""
    place = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes])
    pattern = np.repeat(np.arange(len(sizes)), sizes)[np.argsort(place, kind="stable")]
    owner = pattern[np.arange(len(rows)) % len(pattern)]
    return [np.flatnonzero(owner == number) for number in range(len(sizes))]


def is_count(value: object) -> TypeGuard[int]:
    """True for a whole number, but not for True or False."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


# ---------------------------------------------------------------- rows that arrive in blocks


@dataclass(frozen=True)
class Draw:
    """Maps a block of rows to the sample from which basis points and kernel widths are taken; samples can be added."""

    size: int
    seed: int
    below: int = 2**64  # rows with this key or a larger one are left out

    @classmethod
    def of(cls, basis: Any, seed: int) -> Draw:
        """How to sample rows for a basis with a given seed."""
        size = max(CANDIDATES, basis.size if isinstance(basis, Basis) else int(basis) if is_count(basis) else 0)
        return cls(size, _key_seed(np.random.default_rng(seed)))

    def __call__(self, block: Any) -> Sample:
        X, weights = block.X, block.weights
        if weights is not None and not np.all(weights > 0):
            given = np.flatnonzero(weights > 0)
            X, weights = X[given], weights[given]
        return Sample(
            DistinctRows.of(X, weights, self.size, self.seed, below=self.below),
            DistinctRows.of(X, weights, CANDIDATES, 0, below=self.below),
            Moments.of(X, weights),
        )

    def share(self, n_rows: int) -> Draw:
        """The same with fewer rows per block: enough, unless many rows are equal."""
        wanted = self.size + 6 * np.sqrt(self.size) + 10
        return replace(self, below=2**64 if wanted >= n_rows else int(wanted / n_rows * 2**64))


@dataclass(frozen=True)
class Sample:
    """Distinct rows to draw from, other rows for the kernel widths, and the moments of the columns."""

    rows: DistinctRows
    for_widths: DistinctRows
    moments: Moments

    def __add__(self, other: Sample) -> Sample:
        parts = self.rows + other.rows, self.for_widths + other.for_widths, self.moments + other.moments
        return Sample(*parts)

    @property
    def growth(self) -> int:
        return len(self.rows)

    def enough(self, draw: Draw) -> bool:
        """True if the rows left out made no difference."""
        return draw.below == 2**64 or (len(self.rows) >= draw.size and len(self.for_widths) >= CANDIDATES)

    def kernels(self, kernel: Kernel, *, scaled: bool) -> list[Kernel]:
        """The kernels to choose from, as if all rows were in memory; `scaled` divides columns by their spread."""
        if scaled:
            scale = self.moments.deviation
            found = self._kernels(for_scaled(kernel, self.moments), lambda X: divided(X, scale))
            return [Scaled(one, scale) for one in found]
        return self._kernels(kernel, lambda X: X)

    def _kernels(self, kernel: Kernel, seen: Callable[[Any], Any]) -> list[Kernel]:
        if getattr(kernel, "gamma", None) == "scale":
            return [replace(kernel, gamma=self.moments.gamma)]  # type: ignore[type-var]
        if getattr(kernel, "gamma", None) == "auto":
            return kernel.candidates(seen(self.for_widths.X))
        return kernel.candidates(seen(self.rows.X), self.rows.weights)


def _candidates(X: Matrix, weights: np.ndarray | None, size: int, rng: np.random.Generator) -> DistinctRows:
    """Distinct rows to choose from, in random order."""
    return DistinctRows.of(X, weights, max(CANDIDATES, size), _key_seed(rng)).shuffled(rng)


def _key_seed(rng: np.random.Generator) -> int:
    """The seed for the keys of rows; must be drawn before anything else."""
    return int(rng.integers(2**62))
