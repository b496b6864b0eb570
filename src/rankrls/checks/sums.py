"""Checks of sums and kernel matrices: what overflowed, what lost digits, what determines nothing."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ..core.statistics import Statistics


def check_sums(sums: Statistics, before: Statistics) -> None:
    """Raise an error unless what remains after un-learning can be sums over rows: counts and Gram are not negative."""
    size = max(float(np.diag(before.gram).max(initial=0)), float(before.square.max(initial=0)), 1e-300)
    possible = min(sums.n_rows, sums.n_queries, sums.n_pairs) >= 0
    same = sums.beta == 0 and sums.n_pairs == before.n_pairs  # the rows are in no pair; other changes are rounding
    try:
        for c, s in zip(sums.cross.T, sums.square, strict=True) if possible and not same else ():
            M = np.block([[sums.gram, c[:, None]], [c[None], s]])
            linalg.cholesky(M + 1e-6 * size * np.eye(len(M)), overwrite_a=True, check_finite=False)
            possible &= sums.n_rows > 0 or bool(np.all(np.abs(np.diag(M)) <= 1e-6 * size))
    except linalg.LinAlgError:
        possible = False
    if not possible:
        raise ValueError(
            "these queries were never learned (not with these rows, labels and weights): forgetting them would "
            f"leave {sums.n_rows} rows in {sums.n_queries} queries; the model is unchanged"
        )


def check_no_overflow(sums: Statistics) -> None:
    """Raise an error if sums of finite numbers have overflowed."""
    if all(np.isfinite(part).all() for part in (sums.gram, sums.cross, sums.square)):
        return
    column = np.flatnonzero(~np.isfinite(np.diag(sums.gram)))
    raise _overflow(f"feature {column[0]}" if len(column) else "y")


def check_target(z: np.ndarray) -> None:
    """Raise an error if the squares of the labels z, as the loss weighs them, overflow when they are added up."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(np.vdot(z, z)):
            raise _overflow("y")


def _overflow(what: str) -> ValueError:
    return ValueError(
        f"the squares of {what} overflow when they are added up: its values or sample_weight are very large. "
        "Look for wrong values, divide by a constant, or use float64 instead of float32"
    )


def check_squares(largest: float, count: float) -> None:
    """Values up to the largest must have squares that can be added up so many times."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(np.float64(largest) ** 2 * count):
            raise ValueError(
                f"the squares of the functions to choose from overflow when they are added up: values are as large as "
                f"{largest:.3g}. Look for wrong values in X or sample_weight, or divide by a constant"
            )


def check_visible(varies: np.ndarray, columns: np.ndarray) -> None:
    """Raise an error if columns vary but their squares underflow: their spread would be unknown."""
    if varies.any():
        raise ValueError(
            f"the squares of feature {columns[int(np.argmax(varies))]} underflow when they are added up: its values or "
            "sample_weight are very small, so its spread is unknown. Multiply them by a constant, or use scale=None"
        )


def check_forgettable(after: Statistics, before: Statistics, alpha: float) -> None:
    """Raise an error if subtraction loses digits, because the forgotten rows are far larger than those that stay."""
    left, gone = np.diag(after.gram), np.diag(before.gram)
    lost = 4 * np.finfo(np.float64).eps * gone > 1e-6 * (np.abs(left) + alpha)
    if after.beta > 0 and after.weight > 0 and 4 * np.finfo(np.float64).eps * before.weight > 1e-6 * after.weight:
        raise ValueError(
            f"the rows to forget weigh {before.weight - after.weight:.3g}, those that stay only {after.weight:.3g}: "
            "subtracting them would leave rounding errors. Fit again without them; the model is unchanged"
        )
    if lost.any():
        j = int(np.argmax(gone / (np.abs(left) + alpha)))
        raise ValueError(
            f"the rows to forget are so much larger in feature {j} than the others that subtracting them would leave "
            "rounding errors: fit again without them; the model is unchanged"
        )


def check_determined(rank: int, directions: int) -> None:
    """Raise an error unless the rows determine every weight without a penalty."""
    if rank < directions:
        raise ValueError(
            f"alpha=0 needs rows that determine every weight, but they determine {rank} of {directions}: some "
            "columns do not vary within queries, or follow from others; drop these, or use an alpha above zero"
        )


def check_determined_without(query: object) -> None:
    """Raise the error for a query that alone determines a weight, with a penalty too small to do so instead."""
    raise ValueError(
        f"without query {query!r} the rows do not determine every weight, and alpha is zero, or too small compared "
        "with their squares, to do so: use a larger alpha"
    )


def check_kernel_values(K: np.ndarray, basis: object = None) -> None:
    """Raise an error unless these can be kernel values between all rows, or between all rows and basis points."""
    if isinstance(basis, np.ndarray) and basis.ndim == 2:  # kernel values among the points
        if basis.shape[0] == K.shape[1]:
            check_kernel_matrix(basis, "the basis of a precomputed kernel")
        return
    m, r = K.shape
    if basis is None or np.ndim(basis) != 1 or m == r:  # type: ignore[arg-type]
        check_kernel_matrix(K)
        return
    numbers = np.asarray(basis)
    if len(np.unique(numbers)) != r:
        raise ValueError(
            f"a precomputed kernel of {m} rows and {r} columns needs basis= the row number of each column, {r} "
            f"different ones; got {len(np.unique(numbers))}"
        )
    if np.any((numbers < -m) | (numbers >= m)):
        raise ValueError(f"basis has rows outside 0 to {m - 1}")
    check_kernel_matrix(K[numbers])


def check_kernel_matrix(K: np.ndarray, name: str = "a precomputed kernel") -> None:
    """Raise an error unless the matrix is square, and symmetric up to rounding."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be square at fit (training points by training points), got {K.shape}")
    skew = np.abs(K - K.T)
    worst = int(np.argmax(skew))
    if skew.flat[worst] > 1e-6 * max(K.max(initial=0), -K.min(initial=0)):
        i, j = np.unravel_index(worst, K.shape)
        raise ValueError(
            f"the kernel matrix is not symmetric: K[{i}, {j}] = {K[i, j]:.6g} but K[{j}, {i}] = {K[j, i]:.6g}; "
            "pass (K + K.T) / 2 if that is what you mean"
        )
