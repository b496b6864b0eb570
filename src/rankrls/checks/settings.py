"""Checks of estimators' parameters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..kernels import Kernel, KernelLike, Scaled, is_other
from ..system.types import ArrayLike

NAMELESS = (
    "its columns have no names: give numbers, or a data frame (of a pipeline, TableEncoder().set_output("
    'transform="pandas"))'
)


def check_number(name: str, value: object, *, zero: bool = False, auto: bool = True, hint: str = "") -> float:
    """A positive finite number, or zero if `zero`; `auto` makes the error mention "auto" as a choice."""
    if isinstance(value, str | bool) or not np.isscalar(value) or not _in_range(float(value), zero):  # type: ignore[arg-type]
        kind = "a finite number, zero or positive" if zero else "a positive number"
        either = f'{kind}, or "auto"' if auto else kind
        raise ValueError(f"{name} must be {either}; got {value}{hint}")
    return float(value)  # type: ignore[arg-type]


def check_grid(name: str, values: ArrayLike, *, zero: bool = False) -> np.ndarray:
    """The values of a grid as positive numbers."""
    grid = np.array([check_number(f"each of {name}", value, zero=zero, auto=False) for value in np.ravel(values)])
    if not len(grid):
        raise ValueError(f"{name} is empty: give at least one number, or None for a grid fitted to the data")
    return grid


def check_penalised(alpha: float) -> None:
    """Raise an error if alpha is zero: a model with a weight for every row can fit any scores without a penalty."""
    if alpha == 0:
        raise ValueError(
            "alpha=0 does not determine a model with a kernel on every row, or with more columns than rows, which can "
            "fit any scores: use an alpha above zero, or a basis"
        )


def check_unchanged(model: object, before: dict[str, Any], remedy: str) -> None:
    """Raise an error if a parameter has another value than the model was fitted with; "auto" stands for any value."""
    for name, value in before.items():
        now = getattr(model, name)
        if now != value and now != "auto":
            raise ValueError(f"the model was fitted with {name}={value!r}, but now it is {now!r}: {remedy}")


def check_same_kernel(kernel: KernelLike | None, fitted: Kernel | None, remedy: str) -> None:
    """Raise an error if the kernel is not the one that was fitted, as far as its kind and numbers tell."""
    fitted = fitted.kernel if isinstance(fitted, Scaled) else fitted
    if is_other(kernel, fitted):
        raise ValueError(f"the model was fitted with kernel={fitted!r}, but now it is {kernel!r}: {remedy}")


def check_choice(name: str, value: object, valid: Iterable[Any]) -> None:
    """Raise an error unless the value is valid; it lists the valid ones and suggests the nearest."""
    valid = tuple(valid)
    if any(value is v or (isinstance(v, str) and value == v) for v in valid):
        return
    near = difflib.get_close_matches(str(value), [str(v) for v in valid], 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, valid))}, got {value!r}{hint}")


def check_choices(model: object, **valid: Iterable[Any]) -> None:
    """Parameters of an estimator that each take one of a few values."""
    for name, values in valid.items():
        check_choice(name, getattr(model, name), values)


def check_share(name: str, value: object) -> None:
    """Raise an error unless the value is a number between 0 and 1."""
    if isinstance(value, str) or not np.isscalar(value) or not 0 <= float(value) <= 1:  # type: ignore[arg-type]
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}")


def check_signs(positive: Any, n: int, names: Sequence[str] | None) -> np.ndarray | None:
    """(n,) the signs that weights must have, 0 where either is allowed; None if no sign is required."""
    if positive is None or positive is False:
        return None
    if positive is True:
        return np.ones(n)
    if isinstance(positive, str):
        positive = [positive]  # one column
    if not isinstance(positive, Iterable):
        raise ValueError(f'positive must be True, columns, or a dict such as {{"bm25": +1}}, got {positive!r}')
    mask = np.asarray(positive)
    if mask.dtype == bool and mask.shape == (n,):
        return mask.astype(np.float64)
    have = [] if names is None else list(names)
    signs, given = np.zeros(n), dict[int, int]()
    for column, sign in positive.items() if isinstance(positive, dict) else ((column, 1) for column in positive):
        if isinstance(column, str) and column not in have:
            known = f"it has {', '.join(map(str, have[:20]))}" if have else NAMELESS
            raise ValueError(f"positive names column {column!r}, which X does not have; {known}")
        j = have.index(column) if isinstance(column, str) else column
        if isinstance(j, bool) or not isinstance(j, int | np.integer) or not 0 <= j < n:
            raise ValueError(f"positive names column {column!r}, but X has columns 0 to {n - 1}")
        if sign not in (1, -1):
            raise ValueError(f"the sign of a weight is +1 or -1, got {sign!r} for column {column!r}")
        if given.setdefault(int(j), sign) != sign:
            raise ValueError(f"positive requires both signs for column {column!r}")
        signs[j] = sign
    return signs


def check_unsigned(positive: object, what: str) -> None:
    """Raise an error if sign constraints are given where they are not supported; `what` ends with the remedy."""
    if positive is not None and positive is not False:
        raise ValueError(f"positive cannot be combined with {what}")


def check_count(name: str, value: object, least: int = 1) -> int:
    """The value as a whole number, which must be at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}; got {value!r}")
    return int(value)


def _in_range(value: float, zero: bool) -> bool:
    return (value >= 0 if zero else value > 0) and value < np.inf
