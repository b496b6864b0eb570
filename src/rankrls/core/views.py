"""Views: different descriptions of the same rows, by columns, kernels or basis points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..bases import Basis
from ..kernels import Kernel, Precomputed, as_kernel


@dataclass
class View:
    """One way to look at a row: some of its columns, through a kernel, expanded in some basis.

    Parameters
    ----------
    columns : None, list of int or of str, or slice, default=None
        Columns of X by number or by name; None takes all.
    kernel : None, str, kernel object or callable, default=None
        As in `RankRLS`, without "precomputed"; None is linear in these columns.
    basis : None, int, object of `rankrls.bases`, array of row numbers or array of points, default=None
        Points a kernel is expanded in: every row, scored or not (None), that many random rows (those of different
        views are disjoint), points by a method, these rows, or the points in the columns of the view.

    Examples
    --------
    >>> View(columns=["length", "cost"], kernel="rbf", basis=50)
    View(columns=['length', 'cost'], kernel='rbf', basis=50)
    """

    columns: Any = None
    kernel: Any = None
    basis: Any = None


@dataclass(frozen=True)
class FittedView:
    """A view whose columns are numbers, whose kernel has its parameters and whose basis is points."""

    columns: slice | np.ndarray
    kernel: Kernel | None
    points: Any  # (r, n_columns), None for a linear view

    def __call__(self, X: Any) -> np.ndarray:
        """(k, r) Phi, the columns or the kernel to the points, of k rows of X in double precision."""
        V = X[:, self.columns].astype(np.float64)
        if self.kernel is not None:
            return self.kernel(V, self.points)
        return V.toarray() if sparse.issparse(V) else V


def as_views(views: Any, kernel: Any, basis: Any) -> list[View]:
    """A list of views, or a number of them that differ by their random basis."""
    if isinstance(views, Sequence) and not isinstance(views, str):
        for number, view in enumerate(views):
            if not isinstance(view, View):
                raise TypeError(f"views must be a number or a list of View objects: entry {number} is {view!r}")
        if not views:
            raise ValueError("views is empty: give at least one View, or a number")
        return list(views)
    if not is_count(views) or views < 1:
        raise ValueError(f"views must be a positive number or a list of View objects, got {views!r}")
    if views > 1 and (kernel is None or not is_count(basis)):
        raise ValueError(
            f"views={views} with kernel={kernel!r} and basis={basis!r} would be the same view {views} times, and agree "
            "whatever they learn: pass a kernel and a number of basis rows (each view draws its own), or a list of "
            "View objects with different columns or kernels"
        )
    return [View(None, kernel, basis)] * int(views)


def fitted_views(
    views: Sequence[View], X: Any, names: Any, weights: np.ndarray | None, random_state: Any
) -> list[FittedView]:
    """Views with everything fixed; random bases are disjoint. Rows of weight zero count as not given."""
    rows = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    sizes = [int(view.basis) if is_count(view.basis) else 0 for view in views]
    if sum(sizes) > len(rows) or any(is_count(view.basis) and view.basis < 1 for view in views):
        raise ValueError(
            f"{len(views)} views with random bases of {', '.join(map(str, sizes))} rows need {sum(sizes)} different "
            f"rows, at least one each, and X has {len(rows)}: take a smaller basis, or name the rows of each view"
        )
    seed = random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state
    rng = np.random.default_rng(seed)
    drawn = rng.choice(rows, sum(sizes), replace=False)
    fitted = []
    for number, (view, part) in enumerate(zip(views, np.split(drawn, np.cumsum(sizes)[:-1]), strict=True)):
        where = f"view {number}"
        columns = _columns(view.columns, X.shape[1], names, where)
        kernel = None if view.kernel is None else as_kernel(view.kernel)
        _check_kernel_and_basis(kernel, view.basis, where)
        points = None
        if kernel is not None:
            kernel = kernel.fitted(X[:, columns], weights)
            basis = rows if view.basis is None else np.sort(part) if is_count(view.basis) else view.basis
            points = _points(basis, X, columns, where, kernel, rng)
        fitted.append(FittedView(columns, kernel, points))
    return fitted


def _columns(columns: Any, n: int, names: Any, where: str) -> slice | np.ndarray:
    """Numbers of columns, as a slice where they lie together."""
    if columns is None:
        return slice(0, n)
    if isinstance(columns, slice):
        numbers = list(range(n))[columns]
    else:
        known = {} if names is None else {name: i for i, name in enumerate(names)}
        wanted = [columns] if isinstance(columns, str) or np.ndim(columns) == 0 else list(columns)
        if any(isinstance(column, bool | np.bool_) for column in wanted):
            raise ValueError(f"{where}: columns are numbers or names, not a mask: use np.flatnonzero(mask)")
        numbers = [known.get(column, column) for column in wanted]
    missing = [i for i in numbers if isinstance(i, str) or not -n <= i < n]
    if missing or not numbers:
        have = f"columns 0 to {n - 1}" if names is None else f"columns 0 to {n - 1}: {', '.join(map(str, names))}"
        raise ValueError(
            f"{where} names no column: give some" if not missing else f"{where}: no column {missing[0]!r}; X has {have}"
        )
    array = np.array(numbers, dtype=np.intp) % n
    together = np.all(np.diff(array) == 1)
    return slice(int(array[0]), int(array[-1]) + 1) if together else array


def _check_kernel_and_basis(kernel: Kernel | None, basis: Any, where: str) -> None:
    if kernel is None and basis is not None:
        raise ValueError(f"{where}: basis needs a kernel; a linear view has no use for it")
    if isinstance(kernel, Precomputed):
        raise ValueError(
            f"{where}: a precomputed kernel has no columns to choose from or basis to draw: pass a function "
            "k(X, Z), for instance one that looks rows up by a number in their first column"
        )
    if getattr(kernel, "gamma", None) == "auto":
        raise ValueError(f'{where}: gamma="auto" is not chosen here: pass a number or "scale", or use GridSearchCV')


def _points(
    basis: Any, X: Any, columns: slice | np.ndarray, where: str, kernel: Kernel, rng: np.random.Generator
) -> Any:
    """The points of a basis given by a method, by numbers of rows, or as they are, in the columns of the view."""
    if isinstance(basis, Basis):
        if not 1 <= basis.size <= X.shape[0]:
            raise ValueError(f"{where}: basis={basis.size} points cannot be drawn from {X.shape[0]} rows")
        return basis.choose(X[:, columns].astype(np.float64), kernel, rng)
    array = basis if sparse.issparse(basis) else np.asarray(basis)
    width = X[:1, columns].shape[1]
    if array.ndim == 1 and array.dtype.kind in "iu":
        if len(array) == 0 or array.min() < -X.shape[0] or array.max() >= X.shape[0]:
            raise ValueError(f"{where}: basis names rows outside 0 to {X.shape[0] - 1}, or none")
        return X[array][:, columns].astype(np.float64)
    if array.ndim == 2 and array.shape[1] == width and array.shape[0] > 0:
        return array.astype(np.float64)
    raise ValueError(
        f"{where}: basis must be None, a number, row numbers, or points with the {width} columns of the view; "
        f"got shape {array.shape}"
    )


def is_count(value: Any) -> bool:
    """A whole number, and not True or False."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
