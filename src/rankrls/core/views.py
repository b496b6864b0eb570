"""Views: different descriptions of the same rows, by columns, kernels or basis points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..bases import BasisLike, deal, is_count, points
from ..kernels import WIDTHS, Kernel, Precomputed, as_kernel, is_precomputed
from ..system.items import Items
from ..system.rows import CANDIDATES, DistinctRows
from ..system.types import Matrix


@dataclass
class View:
    """One description of a row: some of its columns, with a kernel, expanded in basis points.

    Parameters
    ----------
    columns : None, list of int or of str, or slice, default=None
        Columns of X by number or by name; None takes all.
    kernel : None, str, kernel object or callable, default=None
        As in `RankRLS`; None is linear in these columns. With "precomputed" the columns hold kernel values of each row
        with the points of the basis.
    basis : None, int, object of `rankrls.bases`, array of row numbers or array of points, default=None
        The points the kernel is expanded in: every row of X, scored or not (None), or as in `RankRLS`. A number draws
        that many rows, different ones for each view. Points given as an array have the columns of the view. For a
        precomputed kernel, give the row number of each column, or None if there is a column for every row.

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
    """A view with column numbers, fixed kernel parameters and explicit basis points."""

    columns: slice | np.ndarray
    kernel: Kernel | None
    points: Any  # (r, n_columns), None for a linear view

    def __call__(self, X: Any) -> np.ndarray:
        """(k, r) Phi, the columns or the kernel to the points, of k rows of X in double precision."""
        V = X[:, self.columns].astype(np.float64)
        if self.kernel is not None:
            return self.kernel(V, self.points)
        return V.toarray() if sparse.issparse(V) else V

    def scores(self, X: Matrix, coef: np.ndarray) -> np.ndarray:
        """(k, ...) the scores of k rows; for a linear view, sparse rows stay sparse."""
        if self.kernel is None and sparse.issparse(X):
            return np.asarray(X[:, self.columns].astype(np.float64) @ coef)
        return self(X) @ coef


def as_views(views: object, kernel: object, basis: object) -> list[View]:
    """`views` as a list; a number makes that many views, each with its own basis rows."""
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
            f"views={views} with kernel={kernel!r} and basis={basis!r} would be the same view {views} times, which "
            "always agree: pass a kernel and a number of basis rows (each view draws its own), or a list of "
            "View objects with different columns or kernels"
        )
    return [View(None, kernel, basis)] * int(views)


def n_widths(views: Sequence[View]) -> int:
    """The number of kernels to choose from: with gamma="auto", each view gets the same multiples of its own width."""
    auto = any(getattr(view.kernel, "gamma", None) == "auto" for view in views)
    return len(WIDTHS) if auto else 1


def fitted_views(
    views: Sequence[View],
    X: Matrix,
    names: Sequence[str] | None,
    weights: np.ndarray | None,
    seed: int,
    width: int | None = None,
) -> list[FittedView]:
    """Views with everything fixed; views that draw a number of points draw disjoint rows.

    Rows of weight zero are ignored. `width` is the number of the kernel to use where gamma is "auto".
    """
    rows = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    given = X if len(rows) == X.shape[0] else X[rows]
    u = None if weights is None else weights[rows]
    shares = _shares(views, given, u, seed)
    fitted = []
    for number, view in enumerate(views):
        where = f"view {number}: "
        columns = _columns(view.columns, X.shape[1], names, where)
        kernel = None if view.kernel is None else as_kernel(view.kernel)
        _check_kernel_and_basis(kernel, view.basis, where, width)
        drawn = None
        if isinstance(kernel, Precomputed):
            drawn = _kernel_of_points(X[:, columns], view.basis, where)
        elif kernel is not None:
            V = given[:, columns]
            kernel = kernel.candidates(V, u)[(width or 0) if getattr(kernel, "gamma", None) == "auto" else 0]
            from_rows, copies = (V, u) if number not in shares else (shares[number][0][:, columns], shares[number][1])
            drawn = points(view.basis, from_rows, kernel, seed, copies, numbered=X[:, columns], where=where)
            drawn = (V if drawn is None else drawn).astype(np.float64)
        fitted.append(FittedView(columns, kernel, drawn))
    return fitted


def _shares(
    views: Sequence[View], X: Matrix, weights: np.ndarray | None, seed: int
) -> dict[int, tuple[Any, np.ndarray]]:
    """For each view that draws a number of points, the rows (and their weights) it may draw from."""
    counted = [
        number
        for number, view in enumerate(views)
        if is_count(view.basis) and view.kernel is not None and not is_precomputed(view.kernel)
    ]
    if not counted:
        return {}
    items = X if isinstance(X, Items) else None
    if items is not None:
        X = np.arange(len(items), dtype=np.float64)[:, None]
    sizes = [int(views[number].basis) for number in counted]
    if min(sizes) < 1:
        raise ValueError(f"view {counted[int(np.argmin(sizes))]}: basis={min(sizes)} must be at least one point")
    rows = DistinctRows.of(X, weights, max(CANDIDATES, sum(sizes)), seed).shuffled(np.random.default_rng(seed))
    if len(rows) < len(counted):
        raise ValueError(f"{len(counted)} views cannot each draw a basis from {len(rows)} different rows of X")
    shares = deal(rows, np.minimum(sizes, len(rows)).tolist())
    pick = (
        (lambda share: rows.X[share]) if items is None else (lambda share: items[rows.X[share][:, 0].astype(np.intp)])
    )
    return {number: (pick(share), rows.weights[share]) for number, share in zip(counted, shares, strict=True)}


def _columns(columns: Any, n: int, names: Any, where: str) -> slice | np.ndarray:
    """Column numbers, as a slice where they are adjacent."""
    if columns is None:
        return slice(0, n)
    if isinstance(columns, slice):
        numbers = list(range(n))[columns]
    else:
        known = {} if names is None else {name: i for i, name in enumerate(names)}
        wanted = [columns] if isinstance(columns, str) or np.ndim(columns) == 0 else list(columns)
        if any(isinstance(column, bool | np.bool_) for column in wanted):
            raise ValueError(f"{where}columns are numbers or names, not a mask: use np.flatnonzero(mask)")
        numbers = [known.get(column, column) for column in wanted]
    missing = [i for i in numbers if isinstance(i, str) or not -n <= i < n]
    if missing or not numbers:
        have = f"columns 0 to {n - 1}" if names is None else f"columns 0 to {n - 1}: {', '.join(map(str, names))}"
        raise ValueError(
            f"{where}no column {missing[0]!r}; X has {have}"
            if missing
            else f"{where}columns is empty: give at least one"
        )
    array = np.array(numbers, dtype=np.intp) % n
    together = np.all(np.diff(array) == 1)
    return slice(int(array[0]), int(array[-1]) + 1) if together else array


def _kernel_of_points(K: Any, basis: BasisLike | None, where: str) -> np.ndarray:
    """(r, r) the kernel values among the points; K (m, r) holds their values with all rows."""
    m, r = K.shape
    numbers = np.arange(m) if basis is None else np.asarray(basis)
    if (
        numbers.ndim != 1
        or numbers.dtype.kind not in "iu"
        or len(numbers) != r
        or not np.all((numbers >= 0) & (numbers < m))
    ):
        raise ValueError(
            f"{where}a precomputed kernel of {r} columns needs basis= the row number of each, or {m} columns, one for "
            f"every row; got basis={basis!r}"
        )
    of_points = K[numbers].toarray() if sparse.issparse(K) else K[numbers]
    return of_points.astype(np.float64)


def _check_kernel_and_basis(kernel: Kernel | None, basis: BasisLike | None, where: str, width: int | None) -> None:
    if kernel is None and basis is not None:
        raise ValueError(f"{where}basis needs a kernel; a linear view does not use one")
    if width is None and getattr(kernel, "gamma", None) == "auto":
        raise ValueError(f'{where}gamma="auto" is not chosen here: pass a number or "scale", or use GridSearchCV')
